//! The numbers are those of the fixtures in `tests/data/fabric/eos-leaf`, written by hand with the keys of ANTA and node-scraper.

use proptest::prelude::*;
use roce_model::Counter;

use super::super::recorded::{check, fixture, read_all, reading_of, samples};
use super::*;
use crate::device::Reason;
use crate::inventory::SwitchKind;

const FOLDER: &str = "eos-leaf";
const JSON: [&str; 12] = [
    VERSION, LLDP, STATUS, COUNTERS, ERRORS, DISCARDS, PFC, PFC_DETAIL, WATCHDOG, PAUSES, ECN, QUEUES,
];

/// A switch that answers the table where JSON was wanted is asked for the table, and its JSON is no problem.
#[test]
fn pauses_are_read_from_the_table_that_a_session_has() {
    let mut answers = Answers::default();
    answers.insert(PFC, &fixture(FOLDER, PFC_TEXT));
    let asked: Vec<String> = questions(&answers)
        .into_iter()
        .map(|question| question.command)
        .collect();
    assert!(asked.iter().any(|command| command == PFC_TEXT), "{asked:?}");
    assert!(!asked.iter().any(|command| command == PFC), "{asked:?}");
    answers.insert(PFC_TEXT, &fixture(FOLDER, PFC_TEXT));
    let reading = reading_of(SwitchKind::Eos, &answers);
    assert_eq!(reading.problems, []);
    check(
        &reading,
        Counter::SwitchPfcReceivedFrames,
        &["Ethernet1/1 port 1207", "Ethernet2/1 port 0"],
    );
}

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
    // Packets that a virtual output queue passes on leave by the egress queue; both have drops.
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

/// Counter, key, its number, and the place with the value, all by hand.
#[test]
fn every_key_has_its_counter() {
    let mut answers = Answers::default();
    answers.insert(
        COUNTERS,
        r#"{"interfaces": {"Ethernet1": {"inOctets": 101, "outOctets": 102, "inUcastPkts": 103, "inMulticastPkts": 104,
            "inBroadcastPkts": 105, "outUcastPkts": 106, "outMulticastPkts": 107, "outBroadcastPkts": 108,
            "inDiscards": 109, "outDiscards": 110}}}"#,
    );
    answers.insert(
        ERRORS,
        r#"{"interfaceErrorCounters": {"Ethernet1": {"inErrors": 111, "outErrors": 112}}}"#,
    );
    answers.insert(
        PAUSES,
        r#"{"interfaceFlowControls": {"Ethernet1": {"rxPause": 113, "txPause": 114, "rxOperState": "off", "txOperState": "on"}}}"#,
    );
    answers.insert(
        WATCHDOG,
        r#"{"interfaces": {"Ethernet1": {"txQueues": {"3": {"stuckCount": 115, "recoveryCount": 116}}}}}"#,
    );
    answers.insert(
        PFC,
        r#"{"interfaceCounters": {"Ethernet1": {"rxFrames": 117, "txFrames": 118}}}"#,
    );
    answers.insert(
        QUEUES,
        r#"{"egressQueueCounters": {"interfaces": {"Ethernet1": {"ucastQueues": {"trafficClasses": {"TC3": {"dropPrecedences":
            {"DP0": {"enqueuedPackets": 119, "enqueuedBytes": 120, "droppedPackets": 121, "droppedBytes": 122}}}}}}}}}"#,
    );
    let reading = super::super::recorded::reading_of(SwitchKind::Eos, &answers);
    assert_eq!(reading.problems, []);
    let expected: [(Counter, &[&str]); 16] = [
        (Counter::SwitchInterfaceReceivedBytes, &["Ethernet1 port 101"]),
        (Counter::SwitchInterfaceTransmittedBytes, &["Ethernet1 port 102"]),
        (
            Counter::SwitchInterfaceReceivedPackets,
            &[
                "Ethernet1 port unicast 103",
                "Ethernet1 port multicast 104",
                "Ethernet1 port broadcast 105",
            ],
        ),
        (
            Counter::SwitchInterfaceTransmittedPackets,
            &[
                "Ethernet1 port unicast 106",
                "Ethernet1 port multicast 107",
                "Ethernet1 port broadcast 108",
            ],
        ),
        (
            Counter::SwitchInterfaceDiscards,
            &["Ethernet1 port received 109", "Ethernet1 port transmitted 110"],
        ),
        (
            Counter::SwitchInterfaceErrors,
            &["Ethernet1 port received 111", "Ethernet1 port transmitted 112"],
        ),
        (Counter::SwitchPauseReceivedFrames, &["Ethernet1 port 113"]),
        (Counter::SwitchPauseTransmittedFrames, &["Ethernet1 port 114"]),
        (
            Counter::SwitchPauseEnabled,
            &["Ethernet1 port received 0", "Ethernet1 port transmitted 1"],
        ),
        (Counter::SwitchWatchdogShutdowns, &["Ethernet1 q3 port 115"]),
        (Counter::SwitchWatchdogRestores, &["Ethernet1 q3 port 116"]),
        (Counter::SwitchPfcReceivedFrames, &["Ethernet1 port 117"]),
        (Counter::SwitchPfcTransmittedFrames, &["Ethernet1 port 118"]),
        (
            Counter::SwitchQueueTransmittedBytes,
            &["Ethernet1 q3 port unicast 120"],
        ),
        (
            Counter::SwitchQueueDroppedPackets,
            &["Ethernet1 q3 port unicast 121"],
        ),
        (
            Counter::SwitchQueueDroppedBytes,
            &["Ethernet1 q3 port unicast 122"],
        ),
    ];
    for (counter, lines) in expected {
        check(&reading, counter, lines);
    }
}

