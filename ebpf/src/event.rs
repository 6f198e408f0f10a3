//! Host events on their way to the probe.

use core::ptr;

use aya_ebpf::bindings::BPF_RB_AVAIL_DATA;
use aya_ebpf::helpers::{
    bpf_get_current_cgroup_id, bpf_get_current_comm, bpf_get_current_pid_tgid, bpf_ktime_get_ns,
};
use aya_ebpf::macros::map;
use aya_ebpf::maps::RingBuf;
use roce_abi::{HostHead, HostKind};

use crate::traffic::losses;

/// Bytes of the ring buffer.
const ROOM: u32 = 1 << 18;

#[map]
static EVENTS: RingBuf = RingBuf::with_byte_size(ROOM, 0);

/// As [`send`], but leaves half of the room to others: for what can come in floods.
#[inline(always)]
pub(crate) fn send_if_calm<T: 'static>(kind: HostKind, fill: impl FnOnce(&mut T)) -> Option<()> {
    if EVENTS.query(u64::from(BPF_RB_AVAIL_DATA)) > u64::from(ROOM / 2) {
        losses()?.events += 1;
        return None;
    }
    send(kind, fill)
}

/// Sends a record that `fill` completes: before, it is all zeros but for its head. Without room it is counted.
#[inline(always)]
pub(crate) fn send<T: 'static>(kind: HostKind, fill: impl FnOnce(&mut T)) -> Option<()> {
    let Some(mut entry) = EVENTS.reserve::<T>(0) else {
        losses()?.events += 1;
        return None;
    };
    let record = entry.as_mut_ptr();
    // SAFETY: the record is this program's until it is submitted; it begins with a `HostHead`, and zeros are valid.
    unsafe {
        ptr::write_bytes(record, 0, 1);
        record.cast::<HostHead>().write(head(kind));
        fill(&mut *record);
    }
    entry.submit(0);
    Some(())
}

/// Now, and the process that runs.
#[inline(always)]
fn head(kind: HostKind) -> HostHead {
    // SAFETY: these helpers take nothing and cannot fail.
    let (time, cgroup) = unsafe { (bpf_ktime_get_ns(), bpf_get_current_cgroup_id()) };
    HostHead {
        time,
        cgroup,
        kind: kind as u32,
        pid: (bpf_get_current_pid_tgid() >> 32) as u32,
        comm: bpf_get_current_comm().unwrap_or_default(),
    }
}
