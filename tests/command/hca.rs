//! `host hca` and `host gpus`: devices that a container was given, jobs that are started with them, and tools about GPUs.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use insta::assert_snapshot;
use serde_json::Value;
use tempfile::tempdir;

use crate::command::{Ran, command, ran, run};

fn set(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A device with one port: its number, PCI address, state, the index of its IPv4 address, and its last octets.
fn device(root: &Path, number: u32, pci: &str, state: &str, index: u32, address: &str) {
    let name = format!("mlx5_{number}");
    let folder = format!("sys/class/infiniband/{name}");
    set(
        root,
        &format!("{folder}/device/uevent"),
        &format!("DRIVER=mlx5_core\nPCI_SLOT_NAME={pci}\n"),
    );
    set(root, &format!("{folder}/device/numa_node"), "0\n");
    set(root, &format!("{folder}/ports/1/state"), state);
    set(root, &format!("{folder}/ports/1/link_layer"), "Ethernet\n");
    set(root, &format!("{folder}/ports/1/rate"), "400 Gb/sec (4X NDR)\n");
    set(
        root,
        &format!("{folder}/ports/1/gids/{index}"),
        &format!("0000:0000:0000:0000:0000:ffff:{address}\n"),
    );
    set(
        root,
        &format!("{folder}/ports/1/gid_attrs/types/{index}"),
        "RoCE v2\n",
    );
    set(
        root,
        &format!("{folder}/ports/1/gid_attrs/ndevs/{index}"),
        &format!("net{number}\n"),
    );
    set(
        root,
        &format!("sys/bus/pci/devices/{pci}/infiniband/{name}/fw_ver"),
        "28.40\n",
    );
    set(root, &format!("sys/bus/pci/devices/{pci}/class"), "0x020000\n");
    set(root, &format!("sys/bus/pci/devices/{pci}/vendor"), "0x15b3\n");
    set(
        root,
        &format!("sys/class/infiniband_verbs/uverbs{number}/ibdev"),
        &format!("{name}\n"),
    );
    set(root, &format!("dev/infiniband/uverbs{number}"), "");
    set(root, &format!("sys/class/net/net{number}/mtu"), "9000\n");
}

/// The answers of opening nodes, all well.
fn opened(root: &Path, numbers: &[u32]) {
    let all: Vec<String> = numbers
        .iter()
        .map(|number| format!("\"dev/infiniband/uverbs{number}\":\"ok\""))
        .collect();
    set(root, "answers/nodes.json", &format!("{{{}}}", all.join(",")));
    set(root, "answers/env.json", "{}");
}

fn environment(folder: &Path, variables: &[(&str, &str)]) {
    let text: String = variables
        .iter()
        .flat_map(|(name, value)| [name, "=", value, "\0"])
        .collect();
    fs::write(folder.join("environ"), text).unwrap();
}

fn hca(folder: &Path, arguments: &[&str]) -> Ran {
    run(
        folder,
        [
            &["host", "hca", "--read", "host", "--environ", "environ"],
            arguments,
        ]
        .concat(),
    )
}

/// The ports that NCCL selects by a value of NCCL_IB_HCA, by its own rules (src/transport/net_ib): `^` excludes, `=` compares whole names,
/// other names are prefixes, and a port may follow a colon.
fn selected_by_nccl(value: &str, ports: &[(String, u32)]) -> BTreeSet<(String, u32)> {
    let (excludes, value) = value
        .strip_prefix('^')
        .map_or((false, value), |rest| (true, rest));
    let (exact, value) = value
        .strip_prefix('=')
        .map_or((false, value), |rest| (true, rest));
    let matches = |name: &str, port: u32| {
        value.split(',').any(|entry| {
            let (wanted, number) = entry.split_once(':').unwrap_or((entry, ""));
            let named = if exact {
                name == wanted
            } else {
                name.starts_with(wanted)
            };
            named && (number.is_empty() || number.parse() == Ok(port))
        })
    };
    ports
        .iter()
        .filter(|(name, port)| matches(name, *port) != excludes)
        .cloned()
        .collect()
}

#[test]
fn metrics_name_the_devices_that_a_container_was_given() {
    let folder = tempdir().unwrap();
    let root = folder.path().join("host");
    device(&root, 6, "0000:03:00.2", "4: ACTIVE\n", 3, "0a00:6702");
    device(&root, 10, "0000:a3:00.2", "1: DOWN\n", 3, "0a00:6902");
    device(&root, 0, "0000:02:00.0", "4: ACTIVE\n", 3, "0a00:0102");
    opened(&root, &[0, 6, 10]);
    let metrics = || {
        let ran = run(folder.path(), ["metrics", "once", "--read", "host"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout
    };
    // An interface of 9,000 bytes allows the largest path MTU.
    assert!(metrics().contains("\nroce_port_mtu_bytes{device=\"mlx5_6\",port=\"1\"} 4096\n"));
    assert!(!metrics().contains("roce_allocated_"), "outside of a container");
    set(
        &root,
        "answers/env.json",
        r#"{"PCIDEVICE_OPENSHIFT_IO_ENO5NP0RDMA":"0000:03:00.2,0000:a3:00.2","PCIDEVICE_OPENSHIFT_IO_ENO6NP0RDMA":"0000:44:00.2","PCIDEVICE_OPENSHIFT_IO_ENO6NP0RDMA_INFO":"{\"0000:44:00.2\":{\"rdma\":{}}}"}"#,
    );
    let text = metrics();
    for line in [
        r#"roce_allocated_device_info{resource="openshift.io/eno5np0rdma",pci_address="0000:03:00.2",device="mlx5_6",port="1"} 1"#,
        r#"roce_allocated_device_info{resource="openshift.io/eno5np0rdma",pci_address="0000:a3:00.2",device="mlx5_10",port="1"} 1"#,
        // Two that are visible and one that is not; one is ACTIVE.
        "roce_allocated_devices 3",
        "roce_allocated_devices_usable 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

#[test]
fn given_devices_in_both_forms_of_the_plugin() {
    let folder = tempdir().unwrap();
    let root = folder.path().join("host");
    device(&root, 6, "0000:03:00.2", "4: ACTIVE\n", 3, "0a00:6702");
    device(&root, 7, "0000:23:00.2", "4: ACTIVE\n", 3, "0a00:6802");
    device(&root, 10, "0000:a3:00.2", "1: DOWN\n", 3, "0a00:6902");
    device(&root, 0, "0000:02:00.0", "4: ACTIVE\n", 3, "0a00:0102");
    opened(&root, &[0, 6, 7, 10]);
    environment(
        folder.path(),
        &[
            ("PCIDEVICE_OPENSHIFT_IO_ENO7NP0RDMA", "0000:a3:00.2"),
            ("PCIDEVICE_OPENSHIFT_IO_ENO6NP0RDMA", "0000:23:00.2"),
            (
                "PCIDEVICE_OPENSHIFT_IO_ENO6NP0RDMA_INFO",
                r#"{"0000:23:00.2":{"generic":{"deviceID":"0000:23:00.2"},"rdma":{"uverbs":"/dev/infiniband/uverbs7"}}}"#,
            ),
            ("PCIDEVICE_OPENSHIFT_IO_ENO5NP0RDMA", "0000:03:00.2"),
            ("PCIDEVICE_INTEL_COM_DPDK", "0000:19:00.3"),
        ],
    );
    let ran = hca(folder.path(), &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_snapshot!(ran.stdout);
    assert!(
        ran.stderr.contains("mlx5_10:1 is down: left out"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .contains("0000:19:00.3 (PCIDEVICE_INTEL_COM_DPDK) is not an RDMA device"),
        "{}",
        ran.stderr
    );
    // In order of the PCI addresses, without mlx5_0, which is visible and not given.
    assert_eq!(
        hca(folder.path(), &["--print", "nccl"]).stdout,
        "=mlx5_6:1,mlx5_7:1\n"
    );
    assert_eq!(
        hca(folder.path(), &["--print", "ucx"]).stdout,
        "mlx5_6:1,mlx5_7:1\n"
    );
    assert_eq!(
        hca(folder.path(), &["--print", "env"]).stdout,
        "export NCCL_IB_HCA='=mlx5_6:1,mlx5_7:1'\nexport NCCL_IB_GID_INDEX='3'\nexport UCX_NET_DEVICES='mlx5_6:1,mlx5_7:1'\n"
    );
    let document: Value = serde_json::from_str(&hca(folder.path(), &["--print", "json"]).stdout).unwrap();
    assert_eq!(document["ports"][0]["given_by"], "openshift.io/eno5np0rdma");
    assert_eq!(document["ports"][2]["problem"], "is down");
    assert_eq!(document["variables"]["NCCL_IB_HCA"], "=mlx5_6:1,mlx5_7:1");
    for (arguments, code) in [
        (&["--fail-on", "ports<2"][..], 0),
        (&["--fail-on", "ports<3"], 1),
        (&["--fail-on", "left-out"], 1),
    ] {
        assert_eq!(hca(folder.path(), arguments).code, Some(code), "{arguments:?}");
    }
}

#[test]
fn the_value_selects_exactly_the_given_devices() {
    let folder = tempdir().unwrap();
    let root = folder.path().join("host");
    let numbers: Vec<u32> = (1..=12).collect();
    for number in &numbers {
        device(
            &root,
            *number,
            &format!("0000:{number:02x}:00.1"),
            "4: ACTIVE\n",
            3,
            &format!("0a00:{number:02x}01"),
        );
    }
    opened(&root, &numbers);
    let visible: Vec<(String, u32)> = numbers
        .iter()
        .map(|number| (format!("mlx5_{number}"), 1))
        .collect();
    environment(folder.path(), &[("PCIDEVICE_X_COM_RDMA", "0000:01:00.1")]);
    let value = hca(folder.path(), &["--print", "nccl"]).stdout;
    assert_eq!(
        selected_by_nccl(value.trim(), &visible),
        [("mlx5_1".to_owned(), 1)].into()
    );
    // The plain name, as it is often given, takes four devices.
    assert_eq!(selected_by_nccl("mlx5_1", &visible).len(), 4);
    // Two devices in one variable, whose name has a hyphen that no shell can read.
    environment(
        folder.path(),
        &[("PCIDEVICE_NVIDIA_COM_SRIOV-RDMA-VF", "0000:0b:00.1,0000:02:00.1")],
    );
    let value = hca(folder.path(), &["--print", "nccl"]).stdout;
    assert_eq!(value, "=mlx5_2:1,mlx5_11:1\n");
    assert_eq!(selected_by_nccl(value.trim(), &visible).len(), 2);
}

#[test]
fn hostile_and_odd_environments() {
    let folder = tempdir().unwrap();
    let root = folder.path().join("host");
    device(&root, 6, "0000:03:00.2", "4: ACTIVE\n", 3, "0a00:6702");
    opened(&root, &[6]);
    for variables in [
        &[("PCIDEVICE_A", "0000:03:00.2"), ("PCIDEVICE_A_INFO", "no JSON")][..],
        &[
            ("PCIDEVICE_A", "0000:03:00.2"),
            (
                "PCIDEVICE_A_INFO",
                r#"{"0000:99:00.0":{"rdma":{"uverbs":"/dev/infiniband/uverbs9"}}}"#,
            ),
        ],
        &[
            ("PCIDEVICE_A", "0000:03:00.2"),
            (
                "PCIDEVICE_A_INFO",
                r#"{"0000:03:00.2":{"rdma":{"rdma_dev":"x; rm -rf /"}}}"#,
            ),
        ],
        // A renamed device: the PCI address decides.
        &[
            ("PCIDEVICE_A", "0000:03:00.2"),
            (
                "PCIDEVICE_A_INFO",
                r#"{"0000:03:00.2":{"rdma":{"rdma_dev":"mlx5_1"}}}"#,
            ),
        ],
        &[("PCIDEVICE_A", "0000:03:00.2,$(reboot),;x"), ("PCIDEVICE_B", "")],
    ] {
        environment(folder.path(), variables);
        let ran = hca(folder.path(), &["--print", "env"]);
        assert!(
            ran.stdout.starts_with("export NCCL_IB_HCA='=mlx5_6:1'\n"),
            "{variables:?}: {}",
            ran.stdout
        );
        assert!(
            !ran.stdout.contains("reboot") && !ran.stdout.contains("rm "),
            "{}",
            ran.stdout
        );
    }
    // Some versions of the plugin state the document alone; one that is no document states nothing.
    for (document, is_found) in [
        (r#"{"0000:03:00.2":{"rdma":{"rdma_dev":"mlx5_6"}}}"#, true),
        ("[1]", false),
    ] {
        environment(folder.path(), &[("PCIDEVICE_A_INFO", document)]);
        let ran = hca(folder.path(), &["--print", "env"]);
        let found = ran.stdout.starts_with("export NCCL_IB_HCA='=mlx5_6:1'\n");
        assert_eq!(found, is_found, "{document}: {} {}", ran.stdout, ran.stderr);
    }
    // A scalable function whose INFO says nothing is found by its auxiliary device.
    set(
        &root,
        "sys/bus/auxiliary/devices/mlx5_core.sf.10/infiniband/mlx5_6/fw_ver",
        "28.40\n",
    );
    environment(
        folder.path(),
        &[
            ("PCIDEVICE_SF", "mlx5_core.sf.10"),
            ("PCIDEVICE_SF_INFO", r#"{"mlx5_core.sf.10":{}}"#),
        ],
    );
    assert_eq!(hca(folder.path(), &["--print", "nccl"]).stdout, "=mlx5_6:1\n");
    // As kernels show it: an auxiliary device of its own below the function.
    fs::remove_dir_all(root.join("sys/bus/auxiliary")).unwrap();
    set(
        &root,
        "sys/bus/auxiliary/devices/mlx5_core.sf.10/mlx5_core.rdma.10/infiniband/mlx5_6/fw_ver",
        "28.40\n",
    );
    assert_eq!(hca(folder.path(), &["--print", "nccl"]).stdout, "=mlx5_6:1\n");
    // Given and not visible: no value, and exit code 1.
    environment(
        folder.path(),
        &[
            ("PCIDEVICE_A", "0000:77:00.0"),
            (
                "PCIDEVICE_A_INFO",
                r#"{"0000:77:00.0":{"rdma":{"uverbs":"/dev/infiniband/uverbs1"}}}"#,
            ),
        ],
    );
    let ran = hca(folder.path(), &["--print", "nccl"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("0000:77:00.0 was given and is not visible here"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_renamed_device_is_told_and_a_node_finds_one_that_sysfs_hides() {
    let folder = tempdir().unwrap();
    let root = folder.path().join("host");
    device(&root, 6, "0000:03:00.2", "4: ACTIVE\n", 3, "0a00:6702");
    opened(&root, &[6]);
    environment(
        folder.path(),
        &[
            ("PCIDEVICE_A", "0000:03:00.2"),
            (
                "PCIDEVICE_A_INFO",
                r#"{"0000:03:00.2":{"rdma":{"rdma_dev":"mlx5_1","uverbs":"/dev/infiniband/uverbs6"}}}"#,
            ),
        ],
    );
    let ran = hca(folder.path(), &["--print", "nccl"]);
    assert_eq!(ran.stdout, "=mlx5_6:1\n");
    assert!(
        ran.stderr
            .contains("0000:03:00.2 is mlx5_6; the device plugin still calls it mlx5_1"),
        "{}",
        ran.stderr
    );
    // A container without the folder of the PCI device: the node that was given leads to the device.
    fs::remove_dir_all(root.join("sys/bus/pci/devices/0000:03:00.2/infiniband")).unwrap();
    assert_eq!(hca(folder.path(), &["--print", "nccl"]).stdout, "=mlx5_6:1\n");
}

#[test]
fn the_environment_of_another_process_says_what_its_container_was_given() {
    let folder = tempdir().unwrap();
    let mut container = std::process::Command::new("sleep")
        .arg("60")
        .env_clear()
        .env("PCIDEVICE_X_COM_RDMA", "0000:ff:1f.7")
        .spawn()
        .unwrap();
    let process = container.id().to_string();
    let ran = run(folder.path(), ["host", "hca", "--pid", &process]);
    container.kill().unwrap();
    container.wait().unwrap();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr
            .contains("0000:ff:1f.7 (PCIDEVICE_X_COM_RDMA) is not an RDMA device"),
        "{}",
        ran.stderr
    );
}

#[test]
fn without_variables_devices_that_can_be_opened_are_taken() {
    let folder = tempdir().unwrap();
    let root = folder.path().join("host");
    for number in 1..=4 {
        device(
            &root,
            number,
            &format!("0000:03:00.{number}"),
            "4: ACTIVE\n",
            1 + number,
            "0a00:6702",
        );
        set(
            &root,
            &format!("sys/class/infiniband/mlx5_{number}/device/physfn/uevent"),
            "PCI_SLOT_NAME=0000:03:00.0\n",
        );
    }
    set(
        &root,
        "answers/nodes.json",
        r#"{"dev/infiniband/uverbs2":"ok","dev/infiniband/uverbs3":"ok","dev/infiniband/uverbs1":"Permission denied"}"#,
    );
    set(&root, "answers/env.json", "{}");
    environment(folder.path(), &[]);
    let ran = hca(folder.path(), &["--print", "env"]);
    // Their addresses are at different indexes: no variable for the index.
    assert_eq!(
        ran.stdout,
        "export NCCL_IB_HCA='=mlx5_2:1,mlx5_3:1'\nexport UCX_NET_DEVICES='mlx5_2:1,mlx5_3:1'\n"
    );
    assert!(
        ran.stderr.contains("devices were found by: can be opened"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("NCCL merges them"), "{}", ran.stderr);
}

#[test]
fn a_command_gets_the_variables_that_it_does_not_have() {
    let folder = tempdir().unwrap();
    let root = folder.path().join("host");
    device(&root, 6, "0000:03:00.2", "4: ACTIVE\n", 3, "0a00:6702");
    opened(&root, &[6]);
    environment(folder.path(), &[("PCIDEVICE_A", "0000:03:00.2")]);
    let words = [
        "host",
        "hca",
        "--read",
        "host",
        "--environ",
        "environ",
        "--",
        "sh",
        "-c",
    ];
    let script = "echo $NCCL_IB_HCA $NCCL_IB_GID_INDEX $UCX_NET_DEVICES; exit 7";
    let plain = ran(command(folder.path())
        .args(words)
        .arg(script)
        .env_remove("NCCL_IB_HCA"));
    assert_eq!(plain.code, Some(7), "{}", plain.stderr);
    assert_eq!(plain.stdout, "=mlx5_6:1 3 mlx5_6:1\n");
    assert!(
        plain
            .stderr
            .contains("Auto-detected allocated SR-IOV devices: mlx5_6\n"),
        "{}",
        plain.stderr
    );
    let own = ran(command(folder.path())
        .args(words)
        .arg(script)
        .env("NCCL_IB_HCA", "mine"));
    assert_eq!(own.stdout, "mine 3 mlx5_6:1\n");
    assert!(
        own.stderr.contains("NCCL_IB_HCA is set to 'mine' and stays"),
        "{}",
        own.stderr
    );
    // Locked memory: the soft limit is raised to the hard one, and a finite hard one is reported. 64 and 128 KiB.
    let program = env!("CARGO_BIN_EXE_roce-analyze");
    let limited = ran(std::process::Command::new("sh").current_dir(folder.path()).arg("-c").arg(format!(
        "ulimit -S -l 64 && ulimit -H -l 128 && exec '{program}' host hca --read host --environ environ -- sh -c 'ulimit -S -l'"
    )));
    assert_eq!(limited.stdout, "128\n", "{}", limited.stderr);
    assert!(
        limited
            .stderr
            .contains("the hard limit of locked memory is 128 KiB"),
        "{}",
        limited.stderr
    );
    // Nothing to give: the command does not start.
    environment(folder.path(), &[("PCIDEVICE_A", "0000:77:00.0")]);
    let none = ran(command(folder.path()).args(words).arg("echo started"));
    assert_eq!(
        (none.code, none.stdout.as_str()),
        (Some(1), ""),
        "{}",
        none.stderr
    );
}

/// A folder with a program of this name that runs a script; its path comes before the others.
fn with_program(folder: &Path, name: &str, script: &str, arguments: &[&str]) -> Ran {
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let program = bin.join(name);
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    ran(command(folder)
        .args(["host", "gpus"])
        .args(arguments)
        .env("PATH", path))
}

const TWO_GPUS: &str = "\
index, uuid, name, pci.bus_id, utilization.gpu [%], utilization.memory [%], memory.used [MiB], memory.total [MiB], temperature.gpu, temperature.memory, power.draw [W], enforced.power.limit [W], clocks.current.sm [MHz], clocks.current.memory [MHz], clocks_event_reasons.active, pcie.link.gen.gpucurrent, pcie.link.width.current, ecc.errors.uncorrected.volatile.total
0, GPU-1, NVIDIA H100 80GB HBM3, 00000000:3B:00.0, 98 %, 61 %, 72310 MiB, 81559 MiB, 64, 78, 688.21 W, 700.00 W, 1755 MHz, 2619 MHz, 0x0000000000000044, 5, 16, 0
1, GPU-2, NVIDIA RTX A4000, 00000000:86:00.0, [N/A], [N/A], 9120 MiB, 16376 MiB, 71, N/A, [Not Supported], [N/A], 1560 MHz, 7000 MHz, [N/A], 4, 16, [N/A]
";

#[test]
fn gpus_are_shown_as_nvidia_smi_says() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("gpus.csv"), TWO_GPUS).unwrap();
    let ran = with_program(folder.path(), "nvidia-smi", "cat gpus.csv", &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_snapshot!(ran.stdout);
    let read = run(folder.path(), ["host", "gpus", "--read", "gpus.csv"]);
    assert_eq!(read.stdout, ran.stdout);
    let read = run(
        folder.path(),
        ["host", "gpus", "--read", "gpus.csv", "--format", "json"],
    );
    let document: Value = serde_json::from_str(&read.stdout).unwrap();
    let values = document["gpus"][1]["values"].as_array().unwrap();
    assert!(
        values
            .iter()
            .all(|value| value["counter"] != "gpu_utilization_ratio")
    );
    assert_eq!(document["gpus"][0]["throttled"][1], "hw_thermal_slowdown");
    assert_eq!(document["gpus"][1]["throttled"], Value::Null);
}

#[test]
fn odd_tools_give_notes() {
    let folder = tempdir().unwrap();
    fs::write(
        folder.path().join("gpus.csv"),
        TWO_GPUS.replace("clocks_event_", "clocks_throttle_"),
    )
    .unwrap();
    // An older driver does not know the column's new name.
    let script = "case \"$1\" in *clocks_event_reasons*) echo 'Field \"clocks_event_reasons.active\" is not a valid field to query.'; exit 2;; esac; cat gpus.csv";
    let ran = with_program(folder.path(), "nvidia-smi", script, &[]);
    assert!(
        ran.stdout.contains("sw_power_cap, hw_thermal_slowdown"),
        "{} {}",
        ran.stdout,
        ran.stderr
    );
    let script =
        "echo \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\"; exit 9";
    let ran = with_program(folder.path(), "nvidia-smi", script, &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    assert!(
        ran.stderr.contains("the NVIDIA driver does not answer"),
        "{}",
        ran.stderr
    );
    let script = "echo 'Unable to determine the device handle for GPU0000:86:00.0: GPU is lost.'; exit 15";
    let ran = with_program(folder.path(), "nvidia-smi", script, &[]);
    assert!(
        ran.stdout.contains("0000:86:00.0") && ran.stderr.contains("lost it"),
        "{} {}",
        ran.stdout,
        ran.stderr
    );
    fs::write(folder.path().join("none"), "nothing").unwrap();
    let read = run(folder.path(), ["host", "gpus", "--read", "none"]);
    assert_eq!(read.code, Some(2), "{}", read.stderr);
    assert!(
        read.stderr.contains("no values of a GPU in it"),
        "{}",
        read.stderr
    );
}
