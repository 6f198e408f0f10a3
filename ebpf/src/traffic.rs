//! The classifier: counts every RoCE packet that passes an interface, and sends the packets that its
//! mode selects.

use core::ptr;

use aya_ebpf::bindings::{BPF_F_NO_PREALLOC, TC_ACT_UNSPEC};
use aya_ebpf::helpers::{bpf_ktime_get_ns, bpf_skb_load_bytes};
use aya_ebpf::macros::{classifier, map};
use aya_ebpf::maps::{PerCpuArray, PerCpuHashMap, RingBuf};
use aya_ebpf::programs::TcContext;
use roce_abi::{
    Direction, FLOWS, FlowCounts, FlowKey, Losses, Mode, NAKS, OPERATIONS, PacketHead, PacketReason,
    RECORD_BYTES, RECORD_BYTES_MANAGEMENT,
};
use roce_wire::network::udp;
use roce_wire::{AethKind, Ecn, ExtendedHeaders, LinkType, Qpn, Roce, fast};

/// Limit of a packet's bytes that the decoder sees: all headers of any opcode behind two tags and an
/// IPv6 header.
const SEEN: usize = 128;
/// Room for it. An extended header is looked for at a place of at most 255 behind the longest stack, as far as the
/// verifier knows: it must lie within.
const ROOM: usize = 512;

/// [`Mode`], set before loading.
#[unsafe(no_mangle)]
static MODE: u32 = Mode::Count as u32;

/// 1: packets are counted by flow. Set before loading.
#[unsafe(no_mangle)]
static COUNTS: u32 = 1;

/// The size is set before loading: each processor has a value of its own.
#[map]
static FLOW_COUNTS: PerCpuHashMap<FlowKey, FlowCounts> =
    PerCpuHashMap::with_max_entries(FLOWS, BPF_F_NO_PREALLOC);

/// Packet records. The size is set before loading.
#[map]
static PACKETS: RingBuf = RingBuf::with_byte_size(1 << 24, 0);

#[map]
static LOSSES: PerCpuArray<Losses> = PerCpuArray::with_max_entries(1, 0);

/// Buffers that are too large for the stack.
struct Scratch {
    frame: [u8; ROOM],
    roce: Roce,
    fresh: FlowCounts,
}

#[map]
static SCRATCH: PerCpuArray<Scratch> = PerCpuArray::with_max_entries(1, 0);

#[repr(C)]
struct PacketRecord<const N: usize> {
    head: PacketHead,
    bytes: [u8; N],
}

#[classifier]
pub fn roce_ingress(ctx: TcContext) -> i32 {
    look(&ctx, Direction::Ingress);
    TC_ACT_UNSPEC
}

#[classifier]
pub fn roce_egress(ctx: TcContext) -> i32 {
    look(&ctx, Direction::Egress);
    TC_ACT_UNSPEC
}

/// This CPU's losses, to be counted.
pub(crate) fn losses() -> Option<&'static mut Losses> {
    // SAFETY: the pointer is to this CPU's value. Only host events can interrupt a program that counts
    // the same field; the worst result is one event that is not counted.
    LOSSES.get_ptr_mut(0).map(|losses| unsafe { &mut *losses })
}

/// Result of a first look at a packet.
#[derive(PartialEq)]
enum Suspect {
    No,
    /// The decoder is to decide.
    Maybe,
    /// It is RoCE by its port or EtherType.
    Yes,
}

#[inline(always)]
fn look(ctx: &TcContext, direction: Direction) -> Option<()> {
    let suspect = suspect(ctx);
    if suspect == Suspect::No {
        return None;
    }
    let length = ctx.len();
    // SAFETY: this CPU's own, and the classifier is not interrupted by itself.
    let scratch = unsafe { &mut *SCRATCH.get_ptr_mut(0)? };
    let seen = load::<SEEN>(ctx, scratch.frame.as_mut_ptr(), length)?;
    let frame = scratch.frame.get(..seen as usize)?;
    // SAFETY: plain words that were set before loading.
    let (mode, counts) = unsafe {
        (
            ptr::read_volatile(&raw const MODE),
            ptr::read_volatile(&raw const COUNTS),
        )
    };
    if !fast::decode_into(LinkType::ETHERNET, frame, length, &mut scratch.roce) {
        if suspect == Suspect::Yes {
            losses()?.undecoded += 1;
            // The other decoder, behind the ring buffer, says what is wrong with it.
            if mode == Mode::Packets as u32 {
                send::<RECORD_BYTES_MANAGEMENT>(ctx, direction, PacketReason::ALL);
            }
        }
        return None;
    }
    let roce = &scratch.roce;
    let reason = reason(roce);
    if counts != 0 {
        count(ctx, direction, roce, reason, &scratch.fresh);
    }
    let wanted = mode == Mode::Packets as u32 || (mode == Mode::Congestion as u32 && reason != 0);
    if wanted {
        if roce.bth.destination_qpn() == Qpn::GENERAL_SERVICES {
            send::<RECORD_BYTES_MANAGEMENT>(ctx, direction, reason);
        } else {
            send::<RECORD_BYTES>(ctx, direction, reason);
        }
    }
    Some(())
}

