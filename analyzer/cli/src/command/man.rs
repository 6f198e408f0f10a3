//! `man`: manual pages of the command line.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use roce_files::{Access, Directory, FilePlace};
use roff::{Roff, roman};

use crate::command::invocation::{Invocation, RunCommand};

/// Print a manual page, or write all of them to a folder
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  roce-analyze man 'fleet capture'             one page
  roce-analyze man -o ~/.local/share/man/man1  all pages, for `man roce-analyze-live`")]
pub(crate) struct Man {
    /// The command whose page is printed, such as live, 'fleet capture' [default: the page of roce-analyze itself]
    #[arg(conflicts_with = "output")]
    command: Option<String>,

    /// Write the pages of all commands to DIR
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Replace existing pages
    #[arg(long, requires = "output")]
    overwrite: bool,
}

impl RunCommand for Man {
    fn run(&self, invocation: &Invocation) -> anyhow::Result<ExitCode> {
        man(
            (invocation.command_line)(),
            self.command.as_deref(),
            self.output.as_deref(),
            self.overwrite,
        )
    }
}

/// A command with those that it is below, the nearest last.
struct Page<'a> {
    command: &'a clap::Command,
    above: Vec<&'a clap::Command>,
}

impl<'a> Page<'a> {
    /// The pages of a command and of all commands below it, without hidden ones.
    fn all(command: &'a clap::Command, above: &[&'a clap::Command]) -> Vec<Self> {
        let mut pages = vec![Self {
            command,
            above: above.to_vec(),
        }];
        let below: Vec<&clap::Command> = above.iter().copied().chain([command]).collect();
        for command in visible(command) {
            pages.extend(Self::all(command, &below));
        }
        pages
    }

    fn name(&self) -> &str {
        shown_name(self.command)
    }

    /// Writes the page: sections of clap_mangen, and those that a manual page has by convention (man-pages(7)).
    fn render(&self, out: &mut impl Write) -> io::Result<()> {
        let page = clap_mangen::Man::new(self.command.clone());
        page.render_title(out)?;
        page.render_name_section(out)?;
        let usage = self.command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ");
        let usage: Vec<&str> = usage.lines().map(str::trim).collect();
        Section::new("SYNOPSIS").verbatim(&usage).write(out)?;
        page.render_description_section(out)?;
        if self
            .command
            .get_arguments()
            .any(|argument| !argument.is_hide_set())
        {
            page.render_options_section(out)?;
        }
        if visible(self.command).next().is_some() {
            page.render_subcommands_section(out)?;
        }
        let said = HelpParagraphs::of(self.command);
        let mut notes = Section::new("NOTES");
        let mut examples = Section::new("EXAMPLES");
        for paragraph in &said.paragraphs {
            let lines: Vec<&str> = paragraph.lines().collect();
            match lines.as_slice() {
                ["Examples:", lines @ ..] => examples = examples.verbatim(lines),
                [title, lines @ ..] if title.ends_with(':') => notes = notes.text(title).verbatim(lines),
                _ => notes = notes.text(paragraph),
            }
        }
        if examples.is_empty
            && let Some(above) = self.above.last()
        {
            let lines = HelpParagraphs::of(above).examples_of(self.name());
            if !lines.is_empty() {
                examples = examples.verbatim(&lines);
            }
        }
        examples.write(out)?;
        notes.write(out)?;
        Section::new("EXIT STATUS").text(&self.exit_status()).write(out)?;
        let root = self.above.first().copied().unwrap_or(self.command);
        if let Some(variables) = HelpParagraphs::of(root).environment {
            Section::new("ENVIRONMENT").text(&variables).write(out)?;
        }
        let others = self.above.iter().copied().chain(visible(self.command));
        let others: Vec<String> = others
            .map(|other| format!("{}(1)", shown_name(other)))
            .chain(["tcpdump(1)".to_owned(), "wireshark(1)".to_owned()])
            .collect();
        Section::new("SEE ALSO").text(&others.join(", ")).write(out)
    }

    /// The exit codes: those that the help of the command, or of the one above it, names.
    fn exit_status(&self) -> String {
        let above = self.above.get(1..).unwrap_or_default();
        let mut commands = [self.command].into_iter().chain(above.iter().rev().copied());
        if let Some(stated) = commands.find_map(|command| HelpParagraphs::of(command).exit_codes) {
            return stated;
        }
        let has = |id: &str| {
            self.command
                .get_arguments()
                .any(|argument| argument.get_id() == id)
        };
        let by_findings = if has("fail_on") {
            ", 1 what --fail-on names"
        } else {
            ""
        };
        let by_program = if self.command.get_arguments().any(clap::Arg::is_last_set) {
            " With a COMMAND that ran, its exit code."
        } else {
            ""
        };
        format!("0 done{by_findings}, 2 an error.{by_program}")
    }
}

