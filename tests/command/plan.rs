//! Expectations of the traffic, against captures: `--expect` and `[cluster]` of an inventory. Expected values are what tshark shows
//! (`ip.dsfield.dscp`, the payloads of WRITE First packets), and arithmetic on them.

use std::fs;

use serde_json::Value;
use tempfile::tempdir;

use crate::captures::root;
use crate::command::{document, run};

/// 408 WRITE packets of 10.20.0.1 with DSCP 0, in four flows with a path MTU of 4,096.
const CAPTURE: &str = "tests/data/plan/dscp0.pcap";

#[track_caller]
fn finding<'a>(document: &'a Value, id: &str) -> &'a Value {
    let rows = document["findings"].as_array().unwrap();
    let found = rows.iter().find(|row| row["id"] == id);
    found.unwrap_or_else(|| panic!("no {id} in {rows:#?}"))
}

fn ids(document: &Value) -> Vec<&str> {
    let rows = document["findings"].as_array().unwrap();
    rows.iter().map(|row| row["id"].as_str().unwrap()).collect()
}

#[test]
fn data_in_another_class_than_planned() {
    let found = document(&root(), [CAPTURE, "--expect", "dscp=26"]);
    let plan = finding(&found, "dscp.plan");
    // 26 x 4 + 2 for ECT(0) = 106.
    let said = "100 % of RoCE data (408 packets, from 10.20.0.1) has DSCP 0 = priority 0, the plan is 26: NCCL_IB_TC=106";
    assert_eq!(
        (&plan["summary"], &plan["severity"]),
        (&said.into(), &"warning".into())
    );
    assert!(!ids(&found).contains(&"dscp.none"));
    // As it is planned, nothing is said of classes.
    let planned = document(&root(), [CAPTURE, "--expect", "dscp=0,mtu=4096"]);
    for id in ["dscp.plan", "dscp.none", "mtu"] {
        assert!(!ids(&planned).contains(&id), "{id}");
    }
    let larger = document(&root(), [CAPTURE, "--expect", "mtu=1024"]);
    let mtu = finding(&larger, "mtu")["summary"].as_str().unwrap();
    assert!(
        mtu.starts_with("4 flows with path MTU 4096, the plan is 1024"),
        "{mtu}"
    );
}

#[test]
fn without_a_plan_no_class_is_for_information() {
    let found = document(&root(), [CAPTURE]);
    assert_eq!(finding(&found, "dscp.none")["severity"], "info");
}

#[test]
fn an_inventory_states_a_plan_only_where_it_says_so() {
    let folder = tempdir().unwrap();
    let inventory = folder.path().join("fabric.toml");
    let with = |text: &str| {
        fs::write(&inventory, text).unwrap();
        let file = inventory.to_str().unwrap();
        document(&root(), [CAPTURE, "--inventory", file])
    };
    let stated = with("[cluster]\ndscp = 26\n");
    assert_eq!(finding(&stated, "dscp.plan")["evidence"]["expected"], "dscp=26");
    let nothing = with("[cluster]\nname = \"a\"\n");
    assert!(!ids(&nothing).contains(&"dscp.plan"), "defaults are no plan");
    // The option is stronger.
    let file = inventory.to_str().unwrap();
    fs::write(&inventory, "[cluster]\ndscp = 26\n").unwrap();
    let both = document(&root(), [CAPTURE, "--inventory", file, "--expect", "dscp=0"]);
    assert!(!ids(&both).contains(&"dscp.plan"));
}

#[test]
fn mistakes_say_what_is_possible() {
    for (value, said) in [
        ("dscp=64", "dscp 64 is not from 0 to 63"),
        (
            "class=26",
            "'class' is none of dscp, priority, mtu, cnp-dscp, cnp-priority",
        ),
        ("mtu=9000", "an interface with an MTU of 9000 allows 4096"),
        ("26", "'26' is not KEY=VALUE such as dscp=26"),
    ] {
        let ran = run(&root(), [CAPTURE, "--expect", value]);
        assert_eq!(ran.code, Some(2), "{value}");
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
}
