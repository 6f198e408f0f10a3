//! Names of counters in drivers: one table from them to [`Counter`].
//!
//! Sources: Linux Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst (mlx5);
//! Documentation/ABI/stable/sysfs-class-infiniband (mlx4); drivers/infiniband/hw/bnxt_re/hw_counters.c (bnxt_re); drivers/infiniband/sw/rxe/rxe_hw_counters.c (rxe);
//! drivers/infiniband/hw/irdma/verbs.c (irdma); drivers/infiniband/hw/efa/efa_verbs.c (efa); drivers/infiniband/hw/hns/hns_roce_main.c (hns);
//! drivers/infiniband/hw/erdma/erdma_verbs.c (erdma); drivers/infiniband/hw/mana/counters.c (mana); drivers/infiniband/hw/ionic/ionic_hw_stats.c and
//! drivers/net/ethernet/pensando/ionic/ionic_stats.c (AMD Pensando and Pollara); drivers/net/ethernet/broadcom/bnxt/bnxt_ethtool.c (bnxt_en). The names of mlx4_en,
//! bnxt_en and ice were not verified on hardware: a name that does not occur maps nothing.

use std::borrow::Cow;

use roce_model::Counter;

/// Where a counter was read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CounterPlace {
    /// `ports/N/counters` of an RDMA device.
    Port,
    /// `hw_counters` of an RDMA device or of its port.
    Hardware,
    /// The statistics of a network interface (`ethtool -S`).
    Netdev,
}

/// Meaning of a driver's counter.
#[derive(Clone, PartialEq, Debug)]
pub struct MappedCounter {
    /// The quantity.
    pub counter: Counter,
    /// The priority in its name.
    pub priority: Option<u8>,
    /// The values of the counter's labels.
    pub details: Vec<Cow<'static, str>>,
    /// The driver's number times this is the value in base units.
    pub factor: f64,
    /// The width of the register in bits.
    pub bits: u8,
}

struct Rule {
    place: CounterPlace,
    /// The driver's name; `#` stands for a priority of 0 to 7.
    name: &'static str,
    counter: Counter,
    details: &'static [&'static str],
    factor: f64,
    bits: u8,
}

/// Microseconds in seconds.
const US: f64 = 1e-6;
/// Counters of data are in words of four bytes (IBTA 16.1.3.5, PortXmitData).
const WORDS: f64 = 4.0;
const PERCENT: f64 = 0.01;

macro_rules! rules {
    ($( $place:ident $name:literal => $counter:ident $([$($detail:literal),+])? $(* $factor:ident)? $(bits $bits:literal)?; )+) => {
        &[ $( Rule {
            place: CounterPlace::$place,
            name: $name,
            counter: Counter::$counter,
            details: &[$($($detail),+)?],
            factor: rules!(@factor $($factor)?),
            bits: rules!(@bits $($bits)?),
        }, )+ ]
    };
    (@factor) => { 1.0 };
    (@factor $factor:ident) => { $factor };
    (@bits) => { 64 };
    (@bits $bits:literal) => { $bits };
}

