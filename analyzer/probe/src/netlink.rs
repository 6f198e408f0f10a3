//! Header and attributes of netlink messages, in the byte order of the host (Linux include/uapi/linux/netlink.h, `struct nlmsghdr`, `struct nlattr`).
//!
//! Why no netlink crate is taken is said in `dcb` and `rdma`, the two that use this.

/// Bytes of `struct nlmsghdr`.
pub(crate) const HEADER: usize = 16;
/// NLM_F_REQUEST.
const REQUEST: u16 = 1;
/// NLM_F_ROOT | NLM_F_MATCH.
pub(crate) const DUMP: u16 = 0x300;
/// NLMSG_DONE.
pub(crate) const DONE: u16 = 3;
/// NLMSG_ERROR.
pub(crate) const ERROR: u16 = 2;
/// Bits of an attribute's type that are no part of it: NLA_F_NESTED, NLA_F_NET_BYTEORDER.
const TYPE_MASK: u16 = 0x3fff;

/// `struct nlmsghdr` of a request with `body` bytes behind it, whose answers have the number `sequence`.
pub(crate) fn header(kind: u16, flags: u16, sequence: u32, body: usize) -> Vec<u8> {
    let length = HEADER + body;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(u32::try_from(length).unwrap_or(u32::MAX).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend((REQUEST | flags).to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    bytes
}

/// All attributes, by type. They end at the first one that is cut.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)? & TYPE_MASK;
        let body = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, body))
    })
}

/// The first attribute of a type.
pub(crate) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes)
        .find(|(found, _)| *found == kind)
        .map(|(_, body)| body)
}

/// The number of 16 bits at a place.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The number of 32 bits at a place.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// An attribute with its body, padded to 4 bytes.
#[cfg(test)]
pub(crate) fn attribute_of(kind: u16, body: &[u8]) -> Vec<u8> {
    let length = 4 + body.len();
    let mut bytes = Vec::new();
    bytes.extend(u16::try_from(length).unwrap().to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(body);
    bytes.resize(length.next_multiple_of(4), 0);
    bytes
}
