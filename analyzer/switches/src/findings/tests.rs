//! Rules that fire, and rules near their threshold that do not.

mod cases;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use roce_model::{Counter, Fact, SampleSource, Severity, Time};

use super::*;
use crate::device::Answers;
use crate::hypervisor;
use crate::inventory::HypervisorKind;
use cases::{CASES, Device};

/// Findings by the rules of devices. Those about counters, which hosts have, too, are tested beside their table.
fn found(device: &Device, is_alone: bool) -> Vec<DeviceFinding> {
    let before = Some(&device.before).filter(|_| !is_alone);
    let mut all = judge(before, &device.now, &Cluster::default());
    all.retain(|finding| !finding.id.starts_with("counters."));
    all
}

fn ids(findings: &[DeviceFinding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.id).collect()
}

#[test]
fn every_rule_has_texts_and_a_case() {
    let mut names = BTreeSet::new();
    for rule in rules() {
        assert!(names.insert(rule.id), "{} twice", rule.id);
        for text in [rule.title, rule.meaning, rule.method, rule.source, rule.next] {
            assert!(!text.is_empty(), "{}", rule.id);
        }
        assert!(["certain", "likely"].contains(&rule.confidence), "{}", rule.id);
        assert!(rule.severity > Severity::Ok, "{}", rule.id);
        assert_eq!(rule_of(rule.id).map(|rule| rule.id), Some(rule.id));
    }
    let cases: BTreeSet<&str> = CASES.iter().map(|case| case.id).collect();
    assert_eq!((cases.len(), &cases), (CASES.len(), &names));
    assert!(rule_of("switch.none").is_none());
}

#[test]
fn every_rule_fires_where_it_has_to() {
    for case in CASES {
        let device = Device::new(case.id, case.fires);
        let findings = found(&device, false);
        // It fires alone.
        assert_eq!(ids(&findings), [case.id], "{findings:#?}");
        let rule = rule_of(case.id).unwrap();
        assert_eq!(findings[0].severity, rule.severity, "{}", case.id);
        assert_eq!(
            (findings[0].next, findings[0].confidence),
            (rule.next, rule.confidence)
        );
        assert_eq!(findings[0].object, case.object, "{}", case.id);
        assert!(!findings[0].evidence.0.is_empty(), "{}", case.id);
        assert!(
            findings[0].text.contains(case.text),
            "{}: {}",
            case.id,
            findings[0].text
        );
    }
}

#[test]
fn no_rule_fires_near_its_threshold() {
    for case in CASES {
        let device = Device::new(case.id, case.rests);
        let findings = found(&device, false);
        assert!(!ids(&findings).contains(&case.id), "{findings:#?}");
    }
}

#[test]
fn totals_of_one_reading_are_info_at_most() {
    for case in CASES {
        let device = Device::new(case.id, case.fires);
        let rule = rule_of(case.id).unwrap();
        let alone = found(&device, true);
        let own = alone.iter().find(|finding| finding.id == case.id);
        let own = own.unwrap_or_else(|| panic!("{} is silent with one reading", case.id));
        let is_setting = rule.run.needs == Needs::One || case.id == "hypervisor.global_pause_instead_of_pfc";
        if is_setting {
            assert_eq!(own.severity, rule.severity, "{}", case.id);
        } else {
            assert_eq!(own.severity, Severity::Info, "{}", case.id);
            assert!(
                own.text.contains("since the counters were cleared"),
                "{}",
                own.text
            );
        }
    }
}

#[test]
fn a_reset_is_no_growth() {
    for case in CASES {
        if rule_of(case.id).unwrap().run.needs == Needs::One {
            continue;
        }
        let device = Device::new(case.id, case.fires);
        let mut before = device.before.clone();
        // Every count was higher before.
        for sample in &mut before.samples {
            if sample.counter.kind() == roce_model::SampleKind::Cumulative {
                sample.value += 1e12;
            }
        }
        let findings = judge(Some(&before), &device.now, &Cluster::default());
        let grown = findings
            .iter()
            .filter(|finding| finding.severity > Severity::Info);
        // A setting is known from one reading.
        let grown = grown.filter(|finding| finding.id != "hypervisor.global_pause_instead_of_pfc");
        assert_eq!(grown.count(), 0, "{}: {findings:#?}", case.id);
    }
}

#[test]
fn an_empty_reading_is_neither_good_nor_bad() {
    for source in [SampleSource::Switch, SampleSource::Hypervisor, SampleSource::Host] {
        let reading = Reading::new(source, "a", Time(5));
        assert_eq!(judge(None, &reading, &Cluster::default()), []);
        assert_eq!(judge(Some(&reading), &reading, &Cluster::default()), []);
    }
}

