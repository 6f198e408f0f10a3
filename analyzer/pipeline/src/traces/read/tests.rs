//! Traces written by hand in the formats of their writers, and texts that are no traces.

use super::*;

fn read(text: &str) -> Result<Trace, TraceError> {
    Trace::read(text.as_bytes(), "t.json".to_owned(), None)
}

/// As `handleTraceStart`, `handleActivity` and `finalizeTrace` of libkineto's output_json.cpp print it from 2024 on: times relative to a base,
/// the sizes of collectives in the kernel's arguments. The base is that of a published trace.
const KINETO: &str = r#"
  {
    "schemaVersion": 1,
    "deviceProperties": [
    {"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 84930854912}
    ],
    "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 16, "pg_count": 1, "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": 16, "ranks": [0, 1, 2, 3]}], "nccl_version": "2.21.5"},
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1743521598000000000,
  "traceEvents": [
  {
    "ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1147039, "tid": 1147039,
    "ts": 198093488368.463, "dur": 25.453,
    "args": {
      "External id": 1340,"Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 4194304, "Out msg nelems": 4194304, "Group size": 16, "Process Group Name": "0"
    }
  },
  {
    "ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "pid": 0, "tid": 20,
    "ts": 198093490000.125, "dur": 1500.250,
    "args": {
      "External id": 1340,
      "queued": 0, "device": 0, "context": 1, "stream": 20, "correlation": 1340, "grid": [24, 1, 1], "block": [544, 1, 1],
      "Collective name": "allreduce", "In msg nelems": 4194304, "Out msg nelems": 4194304, "Group size": 16, "dtype": "BFloat16", "In split size": "[]", "Out split size": "[]", "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1, 2, 3]"
    }
  },
  {
    "ph": "X", "cat": "kernel", "name": "void at::native::vectorized_elementwise_kernel<4>", "pid": 0, "tid": 7,
    "ts": 198093490100.000, "dur": 3.000
  },
  {
    "ph": "s", "id": 1340, "pid": 1147039, "tid": 1147039, "ts": 198093488368.463, "cat": "ac2g", "name": "ac2g"
  },
  {
    "name": "Record Window End", "ph": "i", "s": "g",
    "pid": "", "tid": "", "ts": 198093500000.000
  }
  ],
  "traceName": "trace.json"
}"#;

#[test]
fn a_profile_of_pytorch_is_read() {
    let trace = read(KINETO).unwrap();
    assert_eq!(
        (trace.form, trace.has_epoch, trace.left_out),
        (TraceSource::Kineto, true, 0)
    );
    // 1743521598 s and 198093490000.125 us are 1743719691.490000125 s.
    let expected = Call {
        start: 1_743_719_691_490_000_125,
        end: 1_743_719_691_491_500_375,
        kind: "AllReduce".to_owned(),
        message_bytes: Some(4_194_304 * 2),
        communicator: Some("0".to_owned()),
        ranks: Some(16),
        rank: Some(3),
        sequence: None,
    };
    assert_eq!(trace.calls, [expected]);
}

#[test]
fn an_older_profile_of_pytorch_has_the_size_at_the_call() {
    // Before 2024: times since the epoch, kernels without sizes, `record_param_comms` with the same external id.
    let text = r#"{"schemaVersion": 1, "traceEvents": [
      {"ph": "X", "cat": "kernel", "name": "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", "pid": 0, "tid": 20,
       "ts": 1680000000123456.5, "dur": 10, "args": {"External id": 7, "stream": 20}},
      {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": 1680000000123000, "dur": 9,
       "args": {"External id": 7, "Collective name": "_allgather_base", "dtype": "Float", "In msg nelems": 100, "Out msg nelems": 400, "Group size": 4}}
      ]}"#;
    let trace = read(text).unwrap();
    let call = &trace.calls[0];
    // A double has 0.25 us at this size; half a microsecond is exact.
    assert_eq!(
        (call.start, call.end - call.start),
        (1_680_000_000_123_456_500, 10_000)
    );
    assert_eq!(
        (call.kind.as_str(), call.message_bytes, call.ranks),
        ("AllGather", Some(1_600), Some(4))
    );
    assert!(trace.has_epoch && call.rank.is_none() && call.communicator.is_none());
}

