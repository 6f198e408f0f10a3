//! Data that crates of roce-analyze exchange: packets, rows, events, and the sinks that take them.
//!
//! Every column of every table is described once, by a macro: its name, unit, type and meaning.
//! Parquet, JSON, the terminal and the schema page read that description, so they cannot drift apart.

mod activity;
mod cables;
pub mod cast;
mod classes;
mod collective_calls;
mod collective_waits;
mod collectives;
mod connections;
mod credited;
mod credits;
mod devices;
mod ends;
mod episodes;
pub mod ethernet;
mod events;
mod evidence;
mod filter;
mod findings;
mod flows;
mod groups;
mod host;
mod identity;
mod inband;
pub mod interval;
mod measures;
mod mrc;
mod name_list;
mod packet;
mod places;
mod prefetch;
pub mod random;
mod rank_states;
mod ranks;
mod recording;
mod run;
mod sample;
pub mod seeds;
mod sink;
mod table;
mod taps;
pub mod text;
mod thin;
mod time;
mod time_states;
mod timeline;
mod totals;
mod uet;
mod vantage;
mod waits;

pub use activity::Active;
pub use cables::{Cable, Port, Wiring};
pub use classes::{Expectation, PATH_MTUS, PRIORITY_OF_DSCP};
pub use collective_calls::{
    CollectiveCallColumns, CollectiveCallRow, TraceClock, TraceColumns, TraceRow, TraceSource,
};
pub use collective_waits::{CollectiveWaitColumns, CollectiveWaitRow, WaitReason};
pub use collectives::{CollectiveColumns, CollectiveEvidence, CollectiveRow, CollectiveShape};
pub use connections::{AttemptResult, ConnectionAttempt, ProgramExchange};
pub use credited::{CreditedConnection, CreditedMessage, Passage};
pub use credits::{CreditColumns, CreditRow};
pub use devices::{Attachment, Devices, Gid, NetworkInterface, Pcie, RdmaDevice, RdmaPort};
pub use ends::{EndColumns, EndKind, EndRow};
pub use episodes::{
    Confidence, EpisodeColumns, EpisodeKind, EpisodeRow, StepColumns, StepRow, TrainingLogFit,
};
pub use events::{EventColumns, EventKind, EventRow, EventSource};
pub use evidence::{Evidence, Fact};
pub use filter::{Filter, FilterError};
pub use findings::{FindingColumns, FindingRow, Severity};
pub use flows::{FlowColumns, FlowRow};
pub use groups::Groups;
pub use host::{Element, HostChange, HostEvent, Process, QueuePairChange, QueuePairKind, QueuePairState};
pub use identity::{FlowId, FlowKey, TapId};
pub use inband::{InbandHopColumns, InbandHopRow};
pub use measures::{JobSteps, TapMeasures, TimeBuckets};
pub use mrc::{
    MrcConnectionColumns, MrcConnectionRow, MrcDelivery, MrcEntropyOrder, MrcHeaders, MrcIdsOrder, MrcPacket,
    MrcPathColumns, MrcPathRow, MrcPathState, MrcPortLoss, MrcReports, MrcSack, MrcState, MrcWrite,
    PathTransport,
};
pub use name_list::NameList;
pub use packet::{
    Between, HostReport, InbandHops, LinkAddresses, LostRecords, Management, Packet, PacketBatch,
    PacketFlags, PacketProcess, Packets, PauseFrame, RemoteWrite, WriteTarget,
};
pub use places::{HopColumns, HopRow, HopTimelineColumns, HopTimelineRow, VantageColumns, VantageRow};
pub use prefetch::prefetch;
pub use rank_states::{RankState, RankStateColumns, RankStateRow};
pub use ranks::{JobError, JobLog, JobWindow, RankEnd, Ranks};
pub use recording::RecordingStart;
pub use run::{InputSummary, RunColumns, RunKey, RunRow};
pub use sample::{
    Counter, CounterChange, Sample, SampleColumns, SampleKind, SampleRow, SampleSeries, SampleSource,
    SystemStart, repeated, value_of,
};
pub use sink::{ClockStep, Progress, QUIET, RunSummary, Sink, SinkError, Snapshot, TapNames};
pub use table::{Cell, Column, ColumnType, Columns, Data, Table, Value, Values, word};
pub use taps::{CnpReceiver, TapColumns, TapRow};
pub use thin::CapturePart;
pub use time::{Period, Span, Time};
pub use time_states::{TimeByState, TimeState};
pub use timeline::{TimelineColumns, TimelineRow};
pub use totals::{OpcodeCounts, Totals};
pub use uet::{UetHeaders, UetPacket, UetTrafficColumns, UetTrafficRow};
pub use vantage::{HostVantage, TapPlace, Vantage};
pub use waits::{RootKind, WaitColumns, WaitRow};

// Types of rows' fields, for users who see packets only through this crate.
pub use roce_wire::management::cm::RejectReason;
pub use roce_wire::management::cm_req::ServiceId;
pub use roce_wire::{
    AckTimeout, Address, Aeth, AethKind, CutLimit, Layer, MacAddress, Nak, Opcode, Pause, PauseKind, Psn,
    Qpn, RnrTimer, Service,
};
