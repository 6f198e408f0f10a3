//! RDMA devices that a container was given, and the variables that select exactly these.
//!
//! The SR-IOV network device plugin of Kubernetes states them in `PCIDEVICE_*` variables (k8snetworkplumbingwg/sriov-network-device-plugin,
//! README). Its shared sibling states nothing: then the devices are those that can be opened and have their interface here.

use std::net::IpAddr;

use serde_json::Value;

use crate::doctor::facts::{PortGid, RdmaDevice, RdmaPort, devices, node_of};
use crate::doctor::gpu::nearest_gpu;
use crate::doctor::host::{Host, Unknown};

/// Devices that are looked at, at most.
const MAX_DEVICES: usize = 1024;

/// A device that the environment states.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GivenDevice {
    /// The variable.
    pub variable: String,
    /// The resource's name, as far as the variable tells it: `openshift.io/eno5np0rdma`.
    pub resource: String,
    /// PCI address, or the name of a scalable function.
    pub address: String,
    /// The RDMA device.
    pub device: Option<String>,
    /// The node in /dev/infiniband.
    pub node: Option<String>,
}

/// All devices that the environment states.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GivenDevices {
    /// RDMA devices, in order of their addresses.
    pub given: Vec<GivenDevice>,
    /// True if there is a `PCIDEVICE_*` variable at all.
    pub is_stated: bool,
    /// Remarks.
    pub notes: Vec<String>,
}

/// True of a name that may go into a variable or a shell line.
pub fn is_plain_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=63).contains(&name.len()) && name.bytes().all(is_plain)
}

/// A PCI address by its numbers; names of other forms come behind, by themselves.
fn order(address: &str) -> (u64, &str) {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let number = || {
        let (domain, rest) = address.split_once(':')?;
        let (bus, rest) = rest.split_once(':')?;
        let (device, function) = rest.split_once('.')?;
        Some(hex(domain)? << 16 | hex(bus)? << 8 | hex(device)? << 3 | hex(function)?)
    };
    (number().unwrap_or(u64::MAX), address)
}

/// `openshift.io/eno5np0rdma` of `OPENSHIFT_IO_ENO5NP0RDMA`: the variable has lost dots and slashes.
fn resource_of(name: &str) -> String {
    let lower = name.to_lowercase();
    let parts: Vec<&str> = lower.split('_').collect();
    let domain = parts
        .iter()
        .position(|part| ["io", "com", "org", "net"].contains(part));
    match domain {
        Some(end) if end + 1 < parts.len() => {
            format!("{}/{}", parts[..=end].join("."), parts[end + 1..].join("_"))
        }
        _ => lower,
    }
}

/// The RDMA devices that the snapshot's environment states.
pub fn given(host: &Host) -> GivenDevices {
    let mut all = GivenDevices::default();
    let Ok(Value::Object(variables)) = host.json("answers/env.json") else {
        return all;
    };
    for (variable, value) in &variables {
        let (Some(mut name), Some(value)) = (variable.strip_prefix("PCIDEVICE_"), value.as_str()) else {
            continue;
        };
        let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
        let (addresses, info) = if let Some(plain) = name.strip_suffix("_INFO") {
            if variables.contains_key(&format!("PCIDEVICE_{plain}")) {
                continue;
            }
            // Some versions of the plugin state the document alone: its keys are the addresses.
            let info = parsed(value).unwrap_or(Value::Null);
            let Some(document) = info.as_object() else {
                all.notes
                    .push(format!("{variable} is no JSON document: left out"));
                all.is_stated = true;
                continue;
            };
            name = plain;
            (document.keys().cloned().collect::<Vec<_>>().join(","), info)
        } else {
            let info = variables.get(&format!("{variable}_INFO"));
            let info = info
                .and_then(Value::as_str)
                .and_then(parsed)
                .unwrap_or(Value::Null);
            (value.to_owned(), info)
        };
        all.is_stated = true;
        for address in addresses
            .split([',', ' ', '\n'])
            .map(str::trim)
            .filter(|address| !address.is_empty())
        {
            if all.given.len() >= MAX_DEVICES {
                all.notes
                    .push(format!("more than {MAX_DEVICES} devices: the rest is left out"));
                return all;
            }
            if !address
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b":._-".contains(&byte))
            {
                all.notes
                    .push(format!("{variable}: '{address}' is no address of a device"));
                continue;
            }
            let (device, node) = resolve(host, address, &info, &mut all.notes);
            // DPDK and other devices that are no RDMA devices.
            let says_rdma = info.pointer(&format!("/{address}/rdma")).is_some();
            if device.is_none() && !says_rdma {
                all.notes
                    .push(format!("{address} ({variable}) is not an RDMA device: left out"));
                continue;
            }
            all.given.push(GivenDevice {
                variable: variable.clone(),
                resource: resource_of(name),
                address: address.to_owned(),
                device,
                node,
            });
        }
    }
    all.given
        .sort_by(|a, b| order(&a.address).cmp(&order(&b.address)));
    all.given.dedup_by(|a, b| a.address == b.address);
    all
}

