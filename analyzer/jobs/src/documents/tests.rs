//! Documents of a job of four ranks, see tests/data/jobs/README.md.

mod hostile;

use super::*;

/// A file of tests/data/jobs.
macro_rules! sample {
    ($name:literal) => {
        include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/data/jobs/",
            $name
        ))
        .as_slice()
    };
}
use sample;

const HASH: u64 = 0x7f_8c49_6ae9_f661;

fn inspector(bytes: &[u8]) -> Result<InspectorDump, DocumentError> {
    InspectorReader::new("f").read(bytes)
}

#[test]
fn inspector_has_lengths_and_when_verbose_times() {
    let plain = inspector(sample!("h0-pid4100.log")).unwrap();
    let verbose = inspector(sample!("h2-pid4102.log")).unwrap();
    assert_eq!((plain.records.len(), verbose.records.len()), (8, 8));
    let process = &plain.processes[0];
    assert_eq!((process.communicator, process.rank, process.ranks), (HASH, 0, 4));
    assert_eq!(
        (process.hostname.as_deref(), process.process),
        (Some("h0"), Some(4100))
    );
    // `unknown` is what 2.30 writes where a communicator has no name.
    assert_eq!(process.communicator_name, None);
    let first = &plain.records[0];
    assert_eq!(
        (first.operation.as_str(), first.sequence, first.message_bytes),
        ("AllReduce", 1, 1_048_576)
    );
    assert_eq!((first.duration_us, first.span_us), (3_125, None));
    assert_eq!(first.dump_us, Some(1_790_000_000_064_229));
    // The late rank has the shortest time.
    assert_eq!(verbose.records[0].duration_us, 129);
    assert_eq!(
        verbose.records[0].span_us,
        Some((1_790_000_000_005_039, 1_790_000_000_005_171))
    );
}

#[test]
fn inspector_of_messages_and_names_and_absent_times() {
    let line = r#"{"header":{"id":"0x2a","comm_name":"tp","rank":1,"n_ranks":2},"metadata":{"dump_timestamp_us":0},
        "p2p_perf":{"p2p":"Send","p2p_sn":7,"p2p_msg_size_bytes":9000,"p2p_exec_time_us":12,"p2p_peer":0,
        "event_trace_ts":{"kernel_events":[{"kernel_start_ts":0,"kernel_stop_ts":0},{"kernel_start_ts":5,"kernel_stop_ts":9}]}}}"#;
    let found = inspector(line.replace('\n', "").as_bytes()).unwrap();
    assert_eq!(found.processes[0].communicator_name.as_deref(), Some("tp"));
    let record = &found.records[0];
    assert_eq!(
        (record.operation.as_str(), record.sequence, record.peer),
        ("Send", 7, Some(0))
    );
    // A time of 0 is none.
    assert_eq!((record.span_us, record.dump_us), (Some((5, 9)), None));
}

#[test]
fn inspector_whose_job_was_killed_has_the_records_before() {
    let whole = sample!("h1-pid4101.log");
    let cut = inspector(&whole[..whole.len() - 100]).unwrap();
    assert_eq!((cut.records.len(), cut.is_cut), (7, true));
    // A cut in the middle is an error, and says where.
    let mut broken = whole.to_vec();
    broken[2_000] = b'}';
    let error = inspector(&broken).unwrap_err();
    assert_eq!(error.place, DocumentPlace::Line(2));
    assert!(
        error.to_string().contains("expected a record of NCCL Inspector"),
        "{error}"
    );
}

#[test]
fn inspector_metrics_have_a_node() {
    let bytes = sample!("nccl_inspector_metrics_GPU-5b9d4b6e-0000-4a6e-9f5a-0242ac120002.prom");
    let found = inspector_metrics(bytes, "f").unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].node.as_deref(), found[0].ranks), (Some("h0"), Some(4)));
    assert_eq!(
        (found[0].bus_bandwidth_gbs, found[0].duration_us),
        (Some(0.504), None)
    );
    assert_eq!(found[1].duration_us, Some(3_119.25));
    assert_eq!(found[1].message_size.as_deref(), Some("1-2MB"));
    let other = b"up 1\nnccl_bus_bandwidth_gbs{node=\"a\\\"b\",x=\"}\"} 2.5 1700\nnccl_other 3\n";
    let found = inspector_metrics(other, "f").unwrap();
    assert_eq!((found.len(), found[0].node.as_deref()), (1, Some("a\"b")));
    let error = inspector_metrics(
        b"nccl_bus_bandwidth_gbs 1\nnccl_bus_bandwidth_gbs{node=\"a} 2\n",
        "f",
    )
    .unwrap_err();
    assert_eq!(error.place, DocumentPlace::Line(2));
}

