//! Finds the frames that a lesson names: conditions from its text, all of which must be true.

use roce_model::Span;
use roce_wire::{AethKind, Ecn, PauseKind, Psn, Roce};
use serde::Deserialize;

use super::frames::{DemoFrame, History, What};
use super::mrc::{MrcPacket, SackContent};
use crate::options::duration::parse_duration;

/// Kind of frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// It carries application data.
    Data,
    /// Congestion notification.
    Cnp,
    /// ACK.
    Ack,
    /// NAK, RNR NAKs not meant.
    Nak,
    /// RNR NAK.
    RnrNak,
    /// A pause frame that begins or prolongs a pause.
    Pause,
    /// A pause frame that ends one.
    Resume,
    /// A message of the connection manager.
    Management,
    /// MRC: data.
    Write,
    /// MRC: a selective acknowledgement.
    Sack,
    /// MRC: a path is probed.
    Probe,
}

/// The ECN field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EcnName {
    /// 0.
    NotEct,
    /// 2.
    Ect0,
    /// 3.
    Ce,
}

/// Meaning of a request's PSN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HistoryName {
    /// PSNs were jumped over.
    Jump,
    /// It was sent before, or fills a hole.
    Again,
    /// Neither.
    InOrder,
}

/// Measure of a late packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Most {
    /// PSNs between it and the highest one before it.
    BehindPsns,
    /// Time since it was first overtaken.
    BehindTime,
}

impl Most {
    fn measure(self, frame: &DemoFrame) -> u64 {
        match self {
            Self::BehindPsns => frame.behind_psns.into(),
            Self::BehindTime => frame.behind_time.0,
        }
    }
}

/// Conditions; what is not given does not matter. Words that name another frame are the labels of frames found before.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Find {
    /// The kind.
    pub(crate) kind: Option<Kind>,
    /// The ECN field.
    pub(crate) ecn: Option<EcnName>,
    /// The PSN beside those before it.
    pub(crate) history: Option<HistoryName>,
    /// True if a request of its flow with the same PSN was captured before.
    pub(crate) repeated: Option<bool>,
    /// True if it requests an acknowledgement.
    pub(crate) ack_request: Option<bool>,
    /// True if it is a request, and not a response.
    pub(crate) request: Option<bool>,
    /// The DSCP.
    pub(crate) dscp: Option<u8>,
    /// The source, as text.
    pub(crate) from: Option<String>,
    /// The destination, as text.
    pub(crate) to: Option<String>,
    /// The file: its place, from 0.
    pub(crate) file: Option<usize>,
    /// Captured after that frame.
    pub(crate) after: Option<String>,
    /// Captured before that frame.
    pub(crate) before: Option<String>,
    /// Same source, destination and queue pair as that frame.
    pub(crate) flow: Option<String>,
    /// Another queue pair than that frame's, at the same destination.
    pub(crate) beside: Option<String>,
    /// Another destination than that frame's.
    pub(crate) elsewhere: Option<String>,
    /// From the destination of that frame to its source.
    pub(crate) back: Option<String>,
    /// Same PSN as that frame.
    pub(crate) psn: Option<String>,
    /// The PSN of that frame or a later one.
    pub(crate) from_psn: Option<String>,
    /// Least silence of its flow before it.
    pub(crate) silence: Option<String>,
    /// MRC: true if its sender says that it has sent it before.
    pub(crate) again: Option<bool>,
    /// MRC: data or a probe on the path of that frame, which is its UDP source port.
    pub(crate) path: Option<String>,
    /// MRC: a SACK that shows the PSN of that frame as missing.
    pub(crate) misses: Option<String>,
    /// MRC: a SACK that this frame, data or a probe, has caused.
    pub(crate) answers: Option<String>,
    /// Number among those, from 1.
    pub(crate) nth: Option<usize>,
    /// The last of them.
    pub(crate) last: bool,
    /// The one with the largest value of this.
    pub(crate) most: Option<Most>,
}

/// Frames found until now, by label.
pub(crate) trait Labels {
    /// The frame of that label.
    fn seen(&self, label: &str) -> Option<&DemoFrame>;
}

