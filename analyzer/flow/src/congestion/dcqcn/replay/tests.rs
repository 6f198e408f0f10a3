//! The golden values were computed apart, by the script in `tests/independent/dcqcn.py`, which steps through the
//! paper's equations nanosecond by nanosecond.

use proptest::prelude::*;

use super::*;

const GIGABIT: u64 = 1_000_000_000;
const MS: Span = Span(1_000_000);

fn begin(bin: usize) -> Time {
    Time(bin as u64 * MS.0)
}

/// The mean rates of bins of 1 ms: `sent` bytes in each, notifications at `cnps` (ns), the first of them in the first bin
/// that is emitted.
fn rates(parameters: Parameters, line: u64, cnps: &[u64], sent: &[u64]) -> Vec<u64> {
    let mut replay: Option<Replay> = None;
    let mut cnps = cnps.iter().peekable();
    let mut rates = Vec::new();
    for (bin, bytes) in sent.iter().enumerate() {
        let begin = begin(bin);
        while let Some(cnp) = cnps.next_if(|cnp| **cnp < begin.0 + MS.0) {
            let snapshot = bytes * (cnp - begin.0) / MS.0;
            let replay = replay.get_or_insert_with(|| Replay::new(parameters, line, begin));
            replay.cnp(Time(*cnp), begin, snapshot);
        }
        if let Some(replay) = &mut replay {
            rates.push(replay.bin(begin, MS, *bytes, true).unwrap());
        }
    }
    rates
}

/// Equal but for a millionth: the script's ticks end up to a nanosecond off.
fn assert_close(rates: &[u64], golden: &[f64]) {
    assert_eq!(rates.len(), golden.len());
    for (rate, golden) in rates.iter().zip(golden) {
        let error = (float(*rate) - golden).abs() / golden;
        assert!(error < 2e-6, "{rates:?} instead of {golden:?}");
    }
}

#[test]
fn the_first_cut_by_hand() {
    let mut replay = Replay::new(Parameters::PAPER, 100 * GIGABIT, Time(0));
    replay.cnp(Time(500_000), Time(0), 0);
    // alpha is 1: half the rate; then fast recovery at 555, 610, 665, 720 us: 75, 87.5, 93.75, 96.875 Gb/s; from the fifth
    // increase on the target would rise, but it is the line rate already: 98.4375 at 775, then 99.21875, 99.609375,
    // 99.8046875 and 99.90234375 at 995 us.
    // 500 us x 100 + 55 us x (50 + 75 + 87.5 + 93.75 + 96.875 + 98.4375 + 99.21875 + 99.609375 + 99.8046875) + 5 us x 99.90234375
    // = 50,000 + 44,010.7421875 + 499.51171875 = 94,510.25390625 us Gb/s in 1,000 us.
    assert_eq!(replay.bin(Time(0), MS, 0, true), Some(94_510_253_906));
}

#[test]
fn golden_rates_of_the_paper() {
    let cnps = [100_000, 150_000, 200_000, 2_500_000];
    assert_close(
        &rates(Parameters::PAPER, 100 * GIGABIT, &cnps, &[6_000_000; 5]),
        &[
            32_467_257_910.0,
            25_730_675_410.0,
            25_173_302_223.0,
            26_985_218_574.0,
            27_747_933_313.0,
        ],
    );
    assert_close(
        &rates(
            Parameters::PAPER,
            100 * GIGABIT,
            &cnps,
            &[6_000_000, 0, 0, 0, 0, 0],
        ),
        &[
            32_467_257_910.0,
            25_725_342_090.0,
            25_135_172_565.0,
            26_945_222_068.0,
            27_674_599_993.0,
            28_401_800_000.0,
        ],
    );
}

#[test]
fn golden_rates_of_the_simulator() {
    let cnps = [100_000, 150_000, 200_000, 2_500_000];
    assert_close(
        &rates(Parameters::NS3, 40 * GIGABIT, &cnps, &[2_000_000; 5]),
        &[
            24_108_941_404.0,
            27_393_018_701.0,
            38_875_695_958.0,
            39_999_647_675.0,
            40_000_000_000.0,
        ],
    );
}

#[test]
fn golden_rates_of_an_adapter() {
    // Two of the five come within 4 us after a cut.
    let cnps = [100_000, 104_000, 106_000, 112_000, 2_500_000];
    assert_close(
        &rates(Parameters::NVIDIA, 100 * GIGABIT, &cnps, &[3_000_000; 5]),
        &[97_314_938_601.0, 1e11, 99_999_991_365.0, 1e11, 1e11],
    );
}

