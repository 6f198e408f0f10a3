//! A run of MRC: its state, and what happens when.

use roce_capture::Direction;
use roce_wire::Qpn;

use crate::Error;
use crate::engine::events::Events;
use crate::engine::rng::Stream;
use crate::mrc::evs::Evs;
use crate::mrc::log::{HeardSack, LeftPath, PairLog, Transmission};
use crate::mrc::receiver::{Receiver, Sack};
use crate::mrc::sender::{Limits, Sender};
use crate::network::topology::{Topology, number};
use crate::record::frame::MrcPacket;
use crate::record::observer::{Observer, Output};
use crate::scenario::{FlowTable, Mrc, Pattern, PsnChoice, QpnChoice, Scenario};
use crate::units::Picos;

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// An application posts a message.
    Post {
        pair: u32,
    },
    /// A queue pair may send.
    Kick {
        pair: u32,
    },
    /// A data packet's first bit leaves its port.
    Leave {
        sent: u32,
    },
    /// It is before the last hop's queue.
    LastHop {
        sent: u32,
    },
    /// Its last bit has come.
    Arrive {
        sent: u32,
    },
    /// A control packet leaves, or comes.
    ControlLeaves {
        control: u32,
    },
    ControlArrives {
        control: u32,
    },
    /// A timer of a queue pair may be due.
    Timer {
        pair: u32,
    },
    /// An EV that was left is probed.
    Probe {
        pair: u32,
        ev: u32,
    },
    /// A port goes down or up.
    PortDown {
        port: u32,
    },
    PortUp {
        port: u32,
    },
}

/// A requestor's and a responder's queue pair, joined.
#[derive(Debug)]
pub(crate) struct Pair {
    pub table: usize,
    pub name: String,
    /// Requestor and responder.
    pub hosts: [u32; 2],
    pub qpns: [Qpn; 2],
    pub first_psn: u32,
    pub sender: Sender,
    pub receiver: Receiver,
    pub posted: u64,
    /// Messages with immediate data.
    pub immediate: u32,
    pub probes: u16,
    /// EVs of the responder's answers, one for each plane.
    pub control_evs: Vec<u32>,
    /// When the events that wait for it are due.
    pub kick_at: Picos,
    pub timer_at: Picos,
    pub log: PairLog,
}

/// ControlMeaning of a control packet for who receives it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ControlMeaning {
    /// A SACK: its EV, and its penalty.
    Sack {
        pair: u32,
        made: Picos,
        sack: Sack,
        entropy: u32,
        skip: u8,
        penalty: u8,
        probe: bool,
    },
    Nack {
        pair: u32,
        index: u64,
        reason: u8,
        entropy: u32,
        sent: u32,
    },
    Probe {
        pair: u32,
        probe: u16,
        ev: u32,
        stamp: u16,
    },
    /// Ports of a host that can be reached.
    Ports { host: u32, mask: u32, request: u32 },
    /// A probe that finds nobody, an answer that says nothing.
    Nothing,
}

/// A control packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Control {
    pub hosts: [u32; 2],
    pub plane: u32,
    /// The path of a probe; others have paths of their own.
    pub path: Option<u32>,
    pub packet: MrcPacket,
    pub meaning: ControlMeaning,
}

/// Ports of a NIC.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostPort {
    /// End of what it sends.
    pub free: Picos,
    /// End of the queue before it, at the switch.
    pub queue_free: Picos,
    pub down: bool,
}

/// A run of MRC.
pub(crate) struct MrcRun<'s> {
    pub scenario: &'s Scenario,
    pub topology: Topology,
    pub events: Events<Event>,
    pub now: Picos,
    pub pairs: Vec<Pair>,
    /// By host and plane.
    pub ports: Vec<HostPort>,
    taps: Vec<Vec<u32>>,
    /// The delay of each plane's paths beyond the cables.
    pub delays: Vec<Picos>,
    /// Ports of a host that another one believes to be reachable, by both.
    pub believed: Vec<u32>,
    pub sent: Vec<Transmission>,
    pub controls: Vec<Control>,
    pub left: Vec<LeftPath>,
    pub heard: Vec<HeardSack>,
    pub observer: Observer,
    pub chance: Stream,
    pub requests: u32,
}

