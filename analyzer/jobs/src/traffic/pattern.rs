//! Patterns over hosts, which write plans.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::str::FromStr;

use super::plan::{Endpoint, MAX_STREAMS, StreamSize, TrafficPlan};

/// Who sends to whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// The first host to the second, the third to the fourth.
    Pairs,
    /// Each host to the next, the last to the first.
    Ring,
    /// Hosts to the first one: this many, or all others.
    Incast(Option<usize>),
    /// Each host to each other.
    AllToAll,
    /// Each host to those in the same place of other racks.
    CrossRack,
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pairs => f.write_str("pairs"),
            Self::Ring => f.write_str("ring"),
            Self::Incast(None) => f.write_str("incast"),
            Self::Incast(Some(senders)) => write!(f, "incast={senders}:1"),
            Self::AllToAll => f.write_str("all-to-all"),
            Self::CrossRack => f.write_str("cross-rack"),
        }
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "pairs" => return Ok(Self::Pairs),
            "ring" => return Ok(Self::Ring),
            "incast" => return Ok(Self::Incast(None)),
            "all-to-all" => return Ok(Self::AllToAll),
            "cross-rack" => return Ok(Self::CrossRack),
            _ => {}
        }
        let senders = text
            .strip_prefix("incast")
            .and_then(|rest| rest.trim_start_matches([' ', '=', '-']).strip_suffix(":1"))
            .and_then(|count| count.parse().ok())
            .filter(|count| *count > 0);
        match senders {
            Some(count) => Ok(Self::Incast(Some(count))),
            None => Err(format!(
                "'{text}' is none of pairs, ring, incast, incast=N:1, all-to-all, cross-rack"
            )),
        }
    }
}

/// Why a pattern has no pairs over these hosts.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PatternError {
    /// There are too few hosts, or an odd number for pairs.
    #[error("{0}")]
    Hosts(String),
    /// Hosts have no rack.
    #[error("cross-rack: host '{0}' has no rack\nhint: rack = \"...\" of its [[host]] in the inventory")]
    NoRack(String),
    /// It would have too many streams.
    #[error("the pattern has {0} streams, and a plan at most {MAX_STREAMS}")]
    TooMany(usize),
}

impl Pattern {
    /// The pairs over these endpoints, client and server each, by their places. `racks` has the rack of each endpoint, for
    /// [`Self::CrossRack`].
    ///
    /// # Errors
    /// If there are too few hosts, or hosts without a rack.
    pub fn pairs(
        self,
        endpoints: &[Endpoint],
        racks: &[Option<String>],
    ) -> Result<Vec<(usize, usize)>, PatternError> {
        let count = endpoints.len();
        if count < 2 {
            return Err(PatternError::Hosts(format!(
                "a pattern needs 2 hosts, not {count}"
            )));
        }
        // All of them have fewer pairs than this.
        if count > MAX_STREAMS + 1 {
            return Err(PatternError::TooMany(count));
        }
        match self {
            Self::Pairs if count % 2 == 1 => Err(PatternError::Hosts(format!(
                "pairs needs an even number of hosts, not {count}"
            ))),
            Self::Pairs => Ok((0..count / 2).map(|pair| (2 * pair, 2 * pair + 1)).collect()),
            // With two hosts the way back is a second pair.
            Self::Ring => Ok((0..count).map(|host| (host, (host + 1) % count)).collect()),
            Self::Incast(senders) => {
                let senders = senders.unwrap_or(count - 1);
                if senders >= count {
                    return Err(PatternError::Hosts(format!(
                        "incast={senders}:1 needs {} hosts, not {count}",
                        senders + 1
                    )));
                }
                Ok((1..=senders).map(|host| (host, 0)).collect())
            }
            Self::AllToAll => {
                let pairs = count * (count - 1);
                if pairs > MAX_STREAMS {
                    return Err(PatternError::TooMany(pairs));
                }
                let all = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
                Ok(all.filter(|(from, to)| from != to).collect())
            }
            Self::CrossRack => cross_rack(endpoints, racks),
        }
    }
}

/// Hosts in the same place of each two racks, in both directions.
fn cross_rack(endpoints: &[Endpoint], racks: &[Option<String>]) -> Result<Vec<(usize, usize)>, PatternError> {
    let mut by_rack: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, endpoint) in endpoints.iter().enumerate() {
        let rack = racks.get(place).and_then(Option::as_deref);
        let Some(rack) = rack else {
            return Err(PatternError::NoRack(endpoint.host.clone()));
        };
        by_rack.entry(rack).or_default().push(place);
    }
    if by_rack.len() < 2 {
        return Err(PatternError::Hosts(
            "cross-rack needs hosts of 2 racks".to_owned(),
        ));
    }
    let racks: Vec<&Vec<usize>> = by_rack.values().collect();
    let mut pairs = Vec::new();
    for (at, one) in racks.iter().enumerate() {
        for other in racks.iter().skip(at + 1) {
            for (from, to) in one.iter().zip(other.iter()) {
                pairs.extend([(*from, *to), (*to, *from)]);
            }
            if pairs.len() > MAX_STREAMS {
                return Err(PatternError::TooMany(pairs.len()));
            }
        }
    }
    Ok(pairs)
}

/// The text of a plan: settings of `plan`, and these pairs.
pub fn written(plan: &TrafficPlan, endpoints: &[Endpoint], pairs: &[(usize, usize)]) -> String {
    let mut text = String::new();
    // A string of JSON without control characters is one of TOML.
    let _ = writeln!(text, "name = {}", serde_json::Value::from(plan.name.clone()));
    let _ = writeln!(text, "tool = \"{}\"", plan.tool.name());
    let _ = writeln!(text, "duration = \"{}s\"", plan.duration.as_secs());
    let _ = writeln!(text, "ports = \"{}-{}\"", plan.ports.first, plan.ports.last);
    if let Some(tclass) = plan.tclass {
        let _ = writeln!(text, "tclass = {tclass}");
    }
    let streams: Vec<StreamSize> = plan
        .pairs
        .first()
        .map_or_else(Vec::new, |pair| pair.streams.clone());
    let sizes: Vec<String> = streams
        .iter()
        .map(|stream| match stream.qps {
            1 => format!("{{ size = {} }}", stream.size),
            qps => format!("{{ size = {}, qps = {qps} }}", stream.size),
        })
        .collect();
    for (from, to) in pairs {
        let (Some(from), Some(to)) = (endpoints.get(*from), endpoints.get(*to)) else {
            continue;
        };
        let _ = write!(text, "\n[[pair]]\nfrom = \"{from}\"\nto = \"{to}\"\n");
        if !sizes.is_empty() {
            let _ = writeln!(text, "streams = [{}]", sizes.join(", "));
        }
    }
    text
}
