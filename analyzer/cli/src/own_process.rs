//! Processes of this program itself.

use std::process::Command;

/// A process of the program that runs, also where its file was moved or replaced since it began.
pub(crate) fn own_process() -> Command {
    Command::new("/proc/self/exe")
}
