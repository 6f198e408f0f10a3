//! Spellings of version 0.2.0: they become the new ones before the command line is parsed, and each is named once.

use std::ffi::{OsStr, OsString};

/// The command of `--explain`, whatever it stood behind.
const EXPLAIN: &str = "explain";

/// Commands: the old words, and the new ones in their place.
pub(crate) const COMMANDS: &[(&[&str], &[&str])] = &[
    (&["fleet", "sql"], &["query"]),
    (&["fleet", "map"], &["dataset", "map"]),
    (&["fleet", "compact"], &["dataset", "compact"]),
    (&["fleet", "pass2"], &["dataset", "join"]),
    (&["fleet", "report"], &["dataset", "report"]),
    (&["fleet", "doctor"], &["doctor", "--host"]),
    (&["fabric", "switch"], &["fabric", "counters", "--kind", "switch"]),
    (
        &["fabric", "hypervisor"],
        &["fabric", "counters", "--kind", "esxi"],
    ),
    (&["metrics", "rules"], &["metrics", "files", "rules"]),
    (&["metrics", "dashboards"], &["metrics", "files", "dashboards"]),
    (
        &["metrics", "scrape-config"],
        &["metrics", "files", "scrape-config"],
    ),
    (
        &["metrics", "alertmanager"],
        &["metrics", "files", "alertmanager"],
    ),
    (&["metrics", "systemd"], &["metrics", "files", "systemd"]),
    (&["metrics", "compat"], &["metrics", "files", "compat"]),
    (&["traffic", "start"], &["traffic", "run", "--detach"]),
    (&["traffic", "status"], &["traffic", "run", "--status"]),
    (&["traffic", "stop"], &["traffic", "run", "--stop"]),
];

/// The fate of an option's value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// It stays.
    Same,
    /// It stands behind these words.
    Behind(&'static str),
    /// The option had no value, and this is the new one's.
    Becomes(&'static str),
    /// A day becomes the day before it.
    DayBefore,
    /// An expectation becomes the result that fails.
    Negated,
}

/// An option of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OldOption {
    /// The words of the command as they are now, or their beginning. Empty: the analysis of captures.
    pub(crate) command: &'static [&'static str],
    pub(crate) old: &'static str,
    pub(crate) new: &'static str,
    pub(crate) change: Change,
}

const fn renamed(command: &'static [&'static str], old: &'static str, new: &'static str) -> OldOption {
    OldOption {
        command,
        old,
        new,
        change: Change::Same,
    }
}

const fn changed(
    command: &'static [&'static str],
    old: &'static str,
    new: &'static str,
    change: Change,
) -> OldOption {
    OldOption {
        command,
        old,
        new,
        change,
    }
}

