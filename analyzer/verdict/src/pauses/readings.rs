//! Counters and gauges of hosts, hypervisors and switches, by port, as far as rules need them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use roce_model::{Columns, Counter, SampleColumns, SampleSource, Values};

use super::ports::{NodeNumber, PortNumber, Ports};
use super::series::{Series, Window};

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Series that are followed, at most; with all their changes 60 MB.
const MAX_SERIES: usize = 1 << 16;
/// Names of queues that are known, at most.
const MAX_QUEUES: usize = 1 << 10;
/// The priority that stands for the whole link.
pub(super) const LINK: u8 = 8;

/// Quantities that rules need.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(in super::super) enum Quantity {
    /// Pause frames received: the neighbour stops this port.
    PausesReceived,
    /// Pause frames sent: this port stops its neighbour.
    PausesSent,
    /// Seconds in which received pauses stopped the port.
    Stopped,
    /// Seconds in which sent pauses stopped the neighbour.
    StoppedNeighbor,
    ReceivedBytes,
    SentBytes,
    /// Packets that a host had no buffer for, and other signs that it takes packets too slowly.
    TooSlow,
    /// Storms of pauses that an adapter or a watchdog noticed.
    Storms,
    /// Packets dropped by an egress queue.
    QueueDrops,
    /// Packets dropped on ingress for lack of buffer.
    IngressDrops,
    /// Packets with errors.
    Errors,
    /// Packets that an egress queue marked.
    QueueMarks,
    /// Bytes a second that the port can send. A gauge.
    Rate,
    /// Queue length from which packets are marked. A gauge.
    MarksFrom,
    /// Ingress buffer use from which the neighbour is paused. A gauge.
    PausesFrom,
}

impl Quantity {
    fn is_gauge(self) -> bool {
        matches!(self, Self::Rate | Self::MarksFrom | Self::PausesFrom)
    }
}

/// Who was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Level {
    Host,
    Hypervisor,
    Switch,
}

/// Names a series.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(in super::super) struct Key {
    pub(in super::super) port: PortNumber,
    pub(in super::super) quantity: Quantity,
    /// 0 to 7, [`LINK`]; `None`: priorities are not distinguished.
    pub(in super::super) priority: Option<u8>,
    /// Its number.
    pub(in super::super) queue: Option<u16>,
}

/// All series, and the names in them.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Readings {
    pub(in super::super) ports: Ports,
    series: Map<Key, Series>,
    /// By node.
    levels: Map<u32, Level>,
    /// Ports within switches, which have no cable.
    internal: HashSet<PortNumber, foldhash::fast::RandomState>,
    queues: Vec<String>,
    quantities: Map<&'static str, (Quantity, bool)>,
    /// Rows that found no room.
    pub(in super::super) left_out: u64,
}

