//! Vantage of the tap on a flow's path, as the flow's own packets, and those of its other direction,
//! show it.
//!
//! `sender`: before the first place that marked or dropped its packets; `receiver`: behind the last one; `between`: there
//! are such places on both sides, or routers. Nothing is said when the evidence is thin or disagrees:
//!
//! - CE on its data, or a loss before the tap (the receiver sent a NAK for what the tap never saw): not
//!   the sender's side.
//! - A loss behind the tap (the receiver sent a NAK for what the tap saw): not the receiver's side.
//! - Notifications for it while none of many ECN-capable packets was marked: all marking is behind the tap, and if no loss
//!   lies before it either, the tap is on the sender's side.
//! - Many losses, all of them before the tap: the receiver's side.
//! - The user's word: `--tap-at`. Packets that were marked or lost before the sender's tap contradict it.
//! - Hop limits. A host sends with 64, 128 or 255, and each router takes one off (RFC 1812 5.3.1, RFC 8200 3): packets
//!   with such a value have passed no router. When one direction's have not and the other's have, the tap is in the
//!   network of the first one's source; when both have, it is between.
//! - Times of answers. ACKs that follow their packets within a microsecond, as a rule, come from the host beside the tap, whatever the packets
//!   suffer behind it: its adapter drops them. A sender that answers a NAK within three microseconds stands beside the tap.
//! - Turnaround. Where both directions carry requests, and those of one are answered many times faster
//!   than those of the other, the tap is near the host that answers fast.
//! - Other taps of the same run. Among those that saw the flow's packets the first one is on the
//!   sender's side, the last one on the receiver's, unless something above contradicts it.

use roce_model::{FlowRow, Span, TapPlace, Vantage};

/// Losses that are many.
const MANY_LOSSES: u64 = 3;
/// Answers that are enough for comparing turnarounds.
const ANSWERS: u64 = 16;
/// An answer that takes no longer comes from the host beside the tap: a switch alone takes half of it, each way.
const BESIDE_RECEIVER: u64 = 1_000;
/// An answer to a NAK that takes no longer comes from the sender beside the tap, which reads the packet from
/// memory again.
const BESIDE_SENDER: Span = Span(3_000);
/// Factor between the times of an answer from afar and of one from near.
const FASTER: u64 = 8;
/// Limit of the routers on a path: a hop limit further below an initial value started elsewhere.
const MAX_ROUTERS: u8 = 30;

/// Evidence of the other direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Other {
    pub(crate) hop_limit: u8,
    /// True if it carries data, too.
    pub(crate) has_data: bool,
    /// Median time from its requests to their answers, when there were enough.
    pub(crate) turnaround: Option<u64>,
}

/// Evidence of the tap's vantage, besides a flow's row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    /// Hop limit (TTL) of the flow's first packet.
    pub(crate) hop_limit: u8,
    /// Evidence besides the flow's own packets.
    pub(crate) outside: OutsideEvidence,
    /// The shortest time from a NAK to the packet that it names; 0: not known.
    pub(crate) nak_answer: Span,
}

/// Evidence besides the flow's own packets.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct OutsideEvidence {
    /// The other direction's, when that is known.
    pub(crate) other: Option<Other>,
    /// Evidence of other taps of the run that saw its packets: this one saw them first (`sender`), last
    /// (`receiver`), or neither.
    pub(crate) by_taps: Option<Vantage>,
    /// Where the user says that the tap stood.
    pub(crate) stated: Option<TapPlace>,
}

impl OutsideEvidence {
    /// Vantage of the flow by the place that the user states. Data in both directions have two senders, and only a host's name says
    /// beside which of them the tap stood.
    fn by_user(self, row: &FlowRow) -> Option<Vantage> {
        let has_data = row.data_packets > 0;
        let is_sender = match self.stated? {
            TapPlace::Host(host) if host == row.source => true,
            TapPlace::Host(host) if host == row.destination => false,
            TapPlace::Host(_) => return None,
            // A flow of ACKs looks from the other end than the data that it acknowledges.
            _ if has_data == self.other.is_some_and(|other| other.has_data) => return None,
            TapPlace::Sender => has_data,
            TapPlace::Receiver => !has_data,
        };
        Some(if is_sender {
            Vantage::Sender
        } else {
            Vantage::Receiver
        })
    }
}

