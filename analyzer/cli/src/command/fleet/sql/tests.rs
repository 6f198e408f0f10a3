//! Tests of questions and formats, without an engine. `spark/tests` runs them in DuckDB and Spark.

use serde_json::json;

use super::duckdb::{AnswerColumn, Cell};
use super::*;

fn answer() -> Answer {
    let column = |name: &str, is_number| AnswerColumn {
        name: name.to_owned(),
        is_number,
    };
    let row = |host: serde_json::Value, ce: serde_json::Value| vec![Cell(host), Cell(ce)];
    Answer {
        columns: vec![column("host", false), column("ce", true)],
        rows: vec![
            row(json!("h1"), json!(12)),
            row(json!("=1+\"2\",\u{1b}[31m"), json!(null)),
            row(json!("h3"), json!(-5)),
        ],
    }
}

#[test]
fn formats_of_an_answer() {
    assert_eq!(table(&answer(), 1), " host  ce\n h1    12\n");
    // RFC 4180: quotes are doubled. Characters that steer a terminal are gone.
    let csv = csv(&answer()).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines[0], lines[1], lines[3]), ("host,ce", "h1,12", "h3,-5"));
    assert!(
        lines[2].starts_with("\"'=1+\"\"2\"\",") && lines[2].ends_with("\","),
        "{csv}"
    );
    assert!(!csv.contains('\u{1b}'));
    let read: serde_json::Value = serde_json::from_str(&json(&answer())).unwrap();
    assert_eq!(read[0], json!({"host": "h1", "ce": 12}));
    assert_eq!(read[1]["ce"], json!(null));
    assert_eq!(read[1]["host"], json!("=1+\"2\",\u{1b}[31m"));
}

#[test]
fn a_question_is_a_name_or_a_file() {
    for question in questions::ALL {
        assert_eq!(query(question.name).unwrap(), question.sql.trim_end());
        // Both engines take one statement.
        assert!(!question.sql.contains(';'), "{}", question.name);
    }
    let error = format!("{:#}", query("moon").unwrap_err());
    assert!(error.contains("destinations, incasts"), "{error}");
    assert!(query("/nowhere/at/all.sql").is_err());
    let file = std::env::temp_dir().join(format!("roce-analyze-question-{}.sql", std::process::id()));
    let written = |text: &str| {
        std::fs::write(&file, text).unwrap();
        query(file.to_str().unwrap())
    };
    assert_eq!(written("SELECT 1 -- one\n;\n").unwrap(), "SELECT 1 -- one");
    // The shell of DuckDB would run the second line.
    let error = format!("{:#}", written("SELECT 1;\n .shell reboot\n").unwrap_err());
    assert!(error.contains("line 2: a line that begins with a dot"), "{error}");
    assert!(format!("{:#}", written(" ;\n").unwrap_err()).contains("no SELECT"));
    std::fs::remove_file(&file).unwrap();
}

fn range(since: Option<&str>, until: Option<&str>) -> Range {
    let day = |day: Option<&str>| day.map(|day| day.parse().unwrap());
    Range {
        since: day(since),
        until: day(until),
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
    let source = |since: Option<&str>, until: Option<&str>| Dataset::new(&folder, range(since, until), &[]);
    let duckdb = source(None, None).unwrap().text(Engine::Duckdb);
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
        .text(Engine::Spark);
    let path = format!(
        "OPTIONS (path '{place}/flows/{{date=2026-03-02}}/host=*/*.parquet', recursiveFileLookup 'true')"
    );
    assert!(spark.contains(&path), "{spark}");
    // A day without runs, and no dataset at all.
    for (since, until) in [(Some("2026-03-03"), None), (None, Some("2026-03-01"))] {
        let error = format!("{:#}", source(since, until).unwrap_err());
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
        let error = format!(
            "{:#}",
            Dataset::new(Path::new(path), Range::default(), &[]).unwrap_err()
        );
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
    let text = days.unwrap().text(Engine::Spark);
    assert!(
        text.contains(
            "path 's3://lake/roce/run/{date=2026-02-27,date=2026-02-28,date=2026-03-01}/part-*.parquet'"
        ),
        "{text}"
    );
    let all = Dataset::new(Path::new("s3://lake/roce"), Range::default(), &[]).unwrap();
    assert!(
        all.text(Engine::Duckdb)
            .contains("'s3://lake/roce/run/date=*/host=*/*.parquet'")
    );
    let error = ask(&all, &["SELECT 1"]).unwrap_err();
    assert!(format!("{error:#}").contains("--print"));
}
