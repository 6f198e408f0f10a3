//! Ranks as documents of a job state them, and whether they fit the capture: its time, its hosts, its communicators.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};

use foldhash::fast::RandomState;
use roce_model::{Address, CreditRow, FlowRow, RankStateRow, Span};

/// Hosts, ranks and communicators of a capture that are kept.
const MAX_KNOWN: usize = 1 << 16;
/// Longest distance of a zone from UTC, in seconds: 14 h. A clock without a zone can be wrong by as much.
const MAX_ZONE_SECONDS: i64 = 14 * 3_600;
/// Longest time between a capture and a document about it: an hour.
const MAX_LATER_SECONDS: i64 = 3_600;
/// Hosts of a document that an error names.
const NAMED: usize = 3;

/// When a document is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StatedTime {
    /// It does not say.
    #[default]
    Unknown,
    /// Its first and last time, in nanoseconds since the Unix epoch.
    Epoch(u64, u64),
    /// It was written then, in nanoseconds since the Unix epoch, about something before.
    Written(u64),
    /// Local seconds since 1970, zone unknown.
    Local(i64),
}

/// Ranks as one document states them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StatedRanks {
    /// Its rows; traces and addresses are filled in when it is merged.
    pub rows: Vec<RankStateRow>,
    /// When it is from.
    pub time: StatedTime,
    /// True if its ranks count within the whole job, not within a communicator.
    pub is_global: bool,
    /// True if it has to name a captured host or a communicator of the job's log, since nothing else shows that it is of this job.
    pub needs_host: bool,
}

/// Hosts, ranks and communicators that a capture shows.
#[derive(Clone, Debug, Default)]
pub(super) struct CapturedJob {
    hosts: HashSet<Address, RandomState>,
    communicators: HashSet<String, RandomState>,
    /// Queue pairs, by the host that they are at.
    queue_pairs: HashSet<(Address, u32), RandomState>,
    /// Address of each rank; `None`: of several.
    ranks: HashMap<u32, Option<Address>, RandomState>,
    highest_rank: Option<u32>,
}

impl CapturedJob {
    pub(super) fn flow(&mut self, row: &FlowRow) {
        for host in [row.source, row.destination] {
            if self.hosts.len() < MAX_KNOWN {
                self.hosts.insert(host);
            }
        }
        if self.queue_pairs.len() < MAX_KNOWN {
            self.queue_pairs.insert((row.destination, row.destination_qpn));
        }
        self.rank(row.rank, row.source);
        self.rank(row.peer_rank, row.destination);
        if let Some(name) = row
            .communicator
            .as_deref()
            .filter(|_| self.communicators.len() < MAX_KNOWN)
        {
            self.communicators.insert(name.to_owned());
        }
    }

    /// True if one of these queue pairs is at a host, or at any host.
    pub(super) fn has_queue_pair(&self, host: Option<Address>, numbers: &BTreeSet<u32>) -> bool {
        let mut known = self.queue_pairs.iter();
        known.any(|(at, number)| host.is_none_or(|host| host == *at) && numbers.contains(number))
    }

    /// Ranks that credits name.
    pub(super) fn credits(&mut self, rows: &[CreditRow]) {
        for row in rows {
            self.rank(row.sender_rank, row.sender);
            self.rank(row.receiver_rank, row.receiver);
        }
    }

    fn rank(&mut self, rank: Option<u32>, address: Address) {
        let Some(rank) = rank else { return };
        let room = self.ranks.len() < MAX_KNOWN;
        match self.ranks.entry(rank) {
            Entry::Occupied(mut known) => {
                if *known.get() != Some(address) {
                    known.insert(None);
                }
            }
            Entry::Vacant(place) if room => {
                place.insert(Some(address));
                self.highest_rank = self.highest_rank.max(Some(rank));
            }
            Entry::Vacant(_) => {}
        }
    }