#[test]
fn pairs_of_xoff_and_xon_are_evidence_of_global_pause() {
    let mut now = Reading::new(SampleSource::Hypervisor, "esxi1", Time(5));
    for (counter, value) in [
        (Counter::HypervisorPauseReceivedFrames, 133_704_872.0),
        (Counter::HypervisorPauseTransitions, 66_852_436.0),
    ] {
        now.push(counter, "vmnic5", value);
    }
    for priority in 0..8 {
        now.push(Counter::HypervisorPfcEnabled, "vmnic5", 0.0).priority = Some(priority);
    }
    let findings = judge(None, &now, &Cluster::default());
    assert_eq!(ids(&findings), ["hypervisor.global_pause_instead_of_pfc"]);
    // The setting of 802.3x was not read, and the count has an unknown start.
    assert_eq!(findings[0].severity, Severity::Info);
    assert!(
        findings[0]
            .text
            .contains("twice the transitions are the frames received"),
        "{}",
        findings[0].text
    );
    let evidence: BTreeMap<_, _> = findings[0].evidence.0.iter().cloned().collect();
    assert_eq!(
        evidence.get("transitions_in_total"),
        Some(&Fact::Number(66_852_436.0))
    );
    // PFC that was not read decides nothing.
    now.samples
        .retain(|sample| sample.counter != Counter::HypervisorPfcEnabled);
    assert_eq!(judge(None, &now, &Cluster::default()), []);
}

#[test]
fn many_places_are_counted() {
    let mut now = Reading::new(SampleSource::Switch, "leaf1", Time(5));
    for port in 0..100 {
        let object = format!("Ethernet1/{port}");
        now.push(Counter::SwitchMmuDroppedPackets, &object, 1.0).details = vec!["port".into()];
    }
    let findings = judge(None, &now, &Cluster::default());
    assert_eq!(findings.len(), MAX_FINDINGS_OF_RULE);
    assert!(
        findings[MAX_FINDINGS_OF_RULE - 1]
            .text
            .ends_with("(36 more places have this finding)")
    );
}

#[test]
fn findings_are_sorted_by_severity() {
    let mut device = Device::new("switch.no_watchdog", |_| {});
    for (counter, value) in [
        (Counter::SwitchMmuDroppedPackets, 5.0),
        (Counter::SwitchPfcReceivedFrames, 5.0),
    ] {
        device.count(counter, "Ethernet1/1", None, &["port"], 0.0, value);
    }
    device.now.has_watchdog = Some(false);
    device
        .state(Counter::SwitchPfcEnabled, "Ethernet1/1", &["port"], 1.0)
        .priority = Some(3);
    let findings = judge(Some(&device.before), &device.now, &Cluster::default());
    assert_eq!(
        ids(&findings),
        ["switch.mmu_drops", "switch.no_watchdog", "counters.paused"]
    );
    assert_eq!(worst_of(&findings), Some(Severity::Critical));
}

/// The findings of a folder with recorded answers of ESXi.
fn of_folder(folder: &str) -> Vec<DeviceFinding> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/fabric")
        .join(folder);
    let mut answers = Answers::default();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        answers.insert(
            path.file_stem().unwrap().to_str().unwrap(),
            &fs::read_to_string(&path).unwrap(),
        );
    }
    judge(
        None,
        &hypervisor::read(HypervisorKind::Esxi, "esxi1", Time(5), &answers),
        &Cluster::default(),
    )
}

#[test]
fn recorded_hosts_have_the_findings_that_belong_to_them() {
    let of = |folder| -> Vec<(&str, Severity)> {
        of_folder(folder)
            .into_iter()
            .map(|finding| (finding.id, finding.severity))
            .collect()
    };
    assert_eq!(
        of("esxi-global-pause"),
        [
            ("hypervisor.global_pause_instead_of_pfc", Severity::Warning),
            ("hypervisor.pfc_not_negotiated", Severity::Warning),
            ("hypervisor.module_parameters", Severity::Warning),
            // 12 packets since an unknown start.
            ("hypervisor.drops", Severity::Info),
        ]
    );
    let global = &of_folder("esxi-global-pause")[0];
    assert!(
        global
            .text
            .contains("133,704,872 802.3x pause frames since the counters were cleared"),
        "{}",
        global.text
    );
    assert!(
        global
            .text
            .ends_with("twice the transitions are the frames received: XOFF and XON in pairs")
    );
    // PFC is on: no finding is about settings. Its driver counted three storms of severity warning at an unknown time.
    assert_eq!(
        of("esxi-pfc"),
        [
            ("hypervisor.pause_storm", Severity::Info),
            ("hypervisor.drops", Severity::Info)
        ]
    );
    assert_eq!(of("esxi-no-pauses"), []);
}

