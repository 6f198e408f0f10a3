//! Records of queue pairs and errors: a head, then the fields of its kind.

/// Bytes of a device's name, with the zero at its end: `IB_DEVICE_NAME_MAX`.
pub const DEVICE_BYTES: usize = 64;
/// Bytes of a command's name, with the zero at its end: `TASK_COMM_LEN`.
pub const COMM_BYTES: usize = 16;

/// Kind of a record, in [`HostHead::kind`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum HostKind {
    /// A [`QueuePairRecord`]: made.
    Created = 1,
    /// A [`ModifyRecord`].
    Modified = 2,
    /// A [`QueuePairRecord`]: destroyed.
    Destroyed = 3,
    /// A [`ConnectionRecord`].
    Connection = 4,
    /// An [`AsyncRecord`]: from `ib_dispatch_event`, about a port or a device.
    Device = 5,
    /// An [`AsyncRecord`]: from `ib_uverbs_qp_event_handler`, about a queue pair.
    QueuePair = 6,
    /// A [`QueuePairRecord`]: its retransmission timer ran out.
    RetransmitTimer = 7,
    /// A [`QueuePairRecord`]: its RNR timer ran out.
    RnrTimer = 8,
    /// A [`QueuePairRecord`]: it failed.
    QueuePairError = 9,
    /// A [`DropRecord`].
    Dropped = 10,
}

impl HostKind {
    /// A bit of [`HostHead::kind`]: a process made the record by calls of its library; the kernel does
    /// not vouch for it.
    pub const CLAIMED: u32 = 1 << 31;
}

/// In front of every record.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub struct HostHead {
    /// Time of the event.
    pub time: u64,
    /// The cgroup of the process that ran.
    pub cgroup: u64,
    /// A [`HostKind`], perhaps with [`HostKind::CLAIMED`].
    pub kind: u32,
    /// The process that ran; in timers and interrupts whichever it was.
    pub pid: u32,
    /// Its command.
    pub comm: [u8; COMM_BYTES],
}

/// Something happened to a queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct QueuePairRecord {
    /// The head.
    pub head: HostHead,
    /// The device's name, ended by a zero; empty when the program cannot know it (uprobes).
    pub device: [u8; DEVICE_BYTES],
    /// The queue pair.
    pub qpn: u32,
    /// Its type: `enum ib_qp_type` of the kernel.
    pub kind: u32,
}

/// A queue pair was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct ModifyRecord {
    /// The head.
    pub head: HostHead,
    /// The device's name; empty when the program cannot know it (uprobes).
    pub device: [u8; DEVICE_BYTES],
    /// The destination GID.
    pub destination: [u8; 16],
    /// The source GID; zero when it is not known.
    pub source: [u8; 16],
    /// The queue pair.
    pub qpn: u32,
    /// Its type.
    pub kind: u32,
    /// Attributes that were set: bits of `enum ib_qp_attr_mask`.
    pub mask: u32,
    /// `enum ib_qp_state`.
    pub state: u32,
    /// `enum ib_mtu`.
    pub path_mtu: u32,
    /// The next PSN that is expected.
    pub rq_psn: u32,
    /// The next PSN that is sent.
    pub sq_psn: u32,
    /// The other end's queue pair.
    pub destination_qpn: u32,
    /// Traffic class.
    pub traffic_class: u8,
    /// Index of the source GID.
    pub source_index: u8,
    /// Timeout code.
    pub timeout: u8,
    /// Retries.
    pub retry_count: u8,
    /// Retries after RNR NAKs.
    pub rnr_retry: u8,
    /// Timer code of its RNR NAKs.
    pub min_rnr_timer: u8,
    /// The port of the device.
    pub port: u8,
    /// Nothing.
    pub reserved: u8,
}

/// The connection manager sent its user an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct ConnectionRecord {
    /// The head.
    pub head: HostHead,
    /// The device's name; empty before there is one.
    pub device: [u8; DEVICE_BYTES],
    /// This end: the first bytes of a `struct sockaddr`.
    pub local: [u8; 28],
    /// The other end.
    pub remote: [u8; 28],
    /// `enum rdma_cm_event_type`.
    pub event: u32,
    /// Its status.
    pub status: i32,
    /// The queue pair; 0: none yet.
    pub qpn: u32,
    /// Nothing.
    pub reserved: u32,
}

/// An asynchronous event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct AsyncRecord {
    /// The head.
    pub head: HostHead,
    /// The device's name.
    pub device: [u8; DEVICE_BYTES],
    /// `enum ib_event_type`.
    pub event: u32,
    /// The port or the queue pair.
    pub element: u32,
}

/// The kernel dropped a packet to the port of RoCEv2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct DropRecord {
    /// The head.
    pub head: HostHead,
    /// The interface's name, ended by a zero; empty when it had none.
    pub interface: [u8; 16],
    /// Source address.
    pub source: [u8; 16],
    /// Destination address.
    pub destination: [u8; 16],
    /// The base transport header.
    pub bth: [u8; 12],
    /// `enum skb_drop_reason`.
    pub reason: u32,
}

/// Bits of `enum ib_qp_attr_mask` (Linux include/rdma/ib_verbs.h); libibverbs has the same.
pub mod mask {
    /// The state.
    pub const STATE: u32 = 1;
    /// The port.
    pub const PORT: u32 = 1 << 5;
    /// The address path.
    pub const ADDRESS: u32 = 1 << 7;
    /// Path MTU.
    pub const PATH_MTU: u32 = 1 << 8;
    /// The timeout.
    pub const TIMEOUT: u32 = 1 << 9;
    /// Retries.
    pub const RETRY_COUNT: u32 = 1 << 10;
    /// Retries after RNR NAKs.
    pub const RNR_RETRY: u32 = 1 << 11;
    /// The next PSN that is expected.
    pub const RQ_PSN: u32 = 1 << 12;
    /// The timer of its RNR NAKs.
    pub const MIN_RNR_TIMER: u32 = 1 << 15;
    /// The next PSN that is sent.
    pub const SQ_PSN: u32 = 1 << 16;
    /// The other end's queue pair.
    pub const DESTINATION_QPN: u32 = 1 << 20;
}
