//! The numbers of a switch of each generation, from text and from JSON.

use std::collections::BTreeMap;

use super::*;
use crate::device::{Neighbor, QueueClass};

/// Counter, object, priority, queue, details, and the value, or `absent`. `-`: none.
const FIRST_GENERATION: &str = "
    # 12 x 86,400 + 3 x 3,600 + 45 x 60 + 6 seconds; 10 and 40 Gbit/s.
    switch_uptime_seconds - - - - 1050306
    switch_interface_rate_bytes_per_second Ethernet1/1/1 - - port 1250000000
    switch_interface_rate_bytes_per_second Ethernet1/1/2 - - port 5000000000
    switch_interface_rate_bytes_per_second Ethernet1/1/10 - - port absent
    switch_interface_rate_bytes_per_second port-channel7 - - aggregate 5000000000
    switch_interface_up Ethernet1/1/2 - - port 1
    switch_interface_up Ethernet1/1/10 - - port 0
    switch_interface_up mgmt0 - - management absent
    # PFC: the bitmap 8 is priority 3.
    switch_pfc_enabled Ethernet1/1/1 3 - port 1
    switch_pfc_enabled Ethernet1/1/1 0 - port 0
    switch_pfc_enabled Ethernet1/1/1 7 - port 0
    switch_pfc_enabled Ethernet1/1/2 3 - port 0
    switch_pfc_enabled ii1/1/1 3 - internal 1
    switch_pfc_received_frames Ethernet1/1/1 - - port 0
    switch_pfc_transmitted_frames Ethernet1/1/1 - - port 22787490
    # `--` here, and `RxPPP: 0` in the answer about queues.
    switch_pfc_received_frames Ethernet1/1/10 - - port 0
    switch_pfc_received_frames ii1/1/1 - - internal 126464312
    switch_pfc_transmitted_frames ii1/1/1 - - internal 48771198
    switch_priority_pfc_transmitted_frames Ethernet1/1/2 3 - port 0
    switch_priority_pfc_transmitted_frames Ethernet1/1/2 4 - port absent
    # 802.3x is apart from PFC.
    switch_pause_received_frames Ethernet1/1/1 - - port 1
    switch_pause_transmitted_frames Ethernet1/1/1 - - port 22787490
    switch_pause_received_frames Ethernet1/1/10 - - port absent
    switch_pause_enabled Ethernet1/1/1 - - port,received 1
    switch_pause_enabled Ethernet1/1/2 - - port,transmitted 0
    # Queues; 2,800,112,233 / 11.
    switch_queue_transmitted_packets Ethernet1/1/2 - 3 port,unicast 2800112233
    switch_queue_transmitted_packets Ethernet1/1/2 - 3 port,oobfc 0
    switch_queue_transmitted_packets Ethernet1/1/2 - 3 port,multicast 0
    switch_queue_transmitted_packets Ethernet1/1/2 - 3 port,all absent
    switch_queue_transmitted_packets Ethernet1/1/2 - 0 port,oobfc 254555657
    switch_queue_transmitted_packets Ethernet1/1/2 - control port,all 77120
    switch_queue_transmitted_packets Ethernet1/1/2 - control port,unicast absent
    switch_queue_transmitted_packets Ethernet1/1/2 - 5 port,unicast absent
    switch_queue_transmitted_bytes Ethernet1/1/2 - 3 port,unicast 3012345678901
    switch_queue_dropped_packets Ethernet1/1/2 - control port,all 0
    switch_queue_depth_bytes Ethernet1/1/2 - 3 port 0
    switch_queue_ecn_marked_packets Ethernet1/1/2 - 3 port absent
    switch_queue_wred_dropped_packets Ethernet1/1/2 - port port,capable 0
    switch_queue_wred_dropped_packets Ethernet1/1/2 - port port,not_capable 0
    switch_mmu_dropped_packets Ethernet1/1/2 - - port 256066
    switch_mmu_dropped_bytes Ethernet1/1/2 - - port 292550656
    switch_mmu_dropped_packets Ethernet1/1/10 - - port 6493907
    # Queue 3 has a pause threshold; the table of Ethernet1/1/1 was not read, and the policy has `pause` for it.
    switch_queue_no_drop Ethernet1/1/2 - 3 port 1
    switch_queue_no_drop Ethernet1/1/2 - 0 port 0
    switch_queue_no_drop Ethernet1/1/1 - 3 port 1
    switch_queue_pause_threshold_bytes Ethernet1/1/2 - 3 port 38400
    switch_queue_resume_threshold_bytes Ethernet1/1/2 - 3 port 37440
    switch_queue_pause_threshold_bytes Ethernet1/1/2 - 0 port absent
    # The policy of Ethernet1/1/2 marks from 150 kbytes, the system's does not mark.
    switch_ecn_threshold_bytes Ethernet1/1/2 - 3 port,min 150000
    switch_ecn_threshold_bytes Ethernet1/1/2 - 3 port,max 1500000
    switch_ecn_threshold_bytes Ethernet1/1/1 - 3 port,min absent
    # Counters of 64 bits.
    switch_interface_received_bytes Ethernet1/1/1 - - port 288825287001
    switch_interface_received_bytes Ethernet1/1/2 - - port 9008298766368769
    switch_interface_transmitted_bytes Ethernet1/1/1 - - port 18446744073709551615
    switch_interface_received_packets Ethernet1/1/1 - - port,unicast 73625111
    switch_interface_received_packets Ethernet1/1/2 - - port,broadcast 2002
    switch_interface_transmitted_packets port-channel7 - - aggregate,multicast 3007
    switch_interface_errors Ethernet1/1/1 - - port,received 1401
    switch_interface_errors Ethernet1/1/1 - - port,transmitted 1301
    switch_interface_discards Ethernet1/1/1 - - port,received 1601
    switch_interface_discards Ethernet1/1/1 - - port,transmitted 1501
    switch_interface_discards port-channel7 - - aggregate,transmitted 4303
