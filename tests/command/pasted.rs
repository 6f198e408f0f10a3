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
fn interfaces_as_switches_print_them_are_compared() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let paragraph = |name: &str, discards: u32| {
        format!(
            "{name} is up\n  MTU 9216 bytes, BW 100000000 Kbit, DLY 10 usec\n  RX\n    900000 unicast packets  0 multicast packets  0 broadcast packets\n    900000 input packets  90000000 bytes\n    0 Rx pause\n  \
                 TX\n    1000000 unicast packets  0 multicast packets  0 broadcast packets\n    1000000 output packets  1000000000 bytes\n    0 output error  {discards} output discard\n    0 Tx pause\n"
        )
    };
    let nexus = |discards| {
        let (first, second) = (paragraph("Ethernet1/3", discards), paragraph("Ethernet1/4", 0));
        format!("leaf1# show interface ethernet 1/3\n{first}leaf1# sh int e1/4\n{second}leaf1# \n")
    };
    let sonic = |discards: u32| {
        format!(
            "admin@sonic:~$ show interfaces counters -i Ethernet0\n    IFACE    STATE    RX_OK    RX_BPS    RX_UTIL    RX_ERR    RX_DRP    RX_OVR    TX_OK    TX_BPS    TX_UTIL    TX_ERR    TX_DRP    TX_OVR\n\
                 ---------  -------  -------  --------  ---------  --------  --------  --------  -------  --------  ---------  --------  --------  --------\n\
                 Ethernet0        U        8  0.00 B/s      0.00%         0         0       N/A       10  0.00 B/s      0.00%         0  {discards}       N/A\n"
        )
    };
    let eos = |discards: u32| {
        format!(
            "leaf#show interfaces ethernet 1/1\nEthernet1/1 is up, line protocol is up (connected)\n     9000 packets input, 1000 bytes\n     0 PAUSE input\n     9000 packets output, 1000 bytes\n     0 late collision, 0 deferred, {discards} output discards\n"
        )
    };
    let cumulus = |discards: u32| {
        format!(
            "cumulus@leaf:~$ cl-netstat\nIface  MTU  RX_OK  RX_ERR  RX_DRP  RX_OVR  TX_OK  TX_ERR  TX_DRP  TX_OVR  Flg\nswp1  9216  1000  0  0  0  2000  0  {discards}  0  BMRU\n"
        )
    };
    for (kind, texts, port) in [
        ("nexus", [nexus(33), nexus(133)], "Ethernet1/3"),
        ("sonic", [sonic(33), sonic(133)], "Ethernet0"),
        ("eos", [eos(33), eos(133)], "Ethernet1/1"),
        ("cumulus", [cumulus(33), cumulus(133)], "swp1"),
    ] {
        for (name, text) in ["a.txt", "b.txt"].iter().zip(texts) {
            fs::write(folder.join(name), text).unwrap();
        }
        let arguments = [
            "fabric", "counters", "--format", "json", "--read", "a.txt", "--read", "b.txt",
        ];
        let document = run(folder, arguments).json();
        let device = &document["devices"][0];
        assert_eq!(device["kind"], kind);
        let found = &device["findings"][0];
        assert_eq!(
            (found["id"].as_str(), found["object"].as_str()),
            (Some("counters.discards"), Some(port)),
            "{device:#}"
        );
        // An answer that nobody pasted is no problem of the switch.
        assert_eq!(device["problems"], serde_json::json!([]), "{kind}");
        // 133 of the second reading, less 33 of the first.
        assert!(
            found["summary"]
                .as_str()
                .is_some_and(|text| text.starts_with("100 packets")),
            "{found:#}"
        );
    }
    // Texts with any names in a folder are known by their content, too.
    fs::create_dir(folder.join("leaf")).unwrap();
    fs::write(folder.join("leaf/port3.txt"), nexus(33)).unwrap();
    let document = run(
        folder,
        ["fabric", "counters", "--format", "json", "--read", "leaf"],
    )
    .json();
    assert_eq!(document["devices"][0]["kind"], "nexus");
    assert!(
        document["devices"][0]["samples"]
            .as_array()
            .is_some_and(|samples| samples.len() > 20)
    );
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
    fs::write(
        folder.join("running.txt"),
        "class-map type qos match-all ROCE\n  match dscp 26\n",
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
        (&["traffic", "results", "qos.txt"], "`doctor --read` reads"),
        (
            &["devices", "--read", "ethtool.txt"],
            "`host counters --read` reads",
        ),
        (
            &[
                "fabric",
                "configure",
                "switch",
                "--kind",
                "nexus",
                "--check",
                "--read",
                "pfc.txt",
            ],
            "`fabric counters --read` reads",
        ),
        (
            &["fabric", "pauses", "--read", "qos.txt", "--read", "qos.txt"],
            "`doctor --read` reads",
        ),
        (
            &["fabric", "counters", "--read", "running.txt"],
            "`fabric configure switch --kind nexus --check --read` reads",
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
    let words = [capture, "--training-log", "train.log", "--format", "json"];
    let fit = run(folder.path(), words).json()["training_log"].take();
    assert_eq!(fit["logged_steps"], 40, "{fit}");
    assert_eq!(fit["allreduce"]["log_ns"], 1_000_000_000_u64, "{fit}");
    assert_eq!(fit["is_doubtful"], true, "{fit}");
    // Packets without steps cannot be joined with any.
    let other = root().join("captures/clean_write_bw.pcap");
    let text = run(
        folder.path(),
        [other.to_str().unwrap(), "--training-log", "train.log"],
    );
    let words: String = text
        .good()
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(words.contains("its 40 steps cannot be joined"), "{words}");
}

#[test]
fn outputs_of_tools_are_a_host() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    // After the output of mlnx_qos in NVIDIA's documentation: PFC is on for priority 4, and the port trusts the VLAN tag.
    fs::write(
        folder.join("paste.txt"),
        "gpu1:~# ibdev2netdev\nmlx5_0 port 1 ==> ens1f0 (Up)\ngpu1:~# rdma link\nlink mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1f0\n\
         gpu1:~# mlnx_qos -i ens1f0\nDCBX mode: OS controlled\nPriority trust state: pcp\nPFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n\
         \tenabled     0   0   0   0   1   0   0   0   \n",
    )
    .unwrap();
    let document = run(folder, ["doctor", "--read", "paste.txt", "--format", "json"]).json();
    let all = document["checks"].as_array().unwrap();
    let of = |status: &str| -> Vec<&str> {
        let those = all.iter().filter(|check| check["status"] == status);
        those.filter_map(|check| check["id"].as_str()).collect()
    };
    assert_eq!(of("warning"), ["pfc.enabled", "pfc.others", "qos.trust"]);
    assert_eq!(of("critical"), Vec::<&str>::new());
    // Neither limits nor modules are in the text.
    assert!(of("unknown").contains(&"memlock"), "{:?}", of("unknown"));
    assert!(of("ok").contains(&"port.state"), "{:?}", of("ok"));
    let checked = run(
        folder,
        [
            "fabric",
            "configure",
            "host",
            "-i",
            "ens1f0",
            "--check",
            "--read",
            "paste.txt",
        ],
    );
    assert_eq!(checked.code, Some(1), "{}", checked.stderr);
    assert!(checked.stdout.contains("pfc"), "{}", checked.stdout);
}