impl Find {
    /// The frame that is meant; `None` when there is none, or a label is not known.
    pub(crate) fn one<'a>(&self, frames: &'a [DemoFrame], labels: &impl Labels) -> Option<&'a DemoFrame> {
        let mut found = frames.iter().filter(|frame| self.holds(frame, labels));
        if let Some(most) = self.most {
            // `max_by_key` takes the last of equal frames; the first one is meant.
            found.rev().max_by_key(|frame| most.measure(frame))
        } else if self.last {
            found.next_back()
        } else {
            found.nth(self.nth.unwrap_or(1).max(1) - 1)
        }
    }

    /// The first `most` frames that are meant; with `last`, the last ones. In order.
    pub(crate) fn some<'a>(
        &self,
        frames: &'a [DemoFrame],
        labels: &impl Labels,
        most: usize,
    ) -> Vec<&'a DemoFrame> {
        let mut found: Vec<&DemoFrame> = frames.iter().filter(|frame| self.holds(frame, labels)).collect();
        if self.last {
            found.drain(..found.len().saturating_sub(most));
        } else {
            found.truncate(most);
        }
        found
    }

    /// Number of frames that match.
    pub(crate) fn count(&self, frames: &[DemoFrame], labels: &impl Labels) -> u64 {
        frames.iter().filter(|frame| self.holds(frame, labels)).count() as u64
    }

    /// The labels that it names.
    #[cfg(test)]
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        [
            &self.after,
            &self.before,
            &self.flow,
            &self.beside,
            &self.elsewhere,
            &self.back,
            &self.psn,
            &self.from_psn,
            &self.path,
            &self.misses,
            &self.answers,
        ]
        .into_iter()
        .flatten()
        .map(String::as_str)
    }

    fn holds(&self, frame: &DemoFrame, labels: &impl Labels) -> bool {
        self.file.is_none_or(|file| frame.file == file)
            && self.kind.is_none_or(|kind| kind.is_of(frame))
            && self.time_fits(frame, labels)
            && self.mrc_fits(frame, labels)
            && match frame.packet() {
                Some(packet) => self.packet_fits(frame, packet, labels),
                None => !self.is_about_packets(),
            }
    }

    /// True if the conditions about packets of MRC hold.
    fn mrc_fits(&self, frame: &DemoFrame, labels: &impl Labels) -> bool {
        let is_again = frame.mrc == Some(MrcPacket::Write { is_again: true });
        let port = |frame: &DemoFrame| frame.packet().map(|packet| packet.udp_source_port);
        let of_sack = |label: &Option<String>, fits: &dyn Fn(SackContent, &DemoFrame) -> bool| {
            let Some(label) = label else { return true };
            match (frame.mrc, labels.seen(label)) {
                (Some(MrcPacket::Sack(sack)), Some(other)) => fits(sack, other),
                _ => false,
            }
        };
        let psn = |other: &DemoFrame| other.packet().map(|packet| packet.bth.psn());
        self.again.is_none_or(|again| again == is_again)
            && self
                .path
                .as_deref()
                .is_none_or(|label| labels.seen(label).and_then(port) == port(frame))
            && of_sack(&self.misses, &|sack, other| {
                psn(other).is_some_and(|psn| sack.misses(psn))
            })
            && of_sack(&self.answers, &|sack, other| match other.mrc {
                Some(MrcPacket::Probe { number }) => sack.answers(number),
                _ => psn(other).is_some_and(|psn| sack.names(psn)),
            })
    }

    /// True if a condition is one that only packets have.
    fn is_about_packets(&self) -> bool {
        self.ecn.is_some()
            || self.history.is_some()
            || self.repeated.is_some()
            || self.dscp.is_some()
            || self.from.is_some()
            || self.to.is_some()
            || self.flow.is_some()
            || self.beside.is_some()
            || self.elsewhere.is_some()
            || self.ack_request.is_some()
            || self.request.is_some()
            || self.back.is_some()
            || self.psn.is_some()
            || self.from_psn.is_some()
            || self.silence.is_some()
    }

    fn time_fits(&self, frame: &DemoFrame, labels: &impl Labels) -> bool {
        // Frames of one file are distinguished by their numbers: several can have one time.
        let order = |other: &DemoFrame| {
            if other.file == frame.file {
                frame.number.cmp(&other.number)
            } else {
                frame.time.cmp(&other.time)
            }
        };
        let after = self
            .after
            .as_deref()
            .is_none_or(|label| labels.seen(label).is_some_and(|other| order(other).is_gt()));
        let before = self
            .before
            .as_deref()
            .is_none_or(|label| labels.seen(label).is_some_and(|other| order(other).is_lt()));
        after && before
    }

    fn packet_fits(&self, frame: &DemoFrame, packet: &Roce, labels: &impl Labels) -> bool {
        let history = match frame.history {
            History::Jump(_) => HistoryName::Jump,
            History::Again => HistoryName::Again,
            History::InOrder => HistoryName::InOrder,
        };
        let of = |label: &Option<String>, fits: &dyn Fn(&Roce) -> bool| match label {
            None => true,
            Some(label) => labels.seen(label).and_then(DemoFrame::packet).is_some_and(fits),
        };
        let psn = packet.bth.psn();
        self.ecn.is_none_or(|ecn| ecn.ecn() == packet.ecn())
            && self.history.is_none_or(|wanted| wanted == history)
            && self.repeated.is_none_or(|wanted| wanted == frame.is_repeated)
            && self.dscp.is_none_or(|dscp| dscp == packet.dscp())
            && self
                .ack_request
                .is_none_or(|wanted| wanted == packet.bth.ack_request())
            && self
                .request
                .is_none_or(|request| request != packet.bth.opcode().is_response())
            && self
                .from
                .as_ref()
                .is_none_or(|from| packet.source.to_string() == *from)
            && self
                .to
                .as_ref()
                .is_none_or(|to| packet.destination.to_string() == *to)
            && self
                .silence
                .as_deref()
                .is_none_or(|silence| frame.silence >= parse_duration(silence).unwrap_or(Span(u64::MAX)))
            && of(&self.flow, &|other| same_flow(packet, other))
            && of(&self.beside, &|other| {
                packet.destination == other.destination && !same_flow(packet, other)
            })
            && of(&self.elsewhere, &|other| packet.destination != other.destination)
            && of(&self.back, &|other| {
                packet.source == other.destination && packet.destination == other.source
            })
            && of(&self.psn, &|other| psn == other.bth.psn())
            && of(&self.from_psn, &|other| is_from(psn, other.bth.psn()))
    }
}

