//! Devices, interfaces and GPUs of a snapshot, derived once for all checks.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

use roce_model::value_of;
use roce_rules::counters::{CounterFinding, LinkFacts};
use serde_json::Value;

use crate::doctor::counters::{HostCounters, MovedCounter, counters};
use crate::doctor::host::{Host, Unknown, gid_address};
use crate::host::port_rate_bps;

/// Intended configuration: what the checks compare with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The lossless priority.
    pub priority: u8,
    /// DSCP of RoCE data.
    pub dscp: u8,
    /// DSCP of CNPs.
    pub cnp_dscp: u8,
    /// Oldest firmware for a board: `MT_0000000224` and `22.39`.
    pub firmware: Vec<(String, String)>,
    /// The longest cable, in metres, for the size of buffers.
    pub cable_metres: Option<u32>,
    /// Addresses to which the path's MTU was tried.
    pub peers: Vec<String>,
    /// NCCL's log.
    pub nccl_log: Option<String>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            // The defaults of NVIDIA's recommended RoCE configuration.
            priority: 3,
            dscp: 26,
            cnp_dscp: 48,
            firmware: Vec::new(),
            cable_metres: None,
            peers: Vec::new(),
            nccl_log: None,
        }
    }
}

/// An entry of a port's table of addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortGid {
    /// Its index.
    pub index: u32,
    /// The address.
    pub address: Ipv6Addr,
    /// True of `RoCE v2`; `None`: its type could not be read.
    pub is_v2: Option<bool>,
}

impl PortGid {
    /// Its IP address, if it has one that other hosts reach: IPv4, or IPv6 beyond the link.
    pub fn routable(&self) -> Option<IpAddr> {
        if let Some(v4) = self.address.to_ipv4_mapped() {
            return (!v4.is_link_local()).then_some(IpAddr::V4(v4));
        }
        // fe80::/10.
        let is_link_local = self.address.segments()[0] & 0xffc0 == 0xfe80;
        (!is_link_local).then_some(IpAddr::V6(self.address))
    }
}

/// A port of an RDMA device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RdmaPort {
    /// Device and number: `mlx5_0:1`.
    pub object: String,
    /// Its number.
    pub number: u32,
    /// Its folder.
    pub path: String,
    /// Its state: `ACTIVE`; `None`: it could not be read.
    pub state: Option<String>,
    /// True of RoCE.
    pub is_ethernet: bool,
    /// Bits in a second.
    pub rate_bps: Option<u64>,
    /// Its addresses.
    pub gids: Vec<PortGid>,
    /// The network interfaces of its addresses.
    pub interfaces: Vec<String>,
}

impl RdmaPort {
    /// True of a port that carries traffic.
    pub fn is_active(&self) -> bool {
        self.state.as_deref() == Some("ACTIVE")
    }

    /// True of a port that is active, or whose state a text does not have.
    pub(crate) fn can_be_active(&self, host: &Host) -> bool {
        self.is_active() || host.is_partial && !host.has(&format!("{}/state", self.path))
    }

    /// The address that applications should use: the first of RoCE v2 with IPv4, else with a global IPv6 address.
    pub fn best_gid(&self) -> Option<&PortGid> {
        let of_v2 = || {
            self.gids
                .iter()
                .filter(|gid| gid.is_v2 == Some(true) && gid.routable().is_some())
        };
        of_v2()
            .find(|gid| gid.address.to_ipv4_mapped().is_some())
            .or_else(|| of_v2().next())
    }
}

/// An RDMA device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RdmaDevice {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub path: String,
    /// Its PCI address; software devices have none.
    pub pci: Option<String>,
    /// The driver of its PCI device.
    pub driver: Option<String>,
    /// True of a virtual function.
    pub is_virtual: bool,
    /// The board's name.
    pub board: Option<String>,
    /// Its ports.
    pub ports: Vec<RdmaPort>,
}

/// A network interface of an RDMA device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Netdev {
    /// Its name: of a VLAN, that of the interface below it.
    pub name: String,
    /// The RDMA device.
    pub device: String,
    /// False of virtual functions and software devices: the port's settings are not theirs.
    pub has_port: bool,
}

