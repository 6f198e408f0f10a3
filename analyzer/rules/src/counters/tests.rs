//! Rules that fire, and readings near their thresholds that give nothing.

use std::borrow::Cow;
use std::collections::BTreeSet;

use roce_model::{Counter, Sample, SampleSource, Severity, Time};

use super::*;

/// 100 Gbit/s for everything; the interface `ens1` is that of `mlx5_0:1`.
struct Links;

impl LinkFacts for Links {
    fn bits_per_second(&self, _: &str) -> Option<f64> {
        Some(1e11)
    }

    fn port_of(&self, interface: &str) -> Option<String> {
        Some(
            if interface == "ens1" {
                "mlx5_0:1"
            } else {
                "mlx5_9:1"
            }
            .to_owned(),
        )
    }
}

/// A counter with its value before and after.
struct CountedPair {
    object: &'static str,
    counter: Counter,
    priority: Option<u8>,
    queue: Option<&'static str>,
    details: &'static [&'static str],
    values: [f64; 2],
}

fn count(object: &'static str, counter: Counter, before: f64, after: f64) -> CountedPair {
    CountedPair {
        object,
        counter,
        priority: None,
        queue: None,
        details: &[],
        values: [before, after],
    }
}

impl CountedPair {
    fn priority(self, priority: u8) -> Self {
        Self {
            priority: Some(priority),
            ..self
        }
    }

    fn queue(self, queue: &'static str) -> Self {
        Self {
            queue: Some(queue),
            ..self
        }
    }

    fn details(self, details: &'static [&'static str]) -> Self {
        Self { details, ..self }
    }
}

/// The samples of one of two readings, `seconds` apart.
fn samples(pairs: &[CountedPair], at: usize, seconds: u64) -> Vec<Sample> {
    let sample = |pair: &CountedPair| Sample {
        time: Time(1_000_000_000 + seconds * 1_000_000_000 * u64::try_from(at).unwrap()),
        source: SampleSource::Host,
        node: "a".into(),
        object: pair.object.into(),
        counter: pair.counter,
        priority: pair.priority,
        queue: pair.queue.map(Into::into),
        details: pair.details.iter().map(|detail| Cow::Borrowed(*detail)).collect(),
        value: pair.values[at],
        bits: 64,
    };
    pairs.iter().map(sample).collect()
}

fn reading(samples: &[Sample], uptime: Option<f64>) -> CounterReading<'_> {
    CounterReading { samples, uptime }
}

fn found_in(pairs: &[CountedPair], seconds: u64) -> Vec<CounterFinding> {
    let (before, now) = (samples(pairs, 0, seconds), samples(pairs, 1, seconds));
    judge(&Growths::new(
        Some(reading(&before, None)),
        reading(&now, None),
        &Links,
    ))
}

/// Ids and severities.
fn ids(findings: &[CounterFinding]) -> Vec<(&str, Severity)> {
    findings
        .iter()
        .map(|finding| (finding.id, finding.severity))
        .collect()
}

