//! The folder of a fleet run in place of its captures: all files of its manifest, with the hosts' names and clocks.

use std::path::Path;

use anyhow::bail;
use roce_pipeline::KnownClock;
use roce_remote::fleet::manifest::{FILE, HostRow, HostState, Manifest};

use crate::options::arguments::Analyse;
use crate::output::messages;

/// Captures of a fleet run.
pub(crate) struct JoinedCaptures {
    /// The arguments with the captures in place of the folder.
    pub(crate) arguments: Analyse,
    /// Offset of each capture's clock, where it was measured.
    pub(crate) clocks: Vec<Option<KnownClock>>,
    /// Name of each capture in results.
    pub(crate) names: Vec<String>,
}

/// True for the folder of a fleet run.
pub(crate) fn is_fleet(folder: &Path) -> bool {
    folder.join(FILE).is_file()
}

/// The run whose folder is the only argument.
///
/// # Errors
/// Its manifest cannot be read, or no file of it is here.
pub(crate) fn joined(arguments: &Analyse) -> anyhow::Result<Option<JoinedCaptures>> {
    let [folder] = arguments.captures.as_slice() else {
        return Ok(None);
    };
    if !is_fleet(folder) {
        return Ok(None);
    }
    let manifest = Manifest::read(folder)?;
    let about = folder.display().to_string();
    for host in &manifest.hosts {
        match (&host.error, host.state) {
            (Some(error), _) => messages::warn(&about, &format!("{}: {error}", host.name)),
            (None, HostState::Collected) => {}
            (None, _) => messages::warn(
                &about,
                &format!(
                    "{}: its files are not here: `roce-analyze fleet collect` fetches them",
                    host.name
                ),
            ),
        }
    }
    let files: Vec<_> = manifest.files().collect();
    if files.is_empty() {
        bail!("{about}: no capture of this fleet run is here\nhint: roce-analyze fleet collect {about}");
    }
    let machine = |host: &HostRow| manifest.hosts.iter().position(|known| known.name == host.name);
    let clock = |host: &HostRow| {
        let clock = host.clock?;
        Some(KnownClock {
            machine: u32::try_from(machine(host)?).ok()?,
            ahead_ns: float(clock.ahead_ns),
            uncertainty_ns: float(clock.bound_ns),
        })
    };
    Ok(Some(JoinedCaptures {
        arguments: Analyse {
            captures: files.iter().map(|(_, file)| folder.join(&file.name)).collect(),
            ..arguments.clone()
        },
        clocks: files.iter().map(|(host, _)| clock(host)).collect(),
        names: files
            .iter()
            .map(|(host, file)| {
                let is_only = host.files.iter().filter(|file| file.is_here).count() == 1;
                if is_only {
                    host.name.clone()
                } else {
                    file.name.clone()
                }
            })
            .collect(),
    }))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "offsets of clocks: 2^53 ns are 104 days"
)]
fn float(ns: i64) -> f64 {
    ns as f64
}
