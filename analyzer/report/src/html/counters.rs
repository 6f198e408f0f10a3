//! Counters that hosts, switches and GPUs read while packets were captured, as tracks beside the timeline.
//!
//! Of each series the changes between readings are kept, merged in pairs where they are too many: sums stay exact. Only what
//! moved is drawn, by tracks of one topic and one node, the most telling first.

use std::collections::BTreeMap;

use roce_model::text::clean;
use roce_model::{Columns, Nanos, SampleColumns};
use serde::Serialize;

/// Series that are known; rows of others are counted alone.
const MAX_SERIES: usize = 1 << 12;
/// Changes kept of one series. With all series that is 50 MB.
const MAX_CHANGES: usize = 512;
/// Characters kept of a name. With all series at their longest that is 12 MB.
const MAX_NAME: usize = 128;
/// Tracks in the page, and series in one of them.
const MAX_TRACKS: usize = 18;
const MAX_LAYERS: usize = 7;

/// How the values of a track are written: what their rate is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scale {
    /// Things a second.
    PerSecond,
    /// Seconds a second: a share of the time.
    Share,
    /// Bytes, as bits a second.
    Bits,
    /// A share that is read as it is.
    Ratio,
    /// Bytes in use.
    Memory,
    /// Power.
    Watts,
    /// Clocks.
    Hertz,
    /// Bytes a second that are read as such, as bits a second.
    Rate,
}

impl Scale {
    const fn name(self) -> &'static str {
        match self {
            Self::PerSecond => "per_second",
            Self::Share => "share",
            Self::Bits => "bits",
            Self::Ratio => "ratio",
            Self::Memory => "memory",
            Self::Watts => "watts",
            Self::Hertz => "hertz",
            Self::Rate => "rate",
        }
    }
}

/// A topic: counters that are drawn together.
struct Topic {
    id: &'static str,
    name: &'static str,
    about: &'static str,
    scale: Scale,
    /// The counters, and what each is called in the track.
    counters: &'static [(&'static str, &'static str)],
}

impl Topic {
    /// True if it draws the gauge of this name.
    fn has_gauge(&self, name: &str) -> bool {
        let is_of_gauges = matches!(
            self.scale,
            Scale::Ratio | Scale::Memory | Scale::Watts | Scale::Hertz | Scale::Rate
        );
        is_of_gauges && self.counters.iter().any(|(counter, _)| *counter == name)
    }
}

