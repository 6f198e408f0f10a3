//! Lines of a live run: at each interval a line about everything, and below it the flows that matter
//! now; at the end the summary of any run. The caller counts what was captured and lost.

use std::collections::HashMap;
use std::io::Write;

use jiff::Timestamp;
use roce_model::{FlowId, FlowKey, FlowRow, RunSummary, Sink, SinkError, Span, TapId, Time, TimelineColumns};

use super::ink::{self, Ink, clean, shorten, width};
use super::report::TerminalReport;
use super::style::Style;
use crate::Error;
use roce_spelling::{count, percent, plural, rate};

/// Flows under each line, at most.
const MAX_FLOWS: usize = 5;
/// Flows that are counted apart in an interval: 40 MB. The others are one sum.
const MAX_SEEN: usize = 1 << 18;
/// Rows that wait for their time: 12 MB. When there are more, all count for the interval that goes on.
const MAX_COMING: usize = 1 << 17;
/// Flows whose names are kept.
const MAX_NAMES: usize = 1 << 18;

/// Counts of a capture since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CaptureCounts {
    /// The time of day.
    pub now: Time,
    /// Frames captured.
    pub frames: u64,
    /// Number of the frames dropped because the analysis fell behind.
    pub overrun: u64,
    /// Frames that the kernel dropped.
    pub kernel: u64,
}

/// Counts since the last line.
#[derive(Clone, Copy, Debug, Default)]
struct LiveCounts {
    packets: u64,
    payload: u64,
    data: u64,
    ce: u64,
    cnp: u64,
    retransmitted: u64,
    missing: u64,
}

impl LiveCounts {
    fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.payload += other.payload;
        self.data += other.data;
        self.ce += other.ce;
        self.cnp += other.cnp;
        self.retransmitted += other.retransmitted;
        self.missing += other.missing;
    }

    /// Losses matter more than congestion, that more than volume.
    fn rank(&self) -> (u64, u64, u64) {
        (
            self.missing + self.retransmitted,
            self.ce + self.cnp,
            self.payload,
        )
    }

    /// The counts, in words and inks.
    fn words(&self, time: Span) -> Vec<String> {
        let mut words = Vec::new();
        words.extend(rate(self.payload, time));
        if self.ce > 0 {
            let share = percent(self.ce, self.data).unwrap_or_default();
            words.push(Ink::Warn.paint(&format!("CE {share}")));
        }
        if self.cnp > 0 {
            words.push(Ink::Warn.paint(&plural(self.cnp, "CNP", "CNPs")));
        }
        if self.retransmitted > 0 {
            words.push(Ink::Bad.paint(&format!("{} retransmitted", count(self.retransmitted))));
        }
        if self.missing > 0 {
            words.push(Ink::Bad.paint(&format!("{} missing", count(self.missing))));
        }
        words
    }
}

/// Writes a line each interval, and a screen at the end.
pub struct LiveReport<W, C> {
    end: TerminalReport<W>,
    counted: C,
    before: CaptureCounts,
    /// The time of the first row since the last line.
    first: Option<Time>,
    names: HashMap<FlowId, FlowKey, foldhash::fast::RandomState>,
    seen: HashMap<(FlowId, TapId), LiveCounts, foldhash::fast::RandomState>,
    /// Sum of the interval's flows that found no room in `seen`.
    others: LiveCounts,
    /// Rows that are not counted yet: a paced replay reads a little ahead of its position.
    coming: Vec<(Time, FlowId, TapId, LiveCounts)>,
}

impl<W: Write, C: Fn() -> CaptureCounts> LiveReport<W, C> {
    /// Writes to `out`; `counted` gives the counts of the capture.
    pub fn new(out: W, style: Style, counted: C) -> Self {
        let before = counted();
        Self {
            end: TerminalReport::new(out, style),
            counted,
            before,
            first: None,
            names: HashMap::default(),
            seen: HashMap::default(),
            others: LiveCounts::default(),
            coming: Vec::new(),
        }
    }

