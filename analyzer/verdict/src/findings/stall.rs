//! The finding about flows that stand still in the middle of a message, or wait long for answers.

use std::collections::{BTreeMap, HashSet};

use roce_model::{
    Address, Confidence, EpisodeKind, Evidence, FindingRow, FlowId, Period, RankEnd, Severity, Span, TapId,
};

use super::super::episodes::{Episode, SilenceEnd, StallFacts};
use super::super::numbers::{counted, note_first, percent, reaches, share};
use super::missed::MissedByTaps;
use super::overlaps::Overlaps;
use super::rule::{Context, FindingOf as _, Rule};
use super::silences::Silences;
use super::worst::Worst;

pub(super) const STALL: Rule = Rule {
    id: "stall",
    title: "flows stood still in the middle of a message, or waited for answers",
    meaning: "A message was under way and no packet of it came for far longer than usual for the flow: lost packets and a \
              timeout, a pause, or a sender that was not served. Or all was sent, and the answer came far later than others: \
              its receiver, or the way back, was late. An idle application is none: between messages a flow may \
              be silent for any time.",
    method: "Stall events (a silence inside a message, far beyond the flow's own pace) of at least stall_least, by \
             destination; with the retransmission runs by timeout that ended them. Waits for answers, of 1 ms and of 50 times the shortest \
             answer at least, count where three or more of a flow take stall_share of its time and stall_least in sum; shorter ones not while marks or \
             many senders show a queue at one of its hosts. The price is the time \
             that these flows waited for timers and receive buffers or were paused (time_*_ns), or the stalls where they are longer. Of low confidence at a tap that lost records.",
    source: "The definition of the analysis; training steps wait for the slowest message.",
    thresholds: &["stall_least", "stall_long", "stall_share"],
    severity: Severity::Info,
    otherwise: "warning when a timeout ended one of them, when packets to the same host were lost, refused or paused \
                meanwhile, when one lasted stall_long, or for waits for answers",
    confidence: "high when a timeout ended every stall, unless retransmit.timeout is less sure; medium when nothing captured says why; low \
                 at a tap that lost records, or that shows a part of its flows only",
    ..Rule::TALLIED
};

/// True if a queue at one of the flow's hosts, which marks or many senders show, explains that an answer came late.
fn is_of_a_queue(
    context: &Context<'_>,
    queues: &Overlaps<Address>,
    wait: &Episode,
    facts: &StallFacts,
) -> bool {
    let ends = context
        .directory
        .party(wait.row.tap, facts.flow)
        .map(|party| [Some(party.source), Some(party.destination)]);
    let ends = ends.unwrap_or([facts.destination, None]);
    let times = (wait.row.start_time, wait.row.end_time);
    ends.iter().flatten().any(|end| queues.meet(end, times))
}

/// The silences that count, and what explains them.
pub(super) fn silences<'a>(context: &'a Context<'_>) -> Silences<'a> {
    let least = context.thresholds.stall_least;
    let queues: Overlaps<Address> = context
        .episodes
        .iter()
        .map(|episode| &episode.row)
        .filter(|row| matches!(row.kind, EpisodeKind::Incast | EpisodeKind::Ecn))
        .filter_map(|row| Some((row.destination?, (row.start_time, row.end_time))))
        .collect();
    let mut waited: BTreeMap<(TapId, FlowId), WaitSum> = BTreeMap::new();
    let mut found = Vec::new();
    for episode in context.distinct(EpisodeKind::Stall) {
        let Some(facts) = episode.facts.stall else {
            continue;
        };
        let is_long = facts.longest >= least;
        if facts.ended_by == SilenceEnd::Answer {
            if is_long || !is_of_a_queue(context, &queues, episode, &facts) {
                let sum = waited.entry((episode.row.tap, facts.flow)).or_default();
                sum.waits += 1;
                sum.time = sum.time.saturating_add(facts.longest.0);
                found.push((episode, facts));
            }
        } else if is_long {
            found.push((episode, facts));
        }
    }
    found.retain(|(episode, facts)| {
        facts.ended_by != SilenceEnd::Answer || takes_most(context, (episode.row.tap, facts.flow), &waited)
    });
    Silences::new(found, context.episodes)
}

/// The time that stalls took: of one flow with the length of the run beside it, of several in sum.
pub(super) fn stood_still(context: &Context<'_>, sum: Span, flows: u64) -> String {
    match context.run.span.map(Period::length) {
        Some(length) if flows == 1 => {
            let of_run = share(sum.0, length.0).map(|share| format!(" ({})", percent(share)));
            format!("{sum} of {length}{}", of_run.unwrap_or_default())
        }
        None if flows == 1 => sum.to_string(),
        _ => format!("{sum} in sum"),
    }
}

/// `rank 11 waits for rank 3, channel 2`: the receiver of a message that is under way waits for its sender.
fn who_waits(ranks: &RankEnd) -> Option<String> {
    let (sender, receiver) = (ranks.rank?, ranks.peer_rank?);
    let channel = ranks.channel.map(|channel| format!(", channel {channel}"));
    Some(format!(
        "rank {receiver} waits for rank {sender}{}",
        channel.unwrap_or_default()
    ))
}

/// Waits of one flow for answers, and their time in ns.
#[derive(Clone, Copy, Default)]
struct WaitSum {
    waits: u64,
    time: u64,
}

