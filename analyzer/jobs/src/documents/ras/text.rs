//! RAS's answer as text: it lists what is unusual, and leaves out the rest.

use super::super::text::{hash, name};
use super::records::{RasCommunicator, RasCount, RasProcess, RasRank, RasRankState, RasStatus};

/// Ranks and processes that are kept of one answer.
const MAX_LISTED: usize = 1 << 16;

/// The section that a line is in.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Section {
    #[default]
    Other,
    Missing,
    Dead,
    Counts,
    Failed,
}

/// Takes the lines of an answer.
#[derive(Default)]
pub(super) struct TextReader {
    status: RasStatus,
    has_status: bool,
    section: Section,
    /// True while lines are about the communicator that came last.
    in_communicator: bool,
    /// The operation and count of ranks that are listed next.
    launched: Option<RasCount>,
    operation: String,
    listed: usize,
}

impl TextReader {
    /// Takes a line. True if it is one of RAS.
    pub(super) fn line(&mut self, line: &str) -> bool {
        let line = line.strip_prefix("< ").unwrap_or(line);
        let is_protocol = line.starts_with("> ") || is_protocol(line);
        if is_protocol {
            return true;
        }
        let text = line.trim();
        if text.starts_with("Job summary") || text.starts_with("NCCL version") {
            self.has_status = true;
            return true;
        }
        if !line.starts_with(' ') && !text.is_empty() {
            self.heading(text);
            return false;
        }
        self.item(text);
        false
    }

    /// `#0-0 (cf264af53edbe986) INCOMPLETE`, or `DEAD`.
    fn heading(&mut self, text: &str) {
        self.launched = None;
        let last = text.rsplit(' ').next().unwrap_or_default();
        self.section = match last {
            "INCOMPLETE" => Section::Missing,
            "DEAD" => Section::Dead,
            "MISMATCH" => Section::Counts,
            "ERROR" => Section::Failed,
            _ => Section::Other,
        };
        self.in_communicator = false;
        let found = text.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
        let Some(found) = found
            .filter(|_| text.starts_with('#'))
            .and_then(|(text, _)| hash(text))
        else {
            return;
        };
        self.in_communicator = true;
        let known = self.status.communicators.iter().position(|one| one.hash == found);
        let one = match known {
            Some(place) => self.status.communicators.remove(place),
            None => RasCommunicator {
                hash: found,
                ..RasCommunicator::default()
            },
        };
        // The last one is the one that lines are about.
        self.status.communicators.push(one);
    }

    fn item(&mut self, text: &str) {
        if let Some(rest) = text.strip_prefix("Communicator ranks have different ") {
            self.operation = name(rest.split(' ').next().unwrap_or("collective"));
        } else if let Some(rest) = text.strip_prefix("The missing rank") {
            let numbers = rest.trim_start_matches(['s', ':', ' ']).split([',', ' ']);
            for rank in numbers.filter_map(|number| number.parse().ok()) {
                self.rank(rank, "");
            }
        } else if let Some(rest) = text.strip_prefix("Rank ") {
            let (number, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            if let Ok(rank) = number.parse() {
                if let Some(launched) = operation_number(rest) {
                    self.group(launched);
                }
                self.rank(rank, rest);
            }
        } else if let Some((process, host)) = process(text) {
            let is_dead = self.section == Section::Dead;
            if (is_dead || self.section == Section::Missing) && self.room() {
                self.status.absent.push(RasProcess {
                    host,
                    process,
                    is_dead,
                });
            }
        } else if let Some(launched) = operation_number(text) {
            self.group(launched);
        }
    }

    /// Number of operations that the ranks behind it have launched.
    fn group(&mut self, launched: u64) {
        let operation = self.operation.clone();
        if let Some(one) = self
            .status
            .communicators
            .last_mut()
            .filter(|_| self.in_communicator)
        {
            one.note(&operation, launched);
            self.launched = Some(RasCount { operation, launched });
        }
    }

    fn rank(&mut self, rank: u32, rest: &str) {
        if !self.in_communicator || !self.room() {
            return;
        }
        let state = match self.section {
            Section::Missing => RasRankState::Missing,
            Section::Dead => RasRankState::Dead,
            Section::Failed => RasRankState::Failed,
            Section::Counts | Section::Other => RasRankState::Answered,
        };
        let (process, host) = process(rest).unzip();
        let counts = self.launched.iter().cloned().collect();
        if let Some(one) = self.status.communicators.last_mut() {
            one.ranks.push(RasRank {
                rank,
                host,
                process,
                state,
                counts,
            });
        }
    }

    fn room(&mut self) -> bool {
        self.listed += 1;
        self.listed <= MAX_LISTED
    }

    /// The answer, if there was one.
    pub(super) fn finish(self) -> Option<RasStatus> {
        let mut status = self.status;
        if !self.has_status {
            return None;
        }
        // Processes are listed beside their ranks: those of ranks that are listed are not repeated.
        for one in &mut status.communicators {
            for rank in &mut one.ranks {
                let same = |absent: &&RasProcess| Some(absent.process) == rank.process;
                if status
                    .absent
                    .iter()
                    .find(same)
                    .is_some_and(|absent| absent.is_dead)
                {
                    rank.state = RasRankState::Dead;
                }
            }
        }
        Some(status)
    }
}

/// `... process 3487984 on node 172.16.64.213 ...`, after `Process` or `managed by process`.
fn process(text: &str) -> Option<(u32, String)> {
    let rest = text
        .strip_prefix("Process ")
        .or_else(|| text.split_once("managed by process ").map(|(_, rest)| rest))?;
    let (number, rest) = rest.split_once(" on node ")?;
    let host = rest.split(' ').next()?;
    Some((number.parse().ok()?, name(host)))
}

/// `... launched up to operation 6649 ...`
fn operation_number(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("launched up to operation ")?;
    rest.split(' ').next()?.parse().ok()
}

/// True of lines of the protocol itself.
fn is_protocol(line: &str) -> bool {
    let begins = [
        "SERVER PROTOCOL",
        "CLIENT PROTOCOL",
        "VERBOSE STATUS",
        "MONITOR",
        "TIMEOUT ",
        "SET FORMAT",
    ];
    line == "OK" || begins.iter().any(|begin| line.starts_with(begin))
}
