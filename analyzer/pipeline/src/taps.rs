//! Taps: which points of observation a run has, and what each one saw.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use roce_capture::Interface;
use roce_model::{Period, QUIET, Span, TapId, TapRow, Time};
use roce_wire::{LinkType, Mirror, MirrorKind};

use crate::stamps::Stamps;

/// A file that begins within this time after the end of another one of the same interface continues it. What begins later is of another
/// time.
pub(crate) const CONTINUES: Span = Span(12 * 3_600 * Span::SECOND.0);

/// Inputs that saw the same packets: neither of two continues the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Apart {
    /// For each input, the number of its clock.
    clocks: Vec<Option<usize>>,
    /// Clocks that stamped the same packets, the lower number first.
    pairs: BTreeSet<(usize, usize)>,
    /// For each input, the number of its machine, if that is known.
    machines: Vec<Option<u32>>,
    /// For each input, the number of its recorder, where several inputs share records.
    recorders: Vec<Option<usize>>,
}

impl Apart {
    /// Inputs with the numbers of their clocks, and the pairs of clocks that stamped the same packets.
    pub(crate) const fn new(clocks: Vec<Option<usize>>, pairs: BTreeSet<(usize, usize)>) -> Self {
        Self {
            clocks,
            pairs,
            machines: Vec::new(),
            recorders: Vec::new(),
        }
    }

    /// Knows the recorder of each input that shares records with others.
    pub(crate) fn by_recorder(self, recorders: Vec<Option<usize>>) -> Self {
        Self { recorders, ..self }
    }

    /// For each input, the number of its recorder, where several inputs share records; empty where none does.
    pub(crate) fn recorders(&self) -> &[Option<usize>] {
        &self.recorders
    }

    /// Adds the machine of each input.
    pub(crate) fn by_machine(self, machines: Vec<Option<u32>>) -> Self {
        Self { machines, ..self }
    }

    /// Taps of the inputs in another order: `order` has the number that each had.
    pub(crate) fn reordered(self, order: &[usize]) -> Self {
        let clocks = order
            .iter()
            .map(|input| self.clocks.get(*input).copied().flatten());
        let machines = order
            .iter()
            .map(|input| self.machines.get(*input).copied().flatten());
        let recorders = order
            .iter()
            .map(|input| self.recorders.get(*input).copied().flatten());
        Self {
            clocks: clocks.collect(),
            machines: machines.collect(),
            recorders: recorders.collect(),
            pairs: self.pairs,
        }
    }

    /// True if the two inputs saw the same packets, or are of two machines.
    pub(crate) fn are(&self, a: usize, b: usize) -> bool {
        let machine = |input: usize| self.machines.get(input).copied().flatten();
        if machine(a).zip(machine(b)).is_some_and(|(a, b)| a != b) {
            return true;
        }
        let clock = |input: usize| self.clocks.get(input).copied().flatten();
        clock(a)
            .zip(clock(b))
            .is_some_and(|(a, b)| self.pairs.contains(&(a.min(b), a.max(b))))
    }
}

/// One tap.
#[derive(Clone, Debug)]
struct Tap {
    /// The file that it is read from now.
    input: usize,
    /// The name of that file.
    capture: String,
    /// The first file that it was read from.
    first_input: usize,
    link: LinkType,
    name: Option<String>,
    quantum_ns: u64,
    stamps: Stamps,
    mirror: Option<(MirrorKind, u32)>,
    first: Option<Time>,
    last: Time,
    /// Times without a silence, the first ones.
    stretches: Vec<Period>,
    frames: u64,
    roce_packets: u64,
    pause_frames: u64,
    cut_frames: u64,
    mirror_lost: u64,
    /// The mirror's last sequence number.
    sequence: Option<u32>,
}

impl Tap {
    /// Something was recorded from one moment to another.
    fn recorded(&mut self, span: Period) {
        let room = self.stretches.len() < MAX_STRETCHES;
        let goes_on = |stretch: &&mut Period| span.first.since(stretch.last) < QUIET;
        if let Some(stretch) = self.stretches.last_mut().filter(goes_on) {
            stretch.include(span.first);
            stretch.include(span.last);
        } else if room {
            self.stretches.push(span);
        }
    }
}

