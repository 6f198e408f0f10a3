//! The tables `vantages` and `hops`: where taps stand, and what happened between two of them.

use std::borrow::Cow;

use roce_wire::Address;

use crate::table::table;
use crate::{FlowId, HostVantage, Nanos, TapId};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    VantageRow, VantageColumns, "vantages", "Where one tap stands as seen from one host.";
    tap: TapId, "", "The tap: `taps.tap`.";
    host: Address, "", "The host.";
    vantage: Option<HostVantage>, "", "near (at the host, or before the first place that marks or drops), far (at the other end), between. Absent: nothing shows it.";
    flows_sent: u64, "flows", "Flows that the host sends at this tap.";
    flows_received: u64, "flows", "Flows that the host receives at this tap.";
    evidence: Cow<'static, str>, "", "What shows it.";
}

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    HopRow, HopColumns, "hops", "One flow on its way from one tap to another that saw the same packets.";
    flow_id: FlowId, "", "The flow.";
    from_tap: TapId, "", "The tap that its packets pass first: `taps.tap`.";
    to_tap: TapId, "", "The tap that they pass later.";
    matched: u64, "packets", "Packets that both saw.";
    marked: u64, "packets", "Of these, without CE at the first and with CE at the second: marked between them.";
    lost: u64, "packets", "Transmissions that the first saw and the second should have seen, and did not, and whose PSN was sent again: lost between them. A packet that is sent and lost twice counts twice. Where the second tap missed packets itself, only the first ones of each run of packets sent again count.";
    first_lost_psn: Option<u32>, "", "The PSN of the first of these.";
    first_lost_time: Option<Nanos>, "ns", "When the first tap saw that.";
    not_captured: u64, "packets", "The same, but acknowledged and never sent again: the second tap did not record them.";
    delay_min_ns: Option<f64>, "ns", "Shortest time from the first to the second, clocks corrected; wrong by up to the clocks' uncertainty.";
    delay_p50_ns: Option<f64>, "ns", "Median of these times.";
    delay_p99_ns: Option<f64>, "ns", "99 % do not exceed it.";
    delay_max_ns: Option<f64>, "ns", "Longest of these times.";
}
