//! DCQCN's reaction point: what CNPs, bytes sent and time make of a sender's rate.
//!
//! A state machine without a clock: times come in with each call and must not fall. Timers are not events; what
//! would have expired since the last call is made up for in the next.

use roce_model::Time;

use super::Parameters;

/// The rate limiter of one flow (SIGCOMM 2015, section 3.1, figure 7).
///
/// ```text
/// CNP:      Rt = Rc; Rc = Rc (1 - alpha / 2); alpha = (1 - g) alpha + g; all counters and timers start again
/// alpha timer K without a CNP:  alpha = (1 - g) alpha
/// rate timer T or byte counter B expires, the t-th or b-th time since the cut:
///   max(t, b) <= F  fast recovery:      Rc = (Rt + Rc) / 2
///   min(t, b) > F   hyper increase:     Rt += i Rhai, i = min(t, b) - F; Rc = (Rt + Rc) / 2
///   otherwise       additive increase:  Rt += Rai;    Rc = (Rt + Rc) / 2
/// ```
///
/// So F steps are of fast recovery. Who compares `max(t, b) < F` after the step was counted, as github.com/bobzhuyb/ns3-rdma
/// does, makes one fewer.
///
/// Before the first CNP a flow is not limited: it sends at line rate (section 3).
#[derive(Clone, Debug)]
pub struct ReactionPoint {
    parameters: Parameters,
    line: f64,
    current: f64,
    target: f64,
    alpha: f64,
    /// Limited since a CNP, until the rate is back at the line's.
    limited: bool,
    timer_steps: u32,
    byte_steps: u32,
    bytes: u64,
    alpha_due: Time,
    timer_due: Time,
    last_cut: Option<Time>,
}

impl ReactionPoint {
    /// A flow that has not been slowed down; `line` is the rate of its port in bit/s.
    pub fn new(parameters: Parameters, line: f64) -> Self {
        Self {
            parameters,
            line,
            current: line,
            target: line,
            alpha: parameters.initial_alpha,
            limited: false,
            timer_steps: 0,
            byte_steps: 0,
            bytes: 0,
            alpha_due: Time(0),
            timer_due: Time(0),
            last_cut: None,
        }
    }

    /// A CNP came. Returns whether it cut the rate (within the cut period after another one it does not).
    pub fn cnp(&mut self, now: Time) -> bool {
        self.advance(now);
        let p = &self.parameters;
        if let Some(last) = self.last_cut
            && now.since(last) < p.cut_period
        {
            return false;
        }
        self.target = self.current;
        self.current = (self.current * (1.0 - self.alpha / 2.0)).max(p.minimum.min(self.line));
        self.alpha = (1.0 - p.g) * self.alpha + p.g;
        self.limited = true;
        self.timer_steps = 0;
        self.byte_steps = 0;
        self.bytes = 0;
        self.alpha_due = now + p.alpha_timer;
        self.timer_due = now + p.rate_timer;
        self.last_cut = Some(now);
        true
    }

    /// Counts bytes that the flow sent.
    pub fn sent(&mut self, now: Time, bytes: u64) {
        self.advance(now);
        if !self.limited || self.parameters.byte_counter == 0 {
            return;
        }
        self.bytes += bytes;
        while self.bytes >= self.parameters.byte_counter && self.limited {
            self.bytes -= self.parameters.byte_counter;
            self.byte_steps += 1;
            self.increase();
        }
    }

    /// The rate that the flow may send with now, in bit/s.
    pub fn rate(&mut self, now: Time) -> f64 {
        self.advance(now);
        self.current
    }

    /// Alpha, the estimate of how congested the path is: 0 to 1.
    pub fn alpha(&mut self, now: Time) -> f64 {
        self.advance(now);
        self.alpha
    }

    /// The target rate Rt in bit/s.
    pub fn target(&mut self, now: Time) -> f64 {
        self.advance(now);
        self.target
    }

    /// True if a CNP has limited the flow and it is not back at line rate yet.
    pub fn is_limited(&self) -> bool {
        self.limited
    }

    /// Makes up for the timers that expired until `now`.
    fn advance(&mut self, now: Time) {
        if self.last_cut.is_none() {
            return;
        }
        let period = self.parameters.alpha_timer.0;
        if period > 0 && now >= self.alpha_due {
            let expired = now.since(self.alpha_due).0 / period + 1;
            // After this number of decays alpha is 0: the power needs no more than 2^20 steps.
            let steps = i32::try_from(expired.min(1 << 20)).unwrap_or(i32::MAX);
            self.alpha *= (1.0 - self.parameters.g).powi(steps);
            self.alpha_due = Time(self.alpha_due.0 + expired * period);
        }
        while self.limited && now >= self.timer_due && self.parameters.rate_timer.0 > 0 {
            self.timer_due += self.parameters.rate_timer;
            self.timer_steps += 1;
            self.increase();
        }
    }

