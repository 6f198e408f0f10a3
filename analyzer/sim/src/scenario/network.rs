//! The tables of hosts, links and switches, and of their impairments.

use serde::Deserialize;

use super::{IpId, Spray};
use crate::units::{Picos, Rate, Size, TimeRange};

/// Topology of the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// All hosts at one switch, `leaf1`.
    #[default]
    Leaf,
    /// Hosts are spread over leaves, in blocks; each leaf has a link to each spine.
    LeafSpine,
    /// Hosts are spread over leaves, in blocks; each leaf has a link to the next, the last one to the first. All packets go round in
    /// that direction, so that buffers can wait for each other in a circle.
    Ring,
    /// Two hosts, one cable.
    Direct,
}

/// Hosts and the links between them. Hosts are named `h1`, `h2`, ..., switches `leaf1`, `spine1`, ...
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Number of hosts.
    pub hosts: u32,
    /// Topology of the network.
    #[serde(default)]
    pub topology: Topology,
    /// Rate of the hosts' links.
    pub rate: Rate,
    /// Propagation delay of the hosts' links.
    #[serde(default = "delay")]
    pub delay: Picos,
    /// Number of leaf switches (`leaf-spine`, `ring`).
    #[serde(default = "two")]
    pub leaves: u32,
    /// Number of spine switches (`leaf-spine`).
    #[serde(default = "two")]
    pub spines: u32,
    /// Rate of the links between switches; as the hosts' when not given.
    pub uplink_rate: Option<Rate>,
    /// Propagation delay of the links between switches; as the hosts' when not given.
    pub uplink_delay: Option<Picos>,
    /// Addresses are IPv6 (`fd00::1`, ...) instead of IPv4 (`10.0.0.1`, ...).
    #[serde(default)]
    pub ipv6: bool,
    /// VLAN that all packets are tagged with; its PCP is the packet's priority.
    pub vlan: Option<u16>,
    /// Largest IP packet that the links carry: what the finding `mtu` compares the path MTU with. When not given, the
    /// smallest of 1,500, 4,200 and 9,000 bytes that holds the path MTU.
    pub mtu: Option<u32>,
    /// Every packet takes one of several paths with different delays. When not given, the packets of a flow keep
    /// their order.
    pub spray: Option<Spray>,
}

fn delay() -> Picos {
    Picos::from_nanos(500)
}

fn two() -> u32 {
    2
}

/// Kind of a switch's pause when a queue or its buffer grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
pub enum SwitchPause {
    /// Nothing: packets are dropped.
    #[default]
    #[serde(rename = "off")]
    Off,
    /// Priority flow control (IEEE 802.1Qbb).
    #[serde(rename = "pfc")]
    Pfc,
    /// Pause of the whole link (IEEE 802.3x).
    #[serde(rename = "802.3x")]
    Link,
}

/// Every switch.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Switch {
    /// Shared buffer of one switch, without headroom.
    pub buffer: Size,
    /// Limit of one egress queue for a priority that is not lossless; tail drop beyond. Without it:
    /// `alpha` times the free buffer.
    pub queue_limit: Option<Size>,
    /// Dynamic threshold: a queue may hold this many times the free buffer (Choudhury and Hahne, 1998).
    pub alpha: f64,
    /// RED/ECN marking.
    pub ecn: bool,
    /// Priorities whose queues mark.
    pub ecn_priorities: Vec<u8>,
    /// No packet is marked below this queue length.
    pub kmin: Size,
    /// Every packet is marked above this queue length.
    pub kmax: Size,
    /// Marking probability just below `kmax`.
    pub pmax: f64,
    /// True if and how pause frames are sent.
    pub pause: SwitchPause,
    /// Lossless priorities: what comes in with them is paused instead of dropped.
    pub pause_priorities: Vec<u8>,
    /// A pause begins when one ingress port holds this much of a priority.
    pub xoff: Size,
    /// It ends when it holds this much.
    pub xon: Size,
    /// Limit of one ingress port for a priority beyond `xoff`: room for packets on their way when the
    /// pause starts.
    pub headroom: Size,
    /// Length of the pause that a frame requests, in quanta of 512 bit times.
    pub quanta: u16,
    /// The PFC watchdog: a port that is kept paused for this time drops what comes for the paused priority, until the pause
    /// ends (action `drop` of SONiC's `pfcwd`, whose detection times are 100 ms to 5 s). Without it there is none.
    pub watchdog: Option<Picos>,
}

impl Default for Switch {
    /// A 12 MB switch as in the DCQCN paper; RED thresholds of its table of parameters, for 40 Gb/s.
    fn default() -> Self {
        Self {
            buffer: Size(12_000_000),
            queue_limit: None,
            alpha: 1.0,
            ecn: true,
            ecn_priorities: vec![3],
            kmin: Size(5_000),
            kmax: Size(200_000),
            pmax: 0.01,
            pause: SwitchPause::Off,
            pause_priorities: vec![3],
            xoff: Size(96_000),
            xon: Size(80_000),
            headroom: Size(100_000),
            quanta: 65_535,
            watchdog: None,
        }
    }
}

