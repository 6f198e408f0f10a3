//! The text of views over a dataset for an SQL engine: tables with the columns of this version, of committed runs alone.
//!
//! The table `run` is the commit, and compacted runs come first: a run is read from the parts if a part of `run` names it, else from its own
//! files. Columns are named one by one, so that files of older versions have nulls in newer columns, and a table that no capture has rows of
//! is an empty one.

mod days;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use roce_model::{Column, ColumnType, RunKey};
use roce_report::schema::TABLES;

use super::inventory::{self, HostAddress};
use super::questions::VIEWS;
pub(super) use days::Range;
use days::{Days, found};

/// Kinds of files: the prefix of their views, and their pattern below a day.
const KINDS: [(&str, &str); 2] = [("parts", "part-*.parquet"), ("singles", "host=*/*.parquet")];

/// An engine for SQL.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Engine {
    /// DuckDB
    Duckdb,
    /// Apache Spark
    Spark,
    /// Any other that has tables of these names already: views of the files are left out
    Tables,
}

/// A table as it is stored.
#[derive(Debug)]
struct StoredTable {
    name: &'static str,
    /// Its columns in the files, with two for a time.
    columns: Vec<(String, ColumnType)>,
    /// Days with files of each of [`KINDS`].
    days: [Days; 2],
}

/// A dataset in fleet layout, as engines are to read it.
#[derive(Debug)]
pub(crate) struct Dataset {
    /// The folder, or the URL of an object store.
    path: PathBuf,
    tables: Vec<StoredTable>,
    hosts: Vec<HostAddress>,
}

impl Dataset {
    /// Looks at which tables and days there are. Of a dataset in an object store nothing is read.
    ///
    /// # Errors
    /// If the folder is no such dataset, or its path cannot stand in SQL.
    pub(super) fn new(path: &Path, range: Range, hosts: &[HostAddress]) -> anyhow::Result<Self> {
        let is_remote = is_remote(path);
        let mut tables = Vec::new();
        for table in TABLES {
            let days = if is_remote {
                [Days::assumed(range)?, Days::assumed(range)?]
            } else {
                found(path, table.name, range)?.into()
            };
            let columns = RunKey::COLUMNS.iter().chain(table.columns);
            tables.push(StoredTable {
                name: table.name,
                columns: columns.flat_map(stored).collect(),
                days,
            });
        }
        let has_runs = |table: &StoredTable| table.name == "run" && !table.days.iter().all(Days::is_empty);
        if !tables.iter().any(has_runs) {
            let days = if range.is_all() { "" } else { " of these days" };
            bail!(
                "{}: holds no runs{days} in fleet layout\nhint: `roce-analyze CAPTURE -o DS --layout fleet --host-name NAME` writes them",
                path.display()
            );
        }
        Ok(Self {
            path: path.to_owned(),
            tables,
            hosts: hosts.to_vec(),
        })
    }

    /// Statements for an engine that runs anywhere: files have absolute paths.
    ///
    /// # Errors
    /// If the dataset's path cannot stand in SQL.
    pub(super) fn text(&self, engine: Engine) -> anyhow::Result<String> {
        let place = place(&self.path)?;
        Ok(self.statements(engine, &format!("{place}/")))
    }

    /// Statements that make all views, each ended by a semicolon and a line feed. Paths of files begin with `place`: nothing stands for the
    /// folder in which the engine runs.
    pub(super) fn statements(&self, engine: Engine, place: &str) -> String {
        let mut text = match engine {
            Engine::Duckdb => "SET TimeZone = 'UTC';\n".to_owned(),
            Engine::Spark => "SET TIME ZONE 'UTC';\n".to_owned(),
            Engine::Tables => {
                "-- Over tables of the names in docs/schema.md, with times in UTC.\n".to_owned()
            }
        };
        if engine != Engine::Tables {
            for table in &self.tables {
                for ((kind, pattern), days) in KINDS.iter().zip(&table.days) {
                    let paths = paths(place, (table.name, days), pattern, engine);
                    text.push_str(&files(&format!("{kind}_{}", table.name), table, &paths, engine));
                }
            }
            let by_name = if engine == Engine::Duckdb { " BY NAME" } else { "" };
            for StoredTable { name, .. } in &self.tables {
                // `run` has the runs' identifiers in each kind of files.
                let _ = writeln!(
                    text,
                    "CREATE OR REPLACE TEMP VIEW {name} AS\n\
                     SELECT * FROM parts_{name} WHERE run_id IN (SELECT run_id FROM parts_run)\n\
                     UNION ALL{by_name}\n\
                     SELECT * FROM singles_{name} WHERE run_id IN (SELECT run_id FROM singles_run) \
                     AND run_id NOT IN (SELECT run_id FROM parts_run WHERE run_id IS NOT NULL);"
                );
            }
        }
        text.push_str(&shared_views(&self.hosts));
        text
    }
}

