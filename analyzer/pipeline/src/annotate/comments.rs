//! The comment of one frame: what the analysis knows of it, and in which frames its causes are.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::num::NonZeroUsize;

use lru::LruCache;
use roce_model::{
    Between, EpisodeKind, EventKind, Filter, FlowId, FlowKey, LostRecords, PacketBatch, PauseFrame, TapId,
    Time,
};
use roce_wire::transport::mrc::is_write;
use roce_wire::{AethKind, Ecn, ExtendedHeaders, PauseKind, Psn, Roce};

use super::known::{KnownResults, Moment};
use super::mrc;
use super::role::PacketRole;

/// Packets whose frames are known by their PSN: some 60 MB. Of others a comment says the PSN alone.
const MAX_SEEN: NonZeroUsize = NonZeroUsize::MIN.saturating_add((1 << 19) - 1);
/// Flows with a state: some 200 MB.
const MAX_FLOWS: usize = 1 << 21;

/// A comment, and what it is about.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Remark {
    pub text: String,
    pub roles: Vec<PacketRole>,
}

impl Remark {
    fn add(&mut self, sentence: &str) {
        if !self.text.is_empty() {
            self.text.push_str("; ");
        }
        self.text.push_str(sentence);
    }

    /// Adds a sentence that gives the packet a role.
    fn add_as(&mut self, role: PacketRole, sentence: &str) {
        self.has_role(role);
        self.add(sentence);
    }

    fn has_role(&mut self, role: PacketRole) {
        if !self.is(role) {
            self.roles.push(role);
        }
    }

    /// True of a packet with this role.
    pub(super) fn is(&self, role: PacketRole) -> bool {
        self.roles.contains(&role)
    }
}

/// A retransmission run that goes on.
#[derive(Clone, Debug)]
struct OpenRun {
    /// Packets that are still to come.
    left: u64,
    cause: String,
}

/// State of a flow at a tap.
#[derive(Clone, Debug, Default)]
struct State {
    /// Its moments before this one are behind.
    next: usize,
    run: Option<OpenRun>,
    /// Time and frame of the last mark.
    last_mark: Option<(Time, Option<u64>)>,
    /// Frame of the last NAK of its requests, where that is written.
    last_nak: Option<u64>,
    /// Frame of the last RNR NAK of its requests, where that is written.
    last_rnr_nak: Option<u64>,
}

/// The frame at hand, until it is known whether it is written.
#[derive(Clone, Debug, Default)]
struct PendingFrame {
    seen: Option<(TapId, FlowId, u32)>,
    mark: Option<(TapId, FlowId)>,
    nak: Option<(TapId, FlowId)>,
    rnr_nak: Option<(TapId, FlowId)>,
}

/// Makes comments, frame by frame.
pub(super) struct Commenter {
    known: KnownResults,
    flows: HashMap<(TapId, FlowId), State>,
    /// The written frame that had a PSN last.
    seen: LruCache<(TapId, FlowId, u32), u64>,
    /// Marked packets of each episode.
    marks: HashMap<u32, u64>,
    pending: PendingFrame,
}

impl Commenter {
    pub(super) fn new(known: KnownResults) -> Self {
        Self {
            known,
            flows: HashMap::new(),
            seen: LruCache::new(MAX_SEEN),
            marks: HashMap::new(),
            pending: PendingFrame::default(),
        }
    }

    /// True of a packet whose flow is the other direction of a selected one.
    pub(super) fn answers_a_selected_flow(&self, packet: &Roce, filter: &Filter) -> bool {
        self.peer(packet)
            .and_then(|peer| self.known.flows.get(&peer))
            .is_some_and(|peer| {
                let key = FlowKey {
                    source: peer.source,
                    destination: peer.destination,
                    destination_qpn: peer.destination_qpn,
                    ..FlowKey::from_packet(packet)
                };
                filter.matches_flow(&key, None)
            })
    }