// mlx5's counters of queue counter sets have 32 bits (include/linux/mlx5/mlx5_ifc.h, query_q_counter_out), those of congestion 64.
const RULES: &[Rule] = rules! {
    Port "port_rcv_data" => PortReceivedBytes * WORDS;
    Port "port_xmit_data" => PortTransmittedBytes * WORDS;
    Port "port_rcv_packets" => PortReceivedPackets;
    Port "port_xmit_packets" => PortTransmittedPackets;
    Port "link_downed" => PhyLinkDowns;
    Port "link_error_recovery" => PhyLinkRecoveries;
    Port "symbol_error" => PhySymbolErrors;
    Port "port_rcv_errors" => PortReceiveErrors;
    Port "port_xmit_discards" => NetdevDiscards ["transmitted"];

    // mlx5
    Hardware "np_ecn_marked_roce_packets" => PortEcnMarkedPacketsReceived;
    Hardware "np_cnp_sent" => PortCnpSent;
    Hardware "rp_cnp_handled" => PortCnpHandled;
    Hardware "rp_cnp_ignored" => PortCnpIgnored;
    Hardware "rx_write_requests" => PortRequestsReceived ["write"] bits 32;
    Hardware "rx_read_requests" => PortRequestsReceived ["read"] bits 32;
    Hardware "rx_atomic_requests" => PortRequestsReceived ["atomic"] bits 32;
    Hardware "out_of_sequence" => PortOutOfSequencePackets bits 32;
    Hardware "packet_seq_err" => PortPacketSequenceErrors bits 32;
    Hardware "local_ack_timeout_err" => PortAckTimeouts bits 32;
    Hardware "req_transport_retries_exceeded" => PortRetriesExceeded bits 32;
    Hardware "req_rnr_retries_exceeded" => PortRnrRetriesExceeded bits 32;
    Hardware "rnr_nak_retry_err" => PortRnrNaksReceived bits 32;
    Hardware "out_of_buffer" => PortOutOfBufferDrops bits 32;
    Hardware "duplicate_request" => PortDuplicateRequests bits 32;
    Hardware "implied_nak_seq_err" => PortImpliedNakSequenceErrors bits 32;
    Hardware "roce_adp_retrans" => PortAdaptiveRetransmissions bits 32;
    Hardware "roce_adp_retrans_to" => PortAdaptiveRetransmissionTimeouts bits 32;
    Hardware "roce_slow_restart" => PortSlowRestarts bits 32;
    Hardware "roce_slow_restart_cnps" => PortSlowRestartCnps bits 32;
    Hardware "rx_icrc_encapsulated" => PortIcrcErrors;
    Hardware "req_cqe_error" => PortCompletionErrors ["requester", "error"] bits 32;
    Hardware "req_cqe_flush_error" => PortCompletionErrors ["requester", "flush"] bits 32;
    Hardware "resp_cqe_error" => PortCompletionErrors ["responder", "error"] bits 32;
    Hardware "resp_cqe_flush_error" => PortCompletionErrors ["responder", "flush"] bits 32;
    Hardware "req_remote_access_errors" => PortAccessErrors ["requester"] bits 32;
    Hardware "resp_remote_access_errors" => PortAccessErrors ["responder"] bits 32;

    // mlx4
    Hardware "rq_num_oos" => PortOutOfSequencePackets bits 32;
    Hardware "sq_num_oos" => PortPacketSequenceErrors bits 32;
    Hardware "sq_num_to" => PortAckTimeouts bits 32;
    Hardware "sq_num_tree" => PortRetriesExceeded bits 32;
    Hardware "sq_num_rree" => PortRnrRetriesExceeded bits 32;
    Hardware "sq_num_rnr" => PortRnrNaksReceived bits 32;
    Hardware "rq_num_rnr" => PortRnrNaksSent bits 32;
    Hardware "rq_num_dup" => PortDuplicateRequests bits 32;

    // mana
    Hardware "requester_timeout" => PortAckTimeouts;
    Hardware "requester_oos_nak" => PortPacketSequenceErrors;
    Hardware "requester_rnr_nak" => PortRnrNaksReceived;
    Hardware "requester_implicit_nak" => PortImpliedNakSequenceErrors;
    Hardware "requester_retries_exceeded" => PortRetriesExceeded;
    Hardware "requester_rnr_nak_retries_exceeded" => PortRnrRetriesExceeded;
    Hardware "responder_rnr_nak" => PortRnrNaksSent;
    Hardware "responder_oos" => PortOutOfSequencePackets;
    Hardware "responder_dup_request" => PortDuplicateRequests;
    Hardware "responder_rem_access_error" => PortAccessErrors ["responder"];
    Hardware "received_cnps" => PortCnpHandled;

    // bnxt_re
    Hardware "rx_bytes" => PortReceivedBytes;
    Hardware "tx_bytes" => PortTransmittedBytes;
    Hardware "rx_pkts" => PortReceivedPackets;
    Hardware "tx_pkts" => PortTransmittedPackets;
    Hardware "rx_ecn_marked_pkts" => PortEcnMarkedPacketsReceived;
    Hardware "tx_cnp_pkts" => PortCnpSent;
    Hardware "rx_cnp_pkts" => PortCnpHandled;
    Hardware "rx_write_req" => PortRequestsReceived ["write"];
    Hardware "rx_read_req" => PortRequestsReceived ["read"];
    Hardware "rx_atomic_req" => PortRequestsReceived ["atomic"];
    Hardware "rx_send_req" => PortRequestsReceived ["send"];
    Hardware "oos_drop_count" => PortOutOfSequencePackets;
    Hardware "seq_err_naks_rcvd" => PortPacketSequenceErrors;
    Hardware "to_retransmits" => PortAckTimeouts;
    Hardware "max_retry_exceeded" => PortRetriesExceeded;
    Hardware "rnr_naks_rcvd" => PortRnrNaksReceived;
    Hardware "rx_out_of_buffer" => PortOutOfBufferDrops;
    Hardware "dup_req" => PortDuplicateRequests;
    Hardware "missing_resp" => PortImpliedNakSequenceErrors;
    Hardware "remote_access_err" => PortAccessErrors ["responder"];
    Hardware "active_qps" => PortObjects ["qp"];
    Hardware "active_rc_qps" => PortObjects ["qp_rc"];
    Hardware "active_ud_qps" => PortObjects ["qp_ud"];
    Hardware "active_cqs" => PortObjects ["cq"];
    Hardware "active_mrs" => PortObjects ["mr"];
    Hardware "active_mws" => PortObjects ["mw"];
    Hardware "active_pds" => PortObjects ["pd"];
    Hardware "active_ahs" => PortObjects ["ah"];
    Hardware "active_srqs" => PortObjects ["srq"];
    Hardware "watermark_qps" => PortObjects ["qp_most"];
    Hardware "watermark_rc_qps" => PortObjects ["qp_rc_most"];
    Hardware "watermark_ud_qps" => PortObjects ["qp_ud_most"];
    Hardware "watermark_cqs" => PortObjects ["cq_most"];
    Hardware "watermark_mrs" => PortObjects ["mr_most"];
    Hardware "watermark_mws" => PortObjects ["mw_most"];
    Hardware "watermark_pds" => PortObjects ["pd_most"];
    Hardware "watermark_ahs" => PortObjects ["ah_most"];
    Hardware "watermark_srqs" => PortObjects ["srq_most"];

    Hardware "rx_roce_discards" => NetdevDiscards ["received"];
    Hardware "tx_roce_discards" => NetdevDiscards ["transmitted"];
    Hardware "rx_roce_errors" => PortReceiveErrors;

    // bnxt_re of Broadcom's own package (bnxt_re_stat_descs)
    Hardware "cnp_tx_pkts" => PortCnpSent;
    Hardware "cnp_rx_pkts" => PortCnpHandled;
    Hardware "rx_roce_discard_pkts" => NetdevDiscards ["received"];
    Hardware "tx_roce_discard_pkts" => NetdevDiscards ["transmitted"];
    Hardware "tx_roce_discards_pkts" => NetdevDiscards ["transmitted"];
    Hardware "rx_roce_error_pkts" => PortReceiveErrors;
    Hardware "res_oob_drop_count" => PortOutOfBufferDrops;
    Hardware "res_oos_drop_count" => PortOutOfSequencePackets;
    Hardware "dup_reqs" => PortDuplicateRequests;

    // bnxt_re since it takes mlx5's names where it can
    Hardware "np_cnp_pkts" => PortCnpSent;
    Hardware "rx_send_requests" => PortRequestsReceived ["send"];

    // irdma
    Hardware "RxECNMrkd" => PortEcnMarkedPacketsReceived;
    Hardware "cnpSent" => PortCnpSent;
    Hardware "cnpHandled" => PortCnpHandled;
    Hardware "cnpIgnored" => PortCnpIgnored;
    Hardware "InRdmaWrites" => PortRequestsReceived ["write"];
    Hardware "InRdmaReads" => PortRequestsReceived ["read"];
    Hardware "InRdmaSends" => PortRequestsReceived ["send"];

    Hardware "iwInRdmaWrites" => PortRequestsReceived ["write"];
    Hardware "iwInRdmaReads" => PortRequestsReceived ["read"];
    Hardware "iwInRdmaSends" => PortRequestsReceived ["send"];
    Hardware "RNR sent" => PortRnrNaksSent;
    Hardware "RNR received" => PortRnrNaksReceived;
    Hardware "Nak Sequence Error" => PortPacketSequenceErrors;
    Hardware "NakSequenceError" => PortPacketSequenceErrors;
    Hardware "RetransSegs" => PortRetransmittedPackets;

    // efa
    Hardware "rx_drops" => NetdevDiscards ["received"];
    Hardware "retrans_timeout_events" => PortAckTimeouts;
    Hardware "retrans_pkts" => PortRetransmittedPackets;
    Hardware "unresponsive_remote_events" => PortRetriesExceeded;

    // erdma: its limits of bandwidth and of packets a second
    Hardware "rx_packets_cnt" => PortReceivedPackets;
    Hardware "tx_packets_cnt" => PortTransmittedPackets;
    Hardware "rx_bytes_cnt" => PortReceivedBytes;
    Hardware "tx_bytes_cnt" => PortTransmittedBytes;
    Hardware "rx_bps_limit_drop_cnt" => NetdevDiscards ["received"];
    Hardware "rx_pps_limit_drop_cnt" => NetdevDiscards ["received"];
    Hardware "tx_bps_limit_drop_cnt" => NetdevDiscards ["transmitted"];
    Hardware "tx_pps_limit_drop_cnt" => NetdevDiscards ["transmitted"];

    // ionic
    Hardware "rx_rdma_ucast_bytes" => PortReceivedBytes;
    Hardware "tx_rdma_ucast_bytes" => PortTransmittedBytes;
    Hardware "rx_rdma_ucast_pkts" => PortReceivedPackets;
    Hardware "tx_rdma_ucast_pkts" => PortTransmittedPackets;
    Hardware "rx_rdma_ecn_pkts" => PortEcnMarkedPacketsReceived;
    Hardware "tx_rdma_cnp_pkts" => PortCnpSent;
    Hardware "rx_rdma_cnp_pkts" => PortCnpHandled;
    Hardware "tx_rdma_retx_pkts" => PortRetransmittedPackets;
    Hardware "tx_rdma_ack_timeout" => PortAckTimeouts;
    Hardware "rx_rdma_mtu_discard_pkts" => NetdevDiscards ["received"];
    Hardware "req_rx_pkt_seq_err" => PortPacketSequenceErrors;
    Hardware "req_rx_impl_nak_seq_err" => PortImpliedNakSequenceErrors;
    Hardware "req_rx_rnr_retry_err" => PortRnrNaksReceived;
    Hardware "req_rx_rmt_acc_err" => PortAccessErrors ["requester"];
    Hardware "req_rx_cqe_err" => PortCompletionErrors ["requester", "error"];
    Hardware "req_rx_cqe_flush" => PortCompletionErrors ["requester", "flush"];
    Hardware "req_tx_retry_excd_err" => PortRetriesExceeded;
    Hardware "resp_rx_outof_buf" => PortOutOfBufferDrops;
    Hardware "resp_rx_outouf_seq" => PortOutOfSequencePackets;
    Hardware "resp_rx_dup_request" => PortDuplicateRequests;
    Hardware "resp_rx_dup_requests" => PortDuplicateRequests;
    Hardware "resp_rx_cqe_err" => PortCompletionErrors ["responder", "error"];
    Hardware "resp_rx_cqe_flush" => PortCompletionErrors ["responder", "flush"];
    Hardware "resp_tx_rmt_acc_err" => PortAccessErrors ["responder"];
    Hardware "resp_tx_rnr_retry_err" => PortRnrNaksSent;

    // hns
    Hardware "rx_pkt" => PortReceivedPackets;
    Hardware "tx_pkt" => PortTransmittedPackets;
    Hardware "rx_err_pkt" => PortReceiveErrors;
    Hardware "rx_cnp_pkt" => PortCnpHandled;
    Hardware "tx_cnp_pkt" => PortCnpSent;

    // rxe (Soft-RoCE)
    Hardware "rcvd_pkts" => PortReceivedPackets;
    Hardware "sent_pkts" => PortTransmittedPackets;
    Hardware "rdma_recvs" => PortRequestsReceived ["send"];
    Hardware "out_of_seq_request" => PortOutOfSequencePackets;
    Hardware "rcvd_seq_err" => PortPacketSequenceErrors;
    Hardware "completer_retry_err" => PortAckTimeouts;
    Hardware "retry_exceeded_err" => PortRetriesExceeded;
    Hardware "rcvd_rnr_err" => PortRnrNaksReceived;
    Hardware "send_rnr_err" => PortRnrNaksSent;
    Hardware "send_err" => PortCompletionErrors ["requester", "error"];
    Hardware "link_downed" => PhyLinkDowns;

    // mlx5_core
    Netdev "rx_prio#_pause" => PfcReceivedFrames;
    Netdev "tx_prio#_pause" => PfcTransmittedFrames;
    Netdev "rx_prio#_pause_duration" => PfcReceivePausedSeconds * US;
    Netdev "tx_prio#_pause_duration" => PfcTransmitPausedSeconds * US;
    Netdev "rx_prio#_pause_transition" => PfcTransitions;
    Netdev "rx_global_pause" => PauseReceivedFrames;
    Netdev "tx_global_pause" => PauseTransmittedFrames;
    Netdev "rx_global_pause_duration" => PauseReceivePausedSeconds * US;
    Netdev "tx_global_pause_duration" => PauseTransmitPausedSeconds * US;
    Netdev "rx_global_pause_transition" => PauseTransitions;
    Netdev "rx_pause_ctrl_phy" => PauseControlReceivedFrames;
    Netdev "tx_pause_ctrl_phy" => PauseControlTransmittedFrames;
    Netdev "tx_pause_storm_warning_events" => PauseStormEvents ["warning"];
    Netdev "tx_pause_storm_error_events" => PauseStormEvents ["error"];
    Netdev "rx_prio#_bytes" => PriorityReceivedBytes;
    Netdev "tx_prio#_bytes" => PriorityTransmittedBytes;
    Netdev "rx_prio#_packets" => PriorityReceivedPackets;
    Netdev "tx_prio#_packets" => PriorityTransmittedPackets;
    Netdev "rx_prio#_buf_discard" => PriorityDiscards ["buffer"];
    Netdev "rx_prio#_cong_discard" => PriorityDiscards ["congestion"];
    Netdev "rx_prio#_discards" => PriorityDiscards ["all"];
    Netdev "rx_prio#_marked" => PriorityEcnMarkedPackets;
    Netdev "rx_discards_phy" => NetdevDiscards ["received"];
    Netdev "tx_discards_phy" => NetdevDiscards ["transmitted"];
    Netdev "rx_out_of_buffer" => NetdevOutOfBuffer;
    Netdev "rx_vport_rdma_unicast_bytes" => RdmaReceivedBytes ["unicast"];
    Netdev "rx_vport_rdma_multicast_bytes" => RdmaReceivedBytes ["multicast"];
    Netdev "tx_vport_rdma_unicast_bytes" => RdmaTransmittedBytes ["unicast"];
    Netdev "tx_vport_rdma_multicast_bytes" => RdmaTransmittedBytes ["multicast"];
    Netdev "rx_vport_rdma_unicast_packets" => RdmaReceivedPackets ["unicast"];
    Netdev "rx_vport_rdma_multicast_packets" => RdmaReceivedPackets ["multicast"];
    Netdev "tx_vport_rdma_unicast_packets" => RdmaTransmittedPackets ["unicast"];
    Netdev "tx_vport_rdma_multicast_packets" => RdmaTransmittedPackets ["multicast"];
    Netdev "rx_crc_errors_phy" => PhyCrcErrors;
    Netdev "rx_pcs_symbol_err_phy" => PhySymbolErrors;
    Netdev "rx_corrected_bits_phy" => PhyCorrectedBits;
    Netdev "rx_bits_phy" => PhyReceivedBits;
    Netdev "link_down_events_phy" => PhyLinkDowns;
    Netdev "outbound_pci_stalled_rd" => PcieStalledRatio ["read"] * PERCENT;
    Netdev "outbound_pci_stalled_wr" => PcieStalledRatio ["write"] * PERCENT;
    Netdev "outbound_pci_stalled_rd_events" => PcieStalledSeconds ["read"];
    Netdev "outbound_pci_stalled_wr_events" => PcieStalledSeconds ["write"];

    // mlx4_en
    Netdev "rx_pause_prio_#" => PfcReceivedFrames;
    Netdev "tx_pause_prio_#" => PfcTransmittedFrames;
    Netdev "rx_pause_duration_prio_#" => PfcReceivePausedSeconds * US;
    Netdev "tx_pause_duration_prio_#" => PfcTransmitPausedSeconds * US;
    Netdev "rx_pause_transition_prio_#" => PfcTransitions;
    Netdev "rx_pause" => PauseReceivedFrames;
    Netdev "tx_pause" => PauseTransmittedFrames;
    Netdev "rx_pause_duration" => PauseReceivePausedSeconds * US;
    Netdev "tx_pause_duration" => PauseTransmitPausedSeconds * US;
    Netdev "rx_pause_transition" => PauseTransitions;
    Netdev "rx_prio_#_bytes" => PriorityReceivedBytes;
    Netdev "tx_prio_#_bytes" => PriorityTransmittedBytes;
    Netdev "rx_prio_#_packets" => PriorityReceivedPackets;
    Netdev "tx_prio_#_packets" => PriorityTransmittedPackets;
    Netdev "rx_fifo_errors" => NetdevDiscards ["received"];
    Netdev "rx_crc_errors" => PhyCrcErrors;

    // bnxt_en
    Netdev "rx_pfc_ena_frames_pri#" => PfcReceivedFrames;
    Netdev "tx_pfc_ena_frames_pri#" => PfcTransmittedFrames;
    Netdev "pfc_pri#_rx_duration_us" => PfcReceivePausedSeconds * US;
    Netdev "pfc_pri#_tx_duration_us" => PfcTransmitPausedSeconds * US;
    Netdev "pfc_pri#_rx_transitions" => PfcTransitions;
    Netdev "rx_pause_frames" => PauseReceivedFrames;
    Netdev "tx_pause_frames" => PauseTransmittedFrames;
    Netdev "rx_mac_ctrl_frames" => PauseControlReceivedFrames;
    Netdev "rx_bytes_pri#" => PriorityReceivedBytes;
    Netdev "tx_bytes_pri#" => PriorityTransmittedBytes;
    Netdev "rx_packets_pri#" => PriorityReceivedPackets;
    Netdev "tx_packets_pri#" => PriorityTransmittedPackets;
    // Made of the counters of its queues (`of_classes`).
    Netdev "rx_discard_packets_pri#" => PriorityDiscards ["all"];
    Netdev "rx_discard_packets_cos" => NetdevDiscards ["received"];
    Netdev "tx_discard_packets_cos" => NetdevDiscards ["transmitted"];
    Netdev "rx_total_discard_pkts" => NetdevDiscards ["received"];
    Netdev "rx_stat_discard" => NetdevDiscards ["received"];
    Netdev "tx_stat_discard" => NetdevDiscards ["transmitted"];
    Netdev "tx_total_discard_pkts" => NetdevDiscards ["transmitted"];
    Netdev "rx_fcs_err_frames" => PhyCrcErrors;
    Netdev "rx_corrected_bits" => PhyCorrectedBits;

    // ice
    Netdev "rx_priority_#_xoff.nic" => PfcReceivedFrames;
    Netdev "tx_priority_#_xoff.nic" => PfcTransmittedFrames;
    Netdev "rx_priority_#_xon.nic" => PfcTransitions;
    Netdev "link_xoff_rx.nic" => PauseReceivedFrames;
    Netdev "link_xoff_tx.nic" => PauseTransmittedFrames;
    Netdev "link_xon_rx.nic" => PauseTransitions;
    Netdev "rx_dropped.nic" => NetdevDiscards ["received"];
    Netdev "rx_crc_errors.nic" => PhyCrcErrors;

    // hns3 (drivers/net/ethernet/hisilicon/hns3/hns3pf/hclge_main.c, g_mac_stats_string); the unit of its xoff times is not documented
    Netdev "mac_rx_pfc_pri#_pkt_num" => PfcReceivedFrames;
    Netdev "mac_tx_pfc_pri#_pkt_num" => PfcTransmittedFrames;
    Netdev "mac_rx_mac_pause_num" => PauseReceivedFrames;
    Netdev "mac_tx_mac_pause_num" => PauseTransmittedFrames;
    Netdev "mac_rx_fcs_err_pkt_num" => PhyCrcErrors;

    // ionic (its RDMA counters are above)
    Netdev "frames_rx_pri_#" => PriorityReceivedPackets;
    Netdev "frames_tx_pri_#" => PriorityTransmittedPackets;
    Netdev "rx_pripause_#_1us_count" => PfcReceivePausedSeconds * US;
    Netdev "tx_pripause_#_1us_count" => PfcTransmitPausedSeconds * US;
    Netdev "rx_pause_1us_count" => PauseReceivePausedSeconds * US;
    Netdev "tx_pause_1us_count" => PauseTransmitPausedSeconds * US;
    Netdev "frames_rx_pause" => PauseReceivedFrames;
    Netdev "frames_tx_pause" => PauseTransmittedFrames;
    Netdev "frames_rx_pripause" => PfcReceivedFrames;
    Netdev "frames_tx_pripause" => PfcTransmittedFrames;
    Netdev "frames_rx_bad_fcs" => PhyCrcErrors;
    Netdev "frames_rx_dropped" => NetdevDiscards ["received"];
    Netdev "hw_rx_dropped" => NetdevDiscards ["received"];
    Netdev "hw_tx_dropped" => NetdevDiscards ["transmitted"];

    // ixgbe
    Netdev "rx_flow_control_xoff" => PauseReceivedFrames;
    Netdev "tx_flow_control_xoff" => PauseTransmittedFrames;
};

