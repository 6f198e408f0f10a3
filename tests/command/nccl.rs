//! `--nccl-log` and `explain LINE`, and errors of a log beside a capture: logs in the form of NCCL that name the queue pairs of captures.

use std::fs;

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::captures::root;
use crate::command::{document, flows, run};

const LOG: &str = "tests/data/fabric/nccl/write_bw_loss.log";
const CAPTURE: &str = "captures/write_bw_loss.pcap";

fn of<'a>(document: &'a Value, source: &str) -> &'a Value {
    let mut flows = flows(document).iter();
    flows.find(|flow| flow["source"] == source).unwrap()
}

#[test]
fn flows_have_the_ranks_of_the_log() {
    let found = document(&root(), [CAPTURE, "-q", "--nccl-log", LOG]);
    // The log: rank 0 sends from 10.77.0.1, queue pair 19, to rank 1.
    let columns =
        |flow: &Value| ["rank", "peer_rank", "communicator", "channel"].map(|name| flow[name].clone());
    assert_eq!(
        columns(of(&found, "10.77.0.1")),
        [json!(0), json!(1), json!("0x5ae77eb5ea4ec1ee"), json!(0)]
    );
    assert_eq!(
        columns(of(&found, "10.77.0.2")),
        [json!(1), json!(0), json!("0x5ae77eb5ea4ec1ee"), json!(0)]
    );
    assert_eq!(found["run"]["options"]["nccl_log"], LOG);
    let findings = found["findings"].as_array().unwrap();
    let loss = findings
        .iter()
        .find(|finding| finding["id"] == "loss.network")
        .unwrap();
    assert!(
        loss.to_string().contains("[rank 0 > rank 1, channel 0]"),
        "{loss}"
    );
    // Without a log nothing is claimed.
    let plain = document(&root(), [CAPTURE]);
    assert_eq!(
        columns(of(&plain, "10.77.0.1")),
        [Value::Null, Value::Null, Value::Null, Value::Null]
    );
}

#[test]
fn ranks_are_on_the_screen_and_on_the_page() {
    let ran = run(&root(), [CAPTURE, "--nccl-log", LOG]);
    assert_eq!(ran.code, Some(0));
    assert_eq!(
        ran.stderr,
        "note: tests/data/fabric/nccl/write_bw_loss.log: 2 queue pairs of 2 ranks\n"
    );
    let line = ran
        .stdout
        .lines()
        .find(|line| line.contains("0x13") && line.contains("ch 0"))
        .unwrap();
    assert!(line.contains("0 > 1 ch 0"), "{line}");
    // A flow is chosen by the name that results print.
    let name = "10.77.0.1 > 10.77.0.2 QP 0x13 [rank 0 > rank 1, channel 0]";
    let chosen = document(&root(), [CAPTURE, "-q", "--nccl-log", LOG, "--flow", name]);
    assert_eq!(flows(&chosen).len(), 1);
}

