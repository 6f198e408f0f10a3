//! Telemetry that switches write into frames: where it is in a frame, and what each hop says.

use crate::bytes::chunk;
use crate::frame::csig::{Csig, WideCsig};
use crate::network::ifa::{IfaHop, IfaMetadata};
use crate::network::ioam::Trace;

/// Hops of a frame, at most. Further ones, those nearest to the sender, are left out.
pub const MAX_HOPS: usize = 16;

/// Places of telemetry in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Telemetry {
    /// A CSIG tag behind its EtherType.
    pub(crate) csig: Option<u16>,
    /// It is a wide one.
    pub(crate) is_wide: bool,
    /// The metadata header of IFA.
    pub(crate) ifa: Option<u16>,
    /// The data of an IOAM option, and their length.
    pub(crate) ioam: Option<(u16, u8)>,
}

/// The kind of telemetry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[expect(missing_docs, reason = "each variant is the protocol it names")]
pub enum TelemetryKind {
    #[default]
    Ifa,
    Csig,
    Ioam,
}

impl TelemetryKind {
    /// The name as written in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ifa => "IFA",
            Self::Csig => "CSIG",
            Self::Ioam => "IOAM",
        }
    }
}

/// Values of one hop; `None` where its telemetry has no such field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hop {
    /// The kind of telemetry.
    pub kind: TelemetryKind,
    /// Number of the hop from the sender, from 1.
    pub number: Option<u8>,
    /// Number of the device.
    pub device: Option<u32>,
    /// Number of the queue.
    pub queue: Option<u8>,
    /// Port by which the packet came.
    pub ingress: Option<u16>,
    /// Port by which it left.
    pub egress: Option<u16>,
    /// Bytes that waited in the queue.
    pub queued_bytes: Option<u32>,
    /// Buffers that the queue used.
    pub queued_buffers: Option<u32>,
    /// Time in the device, in ns.
    pub residence_ns: Option<u32>,
    /// The device says that its queue was congested.
    pub is_congested: Option<bool>,
    /// Kind of a signal.
    pub signal: Option<u8>,
    /// Place that a signal is from.
    pub locator: Option<u8>,
    /// Value of a signal, as the network's operator has set its meaning.
    pub value: Option<u32>,
}

/// Hops of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hops {
    hops: [Hop; MAX_HOPS],
    count: usize,
}

impl Hops {
    /// The hops that were read.
    pub fn all(&self) -> &[Hop] {
        self.hops.get(..self.count).unwrap_or_default()
    }

    fn add(&mut self, hop: Hop) {
        if let Some(place) = self.hops.get_mut(self.count) {
            *place = hop;
            self.count += 1;
        }
    }
}

impl Telemetry {
    /// True of nearly all frames: they have none.
    pub const fn is_none(&self) -> bool {
        self.csig.is_none() && self.ifa.is_none() && self.ioam.is_none()
    }

    /// Reads the hops of a frame, in which these places are.
    pub fn hops(&self, frame: &[u8]) -> Hops {
        let mut hops = Hops::default();
        if let Some(at) = self.csig {
            hops.csig(frame, at.into(), self.is_wide);
        }
        if let Some(at) = self.ifa {
            hops.ifa(frame, at.into());
        }
        if let Some((at, length)) = self.ioam {
            let at = usize::from(at);
            let data = frame.get(at..at + usize::from(length));
            hops.ioam(data.unwrap_or_default());
        }
        hops
    }
}

impl Hops {
    fn csig(&mut self, frame: &[u8], at: usize, is_wide: bool) {
        if is_wide {
            let Some(tag) = chunk(frame, at).map(WideCsig) else {
                return;
            };
            self.add(Hop {
                kind: TelemetryKind::Csig,
                value: Some(tag.raw()),
                ..Hop::default()
            });
        } else if let Some(tag) = chunk(frame, at).map(Csig) {
            self.add(Hop {
                kind: TelemetryKind::Csig,
                signal: Some(tag.kind()),
                locator: Some(tag.locator()),
                value: Some(tag.value().into()),
                ..Hop::default()
            });
        }
    }

    /// The stack is read where it is whole, has only hops of the known length, and their TTLs fall on the way, as that layout has it.
    fn ifa(&mut self, frame: &[u8], at: usize) {
        let Some(head) = chunk(frame, at).map(IfaMetadata) else {
            return;
        };
        let from = at + IfaMetadata::BYTES;
        let stack = frame.get(from..from + head.stack_bytes()).unwrap_or_default();
        let (hops, rest) = stack.as_chunks::<{ IfaHop::BYTES }>();
        let has_order = hops
            .windows(2)
            .all(|pair| IfaHop(&pair[0]).ttl() < IfaHop(&pair[1]).ttl());
        if !rest.is_empty() || !has_order {
            return;
        }
        for (place, bytes) in hops.iter().enumerate() {
            let hop = IfaHop(bytes);
            self.add(Hop {
                kind: TelemetryKind::Ifa,
                number: u8::try_from(hops.len() - place).ok(),
                device: Some(hop.device()),
                queue: Some(hop.queue()),
                ingress: Some(hop.ingress()),
                egress: Some(hop.egress()),
                queued_bytes: Some(hop.queued_bytes()),
                residence_ns: Some(hop.residence_ns()),
                is_congested: Some(hop.congestion() != 0),
                ..Hop::default()
            });
        }
    }

    fn ioam(&mut self, data: &[u8]) {
        let Some(trace) = Trace::parse(data) else {
            return;
        };
        let count = trace.nodes().count();
        for (place, node) in trace.nodes().enumerate() {
            let ports = node.ports();
            self.add(Hop {
                kind: TelemetryKind::Ioam,
                number: u8::try_from(count - place).ok(),
                device: node.device(),
                ingress: ports.map(|[ingress, _]| ingress),
                egress: ports.map(|[_, egress]| egress),
                queued_buffers: node.queued_buffers(),
                residence_ns: node.delay_ns(),
                ..Hop::default()
            });
        }
    }
}
