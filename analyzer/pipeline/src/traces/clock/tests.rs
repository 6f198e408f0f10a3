//! Clocks that are known: bursts and collectives are made from one list, with an offset and a drift between them.

use super::*;

/// A generator of numbers (Knuth's MMIX), so that each run makes the same ones.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        float(self.0 >> 11) / float(1 << 53)
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }
}

/// How bursts and collectives are made. Times in ns.
#[derive(Clone, Copy, Debug)]
struct MadeTrace {
    width: u64,
    steps: usize,
    /// Collectives of a step.
    calls: usize,
    length: f64,
    pause: f64,
    /// Share by which lengths and pauses differ.
    jitter: f64,
    offset: f64,
    drift: f64,
    /// The trace has the collectives from here to there.
    traced: (usize, usize),
    seed: u64,
}

const START: u64 = 1_763_700_000_000_000_000;

impl MadeTrace {
    /// Traffic, collectives, and the true offset for each.
    fn make(self) -> (Activity, Vec<Interval>) {
        let mut random = Random(self.seed);
        let mut bytes = std::collections::BTreeMap::new();
        let mut calls = Vec::new();
        let mut now = 5e6;
        for _ in 0..self.steps {
            for call in 0..self.calls {
                let size = 1.0 + call as f64;
                let length = self.length * size * (1.0 + self.jitter * random.between(-1.0, 1.0));
                let message = whole(size * 1e6);
                let mut at = now;
                while at < now + length {
                    *bytes.entry((START + whole(at)) / self.width).or_insert(0) +=
                        whole(float(message) / 50.0);
                    at += length / 50.0;
                }
                // A kernel waits for its peers before the first byte, and ends some microseconds behind the last.
                let begin = now - random.between(0.0, 0.2) * self.length;
                let end = now + length + random.between(5e3, 60e3);
                let traced = |time: f64| ((time - self.offset) * (1.0 - self.drift)).round() as i64;
                calls.push(Interval {
                    start: traced(begin),
                    end: traced(end),
                    message_bytes: Some(message),
                    group: 0,
                });
                now += length + self.pause * (1.0 + self.jitter * random.between(-1.0, 1.0));
            }
            now += 3.0 * self.pause * (1.0 + self.jitter * random.between(-1.0, 1.0));
        }
        let slots = bytes.into_iter().collect();
        let traced = calls[self.traced.0..self.traced.1.min(calls.len())].to_vec();
        (
            Activity {
                width: self.width,
                slots,
            },
            traced,
        )
    }

    /// The largest difference between the found clock and the true one, over the trace.
    fn error(self, clock: &Clock, calls: &[Interval]) -> f64 {
        let differs = |call: &Interval| {
            let found = clock.at(call.end).0 as i64 - START as i64;
            let truth = call.end as f64 / (1.0 - self.drift) + self.offset;
            (found as f64 - truth).abs()
        };
        calls.iter().map(differs).fold(0.0, f64::max)
    }
}

#[test]
fn planted_offsets_and_drifts_are_found_within_the_stated_uncertainty() {
    let usual = MadeTrace {
        width: 1_000_000,
        steps: 25,
        calls: 3,
        length: 8e6,
        pause: 12e6,
        jitter: 0.2,
        offset: 3.7e9,
        drift: 20e-6,
        traced: (0, usize::MAX),
        seed: 1,
    };
    let mut tried = 0;
    for (width, length, pause) in [
        (1_000_000, 8e6, 12e6),
        (1_000_000, 20e6, 15e6),
        (100_000, 1e6, 2e6),
        (10_000, 300e3, 500e3),
    ] {
        for (offset, drift) in [(3.7e9, 20e-6), (-41.25e9, -80e-6), (0.0, 0.0), (1e12, 100e-6)] {
            for traced in [(0, usize::MAX), (10, 50)] {
                for seed in 1..4 {
                    let made = MadeTrace {
                        width,
                        length,
                        pause,
                        offset,
                        drift,
                        traced,
                        seed,
                        ..usual
                    };
                    let (activity, calls) = made.make();
                    let clock =
                        find(&activity, &calls, None).unwrap_or_else(|reason| panic!("{made:?}: {reason}"));
                    let error = made.error(&clock, &calls);
                    assert!(
                        error <= clock.uncertainty as f64,
                        "{made:?}: {error} beyond {}",
                        clock.uncertainty
                    );
                    // And the statement is worth something: within some slots.
                    assert!(
                        (clock.uncertainty as f64) < 4.0 * (width as f64).max(100e3),
                        "{made:?}: {clock:?}"
                    );
                    tried += 1;
                }
            }
        }
    }
    assert_eq!(tried, 96);
}