    /// The flow that a packet answers, or slows down.
    fn peer(&self, packet: &Roce) -> Option<FlowId> {
        let place = (packet.source, packet.destination, packet.bth.destination_qpn());
        let own = self.known.by_queue_pair.get(&place)?;
        self.known.flows.get(own)?.peer
    }

    /// The comment of a frame; `None` if there is nothing to say. With `all`, each packet's flow is named.
    pub(super) fn frame(&mut self, batch: &PacketBatch, all: bool) -> Option<Remark> {
        self.pending = PendingFrame::default();
        let mut remark = Remark::default();
        for between in &batch.between {
            match between {
                Between::Lost(lost) if lost.records > 0 => {
                    remark.add_as(PacketRole::RecordsLost, &lost_before(lost));
                }
                Between::Pause(pause) => remark.add_as(PacketRole::Pause, &paused(pause)),
                _ => {}
            }
        }
        if let Some(packet) = batch.packets.first() {
            let (tap, time, roce) = (packet.tap, packet.time, &packet.roce);
            let opcode = roce.bth.opcode();
            if opcode.is_cnp() {
                self.cnp(tap, time, roce, &mut remark);
            } else {
                self.packet(tap, time, roce, &mut remark);
            }
            for between in &batch.between {
                if let Between::Management(message) = between {
                    remark.add_as(
                        PacketRole::Management,
                        &format!("connection manager: {}", message.name),
                    );
                }
            }
            if all {
                let flow = FlowKey::from_packet(roce);
                let place = format!(
                    "{} of {} > {} QP {}, PSN {}",
                    roce.operation(),
                    flow.source,
                    flow.destination,
                    flow.destination_qpn,
                    roce.bth.psn()
                );
                remark.add(&place);
            }
        }
        (!remark.text.is_empty()).then_some(remark)
    }

    /// The frame is written as number `number`.
    pub(super) fn written(&mut self, number: u64) {
        let pending = std::mem::take(&mut self.pending);
        if let Some(key) = pending.seen {
            self.seen.put(key, number);
        }
        if let Some(state) = pending.mark.and_then(|key| self.flows.get_mut(&key))
            && let Some((_, frame)) = &mut state.last_mark
        {
            *frame = Some(number);
        }
        if let Some(state) = pending.nak.and_then(|key| self.flows.get_mut(&key)) {
            state.last_nak = Some(number);
        }
        if let Some(state) = pending.rnr_nak.and_then(|key| self.flows.get_mut(&key)) {
            state.last_rnr_nak = Some(number);
        }
    }

