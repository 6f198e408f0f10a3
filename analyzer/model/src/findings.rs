//! Findings: verdicts over a run, with what they rest on.

use std::borrow::Cow;

use crate::events::names;
use crate::table::table;
use crate::{Confidence, Evidence, NameList, Time};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    FindingRow, FindingColumns, "findings", "One verdict over the run.";
    id: &'static str, "", "The rule: `roce-analyze explain ID` prints its meaning and source.";
    severity: Severity, "", "Severity: ok, info, warning, critical.";
    summary: Cow<'static, str>, "", "The verdict in a sentence.";
    evidence: Evidence, "", "The numbers of the verdict, as a JSON object.";
    confidence: Confidence, "", "Confidence in the verdict: high, medium, low.";
    next_step: Cow<'static, str>, "", "Next thing to check.";
    first_time: Option<Time>, "ns", "Time of the first evidence. Absent where it is about the whole run.";
    last_time: Option<Time>, "ns", "Time of the last evidence. Absent where first_time is.";
    waited_ns: Option<u64>, "ns", "Its price: time that flows waited, each moment of a flow once; of a root, with what it explains. Absent where it is not about waiting.";
    explains: NameList, "", "Findings that follow from this one, by id. As text they are separated by spaces.";
    explained_by: NameList, "", "Findings that this one follows from, by id. It is a root without any.";
    victims: NameList, "", "At most 8 addresses of hosts that suffered, with `[rankN]` where a rank is known.";
    aggressors: NameList, "", "At most 8 addresses of hosts that caused it, written alike. Empty: the packets name none.";
    concerns_shown: Option<bool>, "", "With --flow: true if the rule also fires for the shown flows alone. The finding is about all traffic. Absent without --flow.";
}

names! {
    /// How bad a finding is, the best first.
    #[derive(PartialOrd, Ord)]
    Severity {
        /// Things work as they should.
        #[default]
        Ok = "ok",
        /// Good to know.
        Info = "info",
        /// Something works worse than it could.
        Warning = "warning",
        /// Something is broken.
        Critical = "critical",
    }
}

impl Severity {
    /// The severity of this name, as `--fail-on` takes it.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|severity| severity.name() == name)
    }

    /// The worst one among `findings`; `None` without any.
    pub fn worst(findings: &[FindingRow]) -> Option<Self> {
        findings.iter().map(|finding| finding.severity).max()
    }
}

impl crate::Value for Evidence {
    type StoredValue = Cow<'static, str>;
    const KIND: crate::ColumnType = crate::ColumnType::Text;

    fn stored(&self) -> Self::StoredValue {
        Cow::Owned(self.to_string())
    }

    fn cell(&self) -> crate::Cell<'_> {
        crate::Cell::Evidence(self)
    }

    fn from_cell(cell: crate::Cell<'_>) -> Option<Self> {
        match cell {
            crate::Cell::Evidence(evidence) => Some(evidence.clone()),
            _ => None,
        }
    }

    fn data<'a>(column: &'a crate::Values<Self::StoredValue>) -> crate::Data<'a> {
        crate::Data::Text(column)
    }
}

impl FindingRow {
    /// True if no other finding explains it.
    pub fn is_root(&self) -> bool {
        self.explained_by.0.is_empty()
    }
}

impl crate::Value for NameList {
    type StoredValue = Cow<'static, str>;
    const KIND: crate::ColumnType = crate::ColumnType::Text;

    fn stored(&self) -> Self::StoredValue {
        Cow::Owned(self.to_string())
    }

    fn cell(&self) -> crate::Cell<'_> {
        crate::Cell::Names(self)
    }

    fn from_cell(cell: crate::Cell<'_>) -> Option<Self> {
        match cell {
            crate::Cell::Names(names) => Some(names.clone()),
            crate::Cell::Text(text) => Some(Self(
                text.split_whitespace()
                    .map(|name| Cow::Owned(name.to_owned()))
                    .collect(),
            )),
            // Documents of earlier versions have none.
            crate::Cell::Null => Some(Self::default()),
            _ => None,
        }
    }

    fn data<'a>(column: &'a crate::Values<Self::StoredValue>) -> crate::Data<'a> {
        crate::Data::Text(column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severities_have_an_order_and_names() {
        assert!(Severity::Ok < Severity::Info && Severity::Info < Severity::Warning);
        assert!(Severity::Warning < Severity::Critical);
        for severity in Severity::ALL {
            assert_eq!(Severity::named(severity.name()), Some(*severity));
        }
        assert_eq!(Severity::named("Warning"), None);
        let finding = |severity| FindingRow {
            severity,
            ..FindingRow::default()
        };
        let findings = [
            finding(Severity::Info),
            finding(Severity::Warning),
            finding(Severity::Ok),
        ];
        assert_eq!(Severity::worst(&findings), Some(Severity::Warning));
        assert_eq!(Severity::worst(&[]), None);
    }

    #[test]
    fn names_are_read_from_lists_and_texts() {
        use crate::{Cell, Value as _};
        let names = NameList(vec!["incast".into(), "loss.network".into()]);
        assert_eq!(NameList::from_cell(names.cell()), Some(names.clone()));
        assert_eq!(
            NameList::from_cell(Cell::Text("incast loss.network")),
            Some(names)
        );
        assert_eq!(NameList::from_cell(Cell::Null), Some(NameList::default()));
        assert_eq!(NameList::from_cell(Cell::Bool(true)), None);
    }

    #[test]
    fn evidence_is_a_json_object() {
        let mut evidence = Evidence::default();
        evidence
            .count("ce", 12)
            .number("share", 0.25)
            .number("none", f64::NAN)
            .text("host", "a \"b\" \\ \n");
        assert_eq!(
            evidence.to_string(),
            r#"{"ce":12,"share":0.25,"none":null,"host":"a \"b\" \\ \u000a"}"#
        );
        assert_eq!(Evidence::default().to_string(), "{}");
    }
}