/// The views that questions share, over the tables and the hosts of an inventory.
pub(super) fn shared_views(hosts: &[HostAddress]) -> String {
    inventory::view(hosts) + VIEWS
}

/// True for the URL of an object store, of which nothing is read here.
pub(super) fn is_remote(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.contains("://"))
}

/// Patterns of the files of one kind: for DuckDB one for each day, for Spark one with all days. Empty: there are none.
fn paths(place: &str, (table, days): (&str, &Days), pattern: &str, engine: Engine) -> Vec<String> {
    let path = |day: &str| format!("{place}{table}/{day}/{pattern}");
    match days {
        Days::All => vec![path("date=*")],
        Days::Known(days) if days.is_empty() => Vec::new(),
        Days::Known(days) if engine == Engine::Spark => {
            let days: Vec<String> = days.iter().map(|day| format!("date={day}")).collect();
            vec![path(&format!("{{{}}}", days.join(",")))]
        }
        Days::Known(days) => days.iter().map(|day| path(&format!("date={day}"))).collect(),
    }
}

/// The dataset's place, absolute, checked to stand between quotes in SQL and in no pattern.
pub(super) fn place(path: &Path) -> anyhow::Result<String> {
    let written = path.to_str().context("the path of the dataset is not UTF-8")?;
    let place = if written.contains("://") {
        written.to_owned()
    } else {
        let whole = std::path::absolute(path).with_context(|| path.display().to_string())?;
        whole
            .to_str()
            .context("the path of the dataset is not UTF-8")?
            .to_owned()
    };
    let is_special = |letter: char| letter.is_control() || "'\"\\`*?[]{}$;,".contains(letter);
    if place.chars().any(is_special) {
        bail!(
            "{written}: a path with quotes, back-slashes, commas, `$`, `;` or characters of patterns cannot stand in SQL\n\
             hint: give the folder another name"
        );
    }
    Ok(place.trim_end_matches('/').to_owned())
}

/// The view of the files of one kind.
fn files(view: &str, table: &StoredTable, paths: &[String], engine: Engine) -> String {
    let quoted: Vec<String> = paths.iter().map(|path| format!("'{path}'")).collect();
    let empty = empty(&table.columns);
    match (engine, quoted.as_slice()) {
        (_, []) => format!("CREATE OR REPLACE TEMP VIEW {view} AS\n{empty};\n"),
        (Engine::Spark, [path, ..]) => {
            let columns = table.columns.iter();
            let columns: Vec<String> = columns
                .map(|(name, kind)| format!("{name} {}", sql_type(*kind)))
                .collect();
            format!(
                "CREATE OR REPLACE TEMP VIEW {view} ({})\nUSING parquet OPTIONS (path {path}, recursiveFileLookup 'true');\n",
                columns.join(", ")
            )
        }
        (_, paths) => format!(
            "CREATE OR REPLACE TEMP VIEW {view} AS\n{empty}\nUNION ALL BY NAME\n\
             SELECT * FROM read_parquet([{}], union_by_name = true, hive_partitioning = false);\n",
            paths.join(", ")
        ),
    }
}

/// A SELECT without rows, with all columns.
fn empty(columns: &[(String, ColumnType)]) -> String {
    let columns: Vec<String> = columns
        .iter()
        .map(|(name, kind)| format!("CAST(NULL AS {}) AS {name}", sql_type(*kind)))
        .collect();
    format!("SELECT {} WHERE false", columns.join(", "))
}

/// The columns that a dataset has for one of a table: two for a time.
fn stored(column: &Column) -> Vec<(String, ColumnType)> {
    let own = (column.name.to_owned(), column.kind);
    match column.nanoseconds() {
        Some(name) => vec![own, (name, ColumnType::U64)],
        None => vec![own],
    }
}

/// The type's name in DuckDB and Spark.
const fn sql_type(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::U32 => "INT",
        ColumnType::U64 | ColumnType::Id => "BIGINT",
        ColumnType::F64 => "DOUBLE",
        ColumnType::Bool => "BOOLEAN",
        ColumnType::Text | ColumnType::Address => "STRING",
        ColumnType::Time => "TIMESTAMP",
    }
}
