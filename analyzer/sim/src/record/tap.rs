//! Taps: points where frames are recorded, into pcapng files.
//!
//! A [`TapRecording`] is one file with one or more taps. Each tap is an interface with a name, a snaplen, a
//! clock, a kind of loss, and perhaps a mirror in front. For each frame that passes, a tap reports
//! whether it was recorded, so that a truth can name it. The same frames and seed give the same bytes.
//! The caller makes the frames and their times.

mod clock;
mod doubling;
mod loss;
mod queues;

pub use clock::Clock;
pub use doubling::MirrorDoubling;
pub use loss::Loss;
pub use queues::Queues;

use std::io::{self, Write};

use rand::Rng as _;
use roce_capture::Direction;
use roce_capture::write::{ByteOrder, InterfaceOptions, Packet, PcapngWriter};
use roce_model::{Span, Time};
use roce_wire::LinkType;

use crate::error::Error;
use crate::record::frame::{Frame, Tunnel, encode_within};
use doubling::Copies;
use loss::LossState;
use queues::Batches;
use roce_model::random::{Random, stream};

/// Properties of a tap. Its link type is Ethernet.
#[derive(Clone, PartialEq, Debug)]
pub struct Tap {
    /// Its name (`if_name`).
    pub name: String,
    /// Description (`if_description`).
    pub description: Option<String>,
    /// Bytes kept of each frame at most; 0: all.
    pub snaplen: u32,
    /// Its clock.
    pub clock: Clock,
    /// Decimal digits of a second in the file's stamps (`if_tsresol`): 9, or less; digits beyond are cut off.
    pub digits: u8,
    /// Kind of its losses.
    pub loss: Loss,
    /// Report of these losses in the file.
    pub loss_report: LossReport,
    /// The mirror through which frames come, if they do.
    pub mirror: Option<Mirror>,
    /// Frames come twice.
    pub doubling: Option<MirrorDoubling>,
    /// Stamps are later than the frames passed: by the least of these times, and up to the most, at random. A mirror's copies come
    /// over several ports and queues, so that their stamps are not in the order in which the frames passed.
    pub late: Option<(Span, Span)>,
    /// The receive queues that records are read from, when the file does not have them in the order of time.
    pub queues: Option<Queues>,
}

/// Report of a tap's lost records in the file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum LossReport {
    /// Nothing.
    #[default]
    Silent,
    /// The next record says how many were lost before it (`epb_dropcount`), and the statistics at the end the total
    /// (`isb_ifdrop`).
    Packets,
    /// The statistics at the end say the total (`isb_ifdrop`).
    Statistics,
    /// The statistics at the end say that none was lost: as libpcap's RDMA sniffer does, which cannot know.
    ClaimsNone,
}

/// A mirror in front of a tap: a switch that sends copies of frames through a tunnel. Records that the tap loses show as
/// gaps in the sequence numbers of an ERSPAN session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mirror {
    /// The tunnel.
    pub tunnel: Tunnel,
    /// The mirror's own clock, for the timestamps of ERSPAN type III.
    pub clock: Clock,
    /// Delay of copies from the mirror to the tap.
    pub delay: Span,
    /// The sequence number of the first frame.
    pub first_sequence: u32,
}

/// Result of offering a frame to a tap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OfferResult {
    /// It was recorded.
    Recorded {
        /// Its number in the file, from 1 on, as Wireshark counts. With several receive queues: its number in the order
        /// of time, copies counted.
        number: u64,
        /// Its stamp in the file, in ns since the Unix epoch.
        stamp: Time,
    },
    /// The tap lost it.
    Lost,
}

/// Counts of a tap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RecordCounts {
    /// Frames that passed.
    pub offered: u64,
    /// Number of the frames that were recorded.
    pub recorded: u64,
    /// Number of the frames that were lost.
    pub lost: u64,
    /// Records of frames that came a second time.
    pub copies: u64,
    /// The stamp of the last record; 0 without one.
    pub last_stamp: Time,
}

/// A pcapng file that is being recorded.
#[derive(Debug)]
pub struct TapRecording<W: Write> {
    file: String,
    writer: PcapngWriter<W>,
    taps: Vec<State>,
    records: u64,
    /// The bytes of the frame at hand.
    bytes: Vec<u8>,
}

/// A tap at work.
#[derive(Debug)]
struct State {
    tap: Tap,
    interface: u32,
    losing: LossState,
    copies: Copies,
    lateness: Random,
    batches: Batches,
    sequence: u32,
    /// Lost since the last record.
    lost_since: u64,
    seen: RecordCounts,
}