    /// The address of a rank of the whole job.
    fn address_of(&self, rank: Option<u32>) -> Option<Address> {
        self.ranks.get(&rank?).copied().flatten()
    }

    /// True if ranks of a communicator of this size can be those of the whole job: no rank is beyond it.
    fn is_whole(&self, size: Option<u32>) -> bool {
        size.is_some_and(|size| self.highest_rank.is_none_or(|rank| rank < size))
    }

    /// Address of a host that a document names, if it is captured.
    fn host(&self, name: &str) -> Option<Address> {
        let address: std::net::IpAddr = name.parse().ok()?;
        Some(Address::from(address)).filter(|address| self.hosts.contains(address))
    }
}

impl StatedRanks {
    /// Rows of a document that fits the capture, with their addresses. `given` is the address that somebody gave with it.
    ///
    /// # Errors
    /// In words: it is of another time or of other hosts.
    pub(super) fn placed(
        &self,
        (trace, given): (u32, Option<Address>),
        captured: &CapturedJob,
        span: Option<(u64, u64)>,
    ) -> Result<Vec<RankStateRow>, String> {
        self.time.check(span)?;
        let is_elsewhere = |address: &Address| !self.rows.is_empty() && !captured.hosts.contains(address);
        if let Some(address) = given.filter(is_elsewhere) {
            return Err(format!("its host {address} is not in the capture"));
        }
        let by_name = |row: &RankStateRow| row.hostname.as_deref().and_then(|name| captured.host(name));
        let by_hash = |row: &RankStateRow| {
            let name = row.communicator.as_deref();
            name.is_some_and(|name| captured.communicators.contains(name))
        };
        let is_known = |row: &RankStateRow| given.is_some() || by_name(row).is_some() || by_hash(row);
        if self.needs_host && !self.rows.is_empty() && !self.rows.iter().any(is_known) {
            let mut names: Vec<&str> = self
                .rows
                .iter()
                .filter_map(|row| row.hostname.as_deref())
                .collect();
            names.sort_unstable();
            names.dedup();
            let more = if names.len() > NAMED { ", ..." } else { "" };
            names.truncate(NAMED);
            return Err(format!(
                "none of its hosts is in the capture ({}{more}), and no log names its communicator\nhint: --nccl-log \
                 names communicators, and ADDRESS=FILE says of which host a document is",
                names.join(", ")
            ));
        }
        let rows = self.rows.iter().map(|row| {
            let is_top = self.is_global || captured.is_whole(row.ranks);
            let by_rank = || captured.address_of(row.rank.filter(|_| is_top));
            RankStateRow {
                trace,
                address: given.or_else(|| by_name(row)).or_else(by_rank),
                ..row.clone()
            }
        });
        Ok(rows.collect())
    }
}

impl StatedTime {
    /// Compares with the time of the traffic, from its first to its last nanosecond.
    fn check(self, span: Option<(u64, u64)>) -> Result<(), String> {
        let Some((first, last)) = span.map(|(first, last)| (seconds(first), seconds(last))) else {
            return Err("the capture has no traffic".to_owned());
        };
        let (begin, end, earlier, later) = match self {
            Self::Unknown => return Ok(()),
            Self::Epoch(begin, end) => (seconds(begin), seconds(end), 1, 1),
            Self::Written(at) => (seconds(at), seconds(at), 1, MAX_LATER_SECONDS),
            Self::Local(at) => (at, at, MAX_ZONE_SECONDS, MAX_ZONE_SECONDS + MAX_LATER_SECONDS),
        };
        if end >= first - earlier && begin <= last + later {
            return Ok(());
        }
        let zone = match self {
            Self::Local(_) => ", in some zone",
            _ => "",
        };
        Err(format!(
            "its times are from {begin} s to {end} s since the epoch{zone}, the traffic from {first} s to {last} s"
        ))
    }
}

fn seconds(time: u64) -> i64 {
    i64::try_from(time / Span::SECOND.0).unwrap_or(i64::MAX / 2)
}
