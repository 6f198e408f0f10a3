//! The most that DCQCN can have allowed a sender: an upper bound over all parameter sets that are known, replayed from the
//! notifications that surely were for the flow. Only a rate above it shows that a sender ignores notifications; a rate
//! that stays where it was shows nothing, because a share of a port or an application may limit it already.
//!
//! What is not known is taken as what allows most:
//! - the speed of the port: `--link-rate`, else [`FASTEST_PORT`];
//! - alpha before the first notification: 0, as after a long time without any, unless the user states the parameters;
//! - the rules: each of [`LAWS`], a way of alpha with a way of increasing; the one that allows most counts;
//! - the bytes that the byte counter counts: those that were sent, with what each frame takes on the wire besides, but
//!   no more than the bound allowed.

use roce_model::Nanos;

use super::{Parameters, Replay};
use crate::congestion::Progress;
use crate::distribution::Distribution;
use crate::prefetch::prefetch;

/// No port of an adapter is faster (IEEE 802.3df, 2024), in bit/s.
const FASTEST_PORT: u64 = 800_000_000_000;
/// Rates are compared over at least this time: four alpha and rate timers of the paper (55 us).
const WINDOW: Nanos = Nanos(200_000);
/// And over so many packets: one more or less is then less than 2 %.
const WINDOW_PACKETS: u64 = 64;
/// A window is over the bound when its rate is so many times the bound: a late reaction, the burst that a limiter lets
/// through and a pause that ends stay below this, as windows on end do not have them.
const MARGIN: f64 = 1.5;
/// What a frame takes on the wire besides what is captured: FCS, preamble, gap (IEEE 802.3, 3.1.1 and 4.4.2).
const FRAME_OVERHEAD: u64 = 24;

/// Notifications never less than this apart are paced as in the paper and its simulator, each 50 us. NVIDIA's are 4 us apart.
const PACE_OF_PAPER: Nanos = Nanos(40_000);
/// So many notifications show how they are paced.
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

/// NVIDIA's alpha with another set's way of increasing.
const fn with_alpha_of_nvidia(set: Parameters) -> Parameters {
    Parameters {
        alpha_timer: Parameters::NVIDIA.alpha_timer,
        g: Parameters::NVIDIA.g,
        reduce_period: Parameters::NVIDIA.reduce_period,
        clamp_target: Parameters::NVIDIA.clamp_target,
        ..cautious(set)
    }
}

/// Each way of alpha (the paper and its simulator have the same) with each way of increasing.
const LAWS: [Parameters; 6] = [
    cautious(Parameters::PAPER),
    cautious(Parameters::NS3),
    cautious(Parameters::NVIDIA),
    with_alpha_of_nvidia(Parameters::PAPER),
    with_alpha_of_nvidia(Parameters::NS3),
    Parameters {
        alpha_timer: Parameters::PAPER.alpha_timer,
        g: Parameters::PAPER.g,
        ..cautious(Parameters::NVIDIA)
    },
];

/// What senders may go by.
#[derive(Clone, Debug)]
pub(crate) struct Legal {
    line: u64,
    laws: Vec<Parameters>,
}

impl Legal {
    /// With the speed of the ports, when that is known, and the parameters, when the user states them.
    pub(crate) fn new(link_rate: Option<u64>, stated: Option<Parameters>) -> Self {
        Self {
            line: link_rate.filter(|rate| *rate > 0).unwrap_or(FASTEST_PORT),
            laws: stated.map_or_else(|| LAWS.to_vec(), |set| vec![set]),
        }
    }
}

/// What one flow may send at most, and how often it sent more.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Bound {
    // The first line: what every window needs.
    /// Where the window that goes on began.
    begin: Progress,
    /// What all laws allow as long as no notification comes, in bit/s, once that is the whole line: they need not be asked then.
    line: Option<u64>,
    /// Notifications in the window, and in the one before.
    cnp: u32,
    cnp_before: u32,
    /// The highest rate of a window, in bit/s.
    peak: f64,
    // The rest.
    laws: Vec<Replay>,
    /// All notifications, when the last one came, and the least time between two.
    notified: u32,
    last_cnp: Nanos,
    closest: Nanos,
    limited: u64,
    over: u64,
    /// Rates over the bound, in thousandths of it, in windows over it.
    excess: Distribution,
}

