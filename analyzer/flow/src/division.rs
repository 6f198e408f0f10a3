//! Where a flow's time went: it is divided among [`TimeState`]s without rest. Time is assigned between a flow's own packets, so the sum
//! over states is the time from its first packet to its last. What answers, notifications and pauses say in between is kept until then.
//!
//! Requests that follow each other closely are one burst, of which nothing is done by packet.

mod answers;
mod ids;
mod pace;
mod turns;

use roce_model::{Span, Time, TimeByState, TimeState, prefetch};

pub(crate) use answers::OutstandingAnswer;
use answers::{LONG_WAIT, OutstandingAnswers};
use ids::IdCount;
pub(crate) use ids::IdPlace;
use pace::SendingRate;
pub(crate) use pace::{BurstGap, SendingProgress};
pub(crate) use turns::{Turns, TurnsHandle};

/// The longest time between datagrams of a sender that congestion notifications slow: 4 KiB at 40 Mbit/s, the least rate of DCQCN's paper,
/// take 0.8 ms.
const SLOW_DATAGRAMS: Span = Span(1_000_000);

/// Requests of a flow that are on their way, as far as is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OpenRequests {
    /// All were answered at this time.
    Nothing(Time),
    /// Some are not answered.
    Something,
    /// The other direction is not known.
    NotKnown,
    /// The service has no answers.
    NoAnswers,
}

/// Why a request comes after a silence, as far as it shows at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequestKind {
    /// It is new.
    New,
    /// It begins a retransmission run, whose cause tells what the silence before it was.
    BeginsRun,
    /// It may be late, or begin such a run.
    MayBeginRun,
    /// It goes on with a retransmission run.
    GoesOn,
    /// The capture lost records since the request before.
    AfterLoss,
}

/// A request, and the silence before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestAfterSilence {
    /// When the request before it came.
    pub(crate) since: Time,
    pub(crate) time: Time,
    pub(crate) kind: RequestKind,
    pub(crate) outstanding: OpenRequests,
    /// Its message had begun before.
    pub(crate) in_message: bool,
    /// For how long the flow's path was paused from the first pause at the tap to now, in ns.
    pub(crate) paused: u64,
    /// Other flows took their turns at the port meanwhile.
    pub(crate) in_turns: bool,
}

/// A silence before a new message in which nothing was outstanding, and the state that it was given.
#[derive(Clone, Copy, Debug)]
struct QuietSilence {
    since: Time,
    until: Time,
    state: TimeState,
}

/// The credit by which a receiver offered the buffer of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OfferedCredit {
    /// When it came.
    pub(crate) time: Time,
    /// Hardly any later one has come: there was none left.
    pub(crate) is_newest: bool,
}

/// The division of one flow's time: of constant size, and without memory of its own.
#[derive(Clone, Debug)]
pub(crate) struct Division {
    spent: TimeByState,
    /// All before it is in `spent` or in `held`.
    since: Time,
    /// Silences before retransmission runs whose causes are not known yet, in ns.
    held: u64,
    /// It retransmits.
    is_recovering: bool,
    /// The pauses up to `since`, in ns.
    paused: u64,
    answers: OutstandingAnswers,
    rate: SendingRate,
    quiet: Option<QuietSilence>,
    ids: IdCount,
}

impl Division {
    /// That of a flow whose first packet came at `first`; `paused` as in [`RequestAfterSilence`].
    pub(crate) fn new(first: Time, paused: u64) -> Self {
        Self {
            spent: TimeByState::default(),
            since: first,
            held: 0,
            is_recovering: false,
            paused,
            answers: OutstandingAnswers::default(),
            rate: SendingRate::default(),
            quiet: None,
            ids: IdCount::default(),
        }
    }

