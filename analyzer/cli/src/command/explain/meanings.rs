//! Meanings of single words: those of the glossary, tables and their columns, counts of the JSON document, metrics of comparisons, and
//! statuses of completions.

use roce_jobs::errors::{STATUSES, Status};
use roce_jobs::results::REMARK_MEANINGS;
use roce_model::{Column, RunKey, Table, Totals};
use roce_report::compare::Quantity;
use roce_report::schema::{DOCUMENT_TABLES, TABLES};
use roce_switches::configure::CHANGE_MEANINGS;
use roce_switches::pauses::ENDS_DIFFER;

/// The page of words that results use.
const GLOSSARY: &str = include_str!("../../../../../docs/glossary.md");

/// Columns that each table of a dataset begins with.
static RUN_COLUMNS: &[Column] = &RunKey::COLUMNS;

/// A meaning of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedMeaning {
    /// The name, with its kind: "column flows.psn".
    pub(super) name: String,
    pub(super) text: String,
}

/// The words and meanings of the glossary's table.
pub(super) fn glossary() -> impl Iterator<Item = (&'static str, &'static str)> {
    GLOSSARY.lines().filter_map(|line| {
        let (word, meaning) = line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ")?;
        (word != "word").then_some((word, meaning))
    })
}

/// All tables: those of a dataset, then those of documents alone.
pub(super) fn tables() -> impl Iterator<Item = &'static Table> {
    TABLES.iter().chain(&DOCUMENT_TABLES)
}

/// All names that have a meaning here, as they are written; those of tables are not among them.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let words = glossary().flat_map(|(row, _)| row.split(", "));
    let columns = tables().flat_map(|table| table.columns).chain(RUN_COLUMNS);
    let counts: Vec<&str> = Totals::default().counts().map(|(name, ..)| name).collect();
    words
        .chain(columns.map(|column| column.name))
        .chain(counts)
        .chain(Quantity::ALL.map(|quantity| quantity.describe().key))
        .chain(STATUSES.iter().map(|status| status.name))
        .chain(signs().map(|(name, _)| *name))
}

/// Signs that are no findings of a rule: remarks on results, changes of configurations, ends of links that differ.
fn signs() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    REMARK_MEANINGS
        .iter()
        .chain(CHANGE_MEANINGS)
        .chain([&ENDS_DIFFER])
}

/// All meanings of `name`, whatever its case; of columns that share its beginning, if there are no others.
pub(super) fn meanings(name: &str) -> Vec<NamedMeaning> {
    let wanted = name.trim().to_ascii_lowercase();
    let mut found = words(&wanted);
    found.extend(columns(|column| column == wanted));
    found.extend(others(&wanted));
    let signs = signs().filter(|(name, _)| *name == wanted);
    found.extend(signs.map(|(name, text)| NamedMeaning {
        name: (*name).to_owned(),
        text: text.replace('`', ""),
    }));
    found.extend(statuses(&wanted));
    if found.is_empty() {
        let stem = format!("{}_", wanted.trim_end_matches('_'));
        found = columns(|column| column.starts_with(&stem));
    }
    found
}

/// Rows of the glossary: a row can explain several words, and plurals are found.
fn words(wanted: &str) -> Vec<NamedMeaning> {
    let is_wanted = |word: &str| word == wanted || wanted.strip_suffix('s') == Some(word);
    let rows = glossary().filter(|(row, _)| row.to_ascii_lowercase().split(", ").any(is_wanted));
    let meaning = |(row, text): (&str, &str)| NamedMeaning {
        name: row.to_owned(),
        text: text.replace('`', ""),
    };
    rows.map(meaning).collect()
}

