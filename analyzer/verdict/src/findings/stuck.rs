//! Findings about a job whose documents say that a collective stands still or a rank is gone, with what its packets show.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use roce_model::{
    Address, Confidence, CreditRow, Evidence, FindingRow, RankState, RankStateRow, RunSummary, Severity,
    Span, Time, TraceSource,
};

use super::super::numbers::{counted, ranked, some};
use super::rule::{FindingOf as _, Needs, Rule};

/// A collective stands still after this multiple of the longest time between two.
const GAPS: u64 = 3;
/// And after this long at least: a second is more than any timeout of a queue pair but the longest.
const MIN_STILL_NS: u64 = Span::SECOND.0;
/// A document with one collective shows no usual time between two: the shortest timeouts of watchdogs are a minute.
const UNKNOWN_GAP_NS: u64 = 60 * Span::SECOND.0;
/// Hosts that a finding names, at most.
const MAX_HOSTS: usize = 8;
/// Ranks that a summary names, at most.
const MAX_NAMED: usize = 4;

pub(super) const STUCK: Rule = Rule {
    id: "job.stuck",
    title: "a collective stands still, or a rank is gone",
    meaning: "A document of the job says that a rank does not answer, or that it does not complete a collective that others wait for. The \
              packets show which of its connections are silent, since when, and who owed the next packet: credits that are unused wait for \
              the sender, outstanding bytes for the network or the receiver.",
    method: "RAS: a rank that is dead or does not answer; or whose count is the same in answers of different times and behind others. One behind in one \
             answer is normal, two or more is for information. Flight recorder: the lowest collective that is not completed, if the \
             dumps or the silence of its connections last a second and three times the longest time between two collectives. \
             Of the credits of the rank's host, the connection that owes most is named.",
    source: "NVIDIA/nccl, src/ras/client_support.cc; pytorch/pytorch, c10d/FlightRecorder.hpp; the table `credits`.",
    thresholds: &[],
    severity: Severity::Critical,
    otherwise: "warning for ranks that do not answer yet, and for counts that stand while connections are in use; info at low confidence",
    confidence: "high: RAS calls the rank dead, or documents and silent connections agree; medium: documents alone; low: one answer of RAS",
    needs: Needs::Any,
    ..Rule::TALLIED
};

/// A rank that does not go on.
struct StuckRank<'a> {
    row: &'a RankStateRow,
    why: String,
    severity: Severity,
    confidence: Confidence,
    /// Latest time at which its connections can have been in use.
    begin: Option<Time>,
    /// Time of silence that agrees with the document.
    least_ns: u64,
}

/// A row's collective: communicator and operation.
type Kind<'a> = (&'a str, &'a str);

fn communicator(row: &RankStateRow) -> &str {
    row.communicator.as_deref().unwrap_or_default()
}

/// `rank 2 (10.77.1.3)`, or what else is known.
fn name(row: &RankStateRow) -> String {
    let host = row.address.map(|address| address.to_string());
    let host = host.or_else(|| row.hostname.as_deref().map(str::to_owned));
    match (row.rank, host) {
        (Some(rank), Some(host)) => format!("rank {rank} ({host})"),
        (Some(rank), None) => format!("rank {rank}"),
        (None, Some(host)) => format!("a process at {host}"),
        (None, None) => "a process".to_owned(),
    }
}

/// A host as findings list it.
fn host(row: &RankStateRow) -> Option<String> {
    row.address.map(|address| ranked(address, row.rank))
}

/// Ranks that RAS does not reach.
fn gone(rows: &[RankStateRow]) -> Vec<StuckRank<'_>> {
    let found = rows.iter().filter_map(|row| {
        let (why, severity, confidence) = match row.state {
            RankState::Dead => ("is considered dead by RAS", Severity::Critical, Confidence::High),
            RankState::Missing => ("did not answer RAS", Severity::Warning, Confidence::Medium),
            RankState::Failed => (
                "reports an asynchronous error to RAS",
                Severity::Warning,
                Confidence::High,
            ),
            _ => return None,
        };
        Some(StuckRank {
            row,
            why: why.to_owned(),
            severity,
            confidence,
            begin: None,
            least_ns: MIN_STILL_NS,
        })
    });
    found.collect()
}

