//! Captures that were given together and have nothing in common: no address of both, or hours between
//! them. A glob selects them easily; they are one run all the same, and a warning says so.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::{Address, FlowRow, RunSummary, Sink, SinkError, Span, TapId, Time};

use crate::output::messages;

/// Addresses that are kept of a tap; one with more may have any of them.
const MAX_ADDRESSES: usize = 4096;
/// Taps that are compared; with more of them nothing is said, and no more are kept.
const MAX_TAPS: usize = 64;
/// Captures with more time than this between them are not of one event. Rotated files follow each other at once.
const MAX_GAP: Span = Span(3_600 * Span::SECOND.0);

/// Notes the hosts and times of each tap, and warns at the end.
#[derive(Default)]
pub(crate) struct Common {
    taps: BTreeMap<TapId, TapHosts>,
}

/// The hosts and times of one tap.
#[derive(Clone, Debug)]
struct TapHosts {
    addresses: BTreeSet<Address>,
    first: Time,
    last: Time,
}

impl TapHosts {
    /// True if two taps can belong to one run.
    fn is_related(&self, other: &Self) -> bool {
        let gap = other.first.since(self.last).max(self.first.since(other.last));
        let is_full = |seen: &Self| seen.addresses.len() >= MAX_ADDRESSES;
        gap <= MAX_GAP && (is_full(self) || is_full(other) || !self.addresses.is_disjoint(&other.addresses))
    }
}

impl Common {
    /// The taps in groups: those of two groups have nothing in common.
    fn groups(&self) -> Vec<Vec<TapId>> {
        let mut groups: Vec<Vec<(TapId, &TapHosts)>> = Vec::new();
        if self.taps.len() > MAX_TAPS {
            return Vec::new();
        }
        for (tap, seen) in &self.taps {
            let (mut related, others): (Vec<_>, Vec<_>) = groups
                .into_iter()
                .partition(|group| group.iter().any(|(_, other)| seen.is_related(other)));
            groups = others;
            related.push(vec![(*tap, seen)]);
            groups.push(related.concat());
        }
        let mut groups: Vec<Vec<TapId>> = groups
            .into_iter()
            .map(|group| group.into_iter().map(|(tap, _)| tap).collect())
            .collect();
        groups.sort();
        groups
    }

    /// True if there is a moment at which every tap captured: they are places of one network, as the uplinks of a switch, between which
    /// its flows are divided.
    fn is_at_once(&self) -> bool {
        let begin = self.taps.values().map(|seen| seen.first).max();
        let end = self.taps.values().map(|seen| seen.last).min();
        begin.zip(end).is_some_and(|(begin, end)| begin <= end)
    }
}

impl Sink for Common {
    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        for row in rows {
            if self.taps.len() > MAX_TAPS && !self.taps.contains_key(&row.tap) {
                continue;
            }
            let seen = self.taps.entry(row.tap).or_insert_with(|| TapHosts {
                addresses: BTreeSet::new(),
                first: row.first_time,
                last: row.last_time,
            });
            seen.first = seen.first.min(row.first_time);
            seen.last = seen.last.max(row.last_time);
            for address in [row.source, row.destination] {
                if seen.addresses.len() < MAX_ADDRESSES {
                    seen.addresses.insert(address);
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        let groups = self.groups();
        if groups.len() < 2 {
            return Ok(());
        }
        let name = |tap: &TapId| {
            run.tap(*tap)
                .map_or_else(|| format!("tap {}", tap.0), |row| row.input.to_string())
        };
        let named: Vec<String> = groups
            .iter()
            .take(3)
            .filter_map(|group| {
                let first = name(group.first()?);
                Some(match group.len() {
                    1 => first,
                    more => format!("{first} and {} more", more - 1),
                })
            })
            .collect();
        let rest = match groups.len() - named.len() {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let named = format!("{}{rest}", named.join("; "));
        if self.is_at_once() {
            messages::note(
                "captures",
                &format!(
                    "no address in common, as links of equal cost have it; they are judged as one run: {named}"
                ),
            );
            return Ok(());
        }
        messages::warn(
            "captures",
            &format!(
                "nothing in common, no address or more than an hour between them: {named}\n\
                 hint: analyse them one by one; `roce-analyze compare A B` compares two runs"
            ),
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(tap: u32, source: u8, destination: u8, hours: u64) -> FlowRow {
        let time = Time(hours * 3_600 * Span::SECOND.0 + 7);
        FlowRow {
            tap: TapId(tap),
            source: Address::v4([10, 0, 0, source]),
            destination: Address::v4([10, 0, 0, destination]),
            first_time: time,
            last_time: Time(time.0 + 5),
            ..FlowRow::default()
        }
    }

    fn groups(rows: &[FlowRow]) -> Vec<Vec<u32>> {
        let mut common = Common::default();
        common.flows_closed(rows).unwrap();
        let groups = common.groups();
        groups
            .iter()
            .map(|group| group.iter().map(|tap| tap.0).collect())
            .collect()
    }

    #[test]
    fn taps_are_grouped_by_hosts_and_times() {
        assert_eq!(groups(&[row(0, 1, 2, 0), row(1, 2, 1, 0)]), [[0, 1]]);
        assert_eq!(groups(&[row(0, 1, 2, 0), row(1, 3, 4, 0)]), [[0], [1]]);
        // Days apart; one hour is near enough.
        assert_eq!(groups(&[row(0, 1, 2, 0), row(1, 1, 2, 48)]), [[0], [1]]);
        assert_eq!(groups(&[row(0, 1, 2, 0), row(1, 1, 2, 1)]), [[0, 1]]);
        // A third one joins two that have nothing in common themselves.
        assert_eq!(
            groups(&[row(0, 1, 2, 0), row(1, 3, 4, 0), row(2, 2, 3, 0)]),
            [[0, 1, 2]]
        );
        assert!(groups(&[]).is_empty());
    }

    #[test]
    fn uplinks_are_captured_at_once_and_share_no_address() {
        let at_once = |rows: &[FlowRow]| {
            let mut common = Common::default();
            common.flows_closed(rows).unwrap();
            common.is_at_once()
        };
        assert!(at_once(&[row(0, 1, 2, 0), row(1, 3, 4, 0)]));
        assert!(!at_once(&[row(0, 1, 2, 0), row(1, 3, 4, 1)]));
    }
}
