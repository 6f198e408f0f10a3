//! Errors that programs report of their connections: one reader for all, with the statuses of libibverbs translated once.
//!
//! Sources of the forms:
//! - NCCL: NVIDIA/nccl, `src/transport/net_ib.cc`, since 2.29 `src/transport/net_ib/p2p.cc`. To 2.11 `Got completion with error 12, opcode 1,
//!   len 0, vendor err 129`; to 2.20 with `from peer 10.0.0.2<43100>`, in 2.20 `(Send) localGid A remoteGid B`; then `with status=12 opcode=0
//!   len=0 vendor err 129 (Send) localGid A remoteGidsB hca mlx5_0`; about 2.27 on `with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0)
//!   reqSize=0 vendor_err=129 req_type=Send`; 2.29 on before it `Got CQE with error (devIndex=0, ..., qp_num=279)`. Forks mix them.
//! - UCX: openucx/ucx, `src/uct/ib/mlx5/ib_mlx5_log.c`, `src/uct/ib/rc/verbs/rc_verbs_iface.c`, `src/uct/ib/ud/base/ud_ep.c`.
//! - libfabric: ofiwg/libfabric, `fabtests/include/shared.h`, `prov/verbs`; aws/aws-ofi-nccl.
//! - Open MPI: open-mpi/ompi, `opal/mca/btl/openib/btl_openib_component.c` and `help-mpi-btl-openib.txt`.
//! - MVAPICH2: `src/mpid/ch3/channels/mrail/src/gen2/ibv_channel_manager.c`.
//! - perftest: linux-rdma/perftest, `src/perftest_resources.h` (`NOTIFY_COMP_ERROR_SEND`).
//! - NVSHMEM: `src/modules/transport/ibrc/ibrc.cpp`, `ibgda_device.cuh`.
//! - Mooncake: kvcache-ai/Mooncake, `rdma_transport/worker_pool.cpp`; NIXL: ai-dynamo/nixl.
//! - SPDK: `lib/nvme/nvme_rdma.c`, `lib/nvmf/rdma.c`, `lib/mlx5`.
//! - Linux: `drivers/nvme/host/rdma.c`, `drivers/nvme/target/rdma.c`, `net/sunrpc/xprtrdma`, `drivers/infiniband/hw/mlx5/{cq,qp}.c`,
//!   `drivers/infiniband/ulp`, `net/rds/ib_send.c`, `fs/smb`.
//! - PyTorch: `ProcessGroupNCCL.cpp`; Gloo: `gloo/transport/ibverbs/pair.cc`; Lustre: `lnet/klnds/o2iblnd`; Ceph: `src/msg/async/rdma`.

mod adapter_symptoms;
mod connection_symptoms;
mod drivers;
mod fields;
mod marks;
mod program;
mod reader;
mod recognition;
mod report;
mod status;
mod symptom;

pub use program::Program;
pub use reader::ErrorReader;
pub use report::{ErrorReport, report};
pub use status::{STATUSES, Side, Status};
pub use symptom::Symptom;

/// The errors in a text of a few lines.
pub fn reports(text: &str) -> Vec<ErrorReport> {
    let mut reader = ErrorReader::default();
    for (at, line) in text.lines().enumerate() {
        reader.line(line, 0, at + 1);
    }
    reader.finish().0
}

/// True if a text has a line that reports an error.
pub fn has_error(text: &str) -> bool {
    text.lines().any(|line| report(line).is_some())
}

#[cfg(test)]
mod tests;
