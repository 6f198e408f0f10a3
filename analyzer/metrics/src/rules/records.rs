//! Recorded series: rates, shares, and what is usual.

use super::rule::{Rule, record};

pub(super) const RECORDS: &[Rule] = &[
    record(
        "roce:port_ecn_marked_packets:rate5m",
        "sum by (cluster, job, instance, device, port) (rate(roce_port_ecn_marked_packets_received_total[5m]))",
        "Marked packets that a port receives, a second.",
    ),
    record(
        "roce:port_cnp_sent:rate5m",
        "sum by (cluster, job, instance, device, port) (rate(roce_port_cnp_sent_total[5m]))",
        "CNPs that a port sends, a second.",
    ),
    record(
        "roce:port_cnp_handled:rate5m",
        "sum by (cluster, job, instance, device, port) (rate(roce_port_cnp_handled_total[5m]))",
        "CNPs that slow a port's flows, a second.",
    ),
    record(
        "roce:port_ecn_marked:ratio_rate5m",
        "roce:port_ecn_marked_packets:rate5m\n  / (sum by (cluster, job, instance, device, port) (rate(roce_port_received_packets_total[5m])) > 0)",
        "Share of received packets with ECN's mark.",
    ),
    record(
        "roce:port_cnp_per_ecn_mark:ratio_rate5m",
        "roce:port_cnp_sent:rate5m / (roce:port_ecn_marked_packets:rate5m > 1)",
        "CNPs for each marked packet: 1 without coalescing, small with it, 0 where the receiver does not notify.",
    ),
    record(
        "roce:cluster_cnp_handled:ratio_rate5m",
        "sum by (cluster) (rate(roce_port_cnp_handled_total[5m]))\n  / (sum by (cluster) (rate(roce_port_cnp_sent_total[5m])) > 1)",
        "CNPs that slow flows, of those sent: over the whole cluster, because sender and receiver are different hosts.",
    ),
    record(
        "roce:pfc_receive_paused:ratio_rate5m",
        "sum by (cluster, job, instance, netdev, priority) (rate(roce_pfc_receive_paused_seconds_total[5m]))",
        "Share of time in which PFC kept a port from sending a priority.",
    ),
    record(
        "roce:pfc_transmit_paused:ratio_rate5m",
        "sum by (cluster, job, instance, netdev, priority) (rate(roce_pfc_transmit_paused_seconds_total[5m]))",
        "Share of time in which a port kept its neighbour from sending a priority.",
    ),
    record(
        "roce:port_utilization:ratio_rate5m",
        "sum by (cluster, job, instance, device, port) (rate(roce_port_transmitted_bytes_total[5m]))\n  / (sum by (cluster, job, instance, device, port) (roce_port_rate_bytes_per_second) > 0)",
        "Share of a port's rate that it sends.",
    ),
    record(
        "roce:switch_pfc_received:rate5m",
        "sum by (cluster, switch, interface, kind) (rate(roce_switch_pfc_received_frames_total[5m]))",
        "PFC frames that a switch port receives, a second.",
    ),
    record(
        "roce:switch_queue_ecn_marked:ratio_rate5m",
        "sum by (cluster, switch, interface, queue) (rate(roce_switch_queue_ecn_marked_packets_total[5m]))\n  / (sum by (cluster, switch, interface, queue) (rate(roce_switch_queue_transmitted_packets_total[5m])) > 0)",
        "Share of a queue's packets that the switch marks.",
    ),
    record(
        "roce:cluster_pfc:rate5m",
        "((((sum by (cluster) (rate(roce_pfc_received_frames_total[5m]))) or 0 * sum by (cluster) (rate(roce_pfc_transmitted_frames_total[5m]))) + ((sum by (cluster) (rate(roce_pfc_transmitted_frames_total[5m]))) or 0 * sum by (cluster) (rate(roce_pfc_received_frames_total[5m])))) > 0)\n  or ((((sum by (cluster) (rate(roce_hypervisor_pfc_received_frames_total[5m]))) or 0 * sum by (cluster) (rate(roce_hypervisor_pfc_transmitted_frames_total[5m]))) + ((sum by (cluster) (rate(roce_hypervisor_pfc_transmitted_frames_total[5m]))) or 0 * sum by (cluster) (rate(roce_hypervisor_pfc_received_frames_total[5m])))) > 0)\n  or ((((sum by (cluster) (rate(roce_switch_pfc_received_frames_total{kind=\"port\"}[5m]))) or 0 * sum by (cluster) (rate(roce_switch_pfc_transmitted_frames_total{kind=\"port\"}[5m]))) + ((sum by (cluster) (rate(roce_switch_pfc_transmitted_frames_total{kind=\"port\"}[5m]))) or 0 * sum by (cluster) (rate(roce_switch_pfc_received_frames_total{kind=\"port\"}[5m])))) > 0)\n  or ((((sum by (cluster) (rate(roce_switch_priority_pfc_received_frames_total{kind=\"port\"}[5m]))) or 0 * sum by (cluster) (rate(roce_switch_priority_pfc_transmitted_frames_total{kind=\"port\"}[5m]))) + ((sum by (cluster) (rate(roce_switch_priority_pfc_transmitted_frames_total{kind=\"port\"}[5m]))) or 0 * sum by (cluster) (rate(roce_switch_priority_pfc_received_frames_total{kind=\"port\"}[5m])))))",
        "PFC frames at hosts, a second; of virtual machines, which see none, those at their hypervisors, else at switch ports.",
    ),
    record(
        "roce:cluster_ecn_marked:rate5m",
        "(sum by (cluster) (rate(roce_port_ecn_marked_packets_received_total[5m])) > 0)\n  or sum by (cluster) (rate(roce_switch_queue_ecn_marked_packets_total[5m]))\n  or sum by (cluster) (rate(roce_port_ecn_marked_packets_received_total[5m]))",
        "Marked packets that hosts receive, a second; else those that switches mark.",
    ),
    record(
        "roce:cluster_pfc_per_ecn_mark:ratio_rate5m",
        "roce:cluster_pfc:rate5m / (roce:cluster_ecn_marked:rate5m > 1)",
        "PFC frames for each marked packet: how much of congestion control is left to PFC.",
    ),
    record(
        "roce:switch_port_transmit_utilization:ratio_rate5m",
        "sum by (cluster, switch, interface) (rate(roce_switch_interface_transmitted_bytes_total{kind=\"port\"}[5m]))\n  / (max by (cluster, switch, interface) (roce_switch_interface_rate_bytes_per_second{kind=\"port\"}) > 0)",
        "Share of a switch port's rate that it sends.",
    ),
    record(
        "roce:switch_port_receive_utilization:ratio_rate5m",
        "sum by (cluster, switch, interface) (rate(roce_switch_interface_received_bytes_total{kind=\"port\"}[5m]))\n  / (max by (cluster, switch, interface) (roce_switch_interface_rate_bytes_per_second{kind=\"port\"}) > 0)",
        "Share of a switch port's rate that it receives.",
    ),
    record(
        "roce:cluster_transmitted_bytes:rate5m",
        "sum by (cluster) (rate(roce_port_transmitted_bytes_total[5m]))",
        "Bytes that all RDMA ports send, a second.",
    ),
    record(
        "roce:cluster_cnp_sent:rate5m",
        "sum by (cluster) (rate(roce_port_cnp_sent_total[5m]))",
        "CNPs that all RDMA ports send, a second.",
    ),
    record(
        "roce:switch_drops:rate5m",
        "sum by (cluster, switch) (rate(roce_switch_interface_discards_total[5m]))",
        "Packets that the ports of a switch discard, a second.",
    ),
];

