//! Texts of jobs: logs of NCCL, documents of a job, outputs of traffic tools, and the plans by which traffic is started.
//!
//! Everything here is a pure function of what somebody else read: no files, no sockets, no clocks.

pub mod documents;
pub mod nccl;
pub mod results;
pub mod traffic;