/// The taps of a run, in the order in which they appear in the merged stream: every shard of a run that sees
/// the whole stream numbers them alike.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taps {
    list: Vec<Tap>,
    /// By input and interface.
    interfaces: Vec<Vec<Option<TapId>>>,
    /// By input, the section of its file that is read now, and the taps that record in it.
    sections: Vec<(u32, Vec<TapId>)>,
    mirrors: HashMap<(TapId, MirrorKind, u32), TapId>,
    /// Taps of recorders whose files overlap, by recorder, section and interface.
    overlapping: HashMap<(usize, u32, u32), TapId>,
    /// Taps whose capture, or whose section of it, has ended, by link type and interface name.
    ended: HashMap<(LinkType, Option<String>), Vec<TapId>>,
    lags: Vec<Lag>,
    apart: Arc<Apart>,
}

/// The members of a link aggregation, by interface name or by capture, which make one tap.
#[derive(Clone, Debug)]
struct Lag {
    members: Vec<String>,
    tap: Option<TapId>,
}

/// Limit of the latest ended captures that are examined for one that continues.
const MAX_ENDED: usize = 64;

/// Limit of the distance by which mirrored frames come late; further back, the mirror started again.
const MIRROR_REORDERING: u32 = 64;

/// Stretches without a silence that are remembered of a tap.
const MAX_STRETCHES: usize = 256;

/// Mirror sessions distinguished: a capture could name as many as it has frames.
const MAX_MIRRORS: usize = 4096;

impl Taps {
    /// No taps yet; the interfaces or captures named together in `lags` will share one, and inputs that are `apart` none.
    pub(crate) fn new(lags: &[Vec<String>], apart: Arc<Apart>) -> Self {
        let lags = lags
            .iter()
            .map(|members| Lag {
                members: members.clone(),
                tap: None,
            })
            .collect();
        Self {
            lags,
            apart,
            ..Self::default()
        }
    }

    /// The tap of an input's interface (the input is `capture`), whose next frame comes at `time`.
    pub(crate) fn interface(
        &mut self,
        input: usize,
        capture: &str,
        index: u32,
        of: &Interface,
        time: Time,
    ) -> TapId {
        let index = index as usize;
        if self.interfaces.len() <= input {
            self.interfaces.resize(input + 1, Vec::new());
        }
        let known = &mut self.interfaces[input];
        if known.len() <= index {
            known.resize(index + 1, None);
        }
        if let Some(tap) = known[index] {
            return tap;
        }
        if self.sections.len() <= input {
            self.sections.resize(input + 1, Default::default());
        }
        if self.sections[input].0 != of.section {
            self.ended(input);
            self.sections[input].0 = of.section;
        }
        let lag = self.lags.iter().position(|lag| {
            lag.members
                .iter()
                .any(|member| of.name.as_ref() == Some(member) || member == capture)
        });
        if let Some(tap) = lag.and_then(|lag| self.lags.get(lag)?.tap) {
            self.interfaces[input][index] = Some(tap);
            self.sections[input].1.push(tap);
            return tap;
        }
        let recorder = self.apart.recorders().get(input).copied().flatten();
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let overlapping = recorder.map(|recorder| (recorder, of.section, number));
        let known = overlapping.and_then(|key| self.overlapping.get(&key).copied());
        let tap = match known.or_else(|| self.continued(input, capture, of, time)) {
            Some(tap) => tap,
            None => self.add(input, of, None),
        };
        if let Some(key) = overlapping {
            self.overlapping.insert(key, tap);
        }
        if let Some(state) = self.list.get_mut(tap.0 as usize) {
            state.input = input;
            capture.clone_into(&mut state.capture);
        }
        if let Some(lag) = lag.and_then(|lag| self.lags.get_mut(lag)) {
            lag.tap = Some(tap);
            if let Some(state) = self.list.get_mut(tap.0 as usize) {
                state.name = Some(lag.members.join("+"));
            }
        }
        self.interfaces[input][index] = Some(tap);
        self.sections[input].1.push(tap);
        tap
    }

    /// The tap that an interface of an input continues whose first frame comes at `time`: the same one of a capture, or of a section,
    /// that has ended before. However long it was silent, nothing else recorded there. Of several it is the one whose file's name begins most
    /// like this one's, since recorders number their files at the end of the name; then the one that ended last.
    fn continued(&mut self, input: usize, capture: &str, of: &Interface, time: Time) -> Option<TapId> {
        let ended = self.ended.get_mut(&(of.link, of.name.clone()))?;
        let begin = ended.len().saturating_sub(MAX_ENDED);
        let candidates = ended.get(begin..)?.iter().enumerate().filter_map(|(at, tap)| {
            let tap = self.list.get(tap.0 as usize)?;
            let continues = tap.last <= time
                && time.since(tap.last) <= CONTINUES
                && (tap.input == input || !self.apart.are(tap.input, input));
            continues.then_some((at, tap))
        });
        let (at, _) = candidates.max_by_key(|(_, tap)| same_begin(&tap.capture, capture))?;
        Some(ended.remove(begin + at))
    }

