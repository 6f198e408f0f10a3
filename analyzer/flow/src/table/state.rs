//! State of a live flow: the part that every packet touches, and the rest.

mod attributes;
mod peering;
mod prefetch;
mod row;
mod trouble;

use roce_model::{Active, FlowId, FlowKey, Groups, Packet, TapId, Time};
use roce_wire::{Psn, Service};

use crate::congestion::dcqcn::replay::Replay;
use crate::congestion::pauses::PausedTime;
use crate::congestion::progress::WINDOW_PACKETS;
use crate::congestion::reaction::{Congestion, Meter};
use crate::counts::{Counts, FlowTotals};
use crate::credits::WriteHandle;
use crate::division::{BurstGap, Division, TurnsHandle};
use crate::key::{FlowSlot, Key};
use crate::pairing::evidence::Peer;
use crate::psn::jump::CompletedMessages;
use crate::psn::read_holes::Reads;
use crate::psn::read_responses::Responses;
use crate::psn::request::Requests;
use crate::psn::tracker::Tracker;
use crate::rows::{Limits, Row};
use crate::table::attributes::FlowAttributes;
use crate::table::state::peering::OtherDirection;
pub(crate) use crate::table::state::trouble::Trouble;
use crate::taps::duplicates::CopyEvidence;
use crate::taps::vantage;
use crate::taps::vantage::Other;
use crate::timing::distribution::Distribution;
use crate::timing::latency::{BinTimes, Times};
use crate::timing::messages::{Messages, PendingRead};
use crate::timing::send_answers::SendAnswers;
use crate::timing::stall::{SilenceHistory, SilenceThreshold};

/// State that packets of a flow touch: three cache lines, and a fourth with the first and the last ones of messages, answers, and
/// when a row closes.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Hot {
    // The first line: what finds the flow, and what its next request should be.
    /// The key and the tap, as the table compares them.
    pub(crate) packed: Key,
    pub(crate) requests: Requests,
    // The second one.
    pub(crate) last_request: Time,
    pub(crate) last_time: Time,
    pub(crate) messages: Messages,
    pub(crate) evidence: CopyEvidence,
    /// The tap's count of losses that the flow knows of.
    pub(crate) losses: u32,
    source_port: u16,
    dscp: u8,
    /// Packets until its rate is looked at; from 0 it is 256.
    pub(crate) pace: u8,
    /// Length of a silence that ends a burst of requests.
    pub(crate) burst_gap: BurstGap,
    /// Length of a silence from which the flow's pace is compared.
    pub(crate) quiet: SilenceThreshold,
    /// Seen since the clock hand of the eviction last came by.
    pub(crate) referenced: bool,
    /// Has counts in the current bin.
    pub(crate) active: bool,
    // The third.
    pub(crate) counts: Counts,
    /// Data packets with this DSCP since the last change.
    pub(crate) dscp_run: u32,
    /// Application data in requests sent for the first time, modulo 2^32.
    pub(crate) sent_bytes: u32,
    // The fourth.
    pub(crate) icrc_checked: u64,
    pub(crate) tap: TapId,
    /// The place of the flow of the other direction; [`FlowSlot::NONE`] while that is not known.
    pub(crate) peer: FlowSlot,
    pub(crate) last_mark: NotedMark,
    pub(crate) trust: PeerTrust,
    /// Another tap saw packets of it, too.
    pub(crate) matched: bool,
    /// The slot holds a flow.
    pub(crate) live: bool,
    /// Answers to its requests left times in the current bin.
    pub(crate) timed: bool,
    pub(crate) writes: PlainWrites,
    /// Where its turns at its host's port are.
    pub(crate) turns: TurnsHandle,
}

/// The CE mark of a flow that was noted last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NotedMark {
    /// Its unit of time; see [`crate::congestion::recent_marks`].
    pub(crate) unit: u32,
    /// No notification came since.
    pub(crate) is_pending: bool,
}

/// How sure it is which flow is the other direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeerTrust {
    /// How much speaks against it.
    pub(crate) doubt: u8,
    /// It is known, or has been.
    pub(crate) was_known: bool,
}

/// WRITEs of a flow of which credits need not know at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlainWrites {
    /// They carry neither credits nor data of credits, as far as is known.
    pub(crate) are_plain: bool,
    /// Messages since credits were last looked for.
    pub(crate) messages: u32,
}

