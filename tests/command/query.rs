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
fn an_answer_has_four_formats() {
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
    let array = ask(folder.path(), &["SELECT 1", "--format", "json"]).stdout;
    let rows: Vec<serde_json::Value> = serde_json::from_str(&array).unwrap();
    let expected = ANSWER.lines().map(|line| serde_json::from_str(line).unwrap());
    assert_eq!(rows, expected.collect::<Vec<serde_json::Value>>());
    let one = ask(folder.path(), &["SELECT 1", "--rows", "1"]).stdout;
    assert!(
        one.ends_with(" ... 1 more rows: --rows N, or --format csv\n"),
        "{one}"
    );
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
    // Files of older versions lack columns, which are absent then.
    let columns = "CREATE VIEW flows AS SELECT NULL::VARCHAR AS run_id,";
    let flows = "WHERE false UNION ALL BY NAME SELECT * FROM read_parquet('flows/*.parquet', union_by_name = true, hive_partitioning = false);";
    // Views first, then the locks, then the question.
    let order = [
        place("SET TimeZone = 'UTC';"),
        place(columns),
        place(flows),
        place("CREATE VIEW waits AS SELECT NULL::VARCHAR AS run_id"),
        place("SET allowed_directories = ['.'];"),
        place("SET enable_external_access = false;"),
        place("SET lock_configuration = true;"),
        place("\nSELECT * FROM query('SELECT 1 AS \"x\"')\n;\n"),
    ];
    assert!(order.is_sorted(), "{order:?}");
    // Nothing spills into the dataset.
    let spill = place("SET temp_directory = '");
    assert!(spill < place(flows) && !asked[spill..].starts_with("SET temp_directory = '.'"));
    assert!(asked.contains("SET memory_limit = '4GB';"), "{asked}");
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
    assert!(
        fs::read_to_string(&asked)
            .unwrap()
            .ends_with("query('SELECT 2')\n;\n")
    );
    let program = folder.path().join("duckdb");
    let arguments = ["query", "ds", "-", "--duckdb", program.to_str().unwrap()];
    let ran = run_with_input(folder.path(), arguments, b"SELECT 3");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        fs::read_to_string(&asked)
            .unwrap()
            .ends_with("query('SELECT 3')\n;\n")
    );
}

#[test]
fn questions_have_names() {
    let folder = folder(ANSWER, 0);
    let listed = run(folder.path(), ["query", "ds"]).good().stdout;
    for name in [
        "destinations",
        "incasts",
        "racks",
        "pairs",
        "ends",
        "clocks",
        "jobs",
    ] {
        assert!(listed.contains(&format!(" {name} ")), "{listed}");
        // A dataset of one run has the views that the questions ask, too.
        assert_eq!(ask(folder.path(), &[name]).code, Some(0));
        let asked = fs::read_to_string(folder.path().join("ds/asked")).unwrap();
        assert!(
            asked.contains("TEMP VIEW sides AS") && asked.contains("TEMP VIEW hosts AS"),
            "{asked}"
        );
    }
    let unknown = ask(folder.path(), &["moon"]);
    assert!(
        unknown
            .stderr
            .contains("there is no question moon\nhint: one of destinations, incasts"),
        "{unknown:?}"
    );
    let printed = ask(folder.path(), &["racks", "--print"]).good().stdout;
    assert!(
        printed.starts_with("-- In the folder of the dataset.\nSET TimeZone = 'UTC';\n"),
        "{printed}"
    );
    let days = ask(folder.path(), &["racks", "--from", "2026-03-02"]);
    assert!(days.stderr.contains("--from and --to choose days"), "{days:?}");
    let program = folder.path().join("duckdb");
    let far = [
        "query",
        "s3://lake/roce",
        "SELECT 1",
        "--duckdb",
        program.to_str().unwrap(),
    ];
    let far = run(folder.path(), far);
    assert!(far.stderr.contains("hint: --print prints the text"), "{far:?}");
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

#[test]
fn a_question_is_a_text_and_no_statement() {
    // DuckDB's function `query` takes one SELECT; quotes cannot end the text. tests/independent/check_answers.py has DuckDB refuse these.
    let folder = folder(ANSWER, 0);
    for (asked, sent) in [
        (
            "COPY (SELECT 1) TO 'run.json'",
            "query('COPY (SELECT 1) TO ''run.json''')",
        ),
        (
            "SELECT ') ; CREATE TABLE t (a INT); --",
            "query('SELECT '') ; CREATE TABLE t (a INT); --')",
        ),
    ] {
        assert_eq!(ask(folder.path(), &[asked]).code, Some(0));
        let text = fs::read_to_string(folder.path().join("ds/asked")).unwrap();
        assert!(text.ends_with(&format!("\nSELECT * FROM {sent}\n;\n")), "{text}");
    }
}

/// A folder whose DuckDB is this script.
fn folder_of(script: &str) -> TempDir {
    let folder = folder("", 0);
    let script = format!("#!/bin/sh\nif [ \"$1\" = --version ]; then echo v1.5.6; exit 0; fi\n{script}\n");
    fs::write(folder.path().join("duckdb"), script).unwrap();
    folder
}

#[test]
fn a_program_that_is_killed_or_silent_is_said() {
    for (script, cause) in [
        ("kill -9 $$", "DuckDB was ended by signal 9"),
        ("exit 3", "DuckDB failed with exit code 3, and says nothing"),
    ] {
        let folder = folder_of(script);
        for format in ["text", "csv"] {
            let ran = ask(folder.path(), &["SELECT 1", "--format", format]);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
            assert!(ran.stderr.contains(cause), "{}", ran.stderr);
        }
    }
}

#[test]
fn duckdb_ends_with_the_command() {
    let folder = folder_of("echo $$ > pid.new; mv pid.new pid; exec sleep 60");
    let mut command = crate::command::command(folder.path());
    let program = folder.path().join("duckdb");
    command.args(["query", "ds", "SELECT 1", "--duckdb"]).arg(program);
    let mut running = command.spawn().unwrap();
    let pid = folder.path().join("ds/pid");
    let wait = |what: &str, is_done: &dyn Fn() -> bool| {
        let begun = std::time::Instant::now();
        while !is_done() {
            assert!(begun.elapsed().as_secs() < 20, "{what}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    };
    wait("DuckDB starts", &|| pid.exists());
    let pid = fs::read_to_string(pid).unwrap();
    running.kill().unwrap();
    running.wait().unwrap();
    // A process that has ended and that nobody has waited for has no command line.
    let line = format!("/proc/{}/cmdline", pid.trim());
    wait("DuckDB ends", &|| {
        fs::read(&line).map_or(true, |line| line.is_empty())
    });
}