/// The median of a flow's turnarounds, when there are enough of them.
pub(crate) fn turnaround(answers: u64, median: Option<u64>) -> Option<u64> {
    median.filter(|_| answers >= ANSWERS)
}

/// Number of routers that a packet with this hop limit has passed.
fn routers(hop_limit: u8) -> Option<u8> {
    let initial = [64, 128, 255].into_iter().find(|initial| hop_limit <= *initial)?;
    let routers = initial - hop_limit;
    (routers <= MAX_ROUTERS).then_some(routers)
}

impl Evidence {
    /// Vantage of the tap: `sender`, `receiver`, `between`.
    pub(crate) fn conclude(self, row: &FlowRow) -> Option<Vantage> {
        let lost_before = row.network_lost;
        let lost_behind = row.lost_downstream.unwrap_or_default();
        let has_trouble_before = row.ce > 0 || lost_before > 0;
        let has_trouble_behind = lost_behind > 0;
        let beside = self.outside.by_user(row).or_else(|| self.by_answers(row));
        if beside == Some(Vantage::Receiver) {
            return beside;
        }
        if has_trouble_before && has_trouble_behind {
            return Some(Vantage::Between);
        }
        let marked_behind = row.is_marked_behind();
        let place = beside
            .or_else(|| self.by_routers())
            .or_else(|| self.by_turnaround(row))
            .or(self.outside.by_taps);
        match place {
            Some(Vantage::Sender) if has_trouble_before => Some(Vantage::Between),
            Some(Vantage::Receiver) if has_trouble_behind || marked_behind => Some(Vantage::Between),
            Some(Vantage::Between) => Some(Vantage::Between),
            Some(place) => Some(place),
            None if has_trouble_before => {
                (lost_before >= MANY_LOSSES && row.lost_downstream == Some(0)).then_some(Vantage::Receiver)
            }
            None if marked_behind || lost_behind >= MANY_LOSSES => Some(Vantage::Sender),
            None => None,
        }
    }

    fn by_answers(self, row: &FlowRow) -> Option<Vantage> {
        let answer = turnaround(row.ack_rtt_count, row.ack_rtt_p50_ns);
        if answer.is_some_and(|answer| answer <= BESIDE_RECEIVER) {
            return Some(Vantage::Receiver);
        }
        (self.nak_answer.0 > 0 && self.nak_answer <= BESIDE_SENDER).then_some(Vantage::Sender)
    }

    fn by_routers(self) -> Option<Vantage> {
        match (routers(self.hop_limit)?, routers(self.outside.other?.hop_limit)?) {
            (0, 0) => None,
            (0, _) => Some(Vantage::Sender),
            (_, 0) => Some(Vantage::Receiver),
            _ => Some(Vantage::Between),
        }
    }

