//! Answers that are damaged in each place, of each kind and generation: a lost line, a line twice, a number that is not known, a member of
//! a document that is absent. Numbers that are left are those of the whole answer, at the same place; none becomes 0, and none counts twice.

#![expect(clippy::unwrap_used, reason = "tests, in functions of their own")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use roce_model::{Counter, Sample, Time};
use roce_switches::device::{Answers, Reading};
use roce_switches::inventory::{HypervisorKind, SwitchKind};
use roce_switches::{hypervisor, switch};
use serde_json::Value;

/// Folders with answers, and their kind; `None`: ESXi.
const FOLDERS: [(&str, Option<SwitchKind>); 13] = [
    ("nexus-first-generation", Some(SwitchKind::Nexus)),
    ("nexus-cloud-scale", Some(SwitchKind::Nexus)),
    ("nexus-legacy", Some(SwitchKind::Nexus)),
    ("sonic-leaf", Some(SwitchKind::Sonic)),
    ("eos-leaf", Some(SwitchKind::Eos)),
    ("cumulus-leaf", Some(SwitchKind::Cumulus)),
    ("esxi-pfc", None),
    ("esxi-global-pause", None),
    ("esxi-cee", None),
    ("esxi-no-pauses", None),
    ("esxi-no-vsish", None),
    ("esxi-down", None),
    ("esxi-truncated", None),
];
/// Places of a document that are damaged; of a larger one, places at equal distances.
const MAX_PLACES: usize = 40;

/// Sums over what an answer has of its parts: a part that is lost makes them smaller.
const SUMS: [Counter; 3] = [
    Counter::SwitchPfcReceivedFrames,
    Counter::SwitchPfcTransmittedFrames,
    Counter::SwitchWatchdogDroppedPackets,
];
/// Settings, which a line or a member that is lost changes: the classes of a policy have no end. Those of an adapter that is down are shown
/// where no other one is known to be up.
const SETTINGS: [Counter; 8] = [
    Counter::SwitchQueueNoDrop,
    Counter::SwitchPfcEnabled,
    Counter::SwitchEcnThreshold,
    Counter::HypervisorPfcEnabled,
    Counter::HypervisorDcbMode,
    Counter::HypervisorNicUp,
    Counter::HypervisorNicRate,
    Counter::HypervisorNicMtu,
];

type Key = (Counter, String, Option<u8>, Option<String>, Vec<String>);

fn key(sample: &Sample) -> Key {
    (
        sample.counter,
        sample.object.to_string(),
        sample.priority,
        sample.queue.as_deref().map(str::to_owned),
        sample.details.iter().map(ToString::to_string).collect(),
    )
}

/// Files of a folder: name without its ending, ending, text. A text and a document of one name are one answer in two forms.
fn files(folder: &str) -> Vec<(String, String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/fabric")
        .join(folder);
    let mut all: Vec<(String, String, String)> = fs::read_dir(path)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let part = |part: Option<&std::ffi::OsStr>| part.unwrap().to_str().unwrap().to_owned();
            (
                part(path.file_stem()),
                part(path.extension()),
                fs::read_to_string(&path).unwrap(),
            )
        })
        .collect();
    all.sort();
    all
}

fn read(kind: Option<SwitchKind>, answers: &[(&str, &str)]) -> Reading {
    let mut all = Answers::default();
    for (command, text) in answers {
        all.insert(command, text);
    }
    match kind {
        Some(kind) => switch::read(kind, "a", Time(1), &all),
        None => hypervisor::read(HypervisorKind::Esxi, "a", Time(1), &all),
    }
}

/// The values of a reading, of which each is there once.
fn values(reading: &Reading, what: &str) -> BTreeMap<Key, f64> {
    let mut all = BTreeMap::new();
    for sample in &reading.samples {
        assert!(
            sample.value.is_finite() && sample.value >= 0.0,
            "{what}: {sample:?}"
        );
        assert_eq!(
            all.insert(key(sample), sample.value),
            None,
            "{what}: twice: {sample:?}"
        );
    }
    all
}

