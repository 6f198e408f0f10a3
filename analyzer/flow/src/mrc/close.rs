//! The rows of a connection and its paths at the end.

use std::collections::BTreeSet;

use roce_model::{Address, Confidence, MrcConnectionRow, MrcEntropyOrder, MrcPathRow, MrcPathState, TapId};

use super::causes::Union;
use super::connection::{Connection, NEARLY_ALL};
use super::paths::Path;

/// Packets of a path that its share lets expect, when none came: e^-7, 1 in 1,000, is the chance of that.
const MIN_EXPECTED: u64 = 7;

impl Connection {
    /// The rows, with the number of the connection.
    pub(super) fn close(self, number: u32) -> (MrcConnectionRow, Vec<MrcPathRow>) {
        let row = self.row(number);
        let is_partial = row.confidence == Confidence::Low;
        let order = row.entropy_order;
        let planes = self.planes();
        let paths = self.paths.list.iter().enumerate().map(|(at, path)| {
            let mut row = path_row(path, order, row.at_receiver);
            row.connection = number;
            row.path = u32::try_from(at).unwrap_or(u32::MAX);
            row.plane = planes.of(path);
            row.state = if is_partial {
                MrcPathState::Unknown
            } else {
                state(path, self.counts.packets)
            };
            row
        });
        (row.clone(), paths.collect())
    }

    fn row(&self, number: u32) -> MrcConnectionRow {
        let counts = &self.counts;
        let at_receiver = self.is_at_receiver();
        let psn = |position: u64| u32::try_from(position & ((1 << self.psn_bits) - 1)).unwrap_or_default();
        let is_late = |last| self.failed_at.is_some_and(|failed| last <= failed);
        let mut row = MrcConnectionRow {
            connection: number,
            requestor: self.requestor,
            responder: self.responder,
            requestor_qpn: self.requestor_qpn,
            responder_qpn: self.responder_qpn,
            taps: u32::try_from(self.taps.len()).unwrap_or(u32::MAX),
            udp_port: self.udp_port.into(),
            entropy_order: self.paths.order(),
            ids_order: self.ids_order,
            has_stamps: self.has_stamps,
            at_receiver,
            first_psn: self.range.map(|(low, _)| psn(low)),
            last_psn: self.range.map(|(_, high)| psn(high)),
            data_packets: counts.distinct,
            packets: counts.packets,
            payload_bytes: counts.payload,
            retransmitted_packets: counts.again,
            retransmitted_bytes: counts.again_bytes,
            lost: counts.lost,
            undecided: counts.undecided,
            spurious: counts.spurious,
            spurious_bytes: counts.spurious_bytes,
            reordered: counts.reordered,
            sacks: counts.sacks,
            sacks_skip: counts.skip,
            sacks_avoid: counts.avoid,
            window_psns: counts.window,
            penalty_max: counts.penalty_max.into(),
            penalty_sacks: counts.penalties,
            out_of_order_max: counts.out_of_order.into(),
            probes: counts.probes,
            probes_unanswered: counts.unanswered,
            rtt_min_ns: self.shortest.map(|time| time.0).filter(|_| !at_receiver),
            skew_max_ns: self.skew.map(|skew| skew.0),
            failed: self.last_data.is_none_or(is_late) && self.failed_at.is_some(),
            first_time: self.first,
            last_time: self.last,
            last_data_time: self.last_data,
            confidence: self.confidence(at_receiver),
            open: self.open(),
            ..MrcConnectionRow::default()
        };
        self.write_causes(&mut row);
        self.write_messages(&mut row);
        row
    }

    /// Fills in what was sent again, trimmed and refused, by cause.
    fn write_causes(&self, row: &mut MrcConnectionRow) {
        let counts = &self.counts;
        [
            row.rtx_hole,
            row.rtx_trimmed,
            row.rtx_trimmed_lasthop,
            row.rtx_refused,
            row.rtx_timeout,
            row.rtx_unknown,
        ] = counts.causes;
        [row.trimmed, row.trimmed_lasthop] = counts.trimmed;
        [
            row.repair_loss_ns,
            row.repair_trim_ns,
            row.repair_lasthop_ns,
            row.repair_refused_ns,
            row.repair_timeout_ns,
            _,
        ] = self.repair.map(Union::ns);
        [
            row.nacks_trimmed,
            row.nacks_trimmed_lasthop,
            row.nacks_resources,
            row.nacks_window,
            row.nacks_failed,
            row.nacks_other,
        ] = counts.refusals;
    }

