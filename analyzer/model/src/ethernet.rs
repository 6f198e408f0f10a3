//! Numbers of Ethernet that rates are judged by.

/// Speeds of ports that RoCE runs on, in Gbit/s, the slowest first (IEEE 802.3).
pub const PORT_GIGABITS: [u16; 8] = [10, 25, 40, 50, 100, 200, 400, 800];

/// Bytes of a frame on the wire that are not captured: FCS, preamble, gap (IEEE 802.3, 3.1.1 and 4.4.2).
pub const FRAME_OVERHEAD: u64 = 24;

/// A speed of [`PORT_GIGABITS`] in bit/s.
pub const fn bits_per_second(gigabits: u16) -> u64 {
    gigabits as u64 * 1_000_000_000
}
