//! Rules that fire, and readings near their thresholds that give nothing.

mod failures;
mod losses;

use std::borrow::Cow;
use std::collections::BTreeSet;

use roce_model::{Counter, Sample, SampleSource, Severity, SystemStart, Time};

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
    let start = SystemStart {
        uptime,
        ..SystemStart::default()
    };
    CounterReading { samples, start }
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
    let found = found_in(&pairs, 10);
    assert!(
        found.iter().all(|finding| finding.id == "counters.restarted"),
        "{found:#?}"
    );
    assert_eq!(found.len(), 3);
    assert_eq!(
        found[2].text,
        "between the readings 1 of 2 counters above 0 fell and began again: it restarted, its driver was loaded again, somebody cleared them, \
         or the readings are in the wrong order; what they counted meanwhile is not known"
    );
}

/// Two recordings with uptimes in seconds.
fn recorded(pairs: &[CountedPair], uptimes: [f64; 2]) -> Vec<CounterFinding> {
    let (before, now) = (samples(pairs, 0, 0), samples(pairs, 1, 0));
    let readings = [
        reading(&before, Some(uptimes[0])),
        reading(&now, Some(uptimes[1])),
    ];
    judge(&Growths::new(Some(readings[0]), readings[1], &Links))
}

#[test]
fn behind_a_restart_growths_are_those_since_then() {
    let pairs = [
        // 40 s paused in a life of a day, 5 s of 100 s since the restart.
        count("ens1", Counter::PfcReceivePausedSeconds, 40.0, 5.0).priority(3),
        // It counted beyond its old value: 300 frames of 100 s, and not 100.
        count("ens1", Counter::PauseReceivedFrames, 200.0, 300.0),
        // It was 0: all is new.
        count("mlx5_0:1", Counter::PortOutOfBufferDrops, 0.0, 500.0),
        // 32 bits, from the upper half to the lower one: no wrap.
        count("mlx5_1:1", Counter::PortRnrNaksReceived, 3e9, 50.0),
        // Nothing at this port fell: 12 may be of either start.
        count("mlx5_2:1", Counter::PortCnpIgnored, 10.0, 12.0),
    ];
    let found = recorded(&pairs, [86_400.0, 100.0]);
    // They are totals of a life.
    assert!(found.iter().all(|finding| finding.severity == Severity::Info));
    let texts: Vec<String> = found
        .iter()
        .map(|finding| format!("{} {}: {}", finding.id, finding.object, finding.text))
        .collect();
    assert_eq!(
        texts,
        [
            "counters.restarted : it restarted between the readings (up 86,400 seconds before, 100 seconds now): 2 of 4 counters above 0 \
             fell and began again: growths are those since the restart, and nothing is known of the time before it",
            "counters.paused ens1: paused by the neighbour 5.00 % of the time: 5.00 s (PFC, priority 3) in the 100.0 s since the restart",
            "counters.paused ens1: paused by the neighbour by 300 frames, at most 0.10 % of the time at 100 Gbit/s (65,535 quanta of 512 bit \
             times each) (802.3x, the whole link) in the 100.0 s since the restart",
            "counters.not_ready mlx5_0:1: 500 packets without a receive buffer in the 100.0 s since the restart: this host's program posts \
             receives too late",
            "counters.not_ready mlx5_1:1: 50 RNR NAKs received in the 100.0 s since the restart: the peers' programs post receives too late, \
             and this sender waits for each",
        ]
    );
    // Ten seconds that are known: no restart, 100 frames.
    let on = recorded(&pairs[1..2], [86_400.0, 86_410.0]);
    assert_eq!(on.len(), 1);
    assert!(
        on[0].text.contains("by 100 frames") && on[0].text.ends_with("in 10.0 s"),
        "{}",
        on[0].text
    );
}

#[test]
fn a_restart_of_unknown_time_leaves_nothing_to_judge() {
    let pairs = [
        count("ens1", Counter::PfcReceivePausedSeconds, 40.0, 39.0).priority(3),
        count("mlx5_0:1", Counter::PortOutOfBufferDrops, 0.0, 500.0),
    ];
    let (before, now) = (samples(&pairs, 0, 0), samples(&pairs, 1, 0));
    let start = |boot_id| SystemStart {
        boot_id: Some(boot_id),
        ..SystemStart::default()
    };
    let reading = |samples, boot_id| CounterReading {
        samples,
        start: start(boot_id),
    };
    let judged = |boot_id| {
        judge(&Growths::new(
            Some(reading(&before, 7)),
            reading(&now, boot_id),
            &Links,
        ))
    };
    let found = judged(8);
    assert_eq!(ids(&found), [("counters.restarted", Severity::Info)]);
    assert!(
        found[0].text.contains("(another boot id)")
            && found[0]
                .text
                .ends_with("nothing is known of the time between the readings"),
        "{}",
        found[0].text
    );
    // One start: only the port's counter fell, and the other port has its growth.
    assert_eq!(
        ids(&judged(7)),
        [
            ("counters.restarted", Severity::Info),
            ("counters.not_ready", Severity::Warning)
        ]
    );
}

