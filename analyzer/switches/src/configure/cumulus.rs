//! Configuration of NVIDIA Cumulus Linux by NVUE (the chapter "Quality of Service" and "RDMA over Converged Ethernet" of its manual).

use super::settings::{Settings, cnp_priority};
use super::step::Step;
use crate::inventory::Cluster;

/// Commands of the switch, and of interfaces.
pub fn cumulus(cluster: &Cluster, settings: &Settings, interfaces: &[String]) -> Vec<Step> {
    let mut all = vec![
        Step::new(&[
            "RoCE in its lossless mode: buffers, PFC, ECN and the maps of DSCPs at once. Nothing changes before nv config apply.",
            "Undo: nv unset qos roce, nv config apply",
        ])
        .lines(&lines(cluster, settings).join("\n")),
    ];
    if !interfaces.is_empty() {
        let mut step = Step::new(&[
            "MTU of the ports. Link: goes down for a moment.",
            "Undo: nv unset interface NAME link mtu",
        ]);
        for interface in interfaces {
            step = step.run(mtu_line(settings, interface));
        }
        all.push(step);
    }
    all.push(
        Step::new(&["See the difference, apply and save it. Applying RoCE's mode restarts switchd: all links go down."])
            .run("nv config diff")
            .run("nv config apply")
            .run("nv config save"),
    );
    all
}

/// Settings of the switch. The mode's own maps are DSCP 26 to priority 3 and 48 to 6.
pub(super) fn lines(cluster: &Cluster, settings: &Settings) -> Vec<String> {
    let Cluster {
        priority,
        dscp,
        cnp_dscp,
        ..
    } = cluster;
    let mut all = vec![
        "nv set qos roce enable on".to_owned(),
        "nv set qos roce mode lossless".to_owned(),
    ];
    let cnp = cnp_priority(cluster);
    if (*priority, *dscp) != (3, 26) {
        all.push(format!(
            "nv set qos mapping default-global dscp {dscp} switch-priority {priority}"
        ));
        all.push(format!(
            "nv set qos pfc default-global switch-priority {priority}"
        ));
    }
    if (*cnp_dscp, cnp) != (48, 6) {
        all.push(format!(
            "nv set qos mapping default-global dscp {cnp_dscp} switch-priority {cnp}"
        ));
    }
    if settings.has_thresholds {
        let start = format!("nv set qos congestion-control default-global traffic-class {priority}");
        all.push(format!("{start} min-threshold-bytes {}", settings.ecn_min));
        all.push(format!("{start} max-threshold-bytes {}", settings.ecn_max));
    }
    all
}

/// The MTU of a port.
pub(super) fn mtu_line(settings: &Settings, interface: &str) -> String {
    format!("nv set interface {interface} link mtu {}", settings.switch_mtu())
}
