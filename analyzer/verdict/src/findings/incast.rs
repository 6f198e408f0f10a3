//! Findings about many senders to one destination, and about how the way there was shared.

use std::collections::{HashMap, VecDeque};

use roce_model::{Address, Confidence, EpisodeKind, Evidence, FindingRow, Severity, Span, Time};

use super::super::episodes::Episode;
use super::super::numbers::{counted, note_first, percent};
use super::rule::{Context, FindingOf as _, Rule};
use super::sure::surer;
use super::worst::Worst;

pub(super) const INCAST: Rule = Rule {
    id: "incast",
    title: "many senders at once into one destination",
    meaning: "Several hosts send to one at the same time and its last link cannot take it: the queue before it fills, and \
              packets are marked, paused or dropped.",
    method: "Episodes of the kind incast: milliseconds in which at least incast_senders hosts send payload to one destination \
             at the same time (a host goes on sending for 200 us after a packet), with CE, CNPs or pauses, or with \
             losses while the data came at half of the link's speed (--link-rate, else 10 Gbit/s) or faster. Losses alone are no sign where one \
             sender has them all in a class of its own, which chance would bring about in less than 1 of 20 captures. With losses that prove a full \
             queue two senders are enough: both lost packets, and gaps of a flow follow each other within 1 to 8 packets more often than losses \
             that do not depend on each other do in 1 of 20 captures.",
    source: "DCQCN (SIGCOMM 2015) and HPCC (SIGCOMM 2019) measure it as the hard case of RoCE.",
    thresholds: &["incast_senders", "incast_long", "episode_quiet", "absorbed_share"],
    severity: Severity::Info,
    otherwise: "warning when packets were lost or flows paused meanwhile, or when the incasts of a second lasted incast_long in all; never with low confidence",
    confidence: "high with at least 10 marked packets while the senders' traffic overlaps; medium with fewer marks, with CNPs or pauses only, \
                 or with losses that prove a full queue; low with other losses only",
    ..Rule::TALLIED
};

pub(super) const UNFAIR: Rule = Rule {
    id: "unfair",
    title: "flows into one destination get unequal shares",
    meaning: "Of flows that compete for one destination some get far less than others, longer than rates need to settle.",
    method: "In incast and ecn episodes with signs in at least unfair_bins milliseconds: Jain's index of the payload of the flows that sent in \
             at least half as many of them as the most active one, when there are at least three, against jain_least.",
    source: "Jain, Chiu, Hawe: A quantitative measure of fairness, DEC-TR-301, 1984.",
    thresholds: &["jain_least", "jain_warning", "unfair_bins", "least_data_packets"],
    severity: Severity::Info,
    otherwise: "warning below jain_warning, unless the confidence is low",
    confidence: "medium: the shares are counted, but a flow may have had less to send; low in an episode of low confidence",
    ..Rule::TALLIED
};

/// Flows that an index of fairness is worth computing of.
const MIN_FLOWS: usize = 3;

/// Time in which incasts are added up: a verdict does not depend on how long the rest of the run is.
const SECOND: Span = Span::SECOND;

/// The incasts that began in the last second, in the order of their begin: begin and length.
#[derive(Default)]
struct LastSecond {
    episodes: VecDeque<(Time, u64)>,
    lasted: u64,
    most: u64,
}

impl LastSecond {
    fn add(&mut self, start: Time, length: u64) {
        while let Some((_, gone)) = self
            .episodes
            .pop_front_if(|(began, _)| start.since(*began) >= SECOND)
        {
            self.lasted = self.lasted.saturating_sub(gone);
        }
        self.episodes.push_back((start, length));
        self.lasted = self.lasted.saturating_add(length);
        self.most = self.most.max(self.lasted);
    }
}

/// The incasts into one destination.
#[derive(Default)]
struct Into {
    episodes: u64,
    lasted: u64,
    senders: u32,
}

