//! A folder with a device's answers, which the transport `files` reads: for bug reports, and for tests.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use roce_files::{Access, Directory, Error, FilePlace};
use roce_switches::device::{Answers, Question, file_name};

use super::secrets::without_secrets;

/// Writes the answers of devices, without secrets, for their owner alone.
#[derive(Clone, Debug)]
pub struct Recorder {
    folder: Directory,
    without_serials: bool,
    /// Names that are in use, with the commands that they stand for: the ends of long commands are not in them.
    names: BTreeMap<String, String>,
}

impl Recorder {
    /// Writes below the folder that a user named, which is made if it is missing.
    ///
    /// # Errors
    /// If the folder cannot be opened or made.
    pub fn below(folder: &Path, without_serials: bool) -> Result<Self, Error> {
        Ok(Self {
            folder: Directory::named(folder, Access::Private)?,
            without_serials,
            names: BTreeMap::new(),
        })
    }

    /// Writes the answers of this device, in a folder of its name.
    ///
    /// # Errors
    /// If the folder cannot be opened or made.
    pub fn of(&self, node: &str) -> Result<Self, Error> {
        Ok(Self {
            folder: self.folder.below(node, Access::Private)?,
            without_serials: self.without_serials,
            names: BTreeMap::new(),
        })
    }

    /// Writes the answer to a question, or those to all commands of a script.
    pub(crate) fn write(&mut self, question: &Question, text: &str) -> Result<(), Error> {
        let mut answers = Answers::default();
        answers.add(question, text);
        let mut all = answers.iter();
        all.try_for_each(|(command, text)| self.write_one(command, text))
    }

    /// Writes an answer in place of an earlier one to the same command.
    fn write_one(&mut self, command: &str, text: &str) -> Result<(), Error> {
        let name = self.name(command);
        let is_json = text.trim_start().starts_with(['{', '[']);
        let (ending, other) = if is_json { ("json", "txt") } else { ("txt", "json") };
        let kept = without_secrets(text, self.without_serials);
        let mut out =
            FilePlace::below(&self.folder, &format!("{name}.{ending}")).begin(true, Access::Private)?;
        let path = out.path().to_path_buf();
        out.write_all(kept.as_bytes()).map_err(|source| Error::Io {
            action: "written",
            path,
            source,
        })?;
        out.finish()?;
        self.folder.remove(&format!("{name}.{other}"))
    }

    /// The name of a command's file. Two long commands with one beginning get two names.
    fn name(&mut self, command: &str) -> String {
        let short = file_name(command);
        let mut name = short.clone();
        let mut number = 1;
        while self.names.get(&name).is_some_and(|other| other != command) {
            number += 1;
            name = format!("{short}-{number}");
        }
        self.names.insert(name.clone(), command.to_owned());
        name
    }
}
