//! The description of one metric.

/// How a metric's value moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetricKind {
    /// Only rises, but for resets; its series end in `_total`.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Counts of measurements by upper bounds; its series end in `_bucket`, `_sum` and `_count`.
    Histogram,
}

/// One metric: all its series have this name, help and kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Family {
    /// The name of the series, with `_total` for counters.
    pub name: String,
    /// How its value moves.
    pub kind: MetricKind,
    /// The meaning, in a sentence.
    pub help: &'static str,
}

impl Family {
    /// The name without `_total`: OpenMetrics' name of the family.
    pub fn base(&self) -> &str {
        match self.kind {
            MetricKind::Counter => self.name.strip_suffix("_total").unwrap_or(&self.name),
            MetricKind::Gauge | MetricKind::Histogram => &self.name,
        }
    }

    /// The base unit in the name, where it ends in one.
    pub fn unit(&self) -> Option<&'static str> {
        const UNITS: [&str; 9] = [
            "bytes", "seconds", "ratio", "celsius", "watts", "hertz", "joules", "packets", "frames",
        ];
        let last = self.base().rsplit('_').next()?;
        UNITS.into_iter().find(|unit| *unit == last)
    }
}
