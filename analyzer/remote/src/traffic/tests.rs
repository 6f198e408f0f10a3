//! Answers of hosts, states of streams, and scripts that run here.

use std::process::Command;

use roce_jobs::traffic::{Endpoint, Role};

use super::facts::HostFacts;
use super::script::{self, EndedProcesses, HostRun, Launch, Needs};
use super::status::{Answer, Side, StreamState, state};

const PLACE: HostRun<'static> = HostRun {
    id: "20260101T000000-abcdef",
    host: "here",
};

fn sh(script: &str, runtime: &std::path::Path) -> String {
    let output = Command::new("sh")
        .args(["-c", script])
        .env("XDG_RUNTIME_DIR", runtime)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn facts_of_a_host() {
    let text = "folder=/run/user/0/roce-analyze/traffic/x/gpu1\nother=y\nmissing=ib_write_bw\nbusy=18515\nforeign=3\n\
        port=mlx5_0 1 4 ens1f0np0 100 Gb/sec (4X EDR)\nport=mlx5_1 1 1 - 2.5 Gb/sec (1X SDR)\nport=short\n\
        address=ens1f0np0 fe80::1/64\naddress=ens1f0np0 192.0.2.1/24\nspeed=eth0 25000\nspeed=down -1\nroute=192.0.2.5 ens1f0np0\nanalyze=1\n\
        hca={\"ports\":[{\"device\":\"mlx5_0\",\"port\":1,\"gid_index\":3,\"address\":\"192.0.2.9\"},{\"device\":\"mlx5_7\",\"port\":1}]}\n";
    let facts = HostFacts::parse(text);
    let end = |text: &str| Endpoint::parse(text).unwrap();
    assert_eq!(facts.folder, "/run/user/0/roce-analyze/traffic/x/gpu1");
    assert_eq!((facts.busy.as_slice(), facts.foreign), (&[18_515][..], 3));
    assert_eq!(facts.speed(&end("gpu1:mlx5_0")), Some(100_000_000_000));
    assert_eq!(facts.gid(&end("gpu1:mlx5_0")), Some(3));
    // That of the GID; of a device without one, that of its interface.
    assert_eq!(facts.address(&end("gpu1:mlx5_0")).unwrap(), "192.0.2.9");
    assert_eq!(facts.address(&end("gpu1:ens1f0np0")).unwrap(), "192.0.2.1");
    assert_eq!(facts.speed(&end("gpu1:eth0")), Some(25_000_000_000));
    assert!(!facts.port(&end("gpu1:mlx5_1")).unwrap().is_active);
    assert_eq!((facts.speeds.len(), facts.ports.len()), (1, 2));
    assert_eq!(facts.routes["192.0.2.5"], "ens1f0np0");
}

#[test]
fn the_clock_answers_each_line_behind_the_routes() {
    use std::io::Write as _;
    use std::process::Stdio;

    use crate::clock::{There, now_ns};

    let mut shell = Command::new("sh")
        .args(["-c", &script::clock(&["127.0.0.1"]).unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let before = now_ns();
    shell.stdin.take().unwrap().write_all(b"time\ntime\n").unwrap();
    let output = shell.wait_with_output().unwrap();
    let after = now_ns();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (routes, times) = text.split_once("end=1\n").unwrap();
    let mut facts = HostFacts::default();
    for line in routes.lines().chain(["Welcome = x", "busy=7"]) {
        facts.note_route(line);
    }
    // A machine without `ip` says nothing of routes.
    let route = facts.routes.get("127.0.0.1").map(String::as_str);
    assert!(matches!(route, None | Some("lo")), "{text}");
    assert!(facts.busy.is_empty(), "only routes are taken");
    assert_eq!(times.lines().count(), 2, "{text}");
    for line in times.lines() {
        let there = There::parse(line.strip_prefix("time=").unwrap()).unwrap();
        // A date without fractions cuts off up to a second.
        let cut = if there.step_ns > 1 { there.step_ns } else { 0 };
        assert!((before - cut..=after).contains(&there.ns), "{line}");
    }
}

#[test]
fn states_of_streams() {
    let table = include_str!("../../../../tests/data/fabric/traffic/table.txt");
    let side = |is_alive, code, log: &str| Side {
        is_alive,
        code,
        start_ns: Some(1),
        end_ns: None,
        log_bytes: log.len() as u64,
        log: log.to_owned(),
    };
    let of = |client: Option<Side>, server: Option<Side>| state(client.as_ref(), server.as_ref());
    assert_eq!(of(Some(side(false, Some(0), table)), None), StreamState::Done);
    assert_eq!(of(Some(side(true, None, "")), None), StreamState::Running);
    assert_eq!(of(None, Some(side(true, None, ""))), StreamState::Waiting);
    assert_eq!(of(Some(side(false, Some(143), "")), None), StreamState::Stopped);
    let reason = |state: StreamState| state.reason().unwrap_or_default().to_owned();
    assert!(matches!(
        of(Some(side(false, None, "")), None),
        StreamState::Missing(_)
    ));
    assert!(matches!(of(None, None), StreamState::Missing(_)));
    assert_eq!(
        reason(of(
            Some(side(false, Some(1), "Couldn't connect to 192.0.2.5:18515\n")),
            None
        )),
        "Couldn't connect to 192.0.2.5:18515"
    );
    assert!(reason(of(Some(side(false, Some(124), "")), None)).contains("did not end in time"));
    assert!(reason(of(Some(side(false, Some(0), "")), None)).contains("without results"));
    // The end of a document of iperf3 whose server was ended: the exit code is 0.
    let terminated = include_str!("../../../../tests/data/fabric/traffic/iperf3_terminated.json");
    let mut cut = side(
        false,
        Some(0),
        &terminated[terminated.len() - script::STATUS_LOG_BYTES..],
    );
    cut.log_bytes = terminated.len() as u64;
    assert_eq!(
        reason(of(Some(cut), None)),
        "iperf3 says: the server has terminated"
    );
    assert!(
        reason(of(Some(side(false, Some(9), "---\nodd words\n---\n")), None))
            .contains("exit code 9: odd words")
    );
}

#[test]
fn answers_about_processes_and_counters() {
    // 1,250,000 words of 32 bits in half a second: 80 Mb/s.
    let text = "folder=1\nside=1c 1 - 1700000000000000000 - 12\n|first\n|side=2c 1\n\nside=1s 0 1 - - 0\n\n\
        count=mlx5_0:1 words 1.00 100 18446744073709551615\ncount=mlx5_0:1 words 1.50 1250100 18446744073709551615\n\
        count=rxe0:1 packets 1.00 5 9\ncount=rxe0:1 packets 2.00 105 8\n";
    let answer = Answer::parse(text);
    assert_eq!(answer.sides.len(), 2, "a line of a log is no answer");
    let client = &answer.sides["1c"];
    assert!(client.is_alive && client.code.is_none() && client.end_ns.is_none());
    assert_eq!(client.log, "first\nside=2c 1\n");
    assert_eq!(
        (answer.sides["1s"].is_alive, answer.sides["1s"].code),
        (false, Some(1))
    );
    let rates = answer.rates();
    // A counter that fell gives no rate.
    assert_eq!(rates.len(), 1);
    assert!(
        (rates[0].sent - 80e6).abs() < 1.0 && rates[0].is_bits,
        "{rates:?}"
    );
    assert!(rates[0].received.abs() < f64::EPSILON);
}

#[test]
fn a_run_on_this_machine() {
    let runtime = tempfile::tempdir().unwrap();
    let needs = Needs {
        tool: "sh",
        ports: &[],
        analyze: "surely-no-such-command",
        is_local: true,
        makes_folder: true,
    };
    let facts = HostFacts::parse(&sh(&script::prepare(PLACE, needs).unwrap(), runtime.path()));
    assert!(
        facts.missing.is_empty() && facts.others.is_empty() && !facts.has_analyze,
        "{facts:?}"
    );
    let folder = facts.folder.as_str();
    assert!(
        std::path::Path::new(folder).join("prepared").is_file(),
        "{folder}"
    );
    let launch = |number, role, words: &[&str]| Launch {
        name: script::side(number, role),
        limit: 20,
        words: words.iter().map(|word| (*word).to_owned()).collect(),
    };
    let all = [
        launch(1, Role::Client, &["sh", "-c", "echo \"it's\"; exit 7"]),
        // Programs that succeed when TERM comes, as iperf3 does.
        launch(
            2,
            Role::Client,
            &["sh", "-c", "trap 'exit 0' TERM; sleep 60 & wait"],
        ),
        launch(2, Role::Server, &["sleep", "60"]),
    ];
    sh(
        &script::launch(PLACE, folder, None, &all).unwrap(),
        runtime.path(),
    );
    // A pid file of a run whose process is another program: this test's own.
    let stale = std::path::Path::new(folder).join("9c.pid");
    std::fs::write(&stale, std::process::id().to_string()).unwrap();
    let ask = || Answer::parse(&sh(&script::status(PLACE, folder, &[]).unwrap(), runtime.path()));
    let answer = loop {
        let answer = ask();
        let has_begun = |name: &str| answer.sides.get(name).is_some_and(|side| side.start_ns.is_some());
        if answer.sides.get("1c").is_some_and(|side| side.code.is_some())
            && has_begun("2c")
            && has_begun("2s")
        {
            break answer;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    assert_eq!(
        (answer.sides["1c"].code, answer.sides["1c"].log.trim()),
        (Some(7), "it's")
    );
    assert!(answer.sides["2c"].is_alive && !answer.sides["9c"].is_alive);
    let other = HostRun {
        id: "20260101T000000-000000",
        host: "here",
    };
    let facts = HostFacts::parse(&sh(&script::prepare(other, needs).unwrap(), runtime.path()));
    assert_eq!(facts.others, [PLACE.id]);
    sh(&script::clean(&facts.folder).unwrap(), runtime.path());
    assert!(!std::path::Path::new(&facts.folder).exists());

    // Clients end first: their servers live.
    sh(
        &script::stop(PLACE, EndedProcesses::Clients).unwrap(),
        runtime.path(),
    );
    let answer = ask();
    assert_eq!(answer.sides["2c"].code, Some(143), "{answer:?}");
    assert!(answer.sides["2s"].is_alive, "{answer:?}");
    let text = sh(&script::stop(PLACE, EndedProcesses::All).unwrap(), runtime.path());
    let count = |text: &str, key: &str| -> u32 {
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap().parse().unwrap()
    };
    assert!(
        count(&text, "found=") >= 2 && count(&text, "killed=") == 0,
        "{text}"
    );
    assert!(!text.contains("left="), "{text}");
    assert_eq!(ask().sides["2s"].code, Some(143));
    let again = sh(&script::stop(PLACE, EndedProcesses::All).unwrap(), runtime.path());
    assert_eq!(count(&again, "found="), 0);
    sh(&script::clean(folder).unwrap(), runtime.path());
    assert!(!std::path::Path::new(folder).parent().unwrap().exists());
}

#[test]
fn ids_of_runs() {
    for wrong in ["", "-a", "a/b", "..", "a b", &"x".repeat(41)] {
        assert!(!super::is_run_id(wrong), "{wrong}");
    }
    assert!(super::is_run_id(PLACE.id));
}
