//! Configuration of a RoCE fabric as commands with reasons, and the smallest change that a configuration needs.
//!
//! Everything here is text for a person, who decides and applies it. Thresholds are starting points: vendors' guides for the device and
//! its release have the last word.

mod blocks;
mod change;
mod check;
mod cumulus;
mod eos;
mod esxi;
mod host;
mod mirror;
mod nexus;
mod persistence;
mod question;
mod settings;
mod sonic;
mod step;

pub use change::{CHANGE_MEANINGS, Change};
pub use check::{HostState, check_cumulus, check_eos, check_esxi, check_host, check_nexus, check_sonic};
pub use cumulus::cumulus;
pub use eos::eos;
pub use esxi::esxi;
pub use host::{HostTool, host};
pub use mirror::{MirrorTunnel, mirror};
pub use nexus::{NexusGeneration, nexus};
pub use persistence::{Persistence, persistence};
pub use question::{esxi_question, switch_question};
pub use settings::{KEYS, Settings, check_name};
pub use sonic::sonic;
pub use step::Step;

#[cfg(test)]
mod tests;
