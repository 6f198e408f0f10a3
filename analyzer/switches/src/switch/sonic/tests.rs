//! The numbers are those of the fixtures in `tests/data/fabric/sonic-leaf`, written by hand in the forms of sonic-utilities' tests.

mod fields;

use std::collections::BTreeSet;

use proptest::prelude::*;
use roce_model::Counter;

use super::super::recorded::{check, fixture, read_all, samples};
use super::*;
use crate::device::Reason;
use crate::inventory::SwitchKind;

const FOLDER: &str = "sonic-leaf";

/// Commands whose answers people record.
const TABLES: [&str; 4] = [PFC, QUEUES, WRED, STORMS];
/// Counters that both the database and the tables have.
const COMMON: [Counter; 14] = [
    Counter::SwitchPfcReceivedFrames,
    Counter::SwitchPfcTransmittedFrames,
    Counter::SwitchPriorityPfcReceivedFrames,
    Counter::SwitchPriorityPfcTransmittedFrames,
    Counter::SwitchQueueTransmittedPackets,
    Counter::SwitchQueueTransmittedBytes,
    Counter::SwitchQueueDroppedPackets,
    Counter::SwitchQueueDroppedBytes,
    Counter::SwitchQueueEcnMarkedPackets,
    Counter::SwitchQueueEcnMarkedBytes,
    Counter::SwitchQueueWredDroppedPackets,
    Counter::SwitchWatchdogShutdowns,
    Counter::SwitchWatchdogRestores,
    Counter::SwitchWatchdogDroppedPackets,
];

fn database_commands() -> Vec<&'static str> {
    let mut all = vec![UPTIME, VERSION, LLDP, MAPS, COUNTERS, PORTS, AGGREGATES];
    all.extend(SETTINGS);
    all
}

fn read_of(commands: &[&str]) -> Reading {
    read_all(SwitchKind::Sonic, FOLDER, commands)
}

fn reading_of(answers: &Answers) -> Reading {
    super::super::recorded::reading_of(SwitchKind::Sonic, answers)
}

#[test]
fn counters_of_ports() {
    let reading = read_of(&database_commands());
    assert_eq!(reading.problems, []);
    // Ethernet4 does not count received frames (`N/A`): there is no sample and no total of it.
    check(
        &reading,
        Counter::SwitchPfcReceivedFrames,
        &["Ethernet0 port 1207"],
    );
    check(
        &reading,
        Counter::SwitchPfcTransmittedFrames,
        &["Ethernet0 port 45", "Ethernet4 port 310"],
    );
    assert_eq!(reading.of(Counter::SwitchPriorityPfcReceivedFrames).count(), 8);
    assert_eq!(
        reading.of(Counter::SwitchPriorityPfcTransmittedFrames).count(),
        16
    );
    // 2,500,000 us.
    check(
        &reading,
        Counter::SwitchPriorityPfcReceivePausedSeconds,
        &["Ethernet0 p3 port 2.5"],
    );
    check(
        &reading,
        Counter::SwitchPriorityPfcTransitions,
        &["Ethernet0 p3 port 600"],
    );
    // 2^53 + 1 is rounded to a sample's 16 digits.
    check(
        &reading,
        Counter::SwitchInterfaceReceivedBytes,
        &["Ethernet0 port 9007199254740992", "Ethernet4 port 64"],
    );
    check(
        &reading,
        Counter::SwitchInterfaceReceivedPackets,
        &[
            "Ethernet0 port unicast 2800112233",
            "Ethernet0 port multicast 10",
            "Ethernet0 port broadcast 2",
        ],
    );
    check(
        &reading,
        Counter::SwitchInterfaceDiscards,
        &["Ethernet0 port received 17", "Ethernet0 port transmitted 0"],
    );
    check(
        &reading,
        Counter::SwitchInterfaceUp,
        &[
            "Ethernet0 port 1",
            "Ethernet4 port 0",
            "port-channel0002 aggregate 1",
        ],
    );
    // 100,000 Mbit/s.
    check(
        &reading,
        Counter::SwitchInterfaceRate,
        &["Ethernet0 port 12500000000", "Ethernet4 port 12500000000"],
    );
    check(
        &reading,
        Counter::SwitchInterfaceMtu,
        &["Ethernet0 port 9216", "Ethernet4 port 9216"],
    );
    check(&reading, Counter::SwitchUptime, &[" 350735.47"]);
}

