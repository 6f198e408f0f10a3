//! Parsers of the command for the fuzz targets in `tests/crates/fuzz`. In no other build, because cargo-fuzz alone sets `cfg(fuzzing)`.

use std::io::BufReader;
use std::path::Path;

use crate::options::config::Config;
use crate::options::settings::{threshold_names, with_thresholds};
use crate::options::training::{self, Pattern};

/// Parses the text of a configuration file with its thresholds. The result is its error, if it has one.
pub fn configuration(text: &str) -> Option<String> {
    let config = Config::parse(Path::new("input.toml"), text, &threshold_names());
    let taken = config.and_then(with_thresholds);
    taken.err().map(|error| format!("{error:#}"))
}

/// Reads a training log, with the built-in pattern where there is none. The result is the number of its steps.
///
/// # Errors
/// In words, of the pattern or of the log.
pub fn training_log(pattern: Option<&str>, log: &[u8]) -> Result<usize, String> {
    let pattern = pattern.map_or_else(Pattern::built_in, Pattern::parse)?;
    let steps = training::steps(Path::new("input.log"), BufReader::new(log), &pattern);
    steps
        .map(|steps| steps.len())
        .map_err(|error| format!("{error:#}"))
}

/// Reads a line that a client of `mcp` sends. The result is true if it is a request that this program serves.
pub fn client_message(line: &[u8]) -> bool {
    crate::command::mcp::is_served(line)
}
