//! The programs whose errors are known.

/// A program, or the part of the kernel, that reports an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Program {
    /// NVIDIA's NCCL, and RCCL.
    Nccl,
    /// UCX.
    Ucx,
    /// libfabric, and NCCL's plugin over it.
    Libfabric,
    /// libfabric's provider for Amazon's adapters.
    LibfabricEfa,
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
    /// The drivers of Broadcom's adapters.
    Bnxt,
    /// The drivers of Intel's adapters.
    Irdma,
    /// The drivers of ConnectX-3 and older.
    Mlx4,
    /// The drivers of HiSilicon's adapters.
    Hns,
    /// The driver of Amazon's Elastic Fabric Adapter.
    Efa,
    /// The drivers of Chelsio's adapters.
    Cxgb4,
    /// The drivers of AMD Pensando's adapters.
    Ionic,
    /// Soft-RoCE.
    Rxe,
    /// Soft-iWARP.
    Siw,
    /// Drivers of other adapters.
    Driver,
    /// DPDK's drivers of NVIDIA's adapters.
    Dpdk,
    /// MPICH and what is made of it: Intel MPI, Cray MPICH.
    Mpich,
    /// DeepEP.
    DeepEp,
    /// UCCL.
    Uccl,
    /// Programs of rdma-core: rping, ibv_rc_pingpong and their like.
    RdmaCore,
    /// The kernel's iSCSI over RDMA, initiator and target.
    Iser,
    /// The kernel's SCSI over RDMA, initiator and target.
    Srp,
    /// The kernel's Reliable Datagram Sockets.
    Rds,
    /// The kernel's block devices over RDMA.
    Rtrs,
    /// The kernel's SMB Direct, client and server.
    SmbDirect,
    /// DAPL, as Intel MPI uses it.
    Dapl,
    /// Other users of RDMA in the kernel, such as IP over InfiniBand.
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
    /// Shuffles of Apache Spark over RDMA: SparkRDMA, and those over UCX.
    Spark,
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
            Self::LibfabricEfa => "libfabric over EFA",
            Self::OpenMpi => "Open MPI",
            Self::Mvapich => "MVAPICH",
            Self::Perftest => "perftest",
            Self::Nvshmem => "NVSHMEM",
            Self::Mooncake => "Mooncake",
            Self::Nixl => "NIXL",
            Self::Spdk => "SPDK",
            Self::NvmeKernel => "NVMe of the kernel",
            Self::RpcRdma => "NFS over RDMA of the kernel",
            Self::Mlx5 => "the mlx5 driver",
            Self::Mlx4 => "the mlx4 driver",
            Self::Bnxt => "the bnxt driver",
            Self::Irdma => "the irdma driver",
            Self::Hns => "the hns driver",
            Self::Efa => "the efa driver",
            Self::Cxgb4 => "the cxgb4 driver",
            Self::Ionic => "the ionic driver",
            Self::Rxe => "the rxe driver",
            Self::Siw => "the siw driver",
            Self::Driver => "the driver of the adapter",
            Self::Dpdk => "DPDK's mlx5 driver",
            Self::Mpich => "MPICH (MPI)",
            Self::DeepEp => "DeepEP",
            Self::Uccl => "UCCL",
            Self::RdmaCore => "a program of rdma-core",
            Self::Iser => "iSER of the kernel",
            Self::Srp => "SRP of the kernel",
            Self::Rds => "RDS of the kernel",
            Self::Rtrs => "RTRS of the kernel",
            Self::SmbDirect => "SMB Direct of the kernel",
            Self::Dapl => "DAPL",
            Self::Kernel => "the kernel",
            Self::PyTorch => "PyTorch",
            Self::Gloo => "Gloo",
            Self::Lustre => "Lustre",
            Self::Ceph => "Ceph",
            Self::StorageScale => "IBM Storage Scale",
            Self::Spark => "Spark over RDMA",
            Self::Verbs => "a program over libibverbs",
        }
    }
}
