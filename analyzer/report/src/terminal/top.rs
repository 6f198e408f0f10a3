//! The flows with the most data, and sums over all flows: what can be known from their rows as they close, in
//! little memory. How they are shown is left to `table`.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use roce_model::cast::whole;
use roce_model::{Address, FlowId, FlowRow, Service, Span, TapId, Time, TimeByState, Totals};

/// Flows that are kept at least, whatever number is shown: a flow's epochs close apart and are added up, so that
/// one whose first epoch was small can still become large.
const MIN_KEPT: usize = 2_048;

/// Causes of runs of retransmissions.
pub(super) const TRIGGERS: [&str; 5] = ["nak", "implied", "rnr", "timeout", "unknown"];

/// A flow at a tap, its epochs added up.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct TopFlow {
    pub(super) flow_id: FlowId,
    pub(super) tap: TapId,
    pub(super) source: Address,
    pub(super) destination: Address,
    pub(super) destination_qpn: u32,
    pub(super) service: &'static str,
    pub(super) vlan: Option<u16>,
    pub(super) dscp: Option<u8>,
    pub(super) peer: Option<FlowId>,
    pub(super) pairing: Option<&'static str>,
    /// Command and number of the process behind it.
    pub(super) process: Option<String>,
    /// Ranks of sender and receiver, and the channel: `3 > 11 ch 2`.
    pub(super) ranks: Option<String>,
    pub(super) epochs: u64,
    pub(super) first_time: Time,
    pub(super) last_time: Time,
    pub(super) packets: u64,
    pub(super) payload_bytes: u64,
    /// Data packets and those of them with CE, at the tap that saw the largest share of it: behind the place that marks.
    pub(super) marked: (u64, u64),
    /// Another tap saw more of it: it is here for its marks alone.
    again: bool,
    /// `None` where no CNP could be charged to it.
    pub(super) cnp: Option<u64>,
    pub(super) retransmitted_packets: u64,
    /// Runs of retransmissions by cause, as in [`TRIGGERS`].
    pub(super) runs: [u64; TRIGGERS.len()],
    pub(super) missing: u64,
    /// Packets that the network lost, before or behind the tap, READ responses too.
    pub(super) lost: u64,
    /// Missing packets that the capture lost.
    pub(super) not_captured: u64,
    /// Missing packets of unknown class.
    pub(super) unclear: u64,
    pub(super) late: u64,
    /// Kind of the ACK times, their median, and their number.
    pub(super) ack_time: Option<(Option<&'static str>, Span, u64)>,
    pub(super) acks: u64,
    pub(super) naks: u64,
    pub(super) rnr_naks: u64,
    pub(super) messages: u64,
}

impl TopFlow {
    fn from_row(row: &FlowRow) -> Self {
        Self {
            flow_id: row.flow_id,
            tap: row.tap,
            source: row.source,
            destination: row.destination,
            destination_qpn: row.destination_qpn,
            service: row.service,
            vlan: row.vlan,
            dscp: row.dscp,
            peer: row.peer_flow_id,
            pairing: row.pairing,
            process: row
                .pid
                .map(|pid| format!("{} {pid}", row.comm.as_deref().unwrap_or_default())),
            ranks: ranks(row),
            epochs: 1,
            first_time: row.first_time,
            last_time: row.last_time,
            packets: row.packets,
            payload_bytes: row.payload_bytes,
            marked: (row.data_packets, row.ce),
            again: !row.counted,
            cnp: row.cnp,
            retransmitted_packets: row.retransmitted_packets,
            runs: [
                row.runs_nak,
                row.runs_implied_nak,
                row.runs_rnr,
                row.runs_timeout,
                row.runs_unknown,
            ],
            missing: row.missing,
            lost: row.network_lost
                + row.lost_downstream.unwrap_or(0)
                + row.response_network_lost.unwrap_or(0),
            not_captured: row.capture_lost + row.response_capture_lost.unwrap_or(0),
            unclear: row.ambiguous + row.unresolved,
            late: row.late,
            ack_time: row
                .ack_rtt_p50_ns
                .map(|time| (row.ack_rtt_kind, Span(time), row.ack_rtt_count)),
            acks: row.acks,
            naks: row.naks,
            rnr_naks: row.rnr_naks,
            messages: row.messages,
        }
    }

