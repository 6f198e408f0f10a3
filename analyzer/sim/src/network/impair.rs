//! Impairments of a link: it loses, damages, delays and duplicates packets.

mod steps;

use std::collections::HashMap;

use crate::engine::rng::Stream;
use crate::network::packet::{Kind, Packet};
use crate::scenario::{Impairment, Only};
use crate::units::Picos;

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

/// True if an impairment is for a packet.
fn applies(table: &Impairment, packet: &Packet, now: Picos) -> bool {
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
