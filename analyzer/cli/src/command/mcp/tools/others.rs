//! `compare`, `query` and `explain`.

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::document::text;
use crate::command::mcp::answer::ToolAnswer;
use crate::command::mcp::arguments::GivenArguments;
use crate::command::mcp::context::ToolContext;
use crate::command::mcp::runner::Output;

/// Answers `compare`.
pub(super) fn compare(
    given: &GivenArguments<'_>,
    context: &mut ToolContext<'_>,
) -> anyhow::Result<ToolAnswer> {
    let inputs = context.inputs(&[given.needed("a")?, given.needed("b")?])?;
    let mut words = vec!["compare".to_owned()];
    words.extend(inputs.iter().map(crate::command::mcp::inputs::Input::word));
    words.extend(["--format", "json"].map(str::to_owned));
    let output = context.run(&words, &inputs)?;
    let document: Value = match serde_json::from_slice(&output.text) {
        Ok(document) => document,
        Err(_) => bail!("{}", said(&output)),
    };
    let mut rows = Vec::new();
    for finding in array(&document, "findings") {
        rows.push(with(finding, &[("kind", "finding".into())]));
    }
    for scope in array(&document, "scopes") {
        let place = |name: &str| scope.get(name).cloned().unwrap_or(Value::Null);
        for quantity in array(scope, "compared") {
            let more = [
                ("kind", "quantity".into()),
                ("source", place("source")),
                ("destination", place("destination")),
            ];
            rows.push(with(quantity, &more));
        }
    }
    let is_worse = |row: &&Value| {
        row.get("regression").and_then(Value::as_bool) == Some(true) || text(row, "outcome") == "worse"
    };
    let worse: Vec<String> = rows.iter().filter(is_worse).map(difference).collect();
    let answer = if worse.is_empty() {
        "B is not worse than A by more than noise.".to_owned()
    } else {
        format!("B is worse than A: {}.", worse.join("; "))
    };
    let mut not_shown: Vec<String> = super::document::names(&document, "notes")
        .map(str::to_owned)
        .collect();
    not_shown.push("frames: two runs are compared by sums; packets lists frames of each".to_owned());
    not_shown.push("the reason of a difference: it does not prove that the change caused it".to_owned());
    if rows.iter().any(|row| text(row, "outcome") == "too_short") {
        not_shown.push(
            "differences of quantities that are too_short: a run is too short for its noise to be known"
                .to_owned(),
        );
    }
    Ok(ToolAnswer {
        answer,
        confidence: "counted".to_owned(),
        not_shown,
        rows,
        command: context.command(&words),
        less: "captures of fewer hosts",
        ..ToolAnswer::default()
    })
}

/// A difference in words.
fn difference(row: &Value) -> String {
    if text(row, "kind") == "finding" {
        return format!("{} is new ({})", text(row, "id"), text(row, "summary"));
    }
    let relative = row.get("relative").and_then(Value::as_f64);
    let by = relative.map_or_else(String::new, |relative| format!(" by {:.1} %", relative * 100.0));
    let place = match (text(row, "source"), text(row, "destination")) {
        ("", "") => String::new(),
        (source, destination) => format!(" from {source} to {destination}"),
    };
    format!("{}{by}{place}", text(row, "metric"))
}

/// Objects of an array.
fn array<'a>(object: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    object.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// An object with more values.
fn with(object: &Value, more: &[(&str, Value)]) -> Value {
    let mut object = object.clone();
    if let Value::Object(object) = &mut object {
        object.extend(
            more.iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone())),
        );
    }
    object
}

/// Messages of a command that failed.
fn said(output: &Output) -> String {
    match output.messages.trim() {
        "" => format!("no answer (exit code {})", output.code),
        text => text.to_owned(),
    }
}

/// Answers `query`.
pub(super) fn query(given: &GivenArguments<'_>, context: &mut ToolContext<'_>) -> anyhow::Result<ToolAnswer> {
    let most = usize::try_from(given.number("limit", 100)?)?;
    let dataset = context.folder.input(given.needed("dataset")?)?;
    if !dataset.is_folder {
        bail!("{}: is no folder that -o wrote", dataset.path);
    }
    let sql = given.needed("sql")?;
    if sql.trim() == "-"
        || std::path::Path::new(sql.trim())
            .extension()
            .is_some_and(|end| end == "sql")
    {
        bail!("sql is one SELECT, or the name of a question: no file is read");
    }
    let words = ["query", "--format", "jsonl", "--", &dataset.word(), sql].map(str::to_owned);
    let queries = context.queries.as_mut();
    let queries = queries.context("datasets cannot be asked here: the process for it has ended")?;
    let output = queries.ask(&words, &context.bounds)?;
    if output.code != 0 {
        bail!("{}", said(&output));
    }
    let lines = output
        .text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let (mut rows, mut all) = (Vec::new(), 0);
    for line in lines {
        all += 1;
        if rows.len() < most
            && let Ok(row) = serde_json::from_slice(line)
        {
            rows.push(row);
        }
    }
    let more = if output.is_cut { "more than " } else { "" };
    let answer = if all == rows.len() && !output.is_cut {
        format!("{}.", roce_spelling::plural(all as u64, "row", "rows"))
    } else {
        format!(
            "{more}{}, {} of them here.",
            roce_spelling::plural(all as u64, "row", "rows"),
            rows.len()
        )
    };
    Ok(ToolAnswer {
        answer,
        confidence: "counted".to_owned(),
        not_shown: vec!["frames: rows of a dataset have none".to_owned()],
        left_out: (all - rows.len()) as u64,
        truncated: all > rows.len() || output.is_cut,
        rows,
        command: context.command(&words),
        less: "LIMIT, fewer columns, or a WHERE",
        ..ToolAnswer::default()
    })
}

/// Answers `explain`.
pub(super) fn explain(
    given: &GivenArguments<'_>,
    context: &mut ToolContext<'_>,
) -> anyhow::Result<ToolAnswer> {
    let id = given.needed("id")?;
    if std::path::Path::new(id).exists() {
        bail!("explain takes a name, not a file");
    }
    let words = ["explain", "--", id].map(str::to_owned);
    let output = context.run(&words, &[])?;
    if output.code != 0 {
        bail!("{}", said(&output));
    }
    Ok(ToolAnswer {
        answer: String::from_utf8_lossy(&output.text).trim_end().to_owned(),
        confidence: "counted".to_owned(),
        not_shown: vec!["frames: an explanation rests on none".to_owned()],
        rows: vec![json!({ "id": id })],
        command: context.command(&words),
        less: "one name",
        ..ToolAnswer::default()
    })
}
