//! The table `hops_inband`: telemetry that switches wrote into packets.

use std::borrow::Cow;

use crate::table::table;
use crate::{FlowId, TapId, Time};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    InbandHopRow, InbandHopColumns, "hops_inband", "One hop of a flow, as switches wrote it into its packets (IFA, IOAM), or one signal of them (CSIG), at one tap.";
    flow_id: FlowId, "", "The flow.";
    tap: TapId, "", "The tap at which it was seen: `taps.tap`.";
    kind: Cow<'static, str>, "", "Telemetry: IFA, CSIG, IOAM.";
    hop: Option<u32>, "", "Number of the hop from the sender, from 1. Absent: the telemetry has none.";
    device: Option<u32>, "", "Number of the device. Absent: likewise.";
    queue: Option<u32>, "", "Number of the queue. Absent: likewise.";
    ingress_port: Option<u32>, "", "Port by which the packets came. Absent: likewise.";
    egress_port: Option<u32>, "", "Port by which they left. Absent: likewise.";
    signal: Option<u32>, "", "CSIG: kind of signal: 0 least available bandwidth, 1 its share, 2 longest delay, 3 longest normalised queue. Absent: other telemetry, and wide tags.";
    locator: Option<u32>, "", "CSIG: where the signal is from. Absent: likewise.";
    packets: u64, "packets", "Packets with it, copies too.";
    copies: u64, "packets", "Those of them that were copies beside their packets.";
    congested: Option<u64>, "packets", "Packets whose queue the device calls congested. Absent: the telemetry has no such field.";
    queued_bytes_p50: Option<u64>, "bytes", "Bytes in the queue: median. Absent: likewise.";
    queued_bytes_max: Option<u64>, "bytes", "Most bytes in the queue.";
    queued_buffers_max: Option<u64>, "", "Most buffers of the queue in use; how long one is, nothing says. Absent: likewise.";
    residence_p50_ns: Option<u64>, "ns", "Time in the device: median. Absent: likewise.";
    residence_max_ns: Option<u64>, "ns", "Longest time in the device.";
    value_min: Option<u64>, "", "CSIG: lowest value, as the operator has set its meaning; of a wide tag its first four bytes. Absent: other telemetry.";
    value_max: Option<u64>, "", "CSIG: highest value.";
    worst_time: Option<Time>, "ns", "The packet with the most bytes in the queue, or the longest time in the device. Absent: the telemetry has neither.";
    worst_psn: Option<u32>, "", "Its PSN.";
    first_time: Time, "ns", "The first packet.";
    last_time: Time, "ns", "The last packet.";
}
