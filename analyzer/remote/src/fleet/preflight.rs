//! Questions to a host before a capture: its system, tools, rights, interfaces, free disk and clock, by one script.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::fields::{field, is_plain, is_plain_path, text};
use super::shell::{COMMON, head};
use crate::clock::{self, Offset};
use crate::machine::{Machine, RemoteError};

/// Interfaces, programs and ports of RDMA devices, each.
const MAX_ENTRIES: usize = 1_024;
/// Bit of CAP_NET_RAW in a set of capabilities (Linux include/uapi/linux/capability.h).
const NET_RAW: u32 = 13;

/// Answers of a host.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// Release of the kernel.
    pub release: Option<String>,
    /// Architecture, as `uname -m` names it.
    pub machine: Option<String>,
    /// The name that the host gives itself.
    pub hostname: Option<String>,
    /// Identifier of the kernel's boot: two hosts with one are the same machine.
    pub boot: Option<String>,
    /// Number of the network namespace.
    pub net: Option<String>,
    /// The user's number.
    pub uid: Option<u32>,
    /// True if commands there may capture packets.
    pub has_raw_sockets: bool,
    /// Tools that are there.
    pub tools: BTreeSet<String>,
    /// Programs called roce-analyze.
    pub programs: Vec<Program>,
    /// tcpdump, and whether its file has the right to capture.
    pub tcpdump: Option<bool>,
    /// The folder for captures.
    pub base: Option<String>,
    /// Why there is no such folder.
    pub problem: Option<String>,
    /// Free bytes in it.
    pub free_bytes: Option<u64>,
    /// Network interfaces.
    pub interfaces: Vec<Interface>,
    /// Ports of RDMA devices and their network interfaces.
    pub rdma: Vec<RdmaPort>,
    /// State of its clock's synchronization.
    pub sync: Option<String>,
    /// The capture that is running there.
    pub busy: Option<String>,
    /// The whole answer came.
    pub is_complete: bool,
}

/// A roce-analyze on a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Its path.
    pub path: String,
    /// Its version.
    pub version: String,
    /// It captures, and ends with its standard input.
    pub is_able: bool,
    /// Its file has the right to capture.
    pub has_rights: bool,
}

/// A network interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its state: `up`, `down`, `unknown`.
    pub state: String,
    /// Its speed in Mbit/s.
    pub speed_mbps: Option<u64>,
}

/// A port of an RDMA device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RdmaPort {
    /// The device.
    pub device: String,
    /// The port's number.
    pub port: u32,
    /// Its network interface.
    pub interface: String,
}

/// Means of capturing on a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum How {
    /// `roce-analyze live`.
    Live {
        /// Its path.
        program: String,
    },
    /// tcpdump.
    Tcpdump,
}

impl How {
    /// Its name in results.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Live { .. } => "live",
            Self::Tcpdump => "tcpdump",
        }
    }
}

/// Which means may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum By {
    /// The first that works.
    #[default]
    Any,
    /// `roce-analyze live` alone.
    Live,
    /// tcpdump alone.
    Tcpdump,
}

/// Why a host cannot capture.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unable {
    /// There is no program.
    #[error(
        "neither roce-analyze {version} nor tcpdump is there{found}\nhint: --push copies this program there"
    )]
    NoProgram {
        /// The version that is wanted.
        version: String,
        /// Other versions that are there.
        found: String,
    },
    /// There is a program, and no right.
    #[error("{program} has no right to capture (CAP_NET_RAW){hint}")]
    NoRight {
        /// The program.
        program: String,
        /// A way to get it.
        hint: &'static str,
    },
}

