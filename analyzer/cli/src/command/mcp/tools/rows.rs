//! `packets`, `flows` and `ranks`: rows of a capture.

use anyhow::{anyhow, bail};
use roce_model::text::clean;
use serde_json::{Map, Value};

use super::document::{AnalysedInputs, text};
use super::frames::{FrameRow, Frames, evidence, role};
use crate::command::mcp::answer::ToolAnswer;
use crate::command::mcp::arguments::GivenArguments;
use crate::command::mcp::context::ToolContext;

/// Columns of flows that nobody chose.
const COLUMNS: [&str; 20] = [
    "flow_id",
    "source",
    "destination",
    "destination_qpn",
    "service",
    "rank",
    "peer_rank",
    "first_time",
    "last_time",
    "packets",
    "payload_bytes",
    "data_packets",
    "ce",
    "cnp",
    "naks",
    "rnr_naks",
    "retransmitted_packets",
    "network_lost",
    "lost_downstream",
    "capture_lost",
];
/// Findings about ranks.
const ABOUT_RANKS: [&str; 7] = [
    "rank.late",
    "receiver.late",
    "network.late",
    "rank.last",
    "job.stuck",
    "job.cannot_tell",
    "collective.slowed",
];

/// Answers `packets`.
pub(super) fn packets(
    given: &GivenArguments<'_>,
    context: &mut ToolContext<'_>,
) -> anyhow::Result<ToolAnswer> {
    let most = usize::try_from(given.number("limit", 50)?)?;
    let flow = given.text("flow")?;
    let roles = given.texts("roles")?.into_iter().map(role);
    let roles: Vec<&str> = roles.collect::<anyhow::Result<_>>()?;
    let analysed = match given.text("finding")? {
        Some(_) => Some(AnalysedInputs::new(given, None, context)?),
        None => None,
    };
    let inputs = context.inputs(&given.texts("input")?)?;
    if let Some(folder) = inputs.iter().find(|input| input.is_folder) {
        bail!(
            "{}: a folder of results has no frames\nhint: name the captures",
            clean(&folder.path)
        );
    }
    let frames = Frames::new(&inputs, flow, context)?;
    let mut chosen: Vec<&FrameRow> = frames.rows.iter().collect();
    let (mut confidence, mut not_shown) = ("counted", Vec::new());
    if let Some(analysed) = &analysed {
        let finding = finding(given, analysed)?;
        confidence = text(finding, "confidence");
        not_shown = analysed.not_shown();
        match frames.of_finding(finding) {
            Ok(found) => chosen = found,
            Err(reason) => {
                chosen.clear();
                not_shown.push(reason);
                confidence = "none";
            }
        }
    }
    if !roles.is_empty() {
        chosen.retain(|frame| frame.is_one_of(&roles));
    }
    not_shown.extend(frames.reason.clone());
    if flow.is_none() {
        not_shown.push(
            "packets about which the analysis has nothing to say: with a flow, all of its packets are rows"
                .to_owned(),
        );
    }
    let all = chosen.len();
    chosen.truncate(most);
    let answer = match (all, chosen.len()) {
        (0, _) => "No frame fits.".to_owned(),
        (all, shown) if all == shown => format!("{all} frames."),
        (all, shown) => format!("{all} frames, the first {shown} of them here."),
    };
    let rows: Vec<Value> = chosen.iter().map(|frame| frame.row.clone()).collect();
    Ok(ToolAnswer {
        answer,
        confidence: confidence.to_owned(),
        evidence: evidence(chosen.iter().copied(), most),
        not_shown,
        left_out: (all - rows.len()) as u64,
        truncated: all > rows.len(),
        rows,
        command: frames.command,
        less: "a flow, or roles",
    })
}

/// The finding that is asked about.
fn finding<'a>(given: &GivenArguments<'_>, analysed: &'a AnalysedInputs) -> anyhow::Result<&'a Value> {
    let id = given.needed("finding")?;
    analysed
        .finding(id)
        .ok_or_else(|| anyhow!("{}: was not found here", clean(id)))
}

