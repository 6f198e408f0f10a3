//! Directory of addresses behind flows and hashes, known from a flow's row on. Rules find what flows did
//! elsewhere.

use std::collections::{HashMap, HashSet};
use std::fmt;

use roce_model::{Address, FlowId, FlowRow, Groups, Qpn, RankEnd, TapId};

use crate::coverage::Coverage;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Flows that are remembered, at most: some 50 MB.
const MAX_FLOWS: usize = 1 << 18;
/// Flows of one piece of memory: a vector that doubles would need three times the room at that moment.
const OF_PIECE: usize = 1 << 12;
/// Hosts that are remembered, at most.
const MAX_HOSTS: usize = 1 << 17;

/// A flow by its ends, and what others ask of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Party {
    pub(super) source: Address,
    pub(super) destination: Address,
    qpn: Qpn,
    pub(super) peer: Option<FlowId>,
    pub(super) counted: bool,
    /// Data packets of all its epochs.
    pub(super) data_packets: u64,
    pub(super) packets: u64,
    pub(super) dscp: Option<u8>,
    pub(super) pcp: Option<u8>,
    /// Losses before the tap, and how many of them are proven; of all its epochs.
    pub(super) lost: u64,
    pub(super) proven: u64,
    /// Losses behind the tap, which nothing proves; of all its epochs.
    pub(super) lost_behind: u64,
    /// Time in which its sender stood still: waits for timers, for receive buffers, and pauses; of all its epochs.
    pub(super) stood_still_ns: u64,
    /// Time from its first packet to its last; of all its epochs.
    pub(super) lasted_ns: u64,
    /// Share of the flow's packets that the capture has.
    pub(super) coverage: Coverage,
    /// Its packets overtake each other, or come twice.
    pub(super) disturbed: bool,
    /// Its sender went on with its rate, whatever CNPs came.
    pub(super) unmoved: bool,
}

impl Party {
    /// The queue pair that its packets are for.
    pub(super) fn qpn(&self) -> Qpn {
        self.qpn
    }
}

/// Packets that come late, or that were overtaken behind the tap, from which on that is the rule in a flow.
const RULE: u64 = 4;

/// Packets of a flow that were lost behind the tap: captured, and NAKed or requested again, without those that the receiver had
/// after all. Where packets overtake each other as a rule, a receiver that goes back names those that are only late.
pub(super) fn lost_behind(row: &FlowRow) -> u64 {
    let named = row.lost_downstream.unwrap_or_default();
    let overtaken = row.overtaken_downstream.unwrap_or_default();
    let is_rule = overtaken >= RULE && overtaken.saturating_mul(4) >= named
        || row.late >= RULE.max(named).saturating_mul(2);
    if is_rule && row.recovery == Some("go_back_n") {
        return 0;
    }
    named.saturating_sub(overtaken)
}

/// True if the flow's packets overtake each other, here or behind the tap, or come twice.
pub(super) fn is_disturbed(row: &FlowRow) -> bool {
    let is_overtaken = [row.overtaken_downstream, row.response_late];
    row.late > 0
        || row.duplicates_network > 0
        || row.unknown_packets > 0
        || is_overtaken.into_iter().flatten().any(|packets| packets > 0)
}

/// Parties in the order in which they came, in pieces of memory of one size.
#[derive(Clone, Debug, Default)]
struct Parties(Vec<Vec<(TapId, FlowId, Party)>>);

impl Parties {
    fn push(&mut self, party: (TapId, FlowId, Party)) {
        match self.0.last_mut() {
            Some(piece) if piece.len() < OF_PIECE => piece.push(party),
            Some(_) => {
                let mut piece = Vec::with_capacity(OF_PIECE);
                piece.push(party);
                self.0.push(piece);
            }
            // Most captures have few flows.
            None => self.0.push(vec![party]),
        }
    }

    fn get(&self, place: u32) -> Option<&Party> {
        let piece = self.0.get(place as usize / OF_PIECE)?;
        piece.get(place as usize % OF_PIECE).map(|(.., party)| party)
    }

    fn get_mut(&mut self, place: u32) -> Option<&mut Party> {
        let piece = self.0.get_mut(place as usize / OF_PIECE)?;
        piece.get_mut(place as usize % OF_PIECE).map(|(.., party)| party)
    }
}

/// Flows and hosts by tap.
#[derive(Clone, Debug, Default)]
pub(super) struct Directory {
    /// The place of each flow in `parties`: those are many, and written in their order.
    flows: Map<(TapId, FlowId), u32>,
    parties: Parties,
    hosts: Map<u64, Address>,
    /// Ranks of the flows that a log names.
    ranks: Map<(TapId, FlowId), RankEnd>,
    /// Pairs of hosts between which packets of some flow overtake each other, or come twice.
    disturbed: HashSet<(TapId, Address, Address), foldhash::fast::RandomState>,
}

