//! Lines of programs that report failed requests: `explain LINE`, `--job-log` and `traffic results --capture`. Forms of the lines are those of
//! the programs' sources; addresses and numbers are those of `tests/data/ends/beside_healthy.pcap`, in which QP 0x2b9a is never answered
//! and QP 0x400 is healthy.

use std::fs;

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::captures::root;
use crate::command::{document, run};

const CAPTURE: &str = "tests/data/ends/beside_healthy.pcap";

/// UCX, `ib_mlx5_log.c`: the status, and the line with the queue pairs.
const UCX: &str = "\
[node1:37049:0:37049] ib_mlx5_log.c:177  Transport retry count exceeded on mlx5_1:1/RoCE (synd 0x15 vend 0x81 hw_synd 0/0)
[node1:37049:0:37049] ib_mlx5_log.c:177  RC QP 0x221d2 wqe[332]: SEND s-e [rqpn 0x2b9a dlid=0 sl=0 port=1 dgid ::ffff:10.150.5.46 sgid_index=3 traffic_class=106] [inl len 26]";

fn explained(line: &str) -> Value {
    run(&root(), ["explain", line, CAPTURE, "--format", "json"])
        .good()
        .json()["errors"][0]
        .clone()
}

#[test]
fn lines_of_programs_name_the_connection_that_ended_so() {
    for (line, program, found_by) in [
        (UCX, "UCX", json!("queue_pair")),
        (
            "Nov 25 18:00:01 n1 kernel: nvme nvme0: SEND for CQE 0x00000000b63f8f0e failed with status transport retry counter exceeded (12)",
            "NVMe of the kernel",
            json!(null),
        ),
        (
            "3:  Failed status 12: wr_id 0 syndrom 0x81",
            "perftest",
            json!(null),
        ),
        (
            "fi_cq_readerr: prov_errno 12 transport retry counter exceeded local 10.150.5.44 remote 10.150.5.46 qpn 0x221d2",
            "libfabric",
            json!("addresses"),
        ),
        (
            "Worker: Process failed for slice (opcode: 1, local_nic: mlx5_7, peer_nic: 10.150.5.46:15729@mlx5_0, retry_cnt: 0): transport retry counter exceeded",
            "Mooncake",
            json!("address"),
        ),
        (
            "[rank3]:[E1125 18:00:01.0 ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4411, OpType=ALLREDUCE)",
            "PyTorch",
            json!(null),
        ),
    ] {
        let found = explained(line);
        assert_eq!(
            (&found["program"], &found["found_by"]),
            (&json!(program), &found_by),
            "{line}"
        );
        assert_eq!(
            found["connections"][0]["flow"], "10.150.5.44 > 10.150.5.46 QP 0x2b9a",
            "{line}"
        );
        let shown = found["connections"][0]["shown"].as_str().unwrap();
        assert!(shown.contains("no answer reached it"), "{shown}");
    }
}

#[test]
fn where_nothing_ended_so_nobody_is_named() {
    // No request of this capture was refused.
    for line in [
        "mlx5_bond_1/1: QP 139729 error: remote access error (0x88 0x0 0x0)",
        " Failed status 10: wr_id 0 syndrom 0x88",
        "nvme nvme0: RECV for CQE 0x00000000b63f8f0e failed with status WR flushed (5)",
    ] {
        assert_eq!(explained(line)["connections"], json!([]), "{line}");
    }
}

#[test]
fn a_line_alone_is_translated_and_another_one_refused() {
    let text = run(
        &root(),
        [
            "explain",
            "mlx5_bond_1/1: QP 139729 error: remote access error (0x88 0x0 0x0)",
        ],
    )
    .good()
    .stdout;
    for part in [
        "IBV_WC_REM_ACCESS_ERR (10), vendor error 136 (0x88)",
        "own QP 0x221d1, adapter mlx5_bond_1",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for line in [
        "h:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:192.0.2.1<0>",
        "Nov 25 18:00:01 n17 sshd[812]: Failed password for root from 10.0.0.9 port 51234 ssh2",
        "the status of this request was 12 at last",
    ] {
        for more in [&[][..], &[CAPTURE]] {
            let arguments: Vec<&str> = ["explain", line].iter().chain(more).copied().collect();
            let ran = run(&root(), arguments);
            assert_eq!(ran.code, Some(2), "{line}");
            assert!(
                ran.stderr.contains("no error of a known program in this text"),
                "{}",
                ran.stderr
            );
        }
    }
}

#[test]
fn logs_of_other_programs_are_job_logs() {
    let folder = tempdir().unwrap();
    let log = folder.path().join("ucx.log");
    // The errors stand far behind the begin of the file.
    let healthy =
        "[node1:37049:0:37049] ucp_worker.c:1855 UCX  INFO  ep_cfg[1]: tag(rc_mlx5/mlx5_1:1)\n".repeat(2_000);
    let labelled = UCX.replace("[node1", "0: [node1") + "\n";
    fs::write(&log, healthy.clone() + &labelled).unwrap();
    let log = log.to_str().unwrap();
    for option in ["--job-log", "--nccl-log"] {
        let found = document(&root(), [CAPTURE, "-q", option, log]);
        let findings = found["findings"].as_array().unwrap();
        let finding = findings
            .iter()
            .find(|finding| finding["id"] == "nccl.completion_error")
            .unwrap();
        let summary = finding["summary"].as_str().unwrap();
        assert!(
            summary.contains("1 error in the job's log") && summary.contains("0x2b9a"),
            "{summary}"
        );
    }
    let ran = run(&root(), ["traffic", "results", log, "--capture", CAPTURE]).good();
    assert!(
        ran.stdout.contains("10.150.5.44 > 10.150.5.46 QP 0x2b9a"),
        "{}",
        ran.stdout
    );
    // A log without an error says nothing.
    fs::write(log, healthy).unwrap();
    let ran = run(&root(), [CAPTURE, "--job-log", log]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr
            .contains("none of 2000 lines is of NCCL, or an error of a known program"),
        "{}",
        ran.stderr
    );
}
