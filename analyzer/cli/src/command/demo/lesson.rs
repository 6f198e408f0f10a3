//! Lessons: the text of each demo as a TOML file, and the numbers of its capture in the places that the text leaves for
//! them. What is on the capture's frames is found by `find`; how it looks is left to `show`.
//!
//! In a text, `{label}` is the number of a frame found before, and `{label.psn}` one of its fields.
//! `{one..two}` is the time from one to the other, `{count}` a count, and `{part%whole}` the share of
//! two counts.

use std::collections::BTreeMap;

use anyhow::{Context, anyhow, bail};
use roce_model::Span;
use roce_sim::units::Picos;
use roce_wire::{AethKind, Pause};
use serde::Deserialize;

use super::find::{Find, Labels};
use super::frames::{DemoFrame, History, What};

/// The text of one demo.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lesson {
    /// Options that the analysis is given.
    #[serde(default)]
    pub(crate) options: Vec<String>,
    /// Time between two readings of the counters of all ports, which the analysis gets with the cables; absent: it gets captures alone.
    #[serde(default)]
    pub(crate) counters: Option<Picos>,
    /// The hosts and their traffic, in a few sentences.
    pub(crate) situation: String,
    /// The connections between the hosts, drawn with characters.
    #[serde(default)]
    pub(crate) picture: String,
    /// Steps through the packets.
    pub(crate) step: Vec<Step>,
    /// Advice, the first thing first.
    pub(crate) advice: Vec<String>,
    /// Sources of the rules.
    pub(crate) sources: Vec<String>,
    /// Findings that must be there.
    #[serde(default)]
    pub(crate) finds: Vec<String>,
    /// Findings that must not be there: what the situation could be taken for.
    #[serde(default)]
    pub(crate) not: Vec<String>,
}

/// One thing that one sees.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// Heading of the step.
    pub(crate) heading: String,
    /// Why it is so.
    pub(crate) text: String,
    /// Frames that show it.
    #[serde(default)]
    pub(crate) look: Vec<Look>,
    /// Numbers for the text.
    #[serde(default)]
    pub(crate) count: Vec<Count>,
    /// Rates for the text.
    #[serde(default)]
    pub(crate) rate: Vec<Rate>,
    /// A display filter that shows all such frames in Wireshark.
    #[serde(default)]
    pub(crate) filter: String,
}

/// A frame that shows something.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Look {
    /// Name in texts and other conditions.
    pub(crate) label: String,
    /// Conditions for the frame.
    pub(crate) find: Find,
    /// Sentence about it; without one, the frame is found for texts alone.
    #[serde(default)]
    pub(crate) says: String,
}

/// A number of frames.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Count {
    /// Name in texts.
    pub(crate) label: String,
    /// Conditions for the frames.
    pub(crate) find: Find,
}

/// Rate of some frames: their payload by the time from the first to the last.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rate {
    /// Name in texts.
    pub(crate) label: String,
    /// Conditions for the frames.
    pub(crate) find: Find,
    /// Number of them.
    pub(crate) packets: usize,
}

impl Lesson {
    /// Reads a lesson.
    pub(crate) fn parse(toml: &str) -> anyhow::Result<Self> {
        Ok(toml::from_str(toml)?)
    }
}

/// Frames that were found for a lesson.
#[derive(Clone, Debug, Default)]
pub(crate) struct LessonFrames {
    frames: BTreeMap<String, DemoFrame>,
    counts: BTreeMap<String, u64>,
    rates: BTreeMap<String, String>,
}

impl Labels for LessonFrames {
    fn seen(&self, label: &str) -> Option<&DemoFrame> {
        self.frames.get(label)
    }
}

impl LessonFrames {
    /// Finds everything that a lesson points at.
    pub(crate) fn find(lesson: &Lesson, frames: &[DemoFrame]) -> anyhow::Result<Self> {
        let mut found = Self::default();
        for step in &lesson.step {
            for look in &step.look {
                let seen = look
                    .find
                    .one(frames, &found)
                    .with_context(|| format!("the capture has no frame for `{}`", look.label))?;
                found.frames.insert(look.label.clone(), *seen);
            }
            for rate in &step.rate {
                let text = rate
                    .text(frames, &found)
                    .with_context(|| format!("the capture has no rate for `{}`", rate.label))?;
                found.rates.insert(rate.label.clone(), text);
            }
            for count in &step.count {
                let number = count.find.count(frames, &found);
                found.counts.insert(count.label.clone(), number);
            }
        }
        Ok(found)
    }

