//! The metrics: those of samples, named after their counters, and those about the program itself.

use roce_model::{Counter, SampleKind};

use crate::family::{Family, MetricKind};

/// Beginning of all names.
const PREFIX: &str = "roce_";

/// The metric of a counter: `roce_`, its name, and `_total` where it only rises.
pub fn family_of(counter: Counter) -> Family {
    let (kind, end) = match counter.kind() {
        SampleKind::Cumulative => (MetricKind::Counter, "_total"),
        SampleKind::Gauge => (MetricKind::Gauge, ""),
    };
    Family {
        name: format!("{PREFIX}{}{end}", counter.name()),
        kind,
        help: counter.meaning(),
    }
}

/// A metric that no counter stands for: name, kind and meaning.
pub type Own = (&'static str, MetricKind, &'static str);

macro_rules! own {
    ($list:ident, $about:literal, $( $constant:ident, $name:literal, $kind:ident, $help:literal; )+) => {
        $(
            #[doc = $help]
            pub const $constant: Own = ($name, MetricKind::$kind, $help);
        )+
        #[doc = $about]
        pub const $list: &[Own] = &[ $( $constant ),+ ];
    };
}

own! {
    OWN, "All metrics about the program itself.",
    BUILD_INFO, "roce_build_info", Gauge, "1, with the version of the program.";
    COLLECTOR_SUCCESS, "roce_collector_success", Gauge, "1 if the collector's last reading gave values, 0 if it failed or is too old.";
    COLLECTOR_DURATION, "roce_collector_duration_seconds", Gauge, "How long the collector's last reading took.";
    COLLECTOR_AGE, "roce_collector_age_seconds", Gauge, "Time since the collector's last whole reading.";
    COLLECTOR_INTERVAL, "roce_collector_interval_seconds", Gauge, "Time between two readings of the collector.";
    COLLECTOR_VALUES, "roce_collector_values", Gauge, "Values and facts that were understood in the last reading of a device.";
    COLLECTOR_ERRORS, "roce_collector_errors_total", Counter, "Reads that failed, by source and reason.";
    SERIES_LEFT_OUT, "roce_series_left_out", Gauge, "Series that were left out because there are too many.";
    HTTP_REQUESTS, "roce_http_requests_total", Counter, "Requests that the endpoint answered, by status.";
    HTTP_CONNECTIONS, "roce_http_connections", Gauge, "Connections to the endpoint that are open now.";
    OTLP_POINTS, "roce_otlp_points_total", Counter, "Points that were received by OTLP, by what became of them: taken, unknown_name, distribution, no_node, no_place, no_unit, no_value, no_room.";
    OTLP_UNKNOWN_NAMES, "roce_otlp_unknown_names", Gauge, "Names of metrics that were received by OTLP and have no meaning here, 64 at most.";
    TLS_LOADED, "roce_tls_certificate_loaded_timestamp_seconds", Gauge, "When the certificate and key in use were read, in seconds since 1970.";
    TLS_RELOAD_FAILURES, "roce_tls_reload_failures_total", Counter, "Changes of the certificate or key that could not be used: the ones before stay in use.";
    PROCESS_CPU, "process_cpu_seconds_total", Counter, "CPU time of this process, user and system.";
    PROCESS_MEMORY, "process_resident_memory_bytes", Gauge, "Resident memory of this process.";
    PROCESS_FDS, "process_open_fds", Gauge, "Open file descriptors of this process.";
    PROCESS_START, "process_start_time_seconds", Gauge, "When this process started, in seconds since 1970.";
}

own! {
    PORTS, "All metrics that describe ports of RDMA devices.",
    PORT_INFO, "roce_port_info", Gauge, "1, with the description of a port of an RDMA device.";
    PORT_UP, "roce_port_up", Gauge, "1 if the port is ACTIVE.";
    PORT_RATE, "roce_port_rate_bytes_per_second", Gauge, "Rate of the port now.";
    PORT_MAX_RATE, "roce_port_max_rate_bytes_per_second", Gauge, "Highest rate of the port's network interface, where its driver reports it.";
    PORT_MTU, "roce_port_mtu_bytes", Gauge, "Path MTU of RDMA that the MTU of the port's network interface allows.";
    ALLOCATED_INFO, "roce_allocated_device_info", Gauge, "1, with a port of an RDMA device that this container was given, and the resource it belongs to.";
    ALLOCATED, "roce_allocated_devices", Gauge, "RDMA devices that this container was given, those that are not visible included.";
    ALLOCATED_USABLE, "roce_allocated_devices_usable", Gauge, "RDMA devices that this container was given and that have an ACTIVE port.";
}

