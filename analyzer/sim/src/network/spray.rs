//! Packet spraying: which of several paths a packet takes, and when it comes out of it.
//!
//! The stage lies between the sender's port and the queue of the receiver's port. What it does to a flow follows
//! Dixit et al., INFOCOM 2013: packets that leave one after the other arrive out of order when the skew of their paths is
//! longer than the time between them.

mod steps;

use std::collections::HashMap;

use crate::engine::rng::Stream;
use crate::network::packet::Packet;
use crate::scenario::{Spray, SprayChoice, SprayMode};
use crate::units::Picos;

/// State of a flow's paths.
#[derive(Clone, Copy, Debug)]
struct FlowPath {
    /// The path taken last.
    path: u32,
    /// The two paths of `two-paths`.
    pair: [u32; 2],
    /// Time of its last packet.
    last: Picos,
    /// Number of its packets.
    count: u32,
}

/// The paths and what goes through them.
#[derive(Debug)]
pub(crate) struct SprayState {
    table: Spray,
    /// Extra delay of each path.
    delays: Vec<Picos>,
    flows: HashMap<u32, FlowPath>,
    /// Time at which the last packet leaves a path from one host to another.
    exits: HashMap<(u32, u32, u32), Picos>,
    choices: Stream,
    queueing: Stream,
}

impl SprayState {
    pub(crate) fn new(table: Spray, seed: u64) -> Self {
        let mut stream = Stream::new(seed, "paths", 0);
        let last = table.paths.saturating_sub(1);
        let delays = (0..table.paths).map(|path| match path {
            0 => Picos::ZERO,
            path if path == last => table.skew,
            _ => Picos(stream.below(table.skew.0.saturating_add(1))),
        });
        Self {
            table,
            delays: delays.collect(),
            flows: HashMap::new(),
            exits: HashMap::new(),
            choices: Stream::new(seed, "path choice", 0),
            queueing: Stream::new(seed, "path queueing", 0),
        }
    }

    /// One of `count`, at random or by the number of the packet.
    fn pick(&mut self, count: u32, turn: u32) -> u32 {
        match self.table.choose {
            SprayChoice::Random => u32::try_from(self.choices.below(u64::from(count))).unwrap_or(0),
            SprayChoice::Turn => turn % count.max(1),
        }
    }

    /// The path of the next packet of a flow.
    fn path(&mut self, flow: u32, now: Picos) -> u32 {
        let paths = self.table.paths;
        let known = self.flows.get(&flow).copied();
        let mut state = known.unwrap_or_else(|| {
            let first = self.choices.below(u64::from(paths));
            let other = self.choices.below(u64::from(paths.saturating_sub(1)));
            let other = if other >= first { other + 1 } else { other };
            FlowPath {
                path: 0,
                pair: [first, other].map(|path| u32::try_from(path).unwrap_or(0)),
                last: now,
                count: 0,
            }
        });
        match self.table.mode {
            SprayMode::Packet => state.path = self.pick(paths, state.count),
            SprayMode::TwoPaths => state.path = state.pair[self.pick(2, state.count) as usize & 1],
            SprayMode::Flowlet => {
                if known.is_none() || now.since(state.last) >= self.table.flowlet_gap {
                    state.path = self.pick(paths, state.count);
                    state.count = state.count.wrapping_add(1);
                }
            }
        }
        if self.table.mode != SprayMode::Flowlet {
            state.count = state.count.wrapping_add(1);
        }
        state.last = now;
        self.flows.insert(flow, state);
        state.path
    }

    /// The path that a packet from `from` takes, and when it comes out of it.
    fn send(&mut self, from: u32, packet: &Packet, now: Picos) -> (u32, Picos) {
        let path = self.path(packet.flow, now);
        let delay = self.delays.get(path as usize).copied().unwrap_or(Picos::ZERO);
        let queueing = match self.table.jitter {
            Picos::ZERO => Picos::ZERO,
            most => Picos(self.queueing.below(most.0.saturating_add(1))),
        };
        let exit = self.exits.entry((from, packet.to, path)).or_default();
        *exit = now.plus(delay).plus(queueing).max(*exit);
        (path, *exit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::events::EndpointId;
    use crate::network::packet::Kind;
    use crate::record::frame::Frame;

    fn state(mode: SprayMode, jitter: Picos) -> SprayState {
        let table = Spray {
            paths: 4,
            skew: Picos::from_nanos(12_000),
            mode,
            flowlet_gap: Picos::from_nanos(50_000),
            jitter,
            choose: SprayChoice::Random,
        };
        SprayState::new(table, 1)
    }

    fn packet() -> Packet {
        let pfc = crate::record::frame::Pfc::new(roce_wire::MacAddress([0; 6]), 0, 0);
        Packet::new(&Frame::Pfc(pfc), Kind::Request, EndpointId(0), 1)
    }

    #[test]
    fn paths_span_the_skew() {
        let state = state(SprayMode::Packet, Picos::ZERO);
        assert_eq!(state.delays.len(), 4);
        assert_eq!(
            (state.delays[0], state.delays[3]),
            (Picos::ZERO, Picos::from_nanos(12_000))
        );
        assert!(
            state
                .delays
                .iter()
                .all(|delay| *delay <= Picos::from_nanos(12_000))
        );
    }

    #[test]
    fn one_path_keeps_its_order() {
        let mut state = state(SprayMode::Packet, Picos::from_nanos(3_000));
        let mut last = [Picos::ZERO; 4];
        for step in 0..2_000 {
            let (path, exit) = state.send(0, &packet(), Picos::from_nanos(step * 100));
            assert!(exit >= last[path as usize]);
            last[path as usize] = exit;
        }
        assert!(last.iter().all(|exit| *exit > Picos::ZERO), "all four are used");
    }

    #[test]
    fn a_flowlet_keeps_its_path_until_a_gap() {
        let mut state = state(SprayMode::Flowlet, Picos::ZERO);
        let mut time = Picos::ZERO;
        let mut paths = Vec::new();
        for _ in 0..40 {
            let first = state.path(7, time);
            for _ in 0..20 {
                time = time.plus(Picos::from_nanos(49_999));
                assert_eq!(state.path(7, time), first);
            }
            paths.push(first);
            time = time.plus(Picos::from_nanos(50_000));
        }
        paths.sort_unstable();
        paths.dedup();
        assert!(paths.len() > 1);
    }

    #[test]
    fn two_paths_are_two() {
        let mut state = state(SprayMode::TwoPaths, Picos::ZERO);
        for flow in 0..20 {
            let used: std::collections::BTreeSet<u32> =
                (0..100).map(|n| state.path(flow, Picos(n))).collect();
            assert_eq!(used.len(), 2);
        }
    }
}
