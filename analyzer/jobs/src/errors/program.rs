//! The programs whose errors are known, and the words by which a line of each is recognized.

use super::status::Status;

/// A program, or the part of the kernel, that reports an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Program {
    /// NVIDIA's NCCL, and RCCL.
    Nccl,
    /// UCX.
    Ucx,
    /// libfabric, and NCCL's plugin over it.
    Libfabric,
    /// Open MPI.
    OpenMpi,
    /// MVAPICH.
    Mvapich,
    /// perftest.
    Perftest,
    /// NVSHMEM.
    Nvshmem,
    /// Mooncake's transfer engine.
    Mooncake,
    /// NIXL.
    Nixl,
    /// SPDK.
    Spdk,
    /// The kernel's NVMe over RDMA, host and target.
    NvmeKernel,
    /// The kernel's NFS over RDMA, client and server.
    RpcRdma,
    /// The drivers of NVIDIA's adapters.
    Mlx5,
    /// Other users of RDMA in the kernel: iSER, SRP, RDS, SMB Direct, IP over InfiniBand, RTRS.
    Kernel,
    /// PyTorch's process groups.
    PyTorch,
    /// Gloo over ibverbs.
    Gloo,
    /// Lustre.
    Lustre,
    /// Ceph.
    Ceph,
    /// IBM Storage Scale (GPFS).
    StorageScale,
    /// Another program, which prints a status in the words of libibverbs.
    #[default]
    Verbs,
}

impl Program {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nccl => "NCCL",
            Self::Ucx => "UCX",
            Self::Libfabric => "libfabric",
            Self::OpenMpi => "Open MPI",
            Self::Mvapich => "MVAPICH",
            Self::Perftest => "perftest",
            Self::Nvshmem => "NVSHMEM",
            Self::Mooncake => "Mooncake",
            Self::Nixl => "NIXL",
            Self::Spdk => "SPDK",
            Self::NvmeKernel => "NVMe of the kernel",
            Self::RpcRdma => "NFS over RDMA of the kernel",
            Self::Mlx5 => "the driver of the adapter",
            Self::Kernel => "the kernel",
            Self::PyTorch => "PyTorch",
            Self::Gloo => "Gloo",
            Self::Lustre => "Lustre",
            Self::Ceph => "Ceph",
            Self::StorageScale => "IBM Storage Scale",
            Self::Verbs => "a program over libibverbs",
        }
    }
}

/// An error that is no status of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symptom {
    /// Its name.
    pub name: &'static str,
    /// Its meaning, one sentence.
    pub meaning: &'static str,
    /// It follows another error.
    pub(super) is_consequence: bool,
    /// Words of programs for it, in small letters.
    words: &'static [&'static str],
}

