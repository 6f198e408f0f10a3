//! Panels of one host.

use super::shared::{
    CNPS, FINDINGS, GPU, HOST, LOSSES, MARKED, NOT_READY, PAUSES, PFC_PAUSED, PORT, PRIORITY, UTILISATION,
    limited, panel,
};
use crate::dashboards::panel::Kind::{Series, Table};
use crate::dashboards::panel::Section;

pub(super) const HOSTS: &[Section] = &[
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
