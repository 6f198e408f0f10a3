//! Texts of jobs: logs of NCCL, errors that programs report, documents of a job, outputs of traffic tools, and the plans by which traffic is started.
//!
//! Everything here is a pure function of what somebody else read: no files, no sockets, no clocks.

pub mod documents;
pub mod errors;
pub mod nccl;
pub mod prefix;
pub mod results;
pub mod traffic;
