//! Configurations of `tests/data/fabric/configure` with the differences that they were written to have, and what the printed changes do.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::blocks::{Block, parse};
use super::settings::{cnp_priority, priority_list, type_of_service};
use super::sonic::merge;
use super::*;
use crate::inventory::Cluster;

mod forms;

/// Lines of which a block has one alone: a new one replaces it.
const SINGLE: [&str; 13] = [
    "mtu",
    "pause",
    "bandwidth",
    "random-detect",
    "set qos-group",
    "service-policy type qos input",
    "service-policy type network-qos",
    "service-policy type queuing output",
    "priority-flow-control mode",
    "priority-flow-control watch-dog-interface",
    "flowcontrol receive",
    "flowcontrol send",
    "hostname",
];

fn fixture(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/fabric/configure");
    std::fs::read_to_string(root.join(name)).unwrap()
}

/// Applies lines to a configuration, as the switches' command line does.
fn apply(blocks: &mut Vec<Block>, lines: &[Block]) {
    for line in lines {
        if let Some(rest) = line.line.strip_prefix("no ") {
            blocks.retain(|block| block.line != rest && !block.line.starts_with(&format!("{rest} ")));
            if rest == "priority" {
                // EOS keeps this line: strict priority is its default.
                blocks.push(line.clone());
            }
            continue;
        }
        let (head, before) = line
            .line
            .split_once(" insert-before ")
            .unwrap_or((&line.line, ""));
        if let Some(key) = SINGLE.iter().find(|key| head.starts_with(&format!("{key} "))) {
            blocks.retain(|block| !block.line.starts_with(&format!("{key} ")));
        }
        if let Some(known) = blocks.iter_mut().find(|block| block.line == head) {
            apply(&mut known.children, &line.children);
            continue;
        }
        let place = blocks
            .iter()
            .position(|block| block.line == format!("class {before}"));
        let mut block = Block {
            line: head.to_owned(),
            children: Vec::new(),
        };
        apply(&mut block.children, &line.children);
        blocks.insert(place.unwrap_or(blocks.len()), block);
    }
}

fn text_of(blocks: &[Block], indent: usize, out: &mut String) {
    for block in blocks {
        out.push_str(&" ".repeat(indent));
        out.push_str(&block.line);
        out.push('\n');
        text_of(&block.children, indent + 2, out);
    }
}

/// The configuration after these changes.
fn applied(text: &str, changes: &[Change]) -> String {
    let mut blocks = parse(text).unwrap();
    for change in changes {
        apply(&mut blocks, &parse(&change.step.commands.join("\n")).unwrap());
    }
    let mut out = String::new();
    text_of(&blocks, 0, &mut out);
    out
}

fn configuration_of(steps: &[Step]) -> String {
    let lines: Vec<&str> = steps
        .iter()
        .flat_map(|step| &step.commands)
        .map(String::as_str)
        .filter(|line| {
            !line.starts_with("show ") && !line.starts_with("copy ") && !line.starts_with("write ")
        })
        .collect();
    lines.join("\n")
}

fn ids(changes: &[Change]) -> Vec<&str> {
    changes.iter().map(|change| change.id).collect()
}

/// The commands of the only change of a check.
#[track_caller]
fn commands<'a>(changes: &'a [Change], id: &str) -> Vec<&'a str> {
    let mut all = changes.iter().filter(|change| change.id == id);
    let change = all
        .next()
        .unwrap_or_else(|| panic!("{id} is not in {:?}", ids(changes)));
    assert!(all.next().is_none(), "{id} is there twice");
    change.step.commands.iter().map(String::as_str).collect()
}

fn check_nexus_of(text: &str) -> Vec<Change> {
    check_nexus(&Cluster::default(), &Settings::default(), None, text, &[]).unwrap()
}

