//! Looks into one capture before the run: a sample of its packets, the same ones of each capture.
//!
//! A packet is in the sample when its identity ends in enough zero bits. Their number rises as the
//! capture goes on. So the sample is spread over a capture of any length evenly, and any two captures
//! have all packets of the coarser of their two samples in common. `align` matches the packets.

use std::collections::HashMap;
use std::path::Path;

use roce_capture::{Batch, Error, Frame, Interface, Options, Reader};
use roce_model::Time;
use roce_wire::icrc::{self, Icrc};
use roce_wire::{Content, Ecn, LinkType, MirrorKind, Roce};

use crate::decode::{on_the_wire, path_hash};
use crate::records::RecordSample;

/// Limits of the sample of a capture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) frames: u64,
    pub(super) bytes: u64,
    pub(super) packets: usize,
}

/// Sample of a capture.
#[derive(Debug)]
pub(super) struct Look {
    /// By identity and place; the places of a capture are its interfaces, and the mirror sessions behind them.
    pub(super) packets: HashMap<(u64, u16), SampledPacket>,
    /// Its records, whatever they are.
    pub(super) records: RecordSample,
    /// Link types and names of its interfaces.
    pub(super) interfaces: Vec<(LinkType, Option<String>)>,
    /// The times of the frames that were looked at.
    pub(super) first: Time,
    pub(super) last: Time,
    /// Resolution of its stamps.
    pub(super) quantum_ns: u64,
    /// It was looked at to its end.
    pub(super) whole: bool,
    /// Number of zero bits at the end of the sampled identities.
    pub(super) zeros: u32,
    places: HashMap<(u32, Option<(MirrorKind, u32)>), u16>,
}

/// A packet of the sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampledPacket {
    pub(super) time: Time,
    /// Its ICRC, where it was captured and is right.
    pub(super) icrc: Option<u32>,
    pub(super) hop_limit: u8,
    pub(super) marked: bool,
    /// It came more than once: nothing shows which one another tap saw.
    pub(super) repeated: bool,
    /// A hash of its two hosts, whichever sends.
    pub(super) hosts: u64,
    /// True if the lower of their addresses sent it.
    pub(super) forward: bool,
    path: u16,
}

/// A packet that comes on another path within this time is a copy.
const COPY: u64 = 1_000_000;

/// The first time stamp of a capture; `None` where it has no frame.
pub(super) fn first_time(path: &Path) -> Result<Option<Time>, Error> {
    let Some(mut reader) = opened(path)? else {
        return Ok(None);
    };
    while let Some(batch) = next(&mut reader)? {
        if let Some(frame) = batch.frames().first() {
            return Ok(Some(frame.time));
        }
    }
    Ok(None)
}

/// Opens a capture for a look before the run. `None`: what is in it makes no sense, which the run reports.
///
/// # Errors
/// The system fails. The run may read the capture all the same, so that whoever looks has to say so.
pub(crate) fn opened(path: &Path) -> Result<Option<Reader>, Error> {
    match Reader::open(path, &Options::default()) {
        Ok(reader) => Ok(Some(reader)),
        Err(error) if error.is_of_system() => Err(error),
        Err(_) => Ok(None),
    }
}

/// Frames for a look before the run. `None`: there are no more, or they make no sense.
///
/// # Errors
/// As above.
pub(crate) fn next(reader: &mut Reader) -> Result<Option<Batch>, Error> {
    match reader.next_batch() {
        Err(error) if error.is_of_system() => Err(error),
        batch => Ok(batch.unwrap_or_default()),
    }
}

