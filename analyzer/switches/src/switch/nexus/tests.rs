//! The fixtures are below `tests/data/fabric/nexus-*`: a `.txt` and a `.json` of one name are one moment. Expected values are those that a
//! person reads in the text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use roce_model::{Counter, Sample, SampleSource, Time};
use serde_json::{Value, json};

use super::*;
use crate::device::{Problem, file_name};

mod columns;
mod generations;
mod hostile;

const FOLDERS: [&str; 3] = ["nexus-first-generation", "nexus-cloud-scale", "nexus-legacy"];

/// Commands of the fixtures beside those of the parts.
const POLICIES: [&str; 2] = [
    "show policy-map system type queuing",
    "show policy-map interface Ethernet1/1/2 type queuing",
];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/fabric")
        .join(name)
}

fn fixture(name: &str, command: &str, ending: &str) -> Option<String> {
    std::fs::read_to_string(folder(name).join(format!("{}.{ending}", file_name(command)))).ok()
}

fn commands() -> Vec<&'static str> {
    PARTS.iter().map(|part| part.command).chain(POLICIES).collect()
}

/// All answers of a folder in one form, and those that it has in the other form only.
fn answers(name: &str, ending: &str) -> Answers {
    let mut answers = Answers::default();
    let other = if ending == "txt" { "json" } else { "txt" };
    for command in commands() {
        if let Some(text) = fixture(name, command, ending).or_else(|| fixture(name, command, other)) {
            answers.insert(command, &text);
        }
    }
    assert!(!answers.is_empty());
    answers
}

fn read_all(answers: &Answers) -> Reading {
    let mut reading = Reading::new(SampleSource::Switch, "leaf1", Time(7));
    read(answers, &mut reading);
    for sample in &reading.samples {
        assert!(sample.value.is_finite() && sample.value >= 0.0, "{sample:?}");
        let labels = sample.counter.labels();
        assert_eq!(sample.details.len(), labels.len(), "{sample:?}");
        assert_eq!(
            sample.object.is_empty(),
            labels.first() != Some(&"kind"),
            "{sample:?}"
        );
    }
    reading
}

fn read_one(command: &str, text: &str) -> Reading {
    let mut answers = Answers::default();
    answers.insert(command, text);
    read_all(&answers)
}

/// Quantity and place of a sample.
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

fn by_key(reading: &Reading) -> BTreeMap<Key, f64> {
    let all: BTreeMap<Key, f64> = reading
        .samples
        .iter()
        .map(|sample| (key(sample), sample.value))
        .collect();
    assert_eq!(all.len(), reading.samples.len(), "a number is there twice");
    all
}

/// The value of the only sample of a counter of an interface.
#[track_caller]
fn port(reading: &Reading, counter: Counter, object: &str) -> Option<f64> {
    let mut found = reading
        .of(counter)
        .filter(|sample| sample.object.as_ref() == object);
    let value = found.next().map(|sample| sample.value);
    assert!(found.next().is_none());
    value
}

/// Priorities with PFC in operation.
fn enabled(reading: &Reading, object: &str) -> Vec<u8> {
    reading
        .of(Counter::SwitchPfcEnabled)
        .filter(|sample| sample.object.as_ref() == object && sample.value > 0.0)
        .filter_map(|sample| sample.priority)
        .collect()
}

fn reasons(reading: &Reading) -> Vec<Reason> {
    reading.problems.iter().map(|problem| problem.reason).collect()
}

#[test]
fn text_and_json_of_one_moment_are_the_same_numbers() {
    let mut pairs = 0;
    for name in FOLDERS {
        for command in commands() {
            let (Some(text), Some(json)) = (fixture(name, command, "txt"), fixture(name, command, "json"))
            else {
                continue;
            };
            // Policies need the ports that other answers have.
            let with_ports = |answer: &str| {
                let mut answers = Answers::default();
                answers.insert(PFC, &fixture(name, PFC, "txt").unwrap());
                answers.insert(command, answer);
                read_all(&answers)
            };
            let (mut text, json) = (with_ports(&text), with_ports(&json));
            // Slices are in the text only.
            text.samples
                .retain(|sample| sample.counter != Counter::SwitchSliceDroppedPackets);
            assert_eq!(by_key(&text), by_key(&json), "{name}: {command}");
            assert_eq!(text.neighbors, json.neighbors);
            assert_eq!(text.classes, json.classes);
            assert_eq!(text.description, json.description);
            assert_eq!(text.has_watchdog, json.has_watchdog);
            assert_eq!(json.problems, []);
            pairs += 1;
        }
    }
    // Seven of each generation with both forms.
    assert_eq!(pairs, 14);
}

