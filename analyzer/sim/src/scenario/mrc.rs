//! The tables of MRC: its paths and planes, the NICs that speak it, and everything that goes wrong there.

use serde::Deserialize;

use crate::units::{Picos, Size};

/// Transport of a flow table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlowTransport {
    /// RoCE.
    #[default]
    Roce,
    /// OCP Multipath Reliable Connection 1.0. All flow tables of a scenario have it, or none.
    Mrc,
}

/// Fields that hold the 32 bits of an EV (sources disagree).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvOrder {
    /// The upper half in the flow label, the lower half in the UDP source port.
    #[default]
    LabelHigh,
    /// The upper half in the UDP source port.
    PortHigh,
}

/// Order of the two numbers of a connection in SACKs, NACKs and probes (sources disagree).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PdcOrder {
    /// That of the packet's sender first.
    #[default]
    SenderFirst,
    /// That of the requestor first.
    RequestorFirst,
}

/// First PSN of a SACK's bitmap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SackBase {
    /// Always the one behind the cumulative PSN.
    Cumulative,
    /// That of the 64 PSNs that hold the packet which caused the SACK.
    #[default]
    Trigger,
}

/// IP length of a trimmed packet (sources disagree).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrimLength {
    /// As before the trim.
    #[default]
    Kept,
    /// That of what is left.
    Rewritten,
}

/// The network and the NICs of MRC. Each host has a port on each plane, each plane has `paths` between any two hosts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mrc {
    /// Number of planes, which is that of the ports of a NIC: 4 or 8 in practice, 1 to 8 here.
    pub planes: u32,
    /// Paths between two hosts on one plane.
    pub paths: u32,
    /// EVs of a queue pair, as many on each plane: 128 to 256 in practice.
    pub evs: u32,
    /// Difference of the longest and the shortest path.
    pub skew: Picos,
    /// Queueing in the paths: each packet takes up to this much longer, at random.
    pub jitter: Picos,
    /// UDP destination port: 4791 or 4971.
    pub udp_port: u16,
    /// WRITEs have stamps (TSETH).
    pub timestamps: bool,
    /// Packets have an outer IPv6 header with segments (SRv6). Needs IPv6.
    pub srv6: bool,
    /// Halves of an EV.
    pub ev_order: EvOrder,
    /// Order of the connection's numbers.
    pub pdc_order: PdcOrder,
    /// A missing packet is sent again when one that was sent so many packets later has been acknowledged: the reordering guard.
    pub guard: u32,
    /// Local ACK timeout: 1.024 us x 2^timeout. It holds seven times, then doubles.
    pub timeout: u8,
    /// A packet that was sent so often in vain ends the connection.
    pub retries: u16,
    /// A silent queue pair probes a path after half of the timeout.
    pub probe_silence: bool,
    /// Unit of the window behind the cumulative PSN, 128 PSNs; 0: there is none.
    pub mpr: u8,
    /// Most bytes that a queue pair has outstanding.
    pub window: Size,
    /// A SACK is sent after so many bytes at the latest.
    pub sack_bytes: Size,
    /// First PSN of the bitmap.
    pub sack_base: SackBase,
    /// Probability that a SACK or NACK is lost.
    pub control_loss: f64,
    /// An EV is left after so many losses in succession.
    pub losses_to_leave: u32,
    /// Time between two probes of an EV that was left.
    pub probe_interval: Picos,
    /// Switches trim what does not fit, instead of dropping it.
    pub trim: bool,
    /// Bytes of a trimmed frame.
    pub trim_bytes: u16,
    /// IP length of a trimmed packet.
    pub trim_length: TrimLength,
    /// Probability that a trimmed packet is lost.
    pub trim_loss: f64,
    /// Limit of the queue before a host's port.
    pub queue: Size,
    /// Paths that lose, trim, mark or delay packets.
    pub path: Vec<MrcPath>,
    /// Ports of hosts that go down.
    pub port: Vec<MrcPort>,
    /// Receivers that ask their senders to slow down.
    pub responder: Vec<MrcResponder>,
}

/// Packets of one path, or of all paths of a plane, from any host to any other.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MrcPath {
    /// The plane, from 0.
    pub plane: u32,
    /// The path on it, from 0; all when not given.
    pub path: Option<u32>,
    /// Probability of a silent loss.
    #[serde(default)]
    pub loss: f64,
    /// Probability that a queue in the fabric has no room: the packet is trimmed with reason 1.
    #[serde(default)]
    pub trim: f64,
    /// Probability of a mark.
    #[serde(default)]
    pub mark: f64,
    /// Receivers answer marks with "always skip" instead of "skip once".
    #[serde(default)]
    pub always_skip: bool,
    /// Packets take so much longer.
    #[serde(default)]
    pub delay: Picos,
    /// Begin.
    #[serde(default)]
    pub begin: Picos,
    /// End; that of the simulation when not given.
    pub end: Option<Picos>,
}

/// A port of a host that goes down.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MrcPort {
    /// The host.
    pub host: String,
    /// The plane, from 0.
    pub plane: u32,
    /// When it goes down.
    pub down: Picos,
    /// When it is up again.
    pub up: Option<Picos>,
}

/// A receiver that asks for a penalty.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MrcResponder {
    /// The host.
    pub host: String,
    /// Penalty, 1 to 127: 127 is one packet in a round trip.
    pub penalty: u8,
    /// Begin.
    #[serde(default)]
    pub begin: Picos,
    /// End; that of the simulation when not given.
    pub end: Option<Picos>,
}

impl Default for Mrc {
    /// Four planes as in the authors' deployment; a timeout of 262 us.
    fn default() -> Self {
        Self {
            planes: 4,
            paths: 8,
            evs: 32,
            skew: Picos::from_nanos(1_000),
            jitter: Picos::ZERO,
            udp_port: 4_791,
            timestamps: true,
            srv6: false,
            ev_order: EvOrder::default(),
            pdc_order: PdcOrder::default(),
            guard: 64,
            timeout: 8,
            retries: 12,
            probe_silence: true,
            mpr: 8,
            window: Size(1 << 20),
            sack_bytes: Size(4_096),
            sack_base: SackBase::default(),
            control_loss: 0.0,
            losses_to_leave: 2,
            probe_interval: Picos::from_nanos(200_000),
            trim: true,
            trim_bytes: 256,
            trim_length: TrimLength::default(),
            trim_loss: 0.0,
            queue: Size(200_000),
            path: Vec::new(),
            port: Vec::new(),
            responder: Vec::new(),
        }
    }
}

impl MrcPath {
    /// True if it holds for a path at a time.
    pub(crate) fn holds(&self, plane: u32, path: u32, time: Picos) -> bool {
        self.plane == plane
            && self.path.is_none_or(|own| own == path)
            && self.begin <= time
            && self.end.is_none_or(|end| time < end)
    }
}

impl MrcResponder {
    /// True if it asks at a time.
    pub(crate) fn holds(&self, time: Picos) -> bool {
        self.begin <= time && self.end.is_none_or(|end| time < end)
    }
}
