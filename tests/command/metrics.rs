//! `metrics once`: the text that Prometheus and its textfile collector read. `cargo xtask test` gives it to promtool, too.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tempfile::tempdir;

use crate::command::run;
use crate::host::host;

#[test]
fn a_recorded_host_as_metrics() {
    let folder = tempdir().unwrap();
    host(&folder.path().join("host"), 40_394_737, 41_210, 1_187);
    let ran = run(folder.path(), ["metrics", "once", "--read", "host"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for line in [
        "# TYPE roce_port_ecn_marked_packets_received_total counter",
        "roce_port_ecn_marked_packets_received_total{device=\"mlx5_0\",port=\"1\"} 40394737",
        "roce_port_out_of_sequence_packets_total{device=\"mlx5_0\",port=\"1\"} 1187",
        // 1,000 words of four bytes.
        "roce_port_transmitted_bytes_total{device=\"mlx5_0\",port=\"1\"} 4000",
        "roce_pfc_received_frames_total{netdev=\"ens1f0np0\",priority=\"3\"} 41210",
        "roce_pfc_receive_paused_seconds_total{netdev=\"ens1f0np0\",priority=\"3\"} 12.034511",
        "roce_collector_success{collector=\"host\"} 1",
    ] {
        assert!(
            ran.stdout.lines().any(|found| found == line),
            "{line}\n{}",
            ran.stdout
        );
    }
    // Priorities that the adapter does not count are absent, not 0.
    assert!(!ran.stdout.contains("priority=\"4\""), "{}", ran.stdout);

    let open = run(
        folder.path(),
        ["metrics", "once", "--read", "host", "--format", "openmetrics"],
    );
    assert!(open.stdout.ends_with("# EOF\n"));
}

#[test]
fn settings_checks_and_gpus_are_metrics() {
    let folder = tempdir().unwrap();
    let root = folder.path().join("host");
    host(&root, 40_394_737, 41_210, 1_187);
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "answers/dcb-app.ens1f0np0.json",
        "{\"dscp_prio\":[[26,3],[48,6],[900,1]]}",
    );
    write(
        "answers/ethtool-pause.ens1f0np0.json",
        "{\"autonegotiate\":false,\"rx\":true,\"tx\":true}",
    );
    write("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
    write(
        "commands/gpus.txt",
        "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n\
         DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-1\",pci_bus_id=\"00000000:3B:00.0\",modelName=\"H100\"} 98\n\
         DCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"GPU-1\"} 2\n\
         DCGM_FI_DEV_MEMORY_TEMP{gpu=\"0\",UUID=\"GPU-1\"} 9223372036854775794\n",
    );
    let ran = run(folder.path(), ["metrics", "once", "--read", "host"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let has = |line: &str| ran.stdout.lines().any(|found| found == line);
    for line in [
        "roce_dscp_priority{netdev=\"ens1f0np0\",dscp=\"26\"} 3",
        "roce_dscp_priority{netdev=\"ens1f0np0\",dscp=\"48\"} 6",
        "# TYPE roce_doctor_check_status gauge",
        "roce_gpu_info{gpu=\"0\",uuid=\"GPU-1\",name=\"H100\",pci_address=\"0000:3b:00.0\"} 1",
        "roce_gpu_lost{gpu=\"0\"} 0",
        "roce_gpu_utilization_ratio{gpu=\"0\"} 0.98",
        // 2 MiB.
        "roce_gpu_memory_used_bytes{gpu=\"0\"} 2097152",
        "roce_collector_success{collector=\"doctor\"} 1",
        "roce_collector_success{collector=\"gpu\"} 1",
    ] {
        assert!(has(line), "{line}\n{}", ran.stdout);
    }
    // A DSCP has six bits, and DCGM's blank is no temperature.
    assert!(!ran.stdout.contains("dscp=\"900\"") && !ran.stdout.contains("celsius"));
    // The outcomes are those of `doctor`; limits of the exporter's own process say nothing about the host.
    let said = run(folder.path(), ["doctor", "--read", "host", "--format", "json"]);
    let said: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    let mut compared = 0;
    for check in said["checks"].as_array().unwrap() {
        let word = |key: &str| check[key].as_str().unwrap();
        if word("status") == "not_applicable" {
            continue;
        }
        let series = format!(
            "roce_doctor_check_status{{check=\"{}\",object=\"{}\",status=\"{}\"}} 1",
            word("id"),
            word("object"),
            word("status")
        );
        let is_own = word("object") == "process" || word("id") == "rdma.nodes";
        assert_eq!(has(&series), !is_own, "{series}\n{}", ran.stdout);
        compared += usize::from(!is_own);
    }
    assert!(compared > 5, "{compared} outcomes");

    let without = run(folder.path(), ["metrics", "once", "--read", "host", "--no-gpus"]);
    assert!(!without.stdout.contains("gpu"), "{}", without.stdout);
}

#[test]
fn a_textfile_is_replaced_whole_and_can_be_read_by_others() {
    let folder = tempdir().unwrap();
    host(&folder.path().join("host"), 1, 2, 3);
    let path = folder.path().join("roce.prom");
    fs::write(&path, "old").unwrap();
    let ran = run(
        folder.path(),
        ["metrics", "once", "--read", "host", "--textfile", "roce.prom"],
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("# HELP ") && text.ends_with('\n'), "{text}");
    let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode & 0o444, 0o444, "{mode:o}");
    let names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 2, "no temporary file is left: {names:?}");
}

#[test]
fn a_host_without_devices_answers_without_rights() {
    let folder = tempdir().unwrap();
    let begun = std::time::Instant::now();
    let ran = run(folder.path(), ["metrics", "once"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // The bound is 2 s; other tests run beside this one.
    assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
    assert!(
        ran.stdout.contains("\nroce_doctor_check_status{"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("roce_build_info{version="), "{}", ran.stdout);
}

#[test]
fn files_for_other_programs_are_printed_or_written() {
    let folder = tempdir().unwrap();
    for (command, name, begins) in [
        ("rules", "roce.rules.yml", "groups:"),
        ("compat", "roce-compat.rules.yml", "groups:"),
        ("scrape-config", "prometheus.yml", "scrape_configs:"),
        ("systemd", "roce-analyze-metrics.service", "[Service]"),
        ("alertmanager", "alertmanager.yml", "route:"),
    ] {
        let printed = run(folder.path(), ["metrics", "files", command]).good().stdout;
        assert!(printed.lines().any(|line| line == begins), "{printed}");
        run(folder.path(), ["metrics", "files", command, "-o", "."]).good();
        assert_eq!(fs::read_to_string(folder.path().join(name)).unwrap(), printed);
    }
    run(
        folder.path(),
        ["metrics", "files", "dashboards", "-o", "dashboards"],
    )
    .good();
    for name in ["cluster", "host", "switch", "chain", "capacity"] {
        let path = folder.path().join(format!("dashboards/roce-{name}.json"));
        let written = fs::read_to_string(path).unwrap();
        let printed = run(
            folder.path(),
            ["metrics", "files", "dashboards", "--dashboard", name],
        )
        .good()
        .stdout;
        assert_eq!(written, printed);
        let dashboard: serde_json::Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(dashboard["uid"], format!("roce-{name}"));
    }
    let ran = run(
        folder.path(),
        ["metrics", "files", "dashboards", "--dashboard", "gpu"],
    );
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("cluster, host, switch"), "{}", ran.stderr);

    let targets = run(
        folder.path(),
        [
            "metrics",
            "files",
            "scrape-config",
            "--target",
            "a:9902",
            "--target",
            "b:9902",
        ],
    );
    assert!(targets.stdout.contains("- \"a:9902\"\n") && targets.stdout.contains("- \"b:9902\"\n"));
}

/// Every rule about counters has an alert that names it, so that host, device and Prometheus say the same.
#[test]
fn every_rule_about_counters_has_an_alert() {
    let folder = tempdir().unwrap();
    let rules = run(folder.path(), ["metrics", "files", "rules"]).good().stdout;
    for rule in roce_rules::counters::rules() {
        assert!(
            rules.contains(&format!("explain {}` says more", rule.id)),
            "{}",
            rule.id
        );
    }
}

#[test]
fn devices_of_an_inventory_have_jobs_of_their_own() {
    let folder = tempdir().unwrap();
    let inventory = "[cluster]\nname = \"gpu-pod\"\n[[switch]]\nname = \"leaf1\"\nkind = \"nexus\"\nfiles = \"a\"\ntransport = \"files\"\n\
                     [[hypervisor]]\nname = \"esxi1\"\nkind = \"esxi\"\nfiles = \"b\"\ntransport = \"files\"\nevery = \"30s\"\n";
    fs::write(folder.path().join("fabric.toml"), inventory).unwrap();
    let words = [
        "metrics",
        "files",
        "scrape-config",
        "--inventory",
        "fabric.toml",
        "--target",
        "mon1:9902",
    ];
    let text = run(folder.path(), words).good().stdout;
    for line in [
        "params: {module: [nexus]}",
        "targets: [\"leaf1\"]",
        "scrape_interval: 30s",
        "targets: [\"esxi1\"]",
        "replacement: \"mon1:9902\"",
        "cluster: \"gpu-pod\"",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}
