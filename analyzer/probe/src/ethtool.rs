//! The statistics that an interface's driver keeps: `ethtool -S`, by the ioctl of Linux include/uapi/linux/ethtool.h. Needs no rights.
//!
//! The kernel writes as much as the driver has at that moment, whatever length it is given; so the room is fixed and large.

#![expect(
    unsafe_code,
    reason = "the kernel writes through pointers in the ioctl's argument"
)]

use std::ffi::c_void;
use std::io;

use rustix::fd::OwnedFd;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

const SIOCETHTOOL: Opcode = 0x8946;
const GET_STRINGS: u32 = 0x1b;
const GET_STATISTICS: u32 = 0x1d;
const GET_SET_INFO: u32 = 0x37;
const GET_PAUSE: u32 = 0x12;
const GET_FEC: u32 = 0x50;
/// ETH_SS_STATS.
const STATISTICS: u32 = 1;
/// ETH_GSTRING_LEN.
const NAME_BYTES: usize = 32;
/// IFNAMSIZ.
const INTERFACE_BYTES: usize = 16;

/// `struct ifreq`: the interface's name, then a union of 24 bytes whose pointer is used.
#[repr(C)]
struct Request {
    name: [u8; INTERFACE_BYTES],
    data: *mut u64,
    rest: [u64; 2],
}

