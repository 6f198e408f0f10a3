//! Capture files and streams, read as frames in time order.
//!
//! A [`Reader`] yields the frames of one pcap or pcapng file, compressed or not, in batches over one
//! shared buffer. A [`Merge`] puts the frames of several files into one order of time. [`mod@write`]
//! makes such files. With the feature `live`, a `live::Stream` yields the frames of devices. `roce-wire`
//! decodes the bytes of a frame.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]

mod batch;
mod blocks;
mod correction;
mod devices;
mod error;
mod expanded;
mod frame;
mod frames;
mod gzip;
mod input;
#[cfg(feature = "live")]
pub mod live;
mod magic;
mod merge;
mod objects;
mod open_capture;
mod options;
mod pcap;
mod pcapng;
mod reader;
mod sorter;
mod steps;
mod summary;
mod walk;
mod walker;
pub mod write;
mod zstandard;

pub use batch::Batch;
pub use correction::Correction;
pub use devices::{Sysfs, SystemFiles, addresses, devices, rdma_devices};
pub use error::{Begins, Error, Fault};
pub use expanded::ExpandedBytes;
pub use frame::{Direction, Frame, FrameProcess, Interface, LostFrames, Note};
pub use input::{is_bomb, on_bomb};
pub use merge::{FrameRun, Merge};
pub use objects::{Objects, bytes, is_whole, set_objects, size};
pub use options::Options;
pub use reader::Reader;
pub use sorter::SortCounts;
pub use steps::ClockStep;
pub use summary::{Compression, Container, Disorder, Format, Progress, Summary, Truncation};
