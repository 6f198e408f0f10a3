//! The words by which a line of each program is recognized.

use super::program::Program;
use super::status::Status;
use super::symptom::Symptom;

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
const MARKS: [(Program, Need, &[&str]); 161] = [
    (Program::Nccl, Need::Nothing, &["test nccl failure"]),
    (Program::Nccl, Need::Nothing, &["test cuda failure"]),
    (Program::Nccl, Need::Words, &["gpu direct rdma disabled"]),
    (Program::Libfabric, Need::Words, &["fi_getinfo"]),
    (Program::OpenMpi, Need::Words, &["open mpi failed to tcp connect"]),
    (
        Program::OpenMpi,
        Need::Words,
        &["(openib) btl failed to initialize"],
    ),
    (
        Program::OpenMpi,
        Need::Words,
        &["error initializing an openfabrics device"],
    ),
    (Program::RdmaCore, Need::Words, &["libibverbs: warning"]),
    (Program::Kernel, Need::Words, &["rdma cma: "]),
    (Program::Nccl, Need::Nothing, &["call to ibv_", " failed"]),
    (Program::Mpich, Need::Nothing, &["mpidi_ofi_", "failed"]),
    (Program::Mpich, Need::Words, &["mpidi_ofi"]),
    (Program::DeepEp, Need::Words, &["deepep"]),
    (Program::Uccl, Need::Status, &["rdma_io.cc"]),
    (Program::Uccl, Need::Status, &["uccl"]),
    (Program::Dpdk, Need::Status, &["mlx5_net: "]),
    (Program::Dpdk, Need::Words, &["mlx5_common"]),
    (
        Program::Ceph,
        Need::Nothing,
        &["connection between server and client not working"],
    ),
    (Program::RdmaCore, Need::Status, &["cq completion failed"]),
    (Program::RdmaCore, Need::Words, &["cma event"]),
    (Program::Verbs, Need::Status, &["ibv_wc_status"]),
    (Program::Mooncake, Need::Words, &["worker_pool.cpp"]),
    (Program::Nvshmem, Need::Nothing, &["ib_roce_get_version_num"]),
    (Program::Hns, Need::Status, &["hns3", "error cqe status"]),
    (Program::Mooncake, Need::Words, &["rdma_endpoint.cpp"]),
    (Program::Mooncake, Need::Words, &["rdma_context.cpp"]),
    (Program::Ceph, Need::Status, &["rdmastack", "work request"]),
    (Program::Ceph, Need::Words, &["infiniband", "modify_qp"]),
    (Program::Ceph, Need::Status, &["rdmaconnectedsocketimpl"]),
    (Program::Spark, Need::Words, &["rdmachannel"]),
    (Program::Spark, Need::Words, &["rdmanode"]),
    (Program::Spark, Need::Words, &["rdmashuffle"]),
    (Program::Spark, Need::Words, &["ucxshuffle"]),
    // `FetchFailed` of a shuffle without RDMA names none of these.
    (Program::Spark, Need::Words, &["fetchfailed", "shuffle.rdma"]),
    (Program::Spark, Need::Words, &["fetchfailed", "sparkrdma"]),
    (Program::Spark, Need::Words, &["fetchfailed", "ucx"]),
    (Program::Spark, Need::Words, &["fetchfailed", "rdma_cm"]),
    (Program::Spark, Need::Words, &["fetchfailed", "disni"]),
    (Program::Mvapich, Need::Nothing, &["desc error in msg to"]),
    (
        Program::Perftest,
        Need::Nothing,
        &["failed to modify qp", "to rt"],
    ),
    (Program::Perftest, Need::Nothing, &["couldn't allocate mr"]),
    (Program::Perftest, Need::Nothing, &["couldn't post "]),
    (
        Program::Perftest,
        Need::Nothing,
        &["couldn't get context for the device"],
    ),
    (Program::Perftest, Need::Nothing, &["couldn't create ", "qp"]),
    (Program::Perftest, Need::Nothing, &["couldn't listen to port"]),
    (
        Program::Perftest,
        Need::Nothing,
        &["unable to init the socket connection"],
    ),
    (
        Program::Perftest,
        Need::Nothing,
        &["unable to open file descriptor for socket connection"],
    ),
    (
        Program::Perftest,
        Need::Nothing,
        &["unable to find the infiniband/roce device"],
    ),
    (Program::Perftest, Need::Nothing, &["unable to perform rdma_"]),
    (
        Program::Perftest,
        Need::Nothing,
        &["failed to exchange data between server and clients"],
    ),
    (Program::Perftest, Need::Nothing, &["problems with warm up"]),
    (Program::Perftest, Need::Nothing, &["poll cq failed"]),
    (Program::Perftest, Need::Nothing, &["unexpected cm event bl"]),
    (Program::Perftest, Need::Words, &["couldn't connect to "]),
    (
        Program::Perftest,
        Need::Nothing,
        &["port number ", " state is down"],
    ),
    // The program's words stand before those of the library below it.
    (Program::Iser, Need::Words, &["isert"]),
    (Program::OpenMpi, Need::Words, &["pml_ucx"]),
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
    (Program::LibfabricEfa, Need::Words, &["libfabric:", "efa"]),
    (Program::Libfabric, Need::Words, &["libfabric:"]),
    (Program::Nccl, Need::Words, &["nccl warn"]),
    (Program::Nccl, Need::Words, &["net/ib"]),
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
    (Program::Nvshmem, Need::Status, &["ibgda"]),
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
    (Program::PyTorch, Need::Words, &["ncclsystemerror"]),
    (Program::PyTorch, Need::Words, &["processgroupnccl"]),
    (Program::PyTorch, Need::Words, &["nccl error"]),
    (Program::Gloo, Need::Words, &["pair.cc"]),
    (Program::Gloo, Need::Words, &["gloo/transport/tcp"]),
    (Program::Gloo, Need::Words, &["gloo/transport/ibverbs"]),
    (Program::Lustre, Need::Status, &["kiblnd_", "failed"]),
    (Program::Lustre, Need::Words, &["o2ib"]),
    (Program::Ceph, Need::Status, &["wce status("]),
    (Program::Ceph, Need::Words, &["rdmastack"]),
    (Program::StorageScale, Need::Words, &["verbs rdma"]),
    (Program::Spdk, Need::Status, &["cq error on "]),
    (Program::Spdk, Need::Words, &["error on qp ", "wqe["]),
    (Program::Spdk, Need::Words, &["spdk"]),
    (Program::Spdk, Need::Words, &["nvmf_rdma_"]),
    (Program::Spdk, Need::Words, &["nvme_rdma", "*error*"]),
    (Program::RpcRdma, Need::Words, &["rpcrdma"]),
    (Program::RpcRdma, Need::Words, &["svcrdma"]),
    (Program::RpcRdma, Need::Words, &["xprtrdma"]),
    (Program::Srp, Need::Words, &["ib_srp"]),
    (Program::Iser, Need::Status, &["iser", "failure"]),
    (Program::Iser, Need::Words, &[" iser: "]),
    (Program::Rds, Need::Status, &["rds/ib", "had status"]),
    (Program::Dapl, Need::Status, &["dapl"]),
    (Program::Kernel, Need::Status, &["failed ", " event ", "vend_err"]),
    (Program::Rtrs, Need::Words, &["rtrs"]),
    (Program::SmbDirect, Need::Words, &["smb_direct"]),
    (Program::SmbDirect, Need::Words, &["smbdirect"]),
    // Samba has a program of this name.
    (Program::SmbDirect, Need::Words, &["cifs: ", "smbd"]),
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
    (Program::Mlx5, Need::Nothing, &["mlx5", "error cqe on cqn"]),
    (Program::Mlx5, Need::Words, &["mlx5", "vendor syndrome"]),
    (Program::Mlx5, Need::Words, &["mlx5_c"]),
    (Program::Bnxt, Need::Status, &["wr_id[", "with status 0x"]),
    (Program::Bnxt, Need::Words, &["bnxt_"]),
    (Program::PyTorch, Need::Words, &["processgroupnccl", "got stuck"]),
    (Program::PyTorch, Need::Words, &["diststoreerror"]),
    (
        Program::OpenMpi,
        Need::Words,
        &["a process failed to create a queue pair"],
    ),
    (
        Program::Nccl,
        Need::Words,
        &["nccl info", "socketprogress: connection closed"],
    ),
    (Program::Irdma, Need::Words, &["abnormal ae_id"]),
    (Program::Irdma, Need::Words, &["irdma"]),
    (Program::Irdma, Need::Words, &[" ice "]),
    (Program::Irdma, Need::Words, &[" i40e "]),
    (Program::Nccl, Need::Words, &["net/socket"]),
    (Program::Kernel, Need::Words, &["netdev watchdog"]),
    (Program::Kernel, Need::Words, &["nfs: server"]),
    (Program::Kernel, Need::Words, &["cifs: "]),
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

/// The program of a line, whether its words alone say that it is an error, and whether no more is known than that something failed; `None`:
/// it is of none, or no error. `lower` is the line in small letters.
pub(super) fn program(text: &str, lower: &str, status: Option<u32>) -> Option<(Program, bool, bool)> {
    let worded = Status::named_in(text).or_else(|| Status::worded_in(lower));
    let has_words = worded.is_some() || Symptom::in_text(lower).is_some() || lower.contains("synd");
    let marked = MARKS.iter().find(|(_, need, words)| {
        let is_enough = match need {
            Need::Nothing => true,
            Need::Words => has_words,
            Need::Status => has_words || status.is_some(),
        };
        is_enough && words.iter().all(|words| has_words_of(lower, words))
    });
    if let Some((program, need, _)) = marked {
        return Some((*program, *need == Need::Nothing, false));
    }
    if is_of_driver(lower) {
        return Some((Program::Mlx5, true, false));
    }
    // A driver's line is its own, whatever words of libibverbs it has.
    if worded.is_none()
        && let Some(found) = by_failure(lower)
    {
        return Some((found, true, true));
    }
    let is_sure =
        Status::named_in(text).is_some() || worded.is_some_and(|status| status.is_unmistakable_in(lower));
    let has_context = CONTEXT.iter().any(|words| lower.contains(words));
    (is_sure || worded.is_some() && has_context).then_some((Program::Verbs, true, false))
}

/// True if a line has these words. Those that begin with a space may begin the line, too.
fn has_words_of(lower: &str, words: &str) -> bool {
    let begins = words
        .strip_prefix(' ')
        .is_some_and(|words| lower.starts_with(words));
    begins || lower.contains(words)
}

/// Words of drivers and programs that no other line has. A line of theirs that says that something failed is an error, whatever it is.
///
/// Sources: names of modules in Linux `drivers/infiniband/hw` and `drivers/net/ethernet`, prefixes of `dev_err` and `ibdev_err`; perftest
/// `src/perftest_resources.c` and `perftest_communication.c`; rdma-core `librdmacm/examples/rping.c`, `libibverbs/examples`.
const FAMILIES: [(Program, &[&str]); 56] = [
    (Program::Ucx, &["ucx  error"]),
    (Program::Ucx, &["ucx error"]),
    (Program::Mlx5, &["mlx5_core"]),
    (Program::Mlx5, &["infiniband mlx5_"]),
    (Program::Mlx4, &["mlx4_"]),
    (Program::Bnxt, &["bnxt_"]),
    (Program::Irdma, &["irdma"]),
    (Program::Irdma, &[" ice 0"]),
    (Program::Hns, &["hns3 "]),
    (Program::Hns, &["hns_"]),
    (Program::Efa, &["efa_"]),
    (Program::Efa, &["efa 0000"]),
    (Program::Cxgb4, &["cxgb4"]),
    (Program::Ionic, &[" ionic"]),
    (Program::Rxe, &["rdma_rxe"]),
    (Program::Rxe, &[" rxe"]),
    (Program::Driver, &["qedr"]),
    (Program::Driver, &["erdma"]),
    (Program::Driver, &[" mana "]),
    (Program::Siw, &[" siw"]),
    (Program::Dpdk, &["mlx5_net"]),
    (Program::Lustre, &["o2iblnd"]),
    (Program::Lustre, &["lustreerror"]),
    (Program::Lustre, &["lneterror"]),
    (Program::StorageScale, &["verbs rdma"]),
    (Program::Mpich, &["mpich error"]),
    (Program::Mpich, &["abort(", "mpi error"]),
    (Program::NvmeKernel, &["nvmet_rdma"]),
    (Program::RpcRdma, &["rpcrdma"]),
    (Program::RpcRdma, &["svcrdma"]),
    (Program::Spdk, &["nvme_rdma", "*error*"]),
    (Program::Spdk, &["nvmf_rdma_", "*error*"]),
    (Program::Nvshmem, &["nvshmem"]),
    (Program::Nvshmem, &["ibgda"]),
    (Program::Nvshmem, &["ibrc.cpp"]),
    (Program::Mooncake, &["mooncake"]),
    (Program::Mooncake, &["rdma_transport.cpp"]),
    (Program::Mooncake, &["rdma_endpoint.cpp"]),
    (Program::Mooncake, &["rdma_context.cpp"]),
    (Program::Nccl, &["nccl warn", "net/ib"]),
    (Program::Nccl, &["nccl warn", "net_ib"]),
    (Program::Gloo, &["gloo/transport"]),
    (Program::OpenMpi, &["pml_ucx.c"]),
    (Program::OpenMpi, &["mtl_ofi"]),
    (Program::OpenMpi, &["btl_openib"]),
    (Program::OpenMpi, &["openfabrics device"]),
    (Program::Nixl, &["nixl"]),
    (Program::Ceph, &["rdmastack"]),
    (Program::Ceph, &["rdmaconnectedsocketimpl"]),
    (Program::Ceph, &[" -1 infiniband "]),
    (Program::Iser, &[" isert"]),
    (Program::Iser, &[" iser: "]),
    (Program::Srp, &["ib_srp"]),
    (Program::SmbDirect, &["smb_direct"]),
    (Program::SmbDirect, &["smbdirect"]),
    (Program::SmbDirect, &["cifs: ", "smbd_"]),
];

/// Words that say that something failed, each a whole word.
const FAILURES: [&str; 28] = [
    "failed",
    "failure",
    "fatal",
    "error",
    "errors",
    "stall",
    "stalled",
    "timeout",
    "timedout",
    "unable",
    "couldn't",
    "cannot",
    "aborted",
    "lost",
    "refused",
    "rejected",
    "unreachable",
    "insufficient",
    "overheated",
    "inactive",
    "invalid",
    "violation",
    "wrong",
    "bad",
    "corrupted",
    "disconnect",
    "disconnected",
    "hung",
];
/// Phrases that say so, and phrases of lines that are none although they have such a word.
const FAILED_PHRASES: [&str; 10] = [
    "no route to",
    "was reset",
    "timed out",
    "link down",
    "link is down",
    "closed connection",
    "not responding",
    "ae qpid",
    "_error on ",
    "high temperature",
];
const HEALTHY_PHRASES: [&str; 17] = [
    // It goes on from the line of `PCIe Bus Error`, which has the severity (Linux drivers/pci/pcie/aer.c).
    "error status/mask=",
    "no error",
    "0 error",
    "errors: 0",
    "success",
    "recovered",
    "restored",
    "resumed",
    "link up",
    "link is up",
    " info ",
    "[info]",
    "<info>",
    "enabled",
    "supported",
    " set to ",
    " set by ",
];

/// The program or driver whose line says that something failed; `None`: it is of none of them, or nothing failed.
fn by_failure(lower: &str) -> Option<Program> {
    let (program, _) = FAMILIES
        .iter()
        .find(|(_, words)| words.iter().all(|words| has_words_of(lower, words)))?;
    let is_word = |glyph: char| glyph.is_ascii_alphanumeric() || glyph == '_' || glyph == '\'';
    let has_word = || {
        lower
            .split(|glyph| !is_word(glyph))
            .any(|word| FAILURES.contains(&word))
    };
    let has_phrase = |phrases: &[&str]| phrases.iter().any(|phrase| has_words_of(lower, phrase));
    ((has_phrase(&FAILED_PHRASES) || has_word()) && !has_phrase(&HEALTHY_PHRASES)).then_some(*program)
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
