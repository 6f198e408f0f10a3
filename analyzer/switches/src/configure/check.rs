//! Comparison of what is set with what is expected, by meaning; each difference has the smallest change.

mod eos;
mod host;
mod lines;
mod nexus;
mod sonic;

pub use eos::check_eos;
pub use host::{HostState, check_host};
pub use lines::{check_cumulus, check_esxi};
pub use nexus::check_nexus;
pub use sonic::check_sonic;