#[test]
fn strict_priority_of_rdma() {
    let changes = check_nexus_of(&fixture("nexus-strict.txt"));
    assert_eq!(ids(&changes), ["switch.rdma_strict_priority"]);
    assert_eq!(
        commands(&changes, "switch.rdma_strict_priority"),
        [
            "policy-map type queuing RDMA_ECN_OUT",
            // The others have 20 and 80 %, and 40 % are left: 20 x 40 / 100, 80 x 40 / 100.
            "  class type queuing c-out-q2",
            "    bandwidth remaining percent 8",
            "  class type queuing c-out-q-default",
            "    bandwidth remaining percent 32",
            "  class type queuing c-out-q3",
            "    no priority level 1",
            "    bandwidth remaining percent 60",
        ]
    );
}

#[test]
fn flowcontrol_beside_pfc() {
    let changes = check_nexus_of(&fixture("nexus-flowcontrol.txt"));
    // Ethernet1/1/2 has neither an input policy nor PFC; the watchdog is off on the whole switch.
    let expected = [
        "switch.queue_unclassified",
        "switch.no_watchdog",
        "switch.llfc_and_pfc",
        "switch.llfc_and_pfc",
        "switch.pfc_off",
        "switch.llfc_and_pfc",
        "switch.llfc_and_pfc",
    ];
    assert_eq!(ids(&changes), expected);
    assert_eq!(
        commands(&changes, "switch.queue_unclassified"),
        [
            "interface Ethernet1/1/2",
            "  service-policy type qos input QOS_IN",
        ]
    );
    assert_eq!(
        changes[2].step.commands,
        ["interface Ethernet1/1/1", "  no flowcontrol receive on"]
    );
    assert_eq!(
        commands(&changes, "switch.pfc_off"),
        ["interface Ethernet1/1/2", "  priority-flow-control mode on"]
    );
}

#[test]
fn network_policy_with_other_priorities() {
    let changes = check_nexus_of(&fixture("nexus-network.txt"));
    let expected = [
        "switch.queue_unclassified",
        "switch.pfc_other_priority",
        "switch.pfc_other_priority",
        "switch.mtu",
        "switch.ecn_off",
    ];
    assert_eq!(ids(&changes), expected);
    // CNPs have no class: theirs goes before the first one.
    assert_eq!(
        changes[0].step.commands,
        [
            "class-map type qos match-any CNP",
            "  match dscp 48",
            "policy-map type qos QOS_IN",
            "  class CNP insert-before RDMA",
            "    set qos-group 7",
        ]
    );
    assert_eq!(
        changes[1].step.commands,
        [
            "policy-map type network-qos QOS_NETWORK",
            "  class type network-qos c-8q-nq3",
            "    pause pfc-cos 3",
        ]
    );
    assert_eq!(
        changes[2].step.commands,
        [
            "policy-map type network-qos QOS_NETWORK",
            "  class type network-qos c-8q-nq5",
            "    no pause pfc-cos 5",
        ]
    );
    assert_eq!(
        changes[3].step.commands.last().map(String::as_str),
        Some("    mtu 9216")
    );
}

#[test]
fn thresholds_are_compared_where_they_were_set() {
    let text = fixture("nexus-strict.txt").replace("    priority level 1\n", "");
    assert_eq!(check_nexus_of(&text), []);
    let settings = Settings::from_pairs(["ecn_min=150k", "ecn_max=1500k"]).unwrap();
    let check = |settings: &Settings, text: &str| {
        check_nexus(
            &Cluster::default(),
            settings,
            None,
            text,
            &["Eth1/1/1".to_owned()],
        )
        .unwrap()
    };
    assert_eq!(check(&settings, &text), []);
    let settings = Settings::from_pairs(["ecn_max=2m"]).unwrap();
    assert_eq!(ids(&check(&settings, &text)), ["switch.ecn_threshold"]);
    // 150,000 bytes of a queue are not reached where PFC pauses from 38,400 bytes on.
    let first = text.replace(
        "pause pfc-cos 3",
        "pause buffer-size 131072 pause-threshold 38400 resume-threshold 37440 pfc-cos 3",
    );
    assert_eq!(
        ids(&check(&Settings::default(), &first)),
        ["switch.ecn_above_pfc"]
    );
}

