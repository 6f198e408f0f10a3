//! The streams of a plan: one client and one server each, and the server's port.

use std::collections::BTreeMap;

use super::plan::{Endpoint, TrafficPlan};

/// A side of a stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    /// Waits for the client.
    Server,
    /// Connects to the server.
    Client,
}

impl Role {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}

/// A stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stream {
    /// Its number in the plan, from 1 on.
    pub number: usize,
    /// The client's end.
    pub client: Endpoint,
    /// The server's end.
    pub server: Endpoint,
    /// The server's TCP port; `None`: the plan has too few.
    pub port: Option<u16>,
    /// Bytes of a message.
    pub size: u64,
    /// Queue pairs or connections.
    pub qps: u32,
}

impl Stream {
    /// The end of a role.
    pub fn end(&self, role: Role) -> &Endpoint {
        match role {
            Role::Server => &self.server,
            Role::Client => &self.client,
        }
    }
}

/// The streams of a plan. Each server takes one client, so that each has a port of its own: in the plan where there are enough, because
/// two hosts can share one network, else on its host.
pub fn streams(plan: &TrafficPlan) -> Vec<Stream> {
    let ways = |both: bool| if both { 2 } else { 1 };
    let count: usize = plan
        .pairs
        .iter()
        .map(|pair| pair.streams.len() * ways(pair.both))
        .sum();
    let is_shared = count <= plan.ports.count();
    let mut all = Vec::new();
    let mut used: BTreeMap<&str, usize> = BTreeMap::new();
    for pair in &plan.pairs {
        let mut directions = vec![(&pair.from, &pair.to)];
        if pair.both {
            directions.push((&pair.to, &pair.from));
        }
        for (client, server) in directions {
            for stream in &pair.streams {
                let place = used.entry(if is_shared { "" } else { &server.host }).or_default();
                all.push(Stream {
                    number: all.len() + 1,
                    client: client.clone(),
                    server: server.clone(),
                    port: plan.ports.port(*place),
                    size: stream.size,
                    qps: stream.qps,
                });
                *place += 1;
            }
        }
    }
    all
}