/// One file of a folder, and the rest of it as far as the answer needs it.
struct Case<'a> {
    what: String,
    kind: Option<SwitchKind>,
    command: &'a str,
    ending: &'a str,
    text: &'a str,
    rest: Vec<(&'a str, &'a str)>,
    whole: BTreeMap<Key, f64>,
    /// The values of the rest alone.
    without: BTreeMap<Key, f64>,
}

impl<'a> Case<'a> {
    fn new(folder: &str, kind: Option<SwitchKind>, files: &'a [(String, String, String)], at: usize) -> Self {
        let (command, ending, text) = &files[at];
        let is_needed = |name: &str| match kind {
            // Policies apply to the ports that another answer has.
            Some(SwitchKind::Nexus) => name == "show_interface_priority-flow-control",
            // Counters have names in a database of their own.
            Some(SwitchKind::Sonic) => command.contains("db-dump") && name.contains("COUNTERS_DB"),
            Some(SwitchKind::Eos | SwitchKind::Cumulus | SwitchKind::Other) => false,
            None => name.contains("nic_list") || name.contains("dcb"),
        };
        // The other form of the same answer says the same: it stays away.
        let others = files
            .iter()
            .filter(|(name, ..)| name != command && is_needed(name));
        let mut rest: Vec<(&str, &str)> = others
            .map(|(name, _, text)| (name.as_str(), text.as_str()))
            .collect();
        rest.dedup_by_key(|(name, _)| *name);
        let mut case = Self {
            what: format!("{folder}/{command}.{ending}"),
            kind,
            command,
            ending,
            text,
            rest,
            whole: BTreeMap::new(),
            without: BTreeMap::new(),
        };
        case.without = values(&read(kind, &case.rest), &case.what);
        case.whole = values(&case.reading(text), &case.what);
        case
    }

    fn reading(&self, text: &str) -> Reading {
        let mut answers = self.rest.clone();
        answers.push((self.command, text));
        read(self.kind, &answers)
    }

    /// The values of the damaged answer are those of the whole one. Adds what is wrong to `faults`.
    fn check(&self, damaged: &str, how: &str, faults: &mut Vec<String>) {
        let what = format!("{} {how}", self.what);
        for (key, value) in values(&self.reading(damaged), &what) {
            let counter = key.0;
            if SUMS.contains(&counter) || SETTINGS.contains(&counter) {
                continue;
            }
            // Where this answer has it no more, another one can have it.
            let known = self.whole.get(&key).into_iter().chain(self.without.get(&key));
            if !known.clone().any(|known| is_same(*known, value)) {
                let known: Vec<&f64> = known.collect();
                faults.push(format!("{what}: {key:?} is {value}, and was {known:?}"));
            }
        }
    }
}

/// Damages each answer of each folder; nothing may be wrong then.
#[track_caller]
fn each(least: usize, mut with: impl FnMut(&Case<'_>, &mut Vec<String>) -> usize) {
    let (mut count, mut faults) = (0, Vec::new());
    for (folder, kind) in FOLDERS {
        let files = files(folder);
        assert!(!files.is_empty(), "{folder}");
        for at in 0..files.len() {
            count += with(&Case::new(folder, kind, &files, at), &mut faults);
        }
    }
    let first: Vec<&String> = faults.iter().step_by(faults.len().div_ceil(40).max(1)).collect();
    assert!(faults.is_empty(), "{} of {count}: {first:#?}", faults.len());
    assert!(count > least, "{count}");
}

fn is_same(one: f64, other: f64) -> bool {
    one.to_bits() == other.to_bits()
}

fn is_text(case: &Case<'_>) -> bool {
    case.ending == "txt"
}

/// True of a word that is a count.
fn is_count(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit())
        && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b',')
}

