//! Steps of a run: what hosts do with frames.

use std::cmp::Reverse;

use roce_model::Time;
use roce_wire::Ecn;

use crate::engine::events::{EndpointId, Event, PacketId, PortId};
use crate::engine::log::{Effect, Reason, Silence};
use crate::engine::run::Simulation;
use crate::network::packet::{Kind, Packet};
use crate::scenario::ServiceName;
use crate::units::Picos;
use crate::workload::account::Waits;
use crate::workload::endpoint::{Job, QueueState};
use crate::workload::requester::{Failure, Trigger};
use crate::workload::responder::{Reply, Request};

impl Simulation<'_> {
    /// True if an end has something that it may send, but for its rate.
    pub(crate) fn has_work(&self, end: EndpointId) -> bool {
        let own = &self.ends[end.index()];
        own.open && !own.closed && (!own.jobs.is_empty() || own.requester.can_send())
    }

    /// An end may have something to send now.
    pub(crate) fn kick(&mut self, end: EndpointId) {
        if self.ends[end.index()].queued == QueueState::Idle && self.has_work(end) {
            self.enqueue(end);
            let host = self.ends[end.index()].host;
            self.transmit(self.topology.hosts[host as usize].port);
        }
        if self.ends[end.index()].queued == QueueState::Idle {
            self.waits_idle(end);
        }
        self.note_activity(end);
        self.watch(end);
    }

    /// Puts an end with work into its NIC's queue.
    fn enqueue(&mut self, end: EndpointId) {
        let own = &mut self.ends[end.index()];
        let (next, host) = (own.next_send, own.host);
        let paced = next > self.now;
        own.queued = if paced {
            QueueState::Pacing
        } else {
            QueueState::Ready
        };
        own.held_by_dcqcn = paced && !own.held_by_limit;
        let waits = match (paced, own.held_by_limit) {
            (false, _) => Waits::Port,
            (true, true) => Waits::RateLimit,
            (true, false) => Waits::Dcqcn,
        };
        self.waits(end, waits);
        let state = &mut self.hosts[host as usize];
        if paced {
            state.pacing.push(Reverse((next, end)));
        } else {
            state.ready.push_back(end);
        }
    }

    /// The next data packet of a host: its ends take turns, as far as their rates and pauses allow.
    pub(crate) fn pull(&mut self, host: u32) -> Option<PacketId> {
        let now = self.now;
        self.due(host);
        let port = self.topology.hosts[host as usize].port;
        let mut found = None;
        for _ in 0..self.hosts[host as usize].ready.len() {
            let Some(end) = self.hosts[host as usize].ready.pop_front() else {
                break;
            };
            let priority = self.ends[end.index()].priority();
            if self.topology.ports[port.index()].is_paused(priority, now) {
                self.hosts[host as usize].ready.push_back(end);
                self.waits(end, Waits::Paused);
                if self.has_work(end) {
                    self.note_wait(port, priority, end.0);
                }
                continue;
            }
            self.ends[end.index()].queued = QueueState::Idle;
            if !self.has_work(end) {
                self.waits_idle(end);
                self.note_activity(end);
                continue;
            }
            let allowed = self.ends[end.index()].next_send;
            found = self.produce(end);
            if let Some(id) = found {
                let packet = *self.pool.packet(id);
                self.begins_packet(end, &packet, allowed);
                self.hosts[host as usize].leaves = Some(end);
            }
            self.watch(end);
            if self.ends[end.index()].queued == QueueState::Idle && self.has_work(end) {
                self.enqueue(end);
            } else {
                self.waits_idle(end);
            }
            self.note_activity(end);
            if found.is_some() {
                break;
            }
        }
        self.wake(host);
        found
    }

    /// Ends whose time has come may send now.
    fn due(&mut self, host: u32) {
        let now = self.now;
        while let Some(Reverse((time, end))) = self.hosts[host as usize].pacing.peek().copied()
            && time <= now
        {
            let state = &mut self.hosts[host as usize];
            state.pacing.pop();
            state.ready.push_back(end);
            self.ends[end.index()].queued = QueueState::Ready;
            self.waits_at(end, Waits::Port, time);
        }
    }

    /// Makes sure that the host looks again when its next paced end may send.
    fn wake(&mut self, host: u32) {
        self.due(host);
        let state = &mut self.hosts[host as usize];
        if let Some(Reverse((time, _))) = state.pacing.peek().copied()
            && time < state.wake
        {
            state.wake = time;
            self.events.at(time, Event::Pace { host });
        }
    }

    /// A paced end may send now.
    pub(crate) fn pace(&mut self, host: u32) {
        self.hosts[host as usize].wake = Picos::NEVER;
        self.transmit(self.topology.hosts[host as usize].port);
        self.wake(host);
    }

    /// Makes sure that there is an event for the retransmission timer.
    fn watch(&mut self, end: EndpointId) {
        let own = &mut self.ends[end.index()];
        // A deadline that comes forward is seen when the one before is over: a timer may take up to four times its interval
        // (IBTA 9.7.6, timeout and retry).
        if own.requester.deadline != Picos::NEVER && !own.timer_armed && own.service == ServiceName::Rc {
            own.timer_armed = true;
            self.events.at(own.requester.deadline, Event::Timeout { end });
        }
    }

    /// The retransmission timer may have expired.
    pub(crate) fn timeout(&mut self, end: EndpointId) {
        let now = self.now;
        let own = &mut self.ends[end.index()];
        own.timer_armed = false;
        if own.requester.deadline <= now && !own.closed {
            own.requester.timed_out(now);
            let host = own.host;
            self.count_at(host, |count| count.ack_timeouts += 1);
        }
        self.kick(end);
    }

    /// A packet came to its host.
    pub(crate) fn receive(&mut self, host: u32, port: PortId, id: PacketId) {
        let packet = self.pool.take(id);
        self.fill_buffer(host, packet.priority, u64::from(packet.bytes));
        if packet.corrupt {
            self.log.lost(&packet, self.now, port, Reason::Icrc);
            return;
        }
        self.log.received(&packet, self.now);
        if packet.kind == Kind::Management {
            self.manage(&packet);
            return;
        }
        let end = packet.end.peer();
        let own = &self.ends[end.index()];
        // A flow's responder is the second end of its connection.
        if own.closed || own.dies.is_some_and(|dies| self.now >= dies && end.0 % 2 == 1) {
            return;
        }
        if packet.kind.is_data() && packet.ecn() == Ecn::Ce && self.scenario.dcqcn.notify {
            let now = Time(self.now.nanos());
            let peer = self.ends[packet.end.index()].host;
            if self.hosts[host as usize].notification.marked(now, end.0, peer) {
                self.notify(end, false);
            } else if let Some(flow) = self.log.flows.get_mut(packet.flow as usize) {
                flow.ce_paced += 1;
            }
        }
        self.dispatch(end, &packet);
    }

    fn dispatch(&mut self, end: EndpointId, packet: &Packet) {
        let now = self.now;
        if matches!(
            packet.kind,
            Kind::Ack | Kind::Nak | Kind::RnrNak | Kind::FatalNak | Kind::ReadResponse
        ) {
            self.ends[end.index()].requester.answered = true;
        }
        match packet.kind {
            Kind::Request | Kind::ReadRequest => self.requested(end, packet),
            Kind::ReadResponse => {
                let done = self.ends[end.index()].requester.response(packet.seq, now);
                self.messages_done(end, &done.unwrap_or_default());
                self.look_for_gaps(end);
                self.kick(end);
            }
            Kind::Ack => {
                let done = self.ends[end.index()].requester.acknowledged(packet.seq, now);
                self.messages_done(end, &done);
                self.look_for_gaps(end);
                self.kick(end);
            }
            Kind::Nak => {
                let host = self.ends[end.index()].host;
                self.count_at(host, |count| count.sequence_naks += 1);
                let (done, _) = self.ends[end.index()].requester.refused(packet.seq, now);
                self.messages_done(end, &done);
                self.kick(end);
            }
            Kind::RnrNak => {
                let host = self.ends[end.index()].host;
                self.count_at(host, |count| count.rnr_naks += 1);
                let (done, wait) = self.ends[end.index()].requester.not_ready(packet.seq, now);
                if let Some(wait) = wait {
                    let timer = roce_wire::RnrTimer::new(self.scenario.nic.rnr_timer);
                    let time = now.plus(Picos::from_nanos(timer.nanos()));
                    self.events.at(time, Event::RnrOver { end, wait });
                }
                self.messages_done(end, &done);
                self.kick(end);
            }
            Kind::FatalNak => {
                self.ends[end.index()].requester.fail(Failure::Refused);
                self.note_activity(end);
            }
            Kind::Cnp => {
                let own = &mut self.ends[end.index()];
                let (host, reacts) = (own.host, own.reaction.is_some());
                self.count_at(host, |count| {
                    count.cnps_handled += u64::from(reacts);
                    count.cnps_ignored += u64::from(!reacts);
                });
                let own = &mut self.ends[end.index()];
                let Some(reaction) = &mut own.reaction else { return };
                let time = Time(now.nanos());
                let before = reaction.rate(time);
                let effect = Effect {
                    cut: reaction.cnp(time),
                    before,
                    after: reaction.rate(time),
                    binding: own.held_by_dcqcn,
                };
                if let Some(cnp) = self.log.notifications.get_mut(packet.note as usize) {
                    cnp.effect.get_or_insert(effect);
                }
            }
            Kind::Datagram => self.delivered(end, 1),
            Kind::Management | Kind::Pause => {}
        }
    }

    /// A request came to an end.
    fn requested(&mut self, end: EndpointId, packet: &Packet) {
        let now = self.now;
        let is_read = packet.kind == Kind::ReadRequest;
        let length = match &packet.frame {
            crate::record::frame::Frame::Roce(roce) => u64::from(roce.transport.extended.reth.length),
            _ => 0,
        };
        let request = Request {
            seq: packet.seq,
            span: packet.span,
            is_read,
            length,
            payload: packet.payload,
            first: packet.first,
            last: packet.last,
            receives: packet.receives,
            ack_requested: packet.ack_request,
        };
        let own = &mut self.ends[end.index()];
        // Data proves that the peer is ready, also when the RTU was lost.
        own.open = true;
        if own.fatal.is_some_and(|from| now >= from) && !own.responder.fatal {
            own.responder.fatal = true;
            let expected = own.responder.expected;
            self.reply(end, Reply::Fatal(expected));
            return;
        }
        if own.service == ServiceName::Uc {
            let outcome = own.responder.unreliable(request);
            self.delivered(end, outcome.messages);
            return;
        }
        let early = packet.seq > own.responder.expected && own.responder.drops_early();
        if early && self.spray.is_some() {
            self.log.dropped_early(packet);
        }
        own.responder.note(&request, now);
        let mut outcome = own.responder.reliable(request);
        if let Some(nak) = own.responder.overdue(now) {
            outcome.reply = Some(nak);
        }
        own.jobs.extend(outcome.reads.iter().map(|read| Job::Read {
            read: *read,
            next: 0,
            run: if read.seq == packet.seq && !packet.is_copy() {
                packet.note
            } else {
                u32::MAX
            },
        }));
        if outcome.holds && !own.ack_armed {
            own.ack_armed = true;
            let time = now.plus(self.scenario.nic.ack_delay);
            self.events.at(time, Event::AckDelay { end });
        }
        if let Some(reply) = outcome.reply {
            self.reply(end, reply);
        }
        self.delivered(end, outcome.messages);
        self.look_for_gaps(end);
        self.kick(end);
    }

    /// An end that takes packets in any order looks for those that are missing for too long.
    pub(crate) fn look_for_gaps(&mut self, end: EndpointId) {
        if !self.scenario.nic.out_of_order {
            return;
        }
        let now = self.now;
        let own = &mut self.ends[end.index()];
        if own.closed {
            return;
        }
        let reply = own.responder.overdue(now);
        own.requester.overdue(now);
        let due = [own.responder.due(), own.requester.due()];
        if let Some(due) = due.into_iter().flatten().min()
            && due < own.gap_due
        {
            own.gap_due = due;
            self.events.at(due.max(now), Event::Gap { end });
        }
        if let Some(reply) = reply {
            self.reply(end, reply);
        }
        self.kick(end);
    }

    /// An ACK has been held back long enough.
    pub(crate) fn release_ack(&mut self, end: EndpointId) {
        let own = &mut self.ends[end.index()];
        own.ack_armed = false;
        if own.closed {
            return;
        }
        if let Some(reply) = own.responder.release() {
            self.reply(end, reply);
            self.kick(end);
        }
    }

    /// Silence of a flow with something to send that the log notes.
    const SILENCE: Picos = Picos::from_nanos(500_000);

    /// Logs a silence that ends now, with the first packet after it.
    pub(crate) fn note_silence(&mut self, end: EndpointId, trigger: Option<Trigger>) {
        let now = self.now;
        let own = &self.ends[end.index()];
        let Some(busy) = own.busy_since else { return };
        let begin = own.last_sent.max(busy);
        if now.since(begin) < Self::SILENCE || own.next_send > begin.plus(Self::SILENCE) {
            return;
        }
        let port = &self.topology.ports[self.topology.hosts[own.host as usize].port.index()];
        let class = usize::from(own.priority());
        let paused = [class, usize::from(crate::network::topology::LINK_CLASS)]
            .iter()
            .any(|class| port.paused_until[*class] > begin);
        self.log.silences.push(Silence {
            flow: end.0,
            begin,
            end: now,
            trigger,
            paused,
        });
    }
}
