//! Section about the taps: their vantage and clocks, and the hops between two of them.

use std::collections::BTreeMap;

use roce_model::{Address, HopRow, HostVantage, TapId, TapRow, Vantage};

use super::field::{field, sentence};
use super::grid::{Column, lay, lay_some};
use super::ink::{Ink, clean, shorten};
use super::verdicts::{nanoseconds, three_digits};
use super::view::View;
use roce_spelling::{ABSENT, count, plural, short_count};

/// Taps and pairs of taps that are shown.
const SHOWN: usize = 8;
/// Hosts that are named for each vantage.
const HOSTS: usize = 3;

/// From which hosts a single tap is near, far or in between.
pub(super) fn vantage(view: &View<'_>) -> Vec<String> {
    let mut items = Vec::new();
    for (vantage, said) in [
        (HostVantage::Near, "at"),
        (HostVantage::Between, "between"),
        (HostVantage::Far, "far from"),
    ] {
        let mut hosts: Vec<Address> = view
            .run
            .vantages
            .iter()
            .filter(|row| row.vantage == Some(vantage))
            .map(|row| row.address)
            .collect();
        hosts.sort_unstable();
        hosts.dedup();
        let room = view.style.width / 3;
        let named: Vec<String> = hosts
            .iter()
            .take(HOSTS)
            .map(|host| shorten(&clean(&host.to_string()), room, view.style.unicode))
            .collect();
        if named.is_empty() {
            continue;
        }
        let left = hosts.len() - named.len();
        let more = if left > 0 {
            format!(" and {} more", count(left as u64))
        } else {
            String::new()
        };
        let [first, rest @ ..] = named.as_slice() else {
            continue;
        };
        items.push(format!(
            "{said} {first}{}",
            if rest.is_empty() { more.as_str() } else { "" }
        ));
        for (place, host) in rest.iter().enumerate() {
            items.push(format!(
                "{host}{}",
                if place + 1 == rest.len() {
                    more.as_str()
                } else {
                    ""
                }
            ));
        }
    }
    if items.is_empty() && view.run.totals.roce_packets > 0 {
        items.push("unknown: the packets do not show it; --tap-at states it".to_owned());
    }
    items
}

/// The taps, when there are several: what each is, what it saw, its clock.
pub(super) fn taps(view: &View<'_>) -> Vec<String> {
    let (run, style) = (view.run, view.style);
    if run.taps.len() < 2 {
        return Vec::new();
    }
    let shown: Vec<&TapRow> = run.taps.iter().take(SHOWN).collect();
    let room = (style.width / 4).max(16);
    let text = |text: Option<&str>| text.map_or_else(|| ABSENT.to_owned(), clean);
    let number = |value: Option<f64>, say: fn(f64) -> String| value.map_or_else(|| ABSENT.to_owned(), say);
    let columns = vec![
        Column::new("tap", true, 0, &shown, |tap| tap.tap.0.to_string()),
        Column::new("input", false, 0, &shown, |tap| {
            shorten(&clean(&tap.input), room, style.unicode)
        }),
        Column::new("interface", false, 4, &shown, |tap| {
            text(tap.interface.as_deref())
        })
        .unless_zero(),
        Column::new("mirror", false, 5, &shown, |tap| text(tap.mirror.as_deref())).unless_zero(),
        Column::new("link", false, 9, &shown, |tap| clean(&tap.link)),
        Column::new("packets", true, 1, &shown, |tap| short_count(tap.roce_packets)),
        Column::new("matched", true, 6, &shown, |tap| short_count(tap.matched_packets)).unless_zero(),
        Column::new("vantage", false, 2, &shown, |tap| {
            text(tap.vantage.map(Vantage::name))
        })
        .unless_zero(),
        Column::new("clock", true, 3, &shown, |tap| {
            number(tap.clock_offset_ns, |offset| {
                let sign = if offset > 0.0 { "+" } else { "" };
                format!("{sign}{}", nanoseconds(offset))
            })
        })
        .unless_zero(),
        Column::new("within", true, 3, &shown, |tap| {
            number(tap.clock_uncertainty_ns, nanoseconds)
        })
        .unless_zero(),
        Column::new("drift ppb", true, 7, &shown, |tap| {
            number(tap.clock_drift_ppb, three_digits)
        })
        .unless_zero(),
        Column::new("lost", true, 8, &shown, |tap| {
            short_count(tap.frames_lost.saturating_add(tap.mirror_lost))
        })
        .unless_zero()
        .in_ink(Ink::Bad),
    ];
    let title = plural(run.taps.len() as u64, "tap", "taps");
    let again = run.totals.seen_again;
    let facts = [
        Some(Ink::Bold.paint(&title)),
        (again > 0).then(|| {
            format!(
                "{} seen at another tap too: counted once here",
                plural(again, "packet", "packets")
            )
        }),
        run.taps
            .iter()
            .any(|tap| tap.clock_reference.is_some())
            .then(|| "times are corrected by the clocks' offsets".to_owned()),
    ];
    let mut lines = vec![String::new()];
    lines.extend(sentence(facts, style));
    lines.extend(lay_some(columns, (shown.len(), run.taps.len()), style));
    lines
}