/// The quantity of a counter, and true if it is about the whole link.
fn quantity(counter: Counter) -> Option<(Quantity, bool)> {
    let found = match counter {
        Counter::PfcReceivedFrames
        | Counter::SwitchPfcReceivedFrames
        | Counter::SwitchPriorityPfcReceivedFrames
        | Counter::HypervisorPfcReceivedFrames => (Quantity::PausesReceived, false),
        Counter::PauseReceivedFrames
        | Counter::SwitchPauseReceivedFrames
        | Counter::HypervisorPauseReceivedFrames => (Quantity::PausesReceived, true),
        Counter::PfcTransmittedFrames
        | Counter::SwitchPfcTransmittedFrames
        | Counter::SwitchPriorityPfcTransmittedFrames
        | Counter::HypervisorPfcTransmittedFrames => (Quantity::PausesSent, false),
        Counter::PauseTransmittedFrames
        | Counter::SwitchPauseTransmittedFrames
        | Counter::HypervisorPauseTransmittedFrames => (Quantity::PausesSent, true),
        Counter::PfcReceivePausedSeconds
        | Counter::SwitchPriorityPfcReceivePausedSeconds
        | Counter::HypervisorPfcReceivePausedSeconds => (Quantity::Stopped, false),
        Counter::PauseReceivePausedSeconds | Counter::HypervisorPauseReceivePausedSeconds => {
            (Quantity::Stopped, true)
        }
        Counter::PfcTransmitPausedSeconds => (Quantity::StoppedNeighbor, false),
        Counter::PauseTransmitPausedSeconds | Counter::HypervisorPauseTransmitPausedSeconds => {
            (Quantity::StoppedNeighbor, true)
        }
        Counter::PortReceivedBytes
        | Counter::SwitchInterfaceReceivedBytes
        | Counter::HypervisorReceivedBytes => (Quantity::ReceivedBytes, false),
        Counter::PortTransmittedBytes
        | Counter::SwitchInterfaceTransmittedBytes
        | Counter::HypervisorTransmittedBytes => (Quantity::SentBytes, false),
        Counter::PortOutOfBufferDrops
        | Counter::NetdevOutOfBuffer
        | Counter::PortRnrNaksSent
        | Counter::PcieStalledSeconds => (Quantity::TooSlow, false),
        Counter::PauseStormEvents
        | Counter::HypervisorPauseStormEvents
        | Counter::SwitchWatchdogShutdowns => (Quantity::Storms, false),
        Counter::SwitchQueueDroppedPackets | Counter::SwitchQueueWredDroppedPackets => {
            (Quantity::QueueDrops, false)
        }
        Counter::SwitchMmuDroppedPackets | Counter::SwitchPriorityGroupDroppedPackets => {
            (Quantity::IngressDrops, false)
        }
        Counter::SwitchInterfaceErrors => (Quantity::Errors, false),
        Counter::SwitchQueueEcnMarkedPackets => (Quantity::QueueMarks, false),
        Counter::SwitchInterfaceRate | Counter::HypervisorNicRate => (Quantity::Rate, false),
        Counter::SwitchEcnThreshold => (Quantity::MarksFrom, false),
        Counter::SwitchQueuePauseThreshold => (Quantity::PausesFrom, false),
        _ => return None,
    };
    Some(found)
}

impl Readings {
    /// Takes rows of the table `samples`.
    pub(super) fn add(&mut self, rows: &SampleColumns) {
        if self.quantities.is_empty() {
            let counters = Counter::ALL.iter().copied();
            self.quantities = counters
                .filter_map(|counter| Some((counter.name(), quantity(counter)?)))
                .collect();
        }
        for row in 0..rows.len() {
            if self.row(rows, row).is_none() {
                self.left_out += 1;
            }
        }
    }

