//! Growths of counters between two readings of one host or device.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::{Counter, Sample, SampleKind, SampleSeries, SystemStart, repeated};
use roce_spelling::decimal;

use super::restart::Restart;

/// One reading of a host or device.
#[derive(Clone, Copy, Debug)]
pub struct CounterReading<'a> {
    /// Its numbers.
    pub samples: &'a [Sample],
    /// When the machine started, where a recording says it; of a switch its samples do. Uptimes have the time between two recordings.
    pub start: SystemStart,
}

impl CounterReading<'_> {
    fn start(&self) -> SystemStart {
        if self.start == SystemStart::default() {
            SystemStart::from_samples(self.samples)
        } else {
            self.start
        }
    }
}

/// Facts about links that counters do not have.
pub trait LinkFacts {
    /// Rate of an object's link in bit/s; `None`: not known.
    fn bits_per_second(&self, _object: &str) -> Option<f64> {
        None
    }

    /// The highest rate at which an object counts, per second; `None`: not known.
    fn max_per_second(&self, _object: &str) -> Option<f64> {
        None
    }

    /// The RDMA port of a network interface, as samples name it (`mlx5_0:1`); `None`: not known.
    fn port_of(&self, _interface: &str) -> Option<String> {
        None
    }
}

/// Nothing is known but what samples say.
impl LinkFacts for () {}

/// Growths of all counters, and the states of the later reading.
pub struct Growths<'a> {
    samples: &'a [Sample],
    /// Growth of each sample; `None`: a gauge, a counter that is new, that began again, or whose change is not known.
    rises: Vec<Option<f64>>,
    /// Positions of samples by counter and object.
    by_counter: BTreeMap<Counter, BTreeMap<&'a str, Vec<usize>>>,
    seconds: Option<f64>,
    restart: Restart<'a>,
    is_total: bool,
    /// Rates of objects in bit/s.
    rates: BTreeMap<&'a str, f64>,
    /// Interfaces of a switch that were up or down in the earlier reading and are not so now.
    turned: Vec<(&'a str, bool)>,
    links: &'a dyn LinkFacts,
}

impl<'a> Growths<'a> {
    /// Growths from `before` to `now`; without `before` the totals.
    ///
    /// Readings whose times are equal are recordings: their time is that of the uptimes, or not known. Behind a restart growths are those
    /// since it.
    pub fn new(
        before: Option<CounterReading<'_>>,
        now: CounterReading<'a>,
        links: &'a dyn LinkFacts,
    ) -> Self {
        let starts = before.map(|before| (before.start(), now.start()));
        let mut series = SampleSeries::default();
        let mut was_up = BTreeMap::new();
        if let Some(before) = &before {
            let repeats = repeated(before.samples);
            for (sample, _) in before.samples.iter().zip(repeats).filter(|(_, repeat)| !repeat) {
                series.row(sample, links.max_per_second(&sample.object));
                if sample.counter == Counter::SwitchInterfaceUp && is_port(sample) {
                    was_up.insert(&*sample.object, sample.value > 0.5);
                }
            }
        }
        let mut restart = starts.map_or_else(Restart::default, |(before, now)| Restart::new(before, now));
        if let Some(sample) = now.samples.first().filter(|_| restart.is_known()) {
            series.restart(&sample.node);
        }
        let mut seconds: Option<f64> = None;
        let mut rises = Vec::with_capacity(now.samples.len());
        let mut by_counter: BTreeMap<Counter, BTreeMap<&str, Vec<usize>>> = BTreeMap::new();
        let mut rates = BTreeMap::new();
        let mut turned = Vec::new();
        for ((at, sample), repeat) in now.samples.iter().enumerate().zip(repeated(now.samples)) {
            if repeat {
                rises.push(None);
                continue;
            }
            let is_up = sample.value > 0.5;
            if sample.counter == Counter::SwitchInterfaceUp
                && was_up.get(&*sample.object).is_some_and(|was_up| *was_up != is_up)
            {
                turned.push((&*sample.object, is_up));
            }
            by_counter
                .entry(sample.counter)
                .or_default()
                .entry(&*sample.object)
                .or_default()
                .push(at);
            if let Some(rate) = rate_of(sample).or_else(|| links.bits_per_second(&sample.object)) {
                rates.insert(&*sample.object, rate);
            }
            if before.is_none() {
                rises.push((sample.counter.kind() == SampleKind::Cumulative).then_some(sample.value));
                continue;
            }
            let value_before = series.last_value(sample);
            let row = series.row(sample, links.max_per_second(&sample.object));
            let between = row
                .interval_ns
                .map(|interval| roce_model::Span(interval).seconds());
            let between = between.filter(|between| *between > 0.0);
            seconds = between.map_or(seconds, |between| Some(seconds.unwrap_or(0.0).max(between)));
            if let Some(before) = value_before {
                restart.add(sample, before, row.reset);
            }
            rises.push(row.change.filter(|_| !row.reset));
        }
        let by_uptime = starts
            .and_then(|(before, now)| Some(now.uptime? - before.uptime?))
            .filter(|between| *between > 0.0);
        seconds = seconds.or(by_uptime);
        if restart.is_known() {
            seconds = restart.seconds();
        }
        for (sample, rise) in now.samples.iter().zip(&mut rises) {
            *rise = restart.growth(sample, *rise);
        }
        Self {
            samples: now.samples,
            rises,
            by_counter,
            seconds,
            restart,
            is_total: before.is_none(),
            rates,
            turned,
            links,
        }
    }

