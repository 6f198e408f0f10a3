//! Which arrivals a message needs. A ring passes on what the rank before sent some messages earlier, a tree what came
//! from below or above, and an exchange of all with all nothing: a need that the order of packets breaks is none.

use crate::job::{Job, Link};

/// Messages that are compared for a pair of connections, at most.
const MAX_COMPARED: usize = 1_024;

/// Messages that are compared, at least.
const MIN_COMPARED: usize = 4;

/// Connections that one passes on, at most: the children of a rank in a tree, and rings that run in step.
const MAX_INPUTS: usize = 4;

/// One of so many messages may be sent before its input: stamps have errors, and several queue pairs overtake.
const ORDERED_OF: usize = 30;

/// Messages between one that arrives and the one that passes it on: slices of a chunk (NCCL, `src/enqueue.cc`).
const SHIFTS: [u64; 4] = [0, 1, 2, 4];

/// Credits that are unused at once, at most (NCCL's `NCCL_STEPS`, `src/include/device.h`).
const MAX_DEPTH: usize = 8;

/// Median time from the arrival of a message until the one that would pass it on is sent, in nanoseconds. None if
/// some are sent before.
fn passing_time(from: &Link, to: &Link, shift: u64) -> Option<i64> {
    let stride = to.messages.len().div_ceil(MAX_COMPARED).max(1);
    let mut times = Vec::new();
    let mut before = 0;
    for message in to.messages.iter().step_by(stride) {
        if u64::from(message.place) < shift {
            continue;
        }
        let number = message.number - to.base + from.base - shift;
        let Some(place) = from.message(number) else {
            continue;
        };
        let passed = message.first_out - from.messages[place].last_in;
        before += usize::from(passed < 0);
        times.push(passed);
    }
    if times.len() < MIN_COMPARED || before * ORDERED_OF > times.len() {
        return None;
    }
    let middle = times.len() / 2;
    Some(*times.select_nth_unstable(middle).1)
}

/// A shift is the job's if so many percent of the connections have inputs at it of those that have any at another one.
const MIN_LINKS_PERCENT: usize = 75;

/// Finds for each connection the ones that its rank passes on by it. The shift is the smallest one that the order of
/// packets allows nearly everywhere: behind a late rank, much has come before it is needed.
pub(crate) fn find_inputs(job: &mut Job) {
    let mut arriving = vec![Vec::new(); job.ranks.len()];
    for (place, link) in job.links.iter().enumerate() {
        arriving[link.receiver].push(place);
    }
    let at_shift = |shift| -> Vec<Vec<(usize, u64)>> {
        job.links
            .iter()
            .map(|to| inputs_at(job, &arriving[to.sender], to, shift))
            .collect()
    };
    let count = |found: &[Vec<(usize, u64)>]| found.iter().filter(|found| !found.is_empty()).count();
    let shifts: Vec<Vec<Vec<(usize, u64)>>> = SHIFTS.map(at_shift).into();
    let largest = shifts.iter().map(|found| count(found)).max().unwrap_or(0);
    let smallest = shifts
        .iter()
        .position(|found| count(found) * 100 >= largest * MIN_LINKS_PERCENT)
        .unwrap_or(0);
    // A connection whose packets contradict it passes on what came still earlier.
    let inputs: Vec<Vec<(usize, u64)>> = (0..job.links.len())
        .map(|link| {
            let mut found = shifts[smallest..].iter().map(|found| &found[link]);
            found.find(|found| !found.is_empty()).cloned().unwrap_or_default()
        })
        .collect();
    for (to, inputs) in inputs.into_iter().enumerate() {
        for &(from, shift) in &inputs {
            job.links[from].consumers.push((to, shift));
        }
        let link = &mut job.links[to];
        link.inputs = inputs;
        link.depth = depth(link);
    }
}

fn inputs_at(job: &Job, arriving: &[usize], to: &Link, shift: u64) -> Vec<(usize, u64)> {
    let mut found: Vec<(i64, usize)> = arriving
        .iter()
        .filter(|&&place| {
            let channels = job.links[place].channel.zip(to.channel);
            channels.is_none_or(|(from, to)| from == to)
        })
        .filter_map(|&place| passing_time(&job.links[place], to, shift).map(|time| (time, place)))
        .collect();
    found.sort_unstable();
    found.truncate(MAX_INPUTS);
    found.into_iter().map(|(_, place)| (place, shift)).collect()
}

/// Largest count of credits that were at the sender, unused, when it sent a message.
fn depth(link: &Link) -> u64 {
    link.messages
        .windows(MAX_DEPTH)
        .map(|messages| {
            let sent = messages[0].first_out;
            messages
                .iter()
                .take_while(|message| message.credit_in <= sent)
                .count()
        })
        .max()
        .unwrap_or(1)
        .max(1) as u64
}
