//! DuckDB, as a program beside this one: its own command line, or Python with its module; and what it may reach.
//!
//! The crate `duckdb` was looked at and not taken: it compiles DuckDB's C++, for longer than all else of this program takes.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use roce_files::Directory;
use roce_model::text::clean;

use super::beside;

/// Longest time for the questions of one run.
pub(crate) const PATIENCE: Duration = Duration::from_mins(10);
/// Memory that DuckDB uses before it spills.
const MEMORY: &str = "4GB";
/// Room that it takes for spilling.
const SPILL: &str = "20GB";

/// The statement behind which no setting changes any more.
pub(crate) const LOCKED: &str = "SET lock_configuration = true;";

/// Statements behind which DuckDB reaches these folders and nothing else: no other file, no network, no extension. Their names have no
/// quotes.
pub(crate) fn closed(folders: &[&str]) -> Vec<String> {
    let folders: Vec<String> = folders.iter().map(|folder| format!("'{folder}'")).collect();
    vec![
        // Its bar would stand among the rows, where nobody sees a terminal.
        "SET enable_progress_bar = false;".to_owned(),
        "SET autoinstall_known_extensions = false;".to_owned(),
        "SET autoload_known_extensions = false;".to_owned(),
        format!("SET allowed_directories = [{}];", folders.join(", ")),
        "SET enable_external_access = false;".to_owned(),
    ]
}

/// A private folder for what DuckDB writes: statements, answers, and what does not fit into memory.
#[derive(Debug)]
pub(crate) struct Scratch {
    // The folder goes when this is dropped.
    _folder: Directory,
    path: String,
}

impl Scratch {
    /// A new folder among the temporary ones.
    ///
    /// # Errors
    /// When it cannot be made, or its path cannot stand in SQL.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let random = RandomState::new().build_hasher().finish();
        let path = std::env::temp_dir().join(format!("roce-analyze-sql-{random:016x}"));
        let text = path.to_str();
        let text = text.context("the folder for temporary files is not UTF-8")?;
        if text.contains(['\'', '\\']) {
            bail!("{text}: a path with quotes cannot stand in SQL\nhint: set TMPDIR to another folder");
        }
        Ok(Self {
            _folder: Directory::made(&path)?.with_context(|| format!("{text}: it exists already"))?,
            path: text.to_owned(),
        })
    }

    /// The path of a file in it, as DuckDB gets it.
    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Statements behind which DuckDB has limits of memory and of disk, and spills into this folder.
    pub(crate) fn limits(&self) -> Vec<String> {
        vec![
            format!("SET memory_limit = '{MEMORY}';"),
            format!("SET max_temp_directory_size = '{SPILL}';"),
            format!("SET temp_directory = '{}';", self.path("spill")),
        ]
    }
}

/// Why DuckDB has failed, by how it ended and what it said.
pub(crate) fn failure(status: ExitStatus, said: &str) -> anyhow::Error {
    let lines = said.lines().map(|line| clean(line).into_owned());
    let lines: Vec<String> = lines.filter(|line| !line.trim().is_empty()).collect();
    let said = lines.join("\n");
    let more = if said.is_empty() {
        String::new()
    } else {
        format!(": {said}")
    };
    match (status.signal(), status.code()) {
        (Some(signal), _) => {
            anyhow!(
                "DuckDB was ended by signal {signal}{more}\nhint: 9 is often the system's, for want of memory"
            )
        }
        (None, Some(code)) if said.is_empty() => {
            anyhow!("DuckDB failed with exit code {code}, and says nothing")
        }
        _ => anyhow!("DuckDB refuses the question: {said}"),
    }
}

/// Kind of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// DuckDB's own.
    Shell,
    /// Python that has its module.
    Python,
}

/// A program that is DuckDB.
#[derive(Debug)]
pub(crate) struct DuckDb {
    program: PathBuf,
    kind: Kind,
}

impl DuckDb {
    /// The program that is named, or the first one on the path. `others` says what else answers where there is none.
    ///
    /// # Errors
    /// When there is none, or the named one is not DuckDB.
    pub(crate) fn find(named: Option<&Path>, others: &str) -> anyhow::Result<Self> {
        let at = |program: &Path| {
            let kind = kind(program)?;
            // It is started in another folder. A name alone is looked for on the path.
            let is_name = program.components().count() == 1;
            let absolute = std::path::absolute(program).ok().filter(|_| !is_name);
            let program = absolute.unwrap_or_else(|| program.to_owned());
            Some(Self { program, kind })
        };
        if let Some(program) = named {
            return at(program).ok_or_else(|| {
                anyhow!(
                    "{}: is neither DuckDB's program nor a Python with its module",
                    clean(&program.to_string_lossy())
                )
            });
        }
        let found = ["duckdb", "python3"].map(Path::new).into_iter().find_map(at);
        found.ok_or_else(|| anyhow!("no DuckDB is installed here\nhint: pip install duckdb, or {others}"))
    }

    /// The program.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Its kind.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// A command of the program with these options of DuckDB's own program, which asks nobody and ends at the first error, or with this
    /// script of Python. It ends with this process.
    pub(crate) fn command(&self, options: &[&str], script: &str) -> Command {
        let mut command = beside::command(&self.program);
        match self.kind {
            Kind::Shell => command.args(["-batch", "-bail"]).args(options),
            Kind::Python => command.args(["-c", &python(script)]),
        };
        command
    }
}

/// A script of Python that takes no modules of the folder in which the user works.
fn python(script: &str) -> String {
    format!("import sys\nsys.path = [path for path in sys.path if path not in ('', '.')]\n{script}")
}

/// Kind of a program; `None`: it cannot be started, or is neither.
fn kind(program: &Path) -> Option<Kind> {
    let says = |arguments: &[&str]| {
        let output = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(text)
    };
    let version = says(&["--version"])?;
    if version.starts_with("Python") {
        says(&["-c", &python("import duckdb")]).map(|_| Kind::Python)
    } else {
        version.starts_with('v').then_some(Kind::Shell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_are_no_duckdb_are_refused() {
        // Both start; neither says a version of DuckDB.
        for program in ["/bin/true", "a-program-that-nobody-has"] {
            let error = DuckDb::find(Some(Path::new(program)), "")
                .unwrap_err()
                .to_string();
            assert!(error.contains("neither DuckDB's program nor a Python"), "{error}");
        }
    }

    #[test]
    fn only_the_folders_stay_open() {
        let statements = closed(&["/srv/ds/", "/tmp/x/"]);
        assert_eq!(
            statements[3],
            "SET allowed_directories = ['/srv/ds/', '/tmp/x/'];"
        );
        assert_eq!(statements[4], "SET enable_external_access = false;");
    }

    #[test]
    fn a_failure_has_a_cause() {
        let ended = |script: &str, said: &str| {
            let status = Command::new("sh").args(["-c", script]).status().unwrap();
            failure(status, said).to_string()
        };
        let killed = ended("kill -9 $$", "");
        assert!(killed.starts_with("DuckDB was ended by signal 9\n"), "{killed}");
        assert_eq!(
            ended("exit 3", " \n"),
            "DuckDB failed with exit code 3, and says nothing"
        );
        assert_eq!(
            ended("exit 1", "Parser\u{1b} Error\n"),
            "DuckDB refuses the question: Parser? Error"
        );
    }
}
