//! The table of training jobs: steps of computing, and a collective in each.

use serde::Deserialize;

use super::flows::PsnChoice;
use super::release::NcclRelease;
use crate::units::{Picos, Size};

/// How the ranks of a job exchange data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrainingTransport {
    /// Each rank writes a share to the next one when it has received the share before.
    #[default]
    Plain,
    /// As NCCL does over verbs: data follows credits of its receiver.
    Nccl,
}

/// A collective operation of NCCL, and its algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Collective {
    /// `AllReduce` in a ring.
    #[default]
    Ring,
    /// `AllReduce` in the double binary tree.
    Tree,
    /// Each rank sends an equal part of its data to each other.
    AllToAll,
}

/// A protocol of NCCL.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Large slices.
    #[default]
    Simple,
    /// Small slices; each 8 bytes on the wire hold 4 bytes of data and 4 of flags.
    Ll,
}

/// The part of a rank that is late.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LatePlace {
    /// Its GPU: the kernel starts later. The host has given the operation to the proxy threads before.
    #[default]
    Gpu,
    /// Its host: the proxy threads, too, learn of the operation later.
    Host,
}

/// A rank that is late.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LateRank {
    /// The rank, from 0.
    pub rank: u32,
    /// By how much.
    pub by: Picos,
    /// The steps, from 0, in which it is late; all when not given.
    pub steps: Option<Vec<u32>>,
    /// Its GPU or its host.
    #[serde(default, rename = "where")]
    pub place: LatePlace,
}

/// A rank whose proxy thread gives buffers back later than they are free.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LateReceiver {
    /// The rank, from 0.
    pub rank: u32,
    /// By how much.
    pub by: Picos,
    /// The steps, from 0, in which it does so; all when not given.
    pub steps: Option<Vec<u32>>,
}

impl LateRank {
    pub(crate) fn is_in(&self, step: u32) -> bool {
        self.steps.as_ref().is_none_or(|steps| steps.contains(&step))
    }
}

impl LateReceiver {
    pub(crate) fn is_in(&self, step: u32) -> bool {
        self.steps.as_ref().is_none_or(|steps| steps.contains(&step))
    }
}

/// A job of synchronous training. In each step every rank computes, then takes part in a ring
/// all-reduce. The ring has 2 (n - 1) phases, in each of which a rank sends `bytes` / n to the next one. With `transport = "nccl"`
/// the data is cut into slices, and follows credits.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// A name for the truth file.
    pub name: Option<String>,
    /// The ranks, in the order of the ring: `h1..h4`.
    pub ranks: String,
    /// Steps; no end when not given.
    pub steps: Option<u32>,
    /// Time that a rank computes in each step.
    pub compute: Picos,
    /// Bytes reduced in each step.
    pub bytes: Size,
    /// Each rank computes up to this share longer or shorter, at random.
    #[serde(default)]
    pub spread: f64,
    /// A rank, counted from 0, that computes longer.
    pub slow_rank: Option<u32>,
    /// Factor of the slow rank's time.
    #[serde(default = "slow_factor")]
    pub slow_factor: f64,
    /// Queue pairs from each rank to the next.
    #[serde(default = "one")]
    pub qps: u32,
    /// Begin of the first step.
    #[serde(default)]
    pub begin: Picos,
    /// First PSNs. Those of `transport = "nccl"` are 0.
    #[serde(default)]
    pub psn: PsnChoice,
    /// How ranks exchange data. The keys after it are for `nccl`.
    #[serde(default)]
    pub transport: TrainingTransport,
    /// The collective of each step.
    #[serde(default)]
    pub collective: Collective,
    /// Its protocol.
    #[serde(default)]
    pub protocol: Protocol,
    /// The release whose messages are sent.
    #[serde(default)]
    pub version: NcclRelease,
    /// Channels, among which data is divided.
    #[serde(default = "one")]
    pub channels: u32,
    /// Bytes of a receiver's buffer: most that one message carries.
    #[serde(default = "slice")]
    pub slice: Size,
    /// Messages of more than 8192 bytes carry no immediate data; an empty message with it follows (`NCCL_IB_ADAPTIVE_ROUTING`).
    #[serde(default)]
    pub adaptive: bool,
    /// Each message is cut over the `qps` queue pairs of its connection, instead of taking them in turn; when not given as the release does.
    pub split: Option<bool>,
    /// The immediate data is the number of the request, from 2.29 on.
    #[serde(default)]
    pub by_id: bool,
    /// Ranks on each host, which share connections to a rank of another host (PXN): for `collective = "all-to-all"`.
    #[serde(default = "one")]
    pub ranks_per_host: u32,
    /// DSCP of what receivers send: credits, and ACKs of the data (`NCCL_IB_FIFO_TC`); the NIC's when not given.
    pub credit_dscp: Option<u8>,
    /// Buffers are the user's own: the proxy thread of a receiver waits for the kernel before it posts the first credits.
    #[serde(default)]
    pub registered: bool,
    /// Messages of each connection before the simulation: credits begin in the middle of their ring.
    #[serde(default)]
    pub earlier: u64,
    /// Ranks that are late.
    #[serde(default)]
    pub late: Vec<LateRank>,
    /// Ranks that give buffers back late.
    #[serde(default)]
    pub receiver: Vec<LateReceiver>,
}

impl Training {
    /// True if ranks exchange data as NCCL does.
    pub fn is_nccl(&self) -> bool {
        self.transport == TrainingTransport::Nccl
    }
}

fn one() -> u32 {
    1
}

fn slice() -> Size {
    Size(65_536)
}

fn slow_factor() -> f64 {
    2.0
}