    /// One step of figure 7.
    fn increase(&mut self) {
        let p = &self.parameters;
        let most = self.timer_steps.max(self.byte_steps);
        let least = self.timer_steps.min(self.byte_steps);
        if most > p.fast_recovery {
            self.target += if least > p.fast_recovery {
                f64::from(least - p.fast_recovery) * p.hyper
            } else {
                p.additive
            };
            self.target = self.target.min(self.line);
        }
        self.current = f64::midpoint(self.target, self.current).min(self.line);
        if self.current >= self.line * 0.999_999 {
            self.current = self.line;
            self.target = self.line;
            self.limited = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: f64 = 40e9;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-6 * b.abs().max(1.0)
    }

    #[test]
    fn the_first_cnp_halves_the_rate() {
        let mut rp = ReactionPoint::new(Parameters::PAPER, LINE);
        assert!(close(rp.rate(Time(1_000_000)), LINE));
        assert!(rp.cnp(Time(1_000_000)));
        // alpha is 1 at first: Rc = 40 (1 - 1/2) = 20 Gb/s, Rt = 40 Gb/s.
        assert!(close(rp.rate(Time(1_000_000)), 20e9));
        assert!(close(rp.target(Time(1_000_000)), 40e9));
    }

    #[test]
    fn alpha_decays_with_its_timer() {
        let mut rp = ReactionPoint::new(Parameters::PAPER, LINE);
        rp.cnp(Time(0));
        // After 10 periods of 55 us: (255/256)^10 = 0.961620...
        let expected = (255.0_f64 / 256.0).powi(10);
        assert!(close(rp.alpha(Time(550_000)), expected));
        // One more CNP raises it: (1 - g) alpha + g.
        rp.cnp(Time(560_000));
        assert!(close(
            rp.alpha(Time(560_000)),
            expected * 255.0 / 256.0 + 1.0 / 256.0
        ));
    }

    #[test]
    fn fast_recovery_closes_half_of_the_gap() {
        let mut rp = ReactionPoint::new(Parameters::PAPER, LINE);
        rp.cnp(Time(0));
        // Each 55 us halves the distance to 40 Gb/s: 20, 30, 35, 37.5, 38.75.
        for (steps, expected) in [(1, 30e9), (2, 35e9), (3, 37.5e9), (4, 38.75e9)] {
            assert!(close(rp.rate(Time(steps * 55_000)), expected), "{steps}");
        }
    }

    #[test]
    fn then_the_target_rises() {
        let parameters = Parameters {
            byte_counter: 1_000,
            ..Parameters::PAPER
        };
        let mut rp = ReactionPoint::new(parameters, LINE);
        for cnp in 0..3 {
            rp.cnp(Time(cnp));
        }
        // Three cuts in a row: alpha stays 1 (0 decays): 20, 10, 5 Gb/s; target 10.
        assert!(close(rp.rate(Time(2)), 5e9));
        // Five byte steps: fast recovery, 10 - 5 / 32 = 9.84375 Gb/s; the sixth is additive: the target is
        // 10.04 Gb/s, the rate (10.04 + 9.84375) / 2 = 9.941875.
        rp.sent(Time(3), 5_000);
        assert!(close(rp.rate(Time(3)), 9.84375e9));
        rp.sent(Time(3), 1_000);
        assert!(close(rp.target(Time(3)), 10.04e9));
        assert!(close(rp.rate(Time(3)), 9.941_875e9));
        // Six timer steps in 330 us: five additive ones (max(t, 6) > 5), and in the sixth min(6, 6) > 5: hyper.
        let target = rp.target(Time(2 + 330_000));
        assert!(close(target, 10.04e9 + 5.0 * 40e6 + 200e6), "{target}");
    }

    #[test]
    fn a_long_rest_brings_the_line_rate_back() {
        let mut rp = ReactionPoint::new(Parameters::PAPER, LINE);
        rp.cnp(Time(0));
        assert!(rp.is_limited());
        assert!(close(rp.rate(Time(10_000_000_000)), LINE));
        assert!(!rp.is_limited());
    }

    #[test]
    fn cnps_of_one_period_cut_once() {
        let mut rp = ReactionPoint::new(Parameters::NVIDIA, LINE);
        assert!(rp.cnp(Time(10_000)));
        assert!(!rp.cnp(Time(12_000)));
        assert!(rp.cnp(Time(14_000)));
    }

    #[test]
    fn seldom_cnps_of_a_nic_cut_little() {
        // Alpha loses 5 of 1,024 parts each microsecond: after 1,000 us (1019/1024)^1000 = 0.0075 is left of it.
        let mut rp = ReactionPoint::new(Parameters::NVIDIA, 100e9);
        rp.cnp(Time(0));
        for step in 1..20 {
            let now = Time(step * 1_000_000);
            let (alpha, before) = (rp.alpha(now), rp.rate(now));
            rp.cnp(now);
            // One CNP adds 5/1,024 to what has decayed.
            assert!(alpha < 0.0076 + 0.0050, "{step}: {alpha}");
            assert!(close(rp.rate(now), before * (1.0 - alpha / 2.0)));
            assert!(rp.rate(now) > 0.99 * before, "{step}");
        }
    }

    #[test]
    fn the_rate_has_a_floor() {
        let mut rp = ReactionPoint::new(Parameters::PAPER, LINE);
        for n in 0..100 {
            rp.cnp(Time(n * 1_000));
        }
        assert!(close(rp.rate(Time(99_000)), 100e6));
    }
}
