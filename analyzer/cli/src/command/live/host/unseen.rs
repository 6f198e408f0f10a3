//! A probe's report before a run: what it will not see, and how well it knows the time.

use roce_probe::{Probe, SkippedPoint, UNSEEN};

use crate::output::messages;

/// Prefix of all messages of the probe.
pub(super) const PROBE: &str = "probe";
/// Nanoseconds of a second.
const NANOS: i64 = 1_000_000_000;

/// Says what the probe will not see, and how well it knows the time.
pub(super) fn tell(probe: &Probe, skipped: &[SkippedPoint]) {
    for (reason, points) in by_reason(skipped) {
        let names: Vec<&str> = points.iter().map(|skipped| skipped.point).collect();
        let unseen: Vec<&str> = points.iter().map(|skipped| skipped.unseen).collect();
        let text = format!(
            "not attached: {}: {reason}; not seen: {}",
            names.join(", "),
            unseen.join(", ")
        );
        messages::warn(PROBE, &text);
    }
    for unseen in UNSEEN {
        messages::note(PROBE, &format!("not seen: {unseen}"));
    }
    let clock = probe.clock();
    let (seconds, nanos) = (clock.nanos / NANOS, (clock.nanos % NANOS).abs());
    let text = format!(
        "the kernel's times are moved by {seconds}.{nanos:09} s to the capture's clock, within {} ns",
        clock.uncertainty.0
    );
    messages::note(PROBE, &text);
}

/// Points that could not be attached, grouped by reason.
fn by_reason(skipped: &[SkippedPoint]) -> Vec<(&str, Vec<&SkippedPoint>)> {
    let mut groups: Vec<(&str, Vec<&SkippedPoint>)> = Vec::new();
    for point in skipped {
        match groups.iter_mut().find(|(reason, _)| *reason == point.reason) {
            Some((_, points)) => points.push(point),
            None => groups.push((&point.reason, vec![point])),
        }
    }
    groups
}
