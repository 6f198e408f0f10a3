//! rocm-smi --json: an object with `card0`, `card1` ..., whose values are texts behind names in words. Names differ between versions, so a few
//! are tried for each quantity (ROCm/rocm_smi_lib, `python_smi_tools/rocm_smi.py`).

use roce_model::Counter;
use serde_json::{Map, Value};

use super::reading::{Gpus, megahertz, number, pci_address, percent, plain, word};

/// True if a document is rocm-smi's.
pub(super) fn is_one(text: &str) -> bool {
    text.starts_with('{') && text.contains("\"card0\"")
}

pub(super) fn parse(text: &str) -> Gpus {
    let mut all = Gpus::default();
    let Ok(document) = serde_json::from_str::<Map<String, Value>>(text) else {
        all.note("the document is cut, or no JSON");
        return all;
    };
    let mut cards: Vec<(u32, &Map<String, Value>)> = document
        .iter()
        .filter_map(|(name, card)| Some((name.strip_prefix("card")?.parse().ok()?, card.as_object()?)))
        .collect();
    cards.sort_by_key(|(index, _)| *index);
    for (index, card) in cards {
        let Some(gpu) = all.gpu(&format!("gpu{index}")) else {
            break;
        };
        let text = |names: &[&str]| {
            let value = names.iter().find_map(|name| card.get(*name))?;
            value
                .as_str()
                .map(str::to_owned)
                .or_else(|| Some(value.as_f64()?.to_string()))
        };
        let value = |names: &[&str]| {
            text(names).and_then(|cell| number(cell.trim_matches(['(', ')', ' ']).trim_end_matches("Mhz")))
        };
        gpu.name =
            text(&["Card series", "Card Series", "Device Name", "Card model"]).and_then(|name| word(&name));
        gpu.uuid = text(&["Unique ID"]).and_then(|id| word(&id));
        gpu.pci_address = text(&["PCI Bus"]).and_then(|address| pci_address(&address));
        let used = value(&["VRAM Total Used Memory (B)"]);
        for (counter, detail, found, unit) in [
            (
                Counter::GpuUtilization,
                None,
                value(&["GPU use (%)"]),
                percent as fn(f64) -> f64,
            ),
            (
                Counter::GpuMemoryUtilization,
                None,
                value(&["GPU Memory Read/Write Activity (%)", "GPU memory use (%)"]),
                percent,
            ),
            (Counter::GpuMemoryUsed, None, used, plain),
            (
                Counter::GpuMemoryTotal,
                None,
                value(&["VRAM Total Memory (B)"]),
                plain,
            ),
            (
                Counter::GpuTemperature,
                Some("gpu"),
                value(&[
                    "Temperature (Sensor junction) (C)",
                    "Temperature (Sensor edge) (C)",
                ]),
                plain,
            ),
            (
                Counter::GpuTemperature,
                Some("memory"),
                value(&["Temperature (Sensor memory) (C)"]),
                plain,
            ),
            (
                Counter::GpuPower,
                None,
                value(&[
                    "Current Socket Graphics Package Power (W)",
                    "Average Graphics Package Power (W)",
                ]),
                plain,
            ),
            (
                Counter::GpuClock,
                Some("sm"),
                value(&["sclk clock speed:"]),
                megahertz,
            ),
            (
                Counter::GpuClock,
                Some("memory"),
                value(&["mclk clock speed:"]),
                megahertz,
            ),
        ] {
            gpu.put(counter, detail, found.map(unit));
        }
    }
    all
}
