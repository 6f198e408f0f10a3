//! nvidia-smi --query-gpu=... --format=csv, with and without header and units.

use roce_model::Counter;

use super::reading::{
    DRIVER_SILENT, Gpus, mebibytes, megahertz, number, pci_address, percent, plain, says_lost, word,
};

/// Columns that are requested, and that a text without header has.
pub const QUERY: [&str; 18] = [
    "index",
    "uuid",
    "name",
    "pci.bus_id",
    "utilization.gpu",
    "utilization.memory",
    "memory.used",
    "memory.total",
    "temperature.gpu",
    "temperature.memory",
    "power.draw",
    "enforced.power.limit",
    "clocks.sm",
    "clocks.mem",
    "clocks_event_reasons.active",
    "pcie.link.gen.gpucurrent",
    "pcie.link.width.current",
    "ecc.errors.uncorrected.volatile.total",
];

/// The columns without one that the driver does not have. `reply` is nvidia-smi's: `Field "NAME" is not a valid field to query.`
/// Older drivers call the reasons `clocks_throttle_reasons.active`. `None`: the reply names no column.
pub fn csv_columns(columns: &[&'static str], reply: &str) -> Option<Vec<&'static str>> {
    let name = reply.split("Field \"").nth(1)?.split('"').next()?;
    let place = columns.iter().position(|column| *column == name)?;
    let mut others = columns.to_vec();
    if name == "clocks_event_reasons.active" {
        others[place] = "clocks_throttle_reasons.active";
    } else {
        others.remove(place);
    }
    Some(others)
}

/// The GPUs of a text: each with its last line.
pub(super) fn parse(text: &str, columns: &[&str]) -> Gpus {
    let mut all = Gpus::default();
    let mut columns: Vec<String> = columns.iter().map(|column| (*column).to_owned()).collect();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.starts_with("NVIDIA-SMI has failed") {
            all.note(DRIVER_SILENT);
            continue;
        }
        // `Unable to determine the device handle for GPU0000:86:00.0: GPU is lost.`
        if let Some(rest) = line.strip_prefix("Unable to determine the device handle for GPU") {
            let address = rest.trim().split(": ").next().and_then(pci_address);
            let object = address.clone().unwrap_or_else(|| "unknown".to_owned());
            if let Some(gpu) = all.gpu(&format!("gpu {object}")) {
                gpu.pci_address = address;
                gpu.is_lost = true;
            }
            continue;
        }
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.iter().any(|cell| *cell == "uuid" || *cell == "index") {
            // `memory.used [MiB]`: the unit is not a part of the name.
            columns = cells
                .iter()
                .map(|cell| cell.split(" [").next().unwrap_or_default().to_owned())
                .collect();
            continue;
        }
        if cells.len() != columns.len() || columns.is_empty() {
            all.note("a line has other columns than expected");
            continue;
        }
        row(&mut all, &columns, &cells);
    }
    all
}

fn row(all: &mut Gpus, columns: &[String], cells: &[&str]) {
    let cell = |names: &[&str]| {
        let place = columns
            .iter()
            .position(|column| names.contains(&column.as_str()))?;
        cells.get(place).copied()
    };
    let text = |names: &[&str]| cell(names).and_then(word);
    let value = |names: &[&str]| cell(names).and_then(number);
    let uuid = text(&["uuid", "gpu_uuid"]);
    let Some(object) = value(&["index"])
        .map(|index| format!("gpu{index}"))
        .or_else(|| uuid.clone())
    else {
        all.note("a line has neither the index nor the UUID of its GPU");
        return;
    };
    let is_lost = cells.iter().any(|cell| says_lost(cell));
    let Some(gpu) = all.gpu(&object) else { return };
    // The last reading alone counts: what it does not say is not known now.
    gpu.values.clear();
    gpu.throttled = None;
    gpu.uuid = uuid;
    gpu.name = text(&["name", "gpu_name"]);
    gpu.pci_address = cell(&["pci.bus_id", "gpu_bus_id"]).and_then(pci_address);
    gpu.is_lost = is_lost;
    for (counter, detail, names, unit) in [
        (
            Counter::GpuUtilization,
            None,
            &["utilization.gpu", "utilization.aip"][..],
            percent as fn(f64) -> f64,
        ),
        (
            Counter::GpuMemoryUtilization,
            None,
            &["utilization.memory"],
            percent,
        ),
        (Counter::GpuMemoryUsed, None, &["memory.used"], mebibytes),
        (Counter::GpuMemoryTotal, None, &["memory.total"], mebibytes),
        (
            Counter::GpuTemperature,
            Some("gpu"),
            &["temperature.gpu", "temperature.aip"],
            plain,
        ),
        (
            Counter::GpuTemperature,
            Some("memory"),
            &["temperature.memory"],
            plain,
        ),
        (
            Counter::GpuPower,
            None,
            &["power.draw", "power.draw.instant"],
            plain,
        ),
        (
            Counter::GpuPowerLimit,
            None,
            &["enforced.power.limit", "power.limit"],
            plain,
        ),
        (
            Counter::GpuClock,
            Some("sm"),
            &["clocks.sm", "clocks.current.sm"],
            megahertz,
        ),
        (
            Counter::GpuClock,
            Some("memory"),
            &["clocks.mem", "clocks.current.memory"],
            megahertz,
        ),
        (
            Counter::GpuPcieLinkGeneration,
            None,
            &["pcie.link.gen.gpucurrent", "pcie.link.gen.current"],
            plain,
        ),
        (
            Counter::GpuPcieLinkWidth,
            None,
            &["pcie.link.width.current"],
            plain,
        ),
        (
            Counter::GpuEccUncorrectedErrors,
            None,
            &["ecc.errors.uncorrected.volatile.total"],
            plain,
        ),
    ] {
        gpu.put(counter, detail, value(names).map(unit));
    }
    let reasons = cell(&["clocks_event_reasons.active", "clocks_throttle_reasons.active"]);
    if let Some(bits) = reasons.and_then(bits_of) {
        gpu.set_reasons(bits);
    }
}

/// The bits of a number with `0x`.
fn bits_of(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}
