//! PFC frames (IEEE 802.1Q clause 36, annex 31D of 802.3) and 802.3x pause frames (annex 31B).

use roce_wire::MacAddress;

use super::network::Ethernet;

/// A priority flow control frame. A quantum is 512 bit times; 0 ends a pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pfc {
    /// Source address: the port that stops its neighbour.
    pub source: MacAddress,
    /// The class-enable vector: bit n for priority n. The quanta of the others mean nothing.
    pub class_enable: u8,
    /// Quanta by priority.
    pub quanta: [u16; 8],
}

/// An 802.3x pause frame: it applies to the whole link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pause {
    /// Source address: the port that stops its neighbour.
    pub source: MacAddress,
    /// For how long, in quanta of 512 bit times; 0 ends a pause.
    pub quanta: u16,
}

const MAC_CONTROL: u16 = 0x8808;
const PAUSE: u16 = 0x0001;
const PFC: u16 = 0x0101;

impl Pfc {
    pub(super) const BYTES: u32 = 14 + 2 + 2 + 16;

    /// A frame for one priority (0 to 7).
    pub const fn new(source: MacAddress, priority: u8, quanta: u16) -> Self {
        let mut all = [0; 8];
        all[(priority & 7) as usize] = quanta;
        Self {
            source,
            class_enable: 1 << (priority & 7),
            quanta: all,
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        Ethernet::new(self.source, MacAddress::PAUSE).encode(MAC_CONTROL, out);
        out.extend_from_slice(&PFC.to_be_bytes());
        out.extend_from_slice(&[0, self.class_enable]);
        for quanta in self.quanta {
            out.extend_from_slice(&quanta.to_be_bytes());
        }
    }
}

impl Pause {
    pub(super) const BYTES: u32 = 14 + 2 + 2;

    pub(super) fn encode(self, out: &mut Vec<u8>) {
        Ethernet::new(self.source, MacAddress::PAUSE).encode(MAC_CONTROL, out);
        out.extend_from_slice(&PAUSE.to_be_bytes());
        out.extend_from_slice(&self.quanta.to_be_bytes());
    }
}
