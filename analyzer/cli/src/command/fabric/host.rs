//! Readings of hosts: this one by its own devices, others by the JSON document of `roce-analyze host counters` over ssh.
//!
//! The document is a whole reading in one answer, and its `schema_version` says whether it is understood. A stream of samples would need
//! a program there that runs for the whole time, and ends with the connection; readings of a second do not need it.

use std::borrow::Cow;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use roce_model::{Counter, Sample, SampleSource, Time};
use roce_probe::HostReader;
use roce_remote::program::{self, Limits};
use roce_remote::{Machine, RemoteError, quoted};
use roce_switches::inventory::{HostTarget, SshSettings};
use serde_json::Value;

/// Bytes of a host's document.
const MAX_BYTES: u64 = 16 << 20;
/// Samples of one document; of more, the rest is left out.
const MAX_SAMPLES: usize = 100_000;
/// Remarks of one document; of more, the rest is left out.
const MAX_NOTES: usize = 1_024;
/// The longest time for the addresses of this host.
const PATIENCE: Duration = Duration::from_secs(5);

/// Prints each network interface and its MAC address, a pair in each line.
const ADDRESSES: &str =
    r#"for d in /sys/class/net/*; do read -r a < "$d/address" && echo "${d##*/} $a"; done 2>/dev/null; true"#;
/// Bytes of the text of all addresses of a host.
const MAX_ADDRESS_BYTES: u64 = 64 << 10;

/// A host that is read again and again.
pub(super) struct HostSource {
    way: Way,
    /// Addresses were read.
    has_addresses: bool,
}

/// How a host is read.
enum Way {
    /// This one.
    Here(Box<HostReader>),
    /// Another one.
    There {
        machine: Machine,
        script: String,
        node: Arc<str>,
    },
}

/// One reading of a host.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct HostReading {
    pub(super) samples: Vec<Sample>,
    /// Remarks about what cannot be seen there.
    pub(super) notes: Vec<String>,
    /// Network interfaces and their MAC addresses, with the first reading alone.
    pub(super) addresses: Vec<(String, String)>,
}

impl HostReading {
    /// RDMA devices that are virtual functions: the driver shows none of the physical port's pauses there.
    pub(super) fn virtual_functions(&self) -> impl Iterator<Item = &str> {
        let devices = self.notes.iter();
        devices.filter_map(|note| Some(note.split_once(" is a virtual function")?.0))
    }
}

impl HostSource {
    /// A host of an inventory.
    ///
    /// # Errors
    /// The name of an interface cannot be an argument.
    pub(super) fn new(host: &HostTarget, ssh: &Arc<SshSettings>) -> anyhow::Result<Self> {
        let machine = Machine::host(host, ssh);
        if machine.is_local() && host.prefix.is_none() {
            let reader = HostReader::new(&host.interfaces).named(&host.name);
            return Ok(Self {
                way: Way::Here(Box::new(reader)),
                has_addresses: false,
            });
        }
        let mut words = vec![
            "roce-analyze",
            "host",
            "counters",
            "--duration=0s",
            "--all",
            "--format=json",
        ];
        let interfaces: Vec<String> = host
            .interfaces
            .iter()
            .map(|name| format!("--interface={name}"))
            .collect();
        words.extend(interfaces.iter().map(String::as_str));
        let way = Way::There {
            machine,
            script: quoted(words)?,
            node: host.name.as_str().into(),
        };
        Ok(Self {
            way,
            has_addresses: false,
        })
    }

    /// One reading. `clock` is that of this host.
    ///
    /// # Errors
    /// The other host does not answer, or not with a document that is understood.
    pub(super) fn read(&mut self, clock: impl Fn() -> Time) -> anyhow::Result<HostReading> {
        let mut reading = self.counters(clock)?;
        if !self.has_addresses {
            self.has_addresses = true;
            reading.addresses = self.addresses();
        }
        Ok(reading)
    }

    /// Network interfaces and their MAC addresses. A host that does not say them has none.
    fn addresses(&self) -> Vec<(String, String)> {
        let text = match &self.way {
            Way::Here(_) => {
                let limits = Limits {
                    patience: PATIENCE,
                    output: MAX_ADDRESS_BYTES,
                    errors: 0,
                };
                let ended = program::run(Command::new("sh").args(["-c", ADDRESSES]), limits);
                ended.map(|ended| ended.output).unwrap_or_default()
            }
            Way::There { machine, .. } => machine.run(ADDRESSES, MAX_ADDRESS_BYTES).unwrap_or_default(),
        };
        addresses(&String::from_utf8_lossy(&text))
    }

