//! RDMA devices and their ports: `ibv_devinfo`, `ibstat`, `show_gids`, `rdma link`, `ibdev2netdev`.

use serde_json::json;

use super::files::PastedFiles;
use crate::hca::is_plain_name;

/// Folder of RDMA devices.
const DEVICES: &str = "sys/class/infiniband";

/// Part identifiers of virtual functions of ConnectX-4 to ConnectX-6 and later (pci.ids, vendor 15b3).
const VIRTUAL_FUNCTIONS: [u32; 6] = [4_116, 4_118, 4_120, 4_122, 4_124, 4_126];

/// Adds what the outputs in a text say.
pub(super) fn read(text: &str, found: &mut PastedFiles) {
    devinfo(text, found);
    ibstat(text, found);
    // rdma-core, libibverbs/examples/devinfo.c and device_list.c.
    if text
        .lines()
        .any(|line| ["No IB devices found", "No IB devices found."].contains(&line.trim()))
    {
        found.answer("rdma-devices.json", &json!([]));
    }
    for line in text.lines() {
        gid(line, found);
        link(line, found);
    }
    for line in text.lines() {
        interface(line, found);
    }
}

/// `ibv_devinfo`, with `-v` also GIDs, width and speed (rdma-core, `libibverbs/examples/devinfo.c`).
fn devinfo(text: &str, found: &mut PastedFiles) {
    let mut device = None;
    let mut port = None;
    let mut width = None;
    let mut max_mtu = None;
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        let word = value.split_whitespace().next().unwrap_or_default();
        if key == "hca_id" {
            device = is_plain_name(word).then(|| format!("{DEVICES}/{word}"));
            port = None;
            continue;
        }
        let Some(folder) = &device else { continue };
        if key == "port" && word.parse::<u8>().is_ok() {
            port = Some(format!("{folder}/ports/{word}"));
            found.add(format!("{folder}/ports/{word}/port"), word);
            continue;
        }
        match (key, &port) {
            ("fw_ver" | "node_guid" | "board_id", None) => found.add(format!("{folder}/{key}"), word),
            ("vendor_part_id", None) if word.parse().is_ok_and(|id| VIRTUAL_FUNCTIONS.contains(&id)) => {
                found.add(format!("{folder}/device/physfn/uevent"), "");
            }
            ("state", Some(port)) => state(&format!("{port}/state"), value, found),
            ("phys_state", Some(port)) => state(&format!("{port}/phys_state"), value, found),
            ("link_layer", Some(port)) => found.add(format!("{port}/link_layer"), word),
            ("sm_lid" | "port_lid", Some(port)) => {
                let name = key.trim_start_matches("port_");
                if let Ok(lid) = word.parse::<u32>() {
                    found.add(format!("{port}/{name}"), &format!("{lid:#x}"));
                }
            }
            ("max_mtu", Some(_)) => max_mtu = word.parse::<u32>().ok(),
            ("active_mtu", Some(port)) => {
                if let Some((max, active)) = max_mtu.take().zip(word.parse::<u32>().ok()) {
                    let name = port
                        .trim_start_matches(DEVICES)
                        .trim_start_matches('/')
                        .replace("/ports/", ":");
                    found.answer(
                        &format!("path-mtu.{name}.json"),
                        &json!({ "max": max, "active": active }),
                    );
                }
            }
            ("active_width", _) => width = word.trim_end_matches('X').parse::<f64>().ok(),
            ("active_speed", Some(port)) => {
                if let Some((lanes, speed)) = width.zip(word.parse::<f64>().ok()) {
                    let kind = value.split_once('(').and_then(|(_, code)| generation(code));
                    let kind = kind.map_or_else(String::new, |kind| format!(" {kind}"));
                    let rate = format!("{:.0} Gb/sec ({lanes}X{kind})", lanes * speed);
                    found.add(format!("{port}/rate"), &rate);
                }
            }
            (key, Some(port)) if key.starts_with("GID[") => {
                let index = key.trim_start_matches("GID[").trim_end_matches(']').trim();
                let mut parts = value.split(',').map(str::trim);
                if let (Ok(index), Some(address)) = (index.parse::<u32>(), parts.next()) {
                    found.add(format!("{port}/gids/{index}"), address);
                    if let Some(kind) = parts.next() {
                        let kind = if kind == "RoCE v2" { kind } else { "IB/RoCE v1" };
                        found.add(format!("{port}/gid_attrs/types/{index}"), kind);
                    }
                }
            }
            _ => {}
        }
    }
}

