//! Rules about switches.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::{Counter, Sample, Severity};

use super::facts::{Amount, Facts, detail, is_on, listed};
use super::rule::{DeviceRule, DeviceRun, FoundSign, NO_TEXTS, Needs};
use roce_spelling::{counted, whole};

/// Share of a port's rate from which on its default queue is busy.
const BUSY_SHARE: f64 = 0.1;
/// Bytes in the default queue since an unknown start from which on it was busy.
const BUSY_BYTES: f64 = 1e9;
/// Ports that a finding names; more are counted.
const MAX_NAMED_PORTS: usize = 8;
/// Queue of traffic that no policy classifies.
const DEFAULT_QUEUE: &str = "0";

/// The rule about queues that a watchdog keeps shut.
pub(super) const STORMED: &str = "switch.stormed";

pub(super) const RULES: &[DeviceRule] = &[
    DeviceRule {
        id: "switch.mmu_drops",
        title: "packets are dropped on ingress",
        meaning: "The shared buffer, or the share of a priority group, was full: a lossless priority that drops has too little headroom, or no PFC.",
        method: "packets dropped on ingress between two readings: critical",
        source: "Cisco NX-OS, show queuing interface, Ingress MMU Drop; SAI, SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS",
        next: "Compare PFC of both ends of this link, then headroom and cable length; look for packets in queues without PFC.",
        severity: Severity::Critical,
        confidence: "certain",
        run: DeviceRun::new(Needs::Two, mmu_drops),
        ..NO_TEXTS
    },
    DeviceRule {
        id: "switch.lossless_queue_drops",
        title: "a lossless queue drops packets",
        meaning: "PFC has to stop the senders before this queue is full. A drop here means that it does not.",
        method: "packets dropped by a queue that is lossless between two readings: critical",
        source: "IEEE 802.1Q clause 36",
        next: "Look whether the senders of this queue answer PFC, and whether a watchdog dropped the packets.",
        severity: Severity::Critical,
        confidence: "certain",
        run: DeviceRun::new(Needs::Two, lossless_queue_drops),
        ..NO_TEXTS
    },
    DeviceRule {
        id: "switch.wred_drops",
        title: "WRED drops packets instead of marking them",
        meaning: "A packet that may be marked is dropped where ECN is off or the queue is over the maximum; others are dropped since they carry no ECT.",
        method: "packets dropped by WRED between two readings: warning",
        source: "RFC 3168 section 5; Cisco NX-OS, show queuing interface, WRED Drop and WRED Non ECN Drop",
        next: "Set ECN in the queue of RoCE, and the traffic class of the applications so that their packets carry ECT.",
        severity: Severity::Warning,
        confidence: "certain",
        run: DeviceRun::new(Needs::Two, wred_drops),
        ..NO_TEXTS
    },
    DeviceRule {
        id: "switch.internal_only",
        title: "only links inside of the switch are paused",
        meaning: "Chips or slices of the switch pause each other, and no port does: congestion inside of the switch. Hosts were not paused.",
        method: "PFC frames at internal links, and none at any port: info",
        source: "Cisco NX-OS, show interface priority-flow-control, interfaces ii",
        next: "Compare the chips or slices of the busy ports; spread the hosts of one job over them.",
        severity: Severity::Info,
        confidence: "certain",
        run: DeviceRun::new(Needs::Two, internal_only),
        ..NO_TEXTS
    },
    DeviceRule {
        id: "switch.llfc_and_pfc",
        title: "802.3x and PFC are on at one port",
        meaning: "802.3x stops the whole link, PFC one priority. An adapter answers one of them: the other pauses nothing.",
        method: "802.3x in operation in a direction, and PFC on a priority, at one port: warning",
        source: "IEEE 802.1Q clause 36.1: a port with PFC does not use 802.3x",
        next: "Turn 802.3x off at this port and at its adapter.",
        severity: Severity::Warning,
        confidence: "certain",
        run: DeviceRun::new(Needs::One, llfc_and_pfc),
        ..NO_TEXTS
    },
    DeviceRule {
        id: "switch.pfc_other_priority",
        title: "PFC is on for another priority than the cluster's",
        meaning: "Pauses of a priority that RoCE does not use protect nothing, and need buffers. Pauses of all priorities stop all traffic.",
        method: "PFC on a priority that is not the inventory's: warning",
        source: "IEEE 802.1Q clause 36; the inventory's [cluster] priority",
        next: "Set PFC for the cluster's priority alone, at the switch and at the adapters.",
        severity: Severity::Warning,
        confidence: "certain",
        run: DeviceRun::new(Needs::One, pfc_other_priority),
        ..NO_TEXTS
    },
    DeviceRule {
        id: "switch.ecn_off",
        title: "the queue of RoCE marks no packets",
        meaning: "Without marks no CNPs are sent: the senders do not slow down until PFC stops them.",
        method: "the class of RoCE's queue has no ECN, at a port with PFC: its own policy counts, else that of the system: warning",
        source: "IEEE 802.1Qau; DCQCN (SIGCOMM 2015) section 3",
        next: "Set WRED with ECN in the class of this queue.",
        severity: Severity::Warning,
        confidence: "certain",
        run: DeviceRun::new(Needs::One, ecn_off),
        ..NO_TEXTS
    },
    DeviceRule {
        id: "switch.ecn_above_pfc",
        title: "marks begin above the pause threshold",
        meaning: "The switch pauses the senders before it marks packets: PFC acts first, and spreads the congestion.",
        method: "minimum threshold of ECN at or above the pause threshold of the same queue: warning",
        source: "DCQCN (SIGCOMM 2015) section 4",
        next: "Lower the minimum threshold of ECN, or raise the pause threshold.",
        severity: Severity::Warning,
        confidence: "likely",
        run: DeviceRun::new(Needs::One, ecn_above_pfc),
        ..NO_TEXTS
    },
    DeviceRule {
        id: "switch.rdma_strict_priority",
        title: "RoCE data is in a strict priority queue",
        meaning: "Data in strict priority starves all other queues, and CNPs gain nothing: they have to overtake data.",
        method: "the class of RoCE's queue has a priority level: warning",
        source: "DCQCN (SIGCOMM 2015) section 3: CNPs have the high priority",
        next: "Give RoCE data a share of the bandwidth, and the strict priority to CNPs.",
        severity: Severity::Warning,
        confidence: "certain",
        run: DeviceRun::new(Needs::One, rdma_strict_priority),
        ..NO_TEXTS
    },
    DeviceRule {
        id: "switch.no_watchdog",
        title: "PFC runs without a watchdog",
        meaning: "One adapter that sends pauses for ever stops all ports behind each other. A watchdog opens the queue again.",
        method: "PFC on a priority of any port, and the watchdog is off: warning",
        source: "Cisco NX-OS, priority-flow-control watch-dog; SONiC, pfcwd",
        next: "Turn the PFC watchdog on.",
        severity: Severity::Warning,
        confidence: "certain",
        run: DeviceRun::new(Needs::One, no_watchdog),
        ..NO_TEXTS
    },
    DeviceRule {
        id: STORMED,
        title: "the PFC watchdog keeps a queue shut",
        meaning: "The neighbour paused this queue for longer than the watchdog waits, and still does. Until it ends, packets of the queue are dropped.",
        method: "the state of a queue is stormed (SONiC) or shut (NX-OS) in the last reading: critical",
        source: "SONiC, pfcwd show stats; Cisco NX-OS, show queuing pfc-queue detail",
        next: "Look at the host at this port: a hung process or adapter sends pauses without end.",
        severity: Severity::Critical,
        confidence: "certain",
        run: DeviceRun::new(Needs::One, stormed),
        ..NO_TEXTS
    },
    DeviceRule {
        id: "switch.queue_unclassified",
        title: "traffic of RoCE is in the default queue",
        meaning: "The queue of RoCE sends nothing while the port is busy with the default queue: packets have another DSCP, or the port does not trust it.",
        method: "the default queue has 10 % of the port's rate, and RoCE's queue sends nothing: warning",
        source: "the inventory's [cluster] dscp and priority",
        next: "Compare the DSCP of the applications' packets with the policy of the port.",
        severity: Severity::Warning,
        confidence: "likely",
        run: DeviceRun::new(Needs::Two, queue_unclassified),
        ..NO_TEXTS
    },
];

