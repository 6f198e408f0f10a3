//! The probe as a whole: opened, read, and gone without a trace.

use std::borrow::Cow;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use aya::maps::{Map, MapData, MapError, PerCpuArray, PerCpuHashMap, RingBuf};
use aya::programs::{TestRun, TestRunOptions};
use aya::{Ebpf, EbpfLoader};
use aya_log::EbpfLogger;
use roce_abi::{FLOWS, FlowCounts, Layout, Losses, Mode};
use roce_model::{HostChange, HostEvent};

use crate::capability;
use crate::clock::ClockOffset;
use crate::clsact::Clsact;
use crate::error::ProbeError;
use crate::interface;
use crate::kernel::{KernelTypes, LIBIBVERBS};
use crate::missing_capabilities::MissingCapabilities;
use crate::packet::{FlowCount, PacketRecord};
use crate::points::{self, SkippedPoint};
use crate::record::Records;

/// The kernel programs, built by `cargo xtask build-ebpf`. The context of probes differs between processors.
#[cfg(target_arch = "x86_64")]
static OBJECT: Option<&[u8]> = Some(aya::include_bytes_aligned!("../../../ebpf/object/roce-x86_64.o"));
#[cfg(not(target_arch = "x86_64"))]
static OBJECT: Option<&[u8]> = None;

/// Limit of the records read in one call, so that it ends even while new ones come.
const MAX_RECORDS: usize = 1 << 16;

/// Memory of counts by flow, over all processors, in bytes.
const COUNTS_BYTES: usize = 64 << 20;
/// Flows that are counted apart however many processors there are.
const MIN_FLOWS: usize = 1024;

/// Period of comparing the clocks: the realtime clock can be set.
const CLOCK_PERIOD: Duration = Duration::from_secs(1);

/// Packets that the classifier sends, besides counting all.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Packets {
    /// None.
    #[default]
    None,
    /// Those that tell of congestion or loss: CE, CNPs, NAKs, RNR NAKs.
    Congestion,
    /// All RoCE packets.
    All,
}

/// Options of the probe.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Interfaces that the classifier watches in both directions; none: no classifier.
    pub interfaces: Vec<String>,
    /// Packets that the classifier sends.
    pub packets: Packets,
    /// True to count packets by flow, for [`Probe::counts`]. Every processor has counts of its own,
    /// which take up to 64 MiB.
    pub counts: bool,
    /// Size of the ring buffer of packet records, in bytes; rounded up to a power of two.
    pub packet_buffer: u32,
    /// True if the life and troubles of queue pairs are reported.
    pub host_events: bool,
    /// File of libibverbs, for kernels without kprobes; `None`: the distributions' places. Processes
    /// that use another file (in a container, say) are not seen.
    pub library: Option<PathBuf>,
    /// Kernel programs other than the built-in ones, to try a new build: an object of `cargo xtask build-ebpf`.
    pub object: Option<PathBuf>,
    /// Uses filters even where the kernel has links (Linux 6.6 on): for tests.
    pub filters: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interfaces: Vec::new(),
            packets: Packets::None,
            counts: true,
            packet_buffer: 16 << 20,
            host_events: true,
            library: None,
            object: None,
            filters: false,
        }
    }
}

/// The open probe. Dropping it takes everything off. It may move to another thread.
pub struct Probe {
    // In this order they go: first the programs with their links and filters, then the qdiscs below them.
    ebpf: Ebpf,
    clsacts: Vec<Clsact>,
    packets: RingBuf<MapData>,
    events: RingBuf<MapData>,
    flows: PerCpuHashMap<MapData, roce_abi::FlowKey, FlowCounts>,
    losses: PerCpuArray<MapData, Losses>,
    records: Option<Records>,
    /// Reader of the programs' own diagnostics, for the logger of the crate `log`.
    diagnostics: Option<EbpfLogger<&'static dyn log::Log>>,
    /// The classifier is attached by filters, where it is.
    filters: bool,
    /// The classifier is attached somewhere.
    watches: bool,
    clock: ClockOffset,
    clock_taken: Instant,
    /// Losses that were already reported.
    reported_events: u64,
    reported_packets: u64,
}

