//! `dataset report`: the answers to all questions about a fleet's dataset as one page for a browser, with links to pages of single runs.

mod page;
mod runs;
mod sections;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use roce_files::{Access, FilePlace};

use crate::command::duckdb::DuckDb;
use crate::command::query::questions::ALL;
use crate::command::query::{Answer, DatasetSource, OTHERS};
use crate::output::messages;
use page::Page;
use runs::Runs;
use sections::SECTIONS;

/// Runs, hosts and days of the dataset.
const SUMMARY: &str = "\
SELECT
    count(DISTINCT run_id) AS runs, count(DISTINCT host) AS hosts,
    min(substr(CAST(first_time AS STRING), 1, 10)) AS first_day, max(substr(CAST(last_time AS STRING), 1, 10)) AS last_day,
    CAST(sum(roce_packets) AS BIGINT) AS roce_packets, count(DISTINCT CASE WHEN error IS NOT NULL THEN run_id END) AS cut_short
FROM (SELECT DISTINCT run_id, host, first_time, last_time, roce_packets, error FROM run)";

/// Write a page with the answers to all questions: destinations, incasts, racks, pairs, flows, clocks, jobs
///
/// The page needs nothing else, and its rows link to pages of single runs: those beside it in the folder FILE-runs, which --captures fills.
#[derive(Args, Debug)]
pub(super) struct Report {
    #[command(flatten)]
    source: DatasetSource,

    /// Write the page to FILE
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Replace FILE if it exists
    #[arg(long)]
    overwrite: bool,

    /// The folder of the captures: analyses those that the page names first once more, and writes their pages for its links
    #[arg(long, value_name = "RAW")]
    captures: Option<PathBuf>,
}

/// Writes the page.
pub(super) fn report(arguments: &Report) -> anyhow::Result<ExitCode> {
    let place = FilePlace::named(&arguments.output)?;
    place.refuse_taken(arguments.overwrite)?;
    let source = &arguments.source;
    let asked = source.open()?;
    let program = DuckDb::find(None, OTHERS)?;
    let answer = |sql: &str| source.answer(&asked, &program, sql.trim_end());
    let summary = answer(SUMMARY)?;
    let mut runs = Runs::new(&answer(runs::QUERY)?, &arguments.output);
    let answers = ALL
        .iter()
        .map(|question| Ok((question.name, answer(question.sql)?)));
    let answers: Vec<(&str, Answer)> = answers.collect::<anyhow::Result<_>>()?;
    let parts: Vec<_> = SECTIONS
        .iter()
        .filter_map(|section| {
            let (_, answer) = answers.iter().find(|(name, _)| *name == section.question)?;
            Some((section, section.choose(answer)))
        })
        .collect();
    let named = parts.iter().flat_map(|(_, chosen)| chosen.runs());
    runs.prepare(named, arguments.captures.as_deref());
    let shown = arguments.source.dataset.display().to_string();
    let text = Page {
        dataset: &shown,
        summary: &summary,
        parts: &parts,
        runs: &runs,
    }
    .text();
    let mut output = place.begin(arguments.overwrite, Access::Umask)?;
    output.write_all(text.as_bytes())?;
    output.finish()?;
    messages::wrote(&arguments.output.display().to_string());
    Ok(ExitCode::SUCCESS)
}
