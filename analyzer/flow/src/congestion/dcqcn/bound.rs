//! The most that DCQCN can have allowed a sender: an upper bound over all parameter sets that are known, replayed from the
//! notifications that surely were for the flow. Only a rate above it shows that a sender ignores notifications; a rate
//! that stays where it was shows nothing, because a share of a port or an application may limit it already.
//!
//! Every unknown is assumed to be what allows the highest rate:
//! - the speed of the port: `--link-rate`, else the speed of Ethernet that the flow's own packets show (see [`LineEvidence`]), else
//!   [`FASTEST_PORT`];
//! - alpha before the first notification: 0, as after a long time without any, unless the user states the parameters;
//! - the rules: each of [`LAWS`], a rule for alpha with a rule for increases; the one that allows most counts;
//! - the bytes that the byte counter counts: those that were sent, with what each frame takes on the wire besides, but
//!   no more than the bound allowed.

use std::sync::Arc;

use roce_model::cast::{float, whole};
use roce_model::{Span, Time, prefetch};

use crate::congestion::dcqcn::Parameters;
use crate::congestion::dcqcn::line::LineEvidence;
use crate::congestion::dcqcn::replay::Replay;
use crate::congestion::progress::{Progress, WINDOW_PACKETS as WINDOW_STEP};
use crate::timing::distribution::Distribution;

/// No port of an adapter is faster (IEEE 802.3df, 2024), in bit/s.
const FASTEST_PORT: u64 = 800_000_000_000;
/// Rates are compared over at least this time: four alpha and rate timers of the paper (55 us).
const WINDOW: Span = Span(200_000);
/// Least number of packets in a window: one more or less is then less than 2 %.
const WINDOW_PACKETS: u64 = 64;
/// A window is over the bound when its rate is this multiple of the bound. A late reaction, the burst
/// that a limiter lets through and the end of a pause stay below this, because consecutive windows do
/// not have them.
const MARGIN: f64 = 1.5;

/// Notifications never less than this apart are paced as in the paper and its simulator, each 50 us. NVIDIA's are 4 us apart.
const PACE_OF_PAPER: Span = Span(40_000);
/// Number of notifications that show their pacing.
const PACED: u32 = 16;
/// The byte counters of the paper (10 MB) and its simulator (300 kB and more) are larger than this, NVIDIA's (32,767) is not.
const FEW_BYTES: u64 = 100_000;

/// Alpha begins with nothing, in every law.
const fn cautious(set: Parameters) -> Parameters {
    Parameters {
        initial_alpha: 0.0,
        ..set
    }
}

/// NVIDIA's alpha and target with another set's increases.
const fn with_alpha_of_nvidia(set: Parameters) -> Parameters {
    Parameters {
        alpha_timer: Parameters::NVIDIA.alpha_timer,
        g: Parameters::NVIDIA.g,
        reduce_period: Parameters::NVIDIA.reduce_period,
        clamp_target: Parameters::NVIDIA.clamp_target,
        ..cautious(set)
    }
}

/// NVIDIA's increases with the shortest timer of a known set: operators set the timer (`rpg_time_reset`), and with a timer of 80 us hyper
/// increase begins long before 300 us.
const NVIDIA: Parameters = Parameters {
    timer: Parameters::PAPER.timer,
    ..cautious(Parameters::NVIDIA)
};

/// Each rule for alpha (the paper and its simulator have the same) with each rule for increases.
const LAWS: [Parameters; 6] = [
    cautious(Parameters::PAPER),
    cautious(Parameters::NS3),
    NVIDIA,
    with_alpha_of_nvidia(Parameters::PAPER),
    with_alpha_of_nvidia(Parameters::NS3),
    Parameters {
        alpha_timer: Parameters::PAPER.alpha_timer,
        g: Parameters::PAPER.g,
        ..NVIDIA
    },
];

