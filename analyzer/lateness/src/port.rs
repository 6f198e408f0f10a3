//! When the port of a host sends data: a message that waits behind others of its port waits for the link.

use std::collections::BTreeMap;

use roce_wire::Address;

use crate::job::Job;

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

/// Ports of the hosts of a job.
#[derive(Debug)]
pub(crate) struct BusyPorts(BTreeMap<Address, BusyPort>);

impl BusyPorts {
    /// Ports as the data of the job show them. A retransmission keeps no port busy while it waits for its timeout.
    pub(crate) fn new(job: &Job) -> Self {
        let mut spans: BTreeMap<Address, Vec<(i64, i64)>> = BTreeMap::new();
        for link in &job.links {
            let messages = link.messages.iter();
            spans.entry(job.ranks[link.sender].host).or_default().extend(
                messages
                    .filter(|message| message.retransmissions == 0)
                    .map(|message| (message.first_out, message.last_out)),
            );
        }
        Self(
            spans
                .into_iter()
                .map(|(host, spans)| (host, BusyPort::new(spans)))
                .collect(),
        )
    }

    /// Time for which the host's port sends between two moments, in nanoseconds.
    pub(crate) fn busy(&self, host: Address, from: i64, to: i64) -> i64 {
        self.0
            .get(&host)
            .map_or(0, |port| port.until(to) - port.until(from))
    }
}
