//! Pace of a replay: its position in the time of the capture. Keys change it from another thread.

use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use roce_model::Time;

/// Capture time in a second of the clock.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Speed {
    /// This multiple of the capture's own pace.
    Times(f64),
    /// As fast as the analysis.
    Max,
}

/// The slowest and the fastest that is paced.
const MIN_SPEED: f64 = 1e-6;
const MAX_SPEED: f64 = 1e6;

impl Speed {
    /// Parses `1x`, `0.1x`, `10`, `max`.
    ///
    /// # Errors
    /// When it is none of them, or too slow or too fast to be paced.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self::Max);
        }
        let number = text.strip_suffix('x').unwrap_or(text);
        let times: f64 = number
            .parse()
            .map_err(|_| format!("'{text}' is not a speed such as 1x, 0.1x, 10x or max"))?;
        if (MIN_SPEED..=MAX_SPEED).contains(&times) {
            Ok(Self::Times(times))
        } else {
            Err("a replay is paced from 0.000001x to 1000000x".to_owned())
        }
    }

    fn faster(self) -> Self {
        match self {
            Self::Times(times) if times * 2.0 <= MAX_SPEED => Self::Times(times * 2.0),
            _ => Self::Max,
        }
    }

    fn slower(self) -> Self {
        match self {
            Self::Times(times) => Self::Times((times / 2.0).max(MIN_SPEED)),
            Self::Max => Self::Times(1.0),
        }
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times(times) => write!(f, "{times}x"),
            Self::Max => f.write_str("max"),
        }
    }
}

/// The pace of a replay.
#[derive(Debug)]
pub struct Pace {
    moving: Mutex<PaceState>,
    changed: Condvar,
}

#[derive(Debug)]
struct PaceState {
    speed: Speed,
    paused: bool,
    /// The clock and the position at the last change; none before the first frame.
    at: Option<(Instant, Time)>,
    /// The latest frame that was emitted, and how many there were.
    handed: Time,
    frames: u64,
    /// It is to end.
    stopped: bool,
}

impl PaceState {
    /// Current position; `None`: nothing limits it.
    fn position(&self, now: Instant) -> Option<Time> {
        let (since, at) = self.at?;
        match self.speed {
            _ if self.paused => Some(at),
            Speed::Max => None,
            Speed::Times(times) => {
                let went = now.saturating_duration_since(since).as_secs_f64() * times * 1e9;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "it saturates, and neither is negative"
                )]
                let went = went as u64;
                Some(Time(at.0.saturating_add(went)))
            }
        }
    }

    /// From now on it is somewhere else, or moves differently.
    fn change(&mut self, change: impl FnOnce(&mut Self)) {
        let now = Instant::now();
        if self.at.is_some() {
            let until = self.position(now).unwrap_or(self.handed);
            self.at = Some((now, until));
        }
        change(self);
    }
}