/// Parts of the names of statistics that are kept although they have no common name.
const KEPT: [&str; 10] = [
    "pause",
    "pfc",
    "discard",
    "drop",
    "out_of_buffer",
    "ecn",
    "cnp",
    "err",
    "stall",
    "rdma",
];

/// The quantity that a driver's name stands for; `None` where it is of no interest: a setting, or one queue's share of a sum.
///
/// Blanks around the name do not count: mlx5 of some 5.x kernels has one at the end of `tx_pause_storm_warning_events`.
pub fn mapped(place: CounterPlace, name: &str) -> Option<MappedCounter> {
    let name = name.trim();
    for rule in RULES.iter().filter(|rule| rule.place == place) {
        let priority = match fit(rule.name, name) {
            Fit::No => continue,
            Fit::Whole => None,
            Fit::Priority(priority) => Some(priority),
        };
        return Some(MappedCounter {
            counter: rule.counter,
            priority,
            details: rule.details.iter().map(|detail| Cow::Borrowed(*detail)).collect(),
            factor: rule.factor,
            bits: rule.bits,
        });
    }
    let counter = match place {
        CounterPlace::Port | CounterPlace::Hardware if name == "lifespan" => return None,
        CounterPlace::Port | CounterPlace::Hardware => Counter::PortHwCounter,
        CounterPlace::Netdev if is_of_one_queue(name) || !KEPT.iter().any(|part| name.contains(part)) => {
            return None;
        }
        CounterPlace::Netdev => Counter::NetdevStatistic,
    };
    Some(MappedCounter {
        counter,
        priority: None,
        details: vec![Cow::Owned(name.to_owned())],
        factor: 1.0,
        bits: 64,
    })
}

