//! Link modes that a network interface supports, by the ioctl of Linux include/uapi/linux/ethtool.h.
//! Needs no rights.

#![expect(
    unsafe_code,
    reason = "the kernel writes through a pointer in the ioctl's argument"
)]

use std::ffi::c_void;

use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

const SIOCETHTOOL: Opcode = 0x8946;
const GET_LINK_SETTINGS: u32 = 0x4c;
/// IFNAMSIZ.
const INTERFACE_BYTES: usize = 16;
/// Words of a mask, at most: their number is a signed byte.
const MAX_WORDS: usize = 127;

/// Speeds of link modes in Mbit/s, by their bits (`enum ethtool_link_mode_bit_indices`): first, last, speed. What is no speed, such as a
/// medium or an error correction, is left out.
const SPEEDS: [(usize, usize, u64); 35] = [
    (0, 1, 10),
    (2, 3, 100),
    (4, 5, 1_000),
    (12, 12, 10_000),
    (15, 15, 2_500),
    (17, 17, 1_000),
    (18, 20, 10_000),
    (21, 22, 20_000),
    (23, 26, 40_000),
    (27, 30, 56_000),
    (31, 33, 25_000),
    (34, 35, 50_000),
    (36, 39, 100_000),
    (40, 40, 50_000),
    (41, 41, 1_000),
    (42, 46, 10_000),
    (47, 47, 2_500),
    (48, 48, 5_000),
    (52, 56, 50_000),
    (57, 61, 100_000),
    (62, 66, 200_000),
    (67, 67, 100),
    (68, 68, 1_000),
    (69, 73, 400_000),
    (75, 79, 100_000),
    (80, 84, 200_000),
    (85, 89, 400_000),
    (90, 91, 100),
    (92, 92, 10),
    (93, 98, 800_000),
    (99, 102, 10),
    (103, 108, 200_000),
    (109, 114, 400_000),
    (115, 120, 800_000),
    (121, 124, 1_600_000),
];

/// `struct ethtool_link_settings`, with room for its masks.
#[repr(C)]
struct Settings {
    command: u32,
    speed: u32,
    /// Duplex, port, address, negotiation, three of its medium.
    about: [u8; 7],
    /// Words of a mask. A request with 0 makes the kernel answer with their number, negated.
    words: i8,
    rest: [u32; 8],
    /// Supported modes, then advertised ones and the other end's.
    masks: [u32; 3 * MAX_WORDS],
}

/// `struct ifreq`: the interface's name, then a union of 24 bytes whose pointer is used.
#[repr(C)]
struct Request {
    name: [u8; INTERFACE_BYTES],
    settings: *mut Settings,
    rest: [u64; 2],
}

// SAFETY: the opcode takes a `struct ifreq`, which `Request` is; behind its pointer is room for the largest answer.
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

/// The speed of the fastest link mode that an interface supports, in bit/s; `None` where its driver does not say, as software's.
pub fn most_speed(interface: &str) -> Option<u64> {
    let mut name = [0; INTERFACE_BYTES];
    if interface.len() >= INTERFACE_BYTES {
        return None;
    }
    name[..interface.len()].copy_from_slice(interface.as_bytes());
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok()?;
    let mut settings = Settings {
        command: GET_LINK_SETTINGS,
        speed: 0,
        about: [0; 7],
        words: 0,
        rest: [0; 8],
        masks: [0; 3 * MAX_WORDS],
    };
    // Twice: how many words there are, then the words.
    for _ in 0..2 {
        settings.command = GET_LINK_SETTINGS;
        settings.words = settings.words.checked_neg()?;
        let request = Request {
            name,
            settings: &raw mut settings,
            rest: [0; 2],
        };
        // SAFETY: `settings` lives on, and has room for as many words as the kernel can say that there are.
        unsafe { ioctl(&socket, request) }.ok()?;
    }
    let words = usize::try_from(settings.words).ok()?;
    fastest(settings.masks.get(..words)?)
}

/// The fastest of the modes whose bits are set, in bit/s.
fn fastest(modes: &[u32]) -> Option<u64> {
    let is_set = |bit: &usize| {
        modes
            .get(bit / 32)
            .is_some_and(|word| word >> (bit % 32) & 1 == 1)
    };
    let set = SPEEDS
        .iter()
        .filter(|(first, last, _)| (*first..=*last).any(|bit| is_set(&bit)));
    set.map(|(_, _, speed)| speed * 1_000_000).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_mode_counts() {
        // ETHTOOL_LINK_MODE_40000baseCR4_Full_BIT is 24, 10000baseCR 42, FIBRE 10, FEC_RS 50.
        let mut modes = [1 << 24 | 1 << 10, 1 << (42 - 32) | 1 << (50 - 32)];
        assert_eq!(fastest(&modes), Some(40_000_000_000));
        modes[0] = 1 << 10;
        assert_eq!(fastest(&modes), Some(10_000_000_000));
        modes[1] = 1 << (50 - 32);
        assert_eq!(fastest(&modes), None);
        // 400000baseCR4 is 89.
        assert_eq!(fastest(&[0, 0, 1 << (89 - 64)]), Some(400_000_000_000));
        assert_eq!(fastest(&[]), None);
    }

    #[test]
    fn what_has_no_link_says_nothing() {
        assert_eq!(most_speed("lo"), None);
        assert_eq!(most_speed("no such thing"), None);
        assert_eq!(most_speed("a name that is too long"), None);
    }
}
