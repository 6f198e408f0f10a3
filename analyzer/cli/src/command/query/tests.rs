//! Tests of questions and formats, without an engine. `spark/tests` runs them in DuckDB and Spark.

use serde_json::json;

use super::text::{Dataset, Range};
use super::*;

#[test]
fn a_field_follows_rfc_4180_and_is_no_formula() {
    // Quotes are doubled. Characters that steer a terminal are gone.
    for (value, expected) in [
        (json!("h1"), "h1"),
        (json!(12), "12"),
        (json!(-5), "-5"),
        (json!(null), ""),
        (json!("=1+\"2\",\u{1b}"), "\"'=1+\"\"2\"\",?\""),
    ] {
        let mut out = Vec::new();
        let mut csv = CsvWriter::new(&mut out);
        csv.row([&json!(1), &value].into_iter()).unwrap();
        drop(csv);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            format!("1,{expected}\n"),
            "{value}"
        );
    }
}

#[test]
fn a_question_is_a_name_or_a_file() {
    for question in questions::ALL {
        assert_eq!(sql_of(question.name).unwrap(), question.sql);
        // Both engines take one statement.
        assert!(!question.sql.contains(';'), "{}", question.name);
    }
    let error = format!("{:#}", sql_of("moon").unwrap_err());
    assert!(error.contains("destinations, incasts"), "{error}");
    assert!(sql_of("/nowhere/at/all.sql").is_err());
    let file = std::env::temp_dir().join(format!("roce-analyze-question-{}.sql", std::process::id()));
    let written = |text: &str| {
        std::fs::write(&file, text).unwrap();
        sql_of(file.to_str().unwrap())
    };
    assert_eq!(written("SELECT 1 -- one\n;\n").unwrap(), "SELECT 1 -- one\n;\n");
    assert_eq!(sql_of("SELECT 1").unwrap(), "SELECT 1");
    std::fs::remove_file(&file).unwrap();
}

fn range(from: Option<&str>, to: Option<&str>) -> Range {
    let day = |day: Option<&str>| day.map(|day| day.parse().unwrap());
    Range {
        from: day(from),
        to: day(to),
    }
}

#[test]
fn the_text_names_each_column_and_only_committed_runs() {
    let folder = std::env::temp_dir().join(format!("roce-analyze-text-{}", std::process::id()));
    let file = |table: &str, rest: &str| {
        let path = folder.join(table).join(rest);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    };
    file("run", "date=2026-03-02/host=h1/0123.parquet");
    file("flows", "date=2026-03-02/host=h1/0123.parquet");
    file("flows", "date=2026-03-03/part-0.parquet");
    // A file that is not complete, and a folder that is no day.
    file("events", "date=2026-03-02/host=h1/.0123.parquet.tmp");
    file("taps", "date=never/host=h1/0123.parquet");
    let source = |from: Option<&str>, to: Option<&str>| Dataset::new(&folder, range(from, to), &[]);
    let duckdb = source(None, None).unwrap().text(Engine::Duckdb).unwrap();
    let place = folder.display();
    for expected in [
        format!("SELECT * FROM read_parquet(['{place}/flows/date=2026-03-02/host=*/*.parquet'],"),
        format!("SELECT * FROM read_parquet(['{place}/flows/date=2026-03-03/part-*.parquet'],"),
        // docs/fleet-dataset.md: `run` is the commit, and compacted runs come first.
        "VIEW flows AS\nSELECT * FROM parts_flows WHERE run_id IN (SELECT run_id FROM parts_run)\nUNION ALL BY NAME\n\
         SELECT * FROM singles_flows WHERE run_id IN (SELECT run_id FROM singles_run) AND run_id NOT IN"
            .to_owned(),
    ] {
        assert!(duckdb.contains(&expected), "{expected}\n{duckdb}");
    }
    assert!(!duckdb.contains(&format!("{place}/events")) && !duckdb.contains(&format!("{place}/taps")));
    assert!(duckdb.contains("CAST(NULL AS BIGINT) AS first_time_ns"));
    let spark = source(Some("2026-03-02"), Some("2026-03-02"))
        .unwrap()
        .text(Engine::Spark)
        .unwrap();
    let path = format!(
        "OPTIONS (path '{place}/flows/{{date=2026-03-02}}/host=*/*.parquet', recursiveFileLookup 'true')"
    );
    assert!(spark.contains(&path), "{spark}");
    // A day without runs, and no dataset at all.
    for (from, to) in [(Some("2026-03-03"), None), (None, Some("2026-03-01"))] {
        let error = format!("{:#}", source(from, to).unwrap_err());
        assert!(error.contains("holds no runs of these days"), "{error}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(Dataset::new(&folder, Range::default(), &[]).is_err());
    // Paths with signs that could end a literal of SQL.
    for path in [
        "/data/it's",
        "/data/a,b",
        "/data/a;b",
        "/data/*",
        "s3://bucket/$x",
    ] {
        let error = format!("{:#}", super::text::place(Path::new(path)).unwrap_err());
        assert!(error.contains("cannot stand in SQL"), "{path}: {error}");
    }
}

#[test]
fn of_an_object_store_the_days_are_counted() {
    let days = Dataset::new(
        Path::new("s3://lake/roce/"),
        range(Some("2026-02-27"), Some("2026-03-01")),
        &[],
    );
    let text = days.unwrap().text(Engine::Spark).unwrap();
    assert!(
        text.contains(
            "path 's3://lake/roce/run/{date=2026-02-27,date=2026-02-28,date=2026-03-01}/part-*.parquet'"
        ),
        "{text}"
    );
    let all = Dataset::new(Path::new("s3://lake/roce"), Range::default(), &[]).unwrap();
    assert!(
        all.text(Engine::Duckdb)
            .unwrap()
            .contains("'s3://lake/roce/run/date=*/host=*/*.parquet'")
    );
}
