//! The latest PSNs that receivers NAKed, for each pair of hosts. They tell a retransmission from a late packet without
//! knowing which queue pairs belong together.

use std::hash::{BuildHasher, Hasher};

use roce_model::{FlowKey, Span, TapId, Time};
use roce_wire::{Address, Psn};

/// NAKs remembered of a pair of hosts.
const MAX_NAKS: usize = 8;
/// Pairs of hosts, by hash; of two that share a place the later one has it.
const MAX_HOST_PAIRS: usize = 256;
/// A sender answers a NAK within its timeouts: within a second.
const MAX_AGE: Span = Span::SECOND;
/// Go-back-N sends everything from the PSN of the NAK on; so far beyond it a retransmitted packet is looked for.
const MAX_OFFSET: i32 = 1024;

#[derive(Clone, Copy, Debug, Default)]
struct Nak {
    psn: Psn,
    /// 0: the place is empty.
    time: Time,
}

/// True if a receiver has NAKed a PSN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NakMatch {
    /// No NAK is near the PSN.
    None,
    /// A PSN up to [`MAX_OFFSET`] before it was NAKed.
    Before,
    /// It was NAKed itself.
    Exact,
}

/// The NAKs of one pair of hosts at one tap.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    /// Tap, requester, responder.
    key: (TapId, Address, Address),
    naks: [Nak; MAX_NAKS],
    next: usize,
    /// The latest fatal NAK.
    fatal: Nak,
    /// When a receiver last had no buffer; 0: never.
    refused: Time,
    /// A request came late.
    is_reordered: bool,
    /// Answers to requests of some flow are captured.
    is_answered: bool,
    /// The longest time that senders took to answer a NAK, and how many answers that is the longest of; 0: none did.
    answer: Span,
    answers: u32,
}

#[derive(Debug)]
pub(crate) struct RecentNaks {
    pairs: Box<[Pair]>,
    /// Hasher with a fixed seed, so that pairs share a place in every run alike and results do not change.
    hasher: foldhash::fast::FixedState,
}

impl Default for RecentNaks {
    fn default() -> Self {
        Self {
            pairs: vec![Pair::default(); MAX_HOST_PAIRS].into_boxed_slice(),
            hasher: foldhash::fast::FixedState::with_seed(0),
        }
    }
}

impl RecentNaks {
    #[expect(clippy::cast_possible_truncation, reason = "a remainder of a small number")]
    fn place(&self, (tap, requester, responder): &(TapId, Address, Address)) -> usize {
        let mut state = self.hasher.build_hasher();
        state.write_u32(tap.0);
        state.write(requester.octets());
        state.write(responder.octets());
        (state.finish() % MAX_HOST_PAIRS as u64) as usize
    }

    /// The pair of hosts with this key, which takes the place of another one.
    fn pair_mut(&mut self, key: (TapId, Address, Address)) -> &mut Pair {
        let place = self.place(&key);
        let pair = &mut self.pairs[place];
        if pair.key != key {
            *pair = Pair {
                key,
                ..Pair::default()
            };
        }
        pair
    }

    /// The pair of hosts that send the requests of `key` and answer them, if it is remembered.
    fn pair(&self, tap: TapId, key: &FlowKey) -> Option<&Pair> {
        let key = (tap, key.source, key.destination);
        Some(&self.pairs[self.place(&key)]).filter(|pair| pair.key == key)
    }

    /// A NAK for `psn` in the flow of `key` at `tap`, which goes from responder to requester.
    pub(crate) fn note(&mut self, tap: TapId, key: &FlowKey, psn: Psn, time: Time) {
        let pair = self.pair_mut((tap, key.destination, key.source));
        pair.naks[pair.next] = Nak { psn, time };
        pair.next = (pair.next + 1) % MAX_NAKS;
    }

    /// A NAK for `psn` in the flow of `key` at `tap` ended the request with it.
    pub(crate) fn note_fatal(&mut self, tap: TapId, key: &FlowKey, psn: Psn, time: Time) {
        self.pair_mut((tap, key.destination, key.source)).fatal = Nak { psn, time };
    }

    /// When a fatal NAK last named just `psn`, from some receiver at the destination of `key` to a sender at its source.
    pub(crate) fn fatal(&self, tap: TapId, key: &FlowKey, psn: Psn) -> Option<Time> {
        let fatal = self.pair(tap, key)?.fatal;
        (fatal.time.0 != 0 && fatal.psn == psn).then_some(fatal.time)
    }

