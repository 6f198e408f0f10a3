//! The table `taps`: the points of observation.

use std::borrow::Cow;

use roce_wire::{Address, Qpn};

use crate::table::table;
use crate::{Nanos, TapId, Vantage};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    TapRow, TapColumns, "taps", "One point of observation: a file, one of its interfaces, a mirror session in it.";
    tap: TapId, "", "Its number in this run.";
    input: Cow<'static, str>, "", "The file; of rotated files, the first.";
    interface: Option<Cow<'static, str>>, "", "The interface's name, when the file says it.";
    link: Cow<'static, str>, "", "Link type.";
    mirror: Option<Cow<'static, str>>, "", "The mirror session: ERSPAN session, or network identifier of a mirroring overlay.";
    vantage: Option<Vantage>, "", "Where it looks from: sender, receiver, between. Absent: unknown.";
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
    sorted_frames: u64, "frames", "Frames that stood behind one with a later stamp. They were put in order before anything was counted, as far as they were behind by no more than 1 ms.";
    sorted_first_time: Option<Nanos>, "ns", "The stamp of the first of them.";
    sorted_max_ns: u64, "ns", "How far one of them was behind the latest stamp before it, at most.";
    sorted_too_late: u64, "frames", "Those that were further behind than could be sorted: they count where they came.";
    stamp_quantum_ns: u64, "ns", "Resolution of the stamps: as the file states it, or the coarser one that they show, where several frames in a row have the same.";
    clock_reference: Option<TapId>, "", "The tap whose clock this one was compared with, directly or over others: both saw the same packets. Absent: nothing was matched, or it is the reference itself, or shares its clock.";
    clock_offset_ns: Option<f64>, "ns", "How far its clock was ahead of the reference's at its first frame; its times in all tables are corrected by it. 0 where every packet arrives after it left as the clocks are: then nothing is corrected.";
    clock_drift_ppb: Option<f64>, "ppb", "How much faster its clock ran. Absent: the same packets were seen in one direction only.";
    clock_uncertainty_ns: Option<f64>, "ns", "By how much the offset can be wrong: with a clock further off some packet would arrive before it left. At least half of the shortest way there and back between the two taps. Absent: the same packets were seen in one direction only, which bounds one side.";
    matched_packets: u64, "packets", "Packets that another tap saw, too; CNPs, which are alike, are not matched.";
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
    /// DSCP of the first one; `None` without an IP header.
    pub dscp: Option<u8>,
    /// 802.1Q priority of the first one, when it was tagged.
    pub pcp: Option<u8>,
    /// The first one's time.
    pub first_time: Nanos,
    /// The last one's time.
    pub last_time: Nanos,
}
