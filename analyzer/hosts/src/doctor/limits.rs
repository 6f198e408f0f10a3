//! Checks of limits of processes, and of containers.

use roce_model::Severity;

use crate::doctor::check::{CERTAIN, Check, CheckResult, CheckRun, Outcome, Status, host_outcome};
use crate::doctor::facts::{Facts, odd};
use crate::doctor::host::{Unknown, source_of};
use crate::doctor::rdma::is_without_rdma;

const LIMITS: &str = "proc/self/limits";
/// CAP_IPC_LOCK (Linux include/uapi/linux/capability.h).
const IPC_LOCK: u32 = 14;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "memlock",
        title: "memory can be registered",
        read: "/proc/self/limits, 'Max locked memory', soft; CAP_IPC_LOCK in /proc/self/status; with --pid, of that process",
        method: "below 64 MiB without CAP_IPC_LOCK: critical; not unlimited: warning; below 64 MiB in a text that does not name capabilities: warning, likely",
        meaning: "RDMA pins the memory that it registers, and pinned memory counts against this limit.",
        symptom: "'ibv_reg_mr: Cannot allocate memory'. Completion errors such as IBV_WC_LOC_PROT_ERR were blamed on this limit as well; they show alike with a translating IOMMU.",
        alternatives: "iommu.mode: neither of the two is the cause before the other is excluded",
        source: "setrlimit(2), RLIMIT_MEMLOCK; Linux drivers/infiniband/core/umem.c",
        severity: Severity::Critical,
        run: CheckRun::new("limits", memlock),
        ..CERTAIN
    },
    Check {
        id: "pod.memlock",
        title: "the container may raise the limit of locked memory",
        read: "/proc/self/limits, 'Max locked memory', hard; CAP_IPC_LOCK",
        method: "hard limit below 64 MiB without CAP_IPC_LOCK: critical; finite: warning",
        meaning: "Above the hard limit, 'ulimit -l unlimited' cannot work. With CAP_IPC_LOCK the limit does not apply to RDMA.",
        symptom: "'ulimit: max locked memory: cannot modify limit: Operation not permitted'.",
        alternatives: "memlock",
        source: "setrlimit(2); Linux drivers/infiniband/core/umem.c",
        severity: Severity::Critical,
        run: CheckRun::new("limits", pod_memlock),
        ..CERTAIN
    },
    Check {
        id: "nofile",
        title: "programs may open many files",
        read: "/proc/self/limits, 'Max open files', soft",
        method: "below 65,536: warning",
        meaning: "NCCL opens sockets and shared memory for each pair of ranks.",
        symptom: "NCCL: 'Too many open files'.",
        source: "NVIDIA NCCL, troubleshooting",
        severity: Severity::Warning,
        run: CheckRun::new("limits", nofile),
        ..CERTAIN
    },
    Check {
        id: "rdma.cgroup",
        title: "the cgroup's limit of RDMA objects is not reached",
        read: "/sys/fs/cgroup/rdma.max, rdma.current",
        method: "current equals the maximum: critical; above 80 % of it: warning",
        meaning: "The cgroup limits device handles and objects of each device.",
        symptom: "'ibv_create_qp: Resource temporarily unavailable'.",
        alternatives: "memlock",
        source: "Linux Documentation/admin-guide/cgroup-v1/rdma.rst",
        severity: Severity::Critical,
        run: CheckRun::new("limits", cgroup),
        ..CERTAIN
    },
    Check {
        id: "container",
        title: "the container has the rights of RDMA",
        read: "/.dockerenv, /run/.containerenv, /proc/1/cgroup, CapEff in /proc/self/status",
        method: "in a container without CAP_IPC_LOCK and with limited locked memory: warning",
        meaning: "Containers drop capabilities and inherit the runtime's limits.",
        symptom: "The same program works on the host.",
        alternatives: "memlock",
        source: "capabilities(7)",
        severity: Severity::Warning,
        run: CheckRun::new("limits", container),
        ..CERTAIN
    },
];

/// One of the two limits in a line of /proc/PID/limits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    Soft,
    Hard,
}

