//! Dell OS10: `show queuing statistics`, `show interface` and its PFC (OS10 Enterprise Edition User Guide).

use roce_model::{Counter, value_of};

use super::super::answer::count;
use super::super::port::{Port, PortPlace};
use crate::device::Reading;

/// PFC frames of the classes.
type Frames = [Option<u64>; 8];

/// `show queuing statistics interface ...`: below the interface a row for each queue. False if there is no such table.
pub(super) fn queues(text: &str, reading: &mut Reading) -> bool {
    let mut name = "";
    let mut headings: Vec<&str> = Vec::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split_whitespace().collect();
        match cells.as_slice() {
            ["Interface", named] => (name, headings) = (named, Vec::new()),
            ["Interface", kind, number] if kind.eq_ignore_ascii_case("ethernet") => {
                (name, headings) = (number, Vec::new());
            }
            ["Queue", rest @ ..] if rest.contains(&"Packets") => headings = rest.to_vec(),
            [queue, values @ ..] if !headings.is_empty() && values.len() == headings.len() => {
                let (Some(_), Some(mut port)) = (count(queue), port_of(reading, name)) else {
                    continue;
                };
                for (heading, value) in headings.iter().zip(values) {
                    let counter = match *heading {
                        "Packets" => Counter::SwitchQueueTransmittedPackets,
                        "Bytes" => Counter::SwitchQueueTransmittedBytes,
                        "Dropped-Packets" => Counter::SwitchQueueDroppedPackets,
                        "Dropped-Bytes" => Counter::SwitchQueueDroppedBytes,
                        _ => continue,
                    };
                    let place = PortPlace::queue(queue).with("all");
                    port.put(counter, place, count(value).map(value_of));
                }
            }
            _ => {}
        }
    }
    !headings.is_empty()
}

/// `show interface`: paragraphs with statistics of both directions. False if there is none.
pub(super) fn interfaces(text: &str, reading: &mut Reading) -> bool {
    let mut name = String::new();
    let mut direction: Option<&'static str> = None;
    let mut is_known = false;
    for line in text.lines() {
        if let Some((named, state)) = line
            .split_once(" is ")
            .filter(|(_, state)| state.contains("line protocol is"))
        {
            // `Ethernet 1/1/1` and `ethernet1/1/1` are one name.
            name = named.trim().replace(' ', "");
            direction = None;
            is_known = true;
            let is_up = f64::from(u8::from(state.trim_end().ends_with("is up")));
            if let Some(mut port) = port_of(reading, &name) {
                port.put(Counter::SwitchInterfaceUp, PortPlace::default(), Some(is_up));
            }
            continue;
        }
        direction = match line.trim() {
            "Input statistics:" => Some("received"),
            "Output statistics:" => Some("transmitted"),
            other if other.starts_with("Rate Info") || other.starts_with("Rate info") => None,
            _ => direction,
        };
        let Some(mut port) = port_of(reading, &name) else {
            continue;
        };
        let Some(direction) = direction else {
            let mtu = line
                .trim()
                .strip_prefix("MTU ")
                .and_then(|rest| rest.split(' ').next());
            port.put(
                Counter::SwitchInterfaceMtu,
                PortPlace::default(),
                mtu.and_then(count).map(value_of),
            );
            continue;
        };
        let is_received = direction == "received";
        for part in line.split(',') {
            let Some((value, noun)) = part.trim().split_once(' ') else {
                continue;
            };
            let packets = if is_received {
                Counter::SwitchInterfaceReceivedPackets
            } else {
                Counter::SwitchInterfaceTransmittedPackets
            };
            let (counter, detail) = match noun.trim() {
                "octets" if is_received => (Counter::SwitchInterfaceReceivedBytes, None),
                "octets" => (Counter::SwitchInterfaceTransmittedBytes, None),
                "Unicasts" => (packets, Some("unicast")),
                "Multicasts" => (packets, Some("multicast")),
                "Broadcasts" => (packets, Some("broadcast")),
                "discarded" => (Counter::SwitchInterfaceDiscards, Some(direction)),
                "CRC" => (Counter::SwitchInterfaceFcsErrors, None),
                _ => continue,
            };
            let place = detail.map_or_else(PortPlace::default, PortPlace::detail);
            port.put(counter, place, count(value).map(value_of));
        }
    }
    is_known
}

/// `show interface ... priority-flow-control details`: priorities that are on, and frames by class. False if there is none.
pub(super) fn pfc(text: &str, reading: &mut Reading) -> bool {
    let mut name = "";
    let mut frames: Option<[Frames; 2]> = None;
    let mut is_known = false;
    for line in text.lines() {
        let cells: Vec<&str> = line.split_whitespace().collect();
        match cells.as_slice() {
            [named] if named.to_ascii_lowercase().starts_with("ethernet") => {
                close(name, frames.take(), reading);
                name = named;
            }
            ["PFC", "Priorities:", list @ ..] => {
                is_known = true;
                let on: Vec<u8> = list
                    .iter()
                    .flat_map(|word| word.split(','))
                    .filter_map(|word| word.parse().ok())
                    .collect();
                if let Some(mut port) = port_of(reading, name) {
                    for priority in 0..8_u8 {
                        let is_on = f64::from(u8::from(on.contains(&priority)));
                        port.put(
                            Counter::SwitchPfcEnabled,
                            PortPlace::priority(priority),
                            Some(is_on),
                        );
                    }
                }
            }
            ["Cos", "Rx", "Tx"] => frames = Some([[None; 8]; 2]),
            [class, received, sent] => {
                if let (Some([all_received, all_sent]), Ok(class)) = (&mut frames, class.parse::<usize>())
                    && class < 8
                {
                    is_known = true;
                    all_received[class] = count(received);
                    all_sent[class] = count(sent);
                }
            }
            _ => {}
        }
    }
    close(name, frames, reading);
    is_known
}

fn close(name: &str, frames: Option<[Frames; 2]>, reading: &mut Reading) {
    if let (Some([received, sent]), Some(mut port)) = (frames, port_of(reading, name)) {
        port.put_pfc(&received, &sent);
    }
}

/// `ethernet1/1/1`, `Ethernet1/1/1` or the number alone.
fn port_of<'r>(reading: &'r mut Reading, name: &str) -> Option<Port<'r>> {
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        return Port::other(reading, &format!("ethernet{name}"));
    }
    Port::other(reading, name)
}