/// Columns whose names are wanted. A column that several tables have with one meaning is named once, with all of them.
fn columns(is_wanted: impl Fn(&str) -> bool) -> Vec<NamedMeaning> {
    let mut found: Vec<(&Column, Vec<&str>)> = Vec::new();
    for table in tables() {
        for column in table.columns.iter().filter(|column| is_wanted(column.name)) {
            match found.iter_mut().find(|(other, _)| *other == column) {
                Some((_, owners)) => owners.push(table.name),
                None => found.push((column, vec![table.name])),
            }
        }
    }
    for column in RUN_COLUMNS.iter().filter(|column| is_wanted(column.name)) {
        found.push((column, vec!["every table of a dataset"]));
    }
    let meaning = |(column, owners): (&Column, Vec<&str>)| NamedMeaning {
        name: format!("{} (column of {})", column.name, owners.join(", ")),
        text: with_unit(column.meaning, column.unit),
    };
    found.into_iter().map(meaning).collect()
}

/// Counts of the JSON document, and metrics of `compare`.
fn others(wanted: &str) -> Vec<NamedMeaning> {
    let totals = Totals::default();
    let counts = totals.counts();
    let counts = counts.filter(|(name, ..)| *name == wanted);
    let counts = counts.map(|(name, _, meaning)| NamedMeaning {
        name: format!("{name} (count of a run, in `totals`)"),
        text: meaning.to_owned(),
    });
    let metrics = Quantity::ALL.map(Quantity::describe).into_iter();
    let metrics = metrics.filter(|metric| metric.key == wanted);
    let metrics = metrics.map(|metric| NamedMeaning {
        name: format!("{} (metric of `compare`)", metric.key),
        text: with_unit(metric.meaning, metric.unit.name()),
    });
    counts.chain(metrics).collect()
}

/// Statuses of completions: `12`, `status 12`, `IBV_WC_RETRY_EXC_ERR` and words of programs for it.
fn statuses(wanted: &str) -> Vec<NamedMeaning> {
    let number = wanted.strip_prefix("status").unwrap_or(wanted);
    let number = number.trim_start_matches([' ', '=', ':']).parse().ok();
    let is_wanted = |status: &&Status| {
        Some(status.number) == number || status.name.eq_ignore_ascii_case(wanted) || status.is_called(wanted)
    };
    let meaning = |status: &Status| NamedMeaning {
        name: format!("{} (status {} of a completion)", status.name, status.number),
        text: status.meaning.to_owned(),
    };
    STATUSES.iter().filter(is_wanted).map(meaning).collect()
}

fn with_unit(meaning: &str, unit: &str) -> String {
    if unit.is_empty() {
        meaning.to_owned()
    } else {
        format!("{meaning} Unit: {unit}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_meaning() {
        for name in names() {
            assert!(!meanings(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn columns_are_found_by_their_beginning() {
        let found = meanings("ce_to_cnp");
        assert_eq!(found.len(), 7, "{found:?}");
        assert!(found.iter().all(|meaning| meaning.name.starts_with("ce_to_cnp_")));
        let exact = meanings("ack_rtt_p99_ns");
        assert_eq!(exact.len(), 1, "{exact:?}");
        assert!(exact[0].text.ends_with("Unit: ns."), "{exact:?}");
    }

    #[test]
    fn a_status_is_found_by_number_name_and_words() {
        // Linux, include/uapi/rdma/ib_user_verbs.h and rdma-core's verbs.h: IBV_WC_RETRY_EXC_ERR is 12.
        for name in [
            "12",
            "status 12",
            "status=12",
            "ibv_wc_retry_exc_err",
            "retry exceeded",
        ] {
            let found = meanings(name);
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert!(found[0].name.starts_with("IBV_WC_RETRY_EXC_ERR (status 12"));
        }
        assert!(meanings("99").is_empty());
    }

    #[test]
    fn words_of_the_output_have_meanings() {
        // Words of the terminal's overview and tables.
        for word in [
            "PSN",
            "QP",
            "QPN",
            "NAK",
            "RNR",
            "RNR NAK",
            "PFC",
            "DCQCN",
            "DSCP",
            "ICRC",
            "ECN",
            "ECT",
            "ACK",
            "hole",
            "holes",
            "sport",
            "goodput",
            "payload",
            "strip",
            "retrans",
            "run",
            "timeout",
            "stall",
            "turnaround",
            "spent",
            "tap",
            "incast",
            "credit",
            "RETH",
            "GID",
            "MTU",
            "vantage",
        ] {
            assert!(!meanings(word).is_empty(), "{word}");
        }
    }
}
