//! `explain`: what a finding, a check, a table, a column, a word or a status means, and what packets show about an error of a job's log.

mod completion;
mod meanings;
mod rules;

use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use clap::{Arg, Args};

use crate::command::invocation::{Invocation, Places, Rights, RunCommand};
use crate::options::arguments::Analyse;
use crate::options::named::NamedValues;

/// Words of the longest name: a text with more is a line.
const WORDS_OF_NAME: usize = 3;

/// Options of the analysis that the help of this command shows.
const SHOWN: [&str; 8] = [
    "name", "captures", "nccl_log", "format", "config", "from", "to", "help",
];

/// Explain a finding, check, table, column, word or status; or an error in a program's log
///
/// Prints the meaning, rule, thresholds and source of what has this NAME: `list` names all, `checks` those of `doctor`. Of a LINE that reports
/// a failed request (NCCL, UCX, libfabric, MPI, perftest, NVSHMEM, Mooncake, SPDK, the kernel, ...), in quotes, it says the status and its
/// meaning, and what the packets of CAPTURE show about the end of that queue pair.
#[derive(Args, Debug)]
#[command(
    mut_args(of_explanations),
    after_help = "\
Examples:
  roce-analyze explain loss.network   a finding's meaning and rule
  roce-analyze explain flows          the columns of a table
  roce-analyze explain ack_rtt_p99_ns a column; words of the output, such as PSN
  roce-analyze explain 12             a status of a completion
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
        if !self.analyse.run.captures.is_empty() || completion::is_line(name) {
            return completion::explain(&self.analyse, name);
        }
        if Path::new(name).is_file() {
            bail!("explain takes the NAME of a finding, or a LINE of a log, before a capture");
        }
        if name.split_whitespace().count() > WORDS_OF_NAME {
            return Err(completion::unknown(name));
        }
        rules::print(name, &self.analyse)
    }
}
