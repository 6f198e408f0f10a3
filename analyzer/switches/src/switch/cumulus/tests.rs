//! The numbers are those of the fixtures in `tests/data/fabric/cumulus-leaf`, written by hand.

use proptest::prelude::*;
use roce_model::Counter;

use super::super::recorded::{check, fixture, read_all, reading_of, samples};
use super::*;
use crate::device::Reason;
use crate::inventory::SwitchKind;

const FOLDER: &str = "cumulus-leaf";
const NVUE: &str = "nv show interface swp1 counters qos -o json";
const OLDER: &str = "ethtool -S swp1";

#[test]
fn nvue_gives_queues_and_pfc() {
    let reading = read_all(SwitchKind::Cumulus, FOLDER, &[NVUE]);
    assert_eq!(reading.problems, []);
    check(
        &reading,
        Counter::SwitchQueueTransmittedPackets,
        &["swp1 q0 port all 100", "swp1 q3 port all 2900000000"],
    );
    check(
        &reading,
        Counter::SwitchQueueDroppedPackets,
        &["swp1 q0 port unicast 0", "swp1 q3 port unicast 76993"],
    );
    check(
        &reading,
        Counter::SwitchQueueEcnMarkedPackets,
        &["swp1 q3 port 40812001"],
    );
    check(
        &reading,
        Counter::SwitchQueueWredDroppedPackets,
        &["swp1 q0 port any 0", "swp1 q3 port any 5"],
    );
    check(
        &reading,
        Counter::SwitchPriorityGroupDroppedPackets,
        &["swp1 q3 port 17"],
    );
    check(
        &reading,
        Counter::SwitchPriorityPfcReceivedFrames,
        &["swp1 p3 port 1200", "swp1 p4 port 7"],
    );
    check(&reading, Counter::SwitchPfcReceivedFrames, &["swp1 port 1207"]);
    check(&reading, Counter::SwitchPfcTransmittedFrames, &["swp1 port 45"]);
    // Its unit is not documented.
    check(&reading, Counter::SwitchPriorityPfcReceivePausedSeconds, &[]);
}

#[test]
fn ethtool_gives_ports_and_the_same_pfc() {
    let (nvue, older) = (
        read_all(SwitchKind::Cumulus, FOLDER, &[NVUE]),
        read_all(SwitchKind::Cumulus, FOLDER, &[OLDER]),
    );
    assert_eq!(older.problems, []);
    for counter in [
        Counter::SwitchPfcReceivedFrames,
        Counter::SwitchPfcTransmittedFrames,
        Counter::SwitchPriorityPfcReceivedFrames,
        Counter::SwitchPriorityPfcTransmittedFrames,
    ] {
        assert_eq!(
            samples(&older, counter),
            samples(&nvue, counter),
            "{}",
            counter.name()
        );
    }
    check(
        &older,
        Counter::SwitchInterfaceReceivedPackets,
        &[
            "swp1 port unicast 2800112233",
            "swp1 port multicast 10",
            "swp1 port broadcast 2",
        ],
    );
    check(
        &older,
        Counter::SwitchInterfaceDiscards,
        &["swp1 port received 17", "swp1 port transmitted 0"],
    );
    check(&older, Counter::SwitchPauseReceivedFrames, &["swp1 port 510"]);
    check(
        &older,
        Counter::SwitchQueueWredDroppedPackets,
        &["swp1 q3 port any 5"],
    );
    // No number is there twice.
    let both = read_all(SwitchKind::Cumulus, FOLDER, &[NVUE, OLDER, PORTS]);
    for counter in Counter::ALL {
        assert!(samples(&both, *counter).len() <= 8);
    }
    check(
        &both,
        Counter::SwitchInterfaceReceivedBytes,
        &["swp1 port 9007199254740994"],
    );
}

