//! Panels of the cluster as a whole.

use super::shared::{
    CNPS, FINDINGS, HOST, LOSSES, MARKED, NOT_READY, PAUSES, PFC_PAUSED, PORT, UTILISATION, limited, panel,
};
use crate::dashboards::panel::Kind::{Heatmap, Series, Stat, Table};
use crate::dashboards::panel::Section;

pub(super) const CLUSTER: &[Section] = &[
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
