//! The qdisc that filters hang on, where the kernel has no links for classifiers: made when it is not there, removed at the end
//! if it was made here and nobody else uses it.

use std::io;

use aya::programs::tc::{self, TcError};
use rustix::fd::OwnedFd;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

use crate::ProbeError;
use crate::netlink::{DONE, DUMP, ERROR, HEADER, header};

// Linux include/uapi/linux/netlink.h, rtnetlink.h and pkt_sched.h.
const ACK: u16 = 4;
const DELETE_QDISC: u16 = 37;
const NEW_FILTER: u16 = 44;
const GET_FILTER: u16 = 46;
const CLSACT: u32 = 0xffff_fff1;
const CLSACT_HANDLE: u32 = 0xffff_0000;
const INGRESS: u32 = 0xffff_fff2;
const EGRESS: u32 = 0xffff_fff3;

const EXISTS: i32 = 17;

/// A qdisc that was made here.
#[derive(Debug)]
pub(crate) struct Clsact {
    interface: u32,
    /// Opened at once: at the end the thread may be in another network namespace, or without the right to open it.
    netlink: OwnedFd,
}

impl Clsact {
    /// Makes it; `None` when it was there.
    pub(crate) fn make(interface: &str) -> Result<Option<Self>, ProbeError> {
        let failed = |source: TcError| ProbeError::Interface {
            interface: interface.to_owned(),
            source: Box::new(source.into()),
        };
        match tc::qdisc_add_clsact(interface) {
            Ok(()) => {}
            Err(TcError::AlreadyAttached) => return Ok(None),
            Err(TcError::NetlinkError(error)) if error.raw_os_error() == Some(EXISTS) => return Ok(None),
            Err(error) => return Err(failed(error)),
        }
        let opened = || -> io::Result<Self> {
            let netlink = socket_with(
                AddressFamily::NETLINK,
                SocketType::RAW,
                SocketFlags::CLOEXEC,
                None,
            )?;
            let interface = rustix::net::netdevice::name_to_index(&netlink, interface)?;
            Ok(Self { interface, netlink })
        };
        opened().map(Some).map_err(|error| failed(error.into()))
    }

    /// Sends a request about this interface and reads its answer.
    fn ask(&self, kind: u16, flags: u16, handle: u32, parent: u32) -> io::Result<Vec<u8>> {
        let mut message = header(kind, flags, 0, 20);
        // `struct tcmsg`: family and padding, interface, handle, parent, info.
        for word in [0, self.interface, handle, parent, 0] {
            message.extend(word.to_ne_bytes());
        }
        sendto(
            &self.netlink,
            &message,
            SendFlags::empty(),
            &SocketAddrNetlink::new(0, 0),
        )?;
        let mut answer = vec![0; 32 << 10];
        let (length, _) = recv(&self.netlink, answer.as_mut_slice(), RecvFlags::empty())?;
        answer.truncate(length);
        Ok(answer)
    }

    /// True if there are filters in one direction. An answer that cannot be read counts as yes.
    fn is_used(&self, parent: u32) -> io::Result<bool> {
        let answer = self.ask(GET_FILTER, DUMP, 0, parent)?;
        let first = kind(&answer);
        if first == Some(NEW_FILTER) {
            // The rest of the dump, up to its end.
            let mut last = answer;
            while !kinds(&last).contains(&DONE) {
                let mut more = vec![0; 32 << 10];
                let (length, _) = recv(&self.netlink, more.as_mut_slice(), RecvFlags::empty())?;
                more.truncate(length);
                last = more;
            }
            return Ok(true);
        }
        Ok(!matches!(first, Some(DONE | ERROR)))
    }
}

impl Drop for Clsact {
    fn drop(&mut self) {
        let used = self.is_used(INGRESS).unwrap_or(true) || self.is_used(EGRESS).unwrap_or(true);
        if !used {
            // The interface may have gone, and its qdisc with it: then there is nothing to do.
            let _ = self.ask(DELETE_QDISC, ACK, CLSACT_HANDLE, CLSACT);
        }
    }
}

/// The type of the first message.
fn kind(answer: &[u8]) -> Option<u16> {
    Some(u16::from_ne_bytes(*answer.get(4..)?.first_chunk()?))
}

/// The types of all messages.
fn kinds(mut answer: &[u8]) -> Vec<u16> {
    let mut kinds = Vec::new();
    while let (Some(kind), Some(length)) = (kind(answer), answer.first_chunk()) {
        kinds.push(kind);
        let length = (u32::from_ne_bytes(*length) as usize)
            .next_multiple_of(4)
            .max(HEADER);
        answer = answer.get(length..).unwrap_or_default();
    }
    kinds
}