const SYMPTOMS: [Symptom; 12] = [
    Symptom {
        name: "connection rejected",
        meaning: "the peer's connection manager rejected the request: look whether its program listens at this address and port",
        is_consequence: false,
        words: &["rdma_cm_event_rejected", "connect rejected: status"],
    },
    Symptom {
        name: "peer unreachable",
        meaning: "the connection manager of the peer did not answer: look for the route, drops, and whether the host lives",
        is_consequence: false,
        words: &[
            "rdma_cm_event_unreachable",
            "rdma_cm_event_route_error",
            "rdma_cm_event_addr_error",
        ],
    },
    Symptom {
        name: "collective timeout",
        meaning: "a collective operation did not end in time: a rank has not joined it, or one of its connections stands still",
        is_consequence: false,
        words: &[
            "watchdog caught collective operation timeout",
            "timeout at nccl work",
            "some nccl operations have failed or timed out",
        ],
    },
    Symptom {
        name: "endpoint timeout",
        meaning: "the peer did not answer in time: look for drops, the link, and whether its process lives",
        is_consequence: false,
        words: &[
            "endpoint timeout",
            "endpoint is timed out",
            "unhandled timeout error",
            "ucs_err_endpoint_timeout",
        ],
    },
    Symptom {
        name: "connection reset",
        meaning: "the peer refused a request, or closed the connection: look for its own first error",
        is_consequence: true,
        words: &[
            "connection reset by remote peer",
            "ucs_err_connection_reset",
            "nixl_err_remote_disconnect",
            "connection reset by peer",
            "connection closed by peer",
        ],
    },
    Symptom {
        name: "remote error",
        meaning: "a call failed because the network or a peer did: look for the peer's own first error",
        is_consequence: true,
        words: &["ncclremoteerror"],
    },
    Symptom {
        name: "RDMA timeout",
        meaning: "a transfer to this peer was not completed in time: look for drops, the link, and the peer",
        is_consequence: false,
        words: &["timed out rdma with", "rdma has timed out for", "timed out tx"],
    },
    Symptom {
        name: "completion timeout",
        meaning: "the adapter has not completed a request in time: it is not answered, or it repeats it",
        is_consequence: false,
        words: &["poll_cq timeout"],
    },
    Symptom {
        name: "keep-alive expired",
        meaning: "the target has heard nothing of this host for the keep-alive time: look for drops, the link, and whether the host lives",
        is_consequence: false,
        words: &["keep-alive timer ("],
    },
    Symptom {
        name: "connection failed",
        meaning: "the connection was not established: look whether the peer's program listens, for the route, and for drops",
        is_consequence: false,
        words: &["rdma connection establishment failed"],
    },
    Symptom {
        name: "error recovery",
        meaning: "the host closes its connections and connects again: look for the first error before it",
        is_consequence: true,
        words: &["starting error recovery"],
    },
    Symptom {
        name: "connection closed",
        meaning: "the connection to this peer ended",
        is_consequence: false,
        words: &[" closed (-"],
    },
];

/// A request of NVMe over RDMA that was not answered.
static REQUEST_TIMEOUT: Symptom = Symptom {
    name: "request timeout",
    meaning: "the target did not answer a request in time: look for drops, the link, and whether the target's program lives",
    is_consequence: false,
    words: &[],
};

impl Symptom {
    /// True if a number beside its words is the connection manager's reason (IBTA 12.6.7.2), and no status of a completion.
    pub(super) fn has_reason(&self) -> bool {
        matches!(self.name, "connection rejected" | "peer unreachable")
    }

    /// The symptom whose words are in a text in small letters.
    pub(super) fn in_text(lower: &str) -> Option<&'static Self> {
        let by_words = SYMPTOMS
            .iter()
            .find(|symptom| symptom.words.iter().any(|words| lower.contains(words)));
        by_words.or_else(|| is_nvme_timeout(lower).then_some(&REQUEST_TIMEOUT))
    }
}

/// `nvme nvme0: I/O tag 12 (300c) opcode 0x2 (Read) QID 4 timeout`, or `I/O 12 QID 4 timeout` of older kernels (Linux
/// drivers/nvme/host/rdma.c). Those of NVMe over PCI go on behind `timeout`, and those over TCP have a type.
fn is_nvme_timeout(lower: &str) -> bool {
    lower.contains("nvme")
        && lower.contains("i/o ")
        && lower.contains(" qid ")
        && !lower.contains(" type ")
        && lower.trim_end().ends_with(" timeout")
}

/// Evidence that a line needs beside the words of a program, so that it is an error.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Nothing: these words are in errors alone.
    Nothing,
    /// The name, the words or the syndrome of a status, or of a symptom.
    Words,
    /// A status by name, words or number.
    Status,
}

