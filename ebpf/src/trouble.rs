//! Trouble: asynchronous events, the timers of Soft-RoCE, and packets that the kernel drops.

use core::ptr;

use aya_ebpf::macros::{kprobe, raw_tracepoint};
use aya_ebpf::programs::{ProbeContext, RawTracePointContext};
use roce_abi::{AsyncRecord, DropRecord, HostKind};
use roce_wire::Address;
use roce_wire::network::udp;

use crate::event::{send, send_if_calm};
use crate::kernel::{Kernel, Memory, address, field};
use crate::queue_pair::tell;

/// The drop reason that is left out: the one that says nothing, by the running kernel's numbers. Set before loading.
#[unsafe(no_mangle)]
static DROP_REASON_LEFT_OUT: u32 = u32::MAX;

/// `ib_dispatch_event(const struct ib_event *)`: ports and devices.
#[kprobe]
pub fn device_event(ctx: ProbeContext) -> u32 {
    asynchronous(HostKind::Device, ctx.arg(0).unwrap_or(0));
    0
}

/// `ib_uverbs_qp_event_handler(struct ib_event *, void *)`: queue pairs of processes.
#[kprobe]
pub fn qp_event(ctx: ProbeContext) -> u32 {
    asynchronous(HostKind::QueuePair, ctx.arg(0).unwrap_or(0));
    0
}

#[inline(always)]
fn asynchronous(kind: HostKind, event: u64) -> Option<()> {
    let device: u64 = field!(Kernel, event, event_device)?;
    send(kind, |record: &mut AsyncRecord| {
        record.event = field!(Kernel, event, event_number).unwrap_or(0);
        record.element = match kind {
            HostKind::QueuePair => {
                let queue_pair: u64 = field!(Kernel, event, event_element).unwrap_or(0);
                field!(Kernel, queue_pair, qp_number).unwrap_or(0)
            }
            _ => field!(Kernel, event, event_element).unwrap_or(0),
        };
        if let Some(name) = address!(Kernel, device, device_name) {
            Kernel::read_text(name, &mut record.device);
        }
    })
}

/// `retransmit_timer(struct timer_list *)` of rdma_rxe.
#[kprobe]
pub fn rxe_retransmit(ctx: ProbeContext) -> u32 {
    let timer: u64 = ctx.arg(0).unwrap_or(0);
    let at = Kernel::offset(|layout| &raw const layout.rxe_retransmit_timer);
    soft_roce(&ctx, HostKind::RetransmitTimer, timer, at);
    0
}

/// `rnr_nak_timer(struct timer_list *)` of rdma_rxe.
#[kprobe]
pub fn rxe_rnr(ctx: ProbeContext) -> u32 {
    let timer: u64 = ctx.arg(0).unwrap_or(0);
    let at = Kernel::offset(|layout| &raw const layout.rxe_rnr_timer);
    soft_roce(&ctx, HostKind::RnrTimer, timer, at);
    0
}

/// `rxe_qp_error(struct rxe_qp *)`.
#[kprobe]
pub fn rxe_error(ctx: ProbeContext) -> u32 {
    soft_roce(&ctx, HostKind::QueuePairError, ctx.arg(0).unwrap_or(0), Some(0));
    0
}

/// `member` is a part of a `struct rxe_qp`, `at` bytes into it.
#[inline(always)]
fn soft_roce(ctx: &ProbeContext, kind: HostKind, member: u64, at: Option<usize>) -> Option<()> {
    let queue_pair = member.checked_sub(at? as u64)?;
    tell::<Kernel>(ctx, kind, address!(Kernel, queue_pair, rxe_qp)?);
    Some(())
}

/// `kfree_skb(struct sk_buff *, void *location, enum skb_drop_reason, ...)`.
#[raw_tracepoint(tracepoint = "kfree_skb")]
pub fn dropped(ctx: RawTracePointContext) -> u32 {
    packet(ctx.arg(0), ctx.arg::<u64>(2) as u32);
    0
}

#[inline(always)]
fn packet(buffer: u64, reason: u32) -> Option<()> {
    // SAFETY: a plain word that was set before loading.
    if reason == unsafe { ptr::read_volatile(&raw const DROP_REASON_LEFT_OUT) } {
        return None;
    }
    let protocol: u16 = field!(Kernel, buffer, buffer_protocol)?;
    let head: u64 = field!(Kernel, buffer, buffer_head)?;
    let network: u16 = field!(Kernel, buffer, buffer_network)?;
    let start = head + u64::from(network);
    match u16::from_be(protocol) {
        0x0800 => {
            let bytes: [u8; 40] = Kernel::read(start)?;
            if bytes[0] != 0x45 || bytes[9] != 17 || !is_roce(bytes[22], bytes[23]) {
                return None;
            }
            let source = Address::v4([bytes[12], bytes[13], bytes[14], bytes[15]]);
            let destination = Address::v4([bytes[16], bytes[17], bytes[18], bytes[19]]);
            report(buffer, reason, &source, &destination, start + 28)
        }
        0x86dd => {
            let bytes: [u8; 44] = Kernel::read(start)?;
            if bytes[6] != 17 || !is_roce(bytes[42], bytes[43]) {
                return None;
            }
            let source = Address::v6(Kernel::read(start + 8)?);
            let destination = Address::v6(Kernel::read(start + 24)?);
            report(buffer, reason, &source, &destination, start + 48)
        }
        _ => None,
    }
}

#[inline(always)]
fn is_roce(high: u8, low: u8) -> bool {
    u16::from_be_bytes([high, low]) == udp::ROCE_V2
}

#[inline(always)]
fn report(buffer: u64, reason: u32, source: &Address, destination: &Address, bth: u64) -> Option<()> {
    send_if_calm(HostKind::Dropped, |record: &mut DropRecord| {
        record.source = *source.octets();
        record.destination = *destination.octets();
        record.bth = Kernel::read(bth).unwrap_or_default();
        record.reason = reason;
        let device: u64 = field!(Kernel, buffer, buffer_device).unwrap_or(0);
        if device != 0
            && let Some(name) = address!(Kernel, device, interface_name)
        {
            Kernel::read_text(name, &mut record.interface);
        }
    })
}
