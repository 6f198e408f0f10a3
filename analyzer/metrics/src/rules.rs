//! Rules for Prometheus: recorded series, and alerts. One description, from which the file is printed.
//!
//! Alerts are about rates, never about totals, and about 802.3x pauses or PFC, never both. PFC between a switch's own parts is normal and
//! alerts nobody.

use std::fmt::Write;

/// One rule.
pub(crate) struct Rule {
    /// Name of the recorded series or of the alert.
    pub name: &'static str,
    /// The expression.
    pub expr: &'static str,
    /// A recorded series: its meaning.
    pub about: &'static str,
    /// The alert, if it is one.
    pub alert: Option<Alert>,
}

/// Texts of an alert, and how long it waits.
pub(crate) struct Alert {
    /// How long the expression has to hold.
    pub wait: &'static str,
    /// info, warning or critical.
    pub severity: &'static str,
    /// One line, with the labels of the series.
    pub summary: &'static str,
    /// Its meaning, and the next thing to look at.
    pub next: &'static str,
}

const fn record(name: &'static str, expr: &'static str, about: &'static str) -> Rule {
    Rule {
        name,
        expr,
        about,
        alert: None,
    }
}

const fn alert(
    name: &'static str,
    wait: &'static str,
    severity: &'static str,
    expr: &'static str,
    summary: &'static str,
    next: &'static str,
) -> Rule {
    Rule {
        name,
        expr,
        about: "",
        alert: Some(Alert {
            wait,
            severity,
            summary,
            next,
        }),
    }
}

/// A group of rules that are evaluated together.
pub(crate) struct Group {
    /// Its name.
    pub name: &'static str,
    /// Time between two evaluations; empty for Prometheus' own.
    pub interval: &'static str,
    /// Its rules, in the order of evaluation.
    pub rules: &'static [Rule],
}

/// All rules.
pub(crate) const GROUPS: &[Group] = &[
    Group {
        name: "roce-records",
        interval: "30s",
        rules: RECORDS,
    },
    Group {
        name: "roce-baselines",
        interval: "5m",
        rules: BASELINES,
    },
    Group {
        name: "roce-alerts",
        interval: "",
        rules: ALERTS,
    },
];

const RECORDS: &[Rule] = &[
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
        "roce:cluster_pfc_per_ecn_mark:ratio_rate5m",
        "sum by (cluster) (rate(roce_pfc_received_frames_total[5m]) + rate(roce_pfc_transmitted_frames_total[5m]))\n  / (sum by (cluster) (rate(roce_port_ecn_marked_packets_received_total[5m])) > 1)",
        "PFC frames of hosts for each marked packet: how much of congestion control is left to PFC.",
    ),
];

const BASELINES: &[Rule] = &[
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
];

