//! Ranks of a job behind queue pairs, as the job's own log names them, and how people call two ranks that talk.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use roce_wire::Address;

use crate::{CollectiveRow, FlowRow, Time};

/// Queue pairs that are kept, at most: some 64 MB.
const MAX_ENDS: usize = 1 << 20;

/// The owner of a queue pair. What is absent is not known, or said in different ways.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankEnd {
    /// The rank whose process owns the queue pair.
    pub rank: Option<u32>,
    /// The rank at the other end of its connection.
    pub peer_rank: Option<u32>,
    /// The communicator that both ranks are of.
    pub communicator: Option<Arc<str>>,
    /// The channel of the communicator that the connection is for.
    pub channel: Option<u32>,
}

impl RankEnd {
    /// The owner as the other end sees it.
    #[must_use]
    pub fn reversed(&self) -> Self {
        Self {
            rank: self.peer_rank,
            peer_rank: self.rank,
            ..self.clone()
        }
    }

    /// Facts of both, with those that only one has. Where they disagree nothing is known.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        Self {
            rank: agreed(self.rank.as_ref(), other.rank.as_ref()),
            peer_rank: agreed(self.peer_rank.as_ref(), other.peer_rank.as_ref()),
            communicator: agreed(self.communicator.as_ref(), other.communicator.as_ref()),
            channel: agreed(self.channel.as_ref(), other.channel.as_ref()),
        }
    }

    /// Facts that two owners of one number have in common: a number can have been used twice.
    fn common(&self, other: &Self) -> Self {
        fn same<T: Clone + PartialEq>(one: Option<&T>, other: Option<&T>) -> Option<T> {
            one.filter(|_| one == other).cloned()
        }
        Self {
            rank: same(self.rank.as_ref(), other.rank.as_ref()),
            peer_rank: same(self.peer_rank.as_ref(), other.peer_rank.as_ref()),
            communicator: same(self.communicator.as_ref(), other.communicator.as_ref()),
            channel: same(self.channel.as_ref(), other.channel.as_ref()),
        }
    }

    /// True if neither rank is known.
    pub fn is_unknown(&self) -> bool {
        self.rank.is_none() && self.peer_rank.is_none()
    }
}

fn agreed<T: Clone + PartialEq>(one: Option<&T>, other: Option<&T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => (one == other).then(|| one.clone()),
        (one, other) => one.or(other).cloned(),
    }
}

/// `rank 3 > rank 11, channel 2`: from the sender to the receiver.
impl fmt::Display for RankEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.rank, self.peer_rank) {
            (Some(rank), Some(peer)) => write!(f, "rank {rank} > rank {peer}")?,
            (Some(rank), None) => write!(f, "from rank {rank}")?,
            (None, Some(peer)) => write!(f, "to rank {peer}")?,
            (None, None) => return f.write_str("unknown ranks"),
        }
        match self.channel {
            Some(channel) => write!(f, ", channel {channel}"),
            None => Ok(()),
        }
    }
}

/// Owners of queue pairs, by address and number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranks {
    ends: HashMap<(Address, u32), RankEnd, foldhash::fast::RandomState>,
    left_out: u64,
}

impl Ranks {
    /// Notes an owner. Of a number that had several, only what all of them have in common stays known.
    pub fn insert(&mut self, address: Address, qpn: u32, end: RankEnd) {
        let key = (address, qpn);
        if let Some(known) = self.ends.get_mut(&key) {
            *known = known.common(&end);
        } else if self.ends.len() < MAX_ENDS {
            self.ends.insert(key, end);
        } else {
            self.left_out += 1;
        }
    }

    /// The owner of a queue pair.
    pub fn end(&self, address: Address, qpn: u32) -> Option<&RankEnd> {
        self.ends.get(&(address, qpn))
    }

    /// True if no queue pair is named.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Number of queue pairs that are named.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Number of queue pairs that found no room.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// An error that a job's log reports of one of its connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobError {
    /// The file and the line in it.
    pub place: String,
    /// The program that reports it.
    pub program: &'static str,
    /// The name of the status, such as `IBV_WC_RETRY_EXC_ERR`.
    pub status: String,
    /// The number of the status in `enum ibv_wc_status`.
    pub number: Option<u32>,
    /// The meaning of the status.
    pub meaning: &'static str,
    /// The adapter's own code.
    pub vendor_error: Option<u32>,
    /// It follows another error.
    pub is_consequence: bool,
    /// The rank that reports it.
    pub rank: Option<u32>,
    /// The address of the side that reports it.
    pub local: Option<Address>,
    /// The address of the other side.
    pub remote: Option<Address>,
    /// An address of the other side that may be of another network.
    pub peer: Option<Address>,
    /// The adapter of the side that reports it.
    pub adapter: Option<String>,
    /// The queue pair of the side that reports it.
    pub queue_pair: Option<u32>,
    /// The queue pair of the other side.
    pub remote_queue_pair: Option<u32>,
}

