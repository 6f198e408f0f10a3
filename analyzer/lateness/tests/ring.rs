//! A ring of ranks that do one `AllReduce` in each step, with the times that its rules give, and one thing made late.
//!
//! With n ranks and two slices in a chunk, each rank sends 4 (n - 1) messages in a collective: n - 1 chunks to reduce
//! and n - 1 to gather. Message k passes on message k - 2 of the rank before. A receiver has four buffers, and gives
//! the next credit when it has used one: when it has made message k - 2 of it.
//!
//! The price that is expected of a late thing is arithmetic: the end of the same ring with it, less the end without.

#![expect(clippy::unwrap_used, reason = "tests, in functions of their own")]

use roce_lateness::{JobLateness, LateKind, LateRoot, LateStart, Lateness, find_lateness};
use roce_model::{Confidence, CreditedConnection, CreditedMessage, FlowId, JobWindow, Passage, Time};
use roce_wire::Address;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
/// Messages that a receiver has buffers for.
const BUFFERS: usize = 4;
/// Messages of a chunk.
const SLICES: usize = 2;
/// From one port to the other.
const WAY: u64 = 2 * US;
/// 64 KiB at 100 Gbit/s.
const SEND: u64 = 5_300;
/// A GPU makes one message of another.
const MAKE: u64 = 4 * US;
/// A proxy thread posts a credit.
const POST: u64 = US;
const COMPUTE: u64 = 5 * MS;
const TIMEOUT: u64 = 100 * MS;

/// One thing that is late.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Nothing,
    Gpu(usize, u64),
    Host(usize, u64),
    Receiver(usize, u64),
    /// The port of a rank is slower by a factor.
    Port(usize, u64),
    /// The last packet from a rank to the next one is lost in a collective: collective, rank, message.
    Lost(usize, usize, usize),
    /// All ranks are late.
    All(u64),
}

#[derive(Clone, Copy)]
struct RingJob {
    ranks: usize,
    collectives: usize,
    /// Times that each collective goes around the ring. A rank has received all of a round before it begins the next one.
    rounds: usize,
    fault: Fault,
}

const RING: RingJob = RingJob {
    ranks: 4,
    collectives: 8,
    rounds: 1,
    fault: Fault::Nothing,
};

#[derive(Clone, Copy, Default)]
struct Times {
    credit_out: u64,
    credit_in: u64,
    first_out: u64,
    last_out: u64,
    last_in: u64,
    acknowledged: u64,
    repeated: u32,
}

impl RingJob {
    fn with(fault: Fault) -> Self {
        Self { fault, ..RING }
    }

    fn messages(&self) -> usize {
        self.rounds * self.round()
    }

    fn round(&self) -> usize {
        2 * (self.ranks - 1) * SLICES
    }

    fn is(&self, fault: impl Fn(Fault) -> Option<u64>) -> u64 {
        fault(self.fault).unwrap_or(0)
    }

    /// Time by which a rank starts late.
    fn late(&self, rank: usize) -> u64 {
        match self.fault {
            Fault::Gpu(late, by) | Fault::Host(late, by) if late == rank => by,
            Fault::All(by) => by,
            _ => 0,
        }
    }

    /// A port that is slow makes messages from it and to it take longer.
    fn send(&self, from: usize, to: usize) -> u64 {
        match self.fault {
            Fault::Port(port, factor) if port == from || port == to => SEND * factor,
            _ => SEND,
        }
    }

    /// Times of all messages: `[rank][collective * messages + message]`, and the end of the last collective.
    fn run(&self) -> (Vec<Vec<Times>>, u64) {
        let (ranks, messages) = (self.ranks, self.messages());
        let mut all = vec![Vec::new(); ranks];
        let jitter = |rank: usize, collective: usize| (rank * 7 + collective * 13) as u64 % 11 * US;
        let mut start: Vec<u64> = (0..ranks)
            .map(|rank| MS + jitter(rank, 0) + self.late(rank))
            .collect();
        let mut post = vec![0; ranks];
        for collective in 0..self.collectives {
            let times = self.collective(collective, &start, &post);
            let end: Vec<u64> = (0..ranks)
                .map(|rank| {
                    let before = &times[(rank + ranks - 1) % ranks];
                    let arrived = before.iter().map(|time| time.last_in).max();
                    arrived
                        .max(times[rank].iter().map(|time| time.acknowledged).max())
                        .unwrap()
                })
                .collect();
            for rank in 0..ranks {
                start[rank] = end[rank] + COMPUTE + jitter(rank, collective + 1) + self.late(rank);
                post[rank] = match self.fault {
                    Fault::Host(late, _) if late == rank => start[rank] - 30 * US,
                    _ => end[rank] + 20 * US,
                };
                all[rank].extend_from_slice(&times[rank]);
            }
            debug_assert_eq!(all[0].len(), (collective + 1) * messages);
        }
        let end = all.iter().flatten().map(|time| time.acknowledged).max().unwrap();
        (all, end)
    }

