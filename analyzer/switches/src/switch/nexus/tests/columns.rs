//! Columns beside each other with numbers that differ: a parser that takes the neighbour's column is found here. The forms are those of
//! the fixtures; the numbers are made so that each one says where it belongs.

use serde_json::json;

use super::*;

const FLOWCONTROL: &str = "show interface flowcontrol";

/// Samples of a counter as `object priority queue details value`; `-`: none.
fn lines(reading: &Reading, counter: Counter) -> Vec<String> {
    let line = |sample: &Sample| {
        let (_, object, priority, queue, details) = key(sample);
        let priority = priority.map_or_else(|| "-".to_owned(), |priority| priority.to_string());
        let queue = queue.unwrap_or_else(|| "-".to_owned());
        format!(
            "{object} {priority} {queue} {} {}",
            details.join(","),
            sample.value
        )
    };
    reading.of(counter).map(line).collect()
}

#[track_caller]
fn check(reading: &Reading, counter: Counter, expected: &[&str]) {
    assert_eq!(lines(reading, counter), expected, "{}", counter.name());
}

/// The state in operation counts, not the wanted one, and the switch's "send" is the transmitted direction.
#[test]
fn flow_control_is_the_state_in_operation() {
    let text = "\
--------------------------------------------------------------------------------
Port         Send FlowControl  Receive FlowControl  RxPause TxPause
             admin    oper     admin    oper
--------------------------------------------------------------------------------
Eth1/1/1     desired  on       desired  off          1       22787490
Eth1/1/2     on       off      off      on           7       8
";
    // Unverified names of the JSON's keys.
    let row = |name: &str, send: &str, receive: &str, received: &str, sent: &str| json!({"interface": name, "send-oper": send, "receive-oper": receive, "rx-pause": received, "tx-pause": sent});
    let rows = [
        row("Ethernet1/1/1", "on", "off", "1", "22,787,490"),
        row("Ethernet1/1/2", "off", "on", "7", "8"),
    ];
    let document = json!({"TABLE_flowcontrol": {"ROW_flowcontrol": rows}}).to_string();
    for answer in [text, &document] {
        let reading = read_one(FLOWCONTROL, answer);
        check(
            &reading,
            Counter::SwitchPauseEnabled,
            &[
                "Ethernet1/1/1 - - port,received 0",
                "Ethernet1/1/1 - - port,transmitted 1",
                "Ethernet1/1/2 - - port,received 1",
                "Ethernet1/1/2 - - port,transmitted 0",
            ],
        );
        check(
            &reading,
            Counter::SwitchPauseReceivedFrames,
            &["Ethernet1/1/1 - - port 1", "Ethernet1/1/2 - - port 7"],
        );
        check(
            &reading,
            Counter::SwitchPauseTransmittedFrames,
            &["Ethernet1/1/1 - - port 22787490", "Ethernet1/1/2 - - port 8"],
        );
        // 802.3x is nowhere called PFC.
        check(&reading, Counter::SwitchPfcReceivedFrames, &[]);
    }
}

#[test]
fn a_port_where_pfc_is_off_has_it_on_no_priority() {
    let command = "show interface priority-flow-control detail";
    let text = fixture("nexus-cloud-scale", command, "txt").unwrap();
    let off = text.replace("Oper Mode: On", "Oper Mode: Off");
    assert_ne!(text, off);
    let reading = read_one(command, &off);
    assert!(reading.of(Counter::SwitchPfcEnabled).count() >= 16);
    assert!(enabled(&reading, "Ethernet1/50").is_empty());
    assert!(enabled(&reading, "Ethernet1/51").is_empty());
}

