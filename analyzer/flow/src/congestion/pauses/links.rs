//! Ends of links, as the link addresses of RoCE frames show them. The sender of a pause frame, whose MAC
//! address alone is known, is found to be one end of the link or the other.

use std::collections::{HashMap, HashSet};

use roce_model::{LinkAddresses, TapId};
use roce_wire::{Address, MacAddress};

/// Senders of pause frames that are followed at one tap: a link has two ends, a mirrored switch some ports.
pub(super) const MAX_AT_TAP: usize = 64;

/// Hosts at all taps whose link addresses are kept; a pause says nothing of the flows of others.
const MAX_HOSTS: usize = 65_536;
/// MAC addresses behind which one host was seen (redundant routers), at most.
const MAX_MACS: usize = 4;

/// TTLs and hop limits with which systems send (64: Linux and most adapters; 128: Windows; 255: routers).
const FRESH: [u8; 3] = [64, 128, 255];

#[derive(Debug, Default)]
pub(super) struct Links {
    /// The MAC addresses that frames from a host carry as their source, and frames to it as their destination: its own
    /// or a router's.
    behind: HashMap<(TapId, Address), Macs, foldhash::fast::RandomState>,
    /// MAC addresses of frames with RoCE packets.
    known: HashSet<(TapId, MacAddress), foldhash::fast::RandomState>,
    /// By tap.
    taps: Vec<Tap>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Macs {
    seen: [MacAddress; MAX_MACS],
    count: usize,
}

impl Macs {
    fn add(&mut self, mac: MacAddress) {
        if !self.has(mac) && self.count < MAX_MACS {
            self.seen[self.count] = mac;
            self.count += 1;
        }
    }

    fn has(&self, mac: MacAddress) -> bool {
        self.seen[..self.count].contains(&mac)
    }
}

#[derive(Clone, Debug, Default)]
struct Tap {
    /// The hosts that were one end of every packet up to now: if it is one alone, it is the host at this
    /// link.
    common: Vec<Address>,
    started: bool,
    /// Hosts at this link by TTLs: a host there sends with a fresh TTL, while the other end's packets
    /// come with less.
    fresh: Vec<Address>,
    worn: bool,
    /// Senders of pause frames.
    pausers: Vec<MacAddress>,
}

impl Links {
    fn tap(&mut self, tap: TapId) -> &mut Tap {
        let at = tap.0 as usize;
        if self.taps.len() <= at {
            self.taps.resize(at + 1, Tap::default());
        }
        &mut self.taps[at]
    }

    /// `mac` sends pause frames at `tap`; `false` when too many others do.
    pub(super) fn pauser(&mut self, tap: TapId, mac: MacAddress) -> bool {
        let pausers = &mut self.tap(tap).pausers;
        let room = pausers.len() < MAX_AT_TAP;
        if room {
            pausers.push(mac);
        }
        room
    }

    pub(super) fn note(&mut self, link: &LinkAddresses) {
        for (host, mac) in [
            (link.source, link.source_mac),
            (link.destination, link.destination_mac),
        ] {
            if self.behind.len() < MAX_HOSTS || self.behind.contains_key(&(link.tap, host)) {
                self.behind.entry((link.tap, host)).or_default().add(mac);
            }
            if self.known.len() < MAX_HOSTS {
                self.known.insert((link.tap, mac));
            }
        }
        let tap = self.tap(link.tap);
        let ends = [link.source, link.destination];
        if tap.started {
            tap.common.retain(|host| ends.contains(host));
        } else {
            tap.started = true;
            tap.common = ends.to_vec();
        }
        if !FRESH.contains(&link.hop_limit) {
            tap.worn = true;
            tap.fresh.retain(|host| *host != link.source);
        } else if tap.common.contains(&link.source) && !tap.fresh.contains(&link.source) {
            tap.fresh.push(link.source);
        }
    }

    /// The host at this link, if it is one host's.
    fn host(&self, tap: TapId) -> Option<Address> {
        let tap = self.taps.get(tap.0 as usize)?;
        match tap.common.as_slice() {
            [host] => Some(*host),
            [_, _] if tap.worn && tap.fresh.len() == 1 => tap.fresh.first().copied(),
            _ => None,
        }
    }