/// With fewer waits for answers, each may have a cause of its own: a clock that was set looks like one.
const MIN_WAITS: u64 = 3;

/// True if waits for answers take stall_share of a flow's time, and stall_least.
fn takes_most(
    context: &Context<'_>,
    (tap, flow): (TapId, FlowId),
    waited: &BTreeMap<(TapId, FlowId), WaitSum>,
) -> bool {
    let WaitSum { waits, time } = waited.get(&(tap, flow)).copied().unwrap_or_default();
    let party = context.directory.party(tap, flow);
    let is_long = waits >= MIN_WAITS && time >= context.thresholds.stall_least.0;
    is_long && party.is_some_and(|party| reaches(time, party.lasted_ns, context.thresholds.stall_share))
}

/// The silences in words: of `all`, `answers` are waits for answers and `within` lie in a message.
fn what(all: u64, answers: u64, within: u64) -> String {
    if answers == all {
        return format!("{} for late answers", counted(all, "wait"));
    }
    let others = counted(all - answers, "stall");
    let within = if within > 0 && within == all - answers {
        " in the middle of a message"
    } else {
        ""
    };
    let answers = match answers {
        0 => String::new(),
        waits => format!(" and {} for late answers", counted(waits, "wait")),
    };
    format!("{others}{within}{answers}")
}

pub(super) fn stall(
    context: &Context<'_>,
    missed: &MissedByTaps,
    timeouts: Confidence,
) -> Option<FindingRow> {
    let mut worst = Worst::default();
    // The time of all stalls of each flow, or more, as the division of its time says: waits may be too short for a stall of their own.
    let mut waited: BTreeMap<(TapId, FlowId), u64> = BTreeMap::new();
    let (mut others, mut by_timeout, mut explained, mut lossy) = (0u64, 0u64, 0u64, false);
    // A flow that stood still several times is one flow.
    let mut flows: HashSet<FlowId> = HashSet::new();
    let (mut first, mut longest) = (None, None);
    let (mut answers, mut within) = (0u64, 0u64);
    for (episode, facts) in context.silences.counted.iter().copied() {
        match facts.ended_by {
            SilenceEnd::Answer => answers += 1,
            SilenceEnd::NextPacket => within += 1,
            SilenceEnd::Retransmission => {}
        }
        let waits = context
            .directory
            .ranks(episode.row.tap, facts.flow)
            .and_then(who_waits);
        longest = longest.max(Some((facts.longest, waits)));
        worst.add(facts.longest.0, || {
            let name = context.directory.name(episode.row.tap, facts.flow);
            format!("{name} for {}", facts.longest)
        });
        flows.insert(facts.flow);
        let sum = waited.entry((episode.row.tap, facts.flow)).or_default();
        *sum = sum.saturating_add(facts.longest.0);
        others = others.max((episode.facts.flows as u64).saturating_sub(1));
        by_timeout += u64::from(facts.by_timeout);
        explained += u64::from(facts.by_timeout || context.silences.has_reason(episode));
        let tap = episode.row.tap;
        lossy |= context.run.tap(tap).is_some_and(|row| row.records_lost() > 0) || missed.is_sparse(tap);
        note_first(&mut first, episode.row.start_time);
    }
    if worst.all() == 0 {
        return None;
    }
    // Only the longest flow of an episode of several is known: others are counted where they stood still
    // together.
    let flows = (flows.len() as u64).max(others + 1);
    let stood = waited.into_iter().map(|((tap, flow), stalls)| {
        let divided = context
            .directory
            .party(tap, flow)
            .map_or(0, |party| party.stood_still_ns);
        divided.max(stalls)
    });
    let stood = stood.fold(0, u64::saturating_add);
    let mut evidence = Evidence::default();
    evidence
        .count("stalls", worst.all())
        .count("flows", flows)
        .count("longest_ns", worst.most())
        .count("ended_by_timeout", by_timeout)
        .count("awaiting_answers", answers)
        .count("explained", explained)
        .count("stood_still_ns", stood)
        .text("worst", worst.names());
    let waits = longest.and_then(|(_, waits)| waits);
    if let Some(waits) = &waits {
        evidence.text("ranks", waits);
    }
    let waits = waits.map(|waits| format!(": {waits}")).unwrap_or_default();
    let confidence = match (lossy, by_timeout) {
        (true, _) => Confidence::Low,
        // No surer than the timeouts themselves.
        (false, of) if of == worst.all() => timeouts,
        (false, _) => Confidence::Medium,
    };
    let timeout = match by_timeout {
        0 => String::new(),
        times => format!(", {times} of them until a timeout"),
    };
    let is_long = worst.most() >= context.thresholds.stall_long.0;
    let severity = if explained > 0 || answers > 0 || is_long {
        Severity::Warning
    } else {
        Severity::Info
    };
    Some(STALL.finding(
        (severity, confidence),
        format!(
            "{}{timeout}; stood still for {}; the longest: {}{waits}",
            what(worst.all(), answers, within),
            stood_still(context, Span(stood), flows),
            worst.name()
        ),
        evidence,
        if answers == worst.all() {
            "Capture at {receivers}: where its answers are late there, look at its load; where not, at the way back."
        } else {
            "Look at what ended the longest stall: a retransmission run points to loss, a pause interval to PFC, neither to {senders}."
        },
        first,
    ))
}