const ALERTS: &[Rule] = &[
    // Nobody knows.
    alert(
        "RoceExporterDown",
        "2m",
        "warning",
        "up{job=~\"roce.*\"} == 0",
        "{{ $labels.instance }}: no metrics for two minutes",
        "Is the host up, does `roce-analyze metrics serve` run, does a firewall drop the scrape?",
    ),
    alert(
        "RoceReadingsFail",
        "5m",
        "warning",
        "roce_collector_success == 0",
        "{{ $labels.instance }}: the {{ $labels.collector }} collector has no new values",
        "The driver may hang: roce_collector_age_seconds says since when. Counters are left out meanwhile.",
    ),
    alert(
        "RoceCollectionSlow",
        "10m",
        "warning",
        "roce_collector_duration_seconds > 0.8 * roce_collector_interval_seconds",
        "{{ $labels.instance }}: a reading takes {{ $value | humanizeDuration }}, nearly the whole interval",
        "Set a longer --interval, or find out which driver answers slowly.",
    ),
    alert(
        "RoceSeriesLeftOut",
        "10m",
        "warning",
        "roce_series_left_out > 0",
        "{{ $labels.instance }}: {{ $value | humanize }} series are left out",
        "There are more counters than one endpoint gives. Read fewer interfaces.",
    ),
    // Links.
    alert(
        "RocePortDown",
        "1m",
        "critical",
        "roce_port_up == 0 and on (instance, device, port) (max_over_time(roce_port_up[1d]) == 1)",
        "{{ $labels.instance }} {{ $labels.device }}:{{ $labels.port }} was up within a day and is down",
        "Cable, optics, the switch's port. A port that was never up alerts nobody.",
    ),
    alert(
        "RocePortSlow",
        "10m",
        "warning",
        "roce_port_rate_bytes_per_second < on (instance, device, port) roce_port_max_rate_bytes_per_second",
        "{{ $labels.instance }} {{ $labels.device }}:{{ $labels.port }} runs slower than it can",
        "A cable, a breakout, or the other end's speed.",
    ),
    alert(
        "RoceLinkErrors",
        "0s",
        "warning",
        "increase(roce_phy_symbol_errors_total[10m]) > 0 or increase(roce_phy_crc_errors_total[10m]) > 0",
        "{{ $labels.instance }} {{ $labels.netdev }}: the link delivers broken frames",
        "Clean or replace the cable or optics; look at the corrected bits of the neighbour, too.",
    ),
    // Losses.
    alert(
        "RoceSequenceErrors",
        "5m",
        "warning",
        "rate(roce_port_packet_sequence_errors_total[5m]) > 0.1 or rate(roce_port_ack_timeouts_total[5m]) > 0.1",
        "{{ $labels.instance }} {{ $labels.device }}: packets are lost, {{ $value | humanize }} NAKs or timeouts a second",
        "Look for discards at switch ports between the hosts. `roce-analyze live` says which flows and on which side.",
    ),
    alert(
        "RoceReceiverNotReady",
        "5m",
        "warning",
        "rate(roce_port_rnr_naks_sent_total[5m]) > 1 or rate(roce_port_out_of_buffer_drops_total[5m]) > 1",
        "{{ $labels.instance }} {{ $labels.device }}: the application posts receive buffers too late",
        "This is the receiver's application, not the network.",
    ),
    alert(
        "RoceSwitchBufferDrops",
        "0s",
        "critical",
        "increase(roce_switch_mmu_dropped_packets_total[5m]) > 0",
        "{{ $labels.switch }} {{ $labels.interface }} dropped {{ $value | humanize }} packets at its ingress buffer in 5 minutes",
        "Headroom or PFC of this port does not fit: a lossless class must not drop here.",
    ),
    alert(
        "RoceLosslessQueueDrops",
        "0s",
        "critical",
        "increase(roce_switch_queue_dropped_packets_total[5m]) > 0\nand on (switch, interface, queue) (roce_switch_queue_no_drop == 1)",
        "{{ $labels.switch }} {{ $labels.interface }} queue {{ $labels.queue }} dropped {{ $value | humanize }} packets, and is configured to lose none",
        "PFC is not in effect on this port, or its neighbour ignores it.",
    ),
    alert(
        "RoceWredDropsInsteadOfMarks",
        "0s",
        "warning",
        "increase(roce_switch_queue_wred_dropped_packets_total[5m]) > 0",
        "{{ $labels.switch }} {{ $labels.interface }} queue {{ $labels.queue }}: WRED drops packets",
        "The packets are Not-ECT, or the queue has WRED without ECN. `roce-analyze` names senders without ECN (ecn.not-capable).",
    ),
    // PFC.
    alert(
        "RocePfcOnEdgePort",
        "5m",
        "warning",
        "roce:switch_pfc_received:rate5m{kind=\"port\"} > 100",
        "{{ $labels.switch }} {{ $labels.interface }} is paused by its neighbour {{ $value | humanize }} times a second",
        "A slow receiver, or ECN marks too late. Look at the marks and PCIe stalls of the host behind the port.",
    ),
    alert(
        "RocePfcPausedTooLong",
        "5m",
        "warning",
        "roce:pfc_receive_paused:ratio_rate5m > 0.10",
        "{{ $labels.instance }} {{ $labels.netdev }}: PFC stopped priority {{ $labels.priority }} for {{ $value | humanizePercentage }} of the time",
        "Something downstream is congested. Follow the pauses from switch to switch to the port that sends none.",
    ),
    alert(
        "RocePauseStorm",
        "0s",
        "critical",
        "increase(roce_pause_storm_events_total[10m]) > 0 or increase(roce_hypervisor_pause_storm_events_total[10m]) > 0",
        "{{ $labels.instance }} {{ $labels.netdev }}{{ $labels.vmnic }}: the adapter reports a pause storm",
        "The host does not take its packets: look at the adapter's PCIe stalls and for a hung process.",
    ),
    alert(
        "RocePfcWatchdog",
        "0s",
        "critical",
        "increase(roce_switch_pfc_watchdog_shutdowns_total[10m]) > 0",
        "{{ $labels.switch }} {{ $labels.interface }} queue {{ $labels.queue }}: the PFC watchdog shut the queue",
        "Its neighbour paused it for too long. Everything in that queue is dropped meanwhile.",
    ),
    alert(
        "RocePfcWithoutEcn",
        "10m",
        "warning",
        "(sum by (cluster) (rate(roce_pfc_received_frames_total[10m])) > 100)\n  unless (sum by (cluster) (rate(roce_port_ecn_marked_packets_received_total[10m])) > 1)",
        "PFC does all the work, {{ $value | humanize }} frames a second, and nothing is marked",
        "ECN is off, or its threshold is above that of PFC.",
    ),
    alert(
        "RocePfcAnomaly",
        "10m",
        "info",
        "(ln(1 + roce:switch_pfc_received:rate5m) - roce:switch_pfc_received:log_avg1d)\n  / clamp_min(roce:switch_pfc_received:log_stddev1d, 0.2) > 4",
        "{{ $labels.switch }} {{ $labels.interface }}: PFC is {{ $value | humanize }} deviations above the last day",
        "What changed within the hour: a job, a path, a link?",
    ),
    // 802.3x.
    alert(
        "RoceGlobalPause",
        "5m",
        "warning",
        "rate(roce_pause_received_frames_total[5m]) > 0\n  or rate(roce_hypervisor_pause_received_frames_total[5m]) > 0\n  or rate(roce_switch_pause_transmitted_frames_total[5m]) > 0",
        "{{ $labels.instance }}{{ $labels.hypervisor }}{{ $labels.switch }} {{ $labels.netdev }}{{ $labels.vmnic }}{{ $labels.interface }}: 802.3x pauses stop the whole link",
        "Pauses by priority are not in use on this link. Enable them at both ends; adapters then turn 802.3x off.",
    ),
    // ECN, CNP.
    alert(
        "RoceCongestion",
        "5m",
        "warning",
        "roce:port_ecn_marked:ratio_rate5m > 0.05 and on (instance, device, port) roce:port_cnp_sent:rate5m > 10",
        "{{ $labels.instance }} {{ $labels.device }}: {{ $value | humanizePercentage }} of received packets are marked, and their senders are slowed",
        "Several senders exceed a link on the way here: an incast, or a path with too many flows. `roce-analyze live` names them.",
    ),
    alert(
        "RoceMarkedButNotNotified",
        "5m",
        "critical",
        "roce:port_ecn_marked_packets:rate5m > 100 and on (instance, device, port) roce:port_cnp_sent:rate5m == 0",
        "{{ $labels.instance }} {{ $labels.device }} gets {{ $value | humanize }} marked packets a second and sends no CNP",
        "Congestion control is off at the receiver (mlx5: roce_np). `roce-analyze explain ecn.marks-without-cnp` says more.",
    ),
    alert(
        "RoceCnpIgnored",
        "5m",
        "warning",
        "rate(roce_port_cnp_ignored_total[5m]) > 0",
        "{{ $labels.instance }} {{ $labels.device }} ignores CNPs",
        "Congestion control is off at this sender (mlx5: roce_rp). `roce-analyze explain cnp.ignored` says more.",
    ),
    alert(
        "RoceCnpLost",
        "15m",
        "warning",
        "roce:cluster_cnp_handled:ratio_rate5m < 0.8",
        "only {{ $value | humanizePercentage }} of the CNPs that are sent slow a sender",
        "CNPs are lost in a full queue (give them one of their own), or some senders are not scraped.",
    ),
    alert(
        "RoceEcnAnomaly",
        "10m",
        "info",
        "(roce:port_ecn_marked:ratio_rate5m - roce:port_ecn_marked:avg1d)\n  / clamp_min(roce:port_ecn_marked:stddev1d, 0.005) > 4\nand roce:port_ecn_marked:ratio_rate5m > 0.01",
        "{{ $labels.instance }} {{ $labels.device }}: marks are {{ $value | humanize }} deviations above the last day",
        "What changed within the hour: a job, a path, a link?",
    ),
    // Hosts.
    alert(
        "RoceStraggler",
        "5m",
        "warning",
        "sum by (cluster, instance) (rate(roce_port_transmitted_bytes_total[5m]))\n  < on (cluster) group_left () 0.5 * quantile by (cluster) (0.5, sum by (cluster, instance) (rate(roce_port_transmitted_bytes_total[5m])))\nand on (cluster) (quantile by (cluster) (0.5, sum by (cluster, instance) (rate(roce_port_transmitted_bytes_total[5m]))) > 1e8)",
        "{{ $labels.instance }} sends less than half of what the median host does",
        "In a synchronous job all wait for it: look at its PCIe stalls, its link's rate and its GPUs.",
    ),
    alert(
        "RoceGpuStarved",
        "10m",
        "info",
        "avg by (instance) (roce_gpu_utilization_ratio) < 0.5\nand on (instance) (max by (instance) (roce:port_ecn_marked:ratio_rate5m) > 0.05)",
        "{{ $labels.instance }}: GPUs at {{ $value | humanizePercentage }} while the network is congested",
        "Compare with the steps of the job before the congestion began.",
    ),
    alert(
        "RoceConfiguration",
        "15m",
        "warning",
        "roce_doctor_check_status{status=~\"warning|critical\"} == 1",
        "{{ $labels.instance }} {{ $labels.object }}: {{ $labels.check }}",
        "The check's own text says what to set.",
    ),
    // Live runs.
    alert(
        "RoceLiveFinding",
        "1m",
        "warning",
        "roce_live_finding{severity=~\"warning|critical\"} == 1",
        "{{ $labels.instance }}: {{ $labels.id }}",
        "`roce-analyze explain {{ $labels.id }}` says what it means; the live run's own output has the flows.",
    ),
    alert(
        "RoceLiveFramesLost",
        "5m",
        "info",
        "rate(roce_live_lost_frames_total[5m]) > 0",
        "{{ $labels.instance }}: the capture loses frames ({{ $labels.where }})",
        "Counts of that run are too low. Give it fewer devices, a smaller --snaplen or a larger --buffer.",
    ),
];

