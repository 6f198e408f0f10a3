//! Link addresses between which hosts talk, learned from frames. Only taps with pause frames need them,
//! because a MAC address alone identifies a pause's sender. Every shard of a run sees every frame of such taps and
//! learns the same.

use std::collections::HashSet;

use roce_capture::Frame;
use roce_model::{LinkAddresses, TapId, Time};
use roce_wire::frame::ethernet::Ethernet;
use roce_wire::{Address, Content, LinkType, Roce, Through};

/// Limit of the pairs of hosts with known link addresses; a hostile capture could have any number.
const MAX_HOST_PAIRS: usize = 65_536;

/// Two hosts that talk, and their link addresses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Pair {
    tap: TapId,
    macs: [u8; 12],
    source: Address,
    destination: Address,
}

/// Known link addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkAddressBook {
    /// Taps that have pause frames.
    taps: HashSet<TapId>,
    seen: HashSet<Pair>,
    /// The pair of the last frame: packets come in bursts.
    last: Option<Pair>,
}

impl LinkAddressBook {
    /// A pause frame was seen at `tap`: link addresses matter there from now on.
    pub(crate) fn begin(&mut self, tap: TapId) {
        self.taps.insert(tap);
    }

    /// True if link addresses matter at `tap`.
    pub(crate) fn learns(&self, tap: TapId) -> bool {
        !self.taps.is_empty() && self.taps.contains(&tap)
    }

    /// Looks at a frame of `original` bytes, captured at `tap`: what it shows for the first time, for the packet that will be at
    /// `before`.
    pub(crate) fn learn(
        &mut self,
        (tap, link): (TapId, LinkType),
        frame: &Frame,
        (bytes, original): (&[u8], u32),
        before: usize,
    ) -> Option<LinkAddresses> {
        if link != LinkType::ETHERNET {
            return None;
        }
        let roce = packet(link, bytes, original)?;
        self.note((tap, frame.time), bytes.first_chunk()?, &roce, before)
    }

    /// As [`LinkAddressBook::learn`], of a packet that ERSPAN mirrored to `tap`: its Ethernet header is in front of its network header.
    pub(crate) fn learn_mirrored(
        &mut self,
        (tap, time): (TapId, Time),
        bytes: &[u8],
        roce: &Roce,
        before: usize,
    ) -> Option<LinkAddresses> {
        let header = mirrored_header(bytes, roce)?;
        self.note((tap, time), header, roce, before)
    }

    /// A packet on its own link with this Ethernet header.
    fn note(
        &mut self,
        (tap, time): (TapId, Time),
        header: &[u8; Ethernet::BYTES],
        roce: &Roce,
        before: usize,
    ) -> Option<LinkAddresses> {
        let ethernet = Ethernet(header);
        let pair = Pair {
            tap,
            macs: *header.first_chunk()?,
            source: roce.source,
            destination: roce.destination,
        };
        if self.last.replace(pair) == Some(pair)
            || self.seen.len() >= MAX_HOST_PAIRS
            || !self.seen.insert(pair)
        {
            return None;
        }
        Some(LinkAddresses {
            before,
            time,
            tap,
            source: roce.source,
            destination: roce.destination,
            source_mac: ethernet.source(),
            destination_mac: ethernet.destination(),
            hop_limit: roce.hop_limit,
        })
    }
}

/// The Ethernet header of a packet that ERSPAN mirrored (draft-foschiano-erspan-03: the frame follows on the ERSPAN header as it was), behind
/// at most one VLAN tag. `None`: something else is in front of its network header.
fn mirrored_header<'a>(bytes: &'a [u8], roce: &Roce) -> Option<&'a [u8; Ethernet::BYTES]> {
    const MIRRORS: [Through; 3] = [Through::ERSPAN_I, Through::ERSPAN_II, Through::ERSPAN_III];
    const OTHERS: [Through; 4] = [Through::MPLS, Through::VXLAN, Through::GENEVE, Through::IP_IN_IP];
    let is_mirrored = MIRRORS.iter().any(|mirror| roce.through.has(*mirror));
    if !is_mirrored || OTHERS.iter().any(|other| roce.through.has(*other)) {
        return None;
    }
    let end = usize::from(roce.network_offset);
    let ether_type = |end: usize| bytes.get(end.checked_sub(2)?..end);
    if !matches!(ether_type(end)?, [0x08, 0x00] | [0x86, 0xdd]) {
        return None;
    }
    let is_tagged =
        roce.vlan.is_some() && matches!(ether_type(end.checked_sub(4)?)?, [0x81, 0x00] | [0x88, 0xa8]);
    let end = if is_tagged { end.checked_sub(4)? } else { end };
    bytes.get(..end)?.last_chunk()
}

/// The packet in a frame on its own link: a mirrored packet travelled on another one.
fn packet(link: LinkType, bytes: &[u8], original: u32) -> Option<Roce> {
    if let Some(roce) = roce_wire::fast::decode(link, bytes, original) {
        return Some(roce);
    }
    let decoded = roce_wire::decode(link, bytes, original);
    match decoded.content {
        Content::Roce(roce) if decoded.mirror.is_none() => Some(roce),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use roce_wire::{MacAddress, VlanTag};

    use super::*;

    /// Addresses that a mirrored frame shows: 50 bytes of outer headers, the Ethernet header with these bytes
    /// behind the addresses, and IP.
    fn learned(behind: &[u8], through: Through, vlan: Option<VlanTag>) -> Option<(MacAddress, MacAddress)> {
        let mut bytes = vec![0xee; 50];
        bytes.extend([2, 0, 0, 0, 0, 9]);
        bytes.extend([2, 0, 0, 0, 0, 1]);
        bytes.extend(behind);
        let roce = Roce {
            source: Address::v4([10, 0, 0, 1]),
            destination: Address::v4([10, 0, 0, 9]),
            network_offset: u16::try_from(bytes.len()).unwrap(),
            through,
            vlan,
            ..Roce::default()
        };
        bytes.extend([0x45; 20]);
        let mut book = LinkAddressBook::default();
        let link = book.learn_mirrored((TapId(3), Time(7)), &bytes, &roce, 0)?;
        assert_eq!((link.tap, link.time), (TapId(3), Time(7)));
        assert_eq!(
            book.learn_mirrored((TapId(3), Time(8)), &bytes, &roce, 0),
            None,
            "once"
        );
        Some((link.source_mac, link.destination_mac))
    }

    #[test]
    fn a_mirrored_frame_has_the_addresses_of_its_own_link() {
        let ends = Some((MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 9])));
        let erspan = Through::GRE.and(Through::ERSPAN_II);
        assert_eq!(learned(&[0x08, 0x00], erspan, None), ends);
        // Priority 3, VLAN 100.
        let tagged = [0x81, 0x00, 0x60, 0x64, 0x86, 0xdd];
        assert_eq!(learned(&tagged, erspan, Some(VlanTag(0x6064))), ends);
        // The frame of an overlay is on no link of its own.
        assert_eq!(learned(&[0x08, 0x00], erspan.and(Through::VXLAN), None), None);
        assert_eq!(learned(&[0x08, 0x00], Through::GRE, None), None);
        assert_eq!(learned(&[0x00, 0x00], erspan, None), None);
    }
}