impl Probe {
    /// Loads and attaches everything. What the kernel does not have is returned beside the probe: the rest works.
    ///
    /// # Errors
    /// Rights are missing (the error says which, and how to grant them), the kernel has no BTF or refuses the programs, or an
    /// interface does not exist.
    pub fn open(options: &Options) -> Result<(Self, Vec<SkippedPoint>), ProbeError> {
        let object = match &options.object {
            Some(path) => Cow::Owned(std::fs::read(path).map_err(|source| ProbeError::File {
                path: path.clone(),
                source,
            })?),
            None => Cow::Borrowed(OBJECT.ok_or(ProbeError::Architecture {
                architecture: std::env::consts::ARCH,
            })?),
        };
        if let Some(missing) = MissingCapabilities::find()? {
            return Err(ProbeError::Capabilities(missing));
        }
        let types = options.host_events.then(KernelTypes::read).transpose()?;
        let layout = types.as_ref().map_or(Layout::UNKNOWN, |types| types.layout);
        let no_reason = types.as_ref().map_or(u32::MAX, |types| types.no_reason);
        let mode = match options.packets {
            Packets::None => Mode::Count,
            Packets::Congestion => Mode::Congestion,
            Packets::All => Mode::Packets,
        } as u32;
        let mut ebpf = EbpfLoader::new()
            .btf(None)
            .override_global("MODE", &mode, true)
            .override_global("COUNTS", &u32::from(options.counts), true)
            .override_global("LAYOUT", &layout, true)
            .override_global("USER_LAYOUT", &LIBIBVERBS, true)
            .override_global("DROP_REASON_LEFT_OUT", &no_reason, true)
            .map_max_entries("PACKETS", options.packet_buffer)
            .map_max_entries("FLOW_COUNTS", if options.counts { flows() } else { 1 })
            .load(&object)
            .map_err(|source| ProbeError::Load(Box::new(source)))?;
        // Without the map there is no diagnostic in the object: nothing to read.
        let diagnostics = EbpfLogger::init(&mut ebpf).ok();
        let mut probe = Self {
            packets: map(&mut ebpf, "PACKETS")?,
            events: map(&mut ebpf, "EVENTS")?,
            flows: map(&mut ebpf, "FLOW_COUNTS")?,
            losses: map(&mut ebpf, "LOSSES")?,
            ebpf,
            clsacts: Vec::new(),
            records: types.map(Records::new),
            diagnostics,
            filters: options.filters || !interface::has_links(),
            watches: !options.interfaces.is_empty(),
            clock: ClockOffset::measure(),
            clock_taken: Instant::now(),
            reported_events: 0,
            reported_packets: 0,
        };
        interface::load(&mut probe.ebpf)?;
        for name in &options.interfaces {
            probe
                .clsacts
                .extend(interface::attach(&mut probe.ebpf, name, !probe.filters)?);
        }
        let skipped = if options.host_events {
            points::attach(&mut probe.ebpf, &layout, options.library.as_deref())
        } else {
            Vec::new()
        };
        Ok((probe, skipped))
    }

