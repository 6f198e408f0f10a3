//! Answers of a host: programs, ports, devices, addresses, GIDs, its clock.

use std::collections::BTreeMap;
use std::net::IpAddr;

use roce_jobs::traffic::Endpoint;
use serde_json::Value;

/// Devices, addresses, interfaces and other runs of an answer that are kept, each.
const MAX_FACTS: usize = 1_024;

/// Facts about a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostFacts {
    /// The run's folder there.
    pub folder: String,
    /// Runs that go on there.
    pub others: Vec<String>,
    /// Programs that are not there.
    pub missing: Vec<String>,
    /// Ports on which another program listens.
    pub busy: Vec<u16>,
    /// Processes of the tool that are not the run's.
    pub foreign: u64,
    /// Ports of RDMA devices, by device and number.
    pub ports: BTreeMap<(String, u32), PortFacts>,
    /// Addresses of interfaces.
    pub addresses: BTreeMap<String, Vec<IpAddr>>,
    /// Speeds of interfaces in bit/s.
    pub speeds: BTreeMap<String, u64>,
    /// True if `roce-analyze` is there.
    pub has_analyze: bool,
    /// The host's clock minus this one's, in nanoseconds.
    pub offset_ns: i64,
    /// The interfaces by which addresses are reached.
    pub routes: BTreeMap<String, String>,
}

/// A port of an RDMA device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortFacts {
    /// True if its link is up.
    pub is_active: bool,
    /// Its network interface.
    pub interface: Option<String>,
    /// Its speed in bit/s.
    pub rate_bps: Option<u64>,
    /// The index of the GID that doctor recommends.
    pub gid: Option<u32>,
    /// The address of that GID.
    pub address: Option<IpAddr>,
}

impl HostFacts {
    /// The facts in an answer; lines that are not understood are left out.
    pub fn parse(text: &str) -> Self {
        let mut facts = Self::default();
        for line in text.lines() {
            if let Some((key, value)) = line.split_once('=') {
                facts.note(key, value.trim());
            }
        }
        facts
    }

    fn note(&mut self, key: &str, value: &str) {
        let mut words = value.split_whitespace();
        match key {
            "folder" => value.clone_into(&mut self.folder),
            "other" if self.others.len() < MAX_FACTS => self.others.push(value.to_owned()),
            "missing" if self.missing.len() < MAX_FACTS => self.missing.push(value.to_owned()),
            "busy" if self.busy.len() < MAX_FACTS => self.busy.extend(value.parse::<u16>()),
            "foreign" => self.foreign = value.parse().unwrap_or(0),
            "analyze" => self.has_analyze = true,
            "port" if self.ports.len() < MAX_FACTS => {
                if let (Some(device), Some(number)) = (words.next(), next_number(&mut words)) {
                    // ib_port_state: 4 is active (include/rdma/ib_verbs.h).
                    let is_active = words.next() == Some("4");
                    let interface = words.next().filter(|name| *name != "-").map(str::to_owned);
                    let rate: Vec<&str> = words.collect();
                    let port = PortFacts {
                        is_active,
                        interface,
                        rate_bps: roce_hosts::port_rate_bps(&rate.join(" ")),
                        ..PortFacts::default()
                    };
                    self.ports.insert((device.to_owned(), number), port);
                }
            }
            "speed" if self.speeds.len() < MAX_FACTS => {
                if let (Some(name), Some(megabits)) = (words.next(), next_number::<u64>(&mut words)) {
                    self.speeds
                        .insert(name.to_owned(), megabits.saturating_mul(1_000_000));
                }
            }
            "address" if self.addresses.len() < MAX_FACTS => {
                if let (Some(name), Some(address)) = (words.next(), words.next())
                    && let Some(address) = address.split('/').next().and_then(|text| text.parse().ok())
                {
                    let all = self.addresses.entry(name.to_owned()).or_default();
                    if all.len() < MAX_FACTS {
                        all.push(address);
                    }
                }
            }
            "route" if self.routes.len() < MAX_FACTS => {
                if let (Some(address), Some(interface)) = (words.next(), words.next()) {
                    self.routes.insert(address.to_owned(), interface.to_owned());
                }
            }
            "hca" => self.note_hca(value),
            _ => {}
        }
    }

    /// The document of `roce-analyze host hca --print json`.
    fn note_hca(&mut self, text: &str) {
        let Ok(document) = serde_json::from_str::<Value>(text) else {
            return;
        };
        for port in document["ports"].as_array().into_iter().flatten() {
            let (Some(device), Some(number)) = (port["device"].as_str(), number_of(&port["port"])) else {
                continue;
            };
            if let Some(known) = self.ports.get_mut(&(device.to_owned(), number)) {
                known.gid = number_of(&port["gid_index"]);
                known.address = port["address"].as_str().and_then(|text| text.parse().ok());
            }
        }
    }

    /// The port of an endpoint.
    pub fn port(&self, endpoint: &Endpoint) -> Option<&PortFacts> {
        let device = endpoint.device.clone()?;
        self.ports.get(&(device, endpoint.port))
    }

    /// The index of the GID of an endpoint: the plan's, else the recommended one.
    pub fn gid(&self, endpoint: &Endpoint) -> Option<u32> {
        endpoint.gid.or_else(|| self.port(endpoint)?.gid)
    }

    /// The interface of an endpoint.
    pub fn interface<'a>(&'a self, endpoint: &'a Endpoint) -> Option<&'a str> {
        match self.port(endpoint) {
            Some(port) => port.interface.as_deref(),
            None => endpoint.device.as_deref(),
        }
    }

    /// The address at which clients reach an endpoint: the plan's, that of the GID, or the first one of its interface.
    pub fn address(&self, endpoint: &Endpoint) -> Option<String> {
        if let Some(address) = &endpoint.address {
            return Some(address.clone());
        }
        let of_gid = self.port(endpoint).and_then(|port| port.address);
        let of_interface = || {
            let all = self.addresses.get(self.interface(endpoint)?)?;
            all.iter()
                .find(|address| address.is_ipv4())
                .or_else(|| all.first())
                .copied()
        };
        of_gid.or_else(of_interface).map(|address| address.to_string())
    }

    /// The speed of an endpoint's link in bit/s.
    pub fn speed(&self, endpoint: &Endpoint) -> Option<u64> {
        let of_port = self.port(endpoint).and_then(|port| port.rate_bps);
        of_port.or_else(|| self.speeds.get(self.interface(endpoint)?).copied())
    }

    /// Adds a line about a route; other lines are left out.
    pub(super) fn note_route(&mut self, line: &str) {
        if let Some(("route", value)) = line.split_once('=') {
            self.note("route", value.trim());
        }
    }
}

fn next_number<'a, T: std::str::FromStr>(words: &mut impl Iterator<Item = &'a str>) -> Option<T> {
    words.next()?.parse().ok()
}

fn number_of(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok())
}