    /// Interfaces of a switch whose state is another one than before, and whether they are up now.
    pub(super) fn turned(&self) -> &[(&'a str, bool)] {
        &self.turned
    }

    /// True if an interface is known to be that of an RDMA port.
    pub(super) fn belongs(&self, interface: &str, port: &str) -> bool {
        self.links.port_of(interface).is_some_and(|owner| owner == port)
    }

    /// True if an interface is, or may be, that of an RDMA port.
    pub(super) fn may_belong(&self, interface: &str, port: &str) -> bool {
        self.links.port_of(interface).is_none_or(|owner| owner == port)
    }

    /// True of one reading: growths are totals since an unknown start.
    pub fn is_total(&self) -> bool {
        self.is_total
    }

    /// Growth of the sample at a position of the later reading; `None`: it is not known.
    pub fn growth_at(&self, at: usize) -> Option<f64> {
        self.rises.get(at).copied().flatten()
    }

    /// True if the device restarted between the readings: growths are those since then.
    pub fn is_since_restart(&self) -> bool {
        self.restart.is_known()
    }

    /// Counters that began again between the readings.
    pub(super) fn restart(&self) -> &Restart<'a> {
        &self.restart
    }

    /// Seconds between the readings, or since a restart between them; `None`: not known.
    pub fn seconds(&self) -> Option<f64> {
        self.seconds
    }

    /// The time in words.
    pub fn when(&self) -> String {
        match self.seconds {
            _ if self.is_total => "since the counters were cleared".to_owned(),
            Some(seconds) if self.restart.is_known() => format!("in the {seconds:.1} s since the restart"),
            Some(seconds) => format!("in {seconds:.1} s"),
            None => "between the recordings".to_owned(),
        }
    }

    /// Positions of a counter's samples, of one object or of all.
    fn positions(&self, counter: Counter, object: Option<&str>) -> impl Iterator<Item = usize> {
        let objects = self.by_counter.get(&counter);
        let one = object.map(|object| objects.and_then(|all| all.get(object)));
        let all = objects
            .filter(|_| object.is_none())
            .into_iter()
            .flat_map(BTreeMap::values);
        one.flatten().into_iter().chain(all).flatten().copied()
    }

