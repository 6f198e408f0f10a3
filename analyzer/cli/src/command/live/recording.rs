//! The part of a recording about its run: the command line, to be read again.

use std::ffi::OsString;

use anyhow::anyhow;

use crate::options::config::with_configuration;
use crate::options::processes::with_numbers;

/// The command line, to be read again. `config` is the text of the configuration file.
pub(super) fn command_line(named: Vec<String>, config: Option<&str>) -> anyhow::Result<Vec<String>> {
    let arguments = std::env::args_os().skip(1).map(OsString::into_string);
    let mut arguments = arguments.collect::<Result<Vec<_>, _>>().map_err(|argument| {
        anyhow!(
            "{}: an argument that is no UTF-8 cannot be recorded",
            argument.to_string_lossy()
        )
    })?;
    let options = arguments.len().min(1);
    arguments.splice(options..options, named);
    let arguments = with_numbers(arguments);
    Ok(match config {
        Some(text) => with_configuration(arguments, text),
        None => arguments,
    })
}