    /// One collective: message by message, since each one needs only earlier ones of all ranks.
    fn collective(&self, collective: usize, start: &[u64], post: &[u64]) -> Vec<Vec<Times>> {
        let (ranks, messages) = (self.ranks, self.messages());
        let mut times = vec![vec![Times::default(); messages]; ranks];
        for message in 0..messages {
            for rank in 0..ranks {
                let (before, next) = ((rank + ranks - 1) % ranks, (rank + 1) % ranks);
                let own = |message: usize| times[rank][message];
                let last_post = message
                    .checked_sub(1)
                    .map_or(post[next], |last| own(last).credit_out);
                let used = match message.checked_sub(BUFFERS) {
                    None => post[next],
                    Some(freed) => {
                        let made = freed + SLICES;
                        times[next][made]
                            .first_out
                            .min(own(freed).last_in.max(start[next]) + MAKE)
                    }
                };
                let slow = self.is(|fault| match fault {
                    Fault::Receiver(late, by) if late == next => Some(by),
                    _ => None,
                });
                let credit_out = last_post.max(used) + POST + slow;
                let credit_in = credit_out + WAY;
                let needed = match message % self.round() {
                    // The last one of the round before.
                    place if place < SLICES => message.checked_sub(place + 1),
                    _ => Some(message - SLICES),
                };
                let input = match needed {
                    None => start[rank],
                    Some(input) => times[before][input].last_in.max(start[rank]) + MAKE,
                };
                let turn = message.checked_sub(1).map_or(0, |last| own(last).last_out);
                let first_out = input.max(credit_in + US).max(turn + 100);
                let lost = self.fault == Fault::Lost(collective, rank, message);
                let last_out = first_out + self.send(rank, next) + if lost { TIMEOUT } else { 0 };
                let last_in = last_out + WAY;
                times[rank][message] = Times {
                    credit_out,
                    credit_in,
                    first_out,
                    last_out,
                    last_in,
                    acknowledged: last_in + WAY,
                    repeated: u32::from(lost),
                };
            }
        }
        times
    }

    /// The connections as taps see them. `skew` has the error of each rank's clock, `tapped` the ranks with a tap.
    fn capture(&self, skew: &[i64], tapped: &[usize], left_out_of: Option<u64>) -> Vec<CreditedConnection> {
        let (all, _) = self.run();
        let mut random = 88_172_645_463_325_252_u64;
        let host = |rank: usize| Address::v4([10, 0, 0, u8::try_from(rank + 1).unwrap()]);
        let mut connections = Vec::new();
        for (rank, messages) in all.iter().enumerate() {
            let next = (rank + 1) % self.ranks;
            if !tapped.contains(&rank) && !tapped.contains(&next) {
                continue;
            }
            let at = |time: u64, rank: usize| {
                let skew = skew.get(rank).copied().unwrap_or(0);
                let time = (10_000 * MS + time).checked_add_signed(skew).unwrap();
                tapped.contains(&rank).then_some(Time(time))
            };
            let there = |out: u64, arrived: u64| Passage {
                departure: at(out, rank),
                arrival: at(arrived, next),
            };
            let back = |out: u64, arrived: u64| Passage {
                departure: at(out, next),
                arrival: at(arrived, rank),
            };
            let kept: Vec<CreditedMessage> = messages
                .iter()
                .enumerate()
                .filter(|_| {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    left_out_of.is_none_or(|of| !random.is_multiple_of(of))
                })
                .map(|(number, time)| CreditedMessage {
                    number: 245 + number as u64,
                    buffer: (number % BUFFERS) as u64,
                    bytes: 65_536,
                    credit: back(time.credit_out, time.credit_in),
                    first: there(time.first_out, time.first_out + WAY),
                    last: there(time.last_out, time.last_in),
                    acknowledgement: back(time.last_in, time.acknowledged),
                    retransmissions: time.repeated,
                })
                .collect();
            connections.push(CreditedConnection {
                sender: host(rank),
                receiver: host(next),
                sender_rank: u32::try_from(rank).ok(),
                receiver_rank: u32::try_from(next).ok(),
                layout: None,
                data_flows: vec![FlowId(2 * rank as u64)],
                credit_flows: vec![FlowId(2 * rank as u64 + 1)],
                left_out: (messages.len() - kept.len()) as u64,
                messages: kept,
            });
        }
        connections
    }