    fn add(&mut self, other: &Self) {
        // The DSCP of the most packets, as far as the epochs tell.
        if other.packets > self.packets {
            self.dscp = other.dscp;
        }
        if self.peer.is_none() {
            (self.peer, self.pairing) = (other.peer, other.pairing);
        }
        if self.process.is_none() {
            self.process.clone_from(&other.process);
        }
        if self.ranks.is_none() {
            self.ranks.clone_from(&other.ranks);
        }
        // Medians do not add up: that of the most measurements is used for all.
        let measured = |flow: &Self| flow.ack_time.map_or(0, |(_, _, count)| count);
        if measured(other) > measured(self) {
            self.ack_time = other.ack_time;
        }
        self.cnp = match (self.cnp, other.cnp) {
            (Some(kept), Some(new)) => Some(kept + new),
            (kept, new) => kept.or(new),
        };
        for (kept, new) in self.runs.iter_mut().zip(other.runs) {
            *kept += new;
        }
        self.epochs += other.epochs;
        self.first_time = self.first_time.min(other.first_time);
        self.last_time = self.last_time.max(other.last_time);
        self.packets += other.packets;
        self.payload_bytes += other.payload_bytes;
        self.marked.0 += other.marked.0;
        self.marked.1 += other.marked.1;
        self.retransmitted_packets += other.retransmitted_packets;
        self.missing += other.missing;
        self.lost += other.lost;
        self.not_captured += other.not_captured;
        self.unclear += other.unclear;
        self.late += other.late;
        self.acks += other.acks;
        self.naks += other.naks;
        self.rnr_naks += other.rnr_naks;
        self.messages += other.messages;
    }
}

/// Ranks as a column has room for them: `3 > 11 ch 2`.
pub(super) fn ranks(row: &FlowRow) -> Option<String> {
    let ranks = row.ranks()?;
    let end = |rank: Option<u32>| rank.map_or_else(|| "?".to_owned(), |rank| rank.to_string());
    let channel = ranks.channel.map(|channel| format!(" ch {channel}"));
    Some(format!(
        "{} > {}{}",
        end(ranks.rank),
        end(ranks.peer_rank),
        channel.unwrap_or_default()
    ))
}

/// Counts of all flows together; of rows that count (another tap may have seen the same).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct FlowSums {
    pub(super) rows: u64,
    /// Rows of a flow's first epoch: about as many as there are flows.
    pub(super) first_epochs: u64,
    /// Rows of flows whose other direction is known.
    pub(super) paired: u64,
    /// Rows that do not count, of a flow's first epoch.
    pub(super) seen_again: u64,
    /// CE in these rows.
    pub(super) ce_again: u64,
    /// Counts that totals have, too, but for packets that belong to no flow.
    pub(super) counted: Totals,
    /// Where the time of flows with requests went, and how many they are.
    pub(super) times: TimeByState,
    pub(super) divided: u64,
    /// Number of data packets that are not ECN-capable.
    pub(super) not_ect: u64,
    pub(super) ect0: u64,
    pub(super) ect1: u64,
    pub(super) ce: u64,
    pub(super) nak_sequence: u64,
    pub(super) nak_invalid_request: u64,
    pub(super) nak_remote_access: u64,
    pub(super) nak_remote_operational: u64,
    pub(super) nak_other: u64,
    /// The flow with most CNPs that did not change its rate, at its sender's side.
    pub(super) unmoved: Option<UnmovedFlow>,
}

/// A flow that CNPs did not slow down.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct UnmovedFlow {
    pub(super) cnp: u64,
    pub(super) name: String,
    /// Its rate after trains of CNPs over that before: the median. `None`: no train was measured.
    pub(super) percent: Option<u64>,
    pub(super) payload_bytes: u64,
    pub(super) time: Span,
}

