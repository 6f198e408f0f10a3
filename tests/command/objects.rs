//! Captures in a store, by the real command: a server of this test speaks as much of S3 as reading takes. What the process that connects may do is
//! compared with the table of `docs/internals/rights.md`. Writing and live runs are checked against moto (`tests/independent/store/check.py`).

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use tempfile::tempdir;

use crate::captures::root;
use crate::command::{command, ran};

const CAPTURE: &str = "tests/data/send_bw_ce_gradual.pcap";
const CANARY: &str = "CANARY-secret-of-the-store";

/// A store with one object, `s3://b/c.pcap`. The first answer with data ends after a third of it. Where `holds`, answers with data wait until the
/// test has ended.
struct Server {
    address: String,
    lines: Receiver<String>,
}

impl Server {
    fn new(object: Vec<u8>, holds: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (said, lines) = channel();
        std::thread::spawn(move || {
            let mut cut = true;
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let Some((line, headers)) = request(&connection) else {
                    continue;
                };
                let is_there = line.contains("/b/c.pcap");
                if said.send(line.clone()).is_err() {
                    return;
                }
                let about =
                    "etag: \"one\"\r\nlast-modified: Thu, 01 Jan 2026 00:00:00 GMT\r\nconnection: close\r\n";
                if !is_there {
                    let _ = write!(
                        connection,
                        "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n{about}\r\n"
                    );
                    continue;
                }
                if line.starts_with("HEAD") {
                    let size = object.len();
                    let _ = write!(
                        connection,
                        "HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n{about}\r\n"
                    );
                    continue;
                }
                if holds {
                    // Until the other side has gone.
                    let _ = connection.read(&mut [0; 1]);
                    continue;
                }
                let range = headers["range"]
                    .strip_prefix("bytes=")
                    .unwrap()
                    .split_once('-')
                    .unwrap();
                let first: usize = range.0.parse().unwrap();
                let last = range.1.parse::<usize>().unwrap().min(object.len() - 1);
                let body = &object[first..=last];
                let _ = write!(
                    connection,
                    "HTTP/1.1 206 Partial Content\r\ncontent-length: {}\r\ncontent-range: bytes {first}-{last}/{}\r\n{about}\r\n",
                    body.len(),
                    object.len()
                );
                let sent = if cut { body.len() / 3 } else { body.len() };
                cut = false;
                let _ = connection.write_all(&body[..sent]);
            }
        });
        Self { address, lines }
    }

    /// The command with this store.
    fn command(&self, folder: &std::path::Path) -> Command {
        let mut command = command(folder);
        command
            .env("AWS_ENDPOINT_URL", &self.address)
            .env("AWS_ALLOW_HTTP", "true")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "id")
            .env("AWS_SECRET_ACCESS_KEY", CANARY);
        command
    }
}

