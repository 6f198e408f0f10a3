//! Messages of the connection manager between a few hosts, and packets of the queue pairs that they name, through the whole way of the
//! data. The bits of a part's first byte: 0 the sender, 1 the receiver, 2 a data packet instead of a message, 3 to 5 the message
//! (the opcode of a data packet), 6 and 7 the time since the part before.

#![no_main]

use libfuzzer_sys::fuzz_target;
use roce_fuzz::{Block, Parts};

/// Opcodes of reliable connections: SEND First and Only, WRITE Only, READ request and response, ACK, atomic; and a CNP.
const OPCODES: [u8; 8] = [0x00, 0x04, 0x0a, 0x0c, 0x10, 0x11, 0x13, 0x81];

fuzz_target!(|data: &[u8]| {
    let mut blocks = Vec::new();
    let mut now = 1_700_000_000_000_000;
    for (kind, part) in Parts(data) {
        now += [0, 10, 4_000, 5_000_000][usize::from(kind >> 6)];
        let (from, to) = (1 + (kind & 1), 3 + (kind >> 1 & 1));
        let message = kind >> 3 & 7;
        let transport = if kind & 4 == 0 {
            datagram(message, part)
        } else {
            // From the destination queue pair on, the input decides.
            let mut bth = vec![OPCODES[usize::from(message)], 0x40, 0xff, 0xff, 0];
            bth.extend_from_slice(part);
            bth.resize(bth.len().max(12), 0);
            bth
        };
        // Replies go the other way.
        let (from, to) = if matches!(message, 0 | 4) {
            (from, to)
        } else {
            (to, from)
        };
        blocks.push(Block::Frame(now, roce_fuzz::frame(from, to, &transport)));
    }
    roce_fuzz::check_analysis(&roce_fuzz::section(&blocks));
});

/// A UD SEND to queue pair 1 with a message: attributes 0x10 (REQ) to 0x17 (IBTA 12.6).
fn datagram(message: u8, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x64, 0x40, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 0];
    // DETH: queue key, source queue pair 1.
    bytes.extend([0x80, 1, 0, 0, 0, 0, 0, 1]);
    // Common header: base version, class of communication management, its version, method Send; attribute.
    bytes.extend([1, 7, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0x10 + message]);
    bytes.extend([0; 6]);
    bytes.extend_from_slice(data);
    bytes.resize(20 + 256, 0);
    bytes
}
