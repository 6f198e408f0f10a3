//! The numbers are those of the fixtures in `tests/fabric/eos-leaf`, written by hand with the keys of ANTA and node-scraper.

use proptest::prelude::*;
use roce_model::Counter;

use super::super::recorded::{check, fixture, read_all, samples};
use super::*;
use crate::device::Reason;
use crate::inventory::SwitchKind;

const FOLDER: &str = "eos-leaf";
const JSON: [&str; 12] = [
    VERSION, LLDP, STATUS, COUNTERS, ERRORS, DISCARDS, PFC, PFC_DETAIL, WATCHDOG, PAUSES, ECN, QUEUES,
];

#[test]
fn documents_give_their_numbers() {
    let reading = read_all(SwitchKind::Eos, FOLDER, &JSON);
    assert_eq!(reading.problems, []);
    assert_eq!(reading.description.model, "DCS-7060CX-32S-F");
    assert_eq!(reading.description.version, "4.31.2F");
    assert_eq!(reading.description.serial, "JPE00000001");
    check(&reading, Counter::SwitchUptime, &[" 350735.5"]);
    check(
        &reading,
        Counter::SwitchInterfaceUp,
        &[
            "Ethernet1/1 port 1",
            "Ethernet2/1 port 0",
            "port-channel7 aggregate 1",
        ],
    );
    // 100 and 200 Gbit/s; a port without a link has no rate.
    check(
        &reading,
        Counter::SwitchInterfaceRate,
        &[
            "Ethernet1/1 port 12500000000",
            "port-channel7 aggregate 25000000000",
        ],
    );
    check(
        &reading,
        Counter::SwitchInterfaceReceivedBytes,
        &["Ethernet1/1 port 9007199254740994"],
    );
    check(
        &reading,
        Counter::SwitchInterfaceTransmittedPackets,
        &[
            "Ethernet1/1 port unicast 2900000001",
            "Ethernet1/1 port multicast 30",
            "Ethernet1/1 port broadcast 4",
        ],
    );
    check(
        &reading,
        Counter::SwitchInterfaceErrors,
        &["Ethernet1/1 port received 1", "Ethernet1/1 port transmitted 0"],
    );
    // Those of Ethernet1/1 are in two documents and count once.
    check(
        &reading,
        Counter::SwitchInterfaceDiscards,
        &[
            "Ethernet1/1 port received 17",
            "Ethernet1/1 port transmitted 0",
            "Ethernet2/1 port received 0",
            "Ethernet2/1 port transmitted 6",
        ],
    );
    check(
        &reading,
        Counter::SwitchPauseReceivedFrames,
        &["Ethernet1/1 port 510", "Ethernet2/1 port 0"],
    );
    // "unknown" is no state.
    check(
        &reading,
        Counter::SwitchPauseEnabled,
        &[
            "Ethernet1/1 port received 1",
            "Ethernet1/1 port transmitted 0",
            "Ethernet2/1 port received 0",
        ],
    );
    let neighbors: Vec<_> = reading
        .neighbors
        .iter()
        .map(|known| (known.interface.as_str(), known.node.as_str(), known.port.as_str()))
        .collect();
    assert_eq!(
        neighbors,
        [
            ("Ethernet1/1", "gpu5", "0c42.a188.0a1c"),
            ("Ethernet2/1", "spine1", "Ethernet7/1"),
        ]
    );
}

#[test]
fn documents_give_pfc_and_queues() {
    let reading = read_all(SwitchKind::Eos, FOLDER, &JSON);
    check(
        &reading,
        Counter::SwitchPfcReceivedFrames,
        &["Ethernet1/1 port 1207", "Ethernet2/1 port 0"],
    );
    check(
        &reading,
        Counter::SwitchPfcTransmittedFrames,
        &["Ethernet1/1 port 45", "Ethernet2/1 port 310"],
    );
    // Priorities that the document has not are absent.
    check(
        &reading,
        Counter::SwitchPriorityPfcReceivedFrames,
        &["Ethernet1/1 p3 port 1200", "Ethernet1/1 p4 port 7"],
    );
    check(
        &reading,
        Counter::SwitchWatchdogShutdowns,
        &["Ethernet1/1 q3 port 2"],
    );
    // "-" is a queue that does not mark.
    check(
        &reading,
        Counter::SwitchQueueEcnMarkedPackets,
        &["Ethernet1/1 q3 port 40812001", "Ethernet2/1 q3 port 0"],
    );
    // 2,900,000,000 + 5 and 3 + 1 of two drop precedences.
    check(
        &reading,
        Counter::SwitchQueueTransmittedPackets,
        &[
            "Ethernet1/1 q3 port unicast 2900000005",
            "Ethernet1/1 q3 port multicast 9",
        ],
    );
    check(
        &reading,
        Counter::SwitchQueueDroppedPackets,
        &["Ethernet1/1 q3 port unicast 4", "Ethernet1/1 q3 port multicast 0"],
    );
}

