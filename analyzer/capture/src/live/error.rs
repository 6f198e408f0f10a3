//! Options of capturing from devices, and errors of it.

/// Options of capturing from devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes kept of each frame at most.
    pub snaplen: u32,
    /// Bytes of the kernel's buffer for each device.
    pub buffer: u32,
    /// True to capture frames for other hosts, too (promiscuous mode).
    pub promiscuous: bool,
    /// Filter of pcap-filter(7) that frames have to pass; `None`: all frames.
    pub filter: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            snaplen: 384,
            buffer: 64 << 20,
            promiscuous: false,
            filter: None,
        }
    }
}

/// Why a device cannot be captured from, or not any further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system has no such device.
    #[error("{device}: there is no such device\nhint: `roce-analyze devices` lists what there is")]
    Missing {
        /// The device.
        device: String,
    },
    /// The filter is not understood, or the device's frames cannot be filtered by it.
    #[error(
        "{device}: the filter cannot be used: {reason}\nhint: pcap-filter(7) has the language: udp port 4791"
    )]
    Filter {
        /// The device.
        device: String,
        /// libpcap's reason.
        reason: String,
    },
    /// It is an RDMA device, and libpcap was built without support for them.
    #[error(
        "{device}: an RDMA device, and this system's libpcap is built without RDMA support ({version})\nhint: build libpcap 1.9 or newer \
with libibverbs' headers installed (Debian: libibverbs-dev; `./configure --enable-rdma`), and start with LD_LIBRARY_PATH \
set to where it was installed; or capture from the port's network interface, whose captures have the packets that pass through the kernel"
    )]
    NoRdma {
        /// The device.
        device: String,
        /// libpcap's version, as it says it.
        version: String,
    },
    /// libpcap says why it cannot be opened.
    #[error("{device}: cannot be opened: {reason}")]
    Open {
        /// The device.
        device: String,
        /// Cause, from libpcap.
        reason: String,
    },
    /// libpcap says why it cannot be read any more.
    #[error("{device}: cannot be read: {reason}")]
    Read {
        /// The device.
        device: String,
        /// Cause, from libpcap.
        reason: String,
    },
    /// A frame could not be sent.
    #[error("{device}: a frame of {bytes} bytes cannot be sent: {reason}")]
    Send {
        /// The device.
        device: String,
        /// The frame's length.
        bytes: usize,
        /// Cause, from libpcap.
        reason: String,
    },
    /// The system gave no thread.
    #[error("{device}: no thread to read it")]
    Thread {
        /// The device.
        device: String,
        /// Cause, from the system.
        source: std::io::Error,
    },
}