#[test]
fn counters_of_queues_and_groups() {
    let reading = read_of(&database_commands());
    check(
        &reading,
        Counter::SwitchQueueTransmittedPackets,
        &[
            "Ethernet0 q3 port unicast 2900000000",
            "Ethernet0 q6 port unicast 77120",
            "Ethernet0 qmc3 port multicast 9",
            "Ethernet4 q3 port unicast 11",
        ],
    );
    check(
        &reading,
        Counter::SwitchQueueDroppedPackets,
        &[
            "Ethernet0 q3 port unicast 0",
            "Ethernet0 q6 port unicast 3",
            "Ethernet0 qmc3 port multicast 0",
        ],
    );
    check(
        &reading,
        Counter::SwitchQueueEcnMarkedPackets,
        &["Ethernet0 q3 port 40812001", "Ethernet4 q3 port 0"],
    );
    check(
        &reading,
        Counter::SwitchQueueWredDroppedPackets,
        &["Ethernet0 q3 port any 5", "Ethernet4 q3 port any 0"],
    );
    check(&reading, Counter::SwitchQueuePeak, &["Ethernet0 q3 port 151424"]);
    check(
        &reading,
        Counter::SwitchPriorityGroupDroppedPackets,
        &["Ethernet0 q0 port 17", "Ethernet0 q3 port 0"],
    );
    check(
        &reading,
        Counter::SwitchPriorityGroupHeadroomPeak,
        &["Ethernet0 q3 port 98304"],
    );
    check(
        &reading,
        Counter::SwitchWatchdogShutdowns,
        &["Ethernet0 q3 port 2"],
    );
    check(
        &reading,
        Counter::SwitchWatchdogRestores,
        &["Ethernet0 q3 port 1"],
    );
    // 300 on transmission and 20 on reception.
    check(
        &reading,
        Counter::SwitchWatchdogDroppedPackets,
        &["Ethernet0 q3 port 320"],
    );
}

/// After sonic-utilities, pfc/main.py: a table of tabulate, `N/A` for a port without PFC.
#[test]
fn priorities_with_pfc_of_the_command_line() {
    let text = "Interface    Lossless priorities\n-----------  ---------------------\nEthernet0    3,4\nEthernet4    N/A\n";
    let mut reading = reading_of(&Answers::default());
    assert!(super::tables::pfc_priorities(text, &mut reading));
    let on: Vec<String> = samples(&reading, Counter::SwitchPfcEnabled)
        .into_iter()
        .filter(|line| line.ends_with(" 1"))
        .collect();
    assert_eq!(on, ["Ethernet0 p3 port 1", "Ethernet0 p4 port 1"]);
    assert_eq!(reading.of(Counter::SwitchPfcEnabled).count(), 16);
}

#[test]
fn settings_are_those_of_the_configuration() {
    let reading = read_of(&database_commands());
    let enabled: BTreeSet<String> = samples(&reading, Counter::SwitchPfcEnabled)
        .into_iter()
        .filter(|line| line.ends_with(" 1"))
        .collect();
    assert_eq!(enabled, BTreeSet::from(["Ethernet0 p3 port 1".to_owned()]));
    assert_eq!(reading.of(Counter::SwitchPfcEnabled).count(), 16);
    check(
        &reading,
        Counter::SwitchEcnThreshold,
        &[
            "Ethernet0 q3 port min 153600",
            "Ethernet0 q3 port max 3145728",
            "Ethernet4 q3 port min 153600",
            "Ethernet4 q3 port max 3145728",
        ],
    );
    assert_eq!(reading.queue_of_dscp.len(), 64);
    assert_eq!(reading.queue_of_dscp.get(&26).map(String::as_str), Some("3"));
    assert_eq!(reading.queue_of_dscp.get(&48).map(String::as_str), Some("6"));
    assert_eq!(reading.queue_of_dscp.get(&0).map(String::as_str), Some("0"));
    let classes: Vec<_> = reading
        .classes
        .iter()
        .map(|class| {
            (
                class.interface.as_str(),
                class.queue.as_str(),
                class.priority_level,
                class.has_ecn,
            )
        })
        .collect();
    assert_eq!(
        classes,
        [
            ("Ethernet0", "3", None, true),
            ("Ethernet4", "3", None, true),
            ("Ethernet0", "6", Some(1), false),
            ("Ethernet0", "7", Some(1), false),
        ]
    );
    assert_eq!(reading.has_watchdog, Some(true));
    let stormed = BTreeSet::from([("Ethernet0".to_owned(), "3".to_owned())]);
    assert_eq!(reading.stormed_queues, stormed);
    assert_eq!(reading.description.version, "SONiC.202405.1001-a98cf221");
    assert_eq!(reading.description.model, "ACS-MSN3700");
    assert_eq!(reading.description.serial, "MT0000X00001");
    let neighbors: Vec<_> = reading
        .neighbors
        .iter()
        .map(|neighbor| {
            (
                neighbor.interface.as_str(),
                neighbor.node.as_str(),
                neighbor.port.as_str(),
            )
        })
        .collect();
    assert_eq!(
        neighbors,
        [
            ("Ethernet0", "gpu server 5", "0c:42:a1:88:0a:1c"),
            ("Ethernet4", "spine1", "Ethernet12"),
        ]
    );
}

