//! Completions with an error in NCCL's log, in the wordings of its versions, and what their status means.
//!
//! Wordings (`src/transport/net_ib.cc`, since 2.29 `src/transport/net_ib/p2p.cc`):
//! - to 2.11: `NET/IB : Got completion with error 12, opcode 1, len 0, vendor err 129`
//! - 2.12 to 2.20: `... from peer 10.0.0.2<43100> with error 12, opcode 0, len 0, vendor err 129`, in 2.20 with `(Send) localGid A remoteGid B`
//! - then: `... with status=12 opcode=0 len=0 vendor err 129 (Send) localGid A remoteGidsB hca mlx5_0`
//! - about 2.27 on: `NET/IB: ... with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) reqSize=0 vendor_err=129 req_type=Send localGid A ...`
//! - 2.29 on: before it `NET/IB: ncclIbTest: Got CQE with error (devIndex=0, req=0x1, comm=0x2 (send), wr_id=3, qp_num=279)`
//!
//! Only the last one names the queue pair (NVIDIA/nccl#2219); a patch adds `qp_num=` to the other line (NVIDIA/nccl#2220, #880). Forks mix
//! the forms, so each field is looked for by itself.

use roce_model::Address;

use super::line::{field, number};

/// A completion with an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
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
    /// The operation, as the log has it. With an error it may be any value (`ibv_poll_cq(3)`).
    pub opcode: Option<String>,
    /// The bytes of the request.
    pub length: Option<u64>,
    /// The adapter's own code.
    pub vendor_error: Option<u32>,
    /// The kind of the request, such as `Send` or `Recv`.
    pub request: Option<String>,
    /// The GID of the side that wrote the line.
    pub local: Option<Address>,
    /// The GID of the other side.
    pub remote: Option<Address>,
    /// The out-of-band address of the other side; its network may be another one.
    pub peer: Option<String>,
    /// The adapter, such as `mlx5_0`.
    pub adapter: Option<String>,
    /// The queue pair of the side that wrote the line.
    pub queue_pair: Option<u32>,
    /// The rank that wrote it.
    pub rank: Option<u32>,
}

/// Longest word of a completion that is kept.
const MAX_WORD: usize = 128;

/// A completion in a text; `None`: there is none in it.
pub fn completion(text: &str) -> Option<Completion> {
    let (_, about) = text
        .split_once("Got completion")
        .or_else(|| text.split_once("Got CQE with error"))?;
    let word = |name: &str| {
        field(about, name)
            .filter(|word| word.len() <= MAX_WORD)
            .map(str::to_owned)
    };
    let request = word("req_type=").or_else(|| {
        ["Send", "Recv", "Flush", "Unused", "GIN"]
            .into_iter()
            .find(|kind| about.contains(&format!("({kind})")))
            .map(str::to_owned)
    });
    Some(Completion {
        status: status_of(about),
        opcode: word("opcode=").or_else(|| word("opcode ")).map(closed),
        length: number(about, "reqSize=")
            .or_else(|| number(about, " len="))
            .or_else(|| number(about, " len ")),
        vendor_error: number(about, "vendor_err=").or_else(|| number(about, "vendor err ")),
        request: request.or_else(|| {
            let side = [("(send)", "Send"), ("(recv)", "Recv")];
            let found = side.into_iter().find(|(form, _)| about.contains(form));
            found.map(|(_, name)| name.to_owned())
        }),
        local: field(about, "localGid ").and_then(address),
        remote: remote(about),
        peer: word("from peer ").map(|peer| match peer.split_once('<') {
            Some((address, _)) => address.to_owned(),
            None => peer,
        }),
        adapter: word(" hca "),
        queue_pair: number(about, "qp_num=").or_else(|| number(about, "qp_num ")),
        ..Completion::default()
    })
}

/// `IBV_WC_SEND(0)`: the number's closing parenthesis is no end of a word.
fn closed(word: String) -> String {
    if word.contains('(') { word + ")" } else { word }
}

fn address(text: &str) -> Option<Address> {
    text.parse().ok()
}

/// `remoteGid ::1`, and without the space later: `remoteGids::1`.
fn remote(text: &str) -> Option<Address> {
    let (_, rest) = text.split_once("remoteGid")?;
    let rest = rest.strip_prefix('s').unwrap_or(rest);
    address(rest.split_whitespace().next()?)
}

/// `status=IBV_WC_RETRY_EXC_ERR(12)`, `status=12` or `error 12`; the name alone is enough.
fn status_of(text: &str) -> Option<u32> {
    if let Some(value) = text.split_once("status=").map(|(_, rest)| rest) {
        let word = value.split_whitespace().next()?.trim_end_matches([',', ')']);
        return match word.split_once('(') {
            Some((name, number)) => number.parse().ok().or_else(|| named(name)),
            None => word.parse().ok().or_else(|| named(word)),
        };
    }
    number(text, "with error ")
}

