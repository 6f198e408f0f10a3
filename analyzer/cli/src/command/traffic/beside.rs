//! Results on the timeline of a stored dataset: what the packets show while each tool ran.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, SystemTime};

use roce_jobs::results::{When, when};
use roce_model::{
    Columns as _, EpisodeRow, Period, RunSummary, Sink, SinkError, TapId, Time, TimelineColumns, Values,
};
use serde_json::{Value, json};

use crate::output::table::laid;

/// Taps that are counted.
const MAX_TAPS: usize = 64;

/// The time of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Window {
    /// The file or folder.
    pub(super) name: String,
    /// From when to when; `None`: nothing says it.
    pub(super) span: Option<(Time, Time)>,
    /// Who says it.
    pub(super) source: &'static str,
}

impl Window {
    /// The time of the tool whose output a file has.
    pub(super) fn from_output(name: String, path: &Path, text: &str) -> Self {
        let (span, source) = match when(text) {
            Some(When::At { begin, end }) => (nanos(begin).zip(nanos(end)), "the tool's own times"),
            Some(When::Lasted(seconds)) => (before(path, seconds), "the file's time less the duration"),
            None => (None, "nothing"),
        };
        Self { name, span, source }
    }

    /// The time of a run's folder: from the first stream's start to the last one's end.
    pub(super) fn from_run(name: String, document: &Value) -> Self {
        let streams = || document["streams"].as_array().into_iter().flatten();
        let times = |key: &'static str| {
            streams().filter_map(move |stream| {
                let time: jiff::Timestamp = stream[key].as_str()?.parse().ok()?;
                u64::try_from(time.as_nanosecond()).ok().map(Time)
            })
        };
        Self {
            name,
            span: times("began").min().zip(times("ended").max()),
            source: "the run",
        }
    }
}

/// A time in seconds since 1970.
fn nanos(seconds: f64) -> Option<Time> {
    let time = Duration::try_from_secs_f64(seconds).ok()?;
    u64::try_from(time.as_nanos()).ok().map(Time)
}

/// The time that ended when a file was last written.
fn before(path: &Path, seconds: f64) -> Option<(Time, Time)> {
    let written = path.metadata().ok()?.modified().ok()?;
    let end = written.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs_f64();
    nanos(end - seconds).zip(nanos(end))
}

/// Counts of the timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    payload_bytes: u64,
    data_packets: u64,
    capable: u64,
    ce: u64,
    cnp: u64,
    retransmitted: u64,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.payload_bytes += other.payload_bytes;
        self.data_packets += other.data_packets;
        self.capable += other.capable;
        self.ce += other.ce;
        self.cnp += other.cnp;
        self.retransmitted += other.retransmitted;
    }
}

/// Counts of a dataset in the windows. The ends of all windows cut time into pieces; each row counts in one of
/// them.
pub(super) struct Beside {
    windows: Vec<Window>,
    /// Starts and ends of windows, in order.
    cuts: Vec<Time>,
    /// Counts from each cut to the next, at each tap: several taps can see the same packets.
    pieces: BTreeMap<TapId, Vec<Counts>>,
    span: Option<Period>,
    episodes: Vec<EpisodeRow>,
}

impl Beside {
    pub(super) fn new(windows: Vec<Window>) -> Self {
        let times = windows.iter().filter_map(|window| window.span);
        let cuts: BTreeSet<Time> = times.flat_map(|(begin, end)| [begin, end]).collect();
        Self {
            pieces: BTreeMap::new(),
            cuts: cuts.into_iter().collect(),
            windows,
            span: None,
            episodes: Vec::new(),
        }
    }

    /// Counts of a window at the tap that saw most of it. `None`: the dataset has nothing of it, or the
    /// window's time is not known.
    fn counts(&self, window: &Window) -> Option<Counts> {
        let (begin, end) = window.span?;
        let covered = self.span.filter(|span| span.first < end && begin < span.last);
        covered?;
        let from = self.cuts.partition_point(|cut| *cut < begin);
        let to = self.cuts.partition_point(|cut| *cut < end);
        let sums = self.pieces.values().map(|pieces| {
            let mut sum = Counts::default();
            pieces
                .get(from..to)
                .unwrap_or_default()
                .iter()
                .for_each(|piece| sum.add(piece));
            sum
        });
        Some(sums.max_by_key(|sum| sum.payload_bytes).unwrap_or_default())
    }

