//! Clocks. An item: two taps in files of their own. Observable: both recorded packets of one flow, in both directions of
//! its connection. LossReport: a tap compared with another one; right when the offset lies within its uncertainty. A tap whose
//! stamps are late is as one whose clock is ahead by the mean of that. One whose clock is set has no single offset.

use crate::case::Case;
use crate::score::Score;

/// Packets of a connection that both must have recorded, in each direction.
const ENOUGH: u64 = 50;

pub(crate) fn compare(case: &Case, score: &mut Score) {
    let taps = &case.truth.taps;
    if taps.iter().any(|tap| !tap.clock_steps.is_empty()) {
        return;
    }
    for (place, tap) in taps.iter().enumerate() {
        for other in &taps[..place] {
            let shared = case.truth.connections.iter().any(|connection| {
                [&tap.name, &other.name].into_iter().all(|name| {
                    connection
                        .taps
                        .iter()
                        .any(|here| here.tap == *name && here.a_packets.min(here.b_packets) >= ENOUGH)
                })
            });
            let compared = case.clock_of(tap).name == other.name || case.clock_of(other).name == tap.name;
            if shared {
                score.expect(compared, || {
                    format!("{} and {} share packets", tap.name, other.name)
                });
            } else {
                score.hidden();
            }
        }
        let rows = case.seen.summary.taps.iter();
        let row = rows
            .filter(|row| row.input == tap.file)
            .find(|row| row.clock_offset_ns.is_some());
        if let Some(row) = row
            && let (Some(offset), Some(uncertainty)) = (row.clock_offset_ns, row.clock_uncertainty_ns)
        {
            let reference = case.clock_of(tap);
            let first = row.first_time.unwrap_or_default().0;
            // It is corrected: by the reference's clock.
            let time = i64::try_from(first).unwrap_or_default()
                - i64::try_from(case.truth.start_ns).unwrap_or_default()
                - reference.clock_offset_ns;
            let ahead = |tap: &roce_sim::truth::Tap| {
                let drift = i128::from(time) * i128::from(tap.clock_drift_ppb) / 1_000_000_000;
                let (least, most) = lateness(case, tap);
                i128::from(tap.clock_offset_ns) + drift + i128::from(least.midpoint(most))
            };
            #[expect(clippy::cast_precision_loss, reason = "a day in ns needs 47 bits")]
            let right = (ahead(tap) - ahead(reference)) as f64;
            // Stamps that are rounded down to a quantum are a clock that is behind by up to that.
            let rounded = case.quantum(tap).max(case.quantum(reference)) + spread(case, tap, reference);
            score.tell((right - offset).abs() <= uncertainty + rounded + 1.0, || {
                format!(
                    "{} is {right} ns ahead of {}, reported {offset} +- {uncertainty}",
                    tap.name, reference.name
                )
            });
        }
    }
}

/// By how much a tap's stamps are late at least and at most, in nanoseconds.
fn lateness(case: &Case, tap: &roce_sim::truth::Tap) -> (u64, u64) {
    let late = case.table(tap).and_then(|table| table.late);
    late.map_or((0, 0), |late| (late.from.nanos(), late.to.nanos()))
}

/// The largest of their distances from the mean.
#[expect(clippy::cast_precision_loss, reason = "500 us in ns need 19 bits")]
fn spread(case: &Case, tap: &roce_sim::truth::Tap, reference: &roce_sim::truth::Tap) -> f64 {
    let half = |tap| {
        let (least, most) = lateness(case, tap);
        (most - least) as f64 / 2.0
    };
    half(tap) + half(reference)
}
