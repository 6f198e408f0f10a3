//! The finding about connections that failed, from the table `ends`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use roce_model::{Address, Confidence, EndKind, EndRow, Evidence, FindingRow, Severity, Span};

use super::super::ends::MAX_REPEATS;
use super::super::numbers::{counted, some};
use super::rule::{Context, FindingOf as _, Rule};

/// Connections of two hosts that ended alike, one after another, from which they are a loop.
const MIN_LOOP: usize = 5;
/// Names that a finding lists.
const MAX_NAMED: usize = 3;

pub(super) const FAILED: Rule = Rule {
    id: "connection.failed",
    title: "connections failed",
    meaning: "The work of a queue pair ended without success: its request was refused, or nobody answered it until the requester gave up. \
              The application gets a completion with an error (12: retries exhausted; 13: RNR retries exhausted; 9 to 11: refused).",
    method: "The table `ends`. A connection is refused by a fatal NAK behind which neither side went on. It is never-answered or \
             retries-unanswered when one request was sent three times or more in the spacing of a timer and nothing new followed; \
             rnr-exhausted when the requester did not come again after RNR NAKs; silent when a request that asked for an answer had none at \
             the end of the capture, for more than 1.07 s. The other direction need not be known: a requester that comes again got no answer. \
             Seven repeats, or a silence of twice their spacing, show that it gave up.",
    source: "IBTA 9.7.5.2 (NAK codes), 9.7.6.1.3 (local ACK timeout: 4.096 us x 2^N, up to four times as long), 9.9.2.1 (retry counters); \
             enum ibv_wc_status.",
    thresholds: &[],
    severity: Severity::Critical,
    confidence: "high for a refusal, and where packets to the requester were captured, none was lost by the capture, and a timer fits all \
                 repeats; medium else; low for few repeats of which no answer could have been captured",
    ..Rule::TALLIED
};

/// How bad the end of a connection is: one that gave up is broken, one that still waits may go on.
fn severity(row: &EndRow) -> Severity {
    match row.outcome {
        EndKind::Closed => Severity::Ok,
        EndKind::Silent => Severity::Warning,
        EndKind::Refused | EndKind::RnrExhausted => Severity::Critical,
        EndKind::NeverAnswered | EndKind::RetriesUnanswered => {
            let longest = row.repeat_max_ns.unwrap_or(u64::MAX);
            let is_silent = row.silence_ns > longest.saturating_mul(2) && row.confidence == Confidence::High;
            if row.repeats >= MAX_REPEATS || is_silent {
                Severity::Critical
            } else {
                Severity::Warning
            }
        }
    }
}

/// Connections of two hosts that ended alike.
type Alike<'a> = BTreeMap<(Address, Address, EndKind, Option<&'static str>), Vec<&'a EndRow>>;

pub(super) fn failed(context: &Context<'_>) -> Option<FindingRow> {
    let is_meant = |row: &&EndRow| {
        row.outcome != EndKind::Closed && context.only.is_none_or(|only| only.contains(&row.flow_id))
    };
    let mut rows: Vec<&EndRow> = context.run.ends.iter().filter(is_meant).collect();
    rows.sort_by_key(|row| {
        let judged = (severity(row), row.confidence != Confidence::Low, row.waited_ns);
        (core::cmp::Reverse(judged), row.tap, row.flow_id)
    });
    let worst = *rows.first()?;
    let mut alike: Alike<'_> = BTreeMap::new();
    for row in &rows {
        let key = (row.source, row.destination, row.outcome, row.refusal);
        alike.entry(key).or_default().push(row);
    }
    let key = (worst.source, worst.destination, worst.outcome, worst.refusal);
    let group = alike.get(&key).filter(|group| group.len() >= MIN_LOOP);
    let sentence = match group {
        Some(group) => loop_of(group),
        None => sentence(worst, &name(context, worst)),
    };
    let names: Vec<String> = rows
        .iter()
        .take(MAX_NAMED)
        .map(|row| format!("{}: {}", name(context, row), words(row)))
        .collect();
    let summary = match rows.len() {
        1 => sentence,
        all if group.is_some_and(|group| group.len() == all) => sentence,
        all => format!(
            "{} failed ({}): {sentence}",
            counted(all as u64, "connection"),
            outcomes(&rows)
        ),
    };
    let mut finding = FAILED.finding(
        (severity(worst), worst.confidence),
        summary,
        evidence(worst, &rows, &some(&names, MAX_NAMED, rows.len())),
        "",
        rows.iter().map(|row| row.time).min(),
    );
    finding.next_step = next_step(worst).into();
    Some(finding)
}

