//! One device: opened by libpcap, or standard input; read in blocks.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use pcap::{Active, Capture, Linktype, Precision};
use roce_model::{Span, Time};
use roce_wire::LinkType;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{netdevice, sockopt};

use super::error::{Error, Options};
use super::outlet::{Outlet, Stop, now, settled};
use super::pipe::{self, Pipe, PipeState};
use crate::batch::Batch;
use crate::frame::{Direction, Frame, Interface, place};

/// The kernel hands over a block that is not full after this time.
pub(super) const BLOCK_TIME: Duration = Duration::from_millis(20);
/// Wait for frames of a device before it reports that it has none.
const PATIENCE: Duration = Duration::from_millis(20);
/// Bytes of a block of frames.
const BLOCK: usize = 256 << 10;
/// Frames that libpcap hands over at once.
const AT_ONCE: usize = 4096;
/// Cooked frames that name their interface: DLT_LINUX_SLL2.
const COOKED: Linktype = Linktype(276);

/// A device that is open, and not read yet.
pub struct Device {
    name: String,
    source: FrameSource,
    interface: Interface,
    is_rdma: bool,
    /// The kernel's number of a network interface; `any`, RDMA devices and standard input have none.
    index: Option<u32>,
}

/// Source of a device's frames.
enum FrameSource {
    Libpcap(Capture<Active>),
    /// Standard input.
    Pipe(Pipe),
}

impl Device {
    /// Opens an interface (`eth0`), all of them (`any`), an RDMA device (`mlx5_0`, `mlx5_0:1`), or standard input (`-`), to which another
    /// program captures.
    ///
    /// # Errors
    /// When there is none of that name, or libpcap cannot open it.
    pub fn open(name: &str, options: &Options) -> Result<Self, Error> {
        if name == pipe::NAME {
            return Self::open_pipe(options);
        }
        let is_rdma = is_rdma(name);
        if is_rdma && !rdma_support() {
            return Err(Error::NoRdma {
                device: name.to_owned(),
                version: version(),
            });
        }
        if !is_rdma && name != "any" && !Path::new("/sys/class/net").join(name).exists() {
            return Err(Error::Missing {
                device: name.to_owned(),
            });
        }
        let failed = |error: pcap::Error| Error::Open {
            device: name.to_owned(),
            reason: error.to_string(),
        };
        let number = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
        let block_time = i32::try_from(BLOCK_TIME.as_millis()).unwrap_or(i32::MAX);
        let mut handle = Capture::from_device(name)
            .map_err(failed)?
            .snaplen(number(options.snaplen))
            .buffer_size(number(options.buffer))
            // libpcap refuses promiscuous mode for `any`.
            .promisc(options.promiscuous && name != "any")
            .immediate_mode(false)
            .timeout(block_time)
            .precision(Precision::Nano)
            .open()
            .map_err(failed)?;
        if name == "any" && handle.list_datalinks().is_ok_and(|links| links.contains(&COOKED)) {
            handle.set_datalink(COOKED).map_err(failed)?;
        }
        if let Some(filter) = &options.filter {
            handle.filter(filter, true).map_err(|error| Error::Filter {
                device: name.to_owned(),
                reason: error.to_string(),
            })?;
        }
        let link = u16::try_from(handle.get_datalink().0).unwrap_or(u16::MAX);
        let interface = Interface {
            link: link_type(link),
            name: Some(name.to_owned()),
            description: None,
            snaplen: options.snaplen,
            fcs_bytes: 0,
            // libpcap's RDMA sniffer stamps with gettimeofday and refuses nanoseconds (pcap-rdmasniff.c).
            quantum_ns: if is_rdma { 1_000 } else { 1 },
            dropped: None,
            section: 0,
        };
        Ok(Self {
            name: name.to_owned(),
            index: netdevice::name_to_index(&handle, name).ok(),
            source: FrameSource::Libpcap(handle),
            interface,
            is_rdma,
        })
    }

    fn open_pipe(options: &Options) -> Result<Self, Error> {
        if options.filter.is_some() {
            return Err(Error::Filter {
                device: pipe::NAME.to_owned(),
                reason: "the program that writes to standard input filters".to_owned(),
            });
        }
        let pipe = Pipe::open()?;
        let interface = Interface {
            link: LinkType(pipe.link()),
            name: Some(pipe::NAME.to_owned()),
            description: None,
            snaplen: pipe.snaplen(),
            fcs_bytes: 0,
            quantum_ns: pipe.unit(),
            dropped: None,
            section: 0,
        };
        Ok(Self {
            name: pipe::NAME.to_owned(),
            source: FrameSource::Pipe(pipe),
            interface,
            is_rdma: false,
            index: None,
        })
    }

    /// Name, as the options give it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Description of the device as a capture file's interface.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// True if frames come from libpcap's RDMA sniffer.
    pub fn is_rdma(&self) -> bool {
        self.is_rdma
    }

