//! Lost lines, cut texts, large answers, any text: no panic, no number at another interface, linear time.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use roce_model::Counter;

use super::super::{PARTS, nxapi_bodies};
use super::{FOLDERS, POLICIES, by_key, commands, fixture, read_one};
use crate::device::{Neighbor, Reading};

/// Values that name their interface: a fixture has none of them at two interfaces.
fn telling(reading: &Reading) -> BTreeSet<(String, u64)> {
    let large = reading.samples.iter().filter(|sample| sample.value >= 1000.0);
    large
        .map(|sample| (sample.object.to_string(), sample.value.to_bits()))
        .collect()
}

#[test]
fn a_lost_line_moves_no_number_to_another_interface() {
    let mut lines = 0;
    for name in FOLDERS {
        for command in commands() {
            let Some(text) = fixture(name, command, "txt") else {
                continue;
            };
            let whole = read_one(command, &text);
            let (all, values) = (by_key(&whole), telling(&whole));
            for lost in 0..text.lines().count() {
                lines += 1;
                let mut rest = String::new();
                for (_, line) in text.lines().enumerate().filter(|(at, _)| *at != lost) {
                    rest.push_str(line);
                    rest.push('\n');
                }
                let reading = read_one(command, &rest);
                let line = text.lines().nth(lost).unwrap();
                let mut changed = BTreeSet::new();
                for (key, value) in by_key(&reading) {
                    if all.get(&key) != Some(&value) {
                        changed.insert(key.1);
                    }
                }
                assert!(
                    changed.len() <= 1,
                    "{name}: {command} without {line:?}: {changed:?}"
                );
                let strange: Vec<_> = telling(&reading).difference(&values).cloned().collect();
                assert!(
                    strange.is_empty(),
                    "{name}: {command} without {line:?}: {strange:?}"
                );
                for neighbor in &reading.neighbors {
                    let is_near = |other: &Neighbor| {
                        other.interface == neighbor.interface
                            && (other.node == neighbor.node || other.port == neighbor.port)
                    };
                    assert!(
                        whole.neighbors.iter().any(is_near),
                        "without {line:?}: {neighbor:?}"
                    );
                }
            }
        }
    }
    assert!(lines > 400, "{lines}");
}

#[test]
fn a_cut_text_has_no_number_that_the_whole_has_not() {
    for name in FOLDERS {
        for command in commands() {
            let Some(text) = fixture(name, command, "txt").filter(|text| text.is_ascii()) else {
                continue;
            };
            let all = by_key(&read_one(command, &text));
            // Every cut of a short text; of a long one, cuts at all places of its lines.
            let step = if text.len() > 1000 { 11 } else { 1 };
            for end in (0..text.len()).step_by(step) {
                for (key, value) in by_key(&read_one(command, &text[..end])) {
                    // A sum over two lines of the watchdog lacks the second.
                    if key.0 != Counter::SwitchWatchdogDroppedPackets {
                        assert_eq!(all.get(&key), Some(&value), "{name}: {command}, cut at {end}");
                    }
                }
            }
        }
    }
}

/// `show queuing interface` of many ports with eight queues each.
fn many(ports: usize) -> String {
    let mut text = String::new();
    for number in 1..=ports {
        let _ = writeln!(text, "Egress Queuing for Ethernet1/{number} [System]");
        for group in 0..8 {
            let _ = writeln!(
                text,
                "+--+\n|  QOS GROUP {group}  |\n+--+\n|  | Unicast | Multicast |"
            );
            for name in [
                "Tx Pkts",
                "Tx Byts",
                "WRED/AFD & Tail Drop Pkts",
                "ECN Pkts",
                "Q Depth Byts",
            ] {
                let _ = writeln!(text, "| {name} | {number} | {group} |");
            }
        }
        let _ = writeln!(
            text,
            "Ingress Queuing for Ethernet1/{number}\nPort Ingress Statistics"
        );
        let _ = writeln!(text, "Ingress Overflow Drop Pkts {number}");
    }
    text
}

/// Time for which this thread has had a processor, where the kernel says so (`schedstat`, ns): others on the machine do not count.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let ns = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(ns)).filter(|time| !time.is_zero())
}

#[test]
fn a_large_switch_takes_linear_time() {
    let command = "show queuing interface";
    let reading = read_one(command, &many(128));
    // 3 statistics of two casts, 2 without, for each queue, and the drops of the port.
    assert_eq!(reading.samples.len(), 128 * (8 * (3 * 2 + 2) + 1));
    let time = |ports: usize| {
        let text = many(ports);
        let run = || {
            let (begun, begun_at) = (processor_time(), Instant::now());
            let reading = read_one(command, &text);
            assert!(!reading.samples.is_empty());
            match (begun, processor_time()) {
                (Some(begun), Some(ended)) => ended.saturating_sub(begun),
                _ => begun_at.elapsed(),
            }
        };
        (0..3).map(|_| run()).min().unwrap_or(Duration::MAX)
    };
    // Eight times the ports take eight times as long; quadratic time would be 64. Neighbours on the machine disturb.
    let (few, more) = (time(64), time(512));
    assert!(more < few * 32, "{few:?} and {more:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_read(text in "\\PC{0,200}", at in 0_usize..13) {
        read_one(PARTS[at].command, &text);
        let _ = nxapi_bodies(&text);
    }

    #[test]
    fn any_words_of_the_tables_are_read(words in prop::collection::vec(prop::sample::select(vec![
        "Egress Queuing for Ethernet1/1", "Ingress Queuing for Ethernet1/2", "Ethernet1/3 queuing information:", "\n", "|", " ", "QOS GROUP 3",
        "Tx Pkts", "18446744073709551615", "--", "PFC Statistics", "TxPPP:", "RxPPP: 5,", "3 3 Inactive 5 Inactive 6", "Port", "InOctets",
        "Eth1/1", "On", "(8)", "5 1 2 3", "Statistics", "Per Slice Ingress Statistics", "Ingress Overflow Drop Pkts 5", "é", "Instance 0",
        "Total Instant Usage 1 2", "Class-map (queuing): c-out-q3", "random-detect minimum-threshold 18446744073709551615 kbytes ecn",
        "Kernel uptime is 18446744073709551615 day(s)", "Chassis id: a", "Local Port id: Eth1/1", "Status", "Vlan", "Speed", "Type",
    ]), 0..60), at in 0_usize..13) {
        let text = words.concat();
        read_one(PARTS[at].command, &text);
        read_one(POLICIES[0], &text);
        read_one(POLICIES[1], &text);
    }

    #[test]
    fn any_cut_of_a_document_is_read(at in 0_usize..13, cut in any::<usize>()) {
        for name in FOLDERS {
            if let Some(json) = fixture(name, PARTS[at].command, "json") {
                let end = cut % json.trim_end().len();
                let reading = read_one(PARTS[at].command, &json[..end]);
                prop_assert_eq!(reading.samples.len(), 0);
            }
        }
    }
}