    /// Prefetches what a request after a silence needs.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(&self.spent);
        prefetch(&self.since);
        prefetch(&self.answers);
        prefetch(&self.rate);
    }

    /// The length of a silence that does not belong to a burst.
    pub(crate) fn burst_gap(&self) -> BurstGap {
        self.rate.burst_gap()
    }

    /// The answers to the flow's requests.
    pub(crate) fn answers(&mut self) -> &mut OutstandingAnswers {
        &mut self.answers
    }

    /// How its sender counts its packets.
    pub(crate) fn ids(&mut self) -> &mut IdCount {
        &mut self.ids
    }

    /// A request after a silence that is no part of a burst, or an unusual one.
    pub(crate) fn request(&mut self, request: &RequestAfterSilence) {
        let silence = request.time.since(request.since);
        let goes_on = match request.kind {
            RequestKind::New => !self.is_recovering,
            RequestKind::GoesOn => self.is_recovering,
            _ => false,
        };
        if goes_on && !self.burst_gap().is_passed(silence) {
            return;
        }
        self.rate.expire(request.since);
        self.burst(request.since, request.paused);
        match request.kind {
            RequestKind::BeginsRun | RequestKind::MayBeginRun => {
                self.held = self.held.saturating_add(request.time.since(self.since).0);
                self.since = self.since.max(request.time);
                self.paused = request.paused;
            }
            RequestKind::GoesOn => self.spend(TimeState::Recovering, request.time),
            RequestKind::AfterLoss => {
                self.spend(TimeState::Unknown, request.time);
                self.answers.forget_most();
            }
            RequestKind::New => self.silence(request),
        }
        self.is_recovering = matches!(request.kind, RequestKind::BeginsRun | RequestKind::GoesOn);
        self.answers.next_request();
    }

    /// The message that begins at `time` came for a credit. Without one the sender waited for the receiver if it sent once it had it, and
    /// with one for its program.
    pub(crate) fn credited(&mut self, time: Time, credit: OfferedCredit) {
        let Some(quiet) = self.quiet.take().filter(|quiet| quiet.until == time) else {
            return;
        };
        let offered = credit.time.max(quiet.since).min(time);
        let (without, with) = (offered.since(quiet.since).0, time.since(offered).0);
        if credit.is_newest && with <= without {
            self.spent.shift(quiet.state, TimeState::Receiver, without);
        } else {
            self.spent.shift(quiet.state, TimeState::Sender, without);
        }
        self.spent.shift(quiet.state, TimeState::Sender, with);
    }

    /// The message that begins at `time` is a credit: its program gives it once a buffer is free.
    pub(crate) fn credits(&mut self, time: Time) {
        if let Some(quiet) = self.quiet.take().filter(|quiet| quiet.until == time) {
            let silence = quiet.until.since(quiet.since).0;
            self.spent.shift(quiet.state, TimeState::Sender, silence);
        }
    }

    /// A retransmission run had this cause; the sender had been silent for `silence` in ns before it.
    pub(crate) fn run_caused(&mut self, state: TimeState, silence: u64) {
        let time = silence.min(self.held);
        self.held -= time;
        self.spent.add(state, time);
    }

    /// A congestion notification, or a mark, says at `now` that the flow is to be slowed.
    pub(crate) fn notified(&mut self, now: SendingProgress) {
        let busy = self.busy_until(now.time);
        self.rate.notified(now, busy);
    }

    /// The flow, whose latest request came at `now.time`, has sent some packets since the last call. `paused` as in
    /// [`RequestAfterSilence`].
    pub(crate) fn sent(&mut self, now: SendingProgress, paused: u64) {
        self.rate.expire(now.time);
        let busy = self.busy_until(now.time);
        if let Some(is_slowed) = self.rate.judge(now, busy) {
            if !is_slowed {
                self.rate.not_slowed();
            }
            self.burst(now.time, paused);
        }
    }

    /// The flow's last request came at `last_request`, and its last packet at `last`.
    pub(crate) fn end(
        &mut self,
        last_request: Time,
        last: Time,
        outstanding: OpenRequests,
        paused: u64,
    ) -> TimeByState {
        self.burst(last_request.min(last), paused);
        self.silence(&RequestAfterSilence {
            since: last_request.min(last),
            time: last,
            kind: RequestKind::New,
            outstanding,
            in_message: false,
            paused,
            in_turns: false,
        });
        let held = core::mem::take(&mut self.held);
        self.spent.add(TimeState::Sending, held);
        self.spent
    }

    /// The time of each state, as far as it is decided: it never falls.
    pub(crate) fn decided(&self) -> &TimeByState {
        &self.spent
    }

    /// Time in which the flow was not idle, and how much of it was spent on sending, up to `time`, in ns.
    fn busy_until(&self, time: Time) -> pace::BusyTime {
        let open = time.since(self.since).0;
        let of = |state| self.spent.of(state);
        let waits = [TimeState::Recovering, TimeState::Window, TimeState::Network];
        let sending = of(TimeState::Sending) + of(TimeState::Slowed) + open;
        pace::BusyTime {
            sending,
            busy: waits.into_iter().map(of).sum::<u64>() + sending,
        }
    }

    /// All up to `until` was this state.
    fn spend(&mut self, state: TimeState, until: Time) {
        self.spent.add(state, until.since(self.since).0);
        self.since = self.since.max(until);
    }

    /// The next `time` in ns was this state, up to `until` at the latest.
    fn spend_some(&mut self, state: TimeState, time: u64, until: Time) {
        let until = until.min(Time(self.since.0.saturating_add(time)));
        self.spend(state, until);
    }

    /// Packets followed each other closely up to `until`.
    fn burst(&mut self, until: Time, paused: u64) {
        if until <= self.since {
            return;
        }
        let stopped = paused.saturating_sub(self.paused);
        // A longer pause makes a silence of its own, which comes next.
        if !self.burst_gap().is_passed(Span(stopped)) {
            self.paused = paused;
            self.spend_some(TimeState::Paused, stopped, until);
        }
        if self.is_recovering {
            return self.spend(TimeState::Recovering, until);
        }
        let slowed_from = self.rate.slowed_from().map_or(until, |from| from.min(until));
        self.spend(TimeState::Sending, slowed_from);
        self.spend(TimeState::Slowed, until);
    }

    /// Nothing was sent up to a new request.
    fn silence(&mut self, request: &RequestAfterSilence) {
        let RequestAfterSilence { time, .. } = *request;
        let paused = request.paused.saturating_sub(self.paused);
        self.paused = request.paused;
        self.spend_some(TimeState::Paused, paused, time);
        let is_slowed = self.rate.slowed_from().is_some();
        if request.in_turns && !is_slowed {
            self.note_quiet(request, TimeState::Sending);
            return self.spend(TimeState::Sending, time);
        }
        match request.outstanding {
            _ if request.in_message => self.within_message(is_slowed, request),
            OpenRequests::Nothing(since) => {
                self.awaited(is_slowed, since.min(time));
                self.note_quiet(request, TimeState::Idle);
                self.spend(TimeState::Idle, time);
            }
            OpenRequests::Something => self.awaited(is_slowed, time),
            OpenRequests::NotKnown => self.spend(TimeState::Unknown, time),
            OpenRequests::NoAnswers => {
                let is_slow = is_slowed && time.since(request.since) <= SLOW_DATAGRAMS;
                self.spend(
                    if is_slow {
                        TimeState::Slowed
                    } else {
                        TimeState::Idle
                    },
                    time,
                );
            }
        }
    }

    /// The silence up to a request gets a state. Where nothing was outstanding, a credit may show who was awaited.
    fn note_quiet(&mut self, request: &RequestAfterSilence, state: TimeState) {
        if let OpenRequests::Nothing(since) = request.outstanding
            && !request.in_message
        {
            self.quiet = Some(QuietSilence {
                since: since.max(self.since),
                until: request.time,
                state,
            });
        }
    }

    /// A silence within a message, whose sender has more to send.
    fn within_message(&mut self, is_slowed: bool, request: &RequestAfterSilence) {
        let until = request.time;
        if is_slowed {
            return self.spend(TimeState::Slowed, until);
        }
        self.spend(TimeState::Window, self.answers.blocked_until(true).min(until));
        let late = self.answers.take_late(until.since(self.since).0);
        self.spend_some(TimeState::Network, late, until);
        let rest = match request.outstanding {
            _ if until.since(self.since) < LONG_WAIT => TimeState::Sending,
            OpenRequests::NoAnswers => TimeState::Idle,
            _ => TimeState::Unknown,
        };
        self.spend(rest, until);
    }

    /// Nothing was sent, and answers were awaited up to `until`.
    fn awaited(&mut self, is_slowed: bool, until: Time) {
        if is_slowed {
            return self.spend(TimeState::Slowed, until);
        }
        self.spend(TimeState::Window, self.answers.blocked_until(false).min(until));
        let late = self.answers.take_late(until.since(self.since).0);
        let unexplained = self.answers.unexplained(self.since, until).saturating_sub(late);
        self.spend_some(TimeState::Network, late, until);
        self.spend_some(TimeState::Unknown, unexplained, until);
        self.spend(TimeState::Sending, until);
    }
}

#[cfg(test)]
mod tests;