/// State that is touched when something unusual happens, and when a row closes. Fields that are used together are neighbours:
/// the lines of one flow are seldom in a cache.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Cold {
    // When a row closes: the first two lines, and a third with what is rare.
    pub(crate) id: FlowId,
    pub(crate) groups: Groups,
    pub(crate) epoch: u32,
    /// Where its last row is among those of its bin.
    pub(crate) row_at: u32,
    /// The number of its pair of hosts; see [`crate::pair_places`].
    pub(crate) pair: u32,
    /// True if notifications that slow the flow are known as such: its other direction is known, or its packets say
    /// which queue pair they come from.
    knows_cnp: bool,
    pub(crate) totals: FlowTotals,
    // With requests: one line.
    /// Times of answers; made with the first request after the other direction is known.
    pub(crate) times: Option<Box<Times>>,
    /// Times and responses of READs, made likewise.
    pub(crate) reads: Option<Box<Reads>>,
    pub(crate) lengths: Distribution,
    // With answers: the line of requests, and the first one of this.
    pub(crate) tracker: Tracker,
    /// Messages that its receiver has completed.
    pub(crate) completed: CompletedMessages,
    pub(crate) pending_read: Option<PendingRead>,
    /// The rate before any time, once the flow has sent some packets.
    pub(crate) meter: Option<Box<Meter>>,
    /// Marks and notifications, once there are some.
    pub(crate) congestion: Option<Box<Congestion>>,
    pub(crate) pace: SilenceHistory,
    pub(crate) responses: Responses,
    pub(crate) kinds: RequestKinds,
    // While the other direction is looked for, and rarely.
    pub(crate) key: FlowKey,
    /// No other flow, and no other epoch of this one, has the same. Never 0.
    pub(crate) serial: u32,
    pub(crate) peering: OtherDirection,
    /// Its sender under DCQCN, from the first notification on.
    pub(crate) replay: Option<Box<Replay>>,
    /// When the flow last carried a NAK, RNR NAKs not counted; 0: never.
    pub(crate) last_nak: Time,
    pub(crate) first_time: Time,
    pub(crate) first_psn: Option<Psn>,
    /// Where its time went; made with its first request.
    pub(crate) division: Option<Box<Division>>,
    /// Its pauses, once there are some at its tap.
    pauses: Option<Box<PauseSums>>,
    /// Counts of retransmissions and losses, once there are some.
    pub(crate) trouble: Option<Box<Trouble>>,
    attributes: FlowAttributes,
}

/// Requests of one flow by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestKinds {
    pub(crate) reads: u64,
    pub(crate) atomics: u64,
    /// WRITEs, as credits or data.
    pub(crate) writes: WriteHandle,
    /// SENDs and how programs answer them, once there are some.
    pub(crate) sends: Option<Box<SendAnswers>>,
}

/// The pauses of one flow.
#[derive(Clone, Copy, Debug, Default)]
struct PauseSums {
    /// How long the flow was paused from its first row to its last.
    paused: Option<u64>,
    /// The pauses that it could have had up to its last row, since there are any at its tap.
    before: Option<u64>,
}

/// Hashes of a flow's tap and hosts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hosts {
    /// To which groups the flow belongs.
    pub(crate) groups: Groups,
    /// Tap, destination and source: the pair of the other direction.
    pub(crate) back: u64,
}

impl Hosts {
    /// Those of the flow of a packet.
    pub(crate) fn from_packet(packet: &Packet) -> Self {
        let (source, destination) = (packet.roce.source, packet.roce.destination);
        Self {
            groups: Groups::new(packet.tap, source, destination),
            back: Groups::new(packet.tap, destination, source).pair,
        }
    }
}

impl Hot {
    pub(crate) fn new(packet: &Packet, key: Key) -> Self {
        Self {
            packed: key,
            requests: Requests::default(),
            last_request: Time::default(),
            last_time: packet.time,
            messages: Messages::default(),
            evidence: CopyEvidence::default(),
            losses: 0,
            source_port: packet.roce.udp_source_port,
            dscp: packet.roce.dscp(),
            referenced: true,
            active: false,
            matched: false,
            live: true,
            counts: Counts::default(),
            dscp_run: 0,
            icrc_checked: 0,
            tap: packet.tap,
            peer: FlowSlot::NONE,
            last_mark: NotedMark::default(),
            trust: PeerTrust::default(),
            pace: WINDOW_PACKETS,
            timed: false,
            writes: PlainWrites::default(),
            turns: TurnsHandle::ALONE,
            quiet: SilenceThreshold::default(),
            burst_gap: BurstGap::default(),
            sent_bytes: 0,
        }
    }

    /// True if the flow of the other direction is known.
    #[inline]
    pub(crate) fn is_paired(&self) -> bool {
        self.peer != FlowSlot::NONE
    }

    /// True if its next packet is that with which its rate is looked at.
    #[inline]
    pub(crate) fn is_paced_next(&self) -> bool {
        self.pace == 1
    }

    /// Starts the flow's next epoch at `time`.
    pub(crate) fn next_epoch(&mut self, time: Time) {
        self.last_time = time;
        self.matched = false;
        self.messages.restart();
        self.icrc_checked = 0;
        self.dscp_run = 0;
        self.sent_bytes = 0;
    }
}

impl Cold {
    /// When an answer came first to something behind the READ at `position`; 0: none did. `None`: of no READ.
    pub(crate) fn implied_since(&self, position: Option<u64>) -> Time {
        let reads = self.reads.as_ref().zip(position);
        reads.map_or(Time(0), |(reads, position)| reads.first_beyond(position))
    }

