//! The metrics of NVIDIA's dcgm-exporter, in Prometheus' text format.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::Counter;

use super::reading::{Gpus, mebibytes, megahertz, pci_address, percent};

/// Series in one text, and half as many lines.
const MAX_SERIES: usize = 1 << 17;

/// Labels of a series: names and values.
type Labels = BTreeMap<String, String>;

pub(super) fn parse(text: &str) -> Gpus {
    let mut all = Gpus::default();
    // Memory that the total is summed from: used, free and reserved.
    let mut memory: BTreeMap<String, [Option<f64>; 3]> = BTreeMap::new();
    let mut counters: BTreeSet<&str> = BTreeSet::new();
    for line in text.lines().take(2 * MAX_SERIES) {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            // Versions differ in what the traffic of links is: bytes so far, or bytes in a second.
            counters.extend(rest.strip_suffix(" counter"));
        }
        if !line.starts_with("DCGM_FI_") {
            continue;
        }
        let Some((name, labels, value)) = series(line) else {
            all.note("a line is no series of the text format");
            continue;
        };
        let Some(index) = labels.get("gpu") else { continue };
        let object = match labels.get("GPU_I_ID") {
            Some(instance) if !instance.is_empty() => format!("gpu{index}/mig{instance}"),
            _ => format!("gpu{index}"),
        };
        let Some(gpu) = all.gpu(&object) else { continue };
        if let Some(uuid) = labels.get("UUID").filter(|uuid| !uuid.is_empty()) {
            gpu.uuid = Some(uuid.clone());
        }
        if let Some(model) = labels.get("modelName").filter(|model| !model.is_empty()) {
            gpu.name = Some(model.clone());
        }
        if let Some(address) = labels.get("pci_bus_id").and_then(|address| pci_address(address)) {
            gpu.pci_address = Some(address);
        }
        let value = Some(value).filter(|value| !is_blank(*value));
        let mut link = |total, rate, direction| {
            let counter = if counters.contains(name) { total } else { rate };
            gpu.put(counter, Some(direction), value);
        };
        match name.trim_start_matches("DCGM_FI_PROF_") {
            "PCIE_TX_BYTES" => link(Counter::GpuPcieBytes, Counter::GpuPcieRate, "sent"),
            "PCIE_RX_BYTES" => link(Counter::GpuPcieBytes, Counter::GpuPcieRate, "received"),
            "NVLINK_TX_BYTES" => link(Counter::GpuNvlinkBytes, Counter::GpuNvlinkRate, "sent"),
            "NVLINK_RX_BYTES" => link(Counter::GpuNvlinkBytes, Counter::GpuNvlinkRate, "received"),
            _ => {}
        }
        match name.trim_start_matches("DCGM_FI_") {
            "DEV_GPU_UTIL" => gpu.put(Counter::GpuUtilization, None, value.map(percent)),
            "DEV_MEM_COPY_UTIL" => gpu.put(Counter::GpuMemoryUtilization, None, value.map(percent)),
            "DEV_GPU_TEMP" => gpu.put(Counter::GpuTemperature, Some("gpu"), value),
            "DEV_MEMORY_TEMP" => gpu.put(Counter::GpuTemperature, Some("memory"), value),
            "DEV_POWER_USAGE" => gpu.put(Counter::GpuPower, None, value),
            // Millijoules since the driver was loaded.
            "DEV_TOTAL_ENERGY_CONSUMPTION" => gpu.put(
                Counter::GpuEnergy,
                None,
                value.map(|millijoules| millijoules / 1000.0),
            ),
            "DEV_SM_CLOCK" => gpu.put(Counter::GpuClock, Some("sm"), value.map(megahertz)),
            "DEV_MEM_CLOCK" => gpu.put(Counter::GpuClock, Some("memory"), value.map(megahertz)),
            "DEV_XID_ERRORS" => gpu.put(Counter::GpuXidLast, None, value),
            "DEV_PCIE_REPLAY_COUNTER" => gpu.put(Counter::GpuPcieReplays, None, value),
            "DEV_CLOCK_THROTTLE_REASONS" | "DEV_CLOCKS_EVENT_REASONS" => {
                // A mask of 64 bits, of which the text has those below 2^53 exactly.
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a mask is not negative, and its known bits are below 2^9"
                )]
                if let Some(bits) = value.filter(|value| (0.0..1e15).contains(value)) {
                    gpu.set_reasons(bits as u64);
                }
            }
            "PROF_GR_ENGINE_ACTIVE" => gpu.put(Counter::GpuActivity, Some("graphics_engine"), value),
            "PROF_PIPE_TENSOR_ACTIVE" => gpu.put(Counter::GpuActivity, Some("tensor"), value),
            "PROF_DRAM_ACTIVE" => gpu.put(Counter::GpuActivity, Some("memory"), value),
            "DEV_FB_USED" => {
                gpu.put(Counter::GpuMemoryUsed, None, value.map(mebibytes));
                memory.entry(object).or_default()[0] = value.map(mebibytes);
            }
            "DEV_FB_FREE" => memory.entry(object).or_default()[1] = value.map(mebibytes),
            "DEV_FB_RESERVED" => memory.entry(object).or_default()[2] = value.map(mebibytes),
            _ => {}
        }
    }
    for (object, [used, free, reserved]) in memory {
        if let (Some(used), Some(free)) = (used, free)
            && let Some(gpu) = all.gpu(&object)
        {
            // Older versions do not have what is reserved.
            let total = used + free + reserved.unwrap_or(0.0);
            gpu.put(Counter::GpuMemoryTotal, None, Some(total));
        }
    }
    all
}

/// DCGM's values for "blank, not found, not supported, not permitted" (dcgm_structs.h): 16 below the largest integers of 64 and 32 bits, and
/// 2^47.
fn is_blank(value: f64) -> bool {
    const INT64: f64 = 9_223_372_036_854_774_784.0;
    (INT64..).contains(&value)
        || (2_147_483_632.0..=2_147_483_635.0).contains(&value)
        || (140_737_488_355_328.0..=140_737_488_355_331.0).contains(&value)
        || !value.is_finite()
}

/// Name, labels and value of a line of the text format 0.0.4.
fn series(line: &str) -> Option<(&str, Labels, f64)> {
    let mut labels = Labels::new();
    let end = line.find(['{', ' ', '\t'])?;
    let (name, mut rest) = line.split_at(end);
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner.trim_start();
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once('=')?;
            let after = after.trim_start().strip_prefix('"')?;
            let mut value = String::new();
            let mut glyphs = after.char_indices();
            let close = loop {
                match glyphs.next()? {
                    (place, '"') => break place,
                    (_, '\\') => match glyphs.next()?.1 {
                        'n' => value.push('\n'),
                        other => value.push(other),
                    },
                    (_, glyph) => value.push(glyph),
                }
            };
            labels.insert(label.trim().to_owned(), value);
            rest = after.get(close + 1..)?.trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
        rest = rest.strip_prefix('}')?;
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some((name, labels, value))
}
