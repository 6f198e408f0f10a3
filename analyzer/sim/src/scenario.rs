//! A scenario: a TOML file that describes hosts, links, switches, flows, taps and everything that goes wrong.
//!
//! This file has the outermost table and reads it; the tables in it have files of their own. The crate's
//! README and each field describe the numbers. Unknown keys are errors.

mod baseline;
mod check;
mod flows;
mod mrc;
mod network;
mod nic;
mod overrides;
mod release;
mod spray;
mod taps;
mod training;

use serde::Deserialize;

pub use flows::{
    Direction, FlowTable, Operation, Pattern, PsnChoice, QpnChoice, ServiceName, SourcePort, SourcePortName,
};
pub use mrc::{EvOrder, FlowTransport, Mrc, MrcPath, MrcPort, MrcResponder, PdcOrder, SackBase, TrimLength};
pub use network::{
    HostTable, Impairment, Network, Only, PauseKindName, PauseTable, Switch, SwitchPause, Topology,
};
pub use nic::{CongestionControl, DuplicateAck, IpId, Nic, ParameterSet, Recovery};
pub use release::NcclRelease;
pub use spray::{Spray, SprayChoice, SprayMode};
pub use taps::{LossReportName, MirrorName, TapBursts, TapDirection, TapGap, TapLoss, TapRing, TapTable};
pub use training::{Collective, LatePlace, LateRank, LateReceiver, Protocol, Training, TrainingTransport};

use crate::Error;
use crate::units::Picos;

/// A scenario, as written in a TOML file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// One line that says what it shows.
    #[serde(default)]
    pub title: String,
    /// Seed of every random number.
    #[serde(default = "one")]
    pub seed: u64,
    /// Duration of the simulation.
    pub duration: Picos,
    /// Start of the simulation by a right clock: seconds since the Unix epoch.
    #[serde(default = "epoch")]
    pub start: u64,
    /// Hosts and the links between them.
    pub network: Network,
    /// Every switch.
    #[serde(default)]
    pub switch: Switch,
    /// Every NIC.
    #[serde(default)]
    pub nic: Nic,
    /// DCQCN, in every NIC.
    #[serde(default)]
    pub dcqcn: CongestionControl,
    /// MRC: paths, NICs, and what goes wrong, for flows with `transport = "mrc"`.
    #[serde(default)]
    pub mrc: Mrc,
    /// Single hosts that differ.
    #[serde(default)]
    pub host: Vec<HostTable>,
    /// Traffic.
    #[serde(default)]
    pub flow: Vec<FlowTable>,
    /// Traffic of training: steps of computing and all-reduce.
    #[serde(default)]
    pub training: Vec<Training>,
    /// Links that lose, corrupt or reorder packets.
    #[serde(default)]
    pub impairment: Vec<Impairment>,
    /// Hosts that send pause frames of their own accord.
    #[serde(default)]
    pub pause: Vec<PauseTable>,
    /// Places where packets are recorded.
    #[serde(default)]
    pub tap: Vec<TapTable>,
}

fn one() -> u64 {
    1
}

/// 2026-01-01 00:00:00 UTC.
fn epoch() -> u64 {
    1_767_225_600
}

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    /// When the text is no TOML, has an unknown key, a value of the wrong kind, or describes what cannot be: the
    /// message says what and where.
    pub fn parse(toml: &str) -> Result<Self, Error> {
        Self::with_overrides(toml, &[])
    }

    /// Reads a scenario after replacing values: each has a path (`switch.kmin`, `flow.0.message`) and a
    /// value as in TOML, or bare text.
    ///
    /// # Errors
    /// Those of [`parse`](Self::parse), and paths that lead nowhere.
    pub fn with_overrides(toml: &str, overrides: &[(String, String)]) -> Result<Self, Error> {
        let scenario: Self = if overrides.is_empty() {
            toml::from_str(toml).map_err(|error| Error::Scenario(error.to_string()))?
        } else {
            let mut table: toml::Table =
                toml::from_str(toml).map_err(|error| Error::Scenario(error.to_string()))?;
            for (path, value) in overrides {
                overrides::set(&mut table, path, value)?;
            }
            table
                .try_into()
                .map_err(|error: toml::de::Error| Error::Scenario(error.to_string()))?
        };
        scenario.check()?;
        Ok(scenario)
    }
}
