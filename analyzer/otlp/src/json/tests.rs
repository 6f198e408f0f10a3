//! Requests as text.

use super::*;
use roce_model::{Counter, Time};

fn read(text: &str) -> (Vec<Sample>, Translator) {
    let (mut samples, mut translator) = (Vec::new(), Translator::new(None));
    read_json(text.as_bytes(), &mut translator, &mut samples).unwrap();
    (samples, translator)
}

/// A request with one gauge of one point.
fn gauge(name: &str, unit: &str, attributes: &[(&str, &str)], value: &str) -> String {
    let pair =
        |(key, text): &(&str, &str)| format!(r#"{{"key":"{key}","value":{{"stringValue":"{text}"}}}}"#);
    let attributes: Vec<String> = attributes.iter().map(pair).collect();
    format!(
        r#"{{"resourceMetrics":[{{"resource":{{"attributes":[{{"key":"host.name","value":{{"stringValue":"leaf1"}}}}]}},
        "scopeMetrics":[{{"metrics":[{{"name":"{name}","unit":"{unit}","gauge":{{"dataPoints":[
        {{"attributes":[{}],"timeUnixNano":"1722458205491000000","asDouble":{value}}}]}}}}]}}]}}]}}"#,
        attributes.join(",")
    )
}

/// Object, counter, priority, queue, labels and value of the only sample of a gauge.
fn one(name: &str, unit: &str, attributes: &[(&str, &str)], value: &str) -> Option<String> {
    let (samples, _) = read(&gauge(name, unit, attributes, value));
    let sample = samples.first()?;
    Some(format!(
        "{} {} {:?} {:?} {} {}",
        sample.object,
        sample.counter.name(),
        sample.priority,
        sample.queue,
        sample.details.join(","),
        sample.value
    ))
}

#[test]
fn the_example_of_cumulus_linux_is_a_count() {
    // The example of NVIDIA's manual, "Interface Statistic Format": a gauge, although it is a count.
    let text = r#"{"resourceMetrics":[{"resource":{"attributes":[{"key":"net.host.name","value":{"stringValue":"leaf01"}}]},
      "scopeMetrics":[{"scope":{},"metrics":[{"name":"nvswitch_interface_dot3_stats_fcs_errors",
      "description":"NVIDIA Ethernet Switch Interface dot3 stats fcs errors counter","gauge":{"dataPoints":[
      {"attributes":[{"key":"interface","value":{"stringValue":"swp1"}}],"timeUnixNano":"1722458205491000000","asDouble":7}]}}]}]}]}"#;
    let (samples, translator) = read(text);
    let [sample] = samples.as_slice() else {
        panic!("{samples:?}")
    };
    assert_eq!((&*sample.node, &*sample.object), ("leaf01", "swp1"));
    assert_eq!(sample.counter, Counter::SwitchInterfaceFcsErrors);
    assert_eq!(sample.counter.kind().name(), "cumulative");
    assert_eq!(
        (sample.time, sample.value),
        (Time(1_722_458_205_491_000_000), 7.0)
    );
    assert_eq!(translator.tally().text(), None);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of names")]
fn names_have_their_place_and_unit() {
    let swp1 = ("interface", "swp1");
    let found = |name, unit, attributes: &[(&str, &str)], value| {
        one(name, unit, attributes, value).unwrap_or_default()
    };
    for (name, unit, attributes, value, expected) in [
        // A count of octets; a rate in bits: 400 Gbit/s are 5e10 bytes/s. A bitmap: 1 is up, 2 is down.
        (
            "nvswitch_interface_if_in_octets",
            "",
            vec![swp1],
            "10",
            "swp1 switch_interface_received_bytes None None port 10",
        ),
        (
            "nvswitch_interface_oper_aggregate_speed",
            "",
            vec![swp1],
            "4e11",
            "swp1 switch_interface_rate_bytes_per_second None None port 50000000000",
        ),
        (
            "nvswitch_interface_oper_state",
            "",
            vec![swp1],
            "1",
            "swp1 switch_interface_up None None port 1",
        ),
        (
            "nvswitch_interface_oper_state",
            "",
            vec![swp1],
            "2",
            "swp1 switch_interface_up None None port 0",
        ),
        (
            "nvswitch_interface_sp_rx_pause",
            "",
            vec![swp1, ("sp", "3")],
            "5",
            "swp1 switch_priority_pfc_received_frames Some(3) None port 5",
        ),
        // 2,500 us.
        (
            "nvswitch_interface_sp_rx_pause_duration",
            "us",
            vec![swp1, ("sp", "3")],
            "2500",
            "swp1 switch_priority_pfc_receive_paused_seconds Some(3) None port 0.0025",
        ),
        (
            "nvswitch_interface_pg_rx_buffer_discard",
            "",
            vec![swp1, ("pg", "1")],
            "5",
            "swp1 switch_priority_group_dropped_packets None Some(\"1\") port 5",
        ),
        (
            "nvswitch_interface_tc_tx_wred_discard",
            "",
            vec![swp1, ("tc", "0")],
            "5",
            "swp1 switch_queue_wred_dropped_packets None Some(\"0\") port,any 5",
        ),
        // gnmic's names of OpenConfig's paths, and a path as it is.
        (
            "qos_interfaces_interface_output_queues_queue_state_transmit_pkts",
            "",
            vec![("interface_interface-id", "Ethernet1/1"), ("queue_name", "3")],
            "5",
            "Ethernet1/1 switch_queue_transmitted_packets None Some(\"3\") port,all 5",
        ),
        (
            "/qos/interfaces/interface/output/queues/queue/state/instant-queue-len",
            "",
            vec![("interface_id", "swp2"), ("name", "3")],
            "90",
            "swp2 switch_queue_depth_bytes None Some(\"3\") port 90",
        ),
        (
            "qos_interfaces_interface_switch_priority_state_in_pause_duration",
            "",
            vec![
                ("interface_interface-id", "swp2"),
                ("switch-priority_priority", "3"),
            ],
            "2500",
            "swp2 switch_priority_pfc_receive_paused_seconds Some(3) None port 0.0025",
        ),
        // SONiC: the interface and the queue are parts of the path.
        (
            "COUNTERS_Ethernet0_SAI_PORT_STAT_PFC_3_RX_PKTS",
            "",
            vec![],
            "8",
            "Ethernet0 switch_priority_pfc_received_frames Some(3) None port 8",
        ),
        (
            "COUNTERS/Ethernet0/Queues/Ethernet0:3/SAI_QUEUE_STAT_DROPPED_PACKETS",
            "",
            vec![],
            "8",
            "Ethernet0 switch_queue_dropped_packets None Some(\"3\") port,all 8",
        ),
        (
            "sonic_SAI_PORT_STAT_IF_IN_OCTETS",
            "",
            vec![("interface", "Ethernet8")],
            "8",
            "Ethernet8 switch_interface_received_bytes None None port 8",
        ),
    ] {
        assert_eq!(found(name, unit, &attributes, value), expected, "{name}");
    }
}

