//! Operations of collectives: for each rank and channel the list that its GPU works through in a step (NVIDIA/nccl, src/device/all_reduce.h,
//! src/device/sendrecv.h).

use crate::scenario::{Collective, Protocol, Training};

/// A sender in a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LanePart {
    pub lane: u32,
    pub part: u8,
}

/// One step of a worker: it takes a message from each of some lanes and fills a buffer for each of others.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Op {
    pub receives: Vec<LanePart>,
    pub sends: Vec<LanePart>,
    pub bytes: u64,
}

/// A connection of a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PlannedLane {
    pub senders: Vec<u32>,
    pub receiver: u32,
    pub channel: u32,
}

/// Connections and workers of a collective.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Program {
    pub lanes: Vec<PlannedLane>,
    /// The rank and the operations of each worker.
    pub workers: Vec<(u32, Vec<Op>)>,
}

/// Buffers of a connection (`NCCL_STEPS`).
const STEPS: u64 = 8;
/// Buffers that a slice of a ring with the protocol Simple takes (`ALLREDUCE_SLICESTEPS`).
const RING_SLICE_STEPS: u64 = 2;
/// Slices of a chunk there (`ALLREDUCE_CHUNKSTEPS` / `ALLREDUCE_SLICESTEPS`).
const RING_SLICES: u64 = 2;
/// Slices are multiples of this.
const UNIT: u64 = 16;

/// Credits that a connection has at once.
pub(crate) fn buffers(table: &Training) -> u64 {
    match (table.collective, table.protocol) {
        (Collective::Ring, Protocol::Simple) => STEPS / RING_SLICE_STEPS,
        _ => STEPS,
    }
}

impl Program {
    /// The program of a table for this number of ranks.
    pub(crate) fn new(table: &Training, ranks: u32) -> Self {
        match table.collective {
            Collective::Ring => ring(table, ranks),
            Collective::Tree => tree(table, ranks),
            Collective::AllToAll => all_to_all(table, ranks),
        }
    }

    /// Operations of a step that there are at most: each rank works on all slices twice, and on a slice for each other rank in each channel.
    pub(crate) fn operations(table: &Training, ranks: u32) -> u64 {
        let (ranks, channels) = (u64::from(ranks), u64::from(table.channels));
        let slices = table.bytes.0.div_ceil(room(table).0);
        let each = slices.saturating_add(ranks.saturating_mul(2 * channels) + channels);
        each.saturating_mul(2 * ranks)
    }

    fn lane(&mut self, senders: Vec<u32>, receiver: u32, channel: u32) -> u32 {
        self.lanes.push(PlannedLane {
            senders,
            receiver,
            channel,
        });
        u32::try_from(self.lanes.len() - 1).unwrap_or(u32::MAX)
    }

    /// Bytes of each message of a step in each lane.
    pub(crate) fn lengths(&self) -> Vec<Vec<u64>> {
        let mut lengths = vec![Vec::new(); self.lanes.len()];
        for (_, ops) in &self.workers {
            for op in ops {
                for send in op.sends.iter().filter(|send| send.part == 0) {
                    if let Some(lengths) = lengths.get_mut(send.lane as usize) {
                        lengths.push(op.bytes);
                    }
                }
            }
        }
        lengths
    }
}

/// The bytes of each channel.
fn shares(table: &Training) -> impl Iterator<Item = (u32, u64)> {
    let channels = u64::from(table.channels.max(1));
    let (share, rest) = (table.bytes.0 / channels, table.bytes.0 % channels);
    (0..table.channels).map(move |channel| (channel, share + u64::from(u64::from(channel) < rest)))
}

/// Bytes of data that a buffer holds, and bytes on the wire of each byte of data.
fn room(table: &Training) -> (u64, u64) {
    match table.protocol {
        Protocol::Simple => (table.slice.0, 1),
        Protocol::Ll => ((table.slice.0 / 2).max(1), 2),
    }
}

/// Slices of a chunk: halves of it, but no less than a 32nd of a buffer; LL sends it whole.
fn slices(table: &Training, chunk: u64) -> Vec<u64> {
    let (room, factor) = room(table);
    if table.protocol == Protocol::Ll {
        return vec![chunk * factor];
    }
    let slice = chunk.div_ceil(RING_SLICES * UNIT) * UNIT;
    let slice = slice.clamp((room / 32).min(room), room);
    let first = slice.min(chunk);
    vec![first, chunk - first]
}

/// A ring: n - 1 chunks are reduced on their way, n - 1 are passed on complete. Rank r sends chunk r - i at its operation i.
fn ring(table: &Training, ranks: u32) -> Program {
    let mut program = Program::default();
    let n = u64::from(ranks.max(1));
    let (room, _) = room(table);
    let most = match table.protocol {
        Protocol::Simple => RING_SLICES * room,
        Protocol::Ll => room,
    };
    for (channel, share) in shares(table) {
        let lanes: Vec<u32> = (0..ranks)
            .map(|rank| program.lane(vec![rank], (rank + 1) % ranks, channel))
            .collect();
        let chunks = chunks(share, n, most);
        for rank in 0..u64::from(ranks) {
            let part = |rank: u64| {
                let place = usize::try_from(rank % n).unwrap_or(0);
                let lane = lanes.get(place).copied().unwrap_or(0);
                vec![LanePart { lane, part: 0 }]
            };
            let mut ops = Vec::new();
            for chunks in &chunks {
                for operation in 0..2 * n - 1 {
                    let (receives, sends) = (operation > 0, operation < 2 * (n - 1));
                    let chunk = (rank + 2 * n - operation) % n;
                    let chunk = chunks.get(usize::try_from(chunk).unwrap_or(0)).copied();
                    for bytes in slices(table, chunk.unwrap_or(0)) {
                        ops.push(Op {
                            receives: if receives { part(rank + n - 1) } else { Vec::new() },
                            sends: if sends { part(rank) } else { Vec::new() },
                            bytes,
                        });
                    }
                }
            }
            program.workers.push((u32::try_from(rank).unwrap_or(0), ops));
        }
    }
    program
}