impl Facts {
    /// Takes one line of the answer. Lines that are no fields are skipped: a login shell may greet.
    pub fn take(&mut self, line: &str) {
        let Some((key, value)) = field(line) else { return };
        match key {
            "release" => self.release = text(value),
            "machine" => self.machine = text(value),
            "hostname" => self.hostname = text(value),
            "boot" => self.boot = text(value),
            "net" => {
                let number = value
                    .strip_prefix("net:[")
                    .and_then(|rest| rest.strip_suffix(']'));
                let is_number = |number: &&str| {
                    (1..=20).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
                };
                self.net = number.filter(is_number).map(str::to_owned);
            }
            "uid" => self.uid = value.parse().ok(),
            "rights" => {
                let set = u64::from_str_radix(value, 16).unwrap_or(0);
                self.has_raw_sockets = set >> NET_RAW & 1 == 1;
            }
            "tool" if self.tools.len() < MAX_ENTRIES => drop(self.tools.insert(value.to_owned())),
            "program" if self.programs.len() < MAX_ENTRIES => self.programs.extend(program(value)),
            "tcpdump" => self.tcpdump = Some(value.starts_with('1')),
            "base" => self.base = text(value).filter(|path| is_plain_path(path)),
            "problem" => self.problem = text(value),
            "free" => self.free_bytes = value.parse::<u64>().ok().and_then(|kib| kib.checked_mul(1_024)),
            "interface" if self.interfaces.len() < MAX_ENTRIES => self.interfaces.extend(interface(value)),
            "rdma" if self.rdma.len() < MAX_ENTRIES => self.rdma.extend(rdma(value)),
            "sync" => self.sync = text(value),
            "busy" => self.busy = text(value),
            "end" => self.is_complete = true,
            _ => {}
        }
    }

    /// The interfaces to capture from: those that are named, RDMA devices among them, else those of RDMA devices that are up.
    ///
    /// # Errors
    /// One that is named is missing, or no RDMA device has one: the reason.
    pub fn chosen(&self, named: &[String]) -> Result<Vec<String>, String> {
        let is_known = |name: &String| self.interface(name).is_some() || self.is_rdma(name);
        if let Some(missing) = named.iter().find(|name| !is_known(name)) {
            let all: Vec<&str> = self.interfaces.iter().map(|known| &*known.name).collect();
            return Err(format!(
                "there is no interface '{missing}'\nhint: there are {}",
                all.join(", ")
            ));
        }
        if !named.is_empty() {
            return Ok(named.to_vec());
        }
        let mut found: Vec<String> = Vec::new();
        for port in &self.rdma {
            let is_up = self
                .interface(&port.interface)
                .is_some_and(|known| known.state != "down");
            if is_up && !found.contains(&port.interface) {
                found.push(port.interface.clone());
            }
        }
        if found.is_empty() {
            return Err(
                "no RDMA device has a network interface that is up\nhint: name one: --interface IF, or interfaces = [\"IF\"] in the inventory"
                    .to_owned(),
            );
        }
        Ok(found)
    }

    /// True of an RDMA device, with or without its port: a libpcap with RDMA support captures from it.
    fn is_rdma(&self, name: &str) -> bool {
        self.rdma
            .iter()
            .any(|port| port.device == name || format!("{}:{}", port.device, port.port) == name)
    }

    fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces.iter().find(|known| known.name == name)
    }

    /// Speed of these interfaces together, in Mbit/s; `None`: one is not known.
    pub fn speed_mbps(&self, names: &[String]) -> Option<u64> {
        let speeds = names.iter().map(|name| self.interface(name)?.speed_mbps);
        speeds.sum()
    }

    /// The first way to capture that works.
    ///
    /// # Errors
    /// None does.
    pub fn choose(&self, version: &str, by: By) -> Result<How, Unable> {
        let hint = if self.tools.contains("sudo") {
            "\nhint: prefix = \"sudo -n\" for this host in the inventory"
        } else {
            "\nhint: a user with that right, or `setcap cap_net_raw+ep` for the program"
        };
        let mut refused = None;
        if by != By::Tcpdump {
            let mut same = self
                .programs
                .iter()
                .filter(|found| found.version == version && found.is_able);
            if let Some(found) = same.find(|found| found.has_rights || self.has_raw_sockets) {
                return Ok(How::Live {
                    program: found.path.clone(),
                });
            }
            if self
                .programs
                .iter()
                .any(|found| found.version == version && found.is_able)
            {
                refused = Some("roce-analyze");
            }
        }
        if by != By::Live
            && let Some(has_rights) = self.tcpdump
        {
            if (has_rights || self.has_raw_sockets) && self.tools.contains("timeout") {
                return Ok(How::Tcpdump);
            }
            refused = refused.or(Some("tcpdump"));
        }
        Err(match refused {
            Some(program) => Unable::NoRight {
                program: program.to_owned(),
                hint,
            },
            None => Unable::NoProgram {
                version: version.to_owned(),
                found: self.others(),
            },
        })
    }

    fn others(&self) -> String {
        let versions: Vec<&str> = self.programs.iter().map(|found| &*found.version).collect();
        if versions.is_empty() {
            String::new()
        } else {
            format!(" (roce-analyze {} is)", versions.join(", "))
        }
    }
}