    /// True if a pause frame from `mac` stops, at this tap, the traffic of `source` to `destination`.
    /// `None`: unknown.
    ///
    /// A pause stops the transmissions towards its sender, on that link only. Frames go towards it that carry its address
    /// or are for hosts behind it; those from hosts behind it come from there. When its address is in no frame it is a port
    /// of a switch: then what the host at the other end sends goes towards it.
    pub(super) fn stops(
        &self,
        tap: TapId,
        mac: MacAddress,
        source: Address,
        destination: Address,
    ) -> Option<bool> {
        let from = self.behind.get(&(tap, source));
        let to = self.behind.get(&(tap, destination));
        let is_behind = |macs: Option<&Macs>, mac| macs.is_some_and(|macs| macs.has(mac));
        if is_behind(to, mac) {
            return Some(true);
        }
        if is_behind(from, mac) {
            return Some(false);
        }
        if self.known.contains(&(tap, mac)) {
            // It belongs to other hosts: the flow is not on its link, if the flow's own link is known.
            return (from.is_some() && to.is_some()).then_some(false);
        }
        if let Some(host) = self.host(tap) {
            return Some(source == host);
        }
        // The other end may have shown itself by pause frames of its own.
        let pausers = &self.taps.get(tap.0 as usize)?.pausers;
        pausers.iter().find_map(|other| {
            if is_behind(from, *other) {
                Some(true)
            } else {
                is_behind(to, *other).then_some(false)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use roce_model::Time;

    use super::*;

    const TAP: TapId = TapId(1);
    const SWITCH: MacAddress = MacAddress([2, 0, 0, 0, 0xff, 1]);
    const ROUTER: MacAddress = MacAddress([2, 0, 0, 0, 0xff, 2]);

    fn host(number: u8) -> Address {
        Address::v4([10, 0, 0, number])
    }

    fn mac(number: u8) -> MacAddress {
        MacAddress([2, 0, 0, 0, 0, number])
    }

    fn link(source: u8, destination: u8, macs: (MacAddress, MacAddress), hop_limit: u8) -> LinkAddresses {
        LinkAddresses {
            before: 0,
            time: Time(0),
            tap: TAP,
            source: host(source),
            destination: host(destination),
            source_mac: macs.0,
            destination_mac: macs.1,
            hop_limit,
        }
    }

    fn stops(links: &Links, mac: MacAddress, source: u8, destination: u8) -> Option<bool> {
        links.stops(TAP, mac, host(source), host(destination))
    }

    #[test]
    fn a_host_that_pauses_stops_what_goes_to_it() {
        let mut links = Links::default();
        links.note(&link(1, 2, (mac(1), mac(2)), 64));
        assert_eq!(stops(&links, mac(2), 1, 2), Some(true));
        assert_eq!(stops(&links, mac(2), 2, 1), Some(false));
        // 3 and 4 are not known here; once they are, they are elsewhere.
        assert_eq!(stops(&links, mac(2), 3, 4), None);
        links.note(&link(3, 4, (mac(3), mac(4)), 64));
        assert_eq!(stops(&links, mac(2), 3, 4), Some(false));
        assert_eq!(
            links.stops(TapId(0), mac(2), host(1), host(2)),
            None,
            "another tap"
        );
    }

    #[test]
    fn a_router_that_pauses_stops_what_goes_through_it() {
        let mut links = Links::default();
        links.note(&link(1, 2, (mac(1), ROUTER), 64));
        links.note(&link(3, 1, (ROUTER, mac(1)), 63));
        assert_eq!(stops(&links, ROUTER, 1, 2), Some(true));
        assert_eq!(
            stops(&links, ROUTER, 1, 3),
            Some(true),
            "what comes from it goes back to it"
        );
        assert_eq!(stops(&links, ROUTER, 3, 1), Some(false));
    }

    #[test]
    fn a_switch_that_pauses_stops_the_host_at_the_link() {
        let mut links = Links::default();
        links.pauser(TAP, SWITCH);
        links.note(&link(1, 2, (mac(1), mac(2)), 64));
        assert_eq!(stops(&links, SWITCH, 1, 2), None, "either may be the host here");
        links.note(&link(3, 1, (mac(3), mac(1)), 64));
        assert_eq!(stops(&links, SWITCH, 1, 2), Some(true));
        assert_eq!(stops(&links, SWITCH, 3, 1), Some(false));
        // Traffic past all hosts: this is no host's link.
        links.note(&link(2, 3, (mac(2), mac(3)), 64));
        assert_eq!(stops(&links, SWITCH, 1, 2), None);
    }

    #[test]
    fn the_host_at_the_link_sends_fresh_packets() {
        let mut links = Links::default();
        links.note(&link(2, 1, (ROUTER, mac(1)), 63));
        links.note(&link(1, 2, (mac(1), ROUTER), 64));
        assert_eq!(stops(&links, SWITCH, 1, 2), Some(true));
        assert_eq!(stops(&links, SWITCH, 2, 1), Some(false));
    }

    #[test]
    fn the_other_end_may_show_itself_by_its_own_pauses() {
        let mut links = Links::default();
        links.pauser(TAP, SWITCH);
        links.note(&link(1, 2, (mac(1), mac(2)), 64));
        links.pauser(TAP, mac(1));
        assert_eq!(stops(&links, SWITCH, 1, 2), Some(true));
        assert_eq!(stops(&links, SWITCH, 2, 1), Some(false));
    }

    #[test]
    fn a_host_behind_many_addresses() {
        let mut links = Links::default();
        for router in 0..9 {
            links.note(&link(1, 2, (mac(1), mac(100 + router)), 64));
        }
        assert_eq!(stops(&links, mac(103), 1, 2), Some(true));
        assert_eq!(
            stops(&links, mac(104), 1, 2),
            Some(false),
            "the fifth is not kept for the host"
        );
    }
}
