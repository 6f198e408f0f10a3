//! Stories at every level: rows, pattern and order.

mod ends;
mod shown;
mod story;

use roce_model::{Counter, SampleSource, Severity, Span};

use crate::device::Reading;

use super::*;
use story::*;

#[test]
fn an_incast_is_ecn_then_pfc() {
    let pauses = incast_with_a_virtual_function();
    assert_eq!(
        (pauses.times.before, pauses.times.during, pauses.times.after),
        (Span(10_000_000_000), Span(10_000_000_000), Span(5_000_000_000))
    );
    // 4,560 a second for 9 s.
    let marked = row(&pauses, "gpu5 rocep11s0:1", Kind::Marked);
    assert_eq!(changes(marked), [Some(0.0), Some(41_040.0), Some(0.0)]);
    assert!((marked.per_second.unwrap() - 4_104.0).abs() < 1e-6);
    // 100 a second for 6.4 s.
    let sent = row(&pauses, "leaf1 Ethernet1/1/2", Kind::PfcSent);
    assert_eq!(changes(sent), [Some(0.0), Some(640.0), Some(0.0)]);
    let received = row(&pauses, "esxi1 vmnic5", Kind::PfcReceived);
    assert_eq!(changes(received), [Some(0.0), Some(640.0), Some(0.0)]);
    assert_eq!(
        (received.verdict.as_str(), received.sign),
        ("agrees with leaf1 Ethernet1/1/2", Sign::None)
    );
    // 3,960 of 4,000.
    assert_eq!(
        row(&pauses, "gpu1 rocep19s0:1", Kind::CnpsHandled).verdict,
        "all servers: 99 % of what was sent"
    );
    let drops = row(&pauses, "leaf1 Ethernet1/1/2", Kind::Drops);
    assert_eq!(
        (drops.level, drops.verdict.as_str(), drops.sign),
        (Level::Buffer, "nothing lost", Sign::Good)
    );
    let unseen = row(&pauses, "gpu5 ens192", Kind::PfcReceived);
    assert_eq!(
        (changes(unseen), unseen.verdict.as_str()),
        ([None; 3], "not visible in a virtual function")
    );
    assert_eq!(
        (pauses.pattern, pauses.pattern_text.as_str()),
        (Pattern::EcnThenPauses, "ECN, then PFC")
    );
    assert_eq!(
        pauses.order,
        "marks first at +1.2 s, pauses first at +3.8 s (readings every 0.2 s): ECN acts before PFC, as it should"
    );
    let pair = &pauses.pairs[0];
    assert_eq!(
        (pair.sender.as_str(), pair.receiver.as_str()),
        ("leaf1 Ethernet1/1/2", "esxi1 vmnic5")
    );
    assert_eq!(
        (pair.sent, pair.received, pair.state),
        (640.0, 640.0, PairState::Agree)
    );
    assert_eq!(pauses.chains.len(), 1);
    assert_eq!(
        pauses.chains[0].text,
        "gpu5 ens192 - esxi1 vmnic5 - leaf1 Ethernet1/1/2: which of esxi1 vmnic5, leaf1 Ethernet1/1/2 \
         moved first is unclear (readings every 0.2 s); the pauses come from leaf1 Ethernet1/1/2"
    );
    assert_eq!(pauses.resets, []);
    assert_eq!(pauses.severity(), Severity::Info);
}

#[test]
fn an_order_needs_readings_between() {
    // Readings at full seconds: marks within (1 s, 2 s], pauses within (3 s, 4 s].
    let every_second = finish(
        &incast(),
        StoryTimes {
            every: 1_000,
            ..SHORT
        },
    );
    assert_eq!(every_second.pattern, Pattern::EcnThenPauses);
    assert_eq!(
        every_second.order,
        "marks first at +2.0 s, pauses first at +4.0 s (readings every 1.0 s): ECN acts before PFC, as it should"
    );
    // Readings every 5 s: both within (0 s, 5 s].
    let every_five = finish(
        &incast(),
        StoryTimes {
            every: 5_000,
            ..SHORT
        },
    );
    assert_eq!(every_five.pattern, Pattern::EcnAndPauses);
    assert_eq!(
        every_five.order,
        "marks first at +5.0 s, pauses first at +5.0 s (readings every 5.0 s): \
         the order is unclear, both began between the same two readings"
    );
    // The sums do not depend on the readings.
    assert_eq!(
        row(&every_five, "gpu5 rocep11s0:1", Kind::Marked).during,
        Some(41_040.0)
    );
}

