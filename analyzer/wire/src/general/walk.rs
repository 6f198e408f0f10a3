//! The walk through a frame: where it is, where the bytes end and who says so, and what was found.

use crate::bytes::chunk;
use crate::{
    AssignedNumbers, Content, CutLimit, DecodedFrame, Layer, LinkType, Mirror, Other, Roce, Stop, Telemetry,
    Through,
};

/// Limit of tunnels inside of tunnels.
pub(super) const MAX_TUNNELS: u8 = 8;

/// Next header to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    Ethernet,
    EtherType(u16),
    /// IPv4 or IPv6, by the first four bits.
    Ip,
    Ipv4,
    Ipv6,
    Protocol(u8),
    Lrh,
    Done,
}

pub(super) struct Walk<'a> {
    pub(super) frame: &'a [u8],
    /// Length of the frame on the wire, in bytes.
    pub(super) original: usize,
    /// Start of the next header.
    pub(super) at: usize,
    /// End of the bytes by the innermost credible length, and the field that gives it.
    pub(super) end: usize,
    pub(super) end_by: CutLimit,
    /// The last Ethernet header.
    pub(super) ethernet: Option<&'a [u8; 14]>,
    /// The packet, as far as it is known.
    pub(super) roce: Roce,
    /// Content of the frame if nothing more can be read.
    pub(super) content: Content,
    /// The outermost overlay, as long as nothing has shown that it is a mirror's.
    pub(super) overlay: Option<Mirror>,
    pub(super) mirror: Option<Mirror>,
    pub(super) tunnels: u8,
    /// Inside an ERSPAN mirror, which may have cut the frame: inner lengths beyond its end are no lies.
    pub(super) mirrored: bool,
    /// In the first of several fragments: the UDP length is that of the whole datagram, no lie either.
    pub(super) fragmented: bool,
    /// The first length that lies.
    pub(super) lie: Option<Stop>,
    /// Telemetry that it came by.
    pub(super) telemetry: Telemetry,
    pub(super) assigned: AssignedNumbers,
}

impl<'a> Walk<'a> {
    pub(super) fn new(frame: &'a [u8], original: u32, assigned: AssignedNumbers) -> Self {
        let original = frame.len().max(original as usize);
        Self {
            frame,
            original,
            at: 0,
            end: original,
            end_by: CutLimit::Frame,
            ethernet: None,
            roce: Roce::default(),
            content: Content::Other(Other::NotRoce),
            overlay: None,
            mirror: None,
            tunnels: 0,
            mirrored: false,
            fragmented: false,
            lie: None,
            telemetry: Telemetry::default(),
            assigned,
        }
    }

    /// Walks to the end. Every step takes bytes or is the last one.
    pub(super) fn run(mut self, link: LinkType) -> DecodedFrame {
        let mut reached = self.link(link);
        let stop = loop {
            reached = match reached {
                Err(stop) => break Some(stop),
                Ok(Next::Done) => break None,
                Ok(Next::Ethernet) => self.ethernet(),
                Ok(Next::EtherType(ether_type)) => self.ether_type(ether_type),
                Ok(Next::Ip) => self.ip(),
                Ok(Next::Ipv4) => self.ipv4(),
                Ok(Next::Ipv6) => self.ipv6(),
                Ok(Next::Protocol(protocol)) => self.protocol(protocol),
                Ok(Next::Lrh) => self.lrh(),
            };
        };
        // A length that lies matters for a packet whose payload is counted by it.
        let stop = if matches!(self.content, Content::Roce(_) | Content::Uet(_)) {
            self.lie.or(stop)
        } else {
            stop
        };
        DecodedFrame {
            content: self.content,
            mirror: self.mirror,
            stop,
            telemetry: self.telemetry,
        }
    }

    /// The bytes that are there, from the current place to the end.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.frame.get(self.at..self.available()).unwrap_or_default()
    }

    /// The end of the bytes that are there.
    fn available(&self) -> usize {
        self.end.min(self.frame.len())
    }

    /// Takes the next `N` bytes, which belong to `layer`.
    pub(super) fn take<const N: usize>(&mut self, layer: Layer) -> Result<&'a [u8; N], Stop> {
        let bytes = self
            .rest()
            .first_chunk()
            .ok_or_else(|| self.stop(layer, self.at, N))?;
        self.at += N;
        Ok(bytes)
    }

    /// Steps over `count` bytes of `layer`, which began at `start`.
    pub(super) fn skip(&mut self, count: usize, layer: Layer, start: usize) -> Result<(), Stop> {
        if self.at + count > self.available() {
            return Err(self.stop(layer, start, self.at - start + count));
        }
        self.at += count;
        Ok(())
    }

    /// The `N` bytes at `offset` from the current place, without a claim that they are there.
    pub(super) fn peek<const N: usize>(&self, offset: usize) -> Option<&'a [u8; N]> {
        chunk(self.rest(), offset)
    }

    /// Bytes end too early for the `needed` ones of `layer` at `start`.
    pub(super) fn stop(&self, layer: Layer, start: usize, needed: usize) -> Stop {
        let snapped = self.frame.len() < self.end && self.frame.len() < self.original;
        Stop {
            layer,
            offset: narrow(start),
            needed: narrow(needed),
            had: narrow(self.available().saturating_sub(start)),
            cut: if snapped { CutLimit::Snaplen } else { self.end_by },
        }
    }

    /// Believes the length of `layer`, which began at `start`, if the bytes around it allow it; else remembers the
    /// lie and returns `false`. A length of 0 comes from segmentation offload and says nothing.
    pub(super) fn limit(&mut self, layer: Layer, start: usize, length: usize) -> bool {
        let had = self.end.saturating_sub(start);
        let shortest = self.at - start;
        if length == 0 {
            return true;
        }
        if length <= had && length >= shortest {
            self.end = start + length;
            self.end_by = CutLimit::Length(layer);
            return true;
        }
        if length > had && (self.mirrored || self.fragmented) {
            return true;
        }
        let (needed, had) = if length > had {
            (length, had)
        } else {
            (shortest, length)
        };
        let stop = Stop {
            layer,
            offset: narrow(start),
            needed: narrow(needed),
            had: narrow(had),
            cut: CutLimit::Length(layer),
        };
        self.lie.get_or_insert(stop);
        false
    }

    /// Goes into a tunnel, whose header `layer` needs `needed` bytes.
    pub(super) fn enter(&mut self, layer: Layer, needed: usize, through: Through) -> Result<(), Stop> {
        if self.tunnels == MAX_TUNNELS {
            return Err(Stop {
                cut: CutLimit::Depth,
                ..self.stop(layer, self.at, needed)
            });
        }
        self.tunnels += 1;
        self.roce.through = self.roce.through.and(through);
        self.roce.vlan = None;
        Ok(())
    }

    /// The offset of a header as the packet keeps it; a frame with more than 64 KiB in front is not followed.
    pub(super) fn offset(&self, layer: Layer, at: usize, needed: usize) -> Result<u16, Stop> {
        u16::try_from(at).map_err(|_| Stop {
            cut: CutLimit::Depth,
            ..self.stop(layer, at, needed)
        })
    }
}

/// Frames are far shorter than 4 GiB: this only spares a panic.
pub(super) fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
