//! Pauses as a share of time, with their direction.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::{Counter, Severity};
use roce_spelling::{counted, rate_of};

use super::growth::{Growths, is_port, seconds_text, share_text};
use super::sign::{CounterRule, CounterSign, NO_TEXTS, by};

/// Share of time from which on pauses are a warning. A link that is paused for this share cannot carry the rest of its rate.
const PAUSED_SHARE: f64 = 0.10;
/// Pause frames per second from which on they are a warning where no time is counted; alerts on switch ports have the same.
const FRAMES_PER_SECOND: f64 = 100.0;
/// Least time of pauses between recordings of unknown time that is judged, in seconds.
const MIN_PAUSED: f64 = 0.1;
/// Bits that one frame can stop at most: 65,535 quanta of 512 bit times (IEEE 802.1Q clause 36.3, IEEE 802.3 annex 31B).
const FRAME_BITS: f64 = 65_535.0 * 512.0;

const SOURCE: &str = "IEEE 802.1Q clause 36.3 and IEEE 802.3 annex 31B: a frame pauses for up to 65,535 quanta of 512 bit times; \
                      Linux mlx5 counters rx_prioN_pause_duration, SAI_PORT_STAT_PFC_N_RX_PAUSE_DURATION_US";
const METHOD: &str = "time that the counters state, of the time between two readings: 10 % or more is a warning, less a note. Where no time is \
                      counted: 100 frames a second that can have paused for 10 % of the time, by their quanta. Between recordings of unknown \
                      time: 0.1 s or more, and 10 % of pauses and sending at the link's rate together";

pub(super) const RULES: &[CounterRule] = &[
    CounterRule {
        id: "counters.paused",
        title: "the neighbour pauses this port",
        meaning: "The port received pauses and stood still meanwhile. The cause is behind the neighbour, or in it: at a host's port the switch \
                  cannot take the traffic, at a switch's port the host or the next switch.",
        method: METHOD,
        source: SOURCE,
        next: "Follow the pauses: look at the counters of the neighbour of this port, up to a port that is not paused itself (`fabric pauses`).",
        severity: Severity::Warning,
        run: by(paused),
        ..NO_TEXTS
    },
    CounterRule {
        id: "counters.pausing",
        title: "this port pauses its neighbour",
        meaning: "The port sent pauses: it cannot take the traffic. A host's port: memory, PCIe or the program is too slow. A switch's port: an \
                  outgoing queue behind it is full or paused.",
        method: METHOD,
        source: SOURCE,
        next: "Host: PCIe stalls, rx_discards, out_of_buffer and the receiving program. Switch: which of its ports is paused or full meanwhile, \
               and whether ECN marks before PFC.",
        severity: Severity::Warning,
        run: by(pausing),
        ..NO_TEXTS
    },
];

/// Counters of one kind of pauses in one direction.
struct PauseCounters {
    name: &'static str,
    seconds: Option<Counter>,
    /// Frames of all priorities, then frames by priority.
    frames: [Option<Counter>; 2],
}

const fn counters(
    name: &'static str,
    seconds: Option<Counter>,
    frames: [Option<Counter>; 2],
) -> PauseCounters {
    PauseCounters {
        name,
        seconds,
        frames,
    }
}

const RECEIVED: [PauseCounters; 6] = [
    counters(
        "PFC",
        Some(Counter::PfcReceivePausedSeconds),
        [None, Some(Counter::PfcReceivedFrames)],
    ),
    counters(
        "802.3x",
        Some(Counter::PauseReceivePausedSeconds),
        [Some(Counter::PauseReceivedFrames), None],
    ),
    counters(
        "PFC",
        Some(Counter::SwitchPriorityPfcReceivePausedSeconds),
        [
            Some(Counter::SwitchPfcReceivedFrames),
            Some(Counter::SwitchPriorityPfcReceivedFrames),
        ],
    ),
    counters("802.3x", None, [Some(Counter::SwitchPauseReceivedFrames), None]),
    counters(
        "PFC",
        Some(Counter::HypervisorPfcReceivePausedSeconds),
        [None, Some(Counter::HypervisorPfcReceivedFrames)],
    ),
    counters(
        "802.3x",
        Some(Counter::HypervisorPauseReceivePausedSeconds),
        [Some(Counter::HypervisorPauseReceivedFrames), None],
    ),
];

