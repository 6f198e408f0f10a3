//! `--merge`: traces whose true relation to the capture is known, since a simulation made both.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use flate2::write::GzEncoder;
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use super::decoder::Trace;
use crate::captures::root;
use crate::command::{Ran, command, document, run};

/// A training job of four ranks on 10 Gbit/s: 1 MiB takes 1.26 ms at least (each rank sends 2 * 3/4 of it). `more` adds traffic.
fn scenario(seed: u64, steps: u32, more: &str) -> String {
    format!(
        r#"
title = "a ring"
seed = {seed}
duration = "{}ms"

[network]
hosts = 8
rate = "10Gbps"

[switch]
kmin = "20KB"
kmax = "400KB"
pmax = 0.2

[nic]
mtu = 4096
ack_every = 16

[[training]]
ranks = "h1..h4"
steps = {steps}
compute = "3ms"
spread = 0.3
bytes = "1MiB"
{more}
[[tap]]
at = "h1"
snaplen = 96
"#,
        steps * 7
    )
}

/// Six hosts' worth of data into the first rank, from 60 ms on.
const INCAST: &str = r#"
[[flow]]
name = "incast"
from = "h5..h8"
to = "h1"
message = "1MiB"
outstanding = 2
count = 6
begin = "60ms"
react = true
"#;

/// A simulated capture with its truth.
struct SimulatedCapture {
    folder: TempDir,
    truth: Value,
}

fn simulated(scenario: &str) -> SimulatedCapture {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("ring.toml"), scenario).unwrap();
    run(
        folder.path(),
        [
            "simulate",
            "ring.toml",
            "-o",
            "ring.pcapng",
            "--truth",
            "truth.json",
        ],
    )
    .good();
    let truth = fs::read_to_string(folder.path().join("truth.json")).unwrap();
    SimulatedCapture {
        truth: serde_json::from_str(&truth).unwrap(),
        folder,
    }
}

/// How a trace's clock differs from the true one: trace = (true - offset) * (1 - drift), in ns since the simulation's begin.
#[derive(Clone, Copy, Debug)]
struct Skew {
    offset: f64,
    drift: f64,
}

impl SimulatedCapture {
    /// Begin and end of each all-reduce of a rank, in ns since the simulation's begin.
    fn steps(&self, rank: u64) -> Vec<(f64, f64)> {
        let steps = self.truth["steps"].as_array().unwrap().iter();
        let own = steps.flat_map(|step| step["ranks"].as_array().unwrap());
        let times = own.filter(|own| own["rank"] == rank && !own["end"].is_null());
        times
            .map(|own| (own["begin"].as_f64().unwrap(), own["end"].as_f64().unwrap()))
            .collect()
    }

    fn start(&self) -> u64 {
        self.truth["start_ns"].as_u64().unwrap()
    }

