use std::collections::BTreeMap;

use proptest::prelude::*;
use roce_model::{Address, CollectiveShape};

use super::line::MAX_LINE_BYTES;
use super::reader::MAX_ERRORS;
use super::*;

/// Two hosts with a rank each, four channels: the form of NCCL 2.28 (public logs of two hosts, `NCCL_DEBUG=INFO`).
const TWO_HOSTS: &str = include_str!("../../../../tests/data/results/nccl-2.28.log");
/// One rank of two, NCCL 2.18: no number of an adapter, InfiniBand.
const ONE_RANK: &str = include_str!("../../../../tests/data/results/nccl-2.18.log");
/// NCCL 2.8: no `commId`, GPUs by address.
const OLD: &str = include_str!("../../../../tests/data/results/nccl-2.8.log");
/// RCCL 2.21 of ROCm: the communicator behind each ring.
const RCCL: &str = include_str!("../../../../tests/data/results/rccl-2.21.log");
/// Errors in the wordings of 2.8 to 2.29.
const ERRORS: &str = include_str!("../../../../tests/data/results/nccl-errors.log");

fn owner(log: &Log, address: [u8; 4], qpn: u32) -> (Option<u32>, Option<u32>, Option<u32>) {
    let owners = log.owners();
    let end = owners.end(Address::v4(address), qpn).cloned().unwrap_or_default();
    (end.rank, end.peer_rank, end.channel)
}

#[test]
fn queue_pairs_have_ranks_and_channels() {
    let log = log(TWO_HOSTS);
    // 192.168.100.16 is rank 1, 192.168.100.14 rank 0; both send over channels 0 to 3.
    for channel in 0..4 {
        assert_eq!(
            owner(&log, [192, 168, 100, 16], 576 + channel),
            (Some(1), Some(0), Some(channel))
        );
        assert_eq!(
            owner(&log, [192, 168, 100, 14], 612 + channel),
            (Some(0), Some(1), Some(channel))
        );
    }
    assert_eq!(log.communicators.len(), 1);
    let communicator = &log.communicators[0];
    assert_eq!(
        (&*communicator.name, communicator.size),
        ("0x996ee6f117cb8e1e", Some(2))
    );
    assert_eq!(communicator.rings[&3], [0, 1]);
    assert_eq!(communicator.trees[&0], BTreeMap::from([(0, None), (1, Some(0))]));
    assert_eq!(communicator.trees[&2], BTreeMap::from([(0, Some(1)), (1, None)]));
    let pair = &log.queue_pairs[0];
    assert_eq!(
        (pair.adapter_name.as_deref(), pair.gid_index),
        (Some("rocep1s0f0"), Some(3))
    );
    assert!(
        log.versions.iter().any(|version| version.contains("2.28.3")),
        "{:?}",
        log.versions
    );
    assert_eq!((log.unknown_lines, log.long_lines, log.left_out), (2, 0, 0));
}

#[test]
fn shapes_are_rows() {
    let rows = log(TWO_HOSTS).collectives();
    // Four channels: a ring of both ranks and a tree each.
    assert_eq!(rows.len(), 8);
    assert_eq!(
        (rows[0].shape, rows[0].ranks.as_deref()),
        (CollectiveShape::Ring, Some("0 > 1"))
    );
    let tree = rows
        .iter()
        .rfind(|row| row.shape == CollectiveShape::Tree)
        .unwrap();
    assert_eq!((tree.channel, tree.ranks.as_deref()), (Some(3), Some("1 > 0")));
}

#[test]
fn older_versions_have_less() {
    let one = log(ONE_RANK);
    let owners = one.owners();
    // LID 37 of InfiniBand; channels 0 and 1 to rank 1.
    for (qpn, channel) in [(3038, 0), (3039, 1)] {
        let end = owners.end(Address::lid(37), qpn).unwrap();
        assert_eq!(
            (end.rank, end.peer_rank, end.channel),
            (Some(0), Some(1), Some(channel))
        );
        assert_eq!(end.communicator.as_deref(), Some("0xb2f794396f6d0bd1"));
    }
    let old = log(OLD);
    assert_eq!(owner(&old, [10, 77, 0, 1], 0x117), (Some(0), Some(1), Some(0)));
    assert_eq!(owner(&old, [10, 77, 0, 2], 0x118), (Some(1), Some(0), Some(0)));
    assert_eq!(&*old.communicators[0].name, "2 ranks", "2.8 prints no commId");
    let rccl = log(RCCL);
    assert_eq!(owner(&rccl, [10, 77, 0, 1], 0x21), (Some(0), Some(8), Some(0)));
    assert_eq!(rccl.settings["NCCL_IB_QPS_PER_CONNECTION"], "2");
    assert_eq!(owner(&rccl, [10, 77, 0, 1], 0x24), (Some(0), Some(8), Some(1)));
    assert!(rccl.versions.iter().any(|version| version.starts_with("RCCL")));
}

