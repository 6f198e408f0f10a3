//! Which shard gets which frame. With several shards one of them finds the owner of each frame of a batch, and counts what is counted of all of
//! them, once for all shards. So a shard decodes no frame that is surely another one's.

use std::ops::Range;

use roce_capture::{Frame, FrameRun};
use roce_model::{Period, Time};
use roce_wire::{Address, LinkType, Roce};

use crate::feed::Work;
use crate::stamps::Stamps;

/// Frames decoded and analysed together: their packets stay in the first cache levels.
pub(crate) const FRAME_BATCH: usize = 256;

/// Selection of packets for one shard of a run, by their pairs of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    /// Number of the shard.
    pub(crate) index: u32,
    /// Number of shards in the run.
    pub(crate) of: u32,
}

impl Shard {
    /// The whole.
    pub(crate) const ALL: Self = Self { index: 0, of: 1 };

    /// True if the shard counts packets that belong to no host pair, too.
    pub(crate) fn is_first(self) -> bool {
        self.index == 0
    }

    /// Both directions between two hosts go to one shard.
    #[inline]
    pub(crate) fn takes(self, packet: &Roce) -> bool {
        let hosts = || [&packet.source, &packet.destination].map(address_hash);
        self.of == 1 || shard_of(hosts(), self.of) == self.index
    }
}

/// The shard of two hosts with these hashes. Each address is spread before the two are added: neighbours that talk to
/// neighbours differ all the same.
#[inline]
fn shard_of([source, destination]: [u64; 2], shards: u32) -> u32 {
    let spread = |host: u64| {
        let product = (host ^ 0x243f_6a88_85a3_08d3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (product ^ product >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    };
    let both = spread(source).wrapping_add(spread(destination)) >> 32;
    ((both * u64::from(shards)) >> 32) as u32
}

/// Hash of an address, of 64 bits: its halves, one over the other.
#[inline]
fn address_hash(address: &Address) -> u64 {
    ipv6_hash(address.octets())
}

/// Hash of an IPv6 address.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
fn ipv6_hash(address: &[u8; 16]) -> u64 {
    let bytes = u128::from_be_bytes(*address);
    (bytes >> 64) as u64 ^ bytes as u64
}

/// Hash of an IPv4 address, which is behind 16 bits of ones.
#[inline]
fn ipv4_hash(address: [u8; 4]) -> u64 {
    0xffff_0000_0000 | u64::from(u32::from_be_bytes(address))
}

/// More fragments, and the fragment offset (RFC 791).
const FRAGMENT: u16 = 0x3fff;
const ROCE_V2: [u8; 2] = 4791_u16.to_be_bytes();
const UDP: u8 = 17;

/// Hashes of the hosts of a plain RoCEv2 frame, as far as they show without decoding it: over Ethernet with at most one tag, and IPv4 without
/// options or fragments, or IPv6 without extension headers.
#[inline]
fn hosts_of(link: LinkType, frame: &[u8]) -> Option<[u64; 2]> {
    if link != LinkType::ETHERNET {
        return None;
    }
    match frame.first_chunk::<38>() {
        Some(head) if head[12..14] == [0x08, 0x00] => hosts_of_ipv4(head[14..].first_chunk()?),
        _ => hosts_of_others(frame),
    }
}

#[inline]
fn hosts_of_ipv4(head: &[u8; 24]) -> Option<[u64; 2]> {
    let is_plain = head[0] == 0x45
        && u16::from_be_bytes([head[6], head[7]]) & FRAGMENT == 0
        && head[9] == UDP
        && head[22..24] == ROCE_V2;
    let address = |at: usize| ipv4_hash([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    is_plain.then(|| [address(12), address(16)])
}

/// As [`hosts_of`], with a tag or over IPv6.
#[inline(never)]
fn hosts_of_others(frame: &[u8]) -> Option<[u64; 2]> {
    let is_tagged = frame.get(12..14)? == [0x81, 0x00];
    let (ether_type, packet) = frame
        .get(if is_tagged { 16 } else { 12 }..)?
        .split_first_chunk::<2>()?;
    match ether_type {
        [0x08, 0x00] => hosts_of_ipv4(packet.first_chunk()?),
        [0x86, 0xdd] => {
            let head = packet.first_chunk::<44>()?;
            let is_plain = head[0] >> 4 == 6 && head[6] == UDP && head[42..44] == ROCE_V2;
            let source = ipv6_hash(head[8..].first_chunk()?);
            let destination = ipv6_hash(head[24..].first_chunk()?);
            is_plain.then_some([source, destination])
        }
        _ => None,
    }
}

/// Shard that a frame belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    /// This one, also for what is counted when it is no packet.
    This,
    /// Another one.
    Other,
    /// Only decoding shows it; the first shard counts frames that are no packets.
    Unknown,
}

/// Frames of one interface in a row, without a loss or a note between them, and what is counted of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stretch {
    /// Their places in their batch.
    pub(crate) frames: Range<usize>,
    /// Frames of the run's time.
    pub(crate) taken: u64,
    /// Those of them that were cut.
    pub(crate) cut: u64,
    /// From the first of them to the last; `None` if there is none.
    pub(crate) span: Option<Period>,
    pub(crate) stamps: Stamps,
}

impl Stretch {
    /// Its frames in the run that it is of.
    #[inline]
    pub(crate) fn frames_of<'a>(&self, run: &'a FrameRun) -> &'a [Frame] {
        run.batch.frames().get(self.frames.clone()).unwrap_or_default()
    }

    /// The frames from the first one of `among` on, up to its end at most; those in `time` count. `None`: it has no frame.
    pub(crate) fn begin(run: &FrameRun, among: Range<usize>, time: &Range<u64>) -> Option<Self> {
        let all = run.batch.frames().get(among.clone())?;
        let first = all.first()?;
        let (lost, notes) = (run.lost(), run.notes());
        let next_lost = lost.partition_point(|lost| lost.before as usize <= among.start);
        let next_note = notes.partition_point(|note| note.before as usize <= among.start);
        let next = [
            lost.get(next_lost).map(|lost| lost.before),
            notes.get(next_note).map(|note| note.before),
        ];
        let end = next.into_iter().flatten().min();
        let most = end.map_or(all.len(), |end| (end as usize - among.start).min(all.len()));
        let same = all[..most].iter();
        let count = same
            .take_while(|frame| frame.interface == first.interface)
            .count();
        let (mut taken, mut cut, mut stamps) = (0, 0, Stamps::default());
        let mut span = Period {
            first: Time(u64::MAX),
            last: Time(0),
        };
        for frame in &all[..count] {
            if time.contains(&frame.time.0) {
                stamps.frame(frame.time);
                taken += 1;
                cut += u64::from(frame.captured < frame.original);
                span.include(frame.time);
            }
        }
        Some(Self {
            frames: among.start..among.start + count,
            taken,
            cut,
            span: (taken > 0).then_some(span),
            stamps,
        })
    }
}

