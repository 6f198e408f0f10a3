//! A plan of traffic: a TOML file that names a tool, pairs of hosts, and the streams between them.

use std::fmt;
use std::time::Duration;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use roce_hosts::hca::is_plain_name;
use roce_switches::inventory::{parse_time, plain};

/// Streams of one plan, both directions counted.
pub const MAX_STREAMS: usize = 1_024;
/// perftest's largest message (its manual page: 2^23 bytes).
const MAX_SIZE_BYTES: u64 = 1 << 23;
/// iperf3's largest buffer (its iperf.h, `MAX_BLOCKSIZE`).
const MAX_IPERF_BYTES: u64 = 1 << 20;
/// Queue pairs of a stream of perftest.
const MAX_QUEUE_PAIRS: u32 = 1_024;
/// Connections of a stream of iperf3 (its iperf.h, `MAX_STREAMS`).
const MAX_CONNECTIONS: u32 = 128;
/// Further options of a plan.
const MAX_OPTIONS: usize = 32;
/// Bytes of a plan.
const MAX_PLAN_BYTES: usize = 1 << 20;

/// A mistake in a plan: where it is, and what was expected.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{line}: {text}")]
pub struct PlanError {
    /// The line, from 1 on.
    pub line: usize,
    /// The mistake, in one line.
    pub text: String,
}

/// A plan.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficPlan {
    /// Its name in results.
    #[serde(default)]
    pub name: String,
    /// The program that makes the traffic.
    pub tool: Tool,
    /// How long each stream sends.
    #[serde(default = "duration", deserialize_with = "time")]
    pub duration: Duration,
    /// Time beyond the duration after which a host ends a stream by itself.
    #[serde(default = "grace", deserialize_with = "time")]
    pub grace: Duration,
    /// TCP ports on which servers wait for their clients.
    #[serde(default)]
    pub ports: PortRange,
    /// IP traffic class of the packets: DSCP in the upper six bits, ECN in the lower two.
    pub tclass: Option<u8>,
    /// The unit of perftest's rates.
    #[serde(default)]
    pub report: Report,
    /// Further options of the tool: of both sides of perftest, of iperf3's client.
    #[serde(default)]
    pub options: Vec<String>,
    /// Pairs of hosts.
    #[serde(rename = "pair")]
    pub pairs: Vec<Pair>,
}

fn duration() -> Duration {
    Duration::from_mins(1)
}

fn grace() -> Duration {
    Duration::from_secs(15)
}

/// A client, a server, and the streams between them.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// The client.
    pub from: Endpoint,
    /// The server.
    pub to: Endpoint,
    /// True if the streams run the other way round, too.
    #[serde(default)]
    pub both: bool,
    /// The streams.
    #[serde(default = "one_stream")]
    pub streams: Vec<StreamSize>,
}

fn one_stream() -> Vec<StreamSize> {
    vec![StreamSize { size: 65_536, qps: 1 }]
}

/// Size of a stream's messages, and its queue pairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamSize {
    /// Bytes of a message; iperf3: of a buffer.
    pub size: u64,
    /// Queue pairs; iperf3: connections.
    #[serde(default = "one")]
    pub qps: u32,
}

fn one() -> u32 {
    1
}

/// One end of a pair: `host:device`, or a table with more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// The host's name in the inventory.
    pub host: String,
    /// The RDMA device; iperf3: the network interface, which may be absent.
    pub device: Option<String>,
    /// The device's port.
    pub port: u32,
    /// The index of the GID; absent: the one that doctor recommends.
    pub gid: Option<u32>,
    /// The address that clients connect to; absent: that of the GID, else the host's own.
    pub address: Option<String>,
}

/// An endpoint as a table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EndpointTable {
    at: String,
    gid: Option<u32>,
    address: Option<String>,
}

impl Endpoint {
    /// An endpoint in a text: `host`, `host:device` or `host:device:port`.
    ///
    /// # Errors
    /// If a part is no name or number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no endpoint such as \"gpu1:mlx5_0\" or \"gpu1:mlx5_0:1\"");
        let mut parts = text.split(':');
        let host = parts.next().unwrap_or_default();
        let device = parts.next();
        let port = parts.next().map(str::parse).transpose().map_err(|_| wrong())?;
        let is_wrong = parts.next().is_some()
            || !is_name(host)
            || !device.is_none_or(is_name)
            || port.is_some_and(|port: u32| port == 0 || port > 255);
        if is_wrong {
            return Err(wrong());
        }
        Ok(Self {
            host: host.to_owned(),
            device: device.map(str::to_owned),
            port: port.unwrap_or(1),
            gid: None,
            address: None,
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)?;
        if let Some(device) = &self.device {
            write!(f, ":{device}")?;
        }
        if self.port != 1 {
            write!(f, ":{}", self.port)?;
        }
        Ok(())
    }
}

