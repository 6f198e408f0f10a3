//! One line that reports an error: what it says of the request, the connection and its ends.

use roce_model::{Address, JobError};

use super::drivers::of_driver;
use super::fields::{Fields, address, number};
use super::marks::program;
use super::program::Program;
use super::status::{Side, Status};
use super::symptom::Symptom;
use crate::prefix::{without_colours, without_document};

/// Longest line that is read, in bytes.
const MAX_LINE: usize = 64 << 10;
/// Longest word that is kept.
const MAX_WORD: usize = 128;
/// Longest quotation of a line, in glyphs.
const MAX_SAID: usize = 160;
/// Largest number of a status: `IBV_WC_TM_RNDV_INCOMPLETE`.
const MAX_STATUS: u32 = 23;

/// Words before the number of a status, in small letters. The more exact ones come first.
const STATUS_NUMBER: [&str; 24] = [
    "ibv_wc_status",
    "cq state error",
    "completion failed status",
    "ibv_poll_cq failed, status",
    "wc.status",
    "wc->status",
    "wce status",
    "wc error",
    "status number",
    "failed status",
    "with status",
    "had status",
    "wc_status",
    "prov_errno",
    "prov_err",
    "provider errno",
    "completion with error",
    "with error",
    "status",
    "status code",
    "error code",
    "err code",
    "code",
    "failed",
];

/// Words of which every error has one, in small letters: most lines of a log have none.
const ERROR_WORDS: [&str; 45] = [
    "no socket interface",
    "got stuck",
    "limited by",
    "gpu direct rdma disabled",
    "no data available",
    "no userspace device-specific driver",
    "retry count",
    "corrected",
    "cma_listen",
    "client rereg",
    "not available",
    "compromised",
    "unplugged",
    "truncated",
    "ae_id",
    "invalid",
    "stall",
    "icrc",
    "lost",
    "insufficient",
    "temperature",
    "violation",
    "inactive",
    "disconnect",
    "ae qpid",
    "cmdq",
    "no device",
    "couldn't",
    "event",
    "abnormal",
    "unable",
    "not responding",
    "down",
    "err",
    "fail",
    "exceeded",
    "time",
    "flush",
    "status",
    "synd",
    "wqe[",
    "close",
    "reset",
    "reject",
    "unreachable",
];

/// Numbers of errors that RDMA and sockets give, with their names (Linux include/uapi/asm-generic/errno.h) and words (glibc, `strerror`).
const ERRNOS: [(u32, &str, &str); 20] = [
    (14, "EFAULT", "bad address"),
    (61, "ENODATA", "no data available"),
    (98, "EADDRINUSE", "address already in use"),
    (110, "ETIMEDOUT", "connection timed out"),
    (111, "ECONNREFUSED", "connection refused"),
    (113, "EHOSTUNREACH", "no route to host"),
    (104, "ECONNRESET", "connection reset by peer"),
    (103, "ECONNABORTED", "software caused connection abort"),
    (107, "ENOTCONN", "transport endpoint is not connected"),
    (101, "ENETUNREACH", "network is unreachable"),
    (100, "ENETDOWN", "network is down"),
    (112, "EHOSTDOWN", "host is down"),
    (99, "EADDRNOTAVAIL", "cannot assign requested address"),
    (19, "ENODEV", "no such device"),
    (12, "ENOMEM", "cannot allocate memory"),
    (22, "EINVAL", "invalid argument"),
    (16, "EBUSY", "device or resource busy"),
    (13, "EACCES", "permission denied"),
    (28, "ENOSPC", "no space left on device"),
    (5, "EIO", "input/output error"),
];

