//! The table `timeline`: what a flow did in one bin of time.

use crate::table::table;
use crate::{FlowId, TapId, Time};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    TimelineRow, TimelineColumns, "timeline", "One flow, at one tap, in one bin of time in which it was active.";
    time: Time, "ns", "Start of the bin. A flow has one row for a bin. It has several, whose values add up, where stamps are out of order by more than 4 bins and 10 ms (by more than 1,024 narrow bins), or where the flow that a CNP slowed becomes known later than that.";
    flow_id: FlowId, "", "The flow.";
    tap: TapId, "", "The tap at which it was seen: `taps.tap`.";
    epoch: u32, "", "The flow's epoch: `flows.epoch`.";
    packets: u32, "packets", "RoCE packets of the flow: requests, responses and management datagrams. CNPs make no flow and are not among them: see cnp.";
    wire_bytes: u64, "bytes", "Their frames on the wire, without FCS.";
    payload_bytes: u64, "bytes", "Application data in them.";
    data_packets: u32, "packets", "Packets of operations that carry data: SEND and WRITE requests, READ responses, UD, UC.";
    not_ect: u32, "packets", "Data packets over IP whose sender did not offer ECN.";
    ect0: u32, "packets", "Data packets with ECT(0).";
    ect1: u32, "packets", "Data packets with ECT(1).";
    ce: u32, "packets", "Data packets marked Congestion Experienced.";
    cnp: Option<u32>, "packets", "Congestion notifications for this flow. Absent where none could be attributed to it: no other direction is known.";
    retransmitted_packets: u32, "packets", "Retransmitted request packets.";
    retransmitted_bytes: u64, "bytes", "Application data in retransmitted packets.";
    missing: u64, "packets", "PSNs skipped when the flow's highest request PSN advanced.";
    late: u32, "packets", "Request packets that filled a hole outside of any retransmission run: reordering.";
    trimmed: u32, "packets", "Packets that came without their data: a switch whose queue was full had cut them.";
    lost_downstream: Option<u32>, "packets", "Packets captured here that the receiver NAKed: lost behind this tap. Absent: needs the other direction.";
    naks: u32, "packets", "NAKs in this flow's packets, RNR NAKs not counted.";
    rnr_naks: u32, "packets", "RNR NAKs in this flow's packets.";
    acks: u32, "packets", "ACKs in this flow's packets.";
    ack_rtt_p50_ns: Option<u64>, "ns", "Median time from a request to the response that covers it; in bins wider than 1 ms the median of those of their milliseconds. Absent: needs the other direction.";
    ack_rtt_max_ns: Option<u64>, "ns", "Longest time from a request to the response that covers it.";
    messages: u32, "messages", "Messages whose last packet was seen for the first time; for READ and atomics: requests.";
    message_time_p50_ns: Option<u64>, "ns", "Median time from a message's first packet to its acknowledgement; in bins wider than 1 ms the median of those of their milliseconds. Absent: needs the other direction.";
    message_time_max_ns: Option<u64>, "ns", "Longest time from a message's first packet to its acknowledgement.";
    inflight_bytes_max: Option<u64>, "bytes", "Maximum number of bytes sent and not yet acknowledged. Absent: needs the other direction.";
    senders_to_destination: u32, "hosts", "Maximum number of sources that sent application data to this flow's destination at the same time in this bin, at this tap: the incast degree. A source counts as sending for 200 us after a packet.";
    pause_ns: Option<u64>, "ns", "Time in this bin for which PFC of the flow's priority, or a pause of the whole link, stopped the transmissions that carry it past this tap. Absent: needs --link-rate, pause frames at this tap before the end of the bin, and link addresses that show their direction.";
    dcqcn_rate_bps: Option<u64>, "bit/s", "Mean rate that DCQCN allows the sender in this bin after its CNPs: an upper bound. Absent before the first CNP that was attributed to the flow on arrival, and without --link-rate.";
    trim_nacks: u32, "NACKs", "MRC: NACKs of trimmed packets in this flow's packets.";
    holes: u32, "PSNs", "MRC: PSNs that SACKs in this flow's packets show as missing below a later one, each once.";
    skips: u32, "SACKs", "MRC: SACKs in this flow's packets that ask to skip or avoid a path.";
    hop_queue_max: Option<u64>, "bytes", "Most bytes in a queue that switches wrote into this flow's packets. Absent: no packet with such a field (IFA).";
    hop_delay_max_ns: Option<u64>, "ns", "Longest time in a switch that switches wrote into this flow's packets. Absent: no packet with such a field (IFA, IOAM).";
    penalty: u32, "SACKs", "MRC: SACKs in this flow's packets that ask for a smaller window.";
}