    /// The lines of the interval that ends now.
    fn lines(&mut self) -> Vec<String> {
        let now = (self.counted)();
        let before = std::mem::replace(&mut self.before, now);
        // Before the first line of a replay nothing is known but its first row.
        let since = match self.first.take() {
            Some(first) if before.now == Time(0) => first,
            _ => before.now,
        };
        let time = now.now.since(since);
        // Traffic that several taps saw counts once: from the tap that saw most of it.
        let mut flows: HashMap<FlowId, LiveCounts, foldhash::fast::RandomState> = HashMap::default();
        self.take_due(now.now);
        for ((flow, _), seen) in self.seen.drain() {
            let most = flows.entry(flow).or_default();
            if seen.packets > most.packets {
                *most = seen;
            }
        }
        let others = std::mem::take(&mut self.others);
        let mut sum = others;
        for seen in flows.values() {
            sum.add(seen);
        }
        let mut words = Vec::new();
        if sum.packets == 0 {
            let frames = now.frames - before.frames;
            words.push(format!("no RoCE packets ({})", plural(frames, "frame", "frames")));
        } else {
            words.push(plural(sum.packets, "RoCE packet", "RoCE packets"));
            let more = if others.packets > 0 { "more than " } else { "" };
            words.push(format!("{more}{}", plural(flows.len() as u64, "flow", "flows")));
            words.extend(sum.words(time));
        }
        for (lost, who) in [
            (now.overrun - before.overrun, "dropped, the analysis is too slow"),
            (now.kernel - before.kernel, "dropped by the kernel"),
        ] {
            if lost > 0 {
                words.push(Ink::Bad.paint(&format!("{} {who}", plural(lost, "frame", "frames"))));
            }
        }
        let style = self.end.style;
        let mut lines = wrapped(&Ink::Faint.paint(&clock(now.now)), &words, style.width);
        let mut largest: Vec<(FlowId, LiveCounts)> = flows.into_iter().collect();
        largest.sort_unstable_by_key(|(flow, seen)| (std::cmp::Reverse(seen.rank()), *flow));
        largest.truncate(MAX_FLOWS.min(style.top));
        let named: Vec<(String, Vec<String>)> = largest
            .iter()
            .map(|(flow, seen)| (self.name(*flow), seen.words(time)))
            .collect();
        let widest = named.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
        for (name, words) in named {
            let room = widest - width(&name);
            lines.extend(wrapped(
                &format!("  {name}{}", " ".repeat(room)),
                &words,
                style.width,
            ));
        }
        lines
    }

    /// Counts the rows of bins that begin up to `now`.
    fn take_due(&mut self, now: Time) {
        let mut coming = std::mem::take(&mut self.coming);
        for (_, flow, tap, seen) in coming.extract_if(.., |(time, ..)| *time <= now) {
            self.count((flow, tap), &seen);
        }
        self.coming = coming;
    }

    /// Adds to a flow's counts of the interval.
    fn count(&mut self, flow: (FlowId, TapId), seen: &LiveCounts) {
        let has_room = self.seen.len() < MAX_SEEN || self.seen.contains_key(&flow);
        let counts = if has_room {
            self.seen.entry(flow).or_default()
        } else {
            &mut self.others
        };
        counts.add(seen);
    }

    fn name(&self, flow: FlowId) -> String {
        let style = self.end.style;
        let room = (style.width / 4).max(15);
        let short = |text: String| shorten(&clean(&text), room, style.unicode);
        self.names.get(&flow).map_or_else(
            || flow.to_string(),
            |key| {
                format!(
                    "{} > {} QP {:#x}",
                    short(key.source.to_string()),
                    short(key.destination.to_string()),
                    key.destination_qpn.value()
                )
            },
        )
    }
}

/// The time of day, in UTC.
fn clock(time: Time) -> String {
    Timestamp::from_nanosecond(i128::from(time.0)).map_or_else(
        |_| "--:--:--".to_owned(),
        |time| time.strftime("%H:%M:%S").to_string(),
    )
}

/// `first` and the words behind it, with commas; what has no room goes to the next lines, under the first word.
fn wrapped(first: &str, words: &[String], room: usize) -> Vec<String> {
    let indent = width(first) + 2;
    let mut lines = vec![first.to_owned()];
    let mut used = width(first);
    let mut begins = true;
    for (at, word) in words.iter().enumerate() {
        let comma = usize::from(at + 1 < words.len());
        let blank = if begins { indent - used } else { 1 };
        if !begins && used + blank + width(word) + comma > room {
            lines.push(String::new());
            (used, begins) = (0, true);
        }
        let Some(line) = lines.last_mut() else { break };
        let blank = if begins { indent - used } else { 1 };
        line.push_str(&" ".repeat(blank));
        line.push_str(word);
        if comma > 0 {
            line.push(',');
        }
        used += blank + width(word) + comma;
        begins = false;
    }
    lines
}

impl<W: Write, C: Fn() -> CaptureCounts> Sink for LiveReport<W, C> {
    fn begin(&mut self, bin: Span) -> Result<(), SinkError> {
        self.end.begin(bin)
    }

    fn flows_opened(&mut self, keys: &[FlowKey]) -> Result<(), SinkError> {
        for key in keys {
            if self.names.len() < MAX_NAMES {
                self.names.insert(key.id(), *key);
            }
        }
        Ok(())
    }

