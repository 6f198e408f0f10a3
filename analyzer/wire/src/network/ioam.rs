//! In situ OAM in IPv6 (RFC 9486, RFC 9197): what switches write into an option of a packet's extension headers.
//!
//! ```text
//! option     0 type 0x31 or 0x11 | 1 length | 2 reserved | 3 kind: 0 pre-allocated trace, 1 incremental trace
//! trace      0..2 namespace | 2..4 words of a node 0xf800, flags 0x0780, words left 0x007f | 4..7 fields of a node | 7 reserved
//! node       the fields that the trace has, in the order of their bits: the latest node is first
//! ```

/// Types of the option.
const TYPES: [u8; 2] = [0x11, 0x31];
/// Bit of the fields that says that each node ends in bytes of its own length.
const HAS_SNAPSHOT: u32 = 1 << (23 - 22);
/// Lengths of the fields by their bits, the highest bit first; those of later ones are not known.
const FIELDS: [usize; 12] = [4, 4, 4, 4, 4, 4, 4, 4, 8, 8, 8, 4];

/// Offset and length of the data of the first such option among the options of an extension header.
pub fn find(header: &[u8]) -> Option<(usize, usize)> {
    let mut at = 2;
    while let Some(kind) = header.get(at) {
        if *kind == 0 {
            at += 1;
            continue;
        }
        let length = usize::from(*header.get(at + 1)?);
        if TYPES.contains(kind) && header.len() >= at + 2 + length {
            return Some((at + 2, length));
        }
        at += 2 + length;
    }
    None
}

/// View of the data of an option, from its reserved byte on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trace<'a> {
    nodes: &'a [u8],
    node_bytes: usize,
    fields: u32,
}

/// One node of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node<'a> {
    bytes: &'a [u8],
    fields: u32,
}

impl<'a> Trace<'a> {
    /// Reads the head. `None`: it is no trace, or has fields whose length is not known.
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let head: &[u8; 10] = data.first_chunk()?;
        let words = u16::from_be_bytes([head[4], head[5]]);
        let fields = u32::from_be_bytes([0, head[6], head[7], head[8]]);
        let known = FIELDS.len();
        let is_known = fields & HAS_SNAPSHOT == 0 && fields << (8 + known) == 0;
        let node_bytes: usize = (0..known)
            .filter(|bit| has(fields, *bit))
            .map(|bit| FIELDS[bit])
            .sum();
        let left = usize::from(words & 0x7f) * 4;
        let fits = node_bytes > 0 && node_bytes == usize::from(words >> 11) * 4;
        // A pre-allocated trace is filled from its end on.
        let skipped = match head[1] {
            0 => left,
            1 => 0,
            _ => return None,
        };
        let nodes = data.get(10..)?.get(skipped..)?;
        (is_known && fits).then_some(Self {
            nodes,
            node_bytes,
            fields,
        })
    }

    /// The nodes, the latest one first.
    pub fn nodes(&self) -> impl Iterator<Item = Node<'a>> {
        let fields = self.fields;
        self.nodes
            .chunks_exact(self.node_bytes)
            .map(move |bytes| Node { bytes, fields })
    }
}

const fn has(fields: u32, bit: usize) -> bool {
    fields >> (23 - bit) & 1 != 0
}

impl Node<'_> {
    fn word(&self, bit: usize) -> Option<u32> {
        if !has(self.fields, bit) {
            return None;
        }
        let before = (0..bit).filter(|bit| has(self.fields, *bit));
        let at: usize = before.map(|bit| FIELDS[bit]).sum();
        self.bytes
            .get(at..)?
            .first_chunk()
            .map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// Number of the node, 24 bits, or 56 bits in the wide form, whose low 32 are here.
    pub fn device(&self) -> Option<u32> {
        let wide = |at: u32| {
            self.bytes
                .get(at as usize..)?
                .first_chunk()
                .map(|bytes| u32::from_be_bytes(*bytes))
        };
        match self.word(0) {
            Some(word) => Some(word & 0x00ff_ffff),
            None if has(self.fields, 8) => {
                let before = (0..8).filter(|bit| has(self.fields, *bit));
                let at: usize = before.map(|bit| FIELDS[bit]).sum();
                wide(u32::try_from(at + 4).ok()?)
            }
            None => None,
        }
    }

    /// Ports by which the packet came and left.
    pub fn ports(&self) -> Option<[u16; 2]> {
        let [a, b, c, d] = self.word(1)?.to_be_bytes();
        Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
    }

    /// Time in the node, in ns. `None` too where the node says that it is longer than the field holds.
    pub fn delay_ns(&self) -> Option<u32> {
        self.word(4).filter(|delay| delay >> 31 == 0)
    }

    /// Buffers of the queue that are in use. How long one is, nothing says.
    pub fn queued_buffers(&self) -> Option<u32> {
        self.word(6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An option's data: a trace with node, ports, delay and queue depth (bits 0, 1, 4, 6), and two nodes.
    fn data(kind: u8, left: u16) -> [u8; 10 + 12 + 32] {
        let mut data = [0; 54];
        data[1] = kind;
        data[4..6].copy_from_slice(&(4_u16 << 11 | left).to_be_bytes());
        data[6..9].copy_from_slice(&[0b1100_1010, 0, 0]);
        let skipped = if kind == 0 { usize::from(left) * 4 } else { 0 };
        for (at, words) in [
            [0x3e00_0102, 0x0011_0022, 840, 7],
            [0x3f00_0101, 0x0010_0020, 1 << 31, 0],
        ]
        .iter()
        .enumerate()
        {
            for (place, word) in words.iter().enumerate() {
                let from = 10 + skipped + at * 16 + place * 4;
                data[from..from + 4].copy_from_slice(&u32::to_be_bytes(*word));
            }
        }
        data
    }

    #[test]
    fn nodes_are_read_from_both_kinds_of_traces() {
        for (kind, left, nodes) in [(0, 3, 2), (1, 3, 2)] {
            let data = data(kind, left);
            let data = if kind == 0 { &data[..] } else { &data[..42] };
            let trace = Trace::parse(data).unwrap();
            let first = trace.nodes().next().unwrap();
            assert_eq!((first.device(), first.ports()), (Some(0x102), Some([0x11, 0x22])));
            assert_eq!((first.delay_ns(), first.queued_buffers()), (Some(840), Some(7)));
            let last = trace.nodes().last().unwrap();
            assert_eq!(
                (last.device(), last.delay_ns()),
                (Some(0x101), None),
                "the delay overflowed"
            );
            assert_eq!(trace.nodes().count(), nodes);
        }
    }

    #[test]
    fn other_layouts_are_left() {
        let mut wrong = data(1, 0);
        wrong[4] = 3 << 3;
        assert_eq!(
            Trace::parse(&wrong),
            None,
            "a length of nodes that is not that of their fields"
        );
        let mut snapshot = data(1, 0);
        snapshot[8] = 2;
        assert_eq!(Trace::parse(&snapshot), None);
        assert_eq!(Trace::parse(&data(2, 0)), None, "proof of transit");
        let mut long = data(0, 0);
        long[5] = 127;
        assert_eq!(Trace::parse(&long), None);
        // Padding of one byte, one of three, the option.
        assert_eq!(find(&[17, 1, 0, 1, 1, 9, 0x31, 4, 1, 2, 3, 4]), Some((8, 4)));
        assert_eq!(find(&[17, 1, 0, 1, 1, 9, 0x31, 5, 1, 2, 3, 4]), None);
    }
}
