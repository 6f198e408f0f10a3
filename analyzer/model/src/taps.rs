//! The table `taps`: the points of observation.

use std::borrow::Cow;

use roce_wire::{Address, Qpn};

use crate::table::table;
use crate::{Nanos, TapId};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    TapRow, TapColumns, "taps", "One point of observation: a file, one of its interfaces, a mirror session in it.";
    tap: TapId, "", "Its number in this run.";
    input: Cow<'static, str>, "", "The file; of rotated files, the first.";
    interface: Option<Cow<'static, str>>, "", "The interface's name, when the file says it.";
    link: Cow<'static, str>, "", "Link type.";
    mirror: Option<Cow<'static, str>>, "", "The mirror session: ERSPAN session, or network identifier of a mirroring overlay.";
    vantage: Option<&'static str>, "", "Where it looks from: sender, receiver, between. Absent: unknown.";
    first_time: Option<Nanos>, "ns", "Capture time of its first frame.";
    last_time: Option<Nanos>, "ns", "Capture time of its last frame.";
    frames: u64, "frames", "Frames read.";
    roce_packets: u64, "packets", "RoCE packets among them, copies counted.";
    copies: u64, "packets", "Exact copies of packets seen within 1 ms before: dropped.";
    pause_frames: u64, "frames", "PFC and pause frames.";
    frames_lost: u64, "frames", "Frames that the capture says it lost.";
    mirror_lost: u64, "frames", "Frames that the mirror's sequence numbers say were lost.";
    out_of_order: u64, "frames", "Frames stamped earlier than the one before.";
    out_of_order_max_ns: u64, "ns", "The largest step back in time.";
    stamp_quantum_ns: u64, "ns", "Resolution of the stamps, as the file states it.";
    cut_frames: u64, "frames", "Frames of which fewer bytes were kept than were on the wire.";
}

/// Congestion notifications that one host sent to one queue pair of another, at one tap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CnpReceiver {
    /// The tap.
    pub tap: TapId,
    /// Who sent them: the receiver of the marked data.
    pub source: Address,
    /// Who is to slow down.
    pub destination: Address,
    /// The queue pair at `destination` that is to slow down.
    pub qpn: Qpn,
    /// How many.
    pub cnp: u64,
    /// The first one's time.
    pub first_time: Nanos,
    /// The last one's time.
    pub last_time: Nanos,
}
