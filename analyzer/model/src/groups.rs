//! Hosts as hashes: to which groups of flows a timeline row belongs, before the addresses are known. Every part of a
//! run hashes alike.

use std::hash::{BuildHasher, Hasher};

use crate::TapId;
use roce_wire::Address;

/// To which groups a flow belongs, as hashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Groups {
    /// Tap and destination.
    pub destination: u64,
    /// Tap and source, hashed as a destination is: what the host of this number receives.
    pub source: u64,
    /// Tap, source and destination.
    pub pair: u64,
}

impl Groups {
    /// The groups of a flow from `source` to `destination`.
    pub fn new(tap: TapId, source: Address, destination: Address) -> Self {
        let (hashed, mut pair) = host(tap, destination);
        pair.write(source.octets());
        Self {
            destination: hashed,
            source: host(tap, source).0,
            pair: pair.finish(),
        }
    }
}

/// The hash of a host at a tap, and the hasher, to which more can be added.
fn host(tap: TapId, address: Address) -> (u64, impl Hasher) {
    let mut state = foldhash::fast::FixedState::with_seed(0).build_hasher();
    state.write_u32(tap.0);
    state.write(address.octets());
    (state.finish(), state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_one_hash_at_a_tap() {
        let (a, b) = (Address::v4([10, 0, 0, 1]), Address::v4([10, 0, 0, 2]));
        let there = Groups::new(TapId(0), a, b);
        let back = Groups::new(TapId(0), b, a);
        assert_eq!((there.destination, there.source), (back.source, back.destination));
        assert_ne!(there.pair, back.pair);
        assert_ne!(there.destination, Groups::new(TapId(1), a, b).destination);
    }
}
