//! The finding about pauses: how much of the time a priority or a link was paused. That no pause was captured says
//! nothing: most capture points never see pause frames.

use std::collections::HashMap;

use roce_model::{Confidence, EpisodeKind, Evidence, FindingRow, Nanos, PauseFrame, Severity, TapId};
use roce_wire::{MacAddress, PauseKind};

use super::super::numbers::{counted, percent, share};
use super::worst::Worst;
use super::{Context, Rule};

pub(super) const STORM: Rule = Rule {
    id: "pause.storm",
    title: "links stood still in pauses",
    meaning: "A receiver or a switch keeps telling its neighbour to stop: what waits blocks everything of that priority \
              behind it, also flows to other hosts. With 802.3x pause instead of PFC it blocks the whole link.",
    method: "By tap, priority and sender of the frames: the sum of the pauses against the time from the tap's first to its last frame. Needs the \
             link's speed; without it only the frames are counted. Frames of 802.3x pause are reported whatever their \
             share.",
    source: "IEEE 802.1Q clause 36 (PFC), IEEE 802.3 annex 31B (pause); storms: Guo et al., SIGCOMM 2016, section 4.3.",
    thresholds: &["pause_share", "pause_share_critical", "pause_long"],
    severity: Severity::Warning,
    otherwise: "critical over pause_share_critical of the time or with one pause of pause_long; info when the link's speed \
                is not known",
};

/// The longest unbroken run of what PFC can say with one frame is not known without the link's speed: so many frames
/// are worth a word.
const FRAMES_WORTH_A_WORD: u64 = 100;

#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// Frames that begin or prolong a pause.
    frames: u64,
    link_frames: u64,
    first: Option<Nanos>,
}

/// The pauses of one priority at one tap.
#[derive(Default)]
struct Paused {
    total: u64,
    longest: u64,
}

impl Gathered {
    pub(super) fn frame(&mut self, frame: &PauseFrame) {
        let stops = match frame.pause.kind {
            PauseKind::Link => frame.pause.quanta_of(0).is_some_and(|quanta| quanta > 0),
            PauseKind::Priority => {
                (0..8).any(|priority| frame.pause.quanta_of(priority).is_some_and(|quanta| quanta > 0))
            }
        };
        if stops {
            self.frames += 1;
            self.link_frames += u64::from(frame.pause.kind == PauseKind::Link);
            self.first = Some(self.first.map_or(frame.time, |first| first.min(frame.time)));
        }
    }

    pub(super) fn storm(&self, context: &Context<'_>) -> Option<FindingRow> {
        let thresholds = context.thresholds;
        let mut paused: HashMap<(TapId, u8, Option<MacAddress>), Paused, foldhash::fast::RandomState> =
            HashMap::default();
        let mut known = false;
        let mut flows = 0u64;
        for told in context
            .episodes
            .iter()
            .filter(|told| told.row.kind == EpisodeKind::Pause)
        {
            let Some(facts) = told.facts.pause else { continue };
            let Some(total) = facts.total_ns else { continue };
            known = true;
            flows = flows.max(told.facts.flows as u64);
            let of = paused
                .entry((told.row.tap, facts.priority, facts.source))
                .or_default();
            of.total = of.total.saturating_add(total);
            of.longest = of.longest.max(facts.longest_ns);
        }
        let mut sorted: Vec<_> = paused.into_iter().collect();
        sorted.sort_by_key(|(key, _)| *key);
        let mut worst = Worst::default();
        let (mut most, mut longest) = (0.0f64, 0);
        for ((tap, priority, source), of) in sorted {
            let share = share(of.total, context.watched(tap)).unwrap_or_default().min(1.0);
            if share >= thresholds.pause_share || of.longest >= thresholds.pause_long.0 {
                most = most.max(share);
                longest = longest.max(of.longest);
                let what = if priority == 8 {
                    "the link".to_owned()
                } else {
                    format!("priority {priority}")
                };
                let from = source.map_or_else(String::new, |source| format!(" by {source}"));
                worst.add(of.total, || {
                    format!("{what}{from} for {} of the time", percent(share))
                });
            }
        }
        let many = !known && self.frames >= FRAMES_WORTH_A_WORD;
        if worst.all() == 0 && self.link_frames == 0 && !many {
            return None;
        }
        let critical = most >= thresholds.pause_share_critical || longest >= thresholds.pause_long.0.max(1);
        let (severity, confidence) = match () {
            () if worst.all() > 0 && critical => (Severity::Critical, Confidence::High),
            () if worst.all() > 0 || self.link_frames > 0 => (Severity::Warning, Confidence::High),
            () => (Severity::Info, Confidence::Low),
        };
        let mut evidence = Evidence::default();
        evidence
            .count("pause_frames", self.frames)
            .count("link_pause_frames", self.link_frames);
        let mut parts = Vec::new();
        if worst.all() > 0 {
            evidence
                .count("paused_ns", worst.most())
                .number("share", most)
                .count("longest_ns", longest)
                .count("flows_paused", flows)
                .text("paused_most", worst.names());
            parts.push(format!(
                "paused: {}, at most {} at a stretch",
                worst.names(),
                Nanos(longest)
            ));
        }
        if self.link_frames > 0 {
            parts.push(format!(
                "{} of 802.3x stop the whole link instead of one priority",
                counted(self.link_frames, "frame")
            ));
        }
        if worst.all() == 0 && many {
            parts.push(format!(
                "{} were captured; for how long they stopped a priority is not known without --link-rate",
                counted(self.frames, "PFC frame")
            ));
        }
        Some(STORM.finding(
            (severity, confidence),
            parts.join("; "),
            evidence,
            if severity == Severity::Info {
                "Run again with --link-rate, the speed of the captured link."
            } else {
                "Find the host or switch that sends the pauses first (its receive buffers, a slow PCIe, a hung adapter), and \
                 check the PFC watchdog."
            },
            context.first(&[EpisodeKind::Pause]).or(self.first),
        ))
    }
}

impl Context<'_> {
    /// How long a tap was looking, in ns.
    fn watched(&self, tap: TapId) -> u64 {
        let taps = self.run.taps.iter().filter(|row| row.tap == tap);
        let of_tap = taps
            .filter_map(|row| Some(row.last_time?.since(row.first_time?).0))
            .max();
        let of_run = self.run.span.map(|span| span.length().0);
        of_tap.filter(|length| *length > 0).or(of_run).unwrap_or_default()
    }
}
