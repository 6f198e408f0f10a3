//! Finds network interfaces and RDMA devices in sysfs (Documentation/ABI/stable/sysfs-class-infiniband,
//! testing/sysfs-class-net, testing/sysfs-bus-pci). What a file does not say is not known; nothing there is an error.

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

use roce_files::FileTree;
use roce_model::{Attachment, Devices, Gid, NetworkInterface, Pcie, RdmaDevice, RdmaPort};
use roce_wire::Address;

/// Files of a sysfs, wherever they are: paths begin below it (`class/net/eth0/mtu`).
pub trait SystemFiles {
    /// Names in a folder.
    fn names(&self, folder: &str) -> Vec<String>;
    /// Content of a file; `None`: there is none, or it cannot be read.
    fn content(&self, path: &str) -> Option<String>;
    /// Name of the target of a link.
    fn linked(&self, path: &str) -> Option<String>;
    /// True if there is a file or a folder.
    fn has(&self, path: &str) -> bool;
    /// True if there is a folder.
    fn is_folder(&self, path: &str) -> bool;
}

/// The longest file that devices are read from: one of sysfs has a page of memory at most (Documentation/filesystems/sysfs.rst).
const MAX_FILE_BYTES: u64 = 64 << 10;

/// The sysfs of the running system, or that of a recorded host, which nothing leads out of.
#[derive(Debug)]
pub struct Sysfs {
    /// `None`: it cannot be opened, and has nothing.
    files: Option<FileTree>,
    /// Path of the sysfs in the tree, with a slash at its end.
    prefix: &'static str,
}

impl Sysfs {
    /// The running system's.
    pub fn running() -> Self {
        Self {
            files: FileTree::running().ok(),
            prefix: "sys/",
        }
    }

    /// That of a recorded host: its folder `sys`, or that folder itself.
    ///
    /// # Errors
    /// When the folder cannot be opened.
    pub fn recorded(root: &Path) -> io::Result<Self> {
        let files = FileTree::recorded(root)?;
        let prefix = if files.is_folder("sys") { "sys/" } else { "" };
        Ok(Self {
            files: Some(files),
            prefix,
        })
    }

    fn path(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }
}

impl SystemFiles for Sysfs {
    fn names(&self, folder: &str) -> Vec<String> {
        let names = self.files.as_ref().map(|files| files.names(&self.path(folder)));
        names.and_then(Result::ok).unwrap_or_default()
    }

    fn content(&self, path: &str) -> Option<String> {
        self.files.as_ref()?.text(&self.path(path), MAX_FILE_BYTES).ok()
    }

    fn linked(&self, path: &str) -> Option<String> {
        let path = self.path(path);
        let (folder, name) = path.rsplit_once('/')?;
        let target = self.files.as_ref()?.link(folder, name)?;
        Some(target.rsplit('/').next()?.to_owned())
    }

    fn has(&self, path: &str) -> bool {
        self.files
            .as_ref()
            .is_some_and(|files| files.has(&self.path(path)))
    }

    fn is_folder(&self, path: &str) -> bool {
        let path = self.path(path);
        self.files.as_ref().is_some_and(|files| files.is_folder(&path))
    }
}

/// Devices that files of a sysfs describe. Whether libpcap can capture from RDMA devices, and what drivers say of their ports, is found
/// elsewhere.
pub fn devices(files: &impl SystemFiles) -> Devices {
    let tree = Tree(files);
    let interfaces = tree.names("class/net").into_iter();
    Devices {
        // Beside interfaces there can be files, such as bonding_masters.
        interfaces: interfaces
            .map(|name| (format!("class/net/{name}"), name))
            .filter(|(path, _)| files.is_folder(path))
            .map(|(path, name)| tree.interface(&path, name))
            .collect(),
        rdma: tree.rdma_devices(),
        sniffer: None,
    }
}

/// RDMA devices that files of a sysfs describe.
pub fn rdma_devices(files: &impl SystemFiles) -> Vec<RdmaDevice> {
    Tree(files).rdma_devices()
}

/// The addresses that an RDMA device's queue pairs can have: the IP addresses of its RoCEv2 GIDs, and the other GIDs.
pub fn addresses(files: &impl SystemFiles, device: &str) -> Vec<Address> {
    let device = Tree(files).rdma_device(device.to_owned());
    let mut addresses: Vec<Address> = Vec::new();
    for gid in device.ports.iter().flat_map(|port| &port.gids) {
        let address = gid.ip.or_else(|| gid.gid.parse().ok()).map(Address::from);
        addresses.extend(address.filter(|address| !addresses.contains(address)));
    }
    addresses
}

/// Files of a sysfs that devices are read from.
struct Tree<'a, F>(&'a F);

