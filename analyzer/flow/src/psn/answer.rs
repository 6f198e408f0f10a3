//! An answer to requests, as [`crate::psn::tracker`] needs it.

use roce_model::{Span, Time};

/// An answer to requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestAnswer {
    /// All before this position has arrived, as far as the answer says so.
    pub(crate) covered: u64,
    pub(crate) time: Time,
    pub(crate) meaning: AnswerMeaning,
}

/// The meaning of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AnswerMeaning {
    /// An ACK, which is for nothing else.
    Ack,
    /// Responses, or a NAK that ends the connection.
    Arrived,
    /// The receiver waits for the PSN at this position, and has got one behind it. `rtt`: the shortest time that an answer took;
    /// `oldest_sent`: when the oldest request was sent that is not answered; 0: not known.
    SequenceNak { rtt: Span, oldest_sent: Time },
    /// The receiver has no buffer for the PSN at this position, which it got, and asks for it after `timer`.
    RnrNak { timer: Span },
}
