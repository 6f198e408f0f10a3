//! The records that the kernel programs write and the probe reads: plain structs without padding, every bit pattern valid.
//!
//! Times are nanoseconds of CLOCK_MONOTONIC. Addresses are 16 bytes in network order, IPv4 mapped into IPv6, as in
//! `roce_wire::Address`. Everything else is in the host's byte order: both sides run on the same machine.

#![no_std]

mod host;
mod layout;
mod traffic;

pub use host::{
    AsyncRecord, COMM_BYTES, ConnectionRecord, DEVICE_BYTES, DropRecord, HostHead, HostKind, ModifyRecord,
    QueuePairRecord, mask,
};
pub use layout::{ABSENT, Layout};
pub use traffic::{
    Direction, FLOWS, FlowCounts, FlowKey, Losses, Mode, NAKS, OPERATIONS, PacketHead, PacketReason,
    RECORD_BYTES, RECORD_BYTES_MANAGEMENT,
};

#[cfg(feature = "user")]
mod user;
#[cfg(feature = "user")]
pub use user::read;
