//! Packets that a switch has trimmed: their PSNs are known, and have not arrived.

use roce_wire::Psn;

use crate::psn::request::{LARGEST_GAP, Request, Requests, STALE, Verdict, psn_of};
use crate::psn::tracker::Tracker;
use crate::psn::tracker::behind::PsnSighting;

/// Place of a trimmed packet among the PSNs of its flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct TrimmedPlace {
    /// It is beyond the highest PSN: the first of those that are missing up to it, itself included, and their number.
    pub(crate) skipped: Option<(Psn, u32)>,
    /// It is the first that shows of its PSN that it was lost.
    pub(crate) is_lost: bool,
}

impl Tracker {
    /// Takes a request that a switch has trimmed.
    pub(crate) fn trimmed(&mut self, requests: &mut Requests, request: &Request) -> TrimmedPlace {
        let ahead = request.packet.psn.offset_from(requests.expected());
        let is_of_epoch = requests.next != 0 && ahead > -STALE && ahead <= LARGEST_GAP;
        if !is_of_epoch || self.epoch.is_connected() || self.reads.is_open() {
            return TrimmedPlace::default();
        }
        let place = if ahead < 0 {
            let at = requests.next - u64::from(ahead.unsigned_abs());
            TrimmedPlace {
                skipped: None,
                is_lost: self.holes.as_mut().is_some_and(|holes| holes.was_trimmed(at)),
            }
        } else {
            self.trimmed_ahead(requests, request, ahead.unsigned_abs())
        };
        self.set_disturbed(requests);
        place
    }

    /// One that is the next, or `ahead` of that.
    fn trimmed_ahead(&mut self, requests: &mut Requests, request: &Request, ahead: u32) -> TrimmedPlace {
        self.settle_before_new(requests.next, request.packet.time);
        let gap = requests.next;
        let at = gap + u64::from(ahead);
        requests.next = at + 1;
        self.open_hole(gap, at + 1, request);
        TrimmedPlace {
            skipped: Some((psn_of(gap), ahead + 1)),
            is_lost: self.holes.as_mut().is_some_and(|holes| holes.was_trimmed(at)),
        }
    }

    /// True if a switch has trimmed the packet at `at`, which is missing since.
    pub(super) fn is_trimmed(&self, at: u64) -> bool {
        self.holes.as_ref().is_some_and(|holes| holes.is_trimmed(at))
    }

    /// A packet that had come trimmed comes whole: its sender has sent it again.
    pub(super) fn again_after_trim(&mut self, at: u64, span: u64, next: u64, request: &Request) -> Verdict {
        if !self.continues(at, true) {
            self.settle_pending(next, request.packet.time);
            self.end_run();
        }
        self.again(at, span, next, request, PsnSighting::Missing)
    }
}