/// Limit in a line of /proc/PID/limits; `None`: unlimited.
fn limit(facts: &Facts<'_>, line: &str, which: Limit) -> Result<Option<u64>, Unknown> {
    let text = facts.host.need(LIMITS)?;
    let found = text.lines().find_map(|text| text.strip_prefix(line));
    let rest = found.ok_or_else(|| odd(LIMITS, &text))?;
    let place = usize::from(which == Limit::Hard);
    match rest.split_whitespace().nth(place) {
        Some("unlimited") => Ok(None),
        Some(word) => word.parse().map(Some).map_err(|_| odd(LIMITS, word)),
        None => Err(odd(LIMITS, rest)),
    }
}

fn said(limit: Option<u64>) -> String {
    limit.map_or_else(|| "unlimited".to_owned(), |bytes| format!("{} KiB", bytes >> 10))
}

const MIN_LOCKED_BYTES: u64 = 64 << 20;

fn locked(facts: &Facts<'_>, which: Limit) -> CheckResult {
    let limit = limit(facts, "Max locked memory", which)?;
    let is_hard = which == Limit::Hard;
    let kind = if is_hard { "hard" } else { "soft" };
    let is_free = facts.has_capability(IPC_LOCK);
    let seen = format!("{kind} limit {}", said(limit));
    let outcome = match (limit, is_free) {
        (None, _) => Outcome::ok("process", "locked memory is unlimited"),
        (Some(_), Some(true)) => Outcome::ok(
            "process",
            format!("locked memory: {seen}; CAP_IPC_LOCK exempts RDMA from it"),
        ),
        // A text has the limit alone: who pasted it asks about it.
        (Some(bytes), None) if bytes < MIN_LOCKED_BYTES && facts.host.is_partial => {
            let said =
                format!("locked memory: {seen}, too little for RDMA unless the process has CAP_IPC_LOCK");
            tight(Status::Warning, said, is_hard).likely()
        }
        (Some(_), None) => Outcome::unknown(
            "process",
            Unknown {
                source: "/proc/self/status".to_owned(),
                why: format!(
                    "locked memory: {seen}; nothing says whether the process has CAP_IPC_LOCK, which exempts it"
                ),
            },
        ),
        (Some(bytes), Some(false)) => {
            let status = if bytes < MIN_LOCKED_BYTES {
                Status::Critical
            } else {
                Status::Warning
            };
            tight(
                status,
                format!("locked memory: {seen}, without CAP_IPC_LOCK"),
                is_hard,
            )
        }
    };
    Ok(outcome.seen(LIMITS, seen))
}

/// A limit of locked memory that is too low, and the commands that raise it.
fn tight(status: Status, said: String, is_hard: bool) -> Outcome {
    Outcome::new(status, "process", said)
        .expected("unlimited, or CAP_IPC_LOCK")
        .fix(if is_hard {
            "echo '* - memlock unlimited' > /etc/security/limits.d/rdma.conf"
        } else {
            "ulimit -l unlimited"
        })
        .advice("services: LimitMEMLOCK=infinity; containers: --ulimit memlock=-1, or --cap-add IPC_LOCK")
}

/// The outcome for processes that use RDMA. Where there is no RDMA, a limit harms nobody yet.
fn process_outcomes(facts: &Facts<'_>, judge: impl Fn() -> CheckResult) -> Vec<Outcome> {
    let mut all = host_outcome(judge);
    if is_without_rdma(facts) {
        for outcome in all.iter_mut().filter(|outcome| outcome.status >= Status::Warning) {
            outcome.status = Status::Info;
            outcome
                .summary
                .push_str("; it matters once there is an RDMA device");
        }
    }
    all
}

fn memlock(facts: &Facts<'_>) -> Vec<Outcome> {
    process_outcomes(facts, || locked(facts, Limit::Soft))
}

fn pod_memlock(facts: &Facts<'_>) -> Vec<Outcome> {
    process_outcomes(facts, || locked(facts, Limit::Hard))
}

fn nofile(facts: &Facts<'_>) -> Vec<Outcome> {
    process_outcomes(facts, || {
        let soft = limit(facts, "Max open files", Limit::Soft)?;
        let shown = soft.map_or_else(|| "unlimited".to_owned(), |files| files.to_string());
        Ok(if soft.is_some_and(|files| files < 65_536) {
            Outcome::warning("process", format!("a process may open {shown} files"))
                .expected("65536 or more")
                .fix("ulimit -n 1048576")
                .fix("echo '* - nofile 1048576' > /etc/security/limits.d/nofile.conf")
        } else {
            Outcome::ok("process", format!("a process may open {shown} files"))
        }
        .seen(LIMITS, shown))
    })
}

