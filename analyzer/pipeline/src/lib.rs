//! Captures, devices or stored results through the analysis into sinks: what a program calls that embeds the analysis.
//!
//! A [`RunRequest`] says what is analysed. Frames are decoded, analysed on one thread or several, brought into the order of time, and
//! given to [sinks](roce_model::Sink) as rows. At the end a run gives its [`RunSummary`](roce_model::RunSummary).
//!
//! Here an own sink counts retransmitted packets:
//!
//! ```
//! use roce_model::{FlowRow, Sink, SinkError};
//! use roce_pipeline::RunRequest;
//!
//! #[derive(Default)]
//! struct Retransmissions(u64);
//!
//! impl Sink for Retransmissions {
//!     fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
//!         self.0 += rows.iter().map(|row| row.retransmitted_packets).sum::<u64>();
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<(), SinkError> {
//! # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
//! let mut sink = Retransmissions::default();
//! let request = RunRequest::new(vec!["captures/write_bw_loss.pcap".into()]);
//! let run = request.run(vec![&mut sink])?.summary;
//! println!("{} of {} packets were retransmitted", sink.0, run.totals.roce_packets);
//! # // captures/README.md: 2,689 packets; 34 filled a hole, 1,640 were retransmitted that had been captured before.
//! # assert_eq!((sink.0, run.totals.roce_packets), (34 + 1_640, 2_689));
//! # Ok(())
//! # }
//! ```
//!
//! There is no command line in it and no terminal: those are `roce-analyze`'s.

mod align;
mod annotate;
mod batches;
mod captures;
mod clock;
mod decode;
mod error;
mod feed;
#[cfg(feature = "parquet")]
pub mod fleet;
#[cfg(feature = "parquet")]
pub mod folder;
mod inputs;
mod link_addresses;
#[cfg(feature = "live")]
mod live;
#[cfg(feature = "live")]
mod live_request;
mod manifest;
mod names;
mod pace;
mod paced;
#[cfg(feature = "live")]
pub mod packet_files;
mod processes;
mod records;
mod request;
mod routes;
mod run;
mod samples;
pub mod span;
mod stamps;
#[cfg(feature = "parquet")]
pub mod stored;
mod summary;
mod taps;
mod traces;

pub use align::KnownClock;
pub use annotate::{KnownResults, ListedFrame, PacketRole, Selection, WrittenCounts};
pub use clock::{RunStart, time_of_day};
pub use error::Error;
pub use feed::{Feed, MergedInputs, Next, Work};
#[cfg(feature = "live")]
pub use live::LiveFeed;
#[cfg(feature = "live")]
pub use live_request::{FinishedLiveRun, LiveRequest};
pub use manifest::Manifest;
pub use names::{RunNames, capture_key, input_keys, path_key};
pub use pace::{Pace, Speed};
pub use processes::Processes;
pub use request::{FinishedRun, KnownCapture, Notice, OpenRun, Replay, RunRequest};
pub use run::{Plan, RunOutcome, Tick, run};
pub use samples::{StoredSamples, sample_row};
pub use traces::{
    Call, MAX_TRACES, NetworkEvents, StatedRanks, StatedTime, Trace, TraceError, TraceFile, Traces,
};

use roce_capture::Merge;
use roce_flow::Options;
use roce_model::{Sink, SinkError, Totals};

/// Takes the frames of open inputs to sinks, on `threads` threads, and returns their counts: for inputs that are no files, such as bytes in
/// memory. The sinks neither begin nor finish. Inputs that fail end early; their errors are not reported.
///
/// # Errors
/// When a sink fails.
pub fn analyse(
    merge: Merge,
    threads: u32,
    options: Options,
    sinks: Vec<&mut dyn Sink>,
) -> Result<Totals, SinkError> {
    let plan = Plan {
        threads: threads.max(1),
        match_taps: merge.readers().len() > 1,
        ..Plan::new(options)
    };
    let (done, _) = run(merge, &plan, sinks, |_| ())?;
    Ok(done.totals())
}