fn name(context: &Context<'_>, row: &EndRow) -> String {
    context.directory.name(row.tap, row.flow_id)
}

/// The outcome in words.
fn words(row: &EndRow) -> String {
    match (row.outcome, row.refusal) {
        (EndKind::Refused, Some(reason)) => format!("refused ({reason})"),
        (EndKind::Refused, None) => "refused".to_owned(),
        (EndKind::RnrExhausted, _) => "no receive buffer until it gave up".to_owned(),
        (EndKind::NeverAnswered, _) => "never answered".to_owned(),
        (EndKind::RetriesUnanswered, _) => "retries unanswered".to_owned(),
        (EndKind::Silent, _) => "silent".to_owned(),
        (EndKind::Closed, _) => "closed".to_owned(),
    }
}

/// How many ended in which way.
fn outcomes(rows: &[&EndRow]) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for row in rows {
        *counts.entry(words(row)).or_default() += 1;
    }
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by(|(one, few), (other, many)| many.cmp(few).then(one.cmp(other)));
    let each: Vec<String> = counts
        .iter()
        .map(|(words, count)| format!("{count} {words}"))
        .collect();
    each.join(", ")
}

/// A connection that is made again and again.
fn loop_of(group: &[&EndRow]) -> String {
    let times = group.iter().map(|row| row.time);
    let (first, last) = (times.clone().min(), times.max());
    let length = last.unwrap_or_default().since(first.unwrap_or_default());
    let row = group[0];
    let how = format!("each {}", words(row));
    format!(
        "{} from {} to {} in {length}, {how}{}: a reconnect loop",
        counted(group.len() as u64, "connection"),
        row.source,
        row.destination,
        beside(row)
    )
}

/// One connection, in a sentence.
fn sentence(row: &EndRow, name: &str) -> String {
    let psn = row
        .request_psn
        .map(|psn| format!(" at PSN {psn}"))
        .unwrap_or_default();
    let how = match row.outcome {
        EndKind::Refused => format!(
            "{} refused its request{psn}: {}",
            row.destination,
            row.refusal.unwrap_or("fatal NAK")
        ),
        EndKind::RnrExhausted => format!(
            "{} had no receive buffer for its request{psn}: {} in {}, then it gave up",
            row.destination,
            counted(row.rnr_naks, "RNR NAK"),
            Span(row.waited_ns)
        ),
        EndKind::NeverAnswered => format!(
            "its first request{psn} was sent {} times in {} and never answered",
            row.repeats + 1,
            Span(row.waited_ns)
        ),
        EndKind::RetriesUnanswered => format!(
            "its request{psn} was sent {} times and not answered any more, {} after the last progress",
            row.repeats + 1,
            Span(row.waited_ns)
        ),
        EndKind::Silent => format!(
            "a request waited for its answer at the end of the capture, {} after the last packet",
            Span(row.silence_ns)
        ),
        EndKind::Closed => "closed".to_owned(),
    };
    format!("{name}: {how}{}", beside(row))
}

