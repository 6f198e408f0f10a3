//! Readings of GPUs over time.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use roce_model::text::escape_json;
use roce_model::{Columns, Counter, Sample, SampleColumns, SampleKind, SampleSeries, Span, Time};
use roce_pipeline::time_of_day;
use serde_json::{Value, json};

use super::form::{GIB, SCHEMA_VERSION, labels};
use crate::command::gpu_tool::{GpuStream, INPUT, Tool, ask, ask_amd};
use crate::command::host::series::{About, Destination, KeptSamples, LOOK, Pace, paced};
use crate::output::messages;
use crate::output::table::laid;

/// Series that are summed up; of more, readings are left out and counted.
const MAX_SERIES: usize = 1 << 16;
/// Intervals without a line after which the tool is said to hang.
const MAX_SILENT_INTERVALS: u32 = 10;

/// Names a series: GPU, quantity, and the values of its labels.
type Key = (Arc<str>, Counter, Vec<Cow<'static, str>>);

/// The values of one series.
#[derive(Clone, Copy, Debug)]
struct Fold {
    readings: u32,
    least: f64,
    most: f64,
    sum: f64,
    last: f64,
    /// By how much a cumulative counter rose.
    change: Option<f64>,
}

/// All readings, summed up and kept.
#[derive(Default)]
struct Readings {
    series: SampleSeries,
    folds: BTreeMap<Key, Fold>,
    left_out: u64,
    kept: Option<KeptSamples>,
}

impl Readings {
    fn add(&mut self, time: Time, samples: &[Sample]) -> anyhow::Result<()> {
        if samples.is_empty() {
            return Ok(());
        }
        let mut rows = SampleColumns::default();
        for sample in samples {
            let row = self.series.row(sample, None);
            self.fold(sample, row.change);
            rows.push(&row);
        }
        match &mut self.kept {
            Some(kept) => kept.add(time, &rows),
            None => Ok(()),
        }
    }

    fn fold(&mut self, sample: &Sample, change: Option<f64>) {
        let key = (Arc::clone(&sample.object), sample.counter, sample.details.clone());
        if self.folds.len() >= MAX_SERIES && !self.folds.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        let value = sample.value;
        let fold = self.folds.entry(key).or_insert(Fold {
            readings: 0,
            least: value,
            most: value,
            sum: 0.0,
            last: value,
            change: None,
        });
        fold.readings = fold.readings.saturating_add(1);
        fold.least = fold.least.min(value);
        fold.most = fold.most.max(value);
        fold.sum += value;
        fold.last = value;
        if let Some(change) = change {
            fold.change = Some(fold.change.unwrap_or_default() + change);
        }
    }
}

/// Where readings come from.
enum GpuReader {
    Stream(GpuStream),
    /// amd-smi, started for each reading.
    Amd(Arc<str>),
    /// No tool knows a GPU.
    Nothing,
}

/// When GPUs are read, and where readings go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan<'a> {
    pub(super) duration: Option<Span>,
    pub(super) interval: Span,
    pub(super) destination: &'a Destination,
    /// The command that runs meanwhile.
    pub(super) run: &'a [OsString],
    /// JSON instead of a table.
    pub(super) is_json: bool,
}

/// All readings, as text, and the dataset that has them.
pub(super) struct ShownReadings {
    pub(super) text: String,
    pub(super) kept: Option<KeptSamples>,
    pub(super) code: ExitCode,
}

