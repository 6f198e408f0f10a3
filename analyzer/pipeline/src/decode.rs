//! Frames to packets: the decoder's stage of a run, with the taps, the time range and the filter.

mod headers;
mod mrc;
mod path;
mod processes;
mod telemetry;
mod uet;

use std::ops::Range;

use roce_capture::{Frame, Interface, Note};
use roce_model::{
    Between, Filter, HostEvent, HostReport, LostRecords, Packet, PacketBatch, PacketFlags, PauseFrame,
    Period, QUIET, RecordingStart, SampleRow, TapId, Time, Totals,
};
use roce_wire::icrc::{self, Icrc};
use roce_wire::{
    Address, AssignedNumbers, Content, CutLimit, ExtendedHeaders, LinkType, Mirror, Other, Roce,
};

use crate::feed::Work;
use crate::link_addresses::LinkAddressBook;
use crate::processes::{ChosenProcesses, NamedFlows};
use crate::stamps::Stamps;
use crate::taps::Taps;
use headers::{SEND_ONLY, connection_message, is_open_request, is_to_itself, keep_headers};
pub(crate) use path::path_hash;

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
    fn is_first(self) -> bool {
        self.index == 0
    }

    /// Both directions between two hosts go to one shard.
    #[inline]
    fn takes(self, packet: &Roce) -> bool {
        self.of == 1 || self.takes_hosts(address_hash(&packet.source), address_hash(&packet.destination))
    }

    /// Each address is spread before the two are added: neighbours that talk to neighbours differ all the same.
    #[inline]
    fn takes_hosts(self, source: u64, destination: u64) -> bool {
        let spread = |host: u64| {
            let product = (host ^ 0x243f_6a88_85a3_08d3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (product ^ product >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
        };
        let both = spread(source).wrapping_add(spread(destination)) >> 32;
        (both * u64::from(self.of)) >> 32 == u64::from(self.index)
    }

    /// Whose a frame is, as far as that shows without decoding it: the addresses of a plain RoCEv2/IPv4 frame do.
    #[inline]
    fn owner(self, link: LinkType, frame: &[u8]) -> Owner {
        /// More fragments, and the fragment offset (RFC 791).
        const FRAGMENT: u16 = 0x3fff;
        if self.of == 1 {
            return Owner::This;
        }
        if link != LinkType::ETHERNET {
            return Owner::Unknown;
        }
        let Some(head) = frame.first_chunk::<54>() else {
            return Owner::Unknown;
        };
        // EtherType IPv4, no options, not a fragment, UDP, port 4791.
        let plain = head[12..15] == [0x08, 0x00, 0x45]
            && u16::from_be_bytes([head[20], head[21]]) & FRAGMENT == 0
            && head[23] == 17
            && head[36..38] == [0x12, 0xb7];
        if !plain {
            return Owner::Unknown;
        }
        let address = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        if self.takes_hosts(ipv4_hash(address(26)), ipv4_hash(address(30))) {
            Owner::This
        } else {
            Owner::Other
        }
    }
}

/// The time of a note on the clock that the frames of its input are moved to.
fn corrected(work: &Work, time: Time) -> Time {
    let correction = work.correction.as_ref();
    correction.map_or(time, |correction| correction.correct(time))
}

/// Hash of an address, of 64 bits: its halves, one over the other.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
fn address_hash(address: &Address) -> u64 {
    let bytes = u128::from_be_bytes(*address.octets());
    (bytes >> 64) as u64 ^ bytes as u64
}

/// Hash of an IPv4 address, which is behind 16 bits of ones.
#[inline]
fn ipv4_hash(address: u32) -> u64 {
    0xffff_0000_0000 | u64::from(address)
}

/// Shard that a frame belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    /// This one, also for what is counted when it is no packet.
    This,
    /// Another one.
    Other,
    /// Only decoding shows it; the first shard counts frames that are no packets.
    Unknown,
}