#[test]
fn one_of_model_and_version_is_a_description() {
    for (document, expected) in [
        (r#"{"modelName": "DCS-7060"}"#, ("DCS-7060", "")),
        (r#"{"version": "4.31.2F"}"#, ("", "4.31.2F")),
    ] {
        let mut answers = Answers::default();
        answers.insert(VERSION, document);
        let about = super::super::recorded::reading_of(SwitchKind::Eos, &answers).description;
        assert_eq!((about.model.as_str(), about.version.as_str()), expected);
    }
}

/// Rows without the heading of their table are rows of another one; 8 is no priority.
#[test]
fn what_is_no_table_and_no_priority_has_no_number() {
    for (command, text) in [
        (PFC_TEXT, "Et1/1 5 7\n"),
        (QUEUES_TEXT, "Et1/1 UC3 1 2 3 4\n"),
        (DROPS_TEXT, "Et1/1 1 2 3\n"),
        // A row of another width.
        (QUEUES_TEXT, "Port\nEt1/1 UC3 1 2 3\n"),
    ] {
        let mut answers = Answers::default();
        answers.insert(command, text);
        let reading = super::super::recorded::reading_of(SwitchKind::Eos, &answers);
        assert_eq!(
            (reading.samples.len(), reading.problems.len()),
            (0, 1),
            "{command}"
        );
    }
    let mut answers = Answers::default();
    answers.insert(
        PFC_DETAIL,
        r#"{"interfaceCounters": {"Ethernet1": {"rxFrames": {"8": 5}, "txFrames": {"7": 6}}}}"#,
    );
    let reading = super::super::recorded::reading_of(SwitchKind::Eos, &answers);
    check(&reading, Counter::SwitchPriorityPfcReceivedFrames, &[]);
    check(
        &reading,
        Counter::SwitchPriorityPfcTransmittedFrames,
        &["Ethernet1 p7 port 6"],
    );
}

/// F.2, trap 20; and a table whose last line is cut.
#[test]
fn a_terminal_and_a_cut_line_change_no_number() {
    for command in [PFC_TEXT, QUEUES_TEXT, DROPS_TEXT] {
        let read = |text: &str| {
            let mut answers = Answers::default();
            answers.insert(command, text);
            super::super::recorded::reading_of(SwitchKind::Eos, &answers)
        };
        let text = fixture(FOLDER, command);
        let whole = read(&text);
        assert!(!whole.samples.is_empty(), "{command}");
        let dressed = format!(
            "\u{feff}Welcome\r\nleaf1#{command}\r\n\u{1b}[1m{}\u{1b}[0m--More--\r        \r\nleaf1#",
            text.replace('\n', "\r\n")
        );
        assert_eq!(read(&dressed).samples, whole.samples, "{command}");
        for end in 0..text.len() {
            for sample in read(&text[..end]).samples {
                assert!(
                    whole.samples.contains(&sample),
                    "{command} up to {end}: {sample:?}"
                );
            }
        }
        let reading = read(text.trim_end());
        assert_eq!(reading.problems.len(), 1, "{command}");
    }
    // A document behind a pager.
    let document = fixture(FOLDER, PFC).replacen('\n', "\r\n\u{1b}[7m--More--\u{1b}[0m\r         \r\n", 1);
    let mut answers = Answers::default();
    answers.insert(PFC, &format!("leaf1#{PFC}\r\n{document}leaf1#"));
    let reading = super::super::recorded::reading_of(SwitchKind::Eos, &answers);
    assert_eq!(reading.samples, read_all(SwitchKind::Eos, FOLDER, &[PFC]).samples);
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

/// Tables as the manual shows them (Ethernet ports, "show interfaces counters errors" and "discards"), with other numbers.
#[test]
fn pasted_tables_of_errors_and_discards_are_read() {
    let text = "leaf1#show interfaces counters errors\n\
        Port              FCS    Align   Symbol       Rx    Runts   Giants       Tx\n\
        Et1/1              12        0        3       15        0        0        2\n\
        leaf1#show interfaces counters discards\n\
        Port              InDiscards       OutDiscards\n------------ ---------------- -----------------\n\
        Et1/1                      4                 7\n";
    let pasted = crate::pasted::pasted(text, "leaf1").unwrap();
    let mut answers = Answers::default();
    for command in [ERRORS_TEXT, DISCARDS_TEXT] {
        answers.insert(command, &pasted.answers[&crate::device::file_name(command)]);
    }
    let reading = reading_of(SwitchKind::Eos, &answers);
    assert_eq!(reading.problems, []);
    let of = |counter, detail| {
        let mut all = reading.samples.iter().filter(|sample| sample.counter == counter);
        all.find(|sample| sample.details.iter().any(|one| one == detail))
            .map(|sample| (&*sample.object, sample.value))
    };
    let port = "Ethernet1/1";
    assert_eq!(of(Counter::SwitchInterfaceFcsErrors, "port"), Some((port, 12.0)));
    assert_eq!(of(Counter::SwitchInterfaceErrors, "received"), Some((port, 15.0)));
    assert_eq!(
        of(Counter::SwitchInterfaceErrors, "transmitted"),
        Some((port, 2.0))
    );
    assert_eq!(
        of(Counter::SwitchInterfaceDiscards, "received"),
        Some((port, 4.0))
    );
    assert_eq!(
        of(Counter::SwitchInterfaceDiscards, "transmitted"),
        Some((port, 7.0))
    );
}

/// After Arista's chips with virtual output queues (DCS-7280R, 7500R): each class has a virtual queue and one on egress.
#[test]
fn queues_of_classes_are_read() {
    let text = "Port      Class     EnqPkts     EnqOctets     DropPkts     DropOctets\n\
        --------- --------- ----------- ------------- ------------ ----------\n\
        Et12/1/1            TC3\n VOQ                 1200     900000     7    5250\n Egress queue        1190     892500     2    1500\n\
        Et12/1/2            TC0     50     4000     1     80\n";
    let document = r#"{"ingressVoqCounters": {"interfaces": {"Ethernet12/1/1": {"trafficClasses": {"TC3": {
        "enqueuedPackets": 1200, "enqueuedBytes": 900000, "droppedPackets": 7, "droppedBytes": 5250}}}}}}"#;
    let mut answers = Answers::default();
    answers.insert(DROPS_TEXT, text);
    let reading = super::super::recorded::reading_of(SwitchKind::Eos, &answers);
    check(
        &reading,
        Counter::SwitchQueueDroppedPackets,
        &["Ethernet12/1/1 q3 port all 9", "Ethernet12/1/2 q0 port all 1"],
    );
    check(
        &reading,
        Counter::SwitchQueueTransmittedPackets,
        &["Ethernet12/1/1 q3 port all 1190", "Ethernet12/1/2 q0 port all 50"],
    );
    let mut answers = Answers::default();
    answers.insert("show interfaces counters queue | json", document);
    let reading = super::super::recorded::reading_of(SwitchKind::Eos, &answers);
    check(
        &reading,
        Counter::SwitchQueueDroppedPackets,
        &["Ethernet12/1/1 q3 port all 7"],
    );
    // Either table may stand behind either command.
    let mut answers = Answers::default();
    answers.insert(DROPS_TEXT, &fixture(FOLDER, QUEUES_TEXT));
    let reading = super::super::recorded::reading_of(SwitchKind::Eos, &answers);
    assert!(samples(&reading, Counter::SwitchQueueDroppedPackets).contains("Ethernet1/1 q3 port unicast 4"));
}