/// Samples a capture; `None` where it is empty. Errors of its content are reported when it is read for the run.
pub(super) fn look(path: &Path, budget: &Budget) -> Result<Option<Look>, Error> {
    let Some(mut reader) = opened(path)? else {
        return Ok(None);
    };
    let mut look = Look {
        packets: HashMap::new(),
        records: RecordSample::default(),
        interfaces: Vec::new(),
        first: Time(u64::MAX),
        last: Time(0),
        quantum_ns: 1,
        whole: false,
        zeros: 0,
        places: HashMap::new(),
    };
    let (mut frames, mut bytes) = (0, 0);
    while frames < budget.frames && bytes < budget.bytes {
        let Some(batch) = next(&mut reader)? else {
            look.whole = true;
            break;
        };
        for frame in batch.frames() {
            look.first = look.first.min(frame.time);
            look.last = look.last.max(frame.time);
            look.records.record(frame, batch.bytes(frame));
            if let Some(interface) = reader.interfaces().get(frame.interface as usize) {
                look.frame(interface, frame, batch.bytes(frame), budget.packets);
            }
        }
        frames += batch.frames().len() as u64;
        bytes += batch.data().len() as u64;
        reader.recycle(batch);
    }
    for interface in reader.interfaces() {
        look.interfaces.push((interface.link, interface.name.clone()));
        look.quantum_ns = look.quantum_ns.max(interface.quantum_ns);
    }
    Ok((frames > 0).then_some(look))
}

impl Look {
    /// Moves what was stamped from `at` on, in nanoseconds.
    pub(super) fn set_back(&mut self, at: Time, by_ns: u64) {
        let later = self.packets.values_mut().filter(|sampled| sampled.time >= at);
        for sampled in later {
            sampled.time.0 = sampled.time.0.saturating_sub(by_ns);
        }
        for edge in [&mut self.first, &mut self.last] {
            if *edge >= at {
                edge.0 = edge.0.saturating_sub(by_ns);
            }
        }
    }

    fn frame(&mut self, interface: &Interface, frame: &Frame, bytes: &[u8], most: usize) {
        let (bytes, original) = on_the_wire(frame, bytes);
        let mut roce = Roce::default();
        let mut mirror = None;
        if !roce_wire::fast::decode_into(interface.link, bytes, original, &mut roce) {
            let decoded = roce_wire::decode(interface.link, bytes, original);
            let Content::Roce(packet) = decoded.content else {
                return;
            };
            (roce, mirror) = (packet, decoded.mirror.map(|mirror| (mirror.kind, mirror.session)));
        }
        let identity = roce_flow::identity(&roce);
        // Notifications for one queue pair are all alike.
        if identity.trailing_zeros() < self.zeros || roce.bth.opcode().is_cnp() {
            return;
        }
        let places = u16::try_from(self.places.len()).unwrap_or(u16::MAX);
        let place = *self.places.entry((frame.interface, mirror)).or_insert(places);
        if place == u16::MAX {
            self.places.remove(&(frame.interface, mirror));
            return;
        }
        self.packet((identity, place), frame.time, bytes, &roce);
        while self.packets.len() > most {
            self.zeros += 1;
            self.packets
                .retain(|(identity, _), _| identity.trailing_zeros() >= self.zeros);
        }
    }

    fn packet(&mut self, key: (u64, u16), time: Time, bytes: &[u8], roce: &Roce) {
        let path = path_hash(bytes, roce);
        if let Some(known) = self.packets.get_mut(&key) {
            let copy = known.path != path && known.time.0.abs_diff(time.0) <= COPY;
            known.repeated |= !copy;
            return;
        }
        let [low, high] = if roce.source <= roce.destination {
            [roce.source, roce.destination]
        } else {
            [roce.destination, roce.source]
        };
        let hosts = [low, high].iter().fold(0_u64, |hash, host| {
            let bits = u128::from_be_bytes(*host.octets());
            let folded = bits ^ bits >> 64;
            #[expect(clippy::cast_possible_truncation, reason = "both halves are in the low one")]
            let half = folded as u64;
            (hash ^ half).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        });
        self.packets.insert(
            key,
            SampledPacket {
                time,
                icrc: (icrc::check(bytes, roce) == Icrc::Good)
                    .then(|| icrc::compute(bytes, roce))
                    .flatten(),
                hop_limit: roce.hop_limit,
                marked: roce.ecn() == Ecn::Ce,
                repeated: false,
                hosts,
                forward: roce.source == low,
                path,
            },
        );
    }
}
