//! Texts as people have them: one pasted answer, a session, counters as JSON or behind their paths, read by their content; texts of other
//! kinds are refused with what they are. The answers are those of `tests/data/fabric`.

use std::fs;

use tempfile::tempdir;

use crate::captures::root;
use crate::command::run;

fn fixture(name: &str) -> String {
    fs::read_to_string(root().join("tests/data/fabric").join(name)).unwrap()
}

#[test]
fn one_pasted_answer_is_read_as_its_folder_is() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let queuing = fixture("nexus-first-generation/show_queuing_interface.txt");
    fs::create_dir(folder.join("leaf")).unwrap();
    fs::write(folder.join("leaf/show_queuing_interface.txt"), &queuing).unwrap();
    fs::write(folder.join("paste.txt"), &queuing).unwrap();
    fs::write(
        folder.join("session.txt"),
        format!("leaf1# show queuing interface ethernet1/1/2\n{queuing}leaf1# \n"),
    )
    .unwrap();
    let counters = |arguments: &[&str]| {
        let ran = run(
            folder,
            [
                &["fabric", "counters", "--all", "--format", "json", "--read"],
                arguments,
            ]
            .concat(),
        );
        let mut document = ran.json();
        let device = document["devices"][0].take();
        assert!(device.is_object(), "{arguments:?}");
        (device["samples"].clone(), device["kind"].clone())
    };
    let of_folder = counters(&["leaf", "--kind", "nexus"]);
    assert!(
        of_folder.0.as_array().is_some_and(|samples| samples.len() > 10),
        "{of_folder:?}"
    );
    for file in ["paste.txt", "session.txt"] {
        assert_eq!(counters(&[file]), of_folder, "{file}");
    }
    let vsish = fixture("esxi-pfc/vsish_-e_get__net_pNics_vmnic3_stats.txt");
    fs::write(folder.join("vmnic3.txt"), vsish).unwrap();
    let (samples, kind) = counters(&["vmnic3.txt"]);
    assert_eq!(kind, "esxi");
    assert!(samples.as_array().is_some_and(|samples| !samples.is_empty()));
}

#[test]
fn counters_of_a_host_in_three_forms() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    fs::write(
        folder.join("stat.txt"),
        "link mlx5_0/1 np_cnp_sent 12 out_of_sequence 7\n",
    )
    .unwrap();
    fs::write(
        folder.join("stat.json"),
        "[{\"ifindex\":0,\"ifname\":\"mlx5_0\",\"port\":1,\"np_cnp_sent\":12,\"out_of_sequence\":7}]\n",
    )
    .unwrap();
    let path = "/sys/class/infiniband/mlx5_0/ports/1/hw_counters";
    fs::write(
        folder.join("grep.txt"),
        format!("{path}/np_cnp_sent:12\n{path}/out_of_sequence:7\n"),
    )
    .unwrap();
    let shown = |file: &str| run(folder, ["host", "counters", "--read", file]).good().stdout;
    let plain = shown("stat.txt");
    assert!(plain.contains("mlx5_0:1"), "{plain}");
    for file in ["stat.json", "grep.txt"] {
        assert_eq!(shown(file), plain, "{file}");
    }
}

#[test]
fn texts_of_other_kinds_are_refused_by_name() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    fs::write(
        folder.join("pfc.txt"),
        fixture("sonic-leaf/show_pfc_counters.txt"),
    )
    .unwrap();
    fs::write(
        folder.join("ethtool.txt"),
        "NIC statistics:\n     rx_prio3_pause: 41210\n",
    )
    .unwrap();
    fs::write(
        folder.join("qos.txt"),
        "DCBX mode: OS controlled\nPriority trust state: dscp\n",
    )
    .unwrap();
    for (arguments, what) in [
        (
            ["host", "counters", "--read", "pfc.txt"].as_slice(),
            "`fabric counters --read` reads",
        ),
        (
            &["fabric", "counters", "--read", "ethtool.txt"],
            "`host counters --read` reads",
        ),
        (
            &["doctor", "--read", "ethtool.txt"],
            "`host counters --read` reads",
        ),
        (
            &["host", "counters", "--read", "qos.txt"],
            "the text of `mlnx_qos`",
        ),
        (
            &["host", "gpus", "--read", "ethtool.txt"],
            "the text of `ethtool -S`",
        ),
    ] {
        let ran = run(folder, arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.stdout);
        assert!(ran.stderr.contains(what), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn a_training_log_says_how_it_fits() {
    let folder = tempdir().unwrap();
    let capture = root().join("captures/demos/training-h1.pcapng");
    let capture = capture.to_str().unwrap();
    let log = |allreduce: &str, total: &str| -> String {
        let lines = (1..=40)
            .map(|step| format!("[rank0]: Iteration {step} | AllReduce: {allreduce} | Total: {total}\n"));
        fs::write(folder.path().join("train.log"), lines.collect::<String>()).unwrap();
        run(folder.path(), [capture, "--training-log", "train.log"])
            .good()
            .stdout
    };
    // A second is far from what the packets of the demo show; its own log, which the simulator wrote, fits.
    let doubted = log("1000ms", "3000ms");
    let words: String = doubted.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("all-reduce 1.00 s by the log") && words.contains("another run?"),
        "{words}"
    );
}
