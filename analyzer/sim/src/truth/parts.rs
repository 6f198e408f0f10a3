//! The smaller parts of a truth: what happened to single packets, and the words for it.

use serde::{Deserialize, Serialize};

/// Kind of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PacketKind {
    /// SEND or WRITE.
    Request,
    /// READ request.
    ReadRequest,
    /// READ response.
    ReadResponse,
    /// ACK.
    Ack,
    /// NAK.
    Nak,
    /// RNR NAK.
    RnrNak,
    /// Congestion notification.
    Cnp,
    /// UD SEND.
    Datagram,
    /// Message of the connection manager.
    Management,
}

/// Why a packet did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossReason {
    /// Its queue or the shared buffer was full.
    TailDrop,
    /// Its ingress port's headroom was full although the sender was paused.
    Headroom,
    /// The link lost it.
    Random,
    /// Its ICRC was wrong; the receiver dropped it.
    Icrc,
    /// Its port was paused for so long that the switch's PFC watchdog dropped it.
    Watchdog,
}

/// Fate of a missing PSN (docs/method.md).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoleClass {
    /// It came late.
    Reordered,
    /// The network lost it.
    NetworkLost,
    /// The tap lost it.
    CaptureLost,
    /// It lies in a go-back-N run that began at an earlier PSN, so it would have been retransmitted in
    /// any case.
    Ambiguous,
    /// Nothing more happened to it.
    Unresolved,
}

/// Cause of a sender's retransmission.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerKind {
    /// A NAK for a sequence error.
    Nak,
    /// A gap among READ responses.
    ImpliedNak,
    /// An RNR NAK.
    Rnr,
    /// Silence.
    Timeout,
}

/// Meaning of a NAK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NakKind {
    /// A PSN is missing.
    Sequence,
    /// No receive buffer is posted.
    Rnr,
    /// The access is not allowed: the connection ends.
    Fatal,
}

/// The kind of an episode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EpisodeKind {
    /// A queue marks packets.
    Ecn,
    /// Two or more hosts send to one whose queue marks or drops.
    Incast,
    /// Packets are lost and retransmitted.
    Loss,
    /// A receiver has no buffer posted.
    Rnr,
    /// A port must not send.
    Pause,
    /// A flow sends nothing although it has something to send.
    Stall,
}

/// Records of a flow at a tap. CNPs are not counted.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TapFlow {
    /// The flow.
    pub flow_id: String,
    /// Packets.
    pub packets: u64,
    /// Packets that carry data.
    pub data_packets: u64,
    /// Application data.
    pub payload_bytes: u64,
    /// Data packets with CE.
    pub ce: u64,
    /// Data packets Not-ECT.
    pub not_ect: u64,
    /// Retransmitted requests.
    pub retransmitted_packets: u64,
    /// Application data in them.
    pub retransmitted_bytes: u64,
    /// Number of retransmitted packets behind the highest request PSN recorded before: the others look like
    /// first transmissions.
    pub retransmitted_behind_packets: u64,
    /// Application data in them.
    pub retransmitted_behind_bytes: u64,
    /// NAKs that the flow carries, RNR NAKs not counted.
    pub naks: u64,
    /// RNR NAKs that the flow carries.
    pub rnr_naks: u64,
    /// Recorded CNPs for this flow.
    pub cnps: u64,
    /// Numbers of the first and the last record in the file.
    pub first_record: u64,
    /// The last one.
    pub last_record: u64,
    /// Request PSNs jumped over.
    pub missing: u64,
    /// Number of missing PSNs that were reordered.
    pub reordered: u64,
    /// Lost by the network.
    pub network_lost: u64,
    /// Lost by the tap.
    pub capture_lost: u64,
    /// In a go-back-N run that began earlier.
    pub ambiguous: u64,
    /// Nothing more happened.
    pub unresolved: u64,
    /// Recorded here and NAKed afterwards.
    pub lost_downstream: u64,
    /// READ responses missing inside a response message.
    pub response_missing: u64,
    /// PSNs jumped over by READ responses at all: between two response messages only who saw the READs knows more.
    pub response_missing_most: u64,
    /// Packets recorded after later ones: the items of the tap's `late`.
    #[serde(default)]
    pub late: u64,
    /// The largest `depth` among them.
    #[serde(default)]
    pub late_depth_most: u64,
    /// Duplicates of the network: the items of the tap's `duplicates`.
    #[serde(default)]
    pub duplicates: u64,
    /// Recorded retransmissions of requests and READ responses, by cause.
    #[serde(default)]
    pub retransmitted_by: ByCause,
    /// Times of at least 0.5 ms between two recorded requests, the first of which did not end its
    /// message: start and end.
    pub silences: Vec<[u64; 2]>,
}

/// A packet that passed a tap and was not recorded.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CaptureLoss {
    /// Time of the event.
    pub time: u64,
    /// The flow.
    pub flow_id: String,
    /// The PSN.
    pub psn: u32,
    /// Kind of the packet.
    pub kind: PacketKind,
    /// Number of transmissions before this one.
    pub attempt: u16,
}

/// A packet that a queue marked.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CeMark {
    /// Time at which it entered the queue.
    pub time: u64,
    /// The flow.
    pub flow_id: String,
    /// The PSN.
    pub psn: u32,
    /// Kind of the packet.
    pub kind: PacketKind,
    /// The queue: the port that it leaves by.
    pub place: String,
    /// Taps that recorded it marked.
    pub recorded_by: Vec<String>,
}

