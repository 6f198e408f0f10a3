//! Each statistic of SAI with a number of its own, and the counter that the design and SAI's headers (`saiport.h`, `saiqueue.h`) say it is;
//! settings in which names and numbers differ from the usual ones.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

fn hash(fields: impl IntoIterator<Item = (&'static str, String)>) -> Value {
    let fields: BTreeMap<&str, String> = fields.into_iter().collect();
    json!({"type": "hash", "value": fields})
}

fn counted(counters: &Value) -> Reading {
    let of = |name, oid: &str| hash([(name, oid.to_owned())]);
    let maps = json!({
        "COUNTERS_PORT_NAME_MAP": of("Ethernet0", "oid:0x1"),
        "COUNTERS_QUEUE_NAME_MAP": of("Ethernet0:3", "oid:0x2"),
        "COUNTERS_QUEUE_TYPE_MAP": of("oid:0x2", "SAI_QUEUE_TYPE_UNICAST"),
        "COUNTERS_QUEUE_INDEX_MAP": of("oid:0x2", "3"),
        "COUNTERS_PG_NAME_MAP": of("Ethernet0:4", "oid:0x3"),
    });
    let mut answers = Answers::default();
    answers.insert(MAPS, &maps.to_string());
    answers.insert(COUNTERS, &counters.to_string());
    let reading = reading_of(&answers);
    assert_eq!(reading.problems, []);
    reading
}

/// Statistic, its number, its counter, and the place with the value.
type Field = (&'static str, u64, Counter, &'static str);

const PORT: [Field; 20] = [
    (
        "IF_IN_OCTETS",
        101,
        Counter::SwitchInterfaceReceivedBytes,
        "port 101",
    ),
    (
        "IF_OUT_OCTETS",
        102,
        Counter::SwitchInterfaceTransmittedBytes,
        "port 102",
    ),
    (
        "IF_IN_UCAST_PKTS",
        103,
        Counter::SwitchInterfaceReceivedPackets,
        "port unicast 103",
    ),
    (
        "IF_IN_MULTICAST_PKTS",
        104,
        Counter::SwitchInterfaceReceivedPackets,
        "port multicast 104",
    ),
    (
        "IF_IN_BROADCAST_PKTS",
        105,
        Counter::SwitchInterfaceReceivedPackets,
        "port broadcast 105",
    ),
    (
        "IF_OUT_UCAST_PKTS",
        106,
        Counter::SwitchInterfaceTransmittedPackets,
        "port unicast 106",
    ),
    (
        "IF_OUT_MULTICAST_PKTS",
        107,
        Counter::SwitchInterfaceTransmittedPackets,
        "port multicast 107",
    ),
    (
        "IF_OUT_BROADCAST_PKTS",
        108,
        Counter::SwitchInterfaceTransmittedPackets,
        "port broadcast 108",
    ),
    (
        "IF_IN_DISCARDS",
        109,
        Counter::SwitchInterfaceDiscards,
        "port received 109",
    ),
    (
        "IF_OUT_DISCARDS",
        110,
        Counter::SwitchInterfaceDiscards,
        "port transmitted 110",
    ),
    (
        "IF_IN_ERRORS",
        111,
        Counter::SwitchInterfaceErrors,
        "port received 111",
    ),
    (
        "IF_OUT_ERRORS",
        112,
        Counter::SwitchInterfaceErrors,
        "port transmitted 112",
    ),
    (
        "PAUSE_RX_PKTS",
        113,
        Counter::SwitchPauseReceivedFrames,
        "port 113",
    ),
    (
        "PAUSE_TX_PKTS",
        114,
        Counter::SwitchPauseTransmittedFrames,
        "port 114",
    ),
    (
        "PFC_0_RX_PKTS",
        115,
        Counter::SwitchPriorityPfcReceivedFrames,
        "p0 port 115",
    ),
    (
        "PFC_7_RX_PKTS",
        116,
        Counter::SwitchPriorityPfcReceivedFrames,
        "p7 port 116",
    ),
    (
        "PFC_0_TX_PKTS",
        117,
        Counter::SwitchPriorityPfcTransmittedFrames,
        "p0 port 117",
    ),
    (
        "PFC_7_TX_PKTS",
        118,
        Counter::SwitchPriorityPfcTransmittedFrames,
        "p7 port 118",
    ),
    // 500,000 us.
    (
        "PFC_7_RX_PAUSE_DURATION_US",
        500_000,
        Counter::SwitchPriorityPfcReceivePausedSeconds,
        "p7 port 0.5",
    ),
    (
        "PFC_7_ON2OFF_RX_PKTS",
        120,
        Counter::SwitchPriorityPfcTransitions,
        "p7 port 120",
    ),
];

const QUEUE: [Field; 9] = [
    (
        "SAI_QUEUE_STAT_PACKETS",
        201,
        Counter::SwitchQueueTransmittedPackets,
        "q3 port unicast 201",
    ),
    (
        "SAI_QUEUE_STAT_BYTES",
        202,
        Counter::SwitchQueueTransmittedBytes,
        "q3 port unicast 202",
    ),
    (
        "SAI_QUEUE_STAT_DROPPED_PACKETS",
        203,
        Counter::SwitchQueueDroppedPackets,
        "q3 port unicast 203",
    ),
    (
        "SAI_QUEUE_STAT_DROPPED_BYTES",
        204,
        Counter::SwitchQueueDroppedBytes,
        "q3 port unicast 204",
    ),
    (
        "SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS",
        205,
        Counter::SwitchQueueEcnMarkedPackets,
        "q3 port 205",
    ),
    (
        "SAI_QUEUE_STAT_WRED_ECN_MARKED_BYTES",
        206,
        Counter::SwitchQueueEcnMarkedBytes,
        "q3 port 206",
    ),
    (
        "SAI_QUEUE_STAT_WRED_DROPPED_PACKETS",
        207,
        Counter::SwitchQueueWredDroppedPackets,
        "q3 port any 207",
    ),
    (
        "SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES",
        208,
        Counter::SwitchQueueDepth,
        "q3 port 208",
    ),
    (
        "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES",
        209,
        Counter::SwitchQueuePeak,
        "q3 port 209",
    ),
];

const GROUP: [Field; 2] = [
    (
        "SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS",
        301,
        Counter::SwitchPriorityGroupDroppedPackets,
        "q4 port 301",
    ),
    (
        "SAI_INGRESS_PRIORITY_GROUP_STAT_XOFF_ROOM_WATERMARK_BYTES",
        302,
        Counter::SwitchPriorityGroupHeadroomPeak,
        "q4 port 302",
    ),
];

#[test]
fn every_statistic_has_its_counter() {
    let port: BTreeMap<String, String> = PORT
        .iter()
        .map(|(name, value, ..)| (format!("SAI_PORT_STAT_{name}"), value.to_string()))
        .collect();
    let fields = |all: &[Field]| hash(all.iter().map(|(name, value, ..)| (*name, value.to_string())));
    let reading = counted(&json!({
        "COUNTERS:oid:0x1": {"type": "hash", "value": port},
        "COUNTERS:oid:0x2": fields(&QUEUE),
        "COUNTERS:oid:0x3": fields(&GROUP),
    }));
    let mut expected: BTreeMap<Counter, Vec<String>> = BTreeMap::new();
    for (_, _, counter, place) in PORT.iter().chain(&QUEUE).chain(&GROUP) {
        let line = format!("Ethernet0 {place}");
        expected.entry(*counter).or_default().push(line);
    }
    // The totals of a switch that counts by priority alone: 115 + 116 and 117 + 118.
    for (counter, total) in [
        (Counter::SwitchPfcReceivedFrames, 231),
        (Counter::SwitchPfcTransmittedFrames, 235),
    ] {
        expected.insert(counter, vec![format!("Ethernet0 port {total}")]);
    }
    assert_eq!(
        reading.samples.len(),
        expected.values().map(Vec::len).sum::<usize>()
    );
    for (counter, lines) in expected {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        check(&reading, counter, &lines);
    }
}

/// A chip without a statistic has `N/A` or no field: neither is 0, and neither is a part of a sum.
#[test]
fn what_the_chip_does_not_count_is_absent() {
    let port = hash([
        ("SAI_PORT_STAT_PFC_3_RX_PKTS", "N/A".to_owned()),
        ("SAI_PORT_STAT_PFC_4_RX_PKTS", "5".to_owned()),
        ("SAI_PORT_STAT_IF_IN_DISCARDS", String::new()),
    ]);
    let reading = counted(&json!({ "COUNTERS:oid:0x1": port }));
    check(
        &reading,
        Counter::SwitchPriorityPfcReceivedFrames,
        &["Ethernet0 p4 port 5"],
    );
    check(&reading, Counter::SwitchPfcReceivedFrames, &["Ethernet0 port 5"]);
    assert_eq!(reading.samples.len(), 2);
}

fn configured(tables: &[(&str, Value)]) -> Reading {
    let mut answers = Answers::default();
    let config: BTreeMap<&str, &Value> = tables.iter().map(|(key, value)| (*key, value)).collect();
    answers.insert(SETTINGS[0], &json!(config).to_string());
    reading_of(&answers)
}

fn texts<const N: usize>(fields: [(&'static str, &str); N]) -> Value {
    hash(fields.map(|(name, value)| (name, value.to_owned())))
}

#[test]
fn a_map_says_which_queue_a_priority_pauses() {
    let reading = configured(&[
        (
            "PORT_QOS_MAP|Ethernet0",
            // The form of a reference before 2022.
            texts([
                ("pfc_enable", "3,4"),
                ("pfc_to_queue_map", "[MAP_PFC_PRIORITY_TO_QUEUE|ROCE]"),
            ]),
        ),
        ("MAP_PFC_PRIORITY_TO_QUEUE|ROCE", texts([("3", "5"), ("4", "4")])),
    ]);
    let on = |counter| -> Vec<String> {
        let all = samples(&reading, counter).into_iter();
        all.filter(|line| line.ends_with(" 1")).collect()
    };
    assert_eq!(
        on(Counter::SwitchPfcEnabled),
        ["Ethernet0 p3 port 1", "Ethernet0 p4 port 1"]
    );
    assert_eq!(
        on(Counter::SwitchQueueNoDrop),
        ["Ethernet0 q4 port 1", "Ethernet0 q5 port 1"]
    );
}

#[test]
fn the_queue_of_a_dscp_is_that_of_its_traffic_class() {
    let port = |dscps, classes| texts([("dscp_to_tc_map", dscps), ("tc_to_queue_map", classes)]);
    let reading = configured(&[
        ("PORT_QOS_MAP|Ethernet0", port("A", "A")),
        ("PORT_QOS_MAP|Ethernet4", port("B", "A")),
        ("DSCP_TO_TC_MAP|A", texts([("26", "3"), ("0", "0"), ("8", "1")])),
        ("DSCP_TO_TC_MAP|B", texts([("26", "3"), ("0", "2"), ("64", "1")])),
        (
            "TC_TO_QUEUE_MAP|A",
            texts([("3", "5"), ("0", "0"), ("1", "6"), ("2", "2")]),
        ),
    ]);
    let queues: Vec<(u8, &str)> = reading
        .queue_of_dscp
        .iter()
        .map(|(dscp, queue)| (*dscp, queue.as_str()))
        .collect();
    // DSCP 0 reaches the queues 0 and 2 of different ports, and 64 is no DSCP.
    assert_eq!(queues, [(8, "6"), (26, "5")]);
}

#[test]
fn thresholds_of_a_queue_that_drops_are_none_of_marking() {
    let queue = |ecn: &str| {
        let wred = texts([
            ("ecn", ecn),
            ("green_min_threshold", "1000"),
            ("green_max_threshold", "2000"),
        ]);
        let reading = configured(&[
            ("QUEUE|Ethernet0|3", texts([("wred_profile", "ROCE")])),
            ("WRED_PROFILE|ROCE", wred),
        ]);
        (
            reading.classes[0].has_ecn,
            samples(&reading, Counter::SwitchEcnThreshold),
        )
    };
    let both = ["Ethernet0 q3 port max 2000", "Ethernet0 q3 port min 1000"];
    let both: BTreeSet<String> = both.map(str::to_owned).into();
    for ecn in ["ecn_all", "ecn_green", "ecn_green_yellow"] {
        assert_eq!(queue(ecn), (true, both.clone()), "{ecn}");
    }
    for ecn in ["ecn_none", "ecn_red", ""] {
        assert_eq!(queue(ecn), (false, BTreeSet::new()), "{ecn}");
    }
}

#[test]
fn the_watchdogs_interval_alone_watches_no_port() {
    let watchdog = |key: &str| {
        let mut answers = Answers::default();
        let table = json!({key: texts([("POLL_INTERVAL", "200")])});
        answers.insert(WATCHDOG, &table.to_string());
        reading_of(&answers).has_watchdog
    };
    assert_eq!(watchdog("PFC_WD|GLOBAL"), Some(false));
    assert_eq!(watchdog("PFC_WD|Ethernet0"), Some(true));
}

/// F.2, trap 20: a byte order mark, CR LF, a prompt, colours, a pager.
#[test]
fn a_terminal_changes_no_number() {
    for command in TABLES {
        let plain = fixture(FOLDER, command);
        let lines: Vec<&str> = plain.lines().collect();
        let (first, second) = lines.split_at(lines.len() - 1);
        let dressed = format!(
            "\u{feff}Debian GNU/Linux 12\r\nadmin@leaf1:~$ {command}\r\n\u{1b}[1m{}\u{1b}[0m\r\n--More--\r        \r{}\r\nadmin@leaf1:~$ ",
            first.join("\r\n"),
            second.join("\r\n")
        );
        let read = |text: &str| {
            let mut answers = Answers::default();
            answers.insert(command, text);
            reading_of(&answers)
        };
        let (plain, dressed) = (read(&plain), read(&dressed));
        assert!(!plain.samples.is_empty(), "{command}");
        assert_eq!(
            (dressed.samples, dressed.problems),
            (plain.samples, vec![]),
            "{command}"
        );
    }
}

/// A table whose last line is cut inside of a number has no such number, and says so.
#[test]
fn a_number_that_is_cut_is_not_a_number() {
    for command in TABLES {
        let text = fixture(FOLDER, command);
        let read = |text: &str| {
            let mut answers = Answers::default();
            answers.insert(command, text);
            reading_of(&answers)
        };
        let key = |sample: &roce_model::Sample| {
            (
                sample.counter,
                sample.object.clone(),
                sample.priority,
                sample.queue.clone(),
                sample.details.clone(),
            )
        };
        let whole: BTreeMap<_, f64> = read(&text)
            .samples
            .iter()
            .map(|sample| (key(sample), sample.value))
            .collect();
        for end in 0..text.len() {
            let reading = read(&text[..end]);
            for sample in &reading.samples {
                // A total over a table that lacks its second half is that of the first.
                assert_eq!(
                    whole.get(&key(sample)),
                    Some(&sample.value),
                    "{command} up to {end}"
                );
            }
        }
        let reading = read(text.trim_end());
        assert_eq!(reading.problems.len(), 1, "{command}");
        assert_eq!(reading.problems[0].reason, Reason::Parse);
    }
}

#[test]
fn what_a_switch_does_not_know_of_itself_is_empty() {
    let mut answers = Answers::default();
    answers.insert(
        VERSION,
        "SONiC Software Version: SONiC.202405\nHwSKU: \nSerial Number: N/A\n",
    );
    let about = reading_of(&answers).description;
    assert_eq!(
        (
            about.version.as_str(),
            about.model.as_str(),
            about.serial.as_str()
        ),
        ("SONiC.202405", "", "")
    );
}