/// An error that a line reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorReport {
    /// The program that reports it.
    pub program: Program,
    /// The file, by its place among those that were read.
    pub file: usize,
    /// The line of the file, from 1 on.
    pub line: usize,
    /// The host that wrote it, and the process.
    pub process: Option<(String, u32)>,
    /// The CUDA device of the thread that wrote it.
    pub device: Option<u32>,
    /// The status, of `enum ibv_wc_status`.
    pub status: Option<u32>,
    /// The error, where it is no status.
    pub symptom: Option<&'static Symptom>,
    /// The operation, as the line has it. With an error it may be any value (`ibv_poll_cq(3)`).
    pub opcode: Option<String>,
    /// The bytes of the request.
    pub length: Option<u64>,
    /// The adapter's own code.
    pub vendor_error: Option<u32>,
    /// The kind of the request, such as `Send` or `Recv`.
    pub request: Option<String>,
    /// The address of the side that wrote the line: its GID.
    pub local: Option<Address>,
    /// The address of the other side.
    pub remote: Option<Address>,
    /// The out-of-band address of the other side; its network may be another one.
    pub peer: Option<String>,
    /// The adapter, such as `mlx5_0`.
    pub adapter: Option<String>,
    /// The port of the adapter.
    pub port: Option<u32>,
    /// The queue pair of the side that wrote the line.
    pub queue_pair: Option<u32>,
    /// The queue pair of the other side.
    pub remote_queue_pair: Option<u32>,
    /// The rank that wrote it.
    pub rank: Option<u32>,
    /// The kernel's number of the error, above zero, and its name.
    pub errno: Option<(u32, &'static str)>,
    /// The words of the line, where its symptom alone does not say what happened.
    pub said: Option<String>,
}

/// The error in a line; `None`: the line is none of a known program.
///
/// Prefixes of launchers and of logs do not matter. A line that continues another one, such as that of UCX with the queue pair, is an error
/// of its own without a status.
pub fn report(line: &str) -> Option<ErrorReport> {
    if line.len() > MAX_LINE {
        return None;
    }
    let line = &*without_document(line);
    let line = &*without_colours(line);
    let lower = line.to_ascii_lowercase();
    if !ERROR_WORDS.iter().any(|word| lower.contains(word)) {
        return None;
    }
    let fields = Fields {
        text: line,
        lower: &lower,
    };
    let numbered = STATUS_NUMBER.iter().find_map(|name| fields.small_number(name));
    let (program, is_sure, is_general) = program(line, &lower, numbered.filter(|number| *number > 0))?;
    let symptom = Symptom::in_text(&lower);
    let numbered = numbered.filter(|_| !symptom.is_some_and(Symptom::has_reason));
    let mut found = ErrorReport {
        program,
        status: status(fields, program, numbered),
        symptom,
        vendor_error: vendor_error(fields, program),
        queue_pair: fields.own_queue_pair(),
        remote_queue_pair: fields.other_queue_pair(),
        rank: rank(&lower),
        request: request(fields),
        ..ErrorReport::default()
    };
    if found.status.is_some() {
        found.symptom = None;
    } else {
        if found.symptom.is_none() && found.vendor_error.is_none() && is_general {
            found.symptom = Some(Symptom::unnamed(&lower));
        }
        found.errno = errno(fields);
        let is_open = found.symptom.is_some_and(Symptom::needs_words);
        found.said = is_open.then(|| quoted(line));
    }
    (found.local, found.remote) = fields.addresses();
    if let Some((adapter, port)) = fields.adapter() {
        (found.adapter, found.port) = (Some(adapter.to_owned()), port);
    }
    if found.adapter.is_none() {
        let device = fields.interface().or_else(|| fields.device());
        found.adapter = device.map(str::to_owned);
    }
    operation(fields, &mut found);
    match program {
        Program::Nccl => nccl(fields, &mut found),
        Program::Mooncake => mooncake(fields, &mut found),
        Program::OpenMpi => found.peer = fields.word("] from ").and(fields.word(" to: ")),
        Program::Mvapich => {
            let rank = fields.number(&["dest rank", "msg from"]);
            found.peer = rank.map(|rank| format!("rank {rank}"));
        }
        Program::Kernel => found.peer = nfs_server(line, " not responding").map(str::to_owned),
        Program::StorageScale => {
            found.vendor_error = found.vendor_error.or_else(|| fields.number(&["error"]));
        }
        _ => {}
    }
    // An address that no name tells of is the other side's: programs rarely print their own alone.
    if found.remote.is_none() && found.peer.is_none() {
        let mut all = fields.any_addresses();
        let other = all.find(|address| Some(*address) != found.local);
        found.peer = other.map(|address| address.to_string());
    }
    let says_nothing = found.status.is_none() && found.symptom.is_none() && found.vendor_error.is_none();
    let is_success = numbered == Some(0) && found.status.is_none() && found.symptom.is_none();
    (!is_success && (is_sure || !says_nothing)).then_some(found)
}

/// The server in a line of the kernel's client of NFS, before these words.
pub(super) fn nfs_server<'a>(line: &'a str, end: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once("nfs: server ")?;
    rest.split_once(end).map(|(server, _)| server.trim())
}

