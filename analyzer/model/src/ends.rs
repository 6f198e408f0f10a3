//! The table `ends`: how each connection ended, as the packets of its requester show it.

use std::borrow::Cow;

use roce_wire::Address;

use crate::events::names;
use crate::table::table;
use crate::{Confidence, FlowId, TapId, Time};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    EndRow, EndColumns, "ends", "The end of one connection, seen from the side that sent requests. Connections that failed come first, the longest wait first.";
    flow_id: FlowId, "", "The flow that carried the requests: `flows.flow_id`.";
    tap: TapId, "", "The tap whose packets show it: `taps.tap`.";
    epoch: u32, "", "Epoch of the flow that ended: `flows.epoch`.";
    source: Address, "", "Address of the requester.";
    destination: Address, "", "Address of the responder.";
    destination_qpn: u32, "", "Queue pair of the responder.";
    peer_flow_id: Option<FlowId>, "", "The flow that carried the answers. Absent: it is not known, or there was none.";
    outcome: EndKind, "", "How it ended: refused, rnr-exhausted, never-answered, retries-unanswered, silent, closed.";
    time: Time, "ns", "Time of the last packet that belongs to the end: the refusal, the last repeat, or the last request.";
    refusal: Option<&'static str>, "", "The fatal NAK of a refused connection: invalid request, remote access error, remote operational error, invalid RD request. Absent: it was not refused.";
    request_psn: Option<u32>, "", "PSN of the request that failed: the one refused, or repeated. Absent: none is known.";
    repeats: u64, "", "How often the last request was sent again without an answer.";
    repeat_min_ns: Option<u64>, "ns", "Shortest time between two of these sends. Absent: it was not repeated.";
    repeat_max_ns: Option<u64>, "ns", "Longest time between two of these sends. Absent: it was not repeated.";
    timeout_min: Option<u32>, "", "Smallest local ACK timeout N (4.096 us x 2^N) that fits these times: an adapter waits that long, and up to four times as long (IBTA 9.7.6.1.3). Absent: no value fits.";
    timeout_max: Option<u32>, "", "Largest local ACK timeout N that fits them. Absent: no value fits.";
    rnr_naks: u64, "packets", "RNR NAKs for the last request, one after another.";
    last_answer_time: Option<Time>, "ns", "Capture time of the last answer that acknowledged something new. Absent: there was none, or the flow of the answers is not known.";
    waited_ns: u64, "ns", "Time from the last sign of progress to `time`: what the connection waited in vain.";
    silence_ns: u64, "ns", "Time from the last packet of the connection to the end of the capture at its tap.";
    peer_last_time: Option<Time>, "ns", "Time of the last packet that the responder's address sent to the requester on any other queue pair. Absent: it sent none.";
    peer_answers: bool, "", "True if the responder's address answered other queue pairs of the requester while this one waited: the host and the way to it are alive.";
    to_itself: bool, "", "True if the frames were addressed to the MAC address that sent them: no other host gets them.";
    bad_icrc: bool, "", "True if each ICRC that was checked at packets of the requester's address was wrong: receivers drop such packets silently.";
    followed_by: Option<FlowId>, "", "The next connection of the two hosts that began after this end. Absent: there was none.";
    followed_after_ns: Option<u64>, "ns", "Time from the end to the first packet of that connection. Absent: there was none.";
    path_mtu: Option<u32>, "bytes", "Path MTU of the requester's packets to the responder. Absent: no packet shows it.";
    peer_path_mtu: Option<u32>, "bytes", "Path MTU of the responder's packets to the requester. Absent: no packet shows it.";
    confidence: Confidence, "", "Confidence in the outcome: high, medium, low.";
}

names! {
    /// EndKind of a connection.
    #[derive(PartialOrd, Ord)]
    EndKind {
        /// A NAK of the responder ended it: invalid request, remote access error, remote operational error.
        Refused = "refused",
        /// The responder had no receive buffer until the requester gave up.
        RnrExhausted = "rnr-exhausted",
        /// Requests were repeated after a timer, and not one answer came since the first packet of the connection.
        NeverAnswered = "never-answered",
        /// The last request was repeated after a timer, and no answer came any more.
        RetriesUnanswered = "retries-unanswered",
        /// Requests waited for answers at the end of the capture, longer than any timer that the connection showed.
        Silent = "silent",
        /// It was closed, or nothing waited for an answer at the end of the capture.
        #[default]
        Closed = "closed",
    }
}

/// Statuses that say how a queue pair ended (`enum ibv_wc_status`).
const REMOTE_ERRORS: core::ops::RangeInclusive<u32> = 9..=11;
const RETRIES_EXHAUSTED: u32 = 12;
const RNR_RETRIES_EXHAUSTED: u32 = 13;

impl EndKind {
    /// True if a completion with this status (`enum ibv_wc_status`) follows from such an end: 9 to 11 from a refusal, 12 from requests without
    /// an answer, 13 from RNR NAKs. `None` for a status that packets do not show.
    pub fn explains(self, status: u32) -> Option<bool> {
        match status {
            RETRIES_EXHAUSTED => Some(matches!(
                self,
                Self::NeverAnswered | Self::RetriesUnanswered | Self::Silent
            )),
            RNR_RETRIES_EXHAUSTED => Some(self == Self::RnrExhausted),
            status if REMOTE_ERRORS.contains(&status) => Some(self == Self::Refused),
            _ => None,
        }
    }
}
