//! The numbers that episodes and findings compare with: each with its name in a configuration file, its unit, its
//! default, what it decides and why the default is what it is. What is done with them is left to the rules.

use std::fmt;

use roce_model::Span;
use thiserror::Error;

/// A threshold as a value of a configuration.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ThresholdValue {
    /// A count.
    Count(u64),
    /// A length of time.
    Span(Span),
    /// A share or a ratio.
    Number(f64),
}

/// Value that a threshold cannot have.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum ThresholdError {
    /// There is none of this name.
    #[error("there is no threshold '{name}'")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The value is of another kind.
    #[error("the threshold '{name}' cannot be {value}: it is {expected}")]
    Kind {
        /// The threshold.
        name: &'static str,
        /// The given value.
        value: ThresholdValue,
        /// Values that are allowed.
        expected: &'static str,
    },
}

/// The description of one threshold.
#[derive(Clone, Copy, Debug)]
pub struct Threshold {
    /// Its name.
    pub name: &'static str,
    /// The unit of its value; empty for shares and ratios.
    pub unit: &'static str,
    /// Meaning of the threshold.
    pub meaning: &'static str,
    /// Why the default is what it is.
    pub reason: &'static str,
    /// The default.
    pub default: ThresholdValue,
    get: fn(&Thresholds) -> ThresholdValue,
    set: fn(&mut Thresholds, ThresholdValue) -> Option<()>,
}

impl Threshold {
    /// Its value in `thresholds`.
    pub fn get(&self, thresholds: &Thresholds) -> ThresholdValue {
        (self.get)(thresholds)
    }

    /// Changes it in `thresholds`. A whole number is taken for a ratio, too.
    ///
    /// # Errors
    /// When the value is of another kind, negative or not finite.
    pub fn set(&self, thresholds: &mut Thresholds, value: ThresholdValue) -> Result<(), ThresholdError> {
        (self.set)(thresholds, value).ok_or(ThresholdError::Kind {
            name: self.name,
            value,
            expected: match self.default {
                ThresholdValue::Count(_) => "a count",
                ThresholdValue::Span(_) => "a length of time",
                ThresholdValue::Number(_) => "a number that is not negative",
            },
        })
    }
}

impl fmt::Display for ThresholdValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(value) => value.fmt(f),
            Self::Span(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
        }
    }
}

/// A type that a threshold can have.
trait Kind: Copy {
    fn value(self) -> ThresholdValue;
    fn from_value(value: ThresholdValue) -> Option<Self>;
}

impl Kind for u64 {
    fn value(self) -> ThresholdValue {
        ThresholdValue::Count(self)
    }

    fn from_value(value: ThresholdValue) -> Option<Self> {
        match value {
            ThresholdValue::Count(value) => Some(value),
            _ => None,
        }
    }
}

impl Kind for Span {
    fn value(self) -> ThresholdValue {
        ThresholdValue::Span(self)
    }

    fn from_value(value: ThresholdValue) -> Option<Self> {
        match value {
            ThresholdValue::Span(value) => Some(value),
            _ => None,
        }
    }
}

impl Kind for f64 {
    fn value(self) -> ThresholdValue {
        ThresholdValue::Number(self)
    }

    #[expect(clippy::cast_precision_loss, reason = "a threshold of 2^53 or more is none")]
    fn from_value(value: ThresholdValue) -> Option<Self> {
        match value {
            ThresholdValue::Number(value) if value.is_finite() && value >= 0.0 => Some(value),
            ThresholdValue::Count(value) => Some(value as f64),
            _ => None,
        }
    }
}

macro_rules! thresholds {
    ($( $constant:ident, $field:ident: $type:ident = $default:expr, $unit:literal, $meaning:literal, $reason:literal; )+) => {
        $(
            #[doc = $reason]
            const $constant: $type = $default;
        )+

        /// The numbers that episodes and findings compare with.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Thresholds {
            $( #[doc = $meaning] pub $field: $type, )+
        }

        impl Default for Thresholds {
            fn default() -> Self {
                Self { $( $field: $constant, )+ }
            }
        }

        impl Thresholds {
            /// All of them, in order: for configuration files, documents and `explain`.
            pub const ALL: &'static [Threshold] = &[ $( Threshold {
                name: stringify!($field),
                unit: $unit,
                meaning: $meaning,
                reason: $reason,
                default: thresholds!(@value $type, $default),
                get: |thresholds| Kind::value(thresholds.$field),
                set: |thresholds, value| {
                    thresholds.$field = Kind::from_value(value)?;
                    Some(())
                },
            }, )+ ];

            /// The one of this name.
            ///
            /// # Errors
            /// When there is none.
            pub fn named(name: &str) -> Result<&'static Threshold, ThresholdError> {
                let found = Self::ALL.iter().find(|threshold| threshold.name == name);
                found.ok_or_else(|| ThresholdError::Unknown { name: name.to_owned() })
            }
        }
    };
    (@value u64, $default:expr) => { ThresholdValue::Count($default) };
    (@value f64, $default:expr) => { ThresholdValue::Number($default) };
    (@value Span, $default:expr) => { ThresholdValue::Span($default) };
}

