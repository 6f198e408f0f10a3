//! Counters of ports: they agree with the truth, which comes from other places, and frames are conserved.

#![expect(clippy::float_cmp, reason = "counts below 2^53 are exact")]

use std::collections::BTreeMap;

use roce_model::SampleRow;
use roce_sim::truth::{LossReason, PacketKind};
use roce_sim::units::Picos;
use roce_sim::{Counters, OutputPlan, Scenario, Truth, demos, simulate_with_counters};

fn counted(toml: &str) -> (Truth, Counters) {
    let scenario = Scenario::parse(toml).unwrap();
    simulate_with_counters(&scenario, &OutputPlan::Discard, Picos::from_nanos(500_000)).unwrap()
}

/// The last value of each series, by object, counter and priority or queue.
struct Last(BTreeMap<(String, &'static str, String), f64>);

impl Last {
    fn new(counters: &Counters) -> Self {
        let key = |row: &SampleRow| {
            let place = row.priority.map(|priority| priority.to_string());
            let place = place.or_else(|| row.queue.as_deref().map(ToOwned::to_owned));
            (
                row.object.clone().into_owned(),
                row.counter,
                place.unwrap_or_default(),
            )
        };
        Self(counters.rows().map(|row| (key(&row), row.value)).collect())
    }

    fn get(&self, object: &str, counter: &'static str, place: &str) -> f64 {
        let key = (object.to_owned(), counter, place.to_owned());
        *self.0.get(&key).unwrap_or_else(|| panic!("{key:?}"))
    }

    fn total(&self, counter: &'static str) -> f64 {
        let own = self.0.iter().filter(|((_, name, _), _)| *name == counter);
        own.map(|(_, value)| value).sum()
    }
}

/// `leaf1->h1` as the port's name in samples: `leaf1:h1`, or `h1` for the port of a host.
fn object(place: &str) -> String {
    let (node, peer) = place.split_once("->").unwrap();
    if node.starts_with('h') {
        node.to_owned()
    } else {
        format!("{node}:{peer}")
    }
}

/// Two senders and a slow receiver over two levels, with everything that counters count, until all have ended.
const DRAINED: &str = r#"
    duration = "6ms"
    seed = 3
    [network]
    hosts = 4
    topology = "leaf-spine"
    rate = "25Gbps"
    [switch]
    kmin = "20KB"
    kmax = "100KB"
    pmax = 1.0
    pause = "pfc"
    xoff = "60KB"
    xon = "30KB"
    [nic]
    mtu = 4096
    ack_every = 8
    [[host]]
    name = "h4"
    drain = "10Gbps"
    [[flow]]
    from = "h1..h3"
    to = "h4"
    message = "64KiB"
    count = 8
    [[tap]]
    at = "h4"
"#;

#[test]
fn the_last_readings_are_the_totals_of_the_truth() {
    let (truth, counters) = counted(DRAINED);
    let last = Last::new(&counters);
    assert_eq!(truth.in_flight, 0, "the scenario ends before its duration");
    // The tap at h4 records everything that its port sends and receives.
    let passed = last.get("h4", "port_received_packets", "") + last.get("h4", "port_transmitted_packets", "");
    assert_eq!(passed, truth.taps[0].records as f64);
    // The packets of all flows, with their CNPs, are those that all NICs have sent.
    let sent: u64 = truth.flows.iter().map(|flow| flow.packets_sent).sum();
    let sent = sent + truth.cnps.len() as u64;
    assert_eq!(last.total("port_transmitted_packets"), sent as f64);
    assert_eq!(last.total("port_received_packets"), sent as f64);
    assert!(!truth.ce_marks.is_empty() && !truth.cnps.is_empty() && !truth.pauses.is_empty());
    assert_eq!(
        last.total("switch_queue_ecn_marked_packets"),
        truth.ce_marks.len() as f64
    );
    assert_eq!(last.total("port_cnp_sent"), truth.cnps.len() as f64);
    assert_eq!(last.total("port_cnp_handled"), truth.cnps.len() as f64);
    // Time of pauses, by port: from the list of pauses, to its resolution of 1 ns for each.
    let mut silent: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for pause in &truth.pauses {
        let own = silent.entry(object(&pause.place)).or_default();
        own.0 += (pause.end - pause.begin) as f64 / 1e9;
        own.1 += 1.0;
    }
    for (port, (seconds, count)) in &silent {
        let is_host = port.starts_with('h');
        let names = if is_host {
            ("pfc_receive_paused_seconds", "pfc_transitions")
        } else {
            (
                "switch_priority_pfc_receive_paused_seconds",
                "switch_priority_pfc_transitions",
            )
        };
        let counted = last.get(port, names.0, "3");
        assert!(
            (counted - seconds).abs() <= count * 2e-9,
            "{port}: {counted} {seconds}"
        );
        assert_eq!(last.get(port, names.1, "3"), *count, "{port}");
    }
    // The neighbour of a port that was paused has sent the pauses.
    let slow = last.get("h4", "pfc_transmit_paused_seconds", "3");
    assert_eq!(
        slow,
        last.get("leaf2:h4", "switch_priority_pfc_receive_paused_seconds", "3")
    );
    for queue in &truth.queues {
        if queue.place.starts_with('h') {
            continue;
        }
        let peak = last.get(
            &object(&queue.place),
            "switch_queue_peak_bytes",
            &queue.priority.to_string(),
        );
        assert_eq!(peak, queue.most_bytes as f64, "{}", queue.place);
    }
}

#[test]
fn drops_are_counted_where_the_truth_has_them() {
    for (switch, reason, counter) in [
        (
            "queue_limit = \"60KB\"",
            LossReason::TailDrop,
            "switch_queue_dropped_packets",
        ),
        (
            "pause = \"pfc\"\nxoff = \"60KB\"\nxon = \"40KB\"\nheadroom = \"4154\"",
            LossReason::Headroom,
            "switch_mmu_dropped_packets",
        ),
    ] {
        let (truth, counters) = counted(&format!(
            r#"
            duration = "2ms"
            [network]
            hosts = 4
            rate = "25Gbps"
            [switch]
            ecn = false
            {switch}
            [nic]
            mtu = 4096
            [[flow]]
            from = "h1..h3"
            to = "h4"
            message = "256KiB"
            "#
        ));
        let lost = truth.losses.iter().filter(|loss| loss.reason == reason).count();
        assert!(lost > 0);
        assert_eq!(Last::new(&counters).total(counter), lost as f64, "{switch}");
    }
}

/// Frames that one end of each link has sent and the other has not received. A link without losses has no fewer than none, and no
/// more than fit into the cable and the path, or are being sent.
#[test]
fn frames_are_conserved_on_each_link() {
    // Ports of MRC have no counters.
    for demo in demos::DEMOS.iter().filter(|demo| !demo.toml.contains("[mrc]")) {
        let scenario = Scenario::parse(demo.toml).unwrap();
        let (truth, counters) =
            simulate_with_counters(&scenario, &OutputPlan::Discard, Picos::from_nanos(1_000_000)).unwrap();
        let last = Last::new(&counters);
        let number = |end: &serde_json::Value, direction: &str| {
            let name = if end["kind"] == "host" {
                ["port_transmitted_packets", "port_received_packets"]
            } else {
                [
                    "switch_interface_transmitted_packets",
                    "switch_interface_received_packets",
                ]
            };
            let name = name[usize::from(direction == "received")];
            last.get(end["port"].as_str().unwrap(), name, "")
        };
        let missing = |from: &serde_json::Value, to: &serde_json::Value| {
            let place = format!(
                "{}->{}",
                from["node"].as_str().unwrap(),
                to["node"].as_str().unwrap()
            );
            let losses = truth.losses.iter();
            let own = losses.filter(|loss| loss.place == place && loss.reason == LossReason::Random);
            own.count() as f64
        };
        let mut in_flight = 0.0;
        let document = counters.neighbors();
        for link in document["links"].as_array().unwrap() {
            for (from, to) in [(&link["a"], &link["b"]), (&link["b"], &link["a"])] {
                let own = number(from, "sent") - number(to, "received") - missing(from, to);
                assert!(own >= 0.0, "{}: {from} to {to}: {own}", demo.name);
                in_flight += own;
            }
        }
        // Everything else that is on its way waits in a queue of a switch or a NIC: CNPs are not among the frames of `in_flight`.
        let queued = last.total("switch_queue_depth_bytes");
        let cnps = truth.cnps.iter().filter(|cnp| cnp.received.is_none()).count();
        let cnps_lost = truth.losses.iter().filter(|loss| loss.kind == PacketKind::Cnp);
        let open = truth.in_flight as f64 + cnps as f64 - cnps_lost.count() as f64;
        assert!(in_flight <= open, "{}: {in_flight} of {open}", demo.name);
        if open == 0.0 {
            assert_eq!((in_flight, queued), (0.0, 0.0), "{}", demo.name);
        }
    }
}

#[test]
fn readings_come_at_their_times_and_only_rise() {
    let (truth, counters) = counted(DRAINED);
    let rows: Vec<SampleRow> = counters.rows().collect();
    let mut times: Vec<u64> = rows.iter().map(|row| row.time.0 - truth.start_ns).collect();
    times.dedup();
    // Every 500 us from 0 to the end at 6 ms.
    let expected: Vec<u64> = (0..=12).map(|step| step * 500_000).collect();
    assert_eq!(times, expected);
    for row in &rows {
        assert!(!row.reset, "{row:?}");
        assert_eq!(
            row.change.is_some(),
            row.kind == "cumulative" && row.interval_ns.is_some()
        );
        assert!(row.change.is_none_or(|change| change >= 0.0), "{row:?}");
    }
}

#[test]
fn too_many_readings_are_refused() {
    let scenario = Scenario::parse(DRAINED).unwrap();
    let refused = simulate_with_counters(&scenario, &OutputPlan::Discard, Picos::from_nanos(10));
    assert!(refused.unwrap_err().to_string().contains("give more time"));
}

#[test]
fn a_folder_has_rows_neighbors_and_recorded_switches() {
    let (truth, counters) = counted(DRAINED);
    let folder = std::env::temp_dir().join(format!("roce-sim-counters-{}", std::process::id()));
    counters.write(&folder, &truth, false).unwrap();
    let text = std::fs::read_to_string(folder.join(Counters::SAMPLES)).unwrap();
    assert_eq!(text.lines().count(), counters.rows().count());
    let last = Last::new(&counters);
    let recorded = |moment: &str, name: &str| {
        let path = folder.join("leaf2").join(moment).join(name);
        let text = std::fs::read_to_string(path).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    let names = recorded(
        "after",
        "sonic-db-dump_-n_COUNTERS_DB_-k__COUNTERS___MAP__-y.json",
    );
    let document = counters.neighbors();
    let ends = document["links"].as_array().unwrap().iter();
    let mut ends = ends.flat_map(|link| [&link["a"], &link["b"]]);
    let port = ends.find(|end| end["port"] == "leaf2:h4").unwrap();
    let port = port["sonic_port"].as_str().unwrap();
    let id = names["COUNTERS_QUEUE_NAME_MAP"]["value"][format!("{port}:3")]
        .as_str()
        .unwrap();
    let numbers = "sonic-db-dump_-n_COUNTERS_DB_-k__COUNTERS_oid____-y.json";
    let field = |moment: &str| {
        let all = recorded(moment, numbers);
        let value = &all[format!("COUNTERS:{id}")]["value"]["SAI_QUEUE_STAT_PACKETS"];
        value.as_str().unwrap().parse::<f64>().unwrap()
    };
    assert_eq!(field("before"), 0.0);
    assert_eq!(
        field("after"),
        last.get("leaf2:h4", "switch_queue_transmitted_packets", "3")
    );
    let lldp = std::fs::read_to_string(folder.join("leaf2/after/show_lldp_table.txt")).unwrap();
    let line = lldp.lines().find(|line| line.starts_with(port)).unwrap();
    assert_eq!(
        line.split_whitespace().collect::<Vec<_>>(),
        [port, "h4", "h4", "O"]
    );
    std::fs::remove_dir_all(folder).unwrap();
}
