//! The finding about pauses: how much of the time a priority or a link was paused. That no pause was captured says
//! nothing: most capture points never see pause frames.

use std::collections::HashMap;

use roce_model::{
    Confidence, EpisodeKind, Evidence, FindingRow, MacAddress, Nanos, PauseFrame, PauseKind, Severity, TapId,
};

use super::super::numbers::{counted, percent, share};
use super::rule::{Context, Rule};
use super::worst::Worst;

pub(super) const STORM: Rule = Rule {
    id: "pause.storm",
    title: "links stood still in pauses",
    meaning: "A receiver or a switch keeps telling its neighbour to stop: what waits blocks everything of that priority \
              behind it, also flows to other hosts. With 802.3x pause instead of PFC it blocks the whole link.",
    method: "By tap, priority and sender of the frames: the sum of the pauses against the time from the tap's first to its \
             last frame. A frame's quanta are 512 bit times of the link. Without --link-rate the share is computed for \
             each speed of Ethernet from what was seen on the tap up to 800 Gbit/s; where frames refresh or end the \
             pauses, the speed hardly matters. The share at 800 Gbit/s is the least that is possible, and is what the \
             severity goes by. Frames of 802.3x pause are reported whatever their share.",
    source: "IEEE 802.1Q clause 36 (PFC), IEEE 802.3 annex 31B (pause); storms: Guo et al., SIGCOMM 2016, section 4.3.",
    thresholds: &["pause_share", "pause_share_critical", "pause_least", "pause_long"],
    severity: Severity::Warning,
    otherwise: "critical over pause_share_critical of the time or with one pause of pause_long; info, with any frame that \
                pauses, when the link's speed is not known and the share that is proven is below pause_share, or the pauses that \
                are proven are shorter than pause_least in all",
    confidence: "high where the frames prove the share: the link's speed is given, or the share holds even at 800 Gbit/s; medium \
                 where it reaches pause_share at a slower speed only; low where it does at no speed",
};

/// Speeds that a link can have, in Gbit/s (IEEE 802.3).
const SPEEDS: [u16; 8] = [10, 25, 40, 50, 100, 200, 400, 800];
/// Bit times of a quantum (IEEE 802.3, 31B.2).
const QUANTUM_BITS: u64 = 512;
/// The number that stands for all priorities.
const LINK: u8 = 8;
/// Taps, priorities and senders that are followed, at most.
const MAX_PAUSES: usize = 4096;
/// Maximum number of speeds that are reported.
const MAX_REPORTED: usize = 3;

/// Next step for pauses that matter.
const FIND_THE_FIRST: &str = "Find the host or switch that sends the pauses first (its receive buffers, a slow PCIe, a hung adapter), and \
                              check the PFC watchdog.";

type Key = (TapId, u8, MacAddress);

/// A pause of one priority, at each speed.
#[derive(Clone, Copy, Debug, Default)]
struct AtSpeeds {
    /// Until when the last frame pauses.
    until: [u64; SPEEDS.len()],
    /// When it came.
    last: u64,
    /// Sum of the pauses up to it, in ns.
    total: [u64; SPEEDS.len()],
}

impl AtSpeeds {
    /// A frame; with quanta of 0 it ends a pause.
    fn frame(&mut self, time: Nanos, quanta: u16) {
        self.advance(time.0);
        for (until, speed) in self.until.iter_mut().zip(SPEEDS) {
            // A bit of a Gbit/s takes a nanosecond.
            *until = time
                .0
                .saturating_add(u64::from(quanta) * QUANTUM_BITS / u64::from(speed));
        }
    }

    /// Counts what is paused up to `time`.
    fn advance(&mut self, time: u64) {
        for (total, until) in self.total.iter_mut().zip(self.until) {
            *total = total.saturating_add(until.min(time).saturating_sub(self.last));
        }
        self.last = self.last.max(time);
    }
}

#[derive(Debug, Default)]
pub(super) struct PauseTally {
    /// Frames that begin or prolong a pause.
    frames: u64,
    link_frames: u64,
    first: Option<Nanos>,
    /// The link's speed is known.
    timed: bool,
    paused: HashMap<Key, AtSpeeds, foldhash::fast::RandomState>,
    /// Bytes of the current bin, and the most of a bin, by tap.
    bin: Nanos,
    bytes: Vec<u64>,
    most_bytes: Vec<u64>,
}