// SAFETY: the opcode takes a `struct ifreq`, which `Request` is; `ask` sees to the room behind its pointer.
unsafe impl Ioctl for Request {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        SIOCETHTOOL
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::from_mut(self).cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

/// Sends a command; `data` begins with it and has room for the answer.
pub(crate) fn ask(socket: &OwnedFd, interface: &str, data: &mut [u64]) -> io::Result<()> {
    let mut name = [0; INTERFACE_BYTES];
    if interface.len() >= INTERFACE_BYTES {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    name[..interface.len()].copy_from_slice(interface.as_bytes());
    let request = Request {
        name,
        data: data.as_mut_ptr(),
        rest: [0; 2],
    };
    // SAFETY: the callers give room for the longest answer, or for twice as long a one as the kernel said that there is.
    unsafe { ioctl(socket, request) }?;
    Ok(())
}

/// Opens a socket for questions: later none may be opened.
pub(crate) fn open_socket() -> io::Result<OwnedFd> {
    Ok(socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Two 32-bit numbers as they lie in memory.
pub(crate) fn pair(first: u32, second: u32) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

/// The number at the lower address.
pub(crate) fn first(pair: u64) -> u32 {
    let [a, b, c, d, ..] = pair.to_ne_bytes();
    u32::from_ne_bytes([a, b, c, d])
}

/// The number at the higher address.
pub(crate) fn second(pair: u64) -> u32 {
    let [_, _, _, _, bytes @ ..] = pair.to_ne_bytes();
    u32::from_ne_bytes(bytes)
}

/// Statistics of one interface that there is room for. A driver may have more of them a moment after it said how many, and writes them
/// all: the room is larger than any driver's list (mlx5 has some 60 a channel and class), and lists longer than half of it are not read.
const MAX_STATISTICS: usize = 1 << 17;

/// Reads drivers' statistics: a socket for the questions, and room for the answers.
pub(crate) struct Ethtool {
    socket: OwnedFd,
    /// `struct ethtool_gstrings`: command, set, count, then the names. Pages that no driver writes to take no memory.
    names: Vec<u64>,
    /// `struct ethtool_stats`: command, count, then the values.
    values: Vec<u64>,
}

impl Ethtool {
    /// Makes room for answers.
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self {
            socket: open_socket()?,
            names: vec![0; 2 + MAX_STATISTICS * NAME_BYTES / 8],
            values: vec![0; 1 + MAX_STATISTICS],
        })
    }

    /// Names and values of an interface, in the driver's order; empty when it keeps none.
    pub(crate) fn statistics(&mut self, interface: &str) -> io::Result<Vec<(String, u64)>> {
        // struct ethtool_sset_info: command, reserved, a mask of sets, and the size of each.
        let mut info = [pair(GET_SET_INFO, 0), 1 << STATISTICS, 0, 0];
        ask(&self.socket, interface, &mut info)?;
        if info[1] == 0 {
            return Ok(Vec::new());
        }
        let Some(count) = readable(first(info[2])) else {
            return Err(io::ErrorKind::FileTooLarge.into());
        };
        if count == 0 {
            return Ok(Vec::new());
        }
        self.names[0] = pair(GET_STRINGS, STATISTICS);
        self.names[1] = u64::from(count);
        ask(&self.socket, interface, &mut self.names)?;
        self.values[0] = pair(GET_STATISTICS, count);
        ask(&self.socket, interface, &mut self.values)?;
        let written = first(self.names[1]).min(count) as usize;
        // The count is 32 bits: the names follow at byte 12.
        let words = &self.names[1..2 + written * NAME_BYTES / 8];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let names = bytes[4..].chunks_exact(NAME_BYTES).take(written).map(|name| {
            let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
            String::from_utf8_lossy(&name[..end]).into_owned()
        });
        Ok(names.zip(self.values[1..].iter().copied()).collect())
    }
}

/// Settings of an interface.
impl Ethtool {
    /// 802.3x pause: autonegotiated, received, transmitted (`struct ethtool_pauseparam`).
    pub(crate) fn pause(&self, interface: &str) -> io::Result<(bool, bool, bool)> {
        let mut answer = [pair(GET_PAUSE, 0), 0, 0, 0];
        ask(&self.socket, interface, &mut answer)?;
        Ok((
            second(answer[0]) != 0,
            first(answer[1]) != 0,
            second(answer[1]) != 0,
        ))
    }

    /// The error correction in use (`struct ethtool_fecparam`).
    pub(crate) fn active_fec(&self, interface: &str) -> io::Result<&'static str> {
        let mut answer = [pair(GET_FEC, 0), 0, 0, 0];
        ask(&self.socket, interface, &mut answer)?;
        let active = second(answer[0]);
        // Bits of `enum ethtool_fec_config_bits`.
        let names = [
            (8, "RS"),
            (16, "BaseR"),
            (32, "LLRS"),
            (4, "off"),
            (2, "auto"),
            (1, "none"),
        ];
        let name = names.into_iter().find(|(bit, _)| active & bit != 0);
        Ok(name.map_or("unknown", |(_, name)| name))
    }
}

/// The number of statistics that a driver says that it has, if there is room for as many again.
fn readable(count: u32) -> Option<u32> {
    (count as usize <= MAX_STATISTICS / 2).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_keeps_none_has_none() {
        let mut ethtool = Ethtool::open().unwrap();
        // The loopback interface has no statistics of its own; there is no interface with that other name.
        let of_loopback = ethtool.statistics("lo");
        assert!(of_loopback.is_err() || of_loopback.is_ok_and(|all| all.is_empty()));
        assert!(ethtool.statistics("no such one").is_err());
        assert!(ethtool.pause("no such one").is_err() && ethtool.active_fec("lo").is_err());
        assert!(ethtool.statistics("a name that is far too long").is_err());
    }

    #[test]
    fn a_list_that_grows_between_two_calls_stays_within_the_room() {
        let ethtool = Ethtool::open().unwrap();
        // struct ethtool_gstrings is 12 bytes and 32 for each name, struct ethtool_stats 8 bytes and 8 for each value: twice as many as
        // the longest list that is read fit.
        let most = (0..=u32::MAX).rev().step_by(1 << 10).find_map(readable).unwrap() as usize;
        assert!(most >= 60_000);
        assert!(ethtool.names.len() * 8 >= 12 + 2 * most * 32);
        assert!(ethtool.values.len() * 8 >= 8 + 2 * most * 8);
        assert_eq!(readable(u32::MAX), None);
    }
}
