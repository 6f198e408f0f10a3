//! Texts and numbers of hosts, adapters and GPUs become [`roce_model::Sample`]s; a snapshot of a host is checked.
//!
//! Everything here is a pure function of what somebody else read: no files, no sockets, no clocks.

pub mod doctor;
mod drivers;
pub mod gpu;
pub mod hca;
mod host;
mod pasted;
mod terminal;

pub use drivers::{CounterPlace, MappedCounter, mapped, mapped_loosely, of_classes};
pub use host::{Link, Statistic, ethtool_statistics, port_rate_bps, rdma_statistics};
pub use pasted::{pasted_files, pasted_host, pasted_pfc};
pub use terminal::without_terminal;
