//! Rules about hypervisors.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::{Counter, Sample, Severity};

use super::facts::{Amount, Facts, detail, is_on, listed};
use super::rule::{DeviceRule, DeviceRun, FoundSign, NO_TEXTS, Needs};
use roce_spelling::counted;

/// Share by which twice the transitions and the frames may differ where pauses come in pairs of XOFF and XON.
const PAIR_DIFFERENCE: f64 = 0.01;
/// The driver whose parameters are known, and the two of PFC.
const MODULE: &str = "nmlx5_core";
const PARAMETERS: [&str; 2] = ["nmlx5_core.pfctx", "nmlx5_core.pfcrx"];

pub(super) const RULES: &[DeviceRule] = &[
    DeviceRule {
        id: "hypervisor.global_pause_instead_of_pfc",
        title: "802.3x pauses are used where PFC is wanted",
        meaning: "These pauses stop the whole link, not one priority. They are no sign that PFC works, although their counters look alike.",
        method: "802.3x is on, or its frames grow, and PFC is off on all priorities: warning",
        source: "Linux Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst; esxcli network nic pauseParams, dcb status",
        next: "Turn PFC on at the adapter (module parameters, or DCBX with the switch) and 802.3x off at both ends.",
        severity: Severity::Warning,
        confidence: "certain",
        run: DeviceRun::new(Needs::Two, global_pause_instead_of_pfc),
        ..NO_TEXTS
    },
    DeviceRule {
        id: "hypervisor.pfc_not_negotiated",
        title: "the adapter and the switch did not agree on PFC",
        meaning: "The adapter is not in IEEE mode and has PFC on no priority: DCBX found no partner that speaks it.",
        method: "DCB mode CEE or unknown, and PFC off on all priorities: warning",
        source: "IEEE 802.1Q clause 38 (DCBX); esxcli network nic dcb status get",
        next: "Look whether LLDP with IEEE DCBX runs at the switch's port, or set PFC by module parameters.",
        severity: Severity::Warning,
        confidence: "certain",
        run: DeviceRun::new(Needs::One, pfc_not_negotiated),
        ..NO_TEXTS
    },
    DeviceRule {
        id: "hypervisor.pause_storm",
        title: "the adapter noticed a storm of pauses",
        meaning: "The adapter paused its neighbour longer than its driver allows. At an error it stops sending pauses.",
        method: "events of severity error between two readings: critical; of severity warning: warning",
        source: "mlx5 counters tx_pause_storm_warning_events and tx_pause_storm_error_events",
        next: "Look for a virtual machine or a PCIe slot that does not take its packets.",
        severity: Severity::Critical,
        confidence: "certain",
        run: DeviceRun::new(Needs::Two, pause_storm),
        ..NO_TEXTS
    },
    DeviceRule {
        id: "hypervisor.drops",
        title: "an adapter drops packets",
        meaning: "Packets that the adapter drops are lost for RoCE, whatever PFC does at the switch.",
        method: "packets dropped between two readings: warning",
        source: "esxcli network nic stats get",
        next: "Compare with the counters of the switch's port and of the virtual machine.",
        severity: Severity::Warning,
        confidence: "certain",
        run: DeviceRun::new(Needs::Two, drops),
        ..NO_TEXTS
    },
    DeviceRule {
        id: "hypervisor.uneven",
        title: "adapters of one hypervisor differ in PFC",
        meaning: "Virtual machines of one host get lossless and lossy links, by the adapter that they happen to have.",
        method: "PFC on different priorities at two adapters of one driver whose links are up: warning",
        source: "esxcli network nic dcb status get",
        next: "Compare the switch's ports of these adapters, and their module parameters.",
        severity: Severity::Warning,
        confidence: "likely",
        run: DeviceRun::new(Needs::One, uneven),
        ..NO_TEXTS
    },
    DeviceRule {
        id: "hypervisor.module_parameters",
        title: "the driver is not set to use PFC",
        meaning: "Without pfctx and pfcrx the driver nmlx5_core uses 802.3x, which is ESXi's default.",
        method: "pfctx or pfcrx without the bit of the cluster's priority, and no PFC on that priority by DCBX: warning",
        source: "NVIDIA, driver nmlx5_core for VMware ESXi: module parameters pfctx and pfcrx",
        next: "esxcli system module parameters set -m nmlx5_core -p \"pfctx=0x08 pfcrx=0x08\" for priority 3; it needs a restart of the host.",
        severity: Severity::Warning,
        confidence: "certain",
        run: DeviceRun::new(Needs::One, module_parameters),
        ..NO_TEXTS
    },
];

