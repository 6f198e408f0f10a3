//! Steps of a run: accounts of waiting.

use super::{Account, Waits};
use crate::engine::events::EndpointId;
use crate::engine::run::Simulation;
use crate::units::Picos;

impl Simulation<'_> {
    /// From `time` on an end waits for something else.
    pub(crate) fn waits_at(&mut self, end: EndpointId, waits: Waits, time: Picos) {
        let account = &mut self.ends[end.index()].account;
        if account.waits == waits {
            return;
        }
        let before = core::mem::replace(account, Account { waits, since: time });
        if let Some(flow) = self.log.flows.get_mut(end.index()) {
            flow.waited.add(before.waits, before.since, time);
        }
    }

    /// Sets the limit that an end waits for from now on.
    pub(crate) fn waits(&mut self, end: EndpointId, waits: Waits) {
        self.waits_at(end, waits, self.now);
    }

    /// An end is not in its NIC's queue: nothing is to be sent, or it must not be.
    pub(crate) fn waits_idle(&mut self, end: EndpointId) {
        let blocked = self.ends[end.index()].requester.has_unsent();
        self.waits(end, if blocked { Waits::Blocked } else { Waits::Demand });
    }

    /// The run is over.
    pub(crate) fn close_accounts(&mut self) {
        for (own, flow) in self.ends.iter().zip(&mut self.log.flows) {
            flow.waited.add(own.account.waits, own.account.since, self.now);
        }
    }
}