const SENT: [PauseCounters; 6] = [
    counters(
        "PFC",
        Some(Counter::PfcTransmitPausedSeconds),
        [None, Some(Counter::PfcTransmittedFrames)],
    ),
    counters(
        "802.3x",
        Some(Counter::PauseTransmitPausedSeconds),
        [Some(Counter::PauseTransmittedFrames), None],
    ),
    counters(
        "PFC",
        None,
        [
            Some(Counter::SwitchPfcTransmittedFrames),
            Some(Counter::SwitchPriorityPfcTransmittedFrames),
        ],
    ),
    counters(
        "802.3x",
        None,
        [Some(Counter::SwitchPauseTransmittedFrames), None],
    ),
    counters("PFC", None, [None, Some(Counter::HypervisorPfcTransmittedFrames)]),
    counters(
        "802.3x",
        Some(Counter::HypervisorPauseTransmitPausedSeconds),
        [Some(Counter::HypervisorPauseTransmittedFrames), None],
    ),
];

/// Bytes that an object sends, and those that it receives.
const SENT_BYTES: [Counter; 4] = [
    Counter::PriorityTransmittedBytes,
    Counter::PortTransmittedBytes,
    Counter::SwitchInterfaceTransmittedBytes,
    Counter::HypervisorTransmittedBytes,
];
const RECEIVED_BYTES: [Counter; 4] = [
    Counter::PriorityReceivedBytes,
    Counter::PortReceivedBytes,
    Counter::SwitchInterfaceReceivedBytes,
    Counter::HypervisorReceivedBytes,
];

/// One direction of pauses.
struct PauseDirection {
    verb: &'static str,
    counters: &'static [PauseCounters],
    /// Bytes that the pauses hold up.
    bytes: &'static [Counter],
    /// The conclusion, at a host and at a switch or hypervisor.
    follows: [&'static str; 2],
}

/// True of counters that the two rules need.
pub(super) fn is_needed(counter: Counter) -> bool {
    let of_kind = |kind: &PauseCounters| {
        let all = kind.seconds.into_iter().chain(kind.frames.into_iter().flatten());
        all.into_iter().any(|needed| needed == counter)
    };
    SENT_BYTES
        .iter()
        .chain(&RECEIVED_BYTES)
        .any(|needed| *needed == counter)
        || RECEIVED.iter().chain(&SENT).any(of_kind)
}

fn paused(growths: &Growths<'_>) -> Vec<CounterSign> {
    found(
        growths,
        &PauseDirection {
            verb: "paused by the neighbour",
            counters: &RECEIVED,
            bytes: &SENT_BYTES,
            follows: [
                "the peer or switch throttles this port",
                "what is behind the port does not take the traffic",
            ],
        },
    )
}

fn pausing(growths: &Growths<'_>) -> Vec<CounterSign> {
    found(
        growths,
        &PauseDirection {
            verb: "pauses its neighbour",
            counters: &SENT,
            bytes: &RECEIVED_BYTES,
            follows: [
                "this host does not take its packets, and stops the switch's port",
                "the switch cannot take the traffic of this port",
            ],
        },
    )
}

/// Pauses of one kind at one object.
#[derive(Default)]
struct PausedObject {
    /// Seconds by priority; pauses of several priorities overlap.
    seconds: BTreeMap<Option<u8>, f64>,
    frames: f64,
    priorities: BTreeSet<u8>,
}

fn pauses_of<'a>(growths: &Growths<'a>, kind: &PauseCounters) -> BTreeMap<&'a str, PausedObject> {
    let mut all: BTreeMap<&str, PausedObject> = BTreeMap::new();
    for (sample, growth) in kind.seconds.iter().flat_map(|counter| growths.of(*counter)) {
        if is_port(sample) {
            let object = all.entry(&*sample.object).or_default();
            *object.seconds.entry(sample.priority).or_default() += growth;
            object.priorities.extend(sample.priority.filter(|_| growth > 0.0));
        }
    }
    let [total, by_priority] = kind.frames;
    let mut has_total = BTreeSet::new();
    for (sample, growth) in total.iter().flat_map(|counter| growths.of(*counter)) {
        if is_port(sample) {
            has_total.insert(&*sample.object);
            all.entry(&*sample.object).or_default().frames += growth;
        }
    }
    for (sample, growth) in by_priority.iter().flat_map(|counter| growths.of(*counter)) {
        if is_port(sample) {
            let object = all.entry(&*sample.object).or_default();
            object.priorities.extend(sample.priority.filter(|_| growth > 0.0));
            if !has_total.contains(&*sample.object) {
                object.frames += growth;
            }
        }
    }
    all
}

