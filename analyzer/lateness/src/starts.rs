//! When each rank began and ended each collective, and when its host posted it.

use crate::job::{Job, Link, Message, UNKNOWN};

/// A message that follows its last need within this part of the time since the rank's last collective waited for that
/// need: nothing shows when the rank itself was ready.
const MIN_READY_DIVISOR: i64 = 16;

/// A shorter time after a need says nothing about when a rank was ready, in nanoseconds.
const MIN_READY: i64 = 10_000;

/// One rank in one collective. Times are [`UNKNOWN`] if it takes no part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankTime {
    /// When it was ready to send.
    pub(crate) start: i64,
    /// When its host posted the first receive.
    pub(crate) post: i64,
    /// Its last arrival, or the last acknowledgement that it got.
    pub(crate) end: i64,
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

impl RankTimes {
    pub(crate) fn new(job: &Job) -> Self {
        let mut ranks = vec![vec![RankTime::default(); job.ranks.len()]; job.collectives()];
        let mut firsts = vec![vec![false; job.ranks.len()]; job.collectives()];
        let mut lost_ends = vec![vec![false; job.ranks.len()]; job.collectives()];
        for link in &job.links {
            for message in &link.messages {
                let collective = message.collective as usize;
                let sender = &mut ranks[collective][link.sender];
                let left = if message.acknowledged == UNKNOWN {
                    message.last_out
                } else {
                    message.acknowledged
                };
                sender.end = sender.end.max(left);
                if earliest(&mut sender.start, message.first_out) {
                    sender.needed = needed(job, link, message);
                }
                firsts[collective][link.sender] |= message.place == 0;
                let receiver = &mut ranks[collective][link.receiver];
                receiver.end = receiver.end.max(message.last_in);
                earliest(&mut receiver.post, message.credit_out);
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
        times.set_hidden_starts();
        times
    }

    /// End of the rank's collective before.
    fn end_before(&self, collective: usize, rank: usize) -> Option<i64> {
        let end = self.ranks[collective.checked_sub(1)?][rank].end;
        (end != UNKNOWN).then_some(end)
    }

    /// A rank that waited for its credit or its input was ready earlier: as early as the
    /// earliest one.
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
            let Some(&shortest) = computing.iter().min() else {
                continue;
            };
            for rank in 0..self.ranks[collective].len() {
                let before = self.end_before(collective, rank);
                let time = &mut self.ranks[collective][rank];
                if !time.is_ready
                    && let Some(before) = before
                {
                    time.start = time.start.min(before + shortest);
                }
            }
        }
    }
}
