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
use roce_wire::{AssignedNumbers, Content, CutLimit, ExtendedHeaders, Mirror, Other};

use crate::feed::Work;
use crate::link_addresses::LinkAddressBook;
use crate::processes::{ChosenProcesses, NamedFlows};
use crate::routes::{Owner, PickedFrames, Shard, Stretch};
use crate::taps::Taps;
use headers::{SEND_ONLY, connection_message, is_open_request, is_to_itself, keep_headers};
pub(crate) use path::path_hash;

/// The time of a note on the clock that the frames of its input are moved to.
fn corrected(work: &Work, time: Time) -> Time {
    let correction = work.correction.as_ref();
    correction.map_or(time, |correction| correction.correct(time))
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

    /// Decodes the frames of a run in a range, as far as this shard looks at them, behind what is in `batch`.
    pub(crate) fn decode(
        &mut self,
        work: &Work,
        range: Range<usize>,
        picked: &mut PickedFrames<'_>,
        batch: &mut PacketBatch,
    ) {
        let run = &work.run;
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
        let mut at = range.start;
        while let Some(stretch) = picked.stretch(run, at..range.end, &self.range) {
            let first = run.batch.frames().get(at).map(|frame| frame.time);
            // Losses come before notes of the same place.
            while let Some(lost) = lost.next_if(|lost| lost.before as usize <= at) {
                self.lost(work, lost, first.unwrap_or_default(), batch);
            }
            while let Some(note) = notes.next_if(|note| note.before as usize <= at) {
                self.note(work, note, batch);
            }
            self.frames(work, &stretch, picked, batch);
            picked.pass(&stretch);
            at = stretch.frames.end;
        }
        if range.end >= run.range.end {
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
    fn frames(
        &mut self,
        work: &Work,
        stretch: &Stretch,
        picked: &mut PickedFrames<'_>,
        batch: &mut PacketBatch,
    ) {
        let frames = stretch.frames_of(&work.run);
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
        if stretch.taken < frames.len() as u64 {
            self.unstamped(frames);
        }
        if let Some(span) = stretch.span {
            self.count_frames(tap, (stretch, span), frames);
            self.decode_frames(work, (tap, interface), (stretch, picked), batch);
        }
    }

    /// Counts frames of a tap, those of this run's time, which came in `span`.
    fn count_frames(&mut self, tap: TapId, (stretch, span): (&Stretch, Period), frames: &[Frame]) {
        let (taken, range) = (stretch.taken, self.range.clone());
        self.taps.frames(tap, taken, stretch.cut, span.first, span.last);
        self.taps.stamps(tap, stretch.stamps);
        if span.length() < QUIET {
            self.taps.recorded(tap, span);
        } else {
            for frame in frames.iter().filter(|frame| range.contains(&frame.time.0)) {
                self.taps.recorded(tap, Period::at(frame.time));
            }
        }
        let whole = self.span.get_or_insert(span);
        whole.include(span.first);
        whole.include(span.last);
        if self.shard.is_first() {
            self.totals.frames += taken;
        }
    }

    /// Decodes frames of a tap: those of this run's time, which may be all of them.
    fn decode_frames(
        &mut self,
        work: &Work,
        (tap, interface): (TapId, &Interface),
        (stretch, picked): (&Stretch, &mut PickedFrames<'_>),
        batch: &mut PacketBatch,
    ) {
        let range = self.range.clone();
        let all = stretch.taken == stretch.frames.len() as u64;
        let in_range = |frame: &Frame| all || range.contains(&frame.time.0);
        self.mirrored = 0;
        // Packets are decoded where they stay: there is a place for each frame.
        let mut packets = core::mem::take(&mut batch.packets);
        let before = packets.len();
        let places = packets.room(stretch.frames.len());
        let mut used = 0;
        let mut learning = self.link_addresses.learns(tap);
        let (frames, data): (&[Frame], &[u8]) = (work.run.batch.frames(), work.run.batch.data());
        let mut at = stretch.frames.start;
        while let Some((place, owner)) = picked.next(stretch, at, learning) {
            at = place + 1;
            let frame = &frames[place];
            let from = frame.offset as usize;
            let Some(bytes) = data.get(from..from + frame.captured as usize) else {
                continue;
            };
            if !in_range(frame) {
                continue;
            }
            if learning {
                let at = (tap, interface.link);
                let learned = self
                    .link_addresses
                    .learn(at, frame, on_the_wire(frame, bytes), before + used);
                batch.between.extend(learned.map(Between::Link));
            }
            let Some(packet) = places.get_mut(used).filter(|_| owner != Owner::Other) else {
                continue;
            };
            let (bytes, original) = on_the_wire(frame, bytes);
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
