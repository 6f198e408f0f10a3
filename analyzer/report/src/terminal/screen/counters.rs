//! The line of counters on the screen: what adapters and interfaces counted of congestion up to the selected interval.

use std::collections::BTreeMap;

use roce_model::cast::whole;
use roce_model::{Columns, SampleColumns, Time};

use super::super::grid::end_cut;
use super::super::ink::Ink;
use super::super::style::Style;
use super::history::MAX_INTERVALS;
use roce_spelling::{plural, rate_of, short_count};

/// How a counter is summed up and written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Share of the time: the largest of all objects and priorities.
    Share,
    /// Things a second, of all objects and priorities together.
    PerSecond,
}

/// The counters of the line, the most telling first: 802.3x pause and PFC each under its own name.
const WORDS: [(&str, &str, Kind); 14] = [
    ("pfc_receive_paused_seconds", "paused by PFC", Kind::Share),
    ("pause_receive_paused_seconds", "paused by 802.3x", Kind::Share),
    ("pfc_received_frames", "PFC in", Kind::PerSecond),
    ("pfc_transmitted_frames", "PFC out", Kind::PerSecond),
    ("pause_received_frames", "802.3x in", Kind::PerSecond),
    ("pause_transmitted_frames", "802.3x out", Kind::PerSecond),
    ("port_out_of_buffer_drops", "out of buffer", Kind::PerSecond),
    ("netdev_discards", "discards", Kind::PerSecond),
    ("priority_discards", "discards by priority", Kind::PerSecond),
    ("port_ecn_marked_packets_received", "marked", Kind::PerSecond),
    ("port_cnp_sent", "CNPs out", Kind::PerSecond),
    ("port_cnp_handled", "CNPs handled", Kind::PerSecond),
    ("port_out_of_sequence_packets", "out of sequence", Kind::PerSecond),
    ("port_ack_timeouts", "timeouts", Kind::PerSecond),
];

/// Rates of one interval.
type Rates = [f64; WORDS.len()];

/// Counters by interval.
#[derive(Debug, Default)]
pub(super) struct Counters {
    rates: BTreeMap<u64, Rates>,
    /// Bytes a second that ports sent and received, by interval.
    bytes: BTreeMap<u64, (f64, f64)>,
}

impl Counters {
    /// Takes rows of the table `samples`; an interval is `width` ns wide.
    pub(super) fn add(&mut self, rows: &SampleColumns, width: u64) {
        for row in 0..rows.len() {
            let (Some(time), Some(change), Some(interval)) = (
                rows.time.at(row),
                rows.change.at(row),
                rows.interval_ns.at(row).filter(|interval| **interval > 0),
            ) else {
                continue;
            };
            let counter = rows.counter.at(row).map_or("", |name| name.as_ref());
            let rate = change / Time(*interval).seconds();
            let at = time / width.max(1);
            let rates = self.rates.entry(at).or_insert([0.0; WORDS.len()]);
            if let Some(place) = WORDS.iter().position(|(name, ..)| *name == counter) {
                rates[place] = match WORDS[place].2 {
                    Kind::Share => rates[place].max(rate),
                    Kind::PerSecond => rates[place] + rate,
                };
            }
            let bytes = self.bytes.entry(at).or_default();
            match counter {
                "port_received_bytes" => bytes.0 += rate,
                "port_transmitted_bytes" => bytes.1 += rate,
                _ => {}
            }
        }
        while self.rates.len() > MAX_INTERVALS {
            self.rates.pop_first();
        }
        while self.bytes.len() > MAX_INTERVALS {
            self.bytes.pop_first();
        }
    }

    /// The line at an interval: of the last reading up to then; `None` where there was none.
    pub(super) fn line(&self, interval: u64, style: &Style) -> Option<String> {
        let (at, rates) = self.rates.range(..=interval).next_back()?;
        let mut words = Vec::new();
        for ((_, word, kind), rate) in WORDS.iter().zip(rates) {
            if *rate <= 0.0 {
                continue;
            }
            let text = match kind {
                Kind::Share => format!("{word} {:.1} %", rate.min(1.0) * 100.0),
                Kind::PerSecond => format!("{word} {}/s", a_second(*rate)),
            };
            words.push(Ink::Warn.paint(&text));
        }
        if words.is_empty() {
            words.push(Ink::Faint.paint("no pause, mark, CNP or drop"));
        }
        let (received, sent) = self.bytes.get(at).copied().unwrap_or_default();
        if received + sent > 0.0 {
            words.push(format!(
                "in {}, out {}",
                rate_of(received * 8.0),
                rate_of(sent * 8.0)
            ));
        }
        let back = interval - at;
        if back > 1 {
            words.push(Ink::Faint.paint(&format!("{} ago", plural(back, "interval", "intervals"))));
        }
        let line = format!("counters: {}", words.join(", "));
        Some(end_cut(&line, style.width, style.unicode))
    }
}

/// A number a second: whole from 10 on.
fn a_second(rate: f64) -> String {
    if rate < 9.95 {
        format!("{rate:.1}").trim_end_matches(".0").to_owned()
    } else {
        short_count(whole(rate))
    }
}
