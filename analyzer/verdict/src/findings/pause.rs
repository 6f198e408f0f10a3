//! The finding about pauses: how much of the time a priority or a link was paused. That no pause was captured says
//! nothing: most capture points never see pause frames.

use std::collections::{HashMap, VecDeque};

use roce_model::ethernet::{PORT_GIGABITS, bits_per_second};
use roce_model::{
    Address, Confidence, EpisodeKind, EventKind, EventRow, Evidence, FindingRow, MacAddress, PauseFrame,
    PauseKind, Severity, Span, TapId, Time,
};

use super::super::episodes::{Episode, sender_of};
use super::super::numbers::{counted, note_first, percent, share};
use super::rule::{Context, FindingOf as _, Rule};
use super::window::{WINDOW, Worst10Ms};
use super::worst::Worst;
use crate::settings::CELL;

pub(super) const STORM: Rule = Rule {
    id: "pause.storm",
    title: "links stood still in pauses",
    meaning: "A receiver or a switch keeps telling its neighbour to stop: what waits blocks everything of that priority \
              behind it, also flows to other hosts. With 802.3x pause instead of PFC it blocks the whole link.",
    method: "By tap, priority and sender of the frames: the most pauses within 10 ms, or in all where the tap watched for less. \
             A standstill inside a message that begins and ends with such frames proves itself, whatever the link's speed. \
             A frame's quanta are 512 bit times of the link. Without --link-rate the share is computed for each speed of Ethernet from what was seen on the tap up to 800 Gbit/s; where frames refresh or end the \
             pauses, the speed hardly matters. The share at 800 Gbit/s is the least that is possible, and is what the \
             severity goes by. Frames of 802.3x pause are reported whatever their share.",
    source: "IEEE 802.1Q clause 36 (PFC), IEEE 802.3 annex 31B (pause); storms: Guo et al., SIGCOMM 2016, section 4.3.",
    thresholds: &["pause_share", "pause_share_critical", "pause_least", "pause_long"],
    severity: Severity::Warning,
    otherwise: "critical over pause_share_critical of the time or with one pause of pause_long; info, with any frame that \
                pauses, when the link's speed is not known and the share that is proven is below pause_share, or the pauses that \
                are proven are shorter than pause_least in all",
    confidence: "high where the frames prove the share: the link's speed is given, the share holds even at 800 Gbit/s, or they frame a standstill; medium \
                 where it reaches pause_share at a slower speed only; low where it does at no speed",
    ..Rule::TALLIED
};

/// Bit times of a quantum (IEEE 802.3, 31B.2).
const QUANTUM_BITS: u64 = 512;
/// The number that stands for all priorities.
const LINK: u8 = 8;
/// Taps, priorities and senders that are followed, at most.
const MAX_PAUSES: usize = 4096;
/// A shorter pause than this is not followed from its first frame to its last, and a standstill begins and ends that near to frames.
const MIN_FRAMED_NS: u64 = 100_000;
/// Such pauses that are kept, at most.
const MAX_FRAMED: usize = 1 << 12;
/// Maximum number of speeds that are reported.
const MAX_REPORTED: usize = 3;

/// Next step for pauses that matter.
const FIND_THE_FIRST: &str = "Find out why {pausers} sent pauses: receive buffers, a slow PCIe, a hung adapter; at a switch, which queue \
                              behind it is full. Check the PFC watchdog.";

type Key = (TapId, u8, MacAddress);

/// A pause of one priority, at each speed.
#[derive(Clone, Copy, Debug, Default)]
struct AtSpeeds {
    /// Until when the last frame pauses.
    until: [u64; PORT_GIGABITS.len()],
    /// When it came.
    last: u64,
    /// Sum of the pauses up to it, in ns.
    total: [u64; PORT_GIGABITS.len()],
    worst: [Worst10Ms; PORT_GIGABITS.len()],
    /// When the pause that goes on began, at whatever speed: the first frame that no other one has ended.
    began: Option<u64>,
}