#[test]
fn a_number_that_is_not_known_is_not_zero() {
    each(500, |case, faults| {
        let mut count = 0;
        if !is_text(case) {
            return count;
        }
        // Byte ranges of counts.
        let mut places = Vec::new();
        let mut start = 0;
        for word in case
            .text
            .split_inclusive(|glyph: char| glyph.is_whitespace() || "|:".contains(glyph))
        {
            let bare = word.trim_end_matches(|glyph: char| glyph.is_whitespace() || "|:".contains(glyph));
            if is_count(bare) {
                places.push((start, start + bare.len()));
            }
            start += word.len();
        }
        let step = places.len().div_ceil(MAX_PLACES).max(1);
        for (begin, end) in places.into_iter().step_by(step) {
            // Columns stay where they are.
            for word in ["N/A", "--", "-"] {
                let width = end - begin;
                if word.len() > width {
                    continue;
                }
                let damaged = format!("{}{word:>width$}{}", &case.text[..begin], &case.text[end..]);
                case.check(&damaged, &format!("with {word} at {begin}"), faults);
                count += 1;
            }
        }
        count
    });
}

/// Calls `damage` with the lines of a text and the place of a line, for all of them or evenly spread ones. The number of calls.
fn each_line(case: &Case<'_>, mut damage: impl FnMut(&[&str], usize)) -> usize {
    if !is_text(case) {
        return 0;
    }
    let lines: Vec<&str> = case.text.split_inclusive('\n').collect();
    let step = lines.len().div_ceil(MAX_PLACES).max(1);
    let places = (0..lines.len()).step_by(step);
    let count = places.len();
    for place in places {
        damage(&lines, place);
    }
    count
}

#[test]
fn a_line_twice_counts_once() {
    each(500, |case, faults| {
        each_line(case, |lines, twice| {
            let damaged: String = lines[..=twice].iter().chain(&lines[twice..]).copied().collect();
            let what = format!("{} with line {twice} twice", case.what);
            for (key, value) in values(&case.reading(&damaged), &what) {
                let known = case.whole.get(&key).copied().unwrap_or(value);
                if !is_same(known, value) {
                    faults.push(format!("{what}: {value} is not {known}: {key:?}"));
                }
            }
        })
    });
}

#[test]
fn a_lost_line_makes_no_zero_and_no_other_number() {
    each(500, |case, faults| {
        each_line(case, |lines, lost| {
            let damaged: String = lines[..lost].iter().chain(&lines[lost + 1..]).copied().collect();
            case.check(&damaged, &format!("without line {lost}"), faults);
        })
    });
}

/// Pointers to the scalars of a document.
fn scalars(value: &Value, path: &str, into: &mut Vec<String>) {
    let name = |name: &str| name.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                scalars(value, &format!("{path}/{}", name(key)), into);
            }
        }
        Value::Array(list) => {
            for (at, value) in list.iter().enumerate() {
                scalars(value, &format!("{path}/{at}"), into);
            }
        }
        _ => into.push(path.to_owned()),
    }
}

#[test]
fn a_member_that_is_absent_or_odd_makes_no_zero() {
    each(2_000, |case, faults| {
        let mut count = 0;
        if is_text(case) {
            return count;
        }
        let Ok(document) = serde_json::from_str::<Value>(case.text) else {
            // A refusal.
            return count;
        };
        let mut paths = Vec::new();
        scalars(&document, "", &mut paths);
        let step = paths.len().div_ceil(MAX_PLACES).max(1);
        for path in paths.into_iter().step_by(step) {
            for odd in [
                Some(Value::Null),
                Some("N/A".into()),
                Some("--".into()),
                Some("".into()),
                Some((-1).into()),
                Some(Value::Array(Vec::new())),
                None,
            ] {
                // A queue without this member is one that is not counted by cast.
                if odd.is_none() && path.ends_with("eq-mc-stat-value") {
                    continue;
                }
                let mut damaged = document.clone();
                if let Some(odd) = &odd {
                    *damaged.pointer_mut(&path).unwrap() = odd.clone();
                } else {
                    let (parent, name) = path.rsplit_once('/').unwrap();
                    if let Some(Value::Object(members)) = damaged.pointer_mut(parent) {
                        members.remove(&name.replace("~1", "/").replace("~0", "~"));
                    }
                }
                case.check(&damaged.to_string(), &format!("with {path} {odd:?}"), faults);
                count += 1;
            }
        }
        count
    });
}
