//! The two hosts of each live flow: bounded, and forgotten some time after the flow has closed.

use std::collections::HashMap;

use roce_model::{FlowId, Time};
use roce_wire::Address;

/// Flows whose hosts are known: some 20 MB. Traffic of others counts to no pair of its own.
const MAX_FLOWS: usize = 1 << 18;

/// Sender and receiver of flows.
#[derive(Default)]
pub(super) struct FlowHosts {
    known: HashMap<FlowId, (Address, Address)>,
    /// Flows that closed in this interval, and in the one before, with the time of their last packet. The latter are forgotten at its end,
    /// because late rows may follow.
    closed: [HashMap<FlowId, Time>; 2],
}

impl FlowHosts {
    /// A flow has begun.
    pub(super) fn opened(&mut self, flow: FlowId, hosts: (Address, Address)) {
        self.goes_on(flow);
        if self.known.len() < MAX_FLOWS {
            self.known.insert(flow, hosts);
        }
    }

    /// A flow has ended, or an epoch of it.
    pub(super) fn closed(&mut self, flow: FlowId, last: Time) {
        let [now, _] = &mut self.closed;
        if now.len() < MAX_FLOWS {
            now.insert(flow, last);
        }
    }

    /// The hosts of a flow that has traffic in the bin that begins at `time`.
    pub(super) fn of(&mut self, flow: FlowId, time: Time) -> Option<(Address, Address)> {
        let is_later = |closed: &HashMap<FlowId, Time>| closed.get(&flow).is_some_and(|last| time > *last);
        if self.closed.iter().any(is_later) {
            // It was an epoch that ended: the flow goes on.
            self.goes_on(flow);
        }
        self.known.get(&flow).copied()
    }

    /// An interval has passed.
    pub(super) fn interval(&mut self) {
        let [now, before] = &mut self.closed;
        for flow in before.drain().map(|(flow, _)| flow) {
            self.known.remove(&flow);
        }
        std::mem::swap(now, before);
    }

    fn goes_on(&mut self, flow: FlowId) {
        for closed in &mut self.closed {
            closed.remove(&flow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> (Address, Address) {
        (Address::v4([10, 0, 0, 1]), Address::v4([10, 0, 0, 2]))
    }

    #[test]
    fn a_flow_is_known_for_an_interval_behind_its_end() {
        let mut all = FlowHosts::default();
        all.opened(FlowId(7), hosts());
        all.closed(FlowId(7), Time(100));
        all.interval();
        // A late row, of a bin before the end.
        assert_eq!(all.of(FlowId(7), Time(90)), Some(hosts()));
        all.interval();
        assert_eq!(all.of(FlowId(7), Time(90)), None);
    }

    #[test]
    fn a_flow_whose_epoch_ended_goes_on() {
        let mut all = FlowHosts::default();
        all.opened(FlowId(7), hosts());
        all.closed(FlowId(7), Time(100));
        assert_eq!(all.of(FlowId(7), Time(110)), Some(hosts()));
        for _ in 0..3 {
            all.interval();
        }
        assert_eq!(all.of(FlowId(7), Time(500)), Some(hosts()));
    }
}
