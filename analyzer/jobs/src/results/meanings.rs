//! Meanings of remarks, by their names.

/// Each name that a remark has, with its meaning.
pub const REMARK_MEANINGS: &[(&str, &str)] = &[
    (
        "bench.disagrees",
        "The rates of a line of the all-reduce benchmark do not follow from each other: the line was cut or changed.",
    ),
    (
        "iperf3.failed",
        "iperf3 says that the test failed: its result is none.",
    ),
    (
        "nccl.completion_error",
        "A program reported a failed request, a failed connection or an event. Its status or words say where to look first.",
    ),
    (
        "nccl.disagrees",
        "Numbers of a line of nccl-tests do not follow from each other: algbw is size over time, and busbw is algbw times the factor of its operation \
         (nccl-tests, doc/PERFORMANCE.md).",
    ),
    (
        "nccl.no_device",
        "NCCL found no RDMA device, and uses TCP: look at the devices of the container, NCCL_IB_HCA and NCCL_IB_DISABLE.",
    ),
    (
        "nccl.no_gpudirect",
        "Connections copy over host memory, without GPUDirect RDMA: look for nvidia_peermem or DMA-BUF, and the way from GPU to adapter.",
    ),
    (
        "nccl.socket",
        "Ranks are connected by TCP sockets, not by RDMA: look at NCCL_IB_HCA, NCCL_IB_DISABLE and the devices of both ends.",
    ),
    (
        "nccl.warning",
        "A warning of NCCL's log that has no meaning here.",
    ),
    (
        "nccl.wrong",
        "nccl-tests found wrong values: the data that arrived is not what was sent.",
    ),
    (
        "osu.wrong",
        "A benchmark of OSU found wrong values: the data that arrived is not what was sent.",
    ),
    (
        "perftest.disagrees",
        "Numbers of a line of perftest do not follow from each other: the line was cut or changed.",
    ),
    (
        "perftest.failed",
        "perftest says that the test failed: its result is none, or of a part of the test.",
    ),
    ("perftest.no_rate", "perftest printed a rate of zero, or none."),
    (
        "perftest.server",
        "A server of perftest that prints no result: that of its client counts.",
    ),
    (
        "perftest.unit",
        "Neither MB/s nor Gbit/s fit the message rate of a document of perftest: the unit of its rate is not known.",
    ),
    (
        "pytorch.disagrees",
        "The rates of a line of PyTorch's benchmark do not follow from each other.",
    ),
    (
        "pytorch.ranks",
        "The number of ranks is not in the text: the rate of the links is not known without `--world`.",
    ),
    (
        "results.cut",
        "The text ends within a line or a document: what was cut is no result.",
    ),
    (
        "results.left_out",
        "A text has more results, remarks or edges than are listed.",
    ),
    (
        "results.too_large",
        "A document is larger than what is read of one.",
    ),
];
