//! Records that two captures share: files of one recorder that overlap in time, or one file under two names. A record is known by its
//! stamp and its bytes. Two recorders do not stamp every packet alike, to the nanosecond or not.

use std::collections::{HashMap, VecDeque};

use foldhash::quality::FixedState;
use roce_capture::{Frame, FrameRun, Merge};
use roce_model::Time;

/// Bytes at a record's begin that are compared: the headers of a packet in a tunnel.
const HEAD: usize = 128;
/// Bytes at a record's end that are compared: they have the ICRC.
const TAIL: usize = 16;
/// Records of a sample, and of the beginning and the end of a capture that are remembered one by one.
const SAMPLE: usize = 1 << 12;
const EDGE: usize = 1 << 10;
/// Shared records for each one that may be in one of the captures alone: a capture may begin while records are out of order.
const SHARED_PER_OTHER: usize = 16;
/// Records of one stamp that are remembered: beyond them none is left out.
const MAX_OF_A_STAMP: usize = 1 << 16;

/// The hash of a record: its stamp, its length and its bytes.
fn fingerprint(time: Time, frame: &Frame, bytes: &[u8]) -> u64 {
    let head = bytes.get(..HEAD).unwrap_or(bytes);
    let tail = bytes.get(bytes.len().saturating_sub(TAIL)..).unwrap_or_default();
    // One seed for all captures of a run: what they share has one hash.
    std::hash::BuildHasher::hash_one(
        &FixedState::with_seed(0x7e1e_c0de),
        (time.0, frame.original, frame.captured, head, tail),
    )
}

/// Which records a capture has, as far as memory allows.
#[derive(Debug, Default)]
pub(crate) struct RecordSample {
    /// Records whose hashes end with `zeros` bits.
    sample: HashMap<u64, Time>,
    zeros: u32,
    first: Vec<(u64, Time)>,
    last: VecDeque<(u64, Time)>,
}

impl RecordSample {
    /// The capture's next record.
    pub(crate) fn record(&mut self, frame: &Frame, bytes: &[u8]) {
        let hash = fingerprint(frame.time, frame, bytes);
        if self.first.len() < EDGE {
            self.first.push((hash, frame.time));
        }
        if self.last.len() >= EDGE {
            self.last.pop_front();
        }
        self.last.push_back((hash, frame.time));
        if hash.trailing_zeros() < self.zeros {
            return;
        }
        self.sample.insert(hash, frame.time);
        while self.sample.len() > SAMPLE {
            self.zeros += 1;
            self.sample.retain(|hash, _| hash.trailing_zeros() >= self.zeros);
        }
    }

    /// True if both captures have the same records in the time that both cover: `a` begins first, and `from` to `to` is in both.
    pub(crate) fn is_shared(a: &Self, b: &Self, from: Time, to: Time) -> bool {
        let zeros = a.zeros.max(b.zeros);
        let marked_records = |of: &Self| -> Vec<(u64, Time)> {
            let all = of.sample.iter().map(|(hash, time)| (*hash, *time));
            all.filter(|(hash, _)| hash.trailing_zeros() >= zeros).collect()
        };
        // Where one ends soon after the other begins, no record of a sample may be in both.
        let end: Vec<(u64, Time)> = a.last.iter().copied().collect();
        let known_from = end.iter().map(|(_, time)| *time).min().unwrap_or(from);
        let known_to = b.first.iter().map(|(_, time)| *time).max().unwrap_or(to);
        let edges = Overlap::of(&end, &b.first, from.max(known_from), to.min(known_to));
        let shared = Overlap::of(&marked_records(a), &marked_records(b), from, to);
        edges.is_one() || shared.is_one()
    }
}

/// Records of two captures in a time that both cover.
struct Overlap {
    shared: usize,
    /// In one of them alone, and not at the borders: a capture can end between records of one stamp.
    alone: usize,
}

impl Overlap {
    fn of(a: &[(u64, Time)], b: &[(u64, Time)], from: Time, to: Time) -> Self {
        let within = |records: &[(u64, Time)]| -> HashMap<u64, Time> {
            let records = records.iter().copied();
            records.filter(|(_, time)| (from..=to).contains(time)).collect()
        };
        let (a, b) = (within(a), within(b));
        let only = |these: &HashMap<u64, Time>, those: &HashMap<u64, Time>| {
            let inner = |(hash, time): &(&u64, &Time)| {
                (from..to).contains(*time) && **time != from && !those.contains_key(hash)
            };
            these.iter().filter(inner).count()
        };
        Self {
            shared: a.keys().filter(|hash| b.contains_key(hash)).count(),
            alone: only(&a, &b) + only(&b, &a),
        }
    }

    fn is_one(&self) -> bool {
        self.shared > 0 && self.alone.saturating_mul(SHARED_PER_OTHER) <= self.shared
    }
}

/// Leaves out the records that another capture of the same recorder has shown before.
#[derive(Debug, Default)]
pub(crate) struct RecordsOnce {
    /// For each input, the number of its recorder, where several inputs share records.
    recorders: Vec<Option<usize>>,
    /// By recorder.
    stamps: HashMap<usize, OneStamp>,
    /// For each input, the number of records that were left out, and true if its last one was.
    left_out: Vec<(u64, bool)>,
    /// Parts of runs that are next.
    waiting: VecDeque<FrameRun>,
}