impl Tap {
    /// A tap that keeps all frames whole, loses none and has an exact clock.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: None,
            snaplen: 0,
            clock: Clock::default(),
            digits: 9,
            loss: Loss::None,
            loss_report: LossReport::Silent,
            mirror: None,
            doubling: None,
            late: None,
            queues: None,
        }
    }

    /// The ns of a tick of the file's stamps.
    fn tick_ns(&self) -> u64 {
        10_u64.pow(9 - u32::from(self.digits.min(9)))
    }
}

impl State {
    /// By how much the next stamp is late, in ns.
    fn late_by(&mut self) -> u64 {
        let Some((Span(least), Span(most))) = self.tap.late else {
            return 0;
        };
        let width = u128::from(most.saturating_sub(least)) + 1;
        least + u64::try_from((u128::from(self.lateness.next_u64()) * width) >> 64).unwrap_or_default()
    }
}

impl<W: Write> TapRecording<W> {
    /// Starts a file with `taps`, which are numbered from 0 on. Errors call it `file`. `seed`, with the
    /// name of each tap, decides which records are lost.
    ///
    /// # Errors
    /// When `output` cannot be written to.
    pub fn new(output: W, file: impl Into<String>, taps: &[Tap], seed: u64) -> Result<Self, Error> {
        let file = file.into();
        let begun = begin(output, taps, seed);
        match begun {
            Ok((writer, taps)) => Ok(Self {
                file,
                writer,
                taps,
                records: 0,
                bytes: Vec::new(),
            }),
            Err(source) => Err(Error::Write { file, source }),
        }
    }

    /// Says to a tap that `frame` passes it at `time` of the simulation. A caller offers frames in the order of time, and in
    /// this order they are written, unless the tap has several receive queues.
    ///
    /// # Errors
    /// When the output cannot be written to, or there is no such tap.
    pub fn offer(
        &mut self,
        tap: usize,
        time: Time,
        direction: Direction,
        frame: &Frame,
    ) -> Result<OfferResult, Error> {
        let taps = self.taps.len();
        if tap >= taps {
            return Err(Error::NoSuchTap {
                file: self.file.clone(),
                tap,
                taps,
            });
        }
        let done = self
            .copies_until(time)
            .and_then(|()| self.record(tap, time, direction, frame, false));
        done.map_err(|source| Error::Write {
            file: self.file.clone(),
            source,
        })
    }

    /// Records the copies that come by `time`.
    fn copies_until(&mut self, time: Time) -> io::Result<()> {
        loop {
            let due = self.taps.iter().enumerate();
            let due = due.filter_map(|(tap, state)| Some((state.copies.next_time()?, tap)));
            let Some((_, tap)) = due.min().filter(|(due, _)| *due <= time) else {
                return Ok(());
            };
            if let Some((due, direction, frame)) =
                self.taps.get_mut(tap).and_then(|state| state.copies.take())
            {
                self.record(tap, due, direction, &frame, true)?;
            }
        }
    }

