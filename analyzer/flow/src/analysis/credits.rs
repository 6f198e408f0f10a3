//! Credits: the WRITEs that they follow, and the pairs of flows that they show.

use roce_model::{Packet, RemoteWrite};

use crate::analysis::Analysis;
use crate::credits::{FlowPlace, UnpairedAnswer, WriteKind, WritePacket};
use crate::key::FlowSlot;
use crate::psn::request::Verdict;

impl Analysis {
    /// A packet of a WRITE, but the middle of a message in order.
    pub(super) fn note_write(
        &mut self,
        at: FlowSlot,
        packet: &Packet,
        verdict: Verdict,
        write: Option<&RemoteWrite>,
    ) {
        let is_again = match verdict {
            Verdict::InOrder
            | Verdict::Gap { .. }
            | Verdict::Late {
                captured_before: false,
            } => false,
            Verdict::Stale | Verdict::NewEpoch(_) => return,
            _ => true,
        };
        let hot = &mut self.table.hot[at];
        hot.writes.messages = hot
            .writes
            .messages
            .saturating_add(u32::from(write.is_some_and(|write| write.target.is_some())));
        if hot.writes.are_plain && self.connections.credits.is_empty() {
            return;
        }
        let tap = hot.tap;
        let cold = &mut self.table.cold[at];
        let (key, groups, id) = (&cold.key, cold.groups, cold.id);
        let back = cold.peering.back();
        let place = || FlowPlace {
            at,
            id,
            tap,
            source: key.source,
            destination: key.destination,
            pair: groups.pair,
            back,
        };
        let write = WritePacket {
            roce: &packet.roce,
            write,
            time: packet.time,
            is_again,
            since_last: core::mem::take(&mut hot.writes.messages),
        };
        let kind = self
            .connections
            .credits
            .write(&mut cold.kinds.writes, place, &write);
        hot.writes.are_plain = kind == WriteKind::Plain;
        if let Some(division) = &mut cold.division {
            match kind {
                WriteKind::Data(credit) => division.credited(packet.time, credit),
                WriteKind::Credit => division.credits(packet.time),
                WriteKind::Plain | WriteKind::Unknown => {}
            }
        }
    }

    /// The flow whose packets an acknowledgement is for, as credits tell it. The other direction of the acknowledgement's flow is not
    /// known.
    pub(super) fn named_by_credits(&mut self, at: FlowSlot, packet: &Packet) -> Option<FlowSlot> {
        if self.connections.credits.is_empty() {
            return None;
        }
        let (tap, cold) = (self.table.hot[at].tap, &self.table.cold[at]);
        self.connections.credits.asker(&UnpairedAnswer {
            flow: (tap, cold.id),
            writes: cold.kinds.writes,
            pair: cold.groups.pair,
            psn: packet.roce.bth.psn(),
            time: packet.time,
        })
    }
}
