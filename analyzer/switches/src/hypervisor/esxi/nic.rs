//! One adapter's numbers in a reading.

use roce_model::{Counter, Sample};

use crate::device::{Reading, Reason};

/// Adapters of one host that are read; the others are left out.
pub(super) const MAX_NICS: usize = 64;

/// The numbers of one adapter. The first number of a series stays: a later answer that repeats it is left out.
pub(super) struct Nic<'a> {
    name: &'a str,
    first: usize,
    reading: &'a mut Reading,
}

impl<'a> Nic<'a> {
    pub(super) fn new(name: &'a str, reading: &'a mut Reading) -> Self {
        Self {
            name,
            first: reading.samples.len(),
            reading,
        }
    }

    /// Numbers that this adapter has.
    pub(super) fn samples(&self) -> &[Sample] {
        self.reading.samples.get(self.first..).unwrap_or_default()
    }

    pub(super) fn has(&self, counter: Counter) -> bool {
        self.samples().iter().any(|sample| sample.counter == counter)
    }

    pub(super) fn push(&mut self, counter: Counter, value: f64) -> &mut Sample {
        self.reading.push(counter, self.name, value)
    }

    pub(super) fn push_detail(&mut self, counter: Counter, details: &[&'static str], value: f64) {
        self.push(counter, value).details = details.iter().map(|detail| (*detail).into()).collect();
    }

    pub(super) fn problem(&mut self, reason: Reason, command: &str, text: &str) {
        self.reading
            .problem(reason, command, format!("{}: {text}", self.name));
    }
}
