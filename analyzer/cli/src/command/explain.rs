//! `explain`: what a finding, a check, a table or a word means, and what packets show about an error of a job's log.

mod completion;
mod rules;

use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use clap::{Arg, Args};

use crate::command::invocation::{Invocation, Places, Rights, RunCommand};
use crate::options::arguments::Analyse;
use crate::options::named::NamedValues;

/// Options of the analysis that the help of this command shows.
const SHOWN: [&str; 8] = [
    "name", "captures", "nccl_log", "format", "config", "from", "to", "help",
];

/// Explain a finding, a check, a table or a word; or an error in NCCL's log
///
/// Prints the meaning, rule, thresholds and source of what has this NAME: `list` names all, `checks` those of `doctor`. Of a LINE of NCCL's log
/// that has "Got completion", in quotes, it says what the packets of CAPTURE show about the end of that queue pair.
#[derive(Args, Debug)]
#[command(
    mut_args(of_explanations),
    after_help = "\
Examples:
  roce-analyze explain loss.network   a finding's meaning and rule
  roce-analyze explain flows          the columns of a table
  roce-analyze explain \"$(grep -m1 'Got completion' nccl.log)\" host3.pcap
      what the packets show about an error

Options that shape an analysis are those of `roce-analyze CAPTURE`."
)]
pub(crate) struct Explain {
    /// Name or line that is explained [default: list]
    #[arg(value_name = "NAME|LINE", hide_possible_values = true, value_parser = NamedValues::new(|text| Ok(text.to_owned()), rules::names))]
    name: Option<String>,

    #[command(flatten)]
    analyse: Analyse,
}

/// Captures are needed for lines alone, and most options of an analysis are for few.
fn of_explanations(argument: Arg) -> Arg {
    let is_shown = SHOWN.contains(&argument.get_id().as_str());
    let argument = argument.hide(!is_shown).help_heading(None::<&str>);
    if argument.get_id() == "captures" {
        argument.required(false)
    } else {
        argument
    }
}

impl RunCommand for Explain {
    const RIGHTS: Rights = Rights::Files;

    fn places(&mut self) -> Places<'_> {
        Places {
            captures: self.analyse.run.captures.iter_mut().collect(),
            results: None,
        }
    }

    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        let name = self.name.as_deref().unwrap_or("list");
        if self.analyse.output.is_some() {
            bail!("explain writes no results\nhint: roce-analyze CAPTURE -o DIR");
        }
        if !self.analyse.run.captures.is_empty() {
            return completion::explain(&self.analyse, name);
        }
        if completion::is_line(name) {
            bail!("a line of NCCL's log is explained by packets\nhint: roce-analyze explain LINE CAPTURE");
        }
        if Path::new(name).is_file() {
            bail!("explain takes the NAME of a finding, or a LINE of NCCL's log, before a capture");
        }
        rules::print(name, &self.analyse)
    }
}
