//! Switches and hypervisors of an inventory as metrics.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use roce_metrics::{
    COLLECTOR_DURATION, COLLECTOR_ERRORS, COLLECTOR_SUCCESS, COLLECTOR_VALUES, Exposition, HYPERVISOR_INFO,
    HYPERVISOR_NIC_INFO, Label, SWITCH_INFO, SWITCH_NEIGHBOR,
};
use roce_model::{Counter, SampleSource, value_of};
use roce_pipeline::time_of_day;
use roce_remote::{DeviceReader, each_mut};
use roce_switches::device::Reading;
use roce_switches::inventory::Inventory;

use crate::options::fabric::{self, MAX_AT_ONCE};

/// A switch or hypervisor, as those know it who do not read it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NamedDevice {
    /// Its name in the inventory.
    pub(super) name: String,
    /// Its collector: `switch:leaf1`.
    pub(super) collector: String,
    /// Its operating system.
    pub(super) kind: &'static str,
    /// Time between two readings.
    pub(super) every: Duration,
}

impl NamedDevice {
    /// The label of its readings.
    pub(super) fn label(&self) -> Label<'static> {
        ("collector", self.collector.clone().into())
    }
}

/// A switch or hypervisor that is read.
pub(super) struct Target {
    pub(super) about: NamedDevice,
    transport: &'static str,
    reader: DeviceReader,
}

/// The inventory of `--inventory`; none without the option.
pub(super) fn inventory(path: Option<&PathBuf>) -> anyhow::Result<Inventory> {
    path.map_or_else(|| Ok(Inventory::default()), |path| fabric::read(path))
}

/// The switches and hypervisors of an inventory.
pub(super) fn named(inventory: &Inventory) -> Vec<NamedDevice> {
    let switches = inventory.switches.iter().map(|switch| NamedDevice {
        name: switch.name.clone(),
        collector: format!("switch:{}", switch.name),
        kind: switch.kind.name(),
        every: switch.every,
    });
    let hypervisors = inventory.hypervisors.iter().map(|hypervisor| NamedDevice {
        name: hypervisor.name.clone(),
        collector: format!("hypervisor:{}", hypervisor.name),
        kind: "esxi",
        every: hypervisor.every,
    });
    switches.chain(hypervisors).collect()
}

impl Target {
    /// The switches and hypervisors of an inventory, in the order of [`named`].
    ///
    /// # Errors
    /// The password or the certificate of one of them cannot be read.
    pub(super) fn all(inventory: &Inventory) -> anyhow::Result<Vec<Self>> {
        let ssh = Arc::new(inventory.ssh.clone());
        let mut readers = Vec::new();
        for switch in &inventory.switches {
            let reader = DeviceReader::switch(switch, &ssh);
            let reader = reader.with_context(|| format!("switch '{}'", switch.name))?;
            readers.push((switch.transport.name(), reader));
        }
        for hypervisor in &inventory.hypervisors {
            let reader = DeviceReader::hypervisor(hypervisor, &ssh);
            let reader = reader.with_context(|| format!("hypervisor '{}'", hypervisor.name))?;
            readers.push((hypervisor.transport.name(), reader));
        }
        let all = named(inventory).into_iter().zip(readers);
        Ok(all
            .map(|(about, (transport, reader))| Self {
                about,
                transport,
                reader,
            })
            .collect())
    }

    /// Reads it and adds its values. False: it cannot be read, and has the value 0 for "up" and no other.
    pub(super) fn add(&mut self, into: &mut Exposition) -> bool {
        let reading = self.reader.read(time_of_day);
        let is_up = |counter| reading.of(counter).any(|sample| sample.value > 0.0);
        let is_up = is_up(Counter::SwitchUp) || is_up(Counter::HypervisorUp);
        // These come first: they are few, and have room whatever the counters need.
        for (reason, count) in self.reader.errors() {
            let labels = [self.about.label(), ("reason", reason.name().into())];
            into.own(COLLECTOR_ERRORS, &labels, value_of(count));
        }
        into.own(
            COLLECTOR_VALUES,
            &[self.about.label()],
            value_of(reading.understood() as u64),
        );
        if is_up {
            describe(&reading, self.transport, into);
        }
        for sample in &reading.samples {
            // Statistics without a common name are many, and differ by driver.
            if sample.counter != Counter::HypervisorNicStatistic {
                into.add(sample);
            }
        }
        is_up
    }
}