/// A look at a few bytes, without a copy. What lies beyond the part that can be looked at, and what has a tag, is for the
/// decoder.
#[inline(always)]
fn suspect(ctx: &TcContext) -> Suspect {
    let (start, end) = (ctx.data(), ctx.data_end());
    if start + 38 > end {
        return Suspect::Maybe;
    }
    // Ethernet and IPv4 without options: the protocol at 23, the port at 36.
    match half(start, 12) {
        0x0800 if half(start, 22) & 0xff != 17 => Suspect::No,
        0x0800 if half(start, 14) >> 8 != 0x45 => Suspect::Maybe,
        0x0800 if half(start, 36) == udp::ROCE_V2 => Suspect::Yes,
        // In IPv6, the next header is at 20, and the port behind it at 56.
        0x86dd if half(start, 20) >> 8 != 17 => Suspect::No,
        0x86dd if start + 58 > end => Suspect::Maybe,
        0x86dd if half(start, 56) == udp::ROCE_V2 => Suspect::Yes,
        0x8915 => Suspect::Yes,
        0x8100 | 0x88a8 => Suspect::Maybe,
        _ => Suspect::No,
    }
}

#[inline(always)]
fn half(start: usize, at: usize) -> u16 {
    // SAFETY: the callers have compared `at + 2` with the end of the packet; the verifier holds it.
    u16::from_be(unsafe { ptr::read_unaligned((start + at) as *const u16) })
}

/// Copies the first bytes of the packet, `N` at most; how many. What is shorter than an Ethernet header is no packet.
#[inline(always)]
fn load<const N: usize>(ctx: &TcContext, to: *mut u8, length: u32) -> Option<u32> {
    if length < 14 {
        return None;
    }
    let bytes = if length < N as u32 { length } else { N as u32 };
    // SAFETY: `to` has room for `N` bytes.
    let result = unsafe { bpf_skb_load_bytes(ctx.skb.skb.cast(), 0, to.cast(), bytes) };
    (result == 0).then_some(bytes)
}

/// Reason to send a packet: its signs of congestion and loss.
#[inline(always)]
fn reason(roce: &Roce) -> u16 {
    let mut reason = 0;
    if roce.ecn() == Ecn::Ce {
        reason |= PacketReason::CE;
    }
    if roce.bth.opcode().is_cnp() {
        reason |= PacketReason::CNP;
    }
    if roce.seen.has(ExtendedHeaders::AETH) {
        match roce.aeth.kind() {
            AethKind::Nak(_) => reason |= PacketReason::NAK,
            AethKind::RnrNak { .. } => reason |= PacketReason::RNR_NAK,
            AethKind::Ack { .. } | AethKind::Reserved(_) => {}
        }
    }
    reason
}

#[inline(always)]
fn count(ctx: &TcContext, direction: Direction, roce: &Roce, reason: u16, fresh: &FlowCounts) -> Option<()> {
    let key = FlowKey {
        source: *roce.source.octets(),
        destination: *roce.destination.octets(),
        qpn: roce.bth.destination_qpn().value(),
        // SAFETY: the context is this packet's.
        interface: unsafe { (*ctx.skb.skb).ifindex },
        direction: direction as u32,
    };
    let found = FLOW_COUNTS.get_ptr_mut(&key).or_else(|| {
        // Another CPU may have been faster: then this one's value is there as well.
        let _ = FLOW_COUNTS.insert(&key, fresh, 0);
        FLOW_COUNTS.get_ptr_mut(&key)
    });
    let Some(counts) = found else {
        losses()?.untracked += 1;
        return None;
    };
    // SAFETY: this CPU's own, and the classifier is not interrupted by itself.
    let counts = unsafe { &mut *counts };
    counts.packets += 1;
    counts.wire_bytes += u64::from(ctx.len());
    counts.payload_bytes += u64::from(roce.payload_bytes);
    counts.ecn[usize::from(roce.traffic_class & 3)] += 1;
    if reason & PacketReason::CNP != 0 {
        counts.cnps += 1;
        return Some(());
    }
    counts.operations[masked::<OPERATIONS>(roce.bth.opcode().operation() as u8)] += 1;
    if reason & PacketReason::NAK != 0 {
        counts.naks[masked::<NAKS>(roce.aeth.syndrome())] += 1;
    }
    if reason & PacketReason::RNR_NAK != 0 {
        counts.rnr_naks += 1;
    }
    Some(())
}

/// The low bits of `index`. The compiler cannot optimise the mask away, although it knows the range: the
/// verifier does not.
#[inline(always)]
fn masked<const N: usize>(index: u8) -> usize {
    // SAFETY: a read of a local variable.
    usize::from(unsafe { ptr::read_volatile(&index) }) & (N - 1)
}

#[inline(always)]
fn send<const N: usize>(ctx: &TcContext, direction: Direction, reason: u16) -> Option<()> {
    let Some(mut entry) = PACKETS.reserve::<PacketRecord<N>>(0) else {
        losses()?.packets += 1;
        return None;
    };
    let skb = ctx.skb.skb;
    let record = entry.as_mut_ptr();
    let length = ctx.len();
    // SAFETY: the record is this program's until it is submitted; the context is this packet's.
    unsafe {
        let captured = load::<N>(ctx, (&raw mut (*record).bytes).cast(), length).unwrap_or(0) as u16;
        (&raw mut (*record).head).write(PacketHead {
            time: bpf_ktime_get_ns(),
            interface: (*skb).ifindex,
            direction: direction as u32,
            original: length,
            captured,
            reason,
            vlan: (*skb).vlan_tci as u16,
            vlan_protocol: if (*skb).vlan_present != 0 {
                u16::from_be((*skb).vlan_proto as u16)
            } else {
                0
            },
            reserved: 0,
        });
    }
    entry.submit(0);
    Some(())
}
