//! Panels of the whole chain from sender to receiver.

use super::shared::{CNPS, LOSSES, MARKED, PAUSES, panel};
use crate::dashboards::panel::Kind::Series;
use crate::dashboards::panel::Section;

pub(super) const CHAIN: &[Section] = &[Section {
    title: "From the switch to the job: the level where it begins is the cause",
    panels: &[
        panel(
            Series,
            "1 Switch, inside: PFC",
            "pps",
            "PFC between the switch's own parts. Needs `metrics serve --inventory`.",
            &[(
                "sum by (switch) (rate(roce_switch_pfc_received_frames_total%S{kind=\"internal\"}[$__rate_interval]))",
                "{{switch}}",
            )],
        ),
        panel(
            Series,
            "2 Switch, ports: PFC sent",
            "pps",
            "PFC frames to neighbours. Needs `metrics serve --inventory`.",
            &[(
                "sum by (switch) (rate(roce_switch_pfc_transmitted_frames_total%S{kind=\"port\"}[$__rate_interval]))",
                "{{switch}}",
            )],
        ),
        panel(
            Series,
            "2 Switch, ports: 802.3x sent",
            "pps",
            "Pauses of whole links. Needs `metrics serve --inventory`.",
            &[(
                "sum by (switch) (rate(roce_switch_pause_transmitted_frames_total%S[$__rate_interval]))",
                "{{switch}}",
            )],
        ),
        panel(
            Series,
            "3 Hypervisors: PFC received",
            "pps",
            "PFC at physical adapters below virtual machines. Needs `metrics serve --inventory`.",
            &[(
                "sum by (hypervisor, vmnic, priority) (rate(roce_hypervisor_pfc_received_frames_total[$__rate_interval]))",
                "{{hypervisor}} {{vmnic}} priority {{priority}}",
            )],
        ),
        panel(
            Series,
            "3 Hypervisors: 802.3x received",
            "pps",
            "Pauses of whole links below virtual machines. Needs `metrics serve --inventory`.",
            &[(
                "sum by (hypervisor, vmnic) (rate(roce_hypervisor_pause_received_frames_total[$__rate_interval]))",
                "{{hypervisor}} {{vmnic}}",
            )],
        ),
        panel(
            Series,
            "4 Servers: PFC received",
            "pps",
            "PFC at hosts' own ports.",
            &[(
                "sum by (instance, priority) (rate(roce_pfc_received_frames_total%H[$__rate_interval]))",
                "{{instance}} priority {{priority}}",
            )],
        ),
        PAUSES,
        MARKED,
        CNPS,
        LOSSES,
        panel(
            Series,
            "5 Live runs: episodes",
            "short",
            "Episodes of congestion that began in the range, by kind.",
            &[(
                "sum by (instance, kind) (increase(roce_live_episodes_total%H[$__range]))",
                "{{instance}} {{kind}}",
            )],
        ),
        panel(
            Series,
            "6 Steps of the training job",
            "s",
            "Length of the last step of the training job that sends most: from the first to the last packet of its communication.",
            &[("roce_live_step_seconds%H", "{{instance}} {{tap}}")],
        ),
    ],
}];
