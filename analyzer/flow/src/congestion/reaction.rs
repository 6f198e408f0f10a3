//! Effect of congestion notifications on one flow: the time until they come, and the rate after them.

use roce_model::{FlowRow, Span, Time, prefetch};

use crate::congestion::dcqcn::bound::{Legal, RateBound};
use crate::congestion::progress::{Progress, WINDOW_PACKETS};
use crate::timing::distribution::Distribution;

/// Evidence that attributes notifications to a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Attribution {
    /// The flow's other direction is for the queue pair that they name.
    Pairing,
    /// UD packets name the queue pair that they come from.
    Deth,
    /// It was the only one with marks.
    Sole,
}

impl Attribution {
    const NAMES: [&'static str; 3] = ["pairing", "deth", "sole"];
}

/// A notification after this time without one starts a train.
const TRAIN: Span = Span(300_000);
/// Time without a mark that ends a burst: two units of 65.5 us, in each of which one mark is noted. The
/// interval of the notification point is added.
const BURST_GAP: Span = Span(2 << 16);
/// Interval of the notification point where the flow's own notifications do not show it.
const USUAL_INTERVAL: Span = Span(50_000);
/// Longest interval of a notification point: adapters are documented with 4 us (mlxconfig) to 50 us (SIGCOMM
/// 2015).
const LONGEST_INTERVAL: Span = Span(100_000);
/// Marks that no interval can have swallowed belong to one train, whose first one asks for a notification, until none came for so long.
const TRAIN_OF_MARKS: Span = Span(1_000_000);
/// A notification point that answers a train this late goes on to answer old marks of it: its next notifications tell nothing of the delay.
/// It is ten intervals of the paper's notification point.
const SLOW: Span = Span(500_000);
/// Such a delay is believed with marks in so many units of time before it: a lone one may have been answered by a notification that was lost.
const MARKS_OF_SLOW: u32 = 4;
/// Below this rate, in bit/s, a flow may be at its adapter's minimum, which notifications do not lower: mlx5's
/// `rpg_min_rate` is 1 Mb/s by default, others have up to 10.
const NEAR_MINIMUM: f64 = 20e6;
/// Two points in a flow's sending, each at least a window after the one before, so that its rate before any
/// time is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    older: Progress,
    newer: Progress,
}

impl Meter {
    /// Called at regular numbers of packets.
    pub(crate) fn mark(&mut self, now: Progress) {
        if now.rate_since(&self.newer).is_some() {
            (self.older, self.newer) = (self.newer, now);
        } else if now.packets < self.newer.packets {
            // Counts started again.
            (self.older, self.newer) = (now, now);
        }
    }

    /// Start of the last whole window.
    fn before(&self, now: &Progress) -> Progress {
        if now.rate_since(&self.newer).is_some() {
            self.newer
        } else {
            self.older
        }
    }
}

/// A train whose effect is being measured.
#[derive(Clone, Copy, Debug)]
struct Train {
    begin: Progress,
    before: f64,
}

/// Marks, notifications and reactions of one flow; only flows with such have one.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(crate) struct Congestion {
    /// The first mark since the last notification; 0: none.
    first_ce: Time,
    /// The latest mark, to within a tick.
    pub(crate) last_ce: Time,
    /// 0: none.
    last_cnp: Time,
    /// Marks since then, each of another unit of time.
    marks: u32,
    /// The notifications of this train of marks are late.
    is_slow: bool,
    /// Neither a mark nor a NAK explains it.
    pub(crate) is_unexplained: bool,
    /// Highest rate that DCQCN allows, from the first notification on that surely is for the flow.
    bound: Option<Box<RateBound>>,
    train: Option<Train>,
    ce_to_cnp: Distribution,
    interval: Distribution,
    after_nak: u64,
    /// Notifications by [`Attribution`].
    charged: [u64; 3],
    /// Ratios of rates, in thousandths.
    reactions: Distribution,
}