/// The text below a command's options in its help, by kind.
#[derive(Default)]
struct HelpParagraphs {
    exit_codes: Option<String>,
    environment: Option<String>,
    paragraphs: Vec<String>,
}

impl HelpParagraphs {
    fn of(command: &clap::Command) -> Self {
        let text = command.get_after_long_help().or(command.get_after_help());
        let text = text.map(ToString::to_string).unwrap_or_default();
        let mut said = Self::default();
        for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
            if let Some(codes) = paragraph.strip_prefix("Exit codes: ") {
                said.exit_codes = Some(codes.to_owned());
            } else if let Some(variables) = paragraph.strip_prefix("Environment: ") {
                said.environment = Some(variables.to_owned());
            } else {
                said.paragraphs.push(paragraph.trim_end().to_owned());
            }
        }
        said
    }

    /// Lines of its examples that are of one command below it, whose page has this name: each begins with its words, and may go on in lines
    /// that are indented further.
    fn examples_of(&self, name: &str) -> Vec<String> {
        // `roce-analyze-fleet-capture`: the program's own name has the first dash.
        let (program, words) = name.split_at(env!("CARGO_PKG_NAME").len().min(name.len()));
        let begin = format!("  {program}{}", words.replace('-', " "));
        let paragraphs = self.paragraphs.iter();
        let lines = paragraphs
            .filter_map(|text| text.strip_prefix("Examples:"))
            .flat_map(str::lines);
        let mut is_of_it = false;
        let mut of_it = |line: &&str| {
            let is_more = line.starts_with("    ");
            if !is_more {
                is_of_it = line
                    .strip_prefix(begin.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
            }
            is_of_it
        };
        lines.filter(|line| of_it(line)).map(str::to_owned).collect()
    }
}

/// A section of a page; one without text is left out.
struct Section {
    roff: Roff,
    is_empty: bool,
}

impl Section {
    fn new(title: &str) -> Self {
        let mut roff = Roff::new();
        roff.control("SH", [title]);
        Self { roff, is_empty: true }
    }

    /// Adds a paragraph.
    fn text(mut self, text: &str) -> Self {
        self.roff.control("PP", []).text([roman(text)]);
        self.is_empty = false;
        self
    }

    /// Adds lines that stay as they are.
    fn verbatim<L: AsRef<str>>(mut self, lines: &[L]) -> Self {
        self.roff.control("nf", []);
        for line in lines {
            self.roff.text([roman(line.as_ref())]);
        }
        self.roff.control("fi", []);
        self.is_empty = false;
        self
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        if self.is_empty {
            return Ok(());
        }
        self.roff.to_writer(out)
    }
}

/// The name of a command's page: with those of the commands above it.
fn shown_name(command: &clap::Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn visible(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set())
}

/// Prints the manual page of one command, or writes those of all to a folder.
fn man(
    line: clap::Command,
    name: Option<&str>,
    folder: Option<&Path>,
    overwrite: bool,
) -> anyhow::Result<ExitCode> {
    let program = line.get_name().to_owned();
    let mut command = line.disable_help_subcommand(true);
    command.build();
    let pages = Page::all(&command, &[]);
    if let Some(folder) = folder {
        let folder = Directory::named(folder, Access::Umask)?;
        let place = |page: &Page<'_>| FilePlace::below(&folder, &format!("{}.1", page.name()));
        for page in &pages {
            place(page).refuse_taken(overwrite)?;
        }
        for page in &pages {
            let mut out = place(page).begin(overwrite, Access::Umask)?;
            page.render(&mut out)?;
            out.finish()?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let wanted = match name {
        None => program.clone(),
        Some(name) => {
            let short = name.strip_prefix(&format!("{program}-")).unwrap_or(name);
            format!("{program}-{}", short.replace(' ', "-"))
        }
    };
    let Some(page) = pages.iter().find(|page| page.name() == wanted) else {
        let names: Vec<&str> = visible(&command).map(clap::Command::get_name).collect();
        bail!(
            "there is no command '{}'\nhint: the commands are {}",
            name.unwrap_or_default(),
            names.join(", ")
        )
    };
    let mut out = Vec::new();
    page.render(&mut out)?;
    io::stdout().write_all(&out)?;
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
        for Page { command: sub, .. } in Page::all(&command, &[]) {
            let name = shown_name(sub);
            let page = fs::read_to_string(folder.join(format!("{name}.1"))).unwrap();
            for section in [
                "NAME",
                "SYNOPSIS",
                "EXAMPLES",
                "\"EXIT STATUS\"",
                "ENVIRONMENT",
                "\"SEE ALSO\"",
            ] {
                assert!(page.contains(&format!(".SH {section}\n")), "{name}: {section}");
            }
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
