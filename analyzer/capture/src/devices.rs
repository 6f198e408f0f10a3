//! Finds network interfaces and RDMA devices in sysfs (Documentation/ABI/stable/sysfs-class-infiniband,
//! testing/sysfs-class-net, testing/sysfs-bus-pci). What a file does not say is not known; nothing there is an error.

use std::fs;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

use roce_model::{Attachment, Devices, Gid, NetworkInterface, Pcie, RdmaDevice, RdmaPort};
use roce_wire::Address;

/// Devices that the sysfs at `root` (`/sys`) describes. Whether libpcap can capture from RDMA devices,
/// and what drivers say of their ports, is found elsewhere.
pub fn devices(root: &Path) -> Devices {
    let interfaces = root.join("class/net");
    Devices {
        interfaces: names(&interfaces)
            .into_iter()
            // Beside interfaces there can be files, such as bonding_masters.
            .filter(|name| interfaces.join(name).is_dir())
            .map(|name| interface(&interfaces.join(&name), name))
            .collect(),
        rdma: rdma_devices(root),
        sniffer: None,
    }
}

/// RDMA devices that the sysfs at `root` describes.
pub fn rdma_devices(root: &Path) -> Vec<RdmaDevice> {
    let rdma = root.join("class/infiniband");
    names(&rdma)
        .into_iter()
        .map(|name| rdma_device(&rdma.join(&name), name))
        .collect()
}

/// The addresses that an RDMA device's queue pairs can have: the IP addresses of its RoCEv2 GIDs, and the other GIDs.
pub fn addresses(root: &Path, device: &str) -> Vec<Address> {
    let device = rdma_device(&root.join("class/infiniband").join(device), device.to_owned());
    let mut addresses: Vec<Address> = Vec::new();
    for gid in device.ports.iter().flat_map(|port| &port.gids) {
        let address = gid.ip.or_else(|| gid.gid.parse().ok()).map(Address::from);
        addresses.extend(address.filter(|address| !addresses.contains(address)));
    }
    addresses
}

/// The names in a folder: numbers in their order, before others in theirs.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_by_key(|name| (name.parse::<u32>().unwrap_or(u32::MAX), name.clone()));
    names
}

/// Content of a file without surrounding blanks; `None` also when it is empty.
fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn number<N: std::str::FromStr>(path: &Path) -> Option<N> {
    text(path)?.parse().ok()
}

/// Name of the link's target.
fn linked(path: &Path) -> Option<String> {
    let target = fs::canonicalize(path).ok()?;
    Some(target.file_name()?.to_str()?.to_owned())
}

fn attachment(device: &Path) -> Attachment {
    Attachment {
        driver: linked(&device.join("driver")),
        // -1: the system has no nodes, or does not know.
        numa_node: number::<i64>(&device.join("numa_node")).and_then(|node| u32::try_from(node).ok()),
        parent: linked(&device.join("physfn")),
        pcie: pcie(device),
    }
}

fn pcie(device: &Path) -> Option<Pcie> {
    Some(Pcie {
        lanes: number(&device.join("current_link_width")).filter(|lanes| *lanes > 0)?,
        most_lanes: number(&device.join("max_link_width"))?,
        speed: text(&device.join("current_link_speed"))?,
        most_speed: text(&device.join("max_link_speed"))?,
    })
}

fn interface(path: &Path, name: String) -> NetworkInterface {
    NetworkInterface {
        name,
        state: text(&path.join("operstate")).unwrap_or_else(|| "unknown".to_owned()),
        mtu: number(&path.join("mtu")),
        // In Mbit/s; -1 where there is no link.
        speed_bps: number::<i64>(&path.join("speed"))
            .and_then(|speed| u64::try_from(speed).ok())
            .filter(|speed| *speed > 0 && *speed < u64::from(u32::MAX))
            .map(|speed| speed * 1_000_000),
        // Drivers say it, not files.
        most_speed_bps: None,
        address: text(&path.join("address")),
        attachment: attachment(&path.join("device")),
    }
}

fn rdma_device(path: &Path, name: String) -> RdmaDevice {
    let ports = path.join("ports");
    let mut attachment = attachment(&path.join("device"));
    if attachment.driver.is_none() {
        // Software devices hang on nothing; that of rxe names its interface.
        attachment.driver = path.join("parent").exists().then(|| "rdma_rxe".to_owned());
    }
    RdmaDevice {
        name,
        firmware: text(&path.join("fw_ver")),
        attachment,
        ports: names(&ports)
            .into_iter()
            .filter_map(|name| Some(port(&ports.join(&name), name.parse().ok()?)))
            .collect(),
    }
}

/// Word behind the number: `ACTIVE` of `4: ACTIVE`.
fn word(path: &Path) -> String {
    let said = text(path).unwrap_or_default();
    let word = said
        .split_once(':')
        .map_or(said.as_str(), |(_, word)| word.trim());
    if word.is_empty() {
        "unknown".to_owned()
    } else {
        word.to_owned()
    }
}

fn port(path: &Path, number: u32) -> RdmaPort {
    let rate = text(&path.join("rate"));
    let (rate_bps, lanes, generation) = rate.as_deref().map_or((None, None, None), rate_of);
    let gids = path.join("gids");
    RdmaPort {
        number,
        state: word(&path.join("state")),
        physical: word(&path.join("phys_state")),
        link_layer: text(&path.join("link_layer")).unwrap_or_else(|| "unknown".to_owned()),
        rate_bps,
        lanes,
        generation,
        gids: names(&gids)
            .into_iter()
            .filter_map(|name| gid(path, &name))
            .collect(),
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

/// An entry of the table that is in use.
fn gid(port: &Path, index: &str) -> Option<Gid> {
    let gid = text(&port.join("gids").join(index))?;
    let address: Ipv6Addr = gid.parse().ok()?;
    if address.is_unspecified() {
        return None;
    }
    // Entries that are not in use have no type: reading it fails.
    let version = text(&port.join("gid_attrs/types").join(index));
    let ip = version
        .as_deref()
        .filter(|version| *version == "RoCE v2")
        .map(|_| address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4));
    Some(Gid {
        index: index.parse().ok()?,
        gid,
        version,
        ip,
        interface: text(&port.join("gid_attrs/ndevs").join(index)),
    })
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