#[test]
fn directions_of_the_documents_detail_stay_apart() {
    // Unverified names of keys.
    let row = json!({"if_name_str": "Ethernet1/51", "oper": "On (20)", "rx-stats": "12", "tx-stats": "150",
        "rx-prio5": "12", "tx-prio5": "150"});
    let document =
        json!({"TABLE_module": {"ROW_module": {"TABLE_pfc_interface": {"ROW_pfc_interface": row}}}});
    let reading = read_one(
        "show interface priority-flow-control detail",
        &document.to_string(),
    );
    check(
        &reading,
        Counter::SwitchPriorityPfcReceivedFrames,
        &["Ethernet1/51 5 - port 12"],
    );
    check(
        &reading,
        Counter::SwitchPriorityPfcTransmittedFrames,
        &["Ethernet1/51 5 - port 150"],
    );
    assert_eq!(reading.problems, []);
}

/// B.33.2: of the first generation the sum is unicast, out-of-band flow control and multicast.
#[test]
fn out_of_band_unicast_is_part_of_the_queue() {
    let text = "\
Egress Queuing for Ethernet1/1/2 [System]
|                              QOS GROUP 3                          |
|                |  Unicast       | OOBFC Unicast  |  Multicast     |
|        Tx Pkts |             100|              20|               3|
|   Q Depth Byts |            1000|             200|              30|
";
    let entry = |kind: &str, unit: &str, values: [u32; 3]| {
        json!({"eq-stat-type": kind, "eq-stat-units": unit, "eq-uc-stat-value": values[0].to_string(),
            "eq-oobfc-uc-stat-value": values[1].to_string(), "eq-mc-stat-value": values[2].to_string()})
    };
    let entries = [
        entry("Tx", "Pkts", [100, 20, 3]),
        entry("Q Depth", "Byts", [1000, 200, 30]),
    ];
    let group = json!({"eq-qosgrp": "3", "TABLE_qosgrp_egress_stats_entry": {"ROW_qosgrp_egress_stats_entry": entries}});
    let row = json!({"dir": "Egress", "if_name_str": "Ethernet1/1/2",
        "TABLE_qosgrp_egress_stats": {"ROW_qosgrp_egress_stats": group}});
    let document =
        json!({"TABLE_module": {"ROW_module": {"TABLE_queuing_interface": {"ROW_queuing_interface": row}}}});
    for answer in [text, &document.to_string()] {
        let reading = read_one("show queuing interface", answer);
        check(
            &reading,
            Counter::SwitchQueueTransmittedPackets,
            &[
                "Ethernet1/1/2 - 3 port,unicast 100",
                "Ethernet1/1/2 - 3 port,oobfc 20",
                "Ethernet1/1/2 - 3 port,multicast 3",
            ],
        );
        // 1,000 + 200 + 30.
        check(
            &reading,
            Counter::SwitchQueueDepth,
            &["Ethernet1/1/2 - 3 port 1230"],
        );
    }
}

/// The heading of the table says which count comes first.
#[test]
fn pfc_counts_are_in_the_order_of_their_heading() {
    for (heading, received, sent) in [
        (
            "COS QOS Group        PG   TxPause   TxCount         RxPause         RxCount",
            22,
            11,
        ),
        (
            "COS QOS Group        PG   RxPause   RxCount         TxPause         TxCount",
            11,
            22,
        ),
    ] {
        let text = format!(
            "Ingress Queuing for Ethernet1/1/2\n\nPFC Statistics\n----\nTxPPP: {sent},   RxPPP: {received}\n----\n{heading}\n   \
             3         3         0  Inactive         11        Inactive               22\n"
        );
        let reading = read_one("show queuing interface", &text);
        let expected = [received, sent].map(|count| format!("Ethernet1/1/2 3 - port {count}"));
        for (counter, expected) in [
            Counter::SwitchPriorityPfcReceivedFrames,
            Counter::SwitchPriorityPfcTransmittedFrames,
        ]
        .into_iter()
        .zip(&expected)
        {
            check(&reading, counter, &[expected]);
        }
        assert_eq!(reading.problems, [], "{heading}");
    }
}

