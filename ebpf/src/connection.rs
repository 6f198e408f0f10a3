//! Events that the connection manager sends its users: a tracepoint of rdma_cm.

use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;
use roce_abi::{ConnectionRecord, HostKind};

use crate::event::send;
use crate::kernel::{Kernel, Memory, address, field};

/// `cm_event_handler(const struct rdma_id_private *, const struct rdma_cm_event *)`.
#[raw_tracepoint(tracepoint = "cm_event_handler")]
pub fn cm_event(ctx: RawTracePointContext) -> u32 {
    tell(ctx.arg(0), ctx.arg(1));
    0
}

#[inline(always)]
fn tell(private: u64, event: u64) -> Option<()> {
    let id: u64 = address!(Kernel, private, cm_id)?;
    send(HostKind::Connection, |record: &mut ConnectionRecord| {
        record.event = field!(Kernel, event, cm_event).unwrap_or(0);
        record.status = field!(Kernel, event, cm_status).unwrap_or(0);
        // A queue pair that the kernel made for the identifier, or the number that a process gave it.
        let queue_pair: u64 = field!(Kernel, id, cm_qp).unwrap_or(0);
        let stated: u32 = field!(Kernel, private, cm_qp_number).unwrap_or(0);
        record.qpn = match queue_pair {
            0 => stated,
            queue_pair => field!(Kernel, queue_pair, qp_number).unwrap_or(stated),
        };
        if let Some(local) = address!(Kernel, id, cm_source) {
            record.local = Kernel::read(local).unwrap_or_default();
        }
        if let Some(remote) = address!(Kernel, id, cm_destination) {
            record.remote = Kernel::read(remote).unwrap_or_default();
        }
        let device: u64 = field!(Kernel, id, cm_device).unwrap_or(0);
        if device != 0
            && let Some(name) = address!(Kernel, device, device_name)
        {
            Kernel::read_text(name, &mut record.device);
        }
    })
}
