//! The text of `show queuing interface`, of three generations.
//!
//! Headings are lines, and one that is lost must not give its numbers to the interface before: a table of egress behind one of ingress
//! belongs to an interface whose heading is missing.

use roce_model::Counter;

use super::super::json::number;
use super::super::pfc::Frames;
use super::super::sink::{NumberPlace, Sink, queue_of};
use super::statistic::{
    Casts, egress_statistic, ingress_queue, ingress_statistic, queue_statistic, slice_statistic, split_unit,
};
use crate::switch::interface::Interface;

/// Where a line is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Egress,
    Ingress,
    /// `Ethernet1/2 queuing information:` of the Nexus 5000 and 6000.
    Legacy,
}

/// The table of statistics that a line belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Statistics {
    None,
    Egress,
    Ingress,
    Slice,
}

pub(super) fn read(text: &str, command: &str, sink: &mut Sink<'_>) -> bool {
    let mut reader = Reader {
        command,
        sink,
        interface: None,
        direction: Direction::Egress,
        statistics: Statistics::None,
        queue: None,
        is_by_cast: false,
        has_oobfc: false,
        frames: Frames::default(),
        is_receiving_first: false,
        has_received: false,
        is_known: false,
    };
    for line in text.lines() {
        reader.line(line.trim());
    }
    reader.end_interface();
    reader.is_known
}

struct Reader<'s, 'r> {
    command: &'s str,
    sink: &'s mut Sink<'r>,
    interface: Option<Interface>,
    direction: Direction,
    statistics: Statistics,
    queue: Option<String>,
    /// True if the queue has the heading of columns by cast.
    is_by_cast: bool,
    /// True if this heading has the column of out-of-band flow control.
    has_oobfc: bool,
    frames: Frames,
    /// True if the PFC table has the received frames ahead of the transmitted ones.
    is_receiving_first: bool,
    /// True behind `RX Queuing` of the older generation.
    has_received: bool,
    is_known: bool,
}

impl Reader<'_, '_> {
    fn line(&mut self, line: &str) {
        if let Some((direction, name)) = heading(line) {
            self.begin(direction, name);
        } else if self.direction == Direction::Legacy {
            self.legacy(line);
        } else if line.starts_with('|') {
            self.queue_row(line);
        } else if line.starts_with("QoS-Group#") {
            self.statistics = Statistics::None;
            // Only the egress table has bandwidths.
            if line.contains("Bandwidth") {
                self.egress_only();
            }
        } else if line.ends_with("Statistics") {
            self.statistics = match line {
                "Port Egress Statistics" | "Per Port Egress Statistics" => Statistics::Egress,
                "Port Ingress Statistics" | "Per Port Ingress Statistics" => Statistics::Ingress,
                "Per Slice Ingress Statistics" => Statistics::Slice,
                _ => Statistics::None,
            };
        } else if line.starts_with("TxPPP") || line.starts_with("RxPPP") {
            self.totals(line);
        } else if line.contains("TxCount") && line.contains("RxCount") {
            self.is_receiving_first = line.find("RxCount") < line.find("TxCount");
        } else {
            self.row(line);
        }
    }

    /// A heading with an interface.
    fn begin(&mut self, direction: Direction, name: &str) {
        self.is_known = true;
        let interface = self.sink.interface(name);
        // The ingress of a port follows its egress: it is the same interface.
        if direction != Direction::Ingress || interface != self.interface {
            self.end_interface();
        }
        self.interface = interface;
        self.direction = direction;
        self.statistics = Statistics::None;
        self.queue = None;
        self.is_by_cast = false;
        self.has_oobfc = false;
        self.has_received = false;
    }

    /// Adds what was gathered of the interface.
    fn end_interface(&mut self) {
        let frames = std::mem::take(&mut self.frames);
        if let Some(interface) = self.interface.take() {
            frames.add(&interface, self.command, self.sink);
        }
        self.queue = None;
    }

    /// A line that only egress has. Behind ingress, it belongs to an interface whose heading is missing.
    fn egress_only(&mut self) {
        if self.direction == Direction::Ingress {
            self.end_interface();
        }
    }

    /// A line with bars: a queue's name, the heading of its columns, or its values.
    fn queue_row(&mut self, line: &str) {
        self.egress_only();
        self.statistics = Statistics::None;
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        match cells[..] {
            [name] if name.contains("QOS GROUP") => {
                self.queue = queue_of(name);
                self.is_by_cast = false;
                self.has_oobfc = false;
            }
            [_, "Unicast", ..] => {
                // A second heading belongs to a queue whose name is missing.
                if self.is_by_cast {
                    self.queue = None;
                }
                self.is_by_cast = true;
                self.has_oobfc = cells.iter().any(|cell| cell.contains("OOBFC"));
            }
            // A row that is not counted by cast belongs to a queue whose name is missing.
            [_, _] | [_, _, _, _] if self.is_by_cast && !self.fits(&cells) => self.queue = None,
            // Two statistics in one line, each with one value.
            [name, value, second, other] if split_unit(second).is_some() => {
                self.queue_statistic(
                    name,
                    &Casts {
                        all: number(value),
                        ..Casts::default()
                    },
                );
                self.queue_statistic(
                    second,
                    &Casts {
                        all: number(other),
                        ..Casts::default()
                    },
                );
            }
            [name, value] => self.queue_statistic(
                name,
                &Casts {
                    all: number(value),
                    ..Casts::default()
                },
            ),
            [name, unicast, multicast] if !self.has_oobfc => {
                let (unicast, multicast) = (number(unicast), number(multicast));
                let casts = Casts {
                    unicast,
                    multicast,
                    lacks: unicast.is_none() || multicast.is_none(),
                    ..Casts::default()
                };
                self.queue_statistic(name, &casts);
            }
            [name, unicast, oobfc, multicast] => {
                let (unicast, oobfc, multicast) = (number(unicast), number(oobfc), number(multicast));
                let casts = Casts {
                    unicast,
                    oobfc,
                    multicast,
                    all: None,
                    lacks: unicast.is_none() || oobfc.is_none() || multicast.is_none(),
                };
                self.queue_statistic(name, &casts);
            }
            _ => {}
        }
    }

