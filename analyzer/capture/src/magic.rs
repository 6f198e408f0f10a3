//! The numbers that pcap and pcapng files begin with, and whether such a file begins where a record is expected.
//! Leaves the headers behind them to `pcap` and `pcapng`.

/// A pcap file with times in microseconds (draft-ietf-opsawg-pcap, section 4).
pub(crate) const MICROS: u32 = 0xa1b2_c3d4;
/// A pcap file with times in nanoseconds.
pub(crate) const NANOS: u32 = 0xa1b2_3c4d;
/// A modified pcap file (libpcap's `pcap_sf_patched_pkthdr`).
pub(crate) const MODIFIED: u32 = 0xa1b2_cd34;
/// The type of a pcapng Section Header Block, equal in either byte order (draft-ietf-opsawg-pcapng, section 4.1).
pub(crate) const SECTION: u32 = 0x0a0d_0d0a;
/// The byte-order magic of a section.
pub(crate) const BYTE_ORDER: u32 = 0x1a2b_3c4d;

/// True if a pcap file or a pcapng section begins here. In concatenated files, a pcap header's zone of 0
/// reads as a record of no bytes, and a section's byte-order magic as the length of a record.
#[cold]
pub(crate) fn begins_capture(data: &[u8]) -> bool {
    let is_section = data.starts_with(&SECTION.to_be_bytes()) && is_either(data.get(8..12), BYTE_ORDER);
    is_section || begins_pcap(data)
}

/// True if the header of a pcap file of version 2.4 begins here.
#[cold]
pub(crate) fn begins_pcap(data: &[u8]) -> bool {
    let magic = data.get(..4);
    let is_magic = [MICROS, NANOS, MODIFIED]
        .into_iter()
        .any(|known| is_either(magic, known));
    is_magic && matches!(data.get(4..8), Some([2, 0, 4, 0] | [0, 2, 0, 4]))
}

/// True if the bytes are this number in either byte order.
fn is_either(bytes: Option<&[u8]>, number: u32) -> bool {
    bytes.is_some_and(|bytes| bytes == number.to_le_bytes() || bytes == number.to_be_bytes())
}