impl UnmovedFlow {
    fn from_row(row: &FlowRow) -> Option<Self> {
        row.is_unmoved().then(|| Self {
            cnp: row.congestion_cnps(),
            name: format!(
                "{} > {} QP {:#x}",
                row.source, row.destination, row.destination_qpn
            ),
            percent: row.cnp_reaction_p50.map(|reaction| whole(reaction * 100.0)),
            payload_bytes: row.payload_bytes,
            time: row.last_time.since(row.first_time),
        })
    }
}

impl FlowSums {
    /// Keeps the flow of a row if it is the one with most CNPs that did not react.
    fn look_for_unmoved(&mut self, row: &FlowRow) {
        let most = self.unmoved.as_ref().map_or(0, |unmoved| unmoved.cnp);
        if row.cnp.is_some_and(|cnp| cnp > most)
            && let Some(unmoved) = UnmovedFlow::from_row(row)
        {
            self.unmoved = Some(unmoved);
        }
    }

    /// Adds a row that counts.
    fn add(&mut self, row: &FlowRow) {
        self.rows += 1;
        self.first_epochs += u64::from(row.epoch == 0);
        // Both directions of MRC are in `mrc_connections`.
        let is_mrc = row.service == Service::Mrc.name();
        self.paired += u64::from(row.peer_flow_id.is_some() || is_mrc);
        add(&mut self.counted, row);
        self.not_ect += row.not_ect;
        self.ect0 += row.ect0;
        self.ect1 += row.ect1;
        self.ce += row.ce;
        self.nak_sequence += row.nak_sequence;
        self.nak_invalid_request += row.nak_invalid_request;
        self.nak_remote_access += row.nak_remote_access;
        self.nak_remote_operational += row.nak_remote_operational;
        self.nak_other += row.nak_other;
    }
}

/// Adds what a row says to what totals say.
fn add(totals: &mut Totals, row: &FlowRow) {
    for (sum, value) in [
        (&mut totals.wire_bytes, row.wire_bytes),
        (&mut totals.payload_bytes, row.payload_bytes),
        (&mut totals.data_packets, row.data_packets),
        (&mut totals.acks, row.acks),
        (&mut totals.naks, row.naks),
        (&mut totals.rnr_naks, row.rnr_naks),
        (&mut totals.retransmitted_packets, row.retransmitted_packets),
        (&mut totals.retransmitted_bytes, row.retransmitted_bytes),
        (&mut totals.wasted_bytes, row.wasted_bytes.unwrap_or(0)),
        (&mut totals.retransmission_runs, row.retransmission_runs),
        (&mut totals.runs_nak, row.runs_nak),
        (&mut totals.runs_implied_nak, row.runs_implied_nak),
        (&mut totals.runs_rnr, row.runs_rnr),
        (&mut totals.runs_timeout, row.runs_timeout),
        (&mut totals.runs_unknown, row.runs_unknown),
        (&mut totals.missing, row.missing),
        (&mut totals.reordered, row.reordered),
        (&mut totals.network_lost, row.network_lost),
        (&mut totals.network_lost_again, row.network_lost_again),
        (&mut totals.capture_lost, row.capture_lost),
        (&mut totals.ambiguous, row.ambiguous),
        (&mut totals.unresolved, row.unresolved),
        (&mut totals.late, row.late),
        (&mut totals.response_missing, row.response_missing),
        (&mut totals.lost_downstream, row.lost_downstream.unwrap_or(0)),
        (
            &mut totals.response_network_lost,
            row.response_network_lost.unwrap_or(0),
        ),
        (
            &mut totals.response_capture_lost,
            row.response_capture_lost.unwrap_or(0),
        ),
    ] {
        *sum += value;
    }
}

