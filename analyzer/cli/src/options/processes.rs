//! `--pid`, `--comm`, `--cgroup`: which processes are followed.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use clap::Args;
use roce_pipeline::Processes;

/// Folder of the one hierarchy of cgroups (version 2).
const CGROUPS: &str = "/sys/fs/cgroup";
// Conditions for the processes. (A comment for the compiler would become the help's first line.)
#[derive(Args, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ProcessOptions {
    /// Only connections of this process (can be repeated)
    ///
    /// For live runs with --probe, and their recordings: the host reports the process of each new queue pair. Queue pairs that existed
    /// before the run, and the connection manager's packets, have no known process and are left out: start the run before the job.
    /// With several such options, one must match.
    #[arg(long, value_name = "PID", help_heading = "Selection")]
    pid: Vec<u32>,

    /// Only connections of processes with this command, such as ib_write_bw (can be repeated)
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    comm: Vec<String>,

    /// Only connections of processes in this cgroup itself, by folder (below /sys/fs/cgroup) or number (can be repeated)
    #[arg(long, value_name = "FOLDER", value_parser = parse_cgroup, help_heading = "Selection")]
    cgroup: Vec<u64>,
}

/// A cgroup's number is the inode of its folder.
pub(crate) fn parse_cgroup(text: &str) -> Result<u64, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let below = text.strip_prefix(CGROUPS).unwrap_or(text);
    let folder = Path::new(CGROUPS).join(below.trim_start_matches('/'));
    std::fs::metadata(&folder)
        .map(|folder| folder.ino())
        .map_err(|error| format!("{}: {error}", folder.display()))
}

/// A command line in which cgroups are numbers: folders may be gone when a recording is read.
#[cfg(feature = "live")]
pub(crate) fn with_numbers(mut arguments: Vec<String>) -> Vec<String> {
    let number =
        |text: &str| parse_cgroup(text).map_or_else(|_| text.to_owned(), |number| number.to_string());
    for at in 0..arguments.len() {
        if let Some(folder) = arguments[at].strip_prefix("--cgroup=") {
            arguments[at] = format!("--cgroup={}", number(folder));
        } else if at > 0 && arguments[at - 1] == "--cgroup" {
            arguments[at] = number(&arguments[at]);
        }
    }
    arguments
}

impl ProcessOptions {
    /// The processes that they name.
    pub(crate) fn processes(&self) -> Processes {
        Processes {
            pid: self.pid.clone(),
            comm: self.comm.clone(),
            cgroup: self.cgroup.clone(),
        }
    }

    /// Each option with its value.
    pub(crate) fn said(&self) -> impl Iterator<Item = (&'static str, String)> {
        let pids = self.pid.iter().map(|pid| ("pid", pid.to_string()));
        let comms = self.comm.iter().map(|comm| ("comm", comm.clone()));
        let cgroups = self.cgroup.iter().map(|cgroup| ("cgroup", cgroup.to_string()));
        pids.chain(comms).chain(cgroups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(feature = "live")]
    fn recorded_cgroups_are_numbers() {
        let root =
            std::fs::metadata(CGROUPS).map_or_else(|_| "/".to_owned(), |folder| folder.ino().to_string());
        let line = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            with_numbers(line(&["-i", "/", "--cgroup", "/", "--cgroup=/", "--comm", "/"])),
            line(&[
                "-i",
                "/",
                "--cgroup",
                &root,
                &format!("--cgroup={root}"),
                "--comm",
                "/"
            ])
        );
    }

    #[test]
    fn cgroups_are_folders_or_numbers() {
        assert_eq!(parse_cgroup("17"), Ok(17));
        assert!(
            parse_cgroup("/no.slice/such.service")
                .unwrap_err()
                .starts_with("/sys/fs/cgroup/no.slice/such.service: ")
        );
    }
}
