//! `objects`, a hidden command: the process that reads and writes objects of stores for a run.

use std::process::ExitCode;

use crate::command::invocation::{Invocation, RunCommand};
use crate::objects::{ServeArguments, serve};

impl RunCommand for ServeArguments {
    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        serve(self)
    }
}