/// One finding for each object whose sum is not zero.
fn each(
    sums: BTreeMap<&str, Amount>,
    severity: Severity,
    name: &'static str,
    text: impl Fn(&str, Amount) -> String,
) -> Vec<FoundSign> {
    let counted = sums.into_iter().filter(|(_, amount)| amount.count > 0.0);
    counted
        .map(|(object, amount)| FoundSign::of_count(severity, object, &text(object, amount), name, amount))
        .collect()
}

fn mmu_drops(facts: &Facts<'_>) -> Vec<FoundSign> {
    let counters = [
        Counter::SwitchMmuDroppedPackets,
        Counter::SwitchPriorityGroupDroppedPackets,
    ];
    let sums = facts.by_object(&counters, |_| true);
    let mut found = each(sums, Severity::Critical, "dropped_packets", |_, amount| {
        format!("{} dropped on ingress", counted(amount.count, "packet"))
    });
    for (sample, amount) in facts
        .counted(Counter::SwitchSliceDroppedPackets)
        .filter(|(_, amount)| amount.count > 0.0)
    {
        let slice = format!("slice {}", detail(sample, 0));
        let text = format!(
            "{} dropped on ingress by {slice}",
            counted(amount.count, "packet")
        );
        found.push(FoundSign::of_count(
            Severity::Critical,
            &slice,
            &text,
            "dropped_packets",
            amount,
        ));
    }
    found
}