#[test]
fn a_port_of_cumulus_is_read_from_its_statistics() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    fs::write(
        folder.join("swp3.txt"),
        "NIC statistics:\n     HwIfInOctets: 100\n     HwIfInPfc3Pkt: 12\n     HwIfOutPfc3Pkt: 7\n",
    )
    .unwrap();
    let document = run(
        folder,
        ["fabric", "counters", "--read", "swp3.txt", "--format", "json"],
    );
    let document: serde_json::Value = serde_json::from_str(&document.stdout).unwrap();
    let device = &document["devices"][0];
    assert_eq!(device["kind"], "cumulus");
    let samples = device["samples"].as_array().unwrap();
    let received = samples.iter().find(|sample| {
        sample["object"] == "swp3" && sample["counter"] == "switch_priority_pfc_received_frames"
    });
    assert_eq!(
        received.map(|sample| &sample["value"]),
        Some(&12.0.into()),
        "{samples:?}"
    );
}

#[test]
fn two_recordings_of_a_fabric_say_where_pauses_are() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let answer = |frames: u64| {
        format!(
            "  Port Rx    PFC0    PFC1    PFC2    PFC3    PFC4    PFC5    PFC6    PFC7\n---------  ------  ------  ------  ------  ------  ------  ------  ------\n\
             Ethernet0       0       0       0  {frames:>6}       0       0       0       0\n"
        )
    };
    for (name, frames) in [("before", 100), ("after", 350)] {
        fs::create_dir_all(folder.join(name).join("leaf1")).unwrap();
        fs::write(
            folder.join(name).join("leaf1/show_pfc_counters.txt"),
            answer(frames),
        )
        .unwrap();
        fs::write(folder.join(format!("{name}.txt")), answer(frames)).unwrap();
    }
    for (before, after) in [("before", "after"), ("before.txt", "after.txt")] {
        let ran = run(folder, ["fabric", "pauses", "--read", before, "--read", after]).good();
        // 350 - 100.
        assert!(ran.stdout.contains("between two recordings"), "{}", ran.stdout);
        assert!(
            ran.stdout.contains("250") && ran.stdout.contains("Ethernet0"),
            "{}",
            ran.stdout
        );
        assert!(
            !ran.stdout.contains("NaN") && !ran.stdout.contains("inf "),
            "{}",
            ran.stdout
        );
    }
    let once = run(folder, ["fabric", "pauses", "--read", "before"]);
    assert_eq!(once.code, Some(2));
    assert!(once.stderr.contains("before and after"), "{}", once.stderr);
}

