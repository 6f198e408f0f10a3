//! `completions`: scripts by which shells ask this program how a line can go on, and its answers to them.
//!
//! The answers come from the command line as it is, so a script that was installed once knows all later commands and names.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use clap_complete::env::{CompleteEnv, Shells};

use crate::command::invocation::{Invocation, RunCommand};

/// The variable by which a script says that it asks, and for which shell.
const ASKS: &str = "ROCE_ANALYZE_COMPLETE";

/// Print a completion script for a shell
#[derive(Args, Debug)]
#[command(after_help = "\
Where to put the script, which asks `roce-analyze` on the path:
  bash  roce-analyze completions bash > ~/.local/share/bash-completion/completions/roce-analyze
  zsh   roce-analyze completions zsh > ~/.zfunc/_roce-analyze
        with fpath+=~/.zfunc before compinit in ~/.zshrc
  fish  roce-analyze completions fish > ~/.config/fish/completions/roce-analyze.fish")]
pub(crate) struct Completions {
    /// The shell
    shell: clap_complete::Shell,
}

impl RunCommand for Completions {
    fn run(&self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        let line = (invocation.command_line)();
        let program = line.get_name();
        let shells = Shells::builtins();
        let shell = shells
            .completer(&self.shell.to_string())
            .context("this shell has no completions")?;
        let mut script = Vec::new();
        shell.write_registration(ASKS, program, program, program, &mut script)?;
        std::io::stdout().write_all(&script)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Answers a shell that asks how a line can go on; `None` in every other run.
pub(crate) fn answer(command_line: fn() -> clap::Command) -> Option<ExitCode> {
    let current = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(command_line).var(ASKS);
    match asked.try_complete(std::env::args_os(), current.as_deref()) {
        Ok(false) => None,
        // A shell shows no message while it completes.
        Ok(true) | Err(_) => Some(ExitCode::SUCCESS),
    }
}