/// All ports of a NIC, up.
const ALL_PORTS: u32 = 0xff;

impl<'s> MrcRun<'s> {
    pub(crate) fn new(scenario: &'s Scenario, outputs: Vec<(String, Output)>) -> Result<Self, Error> {
        let topology = Topology::hosts_alone(&scenario.network);
        let (hosts, planes) = (topology.hosts.len(), scenario.mrc.planes as usize);
        let mut numbers = Stream::new(scenario.seed, "mrc paths", 0);
        let count = planes * scenario.mrc.paths as usize;
        let skew = scenario.mrc.skew.0;
        let delays = (0..count).map(|_| Picos(numbers.below(skew.saturating_add(1))));
        let mut run = Self {
            scenario,
            events: Events::default(),
            now: Picos::ZERO,
            pairs: Vec::new(),
            ports: vec![HostPort::default(); hosts * planes],
            taps: vec![Vec::new(); hosts * planes],
            delays: delays.collect(),
            believed: vec![ALL_PORTS; hosts * hosts],
            sent: Vec::new(),
            controls: Vec::new(),
            left: Vec::new(),
            heard: Vec::new(),
            observer: Observer::default(),
            chance: Stream::new(scenario.seed, "mrc fabric", 0),
            requests: 0,
            topology,
        };
        for (number, tap) in (0..).zip(&scenario.tap) {
            for (host, plane) in run.tap_ports(&tap.at)? {
                let port = run.port(host, plane);
                run.taps[port].push(number);
            }
        }
        let mut numbers = Stream::new(scenario.seed, "numbers", 0);
        for (index, table) in scenario.flow.iter().enumerate() {
            run.connect(index, table, &mut numbers)?;
        }
        for (place, port) in (0..).zip(&scenario.mrc.port) {
            run.topology.host(&port.host)?;
            run.events.at(port.down, Event::PortDown { port: place });
            if let Some(up) = port.up {
                run.events.at(up, Event::PortUp { port: place });
            }
        }
        for responder in &scenario.mrc.responder {
            run.topology.host(&responder.host)?;
        }
        run.observer = Observer::new(scenario, 0, outputs)?;
        Ok(run)
    }

    /// The ports of a tap: all of `h1`, or that of `h1:p2`.
    pub(crate) fn tap_ports(&self, at: &str) -> Result<Vec<(u32, u32)>, Error> {
        let planes = self.scenario.mrc.planes;
        let Some((host, plane)) = at.split_once(':') else {
            let host = self.topology.host(at)?;
            return Ok((0..planes).map(|plane| (host, plane)).collect());
        };
        let plane = plane.strip_prefix('p').and_then(|plane| plane.parse().ok());
        match plane.filter(|plane| *plane < planes) {
            Some(plane) => Ok(vec![(self.topology.host(host)?, plane)]),
            None => Err(Error::Scenario(format!(
                "tap at \"{at}\": with MRC give a host (h1), or its port on a plane (h1:p0 to h1:p{})",
                planes - 1
            ))),
        }
    }

    /// The place of a host's port on a plane.
    pub(crate) fn port(&self, host: u32, plane: u32) -> usize {
        host as usize * self.scenario.mrc.planes as usize + plane as usize
    }

    fn connect(&mut self, index: usize, table: &FlowTable, numbers: &mut Stream) -> Result<(), Error> {
        let from = self.topology.hosts_of(&table.from)?;
        let to = match table.pattern {
            Pattern::Ring => from.clone(),
            _ => self.topology.hosts_of(&table.to)?,
        };
        for hosts in crate::workload::connect::pairs(table.pattern, &from, &to) {
            for _ in 0..table.qps {
                self.join(index, table, hosts, numbers);
            }
        }
        Ok(())
    }

