//! Commands of which each call is failed once. `{root}` is the project, `{ready}` a folder of results that `PREPARED` makes.

/// A command, and what it writes.
#[derive(Clone, Copy)]
pub(super) struct FaultCase {
    pub(super) name: &'static str,
    /// Words of its command line.
    pub(super) words: &'static str,
    /// The text on its standard input.
    pub(super) input: &'static str,
    /// The file or folder that it writes, in its own folder.
    pub(super) writes: Option<&'static str>,
    /// It reads this machine, or says when it ran: two runs of it say different things.
    pub(super) is_live: bool,
}

/// One failure to try: the n-th call of this name gives this error.
pub(super) struct Fault {
    pub(super) case: &'static FaultCase,
    pub(super) call: &'static str,
    pub(super) error: &'static str,
    pub(super) at: usize,
}

const fn reads(name: &'static str, words: &'static str) -> FaultCase {
    FaultCase {
        name,
        words,
        input: "",
        writes: None,
        is_live: false,
    }
}

const fn writes(name: &'static str, words: &'static str, path: &'static str) -> FaultCase {
    FaultCase {
        name,
        words,
        input: "",
        writes: Some(path),
        is_live: false,
    }
}

const fn live(case: FaultCase) -> FaultCase {
    FaultCase {
        is_live: true,
        ..case
    }
}

/// Commands that run once, in order, in the folder `{ready}`.
pub(super) const PREPARED: &[&str] = &[
    "{root}/captures/rnr.pcap -o a",
    "{root}/captures/write_bw_loss.pcap -o b",
];

#[rustfmt::skip]
pub(super) const CASES: &[FaultCase] = &[
    reads("capture", "{root}/captures/write_bw_loss.pcap"),
    live(reads("capture-json", "{root}/captures/rnr.pcap --format json")),
    reads("two-captures", "{root}/captures/demos/incast-h2.pcapng {root}/captures/demos/incast-h7.pcapng"),
    reads("samples", "{root}/captures/demos/pause-origin-leaf1-h3.pcapng --samples {root}/captures/demos/pause-origin.samples.jsonl"),
    reads("inventory", "{root}/captures/demos/pause-origin-leaf1-h3.pcapng --inventory {root}/captures/demos/pause-origin.fabric.toml"),
    reads("training-log", "{root}/captures/demos/training-h1.pcapng --training-log {root}/captures/demos/training.log"),
    reads("nccl-log", "{root}/captures/write_bw_loss.pcap --nccl-log {root}/tests/data/fabric/nccl/write_bw_loss.log"),
    reads("config", "{root}/captures/rnr.pcap --config {root}/packages/examples/roce-analyze.toml"),
    live(reads("hash", "{root}/captures/rnr.pcap --hash --format json")),
    writes("results", "{root}/captures/rnr.pcap -o out", "out"),
    writes("results-again", "{root}/captures/rnr.pcap -o out --overwrite", "out"),
    live(writes("fleet-results", "{root}/captures/rnr.pcap -o out --layout fleet --host-name h1", "out")),
    writes("annotate", "annotate {root}/captures/write_bw_loss.pcap -o out.pcapng", "out.pcapng"),
    reads("annotate-lines", "annotate {root}/captures/rnr.pcap --format jsonl"),
    writes("simulate", "simulate lossy -o out.pcapng", "out.pcapng"),
    reads("demo", "demo clean"),
    reads("explain-list", "explain list"),
    reads("explain", "explain loss.network"),
    reads("explain-line", "explain wc.status=12"),
    writes("report", "report {ready}/b -o out.html", "out.html"),
    reads("compare", "compare {ready}/a {ready}/b"),
    writes("compare-page", "compare {ready}/a {ready}/b -o out.html", "out.html"),
    reads("compare-captures", "compare {root}/captures/rnr.pcap {root}/captures/read_bw.pcap"),
    reads("counters", "fabric counters --read {root}/tests/data/fabric/eos-leaf --kind eos"),
    reads("hypervisor", "fabric counters --read {root}/tests/data/fabric/esxi-pfc"),
    reads("configure-host", "fabric configure host -i ens1f0np0"),
    reads("configure-switch", "fabric configure switch --kind sonic"),
    live(reads("metrics-once", "metrics once")),
    live(writes("textfile", "metrics once --textfile out.prom", "out.prom")),
    reads("rules", "metrics files rules"),
    writes("metrics-files", "metrics files -o out", "out"),
    writes("man", "man -o out", "out"),
    reads("completions", "completions bash"),
    live(reads("devices", "devices")),
    live(reads("doctor", "doctor")),
    reads("traffic-results", "traffic results {root}/tests/data/fabric/traffic/table.txt"),
    reads("plan", "traffic plan --pattern ring --device mlx5_0 --host a --host b"),
    FaultCase { input: "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n", ..reads("mcp", "mcp {root}/captures") },
    FaultCase { input: "ff", ..reads("no-capture", "-") },
];