/// As print_event.cc of NCCL's example plugin (2.28) prints it: an array, begin and end apart, times in us since the plugin's start.
const NCCL: &str = r#"[
{"name": "Group API", "cat": "GROUP_API", "ph": "b", "id": 0, "pid": 4242, "tid": 1, "ts": 1500000.000000, "args": {"groupApiId": 0, "groupDepth": 1}},
{"name": "AllReduce", "cat": "COLL_API", "ph": "b", "id": 0, "pid": 4242, "tid": 1, "ts": 1500001.000000, "args": {"count": 262144, "datatype": "ncclFloat32", "root": 0, "GraphCaptured": 0, "Stream": "0x55d0"}},
{"name": "AllReduce", "cat": "COLL_API", "ph": "e", "id": 0, "pid": 4242, "tid": 1, "ts": 1500003.000000},
{"name": "AllReduce", "cat": "COLL", "ph": "b", "id": 0, "pid": 4242, "tid": 1, "ts": 1500010.250000, "args": {"SeqNum": 0, "CommHash": 11853338391520312345, "Rank": 1, "Count": 262144, "Datatype": "ncclFloat32", "Algorithm": "RING", "Protocol": "SIMPLE", "nChannels": 2}},
{"name": "ScheduleSend", "cat": "PROXY", "ph": "b", "id": 0, "pid": 4242, "tid": 1, "ts": 1500011.000000, "args": {"Channel": 0, "Peer": 0, "Steps": 4, "ChunkSize": 524288, "transSize": 524288}},
{"name": "AllReduce", "cat": "COLL", "ph": "e", "id": 0, "pid": 4242, "tid": 1, "ts": 1500260.750000},
{"name": "Send", "cat": "P2P", "ph": "b", "id": 0, "pid": 4242, "tid": 1, "ts": 1500300.000000, "args": {"CommHash": 11853338391520312345, "Rank": 1, "Peer": 0, "Count": 10, "Datatype": "ncclInt8", "nChannels": 1}},
{"name": "Send", "cat": "P2P", "ph": "e", "id": 0, "pid": 4242, "tid": 1, "ts": 1500301.000000},
{"name": "AllReduce", "cat": "COLL", "ph": "b", "id": 1, "pid": 4242, "tid": 1, "ts": 1500400.000000, "args": {"Rank": 1}},
{} ]
"#;

#[test]
fn a_trace_of_nccls_plugin_is_read() {
    let trace = read(NCCL).unwrap();
    // The last collective has no end.
    assert_eq!(
        (trace.form, trace.has_epoch, trace.left_out),
        (TraceSource::Nccl, false, 1)
    );
    let [call, send] = trace.calls.as_slice() else {
        panic!("{:?}", trace.calls)
    };
    assert_eq!((call.start, call.end), (1_500_010_250, 1_500_260_750));
    assert_eq!(
        (call.kind.as_str(), call.message_bytes, call.rank),
        ("AllReduce", Some(1 << 20), Some(1))
    );
    // 11853338391520312345 in base 16.
    assert_eq!(call.communicator.as_deref(), Some("0xa47f847725117c19"));
    assert_eq!((send.kind.as_str(), send.message_bytes), ("Send", Some(10)));
}

#[test]
fn a_trace_that_ends_early_keeps_what_it_has() {
    let end = NCCL.find("{\"name\": \"Send\"").unwrap();
    let trace = read(&NCCL[..end]).unwrap();
    assert_eq!(trace.calls.len(), 1);
    let reason = trace.is_cut.unwrap();
    assert!(
        reason.starts_with(&format!("ends early, after {end} bytes")),
        "{reason}"
    );
}

