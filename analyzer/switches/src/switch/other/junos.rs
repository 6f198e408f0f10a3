//! `show interfaces extensive` and `show interfaces queue` of Junos (its CLI reference, and the outputs there).

use roce_model::{Counter, value_of};

use super::super::answer::count;
use super::super::port::{Port, PortPlace};
use crate::device::Reading;

/// Bytes in a second of 1 Gbit/s.
const GIGABIT: f64 = 1.25e8;

/// Section of an interface in which a line stands.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Section {
    #[default]
    None,
    Traffic,
    InputErrors,
    OutputErrors,
    IngressQueues,
    QueueTable,
    Mac,
    Priorities,
    Transmitted,
    /// Unread: the logical interface, whose numbers the physical one has, too.
    Logical,
}

/// One physical interface.
#[derive(Default)]
struct JunosInterface<'a> {
    name: &'a str,
    section: Section,
    values: Vec<(Counter, Option<&'static str>, f64)>,
    /// Number and value of queues.
    queues: Vec<(&'a str, Counter, u64)>,
    received: [Option<u64>; 8],
    transmitted: [Option<u64>; 8],
    /// Queue of `show interfaces queue`, and its drops by reason where it has no total.
    queue: Option<&'a str>,
    drops: Option<u64>,
}

/// Lines of both commands. False if there is no physical interface.
pub(super) fn read(text: &str, reading: &mut Reading) -> bool {
    let mut open: Option<JunosInterface<'_>> = None;
    let mut is_known = false;
    for line in text.lines() {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("Physical interface: ") {
            is_known = true;
            close(open.take(), reading);
            let mut parts = rest.split(',').map(str::trim);
            let mut interface = JunosInterface {
                name: parts.next().unwrap_or_default(),
                ..JunosInterface::default()
            };
            if let Some(state) = parts.find_map(|part| part.strip_prefix("Physical link is ")) {
                interface.put(
                    Counter::SwitchInterfaceUp,
                    None,
                    f64::from(u8::from(state == "Up")),
                );
            }
            open = Some(interface);
        } else if let Some(interface) = &mut open {
            interface.line(line);
        }
    }
    close(open, reading);
    is_known
}

impl<'a> JunosInterface<'a> {
    fn put(&mut self, counter: Counter, detail: Option<&'static str>, value: f64) {
        self.values.push((counter, detail, value));
    }

    fn line(&mut self, line: &'a str) {
        if let Some(section) = section(line) {
            self.section = section;
        }
        if self.section == Section::Logical {
            return;
        }
        if let Some(rest) = line.strip_prefix("Queue: ") {
            self.end_queue();
            self.queue = rest.split(',').next().map(str::trim);
            self.section = Section::None;
            return;
        }
        match self.section {
            Section::None => self.settings(line),
            Section::Traffic => self.traffic(line),
            Section::InputErrors => self.errors(line, "received"),
            Section::OutputErrors => self.errors(line, "transmitted"),
            Section::QueueTable => self.queue_row(line),
            Section::Mac => self.mac(line),
            Section::Priorities => self.priority(line),
            Section::Transmitted => self.transmitted(line),
            Section::IngressQueues | Section::Logical => {}
        }
    }

    /// `Link-level type: Ethernet, MTU: 9216, Speed: 100Gbps, ...`.
    fn settings(&mut self, line: &str) {
        for part in line.split(',').map(str::trim) {
            if let Some(mtu) = part.strip_prefix("MTU: ").and_then(count) {
                self.put(Counter::SwitchInterfaceMtu, None, value_of(mtu));
            }
            let speed = part
                .strip_prefix("Speed: ")
                .and_then(|speed| speed.strip_suffix("Gbps"));
            if let Some(gigabits) = speed.and_then(count) {
                self.put(Counter::SwitchInterfaceRate, None, value_of(gigabits) * GIGABIT);
            }
        }
    }

    /// `Input  bytes  :  1234567890  0 bps`.
    fn traffic(&mut self, line: &str) {
        let Some((name, value)) = pair(line) else { return };
        let counter = match name.as_str() {
            "Input bytes" => Counter::SwitchInterfaceReceivedBytes,
            "Output bytes" => Counter::SwitchInterfaceTransmittedBytes,
            _ => return,
        };
        self.put(counter, None, value_of(value));
    }

    /// `Carrier transitions: 3, Errors: 0, Drops: 512, ...`.
    fn errors(&mut self, line: &str, direction: &'static str) {
        for part in line.split(',') {
            let Some((name, value)) = pair(part) else { continue };
            let (counter, detail) = match name.as_str() {
                "Errors" => (Counter::SwitchInterfaceErrors, Some(direction)),
                "Drops" => (Counter::SwitchInterfaceDiscards, Some(direction)),
                "Carrier transitions" => (Counter::SwitchInterfaceLinkChanges, None),
                _ => continue,
            };
            self.put(counter, detail, value_of(value));
        }
    }

    /// `3   1000000   1000000   0`, or with the class behind the number: queued, transmitted and dropped packets.
    fn queue_row(&mut self, line: &'a str) {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let [queue, .., queued, sent, dropped] = cells.as_slice() else {
            return;
        };
        let numbers = [count(queue), count(queued), count(sent), count(dropped)];
        if let [Some(_), Some(_), Some(sent), Some(dropped)] = numbers {
            self.queues
                .push((queue, Counter::SwitchQueueTransmittedPackets, sent));
            self.queues
                .push((queue, Counter::SwitchQueueDroppedPackets, dropped));
        }
    }

    /// `CRC/Align errors   0   0`: received and sent.
    fn mac(&mut self, line: &str) {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let [name @ .., received, sent] = cells.as_slice() else {
            return;
        };
        let (Some(received), Some(sent)) = (count(received), count(sent)) else {
            return;
        };
        let packets = |cast| {
            [
                (Counter::SwitchInterfaceReceivedPackets, Some(cast), received),
                (Counter::SwitchInterfaceTransmittedPackets, Some(cast), sent),
            ]
        };
        let found = match name.join(" ").as_str() {
            "Unicast packets" => packets("unicast"),
            "Broadcast packets" => packets("broadcast"),
            "Multicast packets" => packets("multicast"),
            "MAC pause frames" => [
                (Counter::SwitchPauseReceivedFrames, None, received),
                (Counter::SwitchPauseTransmittedFrames, None, sent),
            ],
            "CRC/Align errors" => {
                return self.put(Counter::SwitchInterfaceFcsErrors, None, value_of(received));
            }
            _ => return,
        };
        for (counter, detail, value) in found {
            self.put(counter, detail, value_of(value));
        }
    }

    /// `Priority :  3   41   1207`: PFC frames, received and sent.
    fn priority(&mut self, line: &str) {
        let cells: Vec<&str> = line.split([' ', ':']).filter(|cell| !cell.is_empty()).collect();
        let ["Priority", priority, received, sent] = cells.as_slice() else {
            return;
        };
        let place = priority.parse::<usize>().ok().filter(|place| *place < 8);
        if let Some(place) = place {
            self.received[place] = count(received);
            self.transmitted[place] = count(sent);
        }
    }

    /// Lines behind `Transmitted:` of a queue.
    fn transmitted(&mut self, line: &'a str) {
        let (Some(queue), Some((name, value))) = (self.queue, pair(line)) else {
            return;
        };
        let counter = match name.as_str() {
            "Packets" => Counter::SwitchQueueTransmittedPackets,
            "Bytes" => Counter::SwitchQueueTransmittedBytes,
            "ECN-CE packets" => Counter::SwitchQueueEcnMarkedPackets,
            "Total-dropped packets" => {
                self.drops = None;
                Counter::SwitchQueueDroppedPackets
            }
            "Tail-dropped packets" | "RL-dropped packets" | "RED-dropped packets" => {
                self.drops = Some(self.drops.unwrap_or(0).saturating_add(value));
                return;
            }
            _ => return,
        };
        self.queues.push((queue, counter, value));
    }

    fn end_queue(&mut self) {
        if let (Some(queue), Some(drops)) = (self.queue.take(), self.drops.take()) {
            let has_total = self
                .queues
                .iter()
                .any(|(known, counter, _)| *known == queue && *counter == Counter::SwitchQueueDroppedPackets);
            if !has_total {
                self.queues
                    .push((queue, Counter::SwitchQueueDroppedPackets, drops));
            }
        }
    }
}