#[test]
fn the_kernel_says_states_of_ports() {
    let reading = read_all(
        SwitchKind::Cumulus,
        FOLDER,
        &[PORTS, UPTIME, RELEASE, SYSTEM, LLDP],
    );
    assert_eq!(reading.problems, []);
    check(
        &reading,
        Counter::SwitchInterfaceUp,
        &["bond1 aggregate 1", "swp1 port 1", "swp2s0 port 0"],
    );
    // 200,000 and 100,000 Mbit/s; -1 is no rate.
    check(
        &reading,
        Counter::SwitchInterfaceRate,
        &["bond1 aggregate 25000000000", "swp1 port 12500000000"],
    );
    check(&reading, Counter::SwitchUptime, &[" 350735.47"]);
    assert_eq!(reading.description.version, "5.9.1");
    assert_eq!(reading.description.model, "SN4700");
    let neighbors: Vec<_> = reading
        .neighbors
        .iter()
        .map(|known| (known.interface.as_str(), known.node.as_str(), known.port.as_str()))
        .collect();
    assert_eq!(
        neighbors,
        [
            ("swp1", "gpu5", "0c:42:a1:88:0a:1c"),
            ("swp2s0", "aa:bb:cc:00:00:01", "eth1"),
        ]
    );
}

/// Statistics with numbers of their own, in both spellings of PFC's.
#[test]
fn every_statistic_has_its_counter() {
    let text = "\
NIC statistics:
     HwIfInOctets: 101
     HwIfOutOctets: 102
     HwIfInUcastPkts: 103
     HwIfInMcastPkts: 104
     HwIfInBcastPkts: 105
     HwIfOutUcastPkts: 106
     HwIfOutMcastPkts: 107
     HwIfOutBcastPkts: 108
     HwIfInDiscards: 109
     HwIfOutDiscards: 110
     HwIfInErrors: 111
     HwIfOutErrors: 112
     HwIfInPausePkt: 113
     HwIfOutPausePkt: 114
     HwIfInPfc0Pkt: 115
     HwIfOutPfc7Pkt: 116
     HwIfOutQ4WredDrops: 117
";
    let read = |text: &str| {
        let mut answers = Answers::default();
        answers.insert(OLDER, text);
        reading_of(SwitchKind::Cumulus, &answers)
    };
    let reading = read(text);
    assert_eq!(reading.problems, []);
    let expected: [(Counter, &[&str]); 13] = [
        (Counter::SwitchInterfaceReceivedBytes, &["swp1 port 101"]),
        (Counter::SwitchInterfaceTransmittedBytes, &["swp1 port 102"]),
        (
            Counter::SwitchInterfaceReceivedPackets,
            &[
                "swp1 port unicast 103",
                "swp1 port multicast 104",
                "swp1 port broadcast 105",
            ],
        ),
        (
            Counter::SwitchInterfaceTransmittedPackets,
            &[
                "swp1 port unicast 106",
                "swp1 port multicast 107",
                "swp1 port broadcast 108",
            ],
        ),
        (
            Counter::SwitchInterfaceDiscards,
            &["swp1 port received 109", "swp1 port transmitted 110"],
        ),
        (
            Counter::SwitchInterfaceErrors,
            &["swp1 port received 111", "swp1 port transmitted 112"],
        ),
        (Counter::SwitchPauseReceivedFrames, &["swp1 port 113"]),
        (Counter::SwitchPauseTransmittedFrames, &["swp1 port 114"]),
        (Counter::SwitchPriorityPfcReceivedFrames, &["swp1 p0 port 115"]),
        (Counter::SwitchPriorityPfcTransmittedFrames, &["swp1 p7 port 116"]),
        (Counter::SwitchPfcReceivedFrames, &["swp1 port 115"]),
        (Counter::SwitchPfcTransmittedFrames, &["swp1 port 116"]),
        (Counter::SwitchQueueWredDroppedPackets, &["swp1 q4 port any 117"]),
    ];
    for (counter, lines) in expected {
        check(&reading, counter, lines);
    }
    // A switch without a sum counts what it did not send by reason: 40 and 2.
    let by_reason =
        "NIC statistics:\n     HwIfInDiscards: 7\n     HwIfOutQDrops: 40\n     HwIfOutNonQDrops: 2\n";
    let discards = ["swp1 port received 7", "swp1 port transmitted 42"];
    check(&read(by_reason), Counter::SwitchInterfaceDiscards, &discards);
    // The design's spelling, which is unverified.
    let older = text
        .replace("HwIfInPfc0Pkt", "HwIfInPfc0PauseFrames")
        .replace("HwIfOutPfc7Pkt", "HwIfOutPfc7PauseFrames");
    assert_eq!(read(&older).samples, reading.samples);
}

