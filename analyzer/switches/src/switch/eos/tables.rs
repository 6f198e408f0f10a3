//! Tables of Arista EOS' command line. Their rows are known by their form: an interface, and as many numbers as the table has columns
//! (AMD's node-scraper: `Port TxQ Counter/pkts Counter/bytes Drop/pkts Drop/bytes`; `Port InDroppedPkts OutUcDroppedPkts
//! OutMcDroppedPkts`).

use roce_model::{Counter, value_of};

use super::super::answer::count;
use super::super::paragraphs;
use super::super::port::{Port, PortPlace};
use crate::device::Reading;

/// Columns of the tables of counters, of errors and of discards, by their headings. Kinds of errors that are part of the sums are left out.
const COUNTS: [(&str, Counter, Option<&str>); 13] = [
    ("FCS", Counter::SwitchInterfaceFcsErrors, None),
    ("Rx", Counter::SwitchInterfaceErrors, Some("received")),
    ("Tx", Counter::SwitchInterfaceErrors, Some("transmitted")),
    ("InDiscards", Counter::SwitchInterfaceDiscards, Some("received")),
    (
        "OutDiscards",
        Counter::SwitchInterfaceDiscards,
        Some("transmitted"),
    ),
    ("InOctets", Counter::SwitchInterfaceReceivedBytes, None),
    (
        "InUcastPkts",
        Counter::SwitchInterfaceReceivedPackets,
        Some("unicast"),
    ),
    (
        "InMcastPkts",
        Counter::SwitchInterfaceReceivedPackets,
        Some("multicast"),
    ),
    (
        "InBcastPkts",
        Counter::SwitchInterfaceReceivedPackets,
        Some("broadcast"),
    ),
    ("OutOctets", Counter::SwitchInterfaceTransmittedBytes, None),
    (
        "OutUcastPkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("unicast"),
    ),
    (
        "OutMcastPkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("multicast"),
    ),
    (
        "OutBcastPkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("broadcast"),
    ),
];

/// Columns of the table of queues.
const QUEUES: [Counter; 4] = [
    Counter::SwitchQueueTransmittedPackets,
    Counter::SwitchQueueTransmittedBytes,
    Counter::SwitchQueueDroppedPackets,
    Counter::SwitchQueueDroppedBytes,
];

/// `show priority-flow-control counters`: interface, received and sent frames. False if there is no such table.
pub(super) fn pfc(text: &str, reading: &mut Reading) -> bool {
    let mut is_table = false;
    for cells in rows(text) {
        match cells.as_slice() {
            ["Port", "RxPfc", "TxPfc"] => is_table = true,
            [name, received, transmitted] if is_table => {
                if let Some(mut port) = Port::new(reading, name) {
                    port.put(
                        Counter::SwitchPfcReceivedFrames,
                        PortPlace::default(),
                        count(received).map(value_of),
                    );
                    port.put(
                        Counter::SwitchPfcTransmittedFrames,
                        PortPlace::default(),
                        count(transmitted).map(value_of),
                    );
                }
            }
            _ => {}
        }
    }
    is_table
}

/// `show interfaces counters`, `... errors` and `... discards`: an interface, and a number below each heading (EOS manual, Ethernet ports).
/// False if there is no such table.
pub(super) fn counts(text: &str, reading: &mut Reading) -> bool {
    let column = |heading: &str| COUNTS.iter().find(|(name, ..)| *name == heading);
    let mut headings: Vec<&str> = Vec::new();
    for cells in rows(text) {
        match cells.as_slice() {
            ["Port", columns @ ..] => headings = columns.to_vec(),
            [name, values @ ..] if values.len() == headings.len() => {
                let Some(mut port) = Port::new(reading, name) else {
                    continue;
                };
                for (heading, value) in headings.iter().zip(values) {
                    if let Some((_, counter, detail)) = column(heading) {
                        let place = detail.map_or_else(PortPlace::default, PortPlace::detail);
                        port.put(*counter, place, count(value).map(value_of));
                    }
                }
            }
            _ => {}
        }
    }
    headings.iter().any(|heading| column(heading).is_some())
}

/// Tables of queues: releases print each of them for `show interfaces counters queue` and its forms. False if there is none.
pub(super) fn any_queues(text: &str, reading: &mut Reading) -> bool {
    let mut is_table = false;
    for read in [queues, drops, classes] {
        is_table |= read(text, reading);
    }
    is_table
}