    fn add(&mut self, input: usize, of: &Interface, mirror: Option<(MirrorKind, u32)>) -> TapId {
        self.list.push(Tap {
            input,
            capture: String::new(),
            first_input: input,
            link: of.link,
            name: of.name.clone(),
            quantum_ns: of.quantum_ns,
            stamps: Stamps::default(),
            mirror,
            first: None,
            last: Time(0),
            stretches: Vec::new(),
            frames: 0,
            roce_packets: 0,
            pause_frames: 0,
            cut_frames: 0,
            mirror_lost: 0,
            sequence: None,
        });
        id(self.list.len() - 1)
    }

    /// The tap of a mirror session behind an interface; its sequence number tells how many frames the mirror lost.
    pub(crate) fn mirror(
        &mut self,
        base: TapId,
        of: &Interface,
        mirror: &Mirror,
        time: Time,
    ) -> (TapId, u64) {
        let key = (base, mirror.kind, mirror.session);
        let tap = match self.mirrors.get(&key) {
            Some(tap) => *tap,
            None if self.mirrors.len() >= MAX_MIRRORS => return (base, 0),
            None => {
                let input = self.list.get(base.0 as usize).map_or(0, |tap| tap.input);
                let tap = self.add(input, of, Some((mirror.kind, mirror.session)));
                self.mirrors.insert(key, tap);
                tap
            }
        };
        let mut lost = 0;
        if let Some(state) = self.list.get_mut(tap.0 as usize) {
            state.first.get_or_insert(time);
            state.last = state.last.max(time);
            state.frames += 1;
            state.recorded(Period::at(time));
            if let Some(sequence) = mirror.sequence {
                let expected = state.sequence.map_or(sequence, |last| last.wrapping_add(1));
                let ahead = sequence.wrapping_sub(expected);
                if expected.wrapping_sub(sequence) <= MIRROR_REORDERING && ahead != 0 {
                    // It came late: it had been counted as lost.
                    state.mirror_lost = state.mirror_lost.saturating_sub(1);
                } else {
                    // A large jump is a mirror that started again, not a loss.
                    lost = u64::from(if ahead < 1 << 16 { ahead } else { 0 });
                    state.mirror_lost += lost;
                    state.sequence = Some(sequence);
                }
            }
        }
        (tap, lost)
    }

    /// Frames of a tap's interface, the first and last of them at these times.
    pub(crate) fn frames(&mut self, tap: TapId, frames: u64, cut: u64, first: Time, last: Time) {
        if let Some(tap) = self.list.get_mut(tap.0 as usize) {
            tap.frames += frames;
            tap.cut_frames += cut;
            tap.first = Some(tap.first.map_or(first, |old| old.min(first)));
            tap.last = tap.last.max(last);
        }
    }

    /// Something was recorded at a tap's interface from one moment to another.
    pub(crate) fn recorded(&mut self, tap: TapId, span: Period) {
        if let Some(tap) = self.list.get_mut(tap.0 as usize) {
            tap.recorded(span);
        }
    }

    /// For each tap, the times without a silence in between.
    pub(crate) fn stretches(&self) -> Vec<Vec<Period>> {
        self.list.iter().map(|tap| tap.stretches.clone()).collect()
    }

    /// Notes the resolution of stamps of some frames of a tap's interface.
    pub(crate) fn stamps(&mut self, tap: TapId, stamps: Stamps) {
        if let Some(tap) = self.list.get_mut(tap.0 as usize) {
            tap.stamps.add(stamps);
        }
    }

    /// RoCE packets at a tap.
    pub(crate) fn roce(&mut self, tap: TapId, packets: u64) {
        if let Some(tap) = self.list.get_mut(tap.0 as usize) {
            tap.roce_packets += packets;
        }
    }

    /// A pause frame at a tap.
    pub(crate) fn pause(&mut self, tap: TapId) {
        if let Some(tap) = self.list.get_mut(tap.0 as usize) {
            tap.pause_frames += 1;
        }
    }