#[test]
fn a_block_that_is_repeated_counts_once_and_the_first_one_counts() {
    let block = |sent: u32| format!("Egress Queuing for Ethernet1/1/2 [System]\nTxPPP: {sent},   RxPPP: 0\n");
    let reading = read_one("show queuing interface", &format!("{}{}", block(5), block(9)));
    check(
        &reading,
        Counter::SwitchPfcTransmittedFrames,
        &["Ethernet1/1/2 - - port 5"],
    );
}

#[test]
fn one_interface_with_a_watchdog_is_one() {
    let watchdog = |statuses: [&str; 2]| {
        let [first, second] = statuses;
        let text = format!(
            "Ethernet1/1 Interface PFC watchdog: [{first}]\nEthernet1/2 Interface PFC watchdog: [{second}]\n"
        );
        read_one("show queuing pfc-queue detail", &text).has_watchdog
    };
    assert_eq!(watchdog(["Enabled", "Not Enabled"]), Some(true));
    assert_eq!(watchdog(["Not Enabled", "Enabled"]), Some(true));
    assert_eq!(watchdog(["Not Enabled", "Disabled"]), Some(false));
    // The state of all interfaces alone.
    for (status, has_watchdog) in [("Enabled", true), ("Not Enabled", false)] {
        let text = format!("Global watch-dog interval [{status}]\nForced Global watch-dog [Not Enabled]\n");
        let reading = read_one("show queuing pfc-queue detail", &text);
        assert_eq!(
            (reading.has_watchdog, reading.problems.len()),
            (Some(has_watchdog), 0)
        );
    }
}

/// The heading of the second interface is lost: its queues are not the first one's.
#[test]
fn queues_behind_a_lost_heading_belong_to_nobody() {
    let block = |heading: &str, queue: u8, shutdowns: u8| {
        format!(
            "{heading}Disable-action                     : No\n| QOS GROUP {queue} [Active] PFC [YES] PFC-COS [{queue}]\n\
             |                       Shutdown|                   {shutdowns}|\n"
        )
    };
    let first = "Ethernet1/1 Interface PFC watchdog: [Enabled]\n";
    let text = format!("{}{}", block(first, 3, 2), block("", 5, 7));
    let reading = read_one("show queuing pfc-queue detail", &text);
    check(
        &reading,
        Counter::SwitchWatchdogShutdowns,
        &["Ethernet1/1 - 3 port 2"],
    );
    assert!(reading.stormed_queues.is_empty());
    let shut = block(first, 3, 2).replace("[Active]", "[Shutdown]");
    let reading = read_one("show queuing pfc-queue detail", &shut);
    let stormed: Vec<(String, String)> = reading.stormed_queues.into_iter().collect();
    assert_eq!(stormed, [("Ethernet1/1".to_owned(), "3".to_owned())]);
}

#[test]
fn a_policy_for_input_is_no_queue_of_output() {
    let policy = |direction: &str| {
        let class = json!({"cmap-name": "c-in-q3", "TABLE_action": {"ROW_action": {"prio-level": "1"}}});
        let map = json!({"in-or-out": direction, "TABLE_cmap": {"ROW_cmap": class}});
        let document = json!({"TABLE_pmap": {"ROW_pmap": map}});
        read_one(POLICIES[0], &document.to_string()).classes.len()
    };
    assert_eq!((policy("input"), policy("output")), (0, 1));
}

