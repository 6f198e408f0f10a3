//! The table `taps`: the points of observation.

use std::borrow::Cow;

use roce_wire::{Address, Qpn};

use crate::table::table;
use crate::{TapId, Time, Vantage};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    TapRow, TapColumns, "taps", "One point of observation: a file, one of its interfaces, a mirror session in it.";
    tap: TapId, "", "Number of the tap in this run.";
    input: Cow<'static, str>, "", "Key of the input, as in `run.input`; of rotated files, of the first.";
    interface: Option<Cow<'static, str>>, "", "Name of the interface. Absent where the file has none.";
    link: Cow<'static, str>, "", "Link type.";
    mirror: Option<Cow<'static, str>>, "", "Mirror session: ERSPAN session, or network identifier of a mirroring overlay. Absent without mirroring.";
    vantage: Option<Vantage>, "", "Position of the tap: sender, receiver, between. Absent: unknown.";
    first_time: Option<Time>, "ns", "Capture time of its first frame. Absent without frames.";
    last_time: Option<Time>, "ns", "Capture time of its last frame. Absent without frames.";
    frames: u64, "frames", "Frames read.";
    roce_packets: u64, "packets", "RoCE packets among them, copies counted.";
    copies: u64, "packets", "Exact copies of packets seen within 1 ms before: dropped.";
    pause_frames: u64, "frames", "PFC and pause frames.";
    frames_lost: u64, "frames", "Lost frames, as the capture reports them.";
    mirror_lost: u64, "frames", "Lost frames, by the mirror's sequence numbers.";
    out_of_order: u64, "frames", "Frames stamped earlier than the one before.";
    out_of_order_max_ns: u64, "ns", "Largest step back in time.";
    sorted_frames: u64, "frames", "Frames behind one with a later stamp. They were sorted before anything was counted if they were behind by at most 1 ms.";
    sorted_first_time: Option<Time>, "ns", "Stamp of the first sorted frame. Absent without such frames.";
    sorted_max_ns: u64, "ns", "Largest time by which a sorted frame was behind the latest stamp before it.";
    sorted_too_late: u64, "frames", "Frames that were too far behind to be sorted: they keep their place.";
    stamp_quantum_ns: u64, "ns", "Resolution of the stamps: as the file states it, or the coarser one that they show where several frames in a row have one stamp.";
    clock_reference: Option<TapId>, "", "The tap whose clock this one was compared with, directly or through others: both saw the same packets. Absent: nothing was matched, or it is the reference itself, or shares its clock.";
    clock_offset_ns: Option<f64>, "ns", "Time by which its clock was ahead of the reference's at its first frame; its times in all tables are corrected by it. 0 where no correction is needed for every packet to arrive after it left. Absent without a reference.";
    clock_drift_ppb: Option<f64>, "ppb", "Rate by which its clock was faster. Absent: the same packets were seen in one direction only, or it moved the clock by less than twice clock_uncertainty_ns.";
    clock_uncertainty_ns: Option<f64>, "ns", "Uncertainty of the offset: with a larger error some packet would arrive before it left. At least half of the shortest round trip between the two taps. Absent: the same packets were seen in one direction only, which bounds one side.";
    matched_packets: u64, "packets", "Packets that another tap saw, too; CNPs, which cannot be distinguished, are not matched.";
    cut_frames: u64, "frames", "Frames stored with fewer bytes than they had on the wire.";
}

impl TapRow {
    /// Records that the capture or the mirror lost.
    pub fn records_lost(&self) -> u64 {
        self.frames_lost.saturating_add(self.mirror_lost)
    }
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
    pub first_time: Time,
    /// The last one's time.
    pub last_time: Time,
}
