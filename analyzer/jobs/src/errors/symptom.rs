//! Errors of programs that are no statuses of completions, by their words.
//!
//! Sources: those named with each program in [`super`]; NCCL `src/misc/ibvwrap.cc`, `src/transport/net_ib.cc` (`ncclIbAsyncThreadMain`) and
//! `src/misc/socket.cc`; Linux `drivers/net/ethernet/mellanox/mlx5/core/cmd.c`, `.../en_main.c`, `drivers/infiniband/hw/irdma/hw.c`,
//! `fs/nfs`.

/// An error that is no status of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symptom {
    /// Its name.
    pub name: &'static str,
    /// Its meaning, one sentence.
    pub meaning: &'static str,
    /// It follows another error.
    pub(super) is_consequence: bool,
    /// Words of programs for it, in small letters: those of one entry stand together in a line.
    words: &'static [&'static [&'static str]],
}

/// Symptoms; the first whose words fit counts.
const SYMPTOMS: [Symptom; 56] = [
    Symptom {
        name: "firmware command timed out",
        meaning: "the adapter's firmware did not answer a command of its driver: look at its health (`devlink health`), and its version",
        is_consequence: false,
        words: &[&["mlx5_core", "timeout. will cause a leak"]],
    },
    Symptom {
        name: "module unplugged",
        meaning: "the transceiver or cable of a port was pulled: its link is down until another one is put in",
        is_consequence: false,
        words: &[&["port module event", "unplugged"]],
    },
    Symptom {
        name: "module failed",
        meaning: "the transceiver or cable of a port does not work: put it in again, or replace it",
        is_consequence: false,
        words: &[&["port module event", "error"]],
    },
    Symptom {
        name: "sizes differ between ranks",
        meaning: "a rank sent more than its peer waits for: ranks call a collective with other sizes, or have other settings of NCCL",
        is_consequence: false,
        words: &[&["net/socket", "message truncated"]],
    },
    Symptom {
        name: "no transport",
        meaning: "UCX found no transport to the peer: look at UCX_TLS and UCX_NET_DEVICES, and at the RDMA devices of both hosts",
        is_consequence: false,
        words: &[&["messages transport to"]],
    },
    Symptom {
        name: "no RDMA device for the address",
        meaning: "a local error of this host (ENODEV): the route to the address leads over an interface without an RDMA device: look at `ip route get`, VLANs and bonds, and `rdma link`",
        is_consequence: false,
        words: &[
            &["rdma_cm_event_addr_error", "-19"],
            &["addr error -19"],
            &["addr error, error -19"],
        ],
    },
    Symptom {
        name: "address not resolved here",
        meaning: "a local error: this host found no route, or no MAC address, for the peer: look at `ip route get`, `ip neigh`, and the source address of the program",
        is_consequence: false,
        words: &[
            &["rdma_cm_event_addr_error"],
            &["addr error"],
            &["rdma_resolve_addr failed"],
            &["rdma_resolve_addr(", "failed"],
            &["address resolution error"],
            &["address error (1): status"],
        ],
    },
    Symptom {
        name: "route not resolved here",
        meaning: "a local error: the address is known, and the path to it is not: over RoCE the GID of the interface is missing, over InfiniBand the subnet manager has no path",
        is_consequence: false,
        words: &[
            &["rdma_cm_event_route_error"],
            &["route error"],
            &["rdma_resolve_route failed"],
            &["rdma_resolve_route(", "failed"],
        ],
    },
    Symptom {
        name: "adapter removed",
        meaning: "the RDMA device of this connection went away: its driver was unloaded, it was reset, or its virtual function was taken",
        is_consequence: false,
        words: &[
            &["rdma_cm_event_device_removal"],
            &["device removal (11): status"],
        ],
    },
    Symptom {
        name: "address changed",
        meaning: "the network device below this connection changed its address, such as a bond that failed over: the connection has to be made again",
        is_consequence: false,
        words: &[&["rdma_cm_event_addr_change"]],
    },
    Symptom {
        name: "multicast failed",
        meaning: "the multicast group could not be joined, or was left by an error",
        is_consequence: false,
        words: &[&["rdma_cm_event_multicast_error"]],
    },
    Symptom {
        name: "fatal firmware error",
        meaning: "the health check of the adapter's firmware found a fatal error: connections of this adapter fail until it is reset; look at `devlink health` and its version",
        is_consequence: false,
        words: &[&["poll_health", "fatal"]],
    },
    Symptom {
        name: "slot power too low",
        meaning: "the PCIe slot gives the adapter less power than it needs: links may stay down or run slower: look at the slot, its power cable, and the BIOS",
        is_consequence: false,
        words: &[&["insufficient power"], &["slot power"]],
    },
    Symptom {
        name: "temperature too high",
        meaning: "the adapter is too hot: look at fans and air flow; it slows down or shuts its links",
        is_consequence: false,
        words: &[&["high temperature"], &["overheat"], &["temperature", "critical"]],
    },
    Symptom {
        name: "wrong ICRC",
        meaning: "a RoCE packet came with a wrong invariant CRC and was dropped: a device on the way changed it, or its sender computes the CRC wrong; the address is that of the sender",
        is_consequence: false,
        words: &[&["bad icrc"], &["icrc error"]],
    },
    Symptom {
        name: "queue pair error event",
        meaning: "the adapter put a queue pair into the error state: the line says which, and why",
        is_consequence: false,
        words: &[
            &["violation work queue"],
            &["local work queue 0x", "error"],
            &["ae qpid"],
            &["event_type_wq_"],
            &["wq_access_error"],
            &["wq_catas_error"],
            &["_on qpn"],
            &["qp_access_err"],
            &["qp_fatal"],
        ],
    },
    Symptom {
        name: "address handle not made",
        meaning: "no address handle (AH) could be made for the peer: look at the GID index, at the route, and whether the MAC address of the peer or gateway resolves",
        is_consequence: false,
        words: &[&["create ah"], &["create_ah"], &["address handle"]],
    },
    Symptom {
        name: "too many errors on one adapter",
        meaning: "the program leaves this adapter out after errors: look for the first of them, the link of this adapter, and whether its network is connected with the peers",
        is_consequence: false,
        words: &[&["too many errors found in local rnic"], &["mark it inactive"]],
    },
    Symptom {
        name: "GPU-side timeout",
        meaning: "a kernel on the GPU waited in vain for data or a signal of another rank: look for a rank that died or is late, and for errors of its transport",
        is_consequence: false,
        words: &[
            &["deepep", "timeout"],
            &["timeout check failed"],
            &["deepep", "timed out"],
        ],
    },
    Symptom {
        name: "GID not read",
        meaning: "the type of a GID could not be read from sysfs: the GID index does not exist, or the container lacks /sys/class/infiniband",
        is_consequence: false,
        words: &[&["ib_roce_get_version_num"]],
    },
    Symptom {
        name: "command refused",
        meaning: "the adapter refused a command of its driver: the line says which; look for the firmware version and for limits of queue pairs and memory",
        is_consequence: false,
        words: &[&["failed to process command"], &["cmdq[", "status 0x"]],
    },
    Symptom {
        name: "invalid address",
        meaning: "the provider did not know the address of the peer: it is of another run or another security group, or the peer has gone",
        is_consequence: false,
        words: &[&["message: invalid address"]],
    },
    Symptom {
        name: "peer not connected",
        meaning: "the endpoint of the peer is not connected: its process ended, or the network dropped the connection; look for its own first error",
        is_consequence: false,
        words: &[&["transport endpoint is not connected"]],
    },
    Symptom {
        name: "network I/O error",
        meaning: "a request failed in the network below the library: the link, a drop, or the peer; look for the first error of the peer and of the adapter",
        is_consequence: false,
        words: &[&["ofi poll failed"], &["input/output error"]],
    },
    Symptom {
        name: "requests not posted",
        meaning: "the queue pair took no request: it is in the error state, its queue is full, or the request does not fit the adapter",
        is_consequence: false,
        words: &[&["couldn't post "]],
    },
    Symptom {
        name: "no such adapter",
        meaning: "the RDMA device that is wanted is not there, or cannot be opened: look at `ibv_devices`, /dev/infiniband and its rights",
        is_consequence: false,
        words: &[
            &["unable to find the infiniband/roce device"],
            &["couldn't get context for the device"],
            &["network device '", "' is not available"],
        ],
    },
    Symptom {
        name: "test not started",
        meaning: "the two sides of the test did not get as far as their first request: look for the lines before this one on both sides",
        is_consequence: false,
        words: &[
            &["problems with warm up"],
            &["unable to perform rdma_"],
            &["poll cq failed"],
        ],
    },
    Symptom {
        name: "memory not registered",
        meaning: "the adapter did not take memory: check memlock, IOMMU, and the module for GPUDirect",
        is_consequence: false,
        words: &[
            &["call to ibv_reg_", " failed"],
            &["couldn't allocate mr"],
            &["ibv_reg_mr", "failed"],
            &["max locked memory"],
            &["failed to register memory"],
        ],
    },
    Symptom {
        name: "queue pair not set up",
        meaning: "a queue pair could not be connected: look for the GID index, the path MTU of both sides, and whether the peer's address resolves",
        is_consequence: false,
        words: &[
            &["call to ibv_modify_qp failed"],
            &["ibv_modify_qp failed"],
            &["failed to modify qp", "to rt"],
            &["failed to modify qp", "to init"],
            &["failed to transition to rt"],
            &["2rtr_qp(", "failed"],
            &["2rts_qp(", "failed"],
            &["failed to modify ", "qp"],
            &["couldn't change qp"],
            &["obj_create(qp) failed"],
            &["failed to create ", "qp"],
            &["couldn't create ", "qp"],
        ],
    },
    Symptom {
        name: "call refused",
        meaning: "the adapter or its driver refused a call: the line says which, and why",
        is_consequence: false,
        words: &[&["call to ibv_", " failed"], &["op_mod(0x", " failed, status "]],
    },
    Symptom {
        name: "port error",
        meaning: "a port of the adapter went down: look for its link, its cable, and the port of the switch",
        is_consequence: false,
        words: &[
            &["async event", "port error"],
            &["ib async event on ", ": port ", " error"],
        ],
    },
    Symptom {
        name: "GID changed",
        meaning: "an address of the adapter changed while the job ran: connections that use it may fail; look for what set up the interface again",
        is_consequence: false,
        words: &[
            &["async event", "gid table change"],
            &["async event", "gid change"],
        ],
    },
    Symptom {
        name: "adapter event",
        meaning: "the adapter reported an event: the line says which; after a fatal one, connections of this adapter fail",
        is_consequence: false,
        words: &[
            &["got async event"],
            &["async fatal event"],
            &["non-fatal async event"],
            &["abnormal ae_id"],
            &["async event ibv_event_"],
            &["async event ib_event_"],
            &["asynchronous event"],
            &["aeq: ae_id"],
        ],
    },
    Symptom {
        name: "no adapter",
        meaning: "no RDMA adapter could be opened: look for its driver, /dev/infiniband in the container, and NCCL_IB_HCA",
        is_consequence: false,
        words: &[
            &["net/ib", "no device found"],
            &["net/ib", "unable to open device"],
        ],
    },
    Symptom {
        name: "socket failed",
        meaning: "the connection beside RDMA (TCP) failed: look for NCCL_SOCKET_IFNAME, firewalls, and whether the process of the peer lives",
        is_consequence: false,
        words: &[
            &["socketstartconnect", "failed"],
            &["socketpollconnect"],
            &["connect(fd=", "failed"],
            &["timed out while connecting to"],
        ],
    },
    Symptom {
        name: "link down",
        meaning: "the link of a network interface went down: look for its cable, and the port of the switch",
        is_consequence: false,
        words: &[
            &["mlx5_core", ": link down"],
            &["link is down"],
            &["link status down"],
            &["port number ", " state is down"],
            &["bnxt_en", "link is down"],
            &[" ice ", "link is down"],
        ],
    },
    Symptom {
        name: "interface stalled",
        meaning: "the network interface sent nothing for seconds: look for pauses (PFC) that the switch sends, and the driver's log",
        is_consequence: false,
        words: &[&["tx timeout detected"], &["netdev watchdog", "transmit queue"]],
    },
    Symptom {
        name: "firmware failed",
        meaning: "the firmware of the adapter failed: look at `devlink health`, its temperature, and its version",
        is_consequence: false,
        words: &[
            &["firmware internal error"],
            &["health compromised"],
            &["fw stall"],
            &["fw_stalled"],
            &["device's health"],
            &["firmware", "not responding"],
            &["mlx5_core", ": synd 0x"],
        ],
    },
    Symptom {
        name: "server silent",
        meaning: "a server of NFS did not answer in time: look for drops, the link, and whether the server lives",
        is_consequence: false,
        words: &[&["nfs: server", "not responding"]],
    },
    Symptom {
        name: "connection rejected",
        meaning: "the peer's connection manager rejected the request: look whether its program listens at this address and port",
        is_consequence: false,
        words: &[
            &["rdma_cm_event_rejected"],
            &["connect rejected: status"],
            // Events of rdma_cm as the kernel prints them (drivers/infiniband/core/cma.c, rdma_event_msg): words, number, status.
            &["rejected (8): status"],
        ],
    },
    Symptom {
        name: "peer unreachable",
        meaning: "the connection manager of the peer did not answer: look for the route, drops, and whether the host lives",
        is_consequence: false,
        words: &[
            &["destination is unreachable"],
            &["rdma_cm_event_unreachable"],
            &["unreachable (7): status"],
            &["unreachable remote"],
        ],
    },
    Symptom {
        name: "collective timeout",
        meaning: "a collective operation did not end in time: a rank has not joined it, or one of its connections stands still",
        is_consequence: false,
        words: &[
            &["caught collective operation timeout"],
            &["watchdog caught collective operation timeout"],
            &["detected by watchdog at work"],
            &["timeout at nccl work"],
            &["some nccl operations have failed or timed out"],
        ],
    },
    Symptom {
        name: "endpoint timeout",
        meaning: "the peer did not answer in time: look for drops, the link, and whether its process lives",
        is_consequence: false,
        words: &[
            &["unresponsive receiver"],
            &["endpoint timeout"],
            &["endpoint is timed out"],
            &["unhandled timeout error"],
            &["ucs_err_endpoint_timeout"],
        ],
    },
    Symptom {
        name: "connection reset",
        meaning: "the peer refused a request, or closed the connection: look for its own first error",
        is_consequence: true,
        words: &[
            &["connection closed by remote peer"],
            &["connection reset by remote peer"],
            &["ucs_err_connection_reset"],
            &["nixl_err_remote_disconnect"],
            &["connection reset by peer"],
            &["connection closed by peer"],
        ],
    },
    Symptom {
        name: "remote error",
        meaning: "a call failed because the network or a peer did: look for the peer's own first error",
        is_consequence: true,
        words: &[
            &["remote process exited or there was a network error"],
            &["ncclremoteerror"],
        ],
    },
    Symptom {
        name: "RDMA timeout",
        meaning: "a transfer to this peer was not completed in time: look for drops, the link, and the peer",
        is_consequence: false,
        words: &[
            &["timed out rdma with"],
            &["rdma has timed out for"],
            &["timed out tx"],
        ],
    },
    Symptom {
        name: "completion timeout",
        meaning: "the adapter has not completed a request in time: it is not answered, or it repeats it",
        is_consequence: false,
        words: &[&["poll_cq timeout"]],
    },
    Symptom {
        name: "keep-alive expired",
        meaning: "the target has heard nothing of this host for the keep-alive time: look for drops, the link, and whether the host lives",
        is_consequence: false,
        words: &[&["keep-alive timer ("]],
    },
    Symptom {
        name: "connection failed",
        meaning: "the connection was not established: look whether the peer's program listens, for the route, and for drops",
        is_consequence: false,
        words: &[
            &["rdma_resolve_addr wait failed"],
            &["rdma_connect failed"],
            &["rdma_cm_event_connect_error"],
            &["connect error (6): status"],
            &["failed to connect queue"],
            &["unable to init the socket connection"],
            &["unable to open file descriptor for socket connection"],
            &["failed to exchange data between server and clients"],
            &["couldn't listen to port"],
            &["failed reconnect attempt"],
            &["unexpected cm event"],
            &["couldn't connect to ", ":18515"],
            &["_connect to node", " failed: rc"],
            &["rdma connection establishment failed"],
        ],
    },
    Symptom {
        name: "error recovery",
        meaning: "the host closes its connections and connects again: look for the first error before it",
        is_consequence: true,
        words: &[&["starting error recovery"]],
    },
    Symptom {
        name: "connection closed",
        meaning: "the connection to this peer ended",
        is_consequence: false,
        words: &[&[" closed (-"]],
    },
    Symptom {
        name: "connection lost",
        meaning: "the connection to the target ended: look for the first error before it",
        is_consequence: true,
        words: &[
            &["cq transport error"],
            &["connection to ", "was lost"],
            &["verbs rdma closed connection"],
            &["rdma_cm_event_disconnected"],
            &["disconnected (10): status"],
        ],
    },
    Symptom {
        name: "keep-alive failed",
        meaning: "the target did not answer the host's keep-alive: look for drops, the link, and whether the target lives",
        is_consequence: false,
        words: &[&["nvme_keep_alive_end_io", "error"]],
    },
    Symptom {
        name: "shuffle block not fetched",
        meaning: "a task of Spark could not fetch a block from another executor, and its stage is run again: look whether that executor lives, and for the first error of its connection",
        is_consequence: true,
        words: &[&["fetchfailed"]],
    },
    Symptom {
        name: "system error",
        meaning: "a call of the system or of a library failed: look for the warning before it",
        is_consequence: true,
        words: &[&["ncclsystemerror"], &["nccl error", "unhandled system error"]],
    },
    Symptom {
        name: "backend error",
        meaning: "a transfer failed in the library below: look for its own error before this one",
        is_consequence: true,
        words: &[&["nixl_err_backend"]],
    },
];

