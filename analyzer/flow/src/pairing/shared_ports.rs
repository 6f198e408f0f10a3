//! Number of flows of two hosts on one UDP source port, and the flow itself when it is alone.

use std::collections::HashMap;

use crate::key::FlowSlot;

/// The flows of one port: their number, and all their slots XORed, which for one flow is its own.
#[derive(Clone, Copy, Debug, Default)]
struct Users {
    count: u32,
    places: u32,
}

/// The UDP source ports of all live flows that could be one direction of a connection.
#[derive(Debug, Default)]
pub(crate) struct SharedPorts(HashMap<(u64, u16), Users, foldhash::fast::RandomState>);

impl SharedPorts {
    /// The flow at `at`, whose hosts have the hash `pair`, uses `port`.
    pub(crate) fn enter(&mut self, pair: u64, port: u16, at: FlowSlot) {
        let users = self.0.entry((pair, port)).or_default();
        users.count += 1;
        users.places ^= at.bits();
    }

    /// It is gone.
    pub(crate) fn leave(&mut self, pair: u64, port: u16, at: FlowSlot) {
        if let Some(users) = self.0.get_mut(&(pair, port)) {
            users.count -= 1;
            users.places ^= at.bits();
            if users.count == 0 {
                self.0.remove(&(pair, port));
            }
        }
    }

    /// The only flow between these hosts with `port`.
    pub(crate) fn only(&self, pair: u64, port: u16) -> Option<FlowSlot> {
        let users = self.0.get(&(pair, port))?;
        (users.count == 1).then_some(FlowSlot::from_bits(users.places))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::slot;

    #[test]
    fn one_alone_is_known() {
        let mut ports = SharedPorts::default();
        assert_eq!(ports.only(1, 5), None);
        ports.enter(1, 5, slot(77));
        ports.enter(2, 5, slot(78));
        assert_eq!(
            (ports.only(1, 5), ports.only(2, 5)),
            (Some(slot(77)), Some(slot(78)))
        );
        ports.enter(1, 5, slot(79));
        assert_eq!(ports.only(1, 5), None);
        ports.leave(1, 5, slot(77));
        assert_eq!(ports.only(1, 5), Some(slot(79)));
        ports.leave(1, 5, slot(79));
        ports.leave(1, 5, slot(79));
        assert_eq!(ports.only(1, 5), None);
        assert_eq!(ports.0.len(), 1);
    }
}
