//! The truth of a run: everything that happened, and what each tap could see of it. Written as JSON.
//!
//! Times are nanoseconds since the begin of the simulation by a right clock (`start_ns` is that begin since the Unix
//! epoch); a tap's stamps differ by its clock. Flows are named as [`FlowId`](roce_model::FlowId) names them, in 16 hex
//! digits; taps and hosts by their names; PSNs are those on the wire. What could not be observed is listed too, and said so.

use roce_model::text::escape_json;
use serde::{Deserialize, Serialize};

mod collectives;
mod ends;
pub(crate) mod judge;
mod mrc;
mod parts;
mod times;
mod transmissions;
mod uplinks;
mod waits;

pub use collectives::{Collective, CollectiveStep, InjectedRoot, Lane, Message};
pub use ends::{ConnectionEnd, Outcome};
pub use mrc::{
    MrcCause, MrcConnection, MrcEnd, MrcLeftPath, MrcLoss, MrcPathName, MrcRetransmission, MrcTrim,
};
pub use parts::{
    ByCause, CaptureLoss, CeMark, Cnp, EpisodeKind, ExpectedFinding, HoleClass, LossReason, Nak, NakKind,
    PacketKind, Pause, RankStep, RetransmissionRun, RunAtTap, Step, TapFlow, TriggerKind,
};
pub use times::{FlowTimes, OpenTime, TimeState};
pub use transmissions::{
    Duplicate, DuplicateAtTap, Evidence, Late, Limits, LossAtTap, LossSide, Retransmission,
};
pub use uplinks::{Collision, FairRate, Uplink, UplinkFlow, UplinkGroup};
pub use waits::{FlowShare, OtherRoot, PauseRoot, PauseRootKind, PausedPort};

/// Settings of a run, and the events in it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Truth {
    /// Rises when a key changes its meaning.
    pub schema_version: u32,
    /// The scenario's title.
    pub title: String,
    /// The scenario's seed.
    pub seed: u64,
    /// Begin of the simulation, in nanoseconds since the Unix epoch.
    pub start_ns: u64,
    /// Its length.
    pub duration_ns: u64,
    /// Taps, and what packets at each can show.
    pub taps: Vec<Tap>,
    /// Flows that belong together.
    pub connections: Vec<Connection>,
    /// Totals by flow, those of queue pair 1 among them. Connections that take the numbers of others share their flows.
    pub flows: Vec<Flow>,
    /// Packets that did not arrive, in the order of time. What a go-back-N receiver dropped because of an earlier loss is
    /// no loss.
    pub losses: Vec<Loss>,
    /// Packets that the network delivered a second time.
    #[serde(default)]
    pub duplicates: Vec<Duplicate>,
    /// Packets that a queue marked, in the order of time.
    pub ce_marks: Vec<CeMark>,
    /// Congestion notifications, in the order of time.
    pub cnps: Vec<Cnp>,
    /// NAKs and RNR NAKs, in the order of time.
    pub naks: Vec<Nak>,
    /// Retransmitted requests and READ responses, one by one, in the order of time.
    #[serde(default)]
    pub retransmissions: Vec<Retransmission>,
    /// Runs of retransmitted requests, one item for each time that a sender fell back.
    pub retransmission_runs: Vec<RetransmissionRun>,
    /// Times in which a port was not allowed to send.
    pub pauses: Vec<Pause>,
    /// Flows that waited because of pauses, and the roots of these.
    #[serde(default)]
    pub pause_roots: Vec<PauseRoot>,
    /// Equal-cost ports, and what took them. Empty where each packet chooses its path.
    #[serde(default)]
    pub uplinks: Vec<UplinkGroup>,
    /// Rates of flows beside their fair shares, where there are equal-cost ports.
    #[serde(default)]
    pub fair_rates: Vec<FairRate>,
    /// How reliable connections ended.
    #[serde(default)]
    pub ends: Vec<ConnectionEnd>,
    /// Where the time of each flow went, at each tap.
    #[serde(default)]
    pub times: Vec<FlowTimes>,
    /// Intervals in which something was congested.
    pub episodes: Vec<Episode>,
    /// Findings that an analysis has to make, and the taps where it can.
    pub findings: Vec<ExpectedFinding>,
    /// Steps of training jobs.
    pub steps: Vec<Step>,
    /// Training jobs with NCCL's messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collectives: Vec<Collective>,
    /// Connections of MRC.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mrc: Vec<MrcConnection>,
    /// Frames on their way at the end.
    pub in_flight: u64,
    /// The longest queue of each port and priority that held anything.
    pub queues: Vec<Queue>,
}

/// A clock that is set again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClockStep {
    /// When.
    pub time: u64,
    /// By how much it shows more from then on, in nanoseconds; negative: less.
    pub by_ns: i64,
}

