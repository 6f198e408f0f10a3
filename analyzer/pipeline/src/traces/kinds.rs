//! Names of collectives and data types, as PyTorch, NCCL and RCCL write them.

/// Names of PyTorch's collectives (`record_param_comms` of torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp), in lower case without
/// underscores, and of NCCL's functions. The first entry that a name begins with is its kind.
const KINDS: [(&str, &str); 17] = [
    ("allreduce", "AllReduce"),
    ("allgather", "AllGather"),
    ("reducescatter", "ReduceScatter"),
    ("alltoall", "AllToAll"),
    ("all2all", "AllToAll"),
    ("broadcast", "Broadcast"),
    ("sendrecv", "SendRecv"),
    ("send", "Send"),
    ("recv", "Recv"),
    ("reduce", "Reduce"),
    ("scatter", "Scatter"),
    ("gather", "Gather"),
    ("barrier", "Barrier"),
    ("batchisendirecv", "SendRecv"),
    ("coalesced", "Coalesced"),
    ("isend", "Send"),
    ("irecv", "Recv"),
];

/// The kind of a collective by its name; `None`: it is not known.
pub(super) fn kind(name: &str) -> Option<&'static str> {
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    let found = KINDS.iter().find(|(begin, _)| plain.starts_with(begin));
    found.map(|(_, kind)| *kind)
}

/// The kind of a collective by its kernel: `ncclKernel_AllReduce_RING_LL_Sum_float(...)` to NCCL 2.18,
/// `ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)` from 2.19 on; RCCL's `ncclDevKernel_Generic` does not say: its kind is empty. `None`: it
/// is no kernel of theirs.
pub(super) fn kernel(name: &str) -> Option<&'static str> {
    let rest = ["ncclDevKernel", "ncclKernel"]
        .into_iter()
        .find_map(|begin| name.strip_prefix(begin))?;
    Some(kind(rest).unwrap_or_default())
}

/// Bytes of an element: PyTorch's scalar types (c10/core/ScalarType.h) and NCCL's (`ncclDataType_t` in nccl.h).
pub(super) fn element_bytes(name: &str) -> Option<u64> {
    let plain = name.strip_prefix("nccl").unwrap_or(name).to_ascii_lowercase();
    Some(match plain.as_str() {
        "byte" | "char" | "bool" | "int8" | "uint8" | "float8e4m3" | "float8e5m2" => 1,
        "half" | "bfloat16" | "short" | "float16" => 2,
        "float" | "int" | "float32" | "int32" | "uint32" => 4,
        "double" | "long" | "float64" | "int64" | "uint64" => 8,
        other if other.starts_with("float8_") => 1,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_all_versions_are_told() {
        for (name, kind) in [
            (
                "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                "AllReduce",
            ),
            (
                "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
                "ReduceScatter",
            ),
            (
                "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
                "AllGather",
            ),
            (
                "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
                "AllReduce",
            ),
            (
                "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
                "SendRecv",
            ),
            ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", ""),
        ] {
            assert_eq!(kernel(name), Some(kind), "{name}");
        }
        for name in [
            "void gemm_kernel<float>",
            "nccl:all_reduce",
            "record_param_comms",
            "",
        ] {
            assert_eq!(kernel(name), None, "{name}");
        }
    }

    #[test]
    fn collectives_of_pytorch_and_nccl_are_told() {
        for (name, expected) in [
            ("allreduce", "AllReduce"),
            ("allreduce_coalesced", "AllReduce"),
            ("_allgather_base", "AllGather"),
            ("_reduce_scatter_base", "ReduceScatter"),
            ("reduce_scatter_tensor_coalesced", "ReduceScatter"),
            ("all_to_allv", "AllToAll"),
            ("send", "Send"),
            ("AllReduce", "AllReduce"),
            ("Reduce", "Reduce"),
        ] {
            assert_eq!(kind(name), Some(expected), "{name}");
        }
        assert_eq!(kind("init"), None);
        let bytes = [
            "Float",
            "BFloat16",
            "Half",
            "Long",
            "ncclFloat32",
            "ncclBfloat16",
            "ncclInt8",
            "ncclFloat8e4m3",
            "ComplexFloat",
        ];
        let expected = [
            Some(4),
            Some(2),
            Some(2),
            Some(8),
            Some(4),
            Some(2),
            Some(1),
            Some(1),
            None,
        ];
        assert_eq!(bytes.map(element_bytes), expected);
    }
}
