//! The table `flows`: who a flow is and all that was counted of it.

use std::borrow::Cow;

use roce_wire::Address;

use crate::table::table;
use crate::{FlowId, Nanos, TapId};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    FlowRow, FlowColumns, "flows", "One epoch of one direction of one queue pair's traffic, at one tap. Key: flow_id, tap, epoch.";
    flow_id: FlowId, "", "Stable hash of the flow's identity: the same in every run and at every tap.";
    tap: TapId, "", "The tap at which it was seen: `taps.tap`.";
    epoch: u32, "", "Counts the restarts of the flow's PSNs (reuse of a QPN, a jump, records lost by the capture).";
    source: Address, "", "Where its packets come from.";
    destination: Address, "", "Where they go.";
    destination_qpn: u32, "", "The queue pair that they are for.";
    source_qpn: Option<u32>, "", "UD: the queue pair that they come from (DETH). Absent for connected services, whose packets do not say.";
    service: &'static str, "", "Transport service: RC, UC, RD, UD, XRC, vendor.";
    carrier: &'static str, "", "How the first packet travelled: RoCEv2/IPv4, RoCEv2/IPv6, RoCEv1, InfiniBand.";
    vlan: Option<u16>, "", "VLAN identifier.";
    vni: Option<u32>, "", "Identifier of the innermost overlay network.";
    through: Cow<'static, str>, "", "What the packets were wrapped in, as seen on the first one.";
    peer_flow_id: Option<FlowId>, "", "The flow of the other direction. Absent: pairing is not known.";
    pairing: Option<&'static str>, "", "How the other direction was found: cm, host, sport, psn.";
    first_time: Nanos, "ns", "Capture time of the first packet.";
    last_time: Nanos, "ns", "Capture time of the last packet.";
    packets: u64, "packets", "RoCE packets of the flow, every kind.";
    wire_bytes: u64, "bytes", "Their frames on the wire, without FCS.";
    payload_bytes: u64, "bytes", "Application data in them.";
    data_packets: u64, "packets", "Packets of operations that carry data: SEND and WRITE requests, READ responses, UD, UC.";
    not_ect: u64, "packets", "Data packets over IP whose sender did not offer ECN.";
    ect0: u64, "packets", "Data packets with ECT(0).";
    ect1: u64, "packets", "Data packets with ECT(1).";
    ce: u64, "packets", "Data packets marked Congestion Experienced.";
    cnp: Option<u64>, "packets", "Congestion notifications that told this flow to slow down. Absent while nothing says which flow a CNP means.";
    acks: u64, "packets", "ACKs that the flow carried.";
    naks: u64, "packets", "NAKs that the flow carried, RNR NAKs not counted.";
    nak_sequence: u64, "packets", "NAKs for a PSN sequence error (syndrome 0x60).";
    nak_invalid_request: u64, "packets", "NAKs for an invalid request (0x61).";
    nak_remote_access: u64, "packets", "NAKs for a remote access error (0x62).";
    nak_remote_operational: u64, "packets", "NAKs for a remote operational error (0x63).";
    nak_other: u64, "packets", "NAKs with another code.";
    rnr_naks: u64, "packets", "RNR NAKs that the flow carried: no receive buffer was posted.";
    retransmitted_packets: u64, "packets", "Request packets sent again: captured before, or in a resend run.";
    retransmitted_bytes: u64, "bytes", "Application data in them.";
    resend_runs: u64, "runs", "Times that the sender fell back and sent again from an earlier PSN.";
    missing: u64, "packets", "PSNs jumped over when the highest request PSN advanced.";
    reordered: Option<u64>, "packets", "Missing ones that came late. Absent: needs the other direction.";
    network_lost: Option<u64>, "packets", "Missing ones that the network lost. Absent: needs the other direction.";
    capture_lost: Option<u64>, "packets", "Missing ones that the capture lost. Absent: needs the other direction.";
    ambiguous: Option<u64>, "packets", "Missing ones in a go-back-N run that had begun earlier. Absent: needs the other direction.";
    unresolved: Option<u64>, "packets", "Missing ones of which nothing more was seen. Absent: needs the other direction.";
    lost_downstream: Option<u64>, "packets", "Packets seen here that the receiver asked for again. Absent: needs the other direction.";
    late: u64, "packets", "Request packets that filled a hole outside of any resend run: reordering.";
    stale: u64, "packets", "Request packets 2^22 or more PSNs behind the highest; of UC, all behind it that fill no hole.";
    response_missing: u64, "packets", "READ responses missing inside a response message; a lower bound at its borders.";
    messages: u64, "messages", "Messages whose last packet was seen for the first time; for READ and atomics: requests.";
    message_bytes_min: Option<u64>, "bytes", "Smallest message whose length is known.";
    message_bytes_p50: Option<u64>, "bytes", "Median message.";
    message_bytes_p90: Option<u64>, "bytes", "Message length that 90 % do not exceed.";
    message_bytes_p99: Option<u64>, "bytes", "Message length that 99 % do not exceed.";
    message_bytes_max: Option<u64>, "bytes", "Largest message.";
    message_bytes_stddev: Option<f64>, "bytes", "Standard deviation of the message lengths.";
    read_requests: u64, "packets", "READ requests.";
    atomics: u64, "packets", "CmpSwap and FetchAdd requests.";
    path_mtu: Option<u32>, "bytes", "Path MTU, learned from the flow's own First and Middle packets or READ requests.";
    recovery: Option<&'static str>, "", "How the sender recovers: go_back_n, selective. Absent: unknown.";
    dscp: Option<u8>, "", "DSCP of the most packets. Absent without an IP header.";
    dscp_values: u32, "", "Distinct DSCPs of its data packets.";
    pcp: Option<u8>, "", "802.1Q priority of the first tagged packet.";
    source_ports: u32, "", "Distinct UDP source ports, counted up to 8.";
    multipath: bool, "", "More than a few UDP source ports at once: the sender sprays.";
    first_psn: Option<u32>, "", "PSN of the first request packet.";
    last_psn: Option<u32>, "", "Highest request PSN.";
    icrc_checked: u64, "packets", "Packets captured whole whose ICRC was checked.";
    icrc_bad: u64, "packets", "Of these, with a wrong ICRC.";
    evicted: bool, "", "The row was closed early because more flows were live than --max-flows allows.";
}
