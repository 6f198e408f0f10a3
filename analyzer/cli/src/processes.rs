//! `--pid`, `--comm`, `--cgroup`: only what belongs to some processes, as hosts have told whose their queue pairs are.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use clap::Args;
use roce_flow::QueuePairs;
use roce_model::{FlowKey, HostEvent, Process};
use roce_wire::Roce;

/// Where systems show the one hierarchy of cgroups (version 2).
const CGROUPS: &str = "/sys/fs/cgroup";
/// Bytes of a command's name that the kernel keeps (TASK_COMM_LEN, less the zero at its end).
const COMM: usize = 15;

// What the processes are. (A comment for the compiler would become the help's first line.)
#[derive(Args, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Processes {
    /// Only connections of this process (can be repeated)
    ///
    /// Of live runs with --probe, and of their recordings: there hosts tell whose queue pairs are. Packets of queue pairs that were
    /// there before, and of the connection manager, are nobody's, and left out. Of several such options, one has to hold.
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,

    /// Only connections of processes with this command, such as ib_write_bw (can be repeated)
    #[arg(long, value_name = "NAME")]
    comm: Vec<String>,

    /// Only connections of processes in this cgroup itself, by folder (below /sys/fs/cgroup) or number (can be repeated)
    #[arg(long, value_name = "FOLDER", value_parser = parse_cgroup)]
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

impl Processes {
    /// Whether nothing was chosen, so that everything counts.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These, and where nothing was said, `others`.
    #[cfg(feature = "live")]
    pub(crate) fn or(self, others: Self) -> Self {
        if self.is_empty() { others } else { self }
    }

    /// Each option with its value.
    pub(crate) fn said(&self) -> impl Iterator<Item = (&'static str, String)> {
        let pids = self.pid.iter().map(|pid| ("pid", pid.to_string()));
        let comms = self.comm.iter().map(|comm| ("comm", comm.clone()));
        let cgroups = self.cgroup.iter().map(|cgroup| ("cgroup", cgroup.to_string()));
        pids.chain(comms).chain(cgroups)
    }

    /// What follows them, if any were chosen.
    pub(crate) fn chosen(&self) -> Option<Box<Chosen>> {
        (!self.is_empty()).then(|| {
            Box::new(Chosen {
                processes: self.clone(),
                queue_pairs: QueuePairs::default(),
            })
        })
    }

    fn include(&self, process: &Process) -> bool {
        let kept =
            |comm: &String| comm.as_bytes().get(..COMM).unwrap_or(comm.as_bytes()) == process.comm.as_bytes();
        self.pid.contains(&process.pid) || self.cgroup.contains(&process.cgroup) || self.comm.iter().any(kept)
    }
}

/// The chosen processes, and what hosts have told so far.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    processes: Processes,
    queue_pairs: QueuePairs,
}

impl Chosen {
    /// Takes note of an event: whether it is theirs, or nobody's (of a port, say).
    pub(crate) fn takes(&mut self, event: &HostEvent) -> bool {
        self.queue_pairs.take(event);
        event
            .process
            .as_ref()
            .is_none_or(|process| self.processes.include(process))
    }

    /// Whether a packet is of a connection of theirs.
    pub(crate) fn has(&self, packet: &Roce) -> bool {
        self.queue_pairs
            .processes(&FlowKey::of(packet))
            .any(|process| self.processes.include(process))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, comm: &str, cgroup: u64) -> Process {
        Process {
            pid,
            comm: comm.into(),
            cgroup,
        }
    }

    #[test]
    fn one_of_the_options_has_to_hold() {
        let processes = Processes {
            pid: vec![7],
            // Of this the kernel keeps the first 15 bytes.
            comm: vec!["nccl_all_reduce_perf".to_owned()],
            cgroup: vec![90],
        };
        assert!(processes.include(&process(7, "a", 0)));
        assert!(processes.include(&process(8, "nccl_all_reduce", 0)));
        assert!(processes.include(&process(8, "a", 90)));
        assert!(!processes.include(&process(8, "nccl_all", 91)));
        assert!(Processes::default().chosen().is_none());
    }

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
