//! The list of interfaces and RDMA devices, laid out for the terminal.

use roce_model::cast::float;
use roce_model::{Devices, Gid, RdmaDevice, RdmaPort};

use super::grid::{Column, lay};
use super::ink::{self, Ink, clean, width};
use super::style::Style;
use crate::devices::notes::{device_capture, interface_capture, interface_notes, port_notes, rdma_ports};
use roce_spelling::{ABSENT, count, rate_of};

/// Three digits of a rate.
fn speed(bits: Option<u64>) -> String {
    bits.map_or_else(|| ABSENT.to_owned(), |bits| rate_of(float(bits)))
}

fn known(text: Option<&str>) -> String {
    text.map_or_else(|| ABSENT.to_owned(), clean)
}

/// All lines, painted.
pub(crate) fn lines(devices: &Devices, style: &Style) -> String {
    let mut lines = Vec::new();
    let interfaces = &devices.interfaces;
    let columns = vec![
        Column::new("interface", false, 0, interfaces, |found| clean(&found.name)),
        Column::new("state", false, 0, interfaces, |found| clean(&found.state)),
        Column::new("MTU", true, 1, interfaces, |found| {
            found
                .mtu
                .map_or_else(|| ABSENT.to_owned(), |mtu| count(mtu.into()))
        }),
        Column::new("speed", true, 1, interfaces, |found| speed(found.speed_bps)),
        Column::new("driver", false, 2, interfaces, |found| {
            known(found.attachment.driver.as_deref())
        }),
        Column::new("NUMA", true, 4, interfaces, |found| {
            found
                .attachment
                .numa_node
                .map_or_else(|| ABSENT.to_owned(), |node| node.to_string())
        }),
        Column::new("part of", false, 5, interfaces, |found| {
            known(found.attachment.parent.as_deref())
        })
        .unless_zero(),
        Column::new("RDMA", false, 3, interfaces, |found| {
            let rdma = rdma_ports(devices, &found.name);
            if rdma.is_empty() {
                ABSENT.to_owned()
            } else {
                clean(&rdma.join(" "))
            }
        }),
    ];
    if interfaces.is_empty() {
        lines.push(" no network interface".to_owned());
    } else {
        lines.extend(lay(columns, None, style));
    }
    lines.push(String::new());
    if devices.rdma.is_empty() {
        lines.push(" no RDMA device".to_owned());
    } else {
        lines.extend(ports(devices, style));
        let gids: Vec<(String, &Gid)> = devices
            .rdma
            .iter()
            .flat_map(|device| device.ports.iter().map(move |port| (device, port)))
            .flat_map(|(device, port)| {
                port.gids
                    .iter()
                    .map(move |gid| (format!("{}:{}", device.name, port.number), gid))
            })
            .collect();
        if !gids.is_empty() {
            lines.push(String::new());
            lines.extend(lay(addresses(&gids), None, style));
        }
    }
    let kernel = interfaces
        .iter()
        .map(|interface| (interface.name.clone(), interface_capture(devices, interface)));
    let sniffer = devices
        .rdma
        .iter()
        .map(|device| (device.name.clone(), device_capture(devices, device)));
    notes_under(
        &mut lines,
        "what can be captured",
        &kernel.chain(sniffer).collect::<Vec<_>>(),
        style,
    );
    notes_under(&mut lines, "to look at", &notes(devices), style);
    ink::paint(&lines.join("\n"), style.color)
}

/// The ports of all RDMA devices.
fn ports(devices: &Devices, style: &Style) -> Vec<String> {
    let ports: Vec<(&RdmaDevice, &RdmaPort)> = devices
        .rdma
        .iter()
        .flat_map(|device| device.ports.iter().map(move |port| (device, port)))
        .collect();
    let columns = vec![
        Column::new("RDMA port", false, 0, &ports, |(device, port)| {
            clean(&format!("{}:{}", device.name, port.number))
        }),
        Column::new("state", false, 0, &ports, |(_, port)| clean(&port.state)),
        Column::new("link", false, 3, &ports, |(_, port)| clean(&port.link_layer)),
        Column::new("rate", true, 0, &ports, |(_, port)| speed(port.rate_bps)),
        Column::new("width", false, 1, &ports, |(_, port)| {
            match (port.lanes, &port.generation) {
                (Some(lanes), Some(generation)) => clean(&format!("{lanes}X {generation}")),
                _ => ABSENT.to_owned(),
            }
        }),
        Column::new("interface", false, 2, &ports, |(_, port)| {
            let names = port.interfaces();
            if names.is_empty() {
                ABSENT.to_owned()
            } else {
                clean(&names.join(" "))
            }
        }),
        Column::new("driver", false, 2, &ports, |(device, _)| {
            known(device.attachment.driver.as_deref())
        }),
        Column::new("NUMA", true, 4, &ports, |(device, _)| {
            device
                .attachment
                .numa_node
                .map_or_else(|| ABSENT.to_owned(), |node| node.to_string())
        }),
        Column::new("part of", false, 5, &ports, |(device, _)| {
            known(device.attachment.parent.as_deref())
        })
        .unless_zero(),
        Column::new("firmware", false, 6, &ports, |(device, _)| {
            known(device.firmware.as_deref())
        }),
    ];
    lay(columns, None, style)
}

fn addresses(gids: &[(String, &Gid)]) -> Vec<Column> {
    vec![
        Column::new("RDMA port", false, 0, gids, |(port, _)| clean(port)),
        Column::new("GID", true, 0, gids, |(_, gid)| gid.index.to_string()),
        Column::new("version", false, 0, gids, |(_, gid)| {
            known(gid.version.as_deref())
        }),
        Column::new("address", false, 0, gids, |(_, gid)| {
            gid.ip.map_or_else(|| clean(&gid.gid), |ip| ip.to_string())
        }),
        Column::new("interface", false, 1, gids, |(_, gid)| {
            known(gid.interface.as_deref())
        }),
    ]
}

/// Notes with their places.
fn notes(devices: &Devices) -> Vec<(String, String)> {
    let mut notes = Vec::new();
    for interface in &devices.interfaces {
        for note in interface_notes(interface) {
            notes.push((interface.name.clone(), note));
        }
    }
    for device in &devices.rdma {
        for port in &device.ports {
            for note in port_notes(devices, port) {
                notes.push((format!("{}:{}", device.name, port.number), note));
            }
        }
    }
    notes
}

/// Notes about devices, under a title; nothing where there are none.
fn notes_under(lines: &mut Vec<String>, title: &str, sayings: &[(String, String)], style: &Style) {
    let Some(widest) = sayings.iter().map(|(name, _)| width(&clean(name))).max() else {
        return;
    };
    lines.push(String::new());
    lines.push(format!(" {}", Ink::Bold.paint(title)));
    let room = style.width.saturating_sub(4 + widest).max(30);
    for (name, text) in sayings {
        let mut name = clean(name);
        for line in textwrap::wrap(text, room) {
            let blanks = " ".repeat(widest - width(&name));
            lines.push(format!("  {name}{blanks}  {}", clean(&line)));
            name.clear();
        }
    }
}
