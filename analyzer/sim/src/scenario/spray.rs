//! The table of packet spraying: several paths between two hosts, and how packets are spread over them.

use serde::Deserialize;

use crate::units::Picos;

/// Distribution of packets over paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SprayMode {
    /// Each packet takes a path of its own (Dixit et al., "On the Impact of Packet Spraying in Data Center Networks",
    /// INFOCOM 2013; adaptive routing of Spectrum-X).
    #[default]
    Packet,
    /// A flow keeps its path until it has been silent for `flowlet_gap` (CONGA, SIGCOMM 2014; LetFlow, NSDI 2017).
    Flowlet,
    /// Each flow has two paths of all, and each packet takes one of them (two planes, or two links of a bond).
    TwoPaths,
}

/// Choice of a packet's path among those open to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SprayChoice {
    /// One at random, each with the same probability.
    #[default]
    Random,
    /// The next in turn, by flow.
    Turn,
}

/// Several paths from each host to each other host. Every RoCE packet takes one: data, ACKs, READ responses, CNPs.
///
/// A path adds a delay of its own between 0 and `skew`. The first path adds nothing, the last one
/// `skew`; the others are drawn once for a run. Packets of one path keep their order.
///
/// The paths lie behind the port of the first switch. So taps at the sender and at that port see the
/// order of sending, and taps at the receiver and at the port towards it the order of arrival. Between
/// two hosts with one cable (`direct`) they lie in the cable, and packets leave them at the rate of the
/// link. With `leaf-spine` a path also decides the spine; hosts of one leaf have one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spray {
    /// Number of paths, 2 to 256.
    pub paths: u32,
    /// Difference of the longest and the shortest path, in one direction; 0 to 500 us.
    pub skew: Picos,
    /// Distribution of packets.
    #[serde(default)]
    pub mode: SprayMode,
    /// Silence after which a flow may change its path (`flowlet`).
    #[serde(default = "flowlet_gap")]
    pub flowlet_gap: Picos,
    /// Queueing in the paths: each packet takes up to this much longer, at random (uniform).
    #[serde(default)]
    pub jitter: Picos,
    /// Choice of the path.
    #[serde(default)]
    pub choose: SprayChoice,
}

/// CONGA (SIGCOMM 2014) takes 500 us for links of 10 Gb/s; at ten times the rate the same bytes need a tenth of it.
fn flowlet_gap() -> Picos {
    Picos::from_nanos(50_000)
}
