//! Releases of NCCL, and what differs between their messages over verbs (src/transport/net_ib.cc up to 2.28, src/transport/net_ib/ from 2.29).

use serde::Deserialize;

use crate::record::frame::CreditLayout;

/// A release of NCCL: `2.21`, or `2.21.5`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct NcclRelease {
    minor: u32,
}

/// Ring into which a receiver writes its credits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CreditRing {
    pub layout: CreditLayout,
    /// Messages of credits until the ring wraps.
    pub slots: u64,
    /// Bytes from a slot to the next.
    pub stride: u64,
}

impl NcclRelease {
    /// Releases that were made, by their minor number.
    const RELEASED: std::ops::RangeInclusive<u32> = 3..=30;

    const fn new(minor: u32) -> Self {
        Self { minor }
    }

    pub(crate) fn ring(self) -> CreditRing {
        let (layout, slots, elements) = match self.minor {
            ..=7 => (CreditLayout::V2_3, 128, 1),
            8..=11 => (CreditLayout::V2_8, 8, 1),
            12..=18 => (CreditLayout::V2_12, 64, 8),
            19 => (CreditLayout::V2_12, 256, 8),
            20..=23 => (CreditLayout::V2_20, 256, 8),
            24..=29 => (CreditLayout::V2_24, 256, 8),
            _ => (CreditLayout::V2_30, 256, 8),
        };
        CreditRing {
            layout,
            slots,
            stride: u64::from(layout.bytes()) * elements,
        }
    }

    /// Immediate data of a number, as the 32 bits that stand big-endian on the wire. Up to 2.28 the sender leaves the bytes in the order of
    /// its processor, which is little-endian.
    pub(crate) const fn immediate(self, value: u32) -> u32 {
        if self.minor >= 29 {
            value
        } else {
            value.swap_bytes()
        }
    }

    /// True if several messages may share a credit.
    pub(crate) const fn groups(self) -> bool {
        self.minor >= 12
    }

    /// The distance of a receiver's records of lengths; none where the immediate data has one bit for each message.
    pub(crate) const fn length_records(self) -> Option<u64> {
        match self.minor {
            ..=17 => None,
            18..=28 => Some(32),
            _ => Some(160),
        }
    }

    /// True if each message is cut over all queue pairs unless a setting says otherwise (`NCCL_IB_SPLIT_DATA_ON_QPS`).
    pub(crate) const fn splits(self) -> bool {
        self.minor < 20
    }

    /// True if the immediate data may be the request's number.
    pub(crate) const fn numbers_requests(self) -> bool {
        self.minor >= 29
    }
}

impl Default for NcclRelease {
    fn default() -> Self {
        Self::new(21)
    }
}

impl TryFrom<String> for NcclRelease {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut parts = text.split('.');
        let minor = match (parts.next(), parts.next().map(str::parse)) {
            (Some("2"), Some(Ok(minor))) if Self::RELEASED.contains(&minor) => minor,
            _ => return Err(format!("'{text}' is no release of NCCL from 2.3 to 2.30")),
        };
        Ok(Self::new(minor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read() {
        let read = |text: &str| NcclRelease::try_from(text.to_owned());
        assert_eq!(read("2.21.5"), Ok(NcclRelease::new(21)));
        assert_eq!(read("2.3"), Ok(NcclRelease::new(3)));
        for text in ["2", "2.x", "2.31", "3.1", "2.2", ""] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    /// Strides: 128 slots of 24 bytes, 8 of 32, then 64 or 256 of 8 elements.
    #[test]
    fn rings_have_the_sizes_of_their_releases() {
        for (minor, slots, stride) in [
            (3, 128, 24),
            (8, 8, 32),
            (11, 8, 32),
            (12, 64, 256),
            (18, 64, 256),
            (19, 256, 256),
            (20, 256, 512),
            (24, 256, 512),
            (30, 256, 512),
        ] {
            let ring = NcclRelease::new(minor).ring();
            assert_eq!((ring.slots, ring.stride), (slots, stride), "2.{minor}");
        }
    }

    #[test]
    fn immediates_change_their_order_in_2_29() {
        assert_eq!(NcclRelease::new(28).immediate(0x0001_0000), 0x0000_0100);
        assert_eq!(NcclRelease::new(29).immediate(0x0001_0000), 0x0001_0000);
    }
}
