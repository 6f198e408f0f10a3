//! The interfaces and RDMA devices of a host: for people, and as JSON.

pub(crate) mod notes;

use std::io::Write;

use roce_model::text::escape_json;
use roce_model::{Attachment, Devices, NetworkInterface, RdmaDevice};
use serde_json::{Value, json};

use crate::Error;
use crate::terminal::Style;
use crate::terminal::devices::lines;
use notes::{attachment_notes, device_capture, interface_capture, interface_notes, port_notes, rdma_ports};

/// Writes the list for people.
///
/// # Errors
/// When it cannot be written.
pub fn text(devices: &Devices, style: &Style, out: &mut impl Write) -> Result<(), Error> {
    out.write_all(lines(devices, style).as_bytes())
        .and_then(|()| out.flush())
        .map_err(Error::Text)
}

/// Writes the list as one JSON document. Absent is null; rates are in bit/s.
///
/// # Errors
/// When it cannot be written.
pub fn json(devices: &Devices, out: &mut impl Write) -> Result<(), Error> {
    let document = json!({
        "schema_version": crate::json::SCHEMA_VERSION,
        "rdma_sniffer": devices.sniffer,
        "interfaces": devices.interfaces.iter().map(|interface| interface_value(devices, interface)).collect::<Vec<_>>(),
        "rdma": devices.rdma.iter().map(|device| device_value(devices, device)).collect::<Vec<_>>(),
    });
    writeln!(out, "{}", escape_json(&format!("{document:#}")))
        .and_then(|()| out.flush())
        .map_err(Error::Text)
}

fn attachment_keys(attachment: &Attachment) -> [(&'static str, Value); 4] {
    let pcie = attachment.pcie.as_ref().map(|pcie| {
        json!({
            "lanes": pcie.lanes,
            "max_lanes": pcie.most_lanes,
            "speed": pcie.speed,
            "max_speed": pcie.most_speed,
        })
    });
    [
        ("driver", json!(attachment.driver)),
        ("numa_node", json!(attachment.numa_node)),
        ("sriov_parent", json!(attachment.parent)),
        ("pcie", json!(pcie)),
    ]
}

fn object(mut object: Value, more: [(&'static str, Value); 4]) -> Value {
    for (key, value) in more {
        object[key] = value;
    }
    object
}

fn interface_value(devices: &Devices, interface: &NetworkInterface) -> Value {
    let about = json!({
        "name": interface.name,
        "state": interface.state,
        "mtu": interface.mtu,
        "speed_bps": interface.speed_bps,
        "max_speed_bps": interface.most_speed_bps,
        "address": interface.address,
        "rdma": rdma_ports(devices, &interface.name),
        "capture": interface_capture(devices, interface),
        "notes": interface_notes(interface),
    });
    object(about, attachment_keys(&interface.attachment))
}

fn device_value(devices: &Devices, device: &RdmaDevice) -> Value {
    let ports: Vec<Value> = device
        .ports
        .iter()
        .map(|port| {
            let gids: Vec<Value> = port
                .gids
                .iter()
                .map(|gid| {
                    json!({
                        "index": gid.index,
                        "gid": gid.gid,
                        "version": gid.version,
                        "ip": gid.ip.map(|ip| ip.to_string()),
                        "interface": gid.interface,
                    })
                })
                .collect();
            json!({
                "port": port.number,
                "state": port.state,
                "physical_state": port.physical,
                "link_layer": port.link_layer,
                "rate_bps": port.rate_bps,
                "lanes": port.lanes,
                "generation": port.generation,
                "interfaces": port.interfaces(),
                "gids": gids,
                "notes": port_notes(devices, port),
            })
        })
        .collect();
    let about = json!({
        "name": device.name,
        "firmware": device.firmware,
        "ports": ports,
        "capture": device_capture(devices, device),
        "notes": attachment_notes(&device.attachment),
    });
    object(about, attachment_keys(&device.attachment))
}
