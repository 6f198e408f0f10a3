//! The findings about who was late in a job's collectives: a rank, a receiver or the network.

use roce_lateness::{JobLateness, JobRank, LateKind, LateRoot, LateStart, RankWait};
use roce_model::{Confidence, Evidence, FindingRow, Severity, Span, WaitReason};

use super::super::numbers::{counted, percent, ranked, some};
use super::rule::{Context, FindingOf as _, Needs, Rule};

const SOURCE: &str = "NVIDIA/nccl, src/transport/net.cc (sendProxyProgress, recvProxyProgress) and src/transport/net_ib.cc (the \
                      ring of credits at the sender).";
const PRICE: &str = "The price is by how much earlier the last collective would have ended, had its times been as long as those of the \
                     others. It is found at 2 % of the time and 50 us in each collective.";
const SURE: &str = "high with captures at all ranks, 5 collectives or more and whole records, and clocks surer than a \
                    tenth of the price; low where collectives cannot be told apart; medium otherwise";

pub(super) const RANK: Rule = Rule {
    id: "rank.late",
    title: "a rank was late and others waited for it",
    meaning: "The rank had its credits and its input and did not send: its GPU, its host or its program was late, not the network. All other \
              ranks of the job wait in each collective for the last one.",
    method: PRICE,
    source: SOURCE,
    thresholds: &[],
    severity: Severity::Warning,
    otherwise: "info at low confidence",
    confidence: SURE,
    needs: Needs::Ends,
    ..Rule::TALLIED
};

pub(super) const RECEIVER: Rule = Rule {
    id: "receiver.late",
    title: "a rank gave credits late and its sender waited",
    meaning: "A sender may only send into a buffer that its receiver offers. The receiver had used its buffers and offered them late: its \
              proxy thread was late, not the network.",
    method: PRICE,
    source: SOURCE,
    thresholds: &[],
    severity: Severity::Warning,
    otherwise: "info at low confidence",
    confidence: SURE,
    needs: Needs::Ends,
    ..Rule::TALLIED
};

pub(super) const NETWORK: Rule = Rule {
    id: "network.late",
    title: "collectives waited for packets under way",
    meaning: "Messages between some hosts, or of one port, took longer than messages of the same size elsewhere. Lost packets, timeouts, \
              marks and pauses that explain it are findings of their own.",
    method: PRICE,
    source: SOURCE,
    thresholds: &[],
    severity: Severity::Warning,
    otherwise: "info at low confidence",
    confidence: SURE,
    needs: Needs::Ends,
    ..Rule::TALLIED
};

pub(super) const CANNOT_TELL: Rule = Rule {
    id: "job.cannot_tell",
    title: "what collectives waited for is not shown",
    meaning: "Records are missing, or the captures show only a part of the job: a wait is seen, and its cause is elsewhere.",
    method: "Collectives of which more than 5 % of the messages are left out. A wait of the price of the other rules for ranks beside those \
             that were captured. The longest wait of the captured ranks, where other ranks of the job are not captured and none of these is late. \
             Short WRITEs from slot to slot of a ring, as credits go, whose frames were cut before the address in them.",
    source: SOURCE,
    thresholds: &[],
    severity: Severity::Info,
    confidence: "high for messages that are left out, medium for cut frames, low for causes elsewhere",
    needs: Needs::Ends,
    ..Rule::TALLIED
};

/// Ranks that a summary names, at most.
const MAX_NAMED: usize = 4;
/// Hosts that a finding names as victims, at most.
const MAX_VICTIMS: usize = 8;

/// `rank 2 (10.0.0.3)`, or the address alone.
fn name(rank: JobRank) -> String {
    match rank.number {
        Some(number) => format!("rank {number} ({})", rank.host),
        None => rank.host.to_string(),
    }
}

/// `2 (10.0.0.3)`, or the address alone: the value of the name `rank`.
fn number(rank: JobRank) -> String {
    match rank.number {
        Some(number) => format!("{number} ({})", rank.host),
        None => rank.host.to_string(),
    }
}

