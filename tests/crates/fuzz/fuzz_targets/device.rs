//! Answers of switches and hypervisors. The first byte picks the kind; the rest is cut at 0xff into answers to the questions of that kind,
//! in their order. Answers can lead to further questions, which get the next pieces.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use roce_model::Time;
use roce_switches::device::{Answers, Question, Reading};
use roce_switches::inventory::{HypervisorKind, SwitchKind};
use roce_switches::{hypervisor, switch};

/// The kinds by their numbers; `None`: ESXi.
const SWITCHES: [Option<SwitchKind>; 6] = [
    Some(SwitchKind::Nexus),
    Some(SwitchKind::Sonic),
    Some(SwitchKind::Eos),
    Some(SwitchKind::Cumulus),
    None,
    Some(SwitchKind::Other),
];

/// Labels of quantities that are an interface's.
const OF_INTERFACE: &str = "kind";

fuzz_target!(|data: &[u8]| -> Corpus {
    let Some((kind, rest)) = roce_fuzz::kind(data, 6) else {
        return Corpus::Reject;
    };
    let switch = SWITCHES.get(kind).copied().flatten();
    let questions = |known: &Answers| match switch {
        Some(kind) => switch::questions(kind, known),
        None => hypervisor::questions(HypervisorKind::Esxi, &[]),
    };
    let mut pieces = rest.split(|byte| *byte == 0xff).map(String::from_utf8_lossy);
    let mut answers = Answers::default();
    let mut asked: Vec<Question> = Vec::new();
    for _ in 0..2 {
        for question in questions(&answers) {
            if asked.contains(&question) {
                continue;
            }
            if let Some(piece) = pieces.next() {
                answers.add(&question, &piece);
            }
            asked.push(question);
        }
    }
    let reading = match switch {
        Some(kind) => switch::read(kind, "a", Time(1), &answers),
        None => hypervisor::read(HypervisorKind::Esxi, "a", Time(1), &answers),
    };
    check(&reading);
    let _ = switch::nxapi_bodies(&String::from_utf8_lossy(rest));
    Corpus::Keep
});

fn check(reading: &Reading) {
    for sample in &reading.samples {
        assert!(sample.value.is_finite() && sample.value >= 0.0, "{sample:?}");
        let labels = sample.counter.labels();
        assert_eq!(sample.details.len(), labels.len(), "{sample:?}");
        if labels.contains(&OF_INTERFACE) {
            assert!(!sample.object.is_empty(), "{sample:?}");
        }
        assert!(sample.priority.is_none_or(|priority| priority < 8), "{sample:?}");
        assert!(sample.queue.as_deref() != Some(""), "{sample:?}");
    }
    for neighbor in &reading.neighbors {
        assert!(!neighbor.interface.is_empty(), "{neighbor:?}");
    }
    for class in &reading.classes {
        assert!(!class.queue.is_empty(), "{class:?}");
    }
    assert!(reading.queue_of_dscp.keys().all(|dscp| *dscp < 64));
}
