//! The frames of a demo's captures, read and decoded as any capture is, with what each flow's history says of them:
//! sent before, after a jump, after a silence. Which of them a lesson wants is left to `find`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;

use roce_capture::{Options, Reader};
use roce_model::Nanos;
use roce_wire::{Address, Content, Pause, Psn, Qpn, Roce};

/// What a request packet's PSN says beside the highest one before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum History {
    /// The first request of its flow, the next one in order, or no request.
    InOrder,
    /// So many PSNs were jumped over.
    Jump(u32),
    /// It lies at or before the highest one.
    Again,
}

/// What a frame is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum What {
    /// A RoCE packet.
    Packet(Roce),
    /// A pause frame.
    Pause(Pause),
}

/// One frame.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Seen {
    /// Its file: an index.
    pub(crate) file: usize,
    /// Its number in the file, from 1: what Wireshark calls `frame.number`.
    pub(crate) number: u64,
    /// When it was captured.
    pub(crate) time: Nanos,
    /// How long after the first frame of its file.
    pub(crate) offset: Nanos,
    /// What it is.
    pub(crate) what: What,
    /// Its place among the requests of its flow.
    pub(crate) history: History,
    /// How long its flow had been silent; nothing for its first packet.
    pub(crate) silence: Nanos,
}

/// What tells flows apart here: the captures of demos have no tunnels.
type Key = (Address, Address, Qpn);

/// What is known of a flow so far.
struct Flow {
    last: Nanos,
    highest: Option<Psn>,
}

/// Reads the files; frames that are neither RoCE nor pause frames are numbered and left out.
pub(crate) fn read(files: &[PathBuf]) -> anyhow::Result<Vec<Seen>> {
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
                let decoded = roce_wire::decode(interface.link, batch.bytes(frame), frame.original);
                let what = match decoded.content {
                    Content::Roce(packet) => What::Packet(packet),
                    Content::Pause(pause) => What::Pause(pause),
                    _ => continue,
                };
                let mut seen = Seen {
                    file,
                    number,
                    time: frame.time,
                    offset: frame.time.since(first),
                    what,
                    history: History::InOrder,
                    silence: Nanos(0),
                };
                if let What::Packet(packet) = what {
                    (seen.history, seen.silence) = follow(&mut flows, &packet, frame.time);
                }
                all.push(seen);
            }
        }
    }
    Ok(all)
}

/// Takes a packet into its flow's history.
fn follow(flows: &mut HashMap<Key, Flow>, packet: &Roce, time: Nanos) -> (History, Nanos) {
    let key = (packet.source, packet.destination, packet.bth.destination_qpn());
    let traits = packet.bth.opcode().traits();
    let sequenced = traits.is_sequenced();
    // How many PSNs a READ takes depends on the path MTU: the request after it begins anew.
    let known = traits.takes_one_psn();
    let psn = packet.bth.psn();
    match flows.entry(key) {
        Entry::Vacant(place) => {
            place.insert(Flow {
                last: time,
                highest: known.then_some(psn),
            });
            (History::InOrder, Nanos(0))
        }
        Entry::Occupied(mut place) => {
            let flow = place.get_mut();
            if !sequenced {
                return (History::InOrder, time.since(flow.last));
            }
            let silence = time.since(flow.last);
            flow.last = time;
            let Some(highest) = flow.highest else {
                flow.highest = known.then_some(psn);
                return (History::InOrder, silence);
            };
            let ahead = psn.offset_from(highest);
            if ahead <= 0 {
                return (History::Again, silence);
            }
            flow.highest = known.then_some(psn);
            let jumped = u32::try_from(ahead - 1).unwrap_or(0);
            let history = if jumped == 0 {
                History::InOrder
            } else {
                History::Jump(jumped)
            };
            (history, silence)
        }
    }
}

impl Seen {
    /// The packet, if it is one.
    pub(crate) fn packet(&self) -> Option<&Roce> {
        match &self.what {
            What::Packet(packet) => Some(packet),
            What::Pause(_) => None,
        }
    }

    /// What it says, in one line.
    pub(crate) fn decoded(&self) -> String {
        let packet = match &self.what {
            What::Packet(packet) => packet,
            What::Pause(pause) => return pause.to_string(),
        };
        let bth = &packet.bth;
        let reply = packet
            .seen
            .has(roce_wire::Extended::AETH)
            .then(|| format!(" ({})", packet.aeth.kind()));
        let psn = (!bth.opcode().is_cnp()).then(|| format!(", PSN {}", bth.psn()));
        format!(
            "{} > {} QP {}, {}{}{}, {}, DSCP {}",
            packet.source,
            packet.destination,
            bth.destination_qpn(),
            bth.opcode(),
            reply.unwrap_or_default(),
            psn.unwrap_or_default(),
            packet.ecn(),
            packet.dscp(),
        )
    }
}