    fn judged(&self, skew: &[i64], left_out_of: Option<u64>) -> JobLateness {
        let all: Vec<usize> = (0..self.ranks).collect();
        only_job(find_lateness(
            &self.capture(skew, &all, left_out_of),
            |_| None,
            &[],
            &[],
        ))
    }

    /// The times of each collective at each rank, as a document on a clock that is wrong by `wrong` nanoseconds has them. `together`
    /// collectives count as one.
    fn windows(&self, wrong: i64, together: usize) -> Vec<JobWindow> {
        let all: Vec<usize> = (0..self.ranks).collect();
        let connections = self.capture(&[0; 4], &all, None);
        let of_rank = |(rank, connection): (usize, &CreditedConnection)| {
            let pieces = connection.messages.chunks(self.messages() * together).zip(1..);
            let windows = pieces.map(|(messages, sequence)| JobWindow {
                communicator: 7,
                rank: u32::try_from(rank).unwrap(),
                key: ("AllReduce".into(), sequence),
                start: Time(
                    messages[0]
                        .first
                        .departure
                        .unwrap()
                        .0
                        .checked_add_signed(wrong - 4_000)
                        .unwrap(),
                ),
                end: Time(
                    messages
                        .last()
                        .unwrap()
                        .last
                        .departure
                        .unwrap()
                        .0
                        .checked_add_signed(wrong)
                        .unwrap(),
                ),
            });
            windows.collect::<Vec<_>>()
        };
        connections.iter().enumerate().flat_map(of_rank).collect()
    }

    fn collectives_with(&self, windows: &[JobWindow]) -> u32 {
        let all: Vec<usize> = (0..self.ranks).collect();
        let capture = self.capture(&[0; 4], &all, None);
        only_job(find_lateness(&capture, |_| None, &[], windows)).collectives
    }

    /// Time that the fault costs.
    fn cost(&self) -> u64 {
        let calm = Self {
            fault: Fault::Nothing,
            ..*self
        };
        self.run().1 - calm.run().1
    }
}

fn only_job(mut lateness: Lateness) -> JobLateness {
    assert_eq!(lateness.jobs.len(), 1);
    lateness.jobs.remove(0)
}

/// The only root, whose price is right within a part of it, in percent.
#[track_caller]
fn only_root(ring: RingJob, job: &JobLateness, percent: u64) -> LateRoot {
    assert_eq!(job.roots.len(), 1, "{:?}", job.roots);
    let root = job.roots[0].clone();
    let cost = ring.cost();
    assert!(
        root.cost_ns.abs_diff(cost) * 100 <= cost * percent,
        "{} of {cost} ns: {root:?}",
        root.cost_ns
    );
    root
}

/// Clocks as they are, and one that is wrong by 20 us and by 200 us.
const SKEWS: [[i64; 4]; 3] = [[0; 4], [0, 0, 20_000, 0], [0, -200_000, 0, 0]];

#[test]
fn a_healthy_ring_has_no_root() {
    for skew in SKEWS {
        for left_out_of in [None, Some(1_000), Some(100)] {
            let job = RING.judged(&skew, left_out_of);
            assert_eq!(job.roots, [], "{skew:?} {left_out_of:?}");
        }
        let job = RING.judged(&skew, None);
        // 8 collectives of 4 ranks.
        assert_eq!((job.collectives, job.rows.len()), (8, 32));
    }
}