impl Congestion {
    /// Prefetches what marks and the flow's progress need.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(&self.first_ce);
        prefetch(&self.train);
    }

    /// Prefetches what is behind that.
    #[inline]
    pub(crate) fn prefetch_behind(&self) {
        if let Some(bound) = self.bound.as_deref() {
            bound.prefetch();
        }
    }

    /// True if a notification came in the time `within` before `time`.
    pub(crate) fn was_notified(&self, time: Time, within: Span) -> bool {
        self.last_cnp.0 != 0 && time.since(self.last_cnp) <= within
    }

    /// True if the sender was notified within that time before, or a packet of its own was marked: queues were long.
    pub(crate) fn was_congested(&self, time: Time, within: Span) -> bool {
        let was_marked = self.last_ce.0 != 0 && time.since(self.last_ce) <= within;
        was_marked || self.was_notified(time, within)
    }

    /// True if no mark for this time is the end of a burst. Most marks come too soon, or much too late, to ask for the intervals.
    fn is_another_burst(&self, unmarked: Span) -> bool {
        let may_be_swallowed = self.last_cnp.0 != 0 && self.first_ce.since(self.last_cnp) <= LONGEST_INTERVAL;
        if !may_be_swallowed {
            return unmarked > TRAIN_OF_MARKS;
        }
        let Some(more) = unmarked.0.checked_sub(BURST_GAP.0) else {
            return false;
        };
        more > LONGEST_INTERVAL.0
            || more > 0 && {
                let learned = self.interval.summary().min().map_or(USUAL_INTERVAL, Span);
                more > learned.min(LONGEST_INTERVAL).0
            }
    }

    /// A data packet was marked.
    ///
    /// A notification point answers a mark at once or, within its interval after the last notification, at its end. So a mark in such an
    /// interval that a burst left without an answer, and after which none came for longer than that, gets none any more: the next burst is
    /// measured from its own first mark. Any other mark is to be answered: the delay counts from it, not from the newest of its train.
    pub(crate) fn marked(&mut self, time: Time) {
        self.is_slow &= time.since(self.last_ce) <= TRAIN_OF_MARKS;
        if self.first_ce.0 == 0 || self.is_another_burst(time.since(self.last_ce)) {
            (self.first_ce, self.marks) = (time, 0);
        }
        self.marks = self.marks.saturating_add(1);
        self.last_ce = self.last_ce.max(time);
    }

    /// A notification came. `last`: the flow's last packet; `in_message`: it was not a message's last one.
    pub(crate) fn notified(&mut self, meter: &Meter, now: Progress, last: Time, in_message: bool) {
        let first_ce = core::mem::take(&mut self.first_ce);
        if first_ce.0 != 0 && first_ce <= now.time && !self.is_slow {
            let delay = now.time.since(first_ce);
            if delay <= SLOW || self.marks >= MARKS_OF_SLOW {
                self.ce_to_cnp.add(delay.0);
                self.is_slow = delay > SLOW;
            }
        }
        self.is_unexplained = first_ce.0 == 0;
        let interval = (self.last_cnp.0 != 0).then(|| now.time.since(self.last_cnp));
        if let Some(interval) = interval {
            self.interval.add(interval.0);
        }
        self.last_cnp = now.time;
        if interval.is_none_or(|interval| interval >= TRAIN) {
            let from = meter.before(&now);
            let is_backlogged = now.is_backlogged(&from, now.time.since(last), in_message);
            self.train = now
                .rate_since(&from)
                .filter(|before| from.time.0 != 0 && is_backlogged && *before >= NEAR_MINIMUM)
                .map(|before| Train { begin: now, before });
        }
    }

    /// A NAK came at `time`: when the notification came in the time `within` before, if that explains it and nothing else did.
    pub(crate) fn explain_by_nak(&mut self, time: Time, within: Span) -> Option<Time> {
        let explains = self.is_unexplained && self.was_notified(time, within) && self.last_cnp <= time;
        explains.then(|| {
            self.is_unexplained = false;
            self.after_nak += 1;
            self.last_cnp
        })
    }

    /// Handles a notification that surely is for the flow, at its current progress.
    pub(crate) fn surely_notified(&mut self, legal: &Legal, now: Progress) {
        let bound = self
            .bound
            .get_or_insert_with(|| Box::new(RateBound::new(legal, now)));
        bound.cnp(now);
    }

    /// Packets between two calls of [`Congestion::mark`], at most.
    pub(crate) fn step(&self) -> u8 {
        self.bound.as_ref().map_or(WINDOW_PACKETS, |bound| bound.step())
    }

    /// Called every [`WINDOW_PACKETS`] packets, or more often. `last`: the packet before this one.
    pub(crate) fn mark(&mut self, now: Progress, last: Time, in_message: bool) {
        if let Some(bound) = &mut self.bound {
            bound.mark(now);
        }
        let Some(train) = self.train else { return };
        let Some(after) = now.rate_since(&train.begin) else {
            if now.packets < train.begin.packets {
                self.train = None;
            }
            return;
        };
        self.train = None;
        if now.is_backlogged(&train.begin, now.time.since(last), in_message) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a ratio of positive numbers; what is too large saturates"
            )]
            self.reactions.add((after / train.before * 1e3).round() as u64);
        }
    }

    /// Counts notifications that were charged to the flow.
    pub(crate) fn charge(&mut self, cnp: u32, after_nak: u32, how: Attribution) {
        self.charged[how as usize] += u64::from(cnp);
        self.after_nak += u64::from(after_nak);
    }

    /// Fills in how notifications were charged.
    pub(crate) fn write_charges(&self, row: &mut FlowRow) {
        let most = (0..3)
            .rev()
            .max_by_key(|how| self.charged[*how])
            .unwrap_or_default();
        if self.charged[most] > 0 {
            row.cnp_after_nak = Some(self.after_nak);
            row.cnp_attribution = Some(Attribution::NAMES[most]);
        }
    }

    /// Fills in the times of notifications. `shows_sent_rate`: the tap is at a place where a reaction
    /// shows.
    pub(crate) fn write_times(&self, row: &mut FlowRow, shows_sent_rate: bool) {
        let delays = self.ce_to_cnp.summary();
        row.ce_to_cnp_count = delays.count();
        row.ce_to_cnp_min_ns = delays.min();
        row.ce_to_cnp_p50_ns = delays.quantile(50);
        row.ce_to_cnp_p90_ns = delays.quantile(90);
        row.ce_to_cnp_p99_ns = delays.quantile(99);
        row.ce_to_cnp_max_ns = delays.max();
        row.ce_to_cnp_stddev_ns = delays.stddev();
        let intervals = self.interval.summary();
        row.cnp_interval_count = intervals.count();
        row.cnp_interval_min_ns = intervals.min();
        row.cnp_interval_p50_ns = intervals.quantile(50);
        row.cnp_interval_p90_ns = intervals.quantile(90);
        row.cnp_interval_p99_ns = intervals.quantile(99);
        row.cnp_interval_max_ns = intervals.max();
        row.cnp_interval_stddev_ns = intervals.stddev();
        if let Some(bound) = &self.bound {
            (row.cnp_windows, row.cnp_windows_over) = bound.windows();
            row.cnp_over_p50 = bound.excess();
            row.cnp_port_bps = bound.line();
        }
        if shows_sent_rate {
            let reactions = self.reactions.summary();
            #[expect(clippy::cast_precision_loss, reason = "thousandths of a ratio")]
            let ratio = |thousandths: u64| thousandths as f64 / 1e3;
            row.cnp_trains = reactions.count();
            row.cnp_reaction_p50 = reactions.quantile(50).map(ratio);
            row.cnp_reaction_max = reactions.max().map(ratio);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flow that sends a packet of 1000 bytes every `every` ns.
    struct Sender {
        now: Progress,
        meter: Meter,
        congestion: Congestion,
    }

    impl Sender {
        fn new() -> Self {
            let now = Progress {
                time: Time(1_000_000_000),
                ..Progress::default()
            };
            Self {
                now,
                meter: Meter::default(),
                congestion: Congestion::default(),
            }
        }

        fn send(&mut self, packets: u64, every: u64) {
            for _ in 0..packets {
                let last = self.now.time;
                self.now.time.0 += every;
                self.now.packets += 1;
                self.now.payload_bytes += 1000;
                self.now.wire_bytes += 1058;
                if self.now.packets.is_multiple_of(u64::from(WINDOW_PACKETS)) {
                    self.meter.mark(self.now);
                    self.congestion.mark(self.now, last, false);
                }
            }
        }

        fn notify(&mut self, after: u64) {
            let now = Progress {
                time: Time(self.now.time.0 + after),
                ..self.now
            };
            self.congestion.notified(&self.meter, now, self.now.time, false);
        }

        fn row(&self) -> FlowRow {
            let mut row = FlowRow::default();
            self.congestion.write_times(&mut row, true);
            row
        }
    }

    #[test]
    fn a_sender_that_halves_its_rate() {
        let mut sender = Sender::new();
        sender.send(1_000, 1_000);
        sender.notify(100);
        sender.send(1_000, 2_000);
        let row = sender.row();
        assert_eq!(row.cnp_trains, 1);
        // 1000 bytes every us, then every 2 us.
        assert!((row.cnp_reaction_p50.unwrap() - 0.5).abs() < 0.02, "{row:?}");
    }

    #[test]
    fn a_sender_that_does_not_care() {
        let mut sender = Sender::new();
        for _ in 0..3 {
            sender.send(1_000, 1_000);
            sender.notify(100);
        }
        sender.send(1_000, 1_000);
        let row = sender.row();
        assert_eq!(row.cnp_trains, 3);
        assert!((row.cnp_reaction_p50.unwrap() - 1.0).abs() < 0.02);
        assert!((row.cnp_reaction_max.unwrap() - 1.0).abs() < 0.02);
        assert_eq!(
            (row.cnp_interval_count, row.cnp_interval_p50_ns),
            (2, Some(1_000_000))
        );
    }

    #[test]
    fn a_train_is_measured_once() {
        let mut sender = Sender::new();
        sender.send(1_000, 1_000);
        for _ in 0..10 {
            sender.notify(100);
            sender.send(50, 1_000);
        }
        assert_eq!(sender.row().cnp_trains, 1);
    }

    #[test]
    fn a_sender_without_more_to_send_is_not_measured() {
        let mut sender = Sender::new();
        sender.send(1_000, 1_000);
        // The notification comes 3 us after the last of packets 1 us apart.
        sender.notify(3_000);
        sender.send(1_000, 2_000);
        assert_eq!(sender.row().cnp_trains, 0);
        // 128 packets after the notification the window is over; then the flow stops for a while.
        let mut sender = Sender::new();
        sender.send(1_024, 1_000);
        sender.notify(100);
        sender.send(128, 1_000);
        sender.send(1, 9_000_000);
        assert_eq!(sender.row().cnp_trains, 1);
        // It stops before the packet that would have ended the window.
        let mut sender = Sender::new();
        sender.send(1_024, 1_000);
        sender.notify(100);
        sender.send(127, 1_000);
        sender.send(1, 9_000_000);
        assert_eq!(sender.row().cnp_trains, 0);
    }

    #[test]
    fn slow_and_new_flows_are_not_measured() {
        let mut sender = Sender::new();
        sender.send(10, 1_000);
        sender.notify(100);
        sender.send(1_000, 1_000);
        assert_eq!(sender.row().cnp_trains, 0, "nothing was known before");
        // 1000 bytes every ms are 8 Mb/s.
        let mut sender = Sender::new();
        sender.send(200, 1_000_000);
        sender.notify(100);
        sender.send(200, 1_000_000);
        assert_eq!(sender.row().cnp_trains, 0);
    }

    #[test]
    fn a_mark_that_its_burst_left_unanswered_is_no_delay() {
        let mut congestion = Congestion::default();
        let mut row = FlowRow::default();
        for burst in 0..20u64 {
            // 80 us of marks, every 5 us; notifications at once and after 50 us. The next burst is 700 us later.
            let begin = 1_000_000 + burst * 700_000;
            for mark in 0..16 {
                let time = begin + mark * 5_000;
                congestion.marked(Time(time));
                if mark == 0 || mark == 10 {
                    let now = Progress {
                        time: Time(time + 1_000),
                        ..Progress::default()
                    };
                    congestion.notified(&Meter::default(), now, Time(0), false);
                }
            }
        }
        congestion.write_times(&mut row, false);
        assert_eq!(row.ce_to_cnp_count, 40);
        // From the mark at 5 us to the notification at 51 us.
        assert_eq!(row.ce_to_cnp_max_ns, Some(46_000));
    }

    #[test]
    fn a_late_notification_answers_the_first_mark_of_its_train() {
        let mut congestion = Congestion::default();
        for train in 0..3u64 {
            // A mark each 300 us; the notification comes 1.5 ms after the first of them, 10 us after the newest.
            let begin = 10_000_000 * (train + 1);
            for mark in 0..6 {
                congestion.marked(Time(begin + mark * 298_000));
            }
            // The next one, an interval later, answers another old mark: it says nothing of the delay.
            for time in [begin + 1_500_000, begin + 1_550_000] {
                congestion.marked(Time(time - 1_000));
                let now = Progress {
                    time: Time(time),
                    ..Progress::default()
                };
                congestion.notified(&Meter::default(), now, Time(0), false);
            }
        }
        let mut row = FlowRow::default();
        congestion.write_times(&mut row, false);
        assert_eq!((row.ce_to_cnp_count, row.ce_to_cnp_p50_ns), (3, Some(1_500_000)));
    }

    #[test]
    fn from_the_first_mark_to_the_notification() {
        let mut congestion = Congestion::default();
        let notified = |congestion: &mut Congestion, time| {
            let now = Progress {
                time: Time(time),
                ..Progress::default()
            };
            congestion.notified(&Meter::default(), now, Time(0), false);
        };
        congestion.marked(Time(100));
        congestion.marked(Time(150));
        notified(&mut congestion, 300);
        notified(&mut congestion, 400);
        congestion.marked(Time(500));
        notified(&mut congestion, 510);
        let mut row = FlowRow::default();
        congestion.write_charges(&mut row);
        congestion.write_times(&mut row, false);
        assert_eq!(row.ce_to_cnp_count, 2);
        assert_eq!(
            (row.ce_to_cnp_min_ns, row.ce_to_cnp_max_ns),
            (Some(10), Some(200))
        );
        assert_eq!((row.cnp_interval_count, row.cnp_interval_max_ns), (2, Some(110)));
        assert_eq!(row.cnp_attribution, None);
    }
}
