//! A step: commands, and why.

/// A few commands with their reasons.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Step {
    /// Why, what it changes, the effect on the link, and how it is undone: one sentence a line.
    pub comments: Vec<String>,
    /// The commands, or lines of a file.
    pub commands: Vec<String>,
}

impl Step {
    pub(super) fn new(comments: &[&str]) -> Self {
        Self {
            comments: comments.iter().map(ToString::to_string).collect(),
            commands: Vec::new(),
        }
    }

    /// Adds a line of comment.
    #[must_use]
    pub(super) fn comment(mut self, line: impl Into<String>) -> Self {
        self.comments.push(line.into());
        self
    }

    /// Adds a command.
    #[must_use]
    pub(super) fn run(mut self, command: impl Into<String>) -> Self {
        self.commands.push(command.into());
        self
    }

    /// Adds the lines of a text.
    #[must_use]
    pub(super) fn lines(mut self, text: &str) -> Self {
        self.commands.extend(text.lines().map(str::to_owned));
        self
    }
}