/// The quantity that a name of an interface's statistic stands for, if the map has it; case, `_` and blanks do not count.
///
/// ESXi's drivers write the names of the table in several ways: `rxPauseCtrlPhy` is `rx_pause_ctrl_phy`.
pub fn mapped_loosely(name: &str) -> Option<MappedCounter> {
    let plain = |name: &str| -> String {
        let kept = name
            .chars()
            .filter(|glyph| *glyph != '_' && !glyph.is_whitespace());
        kept.map(|glyph| glyph.to_ascii_lowercase()).collect()
    };
    let name = plain(name);
    let rules = RULES.iter().filter(|rule| rule.place == CounterPlace::Netdev);
    rules.into_iter().find_map(|rule| {
        let priority = match fit(&plain(rule.name), &name) {
            Fit::No => return None,
            Fit::Whole => None,
            Fit::Priority(priority) => Some(priority),
        };
        Some(MappedCounter {
            counter: rule.counter,
            priority,
            details: rule.details.iter().map(|detail| Cow::Borrowed(*detail)).collect(),
            factor: rule.factor,
            bits: rule.bits,
        })
    })
}

/// How a driver's name fits a rule's.
#[derive(PartialEq, Eq)]
enum Fit {
    No,
    Whole,
    Priority(u8),
}