/// Parameters that senders may have.
#[derive(Clone, Debug)]
pub(crate) struct Legal {
    /// Speed of the ports, in bit/s; `None`: not known.
    line: Option<u64>,
    laws: Arc<Laws>,
}

impl Legal {
    /// With the speed of the ports, when that is known, and the parameters, when the user states them.
    pub(crate) fn new(link_rate: Option<u64>, stated: Option<Parameters>) -> Self {
        Self {
            line: link_rate.filter(|rate| *rate > 0),
            laws: Arc::new(Laws::new(stated.map_or_else(|| LAWS.to_vec(), |set| vec![set]))),
        }
    }
}

/// Notifications that wait for their replay. After 32 of them alpha is an eighth at most, and the rate a third of the line.
const MAX_WAITING: usize = 32;

/// Sets of parameters, and the least that any of them leaves.
#[derive(Debug)]
struct Laws {
    sets: Vec<Parameters>,
    /// Share of the line that is allowed after this many notifications, if all of them come at once: nothing shrinks alpha,
    /// and nothing raises the rate.
    least: [f64; MAX_WAITING + 1],
}

impl Laws {
    fn new(sets: Vec<Parameters>) -> Self {
        let mut least = [1.0_f64; MAX_WAITING + 1];
        for set in &sets {
            let (mut rate, mut alpha) = (1.0, set.initial_alpha);
            for least in &mut least {
                *least = least.min(rate);
                rate *= 1.0 - (alpha / 2.0).min(set.max_cut);
                alpha = (1.0 - set.g) * alpha + set.g;
            }
        }
        Self { sets, least }
    }
}

/// Highest rate allowed to one flow, and the number of windows over it.
#[derive(Clone, Debug)]
pub(crate) struct RateBound {
    /// From the speed of the port that is stated, or else from that of the fastest one.
    judged: JudgedWindows,
    pace: PortRate,
    stated: Option<u64>,
    /// The port's speed as the flow's packets show it, when it is not stated, and the bound from there.
    line: Option<LineEvidence>,
    shown: Option<JudgedWindows>,
}

/// Pacing of notifications: their number, the time of the last one, and the least time between two.
#[derive(Clone, Copy, Debug)]
struct PortRate {
    notified: u32,
    last: Time,
    closest: Span,
}

impl PortRate {
    fn cnp(&mut self, time: Time) {
        if self.notified > 0 {
            self.closest = self.closest.min(time.since(self.last));
        }
        self.notified = self.notified.saturating_add(1);
        self.last = time;
    }

    /// True if a set of parameters may be in use at the two ends: one with a byte counter of a few packets belongs to notifications
    /// each 4 us, and makes up for one each 50 us.
    fn allows(self, set: &Parameters) -> bool {
        let is_wide = self.notified >= PACED && self.closest >= PACE_OF_PAPER;
        !is_wide || set.bytes >= FEW_BYTES
    }
}

/// Replays from one speed of the port, and windows compared with them.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct JudgedWindows {
    // The first cache line has what every window needs.
    /// Start of the current window.
    begin: Progress,
    /// True while all laws allow the line rate: until the next notification none of them has to be replayed.
    is_free: bool,
    /// Notifications in the window, and in the one before.
    cnp: u32,
    cnp_before: u32,
    /// Speed of the port, in bit/s.
    line: u64,
    /// The sum of the rates of windows in bit/s, and how many they are.
    rates: (f64, u32),
    // The rest.
    laws: Arc<Laws>,
    /// The flow's progress at the start of the bound, and at each notification that waits for its replay.
    first: Progress,
    waiting: Vec<Progress>,
    /// The replay of each law, from when the least that its notifications can leave would matter: most flows get few.
    replays: Option<Vec<Replay>>,
    limited: u64,
    over: u64,
    /// Rates over the bound, in thousandths of it, in windows over it.
    excess: Distribution,
}

