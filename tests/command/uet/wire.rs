//! Frames of a connection of UET, with a receiver that acknowledges them. Nothing here is of the analysis: fields are written as the
//! sources of the format say.

use std::collections::{BTreeMap, BTreeSet};

/// Time from a sending to its arrival, and from an arrival to the answer at the sender's tap, in ns.
const HALF: u64 = 5_000;
/// Time from an arrival to its answer, at the receiver, in ns.
const SERVICE: u64 = 300;
/// A sender waits this long before it sends again, in ns.
const GUARD: u64 = 3_000;
/// Bytes of payload of a request.
pub(crate) const PAYLOAD: usize = 512;
/// Entropies: UDP source ports.
pub(crate) const PORTS: [u16; 4] = [0x5000, 0x5001, 0x5002, 0x5003];
/// The number of the connection at its sender and at its receiver, and its job.
pub(crate) const IDS: [u16; 2] = [0x3456, 0x9abc];
pub(crate) const JOB: u32 = 0x77;
/// The first PSN: PSNs wrap at 2^32.
pub(crate) const FIRST: u32 = u32::MAX - 15;

/// Fate of the first sending of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// No frame arrives. The sender learns it from a hole.
    Lost,
    /// No frame arrives. The receiver says that it concludes it.
    Missed,
    /// A switch cuts it: the code of the refusal.
    Trimmed(u8),
}

/// A run of a connection.
#[derive(Default)]
pub(crate) struct Run {
    /// Packets, with the fates of those that do not arrive the first time.
    pub(crate) packets: u32,
    pub(crate) fates: BTreeMap<u32, Fate>,
    /// The entropy whose packets are marked.
    pub(crate) marked: Option<u16>,
    /// The tap stands at the receiver: lost packets are not seen, trimmed ones are, and answers are seen at once.
    pub(crate) at_receiver: bool,
}

fn checked(kind: u16, next: u16, flags: u16) -> Vec<u8> {
    (kind << 11 | next << 7 | flags).to_be_bytes().to_vec()
}

