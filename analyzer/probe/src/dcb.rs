//! PFC of an interface by data centre bridging over netlink: which priorities it is enabled on, and frames by priority, whatever the
//! driver calls them. The messages are those of Linux include/uapi/linux/dcbnl.h. Needs no rights.
//!
//! netlink-packet-route (0.25) has no messages of DCB, so that a netlink crate would only save the header of 16 bytes.

use std::io;
use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

/// RTM_GETDCB.
const GET_DCB: u16 = 78;
/// NLMSG_ERROR.
const ERROR: u16 = 2;
/// NLM_F_REQUEST.
const REQUEST: u16 = 1;
/// DCB_CMD_IEEE_GET.
const IEEE_GET: u8 = 21;
/// DCB_ATTR_IFNAME.
const INTERFACE: u16 = 1;
/// DCB_ATTR_IEEE.
const IEEE: u16 = 13;
/// DCB_ATTR_IEEE_PFC.
const IEEE_PFC: u16 = 2;
/// Bits of an attribute's type that are no part of it: NLA_F_NESTED, NLA_F_NET_BYTEORDER.
const TYPE_MASK: u16 = 0x3fff;
/// Headers before the attributes: `struct nlmsghdr`, `struct dcbmsg`.
const HEADERS: usize = 16 + 4;
/// IFNAMSIZ.
const MAX_NAME: usize = 16;
/// The kernel answers at once; longer means that it does not answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// PFC of one interface: `struct ieee_pfc`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pfc {
    /// A bit for each priority that PFC is enabled on.
    pub(crate) enabled: u8,
    /// PFC frames sent, by priority.
    pub(crate) sent: [u64; 8],
    /// PFC frames received, by priority.
    pub(crate) received: [u64; 8],
}

/// A socket for questions about DCB.
pub(crate) struct Dcb {
    socket: OwnedFd,
    sequence: u32,
}

impl Dcb {
    /// Opens the socket: a process that gives up its rights can open none later.
    pub(crate) fn open() -> io::Result<Self> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            // Protocol 0: NETLINK_ROUTE.
            None,
        )?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// PFC of an interface; `None` where its driver has no DCB.
    pub(crate) fn pfc(&mut self, interface: &str) -> io::Result<Option<Pfc>> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = request(interface, self.sequence).ok_or(io::ErrorKind::InvalidInput)?;
        send(&self.socket, &request, SendFlags::empty())?;
        let mut room = vec![0; 1 << 16];
        loop {
            let (length, _) = recv(&self.socket, &mut room[..], RecvFlags::empty())?;
            let answer = &room[..length];
            // What an earlier question was answered, too late.
            if u32_at(answer, 8) != Some(self.sequence) {
                continue;
            }
            return Ok(pfc_in(answer));
        }
    }
}