/// A recorded folder has answers by the names of their files.
#[test]
fn a_recording_has_the_numbers_of_the_switch() {
    let all = [NVUE, OLDER, PORTS, UPTIME];
    let live = read_all(SwitchKind::Cumulus, FOLDER, &all);
    let mut answers = Answers::default();
    for command in all {
        answers.insert(&file_name(command), &fixture(FOLDER, command));
    }
    let recorded = reading_of(SwitchKind::Cumulus, &answers);
    assert_eq!((recorded.samples, recorded.problems), (live.samples, vec![]));
}

#[test]
fn other_interfaces_and_8_have_no_number() {
    let mut answers = Answers::default();
    answers.insert("ethtool -S eth0", "no stats available\n");
    answers.insert(
        NVUE,
        r#"{"pfc-stats": {"8": {"rx-pause-frames": 5}, "7": {"rx-pause-frames": 6}}}"#,
    );
    let reading = reading_of(SwitchKind::Cumulus, &answers);
    // The port for management is none of the switch's traffic: nothing is expected of it.
    assert_eq!(reading.problems, []);
    check(
        &reading,
        Counter::SwitchPriorityPfcReceivedFrames,
        &["swp1 p7 port 6"],
    );
    check(&reading, Counter::SwitchPfcReceivedFrames, &["swp1 port 6"]);
}

#[test]
fn queues_have_frames_and_bytes() {
    let reading = read_all(SwitchKind::Cumulus, FOLDER, &[NVUE]);
    check(
        &reading,
        Counter::SwitchQueueTransmittedBytes,
        &["swp1 q0 port all 10000", "swp1 q3 port all 3012345600000"],
    );
}

/// F.2, trap 20; and a text whose last line is cut.
#[test]
fn a_terminal_and_a_cut_line_change_no_number() {
    for command in [OLDER, PORTS] {
        let read = |text: &str| {
            let mut answers = Answers::default();
            answers.insert(command, text);
            reading_of(SwitchKind::Cumulus, &answers)
        };
        let text = fixture(FOLDER, command);
        let whole = read(&text);
        assert!(!whole.samples.is_empty(), "{command}");
        let dressed = format!(
            "\u{feff}Debian\r\ncumulus@leaf1:mgmt:~$ {command}\r\n\u{1b}[0m{}cumulus@leaf1:mgmt:~$ ",
            text.replace('\n', "\r\n")
        );
        assert_eq!(read(&dressed).samples, whole.samples, "{command}");
        let number =
            |sample: &roce_model::Sample| (sample.counter, sample.object.clone(), sample.value.to_bits());
        let numbers: std::collections::BTreeSet<_> = whole.samples.iter().map(number).collect();
        let totals = [
            Counter::SwitchPfcReceivedFrames,
            Counter::SwitchPfcTransmittedFrames,
        ];
        for end in 0..text.len() {
            // The total of a text that is cut lacks priorities.
            let cut = read(&text[..end]).samples.into_iter();
            for sample in cut.filter(|sample| !totals.contains(&sample.counter)) {
                assert!(
                    numbers.contains(&number(&sample)),
                    "{command} up to {end}: {sample:?}"
                );
            }
        }
        assert_eq!(read(text.trim_end()).problems.len(), 1, "{command}");
    }
}

#[test]
fn a_refusal_is_a_problem() {
    let mut answers = Answers::default();
    answers.insert(NVUE, "bash: nv: command not found\n");
    answers.insert(
        OLDER,
        "Cannot get stats strings information: Operation not supported\n",
    );
    let reading = reading_of(SwitchKind::Cumulus, &answers);
    let reasons: Vec<Reason> = reading.problems.iter().map(|problem| problem.reason).collect();
    assert_eq!(reasons, [Reason::Unsupported, Reason::Parse]);
    assert_eq!(reading.samples, []);
}

