//! Roots of trouble: whether the first finding names the cause. An item: a case whose cause is known and happened. Found: the first finding that is
//! worse than `ok` is one of the cause's. Said: the first finding, if it is a warning or worse; wrong when it is neither the cause's nor one of
//! its effects. In a healthy case each such finding is wrong.

use roce_model::{FindingRow, Severity};
use roce_sim::Truth;
use roce_sim::truth::{LossReason, NakKind, Outcome, PacketKind};

use crate::case::Case;
use crate::plan::Cause;
use crate::score::StatedConfidence;
use crate::scores::Scores;

const CLASS: &str = "root named first";

/// Packets lost, marked or refused that make a cause an event.
const SOME: usize = 10;

impl Cause {
    /// Findings that name it.
    fn findings(self) -> &'static [&'static str] {
        match self {
            Self::Healthy => &[],
            Self::NoEcn => &["ecn.not-capable"],
            Self::WrongDscp => &["dscp.mismatch"],
            // No packet shows a threshold: the queue drops what many senders bring, and marks nothing.
            Self::HighThreshold => &["incast", "ecn.threshold", "drops.switch"],
            Self::NoCnps => &["ecn.marks-without-cnp"],
            Self::IgnoredCnps => &["cnp.ignored"],
            Self::PauseStorm | Self::SlowReceiver => &["pause.storm", "pause.origin"],
            Self::BadLink => &["loss.network"],
            Self::DamagedPackets => &["icrc.bad"],
            Self::LostAnswers => &["retransmit.timeout", "loss.network"],
            Self::NoBuffers => &["rnr"],
            Self::Refused => &["connection.failed", "nak.fatal"],
            Self::DeadPeer => &["connection.failed"],
            Self::BuffersExhausted => &["connection.failed", "rnr"],
            Self::BlackHole => &["mtu.exceeded"],
        }
    }

    /// Findings about what follows from it.
    fn effects(self) -> &'static [&'static str] {
        match self {
            Self::Healthy | Self::Refused => &[],
            Self::NoEcn | Self::WrongDscp | Self::HighThreshold => &[
                "loss.network",
                "retransmit.timeout",
                "retransmit.waste",
                "incast",
                "stall",
                "unfair",
                "drops.switch",
            ],
            Self::NoCnps | Self::IgnoredCnps => {
                &["incast", "unfair", "loss.network", "retransmit.timeout", "stall"]
            }
            Self::PauseStorm | Self::SlowReceiver => {
                &["stall", "incast", "unfair", "retransmit.timeout", "loss.network"]
            }
            Self::BadLink | Self::DamagedPackets => {
                &["loss.network", "retransmit.timeout", "retransmit.waste", "stall"]
            }
            Self::LostAnswers => &["retransmit.waste", "stall"],
            Self::NoBuffers => &["stall", "retransmit.waste"],
            Self::DeadPeer => &["retransmit.timeout", "stall", "loss.network"],
            Self::BuffersExhausted => &["stall"],
            Self::BlackHole => &["connection.failed", "retransmit.timeout", "loss.network", "stall"],
        }
    }
}

pub(crate) fn compare(case: &Case, scores: &mut Scores) {
    let Some(root) = &case.scenario.root else {
        return;
    };
    let first = case
        .seen
        .summary
        .findings
        .iter()
        .find(|finding| finding.severity > Severity::Ok);
    let score = scores.of_class(CLASS);
    if root.cause != Cause::Healthy && !has_happened(&case.truth, root.cause) {
        return score.hidden();
    }
    let named = first.is_some_and(|first| root.cause.findings().contains(&first.id));
    let text = || {
        let said = first.map_or("nothing", |first| first.id);
        let others = case
            .seen
            .summary
            .findings
            .iter()
            .skip(1)
            .map(|finding| finding.id);
        let others: Vec<&str> = others.collect();
        format!("{:?}, first said: {said}, then {}", root.cause, others.join(" "))
    };
    if root.cause != Cause::Healthy {
        score.expect(named, text);
    }
    if let Some(first) = first.filter(|first| first.severity >= Severity::Warning) {
        let fits = named || root.cause.effects().contains(&first.id);
        score.tell_with(StatedConfidence::of(first.confidence), fits, text);
    }
    parties(case, first, scores);
}