    /// Records a frame, unless it is lost. The mirror does not copy recorded copies.
    fn record(
        &mut self,
        tap: usize,
        time: Time,
        direction: Direction,
        frame: &Frame,
        is_copy: bool,
    ) -> io::Result<OfferResult> {
        let Some(state) = self.taps.get_mut(tap) else {
            return Ok(OfferResult::Lost);
        };
        let snaplen = match state.tap.snaplen {
            0 => u32::MAX,
            most => most,
        };
        let wrapped = state
            .tap
            .doubling
            .filter(|_| is_copy)
            .and_then(|doubling| doubling.tunnel);
        let (original, arrives, mirrored) = if let Some(mirror) = &state.tap.mirror {
            let sequence = state.sequence;
            state.sequence = sequence.wrapping_add(1);
            let arrives = time + mirror.delay;
            (mirror.tunnel.wire_bytes(frame), arrives, Some((mirror, sequence)))
        } else {
            let original = wrapped.map_or_else(|| frame.wire_bytes(), |tunnel| tunnel.wire_bytes(frame));
            (original, time, None)
        };
        if is_copy {
            state.seen.copies += 1;
        } else {
            state.seen.offered += 1;
            if state.losing.next(arrives, u64::from(original.min(snaplen))) {
                state.seen.lost += 1;
                state.lost_since += 1;
                return Ok(OfferResult::Lost);
            }
            state.seen.recorded += 1;
        }
        let most = usize::try_from(snaplen).unwrap_or(usize::MAX);
        self.bytes.clear();
        match (mirrored, wrapped) {
            (Some((mirror, sequence)), _) => {
                let stamp = mirror.clock.stamp(time);
                mirror
                    .tunnel
                    .encode(frame, sequence, stamp, most, &mut self.bytes);
            }
            (None, Some(tunnel)) => tunnel.encode(frame, 0, time, most, &mut self.bytes),
            (None, None) => encode_within(frame, most, &mut self.bytes),
        }
        let arrives = Time(arrives.0.saturating_add(state.late_by()));
        let tick_ns = state.tap.tick_ns();
        let ticks = state.tap.clock.stamp(arrives).0 / tick_ns;
        let stamp = Time(ticks.saturating_mul(tick_ns));
        let tells = state.tap.loss_report == LossReport::Packets && state.lost_since > 0;
        let packet = Packet {
            interface: state.interface,
            ticks,
            original,
            data: &self.bytes,
            flags: flags(direction),
            dropped: tells.then_some(state.lost_since),
            comment: None,
        };
        state.batches.record(&mut self.writer, arrives, frame, &packet)?;
        state.lost_since = 0;
        state.seen.last_stamp = stamp;
        self.records += 1;
        if !is_copy {
            state.copies.follow(time, direction, frame);
        }
        Ok(OfferResult::Recorded {
            number: self.records,
            stamp,
        })
    }

    /// Counts of the taps until now.
    pub fn seen(&self) -> impl Iterator<Item = RecordCounts> {
        self.taps.iter().map(|state| state.seen)
    }

    /// Ends the file with the statistics of its taps, and gives back what was written to.
    ///
    /// # Errors
    /// When the output cannot be written to.
    pub fn finish(mut self) -> Result<(W, Vec<RecordCounts>), Error> {
        let copied = self.copies_until(Time(u64::MAX));
        let seen = self.seen().collect();
        let ended = copied
            .and_then(|()| end(&mut self.writer, &mut self.taps))
            .and_then(|()| self.writer.finish());
        match ended {
            Ok(output) => Ok((output, seen)),
            Err(source) => Err(Error::Write {
                file: self.file,
                source,
            }),
        }
    }
}

fn begin<W: Write>(output: W, taps: &[Tap], seed: u64) -> io::Result<(PcapngWriter<W>, Vec<State>)> {
    let mut writer = PcapngWriter::new(output, ByteOrder::Little)?;
    let mut states = Vec::with_capacity(taps.len());
    for tap in taps {
        let interface = writer.interface(&InterfaceOptions {
            link: LinkType::ETHERNET,
            snaplen: tap.snaplen,
            name: Some(tap.name.clone()),
            description: tap.description.clone(),
            resolution: Some(tap.digits.min(9)),
            ..InterfaceOptions::default()
        })?;
        states.push(State {
            interface,
            losing: LossState::new(tap.loss, stream(seed, &format!("tap {}", tap.name))),
            lateness: stream(seed, &format!("late {}", tap.name)),
            copies: Copies::new(tap.doubling, stream(seed, &format!("copies {}", tap.name))),
            batches: Batches::new(tap.queues, stream(seed, &format!("queues {}", tap.name))),
            sequence: tap.mirror.map_or(0, |mirror| mirror.first_sequence),
            lost_since: 0,
            seen: RecordCounts::default(),
            tap: tap.clone(),
        });
    }
    Ok((writer, states))
}

fn end<W: Write>(writer: &mut PcapngWriter<W>, taps: &mut [State]) -> io::Result<()> {
    for state in taps {
        state.batches.read(writer, state.interface)?;
        let lost = match state.tap.loss_report {
            LossReport::Silent => continue,
            LossReport::Packets | LossReport::Statistics => state.seen.lost,
            LossReport::ClaimsNone => 0,
        };
        let ticks = state.seen.last_stamp.0 / state.tap.tick_ns();
        writer.statistics(state.interface, ticks, Some(lost), None)?;
    }
    Ok(())
}

/// `epb_flags` (draft-ietf-opsawg-pcapng, section 4): the lowest two bits.
fn flags(direction: Direction) -> Option<u32> {
    match direction {
        Direction::Unknown => None,
        Direction::Inbound => Some(1),
        Direction::Outbound => Some(2),
    }
}
