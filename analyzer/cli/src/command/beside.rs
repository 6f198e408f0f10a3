//! A program that ends with this one: the system kills it when this process has gone, however that ended.
//!
//! The system keeps such a wish over `exec`, and forgets it for children (prctl(2), `PR_SET_PDEATHSIG`). So this program starts itself, says
//! the wish, and becomes the other program.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};
use clap::Args;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::command::invocation::{Invocation, RunCommand};
use crate::own_process::own_process;

/// Become a program that ends with its parent
#[derive(Args, Debug)]
#[command(hide = true)]
pub(crate) struct Beside {
    /// The process that starts it
    #[arg(long, value_name = "PID")]
    parent: i32,

    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// A command of `program` that ends with this process. The thread that starts it has to live on: the system looks at that one.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = own_process();
    command.args(["beside", "--parent", &std::process::id().to_string(), "--"]);
    command.arg(program);
    command
}

impl RunCommand for Beside {
    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        beside(self)
    }
}

/// Becomes the program.
///
/// # Errors
/// When it cannot be started, or the parent has gone already.
fn beside(arguments: &Beside) -> anyhow::Result<ExitCode> {
    let (program, words) = arguments.command.split_first().context("no program")?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have gone before that.
    if getppid().map(Pid::as_raw_pid) != Some(arguments.parent) {
        bail!("the process that wanted it has gone");
    }
    let error = Command::new(program).args(words).exec();
    Err(error).with_context(|| format!("{}: cannot be started", program.display()))
}
