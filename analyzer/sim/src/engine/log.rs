//! The raw facts of a run, as they happen: what the truth is made of. Indices instead of names, simulation time.
//!
//! `observer` has what taps saw, `judge` its meaning.

mod facts;

use std::collections::{BTreeMap, HashMap};

pub(crate) use facts::{
    DelayedPacket, Duplicate, Effect, FlowCount, LoggedRun, Loss, Mark, Notification, PortPause, RankStep,
    Reason, Refusal, RetransmittedPacket, Silence, UplinkShare,
};

use crate::engine::events::PortId;
use crate::network::cause::Cause;
use crate::network::packet::{Kind, Packet};
use crate::units::Picos;
use crate::workload::requester::Trigger;

/// Everything that happened.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub flows: Vec<FlowCount>,
    pub losses: Vec<Loss>,
    pub delayed: Vec<DelayedPacket>,
    pub duplicates: Vec<Duplicate>,
    pub marks: Vec<Mark>,
    pub refusals: Vec<Refusal>,
    pub notifications: Vec<Notification>,
    pub runs: Vec<LoggedRun>,
    pub retransmitted: Vec<RetransmittedPacket>,
    pub pauses: Vec<PortPause>,
    /// Why ports paused their neighbours.
    pub causes: Vec<Cause>,
    /// Data frames, and their bytes, of each flow by each of several equal-cost ports.
    pub uplinks: BTreeMap<(PortId, u32), UplinkShare>,
    pub silences: Vec<Silence>,
    pub steps: Vec<RankStep>,
    /// The run that sent a PSN of a flow again first.
    pub first_run: HashMap<(u32, u64), u32>,
    last_loss: HashMap<(u32, u64), u32>,
    last_delayed: HashMap<(u32, u64), u32>,
    /// Requests that came before their turn and were dropped, with the taps that had recorded them.
    dropped: HashMap<(u32, u64), u64>,
    open_run: HashMap<u32, u32>,
    /// Most that a queue held.
    pub deepest: HashMap<(PortId, u8), u64>,
}

impl Log {
    /// A packet was made: it counts as sent, though it may still wait in its NIC.
    pub(crate) fn sent(&mut self, packet: &Packet, now: Picos) {
        let Some(flow) = self.flows.get_mut(packet.flow as usize) else {
            return;
        };
        if packet.kind == Kind::Cnp {
            return;
        }
        flow.sent += 1;
        flow.first.get_or_insert(now);
        flow.last = now;
        if packet.kind.is_data() {
            flow.data += 1;
            flow.first_data.get_or_insert(now);
            flow.last_data = now;
            add(&mut flow.sent_by_ms, now, packet.payload);
            if packet.ecn() == roce_wire::Ecn::NotEct {
                flow.not_ect += 1;
            }
        }
        if packet.attempt > 0 {
            flow.retransmitted_packets += 1;
            flow.retransmitted_bytes += u64::from(packet.payload);
        } else {
            flow.first_bytes += u64::from(packet.payload);
        }
    }

    /// A packet came to its receiver.
    pub(crate) fn received(&mut self, packet: &Packet, now: Picos) {
        let Some(flow) = self.flows.get_mut(packet.flow as usize) else {
            return;
        };
        match packet.kind {
            Kind::Cnp => {
                if let Some(cnp) = self.notifications.get_mut(packet.note as usize) {
                    cnp.received.get_or_insert(now);
                    cnp.recorded |= packet.recorded;
                }
                return;
            }
            Kind::Nak | Kind::RnrNak | Kind::FatalNak => {
                if let Some(refusal) = self.refusals.get_mut(packet.note as usize) {
                    refusal.received.get_or_insert(now);
                    refusal.recorded |= packet.recorded;
                }
            }
            _ => {}
        }
        if packet.is_copy() {
            return;
        }
        flow.received += 1;
        if packet.kind.is_data() {
            add(&mut flow.received_by_ms, now, packet.payload);
        }
    }

    /// A packet was lost. Of a duplicate that the network made nothing is lost.
    pub(crate) fn lost(&mut self, packet: &Packet, now: Picos, port: PortId, reason: Reason) {
        if packet.is_copy() {
            return;
        }
        match packet.kind {
            Kind::Pause => return,
            Kind::Cnp => {
                if let Some(cnp) = self.notifications.get_mut(packet.note as usize) {
                    cnp.recorded |= packet.recorded;
                }
            }
            kind => {
                if matches!(kind, Kind::Nak | Kind::RnrNak | Kind::FatalNak)
                    && let Some(refusal) = self.refusals.get_mut(packet.note as usize)
                {
                    refusal.recorded |= packet.recorded;
                }
                if let Some(flow) = self.flows.get_mut(packet.flow as usize) {
                    flow.lost += 1;
                }
            }
        }
        let place = place(self.losses.len());
        if packet.kind.is_request() {
            self.last_loss.insert((packet.flow, packet.seq), place);
        }
        self.losses.push(Loss {
            time: now,
            flow: packet.flow,
            kind: packet.kind,
            seq: packet.seq,
            span: packet.span,
            psn: packet.psn(),
            attempt: packet.attempt,
            begins: packet.first,
            ends: packet.last,
            port,
            reason,
            passed: packet.passed,
            recorded: packet.recorded,
            nak: None,
        });
    }