/// The name of a speed's code, as sysfs has it behind the width (rdma-core, `libibverbs/examples/devinfo.c`, `speed_str`).
fn generation(code: &str) -> Option<&'static str> {
    const NAMES: [&str; 9] = ["SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR", "XDR"];
    let code: u32 = code.trim_end_matches(')').parse().ok()?;
    let place = code.is_power_of_two().then(|| code.ilog2())?;
    NAMES.get(usize::try_from(place).ok()?).copied()
}

/// `ibstat` (infiniband-diags): names in quotes, states in words.
fn ibstat(text: &str, found: &mut PastedFiles) {
    let mut folder = None;
    let mut port = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("CA '").and_then(|rest| rest.strip_suffix('\'')) {
            folder = is_plain_name(name).then(|| format!("{DEVICES}/{name}"));
            port = None;
            continue;
        }
        let Some((folder, (key, value))) = folder.as_ref().zip(line.split_once(':')) else {
            continue;
        };
        let value = value.trim();
        if let Some(number) = key
            .strip_prefix("Port ")
            .filter(|number| number.parse::<u8>().is_ok())
        {
            port = Some(format!("{folder}/ports/{number}"));
            continue;
        }
        match (key, &port) {
            ("Firmware version", None) => found.add(format!("{folder}/fw_ver"), value),
            ("State", Some(port)) => {
                let (number, name) = match value {
                    "Down" => (1, "DOWN"),
                    "Initializing" => (2, "INIT"),
                    "Armed" => (3, "ARMED"),
                    "Active" => (4, "ACTIVE"),
                    _ => continue,
                };
                found.add(format!("{port}/state"), &format!("{number}: {name}"));
            }
            ("Physical state", Some(port)) => found.add(format!("{port}/phys_state"), &format!("-: {value}")),
            ("Rate", Some(port)) => found.add(format!("{port}/rate"), &format!("{value} Gb/sec")),
            ("Base lid" | "SM lid", Some(port)) => {
                if let Ok(lid) = value.parse::<u32>() {
                    let name = if key == "SM lid" { "sm_lid" } else { "lid" };
                    found.add(format!("{port}/{name}"), &format!("{lid:#x}"));
                }
            }
            ("Link layer", Some(port)) => found.add(format!("{port}/link_layer"), value),
            _ => {}
        }
    }
}

/// `PORT_ACTIVE (4)` as sysfs has it: `4: ACTIVE`.
fn state(path: &str, value: &str, found: &mut PastedFiles) {
    let mut words = value.split_whitespace();
    let (name, number) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let number = number.trim_matches(['(', ')']);
    let name = match name.trim_start_matches("PORT_") {
        "LINK_UP" => "LinkUp",
        other => other,
    };
    found.add(path.to_owned(), &format!("{number}: {name}"));
}

