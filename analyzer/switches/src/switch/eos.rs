//! Arista EOS: JSON of its command line, and the tables of releases that have no JSON for a command.
//!
//! Keys of JSON are those that public programs read: Arista's own ANTA (`anta/tests/interfaces.py`: `interfaceCounters` with `rxFrames`
//! and `txFrames`, `intfQueueCounters` with `queueCounters`, `egressQueueCounters`) and AMD's node-scraper (`interfaceFlowControls`
//! with `txPause` and `rxOperState`, the columns of the tables of queues). PFC by priority (`counters detail`) is unverified: it is
//! looked for in each form that the keys of the rest suggest.

mod documents;
mod tables;

use super::answer::{object, read_table};
use crate::device::{Answers, Question, Reading};

const VERSION: &str = "show version | json";
const LLDP: &str = "show lldp neighbors detail | json";
const PFC: &str = "show priority-flow-control counters | json";
const PFC_DETAIL: &str = "show priority-flow-control counters detail | json";
const WATCHDOG: &str = "show priority-flow-control counters watchdog | json";
const PAUSES: &str = "show interfaces flow-control | json";
const ECN: &str = "show qos interfaces ecn counters queue | json";
const QUEUES: &str = "show interfaces counters queue detail | json";
/// The table of queues, where the release has no JSON of it.
const QUEUES_TEXT: &str = "show interfaces counters queue detail";
const COUNTERS: &str = "show interfaces counters | json";
const ERRORS: &str = "show interfaces counters errors | json";
const DISCARDS: &str = "show interfaces counters discards | json";
const STATUS: &str = "show interfaces status | json";
/// Tables that people record.
const PFC_TEXT: &str = "show priority-flow-control counters";
/// Priorities with PFC, by interface.
const ENABLED_TEXT: &str = "show priority-flow-control";
const ERRORS_TEXT: &str = "show interfaces counters errors";
const DISCARDS_TEXT: &str = "show interfaces counters discards";
/// The table of drops by port, which older releases have in place of [`QUEUES_TEXT`].
const DROPS_TEXT: &str = "show interfaces counters queue";
/// Paragraphs and tables of recordings, whose numbers the documents above have, too.
const INTERFACES_TEXT: &str = "show interfaces";
const COUNTERS_TEXT: &str = "show interfaces counters";
const PAUSES_TEXT: &str = "show interfaces flow-control";
const STATUS_TEXT: &str = "show interfaces status";
const WATCHDOG_TEXT: &str = "show priority-flow-control counters watchdog";
/// Other commands for what those above have, in recordings.
const OTHERS: [(&str, DocumentReader); 3] = [
    ("show interfaces | json", documents::interfaces),
    ("show lldp neighbors | json", documents::neighbors),
    ("show interfaces counters queue | json", documents::queues),
];

/// Reads the document of one command.
type DocumentReader = fn(&serde_json::Map<String, serde_json::Value>, &mut Reading);

/// Commands with a document, and what reads it. Discards are also in the document of counters, which goes first.
const DOCUMENTS: [(&str, DocumentReader); 11] = [
    (VERSION, documents::version),
    (LLDP, documents::neighbors),
    (STATUS, documents::status),
    (COUNTERS, documents::counters),
    (ERRORS, documents::errors),
    (DISCARDS, documents::counters),
    (PFC, documents::pfc),
    (PFC_DETAIL, documents::pfc_by_priority),
    (WATCHDOG, documents::watchdog),
    (PAUSES, documents::pauses),
    (ECN, documents::ecn),
];

/// Commands. Tables are asked of a switch that has no JSON of them.
pub(super) fn questions(known: &Answers) -> Vec<Question> {
    let of = |json, table| {
        let has_no_json = known.get(json).is_some_and(|text| object(text).is_err());
        if has_no_json { table } else { json }
    };
    let (queues, pauses) = (of(QUEUES, QUEUES_TEXT), of(PFC, PFC_TEXT));
    let (errors, discards) = (of(ERRORS, ERRORS_TEXT), of(DISCARDS, DISCARDS_TEXT));
    let mut all = vec![Question::slow(VERSION), Question::slow(LLDP)];
    let each = [
        STATUS, COUNTERS, errors, discards, pauses, PFC_DETAIL, WATCHDOG, PAUSES, ECN, queues,
    ];
    all.extend(each.map(Question::each));
    all
}

/// Adds what the answers say. What one answer gave is not added from another one.
pub(super) fn read(answers: &Answers, reading: &mut Reading) {
    // JSON that the release does not have is no problem where the table is there.
    let has = |command| answers.get(command).is_some();
    let has_table = |command: &str| match command {
        PFC => has(PFC_TEXT),
        ERRORS => has(ERRORS_TEXT),
        DISCARDS => has(DISCARDS_TEXT),
        COUNTERS => has(COUNTERS_TEXT),
        PAUSES => has(PAUSES_TEXT),
        STATUS => has(STATUS_TEXT),
        WATCHDOG => has(WATCHDOG_TEXT),
        _ => command.starts_with(DROPS_TEXT) && (has(QUEUES_TEXT) || has(DROPS_TEXT)),
    };
    let all = DOCUMENTS
        .iter()
        .chain([&(QUEUES, documents::queues as DocumentReader)]);
    for (command, read) in all.chain(&OTHERS) {
        let Some(text) = answers.get(command) else {
            continue;
        };
        match object(text) {
            Ok(document) => add(reading, |fresh| read(&document, fresh)),
            Err(_) if has_table(command) => {}
            Err((reason, text)) => reading.problem(reason, command, text),
        }
    }
    let tables = [
        (PFC_TEXT, tables::pfc as fn(&str, &mut Reading) -> bool),
        (ERRORS_TEXT, tables::counts),
        (DISCARDS_TEXT, tables::counts),
        (QUEUES_TEXT, tables::any_queues),
        (DROPS_TEXT, tables::any_queues),
        (ENABLED_TEXT, tables::enabled),
        (STATUS_TEXT, tables::states),
        (COUNTERS_TEXT, tables::counts),
        (WATCHDOG_TEXT, tables::watchdog),
        (PAUSES_TEXT, tables::pauses),
        (INTERFACES_TEXT, tables::interfaces),
    ];
    for (command, read) in tables {
        let Some(text) = answers.get(command) else {
            continue;
        };
        read_table(text, command, reading, |text, reading| {
            let mut is_table = false;
            add(reading, |fresh| is_table = read(text, fresh));
            is_table
        });
    }
}

/// Adds what `read` finds: neighbours and samples, without those of counters that an earlier answer gave of the same interface.
fn add(reading: &mut Reading, read: impl FnOnce(&mut Reading)) {
    let mut fresh = Reading::new(reading.source, &reading.node, reading.time);
    read(&mut fresh);
    let known: std::collections::BTreeSet<_> = reading
        .samples
        .iter()
        .map(|sample| (sample.counter, sample.object.clone()))
        .collect();
    let is_new = |sample: &roce_model::Sample| !known.contains(&(sample.counter, sample.object.clone()));
    reading.samples.extend(fresh.samples.into_iter().filter(is_new));
    if reading.neighbors.is_empty() {
        reading.neighbors = fresh.neighbors;
    }
    if !fresh.description.version.is_empty() || !fresh.description.model.is_empty() {
        reading.description = fresh.description;
    }
    reading.problems.extend(fresh.problems);
}

#[cfg(test)]
mod tests;