/// Decoder and counts of one shard.
#[derive(Clone, Debug)]
pub(crate) struct Decoder {
    shard: Shard,
    filter: Option<Filter>,
    /// Only what belongs to some processes.
    chosen: Option<Box<ChosenProcesses>>,
    /// Only frames of this time.
    range: Range<u64>,
    pub(crate) taps: Taps,
    /// Numbers that the network has set.
    pub(crate) assigned: AssignedNumbers,
    link_addresses: LinkAddressBook,
    /// Frames, and what is not a flow's.
    pub(crate) totals: Totals,
    pub(crate) span: Option<Period>,
    /// First frame, whether it is of this time or not.
    pub(crate) first_frame: Option<Time>,
    /// Watermark of a live run where there are no frames.
    watermark: Option<Time>,
    /// Packets of these frames that belong to the tap of a mirror session instead.
    mirrored: u64,
    /// Flows whose processes the captures have named.
    named: NamedFlows,
}

impl Decoder {
    pub(crate) fn new(
        shard: Shard,
        filter: Option<Filter>,
        chosen: Option<Box<ChosenProcesses>>,
        range: Range<u64>,
        taps: Taps,
    ) -> Self {
        Self {
            shard,
            filter,
            chosen,
            range,
            taps,
            assigned: AssignedNumbers::default(),
            link_addresses: LinkAddressBook::default(),
            totals: Totals::default(),
            span: None,
            first_frame: None,
            watermark: None,
            mirrored: 0,
            named: NamedFlows::default(),
        }
    }

    /// Decodes the frames of a run in a range, behind what is in `batch`.
    pub(crate) fn decode(&mut self, work: &Work, range: Range<usize>, batch: &mut PacketBatch) {
        let run = &work.run;
        let all = run.batch.frames();
        let mut lost = run
            .lost()
            .iter()
            .filter(|lost| (lost.before as usize) >= range.start)
            .peekable();
        let mut notes = run
            .notes()
            .iter()
            .filter(|note| (note.before as usize) >= range.start)
            .peekable();
        let is_end = range.end >= run.range.end;
        let mut at = range.start;
        while let Some(first) = all.get(at).filter(|_| at < range.end) {
            // Losses come before notes of the same place.
            while let Some(lost) = lost.next_if(|lost| lost.before as usize <= at) {
                self.lost(work, lost, first.time, batch);
            }
            while let Some(note) = notes.next_if(|note| note.before as usize <= at) {
                self.note(work, note, batch);
            }
            // Frames of one interface, up to the next loss or note, go together.
            let next = [
                lost.peek().map(|lost| lost.before),
                notes.peek().map(|note| note.before),
            ];
            let next = next.into_iter().flatten().min();
            let until = next.map_or(range.end, |next| (next as usize).min(range.end));
            let same = all[at..until]
                .iter()
                .take_while(|frame| frame.interface == first.interface)
                .count();
            self.frames(work, &all[at..at + same], batch);
            at += same;
        }
        if is_end {
            for note in notes {
                self.note(work, note, batch);
            }
            // Independent of where batches end.
            let time = self.now().unwrap_or_default();
            for lost in lost {
                self.lost(work, lost, time, batch);
            }
        }
    }

    /// Handles a note between the frames of a live run.
    fn note(&mut self, work: &Work, note: &Note, batch: &mut PacketBatch) {
        let run = &work.run;
        match note.kind {
            HostEvent::BLOCK => self.host_report(work, note, batch),
            // Samples do not belong to a host pair: one shard takes them all.
            SampleRow::BLOCK if self.shard.is_first() => {
                if let Some(mut row) = SampleRow::decode(run.batch.note(note)) {
                    row.time = corrected(work, row.time);
                    let taken = self.range.contains(&row.time.0).then_some(row);
                    batch.samples.extend(taken);
                }
            }
            RecordingStart::TIME => {
                let time = run.batch.note(note).first_chunk();
                let time = time.map(|time| Time(u64::from_le_bytes(*time)));
                self.watermark = self
                    .watermark
                    .max(time.filter(|time| self.range.contains(&time.0)));
            }
            _ => {}
        }
    }