#[test]
fn ranks_that_send_for_others_hide_the_channel() {
    // Rank 0 sends over the adapter of rank 1, whose queue pairs are of two ranks then.
    let shared = format!("{TWO_HOSTS}node-a:100:102 [0] NCCL INFO Channel 00/0 : 5[5] -> 0[0] [send] via NET/IB/0(1)/GDRDMA/Shared\n")
        .replace("spark-4440", "node-a");
    assert_eq!(
        owner(&log(&shared), [192, 168, 100, 16], 576),
        (Some(1), None, None)
    );
}

#[test]
fn a_missing_line_leaves_the_channel_open() {
    let kept: Vec<&str> = TWO_HOSTS
        .lines()
        .filter(|line| !line.contains("qpn 577 mtu"))
        .collect();
    let cut = kept.join("\n");
    // The adapter's line is missing; the other adapter has all of its lines.
    assert_eq!(
        owner(&log(&cut), [192, 168, 100, 16], 579),
        (Some(1), Some(0), None)
    );
    assert_eq!(
        owner(&log(&cut), [192, 168, 100, 16], 578),
        (Some(1), Some(0), Some(2))
    );
}

#[test]
fn two_communicators_of_a_process_are_told_apart() {
    let text = "\
h:1:2 [0] NCCL INFO ncclCommInitRank comm 0xa rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0x1 - Init START
h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0
h:1:3 [0] NCCL INFO NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 17 mtu 3 GID 3 (0/100000AFFFF0000) fifoRkey=0x1 fifoLkey=0x1
h:1:2 [0] NCCL INFO ncclCommInitRank comm 0xa rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1000 commId 0x1 - Init COMPLETE
h:1:2 [0] NCCL INFO ncclCommSplit comm 0xb rank 5 nranks 8 cudaDev 0 nvmlDev 0 busId 1000 parent 0xa splitCount 1 color 1 key 0 commId 0x2 - Init START
h:1:2 [0] NCCL INFO ncclCommSplit comm 0xb rank 5 nranks 8 cudaDev 0 nvmlDev 0 busId 1000 parent 0xa splitCount 1 color 1 key 0 commId 0x2 - Init COMPLETE
h:1:2 [0] NCCL INFO Channel 00/1 : 5[0] -> 6[0] [send] via NET/IB/0
h:1:3 [0] NCCL INFO NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 18 mtu 3 GID 3 (0/100000AFFFF0000) fifoRkey=0x1 fifoLkey=0x1
";
    let log = log(text);
    let owners = log.owners();
    let name = |qpn| {
        let end = owners.end(Address::v4([10, 0, 0, 1]), qpn).unwrap();
        (
            end.rank,
            end.peer_rank,
            end.communicator.as_deref().map(str::to_owned),
        )
    };
    assert_eq!(name(17), (Some(0), Some(1), Some("0x1".to_owned())));
    // Connected later, when it is first used: the connection names the rank, and the rank the communicator.
    assert_eq!(name(18), (Some(5), Some(6), Some("0x2".to_owned())));
}

