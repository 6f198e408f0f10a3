//! Checks of links: speed, errors, FEC, lanes.

use roce_model::Severity;

use crate::doctor::check::{CERTAIN, Check, CheckResult, CheckRun, Outcome, each};
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
        method: "symbol errors rise: critical; CRC errors or link-down events rise, or corrected bits exceed 1e-8 of the received bits: warning; one reading alone: unknown",
        meaning: "Each corrupted packet is a loss, and RoCE retransmits everything behind it.",
        symptom: "Retransmissions without congestion, on the flows of one link.",
        source: "Linux mlx5 counters.rst; 1e-8 is the lower end of what error correction is designed for (IEEE 802.3, clause 91)",
        severity: Severity::Critical,
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
    let hardware = facts
        .ports()
        .filter(|(device, port)| device.pci.is_some() && port.is_active());
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
            let most = port
                .interfaces
                .iter()
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
            let rise = |name| of(name).and_then(|(_, change)| change).unwrap_or(0.0);
            let (symbols, crc, downs) = (
                rise("phy_symbol_errors"),
                rise("phy_crc_errors"),
                rise("phy_link_downs"),
            );
            let (corrected, bits) = (rise("phy_corrected_bits"), rise("phy_received_bits"));
            let seen = format!(
                "symbol errors +{symbols}, CRC errors +{crc}, link downs +{downs}, corrected bits +{corrected} of {bits}"
            );
            let name = &netdev.name;
            Ok(if symbols > 0.0 {
                Outcome::critical(name, format!("{name}: {symbols} symbol errors while it was watched"))
            } else if crc > 0.0 || downs > 0.0 {
                Outcome::warning(
                    name,
                    format!("{name}: {crc} frames with a wrong check sequence, {downs} times down while it was watched"),
                )
            } else if bits > 0.0 && corrected / bits > 1e-8 {
                Outcome::warning(
                    name,
                    format!("{name}: {corrected} of {bits} bits had to be corrected"),
                )
                .likely()
            } else if of("phy_crc_errors").is_none() && of("phy_symbol_errors").is_none() {
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
            let ports = facts.ports().map(|(_, port)| port);
            let port = ports
                .into_iter()
                .find(|port| port.interfaces.contains(&netdev.name));
            // Lanes of the rate: 4 of `4X`.
            let rate = port.and_then(|port| facts.host.text(&format!("{}/rate", port.path)));
            let lanes = rate
                .as_deref()
                .and_then(|rate| rate.split_once('(')?.1.split_once('X')?.0.parse::<u64>().ok());
            let speed = port.and_then(|port| port.rate_bps);
            let lane = speed.zip(lanes).map(|(speed, lanes)| speed / lanes.max(1));
            let said = format!("{}: error correction {active}", netdev.name);
            Ok(match (active, lane) {
                ("off", Some(lane)) if lane >= 25_000_000_000 => Outcome::warning(
                    &netdev.name,
                    format!("{said} at {} for each lane", gigabits(lane)),
                )
                .expected("RS or BaseR")
                .fix(format!("ethtool --set-fec {} encoding auto", netdev.name)),
                ("off", None) => Outcome::info(&netdev.name, format!("{said}; its lanes are not known")),
                _ => Outcome::ok(&netdev.name, said),
            }
            .seen(&path, active))
        },
    )
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
