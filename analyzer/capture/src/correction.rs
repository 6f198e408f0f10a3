//! Times of one clock moved to another's. How far the two are apart is found by others.

use roce_model::Time;

/// Error of a clock, which is subtracted from its times.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Correction {
    /// The time, by the clock itself, at which it is ahead by `ahead_ns`.
    pub at: Time,
    /// Offset at the reference time, in nanoseconds; positive when the clock is ahead.
    pub ahead_ns: f64,
    /// Rate error, in parts per billion; positive when the clock runs fast.
    pub faster_ppb: f64,
}

impl Correction {
    /// Offset of the clock when it shows `time`, in nanoseconds.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a distance in time: 2^53 ns are 104 days, and what is beyond is multiplied by a small number"
    )]
    pub fn ahead_at(&self, time: Time) -> f64 {
        let since = (i128::from(time.0) - i128::from(self.at.0)) as f64;
        self.ahead_ns + self.faster_ppb * 1e-9 * since
    }

    /// The time that the other clock shows when this one shows `time`; what would lie before 1970 is at its begin.
    #[inline]
    pub fn correct(&self, time: Time) -> Time {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "what 64 bits do not hold becomes their end"
        )]
        let ahead = self.ahead_at(time).round() as i64;
        Time(time.0.saturating_add_signed(ahead.saturating_neg()))
    }

    /// This correction, and after it another one, as one.
    #[must_use]
    pub fn then(&self, next: &Self) -> Self {
        Self {
            at: self.at,
            ahead_ns: self.ahead_ns + next.ahead_at(self.correct(self.at)),
            faster_ppb: self.faster_ppb + next.faster_ppb * (1.0 - self.faster_ppb * 1e-9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: Time = Time(1_795_000_000_000_000_000);

    #[test]
    fn offset_and_drift_are_taken_away() {
        let clock = Correction {
            at: BEGIN,
            ahead_ns: 3.5e9,
            faster_ppb: 20_000.0,
        };
        assert_eq!(clock.correct(BEGIN), Time(BEGIN.0 - 3_500_000_000));
        // 20 us a second: after 10 s 200 us more, before that less.
        assert_eq!(
            clock.correct(Time(BEGIN.0 + 10_000_000_000)),
            Time(BEGIN.0 + 6_499_800_000)
        );
        assert_eq!(
            clock.correct(Time(BEGIN.0 - 10_000_000_000)),
            Time(BEGIN.0 - 13_499_800_000)
        );
    }

    #[test]
    fn two_after_each_other() {
        let first = Correction {
            at: BEGIN,
            ahead_ns: 1e9,
            faster_ppb: 1_000.0,
        };
        let second = Correction {
            at: Time(BEGIN.0 - 5_000_000_000),
            ahead_ns: -2e9,
            faster_ppb: 3_000.0,
        };
        let both = first.then(&second);
        for seconds in [0, 1, 100, 3_600] {
            let time = Time(BEGIN.0 + seconds * 1_000_000_000);
            let difference = both
                .correct(time)
                .0
                .abs_diff(second.correct(first.correct(time)).0);
            // Rounded twice or once.
            assert!(difference <= 1, "{difference} after {seconds} s");
        }
    }

    #[test]
    fn no_time_is_out_of_range() {
        let far = Correction {
            at: Time(0),
            ahead_ns: f64::MAX,
            faster_ppb: f64::NAN,
        };
        assert_eq!(far.correct(BEGIN), BEGIN, "not a number is no correction");
        let far = Correction {
            faster_ppb: 0.0,
            ..far
        };
        assert_eq!(far.correct(BEGIN), Time(0));
        let far = Correction {
            ahead_ns: -f64::MAX,
            ..far
        };
        assert_eq!(far.correct(Time(u64::MAX - 5)), Time(u64::MAX));
    }
}
