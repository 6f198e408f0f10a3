//! Options of a snapshot of the running system.

/// What is read of the running system beside what always is.
#[derive(Clone, Debug, Default)]
pub struct SnapshotOptions<'a> {
    /// Other interfaces than those of RDMA devices.
    pub interfaces: &'a [String],
    /// The process whose limits and environment are read; `None`: this one.
    pub process: Option<u32>,
}