/// Options. Of several that fit, the first counts.
pub(crate) const OPTIONS: &[OldOption] = &[
    renamed(&[], "--fabric", "--inventory"),
    renamed(&[], "--hosts", "--inventory"),
    renamed(&[], "--host", "--host-name"),
    renamed(&["replay"], "--fabric", "--inventory"),
    renamed(&["replay"], "--hosts", "--inventory"),
    renamed(&["replay"], "--host", "--host-name"),
    renamed(&["live"], "--fabric", "--inventory"),
    renamed(&["live"], "--host", "--host-name"),
    renamed(&["live"], "--at", "--from"),
    renamed(&["host", "counters"], "--host", "--host-name"),
    renamed(&["host", "gpus"], "--host", "--host-name"),
    renamed(&["host", "hca"], "--root", "--read"),
    changed(&["host", "hca"], "--min", "--fail-on", Change::Behind("ports<")),
    changed(
        &["host", "hca"],
        "--strict",
        "--fail-on",
        Change::Becomes("left-out"),
    ),
    renamed(&["devices"], "--sysfs", "--read"),
    renamed(&["doctor"], "--root", "--read"),
    renamed(&["doctor"], "--fabric", "--inventory"),
    renamed(&["doctor"], "--hosts", "--inventory"),
    renamed(&["fabric", "counters"], "--host", "--host-name"),
    renamed(&["fabric", "pauses"], "--host", "--host-name"),
    renamed(&["fabric", "configure"], "--dev", "--interface"),
    renamed(&["fabric", "configure"], "--vmnic", "--interface"),
    renamed(&["fabric"], "--fabric", "--inventory"),
    renamed(&["fabric"], "--hosts", "--inventory"),
    renamed(&["fleet"], "--fabric", "--inventory"),
    renamed(&["fleet"], "--hosts", "--inventory"),
    renamed(&["fleet", "capture"], "--at", "--from"),
    renamed(&["dataset"], "--fabric", "--inventory"),
    renamed(&["dataset"], "--hosts", "--inventory"),
    changed(&["dataset", "compact"], "--before", "--to", Change::DayBefore),
    renamed(&["dataset", "report"], "--since", "--from"),
    renamed(&["dataset", "report"], "--until", "--to"),
    renamed(&["query"], "--since", "--from"),
    renamed(&["query"], "--until", "--to"),
    renamed(&["query"], "--fabric", "--inventory"),
    renamed(&["query"], "--hosts", "--inventory"),
    renamed(&["metrics"], "--fabric", "--inventory"),
    renamed(&["metrics"], "--hosts", "--inventory"),
    renamed(&["traffic"], "--fabric", "--inventory"),
    renamed(&["traffic"], "--hosts", "--host"),
    changed(&["traffic", "results"], "--expect", "--fail-on", Change::Negated),
    changed(
        &["compare"],
        "--fail-on-regression",
        "--fail-on",
        Change::Behind("regression>="),
    ),
];

/// Options that became the command `explain`.
pub(crate) const EXPLANATIONS: &[(&[&str], &str)] = &[
    (&[], "--explain"),
    (&[], "--explain-error"),
    (&["replay"], "--explain"),
    (&["doctor"], "--explain"),
];

/// Commands that pass the words behind `--` to an analysis of captures.
const PASS_ON: [&[&str]; 2] = [&["dataset", "map"], &["dataset", "join"]];

/// The words of a command line, the program first, as they are spelled now, and what was replaced: the old spelling and the new one.
pub(crate) fn replaced(words: Vec<OsString>) -> (Vec<OsString>, Vec<(String, String)>) {
    let mut words = words.into_iter();
    let program = words.next();
    let mut rest: Vec<OsString> = words.collect();
    let mut said = Vec::new();
    let mut length = command(&rest).len();
    if let Some((old, new)) = COMMANDS.iter().find(|(old, _)| starts_with(&rest, old)) {
        said.push((old.join(" "), new.join(" ")));
        rest.splice(..old.len(), new.iter().map(OsString::from));
        length = new.iter().filter(|word| !word.starts_with('-')).count().min(2);
        dashboard(&mut rest);
    }
    let own: Vec<String> = rest.iter().take(length).map(lossy).collect();
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let end = rest.iter().position(|word| word == "--").unwrap_or(rest.len());
    let mut behind = rest.split_off(end);
    let mut rest = options(&own, rest, &mut said);
    if PASS_ON.contains(&own.as_slice()) {
        behind = options(&[], behind, &mut said);
    }
    rest.append(&mut behind);
    explanation(&own, &mut rest, &mut said);
    (program.into_iter().chain(rest).collect(), said)
}

fn lossy(word: &OsString) -> String {
    word.to_string_lossy().into_owned()
}

fn starts_with(words: &[OsString], first: &[&str]) -> bool {
    words.len() >= first.len() && words.iter().zip(first).all(|(word, first)| word == first)
}

/// The words of the command, two at most: none for an analysis of captures.
fn command(words: &[OsString]) -> Vec<String> {
    let is_known = |first: &OsString| {
        OPTIONS
            .iter()
            .map(|option| option.command)
            .chain(EXPLANATIONS.iter().map(|(command, _)| *command))
            .any(|command| command.first().is_some_and(|known| first == known))
    };
    let has_any = words.first().is_some_and(is_known);
    let words = words.iter().take(if has_any { 2 } else { 0 });
    words
        .map(lossy)
        .take_while(|word| !word.starts_with('-'))
        .collect()
}

