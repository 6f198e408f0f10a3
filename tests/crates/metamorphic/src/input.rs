//! Inputs of transformations: the captures of one run, and the options that belong to them.

use roce_truth::Family;

use crate::tape::Tape;

/// The captures of one run of the analysis.
#[derive(Clone, Debug)]
pub struct Input {
    /// A name that no other input has.
    pub name: String,
    /// The captures, in the order of the arguments.
    pub tapes: Vec<Tape>,
    /// Options of the analysis.
    pub arguments: Vec<String>,
}

impl Input {
    /// The earliest stamp and the latest of all tapes; `None` without records.
    pub fn span(&self) -> Option<(u64, u64)> {
        let spans = || self.tapes.iter().filter_map(Tape::span);
        Some((
            spans().map(|(first, _)| first).min()?,
            spans().map(|(_, last)| last).max()?,
        ))
    }

    /// A time of about `about` nanoseconds, at least, that keeps coarse stamps of all tapes coarse.
    pub fn step(&self, about: u64) -> u64 {
        let quantum = self.tapes.iter().map(Tape::quantum).max().unwrap_or(1);
        about.div_ceil(quantum) * quantum
    }

    /// The run with each tape changed.
    #[must_use]
    pub fn map(&self, change: impl FnMut(&Tape) -> Tape) -> Self {
        Self {
            name: self.name.clone(),
            tapes: self.tapes.iter().map(change).collect(),
            arguments: self.arguments.clone(),
        }
    }
}

/// Where an input comes from.
#[derive(Clone, Debug)]
pub enum InputSource {
    /// Captures of the project, by their paths from its top.
    Project(Vec<String>),
    /// A random scenario.
    Simulated(&'static Family, u64),
}

impl InputSource {
    /// The input's name.
    pub fn name(&self) -> String {
        match self {
            Self::Project(paths) => paths.join("+"),
            Self::Simulated(family, seed) => format!("{}-{seed}", family.name),
        }
    }
}
