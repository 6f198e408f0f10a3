//! Queue pairs that a process makes past the verbs, through mlx5's DEVX: UCX and DOCA do. The kernel hands their commands on to the
//! firmware as they are. While a thread is in one of DEVX's handlers, its commands about queue pairs are read.
//!
//! Places in commands are those of the programmer's reference (Linux include/linux/mlx5/mlx5_ifc.h): big-endian, from the first byte.

use aya_ebpf::helpers::bpf_get_current_pid_tgid;
use aya_ebpf::macros::{kprobe, kretprobe, map};
use aya_ebpf::maps::LruHashMap;
use aya_ebpf::programs::{ProbeContext, RetProbeContext};
use roce_abi::{HostKind, ModifyRecord, QueuePairRecord, mask};

use crate::event::send;
use crate::kernel::{Kernel, Memory, address, field};

/// A command to the firmware that has started.
#[derive(Clone, Copy)]
#[repr(C)]
struct Command {
    device: u64,
    input: u64,
    output: u64,
}

/// Threads in a handler of DEVX, with their `struct ib_device`.
#[map]
static INSIDE: LruHashMap<u64, u64> = LruHashMap::with_max_entries(4096, 0);

#[map]
static COMMANDS: LruHashMap<u64, Command> = LruHashMap::with_max_entries(4096, 0);

/// The handlers of DEVX_OBJ_CREATE and DEVX_OBJ_MODIFY: `(struct uverbs_attr_bundle *)`.
#[kprobe]
pub fn devx_handler(ctx: ProbeContext) -> u32 {
    let bundle: u64 = ctx.arg(0).unwrap_or(0);
    enter(field!(Kernel, bundle, bundle_context));
    0
}

/// `devx_obj_cleanup(struct ib_uobject *, ...)`: the end of an object, also when its process dies.
#[kprobe]
pub fn devx_cleanup(ctx: ProbeContext) -> u32 {
    let object: u64 = ctx.arg(0).unwrap_or(0);
    enter(field!(Kernel, object, object_context));
    0
}

#[inline(always)]
fn enter(context: Option<u64>) {
    let context = context.unwrap_or(0);
    let device: u64 = field!(Kernel, context, context_device).unwrap_or(0);
    let _ = INSIDE.insert(&bpf_get_current_pid_tgid(), &device, 0);
}

/// The end of all three.
#[kretprobe]
pub fn devx_done(_: RetProbeContext) -> u32 {
    let _ = INSIDE.remove(&bpf_get_current_pid_tgid());
    0
}

/// `mlx5_cmd_do(struct mlx5_core_dev *, void *in, int in_size, void *out, int out_size)`; `mlx5_cmd_exec` has the same.
#[kprobe]
pub fn devx_command(ctx: ProbeContext) -> u32 {
    let thread = bpf_get_current_pid_tgid();
    // SAFETY: only this thread's own calls write its entry; it is copied at once.
    let Some(device) = (unsafe { INSIDE.get(&thread).copied() }) else {
        return 0;
    };
    let command = Command {
        device,
        input: ctx.arg(1).unwrap_or(0),
        output: ctx.arg(3).unwrap_or(0),
    };
    let _ = COMMANDS.insert(&thread, &command, 0);
    0
}

#[kretprobe]
pub fn devx_commanded(ctx: RetProbeContext) -> u32 {
    let thread = bpf_get_current_pid_tgid();
    // SAFETY: as above.
    let Some(command) = (unsafe { COMMANDS.get(&thread).copied() }) else {
        return 0;
    };
    // One of the two functions may call the other: the first that returns tells.
    let _ = COMMANDS.remove(&thread);
    let failed: u64 = ctx.ret();
    let status: u8 = Kernel::read(command.output).unwrap_or(1);
    if failed as u32 == 0 && status == 0 {
        tell(&command);
    }
    0
}

#[inline(always)]
fn half(address: u64) -> u32 {
    Kernel::read::<u16>(address).map_or(0, |half| u32::from(u16::from_be(half)))
}

/// The lower 24 bits of the word at an address.
#[inline(always)]
fn number(address: u64) -> u32 {
    Kernel::read::<u32>(address).map_or(0, |word| u32::from_be(word) & 0x00ff_ffff)
}

#[inline(always)]
fn byte(address: u64) -> u8 {
    Kernel::read(address).unwrap_or(0)
}

#[inline(always)]
fn name(device: u64, to: &mut [u8]) {
    if device != 0
        && let Some(name) = address!(Kernel, device, device_name)
    {
        Kernel::read_text(name, to);
    }
}

/// `enum ib_qp_type` of the service type in a queue pair's context.
#[inline(always)]
fn kind(service: u8) -> u32 {
    match service {
        0 => 2,
        1 => 3,
        2 => 4,
        3 => 9,
        _ => 0xff,
    }
}

#[inline(always)]
fn tell(command: &Command) -> Option<()> {
    let input = command.input;
    // The queue pair's context follows 24 bytes of command, the address path 24 bytes of that.
    let context = input + 24;
    let path = context + 24;
    let (state, set) = match half(input) {
        // CREATE_QP: its number is in the answer.
        0x500 => {
            return send(HostKind::Created, |record: &mut QueuePairRecord| {
                name(command.device, &mut record.device);
                record.qpn = number(command.output + 8);
                record.kind = kind(byte(context + 1));
            });
        }
        // DESTROY_QP.
        0x501 => {
            return send(HostKind::Destroyed, |record: &mut QueuePairRecord| {
                name(command.device, &mut record.device);
                record.qpn = number(input + 8);
            });
        }
        // RST2INIT, INIT2RTR, RTR2RTS, 2ERR, 2RST.
        0x502 => (1, mask::STATE),
        0x503 => (
            2,
            mask::STATE
                | mask::ADDRESS
                | mask::PATH_MTU
                | mask::RQ_PSN
                | mask::DESTINATION_QPN
                | mask::MIN_RNR_TIMER,
        ),
        0x504 => (3, mask::STATE | mask::SQ_PSN | mask::TIMEOUT),
        0x507 => (6, mask::STATE),
        0x50a => (0, mask::STATE),
        _ => return None,
    };
    send(HostKind::Modified, |record: &mut ModifyRecord| {
        name(command.device, &mut record.device);
        record.qpn = number(input + 8);
        record.kind = kind(byte(context + 1));
        record.mask = set;
        record.state = state;
        record.path_mtu = u32::from(byte(context + 8) >> 5);
        record.destination_qpn = number(context + 20);
        record.sq_psn = number(context + 120);
        record.min_rnr_timer = byte(context + 148) & 0x1f;
        record.rq_psn = number(context + 148);
        record.timeout = byte(path + 8) >> 3;
        record.source_index = byte(path + 9);
        record.traffic_class = byte(path + 12) << 4 | byte(path + 13) >> 4;
        record.destination = Kernel::read(path + 16).unwrap_or_default();
    })
}
