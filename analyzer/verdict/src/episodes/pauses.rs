//! Pauses of a link or of a priority, joined to episodes by their senders. They come from the intervals
//! of pause frames, or from the frames alone where there is no interval (nothing ended a pause, and the
//! link's speed is not known).

use std::collections::{HashMap, VecDeque};

use roce_model::{EpisodeKind, EventRow, FlowId, MacAddress, PauseFrame, PauseKind, Span, TapId, Time};

use super::facts::PauseFacts;
use super::open::{FinishedEpisode, FlowBin, Share};
use crate::settings::{CELL, Settings};

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Number of all priorities: an 802.3x pause stops the whole link.
pub(in super::super) const LINK: u8 = 8;
/// Rows of paused flows that wait for the pause's end.
const MAX_ROWS: usize = 1 << 14;
/// Taps and priorities, at most: 9 a tap.
const MAX_OPEN: usize = 4096;

/// Tap, priority, who sends the frames.
type Key = (TapId, u8, Option<MacAddress>);

#[derive(Clone, Debug)]
struct Open {
    start: Time,
    end: Time,
    facts: PauseFacts,
}

/// A row of a paused flow.
#[derive(Clone, Debug)]
struct Row {
    begin: Time,
    tap: TapId,
    flow: FlowId,
    pause_ns: u64,
    payload_bytes: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Pauses {
    quiet: Span,
    timed: bool,
    by_interval: Map<Key, Open>,
    by_frame: Map<Key, Open>,
    /// Such as frames alone say: they count when there is no interval in the whole run.
    ended_by_frame: Vec<FinishedEpisode>,
    intervals: bool,
    rows: VecDeque<Row>,
}

impl Pauses {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            quiet: settings.thresholds.episode_quiet,
            timed: settings.link_rate.is_some(),
            by_interval: Map::default(),
            by_frame: Map::default(),
            ended_by_frame: Vec::new(),
            intervals: false,
            rows: VecDeque::new(),
        }
    }

    /// A pause that has ended; the episode that ended before it.
    pub(super) fn interval(&mut self, event: &EventRow) -> Option<FinishedEpisode> {
        self.intervals = true;
        let priority = event
            .psn
            .and_then(|psn| u8::try_from(psn).ok())
            .filter(|psn| *psn <= LINK)?;
        let length = event.value.unwrap_or_default();
        let source = event.detail.as_deref().and_then(sender_of);
        let key = (event.tap, priority, source);
        let (start, end) = (event.time, Time(event.time.0.saturating_add(length)));
        let over = |open: &Open| {
            let gap = start.since(open.end);
            gap.0 > 0 && gap >= self.quiet
        };
        let ended = match self.by_interval.get(&key) {
            Some(open) if over(open) => self.by_interval.remove(&key),
            None if self.by_interval.len() >= MAX_OPEN => return None,
            _ => None,
        };
        let ended = ended.map(|open| self.finish(&key, &open));
        let open = self
            .by_interval
            .entry(key)
            .or_insert_with(|| Open::new(start, priority, source));
        open.start = open.start.min(start);
        open.end = open.end.max(end);
        open.facts.intervals += 1;
        open.facts.longest_ns = open.facts.longest_ns.max(length);
        if self.timed {
            open.facts.total_ns = Some(open.facts.total_ns.unwrap_or_default().saturating_add(length));
        }
        ended
    }

    /// A pause frame.
    pub(super) fn frame(&mut self, frame: &PauseFrame) {
        if self.intervals {
            return;
        }
        let source = Some(frame.pause.source);
        for priority in 0..=LINK {
            let quanta = match frame.pause.kind {
                PauseKind::Link if priority == LINK => frame.pause.quanta_of(0),
                PauseKind::Priority if priority < LINK => frame.pause.quanta_of(priority),
                _ => None,
            };
            let Some(quanta) = quanta else { continue };
            let key = (frame.tap, priority, source);
            let over = |open: &Open| frame.time.since(open.end) >= self.quiet && frame.time > open.end;
            if self.by_frame.get(&key).is_some_and(over)
                && let Some(open) = self.by_frame.remove(&key)
            {
                self.end_by_frame(&key, &open);
            }
            if !self.by_frame.contains_key(&key) && (quanta == 0 || self.by_frame.len() >= MAX_OPEN) {
                continue;
            }
            let open = self
                .by_frame
                .entry(key)
                .or_insert_with(|| Open::new(frame.time, priority, source));
            open.start = open.start.min(frame.time);
            open.end = open.end.max(frame.time);
            open.facts.frames += 1;
        }
    }

    fn end_by_frame(&mut self, key: &Key, open: &Open) {
        if self.ended_by_frame.len() < MAX_OPEN {
            let finished = self.finish(key, open);
            self.ended_by_frame.push(finished);
        }
    }

    /// The end: what goes on, and what frames alone say if that is all there is.
    pub(super) fn conclude(&mut self) -> Vec<FinishedEpisode> {
        let mut ended = self.end_quiet(Time(u64::MAX));
        if !self.intervals {
            for (key, open) in core::mem::take(&mut self.by_frame) {
                self.end_by_frame(&key, &open);
            }
            ended.append(&mut self.ended_by_frame);
        }
        ended
    }

    /// A flow was paused in the cell that begins at `begin`.
    pub(super) fn paused(&mut self, begin: Time, row: &FlowBin) {
        if self.rows.len() >= MAX_ROWS {
            self.rows.pop_front();
        }
        self.rows.push_back(Row {
            begin,
            tap: row.tap,
            flow: row.flow,
            pause_ns: row.pause_ns,
            payload_bytes: row.payload_bytes,
        });
    }

    /// Ends what was quiet for too long before `time`.
    pub(super) fn end_quiet(&mut self, time: Time) -> Vec<FinishedEpisode> {
        let quiet = self.quiet;
        let over = |open: &Open| time > open.end && time.since(open.end) >= quiet;
        let ended: Vec<(Key, Open)> = self.by_interval.extract_if(|_, open| over(open)).collect();
        ended.iter().map(|(key, open)| self.finish(key, open)).collect()
    }

    fn finish(&self, (tap, ..): &Key, open: &Open) -> FinishedEpisode {
        let tap = *tap;
        let mut flows: Map<FlowId, Share> = Map::default();
        let mut sum = Share::default();
        let overlap = |row: &&Row| {
            let end = row.begin + CELL;
            row.tap == tap && row.begin <= open.end && end > open.start
        };
        for row in self.rows.iter().filter(overlap) {
            let share = flows.entry(row.flow).or_default();
            share.pause_ns = share.pause_ns.saturating_add(row.pause_ns);
            share.payload_bytes = share.payload_bytes.saturating_add(row.payload_bytes);
            sum.payload_bytes = sum.payload_bytes.saturating_add(row.payload_bytes);
        }
        FinishedEpisode {
            pause_ns: open.facts.total_ns,
            pause: Some(open.facts),
            ..FinishedEpisode::new(
                EpisodeKind::Pause,
                tap,
                open.start,
                open.end,
                sum,
                flows.into_iter().collect(),
            )
        }
    }
}

impl Open {
    fn new(start: Time, priority: u8, source: Option<MacAddress>) -> Self {
        Self {
            start,
            end: start,
            facts: PauseFacts {
                priority,
                source,
                intervals: 0,
                frames: 0,
                total_ns: None,
                longest_ns: 0,
            },
        }
    }
}

/// Sender of the frames in an interval's text: `by 02:00:00:00:00:07, ...`.
pub(in super::super) fn sender_of(detail: &str) -> Option<MacAddress> {
    let mut octets = detail.strip_prefix("by ")?.split(',').next()?.split(':');
    let mut mac = [0; 6];
    for place in &mut mac {
        *place = u8::from_str_radix(octets.next()?, 16).ok()?;
    }
    octets.next().is_none().then_some(MacAddress(mac))
}
