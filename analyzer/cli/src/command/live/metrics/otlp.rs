//! Samples that came by OTLP, as notes in the stream: rows of the table `samples` beside the packets.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use roce_capture::live::Notes;
use roce_endpoint::SampleReceiver;
use roce_model::{Sample, SampleRow, SampleSeries};
use roce_pipeline::time_of_day;

use crate::output::messages;

/// The way of samples into the stream.
pub(super) struct StreamedSamples {
    notes: Notes,
    series: Mutex<SampleSeries>,
    /// Samples that found no room in the stream.
    lost: AtomicU64,
}

impl StreamedSamples {
    pub(super) fn new(notes: Notes) -> Self {
        Self {
            notes,
            series: Mutex::default(),
            lost: AtomicU64::new(0),
        }
    }
}

impl SampleReceiver for StreamedSamples {
    fn take(&self, samples: Vec<Sample>) -> u64 {
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = samples.iter().map(|sample| series.row(sample, None).encode());
        let bodies: Vec<Vec<u8>> = rows.collect();
        drop(series);
        if !bodies.is_empty() && !self.notes.add(time_of_day(), SampleRow::BLOCK, &bodies) {
            self.lost.fetch_add(bodies.len() as u64, Ordering::Relaxed);
            return bodies.len() as u64;
        }
        0
    }
}

impl Drop for StreamedSamples {
    fn drop(&mut self) {
        let lost = self.lost.load(Ordering::Relaxed);
        if lost > 0 {
            messages::warn("otlp", &format!("{lost} samples found no room in the stream"));
        }
    }
}
