//! The result out of the collector's sums: rows with their verdicts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::chains::{RowIndex, chains, pairs};
use super::collect::{Marks, PauseCollector, Phase, RowSums};
use super::document::{Pair, PairState, PauseTimes, Pauses, Reset, Row, Sign};
use super::links::{Links, PausePlace, Places, links};
use super::order::{order, since_start};
use super::row::{Kind, Level, PauseFamily, RowKey, Unseen};
use crate::inventory::Inventory;
use roce_spelling::{counted, whole};

/// The result of a collector.
pub(super) fn pauses(of: &PauseCollector, inventory: &Inventory) -> Pauses {
    let times = times(of);
    let (mut rows, resets) = rows(of);
    // Ends of cables are places that pauses are known of; buffers have the names of ports.
    let paused = rows.iter().filter(|row| row.kind.family().is_some());
    let places = Places::new(paused.map(|row| PausePlace {
        level: row.level,
        node: row.node.clone(),
        object: row.object.clone(),
    }));
    let links = links(&places, inventory, &of.cables, &of.addresses);
    let index = RowIndex::new(&rows);
    let pairs = pairs(&index, &links);
    let chains = chains(&index, &rows, &links, &times);
    let order = order(&rows, &times);
    let verdicts = Verdicts::new(&rows, &pairs, &links, &times);
    let verdicts: Vec<(String, Sign)> = rows.iter().map(|row| verdicts.of(row)).collect();
    for (row, (verdict, sign)) in rows.iter_mut().zip(verdicts) {
        row.verdict = verdict;
        row.sign = sign;
    }
    rows.sort_by_key(|row| rank(row.level));
    let judged = of.judged.found();
    let shut = judged
        .iter()
        .filter(|judged| judged.finding.id == "counters.watchdog")
        .count();
    let mut pattern_text = order.pattern_text;
    if shut > 0 {
        let places = if shut == 1 {
            "a queue".to_owned()
        } else {
            format!("{shut} queues")
        };
        // Frames of a stuck neighbour may not be counted.
        let _ = write!(pattern_text, "; the PFC watchdog shut {places}");
    }
    Pauses {
        judged,
        times,
        rows,
        pairs,
        pattern: order.pattern,
        pattern_text,
        is_inside_only: order.is_inside_only,
        first_marks: order.marks,
        first_pauses: order.pauses,
        order: order.text,
        chains,
        restarts: of.restarts.iter().map(ToString::to_string).collect(),
        resets,
        left_out: of.left_out.len() as u64,
        unjudged: of.judged.left_out,
    }
}

/// Order of levels in the table: from where pauses begin to where they end, buffers last.
fn rank(level: Level) -> u8 {
    match level {
        Level::SwitchInside => 0,
        Level::SwitchPort => 1,
        Level::Hypervisor => 2,
        Level::Server => 3,
        Level::Buffer => 4,
    }
}

fn times(of: &PauseCollector) -> PauseTimes {
    let (first, last) = (of.first.unwrap_or_default(), of.last.unwrap_or_default());
    let Marks {
        has_command,
        start,
        end,
    } = of.marks;
    if !has_command {
        return PauseTimes {
            start: first,
            during: last.since(first),
            every: of.every,
            ..PauseTimes::default()
        };
    }
    let start = start.unwrap_or(last);
    let end = end.unwrap_or(last).max(start);
    PauseTimes {
        start,
        before: start.since(first),
        during: end.min(last.max(start)).since(start),
        after: last.since(end),
        every: of.every,
        has_command,
    }
}

fn rows(of: &PauseCollector) -> (Vec<Row>, Vec<Reset>) {
    let alone = of
        .by_priority
        .iter()
        .filter(|(key, _)| !of.rows.contains_key(*key));
    let all: BTreeMap<&RowKey, &RowSums> = of.rows.iter().chain(alone).collect();
    let (mut rows, mut resets) = (Vec::new(), Vec::new());
    for (key, sums) in all {
        let sums = sums.closed(&of.marks);
        let row = row(key, &sums);
        if let Some(time) = sums.last_reset {
            resets.push(Reset {
                node: row.node.clone(),
                place: row.place(),
                kind: key.kind,
                time,
                count: sums.resets,
            });
        }
        rows.push(row);
    }
    let known: BTreeSet<(Level, String, String, Kind)> = rows
        .iter()
        .map(|row| (row.level, row.node.clone(), row.object.clone(), row.kind))
        .collect();
    for unseen in of.unseen.iter().cloned().chain(without_pauses(&rows, &of.unseen)) {
        let key = (unseen.level, unseen.node, unseen.object, unseen.kind);
        if !known.contains(&key) {
            rows.push(Row {
                why: unseen.why,
                ..empty(key.0, &key.1, &key.2, key.3)
            });
        }
    }
    (rows, resets)
}

