//! The subcommands, one file or folder each. Without a subcommand, captures are analysed (`analyse`).

pub(crate) mod analyse;
pub(crate) mod annotate;
pub(crate) mod beside;
pub(crate) mod compare;
#[cfg(feature = "live")]
mod confinement;
#[cfg(feature = "sim")]
pub(crate) mod demo;
pub(crate) mod devices;
#[cfg(feature = "probe")]
pub(crate) mod doctor;
mod duckdb;
#[cfg(feature = "http")]
pub(crate) mod endpoint;
pub(crate) mod explain;
pub(crate) mod explain_error;
#[cfg(feature = "probe")]
pub(crate) mod fabric;
#[cfg(feature = "probe")]
pub(crate) mod fleet;
#[cfg(feature = "probe")]
mod gpu_tool;
#[cfg(feature = "probe")]
pub(crate) mod host;
#[cfg_attr(not(feature = "probe"), path = "command/without_fleet.rs")]
pub(crate) mod joined;
#[cfg(feature = "probe")]
mod lines;
#[cfg(feature = "live")]
pub(crate) mod live;
mod merged;
#[cfg(feature = "probe")]
pub(crate) mod metrics;
#[cfg_attr(not(feature = "live"), path = "command/without_player.rs")]
mod player;
pub(crate) mod query;
#[cfg(feature = "live")]
mod recorded;
#[cfg(feature = "live")]
pub(crate) mod replay;
#[cfg(feature = "parquet")]
pub(crate) mod report;
pub(crate) mod request;
#[cfg(feature = "sim")]
pub(crate) mod simulate;
pub(crate) mod traffic;
pub(crate) mod version;
#[cfg(feature = "live")]
mod watch;