#[test]
fn counters_of_an_object_begin_again_together() {
    let port = "Eth1/1";
    let pairs = [
        count(port, Counter::SwitchInterfaceReceivedPackets, 9e9, 5e6).details(&["port", "all"]),
        count(port, Counter::SwitchInterfaceFcsErrors, 4.0, 90.0).details(&["port"]),
        // Another command clears these.
        count(port, Counter::SwitchWatchdogShutdowns, 1.0, 3.0)
            .queue("3")
            .details(&["port"]),
        // A present value of the driver may fall.
        count("mlx5_0:1", Counter::PortHwCounter, 50.0, 49.0).details(&["active_things"]),
    ];
    let found = found_in(&pairs, 10);
    assert_eq!(
        ids(&found),
        [
            ("counters.restarted", Severity::Info),
            ("counters.watchdog", Severity::Warning)
        ],
        "{found:#?}"
    );
    // Ports of a switch that somebody cleared are one finding.
    let names = ["Eth1/1", "Eth1/2", "Eth1/3", "Eth1/4", "Eth1/5"];
    let many: Vec<CountedPair> = names
        .into_iter()
        .map(|name| count(name, Counter::SwitchPfcReceivedFrames, 70.0, 2.0).details(&["port"]))
        .collect();
    let found = found_in(&many, 10);
    assert_eq!(ids(&found), [("counters.restarted", Severity::Info)]);
    assert!(
        found[0]
            .text
            .starts_with("between the readings all 5 counters above 0 fell and began again, at 5 objects: "),
        "{}",
        found[0].text
    );
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
    assert!(twin.text.starts_with(
        "500 losses (packets out of sequence, sequence NAKs or timeouts), and its twin mlx5_1:1 none"
    ));
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
    // EOS counts no drops: none are stated.
    let without = only(&[
        queue(Counter::SwitchWatchdogShutdowns, 10.0, 11.0),
        queue(Counter::SwitchWatchdogRestores, 10.0, 10.0),
    ]);
    assert_eq!(
        without.text,
        "the PFC watchdog shut queue 3 1 time and opened it 0 times in 10.0 s: the neighbour paused it for too long; it is shut now"
    );
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
    // Each error is of a storm that was warned of.
    assert_eq!(
        of(3.0, 2.0).text,
        "the adapter reports 3 pause storms in 10.0 s: 2 times it gave up pausing, and dropped what came then"
    );
}

#[test]
fn evidence_is_printed_in_words() {
    let found = only(&[count("ens1", Counter::PauseStormEvents, 5.0, 1_205.0).details(&["warning"])]);
    assert_eq!(found.evidence_words(), "seconds 10, warnings 1,200, errors 0");
}

#[test]
fn ignored_cnps_are_judged_by_their_share() {
    let of = |ignored, handled| {
        only(&[
            count("mlx5_0:1", Counter::PortCnpIgnored, 5.0, 5.0 + ignored),
            count("mlx5_0:1", Counter::PortCnpHandled, 9.0, 9.0 + handled),
        ])
    };
    let few = of(3.0, 20_000.0);
    assert_eq!((few.id, few.severity), ("counters.cnp_ignored", Severity::Info));
    assert!(
        few.text.starts_with("3 CNPs of 20,003 (0.01 %) ignored"),
        "{}",
        few.text
    );
    assert_eq!(of(8_000.0, 0.0).severity, Severity::Critical);
    assert_eq!(of(8_000.0, 2_000.0).severity, Severity::Critical);
}

#[test]
fn two_names_of_one_quantity_are_one_series() {
    let oos = |before, after| count("bnxt_re0:1", Counter::PortOutOfSequencePackets, before, after);
    assert_eq!(found_in(&[oos(3.0, 3.0), oos(8_700.0, 8_700.0)], 10), []);
    let grown = only(&[oos(3.0, 3.0), oos(8_700.0, 8_900.0)]);
    assert!(
        grown.text.starts_with("200 packets out of sequence"),
        "{}",
        grown.text
    );
}
