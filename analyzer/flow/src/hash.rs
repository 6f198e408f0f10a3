//! Hashes of keys, addresses and packets.

use std::hash::{BuildHasher, Hasher, RandomState};

use roce_wire::Address;

/// The numbers that make one hash of keys differ from another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seeds(pub(crate) [u64; 6]);

impl Seeds {
    /// Seeds derived from one number (SplitMix64, Steele, Lea and Flood 2014).
    pub(crate) fn from_number(mut number: u64) -> Self {
        Self(core::array::from_fn(|_| {
            number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = number;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        }))
    }

    pub(crate) fn random() -> Self {
        Self(core::array::from_fn(|i| {
            let mut hasher = RandomState::new().build_hasher();
            hasher.write_usize(i);
            hasher.finish()
        }))
    }

    #[inline]
    pub(crate) fn hash(&self, key: &[u64; 6]) -> u64 {
        let Self(seeds) = self;
        let source = fold(key[0] ^ seeds[0], key[1] ^ seeds[1]);
        let destination = fold(key[2] ^ seeds[2], key[3] ^ seeds[3]);
        fold(
            source ^ key[4] ^ seeds[4],
            destination.rotate_left(32) ^ key[5] ^ seeds[5],
        )
    }
}

/// The two halves of a product, folded into one.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the two halves are what is wanted"
)]
pub(crate) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// An address as two words.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the two halves are what is wanted"
)]
pub(crate) fn halves(address: &Address) -> [u64; 2] {
    let both = u128::from_le_bytes(*address.octets());
    [both as u64, (both >> 64) as u64]
}
