//! Pauses: `show interface priority-flow-control`, its `detail`, and `show interface flowcontrol` (802.3x).

use roce_model::Counter;

use super::answer::Body;
use super::json::{Object, count, modules, number, objects, table, text};
use super::sink::{NumberPlace, Sink, counted};
use crate::device::Reason;
use crate::switch::interface::Interface;

/// Priorities of 802.1Q.
const PRIORITIES: usize = 8;

/// A row of `show interface priority-flow-control`.
struct Row {
    interface: String,
    enabled: Option<u8>,
    received: Option<u64>,
    transmitted: Option<u64>,
}

/// PFC per interface.
pub(super) fn interfaces(body: &Body, _command: &str, sink: &mut Sink<'_>) -> bool {
    let (rows, is_known) = rows(body);
    for row in rows {
        let Some(interface) = sink.interface(&row.interface) else {
            continue;
        };
        enabled_priorities(&interface, row.enabled, sink);
        let place = NumberPlace::interface(&interface);
        sink.put(place, Counter::SwitchPfcReceivedFrames, &[], row.received);
        sink.put(place, Counter::SwitchPfcTransmittedFrames, &[], row.transmitted);
    }
    is_known
}

/// Interfaces with PFC in operation.
pub(super) fn enabled(body: &Body) -> Vec<Interface> {
    let (rows, _) = rows(body);
    rows.iter()
        .filter(|row| row.enabled.is_some_and(|bits| bits != 0))
        .filter_map(|row| counted(&row.interface))
        .collect()
}

/// The rows, and true if the table is known.
fn rows(body: &Body) -> (Vec<Row>, bool) {
    match body {
        Body::Json(documents) => {
            let rows: Vec<Row> = documents
                .iter()
                .flat_map(modules)
                .flat_map(|module| table(module, "pfc_interface"))
                .filter_map(row_of_json)
                .collect();
            let is_known = !rows.is_empty();
            (rows, is_known)
        }
        Body::Text(text) => {
            let rows = text.lines().filter_map(row_of_text).collect();
            (rows, text.lines().any(|line| line.contains("RxPPP")))
        }
    }
}

fn row_of_json(row: &Object) -> Option<Row> {
    Some(Row {
        interface: text(row, &["if_name_str", "interface"])?,
        enabled: enabled_of_json(row),
        received: count(row, &["rx-stats", "rx-ppp"]),
        transmitted: count(row, &["tx-stats", "tx-ppp"]),
    })
}

/// The state in operation has the bitmap (`On (8)`), or it has a key of its own.
fn enabled_of_json(row: &Object) -> Option<u8> {
    let oper = text(row, &["oper"])?;
    priorities(&oper).or_else(|| {
        let bitmap = text(row, &["vl-bmap", "vl-bitmap"])?;
        let bitmap = bitmap.trim_matches(['(', ')']);
        oper.eq_ignore_ascii_case("on")
            .then(|| priorities(&format!("On ({bitmap})")))?
    })
}

/// `Ethernet1/1/1      On   On   (8)       0          22787490`.
fn row_of_text(line: &str) -> Option<Row> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (interface, rest) = words.split_first()?;
    // Mode and state in operation, and behind the bitmap the two counts.
    let (counts, modes) = match rest {
        [modes @ .., received, transmitted] if (2..=3).contains(&modes.len()) => {
            ((received, transmitted), modes)
        }
        _ => return None,
    };
    let is_mode = |word: &str| word.eq_ignore_ascii_case("on") || word.eq_ignore_ascii_case("off");
    if !is_mode(modes[0]) && !modes[0].eq_ignore_ascii_case("auto") {
        return None;
    }
    Interface::parse(interface)?;
    Some(Row {
        interface: (*interface).to_owned(),
        enabled: priorities(&modes[1..].join(" ")),
        received: number(counts.0),
        transmitted: number(counts.1),
    })
}

