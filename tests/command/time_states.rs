//! Where the time of flows went: in each capture of the project the states of a flow add up to its time.

use roce_flow::Options;

use crate::captures::{captures_below, flows, root};

#[test]
fn states_of_each_flow_add_up_to_its_time() {
    let mut paths = Vec::new();
    captures_below(&root().join("captures"), &mut paths);
    captures_below(&root().join("tests/data"), &mut paths);
    assert!(paths.len() > 20, "{}", paths.len());
    let mut divided = 0;
    for path in &paths {
        for link_rate in [None, Some(100_000_000_000)] {
            let options = Options {
                link_rate,
                ..Options::default()
            };
            for row in flows(path, options) {
                let sent = row.last_request_time.is_some();
                assert!(
                    !sent || row.time_by_state().is_some(),
                    "{}: {row:?}",
                    path.display()
                );
                let Some(times) = row.time_by_state() else {
                    continue;
                };
                divided += 1;
                let life = row.last_time.since(row.first_time).0;
                assert_eq!(times.sum(), life, "{}: {row:?}", path.display());
            }
        }
    }
    assert!(divided > 100, "{divided}");
}

#[test]
fn timers_take_the_time_that_tshark_shows_before_retransmissions() {
    let rows = flows(&root().join("captures/write_bw_loss.pcap"), Options::default());
    let timeouts: u64 = rows.iter().filter_map(|row| row.time_timeout_ns).sum();
    // tshark's times between the packets of 10.77.0.1 before eight of its runs: 48.60, 63.99, 65.58, 47.31, 63.79, 53.57, 52.75 and 63.66 ms.
    assert!(timeouts.abs_diff(459_250_000) < 50_000, "{timeouts}");
}
