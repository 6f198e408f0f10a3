//! Rows of the table `credits`.

use roce_model::{CreditRow, CreditedConnection, CreditedMessage, Passage, Span, Time};

/// Facts of a connection beside its messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    pub(super) credits_unused: u64,
    pub(super) outstanding_bytes: u64,
    pub(super) last_time: Option<Time>,
}

/// The row of a connection.
pub(super) fn row(connection: &CreditedConnection, rest: &Rest) -> CreditRow {
    let messages = &connection.messages;
    let delays = percentiles(messages.iter().filter_map(|message| {
        let Passage { departure, arrival } = message.credit;
        Some(arrival?.since(departure?))
    }));
    let answers = messages.iter().filter_map(credit_and_data);
    let answers = percentiles(answers.map(|(credit, data)| data.since(credit)));
    CreditRow {
        sender: connection.sender,
        receiver: connection.receiver,
        sender_rank: connection.sender_rank,
        receiver_rank: connection.receiver_rank,
        layout: connection.layout.map(Into::into),
        data_flow_id: connection.data_flows.first().copied(),
        credit_flow_id: connection.credit_flows.first().copied(),
        data_flows: count(connection.data_flows.len()),
        credit_flows: count(connection.credit_flows.len()),
        depth: depth(messages),
        messages: messages.len() as u64,
        left_out: connection.left_out,
        bytes: messages.iter().map(|message| message.bytes).sum(),
        retransmitted_packets: messages
            .iter()
            .map(|message| u64::from(message.retransmissions))
            .sum(),
        transfer_ns: transfer(messages).0,
        cts_delay_p50_ns: delays.map(|[median, _]| median),
        cts_delay_p99_ns: delays.map(|[_, most]| most),
        credit_to_data_p50_ns: answers.map(|[median, _]| median),
        credit_to_data_p99_ns: answers.map(|[_, most]| most),
        credits_unused: rest.credits_unused,
        outstanding_bytes: rest.outstanding_bytes,
        last_ack_time: messages
            .iter()
            .filter_map(|message| moment(message.acknowledgement))
            .max(),
        last_time: rest.last_time,
        // Who was late is a verdict.
        ..CreditRow::default()
    }
}

fn count(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}

/// Median and 99th percentile: the smallest value that so many of a hundred do not exceed.
fn percentiles(times: impl Iterator<Item = Span>) -> Option<[u64; 2]> {
    let mut times: Vec<u64> = times.map(|time| time.0).collect();
    times.sort_unstable();
    let at = |percent: usize| {
        times
            .get((times.len() * percent).div_ceil(100).saturating_sub(1))
            .copied()
    };
    Some([at(50)?, at(99)?])
}

/// A packet's time at one tap, for comparisons within a connection.
fn moment(passage: Passage) -> Option<Time> {
    passage.departure.or(passage.arrival)
}

/// Times of a credit and of its data at one tap: the sender's, where a credit arrives and data depart, or the receiver's.
fn credit_and_data(message: &CreditedMessage) -> Option<(Time, Time)> {
    let at_sender = Option::zip(message.credit.arrival, message.first.departure);
    at_sender.or(Option::zip(message.credit.departure, message.first.arrival))
}

/// Largest number of credits that were unused at once.
fn depth(messages: &[CreditedMessage]) -> u32 {
    let mut changes: Vec<(Time, i32)> = Vec::with_capacity(2 * messages.len());
    for (credit, data) in messages.iter().filter_map(credit_and_data) {
        changes.extend([(credit, 1), (data, -1)]);
    }
    changes.sort_unstable();
    let (mut open, mut most) = (0_i32, 0);
    for (_, change) in changes {
        open += change;
        most = most.max(open);
    }
    most.unsigned_abs()
}

/// Time in which data were on their way; messages are in the order of their credits.
fn transfer(messages: &[CreditedMessage]) -> Span {
    let ways = messages.iter().filter_map(|message| {
        let last = message.last.arrival.or(message.last.departure)?;
        Some((moment(message.first)?, last))
    });
    let mut ways: Vec<(Time, Time)> = ways.collect();
    ways.sort_unstable();
    let (mut sum, mut end) = (0, Time(0));
    for (first, last) in ways {
        sum += last.since(first.max(end)).0;
        end = end.max(last);
    }
    Span(sum)
}