/// The pauses of one priority at one tap.
#[derive(Default)]
struct Paused {
    total: u64,
    longest: u64,
}

impl PauseTally {
    pub(super) fn new(bin: Nanos, timed: bool) -> Self {
        Self {
            timed,
            bin,
            ..Self::default()
        }
    }

    /// So much was sent at a tap in the current bin.
    #[inline]
    pub(super) fn sent(&mut self, tap: TapId, wire_bytes: u64) {
        let tap = tap.0 as usize;
        if let Some(bytes) = self.bytes.get_mut(tap) {
            *bytes = bytes.saturating_add(wire_bytes);
        } else if tap < MAX_PAUSES {
            self.bytes.resize(tap + 1, 0);
            self.bytes[tap] = wire_bytes;
        }
    }

    pub(super) fn end_bin(&mut self) {
        self.most_bytes.resize(self.bytes.len(), 0);
        for (most, bytes) in self.most_bytes.iter_mut().zip(&mut self.bytes) {
            *most = core::mem::take(bytes).max(*most);
        }
    }

    pub(super) fn frame(&mut self, frame: &PauseFrame) {
        let pause = &frame.pause;
        let classes = match pause.kind {
            PauseKind::Link => LINK..LINK + 1,
            PauseKind::Priority => 0..LINK,
        };
        let mut stops = false;
        for class in classes {
            // For a link pause every priority says the same.
            let Some(quanta) = pause.quanta_of(class % LINK) else {
                continue;
            };
            stops |= quanta > 0;
            let key = (frame.tap, class, pause.source);
            if self.paused.contains_key(&key) || quanta > 0 && self.paused.len() < MAX_PAUSES {
                let new = AtSpeeds {
                    last: frame.time.0,
                    ..AtSpeeds::default()
                };
                self.paused.entry(key).or_insert(new).frame(frame.time, quanta);
            }
        }
        if stops {
            self.frames += 1;
            self.link_frames += u64::from(pause.kind == PauseKind::Link);
            self.first = Some(self.first.map_or(frame.time, |first| first.min(frame.time)));
        }
    }

    /// Without the link's speed.
    fn by_speed(&self, context: &Context<'_>) -> Option<FindingRow> {
        let thresholds = context.thresholds;
        let mut paused: Vec<(Key, AtSpeeds)> = self.paused.iter().map(|(key, at)| (*key, *at)).collect();
        paused.sort_by_key(|(key, at)| (core::cmp::Reverse(at.total), *key));
        // The one that is paused longest at the highest speed is reported.
        let mut longest: Option<(Key, [f64; SPEEDS.len()], u64)> = None;
        for ((tap, priority, source), mut at) in paused {
            let end = context.run.tap(tap).and_then(|row| row.last_time);
            at.advance(end.map_or(at.last, |end| end.0.max(at.last)));
            let watched = context.watched(tap);
            let shares = at
                .total
                .map(|total| share(total, watched).unwrap_or_default().min(1.0));
            let fastest = longest.map_or(-1.0, |(_, shares, _)| shares[SPEEDS.len() - 1]);
            if shares[SPEEDS.len() - 1] > fastest {
                longest = Some(((tap, priority, source), shares, at.total[SPEEDS.len() - 1]));
            }
        }
        let ((tap, priority, source), shares, proven) = longest?;
        let slowest = self.slowest(tap);
        let (least, most) = (shares[SPEEDS.len() - 1], shares[slowest]);
        let is_short = proven < thresholds.pause_least.0;
        let (severity, confidence) = match () {
            () if is_short && self.link_frames == 0 => {
                let is_large = most >= thresholds.pause_share;
                (
                    Severity::Info,
                    if is_large {
                        Confidence::Medium
                    } else {
                        Confidence::Low
                    },
                )
            }
            () if least >= thresholds.pause_share_critical => (Severity::Critical, Confidence::High),
            () if least >= thresholds.pause_share || self.link_frames > 0 => {
                (Severity::Warning, Confidence::High)
            }
            () if most >= thresholds.pause_share => (Severity::Info, Confidence::Medium),
            () => (Severity::Info, Confidence::Low),
        };
        let what = if priority == LINK {
            "the link".to_owned()
        } else {
            format!("priority {priority}")
        };
        let from = format!(" by {source}");
        let watched = context.watched(tap) > 0;
        let same = most - least <= 0.01 * most;
        let words = if same {
            format!("{} of the time at any speed", percent(least))
        } else {
            let between = slowest.midpoint(SPEEDS.len() - 1);
            let mut places = vec![slowest, between, SPEEDS.len() - 1];
            places.dedup();
            let each: Vec<String> = places
                .into_iter()
                .take(MAX_REPORTED)
                .map(|at| format!("{} at {} Gbit/s", percent(shares[at]), SPEEDS[at]))
                .collect();
            format!("{} of the time", each.join(", "))
        };
        let mut evidence = Evidence::default();
        evidence
            .count("pause_frames", self.frames)
            .count("link_pause_frames", self.link_frames)
            .number("share_at_least", least)
            .number("share_at_most", most)
            .count("speed_at_least_bps", u64::from(SPEEDS[slowest]) * 1_000_000_000)
            .text("paused_most", format!("{what}{from}"));
        let frames = counted(self.frames, "pause frame");
        let mut parts = vec![if watched {
            format!("paused: {what}{from} for {words}, by at least {frames}; the link's speed is not known")
        } else {
            format!("at least {frames} stopped {what}{from}; for how long is not known without --link-rate")
        }];
        parts.extend(self.link_pauses());
        Some(STORM.finding(
            (severity, confidence),
            parts.join("; "),
            evidence,
            if severity == Severity::Info {
                "Run again with --link-rate, the speed of the captured link."
            } else {
                FIND_THE_FIRST
            },
            context.first(&[EpisodeKind::Pause]).or(self.first),
        ))
    }