pub(super) const BASELINES: &[Rule] = &[
    record(
        "roce:port_ecn_marked:avg1d",
        "avg_over_time(roce:port_ecn_marked:ratio_rate5m[1d] offset 1h)",
        "What is usual: the last day but its last hour.",
    ),
    record(
        "roce:port_ecn_marked:stddev1d",
        "stddev_over_time(roce:port_ecn_marked:ratio_rate5m[1d] offset 1h)",
        "How far it usually varies.",
    ),
    record(
        "roce:switch_pfc_received:log_avg1d",
        "avg_over_time(ln(1 + roce:switch_pfc_received:rate5m)[1d:5m] offset 1h)",
        "The logarithm keeps single bursts from owning the deviation.",
    ),
    record(
        "roce:switch_pfc_received:log_stddev1d",
        "stddev_over_time(ln(1 + roce:switch_pfc_received:rate5m)[1d:5m] offset 1h)",
        "How far it usually varies.",
    ),
    record(
        "roce:cluster_transmitted_bytes:avg1d",
        "avg_over_time(roce:cluster_transmitted_bytes:rate5m[1d] offset 1h)",
        "Throughput that is usual.",
    ),
    record(
        "roce:cluster_transmitted_bytes:stddev1d",
        "stddev_over_time(roce:cluster_transmitted_bytes:rate5m[1d] offset 1h)",
        "How far it usually varies.",
    ),
    record(
        "roce:cluster_cnp_sent:avg1d",
        "avg_over_time(roce:cluster_cnp_sent:rate5m[1d] offset 1h)",
        "CNPs that are usual.",
    ),
    record(
        "roce:cluster_cnp_sent:stddev1d",
        "stddev_over_time(roce:cluster_cnp_sent:rate5m[1d] offset 1h)",
        "How far they usually vary.",
    ),
    record(
        "roce:switch_drops:avg1d",
        "avg_over_time(roce:switch_drops:rate5m[1d] offset 1h)",
        "Discards that are usual.",
    ),
    record(
        "roce:switch_drops:stddev1d",
        "stddev_over_time(roce:switch_drops:rate5m[1d] offset 1h)",
        "How far they usually vary.",
    ),
];