/// True of the name of a host or device: it becomes an argument.
fn is_name(name: &str) -> bool {
    is_plain_name(name) && !name.starts_with(['-', '.'])
}

impl<'de> Deserialize<'de> for Endpoint {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Endpoint;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"host:device\" or { at = \"host:device\", gid = 3, address = \"192.0.2.1\" }")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Endpoint, E> {
                Endpoint::parse(text).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Endpoint, A::Error> {
                let table = EndpointTable::deserialize(MapAccessDeserializer::new(map))?;
                let mut endpoint = Endpoint::parse(&table.at).map_err(de::Error::custom)?;
                if let Some(address) = &table.address {
                    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-:%".contains(&byte);
                    if address.is_empty() || address.starts_with('-') || !address.bytes().all(is_plain) {
                        return Err(de::Error::custom(format!("'{address}' is no address")));
                    }
                }
                if table.gid.is_some_and(|gid| gid > 1_023) {
                    return Err(de::Error::custom("gid is an index from 0 to 1023"));
                }
                endpoint.gid = table.gid;
                endpoint.address = table.address;
                Ok(endpoint)
            }
        }
        from.deserialize_any(Either)
    }
}

/// Programs that make traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// perftest: bandwidth of RDMA WRITE.
    IbWriteBw,
    /// perftest: bandwidth of SEND.
    IbSendBw,
    /// perftest: bandwidth of RDMA READ.
    IbReadBw,
    /// perftest: latency of RDMA WRITE.
    IbWriteLat,
    /// perftest: latency of SEND.
    IbSendLat,
    /// perftest: latency of RDMA READ.
    IbReadLat,
    /// iperf3: TCP.
    Iperf3,
}

impl Tool {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::IbWriteBw,
        Self::IbSendBw,
        Self::IbReadBw,
        Self::IbWriteLat,
        Self::IbSendLat,
        Self::IbReadLat,
        Self::Iperf3,
    ];

    /// The program's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::IbWriteBw => "ib_write_bw",
            Self::IbSendBw => "ib_send_bw",
            Self::IbReadBw => "ib_read_bw",
            Self::IbWriteLat => "ib_write_lat",
            Self::IbSendLat => "ib_send_lat",
            Self::IbReadLat => "ib_read_lat",
            Self::Iperf3 => "iperf3",
        }
    }

    /// The tool of a program's name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// True if it measures bandwidth: then a stream takes as much of the link as it can get.
    pub fn is_bandwidth(self) -> bool {
        !matches!(self, Self::IbWriteLat | Self::IbSendLat | Self::IbReadLat)
    }

    /// True of the programs of perftest.
    pub fn is_rdma(self) -> bool {
        self != Self::Iperf3
    }

    /// True if data flows from the server to the client.
    pub fn is_read(self) -> bool {
        matches!(self, Self::IbReadBw | Self::IbReadLat)
    }
}

/// The unit of perftest's rates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Report {
    /// 10^9 bits a second.
    #[default]
    Gbits,
    /// 2^20 bytes a second, which perftest calls `MB/sec` or `MiB/sec`.
    Mib,
}

/// TCP ports, from the first to the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortRange {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
}

impl Default for PortRange {
    /// From perftest's own port on.
    fn default() -> Self {
        Self {
            first: 18_515,
            last: 18_600,
        }
    }
}

impl PortRange {
    /// `18515-18600`; ports from 1024 on.
    pub fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-')?;
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (1_024 <= first && first <= last).then_some(Self { first, last })
    }

    /// How many they are.
    pub fn count(self) -> usize {
        usize::from(self.last.saturating_sub(self.first)) + 1
    }

    /// The port at a place; `None` behind the last.
    pub fn port(self, place: usize) -> Option<u16> {
        let place = u16::try_from(place).ok()?;
        self.first.checked_add(place).filter(|port| *port <= self.last)
    }
}

impl<'de> Deserialize<'de> for PortRange {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).ok_or_else(|| {
            de::Error::custom(format!(
                "'{text}' is no range of ports such as \"18515-18600\", from 1024 on"
            ))
        })
    }
}

/// A time of whole seconds: perftest and iperf3 take no others.
fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    parse_time(&text)
        .filter(|time| time.subsec_nanos() == 0 && time.as_secs() > 0)
        .ok_or_else(|| {
            de::Error::custom(format!(
                "'{text}' is not a time of whole seconds such as \"60s\" or \"10m\", at most 24h"
            ))
        })
}