/// Text of the packets' further evidence.
fn beside(row: &EndRow) -> String {
    let mut words = String::new();
    if row.to_itself {
        words.push_str("; its frames are addressed to the MAC address that sends them");
    }
    if row.bad_icrc {
        words.push_str("; every ICRC of this sender is wrong, so that receivers drop its packets silently");
    }
    if let (true, Some(mtu), Some(other)) = (row.outcome == EndKind::Refused, row.path_mtu, row.peer_path_mtu)
        && mtu != other
    {
        let _ = write!(
            words,
            "; its packets are {mtu} bytes long, those of {} {other}",
            row.destination
        );
    }
    let waits = matches!(
        row.outcome,
        EndKind::NeverAnswered | EndKind::RetriesUnanswered | EndKind::Silent
    );
    if waits && row.peer_answers {
        let _ = write!(
            words,
            "; {} answered other queue pairs meanwhile",
            row.destination
        );
    }
    words
}

fn evidence(worst: &EndRow, rows: &[&EndRow], names: &str) -> Evidence {
    let count = |outcome: EndKind| rows.iter().filter(|row| row.outcome == outcome).count() as u64;
    let waited = rows.iter().map(|row| row.waited_ns).fold(0, u64::saturating_add);
    let mut evidence = Evidence::default();
    evidence
        .count("connections", rows.len() as u64)
        .count("refused", count(EndKind::Refused))
        .count("rnr_exhausted", count(EndKind::RnrExhausted))
        .count("never_answered", count(EndKind::NeverAnswered))
        .count("retries_unanswered", count(EndKind::RetriesUnanswered))
        .count("silent", count(EndKind::Silent))
        .count("waited_ns", waited);
    if let Some((shortest, longest)) = worst.repeat_min_ns.zip(worst.repeat_max_ns) {
        evidence
            .count("repeats", worst.repeats)
            .count("repeat_min_ns", shortest)
            .count("repeat_max_ns", longest);
    }
    if let Some((least, most)) = worst.timeout_min.zip(worst.timeout_max) {
        evidence
            .count("ack_timeout_min", least.into())
            .count("ack_timeout_max", most.into());
    }
    evidence.text("worst", names);
    evidence
}

/// Next step, from the packets' evidence.
fn next_step(row: &EndRow) -> String {
    let (source, destination) = (row.source, row.destination);
    if row.to_itself {
        return format!(
            "At {source}: `ip route get {destination}` and `ip neigh`: its own MAC address stands where that of {destination} or of the \
             router belongs."
        );
    }
    if row.bad_icrc {
        return format!(
            "At {source}: what changes packets behind the adapter's ICRC (a tunnel, NAT, a virtual switch), and the adapter's firmware."
        );
    }
    match (row.outcome, row.refusal) {
        (EndKind::Refused, Some("invalid request"))
            if row.path_mtu.is_some() && row.path_mtu != row.peer_path_mtu =>
        {
            format!(
                "Compare the MTU of the interfaces of {source} and {destination}, and the path MTU that their queue pairs are given."
            )
        }
        (EndKind::Refused, Some("remote access error")) => format!(
            "At {destination}: whether the memory of this request was still registered, with this key and for this access."
        ),
        (EndKind::Refused, _) => format!(
            "Look at the refused request (its PSN is in the table `ends`): operation and length against what {destination} posted."
        ),
        (EndKind::RnrExhausted, _) => format!(
            "At {destination}: why its program posts no receives; `min_rnr_timer` and `rnr_retry` of the queue pair."
        ),
        _ if row.peer_answers => format!(
            "{destination} and the way to it are alive: look there for the process of this queue pair, and whether it destroyed it."
        ),
        _ if row.peer_last_time.is_none() => format!(
            "Nothing of {destination} to {source} passed here: look at its link and address, at routes and PFC watchdogs between them, \
             and capture at {destination}."
        ),
        _ => format!(
            "Look at {destination} and the links to it: whether it was up, and where its packets stayed (discard counters of switch ports)."
        ),
    }
}
