//! Worlds from seeds, for tests in simulated time: everything that happens in one follows from its seed.
//!
//! `ROCE_SEEDS` and `ROCE_FIRST_SEED` choose other seeds than the first ones; `cargo xtask seeds` sets them.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rand_pcg::rand_core::Rng as _;

use crate::random::Random;

/// Seeds of a test run.
const SEEDS: u64 = 200;
/// A world that takes longer, in real time, hangs.
pub const LONGEST: Duration = Duration::from_mins(1);

/// A number below `limit`; 0 where that is 0.
pub fn below(random: &mut Random, limit: u64) -> u64 {
    random.next_u64() % limit.max(1)
}

/// True once in `times`.
pub fn once_in(random: &mut Random, times: u64) -> bool {
    below(random, times) == 0
}

/// Runs the world of each seed on a thread of its own, which has to end.
///
/// # Panics
/// A world panics or hangs: the message names its seed.
pub fn each(world: fn(u64)) {
    let number = |name: &str, usual: u64| {
        let text = std::env::var(name).ok();
        text.and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    let first = number("ROCE_FIRST_SEED", 0);
    for seed in first..first + number("ROCE_SEEDS", SEEDS) {
        let (sender, ended) = channel();
        let thread = std::thread::spawn(move || {
            world(seed);
            // The test waits for it, unless it has given it up.
            let _ = sender.send(());
        });
        let end = ended.recv_timeout(LONGEST);
        assert_ne!(end, Err(RecvTimeoutError::Timeout), "seed {seed}: it hangs");
        assert!(thread.join().is_ok(), "seed {seed}: see above");
    }
}
