//! The JSON document of a run: what `--format json` prints and `run.json` holds.
//!
//! One object with stable keys: `schema_version`, `run` (what was read and how), `totals`, and the tables `taps` (with
//! the receivers of CNPs), `vantages`, `hops`, `flows`, `episodes`, `steps` and `findings` as lists of objects whose
//! keys are the tables' columns (`docs/schema.md`). An empty list says that there was nothing of the kind.
//! `capture` is there for thin captures alone (finding `capture.thin`). Samples are there while they are few, and the key is absent where
//! there are none. `traces`, `collective_calls` and `rank_states` are absent where no trace was merged.
//! The flows are those that matter most; `flows_left_out` counts the others. On request all are written while they close,
//! before the other keys, so that none of them is kept.
//! People read it too: the upper levels are laid out over lines, each row is one line. How it is laid out is left to
//! `layout`; [`read`] reads the document back.

mod cell;
mod layout;
mod names;
mod object;
mod read;
mod samples;
mod training;

use std::collections::BTreeMap;
use std::io::{self, Write};

use roce_model::{
    Cell, CnpReceiver, CollectiveCallColumns, CollectiveColumns, CollectiveWaitColumns, Columns,
    CreditColumns, CutLimit, EndColumns, EndKind, EndRow, EpisodeColumns, FindingColumns, FindingRow,
    FlowColumns, FlowRow, HopColumns, InbandHopColumns, InputSummary, Layer, MrcConnectionColumns,
    MrcPathColumns, Period, RankStateColumns, RunKey, RunSummary, SampleColumns, Sink, SinkError,
    StepColumns, TapColumns, TapId, TapRow, Time, TraceColumns, UetTrafficColumns, VantageColumns,
    WaitColumns,
};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::Error;
use crate::kept::KeptFlows;
use cell::Value;
use layout::Layout;
use names::{cut_by, cut_name};
use samples::{FewSamples, SampleList};

pub use names::SCHEMA_VERSION;
pub use read::read;
pub use samples::sample_lines;

/// The flows that the document has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JsonFlows {
    /// At most so many rows: those with the most trouble, then those with the most bytes.
    Most(usize),
    /// All rows, written when they close.
    All,
}

impl JsonFlows {
    /// Rows of a document, unless another number was requested: 3 MB of text.
    pub const DEFAULT: Self = Self::Most(1_000);
}

impl Default for JsonFlows {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Writes the JSON document when the run ends. Of the flows it keeps only those that the document has.
#[derive(Debug)]
pub struct JsonReport<W> {
    out: W,
    flows: Flows,
    samples: FewSamples,
}

#[derive(Debug)]
enum Flows {
    Kept(KeptFlows),
    Streamed {
        /// Number of rows that are written.
        written: u64,
    },
}

impl<W: Write> JsonReport<W> {
    /// Will write to `out`, which should be buffered.
    pub fn new(out: W, flows: JsonFlows) -> Self {
        let flows = match flows {
            JsonFlows::Most(rows) => Flows::Kept(KeptFlows::new(rows)),
            JsonFlows::All => Flows::Streamed { written: 0 },
        };
        Self {
            out,
            flows,
            samples: FewSamples::default(),
        }
    }

    /// Where it wrote to.
    pub fn into_inner(self) -> W {
        self.out
    }
}

/// The document up to the first flow, where flows are written as they close.
const STREAM_HEAD: &str = "{\n  \"schema_version\": ";
const STREAM_FLOWS: &str = ",\n  \"flows\": [";

impl<W: Write> Sink for JsonReport<W> {
    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        match &mut self.flows {
            Flows::Kept(kept) => kept.extend(rows),
            Flows::Streamed { written } => {
                for row in rows {
                    stream(row, written, &mut self.out).map_err(Error::Json)?;
                }
            }
        }
        Ok(())
    }

    fn samples(&mut self, rows: &SampleColumns) -> Result<(), SinkError> {
        self.samples.add(rows);
        Ok(())
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        let samples = self.samples.list();
        match &mut self.flows {
            Flows::Kept(kept) => {
                let seen = kept.seen();
                let rows = kept.take();
                let flows: Vec<&FlowRow> = rows.iter().map(|row| &**row).collect();
                let left_out = seen - flows.len() as u64;
                let flows = Some((&flows[..], left_out));
                Ok(laid_out(
                    &Document {
                        run,
                        flows,
                        samples,
                        is_for_page: false,
                    },
                    Layout::default(),
                    &mut self.out,
                )?)
            }
            Flows::Streamed { written } => Ok(stream_end(run, *written, samples, &mut self.out)?),
        }
    }
}

