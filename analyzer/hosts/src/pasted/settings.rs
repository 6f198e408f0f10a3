//! Settings of network interfaces: `ethtool`, `mlnx_qos`, `dcb`, `ip link`.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::files::{PastedFiles, interface_of};
use crate::hca::is_plain_name;

/// Adds what the outputs in a text say. `name` is that of the file, which can name the interface of `mlnx_qos`.
pub(super) fn read(text: &str, name: &str, found: &mut PastedFiles) {
    for line in text.lines() {
        ip_link(line, found);
        ip_address(line, found);
        sysctl(line, found);
    }
    ethtool(text, found);
    dcb(text, found);
    lldptool(text, name, found);
    let mut interface = if is_plain_name(name) { name } else { "port" };
    let mut qos: Option<Qos> = None;
    for line in text.lines() {
        if let Some(named) = interface_of(line, "mlnx_qos") {
            end(interface, qos.take(), found);
            interface = named;
        } else if line.trim_start().starts_with("DCBX mode:") {
            end(interface, qos.take(), found);
            qos = Some(Qos::default());
        }
        if line.contains("Priority trust state:") {
            qos.get_or_insert_default();
        }
        if let Some(qos) = &mut qos {
            qos.add(line.trim());
        }
    }
    end(interface, qos, found);
}

/// A line of `ip link` or `ip addr`: `4: ens1: <BROADCAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP`.
fn ip_link(line: &str, found: &mut PastedFiles) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [index, name, flags, "mtu", mtu, rest @ ..] = words.as_slice() else {
        return;
    };
    let name = name.trim_end_matches(':').split('@').next().unwrap_or_default();
    let is_index = index.trim_end_matches(':').parse::<u32>().is_ok();
    if !is_index || !flags.starts_with('<') || !is_plain_name(name) || mtu.parse::<u32>().is_err() {
        return;
    }
    found.add(format!("sys/class/net/{name}/mtu"), mtu);
    if let Some(state) = rest
        .iter()
        .position(|word| *word == "state")
        .and_then(|at| rest.get(at + 1))
    {
        found.add(
            format!("sys/class/net/{name}/operstate"),
            &state.to_ascii_lowercase(),
        );
    }
}

/// A line of `ip addr`: `inet 10.1.0.11/24 brd 10.1.0.255 scope global ens1f0`, whose last word is the interface or its label.
fn ip_address(line: &str, found: &mut PastedFiles) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["inet", address, rest @ ..] = words.as_slice() else {
        return;
    };
    let Some(name) = rest.last().and_then(|name| name.split(':').next()) else {
        return;
    };
    let is_global = rest.windows(2).any(|pair| pair == ["scope", "global"]);
    let parsed = address
        .split_once('/')
        .and_then(|(address, length)| Some((address.parse::<Ipv4Addr>().ok()?, length.parse::<u32>().ok()?)));
    if let Some((address, length @ 1..=32)) = parsed.filter(|_| is_global && is_plain_name(name)) {
        let mask = u32::MAX << (32 - length);
        let net = Ipv4Addr::from(u32::from(address) & mask);
        found.answer(
            &format!("subnet.{name}.json"),
            &json!({ "subnet": format!("{net}/{length}") }),
        );
    }
}

/// A line of `sysctl -a`: `net.ipv4.conf.ens1.arp_ignore = 1`. Dots of a name stand as slashes (procps, sysctl.c).
fn sysctl(line: &str, found: &mut PastedFiles) {
    let Some((key, value)) = line.trim().split_once(" = ") else {
        return;
    };
    if let Some((name, setting)) = key
        .strip_prefix("net.ipv4.conf.")
        .and_then(|rest| rest.rsplit_once('.'))
        && is_plain_name(&name.replace('/', "."))
        && is_plain_name(setting)
        && value.trim().parse::<u32>().is_ok()
    {
        let name = name.replace('/', ".");
        found.add(format!("proc/sys/net/ipv4/conf/{name}/{setting}"), value.trim());
    }
}

/// `dcb pfc show dev IF` and `dcb app show dev IF` (iproute2): pairs of a number or name and its value.
fn dcb(text: &str, found: &mut PastedFiles) {
    let mut interface = None;
    for line in text.lines() {
        if let Some(named) = interface_of(line, "dcb") {
            interface = Some(named);
            continue;
        }
        let Some(interface) = interface else { continue };
        let line = line.trim();
        let pairs = |rest: &str| -> Vec<(String, String)> {
            let pairs = rest.split_whitespace().filter_map(|pair| pair.split_once(':'));
            pairs
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect()
        };
        if let Some(rest) = line.strip_prefix("prio-pfc ") {
            let on: Vec<bool> = pairs(rest).iter().map(|(_, value)| value == "on").collect();
            if on.len() == 8 {
                found.answer(&format!("dcb-pfc.{interface}.json"), &json!({ "prio_pfc": on }));
            }
        } else if let Some(rest) = line.strip_prefix("dscp-prio ") {
            let map: Vec<Value> = pairs(rest)
                .iter()
                .filter_map(|(name, priority)| Some(json!([name, priority.parse::<u8>().ok()?])))
                .collect();
            found.answer(&format!("dcb-app.{interface}.json"), &json!({ "dscp_prio": map }));
        }
    }
}

