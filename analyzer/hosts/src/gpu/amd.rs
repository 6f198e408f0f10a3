//! amd-smi metric --json: a list of GPUs, or an object with `gpu_data`. Numbers are `{"value": 98, "unit": "%"}`, or plain ones in older
//! versions; `N/A` is absent. The names are those of ROCm's amd-smi 6 and 7; they were not seen on a machine of ours.

use roce_model::Counter;
use serde_json::Value;

use super::reading::{Gpus, mebibytes, megahertz, percent, plain};

pub(super) fn parse(text: &str) -> Gpus {
    let mut all = Gpus::default();
    let Ok(document) = serde_json::from_str::<Value>(text) else {
        all.note("the document is cut, or no JSON");
        return all;
    };
    let list = document.get("gpu_data").unwrap_or(&document);
    let Some(list) = list.as_array() else {
        all.note("the document has no list of GPUs");
        return all;
    };
    for entry in list {
        let Some(index) = entry.get("gpu").and_then(Value::as_u64) else {
            all.note("an entry has no number of its GPU");
            continue;
        };
        let Some(gpu) = all.gpu(&format!("gpu{index}")) else {
            break;
        };
        let value = |paths: &[&str]| paths.iter().find_map(|path| number(entry.pointer(path)?));
        let mut put = |counter, detail, paths: &[&str], unit: fn(f64) -> f64| {
            gpu.put(counter, detail, value(paths).map(unit));
        };
        put(Counter::GpuUtilization, None, &["/usage/gfx_activity"], percent);
        put(
            Counter::GpuMemoryUtilization,
            None,
            &["/usage/umc_activity"],
            percent,
        );
        // amd-smi divides bytes by 1024 twice, and calls it MB.
        put(Counter::GpuMemoryUsed, None, &["/mem_usage/used_vram"], mebibytes);
        put(
            Counter::GpuMemoryTotal,
            None,
            &["/mem_usage/total_vram"],
            mebibytes,
        );
        put(
            Counter::GpuTemperature,
            Some("gpu"),
            &["/temperature/hotspot", "/temperature/edge"],
            plain,
        );
        put(
            Counter::GpuTemperature,
            Some("memory"),
            &["/temperature/mem"],
            plain,
        );
        put(
            Counter::GpuPower,
            None,
            &[
                "/power/socket_power",
                "/power/current_socket_power",
                "/power/average_socket_power",
            ],
            plain,
        );
        put(Counter::GpuClock, Some("sm"), &["/clock/gfx_0/clk"], megahertz);
        put(
            Counter::GpuClock,
            Some("memory"),
            &["/clock/mem_0/clk"],
            megahertz,
        );
        put(Counter::GpuPcieLinkWidth, None, &["/pcie/width"], plain);
        put(
            Counter::GpuEccUncorrectedErrors,
            None,
            &["/ecc/total_uncorrectable_count"],
            plain,
        );
        put(Counter::GpuPcieReplays, None, &["/pcie/replay_count"], plain);
    }
    all
}

/// A number: plain, in `value`, or as text.
fn number(value: &Value) -> Option<f64> {
    let value = value.get("value").unwrap_or(value);
    value.as_f64().or_else(|| super::reading::number(value.as_str()?))
}
