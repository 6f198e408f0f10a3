//! Senders of pause frames, as the link addresses of RoCE frames show them: a host itself, or the port of a switch that a host sends to.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use roce_model::{Address, LinkAddresses, MacAddress, TapId};

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Link addresses that are kept, at most.
const MAX_ADDRESSES: usize = 1 << 15;
/// Hosts kept of one link address: of more it is a router's.
const MAX_BEHIND: usize = 16;
/// TTLs and hop limits with which systems send (64: Linux and most adapters; 128: Windows; 255: routers).
const FRESH: [u8; 3] = [64, 128, 255];

/// Who sends pause frames.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Pauser {
    /// This host: its own link address, and no router between it and the tap.
    Host(Address),
    /// The port of a switch or router to which this host sends.
    Facing(Address),
    /// A router to which packets for these hosts go.
    Router(Vec<Address>),
}

/// Hosts of one link address at one tap.
#[derive(Clone, Debug, Default)]
struct Behind {
    /// As the source of frames.
    sends: BTreeSet<Address>,
    /// As the destination of frames.
    receives: BTreeSet<Address>,
    /// One of its packets had been routed.
    is_routed: bool,
    /// It had more hosts than are kept.
    is_full: bool,
}

impl Behind {
    fn add(&mut self, host: Address, as_source: bool) {
        let hosts = if as_source {
            &mut self.sends
        } else {
            &mut self.receives
        };
        if hosts.len() < MAX_BEHIND || hosts.contains(&host) {
            hosts.insert(host);
        } else {
            self.is_full = true;
        }
    }
}

/// The hosts that one end of every pair at a tap is.
#[derive(Clone, Debug, Default)]
struct Common {
    hosts: Option<Vec<Address>>,
}

/// Link addresses at taps with pause frames.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkEnds {
    behind: Map<(TapId, MacAddress), Behind>,
    common: Map<TapId, Common>,
    /// Senders of pause frames.
    pausers: HashSet<(TapId, MacAddress), foldhash::fast::RandomState>,
}

impl LinkEnds {
    pub(super) fn pauser(&mut self, tap: TapId, mac: MacAddress) {
        if self.pausers.len() < MAX_ADDRESSES {
            self.pausers.insert((tap, mac));
        }
    }

    pub(super) fn note(&mut self, link: &LinkAddresses) {
        let is_routed = !FRESH.contains(&link.hop_limit);
        for (host, mac, as_source) in [
            (link.source, link.source_mac, true),
            (link.destination, link.destination_mac, false),
        ] {
            let key = (link.tap, mac);
            if self.behind.len() >= MAX_ADDRESSES && !self.behind.contains_key(&key) {
                continue;
            }
            let behind = self.behind.entry(key).or_default();
            behind.add(host, as_source);
            behind.is_routed |= as_source && is_routed;
        }
        let ends = [link.source, link.destination];
        let common = &mut self.common.entry(link.tap).or_default().hosts;
        match common {
            Some(hosts) => hosts.retain(|host| ends.contains(host)),
            None => *common = Some(ends.to_vec()),
        }
    }

    /// Senders of pause frames that are hosts themselves: by tap and link address.
    pub(super) fn pausing_hosts(&self) -> BTreeMap<(TapId, MacAddress), Address> {
        let hosts = self.pausers.iter().filter_map(|key| match self.seen(*key) {
            Some(Pauser::Host(host)) => Some((*key, host)),
            _ => None,
        });
        hosts.collect()
    }

    /// Who sends the pause frames of each address, in time that grows with the addresses.
    pub(super) fn conclude(&self) -> PauseSenders<'_> {
        let mut found: BTreeMap<TapId, Vec<Pauser>> = BTreeMap::new();
        for key in &self.pausers {
            let known = found.entry(key.0).or_default();
            // Two of them say as much as more.
            if known.len() < 2 {
                known.extend(self.seen(*key));
            }
        }
        let alone = found
            .into_iter()
            .filter_map(|(tap, known)| match known.as_slice() {
                [Pauser::Host(host)] => Some((tap, *host)),
                _ => None,
            });
        PauseSenders {
            ends: self,
            alone: alone.collect(),
        }
    }

    /// Who has a link address that is in frames with RoCE packets; `None`: it is in none, or nothing shows it.
    ///
    /// Pause frames stay on their link. So a host's own address, which a switch carries on unchanged, is at the host's link; that of a router
    /// has several hosts behind it, or packets with a TTL that somebody has lowered.
    fn seen(&self, key: (TapId, MacAddress)) -> Option<Pauser> {
        let behind = self.behind.get(&key)?;
        let hosts: BTreeSet<Address> = behind.sends.union(&behind.receives).copied().collect();
        let only = hosts.first().copied().filter(|_| hosts.len() == 1);
        match only {
            // Only what it sends shows whether it was routed.
            Some(host) if !behind.is_routed && !behind.is_full && behind.sends.contains(&host) => {
                Some(Pauser::Host(host))
            }
            _ if behind.is_full || behind.receives.is_empty() => None,
            _ if behind.is_routed || hosts.len() > 1 => {
                Some(Pauser::Router(behind.receives.iter().copied().collect()))
            }
            _ => None,
        }
    }
}