impl Bound {
    /// A flow that gets its first notification, having come so far.
    pub(crate) fn new(legal: &Legal, now: Progress) -> Self {
        let replay = |set: &Parameters| Replay::bound(*set, legal.line, now.time);
        Self {
            laws: legal.laws.iter().map(replay).collect(),
            line: None,
            begin: now,
            cnp: 0,
            cnp_before: 0,
            notified: 0,
            last_cnp: Nanos(0),
            closest: Nanos(u64::MAX),
            peak: 0.0,
            limited: 0,
            over: 0,
            excess: Distribution::default(),
        }
    }

    /// Asks for what [`Bound::mark`] needs.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(self);
    }

    /// Bytes on the wire since the window began.
    fn sent(&self, now: &Progress) -> u64 {
        let packets = now.packets.saturating_sub(self.begin.packets);
        let bytes = now.wire_bytes.saturating_sub(self.begin.wire_bytes);
        bytes.saturating_add(packets.saturating_mul(FRAME_OVERHEAD))
    }

    /// A notification that surely is for the flow.
    pub(crate) fn cnp(&mut self, now: Progress) {
        let sent = self.sent(&now);
        self.line = None;
        for law in &mut self.laws {
            law.cnp(now.time, self.begin.time, sent);
        }
        self.cnp = self.cnp.saturating_add(1);
        if self.notified > 0 {
            self.closest = self.closest.min(now.time.since(self.last_cnp));
        }
        self.notified = self.notified.saturating_add(1);
        self.last_cnp = now.time;
    }

    /// Whether a set of parameters may be in use at the two ends: one with a byte counter of a few packets belongs to notifications
    /// each 4 us, and makes up for one each 50 us.
    fn may_apply(&self, law: &Replay) -> bool {
        let is_paced = self.notified >= PACED && self.closest >= PACE_OF_PAPER;
        !is_paced || law.byte_counter() >= FEW_BYTES || self.laws.len() == 1
    }

    /// The most that any law allows in the window that goes on, which lasts for `time` up to `now`.
    fn allowed(&mut self, now: &Progress, time: Nanos) -> u64 {
        let sent = self.sent(now);
        let mut allowed = 0;
        for at in 0..self.laws.len() {
            let mean = self.laws[at].bin(self.begin.time, time, sent, false);
            if self.may_apply(&self.laws[at]) {
                allowed = allowed.max(mean.unwrap_or(u64::MAX));
            }
        }
        if self.laws.iter().all(Replay::is_free) {
            self.line = self.laws.first().map(Replay::line);
        }
        allowed
    }

    /// Called now and then: ends the window when it is long enough.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rates, and a ratio of positive ones"
    )]
    pub(crate) fn mark(&mut self, now: Progress) {
        let time = now.time.since(self.begin.time);
        if time < WINDOW || now.packets < self.begin.packets.saturating_add(WINDOW_PACKETS) {
            return;
        }
        let allowed = self.line.unwrap_or_else(|| self.allowed(&now, time));
        // Without what frames take besides: a rate is not told too high.
        let measured = now.wire_bytes.saturating_sub(self.begin.wire_bytes) as f64 * 8.0 / time.seconds();
        self.peak = self.peak.max(measured);
        let bound = allowed as f64 * MARGIN;
        // Only where notifications go on, and only where the flow was seen to send more than the bound allows.
        if self.cnp + self.cnp_before > 0 && bound <= self.peak {
            self.limited += 1;
            if measured >= bound {
                self.over += 1;
                self.excess.add((measured / allowed.max(1) as f64 * 1e3) as u64);
            }
        }
        (self.cnp_before, self.cnp) = (self.cnp, 0);
        self.begin = now;
    }

    /// Windows in which a sender that ignores notifications would show, and those in which one did.
    pub(crate) fn windows(&self) -> (u64, u64) {
        (self.limited, self.over)
    }

    /// The median of rate over bound, in the windows over it.
    #[expect(clippy::cast_precision_loss, reason = "thousandths of a ratio")]
    pub(crate) fn excess(&self) -> Option<f64> {
        let median = self.excess.summary().quantile(50);
        median.map(|thousandths| thousandths as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests;
