//! The weights of causes, and the times that they take between two hosts.

use roce_model::Span;

use crate::psn::cause::Trigger;
use crate::psn::causes::circumstances::{Circumstances, NamedPsn};
use crate::psn::causes::density::{Histogram, OneHump, ln};
use crate::psn::request::SILENCE;

/// Passes of learning: the shares do not change any more after half as many.
const PASSES: usize = 16;
/// Share of probability from which on a cause is named.
const LIKELY: f64 = 0.7;
/// Share of probability from which on a cause is sure: all others together are fifty times less likely.
const SURE: f64 = 0.98;
/// The weight of a cause that nobody thought of.
const UNKNOWN: f64 = -11.0;
/// With so many timeouts, one that takes less than half as long as three of four is none: a timer is a multiple of 4.096 us, and expires
/// between one and four times that (IBTA 9.7.6.1.3).
const ENOUGH_TIMEOUTS: f64 = 4.0;
/// With more timeouts, each wait that is longer than one says as much less about it.
const MANY_TIMEOUTS: f64 = 8.0;
/// The weight of an answer to a NAK after any time, of a sender that congestion control slows.
const SLOWED: f64 = -3.0;
/// The logarithm of four.
const TIMER_RANGE: f64 = 2.0 * core::f64::consts::LN_2;
/// A weight that no other evidence makes up for.
const NEVER: f64 = -1e6;
/// The timer is not that of a sender which sent packets so shortly before, or a little before.
const BUSY: (Span, Span) = (Span(5_000), Span(20_000));

/// The cause of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CauseFound {
    pub(crate) trigger: Trigger,
    /// All other causes together are fifty times less likely.
    pub(crate) is_sure: bool,
}

impl CauseFound {
    /// Nothing that was captured explains it.
    pub(crate) const UNKNOWN: Self = Self {
        trigger: Trigger::Unknown,
        is_sure: false,
    };
}

/// The share of each cause of one run.
#[derive(Clone, Copy, Debug)]
struct Shares {
    nak: f64,
    rnr: f64,
    implied: f64,
    timeout: f64,
    /// The parts of the timeout's share by [`Circumstances::waits`].
    waits: [f64; 3],
}

/// The times that causes take for the requests from one host to another.
#[derive(Clone, Debug)]
pub(super) struct LearnedTimes {
    nak: OneHump,
    implied: OneHump,
    timer: Histogram,
    /// The logarithms of the longest waits for progress that ended without a run.
    waits: Vec<f64>,
    /// Those of the waits behind which a run began that no NAK requested: nothing but a timer does that.
    timeouts: Vec<f64>,
    /// The logarithm of the share of NAKs for which a timeout came nevertheless.
    timeout_despite_nak: f64,
    /// NAKs for just the begin of a run, and those of them for which a timeout came.
    naks: (f64, f64),
}

impl LearnedTimes {
    /// Assumptions before the first run.
    pub(super) fn new() -> Self {
        let mut new = Self::without_samples();
        new.fit();
        new
    }

    /// No samples, and nothing concluded from them yet: [`Self::fit`] does.
    fn without_samples() -> Self {
        Self {
            nak: OneHump::new(),
            implied: OneHump::new(),
            timer: Histogram::new(),
            waits: Vec::new(),
            timeouts: Vec::new(),
            timeout_despite_nak: 0.0,
            naks: (0.0, 0.0),
        }
    }

    /// The times that fit `runs` best. `waits`: the longest waits for progress that ended without a run.
    pub(super) fn from_runs(runs: &[Circumstances], waits: &[Span]) -> Self {
        let mut learned = Self::new();
        learned.know(waits);
        learned.timeouts = runs.iter().filter_map(alone).map(ln).collect();
        let of_naks = runs.iter().filter_map(|run| run.nak.filter(is_asked_for));
        learned
            .nak
            .begin_with(of_naks.map(|nak| ln(nak.before)).collect());
        let implied = runs.iter().filter(|run| run.implied.0 != 0);
        learned
            .implied
            .begin_with(implied.map(|run| ln(run.implied)).collect());
        for _ in 0..PASSES {
            let mut next = Self::without_samples();
            // Without any answer nothing shows what a silence was.
            for run in runs.iter().filter(|run| !run.is_blind) {
                next.add(run, &learned.shares(run));
            }
            next.fit();
            next.waits = learned.waits;
            next.timeouts = learned.timeouts;
            learned = next;
        }
        learned
    }

