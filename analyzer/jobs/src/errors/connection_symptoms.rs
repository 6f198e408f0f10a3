//! Symptoms between hosts: connections, peers, servers, collectives, and what follows from their errors.

use super::symptom::Symptom;

/// The more exact ones come first.
pub(super) const SYMPTOMS: &[Symptom] = &[
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
            &["rpcrdma: connection to ", " rejected"],
            &["kiblnd_rejected"],
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
        name: "rendezvous timeout",
        meaning: "not all ranks came to PyTorch's store in time: look whether all processes were started, and for MASTER_ADDR and MASTER_PORT",
        is_consequence: false,
        words: &[&["diststoreerror", "timed out"]],
    },
    Symptom {
        name: "collective timeout",
        meaning: "a collective operation did not end in time: a rank has not joined it, or one of its connections stands still",
        is_consequence: false,
        words: &[
            &["caught collective operation timeout"],
            &["watchdog caught collective operation timeout"],
            &["detected by watchdog at work"],
            &["watchdog got stuck"],
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
