//! Options of a snapshot of the running system.

/// Parts of the running system that are read on request.
#[derive(Clone, Debug, Default)]
pub struct SnapshotOptions<'a> {
    /// Other interfaces than those of RDMA devices.
    pub interfaces: &'a [String],
    /// The process whose limits and environment are read; `None`: this one.
    pub process: Option<u32>,
}
