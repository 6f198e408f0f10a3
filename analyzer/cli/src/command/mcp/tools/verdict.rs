//! `verdict` and `why`: findings, the chain between them, and waits of a collective.

use anyhow::anyhow;
use roce_model::text::clean;
use serde_json::Value;

use super::document::{AnalysedInputs, names, text};
use super::frames::{Frames, evidence};
use crate::command::mcp::answer::ToolAnswer;
use crate::command::mcp::arguments::GivenArguments;
use crate::command::mcp::context::ToolContext;

/// Frames that a verdict names, of its first finding.
const FRAMES_OF_VERDICT: usize = 10;
/// Frames that each finding of a chain names.
const FRAMES_OF_CHAIN: usize = 20;
/// Reason for which a run without a fault names no frame.
const NO_FRAMES: &str = "frames: no fault was found that could rest on some";
const LESS: &str = "why with one finding, or packets with one flow";

/// Answers `verdict`.
pub(super) fn verdict(
    given: &GivenArguments<'_>,
    context: &mut ToolContext<'_>,
) -> anyhow::Result<ToolAnswer> {
    let analysed = AnalysedInputs::new(given, None, context)?;
    let mut not_shown = analysed.not_shown();
    let mut named = Vec::new();
    if let Some(root) = analysed.first_root() {
        let frames = Frames::new(&analysed.inputs, None, context)?;
        match frames.of_finding(root) {
            Ok(frames) => named = evidence(frames, FRAMES_OF_VERDICT),
            Err(reason) => not_shown.push(reason),
        }
    } else {
        not_shown.push(NO_FRAMES.to_owned());
    }
    let confidence = analysed
        .first_root()
        .map_or("none", |root| text(root, "confidence"));
    Ok(ToolAnswer {
        answer: analysed.sentence(),
        confidence: confidence.to_owned(),
        evidence: named,
        not_shown,
        rows: analysed.findings().to_vec(),
        command: analysed.command,
        less: LESS,
        ..ToolAnswer::default()
    })
}

/// Answers `why`.
pub(super) fn why(given: &GivenArguments<'_>, context: &mut ToolContext<'_>) -> anyhow::Result<ToolAnswer> {
    let analysed = AnalysedInputs::new(given, None, context)?;
    if given.has("collective") {
        return collective(&analysed, given.number("collective", 0)?, context);
    }
    let asked = if let Some(id) = given.text("finding")? {
        analysed.finding(id).ok_or_else(|| {
            let found: Vec<&str> = analysed
                .findings()
                .iter()
                .map(|finding| text(finding, "id"))
                .collect();
            let found = if found.is_empty() {
                "none".to_owned()
            } else {
                found.join(", ")
            };
            anyhow!("{}: was not found here; findings are: {found}", clean(id))
        })?
    } else {
        let Some(root) = analysed.first_root() else {
            let mut not_shown = analysed.not_shown();
            not_shown.push(NO_FRAMES.to_owned());
            return Ok(ToolAnswer {
                answer: format!(
                    "No fault was found, so there is no chain. {}",
                    analysed.sentence()
                ),
                confidence: "none".to_owned(),
                not_shown,
                command: analysed.command,
                ..ToolAnswer::default()
            });
        };
        root
    };
    chain(&analysed, asked, context)
}

