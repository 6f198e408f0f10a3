//! The panels: one description, from which all dashboards are made.
//!
//! In expressions `%H` stands for the selector of hosts, `%S` for that of switches: `roce_port_up%H`, `roce_port_up%H{priority="3"}`.

use super::panel::{Dashboard, Kind, Panel, Section};

const fn panel(
    kind: Kind,
    title: &'static str,
    unit: &'static str,
    about: &'static str,
    queries: &'static [(&'static str, &'static str)],
) -> Panel {
    Panel {
        kind,
        title,
        unit,
        about,
        queries,
        limits: &[],
    }
}

const fn limited(panel: Panel, limits: &'static [f64]) -> Panel {
    Panel { limits, ..panel }
}

use Kind::{Heatmap, Series, Stat, Table};

const HOST: &str = "{{instance}}";
const PORT: &str = "{{instance}} {{device}}:{{port}}";
const GPU: &str = "{{instance}} GPU {{gpu}}";
const NETDEV: &str = "{{instance}} {{netdev}}";
const PRIORITY: &str = "{{instance}} {{netdev}} priority {{priority}}";
const SWITCH_PORT: &str = "{{switch}} {{interface}}";
const SWITCH_QUEUE: &str = "{{switch}} {{interface}} queue {{queue}}";

/// All dashboards.
pub const DASHBOARDS: &[Dashboard] = &[
    Dashboard {
        name: "cluster",
        title: "RoCE / Cluster",
        switches: false,
        sections: CLUSTER,
    },
    Dashboard {
        name: "host",
        title: "RoCE / Host",
        switches: false,
        sections: HOSTS,
    },
    Dashboard {
        name: "switch",
        title: "RoCE / Switch",
        switches: true,
        sections: SWITCH,
    },
    Dashboard {
        name: "chain",
        title: "RoCE / Whole chain",
        switches: true,
        sections: CHAIN,
    },
    Dashboard {
        name: "capacity",
        title: "RoCE / Capacity and what is usual",
        switches: true,
        sections: CAPACITY,
    },
];

const MARKED: Panel = limited(
    panel(
        Series,
        "Marked share of received packets",
        "percentunit",
        "Share of received RoCE packets with ECN's mark. A few percent under load are ECN at work; above 5 % a receiver's port or a path is oversubscribed. Next: `roce-analyze live` on that host names the senders.",
        &[(
            "sum by (instance, device, port) (rate(roce_port_ecn_marked_packets_received_total%H[$__rate_interval])) / (sum by (instance, device, port) (rate(roce_port_received_packets_total%H[$__rate_interval])) > 0)",
            PORT,
        )],
    ),
    &[0.05],
);
const CNPS: Panel = panel(
    Series,
    "CNPs sent (up) and acted upon (down)",
    "pps",
    "Receivers of marked packets send CNPs, senders act upon them: two roles, usually of different hosts. Marks without CNPs: congestion control is off at the receiver.",
    &[
        (
            "sum by (instance) (rate(roce_port_cnp_sent_total%H[$__rate_interval]))",
            "{{instance}} sent",
        ),
        (
            "-sum by (instance) (rate(roce_port_cnp_handled_total%H[$__rate_interval]))",
            "{{instance}} acted upon",
        ),
    ],
);
const PFC_PAUSED: Panel = limited(
    panel(
        Series,
        "PFC: share of time stopped, by priority",
        "percentunit",
        "Share of time in which received PFC frames kept a port from sending. Above 1 % something downstream is congested, above 10 % it costs throughput. Follow it from switch to switch.",
        &[(
            "sum by (instance, netdev, priority) (rate(roce_pfc_receive_paused_seconds_total%H[$__rate_interval]))",
            PRIORITY,
        )],
    ),
    &[0.01, 0.1],
);
const PAUSES: Panel = limited(
    panel(
        Series,
        "802.3x pauses received",
        "pps",
        "Pauses of the whole link, all priorities at once. There should be none on a lossless fabric: enable pauses by priority at both ends instead.",
        &[(
            "sum by (instance, netdev) (rate(roce_pause_received_frames_total%H[$__rate_interval]))",
            NETDEV,
        )],
    ),
    &[0.001],
);
const UTILISATION: Panel = panel(
    Series,
    "Link utilisation, sent",
    "percentunit",
    "RDMA bytes sent, as a share of the port's rate.",
    &[(
        "sum by (instance, device, port) (rate(roce_port_transmitted_bytes_total%H[$__rate_interval])) / sum by (instance, device, port) (roce_port_rate_bytes_per_second%H)",
        PORT,
    )],
);
const LOSSES: Panel = limited(
    panel(
        Series,
        "Losses that hosts noticed",
        "cps",
        "NAKs for sequence errors and expired ACK timers. Each one is a retransmission. Next: discards of switch ports between the hosts.",
        &[
            (
                "sum by (instance) (rate(roce_port_packet_sequence_errors_total%H[$__rate_interval]))",
                "{{instance}} NAKs",
            ),
            (
                "sum by (instance) (rate(roce_port_ack_timeouts_total%H[$__rate_interval]))",
                "{{instance}} timeouts",
            ),
        ],
    ),
    &[0.1],
);
const NOT_READY: Panel = panel(
    Series,
    "Receivers that were not ready",
    "cps",
    "RNR NAKs that senders received, and packets that receivers dropped because the application posted no buffer in time. Not a fault of the network.",
    &[
        (
            "sum by (instance) (rate(roce_port_rnr_naks_received_total%H[$__rate_interval]))",
            "{{instance}} RNR NAKs received",
        ),
        (
            "sum by (instance) (rate(roce_port_out_of_buffer_drops_total%H[$__rate_interval]))",
            "{{instance}} dropped",
        ),
    ],
);
const FINDINGS: Panel = panel(
    Table,
    "Findings of live runs",
    "none",
    "Verdicts of `roce-analyze live --metrics` that stand. `roce-analyze explain ID` says what each means.",
    &[("roce_live_finding%H == 1", "")],
);

