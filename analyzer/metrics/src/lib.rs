//! Samples in the text formats of Prometheus (0.0.4) and OpenMetrics (1.0).
//!
//! An [`Exposition`] gathers values under the families of [`Family`], with few and bounded labels, and writes them. Values that are not
//! known have no series: absent is never 0. Counters are written as the device has them; who scrapes notices resets.
//!
//! The crates prometheus-client (0.24) and metrics-exporter-prometheus (0.17) keep the values of the process that they are linked into. These
//! values belong to devices: they come, fall and vanish with them.

mod dashboards;
mod exposition;
mod families;
mod family;
mod files;
#[cfg(test)]
mod names;
mod rules;

pub use dashboards::{
    DASHBOARDS, Dashboard, Kind, PROVISIONING, Panel, Section, readme as dashboards_readme,
};
pub use exposition::{Buckets, Exposition, Format, Label, end, joined};
pub use families::*;
pub use family::{Family, MetricKind};
pub use files::{ALERTMANAGER, DeviceJob, EXAMPLE_TARGETS, SYSTEMD, scrape_config};
pub use rules::{compatible, rules};
