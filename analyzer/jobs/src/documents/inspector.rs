//! NCCL Inspector's files: one JSON object a line for each collective of each rank (`plugins/profiler/inspector` of NVIDIA/nccl, before
//! 2.29.7 `ext-profiler/inspector`; 2.28.3 on).
//!
//! Without `NCCL_INSPECTOR_DUMP_VERBOSE=1` a record has a length and no start: its dump may be minutes later. `coll_sn` counts for each
//! communicator and operation. Times are microseconds since the Unix epoch, and 0 where there is none.

use std::collections::HashMap;
use std::io::{BufRead, Read as _};

use serde::Deserialize;

use super::error::DocumentError;
use super::json::Loose;
use super::text::{hash, name};

/// Records that are kept.
const MAX_RECORDS: usize = 1 << 16;
/// Processes and communicators of one file.
const MAX_PROCESSES: usize = 1 << 12;
/// Longest line: a verbose record has 100 bytes for each of 64 channels.
const MAX_LINE_BYTES: u64 = 1 << 20;
const EXPECTED: &str = "a record of NCCL Inspector: header, metadata, and coll_perf or p2p_perf";

/// A rank of a communicator, in one process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct InspectorProcess {
    /// Hash of the communicator, as NCCL's log prints it behind `commId`.
    pub communicator: u64,
    /// Name of the communicator, from 2.30 on, where it has one.
    pub communicator_name: Option<String>,
    /// The rank in this communicator.
    pub rank: u32,
    /// Number of its ranks.
    pub ranks: u32,
    /// Name of the host.
    pub hostname: Option<String>,
    /// Number of the process.
    pub process: Option<u32>,
}

/// One collective, or one message between two ranks.
#[derive(Clone, PartialEq, Debug)]
pub struct InspectorRecord {
    /// Place of its process in [`InspectorDump::processes`].
    pub process: usize,
    /// The operation: `AllReduce`.
    pub operation: String,
    /// Number of the operation, which counts for each communicator and operation.
    pub sequence: u64,
    /// Size of the message in bytes.
    pub message_bytes: u64,
    /// Length in microseconds.
    pub duration_us: u64,
    /// Start and end of its kernels in microseconds since the Unix epoch, from verbose records.
    pub span_us: Option<(u64, u64)>,
    /// Time at which it was written, in microseconds since the Unix epoch.
    pub dump_us: Option<u64>,
    /// The other rank, of a message between two.
    pub peer: Option<u32>,
}

/// Records of one file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct InspectorDump {
    /// Ranks that wrote it.
    pub processes: Vec<InspectorProcess>,
    /// Records in the order of the file.
    pub records: Vec<InspectorRecord>,
    /// Records that found no room.
    pub left_out: u64,
    /// True if the last line has no end: the job was killed.
    pub is_cut: bool,
}

#[derive(Deserialize)]
struct Line {
    header: Header,
    #[serde(default)]
    metadata: Metadata,
    coll_perf: Option<Performance>,
    p2p_perf: Option<Performance>,
}

#[derive(Deserialize)]
struct Header {
    id: Loose,
    #[serde(default)]
    comm_name: Loose,
    rank: u32,
    n_ranks: u32,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Metadata {
    dump_timestamp_us: Loose,
    hostname: Loose,
    pid: Loose,
}

#[derive(Deserialize)]
struct Performance {
    #[serde(alias = "p2p")]
    coll: String,
    #[serde(alias = "p2p_sn")]
    coll_sn: u64,
    #[serde(alias = "p2p_msg_size_bytes")]
    coll_msg_size_bytes: u64,
    #[serde(alias = "p2p_exec_time_us")]
    coll_exec_time_us: u64,
    #[serde(default)]
    p2p_peer: Loose,
    event_trace_ts: Option<Times>,
}

#[derive(Deserialize)]
struct Times {
    #[serde(default)]
    kernel_events: Vec<KernelTimes>,
}

#[derive(Deserialize)]
struct KernelTimes {
    #[serde(default)]
    kernel_start_ts: u64,
    #[serde(default)]
    kernel_stop_ts: u64,
}

impl Performance {
    /// The first start and the last end of its kernels.
    fn span(&self) -> Option<(u64, u64)> {
        let kernels = || self.event_trace_ts.iter().flat_map(|times| &times.kernel_events);
        let starts = kernels().map(|kernel| kernel.kernel_start_ts);
        let start = starts.filter(|time| *time > 0).min()?;
        let end = kernels().map(|kernel| kernel.kernel_stop_ts).max()?;
        (end > start).then_some((start, end))
    }
}

/// Takes the lines of one file.
#[derive(Debug)]
pub struct InspectorReader {
    file: String,
    line: u64,
    dump: InspectorDump,
    places: HashMap<InspectorProcess, usize>,
}

impl InspectorReader {
    /// A reader of a file that errors call by this name.
    pub fn new(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            line: 0,
            dump: InspectorDump::default(),
            places: HashMap::new(),
        }
    }