/// The words of a line, without the time before it and without glyphs that are no text, cut to [`MAX_SAID`] glyphs.
fn quoted(line: &str) -> String {
    let mut text = line.trim();
    // `[ 1234.5]` of the kernel, `[1700000000.123456]` and `[node:1:0]` of UCX.
    while let Some((before, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        && before.contains(|glyph: char| glyph.is_ascii_digit())
        && !rest.trim().is_empty()
    {
        text = rest.trim_start();
    }
    let mut said = String::new();
    for (at, word) in text
        .split(|glyph: char| glyph.is_whitespace() || glyph.is_control())
        .filter(|word| !word.is_empty())
        .enumerate()
    {
        if at > 0 {
            said.push(' ');
        }
        said.push_str(word);
        if said.len() > 4 * MAX_SAID {
            break;
        }
    }
    let mut glyphs = said.char_indices().skip(MAX_SAID);
    if let Some((end, _)) = glyphs.next() {
        said.truncate(end);
        said.push_str("...");
    }
    said.replace('"', "'")
}

/// The status: its name, its words, the syndrome of mlx5, or its number.
fn status(fields: Fields<'_>, program: Program, numbered: Option<u32>) -> Option<u32> {
    let syndrome = fields.number(&["synd", "syndrome"]).and_then(Status::of_syndrome);
    let syndrome = syndrome.filter(|_| !is_of_firmware(fields));
    let said = Status::named_in(fields.text)
        .or_else(|| of_driver(fields, program))
        .or_else(|| ceph(fields.lower, program))
        .or(syndrome)
        .or_else(|| Status::worded_in(fields.lower))
        .or_else(|| open_mpi(fields.lower));
    // EFA has numbers of its own; what a driver prints in parentheses is no status.
    let has_own = matches!(
        program,
        Program::Mlx5
            | Program::Mlx4
            | Program::Bnxt
            | Program::Hns
            | Program::Efa
            | Program::Cxgb4
            | Program::Ionic
            | Program::Driver
            | Program::Mpich
    ) && !fields.lower.contains("tx failed");
    // NVSHMEM's functions return codes of its own.
    let has_own = has_own || program == Program::Nvshmem && !fields.lower.contains("ibv_poll_cq");
    let has_number = program != Program::LibfabricEfa && !has_own || fields.lower.contains("wc error");
    let number = numbered.filter(|number| has_number && (1..=MAX_STATUS).contains(number));
    said.map(|status| status.number).or(number)
}

/// True if the numbers of a line are those of commands and of the health of mlx5's firmware, not of a completion (Linux
/// drivers/net/ethernet/mellanox/mlx5/core/cmd.c and health.c).
fn is_of_firmware(fields: Fields<'_>) -> bool {
    fields.lower.contains("mlx5_core") && !fields.lower.contains("cqe")
}

/// The status that Ceph says in a sentence (`src/msg/async/rdma/RDMAStack.cc`, handle_tx_event).
fn ceph(lower: &str, program: Program) -> Option<&'static Status> {
    let is_exhausted =
        program == Program::Ceph && lower.contains("connection between server and client not working");
    is_exhausted.then(|| Status::of(12)).flatten()
}

/// The statuses that Open MPI says in a paragraph.
fn open_mpi(lower: &str) -> Option<&'static Status> {
    if lower.contains("the infiniband retry count between two mpi processes") {
        Status::of(12)
    } else if lower.contains("\"receiver not ready\" retry count") {
        Status::of(13)
    } else {
        None
    }
}

/// The adapter's own code: by name, in `(12/0x81)` of the kernel, or the first of `(0x88 0x0 0x0)` of the driver.
fn vendor_error(fields: Fields<'_>, program: Program) -> Option<u32> {
    if let Some(code) = fields.vendor_error() {
        return Some(code);
    }
    if is_of_firmware(fields) {
        return None;
    }
    if program == Program::Mlx5 {
        let (_, rest) = fields.text.rsplit_once('(')?;
        return number(rest.starts_with("0x").then_some(rest)?);
    }
    // A syndrome that mlx5 does not have in its completions is the adapter's own code.
    let own = fields
        .number(&["syndrome"])
        .filter(|code| Status::of_syndrome(*code).is_none() && *code < 256);
    own.or_else(|| {
        let (before, rest) = fields.text.split_once("/0x")?;
        let digits = before.rfind('(').and_then(|at| before.get(at + 1..))?;
        let is_pair = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let end = rest.find(|glyph: char| !glyph.is_ascii_hexdigit())?;
        u32::from_str_radix(rest.get(..end).filter(|_| is_pair)?, 16).ok()
    })
}