fn request(connection: &TcpStream) -> Option<(String, BTreeMap<String, String>)> {
    let mut lines = BufReader::new(connection).lines();
    let first = lines.next()?.ok()?;
    let mut headers = BTreeMap::new();
    while let Some(Ok(line)) = lines
        .next()
        .filter(|line| line.as_ref().is_ok_and(|line| !line.is_empty()))
    {
        let (name, value) = line.split_once(": ")?;
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    Some((first, headers))
}

#[test]
fn a_capture_in_a_store_gives_what_the_file_gives() {
    let folder = tempdir().unwrap();
    let file = root().join(CAPTURE);
    let server = Server::new(fs::read(&file).unwrap(), false);
    let of_store = ran(server
        .command(folder.path())
        .args(["s3://b/c.pcap", "--format", "json"]));
    assert_eq!(of_store.code, Some(0), "{of_store:?}");
    let of_file = ran(command(folder.path()).arg(&file).args(["--format", "json"]));
    let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let (found, expected) = (parse(&of_store.stdout), parse(&of_file.stdout));
    for part in ["totals", "flows", "findings", "episodes"] {
        assert!(!expected[part].is_null(), "{part}");
        assert_eq!(found[part], expected[part], "{part}");
    }
    let requests: Vec<String> = server.lines.try_iter().collect();
    assert!(
        requests.iter().filter(|line| line.starts_with("GET")).count() >= 2,
        "{requests:?}"
    );
    let again = ran(Server::new(fs::read(&file).unwrap(), false)
        .command(folder.path())
        .args(["s3://b/c.pcap", "--format", "json"]));
    assert_eq!(
        parse(&again.stdout)["run_id"],
        found["run_id"],
        "the same capture is the same run"
    );
}

#[test]
fn errors_name_the_object_and_no_secret() {
    let folder = tempdir().unwrap();
    let server = Server::new(Vec::new(), false);
    for (url, expected) in [
        (
            "s3://b/none.pcap",
            "s3://b/none.pcap: cannot be opened: no such object",
        ),
        (
            "s3://b/c.pcap?X-Amz-Signature=abcdef",
            "s3://b/c.pcap: a user, a query or a fragment is not allowed",
        ),
        ("s3://b/c.pcap", "s3://b/c.pcap: empty"),
    ] {
        let run = ran(server.command(folder.path()).arg(url));
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains(expected), "{url}: {}", run.stderr);
        assert!(
            !run.stderr.contains("abcdef") && !run.stderr.contains(CANARY),
            "{}",
            run.stderr
        );
    }
    let local = format!("file://{}", root().join(CAPTURE).display());
    assert_eq!(
        ran(command(folder.path()).args([&local, "--format", "none"])).code,
        Some(0)
    );
}

/// The process that connects, of a run: its child.
/// The library panics at each of these: it is an answer, and names the object.
#[test]
fn settings_that_fit_no_request_are_errors() {
    let folder = tempdir().unwrap();
    let server = Server::new(Vec::new(), false);
    for (name, value) in [
        ("AWS_ENDPOINT_URL", " "),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:99999"),
        ("AWS_SESSION_TOKEN", "a\nb"),
    ] {
        let ran = ran(server
            .command(folder.path())
            .env(name, value)
            .arg("s3://b/c.pcap"));
        assert_eq!(ran.code, Some(2), "{name}: {ran:?}");
        assert!(
            ran.stderr.contains("s3://b/c.pcap: ") && !ran.stderr.contains("panicked"),
            "{name}: {}",
            ran.stderr
        );
        assert!(!ran.stderr.contains(CANARY), "{name}");
    }
}

fn child_of(parent: u32) -> Option<u32> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut children = numbers.filter(|number| {
        let status = fs::read_to_string(format!("/proc/{number}/status")).unwrap_or_default();
        status.lines().any(|line| line == format!("PPid:\t{parent}"))
    });
    children.next()
}

#[test]
fn the_process_that_connects_has_no_other_rights() {
    let folder = tempdir().unwrap();
    let server = Server::new(vec![0; 1_000], true);
    let mut run = server
        .command(folder.path())
        .arg("s3://b/c.pcap")
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let mut line = String::new();
    while !line.starts_with("GET") {
        line = server.lines.recv_timeout(Duration::from_secs(30)).unwrap();
    }
    assert!(begun.elapsed() < Duration::from_secs(30));
    let child = child_of(run.id()).expect("the process that connects");
    let tasks = fs::read_dir(format!("/proc/{child}/task")).unwrap();
    let mut threads = 0;
    for task in tasks {
        let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        for expected in [
            "CapEff:\t0000000000000000",
            "CapPrm:\t0000000000000000",
            "NoNewPrivs:\t1",
            "Seccomp:\t2",
        ] {
            assert!(
                status.lines().any(|line| line == expected),
                "{expected}: {status}"
            );
        }
        threads += 1;
    }
    assert!(threads >= 2, "{threads} threads");
    run.kill().unwrap();
    run.wait().unwrap();
    // It ends with the run, whatever it waits for.
    while fs::metadata(format!("/proc/{child}")).is_ok() {
        let status = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        if status.contains(") Z ") {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(40), "it goes on: {status}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
