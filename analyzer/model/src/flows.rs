//! The table `flows`: who a flow is and all that was counted of it.

use std::borrow::Cow;

use roce_wire::{Address, Qpn, Service};

use crate::table::table;
use crate::{FlowId, FlowKey, TapId, Time, Vantage};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    FlowRow, FlowColumns, "flows", "One epoch of one direction of one queue pair's traffic, at one tap. Key: flow_id, tap, epoch.";
    flow_id: FlowId, "", "Hash of the flow's addresses, queue pairs, service, VLAN and overlay: equal in every run and at every tap. 63 bits.";
    tap: TapId, "", "The tap at which it was seen: `taps.tap`.";
    epoch: u32, "", "Number of restarts of the flow's PSNs before this row (reuse of a QPN, a jump, records lost by the capture).";
    source: Address, "", "Address of the sender of its packets.";
    destination: Address, "", "Address of their receiver.";
    destination_qpn: u32, "", "Queue pair of the receiver.";
    source_qpn: Option<u32>, "", "UD: queue pair of the sender (DETH). Absent for connected services, whose packets do not carry it.";
    service: &'static str, "", "Transport service: RC, UC, RD, UD, XRC, MRC, vendor.";
    carrier: &'static str, "", "Protocol of the first packet: RoCEv2/IPv4, RoCEv2/IPv6, RoCEv1, InfiniBand.";
    vlan: Option<u16>, "", "VLAN identifier.";
    vni: Option<u32>, "", "Identifier of the innermost overlay network.";
    encapsulation: Cow<'static, str>, "", "Tags and tunnels around the first packet.";
    peer_flow_id: Option<FlowId>, "", "The flow of the other direction. Absent: pairing is not known.";
    pairing: Option<&'static str>, "", "Evidence that paired the two directions: cm, host, sport, psn, credits (data went to the addresses in them). Absent: pairing is not known.";
    pairing_matches: Option<u64>, "packets", "Responses that matched requests of only one flow before the two were paired. Absent where other evidence paired them.";
    pid: Option<u32>, "", "Process that owns the sending queue pair, else the receiving one, as its host or the pcapng file says. Absent: neither does.";
    comm: Option<Cow<'static, str>>, "", "Command name of that process.";
    cgroup: Option<u64>, "", "Cgroup of that process: the inode of its folder.";
    rank: Option<u32>, "", "Rank of the sender, from --nccl-log: the process that owns its queue pair. Absent: no log named it, or logs disagree.";
    peer_rank: Option<u32>, "", "Rank of the receiver, from --nccl-log. Absent: no log named it, or logs disagree.";
    communicator: Option<Cow<'static, str>>, "", "NCCL communicator of both ranks: its commId, or its size where the version prints none. Absent: not known.";
    channel: Option<u32>, "", "Channel of that communicator, by the order in which the log has connections and their queue pairs. Absent: not known.";
    vantage: Option<Vantage>, "", "Position of the tap on this flow's path: sender (before the first place that marked or dropped its packets), receiver (behind the last one), between. Absent: nothing shows it, or signs disagree.";
    counted: bool, "", "True if sums over flows include this row: false where another tap saw the same traffic, and more of it.";
    first_time: Time, "ns", "Capture time of the first packet.";
    last_time: Time, "ns", "Capture time of the last packet.";
    packets: u64, "packets", "RoCE packets of the flow: requests, responses and management datagrams. CNPs make no flow and are not among them: see cnp.";
    wire_bytes: u64, "bytes", "Their frames on the wire, without FCS.";
    payload_bytes: u64, "bytes", "Application data in them.";
    data_packets: u64, "packets", "Packets of operations that carry data: SEND and WRITE requests, READ responses, UD, UC.";
    not_ect: u64, "packets", "Data packets over IP whose sender did not offer ECN.";
    ect0: u64, "packets", "Data packets with ECT(0).";
    ect1: u64, "packets", "Data packets with ECT(1).";
    ce: u64, "packets", "Data packets marked Congestion Experienced.";
    cnp: Option<u64>, "packets", "Congestion notifications for this flow. Absent where none could be attributed to it: no other direction is known.";
    cnp_after_nak: Option<u64>, "packets", "CNPs (cnp) within 100 us after a NAK of the same connection: adapters send some then without any mark.";
    cnp_attribution: Option<&'static str>, "", "Evidence that attributed the CNPs to this flow: pairing, deth (UD names its source), sole (the only flow with CE in the 1 ms before). Absent without CNPs.";
    acks: u64, "packets", "ACKs that the flow carried.";
    duplicate_acks: Option<u64>, "packets", "ACKs for this flow's requests that acknowledged nothing new. Absent: needs the other direction.";
    naks: u64, "packets", "NAKs that the flow carried, RNR NAKs not counted.";
    nak_sequence: u64, "packets", "NAKs for a PSN sequence error (syndrome 0x60).";
    nak_invalid_request: u64, "packets", "NAKs for an invalid request (0x61).";
    nak_remote_access: u64, "packets", "NAKs for a remote access error (0x62).";
    nak_remote_operational: u64, "packets", "NAKs for a remote operational error (0x63).";
    nak_other: u64, "packets", "NAKs with another code.";
    rnr_naks: u64, "packets", "RNR NAKs that the flow carried: no receive buffer was posted.";
    retransmitted_packets: u64, "packets", "Retransmitted request packets: captured before, or in a retransmission run.";
    retransmitted_bytes: u64, "bytes", "Application data in retransmitted packets.";
    wasted_bytes: Option<u64>, "bytes", "Retransmitted application data that had arrived before: the waste of go-back-N. It is what a tap behind the losses, or the last tap of several, had captured before. Absent: nothing shows what arrived, as at a tap before the losses.";
    retransmission_runs: u64, "runs", "Retransmission runs: the sender fell back and retransmitted from an earlier PSN.";
    runs_nak: u64, "runs", "Retransmission runs that answer a sequence NAK.";
    runs_implied_nak: u64, "runs", "Retransmission runs of READ requests whose responses were missing.";
    runs_rnr: u64, "runs", "Retransmission runs after an RNR NAK's time.";
    runs_timeout: u64, "runs", "Retransmission runs after the sender's timeout.";
    runs_unknown: u64, "runs", "Retransmission runs that nothing captured explains.";
    runs_timeout_sure: u64, "runs", "A part of runs_timeout: all other causes together are fifty times less likely.";
    missing: u64, "packets", "PSNs skipped when the highest request PSN advanced.";
    reordered: u64, "packets", "Missing PSNs that a late packet filled.";
    network_lost: u64, "packets", "Packets that the network lost before this tap: missing packets, and retransmissions of them that were lost again.";
    network_lost_again: u64, "packets", "Retransmissions that were lost again, a part of network_lost. missing counts a PSN once.";
    trimmed: u64, "packets", "Packets that came without their data: a switch whose queue was full had cut them. Each is one transmission that was lost before this tap.";
    trim_dscp: Option<u8>, "", "DSCP of most of its trimmed packets. Absent: none was trimmed.";
    trim_dscp_values: u32, "", "Number of DSCPs of its trimmed packets. Several are those of several places, where switches are set up to tell these.";
    capture_lost: u64, "packets", "Missing packets that the capture lost: acknowledged and never retransmitted.";
    ambiguous: u64, "packets", "Missing packets inside a go-back-N run that began earlier: lost, or discarded by the receiver.";
    unresolved: u64, "packets", "Missing packets without evidence of their fate.";
    lost_downstream: Option<u64>, "packets", "Packets captured here that the receiver NAKed: lost behind this tap. Absent: needs the other direction.";
    overtaken_downstream: Option<u64>, "packets", "Captured packets that the receiver NAKed, or requested again, and then took before a retransmission could have come: overtaken behind this tap, not lost. Absent: needs the other direction.";
    late: u64, "packets", "Request packets that others overtook: each filled a hole outside of any retransmission run.";
    stale: u64, "packets", "Request packets behind the highest PSN that no sender retransmits: by 2^22 PSNs or more, more than 2^16 before the first one captured or before what is acknowledged; of UC, all that fill no hole.";
    reorder_depth_max: Option<u64>, "packets", "Maximum number of PSNs by which a late packet was behind the highest one seen. Absent: no packet was late.";
    reorder_time_max_ns: Option<u64>, "ns", "Longest time from the packet that skipped a PSN to the late packet that filled it. Absent: no packet was late.";
    duplicates_network: u64, "packets", "Packets that the network delivered more than once.";
    unknown_packets: u64, "packets", "Request packets behind the highest PSN without evidence whether they were late or retransmitted.";
    losses_proven: u64, "packets", "Losses that the packets prove, a part of network_lost: a NAK names the first of them, it was missing here until it was retransmitted, and no packet of the flow was late.";
    missing_forgotten: u64, "packets", "Missing PSNs that were forgotten before their fate was known, because too many holes were open at once: the flow's losses are unclear.";
    response_missing: u64, "packets", "READ responses missing inside a response message; a lower bound at its borders.";
    response_network_lost: Option<u64>, "packets", "Missing READ responses that were requested again: the network lost them. Absent: needs the other direction.";
    response_late: Option<u64>, "packets", "READ responses that came late: others overtook them. Absent: needs the other direction.";
    response_capture_lost: Option<u64>, "packets", "Missing READ responses that were never requested again: the capture lost them. Absent: needs the other direction.";
    messages: u64, "messages", "Messages whose last packet was seen for the first time; for READ and atomics: requests.";
    message_bytes_min: Option<u64>, "bytes", "Smallest message whose length is known.";
    message_bytes_p50: Option<u64>, "bytes", "Median length of the messages.";
    message_bytes_p90: Option<u64>, "bytes", "Message length that 90 % do not exceed.";
    message_bytes_p99: Option<u64>, "bytes", "Message length that 99 % do not exceed.";
    message_bytes_max: Option<u64>, "bytes", "Largest message.";
    message_bytes_stddev: Option<f64>, "bytes", "Standard deviation of the message lengths.";
    ack_rtt_kind: Option<&'static str>, "", "Meaning of the columns ack_rtt_* at this tap: rtt (sender side), turnaround (receiver side), partial (between). Absent: the vantage is unknown.";
    ack_rtt_count: u64, "", "Time from a request that asks for an acknowledgement to the response that covers it; first transmissions only: number of measurements.";
    ack_rtt_min_ns: Option<u64>, "ns", "Time from a request that asks for an acknowledgement to the response that covers it; first transmissions only: shortest.";
    ack_rtt_p50_ns: Option<u64>, "ns", "Time from a request that asks for an acknowledgement to the response that covers it; first transmissions only: median.";
    ack_rtt_p90_ns: Option<u64>, "ns", "Time from a request that asks for an acknowledgement to the response that covers it; first transmissions only: 90 % do not exceed it.";
    ack_rtt_p99_ns: Option<u64>, "ns", "Time from a request that asks for an acknowledgement to the response that covers it; first transmissions only: 99 % do not exceed it.";
    ack_rtt_max_ns: Option<u64>, "ns", "Time from a request that asks for an acknowledgement to the response that covers it; first transmissions only: longest.";
    ack_rtt_stddev_ns: Option<f64>, "ns", "Time from a request that asks for an acknowledgement to the response that covers it; first transmissions only: standard deviation.";
    message_time_count: u64, "", "Time of a SEND or WRITE, first packet to the acknowledgement of its last: number of measurements.";
    message_time_min_ns: Option<u64>, "ns", "Time of a SEND or WRITE, first packet to the acknowledgement of its last: shortest.";
    message_time_p50_ns: Option<u64>, "ns", "Time of a SEND or WRITE, first packet to the acknowledgement of its last: median.";
    message_time_p90_ns: Option<u64>, "ns", "Time of a SEND or WRITE, first packet to the acknowledgement of its last: 90 % do not exceed it.";
    message_time_p99_ns: Option<u64>, "ns", "Time of a SEND or WRITE, first packet to the acknowledgement of its last: 99 % do not exceed it.";
    message_time_max_ns: Option<u64>, "ns", "Time of a SEND or WRITE, first packet to the acknowledgement of its last: longest.";
    message_time_stddev_ns: Option<f64>, "ns", "Time of a SEND or WRITE, first packet to the acknowledgement of its last: standard deviation.";
    read_time_count: u64, "", "Time of a READ, request to last response: number of measurements.";
    read_time_min_ns: Option<u64>, "ns", "Time of a READ, request to last response: shortest.";
    read_time_p50_ns: Option<u64>, "ns", "Time of a READ, request to last response: median.";
    read_time_p90_ns: Option<u64>, "ns", "Time of a READ, request to last response: 90 % do not exceed it.";
    read_time_p99_ns: Option<u64>, "ns", "Time of a READ, request to last response: 99 % do not exceed it.";
    read_time_max_ns: Option<u64>, "ns", "Time of a READ, request to last response: longest.";
    read_time_stddev_ns: Option<f64>, "ns", "Time of a READ, request to last response: standard deviation.";
    atomic_time_count: u64, "", "Time of an atomic operation, request to response: number of measurements.";
    atomic_time_min_ns: Option<u64>, "ns", "Time of an atomic operation, request to response: shortest.";
    atomic_time_p50_ns: Option<u64>, "ns", "Time of an atomic operation, request to response: median.";
    atomic_time_p90_ns: Option<u64>, "ns", "Time of an atomic operation, request to response: 90 % do not exceed it.";
    atomic_time_p99_ns: Option<u64>, "ns", "Time of an atomic operation, request to response: 99 % do not exceed it.";
    atomic_time_max_ns: Option<u64>, "ns", "Time of an atomic operation, request to response: longest.";
    atomic_time_stddev_ns: Option<f64>, "ns", "Time of an atomic operation, request to response: standard deviation.";
    ce_to_cnp_count: u64, "", "Time from the first CE after a CNP of this flow to the next CNP: number of measurements.";
    ce_to_cnp_min_ns: Option<u64>, "ns", "Time from the first CE after a CNP of this flow to the next CNP: shortest.";
    ce_to_cnp_p50_ns: Option<u64>, "ns", "Time from the first CE after a CNP of this flow to the next CNP: median.";
    ce_to_cnp_p90_ns: Option<u64>, "ns", "Time from the first CE after a CNP of this flow to the next CNP: 90 % do not exceed it.";
    ce_to_cnp_p99_ns: Option<u64>, "ns", "Time from the first CE after a CNP of this flow to the next CNP: 99 % do not exceed it.";
    ce_to_cnp_max_ns: Option<u64>, "ns", "Time from the first CE after a CNP of this flow to the next CNP: longest.";
    ce_to_cnp_stddev_ns: Option<f64>, "ns", "Time from the first CE after a CNP of this flow to the next CNP: standard deviation.";
    cnp_interval_count: u64, "", "Time between two CNPs of this flow: number of measurements.";
    cnp_interval_min_ns: Option<u64>, "ns", "Time between two CNPs of this flow: shortest.";
    cnp_interval_p50_ns: Option<u64>, "ns", "Time between two CNPs of this flow: median.";
    cnp_interval_p90_ns: Option<u64>, "ns", "Time between two CNPs of this flow: 90 % do not exceed it.";
    cnp_interval_p99_ns: Option<u64>, "ns", "Time between two CNPs of this flow: 99 % do not exceed it.";
    cnp_interval_max_ns: Option<u64>, "ns", "Time between two CNPs of this flow: longest.";
    cnp_interval_stddev_ns: Option<f64>, "ns", "Time between two CNPs of this flow: standard deviation.";
    cnp_trains: u64, "", "Trains of CNPs (each after at least 300 us without one) whose reaction was measured.";
    cnp_reaction_p50: Option<f64>, "", "Payload rate in the window after a CNP train over the window before (100 us and 32 packets at least), of a flow that had more to send: median, within 6.25 %. Only where nothing before the tap marks or delays its packets.";
    cnp_reaction_max: Option<f64>, "", "Largest such ratio: the weakest reaction.";
    cnp_windows: u64, "windows", "Windows (200 us and 64 packets at least) with CNPs in which DCQCN, by whichever known parameter set allows most, allowed two thirds of the flow's mean rate or less, or of its rate in the window: they show a sender that ignores CNPs, or would.";
    cnp_windows_over: u64, "windows", "Windows of cnp_windows in which the flow sent 1.5 times what was allowed, or more. Evidence about the sender where the tap stands before the first congested place.";
    cnp_port_bps: Option<u64>, "bit/s", "Speed of the sender's port that these windows rest on: --link-rate, or the speed of Ethernet at which the flow's packets follow each other. Absent: 800 Gbit/s, which no port exceeds.";
    cnp_over_p50: Option<f64>, "", "Rate over the allowed rate in the windows of cnp_windows_over: median, within 6.25 %. Absent without such windows.";
    inflight_bytes_max: Option<u64>, "bytes", "Maximum number of bytes sent and not yet acknowledged. Absent: needs the other direction.";
    dcqcn_deviation: Option<f64>, "", "Mean of the measured rate (wire_bytes) over timeline.dcqcn_rate_bps, less 1, over the bins in which that is below the line rate and which lie between other bins with application data of the flow. Absent without such bins.";
    pause_ns: Option<u64>, "ns", "Time for which it was paused from its first bin to its last: the sum of timeline.pause_ns, and the pauses in bins between without packets, which have no rows. Absent where it is not known.";
    read_requests: u64, "packets", "READ requests.";
    reads_unanswered: u64, "packets", "READ requests that were retransmitted without any response before: the request or all of its responses were lost.";
    atomics: u64, "packets", "CmpSwap and FetchAdd requests.";
    path_mtu: Option<u32>, "bytes", "Path MTU, from the flow's own First and Middle packets or READ requests.";
    recovery: Option<&'static str>, "", "Recovery of the sender: go_back_n, selective. Absent: unknown.";
    dscp: Option<u8>, "", "Most frequent DSCP of its packets. Absent without an IP header.";
    dscp_values: u32, "", "Distinct DSCPs of its data packets.";
    pcp: Option<u8>, "", "802.1Q priority of the first tagged packet.";
    source_port: Option<u16>, "", "UDP source port of the first packet, by which ECMP chooses paths. Absent without UDP.";
    source_ports: u32, "", "Distinct UDP source ports, counted up to 8.";
    multipath: bool, "", "More than a few UDP source ports at once: the sender sprays.";
    first_psn: Option<u32>, "", "PSN of the first request packet.";
    last_psn: Option<u32>, "", "Highest request PSN.";
    icrc_checked: u64, "packets", "Packets captured whole whose ICRC was checked.";
    icrc_bad: u64, "packets", "Checked packets with a wrong ICRC.";
    last_request_time: Option<Time>, "ns", "Capture time of the last request packet. Absent: it sent none.";
    last_answer_time: Option<Time>, "ns", "Capture time of the last answer that acknowledged something new. Absent: none did, or the other direction is not known.";
    unanswered_time: Option<Time>, "ns", "Capture time of the oldest request that asked for an answer and had none at the end of the row. Absent: none waits, or the other direction is not known.";
    time_timeout_ns: Option<u64>, "ns", "Time for which its sender waited for a timer before it retransmitted: from its packet before to the first one of the runs of runs_timeout, in sum; none for runs of a flow of which most packets were not captured. The columns time_* divide the flow's time from first_time to last_time without rest. Where several states hold, the first of these columns counts. Absent: the flow sent no requests, or those of MRC.";
    time_rnr_ns: Option<u64>, "ns", "Time before retransmissions that RNR NAKs asked for: the receiver had no buffer.";
    time_paused_ns: Option<u64>, "ns", "Time for which pauses stopped it, as far as pause_ns can be known.";
    time_recovering_ns: Option<u64>, "ns", "Time in which it retransmitted, and waited less than a timer takes before that.";
    time_slowed_ns: Option<u64>, "ns", "Time after CNPs (or marks, where nothing shows its CNPs) in which it had something to send and sent below seven eighths of its best rate.";
    time_window_ns: Option<u64>, "ns", "Time in which it sent nothing and waited for answers, with as many bytes or messages outstanding as ever before.";
    time_network_ns: Option<u64>, "ns", "Time in which it sent nothing and an answer was due: the flow's least round trip was over. Only answers count that were later than this by more than their standard deviation, and by more than half of it.";
    time_sending_ns: Option<u64>, "ns", "Time in which it sent, or its packets were on their way for no longer than usual.";
    time_receiver_ns: Option<u64>, "ns", "Time in which nothing was outstanding, and the packets show that the receiver was awaited.";
    time_sender_ns: Option<u64>, "ns", "Time in which nothing was outstanding, and the packets show that the sender's program was awaited.";
    time_idle_ns: Option<u64>, "ns", "Time in which nothing was outstanding, and nothing shows who was awaited.";
    time_unknown_ns: Option<u64>, "ns", "Time that the capture does not show: around records that it lost, between messages where the other direction is not known, and silences within messages of 1 ms and more that nothing explains.";
    to_itself: bool, "", "True if its first frame was addressed to the MAC address that sent it.";
    evicted: bool, "", "True if the row was closed early because more flows were live than --max-flows allows.";
}

