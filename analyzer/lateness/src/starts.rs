//! When each rank began and ended each collective, and when its host posted it.

use crate::job::{Job, Link, Message, UNKNOWN};
use crate::middle::median;

/// A message that follows its last need within this part of the time since the rank's last collective waited for that
/// need: nothing shows when the rank itself was ready.
const MIN_READY_DIVISOR: i64 = 16;

/// A shorter time after a need says nothing about when a rank was ready, in nanoseconds.
const MIN_READY: i64 = 10_000;

/// Buffers that a receiver has, at least (NCCL, `src/enqueue.cc`: 4 or 8). Where fewer credits were unused at once, nothing shows which of them
/// give back a buffer.
const MIN_DEPTH: u64 = 4;

/// A rank computes for less than is usual by this part at most.
const MAX_SHORTER_DIVISOR: i64 = 4;

/// One rank in one collective. Times are [`UNKNOWN`] if it takes no part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankTime {
    /// When it was ready: it sent, or gave back a buffer.
    pub(crate) start: i64,
    /// When its host posted the first receive.
    pub(crate) post: i64,
    /// Its last arrival, or when its last message began to leave; the last acknowledgement, if it waits for them.
    pub(crate) end: i64,
    /// True if it computes its usual time after the last acknowledgement that it got. A kernel waits for them only where the network reads from the
    /// user's own buffers (NCCL, `src/device/prims_simple.h`, `~Primitives`).
    pub(crate) waits_for_answers: bool,
    /// The last acknowledgement that it got.
    answered: i64,
    /// True if messages are left out that may have been its first ones, or the last ones of the collective before.
    pub(crate) is_blind: bool,
    /// True if it began when it was ready, not when its credit or its input came.
    pub(crate) is_ready: bool,
    /// Last need of its first message.
    needed: i64,
}

impl Default for RankTime {
    fn default() -> Self {
        Self {
            start: UNKNOWN,
            post: UNKNOWN,
            end: UNKNOWN,
            waits_for_answers: false,
            answered: UNKNOWN,
            is_blind: false,
            is_ready: false,
            needed: UNKNOWN,
        }
    }
}

/// All ranks in all collectives: `ranks[collective][rank]`.
pub(crate) struct RankTimes {
    pub(crate) ranks: Vec<Vec<RankTime>>,
}

fn earliest(known: &mut i64, time: i64) -> bool {
    let earlier = *known == UNKNOWN || time < *known;
    if earlier {
        *known = time;
    }
    earlier
}

/// Last need of the first message of a collective, beside the start of its rank.
fn needed(job: &Job, link: &Link, message: &Message) -> i64 {
    link.inputs
        .iter()
        .filter(|&&(_, shift)| shift == 0)
        .filter_map(|&(from, _)| {
            let from = &job.links[from];
            let place = from.message(message.number - link.base + from.base)?;
            Some(from.messages[place].last_in)
        })
        .fold(message.credit_in, i64::max)
}

/// The message whose buffer a credit gives back: the rank's GPU has used it, so it has started.
fn used<'a>(link: &'a Link, message: &Message) -> Option<&'a Message> {
    let is_freed = link.depth >= MIN_DEPTH && u64::from(message.place) >= link.depth;
    let place = is_freed.then(|| link.message(message.number - link.depth))??;
    link.messages.get(place)
}

/// When the last of the data came that the buffer of a message is used with, until its credit left: a rank makes one message of those of several
/// connections.
fn used_with(job: &Job, place: usize, used: &Message, credit_out: i64) -> i64 {
    let others = job.made_with(place, used.number).filter_map(|(from, number)| {
        let from = &job.links[from];
        Some(from.messages[from.message(number)?].last_in)
    });
    others
        .filter(|&came| came <= credit_out)
        .fold(used.last_in, i64::max)
}