/// Servers with marks or CNPs whose pauses were not read, and for which nobody gave a reason.
fn without_pauses(rows: &[Row], known: &BTreeSet<Unseen>) -> Vec<Unseen> {
    let mut has_reason: BTreeSet<&str> = known.iter().map(|unseen| unseen.node.as_str()).collect();
    let servers: Vec<&Row> = rows.iter().filter(|row| row.level == Level::Server).collect();
    has_reason.extend(
        servers
            .iter()
            .filter(|row| row.kind.family().is_some())
            .map(|row| row.node.as_str()),
    );
    let mut unseen = Vec::new();
    for row in servers {
        let is_ecn = matches!(row.kind, Kind::Marked | Kind::CnpsSent | Kind::CnpsHandled);
        if is_ecn && has_reason.insert(&row.node) {
            unseen.push(Unseen {
                level: Level::Server,
                node: row.node.clone(),
                object: row.object.clone(),
                kind: Kind::PfcReceived,
                why: "its driver counts no pauses: usual for a virtual function".to_owned(),
            });
        }
    }
    unseen
}

fn empty(level: Level, node: &str, object: &str, kind: Kind) -> Row {
    Row {
        level,
        node: node.to_owned(),
        object: object.to_owned(),
        kind,
        before: None,
        during: None,
        after: None,
        per_second: None,
        per_second_before: None,
        moved: None,
        hidden: 0.0,
        resets: 0,
        why: String::new(),
        verdict: String::new(),
        sign: Sign::None,
    }
}

fn row(key: &RowKey, sums: &RowSums) -> Row {
    let of = |phase: Phase| sums.phases.get(phase as usize).copied().unwrap_or_default();
    let change = |phase| {
        Some(of(phase))
            .filter(|sum| sum.intervals > 0)
            .map(|sum| sum.change)
    };
    let rate = |phase| {
        Some(of(phase))
            .filter(|sum| sum.seconds > 0.0)
            .map(|sum| sum.change / sum.seconds)
    };
    let mut row = Row {
        before: change(Phase::Before),
        during: change(Phase::During),
        after: change(Phase::After),
        per_second: rate(Phase::During),
        per_second_before: rate(Phase::Before),
        moved: sums.moved,
        hidden: sums.first.unwrap_or_default() + sums.last,
        resets: sums.resets,
        ..empty(key.level, &key.node, &key.object, key.kind)
    };
    if row.total().is_none() {
        row.why = if sums.resets > 0 {
            "it began again between the readings: its growth is not known".to_owned()
        } else {
            "read once: there is no change yet".to_owned()
        };
    }
    row
}

/// Facts beyond the row that its verdict needs.
struct Verdicts<'a> {
    times: &'a PauseTimes,
    /// Pairs by the place that received.
    pairs: BTreeMap<(&'a str, PauseFamily), &'a Pair>,
    /// Changes of PFC by place, and by the places that a cable joins to it.
    pfc: BTreeMap<String, f64>,
    /// CNPs handled as a share of those that were sent.
    handled: Option<f64>,
}

impl<'a> Verdicts<'a> {
    fn new(rows: &[Row], pairs: &'a [Pair], links: &Links, times: &'a PauseTimes) -> Self {
        let mut pfc: BTreeMap<String, f64> = BTreeMap::new();
        for row in rows
            .iter()
            .filter(|row| row.kind.family() == Some(PauseFamily::Pfc))
        {
            if let Some(total) = row.total() {
                *pfc.entry(row.place()).or_default() += total;
            }
        }
        // A cable has PFC if one of its ends counts some.
        let mut joined = pfc.clone();
        for (port, adapters) in links {
            for adapter in adapters {
                let (port, adapter) = (port.text(), adapter.text());
                let counted = [pfc.get(&port), pfc.get(&adapter)].into_iter().flatten().copied();
                if let Some(most) = counted.reduce(f64::max) {
                    for end in [port, adapter] {
                        let joined = joined.entry(end).or_insert(most);
                        *joined = joined.max(most);
                    }
                }
            }
        }
        let during = |kind: Kind| {
            let rows = rows
                .iter()
                .filter(|row| row.level == Level::Server && row.kind == kind);
            rows.filter_map(|row| row.during)
                .reduce(|sum, change| sum + change)
        };
        let sent = during(Kind::CnpsSent).filter(|sent| *sent > 0.0);
        Self {
            times,
            pairs: pairs
                .iter()
                .map(|pair| ((pair.receiver.as_str(), pair.family), pair))
                .collect(),
            pfc: joined,
            handled: during(Kind::CnpsHandled)
                .zip(sent)
                .map(|(handled, sent)| handled / sent),
        }
    }