";

const CLOUD_SCALE: &str = "
    switch_uptime_seconds - - - - 600
    # The bitmap 20 is priority 5, 28 is 3 and 5.
    switch_pfc_enabled Ethernet1/51 5 - port 1
    switch_pfc_enabled Ethernet1/51 3 - port 0
    switch_pfc_enabled Ethernet1/50 3 - port 1
    switch_pfc_enabled Ethernet1/50 5 - port 1
    switch_priority_pfc_transmitted_frames Ethernet1/51 5 - port 150
    switch_priority_pfc_transmitted_frames Ethernet1/51 3 - port 0
    switch_priority_pfc_received_frames Ethernet1/50 3 - port 4000
    switch_pfc_received_frames Ethernet1/50 - - port 7000
    # Group 5 is a queue like others, and lossless here.
    switch_queue_transmitted_packets Ethernet1/51 - 5 port,unicast 202328436
    switch_queue_no_drop Ethernet1/51 - 5 port 1
    switch_queue_pause_threshold_bytes Ethernet1/51 - 5 port 77376
    switch_queue_resume_threshold_bytes Ethernet1/51 - 5 port 75712
    switch_queue_no_drop Ethernet1/51 - 7 port 0
    # Queue 3 is not in the port's table, and the policy has `pause` for it.
    switch_queue_no_drop Ethernet1/51 - 3 port 1
    switch_queue_transmitted_packets Ethernet1/51 - 3 port,unicast 2800112233
    switch_queue_ecn_marked_packets Ethernet1/51 - 3 port 40812001
    switch_queue_ecn_marked_bytes Ethernet1/51 - 3 port 41000000123
    switch_queue_depth_bytes Ethernet1/51 - 3 port 151424
    switch_queue_dropped_packets Ethernet1/50 - 5 port,unicast 4050
    switch_queue_dropped_packets Ethernet1/50 - 5 port,multicast 1051
    # 50,050 + 1,053.
    switch_queue_ecn_marked_packets Ethernet1/50 - 5 port 51103
    switch_queue_transmitted_packets Ethernet1/51 - control port,unicast 77120
    switch_queue_transmitted_packets Ethernet1/51 - span port,multicast 1234567
    switch_queue_transmitted_packets Ethernet1/51 - span port,oobfc absent
    switch_mmu_dropped_packets Ethernet1/51 - - port 19490
    # Watchdog: 600 + 27 and 300 + 25 packets.
    switch_pfc_watchdog_shutdowns Ethernet1/51 - 3 port 2
    switch_pfc_watchdog_restores Ethernet1/51 - 3 port 1
    switch_pfc_watchdog_dropped_packets Ethernet1/51 - 3 port 627
    switch_pfc_watchdog_dropped_packets Ethernet1/50 - 5 port 325
    switch_buffer_cells - - - 0,drop 1200
    switch_buffer_cells - - - 0,no_drop 3400
    switch_buffer_peak_cells - - - 0,no_drop 9200
    switch_buffer_peak_cells - - - 1,drop 9300
    switch_buffer_cells - - - 1,no_drop absent
    # The system's policy applies to all ports; thresholds of drops are none of marking.
    switch_ecn_threshold_bytes Ethernet1/50 - 5 port,min 950000
    switch_ecn_threshold_bytes Ethernet1/51 - 5 port,min 950000
    switch_ecn_threshold_bytes Ethernet1/51 - 5 port,max 3000000
    switch_ecn_threshold_bytes Ethernet1/51 - 0 port,min absent