#[test]
fn counts_below_a_threshold_are_of_a_lower_severity() {
    let warned = Device::new("hypervisor.pause_storm", |device| {
        device.count(
            Counter::HypervisorPauseStormEvents,
            "vmnic5",
            None,
            &["warning"],
            0.0,
            2.0,
        );
    });
    let findings = found(&warned, false);
    assert_eq!(
        (findings[0].id, findings[0].severity),
        ("hypervisor.pause_storm", Severity::Warning)
    );
    assert_eq!(findings[0].text, "2 pause storms of severity warning in 10.0 s");
}

#[test]
fn packets_that_could_be_marked_are_counted_where_the_switch_does() {
    // SAI has one counter for all that WRED drops.
    let of_sonic = Device::new("switch.wred_drops", |device| {
        let counter = Counter::SwitchQueueWredDroppedPackets;
        device.count(counter, "Ethernet0", Some("3"), &["port", "any"], 1.0, 6.0);
    });
    let findings = found(&of_sonic, false);
    assert_eq!(ids(&findings), ["switch.wred_drops"]);
    assert_eq!(findings[0].text, "WRED dropped 5 packets in 10.0 s");
}

/// DCBX turns PFC on without parameters of the module; one adapter without it needs them.
#[test]
fn parameters_are_needed_where_dcbx_does_not_turn_pfc_on() {
    let found_with = |priorities: [f64; 2]| {
        let mut now = Reading::new(SampleSource::Hypervisor, "esxi1", Time(5));
        for (name, is_on) in ["vmnic5", "vmnic6"].into_iter().zip(priorities) {
            now.adapters.push(crate::device::Adapter {
                name: name.into(),
                driver: "nmlx5_core".into(),
                ..Default::default()
            });
            now.push(Counter::HypervisorPfcEnabled, name, is_on).priority = Some(3);
        }
        for name in ["nmlx5_core.pfctx", "nmlx5_core.pfcrx"] {
            now.settings.insert(name.into(), String::new());
        }
        let findings = judge(None, &now, &Cluster::default());
        ids(&findings).contains(&"hypervisor.module_parameters")
    };
    assert!(!found_with([1.0, 1.0]));
    assert!(found_with([1.0, 0.0]));
    assert!(found_with([0.0, 0.0]));
}

#[test]
fn frames_by_priority_count_where_a_port_has_no_sum() {
    let mut device = Device::new("switch.no_watchdog", |_| {});
    let by_priority = Counter::SwitchPriorityPfcReceivedFrames;
    device.count(by_priority, "Ethernet1/1", None, &["port"], 0.0, 5.0);
    device.count(by_priority, "Ethernet1/2", None, &["port"], 0.0, 5.0);
    device.count(
        Counter::SwitchPfcReceivedFrames,
        "Ethernet1/2",
        None,
        &["port"],
        0.0,
        5.0,
    );
    let findings = judge(Some(&device.before), &device.now, &Cluster::default());
    let texts: Vec<&str> = findings.iter().map(|finding| finding.text.as_str()).collect();
    assert_eq!(texts, ["paused by the neighbour by 5 frames (PFC) in 10.0 s"; 2]);
}

/// A recording has no times: the device's uptime tells how long it is between two.
#[test]
fn recordings_are_between_or_as_long_as_the_switch_ran() {
    let judged = |uptimes: Option<[f64; 2]>| {
        let reading = |at: usize| {
            let mut reading = Reading::new(SampleSource::Switch, "leaf1", Time(0));
            let of_port = [400.0, 22_100.0][at];
            reading
                .push(Counter::SwitchMmuDroppedPackets, "Ethernet1/1", of_port)
                .details = vec!["port".into()];
            let seconds = reading.push(
                Counter::SwitchPriorityPfcReceivePausedSeconds,
                "Ethernet1/1",
                [0.5, 22.2][at],
            );
            seconds.details = vec!["port".into()];
            seconds.priority = Some(3);
            if let Some(uptimes) = uptimes {
                reading.push(Counter::SwitchUptime, "", uptimes[at]);
            }
            reading
        };
        let findings = judge(Some(&reading(0)), &reading(1), &Cluster::default());
        let texts: Vec<String> = findings.into_iter().map(|finding| finding.text).collect();
        assert!(!texts.iter().any(|text| text.contains(" 0.0 s")), "{texts:?}");
        texts
    };
    let between = judged(None);
    assert!(
        between[0].ends_with("dropped on ingress between the recordings"),
        "{between:?}"
    );
    // 21.7 of 100 s.
    let timed = judged(Some([1_000.0, 1_100.0]));
    assert!(
        timed[1]
            .starts_with("paused by the neighbour 21.7 % of the time: 21.70 s (PFC, priority 3) in 100.0 s"),
        "{timed:?}"
    );
}

