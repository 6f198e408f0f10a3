//! The PSNs of a flow's requests: in order, a gap, sent again, late, stale, or begun anew.

use roce_model::Nanos;
use roce_wire::Psn;

use crate::holes::Holes;

/// A jump further ahead than this begins a new epoch instead of a gap.
pub(crate) const LARGEST_GAP: i32 = 1 << 16;
/// A packet this far behind is stale: no sender falls back so far.
pub(crate) const STALE: i32 = 1 << 22;
/// So many stale packets in a row, in order, are a new epoch.
const STALE_RUN: u8 = 8;
/// A silence from which on a fallback to a hole is taken for a timeout's resend rather than for reordering. Adaptive
/// timers start at tens of microseconds; reordering in a network moves packets by less.
const SILENCE: Nanos = Nanos(50_000);

const CONNECTED: &str = "the connection manager made a new connection";

/// The part of a flow's request state that every packet touches.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requests {
    /// The PSN expected next, counted on past 24 bits; 0 before the first request.
    pub(crate) next: u64,
    /// Whether anything but "in order" may come of the next packet: then [`Tracker::observe`] decides.
    pub(crate) disturbed: bool,
}

impl Requests {
    /// Takes a packet that is in order and nothing special; says whether it was one.
    #[inline]
    pub(crate) fn advance(&mut self, psn: Psn, span: u32) -> bool {
        if self.disturbed || self.next == 0 || psn != self.expected() {
            return false;
        }
        self.next += u64::from(span);
        true
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low 24 bits are wanted")]
    pub(crate) fn expected(&self) -> Psn {
        Psn::new(self.next as u32)
    }
}

/// What a request packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// The PSN expected, or the first of the flow.
    InOrder,
    /// Beyond: so many PSNs were jumped over.
    Gap { first: Psn, missing: u32 },
    /// Sent again.
    Retransmission { captured_before: bool },
    /// It fills a hole of a service that never sends again.
    Late,
    /// It fills a hole; whether it is late or sent again, the next packets tell.
    Undecided,
    /// 2^22 or more behind.
    Stale,
    /// The PSNs began anew: the flow is to start a new epoch and to observe the packet again.
    NewEpoch(&'static str),
}

/// A run of packets sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The PSN that the sender fell back to.
    pub(crate) first: Psn,
    /// When.
    pub(crate) begin: Nanos,
    /// Packets in it.
    pub(crate) packets: u64,
    next: u64,
}

/// Packets that filled holes and are not judged yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Undecided {
    first: u64,
    next: u64,
    begin: Nanos,
    silent: bool,
    /// Where they stand in the timeline: bin, packets, payload bytes.
    parts: Vec<(u64, u32, u64)>,
}

impl Undecided {
    /// One more packet, which ends before `next`.
    fn add(&mut self, next: u64, request: &Request) {
        self.next = next;
        match self.parts.last_mut() {
            Some((bin, packets, bytes)) if *bin == request.bin => {
                *packets += 1;
                *bytes += u64::from(request.payload_bytes);
            }
            _ => self
                .parts
                .push((request.bin, 1, u64::from(request.payload_bytes))),
        }
    }
}

/// What became of undecided packets.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decision {
    /// Sent again; otherwise late.
    pub(crate) resent: bool,
    /// PSN of the first.
    pub(crate) psn: Psn,
    /// When the first came.
    pub(crate) time: Nanos,
    /// Where they stand in the timeline: bin, packets, payload bytes.
    pub(crate) parts: Vec<(u64, u32, u64)>,
}

/// A request packet, as the tracker needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) psn: Psn,
    /// PSNs that it takes; `None`: a READ whose responses cannot be counted yet.
    pub(crate) span: Option<u32>,
    pub(crate) time: Nanos,
    /// How long the flow had sent no request.
    pub(crate) silence: Nanos,
    pub(crate) bin: u64,
    pub(crate) payload_bytes: u32,
    /// The receiver asked for this PSN with a sequence NAK a moment ago.
    pub(crate) asked_for: bool,
}