";

const LEGACY: &str = "
    switch_priority_group_dropped_packets Ethernet1/2 - 0 port 1060
    switch_priority_group_dropped_packets Ethernet1/2 - 1 port 106
    switch_priority_group_dropped_packets Ethernet1/20 - 0 port 20601
    switch_priority_group_dropped_packets Ethernet1/20 - 1 port 20602
    switch_queue_no_drop Ethernet1/2 - 1 port 1
    switch_queue_no_drop Ethernet1/2 - 0 port 0
";

/// A sample's words in the tables above.
fn words(sample: &Sample) -> String {
    let or_none = |word: &str| if word.is_empty() { "-" } else { word }.to_owned();
    let (counter, object, priority, queue, details) = key(sample);
    let priority = priority.map(|priority| priority.to_string()).unwrap_or_default();
    let queue = queue.unwrap_or_default();
    let details = details.join(",");
    let places = [&object, &priority, &queue, &details].map(|word| or_none(word));
    format!("{} {}", counter.name(), places.join(" "))
}

#[track_caller]
fn check(reading: &Reading, expected: &str) {
    let all: BTreeMap<String, f64> = reading
        .samples
        .iter()
        .map(|sample| (words(sample), sample.value))
        .collect();
    for line in expected.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (place, value) = line.rsplit_once(' ').expect("a place and a value");
        let name = place.split(' ').next().unwrap_or_default();
        assert!(Counter::from_name(name).is_some(), "{name}");
        let value = (value != "absent").then(|| value.parse::<f64>().expect("a value"));
        assert_eq!(all.get(place).copied(), value, "{place}");
    }
}

#[test]
fn a_first_generation_switch_is_read() {
    for ending in ["txt", "json"] {
        let all = read_all(&answers("nexus-first-generation", ending));
        check(&all, FIRST_GENERATION);
        // `detail` and the watchdog are not known to this release.
        assert_eq!(reasons(&all), [Reason::Unsupported, Reason::Unsupported]);
        let about = &all.description;
        assert_eq!(
            [&about.model, &about.version, &about.serial],
            ["Nexus9000 C9332PQ", "7.0(3)I7(9)", "SAL00000001"]
        );
        let (first, second) = ("Ethernet1/1/1", "Ethernet1/1/2");
        let neighbors = [
            (first, "esx1", "vmnic3"),
            (second, "689e.0b00.916a", "Ethernet1/31"),
        ];
        let neighbors = neighbors.map(|(interface, node, port)| Neighbor {
            interface: interface.to_owned(),
            node: node.to_owned(),
            port: port.to_owned(),
        });
        assert_eq!(all.neighbors, neighbors);
        let classes = [
            (second, "3", Some(1), true),
            (second, "0", None, false),
            ("", "3", Some(1), false),
            ("", "0", None, false),
        ];
        let classes = classes.map(|(interface, queue, priority_level, has_ecn)| QueueClass {
            interface: interface.to_owned(),
            queue: queue.to_owned(),
            priority_level,
            has_ecn,
        });
        assert_eq!(all.classes, classes);
        assert_eq!(all.has_watchdog, None);
    }
}

#[test]
fn a_cloud_scale_switch_is_read() {
    for ending in ["txt", "json"] {
        let all = read_all(&answers("nexus-cloud-scale", ending));
        check(&all, CLOUD_SCALE);
        assert_eq!(all.problems, []);
        assert_eq!(all.description.model, "Nexus9000 93180YC-EX");
        assert_eq!(all.description.version, "10.3(8)");
        assert_eq!(all.has_watchdog, Some(true));
        let classes = all.classes.iter();
        let classes: Vec<_> = classes
            .map(|class| (class.queue.as_str(), class.priority_level, class.has_ecn))
            .collect();
        assert_eq!(
            classes,
            [("7", Some(1), false), ("5", None, true), ("0", None, false)]
        );
        // A slice is not its ports, and not in the JSON.
        let slice = "switch_slice_dropped_packets - - - Ethernet1/51";
        let value = if ending == "txt" { "71206" } else { "absent" };
        check(&all, &format!("{slice} {value}"));
    }
}

#[test]
fn an_older_switch_has_discards() {
    let all = read_all(&answers("nexus-legacy", "txt"));
    check(&all, LEGACY);
    assert_eq!(all.problems, []);
}
