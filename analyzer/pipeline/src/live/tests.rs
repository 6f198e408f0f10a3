//! Live runs from seeds: devices with clocks that are set, losses, quiet times and early ends, parts, ticks, files, and sinks that fail.
//!
//! One seed is one world, in the time of its stamps: hours pass in milliseconds. Between two items that the analysis takes, the world adds
//! what its devices see, so the queue, the order and the losses are the same in each run of a seed. Threads of the analysis run as the
//! system schedules them, which may change no result.

#![expect(
    clippy::cast_possible_truncation,
    reason = "numbers that were drawn are small, or are cut to the fields of packets"
)]

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender, bounded};
use rand_pcg::rand_core::Rng as _;
use roce_capture::live::{Notes, Outlet};
use roce_capture::{Batch, Direction, Frame, Options as ReaderOptions, Reader};
use roce_files::FilePlace;
use roce_model::random::{Random, stream};
use roce_model::seeds::{LONGEST, below, each, once_in};
use roce_model::{Columns as _, FlowRow, Progress, Sink, SinkError, TimelineColumns};
use roce_wire::LinkType;

use super::*;
use crate::packet_files::About;
use crate::run::{Plan, Tick, run_live};

/// 2020-01-01, in ns since the epoch: far from the time of day, by which a quiet stream goes on.
const BEGIN: u64 = 1_577_836_800_000_000_000;
/// Most frames that a device sees at once.
const AT_ONCE: u64 = 40;

/// One thing that happens between two items of the stream.
#[derive(Clone, Copy, Debug)]
enum WorldStep {
    /// A device sees this number of frames.
    Frames(usize, u64),
    /// A device says that nothing came.
    Silence(usize),
    /// The kernel drops records of a device.
    Dropped(usize, u64),
    /// The clock of a device is set by nanoseconds.
    SetClock(usize, i64),
    /// The device vanishes.
    End(usize),
    /// Time passes.
    Pass(u64),
    /// Another thread adds a note to the stream.
    Note,
    /// The command asks for an interval, or a look with or without a snapshot.
    Tick(Tick),
    /// A part of the stream ends, and another one begins.
    Part,
}

/// Everything that a seed decides.
struct World {
    devices: usize,
    flows: u64,
    threads: u32,
    max_flows: usize,
    bin: Span,
    steps: VecDeque<WorldStep>,
    /// Clocks are never set: the stream is in order.
    is_steady: bool,
    /// The sinks fail at this call.
    fails_at: Option<u64>,
    /// The packets are kept, in at most this number of bytes; `u64::MAX`: all of them.
    keeps: Option<u64>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = stream(seed, "world");
        let random = &mut random;
        let devices = 1 + below(random, 4) as usize;
        let is_steady = !once_in(random, 3);
        let count = 20 + below(random, 150);
        // Some worlds send more at once than the queue takes.
        let is_crowded = once_in(random, 4);
        let mut steps = VecDeque::new();
        for _ in 0..count {
            let device = below(random, devices as u64) as usize;
            match below(random, 40) {
                0 => steps.push_back(WorldStep::Dropped(device, 1 + below(random, 1_000))),
                1 if !is_steady => {
                    let by = below(random, 4_000_000_000).cast_signed() - 2_000_000_000;
                    steps.push_back(WorldStep::SetClock(device, by));
                }
                2 if once_in(random, 4) => steps.push_back(WorldStep::End(device)),
                // Up to a minute without a packet.
                3 => steps.push_back(WorldStep::Pass(below(random, 60_000_000_000))),
                4 => steps.push_back(WorldStep::Note),
                5 | 6 => steps.push_back(WorldStep::Tick(Tick::Interval)),
                7 | 8 => {
                    let snapshot = once_in(random, 2);
                    steps.push_back(WorldStep::Tick(Tick::Look { snapshot }));
                }
                9 if once_in(random, 3) => steps.push_back(WorldStep::Part),
                10..=13 => steps.push_back(WorldStep::Silence(device)),
                14 if is_crowded => {
                    steps.extend((0..400).map(|_| WorldStep::Frames(device, 1 + below(random, 2))));
                }
                _ => steps.push_back(WorldStep::Frames(device, 1 + below(random, AT_ONCE))),
            }
        }
        Self {
            devices,
            flows: [1, 7, 60, 2_000][below(random, 4) as usize],
            threads: 2 + below(random, 3) as u32,
            max_flows: [1 << 16, 16][usize::from(once_in(random, 4))],
            bin: Span([1_000_000, 100_000, 10_000_000][below(random, 3) as usize]),
            steps,
            is_steady,
            fails_at: once_in(random, 5).then(|| below(random, 60)),
            keeps: once_in(random, 3).then(|| match below(random, 2) {
                0 => 4_096 + below(random, 200_000),
                _ => u64::MAX,
            }),
        }
    }
}

