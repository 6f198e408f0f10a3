//! When the port of a host sends data: a message that waits behind others of its port waits for the link.

use std::collections::{BTreeMap, BTreeSet};

use roce_wire::Address;

use crate::job::{Job, Message};

/// Data that follow within this time are one stretch: the gap between two messages of a queue, in nanoseconds.
const MAX_GAP: i64 = 5_000;

/// Stretches in which a port sends, in order.
#[derive(Debug, Default)]
struct BusyPort {
    /// First and last moment, and the time of all stretches before.
    stretches: Vec<(i64, i64, i64)>,
}

impl BusyPort {
    fn new(mut spans: Vec<(i64, i64)>) -> Self {
        spans.sort_unstable();
        let mut stretches: Vec<(i64, i64, i64)> = Vec::new();
        for (first, last) in spans {
            match stretches.last_mut() {
                Some(stretch) if first <= stretch.1 + MAX_GAP => stretch.1 = stretch.1.max(last),
                Some(&mut (begin, end, before)) => {
                    stretches.push((first, last, before + end - begin));
                }
                None => stretches.push((first, last, 0)),
            }
        }
        Self { stretches }
    }

    /// Time of all stretches until `time`.
    fn until(&self, time: i64) -> i64 {
        let place = self.stretches.partition_point(|stretch| stretch.0 < time);
        place.checked_sub(1).map_or(0, |place| {
            let (first, last, before) = self.stretches[place];
            before + last.min(time) - first
        })
    }
}

/// Messages whose time a port's pace is measured over.
const PACED: usize = 4;

/// One in this number of a port's paces may be shorter than its own: queue pairs in turn share it.
const SHORT_PACES: usize = 20;

/// Nanoseconds for some bytes.
#[derive(Clone, Copy, Debug)]
struct PortPace {
    time: i64,
    bytes: u64,
}

impl PortPace {
    /// Nanoseconds that a port takes for some bytes.
    fn of(self, bytes: u64) -> i64 {
        let time = u128::from(self.time.unsigned_abs()) * u128::from(bytes) / u128::from(self.bytes.max(1));
        i64::try_from(time).unwrap_or(i64::MAX)
    }
}

/// Pace at which a port sends messages one after another. Stamps of a message are those of its first and its last packet:
/// one of a single packet seems to take no time. The shortest paces are taken, since others have pauses.
fn pace(messages: &[Message]) -> PortPace {
    let mut paces: Vec<PortPace> = messages
        .windows(PACED)
        .map(|messages| PortPace {
            time: messages[PACED - 1].first_out - messages[0].first_out,
            bytes: messages[..PACED - 1].iter().map(|message| message.bytes).sum(),
        })
        .filter(|pace| pace.bytes > 0)
        .collect();
    let order = |one: &PortPace, other: &PortPace| {
        let across = |time: i64, bytes: u64| u128::from(time.unsigned_abs()) * u128::from(bytes);
        across(one.time, other.bytes).cmp(&across(other.time, one.bytes))
    };
    let place = paces.len() / SHORT_PACES;
    if paces.is_empty() {
        PortPace { time: 0, bytes: 1 }
    } else {
        *paces.select_nth_unstable_by(place, order).1
    }
}

/// Ports of the hosts of a job.
#[derive(Debug)]
pub(crate) struct BusyPorts(BTreeMap<Address, BusyPort>);

impl BusyPorts {
    /// Ports as the data of the job show them. A retransmission keeps no port busy while it waits for its timeout.
    pub(crate) fn new(job: &Job) -> Self {
        let mut sent: BTreeMap<Address, Vec<Message>> = BTreeMap::new();
        for link in &job.links {
            let messages = link.messages.iter();
            sent.entry(job.ranks[link.sender].host)
                .or_default()
                .extend(messages.filter(|message| message.retransmissions == 0));
        }
        let ranks = job.ranks.iter().zip(&job.tapped).filter(|&(_, &tapped)| tapped);
        let tapped: BTreeSet<Address> = ranks.map(|(rank, _)| rank.host).collect();
        let busy = |(host, mut messages): (Address, Vec<Message>)| {
            messages.sort_unstable_by_key(|message| message.first_out);
            // Without a tap beside it, the port may send other data, and nothing shows what its rank waits for.
            let pace = pace(if tapped.contains(&host) { &messages } else { &[] });
            let spans = messages.iter().map(|message| {
                let whole = message.first_out + pace.of(message.bytes);
                (message.first_out, message.last_out.max(whole))
            });
            (host, BusyPort::new(spans.collect()))
        };
        Self(sent.into_iter().map(busy).collect())
    }

    /// Time for which the host's port sends between two moments, in nanoseconds.
    pub(crate) fn busy(&self, host: Address, from: i64, to: i64) -> i64 {
        self.0
            .get(&host)
            .map_or(0, |port| port.until(to) - port.until(from))
    }
}
