//! The PSNs that receivers asked for with sequence NAKs: the latest ones of each pair of hosts. They tell a packet
//! that was sent again from a late one without knowing which queue pairs belong together.

use std::hash::{BuildHasher, Hasher};

use roce_model::{FlowKey, Nanos};
use roce_wire::{Address, Psn};

/// NAKs remembered of a pair of hosts.
const KEPT: usize = 8;
/// Pairs of hosts, by hash; two that share a place share its NAKs.
const PAIRS: usize = 256;
/// A sender answers a NAK within its timeouts: within a second.
const WINDOW: Nanos = Nanos(Nanos::SECOND);
/// Go-back-N sends everything from the PSN of the NAK on; so far beyond it a resent packet is looked for.
const REACH: i32 = 1024;

#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    psn: Psn,
    /// 0: nothing was asked for.
    time: Nanos,
}

#[derive(Debug)]
pub(crate) struct AskedFor {
    pairs: Box<[([Asked; KEPT], usize)]>,
    hasher: foldhash::fast::RandomState,
}

impl Default for AskedFor {
    fn default() -> Self {
        Self {
            pairs: vec![([Asked::default(); KEPT], 0); PAIRS].into_boxed_slice(),
            hasher: foldhash::fast::RandomState::default(),
        }
    }
}

impl AskedFor {
    #[expect(clippy::cast_possible_truncation, reason = "a remainder of a small number")]
    fn place(&self, requester: &Address, responder: &Address) -> usize {
        let mut state = self.hasher.build_hasher();
        state.write(requester.octets());
        state.write(responder.octets());
        (state.finish() % PAIRS as u64) as usize
    }

    /// A NAK for `psn` in the flow of `key`, which goes from responder to requester.
    pub(crate) fn note(&mut self, key: &FlowKey, psn: Psn, time: Nanos) {
        let place = self.place(&key.destination, &key.source);
        let (asked, next) = &mut self.pairs[place];
        asked[*next] = Asked { psn, time };
        *next = (*next + 1) % KEPT;
    }

    /// Whether the receiver of the requests of `key` asked a moment ago for `psn`, or for one before it, after which
    /// it follows.
    pub(crate) fn is_asked_for(&self, key: &FlowKey, psn: Psn, time: Nanos) -> bool {
        let (asked, _) = &self.pairs[self.place(&key.source, &key.destination)];
        asked.iter().any(|asked| {
            (0..REACH).contains(&psn.offset_from(asked.psn))
                && asked.time.0 != 0
                && asked.time <= time
                && time.since(asked.time) <= WINDOW
        })
    }
}
