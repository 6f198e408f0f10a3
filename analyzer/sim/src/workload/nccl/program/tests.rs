use super::*;
use crate::Scenario;

fn table(keys: &str) -> Training {
    let toml = format!(
        "duration = \"1ms\"\nnetwork = {{ hosts = 8, rate = \"1Gbps\" }}\n[[training]]\nranks = \"h1..h4\"\ncompute = \"1us\"\ntransport = \"nccl\"\n{keys}"
    );
    Scenario::parse(&toml).unwrap().training.remove(0)
}

/// Bytes that a rank sends in a step.
fn sent(program: &Program, rank: u32) -> u64 {
    let lengths = program.lengths();
    let own = program.lanes.iter().zip(&lengths);
    let own = own.filter(|(lane, _)| lane.senders.contains(&rank));
    own.map(|(_, lengths)| lengths.iter().sum::<u64>()).sum()
}

/// A message is sent as often as it is received, in the order of the lane.
#[test]
fn what_is_sent_is_received() {
    for keys in [
        "bytes = 1000000\nslice = 65536\nchannels = 2",
        "bytes = 100\nslice = 4096\nprotocol = \"ll\"",
        "bytes = 300000\nslice = 32768\nchannels = 3\ncollective = \"tree\"",
        "bytes = 300000\nslice = 32768\ncollective = \"all-to-all\"\nranks_per_host = 2",
    ] {
        let table = table(keys);
        let program = Program::new(&table, 8);
        let operations: usize = program.workers.iter().map(|(_, ops)| ops.len()).sum();
        assert!(operations as u64 <= Program::operations(&table, 8));
        let mut received = vec![Vec::new(); program.lanes.len()];
        for (rank, ops) in &program.workers {
            for op in ops {
                for part in op.receives.iter().filter(|part| part.part == 0) {
                    assert_eq!(program.lanes[part.lane as usize].receiver, *rank);
                    received[part.lane as usize].push(op.bytes);
                }
                for part in &op.sends {
                    let lane = &program.lanes[part.lane as usize];
                    assert_eq!(lane.senders[usize::from(part.part)], *rank);
                }
            }
        }
        assert_eq!(received, program.lengths(), "{keys}");
    }
}

/// Each rank of a ring sends 2 (n - 1) / n of the data (Patarasuk and Yuan, 2009). Of 960,000 bytes at 5 ranks that is 1,536,000.
#[test]
fn a_ring_sends_twice_all_but_its_share() {
    let table = table("bytes = 960000\nslice = 32768\nchannels = 4");
    let program = Program::new(&table, 5);
    for rank in 0..5 {
        assert_eq!(sent(&program, rank), 1_536_000);
    }
    assert!(program.lengths().iter().flatten().all(|bytes| *bytes <= 32_768));
}

/// In a tree each rank but the root sends all data up, and each parent sends it down to each child: 7 lanes up and 7 down.
#[test]
fn a_tree_has_an_edge_for_each_rank_but_one() {
    for ranks in [2, 3, 5, 8] {
        let table = table("bytes = 100000\nslice = 16384\nchannels = 2\ncollective = \"tree\"");
        let program = Program::new(&table, ranks);
        // Two channels, two directions.
        assert_eq!(program.lanes.len(), 4 * (ranks as usize - 1));
        let total: u64 = (0..ranks).map(|rank| sent(&program, rank)).sum();
        assert_eq!(total, 2 * u64::from(ranks - 1) * 100_000);
        // Nobody has more than two children.
        for channel in 0..2 {
            for rank in 0..ranks {
                let children = (0..ranks).filter(|child| parent(*child, ranks, channel) == Some(rank));
                assert!(children.count() <= 2);
            }
        }
    }
}

/// The trees of 8 ranks in NCCL's own comment (src/graph/trees.cc): 0 above 4, 4 above 2 and 6, these above the odd ones.
#[test]
fn the_tree_of_eight_is_the_published_one() {
    let parents: Vec<_> = (0..8).map(|rank| parent(rank, 8, 0)).collect();
    let numbers = [
        None,
        Some(2),
        Some(4),
        Some(2),
        Some(0),
        Some(6),
        Some(4),
        Some(6),
    ];
    assert_eq!(parents, numbers);
}
