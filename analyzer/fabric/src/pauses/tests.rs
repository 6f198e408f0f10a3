//! Stories: each counter is a base and a rate from one moment to another, so that every row is known by arithmetic.

use roce_model::{Counter, Nanos, Sample, SampleSource};

use super::*;
use crate::device::{Adapter, Neighbor, Reading};

/// Start of the command in ms.
const START: u64 = 100_000;
const PORT: &str = "Ethernet1/1/2";

/// `per_second` from `from` to `to`, in ms since the start of the command; before, `base`.
#[derive(Clone, Copy)]
struct Rate {
    base: u64,
    per_second: u64,
    from: i64,
    to: i64,
}

impl Rate {
    fn at(self, ms: i64) -> f64 {
        let lasted = u64::try_from(ms.clamp(self.from, self.to) - self.from).unwrap();
        roce_model::value_of(self.base + self.per_second * lasted / 1_000)
    }
}

fn rate(base: u64, per_second: u64, from: i64, to: i64) -> Rate {
    Rate {
        base,
        per_second,
        from,
        to,
    }
}

const STILL: Rate = Rate {
    base: 7,
    per_second: 0,
    from: 0,
    to: 0,
};

/// One counter of a story.
#[derive(Clone)]
struct Line {
    source: SampleSource,
    node: &'static str,
    object: &'static str,
    counter: Counter,
    priority: Option<u8>,
    rates: Vec<Rate>,
}

fn line(source: SampleSource, place: (&'static str, &'static str), counter: Counter, rates: &[Rate]) -> Line {
    let (node, object) = place;
    let is_by_priority = counter.name().contains("pfc") && source != SampleSource::Switch;
    Line {
        source,
        node,
        object,
        counter,
        priority: is_by_priority.then_some(3),
        rates: rates.to_vec(),
    }
}

const LEAF: (&str, &str) = ("leaf1", PORT);
const INSIDE: (&str, &str) = ("leaf1", "ii1/1/5");
const VMNIC: (&str, &str) = ("esxi1", "vmnic5");

fn switch(place: (&'static str, &'static str), counter: Counter, rates: &[Rate]) -> Line {
    line(SampleSource::Switch, place, counter, rates)
}

fn hypervisor(counter: Counter, rates: &[Rate]) -> Line {
    line(SampleSource::Hypervisor, VMNIC, counter, rates)
}

fn host(node: &'static str, object: &'static str, counter: Counter, rates: &[Rate]) -> Line {
    line(SampleSource::Host, (node, object), counter, rates)
}

/// Times of a run in ms since the start of the command.
#[derive(Clone, Copy)]
struct Run {
    first: i64,
    end: i64,
    last: i64,
    every: i64,
}

fn time(ms: i64) -> Nanos {
    Nanos((i64::try_from(START).unwrap() + ms).unsigned_abs() * 1_000_000)
}

fn reading(source: SampleSource, node: &str, story: &[Line], ms: i64) -> Reading {
    let mut reading = Reading::new(source, node, time(ms));
    for line in story
        .iter()
        .filter(|line| line.source == source && line.node == node)
    {
        let value: f64 = line.rates.iter().map(|rate| rate.at(ms)).sum();
        let sample: &mut Sample = reading.push(line.counter, line.object, value);
        sample.priority = line.priority;
        if source == SampleSource::Switch {
            let kind = if line.object.starts_with("ii") {
                "internal"
            } else {
                "port"
            };
            let mut details = vec![kind.into()];
            details.resize(line.counter.labels().len(), "unicast".into());
            sample.details = details;
        }
    }
    reading
}

