//! Credits of NCCL's transport over verbs (`net_ib`): elements of the ring into which a receiver writes where the sender may put data
//! (`struct ncclIbSendFifo` of NVIDIA/nccl, src/transport/net_ib). All fields are little-endian.

/// Layout of a credit's element, named after the first release that has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CreditLayout {
    /// Address, size, number, key, flag: 24 bytes.
    V2_3,
    /// The fields of 2.3, and 8 bytes of padding.
    V2_8,
    /// Address, size, key, count, tag, number of 64 bits: 32 bytes.
    V2_12,
    /// Two keys; 64 bytes.
    V2_20,
    /// A size of 64 bits, four keys.
    V2_24,
    /// Eight keys.
    V2_30,
}

/// Place and order of an element's fields, in bytes from its begin.
struct Places {
    bytes: usize,
    size_bytes: usize,
    key: usize,
    /// The number of credits in one message, and the rank of the sender.
    count_and_tag: Option<(usize, usize)>,
    number: (usize, usize),
    /// A flag that the element is valid.
    ready: Option<usize>,
}

impl CreditLayout {
    /// Its length in bytes.
    pub const fn bytes(self) -> u16 {
        match self {
            Self::V2_3 => 24,
            Self::V2_8 | Self::V2_12 => 32,
            Self::V2_20 | Self::V2_24 | Self::V2_30 => 64,
        }
    }

    fn places(self) -> Places {
        let (size_bytes, key, count_and_tag, number, ready) = match self {
            Self::V2_3 | Self::V2_8 => (4, 16, None, (12, 4), Some(20)),
            Self::V2_12 => (4, 12, Some((16, 20)), (24, 8), None),
            Self::V2_20 => (4, 12, Some((20, 24)), (32, 8), None),
            Self::V2_24 => (8, 16, Some((32, 36)), (40, 8), None),
            Self::V2_30 => (8, 16, Some((48, 52)), (56, 8), None),
        };
        Places {
            bytes: usize::from(self.bytes()),
            size_bytes,
            key,
            count_and_tag,
            number,
            ready,
        }
    }
}

/// The elements of one message of credits: one for each sender that shares the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Credits {
    /// Layout of each element.
    pub layout: CreditLayout,
    /// The address of the first element's buffer.
    pub address: u64,
    /// The distance from a buffer to that of the next element.
    pub distance: u64,
    /// Bytes of each buffer.
    pub size: u64,
    /// The key of the buffers.
    pub key: u32,
    /// The number of the message since the connection began: from 0 up to 2.11, from 1 later.
    pub number: u64,
    /// Number of elements, 1 to 8.
    pub count: u8,
    /// The rank that each element is for.
    pub tags: [u16; Self::MAX],
}

impl Credits {
    /// Most elements of one message (`NCCL_NET_IB_MAX_RECVS`).
    pub const MAX: usize = 8;

    /// The length of all elements.
    pub const fn bytes(&self) -> u16 {
        self.layout.bytes() * self.count as u16
    }

    /// All elements.
    pub(super) fn encode(&self) -> Vec<u8> {
        let places = self.layout.places();
        let mut bytes = vec![0; places.bytes * usize::from(self.count)];
        let tags = self.tags.iter();
        for ((element, tag), step) in bytes.chunks_exact_mut(places.bytes).zip(tags).zip(0_u64..) {
            let address = self.address + step * self.distance;
            put(element, 0, 8, address);
            put(element, 8, places.size_bytes, self.size);
            put(element, places.key, 4, self.key.into());
            put(element, places.number.0, places.number.1, self.number);
            if let Some((count, place)) = places.count_and_tag {
                put(element, count, 4, self.count.into());
                put(element, place, 4, (*tag).into());
            }
            if let Some(ready) = places.ready {
                put(element, ready, 4, 1);
            }
        }
        bytes
    }
}

/// Writes the low `bytes` of a value, the lowest first.
fn put(element: &mut [u8], at: usize, bytes: usize, value: u64) {
    let value = value.to_le_bytes();
    if let (Some(to), Some(from)) = (element.get_mut(at..at + bytes), value.get(..bytes)) {
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offsets and lengths are those of the structures of NCCL 2.3.5, 2.8.3, 2.12.7, 2.20.3, 2.24.3 and 2.30.
    #[test]
    fn elements_have_the_fields_of_their_releases() {
        let of = |layout| {
            Credits {
                layout,
                address: 0x1122_3344_5566_7788,
                distance: 0,
                size: 0x0010_0000,
                key: 0xaabb_ccdd,
                number: 0x0102,
                count: 1,
                tags: [7; 8],
            }
            .encode()
        };
        let address = [0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11];
        let key = [0xdd, 0xcc, 0xbb, 0xaa];
        for (layout, bytes, key_at, tag_at, number_at) in [
            (CreditLayout::V2_3, 24, 16, None, 12),
            (CreditLayout::V2_8, 32, 16, None, 12),
            (CreditLayout::V2_12, 32, 12, Some(20), 24),
            (CreditLayout::V2_20, 64, 12, Some(24), 32),
            (CreditLayout::V2_24, 64, 16, Some(36), 40),
            (CreditLayout::V2_30, 64, 16, Some(52), 56),
        ] {
            let element = of(layout);
            assert_eq!(element.len(), bytes, "{layout:?}");
            assert_eq!(element[..8], address);
            assert_eq!(element[8..12], [0, 0, 0x10, 0]);
            assert_eq!(element[key_at..key_at + 4], key);
            assert_eq!(element[number_at..number_at + 2], [2, 1]);
            if let Some(at) = tag_at {
                assert_eq!(element[at..at + 4], [7, 0, 0, 0]);
                assert_eq!(element[at - 4..at], [1, 0, 0, 0]);
            }
        }
    }

    #[test]
    fn each_element_has_its_buffer_and_its_tag() {
        let credits = Credits {
            layout: CreditLayout::V2_20,
            address: 0x1000,
            distance: 0x100,
            size: 64,
            key: 1,
            number: 9,
            count: 2,
            tags: [4, 5, 0, 0, 0, 0, 0, 0],
        };
        let bytes = credits.encode();
        assert_eq!(bytes.len(), 128);
        assert_eq!(bytes[64..66], [0x00, 0x11]);
        assert_eq!((bytes[24], bytes[64 + 24]), (4, 5));
        assert_eq!((bytes[20], bytes[64 + 20]), (2, 2));
    }
}