    /// Takes the longest waits for progress that ended without a run.
    pub(super) fn know(&mut self, waits: &[Span]) {
        self.waits = waits.iter().map(|wait| ln(*wait)).collect();
    }

    fn add(&mut self, run: &Circumstances, shares: &Shares) {
        if let Some(nak) = run.nak {
            if nak.ahead == 0 {
                self.nak.add(ln(nak.before), shares.nak);
            }
            if is_asked_for(&nak) {
                self.naks.0 += 1.0;
                self.naks.1 += shares.timeout;
            }
        }
        if run.implied.0 != 0 {
            self.implied.add(ln(run.implied), shares.implied);
        }
        for (wait, share) in run.waits.iter().zip(shares.waits) {
            self.timer.add(ln(*wait), share);
        }
    }

    fn fit(&mut self) {
        self.nak.fit();
        self.implied.fit();
        self.timer.fit();
        // Before anything is known, the answer to one NAK in seven is lost on its whole way to the tap.
        self.timeout_despite_nak = ((self.naks.1 + 0.6) / (self.naks.0 + 4.0)).ln();
    }

    /// The cause of `run`.
    pub(super) fn cause(&self, run: &Circumstances) -> CauseFound {
        let shares = self.shares(run);
        let is_rnr_known = run.rnr.is_some_and(|rnr| rnr.timer.0 != 0);
        let by_trigger = [
            (shares.nak, Trigger::Nak),
            (if is_rnr_known { shares.rnr } else { 0.0 }, Trigger::Rnr),
            (shares.implied, Trigger::ImpliedNak),
            (shares.timeout, Trigger::Timeout),
        ];
        let mut best = (LIKELY, Trigger::Unknown);
        for one in by_trigger {
            if one.0 >= best.0 {
                best = one;
            }
        }
        CauseFound {
            trigger: best.1,
            is_sure: best.1 != Trigger::Unknown && best.0 >= SURE,
        }
    }

    fn shares(&self, run: &Circumstances) -> Shares {
        let is_asked_for = run.nak.as_ref().is_some_and(is_asked_for);
        let waits = run.waits.map(|wait| self.expired(wait, is_asked_for));
        let timeout = if run.shows_silence() {
            sum_of(&waits) - many(&run.waits).ln() + self.at_the_begin(run)
        } else {
            NEVER
        };
        let nak = run.nak.map_or(NEVER, |nak| {
            let answer = self.nak.at(ln(nak.before));
            let answer = if run.is_slowed { answer.max(SLOWED) } else { answer };
            answer + run.skips(u64::from(nak.ahead)) - answered(&nak, 5.0)
        });
        let rnr = run.rnr.map_or(NEVER, |rnr| {
            timer_of(&rnr) + run.skips(u64::from(rnr.ahead)) - answered(&rnr, 4.0)
        });
        let implied = match run.implied {
            Span(0) => NEVER,
            implied => self.implied.at(ln(implied)),
        };
        let hidden = self.hidden(run);
        let all = sum_of(&[nak, rnr, implied, timeout, hidden, UNKNOWN]);
        let share = |weight: f64| (weight - all).exp();
        let of_waits = sum_of(&waits);
        Shares {
            nak: share(nak),
            rnr: share(rnr),
            implied: share(implied),
            timeout: share(timeout),
            waits: waits.map(|wait| share(timeout) * (wait - of_waits).exp()),
        }
    }

    /// The weight of a timer that expired after `wait`. `is_asked_for`: a NAK requested what the sender repeats.
    fn expired(&self, wait: Span, is_asked_for: bool) -> f64 {
        if wait < SILENCE {
            return NEVER;
        }
        let wait = ln(wait);
        let is_short = self
            .timer
            .least(ENOUGH_TIMEOUTS)
            .is_some_and(|least| wait < least - core::f64::consts::LN_2);
        // It would have expired in waits that are longer by a third. A capture with more timeouts has more waits of any kind.
        let longer = self.waits.iter().filter(|kept| **kept - 0.26 > wait).count();
        let survived = as_float(longer as u64) * (MANY_TIMEOUTS / self.timer.weight()).min(1.0);
        let outlived = if is_asked_for { self.outlived(wait) } else { 0.0 };
        self.timer.at(wait) - if is_short { 12.0 } else { 0.0 } - 2.0 * survived.min(4.0) - 2.0 * outlived
    }