/// A frame: Ethernet, IPv6, UDP to port 4793. `cut`: as a switch trims it.
fn frame(source: u8, destination: u8, port: u16, body: &[u8], cut: Option<usize>) -> Vec<u8> {
    let length = u16::try_from(8 + body.len()).unwrap();
    let mut frame = vec![2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source, 0x86, 0xdd];
    frame.extend([0x60, 0, 0, 0]);
    frame.extend(length.to_be_bytes());
    frame.extend([17, 64]);
    for host in [source, destination] {
        frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    frame.extend(port.to_be_bytes());
    frame.extend(4793_u16.to_be_bytes());
    frame.extend(length.to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(body);
    if let Some(cut) = cut {
        frame.truncate(cut);
    }
    frame
}

/// A request of a message of four packets.
fn request(place: u32, is_again: bool) -> Vec<u8> {
    let psn = FIRST.wrapping_add(place);
    // The first packets come before an answer has told the receiver's number.
    let opens = place < 4;
    let mut body = checked(2, 3, u16::from(is_again) << 4 | u16::from(opens) << 2);
    body.extend(0_u16.to_be_bytes());
    body.extend(psn.to_be_bytes());
    body.extend(IDS[0].to_be_bytes());
    let second = if opens {
        u16::try_from(place).unwrap()
    } else {
        IDS[1]
    };
    body.extend(second.to_be_bytes());
    let (first, last) = (place.is_multiple_of(4), place % 4 == 3);
    body.extend([1, u8::from(last) << 1 | u8::from(first)]);
    body.extend(u16::try_from(place / 4).unwrap().to_be_bytes());
    body.extend((0x0100_0000 | JOB).to_be_bytes());
    // Process and resource, offset in the buffer, initiator, match bits.
    body.extend([0; 24]);
    if first {
        body.extend([0; 8]);
    } else {
        // Payload's length in 14 bits, and its offset in the message.
        body.extend([0, 0]);
        body.extend(u16::try_from(PAYLOAD).unwrap().to_be_bytes());
        body.extend((place % 4 * 512).to_be_bytes());
    }
    body.extend(2048_u32.to_be_bytes());
    assert_eq!(body.len(), 12 + 44);
    body
}

/// Packets that the receiver has.
#[derive(Default)]
struct Receiver {
    all: u32,
    beyond: BTreeSet<u32>,
}

impl Receiver {
    /// A packet arrives; gives the acknowledgement with congestion control.
    fn take(&mut self, place: u32, is_marked: bool) -> Vec<u8> {
        self.beyond.insert(place);
        while self.beyond.remove(&self.all) {
            self.all += 1;
        }
        let cumulative = FIRST.wrapping_add(self.all).wrapping_sub(1);
        let named = i16::try_from(i64::from(place) + 1 - i64::from(self.all)).unwrap();
        let mut body = checked(8, 0, u16::from(is_marked) << 5);
        body.extend(named.to_be_bytes());
        body.extend(cumulative.to_be_bytes());
        body.extend(IDS[1].to_be_bytes());
        body.extend(IDS[0].to_be_bytes());
        body.extend([0, 8]);
        body.extend(1_u16.to_be_bytes());
        let bits = self.beyond.iter().map(|at| at - self.all).filter(|bit| *bit < 64);
        body.extend(bits.fold(0_u64, |bits, bit| bits | 1 << bit).to_be_bytes());
        body.extend([0; 8]);
        body
    }
}

/// A refusal of a packet.
fn nack(code: u8, place: u32) -> Vec<u8> {
    let mut body = checked(10, 0, 0);
    body.extend([code, 0]);
    body.extend(FIRST.wrapping_add(place).to_be_bytes());
    body.extend(IDS[1].to_be_bytes());
    body.extend(IDS[0].to_be_bytes());
    body.extend([0; 4]);
    body
}

impl Run {
    /// The frames at the tap with their times in ns, in order.
    pub(crate) fn frames(&self) -> Vec<(u64, Vec<u8>)> {
        let mut frames: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut arrivals: BTreeMap<(u64, u32), (u16, Option<Fate>)> = BTreeMap::new();
        let (to_data, to_answer) = if self.at_receiver {
            (HALF, SERVICE)
        } else {
            (0, HALF)
        };
        let mut send = |time: u64, place: u32, port: u16, is_again: bool, fate: Option<Fate>| {
            let is_cut = matches!(fate, Some(Fate::Trimmed(_)));
            let never_comes = matches!(fate, Some(Fate::Lost | Fate::Missed));
            if !(self.at_receiver && never_comes) {
                let mut body = request(place, is_again);
                body.extend([0xaa; PAYLOAD]);
                let cut = (is_cut && self.at_receiver).then_some(14 + 40 + 8 + 12 + 44 + 22);
                frames.push((time + to_data, frame(1, 2, port, &body, cut)));
            }
            arrivals.insert((time + HALF, place), (port, fate));
        };
        let mut end = 0;
        for place in 0..self.packets {
            let time = 1_000_000 + 2_000 * u64::from(place);
            let port = PORTS[(place % 4) as usize];
            let fate = self.fates.get(&place).copied();
            send(time, place, port, false, fate);
            // A hole shows with the next arrival, 2 us later, a refusal with the packet itself. What is sent again goes on the next entropy.
            let known = time + 2 * HALF + 2_000 * u64::from(fate == Some(Fate::Lost)) + 500;
            if fate.is_some() {
                send(
                    known + GUARD,
                    place,
                    PORTS[((place + 1) % 4) as usize],
                    true,
                    None,
                );
            }
            end = known + GUARD + 2 * HALF;
        }
        let mut receiver = Receiver::default();
        for ((time, place), (port, fate)) in arrivals {
            let body = match fate {
                Some(Fate::Lost) => continue,
                Some(Fate::Missed) => nack(26, place),
                Some(Fate::Trimmed(code)) => nack(code, place),
                None => receiver.take(place, self.marked == Some(port)),
            };
            frames.push((time + to_answer, frame(2, 1, 0x6000, &body, None)));
        }
        // The initiator closes: control packet of kind 4.
        let mut close = checked(11, 4, 0);
        close.extend([0, 0]);
        close.extend(FIRST.wrapping_add(self.packets).to_be_bytes());
        close.extend(IDS[0].to_be_bytes());
        close.extend(IDS[1].to_be_bytes());
        close.extend([0; 4]);
        frames.push((end, frame(1, 2, PORTS[0], &close, None)));
        frames.sort();
        frames
    }
}
