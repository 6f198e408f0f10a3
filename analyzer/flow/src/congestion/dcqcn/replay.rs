//! The reaction point as a state machine over the notifications of one flow. Time and bytes are inputs, and nothing is
//! stepped through that a formula gives, so that a long silence costs as little as a short one.

use roce_model::cast::{float, whole};
use roce_model::{Span, Time};

use crate::congestion::dcqcn::Parameters;

/// Rate that one flow's reaction point allows, from its first notification on.
///
/// Rates are in bit/s. Before the first notification nothing but the link limits a flow, and there is no replay. A
/// flow's bytes within a bin are taken as sent evenly between the notifications in it.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    parameters: Parameters,
    line: f64,
    now: Time,
    /// RC and RT.
    current: f64,
    target: f64,
    alpha: f64,
    /// Time of alpha's last rise: it shrinks from here.
    alpha_since: Time,
    last_cut: Option<Time>,
    /// Time of the timer's next increase, and bytes until the byte counter's.
    due: Time,
    bytes_left: f64,
    /// Increases by the timer and by the byte counter since the last cut.
    by_timer: u32,
    by_bytes: u32,
    /// The bin that `now` is in: its begin, how many bytes of it are accounted for, and what was allowed since, in bits.
    bin: Time,
    sent: u64,
    allowed: f64,
    /// True if the byte counter counts no more than was allowed: an upper bound for a sender that obeys.
    capped: bool,
    deviation: Deviation,
}

/// By how much a flow exceeds what it may send. A bin counts when the flow sent application data in it and in the bins before and after
/// it: at the borders of its activity it is not backlogged.
#[derive(Clone, Copy, Debug, Default)]
struct Deviation {
    sum: f64,
    bins: u32,
    /// The last bin with data: its end, and its share if it follows another one.
    last_end: Time,
    waiting: Option<f64>,
}

impl Deviation {
    fn bin(&mut self, begin: Time, end: Time, over: Option<f64>) {
        let follows = self.last_end == begin;
        if let (true, Some(over)) = (follows, self.waiting) {
            self.sum += over;
            self.bins = self.bins.saturating_add(1);
        }
        self.waiting = over.filter(|_| follows);
        self.last_end = end;
    }
}

/// Below this difference, in bit/s, two rates are the same.
const SAME: f64 = 1.0;

/// The cause of a rate's increase: time, or bytes that were sent.
#[derive(Clone, Copy)]
enum Counter {
    Timer,
    Bytes,
}

impl Replay {
    /// A flow that may use the whole line of `line` bit/s, in the bin that begins at `bin`.
    pub(crate) fn new(parameters: Parameters, line: u64, bin: Time) -> Self {
        let line = float(line).max(1.0);
        Self {
            parameters,
            line,
            now: bin,
            current: line,
            target: line,
            alpha: parameters.initial_alpha,
            alpha_since: bin,
            last_cut: None,
            due: bin,
            bytes_left: 0.0,
            by_timer: 0,
            by_bytes: 0,
            bin,
            sent: 0,
            allowed: 0.0,
            capped: false,
            deviation: Deviation::default(),
        }
    }

    /// A replay as an upper bound: bytes beyond it do not make it rise.
    pub(crate) fn bound(parameters: Parameters, line: u64, bin: Time) -> Self {
        Self {
            capped: true,
            ..Self::new(parameters, line, bin)
        }
    }

