//! Steps of a run: impairments.

use super::applies;
use crate::engine::events::{PacketId, PortId};
use crate::engine::log::{Duplicate, Reason};
use crate::engine::run::Simulation;
use crate::network::topology::number;
use crate::record::frame::Frame;
use crate::units::Picos;

impl Simulation<'_> {
    /// Extra delay of a packet on a link; `None` when the link loses it.
    pub(crate) fn impair(&mut self, id: PortId, packet_id: PacketId) -> Option<Picos> {
        let mut more = Picos::ZERO;
        for place in 0..self.topology.ports[id.index()].impairments.len() {
            let index = self.topology.ports[id.index()].impairments[place] as usize;
            let Some(table) = self.scenario.impairment.get(index) else {
                continue;
            };
            let packet = *self.pool.packet(packet_id);
            if !applies(table, &packet, self.now) {
                continue;
            }
            let state = &mut self.impairments[index];
            if state.loses(table, &packet) {
                self.topology.ports[id.index()].count.link_lost += 1;
                self.drop_packet(packet_id, id, Reason::Random);
                return None;
            }
            if state.stream.happens(table.corrupt) {
                self.pool.change(packet_id).damage();
            }
            if state.stream.happens(table.reorder) {
                more = more.plus(table.reorder_delay);
                self.log.delayed(&packet);
            }
        }
        Some(more)
    }

    /// The network may deliver a packet twice: the duplicate arrives later than the packet, by its own length at least.
    pub(crate) fn duplicate(&mut self, id: PortId, packet_id: PacketId, arrives: Picos) {
        for place in 0..self.topology.ports[id.index()].impairments.len() {
            let index = self.topology.ports[id.index()].impairments[place] as usize;
            let Some(table) = self.scenario.impairment.get(index) else {
                continue;
            };
            let mut copy = *self.pool.packet(packet_id);
            if copy.is_copy() || table.duplicate <= 0.0 || !applies(table, &copy, self.now) {
                continue;
            }
            let state = &mut self.impairments[index];
            if !state.more.happens(table.duplicate) {
                continue;
            }
            let (from, to) = (table.duplicate_after.from, table.duplicate_after.to);
            let after = from.plus(Picos(state.more.below(to.since(from).0.saturating_add(1))));
            let rate = self.topology.ports[id.index()].rate;
            let after = after.max(rate.time_of(u64::from(copy.bytes + Frame::LINE_OVERHEAD)));
            copy.copy = number(self.log.duplicates.len());
            copy.again = u32::MAX;
            self.log.duplicates.push(Duplicate {
                time: arrives.plus(after),
                flow: copy.flow,
                kind: copy.kind,
                psn: copy.psn(),
                port: id,
                recorded: 0,
            });
            self.topology.ports[id.index()].count.link_doubled += 1;
            let copy = self.pool.add(&copy);
            self.travel(id, copy, arrives.plus(after));
        }
    }
}