/// Symptoms of lines of known drivers and programs that say no more than that something failed, or did not end.
static TIMED_OUT: Symptom = Symptom {
    name: "operation timed out",
    meaning: "something did not end in time: the line says what; look for drops, the link, and whether the other side lives",
    is_consequence: false,
    words: &[],
};
static FAILED: Symptom = Symptom {
    name: "operation failed",
    meaning: "an operation failed: the line says which; look for the lines before it, and the log of the other side",
    is_consequence: false,
    words: &[],
};

/// A request of NVMe over RDMA that was not answered.
static REQUEST_TIMEOUT: Symptom = Symptom {
    name: "request timeout",
    meaning: "the target did not answer a request in time: look for drops, the link, and whether the target's program lives",
    is_consequence: false,
    words: &[],
};

impl Symptom {
    /// True if it is an event, after which requests may fail or not.
    pub fn is_event(&self) -> bool {
        matches!(self.name, "GID changed" | "adapter event" | "link down")
    }

    /// True if a number beside its words is the connection manager's reason (IBTA 12.6.7.2), and no status of a completion.
    pub(super) fn has_reason(&self) -> bool {
        matches!(
            self.name,
            "connection rejected"
                | "peer unreachable"
                | "address not resolved here"
                | "no RDMA device for the address"
                | "route not resolved here"
                | "connection failed"
                | "connection lost"
                | "command refused"
                | "queue pair error event"
                | "firmware command timed out"
                | "module unplugged"
                | "module failed"
                | "firmware failed"
                | "fatal firmware error"
                | "queue pair not set up"
                | "operation failed"
                | "operation timed out"
        )
    }

