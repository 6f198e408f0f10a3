//! Tables of what was counted: interfaces and queues of a switch, adapters of a hypervisor.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use roce_model::Counter;
use roce_model::text::clean;
use roce_report::Style;
use roce_switches::device::Reading;

use roce_spelling::{ABSENT, whole};

use crate::command::fabric::changes::Changes;
use crate::output::columns::{Column, lay};

/// A count with all its digits, in groups of three; what is not known is `-`.
fn count(value: Option<f64>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), whole)
}

/// A rate in bit/s.
fn rate(bytes_per_second: Option<f64>) -> String {
    let Some(bytes) = bytes_per_second else {
        return "-".to_owned();
    };
    let bits = bytes * 8.0;
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    for (size, unit) in units {
        if bits >= size {
            let value = format!("{:.1}", bits / size);
            return format!("{}{unit}", value.strip_suffix(".0").unwrap_or(&value));
        }
    }
    format!("{bits:.0}")
}

/// The first of some counters that is known: counts by priority make up for a device that has no sum.
fn either(changes: &Changes, object: &str, counters: &[Counter]) -> Option<f64> {
    counters.iter().find_map(|counter| changes.sum(object, *counter))
}

/// Sums of what is known.
fn together(changes: &Changes, object: &str, counters: &[Counter]) -> Option<f64> {
    let known = counters
        .iter()
        .filter_map(|counter| changes.sum(object, *counter));
    known.reduce(|sum, value| sum + value)
}

fn state(value: Option<f64>) -> String {
    value
        .map_or("-", |up| if up > 0.0 { "up" } else { "down" })
        .to_owned()
}

/// Priorities with PFC by object: `3`, `3,4`; `off`: none. Of the others it is not known.
fn enabled(reading: &Reading, counter: Counter) -> HashMap<&str, String> {
    let mut on: HashMap<&str, Vec<String>> = HashMap::new();
    for sample in reading.of(counter) {
        let priorities = on.entry(&sample.object).or_default();
        priorities.extend(
            sample
                .priority
                .filter(|_| sample.value > 0.0)
                .map(|on| on.to_string()),
        );
    }
    let text = |priorities: Vec<String>| {
        if priorities.is_empty() {
            "off".to_owned()
        } else {
            priorities.join(",")
        }
    };
    on.into_iter()
        .map(|(object, priorities)| (object, text(priorities)))
        .collect()
}

/// The text of an object, or that it is not known.
fn of_object(texts: &HashMap<&str, String>, object: &str) -> String {
    texts.get(object).map_or_else(|| "-".to_owned(), Clone::clone)
}

/// A column of a table: its title, room (columns of a lower rank get it first), and values by object.
type Counts<'a> = (&'static str, u8, &'a dyn Fn(&str) -> Option<f64>);