/// Destinations with the time, the number and the width of their incasts.
fn destinations(into: HashMap<Option<Address>, Into, foldhash::fast::RandomState>) -> Worst {
    let mut sorted: Vec<_> = into.into_iter().collect();
    sorted.sort_by_key(|(to, _)| *to);
    let mut destinations = Worst::default();
    for (to, of) in sorted {
        let name = to.map_or_else(|| "unknown".to_owned(), |to| to.to_string());
        destinations.add(of.lasted, || {
            let times = counted(of.episodes, "episode");
            format!(
                "{name} ({times}, up to {} senders, {})",
                of.senders,
                Span(of.lasted)
            )
        });
    }
    destinations
}

pub(super) fn incast(context: &Context<'_>) -> Option<FindingRow> {
    let mut into: HashMap<Option<Address>, Into, foldhash::fast::RandomState> = HashMap::default();
    let (mut episodes, mut lasted, mut ce, mut cnp, mut lost, mut paused) =
        (0u64, 0u64, 0u64, 0u64, 0u64, false);
    let mut worst: Option<&Episode> = None;
    let mut in_a_second = LastSecond::default();
    let mut peak: Option<f64> = None;
    let mut sure = Confidence::Low;
    let mut crowds: Vec<&Episode> = context.incasts().chain(context.overruns()).collect();
    crowds.sort_by_key(|episode| episode.row.start_time);
    for episode in &crowds {
        let row = &episode.row;
        let length = row.end_time.since(row.start_time).0;
        let to = into.entry(row.destination).or_default();
        to.episodes += 1;
        to.lasted = to.lasted.saturating_add(length);
        to.senders = to.senders.max(row.senders_max);
        episodes += 1;
        lasted = lasted.saturating_add(length);
        in_a_second.add(row.start_time, length);
        ce = ce.saturating_add(row.ce);
        cnp = cnp.saturating_add(row.cnp);
        lost = lost.saturating_add(row.lost);
        paused |= episode.facts.sum.pause_ns > 0;
        peak = match (peak, row.ce_share_peak) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
        sure = surer(sure, confidence_of(context, episode));
        if worst.is_none_or(|worst| (worst.row.senders_max, worst.row.ce) < (row.senders_max, row.ce)) {
            worst = Some(episode);
        }
    }
    let worst = &worst?.row;
    let first = crowds.first().map(|episode| episode.row.start_time);
    let destinations = destinations(into);
    let mut evidence = Evidence::default();
    evidence
        .count("episodes", episodes)
        .count("senders_max", worst.senders_max.into())
        .count("lasted_ns", lasted)
        .count("ce", ce)
        .count("cnp", cnp)
        .count("lost", lost);
    if let Some(peak) = peak {
        evidence.number("ce_share_peak", peak);
    }
    evidence.text("destinations", destinations.names());
    let long = in_a_second.most >= context.thresholds.incast_long.0;
    // Senders that overlap, without a mark, a loss or a pause, may well fit into the link.
    let severity = if lost > 0 || paused || long {
        Severity::Warning
    } else {
        Severity::Info
    };
    let marked = peak.filter(|peak| *peak > 0.0);
    let marked = marked.map_or_else(String::new, |peak| format!(", up to {} marked", percent(peak)));
    // Had a packet been marked, the mark or its notification would pass here.
    let unmarked = lost > 0 && cnp == 0 && peak == Some(0.0);
    let dropped = match (lost, unmarked) {
        (0, _) => String::new(),
        (_, false) => format!(", {} lost", counted(lost, "packet")),
        (_, true) => format!(
            ", {} lost, none marked although ECN-capable: the marking threshold is above the buffer",
            counted(lost, "packet")
        ),
    };
    Some(INCAST.finding(
        (severity, sure),
        format!(
            "{} at once into {}{marked}{dropped}; {} in {} to {}",
            counted(worst.senders_max.into(), "sender"),
            worst
                .destination
                .map_or_else(|| "one destination".to_owned(), |there| there.to_string()),
            Span(lasted),
            counted(episodes, "episode"),
            counted(destinations.all(), "destination")
        ),
        evidence,
        if unmarked {
            "Enable ECN for {class} at {ports}, or lower the marking threshold below the buffer; spread {senders} in time."
        } else {
            "Spread {senders} in time or over more receivers, and check the marking thresholds of {class} at {ports}."
        },
        first,
    ))
}

