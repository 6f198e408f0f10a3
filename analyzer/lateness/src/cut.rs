//! Cuts a job into collectives: at counts of messages at which every connection rests. A rest of one connection alone,
//! or at another count, is a wait inside of a collective. Silence of all connections at one time is no cut: while one
//! waits for a timeout, its neighbours begin the next collective.

use std::collections::BTreeMap;

use crate::job::Job;

/// Rests between collectives are so many times longer than nearly all rests inside of them.
const MIN_RATIO: f64 = 3.0;

/// More turns than these give a division no more weight.
const MAX_WEIGHT: usize = 8;

/// Divisions that are tried: by so many of the largest steps among the lengths of rests.
const MAX_STEPS: usize = 12;

/// Collectives of different sizes that follow each other in turn, at most.
const MAX_TURN: usize = 8;

/// Rests are only listed while numbers are at most so many times more than messages.
const MAX_SPARSENESS: u64 = 8;

/// Counts of messages at which a job may be cut: all that have one of some remainders.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Grid {
    /// Messages of one turn.
    turn: usize,
    /// Remainders of the counts at which a collective begins.
    remainders: Vec<usize>,
}

impl Grid {
    fn contains(&self, count: usize) -> bool {
        self.remainders.binary_search(&(count % self.turn)).is_ok()
    }
}

/// First number of each connection's first collective. Numbers of connections that were made together are alike.
pub(crate) fn set_bases(job: &mut Job) {
    let firsts = || {
        job.links
            .iter()
            .filter_map(|link| link.messages.first().map(|message| message.number))
    };
    let (Some(least), Some(largest)) = (firsts().min(), firsts().max()) else {
        return;
    };
    let alike = largest - least <= crate::job::COUNT_MARGIN;
    for link in &mut job.links {
        let own = link.messages.first().map_or(0, |message| message.number);
        link.base = if alike { least } else { own };
    }
}

/// The shortest rest of any connection before its nth message, in nanoseconds. Where messages are left out, each of
/// them may be the one after the rest.
fn rests(job: &Job) -> Option<Vec<i64>> {
    let last = |link: &crate::job::Link| {
        link.messages
            .last()
            .map_or(0, |message| message.number - link.base + 1)
    };
    let length = job.links.iter().map(last).max()?;
    let most = job.links.iter().map(|link| link.messages.len()).max()? as u64;
    if length > most.saturating_mul(MAX_SPARSENESS) {
        return None;
    }
    let mut rests = vec![i64::MAX; usize::try_from(length).ok()?];
    for link in &job.links {
        for pair in link.messages.windows(2) {
            // A collective is over before the receiver gives credits for the next one: its proxy thread has no other.
            let is_over = pair[1].number > pair[0].number + 1 || pair[1].credit_out >= pair[0].last_in;
            let rest = if is_over {
                pair[1].first_out - pair[0].first_out
            } else {
                0
            };
            let places = pair[0].number - link.base + 1..=pair[1].number - link.base;
            for place in places {
                let shortest = &mut rests[usize::try_from(place).ok()?];
                *shortest = rest.min(*shortest);
            }
        }
    }
    Some(rests)
}

/// Divisions that the longest rests suggest.
fn candidates(rests: &[i64]) -> Vec<Grid> {
    let mut order: Vec<usize> = (1..rests.len())
        .filter(|&place| rests[place] != i64::MAX)
        .collect();
    order.sort_unstable_by_key(|&place| (-rests[place], place));
    let mut steps: Vec<(f64, usize)> = order
        .windows(2)
        .enumerate()
        .map(|(place, pair)| (ratio(rests[pair[0]], rests[pair[1]]), place + 1))
        .collect();
    steps.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut lengths: Vec<usize> = steps.iter().take(MAX_STEPS).map(|&(_, length)| length).collect();
    lengths.push(order.len());
    let mut grids: Vec<Grid> = lengths
        .into_iter()
        .filter(|&length| length > 0)
        .flat_map(|length| {
            let mut places = order[..length].to_vec();
            places.sort_unstable();
            grids_of(&places, rests.len())
        })
        .collect();
    grids.sort();
    grids.dedup();
    grids
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a ratio of lengths of time: 2^53 ns are 104 days"
)]
fn ratio(longer: i64, shorter: i64) -> f64 {
    longer as f64 / shorter.max(1) as f64
}

/// The value that comes most often, the smallest of several.
fn mode(values: impl Iterator<Item = usize>) -> Option<usize> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    counts
        .into_iter()
        .max_by_key(|&(value, count)| (count, std::cmp::Reverse(value)))
        .map(|(value, _)| value)
}