    /// Gives up the capabilities of the calling thread that reading does not need, for good. Threads that run already keep theirs:
    /// call it before there are others. Where filters are to be removed at the end, CAP_NET_ADMIN stays.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn drop_capabilities(&self) -> Result<(), ProbeError> {
        capability::drop_all(self.has_filters())
    }

    /// True if there are filters to be removed when it is dropped, which takes CAP_NET_ADMIN. Links go by themselves.
    pub fn has_filters(&self) -> bool {
        self.filters && self.watches
    }

    /// File descriptor that becomes readable when host events wait.
    pub fn events_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    /// File descriptor that becomes readable when packet records wait.
    pub fn packets_fd(&self) -> BorrowedFd<'_> {
        self.packets.as_fd()
    }

    /// The offset between the clocks as it was measured last, with its uncertainty.
    pub fn clock(&self) -> ClockOffset {
        self.clock
    }

    /// Adds the host events that wait to `into`, in the order in which they were reported. If some found no room, the last one
    /// says how many. What the kernel programs have to say about themselves goes to the logger of the crate `log`, if there is one.
    ///
    /// # Errors
    /// The losses cannot be read.
    pub fn events(&mut self, into: &mut Vec<HostEvent>) -> Result<(), ProbeError> {
        self.keep_time();
        if let Some(diagnostics) = &mut self.diagnostics {
            diagnostics.flush();
        }
        let Some(records) = &mut self.records else {
            return Ok(());
        };
        let mut last = None;
        for _ in 0..MAX_RECORDS {
            let Some(item) = self.events.next() else { break };
            if let Some(event) = records.event(&item, self.clock) {
                last = Some(event.time);
                into.push(event);
            }
        }
        let all = self.losses()?.events;
        let count = all.saturating_sub(self.reported_events);
        if count > 0 {
            self.reported_events = all;
            into.push(HostEvent {
                time: last.unwrap_or_else(|| self.clock.now()),
                device: None,
                process: None,
                what: HostChange::Lost { count },
            });
        }
        Ok(())
    }

    /// Emits the packet records that wait, in order, and returns how many packets found no room since it was called before.
    ///
    /// # Errors
    /// The losses cannot be read.
    pub fn packets(&mut self, mut each: impl FnMut(PacketRecord<'_>)) -> Result<u64, ProbeError> {
        self.keep_time();
        for _ in 0..MAX_RECORDS {
            let Some(item) = self.packets.next() else { break };
            if let Some(packet) = PacketRecord::parse(&item, self.clock) {
                each(packet);
            }
        }
        let lost = self.losses()?.packets;
        let count = lost.saturating_sub(self.reported_packets);
        self.reported_packets = lost;
        Ok(count)
    }

    /// Counts since the probe was opened, in no particular order.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn counts(&self) -> Result<Vec<FlowCount>, ProbeError> {
        let counted = self.flows.iter().map(|entry| {
            let (key, by_cpu) = entry.map_err(|source| failed("FLOW_COUNTS", source))?;
            Ok(FlowCount::sum(&key, by_cpu.iter()))
        });
        counted.collect()
    }

    /// Packets and events that were seen and not counted or not reported since the probe was opened.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn losses(&self) -> Result<Losses, ProbeError> {
        let by_cpu = self
            .losses
            .get(&0, 0)
            .map_err(|source| failed("LOSSES", source))?;
        let mut sum = Losses::default();
        for cpu in by_cpu.iter() {
            sum.untracked += cpu.untracked;
            sum.undecoded += cpu.undecoded;
            sum.packets += cpu.packets;
            sum.events += cpu.events;
        }
        Ok(sum)
    }

    /// Runs the classifier on a frame as if it had come in, `repeat` times, and returns the time that one took in the kernel: for
    /// tests and measurements.
    ///
    /// # Errors
    /// The kernel refuses: a frame has 14 bytes at least.
    pub fn try_frame(&mut self, frame: &[u8], repeat: u32) -> Result<Duration, ProbeError> {
        let name = "roce_ingress";
        let options = TestRunOptions {
            data_in: Some(frame),
            repeat,
            ..TestRunOptions::new()
        };
        let ran = interface::program(&mut self.ebpf, name)?.test_run(options);
        ran.map(|result| result.duration)
            .map_err(|source| ProbeError::Program {
                name,
                source: Box::new(source),
            })
    }

    fn keep_time(&mut self) {
        if self.clock_taken.elapsed() >= CLOCK_PERIOD {
            self.clock = ClockOffset::measure();
            self.clock_taken = Instant::now();
        }
    }
}

/// Flows that there is memory for on this machine's processors, those that may yet be plugged in among them.
fn flows() -> u32 {
    flows_on(aya::util::nr_cpus().unwrap_or(MIN_FLOWS))
}

fn flows_on(processors: usize) -> u32 {
    let fit = COUNTS_BYTES / (processors.max(1) * size_of::<FlowCounts>());
    u32::try_from(fit.max(MIN_FLOWS)).unwrap_or(FLOWS).min(FLOWS)
}

fn failed(name: &'static str, source: MapError) -> ProbeError {
    ProbeError::Map { name, source }
}

/// Takes a map out of the object.
fn map<T: TryFrom<Map, Error = MapError>>(ebpf: &mut Ebpf, name: &'static str) -> Result<T, ProbeError> {
    let map = ebpf.take_map(name).ok_or(ProbeError::Object { name })?;
    map.try_into().map_err(|source| failed(name, source))
}

const _: () = {
    const fn moves<T: Send>() {}
    moves::<Probe>();
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_take_the_same_memory_on_machines_of_any_size() {
        // 264 bytes a flow and processor; it was 65,536 flows on each of them, 4 GB with 256.
        assert_eq!(size_of::<FlowCounts>(), 264);
        assert_eq!(flows_on(2), 65_536);
        assert_eq!(flows_on(64), 3_971);
        assert_eq!(flows_on(256), 1_024);
        for processors in [1, 2, 64, 128, 256] {
            assert!(flows_on(processors) as usize * processors * 264 < 70 << 20);
        }
    }
}