    fn join(&mut self, index: usize, table: &FlowTable, hosts: (u32, u32), numbers: &mut Stream) {
        let place = self.pairs.len();
        let qpn = |numbers: &mut Stream| match table.qpn {
            QpnChoice::Random => Qpn::new(0x100 + numbers.below(0xff_fe00) as u32),
            QpnChoice::Sequential | QpnChoice::Same => Qpn::new(0x11 + number(place)),
        };
        let qpns = [qpn(numbers), qpn(numbers)];
        let first_psn = match table.psn {
            PsnChoice::Random => numbers.below(1 << 24) as u32,
            PsnChoice::Zero => 0,
        };
        let narrow = !self.scenario.network.ipv6;
        let mrc = &self.scenario.mrc;
        let evs = Evs::new(
            mrc.evs,
            mrc.planes,
            mrc.paths,
            narrow,
            Stream::new(self.scenario.seed, "mrc evs", place),
        );
        let opens = table
            .begin
            .plus(Picos(numbers.below(table.jitter.0.saturating_add(1))));
        let mask = if narrow { 0xffff } else { u64::from(u32::MAX) };
        self.pairs.push(Pair {
            table: index,
            name: table.name.clone().unwrap_or_else(|| format!("flow{index}")),
            hosts: [hosts.0, hosts.1],
            qpns,
            first_psn,
            sender: Sender::new(limits(mrc, self.scenario.nic.mtu), evs),
            receiver: Receiver::default(),
            posted: 0,
            immediate: 0,
            probes: 0,
            control_evs: (0..mrc.planes)
                .map(|_| (numbers.bits() & mask) as u32 | 0x2000)
                .collect(),
            kick_at: Picos::NEVER,
            timer_at: Picos::NEVER,
            log: PairLog::default(),
        });
        let posts = match table.interval {
            Some(_) => 1,
            None => u64::from(table.outstanding).min(table.count.unwrap_or(u64::MAX)),
        };
        for _ in 0..posts {
            self.events.at(opens, Event::Post { pair: number(place) });
        }
    }

    /// A packet passes the taps of a host's port. Returns those that recorded it, one bit each.
    pub(crate) fn pass(&mut self, host: u32, plane: u32, packet: MrcPacket, direction: Direction) -> u64 {
        let port = self.port(host, plane);
        self.observer
            .pass_mrc(&self.taps[port], packet, self.now, direction)
    }

    /// Lets everything happen.
    pub(crate) fn go(&mut self) {
        while let Some((time, event)) = self.events.next(self.scenario.duration) {
            self.now = time;
            self.happen(event);
            if self.observer.has_failed() {
                return;
            }
        }
        self.now = self.scenario.duration;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Post { pair } => self.post(pair),
            Event::Kick { pair } => {
                self.pairs[pair as usize].kick_at = Picos::NEVER;
                self.kick(pair);
            }
            Event::Leave { sent } => self.leave(sent),
            Event::LastHop { sent } => self.last_hop(sent),
            Event::Arrive { sent } => self.arrive(sent),
            Event::ControlLeaves { control } => self.control_leaves(control),
            Event::ControlArrives { control } => self.control_arrives(control),
            Event::Timer { pair } => self.timer(pair),
            Event::Probe { pair, ev } => self.probe_left(pair, ev),
            Event::PortDown { port } => self.port_changes(port, true),
            Event::PortUp { port } => self.port_changes(port, false),
        }
    }
}

fn limits(mrc: &Mrc, mtu: u32) -> Limits {
    Limits {
        guard: u64::from(mrc.guard),
        // 1.024 us x 2^timeout.
        timeout: Picos::from_nanos(1_024 << mrc.timeout.min(31)),
        retries: mrc.retries,
        range: u64::from(mrc.mpr) * 128,
        window: mrc.window.0,
        mtu: u64::from(mtu),
        losses_to_leave: mrc.losses_to_leave,
    }
}
