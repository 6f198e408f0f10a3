//! Ways from servers over hypervisors to switches: pairs of ends, and where pauses moved first.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::document::{Chain, MovedInterval, Pair, PairState, PauseTimes, Row};
use super::links::{Links, PausePlace};
use super::order::{at, resolution};
use super::row::{Kind, Level};

/// Share by which the two ends of a cable may differ.
const MAX_DIFFERENCE: f64 = 0.01;

/// Rows by place and kind.
pub(super) struct RowIndex<'a> {
    by_key: BTreeMap<(PausePlace, Kind), &'a Row>,
}

impl<'a> RowIndex<'a> {
    pub(super) fn new(rows: &'a [Row]) -> Self {
        let place = |row: &Row| PausePlace {
            level: row.level,
            node: row.node.clone(),
            object: row.object.clone(),
        };
        Self {
            by_key: rows.iter().map(|row| ((place(row), row.kind), row)).collect(),
        }
    }

    pub(super) fn get(&self, place: &PausePlace, kind: Kind) -> Option<&'a Row> {
        self.by_key.get(&(place.clone(), kind)).copied()
    }

    /// Rows of pauses of a place.
    fn pauses(&self, place: &PausePlace) -> impl Iterator<Item = &'a Row> {
        let kinds = [
            Kind::PfcReceived,
            Kind::PfcSent,
            Kind::GlobalReceived,
            Kind::GlobalSent,
        ];
        kinds.into_iter().filter_map(|kind| self.get(place, kind))
    }
}

/// Pauses sent by one end against those received by the other, for every cable whose two ends count them.
pub(super) fn pairs(rows: &RowIndex<'_>, links: &Links) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let mut done: BTreeSet<(&PausePlace, &PausePlace)> = BTreeSet::new();
    for (port, adapters) in links {
        // The hypervisor's adapter is the one with the cable among several.
        let mut ends: Vec<&PausePlace> = adapters
            .iter()
            .filter(|place| !done.contains(&(*place, port)))
            .collect();
        ends.sort_by_key(|place| (place.level == Level::Server, *place));
        for kind in [
            Kind::PfcSent,
            Kind::PfcReceived,
            Kind::GlobalSent,
            Kind::GlobalReceived,
        ] {
            let Some((own, other_kind)) = rows.get(port, kind).zip(kind.other_end()) else {
                continue;
            };
            if let Some(other) = ends.iter().find_map(|place| rows.get(place, other_kind)) {
                let (sender, receiver) = if kind.is_sent() {
                    (own, other)
                } else {
                    (other, own)
                };
                pairs.extend(pair(sender, receiver));
            }
        }
        done.extend(ends.into_iter().map(|place| (port, place)));
    }
    pairs
}

fn pair(from: &Row, to: &Row) -> Option<Pair> {
    let (sent, received) = (from.total()?, to.total()?);
    let allowed = sent.max(received) * MAX_DIFFERENCE + from.hidden.max(to.hidden);
    let state = if from.resets + to.resets > 0 {
        PairState::Reset
    } else if (sent - received).abs() <= allowed {
        PairState::Agree
    } else {
        PairState::Differ
    };
    Some(Pair {
        family: from.kind.family()?,
        sender: from.place(),
        receiver: to.place(),
        sent,
        received,
        allowed,
        state,
    })
}

/// The ways on which pauses moved.
pub(super) fn chains(rows: &RowIndex<'_>, all: &[Row], links: &Links, times: &PauseTimes) -> Vec<Chain> {
    let mut chains = Vec::new();
    for (port, adapters) in links {
        let mut places: Vec<&PausePlace> = adapters
            .iter()
            .filter(|place| place.level != Level::SwitchPort)
            .collect();
        if places.is_empty() {
            continue;
        }
        places.push(port);
        let mut first: Vec<(String, MovedInterval)> = Vec::new();
        for place in &places {
            let moved = rows.pauses(place).filter_map(|row| row.moved);
            first.extend(
                moved
                    .min_by_key(|moved| (moved.to, moved.from))
                    .map(|moved| (place.text(), moved)),
            );
        }
        if first.is_empty() {
            continue;
        }
        let within = all
            .iter()
            .filter(|row| row.level == Level::SwitchInside && row.node == port.node);
        let within = within.filter(|row| row.kind.family().is_some());
        let within = within.filter_map(|row| Some((row.place(), row.moved?)));
        first.extend(within.min_by_key(|(_, moved)| (moved.to, moved.from)));
        let rows = places.iter().flat_map(|place| rows.pauses(place));
        let sent = rows.filter(|row| row.kind.is_sent() && row.moved.is_some());
        let mut senders: Vec<String> = sent.map(Row::place).collect();
        senders.dedup();
        chains.push(chain(
            places.iter().map(|place| place.text()).collect(),
            &first,
            senders,
            times,
        ));
    }
    chains
}

fn chain(
    places: Vec<String>,
    moved: &[(String, MovedInterval)],
    senders: Vec<String>,
    times: &PauseTimes,
) -> Chain {
    // A place may be the first if no other surely moved before it.
    let may_be_first = |own: &MovedInterval| !moved.iter().any(|(_, other)| other.is_before(*own));
    let first: Vec<&(String, MovedInterval)> = moved.iter().filter(|(_, own)| may_be_first(own)).collect();
    // Writing into a text does not fail.
    let mut text = format!("{}: ", places.join(" - "));
    match first.as_slice() {
        [(place, moved)] => {
            let _ = write!(text, "{place} moved first, {}", at(moved.to, times));
        }
        several => {
            let names: Vec<&str> = several.iter().map(|(place, _)| place.as_str()).collect();
            let _ = write!(
                text,
                "which of {} moved first is unclear ({})",
                names.join(", "),
                resolution(times)
            );
        }
    }
    if !senders.is_empty() {
        let _ = write!(text, "; the pauses come from {}", senders.join(" and "));
    }
    Chain {
        places,
        first: first.into_iter().map(|(place, _)| place.clone()).collect(),
        senders,
        text,
    }
}
