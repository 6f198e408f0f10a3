//! Texts about GPUs: nvidia-smi (CSV, XML, `dmon`, `nvlink`), dcgm-exporter's metrics, amd-smi and rocm-smi (JSON). Each becomes [`Gpus`].
//!
//! A value that a tool does not know (`N/A`, `[Not Supported]`, DCGM's blanks) is absent, never 0.

mod amd;
mod dcgm;
mod foreign;
mod reading;
mod rocm;
mod smi_csv;
mod smi_dmon;
mod smi_nvlink;
mod smi_xml;

pub use foreign::described;
pub use reading::{Gpu, GpuValue, Gpus};
pub use smi_csv::{QUERY, csv_columns};

/// The GPUs in a text of any of the tools, by its form.
pub fn gpus(text: &str) -> Gpus {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with("<?xml") || text.starts_with("<nvidia_smi_log") || text.starts_with("<!DOCTYPE") {
        smi_xml::parse(text)
    } else if rocm::is_one(text) {
        rocm::parse(text)
    } else if text.starts_with(['{', '[']) && !text.starts_with("[N/A]") {
        amd::parse(text)
    } else if text.starts_with("# HELP") || text.starts_with("# TYPE") || text.starts_with("DCGM_FI_") {
        dcgm::parse(text)
    } else if text.starts_with("# gpu") {
        smi_dmon::parse(text)
    } else if text.starts_with("GPU ") {
        smi_nvlink::parse(text)
    } else {
        smi_csv::parse(text, &QUERY)
    }
}

/// The GPUs in lines of nvidia-smi's CSV without header, of which the `columns` are known.
pub fn gpus_of_columns(text: &str, columns: &[&str]) -> Gpus {
    smi_csv::parse(text, columns)
}

#[cfg(test)]
mod tests;
