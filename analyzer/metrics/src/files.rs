//! Files for the programs around: a scrape configuration, a unit for systemd, an example for the alertmanager.

use std::fmt::Write;

/// Targets where nobody named any.
pub const EXAMPLE_TARGETS: [&str; 2] = ["host1.example:9902", "host2.example:9902"];

/// A job of Prometheus that reads devices of one kind through an endpoint's `/probe`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceJob {
    /// Kind of devices: `switches` or `hypervisors`.
    pub about: &'static str,
    /// Their system, which the endpoint checks: `nexus`, `sonic`, `esxi`.
    pub module: &'static str,
    /// Seconds between two readings.
    pub seconds: u64,
    /// Their names in the inventory.
    pub devices: Vec<String>,
}

/// A configuration of Prometheus that scrapes the targets, and devices through the first of them, and has the rules.
pub fn scrape_config(targets: &[String], cluster: &str, jobs: &[DeviceJob]) -> String {
    let mut text = String::from(
        "# Prometheus' configuration: endpoints of `roce-analyze metrics serve`, and of `live --metrics` (port 9903).\n\
         # The rules are those that `roce-analyze metrics files rules` prints.\n\
         global:\n  scrape_interval: 15s\n  evaluation_interval: 30s\nrule_files:\n  - roce.rules.yml\n\
         scrape_configs:\n  - job_name: roce-hosts\n",
    );
    text.push_str(
        "    # With --web-config at the hosts:\n    # scheme: https\n    # tls_config:\n    #   ca_file: ca.crt\n    # basic_auth:\n    #   \
         username: prometheus\n    #   password_file: password\n",
    );
    text.push_str("    static_configs:\n      - targets:\n");
    for target in targets {
        // Writing to a String cannot fail. A target is an address: it has no quotation marks and no line ends.
        let _ = writeln!(text, "          - \"{}\"", target.escape_default());
    }
    let _ = writeln!(
        text,
        "        labels:\n          cluster: \"{}\"",
        cluster.escape_default()
    );
    if !jobs.is_empty() {
        text.push_str("    # The jobs below have these series.\n    metric_relabel_configs:\n");
    }
    for (about, label) in [("switches", "switch"), ("hypervisors", "hypervisor")] {
        let of_kind = jobs.iter().filter(|job| job.about == about);
        let names: Vec<String> = of_kind
            .flat_map(|job| &job.devices)
            .map(|name| pattern(name))
            .collect();
        if !names.is_empty() {
            let pattern = format!("roce_{label}_.*;({})", names.join("|"));
            let _ = writeln!(
                text,
                "      - {{source_labels: [__name__, {label}], regex: \"{}\", action: drop}}",
                pattern.escape_default()
            );
        }
    }
    let endpoint = targets.first().map_or(EXAMPLE_TARGETS[0], String::as_str);
    for (at, job) in jobs.iter().enumerate() {
        write_job(&mut text, at, job, endpoint, cluster);
    }
    text
}

/// A name as a pattern that matches it alone.
fn pattern(name: &str) -> String {
    let mut pattern = String::new();
    for letter in name.chars() {
        if letter.is_ascii_punctuation() && !matches!(letter, '_' | '-') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

fn write_job(text: &mut String, at: usize, job: &DeviceJob, endpoint: &str, cluster: &str) {
    let devices: Vec<String> = job
        .devices
        .iter()
        .map(|name| format!("\"{}\"", name.escape_default()))
        .collect();
    // A job's name is unique: devices of one kind can have several intervals.
    let _ = write!(
        text,
        "  - job_name: roce-{about}-{module}-{at}\n    metrics_path: /probe\n    params: {{module: [{module}]}}\n    scrape_interval: {seconds}s\n    \
         scrape_timeout: {seconds}s\n    static_configs:\n      - targets: [{devices}]\n        labels:\n          cluster: \"{cluster}\"\n    \
         relabel_configs:\n      - {{source_labels: [__address__], target_label: __param_target}}\n      - {{source_labels: [__param_target], \
         target_label: instance}}\n      - {{target_label: __address__, replacement: \"{endpoint}\"}}\n",
        about = job.about,
        module = job.module,
        seconds = job.seconds,
        devices = devices.join(", "),
        cluster = cluster.escape_default(),
        endpoint = endpoint.escape_default(),
    );
}

/// A unit of systemd for `metrics serve`, with every limit that it can live with. Packages install it; its program is `/usr/bin/roce-analyze`.
pub const SYSTEMD: &str = include_str!("../../../packages/systemd/roce-analyze-metrics.service");

/// An example of routes for Prometheus' alertmanager.
pub const ALERTMANAGER: &str = "\
# An example for Prometheus' alertmanager: replace the receivers.
route:
  receiver: team
  group_by: [alertname, cluster]
  group_wait: 30s
  group_interval: 5m
  repeat_interval: 12h
  routes:
    - matchers: ['severity=\"critical\"', 'alertname=~\"Roce.*\"']
      receiver: on-call
      repeat_interval: 1h
    - matchers: ['severity=\"info\"', 'alertname=~\"Roce.*\"']
      receiver: nobody
inhibit_rules:
  # A host that does not answer says nothing about its ports.
  - source_matchers: ['alertname=\"RoceExporterDown\"']
    target_matchers: ['alertname=~\"Roce.*\"', 'alertname!=\"RoceExporterDown\"']
    equal: [instance]
  # Losses explain what they cause.
  - source_matchers: ['alertname=\"RoceSwitchBufferDrops\"']
    target_matchers: ['alertname=\"RoceSequenceErrors\"']
    equal: [cluster]
receivers:
  - name: nobody
  - name: team
    # email_configs, webhook_configs, ...
  - name: on-call
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_that_a_job_reads_are_dropped_from_the_hosts() {
        let job = |about, device: &str| DeviceJob {
            about,
            module: "sonic",
            seconds: 15,
            devices: vec![device.to_owned(), "spine1".to_owned()],
        };
        let text = scrape_config(&["a:1".to_owned()], "c", &[job("switches", "leaf.1")]);
        // In quotation marks of YAML a backslash is two.
        let line = r#"      - {source_labels: [__name__, switch], regex: "roce_switch_.*;(leaf\\.1|spine1)", action: drop}"#;
        assert!(text.contains(line), "{text}");
        assert!(!text.contains("roce_hypervisor_"), "{text}");
        assert!(!scrape_config(&[], "c", &[]).contains("drop"));
    }

    #[test]
    fn targets_cannot_break_out_of_their_quotation_marks() {
        let text = scrape_config(&["a:1\"\n  x: y".to_owned()], "c", &[]);
        assert!(text.contains("          - \"a:1\\\"\\n  x: y\"\n"), "{text}");
        assert!(
            text.ends_with("        labels:\n          cluster: \"c\"\n"),
            "{text}"
        );
    }
}