#[test]
fn pauses_before_marks_are_the_wrong_order() {
    let story = [
        host(
            "gpu5",
            "rocep11s0:1",
            Counter::PortEcnMarkedPacketsReceived,
            &[rate(0, 100, 5_000, 9_000)],
        ),
        switch(
            LEAF,
            Counter::SwitchPfcTransmittedFrames,
            &[rate(0, 100, 1_000, 9_000)],
        ),
    ];
    let pauses = finish(&story, SHORT);
    assert_eq!(
        (pauses.pattern, pauses.pattern_text.as_str()),
        (Pattern::PausesThenEcn, "PFC, then ECN")
    );
    assert!(
        pauses
            .order
            .ends_with("PFC before ECN: ECN's threshold is too high"),
        "{}",
        pauses.order
    );
}

#[test]
fn global_pauses_are_no_pfc() {
    let pauses = finish(&global(), LONG);
    let sent = row(&pauses, "leaf1 Ethernet1/1/2", Kind::GlobalSent);
    assert_eq!(changes(sent), [Some(510.0), Some(48_000.0), Some(0.0)]);
    assert!((sent.per_second.unwrap() - 2_400.0).abs() < 1e-6);
    assert_eq!(
        sent.verdict,
        "more than before (17 per second) from +1.0 s on; no PFC on this link"
    );
    assert_eq!(sent.sign, Sign::Notice);
    // PFC of the link is known from the switch alone.
    let received = row(&pauses, "esxi1 vmnic5", Kind::GlobalReceived);
    assert_eq!(
        received.verdict,
        "more than before (17 per second) from +1.0 s on; no PFC on this link; agrees with leaf1 Ethernet1/1/2"
    );
    assert_eq!(
        changes(row(&pauses, "leaf1 Ethernet1/1/2", Kind::PfcSent)),
        [Some(0.0); 3]
    );
    assert_eq!(
        (pauses.pattern, pauses.pattern_text.as_str()),
        (Pattern::PausesWithoutEcn, "802.3x pauses without ECN")
    );
    assert_eq!(pauses.severity(), Severity::Warning);
    assert!(pauses.pairs.iter().all(|pair| pair.state == PairState::Agree));
    assert_eq!(
        pauses
            .pairs
            .iter()
            .filter(|pair| pair.family == PauseFamily::Pfc)
            .count(),
        0
    );
}

#[test]
fn pauses_inside_of_the_switch_pause_no_host() {
    let port = [
        switch(LEAF, Counter::SwitchPfcTransmittedFrames, &[STILL]),
        switch(LEAF, Counter::SwitchPfcReceivedFrames, &[STILL]),
        host(
            "gpu5",
            "rocep11s0:1",
            Counter::PortEcnMarkedPacketsReceived,
            &[STILL],
        ),
    ];
    let mut story = port.to_vec();
    story.push(switch(
        INSIDE,
        Counter::SwitchPfcReceivedFrames,
        &[rate(9, 3_270, 2_000, 20_000)],
    ));
    let pauses = finish(&story, LONG);
    // 3,270 a second for 18 s.
    let inside = row(&pauses, "leaf1 ii1/1/5", Kind::PfcReceived);
    assert_eq!(
        (inside.level, changes(inside)),
        (Level::SwitchInside, [Some(0.0), Some(58_860.0), Some(0.0)])
    );
    assert_eq!(inside.verdict, "congestion inside of the switch");
    assert!(pauses.is_inside_only);
    assert_eq!(pauses.pattern, Pattern::Nothing);
    assert!(
        pauses
            .pattern_text
            .ends_with("PFC inside of the switch only: hosts were not paused")
    );
    // 3,270 a second after 3,100 a second is usual.
    let mut story = port.to_vec();
    story.push(switch(
        INSIDE,
        Counter::SwitchPfcReceivedFrames,
        &[rate(9, 3_100, -30_000, 0), rate(0, 3_270, 0, 20_000)],
    ));
    let pauses = finish(&story, LONG);
    let inside = row(&pauses, "leaf1 ii1/1/5", Kind::PfcReceived);
    assert_eq!(changes(inside), [Some(93_000.0), Some(65_400.0), Some(0.0)]);
    assert_eq!(
        (inside.verdict.as_str(), inside.sign),
        ("usual (before: 3,100 per second)", Sign::None)
    );
    assert!(!pauses.is_inside_only);
}

