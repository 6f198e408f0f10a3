//! Hosts one adapter of which carries everything.

use roce_model::{Counter, Port, SampleRow, Wiring};

use super::readings::{reads, run, text};
use super::*;

/// Bytes that ports counted in two seconds.
fn counted_by(ports: &[(&str, u64, [f64; 2])]) -> RunSummary {
    let readings: Vec<Vec<SampleRow>> = ports
        .iter()
        .map(|(port, second, bytes)| reads(port, Counter::PortTransmittedBytes, *second, bytes))
        .collect();
    run(&Wiring::default(), &[], &readings)
}

#[test]
fn one_adapter_counts_everything() {
    let found = counted_by(&[("h1:mlx5_0", 0, [4e9, 5e9]), ("h1:mlx5_1", 0, [0.0, 2_000.0])]);
    let row = fired(&found, "adapter.idle");
    assert_eq!(
        (row.severity, row.confidence),
        (Severity::Info, Confidence::Medium)
    );
    assert_eq!(
        (text(row, "host"), text(row, "busy"), text(row, "idle")),
        ("h1", "mlx5_0", "mlx5_1")
    );
    assert_eq!(count(row, "bytes"), 9_000_000_000);
}

#[test]
fn adapters_that_are_used_or_were_not_read_are_not_idle() {
    let is_found = |ports: &[(&str, u64, [f64; 2])]| finding(&counted_by(ports), "adapter.idle").is_some();
    // A part of 1/900 is used.
    assert!(!is_found(&[("h1:a", 0, [4e9, 5e9]), ("h1:b", 0, [0.0, 1e7])]));
    // One adapter, or one of each host.
    assert!(!is_found(&[("h1:a", 0, [4e9, 5e9])]));
    assert!(!is_found(&[("h1:a", 0, [4e9, 5e9]), ("h2:a", 0, [0.0, 0.0])]));
    // Nothing went on at all.
    assert!(!is_found(&[("h1:a", 0, [4e5, 5e5]), ("h1:b", 0, [0.0, 0.0])]));
    // It was read at another time.
    assert!(!is_found(&[("h1:a", 0, [4e9, 5e9]), ("h1:b", 2, [0.0, 0.0])]));
    // Two of three share the load.
    assert!(!is_found(&[
        ("h1:a", 0, [4e9, 5e9]),
        ("h1:b", 0, [4e9, 5e9]),
        ("h1:c", 0, [0.0, 0.0])
    ]));
}

#[test]
fn one_address_of_a_host_sends_everything() {
    let wiring = |second: &str| Wiring {
        addresses: vec![
            (host(1), Port::new("h1", "mlx5_0")),
            (host(2), Port::new(second, "mlx5_1")),
        ],
        ..Wiring::default()
    };
    // h1 sends 1,000 data packets from its first address; from the second one comes an answer.
    let data = flow(1, 9);
    let mut answer = flow(2, 9);
    (answer.data_packets, answer.payload_bytes, answer.acks) = (0, 0, 1);
    let found = run(&wiring("h1"), &[data.clone(), answer.clone()], &[]);
    let row = fired(&found, "adapter.idle");
    assert_eq!((row.severity, row.confidence), (Severity::Info, Confidence::Low));
    assert_eq!((text(row, "busy"), text(row, "idle")), ("mlx5_0", "mlx5_1"));
    // Addresses of two hosts, and one that no packet shows.
    let found = run(&wiring("h2"), &[data.clone(), answer], &[]);
    assert!(finding(&found, "adapter.idle").is_none());
    assert!(finding(&run(&wiring("h1"), &[data], &[]), "adapter.idle").is_none());
}
