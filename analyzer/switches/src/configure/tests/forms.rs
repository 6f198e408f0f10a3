//! Other words, forms and places that configurations have for one meaning, and commands of other clusters.

use super::super::blocks::{dscps, threshold};
use super::*;

/// NX-OS refuses lines below `policy-map type queuing default-8q-out-policy`: another policy takes its place.
#[test]
fn policies_of_the_system_are_replaced() {
    let changes = check_nexus_of(&fixture("nexus-network.txt"));
    let lines = commands(&changes, "switch.ecn_off");
    let classes = lines
        .iter()
        .filter(|line| line.starts_with("  class type queuing c-out-8q-q"));
    assert_eq!(
        (lines[0], classes.count()),
        ("policy-map type queuing ROCE_OUT", 8)
    );
    let end = lines.len() - 2;
    assert_eq!(
        lines[end..],
        ["system qos", "  service-policy type queuing output ROCE_OUT"]
    );
    // The settings are those of the network-qos type, and of a port by itself.
    let text = fixture("nexus-network.txt")
        .replace(
            "network-qos QOS_NETWORK\n  service",
            "network-qos default-nq-policy\n  service",
        )
        .replace(
            "  mtu 9216\n",
            "  service-policy type queuing output default-out-policy\n  mtu 9216\n",
        );
    let changes = check_nexus_of(&text);
    assert_eq!(
        ids(&changes),
        [
            "switch.queue_unclassified",
            "switch.not_lossless",
            "switch.ecn_off"
        ]
    );
    assert!(
        changes[1]
            .text
            .contains("default-nq-policy has no lossless group, and cannot be changed"),
        "{:?}",
        changes[1]
    );
    let use_of = |change: &Change| change.step.commands[change.step.commands.len() - 2..].join("|");
    assert_eq!(
        use_of(&changes[1]),
        "system qos|  service-policy type network-qos ROCE_NQ"
    );
    assert_eq!(
        use_of(&changes[2]),
        "interface Ethernet1/1|  service-policy type queuing output ROCE_OUT"
    );
    assert_eq!(check_nexus_of(&applied(&text, &changes)), []);
    let all = changes.iter().flat_map(|change| &change.step.commands);
    assert!(
        all.into_iter().all(|line| !line.contains("default-out")),
        "{changes:?}"
    );
    // CNPs that have group 6 are those that go first.
    let text = fixture("nexus-network.txt").replace(
        "policy-map type qos QOS_IN\n",
        "class-map type qos match-any CNPS\n  match dscp 48\npolicy-map type qos QOS_IN\n  class CNPS\n    set qos-group 6\n",
    );
    let changes = check_nexus_of(&text);
    let lines = commands(&changes, "switch.ecn_off");
    let first = lines
        .iter()
        .position(|line| *line == "    priority level 1")
        .unwrap();
    assert_eq!(lines[first - 1], "  class type queuing c-out-8q-q6");
}

/// RFC 2597 (AF11 is 10, AF43 is 38), RFC 2474 (CS6 is 48), RFC 3246 (EF is 46).
#[test]
fn names_and_lists_of_dscps() {
    assert_eq!(dscps("af11 af31 af43 cs6 ef"), [10, 26, 38, 48, 46]);
    assert_eq!(dscps("24-26,46"), [24, 25, 26, 46]);
    assert_eq!(dscps("64 af51 cs8"), [] as [u8; 0]);
    let line = "random-detect minimum-threshold 153600 bytes maximum-threshold 3 mbytes";
    assert_eq!(threshold(line, "minimum-threshold"), Some(153_600));
    assert_eq!(threshold(line, "maximum-threshold"), Some(3_000_000));
}