/// `show interfaces counters queue` of chips with virtual output queues: below the headings `Port Class EnqPkts EnqOctets DropPkts
/// DropOctets` a line with the interface and its class (`TC3`), then `VOQ` and `Egress queue` with their numbers, or all in one line.
/// Drops of both are summed; packets leave by the egress queue. False if there is no such table.
fn classes(text: &str, reading: &mut Reading) -> bool {
    const HEADINGS: [&str; 4] = ["EnqPkts", "EnqOctets", "DropPkts", "DropOctets"];
    let mut is_table = false;
    // Sums by interface and class, in the order of the text: numbers of [`QUEUES`].
    let mut sums: Vec<(&str, &str, [Option<u64>; 4])> = Vec::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split_whitespace().take(16).collect();
        let numbers = match cells.as_slice() {
            ["Port", _, headings @ ..] => {
                is_table = is_table || *headings == HEADINGS;
                continue;
            }
            _ if !is_table => continue,
            ["VOQ", numbers @ ..] => (false, numbers),
            ["Egress", "queue", numbers @ ..] => (true, numbers),
            [name, class, numbers @ ..] => {
                let Some(number) = class.strip_prefix("TC").filter(|number| count(number).is_some()) else {
                    continue;
                };
                sums.push((name, number, [None; 4]));
                (true, numbers)
            }
            _ => continue,
        };
        let ((is_egress, numbers), Some((_, _, sum))) = (numbers, sums.last_mut()) else {
            continue;
        };
        if numbers.len() != HEADINGS.len() {
            continue;
        }
        for (at, value) in numbers.iter().enumerate() {
            let is_drop = at >= 2;
            if let Some(value) = count(value).filter(|_| is_egress || is_drop) {
                sum[at] = Some(sum[at].unwrap_or(0).saturating_add(value));
            }
        }
    }
    for (name, number, sum) in sums {
        if let Some(mut port) = Port::new(reading, name) {
            for (counter, value) in QUEUES.into_iter().zip(sum) {
                port.put(counter, PortPlace::queue(number).with("all"), value.map(value_of));
            }
        }
    }
    is_table
}

/// `show priority-flow-control`: interface, whether PFC is on, and its priorities. Older releases have `Yes` and `3 4`, later ones letters
/// of states (`E A W`, `D - -`) and `3,4`. False if there is no such table.
pub(super) fn enabled(text: &str, reading: &mut Reading) -> bool {
    let mut is_table = false;
    for cells in rows(text) {
        let (name, state, rest) = match cells.as_slice() {
            ["Port", "Enabled" | "Status", "Priorities", ..] => {
                is_table = true;
                continue;
            }
            [name, state, rest @ ..] if is_table => (name, *state, rest),
            _ => continue,
        };
        let is_on = match state {
            "Yes" | "E" => true,
            "No" | "D" => false,
            _ => continue,
        };
        let mut on = [false; 8];
        let priorities = rest
            .iter()
            .skip_while(|word| ["A", "W", "-"].contains(word))
            .map_while(|word| {
                let digits = word.split(',').map(|digit| digit.parse::<usize>().ok());
                digits.collect::<Option<Vec<usize>>>()
            });
        for priority in priorities.flatten() {
            if let Some(flag) = on.get_mut(priority) {
                *flag = is_on;
            }
        }
        if let Some(mut port) = Port::new(reading, name) {
            for (priority, is_on) in (0_u8..).zip(on) {
                let value = f64::from(u8::from(is_on));
                port.put(
                    Counter::SwitchPfcEnabled,
                    PortPlace::priority(priority),
                    Some(value),
                );
            }
        }
    }
    is_table
}

/// `show interfaces counters queue detail`: interface, queue (`UC3`, `MC0`), packets, bytes, dropped packets, dropped bytes. False if
/// there is no such table.
fn queues(text: &str, reading: &mut Reading) -> bool {
    let mut is_table = false;
    for cells in rows(text) {
        match cells.as_slice() {
            ["Port", "TxQ", ..] => is_table = true,
            [name, queue, values @ ..] if is_table && values.len() == QUEUES.len() => {
                let (cast, number) = match queue.get(..2) {
                    Some("UC") => ("unicast", queue.get(2..)),
                    Some("MC") => ("multicast", queue.get(2..)),
                    _ => ("all", Some(*queue)),
                };
                let number = number.filter(|number| count(number).is_some());
                if let (Some(number), Some(mut port)) = (number, Port::new(reading, name)) {
                    for (counter, value) in QUEUES.into_iter().zip(values) {
                        let place = PortPlace::queue(number).with(cast);
                        port.put(counter, place, count(value).map(value_of));
                    }
                }
            }
            _ => {}
        }
    }
    is_table
}

