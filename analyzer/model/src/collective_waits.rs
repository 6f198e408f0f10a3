//! The table `collective_waits`: what each rank did and waited for in each collective of a job.

use std::borrow::Cow;

use crate::events::names;
use crate::table::table;
use crate::{Confidence, Time};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    CollectiveWaitRow, CollectiveWaitColumns, "collective_waits", "One rank in one collective, from credits and the data that came for them.";
    job: u32, "", "Number of the job: connections whose messages are counted together, from 0.";
    collective: u32, "", "Number of the collective in the capture, from 0.";
    rank: Option<u32>, "", "Rank in the topmost communicator. Absent: nothing names it.";
    address: Cow<'static, str>, "", "Address of the rank's port.";
    start_time: Time, "ns", "First data that the rank sent in the collective.";
    end_time: Time, "ns", "Last arrival at the rank, or last acknowledgement that it got, in the collective.";
    compute_ns: Option<u64>, "ns", "From the end of the rank's previous collective to its start. Absent in the first collective.";
    late_start_ns: u64, "ns", "Start less the median start of the other ranks; 0 if it is earlier.";
    carried_over_ns: u64, "ns", "Part of `late_start_ns` that the rank brought from the collective before: it belongs to the cause of that one.";
    own_ns: u64, "ns", "Time from the arrival of all that a message needed until the rank sent it.";
    waits_input_ns: u64, "ns", "Time without the data of the rank before.";
    waits_credit_ns: u64, "ns", "Time without a credit of the rank behind.";
    holds_buffers_ns: u64, "ns", "Time from the last use of a buffer until the rank gave a credit for it.";
    network_ns: u64, "ns", "Time by which messages of the rank took longer than is usual for their size.";
    on_path_ns: u64, "ns", "Time of the collective's critical path that belongs to the rank itself.";
    waits_for_rank: Option<u32>, "", "Rank that it waited for longest. Absent: it did not wait, or nothing names that rank.";
    waits_for_address: Option<Cow<'static, str>>, "", "Address of the port of that rank. Absent: it did not wait.";
    reason: WaitReason, "", "Reason for its longest wait: none, input, credit, network.";
    is_root: bool, "", "True if the other ranks waited for this one.";
    confidence: Confidence, "", "Confidence in the times: high (both ends captured), medium (one end), low (messages are left out).";
}

names! {
    /// Reason for a wait of a rank.
    WaitReason {
        /// It did not wait.
        #[default]
        Nothing = "none",
        /// The data of another rank had not come.
        Input = "input",
        /// The receiver had given no credit.
        Credit = "credit",
        /// Messages were under way for longer than is usual.
        Network = "network",
    }
}
