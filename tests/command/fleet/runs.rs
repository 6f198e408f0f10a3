//! Runs over local hosts: captures, collection, messages, commands and checks.

use std::fs;

use super::hosts::{Hosts, INTERFACE, frames, sha256, wait};
use crate::captures::Capture;
use crate::command::{document, total};
use crate::live::whole;

#[test]
fn all_hosts_capture_and_one_report_comes_out() {
    let Some(hosts) = Hosts::new(3) else { return };
    let sent = frames().len() as u64;
    let golden = Capture::named("write_bw_loss").golden();
    assert_eq!(golden.of("roce_packets"), sent, "all are RoCE");
    let ran = hosts.captured("run1", &[], frames());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("3 of 3 hosts captured"), "{}", ran.stdout);
    let manifest = hosts.manifest("run1");
    assert_eq!(manifest["state"], "done");
    assert_eq!(manifest["command"]["exit_code"], 0);
    for (host, name) in manifest["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .zip(["h1", "h2", "h3"])
    {
        assert_eq!(
            (&host["name"], &host["state"]),
            (&name.into(), &"collected".into())
        );
        assert_eq!((&host["how"], &host["exit_code"]), (&"live".into(), &0.into()));
        // The bridge floods: all hosts see what two of them send.
        assert_eq!(
            (&host["frames"], &host["dropped"]),
            (&sent.into(), &0.into()),
            "{name}"
        );
        let file = &host["files"][0];
        let local = format!("{name}.{INTERFACE}.pcapng.zst");
        assert_eq!(file["name"], local);
        let path = hosts.path("run1").join(&local);
        assert_eq!(file["sha256"], sha256(&path));
        assert_eq!(file["bytes"], fs::metadata(&path).unwrap().len());
        // One machine: its clock is its own.
        let (ahead, bound) = (&host["clock"]["ahead_ns"], &host["clock"]["bound_ns"]);
        assert!(ahead.as_i64().unwrap().abs() <= bound.as_i64().unwrap() + 1_000);
        let late = host["first_frame_ns"].as_i64().unwrap() - host["start_ns"].as_i64().unwrap();
        assert!((0..20_000_000_000).contains(&late), "{late}");
    }
    assert!(!hosts.remote().exists(), "nothing is left on the hosts");

    let report = document(hosts.folder.path(), ["run1"]);
    assert_eq!(total(&report, "frames"), 3 * sent);
    let taps = report["taps"].as_array().unwrap();
    let mut inputs: Vec<&str> = taps.iter().map(|tap| tap["input"].as_str().unwrap()).collect();
    inputs.sort_unstable();
    assert_eq!(inputs, ["h1", "h2", "h3"]);
    // Each packet is seen three times, and counted once.
    assert!(
        taps.iter()
            .all(|tap| tap["matched_packets"].as_u64().unwrap() > 0),
        "{taps:?}"
    );

    // The folder of a run is not replaced.
    let again = hosts.fleet(&["capture", "-o", "run1"]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("run1: already exists"), "{}", again.stderr);
}

