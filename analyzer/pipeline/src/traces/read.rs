//! Reads the collectives of a trace: of PyTorch's profiler (libkineto/src/output_json.cpp of pytorch/kineto), or of NCCL's profiler plugin
//! (ext-profiler/example/print_event.cc of NVIDIA/nccl).
//!
//! The text is parsed while it comes; only collectives are kept, and not more than a stated number. Kineto's collectives are the kernels of
//! NCCL or RCCL on the GPU; `record_param_comms`, the call on the host, has the size where older versions do not write it to the kernel.
//! NCCL's are the events of the categories COLL and P2P, of which begin and end are two events. How the clocks are related is left to
//! `clock`.

use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::path::Path;

use roce_capture::ExpandedBytes;
use roce_model::TraceSource;
use roce_model::text::clean;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::bounded::BoundedReader;
use super::event::{Entries, Event, EventSeed, Scalar, ScalarSeed};
use super::kinds::{element_bytes, kernel, kind};
use super::net::{NetworkEvents, OpenNetworkEvents};
use super::stated::StatedRanks;

/// Collectives that are kept of one trace.
const MAX_CALLS: usize = 1 << 16;
/// Calls on the host, and collectives that have begun, that are kept to be joined.
const MAX_OPEN: usize = 1 << 16;
/// The first time since the Unix epoch that a clock of a profile can show, in ns: 2001-09-09. Smaller ones count from some start.
const MIN_EPOCH_NS: i64 = 1_000_000_000_000_000_000;
/// The longest time of a trace in us: what a double has with a resolution below 1 us, 142 years.
const MAX_MICROSECONDS: f64 = 4.5e15;
/// Longest kept name.
const MAX_NAME: usize = 64;

/// A collective in a trace, by the trace's clock.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// Start and end in ns: since the Unix epoch where the trace states it, else since some start.
    pub start: i64,
    /// Its end; not before the start.
    pub end: i64,
    /// The operation.
    pub kind: String,
    /// Size of its message.
    pub message_bytes: Option<u64>,
    /// Process group or communicator.
    pub communicator: Option<String>,
    /// Ranks of the communicator.
    pub ranks: Option<u32>,
    /// The rank.
    pub rank: Option<u32>,
    /// Its number in the communicator, which counts for each operation.
    pub sequence: Option<u64>,
}

/// The collectives of a trace.
#[derive(Clone, PartialEq, Debug)]
pub struct Trace {
    /// Its file.
    pub file: String,
    /// Its writer.
    pub form: TraceSource,
    /// True if times count from the Unix epoch.
    pub has_epoch: bool,
    /// Collectives in the order of their starts.
    pub calls: Vec<Call>,
    /// States of ranks, of documents that have them.
    pub stated: StatedRanks,
    /// Waits of NCCL's proxy, of traces with its network events.
    pub network: Option<NetworkEvents>,
    /// Collectives for which there was no room, or that have no end.
    pub left_out: u64,
    /// The reason for which its end is missing: the collectives before are there.
    pub is_cut: Option<String>,
}

/// A trace that cannot be merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] roce_capture::Error),
    /// The file is longer than allowed.
    #[error("{file}: longer than {limit} bytes\nhint: --max-input reads more, or profile fewer steps")]
    TooLong {
        /// The file.
        file: String,
        /// The limit.
        limit: u64,
    },
    /// It is no JSON, or not that of a trace.
    #[error(
        "{file}: no trace: byte {offset}: {reason}\nhint: a trace in Chrome's Trace Event Format is expected, of PyTorch's profiler or of NCCL's \
         profiler plugin"
    )]
    Format {
        /// The file.
        file: String,
        /// Bytes before, decompressed.
        offset: u64,
        /// Description of the error there.
        reason: String,
    },
    /// It has no collective.
    #[error("{file}: no collective in {events} events\nhint: {hint}")]
    Empty {
        /// The file.
        file: String,
        /// Number of its events.
        events: u64,
        /// Way to get some.
        hint: &'static str,
    },
}

impl Trace {
    /// Reads a file, of which at most `limit` decompressed bytes are read.
    ///
    /// # Errors
    /// When it cannot be read, is no trace, or has no collective.
    pub fn open(path: &Path, limit: Option<u64>) -> Result<Self, TraceError> {
        let file = path.display().to_string();
        Self::read(ExpandedBytes::open(path, limit)?, file, limit)
    }