#[test]
fn an_empty_watchdog_table_is_no_watchdog() {
    let mut answers = Answers::default();
    assert_eq!(reading_of(&answers).has_watchdog, None);
    answers.insert(WATCHDOG, "{}\n");
    assert_eq!(reading_of(&answers).has_watchdog, Some(false));
}

#[test]
fn the_tables_of_one_moment_give_the_samples_of_the_database() {
    let (database, tables) = (read_of(&database_commands()), read_of(&TABLES));
    assert_eq!(tables.problems, []);
    for counter in COMMON {
        let expected = samples(&database, counter);
        assert!(!expected.is_empty(), "{}", counter.name());
        assert_eq!(samples(&tables, counter), expected, "{}", counter.name());
    }
    // Where both were recorded no number is there twice.
    let mut both = database_commands();
    both.extend(TABLES);
    assert_eq!(read_of(&both).samples.len(), database.samples.len());
}

#[test]
fn other_tables_are_not_taken_for_these() {
    let mut answers = Answers::default();
    answers.insert(
        PFC,
        "     Port    Priority    RX Pause Transitions    Total RX Pause Time MS\n Ethernet0 PFC0 1 2 3 4 5 6 7\n",
    );
    answers.insert(
        QUEUES,
        " Port    Voq    Counter/pkts    Counter/bytes\n----\nEthernet0   UC0   8   976\n",
    );
    answers.insert(STORMS, "bash: pfcwd: command not found\n");
    let reading = reading_of(&answers);
    assert_eq!(reading.samples, []);
    let reasons: Vec<Reason> = reading.problems.iter().map(|problem| problem.reason).collect();
    assert_eq!(reasons, [Reason::Parse, Reason::Parse, Reason::Unsupported]);
}

#[test]
fn questions_are_two_scripts_whose_sections_are_the_commands() {
    let questions = questions(&Answers::default());
    let slow: Vec<bool> = questions.iter().map(|question| question.is_slow).collect();
    assert_eq!(slow, [true, false]);
    for command in database_commands() {
        let section = format!("echo \"== {command}\"; {command} 2>&1");
        let asked = questions
            .iter()
            .filter(|question| question.command.contains(&section));
        assert_eq!(asked.count(), 1, "{command}");
    }
    // Tables with passwords (TACACS, SNMP, BGP) are not asked of.
    assert!(
        !questions
            .iter()
            .any(|question| question.command.contains("cfggen"))
    );
}

proptest! {
    /// A document that is cut anywhere is a problem or gives fewer samples.
    #[test]
    fn any_cut_is_read(at in 0_usize..8_000, which in 0_usize..20) {
        let mut commands = database_commands();
        commands.extend(TABLES);
        let whole = read_of(&commands).samples.len();
        let mut answers = Answers::default();
        for (index, command) in commands.iter().enumerate() {
            let text = fixture(FOLDER, command);
            let end = if index == which % commands.len() { at.min(text.len()) } else { text.len() };
            answers.insert(command, &text[..end]);
        }
        prop_assert!(reading_of(&answers).samples.len() <= whole);
    }

    /// Any text is read in all places.
    #[test]
    fn any_text_is_read(text in "[ -~\n|{}\":,0-9\\-]{0,400}") {
        let mut answers = Answers::default();
        let mut commands = database_commands();
        commands.extend(TABLES);
        for command in commands {
            answers.insert(command, &text);
        }
        let reading = reading_of(&answers);
        prop_assert!(reading.samples.iter().all(|sample| sample.value.is_finite()));
    }
}