/// The topics, the most telling first. 802.3x pause and PFC are two mechanisms: no topic has counters of both, but that of
/// adapters that count them together.
const TOPICS: [Topic; 18] = [
    Topic {
        id: "pfc-time",
        name: "Paused by PFC",
        about: "Share of the time in which PFC frames stopped a priority",
        scale: Scale::Share,
        counters: &[
            ("pfc_receive_paused_seconds", "own sending"),
            ("pfc_transmit_paused_seconds", "the neighbour's sending"),
        ],
    },
    Topic {
        id: "pfc-frames",
        name: "PFC frames",
        about: "PFC frames a second, by priority",
        scale: Scale::PerSecond,
        counters: &[
            ("pfc_received_frames", "received"),
            ("pfc_transmitted_frames", "sent"),
        ],
    },
    Topic {
        id: "pause-time",
        name: "Paused by 802.3x",
        about: "Share of the time in which 802.3x pause frames stopped the whole link",
        scale: Scale::Share,
        counters: &[
            ("pause_receive_paused_seconds", "own sending"),
            ("pause_transmit_paused_seconds", "the neighbour's sending"),
        ],
    },
    Topic {
        id: "pause-frames",
        name: "802.3x pause frames",
        about: "Pause frames a second for the whole link, PFC frames not among them",
        scale: Scale::PerSecond,
        counters: &[
            ("pause_received_frames", "received"),
            ("pause_transmitted_frames", "sent"),
        ],
    },
    Topic {
        id: "storms",
        name: "Pause storms",
        about: "Storms of pauses that the adapter noticed",
        scale: Scale::PerSecond,
        counters: &[("pause_storm_events", "storms")],
    },
    Topic {
        id: "ecn",
        name: "ECN marks counted",
        about: "Packets with ECN's mark (CE) a second, as adapters count them",
        scale: Scale::PerSecond,
        counters: &[
            ("port_ecn_marked_packets_received", "received marked"),
            ("priority_ecn_marked_packets", "marked by the adapter"),
        ],
    },
    Topic {
        id: "cnps",
        name: "CNPs counted",
        about: "Congestion notifications a second, as adapters count them",
        scale: Scale::PerSecond,
        counters: &[
            ("port_cnp_sent", "sent"),
            ("port_cnp_handled", "handled"),
            ("port_cnp_ignored", "ignored"),
        ],
    },
    Topic {
        id: "drops",
        name: "Drops counted",
        about: "Packets that adapters and interfaces discarded, a second",
        scale: Scale::PerSecond,
        counters: &[
            ("port_out_of_buffer_drops", "no receive buffer"),
            ("netdev_out_of_buffer", "no receive buffer of the interface"),
            ("netdev_discards", "discarded"),
            ("priority_discards", "discarded"),
        ],
    },
    Topic {
        id: "recovery",
        name: "Out of sequence, timeouts",
        about: "What adapters count of losses, a second",
        scale: Scale::PerSecond,
        counters: &[
            ("port_out_of_sequence_packets", "out of sequence"),
            ("port_packet_sequence_errors", "sequence NAKs"),
            ("port_ack_timeouts", "ACK timeouts"),
            ("port_rnr_naks_received", "RNR NAKs"),
            ("port_duplicate_requests", "duplicate requests"),
            ("port_implied_nak_sequence_errors", "implied NAKs"),
        ],
    },
    Topic {
        id: "pause-control",
        name: "Pause frames of both kinds",
        about: "802.3x and PFC frames a second, which the adapter counts together",
        scale: Scale::PerSecond,
        counters: &[
            ("pause_control_received_frames", "received"),
            ("pause_control_transmitted_frames", "sent"),
        ],
    },
    Topic {
        id: "bytes",
        name: "Bytes counted",
        about: "Bits a second, as adapters count them",
        scale: Scale::Bits,
        counters: &[
            ("port_received_bytes", "received"),
            ("port_transmitted_bytes", "sent"),
            ("rdma_received_bytes", "RDMA received"),
            ("rdma_transmitted_bytes", "RDMA sent"),
            ("priority_received_bytes", "received"),
            ("priority_transmitted_bytes", "sent"),
        ],
    },
    Topic {
        id: "gpu-load",
        name: "GPU load",
        about: "Share of the time in which a kernel ran on the GPU; not how busy it was",
        scale: Scale::Ratio,
        counters: &[("gpu_utilization_ratio", "load")],
    },
    Topic {
        id: "gpu-links",
        name: "GPU links",
        about: "Bits a second over the GPU's PCIe link and its NVLinks, as its driver measures them",
        scale: Scale::Rate,
        counters: &[
            ("gpu_pcie_bytes_per_second", "PCIe"),
            ("gpu_nvlink_bytes_per_second", "NVLink"),
        ],
    },
    Topic {
        id: "gpu-link-bytes",
        name: "GPU links, counted",
        about: "Bits a second over the GPU's PCIe link and its NVLinks, by counts of bytes",
        scale: Scale::Bits,
        counters: &[("gpu_pcie_bytes", "PCIe"), ("gpu_nvlink_bytes", "NVLink")],
    },
    Topic {
        id: "gpu-throttled",
        name: "GPU clocks held down",
        about: "Share of the readings in which the clocks were held down, by reason",
        scale: Scale::Ratio,
        counters: &[("gpu_throttled", "held down")],
    },
    Topic {
        id: "gpu-power",
        name: "GPU power",
        about: "Power that the GPU draws",
        scale: Scale::Watts,
        counters: &[("gpu_power_watts", "power")],
    },
    Topic {
        id: "gpu-memory",
        name: "GPU memory",
        about: "Memory of the GPU in use",
        scale: Scale::Memory,
        counters: &[("gpu_memory_used_bytes", "memory")],
    },
    Topic {
        id: "gpu-clocks",
        name: "GPU clocks",
        about: "Clocks of the GPU and of its memory",
        scale: Scale::Hertz,
        counters: &[("gpu_clock_hertz", "clock")],
    },
];

