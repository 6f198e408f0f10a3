//! Traces of ranks that are merged with a capture, and their collectives with what the network did in each.

use std::borrow::Cow;

use roce_wire::Address;

use crate::events::names;
use crate::table::table;
use crate::{FlowId, Time};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    TraceRow, TraceColumns, "traces", "One document of a job that `--merge` named: a trace or another one, and how its clock relates to the capture's.";
    trace: u32, "", "Number of the trace, from 0, in the order of the files.";
    file: Cow<'static, str>, "", "The file.";
    form: TraceSource, "", "Writer: kineto (PyTorch's profiler), nccl (NCCL's profiler plugin), inspector (NCCL's Inspector), inspector_metrics (the same as Prometheus text), ras (NCCL's RAS), flight_recorder (PyTorch's).";
    rank: Option<u32>, "", "The rank. Absent: the trace does not say.";
    address: Option<Address>, "", "Address of the rank's host, as `--merge ADDRESS=FILE` names it. Absent: all captured flows count.";
    clock: TraceClock, "", "How the clocks are related: stated (the trace says its epoch), traffic (found from bursts in the traffic), none (the document has no time of a collective).";
    offset_ns: Option<f64>, "ns", "What is added to the trace's times to get the capture's, at the middle of the collectives. With a stated epoch: its difference from the capture's clock, as the traffic shows it; absent where nothing shows it.";
    drift: Option<f64>, "", "Rate of the capture's clock against the trace's, less 1. Absent: not measured; the rates count as equal.";
    uncertainty_ns: Option<u64>, "ns", "The offset is right to within this. Absent: a stated epoch that the traffic does not confirm.";
    matched: u64, "", "Collectives whose ends meet the end of a burst in the traffic.";
    calls: u64, "", "Collectives of the trace that are rows of `collective_calls`.";
    outside: u64, "", "Collectives before or after the captured time: no rows.";
    left_out: u64, "", "Collectives beyond those that are kept: no rows.";
    send_gpu_wait_ns: Option<u64>, "ns", "Time in which NCCL's proxy waited for data of its GPU, summed over all sends. Absent: no network events (`NCCL_PROFILE_EVENT_MASK`).";
    send_peer_wait_ns: Option<u64>, "ns", "Time in which it waited for credits. Absent as `send_gpu_wait_ns`.";
    send_wait_ns: Option<u64>, "ns", "Time in which it waited for the network to be done. Absent as `send_gpu_wait_ns`.";
}

names! {
    /// Writer of a trace.
    TraceSource {
        /// PyTorch's profiler (libkineto), in Chrome's format.
        #[default]
        Kineto = "kineto",
        /// The profiler plugin that NCCL has as an example.
        Nccl = "nccl",
        /// NCCL's Inspector.
        Inspector = "inspector",
        /// NCCL's Inspector, as metrics for Prometheus.
        InspectorMetrics = "inspector_metrics",
        /// NCCL's service for reliability, availability and serviceability.
        Ras = "ras",
        /// PyTorch's flight recorder.
        FlightRecorder = "flight_recorder",
    }
}

names! {
    /// Relation of a trace's clock to the capture's.
    TraceClock {
        /// The trace says at which time since the Unix epoch it begins.
        #[default]
        Stated = "stated",
        /// Collectives were compared with bursts in the traffic.
        Traffic = "traffic",
        /// The document has no time of a collective.
        None = "none",
    }
}

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    CollectiveCallRow, CollectiveCallColumns, "collective_calls", "One collective at one rank, from a trace, and what the network did in its time.";
    trace: u32, "", "Number of the trace in `traces`.";
    rank: Option<u32>, "", "The rank. Absent: the trace does not say.";
    communicator: Option<Cow<'static, str>>, "", "Process group (Kineto) or hash of the communicator (NCCL). Absent: the trace does not say.";
    kind: Cow<'static, str>, "", "The operation: AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast, Reduce, Send, Recv, SendRecv, or its name in the trace.";
    message_bytes: Option<u64>, "bytes", "Size of the message: the larger one of what goes in and what comes out. Absent: the trace does not say.";
    ranks: Option<u32>, "", "Ranks of the communicator. Absent: the trace does not say.";
    sequence: Option<u64>, "", "Number of the collective in its communicator, which counts for each operation. Absent: the trace does not say.";
    start_time: Time, "ns", "Start, on the capture's clock.";
    end_time: Time, "ns", "End, on the capture's clock.";
    duration_ns: u64, "ns", "Length, by the trace's clock.";
    median_ns: Option<u64>, "ns", "Median length of the same kind, size and communicator in the same trace. Absent: there are too few.";
    network_bytes: Option<u64>, "bytes", "Payload captured meanwhile on the connections that carry the collectives of this kind and communicator: those with payload in half of them. Absent: the collective is shorter than a bin, so that none is its own.";
    ce: Option<u64>, "packets", "Data packets with CE meanwhile. Absent as `network_bytes`.";
    cnp: Option<u64>, "packets", "CNPs meanwhile. Absent as `network_bytes`.";
    retransmitted_packets: Option<u64>, "packets", "Retransmissions meanwhile. Absent as `network_bytes`.";
    busy_ns: Option<u64>, "ns", "Time from the first to the last bin with payload meanwhile. Absent: there was none.";
    slowest_flow: Option<FlowId>, "", "Connection with the lowest rate, from its first to its last bin, of those that carried at least half as much as the median one. Absent: no connection carried payload.";
    slowest: Option<Cow<'static, str>>, "", "Its name, an expression for `--flow`. Absent as `slowest_flow`.";
    slowest_rate: Option<f64>, "bit/s", "Its rate. Absent as `slowest_flow`.";
    episode: Option<u32>, "", "The episode that took most of its time, among those that name one of its connections or a receiver of them. Absent: none.";
    is_slowed: bool, "", "True if it took longer than its equals and `collective.slowed` says that the episode is the reason.";
}