/// A host as findings list it: with its rank where it is known.
fn host(rank: JobRank) -> String {
    ranked(rank.host, rank.number)
}

/// The rank that a root is at.
const fn rank_of(kind: LateKind) -> Option<JobRank> {
    match kind {
        LateKind::Start(rank, _)
        | LateKind::Sender(rank)
        | LateKind::Receiver(rank)
        | LateKind::Rank(rank) => Some(rank),
        LateKind::Way(..) | LateKind::Port(_) | LateKind::Before(_) | LateKind::Behind(_) => None,
    }
}

const fn rule_of(kind: LateKind) -> &'static Rule {
    match kind {
        LateKind::Start(..) | LateKind::Sender(_) | LateKind::Rank(_) => &RANK,
        LateKind::Receiver(_) => &RECEIVER,
        LateKind::Way(..) | LateKind::Port(_) => &NETWORK,
        LateKind::Before(_) | LateKind::Behind(_) => &CANNOT_TELL,
    }
}

/// Ranks that waited, those that waited longest first.
fn waiting(job: &JobLateness, root: &LateRoot) -> Vec<JobRank> {
    let mut ranks: Vec<JobRank> = Vec::new();
    for wait in &job.waits {
        if Some(wait.rank) != rank_of(root.kind) && !ranks.contains(&wait.rank) {
            ranks.push(wait.rank);
        }
    }
    ranks
}

/// The late thing in words, up to its price.
fn what(job: &JobLateness, root: &LateRoot) -> String {
    let by = Span(root.typical_ns);
    let of = match job.collectives {
        0 => "while the job ran".to_owned(),
        all => format!("in {} of {}", root.collectives, counted(all.into(), "collective")),
    };
    match root.kind {
        LateKind::Start(rank, _) => format!("{} began {by} late {of}", name(rank)),
        LateKind::Sender(rank) => format!("{} passed data on {by} late {of}", name(rank)),
        LateKind::Rank(rank) => format!("{} was {by} late {of}", name(rank)),
        LateKind::Receiver(rank) => {
            format!(
                "{} gave back buffers that it had used late, which took {by} {of}",
                name(rank)
            )
        }
        LateKind::Way(from, to) => format!("messages between {from} and {to} took {by} too long {of}"),
        LateKind::Port(at) => format!("messages from and to {at} took {by} too long {of}"),
        LateKind::Before(rank) => {
            format!(
                "data of {} came {by} late {of}: the cause is there or at a rank before it",
                name(rank)
            )
        }
        LateKind::Behind(rank) => {
            format!(
                "credits of {} came {by} late {of}: the cause is there or at a rank behind it",
                name(rank)
            )
        }
    }
}

/// Words for what the credits say beside it.
fn remark(root: &LateRoot) -> &'static str {
    match root.kind {
        LateKind::Start(_, LateStart::Gpu) => {
            "; its receives were posted in time: its host was not late, the data of its GPU were"
        }
        LateKind::Start(_, LateStart::Host) => "; its receives were posted late, too: its host was late",
        _ => "",
    }
}

const fn next_step(root: &LateRoot) -> &'static str {
    match root.kind {
        LateKind::Start(_, LateStart::Gpu) => {
            "Compare this rank's GPU with the others': clocks, temperature, other programs, its part of the batch."
        }
        LateKind::Start(_, LateStart::Host) => {
            "Look at this rank's host: data loading, CPU load, launches of kernels, garbage collection."
        }
        LateKind::Start(..) | LateKind::Sender(_) | LateKind::Rank(_) => {
            "Look at this rank's host and GPU: load, clocks, other programs. The network waits for it."
        }
        LateKind::Receiver(_) => {
            "Look at the CPU of this rank's host: NCCL's proxy thread needs a core of its own, near the adapter."
        }
        LateKind::Way(..) => {
            "Look at losses, marks and pauses on the way between these hosts, then at its links."
        }
        LateKind::Port(_) => "Look at this host's port: its speed, its errors, and pauses that it gets.",
        LateKind::Before(_) | LateKind::Behind(_) => "Capture at that host, too, and at those beyond it.",
    }
}