/// Names a series: node, object, counter, priority, queue, detail. In this order they are sorted.
type Key = (
    String,
    String,
    String,
    Option<u32>,
    Option<String>,
    Option<String>,
);

/// A change between two readings. Of a gauge it is the value times the time since the reading before, in ns: so its mean over any time is a
/// rate, as that of a counter, and neighbours are added.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Change {
    /// Times of the readings, in ns since the epoch.
    from: u64,
    to: u64,
    by: f64,
}

/// The changes of one series.
#[derive(Clone, Default, Debug)]
struct Changes {
    list: Vec<Change>,
    sum: f64,
}

impl Changes {
    fn add(&mut self, change: Change) {
        self.sum += change.by;
        // A stretch without any change is one.
        if let Some(last) = self.list.last_mut()
            && (last.by, change.by) == (0.0, 0.0)
            && last.to == change.from
        {
            last.to = change.to;
            return;
        }
        self.list.push(change);
        if self.list.len() > MAX_CHANGES {
            let pairs = self.list.chunks(2).map(|pair| Change {
                from: pair[0].from,
                to: pair[pair.len() - 1].to,
                by: pair.iter().map(|change| change.by).sum(),
            });
            self.list = pairs.collect();
        }
    }
}

/// Counters as they come.
#[derive(Debug, Default)]
pub(super) struct GatheredCounters {
    series: BTreeMap<Key, Changes>,
    /// Rows of series that found no room.
    rows_left_out: u64,
    span: Option<(u64, u64)>,
    seen: u64,
}

/// Counters that the page draws.
#[derive(Debug, Serialize)]
pub(super) struct Drawn {
    tracks: Vec<Track>,
    /// Series that moved and are not drawn: of topics without a track, or beyond the bounds.
    left_out: usize,
    /// Rows of series that were not followed.
    rows_left_out: u64,
    /// Samples that there were.
    seen: u64,
}

#[derive(Debug, Serialize)]
struct Track {
    id: String,
    name: String,
    about: &'static str,
    scale: &'static str,
    layers: Vec<Layer>,
}

#[derive(Debug, Serialize)]
struct Layer {
    name: String,
    /// The counter and its object, as the table names them.
    counter: String,
    object: String,
    priority: Option<u32>,
    detail: Option<String>,
    /// By how much it rose in the whole run; of a gauge, its integral over the time in ns.
    sum: f64,
    /// Of each change: start and end, in ns after the page's first time, and the amount.
    changes: Vec<(i64, i64, f64)>,
}

