//! The result as a table of text.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use roce_model::text::clean;

use super::document::{ENDS_DIFFER, PairState, PauseTimes, Pauses, Reset, Row, Sign};
use super::order::at;
use super::row::{Kind, Level, PauseFamily};
use roce_spelling::{plural, whole};

/// Width from which a row is one line.
const WIDE: usize = 120;
/// Smallest width that is used.
const MIN_WIDTH: usize = 80;
/// Widest column of places.
const MAX_PLACE: usize = 36;
/// Width of a column of numbers.
const NUMBER: usize = 11;

fn cell(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), whole)
}

/// A line of the table: one row, or both directions of a kind of pauses of which none was seen.
struct TableLine {
    level: Level,
    place: String,
    kind: String,
    numbers: [String; 3],
    rate: String,
    verdict: String,
}

/// The result as text of at most `width` characters a line; at least 80. Names of devices are cleaned.
///
/// Places where nothing moved are left out and counted.
pub fn pause_text(pauses: &Pauses, width: usize) -> String {
    let width = width.max(MIN_WIDTH);
    let mut text = head(&pauses.times);
    let (lines, hidden) = lines(&pauses.rows);
    if !lines.is_empty() {
        text.push_str(&if width >= WIDE {
            wide(&lines, width)
        } else {
            narrow(&lines, width)
        });
    }
    if hidden > 0 {
        let rows = if hidden == 1 {
            "1 row is".to_owned()
        } else {
            format!("{hidden} rows are")
        };
        let _ = writeln!(text, " {rows} not shown: nothing moved there");
    }
    if pauses.left_out > 0 {
        let _ = writeln!(
            text,
            " not read, as no more can be kept: {}",
            plural(pauses.left_out, "row", "rows")
        );
    }
    if pauses.unjudged > 0 {
        let _ = writeln!(
            text,
            " shown and not judged, as no more devices can be: {}",
            plural(pauses.unjudged, "reading", "readings")
        );
    }
    let mut say = |name: &str, said: &str| wrap(&mut text, &format!(" {name:<9} "), &clean(said), width);
    say("pattern", &pauses.pattern_text);
    if !pauses.order.is_empty() {
        say("order", &pauses.order);
    }
    for judged in &pauses.judged {
        let finding = &judged.finding;
        let place = format!("{} {}", judged.node, finding.object);
        let said = format!("{}: {}: {}", finding.id, place.trim_end(), finding.text);
        say(finding.severity.name(), &said);
    }
    for chain in &pauses.chains {
        say("chain", &chain.text);
    }
    for pair in pauses.pairs.iter().filter(|pair| pair.state == PairState::Differ) {
        let (sent, received, allowed) = (whole(pair.sent), whole(pair.received), whole(pair.allowed));
        let said = format!(
            "{}: {} sent {sent} {} frames, {} received {received}; readings explain {allowed}",
            ENDS_DIFFER.0,
            pair.sender,
            pair.family.name(),
            pair.receiver
        );
        say("ends", &said);
    }
    for node in &pauses.restarts {
        let of_node = pauses.resets.iter().filter(|reset| &reset.node == node);
        say("restart", &restart_text(node, of_node.count()));
    }
    let is_alone = |reset: &&Reset| !pauses.restarts.contains(&reset.node);
    for reset in pauses.resets.iter().filter(is_alone) {
        say("reset", &reset_text(reset, &pauses.times));
    }
    text
}

/// A restart in words, with the number of rows that began again.
fn restart_text(node: &str, rows: usize) -> String {
    let rows = match rows {
        0 => "no counter shows it".to_owned(),
        1 => "1 of its rows began again".to_owned(),
        rows => format!("{rows} of its rows began again"),
    };
    format!("{node} restarted between the readings: {rows}, and what they counted meanwhile is not known")
}

/// A reset in words.
fn reset_text(reset: &Reset, times: &PauseTimes) -> String {
    let at = if reset.time < times.start {
        format!(
            "at {:.1} s before the start",
            times.start.since(reset.time).seconds()
        )
    } else {
        at(reset.time, times)
    };
    let times = if reset.count == 1 {
        "once".to_owned()
    } else {
        format!("{} times", reset.count)
    };
    format!(
        "{}, {}: reset {times}, last seen {at}",
        reset.place,
        reset.kind.name()
    )
}

fn head(times: &PauseTimes) -> String {
    let total = times.whole().seconds();
    if times.is_unknown() {
        return " time      between two recordings\n".to_owned();
    }
    let mut text = format!(" time      {total:.1} s");
    if times.has_command {
        let _ = write!(
            text,
            ", of it {:.1} s before, {:.1} s during the command, {:.1} s after",
            times.before.seconds(),
            times.during.seconds(),
            times.after.seconds()
        );
    }
    text.push('\n');
    text
}

/// The places of a run, and the pauses that each has.
#[derive(Default)]
struct ShownPlaces {
    /// Places where anything moved, on any level.
    places: BTreeSet<String>,
    /// Hosts, hypervisors and switches where anything moved.
    nodes: BTreeSet<String>,
    /// Places and levels where anything moved.
    levels: BTreeSet<(String, Level)>,
    /// Kinds of pauses that moved in any direction.
    moved: BTreeSet<(String, Level, PauseFamily)>,
    /// Kinds of pauses whose received frames are known.
    received: BTreeSet<(String, Level, PauseFamily)>,
}

impl ShownPlaces {
    fn new(rows: &[Row]) -> Self {
        let mut shown = Self::default();
        for row in rows {
            let place = row.place();
            if let Some(family) = row.kind.family() {
                let key = (place.clone(), row.level, family);
                if row.has_moved() {
                    shown.moved.insert(key.clone());
                }
                if !row.kind.is_sent() {
                    shown.received.insert(key);
                }
            }
            if row.has_moved() || row.sign == Sign::Notice {
                shown.levels.insert((place.clone(), row.level));
                shown.places.insert(place);
                shown.nodes.insert(row.node.clone());
            }
        }
        shown
    }

