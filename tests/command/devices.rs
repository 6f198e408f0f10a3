//! `devices`, on made-up systems: what sysfs says is documented in the kernel's ABI documents; the values are those of real adapters.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use insta::assert_snapshot;
use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::command::{Ran, command, ran};

/// Writes files below a folder: path and text.
fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }
}

/// A link of the system's kind: relative, from a device to its driver or parent.
fn link(root: &Path, from: &str, to: &str) {
    fs::create_dir_all(root.join(to)).unwrap();
    let from = root.join(from);
    fs::create_dir_all(from.parent().unwrap()).unwrap();
    // The folder of a link may be behind another one.
    let folder = from.parent().unwrap().canonicalize().unwrap();
    let below = folder.strip_prefix(root.canonicalize().unwrap()).unwrap();
    let up = "../".repeat(below.components().count());
    symlink(format!("{up}{to}"), from).unwrap();
}

/// An adapter with a port of 100 Gbit/s, one that runs at 10 of its 40, a virtual function, and Soft-RoCE.
fn host() -> TempDir {
    let folder = tempdir().unwrap();
    let root = folder.path();
    let net = |name: &str, state: &str, mtu: &str, speed: &str| {
        write(
            root,
            &[
                (&format!("class/net/{name}/operstate"), state),
                (&format!("class/net/{name}/mtu"), mtu),
                (&format!("class/net/{name}/speed"), speed),
                (&format!("class/net/{name}/address"), "b8:3f:d2:00:00:01"),
            ],
        );
    };
    net("eth0", "up", "9000", "100000");
    net("eth1", "up", "1500", "10000");
    net("eth2", "down", "1500", "-1");
    net("lo", "unknown", "65536", "");
    net("veth0", "up", "1500", "10000");
    write(root, &[("class/net/bonding_masters", "")]);
    let pci = |address: &str, lanes: &str, node: &str| {
        let at = format!("devices/pci0000:00/{address}");
        write(
            root,
            &[
                (&format!("{at}/numa_node"), node),
                (&format!("{at}/current_link_width"), lanes),
                (&format!("{at}/max_link_width"), "16"),
                (&format!("{at}/current_link_speed"), "16.0 GT/s PCIe"),
                (&format!("{at}/max_link_speed"), "16.0 GT/s PCIe"),
            ],
        );
        link(root, &format!("{at}/driver"), "bus/pci/drivers/mlx5_core");
        at
    };
    let first = pci("0000:3b:00.0", "16", "0");
    let second = pci("0000:3b:00.1", "8", "1");
    let function = pci("0000:3b:00.2", "16", "-1");
    link(root, &format!("{function}/physfn"), &first);
    for (name, device) in [("eth0", &first), ("eth1", &second), ("eth2", &function)] {
        link(root, &format!("class/net/{name}/device"), device);
    }
    let rdma = |name: &str, rate: &str, state: &str, physical: &str| {
        write(
            root,
            &[
                (&format!("class/infiniband/{name}/fw_ver"), "16.35.2000"),
                (&format!("class/infiniband/{name}/ports/1/state"), state),
                (&format!("class/infiniband/{name}/ports/1/phys_state"), physical),
                (&format!("class/infiniband/{name}/ports/1/link_layer"), "Ethernet"),
                (&format!("class/infiniband/{name}/ports/1/rate"), rate),
            ],
        );
    };
    rdma("mlx5_0", "100 Gb/sec (4X EDR)", "4: ACTIVE", "5: LinkUp");
    rdma("mlx5_1", "10 Gb/sec (1X QDR)", "4: ACTIVE", "5: LinkUp");
    rdma("mlx5_2", "40 Gb/sec (4X QDR)", "1: DOWN", "3: Disabled");
    rdma("rxe0", "2.5 Gb/sec (1X SDR)", "4: ACTIVE", "5: LinkUp");
    write(root, &[("class/infiniband/rxe0/parent", "veth0")]);
    for (name, device) in [("mlx5_0", &first), ("mlx5_1", &second), ("mlx5_2", &function)] {
        link(root, &format!("class/infiniband/{name}/device"), device);
    }
    let gid = |device: &str, index: &str, gid: &str, version: &str, interface: &str| {
        let port = format!("class/infiniband/{device}/ports/1");
        write(
            root,
            &[
                (&format!("{port}/gids/{index}"), gid),
                (&format!("{port}/gid_attrs/types/{index}"), version),
                (&format!("{port}/gid_attrs/ndevs/{index}"), interface),
            ],
        );
    };
    let local = "fe80:0000:0000:0000:ba3f:d2ff:fe00:0001";
    let mapped = |last: u8| format!("0000:0000:0000:0000:0000:ffff:0a00:00{last:02x}");
    gid("mlx5_0", "0", local, "IB/RoCE v1", "eth0");
    gid("mlx5_0", "1", local, "RoCE v2", "eth0");
    gid("mlx5_0", "3", &mapped(7), "RoCE v2", "eth0");
    gid("mlx5_1", "3", &mapped(8), "RoCE v2", "eth1");
    gid("rxe0", "1", &mapped(9), "RoCE v2", "veth0");
    // An entry that is not in use: its attributes cannot be read.
    write(
        root,
        &[(
            "class/infiniband/mlx5_0/ports/1/gids/10",
            "0000:0000:0000:0000:0000:0000:0000:0000",
        )],
    );
    folder
}