/// Ranks whose counts in RAS stay behind. Answers are distinguished by their time: one that was given twice is one.
fn behind<'a>(rows: &[&'a RankStateRow], in_use: &LatestUse) -> Vec<StuckRank<'a>> {
    type Counts<'a> = BTreeMap<Option<u64>, &'a RankStateRow>;
    let mut counts: BTreeMap<(Kind<'_>, u32), Counts<'a>> = BTreeMap::new();
    let mut highest: BTreeMap<(Kind<'_>, Option<u64>), u64> = BTreeMap::new();
    for row in rows {
        let Some(sequence) = row.sequence else { continue };
        let kind = (communicator(row), &*row.operation);
        let most = highest.entry((kind, row.local_s)).or_default();
        *most = (*most).max(sequence);
        if let Some(rank) = row.rank {
            counts.entry((kind, rank)).or_default().insert(row.local_s, row);
        }
    }
    let mut found = Vec::new();
    for ((kind, _), answers) in &counts {
        let Some((first, (last, row))) = answers.keys().next().zip(answers.last_key_value()) else {
            continue;
        };
        let own = row.sequence.unwrap_or_default();
        let others = |at: &Option<u64>| highest.get(&(*kind, *at)).copied().unwrap_or_default();
        let stands = answers.len() > 1 && answers.values().all(|row| row.sequence == Some(own));
        let operation = &row.operation;
        let (why, judged) = if stands && others(first) > own {
            let apart = Option::zip(*first, *last).map_or(0, |(first, last)| last - first);
            let answers = counted(answers.len() as u64, "answer");
            let why = format!(
                "stands at {operation} {own} in {answers} of RAS within {apart} s, others at {}",
                others(last)
            );
            let is_silent = in_use.silence(row, None, MIN_STILL_NS).is_some();
            let severity = if is_silent {
                Severity::Critical
            } else {
                Severity::Warning
            };
            (why, (severity, Confidence::Medium))
        } else if answers.len() == 1 && others(last).saturating_sub(own) > 1 {
            let why = format!(
                "has launched {operation} {own}, others {}, in one answer of RAS: ask again",
                others(last)
            );
            (why, (Severity::Info, Confidence::Low))
        } else {
            continue;
        };
        found.push(StuckRank {
            row,
            why,
            severity: judged.0,
            confidence: judged.1,
            begin: None,
            least_ns: MIN_STILL_NS,
        });
    }
    found
}

/// Ranks that hold up the lowest collective that is not completed, by flight recorders.
fn open<'a>(rows: &[&'a RankStateRow], in_use: &LatestUse) -> Vec<StuckRank<'a>> {
    let mut groups: BTreeMap<&str, Vec<&'a RankStateRow>> = BTreeMap::new();
    for row in rows {
        groups.entry(communicator(row)).or_default().push(row);
    }
    let mut found = Vec::new();
    for (group, rows) in groups {
        let is_open = |row: &&&RankStateRow| matches!(row.state, RankState::Scheduled | RankState::Started);
        let Some(lowest) = rows.iter().filter(is_open).filter_map(|row| row.sequence).min() else {
            continue;
        };
        let at_lowest = || {
            rows.iter()
                .filter(is_open)
                .filter(|row| row.sequence == Some(lowest))
        };
        let has_started = at_lowest().any(|row| row.state == RankState::Started);
        let is_scheduled = |row: &&&RankStateRow| row.state == RankState::Scheduled;
        let waits = has_started && at_lowest().any(|row| is_scheduled(&row));
        let latest = rows.iter().filter_map(|row| row.known_time).max();
        let completed = rows.len() - at_lowest().count();
        let whole = rows.iter().filter_map(|row| row.ranks).max().unwrap_or_default() as usize;
        for row in at_lowest().filter(|row| !waits || is_scheduled(row)) {
            let least_ns = row
                .gap_ns
                .map_or(UNKNOWN_GAP_NS, |gap| gap.saturating_mul(GAPS).max(MIN_STILL_NS));
            let by_documents = Option::zip(row.begin_time, latest)
                .is_some_and(|(begin, latest)| latest.since(begin).0 >= least_ns && latest > begin);
            let silent = in_use.silence(row, row.begin_time, least_ns).is_some();
            if !by_documents && !silent {
                continue;
            }
            let others = match (completed, waits) {
                (_, true) => ", which others have begun".to_owned(),
                (0, _) if whole > rows.len() => {
                    format!(", like all {} of {whole} ranks with a document", rows.len())
                }
                (0, _) => ", like all others: none stands out".to_owned(),
                (count, _) => format!(", which {} completed", counted(count as u64, "other rank")),
            };
            found.push(StuckRank {
                row,
                why: format!("has not completed {} {lowest} of {group}{others}", row.operation),
                severity: Severity::Critical,
                confidence: if silent {
                    Confidence::High
                } else {
                    Confidence::Medium
                },
                begin: row.begin_time,
                least_ns,
            });
        }
    }
    found
}

