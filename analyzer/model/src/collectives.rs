//! The table `collectives`: the shapes in which ranks or hosts send to each other, as a log names them or as their traffic shows them.

use std::borrow::Cow;

use crate::events::names;
use crate::table::table;
use crate::{Confidence, Time};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    CollectiveRow, CollectiveColumns, "collectives", "One shape in which ranks or hosts send to each other: of a channel in NCCL's log, or of traffic.";
    shape: CollectiveShape, "", "Shape: ring, tree, all_to_all.";
    evidence: CollectiveEvidence, "", "Evidence: log (ranks print the shape), traffic (who sent to whom, how much and when).";
    communicator: Option<Cow<'static, str>>, "", "NCCL communicator. Absent: it follows from traffic alone.";
    channel: Option<u32>, "", "Channel of the communicator. Absent: it follows from traffic alone.";
    rail: Option<u32>, "", "Number of the rail: shapes of the same kind and size at the same time, over addresses of their own. Absent: there is only one, or it is of a log.";
    members: u32, "", "Number of ranks, or of addresses.";
    ranks: Option<Cow<'static, str>>, "", "Ranks in order: of a ring in its direction from the lowest on, of a tree each one with those below it. Absent: not known.";
    hosts: Option<Cow<'static, str>>, "", "Addresses in the same order. Absent: not known.";
    both_directions: Option<bool>, "", "True if neighbours of the ring or tree send both ways. Absent: it is of a log.";
    payload_bytes: Option<u64>, "bytes", "Application data between the members. Absent: it is of a log.";
    spread: Option<f64>, "", "Data of the busiest connection of two members over that of the least busy one. Absent: it is of a log.";
    start_time: Option<Time>, "ns", "First packet. Absent: it is of a log.";
    end_time: Option<Time>, "ns", "Last packet. Absent: it is of a log.";
    confidence: Confidence, "", "Confidence in the shape: high (a log, or traffic in the steps of a job), medium, low (three members).";
}

names! {
    /// Shape of a collective.
    CollectiveShape {
        /// Each member sends to the next one, and the last to the first.
        #[default]
        Ring = "ring",
        /// Members send to the one above them and to those below.
        Tree = "tree",
        /// Each member sends to each other one.
        AllToAll = "all_to_all",
    }
}

names! {
    /// Evidence of a shape.
    CollectiveEvidence {
        /// Who sent to whom, how much and when.
        #[default]
        Traffic = "traffic",
        /// A job's log.
        Log = "log",
    }
}