    fn write_messages(&self, row: &mut MrcConnectionRow) {
        let times = self.messages.times.summary();
        row.messages = self.messages.seen;
        row.messages_complete = self.messages.complete;
        row.completion_p50_ns = times.quantile(50);
        row.completion_p99_ns = times.quantile(99);
    }

    /// Captured packets that no SACK speaks of.
    fn open(&self) -> u64 {
        self.sent.waiting().filter(|slot| slot.sent.is_some()).count() as u64
    }

    /// The taps are behind what was lost: data have passed more hops there than answers, or what was sent again had not been seen, and
    /// everything else was.
    fn is_at_receiver(&self) -> bool {
        let fewer = match (self.data_hops, self.answer_hops) {
            (Some(data), Some(answers)) => data < answers,
            _ => false,
        };
        let counts = &self.counts;
        fewer || counts.unplaced > 0 && counts.unplaced == counts.lost && self.is_covered(NEARLY_ALL)
    }

    fn confidence(&self, at_receiver: bool) -> Confidence {
        if self.range.is_none() || at_receiver {
            Confidence::Medium
        } else if self.is_covered(99) && self.counts.sacks > 0 {
            Confidence::High
        } else {
            Confidence::Low
        }
    }

    fn planes(&self) -> Planes {
        let outers = self.paths.list.iter().filter_map(|path| Some(path.outer?[0]));
        let taps = self.paths.list.iter().filter_map(|path| path.tap);
        Planes {
            outers: outers.collect(),
            taps: taps.collect(),
        }
    }
}

/// Planes of a connection: by the outer source addresses, else by taps.
struct Planes {
    outers: BTreeSet<Address>,
    taps: BTreeSet<TapId>,
}

impl Planes {
    fn of(&self, path: &Path) -> Option<u32> {
        let place = match path.outer {
            Some([source, _]) => self.outers.range(..source).count(),
            None if self.taps.len() > 1 => self.taps.range(..path.tap?).count(),
            None => return None,
        };
        u32::try_from(place).ok()
    }
}

fn path_row(path: &Path, order: MrcEntropyOrder, at_receiver: bool) -> MrcPathRow {
    let times = path.times.summary();
    let time = |time: Option<u64>| time.filter(|_| !at_receiver);
    MrcPathRow {
        ev: path
            .carried
            .and_then(|carried| carried.entropy(order))
            .or(path.entropy),
        udp_source_port: path.carried.map(|carried| carried.port.into()),
        flow_label: path.carried.and_then(|carried| carried.label).map(Into::into),
        srv6: path.outer.map(|[_, destination]| destination.to_string().into()),
        sent: path.sent,
        rtx: path.again,
        arrived: path.arrived,
        lost: path.lost,
        trimmed: path.trimmed[0],
        trimmed_lasthop: path.trimmed[1],
        sacks: path.sacks,
        marked: path.marked,
        rtt_samples: times.count(),
        rtt_min_ns: time(times.min()),
        rtt_p50_ns: time(times.quantile(50)),
        rtt_p99_ns: time(times.quantile(99)),
        rtt_max_ns: time(times.max()),
        first_loss_time: path.first_loss,
        last_loss_time: path.last_loss,
        last_sent_time: path.last_sent,
        last_arrived_time: path.last_arrived,
        probes_unanswered: path.unanswered,
        repair_ns: path.repair.ns(),
        ..MrcPathRow::default()
    }
}

/// The state of a path, where its connection has sent `all` packets. A path that is no longer used without a loss may be one of many.
fn state(path: &Path, all: u64) -> MrcPathState {
    if path.sent == 0 {
        return MrcPathState::Unknown;
    }
    let since = all - path.all_at_last;
    let is_unused = since.saturating_mul(path.sent) >= MIN_EXPECTED * path.all_at_last.max(1);
    match (is_unused, path.lost > 0, path.unanswered > 0) {
        (false, ..) => MrcPathState::InUse,
        (true, true, true) => MrcPathState::Dead,
        (true, true, false) => MrcPathState::Retired,
        (true, false, _) => MrcPathState::Unknown,
    }
}