    fn state(&mut self, key: (TapId, FlowId)) -> Option<&mut State> {
        if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&key) {
            return None;
        }
        Some(self.flows.entry(key).or_default())
    }

    /// Moments of a flow at `time`. Those before it are passed.
    fn moments(&mut self, key: (TapId, FlowId), time: Time) -> Vec<Moment> {
        let Some(all) = self.known.moments.get(&key) else {
            return Vec::new();
        };
        let next = self.flows.get(&key).map_or(0, |state| state.next);
        let rest = all.get(next..).unwrap_or_default();
        let behind = rest.iter().take_while(|moment| moment.time < time).count();
        let rest = rest.get(behind..).unwrap_or_default();
        let now: Vec<Moment> = rest
            .iter()
            .take_while(|moment| moment.time == time)
            .copied()
            .collect();
        if behind > 0
            && let Some(state) = self.state(key)
        {
            state.next = next + behind;
        }
        now
    }

    fn packet(&mut self, tap: TapId, time: Time, roce: &Roce, remark: &mut Remark) {
        let opcode = roce.bth.opcode();
        let flow = FlowKey::from_packet(roce).id();
        let key = (tap, flow);
        let psn = roce.bth.psn();
        if roce.seen.has(ExtendedHeaders::AETH) {
            self.answer(tap, time, roce, remark);
        }
        if opcode.carries_data() {
            remark.has_role(PacketRole::Data);
        }
        let moments = self.moments(key, time);
        for moment in &moments {
            self.moment(key, moment, &moments, psn, remark);
        }
        if opcode.is_request() {
            self.retransmission(key, psn, remark);
        }
        let message = self
            .known
            .messages
            .comment(flow, time, !opcode.is_request(), duration);
        if let Some((message, is_credit)) = message {
            let part = if is_credit {
                PacketRole::Credit
            } else {
                PacketRole::Message
            };
            remark.add_as(part, &message);
        }
        if opcode.is_request() || opcode.is_read_response() || is_write(opcode.0) {
            self.pending.seen = Some((tap, flow, psn.value()));
        }
        if roce.carrier.has_ip() && roce.ecn() == Ecn::Ce && opcode.carries_data() {
            self.mark(tap, flow, time, roce, remark);
        }
    }

    /// Comment of a moment on the packet with this PSN.
    fn moment(
        &mut self,
        key: (TapId, FlowId),
        moment: &Moment,
        all: &[Moment],
        psn: Psn,
        remark: &mut Remark,
    ) {
        let own = moment.psn == psn.value();
        match moment.kind {
            EventKind::Gap | EventKind::ResponseGap => {
                let count = u32::try_from(moment.value).unwrap_or(u32::MAX);
                if Psn::new(moment.psn).plus(count) == psn {
                    remark.add_as(PacketRole::Missing, &missing(moment, all));
                }
            }
            EventKind::RetransmissionRun if own => {
                if let Some(state) = self.state(key) {
                    let cause = cause(moment.detail, state);
                    state.run = Some(OpenRun {
                        left: moment.value,
                        cause,
                    });
                }
            }
            EventKind::Late if own => remark.add_as(
                PacketRole::Late,
                "late: packets behind it overtook it on the way; no loss",
            ),
            EventKind::Stall if own => {
                let stood = duration(moment.value);
                let text = format!("the flow stood still for {stood} before this packet");
                remark.add_as(PacketRole::Stall, &text);
            }
            EventKind::Epoch if own => {
                remark.add_as(PacketRole::Epoch, "the flow's PSNs start again: a new connection");
            }
            kind if own => {
                let frame = self.seen.peek(&(key.0, key.1, moment.psn)).copied();
                if let Some(text) = mrc::comment(moment, frame) {
                    remark.add_as(PacketRole::Mrc, &text);
                    if kind == EventKind::MrcRetransmit {
                        remark.has_role(PacketRole::Retransmission);
                    }
                }
            }
            _ => {}
        }
    }

    /// A request of a run that goes on is a retransmission.
    fn retransmission(&mut self, key: (TapId, FlowId), psn: Psn, remark: &mut Remark) {
        let Some(run) = self.flows.get_mut(&key).and_then(|state| state.run.as_mut()) else {
            return;
        };
        let cause = run.cause.clone();
        run.left = run.left.saturating_sub(1);
        if run.left == 0
            && let Some(state) = self.flows.get_mut(&key)
        {
            state.run = None;
        }
        let (tap, flow) = key;
        let original = match self.seen.peek(&(tap, flow, psn.value())) {
            Some(frame) => format!("retransmission of frame {frame}"),
            None => format!("retransmission of PSN {psn}, which is in no earlier frame"),
        };
        remark.add_as(PacketRole::Retransmission, &format!("{original}, {cause}"));
    }

    /// A NAK or RNR NAK: about requests of the other direction.
    fn answer(&mut self, tap: TapId, time: Time, roce: &Roce, remark: &mut Remark) {
        let peer = self.peer(roce);
        let followed = peer.filter(|peer| self.state((tap, *peer)).is_some());
        let psn = roce.bth.psn();
        match roce.aeth.kind() {
            AethKind::Nak(nak) => {
                let mut text = format!("NAK, {}: ", nak.name());
                let frame = peer.and_then(|peer| self.seen.peek(&(tap, peer, psn.value())).copied());
                let was_lost_behind = peer.is_some_and(|peer| {
                    let moments = self.moments((tap, peer), time);
                    let mut lost = moments
                        .iter()
                        .filter(|moment| moment.kind == EventKind::LostDownstream);
                    lost.any(|moment| moment.psn == psn.value())
                });
                // Only this code names the PSN that is expected next (IBTA 9.7.5.2.8).
                if nak == roce_wire::Nak::PsnSequenceError {
                    let _ = write!(text, "the receiver waits for PSN {psn}");
                    if was_lost_behind {
                        text.push_str(", which was lost behind this point of capture");
                    }
                } else {
                    let _ = write!(text, "the request with PSN {psn} failed");
                }
                if let Some(frame) = frame {
                    let _ = write!(text, " (frame {frame})");
                }
                remark.add_as(PacketRole::Nak, &text);
                self.pending.nak = followed.map(|peer| (tap, peer));
            }
            AethKind::RnrNak { timer } => {
                let text = format!(
                    "RNR NAK: no receive buffer was posted for PSN {psn}; the sender waits for {timer}"
                );
                remark.add_as(PacketRole::RnrNak, &text);
                self.pending.rnr_nak = followed.map(|peer| (tap, peer));
            }
            AethKind::Ack { .. } => remark.has_role(PacketRole::Ack),
            AethKind::Reserved(_) => {}
        }
    }

    /// A marked packet, and its place in the episode.
    fn mark(&mut self, tap: TapId, flow: FlowId, time: Time, roce: &Roce, remark: &mut Remark) {
        remark.has_role(PacketRole::Mark);
        if let Some(state) = self.state((tap, flow)) {
            state.last_mark = Some((time, None));
            self.pending.mark = Some((tap, flow));
        }
        let destination = roce.destination;
        let spans = self.known.episodes.get(&(tap, destination));
        let now = spans.into_iter().flatten().filter(|span| {
            matches!(span.kind, EpisodeKind::Ecn | EpisodeKind::Incast)
                && (span.start..=span.end).contains(&time)
        });
        // An incast says more than its marks alone.
        let Some(span) = now.max_by_key(|span| span.kind == EpisodeKind::Incast) else {
            remark.add("CE: marked by a switch");
            return;
        };
        let count = self.marks.entry(span.number).or_default();
        *count += 1;
        let senders = match span.senders {
            0 | 1 => String::new(),
            senders => format!(", {senders} senders"),
        };
        remark.add(&format!(
            "CE: mark {count} of episode {} ({} into {destination}{senders})",
            span.number,
            span.kind.name()
        ));
    }

    /// A CNP: about the flow of the other direction.
    fn cnp(&mut self, tap: TapId, time: Time, roce: &Roce, remark: &mut Remark) {
        remark.has_role(PacketRole::Cnp);
        let Some(slowed) = self.peer(roce) else {
            remark.add(&format!(
                "CNP for {} QP {}; the flow that it slows is not known",
                roce.destination,
                roce.bth.destination_qpn()
            ));
            return;
        };
        let mut text = format!("CNP: slows {}", self.known.name(slowed).unwrap_or_default());
        let last = self.flows.get(&(tap, slowed)).and_then(|state| state.last_mark);
        if let Some((marked, frame)) = last {
            let since = duration(time.since(marked).0);
            let _ = write!(text, "; {since} after its last mark");
            if let Some(frame) = frame {
                let _ = write!(text, " (frame {frame})");
            }
        }
        remark.add(&text);
    }
}

