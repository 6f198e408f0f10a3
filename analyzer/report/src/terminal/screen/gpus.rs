//! The line of GPUs on the screen: load of each, and the power of all, up to the selected interval.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use roce_model::{Columns, SampleColumns};

use super::super::grid::end_cut;
use super::super::ink::Ink;
use super::super::number::plural;
use super::super::style::Style;
use super::history::MAX_INTERVALS;

/// GPUs that are followed, at most: those of a rack.
const MAX_GPUS: usize = 128;
/// Reasons for held-down clocks that are usual at full load, or somebody's own setting (nvml.h, nvmlClocksEventReason*).
const USUAL_REASONS: [&str; 3] = [
    "sw_power_cap",
    "applications_clocks_setting",
    "display_clock_setting",
];

/// A GPU in one interval.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    load: Option<f64>,
    watts: Option<f64>,
    /// Its clocks are held down for a reason that is not usual.
    slowed: bool,
}

/// A GPU: its node, and the place of its name when names are sorted by length first, so that gpu10 follows gpu9.
type Name = (String, usize, String);

/// GPUs by interval.
#[derive(Debug, Default)]
pub(super) struct Gpus {
    seen: BTreeMap<u64, BTreeMap<Name, Seen>>,
}

impl Gpus {
    /// Takes rows of the table `samples`; an interval is `width` ns wide.
    pub(super) fn add(&mut self, rows: &SampleColumns, width: u64) {
        for row in 0..rows.len() {
            let text = |values: &roce_model::Values<std::borrow::Cow<'static, str>>| {
                values.at(row).map(ToString::to_string)
            };
            if rows.source.at(row).map(AsRef::as_ref) != Some("gpu") {
                continue;
            }
            let (Some(time), Some(value), Some(object)) =
                (rows.time.at(row), rows.value.at(row), text(&rows.object))
            else {
                continue;
            };
            let gpus = self.seen.entry(time / width.max(1)).or_default();
            let name = (text(&rows.node).unwrap_or_default(), object.len(), object);
            if gpus.len() >= MAX_GPUS && !gpus.contains_key(&name) {
                continue;
            }
            let seen = gpus.entry(name).or_default();
            match rows.counter.at(row).map_or("", AsRef::as_ref) {
                "gpu_utilization_ratio" => seen.load = Some(*value),
                "gpu_power_watts" => seen.watts = Some(*value),
                "gpu_throttled" if *value > 0.0 => {
                    let reason = text(&rows.detail).unwrap_or_default();
                    seen.slowed |= !USUAL_REASONS.contains(&reason.as_str());
                }
                _ => {}
            }
        }
        while self.seen.len() > MAX_INTERVALS {
            self.seen.pop_first();
        }
    }

    /// The line at an interval: of the last reading up to then; `None` where there was none.
    pub(super) fn line(&self, interval: u64, style: &Style) -> Option<String> {
        let (at, gpus) = self.seen.range(..=interval).next_back()?;
        let loads: Vec<String> = gpus
            .values()
            .map(|seen| {
                let load = seen
                    .load
                    .map_or_else(|| "-".to_owned(), |load| format!("{:.0}", load * 100.0));
                if seen.slowed {
                    Ink::Warn.paint(&format!("{load}!"))
                } else {
                    load
                }
            })
            .collect();
        let mut line = format!("gpus: {} %", loads.join(" "));
        let watts: Vec<f64> = gpus.values().filter_map(|seen| seen.watts).collect();
        if !watts.is_empty() {
            let _ = write!(line, ", {:.0} W", watts.iter().sum::<f64>());
        }
        if gpus.values().any(|seen| seen.slowed) {
            line.push_str(&Ink::Warn.paint(", ! clocks held down"));
        }
        let back = interval - at;
        if back > 1 {
            line.push_str(&Ink::Faint.paint(&format!(", {} ago", plural(back, "interval", "intervals"))));
        }
        Some(end_cut(&line, style.width, style.unicode))
    }
}
