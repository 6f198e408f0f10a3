//! Captures in the form of pcapng, built from the parts of an input. Everything around the parts is valid, so that an input reaches what
//! lies behind the readers of files and headers.

/// Parts of an input: two bytes that say what follows and how long it is, then that many bytes. The last one may be shorter.
pub struct Parts<'a>(pub &'a [u8]);

impl<'a> Iterator for Parts<'a> {
    /// The first byte, and the bytes of the part.
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let ([kind, length], rest) = self.0.split_first_chunk()?;
        let (part, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        self.0 = rest;
        Some((*kind, part))
    }
}

/// One block of a section.
pub enum Block {
    /// A frame at a time in microseconds.
    Frame(u64, Vec<u8>),
    /// A block of another type.
    Other(u32, Vec<u8>),
}

/// A section with one Ethernet interface, and its blocks.
pub fn section(blocks: &[Block]) -> Vec<u8> {
    let mut file = words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28]);
    file.extend(words(&[1, 20, 1, 262_144, 20]));
    for block in blocks {
        match block {
            Block::Frame(time, bytes) => {
                let length = length(bytes);
                let mut body = words(&[0, (time >> 32) as u32, *time as u32, length, length]);
                body.extend(bytes);
                add(&mut file, 6, body);
            }
            Block::Other(kind, body) => add(&mut file, *kind, body.clone()),
        }
    }
    file
}

fn add(file: &mut Vec<u8>, kind: u32, mut body: Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
    let total = length(&body) + 12;
    file.extend(words(&[kind, total]));
    file.extend(body);
    file.extend(words(&[total]));
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

/// A RoCEv2 frame: Ethernet, IPv4 from 10.0.0.`from` to 10.0.0.`to`, UDP, `transport` from the BTH on, and room for the ICRC.
pub fn frame(from: u8, to: u8, transport: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0];
    let udp = u16::try_from(8 + transport.len() + 4).unwrap_or(u16::MAX);
    frame.extend([0x45, 0x02]);
    frame.extend((udp + 20).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
    frame.extend([0xc0, 0, 0x12, 0xb7]);
    frame.extend(udp.to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(transport);
    frame.extend([0; 4]);
    frame
}
