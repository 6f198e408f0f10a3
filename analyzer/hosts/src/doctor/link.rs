//! Checks of links: speed, errors, FEC, lanes.

use roce_model::{Counter, Severity};
use roce_rules::counters::CounterFinding;

use crate::doctor::check::{CERTAIN, Check, CheckResult, CheckRun, Outcome, Status, each};
use crate::doctor::facts::{Facts, RdmaDevice, RdmaPort, odd};
use crate::doctor::host::Unknown;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "link.speed",
        title: "links run at their speed",
        read: "/sys/class/infiniband/DEVICE/ports/N/rate; the interface's link modes (ETHTOOL_GLINKSETTINGS)",
        method: "below the highest speed that the port supports, or ports of one kind of adapter at different speeds: warning",
        meaning: "A cable, a transceiver or a breakout can hold a link at a lower speed; one slow link slows every collective.",
        symptom: "Throughput is 10 instead of 40 Gbit/s, without any loss.",
        alternatives: "pcie.link",
        source: "Linux include/uapi/linux/ethtool.h",
        severity: Severity::Warning,
        confidence: "certain; likely where the outcome says so",
        run: CheckRun::new("link", speed),
        ..CERTAIN
    },
    Check {
        id: "link.errors",
        title: "links have no errors",
        read: "the driver's counters of the link, twice, --duration apart",
        method: "the rules counters.broken_frames and counters.link_unsteady (`explain counters.broken_frames`): more than one wrong frame or symbol in \
                 100,000,000 packets, or a link that went down: warning, fewer: information; corrected bits above 1e-8 of the received bits: warning; one \
                 reading alone: unknown",
        meaning: "Each corrupted packet is a loss, and RoCE retransmits everything behind it.",
        symptom: "Retransmissions without congestion, on the flows of one link.",
        source: "Linux mlx5 counters.rst; 1e-8 is the lower end of what error correction is designed for (IEEE 802.3, clause 91)",
        severity: Severity::Warning,
        confidence: "certain; likely where the outcome says so",
        run: CheckRun::new("link", errors),
        ..CERTAIN
    },
    Check {
        id: "link.fec",
        title: "error correction is on",
        read: "ETHTOOL_GFECPARAM",
        method: "off at 25 Gbit/s for each lane and more: warning; otherwise its mode",
        meaning: "Lanes of 25 Gbit/s and more need error correction with most cables.",
        symptom: "CRC errors that rise with the traffic.",
        alternatives: "link.errors",
        source: "IEEE 802.3 clauses 91 and 108",
        severity: Severity::Warning,
        run: CheckRun::new("link", fec),
        ..CERTAIN
    },
    Check {
        id: "link.lanes",
        title: "errors by lane",
        read: "the driver's counters rx_err_lane_N_phy and rx_corrected_bits_phy",
        method: "always information: corrected errors are usual at 50 Gbit/s for each lane and above",
        meaning: "Errors that were corrected cost nothing. Symbol errors and CRC errors are judged by link.errors.",
        symptom: "None: large numbers of corrected errors mislead.",
        alternatives: "link.errors",
        source: "Linux mlx5 counters.rst",
        severity: Severity::Info,
        run: CheckRun::new("link", lanes),
        ..CERTAIN
    },
];

/// Bits in a second as people write them.
pub(crate) fn gigabits(bps: u64) -> String {
    if bps.is_multiple_of(1_000_000_000) {
        format!("{} Gbit/s", bps / 1_000_000_000)
    } else {
        format!("{} Mbit/s", bps / 1_000_000)
    }
}

/// Highest speed that an interface's port supports.
fn most_speed(facts: &Facts<'_>, interface: &str) -> Option<u64> {
    let link = facts
        .host
        .json(&format!("answers/ethtool-link.{interface}.json"))
        .ok()?;
    link.get("max_speed_mbit")?.as_u64()?.checked_mul(1_000_000)
}

