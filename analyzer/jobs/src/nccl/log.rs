//! Facts of a log that was read, and their consequences for packets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use roce_model::{CollectiveEvidence, CollectiveRow, CollectiveShape, Confidence, RankEnd, Ranks};

use super::connections::QueuePair;
use crate::errors::{ErrorReport, Program};

/// Facts of a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// Versions that ranks print, such as `NCCL 2.21.5+cuda12.4`.
    pub versions: BTreeSet<String>,
    /// Environment variables that NCCL took, by name.
    pub settings: BTreeMap<String, String>,
    /// The networks that ranks use, such as `IB` or `Socket`.
    pub networks: BTreeSet<String>,
    /// Devices in NCCL's order: name, port and link layer, such as `mlx5_6:1/RoCE`.
    pub devices: Vec<String>,
    /// The interfaces of out-of-band connections.
    pub out_of_band: BTreeSet<String>,
    /// Writes may pass each other on PCIe.
    pub is_relaxed: bool,
    /// Connections between ranks: each once, with its channels.
    pub edges: BTreeMap<Edge, u64>,
    /// The PCI address of each rank's GPU.
    pub ranks: BTreeMap<u32, String>,
    /// Ranks of the largest communicator.
    pub world: Option<u32>,
    /// All communicators.
    pub communicators: Vec<Communicator>,
    /// Queue pairs that ranks made to send.
    pub queue_pairs: Vec<QueuePair>,
    /// Errors that NCCL and other programs report, in the order of the log.
    pub errors: Vec<ErrorReport>,
    /// Other warnings: line and text.
    pub warnings: Vec<(usize, String)>,
    /// The first line that says that no RDMA device was found.
    pub no_device: Option<usize>,
    /// The first line that says that ranks talk over TCP sockets.
    pub sockets: Option<usize>,
    /// Lines of the text.
    pub lines: u64,
    /// Lines of NCCL that have none of the forms that are read.
    pub unknown_lines: u64,
    /// Lines of NCCL.
    pub own_lines: u64,
    /// Lines that are too long, and were not read.
    pub long_lines: u64,
    /// Edges, queue pairs, errors and other facts beyond those that are kept.
    pub left_out: u64,
}

impl Log {
    /// The programs whose errors a log has that says nothing of NCCL; `None` of a log of NCCL.
    pub fn other_programs(&self) -> Option<Vec<&'static str>> {
        let has_facts =
            !self.versions.is_empty() || !self.devices.is_empty() || !self.communicators.is_empty();
        let has_lines = !self.networks.is_empty() || !self.edges.is_empty() || !self.warnings.is_empty();
        let programs: BTreeSet<&str> = self.errors.iter().map(|error| error.program.name()).collect();
        let is_of_others = !programs.is_empty() && !programs.contains(Program::Nccl.name());
        (is_of_others && !has_facts && !has_lines).then(|| programs.into_iter().collect())
    }
}

/// A connection between two ranks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The rank that sends.
    pub from: u32,
    /// The rank that receives.
    pub to: u32,
    /// The transport, such as `NET/IB/0/GDRDMA`, `P2P/CUMEM` or `SHM/direct`.
    pub transport: String,
}

impl Edge {
    /// True if it leaves the host.
    pub fn is_network(&self) -> bool {
        self.transport.starts_with("NET/")
    }

    /// True if the adapter reads the GPU's memory directly, over whatever way (`GDRDMA(PCI)`) and buffers (`/Shared`).
    pub fn is_direct(&self) -> bool {
        self.transport.split('/').any(|part| part.starts_with("GDRDMA"))
    }
}

/// A communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Communicator {
    /// Its `commId`; without one its size, such as `8 ranks` (before 2.14).
    pub name: Arc<str>,
    /// Its number of ranks.
    pub size: Option<u32>,
    /// Its rings, by channel: ranks from the lowest on.
    pub rings: BTreeMap<u32, Vec<u32>>,
    /// Its trees, by channel: each rank and the one above it.
    pub trees: BTreeMap<u32, BTreeMap<u32, Option<u32>>>,
}

impl Log {
    /// The owners of queue pairs, for whoever sees their packets.
    pub fn owners(&self) -> Ranks {
        let mut ranks = Ranks::default();
        for pair in &self.queue_pairs {
            let communicator = pair.communicator.and_then(|place| self.communicators.get(place));
            let end = RankEnd {
                rank: pair.rank,
                peer_rank: pair.peer_rank,
                communicator: communicator.map(|communicator| Arc::clone(&communicator.name)),
                channel: pair.channel,
            };
            if let Some(address) = pair.address.filter(|_| !end.is_unknown()) {
                ranks.insert(address, pair.number, end);
            }
        }
        ranks
    }
}

/// Ring or tree of a channel, and those that are kept.
const MAX_SHAPES: usize = 4_096;

impl Log {
    /// The rings and trees of all communicators, as rows of the table `collectives`.
    pub fn collectives(&self) -> Vec<CollectiveRow> {
        let shapes = self.communicators.iter().flat_map(|communicator| {
            let row = |shape: CollectiveShape, channel: u32, members: usize, ranks: String| CollectiveRow {
                shape,
                evidence: CollectiveEvidence::Log,
                communicator: Some(communicator.name.to_string().into()),
                channel: Some(channel),
                members: u32::try_from(members).unwrap_or(u32::MAX),
                ranks: Some(ranks.into()),
                confidence: Confidence::High,
                ..CollectiveRow::default()
            };
            let rings = communicator.rings.iter().map(move |(channel, order)| {
                let ranks: Vec<String> = order.iter().map(u32::to_string).collect();
                row(CollectiveShape::Ring, *channel, order.len(), ranks.join(" > "))
            });
            let trees = communicator.trees.iter().map(move |(channel, above)| {
                row(CollectiveShape::Tree, *channel, above.len(), branches(above))
            });
            rings.chain(trees)
        });
        shapes.take(MAX_SHAPES).collect()
    }
}

/// Each rank of a tree with those below it: `0 > 1, 2; 1 > 3`.
fn branches(above: &BTreeMap<u32, Option<u32>>) -> String {
    let mut below: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (rank, above) in above {
        if let Some(above) = above {
            below.entry(*above).or_default().push(rank.to_string());
        }
    }
    let branches: Vec<String> = below
        .iter()
        .map(|(rank, below)| format!("{rank} > {}", below.join(", ")))
        .collect();
    branches.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_written_from_the_top() {
        let above = BTreeMap::from([(0, None), (1, Some(0)), (2, Some(0)), (3, Some(1))]);
        assert_eq!(branches(&above), "0 > 1, 2; 1 > 3");
    }
}