fn devices(root: &Path, format: &str) -> Ran {
    let mut command = command(root);
    command.args(["devices", "--format", format, "--read"]).arg(root);
    ran(command.env("COLUMNS", "80")).good()
}

#[test]
#[cfg(feature = "live")]
fn a_host_with_adapters() {
    let text = devices(host().path(), "text").stdout;
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert_snapshot!(text);
}

#[test]
fn a_host_without_any() {
    let text = devices(tempdir().unwrap().path(), "text").stdout;
    assert_snapshot!(text);
}

#[test]
fn the_document_says_the_same() {
    let document = devices(host().path(), "json").json();
    let interface = |name: &str| -> &Value {
        let all = document["interfaces"].as_array().unwrap();
        all.iter().find(|found| found["name"] == name).unwrap()
    };
    assert_eq!(document["interfaces"].as_array().unwrap().len(), 5);
    assert_eq!(interface("eth0")["speed_bps"], 100_000_000_000_u64);
    assert_eq!(interface("eth0")["driver"], "mlx5_core");
    assert_eq!(interface("eth0")["numa_node"], 0);
    assert_eq!(interface("eth0")["rdma"], serde_json::json!(["mlx5_0:1"]));
    assert_eq!(interface("eth0")["pcie"]["lanes"], 16);
    // -1: no link, and no node.
    assert_eq!(interface("eth2")["speed_bps"], Value::Null);
    assert_eq!(interface("eth2")["numa_node"], Value::Null);
    assert_eq!(interface("eth2")["sriov_parent"], "0000:3b:00.0");
    assert_eq!(interface("lo")["driver"], Value::Null);
    let slowed = interface("eth1")["notes"][0].as_str().unwrap();
    assert!(slowed.contains("x8"), "{slowed}");

    let rdma = document["rdma"].as_array().unwrap();
    let names: Vec<&str> = rdma.iter().map(|found| found["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["mlx5_0", "mlx5_1", "mlx5_2", "rxe0"]);
    let port = &rdma[1]["ports"][0];
    assert_eq!(
        (&port["state"], &port["physical_state"]),
        (&"ACTIVE".into(), &"LinkUp".into())
    );
    assert_eq!(
        (&port["rate_bps"], &port["lanes"]),
        (&10_000_000_000_u64.into(), &1.into())
    );
    let note = port["notes"][0].as_str().unwrap();
    assert!(note.contains("10 Gbit/s") && note.contains("40 Gbit/s"), "{note}");
    assert_eq!(rdma[0]["ports"][0]["notes"], serde_json::json!([]));
    let gids = rdma[0]["ports"][0]["gids"].as_array().unwrap();
    let ips: Vec<&Value> = gids.iter().map(|gid| &gid["ip"]).collect();
    // A RoCEv1 address is no IP address, an unused entry none at all.
    assert_eq!(gids.len(), 3);
    assert_eq!(
        ips,
        [&Value::Null, &"fe80::ba3f:d2ff:fe00:1".into(), &"10.0.0.7".into()]
    );
}

/// The recording of a host whose files lead out of it, or are no files.
fn hostile_host(root: &Path) -> std::path::PathBuf {
    let outside = root.join("secret");
    fs::write(&outside, "731953\n").unwrap();
    let host = root.join("host");
    write(
        &host,
        &[
            ("sys/class/net/eth0/mtu", "9000"),
            ("sys/class/net/eth1/mtu", "1500"),
            ("sys/class/net/eth2/mtu", "1400"),
            ("sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "eth0"),
            (
                "sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data",
                "11",
            ),
        ],
    );
    let net = host.join("sys/class/net");
    symlink(&outside, net.join("eth0/operstate")).unwrap();
    symlink("/dev/zero", net.join("eth1/operstate")).unwrap();
    symlink("../../../../../secret", net.join("eth0/address")).unwrap();
    let port = host.join("sys/class/infiniband/mlx5_0/ports/1");
    symlink(&outside, port.join("counters/port_rcv_data")).unwrap();
    symlink(&outside, port.join("state")).unwrap();
    for fifo in [net.join("eth2/operstate"), port.join("counters/port_rcv_packets")] {
        let made = std::process::Command::new("mkfifo").arg(fifo).status().unwrap();
        assert!(made.success());
    }
    host
}

/// Each command that reads a recorded host shows nothing from outside of it, and waits for nothing.
#[test]
fn nothing_outside_of_a_recorded_host_is_read() {
    let folder = tempdir().unwrap();
    let host = hostile_host(folder.path());
    let host = host.to_str().unwrap();
    let mut commands = vec![vec!["devices", "--format", "json", "--read", host]];
    if cfg!(feature = "live") {
        commands.extend([
            vec!["doctor", "--format", "json", "--read", host],
            vec!["host", "counters", "--all", "--read", host],
            vec!["metrics", "once", "--no-gpus", "--read", host],
            vec!["fabric", "pauses", "--read", host, "--read", host],
            vec!["fabric", "counters", "--read", host],
            vec!["host", "hca", "--read", host],
        ]);
    }
    for arguments in commands {
        let begun = std::time::Instant::now();
        let shown = ran(command(folder.path()).args(&arguments));
        let text = format!("{}{}", shown.stdout, shown.stderr);
        assert!(!text.contains("731953"), "{arguments:?}: {text}");
        assert!(begun.elapsed().as_secs() < 30, "{arguments:?}");
    }
}
