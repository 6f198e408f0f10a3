//! Lines of programs in the forms of their sources, with made-up values; addresses are those of documentation and of private networks.

use super::*;

fn one(line: &str) -> ErrorReport {
    report(line).unwrap_or_else(|| panic!("not read: {line}"))
}

/// Program, status, vendor error, own and other queue pair, own and other address, adapter.
type LineFacts<'a> = (
    Program,
    Option<u32>,
    Option<u32>,
    Option<u32>,
    Option<u32>,
    Option<&'a str>,
    Option<&'a str>,
    Option<&'a str>,
);

/// Lines, and what they say.
const LINES: [(&str, LineFacts<'_>); 37] = {
    use Program::{
        Ceph, Dapl, Gloo, Iser, Kernel, Libfabric, Lustre, Mlx5, Mooncake, Mvapich, NvmeKernel, Nvshmem,
        OpenMpi, Perftest, Rds, RpcRdma, SmbDirect, Spdk, StorageScale, Ucx, Verbs,
    };
    [
        // UCX, src/uct/ib/mlx5/ib_mlx5_log.c: two lines of one error.
        (
            "[n7:411:0:411] ib_mlx5_log.c:171  Transport retry count exceeded on mlx5_3:1/RoCE (synd 0x15 vend 0x81 hw_synd 0/0)",
            (Ucx, Some(12), Some(0x81), None, None, None, None, Some("mlx5_3")),
        ),
        (
            "[1603799124.163420] [n7:411 :0]      ib_mlx5_log.c:143  UCX  ERROR Receive-no-ready retry count exceeded on mlx5_bond_0:1/RoCE (synd 0x16 vend 0x82 hw_synd 0/0)",
            (
                Ucx,
                Some(13),
                Some(0x82),
                None,
                None,
                None,
                None,
                Some("mlx5_bond_0"),
            ),
        ),
        (
            "[n7:411:0:411] ib_mlx5_log.c:171  RC QP 0x1f3 wqe[7]: RDMA_READ s-- [rva 0x7f00 rkey 0x5] [rqpn 0x2b9a dlid=0 sl=0 port=1 dgid fd00::5 sgid_index=3 traffic_class=106]",
            (
                Ucx,
                None,
                None,
                Some(0x1f3),
                Some(0x2b9a),
                None,
                Some("fd00::5"),
                None,
            ),
        ),
        (
            "rc_verbs_iface.c:97 UCX ERROR send completion with error: remote operation error [qpn 0x11c wrid 0x5 vendor_err 0x8a]",
            (Ucx, Some(11), Some(0x8a), Some(0x11c), None, None, None, None),
        ),
        // libfabric, fabtests/include/shared.h.
        (
            "[error] fabtests:common/shared.c:2412: cq_readerr 5 (Input/output error), provider errno: 13 (RNR retry counter exceeded)",
            (Libfabric, Some(13), None, None, None, None, None, None),
        ),
        (
            "fi_cq_readerr: prov_errno 10 remote access error local 10.1.0.4 remote 10.1.0.6 qpn 451",
            (
                Libfabric,
                Some(10),
                None,
                Some(451),
                None,
                Some("10.1.0.4"),
                Some("10.1.0.6"),
                None,
            ),
        ),
        // Open MPI, btl_openib_component.c, in two ages.
        (
            "[[6723,1],14][btl_openib_component.c:3556:handle_wc] from n1 to: n2 error polling LP CQ with status RETRY EXCEEDED ERROR status number 12 for wr_id 1f2ec80 opcode 0  vendor error 129 qp_idx 0",
            (OpenMpi, Some(12), Some(129), None, None, None, None, None),
        ),
        (
            "[0,1,144][btl_openib_component.c:587:mca_btl_openib_component_progress] error polling HP CQ with status 5 for wr_id 47121 opcode 0",
            (OpenMpi, Some(5), None, None, None, None, None, None),
        ),
        // MVAPICH2, ibv_channel_manager.c.
        (
            "[n1:mpi_rank_6][handle_cqe] ibv_channel_manager.c:547: [] Got completion with error 10, vendor code=0x88, dest rank=3",
            (Mvapich, Some(10), Some(0x88), None, None, None, None, None),
        ),
        // perftest, perftest_resources.h: the client's and the server's.
        (
            " Failed status 13: wr_id 0 syndrom 0x82",
            (Perftest, Some(13), Some(0x82), None, None, None, None, None),
        ),
        // NVSHMEM, ibrc.cpp.
        (
            "src/comm/transports/ibrc/ibrc.cpp:962: non-zero status: 10 ibv_poll_cq failed, status: 10",
            (Nvshmem, Some(10), None, None, None, None, None, None),
        ),
        // Mooncake, worker_pool.cpp.
        (
            "E0603 20:16:59.104586 27322 worker_pool.cpp:271] Worker: Process failed for slice (opcode: 1, source_addr: 0x7f20, length: 65536, dest_addr: 0x7f3d, local_nic: mlx5_7, peer_nic: 10.1.0.6:15729@mlx5_0, dest_rkey: 21, retry_cnt: 0): RNR retry counter exceeded",
            (Mooncake, Some(13), None, None, None, None, None, Some("mlx5_7")),
        ),
        // SPDK, nvme_rdma.c and lib/mlx5: the queue pair is an address in memory there, and a number here.
        (
            "nvme_rdma.c:2462:nvme_rdma_process_send_completion: *ERROR*: CQ error on Queue Pair 0x55d9f8a0, Response Index 94 (12): transport retry counter exceeded",
            (Spdk, Some(12), None, None, None, None, None, None),
        ),
        (
            "mlx5_qp.c: Error on QP 0x1a4 wqe[012]: Remote access (synd 0x13 vend 0x88 hw 0x0) opcode RDMA_READ",
            (Spdk, Some(10), Some(0x88), Some(0x1a4), None, None, None, None),
        ),
        // Linux: NVMe host and target.
        (
            "nvme nvme3: MEMREG for CQE 0x00000000b63f8f0e failed with status memory bind operation error (6)",
            (NvmeKernel, Some(6), None, None, None, None, None, Some("nvme3")),
        ),
        (
            "nvmet_rdma: RDMA WRITE for CQE failed with status remote access error (10).",
            (NvmeKernel, Some(10), None, None, None, None, None, None),
        ),
        // xprtrdma and svcrdma: number and vendor error behind the words.
        (
            "rpcrdma: fastreg: local protection error (4/0x56)",
            (RpcRdma, Some(4), Some(0x56), None, None, None, None, None),
        ),
        (
            "svcrdma: Send: transport retry counter exceeded (12/0x81)",
            (RpcRdma, Some(12), Some(0x81), None, None, None, None, None),
        ),
        (
            "rpcrdma: connection to 10.1.0.6:20049 closed (-103)",
            (RpcRdma, None, None, None, None, None, Some("10.1.0.6"), None),
        ),
        // mlx5_ib: hw/mlx5/qp.c and cq.c; mlx4.
        (
            "mlx5_bond_0/1: QP 1297 error: unrecognized status (0x41 0x0 0x0)",
            (
                Mlx5,
                None,
                Some(0x41),
                Some(1297),
                None,
                None,
                None,
                Some("mlx5_bond_0"),
            ),
        ),
        (
            "rocep2s0/1: QP 137 error: remote invalid request error (0x89 0x0 0x0)",
            (
                Mlx5,
                Some(9),
                Some(0x89),
                Some(137),
                None,
                None,
                None,
                Some("rocep2s0"),
            ),
        ),
        (
            "infiniband mlx5_0: mlx5_handle_error_cqe:332:(pid 0): WC error: 4, Message: local protection error",
            (Mlx5, Some(4), None, None, None, None, None, Some("mlx5_0")),
        ),
        (
            "mlx4: local QP operation err (QPN 00004a, WQE index 0, vendor syndrome 77, opcode = 5e)",
            (Mlx5, Some(2), Some(77), Some(0x4a), None, None, None, None),
        ),
        // Others of the kernel: iSER, RDS, IP over InfiniBand, SMB Direct.
        (
            "iser: iser_err_comp: command failure: transport retry counter exceeded (12) vend_err 0x81",
            (Iser, Some(12), Some(0x81), None, None, None, None, None),
        ),
        (
            "isert: isert_print_wc: send failure: RNR retry counter exceeded (13) vend_err 82",
            (Iser, Some(13), Some(0x82), None, None, None, None, None),
        ),
        (
            "RDS/IB: send completion on <10.1.0.4,10.1.0.6,0> had status 12 (transport retry counter exceeded), vendor err 0x81, disconnecting and reconnecting",
            (
                Rds,
                Some(12),
                Some(0x81),
                None,
                None,
                Some("10.1.0.4"),
                Some("10.1.0.6"),
                None,
            ),
        ),
        (
            "mlx5_0: ib0: failed send event (status=12, wrid=5 vend_err 81)",
            (
                Kernel,
                Some(12),
                Some(0x81),
                None,
                None,
                None,
                None,
                Some("mlx5_0"),
            ),
        ),
        // DAPL, dapl/openib_common/cq.c, as Intel MPI shows it.
        (
            "n2:SCM:1a2b:7f: 4711 us(4711 us):  DTO completion ERR: status 12, op RDMA_WRITE, vendor_err 0x81 - 10.1.0.6 dapl_evd_dto",
            (Dapl, Some(12), Some(0x81), None, None, None, None, None),
        ),
        (
            "ksmbd: smb_direct: read/write error. opcode = 1, status = remote access error(10)",
            (SmbDirect, Some(10), None, None, None, None, None, None),
        ),
        // Gloo, pair.cc; Lustre, o2iblnd_cb.c; Ceph, RDMAStack.cc; Storage Scale.
        (
            "RuntimeError: [enforce fail at ../gloo/transport/ibverbs/pair.cc:465] wc->status == IBV_WC_SUCCESS. 12 vs 0. Send for slot 0: transport retry counter exceeded",
            (Gloo, Some(12), None, None, None, None, None, None),
        ),
        (
            "LNetError: 4321:0:(o2iblnd_cb.c:496:kiblnd_handle_rx()) Rx from 10.1.0.6@o2ib failed: 5",
            (Lustre, Some(5), None, None, None, None, Some("10.1.0.6"), None),
        ),
        (
            "LNetError: 4321:0:(o2iblnd_cb.c:3497:kiblnd_check_conns()) Timed out RDMA with 10.1.0.6@o2ib1 (12): c: 8, oc: 0, rc: 8",
            (Lustre, None, None, None, None, None, Some("10.1.0.6"), None),
        ),
        (
            "handle_tx_event Responder ACK timeout, possible disconnect, or Remote QP in bad state  WCE status(12): WC_RETRY_EXC_ERR WCE QP number 1204 Opcode 0 wr_id: 0x55",
            (Ceph, Some(12), None, Some(1204), None, None, None, None),
        ),
        (
            "mmfs: [E] VERBS RDMA rdma write error IBV_WC_RNR_RETRY_EXC_ERR to 10.1.0.6 (n6) on mlx5_2 port 1 fabnum 0 vendor_err 130",
            (
                StorageScale,
                Some(13),
                Some(130),
                None,
                None,
                None,
                Some("10.1.0.6"),
                Some("mlx5_2"),
            ),
        ),
        (
            "[gpu-a:221 :0:300] ib_mlx5_log.c:179  Remote QP on mlx5_1:1/RoCE (synd 0x14 vend 0x89 hw_synd 0/0)",
            (Ucx, Some(11), Some(0x89), None, None, None, None, Some("mlx5_1")),
        ),
        // Any program with the names of libibverbs.
        (
            "wc status 12 vendor_err 129 qp 0x1234 (10.1.0.4 -> 10.1.0.6)",
            (
                Verbs,
                Some(12),
                Some(129),
                Some(0x1234),
                None,
                Some("10.1.0.4"),
                Some("10.1.0.6"),
                None,
            ),
        ),
        (
            "poll failed: wc.status IBV_WC_REM_ACCESS_ERR qp_num=291 remote_qpn=0x124 src=10.1.0.4:18515 dst=10.1.0.6:18515 dev rxe0",
            (
                Verbs,
                Some(10),
                None,
                Some(291),
                Some(0x124),
                Some("10.1.0.4"),
                Some("10.1.0.6"),
                Some("rxe0"),
            ),
        ),
    ]
};

#[test]
fn each_program_in_its_own_form() {
    for (line, expected) in LINES {
        let found = one(line);
        let text = |address: Option<roce_model::Address>| address.map(|address| address.to_string());
        let (local, remote) = (text(found.local), text(found.remote));
        let facts = (
            found.program,
            found.status,
            found.vendor_error,
            found.queue_pair,
            found.remote_queue_pair,
            local.as_deref(),
            remote.as_deref(),
            found.adapter.as_deref(),
        );
        assert_eq!(facts, expected, "{line}");
    }
}

#[test]
fn symptoms_have_no_status() {
    let timeout = one(
        "[rank3]:[E1125 18:00:01.0 ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4411, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600014 milliseconds before timing out.",
    );
    assert_eq!(
        (timeout.program, timeout.status, timeout.rank),
        (Program::PyTorch, None, Some(3))
    );
    assert_eq!(timeout.status_name(), "collective timeout");
    let closed = one(
        "[n1:22:0] ucp_ep.c:1504 UCX  DIAG ep 0x7f: error 'Endpoint timeout' on rc_mlx5/mlx5_2:1 will not be handled",
    );
    assert_eq!(
        (closed.status_name(), closed.adapter.as_deref(), closed.port),
        ("endpoint timeout".to_owned(), Some("mlx5_2"), Some(1))
    );
    let reset = one("ucx_utils.cpp:92] nixl UCX request failed: Connection reset by remote peer");
    assert!(reset.is_consequence(), "{reset:?}");
}

#[test]
fn lines_of_launchers_say_the_same() {
    let line = "mlx5_1/1: QP 1297 error: remote access error (0x88 0x0 0x0)";
    let bare = one(line);
    for prefix in [
        "3: ",
        "[1,3]<stderr>:",
        "n17: ",
        "[pod/train-worker-0/main] ",
        "2026-11-25T18:00:01.123456789Z ",
        "Nov 25 18:00:01 n17 kernel: [12345.678901] ",
        "[Wed Nov 25 18:00:01 2026] ",
        "<4>[ 12345.678901] ",
        "[default0]:",
        "[rank3]: ",
        "\u{1b}[33m",
    ] {
        let mut found = one(&format!("{prefix}{line}"));
        found.rank = None;
        assert_eq!(found, bare, "{prefix}");
    }
}

/// Linux drivers/nvme/host/rdma.c and target/core.c: lines without a status.
#[test]
fn errors_of_nvme_without_a_status_are_read() {
    for (line, symptom) in [
        (
            "nvme nvme0: I/O tag 12 (300c) opcode 0x2 (Read) QID 4 timeout",
            "request timeout",
        ),
        ("[ 8123.4] nvme nvme3: I/O 97 QID 11 timeout", "request timeout"),
        (
            "nvmet: ctrl 1 keep-alive timer (15 seconds) expired!",
            "keep-alive expired",
        ),
        (
            "nvme nvme0: rdma connection establishment failed (-110)",
            "connection failed",
        ),
        (
            "Nov 25 18:00:01 n17 kernel: nvme nvme0: starting error recovery",
            "error recovery",
        ),
        // Reasons of the connection manager: 8 is an invalid service id, 28 one of the program (IBTA 12.6.7.2).
        (
            "nvme nvme1: Connect rejected: status 8 (invalid service ID).",
            "connection rejected",
        ),
        (
            "nvme nvme0: Connect rejected: status 28 (consumer defined) nvme status 4 (invalid host SQ size).",
            "connection rejected",
        ),
    ] {
        let found = one(line);
        assert_eq!(found.program, Program::NvmeKernel, "{line}");
        assert_eq!(found.symptom.map(|symptom| symptom.name), Some(symptom), "{line}");
        assert_eq!(found.status, None, "{line}");
    }
}

/// Lines of healthy programs, of other errors, and of nobody.
#[test]
fn other_lines_are_none() {
    for line in [
        "",
        "hello",
        "12",
        "error 12",
        "status=12",
        "h:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:192.0.2.1<0>",
        "h:1:2 [0] NCCL INFO NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 576 mtu 3 GID 3 (0/1064A8C0FFFF0000) fifoRkey=0x1 fifoLkey=0x1",
        "Nov 25 18:00:01 n17 sshd[812]: Failed password for root from 10.0.0.9 port 51234 ssh2",
        "Nov 25 18:00:01 n17 kernel: EXT4-fs error (device sda1): status 12",
        "Nov 25 18:00:01 n17 kernel: nvme nvme0: creating 8 I/O queues.",
        // NVMe over PCI and over TCP.
        "nvme nvme0: I/O 12 QID 4 timeout, aborting",
        "nvme nvme0: I/O tag 12 (300c) type 4 opcode 0x1 (I/O Cmd) QID 4 timeout",
        "Nov 25 18:00:01 n17 kernel: mlx5_core 0000:98:00.0 ens1f0np0: Link up",
        "mlx5_0/1: QP 12 created",
        "[1603799124.163420] [n7:411 :0]  ucp_worker.c:1855 UCX  INFO  ep_cfg[1]: tag(rc_mlx5/mlx5_0:1)",
        "UCX_RC_RETRY_COUNT=7",
        " local address: LID 0000 QPN 0x0127 PSN 0xb6e4d0 RKey 0x1fff00 VAddr 0x007f",
        " 65536      5000             92.57              92.55              0.176528",
        "#       size         count      type   redop    root     time   algbw   busbw #wrong",
        "Got completion with status=0 opcode=0 len=0 on NET/IB",
        "wc.status=0 qp_num=12",
        "openai: chat completion failed: bad response",
        "HTTP error: retry exceeded, code 12",
        "server died: fatal error",
        "step 12 | loss 2.1 | 45.2 ms",
    ] {
        assert_eq!(report(line), None, "{line}");
    }
}

#[test]
fn lines_about_one_error_are_one() {
    // UCX, two processes whose lines are mixed.
    let text = "\
[n7:411:0:411] ib_mlx5_log.c:171  Transport retry count exceeded on mlx5_3:1/RoCE (synd 0x15 vend 0x81 hw_synd 0/0)
[n7:412:0:412] ib_mlx5_log.c:171  Remote access error on mlx5_3:1/RoCE (synd 0x13 vend 0x88 hw_synd 0/0)
[n7:411:0:411] ib_mlx5_log.c:171  RC QP 0x1f3 wqe[7]: SEND s-e [rqpn 0x2b9a dlid=0 sl=0 port=1 dgid ::ffff:10.1.0.6 sgid_index=3 traffic_class=106] [inl len 26]
[n7:412:0:412] ib_mlx5_log.c:171  RC QP 0x1f4 wqe[8]: RDMA_READ s-- [rva 0x7f00 rkey 0x5] [rqpn 0x2b9b dlid=0 sl=0 port=1 dgid ::ffff:10.1.0.7 sgid_index=3 traffic_class=106]
";
    let found = reports(text);
    let of = |at: usize| {
        (
            found[at].status,
            found[at].queue_pair,
            found[at].remote_queue_pair,
        )
    };
    assert_eq!(found.len(), 2);
    assert_eq!(
        (of(0), of(1)),
        (
            (Some(12), Some(0x1f3), Some(0x2b9a)),
            (Some(10), Some(0x1f4), Some(0x2b9b))
        )
    );
    assert_eq!(found[1].remote.unwrap().to_string(), "10.1.0.7");
    // perftest prints two lines.
    let found = reports(
        " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0\n",
    );
    assert_eq!(
        (found.len(), found[0].status, found[0].vendor_error),
        (1, Some(12), Some(0x81))
    );
    // Linux's dump of a completion: commit message of "RDMA/mlx5: Print wc status on CQE error and dump needed". Byte 54 is the vendor's
    // syndrome, 55 the syndrome, 57 to 59 the queue pair (include/linux/mlx5/device.h, struct mlx5_err_cqe).
    let text = "\
[166755.332323] infiniband mlx5_0: dump_cqe:272:(pid 0): dump error cqe
[166755.332944] 00000000: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
[166755.333574] 00000010: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
[166755.334202] 00000020: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
[166755.334837] 00000030: 00 00 00 00 00 00 88 13 08 03 61 b3 1e a1 42 d3
";
    let found = reports(text);
    assert_eq!(
        (
            found.len(),
            found[0].status,
            found[0].vendor_error,
            found[0].queue_pair
        ),
        (1, Some(10), Some(0x88), Some(0x3_61b3))
    );
    // Older kernels have no offsets.
    let text = "mlx5_0:dump_cqe:275:(pid 0): dump error cqe\n00000000 00000000 00000000 00000000\n00000000 00000000 00000000 00000000\n\
                00000000 00000000 00000000 00000000\n00000000 00008115 0a000107 b22a02d2\n";
    let found = reports(text);
    assert_eq!(
        (found.len(), found[0].status, found[0].queue_pair),
        (1, Some(12), Some(0x107))
    );
    // Open MPI: a line, and a paragraph of help-mpi-btl-openib.txt.
    let text = "\
[[6723,1],0][btl_openib_component.c:3556:handle_wc] from n1 to: n2 error polling LP CQ with status RETRY EXCEEDED ERROR status number 12 for wr_id 1f2 opcode 0  vendor error 129 qp_idx 0
--------------------------------------------------------------------------
The InfiniBand retry count between two MPI processes has been
exceeded.  \"Retry count\" is defined in the InfiniBand spec 1.2

  Local host:   n1
  Local device: mlx5_2
  Peer host:    n2
";
    let found = reports(text);
    assert_eq!(
        (
            found.len(),
            found[0].adapter.as_deref(),
            found[0].peer.as_deref(),
            found[0].rank
        ),
        (1, Some("mlx5_2"), Some("n2"), Some(0))
    );
}

proptest::proptest! {
    /// No text makes the reader panic.
    #[test]
    fn any_text_is_read(text in "[ -~\n\u{e4}]{0,300}", at in 0usize..12) {
        let begins = ["QP 0x", "wqe[ rqpn ", "status ", "(synd 0x15 vend 0x", "remoteGids", "@o2ib transport retry counter exceeded (", "dump error cqe\n", "completion on <", "IBV_WC_RETRY_EXC_ERR qpn ", "/0x", "mlx5_", "[rank"];
        reports(&format!("{}{text}", begins[at]));
        reports(&format!("{text}{}", begins[at]));
    }
}

/// Lines of programs and drivers that have no status of a completion, made after the sources that `symptom.rs` names: program, error, line.
/// `-`: no error.
#[test]
fn errors_without_a_completion_are_translated() {
    let mut wrong = Vec::new();
    for row in include_str!("tests/symptoms.txt").lines() {
        let [program, name, line] = row.splitn(3, '\t').collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let found = report(line).map(|found| (found.program.name(), found.status_name()));
        let expected = (program != "-").then(|| (program, name.to_owned()));
        if found != expected {
            wrong.push((line, found));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn numbers_of_drivers_are_their_own() {
    // bnxt_re: CQ_REQ_STATUS_TRANSPORT_RETRY_CNT_ERR is 0xa; irdma: IRDMA_AE_LLP_TOO_MANY_RETRIES is 0x50a.
    for line in [
        "bnxt_en 0000:41:00.0: QPLIB: wr_id[1] = 0x10 with status 0xa",
        "irdma 0000:17:00.0: abnormal ae_id = 0x50a bool qp=1 qp_id = 42, ae_src=2",
    ] {
        assert_eq!(report(line).unwrap().status, Some(12), "{line}");
    }
    // Two lines of mlx5_ib are one error: the completion queue, then the syndromes (Linux drivers/infiniband/hw/mlx5/cq.c).
    let all = reports(
        "[1.6] infiniband rocep33s0f0: mlx5_poll_one:527:(pid 0): Responder error cqe on cqn 0x406:\n\
         [1.6] infiniband rocep33s0f0: mlx5_poll_one:530:(pid 0): syndrome 0x15, vendor syndrome 0x81\n",
    );
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!((all[0].status, all[0].vendor_error), (Some(12), Some(0x81)));
    // MVAPICH's first line has no number.
    let all = reports(
        "[n0:mpi_rank_7][handle_cqe] Send desc error in msg to 3, wc_opcode=0\n\
         [n0:mpi_rank_7][handle_cqe] Msg from 3: wc.status=12, wc.wr_id=0x2b, wc.opcode=0, vbuf->phead->type=32\n",
    );
    assert_eq!((all.len(), all[0].status), (1, Some(12)), "{all:?}");
}

/// Tokens are read by their shape, in lines of any family.
#[test]
fn addresses_ranks_and_interfaces_are_read_wherever_they_stand() {
    let peer = |line: &str| {
        let found = one(line);
        found.remote.map(|address| address.to_string()).or(found.peer)
    };
    for (line, expected) in [
        (
            "h:7:9 [0] misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer 10.2.0.9<40001>",
            "10.2.0.9",
        ),
        (
            "h:7:9 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.2.0.8<40001> failed : No route to host",
            "10.2.0.8",
        ),
        ("nfs: server 10.2.2.7 not responding, timed out", "10.2.2.7"),
        ("rdma_rxe: bad ICRC from 10.2.2.6", "10.2.2.6"),
        (
            "LNet: 1:0:(o2iblnd_cb.c:3123:kiblnd_cm_callback()) 10.2.2.5@o2ib1: ADDR ERROR -110",
            "10.2.2.5",
        ),
        (
            "[I] VERBS RDMA closed connection to 10.2.2.4 (nsd1) on mlx5_0 port 1 fabnum 0 error 733 index 2",
            "10.2.2.4",
        ),
        (
            "libfabric:8:1::efa:cq:f():7<warn> err: 5, message: Invalid address My EFA addr: fi_addr_efa://[fe80::11]:0:1 Peer EFA addr: fi_addr_efa://[fe80::22]:0:9 (7)",
            "fe80::22",
        ),
    ] {
        assert_eq!(peer(line).as_deref(), Some(expected), "{line}");
    }
    // A name of C++ is no address, and that of the host that wrote the log is not the peer's.
    assert_eq!(
        peer(
            "[rank3]: c10::Error: NCCL error in: a.cpp:1, remote process exited or there was a network error"
        ),
        None
    );
    assert_eq!(
        peer("Nov 29 13:06:13 10.0.0.5 kernel: mlx5_core 0000:3b:00.0 ens1f0np0: Link down"),
        None
    );
    for (line, rank) in [
        (
            "MPICH ERROR [Rank 77] [job id 9.0] - Abort(1) (rank 77 in comm 0): MPIDI_OFI_handle_cq_error(1): OFI poll failed (x)",
            77,
        ),
        (
            "Abort(2) on node 7 (rank 7 in comm 0): Fatal error in PMPI_Waitall: MPIDI_OFI_handle_cq_error(1): OFI poll failed (x)",
            7,
        ),
        ("DeepEP timeout check failed: rank = 5, thread = 9, value = 77", 5),
    ] {
        assert_eq!(one(line).rank, Some(rank), "{line}");
    }
    assert_eq!(
        one("mlx5_core 0000:3b:00.0 ens1f0np0: Link down")
            .adapter
            .as_deref(),
        Some("ens1f0np0")
    );
    assert_eq!(
        one("mlx5_core 0000:3b:00.0: mlx5_cmd_check:795:(pid 9): CREATE_MKEY(0x200) op_mod(0x0) failed, status bad resource(0x5)").adapter.as_deref(),
        Some("0000:3b:00.0")
    );
    let local = one(
        "W0101 10:00:00.1 77 worker_pool.cpp:308] Too many errors found in local RNIC 10.0.0.8:12001@mlx5_2, mark it inactive",
    );
    assert_eq!((local.adapter.as_deref(), local.peer), (Some("mlx5_2"), None));
    for (line, queue_pair) in [
        (
            "hns3 0000:7d:00.2 hns_2: local access violation work queue 0x2c error, sub_event type is: 3",
            0x2c,
        ),
        (
            "cxgb4 0000:04:00.4: AE qpid 1101 opcode 3 status 0x6 type 0 len 0x0",
            1_101,
        ),
        (
            "mlx5_net: Unexpected CQE error syndrome 0x04 CQN = 1033 SQN = 4242 wqe_counter = 10",
            4_242,
        ),
    ] {
        assert_eq!(one(line).queue_pair, Some(queue_pair), "{line}");
    }
}

#[test]
fn statuses_of_further_programs() {
    for (line, status) in [
        // uccl-project/uccl, rdma_io.cc.
        (
            "F20250821 13:22:09.976752 3186121 rdma_io.cc:811] Check failed: wc->status == IBV_WC_SUCCESS RC send CQ state error: 12, 0",
            12,
        ),
        // linux-rdma/rdma-core, librdmacm/examples/rping.c.
        ("cq completion failed status 13", 13),
        // DPDK, drivers/net/mlx5/mlx5_rx.c: MLX5_CQE_SYNDROME_LOCAL_PROT_ERR.
        (
            "mlx5_net: Unexpected CQE error syndrome 0x04 CQN = 1033 SQN = 4242 wqe_counter = 10",
            4,
        ),
        // HNS_ROCE_CQE_V2_RNR_RETRY_EXC_ERR.
        ("hns3 0000:7d:00.2 hns_2: error cqe status 0x16:", 13),
        // Ceph, RDMAStack.cc: its sentence for IBV_WC_RETRY_EXC_ERR.
        (
            "RDMAStack handle_tx_event connection between server and client not working. Disconnect this now",
            12,
        ),
    ] {
        assert_eq!(one(line).status, Some(status), "{line}");
    }
}

/// Docker's json-file driver, and Lustre's error in two lines.
#[test]
fn wrapped_and_divided_lines_are_whole() {
    let line = r#"{"log":"gpu3:31:99 [1] transport/net_ib.cc:1480 NCCL WARN NET/IB : Got completion from peer 10.3.0.4\u003c51121\u003e with status=12 opcode=0 len=0 vendor err 129 (Send) localGid ::ffff:10.3.0.1 remoteGids::ffff:10.3.0.4 hca mlx5_6\n","stream":"stderr","time":"2026-03-03T09:00:00.1Z"}"#;
    let found = one(line);
    assert_eq!(
        (found.adapter.as_deref(), found.peer.as_deref()),
        (Some("mlx5_6"), Some("10.3.0.4"))
    );
    let two = reports(
        "LNetError: 1:0:(o2iblnd_cb.c:3381:kiblnd_check_txs_locked()) Timed out tx: active_txs, 6 seconds\n\
         LNetError: 1:0:(o2iblnd_cb.c:3456:kiblnd_check_conns()) Timed out RDMA with 10.4.0.3@o2ib (106): c: 0, oc: 0, rc: 8\n",
    );
    assert_eq!(two.len(), 1, "{two:?}");
    assert_eq!(
        two[0].remote.map(|address| address.to_string()).as_deref(),
        Some("10.4.0.3")
    );
}

/// After Spark's TaskSetManager, SparkRDMA (RdmaShuffleFetcherIterator) and SparkUCX.
#[test]
fn blocks_that_spark_did_not_fetch_over_rdma() {
    let task = "25/11/20 10:11:12 WARN TaskSetManager: Lost task 3.0 in stage 2.0 (TID 12) (10.0.0.5 executor 3): FetchFailed(BlockManagerId(2, rdma7, 43211, None), shuffleId=0, mapIndex=1, mapId=5, reduceId=3, message= ";
    for cause in [
        "at org.apache.spark.shuffle.rdma.RdmaShuffleFetcherIterator.next(RdmaShuffleFetcherIterator.scala:371)",
        "org.openucx.jucx.UcxException: failed",
        "at org.apache.spark.shuffle.ucx.UcxShuffleClient.fetchBlocks",
        "org.apache.spark.shuffle.FetchFailedException: Error in UCX read",
    ] {
        let found = report(&format!("{task}{cause}")).unwrap();
        assert_eq!(
            (found.program, found.symptom.unwrap().name),
            (Program::Spark, "shuffle block not fetched"),
            "{cause}"
        );
        assert!(found.is_consequence());
    }
    // Netty's shuffle is none of RDMA, whatever the host is called.
    for cause in [
        "",
        "Connection reset by peer",
        "Failed to connect to /10.0.0.7:43211",
    ] {
        assert_eq!(report(&format!("{task}{cause}")), None, "{cause}");
    }
}

/// Lines whose words are in no list: a program over RDMA that says that something failed. After NCCL `net_ib.cc`, Gloo `unbound_buffer.cc`,
/// Open MPI `pml_ucx.c` and `mtl_ofi_component.c`, NVSHMEM `ibgda.cpp`, NIXL's connector of vLLM, Mooncake `rdma_transport.cpp`, Ceph
/// `RDMAStack.cc` and `Infiniband.cc`, Linux `ib_iser.c`, `ib_isert.c`, `smbdirect.c` and `transport_rdma.c`.
#[test]
fn failures_of_programs_over_rdma_are_theirs() {
    for (line, program) in [
        (
            "n1:1:2 [0] transport/net_ib.cc:1280 NCCL WARN NET/IB : ibv_poll_cq failed with -1",
            Program::Nccl,
        ),
        (
            "RuntimeError: [/opt/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete",
            Program::Gloo,
        ),
        (
            "[n1:100] Error: pml_ucx.c:176 Failed to receive UCX worker address: Not found (-13)",
            Program::OpenMpi,
        ),
        (
            "[node7:2210] mtl_ofi_component.c:600: fi_endpoint failed: Cannot allocate memory",
            Program::OpenMpi,
        ),
        (
            "WARN: IBGDA: init failed for device mlx5_0, no GPUDirect support",
            Program::Nvshmem,
        ),
        (
            "ERROR 11-20 10:11:12 [nixl_connector.py:800] NIXL compatibility hash mismatch, handshake failed with remote engine",
            Program::Nixl,
        ),
        (
            "E1120 10:11:12.3  1234 rdma_transport.cpp:500] Failed to allocate handshake: no rdma device found",
            Program::Mooncake,
        ),
        (
            "2025-11-20T10:11:12.345 7f1 -1 Infiniband Device open rdma device failed. (2) No such file or directory",
            Program::Ceph,
        ),
        (
            "RDMAConnectedSocketImpl operator() got error on qp 123, recv failed",
            Program::Ceph,
        ),
        (
            "iser: iser_cma_handler: rejected (8): status 8 conn 00000000",
            Program::Iser,
        ),
        (
            "isert: isert_cma_handler: unexpected cm event: disconnected (10)",
            Program::Iser,
        ),
        ("CIFS: VFS: smbd_negotiate failed rc=-110", Program::SmbDirect),
        ("ksmbd: smb_direct: rdma_accept failed: -22", Program::SmbDirect),
        (
            "2025 7f -1 Infiniband recv_msg got error -104: (104) Connection reset by peer",
            Program::Ceph,
        ),
        (
            "nvme_rdma.c: 500:nvme_rdma_qpair_process_cm_event: *ERROR*: Unexpected Acceptor Event 5",
            Program::Spdk,
        ),
        ("svcrdma: failed to post recv: -12", Program::RpcRdma),
        (
            "LNetError: 2123:0:(lib-move.c:2000:lnet_handle_find_routed_path()) no route to 10.1.0.1@o2ib from 10.0.0.2@o2ib",
            Program::Lustre,
        ),
        (
            "LNetError: 11-b: Connection to 10.0.0.2@o2ib at host 10.0.0.2 on port 988 was reset: is it running a compatible version",
            Program::Lustre,
        ),
    ] {
        let found = report(line).unwrap_or_else(|| panic!("{line}"));
        assert_eq!((found.program, found.status), (program, None), "{line}");
        assert!(found.symptom.is_some(), "{line}");
    }
}

/// NVSHMEM's own code 7 is no status of a completion; that of its poll is one.
#[test]
fn codes_and_events_in_other_words() {
    let own = report("src/host/init/init.cu:1000: non-zero status: 7 nvshmem_common_init failed").unwrap();
    assert_eq!((own.program, own.status), (Program::Nvshmem, None));
    let polled = report("ibrc.cpp:1342: non-zero status: 12 ibv_poll_cq failed, status: 12").unwrap();
    assert_eq!(polled.status, Some(12));
    for (line, symptom) in [
        (
            "[1.1] [n1:1:0]  ib_async.c:90 UCX  WARN  IB Async event on mlx5_0: port 1 error",
            "port error",
        ),
        (
            "[1.1] [n1:1:0]  rdmacm_cm.c:700  UCX  ERROR rdma_resolve_route(to addr=10.0.0.2:4000) failed: No such device",
            "route not resolved here",
        ),
        (
            "[1.1] [n1:1:0]  ucp_context.c:1050 UCX  WARN  network device 'mlx5_9:1' is not available, please use one or more of: 'mlx5_0:1'(IB)",
            "no such adapter",
        ),
        (
            "nvme nvme0: address resolution error (-110)",
            "address not resolved here",
        ),
        (" Port number 1 state is Down", "link down"),
        (
            "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)",
            "system error",
        ),
    ] {
        let found = report(line).unwrap_or_else(|| panic!("{line}"));
        assert_eq!(found.symptom.map(|symptom| symptom.name), Some(symptom), "{line}");
    }
    let called = report("n1:1:2 [0] misc/ibvwrap.cc:252 NCCL WARN Call to ibv_create_qp failed with error Cannot allocate memory errno 12").unwrap();
    assert_eq!(called.errno, Some((12, "ENOMEM")));
}

/// Words of programs and drivers inside other words, and Samba's program.
#[test]
fn words_inside_other_words_are_no_program() {
    for line in [
        "smbd[2211]: read_data: read failure for 4 bytes to client 10.0.0.9. Error = Connection reset by peer",
        "../source3/smbd/server.c: smbd_accept_connection failed",
        "ERROR optimiser: step failed, loss is nan",
        "E: bionic-updates Release: error 404",
        "la semana failed",
        "INFO 11-20 10:11:12 [nixl_connector.py:300] handshake retries after a timeout are set",
        "ModuleNotFoundError: No module named 'nixl'",
    ] {
        assert_eq!(report(line), None, "{line}");
    }
}

/// After Linux drivers/infiniband/hw/irdma/user.h (`irdma_ae_to_qp_err_code`) and defs.h.
#[test]
fn events_of_irdma_are_statuses() {
    for (event, status) in [
        ("0x103", Some(4)),
        ("0x20d", Some(10)),
        ("0x20e", Some(11)),
        ("0x208", Some(9)),
        ("0x50f", Some(13)),
        ("0x701", Some(19)),
        // IRDMA_AE_LLP_CONNECTION_RESET is no status of a request.
        ("0x502", None),
    ] {
        let line = format!("infiniband rocep23s0: abnormal ae_id = {event} bool qp=1 qp_id = 7, ae_src=1");
        let found = report(&line).unwrap();
        assert_eq!((found.program, found.status), (Program::Irdma, status), "{line}");
        assert_eq!(found.queue_pair, Some(7), "{line}");
    }
}

/// After Linux bnxt_hwrm.c, bnxt.c and qplib_rcfw.c.
#[test]
fn firmware_of_bnxt_that_does_not_answer() {
    for (line, name) in [
        (
            "bnxt_en 0000:3b:00.0 ens1f0np0: Error (timeout: 500015) msg {0x90 0x11} len:0",
            "firmware command timed out",
        ),
        (
            "bnxt_en 0000:3b:00.0 ens1f0np0: Resp cmpl intr err msg: 0x51",
            "firmware command timed out",
        ),
        (
            "bnxt_en 0000:41:00.0: QPLIB: cmdq[0x5a]=0x3 timedout (20000)msec",
            "firmware command timed out",
        ),
        (
            "bnxt_en 0000:af:00.1 ens7f1np1: Firmware heartbeat stall, 0x2 Reset count 0x0",
            "firmware failed",
        ),
        (
            "bnxt_en 0000:41:00.0 enp65s0np0: Abandoning msg {0x20 0x11} len: 0 due to firmware status: 0x8000",
            "firmware failed",
        ),
    ] {
        let found = report(line).unwrap_or_else(|| panic!("{line}"));
        let symptom = found.symptom.map(|symptom| symptom.name);
        assert_eq!((found.program, symptom), (Program::Bnxt, Some(name)), "{line}");
    }
}

/// After Linux net/sunrpc/clnt.c: `nfs: server NAME OK` ends what `not responding` began.
#[test]
fn a_server_that_answers_again_is_no_open_failure() {
    let silent = "[ 9.1] nfs: server nfs01.example not responding, still trying\n";
    let names = |log: &str| -> Vec<(bool, &str, Option<String>)> {
        let all = reports(log).into_iter();
        all.map(|found| {
            let symptom = found.symptom.unwrap();
            (symptom.is_harmless(), symptom.name, found.peer)
        })
        .collect()
    };
    let server = Some("nfs01.example".to_owned());
    assert_eq!(names(silent), [(false, "server silent", server.clone())]);
    let back = format!("{silent}[ 77.2] nfs: server nfs01.example OK\n");
    assert_eq!(names(&back), [(true, "server was silent", server.clone())]);
    // Another server's.
    let other = format!("{silent}[ 77.2] nfs: server nfs02.example OK\n");
    assert_eq!(names(&other)[0].1, "server silent");
    let again = format!("{back}{silent}");
    assert_eq!(names(&again).len(), 2);
    assert_eq!(names(&again)[1].1, "server silent");
    assert!(names("nfs: server nfs01.example OK\n").is_empty());
}

/// After PyTorch's ProcessGroupNCCL.cpp, Lustre's o2iblnd_cb.c, Linux mlx5 pagealloc.c, NCCL's ibvwrap.cc and socket.cc (2.18 and later).
#[test]
fn more_lines_of_known_programs() {
    for (line, program, name, errno) in [
        (
            "[rank0]:[F1017 03:11:22.3 ProcessGroupNCCL.cpp:1252] [PG 0 Rank 0] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued collectives.",
            Program::PyTorch,
            "collective timeout",
            None,
        ),
        (
            "LNet: 5120:0:(o2iblnd_cb.c:2955:kiblnd_rejected()) 10.1.1.9@o2ib rejected: consumer defined fatal error",
            Program::Lustre,
            "connection rejected",
            None,
        ),
        (
            "[ 55.1] mlx5_core 0000:3b:00.0: give_pages:345:(pid 88): func_id 0x0, npages 1, err -12",
            Program::Mlx5,
            "no pages for firmware",
            Some("ENOMEM"),
        ),
        (
            "node2:77:301 [0] misc/ibvwrap.cc:252 NCCL WARN Call to ibv_modify_qp failed with error Connection timed out",
            Program::Nccl,
            "queue pair not set up",
            Some("ETIMEDOUT"),
        ),
        (
            "node3:10:44 [1] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.1.2.3<41234> failed : Connection refused",
            Program::Nccl,
            "socket refused",
            Some("ECONNREFUSED"),
        ),
        (
            "node3:10:44 [1] NCCL INFO misc/socket.cc:47 -> 3 socketProgress: Connection closed by remote peer node4.cluster.local<52222>",
            Program::Nccl,
            "connection reset",
            None,
        ),
    ] {
        let found = report(line).unwrap_or_else(|| panic!("{line}"));
        let symptom = found.symptom.map(|symptom| symptom.name);
        assert_eq!((found.program, symptom), (program, Some(name)), "{line}");
        assert_eq!(found.errno.map(|(_, name)| name), errno, "{line}");
    }
    for (line, program, name) in [
        (
            "n1:5:9 [0] misc/socket.cc:333 NCCL WARN Bootstrap : no socket interface found",
            Program::Nccl,
            "no socket interface",
        ),
        (
            "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 7/8 clients joined.",
            Program::PyTorch,
            "rendezvous timeout",
        ),
        (
            "A process failed to create a queue pair. This usually means either",
            Program::OpenMpi,
            "queue pair not made",
        ),
    ] {
        let found = report(line).unwrap_or_else(|| panic!("{line}"));
        let symptom = found.symptom.map(|symptom| symptom.name);
        assert_eq!((found.program, symptom), (program, Some(name)), "{line}");
    }
    let line = "[[28471,1],3][btl_openib_component.c:3493:handle_wc] from node03 to: node05 error polling LP CQ with status RETRY EXCEEDED ERROR status number 12 for wr_id 27a3c80 opcode 1  vendor error 129 qp_idx 0";
    assert_eq!(report(line).unwrap().peer.as_deref(), Some("node05"));
}