impl AtSpeeds {
    /// A frame; with quanta of 0 it ends a pause: from when to when, as frames began and ended it.
    fn frame(&mut self, time: Time, quanta: u16) -> Option<(u64, u64)> {
        self.advance(time.0);
        // A pause that is over even at the slowest speed goes on no more.
        let began = self.began.filter(|_| self.until[0] >= time.0);
        self.began = (quanta > 0).then(|| began.unwrap_or(time.0));
        let framed = began.filter(|_| quanta == 0).map(|began| (began, time.0));
        for (until, speed) in self.until.iter_mut().zip(PORT_GIGABITS) {
            // A bit of a Gbit/s takes a nanosecond.
            *until = time
                .0
                .saturating_add(u64::from(quanta) * QUANTUM_BITS / u64::from(speed));
        }
        framed
    }

    /// Counts what is paused up to `time`.
    fn advance(&mut self, time: u64) {
        for ((total, worst), until) in self.total.iter_mut().zip(&mut self.worst).zip(self.until) {
            let end = until.min(time);
            *total = total.saturating_add(end.saturating_sub(self.last));
            worst.add(self.last, end);
        }
        self.last = self.last.max(time);
    }
}

#[derive(Debug, Default)]
pub(super) struct PauseTally {
    /// Frames that begin or prolong a pause.
    frames: u64,
    link_frames: u64,
    /// Such frames, and those of links, by their sender and tap; the most of any tap, by sender.
    by_tap: HashMap<(MacAddress, TapId), [u64; 2], foldhash::fast::RandomState>,
    by_source: HashMap<MacAddress, [u64; 2], foldhash::fast::RandomState>,
    first: Option<Time>,
    /// The link's speed is known.
    timed: bool,
    paused: HashMap<Key, AtSpeeds, foldhash::fast::RandomState>,
    /// Pauses that frames began and ended, the latest ones, by tap and sender.
    framed: VecDeque<(TapId, MacAddress, u8, u64, u64)>,
    /// The worst windows of pauses of known length, by tap, priority and sender.
    timed_worst: HashMap<(TapId, u8, Option<MacAddress>), Worst10Ms, foldhash::fast::RandomState>,
    /// Bytes of the current cell, and the most of a cell, by tap.
    bytes: Vec<u64>,
    most_bytes: Vec<u64>,
}

/// The priority that frames pause, in words.
fn class_name(priority: u8) -> String {
    if priority == LINK {
        "the link".to_owned()
    } else {
        format!("priority {priority}")
    }
}

/// The pauses of one priority at one tap.
#[derive(Default)]
struct PausedPriority {
    total: u64,
    longest: u64,
}

impl PauseTally {
    pub(super) fn new(timed: bool) -> Self {
        Self {
            timed,
            ..Self::default()
        }
    }

    /// A pause of known length that has ended.
    pub(super) fn event(&mut self, event: &EventRow) {
        let priority = event
            .psn
            .and_then(|psn| u8::try_from(psn).ok())
            .filter(|psn| *psn <= LINK);
        if let (EventKind::PauseInterval, Some(priority)) = (event.kind, priority) {
            let source = event.detail.as_deref().and_then(sender_of);
            let key = (event.tap, priority, source);
            if self.timed_worst.len() < MAX_PAUSES || self.timed_worst.contains_key(&key) {
                let until = event.time.0.saturating_add(event.value.unwrap_or_default());
                self.timed_worst.entry(key).or_default().add(event.time.0, until);
            }
        }
    }

    /// Adds bytes that were sent at a tap in the current cell.
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