    /// A text with its places filled in.
    pub(crate) fn fill(&self, text: &str) -> anyhow::Result<String> {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (place, after) = after
                .split_once('}')
                .with_context(|| format!("no end of the place in: {text}"))?;
            filled.push_str(before);
            filled.push_str(&self.place(place)?);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn place(&self, place: &str) -> anyhow::Result<String> {
        if let Some((from, to)) = place.split_once("..") {
            return Ok(self.frame(to)?.time.since(self.frame(from)?.time).to_string());
        }
        if let Some((part, whole)) = place.split_once('%') {
            let (part, whole) = (self.count(part)?, self.count(whole)?);
            return Ok(share(part, whole));
        }
        if let Some((label, field)) = place.split_once('.') {
            return field_of(self.frame(label)?, field)
                .with_context(|| format!("the frame `{label}` has no {field}"));
        }
        if let Some(count) = self.counts.get(place) {
            return Ok(roce_spelling::count(*count));
        }
        if let Some(rate) = self.rates.get(place) {
            return Ok(rate.clone());
        }
        Ok(format!("frame {}", self.frame(place)?.number))
    }

    fn frame(&self, label: &str) -> anyhow::Result<&DemoFrame> {
        self.seen(label)
            .ok_or_else(|| anyhow!("no frame has the label `{label}`"))
    }

    fn count(&self, label: &str) -> anyhow::Result<u64> {
        match self.counts.get(label) {
            Some(count) => Ok(*count),
            None => bail!("no count has the label `{label}`"),
        }
    }
}

impl Rate {
    fn text(&self, frames: &[DemoFrame], found: &LessonFrames) -> Option<String> {
        let seen = self.find.some(frames, found, self.packets);
        let (first, last) = (seen.first()?, seen.last()?);
        let payload: u64 = seen
            .iter()
            .skip(1)
            .filter_map(|seen| Some(u64::from(seen.packet()?.payload_bytes)))
            .sum();
        let time = last.time.since(first.time).0;
        // Bits in a nanosecond are gigabits in a second.
        #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
        let rate = (payload * 8) as f64 / time.max(1) as f64;
        let decimals = if rate < 10.0 { 2 } else { 1 };
        (time > 0).then(|| format!("{rate:.decimals$} Gbit/s"))
    }
}

/// Something that a frame says, by its name in texts.
fn field_of(seen: &DemoFrame, field: &str) -> Option<String> {
    Some(match (field, &seen.what) {
        ("n", _) => seen.number.to_string(),
        ("at", _) => seen.offset.to_string(),
        ("silence", _) => seen.silence.to_string(),
        ("behind_psns", _) => match seen.behind_psns {
            0 => return None,
            1 => "1 PSN".to_owned(),
            psns => format!("{psns} PSNs"),
        },
        ("behind_time", _) => seen.behind_time.to_string(),
        ("jumped_psns", _) => match seen.history {
            History::Jump(1) => "1 PSN".to_owned(),
            History::Jump(psns) => format!("{psns} PSNs"),
            _ => return None,
        },
        ("quanta", What::Pause(pause)) => longest(pause).to_string(),
        ("paused_by", What::Pause(pause)) => pause.source.to_string(),
        (_, What::Pause(_)) => return None,
        (field, What::Packet(packet)) => match field {
            "from" => packet.source.to_string(),
            "to" => packet.destination.to_string(),
            "psn" => packet.bth.psn().value().to_string(),
            "qpn" => packet.bth.destination_qpn().to_string(),
            "dscp" => packet.dscp().to_string(),
            "ecn" => packet.ecn().to_string(),
            "port" => packet.udp_source_port.to_string(),
            "ip_id" => packet.ip_id.to_string(),
            "timer" => match packet.aeth.kind() {
                AethKind::RnrNak { timer } => Span(timer.nanos()).to_string(),
                _ => return None,
            },
            _ => return None,
        },
    })
}

/// The longest of a pause frame's times, in quanta.
fn longest(pause: &Pause) -> u16 {
    (0..8)
        .filter_map(|class| pause.quanta_of(class))
        .max()
        .unwrap_or(0)
}

/// `12 %` of a whole.
#[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0 %".to_owned();
    }
    let share = part as f64 / whole as f64 * 100.0;
    let decimals = usize::from(share < 10.0 && part > 0);
    format!("{share:.decimals$} %")
}
