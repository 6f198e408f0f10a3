//! Results of traffic tools: perftest, qperf, iperf3, iperf 2, irtt, nccl-tests, micro-benchmarks of OSU, UCX and libfabric,
//! benchmarks of PyTorch, and logs. Each becomes [`Results`].
//!
//! Rates are in bit/s and times in microseconds, whatever the tool prints: perftest's `MB/sec` are 2^20 bytes, iperf's `Gbits/sec` are 10^9
//! bits, those of nccl-tests 10^9 bytes. A value that a tool did not print is absent.

mod bench;
mod expectation;
mod fabtests;
mod iperf;
mod irtt;
mod log;
mod meanings;
mod measured;
mod nccl;
mod osu;
mod perftest;
mod perftest_document;
mod pytorch;
mod qperf;
mod span;
mod text;
mod ucx;

pub use expectation::{Expectation, Outcome};
pub use meanings::REMARK_MEANINGS;
pub use measured::{Latency, LatencyKind, Measurement, Remark, Results, Weight, bus_factor};
pub use span::{When, when};

use crate::errors::has_error;
use crate::nccl::is_log;
use crate::prefix::without_prefixes;

/// Bytes of a JSON document: it takes up to 16 times as much memory. iperf3's grow by a kilobyte a second.
const MAX_DOCUMENT_BYTES: usize = 32 << 20;

/// The results in a text, by its content. `world`: the ranks, where the text does not say them.
pub fn results(text: &str, world: Option<u32>) -> Results {
    let text = text.trim_start_matches('\u{feff}');
    let bare = without_prefixes(text);
    let text = &*bare;
    let start = text.trim_start();
    if start.starts_with(['{', '[']) && text.len() > MAX_DOCUMENT_BYTES {
        let mut found = Results {
            tool: "JSON",
            ..Results::default()
        };
        let reason = "the document has more than 32 MiB, and is not read".to_owned();
        found.remark(Weight::Critical, "results.too_large", 0, reason);
        found
    } else if start.starts_with('{') && start.contains("\"test_start\"") || iperf::is_failure(start) {
        iperf::documents(text)
    } else if irtt::is_document(start) {
        irtt::document(text)
    } else if perftest_document::is_one(start) {
        perftest_document::parse(text)
    } else if start.starts_with(['{', '[']) && start.contains("\"bus_bw\"") {
        nccl::document(text)
    } else if perftest::is_one(text) {
        perftest::parse(text)
    } else if bench::is_one(text) {
        bench::parse(text)
    } else if let Some(parse) = micro_benchmark(text) {
        let mut found = parse(text);
        // MPI prints its errors between the lines.
        if is_log(text) || has_error(text) {
            log::parse(text, &mut found);
        }
        found
    } else if pytorch::is_one(text) {
        pytorch::parse(text, world)
    } else if nccl::is_one(text) || is_log(text) {
        // nccl-tests prints NCCL's log between its lines.
        let mut found = nccl::parse(text, world);
        if is_log(text) {
            log::parse(text, &mut found);
        }
        found
    } else if !start.starts_with('{') && has_error(text) {
        let mut found = Results::default();
        log::parse(text, &mut found);
        found.tool = "log";
        found
    } else if iperf::is_text(text) {
        iperf::parse(text)
    } else {
        Results::default()
    }
}

/// Reads the results of a text.
type ResultsReader = fn(&str) -> Results;

/// The reader of a micro-benchmark whose table a text has.
fn micro_benchmark(text: &str) -> Option<ResultsReader> {
    if osu::is_one(text) {
        Some(osu::parse)
    } else if qperf::is_one(text) {
        Some(qperf::parse)
    } else if ucx::is_one(text) {
        Some(ucx::parse)
    } else if irtt::is_text(text) {
        Some(irtt::parse)
    } else {
        fabtests::is_one(text).then_some(fabtests::parse)
    }
}

#[cfg(test)]
mod tests;
