//! Roots of pauses: each pause is followed from the port that it stopped to the queue or host that made it necessary.
//!
//! A pause is sent because one egress queue of the switch holds most of the bytes that came in by a port. That queue is the root
//! where its port was allowed to send for most of the pause and several senders contended for it; where it was itself paused, its
//! own pauses lead on. Senders contend for a queue in a network with slow or storming hosts if the queue also makes pauses in a
//! second run of the scenario, in which those hosts are healthy.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::names::Names;
use crate::engine::events::PortId;
use crate::engine::log::PortPause;
use crate::engine::run::Simulation;
use crate::network::cause::{Cause, HeldQueue};
use crate::network::topology::{LINK_CLASS, Node};
use crate::scenario::Scenario;
use crate::truth::{FlowShare, OtherRoot, Pause, PauseRoot, PauseRootKind, PausedPort};
use crate::units::Picos;

/// Pauses of a flow with this much time or less between them are one stretch.
const STRETCH: Picos = Picos::from_nanos(1_000_000);
/// A queue whose pauses last a tenth as long in a network of healthy hosts makes some by itself.
const PART: u64 = 10;

/// Time of pauses whose root each queue is, in a run of the scenario whose hosts neither drain slowly nor storm. `None`: the scenario
/// has no such host.
fn without_faults(scenario: &Scenario) -> Option<HashMap<PortId, u64>> {
    let faulty = !scenario.pause.is_empty() || scenario.host.iter().any(|host| host.drain.is_some());
    if !faulty {
        return None;
    }
    let mut healthy = scenario.clone();
    healthy.pause.clear();
    healthy.tap.clear();
    for host in &mut healthy.host {
        host.drain = None;
    }
    let mut simulation = Simulation::new(&healthy, Vec::new()).ok()?;
    simulation.go();
    let roots = Roots::new(&simulation);
    let mut paused: HashMap<PortId, u64> = HashMap::new();
    for (place, pause) in simulation.log.pauses.iter().enumerate() {
        if let Some(way) = roots.way(place) {
            *paused.entry(way.root).or_default() += span(&simulation, pause).0;
        }
    }
    Some(paused)
}

/// Time that the queue of each port kept others paused.
fn paused_by_queue(simulation: &Simulation<'_>) -> HashMap<PortId, u64> {
    let mut paused: HashMap<PortId, u64> = HashMap::new();
    for pause in &simulation.log.pauses {
        if let Some(held) = held(simulation, pause) {
            *paused.entry(held.egress).or_default() += span(simulation, pause).0;
        }
    }
    paused
}

fn cause<'a>(simulation: &'a Simulation<'_>, pause: &PortPause) -> Option<&'a Cause> {
    simulation.log.causes.get(pause.cause? as usize)
}

fn held<'a>(simulation: &'a Simulation<'_>, pause: &PortPause) -> Option<&'a HeldQueue> {
    match cause(simulation, pause)? {
        Cause::Queue(held) => Some(held),
        Cause::Slow | Cause::Storm => None,
    }
}

fn end(simulation: &Simulation<'_>, pause: &PortPause) -> Picos {
    pause.end.unwrap_or(simulation.now)
}

fn span(simulation: &Simulation<'_>, pause: &PortPause) -> Picos {
    end(simulation, pause).since(pause.begin)
}

/// Where a pause leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// A port was itself paused: by this pause.
    Onwards(usize),
    /// The root is the queue of this port, or the host that it belongs to.
    Root(PauseRootKind, PortId),
}

struct Roots<'a> {
    simulation: &'a Simulation<'a>,
    /// Pauses by port and class, in the order of time.
    by_port: HashMap<(PortId, u8), Vec<usize>>,
    /// Queues that would pause others even if all hosts were healthy; `None`: all hosts are.
    contended: Option<BTreeSet<PortId>>,
}

/// The way from a pause to its root.
struct Way {
    pauses: Vec<usize>,
    kind: PauseRootKind,
    root: PortId,
    circle: Vec<PortId>,
    also: BTreeSet<(PauseRootKind, PortId)>,
}

