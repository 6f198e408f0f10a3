//! Sends RoCEv2 frames out of a device as fast as it can, or at a rate: to find what a capture can take. The frames of a file are sent
//! again and again; each time their PSNs go on, so that they look like new packets. Many go to the kernel at once (sendmmsg), past the
//! device's queue. Needs CAP_NET_RAW, and Linux.
//!
//! `cargo run --release -p roce-capture --features live --example flood -- DEVICE CAPTURE SECONDS [FRAMES A SECOND [BYTES]]`, where frames
//! have BYTES at most (their IP length is left as it is). Prints what was sent: `FRAMES SECONDS`.

#![expect(clippy::print_stdout, reason = "a command for a person at a terminal")]

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use roce_capture::{Options, Reader};

/// Frames that are sent; a file's later ones are left out.
const FRAMES: usize = 50_000;
/// Where the destination queue pair and the PSN of a RoCEv2 packet stand: behind Ethernet, IPv4 without options, and UDP.
const QPN: std::ops::Range<usize> = 47..50;
const PSN: std::ops::Range<usize> = 51..54;
/// From there on, addresses and queue pair say which flow it is.
const ADDRESSES: std::ops::Range<usize> = 26..34;

/// A frame, and by how much its PSN grows each time.
struct Sent {
    bytes: Vec<u8>,
    stride: u32,
}

fn psn(frame: &[u8]) -> u32 {
    let psn = &frame[PSN];
    u32::from_be_bytes([0, psn[0], psn[1], psn[2]])
}

/// Frames of a file; the PSNs of each flow go on behind its last one.
fn frames(path: &Path, most: usize) -> Result<Vec<Sent>, Box<dyn Error>> {
    let mut reader = Reader::open(path, &Options::default())?;
    let mut frames = Vec::new();
    while let Some(batch) = reader.next_batch()?.filter(|_| frames.len() < FRAMES) {
        for frame in batch.frames() {
            let mut bytes = batch.bytes(frame).to_vec();
            bytes.resize((frame.original as usize).min(most), 0);
            if bytes.len() > PSN.end {
                frames.push(Sent { bytes, stride: 0 });
            }
        }
    }
    frames.truncate(FRAMES);
    let flow = |frame: &Sent| (frame.bytes[ADDRESSES].to_vec(), frame.bytes[QPN].to_vec());
    let mut spans: HashMap<_, (u32, u32)> = HashMap::new();
    for frame in &frames {
        let psn = psn(&frame.bytes);
        let (first, last) = spans.entry(flow(frame)).or_insert((psn, psn));
        (*first, *last) = ((*first).min(psn), (*last).max(psn));
    }
    for frame in &mut frames {
        let (first, last) = spans[&flow(frame)];
        frame.stride = last - first + 1;
    }
    Ok(frames)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [device, capture, seconds, ..] = arguments.as_slice() else {
        return Err("usage: flood DEVICE CAPTURE SECONDS [FRAMES A SECOND [BYTES]]".into());
    };
    let limit = Duration::from_secs_f64(seconds.parse()?);
    let rate: Option<u32> = arguments.get(3).map(|rate| rate.parse()).transpose()?;
    let most: usize = arguments.get(4).map_or(Ok(9_000), |bytes| bytes.parse())?;
    let mut frames = frames(Path::new(capture), most)?;
    let wire = wire::Wire::open(device)?;
    // In such bundles that a slow rate stays even, too: one each 100 us, at most.
    let at_once = rate.map_or(64, |rate| (rate / 10_000).clamp(1, 64)) as usize;
    let mut sent = 0_u64;
    let begun = Instant::now();
    'all: loop {
        for bundle in frames.chunks_mut(at_once) {
            let now = begun.elapsed();
            if now >= limit {
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
            wire.send(bundle.iter().map(|frame| frame.bytes.as_slice()))?;
            sent += bundle.len() as u64;
            for frame in bundle {
                let next = psn(&frame.bytes).wrapping_add(frame.stride).to_be_bytes();
                frame.bytes[PSN].copy_from_slice(&next[1..]);
            }
        }
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
            // SAFETY: name, option and address are there during the calls, and of the lengths that are told.
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
