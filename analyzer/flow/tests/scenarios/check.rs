//! Compares what came of a scenario with what it expects, and with what must hold of every run.

use std::collections::{BTreeMap, BTreeSet};

use roce_flow::Conclusion;
use roce_model::{Columns, FlowColumns, FlowId, FlowKey, StepColumns, Time, TimelineColumns};
use roce_wire::{Address, Carrier, Opcode, Qpn, Service};

use crate::parse::{BEGIN, Item, Scenario, ScenarioLine, host, number, time};
use crate::run::{LinkDirection, Results, Row, row_of, run};

/// Expectations that do not hold.
pub(crate) fn failures(scenario: &Scenario) -> Vec<String> {
    let results = sorted(scenario, LinkDirection::OneBatch);
    let mut failures = rules(&results);
    for way in [LinkDirection::OneByOne, LinkDirection::TwoParts] {
        if way == LinkDirection::TwoParts && scenario.one_part {
            continue;
        }
        let other = sorted(scenario, way);
        let texts = differences(&results, &other).into_iter().chain(rules(&other));
        failures.extend(texts.map(|text| format!("{way:?}: {text}")));
    }
    for line in &scenario.expectations {
        if let Err(text) = expect(scenario, &results, line) {
            failures.push(format!("{}: {text}", line.place));
        }
    }
    failures
}

fn sorted(scenario: &Scenario, way: LinkDirection) -> Results {
    let mut results = run(&scenario.items, scenario.options, way);
    if scenario.rows_in_parts {
        results.timeline = put_together(&results.timeline);
    }
    results.sort();
    results
}

fn number_of(row: &Row, column: &str) -> u64 {
    row[column].parse().unwrap_or(0)
}

/// Columns of the timeline that add up: counts and bytes.
fn additive() -> impl Iterator<Item = &'static str> {
    let columns = TimelineColumns::TABLE.columns.iter();
    columns
        .filter(|column| {
            ["packets", "bytes", "messages"].contains(&column.unit) && !column.name.ends_with("_max")
        })
        .map(|column| column.name)
        .filter(|name| *name != "inflight_bytes_max")
}

fn key(row: &Row) -> (String, String, String) {
    (row["flow_id"].clone(), row["tap"].clone(), row["epoch"].clone())
}

fn put_together(timeline: &[Row]) -> Vec<Row> {
    let mut sums: BTreeMap<_, Row> = BTreeMap::new();
    for row in timeline {
        match sums.entry((row["time"].clone(), key(row))) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(row.clone());
            }
            std::collections::btree_map::Entry::Occupied(mut entry) => {
                for column in additive().filter(|column| row[column] != "null") {
                    let sum = number_of(entry.get(), column) + number_of(row, column);
                    entry.get_mut().insert(column, sum.to_string());
                }
            }
        }
    }
    sums.into_values().collect()
}

/// Columns of flows that add up to totals: what became of missing PSNs, retransmission runs by trigger, and others.
const VERDICTS: [&str; 18] = [
    "reordered",
    "network_lost",
    "capture_lost",
    "ambiguous",
    "unresolved",
    "runs_nak",
    "runs_implied_nak",
    "runs_rnr",
    "runs_timeout",
    "runs_unknown",
    "retransmission_runs",
    "wasted_bytes",
    "duplicate_acks",
    "response_network_lost",
    "response_capture_lost",
    "response_missing",
    "icrc_checked",
    "icrc_bad",
];

/// Missing PSNs have one fate each, runs one trigger. A retransmission that was lost again is no further missing PSN.
fn parts_of_a_whole(flow: &Row) -> Vec<String> {
    let wholes = [
        ("missing", &VERDICTS[..5], number_of(flow, "network_lost_again")),
        ("retransmission_runs", &VERDICTS[5..10], 0),
    ];
    let sum = |parts: &[&str]| parts.iter().map(|column| number_of(flow, column)).sum::<u64>();
    wholes
        .into_iter()
        .filter(|(whole, parts, more)| sum(parts) != number_of(flow, whole) + more)
        .map(|(whole, parts, _)| format!("{whole}: its parts are {}: {}", sum(parts), short(flow)))
        .collect()
}