    /// The number of timeouts without a NAK, four at the most, that a timer of the logarithm `wait` would have come before: all of them took
    /// more than four times as long. A timer expires between one and four times its time (IBTA 9.7.6.1.3).
    fn outlived(&self, wait: f64) -> f64 {
        let is_longer = |timeout: &&f64| **timeout > wait + TIMER_RANGE;
        let longer = self.timeouts.iter().filter(is_longer).count();
        let fits = self
            .timeouts
            .iter()
            .any(|timeout| (timeout - wait).abs() <= TIMER_RANGE);
        if fits { 0.0 } else { as_float(longer.min(4) as u64) }
    }

    /// The weight of a timeout that makes the sender begin there: at what is not acknowledged, after nobody asked for it.
    fn at_the_begin(&self, run: &Circumstances) -> f64 {
        let mut weight = match run.beyond_acked {
            None | Some(0) => 0.0,
            Some(ahead @ 1..) => run.skips(ahead.unsigned_abs()),
            // Each acknowledgement of it must have been lost; of READs, the responses.
            Some(_) if run.is_fetch => -2.0,
            Some(behind) => -2.0 * many_acks(behind.unsigned_abs()),
        };
        weight -= match run.silence {
            silence if silence < BUSY.0 => 4.0,
            silence if silence < BUSY.1 => 1.0,
            _ => 0.0,
        };
        if run.nak.as_ref().is_some_and(is_asked_for) {
            weight += self.timeout_despite_nak;
        }
        if run.rnr.as_ref().is_some_and(is_asked_for) {
            weight -= 2.5;
        }
        weight
    }

    /// The weight of a NAK that the capture missed.
    fn hidden(&self, run: &Circumstances) -> f64 {
        if run.nak.is_some() {
            return NEVER;
        }
        let missed = if run.is_blind {
            -1.5
        } else {
            chance(run.not_captured, 0.02, run.psns) - 1.0
        };
        // It came after the gap, or within the silence.
        let since = if run.since_gap.0 == 0 {
            run.silence
        } else {
            run.since_gap
        };
        missed + self.nak.at(ln(since))
    }
}

impl Circumstances {
    /// The cause of a run between hosts that had no other.
    pub(crate) fn cause_alone(&self) -> CauseFound {
        LearnedTimes::new().cause(self)
    }

    /// The logarithm of the chance that the first packets of a run, so many, were lost.
    fn skips(&self, psns: u64) -> f64 {
        if psns == 0 {
            return 0.0;
        }
        // Losses come alone, each next one half as often, or in bursts.
        let alone = core::f64::consts::LN_2 * (1.0 - as_float(psns));
        let burst = -4.0 - 0.05 * as_float(psns);
        chance(self.missing, 0.5, self.psns) + sum_of(&[alone, burst])
    }
}

impl OneHump {
    /// Learning begins with the middle of all candidates, not with their tail: those within 2.5 deviations of the median.
    fn begin_with(&mut self, mut logs: Vec<f64>) {
        if logs.len() < 4 {
            return;
        }
        logs.sort_by(f64::total_cmp);
        let median = logs[logs.len() / 2];
        let mut off: Vec<f64> = logs.iter().map(|ln| (ln - median).abs()).collect();
        off.sort_by(f64::total_cmp);
        // 1.48 median deviations are one standard deviation.
        let deviation = (off[off.len() / 2] * 1.48).max(0.2);
        for ln in logs {
            if (ln - median).abs() < 2.5 * deviation {
                self.add(ln, 1.0);
            }
        }
        self.fit();
    }
}

/// How long the sender's timer ran at least before a run for which nothing but a timer was captured: since it last began.
fn alone(run: &Circumstances) -> Option<Span> {
    let has_cause = run.nak.is_some() || run.rnr.is_some() || run.implied.0 != 0;
    let waits = run.waits.iter().filter(|wait| wait.0 != 0);
    let wait = waits.min().filter(|wait| **wait >= SILENCE)?;
    (!has_cause && !run.is_blind && run.shows_silence()).then_some(*wait)
}