/// The missing PSNs before a packet, by what became of them.
fn missing(gap: &Moment, all: &[Moment]) -> String {
    let count = u32::try_from(gap.value).unwrap_or(u32::MAX);
    let first = Psn::new(gap.psn);
    let mut text = match count {
        1 => format!("missing before this packet: PSN {first}"),
        _ => format!(
            "missing before this packet: {count} PSNs from {first} to {}",
            first.plus(count - 1)
        ),
    };
    let is_inside = |psn: u32| {
        let offset = Psn::new(psn).offset_from(first);
        u32::try_from(offset).is_ok_and(|offset| offset < count)
    };
    let holes = all.iter().filter(|moment| {
        matches!(moment.kind, EventKind::Hole | EventKind::ResponseHole) && is_inside(moment.psn)
    });
    let mut separator = ": ";
    for hole in holes {
        let became = match hole.detail {
            "reordered" => "came later, overtaken",
            "network_lost" => "lost by the network",
            "capture_lost" => "not captured",
            "ambiguous" => "lost or not captured, unclear",
            _ => "unclear at the end of the capture",
        };
        let _ = write!(text, "{separator}{} {became}", hole.value);
        separator = ", ";
    }
    text
}

/// The cause of a retransmission run.
fn cause(detail: &str, flow: &State) -> String {
    let after = |name: &str, frame: Option<u64>| match frame {
        Some(frame) => format!("go-back-N after {name} in frame {frame}"),
        None => format!("go-back-N after {name}"),
    };
    match detail {
        "nak" => after("the NAK", flow.last_nak),
        "rnr" => after("the RNR NAK", flow.last_rnr_nak),
        "implied_nak" => "go-back-N after a response that skipped a request".to_owned(),
        "timeout" => "after a timeout of the sender".to_owned(),
        _ => "cause not known".to_owned(),
    }
}