/// A quantity moves from more than twice its rate before the command on.
#[test]
fn twice_the_usual_rate_is_usual() {
    let moved = |during: u64| {
        let story = [switch(
            LEAF,
            Counter::SwitchPfcTransmittedFrames,
            &[rate(9, 100, -30_000, 0), rate(0, during, 0, 20_000)],
        )];
        let pauses = finish(&story, LONG);
        row(&pauses, "leaf1 Ethernet1/1/2", Kind::PfcSent).verdict.clone()
    };
    assert_eq!(moved(200), "usual (before: 100 per second)");
    assert_eq!(moved(201), "more than before (100 per second) from +1.0 s on");
}

/// Received and sent are those of the port itself; 802.3x is never PFC.
#[test]
fn every_counter_has_its_row() {
    use Kind::{Drops, GlobalReceived, GlobalSent, Marked, PfcReceived, PfcSent};
    let cases = [
        (Counter::SwitchPfcReceivedFrames, Level::SwitchPort, PfcReceived),
        (Counter::SwitchPfcTransmittedFrames, Level::SwitchPort, PfcSent),
        (
            Counter::SwitchPriorityPfcReceivedFrames,
            Level::SwitchPort,
            PfcReceived,
        ),
        (
            Counter::SwitchPriorityPfcTransmittedFrames,
            Level::SwitchPort,
            PfcSent,
        ),
        (
            Counter::SwitchPauseReceivedFrames,
            Level::SwitchPort,
            GlobalReceived,
        ),
        (
            Counter::SwitchPauseTransmittedFrames,
            Level::SwitchPort,
            GlobalSent,
        ),
        (Counter::SwitchQueueEcnMarkedPackets, Level::SwitchPort, Marked),
        (Counter::SwitchMmuDroppedPackets, Level::Buffer, Drops),
        (Counter::SwitchPriorityGroupDroppedPackets, Level::Buffer, Drops),
        (
            Counter::HypervisorPfcReceivedFrames,
            Level::Hypervisor,
            PfcReceived,
        ),
        (
            Counter::HypervisorPfcTransmittedFrames,
            Level::Hypervisor,
            PfcSent,
        ),
        (
            Counter::HypervisorPauseReceivedFrames,
            Level::Hypervisor,
            GlobalReceived,
        ),
        (
            Counter::HypervisorPauseTransmittedFrames,
            Level::Hypervisor,
            GlobalSent,
        ),
        (Counter::HypervisorDroppedPackets, Level::Hypervisor, Drops),
        (Counter::PfcReceivedFrames, Level::Server, PfcReceived),
        (Counter::PfcTransmittedFrames, Level::Server, PfcSent),
        (Counter::PauseReceivedFrames, Level::Server, GlobalReceived),
        (Counter::PauseTransmittedFrames, Level::Server, GlobalSent),
        (Counter::PortEcnMarkedPacketsReceived, Level::Server, Marked),
        (Counter::PortCnpSent, Level::Server, Kind::CnpsSent),
        (Counter::PortCnpHandled, Level::Server, Kind::CnpsHandled),
    ];
    for (counter, level, kind) in cases {
        let source = match level {
            Level::Server => SampleSource::Host,
            Level::Hypervisor => SampleSource::Hypervisor,
            _ => SampleSource::Switch,
        };
        let mut collector = PauseCollector::new(Span(1_000_000_000));
        for ms in [0, 1_000] {
            let mut reading = Reading::new(source, "a", time(ms));
            reading.push(counter, "b", 5.0).details = vec!["port".into()];
            collector.add_samples(&reading.samples);
        }
        let rows = collector.finish(&Inventory::default()).rows;
        let counted = rows.iter().filter(|row| row.why.is_empty());
        let counted: Vec<(Level, Kind)> = counted.map(|row| (row.level, row.kind)).collect();
        assert_eq!(counted, [(level, kind)], "{}", counter.name());
    }
    // The sum of both kinds of pauses is neither.
    for (source, counter) in [
        (SampleSource::Host, Counter::PauseControlReceivedFrames),
        (
            SampleSource::Hypervisor,
            Counter::HypervisorPauseControlReceivedFrames,
        ),
        (SampleSource::Switch, Counter::SwitchInterfaceDiscards),
    ] {
        let mut reading = Reading::new(source, "a", time(0));
        reading.push(counter, "b", 5.0);
        let mut collector = PauseCollector::new(Span(1_000_000_000));
        collector.add_samples(&reading.samples);
        assert!(collector.finish(&Inventory::default()).rows.is_empty());
    }
}

