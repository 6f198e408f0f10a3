//! Dashboards for Grafana, as JSON: made from the description of their panels (`dashboards/panels.rs`).
//!
//! Nothing of one site is in them. The data source, the cluster, the job and the host are variables.

mod panel;
mod panels;

use std::fmt::Write as _;

use serde_json::{Value, json};

pub use panel::{Dashboard, Kind, Panel, Section};
pub use panels::DASHBOARDS;

/// Number of columns of Grafana's grid.
const COLUMNS: u32 = 24;
const HOSTS: &str = "cluster=~\"$cluster\",job=~\"$job\",instance=~\"$host\"";
const SWITCHES: &str = "cluster=~\"$cluster\",switch=~\"$switch\"";

impl Kind {
    /// Grafana's name of it.
    fn name(self) -> &'static str {
        match self {
            Self::Stat => "stat",
            Self::Series => "timeseries",
            Self::Heatmap => "heatmap",
            Self::Table => "table",
        }
    }

    /// Width and height on the grid.
    fn size(self) -> (u32, u32) {
        match self {
            Self::Stat => (4, 4),
            Self::Series | Self::Heatmap => (12, 8),
            Self::Table => (24, 8),
        }
    }
}

/// An expression with its selectors.
fn expression(text: &str) -> String {
    let mut text = text.to_owned();
    for (mark, selector) in [("%H", HOSTS), ("%S", SWITCHES)] {
        text = text
            .replace(&format!("{mark}{{"), &format!("{{{selector},"))
            .replace(mark, &format!("{{{selector}}}"));
    }
    text
}

fn source() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

/// How all dashboards come into Grafana, for the folder that they are written into.
pub fn readme() -> String {
    let mut text = "# Dashboards of roce-analyze\n\n\
        | file | uid | title |\n|---|---|---|\n"
        .to_owned();
    for dashboard in DASHBOARDS {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | `{}` | {} |",
            dashboard.file(),
            dashboard.uid(),
            dashboard.title
        );
    }
    text.push_str(
        "\nBy hand: Dashboards, New, Import, and choose a file. Data source, cluster, job and host are variables at the top.\n\n\
        By files: copy the JSON files to `/var/lib/grafana/dashboards/roce`, `provisioning.yml` to \
        `/etc/grafana/provisioning/dashboards`, and restart Grafana.\n\n\
        The uid of a dashboard stays the same in all versions. An import of a newer file replaces the dashboard of that uid, \
        and links to `/d/UID` stay valid.\n",
    );
    text
}

impl Dashboard {
    /// Its identity in Grafana. It never changes: links and later imports go by it.
    pub fn uid(&self) -> String {
        format!("roce-{}", self.name)
    }

    /// The name of its file.
    pub fn file(&self) -> String {
        format!("roce-{}.json", self.name)
    }

    /// Its JSON.
    pub fn json(&self) -> String {
        let dashboard = json!({
            "uid": self.uid(),
            "title": self.title,
            "tags": ["roce"],
            "timezone": "browser",
            "schemaVersion": 39,
            "version": 1,
            "editable": true,
            "graphTooltip": 1,
            "refresh": "30s",
            "time": { "from": "now-1h", "to": "now" },
            "templating": { "list": self.variables() },
            "annotations": { "list": annotations() },
            "links": [{ "type": "dashboards", "tags": ["roce"], "title": "RoCE", "asDropdown": true, "keepTime": true, "includeVars": true }],
            "panels": self.panels(),
        });
        format!("{dashboard:#}\n")
    }

    fn variables(&self) -> Vec<Value> {
        let mut list = vec![
            json!({ "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus" }),
            variable(
                "cluster",
                "Cluster",
                "label_values(roce_collector_success, cluster)",
            ),
            variable(
                "job",
                "Job",
                "label_values(roce_collector_success{cluster=~\"$cluster\"}, job)",
            ),
            variable(
                "host",
                "Host",
                "label_values(roce_collector_success{cluster=~\"$cluster\",job=~\"$job\"}, instance)",
            ),
        ];
        if self.switches {
            list.push(variable(
                "switch",
                "Switch",
                "label_values(roce_switch_up{cluster=~\"$cluster\"}, switch)",
            ));
        }
        list
    }