    /// Reads the device until it is stopped, fails, or nobody reads the queue.
    pub(super) fn read(mut self, mut outlet: Outlet, stop: &Stop) {
        let unit = self.interface.quantum_ns;
        let done = match &mut self.source {
            FrameSource::Libpcap(handle) => {
                let reader = LibpcapReader {
                    name: &self.name,
                    handle,
                    index: self.index,
                    unit,
                };
                reader.read_all(&mut outlet, stop)
            }
            FrameSource::Pipe(pipe) => read_pipe(pipe, unit, &mut outlet, stop),
        };
        outlet.error = done.err();
    }
}

/// Reads the pipe until it ends, is stopped, or nobody reads the queue. Frames come in order: those that follow are later than the last one.
fn read_pipe(pipe: &mut Pipe, unit: u64, outlet: &mut Outlet, stop: &Stop) -> Result<(), Error> {
    let mut newest = Time(0);
    loop {
        let mut block = Block::new(outlet, unit);
        let state = pipe
            .look(PATIENCE, |packet| {
                let time = Time(packet.second.saturating_mul(Span::SECOND.0) + packet.part * unit);
                block.add_frame(time, packet.original, packet.data);
            })
            .map_err(|error| Error::Read {
                device: pipe::NAME.to_owned(),
                reason: error.to_string(),
            })?;
        newest = newest.max(block.newest);
        if !block.end(newest) || state == PipeState::Ended || stop.is_requested() {
            return Ok(());
        }
    }
}

/// Libpcap's handle of a device while it is read.
struct LibpcapReader<'a> {
    name: &'a str,
    handle: &'a mut Capture<Active>,
    /// The kernel's number of the interface, if it is one.
    index: Option<u32>,
    unit: u64,
}

impl LibpcapReader<'_> {
    fn read_all(self, outlet: &mut Outlet, stop: &Stop) -> Result<(), Error> {
        let mut drops = Drops::default();
        let mut newest = Time(0);
        let mut end: Option<End> = None;
        loop {
            if end.is_none() && stop.is_requested() {
                end = Some(End::now());
            }
            let until = settled();
            let ready = self.wait()?;
            let mut block = Block::new(outlet, self.unit);
            let mut more = false;
            if ready {
                let taken = self
                    .handle
                    .dispatch(Some(AT_ONCE), |packet| block.add(&packet))
                    .map_err(|error| self.unreadable(error))?;
                more = taken >= AT_ONCE;
                newest = newest.max(block.newest);
            }
            // Frames left in the kernel's buffer may have waited there for any time.
            if !block.end(if more { Time(0) } else { until }) {
                return Ok(());
            }
            outlet.dropped(drops.more(&self.handle.stats().map_err(|error| self.unreadable(error))?));
            if end.is_some_and(|end| end.is_reached(more, newest)) {
                return Ok(());
            }
        }
    }

    /// True if frames came within the patience. Only then libpcap is called: without frames it waits for some, whatever its timeout, and an
    /// interface that is set down has none (pcap-linux.c polls without end where the kernel has TPACKET_V3).
    fn wait(&self) -> Result<bool, Error> {
        let mut waited = [PollFd::new(&*self.handle, PollFlags::IN)];
        let patience = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(PATIENCE.subsec_nanos()),
        };
        let ready = match poll(&mut waited, Some(&patience)) {
            Ok(_) => waited[0].revents(),
            Err(Errno::INTR) => return Ok(false),
            Err(error) => return Err(self.unreadable(error)),
        };
        let Some(index) = self.index.filter(|_| !ready.contains(PollFlags::IN)) else {
            return Ok(!ready.is_empty());
        };
        // The socket of an interface that is set down has an error once, and frames again when it is up.
        if !ready.is_empty() {
            match sockopt::socket_error(&*self.handle) {
                Ok(Ok(()) | Err(Errno::NETDOWN)) => {}
                Ok(Err(error)) | Err(error) => return Err(self.unreadable(error)),
            }
        }
        // One that is removed is down before it is gone: its number says which, for a name can change.
        match netdevice::index_to_name(&*self.handle, index) {
            Err(Errno::NODEV | Errno::NXIO) => Err(self.unreadable("the interface was removed")),
            _ => Ok(false),
        }
    }

    fn unreadable(&self, reason: impl fmt::Display) -> Error {
        Error::Read {
            device: self.name.to_owned(),
            reason: reason.to_string(),
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("name", &self.name)
            .field("interface", &self.interface)
            .finish_non_exhaustive()
    }
}

/// Moments at which a stopped device ends.
#[derive(Clone, Copy, Debug)]
struct End {
    requested: Time,
    /// Moment by which the kernel has delivered its frames from before the stop.
    look: Instant,
}

impl End {
    fn now() -> Self {
        Self {
            requested: now(),
            look: Instant::now() + 2 * BLOCK_TIME,
        }
    }

