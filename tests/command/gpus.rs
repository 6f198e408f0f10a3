//! `host gpus` over time, by tools that answer as recorded ones do.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::tempdir;

use crate::command::{Ran, command, document, ran};
use crate::live::{Net, whole};

/// nvidia-smi as of driver 535: once with a header, and line by line with -lms. The first GPU's load alternates between 10 % and 90 %.
const NVIDIA_SMI: &str = r#"
case "$*" in
*-lms*)
    while :; do
        echo '0, GPU-1, NVIDIA H100 80GB HBM3, 00000000:3B:00.0, 10, 61, 72310, 81559, 64, 78, 688.21, 700.00, 1755, 2619, 0x0000000000000004, 5, 16, 0' || exit
        echo '1, GPU-2, NVIDIA RTX A4000, 00000000:86:00.0, [N/A], [N/A], 9120, 16376, 71, N/A, [Not Supported], [N/A], 1560, 7000, [N/A], 4, 16, [N/A]' || exit
        sleep 0.03
        echo '0, GPU-1, NVIDIA H100 80GB HBM3, 00000000:3B:00.0, 90, 61, 72310, 81559, 64, 78, 688.21, 700.00, 1755, 2619, 0x0000000000000044, 5, 16, 0' || exit
        sleep 0.03
    done;;
*)
    echo 'index, uuid, name, pci.bus_id, utilization.gpu [%], utilization.memory [%], memory.used [MiB], memory.total [MiB], temperature.gpu, temperature.memory, power.draw [W], enforced.power.limit [W], clocks.current.sm [MHz], clocks.current.memory [MHz], clocks_event_reasons.active, pcie.link.gen.gpucurrent, pcie.link.width.current, ecc.errors.uncorrected.volatile.total'
    echo '0, GPU-1, NVIDIA H100 80GB HBM3, 00000000:3B:00.0, 10 %, 61 %, 72310 MiB, 81559 MiB, 64, 78, 688.21 W, 700.00 W, 1755 MHz, 2619 MHz, 0x0000000000000004, 5, 16, 0';;
esac
"#;

fn with_tool(folder: &Path, script: &str, arguments: &[&str]) -> Ran {
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).unwrap();
    let program = bin.join("nvidia-smi");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    ran(command(folder).args(arguments).env("PATH", path))
}

#[test]
fn gpus_are_read_over_time() {
    let folder = tempdir().unwrap();
    let arguments = "host gpus --duration 1s --interval 50ms --format json";
    let ran = with_tool(
        folder.path(),
        NVIDIA_SMI,
        &arguments.split(' ').collect::<Vec<_>>(),
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let series = document["series"].as_array().unwrap();
    let of = |gpu: &str, counter: &str| {
        let found = series
            .iter()
            .find(|series| series["gpu"] == gpu && series["counter"] == counter);
        found.cloned().unwrap_or_default()
    };
    let load = of("gpu0", "gpu_utilization_ratio");
    assert_eq!(
        (load["least"].as_f64(), load["most"].as_f64()),
        (Some(0.1), Some(0.9))
    );
    let mean = load["mean"].as_f64().unwrap();
    assert!((0.3..0.7).contains(&mean), "10 % and 90 % in turns: {mean}");
    assert_eq!(
        of("gpu1", "gpu_utilization_ratio"),
        Value::Null,
        "[N/A] is no value"
    );
    // 9120 MiB.
    assert_eq!(
        of("gpu1", "gpu_memory_used_bytes")["last"].as_f64(),
        Some(9_563_013_120.0)
    );
    let errors = of("gpu0", "gpu_ecc_uncorrected_errors");
    assert_eq!(
        (errors["change"].as_f64(), &errors["mean"]),
        (Some(0.0), &Value::Null)
    );
    let held: Vec<&Value> = series
        .iter()
        .filter(|series| series["counter"] == "gpu_throttled" && series["most"].as_f64() > Some(0.0))
        .map(|series| &series["labels"]["reason"])
        .collect();
    assert_eq!(held, ["hw_thermal_slowdown", "sw_power_cap"]);
}

#[test]
fn gpus_are_read_while_a_command_runs() {
    let folder = tempdir().unwrap();
    let arguments = [
        "host",
        "gpus",
        "--interval",
        "50ms",
        "--",
        "sh",
        "-c",
        "sleep 0.5; exit 7",
    ];
    let ran = with_tool(folder.path(), NVIDIA_SMI, &arguments);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(7), ""));
    let line = ran
        .stdout
        .lines()
        .find(|line| line.contains("gpu0  utilization_ratio"));
    let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
    assert_eq!(words.get(2..4), Some(&["%", "10"][..]), "{}", ran.stdout);
    assert_eq!(words.get(5), Some(&"90"), "{}", ran.stdout);
    // A reason that never held the clocks down has no line.
    assert!(
        ran.stdout.contains("throttled hw_thermal_slowdown"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("throttled hw_slowdown"), "{}", ran.stdout);
}