/// A PCI device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PciDevice {
    /// Its address: `0000:3b:00.0`.
    pub address: String,
    /// Its vendor: 0x15b3.
    pub vendor: u32,
    /// Its class: 0x020000.
    pub class: u32,
}

/// A snapshot with what was derived from it.
pub(crate) struct Facts<'a> {
    pub(crate) host: &'a Host,
    pub(crate) plan: &'a Plan,
    pub(crate) devices: Vec<RdmaDevice>,
    pub(crate) netdevs: Vec<Netdev>,
    pub(crate) pci: Vec<PciDevice>,
    pub(crate) counters: Vec<MovedCounter>,
    /// Findings about the changes of counters.
    pub(crate) found: Vec<CounterFinding>,
}

/// Rates of ports, and the interfaces that are theirs.
struct PortLinks<'a>(&'a [RdmaDevice]);

impl PortLinks<'_> {
    fn port(&self, is_wanted: impl Fn(&RdmaPort) -> bool) -> Option<&RdmaPort> {
        self.0
            .iter()
            .flat_map(|device| &device.ports)
            .find(|port| is_wanted(port))
    }
}

impl LinkFacts for PortLinks<'_> {
    fn bits_per_second(&self, object: &str) -> Option<f64> {
        let is_wanted =
            |port: &&RdmaPort| port.object == object || port.interfaces.iter().any(|name| name == object);
        // Virtual functions share the rate of their port.
        let devices = self.0.iter().filter(|device| !device.is_virtual);
        let port = devices.flat_map(|device| &device.ports).find(is_wanted);
        port?.rate_bps.map(value_of)
    }

    fn port_of(&self, interface: &str) -> Option<String> {
        let port = self.port(|port| port.interfaces.iter().any(|name| name == interface));
        port.map(|port| port.object.clone())
    }
}

const RDMA: &str = "sys/class/infiniband";
/// PCI vendors of RDMA adapters: NVIDIA (Mellanox), Broadcom, Intel.
pub(crate) const MELLANOX: u32 = 0x15b3;
pub(crate) const BROADCOM: u32 = 0x14e4;
pub(crate) const INTEL: u32 = 0x8086;
/// PCI vendors of GPUs.
pub(crate) const NVIDIA: u32 = 0x10de;
pub(crate) const AMD: u32 = 0x1002;

impl<'a> Facts<'a> {
    pub(crate) fn new(host: &'a Host, plan: &'a Plan) -> Self {
        let mut devices = devices(host);
        let pci = pci_devices(host);
        let mut netdevs = netdevs(host, &devices);
        if host.is_partial {
            netdevs.extend(alone(host, &netdevs));
            devices.extend(adapters(host, &pci, &devices));
        }
        let HostCounters { moved, found } = counters(host, &PortLinks(&devices));
        Self {
            host,
            plan,
            found,
            devices,
            netdevs,
            pci,
            counters: moved,
        }
    }

    /// All ports of RDMA devices over Ethernet.
    pub(crate) fn ports(&self) -> impl Iterator<Item = (&RdmaDevice, &RdmaPort)> {
        let all = self
            .devices
            .iter()
            .flat_map(|device| device.ports.iter().map(move |port| (device, port)));
        all.filter(|(_, port)| port.is_ethernet)
    }

    /// Devices and numbers of RoCE ports, also of those of which a text has settings alone.
    pub(crate) fn ports_with_settings(&self) -> Vec<(String, u32)> {
        let known = self.ports();
        let mut all: Vec<(String, u32)> = known
            .map(|(device, port)| (device.name.clone(), port.number))
            .collect();
        let folders = [("sys/kernel/config/rdma_cm", "ports"), (RDMA, "tc")];
        for (classes, numbers) in folders.into_iter().filter(|_| self.host.is_partial) {
            for device in self.host.names(classes).into_iter().filter(|name| is_plain(name)) {
                let numbers = self
                    .host
                    .names(&format!("{classes}/{device}/{numbers}"))
                    .into_iter();
                for number in numbers.filter_map(|number| number.parse().ok()) {
                    let mut devices = self.devices.iter().filter(|known| known.name == device);
                    let is_known = devices.any(|known| known.ports.iter().any(|port| port.number == number));
                    let port = (device.clone(), number);
                    if !is_known && !all.contains(&port) {
                        all.push(port);
                    }
                }
            }
        }
        all
    }