/// Senders of pause frames, once all link addresses are known.
#[derive(Debug)]
pub(super) struct PauseSenders<'a> {
    ends: &'a LinkEnds,
    /// By tap, the host that is the only known sender of pause frames.
    alone: BTreeMap<TapId, Address>,
}

impl PauseSenders<'_> {
    /// Who sends the pause frames of `mac` at `tap`; `None`: nothing shows it.
    pub(super) fn who(&self, tap: TapId, mac: MacAddress) -> Option<Pauser> {
        if self.ends.behind.contains_key(&(tap, mac)) {
            return self.ends.seen((tap, mac));
        }
        // A port whose address is in no frame. The host at the other end is one end of every pair, or sends pauses of its own.
        let common = self.ends.common.get(&tap)?.hosts.as_ref()?;
        if let [host] = common.as_slice() {
            return Some(Pauser::Facing(*host));
        }
        self.alone.get(&tap).copied().map(Pauser::Facing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H1: Address = Address::v4([10, 0, 0, 1]);
    const H2: Address = Address::v4([10, 0, 0, 2]);
    const H3: Address = Address::v4([10, 0, 0, 3]);

    fn mac(last: u8) -> MacAddress {
        MacAddress([2, 0, 0, 0, 0, last])
    }

    fn link(source: (Address, u8), destination: (Address, u8), hop_limit: u8) -> LinkAddresses {
        LinkAddresses {
            before: 0,
            time: roce_model::Time(0),
            tap: TapId(0),
            source: source.0,
            destination: destination.0,
            source_mac: mac(source.1),
            destination_mac: mac(destination.1),
            hop_limit,
        }
    }

    #[test]
    fn hosts_and_ports_of_switches_are_told_apart() {
        let mut ends = LinkEnds::default();
        // At the link of h3: two hosts send to it, the switch's own address is in no frame.
        for from in [(H1, 1), (H2, 2)] {
            ends.note(&link(from, (H3, 3), 64));
            ends.note(&link((H3, 3), from, 64));
        }
        assert_eq!(ends.conclude().who(TapId(0), mac(3)), Some(Pauser::Host(H3)));
        assert_eq!(ends.conclude().who(TapId(0), mac(9)), Some(Pauser::Facing(H3)));
        assert_eq!(ends.conclude().who(TapId(1), mac(3)), None);
    }

    #[test]
    fn a_router_is_no_host() {
        let mut ends = LinkEnds::default();
        // At the link of h1 behind a router: packets of h2 and h3 come with its address and a TTL of 63.
        for to in [H2, H3] {
            ends.note(&link((H1, 1), (to, 7), 64));
            ends.note(&link((to, 7), (H1, 1), 63));
        }
        assert_eq!(
            ends.conclude().who(TapId(0), mac(7)),
            Some(Pauser::Router(vec![H2, H3]))
        );
        assert_eq!(ends.conclude().who(TapId(0), mac(1)), Some(Pauser::Host(H1)));
        // One host behind it alone: the lowered TTL shows the router.
        let mut ends = LinkEnds::default();
        ends.note(&link((H1, 1), (H2, 7), 64));
        ends.note(&link((H2, 7), (H1, 1), 63));
        assert_eq!(
            ends.conclude().who(TapId(0), mac(7)),
            Some(Pauser::Router(vec![H2]))
        );
        // Two hosts and a port that neither of them is: either could be at this link.
        let mut ends = LinkEnds::default();
        ends.note(&link((H1, 1), (H2, 2), 64));
        ends.note(&link((H2, 2), (H1, 1), 64));
        assert_eq!(ends.conclude().who(TapId(0), mac(9)), None);
        ends.pauser(TapId(0), mac(1));
        assert_eq!(ends.conclude().who(TapId(0), mac(9)), Some(Pauser::Facing(H1)));
    }

    #[test]
    fn forged_addresses_are_bounded() {
        let mut ends = LinkEnds::default();
        for at in 0..70_000u32 {
            let [_, a, b, c] = at.to_be_bytes();
            let host = Address::v4([10, a, b, c]);
            ends.note(&LinkAddresses {
                source_mac: MacAddress([2, 1, 0, a, b, c]),
                ..link((host, 0), (H3, 3), 64)
            });
        }
        assert!(ends.behind.len() <= MAX_ADDRESSES);
    }

    #[test]
    fn many_senders_take_linear_time() {
        let mut ends = LinkEnds::default();
        // Two hosts, neither of which is one end of every pair.
        ends.note(&link((H1, 1), (H2, 2), 64));
        ends.note(&link((H2, 2), (H1, 1), 64));
        ends.pauser(TapId(0), mac(1));
        let address = |at: u32| {
            let [_, a, b, c] = at.to_be_bytes();
            MacAddress([2, 1, 0, a, b, c])
        };
        for at in 0..30_000 {
            ends.pauser(TapId(0), address(at));
        }
        let begun = std::time::Instant::now();
        assert_eq!(ends.pausing_hosts().len(), 1);
        let senders = ends.conclude();
        for at in 0..30_000 {
            assert_eq!(senders.who(TapId(0), address(at)), Some(Pauser::Facing(H1)));
        }
        // Each against each other one are 900,000,000 look-ups: a minute in a build without optimisation.
        assert!(begun.elapsed().as_secs() < 10);
    }
}
