//! Tunnels: VXLAN, Geneve, GRE with ERSPAN, MPLS; and which of them is a mirror session.

use super::walk::{Next, Walk};
use crate::frame::ethernet;
use crate::tunnel::erspan::{ErspanII, ErspanIII};
use crate::tunnel::geneve::Geneve;
use crate::tunnel::gre::{self, Gre};
use crate::tunnel::mpls::Mpls;
use crate::tunnel::vxlan::Vxlan;
use crate::{Layer, Mirror, MirrorKind, Stop, Through};

impl Walk<'_> {
    pub(super) fn vxlan(&mut self) -> Result<Next, Stop> {
        self.enter(Layer::Vxlan, Vxlan::BYTES, Through::VXLAN)?;
        let vxlan = Vxlan(self.take(Layer::Vxlan)?);
        let identifier = vxlan.has_identifier().then(|| vxlan.identifier());
        self.overlay(mirror(MirrorKind::Vxlan, identifier.unwrap_or(0)), identifier);
        Ok(Next::Ethernet)
    }

    pub(super) fn geneve(&mut self) -> Result<Next, Stop> {
        self.enter(Layer::Geneve, Geneve::BYTES, Through::GENEVE)?;
        let start = self.at;
        let geneve = Geneve(self.take(Layer::Geneve)?);
        if geneve.version() != 0 || geneve.is_control() {
            return Ok(Next::Done);
        }
        self.skip(usize::from(geneve.option_bytes()), Layer::Geneve, start)?;
        self.overlay(
            mirror(MirrorKind::Geneve, geneve.identifier()),
            Some(geneve.identifier()),
        );
        Ok(inside(geneve.protocol()))
    }

    pub(super) fn gre(&mut self) -> Result<Next, Stop> {
        self.enter(Layer::Gre, Gre::BYTES, Through::GRE)?;
        let start = self.at;
        let gre = Gre(self.take(Layer::Gre)?);
        if gre.version() != 0 || gre.has_routing() {
            return Ok(Next::Done);
        }
        let key = if gre.has_key() {
            self.word(gre.key_offset() - Gre::BYTES)
        } else {
            None
        };
        let sequence = if gre.has_sequence() {
            self.word(gre.sequence_offset() - Gre::BYTES)
        } else {
            None
        };
        self.skip(gre.header_bytes() - Gre::BYTES, Layer::Gre, start)?;
        match gre.protocol() {
            gre::ERSPAN | gre::ERSPAN_III => self.inside_erspan(gre.protocol(), sequence, gre.has_sequence()),
            ethernet::BRIDGED_ETHERNET => {
                self.overlay(
                    Mirror {
                        sequence,
                        ..mirror(MirrorKind::Gre, key.unwrap_or(0))
                    },
                    None,
                );
                Ok(Next::Ethernet)
            }
            protocol => Ok(Next::EtherType(protocol)),
        }
    }

    /// A mirror session: ERSPAN of a type that the protocol and a sequence number tell.
    fn inside_erspan(
        &mut self,
        protocol: u16,
        sequence: Option<u32>,
        has_sequence: bool,
    ) -> Result<Next, Stop> {
        match protocol {
            gre::ERSPAN if has_sequence => {
                let erspan = ErspanII(self.take(Layer::Erspan)?);
                self.erspan(
                    Mirror {
                        sequence,
                        truncated: erspan.truncated(),
                        index: erspan.index(),
                        ..mirror(MirrorKind::ErspanII, u32::from(erspan.session()))
                    },
                    Through::ERSPAN_II,
                );
                Ok(Next::Ethernet)
            }
            gre::ERSPAN => {
                self.erspan(mirror(MirrorKind::ErspanI, 0), Through::ERSPAN_I);
                Ok(Next::Ethernet)
            }
            _ => {
                let start = self.at;
                let erspan = ErspanIII(self.take(Layer::Erspan)?);
                self.skip(erspan.header_bytes() - ErspanIII::BYTES, Layer::Erspan, start)?;
                self.erspan(
                    Mirror {
                        sequence,
                        truncated: erspan.truncated(),
                        timestamp: Some(erspan.timestamp()),
                        index: u32::from(erspan.hardware()),
                        ..mirror(MirrorKind::ErspanIII, u32::from(erspan.session()))
                    },
                    Through::ERSPAN_III,
                );
                Ok(if erspan.frame_type() == 2 {
                    Next::Ip
                } else {
                    Next::Ethernet
                })
            }
        }
    }

    /// A label stack; what is inside shows by its first bits, as no field says it.
    pub(super) fn mpls(&mut self) -> Result<Next, Stop> {
        self.enter(Layer::Mpls, Mpls::BYTES, Through::MPLS)?;
        while !Mpls(self.take(Layer::Mpls)?).is_bottom() {}
        let known = |at: usize| {
            let ether_type = self.peek(at + 12).map(|bytes| u16::from_be_bytes(*bytes));
            ether_type.is_some_and(|t| matches!(inside(t), Next::EtherType(t) if is_followed(t)))
        };
        Ok(match self.peek(0) {
            Some([0x40..=0x4f]) => Next::Ipv4,
            Some([0x60..=0x6f]) => Next::Ipv6,
            // A pseudowire may put a control word in front (RFC 4385): four zero bits, as many a MAC address has.
            Some([0x00..=0x0f]) if known(4) && !known(0) => {
                self.skip(4, Layer::Mpls, self.at)?;
                Next::Ethernet
            }
            _ => Next::Ethernet,
        })
    }

    fn word(&self, offset: usize) -> Option<u32> {
        self.peek(offset).map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// An overlay is the packet's own, unless there is another one inside: then the outer one is a mirror's.
    fn overlay(&mut self, session: Mirror, identifier: Option<u32>) {
        if self.mirror.is_none() {
            match self.overlay.take() {
                Some(outer) => self.mirror = Some(outer),
                None => self.overlay = Some(session),
            }
        }
        self.roce.vni = identifier;
    }

    /// ERSPAN is a mirror session, but for an overlay around it.
    fn erspan(&mut self, session: Mirror, through: Through) {
        if self.mirror.is_none() {
            self.mirror = Some(self.overlay.take().unwrap_or(session));
        }
        self.roce.through = self.roce.through.and(through);
        self.roce.vni = None;
        self.mirrored = true;
    }
}

fn mirror(kind: MirrorKind, session: u32) -> Mirror {
    Mirror {
        kind,
        session,
        sequence: None,
        truncated: false,
        timestamp: None,
        index: 0,
    }
}

fn inside(protocol: u16) -> Next {
    if protocol == ethernet::BRIDGED_ETHERNET {
        Next::Ethernet
    } else {
        Next::EtherType(protocol)
    }
}

/// True if an EtherType is one that leads on.
fn is_followed(ether_type: u16) -> bool {
    matches!(
        ether_type,
        ethernet::IPV4
            | ethernet::IPV6
            | ethernet::ROCE_V1
            | ethernet::VLAN
            | ethernet::SERVICE_VLAN
            | ethernet::MPLS
    )
}
