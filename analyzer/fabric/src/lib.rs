//! Texts and numbers of adapters, switches, hypervisors and GPUs become [`roce_model::Sample`]s; a snapshot of a host is checked.
//!
//! Everything here is a pure function of what somebody else read: no files, no sockets, no clocks.

mod choice;
pub mod configure;
pub mod device;
pub mod doctor;
mod drivers;
pub mod findings;
pub mod gpu;
pub mod hca;
mod host;
pub mod hypervisor;
pub mod inventory;
pub mod nccl;
mod numbers;
pub mod pauses;
mod refusal;
pub mod results;
pub mod switch;
mod terminal;
pub mod traffic;
mod wiring;

pub use choice::HostNameError;
pub use drivers::{Mapped, Place, mapped};
pub use host::{Link, Statistic, ethtool_statistics, port_rate_bps, rdma_statistics};
pub use refusal::refusal_in;