/// The records of one recorder with the latest stamp.
#[derive(Debug, Default)]
struct OneStamp {
    time: Time,
    /// By hash, how often the record was taken.
    taken: HashMap<u64, u32>,
    /// By hash and input, how often that input had the record.
    had: HashMap<(u64, usize), u32>,
}

impl OneStamp {
    /// True if no other input has shown this record as often as this one has.
    fn is_new(&mut self, input: usize, time: Time, hash: u64) -> bool {
        if self.time != time {
            self.time = time;
            self.taken.clear();
            self.had.clear();
        }
        if self.had.len() >= MAX_OF_A_STAMP {
            return true;
        }
        let had = self.had.entry((hash, input)).or_default();
        *had += 1;
        let taken = self.taken.entry(hash).or_default();
        let is_new = *had > *taken;
        *taken = (*taken).max(*had);
        is_new
    }
}

impl RecordsOnce {
    /// Inputs with the numbers of their recorders, where several share records.
    pub(crate) fn new(recorders: Vec<Option<usize>>) -> Self {
        Self {
            left_out: vec![(0, false); recorders.len()],
            recorders,
            ..Self::default()
        }
    }

    /// Records of an input that were left out.
    pub(crate) fn left_out(&self, input: usize) -> u64 {
        self.left_out.get(input).map_or(0, |(records, _)| *records)
    }

    /// The next frames of the merged inputs that were not shown before.
    pub(crate) fn next_run(&mut self, merge: &mut Merge) -> Option<FrameRun> {
        loop {
            if let Some(run) = self.waiting.pop_front() {
                return Some(run);
            }
            let run = merge.next_run()?;
            let recorder = self.recorders.get(run.input).copied().flatten();
            let Some(recorder) = recorder else {
                return Some(run);
            };
            self.split(recorder, &run);
            merge.recycle(run);
        }
    }

    /// Appends the new records of a run of frames to those that wait.
    fn split(&mut self, recorder: usize, run: &FrameRun) {
        let stamp = self.stamps.entry(recorder).or_default();
        let Some((left_out, is_last_out)) = self.left_out.get_mut(run.input) else {
            return;
        };
        let mut part = run.range.start..run.range.start;
        let mut push = |part: std::ops::Range<usize>| {
            self.waiting.push_back(FrameRun {
                range: part,
                ..run.clone()
            });
        };
        for frame in run.frames() {
            let hash = fingerprint(frame.time, frame, run.batch.bytes(frame));
            *is_last_out = !stamp.is_new(run.input, frame.time, hash);
            if *is_last_out {
                *left_out += 1;
                if !part.is_empty() {
                    push(part.clone());
                }
                part = part.end + 1..part.end + 1;
            } else {
                part.end += 1;
            }
        }
        // Losses and notes come with the records beside them.
        if !part.is_empty() || run.range.is_empty() && !*is_last_out {
            push(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: u64, byte: u8) -> (Frame, [u8; 60]) {
        let frame = Frame {
            time: Time(time),
            offset: 0,
            captured: 60,
            original: 60,
            interface: 0,
            fcs_bytes: 0,
            direction: roce_capture::Direction::Unknown,
            process: 0,
        };
        (frame, [byte; 60])
    }

    fn sample(times: std::ops::Range<u64>, byte: impl Fn(u64) -> u8) -> RecordSample {
        let mut sample = RecordSample::default();
        for time in times {
            let (frame, bytes) = record(time, byte(time));
            sample.record(&frame, &bytes);
        }
        sample
    }

    #[test]
    fn an_overlap_is_known_by_its_records_however_short() {
        let byte = |time: u64| u8::try_from(time % 251).unwrap();
        let shared = |a: &RecordSample, b: &RecordSample, from, to| {
            RecordSample::is_shared(a, b, Time(from), Time(to))
        };
        let whole = sample(0..1_000_000, byte);
        assert!(shared(&whole, &sample(0..1_000_000, byte), 0, 999_999));
        // 10 of a million: no sample has them.
        let next = sample(999_990..2_000_000, byte);
        assert!(shared(&whole, &next, 999_990, 999_999));
        // Other packets at the same times, and a tap that saw the same 1 ns later.
        let other = sample(999_990..2_000_000, |time| byte(time + 1));
        assert!(!shared(&whole, &other, 999_990, 999_999));
        let mut later = RecordSample::default();
        for time in 999_990..2_000_000 {
            let (frame, bytes) = record(time + 1, byte(time));
            later.record(&frame, &bytes);
        }
        assert!(!shared(&whole, &later, 999_991, 999_999));
    }

    #[test]
    fn equal_records_count_as_often_as_one_file_has_them() {
        let mut stamp = OneStamp::default();
        // Two equal records of one file, one of another file with a third of that stamp.
        let new =
            [(0, 7), (0, 7), (1, 7), (1, 7), (1, 8)].map(|(input, hash)| stamp.is_new(input, Time(5), hash));
        assert_eq!(new, [true, true, false, false, true]);
        assert!(stamp.is_new(1, Time(6), 7), "another stamp");
    }
}