#[test]
fn after_the_printed_change_there_is_no_difference() {
    for name in ["nexus-strict.txt", "nexus-flowcontrol.txt", "nexus-network.txt"] {
        let text = fixture(name);
        let changes = check_nexus_of(&text);
        assert_eq!(check_nexus_of(&applied(&text, &changes)), [], "{name}");
        // Each change alone mends what it is about.
        for change in &changes {
            let left = check_nexus_of(&applied(&text, std::slice::from_ref(change)));
            assert!(!left.contains(change), "{name}: {change:?}");
            assert!(left.len() < changes.len(), "{name}: {change:?}");
        }
    }
    let text = fixture("eos.txt");
    let check = |text: &str| check_eos(&Cluster::default(), &Settings::default(), text, &[]).unwrap();
    assert_eq!(check(&applied(&text, &check(&text))), []);
}

#[test]
fn an_empty_switch_becomes_one_without_differences() {
    let text = "interface Ethernet1/1\n  no shutdown\ninterface Ethernet1/2\n  switchport\n";
    let changes = check_nexus_of(text);
    assert!(changes.len() > 5);
    assert_eq!(check_nexus_of(&applied(text, &changes)), []);
}

#[test]
fn templates_have_no_differences() {
    let ports = ["Ethernet1/1".to_owned(), "Ethernet1/2".to_owned()];
    let (cluster, settings) = (Cluster::default(), Settings::default());
    for generation in [NexusGeneration::First, NexusGeneration::CloudScale] {
        let text = configuration_of(&nexus(&cluster, &settings, generation, &ports));
        let changes = check_nexus(&cluster, &settings, None, &text, &ports).unwrap();
        assert_eq!(changes, [], "{generation:?}");
    }
    let text = configuration_of(&eos(&cluster, &settings, &ports));
    assert_eq!(check_eos(&cluster, &settings, &text, &ports).unwrap(), []);
    let text = configuration_of(&cumulus(&cluster, &settings, &["swp1".to_owned()]));
    assert_eq!(
        check_cumulus(&cluster, &settings, &text, &["swp1".to_owned()]).unwrap(),
        []
    );
}

#[test]
fn shares_beside_that_of_rdma_come_to_100() {
    let text = "qos profile A\n   tx-queue 3\n      priority strict\n   tx-queue 1\n      bandwidth percent 30\n   tx-queue 0\n      \
                bandwidth percent 60\n      no priority\ninterface Ethernet1/1\n   service-profile A\n";
    let of = |text: &str| {
        let changes = check_eos(&Cluster::default(), &Settings::default(), text, &[]).unwrap();
        commands(&changes, "switch.rdma_strict_priority").join("\n")
    };
    // 30 x 40 / 90 is 13.3, 60 x 40 / 90 is 26.7: rounded down.
    assert_eq!(
        of(text),
        "qos profile A\n   tx-queue 1\n      bandwidth percent 13\n   tx-queue 0\n      bandwidth percent 26\n   tx-queue 3\n      \
         no priority\n      bandwidth percent 60"
    );
    // 10 and 30 % leave 60.
    let fitting = text
        .replace("percent 30", "percent 10")
        .replace("percent 60", "percent 30");
    assert!(!of(&fitting).contains("tx-queue 1"), "{}", of(&fitting));
}

