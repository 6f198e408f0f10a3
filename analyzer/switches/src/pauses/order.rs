//! Pattern and order: whether marks or pauses moved, and which of them first.

use roce_model::Time;

use super::document::{MovedInterval, Pattern, PauseTimes, Row};
use super::row::{Kind, Level, PauseFamily};

/// Marks and pauses of all rows.
pub(super) struct Order {
    pub(super) pattern: Pattern,
    pub(super) pattern_text: String,
    pub(super) is_inside_only: bool,
    pub(super) marks: Option<MovedInterval>,
    pub(super) pauses: Option<MovedInterval>,
    pub(super) text: String,
}

/// First movement of several rows: the first reading that shows one, and the earliest time at which one can have begun.
#[derive(Clone, Copy)]
struct First {
    shown: MovedInterval,
    earliest: Time,
}

impl First {
    /// True if this surely began before all of `other`.
    fn is_before(self, other: Self) -> bool {
        let earliest = MovedInterval {
            from: other.earliest,
            ..other.shown
        };
        self.shown.is_before(earliest)
    }
}

fn first<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<First> {
    let moved: Vec<MovedInterval> = rows.filter_map(|row| row.moved).collect();
    let shown = moved.iter().copied().min_by_key(|moved| (moved.to, moved.from))?;
    let earliest = moved.iter().map(|moved| moved.from).min()?;
    Some(First { shown, earliest })
}

/// Seconds since the start of the command.
pub(super) fn since_start(time: Time, times: &PauseTimes) -> String {
    format!("+{:.1} s", time.since(times.start).seconds())
}

/// A reading's place in time, in words.
pub(super) fn at(time: Time, times: &PauseTimes) -> String {
    if times.is_unknown() {
        return "between the recordings".to_owned();
    }
    format!("at {}", since_start(time, times))
}

/// Time between readings in words: no order within it is known. Two recordings without times tell none.
pub(super) fn resolution(times: &PauseTimes) -> String {
    if times.is_unknown() {
        return "two recordings tell no order".to_owned();
    }
    format!("readings every {:.1} s", times.every.seconds())
}

/// Pattern and order of the rows.
pub(super) fn order(rows: &[Row], times: &PauseTimes) -> Order {
    let is_read = |row: &&Row| row.during.is_some();
    let marks: Vec<&Row> = rows
        .iter()
        .filter(is_read)
        .filter(|row| row.kind == Kind::Marked)
        .collect();
    let cnps: Vec<&Row> = rows
        .iter()
        .filter(is_read)
        .filter(|row| row.kind == Kind::CnpsSent)
        .collect();
    let is_pause = |row: &&Row| row.kind.family().is_some();
    let (inside, pauses): (Vec<&Row>, Vec<&Row>) = rows
        .iter()
        .filter(is_read)
        .filter(is_pause)
        .partition(|row| row.level == Level::SwitchInside);
    // CNPs answer marks: they count where no marks are counted.
    let ecn = if marks.is_empty() { cnps } else { marks };
    let (first_marks, first_pauses) = (first(ecn.iter().copied()), first(pauses.iter().copied()));
    let is_inside_only =
        first_pauses.is_none() && !pauses.is_empty() && first(inside.iter().copied()).is_some();
    let pattern = match (first_marks, first_pauses) {
        (None, None) if ecn.is_empty() || pauses.is_empty() || has_begun(rows) => Pattern::NotKnown,
        (None, None) => Pattern::Nothing,
        (Some(_), None) if pauses.is_empty() => Pattern::NotKnown,
        (Some(_), None) => Pattern::EcnAlone,
        (None, Some(_)) if ecn.is_empty() => Pattern::NotKnown,
        (None, Some(_)) => Pattern::PausesWithoutEcn,
        (Some(marks), Some(pauses)) if marks.is_before(pauses) => Pattern::EcnThenPauses,
        (Some(marks), Some(pauses)) if pauses.is_before(marks) => Pattern::PausesThenEcn,
        (Some(_), Some(_)) => Pattern::EcnAndPauses,
    };
    let names = names(&pauses);
    let mut pattern_text = match pattern {
        Pattern::Nothing => "nothing: neither marks nor pauses beyond what there was before".to_owned(),
        Pattern::EcnAlone => "ECN alone".to_owned(),
        Pattern::EcnThenPauses => format!("ECN, then {names}"),
        Pattern::PausesThenEcn => format!("{names}, then ECN"),
        Pattern::EcnAndPauses => format!("ECN and {names}, in an order that the readings cannot tell"),
        Pattern::PausesWithoutEcn => format!("{names} without ECN"),
        // Rows that began again have no change.
        Pattern::NotKnown if !pauses.iter().any(|row| row.has_moved()) && has_begun(rows) => {
            "not known: counters began again between the readings".to_owned()
        }
        Pattern::NotKnown => unknown(&ecn, &pauses, first_marks.is_some(), first_pauses.is_some()),
    };
    if is_inside_only {
        pattern_text.push_str("; PFC inside of the switch only: hosts were not paused");
    }
    Order {
        pattern,
        pattern_text,
        is_inside_only,
        marks: first_marks.map(|first| first.shown),
        pauses: first_pauses.map(|first| first.shown),
        text: sentence(first_marks, first_pauses, pattern, &names, times),
    }
}

