//! `fleet doctor`: checks of all hosts of the inventory, and of their differences.

use std::process::ExitCode;

use clap::Args;

use super::targets::targets_of;
use crate::command::doctor::{FleetOptions, doctor_of_machines};
use crate::options::fabric::HostsFile;

/// Check all hosts of the inventory: their RDMA setup, and what differs between them
///
/// Runs `roce-analyze doctor` on each host, and compares them: addresses that are used twice, rails, MTUs, kernels, firmware, PFC.
#[derive(Args, Debug)]
pub(super) struct FleetDoctor {
    /// Hosts [default: all of the inventory]
    #[arg(value_name = "HOST")]
    names: Vec<String>,

    #[command(flatten)]
    inventory: HostsFile,

    #[command(flatten)]
    options: FleetOptions,
}

pub(super) fn doctor(arguments: &FleetDoctor) -> anyhow::Result<ExitCode> {
    let inventory = arguments.inventory.found()?.unwrap_or_default();
    let targets = targets_of(&inventory, &arguments.names)?;
    let machines: Vec<_> = targets.into_iter().map(|target| target.machine).collect();
    doctor_of_machines(&arguments.options, &machines, &inventory.cluster)
}