/// Reads until the time is over or the command ends.
pub(super) fn series(plan: &Plan<'_>) -> anyhow::Result<ShownReadings> {
    let (found, tool) = ask();
    for note in &found.notes {
        messages::note(INPUT, note);
    }
    let interval = Duration::from_nanos(plan.interval.0).max(LOOK);
    let node = plan.destination.names.node();
    let about = About {
        input: "host gpus",
        format: "gpus",
        interval: plan.interval,
    };
    let mut readings = Readings {
        kept: plan.destination.begin(about)?,
        ..Readings::default()
    };
    let mut source = match tool {
        Some(Tool::NvidiaSmi(columns)) => GpuReader::Stream(GpuStream::start(&columns, interval, &node)?),
        Some(Tool::AmdSmi) => GpuReader::Amd(node.as_str().into()),
        None => GpuReader::Nothing,
    };
    let pace = Pace {
        duration: plan.duration,
        interval,
        look: LOOK,
        run: plan.run,
    };
    let mut samples = Vec::new();
    let mut latest = time_of_day();
    let mut notes: Vec<String> = Vec::new();
    let end = paced(&pace, |is_due| {
        let time = time_of_day();
        samples.clear();
        match &mut source {
            GpuReader::Stream(stream) => {
                stream.read(time, &mut samples);
                let silence = Duration::from_nanos(time.since(latest).0);
                if !samples.is_empty() {
                    latest = time;
                } else if silence > interval.saturating_mul(MAX_SILENT_INTERVALS) && notes.is_empty() {
                    notes.push("nvidia-smi reported nothing for ten intervals".to_owned());
                }
                if !stream.is_open() && notes.is_empty() {
                    notes.push("nvidia-smi has ended before the readings did".to_owned());
                }
            }
            GpuReader::Amd(node) if is_due => {
                samples.extend(ask_amd().iter().flat_map(|found| found.samples(time, node)));
            }
            GpuReader::Amd(_) | GpuReader::Nothing => {}
        }
        readings.add(time, &samples)
    })?;
    if let GpuReader::Stream(stream) = source {
        stream.end();
    }
    notes.extend(end.note().map(str::to_owned));
    if readings.left_out > 0 {
        notes.push(format!(
            "{} left out: too many series",
            roce_spelling::plural(readings.left_out, "reading", "readings")
        ));
    }
    for note in &notes {
        messages::note(INPUT, note);
    }
    let text = if plan.is_json {
        let document = document(&readings.folds, &notes);
        format!("{}\n", escape_json(&format!("{document:#}")))
    } else {
        table(&readings.folds)
    };
    Ok(ShownReadings {
        text,
        kept: readings.kept,
        code: end.code(),
    })
}

/// How values of a unit are written: factor, digits and unit.
fn scale(unit: &'static str) -> (f64, usize, &'static str) {
    match unit {
        "ratio" => (100.0, 0, "%"),
        "bytes" => (GIB, 1, "GiB"),
        "Hz" => (1e-6, 0, "MHz"),
        "W" => (1.0, 0, "W"),
        "celsius" => (1.0, 0, "C"),
        unit => (1.0, 0, unit),
    }
}

/// A table for people: a line for each quantity of each GPU. Reasons of throttling that never were are left out.
fn table(folds: &BTreeMap<Key, Fold>) -> String {
    let mut rows = vec![
        [
            "gpu", "quantity", "unit", "least", "mean", "most", "last", "readings",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for ((object, counter, details), fold) in folds {
        if *counter == Counter::GpuThrottled && fold.most <= 0.0 {
            continue;
        }
        let name = counter.name().trim_start_matches("gpu_");
        let name = [&[Cow::Borrowed(name)], details.as_slice()].concat().join(" ");
        let (factor, digits, unit) = if *counter == Counter::GpuThrottled {
            (100.0, 0, "% of readings")
        } else {
            scale(counter.unit())
        };
        let text = |value: f64| format!("{:.digits$}", value * factor);
        rows.push(vec![
            object.as_ref().to_owned(),
            name,
            unit.to_owned(),
            text(fold.least),
            text(fold.sum / f64::from(fold.readings.max(1))),
            text(fold.most),
            text(fold.last),
            fold.readings.to_string(),
        ]);
    }
    if rows.len() == 1 {
        return String::new();
    }
    laid(&rows, &(3..8))
}

fn document(folds: &BTreeMap<Key, Fold>, notes: &[String]) -> Value {
    let series: Vec<Value> = folds
        .iter()
        .map(|((object, counter, details), fold)| {
            let is_gauge = counter.kind() == SampleKind::Gauge;
            json!({
                "gpu": object.as_ref(),
                "counter": counter.name(),
                "labels": labels(*counter, details),
                "kind": counter.kind().name(),
                "unit": counter.unit(),
                "readings": fold.readings,
                "least": fold.least,
                "mean": is_gauge.then(|| fold.sum / f64::from(fold.readings.max(1))),
                "most": fold.most,
                "last": fold.last,
                "change": fold.change,
            })
        })
        .collect();
    json!({ "schema_version": SCHEMA_VERSION, "series": series, "notes": notes })
}