/// Violations of the rules that hold for every run.
fn rules(results: &Results) -> Vec<String> {
    let mut failures = Vec::new();
    let mut sums: BTreeMap<_, BTreeMap<&str, u64>> = BTreeMap::new();
    let mut pauses: BTreeMap<_, u64> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for row in &results.timeline {
        if !seen.insert((row["time"].clone(), key(row))) {
            failures.push(format!("two timeline rows with one key: {}", short(row)));
        }
        if row["pause_ns"] != "null" {
            *pauses.entry(key(row)).or_insert(0) += number_of(row, "pause_ns");
        }
        for column in additive() {
            *sums.entry(key(row)).or_default().entry(column).or_default() += number_of(row, column);
        }
    }
    let mut seen = BTreeSet::new();
    let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
    for flow in &results.flows {
        if !seen.insert(key(flow)) {
            failures.push(format!("two flows with one key: {}", short(flow)));
        }
        let timeline = sums.remove(&key(flow)).unwrap_or_default();
        for column in additive() {
            let (sum, whole) = (
                timeline.get(column).copied().unwrap_or_default(),
                number_of(flow, column),
            );
            if sum != whole {
                failures.push(format!(
                    "{column}: the timeline has {sum}, the flow {}",
                    short(flow)
                ));
            }
            *totals.entry(column).or_default() += whole;
        }
        let stopped = pauses.remove(&key(flow));
        // Bins without packets have no rows, and count in the flow.
        if flow["pause_ns"] != "null" && number_of(flow, "pause_ns") < stopped.unwrap_or_default() {
            failures.push(format!(
                "pause_ns: the timeline has {stopped:?}, the flow {}",
                short(flow)
            ));
        }
        for column in VERDICTS {
            *totals.entry(column).or_default() += number_of(flow, column);
        }
        failures.extend(parts_of_a_whole(flow));
        let ecn: u64 = ["not_ect", "ect0", "ect1", "ce"]
            .iter()
            .map(|ecn| number_of(flow, ecn))
            .sum();
        // Without an IP header there is no ECN field to count.
        let marked = if flow["carrier"].starts_with("RoCEv2") {
            number_of(flow, "data_packets")
        } else {
            0
        };
        if ecn != marked {
            failures.push(format!("ECN counts do not add up: {}", short(flow)));
        }
    }
    for (key, _) in sums {
        failures.push(format!("timeline rows of no flow: {key:?}"));
    }
    let run = totals_of(&results.conclusion);
    totals.insert(
        "roce_packets",
        totals.get("packets").copied().unwrap_or_default() + run["cnp"],
    );
    totals.insert("data_ce", totals.get("ce").copied().unwrap_or_default());
    totals.insert("flows", results.flows.len() as u64);
    for column in ["not_ect", "ect0", "ect1", "ce", "cnp"] {
        totals.remove(column);
    }
    for (column, sum) in totals {
        // The share of CNPs in these counts is in no flow.
        let is_short = ["wire_bytes", "icrc_checked", "icrc_bad"].contains(&column) && run["cnp"] > 0;
        if run.get(column).is_some_and(|whole| *whole != sum && !is_short) {
            failures.push(format!(
                "{column}: the flows have {sum}, the totals {}",
                run[column]
            ));
        }
    }
    failures.extend(cnp_rules(results, &run));
    failures
}

/// Violations of the rules for notifications that hold for every run.
fn cnp_rules(results: &Results, run: &BTreeMap<&'static str, u64>) -> Vec<String> {
    let mut failures = Vec::new();
    // Every notification slows a flow, or none that is known.
    let charged: u64 = results.flows.iter().map(|flow| number_of(flow, "cnp")).sum();
    if charged + run["cnp_unattributed"] != run["cnp"] {
        failures.push(format!(
            "CNPs: the flows have {charged}, {} have none, in all there are {}",
            run["cnp_unattributed"], run["cnp"]
        ));
    }
    let receivers: u64 = results
        .conclusion
        .cnp_receivers
        .iter()
        .map(|receiver| receiver.cnp)
        .sum();
    if receivers != run["cnp"] {
        failures.push(format!("CNPs by receiver: {receivers}, in all: {}", run["cnp"]));
    }
    failures
}