/// An answer of the kernel, by name: below zero (`-110`, `err -12`, `ret=-104`), behind `errno`, or in words.
fn errno(fields: Fields<'_>) -> Option<(u32, &'static str)> {
    let named = fields.number(&["errno"]);
    let end = fields.lower.trim_end().trim_end_matches('.');
    let (number, name, _) = ERRNOS.iter().find(|(number, _, words)| {
        // NCCL and others end a line with the words.
        let is_worded = end
            .strip_suffix(words)
            .is_some_and(|rest| rest.ends_with([' ', ':', '(']));
        if is_worded {
            return true;
        }
        if named == Some(*number) {
            return true;
        }
        let form = format!("-{number}");
        fields.text.match_indices(&form).any(|(at, _)| {
            let before = fields.text.get(..at).unwrap_or_default().chars().next_back();
            let behind = fields
                .text
                .get(at + form.len()..)
                .unwrap_or_default()
                .chars()
                .next();
            before.is_some_and(|glyph| " =(:".contains(glyph))
                && behind.is_none_or(|glyph| !glyph.is_ascii_alphanumeric() && !"-.:".contains(glyph))
        })
    })?;
    Some((*number, name))
}

/// The rank that writes: `[Rank 3]` and `[rank3]` of PyTorch, `mpi_rank_3` of MVAPICH, `[[6723,1],3]` of Open MPI.
fn rank(lower: &str) -> Option<u32> {
    let behind = |name: &str| Some(lower.split_once(name)?.1.trim_start());
    let of_open_mpi = || {
        behind("[[")
            .and_then(|rest| rest.split_once("],"))
            .map(|(_, rest)| rest)
    };
    let digits = |rest: &str| {
        let rest = rest.trim_start_matches([' ', '=', ':']);
        let end = rest
            .find(|glyph: char| !glyph.is_ascii_digit())
            .unwrap_or(rest.len());
        rest.get(..end)?.parse().ok()
    };
    let marked = [behind("[rank"), behind("mpi_rank_"), of_open_mpi()];
    let own = marked.into_iter().flatten().find_map(digits);
    // "dest rank=3" is that of the peer.
    own.or_else(|| {
        lower.match_indices("rank").find_map(|(at, word)| {
            let before = lower.get(..at).unwrap_or_default();
            let is_begun = before.ends_with([' ', '(', ',', '\t']) || before.is_empty();
            let is_other = ["dest ", "remote ", "peer ", "target ", "src ", "from ", "to "]
                .iter()
                .any(|other| before.ends_with(other));
            let behind = lower.get(at + word.len()..).unwrap_or_default();
            (is_begun && !is_other && behind.starts_with([' ', '=', ':']))
                .then(|| digits(behind))
                .flatten()
        })
    })
}

/// The operation and its bytes.
fn operation(fields: Fields<'_>, found: &mut ErrorReport) {
    found.opcode = fields.word("opcode");
    found.length = ["reqsize", "length", "len"]
        .iter()
        .find_map(|name| fields.word(name)?.parse().ok());
}

/// The kind of the request.
fn request(fields: Fields<'_>) -> Option<String> {
    const FORMS: [(&str, &str); 7] = [
        ("(send)", "Send"),
        ("(recv)", "Recv"),
        ("(flush)", "Flush"),
        ("(unused)", "Unused"),
        ("(gin)", "GIN"),
        ("send for cqe", "Send"),
        ("recv for cqe", "Recv"),
    ];
    let named = fields.word("req_type");
    named.or_else(|| {
        let found = FORMS.iter().find(|(form, _)| fields.lower.contains(form));
        found.map(|(_, name)| (*name).to_owned())
    })
}

/// NCCL says the address of its out-of-band connection as that of the peer.
fn nccl(fields: Fields<'_>, found: &mut ErrorReport) {
    found.remote = fields.glued_gid();
    found.peer = fields.word("from peer").map(|peer| match peer.split_once('<') {
        Some((address, _)) => address.to_owned(),
        None => peer,
    });
    found.opcode = found.opcode.take().map(|opcode| {
        if opcode.contains('(') && !opcode.ends_with(')') {
            opcode + ")"
        } else {
            opcode
        }
    });
    found.adapter = fields.word("hca").or(found.adapter.take());
}