/// Reads every target at every tick.
fn collect(story: &[Line], run: Run) -> PauseCollector {
    let mut collector = PauseCollector::with_command(Nanos(run.every.unsigned_abs() * 1_000_000));
    let mut nodes: Vec<(SampleSource, &str)> = story.iter().map(|line| (line.source, line.node)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let mut ms = run.first;
    let (mut has_begun, mut has_ended) = (false, false);
    while ms <= run.last {
        if ms > 0 && !has_begun {
            collector.mark_start(time(0));
            has_begun = true;
        }
        if ms > run.end && !has_ended {
            collector.mark_end(time(run.end));
            has_ended = true;
        }
        for (source, node) in &nodes {
            let reading = reading(*source, node, story, ms);
            match source {
                SampleSource::Host => collector.add_samples(&reading.samples),
                _ => collector.add_reading(&reading),
            }
        }
        ms += run.every;
    }
    collector
}

fn inventory() -> Inventory {
    Inventory::parse(
        "[[switch]]\nname = \"leaf1\"\nkind = \"nexus\"\n\
         [[hypervisor]]\nname = \"esxi1\"\nswitch_ports = { vmnic5 = \"leaf1:Eth1/1/2\" }\n\
         [[host]]\nname = \"gpu5\"\nhypervisor = \"esxi1\"\n\
         [[host]]\nname = \"gpu7\"\nswitch_ports = { ens1 = \"leaf1:Ethernet1/1/7\" }\n",
    )
    .unwrap()
}

fn finish(story: &[Line], run: Run) -> Pauses {
    collect(story, run).finish(&inventory())
}

fn row<'a>(pauses: &'a Pauses, place: &str, kind: Kind) -> &'a Row {
    let mut rows = pauses
        .rows
        .iter()
        .filter(|row| row.place() == place && row.kind == kind);
    let first = rows.next().unwrap_or_else(|| panic!("{place} {kind:?}"));
    assert!(rows.next().is_none(), "{place} {kind:?} twice");
    first
}

fn changes(row: &Row) -> [Option<f64>; 3] {
    [row.before, row.during, row.after]
}

/// Marks from 1.0 s, so that the reading at 1.2 s shows the first; pauses from 3.6 s, so that the one at 3.8 s does.
fn incast() -> Vec<Line> {
    let pauses = [rate(500, 100, 3_600, 10_000)];
    vec![
        host(
            "gpu5",
            "rocep11s0:1",
            Counter::PortEcnMarkedPacketsReceived,
            &[rate(1_000, 4_560, 1_000, 10_000)],
        ),
        host(
            "gpu5",
            "rocep11s0:1",
            Counter::PortCnpSent,
            &[rate(1_000, 4_000, 1_000, 10_000)],
        ),
        host(
            "gpu1",
            "rocep19s0:1",
            Counter::PortCnpHandled,
            &[rate(9, 3_960, 1_000, 10_000)],
        ),
        switch(LEAF, Counter::SwitchPfcTransmittedFrames, &pauses),
        switch(LEAF, Counter::SwitchPfcReceivedFrames, &[STILL]),
        switch(LEAF, Counter::SwitchMmuDroppedPackets, &[STILL]),
        switch(
            ("leaf1", "Ethernet1/1/3"),
            Counter::SwitchPfcTransmittedFrames,
            &[STILL],
        ),
        hypervisor(Counter::HypervisorPfcReceivedFrames, &pauses),
        hypervisor(Counter::HypervisorPfcTransmittedFrames, &[STILL]),
    ]
}

const SHORT: Run = Run {
    first: -10_000,
    end: 10_000,
    last: 15_000,
    every: 200,
};

fn incast_with_a_virtual_function() -> Pauses {
    let mut collector = collect(&incast(), SHORT);
    collector.unseen(Unseen {
        level: Level::Server,
        node: "gpu5".into(),
        object: "ens192".into(),
        kind: Kind::PfcReceived,
        why: "not visible in a virtual function".into(),
    });
    collector.finish(&inventory())
}

