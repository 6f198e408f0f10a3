//! Tables of SONiC's command line, for recordings: their columns have headings and a line of hyphens below.
//!
//! The forms are the expected texts in sonic-utilities' tests (`tests/pfcstat_test.py`, `queue_counter_test.py`,
//! `wred_queue_counter_test.py`, `pfcwd_input/pfcwd_test_vectors.py`, `lldp_test.py`). Numbers have commas; what the chip does not count
//! is `N/A`. A counter that the database gave is not added a second time.

use std::collections::BTreeSet;

use roce_model::{Counter, value_of};

use super::super::answer::count;
use super::super::netstat;
use super::super::port::{Port, PortPlace};
use super::counters::{queue_name, storms as put_storms};
use crate::device::{Neighbor, Reading};
use crate::switch::interface::{Interface, counted};

/// Neighbours of one switch.
const MAX_NEIGHBORS: usize = 4_096;

/// Columns of the tables of queues. Those whose last field is true have the label `cast`, the others none or `any`.
const QUEUES: [(&str, Counter, bool); 10] = [
    ("Counter/pkts", Counter::SwitchQueueTransmittedPackets, true),
    ("Counter/bytes", Counter::SwitchQueueTransmittedBytes, true),
    ("Drop/pkts", Counter::SwitchQueueDroppedPackets, true),
    ("Drop/bytes", Counter::SwitchQueueDroppedBytes, true),
    ("Trim/pkts", Counter::SwitchQueueTrimmedPackets, true),
    ("TrimSent/pkts", Counter::SwitchQueueTrimmedSentPackets, true),
    ("TrimDrop/pkts", Counter::SwitchQueueTrimmedDroppedPackets, true),
    ("EcnMarked/pkts", Counter::SwitchQueueEcnMarkedPackets, false),
    ("EcnMarked/bytes", Counter::SwitchQueueEcnMarkedBytes, false),
    ("WredDrp/pkts", Counter::SwitchQueueWredDroppedPackets, false),
];

/// Seconds since the start by `show version`, whose line `Uptime:` is what `uptime` of procps prints: `up 12 min`, `up  1:05`, `up 4 days, 20:09`.
pub(super) fn uptime(text: &str) -> Option<f64> {
    let line = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("Uptime:"))?;
    let (_, up) = line.split_once(" up ")?;
    let mut days: u32 = 0;
    // Minutes come last, alone or behind hours: days alone are no time.
    for part in up.split(',').map(str::trim).take(2) {
        let mut words = part.split_whitespace();
        let (first, unit) = (words.next()?, words.next());
        let minutes = match (first.parse::<u32>(), unit) {
            (Ok(number), Some("day" | "days")) => {
                days = number;
                continue;
            }
            (Ok(minutes), Some("min" | "mins")) => minutes,
            (Err(_), None) => {
                let (hours, minutes) = first.split_once(':')?;
                let hours = hours.parse::<u32>().ok()?.checked_mul(60)?;
                hours.checked_add(minutes.parse().ok()?)?
            }
            _ => return None,
        };
        let minutes = days.checked_mul(24 * 60)?.checked_add(minutes)?;
        return Some(f64::from(minutes) * 60.0);
    }
    None
}

/// Adds `show pfc counters`: one table of received frames, one of sent ones. False if there is no such table.
pub(super) fn pfc(text: &str, reading: &mut Reading) -> bool {
    let mut direction = None;
    let mut is_table = false;
    let mut has_rows = false;
    let known = [
        is_known(reading, Counter::SwitchPriorityPfcReceivedFrames),
        is_known(reading, Counter::SwitchPriorityPfcTransmittedFrames),
    ];
    for line in text.lines() {
        let cells: Vec<&str> = line.split_whitespace().take(16).collect();
        match cells.as_slice() {
            ["Port", "Rx", "PFC0", ..] => (direction, is_table, has_rows) = (Some(0), true, false),
            ["Port", "Tx", "PFC0", ..] => (direction, is_table, has_rows) = (Some(1), true, false),
            // Hyphens behind rows are below a heading that is missing.
            [first, ..] if is_rule(first) => direction = direction.filter(|_| !has_rows),
            // Another table, such as that of `show pfc counters --history`.
            ["Port", ..] => direction = None,
            [name, values @ ..] if values.len() == 8 => {
                has_rows = true;
                let Some(direction) = direction else {
                    continue;
                };
                if known[direction] {
                    continue;
                }
                let mut frames = [[None; 8]; 2];
                for (frames, value) in frames[direction].iter_mut().zip(values) {
                    *frames = count(value);
                }
                if let Some(mut port) = Port::new(reading, name) {
                    let [received, transmitted] = &frames;
                    port.put_pfc(received, transmitted);
                }
            }
            _ => {}
        }
    }
    is_table
}

