//! Flows that collide on one of several uplinks, and flows over a faulty one, in simulated captures. The simulator's truth says which flow took
//! which uplink.

use std::fs;

use serde_json::Value;
use tempfile::tempdir;

use crate::command::{document, run};

/// Flows of three pairs of hosts over four uplinks as fast as the hosts' own links, and small messages that are no load.
const SCENARIO: &str = r#"
duration = "2ms"

[network]
hosts = 6
topology = "leaf-spine"
leaves = 2
spines = 4
rate = "10Gbps"
uplink_rate = "10Gbps"

[switch]
kmin = "30KB"
kmax = "300KB"
pmax = 0.1

[nic]
mtu = 4096
ack_every = 16

[[flow]]
from = "h1"
to = "h4"
source_port = "random"
message = "64KiB"
outstanding = 2

[[flow]]
from = "h2"
to = "h5"
source_port = "random"
message = "64KiB"
outstanding = 2

[[flow]]
from = "h3"
to = "h6"
source_port = "random"
message = "64KiB"
outstanding = 2

[[flow]]
from = "h1"
to = "h6"
qps = 8
source_port = "random"
message = "1KiB"
interval = "500us"

[[flow]]
from = "h2"
to = "h4"
qps = 8
source_port = "random"
message = "1KiB"
interval = "500us"

[[flow]]
from = "h3"
to = "h5"
qps = 8
source_port = "random"
message = "1KiB"
interval = "500us"

[[tap]]
at = "leaf1:spine1"
snaplen = 96

[[tap]]
at = "leaf1:spine2"
snaplen = 96

[[tap]]
at = "leaf1:spine3"
snaplen = 96

[[tap]]
at = "leaf1:spine4"
snaplen = 96
"#;

/// A finding, and the places and flows of leaf1's uplinks by the truth.
fn simulated(scenario: &str, id: &str) -> (Option<Value>, Vec<(String, Vec<Value>)>) {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("uplinks.toml"), scenario).unwrap();
    let arguments = [
        "simulate",
        "uplinks.toml",
        "-o",
        "uplinks.pcapng",
        "--truth",
        "truth.json",
    ];
    run(folder.path(), arguments).good();
    let truth = fs::read_to_string(folder.path().join("truth.json")).unwrap();
    let truth: Value = serde_json::from_str(&truth).unwrap();
    let groups = truth["uplinks"].as_array().unwrap();
    let group = groups.iter().find(|group| group["node"] == "leaf1").unwrap();
    let ports = group["ports"].as_array().unwrap().iter().map(|port| {
        let flows = port["flows"].as_array().unwrap().clone();
        (port["place"].as_str().unwrap().to_owned(), flows)
    });
    let ports = ports.collect();
    // Several taps have a file each.
    let files = fs::read_dir(folder.path()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut captures: Vec<String> = names.filter(|name| name.ends_with(".pcapng")).collect();
    captures.sort();
    let document = document(folder.path(), captures);
    let findings = document["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["id"] == id);
    (finding.cloned(), ports)
}

#[test]
fn flows_that_collide_on_an_uplink() {
    let (mut collisions, mut spread) = (0, 0);
    for seed in 31..43 {
        let (finding, ports) = simulated(&format!("seed = {seed}\n{SCENARIO}"), "path.imbalance");
        let large = |flow: &&Value| flow["bytes"].as_u64().unwrap() > 100_000;
        let ports = ports
            .into_iter()
            .map(|(place, flows)| (place, flows.iter().filter(large).count()));
        let ports: Vec<(String, usize)> = ports.collect();
        let (place, most) = ports.iter().max_by_key(|(_, flows)| *flows).unwrap();
        if *most < 2 {
            spread += 1;
            assert!(finding.is_none(), "{seed}: {ports:?} {finding:?}");
            continue;
        }
        collisions += 1;
        let finding = finding.unwrap_or_else(|| panic!("{seed}: {ports:?}"));
        assert_eq!(finding["severity"], "warning", "{seed}");
        let evidence = &finding["evidence"];
        assert_eq!(evidence["flows_on_busiest"], *most, "{seed}: {ports:?} {finding}");
        let spine = place.rsplit("->").next().unwrap();
        let busiest = evidence["busiest"].as_str().unwrap();
        assert!(busiest.contains(spine), "{seed}: {place} {busiest}");
    }
    // Three flows have links of their own with the chance 4/4 x 3/4 x 2/4 = 3/8.
    assert!(collisions > 1 && spread > 1, "{collisions} {spread}");
}

/// Eight queue pairs over two uplinks.
const FAULTY: &str = r#"
duration = "20ms"

[network]
hosts = 4
topology = "leaf-spine"
leaves = 2
spines = 2
rate = "10Gbps"
uplink_rate = "10Gbps"

[nic]
mtu = 1024

[[flow]]
from = "h1"
to = "h3"
qps = 8
source_port = "random"
message = "16KiB"

[[tap]]
at = "h3"
snaplen = 96
"#;

#[test]
fn flows_over_a_faulty_uplink() {
    let mut found = 0;
    for seed in 51..57 {
        let loss = "[[impairment]]\nfrom = \"leaf1\"\nto = \"spine2\"\nloss = 0.004\n";
        let scenario = format!("seed = {seed}\n{FAULTY}\n{loss}");
        let (finding, ports) = simulated(&scenario, "path.faulty");
        let over = |spine: &str| {
            let port = ports.iter().find(|(place, _)| place.ends_with(spine)).unwrap();
            port.1.len()
        };
        let (sound, faulty) = (over("spine1"), over("spine2"));
        let Some(finding) = finding else {
            // There are some 25 moments: of five paths of eight, (5/8)^25 x 56 x 8 = 0.0035 is no proof.
            assert!(faulty > 4 || faulty == 0 || sound == 0, "{seed}: {ports:?}");
            continue;
        };
        found += 1;
        // A flow that lost next to nothing there may be left out.
        let named = usize::try_from(finding["evidence"]["faulty_paths"].as_u64().unwrap()).unwrap();
        assert!(
            named <= faulty && named * 2 > faulty,
            "{seed}: {faulty} {finding}"
        );
        assert_eq!(finding["evidence"]["paths"], sound + faulty, "{seed}: {finding}");
        // As many losses on both uplinks.
        let both = format!("{loss}\n{}", loss.replace("spine2", "spine1"));
        let (finding, _) = simulated(&format!("seed = {seed}\n{FAULTY}\n{both}"), "path.faulty");
        assert!(finding.is_none(), "{seed}: {finding:?}");
    }
    assert!(found > 1, "{found}");
}
