//! DCQCN against its fluid model.
//!
//! The model is that of Zhu et al., "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY",
//! CoNEXT 2016, section 3. For N equal flows on a link of C packets a second, it has equations of alpha,
//! the target rate Rt and the current rate Rc. At the fixed point all derivatives are zero and Rc = C /
//! N. p is the marking probability, tau the CNP interval, tau' the alpha timer, and T the rate timer. B
//! is the byte counter in packets, F the steps of fast recovery, and R the additive step:
//!
//! ```text
//! alpha     = 1 - (1-p)^(tau' Rc)
//! (Rt - Rc) / tau (1 - (1-p)^(tau Rc)) = R Rc [ (1-p)^(F B) p / ((1-p)^-B - 1) + (1-p)^(F T Rc) p / ((1-p)^(-T Rc) - 1) ]
//! Rc alpha / (2 tau) (1 - (1-p)^(tau Rc)) = (Rt - Rc) Rc p / 2 [ 1 / ((1-p)^-B - 1) + 1 / ((1-p)^(-T Rc) - 1) ]
//! ```
//!
//! The second equation gives Rt, the third then has one unknown, p: the left side rises with p, the right one falls.

use super::{data_flows, truth_of};

/// The fixed point's marking probability.
fn marking(capacity: f64, flows: f64, additive: f64) -> f64 {
    let (tau, tau_alpha, timer, counter, steps) = (50e-6, 55e-6, 55e-6, 10e6 / 1106.0, 5.0);
    let rate = capacity / flows;
    let excess = |p: f64| {
        let power = |n: f64| (1.0 - p).powf(n);
        let cut = 1.0 - power(tau * rate);
        let alpha = 1.0 - power(tau_alpha * rate);
        let by_bytes = p / (power(-counter) - 1.0);
        let by_time = p / (power(-timer * rate) - 1.0);
        let rises = power(steps * counter) * by_bytes + power(steps * timer * rate) * by_time;
        let gap = tau * additive * rate * rises / cut;
        rate * alpha / (2.0 * tau) * cut - gap * rate / 2.0 * (by_bytes + by_time)
    };
    let (mut low, mut high) = (1e-7, 0.5);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if excess(middle) > 0.0 {
            high = middle;
        } else {
            low = middle;
        }
    }
    low
}

#[test]
fn the_fixed_point_is_that_of_the_fluid_model() {
    // Packets of 1,024 bytes take 1,106 on the line: 40 Gb/s are 4.52 million a second.
    let capacity = 40e9 / 8.0 / 1106.0;
    let additive = 40e6 / 8.0 / 1106.0;
    for (flows, kmax, pmax) in [(2_u32, "405KB", 0.04), (8, "1005KB", 0.4)] {
        let expected = marking(capacity, f64::from(flows), additive);
        let truth = truth_of(&format!(
            r#"
            duration = "80ms"
            [network]
            hosts = {hosts}
            rate = "40Gbps"
            [switch]
            kmin = "5KB"
            kmax = "{kmax}"
            pmax = {pmax}
            [nic]
            ack_every = 16
            [[flow]]
            from = "h1..h{flows}"
            to = "h{hosts}"
            message = "1MiB"
            outstanding = 2
            "#,
            hosts = flows + 1,
        ));
        let half = truth.duration_ns / 2;
        let marks = truth.ce_marks.iter().filter(|mark| mark.time > half).count() as f64;
        let bytes: f64 = data_flows(&truth)
            .iter()
            .map(|flow| super::received(flow, 40..80))
            .sum();
        let observed = marks / (bytes / 1024.0);
        // The link is busy: Rc = C / N.
        assert!(bytes * 1106.0 / 1024.0 > 0.98 * 5e9 * 0.04, "{bytes}");
        // Above the model by some 30 %. The model multiplies means of correlated values: after a cut the
        // distance to the target is largest when no step of recovery has been made. It takes p as
        // constant, while the queue's marks come in bursts, 50 us of which give one CNP.
        let ratio = observed / expected;
        assert!((0.8..1.5).contains(&ratio), "{flows}: {observed} for {expected}");
    }
}