impl<'a> Roots<'a> {
    fn new(simulation: &'a Simulation<'a>) -> Self {
        let mut by_port: HashMap<(PortId, u8), Vec<usize>> = HashMap::new();
        for (place, pause) in simulation.log.pauses.iter().enumerate() {
            by_port.entry((pause.port, pause.class)).or_default().push(place);
        }
        let contended = without_faults(simulation.scenario).map(|healthy| {
            let paused = paused_by_queue(simulation).into_iter();
            let own = paused.filter(|(port, time)| healthy.get(port).unwrap_or(&0) * PART >= *time);
            own.map(|(port, _)| port).collect()
        });
        Self {
            simulation,
            by_port,
            contended,
        }
    }

    fn pause(&self, place: usize) -> &'a PortPause {
        &self.simulation.log.pauses[place]
    }

    /// The queue that keeps a pause up: at its begin, or at the end of the simulation if the pause has none.
    fn egress(&self, pause: &PortPause) -> Option<PortId> {
        let topology = &self.simulation.topology;
        let ingress = topology.ports[pause.port.index()].peer;
        if pause.end.is_none()
            && let Node::Switch(switch) = topology.ports[ingress.index()].node
            && let Some((egress, _)) = self.simulation.holder(switch, ingress, pause.class)
        {
            return Some(egress);
        }
        Some(held(self.simulation, pause)?.egress)
    }

    /// The pause of a port that overlaps a time longest, and the time of all that do.
    fn overlap(&self, port: PortId, class: u8, begin: Picos, until: Picos) -> (Option<usize>, Picos) {
        let (mut longest, mut total) = ((None, Picos::ZERO), Picos::ZERO);
        let classes: BTreeSet<u8> = [class, LINK_CLASS].into();
        for class in classes {
            let Some(own) = self.by_port.get(&(port, class)) else {
                continue;
            };
            let first = own.partition_point(|place| end(self.simulation, self.pause(*place)) <= begin);
            let own = own[first..].iter();
            for place in own.take_while(|place| self.pause(**place).begin < until) {
                let pause = self.pause(*place);
                let common = end(self.simulation, pause)
                    .min(until)
                    .since(pause.begin.max(begin));
                total = total.plus(common);
                if common > longest.1 {
                    longest = (Some(*place), common);
                }
            }
        }
        (longest.0, total)
    }

    /// The last pause of a port that began before a time.
    fn before(&self, port: PortId, class: u8, time: Picos) -> Option<usize> {
        let own = self.by_port.get(&(port, class))?;
        let count = own.partition_point(|place| self.pause(*place).begin < time);
        own[..count].last().copied()
    }

    /// Where a pause leads to, and another reason that held it up for a tenth of its time or more.
    fn step(&self, place: usize) -> Option<(Step, Option<Step>)> {
        let pause = self.pause(place);
        let sender = self.simulation.topology.ports[pause.port.index()].peer;
        let held = match cause(self.simulation, pause)? {
            Cause::Slow => return Some((Step::Root(PauseRootKind::SlowReceiver, sender), None)),
            Cause::Storm => return Some((Step::Root(PauseRootKind::PauseStorm, sender), None)),
            Cause::Queue(held) => held,
        };
        let egress = self.egress(pause)?;
        let until = end(self.simulation, pause);
        let own = Step::Root(PauseRootKind::Contention, egress);
        let (longest, paused) = self.overlap(egress, pause.class, pause.begin, until);
        let contends = match &self.contended {
            Some(ports) => ports.contains(&egress),
            None => held.overloaded || longest.is_none(),
        };
        let Some(longest) = longest else {
            // A queue that only a fault downstream fills can be let go before this pause begins.
            let earlier = (!contends).then(|| self.before(egress, pause.class, pause.begin));
            return Some((earlier.flatten().map_or(own, Step::Onwards), None));
        };
        let time = until.since(pause.begin);
        let never_ends = pause.end.is_none() && self.pause(longest).end.is_none();
        let onwards = Step::Onwards(longest);
        Some(if paused.0 * 2 >= time.0 || !contends || never_ends {
            (onwards, (contends && !never_ends).then_some(own))
        } else {
            (own, (paused.0 * PART >= time.0).then_some(onwards))
        })
    }

    /// Follows a pause to its root.
    fn way(&self, place: usize) -> Option<Way> {
        let mut way = Way {
            pauses: vec![place],
            kind: PauseRootKind::Contention,
            root: self.pause(place).port,
            circle: Vec::new(),
            also: BTreeSet::new(),
        };
        loop {
            let last = *way.pauses.last()?;
            let (step, other) = self.step(last)?;
            match other {
                Some(Step::Root(kind, port)) => {
                    way.also.insert((kind, port));
                }
                Some(Step::Onwards(next)) => {
                    if let Some((Step::Root(kind, port), _)) = self.step(next) {
                        way.also.insert((kind, port));
                    }
                }
                None => {}
            }
            match step {
                Step::Root(kind, port) => {
                    (way.kind, way.root) = (kind, port);
                    way.also.remove(&(kind, port));
                    return Some(way);
                }
                Step::Onwards(next) => {
                    let port = self.pause(next).port;
                    let mut known = way.pauses.iter();
                    if let Some(first) = known.position(|place| self.pause(*place).port == port) {
                        self.close(&mut way, first);
                        return Some(way);
                    }
                    way.pauses.push(next);
                }
            }
        }
    }

    /// A way has come back to a port that is in it: a deadlock, if none of the circle's ports can ever send again.
    fn close(&self, way: &mut Way, first: usize) {
        let circle = &way.pauses[first..];
        let xon = self.simulation.scenario.switch.xon.0;
        let stuck = circle.iter().all(|place| {
            let pause = self.pause(*place);
            let ingress = self.simulation.topology.ports[pause.port.index()].peer;
            let Node::Switch(switch) = self.simulation.topology.ports[ingress.index()].node else {
                return false;
            };
            let holder = self.simulation.holder(switch, ingress, pause.class);
            pause.end.is_none() && holder.is_some_and(|(_, bytes)| bytes > xon)
        });
        let mut ports: Vec<PortId> = circle.iter().map(|place| self.pause(*place).port).collect();
        if stuck {
            ports.sort_by_key(|port| self.simulation.topology.place(*port));
            way.kind = PauseRootKind::Deadlock;
            way.root = ports.first().copied().unwrap_or(way.root);
            way.circle = ports;
        } else if let Some(last) = way.pauses.last() {
            // It opened again: the queue where it was closed is as good a root as any of the circle's.
            way.root = self.egress(self.pause(*last)).unwrap_or(way.root);
        }
    }

    /// Bytes of flows in the root's queue when a way's last pause began; of a deadlock those in all queues of the circle.
    fn bytes(&self, way: &Way) -> Vec<(u32, u64)> {
        let last = way.pauses.last().map(|place| self.pause(*place));
        let own = last.and_then(|pause| held(self.simulation, pause));
        match way.kind {
            PauseRootKind::Contention => own.map(|held| held.bytes.clone()).unwrap_or_default(),
            PauseRootKind::SlowReceiver | PauseRootKind::PauseStorm => Vec::new(),
            PauseRootKind::Deadlock => {
                let ports = way
                    .circle
                    .iter()
                    .map(|port| &self.simulation.topology.ports[port.index()]);
                let packets = ports.flat_map(|port| port.queues.iter().flatten());
                let packets = packets.map(|id| self.simulation.pool.packet(*id));
                let data = packets.filter(|packet| packet.kind.is_data());
                data.map(|packet| (packet.flow, u64::from(packet.bytes)))
                    .collect()
            }
        }
    }
}

