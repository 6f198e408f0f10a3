//! Start and duration of a run: the clocks that a run reads.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use roce_model::{Span, Time};

/// Start of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunStart {
    pub(crate) started: Time,
    /// `None` where the environment says when, so that results can be made again byte by byte.
    clock: Option<Instant>,
}

impl RunStart {
    /// It begins now, or when `SOURCE_DATE_EPOCH` says, in seconds since the epoch (reproducible-builds.org).
    pub fn now() -> Self {
        let epoch = std::env::var("SOURCE_DATE_EPOCH").ok();
        match epoch.and_then(|seconds| seconds.trim().parse::<u64>().ok()) {
            Some(seconds) => Self {
                started: Time(seconds.saturating_mul(Span::SECOND.0)),
                clock: None,
            },
            None => Self {
                started: time_of_day(),
                clock: Some(Instant::now()),
            },
        }
    }

    /// Time at which the run began.
    pub const fn time(self) -> Time {
        self.started
    }

    /// Duration until now; zero where the run has to give the same bytes again.
    pub fn elapsed(self) -> Span {
        let elapsed = self.clock.map_or(0, |clock| clock.elapsed().as_nanos());
        Span(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }
}

/// The time of day.
pub fn time_of_day() -> Time {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(now.as_nanos()).unwrap_or_default())
}
