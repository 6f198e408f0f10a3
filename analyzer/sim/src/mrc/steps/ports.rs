//! Ports that go down and up, and what their hosts say of it.

use crate::mrc::run::{ControlMeaning, Event, MrcRun};
use crate::mrc::steps::answer::SERVICE;
use crate::record::frame::MrcBody;
use crate::units::Picos;

/// Time from a port's change to the first report of it.
const DETECTION: Picos = Picos::from_nanos(5_000);
/// Endpoint operations.
const PORT_STATUS: u8 = 0;

impl MrcRun<'_> {
    /// A port goes down or up: each host that talks with its host hears so.
    pub(crate) fn port_changes(&mut self, port: u32, down: bool) {
        let Some(table) = self.scenario.mrc.port.get(port as usize) else {
            return;
        };
        let (Ok(host), plane) = (self.topology.host(&table.host), table.plane) else {
            return;
        };
        let index = self.port(host, plane);
        self.ports[index].down = down;
        let mask: u32 = (0..self.scenario.mrc.planes)
            .filter(|plane| !self.ports[self.port(host, *plane)].down)
            .fold(0, |mask, plane| mask | 1 << plane);
        let mut told = Vec::new();
        for pair in 0..self.pairs.len() {
            let [from, to] = self.pairs[pair].hosts;
            let peer = if from == host { to } else { from };
            let concerned = from == host || to == host;
            if !concerned || told.contains(&peer) || mask == 0 {
                continue;
            }
            told.push(peer);
            self.requests += 1;
            let request = self.requests & 0xffff;
            let plane = mask.trailing_zeros();
            let body = MrcBody::EndpointRequest(PORT_STATUS, mask, super::send::stamp(self.now));
            let packet = self.endpoint_packet([host, peer], plane, request, body);
            let meaning = ControlMeaning::Ports { host, mask, request };
            self.control([host, peer], plane, None, (packet, meaning), DETECTION);
        }
        for pair in 0..self.pairs.len() {
            let pair = u32::try_from(pair).unwrap_or(u32::MAX);
            self.events.at(self.now, Event::Kick { pair });
        }
    }

    /// A host hears which ports of another one are reachable, and answers.
    pub(super) fn hear_ports(&mut self, own: u32, host: u32, (mask, request): (u32, u32), plane: u32) {
        let index = self.belief(own, host);
        self.believed[index] = mask;
        let body = MrcBody::EndpointResponse(PORT_STATUS, super::send::stamp(self.now));
        let packet = self.endpoint_packet([own, host], plane, request, body);
        self.control(
            [own, host],
            plane,
            None,
            (packet, ControlMeaning::Nothing),
            SERVICE,
        );
    }

    /// Place of what one host believes of another's ports.
    pub(super) fn belief(&self, own: u32, other: u32) -> usize {
        own as usize * self.topology.hosts.len() + other as usize
    }
}
