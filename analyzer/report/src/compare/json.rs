//! The comparison as a JSON document: one object with stable keys (`docs/schema.md`).

use std::io::{self, Write};

use roce_model::Severity;
use roce_model::text::escape_json;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

use super::{ComparedQuantity, Comparison, FindingChange, SCHEMA_VERSION, Scope, Side};
use crate::Error;

/// Writes the document, and a line feed after it.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(comparison: &Comparison, mut out: impl Write) -> Result<(), Error> {
    serde_json::to_string_pretty(&Document::new(comparison))
        .map_err(io::Error::from)
        .and_then(|text| writeln!(out, "{}", escape_json(&text)))
        .and_then(|()| out.flush())
        .map_err(Error::Json)
}

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    a: JsonRun<'a>,
    b: JsonRun<'a>,
    confidence: f64,
    matters: f64,
    notes: &'a [String],
    findings: Vec<JsonFinding<'a>>,
    pairs_left_out: u64,
    scopes: Scopes<'a>,
}

#[derive(Serialize)]
struct JsonRun<'a> {
    path: &'a str,
    length_ns: u64,
    flows: u64,
    payload_bytes: u64,
    bin_ns: u64,
    slices: u64,
    slice_ns: u64,
}

#[derive(Serialize)]
struct JsonFinding<'a> {
    id: &'a str,
    a: Option<&'static str>,
    b: Option<&'static str>,
    regression: bool,
    may_be_chance: bool,
    summary: &'a str,
}

struct Scopes<'a>(&'a [Scope]);

#[derive(Serialize)]
struct JsonScope<'a> {
    source: Option<&'a str>,
    destination: Option<&'a str>,
    compared: Vec<JsonLine>,
}

#[derive(Serialize)]
struct JsonLine {
    metric: &'static str,
    unit: &'static str,
    outcome: &'static str,
    a: Option<f64>,
    b: Option<f64>,
    difference: Option<f64>,
    relative: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    visible: Option<f64>,
}

impl<'a> Document<'a> {
    fn new(comparison: &'a Comparison) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            a: JsonRun::new(&comparison.a),
            b: JsonRun::new(&comparison.b),
            confidence: comparison.confidence,
            matters: comparison.matters,
            notes: &comparison.notes,
            findings: comparison.findings.iter().map(JsonFinding::new).collect(),
            pairs_left_out: comparison.pairs_left_out,
            scopes: Scopes(&comparison.scopes),
        }
    }
}

impl<'a> JsonRun<'a> {
    fn new(side: &'a Side) -> Self {
        Self {
            path: &side.path,
            length_ns: side.length.0,
            flows: side.flows,
            payload_bytes: side.payload_bytes,
            bin_ns: side.bin.0,
            slices: side.slices,
            slice_ns: side.slice.0,
        }
    }
}

impl<'a> JsonFinding<'a> {
    fn new(change: &'a FindingChange) -> Self {
        Self {
            id: &change.id,
            a: change.a.map(Severity::name),
            b: change.b.map(Severity::name),
            regression: change.is_regression(),
            may_be_chance: change.may_be_chance,
            summary: &change.summary,
        }
    }
}

impl Serialize for Scopes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for scope in self.0 {
            let pair = scope.pair.as_ref();
            list.serialize_element(&JsonScope {
                source: pair.map(|(source, _)| source.as_str()),
                destination: pair.map(|(_, destination)| destination.as_str()),
                compared: scope.compared.iter().map(JsonLine::new).collect(),
            })?;
        }
        list.end()
    }
}

impl JsonLine {
    fn new(compared: &ComparedQuantity) -> Self {
        let metric = compared.quantity.describe();
        Self {
            metric: metric.key,
            unit: metric.unit.name(),
            outcome: compared.outcome.name(),
            a: compared.a,
            b: compared.b,
            difference: compared.difference(),
            relative: compared.relative(),
            low: compared.interval.map(|(low, _)| low),
            high: compared.interval.map(|(_, high)| high),
            visible: compared.visible,
        }
    }
}
