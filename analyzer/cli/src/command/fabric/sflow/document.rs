//! Estimates as one JSON document, or as rows: an estimate on each.

use std::io::{BufWriter, Write};

use roce_model::text::escape_json;
use roce_sflow::{
    AgentKey, AgentSummary, Estimate, Estimates, OpcodeShare, Place, Port, SampleCounts, SampleSummary,
    ShareEstimate, TalkerShare,
};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Value, json};

use crate::output::csv::CsvWriter;

/// Version of the document's and of the rows' form.
const SCHEMA_VERSION: u32 = 1;
/// Columns of a row.
const COLUMNS: [&str; 12] = [
    "agent",
    "sub_agent",
    "place",
    "interface",
    "quantity",
    "name",
    "unit",
    "samples",
    "of_samples",
    "value",
    "low",
    "high",
];

/// The name of an interface: its ifIndex, or what is known in place of one.
pub(super) fn port_name(port: Port) -> String {
    match port {
        Port::Interface(index) => index.to_string(),
        Port::Unknown => "unknown".to_owned(),
        Port::Internal => "internal".to_owned(),
        Port::Several(0) => "several".to_owned(),
        Port::Several(count) => format!("{count} interfaces"),
        Port::Discarded(_) => "discarded".to_owned(),
    }
}

/// Name of a place, and of its interface if it has one.
pub(super) fn place_name(place: Place) -> (&'static str, Option<String>) {
    match place {
        Place::All => ("all", None),
        Place::Input(port) => ("input", Some(port_name(port))),
        Place::Output(port) => ("output", Some(port_name(port))),
    }
}

fn estimate(found: Estimate) -> Value {
    json!({"value": found.value, "low": found.low, "high": found.high})
}

fn share(found: &ShareEstimate) -> Value {
    json!({"samples": found.samples, "of_samples": found.of_samples, "share": found.share.map(estimate)})
}

/// Names and values of the shares of a place.
fn shares(found: &Estimates) -> [(&'static str, &ShareEstimate); 5] {
    [
        ("roce_of_packets", &found.roce),
        ("uet_of_packets", &found.uet),
        ("ce_of_roce_data", &found.marked),
        ("not_ect_of_roce_data", &found.not_capable),
        ("cnp_of_roce", &found.cnps),
    ]
}

fn estimates(place: Place, found: &Estimates) -> Value {
    let (place, interface) = place_name(place);
    let mut object = json!({
        "place": place,
        "interface": interface,
        "samples": found.samples,
        "packets": estimate(found.packets),
        "bytes": estimate(found.bytes),
    });
    for (name, found) in shares(found) {
        object[name] = share(found);
    }
    object
}

fn talker(found: &TalkerShare, agents: &[AgentSummary]) -> Value {
    let agent = agents.get(found.agent).map(|agent| agent.key);
    json!({
        "source": found.source.to_string(),
        "destination": found.destination.to_string(),
        "agent": agent.map(|agent| agent.address.to_string()),
        "sub_agent": agent.map(|agent| agent.sub_agent),
        "of_roce": share(&found.share),
        "packets": estimate(found.packets),
        "bytes": found.bytes,
    })
}

/// Names and values of counts.
fn counts(found: &SampleCounts) -> [(&'static str, u64); 19] {
    [
        ("datagrams", found.datagrams),
        ("lost_datagrams", found.lost_datagrams),
        ("late_datagrams", found.late_datagrams),
        ("copies", found.copies),
        ("restarts", found.restarts),
        ("missing_samples", found.missing_samples),
        ("dropped_samples", found.dropped_samples),
        ("samples_without_header", found.without_header),
        ("counter_samples", found.counters),
        ("discarded_packet_samples", found.discarded),
        ("unknown_samples", found.unknown),
        ("broken_samples", found.broken),
        ("left_out_samples", found.left_out),
        ("sources", found.sources),
        ("sources_by_pool", found.sources_by_pool),
        ("sources_without_pool", found.sources_without_pool),
        ("lowest_rate", u64::from(found.lowest_rate)),
        ("highest_rate", u64::from(found.highest_rate)),
        ("rate_changes", found.rate_changes),
    ]
}

/// A list in a document. Each element is made as it is written: the elements of a document together take a gigabyte.
struct ElementList<'a, T>(&'a [T], &'a dyn Fn(&T) -> Value);

impl<T> Serialize for ElementList<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(self.1))
    }
}

/// An agent, of all of them.
struct AgentDocument<'a>(&'a AgentSummary, &'a [AgentSummary]);

impl Serialize for AgentDocument<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(found, agents) = self;
        let counts: Map<_, _> = counts(&found.counts)
            .into_iter()
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect();
        let opcode = |found: &OpcodeShare| {
            json!({
                "opcode": found.opcode.0,
                "name": found.opcode.to_string(),
                "of_roce": share(&found.share),
            })
        };
        let mut object = to.serialize_map(None)?;
        object.serialize_entry("agent", &found.key.address.to_string())?;
        object.serialize_entry("sub_agent", &found.key.sub_agent)?;
        object.serialize_entry("counts", &counts)?;
        object.serialize_entry("samples_ingress_and_egress", &found.has_both_directions)?;
        let places = ElementList(&found.places, &|(place, found)| estimates(*place, found));
        object.serialize_entry("places", &places)?;
        object.serialize_entry("opcodes_of_roce", &ElementList(&found.opcodes, &opcode))?;
        let talkers = ElementList(&found.talkers, &|found| talker(found, agents));
        object.serialize_entry("talkers", &talkers)?;
        object.end()
    }
}

