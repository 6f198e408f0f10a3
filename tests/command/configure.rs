//! `fabric configure`: what it prints, what it compares, and that it never applies anything.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::tempdir;

use crate::captures::root;
use crate::command::{Ran, run};
use crate::doctor::story;

/// Runs `fabric configure` in an empty folder.
fn configure(arguments: &[&str]) -> Ran {
    let folder = tempdir().unwrap();
    let ran = run(folder.path(), ["fabric", "configure"].iter().chain(arguments));
    // Nothing is written.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    ran
}

fn fixture(name: &str) -> String {
    root()
        .join("tests/data/fabric/configure")
        .join(name)
        .to_string_lossy()
        .into_owned()
}

/// Lines that are no comments.
fn commands<'a>(ran: &'a Ran, mark: &str) -> Vec<&'a str> {
    let all = ran.stdout.lines();
    all.filter(|line| !line.is_empty() && !line.starts_with(mark))
        .collect()
}

#[test]
fn a_host_gets_commands_with_reasons() {
    let ran = configure(&["host", "--interface", "ens1f0np0", "--set", "dev=mlx5_0"]).good();
    // The design's commands; 106 is DSCP 26 times 4, and 2 for ECT(0).
    assert_eq!(
        commands(&ran, "#"),
        [
            "ethtool -A ens1f0np0 autoneg off rx off tx off",
            "dcb pfc set dev ens1f0np0 prio-pfc all:off 3:on",
            "dcb app replace dev ens1f0np0 dscp-prio 26:3 48:6",
            "modprobe rdma_cm",
            "mkdir -p /sys/kernel/config/rdma_cm/mlx5_0 && echo 106 > /sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos",
            "export NCCL_IB_TC=106",
            "export UCX_IB_TRAFFIC_CLASS=106",
            "ip link set ens1f0np0 mtu 9000",
        ]
    );
    for word in ["Undo: ", "Link: "] {
        assert!(ran.stdout.matches(word).count() >= 4, "{word}");
    }
}

