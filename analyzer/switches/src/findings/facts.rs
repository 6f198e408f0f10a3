//! A device's readings as rules need them: growth of counters, and settings by interface.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::{Counter, Sample, SampleKind};
use roce_rules::counters::Growths;

use crate::device::{QueueClass, Reading};
use crate::inventory::Cluster;

/// How much a counter counted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Amount {
    /// The count.
    pub(super) count: f64,
    /// Time between the two readings, 0: not known; `None`: a total since an unknown start.
    pub(super) seconds: Option<f64>,
    /// The device restarted between the readings: the time is that since then.
    pub(super) is_since_restart: bool,
}

impl Amount {
    pub(super) fn is_total(self) -> bool {
        self.seconds.is_none()
    }

    /// Count per second; `None` for totals, and for readings of one time.
    pub(super) fn rate(self) -> Option<f64> {
        self.seconds
            .filter(|seconds| *seconds > 0.0)
            .map(|seconds| self.count / seconds)
    }

    /// The time in words.
    pub(super) fn when(self) -> String {
        match self.seconds {
            None => "since the counters were cleared".to_owned(),
            Some(seconds) if self.is_since_restart => format!("in the {seconds:.1} s since the restart"),
            Some(seconds) if seconds > 0.0 => format!("in {seconds:.1} s"),
            // Nobody says when the recordings were made.
            Some(_) => "between the recordings".to_owned(),
        }
    }

    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.seconds = match (self.seconds, other.seconds) {
            (Some(own), Some(other)) => Some(own.max(other)),
            _ => None,
        };
    }
}

/// Two readings of a device, or one.
pub(super) struct Facts<'a> {
    pub(super) now: &'a Reading,
    pub(super) cluster: &'a Cluster,
    /// Amounts of the samples of `now`, in their order.
    amounts: Vec<Option<Amount>>,
    /// Positions of samples by counter.
    by_counter: BTreeMap<Counter, Vec<usize>>,
    /// Lossless queues by interface; those of all interfaces by the empty name.
    lossless: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Facts<'a> {
    /// Facts of `now`, whose samples grew by `growths`.
    pub(super) fn new(growths: &Growths<'_>, now: &'a Reading, cluster: &'a Cluster) -> Self {
        let amount = |(at, sample): (usize, &Sample)| {
            // A series that is new has no growth, nor has one that was reset.
            let count = growths.growth_at(at)?;
            (sample.counter.kind() == SampleKind::Cumulative).then(|| Amount {
                count,
                seconds: (!growths.is_total()).then(|| growths.seconds().unwrap_or(0.0)),
                is_since_restart: growths.is_since_restart(),
            })
        };
        let amounts = now.samples.iter().enumerate().map(amount).collect();
        let mut by_counter: BTreeMap<Counter, Vec<usize>> = BTreeMap::new();
        for (at, sample) in now.samples.iter().enumerate() {
            by_counter.entry(sample.counter).or_default().push(at);
        }
        let mut facts = Self {
            now,
            cluster,
            amounts,
            by_counter,
            lossless: BTreeMap::new(),
        };
        let mut lossless: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for sample in facts
            .of(Counter::SwitchQueueNoDrop)
            .filter(|sample| is_on(sample))
        {
            for interface in ["", &*sample.object] {
                lossless
                    .entry(interface)
                    .or_default()
                    .extend(sample.queue.as_deref());
            }
        }
        facts.lossless = lossless;
        facts
    }

    /// Samples of a counter.
    pub(super) fn of(&self, counter: Counter) -> impl Iterator<Item = &'a Sample> {
        let at = self.by_counter.get(&counter).into_iter().flatten();
        at.filter_map(|at| self.now.samples.get(*at))
    }

    /// Samples of a counter with their amounts, zero among them.
    pub(super) fn counted(&self, counter: Counter) -> impl Iterator<Item = (&'a Sample, Amount)> {
        let at = self.by_counter.get(&counter).into_iter().flatten();
        at.filter_map(|at| Some((self.now.samples.get(*at)?, (*self.amounts.get(*at)?)?)))
    }

    /// Sums of counters by object, over the samples that `keep` keeps.
    pub(super) fn by_object(
        &self,
        counters: &[Counter],
        keep: impl Fn(&Sample) -> bool,
    ) -> BTreeMap<&'a str, Amount> {
        let mut sums: BTreeMap<&str, Amount> = BTreeMap::new();
        for (sample, amount) in counters.iter().flat_map(|counter| self.counted(*counter)) {
            if keep(sample) {
                let sum = sums.entry(&*sample.object);
                sum.and_modify(|sum| sum.add(amount)).or_insert(amount);
            }
        }
        sums
    }

    /// Objects with a gauge of 1, each with the priorities that have it. Objects whose gauges are all 0 have an empty set.
    pub(super) fn priorities(&self, counter: Counter) -> BTreeMap<&'a str, BTreeSet<u8>> {
        let mut all: BTreeMap<&str, BTreeSet<u8>> = BTreeMap::new();
        for sample in self.of(counter) {
            let set = all.entry(&*sample.object).or_default();
            set.extend(sample.priority.filter(|_| is_on(sample)));
        }
        all
    }

    /// The queue of RoCE data: that of its DSCP, or the lossless one of an interface.
    pub(super) fn data_queue(&self, interface: &str) -> Option<String> {
        if let Some(queue) = self.now.queue_of_dscp.get(&self.cluster.dscp) {
            return Some(queue.clone());
        }
        let queues = self.lossless.get(interface)?;
        let priority = self.cluster.priority.to_string();
        if queues.contains(priority.as_str()) {
            return Some(priority);
        }
        let only = queues.first().filter(|_| queues.len() == 1);
        only.map(|queue| (*queue).to_owned())
    }

    /// The class of RoCE's data at an interface: that of its own policy, else that of the system's.
    pub(super) fn class_of(&self, interface: &str) -> Option<&'a QueueClass> {
        let queue = self.data_queue(interface).or_else(|| self.data_queue(""))?;
        let of = |name: &str| {
            let mut classes = self.now.classes.iter();
            classes.find(|class| class.interface == name && class.queue == queue)
        };
        if self.has_own_policy(interface) {
            of(interface)
        } else {
            of("")
        }
    }

    /// True of an interface with a queuing policy of its own.
    pub(super) fn has_own_policy(&self, interface: &str) -> bool {
        self.now.classes.iter().any(|class| class.interface == interface)
    }

    /// The classes of RoCE's data.
    pub(super) fn data_classes(&self) -> impl Iterator<Item = &'a QueueClass> {
        let classes = self.now.classes.iter();
        let queue_of_system = self.data_queue("");
        classes.filter(move |class| {
            let own = if class.interface.is_empty() {
                None
            } else {
                self.data_queue(&class.interface)
            };
            own.or_else(|| queue_of_system.clone())
                .is_some_and(|queue| queue == class.queue)
        })
    }
}

/// True for a gauge that is on.
pub(super) fn is_on(sample: &Sample) -> bool {
    sample.value > 0.5
}

/// The n-th detail of a sample.
pub(super) fn detail(sample: &Sample, at: usize) -> &str {
    sample.details.get(at).map_or("", AsRef::as_ref)
}

/// A list of numbers in words: `3 and 5`.
pub(super) fn listed(numbers: impl IntoIterator<Item = impl ToString>) -> String {
    let texts: Vec<String> = numbers.into_iter().map(|number| number.to_string()).collect();
    match texts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => texts.concat(),
    }
}