/// Adds `show pfc priority` (sonic-utilities, pfc/main.py): the priorities with PFC of each port, or `N/A`. False if there is no such table.
pub(super) fn pfc_priorities(text: &str, reading: &mut Reading) -> bool {
    let mut is_table = false;
    if is_known(reading, Counter::SwitchPfcEnabled) {
        return text.contains("Lossless priorities");
    }
    for line in text.lines() {
        let cells: Vec<&str> = line.split_whitespace().take(4).collect();
        let [name, list] = cells.as_slice() else {
            is_table |= cells == ["Interface", "Lossless", "priorities"];
            continue;
        };
        let on: Option<Vec<u8>> = match *list {
            "N/A" => Some(Vec::new()),
            list => list.split(',').map(|priority| priority.parse().ok()).collect(),
        };
        let Some(on) = on.filter(|_| is_table) else {
            continue;
        };
        let Some(mut port) = Port::new(reading, name) else {
            continue;
        };
        for priority in 0..8_u8 {
            let is_enabled = f64::from(u8::from(on.contains(&priority)));
            port.put(
                Counter::SwitchPfcEnabled,
                PortPlace::priority(priority),
                Some(is_enabled),
            );
        }
    }
    is_table
}

/// Adds `show queue counters` or `show queue wredcounters`. False if there is no such table.
pub(super) fn queues(text: &str, reading: &mut Reading) -> bool {
    let mut columns: Vec<Option<(Counter, bool)>> = Vec::new();
    let mut is_table = false;
    let known: BTreeSet<Counter> = QUEUES
        .iter()
        .map(|(_, counter, _)| *counter)
        .filter(|counter| is_known(reading, *counter))
        .collect();
    for line in text.lines() {
        let cells: Vec<&str> = line.split_whitespace().take(32).collect();
        match cells.as_slice() {
            ["Port", "TxQ", names @ ..] => {
                is_table = true;
                columns = names
                    .iter()
                    .map(|name| {
                        let column = QUEUES.iter().find(|(known, ..)| known == name);
                        column
                            .map(|(_, counter, has_cast)| (*counter, *has_cast))
                            .filter(|(counter, _)| !known.contains(counter))
                    })
                    .collect();
            }
            // Another table, such as that of `show queue counters --voq`.
            ["Port", ..] => columns.clear(),
            [name, queue, values @ ..] if !columns.is_empty() && values.len() == columns.len() => {
                let Some((queue, cast)) = queue_of(queue) else {
                    continue;
                };
                let Some(mut port) = Port::new(reading, name) else {
                    continue;
                };
                for (column, value) in columns.iter().zip(values) {
                    let Some((counter, has_cast)) = *column else {
                        continue;
                    };
                    let mut place = PortPlace::queue(&queue);
                    if has_cast {
                        place = place.with(cast);
                    } else if counter == Counter::SwitchQueueWredDroppedPackets {
                        place = place.with("any");
                    }
                    port.put(counter, place, count(value).map(value_of));
                }
            }
            _ => {}
        }
    }
    is_table
}

/// Adds `pfcwd show stats`: queues with `STORM DETECTED/RESTORED` and packets that passed and were dropped. False if there is no table.
pub(super) fn storms(text: &str, reading: &mut Reading) -> bool {
    let mut is_table = false;
    let is_known = is_known(reading, Counter::SwitchWatchdogShutdowns);
    for line in text.lines() {
        let cells: Vec<&str> = line.split_whitespace().take(16).collect();
        match cells.as_slice() {
            ["QUEUE", "STATUS", ..] => is_table = true,
            [queue, state, storms, sent, received, _, _] if is_table && !is_known => {
                let Some((name, queue)) = queue.rsplit_once(':').filter(|(_, queue)| count(queue).is_some())
                else {
                    continue;
                };
                let pair = |cell: &str| {
                    let (first, second) = cell.split_once('/').unwrap_or_default();
                    [count(first), count(second)]
                };
                if let Some(mut port) = Port::new(reading, name) {
                    let [_, sent] = pair(sent);
                    let [_, received] = pair(received);
                    put_storms(&mut port, queue, pair(storms), [sent, received]);
                    port.put_watchdog_state(queue, state);
                }
            }
            _ => {}
        }
    }
    is_table
}

/// Adds `show interfaces counters`, with its states or its errors alone. False if there is no such table.
pub(super) fn interfaces(text: &str, reading: &mut Reading) -> bool {
    let mut fresh = Reading::new(reading.source, &reading.node, reading.time);
    let is_table = netstat::read(text, &mut fresh);
    let known: BTreeSet<Counter> = reading.samples.iter().map(|sample| sample.counter).collect();
    let is_new = |sample: &roce_model::Sample| !known.contains(&sample.counter);
    reading.samples.extend(fresh.samples.into_iter().filter(is_new));
    is_table
}