    /// Interfaces that own their port: PFC, buffers and pauses are theirs.
    pub(crate) fn ports_of_hosts(&self) -> impl Iterator<Item = &Netdev> {
        self.netdevs.iter().filter(|netdev| netdev.has_port)
    }

    /// GPUs: display and 3D controllers of GPU vendors, and processing accelerators (PCI class 0x12).
    pub(crate) fn gpus(&self) -> impl Iterator<Item = &PciDevice> {
        self.pci.iter().filter(|device| {
            let is_display = device.class >> 16 == 0x03 && [NVIDIA, AMD].contains(&device.vendor);
            is_display || device.class >> 16 == 0x12
        })
    }

    /// Counters of this name with their change.
    pub(crate) fn counter<'b>(&'b self, name: &'b str) -> impl Iterator<Item = &'b MovedCounter> {
        self.counters
            .iter()
            .filter(move |moved| moved.counter.name() == name)
    }

    /// The names of running programs that configure or listen; `None`: not looked at.
    pub(crate) fn programs(&self) -> Option<BTreeSet<String>> {
        let all = self.host.json("answers/programs.json").ok()?;
        let names = all.as_array()?.iter().filter_map(Value::as_str);
        Some(names.map(str::to_owned).collect())
    }

    /// The bridges above a PCI device and the device itself, from the root complex down; `None`: the tree is not known.
    pub(crate) fn pci_path(&self, address: &str) -> Option<Vec<String>> {
        let target = self.host.link(&format!("sys/bus/pci/devices/{address}"))?;
        let parts = target
            .split('/')
            .skip_while(|part| !part.starts_with("pci"))
            .map(str::to_owned);
        let path: Vec<String> = parts.collect();
        let is_whole =
            path.last().is_some_and(|last| last == address) && path.iter().all(|part| is_plain(part));
        is_whole.then_some(path)
    }

    /// True of a virtual machine; `None`: not known.
    pub(crate) fn is_virtual_machine(&self) -> Option<bool> {
        let flags = self.host.text("proc/cpuinfo")?;
        let line = flags.lines().find(|line| line.starts_with("flags"))?;
        Some(line.split_whitespace().any(|flag| flag == "hypervisor"))
    }

    /// The kernel's version as two numbers.
    pub(crate) fn kernel(&self) -> Option<(u32, u32)> {
        let answer = self.host.json("answers/uname.json").ok()?;
        let release = answer.get("release")?.as_str()?;
        let mut parts = release.split(['.', '-']);
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }

    /// True if the process has a capability of this bit in effect.
    pub(crate) fn has_capability(&self, bit: u32) -> Option<bool> {
        let text = self.host.text("proc/self/status")?;
        let line = text.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
        let set = u64::from_str_radix(line.trim(), 16).ok()?;
        Some(set >> bit & 1 == 1)
    }

    /// Kernel modules that are loaded; `None`: not known.
    pub(crate) fn modules(&self) -> Option<BTreeSet<String>> {
        let text = self.host.text("proc/modules")?;
        let names = text.lines().filter_map(|line| line.split_whitespace().next());
        Some(names.map(str::to_owned).collect())
    }

    /// True if a module is loaded or part of the kernel.
    pub(crate) fn has_module(&self, name: &str) -> bool {
        self.modules().is_some_and(|all| all.contains(name)) || self.host.has(&format!("sys/module/{name}"))
    }
}

/// The word behind the number: `ACTIVE` of `4: ACTIVE`.
pub(crate) fn word(text: &str) -> String {
    text.split_once(':')
        .map_or(text, |(_, word)| word)
        .trim()
        .to_owned()
}

