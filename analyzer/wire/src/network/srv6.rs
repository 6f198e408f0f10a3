//! The IPv6 header around a packet that SRv6 steers (RFC 8754, RFC 8986): IPv6 in IPv6, with or without a segment routing header.

use crate::bytes::chunk;
use crate::network::ipv6::Ipv6;

/// Protocol numbers (IANA).
const IPV4_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const ROUTING: u8 = 43;
/// Length of a segment routing header with 16 segments, in bytes; no network has longer ones.
const MAX_ROUTING_BYTES: usize = 8 + 16 * 16;

/// The IPv6 header right in front of the one that begins at `inner`, with at most a segment routing header between them.
pub fn outer(frame: &[u8], inner: usize) -> Option<Ipv6<'_>> {
    let mut routing = 0;
    while routing <= MAX_ROUTING_BYTES {
        let at = inner.checked_sub(routing + Ipv6::BYTES)?;
        let ip = Ipv6(chunk(frame, at)?);
        if ip.version() == 6 && leads_to(frame, ip, at, routing) {
            return Some(ip);
        }
        routing += 8;
    }
    None
}

/// True if the header at `at`, and `routing` bytes of a routing header, lead to an IP header.
fn leads_to(frame: &[u8], ip: Ipv6<'_>, at: usize, routing: usize) -> bool {
    let is_ip = |protocol: u8| matches!(protocol, IPV4_IN_IP | IPV6_IN_IP);
    if routing == 0 {
        return is_ip(ip.next_header());
    }
    let header = chunk(frame, at + Ipv6::BYTES);
    ip.next_header() == ROUTING
        && header.is_some_and(|[next, words]| is_ip(*next) && (usize::from(*words) + 1) * 8 == routing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_around_a_packet_is_found() {
        let mut frame = [0_u8; 14 + 40 + 24 + 40];
        // IPv6 in IPv6, RFC 8986: next header 41.
        (frame[14], frame[20]) = (0x60, 41);
        frame[14 + 24] = 0xfc;
        assert_eq!(
            outer(&frame, 54).map(|ip| ip.destination().octets()[0]),
            Some(0xfc)
        );
        // A segment routing header with one segment (RFC 8754, 2): 24 bytes, a length of two more than one word.
        (frame[20], frame[54], frame[55]) = (43, 41, 2);
        assert!(outer(&frame, 78).is_some() && outer(&frame, 54).is_none());
        frame[55] = 3;
        assert!(outer(&frame, 78).is_none());
        for inner in 0..frame.len() + 300 {
            let _ = outer(&frame, inner);
        }
    }
}
