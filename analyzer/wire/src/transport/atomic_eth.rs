//! Atomic extended transport header, 28 bytes (IBTA 9.3.4).
//!
//! ```text
//!  0..8     virtual address
//!  8..12    remote key
//! 12..20    swap data (CmpSwap) or add data (FetchAdd)
//! 20..28    compare data
//! ```

use core::fmt;

use crate::bytes::part;

/// View of an atomic extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtomicEth<'a>(pub &'a [u8; 28]);

impl AtomicEth<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 28;

    /// The address in the responder's memory.
    pub const fn virtual_address(&self) -> u64 {
        u64::from_be_bytes(part::<0, 8, 28>(self.0))
    }

    /// The key that allows the access.
    pub const fn remote_key(&self) -> u32 {
        u32::from_be_bytes(part::<8, 4, 28>(self.0))
    }

    /// Value that is written (CmpSwap) or added (FetchAdd).
    pub const fn swap_or_add(&self) -> u64 {
        u64::from_be_bytes(part::<12, 8, 28>(self.0))
    }

    /// Value that the memory must have for a CmpSwap to write.
    pub const fn compare(&self) -> u64 {
        u64::from_be_bytes(part::<20, 8, 28>(self.0))
    }
}

impl fmt::Display for AtomicEth<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "atomic at 0x{:x} key 0x{:x}",
            self.virtual_address(),
            self.remote_key()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_by_ibta_9_3_4() {
        let bytes = core::array::from_fn(|i| u8::try_from(i).unwrap_or(0));
        let atomic = AtomicEth(&bytes);
        assert_eq!(atomic.virtual_address(), 0x0001_0203_0405_0607);
        assert_eq!(atomic.remote_key(), 0x0809_0a0b);
        assert_eq!(atomic.swap_or_add(), 0x0c0d_0e0f_1011_1213);
        assert_eq!(atomic.compare(), 0x1415_1617_1819_1a1b);
    }
}