/// True if a NAK names just the PSN at which the run begins, and no run began there before.
fn is_asked_for(nak: &NamedPsn) -> bool {
    nak.ahead == 0 && !nak.is_answered
}

fn answered(nak: &NamedPsn, cost: f64) -> f64 {
    if nak.is_answered { cost } else { 0.0 }
}

/// The weight of the time since an RNR NAK: its timer may be rounded up, and packets may be on their way.
fn timer_of(rnr: &NamedPsn) -> f64 {
    if rnr.timer.0 == 0 {
        return -2.0;
    }
    let ratio = as_float(rnr.before.0.max(1)) / as_float(rnr.timer.0);
    if (0.7..3.0).contains(&ratio) {
        0.0
    } else {
        -2.0 - 3.0 * ratio.ln().abs()
    }
}

/// The acknowledgements that so many PSNs had, six at the most: adapters acknowledge each message, and some packets within.
fn many_acks(psns: u64) -> f64 {
    as_float(psns.div_ceil(16).min(6))
}

fn many(waits: &[Span]) -> f64 {
    as_float(waits.iter().filter(|wait| wait.0 != 0).count().max(1) as u64)
}

/// The logarithm of the share `some` of `all`.
fn chance(some: u64, least: f64, all: u64) -> f64 {
    ((as_float(some) + least) / (as_float(all) + 1_000.0)).ln()
}

#[expect(clippy::cast_precision_loss, reason = "15 digits are enough for a weight")]
fn as_float(number: u64) -> f64 {
    number as f64
}

