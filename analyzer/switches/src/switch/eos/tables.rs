//! Tables of Arista EOS' command line. Their rows are known by their form: an interface, and as many numbers as the table has columns
//! (AMD's node-scraper: `Port TxQ Counter/pkts Counter/bytes Drop/pkts Drop/bytes`; `Port InDroppedPkts OutUcDroppedPkts
//! OutMcDroppedPkts`).

use roce_model::{Counter, value_of};

use super::super::answer::count;
use super::super::port::{Port, PortPlace};
use crate::device::Reading;

/// Columns of the tables of errors and of discards, by their headings. Kinds of errors that are part of the sums are left out.
const COUNTS: [(&str, Counter, Option<&str>); 5] = [
    ("FCS", Counter::SwitchInterfaceFcsErrors, None),
    ("Rx", Counter::SwitchInterfaceErrors, Some("received")),
    ("Tx", Counter::SwitchInterfaceErrors, Some("transmitted")),
    ("InDiscards", Counter::SwitchInterfaceDiscards, Some("received")),
    (
        "OutDiscards",
        Counter::SwitchInterfaceDiscards,
        Some("transmitted"),
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

/// `show interfaces counters errors` and `... discards`: an interface, and a number below each heading (EOS manual, Ethernet ports).
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

/// `show interfaces counters queue detail`: interface, queue (`UC3`, `MC0`), packets, bytes, dropped packets, dropped bytes. False if
/// there is no such table.
pub(super) fn queues(text: &str, reading: &mut Reading) -> bool {
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
pub(super) fn drops(text: &str, reading: &mut Reading) -> bool {
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

/// The cells of each line.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .map(|line| line.split_whitespace().take(16).collect())
}
