//! Before several captures are merged: which of them saw the same packets, and how far their clocks are apart.
//!
//! Each file is looked into (`align/look.rs`), packets are matched by what is in them and not by time, and the clocks are
//! compared by the packets that both stamped (`roce_flow::clocks`). A file has one clock, whatever interfaces and mirror
//! sessions are in it; a file that continues another one (rotated captures) has that one's. Streams can be read only
//! once and are left out.

mod alignment;
mod forward;
mod known;
pub(crate) mod look;

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use roce_capture::{Correction, Error};
use roce_flow::clocks::{self, Comparison, MIN_PACKETS, Offset, StampedPacket};
use roce_model::{Span, Time};

use crate::error::text;
use crate::taps::{Apart, CONTINUES, same_begin};
pub(crate) use alignment::{Alignment, Clock};
pub use known::KnownClock;
use look::{Budget, Look, SampledPacket};

use crate::records::RecordSample;

/// Frames looked at in all files together, and their bytes: some seconds at the most. Longer ones are looked at from
/// their beginning.
const MAX_FRAMES: u64 = 32 << 20;
const MAX_BYTES: u64 = 4 << 30;
/// Least number of frames of each file.
const MIN_FRAMES: u64 = 1 << 16;
const MIN_BYTES: u64 = 16 << 20;
/// Packets in all samples together; in one of them, at most and at least.
const MAX_SAMPLED: usize = 1 << 20;
const SAMPLED: std::ops::RangeInclusive<usize> = 1 << 10..=1 << 15;
/// Clocks are not further apart than this: captures that begin further apart are of different times.
const MAX_OFFSET: Span = CONTINUES;
/// A rotated file begins within this time after the end of the one before, where traffic goes on.
const ROTATES: Span = Span::SECOND;
/// Steps of clocks that are looked for.
const MAX_SET_FORWARD: usize = 8;
/// Captures before another one that may overlap with it and are compared, at most.
const MAX_OVERLAPPING: usize = 64;
/// Sightings of one packet that are compared with each other.
const MAX_SIGHTINGS: usize = 8;

/// Compares the clocks of the captures at `paths`; what is known of them is in `known`, in their order.
pub(crate) fn align(paths: &[&PathBuf], threads: u32, known: &[Option<KnownClock>]) -> Alignment {
    let mut alignment = compared(paths, threads, known);
    known::connect(&mut alignment, paths, known);
    alignment.apart = std::mem::take(&mut alignment.apart).by_machine(machines(known));
    alignment
}

/// Number of each capture's machine.
pub(crate) fn machines(known: &[Option<KnownClock>]) -> Vec<Option<u32>> {
    known.iter().map(|known| Some(known.as_ref()?.machine)).collect()
}

/// Compares clocks by packets.
fn compared(paths: &[&PathBuf], threads: u32, known: &[Option<KnownClock>]) -> Alignment {
    let mut alignment = Alignment {
        shared: false,
        ..Alignment::none(paths.len())
    };
    if paths.len() < 2 {
        return alignment;
    }
    let (files, streams): (Vec<usize>, Vec<usize>) = (0..paths.len()).partition(|input| {
        let path: &Path = paths[*input];
        path != Path::new("-") && roce_capture::is_whole(path)
    });
    for stream in streams {
        alignment.shared = true;
        let text =
            "a stream can be read only once: its clock was not compared with those of the other inputs";
        alignment.warnings.push((stream, text.to_owned()));
    }
    let (close, mut failed) = close_in_time(paths, files, known);
    let mut looks = if close.len() < 2 {
        Vec::new()
    } else {
        look_into(paths, &close, threads, &mut failed)
    };
    alignment
        .warnings
        .extend(failed.into_iter().map(|(input, error)| {
            let text = format!(
                "its clock was not compared with those of the other inputs: {}",
                text(&error)
            );
            (input, text)
        }));
    if looks.is_empty() {
        return alignment;
    }
    alignment.shared |= looks.iter().any(|(_, look)| !look.whole);
    let recorders = recorders(&looks, known);
    let groups = group(paths, &looks, &recorders, known, CONTINUES);
    let mut steps = 0..MAX_SET_FORWARD;
    let compared = loop {
        let compared = ComparedClocks::new(&looks, &groups);
        let step = steps.next().and_then(|_| compared.set_forward());
        let Some((clock, at, by_ns)) = step else {
            break compared;
        };
        // All files of the clock are stamped by it.
        for ((input, look), _) in looks.iter_mut().zip(&groups).filter(|(_, of)| **of == clock) {
            look.set_back(at, by_ns);
            alignment.set_forward.push((*input, at, by_ns));
        }
    };
    if compared.contradictions().next().is_some() {
        // A capture that follows another one after a long silence may have another clock.
        let groups = group(paths, &looks, &recorders, known, ROTATES);
        ComparedClocks::new(&looks, &groups).conclude(paths, &mut alignment);
    } else {
        compared.conclude(paths, &mut alignment);
    }
    let mut files: HashMap<usize, usize> = HashMap::new();
    for recorder in &recorders {
        *files.entry(*recorder).or_default() += 1;
    }
    let mut of_inputs = vec![None; paths.len()];
    for ((input, _), recorder) in looks.iter().zip(&recorders) {
        of_inputs[*input] = (files[recorder] > 1).then_some(*recorder);
    }
    if of_inputs.iter().any(Option::is_some) {
        alignment.apart = std::mem::take(&mut alignment.apart).by_recorder(of_inputs);
    }
    alignment
}