#[test]
fn tools_that_end_or_are_not_there_are_noted() {
    let folder = tempdir().unwrap();
    let ends = NVIDIA_SMI.replace("sleep 0.03", "exit 0");
    let arguments = ["host", "gpus", "--duration", "300ms"];
    let ran = with_tool(folder.path(), &ends, &arguments);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("nvidia-smi has ended before the readings did"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stdout.contains("gpu0"),
        "what it said before counts: {}",
        ran.stdout
    );
    let script =
        "echo \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\"; exit 9";
    let ran = with_tool(folder.path(), script, &arguments);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    assert!(
        ran.stderr.contains("the NVIDIA driver does not answer"),
        "{}",
        ran.stderr
    );
    let page = with_tool(
        folder.path(),
        NVIDIA_SMI,
        &["host", "gpus", "--duration", "1s", "--format", "html"],
    );
    assert_eq!(page.code, Some(2), "{}", page.stderr);
}

#[cfg(feature = "parquet")]
#[test]
fn readings_of_gpus_become_a_dataset() {
    let folder = tempdir().unwrap();
    let arguments = "host gpus -o out --host-name h7 --duration 500ms --interval 50ms";
    let ran = with_tool(
        folder.path(),
        NVIDIA_SMI,
        &arguments.split(' ').collect::<Vec<_>>(),
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let rows = crate::dataset::rows(&folder.path().join("out"), "samples");
    assert!(
        rows.iter().any(|row| row["counter"] == "gpu_power_watts"),
        "{} rows",
        rows.len()
    );
    for row in &rows {
        assert_eq!((&row["node"], &row["source"]), (&"h7".into(), &"gpu".into()));
    }
    let page = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("GPU"), "the page has the tracks' code");
}

#[test]
fn a_live_run_reads_gpus_and_records_them() {
    let Some(net) = Net::new() else { return };
    let folder = tempdir().unwrap();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let program = bin.join("nvidia-smi");
    // It says when it is gone: its pipe was closed, and its next line found nobody.
    let gone = folder.path().join("gone");
    let script = format!(
        "#!/bin/sh\ntrap '' PIPE\ntrap 'echo > {}' EXIT\n{NVIDIA_SMI}",
        gone.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut live = net.live_with(
        folder.path(),
        &[
            "-i",
            "v1",
            "--gpus",
            "--interval",
            "50ms",
            "--format",
            "json",
            "-o",
            "dir",
            "--record",
        ],
        &[("PATH", &path)],
    );
    live.captures_into(&folder.path().join("dir/recording.pcapng.zst"));
    net.send("v0", whole("rping"), Some(5_000));
    std::thread::sleep(Duration::from_millis(600));
    live.signal(Signal::INT);
    live.ended().good();
    let replayed = document(folder.path(), ["dir"]);
    let samples = replayed["samples"].as_array().unwrap();
    let loads: Vec<f64> = samples
        .iter()
        .filter(|row| row["counter"] == "gpu_utilization_ratio")
        .map(|row| row["value"].as_f64().unwrap())
        .collect();
    assert!(loads.contains(&0.1) && loads.contains(&0.9), "{loads:?}");
    let begun = Instant::now();
    while !gone.exists() {
        assert!(begun.elapsed() < Duration::from_secs(20), "nvidia-smi goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn documents_without_values_of_gpus_are_refused_by_name() {
    let folder = tempdir().unwrap();
    let matrix = "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV18\tPIX\t0-47\t0\n";
    fs::write(folder.path().join("topo.txt"), matrix).unwrap();
    let ran = ran(command(folder.path()).args(["host", "gpus", "--read", "topo.txt"]));
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("this is the matrix of nvidia-smi topo -m"),
        "{}",
        ran.stderr
    );
}