fn fit(pattern: &str, name: &str) -> Fit {
    let Some((before, after)) = pattern.split_once('#') else {
        return if pattern == name { Fit::Whole } else { Fit::No };
    };
    let digit = name
        .strip_prefix(before)
        .and_then(|rest| rest.strip_suffix(after));
    match digit.map(str::as_bytes) {
        Some([digit @ b'0'..=b'7']) => Fit::Priority(digit - b'0'),
        _ => Fit::No,
    }
}

/// Counters that follow from bnxt_en's counters of queues of classes (`rx_discard_packets_cos4`): their sums, and of a queue whose priority
/// is known, the same under the name of the priority.
///
/// The driver makes the counters of a priority from those of its queue (`pri2cos_idx` in bnxt_ethtool.c): equal packets and bytes name the
/// priority. A queue that several priorities share has none.
pub fn of_classes(statistics: &[(&str, u64)]) -> Vec<(String, u64)> {
    const RECEIVED: &str = "rx_discard_packets_cos";
    let value = |name: String| {
        let found = statistics.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| *value)
    };
    let mut all = Vec::new();
    for sum in [RECEIVED, "tx_discard_packets_cos"] {
        let queues = (0..8).filter_map(|queue| value(format!("{sum}{queue}")));
        if let Some(count) = queues.reduce(u64::saturating_add) {
            all.push((sum.to_owned(), count));
        }
    }
    for queue in 0..8 {
        let Some(discards) = value(format!("{RECEIVED}{queue}")) else {
            continue;
        };
        let carried = |of: &str| {
            let numbers = ["rx_packets", "rx_bytes", "tx_packets", "tx_bytes"];
            let numbers = numbers.map(|name| value(format!("{name}_{of}")).unwrap_or(0));
            (numbers != [0; 4]).then_some(numbers)
        };
        let Some(numbers) = carried(&format!("cos{queue}")) else {
            continue;
        };
        let mut priorities = (0..8).filter(|priority| carried(&format!("pri{priority}")) == Some(numbers));
        if let (Some(priority), None) = (priorities.next(), priorities.next()) {
            all.push((format!("rx_discard_packets_pri{priority}"), discards));
        }
    }
    all
}

/// True for statistics of one of many queues or channels: `rx12_packets`, `ch3_events`, `tx-4.bytes`, `[7]: rx_drops`.
fn is_of_one_queue(name: &str) -> bool {
    name.starts_with('[')
        || ["rx", "tx", "ch", "queue", "rx-", "tx-"].iter().any(|prefix| {
            name.strip_prefix(prefix)
                .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
        })
}

#[cfg(test)]
mod tests;
