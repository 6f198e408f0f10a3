//! The metrics: those of samples, named after their counters, and those about the program itself.

use roce_model::{Counter, SampleKind};

use crate::family::{Family, MetricKind};

/// What all names begin with.
const PREFIX: &str = "roce_";

/// The metric of a counter: `roce_`, its name, and `_total` where it only rises.
pub fn family_of(counter: Counter) -> Family {
    let (kind, end) = match counter.kind() {
        SampleKind::Cumulative => (MetricKind::Counter, "_total"),
        SampleKind::Gauge => (MetricKind::Gauge, ""),
    };
    Family {
        name: format!("{PREFIX}{}{end}", counter.name()),
        kind,
        help: counter.meaning(),
    }
}

/// A metric about the program itself: name, kind and meaning.
pub type Own = (&'static str, MetricKind, &'static str);

/// 1, with the program's version.
pub const BUILD_INFO: Own = (
    "roce_build_info",
    MetricKind::Gauge,
    "1, with the version of the program.",
);
/// 1 if a collector's last reading succeeded.
pub const COLLECTOR_SUCCESS: Own = (
    "roce_collector_success",
    MetricKind::Gauge,
    "1 if the collector's last reading gave values, 0 if it failed.",
);
/// How long a reading took.
pub const COLLECTOR_DURATION: Own = (
    "roce_collector_duration_seconds",
    MetricKind::Gauge,
    "How long the collector's last reading took.",
);
/// Series that found no room.
pub const SERIES_LEFT_OUT: Own = (
    "roce_series_left_out",
    MetricKind::Gauge,
    "Series that were left out because there are too many.",
);
/// All metrics about the program itself.
pub const OWN: [Own; 4] = [BUILD_INFO, COLLECTOR_SUCCESS, COLLECTOR_DURATION, SERIES_LEFT_OUT];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules_of_prometheus() {
        let own = OWN.map(|(name, kind, help)| Family {
            name: name.to_owned(),
            kind,
            help,
        });
        for family in Counter::ALL.iter().map(|counter| family_of(*counter)).chain(own) {
            let is_total = family.name.ends_with("_total");
            assert_eq!(is_total, family.kind == MetricKind::Counter, "{}", family.name);
            assert!(family.help.ends_with('.'), "{}: {}", family.name, family.help);
        }
    }

    #[test]
    fn times_and_data_are_in_base_units() {
        for counter in Counter::ALL {
            let expected = match counter.unit() {
                "s" => "_seconds",
                "bytes" => "_bytes",
                "ratio" => "_ratio",
                _ => continue,
            };
            let family = family_of(*counter);
            assert!(family.base().ends_with(expected), "{}", family.name);
        }
    }
}
