//! `devices`: what this host has to capture from.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::command::invocation::{Invocation, RunCommand};
use crate::options::format::{Format, text_or_json};
use crate::output::style::style;

/// List interfaces and RDMA devices, and what can be captured there
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  roce-analyze devices                  what this host has to capture from
  roce-analyze devices --format json    the same for programs
  roce-analyze devices --read host7     a recorded host")]
pub(crate) struct Devices {
    /// Format of standard output
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = text_or_json())]
    format: Format,

    /// Read a recorded host below DIR, in place of this one
    #[arg(long, value_name = "DIR")]
    read: Option<PathBuf>,
}

const SYSFS: &str = "/sys";
/// The longest text that is looked at, where a folder was expected.
#[cfg(feature = "live")]
const MAX_TEXT_BYTES: u64 = 1 << 20;

/// Adds the answers of libpcap and, for the running system, of drivers.
#[cfg(feature = "live")]
fn complete(mut devices: roce_model::Devices, running: bool) -> roce_model::Devices {
    devices.sniffer = Some(roce_capture::live::rdma_support());
    for interface in devices.interfaces.iter_mut().filter(|_| running) {
        interface.most_speed_bps = roce_probe::most_speed(&interface.name);
    }
    devices
}

/// The description of devices in a recorded host: its folder `sys`, or that folder itself.
fn sysfs_of(folder: &Path) -> PathBuf {
    let inside = folder.join("sys");
    if inside.is_dir() {
        inside
    } else {
        folder.to_path_buf()
    }
}

/// The error that a file is no folder, with the command that reads it.
fn no_folder(file: &Path) -> anyhow::Error {
    #[cfg(feature = "live")]
    let what = {
        let text = roce_files::read_text(file, MAX_TEXT_BYTES).unwrap_or_default();
        crate::command::pasted::described(&text)
    };
    #[cfg(not(feature = "live"))]
    let what = "";
    anyhow::anyhow!(
        "{}: not the folder of a recorded host{what}\nhint: the folder has the files of /sys below sys; `doctor --read` reads texts",
        file.display()
    )
}

impl RunCommand for Devices {
    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        devices(self)
    }
}

/// Lists devices.
fn devices(arguments: &Devices) -> anyhow::Result<ExitCode> {
    let sysfs = match arguments.read.as_deref() {
        None => SYSFS.into(),
        Some(folder) if folder.is_dir() => sysfs_of(folder),
        Some(file) => return Err(no_folder(file)),
    };
    let devices = roce_capture::devices(&sysfs);
    #[cfg(feature = "live")]
    let devices = complete(devices, arguments.read.is_none());
    match arguments.format {
        Format::Text => roce_report::devices::text(&devices, &style(0), &mut anstream::stdout())?,
        _ => roce_report::devices::json(&devices, &mut std::io::stdout())?,
    }
    Ok(ExitCode::SUCCESS)
}
