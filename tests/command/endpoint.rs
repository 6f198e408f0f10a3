//! `metrics serve` and `live --metrics` over loopback: the real command, queried as a scraper does.

mod collector;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::{TempDir, tempdir};

use crate::captures::{frames, root};
use crate::command::{command, ran, run};
use crate::host::host;
use crate::live::Net;

/// A command that serves metrics; it is killed when this is dropped.
struct ServingCommand {
    child: Child,
    /// Where it serves.
    at: Address,
    /// Lines of its standard error.
    said: Arc<Mutex<Vec<String>>>,
}

/// An endpoint under test: `127.0.0.1:PORT`.
#[derive(Clone)]
struct Address(String);

impl ServingCommand {
    /// Waits until it says where it serves.
    fn of(mut child: Child) -> Self {
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let address = lines.by_ref().find_map(|line| {
            let line = line.unwrap();
            let address = line
                .split_once("://")
                .and_then(|(_, rest)| Some(rest.split_once('/')?.0.to_owned()));
            said.push(line);
            address
        });
        let address = address.unwrap_or_else(|| panic!("{said:#?}"));
        let said = Arc::new(Mutex::new(said));
        // The pipe stays open: whoever serves may say more.
        let later = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                later.lock().unwrap().push(line);
            }
        });
        Self {
            child,
            at: Address(address),
            said,
        }
    }

    /// Lines that it wrote on standard error.
    fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    fn new(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = command(folder);
        command
            .args(["metrics", "serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .stderr(Stdio::piped());
        Self::of(command.spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for ServingCommand {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Address {
    /// Asks once and returns the whole answer.
    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.0).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn get(&self, path: &str) -> String {
        self.ask(&format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        ))
    }

    /// The value of a series in a scrape.
    #[track_caller]
    fn value(&self, series: &str) -> Option<f64> {
        let text = self.get("/metrics");
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
        Some(line.parse().unwrap())
    }

    /// Waits until a series has a value that fits.
    #[track_caller]
    fn until(&self, series: &str, fits: impl Fn(f64) -> bool) {
        let begun = Instant::now();
        while !self.value(series).is_some_and(&fits) {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "{series}: {}",
                self.get("/metrics")
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// A folder that every user can look into: a server of root goes on as nobody.
fn open_folder() -> TempDir {
    let folder = tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

#[test]
fn a_recorded_host_is_served_and_read_again() {
    let folder = open_folder();
    host(&folder.path().join("host"), 40_394_737, 41_210, 1_187);
    let serving = ServingCommand::new(folder.path(), &["--read", "host", "--interval", "100ms"]);
    let answer = serving.at.get("/metrics");
    for line in [
        "roce_port_ecn_marked_packets_received_total{device=\"mlx5_0\",port=\"1\"} 40394737",
        "roce_pfc_received_frames_total{netdev=\"ens1f0np0\",priority=\"3\"} 41210",
        "roce_collector_success{collector=\"host\"} 1",
        "roce_collector_interval_seconds{collector=\"host\"} 0.1",
        "roce_series_left_out 0",
    ] {
        assert!(answer.lines().any(|found| found == line), "{line}\n{answer}");
    }
    for name in [
        "roce_collector_age_seconds",
        "process_resident_memory_bytes",
        "process_cpu_seconds_total",
        "roce_build_info",
    ] {
        assert!(answer.contains(&format!("\n{name}")), "{name}\n{answer}");
    }
    // Each family is described once, whatever part of the text it is in.
    let mut families: Vec<&str> = answer
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .collect();
    let all = families.len();
    families.sort_unstable();
    families.dedup();
    assert_eq!(families.len(), all);
    // It is read again.
    host(&folder.path().join("host"), 40_400_000, 41_210, 1_187);
    serving.at.until(
        "roce_port_ecn_marked_packets_received_total{device=\"mlx5_0\",port=\"1\"}",
        |value| value > 40_399_999.0,
    );
    // A device that goes away takes its series with it: absent, not 0, and no old value.
    fs::remove_dir_all(folder.path().join("host/sys/class/infiniband/mlx5_0")).unwrap();
    let begun = Instant::now();
    while serving.at.get("/metrics").contains("{device=\"mlx5_0\"") {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(serving.at.get("/-/healthy").starts_with("HTTP/1.1 200 "));
    assert!(serving.at.get("/probe").starts_with("HTTP/1.1 400 "));
}

/// nvidia-smi that prints lines until a file is there; it writes down who has started it.
const NVIDIA_SMI: &str = r#"#!/bin/sh
echo $PPID > pids/parent
case "$*" in
*-lms*)
    while [ ! -e hang ]; do
        echo '0, GPU-1, NVIDIA H100 80GB HBM3, 00000000:3B:00.0, 41, 61, 72310, 81559, 64, 78, 688.21, 700.00, 1755, 2619, 0x0000000000000004, 5, 16, 0' || exit
        sleep 0.2
    done
    exec sleep 60;;
*)
    echo 'index, uuid, name, pci.bus_id, utilization.gpu [%], utilization.memory [%], memory.used [MiB], memory.total [MiB], temperature.gpu, temperature.memory, power.draw [W], enforced.power.limit [W], clocks.current.sm [MHz], clocks.current.memory [MHz], clocks_event_reasons.active, pcie.link.gen.gpucurrent, pcie.link.width.current, ecc.errors.uncorrected.volatile.total'
    echo '0, GPU-1, NVIDIA H100 80GB HBM3, 00000000:3B:00.0, 10 %, 61 %, 72310 MiB, 81559 MiB, 64, 78, 688.21 W, 700.00 W, 1755 MHz, 2619 MHz, 0x0000000000000004, 5, 16, 0';;
esac
"#;

#[test]
fn checks_and_gpus_are_read_by_another_process() {
    let folder = open_folder();
    let path = folder.path();
    for (name, mode) in [("bin", 0o755), ("pids", 0o777)] {
        fs::create_dir(path.join(name)).unwrap();
        fs::set_permissions(path.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::write(path.join("bin/nvidia-smi"), NVIDIA_SMI).unwrap();
    fs::set_permissions(path.join("bin/nvidia-smi"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = command(path);
    command
        .args([
            "metrics",
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--interval",
            "1s",
            "--doctor-every",
            "1s",
        ])
        .env("PATH", format!("{}:/usr/bin:/bin", path.join("bin").display()))
        .stderr(Stdio::piped());
    let mut serving = ServingCommand::of(command.spawn().unwrap());
    serving.at.until("roce_gpu_utilization_ratio{gpu=\"0\"}", |load| {
        (load - 0.41).abs() < 1e-9
    });
    serving
        .at
        .until("roce_collector_success{collector=\"doctor\"}", |success| {
            success > 0.0
        });
    let text = serving.at.get("/metrics");
    for begins in [
        "roce_gpu_info{gpu=\"0\",uuid=\"GPU-1\",name=\"NVIDIA H100 80GB HBM3\",pci_address=\"0000:3b:00.0\"",
        "roce_gpu_throttled{gpu=\"0\",reason=\"sw_power_cap\"} 1\n",
        "roce_doctor_check_status{check=\"rdma.devices\",object=\"host\",status=\"",
        "roce_collector_interval_seconds{collector=\"gpu\"} 1\n",
        "roce_collector_duration_seconds{collector=\"doctor\"} ",
    ] {
        assert!(text.contains(&format!("\n{begins}")), "{begins}\n{text}");
    }
    let mut families: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .collect();
    let all = families.len();
    families.sort_unstable();
    families.dedup();
    assert_eq!(families.len(), all);
    // The tool hangs: no scrape waits, its values vanish, its age goes on, and the other collectors succeed.
    fs::write(path.join("hang"), "").unwrap();
    serving
        .at
        .until("roce_collector_success{collector=\"gpu\"}", |success| {
            success == 0.0
        });
    let begun = Instant::now();
    let text = serving.at.get("/metrics");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert!(!text.contains("roce_gpu_"), "{text}");
    assert!(
        text.contains("\nroce_collector_success{collector=\"host\"} 1\n"),
        "{text}"
    );
    // The other process ends with the server.
    let parent = fs::read_to_string(path.join("pids/parent")).unwrap();
    let other = Path::new("/proc").join(parent.trim());
    assert!(other.exists(), "{other:?}");
    serving.signal(Signal::TERM);
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
    let begun = Instant::now();
    while other.exists() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{other:?} goes on");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn signals_end_it_cleanly() {
    for signal in [Signal::TERM, Signal::INT] {
        let folder = open_folder();
        host(&folder.path().join("host"), 1, 2, 3);
        let mut serving = ServingCommand::new(folder.path(), &["--read", "host"]);
        // A client that keeps its connection does not hold up the end.
        let _idle = TcpStream::connect(&serving.at.0).unwrap();
        let begun = Instant::now();
        serving.signal(signal);
        let status = serving.child.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{signal:?}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
}

#[test]
fn passwords_come_from_the_file_that_exporters_share() {
    let folder = open_folder();
    host(&folder.path().join("host"), 1, 2, 3);
    let hash = bcrypt_of_secret();
    fs::write(
        folder.path().join("web.yml"),
        format!("basic_auth_users:\n  prometheus: {hash}\n"),
    )
    .unwrap();
    let serving = ServingCommand::new(folder.path(), &["--read", "host", "--web-config", "web.yml"]);
    assert!(serving.at.get("/metrics").starts_with("HTTP/1.1 401 "));
    // prometheus:secret
    let answer = serving.at.ask(
        "GET /metrics HTTP/1.1\r\nHost: a\r\nAuthorization: Basic cHJvbWV0aGV1czpzZWNyZXQ=\r\nConnection: close\r\n\r\n",
    );
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(
        answer.contains("roce_http_requests_total{code=\"401\"} 1\n"),
        "{answer}"
    );
}

/// The hash of `secret` by Debian's libxcrypt (crypt(3)), cost 4.
fn bcrypt_of_secret() -> &'static str {
    "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"
}

/// The text of a scrape over TLS by one who trusts this certificate alone; `None`: another one is served.
fn by_tls(at: &Address, trusted: &rcgen::Certificate) -> Option<String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = rustls::ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    let mut stream = rustls::StreamOwned::new(client, TcpStream::connect(&at.0).unwrap());
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

#[test]
fn a_renewed_certificate_is_read_inside_the_sandbox() {
    let folder = open_folder();
    host(&folder.path().join("host"), 1, 2, 3);
    // As Kubernetes renews a secret: files are links below a link that is replaced.
    let tls = folder.path().join("tls");
    fs::create_dir(&tls).unwrap();
    let certificates = ["first", "second"].map(|name| {
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        fs::create_dir(tls.join(name)).unwrap();
        fs::write(tls.join(name).join("tls.crt"), cert.pem()).unwrap();
        fs::write(tls.join(name).join("tls.key"), signing_key.serialize_pem()).unwrap();
        cert
    });
    for (to, name) in [
        ("first", "data"),
        ("data/tls.crt", "tls.crt"),
        ("data/tls.key", "tls.key"),
    ] {
        symlink(to, tls.join(name)).unwrap();
    }
    fs::write(
        folder.path().join("web.yml"),
        "tls_server_config:\n  cert_file: tls/tls.crt\n  key_file: tls/tls.key\n",
    )
    .unwrap();
    let serving = ServingCommand::new(folder.path(), &["--read", "host", "--web-config", "web.yml"]);
    let [first, second] = certificates;
    let answer = by_tls(&serving.at, &first).unwrap();
    assert!(
        answer.contains("\nroce_tls_reload_failures_total 0\n"),
        "{answer}"
    );
    assert!(by_tls(&serving.at, &second).is_none());
    symlink("second", tls.join("new")).unwrap();
    fs::rename(tls.join("new"), tls.join("data")).unwrap();
    let answer = by_tls(&serving.at, &second).unwrap();
    assert!(
        answer.contains("\nroce_tls_reload_failures_total 0\n"),
        "{answer}"
    );
    assert!(by_tls(&serving.at, &first).is_none());
}

#[test]
fn a_key_of_root_alone_is_served_and_its_renewal_needs_a_restart() {
    if !geteuid().is_root() {
        crate::live::skip("only root gives up a right to read a key");
        return;
    }
    let folder = open_folder();
    host(&folder.path().join("host"), 1, 2, 3);
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    fs::write(folder.path().join("host.crt"), cert.pem()).unwrap();
    fs::write(folder.path().join("host.key"), signing_key.serialize_pem()).unwrap();
    fs::set_permissions(folder.path().join("host.key"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(
        folder.path().join("web.yml"),
        "tls_server_config:\n  cert_file: host.crt\n  key_file: host.key\n",
    )
    .unwrap();
    let serving = ServingCommand::new(folder.path(), &["--read", "host", "--web-config", "web.yml"]);
    assert!(by_tls(&serving.at, &cert).is_some());
    let is_said = || {
        serving.said().iter().any(|line| {
            line.contains("host.key") && line.contains("a new one takes effect at the next start")
        })
    };
    let begun = Instant::now();
    while !is_said() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{:#?}", serving.said());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_would_be_unsafe_or_unclear_is_refused() {
    let folder = open_folder();
    host(&folder.path().join("host"), 1, 2, 3);
    fs::write(
        folder.path().join("bad.yml"),
        "basic_auth_users:\n  a: plain-secret\n",
    )
    .unwrap();
    for (arguments, expected) in [
        (&["--listen", "0.0.0.0:0", "--read", "host"][..], "--web-config"),
        (&["--listen", "here:1"], "an IP address and a port"),
        (
            &["--listen", "127.0.0.1:0", "--read", "nowhere"],
            "not a recorded host",
        ),
        (
            &["--listen", "127.0.0.1:0", "--web-config", "bad.yml"],
            "not a bcrypt hash",
        ),
        (
            &["--listen", "127.0.0.1:0", "--web-config", "none.yml"],
            "none.yml",
        ),
        (&["--listen", "127.0.0.1:0", "--interval", "1ms"], "100ms to 1h"),
    ] {
        let ran = run(folder.path(), [&["metrics", "serve"], arguments].concat());
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(expected), "{arguments:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("plain-secret"), "{}", ran.stderr);
    }
    // A port that is taken.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = ran(command(folder.path()).args(["metrics", "serve", "--listen", &address]));
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("cannot listen"), "{}", ran.stderr);
}

#[test]
fn an_incast_that_is_captured_shows_in_the_metrics_of_the_live_run() {
    let Some(net) = Net::new() else { return };
    let folder = tempdir().unwrap();
    let mut inside = net.inside(folder.path(), Path::new(env!("CARGO_BIN_EXE_roce-analyze")));
    inside.args(["live", "-i", "v1", "--no-tui", "--format", "none", "--bin", "1ms"]);
    inside.args(["--metrics", "127.0.0.1:0", "--metrics-flows", "2"]);
    let mut serving = ServingCommand::of(inside.spawn().unwrap());
    // The receiver's capture of the demo: eight senders at once, marks and CNPs.
    let frames: Vec<Vec<u8>> = frames(&root().join("captures/demos/incast-h7.pcapng"))
        .into_iter()
        .map(|mut record| {
            // Bytes that the capture cut are sent as zeros, so that lengths are right.
            record.data.resize(record.original as usize, 0);
            record.data
        })
        .collect();
    let sent = frames.len();
    net.send("v0", frames, Some(20_000));
    let scraped = serving.at.clone();
    let text = net.within(move || {
        #[expect(clippy::cast_precision_loss, reason = "some thousand frames")]
        scraped.until("roce_live_frames_total", |frames| frames >= sent as f64);
        scraped.until("roce_live_data_packets_total{tap=\"v1\",ecn=\"ce\"}", |marked| {
            marked > 0.0
        });
        scraped.until("roce_live_episodes_total{kind=\"incast\"}", |episodes| {
            episodes > 0.0
        });
        scraped.until("roce_live_pairs_listed", |pairs| pairs > 1.0);
        scraped.until("roce_live_ack_rtt_seconds_count{tap=\"v1\"}", |times| times > 0.0);
        scraped.get("/metrics")
    });
    for begins in [
        "roce_live_info{version=",
        "roce_live_cnps_total{tap=\"v1\"} ",
        "roce_live_lost_frames_total{where=\"kernel\"} 0\n",
        "roce_live_pair_wire_bytes_total{tap=\"other\",source=\"other\",destination=\"other\"} ",
        "roce_live_flows ",
        "roce_live_wasted_bytes_total{tap=\"v1\"} ",
        "roce_live_message_seconds_bucket{tap=\"v1\",le=\"0.065536\"} ",
    ] {
        assert!(text.contains(&format!("\n{begins}")), "{begins}\n{text}");
    }
    // No queue pair, no flow: labels are bounded.
    assert!(!text.contains("qpn"), "{text}");
    serving.signal(Signal::INT);
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
}

/// A recorded host with eight ports: each has the counters of an adapter with 64 queues, and a table of 256 GIDs.
fn eight_ports(root: &Path) {
    let set = |path: String, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for device in 0..8 {
        let port = format!("sys/class/infiniband/mlx5_{device}/ports/1");
        set(format!("{port}/state"), "4: ACTIVE\n");
        set(format!("{port}/rate"), "400 Gb/sec (4X NDR)\n");
        for counter in 0..50 {
            set(format!("{port}/hw_counters/counter_{counter}"), "123456789\n");
        }
        for index in 0..256 {
            let gid = if index < 6 {
                "0000:0000:0000:0000:0000:ffff:0a4d:0001"
            } else {
                "0000:0000:0000:0000:0000:0000:0000:0000"
            };
            set(format!("{port}/gids/{index}"), gid);
        }
        set(
            format!("{port}/gid_attrs/ndevs/0"),
            &format!("ens{device}f0np0\n"),
        );
        let mut names = Vec::new();
        for priority in 0..8 {
            let of_priority = [
                "bytes",
                "packets",
                "pause",
                "pause_duration",
                "pause_transition",
                "discards",
            ];
            names.extend(of_priority.map(|name| format!("rx_prio{priority}_{name}")));
        }
        for queue in 0..64 {
            let of_queue = ["packets", "bytes", "csum_complete", "wqe_err", "cache_reuse"];
            names.extend(of_queue.map(|name| format!("rx{queue}_{name}")));
        }
        let statistics = format!("NIC statistics:\n{}: 123456789\n", names.join(": 123456789\n"));
        set(format!("commands/ethtool_-S_ens{device}f0np0.txt"), &statistics);
    }
}

#[test]
fn a_scrape_of_eight_ports_is_cheap() {
    let folder = open_folder();
    eight_ports(&folder.path().join("host"));
    // One reading alone: what is measured are scrapes.
    let serving = ServingCommand::new(folder.path(), &["--read", "host", "--interval", "1h"]);
    let cpu = || serving.at.value("process_cpu_seconds_total").unwrap();
    let before = cpu();
    for _ in 0..50 {
        serving.at.get("/metrics");
    }
    // The second look at the clock is a scrape, too.
    let each = (cpu() - before) / 51.0;
    assert!(each < 0.020, "{each} s of CPU");
    // A build without optimisation has more pages of the program, which grow with every command: there only memory of its own counts.
    // `cargo xtask bench --only scrape` measures a release.
    let memory = serving.at.value("process_resident_memory_bytes").unwrap();
    assert!(memory < 30e6 || cfg!(debug_assertions), "{memory} bytes");
    let status = fs::read_to_string(format!("/proc/{}/status", serving.child.id())).unwrap();
    let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes: u64 = own.unwrap().trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 16_000, "{kilobytes} kB");
    assert!(
        serving
            .at
            .get("/metrics")
            .matches("\nroce_pfc_received_frames_total{")
            .count()
            == 64
    );
}

#[test]
fn switches_are_served_together_and_one_by_one() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("fabric.toml"), crate::fabric::inventory()).unwrap();
    let serving = ServingCommand::new(
        folder.path(),
        &[
            "--inventory",
            "fabric.toml",
            "--no-gpus",
            "--no-sandbox",
            "--interval",
            "200ms",
        ],
    );
    for collector in ["hypervisor:esxi1", "switch:leaf1", "switch:leaf2"] {
        let series = format!("roce_collector_success{{collector=\"{collector}\"}}");
        serving.at.until(&series, |value| value > 0.0);
    }
    serving
        .at
        .until("roce_switch_up{switch=\"leaf3\"}", |value| value < 1.0);
    let all = serving.at.get("/metrics");
    let has = |text: &str, line: &str| text.lines().any(|found| found.trim_end() == line);
    for line in [
        "roce_switch_up{switch=\"leaf1\"} 1",
        "roce_switch_up{switch=\"leaf2\"} 1",
        "roce_switch_up{switch=\"leaf3\"} 0",
        "roce_collector_success{collector=\"switch:leaf3\"} 0",
        "roce_collector_interval_seconds{collector=\"switch:leaf1\"} 0.2",
        "roce_hypervisor_pause_received_frames_total{hypervisor=\"esxi1\",vmnic=\"vmnic5\"} 133704872",
    ] {
        assert!(has(&all, line), "{line}\n{all}");
    }
    // The formats demand that a family is in one place, in any number of switches.
    assert_eq!(all.matches("# TYPE roce_switch_up gauge").count(), 1, "{all}");
    let one = serving.at.get("/probe?target=leaf1&module=nexus");
    assert!(one.starts_with("HTTP/1.1 200"), "{one}");
    assert!(has(&one, "roce_switch_up{switch=\"leaf1\"} 1"), "{one}");
    assert!(!one.contains("leaf2") && !one.contains("process_"), "{one}");
    for path in [
        "/probe?target=leaf9",
        "/probe",
        "/probe?target=leaf1&module=sonic",
    ] {
        assert!(serving.at.get(path).starts_with("HTTP/1.1 400"), "{path}");
    }
    // A target that cannot be read gets older; one that is read does not.
    std::thread::sleep(Duration::from_millis(700));
    let age = |name: &str| {
        let series = format!("roce_collector_age_seconds{{collector=\"switch:{name}\"}}");
        serving.at.value(&series).unwrap()
    };
    assert!(age("leaf3") > 0.7, "{}", age("leaf3"));
}
