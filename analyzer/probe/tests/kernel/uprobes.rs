//! The life of queue pairs by uprobes, where the kernel has no kprobes: on a library that has the functions and structures of
//! libibverbs and nothing behind them, made here by the C compiler.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use roce_model::{
    Address, HostChange, HostEvent, Psn, Qpn, QueuePairChange, QueuePairKind, QueuePairState, Span,
};
use roce_probe::{Options, Probe};

use crate::{Open, classifier, open, skip};

/// The fields of infiniband/verbs.h (rdma-core) up to those that are read. Each function is there twice, as in the real library:
/// under the old version, where a probe would see nothing, and under the one of today.
const LIBRARY: &str = r#"
#include "verbs.h"
static struct ibv_device device = { .name = "fake_0" };
static struct ibv_context context = { .device = &device };
static struct ibv_qp qp = { .context = &context, .qp_num = 0x1234, .qp_type = 2 };
struct ibv_qp *old_create(void *pd, void *attr) { return 0; }
struct ibv_qp *new_create(void *pd, void *attr) { return &qp; }
int old_modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask) { return 1; }
int new_modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask) { return attr->qp_state == 6 ? 22 : 0; }
int old_destroy(struct ibv_qp *qp) { return 1; }
int new_destroy(struct ibv_qp *qp) { return 0; }
__asm__(".symver old_create,ibv_create_qp@IBVERBS_1.0\n.symver new_create,ibv_create_qp@@IBVERBS_1.1");
__asm__(".symver old_modify,ibv_modify_qp@IBVERBS_1.0\n.symver new_modify,ibv_modify_qp@@IBVERBS_1.1");
__asm__(".symver old_destroy,ibv_destroy_qp@IBVERBS_1.0\n.symver new_destroy,ibv_destroy_qp@@IBVERBS_1.1");
"#;

const HEADER: &str = r"
#include <stdint.h>
struct ibv_device { void *ops[2]; int node_type, transport_type; char name[64]; };
struct ibv_context { struct ibv_device *device; };
struct ibv_qp { struct ibv_context *context; void *others[5]; uint32_t handle, qp_num; int state, qp_type; };
struct ibv_qp_attr {
    int qp_state, cur_qp_state, path_mtu, path_mig_state;
    uint32_t qkey, rq_psn, sq_psn, dest_qp_num, qp_access_flags, cap[5];
    struct { struct { uint64_t dgid[2]; uint32_t flow_label; uint8_t sgid_index, hop_limit, traffic_class; } grh;
             uint16_t dlid; uint8_t sl, src_path_bits, static_rate, is_global, port_num; } ah_attr, alt_ah_attr;
    uint16_t pkey_index, alt_pkey_index;
    uint8_t en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic;
    uint8_t min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry;
};
struct ibv_qp *ibv_create_qp(void *pd, void *attr);
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int ibv_destroy_qp(struct ibv_qp *qp);
";

/// IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_RQ_PSN | IB_QP_DEST_QPN; a change that fails; IB_QP_STATE | IB_QP_SQ_PSN |
/// IB_QP_TIMEOUT.
const PROGRAM: &str = r#"
#include "verbs.h"
#include <string.h>
int main(void) {
    struct ibv_qp_attr attr;
    struct ibv_qp *qp = ibv_create_qp(0, 0);
    memset(&attr, 0, sizeof attr);
    attr.qp_state = 2; attr.path_mtu = 3; attr.rq_psn = 77; attr.dest_qp_num = 0x4321;
    memset(attr.ah_attr.grh.dgid, 0xfd, 16); attr.ah_attr.grh.sgid_index = 3; attr.ah_attr.grh.traffic_class = 106;
    ibv_modify_qp(qp, &attr, 1 | 1 << 7 | 1 << 8 | 1 << 12 | 1 << 20);
    attr.qp_state = 6;
    ibv_modify_qp(qp, &attr, 1);
    attr.qp_state = 3; attr.sq_psn = 99; attr.timeout = 14;
    ibv_modify_qp(qp, &attr, 1 | 1 << 16 | 1 << 9);
    return ibv_destroy_qp(qp);
}
"#;

/// Makes more queue pairs than anybody needs; the numbers are made up.
const FLOOD: &str = r#"
#include "verbs.h"
int main(void) {
    for (int i = 0; i < 20000; i++)
        ibv_create_qp(0, 0);
    return 0;
}
"#;