    /// An input has no more frames, or none of the section that was read.
    pub(crate) fn ended(&mut self, input: usize) {
        let taps = self.sections.get_mut(input).map(|(_, taps)| std::mem::take(taps));
        for tap in taps.into_iter().flatten() {
            if let Some(state) = self.list.get(tap.0 as usize)
                && state.input == input
            {
                let key = (state.link, state.name.clone());
                self.ended.entry(key).or_default().push(tap);
            }
        }
    }

    /// Adds another shard's counts of the taps; one shard alone counts frames.
    pub(crate) fn add_counts(&mut self, other: &Self) {
        for (tap, other) in self.list.iter_mut().zip(&other.list) {
            tap.roce_packets += other.roce_packets;
        }
    }

    /// The tap of an interface of an input, if it has shown a frame.
    pub(crate) fn interface_tap(&self, input: usize, index: usize) -> Option<TapId> {
        *self.interfaces.get(input)?.get(index)?
    }

    /// The taps of one input.
    pub(crate) fn input_taps(&self, input: usize) -> impl Iterator<Item = TapId> {
        self.interfaces
            .get(input)
            .into_iter()
            .flatten()
            .filter_map(|tap| *tap)
    }

    /// The input that a tap was first read from.
    pub(crate) fn first_input(&self, tap: TapId) -> Option<usize> {
        self.list.get(tap.0 as usize).map(|tap| tap.first_input)
    }

    /// Resolutions of the stamps of all taps from a number on, as their files state them.
    pub(crate) fn resolutions(&self, from: usize) -> impl Iterator<Item = u64> {
        let later = self.list.get(from..).unwrap_or_default();
        later.iter().map(|tap| tap.quantum_ns)
    }

    /// Their rows in the table `taps`, as far as the taps know. `name` gives an input's name.
    pub(crate) fn rows(&self, name: impl Fn(usize) -> String) -> Vec<TapRow> {
        self.list
            .iter()
            .enumerate()
            .map(|(at, tap)| TapRow {
                tap: id(at),
                input: name(tap.first_input).into(),
                interface: tap.name.clone().map(Into::into),
                link: tap.link.to_string().into(),
                mirror: tap
                    .mirror
                    .map(|(kind, session)| format!("{} {session}", mirror_name(kind)).into()),
                first_time: tap.first,
                last_time: tap.first.map(|_| tap.last),
                frames: tap.frames,
                roce_packets: tap.roce_packets,
                pause_frames: tap.pause_frames,
                mirror_lost: tap.mirror_lost,
                stamp_quantum_ns: tap.quantum_ns.max(tap.stamps.shown()),
                cut_frames: tap.cut_frames,
                ..TapRow::default()
            })
            .collect()
    }
}

/// Number of bytes that two names have in common at their begin.
pub(crate) fn same_begin(one: &str, other: &str) -> usize {
    let pairs = one.bytes().zip(other.bytes());
    pairs.take_while(|(one, other)| one == other).count()
}

fn id(at: usize) -> TapId {
    TapId(u32::try_from(at).unwrap_or(u32::MAX))
}