#[test]
fn differences_of_eos() {
    let check = |text: &str| check_eos(&Cluster::default(), &Settings::default(), text, &[]).unwrap();
    let changes = check(&fixture("eos.txt"));
    let of = |owner: &str| -> BTreeSet<&str> {
        let all = changes.iter().filter(|change| change.step.commands[0] == owner);
        all.map(|change| change.id).collect()
    };
    assert_eq!(
        of("qos map dscp 26 to traffic-class 3"),
        BTreeSet::from(["switch.queue_unclassified"])
    );
    // The profile's faults are mended in the profile; Ethernet2/1 is routed and trusts the DSCP.
    assert_eq!(
        of("qos profile STORAGE"),
        BTreeSet::from([
            "switch.pfc_other_priority",
            "switch.rdma_strict_priority",
            "switch.ecn_off"
        ])
    );
    assert_eq!(
        of("interface Ethernet1/1"),
        BTreeSet::from(["switch.llfc_and_pfc"])
    );
    assert_eq!(
        of("interface Ethernet2/1"),
        BTreeSet::from([
            "switch.pfc_off",
            "switch.not_lossless",
            "switch.rdma_strict_priority",
            "switch.ecn_off",
            "switch.mtu"
        ])
    );
    assert!(of("interface Ethernet3/1").is_empty());
    let queue = changes
        .iter()
        .find(|change| change.id == "switch.ecn_off")
        .unwrap();
    assert_eq!(queue.step.commands[1], "   uc-tx-queue 3");
}

/// The configuration after the commands of changes.
fn loaded(document: &str, changes: &[Change]) -> String {
    let mut document: Map<String, Value> = serde_json::from_str(document).unwrap();
    for change in changes {
        let commands = change.step.commands.join("\n");
        if let Some((_, rest)) = commands.split_once("<<'EOF'\n") {
            let (tables, _) = rest.split_once("\nEOF").unwrap();
            merge(&mut document, serde_json::from_str(tables).unwrap());
        } else if let Some(rest) = commands.strip_prefix("sudo pfcwd start --action drop ") {
            for port in rest.split(' ').take_while(|word| word.starts_with("Ethernet")) {
                let table = json!({ "PFC_WD": { port: { "action": "drop" } } });
                merge(&mut document, table.as_object().cloned().unwrap());
            }
        }
    }
    Value::Object(document).to_string()
}

#[test]
fn differences_of_sonic() {
    let check = |text: &str| check_sonic(&Cluster::default(), &Settings::default(), text, &[]).unwrap();
    let text = fixture("sonic.json");
    let changes = check(&text);
    assert_eq!(
        ids(&changes),
        [
            "switch.queue_unclassified",
            "switch.pfc_off",
            "switch.pfc_other_priority",
            "switch.ecn_off",
            "switch.rdma_strict_priority",
            "switch.mtu",
            "switch.no_watchdog",
        ]
    );
    assert_eq!(
        commands(&changes, "switch.mtu").join(" ").replace("  ", ""),
        "cat > change.json <<'EOF' { \"PORT\": { \"Ethernet4\": { \"mtu\": \"9216\" } } } EOF sudo config load -y change.json"
    );
    // Ethernet8 is down.
    assert_eq!(
        commands(&changes, "switch.no_watchdog"),
        ["sudo pfcwd start --action drop Ethernet4 200 --restoration-time 200"]
    );
    assert_eq!(check(&loaded(&text, &changes)), []);
    let template = sonic(
        &Cluster::default(),
        &Settings::default(),
        &["Ethernet0".to_owned()],
    );
    let (_, rest) = template[0].commands.split_at(1);
    let end = rest.iter().position(|line| line == "EOF").unwrap();
    let mut tables: Value = serde_json::from_str(&rest[..end].join("\n")).unwrap();
    tables["PFC_WD"] = json!({ "Ethernet0": {} });
    assert_eq!(check(&tables.to_string()), []);
}