    fn panels(&self) -> Vec<Value> {
        let mut panels = Vec::new();
        let (mut id, mut top) = (0, 0);
        for (index, section) in self.sections.iter().enumerate() {
            id += 1;
            let is_open = index == 0;
            let row = id;
            let (mut left, mut height, mut y) = (0, 0, top + 1);
            let mut inside = Vec::new();
            for panel in section.panels {
                let (width, high) = panel.kind.size();
                if left + width > COLUMNS || (left > 0 && high != height) {
                    (left, y) = (0, y + height);
                }
                id += 1;
                inside.push(panel.json(id, &json!({ "x": left, "y": y, "w": width, "h": high })));
                (left, height) = (left + width, high);
            }
            let end = y + height;
            let mut row = json!({
                "id": row,
                "type": "row",
                "title": section.title,
                "collapsed": !is_open,
                "gridPos": { "x": 0, "y": top, "w": COLUMNS, "h": 1 },
            });
            // The panels of a row that is closed are in it and take no place.
            if is_open {
                row["panels"] = json!([]);
                panels.push(row);
                panels.append(&mut inside);
                top = end;
            } else {
                row["panels"] = Value::Array(inside);
                panels.push(row);
                top += 1;
            }
        }
        panels
    }
}

impl Panel {
    fn json(&self, id: u32, place: &Value) -> Value {
        let is_table = self.kind == Kind::Table;
        let targets = self.queries.iter().zip('A'..).map(|((expr, legend), letter)| {
            json!({
                "refId": letter.to_string(),
                "datasource": source(),
                "expr": expression(expr),
                "legendFormat": if legend.is_empty() { "__auto" } else { legend },
                "instant": is_table,
                "range": !is_table,
                "format": if is_table { "table" } else { "time_series" },
            })
        });
        let mut steps = vec![json!({ "color": "green", "value": null })];
        let colors = if self.limits.len() == 1 {
            &["red"][..]
        } else {
            &["yellow", "red"]
        };
        steps.extend(
            self.limits
                .iter()
                .zip(colors)
                .map(|(limit, color)| json!({ "color": color, "value": limit })),
        );
        let mut custom = json!({});
        if self.kind == Kind::Series && !self.limits.is_empty() {
            custom = json!({ "thresholdsStyle": { "mode": "line" } });
        }
        let mut panel = json!({
            "id": id,
            "type": self.kind.name(),
            "title": self.title,
            "description": self.about,
            "datasource": source(),
            "gridPos": place,
            "targets": targets.collect::<Vec<_>>(),
            "fieldConfig": {
                "defaults": { "unit": self.unit, "custom": custom, "thresholds": { "mode": "absolute", "steps": steps } },
                "overrides": [],
            },
        });
        if self.kind == Kind::Heatmap {
            panel["options"] = json!({ "calculate": true });
        }
        panel
    }
}

fn variable(name: &str, label: &str, query: &str) -> Value {
    json!({
        "name": name,
        "label": label,
        "type": "query",
        "datasource": source(),
        "query": { "query": query, "refId": "values" },
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": true,
        "includeAll": true,
        // A label that is not there fits, too.
        "allValue": ".*",
        "current": { "text": ["All"], "value": ["$__all"] },
    })
}

fn annotations() -> Vec<Value> {
    let annotation = |name: &str, color: &str, expr: &str, title: &str| {
        json!({
            "name": name,
            "datasource": source(),
            "enable": true,
            "iconColor": color,
            "expr": expression(expr),
            "step": "60s",
            "titleFormat": title,
        })
    };
    vec![
        annotation(
            "Findings of live runs",
            "orange",
            "roce_live_finding%H{severity=~\"warning|critical\"} == 1",
            "{{instance}}: {{id}}",
        ),
        annotation(
            "Ports down",
            "red",
            "roce_port_up%H == 0",
            "{{instance}} {{device}}:{{port}} is down",
        ),
    ]
}