#[test]
fn tables_of_the_same_moment_give_the_same_samples() {
    let json = read_all(SwitchKind::Eos, FOLDER, &[PFC, QUEUES]);
    let text = read_all(SwitchKind::Eos, FOLDER, &[PFC_TEXT, QUEUES_TEXT]);
    assert_eq!(text.problems, []);
    assert_eq!(json.samples.len(), 12);
    for counter in Counter::ALL {
        assert_eq!(
            samples(&text, *counter),
            samples(&json, *counter),
            "{}",
            counter.name()
        );
    }
    let drops = read_all(SwitchKind::Eos, FOLDER, &[DROPS_TEXT]);
    check(
        &drops,
        Counter::SwitchQueueDroppedPackets,
        &[
            "Ethernet1/1 qport port unicast 4",
            "Ethernet1/1 qport port multicast 0",
        ],
    );
}

#[test]
fn other_forms_of_priorities_and_queues() {
    let mut answers = Answers::default();
    answers.insert(
        PFC_DETAIL,
        r#"{"interfaceCounters": {"Ethernet1": {"rxFrames": {"3": 5, "4": "-"}, "txFrames": {"priority3": 7}}}}"#,
    );
    answers.insert(
        QUEUES,
        r#"{"interfaces": {"Ethernet1": {"trafficClasses": {"TC3": {
            "egressQueueCounters": {"countersSum": {"enqueuedPackets": 8, "droppedPackets": 1}},
            "ingressVoqCounters": {"countersSum": {"enqueuedPackets": 10, "droppedPackets": 2}}}}}}}"#,
    );
    answers.insert(
        "show lldp neighbors | json",
        r#"{"lldpNeighbors": [{"port": "Ethernet1", "neighborDevice": "gpu5", "neighborPort": "ens1", "ttl": 120}]}"#,
    );
    let reading = super::super::recorded::reading_of(SwitchKind::Eos, &answers);
    check(
        &reading,
        Counter::SwitchPriorityPfcReceivedFrames,
        &["Ethernet1 p3 port 5"],
    );
    check(
        &reading,
        Counter::SwitchPfcTransmittedFrames,
        &["Ethernet1 port 7"],
    );
    // What a virtual output queue passes on leaves by the egress queue; drops are of both.
    check(
        &reading,
        Counter::SwitchQueueTransmittedPackets,
        &["Ethernet1 q3 port all 8"],
    );
    check(
        &reading,
        Counter::SwitchQueueDroppedPackets,
        &["Ethernet1 q3 port all 3"],
    );
    assert_eq!(reading.neighbors.len(), 1);
}

#[test]
fn a_command_without_json_is_replaced_by_its_table() {
    let mut answers = Answers::default();
    let commands = |answers: &Answers| -> Vec<String> {
        questions(answers)
            .into_iter()
            .map(|question| question.command)
            .collect()
    };
    assert!(commands(&answers).contains(&QUEUES.to_owned()));
    answers.insert(QUEUES, "% This is an unconverted command\n");
    let next = commands(&answers);
    assert!(next.contains(&QUEUES_TEXT.to_owned()) && !next.contains(&QUEUES.to_owned()));
    let reading = super::super::recorded::reading_of(SwitchKind::Eos, &answers);
    assert_eq!(reading.problems[0].reason, Reason::Unsupported);
    // The table is there: nothing is absent.
    answers.insert(QUEUES_TEXT, &fixture(FOLDER, QUEUES_TEXT));
    let reading = super::super::recorded::reading_of(SwitchKind::Eos, &answers);
    assert_eq!(reading.problems, []);
}

proptest! {
    /// A document that is cut anywhere is a problem and gives no samples of its own.
    #[test]
    fn any_cut_is_read(at in 0_usize..3_000, which in 0_usize..12) {
        let text = fixture(FOLDER, JSON[which]);
        let mut answers = Answers::default();
        answers.insert(JSON[which], &text[..at.min(text.trim_end().len() - 1)]);
        let reading = super::super::recorded::reading_of(SwitchKind::Eos, &answers);
        prop_assert_eq!(reading.samples.len(), 0);
        prop_assert_eq!(reading.problems.len(), 1);
    }
}
