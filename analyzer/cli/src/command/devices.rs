//! `devices`: what this host has to capture from.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use roce_capture::Sysfs;

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

    /// Read a recorded host in place of this one: a folder, the file of `doctor --record`, or a text with outputs of tools
    #[arg(long, value_name = "DIR|FILE")]
    read: Option<PathBuf>,
}

/// Adds the answers of libpcap and, for the running system, of drivers.
#[cfg(feature = "live")]
fn complete(mut devices: roce_model::Devices, running: bool) -> roce_model::Devices {
    devices.sniffer = Some(roce_capture::live::rdma_support());
    for interface in devices.interfaces.iter_mut().filter(|_| running) {
        interface.most_speed_bps = roce_probe::most_speed(&interface.name);
    }
    devices
}

/// Files of the host that a text, or the file of `doctor --record`, describes.
#[cfg(feature = "live")]
struct HostFiles(roce_hosts::doctor::Host);

#[cfg(feature = "live")]
impl roce_capture::SystemFiles for HostFiles {
    fn names(&self, folder: &str) -> Vec<String> {
        self.0.names(&format!("sys/{folder}"))
    }

    fn content(&self, path: &str) -> Option<String> {
        self.0.text(&format!("sys/{path}"))
    }

    fn linked(&self, path: &str) -> Option<String> {
        let path = format!("sys/{path}");
        let target = self.0.link(&path).and_then(|target| target.rsplit('/').next());
        // A device's own description names its driver.
        let driver = || {
            self.0
                .field(&format!("{}/uevent", path.strip_suffix("/driver")?), "DRIVER")
        };
        target.map(str::to_owned).or_else(driver)
    }

    fn has(&self, path: &str) -> bool {
        self.0.has(&format!("sys/{path}"))
    }

    fn is_folder(&self, path: &str) -> bool {
        !self.0.names(&format!("sys/{path}")).is_empty()
    }
}

/// Devices of a recorded host.
fn recorded(path: &Path) -> anyhow::Result<roce_model::Devices> {
    if path.is_dir() {
        let files = Sysfs::recorded(path).with_context(|| path.display().to_string())?;
        return Ok(roce_capture::devices(&files));
    }
    #[cfg(feature = "live")]
    {
        let host = HostFiles(super::doctor::stored(path)?);
        Ok(roce_capture::devices(&host))
    }
    #[cfg(not(feature = "live"))]
    anyhow::bail!(
        "{}: not the folder of a recorded host\nhint: the folder has the files of /sys below sys",
        path.display()
    )
}

impl RunCommand for Devices {
    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        devices(self)
    }
}

/// Lists devices.
fn devices(arguments: &Devices) -> anyhow::Result<ExitCode> {
    let devices = match arguments.read.as_deref() {
        None => roce_capture::devices(&Sysfs::running()),
        Some(path) => recorded(path)?,
    };
    #[cfg(feature = "live")]
    let devices = complete(devices, arguments.read.is_none());
    match arguments.format {
        Format::Text => roce_report::devices::text(&devices, &style(0), &mut anstream::stdout())?,
        _ => roce_report::devices::json(&devices, &mut std::io::stdout())?,
    }
    Ok(ExitCode::SUCCESS)
}