/// Adapters whose PFC was read and is off on all priorities.
fn without_pfc<'a>(facts: &Facts<'a>) -> BTreeSet<&'a str> {
    let pfc = facts.priorities(Counter::HypervisorPfcEnabled).into_iter();
    pfc.filter(|(_, on)| on.is_empty())
        .map(|(object, _)| object)
        .collect()
}

fn global_pause_instead_of_pfc(facts: &Facts<'_>) -> Vec<FoundSign> {
    let counters = [
        Counter::HypervisorPauseReceivedFrames,
        Counter::HypervisorPauseTransmittedFrames,
    ];
    let frames = facts.by_object(&counters, |_| true);
    let mut on: BTreeSet<&str> = BTreeSet::new();
    on.extend(
        facts
            .of(Counter::HypervisorPauseEnabled)
            .filter(|sample| is_on(sample))
            .map(|sample| &*sample.object),
    );
    let none = Amount {
        is_since_restart: false,
        count: 0.0,
        seconds: None,
    };
    let mut found = Vec::new();
    for object in without_pfc(facts) {
        let amount = frames.get(object).copied().unwrap_or(none);
        let is_on = on.contains(object);
        if amount.count <= 0.0 && !is_on {
            continue;
        }
        let state = if is_on {
            "802.3x is on and PFC is off"
        } else {
            "PFC is off"
        };
        let text = format!("{state}; {}", counted(amount.count, "802.3x pause frame"));
        let mut of = FoundSign::of_count(Severity::Warning, object, &text, "pause_frames", amount);
        if is_on {
            // The setting is known from one reading.
            of.severity = Severity::Warning;
        }
        if let Some((received, transitions)) = pairs_of(facts, object) {
            of.text
                .push_str("; twice the transitions are the frames received: XOFF and XON in pairs");
            of.evidence
                .number("received_in_total", received)
                .number("transitions_in_total", transitions);
        }
        found.push(of);
    }
    found
}

/// Frames and transitions of 802.3x that an adapter received in total, where the one is twice the other.
fn pairs_of(facts: &Facts<'_>, object: &str) -> Option<(f64, f64)> {
    let total = |counter| facts.now.sum(counter, object).filter(|count| *count > 0.0);
    let received = total(Counter::HypervisorPauseReceivedFrames)?;
    let transitions = total(Counter::HypervisorPauseTransitions)?;
    let is_pair = (2.0 * transitions - received).abs() <= received * PAIR_DIFFERENCE;
    is_pair.then_some((received, transitions))
}

fn pfc_not_negotiated(facts: &Facts<'_>) -> Vec<FoundSign> {
    let without = without_pfc(facts);
    let modes = facts
        .of(Counter::HypervisorDcbMode)
        .filter(|sample| is_on(sample));
    let modes = modes.filter(|sample| detail(sample, 0) != "ieee" && without.contains(&*sample.object));
    let found = modes.map(|sample| {
        let mode = detail(sample, 0);
        let text = format!("DCB mode {} and PFC is off", mode.to_ascii_uppercase());
        FoundSign::new(Severity::Warning, &sample.object, text).with(|evidence| {
            evidence.text("dcb_mode", mode);
        })
    });
    found.collect()
}

fn pause_storm(facts: &Facts<'_>) -> Vec<FoundSign> {
    let mut found = Vec::new();
    for (kind, severity) in [("error", Severity::Critical), ("warning", Severity::Warning)] {
        let is_kind = |sample: &Sample| detail(sample, 0) == kind;
        for (object, amount) in facts.by_object(&[Counter::HypervisorPauseStormEvents], is_kind) {
            if amount.count > 0.0 {
                let text = format!("{} of severity {kind}", counted(amount.count, "pause storm"));
                found.push(FoundSign::of_count(
                    severity,
                    object,
                    &text,
                    "storm_events",
                    amount,
                ));
            }
        }
    }
    found
}

