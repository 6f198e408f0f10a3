//! nvidia-smi nvlink -gt d: the data that each link has sent and received since the driver was loaded, in KiB. The links of a GPU are added.

use roce_model::Counter;

use super::reading::{Gpus, number};

/// The GPUs of a text.
pub(super) fn parse(text: &str) -> Gpus {
    let mut all = Gpus::default();
    let mut current: Option<String> = None;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        // `GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-...)`
        if let Some(rest) = line.strip_prefix("GPU ") {
            current = rest
                .split_once(':')
                .and_then(|(index, _)| index.parse::<u32>().ok())
                .map(|index| format!("gpu{index}"));
            let name = rest
                .split_once(": ")
                .and_then(|(_, name)| name.rsplit_once(" (UUID: "));
            if let (Some((name, uuid)), Some(gpu)) =
                (name, current.as_deref().and_then(|object| all.gpu(object)))
            {
                gpu.name = Some(name.to_owned());
                gpu.uuid = Some(uuid.trim_end_matches(')').to_owned());
            }
            continue;
        }
        // `Link 0: Data Tx: 12345 KiB`
        let Some((_, data)) = line
            .strip_prefix("Link ")
            .and_then(|rest| rest.split_once(": Data "))
        else {
            all.note("a line is neither a GPU nor the data of a link");
            continue;
        };
        let (direction, value) = match data.split_once(": ") {
            Some(("Tx", value)) => ("sent", value),
            Some(("Rx", value)) => ("received", value),
            _ => continue,
        };
        let Some(gpu) = current.as_deref().and_then(|object| all.gpu(object)) else {
            continue;
        };
        // A link that says nothing (`N/A`) has no data.
        if let Some(kibibytes) = number(value).filter(|_| value.ends_with("KiB")) {
            let before = gpu.value(Counter::GpuNvlinkBytes, Some(direction)).unwrap_or(0.0);
            gpu.put(
                Counter::GpuNvlinkBytes,
                Some(direction),
                Some(before + kibibytes * 1024.0),
            );
        }
    }
    all
}