#[test]
fn groups_of_the_first_generation() {
    // Four queues: priority 5 gets the highest, and CNPs the one below.
    let cluster = Cluster {
        priority: 5,
        ..Cluster::default()
    };
    let steps = nexus(&cluster, &Settings::default(), NexusGeneration::First, &[]);
    let text = configuration_of(&steps);
    for line in [
        "  class ROCE\n    set qos-group 3",
        "  class CNP\n    set qos-group 2",
        "c-nq3\n    mtu 9216\n    pause pfc-cos 5",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

/// A configuration of one port without differences, in which words are replaced.
fn nexus_with(from: &str, to: &str) -> Vec<Change> {
    let ports = ["Ethernet1/1".to_owned()];
    let steps = nexus(
        &Cluster::default(),
        &Settings::default(),
        NexusGeneration::CloudScale,
        &ports,
    );
    let text = configuration_of(&steps);
    assert!(text.contains(from), "{from}: {text}");
    check_nexus_of(&text.replace(from, to))
}

#[test]
fn classes_of_cnps_on_nexus() {
    assert_eq!(nexus_with("match dscp 26", "match dscp 24-31"), []);
    // In the default group.
    let changes = nexus_with("set qos-group 7", "set qos-group 0");
    assert_eq!(ids(&changes), ["switch.queue_unclassified"]);
    assert_eq!(
        changes[0].step.commands,
        [
            "policy-map type qos ROCE_IN",
            "  class CNP",
            "    set qos-group 7"
        ]
    );
    // One class has both: one of CNPs alone goes before it, and the class of RoCE data stays.
    let changes = nexus_with("  match dscp 26\n", "  match dscp 26,48\n");
    assert_eq!(
        changes[0].step.commands[2..],
        [
            "policy-map type qos ROCE_IN",
            "  class CNP insert-before ROCE",
            "    set qos-group 7"
        ]
    );
    // RoCE data has the last group: CNPs get the one below.
    let changes = nexus_with(
        "set qos-group 3\n  class CNP\n    set qos-group 7",
        "set qos-group 7\n  class CNP\n    set qos-group 7",
    );
    assert_eq!(
        changes[0].step.commands.last().map(String::as_str),
        Some("    set qos-group 6")
    );
}

#[test]
fn other_places_of_policies_on_nexus() {
    // The input policy of the whole switch.
    let text = "  service-policy type qos input ROCE_IN\n";
    let changes = nexus_with(text, "");
    assert_eq!(
        ids(&changes),
        ["switch.queue_unclassified"],
        "the port has none: {changes:?}"
    );
    let ports = ["Ethernet1/1".to_owned()];
    let steps = nexus(
        &Cluster::default(),
        &Settings::default(),
        NexusGeneration::CloudScale,
        &ports,
    );
    let whole = configuration_of(&steps).replace(text, "").replace(
        "system qos\n",
        "system qos\n  service-policy type qos input ROCE_IN\n",
    );
    assert_eq!(check_nexus_of(&whole), []);
    // A port's own queuing policy goes before that of the switch.
    let own = "  mtu 9216\n  no flowcontrol receive on";
    let changes = nexus_with(own, &format!("  service-policy type queuing output OWN\n{own}"));
    assert_eq!(ids(&changes), ["switch.ecn_off"]);
    assert!(changes[0].text.starts_with("OWN: "), "{changes:?}");
    // Several priorities of one group.
    assert_eq!(nexus_with("pause pfc-cos 3", "pause pfc-cos 3,4"), []);
    // The queue is marked from where PFC begins: 150,000 bytes.
    let pause = "pause buffer-size 300000 pause-threshold 150000 resume-threshold 100000 pfc-cos 3";
    assert_eq!(
        ids(&nexus_with("pause pfc-cos 3", pause)),
        ["switch.ecn_above_pfc"]
    );
}

#[test]
fn other_words_of_eos() {
    let ports = ["Et1/1".to_owned()];
    let steps = eos(
        &Cluster::default(),
        &Settings::default(),
        &["Ethernet1/1".to_owned()],
    );
    let text = configuration_of(&steps);
    let check = |cluster: &Cluster, settings: &Settings, text: &str| {
        check_eos(cluster, settings, text, &ports).unwrap()
    };
    let (cluster, settings) = (Cluster::default(), Settings::default());
    assert_eq!(check(&cluster, &settings, &text), [], "Et1/1 is Ethernet1/1");
    let desired = text.replace("flowcontrol receive off", "flowcontrol receive desired");
    assert_eq!(
        ids(&check(&cluster, &settings, &desired)),
        ["switch.llfc_and_pfc"]
    );
    let other = Settings::from_pairs(["ecn_max=2m"]).unwrap();
    assert_eq!(ids(&check(&cluster, &other, &text)), ["switch.ecn_threshold"]);
    // Without maps DSCP 8 is of class 0, and DSCP 0 of class 1 (EOS' default map).
    for (dscp, class) in [(8, 0), (0, 1), (40, 5)] {
        let cluster = Cluster {
            dscp,
            priority: 3,
            ..Cluster::default()
        };
        let changes = check(&cluster, &settings, &text);
        assert!(
            changes[0]
                .text
                .contains(&format!("DSCP {dscp} (RoCE data) reaches traffic class {class}")),
            "{changes:?}"
        );
    }
}

#[test]
fn other_forms_of_sonic() {
    let check = |document: &Value, pairs: &[&str]| {
        let settings = Settings::from_pairs(pairs.iter().copied()).unwrap();
        check_sonic(&Cluster::default(), &settings, &document.to_string(), &[]).unwrap()
    };
    let port = |map: &str| json!({ "dscp_to_tc_map": map, "pfc_enable": "3" });
    let good = json!({
        // Without an MTU, which is 9100 then.
        "PORT": { "Ethernet0": {}, "Ethernet4": {} },
        "DSCP_TO_TC_MAP": { "AZURE": { "26": "3", "48": "6" } },
        "PORT_QOS_MAP": { "Ethernet0": port("[DSCP_TO_TC_MAP|AZURE]"), "Ethernet4": port("AZURE") },
        "QUEUE": { "Ethernet0,Ethernet4|3-4": { "wred_profile": "W" } },
        "WRED_PROFILE": { "W": { "ecn": "ecn_all", "green_min_threshold": "250000", "green_max_threshold": "1000000" } },
        "PFC_WD": { "Ethernet0": {}, "Ethernet4": {} },
    });
    assert_eq!(check(&good, &[]), []);
    assert_eq!(check(&good, &["ecn_min=250k", "ecn_max=1m"]), []);
    assert_eq!(
        ids(&check(&good, &["ecn_min=200k", "ecn_max=1m"])),
        ["switch.ecn_off"]
    );
    // The switch's own map.
    let mut global = good.clone();
    global["PORT_QOS_MAP"]["Ethernet0"] = json!({ "pfc_enable": "3" });
    global["PORT_QOS_MAP"]["global"] = json!({ "dscp_to_tc_map": "AZURE" });
    assert_eq!(check(&global, &[]), []);
    // CNPs with all other traffic.
    let mut shared = good.clone();
    shared["DSCP_TO_TC_MAP"]["AZURE"]["48"] = json!("0");
    let changes = check(&shared, &[]);
    assert_eq!(ids(&changes), ["switch.queue_unclassified"]);
    assert!(changes[0].text.contains("DSCP 48 class 0"), "{changes:?}");
    // One port without the watchdog is named.
    let mut unwatched = good;
    unwatched["PFC_WD"] = json!({ "Ethernet0": {} });
    assert_eq!(check(&unwatched, &[])[0].text, "Ethernet4: PFC's watchdog is off");
}

#[test]
fn commands_of_other_hosts_and_hypervisors() {
    let (cluster, settings) = (Cluster::default(), Settings::default());
    let all =
        |steps: Vec<Step>| -> Vec<String> { steps.into_iter().flat_map(|step| step.commands).collect() };
    let has = |commands: &[String], wanted: &str| {
        assert!(
            commands.iter().any(|command| command == wanted),
            "{wanted}: {commands:?}"
        );
    };
    // Selector 5 of an application's priority is the DSCP (IEEE 802.1Qcd).
    let lldp = all(host(&cluster, &settings, "eth1", HostTool::Lldptool));
    has(&lldp, "lldptool -T -i eth1 -V APP app=3,5,26");
    has(&lldp, "lldptool -T -i eth1 -V APP app=6,5,48");
    let mlnx = all(host(&cluster, &settings, "eth1", HostTool::MlnxQos));
    has(&mlnx, "echo 1 > /sys/class/net/eth1/ecn/roce_rp/enable/3");
    has(&mlnx, "echo 48 > /sys/class/net/eth1/ecn/roce_np/cnp_dscp");
    // The adapter's own map has DSCP 26 in priority 3, the three upper bits: only another one is set.
    assert!(
        !mlnx.iter().any(|command| command.contains("dscp2prio")),
        "{mlnx:?}"
    );
    let other = Cluster {
        priority: 4,
        ..Cluster::default()
    };
    let mlnx = all(host(&other, &settings, "eth1", HostTool::MlnxQos));
    has(&mlnx, "mlnx_qos -i eth1 --dscp2prio set,26,4");
    // systemd-escape(1): a hyphen in the name of a device's unit is \x2d.
    let print = |kind, interface| {
        all(persistence(
            &cluster,
            &settings,
            kind,
            Some(interface),
            HostTool::Dcb,
        ))
        .join("\n")
    };
    let unit = print(Persistence::Systemd, "bond0-1");
    assert!(
        unit.contains("\nBindsTo=sys-subsystem-net-devices-bond0\\x2d1.device\n"),
        "{unit}"
    );
    for kind in [
        Persistence::Systemd,
        Persistence::NetworkManager,
        Persistence::Netplan,
    ] {
        let files = print(kind, "eth1");
        assert!(
            !files.contains("ip link set"),
            "the MTU is the network's own: {files}"
        );
    }
    assert!(print(Persistence::NetworkManager, "eth1").contains("802-3-ethernet.mtu 9000"));
    let vmware = all(esxi(&other, &settings, "vmnic3"));
    has(
        &vmware,
        "esxcli system module parameters set -m nmlx5_core -p \"pfctx=0x10 pfcrx=0x10 trust_state=2\"",
    );
    has(
        &vmware,
        "esxcli system module parameters set -m nmlx5_rdma -p \"dscp_force=26\"",
    );
    let off = fixture("esxi.txt").replace("PFC Enabled: true", "PFC Enabled: false");
    let changes = check_esxi(&cluster, &settings, &off, "vmnic3").unwrap();
    assert_eq!(ids(&changes), ["pfc.enabled"], "{off}");
    assert!(
        changes[0].text.contains("PFC is on for no priority"),
        "{changes:?}"
    );
    // Cumulus: the mode's own values are not repeated, others are set.
    let nvue = all(cumulus(&cluster, &settings, &[]));
    assert!(
        !nvue.iter().any(|command| command.contains("mapping")),
        "{nvue:?}"
    );
    let set = Settings::from_pairs(["ecn_min=150k", "ecn_max=1500k"]).unwrap();
    let shifted = Cluster {
        priority: 4,
        cnp_dscp: 56,
        ..Cluster::default()
    };
    let nvue = all(cumulus(&shifted, &set, &[]));
    for line in [
        "nv set qos mapping default-global dscp 26 switch-priority 4",
        "nv set qos mapping default-global dscp 56 switch-priority 7",
        "nv set qos congestion-control default-global traffic-class 4 min-threshold-bytes 150000",
        "nv set qos congestion-control default-global traffic-class 4 max-threshold-bytes 1500000",
    ] {
        has(&nvue, line);
    }
    let text = all(sonic(&other, &settings, &["Ethernet0".to_owned()])).join("\n");
    for part in [
        "\"pfc_enable\": \"4\"",
        "\"green_drop_probability\": \"7\"",
        "\"26\": \"4\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
