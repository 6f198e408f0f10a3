//! Devices of a host that RoCE can travel through: network interfaces and RDMA devices, as the system
//! describes them.

use std::net::IpAddr;

/// Everything that was found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Devices {
    /// Network interfaces, by name.
    pub interfaces: Vec<NetworkInterface>,
    /// RDMA devices, by name.
    pub rdma: Vec<RdmaDevice>,
    /// True if the libpcap that would capture supports RDMA devices; `None` in a build without it.
    pub sniffer: Option<bool>,
}

/// Attachment of a device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Attachment {
    /// The kernel's driver.
    pub driver: Option<String>,
    /// The NUMA node.
    pub numa_node: Option<u32>,
    /// Address of the physical function that a virtual function belongs to.
    pub parent: Option<String>,
    /// PCIe as it runs, and as the device could.
    pub pcie: Option<Pcie>,
}

/// Speed and width of a device's PCIe link.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Pcie {
    /// Lanes in use.
    pub lanes: u32,
    /// Lanes that the device has.
    pub most_lanes: u32,
    /// Transfers of each lane, as the system writes it: `8.0 GT/s PCIe`.
    pub speed: String,
    /// The most that the device can.
    pub most_speed: String,
}

impl Pcie {
    /// True if the device could do more than its slot gives it.
    pub fn is_slowed(&self) -> bool {
        self.lanes < self.most_lanes || self.speed != self.most_speed
    }
}

/// A network interface.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NetworkInterface {
    /// Its name: `eth0`.
    pub name: String,
    /// Its operational state (RFC 2863): `up`, `down`.
    pub state: String,
    /// Largest payload of a frame, in bytes.
    pub mtu: Option<u32>,
    /// Its speed now, in bit/s.
    pub speed_bps: Option<u64>,
    /// Highest speed of its port, in bit/s, where its driver reports it.
    pub most_speed_bps: Option<u64>,
    /// Its link address.
    pub address: Option<String>,
    /// Attachment of the device.
    pub attachment: Attachment,
}

/// An RDMA device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RdmaDevice {
    /// Its name: `mlx5_0`.
    pub name: String,
    /// The version of its firmware.
    pub firmware: Option<String>,
    /// Attachment of the device.
    pub attachment: Attachment,
    /// Its ports.
    pub ports: Vec<RdmaPort>,
}

/// A port of an RDMA device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RdmaPort {
    /// Its number, from 1.
    pub number: u32,
    /// Its logical state: `ACTIVE`, `DOWN`.
    pub state: String,
    /// Its physical state: `LinkUp`, `Disabled`.
    pub physical: String,
    /// `Ethernet` or `InfiniBand`.
    pub link_layer: String,
    /// Its speed now, in bit/s.
    pub rate_bps: Option<u64>,
    /// Lanes in use: 4 of `4X`.
    pub lanes: Option<u32>,
    /// The generation of its lanes: `EDR`.
    pub generation: Option<String>,
    /// Its addresses.
    pub gids: Vec<Gid>,
}

impl RdmaPort {
    /// The network interfaces of its addresses.
    pub fn interfaces(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .gids
            .iter()
            .filter_map(|gid| gid.interface.as_deref())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// An entry of a port's table of addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gid {
    /// Its index in the table.
    pub index: u32,
    /// The address as the system writes it.
    pub gid: String,
    /// Protocol of the GID: `RoCE v2`, `IB/RoCE v1`.
    pub version: Option<String>,
    /// RoCEv2: its IP address.
    pub ip: Option<IpAddr>,
    /// Its network interface.
    pub interface: Option<String>,
}