    /// The place of the slowest speed that a link of the tap can have: what was seen in a bin fits into it.
    fn slowest(&self, tap: TapId) -> usize {
        let bytes = self.most_bytes.get(tap.0 as usize).copied().unwrap_or_default();
        // Bytes in a nanosecond are 8 Gbit/s.
        let seen = |speed: &u16| bytes.saturating_mul(8) > u64::from(*speed).saturating_mul(self.bin.0);
        let faster = SPEEDS.iter().take_while(|speed| seen(speed)).count();
        faster.min(SPEEDS.len() - 1)
    }

    fn link_pauses(&self) -> Option<String> {
        (self.link_frames > 0).then(|| {
            format!(
                "{} of 802.3x stop the whole link instead of one priority",
                counted(self.link_frames, "frame")
            )
        })
    }

    pub(super) fn storm(&self, context: &Context<'_>) -> Option<FindingRow> {
        if self.frames == 0
            && !context
                .episodes
                .iter()
                .any(|episode| episode.row.kind == EpisodeKind::Pause)
        {
            return None;
        }
        if !self.timed {
            return self.by_speed(context);
        }
        let thresholds = context.thresholds;
        let mut paused: HashMap<(TapId, u8, Option<MacAddress>), Paused, foldhash::fast::RandomState> =
            HashMap::default();
        let mut flows = 0u64;
        for episode in context
            .episodes
            .iter()
            .filter(|episode| episode.row.kind == EpisodeKind::Pause)
        {
            let Some(facts) = episode.facts.pause else {
                continue;
            };
            let Some(total) = facts.total_ns else { continue };
            flows = flows.max(episode.facts.flows as u64);
            let of = paused
                .entry((episode.row.tap, facts.priority, facts.source))
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
            let is_long = of.total >= thresholds.pause_least.0;
            if is_long && share >= thresholds.pause_share || of.longest >= thresholds.pause_long.0 {
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
        if worst.all() == 0 && self.link_frames == 0 {
            return None;
        }
        let critical = most >= thresholds.pause_share_critical || longest >= thresholds.pause_long.0.max(1);
        let (severity, confidence) = match () {
            () if worst.all() > 0 && critical => (Severity::Critical, Confidence::High),
            () => (Severity::Warning, Confidence::High),
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
        parts.extend(self.link_pauses());
        Some(STORM.finding(
            (severity, confidence),
            parts.join("; "),
            evidence,
            FIND_THE_FIRST,
            context.first(&[EpisodeKind::Pause]).or(self.first),
        ))
    }
}

impl Context<'_> {
    /// How long a tap was looking, in ns.
    fn watched(&self, tap: TapId) -> u64 {
        let of_tap = self
            .run
            .tap(tap)
            .and_then(|row| Some(row.last_time?.since(row.first_time?).0));
        let of_run = self.run.span.map(|span| span.length().0);
        of_tap.filter(|length| *length > 0).or(of_run).unwrap_or_default()
    }
}
