//! The paths of a connection: packets with one entropy.

use std::collections::HashMap;

use roce_model::{Address, MrcEntropyOrder, Span, TapId, Time};

use super::causes::Union;
use crate::timing::distribution::Distribution;

/// The longest time on a path, as a multiple of the longest one that was measured on any. Whatever takes longer does not come.
pub(super) const PATIENCE: u64 = 8;
/// Round trips of a path by which it is known how much they differ.
pub(super) const SOME_SAMPLES: u64 = 8;
/// Paths of a connection, at most: the last one takes the packets of all further ones.
const MAX_PATHS: usize = 1024;

/// How data packets carry an entropy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct CarriedEntropy {
    pub(crate) port: u16,
    /// Low 16 bits of the flow label; `None` with IPv4.
    pub(crate) label: Option<u16>,
}

impl CarriedEntropy {
    /// The entropy by an order of its parts.
    pub(super) fn entropy(self, order: MrcEntropyOrder) -> Option<u32> {
        let (port, label) = (u32::from(self.port), u32::from(self.label.unwrap_or_default()));
        match order {
            MrcEntropyOrder::LabelHigh => Some(label << 16 | port),
            MrcEntropyOrder::PortHigh => Some(port << 16 | label),
            MrcEntropyOrder::Port => Some(port),
            MrcEntropyOrder::Unknown => None,
        }
    }
}

/// One path.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    /// `None`: SACKs alone name it.
    pub(super) carried: Option<CarriedEntropy>,
    /// As a SACK or a NACK wrote it.
    pub(super) entropy: Option<u32>,
    pub(super) outer: Option<[Address; 2]>,
    pub(super) tap: Option<TapId>,
    pub(super) sent: u64,
    pub(super) again: u64,
    pub(super) arrived: u64,
    pub(super) lost: u64,
    /// Trimmed in the fabric, and at the last hop.
    pub(super) trimmed: [u64; 2],
    pub(super) sacks: u64,
    pub(super) marked: u64,
    pub(super) times: Distribution,
    /// Number of these times, the least and the most.
    pub(super) samples: u64,
    pub(super) shortest: Span,
    pub(super) longest: Span,
    /// The least time from a packet to a SACK that says it arrived, also where none names it: it did not take longer.
    pub(super) within: Option<Span>,
    pub(super) first_loss: Option<Time>,
    pub(super) last_loss: Option<Time>,
    pub(super) last_sent: Option<Time>,
    pub(super) last_arrived: Option<Time>,
    /// Packets of the whole connection when its last one was sent.
    pub(super) all_at_last: u64,
    pub(super) unanswered: u64,
    /// One of its probes is not answered, although there was time for it on any path.
    pub(super) is_mute: bool,
    pub(super) repair: Union,
}

impl Path {
    /// Adds a time from a data packet to its SACK. Gives by how much such times differ.
    pub(super) fn sample(&mut self, time: Span) -> Span {
        self.times.add(time.0);
        self.shortest = if self.samples == 0 {
            time
        } else {
            self.shortest.min(time)
        };
        self.longest = self.longest.max(time);
        self.samples += 1;
        Span(self.longest.0 - self.shortest.0)
    }

    /// A packet of it that was sent at a time was lost.
    pub(super) fn lose(&mut self, sent: Time, again: Time) {
        self.lost += 1;
        self.first_loss = Some(self.first_loss.map_or(sent, |first| first.min(sent)));
        self.last_loss = self.last_loss.max(Some(sent));
        self.repair.add(sent, again);
    }
}

/// All paths of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths {
    pub(super) list: Vec<Path>,
    by_carried: HashMap<CarriedEntropy, u16, foldhash::fast::RandomState>,
    by_entropy: HashMap<u32, u16, foldhash::fast::RandomState>,
    /// SACKs that fit each order: high bits in the label, in the port, in the port alone.
    votes: [u32; 3],
    /// True if there is no room for more paths.
    is_full: bool,
}

impl Paths {
    /// Says whether further paths find no room: packets on them count for their connection alone.
    pub(super) fn limit(&mut self, is_full: bool) {
        self.is_full = is_full;
    }

    /// The path of a data packet; a new one if there is none.
    pub(super) fn of_data(&mut self, carried: CarriedEntropy) -> u16 {
        if let Some(at) = self.by_carried.get(&carried) {
            return *at;
        }
        // SACKs may have named it before.
        let order = match (carried.label, self.order()) {
            (None, _) => MrcEntropyOrder::Port,
            (Some(_), order) => order,
        };
        let named = carried
            .entropy(order)
            .and_then(|entropy| self.by_entropy.get(&entropy));
        let at = match named.copied() {
            Some(at)
                if self
                    .list
                    .get(usize::from(at))
                    .is_some_and(|path| path.carried.is_none()) =>
            {
                at
            }
            _ => self.open(),
        };
        if usize::from(at) < MAX_PATHS - 1 {
            self.by_carried.insert(carried, at);
            if let Some(path) = self.get_mut(at) {
                path.carried = Some(carried);
            }
        }
        at
    }