fn lossless_queue_drops(facts: &Facts<'_>) -> Vec<FoundSign> {
    let lossless: BTreeSet<(&str, &str)> = facts
        .of(Counter::SwitchQueueNoDrop)
        .filter(|sample| is_on(sample))
        .filter_map(|sample| Some((&*sample.object, sample.queue.as_deref()?)))
        .collect();
    let is_lossless = |sample: &Sample| {
        let queue = sample.queue.as_deref();
        queue.is_some_and(|queue| lossless.contains(&(&*sample.object, queue)))
    };
    let queues = |object: &str| {
        let of = lossless.iter().filter(|(interface, _)| *interface == object);
        listed(of.map(|(_, queue)| *queue))
    };
    let sums = facts.by_object(&[Counter::SwitchQueueDroppedPackets], is_lossless);
    each(sums, Severity::Critical, "dropped_packets", |object, amount| {
        format!(
            "lossless queue {} dropped {}",
            queues(object),
            counted(amount.count, "packet")
        )
    })
}

fn wred_drops(facts: &Facts<'_>) -> Vec<FoundSign> {
    let counter = Counter::SwitchQueueWredDroppedPackets;
    let of_ecn = facts.by_object(&[counter], |sample| detail(sample, 1) == "capable");
    let sums = facts.by_object(&[counter], |_| true);
    each(sums, Severity::Warning, "dropped_packets", |object, amount| {
        let all = counted(amount.count, "packet");
        // Most switches do not count packets with ECT and others apart.
        match of_ecn.get(object) {
            Some(capable) => format!(
                "WRED dropped {all}, {} of them able to be marked",
                whole(capable.count)
            ),
            None => format!("WRED dropped {all}"),
        }
    })
}

