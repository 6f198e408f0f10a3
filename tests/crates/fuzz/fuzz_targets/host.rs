//! Texts of other programs about a host: GPUs' tools, settings, counters. The bytes are cut at 0xff into files of a snapshot, which is judged.

#![no_main]

use libfuzzer_sys::fuzz_target;
use roce_hosts::doctor::{Host, Plan, judge, judge_fleet};
use roce_hosts::{ethtool_statistics, gpu, hca, rdma_statistics};

/// Files that the pieces become, in this order.
const PATHS: [&str; 20] = [
    "sys/class/infiniband/mlx5_0/ports/1/state",
    "sys/class/infiniband/mlx5_0/ports/1/gids/0",
    "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/0",
    "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0",
    "sys/class/infiniband/mlx5_0/device/uevent",
    "sys/class/net/a/mtu",
    "sys/bus/pci/devices/0000:3b:00.0/config",
    "sys/bus/pci/devices/0000:3b:00.0/class",
    "sys/bus/pci/devices/0000:3b:00.0/vendor",
    "proc/self/limits",
    "proc/self/status",
    "proc/interrupts",
    "answers/env.json",
    "answers/links.json",
    "answers/dcb-pfc.a.json",
    "answers/dcb-app.a.json",
    "answers/dcb-buffer.a.json",
    "answers/mstconfig.0000:3b:00.0.txt",
    "commands/ethtool_-S_a.txt",
    "later/commands/ethtool_-S_a.txt",
];

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    for gpu in &gpu::gpus(&text).gpus {
        assert!(
            gpu.values
                .iter()
                .all(|value| value.value.is_finite() && value.value >= 0.0)
        );
    }
    let _ = ethtool_statistics(&text);
    let _ = rdma_statistics(&text);
    let mut host = Host::new("a", true);
    for (path, piece) in PATHS.iter().zip(data.split(|byte| *byte == 0xff)) {
        host.insert(path, piece.to_vec());
    }
    for judgement in judge(&host, &Plan::default(), &[]) {
        assert!(!judgement.outcome.summary.is_empty());
    }
    let _ = hca::hcas(&host);
    let _ = judge_fleet(&[host.clone(), host], &Plan::default(), &[]);
});
