//! The clock of a tap: what time it says it is.

use roce_model::{Span, Time};

/// Clock of a tap: it gives stamps for the time of the simulation, which starts at 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    /// The beginning of the simulation in ns since the Unix epoch.
    pub epoch: Time,
    /// Offset at the start, in ns; positive when the clock is ahead.
    pub offset_ns: i64,
    /// Rate error, in parts of 10^9; positive when the clock runs fast.
    pub drift_ppb: i64,
    /// Stamps are rounded down to multiples of this; 0 and 1 ns leave them as they are.
    pub quantum: Span,
    /// Frames are stamped when they are fetched, at multiples of this (by the tap's own clock, from the beginning on): all
    /// that came in between get one stamp, as with libpcap's RDMA sniffer. `None`: each when it arrives.
    pub poll: Option<Span>,
    /// From this time of the simulation on it shows so much more, in ns, or less: a clock that is set again.
    pub step: Option<(Time, i64)>,
}

impl Default for Clock {
    /// An exact clock; the simulation begins at 1,700,000,000 s (2023-11-14).
    fn default() -> Self {
        Self {
            epoch: Time(1_700_000_000 * Span::SECOND.0),
            offset_ns: 0,
            drift_ppb: 0,
            quantum: Span(1),
            poll: None,
            step: None,
        }
    }
}

impl Clock {
    /// Stamp at `time` of the simulation, in ns since the Unix epoch; never before the epoch.
    pub fn stamp(&self, time: Time) -> Time {
        // 64 bits times 64 bits stay within 127.
        let drift = (i128::from(time.0) * i128::from(self.drift_ppb)).div_euclid(i128::from(Span::SECOND.0));
        let mut local = i128::from(time.0) + drift;
        if let Some(Span(poll @ 1..)) = self.poll {
            let poll = i128::from(poll);
            local = (local + poll - 1).div_euclid(poll) * poll;
        }
        let stepped = self.step.filter(|(at, _)| time >= *at).map_or(0, |(_, by)| by);
        let total = i128::from(self.epoch.0) + i128::from(self.offset_ns) + i128::from(stepped) + local;
        let stamp = u64::try_from(total.max(0)).unwrap_or(u64::MAX);
        Time(stamp - stamp % self.quantum.0.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: Clock = Clock {
        epoch: Time(1_000_000),
        offset_ns: 0,
        drift_ppb: 0,
        quantum: Span(1),
        poll: None,
        step: None,
    };

    #[test]
    fn a_step_holds_from_its_time_on() {
        let stepped = Clock {
            step: Some((Time(500), -40)),
            ..EXACT
        };
        let stamps = [499, 500, 501].map(|time| stepped.stamp(Time(time)).0 - 1_000_000);
        assert_eq!(stamps, [499, 460, 461]);
    }

    #[test]
    fn offset_and_drift() {
        assert_eq!(EXACT.stamp(Time(7)), Time(1_000_007));
        let ahead = Clock {
            offset_ns: -500,
            drift_ppb: 20_000,
            ..EXACT
        };
        // 1,000,000 - 500 + 1,000,000 + 1,000,000 * 20e-6 = 1,999,520.
        assert_eq!(ahead.stamp(Time(1_000_000)), Time(1_999_520));
        // -1 ppm of 1.5 us is -0.0015 ns, rounded down to -1.
        let slow = Clock {
            drift_ppb: -1_000,
            ..EXACT
        };
        assert_eq!(slow.stamp(Time(1_500)), Time(1_001_499));
    }

    #[test]
    fn quanta_and_polls() {
        let coarse = Clock {
            quantum: Span(1_000),
            ..EXACT
        };
        assert_eq!(coarse.stamp(Time(1_999)), Time(1_001_000));
        let polled = Clock {
            poll: Some(Span(4_000)),
            ..EXACT
        };
        let stamps = [0, 1, 4_000, 4_001, 8_000].map(|time| polled.stamp(Time(time)).0 - 1_000_000);
        assert_eq!(stamps, [0, 4_000, 4_000, 8_000, 8_000]);
        let none = Clock {
            quantum: Span(0),
            poll: Some(Span(0)),
            ..EXACT
        };
        assert_eq!(none.stamp(Time(3)), Time(1_000_003));
    }

    #[test]
    fn ends_of_the_range() {
        let early = Clock {
            offset_ns: i64::MIN,
            ..EXACT
        };
        assert_eq!(early.stamp(Time(5)), Time(0));
        let late = Clock {
            offset_ns: i64::MAX,
            drift_ppb: i64::MAX,
            ..EXACT
        };
        assert_eq!(late.stamp(Time(u64::MAX)), Time(u64::MAX));
    }
}