    /// Episodes that overlap a window.
    fn episodes(&self, window: &Window) -> usize {
        let Some((begin, end)) = window.span else {
            return 0;
        };
        let overlaps = |row: &&EpisodeRow| row.start_time < end && begin < row.end_time;
        self.episodes.iter().filter(overlaps).count()
    }

    /// The table of the windows.
    pub(super) fn text(&self, dataset: &Path) -> String {
        let titles = [
            "run",
            "from",
            "lasts",
            "payload",
            "rate",
            "CE",
            "CNPs",
            "retransmitted",
            "episodes",
            "by",
        ];
        let mut rows = vec![titles.map(str::to_owned).to_vec()];
        for window in &self.windows {
            let mut row = vec![window.name.clone()];
            row.extend(match (window.span, self.counts(window)) {
                (None, _) => absent("unknown", "its time is not known"),
                (Some((begin, _)), None) => absent(&shown(begin), "not in the dataset's time"),
                (Some((begin, end)), Some(counts)) => {
                    let seconds = seconds(begin, end);
                    vec![
                        shown(begin),
                        format!("{seconds:.1} s"),
                        roce_spelling::bytes(counts.payload_bytes),
                        super::form::bit_rate(counts.payload_bytes, seconds),
                        counts
                            .ce_share()
                            .map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0)),
                        counts.cnp.to_string(),
                        counts.retransmitted.to_string(),
                        self.episodes(window).to_string(),
                        window.source.to_owned(),
                    ]
                }
            });
            rows.push(row);
        }
        let mut text = format!(
            " beside {}, in the time of each run\n",
            roce_model::text::clean(&dataset.display().to_string())
        );
        text.push_str(&laid(&rows, &(2..9)));
        text
    }

    /// The windows in a document.
    pub(super) fn document(&self, dataset: &Path) -> Value {
        let runs: Vec<Value> = self
            .windows
            .iter()
            .map(|window| {
                let counts = self.counts(window);
                json!({
                    "run": window.name,
                    "by": window.source,
                    "begin_ns": window.span.map(|(begin, _)| begin.0),
                    "end_ns": window.span.map(|(_, end)| end.0),
                    "payload_bytes": counts.map(|counts| counts.payload_bytes),
                    "data_packets": counts.map(|counts| counts.data_packets),
                    "ce_share": counts.and_then(|counts| counts.ce_share()),
                    "cnps": counts.map(|counts| counts.cnp),
                    "retransmitted_packets": counts.map(|counts| counts.retransmitted),
                    "episodes": counts.map(|_| self.episodes(window)),
                })
            })
            .collect();
        json!({ "dataset": dataset.display().to_string(), "runs": runs })
    }
}

impl Counts {
    /// The share of marked packets among those that ECN can mark.
    fn ce_share(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a share of packets")]
        (self.capable > 0).then(|| self.ce as f64 / self.capable as f64)
    }
}

fn absent(from: &str, why: &str) -> Vec<String> {
    let mut row = vec![from.to_owned()];
    row.extend(std::iter::repeat_n("-".to_owned(), 7));
    row.push(why.to_owned());
    row
}

fn seconds(begin: Time, end: Time) -> f64 {
    end.since(begin).seconds()
}

fn shown(time: Time) -> String {
    let time = jiff::Timestamp::from_nanosecond(i128::from(time.0));
    time.map_or_else(
        |_| "-".to_owned(),
        |time| time.strftime("%Y-%m-%dT%H:%M:%S%.1fZ").to_string(),
    )
}

impl Sink for Beside {
    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        for row in 0..rows.len() {
            let small = |values: &Values<u32>| u64::from(values.at(row).copied().unwrap_or(0));
            let time = Time(rows.time.at(row).copied().unwrap_or(0));
            let tap = TapId(rows.tap.at(row).copied().unwrap_or(0));
            let behind = self.cuts.partition_point(|cut| *cut <= time);
            let Some(place) = behind.checked_sub(1) else {
                continue;
            };
            if self.pieces.len() >= MAX_TAPS && !self.pieces.contains_key(&tap) {
                continue;
            }
            let of_tap = self
                .pieces
                .entry(tap)
                .or_insert_with(|| vec![Counts::default(); self.cuts.len()]);
            let Some(piece) = of_tap.get_mut(place) else {
                continue;
            };
            piece.add(&Counts {
                payload_bytes: rows.payload_bytes.at(row).copied().unwrap_or(0),
                data_packets: small(&rows.data_packets),
                capable: small(&rows.ect0) + small(&rows.ect1) + small(&rows.ce),
                ce: small(&rows.ce),
                cnp: small(&rows.cnp),
                retransmitted: small(&rows.retransmitted_packets),
            });
        }
        Ok(())
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        self.span = run.span;
        self.episodes.clone_from(&run.episodes);
        Ok(())
    }
}

