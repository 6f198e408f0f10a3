//! The hosts of an inventory.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A host.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostTarget {
    /// Its name in results.
    pub name: String,
    /// Its address for ssh; `local` is this machine. Default: the name.
    pub address: Option<String>,
    /// The user for ssh.
    pub user: Option<String>,
    /// The hypervisor that it runs on.
    pub hypervisor: Option<String>,
    /// Its network interfaces; empty: those of its RDMA devices.
    #[serde(default)]
    pub interfaces: Vec<String>,
    /// The switch and its interface (`leaf1:Ethernet1/1/1`) that each network interface is connected to.
    #[serde(default)]
    pub switch_ports: BTreeMap<String, String>,
    /// The IP address in captures of each network interface.
    #[serde(default)]
    pub addresses: BTreeMap<String, String>,
    /// Words before each command there, such as `sudo -n` or `ip netns exec h1`.
    pub prefix: Option<String>,
    /// The rack that it is in.
    pub rack: Option<String>,
    /// The job that it works for.
    pub job: Option<String>,
    /// Its rank in the job, or that of each network interface.
    pub rank: Option<HostRank>,
    /// Its captures: paths of files or folders below the folder that is mapped. Default: those of its name.
    #[serde(default)]
    pub captures: Vec<String>,
}

/// Rank of a host in its job.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged, expecting = "a rank is a whole number, or one for each interface")]
pub enum HostRank {
    /// One for the whole host.
    Host(u32),
    /// One for each network interface.
    Interfaces(BTreeMap<String, u32>),
}

impl HostTarget {
    /// The address for ssh; `local` is this machine.
    pub fn address(&self) -> &str {
        self.address.as_deref().unwrap_or(&self.name)
    }

    /// A host that only has a name, which is its address.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            address: None,
            user: None,
            hypervisor: None,
            interfaces: Vec::new(),
            switch_ports: BTreeMap::new(),
            addresses: BTreeMap::new(),
            prefix: None,
            rack: None,
            job: None,
            rank: None,
            captures: Vec::new(),
        }
    }

    /// The rank of a network interface.
    pub fn rank_of(&self, interface: &str) -> Option<u32> {
        match &self.rank {
            Some(HostRank::Host(rank)) => Some(*rank),
            Some(HostRank::Interfaces(ranks)) => ranks.get(interface).copied(),
            None => None,
        }
    }

    /// Checks that the addresses of interfaces are IP addresses, and that ranks are those of interfaces with an address.
    pub(super) fn check(&self) -> Result<(), String> {
        for (interface, address) in &self.addresses {
            if address.parse::<std::net::IpAddr>().is_err() {
                return Err(format!("{interface}: '{address}' is not an IP address"));
            }
        }
        if let Some(HostRank::Interfaces(ranks)) = &self.rank
            && let Some(interface) = ranks
                .keys()
                .find(|interface| !self.addresses.contains_key(*interface))
        {
            return Err(format!(
                "host '{}': the rank of {interface} needs its address in addresses",
                self.name
            ));
        }
        Ok(())
    }
}