/// ECN-capable packets that are many: a switch that marks one in a hundred has marked some of them.
const MANY_ECT: u64 = 500;
/// Trains of notifications, or notifications in fewer trains, that tell whether a sender reacts.
const TRAINS_THAT_TELL: u64 = 3;
const NOTIFICATIONS_THAT_TELL: u64 = 20;
/// From this share of its rate on a sender did not react: one window's rate is uncertain by some percent.
const UNMOVED: f64 = 0.97;

impl FlowRow {
    /// Notifications of congestion: none of those that a NAK brought about.
    pub fn congestion_cnps(&self) -> u64 {
        let cnp = self.cnp.unwrap_or_default();
        cnp.saturating_sub(self.cnp_after_nak.unwrap_or_default())
    }

    /// True if notifications came while none of many packets was marked: all marking is behind the tap.
    pub fn is_marked_behind(&self) -> bool {
        self.ce == 0 && self.congestion_cnps() > 0 && self.ect0.saturating_add(self.ect1) >= MANY_ECT
    }

    /// True if its rate at the tap is the one at which its sender sends, as far as packets tell.
    pub fn shows_sent_rate(&self) -> bool {
        match self.vantage {
            Some(Vantage::Sender) => true,
            Some(Vantage::Receiver) | None => false,
            // Nothing before the tap holds its packets up.
            Some(Vantage::Between) => self.is_marked_behind() && self.network_lost == 0,
        }
    }

