//! Counters that hosts, switches and GPUs read while packets were captured, as tracks beside the timeline.
//!
//! The changes between readings are kept for each series, merged in pairs where they are too many: sums stay
//! exact. Only what moved is drawn, by tracks of one topic and one node, the most telling first: of servers,
//! hypervisors, ports of switches, and within switches.

mod topics;

use std::collections::BTreeMap;

use roce_model::text::clean;
use roce_model::{Columns, SampleColumns, Time};
use serde::Serialize;

use topics::TOPICS;

/// Series that are known; rows of others are counted alone.
const MAX_SERIES: usize = 1 << 12;
/// Changes kept of one series. With all series that is 50 MB.
const MAX_CHANGES: usize = 512;
/// Characters kept of a name. With all series at their longest that is 12 MB.
const MAX_NAME: usize = 128;
/// Tracks in the page, and series in one of them.
const MAX_TRACKS: usize = 30;
const MAX_LAYERS: usize = 7;

/// Where a counter is: tracks are in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Level {
    Server,
    Hypervisor,
    SwitchPort,
    /// Ports between the parts of a switch.
    SwitchInside,
}

impl Level {
    fn new(source: &str, detail: Option<&str>) -> Self {
        let kind = detail.and_then(|detail| detail.split(',').next());
        match source {
            "switch" if kind == Some("internal") => Self::SwitchInside,
            "switch" => Self::SwitchPort,
            "hypervisor" => Self::Hypervisor,
            _ => Self::Server,
        }
    }

    /// Further details for people: of a switch's counter the first one is the kind of interface, which its track shows.
    fn shown(self, detail: Option<&str>) -> Option<String> {
        let detail = detail?;
        let shown = match self {
            Self::SwitchPort | Self::SwitchInside => detail.split_once(',').map_or("", |(_, rest)| rest),
            Self::Server | Self::Hypervisor => detail,
        };
        (!shown.is_empty()).then(|| shown.to_owned())
    }
}

/// Names a series: level and node, object, counter, priority, queue, detail. In this order they are sorted.
type Key = (
    (Level, String),
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
pub(super) struct DrawnCounters {
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
    /// Start, end (ns after the page's first time) and amount of each change.
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
            let detail = text(&rows.detail);
            let source = rows.source.at(row).map_or("", AsRef::as_ref);
            let key = (
                (
                    Level::new(source, detail.as_deref()),
                    text(&rows.node).unwrap_or_default(),
                ),
                text(&rows.object).unwrap_or_default(),
                text(&rows.counter).unwrap_or_default(),
                rows.priority.at(row).copied(),
                text(&rows.queue),
                detail,
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
    pub(super) fn span(&self) -> Option<(Time, Time)> {
        self.span.map(|(first, last)| (Time(first), Time(last)))
    }

    /// Counters that moved, by tracks; times are relative to `base`.
    pub(super) fn drawn(&self, base: Time) -> DrawnCounters {
        let moved: Vec<(&Key, &Changes)> = self
            .series
            .iter()
            .filter(|(_, changes)| changes.sum > 0.0)
            .collect();
        let mut nodes: Vec<&(Level, String)> = self.series.keys().map(|key| &key.0).collect();
        nodes.dedup();
        let mut tracks = Vec::new();
        let mut shown = 0;
        for topic in &TOPICS {
            for node in &nodes {
                let mut layers: Vec<(usize, &Key, &Changes)> = moved
                    .iter()
                    .filter(|(key, _)| key.0 == **node)
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
                    _ => match node {
                        (Level::SwitchInside, node) => format!("{}, inside {node}", topic.name),
                        (_, node) => format!("{}, {node}", topic.name),
                    },
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
        DrawnCounters {
            tracks,
            left_out: moved.len() - shown,
            rows_left_out: self.rows_left_out,
            seen: self.seen,
        }
    }
}

/// A series of a track.
fn layer(label: &str, key: &Key, changes: &Changes, base: Time) -> Layer {
    let ((level, _), object, counter, priority, queue, detail) = key;
    let mut name = format!("{object} {label}");
    for more in [
        priority.map(|priority| format!("priority {priority}")),
        queue.as_ref().map(|queue| format!("queue {queue}")),
        level.shown(detail.as_deref()),
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