#[test]
fn a_long_silence_in_one_go() {
    let all = rates(Parameters::PAPER, 100 * GIGABIT, &[0, 50_000], &[0; 40]);
    let golden = [
        47_404_617_656.0,
        50_834_582_344.0,
        56_652_600_000.0,
        63_925_400_000.0,
        78_471_000_000.0,
    ];
    assert_close(&[all[0], all[1], all[9], all[19], all[39]], &golden);
    // The result is the same if the bins in between are not told.
    let mut replay = Replay::new(Parameters::PAPER, 100 * GIGABIT, Time(0));
    replay.cnp(Time(0), Time(0), 0);
    replay.cnp(Time(50_000), Time(0), 0);
    assert_close(
        &[replay.bin(begin(39), MS, 0, true).unwrap()],
        &[78_471_000_000.0],
    );
    // A century later it may use the whole line.
    let late = Time(100 * 365 * 86_400 * Span::SECOND.0);
    assert_eq!(replay.bin(late, MS, 0, true), Some(100 * GIGABIT));
}

#[test]
fn a_sender_that_ignores_notifications_stands_out() {
    // One every 50 us from 1 ms on, and the flow goes on with the whole line: 12,500,000 bytes in each ms.
    let cnps: Vec<u64> = (1_000_000..6_000_000).step_by(50_000).collect();
    let mut replay = Replay::new(Parameters::PAPER, 100 * GIGABIT, begin(1));
    let mut cnps = cnps.into_iter().peekable();
    let mut rates = Vec::new();
    for bin in 1..6 {
        while let Some(cnp) = cnps.next_if(|cnp| *cnp < begin(bin + 1).0) {
            replay.cnp(Time(cnp), begin(bin), (cnp - begin(bin).0) * 25 / 2);
        }
        rates.push(replay.bin(begin(bin), MS, 12_500_000, true).unwrap());
    }
    // Half of what was left in each 50 us, down to the least rate of 100 Mb/s: 50, 25, ... Gb/s, 20 of them:
    // 100 x (1 - 2^-9) Gb/s of nine and eleven times 0.1 Gb/s, over 20: 5,045,234,375 bit/s. Then 0.1 Gb/s.
    assert_eq!(
        rates,
        [5_045_234_375, 100_000_000, 100_000_000, 100_000_000, 100_000_000]
    );
    // Bins 2 to 4 count, each 100 / 0.1 - 1 = 999; 1 and 5 are borders.
    assert!((replay.deviation().unwrap() - 999.0).abs() < 1e-6);
}

#[test]
fn a_sender_that_obeys_does_not() {
    let parameters = Parameters::PAPER;
    let mut replay = Replay::new(parameters, 100 * GIGABIT, begin(0));
    for bin in 0..8 {
        for cnp in 0..4 {
            replay.cnp(Time(begin(bin).0 + cnp * 200_000), begin(bin), 0);
        }
        // It sends 95 % of what it may.
        let may = replay.clone().bin(begin(bin), MS, 0, true).unwrap();
        replay.bin(begin(bin), MS, may * 95 / 100 / 8_000, true).unwrap();
    }
    let deviation = replay.deviation().unwrap();
    assert!((-0.06..0.0).contains(&deviation), "{deviation}");
}

#[test]
fn bins_at_the_borders_of_activity_do_not_count() {
    let mut replay = Replay::new(Parameters::PAPER, 100 * GIGABIT, begin(1));
    replay.cnp(begin(1), begin(1), 0);
    for bin in [1, 2, 4, 5, 7] {
        replay.cnp(begin(bin), begin(bin), 0);
        replay.bin(begin(bin), MS, 1_000, true).unwrap();
    }
    assert_eq!(replay.deviation(), None, "no bin has neighbours on both sides");
    replay.cnp(begin(8), begin(8), 0);
    replay.bin(begin(8), MS, 1_000, true).unwrap();
    replay.bin(begin(9), MS, 1_000, true).unwrap();
    assert!(replay.deviation().is_some(), "8 has");
}

#[test]
fn stamps_out_of_order_move_nothing_back() {
    let mut replay = Replay::new(Parameters::PAPER, GIGABIT, begin(5));
    replay.cnp(Time(5_500_000), begin(5), 1_000);
    replay.cnp(Time(2_000_000), begin(5), 0);
    assert!(replay.bin(begin(5), MS, 0, true).is_some());
    assert_eq!(replay.bin(begin(5), MS, 0, true), None, "emitted already");
    assert_eq!(replay.bin(begin(3), MS, 0, true), None);
    assert_eq!(replay.bin(begin(6), Span(0), 0, true), None);
}

