//! `devices`: what this host has to capture from.

#[cfg(feature = "live")]
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::options::arguments::DocumentFormat;
use crate::output::style::style;

#[derive(Args, Debug)]
pub(crate) struct Devices {
    /// Format of standard output
    #[arg(long, value_enum, default_value = "text")]
    format: DocumentFormat,

    /// Where the system describes its devices
    #[arg(long, value_name = "DIR", default_value = SYSFS, hide = true)]
    sysfs: PathBuf,
}

const SYSFS: &str = "/sys";

/// Adds the answers of libpcap and, for the running system, of drivers.
#[cfg(feature = "live")]
fn complete(mut devices: roce_model::Devices, running: bool) -> roce_model::Devices {
    devices.sniffer = Some(roce_capture::live::rdma_support());
    for interface in devices.interfaces.iter_mut().filter(|_| running) {
        interface.most_speed_bps = roce_capture::live::most_speed(&interface.name);
    }
    devices
}

/// Lists devices.
pub(crate) fn devices(arguments: &Devices) -> anyhow::Result<ExitCode> {
    let devices = roce_capture::devices(&arguments.sysfs);
    #[cfg(feature = "live")]
    let devices = complete(devices, arguments.sysfs == Path::new(SYSFS));
    match arguments.format {
        DocumentFormat::Text => roce_report::devices::text(&devices, &style(0), &mut anstream::stdout())?,
        DocumentFormat::Json => roce_report::devices::json(&devices, &mut std::io::stdout())?,
    }
    Ok(ExitCode::SUCCESS)
}