/// A host that differs from the others.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostTable {
    /// Hosts: `h3`, or `h2..h5`.
    pub name: String,
    /// Rate of its link.
    pub rate: Option<Rate>,
    /// The host takes packets out of its NIC's buffer with this rate only; pause frames keep it from overflowing.
    pub drain: Option<Rate>,
    /// A pause begins when the NIC's buffer holds this much (`drain`).
    #[serde(default = "drain_xoff")]
    pub xoff: Size,
    /// It ends when it holds this much (`drain`).
    #[serde(default = "drain_xon")]
    pub xon: Size,
    /// IP identification of the packets that it sends, instead of the NIC's setting.
    pub ip_id: Option<IpId>,
}

fn drain_xoff() -> Size {
    Size(256_000)
}

fn drain_xon() -> Size {
    Size(128_000)
}

/// Kind of packets that an impairment affects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Only {
    /// Every RoCE packet.
    #[default]
    All,
    /// Requests with payload and READ responses.
    Data,
    /// ACKs and NAKs.
    Ack,
    /// Congestion notifications.
    Cnp,
    /// ACKs alone.
    PositiveAck,
    /// NAKs of every kind alone, RNR NAKs among them.
    Nak,
    /// SEND and WRITE packets.
    Request,
    /// READ requests.
    ReadRequest,
    /// READ responses.
    ReadResponse,
    /// The last `tail` packets of each READ response message.
    ReadTail,
    /// Retransmitted requests and READ responses.
    Retransmission,
}

/// A link that loses, corrupts or reorders packets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Impairment {
    /// From where: a host or a switch. `h1` and `to = "leaf1"` is what h1 sends.
    pub from: String,
    /// To where; both must be the ends of one link.
    pub to: String,
    /// Probability that a packet is lost.
    #[serde(default)]
    pub loss: f64,
    /// Probability that a packet arrives with a wrong ICRC; the receiver drops it.
    #[serde(default)]
    pub corrupt: f64,
    /// Probability that a packet takes `reorder_delay` longer, so that others overtake it.
    #[serde(default)]
    pub reorder: f64,
    /// Extra delay of a reordered packet.
    #[serde(default = "delay")]
    pub reorder_delay: Picos,
    /// Probability that a retransmission is lost; `loss` without it.
    pub lose_retransmissions: Option<f64>,
    /// Each PSN of a request or READ response is chosen with the probability `loss`. The first `times` transmissions of
    /// a chosen PSN are lost, and `loss` does nothing else to requests and READ responses.
    pub times: Option<u32>,
    /// Number of packets at the end of a READ response message that `only = "read-tail"` affects.
    #[serde(default = "one")]
    pub tail: u32,
    /// Probability that the network delivers a packet a second time: the same bytes, with the same IP identification.
    #[serde(default)]
    pub duplicate: f64,
    /// Delay of the duplicate after the packet: a time, or a range such as `"0us..10ms"` (uniform).
    #[serde(default)]
    pub duplicate_after: TimeRange,
    /// The packets lost, counted from 0 among those that this impairment is for.
    #[serde(default)]
    pub drop: Vec<u64>,
    /// Kind of packets that are affected.
    #[serde(default)]
    pub only: Only,
    /// Only frames of more bytes than this, from the Ethernet header to the ICRC: with `loss = 1.0` a link that drops what is
    /// above its MTU without a word.
    pub longer_than: Option<u32>,
    /// Begin.
    #[serde(default)]
    pub begin: Picos,
    /// End; the end of the simulation when not given.
    pub end: Option<Picos>,
}

/// The kind of a pause frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
pub enum PauseKindName {
    /// Priority flow control.
    #[default]
    #[serde(rename = "pfc")]
    Pfc,
    /// The whole link.
    #[serde(rename = "802.3x")]
    Link,
}

/// A host that sends pause frames of its own accord: a NIC that hangs, or a storm of pauses.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseTable {
    /// The host.
    pub host: String,
    /// PFC or 802.3x.
    #[serde(default)]
    pub kind: PauseKindName,
    /// The priority paused (PFC).
    #[serde(default = "three")]
    pub priority: u8,
    /// Begin of the first pause.
    #[serde(default)]
    pub begin: Picos,
    /// No pause begins after this; the end of the simulation when not given.
    pub end: Option<Picos>,
    /// Length of each pause.
    pub on: Picos,
    /// The time between two pauses; with none there is one only.
    pub off: Option<Picos>,
}

fn one() -> u32 {
    1
}

fn three() -> u8 {
    3
}
