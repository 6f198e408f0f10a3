//! Panels that several dashboards show, and the words in which panels are described.
//!
//! In expressions `%H` stands for the selector of hosts, `%S` for that of switches: `roce_port_up%H`, `roce_port_up%H{priority="3"}`.

use crate::dashboards::panel::Kind::{self, Series, Table};
use crate::dashboards::panel::Panel;

pub(super) const fn panel(
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

pub(super) const fn limited(panel: Panel, limits: &'static [f64]) -> Panel {
    Panel { limits, ..panel }
}

pub(super) const HOST: &str = "{{instance}}";
pub(super) const PORT: &str = "{{instance}} {{device}}:{{port}}";
pub(super) const GPU: &str = "{{instance}} GPU {{gpu}}";
pub(super) const NETDEV: &str = "{{instance}} {{netdev}}";
pub(super) const PRIORITY: &str = "{{instance}} {{netdev}} priority {{priority}}";
pub(super) const SWITCH_PORT: &str = "{{switch}} {{interface}}";
pub(super) const SWITCH_QUEUE: &str = "{{switch}} {{interface}} queue {{queue}}";

pub(super) const MARKED: Panel = limited(
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
pub(super) const CNPS: Panel = panel(
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
pub(super) const PFC_PAUSED: Panel = limited(
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
pub(super) const PAUSES: Panel = limited(
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
pub(super) const UTILISATION: Panel = panel(
    Series,
    "Link utilisation, sent",
    "percentunit",
    "RDMA bytes sent, as a share of the port's rate.",
    &[(
        "sum by (instance, device, port) (rate(roce_port_transmitted_bytes_total%H[$__rate_interval])) / sum by (instance, device, port) (roce_port_rate_bytes_per_second%H)",
        PORT,
    )],
);
pub(super) const LOSSES: Panel = limited(
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
pub(super) const NOT_READY: Panel = panel(
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
pub(super) const FINDINGS: Panel = panel(
    Table,
    "Findings of live runs",
    "none",
    "Verdicts of `roce-analyze live --metrics` that stand. `roce-analyze explain ID` says what each means.",
    &[("roce_live_finding%H == 1", "")],
);