#[test]
fn answers_are_found_in_each_form_and_envelope() {
    let text = fixture("nexus-first-generation", PFC, "txt").unwrap();
    let json = fixture("nexus-first-generation", PFC, "json").unwrap();
    let expected = by_key(&read_one(PFC, &text));
    assert_eq!(expected.len(), 4 * 8 + 3 * 2);
    let body: Value = serde_json::from_str(&json).unwrap();
    let output = json!({"input": format!("{PFC} "), "msg": "Success", "code": "200", "body": body});
    let other = json!({"input": "show foo", "msg": "Input CLI command error", "code": "400", "clierror": "% Invalid command\n"});
    let terminal = format!(
        "\u{feff}Keep out\r\nleaf1# {PFC}\r\n{}leaf1# ",
        text.replace('\n', "\r\n").replacen(
            "Ethernet1/1/2",
            "--More--\r          \r\u{1b}[1mEthernet1/1/2\u{1b}[0m",
            1
        )
    );
    for answer in [
        json.clone(),
        format!("{json}{json}"),
        format!("leaf1# {PFC} | json\n{json}\nleaf1#"),
        json!({"ins_api": {"outputs": {"output": output}}}).to_string(),
        json!({"ins_api": {"outputs": {"output": [other, output]}}}).to_string(),
        json!([{"jsonrpc": "2.0", "result": {"body": body}, "id": 1}]).to_string(),
        json!({"ins_api": {"outputs": {"output": {"input": PFC, "code": "200", "body": text}}}}).to_string(),
        terminal,
    ] {
        for command in [PFC.to_owned(), format!("{PFC} | json")] {
            let reading = read_one(&command, &answer);
            assert_eq!(by_key(&reading), expected, "{answer}");
            assert_eq!(reading.problems, [], "{answer}");
        }
    }
    // The document is of another moment than the text: it goes first.
    let mut answers = Answers::default();
    answers.insert(&format!("{PFC} | json"), &json.replace("126464312", "126464999"));
    answers.insert(PFC, &text);
    assert_eq!(
        port(&read_all(&answers), Counter::SwitchPfcReceivedFrames, "ii1/1/1"),
        Some(126_464_999.0)
    );
    // The answer in JSON is refused, and the text is good.
    let mut answers = Answers::default();
    answers.insert(&format!("{PFC} | json"), "% Invalid command at '^' marker.\n");
    answers.insert(PFC, &text);
    let reading = read_all(&answers);
    assert_eq!((by_key(&reading), reading.problems), (expected, vec![]));
}

// B.33.2: one interface in one module is an object in an object.
#[test]
fn a_single_row_is_an_object() {
    let one = r#"{"ins_api":{"type":"cli_show","version":"1.0","sid":"eoc","outputs":{"output":{
        "input":"show interface priority-flow-control","msg":"Success","code":"200",
        "body":{"TABLE_module":{"ROW_module":{"module":"1","TABLE_pfc_interface":{"ROW_pfc_interface":
        {"if_name_str":"Ethernet1/1/1","admin":"On","oper":"On (8)","rx-stats":"0","tx-stats":"22787490"}}}}}}}}}"#;
    let reading = read_one(PFC, one);
    assert_eq!(enabled(&reading, "Ethernet1/1/1"), [3]);
    assert_eq!(
        port(&reading, Counter::SwitchPfcTransmittedFrames, "Ethernet1/1/1"),
        Some(22_787_490.0)
    );
    let several = r#"{"TABLE_module":{"ROW_module":[{"module":"1","TABLE_pfc_interface":{"ROW_pfc_interface":[
        {"if_name_str":"Ethernet1/1/1","admin":"On","oper":"On (8)","rx-stats":"0","tx-stats":"0"},
        {"if_name_str":"ii1/1/1","admin":"On","oper":"On (8)","rx-stats":126464312,"tx-stats":48771198},
        {"if_name_str":"Ethernet1/1/5","admin":"Auto","oper":"Off","rx-stats":"--","tx-stats":"--"}]}}]}}"#;
    let reading = read_one(PFC, several);
    assert_eq!(
        (enabled(&reading, "Ethernet1/1/1"), enabled(&reading, "ii1/1/1")),
        (vec![3], vec![3])
    );
    assert!(enabled(&reading, "Ethernet1/1/5").is_empty());
    assert_eq!(reading.of(Counter::SwitchPfcReceivedFrames).count(), 2);
}

