//! Readings of the folders tests/data/fabric/esxi-*, and of texts that are cut or foreign.

mod columns;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use roce_model::{Counter, Sample, SampleSource, Time};

use super::*;
use crate::device::{Adapter, Form, Reason};

/// The answers of a folder, by the names of its files without their ending.
fn answers(folder: &str) -> Answers {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/fabric")
        .join(folder);
    let mut answers = Answers::default();
    for entry in fs::read_dir(path).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        answers.insert(&name, &fs::read_to_string(&path).unwrap());
    }
    answers
}

fn reading_of(answers: &Answers) -> Reading {
    let mut reading = Reading::new(SampleSource::Hypervisor, "esxi1", Time(5));
    read(answers, &mut reading);
    reading
}

fn folder(folder: &str) -> Reading {
    reading_of(&answers(folder))
}

fn value(reading: &Reading, counter: Counter, priority: Option<u8>) -> Option<f64> {
    let mut all = reading.of(counter).filter(|sample| sample.priority == priority);
    let first = all.next().map(|sample| sample.value);
    assert_eq!(all.next(), None, "{counter:?} twice");
    first
}

/// Every series of esxcli's statistics: packets and bytes of two directions (4), drops (2), counts of multicast and broadcast (4), errors (13).
const ESXCLI: usize = 4 + 2 + 4 + 13;
/// Link, rate and MTU.
const LIST: usize = 3;

#[test]
fn every_folder_has_exactly_its_series() {
    let expected = [
        // 7 names of the driver that are known (2 control frames, received and sent frames, time, 2 storms), 2 that are not; 802.3x on
        // two directions; mode and eight priorities.
        ("esxi-pfc", LIST + ESXCLI + 7 + 2 + 2 + 9),
        // 11 names of the driver; 802.3x; mode and eight priorities; no frames of DCB, as the text has none.
        ("esxi-global-pause", LIST + ESXCLI + 11 + 2 + 9),
        // Packets of the driver and its pauses; mode and eight priorities.
        ("esxi-cee", LIST + 2 + 9),
        ("esxi-no-pauses", LIST + ESXCLI + 2),
        // vmnic5 is up without answers of its own, so vmnic6 alone was wanted.
        ("esxi-down", LIST + ESXCLI),
        // Two of the three numbers of esxcli, one of the two of the driver, and the mode.
        ("esxi-truncated", 2 + 1 + 1),
        // Mode, eight priorities, and eight frames for each direction.
        ("esxi-no-vsish", LIST + ESXCLI + 9 + 16),
    ];
    for (name, count) in expected {
        let reading = folder(name);
        let mut series: Vec<_> = reading
            .samples
            .iter()
            .map(|sample| {
                (
                    sample.object.clone(),
                    sample.counter,
                    sample.priority,
                    sample.details.clone(),
                )
            })
            .collect();
        assert_eq!(series.len(), count, "{name}: {series:#?}");
        series.sort();
        series.dedup();
        assert_eq!(series.len(), count, "{name}: a series twice");
        for sample in &reading.samples {
            assert_eq!(
                sample.details.len(),
                sample.counter.labels().len(),
                "{name}: {sample:?}"
            );
        }
    }
}

