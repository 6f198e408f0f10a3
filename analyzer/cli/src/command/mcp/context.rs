//! One question: what it may use, and results of earlier ones that it need not make again.

use std::collections::VecDeque;
use std::sync::Arc;

use anyhow::bail;
use roce_model::text::shell_word;

use super::inputs::{Input, ServedFolder};
use super::queries::Queries;
use super::runner::{self, Bounds, MAX_OUTPUT, Output};

/// Outputs that are kept.
const MAX_KEPT: usize = 8;
/// Bytes of outputs that are kept.
const MAX_KEPT_BYTES: usize = 4 * MAX_OUTPUT;

/// A command, and the content of the files that it read.
type OutputKey = (Vec<String>, Vec<(u64, u64, i64, i64)>);

/// Outputs of the last commands. A file that changes has another key.
#[derive(Default, Debug)]
pub(super) struct KeptOutputs {
    /// The newest last.
    outputs: VecDeque<(OutputKey, Arc<Output>)>,
}

impl KeptOutputs {
    fn find(&mut self, key: &OutputKey) -> Option<Arc<Output>> {
        let at = self.outputs.iter().position(|(kept, _)| kept == key)?;
        let found = self.outputs.remove(at)?;
        let output = Arc::clone(&found.1);
        self.outputs.push_back(found);
        Some(output)
    }

    fn keep(&mut self, key: OutputKey, output: &Arc<Output>) {
        self.outputs.push_back((key, Arc::clone(output)));
        let bytes = |outputs: &VecDeque<(OutputKey, Arc<Output>)>| -> usize {
            outputs.iter().map(|(_, output)| output.text.len()).sum()
        };
        while self.outputs.len() > MAX_KEPT || bytes(&self.outputs) > MAX_KEPT_BYTES {
            self.outputs.pop_front();
        }
    }
}

/// A question while it is answered.
#[derive(Debug)]
pub(super) struct ToolContext<'a> {
    pub folder: &'a ServedFolder,
    pub bounds: Bounds<'a>,
    pub kept: &'a mut KeptOutputs,
    pub queries: &'a mut Option<Queries>,
}

impl ToolContext<'_> {
    /// Inputs by their paths.
    ///
    /// # Errors
    /// When one cannot be named, or is not there.
    pub(super) fn inputs(&self, names: &[&str]) -> anyhow::Result<Vec<Input>> {
        if names.is_empty() {
            bail!("no input is named");
        }
        names.iter().map(|name| self.folder.input(name)).collect()
    }

    /// The output of a command that reads these inputs, and nothing else that changes.
    ///
    /// # Errors
    /// As those of [`runner::run`].
    pub(super) fn run(&mut self, words: &[String], inputs: &[Input]) -> anyhow::Result<Arc<Output>> {
        let contents = inputs.iter().map(|input| input.content).collect();
        let key = (words.to_vec(), contents);
        // The content of a folder may change without it.
        let is_kept = !inputs.iter().any(|input| input.is_folder);
        if let Some(output) = is_kept.then(|| self.kept.find(&key)).flatten() {
            return Ok(output);
        }
        let output = Arc::new(runner::run(words, &self.bounds)?);
        if is_kept {
            self.kept.keep(key, &output);
        }
        Ok(output)
    }

    /// The command line that does what `words` do, from wherever the server was started.
    pub(super) fn command(&self, words: &[String]) -> String {
        let words = words.iter().map(|word| quoted(word));
        let words: Vec<String> = words.collect();
        format!("{} && roce-analyze {}", self.enter(), words.join(" "))
    }

    /// The command that enters the served folder.
    pub(super) fn enter(&self) -> String {
        format!("cd {}", shell_word(&self.folder.given.to_string_lossy()))
    }
}

/// A word as a POSIX shell reads it. Options are ours, and names have a folder in front.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:,@%=".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_words() {
        assert_eq!(quoted("--format"), "--format");
        assert_eq!(
            quoted("--flow=10.0.0.1 > 10.0.0.2"),
            "'--flow=10.0.0.1 > 10.0.0.2'"
        );
        assert_eq!(quoted("a'b;$(c)"), "'a'\\''b;$(c)'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn few_outputs_are_kept() {
        let mut kept = KeptOutputs::default();
        let output = |bytes: usize| {
            Arc::new(Output {
                text: vec![0; bytes],
                is_cut: false,
                code: 0,
                messages: String::new(),
            })
        };
        let key = |name: u64, size: u64| (vec![name.to_string()], vec![(1, size, 0, 0)]);
        for name in 0..20 {
            kept.keep(key(name, 1), &output(1));
        }
        assert_eq!(kept.outputs.len(), MAX_KEPT);
        assert!(kept.find(&key(19, 1)).is_some());
        assert!(kept.find(&key(19, 2)).is_none(), "the file has changed");
        assert!(kept.find(&key(0, 1)).is_none());
        for name in 20..25 {
            kept.keep(key(name, 1), &output(MAX_OUTPUT));
        }
        assert_eq!(kept.outputs.len(), 4);
    }
}
