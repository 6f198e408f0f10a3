//! The finding about requests of programs that were acknowledged and never answered.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::{
    Address, Confidence, Evidence, FindingRow, ProgramExchange, ServiceId, Severity, Span, TapId, Time,
    value_of,
};

use super::super::numbers::{counted, note_first};
use super::rule::{Context, FindingOf as _, Rule};
use super::worst::Worst;

pub(super) const NO_ANSWER: Rule = Rule {
    id: "program.no-answer",
    title: "a program never answered requests that its adapter acknowledged",
    meaning: "The network delivered a request, and the adapter of the other end acknowledged it. The program behind it sent no answer, while it \
              answers others: the fault is in that program, or below it (a disk, a lock), not in the network.",
    method: "Connections whose SENDs, one at a time, are answered by a SEND or WRITE of the other side before the next; the side that sends first \
             asks. Fires for a SEND that is acknowledged and without an answer to the end of its connection or capture, for NO_ANSWER_FACTOR \
             (10) times the slowest answer between the same two hosts and 100 ms at least, after 8 answers or more. Where half of the connections \
             or more end with such a SEND, that is a habit of theirs. NVMe's requests for asynchronous events, and connections with several \
             SENDs at once, are left out.",
    source: "IBTA 9.7.5.1: an acknowledgement says that the request arrived, nothing of the program. NVMe over Fabrics 1.1, RFC 8166, MS-SMBD: \
             each SEND is answered.",
    thresholds: &[],
    severity: Severity::Warning,
    otherwise: "info where no other connection of the two hosts shows that the program answers, and the connection manager names no service",
    confidence: "high where the program answered others after it; else medium, or low where neither another connection nor a known service \
                 shows that an answer is due, or where the tap lost records",
    ..Rule::TALLIED
};

/// An answer is missing after this many times the slowest one.
const NO_ANSWER_FACTOR: u64 = 10;
/// And after this time at least.
const MIN_WAIT_NS: u64 = 100_000_000;
/// Answers between two hosts before one can be missed.
const MIN_KNOWN_ANSWERS: u64 = 8;

/// The name of the protocol behind a service id of the connection manager, by its port (IANA: 4420 nvme, 20049 nfsrdma, 445 microsoft-ds,
/// 3260 iscsi-target; 8009 is NVMe's discovery).
fn protocol(service: ServiceId) -> Option<&'static str> {
    Some(match service.port()? {
        4420 | 8009 => "NVMe-oF",
        20049 => "NFS/RDMA",
        445 => "SMB Direct",
        3260 => "iSER",
        _ => return None,
    })
}

/// Connections of which one host asks another.
#[derive(Default)]
struct Pair<'a> {
    missing: Vec<&'a ProgramExchange>,
    connections: u64,
    answers: u64,
    slowest: u64,
    /// Medians with the number of answers behind them.
    medians: Vec<(u64, u64)>,
    /// When the last answer can have come at the latest: only connections without a missing one.
    answered_until: Time,
}

impl Pair<'_> {
    /// The median of the medians, by answers.
    fn typical(&self) -> u64 {
        let mut medians = self.medians.clone();
        medians.sort_unstable();
        let mut left = self.answers / 2;
        let at = medians.iter().find(|(_, answers)| {
            let is_here = left < *answers;
            left = left.saturating_sub(*answers);
            is_here
        });
        at.or(medians.last()).map_or(0, |(median, _)| *median)
    }
}

fn waited(exchange: &ProgramExchange) -> u64 {
    exchange.until.since(exchange.pending_time).0
}

