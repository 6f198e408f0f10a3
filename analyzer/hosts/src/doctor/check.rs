//! A check: its texts, and the outcomes that it gives.

use roce_model::Severity;
use roce_rules::Rule;

use crate::doctor::facts::Facts;
use crate::doctor::host::{Unknown, source_of};

/// How a check ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Status {
    /// There is nothing here that it concerns.
    NotApplicable,
    /// As it should be.
    Ok,
    /// Something to know.
    Info,
    /// It could not be read. Never counted as ok.
    Unknown,
    /// It costs throughput or latency, or will fail under load.
    Warning,
    /// RDMA does not work, or loses packets.
    Critical,
}

impl Status {
    /// How bad it is, for `--fail-on`. What was not read or does not apply is no finding.
    pub fn severity(self) -> Severity {
        match self {
            Self::NotApplicable | Self::Ok | Self::Unknown => Severity::Ok,
            Self::Info => Severity::Info,
            Self::Warning => Severity::Warning,
            Self::Critical => Severity::Critical,
        }
    }

    /// The end of a check that shows a finding.
    pub(crate) fn from_severity(severity: Severity) -> Self {
        match severity {
            Severity::Critical => Self::Critical,
            Severity::Warning => Self::Warning,
            Severity::Info | Severity::Ok => Self::Info,
        }
    }

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotApplicable => "not_applicable",
            Self::Ok => "ok",
            Self::Info => "info",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// A value that was read, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadValue {
    /// A file, or the question that was answered.
    pub source: String,
    /// Its text.
    pub value: String,
}

/// Result of a check for one object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// The device, interface, process or host that it is about.
    pub object: String,
    /// The result in words.
    pub summary: String,
    /// The values that it was concluded from.
    pub seen: Vec<ReadValue>,
    /// The expected value; empty where there is none.
    pub expected: String,
    /// Commands that mend it. They are shown, never run. Words in capitals are to be filled in.
    pub fix: Vec<String>,
    /// Advice, where no command of this host mends it.
    pub advice: Vec<String>,
    /// How sure it is: `certain` or `likely`.
    pub confidence: &'static str,
}

impl Outcome {
    /// An outcome without values.
    pub(crate) fn new(status: Status, object: impl Into<String>, summary: impl Into<String>) -> Self {
        Self {
            status,
            object: object.into(),
            summary: summary.into(),
            seen: Vec::new(),
            expected: String::new(),
            fix: Vec::new(),
            advice: Vec::new(),
            confidence: "certain",
        }
    }

    pub(crate) fn ok(object: impl Into<String>, summary: impl Into<String>) -> Self {
        Self::new(Status::Ok, object, summary)
    }

    pub(crate) fn info(object: impl Into<String>, summary: impl Into<String>) -> Self {
        Self::new(Status::Info, object, summary)
    }

    pub(crate) fn warning(object: impl Into<String>, summary: impl Into<String>) -> Self {
        Self::new(Status::Warning, object, summary)
    }

    pub(crate) fn critical(object: impl Into<String>, summary: impl Into<String>) -> Self {
        Self::new(Status::Critical, object, summary)
    }

    /// Something that could not be read.
    pub(crate) fn unknown(object: impl Into<String>, unknown: Unknown) -> Self {
        let object: String = object.into();
        let said = if ["host", "process", "cpu", "cgroup"].contains(&object.as_str()) {
            format!("not known: {}", unknown.why)
        } else {
            format!("{object}: not known: {}", unknown.why)
        };
        let mut outcome = Self::new(Status::Unknown, object, said);
        outcome.seen.push(ReadValue {
            source: unknown.source,
            value: unknown.why,
        });
        outcome
    }

    /// Adds the value of a path of the snapshot.
    pub(crate) fn seen(mut self, path: &str, value: impl Into<String>) -> Self {
        self.seen.push(ReadValue {
            source: source_of(path),
            value: value.into(),
        });
        self
    }

    pub(crate) fn expected(mut self, expected: impl Into<String>) -> Self {
        self.expected = expected.into();
        self
    }

    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix.push(fix.into());
        self
    }

    pub(crate) fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice.push(advice.into());
        self
    }

    pub(crate) fn likely(mut self) -> Self {
        self.confidence = "likely";
        self
    }
}

/// An outcome, or the reason why there is none.
pub(crate) type CheckResult = Result<Outcome, Unknown>;

/// One outcome for each object: what could not be read is unknown.
pub(crate) fn each<T>(
    all: impl IntoIterator<Item = T>,
    name: impl Fn(&T) -> String,
    judge: impl Fn(&T) -> CheckResult,
) -> Vec<Outcome> {
    let judged = all.into_iter().map(|object| {
        let judged = judge(&object);
        judged.unwrap_or_else(|unknown| Outcome::unknown(name(&object), unknown))
    });
    judged.collect()
}

/// The outcome for the host as a whole.
pub(crate) fn host_outcome(judge: impl Fn() -> CheckResult) -> Vec<Outcome> {
    each(["host"], |_| "host".to_owned(), |_| judge())
}

/// A check: its texts, and what judges a snapshot.
pub type Check = Rule<CheckRun>;

/// A function that judges a snapshot by a check.
#[derive(Clone, Copy, Debug)]
pub struct CheckRun {
    /// The group that `--only` names.
    pub group: &'static str,
    /// Its outcomes; none: there is nothing that it concerns.
    pub(crate) judge: fn(&Facts<'_>) -> Vec<Outcome>,
}

impl CheckRun {
    pub(crate) const fn new(group: &'static str, judge: fn(&Facts<'_>) -> Vec<Outcome>) -> Self {
        Self { group, judge }
    }
}

/// A check without texts, whose outcomes are certain.
pub(crate) const CERTAIN: Check = Check {
    confidence: "certain",
    ..Check::judged_by(CheckRun::new("", |_| Vec::new()))
};

/// A check with its outcome.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judgement {
    /// The check's name.
    pub id: &'static str,
    /// Its group.
    pub group: &'static str,
    /// The outcome.
    pub outcome: Outcome,
}
