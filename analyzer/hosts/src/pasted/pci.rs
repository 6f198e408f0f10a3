//! PCI devices: `lspci -vv`, and the addresses of RDMA devices and interfaces.

use std::collections::{BTreeMap, BTreeSet};

use super::files::{PastedFiles, interface_of};
use crate::hca::is_plain_name;

/// Where the PCI Express capability is put in a configuration space that is made of a text.
const EXPRESS: usize = 0x60;

/// Adds what the outputs in a text say.
pub(super) fn read(text: &str, found: &mut PastedFiles) {
    lspci(text, found);
    bus_info(text, found);
    one_adapter(found);
    rates(found);
}

/// Joins the only RDMA device of a text with the only adapter of `lspci`: nothing else can be meant.
fn one_adapter(found: &mut PastedFiles) {
    const DEVICES: &str = "sys/class/infiniband/";
    let devices: BTreeSet<String> = found
        .files
        .keys()
        .filter_map(|path| Some(path.strip_prefix(DEVICES)?.split('/').next()?.to_owned()))
        .collect();
    let of_network = |path: &String| {
        let address = path
            .strip_prefix("sys/bus/pci/devices/")?
            .strip_suffix("/class")?;
        let class = found.files.get(path)?;
        let is_network = class.starts_with(b"0x0200") || class.starts_with(b"0x0207");
        is_network.then(|| address.to_owned())
    };
    let adapters: Vec<String> = found.files.keys().filter_map(of_network).collect();
    let (Some(device), 1, [adapter]) = (devices.first(), devices.len(), adapters.as_slice()) else {
        return;
    };
    let folder = format!("sys/bus/pci/devices/{adapter}");
    let vendor = found.files.get(&format!("{folder}/vendor"));
    if device.starts_with("mlx") && vendor.is_some_and(|vendor| vendor != b"0x15b3") {
        return;
    }
    // `ethtool -i` speaks of the adapter, and so of the device.
    for (own, name) in [
        ("uevent", "device/uevent"),
        ("fw_ver", "fw_ver"),
        ("board_id", "board_id"),
    ] {
        if let Some(text) = found.files.get(&format!("{folder}/{own}")) {
            let text = String::from_utf8_lossy(text).into_owned();
            found.add(format!("{DEVICES}{device}/{name}"), &text);
        }
    }
    let uevent = format!("PCI_SLOT_NAME={adapter}\n");
    found.add(format!("{DEVICES}{device}/device/uevent"), &uevent);
}

/// Gives the first port of a device the speed of its interface, where nothing says the port's rate: over Ethernet they are one.
fn rates(found: &mut PastedFiles) {
    let owner = |path: &String| {
        let (device, rest) = path
            .strip_prefix("sys/class/infiniband/")?
            .split_once("/device/net/")?;
        Some((device.to_owned(), rest.strip_suffix("/name")?.to_owned()))
    };
    let owners: Vec<(String, String)> = found.files.keys().filter_map(owner).collect();
    for (device, interface) in owners {
        let speed = found.files.get(&format!("sys/class/net/{interface}/speed"));
        let speed = speed.and_then(|speed| String::from_utf8_lossy(speed).trim().parse::<u64>().ok());
        let port = format!("sys/class/infiniband/{device}/ports/1");
        let is_ethernet = found.files.contains_key(&format!("{port}/state"));
        if let Some(speed) = speed.filter(|speed| is_ethernet && *speed >= 1_000) {
            found.add(format!("{port}/rate"), &format!("{} Gb/sec", speed / 1_000));
        }
    }
}

/// The address at the start of a line of `lspci`, with its domain: `0000:3b:00.0`.
fn address(word: &str) -> Option<String> {
    let (rest, function) = word.rsplit_once('.')?;
    let parts: Vec<&str> = rest.split(':').collect();
    let is_hex = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_address = parts.iter().all(is_hex) && function.len() == 1 && is_hex(&function);
    match parts.len() {
        2 if is_address => Some(format!("0000:{word}")),
        3 if is_address => Some(word.to_owned()),
        _ => None,
    }
}

