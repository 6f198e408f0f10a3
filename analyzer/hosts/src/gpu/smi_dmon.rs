//! nvidia-smi dmon: columns under a header of names and one of units, both with `#`. A cell `-` is absent.

use roce_model::Counter;

use super::reading::{Gpus, mebibytes, megabytes, megahertz, number, percent, plain};

/// A column: its name, the quantity, its label, and the unit.
type Column = (&'static str, Counter, Option<&'static str>, fn(f64) -> f64);

/// The columns that are read. Of `-s t`, MB/s are over the last 20 ms (nvmlDeviceGetPcieThroughput).
const COLUMNS: [Column; 10] = [
    ("pwr", Counter::GpuPower, None, plain),
    ("gtemp", Counter::GpuTemperature, Some("gpu"), plain),
    ("mtemp", Counter::GpuTemperature, Some("memory"), plain),
    ("sm", Counter::GpuUtilization, None, percent),
    ("mem", Counter::GpuMemoryUtilization, None, percent),
    ("mclk", Counter::GpuClock, Some("memory"), megahertz),
    ("pclk", Counter::GpuClock, Some("sm"), megahertz),
    ("fb", Counter::GpuMemoryUsed, None, mebibytes),
    ("rxpci", Counter::GpuPcieRate, Some("received"), megabytes),
    ("txpci", Counter::GpuPcieRate, Some("sent"), megabytes),
];

/// The GPUs of a text: each with its last line.
pub(super) fn parse(text: &str) -> Gpus {
    let mut all = Gpus::default();
    let mut names: Vec<&str> = Vec::new();
    for line in text.lines() {
        if let Some(head) = line.strip_prefix('#') {
            let words: Vec<&str> = head.split_whitespace().collect();
            // The second header has the units, which are always the same.
            if words.first() == Some(&"gpu") {
                names = words;
            }
            continue;
        }
        let cells: Vec<&str> = line.split_whitespace().collect();
        if cells.is_empty() {
            continue;
        }
        if cells.len() != names.len() {
            all.note("a line has other columns than expected");
            continue;
        }
        let Some(gpu) = cells
            .first()
            .and_then(|index| index.parse::<u32>().ok())
            .and_then(|index| all.gpu(&format!("gpu{index}")))
        else {
            all.note("a line does not begin with the index of a GPU");
            continue;
        };
        gpu.values.clear();
        for (name, cell) in names.iter().zip(&cells) {
            let column = COLUMNS.iter().find(|(known, ..)| known == name);
            if let Some((_, counter, detail, unit)) = column {
                gpu.put(*counter, *detail, number(cell).map(unit));
            }
        }
    }
    all
}