fn error(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn what_is_no_trace_is_named_with_file_and_byte() {
    // A comma is missing before the second event, at byte 12.
    let said = error("[{\"ph\":\"X\"} {\"ph\":\"X\"}]");
    assert!(said.starts_with("t.json: no trace: byte 13: "), "{said}");
    for text in ["12", "[1]", "{\"traceEvents\": 5}", "\u{1b}[31m", "", "[{}] x"] {
        let said = error(text);
        assert!(
            said.starts_with("t.json: no trace: byte ") && !said.contains('\u{1b}'),
            "{text}: {said}"
        );
    }
    let deep = format!("{{\"a\":{}", "[".repeat(100));
    assert!(
        error(&deep).contains("byte 68: arrays and objects are nested"),
        "{}",
        error(&deep)
    );
    let long = format!("[{{\"name\":\"{}\"}}]", "x".repeat(3 << 20));
    assert!(error(&long).contains("a string is longer"), "{}", error(&long));
}

#[test]
fn a_trace_without_collectives_says_how_to_get_them() {
    assert!(error("[]").contains("no collective in 0 events"));
    let host = r#"[{"ph":"X","name":"record_param_comms","ts":1,"dur":1,"args":{}}]"#;
    assert!(error(host).contains("ProfilerActivity.CUDA, too"));
    let open = r#"[{"ph":"b","cat":"COLL","name":"AllReduce","ts":1,"id":1,"pid":1}]"#;
    assert!(error(open).contains("have no end"));
}

#[test]
fn unusual_values_do_not_stop_a_trace() {
    // Numbers as text, fields twice, arrays where text belongs, times that are no times, names that steer a terminal.
    let text = format!(
        r#"{{"traceEvents": [
        {{"ph":"X","name":"ncclDevKernel_AllReduce","ts":"5","dur":"2.5","args":{{"dtype":["x"],"In msg nelems":-3,"Process Group Name":7}}}},
        {{"ph":"X","ph":"X","name":"ncclDevKernel_\u001b]0;x\u0007Evil{}","ts":1e1,"dur":-5,"args":null}},
        {{"ph":"X","name":"ncclDevKernel_AllReduce","ts":1e300,"dur":1}},
        {{"ph":"X","name":"ncclDevKernel_AllReduce","ts":null,"dur":1,"args":[1,{{"a":2}}]}},
        {{"ph":5,"name":{{"a":[1]}}}}
        ], "baseTimeNanoseconds": "x", "distributedInfo": "none"}}"#,
        "x".repeat(1_000)
    );
    let trace = read(&text).unwrap();
    let [first, second] = trace.calls.as_slice() else {
        panic!("{:?}", trace.calls)
    };
    assert_eq!(
        (first.start, first.end, first.message_bytes),
        (5_000, 7_500, None)
    );
    assert_eq!(first.communicator.as_deref(), Some("7"));
    assert_eq!((second.start, second.end), (10_000, 10_000));
    assert!(
        !second.kind.contains(roce_model::text::steers),
        "{:?}",
        second.kind
    );
    assert!(second.kind.chars().count() <= MAX_NAME);
}

#[test]
fn a_large_trace_takes_linear_time_and_bounded_memory() {
    // 400,000 kernels, of which 65,536 are kept; events of the host between them.
    let mut text = String::from("{\"traceEvents\":[");
    for n in 0..400_000u64 {
        use std::fmt::Write as _;
        write!(
            text,
            r#"{{"ph":"X","name":"record_param_comms","ts":{n},"dur":1,"args":{{"External id":{n},"dtype":"Float","In msg nelems":5}}}},{{"ph":"X","name":"ncclDevKernel_AllReduce","ts":{n},"dur":1,"args":{{"External id":{n}}}}},"#
        )
        .unwrap();
    }
    text.push_str("{}]}");
    let begun = std::time::Instant::now();
    let trace = read(&text).unwrap();
    assert_eq!(
        (trace.calls.len(), trace.left_out),
        (MAX_CALLS, 400_000 - MAX_CALLS as u64)
    );
    assert_eq!(trace.calls[MAX_CALLS - 1].message_bytes, Some(20));
    // 75 MB; a debug build on a busy machine takes some seconds.
    assert!(begun.elapsed().as_secs() < 120, "{:?}", begun.elapsed());
}