/// PFC frames of a kind of interfaces, received and sent together; `None`: none was read.
fn pfc_frames(facts: &Facts<'_>, kind: &str) -> Option<Amount> {
    let sums = |total: Counter, by_priority: Counter| {
        let is_kind = |sample: &Sample| detail(sample, 0) == kind;
        let mut sums = facts.by_object(&[by_priority], is_kind);
        // The sum of all priorities counts where there is one.
        sums.extend(facts.by_object(&[total], is_kind));
        sums.into_values()
    };
    let received = sums(
        Counter::SwitchPfcReceivedFrames,
        Counter::SwitchPriorityPfcReceivedFrames,
    );
    let sent = sums(
        Counter::SwitchPfcTransmittedFrames,
        Counter::SwitchPriorityPfcTransmittedFrames,
    );
    received.chain(sent).reduce(|sum, other| Amount {
        count: sum.count + other.count,
        ..sum
    })
}

fn internal_only(facts: &Facts<'_>) -> Vec<FoundSign> {
    // Ports that were not read may have been paused.
    let (Some(inside), Some(ports)) = (pfc_frames(facts, "internal"), pfc_frames(facts, "port")) else {
        return Vec::new();
    };
    if inside.count <= 0.0 || ports.count > 0.0 {
        return Vec::new();
    }
    let text = format!(
        "{} inside of the switch and none at its ports: hosts were not paused",
        counted(inside.count, "PFC frame")
    );
    vec![FoundSign::of_count(
        Severity::Info,
        "",
        &text,
        "internal_frames",
        inside,
    )]
}

fn llfc_and_pfc(facts: &Facts<'_>) -> Vec<FoundSign> {
    let pfc = facts.priorities(Counter::SwitchPfcEnabled);
    let mut on: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for sample in facts
        .of(Counter::SwitchPauseEnabled)
        .filter(|sample| is_on(sample))
    {
        on.entry(&*sample.object).or_default().insert(detail(sample, 1));
    }
    let both = on.into_iter().filter_map(|(object, directions)| {
        let priorities = pfc.get(object).filter(|priorities| !priorities.is_empty())?;
        let (directions, priorities) = (listed(directions), listed(priorities));
        let text = format!("802.3x pauses ({directions}) and PFC on priority {priorities} are both on");
        Some(FoundSign::new(Severity::Warning, object, text).with(|evidence| {
            evidence
                .text("pause_directions", directions)
                .text("pfc_priorities", priorities);
        }))
    });
    both.collect()
}

fn pfc_other_priority(facts: &Facts<'_>) -> Vec<FoundSign> {
    let wanted = facts.cluster.priority;
    let ports: BTreeSet<&str> = facts
        .of(Counter::SwitchPfcEnabled)
        .filter(|sample| detail(sample, 0) == "port")
        .map(|sample| &*sample.object)
        .collect();
    let all = facts.priorities(Counter::SwitchPfcEnabled);
    let others = all
        .into_iter()
        .filter(|(object, on)| ports.contains(object) && on.iter().any(|one| *one != wanted));
    let found = others.map(|(object, on)| {
        let text = format!(
            "PFC is on for priority {}; the cluster's is {wanted}",
            listed(&on)
        );
        FoundSign::new(Severity::Warning, object, text).with(|evidence| {
            evidence
                .text("pfc_priorities", listed(&on))
                .count("cluster_priority", u64::from(wanted));
        })
    });
    found.collect()
}

/// Policy by which a port's queue has no ECN.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PolicyOf {
    /// The port's own, or that of the switch where no port has one of its own.
    All,
    /// That of the switch, at ports without a policy of their own, beside others that have one.
    Rest,
}

