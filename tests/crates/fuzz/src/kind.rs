//! Targets with several parsers: the first byte of an input picks one of them, or a run of the fuzzer is for one alone.

use std::sync::LazyLock;

/// Variable of the environment with the number of the only parser of this run: `cargo xtask fuzz --kind`.
const ONLY: &str = "ROCE_FUZZ_KIND";

static KIND: LazyLock<Option<usize>> = LazyLock::new(|| {
    let text = std::env::var(ONLY).ok()?;
    Some(text.parse().expect("ROCE_FUZZ_KIND is the number of a parser"))
});

/// The number of the parser of an input, from 0 to `count` - 1, and the bytes behind the first one. `None`: the input is empty, or is one for
/// another parser than the only one of this run.
pub fn kind(data: &[u8], count: u8) -> Option<(usize, &[u8])> {
    let (first, rest) = data.split_first()?;
    let kind = usize::from(first % count);
    KIND.is_none_or(|only| only == kind).then_some((kind, rest))
}