#[test]
fn a_total_that_is_not_the_sum_is_said() {
    let command = "show interface priority-flow-control detail";
    let text = fixture("nexus-cloud-scale", command, "txt").unwrap();
    assert_eq!(read_one(command, &text).problems, []);
    let wrong = text.replace("Total Tx PFC Frames: 150", "Total Tx PFC Frames: 151");
    let reading = read_one(command, &wrong);
    assert_eq!(
        reading.problems,
        [Problem {
            reason: Reason::Contradiction,
            command: command.to_owned(),
            text: "Ethernet1/51: 151 PFC frames transmitted in total, and 150 over the priorities".to_owned(),
        }]
    );
    // In the queues' table only some priorities may be there.
    let command = "show queuing interface";
    let json = fixture("nexus-first-generation", command, "json").unwrap();
    let reading = read_one(command, &json.replacen(r#""tx-ppp": "0""#, r#""tx-ppp": "5""#, 1));
    assert_eq!(reading.problems, []);
    let reading = read_one(
        command,
        &json.replacen(r#""tx-pause-count": "0""#, r#""tx-pause-count": "5""#, 1),
    );
    assert_eq!(reasons(&reading), [Reason::Contradiction]);
}

#[test]
fn of_several_policies_none_is_taken() {
    let policy = |name: &str, group: u8| {
        format!(
            "policy-map type network-qos {name}\n  class type network-qos c-8q-nq{group}\n    pause pfc-cos {group}\n"
        )
    };
    let command = "show policy-map type network-qos";
    let lossless = |text: &str| -> Vec<String> {
        let mut answers = Answers::default();
        answers.insert(PFC, "Ethernet1/1 On On (8) 0 0\n");
        answers.insert(command, text);
        let reading = read_all(&answers);
        let all = reading.of(Counter::SwitchQueueNoDrop);
        all.filter_map(|sample| sample.queue.as_deref().map(str::to_owned))
            .collect()
    };
    assert_eq!(lossless(&policy("a", 3)), ["3"]);
    let both = format!("{}{}", policy("a", 3), policy("b", 5));
    assert!(lossless(&both).is_empty());
}

#[test]
fn what_is_no_answer_is_said() {
    for (answer, reason) in [
        (
            "                             ^\n% Invalid command at '^' marker.\n",
            Reason::Unsupported,
        ),
        ("% Permission denied for the role\n", Reason::Permission),
        (
            r#"{"clierror":"% Invalid command\n","code":"400","msg":"Input CLI command error"}"#,
            Reason::Unsupported,
        ),
        // Words that are not known, with the code of a command that is not known.
        (
            r#"{"clierror":"no such thing","code":"400","msg":"Input CLI command error"}"#,
            Reason::Unsupported,
        ),
        (
            "<html><head><title>502 Bad Gateway</title></head></html>\n",
            Reason::Parse,
        ),
        (r#"{"TABLE_module":{"ROW_module":{"mod"#, Reason::Parse),
        ("something else\n", Reason::Parse),
        (r#"{"a_new_table":{"ROW_x":1}}"#, Reason::Parse),
    ] {
        for part in &PARTS {
            let reading = read_one(part.command, answer);
            assert_eq!(reading.samples, [], "{answer}");
            assert_eq!(reasons(&reading), [reason], "{}: {answer}", part.command);
        }
    }
    for nothing in ["", "\n", "{}", "leaf1#", "[]"] {
        let reading = read_one(PFC, nothing);
        assert_eq!((reading.samples, reading.problems), (vec![], vec![]), "{nothing}");
    }
}

#[test]
fn a_refused_form_is_asked_in_the_other() {
    let command = "show queuing interface";
    let json = format!("{command} | json");
    let asked = |known: &Answers| -> Vec<(String, bool)> {
        let all = questions(known).into_iter();
        all.filter(|question| question.command.starts_with(command))
            .map(|question| (question.command, question.is_slow))
            .collect()
    };
    let mut known = Answers::default();
    assert_eq!(asked(&known), [(json.clone(), false)]);
    known.insert(&json, "% Invalid command at '^' marker.\n");
    assert_eq!(asked(&known), [(command.to_owned(), false)]);
    known.insert(command, "% Invalid command at '^' marker.\n");
    assert_eq!(asked(&known), [(command.to_owned(), true)]);
}

/// Values that hardly change are asked at the start and once an hour; states of links and counters at each
/// reading.
#[test]
fn links_are_asked_at_each_reading() {
    let slow: Vec<String> = questions(&Answers::default())
        .into_iter()
        .filter(|question| question.is_slow)
        .map(|question| question.command)
        .collect();
    assert_eq!(
        slow,
        [
            "show version | json",
            "show lldp neighbors detail | json",
            "show policy-map system type network-qos",
            "show policy-map type network-qos",
            "show policy-map system type queuing",
        ]
    );
}

#[test]
fn policies_of_ports_with_pfc_are_asked() {
    let mut known = Answers::default();
    assert!(
        questions(&known)
            .iter()
            .all(|question| !question.command.contains("policy-map interface"))
    );
    let commands: BTreeSet<String> = questions(&known)
        .into_iter()
        .map(|question| question.command)
        .collect();
    assert_eq!(commands.len(), 14);
    known.insert(
        &format!("{PFC} | json"),
        &fixture("nexus-first-generation", PFC, "json").unwrap(),
    );
    let more: Vec<Question> = questions(&known)
        .into_iter()
        .filter(|question| !commands.contains(&question.command))
        .collect();
    // Ethernet1/1/2 has PFC off, and ii1/1/1 is no port.
    assert_eq!(
        more,
        [Question::slow(
            "show policy-map interface Ethernet1/1/1 type queuing"
        )]
    );
    let mut rows = String::new();
    for number in 1..=200 {
        let _ = writeln!(rows, "Ethernet1/{number} On On (8) 0 0");
    }
    known.insert(PFC, &rows);
    known.insert(&format!("{PFC} | json"), "% Invalid command\n");
    assert_eq!(questions(&known).len(), 14 + MAX_POLICY_INTERFACES);
}
