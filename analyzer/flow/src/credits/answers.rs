//! Acknowledgements of data, and which flow carries them. The credits of a connection come from the queue pair that its data go
//! to, or from a neighbour of it; of neighbours, the flows that wait for an acknowledgement tell.

use roce_model::{FlowId, TapId, Time};
use roce_wire::Psn;

use super::data::DataFlow;
use super::ring::CreditRing;
use super::unpaired::UnpairedAnswer;
use super::{Credits, WriteHandle};
use crate::key::FlowSlot;

/// Flows whose other direction is not known and whose answers are kept, at most, and answers of each.
const MAX_UNPAIRED: usize = 4096;
const MAX_ANSWERS: usize = 256;
/// Weight of an acknowledgement that one flow alone waited for, where one that it waited for first has 1.
const SOLE: u32 = 4;
/// Weight that proves a flow to be the other direction. Of two flows the wrong one is first so often in one of 4,096 cases.
const PROOF: u32 = 12;
/// Flows that may be the other direction, at most, and pieces of each that are looked at.
const MAX_ASKERS: usize = 64;
const MAX_PIECES: usize = 32;

impl Credits {
    /// True if there are no credits, so that no answer matters.
    pub(crate) fn is_empty(&self) -> bool {
        self.rings.len() == self.free_rings.len()
    }

    /// All up to `psn` of a flow is acknowledged at `time`.
    #[inline]
    pub(crate) fn acknowledge(&mut self, handle: WriteHandle, psn: Psn, time: Time) {
        let Some(at) = handle.index() else { return };
        if self.flows.get(at).is_some_and(|flow| flow.data.is_some()) {
            self.acknowledge_data(at, psn, time);
        }
    }

    fn acknowledge_data(&mut self, at: usize, psn: Psn, time: Time) {
        let Some(mut data) = self.flows[at].data.take() else {
            return;
        };
        while let Some((piece, is_own)) = data.acknowledged(psn, time) {
            let message = self.message_mut(piece.ring, piece.number);
            // A piece that was sent again had its own acknowledgement lost on the way: the later one is the one that its sender got.
            if let Some(message) = message.filter(|message| is_own || message.retransmissions > 0) {
                message.acknowledged = message.acknowledged.saturating_add(1);
                message.acknowledgement = message.acknowledgement.max(time);
            }
        }
        self.flows[at].data = Some(data);
    }

    /// The PSNs of a flow begin again: its credits are those of another connection.
    pub(crate) fn begin_epoch(&mut self, handle: WriteHandle) {
        self.restart(handle);
        let Some(at) = handle.index() else { return };
        let Some(flow) = self.flows.get_mut(at) else {
            return;
        };
        flow.may_be_lane = true;
        let rings = core::mem::take(&mut flow.rings);
        for ring in rings {
            if !self.ring(ring).is_some_and(CreditRing::has_grown) {
                self.drop_ring(at, ring);
            }
        }
    }

    /// Pieces that were not acknowledged never are.
    pub(super) fn restart(&mut self, handle: WriteHandle) {
        if let Some(data) = self.data_of_flow(handle) {
            data.restart();
        }
    }

    fn data_of_flow(&mut self, handle: WriteHandle) -> Option<&mut DataFlow> {
        self.flows.get_mut(handle.index()?)?.data.as_deref_mut()
    }

    /// The flow whose data an answer is for. An answer that leaves it open is kept.
    pub(crate) fn asker(&mut self, answer: &UnpairedAnswer) -> Option<FlowSlot> {
        let hosts = self.hosts.get(*self.hosts_of.get(&answer.pair)? as usize)?;
        if hosts.rings.is_empty() {
            return None;
        }
        let own = answer.writes.index().and_then(|at| self.flows.get(at));
        let own = own
            .map(|flow| flow.rings.as_slice())
            .filter(|rings| !rings.is_empty());
        let (rings, is_shared) = (own.unwrap_or(&hosts.rings), own.is_some());
        let asker = self.first_asker(rings, answer);
        self.keep(answer, asker, is_shared)
    }

    /// The flow that waits for this acknowledgement among those with data for some rings, and whether it alone does. Of several the
    /// one whose data ended first: answers come in the order of what they answer.
    fn first_asker(&self, rings: &[u32], answer: &UnpairedAnswer) -> Option<(u32, bool)> {
        let (_, id) = answer.flow;
        let rings = rings.iter().filter_map(|ring| self.ring(*ring));
        let (mut first, mut others) = (None::<(Time, u32)>, 0);
        for at in rings.flat_map(|ring| &ring.data).take(MAX_ASKERS) {
            let data = self.flows.get(*at as usize).and_then(|flow| flow.data.as_deref());
            let Some(data) = data.filter(|data| !data.is_paired) else {
                continue;
            };
            let mut latest = data.waiting.iter().rev().take(MAX_PIECES);
            let Some(piece) = latest.find(|piece| piece.last == answer.psn && piece.ended.0 != 0) else {
                continue;
            };
            if first.is_some_and(|(_, known)| known == *at) {
                continue;
            }
            others += 1;
            let is_open = piece.answered_by.is_none_or(|by| by == id);
            if is_open && first.is_none_or(|(ended, _)| piece.ended < ended) {
                first = Some((piece.ended, *at));
            }
        }
        let (_, at) = first?;
        Some((at, others == 1))
    }

    /// Keeps an answer until its flow's other direction is known, which may be now. The queue pair that data and credits share
    /// needs no proof, if one flow alone waits.
    fn keep(
        &mut self,
        answer: &UnpairedAnswer,
        asker: Option<(u32, bool)>,
        is_shared: bool,
    ) -> Option<FlowSlot> {
        if self.answers.len() >= MAX_UNPAIRED && !self.answers.contains_key(&answer.flow) {
            return None;
        }
        let kept = self.answers.entry(answer.flow).or_default();
        if kept.answers.len() >= MAX_ANSWERS {
            kept.answers.pop_front();
        }
        kept.answers.push_back((answer.psn, answer.time));
        let (asker, is_sole) = asker?;
        kept.agree(asker, if is_sole { SOLE } else { 1 });
        let is_proven = kept.agreed >= PROOF || is_sole && is_shared;
        let flow = self.flows.get_mut(asker as usize)?;
        if let Some(piece) = flow.data.as_deref_mut()?.piece_of(answer.psn) {
            piece.answered_by = Some(answer.flow.1);
        }
        (is_proven && kept.asker == asker && flow.place.at != FlowSlot::NONE).then_some(flow.place.at)
    }

    /// The answers of `flow` are for the flow of `handle`.
    pub(crate) fn pair(&mut self, handle: WriteHandle, flow: (TapId, FlowId)) {
        if let Some(data) = self.data_of_flow(handle) {
            data.is_paired = true;
        }
        if self.answers.is_empty() {
            return;
        }
        let answers = self.answers.remove(&flow).map(|kept| kept.answers);
        for (psn, time) in answers.into_iter().flatten() {
            self.acknowledge(handle, psn, time);
        }
    }

    /// The other direction of the flow of `handle` is no longer known.
    pub(crate) fn unpair(&mut self, handle: WriteHandle) {
        if let Some(data) = self.data_of_flow(handle) {
            data.is_paired = false;
        }
    }
}
