//! PyTorch's flight recorder (`TORCH_NCCL_TRACE_BUFFER_SIZE`): a file for each rank with its last collectives, as a pickle, or as JSON.
//!
//! `time_created_ns` is when the collective was enqueued; the discovered times are a watchdog's, and late. JSON has 0 for times that are
//! absent, and text where the pickle has numbers. Sequences are those of the process group, not of NCCL.
//!
//! Source: pytorch/pytorch, `torch/csrc/distributed/c10d/FlightRecorder.hpp` and `FlightRecorderDetail.hpp`.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::error::DocumentError;
use super::json::Loose;
use super::pickle::Pickle;
use super::text::name;

const EXPECTED: &str = "a dump of PyTorch's flight recorder: version, pg_config, pg_status, entries";

/// State of a collective.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FlightState {
    /// It was enqueued, and its kernel has not begun.
    Scheduled,
    /// Its kernel has begun.
    Started,
    /// It is over.
    Completed,
}

/// One collective.
#[derive(Clone, PartialEq, Debug)]
pub struct FlightEntry {
    /// Name of the process group.
    pub group: String,
    /// Number of the collective in its group.
    pub sequence: u64,
    /// True of a message between two ranks, which have numbers of their own.
    pub is_p2p: bool,
    /// The operation: `nccl:all_reduce`.
    pub operation: String,
    /// Its state.
    pub state: FlightState,
    /// Time of enqueueing in nanoseconds since the Unix epoch.
    pub created_ns: Option<u64>,
    /// Time at which a watchdog saw its last change, which is later than the change.
    pub seen_ns: Option<u64>,
    /// Length in nanoseconds, where it was measured.
    pub duration_ns: Option<u64>,
}

/// One process group.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlightGroup {
    /// Its name.
    pub name: String,
    /// Its description: `default_pg`.
    pub description: String,
    /// Ranks of the job that are in it.
    pub ranks: Vec<u32>,
    /// Number of the collective that was enqueued last.
    pub enqueued: Option<u64>,
    /// Number of the collective that started last.
    pub started: Option<u64>,
    /// Number of the collective that was completed last.
    pub completed: Option<u64>,
}

/// The dump of one rank.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FlightRecorder {
    /// Version of the form.
    pub version: String,
    /// The rank, where the dump or its name says it.
    pub rank: Option<u32>,
    /// Process groups.
    pub groups: Vec<FlightGroup>,
    /// Collectives, in the order of the dump.
    pub entries: Vec<FlightEntry>,
}

#[derive(Deserialize)]
struct Dump {
    version: Loose,
    #[serde(default)]
    rank: Loose,
    #[serde(default)]
    pg_config: BTreeMap<String, Config>,
    #[serde(default)]
    pg_status: BTreeMap<String, Status>,
    #[serde(default)]
    entries: Vec<Entry>,
}

/// A dump by the names of its fields. Serde also takes a list as the fields in their order, so that any list would be a dump.
struct DumpFields(Dump);

