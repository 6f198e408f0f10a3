//! A rule about a device: its texts, and the findings that it gives.

use roce_model::{Evidence, Severity};

use super::facts::{Amount, Facts};

/// Readings that a rule needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// It judges settings and states, for which one reading is enough.
    One,
    /// It judges growth between two readings. From one reading alone it gives findings of the severity info.
    Two,
}

/// A rule: its texts, and the function that judges a device.
#[derive(Debug)]
pub struct DeviceRule {
    /// Its name: `switch.mmu_drops`.
    pub id: &'static str,
    /// What it finds, in a few words.
    pub title: &'static str,
    /// Why it matters.
    pub meaning: &'static str,
    /// The rule: which values give which severity.
    pub rule: &'static str,
    /// Where the rule comes from.
    pub source: &'static str,
    /// What to look at or change next.
    pub next: &'static str,
    /// Readings that it needs.
    pub needs: Needs,
    /// The worst severity that it gives.
    pub severity: Severity,
    /// How sure it is: `certain` or `likely`.
    pub confidence: &'static str,
    /// Judges a device.
    pub(super) run: fn(&Facts<'_>) -> Vec<Found>,
}

/// Something found at one object.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Found {
    pub(super) severity: Severity,
    pub(super) object: String,
    pub(super) text: String,
    pub(super) evidence: Evidence,
}

impl Found {
    pub(super) fn new(severity: Severity, object: &str, text: impl Into<String>) -> Self {
        Self {
            severity,
            object: object.to_owned(),
            text: text.into(),
            evidence: Evidence::default(),
        }
    }

    /// A finding about a count: `severity` where it grew between two readings, info where it is a total.
    pub(super) fn of_count(
        severity: Severity,
        object: &str,
        text: &str,
        name: &'static str,
        amount: Amount,
    ) -> Self {
        let severity = if amount.is_total() {
            severity.min(Severity::Info)
        } else {
            severity
        };
        let mut found = Self::new(severity, object, format!("{text} {}", amount.when()));
        found.evidence.number(name, amount.count);
        if let Some(seconds) = amount.seconds {
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
    /// What to look at or change next.
    pub next: &'static str,
    /// How sure it is: `certain` or `likely`.
    pub confidence: &'static str,
}
