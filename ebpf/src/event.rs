//! Sends host events to the probe.

use core::ptr;

use aya_ebpf::bindings::BPF_RB_AVAIL_DATA;
use aya_ebpf::helpers::{
    bpf_get_current_cgroup_id, bpf_get_current_comm, bpf_get_current_pid_tgid, bpf_ktime_get_ns,
};
use aya_ebpf::macros::map;
use aya_ebpf::maps::{LruHashMap, RingBuf};
use roce_abi::{HostHead, HostKind};

use crate::traffic::losses;

/// Bytes of the ring buffer.
const ROOM: u32 = 1 << 18;

#[map]
static EVENTS: RingBuf = RingBuf::with_byte_size(ROOM, 0);

/// Events of one process that are taken at its own word in [`PERIOD`]: more than a process makes queue pairs in that time.
const MAX_CLAIMS: u64 = 1024;
/// The bits of a time in ns that are left out of a period: about a second.
const PERIOD: u64 = 30;

/// Claims of a process in a period.
#[derive(Clone, Copy)]
#[repr(C)]
struct Claims {
    period: u64,
    count: u64,
}

/// By process. One that makes others to claim more forgets itself; half of the ring buffer stays free of all of them.
#[map]
static CLAIMS: LruHashMap<u32, Claims> = LruHashMap::with_max_entries(4096, 0);

/// As [`send_if_calm`], for the claims of a process about itself, because any user can call a library's
/// functions with anything. Claims beyond [`MAX_CLAIMS`] in a period are dropped and counted.
#[inline(always)]
pub(crate) fn send_claim<T: 'static>(kind: HostKind, fill: impl FnOnce(&mut T)) -> Option<()> {
    if !may_claim() || EVENTS.query(u64::from(BPF_RB_AVAIL_DATA)) > u64::from(ROOM / 2) {
        losses()?.events += 1;
        return None;
    }
    send_as(kind as u32 | HostKind::CLAIMED, fill)
}

#[inline(always)]
fn may_claim() -> bool {
    let pid = (bpf_get_current_pid_tgid() >> 32) as u32;
    // SAFETY: the helper takes nothing and cannot fail.
    let period = unsafe { bpf_ktime_get_ns() } >> PERIOD;
    let Some(claims) = CLAIMS.get_ptr_mut(&pid) else {
        let _ = CLAIMS.insert(&pid, &Claims { period, count: 1 }, 0);
        return true;
    };
    // SAFETY: an entry of a map lives until the program ends; threads that count at once lose a count at worst.
    let claims = unsafe { &mut *claims };
    if claims.period != period {
        *claims = Claims { period, count: 0 };
    }
    claims.count += 1;
    claims.count <= MAX_CLAIMS
}

/// As [`send`], but leaves half of the room to other records: for events that can come in floods.
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
    send_as(kind as u32, fill)
}

#[inline(always)]
fn send_as<T: 'static>(kind: u32, fill: impl FnOnce(&mut T)) -> Option<()> {
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
fn head(kind: u32) -> HostHead {
    // SAFETY: these helpers take nothing and cannot fail.
    let (time, cgroup) = unsafe { (bpf_ktime_get_ns(), bpf_get_current_cgroup_id()) };
    HostHead {
        time,
        cgroup,
        kind,
        pid: (bpf_get_current_pid_tgid() >> 32) as u32,
        comm: bpf_get_current_comm().unwrap_or_default(),
    }
}