    fn of(&self, row: &Row) -> (String, Sign) {
        if !row.why.is_empty() {
            let sign = if row.resets > 0 { Sign::Notice } else { Sign::None };
            return (row.why.clone(), sign);
        }
        let mut texts: Vec<String> = Vec::new();
        let mut sign = Sign::None;
        if row.resets > 0 {
            let times = if row.resets == 1 {
                "once".to_owned()
            } else {
                format!("{} times", row.resets)
            };
            texts.push(format!("reset {times}: what it counted meanwhile is left out"));
            sign = Sign::Notice;
        }
        let is_notice = match row.kind {
            Kind::Drops => Self::drops(row, &mut texts),
            Kind::CnpsHandled => self.cnps(row, &mut texts),
            _ => row
                .kind
                .family()
                .is_some_and(|family| self.pauses(row, family, &mut texts)),
        };
        if is_notice {
            sign = Sign::Notice;
        } else if sign == Sign::None && row.kind == Kind::Drops && row.level == Level::Buffer {
            sign = Sign::Good;
        }
        (texts.join("; "), sign)
    }

    /// True: worth a look.
    fn drops(row: &Row, texts: &mut Vec<String>) -> bool {
        match row.total() {
            Some(lost) if lost > 0.0 => {
                texts.push(format!("{} lost", counted(lost, "packet")));
                true
            }
            _ => {
                texts.push("nothing lost".to_owned());
                false
            }
        }
    }

    fn cnps(&self, row: &Row, texts: &mut Vec<String>) -> bool {
        if let Some(share) = self
            .handled
            .filter(|_| row.during.is_some_and(|handled| handled > 0.0))
        {
            texts.push(format!("all servers: {:.0} % of what was sent", share * 100.0));
        }
        false
    }

    fn pauses(&self, row: &Row, family: PauseFamily, texts: &mut Vec<String>) -> bool {
        let mut is_notice = false;
        let usual = row.per_second_before.filter(|rate| *rate > 0.0);
        if let Some(usual) = usual.filter(|_| row.during.is_some_and(|during| during > 0.0)) {
            let text = match row.moved {
                Some(moved) => {
                    is_notice = true;
                    let at = since_start(moved.to, self.times);
                    format!("more than before ({} per second) from {at} on", whole(usual))
                }
                None => format!("usual (before: {} per second)", whole(usual)),
            };
            texts.push(text);
        }
        if family == PauseFamily::Global && row.has_moved() && self.pfc.get(&row.place()) == Some(&0.0) {
            texts.push("no PFC on this link".to_owned());
            is_notice = true;
        }
        if row.level == Level::SwitchInside && row.moved.is_some() && usual.is_none() {
            texts.push("congestion inside of the switch".to_owned());
            is_notice = true;
        }
        if let Some(pair) = self
            .pairs
            .get(&(row.place().as_str(), family))
            .filter(|_| !row.kind.is_sent())
        {
            is_notice |= Self::pair(pair, texts);
        }
        is_notice
    }

    fn pair(pair: &Pair, texts: &mut Vec<String>) -> bool {
        match pair.state {
            PairState::Agree if pair.sent + pair.received > 0.0 => {
                texts.push(format!("agrees with {}", pair.sender));
                false
            }
            PairState::Agree => false,
            PairState::Differ => {
                texts.push(format!(
                    "differs from {}, which sent {}",
                    pair.sender,
                    whole(pair.sent)
                ));
                true
            }
            PairState::Reset => {
                texts.push(format!("not comparable with {}: a reset", pair.sender));
                false
            }
        }
    }
}
