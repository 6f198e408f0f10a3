//! Link addresses between which hosts talk, learned from frames. Only taps with pause frames need them,
//! because a MAC address alone identifies a pause's sender. Every shard of a run sees every frame and
//! learns the same.

use std::collections::HashSet;

use roce_capture::Frame;
use roce_model::{LinkAddresses, TapId};
use roce_wire::frame::ethernet::Ethernet;
use roce_wire::{Address, Content, LinkType, Roce};

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
        let ethernet = Ethernet(bytes.first_chunk()?);
        let roce = packet(link, bytes, original)?;
        let pair = Pair {
            tap,
            macs: *bytes.first_chunk()?,
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
            time: frame.time,
            tap,
            source: roce.source,
            destination: roce.destination,
            source_mac: ethernet.source(),
            destination_mac: ethernet.destination(),
            hop_limit: roce.hop_limit,
        })
    }
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