impl GatheredCounters {
    /// Takes rows of the table `samples`.
    pub(super) fn add(&mut self, rows: &SampleColumns) {
        self.seen += rows.len() as u64;
        for row in 0..rows.len() {
            let to = rows.time.at(row).copied().unwrap_or_default();
            let (first, last) = self.span.unwrap_or((to, to));
            self.span = Some((first.min(to), last.max(to)));
            let Some(interval) = rows.interval_ns.at(row).copied() else {
                continue;
            };
            let is_drawn = |name: &str| TOPICS.iter().any(|topic| topic.has_gauge(name));
            let value = rows.value.at(row).copied().filter(|_| {
                let counter = rows.counter.at(row);
                counter.is_some_and(|name| is_drawn(name.as_ref()))
            });
            let Some(by) = rows
                .change
                .at(row)
                .copied()
                .or_else(|| value.map(|value| value * roce_model::value_of(interval)))
            else {
                continue;
            };
            let change = Change {
                from: to.saturating_sub(interval),
                to,
                by,
            };
            let text = |values: &roce_model::Values<std::borrow::Cow<'static, str>>| {
                let text = values.at(row)?;
                Some(clean(text).chars().take(MAX_NAME).collect::<String>())
            };
            let key = (
                text(&rows.node).unwrap_or_default(),
                text(&rows.object).unwrap_or_default(),
                text(&rows.counter).unwrap_or_default(),
                rows.priority.at(row).copied(),
                text(&rows.queue),
                text(&rows.detail),
            );
            if change.from >= change.to {
                continue;
            }
            if let Some(changes) = self.series.get_mut(&key) {
                changes.add(change);
            } else if self.series.len() < MAX_SERIES {
                self.series.entry(key).or_default().add(change);
            } else {
                self.rows_left_out += 1;
            }
        }
    }

    /// First and last reading.
    pub(super) fn span(&self) -> Option<(Nanos, Nanos)> {
        self.span.map(|(first, last)| (Nanos(first), Nanos(last)))
    }

    /// Counters that moved, by tracks; times are relative to `base`.
    pub(super) fn drawn(&self, base: Nanos) -> Drawn {
        let moved: Vec<(&Key, &Changes)> = self
            .series
            .iter()
            .filter(|(_, changes)| changes.sum > 0.0)
            .collect();
        let mut nodes: Vec<&str> = self.series.keys().map(|key| key.0.as_str()).collect();
        nodes.dedup();
        let mut tracks = Vec::new();
        let mut shown = 0;
        for topic in &TOPICS {
            for node in &nodes {
                let mut layers: Vec<(usize, &Key, &Changes)> = moved
                    .iter()
                    .filter(|(key, _)| key.0 == *node)
                    .filter_map(|(key, changes)| {
                        let place = topic.counters.iter().position(|(name, _)| *name == key.2)?;
                        Some((place, *key, *changes))
                    })
                    .collect();
                if layers.is_empty() || tracks.len() >= MAX_TRACKS {
                    continue;
                }
                layers.sort_by(|a, b| b.2.sum.total_cmp(&a.2.sum));
                layers.truncate(MAX_LAYERS);
                shown += layers.len();
                let name = match nodes.as_slice() {
                    [_] => topic.name.to_owned(),
                    _ => format!("{}, {node}", topic.name),
                };
                tracks.push(Track {
                    id: format!("{}-{}", topic.id, tracks.len()),
                    name,
                    about: topic.about,
                    scale: topic.scale.name(),
                    layers: layers
                        .into_iter()
                        .map(|(place, key, changes)| layer(topic.counters[place].1, key, changes, base))
                        .collect(),
                });
            }
        }
        Drawn {
            tracks,
            left_out: moved.len() - shown,
            rows_left_out: self.rows_left_out,
            seen: self.seen,
        }
    }
}

/// A series of a track.
fn layer(label: &str, key: &Key, changes: &Changes, base: Nanos) -> Layer {
    let (_, object, counter, priority, queue, detail) = key;
    let mut name = format!("{object} {label}");
    for more in [
        priority.map(|priority| format!("priority {priority}")),
        queue.as_ref().map(|queue| format!("queue {queue}")),
        detail.clone(),
    ]
    .into_iter()
    .flatten()
    {
        name.push_str(", ");
        name.push_str(&more);
    }
    let after = |time: u64| {
        i64::try_from(i128::from(time) - i128::from(base.0)).unwrap_or(if time < base.0 {
            i64::MIN
        } else {
            i64::MAX
        })
    };
    Layer {
        name,
        counter: counter.clone(),
        object: object.clone(),
        priority: *priority,
        detail: detail.clone(),
        sum: changes.sum,
        changes: changes
            .list
            .iter()
            .map(|change| (after(change.from), after(change.to), change.by))
            .collect(),
    }
}

#[cfg(test)]
mod tests;
