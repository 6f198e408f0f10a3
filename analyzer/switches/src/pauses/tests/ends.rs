//! Pairs of ends, chains, and how connections are found.

use proptest::prelude::*;
use roce_model::{Counter, SampleSource, Span, Time};

use super::super::*;
use super::story::*;
use crate::device::{Adapter, Neighbor, Reading, Reason};

#[test]
fn ends_differ_beyond_one_percent_and_a_polling_gap() {
    let ends = |sent: u64, received: u64, from: i64, to: i64| {
        let story = [
            switch(
                LEAF,
                Counter::SwitchPfcTransmittedFrames,
                &[rate(3, sent, from, to)],
            ),
            hypervisor(
                Counter::HypervisorPfcReceivedFrames,
                &[rate(50, received, from, to)],
            ),
        ];
        finish(&story, LONG).pairs[0].clone()
    };
    // 10 s of 1,000 a second, and 950 or 990 or 989 of them. All is still at the ends of the run: nothing is hidden.
    let pair = ends(1_000, 950, 5_000, 15_000);
    assert_eq!(
        (pair.sent, pair.received, pair.allowed),
        (10_000.0, 9_500.0, 100.0)
    );
    assert_eq!(pair.state, PairState::Differ);
    assert_eq!(ends(1_000, 990, 5_000, 15_000).state, PairState::Agree);
    assert_eq!(ends(1_000, 989, 5_000, 15_000).state, PairState::Differ);
    // In motion over the whole run of 60 s: 60,000 and 57,000. 1 % is 600; the first and last interval hide 2,000.
    let pair = ends(1_000, 950, -30_000, 30_000);
    assert_eq!(
        (pair.sent, pair.received, pair.allowed),
        (60_000.0, 57_000.0, 2_600.0)
    );
    assert_eq!(pair.state, PairState::Differ);
    assert_eq!(ends(1_000, 957, -30_000, 30_000).state, PairState::Agree);
    let story = [
        switch(
            LEAF,
            Counter::SwitchPfcTransmittedFrames,
            &[rate(3, 1_000, 5_000, 15_000)],
        ),
        hypervisor(
            Counter::HypervisorPfcReceivedFrames,
            &[rate(50, 950, 5_000, 15_000)],
        ),
    ];
    let pauses = finish(&story, LONG);
    let received = row(&pauses, "esxi1 vmnic5", Kind::PfcReceived);
    assert_eq!(
        (received.verdict.as_str(), received.sign),
        (
            "differs from leaf1 Ethernet1/1/2, which sent 10,000",
            Sign::Notice
        )
    );
    let text = pause_text(&pauses, 160);
    assert!(
        text.contains(
            "pauses.ends_differ: leaf1 Ethernet1/1/2 sent 10,000 PFC frames, esxi1 vmnic5 received 9,500"
        ),
        "{text}"
    );
    assert_eq!(pause_json(&pauses)["pairs"][0]["id"], "pauses.ends_differ");
}

#[test]
fn a_reset_is_said_and_not_counted() {
    // 100 a second from -10 s on. A reset between +4.0 s and +5.0 s: from +5.0 s on the counter is 1,500 lower.
    let value = |ms: i64| {
        if ms < 5_000 {
            10 * (ms + 10_000) / 100
        } else {
            10 * (ms + 10_000) / 100 - 1_450
        }
    };
    let mut collector = PauseCollector::with_command(Span(1_000_000_000));
    let mut ms = -10_000;
    while ms <= 10_000 {
        if ms == 1_000 {
            collector.mark_start(time(0));
        }
        for (source, node, object, counter) in [
            (
                SampleSource::Switch,
                "leaf1",
                PORT,
                Counter::SwitchPfcTransmittedFrames,
            ),
            (
                SampleSource::Hypervisor,
                "esxi1",
                "vmnic5",
                Counter::HypervisorPfcReceivedFrames,
            ),
        ] {
            let count = if source == SampleSource::Hypervisor {
                value(ms)
            } else {
                10 * (ms + 10_000) / 100
            };
            let mut reading = Reading::new(source, node, time(ms));
            reading.push(counter, object, roce_model::value_of(count.unsigned_abs()));
            collector.add_reading(&reading);
        }
        ms += 1_000;
    }
    let pauses = collector.finish(&inventory());
    let received = row(&pauses, "esxi1 vmnic5", Kind::PfcReceived);
    // At +5.0 s the counter is 1,500 - 1,450 = 50, and was 1,400: of ten seconds of the command nine are counted.
    assert_eq!((value(4_000), value(5_000)), (1_400, 50));
    assert_eq!(changes(received), [Some(1_000.0), Some(900.0), None]);
    assert_eq!(received.resets, 1);
    assert!(received.verdict.contains("reset once"), "{}", received.verdict);
    assert_eq!(
        pauses.resets,
        [Reset {
            node: "esxi1".into(),
            place: "esxi1 vmnic5".into(),
            kind: Kind::PfcReceived,
            time: time(5_000),
            count: 1
        }]
    );
    assert_eq!(pauses.pairs[0].state, PairState::Reset);
    let text = pause_text(&pauses, 160);
    assert!(
        text.contains("esxi1 vmnic5, PFC received: reset once, last seen at +5.0 s"),
        "{text}"
    );
}