/// Adds `show priority-group drop counters` (columns `PG0` to `PG7`) or `show queue watermark unicast` (`UC0` to `UC7`), each a number for a
/// port and a group or queue. False if there is no such table.
pub(super) fn by_number(text: &str, reading: &mut Reading) -> bool {
    let mut columns: Vec<&str> = Vec::new();
    let mut is_table = false;
    let mut counter = None;
    let is_new = |counter: &Counter| !is_known(reading, *counter);
    let drops = Some(Counter::SwitchPriorityGroupDroppedPackets).filter(is_new);
    let peaks = Some(Counter::SwitchQueuePeak).filter(is_new);
    for line in text.lines() {
        let cells: Vec<&str> = line.split_whitespace().take(32).collect();
        match cells.as_slice() {
            ["Port", names @ ..] => {
                let is_of = |kind: &str| names.first().is_some_and(|name| name.starts_with(kind));
                counter = match () {
                    () if is_of("PG") && text.contains("dropped packets") => drops,
                    () if is_of("UC") && text.contains("occupancy") => peaks,
                    () => None,
                };
                is_table |= is_of("PG") || is_of("UC");
                columns = names.to_vec();
            }
            [name, values @ ..] if values.len() == columns.len() => {
                let (Some(counter), Some(mut port)) = (counter, Port::new(reading, name)) else {
                    continue;
                };
                for (column, value) in columns.iter().zip(values) {
                    let number = column.trim_start_matches(|glyph: char| glyph.is_ascii_alphabetic());
                    port.put(counter, PortPlace::queue(number), count(value).map(value_of));
                }
            }
            _ => {}
        }
    }
    is_table
}

/// Adds `show lldp table`. Its columns begin where the hyphens below their headings do.
pub(super) fn neighbors(text: &str, reading: &mut Reading) {
    let mut starts: Vec<usize> = Vec::new();
    let mut has_headings = false;
    for line in text.lines() {
        if line.trim_start().starts_with("LocalPort") {
            has_headings = true;
            continue;
        }
        if has_headings && line.starts_with("---") {
            // A line of hyphens without gaps ends the table.
            starts = column_starts(line);
            has_headings = false;
            continue;
        }
        let [first, second, third, ..] = starts.as_slice() else {
            continue;
        };
        let end = starts.get(3).copied();
        let cell = |from: usize, to: Option<usize>| {
            let length = to.map_or(usize::MAX, |to| to.saturating_sub(from));
            let cell: String = line.chars().skip(from).take(length).collect();
            cell.trim().to_owned()
        };
        let node = cell(*second, Some(*third));
        let port = cell(*third, end);
        let Some(Interface { name: interface, .. }) = counted(&cell(*first, Some(*second))) else {
            continue;
        };
        if !node.is_empty() && reading.neighbors.len() < MAX_NEIGHBORS {
            reading.neighbors.push(Neighbor {
                interface,
                node,
                port,
            });
        }
    }
}

/// Adds `show version`: the version, the hardware SKU as model, and the serial number.
pub(super) fn version(text: &str, reading: &mut Reading) {
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        if value.is_empty() || value == "N/A" {
            continue;
        }
        let field = match name.trim() {
            "SONiC Software Version" => &mut reading.description.version,
            "HwSKU" => &mut reading.description.model,
            "Serial Number" => &mut reading.description.serial,
            _ => continue,
        };
        value.clone_into(field);
    }
}

fn is_known(reading: &Reading, counter: Counter) -> bool {
    reading.of(counter).next().is_some()
}

/// The name of a queue in samples and its cast: `UC3`, `MC10`, `ALL20`.
fn queue_of(text: &str) -> Option<(String, &'static str)> {
    let digits = text.find(|glyph: char| glyph.is_ascii_digit())?;
    let (kind, number) = text.split_at(digits);
    let cast = match kind {
        "UC" => "unicast",
        "MC" => "multicast",
        "ALL" => "all",
        _ => return None,
    };
    let is_number = number.len() <= 5 && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| (queue_name(number, cast), cast))
}

/// True of the hyphens below a heading.
fn is_rule(word: &str) -> bool {
    word.len() > 2 && word.bytes().all(|byte| byte == b'-')
}

/// Where groups of hyphens begin.
fn column_starts(line: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut was_hyphen = false;
    for (at, glyph) in line.chars().enumerate() {
        if glyph == '-' && !was_hyphen && starts.len() < 16 {
            starts.push(at);
        }
        was_hyphen = glyph == '-';
    }
    starts
}

#[cfg(test)]
mod uptimes {
    use super::uptime;

    #[test]
    fn an_uptime_has_days_hours_and_minutes() {
        // Forms of procps' sprint_uptime.
        for (line, minutes) in [
            (
                "Uptime: 10:00:01 up 12 min,  1 user,  load average: 0.41, 0.40, 0.37",
                12.0,
            ),
            ("Uptime: 10:00:01 up  1:05,  2 users,  load average: 0.41", 65.0),
            (
                "Uptime: 10:00:01 up 4 days, 20:09,  1 user,  load average: 0.41",
                4.0 * 1_440.0 + 1_209.0,
            ),
            (
                "Uptime: 10:00:01 up 1 day, 3 min,  0 users,  load average: 0.41",
                1_443.0,
            ),
        ] {
            assert_eq!(uptime(line), Some(minutes * 60.0), "{line}");
        }
        assert_eq!(uptime("Uptime: never"), None);
        assert_eq!(uptime("Uptime: 10:00:01 up 5 users"), None);
        assert_eq!(uptime("Uptime: 10:00:01 up 4 days, N/A,  1 user"), None);
    }
}
