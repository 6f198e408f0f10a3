//! `--merge` with documents of a job: NCCL's Inspector, RAS and PyTorch's flight recorder beside a simulated job of four ranks.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::command::{command, document, run};

const MS: u64 = 1_000_000;

/// Four ranks; rank 2 is late by `late` in the last of five steps. Another connection goes on to the end.
fn simulate(dir: &Path, late: &str) {
    let scenario = format!(
        "title = \"a job\"\nseed = 1\nduration = \"2500ms\"\n[network]\nhosts = 4\nrate = \"100Gbps\"\n[nic]\nmtu = 4096\n\
         [[training]]\nranks = \"h1..h4\"\ntransport = \"nccl\"\nversion = \"2.21\"\nslice = \"32KiB\"\nsteps = 5\n\
         compute = \"800us\"\nspread = 0.01\nbytes = \"256KiB\"\nlate = [{{ rank = 2, by = \"{late}\", steps = [4] }}]\n\
         [[flow]]\nfrom = \"h1\"\nto = \"h2\"\nmessage = \"4KiB\"\ninterval = \"100ms\"\n"
    );
    let mut taps = String::new();
    for host in 1..=4 {
        let _ = write!(taps, "[[tap]]\nat = \"h{host}\"\nsnaplen = 160\n");
    }
    fs::write(dir.join("job.toml"), scenario + &taps).unwrap();
    let made = command(dir)
        .args(["simulate", "job.toml", "-o", "job.pcapng"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn captures(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names
        .filter(|name| name.starts_with("job") && name.contains("pcapng"))
        .collect();
    names.sort();
    assert_eq!(names.len(), 4, "{names:?}");
    names
}

/// The document of the captures with these files merged.
fn merged(dir: &Path, files: &[&str]) -> Value {
    let mut arguments = captures(dir);
    for file in files {
        arguments.extend(["--merge".to_owned(), (*file).to_owned()]);
    }
    document(dir, arguments)
}

fn finding<'a>(document: &'a Value, id: &str) -> Option<&'a Value> {
    document["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["id"] == id)
}

fn time(value: &Value) -> u64 {
    value
        .as_str()
        .map_or_else(|| value.as_u64(), |text| text.parse().ok())
        .unwrap()
}

/// Dumps of flight recorders: five collectives, of which rank 2 has the last one enqueued only, and others have begun it.
fn write_dumps(dir: &Path, first: u64, is_done: bool) -> Vec<String> {
    let names = (0..4).map(|rank| {
        let entries: Vec<Value> = (1..=5)
            .map(|number| {
                let state = match (number, rank, is_done) {
                    (5, 2, false) => "scheduled",
                    (5, _, false) => "started",
                    _ => "completed",
                };
                json!({"pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": number, "p2p_seq_id": 0,
                    "profiling_name": "nccl:all_reduce", "time_created_ns": first + number * MS, "state": state,
                    "time_discovered_started_ns": 0, "time_discovered_completed_ns": 0, "is_p2p": false})
            })
            .collect();
        let completed = if is_done { "5" } else { "4" };
        let dump = json!({"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}},
            "pg_status": {"0": {"last_enqueued_collective": "5", "last_completed_collective": completed}}, "entries": entries});
        let name = format!("nccl_trace_rank_{rank}");
        fs::write(dir.join(&name), dump.to_string()).unwrap();
        name
    });
    names.collect()
}

#[test]
fn a_stuck_collective_is_named_with_its_connection() {
    let dir = tempdir().unwrap();
    let dir = dir.path();
    simulate(dir, "60s");
    let plain = merged(dir, &[]);
    assert!(finding(&plain, "job.stuck").is_none());
    let first = time(&plain["run"]["first_time"]);
    let dumps = write_dumps(dir, first, false);
    let dumps: Vec<&str> = dumps.iter().map(String::as_str).collect();
    let found = merged(dir, &dumps);
    let stuck = finding(&found, "job.stuck").unwrap_or_else(|| panic!("{}", found["findings"]));
    assert_eq!(
        (&stuck["severity"], &stuck["confidence"]),
        (&json!("critical"), &json!("high"))
    );
    let summary = stuck["summary"].as_str().unwrap();
    assert!(
        summary.starts_with(
            "rank 2 (10.0.0.3) has not completed all_reduce 5 of default_pg, which others have begun"
        ),
        "{summary}"
    );
    assert_eq!(stuck["aggressors"], json!(["10.0.0.3[rank2]"]));
    // Its connection is that to rank 3, and what is said of it is the row of the table.
    let evidence = &stuck["evidence"];
    assert_eq!(evidence["connection"], "10.0.0.3[rank2] > 10.0.0.4[rank3]");
    let credits = found["credits"].as_array().unwrap();
    let rows: Vec<&Value> = credits.iter().filter(|row| row["sender_rank"] == 2).collect();
    assert!(
        rows.iter().all(|row| row["credits_unused"].as_u64().unwrap() > 0),
        "{rows:?}"
    );
    assert!(
        rows.iter()
            .any(|row| row["credits_unused"] == evidence["credits_unused"])
    );
    assert_eq!(evidence["outstanding_bytes"], 0);
    let silent = rows.iter().map(|row| time(&row["last_time"])).max().unwrap();
    assert!(evidence["last_ack_after_ns"].as_u64().unwrap() <= silent - first);
    // The other connection ends at 2.5 s at most, and has a message each 100 ms.
    let waited = stuck["waited_ns"].as_u64().unwrap();
    assert!((2_300 * MS..2_500 * MS).contains(&waited), "{waited}");
    assert!(
        found["run"]["sentence"]
            .as_str()
            .unwrap()
            .starts_with("Rank 2 (10.0.0.3) has not completed")
    );
    // States of all four ranks are rows, with the addresses that credits give them.
    let states = found["rank_states"].as_array().unwrap();
    assert_eq!(states.len(), 4);
    assert_eq!(
        (&states[2]["state"], &states[2]["address"]),
        (&json!("scheduled"), &json!("10.0.0.3"))
    );
    // Dumps of a job that goes on make no finding, nor do those of another time.
    write_dumps(dir, first, true);
    assert!(finding(&merged(dir, &dumps), "job.stuck").is_none());
    write_dumps(dir, first + 3_600_000 * MS, false);
    let mut arguments = captures(dir);
    arguments.extend(
        dumps
            .iter()
            .flat_map(|file| ["--merge".to_owned(), (*file).to_owned()]),
    );
    let ran = run(dir, arguments);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr
            .contains("nccl_trace_rank_0: is not merged: its times are from"),
        "{}",
        ran.stderr
    );
}

#[test]
fn ras_names_a_dead_rank_and_other_hosts_join_nothing() {
    let dir = tempdir().unwrap();
    let dir = dir.path();
    simulate(dir, "1ms");
    let first = time(&merged(dir, &[])["run"]["first_time"]) / 1_000_000_000;
    let status = |host: &str, counts: [u64; 4], is_dead: bool| {
        let rank = |(rank, count): (usize, u64)| {
            json!({"rank": rank, "host": format!("{host}{}", rank + 1), "pid": 100 + rank, "status": {"considered_dead": is_dead && rank == 2},
                "collective_counts": {"AllReduce": count, "Broadcast": 0}})
        };
        let ranks: Vec<Value> = (0..4).zip(counts).map(rank).collect();
        let local = local(first);
        json!({"nccl_version": "2.30.7", "timestamp": local, "communicators": [{"hash": "0x1", "size": 4, "ranks": ranks}]}).to_string()
    };
    // One operation behind is normal.
    fs::write(dir.join("ras.json"), status("10.0.0.", [5, 5, 4, 5], false)).unwrap();
    let found = merged(dir, &["ras.json", "ras.json"]);
    assert!(finding(&found, "job.stuck").is_none(), "{}", found["findings"]);
    assert_eq!(found["traces"][0]["form"], "ras");
    assert_eq!(found["rank_states"].as_array().unwrap().len(), 8);
    fs::write(dir.join("ras.json"), status("10.0.0.", [5, 5, 4, 5], true)).unwrap();
    let found = merged(dir, &["ras.json"]);
    let stuck = finding(&found, "job.stuck").unwrap();
    assert!(
        stuck["summary"]
            .as_str()
            .unwrap()
            .starts_with("rank 2 (10.0.0.3) is considered dead by RAS"),
        "{stuck}"
    );
    // Equal ranks at hosts of another network may be another job.
    fs::write(dir.join("ras.json"), status("172.16.0.", [5, 5, 4, 5], true)).unwrap();
    let mut arguments = captures(dir);
    arguments.extend(["--job-log", "ras.json", "--format", "json"].map(str::to_owned));
    let ran = run(dir, arguments);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr
            .contains("none of its hosts is in the capture (172.16.0.1, 172.16.0.2, 172.16.0.3, ...)"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stdout.contains("job.stuck"));
}

/// The form of RAS's times, here in UTC.
fn local(seconds: u64) -> String {
    let time = jiff::Timestamp::from_second(i64::try_from(seconds).unwrap()).unwrap();
    time.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Inspector's files of the same job: the late rank is the one with the shortest time.
#[test]
fn inspector_has_times_and_the_late_rank_the_shortest() {
    let dir = tempdir().unwrap();
    let dir = dir.path();
    simulate(dir, "400us");
    let plain = merged(dir, &[]);
    let waits = plain["collective_waits"].as_array().unwrap();
    assert_eq!(waits.len(), 20);
    let mut files = Vec::new();
    for rank in 0..4_u64 {
        let mut text = String::new();
        for row in waits.iter().filter(|row| row["rank"] == rank) {
            let (start, end) = (
                time(&row["start_time"]) / 1_000 - 20,
                time(&row["end_time"]) / 1_000 + 5,
            );
            let number = row["collective"].as_u64().unwrap() + 1;
            let record = json!({"header": {"id": "0x7f", "rank": rank, "n_ranks": 4}, "metadata": {"hostname": format!("n{rank}"), "pid": 1},
                "coll_perf": {"coll": "AllReduce", "coll_sn": number, "coll_msg_size_bytes": 262_144,
                    "coll_exec_time_us": if rank == 1 { 100 } else { 500 },
                    "event_trace_ts": {"kernel_events": [{"channel_id": 0, "kernel_start_ts": start, "kernel_stop_ts": end}]}}});
            let _ = writeln!(text, "{record}");
        }
        let name = format!("n{rank}-pid1.log");
        fs::write(dir.join(&name), text).unwrap();
        files.push(name);
    }
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let found = merged(dir, &files);
    let calls = found["collective_calls"].as_array().unwrap();
    assert_eq!(calls.len(), 20);
    assert_eq!(
        (&calls[0]["sequence"], &calls[0]["communicator"]),
        (&json!(1), &json!("0x7f"))
    );
    // They agree with the rests between collectives, so that nothing else changes.
    assert_eq!(found["collective_waits"], plain["collective_waits"]);
    let states = found["rank_states"].as_array().unwrap();
    assert_eq!(
        (&states[1]["median_ns"], &states[1]["collectives"]),
        (&json!(100_000), &json!(5))
    );
    // The packets' answer comes first; documents alone name the rank with the shortest time.
    let is_shown = finding(&plain, "rank.late").is_some();
    assert_eq!(finding(&found, "rank.last").is_none(), is_shown);
}