    /// Its parameters.
    pub(crate) fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Handles a notification at `time`, in the bin that starts at `bin` and in which the flow has sent
    /// `sent` bytes.
    pub(crate) fn cnp(&mut self, time: Time, bin: Time, sent: u64) {
        self.roll(bin);
        self.account(time, sent);
        let parameters = self.parameters;
        let time = self.now;
        if self.last_cut.is_some() {
            // Equation 2, as often as the time allows.
            let periods = time.since(self.alpha_since).0 / parameters.alpha_timer.0.max(1);
            self.alpha *= (1.0 - parameters.g).powi(i32::try_from(periods).unwrap_or(i32::MAX));
        }
        if self
            .last_cut
            .is_none_or(|last| time.since(last) >= parameters.reduce_period)
        {
            if parameters.clamp_target || self.by_timer > 0 || self.by_bytes > 0 {
                self.target = self.current;
            }
            // Equation 1.
            let least = float(parameters.min_rate).min(self.line);
            self.current = (self.current * (1.0 - (self.alpha / 2.0).min(parameters.max_cut))).max(least);
            self.target = self.target.max(self.current);
            (self.by_timer, self.by_bytes) = (0, 0);
            self.due = time + parameters.timer.max(Span(1));
            self.bytes_left = float(parameters.bytes.max(1));
            self.last_cut = Some(time);
        }
        self.alpha = (1.0 - parameters.g) * self.alpha + parameters.g;
        self.alpha_since = time;
    }

    /// The flow's bin from `begin` on is over, in which it sent `wire_bytes`, with application data in them or not: the mean
    /// rate that was allowed in it, in bit/s.
    pub(crate) fn bin(&mut self, begin: Time, width: Span, wire_bytes: u64, data: bool) -> Option<u64> {
        if begin < self.bin || width.0 == 0 {
            // Its rate has been emitted, or is not known any more.
            return None;
        }
        self.roll(begin);
        let end = begin + width;
        self.account(end, wire_bytes);
        let seconds = width.seconds();
        let mean = (self.allowed / seconds).min(self.line);
        let limited = mean < self.line * (1.0 - 1e-9);
        let over = limited.then(|| float(wire_bytes) * 8.0 / seconds / mean.max(SAME) - 1.0);
        if data {
            self.deviation.bin(begin, end, over);
        }
        self.roll(end);
        Some(whole(mean))
    }

    /// Mean of measured over expected rate, less 1, over the bins in which less than the line rate was expected.
    pub(crate) fn deviation(&self) -> Option<f64> {
        let Deviation { sum, bins, .. } = self.deviation;
        (bins > 0).then(|| sum / f64::from(bins))
    }

    /// Moves on to the bin that begins at `bin`, if that is a later one; in between nothing was sent.
    fn roll(&mut self, bin: Time) {
        if bin > self.bin {
            self.advance(bin, 0.0);
            (self.bin, self.sent, self.allowed) = (bin, 0, 0.0);
        }
    }

    /// Moves on to `time`, by when the flow has sent `sent` bytes of the bin.
    fn account(&mut self, time: Time, sent: u64) {
        let bytes = sent.saturating_sub(self.sent);
        self.sent = self.sent.max(sent);
        self.advance(time, float(bytes));
    }

    /// Moves on to `to` while `bytes` are sent evenly.
    fn advance(&mut self, to: Time, bytes: f64) {
        let mut left = to.since(self.now).seconds();
        if left <= 0.0 {
            // Stamps out of order: the bytes count all the same.
            self.bytes_left -= bytes;
            return;
        }
        let sent_rate = bytes / left;
        while !self.is_free() {
            let byte_rate = self.counted(sent_rate);
            let timer = self.due.since(self.now).seconds();
            let counter = if byte_rate > 0.0 {
                (self.bytes_left / byte_rate).max(0.0)
            } else {
                f64::INFINITY
            };
            if timer.min(counter) > left {
                break;
            }
            // Where the allowed rate limits what is counted, each increase changes when the byte counter is full.
            let is_steady = byte_rate >= sent_rate;
            let is_timer = timer <= counter;
            let (first, other) = if is_timer {
                (timer, counter)
            } else {
                (counter, timer)
            };
            let timer_period = self.parameters.timer.0.max(1);
            let bytes = float(self.parameters.bytes.max(1));
            let (which, period) = if is_timer {
                (Counter::Timer, Time(timer_period).seconds())
            } else {
                (Counter::Bytes, bytes / byte_rate)
            };
            self.allowed += self.current * first;
            let fit = if is_steady {
                (left.min(other) - first) / period
            } else {
                0.0
            };
            let more = self.increase(which, 1.0 + fit.floor(), period) - 1;
            let taken = first + float(more) * period;
            left -= taken;
            if is_timer {
                self.bytes_left -= byte_rate * taken;
                self.now = Time(self.due.0.saturating_add(timer_period.saturating_mul(more))).max(self.now);
                self.due = Time(self.now.0.saturating_add(timer_period));
            } else {
                self.now = Time(to.0.saturating_sub(whole(left * 1e9)));
                self.bytes_left = bytes;
            }
        }
        self.allowed += self.current * left.max(0.0);
        self.bytes_left -= self.counted(sent_rate) * left.max(0.0);
        self.now = to;
    }