fn ecn_off(facts: &Facts<'_>) -> Vec<FoundSign> {
    // Policies of ports win over that of the system.
    let mut without: BTreeMap<(PolicyOf, String), Vec<&str>> = BTreeMap::new();
    let pfc = facts.priorities(Counter::SwitchPfcEnabled);
    let ports: BTreeSet<&str> = facts
        .of(Counter::SwitchPfcEnabled)
        .filter(|sample| detail(sample, 0) == "port")
        .map(|sample| &*sample.object)
        .filter(|port| pfc.get(port).is_some_and(|priorities| !priorities.is_empty()))
        .collect();
    let has_own_policies = facts.data_classes().any(|class| !class.interface.is_empty());
    for port in &ports {
        if let Some(class) = facts.class_of(port).filter(|class| !class.has_ecn) {
            let is_rest = class.interface.is_empty() && has_own_policies;
            let policy = if is_rest { PolicyOf::Rest } else { PolicyOf::All };
            without
                .entry((policy, class.queue.clone()))
                .or_default()
                .push(port);
        }
    }
    // A port with a policy of its own carries RoCE, whatever is known of its PFC.
    let own = facts
        .data_classes()
        .filter(|class| !class.interface.is_empty() && !class.has_ecn);
    for class in own.filter(|class| !ports.contains(class.interface.as_str())) {
        without
            .entry((PolicyOf::All, class.queue.clone()))
            .or_default()
            .push(&class.interface);
    }
    if ports.is_empty() && !has_own_policies {
        // Ports are not known: the policy of the system is.
        let of_system = facts.data_classes().filter(|class| !class.has_ecn);
        for class in of_system {
            without.entry((PolicyOf::All, class.queue.clone())).or_default();
        }
    }
    let found = without.into_iter().map(|((policy, queue), mut ports)| {
        ports.sort_unstable();
        ports.dedup();
        let object = ports
            .first()
            .filter(|_| ports.len() == 1)
            .copied()
            .unwrap_or_default();
        let at = if ports.is_empty() {
            String::new()
        } else {
            format!(" at {}", named(&ports))
        };
        let why = match policy {
            PolicyOf::All => "",
            PolicyOf::Rest if ports.len() == 1 => {
                ": this port has no queuing policy of its own, and that of the switch does not mark"
            }
            PolicyOf::Rest => {
                ": these ports have no queuing policy of their own, and that of the switch does not mark"
            }
        };
        let text = format!("queue {queue} carries RoCE data and has no ECN{at}{why}");
        FoundSign::new(Severity::Warning, object, text).with(|evidence| {
            evidence.text("queue", queue.as_str());
            if !ports.is_empty() {
                evidence.text("ports", ports.join(", "));
            }
        })
    });
    found.collect()
}

/// The names of some ports, and the number of the others.
fn named(ports: &[&str]) -> String {
    let more = ports.len().saturating_sub(MAX_NAMED_PORTS);
    let mut names: Vec<String> = ports
        .iter()
        .take(MAX_NAMED_PORTS)
        .map(|name| (*name).to_owned())
        .collect();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    listed(&names)
}

fn ecn_above_pfc(facts: &Facts<'_>) -> Vec<FoundSign> {
    let marks = facts
        .of(Counter::SwitchEcnThreshold)
        .filter(|sample| detail(sample, 1) == "min");
    let marks: BTreeMap<(&str, &str), f64> = marks
        .filter_map(|sample| Some(((&*sample.object, sample.queue.as_deref()?), sample.value)))
        .collect();
    let pauses = facts.of(Counter::SwitchQueuePauseThreshold);
    let found = pauses.filter_map(|sample| {
        let queue = sample.queue.as_deref()?;
        // A policy of the whole system has no interface.
        let has_own = facts.has_own_policy(&sample.object);
        let mark = *marks
            .get(&(&*sample.object, queue))
            .or_else(|| marks.get(&("", queue)).filter(|_| !has_own))?;
        (mark >= sample.value).then(|| {
            let text = format!(
                "queue {queue} marks from {} bytes on and pauses from {} bytes on: PFC comes first",
                whole(mark),
                whole(sample.value)
            );
            FoundSign::new(Severity::Warning, &sample.object, text).with(|evidence| {
                evidence
                    .text("queue", queue)
                    .number("ecn_min_bytes", mark)
                    .number("pause_threshold_bytes", sample.value);
            })
        })
    });
    found.collect()
}