const CLUSTER: &[Section] = &[
    Section {
        title: "Now",
        panels: &[
            panel(
                Stat,
                "Hosts that answer",
                "short",
                "Endpoints whose last scrape succeeded.",
                &[("count(up%H == 1) or vector(0)", "")],
            ),
            limited(
                panel(
                    Stat,
                    "Ports down that were up today",
                    "short",
                    "Ports of RDMA devices that are down and were up within a day. Next: cable, optics, the switch's port.",
                    &[(
                        "count(roce_port_up%H == 0 and max_over_time(roce_port_up%H[1d]) == 1) or vector(0)",
                        "",
                    )],
                ),
                &[1.0],
            ),
            panel(
                Stat,
                "Marked packets in the range",
                "short",
                "RoCE packets received with ECN's mark, in the time that the dashboard shows.",
                &[(
                    "sum(increase(roce_port_ecn_marked_packets_received_total%H[$__range]))",
                    "",
                )],
            ),
            panel(
                Stat,
                "CNPs sent in the range",
                "short",
                "Notifications that receivers sent.",
                &[("sum(increase(roce_port_cnp_sent_total%H[$__range]))", "")],
            ),
            panel(
                Stat,
                "CNPs acted upon in the range",
                "short",
                "Notifications that slowed a sender. Far fewer than were sent: CNPs are lost, or some senders are not scraped.",
                &[("sum(increase(roce_port_cnp_handled_total%H[$__range]))", "")],
            ),
            limited(
                panel(
                    Stat,
                    "NAKs for losses in the range",
                    "short",
                    "Losses that receivers reported.",
                    &[(
                        "sum(increase(roce_port_packet_sequence_errors_total%H[$__range]))",
                        "",
                    )],
                ),
                &[1.0],
            ),
            panel(
                Series,
                "RDMA throughput by host, sent",
                "bps",
                "RDMA bytes of all ports, in bits.",
                &[(
                    "8 * sum by (instance) (rate(roce_port_transmitted_bytes_total%H[$__rate_interval]))",
                    HOST,
                )],
            ),
            panel(
                Series,
                "RDMA throughput by host, received",
                "bps",
                "RDMA bytes of all ports, in bits.",
                &[(
                    "8 * sum by (instance) (rate(roce_port_received_bytes_total%H[$__rate_interval]))",
                    HOST,
                )],
            ),
            UTILISATION,
            panel(
                Heatmap,
                "Hosts by throughput",
                "Bps",
                "How many hosts send how fast. A host apart from the others is a straggler, or idle.",
                &[(
                    "sum by (instance) (rate(roce_port_transmitted_bytes_total%H[$__rate_interval]))",
                    HOST,
                )],
            ),
        ],
    },
    Section {
        title: "Congestion",
        panels: &[
            MARKED,
            CNPS,
            panel(
                Series,
                "CNPs for each marked packet",
                "none",
                "1 without coalescing, small with it, 0 where receivers do not notify.",
                &[("roce:port_cnp_per_ecn_mark:ratio_rate5m%H", PORT)],
            ),
            PFC_PAUSED,
            PAUSES,
        ],
    },
    Section {
        title: "Losses",
        panels: &[LOSSES, NOT_READY],
    },
    Section {
        title: "Verdicts",
        panels: &[
            FINDINGS,
            panel(
                Table,
                "What doctor finds",
                "none",
                "Checks of hosts' configuration that warn, as of the exporter's last run of them.",
                &[(
                    "roce_doctor_check_status%H{status=~\"warning|critical\"} == 1",
                    "",
                )],
            ),
        ],
    },
];