/// The priorities that are enabled, as bits, of `On (8)`: the bitmap is hexadecimal. None is enabled where PFC is off; `None` where it is
/// not known which are (`On` without a bitmap, `--`).
fn priorities(oper: &str) -> Option<u8> {
    let oper = oper.trim();
    if oper.eq_ignore_ascii_case("off") {
        return Some(0);
    }
    let (state, bitmap) = oper.split_once('(')?;
    if state.trim().eq_ignore_ascii_case("off") {
        return Some(0);
    }
    let digits = bitmap.trim_end().strip_suffix(')')?.trim();
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

fn enabled_priorities(interface: &Interface, enabled: Option<u8>, sink: &mut Sink<'_>) {
    let Some(bits) = enabled else {
        return;
    };
    for priority in 0..8 {
        let place = NumberPlace::priority(interface, priority);
        let is_enabled = u64::from(bits >> priority & 1);
        sink.put(place, Counter::SwitchPfcEnabled, &[], Some(is_enabled));
    }
}

/// PFC frames of one interface, in total and by priority.
#[derive(Default)]
pub(super) struct Frames {
    pub(super) received: Option<u64>,
    pub(super) transmitted: Option<u64>,
    pub(super) received_of: [Option<u64>; PRIORITIES],
    pub(super) transmitted_of: [Option<u64>; PRIORITIES],
}

impl Frames {
    /// Adds them to the reading. A total that the priorities contradict is said: it has to be their sum where all eight are there, and at
    /// least their sum otherwise.
    pub(super) fn add(&self, interface: &Interface, command: &str, sink: &mut Sink<'_>) {
        let place = NumberPlace::interface(interface);
        sink.put(place, Counter::SwitchPfcReceivedFrames, &[], self.received);
        sink.put(place, Counter::SwitchPfcTransmittedFrames, &[], self.transmitted);
        for (counter, counts) in [
            (Counter::SwitchPriorityPfcReceivedFrames, &self.received_of),
            (Counter::SwitchPriorityPfcTransmittedFrames, &self.transmitted_of),
        ] {
            for (priority, count) in (0_u8..).zip(counts) {
                sink.put(NumberPlace::priority(interface, priority), counter, &[], *count);
            }
        }
        for (direction, total, counts) in [
            ("received", self.received, &self.received_of),
            ("transmitted", self.transmitted, &self.transmitted_of),
        ] {
            let Some(total) = total else {
                continue;
            };
            if counts.iter().all(Option::is_none) {
                continue;
            }
            let sum = counts
                .iter()
                .flatten()
                .fold(0_u64, |sum, count| sum.saturating_add(*count));
            let is_whole = counts.iter().all(Option::is_some);
            if sum > total || (is_whole && sum != total) {
                let name = &interface.name;
                let said =
                    format!("{name}: {total} PFC frames {direction} in total, and {sum} over the priorities");
                sink.note(Reason::Contradiction, command, &said);
            }
        }
    }
}

/// PFC per priority, of `detail`.
pub(super) fn priorities_of(body: &Body, command: &str, sink: &mut Sink<'_>) -> bool {
    match body {
        Body::Text(text) => detail_text(text, command, sink),
        Body::Json(documents) => detail_json(documents, command, sink),
    }
}

/// Unverified: no recording of the JSON of `detail` is known. The totals have the keys of the table without `detail`.
fn detail_json(documents: &[serde_json::Value], command: &str, sink: &mut Sink<'_>) -> bool {
    let mut is_known = false;
    for row in documents
        .iter()
        .flat_map(modules)
        .flat_map(|module| table(module, "pfc_interface"))
    {
        is_known = true;
        let Some(interface) = text(row, &["if_name_str", "interface"]).and_then(|name| sink.interface(&name))
        else {
            continue;
        };
        let enabled = enabled_of_json(row);
        enabled_priorities(&interface, enabled, sink);
        let mut frames = Frames {
            received: count(row, &["rx-stats", "total-rx-pfc-frames"]),
            transmitted: count(row, &["tx-stats", "total-tx-pfc-frames"]),
            ..Frames::default()
        };
        for (priority, counts) in frames.received_of.iter_mut().enumerate() {
            *counts = count(
                row,
                &[&format!("rx-prio{priority}"), &format!("rx_priority{priority}")],
            );
        }
        for (priority, counts) in frames.transmitted_of.iter_mut().enumerate() {
            *counts = count(
                row,
                &[&format!("tx-prio{priority}"), &format!("tx_priority{priority}")],
            );
        }
        frames.add(&interface, command, sink);
    }
    is_known
}

fn detail_text(text: &str, command: &str, sink: &mut Sink<'_>) -> bool {
    let mut is_known = false;
    let mut block = Detail::default();
    for line in text.lines() {
        let line = line.trim();
        if !line.contains([':', '|', ' '])
            && let Some(interface) = Interface::parse(line)
        {
            block.add(command, sink);
            block = Detail {
                interface: Some(interface),
                ..Detail::default()
            };
            continue;
        }
        if let Some(cells) = line
            .split_once('|')
            .filter(|(name, _)| matches!(name.trim(), "Rx" | "Tx"))
        {
            is_known = true;
            block.cells(cells.0.trim(), cells.1);
        } else if let Some((name, value)) = line.split_once(':') {
            block.value(name.trim(), value.trim());
        }
    }
    block.add(command, sink);
    is_known
}

/// The lines of one interface.
#[derive(Default)]
struct Detail {
    interface: Option<Interface>,
    has_admin: bool,
    is_off: bool,
    bitmap: Option<u8>,
    frames: Frames,
}

impl Detail {
    fn value(&mut self, name: &str, value: &str) {
        match name {
            // A second one belongs to an interface whose name is missing.
            "Admin Mode" if self.has_admin => self.interface = None,
            "Admin Mode" => self.has_admin = true,
            "Oper Mode" => self.is_off = value.eq_ignore_ascii_case("off"),
            "VL bitmap" => self.bitmap = priorities(&format!("On {value}")),
            "Total Rx PFC Frames" => self.frames.received = number(value),
            "Total Tx PFC Frames" => self.frames.transmitted = number(value),
            _ => {}
        }
    }

    /// The counts behind `Rx` or `Tx`. The columns are the priorities 0 to 7.
    fn cells(&mut self, name: &str, cells: &str) {
        let counts: Vec<Option<u64>> = cells.trim_end_matches('|').split('|').map(number).collect();
        let into = if name == "Rx" {
            &mut self.frames.received_of
        } else {
            &mut self.frames.transmitted_of
        };
        if let Ok(counts) = counts.try_into()
            && into.iter().all(Option::is_none)
        {
            *into = counts;
        }
    }

    fn add(&self, command: &str, sink: &mut Sink<'_>) {
        let Some(interface) = self
            .interface
            .as_ref()
            .and_then(|interface| sink.interface(&interface.name))
        else {
            return;
        };
        let enabled = if self.is_off { Some(0) } else { self.bitmap };
        enabled_priorities(&interface, enabled, sink);
        self.frames.add(&interface, command, sink);
    }
}

/// Pauses of 802.3x.
pub(super) fn flowcontrol(body: &Body, _command: &str, sink: &mut Sink<'_>) -> bool {
    match body {
        Body::Text(text) => {
            for line in text.lines() {
                let words: Vec<&str> = line.split_whitespace().collect();
                let [name, _, send, _, receive, received, transmitted] = words[..] else {
                    continue;
                };
                if let Some(interface) = sink.interface(name) {
                    let counts = (number(received), number(transmitted));
                    pauses(&interface, Some(send), Some(receive), counts, sink);
                }
            }
            text.lines().any(|line| line.contains("RxPause"))
        }
        // The names of the tables and of the counts are unverified.
        Body::Json(documents) => {
            let mut is_known = false;
            for document in documents.iter().flat_map(objects) {
                let rows = [table(document, "flowcontrol"), table(document, "interface")];
                for row in rows.into_iter().flatten() {
                    is_known = true;
                    let name = text(row, &["interface", "if_name_str", "port"]);
                    let Some(interface) = name.and_then(|name| sink.interface(&name)) else {
                        continue;
                    };
                    let send = text(row, &["send-oper", "oper-send", "tx-oper"]);
                    let receive = text(row, &["receive-oper", "recv-oper", "oper-receive", "rx-oper"]);
                    let counts = (
                        count(row, &["rx-pause", "rxpause"]),
                        count(row, &["tx-pause", "txpause"]),
                    );
                    pauses(&interface, send.as_deref(), receive.as_deref(), counts, sink);
                }
            }
            is_known
        }
    }
}

fn pauses(
    interface: &Interface,
    send: Option<&str>,
    receive: Option<&str>,
    counts: (Option<u64>, Option<u64>),
    sink: &mut Sink<'_>,
) {
    let flag = |oper: Option<&str>| match oper {
        Some("on") => Some(1),
        Some("off") => Some(0),
        _ => None,
    };
    let place = NumberPlace::interface(interface);
    let enabled = Counter::SwitchPauseEnabled;
    sink.put(place, enabled, &["received".into()], flag(receive));
    sink.put(place, enabled, &["transmitted".into()], flag(send));
    sink.put(place, Counter::SwitchPauseReceivedFrames, &[], counts.0);
    sink.put(place, Counter::SwitchPauseTransmittedFrames, &[], counts.1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bitmap_may_have_a_key_of_its_own() {
        for (oper, bitmap, bits) in [
            ("On", "20", Some(1 << 5)),
            ("On", "(8)", Some(1 << 3)),
            ("On (8)", "20", Some(1 << 3)),
            ("Off", "20", Some(0)),
            ("--", "20", None),
        ] {
            let row = serde_json::json!({"oper": oper, "vl-bmap": bitmap});
            assert_eq!(row.as_object().and_then(enabled_of_json), bits, "{oper} {bitmap}");
        }
    }

    // F.2, trap 5: the bitmap is hexadecimal.
    #[test]
    fn the_bitmap_is_hexadecimal() {
        for (oper, bits) in [
            ("On (8)", Some(1 << 3)),
            ("On   (8)", Some(1 << 3)),
            ("On (20)", Some(1 << 5)),
            ("On (28)", Some(1 << 3 | 1 << 5)),
            ("On (0)", Some(0)),
            ("On (ff)", Some(0xff)),
            ("Off", Some(0)),
            ("Off (0)", Some(0)),
            ("Auto", None),
            ("On", None),
            ("--", None),
            ("", None),
            ("On (100)", None),
            ("On (x)", None),
            ("On (+8)", None),
        ] {
            assert_eq!(priorities(oper), bits, "{oper}");
        }
    }
}
