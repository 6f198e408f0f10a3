//! Panels of capacity over weeks.

use super::shared::{PORT, SWITCH_PORT, UTILISATION, limited, panel};
use crate::dashboards::panel::Kind::Series;
use crate::dashboards::panel::Section;

pub(super) const CAPACITY: &[Section] = &[
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
                "Days until a link is used at 80 %, at the pace of the last week",
                "d",
                "Arithmetic, and no statement about the future: a line through seven days of the 95th percentile. Noise makes it jump; a steady fall is a trend. Needs days of data.",
                &[(
                    "(0.8 - quantile_over_time(0.95, roce:port_utilization:ratio_rate5m%H[1d])) / clamp_min(deriv(roce:port_utilization:ratio_rate5m%H[7d]) * 86400, 1e-9) < 3650",
                    PORT,
                )],
            ),
            UTILISATION,
            limited(
                panel(
                    Series,
                    "Switch ports and uplinks: 95th percentile in a day, sent",
                    "percentunit",
                    "Uplinks fill up first: compare the ports of one switch. Needs `metrics serve --inventory`, and a day of data.",
                    &[(
                        "quantile_over_time(0.95, roce:switch_port_transmit_utilization:ratio_rate5m%S[1d])",
                        SWITCH_PORT,
                    )],
                ),
                &[0.8],
            ),
            limited(
                panel(
                    Series,
                    "Switch ports and uplinks: 95th percentile in a day, received",
                    "percentunit",
                    "As above, in the other direction.",
                    &[(
                        "quantile_over_time(0.95, roce:switch_port_receive_utilization:ratio_rate5m%S[1d])",
                        SWITCH_PORT,
                    )],
                ),
                &[0.8],
            ),
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
                    "How far PFC of switch ports is from what is usual. Needs `metrics serve --inventory`, and a day of data.",
                    &[(
                        "(ln(1 + roce:switch_pfc_received:rate5m%S) - roce:switch_pfc_received:log_avg1d%S) / clamp_min(roce:switch_pfc_received:log_stddev1d%S, 0.2)",
                        SWITCH_PORT,
                    )],
                ),
                &[4.0],
            ),
            panel(
                Series,
                "Throughput, CNPs and discards against the last day, in deviations",
                "none",
                "How far each is from what is usual. Needs a day of data.",
                &[
                    (
                        "(roce:cluster_transmitted_bytes:rate5m - roce:cluster_transmitted_bytes:avg1d) / (roce:cluster_transmitted_bytes:stddev1d > 0)",
                        "{{cluster}} throughput",
                    ),
                    (
                        "(roce:cluster_cnp_sent:rate5m - roce:cluster_cnp_sent:avg1d) / clamp_min(roce:cluster_cnp_sent:stddev1d, 1)",
                        "{{cluster}} CNPs",
                    ),
                    (
                        "(roce:switch_drops:rate5m%S - roce:switch_drops:avg1d%S) / clamp_min(roce:switch_drops:stddev1d%S, 1)",
                        "{{switch}} discards",
                    ),
                ],
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
