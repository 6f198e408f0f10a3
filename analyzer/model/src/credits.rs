//! The table `credits`: connections whose receivers ask for each message, as NCCL's network transport does.

use std::borrow::Cow;

use roce_wire::Address;

use crate::table::table;
use crate::{FlowId, Time};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    CreditRow, CreditColumns, "credits", "One connection whose receiver offers a buffer for each message: a ring of credits at its sender.";
    sender: Address, "", "The host that sends the data.";
    receiver: Address, "", "The host that gives the credits.";
    sender_rank: Option<u32>, "", "Rank of the sender, as the credits name it. Absent: frames are cut before it, the release names none, or credits name several.";
    receiver_rank: Option<u32>, "", "Rank of the receiver: the one that the credits it gets itself name. Absent: as for the sender, or no such credit was captured.";
    layout: Option<Cow<'static, str>>, "", "Releases of NCCL whose credits look so. Absent: frames are cut before the fields that differ.";
    data_flow_id: Option<FlowId>, "", "Flow of the data; of several, the one with the smallest name.";
    credit_flow_id: Option<FlowId>, "", "Flow of the credits; likewise.";
    data_flows: u32, "", "Number of flows that carry its data: queue pairs that take turns or share each message.";
    credit_flows: u32, "", "Number of flows that carry its credits.";
    depth: u32, "", "Largest number of credits that were unused at once.";
    messages: u64, "", "Messages whose credit and data were captured.";
    left_out: u64, "", "Messages that are not counted: a record of their credit, first or last packet is missing, or the credit was before the capture.";
    bytes: u64, "bytes", "Data of the messages.";
    retransmitted_packets: u64, "", "First and last packets of data, and unusual ones between them, that were sent more than once.";
    transfer_ns: u64, "ns", "Time in which data were on their way, from first to last packets; messages at the same time count once.";
    sender_late_ns: u64, "ns", "Time in collectives in which a credit was there and the sender sent nothing: it was late, or had no input.";
    receiver_late_ns: u64, "ns", "Time in collectives in which no credit was there.";
    network_late_ns: u64, "ns", "Time by which messages were under way for longer than is usual for their size, or waited behind others of the port.";
    rest_ns: u64, "ns", "Time between collectives.";
    unknown_ns: u64, "ns", "Time around messages that are left out, or that nothing tells from the time between collectives.";
    cts_delay_p50_ns: Option<u64>, "ns", "Time of a credit from the receiver's port to the sender's: median. Absent: no taps beside both.";
    cts_delay_p99_ns: Option<u64>, "ns", "The same: 99th percentile.";
    credit_to_data_p50_ns: Option<u64>, "ns", "Time from a credit at the sender's port, or else at the receiver's, to the first packet of its data there: median. Absent: no messages.";
    credit_to_data_p99_ns: Option<u64>, "ns", "The same: 99th percentile.";
    credits_unused: u64, "", "Credits at the end for which no data came.";
    outstanding_bytes: u64, "bytes", "Data at the end that were not acknowledged, as far as the other direction is known.";
    last_ack_time: Option<Time>, "ns", "Last acknowledgement of a message. Absent: none was captured.";
    last_time: Option<Time>, "ns", "Its last captured packet: credit, first or last packet of data, or acknowledgement of the last one. It is silent since.";
}
