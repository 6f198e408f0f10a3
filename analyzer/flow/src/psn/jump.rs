//! Requests that jump ahead after a rest: packets are missing, or the queue pair has got another connection whose first PSN is
//! by chance a little ahead. A connection begins with the first packet of a message, and the sender's and the receiver's
//! counters begin with it: IP identifications where they are counted for the flow, the UDP source port where it is not made of
//! the queue pairs' numbers, and the number of completed messages (MSN) in answers.

use roce_model::{Packet, Span, Time};

use crate::psn::request::{LARGEST_GAP, Request, Requests, Verdict};
use crate::taps::duplicates::Ids;

/// No queue pair is connected again in less time.
const REST: Span = Span(50_000);
/// From so many missing packets on, an identification that counts up may look older than the one before (RFC 1982: half of
/// 65,536, and what [`crate::taps::duplicates`] takes for older).
const TURN: i32 = 3 << 14;
/// Messages by one UDP source port, after which another one is not the next of many.
const MESSAGES_BY_ONE_PORT: u64 = 8;

/// Messages by one UDP source port, after which another port behind the highest PSN shows another connection: where nothing is
/// outstanding, a request there is unusual by itself.
const MESSAGES_BEFORE_FALLBACK: u64 = 2;

/// A request behind a gap, after a rest, that begins a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jump {
    ahead: i32,
    /// Its PSN, counted on past 24 bits.
    at: u64,
    /// Ends of messages that were captured before it.
    messages: u64,
}

impl Jump {
    /// `messages`: ends of messages captured until now.
    pub(crate) fn from_request(
        requests: &Requests,
        request: &Request,
        messages: u64,
        packet: &Packet,
    ) -> Option<Self> {
        let ahead = request.packet.psn.offset_from(requests.expected());
        let is_one = requests.next != 0
            && (1..=LARGEST_GAP).contains(&ahead)
            && request.flow.silence >= REST
            && packet.roce.bth.opcode().is_first();
        is_one.then(|| Self {
            ahead,
            at: requests.next + u64::from(ahead.unsigned_abs()),
            messages,
        })
    }

    /// The sign that the request is the first one of another connection. `port`: the only UDP source port of the flow so far.
    pub(crate) fn begins_epoch(
        self,
        request: &Request,
        port: Option<u16>,
        packet: &Packet,
    ) -> Option<&'static str> {
        let behind = request.packet.ids.and_then(Ids::behind).unwrap_or(0);
        if behind > 0 && self.ahead < TURN {
            return Some("IP identifications started again");
        }
        let has_other_port = port.is_some_and(|port| port != packet.roce.udp_source_port);
        (has_other_port && self.messages >= MESSAGES_BY_ONE_PORT)
            .then_some("the UDP source port is another one")
    }
}

/// A request that its receiver refused with a fatal NAK. That ends the request, and all behind it: queue pairs go to the error state, and
/// nothing is retransmitted (IBTA 9.9.2.4.1, 9.9.3.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    /// Its PSN, counted on past 24 bits.
    pub(crate) at: u64,
    /// When the NAK came.
    pub(crate) time: Time,
}

impl Refusal {
    /// True if `request`, at `position`, has a PSN that was refused and was sent when its sender knew that: it is another one. What was on
    /// its way with the NAK comes within a round trip.
    pub(crate) fn is_over(self, request: &Request, position: u64, packet: &Packet) -> bool {
        let known = REST.max(request.flow.usual_rtt);
        position >= self.at && packet.roce.bth.opcode().is_first() && packet.time.since(self.time) >= known
    }
}

/// True if a request is the first packet of a message, comes after a rest, and by another port than all before it. `messages`: ends
/// of messages captured before; `port`: the only UDP source port of the flow before.
pub(crate) fn has_other_port(silence: Span, messages: u64, port: Option<u16>, packet: &Packet) -> bool {
    silence >= REST
        && messages >= MESSAGES_BEFORE_FALLBACK
        && packet.roce.bth.opcode().is_first()
        && port.is_some_and(|port| port != packet.roce.udp_source_port)
}

/// The messages that a flow's receiver has completed, as its answers say (MSN in the AETH, IBTA 9.7.7).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CompletedMessages {
    msn: u32,
    /// The latest answer covered all before this PSN. 0: there was none.
    covered: u64,
    /// A jump that the next answer judges.
    jump: Option<Jump>,
}

impl CompletedMessages {
    /// A request was judged; `jump`: it jumped ahead. Where packets come out of their order, how many messages ended since a jump
    /// is not known.
    pub(crate) fn jumped(&mut self, jump: Option<Jump>, verdict: Verdict) {
        match (verdict, jump) {
            (Verdict::Gap { .. }, Some(jump)) => self.jump = Some(jump),
            (Verdict::InOrder | Verdict::Gap { .. }, _) => {}
            _ => self.jump = None,
        }
    }

