//! Checks of RDMA devices, their modules, nodes and ports.

use crate::doctor::check::{Check, Judged, Outcome, Status, each, of_host};
use crate::doctor::facts::{BROADCOM, Facts, INTEL, MELLANOX, RdmaDevice, RdmaPort, node_of, odd};
use crate::doctor::host::Unknown;

const MODULES: &str = "proc/modules";
const NODES: &str = "answers/nodes.json";

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "rdma.devices",
        group: "rdma",
        title: "RDMA devices are there",
        read: "/sys/class/infiniband; PCI devices of vendors 15b3, 14e4 and 8086 in /sys/bus/pci/devices",
        rule: "no RDMA device: warning; critical if an NVIDIA network adapter is there without one",
        why: "Without a device of the RDMA subsystem every RDMA program fails, or falls back to TCP.",
        symptom: "perftest: 'No IB devices found'; NCCL: 'NET/IB : No device found'.",
        alternatives: "",
        source: "Linux Documentation/ABI/stable/sysfs-class-infiniband",
        run: devices,
    },
    Check {
        id: "rdma.modules",
        group: "rdma",
        title: "the drivers' RDMA modules are loaded",
        read: "/proc/modules, /sys/module",
        rule: "mlx5_core without mlx5_ib, bnxt_en without bnxt_re, ice without irdma, or no ib_uverbs: warning; no rdma_ucm: info",
        why: "The network half of a driver works without the RDMA half. ib_uverbs makes the nodes that programs open; rdma_ucm serves rdma_cm.",
        symptom: "The interface has a link and pings, and ibv_devices shows nothing; perftest: 'Unable to open the device'.",
        alternatives: "rdma.nodes",
        source: "Linux drivers/infiniband",
        run: modules,
    },
    Check {
        id: "rdma.nodes",
        group: "rdma",
        title: "programs can open the device nodes",
        read: "/dev/infiniband/uverbsN and rdma_cm: present, and opened for reading and writing by this user",
        rule: "a device without its uverbs node: critical; no right to open it: warning",
        why: "Libraries reach a device through its node alone. Containers get those nodes that their runtime was given.",
        symptom: "ibv_devices is empty in a pod, although /sys/class/infiniband has devices.",
        alternatives: "sriov.pod",
        source: "Linux Documentation/infiniband/user_verbs.rst",
        run: nodes,
    },
    Check {
        id: "rdma.netns",
        group: "rdma",
        title: "network namespaces see RDMA devices",
        read: "/sys/module/ib_core/parameters/netns_mode",
        rule: "exclusive, and no device is visible although an adapter is there: critical; exclusive otherwise: info; shared: ok",
        why: "In exclusive mode a device belongs to one network namespace, and other containers do not see it.",
        symptom: "The host has RDMA devices, and a container with the same adapter has none.",
        alternatives: "rdma.nodes",
        source: "rdma-system(8)",
        run: netns,
    },
    Check {
        id: "port.state",
        group: "port",
        title: "ports are active",
        read: "/sys/class/infiniband/DEVICE/ports/N/state",
        rule: "no active port on a device: critical where the port has an address, else warning; INIT and ARMED: warning; ACTIVE: ok",
        why: "A port that is not ACTIVE carries no RDMA traffic.",
        symptom: "Programs that use the default port fail, although the cable is in the other one.",
        alternatives: "",
        source: "IBTA 7.2.7 (port states)",
        run: state,
    },
    Check {
        id: "port.cabled",
        group: "port",
        title: "which ports are connected",
        read: "/sys/class/infiniband/DEVICE/ports/N/state of devices with several ports",
        rule: "always information: the active ports, for --ib-port",
        why: "Programs take port 1 where none is given.",
        symptom: "ib_write_bw fails with 'Port number 1 state is Down' on a device whose second port is active.",
        alternatives: "",
        source: "perftest's manual, --ib-port",
        run: cabled,
    },
    Check {
        id: "link.speed",
        group: "link",
        title: "links run at their speed",
        read: "/sys/class/infiniband/DEVICE/ports/N/rate; the interface's link modes (ETHTOOL_GLINKSETTINGS)",
        rule: "below the highest speed that the port supports, or ports of one kind of adapter at different speeds: warning",
        why: "A cable, a transceiver or a breakout can hold a link at a lower speed; one slow link slows every collective.",
        symptom: "Throughput is 10 instead of 40 Gbit/s, without any loss.",
        alternatives: "pcie.link",
        source: "Linux include/uapi/linux/ethtool.h",
        run: speed,
    },
    Check {
        id: "link.errors",
        group: "link",
        title: "links have no errors",
        read: "the driver's counters of the link, twice, --duration apart",
        rule: "symbol errors rise: critical; CRC errors or link-down events rise, or corrected bits exceed 1e-8 of the received bits: warning; one reading alone: unknown",
        why: "Each corrupted packet is a loss, and RoCE retransmits everything behind it.",
        symptom: "Retransmissions without congestion, on the flows of one link.",
        alternatives: "",
        source: "Linux mlx5 counters.rst; 1e-8 is the lower end of what error correction is designed for (IEEE 802.3, clause 91)",
        run: errors,
    },
    Check {
        id: "link.fec",
        group: "link",
        title: "error correction is on",
        read: "ETHTOOL_GFECPARAM",
        rule: "off at 25 Gbit/s for each lane and more: warning; otherwise its mode",
        why: "Lanes of 25 Gbit/s and more need error correction with most cables.",
        symptom: "CRC errors that rise with the traffic.",
        alternatives: "link.errors",
        source: "IEEE 802.3 clauses 91 and 108",
        run: fec,
    },
    Check {
        id: "link.lanes",
        group: "link",
        title: "errors by lane",
        read: "the driver's counters rx_err_lane_N_phy and rx_corrected_bits_phy",
        rule: "always information: corrected errors are usual at 50 Gbit/s for each lane and above",
        why: "Errors that were corrected cost nothing. Symbol errors and CRC errors are judged by link.errors.",
        symptom: "None: large numbers of corrected errors mislead.",
        alternatives: "link.errors",
        source: "Linux mlx5 counters.rst",
        run: lanes,
    },
];