/// The name of a dashboard was an argument, and is a value now.
fn dashboard(words: &mut Vec<OsString>) {
    let is_name = |word: &OsString| !lossy(word).starts_with('-');
    if starts_with(words, &["metrics", "files", "dashboards"]) && words.get(3).is_some_and(is_name) {
        words.insert(3, "--dashboard".into());
    }
}

/// An old option of a command, by a word that is it, and the value that the word has behind `=`.
fn find<'a>(own: &[&str], word: &'a OsStr) -> Option<(&'static OldOption, Option<&'a str>)> {
    let text = word.to_str()?;
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let fits = |option: &&OldOption| {
        let is_own = if option.command.is_empty() {
            own.is_empty()
        } else {
            own.starts_with(option.command)
        };
        is_own && option.old == name
    };
    OPTIONS.iter().find(fits).map(|option| (option, value))
}

/// Words behind a command with new options in place of old ones.
fn options(own: &[&str], words: Vec<OsString>, said: &mut Vec<(String, String)>) -> Vec<OsString> {
    let mut found = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let Some((option, value)) = find(own, &word) else {
            found.push(word);
            continue;
        };
        let value = match (option.change, value) {
            (Change::Becomes(value), _) | (_, Some(value)) => Some(OsString::from(value)),
            (_, None) => words.next(),
        };
        let value = value.map(|value| changed_value(option.change, value));
        let shown = match option.change {
            Change::Same => option.new.to_owned(),
            _ => format!(
                "{} '{}'",
                option.new,
                value.as_ref().map(lossy).unwrap_or_default()
            ),
        };
        let pair = (option.old.to_owned(), shown);
        if !said.contains(&pair) {
            said.push(pair);
        }
        found.push(option.new.into());
        found.extend(value);
    }
    joined(own, found)
}

/// An option of several conditions is one with commas: those of two old options stand behind one new one.
fn joined(own: &[&str], mut words: Vec<OsString>) -> Vec<OsString> {
    if own != ["host", "hca"] {
        return words;
    }
    let places = |words: &[OsString]| words.iter().rposition(|word| word == "--fail-on");
    while let Some(last) = places(&words)
        && let Some(first) = words.iter().position(|word| word == "--fail-on")
        && first < last
        && let (Some(one), Some(two)) = (words.get(first + 1).cloned(), words.get(last + 1).cloned())
    {
        words.drain(last..=last + 1);
        if let Some(value) = words.get_mut(first + 1) {
            *value = format!("{},{}", lossy(&one), lossy(&two)).into();
        }
    }
    words
}

/// The value of the new option.
fn changed_value(change: Change, value: OsString) -> OsString {
    let Some(text) = value.to_str() else { return value };
    match change {
        Change::Same | Change::Becomes(_) => value,
        Change::Behind(first) => format!("{first}{text}").into(),
        Change::DayBefore => {
            let day = text
                .parse::<jiff::civil::Date>()
                .and_then(jiff::civil::Date::yesterday);
            // A value that is no day is refused behind this.
            day.map_or_else(|_| text.to_owned(), |day| day.to_string()).into()
        }
        Change::Negated => {
            if let Some((quantity, bound)) = text.split_once(">=") {
                format!("{quantity}<{bound}").into()
            } else if let Some((quantity, bound)) = text.split_once("<=") {
                format!("{quantity}>{bound}").into()
            } else {
                // It was refused before, and is no condition that fails.
                format!("{text}=").into()
            }
        }
    }
}

