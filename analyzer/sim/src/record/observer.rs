//! The observer: it records the frames that pass taps, and keeps what the truth needs to judge a
//! capture.
//!
//! It follows the recorded request PSNs of each flow at each tap, so that it knows which are missing there.

mod output;
mod seen;

use roce_capture::Direction;
use roce_model::{Span, Time};
use roce_wire::{Address, MacAddress, Qpn};

pub(crate) use output::Output;
pub(crate) use seen::{FlowRecords, Hole, RunSeen};

use crate::Error;
use crate::network::packet::{Kind, Packet};
use crate::record::frame::{
    Ethernet, Frame, Granularity, MrcPacket, Network, Tunnel, TunnelKind, udp_source_port,
};
use crate::record::tap::{self, Clock, Mirror, MirrorDoubling, OfferResult, TapRecording};
use crate::scenario::{MirrorName, Scenario, TapDirection, TapLoss, TapTable};
use crate::units::Picos;

/// A packet that passed a tap and was not recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MissedPacket {
    pub time: Picos,
    pub flow: u32,
    pub kind: Kind,
    pub seq: u64,
    pub span: u32,
    pub psn: u32,
    pub attempt: u16,
}

/// A tap at work.
#[derive(Debug)]
pub(crate) struct TapState {
    recording: usize,
    interface: usize,
    direction: TapDirection,
    pauses: bool,
    /// Start of recording.
    from: Picos,
    until: Picos,
    /// Records of frames that a mirror showed a second time.
    pub copies: u64,
    /// Records of each flow.
    pub flows: Vec<Option<Box<FlowRecords>>>,
    pub missed: Vec<MissedPacket>,
    pub records: u64,
    pub lost: u64,
    pub pause_records: u64,
    /// Times of pause frames that passed and were not recorded.
    pub lost_pauses: Vec<Picos>,
}

/// All taps.
#[derive(Debug, Default)]
pub(crate) struct Observer {
    pub taps: Vec<TapState>,
    recordings: Vec<TapRecording<Output>>,
    /// The first error of a recording; nothing is written after it.
    error: Option<Error>,
}

/// The name of a tap.
pub(crate) fn tap_name(table: &TapTable) -> &str {
    table.name.as_deref().unwrap_or(&table.at)
}

/// The files of a scenario in order, each with its taps: the name of the file and the places of the taps.
pub(crate) fn files(scenario: &Scenario) -> Vec<(String, Vec<usize>)> {
    let mut files: Vec<(String, Vec<usize>)> = Vec::new();
    for (place, table) in scenario.tap.iter().enumerate() {
        let name = table.file.as_deref().unwrap_or_else(|| tap_name(table));
        match files
            .iter_mut()
            .find(|(file, _)| file == name && table.file.is_some())
        {
            Some((_, taps)) => taps.push(place),
            None => files.push((name.to_owned(), vec![place])),
        }
    }
    files
}

impl Observer {
    /// Begins to record: `outputs` are those of [`files`], with their names.
    pub(crate) fn new(
        scenario: &Scenario,
        flows: usize,
        outputs: Vec<(String, Output)>,
    ) -> Result<Self, Error> {
        let mut observer = Self::default();
        let mut places = vec![(0, 0); scenario.tap.len()];
        for (number, ((name, output), (_, taps))) in outputs.into_iter().zip(files(scenario)).enumerate() {
            let described: Vec<tap::Tap> = taps
                .iter()
                .filter_map(|place| scenario.tap.get(*place))
                .map(|table| describe(scenario, table))
                .collect();
            for (interface, place) in taps.into_iter().enumerate() {
                places[place] = (number, interface);
            }
            observer
                .recordings
                .push(TapRecording::new(output, name, &described, scenario.seed)?);
        }
        for (table, (recording, interface)) in scenario.tap.iter().zip(places) {
            observer.taps.push(TapState {
                recording,
                interface,
                direction: table.direction,
                pauses: table.pause_frames,
                from: table.from,
                until: table.until.unwrap_or(Picos::NEVER),
                copies: 0,
                flows: (0..flows).map(|_| None).collect(),
                missed: Vec::new(),
                records: 0,
                lost: 0,
                pause_records: 0,
                lost_pauses: Vec::new(),
            });
        }
        Ok(observer)
    }

    /// A packet passes taps. Returns which of them it passed and which recorded it, one bit each.
    pub(crate) fn pass(
        &mut self,
        taps: &[u32],
        packet: &Packet,
        now: Picos,
        direction: Direction,
    ) -> (u64, u64) {
        let (mut passed, mut recorded) = (0, 0);
        for &number in taps {
            let offered = self.offer(number, &packet.frame, now, direction);
            let (Some(tap), Some(offered)) = (self.taps.get_mut(number as usize), offered) else {
                continue;
            };
            passed |= 1 << number;
            match offered {
                OfferResult::Recorded { number: record, .. } => {
                    recorded |= 1 << number;
                    tap.recorded(packet, now, record);
                }
                OfferResult::Lost => tap.lost(packet, now),
            }
        }
        (passed, recorded)
    }

    /// An MRC packet passes taps. Returns which of them recorded it, one bit each.
    pub(crate) fn pass_mrc(
        &mut self,
        taps: &[u32],
        packet: MrcPacket,
        now: Picos,
        direction: Direction,
    ) -> u64 {
        let mut recorded = 0;
        for &number in taps {
            let offered = self.offer(number, &Frame::Mrc(packet), now, direction);
            let (Some(tap), Some(offered)) = (self.taps.get_mut(number as usize), offered) else {
                continue;
            };
            match offered {
                OfferResult::Recorded { .. } => {
                    tap.records += 1;
                    recorded |= 1 << number;
                }
                OfferResult::Lost => tap.lost += 1,
            }
        }
        recorded
    }

