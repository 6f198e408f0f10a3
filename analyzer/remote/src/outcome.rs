//! The outcome of a command on a machine.

use std::time::Duration;

/// Why a command gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The program on this machine could not be started.
    #[error("{program} cannot be started: {source}\nhint: ssh is in the package openssh-client")]
    Start {
        /// The program: `ssh` or `sh`.
        program: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The system has no thread for its output.
    #[error("no thread for the output of a command: {0}")]
    Thread(std::io::Error),
    /// ssh could not connect.
    #[error("ssh cannot connect: {0}")]
    Unreachable(String),
    /// The command took too long, and was ended.
    #[error("no answer within {} s", .0.as_secs_f64())]
    NoAnswer(Duration),
    /// More bytes came than may come: the limit.
    #[error("it sends more than the {0} bytes that it may send")]
    TooMuch(u64),
    /// Too few bytes came in a period: its length.
    #[error("it sends too slowly: next to nothing in {} s", .0.as_secs_f64())]
    TooSlow(Duration),
    /// The machine has no such command.
    #[error("the command is not installed there: {0}")]
    NotFound(String),
    /// The command failed.
    #[error("the command failed there with exit code {code}: {text}")]
    Failed {
        /// Its exit code; 128 and the signal's number, if a signal ended it.
        code: i32,
        /// The last line of its standard error.
        text: String,
    },
    /// The caller did not go on.
    #[error("interrupted")]
    Interrupted,
    /// Bytes of a file cannot be read or written here.
    #[error("a file cannot be read or written here: {0}")]
    Sink(std::io::Error),
    /// A text cannot be an argument of a command.
    #[error("'{0}' cannot be an argument: it has a NUL character")]
    Argument(String),
}

/// Output of a command that ended by itself.
#[derive(Debug)]
pub struct CommandOutput {
    /// Standard output.
    pub output: Vec<u8>,
    /// Why it failed; `None`: it succeeded.
    pub failure: Option<RemoteError>,
}