/// Writes a row of `flows` before the rest of the document is known.
fn stream(row: &FlowRow, written: &mut u64, out: &mut impl Write) -> io::Result<()> {
    if *written == 0 {
        write!(out, "{STREAM_HEAD}{SCHEMA_VERSION}{STREAM_FLOWS}\n    ")?;
    } else {
        out.write_all(b",\n    ")?;
    }
    *written += 1;
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Layout::for_row());
    Row::<'_, FlowColumns>(row)
        .serialize(&mut serializer)
        .map_err(io::Error::from)
}

/// Writes the rest of the document behind its flows.
fn stream_end(
    run: &RunSummary,
    written: u64,
    samples: Option<SampleList<'_>>,
    mut out: impl Write,
) -> Result<(), Error> {
    let begin = if written == 0 {
        write!(out, "{STREAM_HEAD}{SCHEMA_VERSION}{STREAM_FLOWS}],")
    } else {
        out.write_all(b"\n  ],")
    };
    begin.map_err(Error::Json)?;
    let rest = AfterBrace { out, is_past: false };
    laid_out(
        &Document {
            run,
            flows: None,
            samples,
            is_for_page: false,
        },
        Layout::default(),
        rest,
    )
}

/// Leaves out the first byte: the brace of an object whose first keys are written.
struct AfterBrace<W> {
    out: W,
    is_past: bool,
}

impl<W: Write> Write for AfterBrace<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_past || bytes.is_empty() {
            return self.out.write(bytes);
        }
        self.is_past = true;
        Ok(1)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes the document of a run with these flows, in the order given, and a line feed after it.
///
/// # Errors
/// When `out` cannot be written to.
pub fn document(run: &RunSummary, flows: &[&FlowRow], out: impl Write) -> Result<(), Error> {
    let flows = Some((flows, 0));
    laid_out(
        &Document {
            run,
            flows,
            samples: None,
            is_for_page: false,
        },
        Layout::default(),
        out,
    )
}

/// Writes the document without flows for the HTML page, where no text may steer whoever shows it.
pub(crate) fn document_for_page(run: &RunSummary, out: impl Write) -> Result<(), Error> {
    let document = Document {
        run,
        flows: Some((&[], 0)),
        samples: None,
        is_for_page: true,
    };
    laid_out(&document, Layout::for_page(), out)
}

fn laid_out(document: &Document<'_>, layout: Layout, mut out: impl Write) -> Result<(), Error> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, layout);
    document
        .serialize(&mut serializer)
        .map_err(io::Error::from)
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush())
        .map_err(Error::Json)
}

