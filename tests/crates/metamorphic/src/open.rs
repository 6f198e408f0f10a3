//! Violations that are known and not mended yet: a file with one line for each.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Known violations: the transformation and the input of each, and why it is.
#[derive(Clone, Debug, Default)]
pub struct OpenList(BTreeMap<(String, String), String>);

/// The head of the file.
const HEAD: &str = "\
# Known violations of tests/crates/metamorphic: transformation, input, and why. A line that no longer violates has to go, and a new
# violation fails the test. `cargo xtask metamorphic --fixed --write-open` writes the file; new lines get the reason '?'.
";

impl OpenList {
    /// Reads the text of the file.
    pub fn parse(text: &str) -> Self {
        let lines = text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty());
        let entries = lines.filter_map(|line| {
            let mut words = line.splitn(3, ' ');
            let key = (words.next()?.to_owned(), words.next()?.to_owned());
            Some((key, words.next().unwrap_or_default().to_owned()))
        });
        Self(entries.collect())
    }

    /// True if the violation of a transformation by an input is known.
    pub fn has(&self, transformation: &str, input: &str) -> bool {
        self.0
            .contains_key(&(transformation.to_owned(), input.to_owned()))
    }

    /// The entries: transformation and input.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .keys()
            .map(|(transformation, input)| (transformation.as_str(), input.as_str()))
    }

    /// Adds a violation, unless it is known.
    pub fn add(&mut self, transformation: &str, input: &str) {
        let key = (transformation.to_owned(), input.to_owned());
        self.0.entry(key).or_insert_with(|| "?".to_owned());
    }

    /// Keeps those that are still violations.
    pub fn retain(&mut self, mut is_violation: impl FnMut(&str, &str) -> bool) {
        self.0
            .retain(|(transformation, input), _| is_violation(transformation, input));
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for ((transformation, input), reason) in &self.0 {
            // Writing into a string does not fail.
            let _ = writeln!(text, "{transformation} {input} {reason}");
        }
        text
    }
}
