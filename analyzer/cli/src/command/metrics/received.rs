//! Samples that came by OTLP, as metrics: the last one of each series.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use roce_endpoint::SampleReceiver;
use roce_metrics::{Exposition, Format};
use roce_model::Sample;

/// Series that are kept; samples of further ones are counted. It is also what one scrape has at most.
const MAX_SERIES: usize = 50_000;
/// A series of which nothing came for this time has no value any more: Prometheus' own limit of staleness.
const MAX_AGE: Duration = Duration::from_mins(5);

/// A text of all series is given again for this time where no sample came: many clients that request it cost no more than one.
const MAX_TEXT_AGE: Duration = Duration::from_secs(1);

/// The last sample of each series.
#[derive(Default)]
pub(super) struct ReceivedSamples {
    series: Mutex<ReceivedSeries>,
}

#[derive(Default)]
struct ReceivedSeries {
    /// By a hash of what names the series, whose keys nobody outside knows.
    last: HashMap<u64, (Sample, Instant)>,
    hash: RandomState,
    /// Samples that found no room.
    left_out: usize,
    /// The last text in each form, and when it was made.
    texts: Vec<(Format, Instant, String)>,
}

impl SampleReceiver for ReceivedSamples {
    fn take(&self, samples: Vec<Sample>) -> u64 {
        let now = Instant::now();
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let series = &mut *series;
        series.texts.clear();
        let before = series.left_out;
        for sample in samples {
            let name = (&sample.node, &sample.object, sample.counter);
            let place = (sample.priority, &sample.queue, &sample.details);
            let key = series.hash.hash_one((name, place));
            if series.last.len() >= MAX_SERIES && !series.last.contains_key(&key) {
                series.left_out += 1;
            } else if series
                .last
                .get(&key)
                .is_none_or(|(last, _)| last.time <= sample.time)
            {
                series.last.insert(key, (sample, now));
            }
        }
        (series.left_out - before) as u64
    }
}

impl ReceivedSamples {
    /// The text of all series that are not too old; older ones are forgotten.
    pub(super) fn part(&self, format: Format) -> String {
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        series.texts.retain(|(_, made, _)| made.elapsed() <= MAX_TEXT_AGE);
        if let Some((.., text)) = series.texts.iter().find(|(of, ..)| *of == format) {
            return text.clone();
        }
        series.last.retain(|_, (_, came)| came.elapsed() <= MAX_AGE);
        let mut exposition = Exposition::default();
        for (sample, _) in series.last.values() {
            exposition.add(sample);
        }
        let text = exposition.part(format);
        series.texts.push((format, Instant::now(), text.clone()));
        text
    }

    /// Number of samples that found no room.
    pub(super) fn left_out(&self) -> usize {
        self.series
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roce_model::{Counter, SampleSource, Time};

    fn sample(object: &str, seconds: u64, value: f64) -> Sample {
        Sample {
            time: Time(seconds * 1_000_000_000),
            source: SampleSource::Switch,
            node: "leaf1".into(),
            object: object.into(),
            counter: Counter::SwitchQueueDepth,
            priority: None,
            queue: Some("3".into()),
            details: vec!["port".into()],
            value,
            bits: 64,
        }
    }

    #[test]
    fn the_last_sample_of_each_series_is_a_metric() {
        let received = ReceivedSamples::default();
        received.take(vec![
            sample("swp1", 1, 5.0),
            sample("swp2", 1, 6.0),
            sample("swp1", 3, 7.0),
        ]);
        // One that came late does not take the place of a newer one.
        received.take(vec![sample("swp1", 2, 8.0)]);
        let text = received.part(Format::Prometheus);
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = |port: &str, value: u8| {
            format!(
                "roce_switch_queue_depth_bytes{{switch=\"leaf1\",interface=\"{port}\",queue=\"3\",kind=\"port\"}} {value}"
            )
        };
        assert_eq!(lines, [expected("swp1", 7), expected("swp2", 6)]);
    }

    #[test]
    fn series_have_a_bound() {
        let received = ReceivedSamples::default();
        let ports = (0..=MAX_SERIES).map(|port| sample(&format!("swp{port}"), 1, 1.0));
        assert_eq!(received.take(ports.collect()), 1);
        assert_eq!(received.left_out(), 1);
        // Those that have a place keep it.
        assert_eq!(received.take(vec![sample("swp0", 2, 9.0)]), 0);
        assert_eq!(received.left_out(), 1);
    }
}