    /// Reads a file to its end.
    ///
    /// # Errors
    /// When it cannot be read, a line is longer than a record can be, or is no record.
    pub fn read(mut self, mut input: impl BufRead) -> Result<InspectorDump, DocumentError> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut input).take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
            let read = read.map_err(|error| {
                DocumentError::at_line(&self.file, self.line + 1, format!("cannot be read: {error}"))
            })?;
            if read == 0 {
                return Ok(self.dump);
            }
            let has_end = line.last() == Some(&b'\n');
            if !has_end && read as u64 == MAX_LINE_BYTES {
                let reason = format!("longer than {MAX_LINE_BYTES} bytes; expected {EXPECTED}");
                return Err(DocumentError::at_line(&self.file, self.line + 1, reason));
            }
            match self.line(&line) {
                // A job that is killed leaves the begin of a record.
                Err(_) if !has_end && !self.dump.records.is_empty() => self.dump.is_cut = true,
                other => other?,
            }
        }
    }

    /// Takes the next line.
    fn line(&mut self, line: &[u8]) -> Result<(), DocumentError> {
        self.line += 1;
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        let parsed = serde_json::from_slice::<Line>(line);
        let found =
            parsed.map_err(|error| DocumentError::of_json(&self.file, self.line - 1, &error, EXPECTED))?;
        let fail = |reason: &str| {
            let reason = format!("{reason}; expected {EXPECTED}");
            DocumentError::at_line(&self.file, self.line, reason)
        };
        let Header {
            id,
            comm_name,
            rank,
            n_ranks,
        } = &found.header;
        let communicator = match id {
            Loose::Text(text) => hash(text),
            other => other.whole(),
        };
        let communicator = communicator.ok_or_else(|| fail("header.id is no hash of a communicator"))?;
        if rank >= n_ranks {
            return Err(fail(&format!("rank {rank} of {n_ranks} ranks")));
        }
        let performance = found.coll_perf.as_ref().or(found.p2p_perf.as_ref());
        let performance = performance.ok_or_else(|| fail("neither coll_perf nor p2p_perf"))?;
        let process = InspectorProcess {
            communicator,
            communicator_name: comm_name.text().filter(|name| name != "unknown"),
            rank: *rank,
            ranks: *n_ranks,
            hostname: found.metadata.hostname.text(),
            process: found.metadata.pid.whole(),
        };
        if self.dump.records.len() >= MAX_RECORDS {
            self.dump.left_out += 1;
            return Ok(());
        }
        let next = self.dump.processes.len();
        let place = match self.places.get(&process) {
            Some(place) => *place,
            None if next < MAX_PROCESSES => {
                self.dump.processes.push(process.clone());
                self.places.insert(process, next);
                next
            }
            None => {
                self.dump.left_out += 1;
                return Ok(());
            }
        };
        self.dump.records.push(InspectorRecord {
            process: place,
            operation: name(&performance.coll),
            sequence: performance.coll_sn,
            message_bytes: performance.coll_msg_size_bytes,
            duration_us: performance.coll_exec_time_us,
            span_us: performance.span(),
            dump_us: found
                .metadata
                .dump_timestamp_us
                .whole()
                .filter(|time: &u64| *time > 0),
            peer: performance.p2p_peer.whole(),
        });
        Ok(())
    }
}
