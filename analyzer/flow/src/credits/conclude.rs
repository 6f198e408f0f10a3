//! The end: proven rings become what one tap saw of a connection.

use roce_model::FlowId;
use roce_wire::Address;

use super::at_tap::CreditsAtTap;
use super::ring::CreditRing;
use super::{Credits, WriteFlow};

impl Credits {
    /// Rings whose credits were captured without the addresses that they offer.
    pub(crate) fn cut_rings(&self) -> u64 {
        let rings = self.rings.iter().flatten();
        rings.filter(|ring| ring.is_cut()).count() as u64
    }

    /// Each connection as each tap saw it.
    pub(crate) fn conclude(mut self) -> Vec<CreditsAtTap> {
        self.mark_pending();
        let rings = core::mem::take(&mut self.rings);
        let rings = rings.into_iter().flatten().filter(|ring| ring.is_proven());
        rings.filter_map(|ring| self.at_tap(*ring)).collect()
    }

    /// Marks messages whose acknowledgement is still to come, in flows that have got some.
    fn mark_pending(&mut self) {
        let data = self.flows.iter().filter_map(|flow| flow.data.as_deref());
        let answered = data.filter(|data| data.is_answered);
        let pending: Vec<(u32, u64)> = answered
            .flat_map(|data| data.waiting.iter().map(|piece| (piece.ring, piece.number)))
            .collect();
        for (ring, number) in pending {
            if let Some(message) = self.message_mut(ring, number) {
                message.is_pending = true;
            }
        }
    }

    fn at_tap(&self, ring: CreditRing) -> Option<CreditsAtTap> {
        let flow = |at: &u32| self.flows.get(*at as usize);
        let ids = |flows: &[u32]| -> Vec<FlowId> {
            let mut ids: Vec<FlowId> = flows.iter().filter_map(flow).map(|flow| flow.place.id).collect();
            ids.sort_unstable();
            ids.dedup();
            ids
        };
        let WriteFlow { place, .. } = flow(ring.flows.first()?)?;
        let (sender, receiver): (Address, Address) = (place.destination, place.source);
        Some(CreditsAtTap {
            tap: place.tap,
            sender,
            receiver,
            credit_flows: ids(&ring.flows),
            data_flows: ids(&ring.data),
            low: ring.low,
            high: ring.high,
            says_numbers: ring.says_numbers(),
            rank: ring.rank(),
            releases: ring.releases(),
            used: ring.used(),
            pieces: ring.pieces(),
            has_immediates: ring.has_immediates(),
            early: ring.early,
            messages: ring.messages.into(),
        })
    }
}