    /// The path of data that a probe goes on, if there is one.
    pub(super) fn known(&self, carried: CarriedEntropy) -> Option<u16> {
        self.by_carried.get(&carried).copied()
    }

    /// The path that an entropy names; one of its own while no data show it.
    pub(super) fn named(&mut self, entropy: u32) -> u16 {
        if let Some(at) = self.by_entropy.get(&entropy) {
            return *at;
        }
        let at = self.by_parts(entropy).unwrap_or_else(|| self.open());
        // Several entropies may fit one path while their order is not known.
        if usize::from(at) < MAX_PATHS - 1 && self.by_entropy.len() < MAX_PATHS {
            self.by_entropy.insert(entropy, at);
            if let Some(path) = self.get_mut(at) {
                path.entropy.get_or_insert(entropy);
            }
        }
        at
    }

    /// The path whose packets carry the parts of an entropy, by the order that is known or the first one that fits.
    fn by_parts(&self, entropy: u32) -> Option<u16> {
        let [high, low] =
            [entropy >> 16, entropy & 0xffff].map(|part| u16::try_from(part).unwrap_or_default());
        let find = |port, label| self.by_carried.get(&CarriedEntropy { port, label }).copied();
        let (label_high, port_high) = (find(low, Some(high)), find(high, Some(low)));
        // Without a label the high bits are reflected as 0.
        let port = if high == 0 { find(low, None) } else { None };
        match self.order() {
            MrcEntropyOrder::LabelHigh => label_high,
            MrcEntropyOrder::PortHigh => port_high,
            MrcEntropyOrder::Port => port,
            MrcEntropyOrder::Unknown => label_high.or(port_high).or(port),
        }
    }

    fn open(&mut self) -> u16 {
        if self.is_full {
            return u16::MAX;
        }
        if self.list.len() < MAX_PATHS {
            self.list.push(Path::default());
        }
        u16::try_from(self.list.len() - 1).unwrap_or(u16::MAX)
    }

    /// An answer names a packet of a path by this entropy.
    pub(super) fn learn(&mut self, at: u16, entropy: u32) {
        let Some(carried) = self.list.get(usize::from(at)).and_then(|path| path.carried) else {
            return;
        };
        let orders = [
            (MrcEntropyOrder::LabelHigh, carried.label.is_some()),
            (MrcEntropyOrder::PortHigh, carried.label.is_some()),
            (MrcEntropyOrder::Port, carried.label.is_none()),
        ];
        for (votes, (order, may_be)) in self.votes.iter_mut().zip(orders) {
            let fits = may_be && carried.entropy(order) == Some(entropy);
            *votes = votes.saturating_add(u32::from(fits));
        }
    }

    /// The order of an entropy's parts, as most answers show it.
    pub(super) fn order(&self) -> MrcEntropyOrder {
        let [label_high, port_high, port] = self.votes;
        match (label_high, port_high, port) {
            (0, 0, 0) => MrcEntropyOrder::Unknown,
            (a, b, c) if c > a.max(b) => MrcEntropyOrder::Port,
            (a, b, _) if a >= b => MrcEntropyOrder::LabelHigh,
            _ => MrcEntropyOrder::PortHigh,
        }
    }

    pub(super) fn get_mut(&mut self, at: u16) -> Option<&mut Path> {
        self.list.get_mut(usize::from(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_learned_from_what_answers_name() {
        let mut paths = Paths::default();
        let carried = |port, label| CarriedEntropy {
            port,
            label: Some(label),
        };
        let at = paths.of_data(carried(0x5a00, 0xc100));
        assert_eq!(paths.order(), MrcEntropyOrder::Unknown);
        assert_eq!(paths.named(0x5a00_c100), at, "the only one that fits");
        paths.learn(at, 0x5a00_c100);
        assert_eq!(paths.order(), MrcEntropyOrder::PortHigh);
        // Named before its data come.
        let named = paths.named(0x5b01_c211);
        assert_eq!(paths.of_data(carried(0x5b01, 0xc211)), named);
    }

    #[test]
    fn paths_without_room_are_none() {
        let mut paths = Paths::default();
        let first = paths.of_data(CarriedEntropy { port: 1, label: None });
        paths.limit(true);
        assert_eq!(paths.of_data(CarriedEntropy { port: 1, label: None }), first);
        let other = paths.of_data(CarriedEntropy { port: 2, label: None });
        assert!(paths.get_mut(other).is_none() && paths.list.len() == 1);
    }

    #[test]
    fn further_paths_share_the_last_place() {
        let mut paths = Paths::default();
        for port in 0..5000 {
            paths.of_data(CarriedEntropy { port, label: None });
            paths.named(u32::from(port) << 16);
        }
        assert_eq!(paths.list.len(), MAX_PATHS);
        assert!(paths.by_carried.len() < MAX_PATHS && paths.by_entropy.len() <= MAX_PATHS);
    }
}