/// PCI addresses of adapters that can do RDMA.
fn capable<'a>(facts: &'a Facts<'_>) -> Vec<&'a str> {
    // Class 0x02: network controllers. All of NVIDIA's later than 2011 can do RDMA; of Broadcom and Intel only some can.
    let network = facts.pci.iter().filter(|device| device.class >> 16 == 2);
    let capable = network.filter(|device| {
        device.vendor == MELLANOX
            || (device.vendor == BROADCOM && facts.has_module("bnxt_re"))
            || (device.vendor == INTEL && facts.has_module("irdma"))
    });
    capable.map(|device| device.address.as_str()).collect()
}

/// True of a host that has no RDMA device and no adapter for one: settings of processes that would use RDMA harm nobody there.
pub(crate) fn is_without_rdma(facts: &Facts<'_>) -> bool {
    let is_absent = facts
        .host
        .need(DEVICES)
        .is_err_and(|unknown| unknown.why == "not there");
    facts.devices.is_empty() && is_absent && capable(facts).is_empty()
}

/// The folder of RDMA devices.
const DEVICES: &str = "sys/class/infiniband";

fn devices(facts: &Facts<'_>) -> Vec<Outcome> {
    let count = facts.devices.len();
    let folder = DEVICES;
    if count > 0 {
        let names: Vec<&str> = facts.devices.iter().map(|device| device.name.as_str()).collect();
        let said = format!("{count} RDMA devices: {}", names.join(", "));
        let mut all = vec![Outcome::ok("host", said).seen(folder, names.join(" "))];
        let odd = facts.host.names(folder).len() - count;
        if odd > 0 {
            let why = format!("names of {odd} devices are no plain words: they were left out");
            let source = format!("/{folder}");
            all.push(Outcome::unknown("host", Unknown { source, why }));
        }
        return all;
    }
    if let Err(unknown) = facts.host.need(folder)
        && unknown.why != "not there"
    {
        return vec![Outcome::unknown("host", unknown)];
    }
    let capable = capable(facts);
    if capable.is_empty() {
        return vec![
            Outcome::warning(
                "host",
                "there is no RDMA device, and no adapter that is known to be one",
            )
            .seen(folder, "empty or not there")
            .expected("a device for each adapter; Soft-RoCE makes one of any interface")
            .fix("rdma link add rxe0 type rxe netdev INTERFACE")
            .advice(
                "needs root, the package iproute2 and the module rdma_rxe; cloud kernels have it in a package of further modules (Ubuntu: linux-modules-extra)",
            ),
        ];
    }
    let summary = format!(
        "there is no RDMA device, although RDMA adapters are here: {}",
        capable.join(", ")
    );
    vec![
        Outcome::critical("host", summary)
            .seen(folder, "empty or not there")
            .expected("a device for each adapter")
            .fix("modprobe mlx5_ib"),
    ]
}