    /// The name of the row's kind in its line. `None`: another line says enough.
    fn kind_of(&self, row: &Row) -> Option<&'static str> {
        if row.has_moved() || row.sign == Sign::Notice {
            return Some(row.kind.name());
        }
        let Some(family) = row.kind.family() else {
            let says_something = !row.why.is_empty() || row.level == Level::Buffer;
            return says_something.then(|| row.kind.name());
        };
        // The other direction says enough about pauses that were not seen in one direction.
        let key = (row.place(), row.level, family);
        let is_said = self.moved.contains(&key) || (row.kind.is_sent() && self.received.contains(&key));
        (!is_said).then(|| family.name())
    }
}

/// The lines that are shown, and the number of rows of places that are not.
fn lines(rows: &[Row]) -> (Vec<TableLine>, usize) {
    let shown = ShownPlaces::new(rows);
    let mut lines: Vec<TableLine> = Vec::new();
    let mut hidden = 0;
    for row in rows {
        let place = row.place();
        let is_shown = match row.level {
            _ if !row.why.is_empty() => shown.nodes.contains(&row.node),
            Level::Buffer => shown.places.contains(&place),
            level => shown.levels.contains(&(place, level)),
        };
        if is_shown {
            lines.extend(shown.kind_of(row).map(|kind| line(row, kind.to_owned())));
        } else {
            hidden += 1;
        }
    }
    (lines, hidden)
}

fn line(row: &Row, kind: String) -> TableLine {
    let sign = match row.sign {
        Sign::None => "",
        Sign::Good => "✓ ",
        Sign::Notice => "▲ ",
    };
    let rate = row.per_second.filter(|rate| *rate > 0.0);
    TableLine {
        level: row.level,
        place: clean(&row.place()).into_owned(),
        kind,
        numbers: [cell(row.before), cell(row.during), cell(row.after)],
        rate: cell(rate),
        verdict: clean(&format!("{sign}{}", row.verdict)).into_owned(),
    }
}

/// A text with blanks up to `width` characters; one that is longer ends with `…`.
fn fit(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return format!("{text}{}", " ".repeat(width - length));
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// Width of the column of places, and of that of kinds.
fn columns(lines: &[TableLine], max_place: usize) -> (usize, usize) {
    let widest = |of: fn(&TableLine) -> &str| {
        lines
            .iter()
            .map(|line| of(line).chars().count())
            .max()
            .unwrap_or(0)
    };
    let place = widest(|line| &line.place).clamp("where".len(), max_place);
    (place, widest(|line| &line.kind).max("kind".len()))
}

/// One line for each row; long verdicts go on below themselves.
fn wide(lines: &[TableLine], width: usize) -> String {
    let (place, kind) = columns(lines, MAX_PLACE);
    let level = Level::SwitchInside.title().len();
    let numbers = |before: &str, during: &str, after: &str, rate: &str| {
        format!("{before:>NUMBER$} {during:>NUMBER$} {after:>NUMBER$} {rate:>NUMBER$}")
    };
    let heading = numbers("before", "during", "after", "per second");
    let mut text = format!(
        " {} {} {} {heading}  verdict\n",
        fit("level", level),
        fit("where", place),
        fit("kind", kind)
    );
    for line in lines {
        let [before, during, after] = &line.numbers;
        let start = format!(
            " {} {} {} {}  ",
            fit(line.level.title(), level),
            fit(&line.place, place),
            fit(&line.kind, kind),
            numbers(before, during, after, &line.rate)
        );
        wrap(&mut text, &start, &line.verdict, width);
    }
    text
}

/// A heading for each level, and the verdict below each row.
fn narrow(lines: &[TableLine], width: usize) -> String {
    let kind = Kind::GlobalReceived.name().len();
    let place = width.saturating_sub(kind + 3 * (NUMBER + 1) + 4).min(MAX_PLACE);
    let numbers = |of: [&str; 3]| format!("{:>NUMBER$} {:>NUMBER$} {:>NUMBER$}", of[0], of[1], of[2]);
    let mut text = format!(
        "   {} {} {}\n",
        fit("where", place),
        fit("kind", kind),
        numbers(["before", "during", "after"])
    );
    let mut level = None;
    for line in lines {
        if level.replace(line.level) != Some(line.level) {
            let _ = writeln!(text, " {}", line.level.title());
        }
        let [before, during, after] = &line.numbers;
        let _ = writeln!(
            text,
            "   {} {} {}",
            fit(&line.place, place),
            fit(&line.kind, kind),
            numbers([before, during, after])
        );
        let rate = Some(&line.rate)
            .filter(|rate| *rate != "-")
            .map(|rate| format!("{rate} per second"));
        let said: Vec<String> = rate
            .into_iter()
            .chain(Some(line.verdict.clone()))
            .filter(|said| !said.is_empty())
            .collect();
        if !said.is_empty() {
            wrap(&mut text, "     ", &said.join("; "), width);
        }
    }
    text
}

/// Adds `start` and the words of `said`, in lines of at most `width` characters whose words begin below each other.
fn wrap(text: &mut String, start: &str, said: &str, width: usize) {
    let indent = start.chars().count();
    let mut line = start.to_owned();
    let mut length = indent;
    for word in said.split_whitespace() {
        let long = word.chars().count();
        if length > indent && length + 1 + long > width {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(indent);
            length = indent;
        }
        if length > indent {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += long;
    }
    text.push_str(line.trim_end());
    text.push('\n');
}