impl RankTimes {
    pub(crate) fn new(job: &Job) -> Self {
        let mut ranks = vec![vec![RankTime::default(); job.ranks.len()]; job.collectives()];
        let mut firsts = vec![vec![false; job.ranks.len()]; job.collectives()];
        let mut lost_ends = vec![vec![false; job.ranks.len()]; job.collectives()];
        for (place, link) in job.links.iter().enumerate() {
            for message in &link.messages {
                let collective = message.collective as usize;
                let sender = &mut ranks[collective][link.sender];
                sender.end = sender.end.max(message.first_out);
                sender.answered = sender.answered.max(message.acknowledged);
                if earliest(&mut sender.start, message.first_out) {
                    sender.needed = needed(job, link, message);
                }
                firsts[collective][link.sender] |= message.place == 0;
                let receiver = &mut ranks[collective][link.receiver];
                receiver.end = receiver.end.max(message.last_in);
                earliest(&mut receiver.post, message.credit_out);
                if job.is_captured()
                    && let Some(used) = used(link, message)
                    && earliest(&mut receiver.start, message.credit_out)
                {
                    receiver.needed = used_with(job, place, used, message.credit_out);
                }
            }
            for (collective, &next) in job.starts.iter().skip(1).enumerate() {
                if link.message(link.base + next - 1).is_none() {
                    lost_ends[collective][link.sender] = true;
                    lost_ends[collective][link.receiver] = true;
                }
            }
        }
        for collective in 0..ranks.len() {
            for rank in 0..job.ranks.len() {
                ranks[collective][rank].is_blind = !firsts[collective][rank]
                    || collective
                        .checked_sub(1)
                        .is_some_and(|before| lost_ends[before][rank]);
            }
        }
        let mut times = Self { ranks };
        times.find_waits_for_answers();
        times.set_hidden_starts();
        times
    }

    /// End of the rank's collective before. Of the first collective, the first start of all ranks: what was before it is
    /// not captured.
    fn end_before(&self, collective: usize, rank: usize) -> Option<i64> {
        let Some(before) = collective.checked_sub(1) else {
            let starts = self.ranks.first()?.iter().map(|time| time.start);
            return starts.filter(|&start| start != UNKNOWN).min();
        };
        let end = self.ranks[before][rank].end;
        (end != UNKNOWN).then_some(end)
    }

    /// Finds the ranks that wait for acknowledgements at the end of a collective, by the time that is left until the next one.
    fn find_waits_for_answers(&mut self) {
        let computing = |ranks: &[RankTime], next: &[RankTime], rank: usize| {
            let (end, start) = (ranks[rank].end, next[rank].start);
            (end != UNKNOWN && start != UNKNOWN).then(|| start - end)
        };
        let mut all: Vec<i64> = self
            .ranks
            .windows(2)
            .flat_map(|pair| (0..pair[0].len()).filter_map(|rank| computing(&pair[0], &pair[1], rank)))
            .collect();
        let usual = median(&mut all);
        for collective in 1..self.ranks.len() {
            for rank in 0..self.ranks[collective].len() {
                let start = self.ranks[collective][rank].start;
                let before = &mut self.ranks[collective - 1][rank];
                let is_later = before.answered != UNKNOWN && before.answered > before.end;
                if is_later
                    && start != UNKNOWN
                    && start - before.answered >= usual - usual / MAX_SHORTER_DIVISOR
                {
                    before.waits_for_answers = true;
                    before.end = before.answered;
                }
            }
        }
    }

    /// A rank that waited for its credit or its input was ready earlier: as early as the earliest one, but not before its host posted its receives
    /// (NCCL starts the proxy's operations with the kernel's launch, `src/enqueue.cc`).
    fn set_hidden_starts(&mut self) {
        for collective in 0..self.ranks.len() {
            let mut computing = Vec::new();
            for rank in 0..self.ranks[collective].len() {
                let before = self.end_before(collective, rank);
                let time = &mut self.ranks[collective][rank];
                if time.start == UNKNOWN {
                    continue;
                }
                let all = before.map_or(0, |before| time.start - before);
                time.is_ready = time.start - time.needed >= (all / MIN_READY_DIVISOR).max(MIN_READY);
                if time.is_ready
                    && let Some(before) = before
                {
                    computing.push(time.start - before);
                }
            }
            let shortest = match computing.iter().min() {
                _ if collective == 0 => 0,
                Some(&shortest) => shortest,
                None => continue,
            };
            for rank in 0..self.ranks[collective].len() {
                let before = self.end_before(collective, rank);
                let time = &mut self.ranks[collective][rank];
                if !time.is_ready
                    && let Some(before) = before
                {
                    let hidden = before + shortest;
                    time.is_ready = time.post > hidden;
                    time.start = time.start.min(hidden.max(time.post));
                }
            }
        }
    }
}