    /// Bytes that the byte counter counts in a second at this rate.
    fn counted(&self, rate: f64) -> f64 {
        if self.capped {
            rate.min(self.current / 8.0)
        } else {
            rate
        }
    }

    /// Rate allowed from `time` on, when `bytes` were sent since the last call and a notification comes
    /// or does not.
    #[cfg(test)]
    pub(crate) fn rate_now(&mut self, time: Time, bytes: u64, notified: bool) -> f64 {
        if self.last_cut.is_none() && !notified {
            self.now = time;
            return self.line;
        }
        self.advance(time, float(bytes));
        (self.bin, self.sent) = (time, 0);
        if notified {
            self.cnp(time, time, 0);
        }
        self.current
    }

    /// True if nothing changes before the next notification: the next call catches up.
    pub(super) fn is_free(&self) -> bool {
        self.current >= self.line
    }

    /// Increases by one counter (figure 7): the first now, the others `period` seconds apart, at most `fit` of them and as
    /// many as one formula covers. Returns their number, and adds what is allowed between the first and the last.
    ///
    /// With a constant step c the target after k of them is t + k c. Its distance to the rate is c + (d - c) / 2^k, where d
    /// is the distance before.
    fn increase(&mut self, counter: Counter, fit: f64, period: f64) -> u64 {
        let stages = self.parameters.stages;
        let (own, other) = match counter {
            Counter::Timer => (self.by_timer, self.by_bytes),
            Counter::Bytes => (self.by_bytes, self.by_timer),
        };
        // The step, and the number of increases that have it.
        let (step, most) = if own.saturating_add(1).max(other) < stages {
            (0.0, f64::from(stages - 1 - own))
        } else if self.target >= self.line {
            (0.0, fit)
        } else {
            let left = self.line - self.target;
            let step = self.step(own.saturating_add(1).min(other)).min(left);
            (step, if own >= other { (left / step).floor() } else { 1.0 })
        };
        let n = fit.min(most).max(1.0);
        let shrunk = (-n).exp2();
        let distance = self.target - self.current - step;
        // The sum of the rates after each increase but the last.
        let between =
            (n - 1.0) * (self.target - step) + step * n * (n - 1.0) / 2.0 - distance * (1.0 - 2.0 * shrunk);
        self.allowed += between * period;
        self.target = (self.target + n * step).min(self.line);
        self.current = (self.target - step - distance * shrunk)
            .max(self.current)
            .min(self.line);
        if self.target >= self.line && self.line - self.current < SAME {
            self.current = self.line;
        }
        let count = whole(n);
        let increases = match counter {
            Counter::Timer => &mut self.by_timer,
            Counter::Bytes => &mut self.by_bytes,
        };
        *increases = increases.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        count
    }

    /// Rise of the target when the counter that is behind has the value `least`.
    fn step(&self, least: u32) -> f64 {
        match least.checked_sub(self.parameters.stages) {
            Some(past @ 1..) => float(self.parameters.hyper) * f64::from(past),
            _ => float(self.parameters.additive),
        }
    }
}

#[cfg(test)]
mod tests;
