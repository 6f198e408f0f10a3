//! Sends RoCEv2 packets out of a device as fast as it can, or at a rate: to find what a live run can take. They are writes of one packet
//! each, of many flows in turn. Many go to the kernel at once (sendmmsg), past the device's queue. Needs CAP_NET_RAW, and Linux.
//!
//! `cargo run --release -p roce-probe --example flood -- DEVICE SECONDS [PACKETS A SECOND [BYTES OF A FRAME [FLOWS]]]`; prints what
//! was sent: `PACKETS SECONDS`.

#![expect(clippy::print_stdout, reason = "a command for a person at a terminal")]

use std::error::Error;
use std::time::{Duration, Instant};

/// Default number of flows that send in turn.
const FLOWS: u16 = 4_096;
/// Bytes of a frame's headers: Ethernet, IPv4, UDP, BTH, RETH; and of the ICRC behind its payload, which is left 0.
const HEADERS: usize = 14 + 20 + 8 + 12 + 16;
const ICRC: usize = 4;
/// Place of the PSN in a frame.
const PSN: std::ops::Range<usize> = 51..54;

/// The first packet of a flow.
fn write(flow: u16, bytes: usize) -> Result<Vec<u8>, Box<dyn Error>> {
    let payload = u32::try_from(bytes - HEADERS - ICRC)?;
    let [high, low] = flow.to_be_bytes();
    let mut frame = Vec::with_capacity(bytes);
    // Ethernet: both ends made up (a locally administered address), IPv4.
    frame.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00]);
    // IPv4: DSCP 26 and ECT(0), do not fragment, 64 hops, UDP, from 10.1.x.y to 10.2.0.z; nobody looks at its checksum.
    frame.extend([0x45, 0x6a]);
    frame.extend(u16::try_from(bytes - 14)?.to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 1, high, low, 10, 2, 0, low]);
    // UDP: a source port of its own, RoCEv2, no checksum.
    frame.extend([0xc0 | high, low, 0x12, 0xb7]);
    frame.extend(u16::try_from(bytes - 34)?.to_be_bytes());
    frame.extend([0, 0]);
    // BTH: RC RDMA WRITE Only, the default partition, a queue pair of its own, AckReq, PSN 0.
    frame.extend([0x0a, 0, 0xff, 0xff, 0, 1, high, low, 0x80, 0, 0, 0]);
    // RETH: address, key, length.
    frame.extend([0; 12]);
    frame.extend(payload.to_be_bytes());
    frame.resize(bytes, 0);
    Ok(frame)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [device, seconds, ..] = arguments.as_slice() else {
        return Err("usage: flood DEVICE SECONDS [PACKETS A SECOND [BYTES OF A FRAME [FLOWS]]]".into());
    };
    let limit = Duration::from_secs_f64(seconds.parse()?);
    let rate: Option<u32> = arguments.get(2).map(|rate| rate.parse()).transpose()?;
    let bytes: usize = arguments.get(3).map_or(Ok(256), |bytes| bytes.parse())?;
    if !(HEADERS + ICRC..=9_000).contains(&bytes) {
        return Err(format!("frames have {} to 9000 bytes", HEADERS + ICRC).into());
    }
    let flows: u16 = arguments.get(4).map_or(Ok(FLOWS), |flows| flows.parse())?;
    let mut frames = (0..flows.max(1))
        .map(|flow| write(flow, bytes))
        .collect::<Result<Vec<_>, _>>()?;
    let wire = wire::Wire::open(device)?;
    // In such bundles that a slow rate stays even, too: one each 100 us, at most.
    let at_once = rate.map_or(64, |rate| (rate / 10_000).clamp(1, 64)) as usize;
    let (mut sent, mut psn) = (0_u64, 0_u32);
    let begun = Instant::now();
    'all: loop {
        for bundle in frames.chunks_mut(at_once) {
            if begun.elapsed() >= limit {
                break 'all;
            }
            if let Some(rate) = rate {
                let due = Duration::from_nanos(sent * 1_000_000_000 / u64::from(rate));
                while let Some(left) = due.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
                    // Sleeping takes longer than it should: the last bit is waited out.
                    if left > Duration::from_millis(1) {
                        std::thread::sleep(left.saturating_sub(Duration::from_micros(500)));
                    }
                }
            }
            for frame in &mut *bundle {
                frame[PSN].copy_from_slice(&psn.to_be_bytes()[1..]);
            }
            wire.send(bundle.iter().map(Vec::as_slice))?;
            sent += bundle.len() as u64;
        }
        psn += 1;
    }
    println!("{sent} {:.3}", begun.elapsed().as_secs_f64());
    Ok(())
}

/// The device, by a packet socket.
mod wire {
    #![expect(unsafe_code, reason = "the system's calls are those of libc")]
    #![expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "lengths and constants that are small"
    )]

    use std::ffi::CString;
    use std::io;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    pub(super) struct Wire(OwnedFd);

    impl Wire {
        pub(super) fn open(device: &str) -> io::Result<Self> {
            // SAFETY: a descriptor that was got and belongs to nobody else.
            let socket = unsafe {
                let socket = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
                done(socket)?;
                OwnedFd::from_raw_fd(socket)
            };
            let name = CString::new(device)?;
            let mut to = libc::sockaddr_ll {
                sll_family: libc::AF_PACKET as u16,
                sll_protocol: 0,
                sll_ifindex: 0,
                sll_hatype: 0,
                sll_pkttype: 0,
                sll_halen: 0,
                sll_addr: [0; 8],
            };
            let past_queue: libc::c_int = 1;
            // SAFETY: name, option and address exist during the calls, and have the lengths that are
            // passed.
            unsafe {
                to.sll_ifindex = libc::if_nametoindex(name.as_ptr()).cast_signed();
                if to.sll_ifindex == 0 {
                    return Err(io::Error::last_os_error());
                }
                done(libc::setsockopt(
                    socket.as_raw_fd(),
                    libc::SOL_PACKET,
                    libc::PACKET_QDISC_BYPASS,
                    (&raw const past_queue).cast(),
                    size_of_val(&past_queue) as u32,
                ))?;
                done(libc::bind(
                    socket.as_raw_fd(),
                    (&raw const to).cast(),
                    size_of_val(&to) as u32,
                ))?;
            }
            Ok(Self(socket))
        }

        /// Sends all of them.
        pub(super) fn send<'a>(&self, frames: impl Iterator<Item = &'a [u8]>) -> io::Result<()> {
            let mut parts: Vec<libc::iovec> = frames
                .map(|frame| libc::iovec {
                    iov_base: frame.as_ptr().cast_mut().cast(),
                    iov_len: frame.len(),
                })
                .collect();
            let mut messages: Vec<libc::mmsghdr> = parts
                .iter_mut()
                .map(|part| {
                    // SAFETY: all zero is a message without anything.
                    let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
                    message.msg_hdr.msg_iov = part;
                    message.msg_hdr.msg_iovlen = 1;
                    message
                })
                .collect();
            let mut left = messages.as_mut_slice();
            while !left.is_empty() {
                // SAFETY: each message has one part, which is a frame; nothing is written to it.
                let sent =
                    unsafe { libc::sendmmsg(self.0.as_raw_fd(), left.as_mut_ptr(), left.len() as u32, 0) };
                match done(sent) {
                    Ok(()) => left = &mut left[sent as usize..],
                    // The receiver's queue is full: the frame is lost there, as on a wire.
                    Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => left = &mut left[1..],
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        }
    }

    fn done(result: libc::c_int) -> io::Result<()> {
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}