#[test]
fn a_running_table_shows_each_interval_and_then_the_whole() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let data = root().join("tests/data/fabric/sonic-leaf");
    let data = data.to_str().unwrap();
    fs::write(
        folder.join("fabric.toml"),
        format!(
            "[[switch]]\nname = \"leaf1\"\nkind = \"sonic\"\ntransport = \"files\"\nfiles = \"{data}\"\n"
        ),
    )
    .unwrap();
    for (command, head) in [
        (["fabric", "counters"], "changes in "),
        (["fabric", "pauses"], " time "),
        (["host", "counters"], "ounter"),
    ] {
        let ran = run(
            folder,
            [
                command.as_slice(),
                &["--watch", "--interval", "200ms", "--duration", "700ms"],
            ]
            .concat(),
        )
        .good();
        // Each table has its time above it, the whole has none; a pipe gets no control sequences.
        let tables = ran
            .stdout
            .lines()
            .filter(|line| line.starts_with(" 20") && line.ends_with('Z'))
            .count();
        assert!((2..=5).contains(&tables), "{command:?} {tables}: {}", ran.stdout);
        assert_eq!(ran.stdout.matches('\u{1b}').count(), 0);
        assert!(
            ran.stdout.matches(head).count() > tables,
            "{command:?}: {}",
            ran.stdout
        );
    }
    let both = run(folder, ["host", "counters", "--watch", "--read", "fabric.toml"]);
    assert_eq!(both.code, Some(2));
}

#[test]
fn files_behind_their_paths_are_read_in_each_form() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let lines = [
        ("class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE"),
        ("class/infiniband/mlx5_0/ports/1/link_layer", "Ethernet"),
        ("class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent", "900"),
        ("class/infiniband/mlx5_0/ports/1/counters/port_xmit_wait", "5"),
    ];
    let device = "/sys/devices/pci0000:3a/0000:3b:00.0/infiniband/";
    for (name, root, between) in [
        ("grep.txt", "/sys/class/infiniband/", ":"),
        ("blank.txt", "/sys/class/infiniband/", " "),
        ("equals.txt", "sys/class/infiniband/", " = "),
        ("here.txt", "./", ":"),
        ("device.txt", device, ":"),
    ] {
        let line = |(path, text): (&str, &str)| {
            format!(
                "{root}{}{between}{text}\n",
                path.trim_start_matches("class/infiniband/")
            )
        };
        fs::write(folder.join(name), lines.map(line).concat()).unwrap();
        let counters = run(folder, ["host", "counters", "--read", name]).good().stdout;
        assert!(
            counters.contains("port_cnp_sent") && counters.contains("900"),
            "{name}: {counters}"
        );
        let devices = run(folder, ["devices", "--format", "json", "--read", name]).json();
        let port = &devices["rdma"][0]["ports"][0];
        assert_eq!(
            (port["state"].as_str(), port["link_layer"].as_str()),
            (Some("ACTIVE"), Some("Ethernet")),
            "{name}"
        );
        let doctor = run(folder, ["doctor", "--read", name]).good().stdout;
        assert!(doctor.contains("1 RDMA device"), "{name}: {doctor}");
    }
    // The line of a tree, as this project writes recorded hosts.
    fs::write(
        folder.join("tree.txt"),
        "commands/ethtool_-S_ens1.txt = NIC statistics:\\n     rx_prio3_pause: 41210\\n\n",
    )
    .unwrap();
    let counters = run(folder, ["host", "counters", "--read", "tree.txt"])
        .good()
        .stdout;
    assert!(
        counters.contains("ens1") && counters.contains("41,210"),
        "{counters}"
    );
}

