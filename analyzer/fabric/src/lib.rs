//! Texts and numbers of adapters, switches, hypervisors and GPUs become [`roce_model::Sample`]s.
//!
//! Everything here is a pure function of what somebody else read: no files, no sockets, no clocks.

mod drivers;
mod host;

pub use drivers::{Mapped, Place, mapped};
pub use host::{Link, Statistic, ethtool_statistics, rdma_statistics};