#[test]
fn ras_has_counts_and_dead_ranks() {
    let status = ras(sample!("ras_status.json"), "f").unwrap();
    let one = &status.statuses[0].communicators[0];
    assert_eq!((one.hash, one.size, one.ranks.len()), (HASH, Some(4), 4));
    // `date -u -d '2026-09-21 14:13:20' +%s`; the zone is not known.
    assert_eq!(status.statuses[0].local_seconds, Some(1_790_000_000));
    let all_reduce = |rank: &RasRank| {
        rank.counts
            .iter()
            .find(|count| count.operation == "AllReduce")
            .map(|count| count.launched)
    };
    assert_eq!(
        one.ranks.iter().map(all_reduce).collect::<Vec<_>>(),
        [Some(5), Some(5), Some(4), Some(5)]
    );
    assert_eq!(
        one.highest
            .iter()
            .find(|count| count.operation == "AllReduce")
            .unwrap()
            .launched,
        5
    );

    let missing = ras(sample!("ras_missing.json"), "f").unwrap();
    let dead: Vec<&RasRank> = missing.statuses[0].communicators[0]
        .ranks
        .iter()
        .filter(|rank| rank.state == RasRankState::Dead)
        .collect();
    assert_eq!(
        (dead.len(), dead[0].rank, dead[0].host.as_deref()),
        (1, 2, Some("10.77.1.3"))
    );

    // A rank that has left the communicator is missing, and answers.
    let left =
        r#"{"communicators":[{"hash":"0x1","missing_ranks":[{"rank":1,"status":{"unresponsive":false}}]}]}"#;
    let left = ras(left.as_bytes(), "f").unwrap();
    assert_eq!(
        left.statuses[0].communicators[0].ranks[0].state,
        RasRankState::Answered
    );

    let events = ras(sample!("ras_monitor.json"), "f").unwrap().events;
    assert_eq!(
        (events[0].name.as_str(), events[0].process),
        ("PEER_DEAD", Some(4102))
    );
    // Answers to successive requests are one file.
    let both = [
        sample!("ras_status.json"),
        b"\n",
        sample!("ras_missing.json"),
        sample!("ras_monitor.json"),
    ]
    .concat();
    let both = ras(&both, "f").unwrap();
    assert_eq!((both.statuses.len(), both.events.len()), (2, 1));
}

#[test]
fn ras_as_a_session_of_the_protocol() {
    assert_eq!(
        ras(sample!("ras_session.txt"), "f").unwrap(),
        RasAnswers::default()
    );
    let answered = [
        b"SERVER PROTOCOL 2\nOK\nOK\n".as_slice(),
        sample!("ras_missing.json"),
    ]
    .concat();
    assert_eq!(ras(&answered, "f").unwrap().statuses.len(), 1);
    let error = ras(
        b"SERVER PROTOCOL 2\nOK\n{\"communicators\": [\n{\"hash\": 1}]}",
        "f",
    )
    .unwrap_err();
    assert_eq!(error.place, DocumentPlace::Line(4), "{error}");
    assert!(
        ras(b"something else\n", "f")
            .unwrap_err()
            .to_string()
            .starts_with("f: line 1: expected")
    );
}