/// Compiles all into a folder; `None`: there is no compiler.
fn compiled(folder: &Path) -> Option<()> {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("verbs.h", HEADER);
    write("library.c", LIBRARY);
    write("program.c", PROGRAM);
    write("flood.c", FLOOD);
    write(
        "versions",
        "IBVERBS_1.0 { global: ibv_*; local: *; };\nIBVERBS_1.1 { global: ibv_*; } IBVERBS_1.0;\n",
    );
    let cc = |words: &[&str]| Command::new("cc").current_dir(folder).args(words).status().ok();
    let library = cc(&[
        "-w",
        "-shared",
        "-fPIC",
        "-O0",
        "-Wl,--version-script=versions",
        "-o",
        "libfake.so",
        "library.c",
    ])?;
    let program = cc(&["-o", "program", "program.c", "./libfake.so"])?;
    let flood = cc(&["-o", "flood", "flood.c", "./libfake.so"])?;
    assert!(library.success() && program.success() && flood.success());
    Some(())
}

/// The programs in a folder, and a probe of their library; `None`, after a word why, where there can be none.
fn prepared(test: &str) -> Option<(tempfile::TempDir, Open)> {
    if Path::new("/sys/bus/event_source/devices/kprobe").exists() {
        skip(test, "this kernel has kprobes, they come first");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    if compiled(folder.path()).is_none() {
        skip(test, "there is no C compiler");
        return None;
    }
    let options = Options {
        host_events: true,
        library: Some(folder.path().join("libfake.so")),
        ..classifier()
    };
    let probe = open(test, &options)?;
    Some((folder, probe))
}

#[test]
fn calls_of_the_library_are_seen() {
    let test = "uprobes on libibverbs";
    let Some((folder, mut probe)) = prepared(test) else {
        return;
    };
    let mut child = Command::new("./program")
        .current_dir(folder.path())
        .spawn()
        .unwrap();
    let pid = child.id();
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
    let mut events = Vec::new();
    Probe::events(&mut probe, &mut events).unwrap();
    events.retain(|event| event.process.as_ref().is_some_and(|process| process.pid == pid));
    for event in &events {
        assert_eq!(event.device.as_deref(), Some("fake_0"));
        assert_eq!(&*event.process.as_ref().unwrap().comm, "program");
        assert!(
            event.process.as_ref().unwrap().claims,
            "the kernel has not said so"
        );
    }
    let seen: Vec<HostChange> = events.into_iter().map(|event| event.what).collect();
    let qpn = Qpn::new(0x1234);
    let ready_to_receive = QueuePairChange {
        state: Some(QueuePairState::ReadyToReceive),
        destination_qpn: Some(Qpn::new(0x4321)),
        destination: Some(Address::v6([0xfd; 16])),
        rq_psn: Some(Psn::new(77)),
        // enum ibv_mtu: 3 is 1,024 bytes.
        path_mtu: Some(1024),
        traffic_class: Some(106),
        source_gid_index: Some(3),
        ..QueuePairChange::default()
    };
    let ready_to_send = QueuePairChange {
        state: Some(QueuePairState::ReadyToSend),
        sq_psn: Some(Psn::new(99)),
        // 4.096 us * 2^14.
        timeout: Some(Span(67_108_864)),
        ..QueuePairChange::default()
    };
    assert_eq!(
        seen,
        [
            HostChange::Created {
                qpn,
                kind: QueuePairKind::Rc
            },
            HostChange::Modified {
                qpn,
                set: Box::new(ready_to_receive)
            },
            HostChange::Modified {
                qpn,
                set: Box::new(ready_to_send)
            },
            HostChange::Destroyed { qpn },
        ]
    );
}

#[test]
fn a_process_that_makes_up_queue_pairs_crowds_nobody_out() {
    let test = "a flood of made up queue pairs";
    let Some((folder, mut probe)) = prepared(test) else {
        return;
    };
    let run = |name: &str| {
        let mut child = Command::new(name).current_dir(folder.path()).spawn().unwrap();
        let pid = child.id();
        assert!(child.wait().unwrap().success());
        pid
    };
    let begun = Instant::now();
    let flood = run("./flood");
    let mut events = Vec::new();
    // As in a run, some times a second.
    Probe::events(&mut probe, &mut events).unwrap();
    let program = run("./program");
    let periods = begun.elapsed().as_nanos() >> 30;
    Probe::events(&mut probe, &mut events).unwrap();
    let of = |pid: u32| {
        let is_of = |event: &&HostEvent| event.process.as_ref().is_some_and(|process| process.pid == pid);
        events.iter().filter(is_of).count() as u128
    };
    // 1,024 in each 2^30 ns, the first of which may have started before.
    assert!(of(flood) > 500, "{}", of(flood));
    assert!(
        of(flood) <= 1024 * (periods + 2),
        "{} in {periods} periods",
        of(flood)
    );
    assert_eq!(of(program), 4, "made, changed twice, destroyed");
    let lost: u64 = events
        .iter()
        .filter_map(|event| match event.what {
            HostChange::Lost { count } => Some(count),
            _ => None,
        })
        .sum();
    assert!(
        u128::from(lost) + of(flood) >= 20_000,
        "{lost} lost, {} seen",
        of(flood)
    );
}
