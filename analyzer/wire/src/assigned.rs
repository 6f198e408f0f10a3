//! Numbers of headers that no standard fixes.

use crate::frame::csig;
use crate::network::udp;

/// Numbers that the operators of networks set themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AssignedNumbers {
    /// UDP destination port of MRC besides those of RoCEv2 and of [`udp::MRC`].
    pub mrc_port: u16,
    /// EtherType of a compact CSIG tag.
    pub csig: u16,
    /// EtherType of a wide CSIG tag; nothing is known to begin with.
    pub wide_csig: Option<u16>,
}

impl Default for AssignedNumbers {
    fn default() -> Self {
        Self {
            mrc_port: udp::MRC,
            csig: csig::CSIG,
            wide_csig: None,
        }
    }
}