    /// Reads a trace that errors call `file`.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn read(from: impl Read, file: String, limit: Option<u64>) -> Result<Self, TraceError> {
        let input = BoundedReader::new(from);
        let offset = input.offset();
        let mut gathered = GatheredEvents::default();
        let mut parser = serde_json::Deserializer::from_reader(input);
        let parsed = TraceSeed(&mut gathered)
            .deserialize(&mut parser)
            .and_then(|()| parser.end());
        let mut is_cut = None;
        if let Err(error) = parsed {
            let offset = offset.get();
            // The position of serde_json is in lines; the offset is that of the byte.
            let place = format!(" at line {} column {}", error.line(), error.column());
            let reason = error.to_string().replace(&place, "");
            let is_too_long = {
                let io = std::io::Error::from(error);
                (
                    ExpandedBytes::is_too_long(&io),
                    io.kind() == std::io::ErrorKind::UnexpectedEof,
                )
            };
            match (is_too_long, limit) {
                ((true, _), Some(limit)) => return Err(TraceError::TooLong { file, limit }),
                // A job that is killed leaves the begin of its trace.
                ((_, true), _) if gathered.events > 0 => {
                    is_cut = Some(format!("ends early, after {offset} bytes: {reason}"));
                }
                _ => {
                    return Err(TraceError::Format {
                        file,
                        offset,
                        reason: clean(&reason).into_owned(),
                    });
                }
            }
        }
        gathered.finish(file, is_cut)
    }
}

/// A collective whose size may still be joined.
struct FoundCollective {
    call: Call,
    /// Number under which the call on the host may have the size.
    external_id: Option<u64>,
}

/// Size and group of a call on the host.
#[derive(Clone, Default)]
struct About {
    kind: Option<&'static str>,
    message_bytes: Option<u64>,
    communicator: Option<String>,
    ranks: Option<u32>,
}

#[derive(Default)]
struct GatheredEvents {
    events: u64,
    base: Option<u64>,
    rank: Option<u32>,
    world_size: Option<u32>,
    found: Vec<FoundCollective>,
    /// Calls on the host by their number.
    on_host: HashMap<u64, About, foldhash::fast::RandomState>,
    host_calls: u64,
    /// NCCL's events that have begun: category, process and number.
    open: HashMap<(String, Option<String>, Option<String>), Call, foldhash::fast::RandomState>,
    is_nccl: bool,
    network: OpenNetworkEvents,
    left_out: u64,
}

impl About {
    fn from_event(event: &Event) -> Self {
        let arguments = &event.arguments;
        let elements = [&arguments.elements_in, &arguments.elements_out, &arguments.count];
        let elements = elements.into_iter().filter_map(Scalar::count).max();
        let size = arguments.data_type.text().and_then(|name| element_bytes(&name));
        Self {
            kind: arguments.collective.text().and_then(|name| kind(&name)),
            message_bytes: elements
                .zip(size)
                .and_then(|(count, size)| count.checked_mul(size)),
            communicator: arguments.group.text().map(|name| bounded(&name)),
            ranks: arguments
                .group_size
                .count()
                .and_then(|ranks| u32::try_from(ranks).ok()),
        }
    }
}

/// A name as it is kept.
fn bounded(name: &str) -> String {
    clean(name).chars().take(MAX_NAME).collect()
}

/// Microseconds as nanoseconds. Whole microseconds and the rest are converted apart, so that nothing is rounded twice.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn nanoseconds(time: &Scalar) -> Option<i64> {
    let microseconds = time.number()?;
    (microseconds.abs() <= MAX_MICROSECONDS).then(|| {
        let rest = (microseconds.fract() * 1_000.0).round() as i64;
        microseconds.trunc() as i64 * 1_000 + rest
    })
}

impl GatheredEvents {
    fn event(&mut self, event: &Event) {
        self.events += 1;
        let (Scalar::Text(phase), Scalar::Text(name)) = (&event.phase, &event.name) else {
            return;
        };
        match phase.as_str() {
            "X" => self.complete(event, name),
            "b" | "e" => self.asynchronous(event, name, phase == "b"),
            _ => {}
        }
    }

    /// Kineto's: an event with a length.
    fn complete(&mut self, event: &Event, name: &str) {
        let external_id = event.arguments.external_id.count();
        if name == "record_param_comms" {
            self.host_calls += 1;
            if let Some(id) = external_id.filter(|_| self.on_host.len() < MAX_OPEN) {
                self.on_host.insert(id, About::from_event(event));
            }
            return;
        }
        let Some(of_kernel) = kernel(name) else { return };
        let Some((start, length)) = nanoseconds(&event.time).zip(nanoseconds(&event.duration)) else {
            return;
        };
        let about = About::from_event(event);
        let shown = || bounded(name.split(['(', '<']).next().unwrap_or_default());
        self.push(FoundCollective {
            call: Call {
                start,
                end: start.saturating_add(length.max(0)),
                kind: about
                    .kind
                    .or(Some(of_kernel).filter(|kind| !kind.is_empty()))
                    .map_or_else(shown, str::to_owned),
                message_bytes: about.message_bytes,
                communicator: about.communicator,
                ranks: about.ranks,
                rank: None,
                sequence: None,
            },
            external_id,
        });
    }

