//! Answers of the analysis: the verdicts and the counts of one run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use roce_capture::Container;
use roce_model::{RunSummary, Severity, Sink, SinkError};
use serde_json::Value;

use crate::encoding::TapeEncoding;
use crate::input::Input;
use crate::tape::Tape;

/// One finding of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The rule.
    pub id: String,
    /// How bad it is.
    pub severity: Severity,
    /// How sure the analysis is: low, medium, high.
    pub confidence: String,
    /// The numbers of its evidence.
    pub facts: BTreeMap<String, f64>,
    /// The sentence.
    pub summary: String,
}

impl Verdict {
    /// True if it is a warning or worse.
    pub fn is_loud(&self) -> bool {
        self.severity >= Severity::Warning
    }

    /// The confidence as a number: 0 for low, 2 for high.
    pub fn sureness(&self) -> u8 {
        match self.confidence.as_str() {
            "high" => 2,
            "medium" => 1,
            _ => 0,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            id,
            severity,
            confidence,
            summary,
            ..
        } = self;
        write!(f, "{id} {}/{confidence}: {summary}", severity.name())
    }
}

/// The verdicts and counts of one run.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The findings, in the order of the report.
    pub verdicts: Vec<Verdict>,
    /// The counts of the run.
    pub totals: BTreeMap<String, u64>,
    /// The first sentence.
    pub sentence: String,
}

impl Answer {
    /// The answer in a JSON document of the analysis.
    pub fn of(document: &Value) -> Self {
        let rows = document["findings"].as_array().into_iter().flatten();
        let totals = document["totals"].as_object().into_iter().flatten();
        Self {
            verdicts: rows.map(verdict).collect(),
            totals: totals
                .filter_map(|(name, value)| Some((name.clone(), value.as_u64()?)))
                .collect(),
            sentence: document["run"]["sentence"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        }
    }

    /// The findings of a rule.
    pub fn of_id<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a Verdict> {
        self.verdicts.iter().filter(move |verdict| verdict.id == id)
    }
}

fn verdict(row: &Value) -> Verdict {
    let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let facts = row["evidence"].as_object().into_iter().flatten();
    Verdict {
        id: text("id"),
        severity: Severity::named(&text("severity")).unwrap_or_default(),
        confidence: text("confidence"),
        facts: facts
            .filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)))
            .collect(),
        summary: text("summary"),
    }
}

/// Input of one run of the analysis.
#[derive(Clone, Debug)]
pub struct GivenRun {
    /// The files.
    pub files: Vec<(Tape, TapeEncoding)>,
    /// The files in the order of the arguments; one may come twice.
    pub order: Vec<usize>,
    /// Options.
    pub arguments: Vec<String>,
    /// The only file comes through standard input.
    pub is_piped: bool,
}

impl GivenRun {
    /// An input as it is.
    pub fn of(input: &Input) -> Self {
        let file = |tape: &Tape| {
            let must_be_described = tape.interfaces.len() > 1 || tape.counts_losses();
            let container = if must_be_described {
                Container::Pcapng
            } else {
                tape.container
            };
            (tape.clone(), TapeEncoding::of(container))
        };
        Self {
            files: input.tapes.iter().map(file).collect(),
            order: (0..input.tapes.len()).collect(),
            arguments: input.arguments.clone(),
            is_piped: false,
        }
    }

    /// Writes the files into a folder; their paths.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>, SinkError> {
        let paths = self.files.iter().map(|(tape, encoding)| {
            let path = folder.join(&tape.name);
            std::fs::write(&path, encoding.write(tape)?)?;
            Ok(path)
        });
        paths.collect()
    }

    /// Writes each file in another way.
    #[must_use]
    pub fn encoded(mut self, encode: impl Fn(&Tape, &mut TapeEncoding)) -> Self {
        for (tape, encoding) in &mut self.files {
            encode(tape, encoding);
        }
        self
    }

    /// Adds an option.
    #[must_use]
    pub fn option(mut self, name: &str, value: &str) -> Self {
        self.arguments.extend([name.to_owned(), value.to_owned()]);
        self
    }
}

/// Keeps the document of a run.
#[derive(Default)]
struct KeptDocument(Value);

impl Sink for KeptDocument {
    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        let mut text = Vec::new();
        roce_report::json::document(run, &[], &mut text)?;
        self.0 = serde_json::from_slice(&text)?;
        Ok(())
    }
}

/// Runs the analysis over copies, in a folder of its own.
#[derive(Debug)]
pub struct Analyst {
    folder: tempfile::TempDir,
    /// The program that analyses its standard input: `roce-metamorphic --analyse`. Without it, such copies are left out.
    program: Option<PathBuf>,
}

impl Analyst {
    /// An analyst with a temporary folder.
    ///
    /// # Errors
    /// When there can be no such folder.
    pub fn new(program: Option<PathBuf>) -> Result<Self, SinkError> {
        Ok(Self {
            folder: tempfile::tempdir()?,
            program,
        })
    }

    /// The answer to what is given; `None` where it cannot be asked here.
    ///
    /// # Errors
    /// When a file cannot be written, or the analysis fails.
    pub fn answer(&self, given: &GivenRun) -> Result<Option<Answer>, SinkError> {
        let paths = given.write(self.folder.path())?;
        let mut arguments: Vec<OsString> = given.arguments.iter().map(OsString::from).collect();
        if !given.arguments.iter().any(|argument| argument == "--threads") {
            arguments.extend(["--threads", "1"].map(OsString::from));
        }
        let answer = if given.is_piped {
            self.piped(&arguments, &paths)
        } else {
            arguments.extend(
                given
                    .order
                    .iter()
                    .map(|place| paths[*place].clone().into_os_string()),
            );
            analyse(arguments).map(Some)
        };
        for path in paths {
            std::fs::remove_file(path)?;
        }
        answer
    }

    fn piped(&self, arguments: &[OsString], paths: &[PathBuf]) -> Result<Option<Answer>, SinkError> {
        let (Some(program), [path]) = (&self.program, paths) else {
            return Ok(None);
        };
        let output = Command::new(program)
            .arg("--analyse")
            .args(arguments)
            .args(["--format", "json", "-"])
            .stdin(Stdio::from(File::open(path)?))
            .output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        Ok(Some(Answer::of(&serde_json::from_slice(&output.stdout)?)))
    }
}

fn analyse(mut arguments: Vec<OsString>) -> Result<Answer, SinkError> {
    arguments.extend(["--format", "none"].map(OsString::from));
    let run = || {
        let mut kept = KeptDocument::default();
        roce_analyze::analyse_arguments(arguments, &mut kept)?;
        Ok(Answer::of(&kept.0))
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("the analysis panicked".into()))
}