fn program(value: &str) -> Option<Program> {
    let mut words = value.splitn(4, ' ');
    let (able, rights, version, path) = (words.next()?, words.next()?, words.next()?, words.next()?);
    (is_plain(version) && is_plain_path(path)).then(|| Program {
        path: path.to_owned(),
        version: version.to_owned(),
        is_able: able == "1",
        has_rights: rights == "1",
    })
}

fn interface(value: &str) -> Option<Interface> {
    let mut words = value.split(' ');
    let name = words.next().filter(|name| is_interface(name))?;
    Some(Interface {
        name: name.to_owned(),
        state: words.next()?.to_owned(),
        // The kernel says -1 where it does not know it.
        speed_mbps: words.next().and_then(|speed| speed.parse().ok()),
    })
}

/// True for names that a script may have as a word, and a file's name as a part.
fn is_interface(name: &str) -> bool {
    is_plain(name) && !name.contains('/') && !name.starts_with(['-', '.']) && name.len() <= 32
}

fn rdma(value: &str) -> Option<RdmaPort> {
    let mut words = value.split(' ');
    let (device, port, interface) = (words.next()?, words.next()?, words.next()?);
    is_interface(interface).then_some(())?;
    Some(RdmaPort {
        device: device.to_owned(),
        port: port.parse().ok()?,
        interface: interface.to_owned(),
    })
}

/// Names that the script has to know.
#[derive(Clone, Copy, Debug, Default)]
pub struct Question<'a> {
    /// The folder for captures; empty: `/var/tmp/roce-fleet-UID`.
    pub base: &'a str,
    /// This very program, on this machine; empty elsewhere.
    pub own: &'a str,
    /// Name of a program that was pushed, below the folder's `bin`.
    pub pushed: &'a str,
}

/// Asks a host, and measures its clock.
///
/// # Errors
/// If it cannot be reached, or does not answer to the end.
pub fn ask(
    machine: &Machine,
    question: Question<'_>,
    patience: Duration,
) -> Result<(Facts, Option<Offset>), RemoteError> {
    let head = head(&[
        ("base", question.base),
        ("own", question.own),
        ("pushed", question.pushed),
    ])?;
    let script = [&head, COMMON, include_str!("preflight.sh")].concat();
    let mut session = machine.session(&script)?;
    let mut facts = Facts::default();
    session.lines(patience, |line| {
        facts.take(line);
        facts.is_complete
    })?;
    let offset = if facts.is_complete {
        clock::measure(&mut session, patience)
    } else {
        None
    };
    session.finish(patience)?;
    if !facts.is_complete {
        return Err(RemoteError::Failed {
            code: 0,
            text: "its answer has no end".to_owned(),
        });
    }
    Ok((facts, offset))
}

/// A program that is copied to hosts.
#[derive(Clone, Debug)]
pub struct PushedProgram {
    /// Its bytes.
    pub bytes: Arc<[u8]>,
    /// Its name there.
    pub name: String,
}

/// Copies a program to a host's folder, where it has to run. Architecture and C library fit if it does.
///
/// # Errors
/// If it cannot be copied, or does not run there: the reason; and if `goes_on` says no.
pub fn push(
    machine: &Machine,
    base: &str,
    program: &PushedProgram,
    patience: Duration,
    goes_on: &dyn Fn() -> bool,
) -> Result<(), RemoteError> {
    let head = head(&[
        ("base", base),
        ("pushed", &program.name),
        ("bytes", &program.bytes.len().to_string()),
    ])?;
    let script = [&head, COMMON, include_str!("push.sh")].concat();
    let answer = machine.feed(
        &script,
        io::Cursor::new(Arc::clone(&program.bytes)),
        patience,
        goes_on,
    )?;
    let answer = String::from_utf8_lossy(&answer);
    let mut fields = answer.lines().filter_map(field);
    match fields.find(|(key, _)| matches!(*key, "version" | "problem")) {
        Some(("version", _)) => Ok(()),
        Some((_, problem)) => Err(RemoteError::Failed {
            code: 0,
            text: problem.to_owned(),
        }),
        None => Err(RemoteError::Failed {
            code: 0,
            text: "its answer has no end".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests;
