//! Processes that a pcapng file names as those of its frames.
//!
//! ```text
//! custom block     enterprise(4) 3(4) length(4) process(4) options   enterprise 32622: Wireshark; all behind it little-endian
//! local 0x80000001 process(4) options                                 Darwin's tcpdump
//! options: 2 name, and of the custom block 9 start(8), in ns since the Unix epoch
//! EPB option       8 process(4) thread(4)    0x8001 number of Darwin's block in the section(4)
//! ```
//! The custom block is that of Wireshark's `pcapng-wireshark-custom.c`, which has the body that is proposed for the specification. Blocks of
//! other shapes are those of other programs: they are no faults.

use std::collections::HashMap;

use super::options::{self, Options};
use crate::frame::FrameProcess;
use crate::walk::{FoundFrames, u32_of};

/// Blocks that carry data of an enterprise, for programs that copy unknown ones and for those that do not.
pub(super) const CUSTOM: [u32; 2] = [0x0bad, 0x4000_0bad];
/// Darwin's block, of local use.
pub(super) const DARWIN: u32 = 0x8000_0001;
/// The enterprise number of the Wireshark Foundation.
const WIRESHARK: u32 = 32_622;
/// Wireshark's entry that names a process.
const ENTRY: u32 = 3;
/// Bytes that are kept of a name, as many as the kernel keeps (TASK_COMM_LEN, less the zero at its end).
const MAX_NAME: usize = 15;
/// Processes that a file may name, as many as the numbers of frames tell apart.
const MAX_PROCESSES: usize = u16::MAX as usize;

/// The processes of a section.
#[derive(Debug, Default)]
pub(super) struct SectionProcesses {
    /// The latest block of each process.
    named: HashMap<u32, u16>,
    /// Processes without a block that fits.
    nameless: HashMap<u32, u16>,
    /// Darwin's blocks, in their order.
    darwin: Vec<u16>,
}

impl SectionProcesses {
    /// Takes a custom block, where it names a process.
    pub(super) fn custom<const BIG: bool>(&mut self, body: &[u8], found: &mut FoundFrames) {
        let Some((head, rest)) = body.split_first_chunk::<16>() else {
            return;
        };
        let [enterprise, kind, length, pid] =
            [0, 4, 8, 12].map(|at| [head[at], head[at + 1], head[at + 2], head[at + 3]]);
        if u32_of::<BIG>(enterprise) != WIRESHARK || u32_of::<false>(kind) != ENTRY {
            return;
        }
        // The length is that of the process and its options.
        let length = (u32_of::<false>(length) as usize).checked_sub(4);
        let Some(options) = length.and_then(|length| rest.get(..length)) else {
            return;
        };
        let (name, started) = described::<false>(CUSTOM[0], options);
        let pid = u32_of::<false>(pid);
        let number = add(found, pid, name, started);
        if number != 0 {
            self.named.insert(pid, number);
        }
    }

    /// Takes Darwin's block.
    pub(super) fn darwin<const BIG: bool>(&mut self, body: &[u8], found: &mut FoundFrames) {
        let number = body.split_first_chunk::<4>().map_or(0, |(pid, options)| {
            let (name, _) = described::<BIG>(DARWIN, options);
            add(found, u32_of::<BIG>(*pid), name, 0)
        });
        if self.darwin.len() < MAX_PROCESSES {
            self.darwin.push(number);
        }
    }

    /// The process behind a frame of a time, by its number.
    pub(super) fn of_pid(&mut self, pid: u32, time: u64, found: &mut FoundFrames) -> u16 {
        let named = self.named.get(&pid).copied().filter(|number| {
            // The number of a process is given again: a later one's name is not that of this frame.
            let process = found.processes.get(usize::from(*number) - 1);
            process.is_some_and(|process| process.started_ns <= time)
        });
        if let Some(number) = named.or_else(|| self.nameless.get(&pid).copied()) {
            return number;
        }
        let number = add(found, pid, None, 0);
        self.nameless.insert(pid, number);
        number
    }

    /// The process of Darwin's block `index`.
    pub(super) fn of_darwin(&self, index: u32) -> u16 {
        self.darwin.get(index as usize).copied().unwrap_or(0)
    }
}

/// Number of a process, which is added where no block named it in the same way; 0 where there are too many.
fn add(found: &mut FoundFrames, pid: u32, name: Option<String>, started_ns: u64) -> u16 {
    let process = FrameProcess {
        pid,
        name,
        started_ns,
    };
    if let Some(number) = found.process_numbers.get(&process) {
        return *number;
    }
    if found.processes.len() >= MAX_PROCESSES {
        return 0;
    }
    found.processes.push(process.clone());
    let number = u16::try_from(found.processes.len()).unwrap_or(0);
    found.process_numbers.insert(process, number);
    number
}

/// Name and start of a process.
fn described<const BIG: bool>(kind: u32, bytes: &[u8]) -> (Option<String>, u64) {
    let (mut name, mut started) = (None, 0);
    for option in Options::<BIG>::new(kind, Some(bytes)).map_while(Result::ok) {
        match option.code {
            options::PROCESS_NAME => name = option.text(),
            options::PROCESS_START if kind != DARWIN => started = option.long().unwrap_or(0),
            _ => {}
        }
    }
    if let Some(name) = &mut name {
        name.truncate(name.floor_char_boundary(MAX_NAME));
        name.shrink_to_fit();
    }
    (name, started)
}