own! {
    CHECKS, "All metrics of checks.",
    CHECK_STATUS, "roce_doctor_check_status", Gauge, "1 for the status of a check of doctor: ok, info, unknown, warning or critical.";
}

own! {
    GPUS, "All metrics that describe GPUs.",
    GPU_INFO, "roce_gpu_info", Gauge, "1, with the description of a GPU.";
    GPU_LOST, "roce_gpu_lost", Gauge, "1 if the driver has lost the GPU, or says that it needs a reset.";
}

own! {
    FABRIC, "All metrics that describe switches and hypervisors.",
    SWITCH_INFO, "roce_switch_info", Gauge, "1, with the model, version and serial number of a switch, and how it is read.";
    SWITCH_NEIGHBOR, "roce_switch_neighbor_info", Gauge, "1, with what LLDP shows at the other end of an interface.";
    HYPERVISOR_INFO, "roce_hypervisor_info", Gauge, "1, with the version and build of a hypervisor.";
    HYPERVISOR_NIC_INFO, "roce_hypervisor_nic_info", Gauge, "1, with the driver, firmware and address of a vmnic.";
}

own! {
    LIVE, "All metrics of a live run.",
    LIVE_INFO, "roce_live_info", Gauge, "1, with the version, the width of a bin and the devices of the live run.";
    LIVE_FRAMES, "roce_live_frames_total", Counter, "Frames captured, of all kinds.";
    LIVE_LOST_FRAMES, "roce_live_lost_frames_total", Counter, "Frames that the capture lost: in the kernel, or because the analysis fell behind (queue).";
    LIVE_PACKETS, "roce_live_roce_packets_total", Counter, "RoCE packets of flows; CNPs make no flow and are not among them.";
    LIVE_WIRE_BYTES, "roce_live_wire_bytes_total", Counter, "Frames of these packets on the wire, without FCS.";
    LIVE_PAYLOAD_BYTES, "roce_live_payload_bytes_total", Counter, "Application data in these packets.";
    LIVE_DATA_PACKETS, "roce_live_data_packets_total", Counter, "Data packets, by their ECN field.";
    LIVE_CNPS, "roce_live_cnps_total", Counter, "CNPs, by the tap that saw them.";
    LIVE_ACKS, "roce_live_acks_total", Counter, "ACKs.";
    LIVE_NAKS, "roce_live_naks_total", Counter, "NAKs of every kind but RNR.";
    LIVE_RNR_NAKS, "roce_live_rnr_naks_total", Counter, "RNR NAKs: a receiver had no buffer posted.";
    LIVE_RETRANSMITTED_PACKETS, "roce_live_retransmitted_packets_total", Counter, "Retransmitted request packets.";
    LIVE_RETRANSMITTED_BYTES, "roce_live_retransmitted_bytes_total", Counter, "Application data in retransmitted packets.";
    LIVE_WASTED_BYTES, "roce_live_wasted_bytes_total", Counter, "Retransmitted application data that had been captured before.";
    LIVE_TIME, "roce_live_time_seconds_total", Counter, "Time of flows that sent requests, by the state of their senders: timeout, rnr, paused, recovering, slowed, window, network, sending, receiver, sender, idle, unknown.";
    LIVE_ACK_RTT, "roce_live_ack_rtt_seconds", Histogram, "Time from an ack-requested packet to the response that covers it.";
    LIVE_MESSAGE, "roce_live_message_seconds", Histogram, "Time from the first packet of a message to its acknowledgement.";
    LIVE_STEP, "roce_live_step_seconds", Gauge, "Time from the first to the last packet of the last step of the training job that sends most at the tap.";
    LIVE_STEPS, "roce_live_steps_total", Counter, "Steps of that training job that have ended.";
    LIVE_MISSING, "roce_live_missing_packets_total", Counter, "Missing packets, by what became of them: network_lost, reordered, capture_lost, ambiguous, unresolved.";
    LIVE_SKIPPED, "roce_live_skipped_psns_total", Counter, "PSNs skipped when a flow's highest PSN advanced: lost, late or not captured.";
    LIVE_PFC_FRAMES, "roce_live_pfc_frames_total", Counter, "PFC frames that pause a priority, by priority.";
    LIVE_PAUSE_FRAMES, "roce_live_pause_frames_total", Counter, "802.3x pause frames, which stop the whole link; PFC frames are not among them.";
    LIVE_FLOWS, "roce_live_flows", Gauge, "Flows that are live now, at all taps.";
    LIVE_EPISODES, "roce_live_episodes_total", Counter, "Episodes of congestion that began, by kind.";
    LIVE_FINDING, "roce_live_finding", Gauge, "1 for each finding that nothing later takes back.";
    LIVE_BEHIND, "roce_live_behind_seconds", Gauge, "Time by which complete rows lag behind the clock; rises while no packet comes.";
    LIVE_PARTS, "roce_live_parts_total", Counter, "Parts of a fleet dataset, by what became of them: written, failed (the disk took none), uploaded, dropped (--keep, not uploaded).";
    LIVE_PART_BYTES, "roce_live_part_bytes_total", Counter, "Bytes of these parts.";
    LIVE_PARTS_WAITING, "roce_live_parts_waiting", Gauge, "Parts on this host that wait for their upload, or are kept here.";
    LIVE_PARTS_WAITING_BYTES, "roce_live_parts_waiting_bytes", Gauge, "Bytes of these parts.";
    LIVE_UPLOAD_FAILURES, "roce_live_upload_failures_total", Counter, "Attempts to upload a part that failed.";
    LIVE_PAIR_WIRE_BYTES, "roce_live_pair_wire_bytes_total", Counter, "Bytes on the wire from one host to another, for the busiest pairs; the pair other/other is the sum of all others.";
    LIVE_PAIR_DATA_PACKETS, "roce_live_pair_data_packets_total", Counter, "Data packets from one host to another.";
    LIVE_PAIR_MARKED_PACKETS, "roce_live_pair_ecn_marked_packets_total", Counter, "Data packets with ECN's mark from one host to another.";
    LIVE_PAIR_CNPS, "roce_live_pair_cnps_total", Counter, "CNPs that slow flows from one host to another.";
    LIVE_PAIR_RETRANSMITTED_PACKETS, "roce_live_pair_retransmitted_packets_total", Counter, "Retransmitted packets from one host to another.";
    LIVE_PAIRS_LISTED, "roce_live_pairs_listed", Gauge, "Pairs of hosts that have series of their own.";
}