fn speed(facts: &Facts<'_>) -> Vec<Outcome> {
    // A text has rates without the PCI addresses of their devices.
    let is_hardware = |device: &RdmaDevice, port: &RdmaPort| {
        device.pci.is_some() || facts.host.is_partial && port.rate_bps.is_some()
    };
    let hardware = facts
        .ports()
        .filter(|(device, port)| is_hardware(device, port) && port.is_active());
    let all: Vec<(&RdmaDevice, &RdmaPort)> = hardware.collect();
    let fastest_of = |board: &Option<String>| {
        let alike = all
            .iter()
            .filter(|(device, _)| board.is_some() && device.board == *board);
        alike.filter_map(|(_, port)| port.rate_bps).max()
    };
    each(
        &all,
        |(_, port)| port.object.clone(),
        |(device, port)| -> CheckResult {
            let path = format!("{}/rate", port.path);
            let text = facts.host.need(&path)?;
            let rate = port.rate_bps.ok_or_else(|| odd(&path, &text))?;
            // A text without GIDs has the interface of the device alone.
            let of_device = if port.interfaces.is_empty() && facts.host.is_partial && device.ports.len() == 1
            {
                facts
                    .host
                    .names(&format!("sys/class/infiniband/{}/device/net", device.name))
            } else {
                Vec::new()
            };
            let most = port
                .interfaces
                .iter()
                .chain(&of_device)
                .filter_map(|name| most_speed(facts, name))
                .max();
            if let Some(most) = most.filter(|most| *most > rate) {
                return Ok(Outcome::warning(
                    &port.object,
                    format!(
                        "{} runs at {} and its port supports {}",
                        port.object,
                        gigabits(rate),
                        gigabits(most)
                    ),
                )
                .seen(&path, text)
                .expected(gigabits(most))
                .likely());
            }
            if let Some(other) = fastest_of(&device.board).filter(|other| *other > rate) {
                return Ok(Outcome::warning(
                    &port.object,
                    format!(
                        "{} runs at {}; another adapter of this kind runs at {}",
                        port.object,
                        gigabits(rate),
                        gigabits(other)
                    ),
                )
                .seen(&path, text)
                .expected(gigabits(other)));
            }
            let said = format!("{} runs at {}", port.object, gigabits(rate));
            Ok(if most.is_some() {
                Outcome::ok(&port.object, said)
            } else {
                Outcome::info(
                    &port.object,
                    format!("{said}; the highest speed of its port is not known"),
                )
            }
            .seen(&path, text))
        },
    )
}

/// Counters of a link's errors: wrong symbols and frames first.
const MEASURED: [Counter; 5] = [
    Counter::PhySymbolErrors,
    Counter::PhyCrcErrors,
    Counter::PhyLinkDowns,
    Counter::PhyCorrectedBits,
    Counter::PhyReceivedBits,
];

/// True of findings about links, which `link.errors` shows where they are about the interface of a host's port.
pub(crate) fn is_of_link(found: &CounterFinding) -> bool {
    ["counters.broken_frames", "counters.link_unsteady"].contains(&found.id)
}

fn errors(facts: &Facts<'_>) -> Vec<Outcome> {
    let netdevs = facts.ports_of_hosts();
    each(
        netdevs,
        |netdev| netdev.name.clone(),
        |netdev| {
            let path = format!("commands/ethtool_-S_{}.txt", netdev.name);
            facts.host.need(&path)?;
            let of = |name: &str| {
                let mut all = facts.counter(name).filter(|moved| moved.object == netdev.name);
                all.next().map(|moved| (moved.value, moved.change))
            };
            if !facts.host.has(&format!("later/{path}")) {
                return Err(Unknown {
                    source: format!("ethtool -S {}", netdev.name),
                    why: "counters were read once: --duration shows what moves".to_owned(),
                });
            }
            let changes = MEASURED.map(|counter| of(counter.name()).map(|(_, change)| change));
            if changes.contains(&Some(None)) {
                return Err(Unknown {
                    source: format!("ethtool -S {}", netdev.name),
                    why: "its counters began again while it was watched".to_owned(),
                });
            }
            let [symbols, crc, downs, corrected, bits] =
                changes.map(|change| change.flatten().unwrap_or(0.0));
            let seen = format!(
                "symbol errors +{symbols}, CRC errors +{crc}, link downs +{downs}, corrected bits +{corrected} of {bits}"
            );
            let name = &netdev.name;
            let found = facts.found.iter();
            let found: Vec<_> = found
                .filter(|found| found.object == *name && is_of_link(found))
                .collect();
            let worst = found.iter().map(|found| found.severity).max();
            let texts: Vec<&str> = found.iter().map(|found| found.text.as_str()).collect();
            Ok(if let Some(severity) = worst {
                let status = Status::from_severity(severity);
                Outcome::new(status, name, format!("{name}: {}", texts.join("; ")))
            } else if bits > 0.0 && corrected / bits > 1e-8 {
                Outcome::warning(
                    name,
                    format!("{name}: {corrected} of {bits} bits had to be corrected"),
                )
                .likely()
            } else if changes[..2].iter().all(Option::is_none) {
                return Err(Unknown {
                    source: format!("ethtool -S {name}"),
                    why: "the driver shows no errors of the link".to_owned(),
                });
            } else {
                Outcome::ok(name, format!("{name}: no errors while it was watched"))
            }
            .seen(&path, seen))
        },
    )
}

