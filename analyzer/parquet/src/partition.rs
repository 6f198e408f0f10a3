//! Paths in a dataset of many runs: `TABLE/date=YYYY-MM-DD/host=NAME/RUN_ID.parquet`, as Hive partitions are named.

use std::fmt::Write as _;

use jiff::Timestamp;
use roce_model::{RunKey, Time};

/// The value of a partition that is not known, as Hive, Spark and DuckDB name it.
pub const UNKNOWN: &str = "__HIVE_DEFAULT_PARTITION__";

/// Maximum length of an escaped name in bytes: with what stands before and behind it, it is a file's name.
const MAX_NAME: usize = 200;

/// The place of one run's rows in a fleet dataset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Partition {
    date: Option<String>,
    host: String,
    name: String,
}

impl Partition {
    /// The place of the run `key`, whose first frame has the time `first`. A run lies whole in the day of its first frame, UTC: rows after
    /// midnight stay with it. Without frames its day is unknown.
    pub fn new(key: &RunKey, first: Option<Time>) -> Self {
        Self {
            date: first.and_then(date),
            host: escape(&key.host),
            name: escape(&key.run_id),
        }
    }

    /// This place, of a file with another name than that of the run: one of its parts.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        self.name = escape(name);
        self
    }

    /// This place in another day, YYYY-MM-DD.
    #[must_use]
    pub fn with_date(mut self, day: &str) -> Self {
        self.date = Some(escape(day));
        self
    }

    /// The day, YYYY-MM-DD; `None` if it is not known.
    pub fn date(&self) -> Option<&str> {
        self.date.as_deref()
    }

    /// The path of the run's file in a table.
    pub fn file(&self, table: &str) -> String {
        let (folder, name) = self.folder_and_name(table, self.date().unwrap_or(UNKNOWN));
        format!("{folder}/{name}")
    }

    /// Folder and name of the run's file in a table if `date` is its day.
    pub fn folder_and_name(&self, table: &str, date: &str) -> (String, String) {
        (
            format!("{table}/date={date}/host={}", self.host),
            format!("{}.parquet", self.name),
        )
    }
}

/// The day of a time in UTC: YYYY-MM-DD.
pub fn date(time: Time) -> Option<String> {
    let time = Timestamp::from_nanosecond(i128::from(time.0)).ok()?;
    Some(time.strftime("%Y-%m-%d").to_string())
}

/// A name as part of a path, as Hive escapes it: other bytes than letters, digits, `.`, `_` and `-` are `%XX`. So is a first byte that is no letter
/// or digit: engines pass over names that begin with `.` or `_`. A name that is too long is cut.
fn escape(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for (place, byte) in name.bytes().enumerate() {
        let is_plain = byte.is_ascii_alphanumeric() || place > 0 && b"._-".contains(&byte);
        if text.len() >= MAX_NAME {
            break;
        }
        if is_plain {
            text.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use roce_model::Span;

    fn file(host: &str, run_id: &str, first: Option<u64>) -> String {
        let key = RunKey {
            run_id: run_id.to_owned(),
            host: host.to_owned(),
            capture: "a.pcap".to_owned(),
        };
        Partition::new(&key, first.map(Time)).file("flows")
    }

    #[test]
    fn a_run_lies_in_the_day_of_its_first_frame() {
        // `date -u -d 2026-11-24 +%s` is 1795478400.
        let midnight = 1_795_478_400 * Span::SECOND.0;
        assert_eq!(
            file("h7", "0cc1", Some(midnight)),
            "flows/date=2026-11-24/host=h7/0cc1.parquet"
        );
        assert_eq!(
            file("h7", "0cc1", Some(midnight - 1)),
            "flows/date=2026-11-23/host=h7/0cc1.parquet"
        );
        assert_eq!(
            file("h7", "0cc1", None),
            "flows/date=__HIVE_DEFAULT_PARTITION__/host=h7/0cc1.parquet"
        );
        assert_eq!(date(Time(0)).as_deref(), Some("1970-01-01"));
        assert_eq!(date(Time(u64::MAX)).as_deref(), Some("2554-07-21"));
    }

    #[test]
    fn names_from_outside_are_one_part_of_a_path() {
        assert_eq!(
            file("fe80::1", "..", Some(0)),
            "flows/date=1970-01-01/host=fe80%3A%3A1/%2E..parquet"
        );
        assert_eq!(
            file("../../etc", "_a b/\0\u{e9}", Some(0)),
            "flows/date=1970-01-01/host=%2E.%2F..%2Fetc/%5Fa%20b%2F%00%C3%A9.parquet"
        );
        // 202 bytes at most: the last escape may start at the 200th.
        assert!(escape(&":".repeat(4096)).len() <= MAX_NAME + 2);
    }
}