/// All metrics that no counter stands for.
fn own() -> impl Iterator<Item = &'static Own> {
    [OWN, PORTS, CHECKS, GPUS, FABRIC, LIVE].into_iter().flatten()
}

/// True if a metric of that name is exported by this version.
pub fn is_exported(name: &str) -> bool {
    own().any(|(own, ..)| *own == name)
        || Counter::ALL
            .iter()
            .any(|counter| family_of(*counter).name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules_of_prometheus() {
        let own = own().map(|(name, kind, help)| Family {
            name: (*name).to_owned(),
            kind: *kind,
            help,
        });
        for family in Counter::ALL.iter().map(|counter| family_of(*counter)).chain(own) {
            let is_total = family.name.ends_with("_total");
            assert_eq!(is_total, family.kind == MetricKind::Counter, "{}", family.name);
            assert!(family.help.ends_with('.'), "{}: {}", family.name, family.help);
        }
    }

    #[test]
    fn times_and_data_are_in_base_units() {
        for counter in Counter::ALL {
            let expected = match counter.unit() {
                "s" => "_seconds",
                "bytes" => "_bytes",
                "ratio" => "_ratio",
                _ => continue,
            };
            let family = family_of(*counter);
            assert!(family.base().ends_with(expected), "{}", family.name);
        }
    }
}
