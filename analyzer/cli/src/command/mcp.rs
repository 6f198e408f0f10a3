//! `mcp`: the command line's answers for agents, by the Model Context Protocol over standard input and output.
//!
//! `mcp/message.rs` and `mcp/protocol.rs` know the protocol, `mcp/server.rs` the threads, `mcp/tools.rs` and the folder beside it what is
//! answered. Captures are read by other processes of this program (`mcp/runner.rs`), which run the same commands as people do.

mod answer;
mod arguments;
mod context;

mod inputs;
mod message;
mod protocol;
mod queries;
mod resources;
mod runner;
mod server;
mod tools;

use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use roce_model::Span;

use crate::command::invocation::{Invocation, RunCommand};
use crate::options::duration::parse_duration;
use crate::output::messages;
use crate::sandbox;
use inputs::ServedFolder;
use queries::Queries;
use server::Server;

/// Serve verdicts on the captures of a folder to agents, by MCP
///
/// Speaks the Model Context Protocol on standard input and output: revisions 2026-07-28, 2025-11-25 and 2025-06-18. Its tools answer as the
/// command line does (verdict, why, packets, flows, ranks, compare, query, explain), each with the frames that it rests on, what the packets do
/// not show, and the command that repeats it. It reads the files below DIR, writes nothing, and connects to nothing. It ends with its input.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  roce-analyze mcp captures
      to be started by a client: docs/mcp.md says how each is configured
  {\"mcpServers\": {\"roce\": {\"command\": \"roce-analyze\", \"args\": [\"mcp\", \"/srv/captures\"]}}}
      the configuration that most clients read")]
pub(crate) struct Mcp {
    /// The folder with captures, results and logs
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Longest time for one answer
    #[arg(long, value_name = "DURATION", default_value = "2min", value_parser = parse_duration)]
    time_limit: Span,

    /// Answer questions to datasets for the server that starts this
    #[arg(long, hide = true)]
    answer_queries: bool,
}

impl RunCommand for Mcp {
    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        let folder = ServedFolder::enter(&self.dir)?;
        if self.answer_queries {
            let answered = said(sandbox::confine_queries()).and_then(|()| queries::answer_all());
            // The server goes on without this process.
            return Ok(match answered {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    warn_of_queries(&error);
                    ExitCode::from(2)
                }
            });
        }
        // It may start other programs than this one, so it comes before that right goes.
        let queries = Queries::start();
        if let Err(error) = &queries {
            warn_of_queries(error);
        }
        said(sandbox::confine_to_folder(folder.real()))?;
        #[cfg(debug_assertions)]
        sandbox::attempt();
        let server = Server::new(folder, Duration::from_nanos(self.time_limit.0), std::io::stdout());
        server.serve(&mut BufReader::new(std::io::stdin()), queries.ok())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// True of a line with a request that is served, or could be. For the fuzz target.
#[cfg(fuzzing)]
pub(crate) fn is_served(line: &[u8]) -> bool {
    let mut input = line;
    let Ok(Some(Ok(line))) = message::next_line(&mut input) else {
        return false;
    };
    let message::ClientMessage::Request {
        method, parameters, ..
    } = message::ClientMessage::new(&line)
    else {
        return false;
    };
    protocol::Session::default().call(&method, &parameters).is_ok()
}

/// Warns where the kernel cannot confine this process.
fn warn_of_queries(error: &anyhow::Error) {
    messages::warn("query", &format!("datasets cannot be asked: {error:#}"));
}

fn said(confined: anyhow::Result<bool>) -> anyhow::Result<()> {
    if !confined? {
        messages::warn(
            "rights",
            "this kernel or this build has no Landlock: the server can open every file that its user may",
        );
    }
    Ok(())
}
