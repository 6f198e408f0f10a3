//! The document read back: the summary that it was written from. The rows of `flows` are passed over: who reads a
//! dataset has them in its table.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io::Read;

use roce_model::{
    CnpReceiver, CollectiveCallColumns, CollectiveColumns, CollectiveWaitColumns, Columns, CreditColumns,
    CutLimit, EndColumns, EpisodeColumns, FindingColumns, HopColumns, InbandHopColumns, InputSummary, Layer,
    MrcConnectionColumns, MrcPathColumns, MrcReports, Opcode, Period, Qpn, RankStateColumns, RunKey,
    RunSummary, Span, StepColumns, TapColumns, TapRow, Totals, TraceColumns, UetTrafficColumns,
    VantageColumns, WaitColumns,
};
use serde::Deserialize;
use serde_json::Value;

use super::names::{SCHEMA_VERSION, cut_by, cut_name};
use super::object::{Object, fields, list};
use super::training;
use crate::Error;

/// The summary that the document `from` holds.
///
/// # Errors
/// When it is not such a document, not of this version's schema, or a key is missing or holds something else than in this version.
pub fn read(from: impl Read) -> Result<RunSummary, Error> {
    let stored: StoredDocument = serde_json::from_reader(from).map_err(Error::NoDocument)?;
    match stored.schema_version.as_u64() {
        Some(version) if version == u64::from(SCHEMA_VERSION) => (),
        Some(version) => return Err(Error::Schema { version }),
        None => return Err(Error::key("schema_version")),
    }
    let run = Object::new(&stored.run, "run")?;
    let (first, last) = (run.value("first_time")?, run.value("last_time")?);
    let (taps, cnp_receivers) = taps(&stored.taps)?;
    Ok(RunSummary {
        key: RunKey {
            run_id: run.text("run_id")?.to_owned(),
            host: run.text("host")?.to_owned(),
            capture: run.text("capture")?.to_owned(),
        },
        version: run.text("version")?.to_owned(),
        started: run.value("started")?,
        elapsed: Span(run.value("elapsed_ns")?),
        bin: Span(run.value("bin_ns")?),
        options: options(run.get("options"))?,
        inputs: inputs(run.get("inputs"))?,
        first_frame: run.value("zero_time")?,
        span: Option::zip(first, last).map(|(first, last)| Period { first, last }),
        totals: totals(&stored.totals)?,
        taps,
        clock_steps: Vec::new(),
        stretches: Vec::new(),
        cnp_receivers,
        attempts: Vec::new(),
        exchanges: Vec::new(),
        vantages: rows::<VantageColumns>(&stored.vantages)?,
        hops: rows::<HopColumns>(&stored.hops)?,
        hop_timeline: Vec::new(),
        credited: Vec::new(),
        cut_rings: 0,
        credits: some_rows::<CreditColumns>(&stored.credits)?,
        mrc_connections: some_rows::<MrcConnectionColumns>(&stored.mrc_connections)?,
        mrc_paths: some_rows::<MrcPathColumns>(&stored.mrc_paths)?,
        mrc_reports: MrcReports::default(),
        hops_inband: some_rows::<InbandHopColumns>(&stored.hops_inband)?,
        uet_traffic: some_rows::<UetTrafficColumns>(&stored.uet_traffic)?,
        collective_waits: some_rows::<CollectiveWaitColumns>(&stored.collective_waits)?,
        episodes: rows::<EpisodeColumns>(&stored.episodes)?,
        // Documents of earlier versions have none.
        ends: some_rows::<EndColumns>(&stored.ends)?,
        waits: some_rows::<WaitColumns>(&stored.waits)?,
        traces: some_rows::<TraceColumns>(&stored.traces)?,
        collective_calls: some_rows::<CollectiveCallColumns>(&stored.collective_calls)?,
        rank_states: some_rows::<RankStateColumns>(&stored.rank_states)?,
        collectives: some_rows::<CollectiveColumns>(&stored.collectives)?,
        steps: rows::<StepColumns>(&stored.steps)?,
        training_log: training::fit(&stored.training_log),
        findings: rows::<FindingColumns>(&stored.findings)?,
        sentence: run.get("sentence").as_str().unwrap_or_default().to_owned(),
    })
}

/// The keys of the document that are read.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct StoredDocument {
    schema_version: Value,
    run: Value,
    totals: Value,
    taps: Value,
    vantages: Value,
    hops: Value,
    episodes: Value,
    ends: Value,
    waits: Value,
    #[serde(default)]
    credits: Value,
    #[serde(default)]
    collective_waits: Value,
    mrc_connections: Value,
    mrc_paths: Value,
    #[serde(default)]
    uet_traffic: Value,
    #[serde(default)]
    hops_inband: Value,
    training_log: Value,
    traces: Value,
    collective_calls: Value,
    rank_states: Value,
    #[serde(default)]
    collectives: Value,
    steps: Value,
    findings: Value,
}

