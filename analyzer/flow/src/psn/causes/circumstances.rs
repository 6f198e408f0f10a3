//! Circumstances of a run of retransmissions: packets before it that may have made the sender begin it.

use roce_model::Span;

/// A NAK or an RNR NAK for the PSN that a run begins at, or for one before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NamedPsn {
    /// How long before the run it came.
    pub(crate) before: Span,
    /// The timer that it names, of an RNR NAK; 0: it names none.
    pub(crate) timer: Span,
    /// PSNs from the one that it names to the begin of the run.
    pub(crate) ahead: u32,
    /// Another run began at its PSN before.
    pub(crate) is_answered: bool,
}

/// The times for which the sender's timer may have run when a run began, the shortest first: since the last progress, since a NAK for what
/// is outstanding, and since the run before. 0 where there was none, or where it is no later.
pub(crate) type Waits = [Span; 3];

/// Packets and silences captured before a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Circumstances {
    /// The latest sequence NAK.
    pub(crate) nak: Option<NamedPsn>,
    /// The latest RNR NAK.
    pub(crate) rnr: Option<NamedPsn>,
    /// The time since an answer came to something behind the READ or atomic at which the run begins; 0: none did.
    pub(crate) implied: Span,
    pub(crate) waits: Waits,
    /// How long the sender had sent nothing.
    pub(crate) silence: Span,
    /// PSNs from the first one that is not acknowledged to the begin of the run; negative: the sender repeats what is acknowledged.
    /// `None`: nothing was acknowledged yet.
    pub(crate) beyond_acked: Option<i64>,
    /// The time since the gap in which the first packet of the run was missing; 0: it was captured before.
    pub(crate) since_gap: Span,
    /// PSNs of the flow so far, those of them that were missing, and of these those that nobody requested again.
    pub(crate) psns: u64,
    pub(crate) missing: u64,
    pub(crate) not_captured: u64,
    /// The sender has just been notified of congestion: it may take any time to answer a NAK.
    pub(crate) is_slowed: bool,
    /// It begins with a READ or an atomic.
    pub(crate) is_fetch: bool,
    /// No answer to the flow was captured.
    pub(crate) is_blind: bool,
    /// Answers show that the sender sent packets in its silence that were not captured.
    pub(crate) has_moved: bool,
}

impl Circumstances {
    /// True if the capture shows that the sender sent nothing in its silence. It does not where answers show packets of that time which it
    /// lacks, or where it lacks most packets: silence is its own there, and no sign of a timer.
    pub(crate) fn shows_silence(&self) -> bool {
        !self.has_moved && self.not_captured <= self.psns / 2
    }

    /// How long the sender stood still before the run, as far as the capture shows it.
    pub(crate) fn stood_still(&self) -> Span {
        if self.shows_silence() {
            self.silence
        } else {
            Span(0)
        }
    }
}

/// Waits for progress that are kept: a timer that would have expired in four of them is none.
pub(crate) const MAX_WAITS: usize = 8;

/// Keeps the longest waits, in their order.
pub(crate) fn keep_longest(waits: &mut Vec<Span>, wait: Span) {
    let place = waits.partition_point(|kept| *kept < wait);
    waits.insert(place, wait);
    if waits.len() > MAX_WAITS {
        waits.remove(0);
    }
}
