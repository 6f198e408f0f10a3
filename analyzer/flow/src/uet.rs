//! Ultra Ethernet Transport: its connections (PDCs), followed by what those of MRC share with them, and its traffic by jobs. A connection
//! is the data of one sender with the number that it gave the connection, over all taps: answers name that number.

mod traffic;

use std::collections::HashMap;

use roce_model::{
    EventRow, MrcDelivery, MrcEntropyOrder, MrcIdsOrder, PathTransport, Span, TapId, Time, UetHeaders,
    UetPacket,
};
use roce_wire::network::udp;
use roce_wire::transport::uet::{Control, Semantics};

use crate::mrc::{
    CarriedEntropy, Direction, MessageEnds, MrcConclusion, Pool, Sighting, SightingKind, Subject,
};
use traffic::Traffic;

/// Bits of a PSN of UET.
const PSN_BITS: u32 = 32;
/// The latest packets by which copies of them at the same tap are found.
const RECENT: usize = 4096;
/// A copy follows its packet within this time, in ns.
const COPY: Span = Span(1_000_000);

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Facts of a connection besides its packets.
#[derive(Clone, Copy, Debug, Default)]
struct PdcFacts {
    id: u16,
    peer: Option<u16>,
    /// The first PSN, as packets say that open it.
    first_psn: Option<u32>,
    is_ordered: bool,
    job: Option<u32>,
    opened: Option<Time>,
    closed: Option<Time>,
}

/// All packets of UET of a run.
#[derive(Debug, Default)]
pub(crate) struct Uet {
    connections: Pool,
    facts: Vec<PdcFacts>,
    /// By the data's source and destination, and the sender's number of the connection. The latest one, where a number is used again.
    by_id: Map<Direction, usize>,
    recent: Vec<(u32, TapId, Time)>,
    traffic: Traffic,
}

impl Uet {
    /// Takes a packet. Events are added to `events`.
    pub(crate) fn observe(&mut self, packet: &UetPacket, events: &mut Vec<EventRow>) {
        if self.is_copy(packet) {
            return;
        }
        self.traffic.count(packet);
        let Some((of, peer)) = data_way(packet) else {
            return;
        };
        let Some(at) = self.connection(of, packet) else {
            return;
        };
        if let Some(facts) = self.facts.get_mut(at) {
            facts.peer = facts.peer.or(peer);
            note(facts, packet);
        }
        self.connections.observe(at, &sighting(packet, of), events);
    }

    /// True if the same tap has just seen a packet with equal headers: a mirror's copy, or an answer that says nothing new.
    fn is_copy(&mut self, packet: &UetPacket) -> bool {
        if self.recent.is_empty() {
            self.recent = vec![(0, TapId::default(), Time(0)); RECENT];
        }
        let place = packet.hash as usize % RECENT;
        let before = self.recent[place];
        self.recent[place] = (packet.hash, packet.tap, packet.time);
        (before.0, before.1) == (packet.hash, packet.tap)
            && before.2 > Time(0)
            && packet.time.since(before.2) <= COPY
    }

    /// The connection of data on a way; a new one if there is none, or if its number is used for another one.
    fn connection(&mut self, of: Direction, packet: &UetPacket) -> Option<usize> {
        let first = match packet.headers {
            UetHeaders::Request { first_psn, .. } => first_psn,
            _ => None,
        };
        let known = self.by_id.get(&of).copied();
        let is_other = |at: &usize| {
            let known = self.facts.get(*at).and_then(|facts| facts.first_psn);
            known.is_some() && first.is_some() && known != first
        };
        if let Some(at) = known.filter(|at| !is_other(at)) {
            return Some(at);
        }
        let at = self.connections.open(of.source, of.destination, PSN_BITS)?;
        self.facts.push(PdcFacts {
            id: u16::try_from(of.qpn).unwrap_or_default(),
            ..PdcFacts::default()
        });
        self.by_id.insert(of, at);
        Some(at)
    }

    /// Adds the rows at the end to those of MRC.
    pub(crate) fn conclude(self, to: &mut MrcConclusion, events: &mut Vec<EventRow>) {
        let mut conclusion = self.connections.conclude(events);
        for (row, facts) in conclusion.connections.iter_mut().zip(&self.facts) {
            row.transport = PathTransport::Uet;
            row.udp_port = udp::UET.into();
            row.requestor_pdc = Some(facts.id.into());
            row.responder_pdc = facts.peer.map(Into::into);
            row.delivery = if facts.is_ordered {
                MrcDelivery::InOrder
            } else {
                MrcDelivery::AnyOrder
            };
            row.job = facts.job;
            (row.opened_time, row.closed_time) = (facts.opened, facts.closed);
            (row.entropy_order, row.ids_order) = (MrcEntropyOrder::Port, MrcIdsOrder::SenderFirst);
        }
        for path in &mut conclusion.paths {
            path.ev = path.udp_source_port;
        }
        conclusion.traffic = self.traffic.rows();
        to.add(&conclusion);
    }
}

