//! Readings of hosts: this one by its own devices, others by the JSON document of `roce-analyze host counters` over ssh.
//!
//! The document is a whole reading in one answer, and its `schema_version` says whether it is understood. A stream of samples would need
//! a program there that runs for the whole time, and ends with the connection; readings of a second do not need it.

use std::borrow::Cow;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use roce_fabric::inventory::{HostTarget, SshSettings};
use roce_model::{Counter, Nanos, Sample, SampleSource};
use roce_probe::HostReader;
use roce_remote::{Machine, RemoteError, quoted};
use serde_json::Value;

/// Bytes of a host's document.
const MAX_BYTES: u64 = 16 << 20;
/// Samples of one document; of more, the rest is left out.
const MAX_SAMPLES: usize = 100_000;

/// A host that is read again and again.
pub(super) enum HostSource {
    /// This one.
    Here(Box<HostReader>),
    /// Another one.
    There {
        machine: Machine,
        script: String,
        node: Arc<str>,
    },
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
            return Ok(Self::Here(Box::new(reader)));
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
        Ok(Self::There {
            machine,
            script: quoted(words)?,
            node: host.name.as_str().into(),
        })
    }

    /// One reading. `clock` is that of this host.
    ///
    /// # Errors
    /// The other host does not answer, or not with a document that is understood.
    pub(super) fn read(&mut self, clock: impl Fn() -> Nanos) -> anyhow::Result<Vec<Sample>> {
        match self {
            Self::Here(reader) => {
                let mut samples = Vec::new();
                reader.read(clock(), &mut samples);
                Ok(samples)
            }
            Self::There {
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
                let time = Nanos(begun.0 + clock().since(begun).0 / 2);
                samples(&bytes, time, node)
            }
        }
    }
}

/// The samples in the document of `host counters`.
fn samples(bytes: &[u8], time: Nanos, node: &Arc<str>) -> anyhow::Result<Vec<Sample>> {
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
    Ok(counters.iter().take(MAX_SAMPLES).filter_map(sample).collect())
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
        });
        let read = |document: &Value| samples(document.to_string().as_bytes(), Nanos(9), &"gpu1".into());
        let found = read(&document).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].counter, found[0].priority, found[0].value, found[0].time),
            (Counter::PfcReceivedFrames, Some(3), 7.0, Nanos(9))
        );
        assert_eq!(found[1].details, ["receive"]);
        let other = serde_json::json!({"schema_version": 0, "counters": []});
        assert!(
            read(&other)
                .unwrap_err()
                .to_string()
                .contains("hint: the same version")
        );
        assert!(samples(b"{", Nanos(9), &"gpu1".into()).is_err());
    }
}