/// Without a command everything is "during", and nothing is usual.
#[test]
fn a_time_without_a_command_has_movements_too() {
    let story = [switch(
        LEAF,
        Counter::SwitchPfcTransmittedFrames,
        &[rate(0, 10, 1_000, 2_000)],
    )];
    let mut collector = PauseCollector::new(Span(1_000_000_000));
    for ms in [0, 1_000, 2_000, 3_000] {
        collector.add_reading(&reading(SampleSource::Switch, "leaf1", &story, ms));
    }
    let pauses = collector.finish(&inventory());
    let sent = row(&pauses, "leaf1 Ethernet1/1/2", Kind::PfcSent);
    assert_eq!(changes(sent), [None, Some(10.0), None]);
    assert_eq!(
        sent.moved.map(|moved| (moved.from, moved.to)),
        Some((time(1_000), time(2_000)))
    );
}

/// A group counts what its ports count.
#[test]
fn aggregates_are_no_ports() {
    let mut group = Reading::new(SampleSource::Switch, "leaf1", time(0));
    let frames = Counter::SwitchPfcTransmittedFrames;
    for (object, kind) in [
        ("Ethernet1/1/2", "port"),
        ("port-channel7", "aggregate"),
        ("mgmt0", "management"),
    ] {
        group.push(frames, object, 5.0).details = vec![kind.into()];
    }
    let mut collector = PauseCollector::new(Span(1_000_000_000));
    collector.add_reading(&group);
    let places: Vec<String> = collector
        .finish(&Inventory::default())
        .rows
        .iter()
        .map(Row::place)
        .collect();
    assert_eq!(places, ["leaf1 Ethernet1/1/2"]);
}

/// Marks within (1 s, 2 s] and pauses within (2 s, 3 s]: the reading between them gives the order.
#[test]
fn one_reading_between_is_enough() {
    let story = |marks: i64, pauses: i64| {
        let marks = host(
            "gpu5",
            "rocep11s0:1",
            Counter::PortEcnMarkedPacketsReceived,
            &[rate(0, 100, marks, 9_000)],
        );
        let sent = switch(
            LEAF,
            Counter::SwitchPfcTransmittedFrames,
            &[rate(0, 100, pauses, 9_000)],
        );
        finish(&[marks, sent], LONG).pattern
    };
    assert_eq!(story(1_500, 2_500), Pattern::EcnThenPauses);
    assert_eq!(story(2_500, 1_500), Pattern::PausesThenEcn);
    assert_eq!(story(1_200, 1_800), Pattern::EcnAndPauses);
}

#[test]
fn what_was_not_read_is_not_zero() {
    let pauses_alone = [switch(
        LEAF,
        Counter::SwitchPfcTransmittedFrames,
        &[rate(0, 10, 1_000, 2_000)],
    )];
    let pauses = finish(&pauses_alone, LONG);
    assert_eq!(
        (pauses.pattern, pauses.pattern_text.as_str()),
        (Pattern::NotKnown, "not known: pauses; marks were not read")
    );
    let marks_alone = [host(
        "gpu5",
        "rocep11s0:1",
        Counter::PortEcnMarkedPacketsReceived,
        &[STILL],
    )];
    assert_eq!(
        finish(&marks_alone, LONG).pattern_text,
        "not known: pauses were not read"
    );
    let both = [
        marks_alone[0].clone(),
        switch(LEAF, Counter::SwitchPfcTransmittedFrames, &[STILL]),
    ];
    assert_eq!(finish(&both, LONG).pattern, Pattern::Nothing);
    assert_eq!(finish(&both, LONG).severity(), Severity::Ok);
    let mut both = both.to_vec();
    both[0].rates = vec![rate(0, 10, 1_000, 2_000)];
    let alone = finish(&both, LONG);
    assert_eq!(
        (alone.pattern, alone.pattern_text.as_str()),
        (Pattern::EcnAlone, "ECN alone")
    );
    assert_eq!(
        alone.order,
        "marks first at +2.0 s (readings every 1.0 s), no pauses"
    );
    // One reading has no change.
    let mut once = PauseCollector::new(Span(1_000_000_000));
    once.add_reading(&reading(SampleSource::Switch, "leaf1", &pauses_alone, 0));
    let once = once.finish(&Inventory::default());
    assert_eq!(
        (once.rows[0].total(), once.rows[0].why.as_str()),
        (None, "read once: there is no change yet")
    );
    assert_eq!(once.pattern, Pattern::NotKnown);
}

