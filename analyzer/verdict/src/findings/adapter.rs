//! The finding about a host one adapter of which carries everything, while another one counts nothing.

use std::collections::BTreeMap;

use roce_model::cast::float;
use roce_model::{Columns as _, Confidence, Counter, Evidence, FindingRow, SampleColumns, Severity, Time};

use super::super::numbers::{bytes, counted, some};
use super::super::pauses::ConcludedPauses;
use super::rule::{Context, FindingOf as _, MAX_MANAGEMENT_QPN, Rule};

pub(super) const IDLE: Rule = Rule {
    id: "adapter.idle",
    title: "one adapter of a host carries everything, another one nothing",
    meaning: "A host has several adapters, and all of its traffic takes one of them. Where a job is to use all of them, each of its flows gets a part of \
              what it could: programs did not find the other adapters, or were told to use this one alone.",
    method: "By the bytes of RDMA ports, or of RDMA at network interfaces, that joined readings of one host and one time count: one sends and receives \
             99.9 % of all, and blind_bytes at least, another one less than a thousandth of that. Or by packets: ports of one host whose addresses \
             --inventory names, each of which shows packets, and all but a thousandth of the data is of one of them.",
    source: "port_xmit_data, port_rcv_data and rx_vport_rdma_unicast_bytes of Linux; NCCL_IB_HCA chooses NCCL's adapters.",
    thresholds: &["blind_bytes"],
    severity: Severity::Info,
    confidence: "medium: the bytes are counted, that both adapters are meant for this traffic is not; low by packets, of which other taps may show more",
    ..Rule::TALLIED
};

/// Series of counters that are kept, at most.
const MAX_SERIES: usize = 1 << 14;
/// Characters of a name that are kept.
const MAX_NAME: usize = 128;
/// Idle adapters carry less than this part of what the busy one does.
const IDLE_PART: f64 = 0.001;
/// Readings are of one time where this share of their time is.
const COMMON: f64 = 0.9;
/// Data packets of a host from which on an adapter without any is idle.
const MIN_PACKETS: u64 = 1_000;
/// Adapters that a finding names.
const NAMED: usize = 4;

/// Who counts the bytes of an adapter: only the same ones are compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum CountedBy {
    RdmaPort,
    Interface,
    Packets,
}

/// Bytes (or data packets) that an adapter carried, and when.
#[derive(Clone, Copy, Debug)]
struct CarriedTraffic {
    amount: f64,
    from: u64,
    to: u64,
}

impl CarriedTraffic {
    fn length(&self) -> f64 {
        float(self.to.saturating_sub(self.from))
    }
}

/// A host with a busy adapter and idle ones.
#[derive(Debug)]
struct OneSidedHost {
    by: CountedBy,
    node: String,
    busy: (String, CarriedTraffic),
    idle: Vec<String>,
}

/// Adapters by host.
type Adapters = BTreeMap<(CountedBy, String), BTreeMap<String, CarriedTraffic>>;

#[derive(Debug, Default)]
pub(super) struct AdapterTally {
    adapters: Adapters,
    series: usize,
}

impl AdapterTally {
    /// Readings of counters of all hosts.
    pub(super) fn samples(&mut self, rows: &SampleColumns) {
        let ports = [Counter::PortReceivedBytes, Counter::PortTransmittedBytes].map(Counter::name);
        let interfaces = [Counter::RdmaReceivedBytes, Counter::RdmaTransmittedBytes].map(Counter::name);
        for row in 0..rows.len() {
            let by = match rows.counter.at(row).map(AsRef::as_ref) {
                Some(counter) if ports.contains(&counter) => CountedBy::RdmaPort,
                Some(counter) if interfaces.contains(&counter) => CountedBy::Interface,
                _ => continue,
            };
            let (Some(time), Some(change), Some(interval)) = (
                rows.time.at(row).copied(),
                rows.change.at(row).copied(),
                rows.interval_ns.at(row).copied(),
            ) else {
                continue;
            };
            let text = |values: &roce_model::Values<std::borrow::Cow<'static, str>>| {
                let text: &str = values.at(row).map_or("", AsRef::as_ref);
                text.chars().take(MAX_NAME).collect::<String>()
            };
            let read = CarriedTraffic {
                amount: change,
                from: time.saturating_sub(interval),
                to: time,
            };
            self.add(by, text(&rows.node), text(&rows.object), read);
        }
    }

    fn add(&mut self, by: CountedBy, node: String, object: String, read: CarriedTraffic) {
        let adapters = self.adapters.entry((by, node)).or_default();
        if let Some(known) = adapters.get_mut(&object) {
            known.amount += read.amount;
            known.from = known.from.min(read.from);
            known.to = known.to.max(read.to);
        } else if self.series < MAX_SERIES {
            self.series += 1;
            adapters.insert(object, read);
        }
    }

    pub(super) fn idle(&self, context: &Context<'_>) -> Option<FindingRow> {
        let packets = context.fabric.map(|fabric| by_packets(context, fabric));
        let least = float(context.thresholds.blind_bytes);
        let counted_hosts = self.adapters.iter();
        let mut found: Vec<OneSidedHost> = counted_hosts
            .filter_map(|(host, adapters)| one_sided(host, adapters, least))
            .collect();
        let by_packets = packets.iter().flatten();
        let by_packets = by_packets.filter_map(|(host, ports)| one_sided(host, ports, float(MIN_PACKETS)));
        for host in by_packets {
            // Counters say more, and of the same host it is said once.
            if found.iter().all(|known| known.node != host.node) {
                found.push(host);
            }
        }
        found.sort_by(|a, b| {
            a.by.cmp(&b.by)
                .then(b.busy.1.amount.total_cmp(&a.busy.1.amount))
                .then(a.node.cmp(&b.node))
        });
        found.dedup_by(|later, first| later.node == first.node);
        row_of(&found)
    }
}

