//! The transport headers of a packet: the BTH and the extended headers that its opcode calls for (IBTA 9.2.1),
//! as views.

pub mod atomic_ack_eth;
pub mod atomic_eth;
pub mod cnp;
pub mod deth;
pub mod feth;
pub mod ieth;
pub mod imm_dt;
pub mod mrc;
pub mod rdeth;
pub mod reth;
pub mod uet;
pub mod xrceth;

use crate::bytes::chunk;
use crate::{Aeth, Bth, ExtendedHeaders, Layer};
use atomic_ack_eth::AtomicAckEth;
use atomic_eth::AtomicEth;
use cnp::Cnp;
use deth::Deth;
use feth::Feth;
use ieth::Ieth;
use imm_dt::ImmDt;
use rdeth::Rdeth;
use reth::Reth;
use xrceth::Xrceth;

/// The transport headers of one packet. A header is `None` when the opcode does not call for it or when it was cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(missing_docs, reason = "each field is the header it names")]
pub struct Transport<'a> {
    pub bth: Bth,
    pub rdeth: Option<Rdeth<'a>>,
    pub deth: Option<Deth<'a>>,
    pub xrceth: Option<Xrceth<'a>>,
    pub feth: Option<Feth<'a>>,
    pub reth: Option<Reth<'a>>,
    pub atomic_eth: Option<AtomicEth<'a>>,
    pub aeth: Option<Aeth>,
    pub atomic_ack_eth: Option<AtomicAckEth<'a>>,
    pub imm_dt: Option<ImmDt<'a>>,
    pub ieth: Option<Ieth<'a>>,
    /// The reserved bytes of a CNP. They count as its payload: no [`ExtendedHeaders`] header is defined for them.
    pub cnp: Option<Cnp<'a>>,
    /// The extended headers that are whole.
    pub seen: ExtendedHeaders,
    /// The first header that is not whole: no header after it was read.
    pub cut: Option<CutHeader>,
    /// Start of the payload, in bytes from the BTH, even if fewer bytes are there.
    pub payload_offset: usize,
}

/// A header that the bytes end in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CutHeader {
    /// The cut header.
    pub layer: Layer,
    /// Start of the header, in bytes from the BTH.
    pub offset: usize,
    /// Bytes that the header needs.
    pub needed: usize,
}

/// Takes one header after the other, until one is cut.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    wanted: ExtendedHeaders,
    seen: ExtendedHeaders,
    cut: Option<CutHeader>,
}

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self, header: ExtendedHeaders, layer: Layer) -> Option<&'a [u8; N]> {
        if !self.wanted.has(header) {
            return None;
        }
        let offset = self.at;
        self.at += N;
        if self.cut.is_some() {
            return None;
        }
        let found = chunk(self.bytes, offset);
        if found.is_some() {
            self.seen = self.seen.and(header);
        } else {
            self.cut = Some(CutHeader {
                layer,
                offset,
                needed: N,
            });
        }
        found
    }
}