fn rdma_strict_priority(facts: &Facts<'_>) -> Vec<FoundSign> {
    let pfc = facts.priorities(Counter::SwitchPfcEnabled);
    // The policy of the switch is in effect at ports without one of their own; which ports there are may not be known.
    let has_rest = pfc.is_empty() || pfc.keys().any(|port| !facts.has_own_policy(port));
    let in_effect = facts
        .data_classes()
        .filter(|class| has_rest || !class.interface.is_empty());
    let found = in_effect.filter_map(|class| {
        let level = class.priority_level?;
        let at = match class.interface.as_str() {
            "" => "by the policy of the switch".to_owned(),
            interface => format!("at {interface}"),
        };
        let text = format!(
            "queue {} carries RoCE data and has strict priority, level {level}, {at}",
            class.queue
        );
        Some(
            FoundSign::new(Severity::Warning, &class.interface, text).with(|evidence| {
                evidence
                    .text("queue", class.queue.as_str())
                    .count("priority_level", u64::from(level));
            }),
        )
    });
    found.collect()
}

fn no_watchdog(facts: &Facts<'_>) -> Vec<FoundSign> {
    let pfc = facts.priorities(Counter::SwitchPfcEnabled);
    let count = pfc.values().filter(|priorities| !priorities.is_empty()).count();
    if facts.now.has_watchdog != Some(false) || count == 0 {
        return Vec::new();
    }
    let text = "PFC is on and its watchdog is off";
    vec![FoundSign::new(Severity::Warning, "", text).with(|evidence| {
        evidence.count("interfaces_with_pfc", count as u64);
    })]
}

fn stormed(facts: &Facts<'_>) -> Vec<FoundSign> {
    let mut by_port: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (interface, queue) in &facts.now.stormed_queues {
        by_port.entry(interface).or_default().push(queue);
    }
    let found = by_port.into_iter().map(|(interface, queues)| {
        let queues = listed(queues);
        let text =
            format!("the PFC watchdog keeps queue {queues} shut now: its neighbour pauses it without end");
        FoundSign::new(Severity::Critical, interface, text).with(|evidence| {
            evidence.text("queues", queues);
        })
    });
    found.collect()
}

fn queue_unclassified(facts: &Facts<'_>) -> Vec<FoundSign> {
    let counter = Counter::SwitchQueueTransmittedBytes;
    let default = facts
        .now
        .queue_of_dscp
        .get(&0)
        .map_or(DEFAULT_QUEUE, String::as_str);
    let in_default = facts.by_object(&[counter], |sample| sample.queue.as_deref() == Some(default));
    let rates: BTreeMap<&str, f64> = facts
        .of(Counter::SwitchInterfaceRate)
        .map(|sample| (&*sample.object, sample.value))
        .collect();
    let mut sent: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for (sample, amount) in facts.counted(counter) {
        if let Some(queue) = sample.queue.as_deref() {
            *sent.entry((&*sample.object, queue)).or_default() += amount.count;
        }
    }
    let found = in_default.into_iter().filter_map(|(object, amount)| {
        let queue = facts.data_queue(object).filter(|queue| queue != default)?;
        // A queue that was not read may have sent.
        let idle = sent
            .get(&(object, queue.as_str()))
            .is_some_and(|bytes| *bytes <= 0.0);
        let is_busy = match amount.rate() {
            Some(rate) => rates
                .get(object)
                .is_some_and(|most| *most > 0.0 && rate >= most * BUSY_SHARE),
            None => amount.is_total() && amount.count >= BUSY_BYTES,
        };
        (idle && is_busy).then(|| {
            let text = format!(
                "the default queue sent {} and queue {queue}, that of RoCE, none",
                counted(amount.count, "byte")
            );
            FoundSign::of_count(Severity::Warning, object, &text, "default_queue_bytes", amount)
        })
    });
    found.collect()
}