#[test]
fn recordings_of_cumulus_and_esxi() {
    let (cluster, settings) = (Cluster::default(), Settings::default());
    let ports = ["swp1".to_owned(), "swp2".to_owned()];
    let changes = check_cumulus(&cluster, &settings, &fixture("cumulus.txt"), &ports).unwrap();
    let lines: Vec<&str> = changes
        .iter()
        .map(|change| change.step.commands[0].as_str())
        .collect();
    assert_eq!(
        lines,
        [
            "nv set qos roce mode lossless",
            "nv set interface swp2 link mtu 9216"
        ]
    );
    // Priorities 0 and 3 are on.
    let changes = check_esxi(&cluster, &settings, &fixture("esxi.txt"), "vmnic3").unwrap();
    assert_eq!(ids(&changes), ["pfc.others"]);
    assert!(changes[0].step.commands[0].contains("pfctx=0x08 pfcrx=0x08 trust_state=2"));
    let good = fixture("esxi.txt").replace("1 0 0 1", "0 0 0 1");
    assert_eq!(check_esxi(&cluster, &settings, &good, "vmnic3").unwrap(), []);
    assert!(check_esxi(&cluster, &settings, "nothing", "vmnic3").is_err());
}

#[test]
fn commands_of_hosts() {
    let cluster = Cluster::default();
    let settings = Settings::from_pairs(["dev=mlx5_0"]).unwrap();
    let all = |settings: &Settings, tool| -> Vec<String> {
        let steps = host(&cluster, settings, "ens1f0np0", tool);
        steps.into_iter().flat_map(|step| step.commands).collect()
    };
    // The commands of the design: 106 is 26 * 4 + 2.
    let dcb = all(&settings, HostTool::Dcb);
    for command in [
        "dcb pfc set dev ens1f0np0 prio-pfc all:off 3:on",
        "dcb app replace dev ens1f0np0 dscp-prio 26:3 48:6",
        "mkdir -p /sys/kernel/config/rdma_cm/mlx5_0 && echo 106 > /sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos",
        "ip link set ens1f0np0 mtu 9000",
    ] {
        assert!(dcb.iter().any(|known| known == command), "{command}");
    }
    let mlnx = all(&settings, HostTool::MlnxQos);
    for command in [
        "mlnx_qos -i ens1f0np0 --trust dscp --pfc 0,0,0,1,0,0,0,0",
        "echo 106 > /sys/class/infiniband/mlx5_0/tc/1/traffic_class",
        "cma_roce_tos -d mlx5_0 -p 1 -t 106",
        "echo 1 > /sys/class/net/ens1f0np0/ecn/roce_np/enable/3",
    ] {
        assert!(mlnx.iter().any(|known| known == command), "{command}");
    }
    // Numbers of priorities, as lldptool-pfc(8) has them: not `0,0,0,1,0,0,0,0`.
    let lldp = all(&settings, HostTool::Lldptool);
    assert!(lldp.contains(&"lldptool -T -i ens1f0np0 -V PFC willing=no enabled=3".to_owned()));
    assert!(!lldp.iter().any(|command| command.contains("enabled=0")));
    // Without the device's name the shell finds it.
    let found = all(&Settings::default(), HostTool::Dcb);
    assert!(
        found
            .iter()
            .any(|command| command.contains("/sys/class/net/ens1f0np0/device/infiniband/"))
    );
}

#[test]
fn every_step_says_why() {
    let (cluster, settings) = (Cluster::default(), Settings::default());
    let ports = ["Ethernet1/1".to_owned()];
    let mut all = Vec::new();
    for tool in [HostTool::Dcb, HostTool::MlnxQos, HostTool::Lldptool] {
        all.extend(host(&cluster, &settings, "eth0", tool));
    }
    for kind in [
        Persistence::Kernel,
        Persistence::Memlock,
        Persistence::Sysctl,
        Persistence::Systemd,
        Persistence::K8s,
        Persistence::NetworkManager,
        Persistence::Netplan,
    ] {
        all.extend(persistence(
            &cluster,
            &settings,
            kind,
            Some("eth0"),
            HostTool::Dcb,
        ));
    }
    all.extend(nexus(&cluster, &settings, NexusGeneration::First, &ports));
    all.extend(sonic(&cluster, &settings, &ports));
    all.extend(eos(&cluster, &settings, &ports));
    all.extend(cumulus(&cluster, &settings, &ports));
    all.extend(esxi(&cluster, &settings, "vmnic3"));
    for step in &all {
        assert!(!step.comments.is_empty(), "{step:?}");
        assert!(!step.commands.is_empty(), "{step:?}");
    }
    // The lines about the link and about undoing come for each device.
    let text: Vec<&str> = all
        .iter()
        .flat_map(|step| &step.comments)
        .map(String::as_str)
        .collect();
    assert!(text.iter().filter(|line| line.contains("Undo")).count() > 20);
}

