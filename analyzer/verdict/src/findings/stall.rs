//! The finding about flows that stand still in the middle of a message.

use std::collections::{BTreeMap, HashSet};

use roce_model::{
    Confidence, EpisodeKind, Evidence, FindingRow, FlowId, Period, RankEnd, Severity, Span, TapId,
};

use super::super::episodes::Episode;
use super::super::numbers::{counted, note_first, percent, share};
use super::missed::MissedByTaps;
use super::rule::{Context, FindingOf as _, Rule};
use super::worst::Worst;

pub(super) const STALL: Rule = Rule {
    id: "stall",
    title: "flows stood still in the middle of a message",
    meaning: "A message was under way and no packet of it came for far longer than usual for the flow: lost packets and a \
              timeout, a pause, or a sender that was not served. An idle application is none: between messages a flow may \
              be silent for any time.",
    method: "Stall events (a silence inside a message, far beyond the flow's own pace) of at least stall_least, by \
             destination; with the retransmission runs by timeout that ended them. The price is the time \
             that these flows waited for timers and receive buffers or were paused (time_*_ns), or the stalls where they are longer. Of low confidence at a tap that lost records.",
    source: "The definition of the analysis; training steps wait for the slowest message.",
    thresholds: &["stall_least", "stall_long"],
    severity: Severity::Info,
    otherwise: "warning when a timeout ended one of them, when packets to the same host were lost, refused or paused \
                meanwhile, or when one lasted stall_long",
    confidence: "high when a timeout ended every stall, unless retransmit.timeout is less sure; medium when nothing captured says why; low \
                 at a tap that lost records, or that shows a part of its flows only",
    ..Rule::TALLIED
};

/// True if something else that was captured explains a stall: losses on the way to the same host, a host without
/// buffers, pauses.
fn has_reason(context: &Context<'_>, stall: &Episode) -> bool {
    let row = &stall.row;
    context
        .episodes
        .iter()
        .take_while(|other| other.row.start_time <= row.end_time)
        .any(|other| {
            let there = other.row.destination == row.destination;
            let reason = match other.row.kind {
                EpisodeKind::Loss | EpisodeKind::Rnr => there,
                EpisodeKind::Pause => true,
                _ => false,
            };
            reason && other.row.tap == row.tap && other.row.end_time >= row.start_time
        })
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
    for episode in context.distinct(EpisodeKind::Stall) {
        let Some(facts) = episode
            .facts
            .stall
            .filter(|facts| facts.longest >= context.thresholds.stall_least)
        else {
            continue;
        };
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
        explained += u64::from(facts.by_timeout || has_reason(context, episode));
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
    let severity = if explained > 0 || worst.most() >= context.thresholds.stall_long.0 {
        Severity::Warning
    } else {
        Severity::Info
    };
    Some(STALL.finding(
        (severity, confidence),
        format!(
            "{} in the middle of a message{timeout}; stood still for {}; the longest: {}{waits}",
            counted(worst.all(), "stall"),
            stood_still(context, Span(stood), flows),
            worst.name()
        ),
        evidence,
        "Look at what ended the longest stall: a retransmission run points to loss, a pause interval to PFC, neither to {senders}.",
        first,
    ))
}