    /// True if a row has a value for each column of the queue's heading.
    fn fits(&self, cells: &[&str]) -> bool {
        let is_pair = cells.get(2).is_some_and(|second| split_unit(second).is_some());
        !is_pair && cells.len() == if self.has_oobfc { 4 } else { 3 }
    }

    fn queue_statistic(&mut self, words: &str, casts: &Casts) {
        let (Some(interface), Some(queue)) = (&self.interface, &self.queue) else {
            return;
        };
        if let Some((name, unit)) = split_unit(words) {
            queue_statistic(interface, queue, name, unit, casts, self.sink);
        }
    }

    /// `TxPPP:  0,   RxPPP:  0`.
    fn totals(&mut self, line: &str) {
        for part in line.split(", ") {
            let Some((name, value)) = part.split_once(':') else {
                continue;
            };
            let value = number(value.trim().trim_end_matches(','));
            match name.trim() {
                "TxPPP" => self.frames.transmitted = value,
                "RxPPP" => self.frames.received = value,
                _ => {}
            }
        }
        self.statistics = Statistics::None;
    }

    /// A row of words: a lossless queue, a priority, or a statistic of the port.
    fn row(&mut self, line: &str) {
        let Some(interface) = self.interface.clone() else {
            return;
        };
        if self.statistics != Statistics::None {
            // `Ingress MMU Drop Pkts      256066`.
            if let Some((words, value)) = line.rsplit_once(char::is_whitespace)
                && let Some((name, unit)) = split_unit(words)
            {
                let add = match self.statistics {
                    Statistics::Egress => egress_statistic,
                    Statistics::Slice => slice_statistic,
                    _ => ingress_statistic,
                };
                add(&interface, name, unit, number(value), self.sink);
            }
            return;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            // `3  3  0  Inactive  0  Inactive  0`: priority, group, and in some releases the priority group.
            [cos, _, .., state, first, other, second]
                if matches!(words.len(), 6 | 7) && is_state(state) && is_state(other) =>
            {
                let Some(priority) = cos.parse::<usize>().ok().filter(|cos| *cos < 8) else {
                    return;
                };
                let (transmitted, received) = if self.is_receiving_first {
                    (second, first)
                } else {
                    (first, second)
                };
                self.frames.transmitted_of[priority] = number(transmitted);
                self.frames.received_of[priority] = number(received);
            }
            // `3  131072  38400  37440  10(D)`: group, size, pause, resume, and in some releases the limit.
            [group, _, pause, resume] | [group, _, pause, resume, _]
                if self.direction == Direction::Ingress =>
            {
                if let Some(queue) = queue_of(group) {
                    ingress_queue(&interface, &queue, Some(pause), Some(resume), self.sink);
                }
            }
            _ => {}
        }
    }

    /// A line of the older generation. Its queues are those of ingress.
    fn legacy(&mut self, line: &str) {
        if line == "TX Queuing" {
            if self.has_received {
                self.end_interface();
            }
        } else if line == "RX Queuing" {
            self.has_received = true;
        } else if let Some(group) = line.strip_prefix("qos-group ") {
            // The heading of the table of egress starts so, too.
            self.queue = queue_of(group);
        } else if let (Some(interface), Some(queue)) = (&self.interface, &self.queue) {
            let place = NumberPlace::queue(interface, queue);
            if let Some(value) = line.strip_prefix("Pkts discarded on ingress") {
                let value = number(value.trim_start_matches([' ', ':', '\t']));
                self.sink
                    .put(place, Counter::SwitchPriorityGroupDroppedPackets, &[], value);
            } else if let Some(kind) = line.strip_prefix("drop-type:") {
                let is_lossless = u64::from(kind.trim_start().starts_with("no-drop"));
                self.sink
                    .put(place, Counter::SwitchQueueNoDrop, &[], Some(is_lossless));
            }
        }
    }
}

fn is_state(word: &str) -> bool {
    word == "-" || word.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// The direction and the interface of a heading.
fn heading(line: &str) -> Option<(Direction, &str)> {
    if let Some(rest) = line.strip_prefix("Egress Queuing for ") {
        return Some((Direction::Egress, rest.split_whitespace().next()?));
    }
    if let Some(rest) = line.strip_prefix("Ingress Queuing for ") {
        return Some((Direction::Ingress, rest.split_whitespace().next()?));
    }
    let name = line
        .strip_suffix(':')?
        .trim_end()
        .strip_suffix("queuing information")?;
    Some((Direction::Legacy, name.trim()))
}
