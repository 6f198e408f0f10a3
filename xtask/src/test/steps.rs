//! Names of the steps of `cargo xtask test`.

/// A part of the tests that can be chosen, or left out, by its name.
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
}

pub(super) const FORMAT: Step = Step {
    name: "format",
    title: "format",
};
pub(super) const CLIPPY: Step = Step {
    name: "clippy",
    title: "clippy",
};
pub(super) const TESTS: Step = Step {
    name: "tests",
    title: "tests",
};
pub(super) const ATTACK: Step = Step {
    name: "attack",
    title: "hostile inputs",
};
pub(super) const FAULTS: Step = Step {
    name: "faults",
    title: "calls that fail",
};
pub(super) const PROMETHEUS: Step = Step {
    name: "prometheus",
    title: "metrics, in Prometheus",
};
pub(super) const MCP: Step = Step {
    name: "mcp",
    title: "answers for agents, by another client",
};
pub(super) const OTLP: Step = Step {
    name: "otlp",
    title: "OTLP, by OpenTelemetry's own exporters",
};
pub(super) const GLIBC: Step = Step {
    name: "glibc",
    title: "the C library of Ubuntu 22.04",
};
pub(super) const KERNEL: Step = Step {
    name: "kernel",
    title: "kernel programs",
};
pub(super) const DOCUMENTS: Step = Step {
    name: "documents",
    title: "documents",
};
pub(super) const SCHEMA: Step = Step {
    name: "schema",
    title: "schema",
};
pub(super) const DENY: Step = Step {
    name: "deny",
    title: "dependencies",
};
pub(super) const DATASETS: Step = Step {
    name: "datasets",
    title: "datasets, by an independent reader",
};
pub(super) const ENGINES: Step = Step {
    name: "engines",
    title: "datasets, in other engines",
};
pub(super) const STORE: Step = Step {
    name: "store",
    title: "object stores, and parts in them",
};
pub(super) const FLEET: Step = Step {
    name: "fleet",
    title: "a fleet, on Spark",
};
pub(super) const BROWSER: Step = Step {
    name: "browser",
    title: "reports, in a browser",
};
pub(super) const IMAGE: Step = Step {
    name: "image",
    title: "steps of the container image",
};
pub(super) const PACKAGE: Step = Step {
    name: "package",
    title: "package, in a fresh Debian",
};
pub(super) const WHEEL: Step = Step {
    name: "wheel",
    title: "wheel, in an environment of Python",
};
pub(super) const VM: Step = Step {
    name: "vm",
    title: "vm-test",
};

/// All steps, in their order. `datasets` leaves the datasets that `engines` reads.
pub(super) const STEPS: [&Step; 22] = [
    &FORMAT,
    &CLIPPY,
    &TESTS,
    &ATTACK,
    &FAULTS,
    &PROMETHEUS,
    &MCP,
    &OTLP,
    &GLIBC,
    &KERNEL,
    &DOCUMENTS,
    &SCHEMA,
    &DENY,
    &DATASETS,
    &ENGINES,
    &STORE,
    &FLEET,
    &BROWSER,
    &IMAGE,
    &PACKAGE,
    &WHEEL,
    &VM,
];