/// Rules that give the names of three older exporters (RDMA counters, an ESXi collector, a Nexus collector) from these metrics, so that
/// their dashboards go on.
pub(crate) const COMPATIBLE: &[(&str, &str, &str)] = &[
    (
        "rdma_ecn_marked_packets",
        "roce_port_ecn_marked_packets_received_total",
        "instance",
    ),
    ("rdma_cnp_sent", "roce_port_cnp_sent_total", "instance"),
    ("rdma_cnp_handled", "roce_port_cnp_handled_total", "instance"),
    ("rdma_cnp_ignored", "roce_port_cnp_ignored_total", "instance"),
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
        "nexus_qos_group_packets",
        "sum by (switch, interface, queue) (roce_switch_queue_transmitted_packets_total)",
        "queue",
    ),
    (
        "nexus_queue_tx_bytes",
        "sum by (switch, interface, queue) (roce_switch_queue_transmitted_bytes_total)",
        "queue",
    ),
    (
        "nexus_queue_dropped_packets",
        "sum by (switch, interface, queue) (roce_switch_queue_dropped_packets_total)",
        "queue",
    ),
    ("nexus_mmu_drops", "roce_switch_mmu_dropped_packets_total", ""),
];

/// The file of recorded series and alerts.
pub fn rules() -> String {
    let mut text = String::from(
        "# Recorded series and alerts of roce-analyze. Those over roce_switch_ and roce_hypervisor_ metrics\n\
         # give nothing until a collector exports these.\n\
         groups:\n",
    );
    for group in GROUPS {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  - name: {}", group.name);
        if !group.interval.is_empty() {
            let _ = writeln!(text, "    interval: {}", group.interval);
        }
        text.push_str("    rules:\n");
        for rule in group.rules {
            write_rule(&mut text, rule);
        }
    }
    text
}