/// A congestion notification.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cnp {
    /// Time of sending.
    pub sent: u64,
    /// Time of arrival.
    pub received: Option<u64>,
    /// The host that sent it.
    pub from: String,
    /// The host that it is for.
    pub to: String,
    /// The queue pair that it names.
    pub qpn: u32,
    /// The flow that it slows down.
    pub flow_id: String,
    /// It followed a NAK, not a mark.
    pub after_nak: bool,
    /// It arrived and cut the sender's rate limit.
    #[serde(default)]
    pub cut: bool,
    /// The limit before and after it arrived, in bit/s; 0 where no reaction point got it.
    #[serde(default)]
    pub rate_before_bps: u64,
    /// See `rate_before_bps`.
    #[serde(default)]
    pub rate_after_bps: u64,
    /// The limit was in effect at its arrival: the sender's last packet had waited for it.
    #[serde(default)]
    pub binding: bool,
    /// Taps that recorded it.
    pub recorded_by: Vec<String>,
}

/// A NAK or RNR NAK.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Nak {
    /// Time of sending.
    pub sent: u64,
    /// Time of arrival.
    pub received: Option<u64>,
    /// Meaning of the NAK.
    pub kind: NakKind,
    /// The flow whose request it refuses.
    pub flow_id: String,
    /// Its PSN.
    pub psn: u32,
    /// Taps that recorded it.
    pub recorded_by: Vec<String>,
}

/// Requests retransmitted in a row.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RetransmissionRun {
    /// The flow.
    pub flow_id: String,
    /// Time of the first retransmission.
    pub time: u64,
    /// Time of the last retransmission.
    pub end: u64,
    /// The first PSN.
    pub first_psn: u32,
    /// Retransmitted packets.
    pub packets: u64,
    /// Application data in them.
    pub bytes: u64,
    /// True if something had been lost before that it begins with: the request, its READ response, or (RNR NAK) its place in a
    /// receive buffer. Otherwise packets were late, or acknowledgements.
    #[serde(default)]
    pub needed: bool,
    /// Why.
    pub trigger: TriggerKind,
    /// Time without a request of the flow before the run.
    pub silence_ns: u64,
    /// Records of the run at each tap; taps without any are left out.
    pub taps: Vec<RunAtTap>,
}

/// Records of a run of retransmissions at a tap.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunAtTap {
    /// The tap.
    pub tap: String,
    /// Time of the first recorded packet.
    pub time: u64,
    /// Time of the last recorded packet.
    pub end: u64,
    /// PSN of the first.
    pub first_psn: u32,
    /// Packets recorded.
    pub packets: u64,
    /// True if the records tell the run and its trigger: both directions were recorded, the run from its first packet
    /// on, that one behind the highest PSN before; after a NAK or RNR NAK, this too.
    pub observable: bool,
}

/// A time in which a port was not allowed to send.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Pause {
    /// The port that stopped: `h1->leaf1`.
    pub place: String,
    /// The priority; all of them (802.3x) when there is none.
    pub priority: Option<u8>,
    /// Arrival of the pause frame.
    pub begin: u64,
    /// Time at which it ended or ran out; the end of the simulation if it did not.
    pub end: u64,
    /// Taps at this link that record pause frames.
    pub recorded_by: Vec<String>,
}

/// Something that an analysis is to find.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ExpectedFinding {
    /// Its id, as `docs/findings.md` has it.
    pub id: String,
    /// Reason of the finding.
    pub why: String,
    /// The flows that it is about, if it is about some.
    pub flows: Vec<String>,
    /// Taps whose records alone can show it.
    pub taps: Vec<String>,
}

/// A step of a training job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The job.
    pub job: String,
    /// Its number, from 0.
    pub step: u32,
    /// Time at which the first rank started its all-reduce.
    pub begin: u64,
    /// Time at which the last rank ended it.
    pub end: u64,
    /// By rank.
    pub ranks: Vec<RankStep>,
}

/// A step at one rank.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RankStep {
    /// The rank, from 0.
    pub rank: u32,
    /// Its host.
    pub host: String,
    /// Start of its computing.
    pub compute: u64,
    /// Start of its all-reduce.
    pub begin: u64,
    /// End of its all-reduce.
    pub end: u64,
}

/// Retransmitted packets by the sender's reason to fall back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ByCause {
    /// A NAK for a sequence error.
    pub nak: u64,
    /// A gap among READ responses.
    pub implied_nak: u64,
    /// An RNR NAK.
    pub rnr: u64,
    /// Silence.
    pub timeout: u64,
    /// READ responses to a READ request that the network duplicated.
    pub duplicate: u64,
}

impl ByCause {
    /// Counts one packet.
    pub(crate) fn count(&mut self, cause: Option<TriggerKind>) {
        *match cause {
            Some(TriggerKind::Nak) => &mut self.nak,
            Some(TriggerKind::ImpliedNak) => &mut self.implied_nak,
            Some(TriggerKind::Rnr) => &mut self.rnr,
            Some(TriggerKind::Timeout) => &mut self.timeout,
            None => &mut self.duplicate,
        } += 1;
    }
}