    /// An answer that covers all before `covered`, which is all that was sent where `all` says so. `messages` gives the ends of
    /// messages captured until now. Says whether the receiver counts messages from a jump on: the count steps back, or takes fewer
    /// steps than messages that ended since.
    pub(crate) fn note(&mut self, covered: u64, msn: u32, all: bool, messages: impl FnOnce() -> u64) -> bool {
        let mut begins_epoch = false;
        if let Some(jump) = self.jump.filter(|jump| covered > jump.at) {
            self.jump = None;
            // Signed, modulo 2^24.
            let steps = i64::from((msn.wrapping_sub(self.msn) << 8).cast_signed() >> 8);
            let ended = i64::try_from(messages().saturating_sub(jump.messages)).unwrap_or(i64::MAX);
            begins_epoch = self.covered != 0 && (steps < 0 || all && steps < ended);
        }
        if covered >= self.covered {
            (self.covered, self.msn) = (covered, msn);
        }
        begins_epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JUMP: Jump = Jump {
        ahead: 40_000,
        at: 50_000,
        messages: 8,
    };

    const GAP: Verdict = Verdict::Gap {
        first: roce_wire::Psn::new(10_000),
        missing: 40_000,
    };

    /// Seven messages were completed and eight captured, up to PSN 9,999; then the PSNs jumped to 50,000.
    fn jumped() -> CompletedMessages {
        let mut completed = CompletedMessages::default();
        assert!(!completed.note(9_000, 7, false, || 7));
        completed.jumped(Some(JUMP), GAP);
        completed
    }

    #[test]
    fn a_count_that_goes_on_is_that_of_missing_messages() {
        // 40,000 PSNs were three messages, or a hundred.
        for msn in [11, 108] {
            let mut completed = jumped();
            assert!(!completed.note(50_010, msn, true, || 9));
            assert!(!completed.note(50_020, 1, true, || 10), "judged once");
        }
    }

    #[test]
    fn a_count_that_steps_back_is_that_of_another_connection() {
        assert!(jumped().note(50_010, 1, false, || 9));
        assert!(jumped().note(50_010, 0, false, || 8));
    }

    #[test]
    fn fewer_steps_than_messages_are_another_connection() {
        // Nine messages ended since the jump: 7 + 9 is the least of a connection that goes on, 9 the count of a new one.
        assert!(jumped().note(50_010, 9, true, || 17));
        assert!(!jumped().note(50_010, 16, true, || 17));
        // Not all that was sent is answered.
        assert!(!jumped().note(50_010, 9, false, || 17));
    }

    #[test]
    fn a_count_past_24_bits_goes_on() {
        let mut completed = CompletedMessages::default();
        completed.note(9_000, 0x00ff_ffff, true, || 7);
        completed.jumped(Some(JUMP), GAP);
        assert!(!completed.note(50_010, 1, true, || 8));
    }

    #[test]
    fn answers_from_before_the_jump_judge_nothing() {
        let mut completed = jumped();
        assert!(!completed.note(10_000, 8, true, || 8));
        assert!(completed.note(50_001, 1, false, || 9));
        let mut unknown = CompletedMessages::default();
        unknown.jumped(Some(JUMP), GAP);
        assert!(!unknown.note(50_001, 1, true, || 9), "no count before");
        let mut disturbed = jumped();
        disturbed.jumped(None, Verdict::Unknown);
        assert!(!disturbed.note(50_001, 1, true, || 9));
    }

    fn request(silence: u64) -> Request {
        let mut request = Request::default();
        request.packet.psn = roce_wire::Psn::new(1_040);
        request.flow.silence = Span(silence);
        request
    }

    #[test]
    fn a_refused_psn_comes_again_with_another_request_only() {
        let refusal = Refusal {
            at: 1_000,
            time: Time(1_000_000),
        };
        let is_over = |position, rtt, opcode, time| {
            let mut request = Request::default();
            request.flow.usual_rtt = Span(rtt);
            let packet = Packet {
                time: Time(time),
                ..packet(opcode, 5)
            };
            refusal.is_over(&request, position, &packet)
        };
        assert!(is_over(1_000, 20_000, 0x04, 1_050_000), "SEND Only, 50 us later");
        assert!(!is_over(1_000, 20_000, 0x04, 1_049_999), "it was on its way");
        assert!(!is_over(1_000, 80_000, 0x04, 1_050_000), "a round trip of 80 us");
        assert!(!is_over(999, 20_000, 0x04, 1_050_000), "that one was not refused");
        assert!(
            !is_over(1_003, 20_000, 0x07, 1_050_000),
            "the middle of a message"
        );
    }

    fn packet(opcode: u8, port: u16) -> Packet {
        let mut packet = Packet::default();
        packet.roce.bth.0[0] = opcode;
        packet.roce.udp_source_port = port;
        packet
    }

    #[test]
    fn only_the_first_packet_of_a_message_after_a_rest_is_one() {
        let requests = Requests {
            next: 1_000,
            disturbed: false,
        };
        let is_one = |silence, opcode| {
            Jump::from_request(&requests, &request(silence), 0, &packet(opcode, 5)).is_some()
        };
        assert!(is_one(50_000, 0x06), "WRITE First");
        assert!(is_one(50_000, 0x04), "SEND Only");
        assert!(!is_one(50_000, 0x07), "WRITE Middle");
        assert!(!is_one(49_999, 0x06));
        assert!(Jump::from_request(&Requests::default(), &request(50_000), 0, &packet(0x06, 5)).is_none());
    }

    #[test]
    fn another_port_and_older_identifications_are_another_connection() {
        use crate::taps::duplicates::IdAge;
        let restarted = |ids, port, messages, ahead| {
            let mut request = request(60_000);
            request.packet.ids = ids;
            let jump = Jump {
                ahead,
                messages,
                ..JUMP
            };
            jump.begins_epoch(&request, port, &packet(0x06, 5)).is_some()
        };
        assert!(!restarted(None, Some(5), 8, 40));
        assert!(restarted(None, Some(6), 8, 40));
        assert!(!restarted(None, Some(6), 7, 40), "perhaps one of many ports");
        assert!(!restarted(None, None, 8, 40), "several ports");
        let ids = |id, age| {
            Some(Ids {
                id,
                newest: 36,
                before: 36,
                age,
            })
        };
        assert!(restarted(ids(0, IdAge::Older), Some(5), 8, 33_578));
        assert!(
            !restarted(ids(0, IdAge::Older), Some(5), 8, 49_152),
            "as after 49,152 packets"
        );
        assert!(!restarted(ids(76, IdAge::Newer), Some(5), 8, 40));
    }
}
