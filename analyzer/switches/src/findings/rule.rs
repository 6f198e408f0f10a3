//! A rule about a device: its texts, and the findings that it gives.

use roce_model::{Evidence, Severity};
use roce_rules::Rule;

use super::facts::{Amount, Facts};

/// Readings that a rule needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// It judges settings and states, for which one reading is enough.
    One,
    /// It judges growth between two readings. From one reading alone it gives findings of the severity info.
    Two,
}

/// A rule about a device: its texts, and what judges the device.
pub type DeviceRule = Rule<DeviceRun>;

/// A function that judges a device by a rule.
#[derive(Clone, Copy, Debug)]
pub struct DeviceRun {
    /// Readings that it needs.
    pub needs: Needs,
    /// Function that finds the signs.
    pub(super) judge: fn(&Facts<'_>) -> Vec<FoundSign>,
}

impl DeviceRun {
    pub(super) const fn new(needs: Needs, judge: fn(&Facts<'_>) -> Vec<FoundSign>) -> Self {
        Self { needs, judge }
    }
}

/// A rule of settings, without texts.
pub(super) const NO_TEXTS: DeviceRule = DeviceRule::judged_by(DeviceRun::new(Needs::One, |_| Vec::new()));

/// Something found at one object.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct FoundSign {
    pub(super) severity: Severity,
    pub(super) object: String,
    pub(super) text: String,
    pub(super) evidence: Evidence,
}

impl FoundSign {
    pub(super) fn new(severity: Severity, object: &str, text: impl Into<String>) -> Self {
        Self {
            severity,
            object: object.to_owned(),
            text: text.into(),
            evidence: Evidence::default(),
        }
    }

    /// A finding about a count: `severity` where it grew between two readings, info where it is a total, or one since a restart.
    pub(super) fn of_count(
        severity: Severity,
        object: &str,
        text: &str,
        name: &'static str,
        amount: Amount,
    ) -> Self {
        let severity = if amount.is_total() || amount.is_since_restart {
            severity.min(Severity::Info)
        } else {
            severity
        };
        let mut found = Self::new(severity, object, format!("{text} {}", amount.when()));
        found.evidence.number(name, amount.count);
        if let Some(seconds) = amount.seconds.filter(|seconds| *seconds > 0.0) {
            found.evidence.number("seconds", seconds);
        }
        found
    }

    pub(super) fn with(mut self, add: impl FnOnce(&mut Evidence)) -> Self {
        add(&mut self.evidence);
        self
    }
}

/// A finding about a device.
#[derive(Clone, PartialEq, Debug)]
pub struct DeviceFinding {
    /// The rule's name.
    pub id: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The switch or hypervisor.
    pub node: String,
    /// Its interface or adapter; empty: the whole device.
    pub object: String,
    /// The finding in words. Names of devices in it are as the device wrote them.
    pub text: String,
    /// The numbers that it was concluded from.
    pub evidence: Evidence,
    /// The next thing to look at or to change.
    pub next: &'static str,
    /// How sure it is: `certain` or `likely`.
    pub confidence: &'static str,
}