    /// Handles a host's report.
    fn host_report(&mut self, work: &Work, note: &Note, batch: &mut PacketBatch) {
        let Some(mut event) = HostEvent::decode(work.run.batch.note(note)) else {
            return;
        };
        event.time = corrected(work, event.time);
        if !self.range.contains(&event.time.0) {
            return;
        }
        if self.chosen.as_mut().is_some_and(|chosen| !chosen.takes(&event)) {
            return;
        }
        let report = HostReport {
            before: batch.packets.len(),
            event,
            reported: self.shard.is_first(),
        };
        batch.between.push(Between::Host(Box::new(report)));
    }

    fn lost(&mut self, work: &Work, lost: &roce_capture::LostFrames, time: Time, batch: &mut PacketBatch) {
        let Some(interface) = work.interfaces.get(lost.interface as usize) else {
            return;
        };
        if !self.range.contains(&time.0) {
            return;
        }
        let tap = self
            .taps
            .interface(work.run.input, &work.capture, lost.interface, interface, time);
        batch.between.push(Between::Lost(LostRecords {
            before: batch.packets.len(),
            time,
            tap,
            // Every shard learns of the loss, and one reports it.
            records: if self.shard.is_first() { lost.records } else { 0 },
            by_mirror: false,
        }));
    }

    /// Frames of one interface.
    fn frames(&mut self, work: &Work, frames: &[Frame], batch: &mut PacketBatch) {
        let Some(first) = frames.first() else { return };
        let Some(interface) = work.interfaces.get(first.interface as usize) else {
            return;
        };
        let tap = self.taps.interface(
            work.run.input,
            &work.capture,
            first.interface,
            interface,
            first.time,
        );
        let earlier = self.first_frame.is_none_or(|known| first.time < known);
        if earlier && first.time != Time(u64::MAX) {
            self.first_frame = Some(first.time);
        }
        let taken = self.count_frames(tap, frames);
        if taken > 0 {
            let all = taken == frames.len() as u64;
            self.decode_frames(work, (tap, interface), (frames, all), batch);
        }
    }

    /// Counts frames of a tap, with their times. Returns how many of them are of this run's time: the others are not decoded.
    fn count_frames(&mut self, tap: TapId, frames: &[Frame]) -> u64 {
        let range = self.range.clone();
        let in_range = |frame: &&Frame| range.contains(&frame.time.0);
        let Some(first_taken) = frames.iter().find(in_range) else {
            self.unstamped(frames);
            return 0;
        };
        let mut span = Period::at(first_taken.time);
        let (mut taken, mut cut) = (0, 0);
        let mut stamps = Stamps::default();
        for frame in frames.iter().filter(in_range) {
            stamps.frame(frame.time);
            taken += 1;
            cut += u64::from(frame.captured < frame.original);
            span.include(frame.time);
        }
        self.taps.frames(tap, taken, cut, span.first, span.last);
        self.taps.stamps(tap, stamps);
        if span.length() < QUIET {
            self.taps.recorded(tap, span);
        } else {
            for frame in frames.iter().filter(in_range) {
                self.taps.recorded(tap, Period::at(frame.time));
            }
        }
        let whole = self.span.get_or_insert(span);
        whole.include(span.first);
        whole.include(span.last);
        if self.shard.is_first() {
            self.totals.frames += taken;
        }
        if taken < frames.len() as u64 {
            self.unstamped(frames);
        }
        taken
    }