/// Retransmitted messages of a network's root.
fn repeated(root: &LateRoot) -> String {
    match root.retransmitted_messages {
        0 => String::new(),
        count => format!("; {} retransmitted", counted(count, "message")),
    }
}

fn finding(all: &[(&JobLateness, &LateRoot)]) -> Option<FindingRow> {
    let &(job, root) = all.iter().max_by_key(|(_, root)| root.cost_ns)?;
    let waiting = waiting(job, root);
    let mut evidence = Evidence::default();
    evidence
        .count("cost_ns", root.cost_ns)
        .number("share", root.share)
        .count("collectives", root.collectives.into())
        .count("all_collectives", job.collectives.into())
        .count("typical_ns", root.typical_ns)
        .count("messages", job.messages)
        .count("left_out", job.left_out);
    if root.retransmitted_messages > 0 {
        evidence.count("retransmitted_messages", root.retransmitted_messages);
    }
    if let Some(rank) = rank_of(root.kind) {
        evidence.text("rank", number(rank));
    }
    match root.kind {
        LateKind::Start(_, LateStart::Gpu) => evidence.text("place", "gpu"),
        LateKind::Start(_, LateStart::Host) => evidence.text("place", "host"),
        _ => &mut evidence,
    };
    let chain: Vec<String> = job
        .waits
        .iter()
        .take(MAX_NAMED)
        .map(|wait| {
            let time = Span(wait.wait_ns);
            format!(
                "{} for {} ({}, {time})",
                name(wait.rank),
                name(wait.waits_for),
                wait.reason.name()
            )
        })
        .collect();
    if !chain.is_empty() {
        evidence.text("waits", chain.join("; "));
    }
    let names: Vec<String> = waiting.iter().copied().map(name).collect();
    let waited = if names.is_empty() {
        String::new()
    } else {
        format!("; {} waited", some(&names, MAX_NAMED, names.len()))
    };
    let more = match all.len() - 1 {
        0 => String::new(),
        more => format!("; {more} more"),
    };
    let length = job.last_time.since(job.first_time);
    let mut row = rule_of(root.kind).finding(
        (Severity::Warning, root.confidence),
        format!(
            "{}: {} of {length} ({}){}{}{waited}{more}",
            what(job, root),
            Span(root.cost_ns),
            percent(root.share),
            remark(root),
            repeated(root),
        ),
        evidence,
        next_step(root),
        Some(root.first_time),
    );
    row.last_time = Some(root.last_time);
    row.waited_ns = Some(root.cost_ns);
    row.victims = waiting.into_iter().take(MAX_VICTIMS).map(host).collect();
    let aggressor = match root.kind {
        LateKind::Port(at) => Some(at.to_string()),
        kind => rank_of(kind).map(host),
    };
    row.aggressors = aggressor.into_iter().collect();
    Some(row)
}

/// Records are missing: nothing is said about some collectives.
fn left_out(jobs: &[JobLateness]) -> Option<FindingRow> {
    let sum = |of: fn(&JobLateness) -> u64| jobs.iter().map(of).sum::<u64>();
    let unclear = sum(|job| job.unclear_collectives.into());
    let (all, left_out) = (sum(|job| job.collectives.into()), sum(|job| job.left_out));
    if unclear == 0 {
        return None;
    }
    let messages = sum(|job| job.messages).saturating_add(left_out);
    let mut evidence = Evidence::default();
    evidence
        .count("unclear_collectives", unclear)
        .count("all_collectives", all)
        .count("left_out", left_out)
        .count("messages", messages);
    let of = if all == 0 {
        String::new()
    } else {
        format!(" in {unclear} of {}", counted(all, "collective"))
    };
    Some(CANNOT_TELL.finding(
        (Severity::Info, Confidence::High),
        format!(
            "who was late{of} is not shown: records of {left_out} of {} are missing",
            counted(messages, "message")
        ),
        evidence,
        "Capture with a larger buffer, or with -s 192, so that no record of credits and data is lost.",
        jobs.iter().map(|job| job.first_time).min(),
    ))
}