impl Directory {
    /// Notes a flow.
    pub(super) fn note(&mut self, row: &FlowRow) {
        let groups = Groups::new(row.tap, row.source, row.destination);
        for (hash, host) in [(groups.destination, row.destination), (groups.source, row.source)] {
            if self.hosts.len() < MAX_HOSTS {
                self.hosts.insert(hash, host);
            }
        }
        let key = (row.tap, row.flow_id);
        if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&key) {
            return;
        }
        if let Some(ranks) = row.ranks() {
            self.ranks.insert(key, ranks);
        }
        let next = u32::try_from(self.flows.len()).unwrap_or(u32::MAX);
        let place = *self.flows.entry(key).or_insert(next);
        if place == next {
            let party = Party {
                source: row.source,
                destination: row.destination,
                qpn: Qpn::new(row.destination_qpn),
                peer: None,
                counted: row.counted,
                data_packets: 0,
                packets: 0,
                dscp: row.dscp,
                pcp: row.pcp,
                lost: 0,
                proven: 0,
                lost_behind: 0,
                stood_still_ns: 0,
                lasted_ns: 0,
                coverage: Coverage::default(),
                disturbed: false,
                unmoved: false,
            };
            self.parties.push((row.tap, row.flow_id, party));
        }
        let Some(party) = self.parties.get_mut(place) else {
            return;
        };
        party.peer = row.peer_flow_id.or(party.peer);
        party.counted &= row.counted;
        if row.data_packets > 0 {
            (party.dscp, party.pcp) = (row.dscp, row.pcp);
        }
        party.data_packets = party.data_packets.saturating_add(row.data_packets);
        party.packets = party.packets.saturating_add(row.packets);
        let responses = row.response_network_lost.unwrap_or_default();
        party.lost = party
            .lost
            .saturating_add(row.network_lost)
            .saturating_add(responses);
        party.proven = party.proven.saturating_add(row.losses_proven);
        party.lost_behind = party.lost_behind.saturating_add(lost_behind(row));
        let stood_still = [row.time_timeout_ns, row.time_rnr_ns, row.time_paused_ns];
        let stood_still = stood_still.into_iter().flatten();
        party.stood_still_ns = stood_still.fold(party.stood_still_ns, u64::saturating_add);
        let lasted = row.last_time.since(row.first_time).0;
        party.lasted_ns = party.lasted_ns.saturating_add(lasted);
        party.coverage.add(Coverage::from_row(row));
        party.unmoved |= row.is_unmoved();
        let pair = (row.tap, row.source, row.destination);
        if is_disturbed(row) {
            party.disturbed = true;
            if self.disturbed.len() < MAX_HOSTS {
                self.disturbed.insert(pair);
            }
        }
    }

    /// The host of this hash.
    pub(super) fn host(&self, hash: u64) -> Option<Address> {
        self.hosts.get(&hash).copied()
    }

    /// The ends of a flow.
    pub(super) fn party(&self, tap: TapId, flow: FlowId) -> Option<&Party> {
        self.parties.get(*self.flows.get(&(tap, flow))?)
    }

    /// True if packets overtake each other, or come twice, on the way that a flow takes at a tap. Flows between the same two hosts share
    /// their paths.
    pub(super) fn is_way_disturbed(&self, tap: TapId, party: &Party) -> bool {
        party.disturbed || self.disturbed.contains(&(tap, party.source, party.destination))
    }

    /// A flow for people: its ends when they are known, else its id.
    pub(super) fn name(&self, tap: TapId, flow: FlowId) -> String {
        let ranks = in_brackets(self.ranks(tap, flow));
        match self.party(tap, flow) {
            Some(party) => format!("{party}{ranks}"),
            None => format!("flow {flow}{ranks}"),
        }
    }

    /// The ranks of a flow's sender and receiver.
    pub(super) fn ranks(&self, tap: TapId, flow: FlowId) -> Option<&RankEnd> {
        self.ranks.get(&(tap, flow))
    }

    /// All flows.
    pub(super) fn flows(&self) -> impl Iterator<Item = (TapId, FlowId, &Party)> {
        let all = self.parties.0.iter().flatten();
        all.map(|(tap, flow, party)| (*tap, *flow, party))
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {} QP {}", self.source, self.destination, self.qpn)
    }
}

/// The name of a row's flow.
pub(super) fn name_of(row: &FlowRow) -> String {
    format!(
        "{} > {} QP {}{}",
        row.source,
        row.destination,
        Qpn::new(row.destination_qpn),
        in_brackets(row.ranks().as_ref())
    )
}

/// Ranks behind the name of a flow: ` [rank 3 > rank 11, channel 2]`.
fn in_brackets(ranks: Option<&RankEnd>) -> String {
    ranks.map(|ranks| format!(" [{ranks}]")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::rows::flow_to;
    use super::*;

    #[test]
    fn each_of_many_flows_keeps_its_own_facts() {
        let rows = |range: core::ops::Range<u32>| {
            range.map(|n| FlowRow {
                flow_id: FlowId(n.into()),
                data_packets: n.into(),
                ..flow_to(1, 2, n)
            })
        };
        let mut directory = Directory::default();
        // Three pieces and a part; the first ones have a second epoch.
        for row in rows(0..3 * 4096 + 7).chain(rows(0..5000)) {
            directory.note(&row);
        }
        assert_eq!(directory.flows().count(), 3 * 4096 + 7);
        for (tap, flow, party) in directory.flows() {
            let epochs = if flow.0 < 5000 { 2 } else { 1 };
            let expected = (u64::from(party.qpn().value()), flow.0 * epochs);
            assert_eq!((flow.0, party.data_packets), expected);
            let found = directory.party(tap, flow).map(Party::qpn);
            assert_eq!(found, Some(party.qpn()));
        }
    }
}
