//! Twenty questions of an operator, asked through `mcp` and by the command that each answer names. Frames are compared with the captures.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::frames::ReadCaptures;
use super::{answers, call, of};
use crate::captures::root;
use crate::command::run;

/// One question.
struct Question {
    asked: &'static str,
    tool: &'static str,
    arguments: Value,
    /// True where frames have to be named.
    has_frames: bool,
}

#[expect(clippy::too_many_lines, reason = "a list of twenty questions")]
fn questions() -> Vec<Question> {
    let question = |asked, tool, arguments, has_frames| Question {
        asked,
        tool,
        arguments,
        has_frames,
    };
    vec![
        question(
            "Why is my write_bw so slow?",
            "verdict",
            json!({ "input": "write_bw_loss.pcap" }),
            true,
        ),
        question(
            "Is this healthy run healthy?",
            "verdict",
            json!({ "input": "clean_write_bw.pcap" }),
            false,
        ),
        question(
            "What is wrong with the receiver?",
            "verdict",
            json!({ "input": "rnr.pcap" }),
            true,
        ),
        question(
            "Did an incast happen?",
            "verdict",
            json!({ "input": "demos/incast-h7.pcapng" }),
            true,
        ),
        question(
            "The link was dead for a moment: what did it cost?",
            "verdict",
            json!({ "input": "blackout_600ms.pcap" }),
            true,
        ),
        question(
            "Who pauses whom?",
            "verdict",
            json!({ "input": ["demos/pause-storm-leaf1-h1.pcapng", "demos/pause-storm-leaf1-h3.pcapng"] }),
            true,
        ),
        question(
            "Why did the sender wait for timeouts?",
            "why",
            json!({ "input": "write_bw_loss.pcap", "finding": "retransmit.timeout" }),
            true,
        ),
        question(
            "Why are packets lost?",
            "why",
            json!({ "input": "demos/lossy.pcapng" }),
            true,
        ),
        question(
            "Is there a chain behind a healthy run?",
            "why",
            json!({ "input": "demos/clean.pcapng" }),
            false,
        ),
        question(
            "Why did the connection break?",
            "why",
            json!({ "input": "write_bw_nak_invalid_request.pcap" }),
            true,
        ),
        question(
            "Which frames are NAKs?",
            "packets",
            json!({ "input": "write_bw_loss.pcap", "roles": "nak", "limit": 200 }),
            true,
        ),
        question(
            "Which packets show the loss?",
            "packets",
            json!({ "input": "demos/lossy.pcapng", "finding": "loss.network" }),
            true,
        ),
        question(
            "Show me the packets of this flow",
            "packets",
            json!({ "input": "rping.pcap", "flow": "service rc", "limit": 20 }),
            true,
        ),
        question(
            "Which CNPs did the sender get?",
            "packets",
            json!({ "input": "send_bw_ce_synthetic_cnp.pcap", "roles": ["cnp"] }),
            true,
        ),
        question(
            "Who sends most?",
            "flows",
            json!({ "input": "demos/incast-h2.pcapng", "sort": "payload_bytes", "limit": 5 }),
            false,
        ),
        question(
            "Who retransmits?",
            "flows",
            json!({ "input": "write_bw_loss.pcap", "sort": "retransmitted_packets", "columns": ["flow_id", "source", "destination", "retransmitted_packets"] }),
            false,
        ),
        question(
            "Which rank is late?",
            "ranks",
            json!({ "input": ["demos/late-rank-h1.pcapng", "demos/late-rank-h2.pcapng", "demos/late-rank-h3.pcapng", "demos/late-rank-h4.pcapng"] }),
            true,
        ),
        question(
            "Is it worse than yesterday?",
            "compare",
            json!({ "a": "demos/clean.pcapng", "b": "demos/lossy.pcapng" }),
            false,
        ),
        question(
            "What does loss.network mean?",
            "explain",
            json!({ "id": "loss.network" }),
            false,
        ),
        question(
            "Which columns has a flow?",
            "explain",
            json!({ "id": "flows" }),
            false,
        ),
    ]
}

/// Output of the command that an answer names, run by a shell where the server was started.
fn repeated(command: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_roce-analyze"));
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .env("PATH", path)
        .env("COLUMNS", "100")
        .current_dir(root());
    let output = shell.output().unwrap();
    assert!(
        output.status.success(),
        "{command}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// `text` with single spaces.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Rows of a table of a document.
fn table<'a>(document: &'a Value, name: &str) -> &'a Vec<Value> {
    document[name].as_array().unwrap()
}