#[test]
fn a_chain_names_who_moved_first_and_who_sends() {
    // gpu7's adapter pauses the switch from 2 s; the inside of the switch is paused from 5 s.
    let pauses = [rate(0, 50, 2_000, 9_000)];
    let story = [
        host("gpu7", "ens1", Counter::PfcTransmittedFrames, &pauses),
        switch(
            ("leaf1", "Ethernet1/1/7"),
            Counter::SwitchPfcReceivedFrames,
            &[rate(0, 50, 4_000, 11_000)],
        ),
        switch(
            INSIDE,
            Counter::SwitchPfcTransmittedFrames,
            &[rate(0, 10, 5_000, 9_000)],
        ),
    ];
    let pauses = finish(&story, LONG);
    let chain = &pauses.chains[0];
    assert_eq!(chain.places, ["gpu7 ens1", "leaf1 Ethernet1/1/7"]);
    assert_eq!(
        (chain.first.as_slice(), chain.senders.as_slice()),
        (
            ["gpu7 ens1".to_owned()].as_slice(),
            ["gpu7 ens1".to_owned()].as_slice()
        )
    );
    assert_eq!(
        chain.text,
        "gpu7 ens1 - leaf1 Ethernet1/1/7: gpu7 ens1 moved first, at +3.0 s; the pauses come from gpu7 ens1"
    );
}

#[test]
fn ends_are_found_by_lldp_and_by_addresses() {
    let story = [
        switch(
            LEAF,
            Counter::SwitchPfcTransmittedFrames,
            &[rate(0, 10, 1_000, 2_000)],
        ),
        hypervisor(Counter::HypervisorPfcReceivedFrames, &[rate(0, 10, 1_000, 2_000)]),
    ];
    // Cisco writes addresses in groups of four digits.
    for (node, port) in [
        ("esxi1.example.com", "vmnic5"),
        ("0062.0b00.0005", "0062.0b00.0005"),
    ] {
        let mut collector = collect(&story, LONG);
        let mut known = Reading::new(SampleSource::Switch, "leaf1", time(30_000));
        known.neighbors.push(Neighbor {
            interface: "Eth1/1/2".into(),
            node: node.into(),
            port: port.into(),
        });
        collector.add_reading(&known);
        let mut known = Reading::new(SampleSource::Hypervisor, "esxi1", time(30_000));
        known.adapters.push(Adapter {
            name: "vmnic5".into(),
            mac: "00:62:0B:00:00:05".into(),
            ..Adapter::default()
        });
        collector.add_reading(&known);
        let pauses = collector.finish(&Inventory::default());
        assert_eq!(pauses.pairs.len(), 1, "{node}");
        assert_eq!(pauses.pairs[0].receiver, "esxi1 vmnic5");
    }
}

