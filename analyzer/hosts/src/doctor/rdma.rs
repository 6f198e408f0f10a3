//! Checks of RDMA devices, their modules, nodes and ports.

use roce_model::Severity;

use crate::doctor::check::{CERTAIN, Check, CheckRun, Outcome, Status, each, host_outcome};
use crate::doctor::facts::{BROADCOM, Facts, INTEL, MELLANOX, RdmaPort, node_of, odd};
use crate::doctor::host::Unknown;

const MODULES: &str = "proc/modules";
const NODES: &str = "answers/nodes.json";
const VERBS: &str = "sys/class/infiniband_verbs";

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "rdma.devices",
        title: "RDMA devices are there",
        read: "/sys/class/infiniband; PCI devices of vendors 15b3, 14e4 and 8086 in /sys/bus/pci/devices",
        method: "no RDMA device: warning; critical if an NVIDIA network adapter is there without one",
        meaning: "Without a device of the RDMA subsystem every RDMA program fails, or falls back to TCP.",
        symptom: "perftest: 'No IB devices found'; NCCL: 'NET/IB : No device found'.",
        source: "Linux Documentation/ABI/stable/sysfs-class-infiniband",
        severity: Severity::Critical,
        run: CheckRun::new("rdma", devices),
        ..CERTAIN
    },
    Check {
        id: "rdma.modules",
        title: "the drivers' RDMA modules are loaded",
        read: "/proc/modules, /sys/module",
        method: "mlx5_core without mlx5_ib, bnxt_en without bnxt_re, ice without irdma, or no ib_uverbs: warning; no rdma_ucm: info",
        meaning: "The network half of a driver works without the RDMA half. ib_uverbs makes the nodes that programs open; rdma_ucm serves rdma_cm.",
        symptom: "The interface has a link and pings, and ibv_devices shows nothing; perftest: 'Unable to open the device'.",
        alternatives: "rdma.nodes",
        source: "Linux drivers/infiniband",
        severity: Severity::Warning,
        run: CheckRun::new("rdma", modules),
        ..CERTAIN
    },
    Check {
        id: "rdma.nodes",
        title: "programs can open the device nodes",
        read: "/dev/infiniband/uverbsN and rdma_cm: present, and opened for reading and writing by this user",
        method: "a device without its uverbs node: critical; no right to open it: warning",
        meaning: "Libraries reach a device through its node alone. Containers get those nodes that their runtime was given.",
        symptom: "ibv_devices is empty in a pod, although /sys/class/infiniband has devices.",
        alternatives: "sriov.pod",
        source: "Linux Documentation/infiniband/user_verbs.rst",
        severity: Severity::Critical,
        run: CheckRun::new("rdma", nodes),
        ..CERTAIN
    },
    Check {
        id: "rdma.netns",
        title: "network namespaces see RDMA devices",
        read: "/sys/module/ib_core/parameters/netns_mode",
        method: "exclusive, and no device is visible although an adapter is there: critical; exclusive otherwise: info; shared: ok",
        meaning: "In exclusive mode a device belongs to one network namespace, and other containers do not see it.",
        symptom: "The host has RDMA devices, and a container with the same adapter has none.",
        alternatives: "rdma.nodes",
        source: "rdma-system(8)",
        severity: Severity::Critical,
        confidence: "certain; likely where the outcome says so",
        run: CheckRun::new("rdma", netns),
        ..CERTAIN
    },
    Check {
        id: "port.state",
        title: "ports are active",
        read: "/sys/class/infiniband/DEVICE/ports/N/state",
        method: "no active port on a device: critical where the port has an address, else warning; INIT and ARMED: warning; ACTIVE: ok",
        meaning: "A port that is not ACTIVE carries no RDMA traffic.",
        symptom: "Programs that use the default port fail, although the cable is in the other one.",
        source: "IBTA 7.2.7 (port states)",
        severity: Severity::Critical,
        run: CheckRun::new("port", state),
        ..CERTAIN
    },
    Check {
        id: "port.cabled",
        title: "which ports are connected",
        read: "/sys/class/infiniband/DEVICE/ports/N/state of devices with several ports",
        method: "always information: the active ports, for --ib-port",
        meaning: "Programs take port 1 where none is given.",
        symptom: "ib_write_bw fails with 'Port number 1 state is Down' on a device whose second port is active.",
        source: "perftest's manual, --ib-port",
        severity: Severity::Info,
        run: CheckRun::new("port", cabled),
        ..CERTAIN
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
/// A text that names none says nothing about that.
pub(crate) fn is_without_rdma(facts: &Facts<'_>) -> bool {
    if facts.host.is_partial {
        return false;
    }
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
    // `No IB devices found` of a text.
    let says_none = facts.host.is_partial && facts.host.has("answers/rdma-devices.json");
    if says_none && facts.devices.iter().all(|device| device.ports.is_empty()) {
        let said = "programs find no RDMA device";
        return vec![
            Outcome::critical("host", said)
                .seen("answers/rdma-devices.json", "No IB devices found")
                .expected("a device for each adapter")
                .advice("look for the adapter with lspci, its driver, and the devices of the container"),
        ];
    }
    if facts.host.is_partial && facts.devices.iter().all(|device| device.ports.is_empty()) {
        let why = "the text names no RDMA device".to_owned();
        let source = format!("/{folder}");
        return vec![Outcome::unknown("host", Unknown { source, why })];
    }
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
        // A recording without /dev says nothing about nodes.
        if facts.host.is_recorded && !facts.host.has("dev") && !facts.host.has(NODES) {
            return Err(Unknown {
                source: format!("/{path}"),
                why: "the recording has no /dev".to_owned(),
            });
        }
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
                // Neither the devices nor the modules were read: nobody knows.
                if !facts.host.has(VERBS) && facts.modules().is_none() {
                    return Err(facts.host.need(VERBS).err().unwrap_or_else(|| odd(VERBS, "")));
                }
                return Ok(
                    Outcome::critical(&device.name, format!("{} has no uverbs device", device.name))
                        .seen(VERBS, "none of this device")
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
    host_outcome(|| {
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
            if let Some(port) = device.ports.iter().find(|port| port.state.is_none())
                && active.is_empty()
            {
                let state = format!("{}/state", port.path);
                let text = facts.host.need(&state)?;
                return Err(odd(&state, &text));
            }
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