/// True of lanes of so many bits in a second that need error correction with most cables (IEEE 802.3, clauses 91 and 108).
pub(crate) fn needs_fec(bps_of_lane: u64) -> bool {
    bps_of_lane >= 25_000_000_000
}

fn fec(facts: &Facts<'_>) -> Vec<Outcome> {
    let netdevs = facts.ports_of_hosts();
    each(
        netdevs,
        |netdev| netdev.name.clone(),
        |netdev| {
            let path = format!("answers/ethtool-fec.{}.json", netdev.name);
            let answer = facts.host.json(&path)?;
            let active = answer.get("active").and_then(serde_json::Value::as_str);
            let active = active.ok_or_else(|| odd(&path, &answer.to_string()))?;
            let lane = bps_of_lane(facts, &netdev.name);
            let said = format!("{}: error correction {active}", netdev.name);
            let is_off = active.eq_ignore_ascii_case("off");
            Ok(match lane {
                Some(lane) if is_off && needs_fec(lane) => Outcome::warning(
                    &netdev.name,
                    format!("{said} at {} for each lane", gigabits(lane)),
                )
                .expected("RS or BaseR")
                .fix(format!("ethtool --set-fec {} encoding auto", netdev.name)),
                None if is_off => Outcome::info(&netdev.name, format!("{said}; its lanes are not known")),
                _ => Outcome::ok(&netdev.name, said),
            }
            .seen(&path, active))
        },
    )
}

/// Bits in a second on each lane of an interface's link, at least.
fn bps_of_lane(facts: &Facts<'_>, interface: &str) -> Option<u64> {
    /// Most lanes of a port by its speed in Gbit/s (IEEE 802.3, clauses 82, 108, 109, 119 and 131): 40GBASE-R has four of 10,
    /// 100GBASE-R four of 25, and no port of 200 or 400 has more than eight.
    const LANES_BY_GIGABITS: [(u64, u64); 7] =
        [(10, 1), (25, 1), (40, 4), (50, 2), (100, 4), (200, 8), (400, 8)];
    let mut ports = facts.ports().map(|(_, port)| port);
    let port = ports.find(|port| port.interfaces.iter().any(|name| name == interface));
    // Lanes of the rate: 4 of `4X`.
    let rate = port.and_then(|port| facts.host.text(&format!("{}/rate", port.path)));
    let lanes = rate
        .as_deref()
        .and_then(|rate| rate.split_once('(')?.1.split_once('X')?.0.parse::<u64>().ok());
    let of_port = port.and_then(|port| port.rate_bps);
    let of_interface = || {
        let megabits: u64 = facts
            .host
            .number(&format!("sys/class/net/{interface}/speed"))
            .ok()?;
        megabits.checked_mul(1_000_000)
    };
    let speed = of_port.or_else(of_interface)?;
    let lanes = lanes.or_else(|| {
        let mut known = LANES_BY_GIGABITS
            .iter()
            .filter(|(gigabits, _)| gigabits * 1_000_000_000 == speed);
        known.next().map(|(_, lanes)| *lanes)
    })?;
    Some(speed / lanes.max(1))
}

fn lanes(facts: &Facts<'_>) -> Vec<Outcome> {
    let is_lane = |name: &str| name.starts_with("rx_err_lane_") || name == "rx_corrected_bits_phy";
    let shown = facts.counters.iter().filter(|moved| is_lane(&moved.name));
    let mut all: Vec<Outcome> = Vec::new();
    for moved in shown.filter(|moved| moved.value > 0.0) {
        let said = format!("{}: {} {}", moved.object, moved.name, moved.value);
        all.push(
            Outcome::info(
                &moved.object,
                format!("{said}; corrected errors are usual on fast lanes"),
            )
            .seen(&moved.path, moved.value.to_string()),
        );
    }
    all
}