    /// Writes the trace of a rank as NCCL's plugin does, with times since its own start.
    fn nccl(&self, name: &str, rank: u64, skew: Skew) {
        let mut text = String::from("[\n");
        for (number, (begin, end)) in self.steps(rank).into_iter().enumerate() {
            // A kernel begins before the first packet, and ends some microseconds behind the last.
            let at = |time: f64| (time - skew.offset) * (1.0 - skew.drift) / 1_000.0;
            let tail = 5_000.0 + f64::from(u32::try_from(number * 7_919 % 30_000).unwrap());
            writeln!(
                text,
                r#"{{"name": "AllReduce", "cat": "COLL", "ph": "b", "id": {number}, "pid": 42, "tid": 1, "ts": {:.6}, "args": {{"SeqNum": {number}, "CommHash": 123456789, "Rank": {rank}, "Count": 262144, "Datatype": "ncclFloat32", "Algorithm": "RING", "Protocol": "SIMPLE", "nChannels": 1}}}},"#,
                at(begin)
            )
            .unwrap();
            writeln!(
                text,
                r#"{{"name": "AllReduce", "cat": "COLL", "ph": "e", "id": {number}, "pid": 42, "tid": 1, "ts": {:.6}}},"#,
                at(end + tail)
            )
            .unwrap();
        }
        text.push_str("{} ]\n");
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// Writes the trace of a rank as PyTorch's profiler does, with a stated epoch that is `offset` ns wrong.
    fn kineto(&self, name: &str, rank: u64, offset: i64) {
        // Whole seconds before the begin, so that times are not negative.
        let base = self.start() - 5_000_000_000;
        let mut text = format!(
            r#"{{"schemaVersion": 1, "distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": 4}}, "displayTimeUnit": "ms", "baseTimeNanoseconds": {base}, "traceEvents": ["#
        );
        for (begin, end) in self.steps(rank) {
            #[expect(clippy::cast_precision_loss, reason = "some seconds")]
            let at = (begin + 5e9 - offset as f64) / 1_000.0;
            writeln!(
                text,
                r#"{{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "pid": 0, "tid": 20, "ts": {at:.3}, "dur": {:.3}, "args": {{"Collective name": "allreduce", "In msg nelems": 262144, "Out msg nelems": 262144, "Group size": 4, "dtype": "Float", "Process Group Name": "0"}}}},"#,
                (end - begin) / 1_000.0
            )
            .unwrap();
        }
        text.push_str("{}], \"traceName\": \"x\"}");
        let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        fs::write(self.folder.path().join(name), packed.finish().unwrap()).unwrap();
    }

    fn document(&self, traces: &[&str]) -> Value {
        let merge = traces.iter().flat_map(|trace| ["--merge", trace]);
        document(self.folder.path(), ["ring.pcapng"].into_iter().chain(merge))
    }

    fn refused(&self, arguments: &[&str]) -> Ran {
        run(
            self.folder.path(),
            ["ring.pcapng", "--format", "json"].iter().chain(arguments),
        )
    }

    /// The largest difference between the calls' times in a document and the truth, in ns.
    fn error(&self, document: &Value, rank: u64) -> f64 {
        let steps = self.steps(rank);
        let calls = document["collective_calls"].as_array().unwrap();
        let of_rank: Vec<&Value> = calls.iter().filter(|call| call["rank"] == rank).collect();
        assert_eq!(of_rank.len(), steps.len());
        let starts = of_rank.iter().zip(steps).map(|(call, (begin, _))| {
            let start: u64 = call["start_time"].as_str().unwrap().parse().unwrap();
            #[expect(clippy::cast_precision_loss, reason = "less than a second")]
            let start = (start.cast_signed() - self.start().cast_signed()) as f64;
            (start - begin).abs()
        });
        starts.fold(0.0, f64::max)
    }
}

#[test]
fn merged_clocks_are_found_within_their_uncertainty() {
    for seed in [1, 2, 3] {
        let made = simulated(&scenario(seed, 24, ""));
        for (offset, drift) in [(3.7e9, 20e-6), (-2_500e9, -80e-6), (0.15e9, 0.0)] {
            for rank in [0, 2] {
                let skew = Skew { offset, drift };
                made.nccl("rank.json", rank, skew);
                let document = made.document(&["rank.json"]);
                let trace = &document["traces"][0];
                assert_eq!(trace["clock"], "traffic", "{seed} {skew:?}");
                assert_eq!(
                    (&trace["rank"], &trace["form"]),
                    (&Value::from(rank), &Value::from("nccl"))
                );
                let uncertainty = trace["uncertainty_ns"].as_f64().unwrap();
                let error = made.error(&document, rank);
                assert!(
                    error <= uncertainty,
                    "{seed} {rank} {skew:?}: {error} beyond {uncertainty}"
                );
                // Bins of this capture are 1 ms at most: the statement is not an empty one.
                assert!(uncertainty < 2e6, "{uncertainty}");
            }
        }
    }
}

#[test]
fn merged_collectives_have_what_the_network_did() {
    let made = simulated(&scenario(4, 24, ""));
    made.kineto("rank0.json.gz", 0, 300_000_000);
    let document = made.document(&["rank0.json.gz"]);
    let trace = &document["traces"][0];
    // The stated epoch is 0.3 s wrong, and the traffic shows it.
    assert_eq!(
        (trace["clock"].as_str(), trace["form"].as_str()),
        (Some("stated"), Some("kineto"))
    );
    let offset = trace["offset_ns"].as_f64().unwrap();
    let uncertainty = trace["uncertainty_ns"].as_f64().unwrap();
    assert!(
        (offset - 300e6).abs() <= uncertainty,
        "{offset} within {uncertainty}"
    );
    let calls = document["collective_calls"].as_array().unwrap();
    let sum = |name: &str| calls.iter().filter_map(|call| call[name].as_u64()).sum::<u64>();
    // The tap at h1 sees what rank 0 sends and receives: 2 * 2 * 3/4 MiB of each all-reduce.
    let expected = 24 * 2 * 2 * 3 * (1 << 20) / 4;
    let found = sum("network_bytes");
    assert!(
        found <= expected && found * 100 >= expected * 90,
        "{found} of {expected}"
    );
    assert!(
        calls
            .iter()
            .all(|call| call["message_bytes"] == 1 << 20 && call["kind"] == "AllReduce")
    );
    assert!(
        calls.iter().all(|call| call["is_slowed"] == false),
        "nothing slows them"
    );
    assert!(
        document["findings"]
            .as_array()
            .unwrap()
            .iter()
            .all(|finding| finding["id"] != "collective.slowed")
    );
    // With another host's address no traffic belongs to it.
    let other = made.refused(&["--merge", "192.0.2.1=rank0.json.gz"]);
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(
        other
            .stderr
            .contains("rank0.json.gz: is not merged: the capture has no traffic"),
        "{other:?}"
    );
}

#[test]
fn merged_collectives_are_slowed_by_an_incast() {
    let made = simulated(&scenario(5, 24, INCAST));
    made.nccl(
        "rank0.json",
        0,
        Skew {
            offset: 3.7e9,
            drift: 20e-6,
        },
    );
    let document = made.document(&["rank0.json"]);
    let finding = document["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["id"] == "collective.slowed");
    let finding = finding.unwrap_or_else(|| panic!("{:#}", document["collective_calls"]));
    assert_eq!(
        (finding["severity"].as_str(), finding["confidence"].as_str()),
        (Some("warning"), Some("medium"))
    );
    let calls = document["collective_calls"].as_array().unwrap();
    let slowed: Vec<&Value> = calls.iter().filter(|call| call["is_slowed"] == true).collect();
    assert_eq!(finding["evidence"]["slowed"], slowed.len());
    for call in &slowed {
        // 4 * 6 MiB at 10 Gbit/s take 20 ms at least, and the senders slow down: the incast is from 60 ms to 140 ms at most.
        let at = |name: &str| call[name].as_str().unwrap().parse::<u64>().unwrap() - made.start();
        assert!(
            at("end_time") > 60_000_000 && at("start_time") < 140_000_000,
            "{call}"
        );
        assert!(call["ce"].as_u64().unwrap() > 0, "{call}");
        assert!(
            call["duration_ns"].as_u64().unwrap() * 2 >= call["median_ns"].as_u64().unwrap() * 3,
            "{call}"
        );
    }
}

#[test]
fn merged_trace_has_ranks_with_arrows() {
    let made = simulated(&scenario(5, 24, INCAST));
    for rank in [0, 1] {
        made.nccl(
            &format!("rank{rank}.json"),
            rank,
            Skew {
                offset: 3.7e9,
                drift: 20e-6,
            },
        );
    }
    let traces = ["rank0.json", "rank1.json"];
    let document = made.document(&traces);
    let slowed = document["collective_calls"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|call| call["is_slowed"] == true)
        .count();
    assert!(slowed > 0);
    let merge = traces.iter().flat_map(|trace| ["--merge", trace]);
    let output = command(made.folder.path())
        .args(["ring.pcapng", "--format", "perfetto"])
        .args(merge)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let trace = Trace::read(&output.stdout);
    trace.check();
    let collectives = trace.on("collectives of 0x75bcd15");
    assert_eq!(collectives.len(), 48);
    let with_name = collectives
        .iter()
        .filter(|slice| slice.name == "AllReduce (slowed)");
    let arrows: Vec<usize> = with_name.map(|slice| slice.into.len()).collect();
    assert_eq!(arrows, vec![1; slowed]);
    assert!(
        collectives
            .iter()
            .all(|slice| slice.facts["message_bytes"] == "1048576")
    );
    by_schema(made.folder.path(), &output.stdout, &document);
}

/// Perfetto's own schema, and its trace processor where there is one, have the numbers of the document.
fn by_schema(folder: &Path, trace: &[u8], document: &Value) {
    let python = std::env::var_os("PERFETTO_PYTHON").unwrap_or_else(|| "python3".into());
    let import = [
        "-c",
        "from perfetto.protos.perfetto.trace import perfetto_trace_pb2",
    ];
    let is_there = Command::new(&python).args(import).output();
    if !is_there.is_ok_and(|output| output.status.success()) {
        let line = b"SKIPPED: perfetto::merged::merged_trace_has_ranks_with_arrows: python3 has no packages perfetto and protobuf\n";
        std::io::stdout().write_all(line).unwrap();
        return;
    }
    fs::write(folder.join("a.pftrace"), trace).unwrap();
    fs::write(folder.join("a.json"), document.to_string()).unwrap();
    let checked = Command::new(&python)
        .arg(root().join("tests/independent/check_merged.py"))
        .args([folder.join("a.pftrace"), folder.join("a.json")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stdout);
    let error = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{said}{error}");
}

#[test]
fn merged_example_of_the_documents_follows_from_its_truth() {
    let folder = root().join("captures/traces");
    let made = simulated(&fs::read_to_string(folder.join("ring.toml")).unwrap());
    let skew = Skew {
        offset: 3.7e9,
        drift: 20e-6,
    };
    made.nccl("rank0.json", 0, skew);
    let text = |path: &Path| fs::read_to_string(path).unwrap();
    assert_eq!(
        text(&made.folder.path().join("rank0.json")),
        text(&folder.join("rank0.json"))
    );
}

#[test]
fn merged_traces_that_do_not_fit_are_refused() {
    let made = simulated(&scenario(6, 24, ""));
    let other = simulated(&scenario(7, 24, ""));
    // The trace of another job.
    other.nccl(
        "other.json",
        0,
        Skew {
            offset: 0.0,
            drift: 0.0,
        },
    );
    fs::copy(
        other.folder.path().join("other.json"),
        made.folder.path().join("other.json"),
    )
    .unwrap();
    let refused = made.refused(&["--merge", "other.json"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("other.json: is not merged: its collectives fit the"),
        "{refused:?}"
    );
    // The run itself has its results.
    let document: Value = serde_json::from_str(&refused.stdout).unwrap();
    assert!(document["traces"].is_null() && !document["flows"].as_array().unwrap().is_empty());
    // A stated epoch an hour away.
    made.kineto("hour.json.gz", 0, 3_600_000_000_000);
    let refused = made.refused(&["--merge", "hour.json.gz"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("hour.json.gz: is not merged: its collectives are from"),
        "{refused:?}"
    );
    // A file that is no trace is named before anything is read.
    let folder = made.folder.path();
    // The comma is followed by a brace at byte 11; the parser looks one byte further.
    fs::write(folder.join("bad.json"), "[{\"ph\":\"X\",}]").unwrap();
    let refused = made.refused(&["--merge", "bad.json"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("bad.json: no trace: byte 13: trailing comma"),
        "{refused:?}"
    );
    fs::write(folder.join("long.json"), format!("[{}]", "{},".repeat(1_000))).unwrap();
    let refused = made.refused(&["--merge", "long.json", "--max-input", "2000"]);
    assert!(
        refused.stderr.contains("long.json: longer than 2000 bytes"),
        "{refused:?}"
    );
    let refused = made.refused(&["--merge", "none.json"]);
    assert!(
        refused.stderr.contains("none.json: cannot be opened"),
        "{refused:?}"
    );
}
