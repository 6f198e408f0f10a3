//! Topics of counters: which of them are drawn together, under which names, and in which unit.

/// How the values of a track are written: what their rate is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scale {
    /// Things a second.
    PerSecond,
    /// Seconds a second: a share of the time.
    Share,
    /// Bytes, as bits a second.
    Bits,
    /// A share that is read as it is.
    Ratio,
    /// Bytes in use.
    Memory,
    /// Power.
    Watts,
    /// Clocks.
    Hertz,
    /// Bytes a second that are read as such, as bits a second.
    Rate,
}

impl Scale {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::PerSecond => "per_second",
            Self::Share => "share",
            Self::Bits => "bits",
            Self::Ratio => "ratio",
            Self::Memory => "memory",
            Self::Watts => "watts",
            Self::Hertz => "hertz",
            Self::Rate => "rate",
        }
    }
}

/// A topic: counters that are drawn together.
pub(super) struct Topic {
    pub(super) id: &'static str,
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) scale: Scale,
    /// The counters, and what each is called in the track.
    pub(super) counters: &'static [(&'static str, &'static str)],
}

impl Topic {
    /// True if it draws the gauge of this name.
    pub(super) fn has_gauge(&self, name: &str) -> bool {
        let is_of_gauges = matches!(
            self.scale,
            Scale::Ratio | Scale::Memory | Scale::Watts | Scale::Hertz | Scale::Rate
        );
        is_of_gauges && self.counters.iter().any(|(counter, _)| *counter == name)
    }
}