#[test]
fn priorities_of_other_clusters() {
    let cluster = Cluster {
        priority: 6,
        dscp: 48,
        cnp_dscp: 50,
        ..Cluster::default()
    };
    // CNPs never share the lossless priority: 50 is of class 6.
    assert_eq!(cnp_priority(&cluster), 7);
    assert_eq!(cnp_priority(&Cluster::default()), 6);
    assert_eq!(type_of_service(&cluster), 194);
    assert_eq!(priority_list(6), "0,0,0,0,0,0,1,0");
}

#[test]
fn settings_are_bounded() {
    for wrong in [
        "ecn_min",
        "ecn_min=0",
        "ecn_min=2000m",
        "mtu=100",
        "mtu=x",
        "dev=a b",
        "dev=$(reboot)",
        "color=red",
        "bandwidth=100",
    ] {
        assert!(Settings::from_pairs([wrong]).is_err(), "{wrong}");
    }
    let settings = Settings::from_pairs(["ecn_min=153600", "ecn_max=3m"]).unwrap();
    assert_eq!((settings.ecn_min, settings.ecn_max), (153_600, 3_000_000));
    // In any order.
    for pairs in [["ecn_max=100k", "ecn_min=150k"], ["ecn_min=150k", "ecn_max=150k"]] {
        let error = Settings::from_pairs(pairs).unwrap_err();
        assert!(error.contains("not more than"), "{error}");
    }
    assert!(check_name("-x").is_err() && check_name("Ethernet1/1:2").is_ok());
}

proptest! {
    /// Any text is a configuration or an error, and each change names what it changes.
    #[test]
    fn any_text_is_checked(text in "(interface Ethernet1/[0-9]\n|  ?(no |)(class|policy-map type qos|pause|mtu|random-detect|service-policy type qos input)? ?[a-z0-9 -]{0,20}\n){0,40}") {
        let (cluster, settings) = (Cluster::default(), Settings::default());
        for changes in [
            check_nexus(&cluster, &settings, None, &text, &[]),
            check_eos(&cluster, &settings, &text, &[]),
        ].into_iter().flatten() {
            prop_assert!(changes.iter().all(|change| !change.step.commands.is_empty()));
        }
        prop_assert!(check_sonic(&cluster, &settings, &text, &[]).is_err());
    }

    /// A configuration that is cut anywhere is checked.
    #[test]
    fn any_cut_is_checked(at in 0_usize..1_400, which in 0_usize..4) {
        let name = ["nexus-strict.txt", "nexus-flowcontrol.txt", "nexus-network.txt", "eos.txt"][which];
        let text = fixture(name);
        let cut = &text[..at.min(text.len())];
        let (cluster, settings) = (Cluster::default(), Settings::default());
        if let Ok(changes) = check_nexus(&cluster, &settings, None, cut, &[]) {
            // Their differences are in each part that has an interface.
            prop_assert!(!changes.is_empty());
        }
        prop_assert!(check_eos(&cluster, &settings, cut, &[]).is_ok() || !cut.contains("interface Ethernet1"));
    }
}

#[test]
fn names_of_dscps_beyond_the_standards_are_none() {
    // RFC 2474 has CS0 to CS7, RFC 2597 AF11 to AF43; 32 * 8 and 42 * 8 are no numbers of 8 bits.
    assert_eq!(super::blocks::dscps("cs7 af43 cs8 cs32 cs255 afzz af3"), [56, 38]);
}