fn mirror_name(kind: MirrorKind) -> &'static str {
    match kind {
        MirrorKind::ErspanI => "ERSPAN I",
        MirrorKind::ErspanII => "ERSPAN II session",
        MirrorKind::ErspanIII => "ERSPAN III session",
        MirrorKind::Vxlan => "VXLAN",
        MirrorKind::Geneve => "Geneve",
        MirrorKind::Gre => "GRE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str) -> Interface {
        Interface {
            link: LinkType::ETHERNET,
            name: Some(name.to_owned()),
            description: None,
            snaplen: 0,
            fcs_bytes: 0,
            quantum_ns: 1,
            dropped: None,
            section: 0,
        }
    }

    #[test]
    fn a_rotated_file_continues_its_tap_a_concurrent_one_does_not() {
        let second = Span::SECOND.0;
        let mut taps = Taps::default();
        let a = taps.interface(0, "a", 0, &interface("eth0"), Time(0));
        taps.frames(a, 1, 0, Time(0), Time(10 * second));
        let other = taps.interface(1, "a", 0, &interface("eth0"), Time(10 * second));
        assert_ne!(other, a, "the first file has not ended");
        taps.ended(0);
        assert_eq!(
            taps.interface(2, "a", 0, &interface("eth0"), Time(11 * second)),
            a
        );
        taps.ended(2);
        let hours = 12 * 3_600 * second;
        let late = taps.interface(3, "a", 0, &interface("eth0"), Time(hours));
        assert_eq!(late, a, "hours of silence later nothing else has recorded there");
        taps.frames(late, 1, 0, Time(hours), Time(hours + 2));
        taps.ended(3);
        assert_ne!(
            taps.interface(4, "a", 0, &interface("eth1"), Time(hours + 2)),
            late
        );
        let before = taps.interface(5, "a", 0, &interface("eth0"), Time(hours + 1));
        assert_ne!(before, late, "they recorded at the same time");
        let other_day = taps.interface(6, "a", 0, &interface("eth0"), Time(2 * hours + 3));
        assert_ne!(other_day, late, "more than twelve hours after it");
    }

    #[test]
    fn files_of_two_recorders_that_rotate_at_once_continue_each_its_own() {
        let mut taps = Taps::default();
        let begin = |taps: &mut Taps, input, name: &str, from: u64| {
            let tap = taps.interface(input, name, 0, &interface("eth0"), Time(from));
            taps.frames(tap, 1, 0, Time(from), Time(from + 10));
            tap
        };
        let (host, switch) = (
            begin(&mut taps, 0, "host_00001.pcap", 0),
            begin(&mut taps, 1, "switch_00001.pcap", 1),
        );
        taps.ended(0);
        taps.ended(1);
        assert_eq!(begin(&mut taps, 2, "host_00002.pcap", 20), host);
        assert_eq!(begin(&mut taps, 3, "switch_00002.pcap", 21), switch);
        taps.ended(2);
        // A name that is like no other one's: the last that ended.
        assert_eq!(begin(&mut taps, 4, "later.pcap", 40), host);
    }

    #[test]
    fn a_section_continues_the_taps_of_the_one_before() {
        let mut taps = Taps::default();
        let of = |section| Interface {
            section,
            ..interface("eth0")
        };
        let (first, twin) = (
            taps.interface(0, "a", 0, &of(1), Time(0)),
            taps.interface(0, "a", 1, &of(1), Time(1)),
        );
        assert_ne!(first, twin, "interfaces of one section record at the same time");
        taps.frames(first, 1, 0, Time(0), Time(10));
        taps.frames(twin, 1, 0, Time(1), Time(20));
        assert_eq!(taps.interface(0, "a", 2, &of(2), Time(15)), first);
        assert_ne!(
            taps.interface(0, "a", 3, &of(2), Time(15)),
            twin,
            "it went on to 20"
        );
    }

    #[test]
    fn members_of_a_lag_share_a_tap() {
        let mut taps = Taps::new(&[vec!["eth0".to_owned(), "b.pcap".to_owned()]], Arc::default());
        let a = taps.interface(0, "a.pcapng", 0, &interface("eth0"), Time(0));
        assert_ne!(taps.interface(0, "a.pcapng", 1, &interface("eth1"), Time(0)), a);
        assert_eq!(taps.interface(1, "b.pcap", 0, &interface("any"), Time(0)), a);
        assert_eq!(
            taps.rows(|_| String::new())[0].interface.as_deref(),
            Some("eth0+b.pcap")
        );
    }

    #[test]
    fn a_mirror_is_a_tap_of_its_own_and_tells_its_losses() {
        let mut taps = Taps::default();
        let eth0 = interface("eth0");
        let base = taps.interface(0, "a", 0, &eth0, Time(0));
        let mirror = |sequence| Mirror {
            kind: MirrorKind::ErspanII,
            session: 7,
            sequence: Some(sequence),
            truncated: false,
            timestamp: None,
            index: 0,
        };
        let (tap, lost) = taps.mirror(base, &eth0, &mirror(u32::MAX), Time(1));
        assert_ne!(tap, base);
        assert_eq!(lost, 0);
        // 0 follows u32::MAX; 3 leaves out 1 and 2.
        assert_eq!(taps.mirror(base, &eth0, &mirror(0), Time(2)), (tap, 0));
        assert_eq!(taps.mirror(base, &eth0, &mirror(3), Time(3)), (tap, 2));
        // 2 was late, not lost; 1 is.
        assert_eq!(taps.mirror(base, &eth0, &mirror(2), Time(4)), (tap, 0));
        assert_eq!(taps.mirror(base, &eth0, &mirror(4), Time(5)), (tap, 0));
        assert_eq!(taps.rows(|_| String::new())[1].mirror_lost, 1);
        // A mirror that starts again lost nothing that could be counted.
        assert_eq!(taps.mirror(base, &eth0, &mirror(1 << 31), Time(6)), (tap, 0));
        assert_eq!(taps.mirror(base, &eth0, &mirror(0), Time(7)), (tap, 0));
    }
}
