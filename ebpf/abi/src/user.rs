//! Reading records from bytes.

#![expect(unsafe_code, reason = "bytes of the kernel become records")]

use aya::Pod;

use crate::{
    AsyncRecord, ConnectionRecord, DropRecord, FlowCounts, FlowKey, HostHead, Layout, Losses, ModifyRecord,
    PacketHead, QueuePairRecord,
};

macro_rules! pod {
    ($($type:ty),+ $(,)?) => { $(
        // SAFETY: a `repr(C)` struct of integers and arrays of them, whose fields leave no padding
        // (`no_padding` below verifies it). So every bit pattern is valid and none of its bytes is
        // undefined.
        unsafe impl Pod for $type {}
    )+ };
}

pod!(
    FlowKey,
    FlowCounts,
    Losses,
    PacketHead,
    HostHead,
    QueuePairRecord,
    ModifyRecord,
    ConnectionRecord,
    AsyncRecord,
    DropRecord,
    Layout,
);

/// The record at the beginning of `bytes`; `None` when they are too few.
pub fn read<T: Pod>(bytes: &[u8]) -> Option<T> {
    if bytes.len() < size_of::<T>() {
        return None;
    }
    // SAFETY: there are enough bytes, and any content of them is a `T`.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_no_padding() {
        // The sums of their fields' sizes.
        assert_eq!(size_of::<FlowKey>(), 16 + 16 + 3 * 4);
        assert_eq!(size_of::<FlowCounts>(), 8 * (3 + 4 + 16 + 8 + 2));
        assert_eq!(size_of::<Losses>(), 4 * 8);
        assert_eq!(size_of::<PacketHead>(), 8 + 3 * 4 + 4 * 2 + 4);
        assert_eq!(size_of::<HostHead>(), 8 + 8 + 4 + 4 + 16);
        assert_eq!(size_of::<QueuePairRecord>(), 40 + 64 + 8);
        assert_eq!(size_of::<ModifyRecord>(), 40 + 64 + 32 + 8 * 4 + 8);
        assert_eq!(size_of::<ConnectionRecord>(), 40 + 64 + 56 + 16);
        assert_eq!(size_of::<AsyncRecord>(), 40 + 64 + 8);
        assert_eq!(size_of::<DropRecord>(), 40 + 16 + 32 + 12 + 4);
        assert_eq!(size_of::<Layout>() % 4, 0);
    }

    #[test]
    fn short_bytes_are_no_record() {
        assert_eq!(read::<Losses>(&[0; 31]), None);
        let mut bytes = [0; 40];
        bytes[24] = 7;
        assert_eq!(read::<Losses>(&bytes).map(|losses| losses.events), Some(7));
    }
}