/// Connections with credits of a rank's host; of a rank without an address all.
fn connections<'r>(row: &RankStateRow, run: &'r RunSummary) -> impl Iterator<Item = &'r CreditRow> {
    let address = row.address;
    let is_own = move |host: Address| address.is_none_or(|address| address == host);
    run.credits
        .iter()
        .filter(move |credit| is_own(credit.sender) || is_own(credit.receiver))
}

/// Latest use of connections with credits.
struct LatestUse {
    of_host: BTreeMap<Address, Time>,
    of_any: Option<Time>,
    /// End of the run.
    end: Option<Time>,
}

impl LatestUse {
    fn new(run: &RunSummary) -> Self {
        let mut of_host: BTreeMap<Address, Time> = BTreeMap::new();
        for (credit, time) in run
            .credits
            .iter()
            .filter_map(|credit| Some((credit, credit.last_time?)))
        {
            for host in [credit.sender, credit.receiver] {
                let last = of_host.entry(host).or_insert(time);
                *last = time.max(*last);
            }
        }
        Self {
            of_any: of_host.values().max().copied(),
            of_host,
            end: run.span.map(|span| span.last),
        }
    }

    /// When the rank's connections became silent, if they stayed so for this long, and were not in use long after `begin`.
    fn silence(&self, row: &RankStateRow, begin: Option<Time>, least_ns: u64) -> Option<Time> {
        let last = match row.address {
            Some(host) => *self.of_host.get(&host)?,
            None => self.of_any?,
        };
        let is_meanwhile = begin.is_none_or(|begin| last.since(begin).0 <= least_ns);
        (is_meanwhile && self.end?.since(last).0 >= least_ns).then_some(last)
    }
}

/// The connection that owes most: credits that its sender does not use, then bytes without an acknowledgement.
fn owing<'r>(row: &RankStateRow, run: &'r RunSummary) -> Option<&'r CreditRow> {
    connections(row, run).max_by_key(|credit| {
        let is_sender = row.address == Some(credit.sender);
        (
            is_sender && credit.credits_unused > 0,
            credit.outstanding_bytes,
            credit.credits_unused,
            credit.last_time,
        )
    })
}

