//! `devices`: what this host has to capture from.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::args::Format;
use crate::run;

#[derive(Args, Debug)]
pub(crate) struct Devices {
    /// What goes to standard output
    #[arg(long, value_enum, default_value = "text")]
    format: Format,

    /// Where the system describes its devices
    #[arg(long, value_name = "DIR", default_value = "/sys", hide = true)]
    sysfs: PathBuf,
}

/// Lists devices.
pub(crate) fn devices(arguments: &Devices) -> anyhow::Result<ExitCode> {
    let devices = roce_model::Devices {
        #[cfg(feature = "live")]
        sniffer: Some(roce_capture::live::rdma_support()),
        ..roce_capture::devices(&arguments.sysfs)
    };
    match arguments.format {
        Format::Text => roce_report::devices::text(&devices, &run::style(0), &mut anstream::stdout())?,
        Format::Json => roce_report::devices::json(&devices, &mut std::io::stdout())?,
        Format::None => {}
    }
    Ok(ExitCode::SUCCESS)
}