impl<'de> Deserialize<'de> for DumpFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = DumpFields;

            fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
                text.write_str("named fields")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DumpFields, A::Error> {
                Dump::deserialize(MapAccessDeserializer::new(map)).map(DumpFields)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Config {
    name: Loose,
    desc: Loose,
    ranks: RankList,
}

/// Ranks as text, `[0, 1]`, or as numbers.
#[derive(Deserialize)]
#[serde(untagged)]
enum RankList {
    Numbers(Vec<u32>),
    Text(String),
}

impl Default for RankList {
    fn default() -> Self {
        Self::Numbers(Vec::new())
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    #[serde(rename = "last_enqueued_collective")]
    enqueued: Loose,
    #[serde(rename = "last_started_collective")]
    started: Loose,
    #[serde(rename = "last_completed_collective")]
    completed: Loose,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    pg_id: Loose,
    #[serde(default)]
    process_group: Vec<Loose>,
    #[serde(default)]
    collective_seq_id: Loose,
    #[serde(default)]
    p2p_seq_id: Loose,
    #[serde(default)]
    profiling_name: Loose,
    #[serde(default)]
    time_created_ns: Loose,
    #[serde(default)]
    time_discovered_started_ns: Loose,
    #[serde(default)]
    time_discovered_completed_ns: Loose,
    #[serde(default)]
    duration_ms: Loose,
    state: String,
    #[serde(default)]
    is_p2p: Loose,
}

impl Entry {
    fn entry(&self) -> Option<FlightEntry> {
        let is_p2p = self.is_p2p.whole() == Some(1);
        let sequence = if is_p2p {
            &self.p2p_seq_id
        } else {
            &self.collective_seq_id
        };
        let group = self.process_group.first().and_then(Loose::text);
        let duration = self
            .duration_ms
            .number()
            .filter(|time| *time > 0.0 && *time < 1e12);
        Some(FlightEntry {
            group: group.or_else(|| self.pg_id.text()).unwrap_or_default(),
            sequence: sequence.whole()?,
            is_p2p,
            operation: self.profiling_name.text().unwrap_or_default(),
            state: match self.state.as_str() {
                "scheduled" => FlightState::Scheduled,
                "started" => FlightState::Started,
                "completed" => FlightState::Completed,
                _ => return None,
            },
            created_ns: self.time_created_ns.whole().filter(|time: &u64| *time > 0),
            seen_ns: [
                &self.time_discovered_started_ns,
                &self.time_discovered_completed_ns,
            ]
            .into_iter()
            .filter_map(|time| time.whole().filter(|time: &u64| *time > 0))
            .max(),
            duration_ns: duration.map(|time| roce_model::cast::whole(time * 1e6)),
        })
    }
}

impl Dump {
    fn recorder(self) -> FlightRecorder {
        let Self {
            version,
            rank,
            pg_config,
            mut pg_status,
            entries,
        } = self;
        let mut groups: Vec<FlightGroup> = Vec::new();
        for (key, config) in pg_config {
            let status = pg_status.remove(&key).unwrap_or_default();
            groups.push(FlightGroup {
                name: config.name.text().unwrap_or_else(|| name(&key)),
                description: config.desc.text().unwrap_or_default(),
                ranks: config.ranks.ranks(),
                ..status.group()
            });
        }
        let rest = pg_status.into_iter().map(|(key, status)| FlightGroup {
            name: name(&key),
            ..status.group()
        });
        groups.extend(rest);
        FlightRecorder {
            version: version.text().unwrap_or_default(),
            rank: rank.whole(),
            groups,
            entries: entries.iter().filter_map(Entry::entry).collect(),
        }
    }
}

impl Status {
    /// The numbers of a group. -1 is none.
    fn group(&self) -> FlightGroup {
        FlightGroup {
            enqueued: self.enqueued.whole(),
            started: self.started.whole(),
            completed: self.completed.whole(),
            ..FlightGroup::default()
        }
    }
}

impl RankList {
    fn ranks(&self) -> Vec<u32> {
        match self {
            Self::Numbers(ranks) => ranks.clone(),
            Self::Text(text) => {
                let numbers = text.trim_matches(['[', ']', ' ']).split(',');
                numbers.filter_map(|number| number.trim().parse().ok()).collect()
            }
        }
    }
}

/// Reads a dump. The rank is that of its file's name where the dump has none.
///
/// # Errors
/// When it is neither a pickle nor JSON, has opcodes that would call what a dump never needs, or is no dump.
pub fn flight_recorder(bytes: &[u8], file: &str) -> Result<FlightRecorder, DocumentError> {
    let dump = if bytes.first() == Some(&0x80) {
        let pickle = Pickle::read(bytes, file)?;
        DumpFields::deserialize(pickle.root()).map_err(|error| {
            DocumentError::at_byte(file, error.byte, format!("{}; expected {EXPECTED}", error.reason))
        })?
    } else {
        serde_json::from_slice::<DumpFields>(bytes)
            .map_err(|error| DocumentError::of_json(file, 0, &error, EXPECTED))?
    };
    let mut recorder = dump.0.recorder();
    recorder.rank = recorder.rank.or_else(|| rank_of_name(file));
    Ok(recorder)
}

/// The rank at the end of a file's name: `nccl_trace_rank_3`, `nccl_trace_rank_3.json`.
pub fn rank_of_name(file: &str) -> Option<u32> {
    let name = file.rsplit('/').next()?;
    let stem = name
        .trim_end_matches(".gz")
        .trim_end_matches(".json")
        .trim_end_matches(".pickle")
        .trim_end_matches(".pkl");
    let digits = stem.len() - stem.trim_end_matches(|glyph: char| glyph.is_ascii_digit()).len();
    stem.get(stem.len() - digits..)?.parse().ok()
}