#[test]
fn errors_in_the_wordings_of_the_versions() {
    let log = log(ERRORS);
    let statuses: Vec<Option<u32>> = log.errors.iter().map(|found| found.status).collect();
    assert_eq!(
        statuses,
        [Some(12), Some(12), Some(5), Some(12), Some(4), Some(12), Some(12)]
    );
    let [oldest, peer, named, number, verbose, newest, patched] = log.errors.as_slice() else {
        panic!("seven");
    };
    assert_eq!(
        (oldest.opcode.as_deref(), oldest.vendor_error, oldest.local),
        (Some("1"), Some(129), None)
    );
    assert_eq!(peer.peer.as_deref(), Some("10.42.0.2"));
    assert_eq!(
        (named.request.as_deref(), named.local, named.remote),
        (
            Some("Recv"),
            Some(Address::v4([10, 6, 0, 35])),
            Some(Address::v4([10, 5, 0, 34]))
        )
    );
    // Without a space behind remoteGids.
    assert_eq!(number.remote.unwrap().to_string(), "29.87.88.182");
    assert_eq!(number.length, Some(0));
    assert_eq!(
        (verbose.length, verbose.vendor_error, verbose.adapter.as_deref()),
        (Some(524_288), Some(81), Some("mlx5_11"))
    );
    assert_eq!(verbose.known_status().unwrap().name, "IBV_WC_LOC_PROT_ERR");
    // The line before names the queue pair, which is rank 3's.
    assert_eq!(
        (newest.queue_pair, newest.request.as_deref(), newest.rank),
        (Some(279), Some("Send"), Some(3))
    );
    assert_eq!((patched.queue_pair, patched.rank), (Some(280), Some(3)));
    assert_eq!(log.warnings.len(), 1, "{:?}", log.warnings);
}

#[test]
fn files_are_read_one_after_the_other() {
    let mut reader = Reader::default();
    let (one, other) = TWO_HOSTS.split_at(
        TWO_HOSTS
            .find("spark-4440:24302:24302 [0] NCCL INFO Connected")
            .unwrap(),
    );
    reader.read(one.as_bytes()).unwrap();
    reader.read(other.as_bytes()).unwrap();
    reader.read(ERRORS.as_bytes()).unwrap();
    let mut bytes = vec![b'x'; 3 * MAX_LINE_BYTES];
    bytes.extend_from_slice(b"\n\xff\xfe\nNCCL version 2.21.5+cuda12.4");
    reader.read(bytes.as_slice()).unwrap();
    let log = reader.finish();
    assert_eq!(log.owners(), super::log(TWO_HOSTS).owners());
    assert_eq!((log.errors[0].file, log.errors[0].line), (2, 1));
    assert_eq!(log.long_lines, 1);
    assert!(log.versions.contains("NCCL version 2.21.5+cuda12.4"));
}

#[test]
fn too_much_is_counted() {
    let mut reader = Reader::default();
    reader.line(&"x".repeat(MAX_LINE_BYTES + 1));
    for number in 0..MAX_ERRORS + 3 {
        reader.line(&format!("h:1:2 [0] NCCL WARN something {number}"));
    }
    let log = reader.finish();
    assert_eq!(
        (log.long_lines, log.warnings.len(), log.left_out),
        (1, MAX_ERRORS, 3)
    );
}

proptest! {
    /// No bytes make the reader panic, and it knows no more of a log that is cut than of the whole one.
    #[test]
    fn any_bytes_are_read(sample in 0usize..5, cut in 0usize..20_000, bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0usize..20_000) {
        let text = [TWO_HOSTS, ONE_RANK, OLD, RCCL, ERRORS][sample];
        let mut changed = text.as_bytes().to_vec();
        let at = at.min(changed.len());
        changed.splice(at..at, bytes);
        changed.truncate(cut);
        let found = log(&String::from_utf8_lossy(&changed));
        prop_assert!(found.queue_pairs.len() <= text.lines().count() + 200);
        found.owners();
    }

    /// A cut log says nothing that the whole one denies.
    #[test]
    fn a_cut_log_says_nothing_else(cut in 0usize..20_000) {
        let whole = log(TWO_HOSTS).owners();
        let lines: Vec<&str> = TWO_HOSTS.lines().collect();
        let part = log(&lines[..cut % (lines.len() + 1)].join("\n"));
        for pair in &part.queue_pairs {
            let known = whole.end(pair.address.unwrap(), pair.number).unwrap();
            prop_assert!(pair.rank.is_none() || pair.rank == known.rank);
            prop_assert!(pair.peer_rank.is_none() || pair.peer_rank == known.peer_rank);
            prop_assert!(pair.channel.is_none() || pair.channel == known.channel);
        }
    }

    /// Lines that look like NCCL's, in any order.
    #[test]
    fn lines_in_any_order_are_read(order in proptest::collection::vec(0usize..200, 0..300)) {
        let lines: Vec<&str> = [TWO_HOSTS, ONE_RANK, OLD, RCCL, ERRORS].iter().flat_map(|text| text.lines()).collect();
        let mut reader = Reader::default();
        for number in &order {
            reader.line(lines[number % lines.len()]);
        }
        let log = reader.finish();
        prop_assert_eq!(log.lines, order.len() as u64);
    }
}
