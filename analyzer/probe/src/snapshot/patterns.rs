//! Files that checks read, as patterns: `*` is any name, `a|b` is either of two.

use std::io;

use roce_files::FileTree;
use roce_hosts::doctor::{Host, LINKS};

/// Bytes of one file.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Bytes of /proc/interrupts, which has a column for each processor.
const MAX_INTERRUPTS_BYTES: u64 = 16 << 20;
/// Bytes of a configuration space.
const SPACE_BYTES: u64 = 4096;

/// Files of every snapshot. Addresses of ports and files of PCI devices are read after these.
const PATTERNS: &[&str] = &[
    "sys/class/infiniband/*/node_guid|fw_ver|board_id|hca_type|parent",
    "sys/class/infiniband/*/device/uevent|numa_node",
    "sys/class/infiniband/*/device/physfn/uevent",
    "sys/class/infiniband/*/device/net/*/mtu",
    "sys/class/infiniband/*/ports/*/state|phys_state|rate|link_layer|lid|sm_lid",
    "sys/class/infiniband/*/ports/*/gids/*",
    "sys/class/infiniband/*/tc/*/traffic_class",
    "sys/class/infiniband_verbs/uverbs*/ibdev",
    "sys/class/net/*/mtu|operstate|speed|uevent",
    "sys/class/net/*/ecn/*/enable/*",
    "sys/class/net/*/ecn/*/cnp_dscp|cnp_802p_prio",
    "sys/bus/pci/devices/*/vendor|class|numa_node",
    "sys/bus/auxiliary/devices/*/infiniband/*/fw_ver",
    "sys/bus/auxiliary/devices/*/mlx5_core.rdma.*/infiniband/*/fw_ver",
    "sys/module/ib_core/parameters/netns_mode",
    "sys/module/mlx5_core|mlx5_ib|mlx4_core|mlx4_ib|bnxt_en|bnxt_re|ice|irdma|ib_uverbs|rdma_ucm|rdma_rxe/initstate",
    "sys/kernel/config/rdma_cm/*/ports/*/default_roce_mode|default_roce_tos",
    "sys/kernel/mm/transparent_hugepage/enabled",
    "sys/fs/cgroup/rdma.max|rdma.current",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor|scaling_driver",
    "sys/devices/system/node/node*/cpulist",
    "proc/modules|cmdline|meminfo|cpuinfo",
    "proc/1/cgroup",
    "proc/driver/nvidia/version",
    "proc/sys/net/ipv4/conf/*/arp_ignore|arp_announce|rp_filter",
    "etc/nccl.conf",
];

/// Files that only a recording has.
const RECORDED: &[&str] = &["home/.nccl.conf", "answers/*", "commands/*"];

/// Counters, which are read a second time after a while.
const COUNTERS: &[&str] = &[
    "proc/uptime|stat",
    "proc/sys/kernel/random/boot_id",
    "sys/class/infiniband/*/hw_counters/*",
    "sys/class/infiniband/*/ports/*/counters|hw_counters/*",
];

/// Files of a network adapter's PCI device; `{}` is its address.
const ADAPTER: &[&str] = &[
    "sys/bus/pci/devices/{}/uevent|current_link_width|max_link_width|current_link_speed|max_link_speed|sriov_numvfs|sriov_totalvfs",
    "sys/bus/pci/devices/{}/iommu_group/type|reserved_regions",
    "sys/bus/pci/devices/{}/net/*/mtu",
    "sys/bus/pci/devices/{}/infiniband/*/fw_ver",
    "sys/bus/pci/devices/{}/virtfn*/uevent",
];

/// The files of this process, by the names of that whose rights count.
const PROCESS: [&str; 2] = ["limits", "status"];

/// Reads the files of a pattern.
fn add(tree: &FileTree, host: &mut Host, pattern: &str, into: &str) {
    let parts: Vec<&str> = pattern.split('/').collect();
    expand(tree, host, &parts, &mut String::new(), into);
}

fn expand(tree: &FileTree, host: &mut Host, parts: &[&str], at: &mut String, into: &str) {
    let Some((part, rest)) = parts.split_first() else {
        read(tree, host, at, into);
        return;
    };
    let names: Vec<String> = if let Some((before, _)) = part.split_once('*') {
        let Ok(names) = tree.names(at) else { return };
        let fitting = names.into_iter().filter(|name| name.starts_with(before));
        fitting.collect()
    } else {
        part.split('|').map(str::to_owned).collect()
    };
    let length = at.len();
    for name in names {
        if !at.is_empty() {
            at.push('/');
        }
        at.push_str(&name);
        expand(tree, host, rest, at, into);
        at.truncate(length);
    }
}

