//! Texts that describe a host's counters: `ethtool -S` and `rdma statistic show`.

use crate::drivers::of_classes;
use crate::terminal::without_terminal;

/// A statistic by the driver's name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statistic {
    /// The driver's name, without blanks around it.
    pub name: String,
    /// Its value.
    pub value: u64,
}

/// One port in the text of `rdma statistic show`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    /// Device and port: `mlx5_0:1`.
    pub object: String,
    /// Its counters, in the order of the text.
    pub counters: Vec<Statistic>,
    /// Counters of the optional set.
    pub optional: Vec<Statistic>,
}

/// The statistics in the text of `ethtool -S`, and what follows from them ([`of_classes`]). Lines that are none (the heading, a prompt, a
/// blank line) are left out.
pub fn ethtool_statistics(text: &str) -> Vec<Statistic> {
    let mut all: Vec<Statistic> = without_terminal(text)
        .lines()
        .filter_map(|line| {
            // The name itself may have a colon: `[3]: rx_ucast_packets: 5`.
            let (name, value) = line.rsplit_once(':')?;
            Some(Statistic {
                name: name.trim().to_owned(),
                value: value.trim().parse().ok()?,
            })
        })
        .collect();
    let named: Vec<(&str, u64)> = all.iter().map(|one| (one.name.as_str(), one.value)).collect();
    let classes = of_classes(&named);
    all.extend(classes.into_iter().map(|(name, value)| Statistic { name, value }));
    all
}

/// The ports and counters in the text of `rdma statistic show`.
///
/// Names and values take turns, and lines may be wrapped anywhere between them. What does not fit is left out.
pub fn rdma_statistics(text: &str) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    let mut is_optional = false;
    let mut is_ended = false;
    let text = without_terminal(text);
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        if word == "link" {
            let Some((device, port)) = words.next().and_then(|name| name.rsplit_once('/')) else {
                continue;
            };
            (is_optional, is_ended) = (false, false);
            links.push(Link {
                object: format!("{device}:{port}"),
                counters: Vec::new(),
                optional: Vec::new(),
            });
            continue;
        }
        if word == "Optional-set:" {
            is_optional = true;
            continue;
        }
        // A prompt, or the output of another command.
        if word.contains(['@', '<']) || word.ends_with([':', '#', '$']) {
            is_ended = true;
        }
        if is_ended || !word.starts_with(|glyph: char| glyph.is_ascii_alphabetic()) {
            continue;
        }
        let Some(value) = words.peek().and_then(|value| value.parse().ok()) else {
            continue;
        };
        words.next();
        if let Some(link) = links.last_mut() {
            let into = if is_optional {
                &mut link.optional
            } else {
                &mut link.counters
            };
            into.push(Statistic {
                name: word.to_owned(),
                value,
            });
        }
    }
    links
}

/// The rate of a port in bit/s, from `100 Gb/sec (4X EDR)`, the text of its file `rate` (Linux drivers/infiniband/core/sysfs.c).
pub fn port_rate_bps(text: &str) -> Option<u64> {
    let gigabits: f64 = text.split_once("Gb/sec")?.0.trim().parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is positive and at most some thousand Gbit/s"
    )]
    let bits = (gigabits.clamp(0.0, 1e6) * 1e9).round() as u64;
    (bits > 0).then_some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_an_interface() {
        let text = "\u{feff}NIC statistics:\r\n     rx_packets: 918273\r\n     tx_pause_storm_warning_events : 3\r\n     [3]: rx_drops: 5\r\n\r\nhost:~# \r\n     odd: -1\r\n";
        let statistics = ethtool_statistics(text);
        let pairs: Vec<(&str, u64)> = statistics
            .iter()
            .map(|all| (all.name.as_str(), all.value))
            .collect();
        assert_eq!(
            pairs,
            [
                ("rx_packets", 918_273),
                ("tx_pause_storm_warning_events", 3),
                ("[3]: rx_drops", 5)
            ]
        );
    }

    #[test]
    fn what_a_terminal_adds_to_a_text_is_no_counter() {
        // A pager's line, and a prompt with the command, in colours.
        let text = "\u{1b}[1;32mhost\u{1b}[0m# ethtool -S eth0\nNIC statistics:\n     rx_packets: 5\n--More--\u{1b}[K\r     tx_packets: 7\nhost# ";
        let statistics = ethtool_statistics(text);
        let names: Vec<&str> = statistics.iter().map(|all| all.name.as_str()).collect();
        assert_eq!(names, ["rx_packets", "tx_packets"]);
        let text = "host# rdma statistic show\r\nlink mlx5_0/1 out_of_sequence 3 \u{1b}[0m--More--\u{1b}[K duplicate_request 4\r\nhost#";
        let links = rdma_statistics(text);
        assert_eq!(links.len(), 1);
        let pairs: Vec<(&str, u64)> = links[0]
            .counters
            .iter()
            .map(|all| (all.name.as_str(), all.value))
            .collect();
        assert_eq!(pairs, [("out_of_sequence", 3), ("duplicate_request", 4)]);
    }

    #[test]
    fn outputs_of_other_commands_are_no_counters() {
        let text = "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1\n2: ens1: <BROADCAST,UP> mtu 9000 qdisc mq qlen 1000\n    RX:  bytes packets errors\n    12 34 5\n";
        let links = rdma_statistics(text);
        assert!(links.iter().all(|link| link.counters.is_empty()), "{links:?}");
        let text = "link mlx5_0/1 out_of_sequence 3\nroot@h1:~# ip link\nmtu 9000\nlink mlx5_1/1 out_of_sequence 4\n";
        let values: Vec<u64> = rdma_statistics(text)
            .iter()
            .flat_map(|link| link.counters.iter().map(|one| one.value))
            .collect();
        assert_eq!(values, [3, 4]);
    }

    #[test]
    fn counters_of_ports_in_both_forms() {
        // The forms that iproute2's rdma prints: one line for a port, wrapped, with the optional set behind it.
        let text = "\
link rocep11s0/1 rx_write_requests 306127740 rx_read_requests 0 out_of_sequence 1187
duplicate_request 22 rp_cnp_handled 9725873 np_cnp_sent 34569335
    Optional-set: cc_rx_ce_pkts 40394100
link mlx4_0/2
    rx_write_requests 12
";
        let links = rdma_statistics(text);
        assert_eq!(links.len(), 2);
        assert_eq!(
            (links[0].object.as_str(), links[0].counters.len()),
            ("rocep11s0:1", 6)
        );
        assert_eq!(
            links[0].counters[5],
            Statistic {
                name: "np_cnp_sent".into(),
                value: 34_569_335
            }
        );
        assert_eq!(
            links[0].optional,
            [Statistic {
                name: "cc_rx_ce_pkts".into(),
                value: 40_394_100
            }]
        );
        assert_eq!(
            (links[1].object.as_str(), links[1].counters.len()),
            ("mlx4_0:2", 1)
        );
    }

    #[test]
    fn texts_that_are_cut_or_foreign_do_no_harm() {
        for text in [
            "",
            "link",
            "link x",
            "link a/1 name",
            "name 5",
            "Optional-set: a 5",
            "link a/1 5 5 5",
        ] {
            let links = rdma_statistics(text);
            assert!(links.iter().all(|link| link.counters.len() <= 1), "{text}");
        }
        assert!(ethtool_statistics("a:b:c\n:::\n:\n5").is_empty());
    }
}
