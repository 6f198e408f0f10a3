//! Management datagrams: what the connection manager says on queue pair 1.

pub mod cm;
pub mod cm_req;
mod comm_id;
pub mod mad;