/// A table of counts by object: those for which something was counted, or all.
fn counted(
    title: &str,
    rows: &[&str],
    mut first: Vec<Column>,
    counts: &[Counts<'_>],
    style: &Style,
    out: &mut String,
) {
    for (title, rank, value) in counts {
        let values: Vec<Option<f64>> = rows.iter().map(|row| value(row)).collect();
        // Counts that nobody has say nothing.
        if values.iter().all(Option::is_none) {
            continue;
        }
        let is_zero = values.iter().all(|value| value.is_none_or(|value| value == 0.0));
        let rank = if is_zero { rank + 20 } else { *rank };
        let cells = values.into_iter().map(count).collect();
        first.push(Column::new(title, true, rank, cells));
    }
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n {title}");
    out.push_str(&lay(first, style.width));
}

/// Packets with errors. Broken frames are among them at most switches; NX-OS counts them apart.
fn broken(changes: &Changes, object: &str) -> Option<f64> {
    let sum = |counter| changes.sum(object, counter);
    let (all, frames) = (
        sum(Counter::SwitchInterfaceErrors),
        sum(Counter::SwitchInterfaceFcsErrors),
    );
    all.zip(frames)
        .map(|(all, frames)| all.max(frames))
        .or(all)
        .or(frames)
}

/// Interfaces of a switch.
pub(super) fn interfaces(reading: &Reading, changes: &Changes, all: bool, style: &Style, out: &mut String) {
    use Counter as C;
    let pfc_in = |object: &str| {
        either(
            changes,
            object,
            &[C::SwitchPfcReceivedFrames, C::SwitchPriorityPfcReceivedFrames],
        )
    };
    let pfc_out = |object: &str| {
        either(
            changes,
            object,
            &[
                C::SwitchPfcTransmittedFrames,
                C::SwitchPriorityPfcTransmittedFrames,
            ],
        )
    };
    let pause_in = |object: &str| changes.sum(object, C::SwitchPauseReceivedFrames);
    let pause_out = |object: &str| changes.sum(object, C::SwitchPauseTransmittedFrames);
    let ingress = |object: &str| {
        together(
            changes,
            object,
            &[C::SwitchMmuDroppedPackets, C::SwitchPriorityGroupDroppedPackets],
        )
    };
    let egress = |object: &str| {
        together(
            changes,
            object,
            &[C::SwitchQueueDroppedPackets, C::SwitchQueueWredDroppedPackets],
        )
    };
    let marked = |object: &str| changes.sum(object, C::SwitchQueueEcnMarkedPackets);
    let errors = |object: &str| broken(changes, object);
    let discards = |object: &str| changes.sum(object, C::SwitchInterfaceDiscards);
    let stuck = |object: &str| changes.sum(object, C::SwitchWatchdogShutdowns);
    let counts: [Counts<'_>; 10] = [
        ("PFC in", 1, &pfc_in),
        ("PFC out", 1, &pfc_out),
        ("802.3x in", 2, &pause_in),
        ("802.3x out", 2, &pause_out),
        ("ingress drops", 1, &ingress),
        ("queue drops", 1, &egress),
        ("marked", 2, &marked),
        ("discards", 3, &discards),
        ("errors", 4, &errors),
        ("watchdog", 4, &stuck),
    ];
    let known: Vec<&str> = changes.objects();
    let moves = |object: &str| {
        counts
            .iter()
            .any(|(_, _, value)| value(object).is_some_and(|value| value > 0.0))
    };
    let is_up = |object: &str| {
        changes
            .sum(object, C::SwitchInterfaceUp)
            .is_some_and(|up| up > 0.0)
    };
    let rows: Vec<&str> = known
        .iter()
        .copied()
        .filter(|object| all || is_up(object) || moves(object))
        .collect();
    let column = |title, rank, cell: &dyn Fn(&str) -> String| {
        Column::new(title, false, rank, rows.iter().map(|row| cell(row)).collect())
    };
    let mut first = vec![column("interface", 0, &|row| clean(row).into_owned())];
    first.push(column("link", 3, &|row| {
        state(changes.sum(row, C::SwitchInterfaceUp))
    }));
    first.push(column("bit/s", 5, &|row| {
        rate(changes.sum(row, C::SwitchInterfaceRate))
    }));
    let enabled = enabled(reading, C::SwitchPfcEnabled);
    first.push(column("PFC on", 3, &|row| of_object(&enabled, row)));
    let seconds = changes.time().seconds();
    if changes.readings() > 1 && seconds > 0.0 {
        for (title, counter) in [
            ("in bit/s", C::SwitchInterfaceReceivedBytes),
            ("out bit/s", C::SwitchInterfaceTransmittedBytes),
        ] {
            first.push(column(title, 3, &|row| {
                rate(changes.sum(row, counter).map(|bytes| bytes / seconds))
            }));
        }
    }
    counted("interfaces", &rows, first, &counts, style, out);
    let shown: HashSet<&str> = rows.into_iter().collect();
    let hidden = known.into_iter().filter(|object| !shown.contains(object));
    not_shown(&hidden.collect::<Vec<_>>(), changes, out);
}

/// The line about interfaces that the table leaves out.
fn not_shown(hidden: &[&str], changes: &Changes, out: &mut String) {
    // A link that was not read is not known to be down.
    let is_down = |object: &&str| changes.sum(object, Counter::SwitchInterfaceUp) == Some(0.0);
    let verb = match (hidden.len(), hidden.iter().all(is_down)) {
        (0, _) => return,
        (1, true) => "is down and counted nothing; --all shows it",
        (1, false) => "counted nothing; --all shows it",
        (_, true) => "are down and counted nothing; --all shows them",
        (_, false) => "counted nothing; --all shows them",
    };
    let _ = writeln!(out, " {} more {verb}", hidden.len());
}

/// Queues of a switch.
pub(super) fn queues(changes: &Changes, all: bool, style: &Style, out: &mut String) {
    use Counter as C;
    let known = changes.queues();
    let columns: [(&'static str, u8, Counter); 8] = [
        ("packets", 1, C::SwitchQueueTransmittedPackets),
        ("bytes", 5, C::SwitchQueueTransmittedBytes),
        ("dropped", 1, C::SwitchQueueDroppedPackets),
        ("marked", 1, C::SwitchQueueEcnMarkedPackets),
        ("WRED drops", 3, C::SwitchQueueWredDroppedPackets),
        ("depth bytes", 2, C::SwitchQueueDepth),
        ("peak bytes", 4, C::SwitchQueuePeak),
        ("pauses at bytes", 5, C::SwitchQueuePauseThreshold),
    ];
    // Thresholds and watermarks are no movement.
    let moved = &columns[..6];
    let value = |(object, queue): (&str, &str), counter| changes.of_queue(object, queue, counter);
    let rows: Vec<(&str, &str)> = known
        .iter()
        .copied()
        .filter(|row| {
            all || moved
                .iter()
                .any(|(_, _, counter)| value(*row, *counter).is_some_and(|value| value > 0.0))
        })
        .collect();
    if known.is_empty() {
        return;
    }
    let moved_title = if changes.readings() > 1 {
        "queues that moved"
    } else {
        "queues"
    };
    let _ = writeln!(out, "\n {moved_title}");
    if rows.is_empty() {
        let _ = writeln!(out, " none of {}; --all shows them", known.len());
        return;
    }
    let lossless = |(object, queue): (&str, &str)| match changes.of_queue(object, queue, C::SwitchQueueNoDrop)
    {
        Some(value) if value > 0.0 => "yes".to_owned(),
        Some(_) => "no".to_owned(),
        None => "-".to_owned(),
    };
    let mut laid = vec![
        Column::new(
            "interface",
            false,
            0,
            rows.iter().map(|row| clean(row.0).into_owned()).collect(),
        ),
        Column::new(
            "queue",
            false,
            0,
            rows.iter().map(|row| clean(row.1).into_owned()).collect(),
        ),
        Column::new(
            "lossless",
            false,
            4,
            rows.iter().map(|row| lossless(*row)).collect(),
        ),
    ];
    for (title, rank, counter) in columns {
        let values: Vec<Option<f64>> = rows.iter().map(|row| value(*row, counter)).collect();
        if values.iter().any(Option::is_some) {
            laid.push(Column::new(
                title,
                true,
                rank,
                values.into_iter().map(count).collect(),
            ));
        }
    }
    out.push_str(&lay(laid, style.width));
}

/// Adapters of a hypervisor.
pub(super) fn adapters(reading: &Reading, changes: &Changes, all: bool, style: &Style, out: &mut String) {
    use Counter as C;
    let of = |counter| move |object: &str| changes.sum(object, counter);
    let (pfc_in, pfc_out) = (
        of(C::HypervisorPfcReceivedFrames),
        of(C::HypervisorPfcTransmittedFrames),
    );
    let (pause_in, pause_out) = (
        of(C::HypervisorPauseReceivedFrames),
        of(C::HypervisorPauseTransmittedFrames),
    );
    let both_in = of(C::HypervisorPauseControlReceivedFrames);
    let both_out = of(C::HypervisorPauseControlTransmittedFrames);
    let dropped = of(C::HypervisorDroppedPackets);
    let errors = |object: &str| changes.of_all(object, C::HypervisorErrors);
    let storms = of(C::HypervisorPauseStormEvents);
    let counts: [Counts<'_>; 9] = [
        ("PFC in", 1, &pfc_in),
        ("PFC out", 1, &pfc_out),
        ("802.3x in", 1, &pause_in),
        ("802.3x out", 1, &pause_out),
        ("both in", 4, &both_in),
        ("both out", 4, &both_out),
        ("dropped", 2, &dropped),
        ("errors", 3, &errors),
        ("storms", 3, &storms),
    ];
    let known = changes.objects();
    let is_up = |object: &str| changes.sum(object, C::HypervisorNicUp).is_none_or(|up| up > 0.0);
    let rows: Vec<&str> = known
        .iter()
        .copied()
        .filter(|object| all || is_up(object))
        .collect();
    let driver = |row: &str| {
        let adapter = reading.adapters.iter().find(|adapter| adapter.name == row);
        let driver = adapter.map_or_else(String::new, |adapter| clean(&adapter.driver).into_owned());
        if driver.is_empty() { "-".to_owned() } else { driver }
    };
    let column = |title, rank, cell: &dyn Fn(&str) -> String| {
        Column::new(title, false, rank, rows.iter().map(|row| cell(row)).collect())
    };
    let enabled = enabled(reading, C::HypervisorPfcEnabled);
    let first = vec![
        column("vmnic", 0, &|row| clean(row).into_owned()),
        column("link", 3, &|row| state(changes.sum(row, C::HypervisorNicUp))),
        column("bit/s", 5, &|row| rate(changes.sum(row, C::HypervisorNicRate))),
        column("driver", 6, &driver),
        column("PFC on", 2, &|row| of_object(&enabled, row)),
    ];
    counted("adapters", &rows, first, &counts, style, out);
    let hidden = known.len() - rows.len();
    match hidden {
        0 => {}
        1 => out.push_str(" 1 more is down; --all shows it\n"),
        _ => {
            let _ = writeln!(out, " {hidden} more are down; --all shows them");
        }
    }
}