    /// True if all frames up to then were read: `newest` is the latest stamp, and there are `more` in the kernel's buffer.
    fn is_reached(self, more: bool, newest: Time) -> bool {
        Instant::now() >= self.look && (!more || newest > self.requested)
    }
}

/// Frames that are being read into one block.
struct Block<'a> {
    outlet: &'a mut Outlet,
    /// Nanoseconds of one unit of libpcap's fraction of a second.
    unit: u64,
    data: BytesMut,
    frames: Vec<Frame>,
    newest: Time,
    is_heard: bool,
}

impl<'a> Block<'a> {
    fn new(outlet: &'a mut Outlet, unit: u64) -> Self {
        Self {
            outlet,
            unit,
            data: BytesMut::new(),
            frames: Vec::new(),
            newest: Time(0),
            is_heard: true,
        }
    }

    /// Copies a frame out of libpcap's buffer.
    #[inline]
    fn add(&mut self, packet: &pcap::Packet<'_>) {
        let header = packet.header;
        let second = u64::try_from(header.ts.tv_sec).unwrap_or_default();
        let part = u64::try_from(header.ts.tv_usec).unwrap_or_default();
        let time = Time(second.saturating_mul(Span::SECOND.0) + part * self.unit);
        self.add_frame(time, header.len, packet.data);
    }

    /// Copies a frame.
    #[inline]
    fn add_frame(&mut self, time: Time, original: u32, data: &[u8]) {
        if self.data.capacity() - self.data.len() < data.len() {
            self.full(data.len());
        }
        self.newest = self.newest.max(time);
        self.frames.push(Frame {
            time,
            offset: place(self.data.len()),
            captured: place(data.len()),
            original,
            interface: self.outlet.interface(),
            fcs_bytes: 0,
            direction: Direction::Unknown,
            process: 0,
        });
        self.data.extend_from_slice(data);
    }

    /// Makes room for `needed` bytes.
    #[cold]
    fn full(&mut self, needed: usize) {
        if !self.frames.is_empty() {
            // More frames of about this time follow, so no time is settled yet.
            self.send(Time(0));
        }
        self.data = self.outlet.again.try_recv().unwrap_or_default();
        self.data.reserve(BLOCK.max(needed));
    }

    fn send(&mut self, until: Time) {
        let batch = Batch {
            data: std::mem::take(&mut self.data).freeze(),
            frames: std::mem::take(&mut self.frames).into(),
            ..Batch::default()
        };
        self.is_heard &= self.outlet.frames(batch, until);
    }

    /// Emits the rest; false when nobody listens any more.
    fn end(mut self, until: Time) -> bool {
        self.send(until);
        self.is_heard
    }
}

/// libpcap's counts of drops: 32 bits that wrap.
#[derive(Debug, Default)]
struct Drops {
    kernel: u32,
    interface: u32,
}

impl Drops {
    /// Drops since the last count.
    fn more(&mut self, now: &pcap::Stat) -> u64 {
        let more = u64::from(now.dropped.wrapping_sub(self.kernel))
            + u64::from(now.if_dropped.wrapping_sub(self.interface));
        (self.kernel, self.interface) = (now.dropped, now.if_dropped);
        more
    }
}

/// The link type in a capture file of a DLT: the same number, but where systems differ in theirs (pcap-linktype(7)).
fn link_type(dlt: u16) -> LinkType {
    /// DLT_RAW of Linux.
    const RAW: u16 = 12;
    LinkType(if dlt == RAW { 101 } else { dlt })
}

/// True if a name is that of an RDMA device, with or without a port.
fn is_rdma(name: &str) -> bool {
    let device = name.split_once(':').map_or(name, |(device, _)| device);
    !device.is_empty() && Path::new("/sys/class/infiniband").join(device).exists()
}

/// True if libpcap was built with support for RDMA devices: then it has brought libibverbs into the process.
pub fn rdma_support() -> bool {
    std::fs::read_to_string("/proc/self/maps").is_ok_and(|maps| maps.contains("libibverbs"))
}

/// libpcap's version as its package says it. The crate does not tell: the file it was loaded from does.
pub fn version() -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let loaded = maps.lines().find_map(|line| {
        line.split_whitespace()
            .last()
            .filter(|path| path.contains("libpcap"))
    });
    let path = loaded.and_then(|path| std::fs::canonicalize(path).ok());
    path.map_or_else(|| "libpcap".to_owned(), |path| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drop_counts_wrap() {
        let mut drops = Drops {
            kernel: u32::MAX - 1,
            interface: 3,
        };
        let now = pcap::Stat {
            received: 0,
            dropped: 2,
            if_dropped: 5,
        };
        // From 2^32 - 2 to 2 are four, and two more of the interface.
        assert_eq!(drops.more(&now), 6);
        assert_eq!(drops.more(&now), 0);
    }
}
