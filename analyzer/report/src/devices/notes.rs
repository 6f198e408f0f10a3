//! Notes about interfaces and RDMA devices, in words: what can be captured there, and what a person should look at.

use roce_model::{Attachment, Devices, NetworkInterface, Pcie, RdmaDevice, RdmaPort};

/// The ports whose addresses an interface carries: `mlx5_0:1`.
pub(crate) fn rdma_ports(devices: &Devices, interface: &str) -> Vec<String> {
    let mut found = Vec::new();
    for device in &devices.rdma {
        for port in &device.ports {
            if port.interfaces().contains(&interface) {
                found.push(format!("{}:{}", device.name, port.number));
            }
        }
    }
    found
}

/// True if the kernel itself does what a device does, so that its packets pass the kernel's interfaces.
fn is_software(device: &RdmaDevice) -> bool {
    matches!(
        device.attachment.driver.as_deref(),
        Some("rdma_rxe" | "siw") | None
    )
}

/// Packets that can be captured at an interface.
pub(crate) fn interface_capture(devices: &Devices, interface: &NetworkInterface) -> String {
    let past: Vec<&str> = devices
        .rdma
        .iter()
        .filter(|device| !is_software(device))
        .filter(|device| {
            device
                .ports
                .iter()
                .any(|port| port.interfaces().contains(&interface.name.as_str()))
        })
        .map(|device| device.name.as_str())
        .collect();
    if past.is_empty() {
        format!("live -i {}: what passes it", interface.name)
    } else {
        format!(
            "live -i {}: without the RoCE of {}, which goes past the kernel",
            interface.name,
            past.join(", ")
        )
    }
}

/// Packets that can be captured at an RDMA device.
pub(crate) fn device_capture(devices: &Devices, device: &RdmaDevice) -> String {
    let name = &device.name;
    if is_software(device) {
        let interfaces: Vec<&str> = device.ports.iter().flat_map(RdmaPort::interfaces).collect();
        return if interfaces.is_empty() {
            "all its packets pass its network interface".to_owned()
        } else {
            format!("live -i {}: all its packets pass it", interfaces.join(", "))
        };
    }
    // Flow steering's sniffer rules (IBV_FLOW_ATTR_SNIFFER) are those of NVIDIA's adapters.
    let sniffs = device
        .attachment
        .driver
        .as_deref()
        .is_some_and(|driver| driver.starts_with("mlx"));
    match devices.sniffer {
        _ if !sniffs => "its driver has no sniffer: mirror the switch's port".to_owned(),
        Some(true) => format!("live -i {name}: all its RoCE, by the RDMA sniffer"),
        Some(false) => {
            "nothing: this system's libpcap is built without RDMA support; mirror the switch's port, or build one with it (live -i says how)".to_owned()
        }
        None => "this build cannot capture".to_owned(),
    }
}

/// Notes that a person should read.
pub(crate) fn interface_notes(interface: &NetworkInterface) -> Vec<String> {
    let mut notes = attachment_notes(&interface.attachment);
    if let (Some(speed), Some(most)) = (interface.speed_bps, interface.most_speed_bps)
        && speed < most
    {
        notes.push(format!(
            "runs at {}, its port can {}",
            gigabits(speed),
            gigabits(most)
        ));
    }
    if let (Some(mtu), true) = (interface.mtu, interface.state == "up")
        && mtu < 4_200
        && interface
            .attachment
            .driver
            .as_deref()
            .is_some_and(|driver| driver.starts_with("mlx"))
    {
        notes.push(format!(
            "MTU {mtu}: RoCE packets of 4,096 bytes need 4,200 or more"
        ));
    }
    notes
}

/// A rate with a digit behind the point where it needs one: 2.5 Gbit/s.
fn gigabits(bits: u64) -> String {
    let tenths = bits / 100_000_000;
    match tenths % 10 {
        0 => format!("{} Gbit/s", tenths / 10),
        tenth => format!("{}.{tenth} Gbit/s", tenths / 10),
    }
}

pub(crate) fn attachment_notes(attachment: &Attachment) -> Vec<String> {
    let slowed = attachment.pcie.as_ref().filter(|pcie| pcie.is_slowed());
    slowed.map(pcie_note).into_iter().collect()
}

fn pcie_note(pcie: &Pcie) -> String {
    let Pcie {
        lanes,
        most_lanes,
        speed,
        most_speed,
    } = pcie;
    format!("PCIe runs x{lanes} at {speed}, the device can x{most_lanes} at {most_speed}")
}

/// Notes about a port.
pub(crate) fn port_notes(devices: &Devices, port: &RdmaPort) -> Vec<String> {
    let mut notes = Vec::new();
    if let (Some(1), Some(rate), Some(generation)) = (port.lanes, port.rate_bps, &port.generation)
        && generation != "SDR"
    {
        let (now, most) = (rate / 1_000_000_000, rate * 4 / 1_000_000_000);
        notes.push(format!(
            "runs at {now} Gbit/s on one lane: a port of four lanes does {most} Gbit/s"
        ));
    }
    for name in port.interfaces() {
        let of_interface = devices.interfaces.iter().find(|interface| interface.name == name);
        let speed = of_interface.and_then(|interface| interface.speed_bps);
        if let (Some(speed), Some(rate)) = (speed, port.rate_bps)
            && speed.abs_diff(rate) > rate / 10
            && port.generation.as_deref() != Some("SDR")
        {
            notes.push(format!(
                "{name} says {} Gbit/s, the port {} Gbit/s",
                speed / 1_000_000_000,
                rate / 1_000_000_000
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_runs_slower_than_it_can_has_a_note() {
        let interface = |speed, most| NetworkInterface {
            speed_bps: Some(speed),
            most_speed_bps: most,
            ..NetworkInterface::default()
        };
        let (ten, forty) = (10_000_000_000, 40_000_000_000);
        assert_eq!(
            interface_notes(&interface(ten, Some(forty))),
            ["runs at 10 Gbit/s, its port can 40 Gbit/s"]
        );
        assert_eq!(
            interface_notes(&interface(2_500_000_000, Some(ten))),
            ["runs at 2.5 Gbit/s, its port can 10 Gbit/s"]
        );
        assert!(interface_notes(&interface(forty, Some(forty))).is_empty());
        assert!(interface_notes(&interface(ten, None)).is_empty());
    }
}