/// The recorder of each look, by the number of its first look: captures that overlap in time and share their records there are of one.
fn recorders(looks: &[(usize, Look)], known: &[Option<KnownClock>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..looks.len()).collect();
    order.sort_by_key(|at| (looks[*at].1.first, *at));
    let mut recorders: Vec<usize> = (0..looks.len()).collect();
    let mut before: HashMap<(&[_], Option<u32>), Vec<usize>> = HashMap::new();
    for at in order {
        let look = &looks[at].1;
        let before = before
            .entry((&look.interfaces, machine(known, looks[at].0)))
            .or_default();
        let latest = before.len().saturating_sub(MAX_OVERLAPPING);
        let found = before[latest..].iter().rev().find(|earlier| {
            let earlier = &looks[**earlier].1;
            let to = earlier.last.min(look.last);
            look.first <= to && RecordSample::is_shared(&earlier.records, &look.records, look.first, to)
        });
        if let Some(earlier) = found {
            recorders[at] = recorders[*earlier];
        }
        before.push(at);
    }
    recorders
}

fn machine(known: &[Option<KnownClock>], input: usize) -> Option<u32> {
    known.get(input).copied().flatten().map(|known| known.machine)
}

/// Inputs that the system failed to read at a look, and how.
type FailedLooks = Vec<(usize, Error)>;

/// Those of `files` that begin no further from another one than clocks can be apart.
fn close_in_time(
    paths: &[&PathBuf],
    files: Vec<usize>,
    known: &[Option<KnownClock>],
) -> (Vec<usize>, FailedLooks) {
    let mut failed = Vec::new();
    if files.len() < 2 {
        return (Vec::new(), failed);
    }
    let mut begins: Vec<(Time, usize)> = files
        .into_iter()
        .filter_map(|input| {
            let first = match look::first_time(paths[input]) {
                Ok(first) => first?,
                Err(error) => {
                    failed.push((input, error));
                    return None;
                }
            };
            let known = known.get(input).and_then(Option::as_ref);
            Some((known::common(first, known), input))
        })
        .collect();
    begins.sort_unstable();
    let close = |a: Option<&(Time, usize)>, b: Option<&(Time, usize)>| {
        a.zip(b).is_some_and(|(a, b)| b.0.since(a.0) <= MAX_OFFSET)
    };
    let mut inputs: Vec<usize> = (0..begins.len())
        .filter(|at| {
            let this = begins.get(*at);
            close(this, begins.get(at + 1))
                || at
                    .checked_sub(1)
                    .is_some_and(|before| close(begins.get(before), this))
        })
        .map(|at| begins[at].1)
        .collect();
    inputs.sort_unstable();
    (inputs, failed)
}