/// Counts of what the devices gave to the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ExpectedCounts {
    frames: u64,
    roce: u64,
    cnps: u64,
    lost: u64,
}

/// One device.
struct SimulatedDevice {
    /// `None`: it has ended.
    outlet: Option<Outlet>,
    /// Its clock before the world's, in ns.
    ahead: i64,
    /// Its last stamp.
    last: u64,
    /// Records that were lost since the last ones that the stream knows of.
    owed: u64,
}

/// The stream of devices, and the world that goes on before each item.
struct WorldFeed {
    live: LiveFeed,
    devices: Vec<SimulatedDevice>,
    notes: Notes,
    ticks: Sender<Tick>,
    random: Random,
    steps: VecDeque<WorldStep>,
    flows: u64,
    psns: BTreeMap<(usize, u64), u32>,
    now: u64,
    /// Given to the stream.
    expected: ExpectedCounts,
    /// Frames that came out of the stream, and the latest stamp of them.
    emitted: u64,
    latest: Time,
    is_steady: bool,
}

impl WorldFeed {
    /// A frame of RoCEv2 (IBTA A17): a WRITE Only, or a CNP; now and then another frame, which is no RoCE.
    fn frame(&mut self, device: usize) -> (Vec<u8>, ExpectedCounts) {
        let flow = below(&mut self.random, self.flows);
        let kind = below(&mut self.random, 30);
        let mut expected = ExpectedCounts {
            frames: 1,
            ..ExpectedCounts::default()
        };
        if kind == 0 {
            let mut bytes = vec![0; below(&mut self.random, 100) as usize];
            self.random.fill_bytes(&mut bytes);
            // An EtherType for experiments (IEEE 802), behind two addresses.
            if let Some(ether_type) = bytes.get_mut(12..14) {
                ether_type.copy_from_slice(&[0x88, 0xb5]);
            }
            return (bytes, expected);
        }
        expected.roce = 1;
        let psn = self.psns.entry((device, flow)).or_default();
        // PSNs are missing now and then. Each packet has another PSN, so none is an exact copy of another one.
        *psn += if kind == 1 { 3 } else { 1 };
        let psn = *psn & 0xff_ffff;
        let is_cnp = kind == 2;
        expected.cnps = u64::from(is_cnp);
        let mut transport = vec![if is_cnp { 0x81 } else { 0x0a }, 0x40, 0xff, 0xff, 0];
        transport.extend(&(flow as u32 + 16).to_be_bytes()[1..]);
        transport.push(0);
        transport.extend(&psn.to_be_bytes()[1..]);
        if is_cnp {
            // A CNP has 16 reserved bytes; these differ by the PSN, so that none is a copy.
            transport.extend([0; 16]);
        } else {
            transport.extend([0; 12]);
            transport.extend(64_u32.to_be_bytes());
            transport.extend([0; 64]);
        }
        transport.extend([0; 4]);
        let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        bytes.extend([0x45, if kind == 3 { 0x6b } else { 0x6a }]);
        bytes.extend((28 + transport.len() as u16).to_be_bytes());
        bytes.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
        // Each device sees hosts of its own.
        bytes.extend([10, device as u8, (flow >> 8) as u8, flow as u8]);
        bytes.extend([10, device as u8, 255, 1]);
        bytes.extend([0xc0, 0, 0x12, 0xb7]);
        bytes.extend((8 + transport.len() as u16).to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(transport);
        (bytes, expected)
    }

    /// Gives a batch of `count` frames to the queue, or 0: the news that none came.
    fn give(&mut self, device: usize, count: u64) {
        if self.devices[device].outlet.is_none() {
            return;
        }
        let (mut data, mut frames, mut sum) = (Vec::new(), Vec::new(), ExpectedCounts::default());
        for _ in 0..count {
            self.now += 1 + below(&mut self.random, 20_000);
            let (bytes, expected) = self.frame(device);
            let of = &mut self.devices[device];
            of.last = self.now.saturating_add_signed(of.ahead);
            frames.push(Frame {
                time: Time(of.last),
                offset: data.len() as u32,
                captured: bytes.len() as u32,
                original: bytes.len() as u32,
                interface: device as u32,
                fcs_bytes: 0,
                direction: Direction::default(),
                process: 0,
            });
            data.extend(bytes);
            sum.frames += expected.frames;
            sum.roce += expected.roce;
            sum.cnps += expected.cnps;
        }
        let overrun = |feed: &Self| feed.live.stream.counters().overrun();
        let before = overrun(self);
        let until = self.now.saturating_add_signed(self.devices[device].ahead);
        let batch = Batch::new(Bytes::from(data), frames, Vec::new());
        if let Some(outlet) = &mut self.devices[device].outlet {
            assert!(outlet.frames(batch, Time(until)), "the queue is read");
        }
        if overrun(self) > before {
            self.devices[device].owed += sum.frames;
        } else {
            self.expected.frames += sum.frames;
            self.expected.roce += sum.roce;
            self.expected.cnps += sum.cnps;
        }
    }

    /// Ends a device. It waits for room in the queue, on a thread of its own as a device's does.
    fn end(&mut self, device: usize) {
        if let Some(outlet) = self.devices[device].outlet.take() {
            std::thread::spawn(move || drop(outlet));
        }
    }

    /// Does what comes next. True: a part ends.
    fn step(&mut self) -> bool {
        match self.steps.pop_front() {
            Some(WorldStep::Frames(device, count)) => {
                self.give(device, count);
                // The others say how far they are, or have stopped for a while: the stream waits for them.
                for other in 0..self.devices.len() {
                    if other != device && !once_in(&mut self.random, 12) {
                        self.give(other, 0);
                    }
                }
            }
            Some(WorldStep::Silence(device)) => self.give(device, 0),
            Some(WorldStep::Dropped(device, records)) => {
                let of = &mut self.devices[device];
                if let Some(outlet) = &mut of.outlet {
                    outlet.dropped(records);
                    of.owed += records;
                }
            }
            Some(WorldStep::SetClock(device, by)) => self.devices[device].ahead += by,
            Some(WorldStep::End(device)) => self.end(device),
            Some(WorldStep::Pass(by)) => self.now += by,
            Some(WorldStep::Note) => {
                // A kind that nobody knows. Without room it is lost.
                let _ = self.notes.add(Time(self.now), 0x7fff_fff0, &[vec![1, 2, 3]]);
            }
            Some(WorldStep::Tick(tick)) => {
                // Nobody waits for ticks while another one is there.
                let _ = self.ticks.try_send(tick);
            }
            Some(WorldStep::Part) => return true,
            None => (0..self.devices.len()).for_each(|device| self.end(device)),
        }
        false
    }

    /// Looks at what the stream emits.
    fn look(&mut self, work: &Work) {
        self.emitted += work.run.frames().len() as u64;
        for frame in work.run.frames() {
            if self.is_steady {
                assert!(
                    frame.time >= self.latest,
                    "{:?} comes behind {:?}",
                    frame.time,
                    self.latest
                );
            }
            self.latest = self.latest.max(frame.time);
        }
    }
}

impl Feed for WorldFeed {
    fn next(&mut self) -> Next {
        // Several things happen before the analysis takes the next item.
        for _ in 0..=below(&mut self.random, 4) {
            if self.step() {
                return Next::Ended;
            }
        }
        let next = self.live.next();
        if let Next::Work(work) = &next {
            self.look(work);
        }
        next
    }

