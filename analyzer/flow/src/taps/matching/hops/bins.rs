//! One flow between two taps by time: the counts of each bin.

use roce_model::{HopTimelineRow, Span, Time};

/// Which of the packets that were sent again, and that a tap did not see, were lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LostOfRuns {
    /// All of them.
    All,
    /// The first one of each run: the rest is sent again in any case.
    First,
    /// It is not known of any: the tap's own holes are as likely.
    Unknown,
}

/// Bins of all hops of an analysis that are kept, 100 bytes each. Beyond them packets count in `hops` alone.
const MAX_BINS: usize = 1 << 20;

/// Bins behind which no new one is made: a loss is noticed late, and its bin may have no other packets.
const MAX_BACK: usize = 1 << 13;

/// Room for bins, and their width.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    width: Span,
    left: usize,
}

impl Room {
    /// Room for all bins of this width.
    pub(super) fn new(width: Span) -> Self {
        Self {
            width: Span(width.0.max(1)),
            left: MAX_BINS,
        }
    }

    /// Width of a bin.
    pub(super) const fn width(&self) -> Span {
        self.width
    }
}

/// Counts of one bin, going from the lower tap to the higher one. Pairs are for the lower tap as the first one, and for the higher one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bin {
    /// Number of the bin since the epoch.
    number: u64,
    matched: u64,
    marked: [u32; 2],
    lost: [u32; 2],
    /// Number of the packets that are the first of a run of retransmissions.
    begins: [u32; 2],
    not_captured: [u32; 2],
    /// Packets that nobody sends again.
    silent: [u32; 2],
    /// Packets with a known delay, and its sum, minimum and maximum.
    timed: u32,
    sum: i64,
    least: i64,
    most: i64,
}

impl Bin {
    /// A packet that both taps saw.
    pub(super) fn matched(&mut self, is_low_marked: bool, is_high_marked: bool) {
        self.matched += 1;
        self.marked[0] += u32::from(is_high_marked && !is_low_marked);
        self.marked[1] += u32::from(is_low_marked && !is_high_marked);
    }

    /// The times of such a packet at the lower and at the higher tap.
    pub(super) fn delayed(&mut self, low: Time, high: Time) {
        let delay = high.0.cast_signed().wrapping_sub(low.0.cast_signed());
        if self.timed == 0 {
            (self.least, self.most) = (delay, delay);
        }
        self.timed = self.timed.saturating_add(1);
        self.sum = self.sum.saturating_add(delay);
        self.least = self.least.min(delay);
        self.most = self.most.max(delay);
    }

    /// A packet that the tap of `side` saw, and that was lost behind it.
    pub(super) fn lost(&mut self, side: usize, begins: bool) {
        if let (Some(lost), Some(first)) = (self.lost.get_mut(side), self.begins.get_mut(side)) {
            *lost += 1;
            *first += u32::from(begins);
        }
    }

    /// A packet that the tap of `side` saw and the other one did not, and that nobody sends again.
    pub(super) fn silent(&mut self, side: usize) {
        if let Some(count) = self.silent.get_mut(side) {
            *count += 1;
        }
    }

    /// A packet that the tap of `side` saw, and that the other one did not record.
    pub(super) fn not_captured(&mut self, side: usize) {
        if let Some(count) = self.not_captured.get_mut(side) {
            *count += 1;
        }
    }
}

/// The bins of one hop, in the order of time.
#[derive(Clone, Debug, Default)]
pub(super) struct Bins {
    list: Vec<Bin>,
    /// Counts of bins that had no room.
    beyond: Bin,
}

impl Bins {
    /// The bin of this time. Packets come nearly in the order of time: it is the last one, or close to it.
    pub(super) fn at(&mut self, time: Time, room: &mut Room) -> &mut Bin {
        let number = time.0 / room.width.0;
        let is_behind = self.list.last().is_some_and(|last| last.number > number);
        let place = if is_behind {
            self.list.partition_point(|bin| bin.number <= number)
        } else {
            self.list.len()
        };
        let is_there = place.checked_sub(1).and_then(|last| self.list.get(last));
        if is_there.is_some_and(|bin| bin.number == number) {
            return self.list.get_mut(place - 1).unwrap_or(&mut self.beyond);
        }
        if room.left == 0 || self.list.len() - place > MAX_BACK {
            return &mut self.beyond;
        }
        room.left -= 1;
        let bin = Bin {
            number,
            ..Bin::default()
        };
        self.list.insert(place, bin);
        self.list.get_mut(place).unwrap_or(&mut self.beyond)
    }

