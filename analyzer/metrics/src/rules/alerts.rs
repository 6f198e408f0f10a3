//! Alerts. Those that `host counters`, `doctor` and `fabric counters` judge, too, name the rule `counters.*` in their description.

use super::rule::{Rule, alert};

/// The box that a series is about: a hypervisor or switch by its name, not the exporter that read it; else the host.
macro_rules! of_box {
    ($text:literal) => {
        concat!(
            "{{ with $labels.hypervisor }}{{ . }}{{ else }}{{ with $labels.switch }}{{ . }}{{ else }}{{ $labels.instance }}{{ end }}{{ end }}",
            " {{ $labels.netdev }}{{ $labels.vmnic }}{{ $labels.interface }}",
            $text
        )
    };
}

/// A counter of a host's port that rose within 10 minutes, unless it is at most 1e-8 of the packets received, where those are counted.
macro_rules! above_share {
    ($counter:literal) => {
        concat!(
            "(increase(",
            $counter,
            "[10m]) > 0\nunless on (instance, netdev, device, port) (sum by (instance, netdev, device, port) (increase(",
            $counter,
            "[10m])) <= 1e-8 * (sum by (instance, netdev, device, port) (increase(roce_priority_received_packets_total[10m]))",
            " or sum by (instance, netdev, device, port) (increase(roce_port_received_packets_total[10m])))))"
        )
    };
}

/// As above, of a switch's ports.
macro_rules! broken_frames {
    ($counter:literal) => {
        concat!(
            "(sum by (cluster, switch, interface) (increase(",
            $counter,
            "[10m])) > 0\nunless sum by (cluster, switch, interface) (increase(",
            $counter,
            "[10m])) <= 1e-8 * sum by (cluster, switch, interface) (increase(roce_switch_interface_received_packets_total{kind=\"port\"}[10m])))"
        )
    };
}

