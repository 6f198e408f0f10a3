//! Training jobs: steps of computing and a ring all-reduce.
//!
//! In each step rank i computes, then sends in 2 (n - 1) phases a share 1/n of the data to rank i + 1; a phase begins at
//! a rank when it has sent and received those before (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms",
//! 2009). The next step begins at a rank when its last share has come.

mod steps;

use crate::engine::events::EndpointId;
use crate::engine::rng::Stream;

/// Progress of a rank.
#[derive(Debug, Default)]
struct Rank {
    host: u32,
    /// Its queue pairs to the next rank.
    ends: Vec<EndpointId>,
    step: u32,
    computing: bool,
    /// Phases started and received, in all steps together.
    sent: u64,
    received: u64,
    /// Messages of the phase that is coming in.
    parts: u64,
    /// Its entry in the log.
    entry: usize,
    stream: Option<Stream>,
}

/// A training job.
#[derive(Debug)]
pub(crate) struct Job {
    table: usize,
    ranks: Vec<Rank>,
}

impl Job {
    /// A job whose rank n is on `hosts[n]` and has `ends[n]` to the next rank.
    pub(crate) fn new(table: usize, seed: u64, hosts: &[u32], ends: Vec<Vec<EndpointId>>) -> Self {
        let ranks = hosts.iter().zip(ends).map(|(host, ends)| Rank {
            host: *host,
            ends,
            stream: Some(Stream::new(seed, "rank", table * 65_536 + *host as usize)),
            ..Rank::default()
        });
        Self {
            table,
            ranks: ranks.collect(),
        }
    }

    /// The hosts of its ranks.
    pub(crate) fn hosts(&self) -> Vec<u32> {
        self.ranks.iter().map(|rank| rank.host).collect()
    }

    /// Phases of a step.
    fn phases(&self) -> u64 {
        2 * (self.ranks.len() as u64 - 1)
    }
}