/// Words in small letters that stand together in a line of a program, the first that fits counts.
///
/// Sources: those named with each program in [`super`].
const MARKS: [(Program, Need, &[&str]); 76] = [
    (
        Program::Mlx5,
        Need::Nothing,
        &["mlx5: ", ": got completion with error:"],
    ),
    (
        Program::Mvapich,
        Need::Status,
        &["got completion with error", "vendor code"],
    ),
    (Program::Mvapich, Need::Status, &["wc.status=", "msg from"]),
    (Program::Mvapich, Need::Status, &["wc.status", "handle_cqe"]),
    (Program::Nccl, Need::Nothing, &["got cqe with error"]),
    (Program::Nccl, Need::Status, &["got completion", "net/ib"]),
    (Program::Nccl, Need::Status, &["got completion from peer"]),
    (
        Program::Nccl,
        Need::Status,
        &["got completion with error", "opcode"],
    ),
    (
        Program::Nccl,
        Need::Status,
        &["got completion with status", "opcode"],
    ),
    (
        Program::Libfabric,
        Need::Nothing,
        &["net/ofi", "completed with error"],
    ),
    (Program::Libfabric, Need::Status, &["cq_readerr"]),
    (Program::Libfabric, Need::Status, &["prov_err"]),
    (Program::Libfabric, Need::Status, &["provider errno"]),
    (Program::Libfabric, Need::Words, &["libfabric:"]),
    (
        Program::OpenMpi,
        Need::Status,
        &["error polling", "cq with status"],
    ),
    (Program::OpenMpi, Need::Words, &["btl_openib"]),
    (
        Program::OpenMpi,
        Need::Nothing,
        &["retry count between two mpi processes"],
    ),
    (
        Program::OpenMpi,
        Need::Nothing,
        &["\"receiver not ready\" retry count"],
    ),
    (Program::Perftest, Need::Status, &["failed status", "wr_id"]),
    (Program::Perftest, Need::Nothing, &["completion with error at "]),
    (Program::Perftest, Need::Nothing, &["completion wth error at "]),
    (Program::Nvshmem, Need::Status, &["ibv_poll_cq failed, status"]),
    (Program::Nvshmem, Need::Words, &["nvshmem"]),
    (Program::Nvshmem, Need::Words, &["ibrc"]),
    (Program::Nvshmem, Need::Words, &["ibgda"]),
    (Program::Mooncake, Need::Words, &["process failed for slice"]),
    (Program::Mooncake, Need::Words, &["mooncake"]),
    (Program::Nixl, Need::Words, &["nixl"]),
    (
        Program::PyTorch,
        Need::Nothing,
        &["watchdog caught collective operation timeout"],
    ),
    (Program::PyTorch, Need::Nothing, &["timeout at nccl work"]),
    (
        Program::PyTorch,
        Need::Nothing,
        &["some nccl operations have failed or timed out"],
    ),
    (Program::PyTorch, Need::Words, &["ncclremoteerror"]),
    (Program::Gloo, Need::Words, &["gloo/transport/tcp"]),
    (Program::Gloo, Need::Words, &["gloo/transport/ibverbs"]),
    (Program::Lustre, Need::Status, &["kiblnd_", "failed"]),
    (Program::Lustre, Need::Words, &["o2ib"]),
    (Program::Ceph, Need::Status, &["wce status("]),
    (Program::Ceph, Need::Words, &["rdmastack"]),
    (Program::StorageScale, Need::Words, &["verbs rdma", "error"]),
    (Program::Spdk, Need::Status, &["cq error on "]),
    (Program::Spdk, Need::Words, &["error on qp ", "wqe["]),
    (Program::Spdk, Need::Words, &["spdk"]),
    (Program::Spdk, Need::Words, &["nvme_rdma", "*error*"]),
    (Program::RpcRdma, Need::Words, &["rpcrdma"]),
    (Program::RpcRdma, Need::Words, &["svcrdma"]),
    (Program::RpcRdma, Need::Words, &["xprtrdma"]),
    (Program::Kernel, Need::Words, &["ib_srp"]),
    (Program::Kernel, Need::Status, &["iser", "failure"]),
    (Program::Kernel, Need::Status, &["rds/ib", "had status"]),
    (Program::Kernel, Need::Status, &["failed ", " event ", "vend_err"]),
    (Program::Kernel, Need::Words, &["rtrs"]),
    (Program::Kernel, Need::Words, &["smb_direct"]),
    (Program::Kernel, Need::Status, &["smbd", "status"]),
    (Program::Kernel, Need::Status, &["wc->status", "opcode"]),
    (Program::NvmeKernel, Need::Status, &["cqe ", "failed with status"]),
    (Program::NvmeKernel, Need::Words, &["nvme"]),
    (Program::Ucx, Need::Words, &["ib_mlx5_log.c"]),
    (Program::Ucx, Need::Nothing, &["(synd 0x", "vend 0x"]),
    (Program::Ucx, Need::Words, &["completion with error:", "[qpn"]),
    (Program::Ucx, Need::Nothing, &[" qp 0x", " wqe[", "rqpn"]),
    (Program::Ucx, Need::Nothing, &[" qp 0x", " wqe[", "ib_mlx5_log.c"]),
    (Program::Ucx, Need::Words, &["ucx"]),
    (Program::Ucx, Need::Words, &["uct_"]),
    (Program::Ucx, Need::Words, &["ucp_"]),
    (Program::Ucx, Need::Words, &["ud_ep.c"]),
    (Program::Mlx5, Need::Status, &["wc error:", "message:"]),
    (Program::Mlx5, Need::Nothing, &["dump error cqe"]),
    (Program::Mlx5, Need::Words, &["(qpn ", "vendor syndrome"]),
    (Program::Verbs, Need::Words, &["rdma_cm_event_"]),
    (Program::Verbs, Need::Status, &["vendor_err", "status"]),
    (Program::Verbs, Need::Status, &["vendor err", "status"]),
    (Program::Verbs, Need::Status, &["wc.status"]),
    (Program::Verbs, Need::Status, &["wc status"]),
    (Program::Verbs, Need::Status, &["wc_status"]),
    (Program::Verbs, Need::Status, &["work completion", "status"]),
    (Program::Verbs, Need::Status, &["ibv_poll_cq", "status"]),
];