const HOSTS: &[Section] = &[
    Section {
        title: "Ports",
        panels: &[
            panel(
                Table,
                "Ports",
                "none",
                "RDMA ports with device, interface, driver, firmware and state.",
                &[("roce_port_info%H", "")],
            ),
            UTILISATION,
            panel(
                Series,
                "RDMA throughput",
                "bps",
                "Bytes of each port in bits: sent up, received down.",
                &[
                    (
                        "8 * sum by (instance, device, port) (rate(roce_port_transmitted_bytes_total%H[$__rate_interval]))",
                        "{{instance}} {{device}}:{{port}} sent",
                    ),
                    (
                        "-8 * sum by (instance, device, port) (rate(roce_port_received_bytes_total%H[$__rate_interval]))",
                        "{{instance}} {{device}}:{{port}} received",
                    ),
                ],
            ),
            panel(
                Series,
                "RDMA requests received",
                "ops",
                "Requests by operation. Adapters count those received only.",
                &[(
                    "sum by (instance, device, operation) (rate(roce_port_requests_received_total%H[$__rate_interval]))",
                    "{{instance}} {{device}} {{operation}}",
                )],
            ),
        ],
    },
    Section {
        title: "Congestion",
        panels: &[
            MARKED,
            CNPS,
            PFC_PAUSED,
            panel(
                Series,
                "PFC frames received",
                "pps",
                "PFC frames by the priority that they pause. Rates say how often, the share of time says how long.",
                &[(
                    "sum by (instance, netdev, priority) (rate(roce_pfc_received_frames_total%H[$__rate_interval]))",
                    PRIORITY,
                )],
            ),
            panel(
                Series,
                "PFC frames sent",
                "pps",
                "This host stops its switch: it does not take its packets fast enough. Next: PCIe stalls, and buffers that are posted late.",
                &[(
                    "sum by (instance, netdev, priority) (rate(roce_pfc_transmitted_frames_total%H[$__rate_interval]))",
                    PRIORITY,
                )],
            ),
            PAUSES,
            panel(
                Series,
                "PCIe stalls",
                "percentunit",
                "Share of time in which the adapter waited for the host's memory. It is the usual cause of pauses that a host sends.",
                &[(
                    "sum by (instance, netdev, direction) (rate(roce_pcie_stalled_seconds_total%H[$__rate_interval]))",
                    "{{instance}} {{netdev}} {{direction}}",
                )],
            ),
        ],
    },
    Section {
        title: "Losses and errors",
        panels: &[
            LOSSES,
            NOT_READY,
            limited(
                panel(
                    Series,
                    "Packets out of sequence",
                    "pps",
                    "Packets that came after a gap. With adaptive routing some are normal.",
                    &[(
                        "sum by (instance, device, port) (rate(roce_port_out_of_sequence_packets_total%H[$__rate_interval]))",
                        PORT,
                    )],
                ),
                &[],
            ),
            limited(
                panel(
                    Series,
                    "Discards by priority",
                    "pps",
                    "Packets that the adapter discarded. A lossless priority has none.",
                    &[(
                        "sum by (instance, netdev, priority, reason) (rate(roce_priority_discards_total%H[$__rate_interval]))",
                        "{{instance}} {{netdev}} priority {{priority}} {{reason}}",
                    )],
                ),
                &[0.001],
            ),
            limited(
                panel(
                    Series,
                    "Link errors",
                    "cps",
                    "Symbols in error and broken frames behind error correction. Clean or replace the cable or optics.",
                    &[
                        (
                            "sum by (instance, netdev) (rate(roce_phy_symbol_errors_total%H[$__rate_interval]))",
                            "{{instance}} {{netdev}} symbols",
                        ),
                        (
                            "sum by (instance, netdev) (rate(roce_phy_crc_errors_total%H[$__rate_interval]))",
                            "{{instance}} {{netdev}} frames",
                        ),
                    ],
                ),
                &[0.001],
            ),
        ],
    },
    Section {
        title: "Live analysis",
        panels: &[
            FINDINGS,
            panel(
                Series,
                "Busiest pairs of hosts",
                "bps",
                "Traffic that a live run sees, by sender and receiver; other is the sum of the rest.",
                &[(
                    "8 * sum by (instance, source, destination) (rate(roce_live_pair_wire_bytes_total%H[$__rate_interval]))",
                    "{{source}} > {{destination}}",
                )],
            ),
            panel(
                Series,
                "Marked data packets by pair",
                "pps",
                "Whose packets are marked: the senders that congestion control slows.",
                &[(
                    "sum by (instance, source, destination) (rate(roce_live_pair_ecn_marked_packets_total%H[$__rate_interval]))",
                    "{{source}} > {{destination}}",
                )],
            ),
            panel(
                Series,
                "Missing packets, by what became of them",
                "pps",
                "network_lost is a loss; reordered is none; capture_lost is the capture's own; the others stay unclear.",
                &[(
                    "sum by (instance, became) (rate(roce_live_missing_packets_total%H[$__rate_interval]))",
                    "{{instance}} {{became}}",
                )],
            ),
            panel(
                Series,
                "Episodes of congestion",
                "short",
                "Episodes that began in the range, by kind.",
                &[(
                    "sum by (instance, kind) (increase(roce_live_episodes_total%H[$__range]))",
                    "{{instance}} {{kind}}",
                )],
            ),
            panel(
                Series,
                "PFC frames captured",
                "pps",
                "PFC frames by priority, where the capture point shows them.",
                &[(
                    "sum by (instance, tap, priority) (rate(roce_live_pfc_frames_total%H[$__rate_interval]))",
                    "{{instance}} {{tap}} priority {{priority}}",
                )],
            ),
            limited(
                panel(
                    Series,
                    "Frames that the capture lost",
                    "pps",
                    "Where it is not 0, counts of that live run are too low.",
                    &[(
                        "sum by (instance, where) (rate(roce_live_lost_frames_total%H[$__rate_interval]))",
                        "{{instance}} {{where}}",
                    )],
                ),
                &[0.001],
            ),
        ],
    },
    Section {
        title: "GPUs",
        panels: &[
            panel(
                Series,
                "GPU load",
                "percentunit",
                "Share of the time in which a kernel ran; not how busy the GPU was. Falls of all together, while packets are marked or paused: the job waits for the network.",
                &[("roce_gpu_utilization_ratio%H", GPU)],
            ),
            panel(
                Series,
                "GPU memory",
                "bytes",
                "Memory in use.",
                &[("roce_gpu_memory_used_bytes%H", GPU)],
            ),
            panel(
                Series,
                "GPU power",
                "watt",
                "Power that each GPU draws.",
                &[("roce_gpu_power_watts%H", GPU)],
            ),
            limited(
                panel(
                    Series,
                    "GPU temperature",
                    "celsius",
                    "Of the GPU itself. Clocks are held down when it is too high.",
                    &[("roce_gpu_temperature_celsius%H{sensor=\"gpu\"}", GPU)],
                ),
                &[80.0, 90.0],
            ),
            panel(
                Series,
                "GPU clocks held down, by reason",
                "none",
                "sw_power_cap is usual at full load. Heat or hw_slowdown makes a slow rank, for which all others wait.",
                &[("roce_gpu_throttled%H == 1", "{{instance}} GPU {{gpu}} {{reason}}")],
            ),
        ],
    },
    Section {
        title: "The exporter",
        panels: &[
            panel(
                Series,
                "Age of the values",
                "s",
                "Time since the last whole reading. It rises where a driver hangs.",
                &[("roce_collector_age_seconds%H", "{{instance}} {{collector}}")],
            ),
            panel(
                Series,
                "Memory",
                "bytes",
                "Resident memory of the exporter.",
                &[("process_resident_memory_bytes%H", HOST)],
            ),
            panel(
                Series,
                "CPU",
                "percentunit",
                "CPU time of the exporter, as a share of one core.",
                &[("rate(process_cpu_seconds_total%H[$__rate_interval])", HOST)],
            ),
            panel(
                Table,
                "Reads that failed",
                "short",
                "Reads of drivers that failed, by source and reason.",
                &[("increase(roce_collector_errors_total%H[$__range]) > 0", "")],
            ),
        ],
    },
];