/// A frame that a shard looks at: its number among those of the routes, and a bit that is set if only decoding shows whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pick(u32);

impl Pick {
    fn new(number: u32, is_unknown: bool) -> Self {
        Self(number << 1 | u32::from(is_unknown))
    }

    const fn number(self) -> u32 {
        self.0 >> 1
    }

    const fn owner(self) -> Owner {
        if self.0 & 1 == 0 {
            Owner::This
        } else {
            Owner::Unknown
        }
    }
}

/// Routes of the frames of some works, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    stretches: Vec<Stretch>,
    /// By shard; empty where one shard takes all frames.
    picks: Vec<Vec<Pick>>,
    /// Frames up to now.
    count: u32,
}

/// Finds routes. Those of a work depend on nothing else, so any thread may find them.
#[derive(Clone, Debug)]
pub(crate) struct RouteFinder {
    shards: u32,
    /// Frames of this time are wanted.
    time: Range<u64>,
}

impl RouteFinder {
    pub(crate) fn new(shards: u32, time: Range<u64>) -> Self {
        Self { shards, time }
    }

    /// Adds the frames of a work. One shard needs no routes: it counts itself.
    pub(crate) fn route(&self, work: &Work, routes: &mut Routes) {
        if self.shards == 1 {
            return;
        }
        routes.picks.resize(self.shards as usize, Vec::new());
        let all = work.run.range.clone();
        for from in all.clone().step_by(FRAME_BATCH) {
            let (mut at, to) = (from, (from + FRAME_BATCH).min(all.end));
            while let Some(stretch) = Stretch::begin(&work.run, at..to, &self.time) {
                at = stretch.frames.end;
                self.pick(work, &stretch, routes);
                routes.count += u32::try_from(stretch.frames.len()).unwrap_or(u32::MAX);
                routes.stretches.push(stretch);
            }
        }
    }

