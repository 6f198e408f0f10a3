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

/// Bash parts words at `=`, so that the value of `--format=json` would be asked for as a word of its own. Its own way to change that is this
/// variable, for all commands: with others the words before a `=` are completed as before.
const WORDS_OF_BASH: &str = "COMP_WORDBREAKS=${COMP_WORDBREAKS//=/}\n";

/// Print a completion script for a shell
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  roce-analyze completions bash > ~/.local/share/bash-completion/completions/roce-analyze
  roce-analyze completions zsh > ~/.zfunc/_roce-analyze
      with fpath+=~/.zfunc before compinit in ~/.zshrc
  roce-analyze completions fish > ~/.config/fish/completions/roce-analyze.fish

The script asks the `roce-analyze` that is on the path.")]
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
        if self.shell == clap_complete::Shell::Bash {
            script.extend_from_slice(WORDS_OF_BASH.as_bytes());
        }
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