/// Words and evidence of a connection.
fn shown(credit: &CreditRow, run: &RunSummary, evidence: &mut Evidence) -> String {
    let connection = format!(
        "{} > {}",
        ranked(credit.sender, credit.sender_rank),
        ranked(credit.receiver, credit.receiver_rank)
    );
    evidence
        .text("connection", connection.clone())
        .count("credits_unused", credit.credits_unused)
        .count("outstanding_bytes", credit.outstanding_bytes);
    let zero = run.zero();
    let mut text = format!(
        "{connection}: {} unused, {} outstanding",
        counted(credit.credits_unused, "credit"),
        counted(credit.outstanding_bytes, "byte")
    );
    if let Some(after) = credit.last_ack_time.map(|time| time.since(zero)) {
        evidence.count("last_ack_after_ns", after.0);
        // Writing to a string cannot fail.
        let _ = write!(text, ", last ACK at +{after}");
    }
    if let Some((last, span)) = Option::zip(credit.last_time, run.span) {
        let (after, silent) = (last.since(zero), span.last.since(last));
        evidence
            .count("silent_after_ns", after.0)
            .count("silent_ns", silent.0);
        let _ = write!(text, ", silent since +{after}, {silent} before the end");
    }
    text
}

/// The finding about a job that stands still.
pub(super) fn stuck(run: &RunSummary) -> Option<FindingRow> {
    let of = |form: TraceSource| {
        let numbers: BTreeSet<u32> = run
            .traces
            .iter()
            .filter(|row| row.form == form)
            .map(|row| row.trace)
            .collect();
        let rows = run
            .rank_states
            .iter()
            .filter(move |row| numbers.contains(&row.trace));
        rows.collect::<Vec<&RankStateRow>>()
    };
    let mut found = gone(&run.rank_states);
    let in_use = LatestUse::new(run);
    found.extend(behind(&of(TraceSource::Ras), &in_use));
    found.extend(open(&of(TraceSource::FlightRecorder), &in_use));
    found.sort_by_key(|one| {
        std::cmp::Reverse((
            one.severity,
            one.confidence == Confidence::High,
            one.row.rank.is_some(),
        ))
    });
    let worst = found.first()?;
    let mut evidence = Evidence::default();
    let mut names: Vec<String> = found.iter().map(|one| name(one.row)).collect();
    names.sort_unstable();
    names.dedup();
    evidence
        .count("ranks", names.len() as u64)
        .text("which", some(&names, MAX_NAMED, names.len()));
    if let Some(sequence) = worst.row.sequence {
        evidence
            .count("sequence", sequence)
            .text("operation", worst.row.operation.to_string());
    }
    let silent = in_use.silence(worst.row, worst.begin, worst.least_ns);
    let connection = owing(worst.row, run);
    let about = match connection {
        Some(credit) => shown(credit, run, &mut evidence),
        None => "no connection of it with credits was captured".to_owned(),
    };
    let more = match names.len() {
        0 | 1 => String::new(),
        count => format!("; {}", counted(count as u64 - 1, "other rank")),
    };
    let summary = format!("{} {}; {about}{more}", name(worst.row), worst.why);
    let confidence = if silent.is_some() && worst.confidence == Confidence::Medium {
        Confidence::High
    } else {
        worst.confidence
    };
    let hosts: BTreeSet<String> = found.iter().filter_map(|one| host(one.row)).collect();
    let mut finding = STUCK.finding(
        (worst.severity, confidence),
        summary,
        evidence,
        next_step(worst.row, connection),
        silent.or(worst.begin),
    );
    finding.waited_ns = silent.and_then(|last| Some(run.span?.last.since(last).0));
    finding.last_time = finding.first_time.and(run.span.map(|span| span.last));
    finding.aggressors = hosts.into_iter().take(MAX_HOSTS).collect();
    Some(finding)
}

fn next_step(row: &RankStateRow, connection: Option<&CreditRow>) -> &'static str {
    match connection {
        Some(credit) if credit.outstanding_bytes > 0 => {
            "Data are not acknowledged: look at losses and the end of this connection (table `ends`), then at the receiver's host."
        }
        Some(credit) if credit.credits_unused > 0 && row.address == Some(credit.sender) => {
            "It holds credits and sends nothing: look at the stack of its process and at its GPU, not at the network."
        }
        Some(_) => "Look at the stack of its process and at its host.",
        None => "Capture at its host with `-s 160`, and look at the stack of its process.",
    }
}
