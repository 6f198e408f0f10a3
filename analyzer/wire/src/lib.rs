//! Views of the bytes of RoCE packets and of everything they travel in.
//!
//! A header is a view of a fixed-size array, so that a length is a type and no accessor can fail; one protocol
//! is one file. [`decode`] reads a frame: nearly all go through the fast path at fixed offsets ([`fast`]), the rest
//! through the general one. Decoding never fails: [`DecodedFrame`] says what was understood and where it stopped.
//!
//! The crate knows no files, no clock and no flows. It is `no_std`, does not allocate and never panics, so that a
//! kernel program can use it too.

#![no_std]

mod address;
mod aeth;
mod assigned;
mod bth;
mod bytes;
mod ecn;
mod link;
mod opcode;
mod packet;
mod pause;
mod psn;
mod stop;
mod telemetry;

pub mod fast;
pub mod frame;
#[cfg(feature = "general")]
pub mod general;
pub mod icrc;
pub mod management;
pub mod network;
pub mod transport;
pub mod tunnel;

pub use address::Address;
pub use aeth::{AckTimeout, Aeth, AethKind, Nak, RnrTimer};
pub use assigned::AssignedNumbers;
pub use bth::Bth;
pub use ecn::Ecn;
pub use link::LinkType;
pub use opcode::{ExtendedHeaders, Opcode, Operation, Service, Traits};
pub use packet::{Carrier, Content, DecodedFrame, Mirror, MirrorKind, Other, Roce, Through, VlanTag};
pub use pause::{MacAddress, Pause, PauseKind};
pub use psn::{Psn, Qpn};
pub use stop::{CutLimit, Layer, Stop};
pub use telemetry::{Hop, Hops, MAX_HOPS, Telemetry, TelemetryKind};

/// Decodes a frame of `link`. `frame` has its captured bytes, and `original` its length on the wire,
/// without the FCS.
///
/// The fast path takes it if it can, the general path decides everything else.
#[cfg(feature = "general")]
#[inline]
pub fn decode(link: LinkType, frame: &[u8], original: u32) -> DecodedFrame {
    decode_with(link, frame, original, &AssignedNumbers::default())
}

/// [`decode`] with numbers of a network.
#[cfg(feature = "general")]
#[inline]
pub fn decode_with(link: LinkType, frame: &[u8], original: u32, assigned: &AssignedNumbers) -> DecodedFrame {
    match fast::decode(link, frame, original) {
        Some(roce) => DecodedFrame::new(Content::Roce(roce)),
        None if general::is_other(link, frame, *assigned) => {
            DecodedFrame::new(Content::Other(Other::NotRoce))
        }
        None => general::decode_with(link, frame, original, assigned),
    }
}