thresholds! {
    EPISODE_QUIET, episode_quiet: Span = Span(5_000_000), "ns",
        "An episode ends after this time without another sign of it.",
        "DCQCN probes its way back in steps of some 55 us (SIGCOMM 2015, section 3), so that marks of one congestion come back within a few ms.";
    INCAST_SENDERS, incast_senders: u64 = 3, "hosts",
        "So many hosts that send to one destination at the same time, with signs of congestion, are an incast.",
        "Two that share a link are ordinary sharing; a third needs more than twice what the link can take.";
    INCAST_LONG, incast_long: Span = Span(10_000_000), "ns",
        "Incasts of one second that lasted this long in all are a warning even when nothing was lost or paused.",
        "Some hundred round trips of a data centre: congestion control should have settled long before.";
    ABSORBED_SHARE, absorbed_share: f64 = 0.5, "",
        "An ecn episode of whose milliseconds an incast covers this share is reported as that incast only.",
        "Where the incast makes up most of it the two would say the same thing twice.";
    LEAST_DATA_PACKETS, least_data_packets: u64 = 100, "packets",
        "Fewer data packets than this are no evidence of how traffic is marked or classed.",
        "Handshakes and tests of reachability are shorter, transfers longer.";
    LEAST_MARKS, least_marks: u64 = 10, "packets",
        "Fewer packets with CE than this demand no CNP.",
        "A notification point answers at most one packet in each of its intervals, and a capture can miss one CNP.";
    NOT_ECT_SHARE, not_ect_share: f64 = 0.5, "",
        "A flow is not ECN-capable when more than this share of its data packets is Not-ECT.",
        "A sender sets ECT on all data or on none; a change in between is counted with the larger part.";
    IGNORED_WINDOWS, ignored_windows: u64 = 8, "windows",
        "Fewer windows over DCQCN's upper bound than this say nothing of a sender.",
        "Eight of 200 us are 1.6 ms: five times the slowest rate timer that is known, NVIDIA's 300 us, and longer than a queue of 10 MB lasts at 100 Gb/s (0.8 ms).";
    REACTION_SEEN, reaction_seen: f64 = 0.97, "",
        "A sender whose median rate after a train of CNPs is below this share of the rate before is seen to slow down.",
        "The rate over one window of 32 packets is uncertain by some percent.";
    ARRIVALS_FELL, arrivals_fell: f64 = 0.8, "",
        "Arrivals below this share of the rate at which marked packets came show that the senders slowed down.",
        "While packets are marked a queue stands, and arrivals have the bottleneck's rate; a bin of 32 packets is uncertain by 6 %.";
    CNP_INTERVAL_LEAST, cnp_interval_least: Span = Span(4_000), "ns",
        "CNPs to one queue pair that come closer together than this, as a rule, are not paced.",
        "MIN_TIME_BETWEEN_CNPS of NVIDIA adapters is 4 us, the smallest of the published ones (50 us in the DCQCN paper).";
    CNP_INTERVAL_USUAL, cnp_interval_usual: Span = Span(50_000), "ns",
        "What each other marked flow of a receiver may add to the delay of a CNP: adapters that pace CNPs by port serve them in turn.",
        "The interval of the DCQCN paper (SIGCOMM 2015, section 3).";
    CNP_DELAY_MOST, cnp_delay_most: Span = Span(500_000), "ns",
        "CNPs that leave, as a rule, longer than this after the mark are late.",
        "Ten intervals of 50 us: what a notification point that paces as in the DCQCN paper stays far below.";
    LEAST_MEASUREMENTS, least_measurements: u64 = 16, "",
        "A median of fewer measurements than this is not judged.",
        "As many as distributions keep exactly.";
    LOSS_CRITICAL, loss_critical: f64 = 0.001, "",
        "A larger share of data packets lost than this is critical.",
        "Go-back-N retransmits a window for each loss: with 100 packets under way, 1 in 1,000 lost means that a tenth is retransmitted (what that costs: IRN, SIGCOMM 2018).";
    LOSS_CRITICAL_LEAST, loss_critical_least: u64 = 100, "packets",
        "Fewer lost packets than this are never critical.",
        "A share of few packets is accidental.";
    PAUSE_SHARE, pause_share: f64 = 0.05, "",
        "A priority that was paused for more than this share of its worst 10 ms is a warning.",
        "Pauses are for absorbing bursts; congestion control is to keep the share near zero.";
    PAUSE_SHARE_CRITICAL, pause_share_critical: f64 = 0.5, "",
        "A priority that was paused for more than this share of its worst 10 ms is critical.",
        "It stands still more than it sends.";
    PAUSE_LEAST, pause_least: Span = Span(100_000), "ns",
        "A priority that was paused for less than this in all is no warning, whatever its share of a short capture.",
        "PFC is there to absorb bursts: 1 MB of a switch's buffer drains at 100 Gbit/s in 80 us.";
    PAUSE_LONG, pause_long: Span = Span(100_000_000), "ns",
        "One unbroken pause of this length is critical.",
        "PFC watchdogs of switches are set to hundreds of ms to call it a storm: no burst lasts that long.";
    WAIT_FRAMES, wait_frames: u64 = 10, "frames",
        "Fewer pause frames than this on a cable are no wait, where nothing shows how long they paused it.",
        "One frame pauses a link of 100 Gbit/s for at most 336 us (65,535 quanta of 512 bits, IEEE 802.3 annex 31B); a burst that PFC absorbs takes a pair of them.";
    STORM_RATE, storm_rate: f64 = 0.1, "",
        "A host that pauses its switch, and to which less than this share of the link's rate comes, is no receiver that is merely slow.",
        "A receiver that works on pauses no longer than its buffer is full; slow ones of practice take a quarter of the rate or more (Guo et al., SIGCOMM 2016, section 4.4).";
    IMBALANCE_BUSY, imbalance_busy: f64 = 0.6, "",
        "Links of equal cost of which none sends at this share of its rate cost nothing, however uneven they are.",
        "Queues of random arrivals stay short below: at a load of 0.6 one and a half packets on average (M/M/1), at 0.9 nine.";
    IMBALANCE_MOST, imbalance_most: f64 = 1.5, "",
        "Links of equal cost are uneven when the busiest sends at least this many times the mean.",
        "Of two links one then sends three times what the other does.";
    DROPS_AGREE, drops_agree: f64 = 0.1, "",
        "Drops that a switch counted and losses that the packets show agree when they differ by at most this share.",
        "Retransmissions that are lost again count once in packets and twice at the switch.";
    MARKS_AGREE, marks_agree: f64 = 0.1, "",
        "Marks that a switch counted and marks that were captured agree when they differ by at most this share.",
        "Readings begin and end some seconds before and behind the capture.";
    JAIN_LEAST, jain_least: f64 = 0.8, "",
        "Flows that share a destination with a Jain's index below this are treated unfairly.",
        "With n flows, one of which gets nothing and the others alike, the index is (n-1)/n: 0.8 lets one of five starve (Jain, Chiu, Hawe, DEC-TR-301, 1984).";
    JAIN_WARNING, jain_warning: f64 = 0.5, "",
        "A Jain's index below this is a warning.",
        "As if half of the flows got nothing.";
    UNFAIR_BINS, unfair_bins: u64 = 5, "ms",
        "Episodes with signs in fewer milliseconds than this are not judged for fairness.",
        "Rates need some round trips to converge.";
    STALL_LEAST, stall_least: Span = Span(10_000_000), "ns",
        "A shorter silence in the middle of a message than this is no finding.",
        "Longer than the time slices of a scheduler and than DCQCN's slowest rates ask for.";
    STALL_LONG, stall_long: Span = Span(500_000_000), "ns",
        "A silence in the middle of a message of this length is a warning even when nothing captured explains it.",
        "No busy host leaves a process waiting for so long; shorter ones are common on loaded machines.";
    STALL_SHARE, stall_share: f64 = 0.25, "",
        "Waits for late answers that take this share of a flow's time are a warning.",
        "The sender could have sent a third more without them.";
    GPU_BUSY, gpu_busy: f64 = 0.3, "",
        "An episode before or behind which a GPU's load is below this says nothing of whether the GPU waited.",
        "A GPU that has nothing to do cannot be kept from it; loads of jobs that compute are far above.";
    GPU_FALL, gpu_fall: f64 = 0.2, "",
        "The load of a GPU fell when it is lower by at least this, as a share of the whole, than before and behind an episode.",
        "Readings of a steady load differ by a few percent; nvidia-smi averages over up to a second, which flattens a short fall.";
    GPU_EPISODES, gpu_episodes: u64 = 5, "episodes",
        "Fewer episodes than this say nothing of whether a GPU's load follows them.",
        "Five falls out of five by accident, each as likely as not, happen once in 32 runs; one or two happen all the time.";
    GPU_SHARE, gpu_share: f64 = 0.8, "",
        "The load of a GPU has to fall in at least this share of the episodes.",
        "One of five may fall between two readings, or be too mild to stop a GPU.";
    GPU_CHANCE, gpu_chance: f64 = 0.05, "",
        "The chance that the load falls as often at other times has to be at most this, for all GPUs together.",
        "The usual level of a test; a job whose load falls by itself in a twentieth of the time or more is never reported for it.";
    COLLECTIVE_EQUALS, collective_equals: u64 = 8, "collectives",
        "A collective of a merged trace is compared with the median of at least this many of its kind, size and communicator.",
        "Half of eight may be slowed before the median is one of them, and chance sorts eight of equal length in one order of 40,320.";
    COLLECTIVE_SLOW, collective_slow: f64 = 1.5, "",
        "A collective is slow from this many times the median of its equals on.",
        "nccl-tests repeats measurements because results of one size vary by some percent; a half is far outside.";
    COLLECTIVE_EXCESS, collective_excess: Span = Span(500_000), "ns",
        "A collective that takes longer than its equals by less than this is not slow.",
        "What a train of CNPs costs at the least: NVIDIA's rate timer of 300 us, and some round trips.";
    BLIND_BYTES, blind_bytes: u64 = 1_000_000, "bytes",
        "RDMA bytes of an interface whose capture has no RoCE packet: from this many on the capture is blind.",
        "Handshakes of the connection manager and keep-alive messages are some hundred bytes each; data is more.";
    ENTROPY_FLOWS, entropy_flows: u64 = 8, "flows",
        "Fewer flows between two hosts than this are not judged for their source ports.",
        "A few flows meet on one path whatever their ports are.";
    ENTROPY_SHARE, entropy_share: f64 = 0.25, "",
        "At most this many source ports per flow are too few.",
        "Random ports of 14 bits hardly ever collide: 100 flows have 99.7 of them on average.";
    MTU_BYTES, mtu_bytes: u64 = 1_000_000, "bytes",
        "A flow of less payload than this is not judged for its path MTU.",
        "Headers of some ms at 10 Gb/s: less cannot matter.";
    ICRC_SYSTEMATIC, icrc_systematic: f64 = 0.1, "",
        "A larger share of wrong ICRCs than this comes from the way of capturing, not from corruption.",
        "Frames with so many errors would not have passed the FCS of a link.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_threshold_is_read_and_set_by_name() {
        let mut thresholds = Thresholds::default();
        for threshold in Thresholds::ALL {
            assert_eq!(
                threshold.get(&thresholds),
                threshold.default,
                "{}",
                threshold.name
            );
            let other = match threshold.default {
                ThresholdValue::Count(value) => ThresholdValue::Count(value + 1),
                ThresholdValue::Span(value) => ThresholdValue::Span(Span(value.0 + 1)),
                ThresholdValue::Number(value) => ThresholdValue::Number(value + 0.5),
            };
            threshold.set(&mut thresholds, other).unwrap();
            assert_eq!(threshold.get(&thresholds), other);
            assert_eq!(Thresholds::named(threshold.name).unwrap().name, threshold.name);
            assert!(!threshold.meaning.is_empty() && !threshold.reason.is_empty());
        }
        assert_eq!(thresholds.incast_senders, INCAST_SENDERS + 1);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let mut thresholds = Thresholds::default();
        let error = Thresholds::named("incast").unwrap_err();
        assert_eq!(error.to_string(), "there is no threshold 'incast'");
        let quiet = Thresholds::named("episode_quiet").unwrap();
        let error = quiet
            .set(&mut thresholds, ThresholdValue::Number(0.5))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "the threshold 'episode_quiet' cannot be 0.5: it is a length of time"
        );
        let share = Thresholds::named("pause_share").unwrap();
        assert!(
            share
                .set(&mut thresholds, ThresholdValue::Number(f64::NAN))
                .is_err()
        );
        assert!(share.set(&mut thresholds, ThresholdValue::Number(-0.1)).is_err());
        share.set(&mut thresholds, ThresholdValue::Count(1)).unwrap();
        assert_eq!(thresholds.pause_share.to_bits(), 1.0f64.to_bits());
        assert_eq!(Thresholds::default().pause_share.to_bits(), PAUSE_SHARE.to_bits());
    }
}