/// Compares who suffers and who causes it with the names of the first finding, where it names anyone.
fn parties(case: &Case, first: Option<&FindingRow>, scores: &mut Scores) {
    let (Some(root), Some(first)) = (&case.scenario.root, first) else {
        return;
    };
    if !root.cause.findings().contains(&first.id) {
        return;
    }
    for (class, hosts, named) in [
        ("root's victims", &root.victims, &first.victims),
        ("root's aggressors", &root.aggressors, &first.aggressors),
    ] {
        let text = format!("{} {} {named}", first.summary, first.evidence);
        if hosts.is_empty() {
            continue;
        }
        let addresses = hosts.iter().filter_map(|host| case.address(host));
        let named = addresses.clone().any(|address| names(&text, address));
        scores.of_class(class).expect(named, || {
            let addresses: Vec<&str> = addresses.collect();
            format!(
                "{:?}: {} not in: {}",
                root.cause,
                addresses.join(", "),
                first.summary
            )
        });
    }
}

/// True if a text holds an address as a word of its own: 10.0.0.1 is no part of 10.0.0.12.
pub(crate) fn names(text: &str, address: &str) -> bool {
    text.match_indices(address).any(|(place, _)| {
        let after = text[place + address.len()..].chars().next();
        !after.is_some_and(|after| after.is_ascii_hexdigit())
    })
}

/// True if the cause had an effect in the run.
fn has_happened(truth: &Truth, cause: Cause) -> bool {
    let lost = |reason: LossReason| {
        truth
            .losses
            .iter()
            .filter(move |loss| loss.reason == reason)
            .count()
    };
    let ended = |outcomes: &[Outcome]| truth.ends.iter().any(|end| outcomes.contains(&end.outcome));
    match cause {
        Cause::Healthy => true,
        Cause::NoEcn | Cause::WrongDscp | Cause::HighThreshold => lost(LossReason::TailDrop) >= SOME,
        Cause::NoCnps => truth.ce_marks.len() >= 100,
        Cause::IgnoredCnps => truth.cnps.iter().filter(|cnp| cnp.received.is_some()).count() >= SOME,
        Cause::PauseStorm | Cause::SlowReceiver => {
            let paused: u64 = truth.pauses.iter().map(|pause| pause.end - pause.begin).sum();
            paused * 5 > truth.duration_ns
        }
        Cause::BadLink => lost(LossReason::Random) >= SOME,
        Cause::DamagedPackets => lost(LossReason::Icrc) >= 3,
        Cause::LostAnswers => {
            let lost = truth.losses.iter().filter(|loss| loss.kind == PacketKind::Ack);
            lost.count() >= 3 && truth.retransmission_runs.len() >= 2
        }
        Cause::NoBuffers => truth.naks.iter().filter(|nak| nak.kind == NakKind::Rnr).count() >= 3,
        Cause::Refused => ended(&[Outcome::Refused]),
        Cause::DeadPeer => ended(&[
            Outcome::NeverAnswered,
            Outcome::RetriesUnanswered,
            Outcome::Silent,
        ]),
        Cause::BuffersExhausted => ended(&[Outcome::RnrExhausted]),
        Cause::BlackHole => ended(&[Outcome::NeverAnswered, Outcome::RetriesUnanswered]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_word() {
        assert!(names("to 10.0.0.1: lost", "10.0.0.1") && names("10.0.0.1", "10.0.0.1"));
        assert!(!names("to 10.0.0.12", "10.0.0.1") && !names("fd00::1a", "fd00::1"));
        assert!(names("fd00::1, fd00::2", "fd00::1"));
    }
}
