//! Names of older exporters, from these metrics.

use std::fmt::Write;

use super::rule::write_expression;

/// Names of three older exporters (RDMA counters, an ESXi collector, a Nexus collector), each with its expression and the label that it had:
/// the host by `instance` or `hypervisor`, a switch's `interface` in small letters, the `type` of packets, or the QoS group of a `queue`.
/// Their dashboards go on.
pub(crate) const COMPATIBLE: &[(&str, &str, &str)] = &[
    (
        "rdma_ecn_marked_packets",
        "roce_port_ecn_marked_packets_received_total",
        "instance",
    ),
    ("rdma_cnp_sent", "roce_port_cnp_sent_total", "instance"),
    ("rdma_cnp_handled", "roce_port_cnp_handled_total", "instance"),
    ("rdma_cnp_ignored", "roce_port_cnp_ignored_total", "instance"),
    ("rdma_operations", "roce_port_requests_received_total", "instance"),
    (
        "rdma_rx_write_requests",
        "roce_port_requests_received_total{operation=\"write\"}",
        "instance",
    ),
    (
        "rdma_rx_read_requests",
        "roce_port_requests_received_total{operation=\"read\"}",
        "instance",
    ),
    (
        "rdma_out_of_sequence",
        "roce_port_out_of_sequence_packets_total",
        "instance",
    ),
    (
        "esxi_pause_rx_phy",
        "roce_hypervisor_pause_control_received_frames_total",
        "hypervisor",
    ),
    (
        "esxi_pause_tx_phy",
        "roce_hypervisor_pause_control_transmitted_frames_total",
        "hypervisor",
    ),
    (
        "esxi_pause_rx_global",
        "roce_hypervisor_pause_received_frames_total",
        "hypervisor",
    ),
    (
        "esxi_pause_rx_transitions",
        "roce_hypervisor_pause_transitions_total",
        "hypervisor",
    ),
    (
        "esxi_pause_storm_warnings",
        "roce_hypervisor_pause_storm_events_total{severity=\"warning\"}",
        "hypervisor",
    ),
    (
        "esxi_pause_storm_errors",
        "roce_hypervisor_pause_storm_events_total{severity=\"error\"}",
        "hypervisor",
    ),
    ("nexus_pfc_rx_frames", "roce_switch_pfc_received_frames_total", ""),
    (
        "nexus_pfc_tx_frames",
        "roce_switch_pfc_transmitted_frames_total",
        "",
    ),
    ("nexus_pfc_rx_pause", "roce_switch_pfc_received_frames_total", ""),
    (
        "nexus_pfc_tx_pause",
        "roce_switch_pfc_transmitted_frames_total",
        "",
    ),
    (
        "nexus_flowcontrol_rx_pause",
        "roce_switch_pause_received_frames_total",
        "",
    ),
    (
        "nexus_flowcontrol_tx_pause",
        "roce_switch_pause_transmitted_frames_total",
        "",
    ),
    (
        "nexus_interface_rx_bytes",
        "roce_switch_interface_received_bytes_total",
        "interface",
    ),
    (
        "nexus_interface_tx_bytes",
        "roce_switch_interface_transmitted_bytes_total",
        "interface",
    ),
    (
        "nexus_interface_rx_packets",
        "roce_switch_interface_received_packets_total",
        "type",
    ),
    (
        "nexus_interface_tx_packets",
        "roce_switch_interface_transmitted_packets_total",
        "type",
    ),
    (
        "nexus_qos_group_packets",
        "sum without (cast, kind) (roce_switch_queue_transmitted_packets_total)",
        "queue",
    ),
    (
        "nexus_queue_tx_bytes",
        "sum without (cast, kind) (roce_switch_queue_transmitted_bytes_total)",
        "queue",
    ),
    (
        "nexus_queue_dropped_packets",
        "sum without (cast, kind) (roce_switch_queue_dropped_packets_total)",
        "queue",
    ),
    ("nexus_mmu_drops", "roce_switch_mmu_dropped_packets_total", ""),
];

/// Names of the older exporters that are left out, each with the reason and what is there instead.
pub(crate) const LEFT_OUT: [(&str, &str); 6] = [
    (
        "pfc_pause_frames",
        "on mlx5 it was a number of transitions or microseconds: roce_pfc_received_frames_total",
    ),
    (
        "network_bytes",
        "the kernel's bytes do not contain RDMA: node_network_receive_bytes_total of node_exporter",
    ),
    (
        "network_packets_dropped",
        "the kernel counts unknown protocols in it: roce_netdev_discards_total",
    ),
    (
        "node_ethtool_*_vport_rdma_*",
        "of node_exporter: roce_rdma_received_bytes_total, roce_rdma_transmitted_bytes_total",
    ),
    (
        "node_infiniband_*",
        "of node_exporter: roce_port_received_bytes_total, roce_port_transmitted_bytes_total",
    ),
    (
        "up{job=\"rdma-exporter\"}",
        "the job is roce-hosts: up{job=\"roce-hosts\"}",
    ),
];

/// The file of names that older exporters had.
pub fn compatible() -> String {
    let mut text = String::from(
        "# Names of older exporters for RDMA, ESXi and Nexus counters, so that their dashboards go on. Use it only where those exporters\n\
         # are gone: beside them each series would be there twice. All labels are kept. Left out are:\n",
    );
    for (name, why) in LEFT_OUT {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# - {name}: {why}");
    }
    text.push_str("groups:\n  - name: roce-compat\n    rules:\n");
    let small = |expr: &str| {
        format!("label_replace({expr}, \"interface\", \"ethernet$1\", \"interface\", \"Ethernet(.*)\")")
    };
    for (name, expr, label) in COMPATIBLE {
        let expr = match *label {
            "" => (*expr).to_owned(),
            "instance" => format!("label_replace({expr}, \"host\", \"$1\", \"instance\", \"([^:]+).*\")"),
            "interface" => small(expr),
            "type" => small(&format!(
                "label_replace({expr}, \"type\", \"$1\", \"cast\", \"(.*)\")"
            )),
            "queue" => small(&format!(
                "label_replace({expr}, \"qos_group\", \"$1\", \"queue\", \"(.*)\")"
            )),
            label => format!("label_replace({expr}, \"host\", \"$1\", \"{label}\", \"(.*)\")"),
        };
        let _ = writeln!(text, "      - record: {name}");
        write_expression(&mut text, &expr);
    }
    text
}