#[test]
fn steps_that_are_alike_are_refused() {
    // A trace of five steps of twenty-five, without any jitter: it fits at twenty-one places.
    let made = MadeTrace {
        width: 1_000_000,
        steps: 25,
        calls: 3,
        length: 8e6,
        pause: 12e6,
        jitter: 0.0,
        offset: 3.7e9,
        drift: 0.0,
        traced: (30, 45),
        seed: 5,
    };
    let (activity, calls) = made.make();
    let reason = find(&activity, &calls, None).unwrap_err();
    assert!(reason.contains("at several times"), "{reason}");
    // With the clock known to 20 ms it is one place.
    let clock = find(
        &activity,
        &calls
            .iter()
            .map(|call| Interval {
                start: call.start + START as i64 + 3_700_000_000,
                end: call.end + START as i64 + 3_700_000_000,
                ..*call
            })
            .collect::<Vec<_>>(),
        Some(20_000_000),
    )
    .unwrap();
    assert!(
        clock.offset().abs() <= clock.uncertainty as f64 + 256.0,
        "{clock:?}"
    );
}

#[test]
fn a_trace_of_another_job_is_refused() {
    let made = MadeTrace {
        width: 1_000_000,
        steps: 25,
        calls: 3,
        length: 8e6,
        pause: 12e6,
        jitter: 0.3,
        offset: 0.0,
        drift: 0.0,
        traced: (0, usize::MAX),
        seed: 1,
    };
    let (activity, _) = made.make();
    for seed in 100..130 {
        // The rhythm is alike, each length and pause another one.
        let (_, calls) = MadeTrace { seed, ..made }.make();
        let found = find(&activity, &calls, None);
        assert!(found.is_err(), "{seed}: {found:?}");
        let (_, calls) = MadeTrace {
            seed,
            length: 5e6,
            pause: 9e6,
            ..made
        }
        .make();
        let found = find(&activity, &calls, None);
        assert!(found.is_err(), "{seed}: {found:?}");
    }
}

#[test]
fn too_little_is_refused_with_the_reason() {
    let made = MadeTrace {
        width: 1_000_000,
        steps: 2,
        calls: 3,
        length: 8e6,
        pause: 12e6,
        jitter: 0.2,
        offset: 0.0,
        drift: 0.0,
        traced: (0, usize::MAX),
        seed: 1,
    };
    let (activity, calls) = made.make();
    let reason = find(&activity, &calls, None).unwrap_err();
    assert!(
        reason.starts_with("it has 6 collectives apart from each other"),
        "{reason}"
    );
    let (_, calls) = MadeTrace {
        steps: 25,
        length: 100e3,
        pause: 300e3,
        ..made
    }
    .make();
    let reason = find(&activity, &calls, None).unwrap_err();
    assert!(reason.contains("only known in steps of 1.00 ms"), "{reason}");
    let (_, calls) = MadeTrace { steps: 25, ..made }.make();
    assert!(
        find(
            &Activity {
                width: 1,
                slots: Vec::new()
            },
            &calls,
            None
        )
        .unwrap_err()
        .contains("no traffic")
    );
}

#[test]
fn hostile_times_are_taken_in_bounded_time() {
    let activity = Activity {
        width: 1_000,
        slots: vec![(0, 1), (1, 5), (u64::MAX / 2_000, 7)],
    };
    for step in [1i64, 1_000_000, i64::MAX / 100] {
        let calls: Vec<Interval> = (0..64)
            .map(|n| Interval {
                start: n * step,
                end: n * step + step / 2,
                message_bytes: Some(u64::MAX),
                group: 0,
            })
            .collect();
        assert!(find(&activity, &calls, None).is_err());
    }
}
