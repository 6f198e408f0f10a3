//! Impairments of a link: it loses, damages, delays and duplicates packets.

use std::collections::HashMap;

use crate::engine::events::{PacketId, PortId};
use crate::engine::log::{Duplicate, Reason};
use crate::engine::rng::Stream;
use crate::engine::run::Simulation;
use crate::network::packet::{Kind, Packet};
use crate::network::topology::number;
use crate::record::frame::Frame;
use crate::scenario::{Impairment, Only};
use crate::units::Time;

/// Counts and random numbers of an impairment.
#[derive(Debug)]
pub(crate) struct ImpairmentState {
    seen: u64,
    stream: Stream,
    /// Draws of repeated losses and of duplicates.
    more: Stream,
    /// `times`: by flow, kind and PSN, how many transmissions of a chosen PSN are still to be lost.
    chosen: HashMap<(u32, bool, u64), u32>,
}

impl ImpairmentState {
    pub(crate) fn new(seed: u64, place: usize) -> Self {
        Self {
            seen: 0,
            stream: Stream::new(seed, "link", place),
            more: Stream::new(seed, "link again", place),
            chosen: HashMap::new(),
        }
    }

    /// True if a packet is lost.
    fn loses(&mut self, table: &Impairment, packet: &Packet) -> bool {
        let number = self.seen;
        self.seen += 1;
        let by_chance = match (table.times, table.lose_retransmissions) {
            (Some(times), retransmissions)
                if packet.kind.is_request() || packet.kind == Kind::ReadResponse =>
            {
                self.loses_repeatedly(table, times, retransmissions, packet)
            }
            (_, Some(share)) if packet.attempt > 0 => self.more.happens(share),
            _ => self.stream.happens(table.loss),
        };
        by_chance || table.drop.contains(&number)
    }

    /// True if it is one of the first transmissions of a chosen PSN.
    fn loses_repeatedly(
        &mut self,
        table: &Impairment,
        times: u32,
        retransmissions: Option<f64>,
        packet: &Packet,
    ) -> bool {
        let key = (packet.flow, packet.kind.is_request(), packet.seq);
        if packet.attempt == 0 && !packet.is_copy() && self.more.happens(table.loss) {
            self.chosen.insert(key, times);
        }
        match self.chosen.get_mut(&key) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => packet.attempt > 0 && self.more.happens(retransmissions.unwrap_or(0.0)),
        }
    }
}

impl Simulation<'_> {
    /// Extra delay of a packet on a link; `None` when the link loses it.
    pub(crate) fn impair(&mut self, id: PortId, packet_id: PacketId) -> Option<Time> {
        let mut more = Time::ZERO;
        for place in 0..self.topology.ports[id.index()].impairments.len() {
            let index = self.topology.ports[id.index()].impairments[place] as usize;
            let Some(table) = self.scenario.impairment.get(index) else {
                continue;
            };
            let packet = *self.pool.packet(packet_id);
            if !applies(table, &packet, self.now) {
                continue;
            }
            let state = &mut self.impairments[index];
            if state.loses(table, &packet) {
                self.topology.ports[id.index()].count.link_lost += 1;
                self.drop_packet(packet_id, id, Reason::Random);
                return None;
            }
            if state.stream.happens(table.corrupt) {
                self.pool.change(packet_id).damage();
            }
            if state.stream.happens(table.reorder) {
                more = more.plus(table.reorder_delay);
                self.log.delayed(&packet);
            }
        }
        Some(more)
    }

    /// The network may deliver a packet twice: the duplicate arrives later than the packet, by its own length at least.
    pub(crate) fn duplicate(&mut self, id: PortId, packet_id: PacketId, arrives: Time) {
        for place in 0..self.topology.ports[id.index()].impairments.len() {
            let index = self.topology.ports[id.index()].impairments[place] as usize;
            let Some(table) = self.scenario.impairment.get(index) else {
                continue;
            };
            let mut copy = *self.pool.packet(packet_id);
            if copy.is_copy() || table.duplicate <= 0.0 || !applies(table, &copy, self.now) {
                continue;
            }
            let state = &mut self.impairments[index];
            if !state.more.happens(table.duplicate) {
                continue;
            }
            let (from, to) = (table.duplicate_after.from, table.duplicate_after.to);
            let after = from.plus(Time(state.more.below(to.since(from).0.saturating_add(1))));
            let rate = self.topology.ports[id.index()].rate;
            let after = after.max(rate.time_of(u64::from(copy.bytes + Frame::LINE_OVERHEAD)));
            copy.copy = number(self.log.duplicates.len());
            copy.again = u32::MAX;
            self.log.duplicates.push(Duplicate {
                time: arrives.plus(after),
                flow: copy.flow,
                kind: copy.kind,
                psn: copy.psn(),
                port: id,
                recorded: 0,
            });
            self.topology.ports[id.index()].count.link_doubled += 1;
            let copy = self.pool.add(&copy);
            self.travel(id, copy, arrives.plus(after));
        }
    }
}

/// True if an impairment is for a packet.
fn applies(table: &Impairment, packet: &Packet, now: Time) -> bool {
    if now < table.begin || table.end.is_some_and(|end| now >= end) {
        return false;
    }
    if table.longer_than.is_some_and(|most| packet.bytes <= most) {
        return false;
    }
    let is_nak = matches!(packet.kind, Kind::Nak | Kind::RnrNak | Kind::FatalNak);
    match table.only {
        Only::All => packet.kind != Kind::Pause,
        Only::Data => packet.kind.is_data(),
        Only::Ack => is_nak || packet.kind == Kind::Ack,
        Only::PositiveAck => packet.kind == Kind::Ack,
        Only::Nak => is_nak,
        Only::Cnp => packet.kind == Kind::Cnp,
        Only::Request => packet.kind == Kind::Request,
        Only::ReadRequest => packet.kind == Kind::ReadRequest,
        Only::ReadResponse => packet.kind == Kind::ReadResponse,
        Only::ReadTail => packet.kind == Kind::ReadResponse && packet.follow < table.tail,
        Only::Retransmission => packet.attempt > 0,
    }
}