/// The chain of a finding: what it follows from, itself, what follows from it.
fn chain(
    analysed: &AnalysedInputs,
    asked: &Value,
    context: &mut ToolContext<'_>,
) -> anyhow::Result<ToolAnswer> {
    let causes = reached(analysed, asked, "explained_by");
    let effects = reached(analysed, asked, "explains");
    let related = causes.iter().map(|finding| ("cause", *finding));
    let related = related
        .chain([("asked", asked)])
        .chain(effects.iter().map(|finding| ("follows", *finding)));
    let frames = Frames::new(&analysed.inputs, None, context)?;
    let (mut rows, mut chosen) = (Vec::new(), Vec::new());
    let mut not_shown = analysed.not_shown();
    for (relation, finding) in related {
        let mut row = finding.clone();
        if let Value::Object(row) = &mut row {
            row.insert("relation".to_owned(), relation.into());
        }
        rows.push(row);
        match frames.of_finding(finding) {
            Ok(found) => chosen.extend(found.into_iter().take(FRAMES_OF_CHAIN)),
            Err(reason) => not_shown.push(reason),
        }
    }
    let (id, confidence) = (text(asked, "id"), text(asked, "confidence"));
    let mut answer = format!("{id}: {}.", text(asked, "summary"));
    for (before, others) in [(" It follows from ", &causes), (" From it follow ", &effects)] {
        if !others.is_empty() {
            let others: Vec<String> = others
                .iter()
                .map(|finding| format!("{} ({})", text(finding, "id"), text(finding, "summary")))
                .collect();
            answer = format!("{answer}{before}{}.", others.join("; "));
        }
    }
    let next = text(asked, "next_step");
    if !next.is_empty() {
        answer = format!("{answer} Next: {next}");
    }
    if let Some(rule) = roce_verdict::RULES.iter().find(|rule| rule.id == id) {
        let surer = if rule.confidence.is_empty() {
            "the rule has no degrees of confidence"
        } else {
            rule.confidence
        };
        not_shown.push(format!(
            "what would make it surer: its confidence is {confidence}; {surer}"
        ));
    }
    let most = chosen.len();
    Ok(ToolAnswer {
        answer,
        confidence: confidence.to_owned(),
        evidence: evidence(chosen, most),
        not_shown,
        rows,
        command: analysed.command.clone(),
        less: LESS,
        ..ToolAnswer::default()
    })
}

/// Findings that are reached from one by a list of ids, each once, the nearest first.
fn reached<'a>(analysed: &'a AnalysedInputs, from: &'a Value, list: &str) -> Vec<&'a Value> {
    let mut found: Vec<&Value> = Vec::new();
    let mut waiting: Vec<&Value> = vec![from];
    let mut at = 0;
    while let Some(finding) = waiting.get(at).copied() {
        at += 1;
        for id in names(finding, list) {
            let is_known = |known: &&Value| text(known, "id") == id;
            if waiting.iter().any(is_known) {
                continue;
            }
            if let Some(next) = analysed.finding(id) {
                waiting.push(next);
                found.push(next);
            }
        }
    }
    found
}

/// A rank of a row for people.
fn rank(row: &Value) -> String {
    match row.get("rank").and_then(Value::as_u64) {
        Some(rank) => format!("rank {rank} ({})", text(row, "address")),
        None => text(row, "address").to_owned(),
    }
}

/// The waits of one collective.
fn collective(
    analysed: &AnalysedInputs,
    number: u64,
    context: &mut ToolContext<'_>,
) -> anyhow::Result<ToolAnswer> {
    let rows: Vec<Value> = analysed
        .rows("collective_waits")
        .iter()
        .filter(|row| row.get("collective").and_then(Value::as_u64) == Some(number))
        .cloned()
        .collect();
    let mut not_shown = analysed.not_shown();
    if rows.is_empty() {
        let all = analysed.rows("collective_waits").len();
        not_shown.push(format!(
            "waits of collective {number}: {all} rows are about other collectives"
        ));
        return Ok(ToolAnswer {
            answer: format!("Nothing is known of collective {number}."),
            confidence: "none".to_owned(),
            not_shown,
            command: analysed.command.clone(),
            ..ToolAnswer::default()
        });
    }
    let root = rows
        .iter()
        .find(|row| row.get("is_root").and_then(Value::as_bool) == Some(true));
    let (answer, confidence) = match root {
        Some(root) => (
            format!(
                "In collective {number} the other ranks waited for {}.",
                rank(root)
            ),
            text(root, "confidence"),
        ),
        None => (
            format!("Collective {number} has no rank for which the others waited."),
            "none",
        ),
    };
    // Messages of its time are its evidence.
    let from = rows
        .iter()
        .filter_map(|row| super::document::time(row, "start_time"))
        .min();
    let to = rows
        .iter()
        .filter_map(|row| super::document::time(row, "end_time"))
        .max();
    let about = serde_json::json!({
        "id": "rank.late",
        "first_time": from.map(|time| time.to_string()),
        "last_time": to.map(|time| time.to_string()),
    });
    let frames = Frames::new(&analysed.inputs, None, context)?;
    let named = match frames.of_finding(&about) {
        Ok(frames) => evidence(frames, FRAMES_OF_CHAIN),
        Err(reason) => {
            not_shown.push(reason);
            Vec::new()
        }
    };
    Ok(ToolAnswer {
        answer,
        confidence: if confidence.is_empty() { "none" } else { confidence }.to_owned(),
        evidence: named,
        not_shown,
        rows,
        command: analysed.command.clone(),
        less: LESS,
        ..ToolAnswer::default()
    })
}
