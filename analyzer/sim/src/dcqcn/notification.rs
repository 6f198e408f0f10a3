//! DCQCN's notification point: which packets marked CE are answered by a CNP.

use std::collections::HashMap;

use roce_model::{Span, Time};
use serde::Deserialize;

/// Scope of one pacing interval. NICs differ: per queue pair, per destination address, or per port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CnpScope {
    /// For each queue pair.
    #[default]
    Qp,
    /// For each address that CNPs go to.
    Ip,
    /// For the whole port.
    Port,
}

/// The notification point of one NIC (SIGCOMM 2015, section 3.1): a CNP at once for the first packet
/// marked CE, then at most one in each interval, and only if a marked packet comes.
#[derive(Clone, Debug)]
pub struct NotificationPoint {
    interval: Span,
    scope: CnpScope,
    last: HashMap<(u32, u32), Time>,
}

impl NotificationPoint {
    /// A notification point that leaves `interval` between the CNPs of one `scope`.
    pub fn new(interval: Span, scope: CnpScope) -> Self {
        Self {
            interval,
            scope,
            last: HashMap::new(),
        }
    }

    /// A packet marked CE came for queue pair `qp` from `peer` (any numbers that tell them apart): whether a CNP
    /// leaves.
    pub fn marked(&mut self, now: Time, qp: u32, peer: u32) -> bool {
        let key = match self.scope {
            CnpScope::Qp => (qp, 0),
            CnpScope::Ip => (peer, 1),
            CnpScope::Port => (0, 2),
        };
        match self.last.get(&key) {
            Some(last) if now.since(*last) < self.interval => false,
            _ => {
                self.last.insert(key, now);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cnp_in_an_interval() {
        let mut np = NotificationPoint::new(Span(50_000), CnpScope::Qp);
        assert!(np.marked(Time(1_000), 1, 1));
        assert!(!np.marked(Time(50_999), 1, 1));
        assert!(np.marked(Time(51_000), 1, 1));
        assert!(np.marked(Time(51_000), 2, 1), "another queue pair");
    }

    #[test]
    fn the_scope_shares_the_interval() {
        let mut ip = NotificationPoint::new(Span(50_000), CnpScope::Ip);
        assert!(ip.marked(Time(0), 1, 1));
        assert!(!ip.marked(Time(0), 2, 1));
        assert!(ip.marked(Time(0), 3, 2));
        let mut port = NotificationPoint::new(Span(50_000), CnpScope::Port);
        assert!(port.marked(Time(0), 1, 1));
        assert!(!port.marked(Time(0), 3, 2));
    }
}
