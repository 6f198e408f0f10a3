//! The table of a run: a row for each file, and what failed.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use roce_model::text::clean;
use roce_remote::fleet::manifest::{HostRow, HostState, Manifest};
use roce_spelling::{bytes, count};

use crate::output::messages;
use crate::output::table::laid;

/// True if a host has captured, all is here, and nothing was wrong.
pub(super) fn is_good(row: &HostRow) -> bool {
    row.state == HostState::Collected && row.error.is_none()
}

/// Prints the table, and warnings but for the first `said` of each host. Returns the number of good hosts.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn print(manifest: &Manifest, folder: &Path, said: &[usize]) -> std::io::Result<usize> {
    let head = [
        "host",
        "how",
        "interface",
        "starts",
        "frames",
        "dropped",
        "bytes",
        "file",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for row in &manifest.hosts {
        rows.extend(rows_of(row, folder));
    }
    let good = manifest.hosts.iter().filter(|row| is_good(row)).count();
    let mut text = laid(&rows, &(3..7));
    let total = manifest.hosts.len();
    let _ = writeln!(text, " {good} of {total} hosts captured.{}", clocks(manifest));
    anstream::stdout().write_all(text.as_bytes())?;
    for (at, row) in manifest.hosts.iter().enumerate() {
        let said = said.get(at).copied().unwrap_or(0);
        for warning in row.warnings.iter().skip(said) {
            messages::warn(&row.name, warning);
        }
        if let Some(error) = &row.error {
            messages::error(&format!("{}: {error}", row.name));
        }
    }
    Ok(good)
}

/// A row for each file of a host; one row for a host without files.
fn rows_of(row: &HostRow, folder: &Path) -> Vec<Vec<String>> {
    let none = || "-".to_owned();
    let number = |value: Option<u64>| value.map_or_else(none, count);
    let how = row.how.clone().unwrap_or_else(none);
    if row.files.is_empty() {
        let reason = row
            .error
            .as_deref()
            .map_or("nothing", |error| error.lines().next().unwrap_or_default());
        let state = if row.state == HostState::Capturing {
            "not collected"
        } else {
            "failed"
        };
        let mut cells = vec![
            row.name.clone(),
            how,
            row.interfaces.join("+"),
            none(),
            none(),
            none(),
            none(),
        ];
        cells.push(format!("{state}: {}", clean(reason)));
        return vec![cells];
    }
    let starts = row
        .first_frame_ns
        .zip(row.start_ns)
        .map(|(first, start)| first.saturating_sub(start));
    let mut rows = Vec::new();
    for (at, file) in row.files.iter().enumerate() {
        let first = at == 0;
        let only = |text: String| if first { text } else { String::new() };
        let path = folder.join(&file.name).display().to_string();
        let interface = file.name.split('.').nth(1).unwrap_or_default().to_owned();
        rows.push(vec![
            only(row.name.clone()),
            only(how.clone()),
            interface,
            only(starts.map_or_else(none, signed)),
            only(number(row.frames)),
            only(number(row.dropped)),
            bytes(file.bytes),
            if file.is_here {
                path
            } else {
                "not collected".to_owned()
            },
        ]);
    }
    rows
}

/// The distances of clocks in words.
fn clocks(manifest: &Manifest) -> String {
    let bounds = manifest.hosts.iter().filter_map(|row| row.clock);
    bounds
        .map(|clock| clock.bound_ns)
        .max()
        .map_or_else(String::new, |bound| {
            format!(" Clocks are known to +-{}.", length(bound.unsigned_abs()))
        })
}

/// A time with its sign.
fn signed(ns: i64) -> String {
    let sign = if ns < 0 { '-' } else { '+' };
    format!("{sign}{}", length(ns.unsigned_abs()))
}

/// A length of time with two to four digits.
#[expect(clippy::cast_precision_loss, reason = "for display: four digits")]
fn length(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} us", ns / 1_000),
        1_000_000..10_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        10_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(signed(400_000), "+400 us");
        assert_eq!(signed(-12_000_000), "-12 ms");
        assert_eq!(length(1_234_567), "1.2 ms");
        assert_eq!(length(7_200_000_000_000), "7200.0 s");
    }
}
