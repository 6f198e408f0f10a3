//! `mcp`: answers are those of the command line, every frame is in its capture, and no request ends the server or leaves its folder.

mod frames;
mod questions;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::captures::root;
use crate::command::{Ran, command, run_with_input};

/// Lines of a client of the older revisions, which need no `_meta`.
fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": "begin", "method": "initialize",
        "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } })
}

/// A call of a tool.
fn call(id: impl Into<Value>, tool: &str, arguments: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": { "name": tool, "arguments": arguments } })
}

/// Runs the server in the project's folder with these bytes, and reads its lines: each has to be a message.
fn serve(dir: &Path, options: &[&str], input: &[u8]) -> (Vec<Value>, Ran) {
    let mut arguments = vec!["mcp", dir.to_str().unwrap()];
    arguments.extend(options);
    let ran = run_with_input(&root(), arguments, input);
    let lines = ran.stdout.lines();
    let answers = lines.map(|line| serde_json::from_str::<Value>(line).expect(line));
    let answers: Vec<Value> = answers.collect();
    for answer in &answers {
        assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
    }
    (answers, ran)
}

/// Answers to messages after `initialize`.
fn answers(dir: &Path, messages: &[Value]) -> Vec<Value> {
    let mut input = format!("{}\n", initialize());
    for message in messages {
        input.push_str(&message.to_string());
        input.push('\n');
    }
    let (answers, ran) = serve(dir, &[], input.as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    answers
}

/// The answer with this id.
fn of(answers: &[Value], id: impl Into<Value>) -> &Value {
    let id = id.into();
    answers
        .iter()
        .find(|answer| answer["id"] == id)
        .unwrap_or_else(|| panic!("no answer to {id}"))
}

#[test]
fn mcp_lists_tools_that_only_read() {
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/list" }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "resources/read", "params": { "uri": "roce-analyze://inputs" } }),
        json!({ "jsonrpc": "2.0", "id": 4, "method": "resources/read", "params": { "uri": "roce-analyze://schema" } }),
        json!({ "jsonrpc": "2.0", "id": 5, "method": "resources/read", "params": { "uri": "roce-analyze://method" } }),
    ];
    let answers = answers(&root().join("captures"), &messages);
    let tools = of(&answers, 1)["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "verdict", "why", "packets", "flows", "ranks", "compare", "query", "explain"
        ]
    );
    for tool in tools {
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert_eq!(tool["outputSchema"]["type"], "object");
    }
    assert_eq!(
        of(&answers, 2)["result"]["resources"].as_array().unwrap().len(),
        3
    );
    let inputs = of(&answers, 3)["result"]["contents"][0]["text"].as_str().unwrap();
    let inputs: Value = serde_json::from_str(inputs).unwrap();
    let has = |path: &str| {
        inputs["inputs"]
            .as_array()
            .unwrap()
            .iter()
            .any(|input| input["path"] == path)
    };
    assert!(
        has("rnr.pcap") && has("demos/incast-h2.pcapng") && !has("README.md"),
        "{inputs}"
    );
    let schema = of(&answers, 4)["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(schema.contains("retransmitted_packets"));
    assert!(
        !of(&answers, 5)["result"]["contents"][0]["text"]
            .as_str()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn mcp_speaks_both_kinds_of_revisions() {
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": { "_meta": meta } }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": { "_meta": meta } }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list" }),
        json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/call",
            "params": { "_meta": meta, "name": "explain", "arguments": { "id": "rnr" } } }),
    ];
    let input = lines.map(|line| line.to_string()).join("\n") + "\n";
    let (answers, _) = serve(&root().join("captures"), &[], input.as_bytes());
    // Fields: schema of 2026-07-28, Result and CacheableResult.
    for id in [1, 2] {
        let result = &of(&answers, id)["result"];
        assert_eq!(result["resultType"], "complete");
        assert!(result["ttlMs"].is_u64() && result["cacheScope"] == "private");
    }
    assert_eq!(of(&answers, 3)["error"]["code"], -32602);
    let called = &of(&answers, 4)["result"];
    assert_eq!(
        (&called["resultType"], &called["isError"]),
        (&json!("complete"), &json!(false))
    );
    assert_eq!(called.get("ttlMs"), None);
    let text: Value = serde_json::from_str(called["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, called["structuredContent"]);
}

#[test]
fn hostile_requests_do_not_end_mcp() {
    let mut input = Vec::new();
    let mut add = |line: &[u8]| {
        input.extend_from_slice(line);
        input.push(b'\n');
    };
    add(initialize().to_string().as_bytes());
    add(&vec![b'['; 3 << 20]);
    add(&[
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":".as_slice(),
        &[b'['; 10_000],
    ]
    .concat());
    add(b"\xff\xfe{}");
    add(b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]");
    for id in ["null", "1.5", "true", "[]", "{}"] {
        add(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}").as_bytes());
    }
    // Ten lines above without `initialize` have no id that could be read.
    add(call("wrong tool", "shell", &json!({})).to_string().as_bytes());
    let wrong = [
        ("verdict", json!({})),
        ("verdict", json!({ "input": 5 })),
        ("verdict", json!({ "input": { "a": 1 } })),
        ("verdict", json!({ "input": [] })),
        ("verdict", json!({ "input": "rnr.pcap", "shell": "rm" })),
        ("packets", json!({ "input": "rnr.pcap", "limit": 201 })),
        ("packets", json!({ "input": "rnr.pcap", "limit": -1 })),
        ("packets", json!({ "input": "rnr.pcap", "limit": 1e300 })),
        ("packets", json!({ "input": "rnr.pcap", "roles": "x" })),
        ("flows", json!({ "input": "rnr.pcap", "flow": "((((" })),
        ("flows", json!({ "input": "rnr.pcap", "sort": "x\u{1b}[31m" })),
        ("flows", json!({ "input": "--help" })),
        ("flows", json!({ "input": "rnr.pcap", "nccl_log": "/etc/passwd" })),
        ("compare", json!({ "a": "rnr.pcap", "b": "../Cargo.toml" })),
        ("query", json!({ "dataset": "rnr.pcap", "sql": "SELECT 1" })),
        ("query", json!({ "dataset": ".", "sql": "-" })),
        ("explain", json!({ "id": "--help" })),
        ("explain", json!({ "id": "no such word" })),
    ];
    for (number, (tool, arguments)) in wrong.iter().enumerate() {
        add(call(number, tool, arguments).to_string().as_bytes());
    }
    add(b"{\"jsonrpc\":\"2.0\",\"id\":\"last\",\"method\":\"ping\"}");
    let (answers, ran) = serve(&root().join("captures"), &[], &input);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let unknown = answers.iter().filter(|answer| answer.get("id").is_none());
    assert_eq!(unknown.count(), 9);
    assert_eq!(of(&answers, "wrong tool")["error"]["code"], -32602);
    for (number, what) in wrong.iter().enumerate() {
        let result = &of(&answers, number)["result"];
        assert_eq!(result["isError"], true, "{what:?}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(!text.is_empty() && !text.contains('\u{1b}'), "{what:?}: {text}");
    }
    assert_eq!(of(&answers, "last")["result"], json!({}));
}

#[test]
fn mcp_reads_nothing_outside_of_its_folder() {
    let dir = tempdir().unwrap();
    let folder = dir.path().join("served");
    fs::create_dir(&folder).unwrap();
    let outside = dir.path().join("secret.pcap");
    fs::copy(root().join("captures/rnr.pcap"), &outside).unwrap();
    fs::copy(&outside, folder.join("own.pcap")).unwrap();
    symlink(&outside, folder.join("out.pcap")).unwrap();
    symlink(dir.path(), folder.join("up")).unwrap();
    let names = [
        "../secret.pcap",
        "out.pcap",
        "up/secret.pcap",
        "/etc/passwd",
        outside.to_str().unwrap(),
        "own.pcap/../../secret.pcap",
    ];
    let mut messages: Vec<Value> = names
        .iter()
        .enumerate()
        .map(|(number, name)| call(number, "verdict", &json!({ "input": name })))
        .collect();
    messages.push(call("own", "verdict", &json!({ "input": "own.pcap" })));
    let answers = answers(&folder, &messages);
    for (number, name) in names.iter().enumerate() {
        assert_eq!(of(&answers, number)["result"]["isError"], true, "{name}");
    }
    assert_eq!(of(&answers, "own")["result"]["isError"], false);
}

#[test]
fn cancelled_calls_have_no_answer() {
    let mut messages = Vec::new();
    for number in 0..40 {
        messages.push(call(number, "verdict", &json!({ "input": "write_bw_loss.pcap" })));
        if number != 39 {
            messages.push(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": number } }));
        }
    }
    let answers = answers(&root().join("captures"), &messages);
    // The first ones may have been answered before they were cancelled.
    assert!(answers.len() < 20, "{}", answers.len());
    assert_eq!(of(&answers, 39)["result"]["isError"], false);
}

#[test]
fn an_analysis_that_takes_too_long_is_ended() {
    let input = format!(
        "{}\n{}\n",
        initialize(),
        call(1, "verdict", &json!({ "input": "write_bw_loss.pcap" }))
    );
    let (answers, _) = serve(
        &root().join("captures"),
        &["--time-limit", "1ms"],
        input.as_bytes(),
    );
    let result = &of(&answers, 1)["result"];
    assert_eq!(result["isError"], true);
    assert!(
        result["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("took too long"),
        "{result}"
    );
}

#[test]
#[cfg(feature = "live")]
fn mcp_has_no_rights_but_to_read_its_folder() {
    if !cfg!(debug_assertions) {
        return crate::live::skip("a build without debug assertions makes no attempts");
    }
    let mut command = command(&root());
    let ran = crate::command::ran(
        command
            .args(["mcp", "captures"])
            .env("ROCE_ANALYZE_ATTEMPTS", "1"),
    );
    if ran.stderr.contains("no Landlock") {
        return crate::live::skip("this kernel has no Landlock");
    }
    for attempt in [
        "read /etc/shadow",
        "read /etc/passwd",
        "read around",
        "read its parent",
        "list /",
        "write /etc",
        "write around",
        "write memory",
        "write /tmp",
        "make a folder",
        "link",
        "symbolic link",
        "move",
        "mode",
        "fchmodat",
        "fchownat",
        "utimensat",
        "setxattr",
        "start a program",
        "udp",
        "tcp",
        "connect",
        "unix",
        "netlink",
        "packet socket",
        "ptrace",
        "bpf",
        "move_mount",
        "pidfd_getfd",
        "open_by_handle_at",
    ] {
        assert!(
            ran.stderr.contains(&format!("attempt: {attempt}: refused")),
            "{attempt}: {}",
            ran.stderr
        );
    }
}