/// Reads a file. What is not there is absent; what cannot be read has its reason.
fn read(tree: &FileTree, host: &mut Host, path: &str, into: &str) {
    // The last lines of /proc/stat have a number for each interrupt.
    let limit = if matches!(path, "proc/interrupts" | "proc/stat") {
        MAX_INTERRUPTS_BYTES
    } else if path.ends_with("/config") {
        SPACE_BYTES
    } else {
        MAX_FILE_BYTES
    };
    let stored = format!("{into}{}", path.strip_prefix("later/").unwrap_or(path));
    match tree.read(path, limit) {
        Ok(bytes) => host.insert(&stored, reduced(path, bytes)),
        Err(error) if is_absent(&error) => {}
        Err(error) => host.insert_unreadable(&stored, &reason(&error)),
    }
}

/// True of errors that say that there is no such file.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory
    ) || error.to_string() == "not a regular file"
}

/// The reason in words, with the right that would help.
fn reason(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::PermissionDenied {
        return "permission denied; root may read it".to_owned();
    }
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// The lines of a file that checks read: a recording has no more than these.
fn reduced(path: &str, bytes: Vec<u8>) -> Vec<u8> {
    let keep: fn(&str) -> bool = match path {
        "proc/interrupts" => |line| line.contains("_comp"),
        "proc/stat" => |line| line.starts_with("btime "),
        "proc/cpuinfo" => |line| line.starts_with("flags") || line.starts_with("model name"),
        "proc/meminfo" => |line| line.starts_with("HugePages") || line.starts_with("Hugepagesize"),
        "proc/cmdline" => return kernel_arguments(&bytes),
        _ if path.ends_with("/node_guid") => return masked(bytes),
        _ if path.contains("/gids/") => return without_interface_id(bytes),
        _ if path.ends_with("/status") && path.starts_with("proc/") => {
            |line| line.starts_with("Cap") || line.starts_with("Cpus_allowed_list")
        }
        _ => return bytes,
    };
    let text = String::from_utf8_lossy(&bytes);
    let mut kept = String::new();
    let mut seen = "";
    for line in text.lines().filter(|line| keep(line)) {
        // Each processor has its lines; they are the same.
        if path == "proc/cpuinfo" && kept.contains(line) || line == seen {
            continue;
        }
        seen = line;
        kept.push_str(line);
        kept.push('\n');
    }
    kept.into_bytes()
}

/// A GUID without its number: that it is not zero is all that matters.
fn masked(bytes: Vec<u8>) -> Vec<u8> {
    let is_guid = bytes
        .iter()
        .all(|byte| byte.is_ascii_hexdigit() || b":\n".contains(byte));
    let is_zero = bytes.iter().all(|byte| b"0:\n".contains(byte));
    if is_guid && !is_zero {
        b"set\n".to_vec()
    } else {
        bytes
    }
}

/// A link-local address without the link address that is in it.
fn without_interface_id(bytes: Vec<u8>) -> Vec<u8> {
    if bytes.starts_with(b"fe80:") {
        return b"fe80:0000:0000:0000:0000:0000:0000:0001\n".to_vec();
    }
    bytes
}

/// Arguments of the kernel that concern the IOMMU and PCI: others may be secrets.
fn kernel_arguments(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let wanted = text
        .split_whitespace()
        .filter(|word| word.contains("iommu") || word.starts_with("pci"));
    let words: Vec<&str> = wanted.collect();
    words.join(" ").into_bytes()
}

/// Reads everything that does not depend on what was found.
pub(super) fn add_all(tree: &FileTree, host: &mut Host, process: Option<u32>) {
    for pattern in PATTERNS.iter().chain(COUNTERS) {
        add(tree, host, pattern, "");
    }
    let recorded = if host.is_recorded { RECORDED } else { &[] };
    for pattern in recorded {
        add(tree, host, pattern, "");
    }
    let process = process.map_or_else(|| "self".to_owned(), |process| process.to_string());
    for name in PROCESS {
        let path = format!("proc/{process}/{name}");
        match tree.read(&path, MAX_FILE_BYTES) {
            Ok(bytes) => host.insert(&format!("proc/self/{name}"), reduced(&path, bytes)),
            Err(error) => host.insert_unreadable(&format!("proc/self/{name}"), &reason(&error)),
        }
    }
    // Folders that exist tell as much as their files.
    for path in [".dockerenv", "run/.containerenv"] {
        if tree.has(path) {
            host.insert(path, Vec::new());
        }
    }
    for name in tree.names("dev/infiniband").unwrap_or_default() {
        host.insert(&format!("dev/infiniband/{name}"), Vec::new());
    }
    for name in tree.names("sys/class/net").unwrap_or_default() {
        let folder = format!("sys/class/net/{name}");
        for lower in tree.names(&folder).unwrap_or_default() {
            if lower.starts_with("lower_") {
                host.insert(&format!("{folder}/{lower}/present"), Vec::new());
            }
        }
    }
    if host.has("sys/class/infiniband") {
        add(tree, host, "proc/interrupts", "");
        let text = host.text("proc/interrupts").unwrap_or_default();
        let numbers = text
            .lines()
            .filter_map(|line| line.split_once(':')?.0.trim().parse::<u32>().ok());
        for number in numbers {
            add(tree, host, &format!("proc/irq/{number}/smp_affinity_list"), "");
        }
    }
}

/// Reads types and interfaces of the addresses that are in use, and forgets the others: an adapter has hundreds of empty ones.
pub(super) fn add_gids(tree: &FileTree, host: &mut Host) {
    const EMPTY: &str = "0000:0000:0000:0000:0000:0000:0000:0000";
    let mut used = Host::new(&host.name, host.is_recorded);
    let mut more = Vec::new();
    for (path, bytes) in host.files() {
        if let Some((port, index)) = path.split_once("/gids/") {
            if String::from_utf8_lossy(bytes).trim() == EMPTY {
                continue;
            }
            more.push(format!("{port}/gid_attrs/types|ndevs/{index}"));
        }
        used.insert(path, bytes.to_vec());
    }
    for (path, why) in host.unreadable() {
        used.insert_unreadable(path, why);
    }
    for pattern in more {
        add(tree, &mut used, &pattern, "");
    }
    *host = used;
}

/// Reads what belongs to network adapters' PCI devices, and the configuration spaces of adapters, GPUs and the bridges above them.
pub(super) fn add_pci(tree: &FileTree, host: &mut Host) {
    const DEVICES: &str = "sys/bus/pci/devices";
    let class = |host: &Host, address: &str| -> u32 {
        let text = host
            .text(&format!("{DEVICES}/{address}/class"))
            .unwrap_or_default();
        u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or(0) >> 16
    };
    let mut spaces: Vec<String> = Vec::new();
    for address in host.names(DEVICES) {
        // Network controllers (0x02), displays (0x03), processing accelerators (0x12).
        let class = class(host, &address);
        if class == 0x02 {
            for pattern in ADAPTER {
                add(tree, host, &pattern.replace("{}", &address), "");
            }
        }
        if [0x02, 0x03, 0x12].contains(&class) {
            let target = tree.link(DEVICES, &address).unwrap_or_default();
            let above = target.split('/').filter(|part| part.matches(':').count() == 2);
            spaces.extend(above.map(str::to_owned));
            spaces.push(address);
        }
    }
    if let Ok(links) = host.json(LINKS) {
        // A recording without links has their targets in a text.
        for target in links.as_object().into_iter().flat_map(|all| all.values()) {
            let parts = target.as_str().unwrap_or_default().split('/');
            spaces.extend(
                parts
                    .filter(|part| part.matches(':').count() == 2)
                    .map(str::to_owned),
            );
        }
    }
    spaces.sort();
    spaces.dedup();
    for address in spaces {
        add(tree, host, &format!("{DEVICES}/{address}/config"), "");
    }
}

/// Reads the shape of the PCI tree from the links of its devices.
pub(super) fn add_links(tree: &FileTree, host: &mut Host) {
    const DEVICES: &str = "sys/bus/pci/devices";
    if host.has(LINKS) {
        return;
    }
    let mut links = serde_json::Map::new();
    for address in host.names(DEVICES) {
        if let Some(target) = tree.link(DEVICES, &address) {
            links.insert(format!("{DEVICES}/{address}"), target.into());
        }
    }
    if !links.is_empty() {
        let text = serde_json::Value::Object(links).to_string();
        host.insert(LINKS, text.into_bytes());
    }
}

/// Reads the counters below `from`.
pub(super) fn add_later(tree: &FileTree, host: &mut Host, from: &str) {
    for pattern in COUNTERS
        .iter()
        .chain(RECORDED.last().filter(|_| !from.is_empty()))
    {
        add(tree, host, &format!("{from}{pattern}"), from);
    }
}