/// Requests that were never answered.
pub(super) fn no_answer(context: &Context<'_>) -> Option<FindingRow> {
    let services = services(context);
    let mut pairs: BTreeMap<(TapId, Address, Address), Pair<'_>> = BTreeMap::new();
    for exchange in &context.run.exchanges {
        let pair = pairs
            .entry((exchange.tap, exchange.source, exchange.destination))
            .or_default();
        pair.connections += 1;
        pair.answers = pair.answers.saturating_add(exchange.answered);
        pair.slowest = pair.slowest.max(exchange.answer_max_ns.unwrap_or_default());
        if let Some(median) = exchange.answer_p50_ns {
            pair.medians.push((median, exchange.answered));
        }
        if exchange.pending == 1 && exchange.most_pending == 1 {
            pair.missing.push(exchange);
        } else if exchange.answered > 0 {
            pair.answered_until = pair.answered_until.max(exchange.until);
        }
    }
    let mut worst = Worst::default();
    let mut protocols = BTreeSet::new();
    let mut best: Option<(Confidence, &ProgramExchange, u64, u64)> = None;
    let mut time = 0u64;
    let mut first: Option<Time> = None;
    for ((tap, source, _), pair) in &pairs {
        let least = pair.slowest.saturating_mul(NO_ANSWER_FACTOR).max(MIN_WAIT_NS);
        let is_missing =
            |exchange: &&&ProgramExchange| exchange.acknowledged_ns.is_some() && waited(exchange) >= least;
        let missing: Vec<&ProgramExchange> = pair.missing.iter().filter(is_missing).copied().collect();
        let count = missing.len() as u64;
        let is_habit = pair.connections > 1 && count * 2 >= pair.connections;
        if missing.is_empty() || pair.answers < MIN_KNOWN_ANSWERS || is_habit {
            continue;
        }
        for exchange in missing {
            let service = services.get(&(*tap, *source, exchange.own_qpn.value())).copied();
            let is_alive = pair.answered_until > exchange.pending_time;
            let is_whole = context.run.tap(*tap).is_none_or(|row| row.records_lost() == 0);
            let confidence = match (is_alive, service) {
                _ if !is_whole => Confidence::Low,
                (true, _) => Confidence::High,
                (false, Some(_)) => Confidence::Medium,
                (false, None) => Confidence::Low,
            };
            protocols.extend(service);
            let waited = waited(exchange);
            time = time.saturating_add(waited);
            note_first(&mut first, exchange.pending_time);
            worst.add(waited, || {
                format!(
                    "{} > {} QP {}",
                    exchange.source, exchange.destination, exchange.qpn
                )
            });
            let is_surer = best.is_none_or(|(known, ..)| (confidence as u8) < (known as u8));
            if is_surer {
                best = Some((confidence, exchange, pair.typical(), pair.answers));
            }
        }
    }
    let (confidence, example, typical, answers) = best?;
    let acknowledged = example.acknowledged_ns.unwrap_or_default();
    let mut evidence = Evidence::default();
    evidence
        .count("requests", worst.all())
        .count("waited_ns", time)
        .count("acknowledged_ns", acknowledged)
        .count("answers", answers)
        .count("answer_p50_ns", typical)
        .text("worst", worst.names());
    let names: Vec<&str> = protocols.into_iter().collect();
    let what = if names.is_empty() {
        String::new()
    } else {
        evidence.text("protocols", names.join(", "));
        format!("{} ", names.join(", "))
    };
    let share = value_of(answers) / value_of(answers.saturating_add(worst.all()));
    evidence.number("answered_share", share);
    Some(NO_ANSWER.finding(
        (Severity::Warning, confidence),
        format!(
            "{what}{}: acknowledged after {}, never answered in {}; the {answers} others after {}: the program of {}, not the network: {}",
            counted(worst.all(), "request"),
            Span(acknowledged),
            Span(worst.most()),
            Span(typical),
            example.destination,
            worst.names()
        ),
        evidence,
        "Look at the program at that host (its log, its queue of that connection, the device behind it), and at its timeouts.",
        first,
    ))
}

/// The protocols of connections, by tap, who asked for them, and their queue pair.
fn services(context: &Context<'_>) -> BTreeMap<(TapId, Address, u32), &'static str> {
    let attempts = context.run.attempts.iter();
    attempts
        .filter_map(|attempt| {
            let name = protocol(attempt.service?)?;
            Some(((attempt.tap, attempt.source, attempt.qpn.value()), name))
        })
        .collect()
}
