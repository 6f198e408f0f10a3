//! Metrics that rules and panels name already, and that this version does not export: those of switches and hypervisors.
//! An expression over one of them gives nothing, and no alert, until a collector exports it.

/// The names.
pub const LATER: &[&str] = &[
    "roce_hypervisor_pause_control_received_frames_total",
    "roce_hypervisor_pause_control_transmitted_frames_total",
    "roce_hypervisor_pause_received_frames_total",
    "roce_hypervisor_pause_storm_events_total",
    "roce_hypervisor_pause_transitions_total",
    "roce_hypervisor_pfc_received_frames_total",
    "roce_hypervisor_up",
    "roce_switch_buffer_peak_cells",
    "roce_switch_interface_received_bytes_total",
    "roce_switch_interface_transmitted_bytes_total",
    "roce_switch_mmu_dropped_packets_total",
    "roce_switch_pause_received_frames_total",
    "roce_switch_pause_transmitted_frames_total",
    "roce_switch_pfc_received_frames_total",
    "roce_switch_pfc_transmitted_frames_total",
    "roce_switch_pfc_watchdog_shutdowns_total",
    "roce_switch_priority_pfc_received_frames_total",
    "roce_switch_priority_pfc_transmitted_frames_total",
    "roce_switch_queue_depth_bytes",
    "roce_switch_queue_dropped_packets_total",
    "roce_switch_queue_ecn_marked_packets_total",
    "roce_switch_queue_no_drop",
    "roce_switch_queue_transmitted_bytes_total",
    "roce_switch_queue_transmitted_packets_total",
    "roce_switch_queue_wred_dropped_packets_total",
    "roce_switch_up",
];