    /// Picks the frames of a stretch for their shards.
    fn pick(&self, work: &Work, stretch: &Stretch, routes: &mut Routes) {
        let frames = stretch.frames_of(&work.run);
        let interface = frames
            .first()
            .and_then(|first| work.interfaces.get(first.interface as usize));
        let Some(link) = interface
            .map(|interface| interface.link)
            .filter(|_| stretch.taken > 0)
        else {
            return;
        };
        let all = stretch.taken == frames.len() as u64;
        for (number, frame) in (routes.count..).zip(frames) {
            if !all && !self.time.contains(&frame.time.0) {
                continue;
            }
            match hosts_of(link, work.run.batch.bytes(frame)) {
                Some(hosts) => {
                    routes.picks[shard_of(hosts, self.shards) as usize].push(Pick::new(number, false));
                }
                None => {
                    for picks in &mut routes.picks {
                        picks.push(Pick::new(number, true));
                    }
                }
            }
        }
    }
}

impl Routes {
    /// None, with the room of these: fresh memory costs more than filling it.
    pub(crate) fn cleared(mut self) -> Self {
        self.stretches.clear();
        self.picks.iter_mut().for_each(Vec::clear);
        self.count = 0;
        self
    }

    /// The frames for a shard.
    pub(crate) fn of(&self, shard: usize) -> PickedFrames<'_> {
        match self.picks.get(shard) {
            Some(picks) => PickedFrames::Picked {
                stretches: self.stretches.iter(),
                picks,
                passed: 0,
            },
            None => PickedFrames::All,
        }
    }
}

/// Frames that a shard looks at, one stretch after the other.
#[derive(Clone, Debug)]
pub(crate) enum PickedFrames<'a> {
    All,
    Picked {
        stretches: core::slice::Iter<'a, Stretch>,
        picks: &'a [Pick],
        /// Frames of the stretches before.
        passed: u32,
    },
}

impl PickedFrames<'_> {
    /// The stretch that begins with the first frame of `among`.
    pub(crate) fn stretch(
        &mut self,
        run: &FrameRun,
        among: Range<usize>,
        time: &Range<u64>,
    ) -> Option<Stretch> {
        match self {
            Self::All => Stretch::begin(run, among, time),
            Self::Picked { stretches, .. } if !among.is_empty() => stretches.next().cloned(),
            Self::Picked { .. } => None,
        }
    }

    /// The next frame of a stretch that is to be looked at: its place, from `at` on, and whose it is. `every`: those of other shards, too.
    #[inline]
    pub(crate) fn next(&mut self, stretch: &Stretch, at: usize, every: bool) -> Option<(usize, Owner)> {
        let frames = &stretch.frames;
        let Self::Picked { picks, passed, .. } = self else {
            return (at < frames.end).then_some((at, Owner::This));
        };
        let picked = picks.split_first().and_then(|(pick, rest)| {
            let place = frames.start + pick.number().checked_sub(*passed)? as usize;
            (place < frames.end).then_some((place, pick.owner(), rest))
        });
        match picked {
            Some((place, owner, rest)) if place == at || !every => {
                *picks = rest;
                Some((place, owner))
            }
            _ => (every && at < frames.end).then_some((at, Owner::Other)),
        }
    }

    /// A stretch is over.
    pub(crate) fn pass(&mut self, stretch: &Stretch) {
        if let Self::Picked { picks, passed, .. } = self {
            *passed += u32::try_from(stretch.frames.len()).unwrap_or(u32::MAX);
            let gone = picks.partition_point(|pick| pick.number() < *passed);
            *picks = &picks[gone..];
        }
    }
}

#[cfg(test)]
mod tests;
