//! Checks of the machine: virtualisation, processors, interrupts, memory, clock.

use serde_json::Value;

use roce_model::Severity;

use crate::doctor::check::{CERTAIN, Check, CheckRun, Outcome, each, host_outcome};
use crate::doctor::facts::{Facts, RdmaDevice, odd};
use crate::doctor::host::Unknown;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "vm",
        title: "virtual machine",
        read: "the flag hypervisor in /proc/cpuinfo",
        method: "in a virtual machine: information",
        meaning: "Pauses, link errors and PFC are those of the hypervisor's port, and are not visible here.",
        symptom: "All counters of the physical port are absent or 0.",
        source: "CPUID leaf 1, ECX bit 31",
        severity: Severity::Info,
        run: CheckRun::new("host", machine),
        ..CERTAIN
    },
    Check {
        id: "numa.nic",
        title: "processors near the adapter are allowed",
        read: "device/numa_node of the RDMA device, cpulist of the node, Cpus_allowed_list in /proc/self/status",
        method: "no allowed processor is on the adapter's node: warning; node -1: information",
        meaning: "Each access across sockets adds latency and shares the link between them.",
        symptom: "Latency and jitter on one of two equal hosts.",
        alternatives: "irq.affinity",
        source: "Linux Documentation/admin-guide/cgroup-v2.rst, cpuset",
        severity: Severity::Warning,
        run: CheckRun::new("host", numa),
        ..CERTAIN
    },
    Check {
        id: "irq.affinity",
        title: "interrupts of the adapter are spread",
        read: "/proc/interrupts, /proc/irq/N/smp_affinity_list of the lines of mlx5",
        method: "several completion interrupts, all on one processor: warning",
        meaning: "One processor then serves all queues.",
        symptom: "Jitter, and one processor busy with interrupts.",
        alternatives: "cpu.governor",
        source: "Linux Documentation/core-api/irq/irq-affinity.rst",
        severity: Severity::Warning,
        run: CheckRun::new("host", interrupts),
        ..CERTAIN
    },
    Check {
        id: "cpu.governor",
        title: "processors run at full clock",
        read: "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        method: "powersave, conservative, ondemand or schedutil: warning; powersave of intel_pstate and amd-pstate in active mode is a dynamic governor: information",
        meaning: "A processor that clocks up first answers late.",
        symptom: "Latency of 52 instead of 14 microseconds, better under load than without.",
        alternatives: "irq.affinity",
        source: "Linux Documentation/admin-guide/pm/cpufreq.rst",
        severity: Severity::Warning,
        run: CheckRun::new("host", governor),
        ..CERTAIN
    },
    Check {
        id: "hugepages",
        title: "huge pages",
        read: "/proc/meminfo, /sys/kernel/mm/transparent_hugepage/enabled",
        method: "always information",
        meaning: "Huge pages make registrations smaller and faster.",
        symptom: "Slow start of programs that register much memory.",
        source: "Linux Documentation/admin-guide/mm/hugetlbpage.rst",
        severity: Severity::Info,
        run: CheckRun::new("host", hugepages),
        ..CERTAIN
    },
    Check {
        id: "clock",
        title: "the clock is synchronised",
        read: "adjtimex(): STA_UNSYNC, estimated error",
        method: "not synchronised: warning; otherwise the estimated error",
        meaning: "Captures of several hosts are joined by their clocks.",
        symptom: "Packets arrive before they were sent.",
        source: "adjtimex(2)",
        severity: Severity::Warning,
        run: CheckRun::new("host", clock),
        ..CERTAIN
    },
    Check {
        id: "sniffer",
        title: "what can be captured",
        read: "the RDMA devices and their drivers",
        method: "always information; `roce-analyze devices` has the details",
        meaning: "RoCE of an adapter bypasses the kernel, so that captures of its interface do not show it.",
        symptom: "A capture without any RoCE.",
        source: "docs/live.md",
        severity: Severity::Info,
        run: CheckRun::new("host", sniffer),
        ..CERTAIN
    },
];

fn machine(facts: &Facts<'_>) -> Vec<Outcome> {
    match facts.is_virtual_machine() {
        Some(true) => vec![
            Outcome::info(
                "host",
                "a virtual machine: pauses and PFC are of the hypervisor's port, not visible here",
            )
            .seen("proc/cpuinfo", "hypervisor"),
        ],
        Some(false) => Vec::new(),
        None => vec![Outcome::unknown(
            "host",
            Unknown {
                source: "/proc/cpuinfo".to_owned(),
                why: "it has no flags".to_owned(),
            },
        )],
    }
}