    /// A request is delayed so that others can overtake it.
    pub(crate) fn delayed(&mut self, packet: &Packet) {
        if packet.kind.is_request() && !packet.is_copy() {
            self.last_delayed
                .insert((packet.flow, packet.seq), place(self.delayed.len()));
            self.delayed.push(DelayedPacket {
                flow: packet.flow,
                seq: packet.seq,
                recorded: packet.recorded,
                nak: None,
            });
        }
    }

    /// A receiver drops a request because it came before its turn.
    pub(crate) fn dropped_early(&mut self, packet: &Packet) {
        if !packet.is_copy() {
            self.dropped.insert((packet.flow, packet.seq), packet.recorded);
        }
    }

    /// A NAK is about to name a request that is not lost: it is on its way, with the taps that have
    /// recorded it, or came before its turn.
    pub(crate) fn overtaken(&mut self, flow: u32, seq: u64, in_flight: Option<u64>) {
        let key = (flow, seq);
        if self.last_loss.contains_key(&key) || self.last_delayed.contains_key(&key) {
            return;
        }
        let Some(recorded) = in_flight.or_else(|| self.dropped.get(&key).copied()) else {
            return;
        };
        self.last_delayed.insert(key, place(self.delayed.len()));
        self.delayed.push(DelayedPacket {
            flow,
            seq,
            recorded,
            nak: None,
        });
    }

    /// A NAK or RNR NAK is sent. Returns its place.
    pub(crate) fn refused(&mut self, refusal: Refusal) -> u32 {
        let number = place(self.refusals.len());
        if refusal.kind == Kind::Nak {
            let key = (refusal.flow, refusal.seq);
            if let Some(loss) = self.last_loss.get(&key) {
                if let Some(loss) = self.losses.get_mut(*loss as usize) {
                    loss.nak = Some(number);
                }
            } else if let Some(delayed) = self.last_delayed.get(&key)
                && let Some(delayed) = self.delayed.get_mut(*delayed as usize)
            {
                delayed.nak = Some(number);
            }
        }
        self.refusals.push(refusal);
        number
    }

    /// A CNP is sent. Returns its place.
    pub(crate) fn notified(&mut self, notification: Notification) -> u32 {
        self.notifications.push(notification);
        place(self.notifications.len() - 1)
    }

    /// Notes a retransmitted request packet; `begins` when it is the first of a run. Returns the place
    /// of its run.
    pub(crate) fn sent_again(
        &mut self,
        packet: &Packet,
        begins: Option<Trigger>,
        now: Picos,
        silent_since: Picos,
    ) -> u32 {
        if let Some(trigger) = begins {
            self.open_run.insert(packet.flow, place(self.runs.len()));
            self.runs.push(LoggedRun {
                flow: packet.flow,
                begin: now,
                end: now,
                seq: packet.seq,
                psn: packet.psn(),
                packets: 0,
                bytes: 0,
                trigger,
                silent_since,
            });
        }
        let Some(&number) = self.open_run.get(&packet.flow) else {
            return u32::MAX;
        };
        if let Some(run) = self.runs.get_mut(number as usize) {
            run.end = now;
            run.packets += 1;
            run.bytes += u64::from(packet.payload);
            for step in 0..u64::from(packet.span) {
                self.first_run
                    .entry((packet.flow, packet.seq + step))
                    .or_insert(number);
            }
        }
        number
    }

    /// Notes a retransmitted request or READ response. Returns its place.
    pub(crate) fn retransmitted(&mut self, packet: &Packet, run: u32, now: Picos) -> u32 {
        self.retransmitted.push(RetransmittedPacket {
            time: now,
            flow: packet.flow,
            kind: packet.kind,
            seq: packet.seq,
            span: packet.span,
            psn: packet.psn(),
            attempt: packet.attempt,
            run,
            recorded: 0,
        });
        place(self.retransmitted.len() - 1)
    }

    /// A queue has grown.
    pub(crate) fn queued(&mut self, port: PortId, priority: u8, bytes: u64) {
        let deepest = self.deepest.entry((port, priority)).or_default();
        *deepest = bytes.max(*deepest);
    }
}

fn place(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

fn add(bins: &mut Vec<u64>, now: Picos, bytes: u32) {
    let bin = usize::try_from(now.nanos() / 1_000_000).unwrap_or(usize::MAX);
    if bin >= bins.len() && bin < 1 << 20 {
        bins.resize(bin + 1, 0);
    }
    if let Some(bin) = bins.get_mut(bin) {
        *bin += u64::from(bytes);
    }
}
