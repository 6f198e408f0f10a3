//! The life of queue pairs: made, changed, destroyed.
//!
//! Two sources report them: the kernel's own functions, which all of the verbs pass, and (where kprobes
//! are off) the functions of libibverbs. The programs differ only in whose memory they read.

use aya_ebpf::EbpfContext;
use aya_ebpf::helpers::bpf_get_current_pid_tgid;
use aya_ebpf::macros::{kprobe, kretprobe, map, uprobe, uretprobe};
use aya_ebpf::maps::LruHashMap;
use aya_ebpf::programs::{ProbeContext, RetProbeContext};
use aya_log_ebpf::warn;
use roce_abi::{HostKind, ModifyRecord, QueuePairRecord};

use crate::kernel::{Kernel, Memory, User, address, field};

/// Number of the last pointer values that are errors: `MAX_ERRNO` of Linux include/linux/err.h.
const ERRORS: u64 = 4095;

/// Arguments of a change that has started.
#[derive(Clone, Copy)]
#[repr(C)]
struct PendingChange {
    queue_pair: u64,
    attributes: u64,
    mask: u64,
}

/// By thread: a thread is in one call at a time. The oldest entry is evicted, for calls that never
/// return.
#[map]
static CHANGES: LruHashMap<u64, PendingChange> = LruHashMap::with_max_entries(4096, 0);

#[kretprobe]
pub fn qp_created(ctx: RetProbeContext) -> u32 {
    created::<Kernel>(&ctx)
}

#[uretprobe]
pub fn user_qp_created(ctx: RetProbeContext) -> u32 {
    created::<User>(&ctx)
}

#[kprobe]
pub fn qp_modify(ctx: ProbeContext) -> u32 {
    modify(&ctx)
}

#[uprobe]
pub fn user_qp_modify(ctx: ProbeContext) -> u32 {
    modify(&ctx)
}

#[kretprobe]
pub fn qp_modified(ctx: RetProbeContext) -> u32 {
    modified::<Kernel>(&ctx)
}

#[uretprobe]
pub fn user_qp_modified(ctx: RetProbeContext) -> u32 {
    modified::<User>(&ctx)
}

#[kprobe]
pub fn qp_destroy(ctx: ProbeContext) -> u32 {
    tell::<Kernel>(&ctx, HostKind::Destroyed, ctx.arg(0).unwrap_or(0))
}

#[uprobe]
pub fn user_qp_destroy(ctx: ProbeContext) -> u32 {
    tell::<User>(&ctx, HostKind::Destroyed, ctx.arg(0).unwrap_or(0))
}

#[inline(always)]
fn created<M: Memory>(ctx: &RetProbeContext) -> u32 {
    let queue_pair: u64 = ctx.ret();
    if queue_pair >= ERRORS.wrapping_neg() {
        return 0;
    }
    tell::<M>(ctx, HostKind::Created, queue_pair)
}

/// Sends the record of the queue pair at an address.
#[inline(always)]
pub(crate) fn tell<M: Memory>(ctx: &impl EbpfContext, kind: HostKind, queue_pair: u64) -> u32 {
    if queue_pair == 0 {
        return 0;
    }
    let Some(qpn) = field!(M, queue_pair, qp_number) else {
        unreadable(ctx);
        return 0;
    };
    M::send(kind, |record: &mut QueuePairRecord| {
        if let Some(device) = M::device(queue_pair)
            && let Some(name) = address!(M, device, device_name)
        {
            M::read_text(name, &mut record.device);
        }
        record.qpn = qpn;
        record.kind = field!(M, queue_pair, qp_type).unwrap_or(0);
    });
    0
}

/// Memory that is not there: a pointer that means something else than this program believes.
#[inline(always)]
fn unreadable(ctx: &impl EbpfContext) {
    warn!(ctx, "a queue pair's number cannot be read, its event is left out");
}

#[inline(always)]
fn modify(ctx: &ProbeContext) -> u32 {
    let pending = PendingChange {
        queue_pair: ctx.arg(0).unwrap_or(0),
        attributes: ctx.arg(1).unwrap_or(0),
        mask: ctx.arg(2).unwrap_or(0),
    };
    let _ = CHANGES.insert(&bpf_get_current_pid_tgid(), &pending, 0);
    0
}

#[inline(always)]
fn modified<M: Memory>(ctx: &RetProbeContext) -> u32 {
    let result: u64 = ctx.ret();
    let thread = bpf_get_current_pid_tgid();
    // SAFETY: only this thread's own calls write its entry; it is copied at once.
    let Some(pending) = (unsafe { CHANGES.get(&thread).copied() }) else {
        return 0;
    };
    let _ = CHANGES.remove(&thread);
    // An int: the upper half of the register means nothing.
    if result as u32 != 0 {
        return 0;
    }
    let PendingChange {
        queue_pair,
        attributes,
        mask,
    } = pending;
    let Some(qpn) = field!(M, queue_pair, qp_number) else {
        unreadable(ctx);
        return 0;
    };
    M::send(HostKind::Modified, |record: &mut ModifyRecord| {
        if let Some(device) = M::device(queue_pair)
            && let Some(name) = address!(M, device, device_name)
        {
            M::read_text(name, &mut record.device);
        }
        record.qpn = qpn;
        record.kind = field!(M, queue_pair, qp_type).unwrap_or(0);
        record.mask = mask as u32;
        record.state = field!(M, attributes, attribute_state).unwrap_or(0);
        record.path_mtu = field!(M, attributes, attribute_path_mtu).unwrap_or(0);
        record.rq_psn = field!(M, attributes, attribute_rq_psn).unwrap_or(0);
        record.sq_psn = field!(M, attributes, attribute_sq_psn).unwrap_or(0);
        record.destination_qpn = field!(M, attributes, attribute_destination).unwrap_or(0);
        record.destination = field!(M, attributes, attribute_gid).unwrap_or_default();
        record.traffic_class = field!(M, attributes, attribute_traffic_class).unwrap_or(0);
        record.source_index = field!(M, attributes, attribute_source_index).unwrap_or(0);
        record.timeout = field!(M, attributes, attribute_timeout).unwrap_or(0);
        record.retry_count = field!(M, attributes, attribute_retry_count).unwrap_or(0);
        record.rnr_retry = field!(M, attributes, attribute_rnr_retry).unwrap_or(0);
        record.min_rnr_timer = field!(M, attributes, attribute_min_rnr_timer).unwrap_or(0);
        record.port = field!(M, attributes, attribute_port).unwrap_or(0);
        // The kernel keeps the source GID with the queue pair once it has one.
        let source: Option<u64> = field!(M, queue_pair, qp_source);
        if let Some(source) = source
            && source != 0
        {
            record.source = field!(M, source, gid).unwrap_or_default();
        }
    });
    0
}
