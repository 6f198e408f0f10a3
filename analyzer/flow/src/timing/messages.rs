//! Messages of a flow: how many, how long; and the path MTU that they show.

use roce_model::PATH_MTUS;
use roce_wire::{Operation, Psn, Roce};

/// The state of a flow's messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Messages {
    open: Open,
    mtu: Mtu,
}

/// Path MTU of a connection as its packets show it, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathMtu {
    /// The path MTU, when it is known.
    pub(crate) known: Option<u32>,
    /// It is no less than this.
    pub(crate) least: u32,
}

/// The message that a First packet began.
#[derive(Clone, Copy, Debug, Default)]
enum Open {
    /// None, or its beginning was not seen.
    #[default]
    Unknown,
    /// Its length stands in the RETH.
    Stated(u64),
    /// A SEND does not state its length: the sum of its payloads up to now.
    Summed(u64),
}

/// The path MTU, as far as it shows.
#[derive(Clone, Copy, Debug, Default)]
enum Mtu {
    #[default]
    Unknown,
    /// One READ and the request after it fit it.
    Guessed(u32),
    Known(u32),
}

/// A READ request whose span is not known: its PSN and length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingRead {
    pub(crate) psn: Psn,
    pub(crate) length: u32,
}

impl Messages {
    /// Takes a Middle packet with so many bytes.
    #[inline]
    pub(crate) fn add(&mut self, payload: u32) {
        if let Open::Summed(sum) = &mut self.open {
            *sum += u64::from(payload);
        }
        self.learn(payload);
    }

    /// Takes a request packet in its place; gives the length of the message that it completes, when that is known.
    pub(crate) fn observe(&mut self, packet: &Roce) -> Option<u64> {
        let opcode = packet.bth.opcode();
        let payload = u64::from(packet.payload_bytes);
        if opcode.is_first() {
            self.open = match opcode.operation() {
                Operation::Send | Operation::Other => Open::Summed(payload),
                Operation::Atomic | Operation::AtomicWrite => Open::Stated(8),
                _ if packet.seen.has(roce_wire::ExtendedHeaders::RETH) => {
                    Open::Stated(u64::from(packet.dma_length))
                }
                // The RETH was cut: the length of a READ is not known, that of a WRITE is the sum of its payloads.
                Operation::ReadRequest => Open::Unknown,
                _ => Open::Summed(payload),
            };
        } else if let Open::Summed(sum) = &mut self.open {
            *sum += payload;
        }
        if !opcode.is_last() {
            self.learn(packet.payload_bytes);
            return None;
        }
        match core::mem::take(&mut self.open) {
            Open::Unknown => None,
            Open::Stated(length) | Open::Summed(length) => Some(length),
        }
    }

    /// A new epoch: a new connection may have another path MTU, too.
    pub(crate) fn restart(&mut self) {
        *self = Self::default();
    }

