//! Samples of one interface of SONiC, Arista EOS or Cumulus Linux.

use roce_model::Counter;

use crate::device::Reading;
use crate::switch::interface::{Interface, counted};

/// Place of a number inside an interface.
#[derive(Clone, Copy, Default)]
pub(super) struct PortPlace<'a> {
    /// The priority, 0 to 7.
    pub(super) priority: Option<u8>,
    /// The queue, or the priority group.
    pub(super) queue: Option<&'a str>,
    /// The value of the label behind `kind`, where the counter has one.
    pub(super) detail: Option<&'static str>,
}

impl<'a> PortPlace<'a> {
    /// A priority.
    pub(super) fn priority(priority: u8) -> Self {
        Self {
            priority: Some(priority),
            ..Self::default()
        }
    }

    /// A queue.
    pub(super) fn queue(queue: &'a str) -> Self {
        Self {
            queue: Some(queue),
            ..Self::default()
        }
    }

    /// The value of a label.
    pub(super) fn detail(detail: &'static str) -> Self {
        Self {
            detail: Some(detail),
            ..Self::default()
        }
    }

    /// This place with the value of a label.
    pub(super) fn with(self, detail: &'static str) -> Self {
        Self {
            detail: Some(detail),
            ..self
        }
    }
}

/// An interface that samples are added of.
pub(super) struct Port<'r> {
    reading: &'r mut Reading,
    name: String,
    kind: &'static str,
}

impl<'r> Port<'r> {
    /// The interface of this name in the device's spelling; `None` if its numbers are not part of a reading.
    pub(super) fn new(reading: &'r mut Reading, name: &str) -> Option<Self> {
        Some(Self::of(reading, counted(name)?))
    }

    /// As [`Self::new`], of a system whose names are not listed here.
    pub(super) fn other(reading: &'r mut Reading, name: &str) -> Option<Self> {
        let interface = Interface::parse(name).filter(|interface| interface.kind.is_counted())?;
        Some(Self::of(reading, interface))
    }

    fn of(reading: &'r mut Reading, interface: Interface) -> Self {
        Self {
            reading,
            name: interface.name,
            kind: interface.kind.label(),
        }
    }

    /// Adds a number, if it is known.
    pub(super) fn put(&mut self, counter: Counter, place: PortPlace<'_>, value: Option<f64>) {
        let Some(value) = value else {
            return;
        };
        let sample = self.reading.push(counter, &self.name, value);
        sample.priority = place.priority;
        sample.queue = place.queue.map(Into::into);
        sample.details.push(self.kind.into());
        sample.details.extend(place.detail.map(Into::into));
        debug_assert_eq!(sample.details.len(), counter.labels().len(), "{}", counter.name());
    }

    /// Notes that PFC's watchdog keeps a queue shut, if its state says so (SONiC, `orchagent/pfcactionhandler.cpp`).
    pub(super) fn put_watchdog_state(&mut self, queue: &str, state: &str) {
        if state == "stormed" {
            let stormed = (self.name.clone(), queue.to_owned());
            self.reading.stormed_queues.insert(stormed);
        }
    }

    /// Adds PFC frames of priorities, and their sum: the total of a switch that counts by priority alone.
    pub(super) fn put_pfc(&mut self, received: &[Option<u64>; 8], transmitted: &[Option<u64>; 8]) {
        let all = [
            (
                Counter::SwitchPriorityPfcReceivedFrames,
                Counter::SwitchPfcReceivedFrames,
                received,
            ),
            (
                Counter::SwitchPriorityPfcTransmittedFrames,
                Counter::SwitchPfcTransmittedFrames,
                transmitted,
            ),
        ];
        for (by_priority, total, values) in all {
            for (priority, value) in (0u8..).zip(values) {
                self.put(
                    by_priority,
                    PortPlace::priority(priority),
                    value.map(roce_model::value_of),
                );
            }
            let known = values.iter().flatten().copied();
            let sum = known.reduce(u64::saturating_add);
            self.put(total, PortPlace::default(), sum.map(roce_model::value_of));
        }
    }
}