/// Reads a dataset into the windows.
///
/// # Errors
/// If the folder has no whole results, or this build reads none.
#[cfg(feature = "parquet")]
pub(super) fn read(dataset: &Path, windows: Vec<Window>) -> anyhow::Result<Beside> {
    let mut beside = Beside::new(windows);
    roce_pipeline::stored::replay(dataset, &mut beside).map_err(crate::output::messages::sink_error)?;
    Ok(beside)
}

/// Reads a dataset into the windows.
///
/// # Errors
/// Always: this build reads none.
#[cfg(not(feature = "parquet"))]
pub(super) fn read(dataset: &Path, windows: Vec<Window>) -> anyhow::Result<Beside> {
    drop(Beside::new(windows));
    anyhow::bail!(
        "{}: this build reads no datasets: it has no Parquet",
        dataset.display()
    )
}

#[cfg(test)]
mod tests {
    use roce_model::TimelineRow;

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn window(name: &str, from: u64, to: u64) -> Window {
        Window {
            name: name.to_owned(),
            span: Some((Time(from * SECOND_NS), Time(to * SECOND_NS))),
            source: "the run",
        }
    }

    #[test]
    fn rows_count_in_each_window_that_has_them() {
        let unknown = Window {
            name: "d".to_owned(),
            span: None,
            source: "nothing",
        };
        let mut beside = Beside::new(vec![
            window("a", 10, 12),
            window("b", 11, 13),
            window("c", 50, 60),
            unknown,
        ]);
        let mut rows = TimelineColumns::default();
        for second in [9, 10, 11, 12, 13, 14] {
            rows.push(&TimelineRow {
                time: Time(second * SECOND_NS),
                payload_bytes: 1_000,
                data_packets: 10,
                ect0: 8,
                ce: 2,
                cnp: Some(1),
                retransmitted_packets: 3,
                ..TimelineRow::default()
            });
        }
        beside.timeline(&rows).unwrap();
        let episode = |from: u64, to: u64| EpisodeRow {
            start_time: Time(from * SECOND_NS),
            end_time: Time(to * SECOND_NS),
            ..EpisodeRow::default()
        };
        let run = RunSummary {
            span: Some(Period {
                first: Time(9 * SECOND_NS),
                last: Time(15 * SECOND_NS),
            }),
            episodes: vec![episode(8, 11), episode(12, 13)],
            ..RunSummary::default()
        };
        beside.finish(&run).unwrap();
        // Two of the rows are in each of the first two windows.
        let document = beside.document(Path::new("out"));
        for (run, episodes) in [(0, 1), (1, 1)] {
            let run = &document["runs"][run];
            assert_eq!(
                (
                    &run["payload_bytes"],
                    &run["cnps"],
                    &run["retransmitted_packets"],
                    &run["episodes"]
                ),
                (&2_000.into(), &2.into(), &6.into(), &episodes.into())
            );
            assert_eq!(run["ce_share"].as_f64(), Some(0.2));
        }
        assert_eq!(document["runs"][2]["payload_bytes"], Value::Null);
        let text = beside.text(Path::new("out"));
        // 2,000 bytes in 2 s.
        assert!(text.contains("8.00 kbit/s"), "{text}");
        assert!(
            text.contains("not in the dataset's time") && text.contains("its time is not known"),
            "{text}"
        );
    }

    #[test]
    fn a_runs_folder_has_its_time() {
        let document = json!({ "streams": [
            { "began": "2026-11-24T09:00:01.500Z", "ended": "2026-11-24T09:00:03Z" },
            { "began": "2026-11-24T09:00:01Z", "ended": null },
        ] });
        let found = Window::from_run("x".to_owned(), &document);
        let (begin, end) = found.span.unwrap();
        assert!((seconds(begin, end) - 2.0).abs() < 1e-9, "{begin:?} {end:?}");
    }
}
