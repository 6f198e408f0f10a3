//! The inventory `fabric.toml`: hosts, switches and hypervisors, and how they are reached. All commands about more than one host share it.

mod host;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use roce_model::Expectation;
use serde::Deserialize;
use serde::de::{self, Deserializer};
use toml::Spanned;

pub use host::{HostRank, HostTarget};

/// Hosts, switches and hypervisors of one inventory, together.
const MAX_TARGETS: usize = 32_768;
/// Characters of the name of a hypervisor's adapter.
const MAX_ADAPTER_NAME: usize = 32;

/// A mistake in an inventory: where it is, and what was expected.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{line}: {text}")]
pub struct InventoryError {
    /// The line, from 1 on.
    pub line: usize,
    /// The mistake, in one line.
    pub text: String,
}

/// A whole inventory.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Inventory {
    /// Settings of the whole cluster.
    pub cluster: Cluster,
    /// Defaults of all connections by ssh.
    pub ssh: SshSettings,
    /// Hosts.
    #[serde(rename = "host")]
    pub hosts: Vec<HostTarget>,
    /// Switches.
    #[serde(rename = "switch")]
    pub switches: Vec<SwitchTarget>,
    /// Hypervisors.
    #[serde(rename = "hypervisor")]
    pub hypervisors: Vec<HypervisorTarget>,
}

/// Settings of the whole cluster.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// The lossless priority of RoCE data, 0 to 7.
    pub priority: u8,
    /// DSCP of RoCE data, 0 to 63.
    pub dscp: u8,
    /// DSCP of CNPs, 0 to 63.
    pub cnp_dscp: u8,
    /// Path MTU of its queue pairs, in bytes, if it is stated.
    pub mtu: Option<u32>,
    /// The part of this that was stated, to be compared with packets: defaults are left out.
    #[serde(skip)]
    pub stated: Expectation,
}

impl Cluster {
    /// Names of its settings that packets show.
    const STATED: [&str; 4] = ["dscp", "priority", "cnp_dscp", "mtu"];
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            name: String::new(),
            priority: 3,
            dscp: 26,
            cnp_dscp: 48,
            mtu: None,
            stated: Expectation::default(),
        }
    }
}

/// Settings of ssh beyond those of ssh_config.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SshSettings {
    /// Time in which a connection has to be made.
    #[serde(deserialize_with = "time")]
    pub connect_timeout: Duration,
    /// Time that a shared connection stays open behind the last command.
    #[serde(deserialize_with = "time")]
    pub control_persist: Duration,
    /// Longest time of one reading's command.
    #[serde(deserialize_with = "time")]
    pub timeout: Duration,
    /// The configuration file of ssh, in place of the user's own.
    pub config: Option<String>,
    /// The program, in place of `ssh`.
    pub command: Option<String>,
}

impl Default for SshSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            control_persist: Duration::from_mins(1),
            timeout: Duration::from_secs(10),
            config: None,
            command: None,
        }
    }
}

/// A switch.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchTarget {
    /// Its name in results.
    pub name: String,
    /// Its operating system.
    pub kind: SwitchKind,
    /// Its address. Default: the name.
    pub address: Option<String>,
    /// How it is read.
    #[serde(default)]
    pub transport: Transport,
    /// The user.
    pub user: Option<String>,
    /// Time between two readings.
    #[serde(default = "every", deserialize_with = "time")]
    pub every: Duration,
    /// The switch and its interface at the other end of each interface's cable, where it is a switch. LLDP shows it, too.
    #[serde(default)]
    pub switch_ports: BTreeMap<String, String>,
    /// Groups of interfaces over which it spreads flows. Without them they follow from the cables.
    #[serde(default)]
    pub equal_cost: Vec<Vec<String>>,
    /// NX-API: the address of the endpoint, `https://192.0.2.29/ins`.
    pub url: Option<String>,
    /// NX-API: the file that has the password; only its owner may read it.
    pub password_file: Option<String>,
    /// NX-API: the environment variable that has the password.
    pub password_env: Option<String>,
    /// NX-API: a file with the certificate of the authority that signed the switch's.
    pub ca: Option<String>,
    /// NX-API: SHA-256 of the switch's certificate, `sha256:` and hexadecimal digits.
    pub fingerprint: Option<String>,
    /// The folder with recorded answers, which are read in place of the device.
    #[serde(rename = "read", alias = "files")]
    pub files: Option<String>,
}