/// Numbers in a list such as `0-3,8`.
fn list(text: &str) -> Option<Vec<(u32, u32)>> {
    let ranges = text.trim().split(',').filter(|range| !range.is_empty());
    ranges
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
        })
        .collect()
}

fn numa(facts: &Facts<'_>) -> Vec<Outcome> {
    let hardware = facts.devices.iter().filter(|device| device.pci.is_some());
    each(
        hardware,
        |device| device.name.clone(),
        |device| {
            let path = format!("{}/device/numa_node", device.path);
            let node: i32 = facts.host.number(&path)?;
            let name = &device.name;
            if node < 0 {
                return Ok(
                    Outcome::info(name, format!("{name}: its NUMA node is not known to the system"))
                        .seen(&path, node.to_string()),
                );
            }
            let of_node = format!("sys/devices/system/node/node{node}/cpulist");
            let text = facts.host.need(&of_node)?;
            let cpus = list(&text).ok_or_else(|| odd(&of_node, &text))?;
            let status = facts.host.need("proc/self/status")?;
            let allowed = status
                .lines()
                .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            let allowed = allowed
                .and_then(list)
                .ok_or_else(|| odd("proc/self/status", &status))?;
            let both = cpus
                .iter()
                .any(|(first, last)| allowed.iter().any(|(from, to)| first <= to && from <= last));
            Ok(if both {
                Outcome::ok(
                    name,
                    format!("{name}: node {node}, with processors that are allowed"),
                )
            } else {
                Outcome::warning(
                    name,
                    format!("{name} is on node {node}, and no processor of it is allowed here"),
                )
                .expected(format!("processors {text}"))
                .fix(format!("numactl --cpunodebind={node} --membind={node} COMMAND"))
            }
            .seen(&path, node.to_string()))
        },
    )
}

fn interrupts(facts: &Facts<'_>) -> Vec<Outcome> {
    let text = match facts.host.need("proc/interrupts") {
        Ok(text) => text,
        Err(_) if facts.devices.is_empty() => return Vec::new(),
        Err(unknown) => return vec![Outcome::unknown("host", unknown)],
    };
    let hardware = facts
        .devices
        .iter()
        .filter_map(|device| Some((device, device.pci.as_ref()?)));
    each(
        hardware,
        |(device, _)| device.name.clone(),
        |(device, pci)| {
            // `mlx5_comp3@pci:0000:3b:00.0` at the end of a line that starts with the number.
            let lines = text
                .lines()
                .filter(|line| line.contains("_comp") && line.ends_with(&format!("@pci:{pci}")));
            let numbers: Vec<&str> = lines
                .filter_map(|line| Some(line.split_once(':')?.0.trim()))
                .collect();
            if numbers.is_empty() {
                return Err(Unknown {
                    source: "/proc/interrupts".to_owned(),
                    why: format!("it names no completion interrupt of {pci}"),
                });
            }
            let mut places = Vec::new();
            for number in &numbers {
                let path = format!("proc/irq/{number}/smp_affinity_list");
                let place = facts.host.need(&path)?;
                if list(&place).is_none_or(|cpus| cpus.is_empty()) {
                    return Err(odd(&path, &place));
                }
                places.push(place);
            }
            let count = numbers.len();
            places.sort();
            places.dedup();
            let name = &device.name;
            let seen = format!("{count} interrupts on {}", places.join(" "));
            let one = places.len() == 1 && places[0].parse::<u32>().is_ok();
            Ok(if count > 1 && one {
                Outcome::warning(
                    name,
                    format!(
                        "{name}: all {count} completion interrupts are on processor {}",
                        places[0]
                    ),
                )
                .expected("spread over the processors of its node")
                .advice("irqbalance, or set_irq_affinity_bynode.sh of mlnx-tools")
            } else {
                Outcome::ok(name, format!("{name}: {count} completion interrupts are spread"))
            }
            .seen("proc/interrupts", seen))
        },
    )
}

