//! Cuts a job into collectives where documents of the job say that each rank began and ended one. A message belongs to the collective
//! whose times at its sender it is nearest to; all connections have to agree on the count of messages before each collective.

use std::collections::BTreeMap;
use std::sync::Arc;

use roce_model::JobWindow;

use crate::cut::{number_messages, set_bases};
use crate::job::{Job, Link};

/// At most one in this number of collectives may begin at different counts. Else the documents are of another clock, or another job.
const MIN_AGREED: usize = 10;

/// An operation and its number.
type CollectiveKey = (Arc<str>, u64);

/// The start and end of each collective at one rank.
type RankWindows<'a> = Vec<(i64, i64, &'a CollectiveKey)>;

/// Cuts the job by `windows`. False: they do not fit, or there are none, and nothing is cut.
pub(crate) fn cut(job: &mut Job, windows: &[JobWindow]) -> bool {
    let Some(first) = windows.first() else {
        return false;
    };
    // Ranks of a communicator are not those of another one, and no packet has its name.
    if windows
        .iter()
        .any(|window| window.communicator != first.communicator)
    {
        return false;
    }
    let ranks = by_rank(windows);
    set_bases(job);
    let mut counts: BTreeMap<&CollectiveKey, Vec<u64>> = BTreeMap::new();
    for link in &job.links {
        let number = job.ranks.get(link.sender).and_then(|rank| rank.number);
        let Some(windows) = number.and_then(|number| ranks.get(&number)) else {
            continue;
        };
        let Some(starts) = starts_of(link, windows) else {
            return false;
        };
        for (key, count) in starts {
            counts.entry(key).or_default().push(count);
        }
    }
    let is_agreed = |counts: &&Vec<u64>| counts.iter().all(|count| counts.first() == Some(count));
    let agreed = counts.values().filter(is_agreed);
    let mut starts: Vec<u64> = agreed
        .clone()
        .filter_map(|counts| counts.first().copied())
        .collect();
    let disagreed = counts.len() - agreed.count();
    starts.push(0);
    starts.sort_unstable();
    starts.dedup();
    if starts.len() < 2 || disagreed * MIN_AGREED > counts.len() {
        return false;
    }
    job.starts = starts;
    number_messages(job);
    true
}

fn by_rank(windows: &[JobWindow]) -> BTreeMap<u32, RankWindows<'_>> {
    let signed = |time: u64| i64::try_from(time).unwrap_or(i64::MAX / 2);
    let mut ranks: BTreeMap<u32, RankWindows<'_>> = BTreeMap::new();
    for window in windows {
        let times = (signed(window.start.0), signed(window.end.0), &window.key);
        ranks.entry(window.rank).or_default().push(times);
    }
    for windows in ranks.values_mut() {
        windows.sort_unstable_by_key(|window| (window.0, window.1));
    }
    ranks
}

/// Counts of the connection's messages before each collective but the first. None if two collectives overlap, the messages of one are
/// among those of another, or some are before or after all of them: the documents then have only a part of the capture.
fn starts_of<'a>(link: &Link, windows: &RankWindows<'a>) -> Option<Vec<(&'a CollectiveKey, u64)>> {
    // The clocks of documents and captures differ by less than half of the time between two collectives.
    let mut boundaries = Vec::with_capacity(windows.len());
    let mut margin = 0;
    for pair in windows.windows(2) {
        let ((_, end, _), (start, _, key)) = (pair[0], pair[1]);
        if start < end {
            return None;
        }
        boundaries.push((end.midpoint(start), key));
        margin = margin.max((start - end) / 2);
    }
    let (first, last) = (windows.first()?.0 - margin, windows.last()?.1 + margin);
    if link
        .messages
        .iter()
        .any(|message| message.first_out < first || message.first_out > last)
    {
        return None;
    }
    let collective = |time: i64| boundaries.partition_point(|(boundary, _)| *boundary <= time);
    let mut before = collective(link.messages.first()?.first_out);
    let mut starts = Vec::new();
    for message in &link.messages {
        let now = collective(message.first_out);
        if now < before {
            return None;
        }
        // A collective without messages, such as one within a host, begins where the next one does.
        let begun = boundaries.get(before..now).unwrap_or_default();
        starts.extend(begun.iter().map(|(_, key)| (*key, message.number - link.base)));
        before = now;
    }
    Some(starts)
}
