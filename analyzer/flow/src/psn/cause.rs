//! Why a sender falls back.

use roce_model::Span;

use crate::psn::request::SILENCE;

/// Why a sender fell back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trigger {
    /// A sequence NAK.
    Nak,
    /// READ responses were missing, or came out of their order.
    ImpliedNak,
    /// An RNR NAK, after its timer.
    Rnr,
    /// Nothing came for as long as the sender's timer.
    Timeout,
    /// Nothing that was captured explains it.
    Unknown,
}

impl Trigger {
    /// The word in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Nak => "nak",
            Self::ImpliedNak => "implied_nak",
            Self::Rnr => "rnr",
            Self::Timeout => "timeout",
            Self::Unknown => "unknown",
        }
    }
}

/// Why a sender falls back to a PSN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cause {
    pub(crate) trigger: Trigger,
    /// A NAK or RNR NAK names this very PSN.
    pub(crate) exact: bool,
    /// No reordering explains a silence of this length.
    pub(crate) certain: bool,
}

impl Cause {
    /// A silence as a cause. `timer`: the shortest timeout of the flow; 0: not known. `reordering`: how long its packets
    /// were overtaken.
    pub(super) fn by_silence(silence: Span, timer: Span, reordering: Span) -> Option<Self> {
        // Timers are randomised: half of the shortest one.
        let least = SILENCE.0.max(timer.0 / 2);
        let fits_timer = timer.0 != 0 && silence.0 >= timer.0 / 4 * 3;
        let is_long = silence >= MIN_TIMEOUT;
        (silence.0 >= least).then_some(Self {
            trigger: Trigger::Timeout,
            exact: false,
            certain: (fits_timer || is_long) && silence.0 >= reordering.0.saturating_mul(4),
        })
    }
}

/// A silence of this length is no reordering: paths of one fabric differ by their queues, and a megabyte of queue on each of
/// several 100 Gbit/s links takes 80 us a link. The local ACK timeout has 4.096 us * 2^n with n from 8 upwards in use.
pub(super) const MIN_TIMEOUT: Span = Span(700_000);
