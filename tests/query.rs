//! `query`: what goes to DuckDB and what comes back, by programs that speak as it does, and refusals. `tests/independent/check_answers.py`
//! has the real one answer.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::{TempDir, tempdir};

use crate::command::{Ran, run, run_with_input};

/// A folder with `ds`, which looks like a dataset, and `duckdb`: a program that keeps what it reads and prints `answer`.
fn folder(answer: &str, code: u8) -> TempDir {
    let folder = tempdir().unwrap();
    let table = folder.path().join("ds/flows");
    fs::create_dir_all(&table).unwrap();
    fs::write(table.join("part-0.parquet"), "").unwrap();
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo v1.5.6; exit 0; fi\necho \"$@\" > arguments\ncat > asked\ncat <<'END'\n{answer}\nEND\n\
         [ {code} = 0 ] || echo 'Parser Error: near \x1b[31mFRM' >&2\nexit {code}\n"
    );
    let program = folder.path().join("duckdb");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn ask(folder: &Path, more: &[&str]) -> Ran {
    let program = folder.join("duckdb");
    let program = program.to_str().unwrap();
    run(folder, ["query", "ds", "--duckdb", program].iter().chain(more))
}

const ANSWER: &str = "{\"source\":\"10.0.0.1\",\"ce\":7,\"note\":null}\n{\"source\":\"a,\\\"b\\u001b\",\"ce\":1200,\"note\":\"x\"}";

#[test]
fn an_answer_has_three_forms() {
    let folder = folder(ANSWER, 0);
    let ran = ask(folder.path(), &["SELECT 1"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // Numbers stand at the right; an escape character cannot steer the terminal.
    let expected = " source      ce  note\n 10.0.0.1     7  -\n a,\"b?     1200  x\n";
    assert_eq!(ran.stdout, expected);
    let csv = ask(folder.path(), &["SELECT 1", "--format", "csv"]).stdout;
    assert_eq!(csv, "source,ce,note\n10.0.0.1,7,\n\"a,\"\"b?\",1200,x\n");
    let lines = ask(folder.path(), &["SELECT 1", "--format", "jsonl"]).stdout;
    assert_eq!(lines, format!("{ANSWER}\n"));
}

#[test]
fn the_program_gets_views_and_may_open_only_the_folder() {
    let folder = folder(ANSWER, 0);
    assert_eq!(ask(folder.path(), &["SELECT 1 AS \"x\""]).code, Some(0));
    let asked = fs::read_to_string(folder.path().join("ds/asked")).unwrap();
    let place = |text: &str| {
        asked
            .find(text)
            .unwrap_or_else(|| panic!("{text} is missing: {asked}"))
    };
    let flows = "CREATE VIEW flows AS SELECT * FROM read_parquet(['flows/*.parquet'], union_by_name = true, hive_partitioning = false);";
    // Views first, then the locks, then the question.
    let order = [
        place("SET TimeZone = 'UTC';"),
        place(flows),
        place("CREATE VIEW waits AS SELECT NULL::VARCHAR AS run_id"),
        place("SET allowed_directories = ['.'];"),
        place("SET enable_external_access = false;"),
        place("SET lock_configuration = true;"),
        place("\nSELECT 1 AS \"x\"\n"),
    ];
    assert!(order.is_sorted(), "{order:?}");
    let arguments = fs::read_to_string(folder.path().join("ds/arguments")).unwrap();
    assert!(
        arguments.contains("-no-init"),
        "nobody's settings are read: {arguments}"
    );
}

#[test]
fn questions_come_from_files_and_standard_input() {
    let folder = folder(ANSWER, 0);
    fs::write(folder.path().join("q.sql"), "SELECT 2").unwrap();
    assert_eq!(ask(folder.path(), &["--file", "q.sql"]).code, Some(0));
    let asked = folder.path().join("ds/asked");
    assert!(fs::read_to_string(&asked).unwrap().ends_with("\nSELECT 2\n;\n"));
    let program = folder.path().join("duckdb");
    let arguments = ["query", "ds", "-", "--duckdb", program.to_str().unwrap()];
    let ran = run_with_input(folder.path(), arguments, b"SELECT 3");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(fs::read_to_string(&asked).unwrap().ends_with("\nSELECT 3\n;\n"));
}

#[test]
fn mistakes_are_named() {
    let refused = folder("", 1);
    let several = folder("{\"a\":1}\n\n{\"b\":2}", 0);
    let garbage = folder("hello", 0);
    for (folder, question, expected) in [
        (
            &refused,
            "SELECT 1 FRM x",
            "DuckDB refuses the question: Parser Error: near ?[31mFRM",
        ),
        (
            &several,
            "SELECT 1 AS a; SELECT 2 AS b",
            "the question has several answers",
        ),
        (
            &garbage,
            "SELECT 1",
            "DuckDB's answer has a line that is no row: hello",
        ),
        (&several, " ", "the question is empty"),
        // DuckDB's shell would run it.
        (
            &several,
            "SELECT 1;\n.shell true",
            ".shell: is a command of DuckDB's shell, and no SQL",
        ),
    ] {
        let ran = ask(folder.path(), &[question]);
        assert_eq!(ran.code, Some(2), "{question}: {ran:?}");
        assert!(ran.stderr.contains(expected), "{question}: {}", ran.stderr);
        assert!(!ran.stderr.contains('\x1b'), "{}", ran.stderr);
    }
    let ran = run(
        several.path(),
        ["query", "ds", "SELECT 1", "--duckdb", "/bin/true"],
    );
    assert!(
        ran.stderr
            .contains("/bin/true: is neither DuckDB's program nor a Python"),
        "{ran:?}"
    );
    fs::create_dir(several.path().join("none")).unwrap();
    let ran = run(several.path(), ["query", "none", "SELECT 1"]);
    assert!(ran.stderr.contains("none: holds no results"), "{ran:?}");
}

#[test]
fn no_rows_are_said() {
    let folder = folder("", 0);
    let ran = ask(folder.path(), &["SELECT 1 WHERE false"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), " no rows\n"),
        "{ran:?}"
    );
}