    /// True if it says no more than that something failed.
    pub(super) fn is_unnamed(&self) -> bool {
        *self == TIMED_OUT || *self == FAILED
    }

    /// The symptom of a line of a known program that says no more than that something failed.
    pub(super) fn unnamed(lower: &str) -> &'static Self {
        if lower.contains("timed out") || lower.contains("timeout") {
            &TIMED_OUT
        } else {
            &FAILED
        }
    }

    /// The symptom whose words are in a text in small letters.
    pub(super) fn in_text(lower: &str) -> Option<&'static Self> {
        let by_words = SYMPTOMS.iter().find(|symptom| {
            let has_all = |words: &&[&str]| words.iter().all(|word| lower.contains(word));
            symptom.words.iter().any(has_all)
        });
        by_words.or_else(|| is_nvme_timeout(lower).then_some(&REQUEST_TIMEOUT))
    }
}

/// `nvme nvme0: I/O tag 12 (300c) opcode 0x2 (Read) QID 4 timeout`, or `I/O 12 QID 4 timeout` of older kernels (Linux
/// drivers/nvme/host/rdma.c). Those of NVMe over PCI go on behind `timeout`, and those over TCP have a type.
fn is_nvme_timeout(lower: &str) -> bool {
    lower.contains("nvme")
        && lower.contains("i/o ")
        && lower.contains(" qid ")
        && !lower.contains(" type ")
        && lower.trim_end().ends_with(" timeout")
}