/// The objects of the list `key`, each made into something.
fn each<T>(items: &Value, key: &str, read: impl Fn(Object<'_>) -> Result<T, Error>) -> Result<Vec<T>, Error> {
    let items = list(items, key)?.iter();
    items.map(|item| read(Object::new(item, key)?)).collect()
}

fn rows<C: Columns>(items: &Value) -> Result<Vec<C::Row>, Error> {
    each(items, C::TABLE.name, |object| object.row::<C>())
}

/// Rows under a key that not every document has.
fn some_rows<C: Columns>(items: &Value) -> Result<Vec<C::Row>, Error> {
    match items {
        Value::Null => Ok(Vec::new()),
        items => rows::<C>(items),
    }
}

fn options(options: &Value) -> Result<Vec<(String, String)>, Error> {
    let option = |(name, value): (&String, &Value)| match value.as_str() {
        Some(value) => Ok((name.clone(), value.to_owned())),
        None => Err(Error::key(&format!("run.options.{name}"))),
    };
    fields(options, "run.options")?.iter().map(option).collect()
}

fn inputs(items: &Value) -> Result<Vec<InputSummary>, Error> {
    let owned = |text: Option<Cow<'static, str>>| text.map(Cow::into_owned);
    each(items, "run.inputs", |input| {
        let warnings = list(input.get("warnings"), "run.inputs.warnings")?.iter();
        Ok(InputSummary {
            input: input.text("input")?.to_owned(),
            format: input.text("format")?.to_owned(),
            bytes: input.value("bytes")?,
            sha256: owned(input.value("sha256")?),
            frames: input.value("frames")?,
            first_time: input.value("first_time")?,
            last_time: input.value("last_time")?,
            truncated: input.value("truncated")?,
            error: owned(input.value("error")?),
            warnings: warnings
                .map(|warning| {
                    let text = warning.as_str().ok_or_else(|| input.wrong("warnings"))?;
                    Ok(text.to_owned())
                })
                .collect::<Result<_, _>>()?,
        })
    })
}

/// The counts; one that an older document does not have is 0, as one that an older version did not make.
fn totals(stored: &Value) -> Result<Totals, Error> {
    let mut totals = Totals::default();
    let of = Object::new(stored, "totals")?;
    for (name, value) in fields(stored, "totals")? {
        if let Some(count) = totals.count_mut(name) {
            *count = value.as_u64().ok_or_else(|| of.wrong(name))?;
        }
    }
    for (opcode, entry) in fields(of.get("opcodes"), "totals.opcodes")? {
        let number = opcode
            .strip_prefix("0x")
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let number = number.ok_or_else(|| of.wrong("opcodes"))?;
        let packets = Object::new(entry, "totals.opcodes")?.value("packets")?;
        totals.opcodes.set(Opcode(number), packets);
    }
    let stops = each(of.get("stops"), "totals.stops", |stop| {
        Ok((stopped(&stop)?, stop.value("frames")?))
    })?;
    totals.stops = stops.into_iter().collect();
    Ok(totals)
}

fn stopped(stop: &Object<'_>) -> Result<(Layer, CutLimit), Error> {
    let named = |name: &str| Layer::ALL.into_iter().find(|layer| layer.to_string() == name);
    let layer = named(stop.text("layer")?).ok_or_else(|| stop.wrong("layer"))?;
    let (cut, by): (_, Option<Cow<'static, str>>) = (stop.text("cut")?, stop.value("cut_by")?);
    let mut cuts = vec![CutLimit::Snaplen, CutLimit::Frame, CutLimit::Depth];
    cuts.extend(Layer::ALL.map(CutLimit::Length));
    let cut = cuts
        .into_iter()
        .find(|known| cut_name(*known) == cut && cut_by(*known).as_deref() == by.as_deref());
    Ok((layer, cut.ok_or_else(|| stop.wrong("cut"))?))
}

/// The taps, and who received CNPs at them.
fn taps(items: &Value) -> Result<(Vec<TapRow>, Vec<CnpReceiver>), Error> {
    let mut receivers = Vec::new();
    let of_taps = each(items, "taps", |object| {
        let tap = object.row::<TapColumns>()?;
        let of_tap = each(object.get("cnp_receivers"), "taps.cnp_receivers", |object| {
            Ok(CnpReceiver {
                tap: tap.tap,
                source: object.value("source")?,
                destination: object.value("destination")?,
                qpn: Qpn::new(object.value("qpn")?),
                cnp: object.value("cnp")?,
                dscp: object.value("dscp")?,
                pcp: object.value("pcp")?,
                first_time: object.value("first_time")?,
                last_time: object.value("last_time")?,
            })
        })?;
        Ok((tap, of_tap))
    })?;
    let mut taps = Vec::with_capacity(of_taps.len());
    let mut numbers = BTreeSet::new();
    for (tap, of_tap) in of_taps {
        if !numbers.insert(tap.tap) {
            // Each of them would get all the rows of that tap.
            return Err(Error::key("taps.tap"));
        }
        taps.push(tap);
        receivers.extend(of_tap);
    }
    // The most often notified first, as a run has them.
    receivers.sort_by_key(|receiver| Reverse(receiver.cnp));
    Ok((taps, receivers))
}