    /// Offers a frame to a tap; none when the tap does not look at such frames, or not at this time.
    fn offer(&mut self, number: u32, frame: &Frame, now: Picos, direction: Direction) -> Option<OfferResult> {
        let tap = self.taps.get(number as usize)?;
        let seen = match tap.direction {
            TapDirection::Both => true,
            TapDirection::Rx => direction == Direction::Inbound,
            TapDirection::Tx => direction == Direction::Outbound,
        };
        let is_pause = matches!(frame, Frame::Pfc(_) | Frame::Pause(_));
        let seen = seen && (tap.from..tap.until).contains(&now);
        if !seen || is_pause && !tap.pauses || self.error.is_some() {
            return None;
        }
        let recording = self.recordings.get_mut(tap.recording)?;
        match recording.offer(tap.interface, Time(now.nanos()), direction, frame) {
            Ok(offered) => Some(offered),
            Err(error) => {
                self.error = Some(error);
                None
            }
        }
    }

    /// Ends the files. Returns what was written to.
    pub(crate) fn finish(&mut self) -> Result<Vec<Output>, Error> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let mut outputs = Vec::with_capacity(self.recordings.len());
        for (place, recording) in std::mem::take(&mut self.recordings).into_iter().enumerate() {
            let (output, seen) = recording.finish()?;
            outputs.push(output);
            for tap in self.taps.iter_mut().filter(|tap| tap.recording == place) {
                tap.copies = seen.get(tap.interface).map_or(0, |seen| seen.copies);
            }
        }
        Ok(outputs)
    }

    /// True if writing has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.error.is_some()
    }
}

impl TapState {
    fn recorded(&mut self, packet: &Packet, now: Picos, record: u64) {
        self.records += 1;
        if packet.kind == Kind::Pause {
            self.pause_records += 1;
            return;
        }
        let back = self.flows.get((packet.flow ^ 1) as usize);
        let acked = back.and_then(Option::as_deref);
        let acked = acked.map_or((0, Picos::ZERO), |back| (back.acked, back.acked_at));
        if let Some(flow) = self.flows.get_mut(packet.flow as usize) {
            flow.get_or_insert_default().record(packet, now, record, acked);
        }
    }

    fn lost(&mut self, packet: &Packet, now: Picos) {
        self.lost += 1;
        if packet.kind == Kind::Pause {
            self.lost_pauses.push(now);
        } else {
            self.missed.push(MissedPacket {
                time: now,
                flow: packet.flow,
                kind: packet.kind,
                seq: packet.seq,
                span: packet.span,
                psn: packet.psn(),
                attempt: packet.attempt,
            });
        }
    }
}

/// Converts a scenario's tap to a recording's.
fn describe(scenario: &Scenario, table: &TapTable) -> tap::Tap {
    let clock = Clock {
        epoch: Time(scenario.start * Span::SECOND.0),
        offset_ns: table.clock_offset_ns,
        drift_ppb: table.clock_drift_ppb,
        quantum: Span(table.quantum.nanos().max(1)),
        poll: table.poll.map(|poll| Span(poll.nanos())),
        step: table
            .clock_step_at
            .map(|at| (Time(at.nanos()), table.clock_step_ns)),
    };
    tap::Tap {
        description: Some(format!("simulated tap at {}", table.at)),
        snaplen: table.snaplen,
        clock,
        loss: table.loss.map_or(tap::Loss::None, TapLoss::loss),
        loss_report: table.loss_report.report(),
        doubling: table.doubling().map(|doubling| MirrorDoubling {
            tunnel: table.doubled_in.map(|kind| tunnel(kind, table.session)),
            ..doubling
        }),
        late: table
            .late
            .map(|late| (Span(late.from.nanos()), Span(late.to.nanos()))),
        queues: table.receive_queues(),
        mirror: table.mirror.map(|mirror| Mirror {
            tunnel: tunnel(mirror, table.session),
            clock: Clock {
                epoch: Time(scenario.start * Span::SECOND.0),
                ..Clock::default()
            },
            delay: Span(0),
            first_sequence: 0,
        }),
        ..tap::Tap::new(tap_name(table))
    }
}

/// The tunnel of a mirror, from a switch to a collector.
fn tunnel(mirror: MirrorName, session: u32) -> Tunnel {
    let session_10 = u16::try_from(session & 0x3ff).unwrap_or(0);
    Tunnel {
        ethernet: Ethernet::new(
            MacAddress([0x02, 0, 4, 0, 0, 1]),
            MacAddress([0x02, 0, 4, 0, 0, 2]),
        ),
        network: Network::new(Address::v4([192, 168, 255, 1]), Address::v4([192, 168, 255, 2])),
        kind: match mirror {
            MirrorName::Erspan2 => TunnelKind::ErspanII {
                session: session_10,
                index: 0,
            },
            MirrorName::Erspan3 => TunnelKind::ErspanIII {
                session: session_10,
                hardware: 0,
                granularity: Granularity::HundredNanoseconds,
                egress: true,
            },
            MirrorName::Vxlan => TunnelKind::Vxlan {
                identifier: session,
                source_port: udp_source_port(Qpn::GENERAL_SERVICES, Qpn::new(session)),
            },
        },
        truncate: None,
    }
}