    /// Takes one row; `None`: it found no room.
    fn row(&mut self, rows: &SampleColumns, row: usize) -> Option<()> {
        let text = |values: &Values<Cow<'static, str>>| values.at(row).map(|text| text.as_ref().to_owned());
        let counter = rows.counter.at(row).map_or("", AsRef::as_ref);
        let Some((quantity, is_link)) = self.quantities.get(counter).copied() else {
            return Some(());
        };
        let source = rows.source.at(row).map_or("", AsRef::as_ref);
        let level = match source {
            source if source == SampleSource::Switch.name() => Level::Switch,
            source if source == SampleSource::Hypervisor.name() => Level::Hypervisor,
            source if source == SampleSource::Host.name() => Level::Host,
            _ => return Some(()),
        };
        let node = rows.node.at(row).map_or("", AsRef::as_ref);
        let object = rows.object.at(row).map_or("", AsRef::as_ref);
        let detail = rows.detail.at(row).map_or("", AsRef::as_ref);
        let port = self.ports.add(node, object)?;
        let NodeNumber(node) = self.ports.node_of(port)?;
        self.levels.insert(node, level);
        if level == Level::Switch && detail.split(',').next() == Some("internal") {
            self.internal.insert(port);
        }
        // The lower one of the two thresholds of marking counts, where marking begins.
        if quantity == Quantity::MarksFrom && detail.split(',').next_back() != Some("min") {
            return Some(());
        }
        let priority = rows
            .priority
            .at(row)
            .and_then(|priority| u8::try_from(*priority).ok());
        let queue = match text(&rows.queue) {
            Some(queue) => Some(self.queue(&queue)?),
            None => None,
        };
        let key = Key {
            port,
            quantity,
            priority: if is_link { Some(LINK) } else { priority },
            queue,
        };
        if self.series.len() >= MAX_SERIES && !self.series.contains_key(&key) {
            return None;
        }
        let series = self.series.entry(key).or_default();
        let value = rows.value.at(row).copied().filter(|value| value.is_finite());
        if quantity.is_gauge() {
            series.latest = value.unwrap_or(series.latest);
            return Some(());
        }
        if rows.reset.at(row) == Some(&true) {
            series.resets += 1;
        }
        let to = rows.time.at(row).copied()?;
        if let (Some(change), Some(interval)) = (
            rows.change.at(row).copied().filter(|change| *change >= 0.0),
            rows.interval_ns.at(row).copied().filter(|interval| *interval > 0),
        ) {
            series.add(Window {
                from: to.saturating_sub(interval),
                to,
                by: change,
            });
        }
        Some(())
    }

    fn queue(&mut self, name: &str) -> Option<u16> {
        let known = self.queues.iter().position(|known| known == name);
        let place = match known {
            Some(place) => place,
            None if self.queues.len() < MAX_QUEUES => {
                self.queues.push(name.to_owned());
                self.queues.len() - 1
            }
            None => return None,
        };
        u16::try_from(place).ok()
    }

    /// The name of a queue.
    pub(in super::super) fn queue_name(&self, queue: u16) -> &str {
        self.queues.get(usize::from(queue)).map_or("", String::as_str)
    }

    /// Who a port belongs to.
    pub(in super::super) fn level(&self, port: PortNumber) -> Option<Level> {
        self.levels.get(&self.ports.node_of(port)?.0).copied()
    }

    /// True if readings of the node are from a switch.
    pub(super) fn is_switch(&self, node: NodeNumber) -> bool {
        self.levels.get(&node.0) == Some(&Level::Switch)
    }

    /// True if the port is one within a switch.
    pub(in super::super) fn is_internal(&self, port: PortNumber) -> bool {
        self.internal.contains(&port)
    }

    /// All series of a quantity, by port, priority and queue.
    pub(in super::super) fn of(&self, quantity: Quantity) -> Vec<(Key, &Series)> {
        let of = self.series.iter().filter(|(key, _)| key.quantity == quantity);
        let mut all: Vec<(Key, &Series)> = of.map(|(key, series)| (*key, series)).collect();
        all.sort_by_key(|(key, _)| *key);
        all
    }

    /// All series, by quantity.
    pub(super) fn by_quantity(&self) -> BTreeMap<Quantity, Vec<(Key, &Series)>> {
        let mut all: BTreeMap<Quantity, Vec<(Key, &Series)>> = BTreeMap::new();
        for (key, series) in &self.series {
            all.entry(key.quantity).or_default().push((*key, series));
        }
        for of in all.values_mut() {
            of.sort_by_key(|(key, _)| *key);
        }
        all
    }

    /// A series without priority and queue.
    pub(in super::super) fn get(&self, port: PortNumber, quantity: Quantity) -> Option<&Series> {
        self.series.get(&Key {
            port,
            quantity,
            priority: None,
            queue: None,
        })
    }

    /// True if any port counted pauses.
    pub(super) fn has_pauses(&self) -> bool {
        self.series.iter().any(|(key, series)| {
            matches!(key.quantity, Quantity::PausesReceived | Quantity::PausesSent) && series.sum > 0.0
        })
    }
}