impl<F: SystemFiles> Tree<'_, F> {
    /// The names in a folder: numbers in their order, before others in theirs.
    fn names(&self, folder: &str) -> Vec<String> {
        let mut names = self.0.names(folder);
        names.sort_by_key(|name| (name.parse::<u32>().unwrap_or(u32::MAX), name.clone()));
        names
    }

    /// Content of a file without surrounding blanks; `None` also when it is empty.
    fn text(&self, folder: &str, name: &str) -> Option<String> {
        let text = self.0.content(&format!("{folder}/{name}"))?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn number<N: std::str::FromStr>(&self, folder: &str, name: &str) -> Option<N> {
        self.text(folder, name)?.parse().ok()
    }

    fn rdma_devices(&self) -> Vec<RdmaDevice> {
        let names = self.names("class/infiniband").into_iter();
        names.map(|name| self.rdma_device(name)).collect()
    }

    fn attachment(&self, device: &str) -> Attachment {
        Attachment {
            driver: self.0.linked(&format!("{device}/driver")),
            // -1: the system has no nodes, or does not know.
            numa_node: self
                .number::<i64>(device, "numa_node")
                .and_then(|node| u32::try_from(node).ok()),
            parent: self.0.linked(&format!("{device}/physfn")),
            pcie: self.pcie(device),
        }
    }

    fn pcie(&self, device: &str) -> Option<Pcie> {
        Some(Pcie {
            lanes: self
                .number(device, "current_link_width")
                .filter(|lanes| *lanes > 0)?,
            most_lanes: self.number(device, "max_link_width")?,
            speed: self.text(device, "current_link_speed")?,
            most_speed: self.text(device, "max_link_speed")?,
        })
    }

    fn interface(&self, path: &str, name: String) -> NetworkInterface {
        NetworkInterface {
            name,
            state: self
                .text(path, "operstate")
                .unwrap_or_else(|| "unknown".to_owned()),
            mtu: self.number(path, "mtu"),
            // In Mbit/s; -1 where there is no link.
            speed_bps: self
                .number::<i64>(path, "speed")
                .and_then(|speed| u64::try_from(speed).ok())
                .filter(|speed| *speed > 0 && *speed < u64::from(u32::MAX))
                .map(|speed| speed * 1_000_000),
            // Drivers say it, not files.
            most_speed_bps: None,
            address: self.text(path, "address"),
            attachment: self.attachment(&format!("{path}/device")),
        }
    }

    fn rdma_device(&self, name: String) -> RdmaDevice {
        let path = format!("class/infiniband/{name}");
        let ports = format!("{path}/ports");
        let mut attachment = self.attachment(&format!("{path}/device"));
        if attachment.driver.is_none() {
            // Software devices hang on nothing; that of rxe names its interface.
            let has_parent = self.0.has(&format!("{path}/parent"));
            attachment.driver = has_parent.then(|| "rdma_rxe".to_owned());
        }
        RdmaDevice {
            name,
            firmware: self.text(&path, "fw_ver"),
            attachment,
            ports: self
                .names(&ports)
                .into_iter()
                .filter_map(|name| Some(self.port(&format!("{ports}/{name}"), name.parse().ok()?)))
                .collect(),
        }
    }

    /// Word behind the number: `ACTIVE` of `4: ACTIVE`.
    fn word(&self, folder: &str, name: &str) -> String {
        let said = self.text(folder, name).unwrap_or_default();
        let word = said
            .split_once(':')
            .map_or(said.as_str(), |(_, word)| word.trim());
        if word.is_empty() {
            "unknown".to_owned()
        } else {
            word.to_owned()
        }
    }

    fn port(&self, path: &str, number: u32) -> RdmaPort {
        let rate = self.text(path, "rate");
        let (rate_bps, lanes, generation) = rate.as_deref().map_or((None, None, None), rate_of);
        RdmaPort {
            number,
            state: self.word(path, "state"),
            physical: self.word(path, "phys_state"),
            link_layer: self
                .text(path, "link_layer")
                .unwrap_or_else(|| "unknown".to_owned()),
            rate_bps,
            lanes,
            generation,
            gids: self
                .names(&format!("{path}/gids"))
                .into_iter()
                .filter_map(|name| self.gid(path, &name))
                .collect(),
        }
    }

    /// An entry of the table that is in use.
    fn gid(&self, port: &str, index: &str) -> Option<Gid> {
        let gid = self.text(&format!("{port}/gids"), index)?;
        let address: Ipv6Addr = gid.parse().ok()?;
        if address.is_unspecified() {
            return None;
        }
        // Entries that are not in use have no type: reading it fails.
        let version = self.text(&format!("{port}/gid_attrs/types"), index);
        let ip = version
            .as_deref()
            .filter(|version| *version == "RoCE v2")
            .map(|_| address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4));
        Some(Gid {
            index: index.parse().ok()?,
            gid,
            version,
            ip,
            interface: self.text(&format!("{port}/gid_attrs/ndevs"), index),
        })
    }
}

/// `100 Gb/sec (4X EDR)`: bits in a second, lanes, generation.
fn rate_of(text: &str) -> (Option<u64>, Option<u32>, Option<String>) {
    let (rate, lanes) = text.split_once('(').unwrap_or((text, ""));
    let gigabits = rate
        .trim()
        .strip_suffix("Gb/sec")
        .and_then(|rate| rate.trim().parse::<f64>().ok());
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is at most some thousand Gbit/s, and a cast of a negative value gives 0"
    )]
    let bits = gigabits.map(|gigabits| (gigabits * 1e9).round() as u64);
    let (lanes, generation) = lanes.trim_end_matches(')').split_once('X').unwrap_or_default();
    let generation = generation.trim();
    (
        bits.filter(|bits| *bits > 0),
        lanes.trim().parse().ok(),
        (!generation.is_empty()).then(|| generation.to_owned()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_taken_apart() {
        assert_eq!(
            rate_of("100 Gb/sec (4X EDR)"),
            (Some(100_000_000_000), Some(4), Some("EDR".to_owned()))
        );
        // Contents of sysfs for Soft-RoCE.
        assert_eq!(
            rate_of("2.5 Gb/sec (1X SDR)"),
            (Some(2_500_000_000), Some(1), Some("SDR".to_owned()))
        );
        assert_eq!(rate_of("unknown"), (None, None, None));
    }
}
