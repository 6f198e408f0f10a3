//! The example that embeds the analysis does what it says.

use std::path::PathBuf;

#[path = "../examples/embed.rs"]
mod embed;

fn capture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../captures")
        .join(name)
}

#[test]
fn a_capture_with_losses_stops_the_bench() {
    let (run, worst) = embed::analyse(&[capture("write_bw_loss.pcap")]).unwrap();
    let lines = embed::report(&run, &worst);
    // captures/README.md: one queue pair, 0x13, retransmits after losses.
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("warning loss.network: ")),
        "{lines:?}"
    );
    let flow = lines.last().unwrap();
    assert!(flow.starts_with("10.77.0.1 > 10.77.0.2 QP 0x13: "), "{flow}");
}

#[test]
fn a_clean_capture_passes() {
    let (run, worst) = embed::analyse(&[capture("clean_write_bw.pcap")]).unwrap();
    assert!(run.totals.roce_packets > 0);
    assert_eq!(embed::report(&run, &worst), [""; 0]);
}
