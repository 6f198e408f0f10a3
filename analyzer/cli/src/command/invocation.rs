//! A command as the program sees it: its rights, what it has in stores, and its run.

use std::process::ExitCode;

use crate::objects::ObjectRun;

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
    /// Captures and results of the run that are in stores.
    pub(crate) objects: ObjectRun,
}

/// A command: its options, and what the program does with them.
pub(crate) trait RunCommand {
    /// The rights of a run.
    const RIGHTS: Rights = Rights::User;

    /// The rights of a run with these options.
    fn rights(&self) -> Rights {
        Self::RIGHTS
    }

    /// Prepares captures and results that are objects of stores: their paths become what the run can use.
    ///
    /// # Errors
    /// A URL is wrong, or there are results already.
    fn objects(&mut self) -> anyhow::Result<ObjectRun> {
        Ok(ObjectRun::default())
    }

    /// Runs the command.
    ///
    /// # Errors
    /// Those that end the program with exit code 2.
    fn run(&self, invocation: &Invocation) -> anyhow::Result<ExitCode>;
}