    fn counters(&mut self, clock: impl Fn() -> Time) -> anyhow::Result<HostReading> {
        match &mut self.way {
            Way::Here(reader) => {
                let mut reading = HostReading::default();
                reader.read(clock(), &mut reading.samples);
                reading.notes = reader.notes().map(str::to_owned).collect();
                Ok(reading)
            }
            Way::There {
                machine,
                script,
                node,
            } => {
                let begun = clock();
                let bytes = machine.run(script, MAX_BYTES).map_err(|error| match error {
                    RemoteError::NotFound(_) => {
                        anyhow!("roce-analyze is not installed there\nhint: copy this program there")
                    }
                    error => error.into(),
                })?;
                // Its own clock may be another one.
                let time = begun + clock().since(begun) / 2;
                reading(&bytes, time, node)
            }
        }
    }
}

/// The addresses in lines of a name and an address.
fn addresses(text: &str) -> Vec<(String, String)> {
    let pairs = text.lines().filter_map(|line| line.trim().split_once(' '));
    pairs
        .map(|(name, mac)| (name.to_owned(), mac.to_owned()))
        .collect()
}

/// The samples and remarks in the document of `host counters`.
fn reading(bytes: &[u8], time: Time, node: &Arc<str>) -> anyhow::Result<HostReading> {
    let document: Value = serde_json::from_slice(bytes).context("no JSON document came")?;
    let expected = roce_report::json::SCHEMA_VERSION;
    if document["schema_version"] != expected {
        bail!(
            "its roce-analyze writes version {} of the document, this one reads {expected}\nhint: the same version on all hosts",
            document["schema_version"]
        );
    }
    let counters = document["counters"]
        .as_array()
        .context("a document without counters")?;
    let sample = |series: &Value| {
        let counter = Counter::from_name(series["counter"].as_str()?)?;
        let details = series["detail"]
            .as_str()
            .into_iter()
            .flat_map(|text| text.split(','));
        Some(Sample {
            time,
            source: SampleSource::Host,
            node: Arc::clone(node),
            object: series["object"].as_str()?.into(),
            counter,
            priority: series["priority"]
                .as_u64()
                .and_then(|priority| u8::try_from(priority).ok()),
            queue: series["queue"].as_str().map(Into::into),
            details: details.map(|text| Cow::Owned(text.to_owned())).collect(),
            value: series["after"].as_f64()?,
            // The document does not say it: the wrap of a register of 32 bits is a reset here.
            bits: 64,
        })
    };
    let notes = document["notes"].as_array().into_iter().flatten();
    let notes = notes.take(MAX_NOTES).filter_map(Value::as_str);
    Ok(HostReading {
        samples: counters.iter().take(MAX_SAMPLES).filter_map(sample).collect(),
        notes: notes.map(str::to_owned).collect(),
        addresses: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_of_counters_is_a_reading() {
        let document = serde_json::json!({
            "schema_version": roce_report::json::SCHEMA_VERSION,
            "counters": [
                {"object": "ens1", "counter": "pfc_received_frames", "priority": 3, "queue": null, "detail": null, "before": 5.0, "after": 7.0},
                {"object": "ens1", "counter": "netdev_discards", "priority": null, "detail": "receive", "after": 1.0},
                {"object": "ens1", "counter": "of_a_later_version", "after": 1.0},
            ],
            "notes": ["mlx5_2 is a virtual function: counters of the physical port are not visible here", "another remark"],
        });
        let read = |document: &Value| reading(document.to_string().as_bytes(), Time(9), &"gpu1".into());
        let all = read(&document).unwrap();
        assert_eq!(all.virtual_functions().collect::<Vec<_>>(), ["mlx5_2"]);
        let found = &all.samples;
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].counter, found[0].priority, found[0].value, found[0].time),
            (Counter::PfcReceivedFrames, Some(3), 7.0, Time(9))
        );
        assert_eq!(found[1].details, ["receive"]);
        let other = serde_json::json!({"schema_version": 0, "counters": []});
        assert!(
            read(&other)
                .unwrap_err()
                .to_string()
                .contains("hint: the same version")
        );
        assert!(reading(b"{", Time(9), &"gpu1".into()).is_err());
    }

    #[test]
    fn lines_of_addresses() {
        let pair = |name: &str, mac: &str| (name.to_owned(), mac.to_owned());
        assert_eq!(
            addresses("ens1 0c:42:a1:00:00:01\nbad\nlo 00:00:00:00:00:00\n"),
            [pair("ens1", "0c:42:a1:00:00:01"), pair("lo", "00:00:00:00:00:00")]
        );
    }
}