/// A line of `show_gids`: device, port, index, GID, the IPv4 address if it has one, `v1` or `v2`, the interface.
fn gid(line: &str, found: &mut PastedFiles) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [device, port, index, address, .., last] = words.as_slice() else {
        return;
    };
    let is_numbered = port.parse::<u8>().is_ok() && index.parse::<u16>().is_ok();
    if !is_numbered || !is_plain_name(device) || address.parse::<std::net::Ipv6Addr>().is_err() {
        return;
    }
    let kind = words.iter().skip(4).find(|word| ["v1", "v2"].contains(word));
    let port = format!("{DEVICES}/{device}/ports/{port}");
    found.add(format!("{port}/gids/{index}"), address);
    if let Some(kind) = kind {
        let kind = if *kind == "v2" { "RoCE v2" } else { "IB/RoCE v1" };
        if kind == "RoCE v2" {
            found.add(format!("{port}/link_layer"), "Ethernet");
        }
        found.add(format!("{port}/gid_attrs/types/{index}"), kind);
    }
    if !["v1", "v2"].contains(last) && is_plain_name(last) {
        found.add(format!("{port}/gid_attrs/ndevs/{index}"), last);
        of_device(device, last, found);
    }
}

/// A line of `rdma link`: `link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1`; older ones begin with a number.
fn link(line: &str, found: &mut PastedFiles) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let value = |key: &str| {
        let at = words.iter().position(|word| *word == key)?;
        words.get(at + 1).copied()
    };
    let (Some(name), Some(state), Some(physical)) = (words.get(1), value("state"), value("physical_state"))
    else {
        return;
    };
    let Some((device, port)) = name.trim_end_matches(':').split_once('/') else {
        return;
    };
    if !is_plain_name(device) || port.parse::<u8>().is_err() {
        return;
    }
    let folder = format!("{DEVICES}/{device}/ports/{port}");
    let number = ["NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"]
        .iter()
        .position(|known| *known == state);
    let physical = if physical == "LINK_UP" { "LinkUp" } else { physical };
    found.add(
        format!("{folder}/state"),
        &format!("{}: {state}", number.unwrap_or_default()),
    );
    // The numbers of physical states are not needed: their names are.
    found.add(format!("{folder}/phys_state"), &format!("-: {physical}"));
    if let Some(interface) = value("netdev") {
        of_device(device, interface, found);
    }
}

/// A line of `ibdev2netdev`: `mlx5_0 port 1 ==> ens1 (Up)`; with `-v` the PCI address is before it.
fn interface(line: &str, found: &mut PastedFiles) {
    let Some((device, interface)) = line.split_once("==> ") else {
        return;
    };
    let words: Vec<&str> = device.split_whitespace().collect();
    let Some(interface) = interface.split_whitespace().next() else {
        return;
    };
    let (pci, name) = match words.as_slice() {
        [name, "port", _] => (None, *name),
        [pci, name, .., _] if pci.matches([':', '.']).count() >= 3 => (Some(*pci), *name),
        _ => return,
    };
    if !is_plain_name(name) {
        return;
    }
    of_device(name, interface, found);
    // The state of the interface is that of its port, where nothing else says it.
    let number = words
        .iter()
        .position(|word| *word == "port")
        .and_then(|at| words.get(at + 1))
        .or(words.last())
        .filter(|number| number.parse::<u8>().is_ok());
    let state = if line.trim_end().ends_with("(Up)") {
        Some("4: ACTIVE")
    } else if line.trim_end().ends_with("(Down)") {
        Some("1: DOWN")
    } else {
        None
    };
    if let (Some(number), Some(state)) = (number, state) {
        let port = format!("{DEVICES}/{name}/ports/{number}");
        found.add(format!("{port}/state"), state);
        if !interface.starts_with("ib") {
            found.add(format!("{port}/link_layer"), "Ethernet");
        }
    }
    if let Some(pci) = pci.filter(|pci| is_plain_name(&pci.replace([':', '.'], "_"))) {
        let uevent = format!("PCI_SLOT_NAME={pci}\n");
        found.add(format!("{DEVICES}/{name}/device/uevent"), &uevent);
    }
}

/// Says that an interface is that of a device.
fn of_device(device: &str, interface: &str, found: &mut PastedFiles) {
    if is_plain_name(interface) {
        found.add(
            format!("{DEVICES}/{device}/device/net/{interface}/name"),
            interface,
        );
    }
}
