//! `dataset compact`: the files of single runs become parts of whole days. The steps are left to `roce_parquet`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::bail;
use clap::Args;
use roce_files::Access;
use roce_parquet::{CompactedDay, FolderStorage, days, is_day};

use super::stop::until_signal;
use crate::output::messages;

/// Bring the runs of whole days together: one file for each table and day, sorted by time
///
/// Readers may read meanwhile: each run is seen once at any moment. A compaction that is interrupted or killed is made good by the next one.
/// Runs that come later for a compacted day get another part.
#[derive(Args, Debug)]
pub(super) struct Compact {
    /// The dataset
    #[arg(value_name = "DS")]
    dataset: PathBuf,

    /// Compact the days from this one on, in UTC
    #[arg(long, value_name = "DATE", value_parser = parse_day)]
    from: Option<String>,

    /// Compact the days up to this one, itself included
    #[arg(long, value_name = "DATE", value_parser = parse_day)]
    to: String,
}

/// A day, as partitions name it.
pub(super) fn parse_day(text: &str) -> Result<String, String> {
    if is_day(text) {
        Ok(text.to_owned())
    } else {
        Err("expected a day such as 2026-11-24".to_owned())
    }
}

/// Compacts days.
pub(super) fn compact(arguments: &Compact) -> anyhow::Result<ExitCode> {
    let shown = arguments.dataset.display();
    if !arguments.dataset.join("run").is_dir() {
        bail!(
            "{shown}: no dataset of many runs: it has no folder `run`\nhint: `dataset map` or `--layout fleet` write one"
        );
    }
    let storage = FolderStorage::open(&arguments.dataset, Access::Umask)?;
    let stops = AtomicBool::new(false);
    let message = "dataset compact: interrupted: it ends after this step; the next compaction goes on";
    let failed = until_signal(&stops, message, || {
        let goes_on = || !stops.load(Ordering::Relaxed);
        let mut failed = 0;
        for day in days(&storage)? {
            let is_before = arguments.from.as_ref().is_some_and(|from| day < *from);
            if is_before || day > arguments.to || !goes_on() {
                continue;
            }
            match roce_parquet::compact(&storage, &day, Access::Umask, &goes_on) {
                Ok(compacted) => anstream::stdout().write_all(line(&day, &compacted).as_bytes())?,
                // The other days are none the worse.
                Err(error) => {
                    failed += 1;
                    messages::error(&format!("{day}: {:#}", anyhow::Error::from(error)));
                }
            }
        }
        Ok(failed)
    })?;
    Ok(ExitCode::from(if failed > 0 || stops.load(Ordering::Relaxed) {
        2
    } else {
        0
    }))
}

/// The result of a day.
fn line(day: &str, compacted: &CompactedDay) -> String {
    let CompactedDay {
        runs,
        again,
        rows,
        bytes,
        removed,
        unsorted,
    } = compacted;
    // Writing to a string does not fail.
    let mut line = format!("{day}  {runs} runs, {rows} rows, {bytes} bytes; {removed} files removed");
    if *again > 0 {
        let _ = write!(line, "; {again} runs were compacted before");
    }
    if !unsorted.is_empty() {
        let _ = write!(line, "; sorted in pieces: {}", unsorted.join(", "));
    }
    line.push('\n');
    line
}
