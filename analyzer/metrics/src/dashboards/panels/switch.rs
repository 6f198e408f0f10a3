//! Panels of one switch.

use super::shared::{SWITCH_PORT, SWITCH_QUEUE, limited, panel};
use crate::dashboards::panel::Kind::{Series, Stat};
use crate::dashboards::panel::Section;

pub(super) const SWITCH: &[Section] = &[
    Section {
        title: "PFC and pauses (needs metrics serve --inventory)",
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
