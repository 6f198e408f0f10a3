//! NCCL's and RCCL's logs (`NCCL_DEBUG=INFO`, `NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH`): settings, devices, communicators, queue pairs with their
//! ranks, rings and trees, and errors. Versions differ, so lines are recognized by a part of them, and fields are read behind it.
//! What follows from a log for the results of a test is left to `results`; what it says about packets, to others.
//!
//! Source of all forms: NVIDIA/nccl, `src/init.cc`, `src/transport/net.cc`, `src/transport/net_ib.cc` (since 2.29
//! `src/transport/net_ib/connect.cc`), `src/graph/connect.cc`, `src/misc/param.cc`; ROCm/rccl follows them.

mod connections;
mod fields;
mod line;
mod log;
mod reader;
mod shapes;

pub use connections::QueuePair;
pub use log::{Communicator, Edge, Log};
pub use reader::Reader;

/// True if a text has lines of NCCL's log.
pub fn is_log(text: &str) -> bool {
    text.contains("NCCL INFO") || text.contains("NCCL WARN")
}

/// The log in a text.
pub fn log(text: &str) -> Log {
    let mut reader = Reader::default();
    for line in text.lines() {
        reader.line(line);
    }
    reader.finish()
}

#[cfg(test)]
mod tests;
