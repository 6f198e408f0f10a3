//! Healthy traffic stays without a warning, whatever part of its records was captured.

#![allow(clippy::print_stderr, reason = "the table says what to look at")]

use roce_truth::{RecordThinning, Table, family_of, run_thinned};

/// Scenarios; one in three is healthy. `cargo xtask truth --thin lose:100 --seeds 1000` has more.
const CASES: u64 = 66;

#[test]
fn missing_records_bring_no_warning_about() {
    let list: Vec<_> = (1..=CASES).map(|seed| (family_of(seed), seed)).collect();
    for thinning in [
        RecordThinning::Lose(100),
        RecordThinning::Keep(10),
        RecordThinning::KeepEvery(10),
    ] {
        let mut table = Table::default();
        for outcome in run_thinned(&list, 2, thinning) {
            table.add(&outcome);
        }
        eprintln!("{thinning:?}\n{table}");
        assert!(table.failed().is_empty(), "{thinning:?}: {table}");
        let healthy = table.scores().get("healthy");
        assert!(healthy.observable > CASES / 5, "{thinning:?}: few are healthy");
        assert!(table.all_healthy_are_calm(), "{thinning:?}: {table}");
    }
}