/// `lldptool -t -i IF -V PFC` (open-lldp, lldp_8021qaz_clif.c): `PFC enabled: 3 4`, or `none`; with `-c enabled` `enabled=3,4`. With `-n` it
/// shows the neighbour, which is not read.
fn lldptool(text: &str, name: &str, found: &mut PastedFiles) {
    let mut interface = Some(if is_plain_name(name) { name } else { "port" });
    for line in text.lines() {
        if let Some((_, arguments)) = line.split_once("lldptool ") {
            let words: Vec<&str> = arguments.split_whitespace().collect();
            let is_neighbour = words
                .iter()
                .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('n'));
            let named = words
                .iter()
                .position(|word| word.starts_with('-') && word.ends_with('i'))
                .and_then(|at| words.get(at + 1))
                .filter(|word| is_plain_name(word));
            interface = named.copied().filter(|_| !is_neighbour);
            continue;
        }
        let line = line.trim();
        let list = line
            .strip_prefix("PFC enabled:")
            .or_else(|| line.strip_prefix("enabled="));
        let (Some(interface), Some(list)) = (interface, list) else {
            continue;
        };
        let words: Vec<&str> = list
            .split([' ', ',', '\t'])
            .filter(|word| !word.is_empty())
            .collect();
        let priorities: Option<Vec<usize>> = words.iter().map(|word| word.parse().ok()).collect();
        let priorities = match (words.as_slice(), priorities) {
            (["none"], _) => Vec::new(),
            ([_, ..], Some(all)) if all.iter().all(|priority| *priority < 8) => all,
            _ => continue,
        };
        let on: Vec<bool> = (0..8).map(|priority| priorities.contains(&priority)).collect();
        found.answer(&format!("dcb-pfc.{interface}.json"), &json!({ "prio_pfc": on }));
    }
}

/// `ethtool IF`, `-a`, `-i` and `--show-fec`: blocks whose first line names the interface, but for `-i`.
fn ethtool(text: &str, found: &mut PastedFiles) {
    let mut interface = String::new();
    let (mut pause, mut rx) = (None, None);
    let (mut is_in_modes, mut most) = (false, None);
    for line in text.lines() {
        if let Some(named) = interface_of(line, "ethtool") {
            named.clone_into(&mut interface);
        }
        for heading in ["Settings for ", "Pause parameters for ", "FEC parameters for "] {
            if let Some(named) = line.trim().strip_prefix(heading) {
                let named = named.trim_end_matches(':');
                if is_plain_name(named) {
                    named.clone_into(&mut interface);
                }
                (pause, rx) = (heading.starts_with("Pause").then_some(false), None);
            }
        }
        // Modes go on in lines without a key.
        let is_modes_line = line.trim_start().starts_with("Supported link modes:");
        if is_modes_line || is_in_modes && !line.contains(':') {
            is_in_modes = true;
            let words = line.split_whitespace();
            most = words
                .filter_map(speed_of_mode)
                .fold(most, |most, speed| most.max(Some(speed)));
            continue;
        }
        if is_in_modes && !interface.is_empty() {
            is_in_modes = false;
            if let Some(most) = most.take() {
                found.answer(
                    &format!("ethtool-link.{interface}.json"),
                    &json!({ "max_speed_mbit": most }),
                );
            }
        }
        let Some((key, value)) = line.trim().split_once(':').filter(|_| !interface.is_empty()) else {
            continue;
        };
        let value = value.trim();
        let is_on = value == "on";
        match key.trim() {
            "Speed" => {
                if let Some(speed) = value.strip_suffix("Mb/s") {
                    found.add(format!("sys/class/net/{interface}/speed"), speed);
                }
            }
            "Active FEC encoding" | "Active FEC encodings" => {
                let active = json!({ "active": value });
                found.answer(&format!("ethtool-fec.{interface}.json"), &active);
            }
            "bus-info" if is_pci(value) => {
                found.add(
                    format!("sys/bus/pci/devices/{value}/net/{interface}/name"),
                    &interface,
                );
            }
            "Autonegotiate" if pause.is_some() => pause = Some(is_on),
            "RX" if pause.is_some() => rx = Some(is_on),
            "TX" => {
                if let Some((autonegotiate, rx)) = pause.take().zip(rx.take()) {
                    let answer = json!({ "autonegotiate": autonegotiate, "rx": rx, "tx": is_on });
                    found.answer(&format!("ethtool-pause.{interface}.json"), &answer);
                }
            }
            _ => {}
        }
    }
}

/// True of a PCI address with its domain: `0000:3b:00.2`.
fn is_pci(text: &str) -> bool {
    is_plain_name(&text.replace([':', '.'], "_"))
        && text.matches(':').count() == 2
        && text.matches('.').count() == 1
}

