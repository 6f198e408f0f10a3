//! A rule about counters, and a sign that it finds.

use roce_model::{Evidence, Severity};

use super::growth::Growths;
use crate::Rule;

/// A rule about counters.
pub type CounterRule = Rule<CounterRun>;

/// Function that judges growths by a rule.
#[derive(Clone, Copy, Debug)]
pub struct CounterRun {
    pub(super) judge: fn(&Growths<'_>) -> Vec<CounterSign>,
}

/// Something that a rule found at one object.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct CounterSign {
    pub(super) severity: Severity,
    pub(super) object: String,
    pub(super) text: String,
    pub(super) evidence: Evidence,
}

impl CounterSign {
    /// A sign; of totals it is a note. `text` is followed by the time.
    pub(super) fn new(growths: &Growths<'_>, severity: Severity, object: &str, text: &str) -> Self {
        let severity = if growths.is_total() {
            severity.min(Severity::Info)
        } else {
            severity
        };
        let mut evidence = Evidence::default();
        if let Some(seconds) = growths.seconds() {
            evidence.number("seconds", seconds);
        }
        Self {
            severity,
            object: object.to_owned(),
            text: format!("{text} {}", growths.when()),
            evidence,
        }
    }

    /// A sign whose text has its own time.
    pub(super) fn untimed(severity: Severity, object: &str, text: &str) -> Self {
        Self {
            severity,
            object: object.to_owned(),
            text: text.to_owned(),
            evidence: Evidence::default(),
        }
    }

    /// Adds what follows from it.
    pub(super) fn and(mut self, text: &str) -> Self {
        if !text.is_empty() {
            self.text.push_str(": ");
            self.text.push_str(text);
        }
        self
    }

    /// A number that may not be counted.
    pub(super) fn counted(self, name: &'static str, value: Option<f64>) -> Self {
        match value {
            Some(value) => self.number(name, value),
            None => self,
        }
    }

    pub(super) fn number(mut self, name: &'static str, value: f64) -> Self {
        self.evidence.number(name, value);
        self
    }
}

/// A rule without texts, whose findings are certain.
pub(super) const NO_TEXTS: CounterRule = CounterRule {
    confidence: "certain",
    ..CounterRule::judged_by(CounterRun {
        judge: |_| Vec::new(),
    })
};

pub(super) const fn by(judge: fn(&Growths<'_>) -> Vec<CounterSign>) -> CounterRun {
    CounterRun { judge }
}

/// A warning for what is much, else a note.
pub(super) fn severity(is_much: bool) -> Severity {
    if is_much {
        Severity::Warning
    } else {
        Severity::Info
    }
}