    /// True if a message has begun and not ended, as far as is known.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.open, Open::Unknown)
    }

    /// PSNs were jumped over: a sum of payloads would be short.
    pub(crate) fn interrupt(&mut self) {
        self.open = Open::Unknown;
    }

    /// First and Middle packets, of requests and of responses, are as long as the path MTU; only the last may be shorter.
    #[inline]
    pub(crate) fn learn(&mut self, payload: u32) {
        if !matches!(self.mtu, Mtu::Known(_)) && PATH_MTUS.contains(&payload) {
            self.mtu = Mtu::Known(payload);
        }
    }

    /// The path MTU, when it is known.
    pub(crate) fn path_mtu(&self) -> Option<u32> {
        match self.mtu {
            Mtu::Known(mtu) => Some(mtu),
            _ => None,
        }
    }

    /// The peer sent a response of one packet with `least` bytes: the path MTU is no less. A smaller one was learned from the
    /// PSNs of READs that came in another order than they were sent.
    pub(crate) fn bound_path_mtu(&mut self, least: u32) {
        if matches!(self.mtu, Mtu::Known(mtu) | Mtu::Guessed(mtu) if mtu < least) {
            self.mtu = Mtu::Unknown;
        }
    }

    /// How many PSNs a READ of `length` bytes takes: one for each response, one at
    /// least (as `update_wqe_psn` of Linux rxe_req.c counts them). `None` while the path MTU, this flow's
    /// or that of its peer, could make a difference.
    pub(crate) fn read_span(&self, length: u32, peer: PathMtu) -> Option<u32> {
        // Responses show it by their length, requests alone by the PSNs of others, which reordering spoils.
        match peer.known.or(self.path_mtu()) {
            Some(mtu) => Some(length.div_ceil(mtu).max(1)),
            None if length <= peer.least.max(PATH_MTUS[0]) => Some(1),
            None => None,
        }
    }

    /// The request after a READ of unknown span has `next` as its PSN: two READs in a row that fit one path MTU, and no
    /// other, show it. A request between that was not captured makes the path MTU look smaller, a READ that is repeated
    /// from its middle on larger; so a guess that the next READ contradicts is none.
    pub(crate) fn learn_from_read(&mut self, read: PendingRead, next: Psn) {
        let psns = next.offset_from(read.psn);
        let fits = |mtu: &u32| i64::from(read.length.div_ceil(*mtu)) == i64::from(psns);
        let mut fitting = PATH_MTUS.into_iter().filter(fits);
        self.mtu = match (self.mtu, fitting.next(), fitting.next()) {
            (Mtu::Known(mtu), ..) => Mtu::Known(mtu),
            (Mtu::Guessed(mtu), Some(one), None) if mtu == one => Mtu::Known(mtu),
            (_, Some(one), None) => Mtu::Guessed(one),
            (Mtu::Guessed(mtu), Some(_), Some(_)) if !fits(&mtu) => Mtu::Unknown,
            (mtu, ..) => mtu,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(psn: u32, length: u32) -> PendingRead {
        PendingRead {
            psn: Psn::new(psn),
            length,
        }
    }

    #[test]
    fn two_reads_show_the_path_mtu() {
        let mut messages = Messages::default();
        assert_eq!(
            messages.read_span(256, PathMtu::default()),
            Some(1),
            "one PSN, whatever the MTU"
        );
        let none = PathMtu::default();
        let known = PathMtu {
            known: Some(4096),
            ..none
        };
        assert_eq!(messages.read_span(16_384, none), None);
        assert_eq!(messages.read_span(16_384, known), Some(4), "its responses");
        // 16384 bytes in 16 PSNs: 1024 bytes each.
        messages.learn_from_read(read(100, 16_384), Psn::new(116));
        assert_eq!(messages.path_mtu(), None, "one may be chance");
        messages.learn_from_read(read(116, 16_384), Psn::new(132));
        assert_eq!(messages.path_mtu(), Some(1024));
        assert_eq!(messages.read_span(16_384, none), Some(16));
        assert_eq!(messages.read_span(16_385, none), Some(17));
        assert_eq!(messages.read_span(0, none), Some(1));
    }

    #[test]
    fn a_response_of_one_packet_is_a_bound_of_the_path_mtu() {
        // 1,961 bytes came in one packet, so the path MTU is 2,048 or 4,096.
        let responses = PathMtu {
            known: None,
            least: 1_961,
        };
        let messages = Messages::default();
        assert_eq!(messages.read_span(1_961, responses), Some(1));
        assert_eq!(
            messages.read_span(1_962, responses),
            None,
            "nothing of this length came in one"
        );
    }

    #[test]
    fn a_response_longer_than_the_learned_path_mtu_refutes_it() {
        let mut messages = Messages::default();
        // READs that overtook others: 1998 bytes seem to take two PSNs.
        for first in [0, 10] {
            messages.learn_from_read(read(first, 1_998), Psn::new(first + 2));
        }
        assert_eq!(messages.path_mtu(), Some(1_024));
        messages.bound_path_mtu(1_024);
        assert_eq!(messages.path_mtu(), Some(1_024));
        messages.bound_path_mtu(1_500);
        assert_eq!(messages.path_mtu(), None);
    }

    #[test]
    fn what_fits_several_or_none_shows_nothing() {
        let mut messages = Messages::default();
        for _ in 0..3 {
            // 200 bytes take one PSN under every MTU.
            messages.learn_from_read(read(1, 200), Psn::new(2));
            // 15 PSNs for 16384 bytes fit no MTU.
            messages.learn_from_read(read(1, 16_384), Psn::new(16));
        }
        assert_eq!(messages.path_mtu(), None);
    }

    #[test]
    fn requests_that_were_not_captured_show_no_path_mtu() {
        let mut messages = Messages::default();
        for first in (0..60).step_by(10) {
            // 2048 bytes in one PSN: 2048 or 4096 bytes each. Then one READ was not captured: as if they took two.
            messages.learn_from_read(read(first, 2_048), Psn::new(first + 1));
            messages.learn_from_read(read(first + 1, 2_048), Psn::new(first + 3));
        }
        assert_eq!(messages.path_mtu(), None);
    }
}