    /// True if its sender went on with its rate, whatever notifications came. A slow share of a port, and an increase as
    /// NVIDIA documents it, look alike.
    pub fn is_unmoved(&self) -> bool {
        let has_trains = self.cnp_trains >= TRAINS_THAT_TELL;
        let goes_on = match self.cnp_reaction_p50 {
            Some(reaction) if has_trains => reaction >= UNMOVED,
            // One train that goes on is measured at its begin alone.
            _ => self.congestion_cnps() >= NOTIFICATIONS_THAT_TELL && self.time_slowed_ns == Some(0),
        };
        goes_on && self.congestion_cnps() > 0 && self.shows_sent_rate()
    }

    /// The key of the flow; `None` if the `flow_id` of the row is not the hash of its other columns.
    pub fn key(&self) -> Option<FlowKey> {
        let named = Service::named(self.service)?;
        let key = FlowKey {
            source: self.source,
            destination: self.destination,
            destination_qpn: Qpn::new(self.destination_qpn),
            source_qpn: Qpn::new(self.source_qpn.unwrap_or_default()),
            vlan: self.vlan,
            vni: self.vni,
            service: named,
        };
        // A vendor's transport may have the opcodes of MRC.
        let others = [Service::Mrc].into_iter().filter(|_| named == Service::Vendor);
        let keys = [named]
            .into_iter()
            .chain(others)
            .map(|service| FlowKey { service, ..key });
        keys.into_iter().find(|key| key.id() == self.flow_id)
    }
}
