//! Steps of a run: the activities of its ends.

use super::{Activity, Limit, Mark, NEARLY};
use crate::engine::events::EndpointId;
use crate::engine::run::Simulation;
use crate::network::packet::{Kind, Packet};
use crate::network::topology::Node;
use crate::record::frame::Frame;
use crate::units::Picos;

/// Length of an ACK's frame: Ethernet 14, IPv4 20, UDP 8, BTH 12, AETH 4, ICRC 4 bytes.
const ACK_BYTES: u64 = 62;

impl Simulation<'_> {
    /// Notes what an end does from now on.
    pub(crate) fn note_activity(&mut self, end: EndpointId) {
        let activity = self.activity(end);
        let own = &mut self.ends[end.index()];
        let (oldest, top) = (own.requester.oldest, own.requester.top);
        let mark = Mark {
            time: self.now,
            activity,
            due: own.activities.due(oldest),
            outstanding: top - oldest,
        };
        own.activities.most = own.activities.most.max(mark.outstanding);
        own.activities.push(mark);
    }

    fn activity(&self, end: EndpointId) -> Activity {
        let own = &self.ends[end.index()];
        let requester = &own.requester;
        if own.closed || requester.failure.is_some() || !own.open {
            return Activity::Idle;
        }
        if requester.waiting {
            return Activity::NotReady;
        }
        if own.activities.leaves.is_some() || self.has_work(end) {
            let again = own.activities.leaves.unwrap_or_else(|| requester.sends_again());
            return match own.activities.limit {
                _ if again => Activity::Recovers,
                Limit::Low => Activity::Slowed,
                Limit::Slight => Activity::NearlyFull,
                Limit::None => Activity::Sends,
            };
        }
        if requester.has_unsent() {
            return Activity::Window;
        }
        if requester.oldest < requester.top {
            let connection = &self.connections[end.connection()];
            let mut sources = connection.sources.iter();
            let is_full = sources.any(|source| {
                let source = self.sources.get(*source as usize);
                source.is_some_and(|source| source.end == end && source.is_full())
            });
            return if is_full {
                Activity::Messages
            } else {
                Activity::Flight
            };
        }
        // The end of a ring's queue pair that sends is its first one.
        if self.connections[end.connection()].rank.is_some() && end.0.is_multiple_of(2) {
            return Activity::AwaitsInput;
        }
        Activity::Idle
    }

    /// A packet of an end begins to leave its port; `allowed` is when its limit let it go.
    pub(crate) fn begins_packet(&mut self, end: EndpointId, packet: &Packet, allowed: Picos) {
        let now = Picos::nanos(self.now);
        let host = self.ends[end.index()].host;
        let rate = self.topology.ports[self.topology.hosts[host as usize].port.index()].rate;
        let slack = rate
            .time_of(u64::from(self.scenario.nic.mtu + Frame::LINE_OVERHEAD))
            .times(2);
        let free = self.now > allowed.plus(slack);
        let own = &mut self.ends[end.index()];
        let limit = match &mut own.reaction {
            Some(reaction) if reaction.is_limited() && !own.held_by_limit => {
                let share = reaction.rate(roce_model::Time(now)) / rate.bits();
                if share < NEARLY { Limit::Low } else { Limit::Slight }
            }
            _ => Limit::None,
        };
        own.activities.begins_packet(free);
        own.activities.limit = limit;
        own.activities.leaves = Some(packet.attempt > 0);
        own.activities.requests |= packet.kind.is_request() || packet.kind == Kind::Datagram;
    }

    /// The last bit of an end's packet has left.
    pub(crate) fn ends_packet(&mut self, end: EndpointId) {
        self.ends[end.index()].activities.leaves = None;
        self.note_activity(end);
    }

    /// A request that wants an answer leaves.
    pub(crate) fn expect_answer(&mut self, end: EndpointId, packet: &Packet) {
        let is_read = packet.kind == Kind::ReadRequest;
        if !packet.ack_request && !is_read {
            return;
        }
        let (here, there) = (self.ends[end.index()].host, packet.to);
        let longest = u64::from(self.scenario.nic.mtu + Frame::LINE_OVERHEAD + 70);
        let back = if is_read {
            longest
        } else {
            ACK_BYTES + u64::from(Frame::LINE_OVERHEAD)
        };
        let (out, _) = self.way(here, there, u64::from(packet.bytes + Frame::LINE_OVERHEAD));
        let (home, slowest) = self.way(there, here, back);
        let more = self
            .scenario
            .network
            .spray
            .map_or(Picos::ZERO, |spray| spray.skew.plus(spray.jitter).times(2));
        let held = if self.scenario.nic.ack_coalesce > 1 {
            self.scenario.nic.ack_delay
        } else {
            Picos::ZERO
        };
        let round_trip = out.plus(home).plus(more).plus(held);
        let transfer = if is_read {
            slowest.times(u64::from(packet.span.saturating_sub(1)))
        } else {
            Picos::ZERO
        };
        let now = self.now;
        let line = &mut self.ends[end.index()].activities;
        line.expect_answer(
            packet.seq,
            packet.seq + u64::from(packet.span),
            now,
            round_trip,
            transfer,
        );
    }

    /// Time of a frame from host to host without queues, and on its slowest link.
    fn way(&self, from: u32, to: u32, bytes: u64) -> (Picos, Picos) {
        let (mut total, mut slowest) = (Picos::ZERO, Picos::ZERO);
        let mut port = self.topology.hosts[from as usize].port;
        // A way has no more links than there are ports.
        for _ in 0..self.topology.ports.len() {
            let link = &self.topology.ports[port.index()];
            let time = link.rate.time_of(bytes);
            total = total.plus(time).plus(link.delay);
            slowest = slowest.max(time);
            let next = match self.topology.ports[link.peer.index()].node {
                Node::Host(_) => None,
                Node::Switch(switch) => {
                    let routes = &self.topology.switches[switch as usize].routes;
                    routes.get(to as usize).and_then(|ports| ports.first()).copied()
                }
            };
            match next {
                Some(next) => port = next,
                None => break,
            }
        }
        (total, slowest)
    }
}