/// The n chunks of each round: as long as they may be, and the last round's of what is left.
fn chunks(share: u64, n: u64, most: u64) -> Vec<Vec<u64>> {
    let mut rounds = Vec::new();
    let mut left = share;
    while left > 0 {
        let chunk = (left.div_ceil(n).div_ceil(UNIT) * UNIT).min(most);
        let round = left.min(chunk * n);
        rounds.push(
            (0..n)
                .map(|place| chunk.min(round.saturating_sub(place * chunk)))
                .collect(),
        );
        left -= round;
    }
    rounds
}

/// A binary tree: sums go up, the result comes down. Odd channels have the tree with the ranks in reverse, or shifted by one if
/// their number is odd (`ncclGetDtree` of src/graph/trees.cc).
fn tree(table: &Training, ranks: u32) -> Program {
    let mut program = Program::default();
    let (room, factor) = room(table);
    for (channel, share) in shares(table) {
        let parents: Vec<Option<u32>> = (0..ranks).map(|rank| parent(rank, ranks, channel)).collect();
        let mut up = vec![None; ranks as usize];
        let mut down = vec![None; ranks as usize];
        for (rank, parent) in (0..).zip(&parents) {
            if let Some(parent) = parent {
                up[rank as usize] = Some(program.lane(vec![rank], *parent, channel));
                down[rank as usize] = Some(program.lane(vec![*parent], rank, channel));
            }
        }
        let part = |lane: &Option<u32>| lane.map(|lane| LanePart { lane, part: 0 });
        let messages = share.div_ceil(room);
        let length = |message: u64| room.min(share - message * room) * factor;
        for rank in 0..ranks {
            let children = (0..ranks).filter(|child| parents[*child as usize] == Some(rank));
            let children: Vec<usize> = children.map(|child| child as usize).collect();
            let below: Vec<_> = children.iter().filter_map(|child| part(&up[*child])).collect();
            let to_below: Vec<_> = children.iter().filter_map(|child| part(&down[*child])).collect();
            let above: Vec<_> = part(&up[rank as usize]).into_iter().collect();
            let from_above: Vec<_> = part(&down[rank as usize]).into_iter().collect();
            let list = |receives: &[LanePart], sends: &[LanePart]| -> Vec<Op> {
                let op = |message| Op {
                    receives: receives.to_vec(),
                    sends: sends.to_vec(),
                    bytes: length(message),
                };
                (0..messages).map(op).collect()
            };
            if above.is_empty() {
                program.workers.push((rank, list(&below, &to_below)));
            } else {
                program.workers.push((rank, list(&below, &above)));
                program.workers.push((rank, list(&from_above, &to_below)));
            }
        }
    }
    program
}

/// The parent of a rank in a channel's tree.
fn parent(rank: u32, ranks: u32, channel: u32) -> Option<u32> {
    let turn = |rank: u32, back: bool| match (channel % 2, ranks % 2, back) {
        (0, ..) => rank,
        (_, 0, _) => ranks - 1 - rank,
        (_, _, false) => (rank + ranks - 1) % ranks,
        (_, _, true) => (rank + 1) % ranks,
    };
    let place = turn(rank, false);
    if place == 0 {
        return None;
    }
    let bit = place & place.wrapping_neg();
    let up = place ^ bit | bit << 1;
    let up = if up >= ranks { place ^ bit } else { up };
    Some(turn(up, true))
}

/// Each rank sends `bytes` / n to each other. Ranks of one host do so without the network.
fn all_to_all(table: &Training, ranks: u32) -> Program {
    let mut program = Program::default();
    let group = table.ranks_per_host.max(1);
    let (room, factor) = room(table);
    for (channel, share) in shares(table) {
        let share = share / u64::from(ranks.max(1));
        let messages = share.div_ceil(room).max(1);
        let length = |message: u64| room.min(share - (message * room).min(share)) * factor;
        for host in 0..ranks / group {
            let senders: Vec<u32> = (host * group..(host + 1) * group).collect();
            for receiver in (0..ranks).filter(|rank| rank / group != host) {
                let lane = program.lane(senders.clone(), receiver, channel);
                for (sender, part) in senders.iter().zip(0..) {
                    let own = vec![LanePart { lane, part }];
                    let ops = |receives: Vec<LanePart>, sends: Vec<LanePart>| -> Vec<Op> {
                        let op = |message| Op {
                            receives: receives.clone(),
                            sends: sends.clone(),
                            bytes: length(message),
                        };
                        (0..messages).map(op).collect()
                    };
                    program.workers.push((*sender, ops(Vec::new(), own.clone())));
                    program.workers.push((receiver, ops(own, Vec::new())));
                }
            }
        }
    }
    program
}

#[cfg(test)]
mod tests;