impl<'a> Transport<'a> {
    /// Reads the headers at the start of `bytes`, which begin at the BTH; `None` when the BTH is not whole.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let bth = Bth(*bytes.first_chunk()?);
        let mut r = Reader {
            bytes,
            at: Bth::BYTES,
            wanted: bth.opcode().extended(),
            seen: ExtendedHeaders::NONE,
            cut: None,
        };
        let mut headers = Self {
            bth,
            rdeth: r.take(ExtendedHeaders::RDETH, Layer::Rdeth).map(Rdeth),
            deth: r.take(ExtendedHeaders::DETH, Layer::Deth).map(Deth),
            xrceth: r.take(ExtendedHeaders::XRCETH, Layer::Xrceth).map(Xrceth),
            feth: r.take(ExtendedHeaders::FETH, Layer::Feth).map(Feth),
            reth: r.take(ExtendedHeaders::RETH, Layer::Reth).map(Reth),
            atomic_eth: r
                .take(ExtendedHeaders::ATOMIC_ETH, Layer::AtomicEth)
                .map(AtomicEth),
            aeth: r
                .take(ExtendedHeaders::AETH, Layer::Aeth)
                .map(|bytes| Aeth(*bytes)),
            atomic_ack_eth: r
                .take(ExtendedHeaders::ATOMIC_ACK_ETH, Layer::AtomicAckEth)
                .map(AtomicAckEth),
            imm_dt: r.take(ExtendedHeaders::IMM_DT, Layer::ImmDt).map(ImmDt),
            ieth: r.take(ExtendedHeaders::IETH, Layer::Ieth).map(Ieth),
            ..Self::default()
        };
        if bth.opcode().is_cnp() {
            headers.cnp = chunk(bytes, Bth::BYTES).map(Cnp);
        }
        headers.seen = r.seen;
        headers.cut = r.cut;
        headers.payload_offset = r.at;
        Some(headers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Qpn;

    /// A BTH with an opcode, then bytes 0, 1, 2 ... as extended headers.
    fn packet(opcode: u8) -> [u8; 64] {
        core::array::from_fn(|i| match i {
            0 => opcode,
            1..12 => 0,
            _ => u8::try_from(i - 12).unwrap_or(0),
        })
    }

    #[test]
    fn headers_stand_in_the_order_of_table_38() {
        // RD WRITE Only with Immediate: RDETH 4, DETH 8, RETH 16, ImmDt 4.
        let bytes = packet(0x4b);
        let t = Transport::parse(&bytes).unwrap_or_default();
        assert_eq!(t.rdeth.map(|h| h.context()), Some(0x01_0203));
        assert_eq!(t.deth.map(|h| h.source_qpn()), Some(Qpn::new(0x09_0a0b)));
        assert_eq!(t.reth.map(|h| h.dma_length()), Some(0x1819_1a1b));
        assert_eq!(t.imm_dt.map(|h| h.data()), Some(0x1c1d_1e1f));
        assert_eq!((t.payload_offset, t.cut), (12 + 32, None));
        // RC FLUSH: FETH 4, then RETH 16.
        let bytes = packet(0x1c);
        let t = Transport::parse(&bytes).unwrap_or_default();
        assert!(t.feth.is_some());
        assert_eq!(t.reth.map(|h| h.remote_key()), Some(0x0c0d_0e0f));
        // XRC FetchAdd: XRCETH 4, AtomicETH 28.
        let bytes = packet(0xb4);
        let t = Transport::parse(&bytes).unwrap_or_default();
        assert_eq!(t.xrceth.map(|h| h.receive_queue()), Some(0x01_0203));
        assert_eq!(t.atomic_eth.map(|h| h.remote_key()), Some(0x0c0d_0e0f));
        // RC Atomic Acknowledge: AETH 4, AtomicAckETH 8.
        let bytes = packet(0x12);
        let t = Transport::parse(&bytes).unwrap_or_default();
        assert_eq!(t.aeth, Some(Aeth([0, 1, 2, 3])));
        assert_eq!(
            t.atomic_ack_eth.map(|h| h.original()),
            Some(0x0405_0607_0809_0a0b)
        );
        // SEND Only with Invalidate: IETH 4. Vendor opcodes: nothing is known.
        let bytes = packet(0x17);
        assert_eq!(
            Transport::parse(&bytes)
                .and_then(|t| t.ieth)
                .map(|h| h.remote_key()),
            Some(0x0001_0203)
        );
        let bytes = packet(0xd1);
        let t = Transport::parse(&bytes).unwrap_or_default();
        assert_eq!((t.seen, t.payload_offset), (ExtendedHeaders::NONE, 12));
    }

    #[test]
    fn the_first_cut_header_is_named() {
        let bytes = packet(0x4b);
        let t = Transport::parse(&bytes[..12 + 4 + 8 + 15]).unwrap_or_default();
        assert_eq!(
            t.cut,
            Some(CutHeader {
                layer: Layer::Reth,
                offset: 24,
                needed: 16
            })
        );
        assert!(t.deth.is_some() && t.reth.is_none() && t.imm_dt.is_none());
        assert_eq!(
            (t.seen, t.payload_offset),
            (ExtendedHeaders::RDETH.and(ExtendedHeaders::DETH), 44)
        );
        assert_eq!(Transport::parse(&bytes[..11]), None);
    }
}