/// The part of a flow's request state that only disturbances touch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracker {
    holes: Holes,
    run: Option<Run>,
    undecided: Option<Undecided>,
    stale_next: Psn,
    stale_run: u8,
    /// After a READ of unknown span: whatever comes next is in order.
    resync: bool,
    /// The capture lost records: a gap would be its own.
    capture_lost: bool,
    /// A new connection was made of the queue pair: its next request begins an epoch.
    connected: bool,
    /// Runs that ended and were not reported yet.
    ended: Vec<Run>,
    /// Decisions not applied yet, at most one.
    decision: Option<Decision>,
}

/// Where an extended PSN count begins, high enough that a fallback from the first packet does not go below zero.
const BASE: u64 = 1 << 32;

#[expect(clippy::cast_possible_truncation, reason = "the low 24 bits are wanted")]
fn psn_of(position: u64) -> Psn {
    Psn::new(position as u32)
}

impl Tracker {
    /// Judges a packet that [`Requests::advance`] did not take.
    pub(crate) fn observe(&mut self, requests: &mut Requests, request: &Request) -> Verdict {
        let verdict = self.judge(requests, request);
        requests.disturbed = self.run.is_some()
            || self.undecided.is_some()
            || self.resync
            || self.capture_lost
            || self.connected
            || self.stale_run > 0;
        verdict
    }

    /// The same for UC, which neither acknowledges nor sends again: holes and what fills them, no more.
    pub(crate) fn observe_unreliable(&mut self, requests: &mut Requests, request: &Request) -> Verdict {
        let verdict = self.judge_unreliable(requests, request);
        requests.disturbed = self.capture_lost || self.connected || self.stale_run > 0;
        verdict
    }

    fn judge_unreliable(&mut self, requests: &mut Requests, request: &Request) -> Verdict {
        if self.connected {
            return Verdict::NewEpoch(CONNECTED);
        }
        let ahead = request.psn.offset_from(requests.expected());
        if requests.next == 0 || ahead >= 0 {
            return self.judge(requests, request);
        }
        let at = requests.next - u64::from(ahead.unsigned_abs());
        if self.holes.fill(at, at + 1) {
            Verdict::Late
        } else {
            self.stale(request)
        }
    }

    fn judge(&mut self, requests: &mut Requests, request: &Request) -> Verdict {
        let span = u64::from(request.span.unwrap_or(1));
        if requests.next == 0 {
            requests.next = BASE + u64::from(request.psn.value()) + span;
            self.resync = request.span.is_none();
            return Verdict::InOrder;
        }
        if self.connected {
            return Verdict::NewEpoch(CONNECTED);
        }
        let ahead = request.psn.offset_from(requests.expected());
        if ahead <= -STALE {
            return self.stale(request);
        }
        self.stale_run = 0;
        if ahead < 0 {
            return self.behind(requests.next, request, span);
        }
        // After a READ of unknown span any distance is that READ's: a gigabyte takes more PSNs than the largest gap.
        if ahead > LARGEST_GAP && !self.resync {
            return Verdict::NewEpoch("PSN jumped ahead by more than 65536");
        }
        self.decide_alone();
        self.end_run();
        if core::mem::take(&mut self.capture_lost) && ahead > 0 {
            return Verdict::NewEpoch("the capture lost records");
        }
        let resync = core::mem::replace(&mut self.resync, request.span.is_none());
        let gap = requests.next;
        let missing = ahead.unsigned_abs();
        requests.next += u64::from(missing) + span;
        if missing == 0 || resync {
            return Verdict::InOrder;
        }
        self.holes.add(gap, gap + u64::from(missing));
        Verdict::Gap {
            first: psn_of(gap),
            missing,
        }
    }

    fn stale(&mut self, request: &Request) -> Verdict {
        let in_order = self.stale_run > 0 && request.psn == self.stale_next;
        self.stale_run = if in_order { self.stale_run + 1 } else { 1 };
        self.stale_next = request.psn.plus(request.span.unwrap_or(1));
        if self.stale_run >= STALE_RUN {
            return Verdict::NewEpoch("eight packets in order far behind");
        }
        Verdict::Stale
    }

