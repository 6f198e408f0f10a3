//! Keys, and the meaning of the columns.

use super::super::field::wrapped;
use super::super::ink::Ink;
use super::shown::ShownScreen;
use super::view::{LATELY, Sort};

/// The page.
pub(super) fn help(shown: &ShownScreen<'_>) -> Vec<String> {
    let sorts: Vec<String> = Sort::ALL
        .iter()
        .map(|(_, key, word)| format!("{key} {word}"))
        .collect();
    let sorts = format!(
        "sort by {}; press the key again to reverse the order",
        sorts.join(", ")
    );
    let pause = if shown.about.paced {
        "pause the replay, or continue it"
    } else {
        "pause the screen, or continue it; the capture continues"
    };
    let on = if shown.about.paced {
        "the interval before, the next one; at the newest one: replay one more"
    } else {
        "the interval before, the next one"
    };
    let keys: &[(&str, &str)] = &[
        ("space", pause),
        ("left right", on),
        ("up down", "choose a flow, scroll (also PgUp, PgDn, Home, End)"),
        (
            "Enter",
            "the flow: its timelines, its process, its peer, its events",
        ),
        ("Esc", "back; on the table: no filter"),
        (
            "/",
            "filter flows by an expression as in --flow: 10.0.0.1 <-> 10.0.0.2, qpn 0x11, service ud, dscp 26 (once a flow's is known)",
        ),
        ("f", "findings and episodes up to now"),
        ("g", "GPUs: load, memory, power, heat, clocks, traffic of links"),
        ("letters", &sorts),
        ("q ctrl-C", "end the run: its whole result follows"),
    ];
    let paced: &[(&str, &str)] = &[
        ("+ -", "replay twice as fast, half as fast"),
        ("]", "skip ten intervals"),
    ];
    let mark = format!(
        "before a flow, and colours of its strip: packets that were retransmitted or are missing; marks or CNPs; in the last {LATELY} intervals"
    );
    let symbols = if shown.style.unicode { "✗ ▲" } else { "X !" };
    let columns: &[(&str, &str)] = &[
        (symbols, &mark),
        ("BIT/S", "application data, in one interval"),
        ("CE %", "data packets that were marked, of all of them"),
        (
            "CNP",
            "congestion notifications for the flow; - where none could be charged to it",
        ),
        ("RETRANS", "retransmitted request packets"),
        (
            "MISS",
            "PSNs jumped over: lost by the network or by the capture, or late",
        ),
        (
            "RTT",
            "time from a request to its answer: the mean of the medians of the bins; RTT MAX is the longest",
        ),
        (
            "SENDERS",
            "hosts that sent to the same destination in one bin, at most",
        ),
    ];
    let mut lines = vec![Ink::Bold.paint("Keys")];
    let paced = paced.iter().filter(|_| shown.about.paced);
    lines.extend(keys.iter().chain(paced).flat_map(|line| conclusions(line, shown)));
    lines.push(String::new());
    lines.push(Ink::Bold.paint("Columns"));
    lines.extend(columns.iter().flat_map(|line| conclusions(line, shown)));
    lines.push(String::new());
    let width = shown.width();
    let text =
        format!("all numbers are of one interval of {width} (--interval), by the times of the packets");
    lines.extend(conclusions(&("", &text), shown));
    lines
}

fn conclusions((name, text): &(&str, &str), shown: &ShownScreen<'_>) -> Vec<String> {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    wrapped(name, &words, Ink::Bold, &shown.style)
}