/// Mooncake names both adapters: `local_nic: mlx5_7, peer_nic: 10.150.5.46:15729@mlx5_0`.
fn mooncake(fields: Fields<'_>, found: &mut ErrorReport) {
    found.adapter = fields.word("local_nic").or(found.adapter.take());
    let peer = fields.word("peer_nic");
    found.peer = peer.and_then(|peer| {
        let host = peer.split('@').next().unwrap_or_default();
        address(host)
            .map(|address| address.to_string())
            .or_else(|| Some(host.split(':').next()?.to_owned()))
    });
}

impl Fields<'_> {
    /// The number of a status behind its name: a few digits, and no unit.
    fn small_number(self, name: &'static str) -> Option<u32> {
        let found = self.number(&[name])?;
        (found <= MAX_STATUS).then_some(found)
    }

    /// The word behind a name, up to white space, a comma or a closing parenthesis.
    fn word(self, name: &'static str) -> Option<String> {
        let rest = self.behind(name).next()?;
        let word = rest.split([' ', '\t', ',', ')', ']', '"', '\\']).next()?;
        (!word.is_empty() && word.len() <= MAX_WORD).then(|| word.to_owned())
    }
}

impl ErrorReport {
    /// The status, where it is one of libibverbs.
    pub fn known_status(&self) -> Option<&'static Status> {
        Status::of(self.status?)
    }

    /// The name of the status or of the error, the status's number, or that there is none.
    pub fn status_name(&self) -> String {
        match (self.known_status(), self.status, self.symptom) {
            (Some(status), ..) => status.name.to_owned(),
            (None, Some(number), _) => format!("status {number}"),
            (None, None, Some(symptom)) => match self.errno {
                Some((number, name)) => format!("{} ({name}, -{number})", symptom.name),
                None => symptom.name.to_owned(),
            },
            (None, None, None) => "unknown status".to_owned(),
        }
    }

    /// Its meaning, one sentence.
    pub fn meaning(&self) -> &'static str {
        let status = self.known_status().map(|status| status.meaning);
        status
            .or(self.symptom.map(|symptom| symptom.meaning))
            .unwrap_or("the work request failed")
    }

    /// True if it follows another error.
    pub fn is_consequence(&self) -> bool {
        self.known_status()
            .is_some_and(|status| status.side == Side::Consequence)
            || self.symptom.is_some_and(|symptom| symptom.is_consequence)
    }

    /// Takes from another line about the same error what this one does not say.
    pub(super) fn complete(&mut self, other: Self) {
        self.status = self.status.or(other.status);
        self.symptom = self
            .symptom
            .filter(|symptom| !symptom.is_unnamed())
            .or(other.symptom)
            .or(self.symptom)
            .filter(|_| self.status.is_none());
        // The words are those of a line whose symptom needs them.
        let needs_words = self.symptom.is_some_and(Symptom::needs_words);
        self.said = self.said.take().or(other.said).filter(|_| needs_words);
        self.vendor_error = self.vendor_error.or(other.vendor_error);
        self.queue_pair = self.queue_pair.or(other.queue_pair);
        self.remote_queue_pair = self.remote_queue_pair.or(other.remote_queue_pair);
        self.local = self.local.or(other.local);
        self.remote = self.remote.or(other.remote);
        self.rank = self.rank.or(other.rank);
        self.errno = self.errno.or(other.errno);
        self.port = self.port.or(other.port);
        let take = |own: &mut Option<String>, other: Option<String>| *own = own.take().or(other);
        take(&mut self.opcode, other.opcode);
        take(&mut self.request, other.request);
        take(&mut self.peer, other.peer);
        take(&mut self.adapter, other.adapter);
    }

    /// The error as those who look at packets take it, at `place`.
    pub fn job_error(&self, place: String) -> JobError {
        JobError {
            place,
            program: self.program.name(),
            status: self.status_name(),
            number: self.status,
            meaning: self.meaning(),
            vendor_error: self.vendor_error,
            is_consequence: self.is_consequence(),
            rank: self.rank,
            local: self.local,
            remote: self.remote,
            peer: self.peer.as_deref().and_then(|peer| peer.parse().ok()),
            adapter: self.adapter.clone(),
            queue_pair: self.queue_pair,
            remote_queue_pair: self.remote_queue_pair,
        }
    }
}