/// The file by which Grafana finds dashboards in a folder.
pub const PROVISIONING: &str = "\
# For Grafana: copy it to provisioning/dashboards, and the roce-*.json files to the folder that it names.
apiVersion: 1
providers:
  - name: roce-analyze
    folder: RoCE
    type: file
    options:
      path: /var/lib/grafana/dashboards/roce
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{is_of_pauses, is_of_pfc, metrics_in};
    use crate::rules::GROUPS;
    use std::collections::BTreeSet;

    fn all() -> impl Iterator<Item = (&'static Dashboard, &'static Panel)> {
        let sections = DASHBOARDS
            .iter()
            .flat_map(|dashboard| dashboard.sections.iter().map(move |section| (dashboard, section)));
        sections.flat_map(|(dashboard, section)| section.panels.iter().map(move |panel| (dashboard, panel)))
    }

    #[test]
    fn every_metric_is_exported_or_recorded() {
        let recorded: BTreeSet<&str> = GROUPS
            .iter()
            .flat_map(|group| group.rules)
            .map(|rule| rule.name)
            .collect();
        for (dashboard, panel) in all() {
            for (expr, _) in panel.queries {
                for name in metrics_in(expr) {
                    let is_known = recorded.contains(name) || crate::is_exported(name);
                    assert!(is_known, "{}, {}: {name}", dashboard.name, panel.title);
                }
            }
        }
    }

    #[test]
    fn no_panel_mixes_pfc_and_pauses_of_the_link() {
        for (dashboard, panel) in all() {
            let names: Vec<&str> = panel
                .queries
                .iter()
                .flat_map(|(expr, _)| metrics_in(expr))
                .collect();
            let pfc = names.iter().any(|name| is_of_pfc(name));
            let pauses = names.iter().any(|name| is_of_pauses(name));
            assert!(!(pfc && pauses), "{}, {}", dashboard.name, panel.title);
            assert!(
                !pfc || panel.title.contains("PFC"),
                "{}: names its mechanism",
                panel.title
            );
            assert!(
                !pauses || panel.title.contains("802.3x"),
                "{}: names its mechanism",
                panel.title
            );
        }
    }

    #[test]
    fn panels_are_described_and_nothing_is_of_one_site() {
        for (dashboard, panel) in all() {
            assert!(
                panel.about.ends_with('.') && !panel.unit.is_empty(),
                "{}, {}",
                dashboard.name,
                panel.title
            );
            for (expr, _) in panel.queries {
                // Counters are shown as rates or increases.
                for (at, _) in expr.match_indices("_total") {
                    let rest = expr[at + "_total".len()..].trim_start_matches(|character| character != '[');
                    let counts = panel.kind == Kind::Table || rest.starts_with("[$__r");
                    assert!(counts, "{}, {}: {expr}", dashboard.name, panel.title);
                }
            }
        }
        for dashboard in DASHBOARDS {
            let text = dashboard.json();
            assert!(
                !text.contains("eth0") && !text.contains("ens1") && !text.contains("mlx5_"),
                "{}",
                dashboard.name
            );
            let value: Value = serde_json::from_str(&text).unwrap();
            assert!(value.get("id").is_none());
            // The data source is the variable everywhere.
            for (at, _) in text.match_indices("\"datasource\": {") {
                assert!(
                    text[at..].starts_with("\"datasource\": {\n"),
                    "{}",
                    &text[at..at + 40]
                );
            }
            assert_eq!(
                text.matches("\"uid\": \"${datasource}\"").count() + 1,
                text.matches("\"uid\": ").count()
            );
        }
    }

    #[test]
    fn panels_do_not_overlap_and_ids_are_unique() {
        for dashboard in DASHBOARDS {
            let mut ids = BTreeSet::new();
            let mut check = |panels: &[Value]| {
                let mut taken = BTreeSet::new();
                for panel in panels {
                    assert!(ids.insert(panel["id"].as_u64().unwrap()), "{}", dashboard.name);
                    let at = |name: &str| panel["gridPos"][name].as_u64().unwrap();
                    assert!(at("x") + at("w") <= u64::from(COLUMNS));
                    for x in at("x")..at("x") + at("w") {
                        for y in at("y")..at("y") + at("h") {
                            assert!(taken.insert((x, y)), "{}: {}", dashboard.name, panel["title"]);
                        }
                    }
                }
            };
            let panels = dashboard.panels();
            check(&panels);
            for row in panels.iter().filter_map(|panel| panel["panels"].as_array()) {
                check(row);
            }
        }
    }

    /// Links of operators go by these. A changed one would leave the old dashboard beside the new one.
    #[test]
    fn uids_stay_as_they_are() {
        let uids: Vec<String> = DASHBOARDS.iter().map(Dashboard::uid).collect();
        assert_eq!(
            uids,
            [
                "roce-cluster",
                "roce-host",
                "roce-switch",
                "roce-chain",
                "roce-capacity"
            ]
        );
        for dashboard in DASHBOARDS {
            let json: Value = serde_json::from_str(&dashboard.json()).unwrap();
            assert_eq!(json["uid"], dashboard.uid());
            assert!(readme().contains(&format!("| `{}` | {} |", dashboard.uid(), dashboard.title)));
        }
    }

    #[test]
    fn selectors_are_filled_in() {
        assert_eq!(
            expression("a%H / b%S{kind=\"port\"}"),
            "a{cluster=~\"$cluster\",job=~\"$job\",instance=~\"$host\"} / b{cluster=~\"$cluster\",switch=~\"$switch\",kind=\"port\"}"
        );
    }
}
