//! The table: all classes over all cases, or over those of each family.

use std::collections::BTreeMap;
use std::fmt;

use roce_sim::truth::TimeState;

use crate::families;
use crate::many::Outcome;
use crate::reach::Reach;
use crate::score::{Score, StatedConfidence};
use crate::scores::Scores;

/// Seeds that are named in a line.
const NAMED: usize = 5;

/// Scores of all cases.
#[derive(Clone, Debug, Default)]
pub struct Table {
    all: Part,
    families: BTreeMap<&'static str, Part>,
    /// Print a table for each family.
    pub by_family: bool,
}

/// Scores of some cases.
#[derive(Clone, Debug, Default)]
struct Part {
    cases: u64,
    scores: Scores,
    /// By class: faults, family and seed of the cases that have some.
    worst: BTreeMap<String, Vec<(u64, &'static str, u64)>>,
    /// Cases that could not be simulated or analysed.
    failed: Vec<String>,
}

impl Part {
    fn add(&mut self, outcome: &Outcome) {
        self.cases += 1;
        match &outcome.scores {
            Ok(scores) => {
                self.scores.add(scores);
                for (class, score) in scores.iter().filter(|(_, score)| score.faults() > 0) {
                    let worst = self.worst.entry(class.to_owned()).or_default();
                    worst.push((score.faults(), outcome.family, outcome.seed));
                }
            }
            Err(error) => self
                .failed
                .push(format!("{} {}: {error}", outcome.family, outcome.seed)),
        }
    }

    /// The cases of a class with the most faults, the worst first; with `all`, every one.
    fn seeds(&self, class: &str, all: bool) -> String {
        let mut worst = self.worst.get(class).cloned().unwrap_or_default();
        worst.sort_unstable_by(|a, b| b.cmp(a));
        let more = if all { 0 } else { worst.len().saturating_sub(NAMED) };
        worst.truncate(worst.len() - more);
        let mut seeds: Vec<String> = worst
            .iter()
            .map(|(faults, family, seed)| format!("{family} {seed} ({faults})"))
            .collect();
        if more > 0 {
            seeds.push(format!("and {more} more"));
        }
        seeds.join(", ")
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<28} {:>8} {:>10} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9}  worst (faults)",
            "class", "items", "observable", "said", "precision", "recall", "high", "medium", "low"
        )?;
        for (class, score) in self.scores.iter() {
            writeln!(f, "{class:<28} {score}  {}", self.seeds(class, false))?;
        }
        Ok(())
    }
}

impl Table {
    /// True if no healthy case had a warning.
    pub fn all_healthy_are_calm(&self) -> bool {
        let healthy = self.all.scores.get("healthy");
        healthy.found == healthy.observable
    }

    /// Adds a case.
    pub fn add(&mut self, outcome: &Outcome) {
        self.all.add(outcome);
        self.families.entry(outcome.family).or_default().add(outcome);
    }

    /// The scores of all cases.
    pub fn scores(&self) -> &Scores {
        &self.all.scores
    }

    /// The score of a class over the families that a rule selects.
    pub fn score_of(&self, class: &str, selects: impl Fn(&str) -> bool) -> Score {
        let mut score = Score::default();
        for (_, part) in self.families.iter().filter(|(family, _)| selects(family)) {
            score.add(&part.scores.get(class));
        }
        score
    }

    /// Cases that could not be simulated or analysed.
    pub fn failed(&self) -> &[String] {
        &self.all.failed
    }
}

impl Table {
    /// Findings by confidence, all together and each id.
    fn calibration(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by_id = &self.all.scores.calibration;
        let mut all = Score::default();
        for score in by_id.values() {
            all.add(score);
        }
        writeln!(
            f,
            "\n{:<24} {:>22} {:>22} {:>22}",
            "findings: true of said", "high", "medium", "low"
        )?;
        let each = by_id.iter().map(|(id, score)| (*id, score));
        for (name, score) in std::iter::once(("all", &all)).chain(each) {
            write!(f, "{name:<24}")?;
            for said in StatedConfidence::ALL {
                let claims = score.claims_with(said);
                let text = if claims.made == 0 {
                    "-".to_owned()
                } else {
                    format!("{} of {} ({:.4})", claims.right, claims.made, claims.precision())
                };
                write!(f, " {text:>22}")?;
            }
            writeln!(f)?;
        }
        for (id, count) in &self.all.scores.not_judged {
            writeln!(f, "not judged: {id} {count}")?;
        }
        Ok(())
    }
}

impl Table {
    /// Time of flows in milliseconds, by the true state and the said one.
    fn confusion(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let confusion = &self.all.scores.confusion;
        if confusion.is_empty() {
            return Ok(());
        }
        write!(f, "\n{:<12}", "ms, true/said")?;
        for said in TimeState::ALL {
            write!(f, " {:>10}", said.name())?;
        }
        writeln!(f)?;
        for state in TimeState::ALL {
            write!(f, "{:<12}", state.name())?;
            for said in TimeState::ALL {
                let ns = confusion.get(&(state, said)).copied().unwrap_or(0);
                write!(f, " {:>6}.{:03}", ns / 1_000_000, ns / 1_000 % 1_000)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} captured scenarios", self.all.cases)?;
        self.all.write(f)?;
        if self.by_family {
            for family in families::all() {
                if let Some(part) = self.families.get(family.name) {
                    writeln!(
                        f,
                        "\n{}: {} ({} scenarios)",
                        family.name, family.about, part.cases
                    )?;
                    part.write(f)?;
                }
            }
        }
        self.confusion(f)?;
        self.calibration(f)?;
        let healthy = self.all.seeds("healthy", true);
        if !healthy.is_empty() {
            writeln!(f, "\nhealthy captures with a false warning: {healthy}")?;
        }
        for failed in &self.all.failed {
            writeln!(f, "FAILED: {failed}")?;
        }
        writeln!(f, "\nto be reached")?;
        for line in Reach::lines(&self.all.scores) {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}