fn found(growths: &Growths<'_>, direction: &PauseDirection) -> Vec<CounterSign> {
    let mut found = Vec::new();
    for kind in direction.counters {
        // Totals of hosts are shown by tables; of switches a note says which ports they are of.
        let first = kind
            .seconds
            .into_iter()
            .chain(kind.frames.into_iter().flatten())
            .next();
        let is_switch = first.is_some_and(|counter| counter.name().starts_with("switch_"));
        if growths.is_total() && !(is_switch && kind.name == "PFC") {
            continue;
        }
        let is_host = kind.seconds.is_some_and(|counter| {
            let name = counter.name();
            name.starts_with("pfc_") || name.starts_with("pause_")
        });
        let follows = direction.follows[usize::from(!is_host)];
        for (object, pauses) in pauses_of(growths, kind) {
            let seconds = pauses.seconds.values().copied().fold(0.0, f64::max);
            if seconds <= 0.0 && pauses.frames <= 0.0 {
                continue;
            }
            let place = if pauses.priorities.is_empty() {
                if kind.name == "PFC" {
                    "PFC".to_owned()
                } else {
                    "802.3x, the whole link".to_owned()
                }
            } else {
                let all: Vec<String> = pauses.priorities.iter().map(u8::to_string).collect();
                format!("PFC, priority {}", all.join(" and "))
            };
            let (severity, price) = priced(growths, direction, object, seconds, pauses.frames);
            let text = format!("{} {price} ({place})", direction.verb);
            let sign = CounterSign::new(growths, severity, object, &text);
            // A note about few pauses draws no conclusion.
            let sign = if severity > Severity::Info {
                sign.and(follows)
            } else {
                sign
            };
            found.push(
                sign.number("paused_seconds", (seconds * 1e6).round() / 1e6)
                    .number("frames", pauses.frames),
            );
        }
    }
    found
}

/// How much pauses cost, and how bad that is.
fn priced(
    growths: &Growths<'_>,
    direction: &PauseDirection,
    object: &str,
    seconds: f64,
    frames: f64,
) -> (Severity, String) {
    let said = |is_much| {
        if is_much {
            Severity::Warning
        } else {
            Severity::Info
        }
    };
    let frames_text = counted(frames, "frame");
    if seconds <= 0.0 {
        let per_second = growths.per_second(frames);
        let most = growths.rate(object).map(|rate| frames * FRAME_BITS / rate);
        let share = most.zip(growths.seconds()).map(|(most, all)| most / all);
        let is_much = per_second.is_some_and(|frames| frames >= FRAMES_PER_SECOND)
            && share.is_none_or(|share| share >= PAUSED_SHARE);
        let bound = match (share, growths.rate(object)) {
            (Some(share), Some(rate)) if share < 1.0 && !growths.is_total() => format!(
                ", at most {} of the time at {} (65,535 quanta of 512 bit times each)",
                share_text(share),
                rate_of(rate)
            ),
            _ => String::new(),
        };
        return (said(is_much), format!("by {frames_text}{bound}"));
    }
    let with_frames = if frames > 0.0 {
        format!(", {frames_text}")
    } else {
        String::new()
    };
    if let Some(all) = growths.seconds().filter(|_| !growths.is_total()) {
        let share = (seconds / all).min(1.0);
        let price = format!(
            "{} of the time: {}{with_frames}",
            share_text(share),
            seconds_text(seconds)
        );
        return (said(share >= PAUSED_SHARE), price);
    }
    let bytes = direction
        .bytes
        .iter()
        .find_map(|counter| growths.sum(*counter, object));
    let sending = bytes
        .zip(growths.rate(object))
        .map(|(bytes, rate)| bytes * 8.0 / rate);
    let is_much =
        seconds >= MIN_PAUSED && sending.is_some_and(|sending| seconds >= PAUSED_SHARE * (seconds + sending));
    let beside = match sending.filter(|_| !growths.is_total()) {
        Some(sending) => format!(", beside {} of sending at the link's rate", seconds_text(sending)),
        None => String::new(),
    };
    (
        said(is_much),
        format!("for {}{with_frames}{beside}", seconds_text(seconds)),
    )
}