#[test]
fn documents_say_where_collectives_end() {
    // Counted rests show eight; documents may know of four.
    for wrong in [0, 200_000, -200_000] {
        assert_eq!(RING.collectives_with(&RING.windows(wrong, 1)), 8);
        assert_eq!(RING.collectives_with(&RING.windows(wrong, 2)), 4, "{wrong}");
    }
    // A rank that is late by as long as a step computes looks like a rest.
    let late = RingJob::with(Fault::Gpu(2, 5 * MS));
    assert_eq!(late.collectives_with(&late.windows(0, 1)), 8);
    // Documents of another job: at the wrong time, of two communicators, of other ranks.
    let mut other = RING.windows(0, 2);
    other[0].communicator = 8;
    assert_eq!(RING.collectives_with(&other), 8);
    let mut other = RING.windows(0, 2);
    for window in &mut other {
        window.rank += 4;
    }
    assert_eq!(RING.collectives_with(&other), 8);
    assert_eq!(RING.collectives_with(&RING.windows(3_600_000_000_000, 2)), 8);
    // Documents of a part of the capture alone.
    let mut part = RING.windows(0, 2);
    part.retain(|window| window.key.1 > 2);
    assert_eq!(RING.collectives_with(&part), 8);
}

#[test]
fn a_late_gpu_is_named() {
    let ring = RingJob::with(Fault::Gpu(2, 3 * MS));
    for skew in SKEWS {
        let job = ring.judged(&skew, None);
        let root = only_root(ring, &job, 2);
        let LateKind::Start(rank, LateStart::Gpu) = root.kind else {
            panic!("{root:?}");
        };
        assert_eq!((rank.number, root.collectives), (Some(2), 8));
        assert_eq!(root.confidence, Confidence::High);
        // The rank behind it waits for its data, and the rank before it for its credits.
        let waits_for_2 = |of: u32| {
            job.waits
                .iter()
                .any(|wait| wait.rank.number == Some(of) && wait.waits_for.number == Some(2))
        };
        assert!(waits_for_2(3) && waits_for_2(1));
        let late = job.rows.iter().filter(|row| row.is_root);
        assert!(late.clone().count() == 8 && late.clone().all(|row| row.rank == Some(2)));
    }
}

#[test]
fn a_late_host_is_told_from_a_late_gpu() {
    let ring = RingJob::with(Fault::Host(2, 3 * MS));
    for skew in SKEWS {
        let root = only_root(ring, &ring.judged(&skew, None), 2);
        assert!(
            matches!(root.kind, LateKind::Start(rank, LateStart::Host) if rank.number == Some(2)),
            "{root:?}"
        );
    }
}

#[test]
fn a_late_receiver_is_named() {
    let ring = RingJob::with(Fault::Receiver(1, 150 * US));
    for skew in SKEWS {
        let root = only_root(ring, &ring.judged(&skew, None), 10);
        assert!(
            matches!(root.kind, LateKind::Receiver(rank) if rank.number == Some(1)),
            "{root:?}"
        );
    }
}

#[test]
fn a_slow_port_is_named() {
    let ring = RingJob::with(Fault::Port(3, 10));
    for skew in SKEWS {
        let root = only_root(ring, &ring.judged(&skew, None), 10);
        assert_eq!(root.kind, LateKind::Port(Address::v4([10, 0, 0, 4])), "{root:?}");
    }
}

#[test]
fn a_timeout_is_the_ways() {
    // The last message of the fifth collective from rank 1 to rank 2: others begin the next collective meanwhile.
    let ring = RingJob::with(Fault::Lost(4, 1, RING.messages() - 1));
    for skew in SKEWS {
        let root = only_root(ring, &ring.judged(&skew, None), 2);
        let hosts = [2, 3].map(|last| Address::v4([10, 0, 0, last]));
        assert_eq!(root.kind, LateKind::Way(hosts[0], hosts[1]), "{root:?}");
        assert_eq!((root.collectives, root.retransmitted_messages), (1, 1));
    }
}

#[test]
fn a_round_that_waits_for_the_last_message_of_the_one_before_is_not_its_rank_s() {
    // Message 11 of rank 1 ends the first round, and rank 2 begins the second one with message 12. Elsewhere message k passes on k - 2.
    let ring = RingJob {
        rounds: 2,
        ..RingJob::with(Fault::Lost(4, 1, 11))
    };
    let root = only_root(ring, &ring.judged(&SKEWS[0], None), 2);
    let hosts = [2, 3].map(|last| Address::v4([10, 0, 0, last]));
    assert_eq!(root.kind, LateKind::Way(hosts[0], hosts[1]), "{root:?}");
}