    /// The state of a flow that begins with `packet`.
    pub(crate) fn new(packet: &Packet, epoch: u32, serial: u32, hosts: Hosts) -> Self {
        let key = FlowKey::from_packet(&packet.roce);
        Self {
            id: key.id(),
            knows_cnp: key.service == Service::Ud,
            groups: hosts.groups,
            epoch,
            serial,
            row_at: u32::MAX,
            pair: u32::MAX,
            times: None,
            replay: None,
            totals: FlowTotals::default(),
            key,
            reads: None,
            lengths: Distribution::default(),
            division: None,
            pending_read: None,
            tracker: Tracker::default(),
            completed: CompletedMessages::default(),
            meter: None,
            congestion: None,
            pace: SilenceHistory::default(),
            responses: Responses::default(),
            kinds: RequestKinds::default(),
            peering: OtherDirection::new(hosts.back),
            last_nak: Time(0),
            first_time: packet.time,
            first_psn: None,
            pauses: None,
            trouble: None,
            attributes: FlowAttributes::new(packet),
        }
    }

    /// Starts the flow's next epoch at `time`: identity and attributes stay.
    pub(crate) fn next_epoch(&mut self, time: Time) {
        self.epoch += 1;
        self.first_time = time;
        self.totals = FlowTotals::default();
        self.lengths = Distribution::default();
        self.division = None;
        self.pending_read = None;
        self.responses = Responses::default();
        self.first_psn = None;
        self.completed = CompletedMessages::default();
        self.trouble = None;
        (self.times, self.reads, self.pace) = (None, None, SilenceHistory::default());
        self.kinds = RequestKinds::default();
        self.attributes.next_epoch();
        self.congestion = None;
        self.peering.set_other(None);
        self.meter = None;
        self.pauses = None;
        // A queue pair that was made again begins with the whole line; if it was not, that is an upper bound, too.
        self.replay = None;
    }

    /// A row of the flow ends, up to whose end its path was paused for this time: in the row's bin, and in the bins without packets
    /// since the row before it.
    pub(crate) fn paused(&mut self, paused: Option<PausedTime>) {
        let Some(PausedTime {
            in_bin,
            in_all,
            first,
        }) = paused
        else {
            if let Some(sums) = &mut self.pauses {
                sums.before = None;
            }
            return;
        };
        let sums = self.pauses.get_or_insert_default();
        let before = sums.before.or_else(|| {
            // At its first row: nothing, when the flow is older than the tap's first pause.
            let older = sums.paused.is_none() && self.first_time < first;
            if older {
                Some(0)
            } else {
                in_all.map(|all| all.saturating_sub(in_bin))
            }
        });
        if let (Some(all), Some(before)) = (in_all, before) {
            *sums.paused.get_or_insert(0) += all.saturating_sub(before);
        }
        sums.before = in_all;
    }

    /// Sets the other direction, or forgets it.
    pub(crate) fn set_peer(&mut self, peer: Option<Peer>) {
        self.peering.set_peer(peer);
        self.knows_cnp = peer.is_some() || self.key.service == Service::Ud;
    }

    /// A timeline row of the flow, without pair, times and limits.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "most of it is replaced where it is called")]
    pub(crate) fn row(&self, tap: TapId, knows_answers: bool, counts: Counts) -> Row {
        Row {
            flow_id: self.id,
            tap,
            epoch: self.epoch,
            pair: 0,
            knows_cnp: self.knows_cnp,
            paired: knows_answers,
            times: BinTimes::default(),
            limits: Limits::default(),
            active: Active::ALL,
            counts,
        }
    }

    /// Knowledge of the tap's place that the flow gives to its other direction.
    pub(crate) fn to_other(&self) -> Other {
        Other {
            hop_limit: self.attributes.hop_limit(),
            has_data: self.totals.data_packets() > 0,
            turnaround: self.times.as_ref().and_then(|times| {
                let (answers, median) = times.ack_rtt();
                vantage::turnaround(answers, median)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::mem::offset_of;

    use super::*;

    #[test]
    fn what_comes_together_shares_cache_lines() {
        assert_eq!(size_of::<Hot>(), 256);
        assert_eq!(
            offset_of!(Hot, icrc_checked),
            192,
            "every packet touches three lines"
        );
        assert_eq!(
            offset_of!(Cold, times),
            192,
            "a row two, and a third with what is rare"
        );
        assert_eq!(offset_of!(Cold, tracker), 256, "requests one line, answers two");
        // State that a paired flow has besides; distributions, marks and holes come as they are needed.
        let paired = size_of::<Cold>() + size_of::<Times>() + size_of::<crate::psn::acks::Answers>();
        let paired = paired + size_of::<Division>();
        assert!(256 + paired <= 3 * 1024, "{paired}");
    }

    /// 3 KB are for all of a flow; what it needs seldom is apart, in boxes of their own.
    #[test]
    fn the_rest_is_small_as_well() {
        assert!(size_of::<Cold>() <= 1280, "{}", size_of::<Cold>());
        assert!(size_of::<Congestion>() <= 384, "{}", size_of::<Congestion>());
    }
}
