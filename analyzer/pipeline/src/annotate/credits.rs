//! Credits and their data in comments: which message a packet belongs to.

use std::collections::HashMap;

use roce_model::{CreditedConnection, CreditedMessage, FlowId, Passage, Time};

/// Packets of messages that are known, at most: some 250 MB. Others have no comment.
const MAX_PACKETS: usize = 1 << 21;

/// Role of a packet in its message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MessagePart {
    Credit,
    First,
    Last,
    /// The only packet of the data.
    Only,
    Acknowledgement,
}

/// A packet's message.
#[derive(Clone, Copy, Debug)]
struct MessagePacket {
    part: MessagePart,
    number: u64,
    bytes: u64,
    /// When its credit passed the tap that saw this packet; 0: not known.
    credit: Time,
}

/// Packets of all messages, by connection and time.
#[derive(Debug, Default)]
pub(super) struct MessagePackets {
    connections: HashMap<FlowId, Vec<u32>>,
    packets: HashMap<(u32, Time), MessagePacket>,
}

impl MessagePackets {
    /// Those of some connections.
    pub(super) fn new(credited: &[CreditedConnection]) -> Self {
        let mut all = Self::default();
        for (at, connection) in (0_u32..).zip(credited) {
            for flow in connection.credit_flows.iter().chain(&connection.data_flows) {
                all.connections.entry(*flow).or_default().push(at);
            }
            for message in &connection.messages {
                all.add(at, message);
            }
        }
        all
    }

    fn add(&mut self, connection: u32, message: &CreditedMessage) {
        let data = if message.first == message.last {
            [
                (MessagePart::Only, message.first),
                (MessagePart::Only, message.last),
            ]
        } else {
            [
                (MessagePart::First, message.first),
                (MessagePart::Last, message.last),
            ]
        };
        // At one tap a credit departs where data arrive, and arrives where they depart.
        let Passage { departure, arrival } = message.credit;
        let others = [
            (MessagePart::Credit, message.credit),
            (MessagePart::Acknowledgement, message.acknowledgement),
        ];
        for (part, passage) in data.into_iter().chain(others) {
            let is_data = !matches!(part, MessagePart::Credit | MessagePart::Acknowledgement);
            let credits = if is_data {
                [arrival, departure]
            } else {
                [departure, arrival]
            };
            for (time, credit) in [passage.departure, passage.arrival].into_iter().zip(credits) {
                let Some(time) = time.filter(|_| self.packets.len() < MAX_PACKETS) else {
                    continue;
                };
                let packet = MessagePacket {
                    part,
                    number: message.number,
                    bytes: message.bytes,
                    credit: credit.unwrap_or_default(),
                };
                self.packets.entry((connection, time)).or_insert(packet);
            }
        }
    }

    /// The comment of a packet of `flow` at `time`, and true of a credit; `duration` writes nanoseconds for people.
    pub(super) fn comment(
        &self,
        flow: FlowId,
        time: Time,
        is_answer: bool,
        duration: fn(u64) -> String,
    ) -> Option<(String, bool)> {
        let connections = self.connections.get(&flow)?;
        let packets = connections.iter().filter_map(|at| self.packets.get(&(*at, time)));
        let mut fitting = packets.filter(|packet| (packet.part == MessagePart::Acknowledgement) == is_answer);
        let MessagePacket {
            part,
            number,
            bytes,
            credit,
        } = *fitting.next()?;
        let after = if credit.0 == 0 {
            String::new()
        } else {
            format!(", {} after its credit", duration(time.since(credit).0))
        };
        let text = match part {
            MessagePart::Credit => format!("credit {number}: the receiver asks for a message"),
            MessagePart::First => format!("message {number} of {bytes} bytes begins{after}"),
            MessagePart::Last => format!("message {number} ends{after}"),
            MessagePart::Only => format!("message {number} of {bytes} bytes{after}"),
            MessagePart::Acknowledgement => format!("acknowledges message {number}{after}"),
        };
        Some((text, part == MessagePart::Credit))
    }
}
