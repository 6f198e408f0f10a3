//! A command as the program sees it: its rights, what it has in stores, and its run.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The reach of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rights {
    /// Files alone: it reads what others made, and needs no device, no other program and no network.
    Files,
    /// All that its user may reach.
    User,
}

/// How the program was started.
pub(crate) struct Invocation {
    /// The whole command line: commands, options and their help.
    pub(crate) command_line: fn() -> clap::Command,
}

/// Paths of a command that may be URLs of object stores.
#[derive(Default)]
pub(crate) struct Places<'a> {
    /// Captures, which are read.
    pub(crate) captures: Vec<&'a mut PathBuf>,
    /// The folder of results, which is written.
    pub(crate) results: Option<ResultPlace<'a>>,
}

/// The folder of results.
#[cfg_attr(
    not(feature = "object-store"),
    expect(dead_code, reason = "a build without object stores looks at the path alone")
)]
pub(crate) struct ResultPlace<'a> {
    pub(crate) path: &'a mut PathBuf,
    /// Results that are there already are replaced.
    pub(crate) overwrite: bool,
    /// Nothing is said about what was written.
    pub(crate) quiet: bool,
}

/// True for a URL such as `s3://BUCKET/DATASET`, and false for one of a file of this machine.
pub(crate) fn is_elsewhere(path: &Path) -> bool {
    path.to_str()
        .is_some_and(|text| text.contains("://") && !text.starts_with("file://"))
}

/// A command: its options, and what the program does with them.
pub(crate) trait RunCommand {
    /// The rights of a run.
    const RIGHTS: Rights = Rights::User;

    /// The rights of a run with these options.
    fn rights(&self) -> Rights {
        Self::RIGHTS
    }

    /// Paths that may be URLs of object stores. They become what the run can use.
    fn places(&mut self) -> Places<'_> {
        Places::default()
    }

    /// Runs the command.
    ///
    /// # Errors
    /// Those that end the program with exit code 2.
    fn run(&self, invocation: &Invocation) -> anyhow::Result<ExitCode>;
}