const SWITCH: &[Section] = &[
    Section {
        title: "PFC and pauses (metrics of a later version's switch collector)",
        panels: &[
            panel(
                Stat,
                "Switches that answer",
                "short",
                "Switches whose last reading succeeded.",
                &[("count(roce_switch_up%S == 1) or vector(0)", "")],
            ),
            panel(
                Series,
                "PFC received",
                "pps",
                "PFC frames that hosts and neighbours send to ports.",
                &[(
                    "sum by (switch, interface) (rate(roce_switch_pfc_received_frames_total%S{kind=\"port\"}[$__rate_interval]))",
                    SWITCH_PORT,
                )],
            ),
            panel(
                Series,
                "PFC sent",
                "pps",
                "PFC frames by which ports stop their neighbours.",
                &[(
                    "sum by (switch, interface) (rate(roce_switch_pfc_transmitted_frames_total%S{kind=\"port\"}[$__rate_interval]))",
                    SWITCH_PORT,
                )],
            ),
            panel(
                Series,
                "PFC by priority",
                "pps",
                "PFC frames received, by priority.",
                &[(
                    "sum by (switch, priority) (rate(roce_switch_priority_pfc_received_frames_total%S[$__rate_interval]))",
                    "{{switch}} priority {{priority}}",
                )],
            ),
            panel(
                Series,
                "PFC inside the switch",
                "pps",
                "PFC between the switch's own parts. Much of it is normal.",
                &[(
                    "sum by (switch, interface) (rate(roce_switch_pfc_received_frames_total%S{kind=\"internal\"}[$__rate_interval]))",
                    SWITCH_PORT,
                )],
            ),
            limited(
                panel(
                    Series,
                    "802.3x pauses sent",
                    "pps",
                    "Pauses of whole links. There should be none.",
                    &[(
                        "sum by (switch, interface) (rate(roce_switch_pause_transmitted_frames_total%S[$__rate_interval]))",
                        SWITCH_PORT,
                    )],
                ),
                &[0.001],
            ),
            limited(
                panel(
                    Series,
                    "PFC watchdog",
                    "short",
                    "Queues that the watchdog shut. Everything in them is dropped meanwhile.",
                    &[(
                        "sum by (switch, interface, queue) (increase(roce_switch_pfc_watchdog_shutdowns_total%S[$__rate_interval]))",
                        SWITCH_QUEUE,
                    )],
                ),
                &[1.0],
            ),
        ],
    },
    Section {
        title: "Drops and marks",
        panels: &[
            limited(
                panel(
                    Series,
                    "Drops at the ingress buffer",
                    "pps",
                    "A lossless class must not drop here: headroom or PFC does not fit.",
                    &[(
                        "sum by (switch, interface) (rate(roce_switch_mmu_dropped_packets_total%S[$__rate_interval]))",
                        SWITCH_PORT,
                    )],
                ),
                &[0.001],
            ),
            limited(
                panel(
                    Series,
                    "Queue drops",
                    "pps",
                    "Packets that queues dropped.",
                    &[(
                        "sum by (switch, interface, queue) (rate(roce_switch_queue_dropped_packets_total%S[$__rate_interval]))",
                        SWITCH_QUEUE,
                    )],
                ),
                &[0.001],
            ),
            panel(
                Series,
                "Marked share of a queue's packets",
                "percentunit",
                "ECN at work. A queue that pauses and does not mark has its threshold too high.",
                &[(
                    "sum by (switch, interface, queue) (rate(roce_switch_queue_ecn_marked_packets_total%S[$__rate_interval])) / (sum by (switch, interface, queue) (rate(roce_switch_queue_transmitted_packets_total%S[$__rate_interval])) > 0)",
                    SWITCH_QUEUE,
                )],
            ),
            limited(
                panel(
                    Series,
                    "WRED drops",
                    "pps",
                    "Packets that were dropped where they could have been marked: Not-ECT, or ECN is off.",
                    &[(
                        "sum by (switch, interface, queue) (rate(roce_switch_queue_wred_dropped_packets_total%S[$__rate_interval]))",
                        SWITCH_QUEUE,
                    )],
                ),
                &[0.001],
            ),
        ],
    },
    Section {
        title: "Load",
        panels: &[
            panel(
                Series,
                "Port throughput",
                "bps",
                "Bytes in bits: sent up, received down.",
                &[
                    (
                        "8 * sum by (switch, interface) (rate(roce_switch_interface_transmitted_bytes_total%S[$__rate_interval]))",
                        "{{switch}} {{interface}} sent",
                    ),
                    (
                        "-8 * sum by (switch, interface) (rate(roce_switch_interface_received_bytes_total%S[$__rate_interval]))",
                        "{{switch}} {{interface}} received",
                    ),
                ],
            ),
            panel(
                Series,
                "Queue throughput",
                "bps",
                "Bytes sent by queue, in bits.",
                &[(
                    "8 * sum by (switch, queue) (rate(roce_switch_queue_transmitted_bytes_total%S[$__rate_interval]))",
                    "{{switch}} queue {{queue}}",
                )],
            ),
            panel(
                Series,
                "Queue depth",
                "bytes",
                "Bytes that wait.",
                &[(
                    "max by (switch, interface, queue) (roce_switch_queue_depth_bytes%S)",
                    SWITCH_QUEUE,
                )],
            ),
            panel(
                Series,
                "Buffer cells in use, peak",
                "short",
                "Highest use of the shared buffer.",
                &[(
                    "max by (switch, instance_id, pool) (roce_switch_buffer_peak_cells%S)",
                    "{{switch}} {{instance_id}} {{pool}}",
                )],
            ),
        ],
    },
];