struct Document<'a> {
    run: &'a RunSummary,
    /// The rows, and how many were left out. `None`: they are written, and so is the version of the schema.
    flows: Option<(&'a [&'a FlowRow], u64)>,
    samples: Option<SampleList<'a>>,
    is_for_page: bool,
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if self.flows.is_some() {
            map.serialize_entry("schema_version", &SCHEMA_VERSION)?;
        }
        map.serialize_entry("run", &RunObject(self.run))?;
        map.serialize_entry("totals", &Counts(self.run))?;
        if let Some(thin) = thin_finding(self.run) {
            map.serialize_entry("capture", &ThinObject(thin))?;
        }
        let mut receivers: BTreeMap<TapId, Vec<&CnpReceiver>> = BTreeMap::new();
        for receiver in &self.run.cnp_receivers {
            receivers.entry(receiver.tap).or_default().push(receiver);
        }
        map.serialize_entry(
            "taps",
            &List(|| {
                self.run.taps.iter().map(|tap| Tap {
                    tap,
                    receivers: receivers.get(&tap.tap).map_or(&[], Vec::as_slice),
                })
            }),
        )?;
        let run = self.run;
        map.serialize_entry(
            "vantages",
            &List(|| run.vantages.iter().map(Row::<'_, VantageColumns>)),
        )?;
        map.serialize_entry("hops", &List(|| run.hops.iter().map(Row::<'_, HopColumns>)))?;
        if let Some((flows, _)) = self.flows {
            map.serialize_entry(
                "flows",
                &List(|| flows.iter().copied().map(Row::<'_, FlowColumns>)),
            )?;
        }
        // The page says this in its own words.
        if !self.is_for_page {
            let left_out = self.flows.map_or(0, |(_, left_out)| left_out);
            map.serialize_entry("flows_left_out", &left_out)?;
        }
        if let Some(samples) = &self.samples {
            map.serialize_entry("samples", samples)?;
        }
        map.serialize_entry(
            "episodes",
            &List(|| run.episodes.iter().map(Row::<'_, EpisodeColumns>)),
        )?;
        map.serialize_entry(
            "collectives",
            &List(|| run.collectives.iter().map(Row::<'_, CollectiveColumns>)),
        )?;
        map.serialize_entry("ends", &List(|| failed(run).map(Row::<'_, EndColumns>)))?;
        map.serialize_entry("waits", &List(|| run.waits.iter().map(Row::<'_, WaitColumns>)))?;
        let credits = List(|| run.credits.iter().map(Row::<'_, CreditColumns>));
        map.serialize_entry("credits", &credits)?;
        let late = List(|| run.collective_waits.iter().map(Row::<'_, CollectiveWaitColumns>));
        map.serialize_entry("collective_waits", &late)?;
        // Only runs with packets of MRC and UET have them.
        if !run.mrc_connections.is_empty() {
            let connections = List(|| run.mrc_connections.iter().map(Row::<'_, MrcConnectionColumns>));
            map.serialize_entry("mrc_connections", &connections)?;
            let paths = List(|| run.mrc_paths.iter().map(Row::<'_, MrcPathColumns>));
            map.serialize_entry("mrc_paths", &paths)?;
        }
        if !run.uet_traffic.is_empty() {
            let traffic = List(|| run.uet_traffic.iter().map(Row::<'_, UetTrafficColumns>));
            map.serialize_entry("uet_traffic", &traffic)?;
        }
        if !run.hops_inband.is_empty() {
            let hops = List(|| run.hops_inband.iter().map(Row::<'_, InbandHopColumns>));
            map.serialize_entry("hops_inband", &hops)?;
        }
        map.serialize_entry("steps", &List(|| run.steps.iter().map(Row::<'_, StepColumns>)))?;
        // Only runs with --training-log have it.
        if let Some(fit) = &run.training_log {
            map.serialize_entry("training_log", &training::object(fit))?;
        }
        // Only runs with --merge have them.
        if !run.traces.is_empty() {
            map.serialize_entry("traces", &List(|| run.traces.iter().map(Row::<'_, TraceColumns>)))?;
            map.serialize_entry(
                "collective_calls",
                &List(|| run.collective_calls.iter().map(Row::<'_, CollectiveCallColumns>)),
            )?;
            let states = List(|| run.rank_states.iter().map(Row::<'_, RankStateColumns>));
            map.serialize_entry("rank_states", &states)?;
        }
        map.serialize_entry(
            "findings",
            &List(|| run.findings.iter().map(Row::<'_, FindingColumns>)),
        )?;
        map.end()
    }
}

struct RunObject<'a>(&'a RunSummary);

impl Serialize for RunObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let run = self.0;
        let mut map = serializer.serialize_map(None)?;
        for (column, value) in RunKey::COLUMNS.iter().zip(run.key.values()) {
            map.serialize_entry(column.name, value)?;
        }
        map.serialize_entry("version", &run.version)?;
        map.serialize_entry("started", &Value(Cell::Time(run.started)))?;
        map.serialize_entry("elapsed_ns", &run.elapsed.0)?;
        map.serialize_entry("bin_ns", &run.bin.0)?;
        map.serialize_entry("first_time", &run.span.map(|span| Value(Cell::Time(span.first))))?;
        map.serialize_entry("zero_time", &run.span.map(|_| Value(Cell::Time(run.zero()))))?;
        map.serialize_entry("last_time", &run.span.map(|span| Value(Cell::Time(span.last))))?;
        let length = run.span.map(Period::length).unwrap_or_default();
        map.serialize_entry("sentence", &run.sentence)?;
        map.serialize_entry("goodput_bps", &run.totals.goodput_bps(length))?;
        map.serialize_entry("options", &Pairs(&run.options))?;
        map.serialize_entry("inputs", &List(|| run.inputs.iter().map(Input)))?;
        map.end()
    }
}

/// The finding that the capture holds some packets only.
fn thin_finding(run: &RunSummary) -> Option<&FindingRow> {
    run.findings.iter().find(|finding| finding.id == "capture.thin")
}

/// The contents of a thin capture: its shares and estimates with their bounds, and the rules that cannot tell anything.
struct ThinObject<'a>(&'a FindingRow);

impl Serialize for ThinObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("thin", &Value(Cell::Evidence(&self.0.evidence)))?;
        map.end()
    }
}

struct Pairs<'a>(&'a [(String, String)]);

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

struct Input<'a>(&'a InputSummary);

impl Serialize for Input<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let input = self.0;
        let time = |time: Option<Time>| time.map(|time| Value(Cell::Time(time)));
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("input", &input.input)?;
        map.serialize_entry("format", &input.format)?;
        map.serialize_entry("bytes", &input.bytes)?;
        map.serialize_entry("sha256", &input.sha256)?;
        map.serialize_entry("frames", &input.frames)?;
        map.serialize_entry("first_time", &time(input.first_time))?;
        map.serialize_entry("last_time", &time(input.last_time))?;
        map.serialize_entry("truncated", &input.truncated)?;
        map.serialize_entry("error", &input.error)?;
        map.serialize_entry("warnings", &input.warnings)?;
        map.end()
    }
}

struct Counts<'a>(&'a RunSummary);

impl Serialize for Counts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let totals = &self.0.totals;
        let mut map = serializer.serialize_map(None)?;
        for (name, count, _) in totals.counts() {
            map.serialize_entry(name, &count)?;
        }
        map.serialize_entry("new_payload_bytes", &totals.new_payload_bytes())?;
        map.serialize_entry("stops", &List(|| totals.stops.iter().map(Stop)))?;
        map.serialize_entry("opcodes", &Opcodes(self.0))?;
        map.end()
    }
}

struct Stop<'a>((&'a (Layer, CutLimit), &'a u64));

impl Serialize for Stop<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ((layer, cut), frames) = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("layer", &layer.to_string())?;
        map.serialize_entry("cut", &cut_name(*cut))?;
        map.serialize_entry("cut_by", &cut_by(*cut))?;
        map.serialize_entry("frames", frames)?;
        map.end()
    }
}

struct Opcodes<'a>(&'a RunSummary);

impl Serialize for Opcodes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Entry {
            name: String,
            packets: u64,
        }
        serializer.collect_map(self.0.totals.opcodes.seen().map(|(opcode, packets)| {
            (
                format!("{:#04x}", opcode.0),
                Entry {
                    name: opcode.to_string(),
                    packets,
                },
            )
        }))
    }
}

struct Tap<'a> {
    tap: &'a TapRow,
    receivers: &'a [&'a CnpReceiver],
}

impl Serialize for Tap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        entries::<TapColumns, S::SerializeMap>(self.tap, &mut map)?;
        let receivers = || self.receivers.iter().copied().map(Receiver);
        map.serialize_entry("cnp_receivers", &List(receivers))?;
        map.end()
    }
}

struct Receiver<'a>(&'a CnpReceiver);

impl Serialize for Receiver<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let receiver = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("source", &Value(Cell::Address(receiver.source)))?;
        map.serialize_entry("destination", &Value(Cell::Address(receiver.destination)))?;
        map.serialize_entry("qpn", &receiver.qpn.value())?;
        map.serialize_entry("cnp", &receiver.cnp)?;
        map.serialize_entry("dscp", &receiver.dscp)?;
        map.serialize_entry("pcp", &receiver.pcp)?;
        map.serialize_entry("first_time", &Value(Cell::Time(receiver.first_time)))?;
        map.serialize_entry("last_time", &Value(Cell::Time(receiver.last_time)))?;
        map.end()
    }
}

/// A row of a table: every column under its name.
struct Row<'a, C: Columns>(&'a C::Row);

impl<C: Columns> Serialize for Row<'_, C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        entries::<C, S::SerializeMap>(self.0, &mut map)?;
        map.end()
    }
}

fn entries<C: Columns, M: SerializeMap>(row: &C::Row, map: &mut M) -> Result<(), M::Error> {
    let mut result = Ok(());
    C::cells(row, |column, cell| {
        if result.is_ok() {
            result = map.serialize_entry(column.name, &Value(cell));
        }
    });
    result
}

/// A list made again for each reading.
struct List<F>(F);

impl<F, I> Serialize for List<F>
where
    F: Fn() -> I,
    I: Iterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

#[cfg(test)]
mod tests;

/// The connections that failed. Those that were closed are in the dataset alone.
fn failed(run: &RunSummary) -> impl Iterator<Item = &EndRow> {
    run.ends.iter().filter(|row| row.outcome != EndKind::Closed)
}