/// The section that a line begins.
fn section(line: &str) -> Option<Section> {
    const SECTIONS: [(&str, Section); 12] = [
        ("Logical interface ", Section::Logical),
        ("Traffic statistics:", Section::Traffic),
        ("Input errors:", Section::InputErrors),
        ("Output errors:", Section::OutputErrors),
        ("Ingress queues:", Section::IngressQueues),
        ("Egress queues:", Section::None),
        ("Queue number:", Section::None),
        ("MAC statistics:", Section::Mac),
        ("MAC Priority Flow Control Statistics", Section::Priorities),
        ("Transmitted:", Section::Transmitted),
        ("Queued:", Section::None),
        ("Filter statistics:", Section::None),
    ];
    let begins = |start: &str| {
        line.len() >= start.len()
            && line.is_char_boundary(start.len())
            && line[..start.len()].eq_ignore_ascii_case(start)
    };
    if begins("Queue counters:") {
        return Some(Section::QueueTable);
    }
    let found = SECTIONS.iter().find(|(start, _)| begins(start));
    found.map(|(_, section)| *section)
}

/// A name with single blanks, and the number behind its colon.
fn pair(line: &str) -> Option<(String, u64)> {
    let (name, value) = line.split_once(':')?;
    let name: Vec<&str> = name.split_whitespace().collect();
    Some((name.join(" "), count(value.split_whitespace().next()?)?))
}

/// Adds an interface to the reading.
fn close(interface: Option<JunosInterface<'_>>, reading: &mut Reading) {
    let Some(mut interface) = interface else { return };
    interface.end_queue();
    let Some(mut port) = Port::other(reading, interface.name) else {
        return;
    };
    for (counter, detail, value) in interface.values {
        let place = detail.map_or_else(PortPlace::default, PortPlace::detail);
        port.put(counter, place, Some(value));
    }
    for (queue, counter, value) in interface.queues {
        let place = PortPlace::queue(queue);
        let place = if counter == Counter::SwitchQueueEcnMarkedPackets {
            place
        } else {
            place.with("all")
        };
        port.put(counter, place, Some(value_of(value)));
    }
    if interface
        .received
        .iter()
        .chain(&interface.transmitted)
        .any(Option::is_some)
    {
        port.put_pfc(&interface.received, &interface.transmitted);
    }
}