const CHAIN: &[Section] = &[Section {
    title: "From the switch to the job: the level where it begins is the cause",
    panels: &[
        panel(
            Series,
            "1 Switch, inside: PFC",
            "pps",
            "PFC between the switch's own parts. From a later version's collector.",
            &[(
                "sum by (switch) (rate(roce_switch_pfc_received_frames_total%S{kind=\"internal\"}[$__rate_interval]))",
                "{{switch}}",
            )],
        ),
        panel(
            Series,
            "2 Switch, ports: PFC sent",
            "pps",
            "PFC frames to neighbours. From a later version's collector.",
            &[(
                "sum by (switch) (rate(roce_switch_pfc_transmitted_frames_total%S{kind=\"port\"}[$__rate_interval]))",
                "{{switch}}",
            )],
        ),
        panel(
            Series,
            "2 Switch, ports: 802.3x sent",
            "pps",
            "Pauses of whole links. From a later version's collector.",
            &[(
                "sum by (switch) (rate(roce_switch_pause_transmitted_frames_total%S[$__rate_interval]))",
                "{{switch}}",
            )],
        ),
        panel(
            Series,
            "3 Hypervisors: PFC received",
            "pps",
            "PFC at physical adapters below virtual machines. From a later version's collector.",
            &[(
                "sum by (hypervisor, vmnic, priority) (rate(roce_hypervisor_pfc_received_frames_total[$__rate_interval]))",
                "{{hypervisor}} {{vmnic}} priority {{priority}}",
            )],
        ),
        panel(
            Series,
            "3 Hypervisors: 802.3x received",
            "pps",
            "Pauses of whole links below virtual machines. From a later version's collector.",
            &[(
                "sum by (hypervisor, vmnic) (rate(roce_hypervisor_pause_received_frames_total[$__rate_interval]))",
                "{{hypervisor}} {{vmnic}}",
            )],
        ),
        panel(
            Series,
            "4 Servers: PFC received",
            "pps",
            "PFC at hosts' own ports.",
            &[(
                "sum by (instance, priority) (rate(roce_pfc_received_frames_total%H[$__rate_interval]))",
                "{{instance}} priority {{priority}}",
            )],
        ),
        PAUSES,
        MARKED,
        CNPS,
        LOSSES,
        panel(
            Series,
            "5 Live runs: episodes",
            "short",
            "Episodes of congestion that began in the range, by kind.",
            &[(
                "sum by (instance, kind) (increase(roce_live_episodes_total%H[$__range]))",
                "{{instance}} {{kind}}",
            )],
        ),
        panel(
            Series,
            "6 Steps of the training job",
            "s",
            "Length of the last step of the training job that sends most: from the first to the last packet of its communication.",
            &[("roce_live_step_seconds%H", "{{instance}} {{tap}}")],
        ),
    ],
}];

