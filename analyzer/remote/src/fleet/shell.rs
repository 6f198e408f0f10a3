//! Texts of a shell: functions that all scripts have, variables and words.

use std::fmt::Write as _;

use crate::machine::{RemoteError, quoted};

/// Functions that all scripts have.
pub(crate) const COMMON: &str = include_str!("common.sh");

/// Assignments of a shell.
pub(crate) fn head(variables: &[(&str, &str)]) -> Result<String, RemoteError> {
    let mut text = String::new();
    for (name, value) in variables {
        let value = quoted([*value])?;
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name}={value}");
    }
    Ok(text)
}

/// The words as arguments of the script.
pub(crate) fn set(words: &[String]) -> Result<String, RemoteError> {
    Ok(format!("set -- {}\n", quoted(words.iter().map(String::as_str))?))
}
