//! nvidia-smi -q -x: one XML document.
//!
//! Elements alone are read: no entities are expanded, and nothing outside of the document is looked at.
//! A crate was looked for and not taken: quick-xml reads all of XML, and this document has neither namespaces nor mixed content.

use roce_model::Counter;

use super::reading::{
    Gpu, Gpus, IDLE, REASONS, SYNC_BOOST, kilobytes, mebibytes, megahertz, number, pci_address, percent,
    says_lost, word,
};

/// Elements within elements; deeper ones are not read.
const MAX_DEPTH: usize = 16;

pub(super) fn parse(text: &str) -> Gpus {
    let mut all = Gpus::default();
    let mut path: Vec<&str> = Vec::new();
    let mut current: Option<Gpu> = None;
    let mut bits = 0;
    let mut has_bits = false;
    let mut count = 0;
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('<') {
        let Some((tag, content)) = after.split_once('>') else {
            break;
        };
        rest = content;
        if tag.starts_with(['?', '!']) {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            if path.last() == Some(&name) {
                path.pop();
            }
            if name == "gpu"
                && let Some(mut gpu) = current.take()
            {
                if has_bits {
                    gpu.set_reasons(bits);
                }
                if all.gpus.len() < super::reading::MAX_GPUS {
                    all.gpus.push(gpu);
                }
            }
            continue;
        }
        if tag.ends_with('/') {
            continue;
        }
        let name = tag.split_whitespace().next().unwrap_or_default();
        if name == "gpu" && path.len() <= 1 {
            let address = tag.split('"').nth(1).and_then(pci_address);
            current = Some(Gpu {
                object: format!("gpu{count}"),
                pci_address: address,
                ..Gpu::default()
            });
            (bits, has_bits, count) = (0, false, count + 1);
        }
        if path.len() >= MAX_DEPTH {
            all.note("elements are nested too deep");
            break;
        }
        path.push(name);
        let value = content.split('<').next().unwrap_or_default().trim();
        if let Some(gpu) = &mut current {
            let below = path
                .iter()
                .position(|name| *name == "gpu")
                .map_or(0, |place| place + 1);
            let key = path.get(below..).unwrap_or_default().join("/");
            element(gpu, &key, value);
            let reason = key
                .strip_prefix("clocks_event_reasons/clocks_event_reason_")
                .or_else(|| key.strip_prefix("clocks_throttle_reasons/clocks_throttle_reason_"));
            if let Some(reason) = reason
                && let Some(bit) = reason_bit(reason)
                && ["Active", "Not Active"].contains(&value)
            {
                has_bits = true;
                bits |= if value == "Active" { bit } else { 0 };
            }
        }
    }
    if current.is_some() {
        all.note("the document is cut");
    }
    all
}

fn reason_bit(name: &str) -> Option<u64> {
    match name {
        "gpu_idle" => Some(IDLE),
        "sync_boost" => Some(SYNC_BOOST),
        // The plural is the element's.
        "display_clocks_setting" => Some(0x100),
        _ => REASONS
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(bit, _)| *bit),
    }
}

fn element(gpu: &mut Gpu, key: &str, value: &str) {
    gpu.is_lost |= says_lost(value);
    let number = number(value);
    match key {
        "product_name" => gpu.name = word(value),
        "uuid" => gpu.uuid = word(value),
        "utilization/gpu_util" => gpu.put(Counter::GpuUtilization, None, number.map(percent)),
        "utilization/memory_util" => gpu.put(Counter::GpuMemoryUtilization, None, number.map(percent)),
        "fb_memory_usage/used" => gpu.put(Counter::GpuMemoryUsed, None, number.map(mebibytes)),
        "fb_memory_usage/total" => gpu.put(Counter::GpuMemoryTotal, None, number.map(mebibytes)),
        "temperature/gpu_temp" => gpu.put(Counter::GpuTemperature, Some("gpu"), number),
        "temperature/memory_temp" => gpu.put(Counter::GpuTemperature, Some("memory"), number),
        "gpu_power_readings/power_draw"
        | "gpu_power_readings/instant_power_draw"
        | "power_readings/power_draw" => gpu.put(Counter::GpuPower, None, number),
        "gpu_power_readings/current_power_limit"
        | "power_readings/enforced_power_limit"
        | "power_readings/power_limit" => gpu.put(Counter::GpuPowerLimit, None, number),
        "clocks/sm_clock" => gpu.put(Counter::GpuClock, Some("sm"), number.map(megahertz)),
        "clocks/mem_clock" => gpu.put(Counter::GpuClock, Some("memory"), number.map(megahertz)),
        "pci/pci_gpu_link_info/pcie_gen/current_link_gen" => {
            gpu.put(Counter::GpuPcieLinkGeneration, None, number);
        }
        "pci/pci_gpu_link_info/link_widths/current_link_width" => {
            let width = value.trim_end_matches('x').parse().ok();
            gpu.put(Counter::GpuPcieLinkWidth, None, width);
        }
        "pci/tx_util" => gpu.put(Counter::GpuPcieRate, Some("sent"), number.map(kilobytes)),
        "pci/rx_util" => gpu.put(Counter::GpuPcieRate, Some("received"), number.map(kilobytes)),
        "pci/replay_counter" => gpu.put(Counter::GpuPcieReplays, None, number),
        "ecc_errors/volatile/sram_uncorrectable" | "ecc_errors/volatile/dram_uncorrectable" => {
            // Two memories count apart; the sum is absent where one of them is.
            let before = gpu.value(Counter::GpuEccUncorrectedErrors, None).unwrap_or(0.0);
            gpu.put(
                Counter::GpuEccUncorrectedErrors,
                None,
                number.map(|number| number + before),
            );
        }
        _ => {}
    }
}