/// The RDMA device and the node of an address: by sysfs, by the node of INFO, then by the name in INFO.
fn resolve(
    host: &Host,
    address: &str,
    info: &Value,
    notes: &mut Vec<String>,
) -> (Option<String>, Option<String>) {
    let of_info = |key: &str| {
        let value = info.pointer(&format!("/{address}/rdma/{key}"))?.as_str()?;
        let name = value.rsplit('/').next()?;
        is_plain_name(name).then(|| name.to_owned())
    };
    let function = format!("sys/bus/auxiliary/devices/{address}");
    let mut folders = vec![format!("sys/bus/pci/devices/{address}/infiniband")];
    // The RDMA device of a scalable function belongs to an auxiliary device below it.
    let below = host.names(&function).into_iter();
    folders.extend(
        below
            .filter(|name| name.starts_with("mlx5_core.rdma."))
            .map(|name| format!("{function}/{name}/infiniband")),
    );
    folders.push(format!("{function}/infiniband"));
    let mut device = folders
        .iter()
        .find_map(|folder| host.names(folder).into_iter().next());
    let uverbs = of_info("uverbs");
    if device.is_none()
        && let Some(node) = &uverbs
    {
        device = host.text(&format!("sys/class/infiniband_verbs/{node}/ibdev"));
    }
    // `ethtool -i` and `ibdev2netdev -v` of a text say the address of a device alone.
    if device.is_none() {
        let names = host.names("sys/class/infiniband").into_iter();
        device = names.into_iter().find(|name| {
            let uevent = format!("sys/class/infiniband/{name}/device/uevent");
            host.field(&uevent, "PCI_SLOT_NAME").as_deref() == Some(address)
        });
    }
    let stated = of_info("rdma_dev");
    if let (Some(device), Some(stated)) = (&device, &stated)
        && device != stated
    {
        notes.push(format!(
            "{address} is {device}; the device plugin still calls it {stated}"
        ));
    }
    if device.is_none() {
        device = stated.filter(|name| host.has(&format!("sys/class/infiniband/{name}")));
    }
    let device = device.filter(|name| is_plain_name(name));
    let node = device.as_deref().and_then(|device| node_of(host, device));
    (device, node.or(uverbs))
}

/// One port of a device of this container.
#[derive(Clone, PartialEq, Debug)]
pub struct HcaPort {
    /// Where it comes from: the resource, or the way by which it was found.
    pub given_by: String,
    /// PCI address.
    pub address: String,
    /// The RDMA device.
    pub device: String,
    /// The port.
    pub port: u32,
    /// Its state.
    pub state: String,
    /// Bits in a second.
    pub rate_bps: Option<u64>,
    /// Index of the first RoCE v2 address.
    pub gid_index: Option<u32>,
    /// That address.
    pub ip: Option<IpAddr>,
    /// NUMA node.
    pub numa_node: Option<u32>,
    /// The nearest GPU, by its place among the GPUs, and its distance by nvidia-smi's names.
    pub gpu: Option<(usize, &'static str)>,
    /// Why it is left out; `None`: it is taken.
    pub problem: Option<String>,
}

impl HcaPort {
    /// `mlx5_6:1`.
    pub fn name(&self) -> String {
        format!("{}:{}", self.device, self.port)
    }
}

/// The devices of this container, and the values that select them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Hcas {
    /// All ports, in order of the PCI addresses.
    pub ports: Vec<HcaPort>,
    /// Devices that are given and not visible.
    pub missing: Vec<String>,
    /// Remarks.
    pub notes: Vec<String>,
}

