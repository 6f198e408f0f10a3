//! `completions`: scripts that let shells complete commands and options.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Args;

use crate::command::invocation::{Invocation, RunCommand};

/// Print a completion script for a shell
#[derive(Args, Debug)]
#[command(after_help = "\
Where to put the script:
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
        let mut line = (invocation.command_line)();
        let program = line.get_name().to_owned();
        let mut out = Vec::new();
        clap_complete::generate(self.shell, &mut line, &program, &mut out);
        if self.shell == clap_complete::Shell::Bash {
            // clap_complete writes the hyphen of a program's name in two ways (clap issues 6421 and 6529): no case fits a subcommand then.
            let name = program.replace('-', "__subcmd__");
            let script = String::from_utf8_lossy(&out).replace(&name, &program.replace('-', "__"));
            out = script.into_bytes();
        }
        std::io::stdout().write_all(&out)?;
        Ok(ExitCode::SUCCESS)
    }
}