fn modules(facts: &Facts<'_>) -> Vec<Outcome> {
    const PAIRS: [(&str, &str); 4] = [
        ("mlx5_core", "mlx5_ib"),
        ("mlx4_core", "mlx4_ib"),
        ("bnxt_en", "bnxt_re"),
        ("ice", "irdma"),
    ];
    let here: Vec<&(&str, &str)> = PAIRS
        .iter()
        .filter(|(network, _)| facts.has_module(network))
        .collect();
    let loaded = match facts.host.need(MODULES) {
        Ok(text) => text,
        // A kernel without modules has no such file.
        Err(unknown) if unknown.why != "not there" || !here.is_empty() || !facts.devices.is_empty() => {
            return vec![Outcome::unknown("host", unknown)];
        }
        Err(_) => return Vec::new(),
    };
    if here.is_empty() && facts.devices.is_empty() {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (network, rdma) in here {
        if !facts.has_module(rdma) {
            let status = if *network == "ice" && !facts.devices.is_empty() {
                Status::Info
            } else {
                Status::Warning
            };
            all.push(
                Outcome::new(status, *network, format!("{network} is loaded without {rdma}"))
                    .seen(MODULES, format!("{network}, no {rdma}"))
                    .fix(format!("modprobe {rdma}")),
            );
        }
    }
    for (module, is_needed) in [("ib_uverbs", true), ("rdma_ucm", false)] {
        if !facts.has_module(module) {
            let status = if is_needed { Status::Warning } else { Status::Info };
            all.push(
                Outcome::new(status, module, format!("{module} is not loaded"))
                    .seen(MODULES, format!("no {module}"))
                    .fix(format!("modprobe {module}")),
            );
        }
    }
    if all.is_empty() {
        let count = loaded.lines().count();
        all.push(
            Outcome::ok("host", "all RDMA modules of the drivers are loaded")
                .seen(MODULES, format!("{count} modules")),
        );
    }
    all
}

/// The answer of opening a node: `None` when it is not there.
pub(crate) fn opened(facts: &Facts<'_>, node: &str) -> Result<Option<String>, Unknown> {
    let path = format!("dev/infiniband/{node}");
    if !facts.host.has(&path) {
        return Ok(None);
    }
    let answers = facts.host.json(NODES)?;
    let answer = answers.get(&path).and_then(serde_json::Value::as_str);
    answer.map(|answer| Some(answer.to_owned())).ok_or(Unknown {
        source: format!("open(/{path})"),
        why: "it was not tried".to_owned(),
    })
}

fn nodes(facts: &Facts<'_>) -> Vec<Outcome> {
    let mut all = each(
        &facts.devices,
        |device| device.name.clone(),
        |device| {
            let Some(node) = node_of(facts.host, &device.name) else {
                return Ok(
                    Outcome::critical(&device.name, format!("{} has no uverbs device", device.name))
                        .seen("sys/class/infiniband_verbs", "none of this device")
                        .fix("modprobe ib_uverbs"),
                );
            };
            let path = format!("dev/infiniband/{node}");
            Ok(match opened(facts, &node)?.as_deref() {
                None => Outcome::critical(
                    &device.name,
                    format!(
                        "{} has no node /{path} here: programs cannot open it",
                        device.name
                    ),
                )
                .seen(&path, "not there")
                .expected("the node is there; in a container, the runtime has to be given it")
                .advice("docker run --device=/dev/infiniband ..., or the RDMA device plugin of Kubernetes"),
                Some("ok") => {
                    Outcome::ok(&device.name, format!("/{path} can be opened")).seen(&path, "opened")
                }
                Some(why) => Outcome::warning(
                    &device.name,
                    format!("/{path} cannot be opened by this user: {why}"),
                )
                .seen(&path, why)
                .expected("every user may open it (mode 0666, rdma-core's udev rules)")
                .fix(format!("chmod 0666 /{path}")),
            })
        },
    );
    if !facts.devices.is_empty() {
        match opened(facts, "rdma_cm") {
            Ok(Some(answer)) if answer == "ok" => {}
            Ok(Some(why)) => all.push(
                Outcome::warning(
                    "rdma_cm",
                    format!("/dev/infiniband/rdma_cm cannot be opened: {why}"),
                )
                .seen("dev/infiniband/rdma_cm", why),
            ),
            Ok(None) => all.push(
                Outcome::info(
                    "rdma_cm",
                    "programs that connect by rdma_cm cannot: no /dev/infiniband/rdma_cm",
                )
                .seen("dev/infiniband/rdma_cm", "not there")
                .fix("modprobe rdma_ucm"),
            ),
            Err(unknown) => all.push(Outcome::unknown("rdma_cm", unknown)),
        }
    }
    all
}

fn netns(facts: &Facts<'_>) -> Vec<Outcome> {
    const MODE: &str = "sys/module/ib_core/parameters/netns_mode";
    if !facts.host.has("sys/module/ib_core") && facts.devices.is_empty() {
        return Vec::new();
    }
    let is_capable = facts
        .pci
        .iter()
        .any(|device| device.class >> 16 == 2 && device.vendor == MELLANOX);
    of_host(|| {
        let mode = facts.host.need(MODE)?;
        Ok(match mode.as_str() {
            "Y" => Outcome::ok("host", "all network namespaces share the RDMA devices").seen(MODE, mode),
            "N" if facts.devices.is_empty() && is_capable => Outcome::critical(
                "host",
                "devices belong to one namespace each, and none belongs to this one",
            )
            .seen(MODE, mode)
            .fix("rdma dev set DEVICE netns NAME")
            .likely(),
            "N" => Outcome::info(
                "host",
                "RDMA devices belong to one network namespace each (exclusive)",
            )
            .seen(MODE, mode),
            _ => return Err(odd(MODE, &mode)),
        })
    })
}

fn state(facts: &Facts<'_>) -> Vec<Outcome> {
    let ports = facts.ports().collect::<Vec<_>>();
    each(
        ports,
        |(_, port)| port.object.clone(),
        |(device, port)| {
            let path = format!("{}/state", port.path);
            let text = facts.host.need(&path)?;
            let state = port.state.as_deref().ok_or_else(|| odd(&path, &text))?;
            let summary = format!("{} is {state}", port.object);
            let others = device.ports.iter().any(RdmaPort::is_active);
            let outcome = match state {
                "ACTIVE" => Outcome::ok(&port.object, summary),
                "DOWN" if others => Outcome::info(&port.object, format!("{summary}; another port is active")),
                "DOWN" if !port.gids.is_empty() => Outcome::critical(
                    &port.object,
                    format!("{summary}, and {} has no active port", device.name),
                ),
                _ => Outcome::warning(&port.object, summary),
            };
            let interface = port.interfaces.first().map_or("INTERFACE", String::as_str);
            Ok(if outcome.status == Status::Ok {
                outcome.seen(&path, text)
            } else {
                outcome
                    .seen(&path, text)
                    .expected("ACTIVE")
                    .fix(format!("ip link set {interface} up"))
            })
        },
    )
}

fn cabled(facts: &Facts<'_>) -> Vec<Outcome> {
    let several = facts.devices.iter().filter(|device| device.ports.len() > 1);
    each(
        several,
        |device| device.name.clone(),
        |device| {
            let active: Vec<String> = device
                .ports
                .iter()
                .filter(|port| port.is_active())
                .map(|port| port.number.to_string())
                .collect();
            let path = format!("{}/ports", device.path);
            Ok(match active.first() {
                None => Outcome::info(&device.name, format!("no port of {} is active", device.name)),
                Some(first) => Outcome::info(
                    &device.name,
                    format!(
                        "active ports of {}: {}; use --ib-port {first}",
                        device.name,
                        active.join(", ")
                    ),
                ),
            }
            .seen(&path, format!("active: {}", active.join(" "))))
        },
    )
}

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
        |(device, port)| -> Judged {
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