fn totals_of(conclusion: &Conclusion) -> BTreeMap<&'static str, u64> {
    conclusion
        .totals
        .counts()
        .map(|(name, value, _)| (name, value))
        .collect()
}

fn differences(one: &Results, other: &Results) -> Vec<String> {
    let mut failures = Vec::new();
    for (table, one, other) in [
        ("flows", &one.flows, &other.flows),
        ("timeline", &one.timeline, &other.timeline),
        ("events", &one.events, &other.events),
    ] {
        let left: BTreeSet<_> = one.iter().collect();
        let right: BTreeSet<_> = other.iter().collect();
        for row in left.difference(&right) {
            failures.push(format!("{table}: not there: {}", short(row)));
        }
        for row in right.difference(&left) {
            failures.push(format!("{table}: too much: {}", short(row)));
        }
        if one.len() != other.len() {
            failures.push(format!(
                "{table}: {} rows, {} in one batch",
                other.len(),
                one.len()
            ));
        }
    }
    if one.summary.steps != other.summary.steps {
        failures.push(format!(
            "{:?}\n    in one batch {:?}",
            other.summary.steps, one.summary.steps
        ));
    }
    if one.conclusion != other.conclusion {
        failures.push(format!(
            "{:?}\n    in one batch {:?}",
            other.conclusion, one.conclusion
        ));
    }
    failures
}