/// `show interfaces counters queue`: drops by port. The queue is `port`. Drops on ingress are left out: which buffer was full is not
/// known. False if there is no such table.
fn drops(text: &str, reading: &mut Reading) -> bool {
    let mut is_table = false;
    for cells in rows(text) {
        match cells.as_slice() {
            ["Port", first, ..] if first.starts_with("InDropped") => is_table = true,
            [name, _, unicast, multicast] if is_table => {
                if let Some(mut port) = Port::new(reading, name) {
                    for (cast, value) in [("unicast", unicast), ("multicast", multicast)] {
                        let place = PortPlace::queue("port").with(cast);
                        port.put(
                            Counter::SwitchQueueDroppedPackets,
                            place,
                            count(value).map(value_of),
                        );
                    }
                }
            }
            _ => {}
        }
    }
    is_table
}

/// `show interfaces status`: the state is a word behind the description, which may be empty. False if there is no such table.
pub(super) fn states(text: &str, reading: &mut Reading) -> bool {
    let mut is_table = false;
    for cells in rows(text) {
        match cells.as_slice() {
            ["Port", "Name", "Status", ..] => is_table = true,
            [name, rest @ ..] if is_table => {
                // Speeds and types stand behind it, so that the last such word is no description.
                let state = rest.iter().rev().find_map(|word| match *word {
                    "connected" => Some(1.0),
                    "notconnect" | "disabled" | "errdisabled" => Some(0.0),
                    _ => None,
                });
                if let Some(mut port) = Port::new(reading, name) {
                    port.put(Counter::SwitchInterfaceUp, PortPlace::default(), state);
                }
            }
            _ => {}
        }
    }
    is_table
}

/// `show priority-flow-control counters watchdog`: interface, queue (`UC3`), how often it was stuck, how often it recovered. False if there
/// is no such table.
pub(super) fn watchdog(text: &str, reading: &mut Reading) -> bool {
    let mut is_table = false;
    for cells in rows(text) {
        match cells.as_slice() {
            ["Port", "TxQ", "Total", ..] => is_table = true,
            [name, queue, stuck, recovered] if is_table => {
                let number = queue.trim_start_matches(|glyph: char| glyph.is_ascii_alphabetic());
                let place = PortPlace::queue(number);
                if let (Some(_), Some(mut port)) = (count(number), Port::new(reading, name)) {
                    port.put(
                        Counter::SwitchWatchdogShutdowns,
                        place,
                        count(stuck).map(value_of),
                    );
                    port.put(
                        Counter::SwitchWatchdogRestores,
                        place,
                        count(recovered).map(value_of),
                    );
                }
            }
            _ => {}
        }
    }
    is_table
}

/// `show interfaces flow-control`: the states of sending and receiving pauses, and pauses that were received and sent. False if there is no
/// such table.
pub(super) fn pauses(text: &str, reading: &mut Reading) -> bool {
    let mut is_table = false;
    for cells in rows(text) {
        match cells.as_slice() {
            [
                "Port",
                "Send",
                "FlowControl",
                "Receive",
                "FlowControl",
                "RxPause",
                "TxPause",
            ] => is_table = true,
            [name, _, sending, _, receiving, came, went] if is_table => {
                let Some(mut port) = Port::new(reading, name) else {
                    continue;
                };
                for (word, detail) in [(receiving, "received"), (sending, "transmitted")] {
                    let is_on = match *word {
                        "on" => Some(1.0),
                        "off" => Some(0.0),
                        _ => None,
                    };
                    port.put(Counter::SwitchPauseEnabled, PortPlace::detail(detail), is_on);
                }
                for (counter, value) in [
                    (Counter::SwitchPauseReceivedFrames, came),
                    (Counter::SwitchPauseTransmittedFrames, went),
                ] {
                    port.put(counter, PortPlace::default(), count(value).map(value_of));
                }
            }
            _ => {}
        }
    }
    is_table
}

/// `show interfaces`, of one interface or of all. False if there is no interface with numbers.
pub(super) fn interfaces(text: &str, reading: &mut Reading) -> bool {
    paragraphs::read(text, &mut |name, numbers| {
        if let Some(mut port) = Port::new(reading, name) {
            for (counter, detail, value) in numbers {
                let place = detail.map_or_else(PortPlace::default, PortPlace::detail);
                port.put(*counter, place, Some(value_of(*value)));
            }
        }
    })
}

/// The cells of each line.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .map(|line| line.split_whitespace().take(16).collect())
}
