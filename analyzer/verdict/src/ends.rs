//! Ends of connections: how each one ended, as the packets of its requester show it. Events say what was repeated and refused, rows of
//! flows who the two hosts are and when they last made progress. `findings::ended` makes the finding of it.
//!
//! Nothing here needs the other direction: a requester that repeats one request after its timer has got no answer, whoever was captured.

mod judge;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};

use crate::coverage::Coverage;
use roce_model::{Address, Aeth, AethKind, EventKind, EventRow, FlowId, FlowRow, Nak, Span, TapId, Time};

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;
/// A tap, and two hosts in the direction of packets.
type Way = (TapId, Address, Address);

/// Connections that are kept, at most: some 20 MB. Of more, the first ones have an end.
const MAX_CONNECTIONS: usize = 1 << 16;
/// Fatal NAKs that are kept, at most.
const MAX_REFUSALS: usize = 1 << 12;
/// Repeats after which a queue pair has given up: `retry_cnt` has three bits.
pub(super) const MAX_REPEATS: u64 = 7;
/// The latest packets that are kept of a way, each of another flow: one may be the flow itself, one its peer.
const KEPT_OF_WAY: usize = 3;

/// Facts kept of a flow that sent requests.
#[derive(Clone, Debug)]
struct Requester {
    epoch: u32,
    source: Address,
    destination: Address,
    destination_qpn: u32,
    peer: Option<FlowId>,
    first_time: Time,
    last_time: Time,
    last_request: Time,
    last_answer: Option<Time>,
    unanswered_time: Option<Time>,
    sent: SentPsns,
    to_itself: bool,
    /// The tap's rows of this flow count.
    counted: bool,
}

/// The first and the last PSN of a flow's requests.
#[derive(Clone, Copy, Debug)]
struct SentPsns {
    first: u32,
    last: u32,
}

/// Retransmission runs of a flow that began at one PSN, one after another, after a timer.
#[derive(Clone, Copy, Debug)]
struct Repeats {
    psn: u32,
    count: u64,
    first: Time,
    last: Time,
    shortest: Option<u64>,
    longest: Option<u64>,
}

/// RNR NAKs of a flow for one PSN, one after another.
#[derive(Clone, Copy, Debug)]
struct NotReady {
    psn: u32,
    count: u64,
    last: Time,
    /// The time that the latest one asks the requester to wait.
    timer: Span,
}

/// A fatal NAK.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    tap: TapId,
    /// The flow that carried it.
    carrier: FlowId,
    psn: u32,
    reason: &'static str,
    time: Time,
}

/// Facts kept of the packets from one host to another.
#[derive(Clone, Debug, Default)]
struct WayFacts {
    /// The last packets, the latest first, each of another flow.
    last_packets: Vec<(Time, FlowId)>,
    /// The last packets of flows that carried answers, likewise.
    last_answers: Vec<(Time, FlowId)>,
    path_mtu: Option<u32>,
}

/// ICRCs of the packets that a host sent.
#[derive(Clone, Copy, Debug, Default)]
struct CheckedIcrcs {
    checked: u64,
    bad: u64,
}

/// Follows the ends of all connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends {
    requesters: Map<(TapId, FlowId), Requester>,
    /// When the flows of answers last had a packet, and between which hosts.
    carriers: Map<(TapId, FlowId), (Address, Address, Time)>,
    repeats: Map<(TapId, FlowId), Repeats>,
    not_ready: Map<(TapId, FlowId), NotReady>,
    refusals: Vec<Refusal>,
    ways: Map<Way, WayFacts>,
    icrcs: Map<(TapId, Address), CheckedIcrcs>,
    /// Taps of whose packets some are missing that nobody sent again.
    holed: BTreeSet<TapId>,
}

impl Ends {
    /// An event of a flow; those of one flow come in the order of time.
    pub(super) fn event(&mut self, event: &EventRow) {
        let (Some(flow), Some(psn)) = (event.flow_id, event.psn) else {
            return;
        };
        let key = (event.tap, flow);
        match event.kind {
            EventKind::RetransmissionRun => self.repeated(key, psn, event),
            EventKind::RnrNak if has_room(&self.not_ready, &key) => {
                let count = self.not_ready.get(&key).filter(|known| known.psn == psn);
                let count = count.map_or(1, |known| known.count + 1);
                let timer = Span(event.value.unwrap_or_default());
                let last = event.time;
                self.not_ready.insert(
                    key,
                    NotReady {
                        psn,
                        count,
                        last,
                        timer,
                    },
                );
            }
            EventKind::Nak => {
                if let Some(reason) = event.value.and_then(reason)
                    && self.refusals.len() < MAX_REFUSALS
                {
                    let (tap, carrier) = key;
                    let time = event.time;
                    self.refusals.push(Refusal {
                        tap,
                        carrier,
                        psn,
                        reason,
                        time,
                    });
                }
            }
            // A new connection of the queue pair: what the one before repeated is over.
            EventKind::Epoch => {
                self.repeats.remove(&key);
                self.not_ready.remove(&key);
            }
            _ => {}
        }
    }

