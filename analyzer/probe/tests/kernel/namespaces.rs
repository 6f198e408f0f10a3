//! Two network namespaces with a pair of interfaces between them, gone at the end.

use std::fs::File;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Their names begin with this.
pub(crate) struct Pair {
    name: String,
}

/// The port of RoCEv2 (IANA).
pub(crate) const PORT: u16 = 4791;

impl Pair {
    /// `None`, and the reason: they cannot be made here.
    pub(crate) fn make() -> Result<Self, String> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let pair = Self {
            name: format!("rp{}x{number}", std::process::id()),
        };
        let (a, b) = (pair.namespace('a'), pair.namespace('b'));
        for line in [
            format!("netns add {a}"),
            format!("netns add {b}"),
            format!("link add va netns {a} type veth peer name vb netns {b}"),
            format!("-n {a} addr add 10.88.0.1/24 dev va"),
            format!("-n {b} addr add 10.88.0.2/24 dev vb"),
            format!("-n {a} link set va up"),
            format!("-n {b} link set vb up"),
            format!("-n {a} link set lo up"),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let ran = Command::new("ip").args(&words).output();
            match ran {
                Ok(output) if output.status.success() => {}
                Ok(output) => {
                    let said = String::from_utf8_lossy(&output.stderr).into_owned();
                    return Err(format!("cannot make network namespaces: ip {line}: {said}"));
                }
                Err(error) => return Err(format!("cannot run ip: {error}")),
            }
        }
        Ok(pair)
    }

    /// The sender's (a, with the interface va and 10.88.0.1) or the receiver's (b, vb, 10.88.0.2).
    pub(crate) fn namespace(&self, side: char) -> String {
        format!("{}{side}", self.name)
    }

    /// Moves this thread into a namespace.
    pub(crate) fn enter(&self, side: char) {
        let file = File::open(format!("/run/netns/{}", self.namespace(side))).unwrap();
        move_into_link_name_space(std::os::fd::AsFd::as_fd(&file), Some(LinkNameSpaceType::Network)).unwrap();
    }

    /// Runs something on a thread of its own in a namespace.
    pub(crate) fn within<T: Send + 'static>(
        &self,
        side: char,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let this = Self {
            name: self.name.clone(),
        };
        let thread = std::thread::spawn(move || {
            this.enter(side);
            std::mem::forget(this);
            run()
        });
        thread.join().unwrap()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for side in ['a', 'b'] {
            let mut ip = Command::new("ip");
            let _ = ip
                .args(["netns", "del", &self.namespace(side)])
                .stderr(Stdio::null())
                .status();
        }
    }
}

/// A UDP payload that is a RoCE packet: RC RDMA WRITE Middle (opcode 0x07) for a queue pair with a PSN (IBTA 9.2), `data` bytes,
/// four for the ICRC.
pub(crate) fn write_middle(qpn: u32, psn: u32, data: usize) -> Vec<u8> {
    let mut packet = vec![0x07, 0, 0xff, 0xff];
    packet.extend((qpn & 0x00ff_ffff).to_be_bytes());
    packet.extend((psn & 0x00ff_ffff).to_be_bytes());
    packet.resize(12 + data + 4, 0);
    packet
}

/// A socket that swallows what comes, so that nobody answers it.
pub(crate) fn swallow() -> UdpSocket {
    UdpSocket::bind(("10.88.0.2", PORT)).unwrap()
}