/// A tap.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Tap {
    /// Its name.
    pub name: String,
    /// The host or switch that it is at.
    pub node: String,
    /// The other end of the link.
    pub neighbour: String,
    /// True if it is at a host's NIC; otherwise at a switch's port.
    pub at_host: bool,
    /// Its capture file.
    pub file: String,
    /// Its interface in the file.
    pub interface: u32,
    /// Offset of its clock; positive when ahead.
    pub clock_offset_ns: i64,
    /// Rate error of its clock, in parts of 10^9; positive when fast.
    pub clock_drift_ppb: i64,
    /// The times at which its clock was set again, and by how much, in nanoseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clock_steps: Vec<ClockStep>,
    /// Bytes kept of each frame; 0: all.
    pub snaplen: u32,
    /// Frames recorded.
    pub records: u64,
    /// Frames that passed and were not recorded.
    pub records_lost: u64,
    /// Records of frames that a mirror showed a second time, in addition to `records`.
    #[serde(default)]
    pub copies: u64,
    /// The file says before which records frames were lost, and how many.
    pub told_by_record: bool,
    /// Pause frames recorded.
    pub pause_records: u64,
    /// Records of each flow.
    pub flows: Vec<TapFlow>,
    /// Request PSNs that were missing when a later one was recorded.
    pub holes: Vec<Hole>,
    /// PSNs that were recorded here and NAKed afterwards.
    pub lost_downstream: Vec<LostDownstream>,
    /// Packets that passed and were not recorded.
    pub capture_losses: Vec<CaptureLoss>,
    /// Packets recorded after later ones of their flow, in the order of time.
    #[serde(default)]
    pub late: Vec<Late>,
    /// Duplicates of the network, in the order of time.
    #[serde(default)]
    pub duplicates: Vec<DuplicateAtTap>,
}

/// A request PSN that was missing at a tap.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Hole {
    /// The flow.
    pub flow_id: String,
    /// The PSN.
    pub psn: u32,
    /// Time at which a later one was recorded.
    pub time: u64,
    /// Class that an analysis of this tap can give it.
    pub class: HoleClass,
    /// Fate of its first transmission, as the simulation knows it: `reordered`, `network_lost`,
    /// `capture_lost` or `unresolved`.
    pub cause: HoleClass,
    /// True if records of this tap show the class: the NAK or the retransmission, the ACK that passes
    /// it, the late packet.
    pub observable: bool,
    /// The PSN before belongs to the same READ request, which is one packet.
    pub continues: bool,
}

/// A PSN that was recorded at a tap and NAKed afterwards.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LostDownstream {
    /// The flow.
    pub flow_id: String,
    /// The PSN.
    pub psn: u32,
    /// Time of the NAK.
    pub time: u64,
    /// It was not lost but overtaken.
    pub reordered: bool,
    /// True if this tap recorded the NAK.
    pub observable: bool,
}

/// Two flows of one connection.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Connection {
    /// Its number.
    pub id: u32,
    /// The name of the flow table or training job that it comes from.
    pub name: String,
    /// RC, UC, UD.
    pub service: String,
    /// True if the connection manager made it.
    pub cm: bool,
    /// The side that opened it.
    pub a: End,
    /// The other one.
    pub b: End,
    /// Time of its opening.
    pub begin: u64,
    /// Time of its end.
    pub end: Option<u64>,
    /// Records of it at each tap.
    pub taps: Vec<ConnectionAtTap>,
}

/// One end of a connection.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct End {
    /// The host.
    pub host: String,
    /// Its address.
    pub address: String,
    /// Its queue pair.
    pub qpn: u32,
    /// The PSN of its first request.
    pub first_psn: u32,
    /// The UDP source port of its packets.
    pub source_port: u16,
    /// DSCP of its packets.
    pub dscp: u8,
    /// The flow that it sends.
    pub flow_id: String,
}

/// Records of a connection at a tap.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ConnectionAtTap {
    /// The tap.
    pub tap: String,
    /// Packets recorded from `a` to `b`, CNPs not counted.
    pub a_packets: u64,
    /// Packets recorded from `b` to `a`, CNPs not counted.
    pub b_packets: u64,
    /// Recorded answers of both directions that name one request: ACKs of something new, and first
    /// packets of READ responses.
    pub answers: u64,
    /// True if the two flows can be paired from the records alone: an RC connection, both directions recorded, at least
    /// [`Truth::ANSWERS_BY_PORT`] answers where its UDP source port is that of its queue pairs' numbers, otherwise
    /// [`Truth::ANSWERS_BY_PSN`].
    pub observable: bool,
}

