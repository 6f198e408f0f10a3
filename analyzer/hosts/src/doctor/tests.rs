use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[test]
fn every_check_has_its_texts_and_a_name_of_its_own() {
    let mut ids = BTreeSet::new();
    for check in checks() {
        assert!(ids.insert(check.id), "{} twice", check.id);
        for text in [
            check.title,
            check.read,
            check.method,
            check.meaning,
            check.symptom,
            check.source,
        ] {
            assert!(!text.is_empty(), "{}", check.id);
        }
    }
    // Other checks that a text names are there.
    for check in checks().filter(|check| !check.alternatives.is_empty()) {
        let name = check.alternatives.split(':').next().unwrap();
        assert!(ids.contains(name), "{}: {name}", check.id);
    }
    let named = |id: &str| checks().find(|check| check.id == id).unwrap().alternatives;
    assert!(named("iommu.mode").starts_with("memlock") && named("memlock").starts_with("iommu.mode"));
}

#[test]
fn an_empty_host_is_never_ok() {
    let host = Host::new("a", true);
    for judgement in judge(&host, &Plan::default(), &[]) {
        assert_ne!(judgement.outcome.status, Status::Ok, "{}", judgement.id);
    }
}

#[test]
fn groups_and_names_select() {
    let host = Host::new("a", true);
    let ids = |only: &[&str]| -> Vec<&str> {
        let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
        let all = judge(&host, &Plan::default(), &only);
        all.into_iter().map(|judgement| judgement.id).collect()
    };
    assert_eq!(ids(&["memlock"]), ["memlock"]);
    assert!(
        ids(&["pfc"])
            .iter()
            .all(|id| id.starts_with("pfc.") || id.starts_with("pause."))
    );
    assert!(groups().contains(&"nccl"));
}

proptest! {
    /// Snapshots of any texts are judged without a panic, and every outcome has words.
    #[test]
    fn any_text_is_judged(texts in prop::collection::vec(any::<Vec<u8>>(), PATHS.len())) {
        let mut host = Host::new("a", true);
        for (path, text) in PATHS.iter().zip(texts) {
            host.insert(path, text);
        }
        for judgement in judge(&host, &Plan::default(), &[]) {
            prop_assert!(!judgement.outcome.summary.is_empty());
        }
        let _ = crate::hca::hcas(&host);
        let _ = judge_fleet(&[host.clone(), host], &Plan::default(), &[]);
    }
}

const PATHS: [&str; 24] = [
    "sys/class/infiniband/mlx5_0/ports/1/state",
    "sys/class/infiniband/mlx5_0/ports/1/rate",
    "sys/class/infiniband/mlx5_0/ports/1/gids/0",
    "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/0",
    "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0",
    "sys/class/infiniband/mlx5_0/device/uevent",
    "sys/class/infiniband/mlx5_0/device/numa_node",
    "sys/class/net/a/mtu",
    "sys/bus/pci/devices/0000:3b:00.0/config",
    "sys/bus/pci/devices/0000:3b:00.0/vendor",
    "sys/bus/pci/devices/0000:3b:00.0/class",
    "proc/self/limits",
    "proc/self/status",
    "proc/modules",
    "proc/interrupts",
    "proc/cpuinfo",
    "proc/meminfo",
    "answers/env.json",
    "answers/links.json",
    "answers/nodes.json",
    "answers/uname.json",
    "answers/clock.json",
    "answers/programs.json",
    "commands/ethtool_-S_a.txt",
];
