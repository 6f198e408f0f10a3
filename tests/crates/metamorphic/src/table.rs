//! The table: for each transformation its copies, its violations, and the first inputs that violate it.

use std::fmt;

use crate::hunt::CopyOutcome;
use crate::transformations::TRANSFORMATIONS;

/// Outcomes of many copies, to be printed.
#[derive(Debug)]
pub struct Table<'a> {
    outcomes: &'a [CopyOutcome],
    /// Inputs that are named for each transformation at most.
    pub named: usize,
}

impl<'a> Table<'a> {
    /// The table of these outcomes.
    pub fn new(outcomes: &'a [CopyOutcome]) -> Self {
        Self { outcomes, named: 3 }
    }
}

/// True if a verdict has changed.
fn has_other_verdict(outcome: &CopyOutcome) -> bool {
    outcome.changes.iter().any(|change| change.is_verdict)
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<24} {:>7} {:>9} {:>8}",
            "transformation", "copies", "verdicts", "numbers"
        )?;
        let mut all = (0, 0, 0);
        for transformation in TRANSFORMATIONS {
            let of = |outcome: &&CopyOutcome| outcome.transformation == transformation.name;
            let copies = self.outcomes.iter().filter(of).count();
            let verdicts = self
                .outcomes
                .iter()
                .filter(of)
                .filter(|outcome| has_other_verdict(outcome))
                .count();
            let violated = self
                .outcomes
                .iter()
                .filter(of)
                .filter(|outcome| !outcome.changes.is_empty())
                .count();
            let numbers = violated - verdicts;
            if copies > 0 {
                writeln!(
                    f,
                    "{:<24} {copies:>7} {verdicts:>9} {numbers:>8}",
                    transformation.name
                )?;
            }
            all = (all.0 + copies, all.1 + verdicts, all.2 + numbers);
        }
        writeln!(f, "{:<24} {:>7} {:>9} {:>8}", "all", all.0, all.1, all.2)?;
        for transformation in TRANSFORMATIONS {
            self.violations(f, transformation.name)?;
        }
        Ok(())
    }
}

impl Table<'_> {
    fn violations(&self, f: &mut fmt::Formatter<'_>, transformation: &str) -> fmt::Result {
        let of =
            |outcome: &&CopyOutcome| outcome.transformation == transformation && !outcome.changes.is_empty();
        let mut violated: Vec<_> = self.outcomes.iter().filter(of).collect();
        violated.sort_by_key(|outcome| !has_other_verdict(outcome));
        if violated.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n{transformation}:")?;
        for outcome in violated.iter().take(self.named) {
            writeln!(f, "  {}", outcome.input)?;
            for change in &outcome.changes {
                writeln!(f, "    {}", change.text)?;
            }
        }
        if violated.len() > self.named {
            writeln!(f, "  and {} more", violated.len() - self.named)?;
        }
        Ok(())
    }
}