#[test]
fn logs_that_say_nothing_are_named() {
    let folder = tempdir().unwrap();
    fs::copy(root().join(CAPTURE), folder.path().join("a.pcap")).unwrap();
    fs::write(folder.path().join("other.log"), "hello\n\u{1b}[31mworld\n").unwrap();
    let ran = run(folder.path(), ["a.pcap", "--nccl-log", "other.log"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("other.log: none of 2 lines is of NCCL"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("hint: set NCCL_DEBUG=INFO"), "{}", ran.stderr);
    let ran = run(folder.path(), ["a.pcap", "--nccl-log", "missing.log"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("missing.log"), "{}", ran.stderr);
    // A log without the subsystem NET.
    fs::write(
        folder.path().join("init.log"),
        "h:1:2 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\nh:1:2 [0] NCCL INFO Using network IB\n",
    )
    .unwrap();
    let ran = run(folder.path(), ["a.pcap", "--nccl-log", "init.log"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("flows stay without ranks"), "{}", ran.stderr);
    // Bytes that are no text, and a line of a megabyte, beside the log.
    let mut hostile = fs::read(root().join(LOG)).unwrap();
    hostile.extend(vec![0xff; 1 << 20]);
    hostile.extend(b"\nh:1:2 [0] NCCL INFO \xff\xfe qpn ");
    fs::write(folder.path().join("hostile.log"), hostile).unwrap();
    let found = document(folder.path(), ["a.pcap", "-q", "--nccl-log", "hostile.log"]);
    assert_eq!(of(&found, "10.77.0.1")["rank"], 0);
}

/// A line in the words of NCCL 2.27, about the connection of the captures.
fn line(status: &str) -> String {
    format!(
        "h1:4100:4120 [0] transport/net_ib.cc:2210 NCCL WARN NET/IB: Got completion from peer 10.9.0.2<43100> with status={status} \
         opcode=IBV_WC_RDMA_WRITE(1) reqSize=0 vendor_err=129 req_type=Send localGid ::ffff:10.77.0.1 remoteGids::ffff:10.77.0.2 hca rxe0"
    )
}

fn explained(capture: &str, line: &str, more: &[&str]) -> Value {
    let mut arguments = vec!["explain", line, capture, "--format", "json"];
    arguments.extend(more);
    run(&root(), arguments).good().json()["errors"][0].clone()
}

#[test]
fn a_refused_request_is_explained() {
    // captures/README.md: 174 packets are retransmitted after timeouts that are too short; one NAK 0x61 (invalid request).
    let capture = "captures/write_bw_nak_invalid_request.pcap";
    let found = explained(capture, &line("IBV_WC_REM_INV_REQ_ERR(9)"), &[]);
    assert_eq!(
        (&found["status_number"], &found["found_by"]),
        (&json!(9), &json!("addresses"))
    );
    let end = &found["connections"][0];
    assert_eq!(end["flow"], "10.77.0.1 > 10.77.0.2 QP 0x19");
    assert_eq!(
        (&end["naks"], &end["last_nak_syndrome"]),
        (&json!(1), &json!(0x61))
    );
    assert_eq!(end["shown"], "the peer refused a request: invalid request");
    // tests/data/golden: 1,631 packets there, 263 back.
    assert_eq!((&end["packets"], &end["answers"]), (&json!(1_631), &json!(263)));
    // With the log the line's rank and queue pair are known.
    let log = "tests/data/fabric/nccl/write_bw_nak_invalid_request.log";
    let known = explained(
        capture,
        &line("IBV_WC_REM_INV_REQ_ERR(9)"),
        &["-q", "--nccl-log", log],
    );
    assert_eq!(known["connections"][0]["ranks"], "rank 0 > rank 1, channel 0");
    let text = run(&root(), ["explain", &line("IBV_WC_REM_INV_REQ_ERR(9)"), capture])
        .good()
        .stdout;
    assert!(
        text.contains("IBV_WC_REM_INV_REQ_ERR (9), vendor error 129 (0x81)"),
        "{text}"
    );
}

#[test]
fn a_receiver_without_buffers_is_explained() {
    // captures/README.md: 2 RNR NAKs.
    let found = explained("captures/rnr.pcap", &line("IBV_WC_RNR_RETRY_EXC_ERR(13)"), &[]);
    let end = &found["connections"][0];
    assert_eq!(end["rnr_naks"], 2);
    assert_eq!(
        end["shown"],
        "the peer refused 2 times because it had no receive buffer"
    );
}

#[test]
fn what_the_packets_do_not_show_is_not_said() {
    // Every request of this capture is answered.
    let found = explained(
        "captures/clean_write_bw.pcap",
        &line("IBV_WC_RETRY_EXC_ERR(12)"),
        &[],
    );
    let end = &found["connections"][0];
    assert_eq!(end["retransmission_runs"], 0);
    assert!(
        end["shown"]
            .as_str()
            .unwrap()
            .contains("the end that the line reports is not in it"),
        "{end}"
    );
    let other = line("IBV_WC_RETRY_EXC_ERR(12)").replace("10.77.0.2", "10.99.0.2");
    let found = explained("captures/clean_write_bw.pcap", &other, &[]);
    assert_eq!(found["connections"], json!([]));
    // Text that is no error.
    let ran = run(&root(), ["explain", "hello", CAPTURE]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("no error of a known program in this text"),
        "{}",
        ran.stderr
    );
    let ran = run(&root(), ["explain", "hello", CAPTURE, "--format", "perfetto"]);
    assert!(
        ran.stderr.contains("explain prints text or JSON"),
        "{}",
        ran.stderr
    );
}

#[test]
fn errors_of_a_log_are_shown_beside_a_capture() {
    let log = "tests/data/fabric/nccl/write_bw_nak_invalid_request.log";
    let capture = "captures/write_bw_nak_invalid_request.pcap";
    let ran = run(&root(), ["traffic", "results", log, "--capture", capture]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for part in [
        "nccl.completion_error: IBV_WC_REM_INV_REQ_ERR",
        "write_bw_nak_invalid_request.log:22",
        "10.77.0.1 > 10.77.0.2 QP 0x19",
        "the peer refused a request: invalid request",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let found = run(
        &root(),
        [
            "traffic",
            "results",
            log,
            "--capture",
            capture,
            "--format",
            "json",
        ],
    )
    .json();
    assert_eq!(
        found["capture"]["errors"][0]["connections"][0]["last_nak_syndrome"],
        0x61
    );
    // The error is a finding of the capture, too.
    let found = document(&root(), [capture, "-q", "--nccl-log", log]);
    let findings = found["findings"].as_array().unwrap();
    let finding = findings
        .iter()
        .find(|finding| finding["id"] == "nccl.completion_error")
        .unwrap();
    assert!(
        finding["summary"].as_str().unwrap().contains("of rank 0"),
        "{finding}"
    );
    let ran = run(
        &root(),
        [
            "traffic",
            "results",
            "tests/data/results/rdma_bw.txt",
            "--capture",
            capture,
        ],
    );
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("no error of a known program"),
        "{}",
        ran.stderr
    );
}

/// The table `collectives` of a simulated capture at all hosts: `hosts` of them, and the flows of `traffic`.
#[cfg(feature = "sim")]
fn shapes(hosts: u32, seed: u32, traffic: &str) -> Vec<Value> {
    let folder = tempdir().unwrap();
    let scenario = format!(
        "title = \"shapes\"\nseed = {seed}\nduration = \"20ms\"\n[network]\nhosts = {hosts}\nrate = \"25Gbps\"\n[nic]\nmtu = 4096\n{traffic}\n"
    );
    let taps: Vec<String> = (1..=hosts)
        .map(|host| format!("[[tap]]\nat = \"h{host}\"\nfile = \"all\"\nsnaplen = 96\n"))
        .collect();
    let scenario = scenario + &taps.concat();
    fs::write(folder.path().join("shapes.toml"), scenario).unwrap();
    run(folder.path(), ["simulate", "shapes.toml", "-o", "shapes.pcapng"]).good();
    let made: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".pcapng"))
        .collect();
    assert_eq!(made.len(), 1, "{made:?}");
    let found = document(folder.path(), [made[0].as_str(), "-q"]);
    found["collectives"].as_array().unwrap().clone()
}

#[cfg(feature = "sim")]
#[test]
fn simulated_shapes_are_found() {
    // A ring of three to eight hosts, of 16 messages for each.
    for (hosts, seed) in [(3, 11), (4, 12), (5, 13), (8, 14)] {
        let ring = format!(
            "[[flow]]\nfrom = \"h1..h{hosts}\"\npattern = \"ring\"\nmessage = \"64KiB\"\ncount = 16\n"
        );
        let found = shapes(hosts, seed, &ring);
        assert_eq!(found.len(), 1, "{hosts}: {found:?}");
        assert_eq!(
            (&found[0]["shape"], &found[0]["members"]),
            (&json!("ring"), &json!(hosts))
        );
        // Each sends 16 x 65,536 bytes.
        assert_eq!(found[0]["payload_bytes"], u64::from(hosts) * 16 * 65_536);
        let order = found[0]["hosts"].as_str().unwrap();
        let last = |name: &str| name.rsplit('.').next().unwrap().parse::<u32>().unwrap();
        let order: Vec<u32> = order.split(" > ").map(last).collect();
        assert!(order.windows(2).all(|pair| pair[1] == pair[0] + 1), "{order:?}");
    }
    for (hosts, seed) in [(4, 21), (6, 22)] {
        let all = format!(
            "[[flow]]\nfrom = \"h1..h{hosts}\"\nto = \"h1..h{hosts}\"\nmessage = \"64KiB\"\ncount = 8\n"
        );
        let found = shapes(hosts, seed, &all);
        assert_eq!(found.len(), 1, "{hosts}: {found:?}");
        assert_eq!(
            (&found[0]["shape"], &found[0]["members"]),
            (&json!("all_to_all"), &json!(hosts))
        );
    }
}

#[cfg(feature = "sim")]
#[test]
fn other_simulated_traffic_has_no_shape() {
    for (name, traffic) in [
        (
            "incast",
            "[[flow]]\nfrom = \"h2..h6\"\nto = \"h1\"\nmessage = \"64KiB\"\ncount = 8\n",
        ),
        (
            "pairs",
            "[[flow]]\nfrom = \"h1..h3\"\nto = \"h4..h6\"\npattern = \"zip\"\nmessage = \"64KiB\"\ncount = 8\n",
        ),
        (
            "two groups",
            "[[flow]]\nfrom = \"h1..h3\"\nto = \"h4..h6\"\nmessage = \"64KiB\"\ncount = 8\n",
        ),
        (
            "an uneven ring",
            "[[flow]]\nfrom = \"h1..h6\"\npattern = \"ring\"\nmessage = \"64KiB\"\ncount = 8\n\
             [[flow]]\nfrom = \"h1\"\nto = \"h2\"\nmessage = \"64KiB\"\ncount = 16\n",
        ),
    ] {
        assert_eq!(shapes(6, 31, traffic), Vec::<Value>::new(), "{name}");
    }
}

#[test]
fn a_job_in_steps_is_a_sure_ring() {
    // analyzer/sim/scenarios/training.toml: ranks h1 to h4 reduce in a ring, in 8 steps; h1 and h3 capture.
    let captures = [
        "captures/demos/training-h1.pcapng",
        "captures/demos/training-h3.pcapng",
        "-q",
    ];
    let found = document(&root(), captures);
    let shapes = found["collectives"].as_array().unwrap();
    assert_eq!(shapes.len(), 1, "{shapes:?}");
    assert_eq!(
        (
            &shapes[0]["shape"],
            &shapes[0]["members"],
            &shapes[0]["confidence"]
        ),
        (&json!("ring"), &json!(4), &json!("high"))
    );
    // One of the two captures shows two of four connections: that is no ring.
    let found = document(&root(), &captures[..1]);
    assert_eq!(found["collectives"], json!([]));
}

#[test]
fn shapes_of_a_log_are_rows() {
    let found = document(&root(), [CAPTURE, "-q", "--nccl-log", LOG]);
    let rows = found["collectives"].as_array().unwrap();
    let of = |shape: &str| rows.iter().find(|row| row["shape"] == shape).unwrap();
    assert_eq!(
        (&of("ring")["ranks"], &of("ring")["evidence"]),
        (&json!("0 > 1"), &json!("log"))
    );
    assert_eq!(of("tree")["ranks"], "0 > 1");
    assert_eq!(rows.len(), 2);
}