/// One tap to another, over all flows.
#[derive(Clone, Copy, Default)]
struct Hop {
    from: u32,
    to: u32,
    flows: u64,
    matched: u64,
    marked: u64,
    lost: u64,
    not_captured: u64,
    shortest: Option<f64>,
    longest: Option<f64>,
    /// The median of the flow with most matched packets.
    median: Option<(u64, f64)>,
}

impl Hop {
    fn add(&mut self, row: &HopRow) {
        self.flows += 1;
        self.matched += row.matched;
        self.marked += row.marked;
        self.lost += row.lost;
        self.not_captured += row.not_captured;
        let fold = |kept: Option<f64>, new: Option<f64>, choose: fn(f64, f64) -> f64| match (kept, new) {
            (Some(kept), Some(new)) => Some(choose(kept, new)),
            (kept, new) => kept.or(new),
        };
        self.shortest = fold(self.shortest, row.delay_min_ns, f64::min);
        self.longest = fold(self.longest, row.delay_max_ns, f64::max);
        if let Some(median) = row.delay_p50_ns
            && self.median.is_none_or(|(matched, _)| row.matched > matched)
        {
            self.median = Some((row.matched, median));
        }
    }
}

/// Marks, losses and delays between taps that saw the same packets.
pub(super) fn hops(view: &View<'_>) -> Vec<String> {
    let style = view.style;
    let mut all: BTreeMap<(u32, u32), Hop> = BTreeMap::new();
    for row in &view.run.hops {
        let (from, to) = (row.from_tap.0, row.to_tap.0);
        all.entry((from, to))
            .or_insert(Hop {
                from,
                to,
                ..Hop::default()
            })
            .add(row);
    }
    if all.is_empty() {
        return Vec::new();
    }
    let mut shown: Vec<Hop> = all.values().copied().collect();
    let known = view.run.tap_names();
    shown.sort_by_key(|hop| [hop.from, hop.to].map(|tap| known.order(TapId(tap))));
    shown.truncate(SHOWN);
    let room = (style.width / 4).max(16);
    let name = |tap: u32| shorten(&clean(&known.name(TapId(tap))), room, style.unicode);
    let counted = |title, rank, value: fn(&Hop) -> u64| {
        Column::new(title, true, rank, &shown, |hop| short_count(value(hop)))
    };
    let time = |value: Option<f64>| value.map_or_else(|| ABSENT.to_owned(), nanoseconds);
    let columns = vec![
        Column::new("from", false, 0, &shown, |hop| name(hop.from)),
        Column::new("to", false, 0, &shown, |hop| name(hop.to)),
        counted("flows", 4, |hop| hop.flows),
        counted("matched", 0, |hop| hop.matched),
        counted("marked", 1, |hop| hop.marked).in_ink(Ink::Warn),
        counted("lost", 0, |hop| hop.lost).in_ink(Ink::Bad),
        counted("not captured", 2, |hop| hop.not_captured).unless_zero(),
        Column::new("shortest", true, 3, &shown, |hop| time(hop.shortest)),
        Column::new("median", true, 2, &shown, |hop| {
            time(hop.median.map(|(_, median)| median))
        }),
        Column::new("longest", true, 3, &shown, |hop| time(hop.longest)),
    ];
    let title = plural(all.len() as u64, "hop", "hops");
    let mut lines = vec![String::new()];
    lines.extend(sentence(
        [
            Some(Ink::Bold.paint(&title)),
            Some("what happened between two taps".to_owned()),
        ],
        style,
    ));
    lines.extend(lay(columns, None, style));
    if all.len() > SHOWN {
        lines.push(format!(" and {} more", all.len() - SHOWN));
    }
    lines
}

/// The vantage of a single tap, as a field.
pub(super) fn vantage_field(view: &View<'_>) -> Vec<String> {
    field("vantage", &vantage(view), view.style)
}
