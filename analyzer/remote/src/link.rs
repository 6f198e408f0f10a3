//! Connections to a machine, and the time that passes on them. Those of the system are ssh and its clocks. Another link has its own: a
//! simulation, in which hours pass in milliseconds.

use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::outcome::{CommandOutput, RemoteError};

/// The way to one machine.
pub trait Link: fmt::Debug + Send + Sync {
    /// This moment, by a clock that nobody sets.
    fn now(&self) -> Instant;

    /// Nanoseconds since 1970, by this machine's clock.
    fn now_ns(&self) -> i64;

    /// Lets time pass.
    fn sleep(&self, time: Duration);

    /// Starts a POSIX shell script whose standard input is open.
    ///
    /// # Errors
    /// If it cannot be started.
    fn start(&self, script: &str) -> Result<Box<dyn Script>, RemoteError>;

    /// Runs a script to its end, as [`Machine::run_while`](crate::Machine::run_while) does.
    ///
    /// # Errors
    /// If it cannot be run, or takes too long.
    fn run(
        &self,
        script: &str,
        patience: Duration,
        max_bytes: u64,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<CommandOutput, RemoteError>;
}

/// The next line of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SessionLine {
    /// A line without its end. Bytes that are no UTF-8 are replaced.
    Text(String),
    /// None came in time.
    Silence,
    /// The script has closed its output.
    Closed,
}

/// The next bytes of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScriptBlock {
    /// Bytes.
    Bytes(Vec<u8>),
    /// None came in time.
    Silence,
    /// The script has closed its output.
    Closed,
}

/// A script that runs. Dropped, it is ended.
pub trait Script: fmt::Debug + Send {
    /// The next bytes of its output.
    fn block(&mut self, patience: Duration) -> ScriptBlock;

    /// The next line of its output. A script is read by lines or by blocks.
    fn line(&mut self, patience: Duration) -> SessionLine;

    /// Writes a line to its standard input. False: it does not read any more.
    fn say(&mut self, line: &str) -> bool;

    /// Closes its standard input.
    fn close_input(&mut self);

    /// Waits for its end. One that does not end in time is ended.
    ///
    /// # Errors
    /// If it failed, the connection was lost, or it does not end.
    fn finish(&mut self, patience: Duration) -> Result<(), RemoteError>;
}

/// The time here, in nanoseconds since 1970.
pub fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