/// The totals of a run in which each packet counts once, also where several taps saw it: what flows say is taken from
/// the rows that count.
pub(super) fn once(totals: &Totals, sums: &FlowSums) -> Totals {
    if totals.seen_again == 0 {
        return totals.clone();
    }
    let counted = &sums.counted;
    Totals {
        roce_packets: totals.roce_packets.saturating_sub(totals.seen_again),
        wire_bytes: counted.wire_bytes,
        payload_bytes: counted.payload_bytes,
        data_packets: counted.data_packets,
        acks: counted.acks,
        naks: counted.naks,
        rnr_naks: counted.rnr_naks,
        retransmitted_packets: counted.retransmitted_packets,
        retransmitted_bytes: counted.retransmitted_bytes,
        wasted_bytes: counted.wasted_bytes,
        retransmission_runs: counted.retransmission_runs,
        runs_nak: counted.runs_nak,
        runs_implied_nak: counted.runs_implied_nak,
        runs_rnr: counted.runs_rnr,
        runs_timeout: counted.runs_timeout,
        runs_unknown: counted.runs_unknown,
        missing: counted.missing,
        reordered: counted.reordered,
        network_lost: counted.network_lost,
        network_lost_again: counted.network_lost_again,
        capture_lost: counted.capture_lost,
        ambiguous: counted.ambiguous,
        unresolved: counted.unresolved,
        late: counted.late,
        response_missing: counted.response_missing,
        lost_downstream: counted.lost_downstream,
        response_network_lost: counted.response_network_lost,
        response_capture_lost: counted.response_capture_lost,
        ..totals.clone()
    }
}

/// A flow at a tap, and whether another tap saw more of it.
type Key = (FlowId, TapId, bool);

/// Order of the flows: payload bytes, packets, then what tells flows apart.
type Rank = (Reverse<u64>, Reverse<u64>, Key);

fn key(flow: &TopFlow) -> Key {
    (flow.flow_id, flow.tap, flow.again)
}

fn rank(flow: &TopFlow) -> Rank {
    (Reverse(flow.payload_bytes), Reverse(flow.packets), key(flow))
}

/// Collects the rows of flows.
#[derive(Debug, Default)]
pub(super) struct TopFlows {
    /// Fewer than twice `kept`.
    flows: HashMap<Key, TopFlow>,
    kept: usize,
    pub(super) sums: FlowSums,
}

