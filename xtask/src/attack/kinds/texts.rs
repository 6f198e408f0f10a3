//! Hostile files beside a capture: configurations, logs, documents of jobs and collectors.

use std::io::{self, Write};

use super::{FEW, Form, Kind, Memory, capture};

const fn file(
    name: &'static str,
    about: &'static str,
    (option, per_thousand, memory): (&'static str, u64, Memory),
    write: fn(u64, &mut dyn Write) -> io::Result<()>,
) -> Kind {
    Kind {
        per_thousand,
        form: Form::File(option, write),
        ..capture(name, about, memory, |_, _| Ok(()))
    }
}

#[rustfmt::skip]
pub(in super::super) const KINDS: &[Kind] = &[
    file("filter", "a filter of one test for each item", ("--config", 400, FEW), filter),
    file("configuration", "unknown keys, of which one is near", ("--config", 150, FEW), keys),
    file("training-log", "lines of steps", ("--training-log", 2_000, Memory::Fixed(384)), |n, out| lines(n, out, |i| format!("Iteration {i} | Loss: 2.31 | AllReduce: 45.2ms | Total: 156.3ms"))),
    file("training-line", "one line without an end", ("--training-log", 2_000, FEW), |n, out| (0..n).try_for_each(|_| out.write_all(b"Iteration 1 | Loss: 2.31 | "))),
    file("nccl-log", "connections of ever new ranks", ("--nccl-log", 2_000, Memory::Fixed(512)), |n, out| lines(n, out, |i| format!("h{i}:{i}:{i} [0] NCCL INFO NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn {i} mtu 3 GID 1 (0/{i:X}AFFFF0000) fifoRkey=0x4fd5 fifoLkey=0x4fd5"))),
    file("nccl-ranks", "ranks of ever new communicators", ("--nccl-log", 2_000, Memory::Fixed(512)), |n, out| lines(n, out, |i| format!("h1:{i}:{i} [0] NCCL INFO ncclCommInitRank comm 0x{i:x} rank {i} nranks {n} cudaDev 0 nvmlDev 0 busId 1000 commId 0x{i:x} - Init START"))),
    file("errors", "errors of the kernel, each of another queue pair", ("--nccl-log", 2_000, Memory::Fixed(512)), |n, out| lines(n, out, |i| format!("[{i}.000000] infiniband mlx5_{i}: dump_cqe:273:(pid {i}): dump error cqe"))),
    file("json-deep", "arrays in each other", ("--merge", 2_000, FEW), |n, out| (0..n).try_for_each(|_| out.write_all(b"[\"a\",{\"b\":"))),
    file("json-wide", "one object with ever new keys", ("--merge", 2_000, Memory::Fixed(512)), |n, out| { out.write_all(b"{\"traceEvents\":[],")?; (0..n).try_for_each(|i| write!(out, "\"key {i}\":{i},"))?; out.write_all(b"\"end\":0}") }),
    file("traces", "a trace of ever new collectives", ("--merge", 1_000, Memory::Fixed(768)), traces),
    file("otlp-lines", "a request of OTLP in each line, with a new series", ("--samples", 1_000, Memory::Fixed(512)), |n, out| lines(n, out, |i| otlp(&point(i)))),
    file("otlp-line", "one request of OTLP with ever new series", ("--samples", 20, Memory::Fixed(512)), |n, out| { let points: Vec<String> = (0..n).map(point).collect(); writeln!(out, "{}", otlp(&points.join(","))) }),
];

fn lines(n: u64, out: &mut dyn Write, line: impl Fn(u64) -> String) -> io::Result<()> {
    (0..n).try_for_each(|i| writeln!(out, "{}", line(i)))
}

fn filter(n: u64, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"flow = \"qp 1")?;
    for _ in 1..n {
        out.write_all(b" or qp 2")?;
    }
    out.write_all(b"\"\n")
}

fn keys(n: u64, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"top = 3\n[thresholds]\n")?;
    lines(n, out, |i| format!("incast_sender{i} = 1"))
}

/// Chrome's Trace Event Format, as Kineto writes collectives.
fn traces(n: u64, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"{\"schemaVersion\":1,\"baseTimeNanoseconds\":1790000000000000000,\"traceEvents\":[\n")?;
    for i in 0..n {
        let comma = if i == 0 { "" } else { "," };
        writeln!(
            out,
            "{comma}{{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce_Sum_f32_RING_LL\",\"pid\":0,\"tid\":7,\"ts\":{i}.5,\"dur\":0.4,\
             \"args\":{{\"Collective name\":\"allreduce\",\"In msg nelems\":{i},\"Out msg nelems\":{i},\"Group size\":8,\"dtype\":\"Float\",\"Process Group Name\":\"{i}\"}}}}"
        )?;
    }
    out.write_all(b"]}\n")
}

/// A point of a switch's counter under a name of Cumulus Linux.
fn point(i: u64) -> String {
    format!(
        "{{\"timeUnixNano\":\"{}\",\"asDouble\":{i},\"attributes\":[{{\"key\":\"interface\",\"value\":{{\"stringValue\":\"swp{i}\"}}}},{{\"key\":\"tc\",\"value\":{{\"stringValue\":\"3\"}}}}]}}",
        1_790_000_000_000_000_000 + i
    )
}

fn otlp(points: &str) -> String {
    format!(
        "{{\"resourceMetrics\":[{{\"resource\":{{\"attributes\":[{{\"key\":\"host.name\",\"value\":{{\"stringValue\":\"leaf1\"}}}}]}},\"scopeMetrics\":[{{\"metrics\":[{{\"name\":\"nvswitch_interface_tc_tx_ecn_marked_tc\",\"gauge\":{{\"dataPoints\":[{points}]}}}}]}}]}}]}}"
    )
}