/// The forms of docs/userguide/source/troubleshooting/ras.rst of NVIDIA/nccl, and of `rasClientRunComms`.
#[test]
fn ras_as_text() {
    let text = "NCCL version 2.29.2 compiled with CUDA 13.0\n\nJob summary\n===========\n\nErrors\n======\n\nINCOMPLETE\n  \
        Missing communicator data from 1 job process\n  Process 3487984 on node 172.16.64.213 managing GPU 5\n\nDEAD\n  \
        1 job process is considered dead (unreachable via the RAS network)\n  Process 77 on node n2 managing GPU 1\n\n\
        #0-0 (cf264af53edbe986) INCOMPLETE\n  Missing communicator data from 2 ranks\n  The missing rank: 21\n  \
        Rank 7 -- GPU 3 managed by process 77 on node n2\n\nWarnings\n========\n\n\
        #0-1 (27a079b828ff1a75) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n  \
        26 ranks have launched up to operation 6650\n  2 ranks have launched up to operation 6649\n  \
        Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210\n  \
        Rank 9 has launched up to operation 60 -- GPU 3 managed by process 1650386 on node node1\n";
    let found = ras(text.as_bytes(), "f").unwrap();
    let answer = &found.statuses[0];
    assert_eq!(answer.absent.len(), 2);
    let [missing, counted] = &answer.communicators[..] else {
        panic!("{answer:?}")
    };
    assert_eq!(missing.hash, 0xcf26_4af5_3edb_e986);
    let states: Vec<(u32, RasRankState)> = missing.ranks.iter().map(|rank| (rank.rank, rank.state)).collect();
    assert_eq!(states, [(21, RasRankState::Missing), (7, RasRankState::Dead)]);
    let launched: Vec<(u32, u64)> = counted
        .ranks
        .iter()
        .map(|rank| (rank.rank, rank.counts[0].launched))
        .collect();
    assert_eq!(launched, [(0, 6649), (9, 60)]);
    assert_eq!(
        counted.highest,
        [RasCount {
            operation: "AllReduce".to_owned(),
            launched: 6650
        }]
    );
}

#[test]
fn the_flight_recorder_is_one_as_pickle_and_as_json() {
    let pickle = flight_recorder(sample!("nccl_trace_rank_2"), "tmp/nccl_trace_rank_2").unwrap();
    let json = flight_recorder(sample!("nccl_trace_rank_2.json"), "nccl_trace_rank_2.json").unwrap();
    assert_eq!(pickle, json);
    assert_eq!((pickle.rank, pickle.entries.len()), (Some(2), 8));
    let group = &pickle.groups[0];
    assert_eq!(
        (group.name.as_str(), group.description.as_str()),
        ("0", "default_pg")
    );
    assert_eq!(group.ranks, [0, 1, 2, 3]);
    assert_eq!(
        (group.enqueued, group.started, group.completed),
        (Some(8), Some(8), Some(7))
    );
    let (first, last) = (&pickle.entries[0], &pickle.entries[7]);
    assert_eq!((first.sequence, first.state), (1, FlightState::Completed));
    assert_eq!(first.created_ns, Some(1_790_000_000_004_975_921));
    assert_eq!(first.duration_ns, Some(129_400));
    assert_eq!(first.seen_ns, Some(1_790_000_000_005_935_921));
    assert_eq!((last.sequence, last.state), (8, FlightState::Started));
    // Other ranks completed it.
    let other = flight_recorder(sample!("nccl_trace_rank_1"), "nccl_trace_rank_1").unwrap();
    assert!(
        other
            .entries
            .iter()
            .all(|entry| entry.state == FlightState::Completed)
    );
}

#[test]
fn the_flight_recorder_of_newer_picklers() {
    let whole = flight_recorder(sample!("nccl_trace_rank_2"), "2").unwrap();
    for bytes in [
        sample!("nccl_trace_rank_2.protocol3"),
        sample!("nccl_trace_rank_2.protocol4"),
        sample!("nccl_trace_rank_2.protocol5"),
    ] {
        let found = flight_recorder(bytes, "2").unwrap();
        assert_eq!(found.entries, whole.entries[6..]);
        assert_eq!(found.groups, whole.groups);
    }
}

#[test]
fn ranks_are_in_names_of_files() {
    for (name, rank) in [
        ("/tmp/nccl_trace_rank_12", Some(12)),
        ("rank3.json.gz", Some(3)),
        ("dump", None),
        ("12/dump", None),
        ("rank_99999999999", None),
    ] {
        assert_eq!(rank_of_name(name), rank, "{name}");
    }
}