/// Words for the wait of a captured rank: for what, and on which side of it the cause is.
fn waited_for(wait: &RankWait) -> String {
    let (for_what, side) = match wait.reason {
        WaitReason::Input => ("data", "there or at a rank before it"),
        WaitReason::Credit => ("credits", "there or at a rank behind it"),
        WaitReason::Network | WaitReason::Nothing => ("packets under way", "on the way to it or there"),
    };
    let (rank, peer, time) = (name(wait.rank), name(wait.waits_for), Span(wait.wait_ns));
    let whose = if wait.reason == WaitReason::Network {
        "to"
    } else {
        "of"
    };
    format!("{rank} waited {time} for {for_what} {whose} {peer}: if something was late, it is {side}")
}

/// Some ranks of a job are not captured, and the captured ones are not late: on which side of them others are, packets tell.
fn elsewhere(jobs: &[JobLateness]) -> Option<FindingRow> {
    let open = jobs.iter().filter(|job| !job.is_whole && job.roots.is_empty());
    let longest = |job: &JobLateness| {
        let mut waits = job.waits.iter();
        waits.find(|wait| job.captured.contains(&wait.rank)).copied()
    };
    let (job, wait) = open
        .map(|job| (job, longest(job)))
        .max_by_key(|(_, wait)| wait.map(|wait| wait.wait_ns))?;
    let captured = counted(job.captured.len() as u64, "rank");
    let mut evidence = Evidence::default();
    evidence
        .count("captured_ranks", job.captured.len() as u64)
        .count("messages", job.messages)
        .count("left_out", job.left_out);
    let what = match &wait {
        Some(wait) => {
            evidence
                .count("waited_ns", wait.wait_ns)
                .text("reason", wait.reason.name());
            waited_for(wait)
        }
        None => "no wait for others is seen".to_owned(),
    };
    Some(CANNOT_TELL.finding(
        (Severity::Info, Confidence::Low),
        format!("{captured} of a job captured, and not late: {what}"),
        evidence,
        "Capture at the job's other hosts, too.",
        Some(job.first_time),
    ))
}

/// Credits whose addresses were not captured, and none that was: frames were cut too short.
fn cut(context: &Context<'_>) -> Option<FindingRow> {
    let rings = context.run.cut_rings;
    if rings == 0 || !context.run.credited.is_empty() {
        return None;
    }
    let mut evidence = Evidence::default();
    evidence.count("rings", rings);
    Some(CANNOT_TELL.finding(
        (Severity::Info, Confidence::Medium),
        format!(
            "who was late is not shown: frames were cut before the addresses in the credits of {}",
            counted(rings, "connection")
        ),
        evidence,
        "Capture with -s 192.",
        None,
    ))
}

/// All findings of this family.
pub(super) fn late(context: &Context<'_>) -> Vec<FindingRow> {
    let Some(lateness) = context.lateness else {
        return Vec::new();
    };
    let jobs = &lateness.jobs;
    let of_rule = |rule: &Rule| -> Vec<(&JobLateness, &LateRoot)> {
        let all = jobs
            .iter()
            .flat_map(|job| job.roots.iter().map(move |root| (job, root)));
        all.filter(|(_, root)| rule_of(root.kind).id == rule.id).collect()
    };
    [
        finding(&of_rule(&RANK)),
        finding(&of_rule(&RECEIVER)),
        finding(&of_rule(&NETWORK)),
        left_out(jobs)
            .or_else(|| finding(&of_rule(&CANNOT_TELL)))
            .or_else(|| elsewhere(jobs))
            .or_else(|| cut(context)),
    ]
    .into_iter()
    .flatten()
    .collect()
}