fn write_rule(text: &mut String, rule: &Rule) {
    let kind = if rule.alert.is_some() { "alert" } else { "record" };
    if !rule.about.is_empty() {
        let _ = writeln!(text, "      # {}", rule.about);
    }
    let _ = writeln!(text, "      - {kind}: {}", rule.name);
    write_expression(text, rule.expr);
    if let Some(alert) = &rule.alert {
        let _ = writeln!(text, "        for: {}", alert.wait);
        let _ = writeln!(text, "        labels:\n          severity: {}", alert.severity);
        text.push_str("        annotations:\n");
        let _ = writeln!(text, "          summary: {}", quoted(alert.summary));
        let _ = writeln!(text, "          description: {}", quoted(alert.next));
    }
}

fn write_expression(text: &mut String, expr: &str) {
    text.push_str("        expr: |-\n");
    for line in expr.lines() {
        let _ = writeln!(text, "          {line}");
    }
}

/// A text of YAML in quotation marks.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The file of names that older exporters had.
pub fn compatible() -> String {
    let mut text = String::from(
        "# Names of older exporters for RDMA, ESXi and Nexus counters, so that their dashboards go on. Use it only where those exporters\n\
         # are gone: beside them each series would be there twice. pfc_pause_frames is left out on purpose: on mlx5 it was a number of\n\
         # transitions or microseconds. Take roce_pfc_received_frames_total instead.\n\
         groups:\n  - name: roce-compat\n    rules:\n",
    );
    for (name, expr, label) in COMPATIBLE {
        let expr = match *label {
            "" => (*expr).to_owned(),
            "instance" => format!("label_replace({expr}, \"host\", \"$1\", \"instance\", \"([^:]+).*\")"),
            "queue" => format!("label_replace({expr}, \"qos_group\", \"$1\", \"queue\", \"(.*)\")"),
            label => format!("label_replace({expr}, \"host\", \"$1\", \"{label}\", \"(.*)\")"),
        };
        let _ = writeln!(text, "      - record: {name}");
        write_expression(&mut text, &expr);
    }
    text
}

#[cfg(test)]
mod tests;
