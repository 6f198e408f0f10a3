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
mod bth;
mod bytes;
mod ecn;
mod link;
mod opcode;
mod packet;
mod pause;
mod psn;
mod stop;

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
pub use bth::Bth;
pub use ecn::Ecn;
pub use link::LinkType;
pub use opcode::{ExtendedHeaders, Opcode, Operation, Service, Traits};
pub use packet::{Carrier, Content, DecodedFrame, Mirror, MirrorKind, Other, Roce, Through, VlanTag};
pub use pause::{MacAddress, Pause, PauseKind};
pub use psn::{Psn, Qpn};
pub use stop::{CutLimit, Layer, Stop};

/// Decodes a frame of `link`. `frame` has its captured bytes, and `original` its length on the wire,
/// without the FCS.
///
/// The fast path takes it if it can, the general path decides everything else.
#[cfg(feature = "general")]
#[inline]
pub fn decode(link: LinkType, frame: &[u8], original: u32) -> DecodedFrame {
    match fast::decode(link, frame, original) {
        Some(roce) => DecodedFrame {
            content: Content::Roce(roce),
            mirror: None,
            stop: None,
        },
        None if general::is_other(link, frame) => DecodedFrame {
            content: Content::Other(Other::NotRoce),
            mirror: None,
            stop: None,
        },
        None => general::decode(link, frame, original),
    }
}
