//! Texts of jobs: logs of NCCL, outputs of traffic tools, and the plans by which traffic is started.
//!
//! Everything here is a pure function of what somebody else read: no files, no sockets, no clocks.

pub mod nccl;
pub mod results;
pub mod traffic;