/// All of it.
struct SampleDocument<'a>(&'a SampleSummary);

impl Serialize for SampleDocument<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(summary) = self;
        let agents = &summary.agents[..];
        let period = summary.period;
        let documents: Vec<_> = agents.iter().map(|found| AgentDocument(found, agents)).collect();
        let talkers = ElementList(&summary.talkers, &|found| talker(found, agents));
        let never = ["losses", "retransmissions", "order", "time of one message"];
        let mut object = to.serialize_map(None)?;
        object.serialize_entry("schema_version", &SCHEMA_VERSION)?;
        object.serialize_entry("confidence", &0.95)?;
        object.serialize_entry("first_time_ns", &period.map(|period| period.first.0))?;
        object.serialize_entry("last_time_ns", &period.map(|period| period.last.0))?;
        object.serialize_entry("datagrams", &summary.datagrams)?;
        object.serialize_entry("broken_datagrams", &summary.broken_datagrams)?;
        object.serialize_entry("left_out_datagrams", &summary.left_out)?;
        object.serialize_entry("agents", &documents)?;
        object.serialize_entry("talkers", &talkers)?;
        object.serialize_entry("never_shown", &never)?;
        object.end()
    }
}

/// Writes the document. It has no text but this program's own, numbers and addresses.
pub(super) fn json(summary: &SampleSummary, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut out = BufWriter::new(out);
    serde_json::to_writer_pretty(&mut out, &SampleDocument(summary))?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

/// A row: the values of the columns behind agent and sub-agent.
type RowValues = [Value; COLUMNS.len() - 2];

/// Calls `take` with each row.
fn rows(
    summary: &SampleSummary,
    take: &mut dyn FnMut(AgentKey, RowValues) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let share_row =
        |place: (&str, &Option<String>), quantity, name: Option<String>, found: &ShareEstimate| {
            let (value, low, high) = bounds(found.share);
            [
                json!(place.0),
                json!(place.1),
                json!(quantity),
                json!(name),
                json!("share"),
                json!(found.samples),
                json!(found.of_samples),
                value,
                low,
                high,
            ]
        };
    for agent in &summary.agents {
        let all = ("all", &None);
        for (name, value) in counts(&agent.counts) {
            let none = Value::Null;
            let unit = json!("count");
            take(
                agent.key,
                [
                    json!("all"),
                    none.clone(),
                    json!(name),
                    none.clone(),
                    unit,
                    none.clone(),
                    none.clone(),
                    json!(value),
                    none.clone(),
                    none,
                ],
            )?;
        }
        for (place, found) in &agent.places {
            let (name, interface) = place_name(*place);
            for (quantity, unit, total) in [
                ("packets", "packets", found.packets),
                ("bytes", "bytes", found.bytes),
            ] {
                let (value, low, high) = bounds(Some(total));
                take(
                    agent.key,
                    [
                        json!(name),
                        json!(interface),
                        json!(quantity),
                        Value::Null,
                        json!(unit),
                        json!(found.samples),
                        json!(found.samples),
                        value,
                        low,
                        high,
                    ],
                )?;
            }
            for (quantity, found) in shares(found) {
                take(agent.key, share_row((name, &interface), quantity, None, found))?;
            }
        }
        for found in &agent.opcodes {
            let name = Some(found.opcode.to_string());
            take(agent.key, share_row(all, "opcode_of_roce", name, &found.share))?;
        }
        for found in &agent.talkers {
            let name = Some(format!("{} > {}", found.source, found.destination));
            take(agent.key, share_row(all, "talker_of_roce", name, &found.share))?;
        }
    }
    Ok(())
}

fn bounds(found: Option<Estimate>) -> (Value, Value, Value) {
    found.map_or((Value::Null, Value::Null, Value::Null), |found| {
        (json!(found.value), json!(found.low), json!(found.high))
    })
}

/// Writes a JSON object for each row.
pub(super) fn lines(summary: &SampleSummary, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut out = BufWriter::new(out);
    rows(summary, &mut |key, values| {
        let first = [json!(key.address.to_string()), json!(key.sub_agent)];
        let row = COLUMNS.into_iter().zip(first.into_iter().chain(values));
        let row: serde_json::Map<_, _> = row.map(|(name, value)| (name.to_owned(), value)).collect();
        writeln!(out, "{}", escape_json(&Value::Object(row).to_string()))?;
        Ok(())
    })?;
    out.flush()?;
    Ok(())
}

/// Writes comma-separated values.
pub(super) fn csv(summary: &SampleSummary, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut writer = CsvWriter::new(BufWriter::new(out));
    writer.head(COLUMNS.into_iter())?;
    rows(summary, &mut |key, values| {
        let first = [json!(key.address.to_string()), json!(key.sub_agent)];
        writer.row(first.iter().chain(&values))?;
        Ok(())
    })
}