#[test]
fn an_incast_is_ecn_then_pfc() {
    let pauses = incast_with_a_virtual_function();
    assert_eq!(
        (pauses.times.before, pauses.times.during, pauses.times.after),
        (Nanos(10_000_000_000), Nanos(10_000_000_000), Nanos(5_000_000_000))
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
}

#[test]
fn an_order_needs_readings_between() {
    // Readings at full seconds: marks within (1 s, 2 s], pauses within (3 s, 4 s].
    let every_second = finish(
        &incast(),
        Run {
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
        Run {
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

/// 30 s before, 20 s of command, 10 s after, as in the design's example.
const LONG: Run = Run {
    first: -30_000,
    end: 20_000,
    last: 60_000 - 30_000,
    every: 1_000,
};

fn global() -> Vec<Line> {
    // 17 a second for 30 s are 510; 2,400 a second for 20 s are 48,000.
    let pauses = [rate(0, 17, -30_000, 0), rate(0, 2_400, 0, 20_000)];
    vec![
        switch(LEAF, Counter::SwitchPauseTransmittedFrames, &pauses),
        switch(LEAF, Counter::SwitchPauseReceivedFrames, &[STILL]),
        switch(LEAF, Counter::SwitchPfcTransmittedFrames, &[STILL]),
        switch(LEAF, Counter::SwitchPfcReceivedFrames, &[STILL]),
        hypervisor(Counter::HypervisorPauseReceivedFrames, &pauses),
        hypervisor(Counter::HypervisorPauseTransmittedFrames, &[STILL]),
        host(
            "gpu5",
            "rocep11s0:1",
            Counter::PortEcnMarkedPacketsReceived,
            &[STILL],
        ),
    ]
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
    let mut collector = PauseCollector::with_command(Nanos(1_000_000_000));
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
    let mut once = PauseCollector::new(Nanos(1_000_000_000));
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
fn the_table_fits_its_width() {
    let pauses = incast_with_a_virtual_function();
    for width in [80, 160] {
        for shown in [&pauses, &finish(&global(), LONG)] {
            let text = pause_text(shown, width);
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
    let words = |text: &str| -> Vec<String> {
        text.lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect()
    };
    let wide = words(&pause_text(&pauses, 160));
    for line in [
        "time 25.0 s, of it 10.0 s before, 10.0 s during the command, 5.0 s after",
        "level where kind before during after per second verdict",
        "switch, port leaf1 Ethernet1/1/2 PFC sent 0 640 0 64",
        "hypervisor esxi1 vmnic5 PFC received 0 640 0 64 agrees with leaf1 Ethernet1/1/2",
        "server gpu5 rocep11s0:1 marked 0 41,040 0 4,104",
        "server gpu5 ens192 PFC - - - - not visible in a virtual function",
        "switch, buffer leaf1 Ethernet1/1/2 drops 0 0 0 - ✓ nothing lost",
        // Ethernet1/1/3, which nothing moved at.
        "1 row is not shown: nothing moved there",
        "pattern ECN, then PFC",
        "order marks first at +1.2 s, pauses first at +3.8 s (readings every 0.2 s): ECN acts before PFC, as it should",
    ] {
        assert!(
            wide.iter().any(|shown| shown == line),
            "{line}\n{}",
            wide.join("\n")
        );
    }
    let narrow = words(&pause_text(&pauses, 80));
    for line in [
        "where kind before during after",
        "switch, port",
        "leaf1 Ethernet1/1/2 PFC sent 0 640 0",
        "64 per second; agrees with leaf1 Ethernet1/1/2",
        "not visible in a virtual function",
    ] {
        assert!(
            narrow.iter().any(|shown| shown == line),
            "{line}\n{}",
            narrow.join("\n")
        );
    }
    let global = words(&pause_text(&finish(&global(), LONG), 160));
    let line = "switch, port leaf1 Ethernet1/1/2 PFC 0 0 0 -";
    assert!(global.iter().any(|shown| shown == line), "{}", global.join("\n"));
}

#[test]
fn the_document_has_every_row() {
    let pauses = incast_with_a_virtual_function();
    let document = pause_json(&pauses);
    assert_eq!(document["rows"].as_array().unwrap().len(), pauses.rows.len());
    assert_eq!(document["pattern"], "ecn_then_pauses");
    assert_eq!(
        document["first_marks"],
        serde_json::json!({ "after_s": 1.0, "seen_s": 1.2 })
    );
    let unseen = document["rows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["object"] == "ens192")
        .unwrap();
    assert_eq!(
        (&unseen["during"], &unseen["not_known"]),
        (
            &serde_json::Value::Null,
            &"not visible in a virtual function".into()
        )
    );
}

#[test]
fn names_of_devices_do_not_steer_the_terminal() {
    let mut collector = PauseCollector::new(Nanos(1_000_000_000));
    for (second, value) in [(1, 0.0), (2, 5.0)] {
        let mut reading = Reading::new(SampleSource::Switch, "leaf1", Nanos(second * 1_000_000_000));
        reading.push(Counter::SwitchPfcTransmittedFrames, "Eth\u{1b}[2J1\n/1", value);
        collector.add_reading(&reading);
    }
    let text = pause_text(&collector.finish(&Inventory::default()), 80);
    assert!(text.contains("leaf1 Eth?[2J1?/1"), "{text}");
}