    /// An RNR NAK in the flow of `key` at `tap`, which goes from responder to requester.
    pub(crate) fn note_refusal(&mut self, tap: TapId, key: &FlowKey, time: Time) {
        self.pair_mut((tap, key.destination, key.source)).refused = time;
    }

    /// A request of the flow of `key` came late at `tap`: others between its hosts may, too.
    pub(crate) fn note_late(&mut self, tap: TapId, key: &FlowKey) {
        self.pair_mut((tap, key.source, key.destination)).is_reordered = true;
    }

    /// Answers to the flow of `key` are captured at `tap`: those to others between its hosts are, too.
    pub(crate) fn note_answered(&mut self, tap: TapId, key: &FlowKey) {
        self.pair_mut((tap, key.source, key.destination)).is_answered = true;
    }

    /// True if answers to some flow between the hosts of `key` are captured at `tap`.
    pub(crate) fn is_answered(&self, tap: TapId, key: &FlowKey) -> bool {
        self.pair(tap, key).is_some_and(|pair| pair.is_answered)
    }

    /// The flow of `key` at `tap` answered NAKs after `took` at the most, `answers` more of them than at the last call.
    pub(crate) fn note_answer(&mut self, tap: TapId, key: &FlowKey, took: Span, answers: u32) {
        if took.0 == 0 {
            return;
        }
        let pair = self.pair_mut((tap, key.source, key.destination));
        pair.answer = pair.answer.max(took);
        pair.answers = pair.answers.saturating_add(answers);
    }

    /// The longest time that flows between the hosts of `key` took to answer a NAK at `tap`, and how many answers that is the longest
    /// of; 0: not known.
    pub(crate) fn longest_answer(&self, tap: TapId, key: &FlowKey) -> (Span, u32) {
        self.pair(tap, key)
            .map_or((Span(0), 0), |pair| (pair.answer, pair.answers))
    }

    /// True if requests between the hosts of `key` came late at `tap`.
    pub(crate) fn is_reordered(&self, tap: TapId, key: &FlowKey) -> bool {
        self.pair(tap, key).is_some_and(|pair| pair.is_reordered)
    }

    /// True if some receiver of the destination has just sent an RNR NAK for requests from the source of `key`.
    pub(crate) fn is_refused(&self, tap: TapId, key: &FlowKey, time: Time) -> bool {
        self.pair(tap, key)
            .is_some_and(|pair| pair.refused.0 != 0 && time.since(pair.refused) <= MAX_AGE)
    }

    /// The latest NAK of a receiver of the requests of `key`, at `time`, for `psn` or one that is less than `reach` before: how long ago it
    /// came, and PSNs between.
    pub(crate) fn latest_for(
        &self,
        tap: TapId,
        key: &FlowKey,
        psn: Psn,
        time: Time,
        reach: u32,
    ) -> Option<(Span, u32)> {
        let naks = self.pair(tap, key)?.naks.iter();
        let of = |nak: &Nak| {
            let ahead = u32::try_from(psn.offset_from(nak.psn)).ok()?;
            (nak.time.0 != 0 && nak.time <= time && ahead < reach).then(|| (time.since(nak.time), ahead))
        };
        naks.filter_map(of).min()
    }

    /// The match of `psn` with the PSNs that the receiver of the requests of `key` NAKed within [`MAX_AGE`].
    pub(crate) fn matching(&self, tap: TapId, key: &FlowKey, psn: Psn, time: Time) -> NakMatch {
        let naks = self.pair(tap, key).map_or(&[][..], |pair| &pair.naks);
        let naks = naks
            .iter()
            .filter(|nak| nak.time.0 != 0 && nak.time <= time && time.since(nak.time) <= MAX_AGE);
        let ahead = naks.map(|nak| psn.offset_from(nak.psn));
        ahead
            .filter(|ahead| (0..MAX_OFFSET).contains(ahead))
            .fold(NakMatch::None, |nak_match, ahead| match (nak_match, ahead) {
                (NakMatch::Exact, _) | (_, 0) => NakMatch::Exact,
                _ => NakMatch::Before,
            })
    }
}