/// Words that a program prints around a status of libibverbs, so that "local access error" is one.
const CONTEXT: [&str; 12] = [
    "ibv_",
    "ib_wc",
    "rdma",
    "cqe",
    "completion",
    "wc.",
    "wc error",
    "vendor",
    "qp_num",
    "qpn",
    "wr_id",
    "work request",
];

/// The program of a line, and whether its words alone say that it is an error; `None`: it is of none, or no error. `lower` is the line in
/// small letters.
pub(super) fn program(text: &str, lower: &str, status: Option<u32>) -> Option<(Program, bool)> {
    let worded = Status::named_in(text).or_else(|| Status::worded_in(lower));
    let has_words = worded.is_some() || Symptom::in_text(lower).is_some() || lower.contains("synd");
    let marked = MARKS.iter().find(|(_, need, words)| {
        let is_enough = match need {
            Need::Nothing => true,
            Need::Words => has_words,
            Need::Status => has_words || status.is_some(),
        };
        is_enough && words.iter().all(|words| lower.contains(words))
    });
    if let Some((program, need, _)) = marked {
        return Some((*program, *need == Need::Nothing));
    }
    if is_of_driver(lower) {
        return Some((Program::Mlx5, true));
    }
    let is_sure =
        Status::named_in(text).is_some() || worded.is_some_and(|status| status.is_unmistakable_in(lower));
    let has_context = CONTEXT.iter().any(|words| lower.contains(words));
    (is_sure || worded.is_some() && has_context).then_some((Program::Verbs, true))
}

/// `mlx5_0/1: QP 139729 error: remote access error (0x88 0x0 0x0)`.
fn is_of_driver(lower: &str) -> bool {
    let Some((before, rest)) = lower.split_once(": qp ") else {
        return false;
    };
    let port = before.rsplit('/').next().unwrap_or_default();
    let number = rest.split(' ').next().unwrap_or_default();
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    before.contains('/')
        && digits(port)
        && digits(number)
        && rest.contains(" error: ")
        && rest.contains("(0x")
}