/// Facts collected of one stretch.
struct Stretch {
    row: PauseRoot,
    ports: Vec<PortId>,
    root: PortId,
    bytes: BTreeMap<u32, u64>,
    also: BTreeSet<(PauseRootKind, PortId)>,
}

/// The roots of all pauses at which data of a flow waited. `pauses` has them in the order of the log.
pub(super) fn pause_roots(simulation: &Simulation<'_>, names: &Names, pauses: &[Pause]) -> Vec<PauseRoot> {
    if simulation.log.pauses.is_empty() {
        return Vec::new();
    }
    let roots = Roots::new(simulation);
    let mut open: BTreeMap<u32, Vec<Stretch>> = BTreeMap::new();
    for (place, pause) in simulation.log.pauses.iter().enumerate() {
        if pause.waiting.is_empty() {
            continue;
        }
        let Some(way) = roots.way(place) else { continue };
        let ports: Vec<PortId> = way.pauses.iter().map(|place| roots.pause(*place).port).collect();
        let bytes = roots.bytes(&way);
        for flow in &pause.waiting {
            let stretches = open.entry(*flow).or_default();
            let known = stretches.iter_mut().rev().find(|stretch| {
                (stretch.row.kind, stretch.root, &stretch.ports) == (way.kind, way.root, &ports)
                    && pause.begin.nanos() <= stretch.row.end.saturating_add(STRETCH.nanos())
            });
            let stretch = if let Some(known) = known {
                known
            } else {
                stretches.push(begun(simulation, names, *flow, pause, &way, &ports));
                let Some(last) = stretches.last_mut() else {
                    continue;
                };
                last
            };
            let row = &mut stretch.row;
            row.end = row.end.max(end(simulation, pause).nanos());
            row.paused_ns += span(simulation, pause).nanos();
            row.pauses += 1;
            for (port, place) in row.chain.iter_mut().zip(&way.pauses) {
                if let Some(pause) = pauses.get(*place) {
                    port.recorded_by.extend(pause.recorded_by.iter().cloned());
                    port.recorded_by.sort_unstable();
                    port.recorded_by.dedup();
                }
            }
            for (flow, bytes) in &bytes {
                *stretch.bytes.entry(*flow).or_default() += bytes;
            }
            stretch.also.extend(&way.also);
        }
    }
    let stretches = open
        .into_iter()
        .flat_map(|(flow, own)| own.into_iter().map(move |one| (flow, one)));
    let mut rows: Vec<PauseRoot> = stretches
        .map(|(flow, stretch)| finished(simulation, names, flow, stretch))
        .collect();
    rows.sort_by(|a, b| (a.begin, &a.flow_id, a.end).cmp(&(b.begin, &b.flow_id, b.end)));
    rows
}