/// The way of the data that a packet is, or is about, with the number that the data's sender gave the connection, and that of the other end
/// where the packet has it. `None`: it belongs to no connection.
fn data_way(packet: &UetPacket) -> Option<(Direction, Option<u16>)> {
    let way = |id: u16| Direction {
        source: packet.source,
        destination: packet.destination,
        qpn: id.into(),
    };
    match packet.headers {
        UetHeaders::Request { ids, first_psn, .. } => {
            Some((way(ids[0]), Some(ids[1]).filter(|_| first_psn.is_none())))
        }
        // It goes the way of the data of its sender.
        UetHeaders::Control { ids, kind, .. } if kind == Control::PROBE || Control::CLOSE[0] == kind => {
            Some((way(ids[0]), Some(ids[1])))
        }
        UetHeaders::Ack { sack, .. } => Some((way(0).back(sack.ids[1].into()), Some(sack.ids[0]))),
        UetHeaders::Nack {
            ids, psn: Some(_), ..
        } => Some((way(0).back(ids[1].into()), Some(ids[0]))),
        UetHeaders::Control { ids, kind, .. } if Control::CLOSE[1] == kind => {
            Some((way(0).back(ids[1].into()), Some(ids[0])))
        }
        _ => None,
    }
}

/// Notes what a packet says of its connection.
fn note(facts: &mut PdcFacts, packet: &UetPacket) {
    let mut closes = false;
    match packet.headers {
        UetHeaders::Request {
            is_ordered,
            first_psn,
            ..
        } => {
            facts.is_ordered = is_ordered;
            if first_psn.is_some() {
                facts.first_psn = first_psn;
                facts.opened.get_or_insert(packet.time);
            }
            if let Some(Semantics::Request { job, .. }) = packet.semantics {
                facts.job.get_or_insert(job);
            }
        }
        UetHeaders::Ack { asks_close, .. } => closes = asks_close,
        UetHeaders::Control { kind, .. } => closes = Control::CLOSE.contains(&kind),
        _ => {}
    }
    if closes {
        facts.closed.get_or_insert(packet.time);
    }
}

/// A packet as connections take it.
fn sighting(packet: &UetPacket, of: Direction) -> Sighting {
    let (mut psn, mut is_again) = (0, false);
    let what = match packet.headers {
        UetHeaders::Request { psn: own, .. } => {
            (psn, is_again) = (own, packet.is_again);
            data(packet, own)
        }
        UetHeaders::Ack { sack, .. } => {
            psn = sack.cumulative;
            SightingKind::Sack(sack)
        }
        UetHeaders::Nack {
            code,
            psn: Some(refused),
            ..
        } => {
            psn = refused;
            SightingKind::Nack {
                reason: code,
                entropy: None,
                stamp: None,
            }
        }
        UetHeaders::Control { kind, probe, .. } if kind == Control::PROBE => {
            SightingKind::Probe { number: probe }
        }
        _ => SightingKind::Other,
    };
    Sighting {
        time: packet.time,
        tap: packet.tap,
        hop_limit: packet.hop_limit,
        udp_port: udp::UET,
        carried: CarriedEntropy {
            port: packet.udp_source_port,
            label: packet.flow_label,
        },
        outer: packet.outer,
        subject: Subject::Numbered(of),
        psn,
        payload_bytes: packet.payload_bytes,
        is_trimmed: packet.is_trimmed,
        is_again,
        hash: packet.hash,
        what,
    }
}

/// A request with its place in its message. Without a semantic header that was captured it is a message of its own.
fn data(packet: &UetPacket, psn: u32) -> SightingKind {
    let low = u16::try_from(psn & 0xffff).unwrap_or_default();
    let (message, is_first, is_last) = match packet.semantics {
        Some(Semantics::Request {
            message,
            is_first,
            is_last,
            ..
        }) => (message.unwrap_or(low), is_first, is_last),
        _ => (low, true, true),
    };
    SightingKind::Data {
        message,
        ends: MessageEnds { is_first, is_last },
        stamp: None,
    }
}

#[cfg(test)]
mod tests;
