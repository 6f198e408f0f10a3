//! The dataset that is asked, with the views over its tables.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use jiff::civil::Date;

#[cfg(feature = "live")]
use super::answer::Answer;
use super::duckdb::Rows;
use super::inventory::{self, HostAddress};
use super::text::{Dataset, Engine, Range, is_remote, shared_views};
use super::views;
use crate::command::duckdb::DuckDb;

/// Beginning of the folder of a day, in a dataset of many runs.
const DAY: &str = "date=";

// The dataset of a question, and of the page with all questions. (A comment for the compiler would become the help's first line.)
#[derive(Args, Debug)]
pub(crate) struct DatasetSource {
    /// Results: the folder of -o, a folder that holds several such folders, or a dataset of many hosts
    #[arg(value_name = "DS")]
    pub(crate) dataset: PathBuf,

    /// The inventory with addresses, racks, jobs and ranks of the hosts [default: DS/fabric.toml if it exists]
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,

    /// Read only days from this one on, such as 2026-03-02; for datasets of many hosts
    #[arg(long, value_name = "DATE")]
    from: Option<Date>,

    /// Read only days up to this one, itself included
    #[arg(long, value_name = "DATE")]
    to: Option<Date>,
}

/// A dataset that can be asked.
#[derive(Debug)]
pub(crate) enum AskedDataset {
    /// A dataset of many hosts and days.
    Many(Dataset),
    /// The results of one run, or of several beside each other: the statements that make its views.
    Runs(Vec<String>),
}

impl DatasetSource {
    /// Hosts of the inventory. Empty without one: then the captures themselves show which host has which address.
    fn inventory(&self) -> anyhow::Result<Vec<HostAddress>> {
        let beside = self.dataset.join("fabric.toml");
        match &self.inventory {
            Some(path) => inventory::read(path),
            None if beside.is_file() => inventory::read(&beside),
            None => Ok(Vec::new()),
        }
    }

    /// True for a dataset with folders of days.
    fn has_days(&self) -> bool {
        let Ok(entries) = std::fs::read_dir(self.dataset.join("run")) else {
            return false;
        };
        entries
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().starts_with(DAY))
    }

    /// Looks at what the dataset has.
    ///
    /// # Errors
    /// If it has no results, or the inventory cannot be read.
    pub(crate) fn open(&self) -> anyhow::Result<AskedDataset> {
        let hosts = self.inventory()?;
        let range = Range {
            from: self.from,
            to: self.to,
        };
        if is_remote(&self.dataset) || self.has_days() {
            return Dataset::new(&self.dataset, range, &hosts).map(AskedDataset::Many);
        }
        if !range.is_all() {
            bail!(
                "{}: has no days: --from and --to choose days of a dataset of many hosts",
                self.dataset.display()
            );
        }
        let mut statements = views::views(&self.dataset)?;
        statements.push(shared_views(&hosts));
        Ok(AskedDataset::Runs(statements))
    }

    /// Starts to answer a SELECT.
    ///
    /// # Errors
    /// If DuckDB cannot be started, or the dataset is in an object store.
    pub(super) fn ask(&self, asked: &AskedDataset, program: &DuckDb, sql: &str) -> anyhow::Result<Rows> {
        if is_remote(&self.dataset) {
            bail!(
                "{}: DuckDB is run here on folders alone\nhint: --print prints the text for an engine that reads object stores",
                self.dataset.display()
            );
        }
        program.ask(&self.dataset, &asked.statements(), sql)
    }

    /// The whole answer to a SELECT.
    ///
    /// # Errors
    /// As those of [`ask`](Self::ask), and if DuckDB refuses the question.
    #[cfg(feature = "live")]
    pub(crate) fn answer(&self, asked: &AskedDataset, program: &DuckDb, sql: &str) -> anyhow::Result<Answer> {
        Answer::whole(self.ask(asked, program, sql)?)
    }
}

impl AskedDataset {
    /// Statements that make the views, for a DuckDB that runs in the dataset's folder.
    fn statements(&self) -> Vec<String> {
        match self {
            Self::Many(dataset) => vec![dataset.statements(Engine::Duckdb, "")],
            Self::Runs(statements) => statements.clone(),
        }
    }

    /// The text that makes the views in an engine of the user's own.
    ///
    /// # Errors
    /// If the engine reads datasets of many hosts alone, or the path cannot stand in SQL.
    pub(super) fn text(&self, engine: Engine) -> anyhow::Result<String> {
        match self {
            Self::Many(dataset) => dataset.text(engine),
            Self::Runs(statements) if engine == Engine::Duckdb => {
                let lines = statements
                    .iter()
                    .map(|statement| format!("{}\n", statement.trim_end()));
                Ok(format!(
                    "-- In the folder of the dataset.\nSET TimeZone = 'UTC';\n{}",
                    lines.collect::<String>()
                ))
            }
            Self::Runs(_) => {
                bail!("--engine is for datasets of many hosts\nhint: `--layout fleet` writes them")
            }
        }
    }
}
