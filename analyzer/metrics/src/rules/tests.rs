use super::*;
use crate::names::{is_of_pauses, is_of_pfc, metrics_in};
use crate::rules::compatible::LEFT_OUT;
use std::collections::BTreeSet;

fn all() -> impl Iterator<Item = &'static Rule> {
    GROUPS.iter().flat_map(|group| group.rules)
}

#[test]
fn every_metric_is_exported_or_recorded() {
    let recorded: BTreeSet<&str> = all().map(|rule| rule.name).collect();
    let expressions = all()
        .map(|rule| rule.expr)
        .chain(COMPATIBLE.iter().map(|(_, expr, _)| *expr));
    for expr in expressions {
        for name in metrics_in(expr) {
            let is_known = recorded.contains(name) || crate::is_exported(name);
            assert!(is_known, "{name} in {expr}");
        }
    }
    assert_eq!(recorded.len(), all().count(), "names are unique");
}

#[test]
fn no_rule_mixes_pfc_and_pauses_of_the_link() {
    for rule in all() {
        let names = metrics_in(rule.expr);
        let pfc = names.iter().any(|name| is_of_pfc(name)) || rule.name.to_lowercase().contains("pfc");
        assert!(
            !(pfc && names.iter().any(|name| is_of_pauses(name))),
            "{}",
            rule.name
        );
    }
}

#[test]
fn alerts_are_about_rates() {
    for rule in all().filter(|rule| rule.alert.is_some()) {
        for (at, _) in rule.expr.match_indices("_total") {
            let rest = &rule.expr[at + "_total".len()..];
            // Behind the labels that choose series there is a time.
            let rest = rest
                .strip_prefix('{')
                .map_or(rest, |rest| rest.split_once('}').unwrap().1);
            assert!(rest.starts_with('['), "{}: a total is compared", rule.name);
        }
    }
}

#[test]
fn texts_are_quoted() {
    assert_eq!(quoted("a \"b\" \\ c"), "\"a \\\"b\\\" \\\\ c\"");
    let text = rules();
    assert!(text.contains(
        "      - alert: RoceCongestion\n        expr: |-\n          roce:port_ecn_marked:ratio_rate5m > 0.05"
    ));
    assert!(compatible().contains(
        "- record: nexus_mmu_drops\n        expr: |-\n          roce_switch_mmu_dropped_packets_total\n"
    ));
}

#[test]
fn panels_of_older_dashboards_have_names_or_are_listed() {
    let queries = include_str!("../../../../tests/independent/prometheus/older_panels.txt");
    let queries = queries.lines().filter(|line| !line.starts_with('#'));
    let mut panels = BTreeSet::new();
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    for (panel, query) in queries.map(|line| line.split_once('\t').unwrap()) {
        panels.insert(panel);
        let words = query.split(|letter| !is_word(letter));
        let has_name = |word: &str| COMPATIBLE.iter().any(|(name, ..)| *name == word);
        let is_listed = LEFT_OUT.iter().any(|(name, _)| {
            let mut parts = name.split('*').map(|part| part.trim_end_matches('*'));
            let first = parts.next().unwrap_or_default();
            query.contains(first) && parts.all(|part| query.contains(part))
        });
        let has_one = words.filter(|word| word.len() > 6).any(has_name);
        assert!(has_one || is_listed, "{panel}: {query}");
    }
    // Eleven of hosts and hypervisors, fourteen of switches.
    assert_eq!(panels.len(), 25, "{panels:?}");
}

#[test]
fn labels_of_series_are_kept_by_older_names() {
    let text = compatible();
    assert!(!text.contains("sum by"), "a label of the site is lost");
    for name in [
        "nexus_interface_rx_bytes",
        "nexus_flowcontrol_tx_pause",
        "rdma_operations",
    ] {
        assert!(text.contains(&format!("- record: {name}\n")), "{name}");
    }
    assert!(text.contains("# - pfc_pause_frames: "));
    assert!(text.contains(
        "label_replace(label_replace(sum without (cast, kind) (roce_switch_queue_transmitted_bytes_total), \"qos_group\""
    ));
}
