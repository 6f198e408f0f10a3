//! `doctor --explain ID`: what a check means, or the list of all.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::anyhow;
use roce_hosts::doctor;

use crate::command::explain;
use crate::options::nearest::nearest;
use crate::output::style::width;

/// Prints the text about a check, or the list of all.
pub(super) fn print(id: &str) -> anyhow::Result<ExitCode> {
    let text = if id == "list" {
        let mut list = String::new();
        for group in doctor::groups() {
            for check in doctor::checks().filter(|check| check.run.group == group) {
                let _ = writeln!(list, "{:27}{} ({group})", check.id, check.title);
            }
        }
        list
    } else {
        let check = doctor::checks().find(|check| check.id == id);
        check.map(|check| explain::rule(check, width())).ok_or_else(|| {
            let hint = nearest(id, doctor::checks().map(|check| check.id))
                .map_or_else(String::new, |name| format!("\nhint: did you mean '{name}'?"));
            anyhow!("there is no check '{id}'{hint}\nhint: roce-analyze doctor --explain list")
        })?
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
