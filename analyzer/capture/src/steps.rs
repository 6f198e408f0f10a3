//! Clocks that are set back while they record. The records of a file are in the order of their arrival, so the PSNs of each flow go on
//! where the stamps go back. Where records are only out of order, the PSNs go back with the stamps.
//!
//! Records behind such a step are moved to where the stamps before it ended. The time between the two records beside it is not known.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;

use roce_model::Time;
use roce_wire::{Address, Operation};

use crate::batch::Batch;
use crate::frame::{Frame, Interface};

/// A step of a capture's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// The record behind it, counted from 0.
    pub record: u64,
    /// That record's time, as it was moved.
    pub time: Time,
    /// By how much the clock was set forward, in nanoseconds; negative where it was set back: then less the time that really passed between
    /// the two records.
    pub by_ns: i64,
}

/// A smaller step is none: stamps of several processors differ by some microseconds.
const MIN_STEP_NS: u64 = 10_000;
/// Frames that are looked at before and behind a step.
const NEAR: usize = 512;
/// Number of packets that prove a step: their PSN goes on although their stamp is before the last one of their
/// flow.
const PROVES: u32 = 3;
/// Number of packets that prove a step, for each packet whose PSN goes back with its stamp.
const FAR_MORE: u32 = 8;
/// Frames for each one that steps back: with fewer, records are out of order, and no step is looked for.
const ORDERLY: usize = 64;
/// A PSN that is further ahead than this is of another connection.
const GOES_ON: u32 = 1 << 16;
/// Steps of a file, and places that are looked at, at most.
const MAX_STEPS: usize = 64;
const MAX_LOOKS: u32 = 256;

/// One direction between two queue pairs, and whether it answers.
type Sequence = (Address, Address, u32, bool);

/// Finds the steps of one capture's clock, and moves what is behind them.
#[derive(Debug, Default)]
pub(crate) struct ClockSteps {
    steps: Vec<ClockStep>,
    /// Steps forward that are known: the first stamp behind each, and by how much, in nanoseconds.
    forward: Vec<(Time, u64)>,
    /// Nanoseconds that are added to the stamps.
    shift: u64,
    /// The latest stamp, as it was moved.
    newest: Time,
    looks: u32,
}

impl ClockSteps {
    /// The steps up to the last batch.
    pub(crate) fn all(&self) -> &[ClockStep] {
        &self.steps
    }

    /// Stamps from `at` on are moved back.
    pub(crate) fn set_back(&mut self, at: Time, by_ns: u64) {
        self.forward.push((at, by_ns));
        self.steps.push(ClockStep {
            record: 0,
            time: Time(at.0.saturating_sub(by_ns)),
            by_ns: i64::try_from(by_ns).unwrap_or(i64::MAX),
        });
    }

    /// Moves the stamps of the next batch, whose first record has the number `first`. `newest`: the latest stamp before it; `in_order`:
    /// none of its stamps steps back.
    pub(crate) fn take(
        &mut self,
        batch: &mut Batch,
        interfaces: &[Interface],
        (first, newest, in_order): (u64, Time, bool),
    ) {
        self.undo_steps_back(batch, interfaces, (first, newest, in_order));
        for (at, by_ns) in &self.forward {
            for frame in batch.frames.iter_mut() {
                if frame.time >= *at && frame.time != Time(u64::MAX) {
                    frame.time.0 = frame.time.0.saturating_sub(*by_ns);
                }
            }
        }
    }

    fn undo_steps_back(
        &mut self,
        batch: &mut Batch,
        interfaces: &[Interface],
        (first, newest, in_order): (u64, Time, bool),
    ) {
        if in_order && self.shift == 0 {
            return;
        }
        if self.shift == 0 {
            self.newest = newest;
        }
        for at in 0..batch.frames.len() {
            let raw = batch.frames[at].time;
            if raw == Time(u64::MAX) {
                continue;
            }
            let mut time = raw.0.saturating_add(self.shift);
            let back = self.newest.0.saturating_sub(time);
            if back >= MIN_STEP_NS && self.steps.len() < MAX_STEPS && self.looks < MAX_LOOKS {
                self.looks += 1;
                if is_step(batch, at, self.shift, interfaces) {
                    self.shift = self.shift.saturating_add(back);
                    time = time.saturating_add(back);
                    self.steps.push(ClockStep {
                        record: first.saturating_add(at as u64),
                        time: Time(time),
                        by_ns: i64::try_from(back).map_or(i64::MIN, i64::wrapping_neg),
                    });
                }
            }
            batch.frames[at].time = Time(time);
            self.newest = self.newest.max(Time(time));
        }
    }
}