fn governor(facts: &Facts<'_>) -> Vec<Outcome> {
    const FOLDER: &str = "sys/devices/system/cpu/cpu0/cpufreq";
    let path = format!("{FOLDER}/scaling_governor");
    if !facts.host.has(FOLDER) {
        return Vec::new();
    }
    host_outcome(|| {
        let governor = facts.host.need(&path)?;
        let driver = facts
            .host
            .text(&format!("{FOLDER}/scaling_driver"))
            .unwrap_or_default();
        let is_dynamic = ["intel_pstate", "amd-pstate-epp"].contains(&driver.as_str());
        let fix = "cpupower frequency-set -g performance";
        Ok(match governor.as_str() {
            "performance" => Outcome::ok("cpu", "the governor is performance"),
            "powersave" if is_dynamic => Outcome::info(
                "cpu",
                format!("the governor is powersave of {driver}: it clocks up under load"),
            )
            .fix(fix),
            "powersave" | "conservative" | "ondemand" | "schedutil" => {
                Outcome::warning("cpu", format!("the governor is {governor}"))
                    .expected("performance")
                    .fix(fix)
            }
            other => return Err(odd(&path, other)),
        }
        .seen(&path, governor))
    })
}

fn hugepages(facts: &Facts<'_>) -> Vec<Outcome> {
    const PATH: &str = "proc/meminfo";
    host_outcome(|| {
        let text = facts.host.need(PATH)?;
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.trim_start_matches(':').trim().to_owned())
        };
        let total = value("HugePages_Total").ok_or_else(|| odd(PATH, &text))?;
        let enabled = facts.host.text("sys/kernel/mm/transparent_hugepage/enabled");
        let transparent = enabled.as_deref().and_then(|text| {
            let (_, rest) = text.split_once('[')?;
            rest.split_once(']').map(|(word, _)| word)
        });
        Ok(Outcome::info(
            "host",
            format!(
                "{total} huge pages; transparent ones: {}",
                transparent.unwrap_or("not known")
            ),
        )
        .seen(PATH, format!("HugePages_Total {total}")))
    })
}

fn clock(facts: &Facts<'_>) -> Vec<Outcome> {
    const PATH: &str = "answers/clock.json";
    host_outcome(|| {
        let answer = facts.host.json(PATH)?;
        let is_synchronised = answer.get("synchronised").and_then(Value::as_bool);
        let error = answer.get("estimated_error_us").and_then(Value::as_u64);
        let (Some(is_synchronised), Some(error)) = (is_synchronised, error) else {
            return Err(odd(PATH, &answer.to_string()));
        };
        Ok(if is_synchronised {
            Outcome::ok(
                "host",
                format!("the clock is synchronised, estimated error {error} us"),
            )
        } else {
            Outcome::warning(
                "host",
                "the clock is not synchronised: captures of several hosts cannot be joined by it",
            )
            .expected("synchronised by chrony, ntpd, systemd-timesyncd or ptp4l with phc2sys")
            .fix("systemctl enable --now chronyd")
        }
        .seen(PATH, format!("synchronised {is_synchronised}, error {error} us")))
    })
}

fn sniffer(facts: &Facts<'_>) -> Vec<Outcome> {
    if facts.devices.is_empty() {
        return Vec::new();
    }
    let hardware = facts.devices.iter().filter(|device| device.pci.is_some()).count();
    // Soft-RoCE has a parent interface; what has neither that nor a PCI address was not read.
    let is_software = |device: &RdmaDevice| facts.host.has(&format!("{}/parent", device.path));
    if let Some(device) = facts
        .devices
        .iter()
        .find(|device| hardware == 0 && device.board.is_some() && !is_software(device))
    {
        let path = format!("{}/device/uevent", device.path);
        let why = "its PCI device was not read".to_owned();
        let source = format!("/{path}");
        return vec![Outcome::unknown(&device.name, Unknown { source, why })];
    }
    // A text rarely says what is below a device, and adapters in it are no devices.
    let is_device = |device: &RdmaDevice| device.pci.is_some() && !device.ports.is_empty();
    if facts.host.is_partial && !facts.devices.iter().all(is_device) {
        return Vec::new();
    }
    let said = if hardware == 0 {
        "software devices: their interface shows all RoCE".to_owned()
    } else {
        format!(
            "{hardware} hardware devices: their RoCE bypasses the interface; `roce-analyze devices` says how to capture it"
        )
    };
    vec![Outcome::info("host", said).seen("sys/class/infiniband", facts.devices.len().to_string())]
}