fn same_flow(one: &Roce, other: &Roce) -> bool {
    one.source == other.source
        && one.destination == other.destination
        && one.bth.destination_qpn() == other.bth.destination_qpn()
}

fn is_from(psn: Psn, first: Psn) -> bool {
    psn.offset_from(first) >= 0
}

impl Kind {
    fn is_of(self, frame: &DemoFrame) -> bool {
        let packet = match &frame.what {
            What::Packet(packet) => packet,
            What::Pause(pause) => {
                let pauses = match pause.kind {
                    PauseKind::Link => pause.quanta_of(0).unwrap_or(0) > 0,
                    PauseKind::Priority => (0..8).any(|class| pause.quanta_of(class).unwrap_or(0) > 0),
                };
                return match self {
                    Self::Pause => pauses,
                    Self::Resume => !pauses,
                    _ => false,
                };
            }
        };
        let opcode = packet.bth.opcode();
        let reply = packet
            .seen
            .has(roce_wire::ExtendedHeaders::AETH)
            .then(|| packet.aeth.kind());
        match self {
            Self::Data => opcode.carries_data() && !Self::Management.is_of(frame),
            Self::Cnp => opcode.is_cnp(),
            Self::Ack => matches!(reply, Some(AethKind::Ack { .. })) && !opcode.is_read_response(),
            Self::Nak => matches!(reply, Some(AethKind::Nak(_))),
            Self::RnrNak => matches!(reply, Some(AethKind::RnrNak { .. })),
            Self::Management => packet.bth.destination_qpn() == roce_wire::Qpn::GENERAL_SERVICES,
            Self::Write => matches!(frame.mrc, Some(MrcPacket::Write { .. })),
            Self::Sack => matches!(frame.mrc, Some(MrcPacket::Sack(_))),
            Self::Probe => matches!(frame.mrc, Some(MrcPacket::Probe { .. })),
            Self::Pause | Self::Resume => false,
        }
    }
}

impl EcnName {
    fn ecn(self) -> Ecn {
        match self {
            Self::NotEct => Ecn::NotEct,
            Self::Ect0 => Ecn::Ect0,
            Self::Ce => Ecn::Ce,
        }
    }
}