/// The RDMA devices of a snapshot.
pub(crate) fn devices(host: &Host) -> Vec<RdmaDevice> {
    let names = host.names(RDMA).into_iter();
    names
        .filter(|name| is_plain(name))
        .map(|name| {
            let path = format!("{RDMA}/{name}");
            let uevent = format!("{path}/device/uevent");
            let ports = host.names(&format!("{path}/ports")).into_iter();
            RdmaDevice {
                pci: host.field(&uevent, "PCI_SLOT_NAME").filter(|pci| is_plain(pci)),
                driver: host.field(&uevent, "DRIVER"),
                is_virtual: host.has(&format!("{path}/device/physfn")),
                board: host.text(&format!("{path}/board_id")),
                ports: ports.filter_map(|port| rdma_port(host, &name, &port)).collect(),
                path,
                name,
            }
        })
        .collect()
}

fn rdma_port(host: &Host, device: &str, name: &str) -> Option<RdmaPort> {
    let number = name.parse().ok()?;
    let path = format!("{RDMA}/{device}/ports/{number}");
    let rate = host.text(&format!("{path}/rate"));
    let gids = host
        .names(&format!("{path}/gids"))
        .into_iter()
        .filter_map(|index| {
            let address = gid_address(&host.text(&format!("{path}/gids/{index}"))?)?;
            let kind = host.text(&format!("{path}/gid_attrs/types/{index}"));
            Some(PortGid {
                index: index.parse().ok()?,
                address,
                is_v2: kind.map(|kind| kind == "RoCE v2"),
            })
        });
    let ndevs = format!("{path}/gid_attrs/ndevs");
    let interfaces: BTreeSet<String> = host
        .names(&ndevs)
        .into_iter()
        .filter_map(|index| host.text(&format!("{ndevs}/{index}")))
        .filter(|name| is_plain(name))
        .collect();
    Some(RdmaPort {
        object: format!("{device}:{number}"),
        number,
        state: host
            .text(&format!("{path}/state"))
            .map(|text| word(&text))
            .filter(|state| {
                ["NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"].contains(&state.as_str())
            }),
        is_ethernet: host.text(&format!("{path}/link_layer")).as_deref() != Some("InfiniBand"),
        rate_bps: rate.as_deref().and_then(port_rate_bps),
        gids: gids.collect(),
        interfaces: interfaces.into_iter().collect(),
        path,
    })
}

/// The interface that a VLAN interface lies on; any other interface is its own.
fn physical(host: &Host, name: &str) -> String {
    let folder = format!("sys/class/net/{name}");
    if host.field(&format!("{folder}/uevent"), "DEVTYPE").as_deref() == Some("vlan") {
        let mut names = host.names(&folder).into_iter();
        let lower = names.find_map(|name| name.strip_prefix("lower_").map(str::to_owned));
        return lower.unwrap_or_else(|| name.to_owned());
    }
    name.to_owned()
}

/// True of a name that is one word to a shell and no option: names from a recording go into commands that are shown.
pub(crate) fn is_plain(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:@-".contains(&byte);
    (1..=63).contains(&name.len()) && !name.starts_with('-') && name.bytes().all(is_plain)
}

fn netdevs(host: &Host, devices: &[RdmaDevice]) -> Vec<Netdev> {
    let mut all: Vec<Netdev> = Vec::new();
    // Interfaces of InfiniBand ports (IPoIB) have no PFC, DSCP or RoCE.
    let of_ethernet =
        |device: &&RdmaDevice| device.ports.is_empty() || device.ports.iter().any(|port| port.is_ethernet);
    for device in devices.iter().filter(of_ethernet) {
        let of_gids = device.ports.iter().flat_map(|port| port.interfaces.clone());
        let of_device = host.names(&format!("{}/device/net", device.path));
        let names: BTreeSet<String> = of_gids
            .chain(of_device)
            .map(|name| physical(host, &name))
            .filter(|name| is_plain(name))
            .collect();
        for name in names {
            if !all.iter().any(|netdev| netdev.name == name) {
                all.push(Netdev {
                    name,
                    device: device.name.clone(),
                    has_port: (device.pci.is_some() || host.is_partial) && !device.is_virtual,
                });
            }
        }
    }
    all
}