impl Hcas {
    /// Ports that a job should use.
    pub fn taken(&self) -> impl Iterator<Item = &HcaPort> {
        self.ports.iter().filter(|port| port.problem.is_none())
    }

    fn list(&self) -> Option<String> {
        let names: Vec<String> = self.taken().map(HcaPort::name).collect();
        (!names.is_empty()).then(|| names.join(","))
    }

    /// The value of NCCL_IB_HCA: `=` in front, for exact names.
    pub fn nccl(&self) -> Option<String> {
        self.list().map(|list| format!("={list}"))
    }

    /// The value of UCX_NET_DEVICES.
    pub fn ucx(&self) -> Option<String> {
        self.list()
    }

    /// The index of the address, if all ports agree on it.
    pub fn gid_index(&self) -> Option<u32> {
        let mut all = self.taken().map(|port| port.gid_index);
        let first = all.next()??;
        all.all(|index| index == Some(first)).then_some(first)
    }

    /// Variables for the environment of a job.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let mut all = Vec::new();
        if let (Some(nccl), Some(ucx)) = (self.nccl(), self.ucx()) {
            all.push(("NCCL_IB_HCA", nccl));
            if let Some(index) = self.gid_index() {
                all.push(("NCCL_IB_GID_INDEX", index.to_string()));
            }
            all.push(("UCX_NET_DEVICES", ucx));
        }
        all
    }
}

/// Devices of a container whose environment states none, and the way by which they were found.
fn found_otherwise(host: &Host, all: &[RdmaDevice]) -> Option<(&'static str, Vec<String>)> {
    let is_open = |device: &str| {
        let node = node_of(host, device)?;
        let answers = host.json("answers/nodes.json").ok()?;
        Some(answers.get(format!("dev/infiniband/{node}"))?.as_str()? == "ok")
    };
    let has_interface = |device: &RdmaDevice| {
        let mut names = device.ports.iter().flat_map(|port| &port.interfaces);
        names.any(|name| host.has(&format!("sys/class/net/{name}")))
    };
    let candidates: [(&str, Vec<String>); 3] = [
        (
            "can be opened, interface here",
            all.iter()
                .filter(|device| is_open(&device.name) == Some(true) && has_interface(device))
                .map(|device| device.name.clone())
                .collect(),
        ),
        (
            "virtual function",
            all.iter()
                .filter(|device| device.is_virtual)
                .map(|device| device.name.clone())
                .collect(),
        ),
        (
            "active",
            all.iter()
                .filter(|device| device.ports.iter().any(RdmaPort::is_active))
                .map(|device| device.name.clone())
                .collect(),
        ),
    ];
    candidates.into_iter().find(|(_, devices)| !devices.is_empty())
}

