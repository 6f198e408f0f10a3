//! The statistics that an interface's driver keeps: `ethtool -S`, by the ioctl of Linux include/uapi/linux/ethtool.h. Needs no rights.

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
/// ETH_SS_STATS.
const STATISTICS: u32 = 1;
/// ETH_GSTRING_LEN.
const NAME_BYTES: usize = 32;
/// IFNAMSIZ.
const INTERFACE_BYTES: usize = 16;

/// `struct ifreq`: the interface's name, then a union of 24 bytes of which the pointer is used.
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
fn ask(socket: &OwnedFd, interface: &str, data: &mut [u64]) -> io::Result<()> {
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
    // SAFETY: the callers give as much room as the kernel said that the answer takes, and as much again.
    unsafe { ioctl(socket, request) }?;
    Ok(())
}

/// Two 32-bit numbers as they lie in memory.
fn pair(first: u32, second: u32) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

fn first(pair: u64) -> u32 {
    let [a, b, c, d, ..] = pair.to_ne_bytes();
    u32::from_ne_bytes([a, b, c, d])
}

/// Names and values, in the driver's order; empty when it keeps none.
pub(crate) fn statistics(interface: &str) -> io::Result<Vec<(String, u64)>> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // struct ethtool_sset_info: command, reserved, a mask of sets, and the size of each.
    let mut info = [pair(GET_SET_INFO, 0), 1 << STATISTICS, 0, 0];
    ask(&socket, interface, &mut info)?;
    let count = first(info[2]) as usize;
    if info[1] == 0 || count == 0 {
        return Ok(Vec::new());
    }
    // A driver may have more to say a moment later.
    let room = 2 * count + 64;
    // struct ethtool_gstrings: command, set, count, then the names.
    let mut names = vec![0; 2 + room * NAME_BYTES / 8];
    names[0] = pair(GET_STRINGS, STATISTICS);
    names[1] = u64::from(u32::try_from(count).unwrap_or(0));
    ask(&socket, interface, &mut names)?;
    // struct ethtool_stats: command, count, then the values.
    let mut values = vec![0; 1 + room];
    values[0] = pair(GET_STATISTICS, u32::try_from(count).unwrap_or(0));
    ask(&socket, interface, &mut values)?;
    let told = (first(names[1]) as usize).min(count);
    let bytes: Vec<u8> = names.iter().flat_map(|word| word.to_ne_bytes()).collect();
    // The count is 32 bits: the names follow at byte 12.
    let names = bytes[12..].chunks_exact(NAME_BYTES).take(told).map(|name| {
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
        String::from_utf8_lossy(&name[..end]).into_owned()
    });
    Ok(names.zip(values[1..].iter().copied()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_keeps_none_has_none() {
        // The loopback interface has no statistics of its own; there is no interface with that other name.
        assert!(statistics("lo").is_ok_and(|all| all.is_empty()) || statistics("lo").is_err());
        assert!(statistics("no such one").is_err());
        assert!(statistics("a name that is far too long").is_err());
    }
}