fn drops(facts: &Facts<'_>) -> Vec<FoundSign> {
    let sums = facts.by_object(&[Counter::HypervisorDroppedPackets], |_| true);
    let lost = sums.into_iter().filter(|(_, amount)| amount.count > 0.0);
    let found = lost.map(|(object, amount)| {
        let text = format!("{} dropped", counted(amount.count, "packet"));
        FoundSign::of_count(Severity::Warning, object, &text, "dropped_packets", amount)
    });
    found.collect()
}

fn uneven(facts: &Facts<'_>) -> Vec<FoundSign> {
    let down: BTreeSet<&str> = facts
        .of(Counter::HypervisorNicUp)
        .filter(|sample| !is_on(sample))
        .map(|sample| &*sample.object)
        .collect();
    let driver = |object: &str| {
        let adapter = facts.now.adapters.iter().find(|adapter| adapter.name == object);
        adapter.map_or("", |adapter| adapter.driver.as_str())
    };
    let mut by_driver: BTreeMap<&str, BTreeMap<BTreeSet<u8>, Vec<&str>>> = BTreeMap::new();
    for (object, on) in facts.priorities(Counter::HypervisorPfcEnabled) {
        if !down.contains(object) {
            by_driver
                .entry(driver(object))
                .or_default()
                .entry(on)
                .or_default()
                .push(object);
        }
    }
    let uneven = by_driver.into_values().filter(|kinds| kinds.len() > 1);
    let found = uneven.map(|kinds| {
        let said = kinds.into_iter().map(|(on, objects)| {
            let objects = listed(objects);
            if on.is_empty() {
                format!("{objects}: off")
            } else {
                format!("{objects}: priority {}", listed(&on))
            }
        });
        let said = said.collect::<Vec<_>>().join("; ");
        FoundSign::new(
            Severity::Warning,
            "",
            format!("PFC differs between adapters: {said}"),
        )
        .with(|evidence| {
            evidence.text("pfc", said);
        })
    });
    found.collect()
}

/// The priorities of a parameter such as `0x08`, as bits. A parameter that is not set has none.
fn bits_of(text: &str) -> Option<u64> {
    let text = text.trim();
    if text.is_empty() {
        return Some(0);
    }
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn module_parameters(facts: &Facts<'_>) -> Vec<FoundSign> {
    let priority = facts.cluster.priority;
    let pfc = facts.priorities(Counter::HypervisorPfcEnabled);
    let mut adapters = facts
        .now
        .adapters
        .iter()
        .filter(|adapter| adapter.driver == MODULE)
        .peekable();
    let has_adapters = adapters.peek().is_some();
    // DCBX turns PFC on without parameters.
    let has_pfc = adapters.all(|adapter| {
        pfc.get(adapter.name.as_str())
            .is_some_and(|on| on.contains(&priority))
    });
    if !has_adapters || has_pfc {
        return Vec::new();
    }
    let bit = 1u64.checked_shl(u32::from(priority)).unwrap_or(0);
    let wrong = PARAMETERS.into_iter().filter_map(|name| {
        let text = facts.now.settings.get(name)?;
        let bits = bits_of(text)?;
        (bits & bit == 0).then_some((name, text.as_str()))
    });
    let wrong: Vec<(&str, &str)> = wrong.collect();
    if wrong.is_empty() {
        return Vec::new();
    }
    let shown = wrong.iter().map(|(name, text)| match *text {
        "" => format!("{name} is not set"),
        text => format!("{name} is {text}"),
    });
    let text = format!("{}: no PFC on priority {priority}", listed(shown));
    vec![FoundSign::new(Severity::Warning, "", text).with(|evidence| {
        for (name, text) in wrong {
            let name = if name.ends_with("pfctx") { "pfctx" } else { "pfcrx" };
            evidence.text(name, text);
        }
    })]
}