    /// Adds the rows of the bins; `of` has the hop's names. Where the second tap missed packets, only the first losses of each run count;
    /// where it missed none, what nobody sends again was lost, too.
    #[expect(
        clippy::cast_precision_loss,
        reason = "times between two taps: 2^53 ns are 104 days"
    )]
    pub(super) fn write(
        &self,
        of: &roce_model::HopRow,
        upwards: bool,
        (lost_of_runs, shows_silent): (LostOfRuns, bool),
        width: Span,
        rows: &mut Vec<HopTimelineRow>,
    ) {
        let side = usize::from(!upwards);
        for bin in &self.list {
            let (least, most, sum) = if upwards {
                (bin.least, bin.most, bin.sum)
            } else {
                (-bin.most, -bin.least, -bin.sum)
            };
            let lost = u64::from(match lost_of_runs {
                LostOfRuns::All => bin.lost[side],
                LostOfRuns::First => bin.begins[side],
                LostOfRuns::Unknown => 0,
            });
            let silent = if shows_silent { bin.silent[side] } else { 0 };
            let lost = lost + u64::from(silent);
            let not_captured = u64::from(bin.not_captured[side]);
            if bin.matched + lost + not_captured == 0 {
                continue;
            }
            let timed = |value: f64| (bin.timed > 0).then_some(value);
            rows.push(HopTimelineRow {
                time: Time(bin.number.saturating_mul(width.0)),
                flow_id: of.flow_id,
                from_tap: of.from_tap,
                to_tap: of.to_tap,
                sent: bin.matched + lost + not_captured,
                arrived: bin.matched,
                lost,
                marked: u64::from(bin.marked[side]),
                delay_min_ns: timed(least as f64),
                delay_mean_ns: timed(sum as f64 / f64::from(bin.timed)),
                delay_max_ns: timed(most as f64),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use roce_model::HopRow;

    use super::*;

    #[test]
    fn packets_count_in_the_bin_of_the_first_tap() {
        let mut room = Room::new(Span(1_000));
        let mut bins = Bins::default();
        // Two packets in the first bin, one in the third, then a late one of the second.
        for (low, high, is_marked) in [
            (100, 150, false),
            (900, 1_900, true),
            (2_500, 2_600, false),
            (1_100, 1_130, false),
        ] {
            let bin = bins.at(Time(low), &mut room);
            bin.matched(false, is_marked);
            bin.delayed(Time(low), Time(high));
        }
        bins.at(Time(2_999), &mut room).lost(0, true);
        bins.at(Time(2_999), &mut room).lost(0, false);
        bins.at(Time(2_999), &mut room).silent(0);
        let rows = |upwards, lost_of_runs| {
            let mut rows = Vec::new();
            bins.write(
                &HopRow::default(),
                upwards,
                (lost_of_runs, lost_of_runs == LostOfRuns::All),
                Span(1_000),
                &mut rows,
            );
            rows
        };
        let counts = |rows: &[HopTimelineRow]| -> Vec<[u64; 5]> {
            rows.iter()
                .map(|row| [row.time.0, row.sent, row.arrived, row.lost, row.marked])
                .collect()
        };
        assert_eq!(
            counts(&rows(true, LostOfRuns::All)),
            [[0, 2, 2, 0, 1], [1_000, 1, 1, 0, 0], [2_000, 4, 1, 3, 0]]
        );
        assert_eq!(counts(&rows(true, LostOfRuns::First))[2], [2_000, 2, 1, 1, 0]);
        // From 50 to 1,000 ns: (50 + 1,000) / 2 = 525.
        let first = &rows(true, LostOfRuns::All)[0];
        assert_eq!(
            (first.delay_min_ns, first.delay_mean_ns, first.delay_max_ns),
            (Some(50.0), Some(525.0), Some(1_000.0))
        );
        let back = &rows(false, LostOfRuns::All)[0];
        assert_eq!(
            (back.delay_min_ns, back.delay_max_ns),
            (Some(-1_000.0), Some(-50.0))
        );
    }

    #[test]
    fn bins_have_a_limit() {
        let mut room = Room {
            left: 2,
            ..Room::new(Span(10))
        };
        let mut bins = Bins::default();
        for time in [0, 10, 20, 5, 25] {
            bins.at(Time(time), &mut room).matched(false, false);
        }
        let mut rows = Vec::new();
        bins.write(
            &HopRow::default(),
            true,
            (LostOfRuns::All, false),
            Span(10),
            &mut rows,
        );
        let arrived: Vec<u64> = rows.iter().map(|row| row.arrived).collect();
        assert_eq!(arrived, [2, 1]);
    }
}
