use proptest::prelude::*;

use roce_model::EpisodeKind;

use super::*;
use crate::host_pairs::HostPairs;

const MS: u64 = 1_000_000;
/// Bytes of a bin at work.
const BUSY: u64 = 1_000_000;

fn host(number: u8) -> Address {
    Address::v4([10, 0, 0, number])
}

/// Traffic of so many bytes between two hosts.
fn traffic(tap: TapId, groups: Groups, payload_bytes: u64, pairs: &mut HostPairs) -> PairTraffic {
    PairTraffic {
        payload_bytes,
        hosts: pairs.find_or_add(groups),
        ..PairTraffic::new(groups, tap, 0)
    }
}

/// Rows as they come, bins of 1 ms.
struct RowFeed {
    rows: BTreeMap<u64, Vec<(u8, u8, u64)>>,
    log: Vec<LoggedStep>,
}

impl RowFeed {
    fn new() -> Self {
        Self {
            rows: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    /// `a` sends to `b` from `start` for `length` ms.
    fn burst(&mut self, a: u8, b: u8, start: u64, length: u64) {
        self.bytes(a, b, start, length, BUSY);
    }

    fn bytes(&mut self, a: u8, b: u8, start: u64, length: u64, bytes: u64) {
        for bin in start..start + length {
            self.rows.entry(bin).or_default().push((a, b, bytes));
        }
    }

    fn steps(self, episodes: &[EpisodeRow]) -> Vec<StepRow> {
        self.taken().conclude(episodes).0
    }

    fn taken(self) -> Steps {
        let mut steps = Steps::new(Span(MS), self.log);
        let mut pairs = HostPairs::default();
        let mut flows: Vec<(u8, u8)> = Vec::new();
        for (bin, rows) in &self.rows {
            for (source, destination, bytes) in rows {
                let groups = Groups::new(TapId(1), host(*source), host(*destination));
                let traffic = traffic(TapId(1), groups, *bytes, &mut pairs);
                steps.sent(Time(bin * MS), &traffic, &pairs);
                flows.push((*source, *destination));
            }
        }
        flows.sort_unstable();
        flows.dedup();
        for (source, destination) in flows {
            steps.flow(&FlowRow {
                tap: TapId(1),
                source: host(source),
                destination: host(destination),
                ..FlowRow::default()
            });
        }
        steps
    }
}

#[test]
fn a_snapshot_has_the_steps_that_have_ended() {
    let mut feed = training();
    // A heartbeat without a rhythm of its own belongs to no job.
    feed.bytes(7, 8, 1_333, 1, 100);
    let jobs = feed.taken().snapshot();
    let [job] = &jobs[..] else { panic!("{jobs:?}") };
    // Nineteen steps have ended: the twentieth may go on. The first starts at 1,000 ms, the next 150 ms later.
    assert_eq!((job.tap, job.starts.len()), (TapId(1), 19));
    assert_eq!(job.starts[..2], [Time(1_000 * MS), Time(1_150 * MS)]);
    assert_eq!(job.last, Span(46 * MS));
    assert_eq!(RowFeed::new().taken().snapshot(), []);
}

/// Twenty steps of 150 ms, 46 ms of which are traffic between 1 and 2; the twelfth takes 58.
fn training() -> RowFeed {
    let mut feed = RowFeed::new();
    let mut start = 1_000;
    for step in 1..=20 {
        let length = if step == 12 { 58 } else { 46 };
        feed.burst(1, 2, start, length);
        // The other direction is busy most of the time.
        feed.burst(2, 1, start + 1, length - 2);
        start += 104 + length;
    }
    feed
}

#[test]
fn steps_of_one_pair() {
    let steps = training().steps(&[]);
    assert_eq!(steps.len(), 20);
    assert_eq!(
        steps.iter().map(|step| step.step).collect::<Vec<_>>(),
        (1..=20).collect::<Vec<_>>()
    );
    let first = &steps[0];
    assert_eq!(
        (first.host_a, first.host_b, first.tap),
        (host(1), host(2), TapId(1))
    );
    assert_eq!(
        (first.start_time, first.end_time, first.duration_ns),
        (Time(1_000 * MS), Time(1_046 * MS), 46 * MS)
    );
    // 46 and 44 bins of 1 MB.
    assert_eq!(first.payload_bytes, 90 * BUSY);
    assert_eq!((first.period_ns, first.spread_ns), (150 * MS, 0));
    let outliers: Vec<_> = steps.iter().filter(|step| step.outlier).collect();
    assert_eq!(outliers.len(), 1);
    assert_eq!((outliers[0].step, outliers[0].duration_ns), (12, 58 * MS));
    assert_eq!(outliers[0].episode, None);
}

#[test]
fn an_outlier_is_explained_by_the_episode_that_overlaps_it_most() {
    // The twelfth begins 11 x 150 ms after the first.
    let begin = 1_000 + 11 * 150;
    let episode = |number, kind, tap, destination, start, end| EpisodeRow {
        episode: number,
        kind,
        tap: TapId(tap),
        destination,
        start_time: Time(start * MS),
        end_time: Time(end * MS),
        ..EpisodeRow::default()
    };
    let episodes = [
        episode(0, EpisodeKind::Ecn, 1, Some(host(2)), begin - 50, begin - 1),
        episode(1, EpisodeKind::Ecn, 1, Some(host(9)), begin, begin + 58),
        episode(2, EpisodeKind::Ecn, 1, Some(host(2)), begin + 5, begin + 14),
        episode(3, EpisodeKind::Loss, 1, Some(host(1)), begin + 20, begin + 22),
        episode(4, EpisodeKind::Ecn, 0, Some(host(2)), begin, begin + 58),
        episode(5, EpisodeKind::Ecn, 1, Some(host(2)), begin + 58, begin + 90),
    ];
    let of = |episodes: &[EpisodeRow]| {
        let steps = training().steps(episodes);
        assert!(
            steps.iter().all(|step| step.outlier || step.episode.is_none()),
            "only outliers need one"
        );
        steps[11].episode
    };
    assert_eq!(of(&episodes), Some(2), "9 ms on the way to 10.0.0.2");
    assert_eq!(
        of(&episodes[..2]),
        Some(1),
        "of another destination, when there is nothing else"
    );
    assert_eq!(of(&episodes[4..]), None, "another tap, another time");
}

#[test]
fn ranks_of_a_ring() {
    // Four hosts in a ring; in step 7 the pair of 3 and 4 ends 12 ms later.
    let mut feed = RowFeed::new();
    for step in 0..10 {
        for (rank, (a, b)) in [(1, 2), (2, 3), (3, 4), (4, 1)].into_iter().enumerate() {
            let late = if step == 6 && rank == 2 { 12 } else { 0 };
            feed.burst(a, b, 5_000 + step * 200 + rank as u64, 30 + late);
        }
    }
    let steps = feed.steps(&[]);
    assert_eq!(steps.len(), 40);
    for number in 1..=10 {
        let step: Vec<_> = steps.iter().filter(|row| row.step == number).collect();
        assert_eq!(step.len(), 4, "a row for each pair");
        // Ends at 30, 31, 32, 33 ms; in the seventh at 30, 31, 44, 33.
        let spread = if number == 7 { 14 } else { 3 };
        assert!(step.iter().all(|row| row.spread_ns == spread * MS));
        assert_eq!(
            step.iter().filter(|row| row.outlier).count(),
            usize::from(number == 7)
        );
    }
}

#[test]
fn steps_that_overlap_in_a_chain_stay_apart() {
    // 1>2 is busy for the first 60 of 100 ms, 3>4 from 50 to 105: each overlaps the next.
    let mut feed = RowFeed::new();
    for step in 0..8 {
        feed.burst(1, 2, step * 100, 60);
        feed.burst(3, 4, step * 100 + 50, 55);
    }
    let steps = feed.steps(&[]);
    assert_eq!(steps.len(), 16);
    for row in &steps {
        assert_eq!(u64::from(row.step), row.start_time.0 / (100 * MS) + 1);
    }
}

#[test]
fn buckets_of_one_step_are_one_burst() {
    // Eight buckets of 4 ms with 3 ms between them, then 100 ms of computing.
    let mut feed = RowFeed::new();
    for step in 0..9 {
        for bucket in 0..8 {
            feed.burst(1, 2, step * 153 + bucket * 7, 4);
        }
    }
    let steps = feed.steps(&[]);
    assert_eq!(steps.len(), 9);
    assert_eq!((steps[0].duration_ns, steps[0].period_ns), (53 * MS, 153 * MS));
    assert_eq!(steps[0].payload_bytes, 32 * BUSY);
}

#[test]
fn a_rank_for_which_all_wait() {
    // A simulated ring of four with a slow rank, between two hosts, in bins of 20 us. The first part of
    // the data comes at once, the rest 320 to 440 us later, when the slow rank has come; 760 to 820 us
    // of computing follow.
    let parts = [
        (40, 46, 64, 74),
        (112, 118, 136, 146),
        (184, 189, 211, 220),
        (260, 266, 287, 297),
        (336, 341, 362, 372),
        (413, 419, 435, 445),
        (485, 490, 507, 517),
        (557, 562, 584, 593),
    ];
    let mut feed = RowFeed::new();
    for (first, end, second, last) in parts {
        feed.burst(1, 2, first, end - first);
        feed.burst(1, 2, second, last - second);
    }
    let steps = feed.steps(&[]);
    assert_eq!(steps.len(), 8);
    assert_eq!(
        (steps[2].start_time, steps[2].end_time),
        (Time(184 * MS), Time(220 * MS))
    );
}

#[test]
fn a_stall_in_a_step_does_not_divide_it() {
    let mut feed = RowFeed::new();
    let mut start = 0;
    for step in 0..30 {
        if step == 20 {
            // Silent for 30 ms, in the middle.
            feed.burst(1, 2, start, 10);
            feed.burst(1, 2, start + 40, 10);
            start += 30;
        } else {
            feed.burst(1, 2, start, 20);
        }
        start += 120;
    }
    let steps = feed.steps(&[]);
    assert_eq!(steps.len(), 30);
    assert_eq!((steps[20].duration_ns, steps[20].outlier), (50 * MS, true));
}

#[test]
fn a_longer_pause_now_and_then_does_not_join_steps() {
    // Every eighth step is followed by 300 ms of something else instead of 100.
    let mut feed = RowFeed::new();
    let mut start = 0;
    for step in 1..=40 {
        feed.burst(1, 2, start, 50);
        start += if step % 10 == 0 { 350 } else { 150 };
    }
    let steps = feed.steps(&[]);
    assert_eq!((steps.len(), steps[0].period_ns), (40, 150 * MS));
}

#[test]
fn barriers_between_the_bursts_are_left_out() {
    let mut feed = training();
    for bin in (1_000..4_000).step_by(10) {
        feed.bytes(2, 1, bin, 1, 64);
    }
    let steps = feed.steps(&[]);
    assert_eq!((steps.len(), steps[0].period_ns), (20, 150 * MS));
}

#[test]
fn two_jobs_are_numbered_apart() {
    let mut feed = RowFeed::new();
    for step in 0..10 {
        feed.burst(1, 2, step * 100, 30);
    }
    for step in 0..7 {
        feed.burst(3, 4, 10 + step * 140, 30);
    }
    let steps = feed.steps(&[]);
    let numbers = |host_a| {
        steps
            .iter()
            .filter(|row| row.host_a == host_a)
            .map(|row| row.step)
            .collect::<Vec<_>>()
    };
    assert_eq!(numbers(host(1)), (1..=10).collect::<Vec<_>>());
    assert_eq!(numbers(host(3)), (1..=7).collect::<Vec<_>>());
    assert!(steps.iter().all(|row| row.spread_ns == 0));
}

#[test]
fn ordinary_traffic_has_no_steps() {
    // Without a break.
    let mut feed = RowFeed::new();
    feed.burst(1, 2, 0, 5_000);
    assert_eq!(feed.steps(&[]), []);
    // A handful of bursts only.
    let mut feed = RowFeed::new();
    for step in 0..5 {
        feed.burst(1, 2, step * 100, 30);
    }
    assert_eq!(feed.steps(&[]), []);
    // Heartbeats, however regular.
    let mut feed = RowFeed::new();
    for beat in 0..100 {
        feed.bytes(1, 2, beat * 100, 1, 1_024);
    }
    assert_eq!(feed.steps(&[]), []);
    // Regular times, sizes of all kinds.
    let mut feed = RowFeed::new();
    for step in 0..40 {
        feed.burst(1, 2, step * 100, 1 + step * 7 % 40);
    }
    assert_eq!(feed.steps(&[]), []);
    // Six bursts of one size between larger ones.
    let mut feed = RowFeed::new();
    for (start, length) in [(0, 12), (20, 2), (25, 2), (30, 2), (35, 2), (40, 12)] {
        feed.burst(1, 2, start, length);
    }
    assert_eq!(feed.steps(&[]), []);
    // Nothing, and nothing that carries data.
    assert_eq!(RowFeed::new().steps(&[]), []);
    let mut feed = RowFeed::new();
    feed.bytes(1, 2, 0, 50, 0);
    assert_eq!(feed.steps(&[]), []);
}

/// A generator of numbers (Knuth's MMIX): the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    /// Exponential with this mean, at least 1.
    fn exponential(&mut self, mean: f64) -> u64 {
        let uniform = (float(self.next(1 << 30)) + 0.5) / float(1 << 30);
        whole(-uniform.ln() * mean).max(1)
    }
}

#[test]
fn random_traffic_has_no_steps() {
    let mut with_steps = 0;
    for seed in 0..2_000 {
        let mut random = Random(seed);
        let mut feed = RowFeed::new();
        let mut time = 0;
        // Messages of one size at random times: the sizes fit, the times do not.
        for _ in 0..8 + random.next(60) {
            time += random.exponential(40.0);
            feed.burst(1, 2, time, 2);
            time += 2;
        }
        with_steps += usize::from(!feed.steps(&[]).is_empty());
    }
    assert_eq!(with_steps, 0, "of 2000");
}

#[test]
fn the_log_by_number() {
    let logged = |step, allreduce| LoggedStep {
        step,
        begin: None,
        allreduce_ns: Some(allreduce * MS),
        total_ns: Some(150 * MS),
    };
    let mut feed = training();
    // Every fifth step is logged, from 10 on: steps 1, 6, 11, 16 of the capture. 15 comes twice, 5 is before the first.
    feed.log = vec![
        logged(10, 45),
        logged(15, 46),
        logged(15, 99),
        logged(20, 47),
        logged(5, 99),
        logged(25, 48),
    ];
    let steps = feed.steps(&[]);
    let got: Vec<_> = steps
        .iter()
        .filter_map(|row| Some((row.step, row.logged_ns? / MS)))
        .collect();
    assert_eq!(got, [(1, 45), (6, 46), (11, 47), (16, 48)]);
}

#[test]
fn the_log_by_time() {
    let logged = |step: u64, begin: u64| LoggedStep {
        step,
        begin: Some(Time(begin * MS)),
        allreduce_ns: Some(step * MS),
        total_ns: Some(149 * MS),
    };
    let mut feed = training();
    // The script's steps begin 80 ms before their bursts; 200 to 202 are logged, out of order, 203 is not.
    feed.log = vec![
        logged(201, 1_070),
        logged(200, 920),
        logged(202, 1_220),
        logged(100, 100),
    ];
    let steps = feed.steps(&[]);
    let got: Vec<_> = steps
        .iter()
        .filter_map(|row| Some((row.step, row.logged_ns? / MS)))
        .collect();
    assert_eq!(got, [(1, 200), (2, 201), (3, 202)]);
}

#[test]
fn memory_is_bounded() {
    let mut pair = Pair {
        tap: TapId(0),
        hosts: None,
        stretches: Vec::new(),
        joined: 0,
    };
    let mut random = Random(1);
    let (mut time, mut bytes) = (0, 0);
    for _ in 0..100_000 {
        time += random.exponential(5_000.0);
        pair.add(time, time + 1, 7, 256);
        bytes += 7;
        assert!(pair.stretches.len() <= 256);
    }
    assert_eq!(
        pair.stretches.iter().map(|stretch| stretch.bytes).sum::<u64>(),
        bytes
    );
    assert!(pair.stretches.is_sorted_by_key(|stretch| stretch.start));
    // Stamped long ago: counted where there was traffic, left out where there was none.
    let first = pair.stretches[0];
    pair.add(first.start, first.start + 1, 5, 256);
    assert_eq!(pair.stretches[0].bytes, first.bytes + 5);

    let (mut steps, mut pairs) = (Steps::new(Span(1), Vec::new()), HostPairs::default());
    for number in 0..10_000 {
        let groups = Groups {
            destination: number,
            pair: number,
            ..Groups::default()
        };
        let traffic = traffic(TapId(0), groups, 1, &mut pairs);
        steps.sent(Time(0), &traffic, &pairs);
    }
    assert_eq!(steps.pairs.len(), MAX_PAIRS);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_rows_are_no_harm(
        rows in prop::collection::vec((any::<u64>(), 0..4_u8, 0..4_u8, any::<u64>()), 0..200),
        bin in any::<u64>(),
        episodes in prop::collection::vec((any::<u64>(), any::<u64>()), 0..20),
    ) {
        let (mut steps, mut pairs) = (Steps::new(Span(bin), Vec::new()), HostPairs::default());
        for (time, source, destination, bytes) in rows {
            let groups = Groups::new(TapId(0), host(source), host(destination));
            let traffic = traffic(TapId(0), groups, bytes, &mut pairs);
            if bytes > 0 {
                steps.sent(Time(time), &traffic, &pairs);
            }
            steps.flow(&FlowRow { source: host(source), destination: host(destination), ..FlowRow::default() });
        }
        let episodes: Vec<_> = episodes.into_iter().map(|(start, end)| EpisodeRow {
            start_time: Time(start), end_time: Time(end), ..EpisodeRow::default()
        }).collect();
        steps.conclude(&episodes);
    }

    #[test]
    fn training_is_found_whatever_its_measure(
        period in 20..400_u64,
        share in 10..80_u64,
        jitter in prop::collection::vec(0..100_u64, 12..40),
        start in 0..1_000_000_u64,
    ) {
        let length = (period * share / 100).max(1);
        let mut feed = RowFeed::new();
        let mut time = start;
        for jitter in &jitter {
            feed.burst(1, 2, time, length);
            // Up to 5 % of the period late.
            time += period + period * jitter / 2_000;
        }
        let steps = feed.steps(&[]);
        prop_assert_eq!(steps.len(), jitter.len());
        prop_assert!(steps.iter().all(|step| step.duration_ns == length * MS && !step.outlier));
    }
}

#[test]
fn a_log_without_captured_steps_fits_none() {
    let step = LoggedStep {
        total_ns: Some(5),
        ..LoggedStep::default()
    };
    let fit = log::Log::new(vec![step]).fit(&[]).unwrap();
    assert_eq!(
        (fit.logged_steps, fit.joined_rows, fit.is_doubtful()),
        (1, 0, false)
    );
    assert!(log::Log::new(Vec::new()).fit(&[]).is_none());
}