    /// A run that begins at `psn`. One that an answer asked for shows that the responder is alive; a sender that goes on with new requests
    /// while its timer runs may repeat without a silence that shows it.
    fn repeated(&mut self, key: (TapId, FlowId), psn: u32, event: &EventRow) {
        if !matches!(event.detail.as_deref(), Some("timeout" | "unknown")) {
            self.repeats.remove(&key);
            return;
        }
        if !has_room(&self.repeats, &key) {
            return;
        }
        let time = event.time;
        let begun = Repeats {
            psn,
            count: 0,
            first: time,
            last: time,
            shortest: None,
            longest: None,
        };
        let repeats = self.repeats.entry(key).or_insert(begun);
        if repeats.psn != psn {
            *repeats = begun;
        }
        if repeats.count > 0 {
            let between = time.since(repeats.last).0;
            repeats.shortest = Some(repeats.shortest.map_or(between, |least| least.min(between)));
            repeats.longest = Some(repeats.longest.map_or(between, |most| most.max(between)));
        }
        repeats.count += 1;
        repeats.last = repeats.last.max(time);
    }

    /// A flow that is complete.
    pub(super) fn flow(&mut self, row: &FlowRow) {
        let key = (row.tap, row.flow_id);
        let way = (row.tap, row.source, row.destination);
        if has_room(&self.ways, &way) {
            let facts = self.ways.entry(way).or_default();
            note_last(&mut facts.last_packets, row);
            if row.acks > 0 || row.naks > 0 || row.rnr_naks > 0 {
                note_last(&mut facts.last_answers, row);
            }
            facts.path_mtu = facts.path_mtu.max(row.path_mtu);
        }
        let sender = (row.tap, row.source);
        if row.icrc_checked > 0 && has_room(&self.icrcs, &sender) {
            let sums = self.icrcs.entry(sender).or_default();
            sums.checked = sums.checked.saturating_add(row.icrc_checked);
            sums.bad = sums.bad.saturating_add(row.icrc_bad);
        }
        if Coverage::from_row(row).absent() > 0 {
            self.holed.insert(row.tap);
        }
        if !matches!(row.service, "RC" | "XRC") {
            return;
        }
        if has_room(&self.carriers, &key) {
            self.carriers
                .insert(key, (row.source, row.destination, row.last_time));
        }
        let (Some(first_psn), Some(last_psn), Some(last_request)) =
            (row.first_psn, row.last_psn, row.last_request_time)
        else {
            return;
        };
        if !has_room(&self.requesters, &key) {
            return;
        }
        let requester = Requester {
            epoch: row.epoch,
            source: row.source,
            destination: row.destination,
            destination_qpn: row.destination_qpn,
            peer: row.peer_flow_id,
            first_time: row.first_time,
            last_time: row.last_time,
            last_request,
            last_answer: row.last_answer_time,
            unanswered_time: row.unanswered_time,
            sent: SentPsns {
                first: first_psn,
                last: last_psn,
            },
            to_itself: row.to_itself,
            counted: row.counted,
        };
        // The last one of several epochs says how the connection ended.
        match self.requesters.get_mut(&key) {
            Some(known) if known.epoch > requester.epoch => {}
            Some(known) => *known = requester,
            None => {
                self.requesters.insert(key, requester);
            }
        }
    }
}

fn has_room<K: Eq + core::hash::Hash, T>(map: &Map<K, T>, key: &K) -> bool {
    map.len() < MAX_CONNECTIONS || map.contains_key(key)
}

/// Keeps the latest packets of a way.
fn note_last(kept: &mut Vec<(Time, FlowId)>, row: &FlowRow) {
    let before = kept.iter().find(|(_, flow)| *flow == row.flow_id);
    let time = before.map_or(row.last_time, |(time, _)| row.last_time.max(*time));
    kept.retain(|(_, flow)| *flow != row.flow_id);
    let place = kept.partition_point(|(other, flow)| (*other, *flow) > (time, row.flow_id));
    kept.insert(place, (time, row.flow_id));
    kept.truncate(KEPT_OF_WAY);
}

/// The reason of a fatal NAK, by its syndrome: any but a sequence error (IBTA 9.7.5.2).
fn reason(syndrome: u64) -> Option<&'static str> {
    match Aeth([u8::try_from(syndrome).ok()?, 0, 0, 0]).kind() {
        AethKind::Nak(nak) if nak != Nak::PsnSequenceError => Some(nak.name()),
        _ => None,
    }
}
