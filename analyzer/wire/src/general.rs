//! The general path: any link type, any stack of tags, tunnels, options and extension headers, whole or cut.
//!
//! It walks from header to header. etherparse reads the IPv6 extension headers; the tunnels and the
//! link types that it does not know are done here, and behind a tunnel the fast path is tried again.

mod link;
mod network;
mod other;
mod roce;
mod tunnel;
mod walk;

use crate::{AssignedNumbers, DecodedFrame, LinkType};
use walk::Walk;

pub(crate) use other::is_other;

/// Decodes a frame of `link`. `frame` has its captured bytes, and `original` its length on the wire,
/// without the FCS.
pub fn decode(link: LinkType, frame: &[u8], original: u32) -> DecodedFrame {
    decode_with(link, frame, original, &AssignedNumbers::default())
}

/// [`decode`] with numbers of a network.
pub fn decode_with(link: LinkType, frame: &[u8], original: u32, assigned: &AssignedNumbers) -> DecodedFrame {
    Walk::new(frame, original, *assigned).run(link)
}