fn begun(
    simulation: &Simulation<'_>,
    names: &Names,
    flow: u32,
    pause: &PortPause,
    way: &Way,
    ports: &[PortId],
) -> Stretch {
    let place = |port: &PortId| simulation.topology.place(*port);
    let chain = ports.iter().map(|port| PausedPort {
        place: place(port),
        recorded_by: Vec::new(),
    });
    Stretch {
        row: PauseRoot {
            flow_id: names.flow(flow),
            begin: pause.begin.nanos(),
            end: end(simulation, pause).nanos(),
            paused_ns: 0,
            pauses: 0,
            chain: chain.collect(),
            kind: way.kind,
            root: place(&way.root),
            circle: way.circle.iter().map(place).collect(),
            shares: Vec::new(),
            contributes: false,
            also: Vec::new(),
        },
        ports: ports.to_vec(),
        root: way.root,
        bytes: BTreeMap::new(),
        also: BTreeSet::new(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "bytes of queues stay below 2^53")]
fn finished(simulation: &Simulation<'_>, names: &Names, flow: u32, stretch: Stretch) -> PauseRoot {
    let mut row = stretch.row;
    row.contributes = match row.kind {
        PauseRootKind::Contention | PauseRootKind::Deadlock => stretch.bytes.contains_key(&flow),
        PauseRootKind::SlowReceiver | PauseRootKind::PauseStorm => {
            let to = simulation.hosts_of_flow(flow).map(|(_, to)| Node::Host(to));
            to == Some(simulation.topology.ports[stretch.root.index()].node)
        }
    };
    if row.kind == PauseRootKind::Contention {
        let total: u64 = stretch.bytes.values().sum();
        let mut bytes: Vec<(u32, u64)> = stretch.bytes.into_iter().collect();
        bytes.sort_by_key(|(flow, bytes)| (std::cmp::Reverse(*bytes), *flow));
        let shares = bytes.into_iter().map(|(flow, bytes)| FlowShare {
            flow_id: names.flow(flow),
            share: bytes as f64 / total.max(1) as f64,
        });
        row.shares = shares.collect();
    }
    let other = stretch
        .also
        .into_iter()
        .filter(|(kind, port)| (*kind, *port) != (row.kind, stretch.root));
    let also = other.map(|(kind, port)| OtherRoot {
        kind,
        root: simulation.topology.place(port),
    });
    row.also = also.collect();
    row
}
