//! The host's side of roce-analyze: loads the kernel programs of `ebpf/`, attaches them, and turns what they say into host
//! events, packet records and counts; reads the host's counters.
//!
//! ```no_run
//! use roce_probe::{Options, Packets, Probe};
//!
//! let options = Options {
//!     interfaces: vec!["eth0".to_owned()],
//!     packets: Packets::None,
//!     ..Options::default()
//! };
//! let (mut probe, skipped) = Probe::open(&options)?;
//! for point in &skipped {
//!     eprintln!("not attached: {point}");
//! }
//! let mut events = Vec::new();
//! probe.events(&mut events)?;
//! for flow in probe.counts()? {
//!     println!("{} packets for QP {}", flow.counts.packets, flow.qpn);
//! }
//! # Ok::<(), roce_probe::ProbeError>(())
//! ```
//!
//! Everything is taken off when the [`Probe`] is dropped, and by the kernel when the process dies; only on kernels before 6.6 a
//! killed process leaves filters, which [`cleanup`] removes.
//!
//! # What is seen, and what is not
//!
//! | what | where it is seen |
//! |---|---|
//! | queue pairs of processes and of the kernel | `ib_create_qp_user`, `ib_create_qp_kernel`, `ib_modify_qp_with_udata`, `ib_modify_qp`, `ib_destroy_qp_user`: all of the verbs pass these; without kprobes the functions of libibverbs |
//! | queue pairs that mlx5's DEVX makes (UCX, DOCA) | commands to the firmware (`mlx5_cmd_do`) while a thread is in DEVX's handlers; written from the programmer's reference, tried without such a device |
//! | the connection manager | the tracepoint `cm_event_handler` |
//! | asynchronous events | `ib_dispatch_event`, `ib_uverbs_qp_event_handler` |
//! | Soft-RoCE's timers and failures | `retransmit_timer`, `rnr_nak_timer`, `rxe_qp_error` |
//! | dropped packets | the tracepoint `kfree_skb`, but for drops that the kernel gives no reason for |
//! | packets | the classifier; those of hardware queue pairs do not pass it |
//!
//! [`UNSEEN`] says the rest for people. A point that the running kernel lacks is a [`SkippedPoint`].
//!
//! This is the only crate that knows aya. It prints nothing and needs no threads of its own.

mod btf;
mod capability;
mod clock;
mod clsact;
mod dcb;
mod discipline;
mod error;
mod ethtool;
mod host;
mod interface;
mod kernel;
mod library;
mod link_modes;
mod missing_capabilities;
mod netlink;
mod owners;
mod packet;
mod points;
mod probe;
mod rdma;
mod record;
mod snapshot;

pub use clock::ClockOffset;
pub use error::ProbeError;
pub use host::{HostReader, interface_of};
pub use interface::{CleanedInterfaces, cleanup, remove_filters};
pub use link_modes::most_speed;
pub use missing_capabilities::MissingCapabilities;
pub use packet::{Direction, FlowCount, PacketRecord};
pub use points::{SkippedPoint, UNSEEN};
pub use probe::{Options, Packets, Probe};
pub use roce_abi::{FlowCounts, Losses};
pub use snapshot::{
    SnapshotOptions, add_second_reading, environment_json, recorded_snapshot, running_snapshot, tree_snapshot,
};