    /// NCCL's: two events with one number.
    fn asynchronous(&mut self, event: &Event, name: &str, is_begin: bool) {
        let Scalar::Text(category) = &event.category else {
            return;
        };
        let Some(time) = nanoseconds(&event.time) else {
            return;
        };
        if matches!(category.as_str(), "NET" | "NET_IB") {
            return self.network.event(event, (category, name), time, is_begin);
        }
        if !matches!(category.as_str(), "COLL" | "P2P") {
            return;
        }
        self.is_nccl = true;
        let key = (category.clone(), event.process.text(), event.id.text());
        if !is_begin {
            if let Some(mut call) = self.open.remove(&key) {
                call.end = time.max(call.start);
                self.push(FoundCollective {
                    call,
                    external_id: None,
                });
            }
            return;
        }
        if self.open.len() >= MAX_OPEN {
            self.left_out += 1;
            return;
        }
        let about = About::from_event(event);
        let arguments = &event.arguments;
        let communicator = arguments.communicator.count();
        let call = Call {
            start: time,
            end: time,
            kind: kind(name).map_or_else(|| bounded(name), str::to_owned),
            message_bytes: about.message_bytes,
            communicator: communicator.map(|hash| format!("{hash:#x}")),
            ranks: None,
            rank: arguments.rank.count().and_then(|rank| u32::try_from(rank).ok()),
            sequence: arguments.sequence.count(),
        };
        // Numbers count by thread: the same one may begin again.
        if self.open.insert(key, call).is_some() {
            self.left_out += 1;
        }
    }

    fn push(&mut self, found: FoundCollective) {
        if self.found.len() < MAX_CALLS {
            self.found.push(found);
        } else {
            self.left_out += 1;
        }
    }

    fn finish(self, file: String, is_cut: Option<String>) -> Result<Trace, TraceError> {
        if self.found.is_empty() {
            let hint = match (self.host_calls, self.is_nccl) {
                (0, false) => {
                    "PyTorch's profile needs kernels (ProfilerActivity.CUDA), NCCL's plugin the events of collectives \
                     (NCCL_PROFILE_EVENT_MASK)"
                }
                (0, true) => "its collectives have no end: let the job end before the trace is read",
                _ => {
                    "it has calls on the host only (record_param_comms): profile with ProfilerActivity.CUDA, too"
                }
            };
            return Err(TraceError::Empty {
                file,
                events: self.events,
                hint,
            });
        }
        let base = i64::try_from(self.base.unwrap_or_default()).unwrap_or_default();
        let on_host = self.on_host;
        let (rank, world_size) = (self.rank, self.world_size);
        let calls = self.found.into_iter().map(|found| {
            let FoundCollective {
                mut call,
                external_id,
            } = found;
            call.start = call.start.saturating_add(base);
            call.end = call.end.saturating_add(base).max(call.start);
            call.rank = call.rank.or(rank);
            let host = external_id.and_then(|id| on_host.get(&id));
            if let Some(about) = host {
                call.message_bytes = call.message_bytes.or(about.message_bytes);
                call.ranks = call.ranks.or(about.ranks);
                if call.communicator.is_none() {
                    call.communicator.clone_from(&about.communicator);
                }
                if let Some(kind) = about.kind.filter(|_| call.kind.starts_with("nccl")) {
                    kind.clone_into(&mut call.kind);
                }
            }
            if call.communicator.is_none() {
                call.ranks = call.ranks.or(world_size);
            }
            call
        });
        let mut calls: Vec<Call> = calls.collect();
        calls.sort_by_key(|call| (call.start, call.end));
        Ok(Trace {
            file,
            form: if self.is_nccl {
                TraceSource::Nccl
            } else {
                TraceSource::Kineto
            },
            has_epoch: calls.iter().all(|call| call.start >= MIN_EPOCH_NS),
            calls,
            stated: StatedRanks::default(),
            network: self.network.finish(),
            left_out: self.left_out + self.open.len() as u64,
            is_cut,
        })
    }
}

/// Reads a trace: an object with `traceEvents`, or an array of events.
struct TraceSeed<'a>(&'a mut GatheredEvents);

impl<'de> DeserializeSeed<'de> for TraceSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TraceSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trace, which is an object or an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(event) = items.next_element_seed(EventSeed)? {
            self.0.event(&event);
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let gathered = self.0;
        while let Some(key) = entries.next_key_seed(ScalarSeed)? {
            match key.text().as_deref() {
                Some("traceEvents") => entries.next_value_seed(EventList(gathered))?,
                Some("baseTimeNanoseconds") => gathered.base = entries.next_value_seed(ScalarSeed)?.count(),
                Some("distributedInfo") => {
                    let narrow = |value: &Scalar| value.count().and_then(|number| u32::try_from(number).ok());
                    entries.next_value_seed(Entries {
                        take: |name, value| match name {
                            "rank" => gathered.rank = narrow(&value),
                            _ => gathered.world_size = narrow(&value),
                        },
                        wanted: &["rank", "world_size"],
                    })?;
                }
                _ => drop(entries.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Reads the array of events inside of an object.
struct EventList<'a>(&'a mut GatheredEvents);

impl<'de> DeserializeSeed<'de> for EventList<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(TraceSeed(self.0))
    }
}

#[cfg(test)]
mod tests;
