//! The finding about connections that the connection manager did not make, or made late.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::{
    Address, AttemptResult, Confidence, ConnectionAttempt, Evidence, FindingRow, RejectReason, Severity,
    Span, TapId, Time,
};

use super::super::numbers::{counted, note_first};
use super::rule::{Context, FindingOf as _, Rule};
use super::worst::Worst;

pub(super) const SETUP: Rule = Rule {
    id: "connection.setup",
    title: "connections were not made, or late",
    meaning: "The connection manager asks for a connection with a REQ. Here REQs were refused, got no answer, or had to be repeated before one \
              came: the program waited for it, or has no connection.",
    method: "REQs of queue pair 1 by the id of who asks: refused is a REJ, unanswered a REQ that was repeated and has neither REP nor REJ \
             to the end of the capture, late one that was repeated before its answer. A refused queue pair that is connected to the same host \
             and service within the capture is not counted.",
    source: "IBTA 12.6 and 12.7 (REQ, REP, REJ), 12.6.7.2 (reasons); the kernel repeats a REQ after 4.3 s (Linux drivers/infiniband/core/cma.c).",
    thresholds: &[],
    severity: Severity::Warning,
    confidence: "high: the messages were captured; medium where nothing at all of the host that is asked was captured, whose answers may go \
                 another way",
    ..Rule::TALLIED
};

/// Attempts of one kind.
#[derive(Default)]
struct KindOfAttempt {
    worst: Worst,
    waited: u64,
}

fn ends(attempt: &ConnectionAttempt) -> String {
    format!("{} to {}", attempt.source, attempt.destination)
}

/// Who asks whom, and for which service.
fn place(attempt: &ConnectionAttempt) -> (Address, Address, Option<u64>) {
    let service = attempt.service.map(|service| service.0);
    (attempt.source, attempt.destination, service)
}

fn waited(attempt: &ConnectionAttempt) -> u64 {
    attempt.end_time.since(attempt.first_time).0
}

/// Repeats of a REQ, with their mean distance: `3 repeats 4.30 s apart`.
fn repeats(attempt: &ConnectionAttempt) -> String {
    let repeats = attempt.requests.saturating_sub(1);
    let apart = attempt.last_time.since(attempt.first_time).0 / u64::from(repeats.max(1));
    format!("{} {} apart", counted(repeats.into(), "repeat"), Span(apart))
}

pub(super) fn setup(context: &Context<'_>) -> Option<FindingRow> {
    let attempts = &context.run.attempts;
    let connected: BTreeSet<(Address, Address, Option<u64>)> = attempts
        .iter()
        .filter(|attempt| attempt.result == AttemptResult::Connected)
        .map(place)
        .collect();
    let mut reasons: BTreeMap<u16, u64> = BTreeMap::new();
    let (mut refused, mut unanswered, mut late) = (
        KindOfAttempt::default(),
        KindOfAttempt::default(),
        KindOfAttempt::default(),
    );
    let (mut first, mut last, mut confidence) = (None::<Time>, None::<Time>, Confidence::High);
    // Who sends at each tap.
    let mut heard: Option<BTreeSet<(TapId, Address)>> = None;
    for attempt in attempts {
        let is_repeated = attempt.requests > 1;
        let (kind, name) = match attempt.result {
            AttemptResult::Rejected(reason) if !connected.contains(&place(attempt)) => {
                *reasons.entry(reason.0).or_default() += 1;
                (&mut refused, format!("{}: {}", ends(attempt), reason))
            }
            AttemptResult::Unanswered if is_repeated => {
                let heard = heard.get_or_insert_with(|| {
                    let flows = context.directory.flows();
                    flows.map(|(tap, _, party)| (tap, party.source)).collect()
                });
                if !heard.contains(&(attempt.tap, attempt.destination)) {
                    confidence = Confidence::Medium;
                }
                (
                    &mut unanswered,
                    format!("{}, {}", ends(attempt), repeats(attempt)),
                )
            }
            AttemptResult::Connected if is_repeated => {
                let took = Span(waited(attempt));
                (
                    &mut late,
                    format!("{} after {took}, {}", ends(attempt), repeats(attempt)),
                )
            }
            _ => continue,
        };
        kind.waited = kind.waited.saturating_add(waited(attempt));
        kind.worst.add(waited(attempt), || name);
        note_first(&mut first, attempt.first_time);
        last = last.max(Some(attempt.end_time));
    }
    let mut evidence = Evidence::default();
    evidence.count("attempts", attempts.len() as u64);
    let mut parts = Vec::new();
    if refused.worst.all() > 0 {
        let all: Vec<String> = reasons
            .iter()
            .map(|(reason, count)| format!("{}: {count}", RejectReason(*reason)))
            .collect();
        evidence
            .count("refused", refused.worst.all())
            .text("reasons", all.join(", "))
            .text("refused_worst", refused.worst.names());
        let refusals = counted(refused.worst.all(), "connection");
        parts.push(format!("{refusals} refused ({})", refused.worst.name()));
    }
    for (kind, key, names, said) in [
        (&unanswered, "unanswered", "unanswered_worst", "never answered"),
        (&late, "late", "late_worst", "made late"),
    ] {
        if kind.worst.all() > 0 {
            evidence
                .count(key, kind.worst.all())
                .text(names, kind.worst.names());
            let count = counted(kind.worst.all(), "connection");
            parts.push(format!("{count} {said} ({})", kind.worst.name()));
        }
    }
    if parts.is_empty() {
        return None;
    }
    let all = [&refused, &unanswered, &late];
    let waited = all.iter().map(|kind| kind.waited).fold(0, u64::saturating_add);
    evidence.count("waited_ns", waited);
    let mut row = SETUP.finding(
        (Severity::Warning, confidence),
        format!("{}; {} of waiting", parts.join("; "), Span(waited)),
        evidence,
        "Refused: the reason says what the other program lacks (invalid service id: nobody listens there). Unanswered: is the host up, and does \
         UDP port 4791 pass both ways? Late: look for losses of management datagrams, which only their own timer repeats.",
        first,
    );
    row.last_time = last;
    Some(row)
}
