//! Frames by plain values, and their bytes as they are on the wire: RoCEv2, RoCEv1 and MRC packets, connection management,
//! PFC and pause frames, and the tunnels that mirrors put around them.
//!
//! Lengths are known without the bytes ([`Frame::wire_bytes`]). A frame that a snaplen cuts costs only what is kept
//! ([`encode_within`]). Every struct can be written: what does not fit into its field on the wire loses its upper bits.
//! Leaves to others when a frame is sent and what becomes of it.

pub mod cm;
mod credit;
mod mrc;
mod network;
mod opcode;
mod packet;
mod pause;
mod transport;
mod tunnel;
mod version;

pub use credit::{CreditLayout, Credits};
pub use mrc::{MrcBody, MrcNack, MrcPacket, MrcProbe, MrcSack, MrcWrite, Trim};
pub use network::{Ethernet, Network};
pub use opcode::Position;
pub use packet::{Frame, Roce, encode, encode_within};
pub use pause::{Pause, Pfc};
pub use roce_wire::network::udp::source_port as udp_source_port;
pub use transport::{Atomic, ExtendedFields, Payload, RemoteMemory, Transport};
pub use tunnel::{Granularity, Tunnel, TunnelKind};
pub use version::Version;
