//! `--capture tc`: packets by the classifier and its ring buffer. Each interface has a probe of its own, so that each knows its losses.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use roce_capture::live::{Error, Outlet, Stop};
use roce_capture::{Batch, Direction, Frame, Interface};
use roce_model::Time;
use roce_pipeline::time_of_day;
use roce_probe::{Options, Packets, Probe};
use roce_wire::LinkType;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::output::messages;

/// Bytes that a record has of a packet.
pub(super) const BYTES: u32 = 96;
/// Limit for packets of the connection manager.
const MAX_BYTES: u32 = 384;
/// Wait for packets before the stream is reported to be quiet.
const PATIENCE: Duration = Duration::from_millis(20);
/// Time over which packets are collected: one at a time they would fill the queue with batches of one.
const GATHER: Duration = Duration::from_millis(20);
/// Frames emitted at once.
const AT_ONCE: usize = 4096;
/// Longest time from the kernel's stamp of a packet until its record is there, in ns; with room for a
/// busy processor.
const LATENESS: u64 = 20_000_000;

/// An interface with a classifier.
pub(super) struct Tap {
    probe: Probe,
    pub(super) interface: Interface,
}

impl Tap {
    /// Puts a classifier at an interface, with `buffer` bytes for its packets.
    pub(super) fn open(name: &str, buffer: u32) -> anyhow::Result<Self> {
        if name == "any"
            || Path::new("/sys/class/infiniband")
                .join(name.split(':').next().unwrap_or(name))
                .exists()
        {
            bail!(
                "{name}: a classifier watches a network interface\nhint: name interfaces with -i, or omit --capture tc"
            );
        }
        if !Path::new("/sys/class/net").join(name).exists() {
            return Err(Error::Missing {
                device: name.to_owned(),
            }
            .into());
        }
        let options = Options {
            interfaces: vec![name.to_owned()],
            packets: Packets::All,
            // The analysis counts: nobody reads these.
            counts: false,
            packet_buffer: buffer,
            host_events: false,
            ..Options::default()
        };
        let (probe, _) = Probe::open(&options)?;
        let interface = Interface {
            link: LinkType::ETHERNET,
            name: Some(name.to_owned()),
            description: None,
            snaplen: MAX_BYTES,
            fcs_bytes: 0,
            quantum_ns: 1,
            dropped: None,
            section: 0,
        };
        Ok(Self { probe, interface })
    }

    /// True if something has to be removed at the end.
    pub(super) fn has_filters(&self) -> bool {
        self.probe.has_filters()
    }

    /// Reads until its end is requested, or nobody reads the queue. Packets that were there by then are
    /// read.
    pub(super) fn read(mut self, mut outlet: Outlet, stop: &Stop) {
        let mut end = None;
        loop {
            if end.is_none() && stop.is_requested() {
                end = Some(time_of_day());
            }
            if end.is_none() {
                wait(self.probe.packets_fd(), PATIENCE);
                std::thread::sleep(GATHER);
            }
            let begun = time_of_day();
            let mut taken = TakenPackets::new(&mut outlet);
            let lost = match self.probe.packets(|packet| taken.add(&packet)) {
                Ok(lost) => lost,
                Err(error) => {
                    messages::warn(
                        self.interface.name.as_deref().unwrap_or_default(),
                        &format!("no more packets: {error}"),
                    );
                    return;
                }
            };
            let newest = taken.newest;
            // After packets, there may be more of their age.
            let settled = newest.map_or(begun, |newest| newest.min(begun));
            if !taken.end(Time(settled.0.saturating_sub(LATENESS))) {
                return;
            }
            outlet.dropped(lost);
            if end.is_some_and(|end| newest.is_none_or(|newest| newest > end)) {
                return;
            }
        }
    }
}

/// Waits until there is something to read, for a while.
pub(super) fn wait(waited: BorrowedFd<'_>, patience: Duration) {
    let mut waited = [PollFd::new(&waited, PollFlags::IN)];
    let patience = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(patience.subsec_nanos()),
    };
    // The result is ignored: the records themselves are examined next.
    let _ = poll(&mut waited, Some(&patience));
}

/// Packets that are being read for the queue.
struct TakenPackets<'a> {
    outlet: &'a mut Outlet,
    data: Vec<u8>,
    frames: Vec<Frame>,
    newest: Option<Time>,
    is_heard: bool,
}

impl<'a> TakenPackets<'a> {
    fn new(outlet: &'a mut Outlet) -> Self {
        Self {
            outlet,
            data: Vec::new(),
            frames: Vec::new(),
            newest: None,
            is_heard: true,
        }
    }

    /// Copies a packet out of the ring buffer.
    fn add(&mut self, packet: &roce_probe::PacketRecord<'_>) {
        if self.frames.len() == AT_ONCE {
            self.emit(Time(0));
        }
        let offset = self.data.len();
        packet.frame(&mut self.data);
        self.newest = self.newest.max(Some(packet.time));
        self.frames.push(Frame {
            time: packet.time,
            offset: place(offset),
            captured: place(self.data.len() - offset),
            original: packet.original,
            interface: self.outlet.interface(),
            fcs_bytes: 0,
            direction: match packet.direction {
                roce_probe::Direction::Ingress => Direction::Inbound,
                roce_probe::Direction::Egress => Direction::Outbound,
            },
            process: 0,
        });
    }

    fn emit(&mut self, until: Time) {
        let data = std::mem::take(&mut self.data).into();
        let batch = Batch::new(data, std::mem::take(&mut self.frames), Vec::new());
        self.is_heard &= self.outlet.frames(batch, until);
    }

    /// Emits the rest; `until` is before the stamps of all that follows. Whether anybody listens.
    fn end(mut self, until: Time) -> bool {
        self.emit(until);
        self.is_heard
    }
}

/// A place in a block, of some hundred kilobytes.
fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
