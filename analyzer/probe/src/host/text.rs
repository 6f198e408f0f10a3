//! Counters in a text that somebody saved: of `rdma statistic show`, `ethtool -S`, `perfquery`, or files of sysfs.

use std::path::Path;

use roce_hosts::{CounterPlace, ethtool_statistics, pasted_files, rdma_statistics};
use roce_model::SystemStart;

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

/// The counters in a text: of `rdma statistic show` as text or as JSON, of sysfs behind the paths of its files (`grep . /sys/...`), and of
/// `ethtool -S`. Ports name themselves. Statistics are those of the interface of the command before them, else of `interface`.
pub(super) fn counters(text: &str, interface: &str) -> Vec<TextCounter> {
    if text.trim_start().starts_with('[') && text.contains("\"ifname\"") {
        return of_document(text);
    }
    let queried = of_query(text);
    if !queried.is_empty() {
        return queried;
    }
    let mut counters = of_files(text);
    // Statistics of an interface may stand beside files, in lines of their own.
    let is_of_statistics = |line: &str| line.trim() == STATISTICS || line.contains(COMMAND);
    if !counters.is_empty() && !text.lines().any(is_of_statistics) {
        return counters;
    }
    for (interface, block) in blocks(text, interface) {
        let statistics = ethtool_statistics(&block).into_iter();
        counters.extend(statistics.map(|statistic| TextCounter {
            object: interface.clone(),
            place: Some(CounterPlace::Netdev),
            name: statistic.name,
            value: statistic.value,
        }));
    }
    // Statistics of interfaces are no counters of the port before them.
    let end = [STATISTICS, COMMAND]
        .iter()
        .filter_map(|word| text.find(word))
        .min();
    let of_ports = end.map_or(text, |at| text.get(..at).unwrap_or_default());
    for link in rdma_statistics(of_ports) {
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
    counters
}

/// Start of the system by a text: its files behind their paths, or `cat /proc/uptime` and what it printed.
pub(super) fn start(text: &str) -> SystemStart {
    let files = pasted_files(text);
    let file = |path: &str| {
        files
            .get(path)
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    let uptime = file("proc/uptime").or_else(|| {
        let mut lines = text.lines().map(str::trim);
        lines.find(|line| is_uptime(line)).map(str::to_owned)
    });
    SystemStart::from_texts(
        &uptime.unwrap_or_default(),
        &file("proc/sys/kernel/random/boot_id").unwrap_or_default(),
        &file("proc/stat").unwrap_or_default(),
    )
}

/// The line of `/proc/uptime`: two times with two digits behind the point (Linux fs/proc/uptime.c).
fn is_uptime(line: &str) -> bool {
    let is_time = |word: &str| {
        word.split_once('.').is_some_and(|(seconds, hundredths)| {
            let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            !seconds.is_empty() && digits(seconds) && hundredths.len() == 2 && digits(hundredths)
        })
    };
    let words: Vec<&str> = line.split(' ').collect();
    words.len() == 2 && words.into_iter().all(is_time)
}

/// First line of `ethtool -S`.
const STATISTICS: &str = "NIC statistics:";
/// The command, behind a prompt.
const COMMAND: &str = "ethtool -S ";

/// The statistics of each interface in a text of `ethtool -S`, given once or several times.
fn blocks(text: &str, interface: &str) -> Vec<(String, String)> {
    let mut blocks: Vec<(String, String)> = Vec::new();
    let mut name = interface.to_owned();
    // Without the heading a text is of `ethtool -S` if its names are those of statistics: words without blanks and slashes.
    let is_named = |line: &str| {
        line.rsplit_once(':')
            .is_none_or(|(name, _)| !name.trim().contains([' ', '/', '"']))
    };
    let mut is_inside = !text.contains(STATISTICS) && text.lines().all(is_named);
    let mut is_headed = is_inside;
    if is_inside {
        blocks.push((name.clone(), String::new()));
    }
    for line in text.lines() {
        if let Some((_, command)) = line.split_once(COMMAND) {
            let word = command.split_whitespace().next().unwrap_or_default();
            word.clone_into(&mut name);
            // `ethtool -S IF | grep pause` prints no heading.
            blocks.push((name.clone(), String::new()));
            (is_inside, is_headed) = (true, false);
            continue;
        }
        if is_inside && !is_headed && !is_statistic(line) && !line.contains(STATISTICS) {
            is_inside = false;
        }
        if line.contains(STATISTICS) {
            blocks.push((name.clone(), String::new()));
            (is_inside, is_headed) = (true, true);
        } else if line.trim_start().starts_with("link ") && line.contains('/') {
            is_inside = false;
        }
        if let Some((_, block)) = blocks.last_mut().filter(|_| is_inside) {
            block.push_str(line);
            block.push('\n');
        }
    }
    blocks
}

/// A line of statistics: a name without blanks and slashes, and a number.
fn is_statistic(line: &str) -> bool {
    line.rsplit_once(':').is_some_and(|(name, value)| {
        let is_name = |name: &str| !name.contains([' ', '/', '"', '@']);
        is_name(name.trim()) && value.trim().parse::<u64>().is_ok()
    })
}

/// Names of perfquery (infiniband-diags), and those of the files that Linux has for the same counters.
const QUERIED: [(&str, &str); 18] = [
    ("SymbolErrorCounter", "symbol_error"),
    ("LinkErrorRecoveryCounter", "link_error_recovery"),
    ("LinkDownedCounter", "link_downed"),
    ("PortRcvErrors", "port_rcv_errors"),
    ("PortRcvRemotePhysicalErrors", "port_rcv_remote_physical_errors"),
    ("PortRcvSwitchRelayErrors", "port_rcv_switch_relay_errors"),
    ("PortXmitDiscards", "port_xmit_discards"),
    ("PortXmitConstraintErrors", "port_xmit_constraint_errors"),
    ("PortRcvConstraintErrors", "port_rcv_constraint_errors"),
    ("LocalLinkIntegrityErrors", "local_link_integrity_errors"),
    ("ExcessiveBufferOverrunErrors", "excessive_buffer_overrun_errors"),
    ("VL15Dropped", "VL15_dropped"),
    ("PortXmitWait", "port_xmit_wait"),
    ("PortXmitData", "port_xmit_data"),
    ("PortRcvData", "port_rcv_data"),
    ("PortXmitPkts", "port_xmit_packets"),
    ("PortRcvPkts", "port_rcv_packets"),
    ("PortUnicastXmitPkts", "unicast_xmit_packets"),
];

/// `perfquery` and `perfquery -x`: a heading with the LID and the port, and `PortXmitWait:....................5511`. The port of a LID is
/// called `lid 28:1`.
fn of_query(text: &str) -> Vec<TextCounter> {
    let mut counters: Vec<TextCounter> = Vec::new();
    let mut object: Option<String> = None;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with('#') && line.contains("ort") && line.contains("ounters: Lid ") {
            let words: Vec<&str> = line.split_whitespace().collect();
            let behind = |word: &str| {
                let at = words.iter().position(|known| *known == word)?;
                words.get(at + 1).copied()
            };
            object = behind("Lid").map(|lid| format!("lid {lid}:{}", behind("port").unwrap_or("1")));
            continue;
        }
        let (Some(object), Some((name, value))) = (&object, line.split_once(':')) else {
            continue;
        };
        let known = QUERIED.iter().find(|(queried, _)| *queried == name);
        let value = value.trim_start_matches(['.', ' ']).parse();
        if let (Some((_, name)), Ok(value)) = (known, value) {
            counters.push(TextCounter {
                object: object.clone(),
                place: Some(CounterPlace::Port),
                name: (*name).to_owned(),
                value,
            });
        }
    }
    counters
}

/// `rdma statistic show -j`: one object for each port (iproute2, `rdma/stat.c`).
fn of_document(text: &str) -> Vec<TextCounter> {
    let Ok(ports) = serde_json::from_str::<Vec<serde_json::Map<String, serde_json::Value>>>(text) else {
        return Vec::new();
    };
    let mut counters = Vec::new();
    for port in ports {
        let (Some(name), Some(number)) = (
            port.get("ifname").and_then(|name| name.as_str()),
            port.get("port").and_then(serde_json::Value::as_u64),
        ) else {
            continue;
        };
        let values = port
            .iter()
            .filter(|(name, _)| !["ifindex", "ifname", "port"].contains(&name.as_str()));
        counters.extend(values.filter_map(|(counter, value)| {
            Some(TextCounter {
                object: format!("{name}:{number}"),
                place: Some(CounterPlace::Hardware),
                name: counter.clone(),
                value: value.as_u64()?,
            })
        }));
    }
    counters
}

/// Counters in files that a text has behind their paths: of sysfs (`/sys/class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent:12`, as
/// `grep . FILES` prints it), and recorded answers (`commands/ethtool_-S_IF.txt`).
fn of_files(text: &str) -> Vec<TextCounter> {
    let mut counters = Vec::new();
    for (path, bytes) in pasted_files(text) {
        let content = String::from_utf8_lossy(&bytes);
        let parts: Vec<&str> = path.split('/').collect();
        match parts.as_slice() {
            ["sys", "class", "infiniband", device, "ports", port, folder, name] => {
                let place = match *folder {
                    "hw_counters" => CounterPlace::Hardware,
                    "counters" => CounterPlace::Port,
                    _ => continue,
                };
                counters.extend(content.trim().parse().ok().map(|value| TextCounter {
                    object: format!("{device}:{port}"),
                    place: Some(place),
                    name: (*name).to_owned(),
                    value,
                }));
            }
            ["commands", file] => {
                let interface = file
                    .strip_prefix("ethtool_-S_")
                    .and_then(|rest| rest.strip_suffix(".txt"));
                let statistics = ethtool_statistics(&content).into_iter();
                counters.extend(statistics.filter_map(|statistic| {
                    Some(TextCounter {
                        object: interface?.to_owned(),
                        place: Some(CounterPlace::Netdev),
                        name: statistic.name,
                        value: statistic.value,
                    })
                }));
            }
            _ => {}
        }
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

    #[test]
    fn counters_of_perfquery() {
        let text = "# Port counters: Lid 28 port 1 (CapMask: 0x5A00)\nPortSelect:......................1\nCounterSelect:...................0x0000\nSymbolErrorCounter:..............12\nPortXmitWait:....................5511\n";
        let found: Vec<_> = counters(text, "x")
            .into_iter()
            .map(|one| (one.object, one.name, one.value))
            .collect();
        let of = |name: &str, value| ("lid 28:1".to_owned(), name.to_owned(), value);
        assert_eq!(found, [of("symbol_error", 12), of("port_xmit_wait", 5_511)]);
    }

    #[test]
    fn documents_and_files_have_the_same_counters() {
        let of = |text: &str| -> Vec<(String, String, u64)> {
            let mut found: Vec<_> = counters(text, "x")
                .into_iter()
                .map(|one| (one.object, one.name, one.value))
                .collect();
            found.sort();
            found
        };
        let plain = of("link mlx5_0/1 np_cnp_sent 12 out_of_sequence 7\nlink mlx5_1/1 np_cnp_sent 0\n");
        assert_eq!(plain.len(), 3);
        let document = "[{\"ifindex\":0,\"ifname\":\"mlx5_0\",\"port\":1,\"np_cnp_sent\":12,\"out_of_sequence\":7},{\"ifindex\":1,\"ifname\":\"mlx5_1\",\"port\":1,\"np_cnp_sent\":0}]";
        assert_eq!(of(document), plain);
        let files = "/sys/class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent:12\n/sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence:7\n\
                     /sys/class/infiniband/mlx5_1/ports/1/hw_counters/np_cnp_sent:0\n";
        assert_eq!(of(files), plain);
    }

    #[test]
    fn a_session_names_the_interfaces() {
        let text = "root@h1:~# rdma statistic show link mlx5_0/1\nlink mlx5_0/1 np_cnp_sent 12\nroot@h1:~# ethtool -S ens1f0\nNIC statistics:\n     rx_prio3_pause: 5\n\
                    root@h1:~# ethtool -S ens1f1\nNIC statistics:\n     rx_prio3_pause: 6\n";
        let found = counters(text, "x");
        let of = |object: &str| {
            found
                .iter()
                .find(|one| one.object == object)
                .map(|one| (one.name.as_str(), one.value))
        };
        assert_eq!(
            (found.len(), of("ens1f0"), of("ens1f1")),
            (3, Some(("rx_prio3_pause", 5)), Some(("rx_prio3_pause", 6)))
        );
        assert_eq!(of("mlx5_0:1"), Some(("np_cnp_sent", 12)));
    }

    #[test]
    fn a_text_says_when_its_system_started() {
        let session = "[root@h1 ~]# cat /proc/uptime\r\n1000060.25 99999.99\r\n[root@h1 ~]# ethtool -S ens1\r\nNIC statistics:\r\n     rx_prio3_pause: 5\r\n";
        assert_eq!(start(session).uptime, Some(1_000_060.25));
        assert_eq!(start("/proc/uptime:77.50 1.00\n").uptime, Some(77.5));
        assert_eq!(start("NIC statistics:\n     rx_prio3_pause: 5\n").uptime, None);
    }

    #[test]
    fn statistics_behind_a_pipe_have_no_heading() {
        let text = "$ sudo ethtool -S ens1f0 | grep -E \"pause|discard\"\n     rx_discards_phy: 7\n     rx_prio3_pause: 5\n$ cat /sys/x\nother: 5\n";
        let found = counters(text, "x");
        let names: Vec<_> = found
            .iter()
            .map(|one| (one.object.as_str(), one.name.as_str(), one.value))
            .collect();
        assert_eq!(
            names,
            [("ens1f0", "rx_discards_phy", 7), ("ens1f0", "rx_prio3_pause", 5)]
        );
    }
}