/// A policy of the system without ECN does not matter where each port with PFC has one of its own.
#[test]
fn ports_without_ecn_are_named() {
    let found_with = |own: &[(&str, bool)]| {
        let mut now = Reading::new(SampleSource::Switch, "leaf1", Time(5));
        now.queue_of_dscp.insert(26, "3".into());
        for port in ["Ethernet1/1", "Ethernet1/2", "Ethernet1/3"] {
            let pfc = now.push(Counter::SwitchPfcEnabled, port, 1.0);
            pfc.priority = Some(3);
            pfc.details = vec!["port".into()];
        }
        let all = own.iter().chain(&[("", false)]);
        now.classes = all
            .map(|(interface, has_ecn)| crate::device::QueueClass {
                interface: (*interface).into(),
                queue: "3".into(),
                priority_level: None,
                has_ecn: *has_ecn,
            })
            .collect();
        let findings = judge(None, &now, &Cluster::default());
        let of_ecn = findings
            .into_iter()
            .filter(|finding| finding.id == "switch.ecn_off");
        of_ecn
            .map(|finding| (finding.object, finding.text))
            .collect::<Vec<_>>()
    };
    let all = [
        ("Ethernet1/1", true),
        ("Ethernet1/2", true),
        ("Ethernet1/3", true),
    ];
    assert_eq!(found_with(&all), []);
    let text = |port: &str, why: &str| {
        let said = format!("queue 3 carries RoCE data and has no ECN at {port}{why}");
        (port.to_owned(), said)
    };
    let rest = ": this port has no queuing policy of its own, and that of the switch does not mark";
    // The system's policy is that of the third port alone.
    assert_eq!(found_with(&all[..2]), [text("Ethernet1/3", rest)]);
    assert_eq!(
        found_with(&[("Ethernet1/1", true), ("Ethernet1/2", false)]),
        [text("Ethernet1/2", ""), text("Ethernet1/3", rest)]
    );
    // No port has one of its own: it is that of all three.
    assert_eq!(
        found_with(&[]),
        [(
            String::new(),
            "queue 3 carries RoCE data and has no ECN at Ethernet1/1, Ethernet1/2 and Ethernet1/3".to_owned()
        )]
    );
}

#[test]
fn the_queue_of_roce_is_that_of_its_dscp_or_the_lossless_one() {
    let lossless = |queues: &[&str]| {
        let mut device = Device::new("switch.ecn_off", |_| {});
        for queue in queues {
            device
                .state(Counter::SwitchQueueNoDrop, "Ethernet1/1", &["port"], 1.0)
                .queue = Some((*queue).into());
        }
        device
    };
    let queue = |device: &Device| {
        let now = CounterReading {
            samples: &device.now.samples,
            start: SystemStart::default(),
        };
        let growths = Growths::new(None, now, &());
        facts::Facts::new(&growths, &device.now, &Cluster::default()).data_queue("Ethernet1/1")
    };
    assert_eq!(queue(&lossless(&[])), None);
    assert_eq!(queue(&lossless(&["5"])).as_deref(), Some("5"));
    // The queue of the cluster's priority counts among several; without it none is known.
    assert_eq!(queue(&lossless(&["5", "3"])).as_deref(), Some("3"));
    assert_eq!(queue(&lossless(&["5", "4"])), None);
    let mut mapped = lossless(&["5", "3"]);
    mapped.now.queue_of_dscp.insert(26, "5".into());
    assert_eq!(queue(&mapped).as_deref(), Some("5"));
}

#[test]
fn a_queue_that_is_kept_shut_is_one_finding() {
    let mut device = Device::new("switch.stormed", |device| {
        device
            .now
            .stormed_queues
            .insert(("Ethernet1/1".to_owned(), "3".to_owned()));
    });
    let judged = |device: &Device| {
        let all = judge(Some(&device.before), &device.now, &Cluster::default());
        all.into_iter()
            .filter(|finding| finding.text.contains("watchdog"))
            .map(|finding| (finding.id, finding.severity, finding.text))
            .collect::<Vec<_>>()
    };
    let [(id, ..)] = &judged(&device)[..] else {
        panic!("{:?}", judged(&device));
    };
    assert_eq!(*id, "switch.stormed");
    // It shut the queue twice since the reading before: this finding has the counts.
    let shut = Counter::SwitchWatchdogShutdowns;
    device.count(shut, "Ethernet1/1", Some("3"), &[], 5.0, 7.0);
    let [(id, severity, text)] = &judged(&device)[..] else {
        panic!("{:?}", judged(&device));
    };
    assert_eq!((*id, *severity), ("counters.watchdog", Severity::Critical));
    assert!(text.contains("2 times") && text.contains("shut now"), "{text}");
    // Another port's queue is another matter.
    device.count(shut, "Ethernet1/2", Some("3"), &[], 0.0, 1.0);
    assert_eq!(judged(&device).len(), 2);
}