/// The devices of a container.
pub fn hcas(host: &Host) -> Hcas {
    let facts = devices(host);
    let given = given(host);
    let mut all = Hcas {
        notes: given.notes,
        ..Hcas::default()
    };
    let mut chosen: Vec<(String, String)> = Vec::new();
    if given.is_stated {
        for given in given.given {
            match given
                .device
                .filter(|device| host.has(&format!("sys/class/infiniband/{device}")))
            {
                Some(device) => chosen.push((device, given.resource)),
                None => all.missing.push(given.address),
            }
        }
    } else if let Some((way, devices)) = found_otherwise(host, &facts) {
        all.notes
            .push(format!("no PCIDEVICE_* variable: devices were found by: {way}"));
        chosen.extend(devices.into_iter().map(|device| (device, way.to_owned())));
    }
    for (name, given_by) in chosen {
        let Some(device) = facts
            .iter()
            .find(|device| device.name == name && is_plain_name(&name))
        else {
            continue;
        };
        let address = device.pci.clone().unwrap_or_default();
        let numa = host.number(&format!("{}/device/numa_node", device.path)).ok();
        let gpu = nearest_gpu(host, &address);
        let node = node_of(host, &name);
        let opened: Result<Option<String>, Unknown> = node.as_ref().map_or(Ok(None), |node| {
            let answers = host.json("answers/nodes.json")?;
            let answer = answers
                .get(format!("dev/infiniband/{node}"))
                .and_then(Value::as_str);
            Ok(answer.map(str::to_owned))
        });
        for port in &device.ports {
            let best = port.best_gid().filter(|_| port.is_active());
            let state = port.state.clone().unwrap_or_else(|| "unknown".to_owned());
            let problem = match &opened {
                _ if !port.is_active() => Some(format!("is {}", state.to_lowercase())),
                Ok(Some(answer)) if answer == "ok" => None,
                Ok(Some(answer)) => Some(format!("cannot be opened: {answer}")),
                Ok(None) => Some("has no node in /dev/infiniband".to_owned()),
                Err(unknown) => Some(format!("was not opened: {}", unknown.why)),
            };
            all.ports.push(HcaPort {
                given_by: given_by.clone(),
                address: address.clone(),
                device: name.clone(),
                port: port.number,
                state,
                rate_bps: port.rate_bps.filter(|_| port.is_active()),
                gid_index: best.map(|gid| gid.index),
                ip: best.and_then(PortGid::routable),
                numa_node: numa,
                gpu,
                problem,
            });
        }
    }
    all.ports
        .sort_by(|a, b| (order(&a.address), &a.device, a.port).cmp(&(order(&b.address), &b.device, b.port)));
    merged_functions(host, &mut all);
    all
}

/// A note for virtual functions of one physical one: NCCL merges them.
fn merged_functions(host: &Host, all: &mut Hcas) {
    let mut parents: Vec<(String, String)> = Vec::new();
    for port in all.taken() {
        let parent = format!("sys/class/infiniband/{}/device/physfn/uevent", port.device);
        if let Some(parent) = host.field(&parent, "PCI_SLOT_NAME") {
            parents.push((parent, port.device.clone()));
        }
    }
    parents.sort();
    for pair in parents.windows(2) {
        if pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1 {
            all.notes.push(format!(
                "{} and {} are functions of one port: NCCL merges them (NCCL_IB_MERGE_VFS)",
                pair[0].1, pair[1].1
            ));
        }
    }
}

/// One name of NCCL_IB_HCA.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NcclEntry {
    /// A device's name, or its beginning.
    pub name: String,
    /// The port; `None`: all.
    pub port: Option<u32>,
}

impl NcclEntry {
    /// True if it selects a port.
    pub fn matches(&self, device: &str, port: u32, is_exact: bool) -> bool {
        let is_named = if is_exact {
            device == self.name
        } else {
            device.starts_with(&self.name)
        };
        is_named && self.port.is_none_or(|wanted| wanted == port)
    }
}

/// The value of NCCL_IB_HCA (NVIDIA/nccl, src/transport/net_ib: `^` excludes, `=` makes names exact).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NcclFilter {
    /// `^`: these are left out.
    pub is_excluding: bool,
    /// `=`: names are whole names.
    pub is_exact: bool,
    /// The names.
    pub entries: Vec<NcclEntry>,
}

impl NcclFilter {
    /// Takes a value apart.
    pub fn parse(value: &str) -> Self {
        let rest = value.strip_prefix('^');
        let (is_excluding, value) = (rest.is_some(), rest.unwrap_or(value));
        let rest = value.strip_prefix('=');
        let (is_exact, value) = (rest.is_some(), rest.unwrap_or(value));
        let entries = value.split(',').filter(|name| !name.is_empty()).map(|entry| {
            let (name, port) = entry.split_once(':').unwrap_or((entry, ""));
            NcclEntry {
                name: name.to_owned(),
                port: port.parse().ok(),
            }
        });
        Self {
            is_excluding,
            is_exact,
            entries: entries.take(MAX_DEVICES).collect(),
        }
    }
}