/// Totals of a flow. CNPs are not counted.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Flow {
    /// The flow.
    pub flow_id: String,
    /// The host that sends it.
    pub source: String,
    /// The host that it goes to.
    pub destination: String,
    /// The destination's queue pair.
    pub destination_qpn: u32,
    /// RC, UC, UD.
    pub service: String,
    /// It carries messages of the connection manager.
    pub management: bool,
    /// Connections that share it, one after the other.
    pub epochs: u32,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets that arrived whole.
    pub packets_received: u64,
    /// Packets lost.
    pub packets_lost: u64,
    /// Packets sent that carry data: SEND, WRITE, READ responses, UD.
    pub data_packets: u64,
    /// Application data sent for the first time.
    pub payload_bytes_first: u64,
    /// Retransmitted bytes of application data.
    pub payload_bytes_retransmitted: u64,
    /// Retransmitted packets.
    pub packets_retransmitted: u64,
    /// Data packets sent Not-ECT.
    pub not_ect: u64,
    /// Data packets marked by a queue.
    pub ce: u64,
    /// Data packets that arrived marked and brought no CNP, because one of the same pacing scope had just left.
    #[serde(default)]
    pub ce_paced: u64,
    /// CNPs that reached the sender.
    pub cnps_received: u64,
    /// True if the sender slows down on CNPs.
    #[serde(default)]
    pub reacts: bool,
    /// SEND and WRITE packets lost, each transmission.
    #[serde(default)]
    pub requests_lost: u64,
    /// READ requests lost, each transmission.
    #[serde(default)]
    pub read_requests_lost: u64,
    /// READ responses lost, each transmission.
    #[serde(default)]
    pub read_responses_lost: u64,
    /// `packets_retransmitted` by cause.
    #[serde(default)]
    pub retransmitted_by: ByCause,
    /// Limits that made the sender wait.
    #[serde(default)]
    pub limits: Limits,
    /// Messages that the sender saw completed.
    pub messages: u64,
    /// First packet.
    pub first_time: Option<u64>,
    /// Last packet.
    pub last_time: Option<u64>,
    /// Application data sent, from the first to the last data packet, in bit/s.
    pub mean_rate_bps: u64,
    /// Application data sent in each millisecond of the simulation.
    pub sent_bytes_per_ms: Vec<u64>,
    /// Application data that arrived in each millisecond of the simulation.
    pub received_bytes_per_ms: Vec<u64>,
}

/// A packet that did not arrive.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Loss {
    /// Time of the loss.
    pub time: u64,
    /// The flow; of a CNP: the flow that its sender's other packets belong to.
    pub flow_id: String,
    /// The PSN.
    pub psn: u32,
    /// Kind of the packet.
    pub kind: PacketKind,
    /// Number of transmissions before this one.
    pub attempt: u16,
    /// Place: `leaf1->h3`, a link's direction or the queue before it.
    pub place: String,
    /// Why.
    pub reason: LossReason,
    /// Taps that had recorded it.
    pub recorded_by: Vec<String>,
    /// Time of the NAK for it, if there was one.
    pub nak_time: Option<u64>,
    /// Class that each tap can give it: requests and READ responses.
    #[serde(default)]
    pub at_taps: Vec<LossAtTap>,
}

/// An interval in which something was congested.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Episode {
    /// Kind of the episode.
    pub kind: EpisodeKind,
    /// Its begin.
    pub begin: u64,
    /// Its end.
    pub end: u64,
    /// The queue or link.
    pub place: String,
    /// The host that the flows go to, if it is one.
    pub destination: Option<String>,
    /// The flows that it is about.
    pub flows: Vec<String>,
    /// Hosts that sent data to the destination in it.
    pub senders: u32,
    /// Data packets marked in it.
    pub ce: u64,
    /// Packets lost in it.
    pub lost: u64,
    /// Why: what ended a stall, or how packets were lost.
    pub cause: String,
    /// Taps that recorded something of it.
    pub taps: Vec<String>,
}

/// The longest that a queue was.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Queue {
    /// The port.
    pub place: String,
    /// The priority.
    pub priority: u8,
    /// Bytes.
    pub most_bytes: u64,
}

impl Truth {
    /// The version of the schema.
    pub const SCHEMA_VERSION: u32 = 1;
    /// Answers that a tap must have recorded before a connection whose UDP source port tells of it counts as observable.
    pub const ANSWERS_BY_PORT: u64 = 1;
    /// Answers that are needed where PSNs alone decide: other connections can have equal PSNs for as
    /// many requests as are open at once.
    pub const ANSWERS_BY_PSN: u64 = 32;

    /// The truth as JSON, for people to read.
    ///
    /// # Errors
    /// None that is known: what is in it can be written.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|json| escape_json(&json).into_owned())
    }

    /// Reads JSON.
    ///
    /// # Errors
    /// When it is no truth of this version.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}