/// The system's policy applies to ports without one of their own, as a whole.
#[test]
fn a_port_has_one_policy() {
    let class = |queue: u8, bytes: u32| {
        format!(
            "    Class-map (queuing):   c-out-8q-q{queue} (match-any)\n      random-detect minimum-threshold {bytes} bytes \
             maximum-threshold {} bytes drop-probability 7 weight 0 ecn\n",
            2 * bytes
        )
    };
    let head = "  Service-policy (queuing) output:   P\n\n";
    let mut answers = Answers::default();
    answers.insert(PFC, "Ethernet1/1/2 On On (8) 0 0\nEthernet1/1/3 On On (8) 0 0\n");
    answers.insert(
        POLICIES[1],
        &format!("Ethernet1/1/2\n\n{head}{}", class(3, 1_000)),
    );
    answers.insert(
        POLICIES[0],
        &format!("{head}{}{}", class(3, 3_000), class(5, 5_000)),
    );
    let reading = read_all(&answers);
    check(
        &reading,
        Counter::SwitchEcnThreshold,
        &[
            "Ethernet1/1/2 - 3 port,min 1000",
            "Ethernet1/1/2 - 3 port,max 2000",
            "Ethernet1/1/3 - 3 port,min 3000",
            "Ethernet1/1/3 - 3 port,max 6000",
            "Ethernet1/1/3 - 5 port,min 5000",
            "Ethernet1/1/3 - 5 port,max 10000",
        ],
    );
}

/// A repeated heading of a queue, or one that is lost, gives no number to another queue.
#[test]
fn rows_of_another_form_belong_to_no_queue() {
    let text = "\
Egress Queuing for Ethernet1/1/2 [System]
|                              QOS GROUP 3                          |
|                |  Unicast       | OOBFC Unicast  |  Multicast     |
|        Tx Pkts |             100|              20|               3|
|        Tx Pkts |           77120|   Dropped Pkts |               9|
|                |  Unicast       | OOBFC Unicast  |  Multicast     |
|        Tx Byts |             100|              20|               3|
";
    let reading = read_one("show queuing interface", text);
    assert_eq!(reading.samples.len(), 3);
    assert!(lines(&reading, Counter::SwitchQueueDroppedPackets).is_empty());
}

/// One unknown value by cast makes no sum of the others.
#[test]
fn a_sum_needs_all_of_its_parts() {
    let text = "\
Egress Queuing for Ethernet1/51 [System]
|                      QOS GROUP 3                                  |
|                           |  Unicast       |Multicast     |
|                  ECN Pkts |             N/A|             5|
|              Q Depth Byts |             700|             0|
";
    let reading = read_one("show queuing interface", text);
    check(&reading, Counter::SwitchQueueEcnMarkedPackets, &[]);
    check(
        &reading,
        Counter::SwitchQueueDepth,
        &["Ethernet1/51 - 3 port 700"],
    );
}

#[test]
fn a_page_in_place_of_an_answer_is_said_to_be_one() {
    let reading = read_one(PFC, "<html><head><title>502 Bad Gateway</title></head></html>\n");
    assert!(
        reading.problems[0].text.contains("HTML"),
        "{:?}",
        reading.problems
    );
}

/// A row that lacks a cell says nothing: its numbers may be those of other columns.
#[test]
fn a_row_of_another_width_has_no_number() {
    let text = "\
--------------------------------------------------------------------------------
Port                                     InOctets                      InUcastPkts
--------------------------------------------------------------------------------
Eth1/1/1                                                                        7
Eth1/1/2                                        5                               6
";
    let reading = read_one("show interface counters", text);
    check(
        &reading,
        Counter::SwitchInterfaceReceivedBytes,
        &["Ethernet1/1/2 - - port 5"],
    );
    check(
        &reading,
        Counter::SwitchInterfaceReceivedPackets,
        &["Ethernet1/1/2 - - port,unicast 6"],
    );
}

#[test]
fn a_port_without_a_link_has_no_rate() {
    let row = |name: &str, state: &str| json!({"interface": name, "state": state, "speed": "40G"});
    let rows = [row("Ethernet1/1", "connected"), row("Ethernet1/2", "notconnect")];
    let reading = read_one(
        "show interface status",
        &json!({"TABLE_interface": {"ROW_interface": rows}}).to_string(),
    );
    check(
        &reading,
        Counter::SwitchInterfaceUp,
        &["Ethernet1/1 - - port 1", "Ethernet1/2 - - port 0"],
    );
    // 40 Gbit/s.
    check(
        &reading,
        Counter::SwitchInterfaceRate,
        &["Ethernet1/1 - - port 5000000000"],
    );
}