#[test]
fn frames_by_priority_count_where_there_is_no_sum() {
    let story = |is_with_sum: bool| {
        let mut story = vec![
            switch(
                LEAF,
                Counter::SwitchPriorityPfcTransmittedFrames,
                &[rate(0, 10, 0, 10_000)],
            ),
            switch(
                LEAF,
                Counter::SwitchPriorityPfcTransmittedFrames,
                &[rate(0, 5, 0, 10_000)],
            ),
        ];
        story[0].priority = Some(3);
        story[1].priority = Some(4);
        if is_with_sum {
            story.push(switch(
                LEAF,
                Counter::SwitchPfcTransmittedFrames,
                &[rate(0, 15, 0, 10_000)],
            ));
        }
        story
    };
    for is_with_sum in [false, true] {
        // 15 a second for 10 s, counted once.
        let pauses = finish(&story(is_with_sum), LONG);
        assert_eq!(
            row(&pauses, "leaf1 Ethernet1/1/2", Kind::PfcSent).during,
            Some(150.0)
        );
    }
}

#[test]
fn a_server_without_counters_of_pauses_says_so() {
    let pauses = finish(&incast(), SHORT);
    for place in ["gpu1 rocep19s0:1", "gpu5 rocep11s0:1"] {
        let unseen = row(&pauses, place, Kind::PfcReceived);
        assert_eq!(changes(unseen), [None; 3]);
        assert_eq!(
            unseen.verdict,
            "its driver counts no pauses: usual for a virtual function"
        );
    }
    // Where a reason is known, it is the one that is shown.
    let known = incast_with_a_virtual_function();
    let of_gpu5 = known
        .rows
        .iter()
        .filter(|row| row.node == "gpu5" && !row.why.is_empty());
    assert_eq!(of_gpu5.count(), 1);
    // A server that counts pauses has none of it.
    let mut story = incast();
    story.push(host("gpu5", "ens192", Counter::PfcReceivedFrames, &[STILL]));
    let counted = finish(&story, SHORT);
    assert!(
        counted
            .rows
            .iter()
            .all(|row| row.node != "gpu5" || row.why.is_empty())
    );
}

#[test]
fn losses_are_critical() {
    let story = [switch(
        LEAF,
        Counter::SwitchMmuDroppedPackets,
        &[rate(9, 1, 1_000, 3_000)],
    )];
    let pauses = finish(&story, LONG);
    let lost = row(&pauses, "leaf1 Ethernet1/1/2", Kind::Drops);
    assert_eq!(
        (lost.during, lost.verdict.as_str(), lost.sign),
        (Some(2.0), "2 packets lost", Sign::Notice)
    );
    assert_eq!(pauses.severity(), Severity::Critical);
}

#[test]
fn two_recordings_tell_no_order() {
    // Marks and pauses moved between two readings that have no times.
    let story = incast();
    let mut collector = PauseCollector::new(Span(0));
    for ms in [0, 9_000] {
        let mut reading = reading(SampleSource::Host, "gpu5", &story, ms);
        let switch = self::reading(SampleSource::Switch, "leaf1", &story, ms);
        reading.samples.extend(switch.samples);
        for sample in &mut reading.samples {
            sample.time = roce_model::Time(0);
        }
        collector.add_samples(&reading.samples);
    }
    let pauses = collector.finish(&inventory());
    assert_eq!(pauses.pattern, Pattern::EcnAndPauses);
    assert_eq!(
        pauses.order,
        "marks and pauses, both between the recordings: two recordings tell no order"
    );
    let text = pause_text(&pauses, 80);
    assert!(!text.contains("0.0 s"), "{text}");
}