    /// Samples of a counter with their growths; unknown growths are left out.
    pub(super) fn of(&self, counter: Counter) -> impl Iterator<Item = (&'a Sample, f64)> {
        self.grown(self.positions(counter, None))
    }

    /// As [`of`](Self::of), of one object.
    pub(super) fn of_object(
        &self,
        counter: Counter,
        object: &str,
    ) -> impl Iterator<Item = (&'a Sample, f64)> {
        self.grown(self.positions(counter, Some(object)))
    }

    fn grown(&self, at: impl Iterator<Item = usize>) -> impl Iterator<Item = (&'a Sample, f64)> {
        at.filter_map(|at| Some((self.samples.get(at)?, self.growth_at(at)?)))
    }

    /// Samples of a counter, gauges and others.
    pub(super) fn states(&self, counter: Counter) -> impl Iterator<Item = &'a Sample> {
        self.positions(counter, None)
            .filter_map(|at| self.samples.get(at))
    }

    /// The sum of a counter over an object's priorities, queues and details; `None`: it has none of it, or a part is not known.
    pub(super) fn sum(&self, counter: Counter, object: &str) -> Option<f64> {
        let growths = self.positions(counter, Some(object)).map(|at| self.growth_at(at));
        growths.reduce(|sum, growth| Some(sum? + growth?)).flatten()
    }

    /// The sum of several counters of an object; what it does not have counts nothing. `None`: it has none of them.
    pub(super) fn sum_of(&self, counters: &[Counter], object: &str) -> Option<f64> {
        let sums = counters.iter().filter_map(|counter| self.sum(*counter, object));
        sums.reduce(|sum, other| sum + other)
    }

    /// Objects that have one of these counters, in order.
    pub(super) fn objects(&self, counters: &[Counter]) -> BTreeSet<&'a str> {
        let samples = counters.iter().flat_map(|counter| self.states(*counter));
        samples.map(|sample| &*sample.object).collect()
    }

    /// Objects at which a counter rose, in order, and by how much over all its parts.
    pub(super) fn risen(&self, counter: Counter) -> impl Iterator<Item = (&'a str, f64)> {
        let objects = self.objects(&[counter]).into_iter();
        objects.filter_map(move |object| {
            let growth = self.sum(counter, object)?;
            (growth > 0.0).then_some((object, growth))
        })
    }

    /// Rate of an object's link in bit/s.
    pub(super) fn rate(&self, object: &str) -> Option<f64> {
        self.rates.get(object).copied().filter(|rate| *rate > 0.0)
    }

    /// A growth per second; `None`: the time is not known.
    pub(super) fn per_second(&self, growth: f64) -> Option<f64> {
        self.seconds
            .filter(|_| !self.is_total)
            .map(|seconds| growth / seconds)
    }
}

/// The rate that a sample states, in bit/s.
fn rate_of(sample: &Sample) -> Option<f64> {
    matches!(
        sample.counter,
        Counter::SwitchInterfaceRate | Counter::HypervisorNicRate
    )
    .then_some(sample.value * 8.0)
}

/// Internal links of a switch and bundles of ports are not judged: a bundle repeats its ports.
pub(super) fn is_port(sample: &Sample) -> bool {
    let is_switch = sample.counter.labels().first() == Some(&"kind");
    !is_switch || sample.details.first().is_none_or(|kind| kind == "port")
}

/// A share in words: `21.7 %`.
pub(super) fn share_text(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 10.0 {
        format!("{percent:.1} %")
    } else if percent >= 0.01 {
        format!("{percent:.2} %")
    } else if percent >= 0.0001 {
        format!("{percent:.4} %")
    } else {
        "less than 0.0001 %".to_owned()
    }
}

/// A time in words: `2.17 s`.
pub(super) fn seconds_text(seconds: f64) -> String {
    if seconds >= 0.01 {
        format!("{seconds:.2} s")
    } else {
        format!("{} us", decimal((seconds * 1e6).round()))
    }
}