/// `lspci -vv`, also with numbers (`-nn`): class, vendor, the link's speed and width, sizes of payloads and read requests.
fn lspci(text: &str, found: &mut PastedFiles) {
    let mut device: Option<String> = None;
    let mut control = 0;
    for line in text.lines() {
        if !line.starts_with([' ', '\t']) {
            let (word, rest) = line.split_once(' ').unwrap_or_default();
            device = address(word).filter(|_| rest.contains(": "));
            control = 0;
            if let Some(address) = &device {
                let folder = format!("sys/bus/pci/devices/{address}");
                let of_words = |known: &[(&str, &'static str)]| {
                    let known = known.iter().find(|(words, _)| rest.contains(words));
                    known.map(|(_, code)| *code)
                };
                let class = of_words(&[
                    ("Ethernet controller", "0x020000"),
                    ("Infiniband controller", "0x020700"),
                    ("3D controller", "0x030200"),
                    ("Processing accelerators", "0x120000"),
                ]);
                let vendor = of_words(&[
                    ("Mellanox", "0x15b3"),
                    ("[15b3:", "0x15b3"),
                    ("Broadcom", "0x14e4"),
                    ("Intel", "0x8086"),
                    ("NVIDIA", "0x10de"),
                    ("Advanced Micro Devices", "0x1002"),
                ]);
                if let Some((class, vendor)) = class.zip(vendor) {
                    found.add(format!("{folder}/class"), class);
                    found.add(format!("{folder}/vendor"), vendor);
                    if rest.contains("Virtual Function") {
                        found.add(format!("{folder}/physfn/uevent"), "");
                    }
                }
            }
            continue;
        }
        let Some(address) = &device else { continue };
        let folder = format!("sys/bus/pci/devices/{address}");
        let line = line.trim();
        for (start, speed, width) in [
            ("LnkCap:", "max_link_speed", "max_link_width"),
            ("LnkSta:", "current_link_speed", "current_link_width"),
        ] {
            let Some(fields) = line.strip_prefix(start) else {
                continue;
            };
            let word = |key: &str| fields.split_once(key)?.1.split([',', ' ']).next();
            // `16GT/s` of lspci is `16.0 GT/s PCIe` of sysfs.
            if let Some(rate) = word("Speed ").and_then(|rate| rate.strip_suffix("GT/s")) {
                found.add(format!("{folder}/{speed}"), &format!("{rate} GT/s PCIe"));
            }
            if let Some(lanes) = word("Width x") {
                found.add(format!("{folder}/{width}"), lanes);
            }
        }
        if line.starts_with("DevCap:") || line.starts_with("DevCtl:") {
            control = usize::from(line.starts_with("DevCtl:"));
        }
        let size = |key: &str| {
            line.split_once(key)?
                .1
                .split_whitespace()
                .next()?
                .parse::<u32>()
                .ok()
        };
        if control == 1
            && let Some((payload, request)) = size("MaxPayload ").zip(size("MaxReadReq "))
        {
            let space = space(payload, request);
            found.files.entry(format!("{folder}/config")).or_insert(space);
        }
    }
}

/// A configuration space with the sizes of Device Control alone (PCI Express Base 5.0, 7.5.3.4).
fn space(payload: u32, request: u32) -> Vec<u8> {
    let code = |size: u32| u16::try_from((size.max(128) / 128).ilog2().min(5)).unwrap_or_default();
    let mut space = vec![0; 256];
    let express = u8::try_from(EXPRESS).unwrap_or_default();
    let control = (code(payload) << 5 | code(request) << 12).to_le_bytes();
    for (at, byte) in [
        (0x34, express),
        (EXPRESS, 0x10),
        (EXPRESS + 8, control[0]),
        (EXPRESS + 9, control[1]),
    ] {
        if let Some(place) = space.get_mut(at) {
            *place = byte;
        }
    }
    space
}

/// Drivers of RDMA adapters, and their PCI vendors (Linux `drivers/net/ethernet`).
const DRIVERS: [(&str, &str); 5] = [
    ("mlx5_core", "0x15b3"),
    ("mlx4_en", "0x15b3"),
    ("bnxt_en", "0x14e4"),
    ("ice", "0x8086"),
    ("idpf", "0x8086"),
];

/// Firmware of an adapter as `ethtool -i` has it: `22.39.2048 (MT_0000000359)` of NVIDIA's with their board.
fn firmware(folder: &str, version: &str, found: &mut PastedFiles) {
    let (version, board) = match version.split_once(" (") {
        Some((version, board)) => (version, board.strip_suffix(')')),
        None => (version, None),
    };
    if !version.is_empty() && version != "N/A" {
        found.add(format!("{folder}/fw_ver"), version);
        if let Some(board) = board {
            found.add(format!("{folder}/board_id"), board);
        }
    }
}

/// `ethtool -i IF` (driver, firmware and PCI address of an interface), and `ls -l /sys/class/infiniband`.
fn bus_info(text: &str, found: &mut PastedFiles) {
    const DEVICES: &str = "sys/class/infiniband";
    let owner = |path: &String| {
        let (device, name) = path.strip_prefix(DEVICES)?.split_once("/device/net/")?;
        Some((
            name.strip_suffix("/name")?.to_owned(),
            device.trim_start_matches('/').to_owned(),
        ))
    };
    let owners: BTreeMap<String, String> = found.files.keys().filter_map(owner).collect();
    let mut interface = "";
    let mut driver = "";
    let mut version = "";
    for line in text.lines() {
        if let Some(named) = interface_of(line, "ethtool") {
            interface = named;
        } else if let Some(named) = line.strip_prefix("driver: ") {
            driver = named.trim();
            version = "";
        } else if let Some(shown) = line.strip_prefix("firmware-version: ") {
            version = shown.trim();
        } else if let Some(pci) = line.strip_prefix("bus-info: ").and_then(address_of) {
            let uevent = format!("DRIVER={driver}\nPCI_SLOT_NAME={pci}\n");
            if let Some(device) = owners.get(interface) {
                found.add(format!("{DEVICES}/{device}/device/uevent"), &uevent);
                firmware(&format!("{DEVICES}/{device}"), version, found);
            } else if let Some((_, vendor)) = DRIVERS.iter().find(|(known, _)| *known == driver) {
                let folder = format!("sys/bus/pci/devices/{pci}");
                found.add(format!("{folder}/class"), "0x020000");
                found.add(format!("{folder}/vendor"), vendor);
                found.add(format!("{folder}/uevent"), &uevent);
                firmware(&folder, version, found);
            }
        } else if let Some((_, path)) = line.split_once(" -> ")
            && let Some((path, device)) = path.trim().split_once("/infiniband/")
            && let Some(pci) = path.rsplit('/').next().and_then(address_of)
            && is_plain_name(device)
        {
            let uevent = format!("PCI_SLOT_NAME={pci}\n");
            found.add(format!("{DEVICES}/{device}/device/uevent"), &uevent);
        }
    }
}

fn address_of(text: &str) -> Option<String> {
    address(text.trim())
}