/// Looks into the inputs, several at a time.
fn look_into(
    paths: &[&PathBuf],
    inputs: &[usize],
    threads: u32,
    failed: &mut FailedLooks,
) -> Vec<(usize, Look)> {
    let files = inputs.len();
    let each = |all: u64, least: u64| (all / files as u64).max(least);
    let budget = Budget {
        frames: each(MAX_FRAMES, MIN_FRAMES),
        bytes: each(MAX_BYTES, MIN_BYTES),
        packets: (MAX_SAMPLED / files).clamp(*SAMPLED.start(), *SAMPLED.end()),
    };
    let next = AtomicUsize::new(0);
    let looks = Mutex::new(Vec::new());
    let work = || {
        while let Some(input) = inputs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let look = look::look(paths[*input], &budget);
            if let Ok(mut looks) = looks.lock() {
                looks.push((*input, look));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..(threads as usize).min(files) {
            // Without another thread this one does it all.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut all = looks.into_inner().unwrap_or_default();
    all.sort_by_key(|(input, _)| *input);
    let mut looks = Vec::new();
    for (input, look) in all {
        match look {
            Ok(look) => looks.extend(look.map(|look| (input, look))),
            Err(error) => failed.push((input, error)),
        }
    }
    looks
}

/// The clock of each look, by number: a capture that continues another one, after `silence` or less, has the same, and so have those of
/// one recorder. Of several that it may continue it is the one whose name begins most like its own, then the one that ended last.
fn group(
    paths: &[&PathBuf],
    looks: &[(usize, Look)],
    recorders: &[usize],
    known: &[Option<KnownClock>],
    silence: Span,
) -> Vec<usize> {
    let machine = |input: usize| machine(known, input);
    let name = |input: usize| paths.get(input).map_or("".into(), |path| path.to_string_lossy());
    let mut order: Vec<usize> = (0..looks.len()).collect();
    order.sort_by_key(|at| (looks[*at].1.first, *at));
    let mut clocks: Vec<usize> = (0..looks.len()).collect();
    // The last file of each clock, by its interfaces.
    let mut ends: HashMap<&[_], Vec<usize>> = HashMap::new();
    for at in order {
        let look = &looks[at].1;
        let ends = ends.entry(&look.interfaces).or_default();
        let may_continue = |end: usize| {
            let (ended, end) = &looks[end];
            machine(*ended) == machine(looks[at].0)
                && end.whole
                && end.last <= look.first
                && look.first.since(end.last) <= silence
                && !are_twins(end, look)
        };
        let of_recorder = ends.iter().rposition(|end| recorders[*end] == recorders[at]);
        let before = of_recorder.or_else(|| {
            let own = name(looks[at].0);
            let candidates = ends.iter().enumerate().filter(|(_, end)| may_continue(**end));
            let most = candidates.max_by_key(|(_, end)| same_begin(&name(looks[**end].0), &own));
            most.map(|(place, _)| place)
        });
        match before {
            Some(before) => {
                clocks[at] = clocks[ends[before]];
                if looks[ends[before]].1.last <= look.last {
                    ends[before] = at;
                }
            }
            None => ends.push(at),
        }
    }
    clocks
}

/// True if two captures that do not overlap saw the same packets by two clocks: they share most of what both could have sampled. What
/// was retransmitted across the border of two rotated files is a small part of them.
fn are_twins(a: &Look, b: &Look) -> bool {
    let zeros = a.zeros.max(b.zeros);
    let comparable = |look: &Look| {
        let packets = look.packets.iter();
        let known = packets
            .filter(|((identity, _), sampled)| identity.trailing_zeros() >= zeros && !sampled.repeated);
        known.count()
    };
    let shared = shared(a, b);
    shared >= MIN_PACKETS && shared.saturating_mul(2) >= comparable(a).min(comparable(b))
}

/// Packets in the samples of both.
fn shared(a: &Look, b: &Look) -> usize {
    let in_b = |(key, sampled): &(&(u64, u16), &SampledPacket)| {
        b.packets.get(key).is_some_and(|other| is_same(sampled, other))
    };
    a.packets.iter().filter(in_b).count()
}

/// True if two sightings with one identity look like one packet.
fn is_same(a: &SampledPacket, b: &SampledPacket) -> bool {
    !a.repeated && !b.repeated && a.icrc.zip(b.icrc).is_none_or(|(a, b)| a == b)
}

/// Results of comparing all clocks with each other.
struct ComparedClocks<'a> {
    looks: &'a [(usize, Look)],
    clocks: &'a [usize],
    /// By two clocks, the lower number first, which is the reference.
    pairs: BTreeMap<(usize, usize), ComparedPair>,
}

/// Packets that two clocks stamped, and whether one difference of the two fits them.
#[derive(Debug)]
struct ComparedPair {
    packets: Vec<StampedPacket>,
    /// The resolutions of the stamps of both, added, in nanoseconds.
    quantum_ns: u64,
    result: Comparison,
}

impl<'a> ComparedClocks<'a> {
    /// Finds the packets that several clocks stamped.
    fn new(looks: &'a [(usize, Look)], clocks: &'a [usize]) -> Self {
        let mut sightings: Vec<(u64, usize, u16, &SampledPacket)> = looks
            .iter()
            .zip(clocks)
            .flat_map(|((_, look), clock)| {
                let packets = look.packets.iter();
                packets.map(|((identity, place), sampled)| (*identity, *clock, *place, sampled))
            })
            .filter(|(.., sampled)| !sampled.repeated)
            .collect();
        sightings.sort_unstable_by_key(|(identity, clock, place, sampled)| {
            (*identity, *clock, *place, sampled.time)
        });
        // One recorder's files can have a packet in common.
        sightings.dedup_by_key(|(identity, clock, place, sampled)| (*identity, *clock, *place, sampled.time));
        let hasher = RandomState::new();
        let mut pairs: BTreeMap<(usize, usize), Vec<StampedPacket>> = BTreeMap::new();
        for same in sightings.chunk_by(|a, b| a.0 == b.0) {
            let same = &same[..same.len().min(MAX_SIGHTINGS)];
            for (at, (_, clock, place, a)) in same.iter().enumerate() {
                for (_, other, other_place, b) in &same[at + 1..] {
                    if clock == other || !is_same(a, b) {
                        continue;
                    }
                    pairs.entry((*clock, *other)).or_default().push(StampedPacket {
                        reference: a.time,
                        other: b.time,
                        way: hasher.hash_one((a.hosts, place, other_place)),
                        forward: a.forward,
                        reference_first: first_shown(a, b),
                    });
                }
            }
        }
        pairs.retain(|_, packets| packets.len() >= MIN_PACKETS);
        let compare = |(pair, packets): ((usize, usize), Vec<StampedPacket>)| {
            let quantum = |clock: usize| looks[clock].1.quantum_ns;
            let quantum_ns = quantum(pair.0).saturating_add(quantum(pair.1));
            let result = clocks::compare(&packets, quantum_ns);
            let of_pair = ComparedPair {
                packets,
                quantum_ns,
                result,
            };
            (pair, of_pair)
        };
        Self {
            looks,
            clocks,
            pairs: pairs.into_iter().map(compare).collect(),
        }
    }

    /// Chooses references and works out every clock's offset to its own.
    fn conclude(&self, paths: &[&PathBuf], alignment: &mut Alignment) {
        let name = |clock: usize| self.looks.get(clock).map_or(0, |(input, _)| *input);
        let mut fits: BTreeMap<(usize, usize), Offset> = BTreeMap::new();
        let mut contradictions = Vec::new();
        for (pair, of_pair) in &self.pairs {
            match of_pair.result {
                Comparison::Fits(offset) => {
                    fits.insert(*pair, offset);
                }
                Comparison::Contradicts => contradictions.push(*pair),
                Comparison::Unrelated => {}
            }
        }
        alignment.shared |= !fits.is_empty();
        let mut clocks = vec![None; paths.len()];
        for ((input, _), clock) in self.looks.iter().zip(self.clocks) {
            clocks[*input] = Some(*clock);
        }
        // Captures with the same packets are no continuation of each other, whatever their clocks say.
        let apart = fits.keys().chain(&contradictions).copied().collect();
        alignment.apart = Apart::new(clocks, apart);
        // Each clock by the most certain chain from its reference, which is the first input of those
        // that are connected.
        let mut known: BTreeMap<usize, Clock> = BTreeMap::new();
        let identity = |clock: usize| Clock {
            reference: name(clock),
            correction: Correction {
                at: self.looks[clock].1.first,
                ahead_ns: 0.0,
                faster_ppb: 0.0,
            },
            uncertainty_ns: Some(0.0),
        };
        for root in 0..self.looks.len() {
            if known.contains_key(&root) || !fits.keys().any(|(a, b)| *a == root || *b == root) {
                continue;
            }
            known.insert(root, identity(root));
            while let Some((clock, next)) = self.nearest(&fits, &known) {
                known.insert(next, clock);
            }
        }
        for (a, b) in contradictions {
            if known.get(&a).map(|clock| clock.reference) != known.get(&b).map(|clock| clock.reference)
                || !known.contains_key(&a)
            {
                let text = format!(
                    "packets look like those of {}, but no difference of two clocks fits their times: taken as other traffic",
                    paths[name(a)].display()
                );
                alignment.warnings.push((name(b), text));
            }
        }
        for ((input, _), clock) in self.looks.iter().zip(self.clocks) {
            alignment.clocks[*input] = known
                .get(clock)
                .filter(|known| known.reference != name(*clock))
                .copied();
        }
    }

    /// The pairs of clocks for which no one difference fits.
    fn contradictions(&self) -> impl Iterator<Item = (&(usize, usize), &ComparedPair)> {
        let pairs = self.pairs.iter();
        pairs.filter(|(_, of_pair)| of_pair.result == Comparison::Contradicts)
    }

    /// A clock that was set forward, where that explains why no difference of two clocks fits: when, and by how much.
    fn set_forward(&self) -> Option<(usize, Time, u64)> {
        self.contradictions().find_map(|((reference, other), of_pair)| {
            let step = forward::set_forward(&of_pair.packets, of_pair.quantum_ns)?;
            let clock = if step.is_reference { reference } else { other };
            Some((*clock, step.at, step.by_ns))
        })
    }

    /// The unknown clock that a known clock determines best.
    fn nearest(
        &self,
        fits: &BTreeMap<(usize, usize), Offset>,
        known: &BTreeMap<usize, Clock>,
    ) -> Option<(Clock, usize)> {
        let sum = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
        let (from, to, uncertainty_ns) = fits
            .iter()
            .flat_map(|((a, b), offset)| [(*a, *b, offset), (*b, *a, offset)])
            .filter(|(from, to, _)| known.contains_key(from) && !known.contains_key(to))
            .filter_map(|(from, to, offset)| {
                Some((
                    from,
                    to,
                    sum(known.get(&from)?.uncertainty_ns, offset.uncertainty_ns),
                ))
            })
            .min_by(|(.., a), (.., b)| a.unwrap_or(f64::INFINITY).total_cmp(&b.unwrap_or(f64::INFINITY)))?;
        let offset = if from < to {
            *fits.get(&(from, to))?
        } else {
            let of_pair = self.pairs.get(&(to, from))?;
            let turned: Vec<StampedPacket> = of_pair.packets.iter().map(turned).collect();
            match clocks::compare(&turned, of_pair.quantum_ns) {
                Comparison::Fits(offset) => offset,
                _ => return None,
            }
        };
        let before = known.get(&from)?;
        let direct = Correction {
            at: offset.at,
            ahead_ns: offset.ahead_ns,
            faster_ppb: offset.faster_ppb,
        };
        let clock = Clock {
            reference: before.reference,
            correction: direct.then(&before.correction),
            uncertainty_ns,
        };
        Some((clock, to))
    }
}

/// The packet with the other clock as the reference.
fn turned(packet: &StampedPacket) -> StampedPacket {
    StampedPacket {
        reference: packet.other,
        other: packet.reference,
        reference_first: packet.reference_first.map(|first| !first),
        ..*packet
    }
}

/// True if a packet was seen as `a` before it was seen as `b`: hop limits fall, and marks stay.
fn first_shown(a: &SampledPacket, b: &SampledPacket) -> Option<bool> {
    match a.hop_limit.cmp(&b.hop_limit) {
        std::cmp::Ordering::Equal => (a.marked != b.marked).then_some(b.marked),
        order => Some(order.is_gt()),
    }
}

#[cfg(test)]
mod tests;