    /// Decodes frames of a tap: those of this run's time, which may be all of them.
    fn decode_frames(
        &mut self,
        work: &Work,
        (tap, interface): (TapId, &Interface),
        (frames, all): (&[Frame], bool),
        batch: &mut PacketBatch,
    ) {
        let range = self.range.clone();
        let in_range = |frame: &Frame| range.contains(&frame.time.0);
        self.mirrored = 0;
        // Packets are decoded where they stay: there is a place for each frame.
        let mut packets = core::mem::take(&mut batch.packets);
        let before = packets.len();
        let places = packets.room(frames.len());
        let mut used = 0;
        let mut learning = self.link_addresses.learns(tap);
        let data: &[u8] = work.run.batch.data();
        for frame in frames {
            let from = frame.offset as usize;
            let Some(bytes) = data.get(from..from + frame.captured as usize) else {
                continue;
            };
            if learning && in_range(frame) {
                let at = (tap, interface.link);
                let learned = self
                    .link_addresses
                    .learn(at, frame, on_the_wire(frame, bytes), before + used);
                batch.between.extend(learned.map(Between::Link));
            }
            let owner = self.shard.owner(interface.link, bytes);
            if owner == Owner::Other || !all && !in_range(frame) {
                continue;
            }
            let (bytes, original) = on_the_wire(frame, bytes);
            let Some(packet) = places.get_mut(used) else {
                break;
            };
            (packet.time, packet.tap, packet.wire_bytes) = (frame.time, tap, original);
            packet.flags = PacketFlags::default();
            if frame.process != 0 {
                let named = self.named_process(work, frame, before + used);
                batch.between.extend(named);
            }
            let taken = if roce_wire::fast::decode_into(interface.link, bytes, original, &mut packet.roce) {
                (owner == Owner::This || self.shard.takes(&packet.roce))
                    && self.complete(packet, bytes, before + used, &mut batch.between)
            } else {
                let taken = self.general(interface, bytes, packet, before + used, (owner, batch));
                learning = self.link_addresses.learns(tap);
                taken
            };
            used += usize::from(taken);
        }
        packets.keep(used);
        batch.packets = packets;
        self.taps.roce(tap, used as u64 - self.mirrored);
    }

    /// Counts the frames among these whose stamps do not fit: they are in no bin.
    #[cold]
    fn unstamped(&mut self, frames: &[Frame]) {
        let unstamped = frames.iter().filter(|frame| frame.time == Time(u64::MAX));
        if self.shard.is_first() && self.range.end == u64::MAX {
            self.totals.frames += unstamped.count() as u64;
        }
    }

    /// Handles a frame that the fast path refuses. Returns true if `packet` is one, with its time and
    /// lengths set; its place would be `at` of its batch. Pauses and other items between packets go into
    /// `batch`.
    fn general(
        &mut self,
        interface: &Interface,
        bytes: &[u8],
        packet: &mut Packet,
        at: usize,
        (owner, batch): (Owner, &mut PacketBatch),
    ) -> bool {
        let between = &mut batch.between;
        let decoded = roce_wire::decode_with(interface.link, bytes, packet.wire_bytes, &self.assigned);
        let stop = decoded.stop;
        let is_short = decoded.is_short();
        let counts = owner == Owner::This || self.shard.is_first();
        if let Some(mirror) = decoded.mirror {
            between.extend(self.mirror(interface, &mirror, packet, at).map(Between::Lost));
        }
        if let (Some(stop), true) = (stop, counts) {
            *self.totals.stops.entry((stop.layer, stop.cut)).or_default() += 1;
        }
        match decoded.content {
            Content::Roce(roce) => {
                // Every shard learns the same.
                if decoded.mirror.is_some() && self.link_addresses.learns(packet.tap) {
                    let at_tap = (packet.tap, packet.time);
                    let learned = self.link_addresses.learn_mirrored(at_tap, bytes, &roce, at);
                    between.extend(learned.map(Between::Link));
                }
                if !self.shard.takes(&roce) {
                    return false;
                }
                packet.roce = roce;
                let is_cut = stop.is_some_and(|stop| stop.cut == CutLimit::Snaplen);
                packet.flags = PacketFlags::default()
                    .with(PacketFlags::CUT, is_cut)
                    .with(PacketFlags::SHORT, is_short);
                let taken = self.complete(packet, bytes, at, between);
                if taken && decoded.mirror.is_some() {
                    self.mirrored += 1;
                    self.taps.roce(packet.tap, 1);
                }
                if taken && !decoded.telemetry.is_none() {
                    Self::keep_hops(&decoded.telemetry, bytes, packet, (at + 1, false), between);
                }
                return taken;
            }
            Content::Uet(roce) => self.uet(bytes, (packet, &roce), (at, is_short), between),
            Content::Copy(roce) => {
                self.copy(&decoded.telemetry, bytes, (packet, roce), (at, counts), between);
            }
            // Every shard learns of pauses, and one counts them.
            Content::Pause(pause) => {
                if counts {
                    self.taps.pause(packet.tap);
                }
                self.link_addresses.begin(packet.tap);
                let (time, tap) = (packet.time, packet.tap);
                between.push(Between::Pause(PauseFrame {
                    before: at,
                    time,
                    tap,
                    pause,
                    reported: counts,
                }));
            }
            other if counts => self.count_other(other),
            _ => {}
        }
        false
    }