/// Interfaces whose DCB settings are in a text that has no RDMA device for them: they are judged as those of one.
fn alone(host: &Host, known: &[Netdev]) -> Vec<Netdev> {
    let settings = host.names("answers").into_iter();
    let names: BTreeSet<String> = settings
        .filter(|file| file.starts_with("dcb-"))
        .filter_map(|file| Some(file.split_once('.')?.1.strip_suffix(".json")?.to_owned()))
        .filter(|name| is_plain(name) && !known.iter().any(|netdev| netdev.name == *name))
        .collect();
    let netdev = |name| Netdev {
        name,
        device: String::new(),
        has_port: true,
    };
    names.into_iter().map(netdev).collect()
}

/// Adapters in a text that does not say which RDMA devices they are: devices without ports, by their PCI addresses.
fn adapters(host: &Host, pci: &[PciDevice], known: &[RdmaDevice]) -> Vec<RdmaDevice> {
    let is_named = known.iter().any(|device| device.pci.is_none());
    let is_owned = |address: &str| known.iter().any(|device| device.pci.as_deref() == Some(address));
    let adapters = pci.iter().filter(|device| {
        let path = format!("sys/bus/pci/devices/{}", device.address);
        // `ethtool -i` was asked about that adapter.
        let is_shown = device.vendor == MELLANOX || host.has(&format!("{path}/fw_ver"));
        let is_virtual = host.has(&format!("{path}/physfn"));
        device.class >> 16 == 2 && is_shown && !is_virtual && !is_owned(&device.address)
    });
    // One of them can be the device whose address is not known.
    let adapters = adapters.filter(|_| !is_named);
    adapters
        .map(|device| {
            let path = format!("sys/bus/pci/devices/{}", device.address);
            RdmaDevice {
                name: device.address.clone(),
                pci: Some(device.address.clone()),
                driver: host.field(&format!("{path}/uevent"), "DRIVER"),
                is_virtual: false,
                board: host.text(&format!("{path}/board_id")),
                ports: Vec::new(),
                path,
            }
        })
        .collect()
}

fn pci_devices(host: &Host) -> Vec<PciDevice> {
    const DEVICES: &str = "sys/bus/pci/devices";
    let hex = |path: String| u32::from_str_radix(host.text(&path)?.trim_start_matches("0x"), 16).ok();
    let all = host.names(DEVICES).into_iter();
    all.filter(|address| is_plain(address))
        .filter_map(|address| {
            Some(PciDevice {
                vendor: hex(format!("{DEVICES}/{address}/vendor"))?,
                class: hex(format!("{DEVICES}/{address}/class"))?,
                address,
            })
        })
        .collect()
}

/// The reason of a value that does not have the expected form.
pub(crate) fn odd(path: &str, text: &str) -> Unknown {
    Unknown {
        source: crate::doctor::host::source_of(path),
        why: format!("'{}' is not understood", crate::doctor::host::short(text)),
    }
}

/// The node in /dev/infiniband of a device.
pub(crate) fn node_of(host: &Host, device: &str) -> Option<String> {
    const VERBS: &str = "sys/class/infiniband_verbs";
    let mut all = host.names(VERBS).into_iter();
    all.find(|node| host.text(&format!("{VERBS}/{node}/ibdev")).as_deref() == Some(device))
}

/// Names of the network interfaces of RDMA devices; of a VLAN, that of the interface below it.
pub fn netdev_names(host: &Host) -> Vec<String> {
    let all = netdevs(host, &devices(host)).into_iter();
    all.map(|netdev| netdev.name).collect()
}

/// PCI addresses of NVIDIA's physical adapters with an RDMA device.
pub fn physical_adapters(host: &Host) -> Vec<String> {
    let all = devices(host).into_iter();
    all.filter(|device| !device.is_virtual && device.driver.as_deref() == Some("mlx5_core"))
        .filter_map(|device| device.pci)
        .collect()
}