#[test]
fn messages_that_are_left_out_blame_nobody() {
    for fault in [
        Fault::Gpu(2, 3 * MS),
        Fault::Host(0, 2 * MS),
        Fault::Receiver(1, 150 * US),
        Fault::Port(3, 10),
    ] {
        let ring = RingJob::with(fault);
        let whole = only_root(ring, &ring.judged(&SKEWS[0], None), 10);
        for of in [1_000, 100] {
            let job = ring.judged(&SKEWS[0], Some(of));
            // Messages that are left out make the price smaller, never larger, and name nobody else.
            assert!(job.roots.len() <= 1, "{:?}", job.roots);
            for root in &job.roots {
                let kinds = [root.kind, whole.kind];
                assert!(kinds[0] == kinds[1], "{kinds:?}");
                assert!(root.cost_ns <= whole.cost_ns + whole.cost_ns / 20);
            }
        }
    }
}

#[test]
fn nothing_is_said_about_collectives_with_many_messages_left_out() {
    let job = RingJob::with(Fault::Receiver(1, 150 * US)).judged(&SKEWS[0], Some(8));
    // One in eight is more than 5 %.
    assert_eq!(job.roots, []);
    assert!(
        job.unclear_collectives >= job.collectives.max(1) * 3 / 4,
        "{job:?}"
    );
}

#[test]
fn ranks_that_are_all_late_have_no_root() {
    // They wait for nobody: the job computes for longer.
    assert_eq!(
        RingJob::with(Fault::All(3 * MS)).judged(&SKEWS[0], None).roots,
        []
    );
}

#[test]
fn one_collective_is_no_proof() {
    let ring = RingJob {
        collectives: 1,
        ..RingJob::with(Fault::Receiver(1, 150 * US))
    };
    let job = ring.judged(&SKEWS[0], None);
    assert!(job.roots.iter().all(|root| root.confidence == Confidence::Low));
}

#[test]
fn one_host_sees_whether_it_waits() {
    let seen = |fault: Fault, tap: usize| {
        let connections = RingJob::with(fault).capture(&[], &[tap], None);
        let job = only_job(find_lateness(&connections, |_| None, &[], &[]));
        assert!(job.roots.iter().all(|root| root.confidence != Confidence::High));
        job.roots.first().map(|root| root.kind)
    };
    let gpu = Fault::Gpu(2, 3 * MS);
    // The rank behind it gets its data late; the late rank itself never blames another one.
    let kind = seen(gpu, 3);
    assert!(
        matches!(kind, Some(LateKind::Before(rank)) if rank.number == Some(2)),
        "{kind:?}"
    );
    assert!(!matches!(
        seen(gpu, 2),
        Some(LateKind::Before(_) | LateKind::Behind(_) | LateKind::Way(..))
    ));
    let receiver = Fault::Receiver(1, 150 * US);
    let kind = seen(receiver, 1);
    assert!(
        matches!(kind, Some(LateKind::Receiver(rank) | LateKind::Rank(rank)) if rank.number == Some(1)),
        "{kind:?}"
    );
    for tap in 0..4 {
        assert_eq!(seen(Fault::Nothing, tap), None, "{tap}");
    }
}

#[test]
fn the_sums_of_a_connection_are_its_whole_time() {
    for fault in [
        Fault::Nothing,
        Fault::Gpu(2, 3 * MS),
        Fault::Receiver(1, 150 * US),
    ] {
        let connections = RingJob::with(fault).capture(&[], &[0, 1, 2, 3], None);
        let lateness = find_lateness(&connections, |_| None, &[], &[]);
        for (connection, times) in connections.iter().zip(&lateness.connections) {
            let first = connection.messages[0].first.departure.unwrap();
            let last = connection.messages.last().unwrap().last.arrival.unwrap();
            let sum = times.sender_late_ns
                + times.receiver_late_ns
                + times.network_late_ns
                + times.transfer_ns
                + times.rest_ns
                + times.unknown_ns;
            // Messages overlap by the way of the last packet: 2 us each.
            let overlap = connection.messages.len() as u64 * WAY;
            let length = last.since(first).0;
            assert!(
                (length..=length + overlap).contains(&sum),
                "{sum} of {length}: {times:?}"
            );
        }
    }
}
