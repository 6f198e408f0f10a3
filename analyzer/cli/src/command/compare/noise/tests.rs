//! Series whose truth is known.

use super::*;

/// A normal deviate (Box and Muller, 1958).
fn normal(random: &mut Random) -> f64 {
    let (u, v) = (1.0 - unit(random), unit(random));
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// A series around `mean` in which each value keeps a part of its predecessor's deviation: AR(1).
fn autocorrelated(mean: f64, kept: f64, slices: usize, random: &mut Random) -> Vec<(f64, f64)> {
    // It begins as it goes on.
    let mut off = normal(random) / (1.0 - kept * kept).sqrt();
    (0..slices)
        .map(|_| {
            off = kept * off + normal(random);
            (mean + off, 1.0)
        })
        .collect()
}

#[test]
fn students_t_is_that_of_tables() {
    // Two-sided, as printed in any table: 1 % and 5 % of 1, 2, 5, 10, 30 degrees, and the normal distribution's.
    let table = [
        (1.0, 0.05, 12.706),
        (1.0, 0.01, 63.657),
        (2.0, 0.05, 4.303),
        (5.0, 0.05, 2.571),
        (5.9, 0.01, 4.032),
        (10.0, 0.01, 3.169),
        (30.0, 0.05, 2.042),
        (1e9, 0.05, 1.960),
        (1e9, 0.001, 3.291),
    ];
    for (freedom, error, expected) in table {
        let t = student(freedom, error);
        assert!((t - expected).abs() < 0.001, "{freedom} {error}: {t}");
    }
}

#[test]
fn blocks_are_as_long_as_the_series_remembers() {
    let mut random = random::stream(1, "blocks");
    let length = |kept: f64, random: &mut Random| {
        let series: Vec<f64> = autocorrelated(0.0, kept, 256, random)
            .iter()
            .map(|(value, _)| *value)
            .collect();
        block_length(&series)
    };
    let mean = |kept: f64, random: &mut Random| (0..50).map(|_| length(kept, random)).sum::<f64>() / 50.0;
    // For AR(1) the best length is known: (2 k / (1 - k^2))^(2/3) * n^(1/3): 1 for 0, 7.7 for 0.5, 17.2 for 0.8 and n = 256.
    let (none, half, much) = (
        mean(0.0, &mut random),
        mean(0.5, &mut random),
        mean(0.8, &mut random),
    );
    assert!(none < 2.5, "{none}");
    assert!((5.0..12.0).contains(&half), "{half}");
    assert!((10.0..26.0).contains(&much), "{much}");
    assert!((block_length(&[0.0; 100]) - 1.0).abs() < 1e-9);
}

/// Number of pairs whose interval for B less A misses the truth. The interval is to err in 5 %.
fn missed(pairs: u32, truth: f64, make: impl Fn(f64, &mut Random) -> Vec<(f64, f64)>) -> u32 {
    let mut random = random::stream(2, "coverage");
    let mut missed = 0;
    for pair in 0..pairs {
        let a = estimate(&make(10.0, &mut random), &format!("a{pair}")).unwrap();
        let b = estimate(&make(10.0 + truth, &mut random), &format!("b{pair}")).unwrap();
        // A series that is too short gives no wrong result.
        let Some(found) = difference(&a, &b, 0.05) else {
            continue;
        };
        missed += u32::from(!(found.interval.0..=found.interval.1).contains(&truth));
    }
    missed
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    // 200 pairs at 5 %: 10 +- 3.1; fewer, since the larger of two errors is taken. Resampling single slices would miss half at 0.8: the
    // standard error is three times as large as it then seems.
    let independent = missed(200, 1.0, |mean, random| autocorrelated(mean, 0.0, 128, random));
    assert!((1..=18).contains(&independent), "{independent} of 200");
    let strongly = missed(200, 0.0, |mean, random| autocorrelated(mean, 0.8, 128, random));
    assert!((1..=22).contains(&strongly), "{strongly} of 200");
    // Rare events in bursts: 1 slice of 20 has some, exponentially many.
    let skewed = missed(200, 0.0, |_, random| {
        let burst = |random: &mut Random| {
            if unit(random) < 0.05 {
                -unit(random).max(1e-12).ln()
            } else {
                0.0
            }
        };
        (0..200).map(|_| (burst(random), 1.0)).collect()
    });
    assert!((1..=22).contains(&skewed), "{skewed} of 200");
}

#[test]
fn what_is_too_short_is_said_to_be() {
    let steady = |slices: usize| vec![(1.0, 2.0); slices];
    assert_eq!(
        estimate(&steady(15), "").unwrap(),
        Estimate {
            value: 0.5,
            noise: None
        }
    );
    let long = estimate(&steady(16), "").unwrap();
    assert!(long.noise.unwrap().error.abs() < 1e-12);
    // A series that drifts all the time is one block: whatever it does next cannot be distinguished from it.
    let drift: Vec<(f64, f64)> = (0..40).map(|slice| (f64::from(slice), 1.0)).collect();
    assert_eq!(estimate(&drift, "").unwrap().noise, None);
    assert_eq!(estimate(&[(0.0, 0.0); 30], ""), None);
}

#[test]
fn what_would_be_seen_is_seen_in_four_of_five_cases() {
    let mut random = random::stream(3, "power");
    let mut seen = 0;
    for pair in 0..200 {
        let a = estimate(&autocorrelated(10.0, 0.3, 200, &mut random), &format!("a{pair}")).unwrap();
        // 0.3 keeps make the mean of 200 known to 1 / (1 - 0.3) / sqrt(200) = 0.101; of two 0.143; 1.98 + 0.84 of it: 0.403.
        let b = estimate(
            &autocorrelated(10.403, 0.3, 200, &mut random),
            &format!("b{pair}"),
        )
        .unwrap();
        let found = difference(&a, &b, 0.05).unwrap();
        assert!((0.2..0.7).contains(&found.visible), "{}", found.visible);
        seen += u32::from(found.interval.0 > 0.0);
    }
    // 160 +- 5.7.
    assert!((140..=180).contains(&seen), "{seen} of 200");
}