/// The adapter that carries everything, where the others carry nothing meanwhile.
fn one_sided(
    (by, node): &(CountedBy, String),
    adapters: &BTreeMap<String, CarriedTraffic>,
    least: f64,
) -> Option<OneSidedHost> {
    let (name, busy) = adapters.iter().max_by(|a, b| a.1.amount.total_cmp(&b.1.amount))?;
    let others = adapters.iter().filter(|(other, _)| *other != name);
    let rest: f64 = others.clone().map(|(_, other)| other.amount).sum();
    let is_meanwhile = |other: &CarriedTraffic| {
        let common = float(busy.to.min(other.to).saturating_sub(busy.from.max(other.from)));
        common >= COMMON * busy.length().max(other.length())
    };
    let idle: Vec<String> = others
        .filter(|(_, other)| is_meanwhile(other))
        .map(|(other, _)| other.clone())
        .collect();
    let is_alone = busy.amount >= least && rest < IDLE_PART * busy.amount;
    (is_alone && !idle.is_empty()).then(|| OneSidedHost {
        by: *by,
        node: node.clone(),
        busy: (name.clone(), *busy),
        idle,
    })
}

/// Data packets by port of a host, of addresses that show packets and whose ports are known.
fn by_packets(context: &Context<'_>, fabric: &ConcludedPauses) -> Adapters {
    let mut adapters = Adapters::new();
    let ports = &fabric.readings.ports;
    let whole = context
        .run
        .span
        .map_or((0, 0), |period| (period.first.0, period.last.0));
    let flows = context.directory.flows();
    for (.., party) in flows.filter(|(.., party)| party.counted && party.qpn().value() > MAX_MANAGEMENT_QPN) {
        for address in [party.source, party.destination] {
            let Some(port) = fabric.net.attached(address) else {
                continue;
            };
            let host = (CountedBy::Packets, ports.node_name(port));
            let carried = adapters
                .entry(host)
                .or_default()
                .entry(ports.object_name(port))
                .or_insert(CarriedTraffic {
                    amount: 0.0,
                    from: whole.0,
                    to: whole.1,
                });
            carried.amount += float(party.data_packets);
        }
    }
    adapters
}

fn row_of(found: &[OneSidedHost]) -> Option<FindingRow> {
    let worst = found.first()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a sum of changes is not negative"
    )]
    let amount = worst.busy.1.amount as u64;
    let idle = some(&worst.idle, NAMED, worst.idle.len());
    let mut evidence = Evidence::default();
    evidence
        .count("hosts", found.len() as u64)
        .text("host", worst.node.clone())
        .text("busy", worst.busy.0.clone())
        .text("idle", idle.clone());
    let (what, confidence) = match worst.by {
        CountedBy::Packets => {
            evidence.count("data_packets", amount);
            (counted(amount, "data packet"), Confidence::Low)
        }
        CountedBy::RdmaPort | CountedBy::Interface => {
            evidence.count("bytes", amount);
            (bytes(amount), Confidence::Medium)
        }
    };
    let more = match found.len() as u64 - 1 {
        0 => String::new(),
        others => format!("; likewise {}", counted(others, "other host")),
    };
    Some(IDLE.finding(
        (Severity::Info, confidence),
        format!(
            "{} of {} carried {what}, {idle} nothing meanwhile{more}",
            worst.busy.0, worst.node
        ),
        evidence,
        "If both are for this traffic, look at which adapters the program was told to use (NCCL_IB_HCA, UCX_NET_DEVICES), and at the addresses and \
         routes of the idle one.",
        Some(Time(worst.busy.1.from)),
    ))
}
