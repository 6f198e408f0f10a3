//! Places where the host's programs are attached. A point that the running kernel lacks is reported and
//! skipped; the rest works.

use std::fmt;
use std::path::Path;

use aya::Ebpf;
use aya::programs::uprobe::{UProbeAttachLocation, UProbeScope};
use aya::programs::{KProbe, Program, ProgramError, RawTracePoint, UProbe};
use roce_abi::{ABSENT, Layout};

use crate::library;

/// Something that could not be attached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SkippedPoint {
    /// The function or tracepoint.
    pub point: &'static str,
    /// Events that stay unseen without it.
    pub unseen: &'static str,
    /// Why.
    pub reason: String,
}

impl fmt::Display for SkippedPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (not seen: {})", self.point, self.reason, self.unseen)
    }
}

/// Events that no hook of this probe sees, in words for the start of a run.
pub const UNSEEN: &[&str] = &[
    "queue pairs that another vendor's driver makes past the verbs (of mlx5's DEVX, commands to the firmware are read)",
    "the processes of queue pairs that existed before the probe; their numbers and addresses come from packets (start the probe first, or see `rdma resource show qp`)",
    "retransmissions and timers inside a hardware NIC: only Soft-RoCE runs them in the kernel; counters tell their sum",
    "packets of a hardware NIC's queue pairs: they pass neither the classifier nor the kernel's drop points; capture on the RDMA \
     device shows them",
];

/// Kind of attachment of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AttachKind {
    Function,
    Tracepoint,
}

struct Point {
    program: &'static str,
    way: AttachKind,
    at: &'static str,
    unseen: &'static str,
    /// A field that the program cannot do without.
    needs: fn(&Layout) -> u32,
}

const fn function(
    program: &'static str,
    at: &'static str,
    unseen: &'static str,
    needs: fn(&Layout) -> u32,
) -> Point {
    Point {
        program,
        way: AttachKind::Function,
        at,
        unseen,
        needs,
    }
}

/// A point in libibverbs. It needs no field of the kernel's types; its caller chooses the kind of
/// attachment.
const fn library(program: &'static str, at: &'static str, unseen: &'static str) -> Point {
    function(program, at, unseen, |_| 0)
}

impl Point {
    fn skipped(&self, reason: String) -> SkippedPoint {
        SkippedPoint {
            point: self.at,
            unseen: self.unseen,
            reason,
        }
    }
}

/// The life of queue pairs, through the kernel: all of the verbs pass these, those of processes and of the kernel itself.
const LIFE: [Point; 7] = [
    function(
        "qp_created",
        "ib_create_qp_user",
        "queue pairs that processes make",
        |layout| layout.qp_number,
    ),
    function(
        "qp_created",
        "ib_create_qp_kernel",
        "queue pairs that the kernel makes",
        |layout| layout.qp_number,
    ),
    function(
        "qp_modified",
        "ib_modify_qp_with_udata",
        "changes by processes",
        |layout| layout.attribute_state,
    ),
    function(
        "qp_modify",
        "ib_modify_qp_with_udata",
        "changes by processes",
        |layout| layout.attribute_state,
    ),
    function("qp_modified", "ib_modify_qp", "changes by the kernel", |layout| {
        layout.attribute_state
    }),
    function("qp_modify", "ib_modify_qp", "changes by the kernel", |layout| {
        layout.attribute_state
    }),
    function(
        "qp_destroy",
        "ib_destroy_qp_user",
        "the end of queue pairs",
        |layout| layout.qp_number,
    ),
];

/// Life of queue pairs through libibverbs, where the kernel has no kprobes. `ibv_create_qp_ex` is no
/// function of the library: a queue pair that it makes is seen at its first change.
const LIFE_IN_LIBRARY: [Point; 4] = [
    library(
        "user_qp_created",
        "ibv_create_qp",
        "queue pairs that processes make",
    ),
    library("user_qp_modified", "ibv_modify_qp", "changes by processes"),
    library("user_qp_modify", "ibv_modify_qp", "changes by processes"),
    library("user_qp_destroy", "ibv_destroy_qp", "the end of queue pairs"),
];

/// Queue pairs that mlx5's DEVX makes past the verbs. Where there is no mlx5, nobody misses them.
const DEVX: [Point; 10] = [
    devx("devx_done", "mlx5_ib_handler_MLX5_IB_METHOD_DEVX_OBJ_CREATE"),
    devx("devx_handler", "mlx5_ib_handler_MLX5_IB_METHOD_DEVX_OBJ_CREATE"),
    devx("devx_done", "mlx5_ib_handler_MLX5_IB_METHOD_DEVX_OBJ_MODIFY"),
    devx("devx_handler", "mlx5_ib_handler_MLX5_IB_METHOD_DEVX_OBJ_MODIFY"),
    devx("devx_done", "devx_obj_cleanup"),
    devx("devx_cleanup", "devx_obj_cleanup"),
    devx("devx_commanded", "mlx5_cmd_do"),
    devx("devx_command", "mlx5_cmd_do"),
    devx("devx_commanded", "mlx5_cmd_exec"),
    devx("devx_command", "mlx5_cmd_exec"),
];

const fn devx(program: &'static str, at: &'static str) -> Point {
    function(program, at, "queue pairs made through mlx5's DEVX", |layout| {
        layout.context_device
    })
}

/// Folder that shows that the module is loaded.
const MLX5: &str = "/sys/module/mlx5_ib";

