//! The result as a JSON document. A number that is not known is null.

use roce_model::Time;
use serde_json::{Value, json};

use super::document::{Chain, ENDS_DIFFER, JudgedPause, MovedInterval, Pair, Pauses, Reset, Row};

/// Version of the document's form.
const SCHEMA_VERSION: u64 = 1;

/// The result as a document. Times are in seconds since the start of the command, or of the first reading where there is none.
pub fn pause_json(pauses: &Pauses) -> Value {
    let start = pauses.times.start;
    let pairs: Vec<Value> = pauses.pairs.iter().map(pair).collect();
    json!({
        "schema_version": SCHEMA_VERSION,
        "start_ns": start.0,
        "time": {
            "before_s": pauses.times.before.seconds(),
            "during_s": pauses.times.during.seconds(),
            "after_s": pauses.times.after.seconds(),
            "every_s": pauses.times.every.seconds(),
            "has_command": pauses.times.has_command,
        },
        "severity": pauses.severity().name(),
        "pattern": pauses.pattern.name(),
        "pattern_text": pauses.pattern_text,
        "is_inside_only": pauses.is_inside_only,
        "first_marks": pauses.first_marks.map(|at| moved(at, start)),
        "first_pauses": pauses.first_pauses.map(|at| moved(at, start)),
        "order": pauses.order,
        "rows": pauses.rows.iter().map(|of| row(of, start)).collect::<Vec<_>>(),
        "pairs": pairs,
        "chains": pauses.chains.iter().map(chain).collect::<Vec<_>>(),
        "findings": pauses.judged.iter().map(judged).collect::<Vec<_>>(),
        "restarts": pauses.restarts,
        "resets": pauses.resets.iter().map(|of| reset(of, start)).collect::<Vec<_>>(),
        "rows_left_out": pauses.left_out,
        "devices_not_judged": pauses.unjudged,
    })
}

/// Seconds from `start` to `time`, negative before it.
fn seconds(time: Time, start: Time) -> f64 {
    if time < start {
        -start.since(time).seconds()
    } else {
        time.since(start).seconds()
    }
}

fn moved(at: MovedInterval, start: Time) -> Value {
    json!({ "after_s": seconds(at.from, start), "seen_s": seconds(at.to, start) })
}

fn row(of: &Row, start: Time) -> Value {
    json!({
        "level": of.level.name(),
        "node": of.node,
        "object": of.object,
        "kind": of.kind.name(),
        "before": of.before,
        "during": of.during,
        "after": of.after,
        "per_second": of.per_second,
        "per_second_before": of.per_second_before,
        "moved": of.moved.map(|at| moved(at, start)),
        "resets": of.resets,
        "not_known": (!of.why.is_empty()).then_some(&of.why),
        "verdict": of.verdict,
        "sign": of.sign.name(),
    })
}

fn pair(of: &Pair) -> Value {
    json!({
        "id": (of.state.name() == "differ").then_some(ENDS_DIFFER.0),
        "kind": of.family.name(),
        "sender": of.sender,
        "receiver": of.receiver,
        "sent": of.sent,
        "received": of.received,
        "allowed": of.allowed,
        "state": of.state.name(),
    })
}

fn chain(of: &Chain) -> Value {
    json!({ "places": of.places, "first": of.first, "senders": of.senders, "text": of.text })
}

fn judged(of: &JudgedPause) -> Value {
    let finding = &of.finding;
    json!({
        "id": finding.id,
        "severity": finding.severity.name(),
        "node": of.node,
        "object": finding.object,
        "summary": finding.text,
        "evidence": serde_json::from_str::<Value>(&finding.evidence.to_string()).unwrap_or_default(),
        "confidence": finding.confidence,
        "next_step": finding.next,
    })
}

fn reset(of: &Reset, start: Time) -> Value {
    json!({ "place": of.place, "kind": of.kind.name(), "seen_s": seconds(of.time, start), "count": of.count })
}