fn named(name: &str) -> Option<u32> {
    STATUSES
        .iter()
        .find(|status| status.name == name)
        .map(|status| status.number)
}

/// Place of a fault, as a status shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The request itself, the memory or the program of the side that wrote the line.
    Local,
    /// The other side refused it.
    Remote,
    /// Nothing came back: the network, or the other side is gone.
    Silence,
    /// The other side had no buffer.
    Receiver,
    /// It follows another error.
    Consequence,
    /// It is not known.
    Unclear,
}

/// A status of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its number in `enum ibv_wc_status`.
    pub number: u32,
    /// Its name in libibverbs.
    pub name: &'static str,
    /// Its meaning, one sentence.
    pub meaning: &'static str,
    /// Who is at fault.
    pub side: Side,
}

/// The statuses of libibverbs (`verbs.h`, `enum ibv_wc_status`), with their meaning from `ibv_poll_cq(3)` and IBTA 1.4, 11.6.2.
pub const STATUSES: &[Status] = &[
    status(
        1,
        "IBV_WC_LOC_LEN_ERR",
        "the request is longer than its buffers or than a message may be",
        Side::Local,
    ),
    status(
        2,
        "IBV_WC_LOC_QP_OP_ERR",
        "the adapter found its own queue pair in disorder",
        Side::Local,
    ),
    status(
        3,
        "IBV_WC_LOC_EEC_OP_ERR",
        "the adapter found its own end-to-end context in disorder",
        Side::Local,
    ),
    status(
        4,
        "IBV_WC_LOC_PROT_ERR",
        "the memory was not registered, or freed: check memlock and IOMMU; not the network",
        Side::Local,
    ),
    status(
        5,
        "IBV_WC_WR_FLUSH_ERR",
        "flushed after another error: look for the first one of this queue pair",
        Side::Consequence,
    ),
    status(
        6,
        "IBV_WC_MW_BIND_ERR",
        "a memory window could not be bound",
        Side::Local,
    ),
    status(
        7,
        "IBV_WC_BAD_RESP_ERR",
        "the answer of the peer was not what the request wanted",
        Side::Remote,
    ),
    status(
        8,
        "IBV_WC_LOC_ACCESS_ERR",
        "a write of the peer met memory that does not allow it",
        Side::Local,
    ),
    status(
        9,
        "IBV_WC_REM_INV_REQ_ERR",
        "the peer does not take such a request",
        Side::Remote,
    ),
    status(
        10,
        "IBV_WC_REM_ACCESS_ERR",
        "the peer does not allow access to this memory",
        Side::Remote,
    ),
    status(
        11,
        "IBV_WC_REM_OP_ERR",
        "the peer could not carry out the request",
        Side::Remote,
    ),
    status(
        12,
        "IBV_WC_RETRY_EXC_ERR",
        "no answer after all retries: look for drops, the link, and rails that are not connected",
        Side::Silence,
    ),
    status(
        13,
        "IBV_WC_RNR_RETRY_EXC_ERR",
        "the receiver had no buffer, after all retries",
        Side::Receiver,
    ),
    status(
        14,
        "IBV_WC_LOC_RDD_VIOL_ERR",
        "the domains of two local objects differ",
        Side::Local,
    ),
    status(
        15,
        "IBV_WC_REM_INV_RD_REQ_ERR",
        "the peer refused a reliable datagram",
        Side::Remote,
    ),
    status(
        16,
        "IBV_WC_REM_ABORT_ERR",
        "the peer gave the operation up",
        Side::Remote,
    ),
    status(
        17,
        "IBV_WC_INV_EECN_ERR",
        "the number of an end-to-end context is not valid",
        Side::Local,
    ),
    status(
        18,
        "IBV_WC_INV_EEC_STATE_ERR",
        "an end-to-end context is in a wrong state",
        Side::Local,
    ),
    status(19, "IBV_WC_FATAL_ERR", "the adapter failed", Side::Local),
    status(
        20,
        "IBV_WC_RESP_TIMEOUT_ERR",
        "no answer came in time",
        Side::Silence,
    ),
    status(21, "IBV_WC_GENERAL_ERR", "the work request failed", Side::Unclear),
];

const fn status(number: u32, name: &'static str, meaning: &'static str, side: Side) -> Status {
    Status {
        number,
        name,
        meaning,
        side,
    }
}

impl Completion {
    /// The status, where it is one of libibverbs.
    pub fn known_status(&self) -> Option<&'static Status> {
        STATUSES.iter().find(|status| Some(status.number) == self.status)
    }

    /// The name of the status, its number, or that there is none.
    pub fn status_name(&self) -> String {
        match (self.known_status(), self.status) {
            (Some(status), _) => status.name.to_owned(),
            (None, Some(number)) => format!("status {number}"),
            (None, None) => "unknown status".to_owned(),
        }
    }
}