/// True if the clock was set back before the record `at` of a batch. Stamps before it have been moved by `shift`.
fn is_step(batch: &Batch, at: usize, shift: u64, interfaces: &[Interface]) -> bool {
    let Some(interface) = batch.frames.get(at).map(|frame| frame.interface) else {
        return false;
    };
    let of_interface = |frames: &[Frame]| -> Vec<Frame> {
        let same = frames.iter().filter(|frame| frame.interface == interface);
        same.copied().collect()
    };
    let before = of_interface(&batch.frames[at.saturating_sub(NEAR)..at]);
    let behind = of_interface(&batch.frames[at..batch.frames.len().min(at + NEAR)]);
    let disorder = [&before, &behind].map(|frames| {
        let pairs = frames.windows(2);
        pairs.filter(|pair| pair[1].time < pair[0].time).count()
    });
    if (disorder[0] + disorder[1]).saturating_mul(ORDERLY) > before.len() + behind.len() {
        return false;
    }
    let mut last: HashMap<Sequence, (u32, Time), RandomState> = HashMap::new();
    for frame in &before {
        if let Some((sequence, psn)) = sequence(batch, frame, interfaces) {
            last.insert(sequence, (psn, frame.time));
        }
    }
    let (mut goes_on, mut goes_back) = (0, 0);
    for frame in &behind {
        let Some((sequence, psn)) = sequence(batch, frame, interfaces) else {
            continue;
        };
        let Some((before, time)) = last.get(&sequence) else {
            continue;
        };
        if frame.time.0.saturating_add(shift) >= time.0 {
            continue;
        }
        match psn.wrapping_sub(*before) & 0x00ff_ffff {
            1..GOES_ON => goes_on += 1,
            // An answer may come twice.
            0 if sequence.3 => {}
            _ => goes_back += 1,
        }
    }
    goes_on >= PROVES && goes_on >= FAR_MORE * goes_back
}

/// The sequence that a packet belongs to, and its PSN.
fn sequence(batch: &Batch, frame: &Frame, interfaces: &[Interface]) -> Option<(Sequence, u32)> {
    let interface = interfaces.get(frame.interface as usize)?;
    let original = frame.original.max(frame.captured);
    let roce = roce_wire::fast::decode(interface.link, batch.bytes(frame), original)?;
    let opcode = roce.bth.opcode();
    if opcode.is_cnp() {
        return None;
    }
    let answers = matches!(
        opcode.operation(),
        Operation::Acknowledge | Operation::ReadResponse | Operation::AtomicAcknowledge
    );
    let sequence = (
        roce.source,
        roce.destination,
        roce.bth.destination_qpn().value(),
        answers,
    );
    Some((sequence, roce.bth.psn().value()))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use roce_wire::LinkType;

    use super::*;
    use crate::frame::Direction;

    /// Ethernet, IPv4, UDP and the BTH of a WRITE Middle of 8 bytes.
    fn packet(psn: u32) -> Vec<u8> {
        let mut packet = vec![0; 12];
        packet.extend([8, 0, 0x45, 2, 0, 52, 0, 0, 0x40, 0, 64, 17, 0, 0]);
        packet.extend([10, 0, 0, 1, 10, 0, 0, 2, 0xc0, 1, 0x12, 0xb7, 0, 32, 0, 0]);
        packet.extend([0x07, 0, 0xff, 0xff, 0, 0, 0, 0x11]);
        packet.extend(psn.to_be_bytes());
        packet.resize(packet.len() + 12, 0);
        packet
    }

    /// The stamps of a capture of these PSNs and stamps, and its steps.
    fn taken(records: &[(u32, u64)]) -> (Vec<u64>, Vec<ClockStep>) {
        let mut data = Vec::new();
        let mut frames = Vec::new();
        for (psn, time) in records {
            let bytes = packet(*psn);
            let length = u32::try_from(bytes.len()).unwrap();
            frames.push(Frame {
                time: Time(*time),
                offset: u32::try_from(data.len()).unwrap(),
                captured: length,
                original: length,
                interface: 0,
                fcs_bytes: 0,
                direction: Direction::Unknown,
                process: 0,
            });
            data.extend(bytes);
        }
        let interface = Interface {
            link: LinkType::ETHERNET,
            name: None,
            description: None,
            snaplen: 0,
            fcs_bytes: 0,
            quantum_ns: 1,
            dropped: None,
            section: 0,
        };
        let mut batch = Batch::new(Bytes::from(data), frames, Vec::new());
        let mut steps = ClockSteps::default();
        steps.take(&mut batch, &[interface], (0, Time(0), false));
        let times = batch.frames().iter().map(|frame| frame.time.0).collect();
        (times, steps.all().to_vec())
    }

    #[test]
    fn what_is_behind_a_step_is_moved() {
        // 10 us apart; before the sixth packet the clock is set back by 300 ms, less the 10 us that passed.
        let begin = 1_000_000_000;
        let records: Vec<(u32, u64)> = (0..20)
            .map(|psn| {
                let time = begin + u64::from(psn) * 10_000;
                (psn, if psn < 6 { time } else { time - 300_000_000 })
            })
            .collect();
        let (times, steps) = taken(&records);
        assert_eq!(steps.len(), 1);
        assert_eq!((steps[0].record, steps[0].by_ns), (6, -299_990_000));
        assert_eq!(times[6], times[5], "the time between the two is not known");
        assert!(times[6..].windows(2).all(|pair| pair[1] - pair[0] == 10_000));
    }

    #[test]
    fn records_out_of_order_are_no_step() {
        let begin = 1_000_000_000;
        // Each group of eight is recorded before the eight that came before it.
        let records: Vec<(u32, u64)> = (0..64)
            .map(|place: u32| place ^ 8)
            .map(|psn| (psn, begin + u64::from(psn) * 10_000))
            .collect();
        let (times, steps) = taken(&records);
        assert!(steps.is_empty(), "{steps:?}");
        assert_eq!(times, records.iter().map(|(_, time)| *time).collect::<Vec<_>>());
        // Two packets prove nothing.
        let (_, steps) = taken(&[(0, begin), (1, begin - 50_000), (2, begin - 40_000)]);
        assert!(steps.is_empty());
    }
}