impl JudgedWindows {
    fn new(laws: &Arc<Laws>, line: u64, now: Progress) -> Self {
        Self {
            laws: Arc::clone(laws),
            line,
            first: now,
            waiting: Vec::new(),
            replays: None,
            is_free: false,
            begin: now,
            cnp: 0,
            cnp_before: 0,
            rates: (0.0, 0),
            limited: 0,
            over: 0,
            excess: Distribution::default(),
        }
    }

    fn cnp(&mut self, now: Progress) {
        self.cnp = self.cnp.saturating_add(1);
        self.is_free = false;
        if self.replays.is_none() && self.waiting.len() < MAX_WAITING {
            self.waiting.push(now);
            return;
        }
        let begin = self.begin;
        for replay in self.running() {
            replay.cnp(now.time, begin.time, now.on_wire_since(&begin));
        }
    }

    /// The replays, which begin now at the latest. Between notifications data is taken as sent evenly, whatever the windows: where
    /// the allowed rate limits what the byte counter counts, it counts more by that, never less.
    fn running(&mut self) -> &mut [Replay] {
        let (first, window, line) = (self.first, self.begin, self.line);
        let (laws, waiting) = (&self.laws, &mut self.waiting);
        self.replays.get_or_insert_with(|| {
            let waiting = std::mem::take(waiting);
            let before = waiting.partition_point(|now| now.wire_bytes < window.wire_bytes);
            let (before, within) = waiting.split_at(before);
            let start = |set: &Parameters| {
                let mut replay = Replay::bound(*set, line, first.time);
                for now in before {
                    replay.cnp(now.time, first.time, now.on_wire_since(&first));
                }
                let time = window.time.since(first.time);
                replay.bin(first.time, time, window.on_wire_since(&first), false);
                for now in within {
                    replay.cnp(now.time, window.time, now.on_wire_since(&window));
                }
                replay
            };
            laws.sets.iter().map(start).collect()
        })
    }

    /// True if some law may allow less than this rate, in bit/s, in a window with notifications or after one. False only where all
    /// allow more, even if the notifications that wait had come at once.
    fn may_limit(&self, rate: f64) -> bool {
        if self.replays.is_some() {
            return true;
        }
        let least = self.laws.least.get(self.waiting.len()).copied().unwrap_or(0.0);
        self.is_notified() && rate >= float(self.line) * least
    }

    /// True if a notification came in the current window, or in the one before.
    fn is_notified(&self) -> bool {
        self.cnp > 0 || self.cnp_before > 0
    }

    /// The highest rate that any applicable law allows in the current window, which lasts for `time` up to `now`, in bit/s.
    fn allowed(&mut self, now: &Progress, time: Span, pace: Option<PortRate>) -> u64 {
        let begin = self.begin;
        let sent = now.on_wire_since(&begin);
        let replays = self.running();
        let only = replays.len() == 1;
        let mut allowed = 0;
        for replay in &mut *replays {
            let mean = replay.bin(begin.time, time, sent, false);
            if only || pace.is_none_or(|pace| pace.allows(replay.parameters())) {
                allowed = allowed.max(mean.unwrap_or(u64::MAX));
            }
        }
        self.is_free = replays.iter().all(Replay::is_free);
        allowed
    }

    /// Ends the window when it is long enough.
    fn mark(&mut self, now: Progress, pace: Option<PortRate>) {
        let time = now.time.since(self.begin.time);
        if time < WINDOW || now.packets < self.begin.packets.saturating_add(WINDOW_PACKETS) {
            return;
        }
        // Overhead on the wire is left out, so the rate is never overstated.
        let measured = float(now.wire_bytes.saturating_sub(self.begin.wire_bytes)) * 8.0 / time.seconds();
        self.rates = (self.rates.0 + measured, self.rates.1.saturating_add(1));
        let usual = self.rates.0 / f64::from(self.rates.1);
        if self.may_limit(measured.max(usual) / MARGIN) {
            let allowed = if self.is_free {
                self.line
            } else {
                self.allowed(&now, time, pace)
            };
            let bound = float(allowed) * MARGIN;
            // Only where notifications go on. A rate over the bound tells by itself; one that is not does where the flow's usual
            // rate is more than the bound allows.
            let is_over = measured >= bound;
            if self.is_notified() && (is_over || bound <= usual) {
                self.limited += 1;
                if is_over {
                    self.over += 1;
                    self.excess
                        .add(whole((measured / float(allowed.max(1)) * 1e3).floor()));
                }
            }
        }
        (self.cnp_before, self.cnp) = (self.cnp, 0);
        self.begin = now;
    }