#[test]
fn samples_of_all_hosts_are_in_the_report() {
    let Some(hosts) = Hosts::new(2) else { return };
    let ran = hosts.captured("run", &["--counters"], whole("rping"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = document(hosts.folder.path(), ["run"]);
    let samples = report["samples"].as_array().unwrap();
    for host in ["h1", "h2"] {
        let mut own = samples.iter().filter(|sample| sample["node"] == host);
        assert!(own.any(|sample| sample["object"] == INTERFACE), "{host}");
    }
    assert!(!hosts.remote().exists(), "nothing is left on the hosts");
}

#[test]
fn tcpdump_captures_where_the_program_is_not() {
    let Some(hosts) = Hosts::new(2) else { return };
    let ran = hosts.captured("run", &["--by", "tcpdump"], frames());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for host in hosts.manifest("run")["hosts"].as_array().unwrap() {
        assert_eq!(host["how"], "tcpdump");
        assert_eq!(host["frames"], frames().len());
        assert_eq!(host["dropped"], 0);
        assert_eq!(host["warnings"].as_array().unwrap().len(), 0, "{host}");
    }
}

#[test]
fn one_host_fails_and_the_others_go_on() {
    let Some(hosts) = Hosts::new(2) else { return };
    let missing = hosts.local(2, "").replace(INTERFACE, "eth77");
    hosts.write_inventory(&(hosts.local(1, "") + &missing));
    let ran = hosts.captured("run", &[], whole("rping"));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("1 of 2 hosts captured"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("h2: there is no interface 'eth77'"),
        "{}",
        ran.stderr
    );
    let manifest = hosts.manifest("run");
    assert_eq!(manifest["hosts"][0]["state"], "collected");
    assert_eq!(manifest["hosts"][1]["state"], "failed");
    assert_eq!(manifest["hosts"][1]["files"].as_array().unwrap().len(), 0);

    let ran = ran_all_or_none(&hosts);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(!hosts.path("begun2").exists(), "the command did not run");
    let manifest = hosts.manifest("none");
    assert_eq!(manifest["hosts"][0]["state"], "failed");
}

fn ran_all_or_none(hosts: &Hosts) -> crate::command::Ran {
    crate::command::ran(&mut hosts.capture("none", &["--all-or-none", "--", "touch", "begun2"]))
}

#[test]
fn a_clock_that_is_off_is_measured_and_said() {
    use std::os::unix::fs::PermissionsExt as _;
    let Some(hosts) = Hosts::new(1) else { return };
    let bin = hosts.path("bin");
    fs::create_dir(&bin).unwrap();
    // Two hours fast.
    fs::write(
        bin.join("date"),
        "#!/bin/sh\nexec /bin/date -d '2 hours' \"$@\"\n",
    )
    .unwrap();
    fs::set_permissions(bin.join("date"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("env PATH={}:/usr/sbin:/usr/bin:/sbin:/bin", bin.display());
    hosts.write_inventory(&hosts.local(1, &path));
    let ran = hosts.captured("run", &["--by", "tcpdump"], whole("rping"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said = ran.stderr.matches("h1: its clock is 2.0 h fast").count();
    assert_eq!(said, 1, "{}", ran.stderr);
    let clock = &hosts.manifest("run")["hosts"][0]["clock"];
    let off = clock["ahead_ns"].as_i64().unwrap() - 7_200_000_000_000;
    assert!(
        off.abs() <= clock["bound_ns"].as_i64().unwrap() + 1_000,
        "{clock}"
    );
}

/// Trap 19: no frame, while the ports counted gigabytes.
#[test]
fn a_capture_that_sees_nothing_while_counters_rise_is_an_error() {
    let Some(hosts) = Hosts::new(2) else { return };
    let port = hosts.path("sys/class/infiniband/mlx5_0/ports/1");
    fs::create_dir_all(port.join("counters")).unwrap();
    fs::create_dir_all(port.join("gid_attrs/ndevs")).unwrap();
    fs::write(port.join("gid_attrs/ndevs/0"), format!("{INTERFACE}\n")).unwrap();
    let counter = port.join("counters/port_rcv_data");
    fs::write(&counter, "1000\n").unwrap();
    let root = format!("env ROCE_FLEET_SYSFS={}", hosts.path("sys").display());
    hosts.write_inventory(&(hosts.local(1, &root) + &hosts.local(2, "")));
    // 2^30 units of four bytes.
    let script = format!("echo 1073742824 > {}", counter.display());
    let ran = crate::command::ran(&mut hosts.capture("run", &["--", "sh", "-c", &script]));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let manifest = hosts.manifest("run");
    let host = &manifest["hosts"][0];
    assert_eq!(host["check"], "capture.blind");
    assert_eq!(host["counters"]["received_bytes"], 4_294_967_296_u64);
    assert_eq!(host["frames"], 0);
    assert!(
        ran.stderr.contains("h1: capture.blind: no frame was captured"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        manifest["hosts"][1]["error"],
        serde_json::Value::Null,
        "no counters, no error"
    );
}

/// The start is a time, the capture runs on one processor, and too few bytes of each packet are warned of: 58 of headers and 20 of RoCE.
#[test]
fn a_planned_start_a_processor_and_few_bytes() {
    let Some(hosts) = Hosts::new(1) else { return };
    let words = [
        "--from",
        "+5s",
        "--duration",
        "1s",
        "--cpus",
        "0",
        "--snaplen",
        "77",
    ];
    let ran = crate::command::ran(&mut hosts.capture("run", &words));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr
            .contains("77 bytes cut RoCE's acknowledgements and checksums off: 78 is the least"),
        "{ran:?}"
    );
    let manifest = hosts.manifest("run");
    let time = |name: &str| manifest[name].as_i64().unwrap();
    let ahead = time("start_ns") - time("begun_ns");
    assert!((5_000_000_000..60_000_000_000).contains(&ahead), "{manifest}");
    assert_eq!(
        (&manifest["snaplen"], &manifest["duration_ms"]),
        (&77.into(), &1_000.into())
    );
    let cpu = manifest["hosts"][0]["cpu"].as_str().unwrap();
    assert!(cpu.contains('s'), "processor time of the capture: {manifest}");
}

#[test]
fn commands_run_on_all_hosts() {
    let Some(hosts) = Hosts::new(2) else { return };
    let ran = hosts.fleet(&[
        "run",
        "--",
        "sh",
        "-c",
        "ip -br addr show dev rdma0 | grep -o '10\\.[0-9.]*'",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut lines: Vec<&str> = ran.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["h1  10.99.0.1", "h2  10.99.0.2"]);
    // It succeeds on the second host alone.
    let script = "ip -br addr show dev rdma0 | grep -q '10\\.99\\.0\\.2' || exit 5";
    let ran = hosts.fleet(&["run", "--", "sh", "-c", script]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr
            .contains("h1: the command failed there with exit code 5"),
        "{}",
        ran.stderr
    );
    let ran = hosts.fleet(&["run", "h2", "--", "surely-no-such-command"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn a_command_that_hangs_is_given_up_and_ended() {
    let Some(hosts) = Hosts::new(1) else { return };
    // Nobody else sleeps for this time.
    let seconds = format!("6{}", std::process::id());
    let ran = hosts.fleet(&["run", "--timeout", "1s", "--", "sleep", &seconds]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("h1: no answer within 1 s"), "{}", ran.stderr);
    let sleeps = || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let lines = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        lines
            .into_iter()
            .any(|line| line == format!("sleep\0{seconds}\0").as_bytes())
    };
    wait("the command ends", || !sleeps());
}

#[test]
fn all_hosts_are_examined() {
    let Some(hosts) = Hosts::new(2) else { return };
    let ran = hosts.fleet(&["doctor", "--only", "fleet,host", "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let document = ran.json();
    let text = document.to_string();
    // One kernel: the comparison of two hosts says so.
    assert!(
        text.contains("fleet.same") && text.contains("kernel is the same on 2 hosts"),
        "{text}"
    );
}
