//! Ranks as documents of a job state them: which collective each has reached, and which do not answer.

use std::borrow::Cow;

use roce_wire::Address;

use crate::Time;
use crate::events::names;
use crate::table::table;

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    RankStateRow, RankStateColumns, "rank_states", "One rank of a communicator or process group, as a document that `--merge` named states it.";
    trace: u32, "", "Number of the document in `traces`.";
    rank: Option<u32>, "", "The rank. Absent: the document does not say.";
    communicator: Option<Cow<'static, str>>, "", "Hash of the communicator (NCCL) or name of the process group (flight recorder). Absent: the document does not say.";
    ranks: Option<u32>, "", "Ranks of the communicator. Absent: the document does not say.";
    hostname: Option<Cow<'static, str>>, "", "Name or address of its host, as the document has it. Absent: it has none.";
    address: Option<Address>, "", "Captured address of its host. Absent: neither the document, nor credits, nor a log say which it is.";
    state: RankState, "", "State of the rank: measured, running, scheduled or started (a collective is not completed), missing, failed, dead.";
    operation: Cow<'static, str>, "", "The operation that `sequence` counts; of the flight recorder, which counts all together, the operation of this collective.";
    sequence: Option<u64>, "", "Number of the last collective: launched (RAS), not completed (flight recorder, states scheduled and started), completed (others). Absent: the document does not say.";
    collectives: u64, "", "Collectives of this operation that the document has of the rank.";
    median_ns: Option<u64>, "ns", "Median length of its collectives of this operation; of inspector_metrics their mean. Absent: the document has none.";
    gap_ns: Option<u64>, "ns", "Longest time between the enqueueing of two collectives. Absent: the document has no such times.";
    begin_time: Option<Time>, "ns", "When the collective that is not completed was enqueued, by the rank's clock. Absent: there is none, or its time is not known.";
    local_s: Option<u64>, "s", "When RAS answered: local time in seconds since 1970, zone not known. Absent: it does not say, or the document is another one.";
    known_time: Option<Time>, "ns", "Latest time that the document has: the state is from then or later. Absent: it has no time with a zone.";
}

names! {
    /// State of a rank in a document.
    RankState {
        /// Its collectives were measured.
        #[default]
        Measured = "measured",
        /// It answers.
        Running = "running",
        /// One of its collectives is enqueued, and its kernel has not begun.
        Scheduled = "scheduled",
        /// The kernel of one of its collectives has begun and not ended.
        Started = "started",
        /// It did not answer.
        Missing = "missing",
        /// It answers, and its communicator has an error.
        Failed = "failed",
        /// It is considered dead.
        Dead = "dead",
    }
}
