//! Common header of a management datagram, 24 bytes (IBTA 13.4.3).
//!
//! ```text
//!  0        base version
//!  1        management class: 0x07 = communication management
//!  2        class version
//!  3        response 0x80 | method 0x7f
//!  4..6     status
//!  6..8     class-specific
//!  8..16    transaction
//! 16..18    attribute
//! 18..20    reserved
//! 20..24    attribute modifier
//! 24..256   data
//! ```

use core::fmt;

use crate::bytes::{chunk, part};
use crate::{ExtendedHeaders, Opcode, Qpn, Roce};

/// View of the common header of a management datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mad<'a>(pub &'a [u8; 24]);

/// A management datagram in a frame: its header, and as much of its data as was captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram<'a> {
    /// The common header.
    pub mad: Mad<'a>,
    /// The data after it: 232 bytes when whole.
    pub data: &'a [u8],
}

impl Mad<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 24;
    /// The length of the data after it.
    pub const DATA_BYTES: usize = 232;
    /// The management class of communication management.
    pub const COMMUNICATION_MANAGEMENT: u8 = 0x07;

    /// The base version: 1.
    pub const fn base_version(&self) -> u8 {
        self.0[0]
    }

    /// The management class.
    pub const fn class(&self) -> u8 {
        self.0[1]
    }

    /// The version of the class: 2 in communication management.
    pub const fn class_version(&self) -> u8 {
        self.0[2]
    }

    /// The method, with the response bit: 0x03 = Send.
    pub const fn method(&self) -> u8 {
        self.0[3]
    }

    /// The status.
    pub const fn status(&self) -> u16 {
        u16::from_be_bytes([self.0[4], self.0[5]])
    }

    /// The transaction: the same in a request and in what answers it.
    pub const fn transaction(&self) -> u64 {
        u64::from_be_bytes(part::<8, 8, 24>(self.0))
    }

    /// The attribute: in communication management, the message.
    pub const fn attribute(&self) -> u16 {
        u16::from_be_bytes([self.0[16], self.0[17]])
    }

    /// The attribute modifier.
    pub const fn modifier(&self) -> u32 {
        u32::from_be_bytes(part::<20, 4, 24>(self.0))
    }
}

impl<'a> Datagram<'a> {
    /// The management datagram that the packet `roce`, decoded from `frame`, carries: a UD SEND Only to queue
    /// pair 1 whose common header was captured (IBTA chapter 13).
    pub fn parse(frame: &'a [u8], roce: &Roce) -> Option<Self> {
        let to_management = roce.bth.destination_qpn() == Qpn::GENERAL_SERVICES;
        if !to_management
            || roce.bth.opcode() != Opcode::UD_SEND_ONLY
            || !roce.seen.has(ExtendedHeaders::DETH)
        {
            return None;
        }
        let at = usize::from(roce.bth_offset) + 12 + 8;
        let mad = Mad(chunk(frame, at)?);
        let data = frame.get(at + Mad::BYTES..)?;
        let claimed = usize::try_from(roce.payload_bytes)
            .ok()?
            .checked_sub(Mad::BYTES)?;
        let length = data.len().min(claimed).min(Mad::DATA_BYTES);
        Some(Self {
            mad,
            data: data.get(..length)?,
        })
    }
}

impl fmt::Display for Mad<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (class, method, attribute) = (self.class(), self.method(), self.attribute());
        write!(
            f,
            "MAD class 0x{class:02x} method 0x{method:02x} attribute 0x{attribute:04x}"
        )
    }
}