/// Answers `flows`.
pub(super) fn flows(given: &GivenArguments<'_>, context: &mut ToolContext<'_>) -> anyhow::Result<ToolAnswer> {
    let most = usize::try_from(given.number("limit", 20)?)?;
    let analysed = AnalysedInputs::new(given, given.text("flow")?, context)?;
    let mut rows = analysed.rows("flows").to_vec();
    let mut not_shown = analysed.not_shown();
    let beyond = analysed
        .document
        .get("flows_left_out")
        .and_then(Value::as_u64)
        .unwrap_or_default();
    if beyond > 0 {
        not_shown.push(format!(
            "{beyond} more flows, with less trouble and fewer bytes: a flow expression chooses among all"
        ));
    }
    let known: Vec<String> = match rows.first() {
        Some(Value::Object(row)) => row.keys().cloned().collect(),
        _ => Vec::new(),
    };
    let check = |name: &str| {
        if known.is_empty() || known.iter().any(|known| known == name) {
            return Ok(());
        }
        bail!(
            "flows have no column {}\nhint: explain flows lists them",
            clean(name)
        )
    };
    if let Some(column) = given.text("sort")? {
        check(column)?;
        rows.sort_by(|a, b| compared(a.get(column), b.get(column)).reverse());
    }
    let columns = given.texts("columns")?;
    let columns = match columns.as_slice() {
        [] => COLUMNS.to_vec(),
        ["all"] => Vec::new(),
        some => {
            some.iter().try_for_each(|column| check(column))?;
            some.to_vec()
        }
    };
    let all = rows.len();
    rows.truncate(most);
    if !columns.is_empty() {
        rows = rows.iter().map(|row| only(row, &columns)).collect();
    }
    let total = all as u64 + beyond;
    let shown = rows.len() as u64;
    let answer = if shown == total {
        format!("{total} flows.")
    } else {
        format!("{total} flows, {shown} of them here.")
    };
    not_shown.push(
        "frames: rows of flows are sums over packets; packets with this flow lists its frames".to_owned(),
    );
    Ok(ToolAnswer {
        answer,
        confidence: "counted".to_owned(),
        not_shown,
        left_out: total - shown,
        truncated: total > shown,
        rows,
        command: analysed.command,
        less: "fewer columns, or a flow expression",
        ..ToolAnswer::default()
    })
}

/// Order of two values of a column: numbers by size, texts by letters, absent ones first.
fn compared(a: Option<&Value>, b: Option<&Value>) -> std::cmp::Ordering {
    let number = |value: Option<&Value>| match value {
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.parse().ok(),
        Some(Value::Bool(is_true)) => Some(f64::from(u8::from(*is_true))),
        _ => None,
    };
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (Some(_), None) => std::cmp::Ordering::Greater,
        (None, Some(_)) => std::cmp::Ordering::Less,
        (None, None) => a.and_then(Value::as_str).cmp(&b.and_then(Value::as_str)),
    }
}

/// A row with some of its columns.
fn only(row: &Value, columns: &[&str]) -> Value {
    let cells = columns
        .iter()
        .filter_map(|column| Some(((*column).to_owned(), row.get(*column)?.clone())));
    Value::Object(cells.collect::<Map<String, Value>>())
}

/// Answers `ranks`.
pub(super) fn ranks(given: &GivenArguments<'_>, context: &mut ToolContext<'_>) -> anyhow::Result<ToolAnswer> {
    let most = usize::try_from(given.number("limit", 100)?)?;
    let analysed = AnalysedInputs::new(given, None, context)?;
    let mut rows = analysed.rows("collective_waits").to_vec();
    if given.has("collective") {
        let number = given.number("collective", 0)?;
        rows.retain(|row| row.get("collective").and_then(Value::as_u64) == Some(number));
    }
    let about = analysed
        .findings()
        .iter()
        .filter(|finding| ABOUT_RANKS.contains(&text(finding, "id")));
    let about: Vec<&Value> = about.collect();
    let mut not_shown = analysed.not_shown();
    if rows.is_empty() {
        not_shown.push(
            "ranks and their waits: they come from credits of NCCL, which this traffic does not have, or whose payload was not captured".to_owned(),
        );
    }
    let (mut named, mut sentences) = (Vec::new(), Vec::new());
    for finding in &about {
        sentences.push(format!("{}: {}.", text(finding, "id"), text(finding, "summary")));
    }
    match about.first() {
        Some(first) => match Frames::new(&analysed.inputs, None, context)?.of_finding(first) {
            Ok(frames) => named = evidence(frames, most.min(20)),
            Err(reason) => not_shown.push(reason),
        },
        None => not_shown.push("frames: no finding is about ranks".to_owned()),
    }
    let all = rows.len();
    rows.truncate(most);
    let answer = if all == 0 && sentences.is_empty() {
        "Ranks cannot be told from these packets.".to_owned()
    } else if sentences.is_empty() {
        "No rank stands out.".to_owned()
    } else {
        sentences.join(" ")
    };
    Ok(ToolAnswer {
        answer,
        confidence: about
            .first()
            .map_or("none", |finding| text(finding, "confidence"))
            .to_owned(),
        evidence: named,
        not_shown,
        left_out: (all - rows.len()) as u64,
        truncated: all > rows.len(),
        rows,
        command: analysed.command,
        less: "one collective, or a smaller limit",
    })
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;

    #[test]
    fn columns_have_an_order() {
        let value = |value: &str| serde_json::from_str::<Value>(value).unwrap();
        for (a, b, expected) in [
            ("2", "10", Ordering::Less),
            ("\"9\"", "\"10\"", Ordering::Less),
            ("null", "0", Ordering::Less),
            ("\"a\"", "\"b\"", Ordering::Less),
            ("true", "false", Ordering::Greater),
        ] {
            assert_eq!(compared(Some(&value(a)), Some(&value(b))), expected, "{a} {b}");
        }
    }
}
