//! Counters in a text that somebody saved: of `rdma statistic show` or `ethtool -S`.

use std::path::Path;

use roce_hosts::{CounterPlace, ethtool_statistics, rdma_statistics};

/// A counter in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TextCounter {
    /// Device and port, or the interface.
    pub(super) object: String,
    /// Where the driver shows it; `None` for optional counters, which keep their names.
    pub(super) place: Option<CounterPlace>,
    pub(super) name: String,
    pub(super) value: u64,
}

/// The counters in a text. The ports of `rdma statistic show` name themselves; statistics are those of `interface`.
pub(super) fn counters(text: &str, interface: &str) -> Vec<TextCounter> {
    let mut counters = Vec::new();
    for link in rdma_statistics(text) {
        let of_port = link
            .counters
            .into_iter()
            .map(|one| (Some(CounterPlace::Hardware), one));
        let optional = link.optional.into_iter().map(|one| (None, one));
        counters.extend(of_port.chain(optional).map(|(place, statistic)| TextCounter {
            object: link.object.clone(),
            place,
            name: statistic.name,
            value: statistic.value,
        }));
    }
    if counters.is_empty() {
        let statistics = ethtool_statistics(text).into_iter();
        counters.extend(statistics.map(|statistic| TextCounter {
            object: interface.to_owned(),
            place: Some(CounterPlace::Netdev),
            name: statistic.name,
            value: statistic.value,
        }));
    }
    counters
}

/// The interface that a file with its statistics is about: `ethtool_-S_IF.txt`, or `IF.txt`.
pub fn interface_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    stem.strip_prefix("ethtool_-S_").unwrap_or(&stem).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_name_themselves_and_optional_counters_keep_their_names() {
        // Both forms that iproute2's rdma prints: lines wrapped between names and values.
        let text = "\
link rocep11s0/1 rx_write_requests 306127740 rx_read_requests 0 rx_atomic_requests 0 out_of_buffer 0 out_of_sequence 1187
duplicate_request 22 rnr_nak_retry_err 0 packet_seq_err 311 implied_nak_seq_err 0 local_ack_timeout_err 4 resp_local_length_error 0
rp_cnp_ignored 0 rp_cnp_handled 9725873 np_ecn_marked_roce_packets 40394737 np_cnp_sent 34569335 rx_icrc_encapsulated 0
    Optional-set: cc_rx_ce_pkts 40394100
link mlx4_0/2
    rx_write_requests 12
";
        let found = counters(text, "ens1");
        let of = |object: &str| found.iter().filter(|one| one.object == object).count();
        // Sixteen names are in the first three lines, and one in the optional set.
        assert_eq!((of("rocep11s0:1"), of("mlx4_0:2"), found.len()), (16 + 1, 1, 18));
        let optional: Vec<&TextCounter> = found.iter().filter(|one| one.place.is_none()).collect();
        assert_eq!(
            optional,
            [&TextCounter {
                object: "rocep11s0:1".into(),
                place: None,
                name: "cc_rx_ce_pkts".into(),
                value: 40_394_100
            }]
        );
    }

    #[test]
    fn statistics_are_those_of_the_interface() {
        let found = counters(
            "NIC statistics:\r\n     rx_prio3_pause: 41210\r\nhost:~# \r\n",
            "ens1",
        );
        assert_eq!(
            found,
            [TextCounter {
                object: "ens1".into(),
                place: Some(CounterPlace::Netdev),
                name: "rx_prio3_pause".into(),
                value: 41_210
            }]
        );
        assert_eq!(interface_of(Path::new("a/ethtool_-S_ens1f0.txt")), "ens1f0");
        assert_eq!(interface_of(Path::new("ens1f0.txt")), "ens1f0");
        assert!(counters("", "ens1").is_empty());
    }
}