fn any_parameters() -> impl Strategy<Value = Parameters> {
    let times = (1_000..1_000_000_u64, 1_000..10_000_000_u64, 0..100_000_u64);
    let rates = (
        1_000_000..1_000_000_000_u64,
        1_000_000..10_000_000_000_u64,
        1_000_000..10_000_000_000_u64,
    );
    let shares = (0.000_1..1.0_f64, 0.000_1..1.0_f64, 0.01..1.0_f64);
    (
        times,
        rates,
        shares,
        1_000..100_000_000_u64,
        1..1_000_u32,
        any::<bool>(),
    )
        .prop_map(
            |(
                (alpha_timer, timer, period),
                (additive, hyper, min_rate),
                (g, initial_alpha, max_cut),
                bytes,
                stages,
                clamp,
            )| {
                Parameters {
                    alpha_timer: Span(alpha_timer),
                    g,
                    initial_alpha,
                    timer: Span(timer),
                    bytes,
                    stages,
                    additive,
                    hyper,
                    min_rate,
                    max_cut,
                    reduce_period: Span(period),
                    clamp_target: clamp,
                }
            },
        )
}

/// A replay at 100 Gbit/s after notifications at these times in its first bin, in any order, in which nothing was sent.
fn notified(parameters: Parameters, mut cnps: Vec<u64>) -> Replay {
    let mut replay = Replay::new(parameters, 100 * GIGABIT, Time(0));
    cnps.sort_unstable();
    for cnp in cnps {
        replay.cnp(Time(cnp), Time(0), 0);
    }
    replay
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rates_stay_between_the_least_and_the_line(
        parameters in any_parameters(),
        line in 1_u64..1_000_000_000_000,
        steps in prop::collection::vec((any::<bool>(), 0..3_000_000_u64, 0..20_000_000_u64), 0..60),
    ) {
        let mut replay = Replay::new(parameters, line, Time(0));
        let mut time = 0_u64;
        for (is_cnp, after, bytes) in steps {
            time += after;
            let begin = Time(time / MS.0 * MS.0);
            if is_cnp {
                replay.cnp(Time(time), begin, bytes);
            } else if let Some(rate) = replay.bin(begin, MS, bytes, true) {
                prop_assert!(rate <= line);
                prop_assert!(rate + 1 >= parameters.min_rate.min(line));
            }
            prop_assert!(replay.current <= replay.line && replay.target <= replay.line);
            prop_assert!(replay.alpha >= 0.0 && replay.alpha <= 1.0 + 1e-9);
        }
    }

    #[test]
    fn a_silence_costs_the_same_in_one_go_or_many(
        parameters in any_parameters(),
        cnps in prop::collection::vec(0..1_000_000_u64, 1..5),
        bins in 1..200_usize,
    ) {
        let mut once = notified(parameters, cnps);
        let mut often = once.clone();
        for bin in 0..bins {
            often.bin(begin(bin), MS, 0, true);
        }
        let (once, often) = (once.bin(begin(bins), MS, 0, true).unwrap(), often.bin(begin(bins), MS, 0, true).unwrap());
        prop_assert!(once.abs_diff(often) <= 1 + once / 1_000_000, "{once} {often}");
    }

    #[test]
    fn an_even_rate_is_allowed_the_same_in_one_bin_or_many(
        parameters in any_parameters(),
        cnps in prop::collection::vec(0..1_000_000_u64, 1..5),
        bytes in 0..12_500_000_u64,
        bins in 1..50_usize,
    ) {
        let mut often = notified(parameters, cnps);
        often.bin(begin(0), MS, 0, true);
        let mut once = often.clone();
        let width = Span(MS.0 * bins as u64);
        let once = once.bin(begin(1), width, bytes * bins as u64, true).unwrap();
        let sum: u64 = (1..=bins).map(|bin| often.bin(begin(bin), MS, bytes, true).unwrap()).sum();
        let often = sum / bins as u64;
        prop_assert!(once.abs_diff(often) <= 2 + once / 1_000_000, "{once} {often}");
    }

    #[test]
    fn any_input_is_no_harm(inputs in prop::collection::vec((any::<bool>(), any::<u64>(), any::<u64>(), any::<u64>()), 0..30)) {
        let mut replay = Replay::new(Parameters::NVIDIA, 400 * GIGABIT, Time(0));
        for (is_cnp, a, b, bytes) in inputs {
            if is_cnp {
                replay.cnp(Time(a), Time(b), bytes);
            } else {
                replay.bin(Time(a), Span(b), bytes, true);
            }
        }
        prop_assert!(replay.current.is_finite());
    }
}
