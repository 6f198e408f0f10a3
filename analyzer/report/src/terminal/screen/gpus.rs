//! GPUs on the screen, up to the selected interval: a line with the load of each and the power of all, and a page with a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use roce_model::{Columns, SampleColumns};

use super::super::grid::{Column, end_cut, lay};
use super::super::ink::{Ink, clean};
use super::super::style::Style;
use super::history::MAX_INTERVALS;
use roce_spelling::{ABSENT, plural, rate_of};

/// GPUs that are followed, at most: those of a rack.
const MAX_GPUS: usize = 128;
/// Reasons for held-down clocks that are usual at full load, or somebody's own setting (nvml.h, nvmlClocksEventReason*).
const USUAL_REASONS: [&str; 3] = [
    "sw_power_cap",
    "applications_clocks_setting",
    "display_clock_setting",
];

/// Rates of links: of PCIe, and of NVLink.
const LINKS: [&str; 2] = ["gpu_pcie_bytes_per_second", "gpu_nvlink_bytes_per_second"];

/// A GPU in one interval.
#[derive(Clone, Copy, Debug, Default)]
struct GpuInterval {
    load: Option<f64>,
    watts: Option<f64>,
    memory: Option<f64>,
    /// Temperature of the GPU itself, in degrees Celsius.
    heat: Option<f64>,
    /// Clock rate of its multiprocessors, in Hz.
    clock: Option<f64>,
    /// Bytes a second over PCIe and over NVLink, both directions together.
    links: [Option<f64>; 2],
    /// The directions that are in these: received, sent.
    directions: [(bool, bool); 2],
    /// Its clocks are held down for a reason that is not usual.
    slowed: bool,
}

/// A GPU: its node, and the place of its name when names are sorted by length first, so that gpu10 follows gpu9.
type Name = (String, usize, String);

/// GPUs by interval.
#[derive(Debug, Default)]
pub(super) struct Gpus {
    seen: BTreeMap<u64, BTreeMap<Name, GpuInterval>>,
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
            let is_detail = |word: &str| rows.detail.at(row).map(AsRef::as_ref) == Some(word);
            match rows.counter.at(row).map_or("", AsRef::as_ref) {
                "gpu_utilization_ratio" => seen.load = Some(*value),
                "gpu_power_watts" => seen.watts = Some(*value),
                "gpu_memory_used_bytes" => seen.memory = Some(*value),
                "gpu_temperature_celsius" if is_detail("gpu") => seen.heat = Some(*value),
                "gpu_clock_hertz" if is_detail("sm") => seen.clock = Some(*value),
                name if LINKS.contains(&name) => {
                    let place = usize::from(name == LINKS[1]);
                    // Each direction once in a reading; of several readings in the interval, the first.
                    let directions = &mut seen.directions[place];
                    let is_new = !directions.0 && is_detail("received") || !directions.1 && is_detail("sent");
                    if is_new {
                        directions.0 |= is_detail("received");
                        directions.1 |= is_detail("sent");
                        seen.links[place] = Some(seen.links[place].unwrap_or(0.0) + value);
                    }
                }
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

    /// The last reading up to an interval, and the interval that it is of.
    fn at(&self, interval: u64) -> Option<(u64, Vec<(&Name, &GpuInterval)>)> {
        let (at, gpus) = self.seen.range(..=interval).next_back()?;
        Some((*at, gpus.iter().collect()))
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

    /// The page of GPUs: a table of the last reading up to the selected interval.
    pub(super) fn page(&self, interval: u64, style: &Style) -> Vec<String> {
        let Some((at, gpus)) = self.at(interval) else {
            let text = "no GPU was read: `live --gpus` reads those of this host";
            return vec![Ink::Bold.paint("GPUs"), end_cut(text, style.width, style.unicode)];
        };
        let back = interval.saturating_sub(at);
        let head = if back > 1 {
            format!("GPUs, {} ago", plural(back, "interval", "intervals"))
        } else {
            "GPUs".to_owned()
        };
        let number = |value: Option<f64>, factor: f64| {
            value.map_or_else(|| ABSENT.to_owned(), |value| format!("{:.0}", value * factor))
        };
        let rate = |value: Option<f64>| value.map_or_else(|| ABSENT.to_owned(), |value| rate_of(value * 8.0));
        let of_nodes = gpus.first().map(|((node, ..), _)| node) != gpus.last().map(|((node, ..), _)| node);
        let name = |(node, _, object): &Name| {
            if of_nodes {
                clean(&format!("{node} {object}"))
            } else {
                clean(object)
            }
        };
        let slowed = |seen: &GpuInterval| {
            if seen.slowed {
                Ink::Warn.paint("held down")
            } else {
                String::new()
            }
        };
        let columns = vec![
            Column::new("GPU", false, 0, &gpus, |(key, _)| name(key)),
            Column::new("LOAD %", true, 0, &gpus, |(_, seen)| number(seen.load, 100.0)),
            Column::new("MEM GiB", true, 1, &gpus, |(_, seen)| {
                number(seen.memory, 1.0 / 1_073_741_824.0)
            }),
            Column::new("W", true, 1, &gpus, |(_, seen)| number(seen.watts, 1.0)),
            Column::new("C", true, 2, &gpus, |(_, seen)| number(seen.heat, 1.0)),
            Column::new("MHz", true, 2, &gpus, |(_, seen)| number(seen.clock, 1e-6)),
            Column::new("PCIe", true, 3, &gpus, |(_, seen)| rate(seen.links[0])).unless_zero(),
            Column::new("NVLINK", true, 3, &gpus, |(_, seen)| rate(seen.links[1])).unless_zero(),
            Column::new("CLOCKS", false, 1, &gpus, |(_, seen)| slowed(seen)).unless_zero(),
        ];
        let mut lines = vec![Ink::Bold.paint(&head)];
        lines.extend(lay(columns, None, style));
        lines
    }
}