    fn by_turnaround(self, row: &FlowRow) -> Option<Vantage> {
        // A flow's requests are answered by its receiver, the other direction's by its sender.
        let (receiver, sender) = (
            turnaround(row.ack_rtt_count, row.ack_rtt_p50_ns)?,
            self.outside.other?.turnaround?,
        );
        if sender.saturating_mul(FASTER) <= receiver {
            Some(Vantage::Sender)
        } else if receiver.saturating_mul(FASTER) <= sender {
            Some(Vantage::Receiver)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conclude(hop_limits: Option<(u8, u8)>, fill: impl FnOnce(&mut FlowRow)) -> Option<Vantage> {
        let mut row = FlowRow::default();
        fill(&mut row);
        let (own, other) = hop_limits.unwrap_or((64, 64));
        let evidence = Evidence {
            hop_limit: own,
            outside: OutsideEvidence {
                other: hop_limits.map(|_| Other {
                    hop_limit: other,
                    has_data: false,
                    turnaround: None,
                }),
                by_taps: None,
                stated: None,
            },
            nak_answer: Span(0),
        };
        evidence.conclude(&row)
    }

    #[test]
    fn the_first_of_several_taps_is_on_the_senders_side() {
        let by = |by_taps, hop_limits: (u8, u8), ce| {
            let evidence = Evidence {
                hop_limit: hop_limits.0,
                outside: OutsideEvidence {
                    other: Some(Other {
                        hop_limit: hop_limits.1,
                        has_data: false,
                        turnaround: None,
                    }),
                    by_taps: Some(by_taps),
                    stated: None,
                },
                nak_answer: Span(0),
            };
            let row = FlowRow {
                ce,
                ..FlowRow::default()
            };
            evidence.conclude(&row)
        };
        // Switched, not routed: hop limits are those that the hosts send.
        assert_eq!(by(Vantage::Sender, (64, 64), 0), Some(Vantage::Sender));
        assert_eq!(by(Vantage::Receiver, (64, 64), 5), Some(Vantage::Receiver));
        assert_eq!(
            by(Vantage::Sender, (64, 64), 5),
            Some(Vantage::Between),
            "marked before it"
        );
        assert_eq!(
            by(Vantage::Sender, (63, 64), 0),
            Some(Vantage::Receiver),
            "hop limits say more"
        );
    }

    #[test]
    fn routers_by_hop_limit() {
        for (hop_limit, expected) in [
            (64, Some(0)),
            (63, Some(1)),
            (128, Some(0)),
            (125, Some(3)),
            (255, Some(0)),
            (254, Some(1)),
            // No path has so many routers.
            (1, None),
            (0, None),
            (70, None),
            (200, None),
        ] {
            assert_eq!(routers(hop_limit), expected, "{hop_limit}");
        }
    }

    #[test]
    fn hop_limits_tell_the_side() {
        let by = |own, other| conclude(Some((own, other)), |_| {});
        assert_eq!(by(64, 63), Some(Vantage::Sender));
        assert_eq!(by(252, 64), Some(Vantage::Receiver));
        assert_eq!(by(63, 62), Some(Vantage::Between));
        assert_eq!(by(64, 255), None, "no router anywhere");
        assert_eq!(by(64, 1), None);
    }

    #[test]
    fn marks_contradict_the_senders_side() {
        assert_eq!(conclude(Some((64, 63)), |row| row.ce = 1), Some(Vantage::Between));
        assert_eq!(
            conclude(Some((63, 64)), |row| row.ce = 1),
            Some(Vantage::Receiver)
        );
        assert_eq!(
            conclude(None, |row| row.ce = 1),
            None,
            "between, or the receiver's side"
        );
    }

    #[test]
    fn notifications_without_marks_come_from_behind() {
        let notified = |row: &mut FlowRow| {
            row.cnp = Some(3);
            row.cnp_after_nak = Some(1);
            row.ect0 = 1_000;
        };
        assert_eq!(conclude(None, notified), Some(Vantage::Sender));
        assert_eq!(conclude(Some((63, 64)), notified), Some(Vantage::Between));
        let after_nak = |row: &mut FlowRow| {
            notified(row);
            row.cnp_after_nak = Some(3);
        };
        assert_eq!(conclude(None, after_nak), None, "they are no sign of marks");
        let few = |row: &mut FlowRow| {
            notified(row);
            row.ect0 = 100;
        };
        assert_eq!(conclude(None, few), None);
    }

    #[test]
    fn answers_within_a_microsecond_come_from_beside_the_tap() {
        let answered = |count, p50, lost_downstream| {
            conclude(Some((63, 64)), |row| {
                (row.ack_rtt_count, row.ack_rtt_p50_ns) = (count, Some(p50));
                row.lost_downstream = Some(lost_downstream);
            })
        };
        // The receiver's adapter dropped the packets that are lost behind this tap.
        assert_eq!(answered(20, 900, 5), Some(Vantage::Receiver));
        assert_eq!(
            answered(20, 1_100, 5),
            Some(Vantage::Between),
            "a switch may stand between"
        );
        assert_eq!(answered(15, 900, 5), Some(Vantage::Between), "too few answers");
        let nak_answered = |nanos| {
            let evidence = Evidence {
                hop_limit: 64,
                outside: OutsideEvidence::default(),
                nak_answer: Span(nanos),
            };
            evidence.conclude(&FlowRow::default())
        };
        assert_eq!(nak_answered(2_500), Some(Vantage::Sender));
        assert_eq!((nak_answered(3_500), nak_answered(0)), (None, None));
    }

    #[test]
    fn losses_before_and_behind() {
        let lost = |before, behind| {
            conclude(None, |row| {
                row.network_lost = before;
                row.lost_downstream = Some(behind);
            })
        };
        assert_eq!(lost(5, 0), Some(Vantage::Receiver));
        assert_eq!(lost(0, 5), Some(Vantage::Sender));
        assert_eq!(lost(5, 5), Some(Vantage::Between));
        assert_eq!((lost(1, 0), lost(0, 1), lost(0, 0)), (None, None, None));
    }

    #[test]
    fn the_host_that_answers_faster_is_nearer() {
        let with = |own: u64, other: u64| {
            let row = FlowRow {
                ack_rtt_count: 20,
                ack_rtt_p50_ns: Some(own),
                ..FlowRow::default()
            };
            let evidence = Evidence {
                hop_limit: 64,
                outside: OutsideEvidence {
                    other: Some(Other {
                        hop_limit: 64,
                        has_data: false,
                        turnaround: Some(other),
                    }),
                    by_taps: None,
                    stated: None,
                },
                nak_answer: Span(0),
            };
            evidence.conclude(&row)
        };
        // A microsecond would show the host beside the tap by itself.
        assert_eq!(with(40_000, 2_000), Some(Vantage::Sender));
        assert_eq!(with(2_000, 40_000), Some(Vantage::Receiver));
        assert_eq!(with(2_000, 4_000), None);
    }

    #[test]
    fn the_users_word_stands_unless_packets_contradict_it() {
        let address = |last| roce_model::Address::from(std::net::IpAddr::from([10, 0, 0, last]));
        let by_user = |stated, data_packets, other_has_data, ce| {
            let other = Other {
                hop_limit: 64,
                has_data: other_has_data,
                turnaround: None,
            };
            let outside = OutsideEvidence {
                other: Some(other),
                by_taps: None,
                stated: Some(stated),
            };
            let evidence = Evidence {
                hop_limit: 64,
                outside,
                nak_answer: Span(0),
            };
            evidence.conclude(&FlowRow {
                source: address(1),
                destination: address(2),
                data_packets,
                ce,
                ..FlowRow::default()
            })
        };
        let (sender, receiver) = (Some(Vantage::Sender), Some(Vantage::Receiver));
        assert_eq!(by_user(TapPlace::Sender, 9, false, 0), sender);
        assert_eq!(
            by_user(TapPlace::Sender, 0, true, 0),
            receiver,
            "ACKs come from the receiver"
        );
        assert_eq!(by_user(TapPlace::Receiver, 9, false, 3), receiver);
        assert_eq!(by_user(TapPlace::Sender, 9, true, 0), None, "two senders");
        assert_eq!(by_user(TapPlace::Host(address(2)), 9, true, 0), receiver);
        assert_eq!(by_user(TapPlace::Host(address(3)), 9, false, 0), None);
        assert_eq!(
            by_user(TapPlace::Sender, 9, false, 3),
            Some(Vantage::Between),
            "marked before it"
        );
    }
}