    /// A packet behind the highest, `next` being one past that.
    fn behind(&mut self, next: u64, request: &Request, span: u64) -> Verdict {
        let back = request.psn.offset_from(psn_of(next));
        let at = next - u64::from(back.unsigned_abs());
        let fills = !self.holes.is_empty() && self.holes.fill(at, at + span);
        let continues = self.run.is_some_and(|run| at >= run.next);
        if !fills || continues || request.asked_for {
            // A sender that sends again what was captured has fallen back: what filled holes before was sent again, too.
            self.decide(true);
            self.resend(at, span, request);
            return Verdict::Retransmission {
                captured_before: !fills,
            };
        }
        let silent = request.silence >= SILENCE;
        match &mut self.undecided {
            Some(undecided) if at >= undecided.next => undecided.add(at + span, request),
            // Fallen back further, and after a silence: the sender sends again.
            Some(undecided) if undecided.silent || silent => {
                self.decide(true);
                self.resend(at, span, request);
                return Verdict::Retransmission {
                    captured_before: false,
                };
            }
            // Reordering turns packets around, too.
            Some(undecided) => undecided.add(at + span, request),
            None => {
                self.undecided = Some(Undecided {
                    first: at,
                    next: at + span,
                    begin: request.time,
                    silent,
                    parts: vec![(request.bin, 1, u64::from(request.payload_bytes))],
                });
            }
        }
        Verdict::Undecided
    }

    /// Adds a packet to the run, or begins one.
    fn resend(&mut self, at: u64, span: u64, request: &Request) {
        match &mut self.run {
            Some(run) if at >= run.next => {
                run.packets += 1;
                run.next = at + span;
            }
            _ => {
                self.end_run();
                self.run = Some(Run {
                    first: request.psn,
                    begin: request.time,
                    packets: 1,
                    next: at + span,
                });
            }
        }
    }

    fn end_run(&mut self) {
        if let Some(run) = self.run.take() {
            self.ended.push(run);
        }
    }

    /// Settles what undecided packets were. When they were sent again, they began a run.
    fn decide(&mut self, resent: bool) {
        let Some(undecided) = self.undecided.take() else {
            return;
        };
        let packets = undecided
            .parts
            .iter()
            .map(|(_, packets, _)| u64::from(*packets))
            .sum();
        let psn = psn_of(undecided.first);
        if resent {
            self.end_run();
            self.run = Some(Run {
                first: psn,
                begin: undecided.begin,
                packets,
                next: undecided.next,
            });
        }
        self.decision = Some(Decision {
            resent,
            psn,
            time: undecided.begin,
            parts: undecided.parts,
        });
    }

    /// Whether packets are neither late nor sent again yet.
    pub(crate) fn is_undecided(&self) -> bool {
        self.undecided.is_some()
    }

    /// Settles undecided packets after which nothing was sent again: after a silence they were a timeout's.
    pub(crate) fn decide_alone(&mut self) {
        let silent = self.undecided.as_ref().is_some_and(|undecided| undecided.silent);
        self.decide(silent);
    }

    /// The end of the flow's epoch: nothing more is coming of anything.
    pub(crate) fn close(&mut self) {
        self.decide_alone();
        self.end_run();
    }

    /// The capture lost records: a gap before the next packet is not the network's.
    pub(crate) fn capture_lost(&mut self, requests: &mut Requests) {
        self.capture_lost = requests.next != 0;
        requests.disturbed |= self.capture_lost;
    }

    /// The queue pair got a new connection.
    pub(crate) fn connect(&mut self, requests: &mut Requests) {
        self.connected = requests.next != 0;
        requests.disturbed |= self.connected;
    }

    /// A run that has ended since the last call.
    pub(crate) fn take_ended(&mut self) -> Option<Run> {
        self.ended.pop()
    }

    /// A decision on undecided packets since the last call.
    pub(crate) fn take_decision(&mut self) -> Option<Decision> {
        self.decision.take()
    }

    /// A new epoch: all is forgotten.
    pub(crate) fn restart(&mut self, requests: &mut Requests) {
        self.holes.clear();
        self.run = None;
        self.undecided = None;
        self.stale_run = 0;
        self.resync = false;
        self.capture_lost = false;
        self.connected = false;
        *requests = Requests::default();
    }
}

#[cfg(test)]
mod tests;
