//! Writes pcap and pcapng files, whatever their kind: for tests, benchmarks, and the simulator's captures.
//!
//! Nothing is checked: a caller can make files that make no sense, which tests need. Leaves reading to
//! `Reader`.

mod byte_order;
mod pcap;
mod pcapng;

pub use byte_order::ByteOrder;
pub use pcap::{PcapOptions, PcapWriter};
pub use pcapng::{InterfaceOptions, Packet, PcapngWriter, SectionOptions};
