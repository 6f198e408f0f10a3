//! The frames of a demo's captures, decoded as any capture's, with the history of their flows:
//! retransmitted, after a jump, late, after a silence. `find` chooses those that a lesson needs.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use roce_capture::{Options, Reader};
use roce_model::{Span, Time};
use roce_wire::{Address, Content, Pause, Psn, Qpn, Roce};

use super::mrc::MrcPacket;

/// Relation of a request packet's PSN to the highest one before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum History {
    /// The first request of its flow, the next one in order, or no request.
    InOrder,
    /// Number of PSNs that were jumped over.
    Jump(u32),
    /// It lies at or before the highest one.
    Again,
}

/// Kind of a frame.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum What {
    /// A RoCE packet.
    Packet(Roce),
    /// A pause frame.
    Pause(Pause),
}

/// One frame.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct DemoFrame {
    /// Its file: an index.
    pub(crate) file: usize,
    /// Its number in the file, from 1: what Wireshark calls `frame.number`.
    pub(crate) number: u64,
    /// Time of capture.
    pub(crate) time: Time,
    /// Time since the first frame of its file.
    pub(crate) offset: Span,
    /// Kind of the frame.
    pub(crate) what: What,
    /// The packet as MRC has it, if it is one of that.
    pub(crate) mrc: Option<MrcPacket>,
    /// Its place among the requests of its flow.
    pub(crate) history: History,
    /// Silence of its flow before it; zero for its first packet.
    pub(crate) silence: Span,
    /// A request of its flow with the same PSN was captured before.
    pub(crate) is_repeated: bool,
    /// PSNs between it and the highest one before it; 0 for a packet that is not behind.
    pub(crate) behind_psns: u32,
    /// Time since the first packet beyond it was captured; 0 for a packet that is not behind.
    pub(crate) behind_time: Span,
}

/// Identity of a flow here: the captures of demos have no tunnels.
type Key = (Address, Address, Qpn);

/// State of a flow up to the current packet.
struct Flow {
    last: Time,
    highest: Option<Psn>,
    /// Each PSN that was the highest one, and when: in the order of both.
    rises: Vec<(Psn, Time)>,
    /// The PSNs of its requests.
    seen: HashSet<Psn>,
}

/// History of a packet's flow.
struct FlowPast {
    history: History,
    silence: Span,
    is_repeated: bool,
    behind_psns: u32,
    behind_time: Span,
}

impl FlowPast {
    /// Nothing but how long the flow had been silent.
    fn plain(silence: Span) -> Self {
        Self {
            history: History::InOrder,
            silence,
            is_repeated: false,
            behind_psns: 0,
            behind_time: Span(0),
        }
    }
}

impl Flow {
    /// A flow that begins with this PSN, if it has one whose place is known.
    fn new(time: Time, psn: Option<Psn>, known: bool) -> Self {
        let highest = psn.filter(|_| known);
        Self {
            last: time,
            highest,
            rises: highest.map(|psn| (psn, time)).into_iter().collect(),
            seen: psn.into_iter().collect(),
        }
    }

    /// Time at which the first PSN beyond this one was captured.
    fn passed(&self, psn: Psn) -> Option<Time> {
        let first = self
            .rises
            .partition_point(|(risen, _)| risen.offset_from(psn) <= 0);
        self.rises.get(first).map(|(_, time)| *time)
    }
}