/// A hypervisor.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HypervisorTarget {
    /// Its name in results.
    pub name: String,
    /// Its kind.
    #[serde(default)]
    pub kind: HypervisorKind,
    /// Its address. Default: the name.
    pub address: Option<String>,
    /// How it is read: `ssh`, or its recorded answers.
    #[serde(default)]
    pub transport: Transport,
    /// The user.
    pub user: Option<String>,
    /// Time between two readings.
    #[serde(default = "every", deserialize_with = "time")]
    pub every: Duration,
    /// Its adapters; empty: all whose link is up.
    #[serde(default)]
    pub vmnics: Vec<String>,
    /// The switch and its interface that each adapter is connected to.
    #[serde(default)]
    pub switch_ports: BTreeMap<String, String>,
    /// The folder with recorded answers, which are read in place of the device.
    #[serde(rename = "read", alias = "files")]
    pub files: Option<String>,
}

/// Operating systems of switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SwitchKind {
    /// Cisco NX-OS.
    Nexus,
    /// SONiC.
    Sonic,
    /// Arista EOS.
    Eos,
    /// NVIDIA Cumulus Linux.
    Cumulus,
    /// Systems whose recordings alone are read: Junos, Dell OS10, documents of OpenConfig. An inventory has none.
    #[serde(skip)]
    Other,
}

impl SwitchKind {
    /// Its name in an inventory.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nexus => "nexus",
            Self::Sonic => "sonic",
            Self::Eos => "eos",
            Self::Cumulus => "cumulus",
            Self::Other => "other",
        }
    }
}

/// Kinds of hypervisors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HypervisorKind {
    /// VMware ESXi.
    #[default]
    Esxi,
}

/// How a device is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// The system's ssh.
    #[default]
    Ssh,
    /// NX-API over HTTPS.
    Nxapi,
    /// A folder with recorded answers.
    Files,
}

impl Transport {
    /// Its name in an inventory.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ssh => "ssh",
            Self::Nxapi => "nxapi",
            Self::Files => "files",
        }
    }
}

fn every() -> Duration {
    Duration::from_secs(15)
}

/// A time such as `500ms`, `5s` or `1h`; from 1 ms to a day.
fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    parse_time(&text).ok_or_else(|| {
        de::Error::custom(format!(
            "'{text}' is not a time such as \"500ms\", \"5s\" or \"1h\", from 1ms to 24h"
        ))
    })
}