/// The parts of a plan whose places are needed for errors.
#[derive(Deserialize)]
struct Places {
    #[serde(default)]
    pair: Vec<Spanned<toml::Table>>,
}

impl TrafficPlan {
    /// The plan in a text.
    ///
    /// # Errors
    /// If the text is not TOML, a key is unknown, a value has another form, or a stream is one that the tool cannot make.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let text = text.trim_start_matches('\u{feff}');
        if text.len() > MAX_PLAN_BYTES {
            return Err(PlanError {
                line: 1,
                text: format!("a plan has at most {MAX_PLAN_BYTES} bytes"),
            });
        }
        let line_of = |offset: usize| {
            let before = text.get(..offset).unwrap_or(text);
            before.matches('\n').count() + 1
        };
        let wrong = |error: &toml::de::Error| PlanError {
            line: error.span().map_or(1, |span| line_of(span.start)),
            text: plain(error.message()),
        };
        let plan: Self = toml::from_str(text).map_err(|error| wrong(&error))?;
        let places: Places = toml::from_str(text).map_err(|error| wrong(&error))?;
        let mut count = 0_usize;
        for (at, pair) in plan.pairs.iter().enumerate() {
            let fail = |text| PlanError {
                line: places.pair.get(at).map_or(1, |table| line_of(table.span().start)),
                text,
            };
            pair.check(plan.tool).map_err(fail)?;
            count = count.saturating_add(pair.streams.len() * if pair.both { 2 } else { 1 });
            if count > MAX_STREAMS {
                return Err(fail(format!("the plan has more than {MAX_STREAMS} streams")));
            }
        }
        let whole = |text: &str| PlanError {
            line: 1,
            text: text.to_owned(),
        };
        if count == 0 {
            return Err(whole("the plan has no [[pair]] with a stream"));
        }
        plan.check_options().map_err(|text| whole(&text))?;
        if plan.name.len() > 64 || plan.name.contains(char::is_control) {
            return Err(whole("name: at most 64 characters, in one line"));
        }
        Ok(plan)
    }
}

impl TrafficPlan {
    /// Checks that no option changes how long a stream runs, on which port, or that it ends. Programs take the beginning of a long
    /// option's name for the option.
    fn check_options(&self) -> Result<(), String> {
        let own: &[&str] = match self.tool {
            Tool::Iperf3 => &[
                "-D", "--da", "-t", "--ti", "-p", "--po", "-s", "--se", "-c", "--cl",
            ],
            _ => &["--run", "-D", "--du", "-p", "--po"],
        };
        if self.options.len() > MAX_OPTIONS {
            return Err(format!("options: at most {MAX_OPTIONS}"));
        }
        let is_short = |name: &str| !name.starts_with("--");
        for option in &self.options {
            let is_own =
                |name: &&&str| option.starts_with(**name) || is_short(name) && is_bundle(option, name);
            if let Some(name) = own.iter().find(is_own) {
                return Err(format!(
                    "options: '{option}' is not allowed: the plan itself sets {name}"
                ));
            }
            if option.contains(char::is_control) || option.len() > 256 {
                return Err("options: a word has at most 256 characters, in one line".to_owned());
            }
        }
        Ok(())
    }
}

/// True if several short options in one word have this one behind others: `-FD`.
fn is_bundle(option: &str, name: &str) -> bool {
    let letter = name.trim_start_matches('-');
    option.starts_with('-') && !option.starts_with("--") && option.contains(letter)
}

impl Pair {
    /// Checks what the tool can make of the pair.
    fn check(&self, tool: Tool) -> Result<(), String> {
        let name = tool.name();
        for endpoint in [&self.from, &self.to] {
            if tool.is_rdma() && endpoint.device.is_none() {
                return Err(format!(
                    "'{endpoint}': {name} needs the RDMA device, such as \"{}:mlx5_0\"",
                    endpoint.host
                ));
            }
        }
        let (max_size, max_qps) = match tool {
            Tool::Iperf3 => (MAX_IPERF_BYTES, MAX_CONNECTIONS),
            _ if tool.is_bandwidth() => (MAX_SIZE_BYTES, MAX_QUEUE_PAIRS),
            _ => (MAX_SIZE_BYTES, 1),
        };
        for stream in &self.streams {
            if stream.size == 0 || stream.size > max_size {
                return Err(format!(
                    "size {}: {name} takes 1 to {max_size} bytes",
                    stream.size
                ));
            }
            if stream.qps == 0 || stream.qps > max_qps {
                return Err(format!("qps {}: {name} takes 1 to {max_qps}", stream.qps));
            }
        }
        Ok(())
    }
}