impl Pace {
    /// Begins with the first frame.
    pub fn new(speed: Speed) -> Self {
        Self {
            moving: Mutex::new(PaceState {
                speed,
                paused: false,
                at: None,
                handed: Time(0),
                frames: 0,
                stopped: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn moving(&self) -> MutexGuard<'_, PaceState> {
        self.moving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Current position; it starts at `first`, if it has not. `None`: nothing limits it.
    pub fn begun(&self, first: Time) -> Option<Time> {
        let now = Instant::now();
        let mut moving = self.moving();
        moving.at.get_or_insert((now, first));
        moving.position(now)
    }

    /// Current position.
    pub fn position(&self) -> Option<Time> {
        self.moving().position(Instant::now())
    }

    /// Waits for a change, or for some time.
    pub fn wait(&self, time: Duration) {
        let moving = self.moving();
        if !moving.stopped {
            // The position is computed again in any case.
            drop(self.changed.wait_timeout(moving, time));
        }
    }

    /// Frames were emitted, the last of them with this time.
    pub fn emitted(&self, frames: u64, last: Time) {
        let mut moving = self.moving();
        moving.handed = moving.handed.max(last);
        moving.frames += frames;
    }

    /// The time of the latest frame that was emitted, and how many there were.
    pub fn handed(&self) -> (Time, u64) {
        let moving = self.moving();
        (moving.handed, moving.frames)
    }

    /// Current speed.
    pub fn speed(&self) -> Speed {
        self.moving().speed
    }

    fn change(&self, change: impl FnOnce(&mut PaceState)) {
        self.moving().change(change);
        self.changed.notify_all();
    }

    /// It pauses, or goes on.
    pub fn pause(&self, paused: bool) {
        self.change(|moving| moving.paused = paused);
    }

    /// It goes twice as fast.
    pub fn faster(&self) {
        self.change(|moving| moving.speed = moving.speed.faster());
    }

    /// It goes half as fast.
    pub fn slower(&self) {
        self.change(|moving| moving.speed = moving.speed.slower());
    }

    /// It goes on to this time at once, if it is not beyond.
    pub fn go_on_until(&self, time: Time) {
        self.change(|moving| {
            if let Some((_, at)) = &mut moving.at {
                *at = time.max(*at);
            }
        });
    }

    /// It ends.
    pub fn stop(&self) {
        self.change(|moving| moving.stopped = true);
    }

    /// It was ended.
    pub fn is_stopped(&self) -> bool {
        self.moving().stopped
    }

    /// Returns when the end is requested.
    pub fn stopped(&self) {
        let mut moving = self.moving();
        while !moving.stopped {
            moving = self.changed.wait(moving).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_read_and_written() {
        for (text, speed) in [
            ("1x", Speed::Times(1.0)),
            ("0.1x", Speed::Times(0.1)),
            ("10", Speed::Times(10.0)),
            ("max", Speed::Max),
        ] {
            assert_eq!(Speed::parse(text), Ok(speed));
        }
        for text in ["", "x", "0x", "-1x", "fast", "inf", "NaN", "1e9x"] {
            assert!(Speed::parse(text).is_err(), "{text}");
        }
        assert_eq!(Speed::Times(0.1).to_string(), "0.1x");
        assert_eq!(Speed::Times(1.0).faster(), Speed::Times(2.0));
        assert_eq!(Speed::Times(1.0).slower().to_string(), "0.5x");
        assert_eq!(
            (Speed::Times(MAX_SPEED).faster(), Speed::Max.slower()),
            (Speed::Max, Speed::Times(1.0))
        );
    }

    fn moving(speed: Speed) -> (PaceState, Instant) {
        let begun = Instant::now();
        let moving = PaceState {
            speed,
            paused: false,
            at: Some((begun, Time(1_000))),
            handed: Time(7_000),
            frames: 0,
            stopped: false,
        };
        (moving, begun)
    }

    #[test]
    fn capture_time_goes_with_the_clock() {
        let (mut moving, begun) = moving(Speed::Times(0.5));
        let later = begun + Duration::from_micros(10);
        // Half of 10 us after 1 us.
        assert_eq!(moving.position(later), Some(Time(6_000)));
        moving.paused = true;
        assert_eq!(moving.position(later), Some(Time(1_000)));
        moving.at = None;
        assert_eq!(
            moving.position(later),
            None,
            "nothing is held back before the first frame"
        );
    }

    #[test]
    fn what_ran_free_stands_where_it_was() {
        let (mut moving, begun) = moving(Speed::Max);
        assert_eq!(moving.position(begun), None);
        moving.change(|moving| moving.paused = true);
        assert_eq!(moving.position(begun), Some(Time(7_000)));
    }

    #[test]
    fn a_step_goes_on_and_never_back() {
        let pace = Pace::new(Speed::Times(1e-6));
        pace.pause(true);
        assert_eq!(pace.begun(Time(100)), Some(Time(100)));
        pace.go_on_until(Time(500));
        pace.go_on_until(Time(300));
        assert_eq!(pace.begun(Time(100)), Some(Time(500)));
        pace.emitted(3, Time(499));
        assert_eq!(pace.handed(), (Time(499), 3));
        pace.stop();
        pace.wait(Duration::from_mins(1));
        pace.stopped();
        assert!(pace.is_stopped());
    }
}