/// A time such as `500ms`, `5s`, `10m` or `1h`; from 1 ms to a day.
pub fn parse_time(text: &str) -> Option<Duration> {
    let end = text.find(|character: char| !character.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    let number: u64 = number.parse().ok()?;
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    let ms = number.checked_mul(unit_ms)?;
    (1..=86_400_000).contains(&ms).then(|| Duration::from_millis(ms))
}

/// A message of the parser without the names of Rust's types.
pub fn plain(message: &str) -> String {
    let mut text = message.replace('\n', " ");
    for (of_rust, shown) in [
        ("expected u8", "expected a number from 0 to 255"),
        ("expected u32", "expected a whole number"),
        ("expected u64", "expected a whole number"),
        ("expected a sequence", "expected a list"),
        ("expected a map", "expected a table"),
        ("expected a boolean", "expected true or false"),
    ] {
        text = text.replace(of_rust, shown);
    }
    text
}

/// The parts of an inventory whose places are needed for errors.
#[derive(Deserialize)]
struct Places {
    #[serde(default)]
    host: Vec<Spanned<toml::Table>>,
    #[serde(default)]
    switch: Vec<Spanned<toml::Table>>,
    #[serde(default)]
    hypervisor: Vec<Spanned<toml::Table>>,
    cluster: Option<Spanned<toml::Table>>,
}

impl Inventory {
    /// The inventory in a text.
    ///
    /// # Errors
    /// If the text is not TOML, a key is unknown, a value has another form, two targets have one name, or a target names another that
    /// there is not.
    pub fn parse(text: &str) -> Result<Self, InventoryError> {
        let line_of = |offset: usize| {
            let before = text.get(..offset).unwrap_or(text);
            before.matches('\n').count() + 1
        };
        let wrong = |error: &toml::de::Error| InventoryError {
            line: error.span().map_or(1, |span| line_of(span.start)),
            text: plain(error.message()),
        };
        let mut inventory: Self = toml::from_str(text).map_err(|error| wrong(&error))?;
        inventory.choose_transports();
        let places: Places = toml::from_str(text).map_err(|error| wrong(&error))?;
        let place = |all: &[Spanned<toml::Table>], at: usize| {
            all.get(at).map_or(1, |table| line_of(table.span().start))
        };
        let at_host = |at: usize| place(&places.host, at);
        let at_switch = |at: usize| place(&places.switch, at);
        let at_hypervisor = |at: usize| place(&places.hypervisor, at);
        let at_cluster = places
            .cluster
            .as_ref()
            .map_or(1, |table| line_of(table.span().start));
        let at_cluster = |text| InventoryError {
            line: at_cluster,
            text,
        };
        inventory.check_size().map_err(at_cluster)?;
        if let Some(table) = &places.cluster {
            inventory.state_plan(table.get_ref()).map_err(at_cluster)?;
        }
        let mut names = BTreeSet::new();
        for (at, host) in inventory.hosts.iter().enumerate() {
            let fail = |text| InventoryError {
                line: at_host(at),
                text,
            };
            check_name(&host.name, &mut names).map_err(fail)?;
            check_address(host.address.as_deref(), host.user.as_deref()).map_err(fail)?;
            inventory.check_ports(&host.switch_ports).map_err(fail)?;
            host.check().map_err(fail)?;
            if let Some(name) = &host.hypervisor
                && !inventory.hypervisors.iter().any(|known| known.name == *name)
            {
                return Err(fail(format!(
                    "host '{}': there is no [[hypervisor]] '{name}'",
                    host.name
                )));
            }
        }
        for (at, switch) in inventory.switches.iter().enumerate() {
            let fail = |text| InventoryError {
                line: at_switch(at),
                text,
            };
            check_name(&switch.name, &mut names).map_err(fail)?;
            check_address(switch.address.as_deref(), switch.user.as_deref()).map_err(fail)?;
            switch.check().map_err(fail)?;
            inventory.check_ports(&switch.switch_ports).map_err(fail)?;
        }
        for (at, hypervisor) in inventory.hypervisors.iter().enumerate() {
            let fail = |text| InventoryError {
                line: at_hypervisor(at),
                text,
            };
            check_name(&hypervisor.name, &mut names).map_err(fail)?;
            check_address(hypervisor.address.as_deref(), hypervisor.user.as_deref()).map_err(fail)?;
            inventory.check_ports(&hypervisor.switch_ports).map_err(fail)?;
            hypervisor.check_vmnics().map_err(fail)?;
            match hypervisor.transport {
                Transport::Ssh => {}
                Transport::Files if hypervisor.files.is_some() => {}
                Transport::Files => {
                    return Err(fail(format!(
                        "hypervisor '{}': recorded answers need read = \"DIR\"",
                        hypervisor.name
                    )));
                }
                Transport::Nxapi => {
                    return Err(fail(format!(
                        "hypervisor '{}': its transport is \"ssh\"",
                        hypervisor.name
                    )));
                }
            }
        }
        Ok(inventory)
    }

    /// The folder of a device says how it is read.
    fn choose_transports(&mut self) {
        let switches = self.switches.iter_mut();
        for switch in switches.filter(|switch| switch.files.is_some()) {
            switch.transport = Transport::Files;
        }
        let hypervisors = self.hypervisors.iter_mut();
        for hypervisor in hypervisors.filter(|known| known.files.is_some()) {
            hypervisor.transport = Transport::Files;
        }
    }

    /// Notes what the table of the cluster itself says of the plan: values that nobody wrote are no plan.
    fn state_plan(&mut self, table: &toml::Table) -> Result<(), String> {
        for key in Cluster::STATED {
            if let Some(value) = table.get(key).and_then(toml::Value::as_integer) {
                let stated = self.cluster.stated.state(key, &value.to_string());
                stated.map_err(|text| format!("cluster: {text}"))?;
            }
        }
        Ok(())
    }

    fn check_size(&self) -> Result<(), String> {
        let count = self.hosts.len() + self.switches.len() + self.hypervisors.len();
        if count > MAX_TARGETS {
            return Err(format!("{count} targets are more than {MAX_TARGETS}"));
        }
        Ok(())
    }

    fn check_ports(&self, ports: &BTreeMap<String, String>) -> Result<(), String> {
        for (interface, port) in ports {
            let Some((switch, _)) = port.split_once(':').filter(|(_, port)| !port.is_empty()) else {
                return Err(format!(
                    "{interface}: '{port}' is not a switch and its interface such as \"leaf1:Ethernet1/1/1\""
                ));
            };
            if !self.switches.iter().any(|known| known.name == switch) {
                return Err(format!("{interface}: there is no [[switch]] '{switch}'"));
            }
        }
        Ok(())
    }

    /// The switch of this name.
    pub fn switch(&self, name: &str) -> Option<&SwitchTarget> {
        self.switches.iter().find(|switch| switch.name == name)
    }

    /// The hypervisor of this name.
    pub fn hypervisor(&self, name: &str) -> Option<&HypervisorTarget> {
        self.hypervisors.iter().find(|hypervisor| hypervisor.name == name)
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Option<&HostTarget> {
        self.hosts.iter().find(|host| host.name == name)
    }
}

impl SwitchTarget {
    /// The address.
    pub fn address(&self) -> &str {
        self.address.as_deref().unwrap_or(&self.name)
    }

    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        match self.transport {
            Transport::Ssh => Ok(()),
            Transport::Files if self.files.is_some() => Ok(()),
            Transport::Files => Err(format!("switch '{name}': recorded answers need read = \"DIR\"")),
            Transport::Nxapi if self.kind != SwitchKind::Nexus => {
                Err(format!("switch '{name}': NX-API is for kind = \"nexus\""))
            }
            Transport::Nxapi => {
                if !self.url.as_deref().is_some_and(|url| url.starts_with("https://")) {
                    return Err(format!(
                        "switch '{name}': transport \"nxapi\" needs url = \"https://.../ins\""
                    ));
                }
                if self.user.is_none() {
                    return Err(format!("switch '{name}': transport \"nxapi\" needs user"));
                }
                if self.password_file.is_some() == self.password_env.is_some() {
                    return Err(format!(
                        "switch '{name}': transport \"nxapi\" needs password_file or password_env, one of them"
                    ));
                }
                Ok(())
            }
        }
    }
}

impl HypervisorTarget {
    /// Checks the adapters: their names become words of a shell script.
    fn check_vmnics(&self) -> Result<(), String> {
        let is_odd = |name: &&String| !is_adapter_name(name);
        self.vmnics.iter().find(is_odd).map_or(Ok(()), |name| {
            Err(format!(
                "hypervisor '{}': '{name}' is no adapter such as \"vmnic5\"",
                self.name
            ))
        })
    }

    /// The address.
    pub fn address(&self) -> &str {
        self.address.as_deref().unwrap_or(&self.name)
    }
}

impl fmt::Display for SwitchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Checks a name: it names files, labels and folders on other hosts.
fn check_name<'a>(name: &'a str, names: &mut BTreeSet<&'a str>) -> Result<(), String> {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '_');
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) || name.starts_with(['-', '.']) {
        return Err(format!(
            "'{name}' is no name: letters, digits, '.', '-' and '_', at most 64, the first a letter or digit"
        ));
    }
    if names.insert(name) {
        Ok(())
    } else {
        Err(format!("two targets are called '{name}'"))
    }
}

/// True for names of adapters such as `vmnic5`: letters, digits, `.`, `-` and `_`, the first a letter. Others are no word of a script.
pub(crate) fn is_adapter_name(name: &str) -> bool {
    let kept = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    name.len() <= MAX_ADAPTER_NAME
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(kept)
}

/// Checks what becomes an argument of ssh.
fn check_address(address: Option<&str>, user: Option<&str>) -> Result<(), String> {
    for text in address.into_iter().chain(user) {
        let is_odd = |character: char| character.is_whitespace() || character.is_control();
        if text.is_empty() || text.starts_with('-') || text.contains(is_odd) {
            return Err(format!("'{text}' is no address or user"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