/// After the EOS manual, Data Center Bridging: the older form, and that of 4.22 and later.
#[test]
fn priorities_with_pfc_are_read() {
    for text in [
        "The hardware supports PFC on priorities 0 1 2 3 4 5 6 7\nGlobal PFC : Enabled\n\nPort   Enabled  Priorities  Active  Note\n\
         Et1/1  Yes      3 4         Yes     DCBX disabled\nEt1/2  No                   No\n",
        "E: PFC Enabled, D: PFC Disabled, A: PFC Active, W: PFC Watchdog Enabled\nPort   Status Priorities Action  Timeout Recovery\n\
         Et1/1  E A W  3,4        drop    0.2     - / -\nEt1/2  D - -\n",
    ] {
        let mut answers = Answers::default();
        answers.insert(ENABLED_TEXT, text);
        let reading = super::super::recorded::reading_of(SwitchKind::Eos, &answers);
        let on: Vec<_> = samples(&reading, Counter::SwitchPfcEnabled)
            .into_iter()
            .filter(|line| line.ends_with(" 1"))
            .collect();
        assert_eq!(on, ["Ethernet1/1 p3 port 1", "Ethernet1/1 p4 port 1"], "{text}");
        assert_eq!(reading.of(Counter::SwitchPfcEnabled).count(), 16);
    }
}