/// Divisions that have most of these counts: of one size, or of some sizes in turn.
fn grids_of(places: &[usize], length: usize) -> Vec<Grid> {
    if let &[place] = places {
        let turn = place.max(length - place);
        return vec![Grid {
            turn,
            remainders: vec![place % turn],
        }];
    }
    (1..=MAX_TURN.min(places.len() - 1))
        .filter_map(|sizes| {
            let steps = places.iter().zip(&places[sizes..]);
            let turn = mode(steps.map(|(one, other)| other - one))?;
            let mut votes: BTreeMap<usize, usize> = BTreeMap::new();
            for place in places {
                *votes.entry(place % turn).or_default() += 1;
            }
            let mut votes: Vec<(usize, usize)> =
                votes.into_iter().map(|(place, count)| (count, place)).collect();
            votes.sort_unstable_by_key(|&(count, place)| (std::cmp::Reverse(count), place));
            // No message is before the first one: it begins no collective that could be cut off.
            let expected = (length - 1) / turn;
            let mut remainders: Vec<usize> = votes
                .iter()
                .take(sizes)
                .filter(|&&(count, _)| count * 10 >= expected * 7)
                .map(|&(_, place)| place)
                .collect();
            remainders.sort_unstable();
            (remainders.len() == sizes).then_some(Grid { turn, remainders })
        })
        .collect()
}

/// Weight of a division: how much longer its rests are than all others, and how many turns there are. Several sizes in
/// turn weigh less, since they fit by chance more easily.
#[expect(clippy::cast_precision_loss, reason = "at most 8 turns have weight")]
fn weight(grid: &Grid, rests: &[i64]) -> Option<f64> {
    let (mut on, mut off): (Vec<i64>, Vec<i64>) = (Vec::new(), Vec::new());
    for (place, &rest) in rests.iter().enumerate().skip(1) {
        if rest == i64::MAX {
            continue;
        }
        if grid.contains(place) {
            on.push(rest);
        } else {
            off.push(rest);
        }
    }
    if on.is_empty() {
        return None;
    }
    // No credit ever comes before the message before it has: receivers offer at least four buffers at once, if a
    // collective has so many messages. Each message is a collective.
    if off.is_empty() {
        return on.iter().all(|&rest| rest > 0).then_some(f64::INFINITY);
    }
    let (tenth, cuts) = (on.len() / 10, on.len());
    let shorter = *on.select_nth_unstable(tenth).1;
    let place = off.len() * 99 / 100;
    let longer = *off.select_nth_unstable(place).1;
    let ratio = ratio(shorter, longer);
    let turns = (cuts / grid.remainders.len()).clamp(1, MAX_WEIGHT);
    (ratio >= MIN_RATIO).then(|| ratio.ln() * turns as f64 / grid.remainders.len() as f64)
}

/// Cuts the job: each message gets its collective and its place there. Without a division, all are one collective.
/// False if nothing shows where one collective ends and the next begins.
pub(crate) fn cut(job: &mut Job) -> bool {
    set_bases(job);
    let rests = rests(job).unwrap_or_default();
    // One cut alone repeats nothing: a message that is left out looks like a rest.
    let cuts = |grid: &Grid| (1..rests.len()).filter(|&place| grid.contains(place)).count();
    let best = candidates(&rests)
        .into_iter()
        .filter(|grid| cuts(grid) > 1)
        .filter_map(|grid| weight(&grid, &rests).map(|weight| (weight, grid)))
        .max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)))
        .map(|(_, grid)| grid);
    let mut starts = vec![0];
    if let Some(grid) = &best {
        starts.extend((1..rests.len()).filter(|&place| grid.contains(place)));
    }
    job.starts = starts.into_iter().map(|start| start as u64).collect();
    number_messages(job);
    best.is_some()
}

/// Writes collective and place into each message, and counts those that are left out.
pub(crate) fn number_messages(job: &mut Job) {
    let mut found = vec![0_u64; job.starts.len()];
    let mut all = vec![0_u64; job.starts.len()];
    let starts = &job.starts;
    for link in &mut job.links {
        let mut collective = 0;
        for message in &mut link.messages {
            let count = message.number - link.base;
            while starts.get(collective + 1).is_some_and(|&next| next <= count) {
                collective += 1;
            }
            message.collective = u32::try_from(collective).unwrap_or(u32::MAX);
            message.place = u32::try_from(count - starts[collective]).unwrap_or(u32::MAX);
            found[collective] += 1;
        }
        let end = link
            .messages
            .last()
            .map_or(0, |message| message.number - link.base + 1);
        for (place, &start) in starts.iter().enumerate() {
            let next = starts.get(place + 1).copied().unwrap_or(u64::MAX);
            all[place] += next.min(end).saturating_sub(start);
        }
    }
    job.left_out = found
        .iter()
        .zip(&all)
        .map(|(&found, &all)| (all.saturating_sub(found), all))
        .collect();
}
