//! The last whole reading of a collector. Scrapes take it as it is; a collector that hangs holds none of them up, its values become old
//! and vanish, and their age says so.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use roce_metrics::{
    COLLECTOR_AGE, COLLECTOR_DURATION, COLLECTOR_INTERVAL, COLLECTOR_SUCCESS, Exposition, Format, Label,
    SERIES_LEFT_OUT,
};
use roce_model::value_of;
// The clock of the runtime: that of the system, but in simulated time.
use tokio::time::Instant;

use super::process::Process;
use super::source::EndpointSource;

/// Values of a reading older than this many intervals are left out: a counter that stands still would hide that nobody reads it.
const MAX_AGE_INTERVALS: u32 = 3;

struct LatestReading {
    texts: Texts,
    /// How long it took, where that is known.
    took: Option<Duration>,
    /// False: it has nothing but the failure.
    is_success: bool,
    at: Instant,
}

/// A reading as text in each format.
#[derive(Clone, Debug)]
pub struct Texts {
    /// In the text format of Prometheus.
    pub prometheus: String,
    /// In the format OpenMetrics.
    pub open_metrics: String,
    /// Number of series that found no room.
    pub left_out: usize,
}

impl From<&Exposition> for Texts {
    fn from(exposition: &Exposition) -> Self {
        Self {
            prometheus: exposition.part(Format::Prometheus),
            open_metrics: exposition.part(Format::OpenMetrics),
            left_out: exposition.left_out(),
        }
    }
}

/// Readings of one collector, the last of which is served.
pub struct Latest {
    collector: Label<'static>,
    last: Mutex<Option<Arc<LatestReading>>>,
    /// When the last reading that succeeded came.
    succeeded: Mutex<Option<Instant>>,
    interval: Duration,
    started: Instant,
    process: Process,
}

impl Latest {
    /// No reading yet; there is one each `interval`.
    pub fn new(collector: Label<'static>, interval: Duration) -> Self {
        Self {
            collector,
            last: Mutex::default(),
            succeeded: Mutex::default(),
            interval,
            started: Instant::now(),
            process: Process::new(),
        }
    }

    /// Takes a whole reading, and how long it took; scrapes in progress keep the one before.
    pub fn take(&self, texts: Texts, took: Option<Duration>) {
        self.take_outcome(texts, took, true);
    }

    /// Takes a reading that may have failed: its text says so, and its age goes on.
    pub fn take_outcome(&self, texts: Texts, took: Option<Duration>, is_success: bool) {
        let at = Instant::now();
        let reading = LatestReading {
            texts,
            took,
            is_success,
            at,
        };
        if is_success {
            *self.succeeded.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(reading));
    }

    /// Who reads has ended: there are no values, and no success, until the next reading.
    pub fn fail(&self) {
        let nothing = Texts {
            prometheus: String::new(),
            open_metrics: String::new(),
            left_out: 0,
        };
        self.take_outcome(nothing, None, false);
    }

    fn last(&self) -> Option<Arc<LatestReading>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The last reading, unless it is too old.
    fn fresh(&self) -> Option<Arc<LatestReading>> {
        self.last()
            .filter(|reading| reading.at.elapsed() <= self.interval * MAX_AGE_INTERVALS)
    }
}

impl EndpointSource for Latest {
    fn part(&self, format: Format) -> String {
        self.fresh().map_or_else(String::new, |reading| match format {
            Format::Prometheus => reading.texts.prometheus.clone(),
            Format::OpenMetrics => reading.texts.open_metrics.clone(),
        })
    }

    fn add(&self, into: &mut Exposition) {
        self.process.add(into);
        self.add_collector(into);
        into.own(SERIES_LEFT_OUT, &[], value_of(self.left_out() as u64));
    }
}

impl Latest {
    /// Number of series that the last reading had no room for.
    pub fn left_out(&self) -> usize {
        self.fresh().map_or(0, |reading| reading.texts.left_out)
    }

    /// Adds what there is to know about the collector at this moment.
    pub fn add_collector(&self, into: &mut Exposition) {
        let collector = [self.collector.clone()];
        let succeeded = *self.succeeded.lock().unwrap_or_else(PoisonError::into_inner);
        let since = succeeded.unwrap_or(self.started);
        into.own(COLLECTOR_AGE, &collector, since.elapsed().as_secs_f64());
        into.own(COLLECTOR_INTERVAL, &collector, self.interval.as_secs_f64());
        let fresh = self.fresh();
        into.own(
            COLLECTOR_SUCCESS,
            &collector,
            f64::from(u8::from(fresh.as_ref().is_some_and(|reading| reading.is_success))),
        );
        if let Some(took) = fresh.and_then(|reading| reading.took) {
            into.own(COLLECTOR_DURATION, &collector, took.as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roce_metrics::PORT_UP;

    const COLLECTOR: Label<'static> = ("collector", std::borrow::Cow::Borrowed("host"));

    fn texts(up: f64) -> Texts {
        let mut exposition = Exposition::default();
        exposition.own(PORT_UP, &[("device", "mlx5_0".into())], up);
        Texts::from(&exposition)
    }

    fn now(latest: &Latest) -> String {
        let mut now = Exposition::default();
        latest.add(&mut now);
        now.part(Format::Prometheus)
    }

    #[test]
    fn the_last_whole_reading_is_served_until_it_is_too_old() {
        let latest = Latest::new(COLLECTOR, Duration::from_millis(100));
        assert_eq!(latest.part(Format::Prometheus), "");
        assert!(now(&latest).contains("roce_collector_success{collector=\"host\"} 0\n"));
        latest.take(texts(1.0), None);
        latest.take(texts(0.0), Some(Duration::from_millis(250)));
        let part = latest.part(Format::Prometheus);
        assert!(part.ends_with("\nroce_port_up{device=\"mlx5_0\"} 0\n"), "{part}");
        assert!(now(&latest).contains("roce_collector_duration_seconds{collector=\"host\"} 0.25\n"));
        assert!(now(&latest).contains("roce_collector_success{collector=\"host\"} 1\n"));
        // A reading that hangs: its values vanish, its age goes on, and nobody says that it succeeds.
        std::thread::sleep(Duration::from_millis(320));
        assert_eq!(latest.part(Format::OpenMetrics), "");
        let now = now(&latest);
        assert!(
            now.contains("roce_collector_success{collector=\"host\"} 0\n"),
            "{now}"
        );
        let age = now
            .lines()
            .find_map(|line| line.strip_prefix("roce_collector_age_seconds{collector=\"host\"} "));
        assert!(age.unwrap().parse::<f64>().unwrap() > 0.3, "{now}");
    }

    #[test]
    fn a_reading_that_failed_is_served_and_its_age_goes_on() {
        let latest = Latest::new(COLLECTOR, Duration::from_mins(1));
        latest.take(texts(1.0), None);
        std::thread::sleep(Duration::from_millis(20));
        latest.take_outcome(texts(0.0), None, false);
        let part = latest.part(Format::Prometheus);
        assert!(part.ends_with("\nroce_port_up{device=\"mlx5_0\"} 0\n"), "{part}");
        let now = now(&latest);
        assert!(
            now.contains("roce_collector_success{collector=\"host\"} 0\n"),
            "{now}"
        );
        let age = now
            .lines()
            .find_map(|line| line.strip_prefix("roce_collector_age_seconds{collector=\"host\"} "));
        assert!(age.unwrap().parse::<f64>().unwrap() > 0.019, "{now}");
    }
}