/// Mbit/s of a link mode: `100000baseCR4/Full`.
fn speed_of_mode(word: &str) -> Option<u64> {
    let (speed, kind) = word.split_once("base")?;
    kind.contains('/').then(|| speed.parse().ok()).flatten()
}

/// The output of `mlnx_qos -i IF` (MLNX_OFED).
#[derive(Default)]
struct Qos {
    trust: Option<String>,
    dscps: Vec<Value>,
    pfc: Option<Vec<u64>>,
    buffers: Option<Vec<u64>>,
    sizes: Option<Vec<u64>>,
    is_firmware: Option<bool>,
    /// Limits of the classes in kbit/s; 0: none.
    limits: BTreeMap<usize, u64>,
}

impl Qos {
    fn add(&mut self, line: &str) {
        let numbers = |text: &str| -> Vec<u64> {
            text.split([',', ' ', '\t'])
                .filter_map(|word| word.parse().ok())
                .collect()
        };
        let of_eight = |text: &str| Some(numbers(text)).filter(|all| all.len() == 8);
        // `tc: 3 ratelimit: 10.0 Gbps, tsa: ets, bw: 50%`, or `unlimited`.
        if let Some((class, rest)) = line
            .strip_prefix("tc:")
            .and_then(|rest| rest.split_once("ratelimit:"))
        {
            let limit = kilobits(rest.split(',').next().unwrap_or_default().trim());
            if let (Ok(class @ 0..8), Some(limit)) = (class.trim().parse::<usize>(), limit) {
                self.limits.insert(class, limit);
            }
        }
        if let Some(mode) = line.strip_prefix("DCBX mode:") {
            self.is_firmware = Some(mode.trim().starts_with("Firmware"));
        } else if let Some(trust) = line.strip_prefix("Priority trust state:") {
            self.trust = Some(trust.trim().to_owned());
        } else if let Some((priority, dscps)) = line
            .strip_prefix("prio:")
            .and_then(|rest| rest.trim_start().split_once("dscp:"))
        {
            let priority = priority.trim().parse::<u8>();
            for dscp in numbers(dscps) {
                if let (Ok(priority), 0..64) = (&priority, dscp) {
                    self.dscps.push(json!([dscp, priority]));
                }
            }
        } else if let Some(sizes) = line.strip_prefix("Receive buffer size (bytes):") {
            self.sizes = of_eight(sizes.split("max").next().unwrap_or_default());
        } else if let Some(enabled) = line.strip_prefix("enabled ") {
            self.pfc = of_eight(enabled);
        } else if let Some(buffers) = line.strip_prefix("buffer ") {
            self.buffers = of_eight(buffers);
        }
    }
}

/// A limit of `mlnx_qos` in kbit/s: `10.0 Gbps`, `500 Mbps`; 0: `unlimited`.
fn kilobits(limit: &str) -> Option<u64> {
    if limit == "unlimited" {
        return Some(0);
    }
    let (number, unit) = limit.split_once(' ')?;
    let unit = match unit.trim() {
        "Gbps" => 1_000_000,
        "Mbps" => 1_000,
        _ => return None,
    };
    // In thousandths, without numbers of floating point.
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let thousandths: u64 = format!("{part:0<3}").get(..3)?.parse().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1_000)?
        .checked_add(thousandths)?
        .checked_mul(unit / 1_000)
}

fn end(interface: &str, qos: Option<Qos>, found: &mut PastedFiles) {
    let Some(qos) = qos else { return };
    if let Some(trust) = &qos.trust {
        found.answer(
            &format!("dcb-apptrust.{interface}.json"),
            &json!({ "apptrust": [trust] }),
        );
    }
    if !qos.dscps.is_empty() {
        found.answer(
            &format!("dcb-app.{interface}.json"),
            &json!({ "dscp_prio": qos.dscps }),
        );
    }
    if let Some(pfc) = qos.pfc {
        let on: Vec<bool> = pfc.iter().map(|on| *on > 0).collect();
        found.answer(&format!("dcb-pfc.{interface}.json"), &json!({ "prio_pfc": on }));
    }
    if let Some((buffers, sizes)) = qos.buffers.zip(qos.sizes) {
        let answer = json!({ "prio_buffer": buffers, "buffer_size": sizes });
        found.answer(&format!("dcb-buffer.{interface}.json"), &answer);
    }
    if !qos.limits.is_empty() {
        let limits: Vec<u64> = (0..8)
            .map(|class| qos.limits.get(&class).copied().unwrap_or(0))
            .collect();
        found.answer(
            &format!("dcb-maxrate.{interface}.json"),
            &json!({ "tc_maxrate_kbit": limits }),
        );
    }
    if let Some(is_firmware) = qos.is_firmware {
        found.answer(
            &format!("dcb-dcbx.{interface}.json"),
            &json!({ "lld_managed": is_firmware }),
        );
    }
}