/// How sure it is that the senders of an episode overran the way to its destination.
fn confidence_of(context: &Context<'_>, episode: &Episode) -> Confidence {
    let row = &episode.row;
    let by_marks = match row.kind {
        EpisodeKind::Incast => row.confidence,
        _ => Confidence::Low,
    };
    if row.lost > 0 && context.overran(row.destination) {
        surer(by_marks, Confidence::Medium)
    } else {
        by_marks
    }
}

pub(super) fn unfair(context: &Context<'_>) -> Option<FindingRow> {
    let thresholds = context.thresholds;
    let judged = [EpisodeKind::Incast, EpisodeKind::Ecn]
        .into_iter()
        .flat_map(|kind| context.distinct(kind))
        .filter(|episode| {
            episode.facts.cells >= thresholds.unfair_bins
                && episode.facts.steady >= MIN_FLOWS
                && episode.row.data_packets >= thresholds.least_data_packets
        })
        .filter_map(|episode| Some((episode.facts.jain_steady?, episode)))
        .filter(|(jain, _)| *jain < thresholds.jain_least);
    let mut episodes = 0u64;
    let mut least: Option<(f64, &Episode)> = None;
    let mut first: Option<Time> = None;
    for (jain, episode) in judged {
        episodes += 1;
        note_first(&mut first, episode.row.start_time);
        // A surer episode comes first: a doubtful one must not hide it.
        let doubtful = |episode: &Episode| episode.row.confidence == Confidence::Low;
        if least.is_none_or(|(least, of)| (doubtful(episode), jain) < (doubtful(of), least)) {
            least = Some((jain, episode));
        }
    }
    let (jain, episode) = least?;
    let to = episode
        .row
        .destination
        .map_or_else(|| "one destination".to_owned(), |to| to.to_string());
    let mut evidence = Evidence::default();
    evidence
        .count("episodes", episodes)
        .number("jain", jain)
        .count("flows", episode.facts.steady as u64)
        .count("episode", episode.row.episode.into())
        .text("aggressors", episode.row.aggressors.clone())
        .text("victims", episode.row.victims.clone());
    let most = episode.facts.aggressors.first().map(|(flow, share)| {
        let name = context.directory.name(episode.row.tap, *flow);
        format!(", most of it {name} ({})", percent(*share))
    });
    let most = most.unwrap_or_default();
    // No surer than that the flows competed at all.
    let confidence = match episode.row.confidence {
        Confidence::Low => Confidence::Low,
        _ => Confidence::Medium,
    };
    let severity = if jain < thresholds.jain_warning && confidence != Confidence::Low {
        Severity::Warning
    } else {
        Severity::Info
    };
    Some(UNFAIR.finding(
        (severity, confidence),
        format!(
            "{} into {to} shared it with a Jain's index of {jain:.2} for {}{most}; {} in all",
            counted(episode.facts.steady as u64, "flow"),
            episode.row.end_time.since(episode.row.start_time),
            counted(episodes, "such episode"),
        ),
        evidence,
        "Compare what the slow and the fast flows have in common: path, adapter, congestion control, message size.",
        first,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incasts_add_up_within_a_second() {
        let mut last = LastSecond::default();
        // 6 and 3 ms within half a second, and 6 ms ten seconds later.
        for (ms, length) in [(0, 6_000_000), (500, 3_000_000), (10_000, 6_000_000)] {
            last.add(Time(ms * 1_000_000), length);
        }
        assert_eq!((last.most, last.lasted), (9_000_000, 6_000_000));
    }
}