    pub(super) fn end_cell(&mut self) {
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
                let framed = self.paused.entry(key).or_insert(new).frame(frame.time, quanta);
                if let Some((began, ended)) = framed.filter(|(began, ended)| ended - began >= MIN_FRAMED_NS) {
                    if self.framed.len() >= MAX_FRAMED {
                        self.framed.pop_front();
                    }
                    self.framed
                        .push_back((frame.tap, pause.source, class, began, ended));
                }
            }
        }
        if stops {
            let is_link = pause.kind == PauseKind::Link;
            let key = (pause.source, frame.tap);
            if self.by_tap.len() < MAX_PAUSES || self.by_tap.contains_key(&key) {
                let seen = self.by_tap.entry(key).or_default();
                seen[0] += 1;
                seen[1] += u64::from(is_link);
                // Two taps of one link see the same frames: of each sender those count that one of them saw.
                let most = self.by_source.entry(pause.source).or_default();
                let more = [0, 1].map(|kind| seen[kind].saturating_sub(most[kind]));
                *most = [0, 1].map(|kind| most[kind] + more[kind]);
                self.frames += more[0];
                self.link_frames += more[1];
            }
            note_first(&mut self.first, frame.time);
        }
    }

    /// Without the link's speed.
    fn by_speed(&self, context: &Context<'_>) -> Option<FindingRow> {
        let thresholds = context.thresholds;
        let mut paused: Vec<(Key, AtSpeeds)> = self.paused.iter().map(|(key, at)| (*key, *at)).collect();
        paused.sort_by_key(|(key, at)| (core::cmp::Reverse(at.total), *key));
        // The one that is paused longest at the highest speed is reported.
        let mut longest: Option<(Key, [f64; PORT_GIGABITS.len()], u64, u64)> = None;
        for ((tap, priority, source), mut at) in paused {
            let end = context.run.tap(tap).and_then(|row| row.last_time);
            at.advance(end.map_or(at.last, |end| end.0.max(at.last)));
            let shares = at.worst.map(|worst| {
                let watched = context.watched(tap, worst.at()).min(WINDOW);
                share(worst.most(), watched).unwrap_or_default().min(1.0)
            });
            let fastest = longest.map_or(-1.0, |(_, shares, ..)| shares[PORT_GIGABITS.len() - 1]);
            if shares[PORT_GIGABITS.len() - 1] > fastest {
                let [.., fastest] = at.worst;
                longest = Some((
                    (tap, priority, source),
                    shares,
                    at.total[PORT_GIGABITS.len() - 1],
                    fastest.at(),
                ));
            }
        }
        let ((tap, priority, source), shares, proven, moment) = longest?;
        let slowest = self.slowest(tap);
        let (least, most) = (shares[PORT_GIGABITS.len() - 1], shares[slowest]);
        let stood = self.stood_still(context);
        let is_short = proven < thresholds.pause_least.0 && self.link_frames == 0;
        let (severity, confidence) = match () {
            () if stood.is_some() && least < thresholds.pause_share_critical => {
                (Severity::Warning, Confidence::High)
            }
            () if is_short && most >= thresholds.pause_share => (Severity::Info, Confidence::Medium),
            () if is_short => (Severity::Info, Confidence::Low),
            () if least >= thresholds.pause_share_critical => (Severity::Critical, Confidence::High),
            () if least >= thresholds.pause_share || self.link_frames > 0 => {
                (Severity::Warning, Confidence::High)
            }
            () if most >= thresholds.pause_share => (Severity::Info, Confidence::Medium),
            () => (Severity::Info, Confidence::Low),
        };
        let what = class_name(priority);
        let from = format!(" by {}", context.pauser(tap, source));
        let watched = context.watched(tap, moment);
        let same = most - least <= 0.01 * most;
        let of = context.time_of(tap, watched);
        let watched = watched > 0;
        let words = if same {
            format!("{} of {of} at any speed", percent(least))
        } else {
            let between = slowest.midpoint(PORT_GIGABITS.len() - 1);
            let mut places = vec![slowest, between, PORT_GIGABITS.len() - 1];
            places.dedup();
            let each: Vec<String> = places
                .into_iter()
                .take(MAX_REPORTED)
                .map(|at| format!("{} at {} Gbit/s", percent(shares[at]), PORT_GIGABITS[at]))
                .collect();
            format!("{} of {of}", each.join(", "))
        };
        let mut evidence = Evidence::default();
        evidence
            .count("pause_frames", self.frames)
            .count("link_pause_frames", self.link_frames)
            .number("share_at_least", least)
            .number("share_at_most", most)
            .count("speed_at_least_bps", bits_per_second(PORT_GIGABITS[slowest]))
            .text("paused_most", format!("{what}{from}"));
        let frames = counted(self.frames, "pause frame");
        let mut parts = vec![if watched {
            format!("paused: {what}{from} for {words}, by at least {frames}; the link's speed is not known")
        } else {
            format!("at least {frames} stopped {what}{from}; for how long is not known without --link-rate")
        }];
        if let Some((name, length)) = stood {
            evidence.count("stood_still_ns", length.0);
            parts.insert(0, format!("{name} stood still for {length}, from the frame that paused it to the one that ended the pause"));
        }
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

    /// The longest standstill that pause frames began and ended, at whatever speed of the link: nothing of the flow came in between. Who stood
    /// still, and for how long.
    fn stood_still(&self, context: &Context<'_>) -> Option<(String, Span)> {
        let near = |one: u64, other: u64, length: u64| one.abs_diff(other) <= MIN_FRAMED_NS.max(length / 10);
        let framed = |episode: &&Episode| {
            let (start, end) = (episode.row.start_time.0, episode.row.end_time.0);
            let length = end.saturating_sub(start);
            self.framed.iter().any(|(tap, _, _, began, ended)| {
                *tap == episode.row.tap && near(start, *began, length) && near(end, *ended, length)
            })
        };
        let stalls = context.distinct(EpisodeKind::Stall).filter(framed);
        let longest = stalls.filter_map(|episode| Some((episode.row.tap, episode.facts.stall?)));
        longest
            .max_by_key(|(_, stall)| stall.longest)
            .map(|(tap, stall)| (context.directory.name(tap, stall.flow), stall.longest))
    }

    /// The place of the slowest speed that a link of the tap can have: what was seen in a cell fits into it.
    fn slowest(&self, tap: TapId) -> usize {
        let bytes = self.most_bytes.get(tap.0 as usize).copied().unwrap_or_default();
        // Bytes in a nanosecond are 8 Gbit/s.
        let seen = |speed: &u16| bytes.saturating_mul(8) > u64::from(*speed).saturating_mul(CELL.0);
        let faster = PORT_GIGABITS.iter().take_while(|speed| seen(speed)).count();
        faster.min(PORT_GIGABITS.len() - 1)
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
        let mut paused: HashMap<
            (TapId, u8, Option<MacAddress>),
            PausedPriority,
            foldhash::fast::RandomState,
        > = HashMap::default();
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
            let (most_in_window, moment) = self
                .timed_worst
                .get(&(tap, priority, source))
                .map_or((0, 0), |worst| (worst.most(), worst.at()));
            let watched = context.watched(tap, moment);
            let share = share(most_in_window, watched.min(WINDOW))
                .unwrap_or_default()
                .min(1.0);
            let is_long = of.total >= thresholds.pause_least.0;
            if is_long && share >= thresholds.pause_share || of.longest >= thresholds.pause_long.0 {
                most = most.max(share);
                longest = longest.max(of.longest);
                let what = class_name(priority);
                let from = source.map_or_else(String::new, |source| {
                    format!(" by {}", context.pauser(tap, source))
                });
                worst.add(of.total, || {
                    format!(
                        "{what}{from} for {} of {}",
                        percent(share),
                        context.time_of(tap, watched)
                    )
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
                Span(longest)
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
    /// The sender of pause frames: the host with its link address, where the packets show whose that is.
    fn pauser(&self, tap: TapId, source: MacAddress) -> String {
        match self.pausing_host(tap, source) {
            Some(host) => format!("{host} ({source})"),
            None => source.to_string(),
        }
    }

    /// The host that sends pause frames from a link address.
    pub(super) fn pausing_host(&self, tap: TapId, source: MacAddress) -> Option<Address> {
        self.fabric?.pausing_hosts.get(&(tap, source)).copied()
    }

    /// For how long a tap recorded around a moment, without a silence, in ns.
    fn watched(&self, tap: TapId, at: u64) -> u64 {
        let of_tap = self.run.stretches.get(tap.0 as usize);
        let around = of_tap
            .into_iter()
            .flatten()
            .find(|stretch| (stretch.first.0..=stretch.last.0).contains(&at));
        let around = around.map(|stretch| stretch.length().0);
        around
            .filter(|length| *length > 0)
            .unwrap_or_else(|| self.recorded(tap))
    }

    /// How long a tap recorded, in ns.
    fn recorded(&self, tap: TapId) -> u64 {
        let of_tap = self
            .run
            .tap(tap)
            .and_then(|row| Some(row.last_time?.since(row.first_time?).0));
        let of_run = self.run.span.map(|span| span.length().0);
        of_tap.filter(|length| *length > 0).or(of_run).unwrap_or_default()
    }

    /// The time that a share of the worst window is of, in words; `watched`: how long the tap recorded around it, in nanoseconds.
    fn time_of(&self, tap: TapId, watched: u64) -> String {
        if watched > WINDOW {
            "its worst 10 ms".to_owned()
        } else if watched < self.recorded(tap) {
            format!("its worst {}", Span(watched))
        } else {
            "the time".to_owned()
        }
    }
}
