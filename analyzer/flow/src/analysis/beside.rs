//! Items between packets that are of no pause, loss or host: packets of UET, which are in no flow, and telemetry of switches.

use roce_model::{InbandHops, UetPacket};

use crate::analysis::Analysis;
use crate::key::Key;

impl Analysis {
    #[cold]
    pub(super) fn uet(&mut self, packet: &UetPacket) {
        self.advance_to(packet.time);
        self.connections.uet.observe(packet, &mut self.bins.events);
    }

    /// Telemetry of the packet before: the most of its hops goes to the row of its flow.
    #[cold]
    pub(super) fn inband(&mut self, found: &InbandHops) {
        self.advance_to(found.packet.time);
        self.connections.inband.add(found);
        let hops = found.hops.all().iter();
        let queue = hops.clone().filter_map(|hop| hop.queued_bytes).max();
        let delay = hops.filter_map(|hop| hop.residence_ns).max();
        let Some(at) = self.table.find_now(&Key::from_packet(&found.packet)) else {
            return;
        };
        let hot = &mut self.table.hot[at];
        if hot.active && (queue.is_some() || delay.is_some()) {
            let rare = hot.counts.rare_mut();
            rare.hop_queue = rare.hop_queue.max(queue);
            rare.hop_delay = rare.hop_delay.max(delay);
        }
    }
}
