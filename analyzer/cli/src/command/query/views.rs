//! Views of a folder's tables: where their files are, as patterns relative to the folder, and the columns of tables without any file.

use std::path::Path;

use anyhow::bail;
use roce_model::{ColumnType, RunKey, Table};
use roce_report::schema::TABLES;

/// Files of a dataset (`-o DIR`), with `TABLE` for the table's name.
const DATASET: &str = "TABLE/*.parquet";
/// Files of datasets in one folder.
const DATASETS: &str = "*/TABLE/*.parquet";

/// Forms of a folder.
const FORMS: [&str; 2] = [DATASET, DATASETS];

/// Limit of the entries of a folder that are looked at to find its form.
const MAX_ENTRIES: usize = 100_000;

/// Statements that make the views of `dir`, one for each table.
///
/// # Errors
/// When the folder cannot be read, or no table is in it.
pub(super) fn views(dir: &Path) -> anyhow::Result<Vec<String>> {
    let mut forms = Vec::new();
    for table in &TABLES {
        forms.push(patterns(dir, table.name)?);
    }
    if forms.iter().all(Vec::is_empty) {
        bail!(
            "{}: holds no results\nhint: `roce-analyze CAPTURE -o DIR` writes them",
            dir.display()
        );
    }
    Ok(TABLES
        .iter()
        .zip(&forms)
        .map(|(table, forms)| view(table, forms))
        .collect())
}

/// The files of a table, as a source of rows.
fn read(table: &str, form: &str) -> String {
    let pattern = form.replace("TABLE", table);
    format!("read_parquet('{pattern}', union_by_name = true, hive_partitioning = false)")
}

/// The statement that makes the view of a table. All its columns are named: files of older versions have nulls in newer ones, and a table
/// that no run has rows of is an empty one.
fn view(table: &Table, forms: &[&str]) -> String {
    let name = table.name;
    let columns: Vec<String> = columns(table)
        .into_iter()
        .map(|(name, kind)| format!("NULL::{kind} AS {name}"))
        .collect();
    let empty = format!("SELECT {} WHERE false", columns.join(", "));
    let files = forms
        .iter()
        .map(|form| format!("SELECT * FROM {}", read(name, form)));
    let sources: Vec<String> = std::iter::once(empty).chain(files).collect();
    format!("CREATE VIEW {name} AS {};", sources.join(" UNION ALL BY NAME "))
}

/// Columns of a table as datasets have them, with DuckDB's types.
fn columns(table: &Table) -> Vec<(String, &'static str)> {
    let key = RunKey::COLUMNS.iter();
    let mut columns = Vec::new();
    for column in key.chain(table.columns) {
        let kind = match column.kind {
            ColumnType::U32 => "INTEGER",
            ColumnType::U64 | ColumnType::Id => "BIGINT",
            ColumnType::F64 => "DOUBLE",
            ColumnType::Bool => "BOOLEAN",
            ColumnType::Text | ColumnType::Address => "VARCHAR",
            ColumnType::Time => "TIMESTAMPTZ",
        };
        columns.push((column.name.to_owned(), kind));
        columns.extend(column.nanoseconds().map(|name| (name, "BIGINT")));
    }
    columns
}

/// Patterns that have at least one file of a table.
fn patterns(dir: &Path, table: &str) -> anyhow::Result<Vec<&'static str>> {
    let mut found = Vec::new();
    for form in FORMS {
        let mut parts: Vec<String> = form.split('/').map(|part| part.replace("TABLE", table)).collect();
        let file = parts.pop().unwrap_or_default();
        if has_file(dir, &parts, &file, &mut 0)? {
            found.push(form);
        }
    }
    Ok(found)
}

/// True if a file below `dir` fits: `parts` are folders, and `*` in them any text.
fn has_file(dir: &Path, parts: &[String], file: &str, seen: &mut usize) -> anyhow::Result<bool> {
    let (pattern, rest) = parts
        .split_first()
        .map_or((file, None), |(first, rest)| (first.as_str(), Some(rest)));
    let enter = |path: &Path, seen: &mut usize| match rest {
        Some(rest) => has_file(path, rest, file, seen),
        None => Ok(path.is_file()),
    };
    let Some((before, after)) = pattern.split_once('*') else {
        return enter(&dir.join(pattern), seen);
    };
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Ok(false),
        Err(error) => bail!("{}: {error}", dir.display()),
    };
    for entry in entries.flatten() {
        *seen += 1;
        if *seen > MAX_ENTRIES {
            bail!(
                "{}: has more than {MAX_ENTRIES} entries, and no results among them",
                dir.display()
            );
        }
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let fits = !name.starts_with('.') && name.starts_with(before) && name.ends_with(after);
        if fits && enter(&entry.path(), seen)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn of(files: &[&str]) -> Vec<&'static str> {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        patterns(folder.path(), "flows").unwrap()
    }

    #[test]
    fn each_form_of_a_folder_is_found() {
        for (files, expected) in [
            (&["flows/part-0.parquet"][..], &["TABLE/*.parquet"][..]),
            (&["a/flows/part-0.parquet", "b/x.txt"], &["*/TABLE/*.parquet"]),
            // Unfinished files are hidden ones.
            (
                &[
                    "flows/.part-0.parquet.tmp",
                    ".a/flows/part-0.parquet",
                    "run/part-0.parquet",
                ],
                &[],
            ),
        ] {
            assert_eq!(of(files), expected, "{files:?}");
        }
    }

    #[test]
    fn a_table_without_files_has_its_columns() {
        let waits = TABLES.iter().find(|table| table.name == "waits").unwrap();
        let sql = view(waits, &[]);
        // Names of the run, then a time as two columns (docs/schema.md).
        assert!(
            sql.starts_with("CREATE VIEW waits AS SELECT NULL::VARCHAR AS run_id,"),
            "{sql}"
        );
        let time = "NULL::TIMESTAMPTZ AS start_time, NULL::BIGINT AS start_time_ns";
        assert!(sql.contains(time), "{sql}");
        assert!(sql.ends_with(" WHERE false;"), "{sql}");
    }

    #[test]
    fn a_folder_without_results_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = views(folder.path()).unwrap_err().to_string();
        assert!(error.contains("holds no results"), "{error}");
        let error = views(&folder.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("none: holds no results"), "{error}");
    }
}
