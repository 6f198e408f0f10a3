//! The clock of the kernel programs beside the one that captures are stamped with.

use roce_model::{Span, Time};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Measured distance of CLOCK_REALTIME and CLOCK_MONOTONIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockOffset {
    /// Realtime less monotonic time, in ns.
    pub nanos: i64,
    /// The measured offset is wrong by this much at most: half the time that reading both clocks took.
    pub uncertainty: Span,
}

/// Number of readings of both clocks: the quickest one counts, so that one interruption does not matter.
const READINGS: usize = 32;

impl ClockOffset {
    /// Reads both clocks some times and takes the narrowest reading.
    pub fn measure() -> Self {
        let reading = || {
            let before = nanos(clock_gettime(ClockId::Monotonic));
            let real = nanos(clock_gettime(ClockId::Realtime));
            let after = nanos(clock_gettime(ClockId::Monotonic));
            Self::from_readings(before, real, after)
        };
        let mut best = reading();
        for _ in 1..READINGS {
            let next = reading();
            if next.uncertainty < best.uncertainty {
                best = next;
            }
        }
        best
    }

    /// The realtime was read between two readings of the monotonic one.
    fn from_readings(before: i64, real: i64, after: i64) -> Self {
        let half = (after - before) / 2;
        Self {
            nanos: real - (before + half),
            // Rounded up: half a nanosecond is lost in the middle.
            uncertainty: Span((half + 1).unsigned_abs()),
        }
    }

    /// The time now, by this offset.
    pub(crate) fn now(self) -> Time {
        self.realtime(nanos(clock_gettime(ClockId::Monotonic)).unsigned_abs())
    }

    /// A time of the kernel programs, as nanoseconds since the epoch.
    #[inline]
    pub fn realtime(self, monotonic: u64) -> Time {
        Time(monotonic.saturating_add_signed(self.nanos))
    }
}

fn nanos(time: Timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_counts() {
        // Monotonic 100 and 140 around realtime 5,000: it belongs to 120, give or take 20.
        let offset = ClockOffset::from_readings(100, 5_000, 140);
        assert_eq!(offset.nanos, 4_880);
        assert_eq!(offset.uncertainty, Span(21));
        assert_eq!(offset.realtime(130), Time(5_010));
    }

    #[test]
    fn this_machine_reads_its_clocks_well() {
        let offset = ClockOffset::measure();
        let real = nanos(clock_gettime(ClockId::Realtime));
        let now = offset.realtime(u64::try_from(nanos(clock_gettime(ClockId::Monotonic))).unwrap());
        let apart = now.0.abs_diff(u64::try_from(real).unwrap());
        assert!(apart < 100_000_000, "{apart} ns apart");
        assert!(offset.uncertainty < Span(10_000_000), "{offset:?}");
    }
}