const TROUBLE: [Point; 7] = [
    Point {
        program: "cm_event",
        way: AttachKind::Tracepoint,
        at: "cm_event_handler",
        unseen: "events of the connection manager",
        needs: |layout| layout.cm_event,
    },
    function(
        "device_event",
        "ib_dispatch_event",
        "events of ports and devices",
        |layout| layout.event_number,
    ),
    function(
        "qp_event",
        "ib_uverbs_qp_event_handler",
        "asynchronous events of queue pairs",
        |layout| layout.event_number,
    ),
    function(
        "rxe_retransmit",
        "retransmit_timer",
        "Soft-RoCE's retransmission timers",
        |layout| layout.rxe_retransmit_timer,
    ),
    function("rxe_rnr", "rnr_nak_timer", "Soft-RoCE's RNR timers", |layout| {
        layout.rxe_rnr_timer
    }),
    function(
        "rxe_error",
        "rxe_qp_error",
        "Soft-RoCE's queue pairs that fail",
        |layout| layout.rxe_qp,
    ),
    Point {
        program: "dropped",
        way: AttachKind::Tracepoint,
        at: "kfree_skb",
        unseen: "packets that the kernel drops",
        needs: |layout| layout.buffer_network,
    },
];

/// Attaches everything that the kernel takes; says what it does not.
pub(crate) fn attach(ebpf: &mut Ebpf, layout: &Layout, library: Option<&Path>) -> Vec<SkippedPoint> {
    let mut skipped = attach_all(ebpf, layout, &LIFE);
    if skipped.len() == LIFE.len() {
        let library = attach_to_library(ebpf, library);
        if library.len() < LIFE_IN_LIBRARY.len() {
            // The library replaces all of them.
            skipped.truncate(1);
            for instead in &mut skipped {
                instead.unseen =
                    "queue pairs of the kernel itself, and of programs with a libibverbs of their own";
            }
        }
        skipped.extend(library);
    }
    if Path::new(MLX5).exists() {
        skipped.extend(attach_all(ebpf, layout, &DEVX));
    }
    skipped.extend(attach_all(ebpf, layout, &TROUBLE));
    skipped.dedup_by(|a, b| (a.point, &a.reason) == (b.point, &b.reason));
    skipped
}

fn attach_all(ebpf: &mut Ebpf, layout: &Layout, points: &[Point]) -> Vec<SkippedPoint> {
    let attach = |point: &Point| {
        let reason = if (point.needs)(layout) == ABSENT {
            "the kernel's BTF does not describe it: its module is not loaded, or differs too much".to_owned()
        } else {
            reason_of(&attach_one(ebpf, point).err()?)
        };
        Some(point.skipped(reason))
    };
    points.iter().filter_map(attach).collect()
}

/// The uprobes, on this library or the system's.
fn attach_to_library(ebpf: &mut Ebpf, library: Option<&Path>) -> Vec<SkippedPoint> {
    let all_for = |reason: &str| {
        let skipped = LIFE_IN_LIBRARY
            .iter()
            .map(|point| point.skipped(reason.to_owned()));
        skipped.collect::<Vec<_>>()
    };
    let Some(path) = library.map(Path::to_owned).or_else(library::find) else {
        return all_for("libibverbs is not installed");
    };
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) => return all_for(&format!("cannot read {}: {error}", path.display())),
    };
    let attach = |point: &Point| {
        let Some(offset) = library::function(&bytes, point.at) else {
            return Some(point.skipped(format!("{} does not have it", path.display())));
        };
        let mut attach = || -> Result<(), ProgramError> {
            let probe: &mut UProbe = program(ebpf, point.program)?.try_into()?;
            probe.load()?;
            let location = UProbeAttachLocation::AbsoluteOffset(offset);
            probe.attach(location, &path, UProbeScope::AllProcesses)?;
            Ok(())
        };
        Some(point.skipped(reason_of(&attach().err()?)))
    };
    LIFE_IN_LIBRARY.iter().filter_map(attach).collect()
}

fn program<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Program, ProgramError> {
    ebpf.program_mut(name).ok_or(ProgramError::UnexpectedProgramType)
}

fn attach_one(ebpf: &mut Ebpf, point: &Point) -> Result<(), ProgramError> {
    let program = program(ebpf, point.program)?;
    match point.way {
        AttachKind::Function => {
            let probe: &mut KProbe = program.try_into()?;
            if probe.fd().is_err() {
                probe.load()?;
            }
            probe.attach(point.at, 0)?;
        }
        AttachKind::Tracepoint => {
            let tracepoint: &mut RawTracePoint = program.try_into()?;
            tracepoint.load()?;
            tracepoint.attach(point.at)?;
        }
    }
    Ok(())
}

/// The whole chain of an error in a line: what a verifier says after the first one is left out.
fn reason_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    let line = text.lines().next().unwrap_or_default();
    let is_paranoid =
        line.contains("perf_event_open") && line.contains("Permission denied") && paranoia() > 2;
    if is_paranoid {
        return format!(
            "{line}: kernel.perf_event_paranoid is over 2, which some distributions keep for root alone (`sysctl \
             kernel.perf_event_paranoid=2` lets CAP_PERFMON suffice)"
        );
    }
    line.to_owned()
}

/// The kernel's restriction of perf events: Debian and Ubuntu have a level 3 of their own, above all
/// capabilities but CAP_SYS_ADMIN.
fn paranoia() -> i32 {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    level.trim().parse().unwrap_or(0)
}
