//! Counters that began again between two readings: the device restarted, a driver was loaded again, or somebody cleared them. Their growths.

use std::collections::BTreeMap;

use roce_model::{Counter, Sample, SampleKind, SystemStart};

/// Counters that were above 0 in the earlier reading, and those of them that fell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FallenCounters {
    pub(super) fell: usize,
    pub(super) all: usize,
}

impl FallenCounters {
    pub(super) fn add(&mut self, other: Self) {
        self.fell += other.fell;
        self.all += other.all;
    }
}

/// Restart of a device, and the counters that began again.
#[derive(Debug, Default)]
pub(super) struct Restart<'a> {
    /// Starts of the earlier reading and of the later one, where the device restarted between them.
    starts: Option<(SystemStart, SystemStart)>,
    /// By object and family of counters.
    groups: BTreeMap<(&'a str, &'static str), FallenCounters>,
}

/// Counters that one command clears together: those of a host's driver, and of a switch those with two equal first words.
fn family(counter: Counter) -> &'static str {
    let name = counter.name();
    if !name.starts_with("switch_") {
        return "";
    }
    let end = name.match_indices('_').nth(1).map_or(name.len(), |(at, _)| at);
    name.get(..end).unwrap_or(name)
}

/// True of numbers that are known to be counts: one without a common name may be a present value.
fn is_count(counter: Counter) -> bool {
    let is_unnamed = matches!(
        counter,
        Counter::PortHwCounter
            | Counter::PortOptionalCounter
            | Counter::NetdevStatistic
            | Counter::HypervisorNicStatistic
    );
    counter.kind() == SampleKind::Cumulative && !is_unnamed
}

impl<'a> Restart<'a> {
    pub(super) fn new(before: SystemStart, now: SystemStart) -> Self {
        Self {
            starts: now.is_restart_of(before).then_some((before, now)),
            groups: BTreeMap::new(),
        }
    }

    /// True if the device is known to have restarted.
    pub(super) fn is_known(&self) -> bool {
        self.starts.is_some()
    }

    /// Seconds since the restart; `None`: not known.
    pub(super) fn seconds(&self) -> Option<f64> {
        self.starts?.1.uptime.filter(|seconds| *seconds > 0.0)
    }

    /// Adds a counter that both readings have.
    pub(super) fn add(&mut self, sample: &'a Sample, before: f64, is_reset: bool) {
        if before > 0.0 && is_count(sample.counter) {
            let key = (&*sample.object, family(sample.counter));
            let group = self.groups.entry(key).or_default();
            group.all += 1;
            group.fell += usize::from(is_reset && sample.value < before);
        }
    }

    /// The growth of a sample, whose difference to the earlier reading is `rise`: since the restart, where there was one.
    pub(super) fn growth(&self, sample: &Sample, rise: Option<f64>) -> Option<f64> {
        let key = (&*sample.object, family(sample.counter));
        let group = self.groups.get(&key).copied().unwrap_or_default();
        let has_begun = group.fell > 0 && (self.is_known() || group.fell * 2 >= group.all);
        if !self.is_known() {
            return rise.filter(|_| !has_begun);
        }
        // Without a time, nothing can be said of what was counted since. A counter of an object that did not begin again has its
        // growth where it was 0.
        self.seconds()?;
        let is_cumulative = sample.counter.kind() == SampleKind::Cumulative;
        if has_begun && is_cumulative {
            Some(sample.value)
        } else {
            rise
        }
    }

    /// Starts of the earlier reading and of the later one, where the device restarted between them.
    pub(super) fn starts(&self) -> Option<(SystemStart, SystemStart)> {
        self.starts
    }

    /// Counters that fell, by object.
    pub(super) fn by_object(&self) -> BTreeMap<&'a str, FallenCounters> {
        let mut objects: BTreeMap<&str, FallenCounters> = BTreeMap::new();
        for ((object, _), group) in &self.groups {
            objects.entry(object).or_default().add(*group);
        }
        objects
    }
}