/// Reads all targets, some at once, and adds what is known of their collectors, too.
pub(super) fn add_all(targets: &mut [Target], into: &mut Exposition) {
    let readings = each_mut(targets, MAX_AT_ONCE, |target| {
        let begun = Instant::now();
        let mut exposition = Exposition::default();
        let is_up = target.add(&mut exposition);
        (target.about.label(), exposition, is_up, begun.elapsed())
    });
    for (label, exposition, is_up, took) in readings {
        into.merge(exposition);
        let label = [label];
        into.own(COLLECTOR_DURATION, &label, took.as_secs_f64());
        into.own(COLLECTOR_SUCCESS, &label, f64::from(u8::from(is_up)));
    }
}

/// Adds a device's description of itself. A label that is empty is as if it were absent.
fn describe(reading: &Reading, transport: &'static str, into: &mut Exposition) {
    let node = reading.node.as_ref();
    let about = &reading.description;
    if reading.source == SampleSource::Hypervisor {
        let labels = [
            ("hypervisor", node),
            ("version", &about.version),
            ("build", &about.build),
        ];
        into.own(HYPERVISOR_INFO, &known(&labels), 1.0);
        for adapter in &reading.adapters {
            let labels = [
                ("hypervisor", node),
                ("vmnic", &adapter.name),
                ("driver", &adapter.driver),
                ("driver_version", &adapter.driver_version),
                ("firmware", &adapter.firmware),
                ("mac", &adapter.mac),
            ];
            into.own(HYPERVISOR_NIC_INFO, &known(&labels), 1.0);
        }
    } else {
        let labels = [
            ("switch", node),
            ("model", &about.model),
            ("version", &about.version),
            ("serial", &about.serial),
            ("transport", transport),
        ];
        into.own(SWITCH_INFO, &known(&labels), 1.0);
        for neighbor in &reading.neighbors {
            let labels = [
                ("switch", node),
                ("interface", &neighbor.interface),
                ("neighbor", &neighbor.node),
                ("neighbor_interface", &neighbor.port),
            ];
            into.own(SWITCH_NEIGHBOR, &known(&labels), 1.0);
        }
    }
}

fn known<'a>(labels: &[(&'static str, &'a str)]) -> Vec<Label<'a>> {
    let known = labels.iter().filter(|(_, value)| !value.is_empty());
    known.map(|(name, value)| (*name, (*value).into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use roce_metrics::Format;
    use roce_model::Time;
    use roce_switches::device::Neighbor;

    #[test]
    fn names_from_devices_are_escaped() {
        let mut reading = Reading::new(SampleSource::Switch, "leaf1", Time(1));
        reading.neighbors.push(Neighbor {
            interface: "Ethernet1/1".to_owned(),
            node: "rack \"7\" \\ left\nnew".to_owned(),
            port: String::new(),
        });
        let mut exposition = Exposition::default();
        describe(&reading, "ssh", &mut exposition);
        let text = exposition.part(Format::Prometheus);
        // Prometheus' text format: \, " and line feeds in label values are escaped.
        let expected = "roce_switch_neighbor_info{switch=\"leaf1\",interface=\"Ethernet1/1\",neighbor=\"rack \\\"7\\\" \\\\ left\\nnew\"} 1\n";
        assert!(text.contains(expected), "{text}");
        assert!(
            text.contains("roce_switch_info{switch=\"leaf1\",transport=\"ssh\"} 1\n"),
            "{text}"
        );
    }
}