pub(super) const ALERTS: &[Rule] = &[
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
        concat!(
            above_share!("roce_phy_symbol_errors_total"),
            "\n  or ",
            above_share!("roce_phy_crc_errors_total"),
            "\n  or ",
            above_share!("roce_port_receive_errors_total")
        ),
        "{{ $labels.instance }} {{ $labels.netdev }}{{ $labels.device }}: the link delivers broken frames",
        "Clean or replace the cable or optics; look at the corrected bits of the neighbour, too. `roce-analyze explain counters.broken_frames` says more.",
    ),
    alert(
        "RoceLinkUnsteady",
        "0s",
        "warning",
        "increase(roce_phy_link_downs_total[10m]) > 0 or increase(roce_phy_link_recoveries_total[10m]) > 0",
        "{{ $labels.instance }} {{ $labels.netdev }}{{ $labels.device }}: the link went down, or recovered from errors",
        "Look at cable and optics, and at the log of the other end. `roce-analyze explain counters.link_unsteady` says more.",
    ),
    alert(
        "RoceCountersAtLimit",
        "0s",
        "info",
        "last_over_time(roce_phy_symbol_errors_total{device!=\"\"}[10m]) == 65535 or last_over_time(roce_port_receive_errors_total[10m]) == 65535\n  or last_over_time(roce_phy_link_recoveries_total[10m]) == 255 or last_over_time(roce_phy_link_downs_total{device!=\"\"}[10m]) == 255",
        "{{ $labels.instance }} {{ $labels.device }}: an error counter stands at its limit, {{ $value | humanize }}",
        "It shows no later errors until it is cleared (perfquery -R). `roce-analyze explain counters.at_limit` says more.",
    ),
    alert(
        "RoceIcrcErrors",
        "0s",
        "warning",
        above_share!("roce_port_icrc_errors_total"),
        "{{ $labels.instance }} {{ $labels.device }}: {{ $value | humanize }} packets were changed on the way in 10 minutes",
        "A switch, a tunnel or an adapter changes what only the ends may. `roce-analyze explain counters.icrc` says more.",
    ),
    alert(
        "RoceSwitchRestarted",
        "0s",
        "info",
        "resets(roce_switch_uptime_seconds[15m]) > 0",
        "{{ $labels.switch }} restarted within 15 minutes",
        "Its counters began again: compare nothing with what was before. `roce-analyze explain counters.restarted` says more.",
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
        "This is the receiver's application, not the network. `roce-analyze explain counters.not_ready` says more.",
    ),
    alert(
        "RoceLossyClass",
        "5m",
        "warning",
        "sum by (cluster, job, instance, device, port) (rate(roce_port_out_of_sequence_packets_total[5m]))\n  / (sum by (cluster, job, instance, device, port) (rate(roce_port_received_packets_total[5m])) > 0) > 1e-5\nand on (instance) (roce_pfc_enabled == 0 and on (instance, netdev, priority) (rate(roce_priority_received_bytes_total[5m]) > 1e6))",
        "{{ $labels.instance }} {{ $labels.device }}: {{ $value | humanizePercentage }} of packets arrive out of sequence, and data is in a priority without PFC",
        "A full queue drops this class. Turn PFC on for it, or move the data (DSCP). `roce-analyze explain counters.lossy_class` says more.",
    ),
    alert(
        "RoceLossesOrReordering",
        "15m",
        "info",
        "sum by (cluster, job, instance, device, port) (rate(roce_port_packet_sequence_errors_total[5m]))\n  / (sum by (cluster, job, instance, device, port) (rate(roce_port_transmitted_packets_total[5m])) > 0) > 1e-5",
        "{{ $labels.instance }} {{ $labels.device }}: {{ $value | humanizePercentage }} of its packets get a sequence NAK",
        "They are lost, or reordered by adaptive routing. `roce-analyze explain counters.losses` says more.",
    ),
    alert(
        "RoceLosslessLoss",
        "5m",
        "warning",
        "sum by (cluster, job, instance, netdev, priority) (rate(roce_priority_discards_total[5m])) > 1\nand on (instance, netdev, priority) (roce_pfc_enabled == 1)",
        "{{ $labels.instance }} {{ $labels.netdev }} discards packets of priority {{ $labels.priority }} although PFC is on",
        "Headroom for the cable, and whether the switch obeys pauses. `roce-analyze explain counters.lossless_loss` says more.",
    ),
    alert(
        "RoceAccessErrors",
        "0s",
        "warning",
        "increase(roce_port_access_errors_total[10m]) > 0",
        "{{ $labels.instance }} {{ $labels.device }}: requests for memory that is not registered ({{ $labels.side }})",
        "A program uses memory that was freed or registered again. `roce-analyze explain counters.access_errors` says more.",
    ),
    alert(
        "RoceSwitchQueueDrops",
        "5m",
        "warning",
        "sum by (cluster, switch, interface, queue) (rate(roce_switch_queue_dropped_packets_total{kind=\"port\"}[5m])) > 1",
        "{{ $labels.switch }} {{ $labels.interface }} queue {{ $labels.queue }} drops {{ $value | humanize }} packets a second",
        "Whether the queue is lossless, and whether ECN marks in it. `roce-analyze explain counters.queue_drops` says more.",
    ),
    alert(
        "RoceHostDiscards",
        "5m",
        "warning",
        "rate(roce_netdev_discards_total[5m]) > 1",
        "{{ $labels.instance }} {{ $labels.netdev }}{{ $labels.device }} discards {{ $value | humanize }} packets a second ({{ $labels.direction }})",
        "Received: PCIe stalls, memory, PFC that does not act. Sent: a link that is down, or full. `roce-analyze explain counters.discards` says more.",
    ),
    alert(
        "RoceRetriesExceeded",
        "0s",
        "warning",
        "increase(roce_port_retries_exceeded_total[10m]) > 0",
        "{{ $labels.instance }} {{ $labels.device }}: queue pairs used up their retries, their connections broke",
        "Is the peer up, is its port up? Then losses on the way. `roce-analyze explain counters.retries_exceeded` says more.",
    ),
    alert(
        "RoceSwitchPortDiscards",
        "5m",
        "warning",
        "sum by (cluster, switch, interface, direction) (rate(roce_switch_interface_discards_total{kind=\"port\"}[5m])) > 1",
        "{{ $labels.switch }} {{ $labels.interface }} discards {{ $value | humanize }} packets a second ({{ $labels.direction }})",
        "Which queue drops, and whether PFC or ECN works in it. `roce-analyze explain counters.discards` says more.",
    ),
    alert(
        "RoceSwitchBrokenFrames",
        "0s",
        "warning",
        concat!(
            broken_frames!("roce_switch_interface_fcs_errors_total{kind=\"port\"}"),
            "\n  or ",
            broken_frames!("roce_switch_interface_errors_total{kind=\"port\",direction=\"received\"}")
        ),
        "{{ $labels.switch }} {{ $labels.interface }} received {{ $value | humanize }} broken frames in 10 minutes",
        "Clean or replace cable and optics. `roce-analyze explain counters.broken_frames` says more.",
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
        "roce:pfc_receive_paused:ratio_rate5m > 0.10\n  or rate(roce_hypervisor_pfc_receive_paused_seconds_total[5m]) > 0.10\n  or rate(roce_switch_priority_pfc_receive_paused_seconds_total{kind=\"port\"}[5m]) > 0.10",
        of_box!(
            ": its neighbour stopped priority {{ $labels.priority }} for {{ $value | humanizePercentage }} of the time"
        ),
        "Something downstream is congested. Follow the pauses from switch to switch to the port that sends none. `roce-analyze explain counters.paused` says more.",
    ),
    alert(
        "RocePfcPausesNeighbour",
        "5m",
        "warning",
        "roce:pfc_transmit_paused:ratio_rate5m > 0.10",
        "{{ $labels.instance }} {{ $labels.netdev }} stops its neighbour's priority {{ $labels.priority }} for {{ $value | humanizePercentage }} of the time",
        "This host does not take its packets: PCIe stalls, memory, the program. `roce-analyze explain counters.pausing` says more.",
    ),
    alert(
        "RocePauseStorm",
        "0s",
        "critical",
        "increase(roce_pause_storm_events_total[10m]) > 0 or increase(roce_hypervisor_pause_storm_events_total[10m]) > 0",
        of_box!(": the adapter reports a pause storm"),
        "The host does not take its packets: look at the adapter's PCIe stalls and for a hung process. `roce-analyze explain counters.pause_storm` says more.",
    ),
    alert(
        "RocePfcWatchdog",
        "0s",
        "critical",
        "increase(roce_switch_pfc_watchdog_shutdowns_total[10m]) > 0",
        "{{ $labels.switch }} {{ $labels.interface }} queue {{ $labels.queue }}: the PFC watchdog shut the queue",
        "Its neighbour paused it for too long. Everything in that queue is dropped meanwhile. `roce-analyze explain counters.watchdog` says more.",
    ),
    alert(
        "RocePfcWithoutEcn",
        "10m",
        "warning",
        "roce:cluster_pfc:rate5m > 100 unless roce:cluster_ecn_marked:rate5m > 1",
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
        of_box!(": 802.3x pauses stop the whole link"),
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
        "Congestion control is off at the receiver (mlx5: roce_np). `roce-analyze explain counters.cnp_not_sent` says more.",
    ),
    alert(
        "RoceCnpWithoutMarks",
        "5m",
        "warning",
        "(roce:port_cnp_sent:rate5m - roce:port_ecn_marked_packets:rate5m) / (roce:port_cnp_sent:rate5m > 1) > 0.1\nunless on (instance, device, port) (sum by (instance, device, port) (rate(roce_port_slow_restart_cnps_total[5m])) >= 0.95 * sum by (instance, device, port) (roce:port_cnp_sent:rate5m))",
        "{{ $labels.instance }} {{ $labels.device }}: {{ $value | humanizePercentage }} of its CNPs have no mark",
        "The adapter slows the senders by itself; no switch asked for it. `roce-analyze explain counters.cnp_unmarked` says more.",
    ),
    alert(
        "RoceCnpOfSlowRestart",
        "5m",
        "info",
        "sum by (instance, device, port) (rate(roce_port_slow_restart_cnps_total[5m])) > 1\nand on (instance, device, port) (sum by (instance, device, port) (rate(roce_port_slow_restart_cnps_total[5m])) >= 0.95 * sum by (instance, device, port) (roce:port_cnp_sent:rate5m))",
        "{{ $labels.instance }} {{ $labels.device }}: slow restart makes all of its CNPs, {{ $value | humanize }} a second",
        "They are the adapter's own, and no sign of congestion. `roce-analyze explain counters.cnp_slow_restart` says more.",
    ),
    alert(
        "RoceCnpIgnored",
        "5m",
        "warning",
        "rate(roce_port_cnp_ignored_total[5m]) > 0",
        "{{ $labels.instance }} {{ $labels.device }} ignores CNPs",
        "Congestion control is off at this sender (mlx5: roce_rp). `roce-analyze explain counters.cnp_ignored` says more.",
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
        "RocePcieStalled",
        "5m",
        "warning",
        "rate(roce_pcie_stalled_seconds_total[5m]) > 0.10",
        "{{ $labels.instance }} {{ $labels.netdev }}: PCIe {{ $labels.direction }}s stall in {{ $value | humanizePercentage }} of the seconds",
        "Width and speed of the slot, IOMMU, ACS, the memory's NUMA node. `roce-analyze explain counters.pcie_stalled` says more.",
    ),
    alert(
        "RoceStraggler",
        "5m",
        "warning",
        "sum by (cluster, instance) (rate(roce_port_transmitted_bytes_total[5m]))\n  < on (cluster) group_left () 0.5 * quantile by (cluster) (0.5, sum by (cluster, instance) (rate(roce_port_transmitted_bytes_total[5m])))\nand on (cluster) (quantile by (cluster) (0.5, sum by (cluster, instance) (rate(roce_port_transmitted_bytes_total[5m]))) > 1e8)",
        "{{ $labels.instance }} sends less than half of what the median host does",
        "In a synchronous job all wait for it: look at its PCIe stalls, its link's rate and its GPUs.",
    ),
    alert(
        "RoceTwinDiffers",
        "10m",
        "info",
        "sum by (cluster, instance, device, port) (rate(roce_port_transmitted_bytes_total[5m]))\n  < on (cluster, instance) group_left () 0.5 * max by (cluster, instance) (sum by (cluster, instance, device, port) (rate(roce_port_transmitted_bytes_total[5m])))\nand on (cluster, instance, device, port) (sum by (cluster, instance, device, port) (rate(roce_port_transmitted_bytes_total[5m])) > 1e7)\nand on (cluster, instance) (max by (cluster, instance) (sum by (cluster, instance, device, port) (rate(roce_port_transmitted_bytes_total[5m]))) > 1e8)",
        "{{ $labels.instance }} {{ $labels.device }} sends less than half of what another adapter of this host does",
        "A job over both waits for it: rate, cable and switch port of the two. An adapter for storage looks like that, too. `roce-analyze explain counters.twins` says more.",
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
        // A monitoring host has neither RDMA devices nor adapters for them.
        "roce_doctor_check_status{status=~\"warning|critical\"} == 1\nunless on (instance) (roce_doctor_check_status{check=\"rdma.devices\",status=\"warning\"} == 1)",
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
