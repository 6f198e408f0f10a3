//! Readings of each device at the start and at the end, for the rules about counters: shares of time paused, watchdogs, storms.

use std::collections::BTreeMap;
use std::sync::Arc;

use roce_model::{CounterChange, Sample, SystemStart};
use roce_rules::counters::{CounterReading, Growths, is_of_pauses, judge_pauses};

use super::document::JudgedPause;

/// Samples of all devices that are kept at the start; devices beyond are not judged.
const MAX_SAMPLES: usize = 1 << 18;

/// One reading of a device: the samples that rules about pauses need.
#[derive(Clone, Debug, Default)]
struct DeviceReading {
    samples: Vec<Sample>,
    start: SystemStart,
}

impl DeviceReading {
    fn reading(&self) -> CounterReading<'_> {
        CounterReading {
            samples: &self.samples,
            start: self.start,
        }
    }
}

/// First and last reading of a device.
#[derive(Debug, Default)]
struct DeviceReadings {
    first: DeviceReading,
    last: Option<DeviceReading>,
    /// The last reading is that behind the command's end.
    is_complete: bool,
}

/// The two readings of each device between which is judged.
#[derive(Debug, Default)]
pub(super) struct JudgedReadings {
    devices: BTreeMap<Arc<str>, DeviceReadings>,
    samples: usize,
    has_ended: bool,
    /// Devices that found no room.
    pub(super) left_out: u64,
}

impl JudgedReadings {
    /// Adds a reading of one device.
    pub(super) fn add(&mut self, node: &Arc<str>, samples: &[Sample], start: SystemStart) {
        let wanted = samples.iter().filter(|sample| is_of_pauses(sample.counter));
        let reading = DeviceReading {
            samples: wanted.cloned().collect(),
            start,
        };
        if let Some(device) = self.devices.get_mut(node) {
            if !device.is_complete {
                device.last = Some(reading);
                device.is_complete = self.has_ended;
            }
        } else if self.samples + reading.samples.len() <= MAX_SAMPLES {
            self.samples += reading.samples.len();
            let device = DeviceReadings {
                first: reading,
                ..DeviceReadings::default()
            };
            self.devices.insert(Arc::clone(node), device);
        } else {
            self.left_out += 1;
        }
    }

    /// The time that is judged begins with the last readings.
    pub(super) fn begin(&mut self) {
        for device in self.devices.values_mut() {
            if let Some(last) = device.last.take() {
                device.first = last;
            }
        }
    }

    /// Readings of a time that begins with the last ones.
    pub(super) fn next(mut self) -> Self {
        self.begin();
        self.has_ended = false;
        self.left_out = 0;
        for device in self.devices.values_mut() {
            device.is_complete = false;
        }
        self
    }

    /// The time that is judged ends with the next readings.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
    }

    /// True if a device was read twice and counts storms: those have no row.
    pub(super) fn has_changes(&self) -> bool {
        let lasts = self.devices.values().filter_map(|device| device.last.as_ref());
        let mut samples = lasts.flat_map(|last| &last.samples);
        samples.any(|sample| sample.counter.event() == Some(CounterChange::Storm))
    }

    /// The findings of all devices, the worst first.
    pub(super) fn found(&self) -> Vec<JudgedPause> {
        let mut all = Vec::new();
        for (node, device) in &self.devices {
            let Some(last) = &device.last else { continue };
            let growths = Growths::new(Some(device.first.reading()), last.reading(), &());
            all.extend(judge_pauses(&growths).into_iter().map(|finding| JudgedPause {
                node: node.to_string(),
                finding,
            }));
        }
        all.sort_by_key(|judged| std::cmp::Reverse(judged.finding.severity));
        all
    }
}
