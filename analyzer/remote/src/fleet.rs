//! Captures on many hosts at once: what a host is asked before, the scripts that capture there, and the way of the files to here.
//!
//! Each host gets POSIX shell scripts; nothing is installed. Answers are lines `key=value` ([`fields`]), which are not trusted. A capture
//! follows its standard input: it ends when that is closed or silent, so no capture outlives its controller or a broken link. Which hosts
//! take part, when they start and what a person sees is left to the command.

pub mod fields;
pub mod manifest;
pub mod preflight;
pub mod report;
pub mod script;
mod shell;
pub mod transfer;