/// The logarithm of the sum of numbers that are given by their logarithms.
fn sum_of(logs: &[f64]) -> f64 {
    let most = logs.iter().copied().fold(f64::MIN, f64::max);
    most + logs.iter().map(|log| (log - most).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;
    /// Acknowledgements of the busy host took so long.
    const WAITS: [Span; 4] = [
        Span(9_460 * US),
        Span(13_270 * US),
        Span(14_830 * US),
        Span(15_000 * US),
    ];

    /// A run at the PSN that a NAK named `before`, of a sender that was silent for `silence`.
    fn after_nak(before: u64, silence: u64) -> Circumstances {
        Circumstances {
            nak: Some(NamedPsn {
                before: Span(before),
                timer: Span(0),
                ahead: 0,
                is_answered: false,
            }),
            waits: [Span(before), Span(0), Span(0)],
            silence: Span(silence),
            beyond_acked: Some(0),
            psns: 1_000,
            ..Circumstances::default()
        }
    }

    /// A run without a NAK, after `silence`.
    fn by_timer(silence: u64) -> Circumstances {
        Circumstances {
            nak: None,
            ..after_nak(silence, silence)
        }
    }

    fn triggers(runs: &[Circumstances]) -> Vec<Trigger> {
        let learned = LearnedTimes::from_runs(runs, &WAITS);
        runs.iter().map(|run| learned.cause(run).trigger).collect()
    }

    fn count(triggers: &[Trigger], trigger: Trigger) -> usize {
        triggers.iter().filter(|one| **one == trigger).count()
    }

    /// Delays as in the sample `write_bw_loss`: the timer is set to 67 ms, a busy host answers NAKs within 16 ms.
    fn busy_host() -> Vec<Circumstances> {
        let answered = [
            40, 60, 90, 150, 300, 500, 900, 1_400, 2_500, 4_000, 7_000, 11_000, 16_000,
        ];
        let timers = [51, 58, 60, 64, 66, 70, 75, 87];
        let of_naks = answered.map(|after| after_nak(after * US, after * US));
        let of_timers = timers.map(|after| after_nak(after * MS, after * MS - 2 * MS));
        of_naks
            .iter()
            .chain(&of_naks)
            .chain(&of_timers)
            .copied()
            .collect()
    }

    #[test]
    fn a_second_hump_of_answers_to_naks_is_the_timer() {
        let found = triggers(&busy_host());
        assert_eq!(
            (count(&found, Trigger::Nak), count(&found, Trigger::Timeout)),
            (26, 8)
        );
    }

    /// A queue holds back answers to some NAKs; a timer of 20 ms never expires after 148 us.
    #[test]
    fn a_second_hump_that_timeouts_without_a_nak_outlived_is_no_timer() {
        let answers = (0..60).map(|at| after_nak(9_000 + at * 100, 5_000));
        let held_back = (0..18).map(|at| after_nak((100 + 4 * at) * US, (80 + 4 * at) * US));
        let timeouts = (0..6).map(|at| by_timer((19_900 + 20 * at) * US));
        let runs: Vec<_> = answers.chain(held_back).chain(timeouts).collect();
        let learned = LearnedTimes::from_runs(&runs, &[]);
        let found: Vec<_> = runs.iter().map(|run| learned.cause(run).trigger).collect();
        assert_eq!(count(&found, Trigger::Timeout), 6, "{found:?}");
    }

    #[test]
    fn equal_packets_have_equal_causes_whatever_came_before() {
        let once = busy_host();
        for copies in [2, 3, 5] {
            let found = triggers(&once.repeat(copies));
            let counts = (count(&found, Trigger::Nak), count(&found, Trigger::Timeout));
            assert_eq!(counts, (26 * copies, 8 * copies), "{copies}");
        }
    }

    #[test]
    fn a_silence_without_a_nak_is_a_timeout_from_the_first_one_on() {
        let cause = LearnedTimes::new().cause(&by_timer(67 * MS));
        assert_eq!((cause.trigger, cause.is_sure), (Trigger::Timeout, true));
    }

    #[test]
    fn copies_of_a_mirror_are_no_timeouts_however_often_they_come() {
        // Copies of messages come 17 us behind them, while their sender goes on.
        let copies: Vec<_> = (0..9_u64)
            .map(|more| Circumstances {
                silence: Span(2_500),
                beyond_acked: Some(-3),
                ..by_timer(16_500 + 100 * more)
            })
            .collect();
        assert_eq!(count(&triggers(&copies), Trigger::Timeout), 0);
    }

    #[test]
    fn far_less_than_all_other_timeouts_is_none() {
        let mut runs = vec![by_timer(67 * MS); 8];
        runs.push(by_timer(200 * US));
        let found = triggers(&runs);
        assert_eq!(count(&found, Trigger::Timeout), 8);
    }

    #[test]
    fn without_any_answer_a_short_silence_says_nothing() {
        // A NAK that was not captured explains it as well.
        let blind = |silence| Circumstances {
            is_blind: true,
            beyond_acked: None,
            ..by_timer(silence)
        };
        let learned = LearnedTimes::new();
        assert_eq!(learned.cause(&blind(55 * US)).trigger, Trigger::Unknown);
        // 4.096 us times 2^12, again and again: no NAK comes so late each time.
        let found = triggers(&[blind(16_777 * US); 7]);
        assert_eq!(found, [Trigger::Timeout; 7]);
    }

    #[test]
    fn where_most_packets_are_not_captured_no_silence_is_a_timeout() {
        // 687 of 689 PSNs are missing: the NAK may be among what was not captured.
        let thinned = Circumstances {
            psns: 689,
            missing: 687,
            not_captured: 687,
            silence: Span(9_200),
            ..by_timer(1_046 * US)
        };
        let cause = LearnedTimes::new().cause(&thinned);
        assert_eq!(cause.trigger, Trigger::Unknown);
        assert!(!thinned.shows_silence());
    }

    #[test]
    fn an_rnr_nak_is_the_cause_when_its_timer_is_over() {
        let after = |before| Circumstances {
            rnr: Some(NamedPsn {
                before: Span(before),
                timer: Span(640 * US),
                ahead: 0,
                is_answered: false,
            }),
            ..by_timer(before)
        };
        let learned = LearnedTimes::new();
        assert_eq!(learned.cause(&after(700 * US)).trigger, Trigger::Rnr);
        assert_eq!(learned.cause(&after(80 * MS)).trigger, Trigger::Timeout);
    }

    #[test]
    fn a_read_is_asked_for_again_soon_after_a_later_answer() {
        let implied = |after: u64| Circumstances {
            implied: Span(after),
            is_fetch: true,
            ..by_timer(after + 300 * US)
        };
        let mut runs: Vec<_> = (0..8).map(|more| implied((20 + more) * US)).collect();
        assert_eq!(triggers(&runs), [Trigger::ImpliedNak; 8]);
        runs.push(Circumstances {
            implied: Span(0),
            ..implied(67 * MS)
        });
        assert_eq!(triggers(&runs)[8], Trigger::Timeout);
    }
}
