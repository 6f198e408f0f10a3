//! The host's side of roce-analyze: loads the kernel programs of `ebpf/`, attaches them, and turns what they say into host
//! events, packet records and counts; polls the host's counters.
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
//! This is the only crate that knows aya. It prints nothing and needs no threads of its own.

mod btf;
mod capability;
mod clock;
mod clsact;
mod counters;
mod error;
mod ethtool;
mod interface;
mod kernel;
mod owners;
mod packet;
mod points;
mod probe;
mod record;

pub use capability::Missing;
pub use clock::ClockOffset;
pub use counters::Counters;
pub use error::ProbeError;
pub use interface::{Cleaned, cleanup};
pub use packet::{Direction, FlowCount, PacketRecord};
pub use points::{Skipped, UNSEEN};
pub use probe::{Options, Packets, Probe};
pub use roce_abi::{FlowCounts, Losses};
