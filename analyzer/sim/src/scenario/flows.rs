//! The tables of traffic between hosts.

use serde::Deserialize;

use super::FlowTransport;
use crate::units::{Picos, Rate, Size};

/// Operation of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// RDMA WRITE.
    #[default]
    Write,
    /// SEND: needs a posted receive buffer.
    Send,
    /// RDMA READ: the data comes from `to`.
    Read,
}

/// Transport service.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceName {
    /// Reliable connection.
    #[default]
    Rc,
    /// Unreliable connection: WRITE and SEND without ACKs.
    Uc,
    /// Unreliable datagram: SENDs of one packet.
    Ud,
}

/// Pairs of senders of `from` and receivers of `to`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Each to each, but not to itself.
    #[default]
    Cross,
    /// The first host sends to the first, the second to the second, and so on.
    Zip,
    /// Each of `from` to the next of `from`, the last to the first; `to` is not used.
    Ring,
}

/// In which direction a flow table's messages go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From `from` to `to`.
    #[default]
    Forward,
    /// Both: `to` sends such messages too, on the same queue pairs.
    Both,
}

/// The first PSN of each direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PsnChoice {
    /// Random, as most software chooses.
    #[default]
    Random,
    /// 0, as NCCL does.
    Zero,
}

/// Queue pair numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QpnChoice {
    /// Random, distinct at each host.
    #[default]
    Random,
    /// Counted up at each host from 0x11.
    Sequential,
    /// One number at both ends.
    Same,
}

/// UDP source ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged)]
pub enum SourcePort {
    /// A choice by name: `kernel`, `random`.
    Named(SourcePortName),
    /// This port, in both directions.
    Fixed(u16),
}

impl Default for SourcePort {
    fn default() -> Self {
        Self::Named(SourcePortName::Kernel)
    }
}

/// Choice of UDP source ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourcePortName {
    /// As `rdma_get_udp_sport` computes it from the QPNs when the flow label is 0: equal in both
    /// directions.
    Kernel,
    /// Random, from 0xc000, each direction its own.
    Random,
}

/// Traffic between hosts. Without `interval` a closed loop: a message follows when one is done.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowTable {
    /// A name for the truth file; `flow0`, `flow1`, ... when not given.
    pub name: Option<String>,
    /// Hosts: `h1`, `h1..h4`, `h1, h3`.
    pub from: String,
    /// Hosts.
    #[serde(default)]
    pub to: String,
    /// Pairs of senders and receivers.
    #[serde(default)]
    pub pattern: Pattern,
    /// Queue pairs for each pair of hosts.
    #[serde(default = "one")]
    pub qps: u32,
    /// Transport.
    #[serde(default)]
    pub transport: FlowTransport,
    /// Transport service.
    #[serde(default)]
    pub service: ServiceName,
    /// Operation of a message.
    #[serde(default)]
    pub op: Operation,
    /// Length of a message.
    #[serde(default = "message")]
    pub message: Size,
    /// Further lengths; taken in turn after `message`.
    #[serde(default)]
    pub messages_of: Vec<Size>,
    /// Messages that are outstanding at once (closed loop).
    #[serde(default = "one")]
    pub outstanding: u32,
    /// A message is posted each such time (open loop).
    pub interval: Option<Picos>,
    /// The intervals are exponentially distributed around it.
    #[serde(default)]
    pub poisson: bool,
    /// Messages posted at each interval.
    #[serde(default = "one")]
    pub burst: u32,
    /// The application produces data at this rate: a message follows when the time of the one before is
    /// over, and fewer than `outstanding` are open. The NIC sends each as fast as it may.
    pub pace: Option<Rate>,
    /// The NIC spreads the packets of each queue pair so that they do not exceed this rate on the line (packet pacing,
    /// `rate_limit` of `ibv_modify_qp_rate_limit`). DCQCN's limit holds too: the lower one counts.
    pub rate_limit: Option<Rate>,
    /// The application posts for this time, then pauses for `off`, in turn from its begin.
    pub on: Option<Picos>,
    /// Length of its pauses.
    pub off: Option<Picos>,
    /// Number of messages; without it there is no end.
    pub count: Option<u64>,
    /// First message.
    #[serde(default)]
    pub begin: Picos,
    /// Each queue pair begins up to this much later, at random.
    #[serde(default)]
    pub jitter: Picos,
    /// No message is posted after this; the end of the simulation when not given.
    pub end: Option<Picos>,
    /// Directions.
    #[serde(default)]
    pub direction: Direction,
    /// DSCP instead of the NIC's.
    pub dscp: Option<u8>,
    /// DSCP of the other direction (`both`, READ responses, ACKs), when it differs.
    pub reverse_dscp: Option<u8>,
    /// ECT(0) or not, instead of DCQCN's setting.
    pub ecn: Option<bool>,
    /// True if the senders slow down on CNPs, instead of DCQCN's setting.
    pub react: Option<bool>,
    /// UDP source ports.
    #[serde(default)]
    pub source_port: SourcePort,
    /// First PSNs.
    #[serde(default)]
    pub psn: PsnChoice,
    /// Queue pair numbers.
    #[serde(default)]
    pub qpn: QpnChoice,
    /// The connection is made by the connection manager first: REQ, REP, RTU on queue pair 1.
    #[serde(default)]
    pub cm: bool,
    /// Receive buffers posted at first (SEND). When not given there are always enough.
    pub receives: Option<u32>,
    /// One receive buffer is posted each such time, up to `receives`.
    pub refill: Option<Picos>,
    /// At this time the queue pairs are destroyed and made again with the same numbers and other first PSNs.
    pub reuse: Option<Picos>,
    /// From this time on, the responder answers requests with a NAK for a remote access error.
    pub fatal: Option<Picos>,
    /// From this time on, the responder answers nothing.
    pub dies: Option<Picos>,
}

fn one() -> u32 {
    1
}

fn message() -> Size {
    Size(65_536)
}