/// The topics, the most telling first. 802.3x pause and PFC are two mechanisms: no topic has counters of both, but that of
/// adapters that count them together.
pub(super) const TOPICS: [Topic; 19] = [
    Topic {
        id: "pfc-time",
        name: "Paused by PFC",
        about: "Share of the time in which PFC frames stopped a priority",
        scale: Scale::Share,
        counters: &[
            ("pfc_receive_paused_seconds", "own sending"),
            ("pfc_transmit_paused_seconds", "the neighbour's sending"),
            ("hypervisor_pfc_receive_paused_seconds", "own sending"),
            ("switch_priority_pfc_receive_paused_seconds", "own sending"),
        ],
    },
    Topic {
        id: "pfc-frames",
        name: "PFC frames",
        about: "PFC frames a second, by priority",
        scale: Scale::PerSecond,
        counters: &[
            ("pfc_received_frames", "received"),
            ("pfc_transmitted_frames", "sent"),
            ("hypervisor_pfc_received_frames", "received"),
            ("hypervisor_pfc_transmitted_frames", "sent"),
            ("switch_priority_pfc_received_frames", "received"),
            ("switch_priority_pfc_transmitted_frames", "sent"),
            ("switch_pfc_received_frames", "received, all priorities"),
            ("switch_pfc_transmitted_frames", "sent, all priorities"),
        ],
    },
    Topic {
        id: "pause-time",
        name: "Paused by 802.3x",
        about: "Share of the time in which 802.3x pause frames stopped the whole link",
        scale: Scale::Share,
        counters: &[
            ("pause_receive_paused_seconds", "own sending"),
            ("pause_transmit_paused_seconds", "the neighbour's sending"),
            ("hypervisor_pause_receive_paused_seconds", "own sending"),
            (
                "hypervisor_pause_transmit_paused_seconds",
                "the neighbour's sending",
            ),
        ],
    },
    Topic {
        id: "pause-frames",
        name: "802.3x pause frames",
        about: "Pause frames a second for the whole link, PFC frames not among them",
        scale: Scale::PerSecond,
        counters: &[
            ("pause_received_frames", "received"),
            ("pause_transmitted_frames", "sent"),
            ("hypervisor_pause_received_frames", "received"),
            ("hypervisor_pause_transmitted_frames", "sent"),
            ("switch_pause_received_frames", "received"),
            ("switch_pause_transmitted_frames", "sent"),
        ],
    },
    Topic {
        id: "storms",
        name: "Pause storms",
        about: "Storms of pauses that an adapter or a switch's watchdog noticed",
        scale: Scale::PerSecond,
        counters: &[
            ("pause_storm_events", "storms"),
            ("hypervisor_pause_storm_events", "storms"),
            ("switch_pfc_watchdog_shutdowns", "queues shut down"),
        ],
    },
    Topic {
        id: "ecn",
        name: "ECN marks counted",
        about: "Packets with ECN's mark (CE) a second, as adapters and switches count them",
        scale: Scale::PerSecond,
        counters: &[
            ("port_ecn_marked_packets_received", "received marked"),
            ("priority_ecn_marked_packets", "marked by the adapter"),
            ("switch_queue_ecn_marked_packets", "marked by the switch"),
        ],
    },
    Topic {
        id: "cnps",
        name: "CNPs counted",
        about: "Congestion notifications a second, as adapters count them",
        scale: Scale::PerSecond,
        counters: &[
            ("port_cnp_sent", "sent"),
            ("port_cnp_handled", "handled"),
            ("port_cnp_ignored", "ignored"),
        ],
    },
    Topic {
        id: "drops",
        name: "Drops counted",
        about: "Packets that adapters, interfaces and switches discarded, a second",
        scale: Scale::PerSecond,
        counters: &[
            ("port_out_of_buffer_drops", "no receive buffer"),
            ("netdev_out_of_buffer", "no receive buffer of the interface"),
            ("netdev_discards", "discarded"),
            ("priority_discards", "discarded"),
            ("hypervisor_dropped_packets", "dropped"),
            ("switch_queue_dropped_packets", "dropped by the queue"),
            ("switch_queue_wred_dropped_packets", "dropped by WRED"),
            ("switch_mmu_dropped_packets", "dropped on ingress"),
            ("switch_priority_group_dropped_packets", "dropped on ingress"),
            ("switch_slice_dropped_packets", "dropped by the slice"),
            ("switch_interface_discards", "discarded"),
        ],
    },
    Topic {
        id: "recovery",
        name: "Out of sequence, timeouts",
        about: "What adapters count of losses, a second",
        scale: Scale::PerSecond,
        counters: &[
            ("port_out_of_sequence_packets", "out of sequence"),
            ("port_packet_sequence_errors", "sequence NAKs"),
            ("port_ack_timeouts", "ACK timeouts"),
            ("port_rnr_naks_received", "RNR NAKs"),
            ("port_duplicate_requests", "duplicate requests"),
            ("port_implied_nak_sequence_errors", "implied NAKs"),
        ],
    },
    Topic {
        id: "pause-control",
        name: "Pause frames of both kinds",
        about: "802.3x and PFC frames a second, which the adapter counts together",
        scale: Scale::PerSecond,
        counters: &[
            ("pause_control_received_frames", "received"),
            ("pause_control_transmitted_frames", "sent"),
            ("hypervisor_pause_control_received_frames", "received"),
            ("hypervisor_pause_control_transmitted_frames", "sent"),
        ],
    },
    Topic {
        id: "bytes",
        name: "Bytes counted",
        about: "Bits a second, as adapters and switches count them",
        scale: Scale::Bits,
        counters: &[
            ("port_received_bytes", "received"),
            ("port_transmitted_bytes", "sent"),
            ("rdma_received_bytes", "RDMA received"),
            ("rdma_transmitted_bytes", "RDMA sent"),
            ("priority_received_bytes", "received"),
            ("priority_transmitted_bytes", "sent"),
            ("hypervisor_received_bytes", "received"),
            ("hypervisor_transmitted_bytes", "sent"),
            ("switch_interface_received_bytes", "received"),
            ("switch_interface_transmitted_bytes", "sent"),
        ],
    },
    Topic {
        id: "switch-queues",
        name: "Switch queues",
        about: "Bytes in egress queues of switches, as they stood at the readings",
        scale: Scale::Memory,
        counters: &[
            ("switch_queue_depth_bytes", "in the queue"),
            ("switch_queue_peak_bytes", "highest"),
        ],
    },
    Topic {
        id: "gpu-load",
        name: "GPU load",
        about: "Share of the time in which a kernel ran on the GPU; not how busy it was",
        scale: Scale::Ratio,
        counters: &[("gpu_utilization_ratio", "load")],
    },
    Topic {
        id: "gpu-links",
        name: "GPU links",
        about: "Bits a second over the GPU's PCIe link and its NVLinks, as its driver measures them",
        scale: Scale::Rate,
        counters: &[
            ("gpu_pcie_bytes_per_second", "PCIe"),
            ("gpu_nvlink_bytes_per_second", "NVLink"),
        ],
    },
    Topic {
        id: "gpu-link-bytes",
        name: "GPU links, counted",
        about: "Bits a second over the GPU's PCIe link and its NVLinks, by counts of bytes",
        scale: Scale::Bits,
        counters: &[("gpu_pcie_bytes", "PCIe"), ("gpu_nvlink_bytes", "NVLink")],
    },
    Topic {
        id: "gpu-throttled",
        name: "GPU clocks held down",
        about: "Share of the readings in which the clocks were held down, by reason",
        scale: Scale::Ratio,
        counters: &[("gpu_throttled", "held down")],
    },
    Topic {
        id: "gpu-power",
        name: "GPU power",
        about: "Power that the GPU draws",
        scale: Scale::Watts,
        counters: &[("gpu_power_watts", "power")],
    },
    Topic {
        id: "gpu-memory",
        name: "GPU memory",
        about: "Memory of the GPU in use",
        scale: Scale::Memory,
        counters: &[("gpu_memory_used_bytes", "memory")],
    },
    Topic {
        id: "gpu-clocks",
        name: "GPU clocks",
        about: "Clocks of the GPU and of its memory",
        scale: Scale::Hertz,
        counters: &[("gpu_clock_hertz", "clock")],
    },
];