/// Puts the command `explain` and what it explains in front, if an option asked for it.
fn explanation(own: &[&str], words: &mut Vec<OsString>, said: &mut Vec<(String, String)>) {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let old = |word: &OsString| {
        let text = word.to_str()?;
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (text, None),
        };
        let is_own = |command: &[&str]| own == command || !command.is_empty() && own.starts_with(command);
        let found = EXPLANATIONS
            .iter()
            .find(|(command, old)| is_own(command) && *old == name)?;
        Some((found.1, value))
    };
    let found = words
        .iter()
        .take(end)
        .enumerate()
        .find_map(|(place, word)| Some((place, old(word)?)));
    let Some((place, (name, value))) = found else {
        return;
    };
    words.remove(place);
    let value = value.or_else(|| (place < words.len()).then(|| words.remove(place)));
    let value = match value {
        Some(value) if own == ["doctor"] && value == "list" => OsString::from("checks"),
        Some(value) => value,
        // The command's own error says what is missing.
        None => return,
    };
    said.push((name.to_owned(), EXPLAIN.to_owned()));
    words.drain(..own.len().min(words.len()));
    words.splice(0..0, [OsString::from(EXPLAIN), value]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> (String, Vec<String>) {
        let words = std::iter::once("roce-analyze").chain(line.split(' '));
        let (words, said) = replaced(words.map(OsString::from).collect());
        let words: Vec<String> = words.iter().skip(1).map(lossy).collect();
        (
            words.join(" "),
            said.into_iter()
                .map(|(old, new)| format!("{old}: {new}"))
                .collect(),
        )
    }

    #[test]
    fn old_words_become_new_ones() {
        for (old, new) in [
            (
                "fleet sql DS racks --since 2026-03-02 --until=2026-03-03",
                "query DS racks --from 2026-03-02 --to 2026-03-03",
            ),
            (
                "fleet map RAW -o DS --fabric f.toml -- --fabric x.toml --bin 1ms",
                "dataset map RAW -o DS --inventory f.toml -- --inventory x.toml --bin 1ms",
            ),
            // The day before the first of March of a common year.
            (
                "fleet compact DS --before 2026-03-01",
                "dataset compact DS --to 2026-02-28",
            ),
            (
                "fleet pass2 DS RAW --date 2026-03-01",
                "dataset join DS RAW --date 2026-03-01",
            ),
            (
                "fleet doctor a b --hosts f.toml",
                "doctor --host a b --inventory f.toml",
            ),
            (
                "fabric switch --read leaf1 --kind nexus",
                "fabric counters --kind switch --read leaf1 --kind nexus",
            ),
            (
                "metrics dashboards host",
                "metrics files dashboards --dashboard host",
            ),
            ("metrics dashboards -o d", "metrics files dashboards -o d"),
            ("traffic status 7", "traffic run --status 7"),
            ("traffic stop -o kept", "traffic run --stop -o kept"),
            (
                "traffic plan --pattern ring --hosts a,b",
                "traffic plan --pattern ring --host a,b",
            ),
            (
                "traffic results a.txt --expect nccl.busbw>=80GiB/s",
                "traffic results a.txt --fail-on nccl.busbw<80GiB/s",
            ),
            (
                "host hca --min 2 --strict --root x",
                "host hca --fail-on ports<2,left-out --read x",
            ),
            (
                "compare a b --fail-on-regression 5",
                "compare a b --fail-on regression>=5",
            ),
            (
                "a.pcap --host h7 --fabric=f.toml",
                "a.pcap --host-name h7 --inventory f.toml",
            ),
            ("--explain rnr --config c.toml", "explain rnr --config c.toml"),
            (
                "a.pcap --explain-error=LINE --format json",
                "explain LINE a.pcap --format json",
            ),
            ("doctor --explain list", "explain checks"),
            // Words behind `--` are another command's.
            (
                "fabric pauses -- run --fabric x",
                "fabric pauses -- run --fabric x",
            ),
            // A host of `doctor` and of `traffic` is a host to reach.
            ("doctor --host gpu1", "doctor --host gpu1"),
        ] {
            let (words, said) = of(old);
            assert_eq!(words, new, "{old}");
            assert_eq!(said.is_empty(), old == new, "{old}: {said:?}");
        }
    }

    #[test]
    fn new_words_stay() {
        for line in [
            "query DS racks --from 2026-03-02",
            "doctor --host a,b --inventory f.toml",
            "a.pcap -o dir --host-name h7",
            "explain list",
            "fleet capture -o run --from +30s",
        ] {
            assert_eq!(of(line), (line.to_owned(), Vec::new()));
        }
    }
}