/// The only finding of 10 seconds.
fn only(pairs: &[CountedPair]) -> CounterFinding {
    let mut found = found_in(pairs, 10);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

#[test]
fn every_rule_has_texts() {
    let mut names = BTreeSet::new();
    for rule in rules() {
        assert!(
            names.insert(rule.id) && rule.id.starts_with("counters."),
            "{}",
            rule.id
        );
        for text in [rule.title, rule.meaning, rule.method, rule.source, rule.next] {
            assert!(!text.is_empty(), "{}", rule.id);
        }
        assert!(["certain", "likely"].contains(&rule.confidence), "{}", rule.id);
    }
}

#[test]
fn received_pauses_are_a_share_of_time_with_a_direction() {
    let paused = |before, after| {
        [
            count("ens1", Counter::PfcReceivePausedSeconds, before, after).priority(3),
            count("ens1", Counter::PfcReceivedFrames, 5.0, 41_005.0).priority(3),
        ]
    };
    // 2.17 of 10 s.
    let finding = only(&paused(100.0, 102.17));
    assert_eq!(
        (finding.id, finding.severity),
        ("counters.paused", Severity::Warning)
    );
    assert_eq!(
        finding.text,
        "paused by the neighbour 21.7 % of the time: 2.17 s, 41,000 frames (PFC, priority 3) in 10.0 s: the peer or switch throttles this port"
    );
    // 0.99 s of 10 s is less than a tenth.
    assert_eq!(only(&paused(100.0, 100.99)).severity, Severity::Info);
    let sent = only(&[count("ens1", Counter::PauseTransmitPausedSeconds, 1.0, 6.0)]);
    assert_eq!(sent.id, "counters.pausing");
    assert!(
        sent.text
            .starts_with("pauses its neighbour 50.0 % of the time: 5.00 s (802.3x, the whole link)")
    );
}

#[test]
fn priorities_that_are_paused_together_are_one_time() {
    let pair =
        |priority, after| count("ens1", Counter::PfcReceivePausedSeconds, 0.0, after).priority(priority);
    let finding = only(&[pair(3, 4.0), pair(4, 3.0)]);
    assert!(
        finding
            .text
            .contains("40.0 % of the time: 4.00 s (PFC, priority 3 and 4)"),
        "{}",
        finding.text
    );
}

#[test]
fn frames_bound_the_share_by_their_quanta() {
    let frames = |after| {
        let frames = count("Ethernet1/1", Counter::SwitchPfcReceivedFrames, 0.0, after).details(&["port"]);
        only(&[frames])
    };
    // 65,535 * 512 / 1e11 = 335.5 us for each: 2,000 in 10 s are 0.671 s, 6.71 % at most; 4,000 are 13.4 %.
    let few = frames(2_000.0);
    assert_eq!(few.severity, Severity::Info);
    assert!(
        few.text
            .contains("by 2,000 frames, at most 6.71 % of the time at 100 Gbit/s"),
        "{}",
        few.text
    );
    assert_eq!(frames(4_000.0).severity, Severity::Warning);
    // Links inside of a switch are no ports.
    let inside = count("ii1/1/1", Counter::SwitchPfcReceivedFrames, 0.0, 9e6).details(&["internal"]);
    assert_eq!(found_in(&[inside], 10), []);
}

#[test]
fn recordings_without_times_have_no_share_and_no_zero_seconds() {
    let pairs = [
        count("ens1", Counter::PauseReceivePausedSeconds, 91.234_567, 91.934_567),
        count("ens1", Counter::PauseReceivedFrames, 51_234_567.0, 51_244_567.0),
        // 10e9 bytes at 100 Gbit/s take 0.8 s.
        count("ens1", Counter::PriorityTransmittedBytes, 46e12, 46e12 + 10e9).priority(0),
    ];
    let found = found_in(&pairs, 0);
    assert_eq!(ids(&found), [("counters.paused", Severity::Warning)]);
    assert_eq!(
        found[0].text,
        "paused by the neighbour for 0.70 s, 10,000 frames, beside 0.80 s of sending at the link's rate (802.3x, the whole link) \
         between the recordings: the peer or switch throttles this port"
    );
    // The machine had run for 1,000 s, and then for 1,003.5: 0.7 of 3.5 s.
    let (before, now) = (samples(&pairs, 0, 0), samples(&pairs, 1, 0));
    let growths = Growths::new(
        Some(reading(&before, Some(1000.0))),
        reading(&now, Some(1003.5)),
        &Links,
    );
    assert!(
        judge(&growths)[0].text.contains("20.0 % of the time: 0.70 s"),
        "{:?}",
        judge(&growths)
    );
}

#[test]
fn totals_are_notes_of_switches_and_nothing_of_hosts() {
    let pairs = [
        count("ens1", Counter::PauseReceivedFrames, 0.0, 132e6),
        count("mlx5_0:1", Counter::PortCnpIgnored, 0.0, 5.0),
        count("Eth1/2", Counter::SwitchInterfaceDiscards, 0.0, 14_500.0).details(&["port", "transmitted"]),
        count("Eth1/3", Counter::SwitchInterfaceFcsErrors, 0.0, 731.0).details(&["port"]),
    ];
    let now = samples(&pairs, 1, 0);
    let found = judge(&Growths::new(None, reading(&now, None), &Links));
    assert!(
        found.iter().all(|finding| finding.severity == Severity::Info),
        "{found:#?}"
    );
    let texts: Vec<&str> = found.iter().map(|finding| finding.text.as_str()).collect();
    assert!(
        texts.contains(&"14,500 packets to be sent discarded since the counters were cleared"),
        "{texts:#?}"
    );
    assert!(
        texts
            .iter()
            .any(|text| text.starts_with("731 frames with a wrong check sequence (FCS) since"))
    );
    assert!(!found.iter().any(|finding| finding.id == "counters.cnp_ignored"));
}

#[test]
fn a_reset_is_neither_a_growth_nor_a_fall() {
    let pairs = [
        count("ens1", Counter::PfcReceivePausedSeconds, 5000.0, 4000.0).priority(3),
        count("mlx5_0:1", Counter::PortCnpSent, 1e9, 900.0),
        count("mlx5_0:1", Counter::PortEcnMarkedPacketsReceived, 5.0, 5.0),
        count("Eth1/2", Counter::SwitchInterfaceDiscards, 9e9, 8e9).details(&["port", "transmitted"]),
    ];
    assert_eq!(found_in(&pairs, 10), []);
}

#[test]
fn cnps_are_compared_with_marks() {
    let port = "mlx5_0:1";
    let pair = |marked, sent, restart| {
        [
            count(port, Counter::PortEcnMarkedPacketsReceived, 7.0, 7.0 + marked),
            count(port, Counter::PortCnpSent, 1000.0, 1000.0 + sent),
            count(port, Counter::PortSlowRestartCnps, 3.0, 3.0 + restart),
        ]
    };
    let of = |marked, sent, restart| found_in(&pair(marked, sent, restart), 10);
    assert_eq!(ids(&of(1000.0, 900.0, 0.0)), []);
    // Two readings of counters that run are some packets apart.
    assert_eq!(ids(&of(1000.0, 1009.0, 0.0)), []);
    assert_eq!(ids(&of(9.0, 0.0, 0.0)), []);
    assert_eq!(
        ids(&of(4000.0, 0.0, 0.0)),
        [("counters.cnp_not_sent", Severity::Critical)]
    );
    let without = of(0.0, 5000.0, 0.0);
    assert_eq!(ids(&without), [("counters.cnp_unmarked", Severity::Warning)]);
    assert!(
        without[0]
            .text
            .starts_with("5,000 CNPs sent and no marked packet received in 10.0 s"),
        "{}",
        without[0].text
    );
    assert!(of(1000.0, 2000.0, 0.0)[0].text.contains("50.0 % have no mark"));
    let own = of(0.0, 5000.0, 5000.0);
    assert_eq!(ids(&own), [("counters.cnp_slow_restart", Severity::Warning)]);
    assert!(own[0].text.contains("slow restart made 5,000 of them"));
    // Half of them are of marks.
    assert_eq!(
        ids(&of(2500.0, 5000.0, 2500.0)),
        [("counters.cnp_unmarked", Severity::Warning)]
    );
    // Nobody read marks (irdma of some kernels).
    assert_eq!(found_in(&pair(0.0, 5000.0, 0.0)[1..], 10), []);
}

#[test]
fn rnr_naks_that_equal_missing_buffers_are_the_programs() {
    let of = |missing, naks| {
        let port = "mlx5_0:1";
        only(&[
            count(port, Counter::PortOutOfBufferDrops, 10.0, 10.0 + missing),
            count(port, Counter::PortRnrNaksReceived, 0.0, naks),
        ])
    };
    let equal = of(4000.0, 4010.0);
    assert_eq!(
        (equal.id, equal.severity),
        ("counters.not_ready", Severity::Warning)
    );
    assert!(
        equal
            .text
            .starts_with("4,000 packets without a receive buffer, and as many RNR NAKs (4,010) in 10.0 s")
    );
    assert!(of(4000.0, 0.0).text.contains("this host's program"));
    assert!(of(0.0, 4000.0).text.contains("the peers' programs"));
    // 9 in 10 s.
    assert_eq!(of(9.0, 9.0).severity, Severity::Info);
}

#[test]
fn losses_are_joined_with_the_class_that_lost_them() {
    let port = "mlx5_0:1";
    let of = |losses, is_on: f64| {
        [
            count(port, Counter::PortOutOfSequencePackets, 5.0, 5.0 + losses),
            count(port, Counter::PortReceivedPackets, 0.0, 1e8),
            count("ens1", Counter::PriorityReceivedBytes, 0.0, 4e11).priority(0),
            count("ens1", Counter::PriorityReceivedBytes, 0.0, 0.0).priority(3),
            count("ens1", Counter::PfcEnabled, is_on, is_on).priority(0),
            count("ens1", Counter::PriorityDiscards, 0.0, 0.0)
                .priority(0)
                .details(&["buffer"]),
            // Another adapter's interface says nothing about this port.
            count("ens9", Counter::NetdevDiscards, 0.0, 0.0).details(&["received"]),
        ]
    };
    let found = found_in(&of(120_000.0, 0.0), 10);
    assert_eq!(ids(&found), [("counters.lossy_class", Severity::Warning)]);
    assert_eq!(
        found[0].text,
        "120,000 packets out of sequence (0.12 % of those received) in 10.0 s: priority 0 of ens1 has 100.0 % of the bytes and no PFC: a lossy class"
    );
    // 900 of 1e8 packets are less than one in 100,000.
    assert_eq!(
        ids(&found_in(&of(900.0, 0.0), 10)),
        [("counters.lossy_class", Severity::Info)]
    );
    // PFC is on: where they are lost is not said.
    let elsewhere = found_in(&of(120_000.0, 1.0), 10);
    assert_eq!(ids(&elsewhere), [("counters.lossy_class", Severity::Info)]);
    assert!(
        elsewhere[0]
            .text
            .ends_with("packets are lost on the way to this port, or behind it")
    );
}

#[test]
fn a_twin_that_differs_is_named() {
    let bytes = |object, sent| count(object, Counter::PortTransmittedBytes, 1e12, 1e12 + sent);
    let of = |other| found_in(&[bytes("mlx5_0:1", 40e9), bytes("mlx5_1:1", other)], 10);
    assert_eq!(ids(&of(20e9)), []);
    // An adapter for storage looks like that.
    let little = of(10e9);
    assert_eq!(ids(&little), [("counters.twins", Severity::Info)]);
    assert_eq!(little[0].object, "mlx5_1:1");
    assert!(
        little[0]
            .text
            .contains("carried 10.0 GB, and its twin mlx5_0:1 40.0 GB"),
        "{}",
        little[0].text
    );
    // Losses that the busier one does not have say that it is a rail in trouble: both rules warn.
    let lossy = found_in(
        &[
            bytes("mlx5_0:1", 40e9),
            bytes("mlx5_1:1", 10e9),
            count("mlx5_0:1", Counter::PortAckTimeouts, 0.0, 60.0),
            count("mlx5_1:1", Counter::PortAckTimeouts, 0.0, 150.0),
        ],
        10,
    );
    let twin = lossy
        .iter()
        .find(|finding| finding.id == "counters.twins")
        .unwrap();
    assert_eq!(
        (twin.severity, twin.object.as_str()),
        (Severity::Warning, "mlx5_1:1")
    );
    assert!(
        twin.text
            .contains("25.0 % of it, with 150 lost packets and 0 pause frames"),
        "{}",
        twin.text
    );
    // One that carries 5 % may be for storage.
    assert_eq!(ids(&of(2e9)), [("counters.twins", Severity::Info)]);
    // It may not be meant to carry anything.
    assert_eq!(ids(&of(0.0)), [("counters.twins", Severity::Info)]);
    let losses = [
        bytes("mlx5_0:1", 40e9),
        bytes("mlx5_1:1", 40e9),
        count("mlx5_0:1", Counter::PortAckTimeouts, 0.0, 500.0),
        count("mlx5_1:1", Counter::PortAckTimeouts, 0.0, 0.0),
    ];
    let found = found_in(&losses, 10);
    let twin = found
        .iter()
        .find(|finding| finding.id == "counters.twins")
        .unwrap();
    assert!(
        twin.text.starts_with(
            "500 packets out of sequence, sequence NAKs and timeouts, and its twin mlx5_1:1 none"
        )
    );
}

#[test]
fn a_watchdog_that_fires_again_and_again_states_what_it_dropped() {
    let queue = |counter, before, after| {
        count("Ethernet0", counter, before, after)
            .queue("3")
            .details(&["port"])
    };
    let of = |dropped| {
        only(&[
            queue(Counter::SwitchWatchdogShutdowns, 10.0, 180.0),
            queue(Counter::SwitchWatchdogRestores, 9.0, 179.0),
            queue(Counter::SwitchWatchdogDroppedPackets, 320.0, 320.0 + dropped),
        ])
    };
    let finding = of(90_000.0);
    assert_eq!(
        (finding.id, finding.severity),
        ("counters.watchdog", Severity::Critical)
    );
    assert_eq!(
        finding.text,
        "the PFC watchdog shut queue 3 170 times and opened it 170 times, and dropped 90,000 packets in 10.0 s: \
         the neighbour pauses it again and again; it is shut now"
    );
    assert_eq!(of(0.0).severity, Severity::Warning);
}

#[test]
fn pause_storms_of_an_adapter_are_a_warning_and_with_errors_critical() {
    let of = |warnings, errors| {
        only(&[
            count("ens1f0np0", Counter::PauseStormEvents, 5.0, 5.0 + warnings).details(&["warning"]),
            count("ens1f0np0", Counter::PauseStormEvents, 2.0, 2.0 + errors).details(&["error"]),
        ])
    };
    let finding = of(30.0, 0.0);
    assert_eq!(
        (finding.id, finding.severity),
        ("counters.pause_storm", Severity::Warning)
    );
    assert_eq!(finding.text, "the adapter reports 30 pause storms in 10.0 s");
    let finding = of(0.0, 1.0);
    assert_eq!(finding.severity, Severity::Critical);
    assert_eq!(
        finding.text,
        "the adapter reports 1 pause storm in 10.0 s: it gave up pausing, and dropped what came then"
    );
}

#[test]
fn discards_and_broken_frames_state_their_share() {
    let port = "Ethernet1/2";
    let of = |counter, details, value| {
        [
            count(port, counter, 0.0, value).details(details),
            count(port, Counter::SwitchInterfaceTransmittedPackets, 0.0, 1e9).details(&["port", "unicast"]),
            count(port, Counter::SwitchInterfaceReceivedPackets, 0.0, 1e9).details(&["port", "unicast"]),
        ]
    };
    let discarded = |value| {
        only(&of(
            Counter::SwitchInterfaceDiscards,
            &["port", "transmitted"],
            value,
        ))
    };
    // 20,000 of 1e9: 0.002 %.
    assert_eq!(discarded(20_000.0).severity, Severity::Warning);
    assert!(
        discarded(20_000.0)
            .text
            .contains("20,000 packets to be sent discarded, 0.0020 % of those transmitted")
    );
    assert_eq!(discarded(9_000.0).severity, Severity::Info);
    let broken = |value| only(&of(Counter::SwitchInterfaceFcsErrors, &["port"], value));
    // IEEE 802.3 allows ten frames in 1e9.
    assert_eq!(broken(10.0).severity, Severity::Info);
    assert_eq!(
        (broken(731.0).id, broken(731.0).severity),
        ("counters.broken_frames", Severity::Warning)
    );
}
