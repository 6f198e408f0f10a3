//! The other direction of a flow.

use crate::pairing::evidence::{Evidence, Peer};
use crate::taps::vantage::Other;

/// The other direction of a flow: as it is linked, as far as it was known, and what speaks for it until it is.
#[derive(Clone, Debug)]
pub(crate) struct OtherDirection {
    /// The hash of the pair of the other direction.
    back: u64,
    /// The other direction, as it is linked now.
    link: Option<Peer>,
    /// The other direction as far as it was known in this epoch.
    peer: Option<Peer>,
    /// Knowledge of the other direction about the tap's place, when that has closed.
    other: Option<Other>,
    /// Evidence for the other direction, until that is known.
    evidence: Option<Box<Evidence>>,
}

impl OtherDirection {
    /// `back`: the hash of the pair of the other direction.
    pub(super) fn new(back: u64) -> Self {
        Self {
            back,
            link: None,
            peer: None,
            other: None,
            evidence: None,
        }
    }

    /// The hash of the pair of the other direction.
    pub(crate) fn back(&self) -> u64 {
        self.back
    }

    /// The other direction, as it is linked now.
    pub(crate) fn link(&self) -> Option<Peer> {
        self.link
    }

    /// The other direction, as far as it was known in this epoch.
    pub(crate) fn peer(&self) -> Option<Peer> {
        self.peer
    }

    /// It is known from now on: nothing has to speak for it any more.
    pub(crate) fn link_to(&mut self, peer: Peer) {
        self.link = Some(peer);
        self.evidence = None;
    }

    /// It is not known any more.
    pub(crate) fn unlink(&mut self) {
        self.link = None;
    }

    /// Sets the other direction of this epoch, or forgets it.
    pub(super) fn set_peer(&mut self, peer: Option<Peer>) {
        self.peer = peer;
    }

    /// Knowledge of the other direction about the tap's place, when that has closed.
    pub(crate) fn other(&self) -> Option<Other> {
        self.other
    }

    /// The other direction closes, and leaves its knowledge; `None`: another epoch begins.
    pub(crate) fn set_other(&mut self, other: Option<Other>) {
        self.other = other;
    }

    /// The evidence for some flow as the other direction, if there is any.
    pub(crate) fn evidence(&self) -> Option<&Evidence> {
        self.evidence.as_deref()
    }

    /// The evidence, to be added to.
    pub(crate) fn evidence_mut(&mut self) -> &mut Evidence {
        self.evidence.get_or_insert_default()
    }

    /// Nothing is known that would speak for a flow.
    pub(crate) fn forget_evidence(&mut self) {
        self.evidence = None;
    }
}