    fn recycle(&mut self, work: Work) {
        self.live.recycle(work);
    }
}

/// Counts what a sink gets, and fails at its call.
#[derive(Default)]
struct CountingSink {
    calls: u64,
    fails_at: Option<u64>,
    opened: u64,
    timeline_packets: u64,
    flow_packets: u64,
    complete: Time,
}

impl CountingSink {
    fn call(&mut self) -> Result<(), SinkError> {
        self.calls += 1;
        match self.fails_at {
            Some(at) if self.calls > at => Err("no space left on device".into()),
            _ => Ok(()),
        }
    }
}

impl Sink for CountingSink {
    fn flows_opened(&mut self, keys: &[roce_model::FlowKey]) -> Result<(), SinkError> {
        self.opened += keys.len() as u64;
        self.call()
    }

    fn interval(&mut self) -> Result<(), SinkError> {
        self.call()
    }

    fn progress(&mut self, progress: &Progress<'_>) -> Result<(), SinkError> {
        assert!(progress.complete >= self.complete, "time goes back");
        self.complete = progress.complete;
        self.call()
    }

    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        assert!(rows.len() > 0, "rows without rows");
        let packets = rows.packets.iter().flatten().map(|packets| u64::from(*packets));
        self.timeline_packets += packets.sum::<u64>();
        self.call()
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.flow_packets += rows.iter().map(|row| row.packets).sum::<u64>();
        self.call()
    }
}

