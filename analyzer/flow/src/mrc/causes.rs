//! Causes of retransmissions, and the time that passed until them.

use roce_model::{Span, Time};

/// Reason of a NACK: the packet was trimmed in the fabric (OCP-MRC-1.0, 7.5.6).
pub(super) const TRIMMED: u8 = 1;
/// It was trimmed at the last hop.
pub(super) const TRIMMED_LASTHOP: u8 = 2;
/// The responder has no bitmap, no buffer, no resource.
pub(super) const RESOURCES: [u8; 3] = [6, 7, 10];
/// The PSN is beyond the window.
pub(super) const BEYOND_WINDOW: u8 = 11;
/// The connection ends.
pub(super) const FAILED: u8 = 25;

/// UET: the receiver concludes that the packet was lost.
pub(super) const MISSED: u8 = 26;

/// Why a packet was sent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cause {
    /// A NACK with this reason named it.
    Refused(u8),
    /// A SACK had a hole there.
    Hole,
    /// Nothing but time passed.
    Timeout,
    /// The capture does not show it.
    Unknown,
}

impl Cause {
    /// Number of places.
    pub(super) const PLACES: usize = 6;

    /// Its place in the counts and sums of a connection.
    pub(super) const fn place(self) -> usize {
        match self {
            Self::Hole => 0,
            Self::Refused(TRIMMED) => 1,
            Self::Refused(TRIMMED_LASTHOP) => 2,
            Self::Refused(_) => 3,
            Self::Timeout => 4,
            Self::Unknown => 5,
        }
    }

    /// The word in events.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Refused(TRIMMED) => "trimmed",
            Self::Refused(TRIMMED_LASTHOP) => "trimmed_lasthop",
            Self::Refused(_) => "refused",
            Self::Hole => "hole",
            Self::Timeout => "timeout",
            Self::Unknown => "unknown",
        }
    }
}

/// Time of intervals, each moment once. They come in the order of their ends.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Union {
    sum: Span,
    end: Time,
}

impl Union {
    /// Adds an interval.
    pub(super) fn add(&mut self, from: Time, to: Time) {
        let from = from.max(self.end);
        self.sum = Span(self.sum.0 + to.since(from).0);
        self.end = self.end.max(to);
    }

    pub(super) const fn ns(self) -> u64 {
        self.sum.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_moment_counts_once() {
        let mut union = Union::default();
        union.add(Time(10), Time(20));
        union.add(Time(15), Time(30));
        union.add(Time(12), Time(25));
        union.add(Time(100), Time(101));
        // 10 to 30, and one.
        assert_eq!(union.ns(), 21);
    }
}