/// A job's own log, as far as it is about packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobLog {
    /// Owners of queue pairs.
    pub ranks: Ranks,
    /// Errors, in the order of the log.
    pub errors: Vec<JobError>,
    /// Rings and trees of its communicators.
    pub shapes: Vec<CollectiveRow>,
    /// Errors that found no room.
    pub errors_left_out: u64,
    /// Times of collectives at ranks, as documents state them.
    pub windows: Vec<JobWindow>,
}

/// The time of one collective at one rank, by the clock of the rank's host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobWindow {
    /// The communicator: only the windows of one can be related to each other.
    pub communicator: u64,
    /// The rank.
    pub rank: u32,
    /// The operation, and its number, which all ranks count alike.
    pub key: (Arc<str>, u64),
    /// Start of its kernel.
    pub start: Time,
    /// End of its kernel.
    pub end: Time,
}

impl FlowRow {
    /// The ranks of the flow's sender and receiver, where a log named either.
    pub fn ranks(&self) -> Option<RankEnd> {
        let end = RankEnd {
            rank: self.rank,
            peer_rank: self.peer_rank,
            communicator: self.communicator.as_deref().map(Arc::from),
            channel: self.channel,
        };
        (!end.is_unknown()).then_some(end)
    }

    /// Sets the ranks of sender and receiver.
    pub fn set_ranks(&mut self, end: &RankEnd) {
        self.rank = end.rank;
        self.peer_rank = end.peer_rank;
        self.communicator = end.communicator.as_deref().map(|name| name.to_owned().into());
        self.channel = end.channel;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(rank: u32, peer: u32, channel: u32) -> RankEnd {
        RankEnd {
            rank: Some(rank),
            peer_rank: Some(peer),
            communicator: Some("0x1f".into()),
            channel: Some(channel),
        }
    }

    #[test]
    fn a_number_that_was_used_twice_keeps_what_is_common() {
        let address = Address::v4([10, 0, 0, 1]);
        let mut ranks = Ranks::default();
        assert!(ranks.is_empty());
        ranks.insert(address, 0x11, end(3, 11, 2));
        assert_eq!(ranks.end(address, 0x11), Some(&end(3, 11, 2)));
        ranks.insert(address, 0x11, end(3, 12, 2));
        let common = ranks.end(address, 0x11).unwrap();
        assert_eq!(
            (common.rank, common.peer_rank, common.channel),
            (Some(3), None, Some(2))
        );
        // A fact that was stated in two ways stays unknown.
        ranks.insert(address, 0x11, end(3, 12, 2));
        assert_eq!(ranks.end(address, 0x11).unwrap().peer_rank, None);
        assert_eq!((ranks.len(), ranks.end(address, 0x12)), (1, None));
    }

    #[test]
    fn two_ends_complete_each_other() {
        let from = RankEnd {
            rank: Some(3),
            ..RankEnd::default()
        };
        let to = RankEnd {
            rank: Some(11),
            channel: Some(2),
            ..RankEnd::default()
        };
        let both = from.with(&to.reversed());
        assert_eq!(both.to_string(), "rank 3 > rank 11, channel 2");
        assert_eq!(both.reversed().to_string(), "rank 11 > rank 3, channel 2");
        // They disagree about the receiver.
        let other = end(3, 7, 2).with(&to.reversed());
        assert_eq!(other.to_string(), "from rank 3, channel 2");
        assert_eq!(to.reversed().to_string(), "to rank 11, channel 2");
        assert!(RankEnd::default().is_unknown());
    }

    #[test]
    fn a_row_says_what_it_knows() {
        let mut row = FlowRow::default();
        assert_eq!(row.ranks(), None);
        row.set_ranks(&end(3, 11, 2));
        assert_eq!(row.ranks(), Some(end(3, 11, 2)));
        assert_eq!(row.communicator.as_deref(), Some("0x1f"));
    }
}