#[test]
fn a_vmnic_with_pfc() {
    let reading = folder("esxi-pfc");
    assert_eq!(
        value(&reading, Counter::HypervisorPfcReceivedFrames, Some(3)),
        Some(41_210.0)
    );
    assert_eq!(
        value(&reading, Counter::HypervisorPfcTransmittedFrames, Some(3)),
        Some(118.0)
    );
    assert_eq!(
        value(&reading, Counter::HypervisorPfcReceivedFrames, Some(4)),
        None
    );
    // 2,500,000 us.
    assert_eq!(
        value(&reading, Counter::HypervisorPfcReceivePausedSeconds, Some(3)),
        Some(2.5)
    );
    let enabled: Vec<f64> = reading
        .of(Counter::HypervisorPfcEnabled)
        .map(|sample| sample.value)
        .collect();
    assert_eq!(enabled, [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(
        value(&reading, Counter::HypervisorReceivedPackets, None),
        Some(701_280_499_176.0)
    );
    // 2^53 + 1 is read as an integer; the nearest value is 2^53.
    assert_eq!(
        value(&reading, Counter::HypervisorReceivedBytes, None),
        Some(9_007_199_254_740_992.0)
    );
    // 100,000 Mbit/s.
    assert_eq!(value(&reading, Counter::HypervisorNicRate, None), Some(12.5e9));
    let storms: Vec<_> = reading
        .of(Counter::HypervisorPauseStormEvents)
        .map(|sample| (&*sample.details[0], sample.value))
        .collect();
    assert_eq!(storms, [("warning", 3.0), ("error", 0.0)]);
    let others: Vec<_> = reading
        .of(Counter::HypervisorNicStatistic)
        .map(|sample| &*sample.details[0])
        .collect();
    assert_eq!(others[4..], ["rx_prio3_pause_transition", "rxSteerMissed"]);
    assert_eq!(
        reading.adapters,
        [Adapter {
            name: "vmnic3".into(),
            driver: "nmlx5_core".into(),
            driver_version: "4.23.0.66".into(),
            firmware: "16.35.2000".into(),
            mac: "00:62:0b:00:00:03".into(),
        }]
    );
    assert_eq!(
        (
            reading.description.version.as_str(),
            reading.description.build.as_str()
        ),
        ("8.0.2", "Releasebuild-22380479")
    );
    assert_eq!(
        reading.settings.get("nmlx5_core.pfctx").map(String::as_str),
        Some("0x08")
    );
    assert_eq!(reading.problems, []);
}

#[test]
fn global_pause_is_not_pfc() {
    let reading = folder("esxi-global-pause");
    let (frames, transitions) = (133_704_872.0, 66_852_436.0);
    assert_eq!(2 * 66_852_436, 133_704_872);
    assert_eq!(
        value(&reading, Counter::HypervisorPauseReceivedFrames, None),
        Some(frames)
    );
    assert_eq!(
        value(&reading, Counter::HypervisorPauseTransitions, None),
        Some(transitions)
    );
    assert_eq!(
        value(&reading, Counter::HypervisorPauseControlReceivedFrames, None),
        Some(133_704_835.0)
    );
    // 9,120,077,311 us.
    let paused = value(&reading, Counter::HypervisorPauseReceivePausedSeconds, None).unwrap();
    assert!((paused - 9_120.077_311).abs() < 1e-6, "{paused}");
    for counter in [
        Counter::HypervisorPfcReceivedFrames,
        Counter::HypervisorPfcTransmittedFrames,
        Counter::HypervisorPfcEnabled,
        Counter::HypervisorPfcReceivePausedSeconds,
    ] {
        assert!(
            reading.of(counter).all(|sample| sample.value == 0.0),
            "{counter:?}"
        );
    }
    let on: Vec<_> = reading
        .of(Counter::HypervisorPauseEnabled)
        .map(|sample| (&*sample.details[0], sample.value))
        .collect();
    assert_eq!(on, [("received", 1.0), ("transmitted", 1.0)]);
    let modes: Vec<_> = reading
        .of(Counter::HypervisorDcbMode)
        .map(|sample| &*sample.details[0])
        .collect();
    assert_eq!(modes, ["unknown"]);
    assert_eq!(
        reading.settings.get("nmlx5_core.pfcrx").map(String::as_str),
        Some("")
    );
}

#[test]
fn cee_without_pfc_enables_no_priority() {
    let reading = folder("esxi-cee");
    let modes: Vec<_> = reading
        .of(Counter::HypervisorDcbMode)
        .map(|sample| &*sample.details[0])
        .collect();
    assert_eq!(modes, ["cee"]);
    // The text has `PFC Enabled: false` and a configuration with priority 3.
    assert!(
        reading
            .of(Counter::HypervisorPfcEnabled)
            .all(|sample| sample.value == 0.0)
    );
    assert_eq!(
        value(&reading, Counter::HypervisorPauseReceivedFrames, None),
        Some(9.0)
    );
}

#[test]
fn what_has_no_answer_is_absent_and_has_a_reason() {
    let problems = |name: &str| -> Vec<(Reason, String)> {
        let reading = folder(name);
        reading
            .problems
            .iter()
            .map(|problem| (problem.reason, problem.text.clone()))
            .collect()
    };
    let down = problems("esxi-down");
    assert_eq!(down.len(), 2, "{down:?}");
    assert_eq!(
        down[0],
        (
            Reason::Unsupported,
            "vmnic6: VSISHCmdGetInt():Get failed: Unable to get stats".into()
        )
    );
    assert_eq!(
        down[1],
        (
            Reason::Unsupported,
            "vmnic6: Error: DCB not supported on vmnic6".into()
        )
    );
    assert_eq!(
        value(&folder("esxi-down"), Counter::HypervisorNicUp, None),
        Some(0.0)
    );
    let without = problems("esxi-no-vsish");
    assert_eq!(
        without,
        [(Reason::Unsupported, "vmnic5: sh: vsish: not found".into())]
    );
    // DCB's own counts of frames are then what is known.
    let reading = folder("esxi-no-vsish");
    assert_eq!(
        value(&reading, Counter::HypervisorPfcReceivedFrames, Some(3)),
        Some(41_210.0)
    );
    assert_eq!(
        value(&reading, Counter::HypervisorPfcTransmittedFrames, Some(3)),
        Some(118.0)
    );
    assert_eq!(
        value(&reading, Counter::HypervisorPfcReceivedFrames, Some(0)),
        Some(0.0)
    );
    let driver = folder("esxi-no-pauses");
    assert_eq!(value(&driver, Counter::HypervisorPauseReceivedFrames, None), None);
    assert_eq!(value(&driver, Counter::HypervisorNicMtu, None), Some(1_500.0));
}

#[test]
fn a_number_that_is_cut_is_not_a_number() {
    let reading = folder("esxi-truncated");
    assert_eq!(
        value(&reading, Counter::HypervisorTransmittedPackets, None),
        Some(687_061_948_450.0)
    );
    assert_eq!(value(&reading, Counter::HypervisorReceivedBytes, None), None);
    assert_eq!(
        value(&reading, Counter::HypervisorPauseReceivedFrames, None),
        Some(133_704_872.0)
    );
    assert_eq!(value(&reading, Counter::HypervisorPauseTransitions, None), None);
    // Five of eight priorities.
    assert_eq!(reading.of(Counter::HypervisorPfcEnabled).count(), 0);
    let reasons: Vec<Reason> = reading.problems.iter().map(|problem| problem.reason).collect();
    assert_eq!(reasons, [Reason::Parse; 3]);
}

#[test]
fn a_terminal_changes_nothing() {
    let plain = answers("esxi-pfc");
    let mut dressed = Answers::default();
    for (command, text) in plain.iter() {
        dressed.insert(
            command,
            &format!("\u{feff}\u{1b}[1m{}\u{1b}[0m", text.replace('\n', "\r\n")),
        );
    }
    assert_eq!(reading_of(&dressed).samples, reading_of(&plain).samples);
    assert_eq!(reading_of(&dressed).settings, reading_of(&plain).settings);
}

#[test]
fn any_cut_of_any_answer_is_read_without_harm() {
    for name in ["esxi-pfc", "esxi-global-pause"] {
        let whole = answers(name);
        let full: BTreeMap<_, _> = reading_of(&whole)
            .samples
            .into_iter()
            .map(|sample| (key_of(&sample), sample.value))
            .collect();
        for (command, text) in whole.iter() {
            for end in (0..text.len()).step_by(7) {
                let mut cut = Answers::default();
                for (other, text) in whole.iter() {
                    cut.insert(other, text);
                }
                cut.insert(command, &text[..end]);
                // A cut answer loses numbers, and no number loses digits.
                for sample in &reading_of(&cut).samples {
                    if let Some(known) = full.get(&key_of(sample)) {
                        assert_eq!(
                            known.to_bits(),
                            sample.value.to_bits(),
                            "{command} up to {end}: {sample:?}"
                        );
                    }
                }
            }
        }
    }
}

fn key_of(sample: &Sample) -> (String, Counter, Option<u8>, Vec<String>) {
    let details = sample.details.iter().map(ToString::to_string).collect();
    (
        sample.object.to_string(),
        sample.counter,
        sample.priority,
        details,
    )
}

#[test]
fn an_adapter_that_is_down_is_shown_where_all_that_are_up_were_read() {
    let mut answers = answers("esxi-global-pause");
    let recorded = file_name("esxcli --formatter=json network nic list");
    let list = "[{\"Name\": \"vmnic5\", \"LinkStatus\": \"Up\"}, {\"Name\": \"vmnic6\", \"LinkStatus\": \"Down\", \"Speed\": 0}]";
    answers.insert(&recorded, list);
    let reading = reading_of(&answers);
    let up: Vec<(&str, f64)> = reading
        .of(Counter::HypervisorNicUp)
        .map(|sample| (&*sample.object, sample.value))
        .collect();
    assert_eq!(up, [("vmnic5", 1.0), ("vmnic6", 0.0)]);
}

#[test]
fn scripts_name_the_adapters_that_are_wanted() {
    let each = &questions(&["vmnic5".into(), "vmnic6".into()])[0];
    assert_eq!((each.form, each.is_slow), (Form::Sections, false));
    assert!(
        each.command.contains("for n in vmnic5 vmnic6; do"),
        "{}",
        each.command
    );
    // A name that is a command of its own is none.
    let odd = &questions(&["vmnic5".into(), "$(reboot)".into(), "-n".into(), "a b".into()])[0];
    assert!(odd.command.contains("for n in vmnic5; do"), "{}", odd.command);
    let all = questions(&[]);
    assert!(all[0].command.contains(UP));
    assert!(all[1].is_slow);
}

#[test]
fn a_shell_gives_one_section_for_each_command() {
    // The programs of ESXi, as functions of the shell that show their arguments.
    let programs = "esxcli() { case \"$*\" in \
        'network nic list') printf 'Name PCI Driver Admin Link\\nvmnic5 0000:86:00.0 nmlx5_core Up Up\\nvmnic6 0000:86:00.1 nmlx5_core Up Down\\n';; \
        *) echo \"answer to $*\";; esac; }\n";
    let script = &questions(&[])[0];
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!("{programs}{}", script.command))
        .output()
        .unwrap();
    let mut answers = Answers::default();
    answers.add(script, &String::from_utf8(output.stdout).unwrap());
    let sections: Vec<&str> = answers.iter().map(|(command, _)| command).collect();
    assert_eq!(
        sections,
        [
            "esxcli --formatter=json network nic list",
            "esxcli network nic dcb status get -n vmnic5",
            "esxcli network nic pauseParams list",
            "esxcli network nic stats get -n vmnic5",
            "vsish -e get /net/pNics/vmnic5/stats",
        ]
    );
    assert_eq!(
        answers.get("esxcli network nic pauseParams list"),
        Some("answer to network nic pauseParams list\n")
    );
    // This machine has no vsish: the shell's own message is the answer.
    let (reason, _) = text::refusal(answers.get("vsish -e get /net/pNics/vmnic5/stats").unwrap());
    assert_eq!(reason, Reason::Unsupported);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any text as the answer to any command gives numbers that are finite and not negative, each with all its details, and once.
    #[test]
    fn foreign_texts_do_no_harm(texts in proptest::collection::vec(r"(\PC|[\n\r:{}\[\]-]|true|name|Mode|0x|-- --|[0-9]{1,24}){0,60}", 9)) {
        let commands = [
            "esxcli --formatter=json network nic list",
            "esxcli network nic list",
            "esxcli network nic stats get -n vmnic5",
            "vsish -e get /net/pNics/vmnic5/stats",
            "esxcli network nic dcb status get -n vmnic5",
            "esxcli network nic get -n vmnic5",
            "esxcli network nic pauseParams list",
            "esxcli system version get",
            "esxcli system module parameters list -m nmlx5_core",
        ];
        let mut answers = Answers::default();
        for (command, text) in commands.iter().zip(&texts) {
            answers.insert(command, text);
        }
        let reading = reading_of(&answers);
        let mut series = std::collections::BTreeSet::new();
        for sample in &reading.samples {
            prop_assert!(sample.value.is_finite() && sample.value >= 0.0);
            prop_assert_eq!(sample.details.len(), sample.counter.labels().len());
            prop_assert!(series.insert(key_of(sample)), "{:?} twice", sample);
        }
    }
}
