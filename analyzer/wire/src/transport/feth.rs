//! Flush extended transport header, 4 bytes (IBTA annex A19; Linux drivers/infiniband/sw/rxe/rxe_hdr.h).
//!
//! ```text
//!  0..4     reserved | selectivity 0x30 (0 range, 1 whole region) | placement 0x0f (1 visible, 2 persistent)
//! ```

use core::fmt;

/// View of a flush extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feth<'a>(pub &'a [u8; 4]);

impl Feth<'_> {
    /// Its length in bytes.
    pub const BYTES: usize = 4;

    /// The placement: 1 globally visible, 2 persistent, 3 both.
    pub const fn placement(&self) -> u8 {
        self.0[3] & 0x0f
    }

    /// The selectivity: 0 the range of the RETH, 1 the whole memory region.
    pub const fn selectivity(&self) -> u8 {
        self.0[3] >> 4 & 3
    }
}

impl fmt::Display for Feth<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "flush placement {} selectivity {}",
            self.placement(),
            self.selectivity()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_by_rxe_hdr_h() {
        // FETH_PLT_MASK 0x0f, FETH_SEL_MASK 0x30.
        let feth = Feth(&[0, 0, 0, 0x12]);
        assert_eq!((feth.placement(), feth.selectivity()), (2, 1));
    }
}