    /// True if more than a quarter of the windows that tell are over the bound. An application that sends bursts leaves the rest below:
    /// such a window has the end of a burst and the gap behind it.
    fn tells(&self) -> bool {
        self.over.saturating_mul(4) > self.limited
    }
}

impl RateBound {
    /// State of a flow that gets its first notification, at its current progress.
    pub(crate) fn new(legal: &Legal, now: Progress) -> Self {
        Self {
            pace: PortRate {
                notified: 0,
                last: Time(0),
                closest: Span(u64::MAX),
            },
            judged: JudgedWindows::new(&legal.laws, legal.line.unwrap_or(FASTEST_PORT), now),
            stated: legal.line,
            line: legal.line.is_none().then(|| LineEvidence::new(now)),
            shown: None,
        }
    }

    /// Prefetches the state that [`RateBound::mark`] needs.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(&self.line);
        prefetch(&self.judged);
        prefetch(&self.shown);
    }

    /// A notification that surely is for the flow.
    pub(crate) fn cnp(&mut self, now: Progress) {
        self.pace.cnp(now.time);
        for judged in [Some(&mut self.judged), self.shown.as_mut()]
            .into_iter()
            .flatten()
        {
            judged.cnp(now);
        }
    }

    /// Called now and then: ends the window when it is long enough.
    pub(crate) fn mark(&mut self, now: Progress) {
        if let Some(line) = &mut self.line
            && line.step(now)
        {
            // From here on the flow may use the whole port; what was concluded from another speed is void.
            let laws = &self.judged.laws;
            self.shown = line.speed().map(|speed| JudgedWindows::new(laws, speed, now));
        }
        self.judged.mark(now, Some(self.pace));
        // From a speed that is only inferred, every law has to forbid the rate, whatever paces the notifications: those of a
        // port whose flows share one pace may come far apart as well.
        if let Some(shown) = &mut self.shown {
            shown.mark(now, None);
        }
    }

    /// Packets between two calls of [`RateBound::mark`], at most: few while the speed of the port is being learned.
    pub(crate) fn step(&self) -> u8 {
        match &self.line {
            Some(line) if line.is_learning() => LineEvidence::PACKETS,
            _ => WINDOW_STEP,
        }
    }

    /// Result of the windows, by the speed that the packets show, unless the fastest port would not
    /// explain the rate either.
    fn judged(&self) -> &JudgedWindows {
        let shown = self.shown.as_ref().filter(|_| !self.judged.tells());
        shown.unwrap_or(&self.judged)
    }

    /// The speed of the port that the windows rest on, when it is not that of the fastest one.
    pub(crate) fn line(&self) -> Option<u64> {
        let shown = self.shown.as_ref().filter(|_| !self.judged.tells());
        let speed = self.line.as_ref().and_then(LineEvidence::speed);
        self.stated.or(speed.filter(|_| shown.is_some()))
    }

    /// Windows in which a sender that ignores notifications would show, and those in which one did.
    pub(crate) fn windows(&self) -> (u64, u64) {
        let judged = self.judged();
        (judged.limited, judged.over)
    }

    /// The median of rate over bound, in the windows over it.
    pub(crate) fn excess(&self) -> Option<f64> {
        let median = self.judged().excess.summary().quantile(50);
        median.map(|thousandths| float(thousandths) / 1e3)
    }
}

#[cfg(test)]
mod tests;