#[test]
fn files_of_other_kinds_are_named() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("a.png"), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").unwrap();
    fs::write(folder.join("a.gz"), b"\x1f\x8b\x08\0\0\0\0\0\0\x03").unwrap();
    fs::write(folder.join("a.txt"), "hello\n").unwrap();
    fs::write(folder.join("empty.txt"), "").unwrap();
    fs::copy(root().join("captures/rping.pcap"), folder.join("a.pcap")).unwrap();
    let esxi = fixture("esxi-pfc/vsish_-e_get__net_pNics_vmnic3_stats.txt");
    fs::write(folder.join("vmnic3.txt"), esxi).unwrap();
    for (arguments, what) in [
        (
            ["doctor", "--read", "a.png"].as_slice(),
            "a.png: not a recorded host: this is a picture (PNG)",
        ),
        (
            &["doctor", "--read", "a.txt"],
            "a text without outputs that are known",
        ),
        (&["doctor", "--read", "empty.txt"], "an empty file"),
        (
            &["devices", "--read", "a.gz"],
            "this is a file compressed by gzip",
        ),
        (&["host", "hca", "--read", "a.pcap"], "this is a capture (pcap)"),
        (
            &["host", "counters", "--read", "a.pcap"],
            "a.pcap: a capture (pcap), where a text was expected",
        ),
        (
            &["fabric", "counters", "--read", "a.png"],
            "a picture (PNG), where a text was expected",
        ),
        (
            &["traffic", "results", "a.gz"],
            "a file compressed by gzip, where a text was expected",
        ),
        (&["a.png"], "not a capture file: a picture (PNG); expected pcap"),
        (&["a.txt"], "not a capture file: a text; expected pcap"),
        (
            &["host", "counters", "--read", "vmnic3.txt"],
            "`fabric counters --read` reads",
        ),
    ] {
        let ran = run(folder, arguments);
        assert!(
            ran.code != Some(0) && ran.stderr.contains(what),
            "{arguments:?}: {}",
            ran.stderr
        );
    }
}

/// After iproute2's `rdma statistic show` and MLNX_OFED's `mlnx_qos`.
#[test]
#[cfg(feature = "live")]
fn settings_beside_counters_say_whether_the_class_is_lossless() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    for (name, naks) in [("before.txt", 10), ("after.txt", 5_000)] {
        let text = format!(
            "gpu1:~# rdma statistic show\nlink mlx5_0/1 packet_seq_err {naks}\ngpu1:~# mlnx_qos -i ens1\nDCBX mode: OS controlled\n\
             Priority trust state: dscp\nPFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n\
             \tenabled     0   0   0   1   0   0   0   0   \n"
        );
        fs::write(folder.join(name), text).unwrap();
    }
    let words = [
        "host",
        "counters",
        "--read",
        "before.txt",
        "--read",
        "after.txt",
        "--format",
        "json",
    ];
    let document = run(folder, words).json();
    let found = document["findings"].as_array().unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["id"], "counters.losses");
    let said = found[0]["summary"].as_str().unwrap();
    assert!(
        said.contains("PFC is on for priority 3 of ens1: that class is lossless, others are lossy"),
        "{said}"
    );
}

/// After Junos' CLI reference and OpenConfig's models: recordings of systems that no inventory has.
#[test]
#[cfg(feature = "live")]
fn recordings_of_other_systems_are_judged() {
    let folder = tempdir().unwrap();
    let folder = folder.path();
    let junos = "Physical interface: et-0/0/10, Enabled, Physical link is Up\n  Link-level type: Ethernet, MTU: 9216, Speed: 100Gbps\n  \
                 Egress queues: 12 supported, 5 in use\n  Queue counters:       Queued packets  Transmitted packets      Dropped packets\n    \
                 3                         23456789             23456277                  DROPS\n";
    let tree = r#"{"openconfig-qos:qos":{"interfaces":{"interface":[{"interface-id":"Ethernet0","output":{"queues":{"queue":[{"name":"3","state":{"dropped-pkts":"DROPS"}}]}}}]}}}"#;
    for text in [junos, tree] {
        fs::write(folder.join("before.txt"), text.replace("DROPS", "512")).unwrap();
        fs::write(folder.join("after.txt"), text.replace("DROPS", "9999")).unwrap();
        let words = [
            "fabric",
            "counters",
            "--read",
            "before.txt",
            "--read",
            "after.txt",
        ];
        let said = run(folder, words).good().stdout;
        assert!(
            said.contains("counters.queue_drops") && said.contains("queue 3 dropped 9,487 packets"),
            "{said}"
        );
    }
    fs::write(folder.join("other.txt"), "hello\n").unwrap();
    assert_eq!(
        run(folder, ["fabric", "counters", "--read", "other.txt"]).code,
        Some(2)
    );
}