/// Compares an answer with the output of the command that it names.
fn compare(question: &Question, answer: &Value, output: &str) {
    let asked = question.asked;
    let rows = table(answer, "rows");
    if question.tool == "explain" {
        assert_eq!(answer["answer"], output.trim_end(), "{asked}");
        return;
    }
    if question.tool == "packets" {
        let lines: Vec<Value> = output
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        for row in rows {
            let is_row = |line: &Value| {
                let file = line["file"].as_str().unwrap();
                file.trim_start_matches("./") == row["file"]
                    && line["frame"] == row["frame"]
                    && line["comment"] == row["comment"]
            };
            assert!(lines.iter().any(is_row), "{asked}: {row}");
        }
        return;
    }
    let document: Value = serde_json::from_str(output).unwrap();
    match question.tool {
        "verdict" => {
            assert_eq!(answer["answer"], document["run"]["sentence"], "{asked}");
            assert_eq!(rows, table(&document, "findings"), "{asked}");
            let sentence = answer["answer"].as_str().unwrap();
            let is_low = sentence.contains("(low confidence)");
            assert_eq!(answer["confidence"] == "low", is_low, "{asked}: {sentence}");
        }
        "why" => {
            for row in rows {
                let finding = table(&document, "findings")
                    .iter()
                    .find(|finding| finding["id"] == row["id"])
                    .unwrap();
                assert_eq!(finding["summary"], row["summary"], "{asked}");
            }
        }
        "flows" => {
            for row in rows {
                let flow = table(&document, "flows")
                    .iter()
                    .find(|flow| flow["flow_id"] == row["flow_id"])
                    .unwrap();
                for (name, value) in row.as_object().unwrap() {
                    assert_eq!(flow[name], *value, "{asked}: {name}");
                }
            }
        }
        "ranks" => {
            assert!(!rows.is_empty(), "{asked}");
            assert_eq!(
                *rows,
                table(&document, "collective_waits")[..rows.len()],
                "{asked}"
            );
        }
        "compare" => {
            let found = rows.iter().filter(|row| row["kind"] == "finding");
            assert_eq!(found.count(), table(&document, "findings").len(), "{asked}");
        }
        tool => panic!("{tool}"),
    }
}

#[test]
fn twenty_questions_are_answered_as_the_command_line_does() {
    let questions = questions();
    assert_eq!(questions.len(), 20);
    let calls = questions.iter().enumerate();
    let calls: Vec<Value> = calls
        .map(|(number, question)| call(number, question.tool, &question.arguments))
        .collect();
    // The folder is named as a person would: from where the server is started.
    let answers = answers(Path::new("captures"), &calls);
    let dir = root().join("captures");
    let mut captures = ReadCaptures::default();
    let mut checked = 0;
    for (number, question) in questions.iter().enumerate() {
        let asked = question.asked;
        let result = &of(&answers, number)["result"];
        assert_eq!(result["isError"], false, "{asked}: {result}");
        let answer = &result["structuredContent"];
        compare(question, answer, &repeated(answer["command"].as_str().unwrap()));
        let mut named = 0;
        for evidence in table(answer, "evidence") {
            let file = evidence["file"].as_str().unwrap();
            for frame in table(evidence, "frames") {
                let is_there = captures.has(&dir, file, frame.as_u64().unwrap());
                assert!(is_there, "{asked}: {file} has no frame {frame}");
                named += 1;
            }
        }
        assert_eq!(named > 0, question.has_frames, "{asked}: {answer}");
        if named == 0 {
            let reasons = answer["not_shown"].as_array().unwrap();
            let is_said = reasons
                .iter()
                .any(|reason| reason.as_str().unwrap().starts_with("frames"));
            assert!(is_said, "{asked}: {reasons:?}");
        }
        for row in table(answer, "rows")
            .iter()
            .filter(|row| row["frame"].is_u64() && row["psn"].is_u64())
        {
            let place = captures.place(
                &dir,
                row["file"].as_str().unwrap(),
                row["frame"].as_u64().unwrap(),
            );
            let expected = (
                row["destination_qpn"].as_u64().unwrap(),
                row["psn"].as_u64().unwrap(),
            );
            assert_eq!(place, Some(expected), "{asked}: {row}");
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked} frames");
}

#[test]
fn a_verdict_is_what_people_read() {
    let call = call(1, "verdict", &json!({ "input": "write_bw_loss.pcap" }));
    let answers = answers(&root().join("captures"), &[call]);
    let answer = &of(&answers, 1)["result"]["structuredContent"];
    let ran = run(&root(), ["captures/write_bw_loss.pcap"]);
    let sentence = answer["answer"].as_str().unwrap();
    assert!(
        words(&ran.stdout).contains(&words(sentence)),
        "{sentence}\n{}",
        ran.stdout
    );
}