    /// Counts a frame that is none of the others.
    fn count_other(&mut self, content: Content) {
        *match content {
            Content::Fragment => &mut self.totals.fragments,
            Content::Other(Other::Undecodable) => &mut self.totals.undecodable,
            Content::Other(Other::UnknownLink) => &mut self.totals.unknown_link,
            _ => &mut self.totals.not_roce,
        } += 1;
    }

    /// Moves a packet to the tap of its mirror session. Returns what the session lost before it.
    fn mirror(
        &mut self,
        interface: &Interface,
        mirror: &Mirror,
        packet: &mut Packet,
        at: usize,
    ) -> Option<LostRecords> {
        let (tap, missing) = self.taps.mirror(packet.tap, interface, mirror, packet.time);
        packet.tap = tap;
        (missing > 0).then(|| LostRecords {
            before: at,
            time: packet.time,
            tap,
            records: if self.shard.is_first() { missing } else { 0 },
            by_mirror: true,
        })
    }

    /// Completes a decoded packet, the one at `at` of its batch; `false` when the filter leaves it out.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "called for every packet from one place, and from another that is rare"
    )]
    fn complete(&mut self, packet: &mut Packet, bytes: &[u8], at: usize, between: &mut Vec<Between>) -> bool {
        let roce = &packet.roce;
        if self.filter.as_ref().is_some_and(|filter| !filter.matches(roce))
            || self.chosen.as_ref().is_some_and(|chosen| !chosen.has(roce))
        {
            self.totals.filtered += 1;
            return false;
        }
        packet.icrc = match icrc::check(bytes, roce) {
            Icrc::Good => Some(true),
            Icrc::Bad => Some(false),
            Icrc::NotCheckable => None,
        };
        packet.path = path_hash(bytes, roce);
        packet.flags = packet.flags.with(PacketFlags::TO_ITSELF, is_to_itself(bytes));
        packet.extended = 0;
        if roce.bth.opcode() == SEND_ONLY {
            let is_open = is_open_request(bytes, roce);
            packet.flags = packet.flags.with(PacketFlags::OPEN_REQUEST, is_open);
        }
        // Nearly all packets have no extended header, or an AETH, which is in `roce`.
        if roce.seen != ExtendedHeaders::NONE && roce.seen != ExtendedHeaders::AETH {
            keep_headers(packet, bytes, at, between);
        }
        let roce = &packet.roce;
        if roce.bth.destination_qpn() == roce_wire::Qpn::GENERAL_SERVICES
            && let Some(message) = connection_message(bytes, roce, at)
        {
            between.push(Between::Management(message));
        }
        true
    }
}

/// The bytes of a frame and its length on the wire, both without a frame check sequence, which is no part of it.
#[inline]
pub(crate) fn on_the_wire<'a>(frame: &Frame, bytes: &'a [u8]) -> (&'a [u8], u32) {
    // A careless writer says less than it kept.
    let original = frame.original.max(frame.captured);
    if frame.fcs_bytes == 0 {
        return (bytes, original);
    }
    let original = original - u32::from(frame.fcs_bytes).min(frame.original);
    (bytes.get(..original as usize).unwrap_or(bytes), original)
}

impl Decoder {
    /// Watermark: all earlier packets have come.
    pub(crate) fn now(&self) -> Option<Time> {
        self.watermark.max(self.span.map(|span| span.last))
    }

    /// Adds the counts of another shard of the run.
    pub(crate) fn add(&mut self, other: &Self) {
        self.totals.add(&other.totals);
        self.taps.add_counts(&other.taps);
    }
}

#[cfg(test)]
mod tests;
