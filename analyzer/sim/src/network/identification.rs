//! The IPv4 identification of the packets that a host sends.

use crate::engine::rng::Stream;
use crate::scenario::{IpId, Scenario};

/// Source of the identifications of a host's packets.
#[derive(Debug)]
pub(crate) struct Identifier {
    pub policy: IpId,
    /// The next one of the host.
    next: u16,
    stream: Stream,
}

impl Identifier {
    /// Identifier of a host, by its place among all.
    pub(crate) fn new(scenario: &Scenario, host: usize) -> Self {
        Self {
            policy: scenario.nic.ip_id,
            next: 0,
            stream: Stream::new(scenario.seed, "identification", host),
        }
    }

    /// The identification of the next packet, whose flow counts for itself from `own` on.
    pub(crate) fn identify(&mut self, own: &mut u16) -> u16 {
        match self.policy {
            IpId::CountFlow => {
                let id = *own;
                *own = own.wrapping_add(1);
                id
            }
            IpId::CountHost => {
                let id = self.next;
                self.next = id.wrapping_add(1);
                id
            }
            IpId::Zero => 0,
            IpId::Random => {
                #[expect(clippy::cast_possible_truncation, reason = "any 16 bits do")]
                {
                    self.stream.bits() as u16
                }
            }
        }
    }
}
