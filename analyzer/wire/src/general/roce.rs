//! The packet itself: GRH and LRH, and the transport headers.

use super::walk::{Next, Walk, narrow};
use crate::network::grh::Grh;
use crate::network::lrh::{LinkNextHeader, Lrh};
use crate::transport::{Transport, mrc};
use crate::{Address, Bth, Carrier, Content, ExtendedHeaders, Layer, Other, Stop};

impl<'a> Walk<'a> {
    /// RoCEv1: a GRH right behind the EtherType.
    pub(super) fn roce_v1(&mut self) -> Result<Next, Stop> {
        self.content = Content::Other(Other::Undecodable);
        let start = self.at;
        let grh = self.grh()?;
        if grh.next_header() != Grh::IBA_TRANSPORT {
            self.content = Content::Other(Other::NotRoce);
            return Ok(Next::Done);
        }
        self.roce.carrier = Carrier::RoceV1;
        let payload = usize::from(grh.payload_length());
        let known = self.limit(
            Layer::Grh,
            start,
            if payload == 0 { 0 } else { Grh::BYTES + payload },
        );
        let whole = if payload == 0 {
            self.end.saturating_sub(self.at)
        } else {
            payload
        };
        self.transport(known.then_some(whole))
    }

    /// Native InfiniBand.
    pub(super) fn lrh(&mut self) -> Result<Next, Stop> {
        self.content = Content::Other(Other::Undecodable);
        let start = self.at;
        let lrh = Lrh(self.take(Layer::Lrh)?);
        let raw = matches!(
            lrh.next_header(),
            LinkNextHeader::RawEtherType | LinkNextHeader::RawIpv6
        );
        if raw || lrh.virtual_lane() == Lrh::MANAGEMENT_LANE {
            self.content = Content::Other(Other::NotRoce);
            return Ok(Next::Done);
        }
        let length = usize::from(lrh.packet_bytes());
        let known = self.limit(Layer::Lrh, start, length);
        let whole = if length == 0 {
            self.end.saturating_sub(start)
        } else {
            length
        };
        if lrh.next_header() == LinkNextHeader::Global {
            let grh = self.grh()?;
            if grh.next_header() != Grh::IBA_TRANSPORT {
                self.content = Content::Other(Other::NotRoce);
                return Ok(Next::Done);
            }
            self.roce.carrier = Carrier::InfinibandGlobal;
        } else {
            self.roce.network_offset = self.offset(Layer::Lrh, start, Lrh::BYTES)?;
            self.roce.source = Address::lid(lrh.source());
            self.roce.destination = Address::lid(lrh.destination());
            self.roce.carrier = Carrier::InfinibandLocal;
        }
        let before = self.at - start;
        self.transport(if known { whole.checked_sub(before) } else { None })
    }

    fn grh(&mut self) -> Result<Grh<'a>, Stop> {
        let start = self.at;
        let grh = Grh(self.take(Layer::Grh)?);
        self.roce.network_offset = self.offset(Layer::Grh, start, Grh::BYTES)?;
        self.roce.source = grh.source();
        self.roce.destination = grh.destination();
        self.roce.traffic_class = grh.traffic_class();
        self.roce.hop_limit = grh.hop_limit();
        (self.roce.ip_id, self.roce.udp_source_port) = (0, 0);
        Ok(grh)
    }

    /// From the BTH on. `whole` is the length from there to the end of the ICRC, `None` when no length can be believed.
    pub(super) fn transport(&mut self, whole: Option<usize>) -> Result<Next, Stop> {
        self.content = Content::Other(Other::Undecodable);
        let start = self.at;
        let Some(headers) = Transport::parse(self.rest()) else {
            return Err(self.stop(Layer::Bth, start, Bth::BYTES));
        };
        self.roce.bth_offset = self.offset(Layer::Bth, start, Bth::BYTES)?;
        self.roce.bth = headers.bth;
        self.roce.seen = match mrc::whole_header(&headers.bth, self.rest().len(), whole) {
            Some(_) => ExtendedHeaders::MRC,
            None => headers.seen,
        };
        self.roce.aeth = headers.aeth.unwrap_or_default();
        self.roce.dma_length = headers.reth.map_or(0, |reth| reth.dma_length());
        self.roce.source_qpn = headers.deth.map_or(0, |deth| deth.source_qpn().value());
        let trailer = usize::from(headers.bth.pad_count()) + 4;
        let payload = whole.and_then(|whole| whole.checked_sub(headers.payload_offset + trailer));
        self.roce.payload_bytes = payload.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(0);
        self.content = Content::Roce(self.roce);
        if let Some(cut) = headers.cut {
            return Err(self.stop(cut.layer, start + cut.offset, cut.needed));
        }
        match whole {
            // The length leaves no room for padding and ICRC.
            Some(whole) if payload.is_none() => Err(Stop {
                had: narrow(whole.saturating_sub(headers.payload_offset)),
                cut: self.end_by,
                ..self.stop(Layer::Icrc, start + headers.payload_offset, trailer)
            }),
            _ => Ok(Next::Done),
        }
    }
}