impl TopFlows {
    /// Keeps the `top` flows.
    pub(super) fn new(top: usize) -> Self {
        Self {
            kept: top.saturating_mul(4).max(MIN_KEPT),
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, row: &FlowRow) {
        let sums = &mut self.sums;
        sums.look_for_unmoved(row);
        if row.counted {
            sums.add(row);
            if let Some(times) = row.time_by_state() {
                sums.times.add_all(&times);
                sums.divided += u64::from(row.epoch == 0);
            }
        } else {
            sums.seen_again += u64::from(row.epoch == 0);
            sums.ce_again += row.ce;
        }
        let flow = TopFlow::from_row(row);
        match self.flows.entry(key(&flow)) {
            Entry::Occupied(mut earlier) => earlier.get_mut().add(&flow),
            Entry::Vacant(room) => {
                room.insert(flow);
                if self.flows.len() >= self.kept.saturating_mul(2) {
                    self.evict();
                }
            }
        }
    }

    /// Keeps the largest.
    fn evict(&mut self) {
        let mut ranks: Vec<Rank> = self.flows.values().map(rank).collect();
        let (_, &mut first_out, _) = ranks.select_nth_unstable(self.kept);
        self.flows.retain(|_, flow| rank(flow) < first_out);
    }

    /// The flows by data, the most first, then by packets; always in the same order.
    pub(super) fn sorted(&self) -> Vec<TopFlow> {
        let mut flows: Vec<TopFlow> = self.flows.values().cloned().collect();
        // Marks are set on the path: of a flow's taps the one that shows most of them gives the number
        // of marks.
        flows.sort_unstable_by_key(|flow| (flow.flow_id, flow.again, rank(flow)));
        flows.dedup_by(|again, flow| {
            let same = again.again && again.flow_id == flow.flow_id;
            if same && beyond(again.marked, flow.marked) {
                flow.marked = again.marked;
            }
            same
        });
        flows.retain(|flow| !flow.again);
        flows.sort_unstable_by_key(rank);
        flows
    }
}

/// True if the share of `a` (of how many, how many) is larger than that of `b`.
fn beyond(a: (u64, u64), b: (u64, u64)) -> bool {
    u128::from(a.1) * u128::from(b.0.max(1)) > u128::from(b.1) * u128::from(a.0.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(flow: u64, epoch: u32, payload_bytes: u64) -> FlowRow {
        FlowRow {
            flow_id: FlowId(flow),
            epoch,
            counted: true,
            payload_bytes,
            packets: payload_bytes / 10,
            first_time: Time(u64::from(epoch) * 100),
            last_time: Time(u64::from(epoch) * 100 + 50),
            ..FlowRow::default()
        }
    }

    #[test]
    fn epochs_add_up() {
        let mut top = TopFlows::new(10);
        for row in [row(1, 0, 100), row(2, 0, 150), row(1, 1, 70)] {
            top.add(&row);
        }
        let flows = top.sorted();
        assert_eq!(
            flows
                .iter()
                .map(|flow| (flow.flow_id.0, flow.payload_bytes))
                .collect::<Vec<_>>(),
            [(1, 170), (2, 150)]
        );
        assert_eq!(
            (flows[0].epochs, flows[0].first_time, flows[0].last_time),
            (2, Time(0), Time(150))
        );
        assert_eq!(
            (
                top.sums.rows,
                top.sums.first_epochs,
                top.sums.counted.payload_bytes
            ),
            (3, 2, 320)
        );
    }

    #[test]
    fn what_another_tap_saw_more_of_does_not_count() {
        let mut top = TopFlows::new(10);
        top.add(&row(1, 0, 100));
        top.add(&FlowRow {
            counted: false,
            tap: TapId(1),
            data_packets: 9,
            ce: 3,
            ..row(1, 0, 90)
        });
        let flow = &top.sorted()[0];
        assert_eq!(
            (flow.tap, flow.payload_bytes, flow.marked),
            (TapId(0), 100, (9, 3))
        );
        assert_eq!(top.sorted().len(), 1);
        assert_eq!(top.sums.ce_again, 3);
        assert_eq!(
            (top.sums.rows, top.sums.seen_again, top.sums.counted.payload_bytes),
            (1, 1, 100)
        );
        // Totals count every captured packet.
        let totals = Totals {
            frames: 20,
            roce_packets: 19,
            payload_bytes: 190,
            seen_again: 9,
            ..Totals::default()
        };
        let once = once(&totals, &top.sums);
        assert_eq!(
            (once.frames, once.roce_packets, once.payload_bytes),
            (20, 10, 100)
        );
    }

    #[test]
    fn losses_and_triggers_add_up_and_the_better_median_stays() {
        let mut top = TopFlows::new(10);
        top.add(&FlowRow {
            network_lost: 2,
            lost_downstream: Some(3),
            capture_lost: 1,
            runs_nak: 1,
            ack_rtt_p50_ns: Some(5),
            ack_rtt_count: 10,
            ..row(1, 0, 100)
        });
        top.add(&FlowRow {
            ambiguous: 4,
            unresolved: 1,
            response_network_lost: Some(1),
            runs_timeout: 2,
            cnp: Some(7),
            ack_rtt_p50_ns: Some(9),
            ack_rtt_count: 11,
            ack_rtt_kind: Some("rtt"),
            ..row(1, 1, 100)
        });
        let flow = &top.sorted()[0];
        assert_eq!((flow.lost, flow.not_captured, flow.unclear), (6, 1, 5));
        assert_eq!(flow.runs, [1, 0, 0, 2, 0]);
        assert_eq!(flow.cnp, Some(7));
        assert_eq!(flow.ack_time, Some((Some("rtt"), Span(9), 11)));
    }

    #[test]
    fn a_million_flows_leave_the_largest() {
        let mut top = TopFlows::new(3);
        for flow in 0..50_000 {
            top.add(&row(flow, 0, flow * 7 % 50_000));
        }
        assert!(top.flows.len() < 2 * MIN_KEPT);
        let largest: Vec<u64> = top
            .sorted()
            .iter()
            .take(3)
            .map(|flow| flow.payload_bytes)
            .collect();
        assert_eq!(largest, [49_999, 49_998, 49_997]);
    }
}
