//! The distance of a host's clock from this one's, by round trips.

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use crate::link::now_ns;
use crate::session::{Session, SessionLine};

/// Round trips that are tried.
pub const ROUND_TRIPS: usize = 3;
/// Nanoseconds of a second.
const SECOND_NS: i64 = 1_000_000_000;

/// How far a host's clock is ahead of this one's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Offset {
    /// Time by which it is ahead, in nanoseconds.
    pub ahead_ns: i64,
    /// By how much that can be wrong: half of the round trip.
    pub bound_ns: i64,
}

/// A question and its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundTrip {
    /// Time here when the question left, in nanoseconds since 1970.
    pub sent_ns: i64,
    /// Time from the question to the answer, by a clock that nobody sets.
    pub round_ns: i64,
    /// Time there.
    pub there: There,
}

/// Time that a host has answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct There {
    /// In nanoseconds since 1970.
    pub ns: i64,
    /// Length of a step of the answer: a second where its `date` knows no fractions.
    pub step_ns: i64,
}

impl There {
    /// Parses what `date +%s.%N` prints: `1795000000.123456789`; a `date` without %N prints no digits behind the dot.
    pub fn parse(text: &str) -> Option<Self> {
        let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
        let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(seconds) {
            return None;
        }
        let whole = seconds.parse::<i64>().ok()?.checked_mul(SECOND_NS)?;
        if !is_number(fraction) || fraction.len() > 9 {
            return Some(Self {
                ns: whole,
                step_ns: SECOND_NS,
            });
        }
        let step_ns = 10_i64.pow(9 - u32::try_from(fraction.len()).ok()?);
        let part = fraction.parse::<i64>().ok()?.checked_mul(step_ns)?;
        Some(Self {
            ns: whole.checked_add(part)?,
            step_ns,
        })
    }
}

impl Offset {
    /// The offset by the shortest of some round trips: the answer is as old as half of it, and wrong by at most that. A time that is cut
    /// off to a step is half a step later, and wrong by half a step.
    pub fn from_round_trips(all: &[RoundTrip]) -> Option<Self> {
        let best = all.iter().min_by_key(|trip| trip.round_ns)?;
        let half = best.round_ns / 2;
        let half_step = best.there.step_ns / 2;
        let middle = best.sent_ns.checked_add(half)?;
        Some(Self {
            ahead_ns: best.there.ns.checked_add(half_step)?.checked_sub(middle)?,
            bound_ns: half.checked_add(half_step)?,
        })
    }
}

/// Measures a host's clock by a session whose script answers each line with `time=`.
pub(crate) fn measure(session: &mut Session, patience: Duration) -> Option<Offset> {
    let mut all = Vec::new();
    for _ in 0..ROUND_TRIPS {
        let (sent_ns, begun) = (session.machine.now_ns(), session.machine.now());
        if !session.say("time") {
            break;
        }
        let SessionLine::Text(line) = session.line(patience) else {
            break;
        };
        let round = session.machine.now().duration_since(begun);
        let round_ns = i64::try_from(round.as_nanos()).unwrap_or(i64::MAX);
        if let Some(there) = line.strip_prefix("time=").and_then(There::parse) {
            all.push(RoundTrip {
                sent_ns,
                round_ns,
                there,
            });
        }
    }
    Offset::from_round_trips(&all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trip(sent_ms: i64, round_ms: i64, there_ms: i64) -> RoundTrip {
        RoundTrip {
            sent_ns: sent_ms * 1_000_000,
            round_ns: round_ms * 1_000_000,
            there: There {
                ns: there_ms * 1_000_000,
                step_ns: 1,
            },
        }
    }

    #[test]
    fn the_shortest_round_trip_gives_the_offset() {
        // Sent at 1,000 ms, answered within 4 ms: the answer is of 1,002 ms here and of 8,202 ms there.
        let all = [trip(0, 90, 7_300), trip(1_000, 4, 8_202), trip(2_000, 30, 9_220)];
        assert_eq!(
            Offset::from_round_trips(&all),
            Some(Offset {
                ahead_ns: 7_200_000_000,
                bound_ns: 2_000_000,
            })
        );
        assert_eq!(Offset::from_round_trips(&[]), None);
        // Two hours behind.
        let behind = Offset::from_round_trips(&[trip(7_200_000, 10, 5)]).unwrap();
        assert_eq!(
            (behind.ahead_ns, behind.bound_ns),
            (-7_200_000_000_000, 5_000_000)
        );
    }

    #[test]
    fn times_have_fractions_or_steps() {
        let parsed = |text| There::parse(text).map(|there| (there.ns, there.step_ns));
        assert_eq!(parsed("1.000000001"), Some((1_000_000_001, 1)));
        assert_eq!(parsed("1.5"), Some((1_500_000_000, 100_000_000)));
        assert_eq!(parsed("1.%N"), Some((1_000_000_000, SECOND_NS)));
        assert_eq!(parsed("1."), Some((1_000_000_000, SECOND_NS)));
        for wrong in ["", "x", "-1", "99999999999999"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
        // A step of a second: half of it is added, and bounds the offset.
        let coarse = RoundTrip {
            sent_ns: 0,
            round_ns: 0,
            there: There {
                ns: 0,
                step_ns: SECOND_NS,
            },
        };
        let offset = Offset::from_round_trips(&[coarse]).unwrap();
        assert_eq!((offset.ahead_ns, offset.bound_ns), (500_000_000, 500_000_000));
    }
}