/// The stream of a world's devices, which may be kept at `path`, and the ticks of its command.
fn started(seed: u64, world: &mut World, path: &Path) -> (WorldFeed, Receiver<Tick>) {
    let interface = |device: usize| Interface {
        link: LinkType::ETHERNET,
        name: Some(format!("eth{device}")),
        description: None,
        snaplen: 0,
        fcs_bytes: 0,
        quantum_ns: 1,
        dropped: Some(0),
        section: 0,
    };
    let interfaces: Vec<Interface> = (0..world.devices).map(interface).collect();
    let stop = Stop::default();
    let (devices, outlets) = Stream::start(Vec::new(), &interfaces, &stop).unwrap();
    let file = world.keeps.map(|_| {
        let about = About {
            place: FilePlace::named(path).unwrap(),
            overwrite: false,
            rotate: None,
            comment: String::new(),
            recorded: None,
        };
        PacketFiles::create(about, &interfaces).unwrap()
    });
    let mut live = LiveFeed::new(devices, "all", world.bin, file.into_iter().collect(), stop)
        .until(world.keeps.filter(|most| *most < u64::MAX));
    // Time is that of the stamps: nothing comes while the stream waits.
    live.patience = Duration::from_micros(100);
    let (ticks, ticking) = bounded(64);
    let device = |outlet| SimulatedDevice {
        outlet: Some(outlet),
        ahead: 0,
        last: BEGIN,
        owed: 0,
    };
    let feed = WorldFeed {
        notes: live.stream.notes(),
        live,
        devices: outlets.into_iter().map(device).collect(),
        ticks,
        random: stream(seed, "frames"),
        steps: std::mem::take(&mut world.steps),
        flows: world.flows,
        psns: BTreeMap::new(),
        now: BEGIN,
        expected: ExpectedCounts::default(),
        emitted: 0,
        latest: Time(0),
        is_steady: world.is_steady,
    };
    (feed, ticking)
}

/// Runs a world to its end.
fn live(seed: u64) {
    let mut world = World::new(seed);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kept.pcapng");
    let (mut feed, ticking) = started(seed, &mut world, &path);
    let mut plan = Plan::new(roce_flow::Options {
        bin: world.bin,
        max_flows: world.max_flows,
        ..roce_flow::Options::default()
    });
    plan.threads = world.threads;
    plan.match_taps = world.devices > 1;
    let (mut found, mut sums) = (ExpectedCounts::default(), CountingSink::default());
    loop {
        // Counts of the stream start again with each part, and ends are far away: the world ends parts.
        feed.live.begin_part(Instant::now() + LONGEST);
        let before = feed.emitted;
        let mut sink = CountingSink {
            fails_at: world.fails_at,
            calls: sums.calls,
            ..CountingSink::default()
        };
        let (done, _) = match run_live(feed, &plan, vec![&mut sink], &ticking) {
            Ok(done) => done,
            Err(error) => {
                assert!(error.to_string().contains("no space left"), "{error}");
                assert!(world.fails_at.is_some_and(|at| sink.calls > at));
                return;
            }
        };
        assert!(
            world.fails_at.is_none_or(|at| sink.calls <= at),
            "an error was dropped"
        );
        let totals = done.totals();
        let counted = done.feed.live.stream.summary();
        let emitted = done.feed.emitted - before;
        assert_eq!(
            (totals.frames, counted.frames),
            (emitted, emitted),
            "frames of a part"
        );
        assert_eq!(totals.copies, 0, "no packet is a copy");
        let of_flows = totals.roce_packets - totals.cnp;
        assert_eq!(sink.timeline_packets, of_flows, "packets in the timeline");
        assert_eq!(sink.flow_packets, of_flows, "packets in flows");
        found.frames += totals.frames;
        found.roce += totals.roce_packets;
        found.cnps += totals.cnp;
        found.lost += counted.lost_records;
        sums.calls = sink.calls;
        feed = done.feed;
        if feed.live.has_ended() {
            break;
        }
    }
    let owed = feed.devices.iter().map(|device| device.owed);
    feed.expected.lost = owed.sum();
    assert_eq!(found, feed.expected, "of all devices");
    assert!(feed.live.errors.is_empty(), "{:?}", feed.live.errors);
    if let Some(most) = world.keeps {
        kept(&path, most, found);
    }
}

/// A file has all frames and losses, or as many frames as fit.
fn kept(path: &Path, most: u64, found: ExpectedCounts) {
    let bytes = std::fs::metadata(path).unwrap().len();
    assert!(bytes <= most, "{bytes} bytes of {most}");
    let mut reader = Reader::open(path, &ReaderOptions::default()).unwrap();
    while let Some(batch) = reader.next_batch().unwrap() {
        reader.recycle(batch);
    }
    let summary = reader.summary();
    assert_eq!(summary.truncation, None);
    if most == u64::MAX {
        assert_eq!((summary.frames, summary.lost_records), (found.frames, found.lost));
    } else {
        assert!(summary.frames <= found.frames);
    }
}

#[test]
fn every_packet_of_a_live_run_is_counted_once_and_every_run_ends() {
    each(live);
}