const CAPACITY: &[Section] = &[
    Section {
        title: "Capacity",
        panels: &[
            limited(
                panel(
                    Series,
                    "95th percentile of link use in a day",
                    "percentunit",
                    "What a link needs, without its peaks. Above 80 % queues build up often. Needs a day of data.",
                    &[(
                        "quantile_over_time(0.95, roce:port_utilization:ratio_rate5m%H[1d])",
                        PORT,
                    )],
                ),
                &[0.8],
            ),
            panel(
                Series,
                "Days until a link is used at 80 %",
                "d",
                "A line through seven days of the 95th percentile. Noise makes it jump; a steady fall is a trend. Needs days of data.",
                &[(
                    "(0.8 - quantile_over_time(0.95, roce:port_utilization:ratio_rate5m%H[1d])) / clamp_min(deriv(roce:port_utilization:ratio_rate5m%H[7d]) * 86400, 1e-9) < 3650",
                    PORT,
                )],
            ),
            UTILISATION,
        ],
    },
    Section {
        title: "What is usual",
        panels: &[
            limited(
                panel(
                    Series,
                    "Marks against the last day, in deviations",
                    "none",
                    "How far the share of marked packets is from what is usual. Above 4 something changed. Needs a day of data.",
                    &[(
                        "(roce:port_ecn_marked:ratio_rate5m%H - roce:port_ecn_marked:avg1d%H) / clamp_min(roce:port_ecn_marked:stddev1d%H, 0.005)",
                        PORT,
                    )],
                ),
                &[4.0],
            ),
            limited(
                panel(
                    Series,
                    "PFC against the last day, in deviations",
                    "none",
                    "How far PFC of switch ports is from what is usual. From a later version's collector; needs a day of data.",
                    &[(
                        "(ln(1 + roce:switch_pfc_received:rate5m%S) - roce:switch_pfc_received:log_avg1d%S) / clamp_min(roce:switch_pfc_received:log_stddev1d%S, 0.2)",
                        SWITCH_PORT,
                    )],
                ),
                &[4.0],
            ),
            panel(
                Series,
                "PFC frames for each marked packet",
                "none",
                "How much of congestion control is left to PFC. Rising: ECN marks too late or not at all.",
                &[("roce:cluster_pfc_per_ecn_mark:ratio_rate5m", "{{cluster}}")],
            ),
            panel(
                Series,
                "CNPs acted upon, of those sent",
                "percentunit",
                "Over the whole cluster. Below 80 % CNPs are lost, or some senders are not scraped.",
                &[("roce:cluster_cnp_handled:ratio_rate5m", "{{cluster}}")],
            ),
        ],
    },
];
