//! Whole numbers as groups of seven bits, the lowest first: LEB128 (DWARF 5, section 7.6).

/// Maximum number of bytes of a number: 64 bits in groups of seven.
pub(super) const MAX_BYTES: usize = 10;

/// Writes a number from `at` on, where up to [`MAX_BYTES`] have room. Returns the place behind it.
pub(super) fn write(bytes: &mut [u8], mut at: usize, mut value: u64) -> usize {
    while value >= 0x80 {
        bytes[at] = value.to_le_bytes()[0] | 0x80;
        value >>= 7;
        at += 1;
    }
    bytes[at] = value.to_le_bytes()[0];
    at + 1
}