/// True if counters of pauses or marks began again.
fn has_begun(rows: &[Row]) -> bool {
    let is_judged = |row: &&Row| row.kind.family().is_some() || row.kind == Kind::Marked;
    rows.iter().filter(is_judged).any(|row| row.resets > 0)
}

/// The kinds of pauses that moved, in words.
fn names(pauses: &[&Row]) -> String {
    let has = |family| {
        pauses
            .iter()
            .any(|row| row.moved.is_some() && row.kind.family() == Some(family))
    };
    match (has(PauseFamily::Pfc), has(PauseFamily::Global)) {
        (true, true) => "PFC and 802.3x pauses".to_owned(),
        (false, true) => "802.3x pauses".to_owned(),
        _ => "PFC".to_owned(),
    }
}

fn unknown(ecn: &[&Row], pauses: &[&Row], has_marks: bool, has_pauses: bool) -> String {
    let seen = match (has_marks, has_pauses) {
        (true, _) => "marks; ",
        (_, true) => "pauses; ",
        _ => "",
    };
    let unread = match (ecn.is_empty(), pauses.is_empty()) {
        (true, true) => "neither marks nor pauses were read",
        (true, false) => "marks were not read",
        _ => "pauses were not read",
    };
    format!("not known: {seen}{unread}")
}

fn sentence(
    marks: Option<First>,
    pauses: Option<First>,
    pattern: Pattern,
    names: &str,
    times: &PauseTimes,
) -> String {
    let at = |first: First| at(first.shown.to, times);
    match (marks, pauses) {
        (Some(marks), Some(pauses)) => {
            let end = match pattern {
                Pattern::EcnThenPauses => format!("ECN acts before {names}, as it should"),
                Pattern::PausesThenEcn => format!("{names} before ECN: ECN's threshold is too high"),
                _ => "the order is unclear, both began between the same two readings".to_owned(),
            };
            let (marks, pauses, every) = (at(marks), at(pauses), resolution(times));
            if times.is_unknown() {
                return format!("marks and pauses, both {marks}: {every}");
            }
            format!("marks first {marks}, pauses first {pauses} ({every}): {end}")
        }
        (Some(marks), None) if times.is_unknown() => format!("marks {}, no pauses", at(marks)),
        (None, Some(pauses)) if times.is_unknown() => format!("pauses {}, no marks", at(pauses)),
        (Some(marks), None) => format!("marks first {} ({}), no pauses", at(marks), resolution(times)),
        (None, Some(pauses)) => format!("pauses first {} ({}), no marks", at(pauses), resolution(times)),
        (None, None) => String::new(),
    }
}