/// A row without its absent, zero and empty values.
fn short(row: &Row) -> String {
    let cells = row
        .iter()
        .filter(|(_, value)| !["null", "0", "", "false"].contains(&value.as_str()));
    cells
        .map(|(name, value)| format!("{name} {value}"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Words that say which flow is meant; what of them is not said may be anything.
#[derive(Default)]
struct Which<'a> {
    hosts: &'a str,
    words: BTreeMap<&'a str, &'a str>,
}

const SELECTORS: [&str; 6] = ["qp", "epoch", "tap", "sqp", "vlan", "vni"];

impl<'a> Which<'a> {
    /// Takes the hosts and the selecting words off `words`.
    fn take(words: &mut &[&'a str]) -> Result<Self, String> {
        let [hosts, rest @ ..] = words else {
            return Err("which flow?".into());
        };
        let mut which = Self {
            hosts,
            ..Self::default()
        };
        *words = rest;
        while let [word, value, rest @ ..] = words {
            if !SELECTORS.contains(word) {
                break;
            }
            which.words.insert(word, value);
            *words = rest;
        }
        Ok(which)
    }

    fn matches(&self, flow: &Row) -> bool {
        let hosts = self.hosts.as_bytes();
        let carriers = [Carrier::RoceV2Ipv4, Carrier::RoceV2Ipv6, Carrier::InfinibandLocal]
            .map(|carrier| [hosts[0], hosts[hosts.len() - 1]].map(|name| host(name, carrier).to_string()));
        carriers
            .iter()
            .any(|[source, destination]| flow["source"] == *source && flow["destination"] == *destination)
            && self.words.iter().all(|(word, wanted)| {
                let column = match *word {
                    "qp" => "destination_qpn",
                    "sqp" => "source_qpn",
                    word => word,
                };
                flow[column]
                    == number(wanted).map_or_else(|| (*wanted).to_owned(), |number| number.to_string())
            })
    }

    /// The ids of the flows that it means.
    fn ids(&self, results: &Results) -> BTreeSet<(String, String, String)> {
        results
            .flows
            .iter()
            .filter(|flow| self.matches(flow))
            .map(key)
            .collect()
    }
}

/// Compares columns, which are pairs of a word and a value.
fn compare(row: &Row, wanted: &[&str]) -> Result<(), String> {
    let mut wrong = Vec::new();
    for pair in wanted.chunks(2) {
        let [column, wanted] = pair else {
            return Err(format!("{} without a value", pair[0]));
        };
        let Some(got) = row.get(column) else {
            return Err(format!("there is no column '{column}'"));
        };
        let wanted = match (number(wanted), time(wanted)) {
            (Some(number), _) => number.to_string(),
            (_, Some(time)) => (BEGIN + time).to_string(),
            _ => (*wanted).replace('_', " "),
        };
        if *got != wanted && got.replace('_', " ") != wanted {
            wrong.push(format!("{column} is {got}, not {wanted}"));
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(format!("{}; in {}", wrong.join(", "), short(row)))
    }
}

fn one<'a>(rows: &[&'a Row], all: &[Row]) -> Result<&'a Row, String> {
    match rows {
        [row] => Ok(row),
        rows => {
            let all: Vec<_> = all.iter().map(short).collect();
            Err(format!(
                "{} rows match; there are\n      {}",
                rows.len(),
                all.join("\n      ")
            ))
        }
    }
}

fn expect(scenario: &Scenario, results: &Results, line: &ScenarioLine) -> Result<(), String> {
    let words = line.words();
    match words.as_slice() {
        ["flow", words @ ..] => {
            let mut words = words;
            let which = Which::take(&mut words)?;
            let rows: Vec<_> = results.flows.iter().filter(|flow| which.matches(flow)).collect();
            compare(one(&rows, &results.flows)?, words)
        }
        ["row", at, words @ ..] => {
            let mut words = words;
            let rows = rows_at(results, at, &mut words)?;
            compare(one(&rows, &results.timeline)?, words)
        }
        ["no", "flow", words @ ..] => {
            let mut words = words;
            let which = Which::take(&mut words)?;
            let rows: Vec<_> = results
                .flows
                .iter()
                .filter(|flow| which.matches(flow))
                .map(short)
                .collect();
            if rows.is_empty() {
                Ok(())
            } else {
                Err(rows.join("\n      "))
            }
        }
        ["no", "row", at, words @ ..] => {
            let mut words = words;
            let rows = rows_at(results, at, &mut words)?;
            if rows.is_empty() {
                Ok(())
            } else {
                Err(format!("{} rows", rows.len()))
            }
        }
        ["event", kind, words @ ..] => match events(results, kind, words)?.as_slice() {
            [] => Err(all_events(results)),
            _ => Ok(()),
        },
        ["no", "event", kind, words @ ..] => match events(results, kind, words)?.as_slice() {
            [] => Ok(()),
            _ => Err(all_events(results)),
        },
        ["events", kind, wanted] => {
            let got = events(results, kind, &[])?.len();
            if number(wanted) == Some(got as u64) {
                Ok(())
            } else {
                Err(format!("{got}; {}", all_events(results)))
            }
        }
        ["steps", wanted] => same(results.summary.steps.len() as u64, wanted),
        ["step", step, hosts, words @ ..] => {
            let ends = ends(scenario, hosts);
            let steps = results.summary.steps.iter().filter(|row| {
                number(step) == Some(u64::from(row.step)) && ends.contains(&(row.host_a, row.host_b))
            });
            let rows: Vec<Row> = steps.map(row_of::<StepColumns>).collect();
            compare(one(&rows.iter().collect::<Vec<_>>(), &rows)?, words)
        }
        ["flows", wanted] => same(results.flows.len() as u64, wanted),
        ["rows", wanted] => same(results.timeline.len() as u64, wanted),
        ["totals", words @ ..] => {
            let row = totals_of(&results.conclusion)
                .into_iter()
                .map(|(name, value)| (name, value.to_string()));
            compare(&row.collect(), words)
        }
        ["opcode", code, wanted] => {
            let code = number(code)
                .and_then(|code| u8::try_from(code).ok())
                .ok_or("which opcode?")?;
            same(results.conclusion.totals.opcodes.packets(Opcode(code)), wanted)
        }
        ["copies", tap, wanted] => {
            let tap: usize = tap.parse().map_err(|_| "which tap?")?;
            same(
                results.conclusion.copies.get(tap).copied().unwrap_or_default(),
                wanted,
            )
        }
        ["cnp", hosts, "qp", qpn, wanted] => {
            let ends = ends(scenario, hosts);
            let receivers = results.conclusion.cnp_receivers.iter();
            let of = receivers.filter(|receiver| {
                ends.contains(&(receiver.source, receiver.destination))
                    && Some(u64::from(receiver.qpn.value())) == number(qpn)
            });
            same(of.map(|receiver| receiver.cnp).sum(), wanted)
        }
        _ => Err("what is expected?".into()),
    }
}

fn same(got: u64, wanted: &str) -> Result<(), String> {
    if number(wanted) == Some(got) {
        Ok(())
    } else {
        Err(format!("{got}, not {wanted}"))
    }
}

fn ends(scenario: &Scenario, hosts: &str) -> BTreeSet<(Address, Address)> {
    let (source, destination) = (hosts.as_bytes()[0], hosts.as_bytes()[hosts.len() - 1]);
    let packets = scenario.items.iter().filter_map(|item| match item {
        Item::Packet(packet) | Item::Management(packet, _) => Some(packet),
        _ => None,
    });
    packets
        .map(|packet| {
            (
                host(source, packet.roce.carrier),
                host(destination, packet.roce.carrier),
            )
        })
        .collect()
}

fn rows_at<'a>(results: &'a Results, at: &str, words: &mut &[&str]) -> Result<Vec<&'a Row>, String> {
    let at = (BEGIN + time(at).ok_or("when?")?).to_string();
    let flows = Which::take(words)?.ids(results);
    Ok(results
        .timeline
        .iter()
        .filter(|row| row["time"] == at && flows.contains(&key(row)))
        .collect())
}

