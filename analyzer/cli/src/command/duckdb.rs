//! DuckDB, as a program beside this one: its own command line, or Python with its module; and what it may reach.
//!
//! The crate `duckdb` was looked at and not taken: it compiles DuckDB's C++, for longer than all else of this program takes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::anyhow;
use roce_model::text::clean;

/// The statement behind which no setting changes any more.
pub(crate) const LOCKED: &str = "SET lock_configuration = true;";

/// Statements behind which DuckDB reaches these folders and nothing else: no other file, no network, no extension. Their names have no
/// quotes.
pub(crate) fn closed(folders: &[&str]) -> Vec<String> {
    let folders: Vec<String> = folders.iter().map(|folder| format!("'{folder}'")).collect();
    vec![
        "SET autoinstall_known_extensions = false;".to_owned(),
        "SET autoload_known_extensions = false;".to_owned(),
        format!("SET allowed_directories = [{}];", folders.join(", ")),
        "SET enable_external_access = false;".to_owned(),
    ]
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
            kind(program).map(|kind| Self {
                program: program.to_owned(),
                kind,
            })
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
    /// script of Python.
    pub(crate) fn command(&self, options: &[&str], script: &str) -> Command {
        let mut command = Command::new(&self.program);
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
            statements[2],
            "SET allowed_directories = ['/srv/ds/', '/tmp/x/'];"
        );
        assert_eq!(statements[3], "SET enable_external_access = false;");
    }
}