/// The table of NVIDIA's "Packet Trimming" for Cumulus Linux 5.15.
#[test]
fn trimmed_packets_are_counted_by_traffic_class() {
    let read = |text: &str| {
        let mut answers = Answers::default();
        answers.insert("nv show interface swp1 counters packet-trim", text);
        reading_of(SwitchKind::Cumulus, &answers)
    };
    let table = "Traffic Class  Trim Eligible Packets \n-------------  --------------- \n1                 1000 \n3                 3000\n";
    let reading = read(table);
    check(
        &reading,
        Counter::SwitchQueueTrimmedPackets,
        &["swp1 q1 port unicast 1000", "swp1 q3 port unicast 3000"],
    );
    // A release without the command, a class that is none, a cut line.
    for other in [
        "Error: Invalid Command",
        "Traffic Class  Trim Eligible Packets\n---\n8 5\nx 5\n1\n1 2 3\n1 -5",
        "Traffic Class  Other\n1 5",
    ] {
        assert_eq!(
            samples(&read(other), Counter::SwitchQueueTrimmedPackets).len(),
            0,
            "{other}"
        );
    }
}

#[test]
fn the_script_asks_all_ports() {
    let questions = questions(&Answers::default());
    assert!(questions[0].is_slow && !questions[1].is_slow);
    assert!(
        questions[1]
            .command
            .contains("== nv show interface $port counters qos -o json")
    );
}

/// The loop asks the ports whose link is up, and no others: NVUE takes a second for each.
#[test]
fn a_shell_asks_the_ports_that_are_up() {
    let root = std::env::temp_dir().join(format!("roce-cumulus-{}", std::process::id()));
    for (port, carrier) in [("swp1", "1\n"), ("swp2s0", "0\n"), ("eth0", "1\n")] {
        std::fs::create_dir_all(root.join(port)).unwrap();
        std::fs::write(root.join(port).join("carrier"), carrier).unwrap();
    }
    let programs = "nv() { echo \"nv $*\"; }; ethtool() { echo \"ethtool $*\"; }\n";
    let script = LOOP.replace("/sys/class/net", root.to_str().unwrap());
    let output = std::process::Command::new("sh")
        .args(["-c", &format!("{programs}{script}")])
        .output()
        .unwrap();
    std::fs::remove_dir_all(&root).unwrap();
    let mut answers = Answers::default();
    answers.add(
        &Question::script(LOOP),
        &String::from_utf8(output.stdout).unwrap(),
    );
    let found: Vec<(&str, &str)> = answers.iter().map(|(name, text)| (name, text.trim())).collect();
    assert_eq!(
        found,
        [
            (OLDER, "ethtool -S swp1"),
            (NVUE, "nv show interface swp1 counters qos -o json"),
        ]
    );
}

proptest! {
    /// A document that is cut anywhere is a problem and gives no samples of its own; so is a text of statistics never a panic.
    #[test]
    fn any_cut_is_read(at in 0_usize..1_000) {
        let mut answers = Answers::default();
        let text = fixture(FOLDER, NVUE);
        answers.insert(NVUE, &text[..at.min(text.trim_end().len() - 1)]);
        let reading = reading_of(SwitchKind::Cumulus, &answers);
        prop_assert_eq!((reading.samples.len(), reading.problems.len()), (0, 1));
        let whole = read_all(SwitchKind::Cumulus, FOLDER, &[OLDER, PORTS]).samples.len();
        let text = fixture(FOLDER, OLDER);
        answers.insert(OLDER, &text[..at.min(text.len())]);
        let text = fixture(FOLDER, PORTS);
        answers.insert(PORTS, &text[..at.min(text.len())]);
        prop_assert!(reading_of(SwitchKind::Cumulus, &answers).samples.len() <= whole);
    }
}