#[test]
fn the_inventory_decides_priority_and_dscps() {
    let folder = tempdir().unwrap();
    let inventory = folder.path().join("fabric.toml");
    fs::write(&inventory, "[cluster]\npriority = 5\ndscp = 46\ncnp_dscp = 50\n").unwrap();
    let path = inventory.to_string_lossy();
    let ran = configure(&[
        "host",
        "--interface",
        "eth1",
        "--tool",
        "mlnx_qos",
        "--inventory",
        &path,
    ])
    .good();
    // 46 is of class 5; 46 * 4 + 2 is 186.
    assert!(
        ran.stdout
            .contains("mlnx_qos -i eth1 --trust dscp --pfc 0,0,0,0,0,1,0,0\n")
    );
    assert!(
        ran.stdout
            .contains("cma_roce_tos -d $(basename /sys/class/net/eth1/device/infiniband/*) -p 1 -t 186\n")
    );
    assert!(!ran.stdout.contains("dscp2prio"));
    fs::write(&inventory, "[cluster]\npriority = 9\n").unwrap();
    let wrong = configure(&["host", "--interface", "eth1", "--inventory", &path]);
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong
            .stderr
            .contains("fabric.toml:1: cluster: priority 9 is not from 0 to 7"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn files_keep_settings_over_a_restart() {
    for (kind, expected) in [
        ("kernel", "    - iommu=pt"),
        ("memlock", "LimitMEMLOCK=infinity"),
        ("sysctl", "net.ipv4.conf.all.arp_announce = 2"),
        ("k8s", "          add: [\"IPC_LOCK\"]"),
    ] {
        let ran = configure(&["host", "--print", kind]).good();
        assert!(
            ran.stdout.lines().any(|line| line == expected),
            "{kind}: {}",
            ran.stdout
        );
    }
    for (kind, expected) in [
        (
            "systemd",
            "systemctl daemon-reload && systemctl enable --now roce-ens1f0np0.service",
        ),
        (
            "networkmanager",
            "nmcli connection modify ens1f0np0 802-3-ethernet.mtu 9000",
        ),
        ("netplan", "      mtu: 9000"),
    ] {
        let ran = configure(&["host", "--print", kind, "--interface", "ens1f0np0"]).good();
        assert!(
            ran.stdout.lines().any(|line| line == expected),
            "{kind}: {}",
            ran.stdout
        );
        assert!(
            ran.stdout
                .contains("dcb pfc set dev ens1f0np0 prio-pfc all:off 3:on\n"),
            "{kind}"
        );
        let without = configure(&["host", "--print", kind]);
        assert_eq!(without.code, Some(2), "{kind}");
    }
}

/// A recorded host of the stories of `doctor`.
fn recorded(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    let host = folder.path().join("host");
    story(name, &host);
    (folder, host)
}

#[test]
fn a_recorded_host_is_compared() {
    let check = |name: &str| {
        let (_folder, host) = recorded(name);
        let path = host.to_string_lossy().into_owned();
        configure(&["host", "--interface", "ens1f0np0", "--check", "--read", &path])
    };
    let good = check("good");
    assert_eq!(
        (good.code, good.stdout.as_str()),
        (Some(0), "# nothing has to change\n"),
        "{}",
        good.stderr
    );
    // 802.3x pause is on, and PFC is off for all priorities (tests/data/hosts/pause_and_pfc/tree.txt).
    let bad = check("pause_and_pfc");
    assert_eq!(bad.code, Some(1), "{}", bad.stderr);
    let ids: Vec<&str> = bad
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("# ")?.split_once(": "))
        .map(|(id, _)| id)
        .filter(|id| id.contains('.'))
        .collect();
    assert_eq!(ids, ["pfc.and_pause", "pfc.enabled"]);
    assert_eq!(
        commands(&bad, "#"),
        [
            "ethtool -A ens1f0np0 rx off tx off && dcb pfc set dev ens1f0np0 prio-pfc all:off 3:on",
            "dcb pfc set dev ens1f0np0 prio-pfc all:off 3:on",
        ]
    );
    let (_folder, host) = recorded("good");
    let path = host.to_string_lossy().into_owned();
    // An MTU that was set is compared with.
    let other = configure(&[
        "host",
        "--interface",
        "ens1f0np0",
        "--check",
        "--read",
        &path,
        "--set",
        "mtu=4200",
    ]);
    assert_eq!(commands(&other, "#"), ["ip link set ens1f0np0 mtu 4200"]);
    // It has 9000: a larger one is a difference, too.
    let larger = configure(&[
        "host",
        "--interface",
        "ens1f0np0",
        "--check",
        "--read",
        &path,
        "--set",
        "mtu=9216",
    ]);
    assert_eq!(commands(&larger, "#"), ["ip link set ens1f0np0 mtu 9216"]);
    // A value that could not be read is named, and not called good.
    let unread = check("no_rights");
    assert!(unread.stderr.contains("not compared: "), "{unread:?}");
    let missing = configure(&["host", "--interface", "nothing0", "--check", "--read", &path]);
    assert_eq!(missing.code, Some(2));
    assert!(
        missing.stderr.contains("there is no interface nothing0"),
        "{}",
        missing.stderr
    );
}

#[test]
fn an_interface_that_no_check_concerns_is_not_called_good() {
    let ran = configure(&["host", "--interface", "lo", "--check"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("lo is no port of an RDMA adapter"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_running_configuration_is_compared() {
    let strict = fixture("nexus-strict.txt");
    let ran = configure(&["switch", "--kind", "nexus", "--check", "--read", &strict]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stdout.starts_with("! switch.rdma_strict_priority: "),
        "{}",
        ran.stdout
    );
    assert_eq!(
        commands(&ran, "!"),
        [
            "policy-map type queuing RDMA_ECN_OUT",
            // 60 % for RoCE data leave 40: 20 x 40 / 100, 80 x 40 / 100.
            "  class type queuing c-out-q2",
            "    bandwidth remaining percent 8",
            "  class type queuing c-out-q-default",
            "    bandwidth remaining percent 32",
            "  class type queuing c-out-q3",
            "    no priority level 1",
            "    bandwidth remaining percent 60",
        ]
    );
    // One interface of a configuration, in another spelling.
    let flowcontrol = fixture("nexus-flowcontrol.txt");
    let arguments = ["switch", "--kind", "nexus", "--check", "--read", &flowcontrol];
    let one = configure(&[&arguments[..], &["--interface", "Eth1/1/1"]].concat());
    assert_eq!(
        commands(&one, "!"),
        [
            "priority-flow-control watch-dog-interval on",
            "interface Ethernet1/1/1",
            "  no flowcontrol receive on",
            "interface Ethernet1/1/1",
            "  no flowcontrol send on",
        ]
    );
    let missing = configure(&[&arguments[..], &["--interface", "Ethernet9/9"]].concat());
    assert_eq!(missing.code, Some(2));
    assert!(
        missing.stderr.contains("has no interface Ethernet9/9"),
        "{}",
        missing.stderr
    );
}

#[test]
fn all_kinds_of_recordings_are_compared() {
    for (arguments, file) in [
        (&["switch", "--kind", "eos"][..], "eos.txt"),
        (&["switch", "--kind", "sonic"], "sonic.json"),
        (&["switch", "--kind", "cumulus"], "cumulus.txt"),
        (&["esxi", "--interface", "vmnic3"], "esxi.txt"),
    ] {
        let path = fixture(file);
        let ran = configure(&[arguments, &["--check", "--read", &path]].concat());
        assert_eq!(ran.code, Some(1), "{file}: {}", ran.stderr);
        assert!(
            !commands(&ran, if file == "eos.txt" { "!" } else { "#" }).is_empty(),
            "{file}"
        );
    }
    // A recording of something else is an error, not an empty difference.
    let wrong = fixture("esxi.txt");
    for kind in ["nexus", "eos", "sonic", "cumulus"] {
        let ran = configure(&["switch", "--kind", kind, "--check", "--read", &wrong]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{kind}");
    }
    let without = configure(&["switch", "--kind", "eos", "--check"]);
    assert_eq!(without.code, Some(2));
    assert!(
        without
            .stderr
            .contains("record its 'show running-config' and give it with --read FILE"),
        "{}",
        without.stderr
    );
}

/// `--check` reads a device of the inventory by its transport: from recorded answers, and by a program in place of ssh that answers one
/// command.
#[test]
fn devices_of_the_inventory_are_compared() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("leaf1")).unwrap();
    fs::copy(
        fixture("nexus-strict.txt"),
        path("leaf1").join("show_running-config.txt"),
    )
    .unwrap();
    // The last argument is the command.
    let script = format!(
        "#!/bin/sh\nfor last; do :; done\ncase $last in\n'sonic-cfggen -d --print-data') exec cat {} ;;\nesac\n\
         echo \"no such command: $last\" >&2\nexit 255\n",
        fixture("sonic.json")
    );
    fs::write(path("ssh"), script).unwrap();
    fs::set_permissions(path("ssh"), fs::Permissions::from_mode(0o755)).unwrap();
    let inventory = format!(
        "[ssh]\ncommand = \"{}\"\n\
         [[switch]]\nname = \"leaf1\"\nkind = \"nexus\"\nread = \"leaf1\"\n\
         [[switch]]\nname = \"leaf2\"\nkind = \"sonic\"\n\
         [[switch]]\nname = \"leaf3\"\nkind = \"eos\"\n\
         [[hypervisor]]\nname = \"esxi1\"\nread = \"{}\"\n",
        path("ssh").display(),
        root().join("tests/data/fabric/esxi-pfc").display()
    );
    fs::write(path("fabric.toml"), inventory).unwrap();
    let configure = |arguments: &[&str]| run(folder.path(), ["fabric", "configure"].iter().chain(arguments));
    let ran = configure(&["switch", "leaf1", "--check"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stdout
            .starts_with("! switch.rdma_strict_priority: RDMA_ECN_OUT: "),
        "{ran:?}"
    );
    let ran = configure(&["switch", "leaf2", "--check"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stdout
            .contains("# switch.mtu: Ethernet4: the MTU is 1500 bytes"),
        "{ran:?}"
    );
    // PFC is on for priority 3 alone.
    let ran = configure(&["esxi", "esxi1", "--interface", "vmnic3", "--check"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "# nothing has to change\n"),
        "{ran:?}"
    );
    // Without --check the kind decides about the template.
    let ran = configure(&["switch", "leaf3"]).good();
    assert!(ran.stdout.contains("qos profile ROCE"), "{ran:?}");
    for (arguments, reason) in [
        (
            &["switch", "leaf3", "--check"][..],
            "leaf3: 'show running-config': ssh cannot connect: no such command: show running-config",
        ),
        (
            &["switch", "leaf4", "--check"],
            "the inventory has no [[switch]] 'leaf4'",
        ),
        (
            &["esxi", "esxi2", "--interface", "vmnic3", "--check"],
            "no [[hypervisor]] 'esxi2'",
        ),
        (
            &["esxi", "esxi1", "--interface", "vmnic9", "--check"],
            "esxi1: 'esxcli network nic dcb status get -n vmnic9'",
        ),
        (
            &["switch", "leaf1", "--kind", "sonic", "--check"],
            "the inventory says that the switch is of kind nexus",
        ),
        (&["switch", "--check"], "--kind"),
    ] {
        let ran = configure(arguments);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(reason), "{reason}: {ran:?}");
    }
}

#[test]
fn documents_have_steps_and_changes() {
    let ran = configure(&["esxi", "--interface", "vmnic3", "--format", "json"]).good();
    let steps: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(steps["schema_version"], 1);
    let all = steps["steps"].as_array().unwrap();
    let lists = |step: &Value| !step["comments"].as_array().unwrap().is_empty();
    assert!(all.len() > 3 && all.iter().all(lists));
    let strict = fixture("nexus-strict.txt");
    let ran = configure(&[
        "switch", "--kind", "nexus", "--check", "--read", &strict, "--format", "json",
    ]);
    let changes: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(ran.code, Some(1));
    assert_eq!(changes["target"], "nexus");
    assert_eq!(changes["changes"][0]["id"], "switch.rdma_strict_priority");
    assert_eq!(changes["changes"].as_array().unwrap().len(), 1);
}

#[test]
fn names_and_values_from_outside_do_no_harm() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("leaf.txt");
    // A policy whose name has an escape sequence.
    let text = fs::read_to_string(fixture("nexus-strict.txt")).unwrap();
    fs::write(&file, text.replace("RDMA_ECN_OUT", "RDMA\u{1b}[31m")).unwrap();
    let path = file.to_string_lossy();
    let ran = configure(&["switch", "--kind", "nexus", "--check", "--read", &path]);
    assert_eq!(ran.code, Some(1));
    assert!(
        !ran.stdout.contains('\u{1b}') && ran.stdout.contains("RDMA?[31m"),
        "{}",
        ran.stdout
    );
    for dev in ["a;reboot", "$(reboot)", "-x", "a b", ""] {
        let ran = configure(&["host", &format!("--interface={dev}")]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{dev}");
    }
    let ran = configure(&["host", "--interface", "eth1", "--set", "dev=a b"]);
    assert_eq!(ran.code, Some(2));
}
