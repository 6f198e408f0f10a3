//! The tables `vantages`, `hops` and `hop_timeline`: the positions of taps, and losses, marks and delays between two of them.

use std::borrow::Cow;

use roce_wire::Address;

use crate::table::table;
use crate::{FlowId, HostVantage, TapId, Time};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    VantageRow, VantageColumns, "vantages", "Position of one tap as seen from one host.";
    tap: TapId, "", "The tap: `taps.tap`.";
    address: Address, "", "Address of the host.";
    vantage: Option<HostVantage>, "", "Position: near (at the host, or before the first place that marks or drops), far (at the other end), between. Absent: nothing shows it.";
    flows_sent: u64, "flows", "Flows that the host sends at this tap.";
    flows_received: u64, "flows", "Flows that the host receives at this tap.";
    evidence: Cow<'static, str>, "", "Evidence for the position.";
}

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    HopRow, HopColumns, "hops", "One flow on its path from one tap to another that saw the same packets.";
    flow_id: FlowId, "", "The flow.";
    from_tap: TapId, "", "The tap that its packets pass first: `taps.tap`.";
    to_tap: TapId, "", "The tap that its packets pass later: `taps.tap`.";
    matched: u64, "packets", "Packets that both taps saw.";
    marked: u64, "packets", "Matched packets without CE at the first tap and with CE at the second: marked between them.";
    lost: u64, "packets", "Transmissions that the first tap saw, the second should have seen and did not: lost between them, because the PSN was retransmitted; of answers and unreliable services, which nobody repeats, because the second tap missed nothing else. A packet that is sent and lost twice counts twice. Where the second tap missed packets itself, only the first packets of each retransmission run count.";
    answers_lost: u64, "packets", "Packets of `lost` that are answers: ACKs, NAKs and responses of atomic operations.";
    first_lost_psn: Option<u32>, "", "PSN of the first lost transmission. Absent: none was lost.";
    first_lost_time: Option<Time>, "ns", "Time at which the first tap saw it. Absent: none was lost.";
    not_captured: u64, "packets", "Transmissions that the first tap saw and the second should have seen and did not, and that were acknowledged and never retransmitted: the second tap did not record them.";
    unresolved: u64, "packets", "Transmissions that the first tap saw and the second should have seen and did not, and of which nothing shows what became of them. `matched`, `lost`, `not_captured` and `unresolved` together are what the first tap saw while the second one recorded.";
    delay_min_ns: Option<f64>, "ns", "Shortest time from the first tap to the second, clocks corrected; wrong by up to the clocks' uncertainty. Absent: no packet was matched.";
    delay_p50_ns: Option<f64>, "ns", "Median time from the first tap to the second. Absent: no packet was matched.";
    delay_p99_ns: Option<f64>, "ns", "Time from the first tap to the second that 99 % do not exceed. Absent: no packet was matched.";
    delay_max_ns: Option<f64>, "ns", "Longest time from the first tap to the second. Absent: no packet was matched.";
}

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    HopTimelineRow, HopTimelineColumns, "hop_timeline", "One flow between two taps in one bin of time: the bin in which its packets passed the first tap.";
    time: Time, "ns", "Start of the bin.";
    flow_id: FlowId, "", "The flow: `hops.flow_id`.";
    from_tap: TapId, "", "The tap that its packets pass first: `taps.tap`.";
    to_tap: TapId, "", "The tap that its packets pass later: `taps.tap`.";
    sent: u64, "packets", "Packets that passed the first tap in this bin and whose fate is known: arrived, lost, or not captured by the second tap.";
    arrived: u64, "packets", "Packets of these that the second tap saw, whenever that was.";
    lost: u64, "packets", "Packets of these that were lost between the taps, counted as in `hops.lost`.";
    marked: u64, "packets", "Packets of these that arrived, without CE at the first tap and with CE at the second: marked between them.";
    delay_min_ns: Option<f64>, "ns", "Shortest time from the first tap to the second, clocks corrected. Absent: no packet whose transmission is known arrived.";
    delay_mean_ns: Option<f64>, "ns", "Mean time from the first tap to the second. Absent: as above.";
    delay_max_ns: Option<f64>, "ns", "Longest time from the first tap to the second. Absent: as above.";
}