fn events<'a>(results: &'a Results, kind: &str, words: &[&str]) -> Result<Vec<&'a Row>, String> {
    if !roce_model::EventKind::ALL
        .iter()
        .any(|known| known.name() == kind)
    {
        return Err(format!("there is no kind '{kind}'"));
    }
    let mut events: Vec<&Row> = results
        .events
        .iter()
        .filter(|event| event["kind"] == kind)
        .collect();
    let mut words = words;
    while !words.is_empty() {
        match words {
            ["of", rest @ ..] => {
                words = rest;
                let flows = Which::take(&mut words)?.ids(results);
                events.retain(|event| {
                    flows
                        .iter()
                        .any(|(id, tap, _)| event["flow_id"] == *id && event["tap"] == *tap)
                });
            }
            ["at", at, rest @ ..] => {
                words = rest;
                let at = (BEGIN + time(at).ok_or("when?")?).to_string();
                events.retain(|event| event["time"] == at);
            }
            [column, wanted, rest @ ..] => {
                words = rest;
                if let Some(event) = results.events.first()
                    && !event.contains_key(column)
                {
                    return Err(format!("there is no column '{column}'"));
                }
                events.retain(|event| compare(event, &[column, wanted]).is_ok());
            }
            [word] => return Err(format!("'{word}' without a value")),
            [] => {}
        }
    }
    Ok(events)
}

fn all_events(results: &Results) -> String {
    let events: Vec<_> = results.events.iter().map(short).collect();
    format!("the events are\n      {}", events.join("\n      "))
}

/// The names of hosts in scenarios give the flow ids that any other run gives.
#[test]
fn rows_name_flows_by_their_key() {
    let text = "scenario one\n0us a>b write-only qp 0x11\nexpect flows 1\n";
    let scenario = &crate::parse::scenarios("inline", text)[0];
    let results = run(&scenario.items, scenario.options, LinkDirection::OneBatch);
    let key = FlowKey {
        source: host(b'a', Carrier::RoceV2Ipv4),
        destination: host(b'b', Carrier::RoceV2Ipv4),
        destination_qpn: Qpn::new(0x11),
        source_qpn: Qpn::new(0),
        vlan: None,
        vni: None,
        service: Service::Rc,
    };
    let FlowId(_) = key.id();
    assert_eq!(results.flows[0]["flow_id"], key.id().to_string());
    assert_eq!(results.timeline[0]["flow_id"], key.id().to_string());
    assert_eq!(results.timeline[0]["time"], Time(BEGIN).0.to_string());
    assert!(
        FlowColumns::TABLE
            .columns
            .iter()
            .any(|column| column.name == "missing")
    );
}