/// The request for all IEEE attributes of an interface; `None` when its name is too long for one.
fn request(interface: &str, sequence: u32) -> Option<Vec<u8>> {
    if interface.len() >= MAX_NAME {
        return None;
    }
    let name_bytes = 4 + interface.len() + 1;
    let length = HEADERS + name_bytes.next_multiple_of(4);
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(u32::try_from(length).ok()?.to_ne_bytes());
    bytes.extend(GET_DCB.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    // struct dcbmsg: family (unspecified), command, padding.
    bytes.extend([0, IEEE_GET, 0, 0]);
    bytes.extend(u16::try_from(name_bytes).ok()?.to_ne_bytes());
    bytes.extend(INTERFACE.to_ne_bytes());
    bytes.extend(interface.as_bytes());
    bytes.resize(length, 0);
    Some(bytes)
}

/// PFC in an answer; `None` for errors, and for answers without it.
fn pfc_in(answer: &[u8]) -> Option<Pfc> {
    if u16_at(answer, 4)? == ERROR {
        return None;
    }
    let length = (u32_at(answer, 0)? as usize).min(answer.len());
    let ieee = attribute(answer.get(HEADERS..length)?, IEEE)?;
    let pfc = attribute(ieee, IEEE_PFC)?;
    // u8 pfc_cap, pfc_en, mbc; u16 delay; then, each of 8 bytes and aligned to 8, requests[8] and indications[8].
    let numbers = |from: usize| -> Option<[u64; 8]> {
        let mut all = [0; 8];
        for (index, number) in all.iter_mut().enumerate() {
            let at = from + index * 8;
            *number = u64::from_ne_bytes(pfc.get(at..at + 8)?.try_into().ok()?);
        }
        Some(all)
    };
    Some(Pfc {
        enabled: *pfc.get(1)?,
        sent: numbers(8)?,
        received: numbers(8 + 64)?,
    })
}

/// The first attribute of a type.
fn attribute(mut bytes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16_at(bytes, 0)?);
        let body = bytes.get(4..length)?;
        if u16_at(bytes, 2)? & TYPE_MASK == kind {
            return Some(body);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute_of(kind: u16, body: &[u8]) -> Vec<u8> {
        let length = 4 + body.len();
        let mut bytes = Vec::new();
        bytes.extend(u16::try_from(length).unwrap().to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(body);
        bytes.resize(length.next_multiple_of(4), 0);
        bytes
    }

    /// An answer as the kernel's dcb_ieee_fill makes it: the interface's name, then ETS and PFC in a nest.
    fn answer(pfc: &[u8]) -> Vec<u8> {
        let nest = [attribute_of(1, &[0; 5]), attribute_of(IEEE_PFC, pfc)].concat();
        let attributes = [
            attribute_of(INTERFACE, b"eth0\0"),
            attribute_of(IEEE | 0x8000, &nest),
        ]
        .concat();
        let mut bytes = Vec::new();
        bytes.extend(u32::try_from(HEADERS + attributes.len()).unwrap().to_ne_bytes());
        bytes.extend([78, 0, 0, 0]);
        bytes.extend(7_u32.to_ne_bytes());
        bytes.resize(HEADERS, 0);
        bytes.extend(attributes);
        bytes
    }

    /// `struct ieee_pfc` with PFC on priority 3; 118 frames sent and 41,210 received there.
    fn ieee_pfc() -> Vec<u8> {
        let mut bytes = vec![8, 1 << 3, 0, 0, 0, 0, 0, 0];
        for counts in [118_u64, 41_210] {
            for priority in 0..8 {
                bytes.extend((if priority == 3 { counts } else { 0 }).to_ne_bytes());
            }
        }
        bytes
    }

    #[test]
    fn pfc_of_an_answer() {
        let pfc = pfc_in(&answer(&ieee_pfc())).unwrap();
        assert_eq!(pfc.enabled, 0b1000);
        assert_eq!((pfc.sent[3], pfc.received[3]), (118, 41_210));
        assert_eq!(
            (pfc.sent.iter().sum::<u64>(), pfc.received.iter().sum::<u64>()),
            (118, 41_210)
        );
    }

    #[test]
    fn cut_answers_and_errors_say_nothing() {
        let whole = answer(&ieee_pfc());
        for length in 0..whole.len() {
            assert_eq!(pfc_in(&whole[..length]), None, "{length} bytes");
        }
        let mut error = whole.clone();
        error[4] = 2;
        assert_eq!(pfc_in(&error), None);
        // An attribute of length 0 must not be looked at for ever.
        let mut endless = whole;
        endless[HEADERS] = 0;
        assert_eq!(pfc_in(&endless), None);
    }

    #[test]
    fn interfaces_without_dcb_have_none() {
        let mut dcb = Dcb::open().unwrap();
        assert_eq!(dcb.pfc("lo").unwrap(), None);
        assert_eq!(dcb.pfc("nosuchinterface").unwrap(), None);
        assert!(dcb.pfc("a name that is far too long").is_err());
    }
}