/// A loss in front of a frame, in words.
fn lost_before(lost: &LostRecords) -> String {
    let by = if lost.by_mirror {
        "the mirror session"
    } else {
        "the capture"
    };
    format!("before this frame {by} lost {} records", lost.records)
}

/// A pause frame in words.
fn paused(frame: &PauseFrame) -> String {
    let pause = &frame.pause;
    if pause.kind == PauseKind::Link {
        return match pause.quanta_of(0) {
            Some(0) => "802.3x: the link may send again".to_owned(),
            Some(quanta) => format!("802.3x: pauses the whole link for {quanta} quanta of 512 bit times"),
            None => "802.3x: a pause frame without a time".to_owned(),
        };
    }
    let parts: Vec<String> = (0..8)
        .filter_map(|priority| {
            Some(match pause.quanta_of(priority)? {
                0 => format!("priority {priority} may send again"),
                quanta => format!("pauses priority {priority} for {quanta} quanta of 512 bit times"),
            })
        })
        .collect();
    format!("PFC: {}", parts.join(", "))
}

/// A time in the largest unit of which it is one at least, to three digits.
fn duration(nanos: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    for (unit, name) in units {
        if nanos >= unit {
            let (whole, rest) = (nanos / unit, nanos % unit * 1_000 / unit);
            return match whole {
                0..=9 => format!("{whole}.{:02} {name}", rest / 10),
                10..=99 => format!("{whole}.{} {name}", rest / 100),
                _ => format!("{whole} {name}"),
            };
        }
    }
    format!("{nanos} ns")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(kind: EventKind, psn: u32, value: u64, detail: &'static str) -> Moment {
        Moment {
            time: Time(7),
            kind,
            psn,
            value,
            detail,
        }
    }

    #[test]
    fn missing_packets_are_named_with_their_fate() {
        // PSNs 0xfffffe, 0xffffff, 0 and 1 are missing: 24 bits wrap (IBTA 9.7.1).
        let gap = moment(EventKind::Gap, 0x00ff_fffe, 4, "");
        let holes = [
            moment(EventKind::Hole, 0x00ff_fffe, 2, "network_lost"),
            moment(EventKind::Hole, 0, 2, "capture_lost"),
            moment(EventKind::Hole, 2, 1, "network_lost"),
        ];
        assert_eq!(
            missing(&gap, &holes),
            "missing before this packet: 4 PSNs from 16777214 to 1: 2 lost by the network, 2 not captured"
        );
        let one = moment(EventKind::Gap, 9, 1, "");
        assert_eq!(missing(&one, &[]), "missing before this packet: PSN 9");
    }

    #[test]
    fn times_have_three_digits() {
        for (nanos, expected) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 us"),
            (48_250, "48.2 us"),
            (655_360_000, "655 ms"),
            (12_345_678_901, "12.3 s"),
        ] {
            assert_eq!(duration(nanos), expected);
        }
    }
}
