//! `man`: manual pages of the command line.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use roce_files::{Access, Directory, FilePlace};

use crate::command::invocation::{Invocation, RunCommand};

/// Print a manual page, or write all of them to a folder
#[derive(Args, Debug)]
#[command(after_help = "\
Where to put the pages:
  roce-analyze man -o ~/.local/share/man/man1
  man roce-analyze-live")]
pub(crate) struct Man {
    /// The command whose page is printed [default: the page of roce-analyze itself]
    #[arg(conflicts_with = "output")]
    command: Option<String>,

    /// Write the pages of all commands to DIR
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl RunCommand for Man {
    fn run(&self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        man(
            (invocation.command_line)(),
            self.command.as_deref(),
            self.output.as_deref(),
        )
    }
}

/// A command and all commands below it, without hidden ones.
fn with_subcommands(command: &clap::Command) -> Vec<&clap::Command> {
    let mut all = vec![command];
    let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
    all.extend(visible.flat_map(with_subcommands));
    all
}

/// Prints the manual page of one command, or writes those of all to a folder.
fn man(line: clap::Command, name: Option<&str>, folder: Option<&Path>) -> anyhow::Result<ExitCode> {
    let program = line.get_name().to_owned();
    let mut command = line.disable_help_subcommand(true);
    command.build();
    if let Some(folder) = folder {
        let folder = Directory::named(folder, Access::Umask)?;
        for command in with_subcommands(&command) {
            let page = clap_mangen::Man::new(command.clone());
            let mut out = FilePlace::below(&folder, &page.get_filename()).begin(Access::Umask)?;
            page.render(&mut out)?;
            out.finish()?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(name) = name {
        let short = name
            .strip_prefix(&format!("{program}-"))
            .unwrap_or(name)
            .replace(' ', "-");
        let pages = with_subcommands(&command);
        let found = pages
            .iter()
            .find(|page| page.get_display_name() == Some(&format!("{program}-{short}")));
        let Some(found) = found else {
            let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            bail!(
                "there is no command '{name}'\nhint: the commands are {}",
                names.join(", ")
            )
        };
        command = (*found).clone();
    }
    let mut out = Vec::new();
    clap_mangen::Man::new(command).render(&mut out)?;
    std::io::stdout().write_all(&out)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::command_line;

    #[test]
    fn every_command_has_a_manual_page_with_its_options() {
        let folder = std::env::temp_dir().join(format!("roce-analyze-man-{}", std::process::id()));
        man(command_line(), None, Some(&folder)).unwrap();
        let mut command = command_line().disable_help_subcommand(true);
        command.build();
        let pages = with_subcommands(&command);
        for sub in pages.into_iter().skip(1) {
            let name = sub.get_display_name().unwrap();
            let page = fs::read_to_string(folder.join(format!("{name}.1"))).unwrap();
            for option in sub.get_arguments().filter(|option| !option.is_hide_set()) {
                let Some(long) = option.get_long() else { continue };
                let long = long.replace('-', "\\-");
                assert!(page.contains(&long), "{}: {long}", sub.get_name());
            }
        }
        fs::remove_dir_all(&folder).unwrap();
        assert!(man(command_line(), Some("nothing"), None).is_err());
    }
}