/// Reads the files; frames that are neither RoCE nor pause frames are numbered and left out.
pub(crate) fn read(files: &[PathBuf]) -> anyhow::Result<Vec<DemoFrame>> {
    let mut all = Vec::new();
    for (file, path) in files.iter().enumerate() {
        let mut reader = Reader::open(path, &Options::default())?;
        let mut flows: HashMap<Key, Flow> = HashMap::new();
        let (mut number, mut first) = (0, None);
        while let Some(batch) = reader.next_batch()? {
            for frame in batch.frames() {
                number += 1;
                let first = *first.get_or_insert(frame.time);
                let Some(interface) = reader.interfaces().get(frame.interface as usize) else {
                    continue;
                };
                let bytes = batch.bytes(frame);
                let decoded = roce_wire::decode(interface.link, bytes, frame.original);
                let what = match decoded.content {
                    Content::Roce(packet) => What::Packet(packet),
                    Content::Pause(pause) => What::Pause(pause),
                    _ => continue,
                };
                let mut seen = DemoFrame {
                    file,
                    number,
                    time: frame.time,
                    offset: frame.time.since(first),
                    what,
                    mrc: None,
                    history: History::InOrder,
                    silence: Span(0),
                    is_repeated: false,
                    behind_psns: 0,
                    behind_time: Span(0),
                };
                if let What::Packet(packet) = what {
                    let headers = bytes.get(usize::from(packet.bth_offset)..);
                    seen.mrc = headers.and_then(|headers| MrcPacket::read(&packet.bth, headers));
                    let place = follow(&mut flows, &packet, frame.time);
                    seen.history = place.history;
                    seen.silence = place.silence;
                    seen.is_repeated = place.is_repeated;
                    seen.behind_psns = place.behind_psns;
                    seen.behind_time = place.behind_time;
                }
                all.push(seen);
            }
        }
    }
    Ok(all)
}

/// Takes a packet into its flow's history.
fn follow(flows: &mut HashMap<Key, Flow>, packet: &Roce, time: Time) -> FlowPast {
    let key = (packet.source, packet.destination, packet.bth.destination_qpn());
    let traits = packet.bth.opcode().traits();
    let sequenced = traits.is_sequenced();
    // The number of a READ's PSNs depends on the path MTU: the request after it starts again.
    let known = traits.takes_one_psn();
    let psn = packet.bth.psn();
    match flows.entry(key) {
        Entry::Vacant(place) => {
            place.insert(Flow::new(time, sequenced.then_some(psn), known));
            FlowPast::plain(Span(0))
        }
        Entry::Occupied(mut place) => {
            let flow = place.get_mut();
            if !sequenced {
                return FlowPast::plain(time.since(flow.last));
            }
            let silence = time.since(flow.last);
            flow.last = time;
            let is_repeated = !flow.seen.insert(psn);
            let ahead = flow.highest.map(|highest| psn.offset_from(highest));
            if let Some(ahead) = ahead.filter(|ahead| *ahead <= 0) {
                return FlowPast {
                    history: History::Again,
                    silence,
                    is_repeated,
                    behind_psns: ahead.unsigned_abs(),
                    behind_time: flow.passed(psn).map_or(Span(0), |passed| time.since(passed)),
                };
            }
            flow.highest = known.then_some(psn);
            flow.rises.extend(flow.highest.map(|psn| (psn, time)));
            let history = match ahead.and_then(|ahead| u32::try_from(ahead - 1).ok()) {
                None | Some(0) => History::InOrder,
                Some(jumped) => History::Jump(jumped),
            };
            FlowPast {
                history,
                is_repeated,
                ..FlowPast::plain(silence)
            }
        }
    }
}

impl DemoFrame {
    /// The packet, if it is one.
    pub(crate) fn packet(&self) -> Option<&Roce> {
        match &self.what {
            What::Packet(packet) => Some(packet),
            What::Pause(_) => None,
        }
    }

    /// The decoded frame, in one line.
    pub(crate) fn decoded(&self) -> String {
        let packet = match &self.what {
            What::Packet(packet) => packet,
            What::Pause(pause) => return pause.to_string(),
        };
        let bth = &packet.bth;
        let reply = packet
            .seen
            .has(roce_wire::ExtendedHeaders::AETH)
            .then(|| format!(" ({})", packet.aeth.kind()));
        let psn = (!bth.opcode().is_cnp()).then(|| format!(", PSN {}", bth.psn()));
        format!(
            "{} > {} QP {}, {}{}{}, {}, DSCP {}",
            packet.source,
            packet.destination,
            bth.destination_qpn(),
            packet.operation(),
            reply.unwrap_or_default(),
            psn.unwrap_or_default(),
            packet.ecn(),
            packet.dscp(),
        )
    }
}