#[test]
fn what_is_not_known_is_counted_and_never_guessed() {
    let tally = |name: &str, unit: &str, attributes: &[(&str, &str)], value: &str| {
        let (samples, translator) = read(&gauge(name, unit, attributes, value));
        assert!(samples.is_empty(), "{samples:?}");
        translator.tally().clone()
    };
    let swp1 = ("interface", "swp1");
    let of_class = [swp1, ("tc", "3")];
    // A priority group is no priority: several may be mapped to it.
    assert_eq!(
        tally("nvswitch_interface_pg_rx_pause", "", &[swp1, ("pg", "1")], "1")
            .unknown
            .len(),
        1
    );
    // Bytes, or cells of the chip?
    assert_eq!(
        tally("nvswitch_interface_tc_tx_queue", "", &of_class, "1").no_unit,
        1
    );
    assert_eq!(
        tally("nvswitch_interface_tc_tx_queue", "{cells}", &of_class, "1").no_unit,
        1
    );
    assert_eq!(tally("nvswitch_interface_if_in_octets", "", &[], "1").no_place, 1);
    assert_eq!(
        tally(
            "nvswitch_interface_if_in_octets",
            "",
            &[("interface", "eth0")],
            "1"
        )
        .no_place,
        1
    );
    assert_eq!(
        tally("nvswitch_interface_sp_rx_pause", "", &[swp1, ("sp", "8")], "1").no_place,
        1
    );
    assert_eq!(
        tally("nvswitch_interface_if_in_octets", "", &[swp1], "\"NaN\"").no_value,
        1
    );
    assert_eq!(
        tally("SAI_PORT_STAT_PFC_9_RX_PKTS", "", &[swp1], "1")
            .unknown
            .len(),
        1
    );
    let text = gauge("nvswitch_interface_if_in_octets", "", &[swp1], "1");
    let (samples, translator) = read(&text.replace("host.name", "other"));
    assert_eq!((samples.len(), translator.tally().no_node), (0, 1));
    // A change is no count.
    let delta = text
        .replace("\"gauge\":{", "\"sum\":{\"aggregationTemporality\":1,")
        .replace("\"asDouble\":1", "\"asInt\":\"1\"");
    let (samples, translator) = read(&delta);
    assert_eq!((samples.len(), translator.tally().no_value), (0, 1));
    let (samples, _) = read(&delta.replace("Temporality\":1", "Temporality\":2"));
    assert_eq!(samples.len(), 1);
}

#[test]
fn names_without_a_meaning_have_a_bound() {
    let mut translator = Translator::new(Some("leaf1"));
    let mut samples = Vec::new();
    for number in 0..1_000 {
        let text = gauge(&format!("unheard_of_{number}"), "", &[], "1");
        read_json(text.as_bytes(), &mut translator, &mut samples).unwrap();
    }
    let tally = translator.tally();
    assert_eq!((tally.unknown.len(), tally.more_unknown), (64, 936));
    assert_eq!(tally.left_out(), 1_000);
}

#[test]
fn texts_that_are_no_request_are_refused() {
    let (mut samples, mut translator) = (Vec::new(), Translator::new(None));
    for (text, expected) in [
        ("[]".to_owned(), "no object"),
        ("{\"resourceMetrics\":5}".to_owned(), "invalid type"),
        ("{".to_owned(), "EOF"),
        (
            format!("{{\"resourceMetrics\":[{}", "{},".repeat(200_000)),
            "more than 200000 JSON objects",
        ),
        (format!("{{\"x\":{}", "[".repeat(1_000_000)), "EOF"),
        (
            gauge(
                "nvswitch_interface_if_in_octets",
                "",
                &[("interface", "swp1")],
                "\"x\"",
            ),
            "no number",
        ),
    ] {
        let error = read_json(text.as_bytes(), &mut translator, &mut samples).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    // Other signals of a Collector's file, and nothing at all, are requests without points.
    for text in ["{}", r#"{"resourceLogs":[{"scopeLogs":[]}]}"#] {
        read_json(text.as_bytes(), &mut translator, &mut samples).unwrap();
    }
    assert!(samples.is_empty());
}