#[test]
fn a_hypervisor_says_why_it_has_no_pauses() {
    let why = |fill: fn(&mut Reading)| {
        let mut reading = Reading::new(SampleSource::Hypervisor, "esxi1", time(0));
        reading.adapters.push(Adapter {
            name: "vmnic1".into(),
            ..Adapter::default()
        });
        fill(&mut reading);
        let mut collector = PauseCollector::new(Span(1));
        collector.add_reading(&reading);
        let pauses = collector.finish(&Inventory::default());
        pauses
            .rows
            .iter()
            .map(|row| (row.place(), row.why.clone()))
            .collect::<Vec<_>>()
    };
    let of = |text: &str| vec![("esxi1 vmnic1".to_owned(), text.to_owned())];
    assert_eq!(why(|_| {}), of("its driver counts no pauses"));
    // The problem of vmnic11 is another's.
    let problem = |reading: &mut Reading| {
        for name in ["vmnic11", "vmnic1"] {
            let command = format!("vsish -e get /net/pNics/{name}/stats");
            reading.problem(
                Reason::Unsupported,
                &command,
                format!("{name}: sh: vsish: not found in {name}"),
            );
        }
    };
    assert_eq!(why(problem), of("sh: vsish: not found in vmnic1"));
    let down = |reading: &mut Reading| {
        reading.push(Counter::HypervisorNicUp, "vmnic1", 0.0);
    };
    assert_eq!(why(down), of("its link is down"));
    let counts = |reading: &mut Reading| {
        reading.push(Counter::HypervisorPauseReceivedFrames, "vmnic1", 0.0);
    };
    assert_eq!(why(counts), of("read once: there is no change yet"));
}

proptest! {
    /// Whatever is read in whatever order of times, changes are not negative, and both outputs are made.
    #[test]
    fn any_readings_give_sums_that_are_not_negative(
        values in proptest::collection::vec((0u8..6, 0u64..20, 0u32..1_000), 0..60),
        start in 0u64..20,
        length in 0u64..20,
    ) {
        let kinds = [
            (SampleSource::Switch, Counter::SwitchPfcTransmittedFrames, PORT),
            (SampleSource::Switch, Counter::SwitchPriorityPfcReceivedFrames, PORT),
            (SampleSource::Hypervisor, Counter::HypervisorPfcReceivedFrames, "vmnic5"),
            (SampleSource::Host, Counter::PortEcnMarkedPacketsReceived, "mlx5_0:1"),
            (SampleSource::Host, Counter::NetdevDiscards, "ens1"),
            (SampleSource::Switch, Counter::SwitchMmuDroppedPackets, PORT),
        ];
        let mut collector = PauseCollector::with_command(Span(1));
        for (at, (kind, second, value)) in values.iter().enumerate() {
            if at == 20 {
                collector.mark_start(Time(start * 1_000_000_000));
            }
            if at == 40 {
                collector.mark_end(Time((start + length) * 1_000_000_000));
            }
            let (source, counter, object) = kinds[usize::from(*kind)];
            let node = if source == SampleSource::Switch { "leaf1" } else { "esxi1" };
            let mut reading = Reading::new(source, node, Time(second * 1_000_000_000));
            reading.push(counter, object, f64::from(*value));
            collector.add_reading(&reading);
        }
        let pauses = collector.finish(&inventory());
        for row in &pauses.rows {
            for change in [row.before, row.during, row.after, row.per_second].into_iter().flatten() {
                prop_assert!(change.is_finite() && change >= 0.0, "{:?}", row);
            }
        }
        for width in [0, 80, 160] {
            let text = pause_text(&pauses, width);
            prop_assert!(text.lines().all(|line| line.chars().count() <= width.max(80)), "{}", text);
        }
        prop_assert_eq!(pause_json(&pauses)["rows"].as_array().map(Vec::len), Some(pauses.rows.len()));
    }
}

#[test]
fn a_sum_with_a_part_that_began_again_is_not_known() {
    let mut collector = PauseCollector::new(Span(0));
    for (in_mmu, in_queue) in [(900.0, 5.0), (20.0, 5.0)] {
        let mut reading = Reading::new(SampleSource::Switch, "leaf1", time(0));
        reading
            .push(Counter::SwitchMmuDroppedPackets, "Ethernet0", in_mmu)
            .details = vec!["port".into()];
        reading
            .push(Counter::SwitchQueueDroppedPackets, "Ethernet0", in_queue)
            .details = vec!["port".into(), "unicast".into()];
        collector.add_reading(&reading);
    }
    let pauses = collector.finish(&inventory());
    let drops = row(&pauses, "leaf1 Ethernet0", Kind::Drops);
    // The queue dropped none, and nobody knows of the ingress buffer.
    assert_eq!(changes(drops), [None; 3]);
    assert_eq!(
        (drops.verdict.as_str(), drops.sign),
        (
            "it began again between the readings: its growth is not known",
            Sign::Notice
        )
    );
}