fn cgroup(facts: &Facts<'_>) -> Vec<Outcome> {
    const MAX: &str = "sys/fs/cgroup/rdma.max";
    const CURRENT: &str = "sys/fs/cgroup/rdma.current";
    if !facts.host.has(MAX) {
        return Vec::new();
    }
    let values = |text: &str| -> Vec<(String, u64)> {
        let mut all = Vec::new();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let device = words.next().unwrap_or_default();
            for word in words {
                if let Some((kind, value)) = word.split_once('=')
                    && let Ok(value) = value.parse()
                {
                    all.push((format!("{device} {kind}"), value));
                }
            }
        }
        all
    };
    host_outcome(|| {
        let text = facts.host.need(MAX)?;
        if !text.is_empty() && !text.contains('=') {
            return Err(odd(MAX, &text));
        }
        let limits = values(&text);
        let text = facts.host.need(CURRENT)?;
        let current = values(&text);
        if current.is_empty() && !text.is_empty() {
            return Err(odd(CURRENT, &text));
        }
        let used = |name: &str| {
            current
                .iter()
                .find(|(other, _)| other == name)
                .map_or(0, |(_, value)| *value)
        };
        let full: Vec<String> = limits
            .iter()
            .filter(|(name, max)| used(name) >= *max)
            .map(|(name, max)| format!("{name} {max}"))
            .collect();
        let near: Vec<String> = limits
            .iter()
            // Above 80 %.
            .filter(|(name, max)| used(name).saturating_mul(5) > max.saturating_mul(4))
            .map(|(name, max)| format!("{name} {} of {max}", used(name)))
            .collect();
        let advice =
            "as root of the host, write 'DEVICE hca_handle=max hca_object=max' to rdma.max of the cgroup";
        Ok(if !full.is_empty() {
            Outcome::critical("cgroup", format!("the limit is reached: {}", full.join(", ")))
                .expected("max")
                .advice(advice)
        } else if !near.is_empty() {
            Outcome::warning("cgroup", format!("near the limit: {}", near.join(", "))).advice(advice)
        } else {
            Outcome::ok("cgroup", "no limit of RDMA objects is near")
        }
        .seen(MAX, format!("{} limits", limits.len())))
    })
}

/// True in a container.
fn is_container(facts: &Facts<'_>) -> Result<bool, Unknown> {
    const CGROUP: &str = "proc/1/cgroup";
    if facts.host.has(".dockerenv") || facts.host.has("run/.containerenv") {
        return Ok(true);
    }
    let text = facts.host.need(CGROUP)?;
    if text.is_empty() {
        let why = "it is empty: no cgroup is mounted".to_owned();
        return Err(Unknown {
            source: source_of(CGROUP),
            why,
        });
    }
    let words = ["docker", "kubepods", "containerd", "libpod", "lxc"];
    Ok(words.iter().any(|word| text.contains(word)))
}

fn container(facts: &Facts<'_>) -> Vec<Outcome> {
    match is_container(facts) {
        Ok(false) => return Vec::new(),
        Err(unknown) => return vec![Outcome::unknown("host", unknown)],
        Ok(true) => {}
    }
    process_outcomes(facts, || {
        let soft = limit(facts, "Max locked memory", Limit::Soft)?;
        let Some(has) = facts.has_capability(IPC_LOCK) else {
            return Err(odd("proc/self/status", ""));
        };
        let seen = format!(
            "CAP_IPC_LOCK {}, locked memory {}",
            if has { "yes" } else { "no" },
            said(soft)
        );
        Ok(if !has && soft.is_some() {
            Outcome::warning(
                "container",
                "a container without CAP_IPC_LOCK and with limited locked memory",
            )
            .expected("CAP_IPC_LOCK, or unlimited locked memory")
            .advice(
                "docker run --cap-add IPC_LOCK ...; Kubernetes: securityContext.capabilities.add: [IPC_LOCK]",
            )
        } else {
            Outcome::info(
                "container",
                "this is a container, with the rights that RDMA needs",
            )
        }
        .seen("proc/self/status", seen))
    })
}