    fn interval(&mut self) -> Result<(), SinkError> {
        let text = ink::paint(&self.lines().join("\n"), self.end.style.color);
        let out = &mut self.end.out;
        Ok(out
            .write_all(text.as_bytes())
            .and_then(|()| out.flush())
            .map_err(Error::Text)?)
    }

    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        for row in 0..rows.time.len() {
            let (Some(flow), Some(tap)) = (rows.flow_id.at(row), rows.tap.at(row)) else {
                continue;
            };
            self.first = self.first.or_else(|| rows.time.at(row).map(|time| Time(*time)));
            let number = |values: &roce_model::Values<u32>| u64::from(values.at(row).copied().unwrap_or(0));
            let seen = LiveCounts {
                packets: number(&rows.packets),
                payload: rows.payload_bytes.at(row).copied().unwrap_or(0),
                data: number(&rows.data_packets),
                ce: number(&rows.ce),
                cnp: number(&rows.cnp),
                retransmitted: number(&rows.retransmitted_packets),
                missing: rows.missing.at(row).copied().unwrap_or(0),
            };
            let time = rows.time.at(row).map_or(Time(0), |time| Time(*time));
            self.coming.push((time, FlowId(*flow), TapId(*tap), seen));
        }
        if self.coming.len() >= MAX_COMING {
            self.take_due((self.counted)().now);
        }
        if self.coming.len() >= MAX_COMING {
            self.take_due(Time(u64::MAX));
        }
        self.end.timeline(rows)
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.end.flows_closed(rows)
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        self.end.finish(run)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use insta::assert_snapshot;
    use roce_model::{Address, Columns, Qpn, TimelineRow};

    use super::*;

    fn key(last: u8) -> FlowKey {
        FlowKey {
            source: Address::v4([10, 77, 0, last]),
            destination: Address::v4([10, 77, 0, 2]),
            destination_qpn: Qpn::new(0x11),
            ..FlowKey::from_packet(&roce_model::Packet::default().roce)
        }
    }

    #[test]
    fn the_first_line_of_a_replay_has_a_rate() {
        // Nothing is known of the time before the first row: 125 MB in the second after it are 1 Gbit/s.
        let counted = Cell::new(CaptureCounts::default());
        let mut report = LiveReport::new(Vec::new(), Style::default(), || counted.get());
        let begin = Time(1_795_284_000_000_000_000);
        let mut rows = TimelineColumns::default();
        rows.push(&TimelineRow {
            time: begin,
            packets: 1_000,
            payload_bytes: 125_000_000,
            ..TimelineRow::default()
        });
        report.timeline(&rows).unwrap();
        counted.set(CaptureCounts {
            now: begin + Span::SECOND,
            frames: 1_000,
            ..CaptureCounts::default()
        });
        report.interval().unwrap();
        let text = String::from_utf8(report.end.into_inner()).unwrap();
        assert!(text.contains("1,000 RoCE packets, 1 flow, 1.00 Gbit/s"), "{text}");
    }

    #[test]
    fn lines_of_a_live_run() {
        let counted = Cell::new(CaptureCounts {
            // 2026-11-21 18:00:00 UTC.
            now: Time(1_795_284_000_000_000_000),
            ..CaptureCounts::default()
        });
        let mut report = LiveReport::new(Vec::new(), Style::default(), || counted.get());
        let after = |frames, overrun, kernel| {
            let now = counted.get().now + Span::SECOND;
            counted.set(CaptureCounts {
                now,
                frames,
                overrun,
                kernel,
            });
        };
        after(12, 0, 0);
        report.interval().unwrap();
        report.flows_opened(&[key(1), key(3)]).unwrap();
        let mut rows = TimelineColumns::default();
        let row = TimelineRow {
            flow_id: key(1).id(),
            packets: 1_000,
            payload_bytes: 125_000_000,
            data_packets: 1_000,
            ce: 100,
            cnp: Some(7),
            ..TimelineRow::default()
        };
        rows.push(&row);
        // Another tap, which saw a little less.
        rows.push(&TimelineRow {
            tap: TapId(1),
            packets: 990,
            ..row.clone()
        });
        rows.push(&TimelineRow {
            flow_id: key(3).id(),
            packets: 20,
            payload_bytes: 1_000,
            data_packets: 20,
            retransmitted_packets: 3,
            missing: 2,
            ..TimelineRow::default()
        });
        report.timeline(&rows).unwrap();
        after(2_042, 0, 0);
        report.interval().unwrap();
        report.timeline(&rows).unwrap();
        after(9_042, 5_000, 1);
        report.interval().unwrap();
        // A replay reads ahead: rows of later times wait for their time.
        let mut ahead = TimelineColumns::default();
        ahead.push(&TimelineRow {
            time: Time(counted.get().now.0 + 1_500_000_000),
            ..row
        });
        report.timeline(&ahead).unwrap();
        after(9_042, 5_000, 1);
        report.interval().unwrap();
        after(9_042, 5_000, 1);
        report.interval().unwrap();
        assert_snapshot!(String::from_utf8(report.end.into_inner()).unwrap());
    }
}
