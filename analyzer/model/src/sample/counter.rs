//! The catalogue of counters: one name, unit and kind for what drivers, switches and GPUs call differently.

use std::borrow::Cow;

use crate::events::names;

/// Kind of a number: it only rises, or shows a present value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SampleKind {
    /// A count since some start.
    Cumulative,
    /// A present value, which rises and falls.
    Gauge,
}

impl SampleKind {
    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cumulative => "cumulative",
            Self::Gauge => "gauge",
        }
    }
}

names! {
    /// A change of a counter that is worth an event.
    CounterChange {
        /// The counter fell and did not wrap: a driver was loaded again, or somebody cleared it.
        #[default]
        Reset = "reset",
        /// The adapter noticed a storm of pauses.
        Storm = "storm",
        /// The link went down.
        LinkDown = "link_down",
        /// Packets were dropped, and none were between the two readings before.
        FirstDrop = "first_drop",
    }
}

impl Counter {
    /// The counter of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|counter| counter.name() == name)
    }

    /// The event that a rise of it is, if it is one.
    pub fn event(self) -> Option<CounterChange> {
        match self {
            Self::PauseStormEvents | Self::HypervisorPauseStormEvents | Self::SwitchWatchdogShutdowns => {
                Some(CounterChange::Storm)
            }
            Self::PhyLinkDowns => Some(CounterChange::LinkDown),
            Self::PortOutOfBufferDrops
            | Self::PriorityDiscards
            | Self::NetdevDiscards
            | Self::NetdevOutOfBuffer
            | Self::SwitchQueueDroppedPackets
            | Self::SwitchMmuDroppedPackets
            | Self::SwitchPriorityGroupDroppedPackets => Some(CounterChange::FirstDrop),
            _ => None,
        }
    }
}

macro_rules! counters {
    ($( $variant:ident, $name:literal, $kind:ident, $unit:literal, [$($label:literal),*], $about:literal; )+) => {
        /// A quantity, by one name for all drivers.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum Counter {
            $( #[doc = $about] $variant, )+
        }

        impl Counter {
            /// All of them, in the order of the catalogue.
            pub const ALL: &[Self] = &[ $( Self::$variant ),+ ];

            /// Its name in tables; with `roce_` before and `_total` behind it, the name of its metric.
            pub fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )+ }
            }

            /// Kind of its values.
            pub fn kind(self) -> SampleKind {
                match self { $( Self::$variant => SampleKind::$kind, )+ }
            }

            /// Its base unit.
            pub fn unit(self) -> &'static str {
                match self { $( Self::$variant => $unit, )+ }
            }

            /// The names of its labels beyond object, priority and queue.
            pub fn labels(self) -> &'static [&'static str] {
                match self { $( Self::$variant => &[ $( $label ),* ], )+ }
            }

            /// Meaning of the counter, in words.
            pub fn meaning(self) -> &'static str {
                match self { $( Self::$variant => $about, )+ }
            }
        }
    };
}

// The names are those of the metrics. "Received" is the side of the port that receives.
counters! {
    PortReceivedBytes, "port_received_bytes", Cumulative, "bytes", [], "Bytes that the port received.";
    PortTransmittedBytes, "port_transmitted_bytes", Cumulative, "bytes", [], "Bytes that the port sent.";
    PortReceivedPackets, "port_received_packets", Cumulative, "packets", [], "Packets that the port received.";
    PortTransmittedPackets, "port_transmitted_packets", Cumulative, "packets", [], "Packets that the port sent.";
    PortEcnMarkedPacketsReceived, "port_ecn_marked_packets_received", Cumulative, "packets", [], "RoCE packets received with ECN's mark (CE).";
    PortCnpSent, "port_cnp_sent", Cumulative, "packets", [], "CNPs sent: the receiver of marked packets notifies the sender.";
    PortCnpHandled, "port_cnp_handled", Cumulative, "packets", [], "CNPs received that slowed a flow.";
    PortCnpIgnored, "port_cnp_ignored", Cumulative, "packets", [], "CNPs received and ignored.";
    PortRequestsReceived, "port_requests_received", Cumulative, "requests", ["operation"], "Requests received, by operation.";
    PortOutOfSequencePackets, "port_out_of_sequence_packets", Cumulative, "packets", [], "Packets received out of sequence.";
    PortPacketSequenceErrors, "port_packet_sequence_errors", Cumulative, "NAKs", [], "NAKs received with the code PSN sequence error.";
    PortAckTimeouts, "port_ack_timeouts", Cumulative, "events", [], "Expired ACK timers of senders.";
    PortRetriesExceeded, "port_retries_exceeded", Cumulative, "events", [], "Queue pairs that used up their retries.";
    PortRnrRetriesExceeded, "port_rnr_retries_exceeded", Cumulative, "events", [], "Queue pairs that used up their retries after RNR NAKs.";
    PortRnrNaksReceived, "port_rnr_naks_received", Cumulative, "NAKs", [], "RNR NAKs received: the receiver had no buffer posted.";
    PortRnrNaksSent, "port_rnr_naks_sent", Cumulative, "NAKs", [], "RNR NAKs sent.";
    PortOutOfBufferDrops, "port_out_of_buffer_drops", Cumulative, "packets", [], "Packets dropped because no receive buffer was posted.";
    PortDuplicateRequests, "port_duplicate_requests", Cumulative, "requests", [], "Requests received a second time.";
    PortRetransmittedPackets, "port_retransmitted_packets", Cumulative, "packets", [], "Packets that the port sent again.";
    PortImpliedNakSequenceErrors, "port_implied_nak_sequence_errors", Cumulative, "events", [], "Responses that showed that an earlier response is missing.";
    PortAdaptiveRetransmissions, "port_adaptive_retransmissions", Cumulative, "events", [], "Adaptive retransmissions of RoCE traffic.";
    PortAdaptiveRetransmissionTimeouts, "port_adaptive_retransmission_timeouts", Cumulative, "events", [], "Timeouts under adaptive retransmission.";
    PortSlowRestarts, "port_slow_restarts", Cumulative, "events", [], "Slow restarts of RoCE flows.";
    PortSlowRestartCnps, "port_slow_restart_cnps", Cumulative, "packets", [], "CNPs that slow restarts of RoCE flows made: the adapter's own, without a mark.";
    PortIcrcErrors, "port_icrc_errors", Cumulative, "packets", [], "RoCE packets received with a wrong ICRC.";
    PortReceiveErrors, "port_receive_errors", Cumulative, "packets", [], "Packets that the port received with an error: broken, malformed or too many.";
    PortCompletionErrors, "port_completion_errors", Cumulative, "events", ["side", "kind"], "Completions with an error, or flushed.";
    PortAccessErrors, "port_access_errors", Cumulative, "events", ["side"], "Remote access errors.";
    PortObjects, "port_objects", Gauge, "objects", ["kind"], "Objects that exist on the device now: queue pairs, completion queues, memory regions.";
    PortOptionalCounter, "port_optional_counter", Cumulative, "", ["counter"], "An optional counter of the RDMA subsystem, by its name.";
    PortHwCounter, "port_hw_counter", Cumulative, "", ["counter"], "A counter of the device that has no common name, by the driver's name.";
    PfcReceivedFrames, "pfc_received_frames", Cumulative, "frames", [], "PFC frames received that pause this priority.";
    PfcTransmittedFrames, "pfc_transmitted_frames", Cumulative, "frames", [], "PFC frames sent that pause this priority.";
    PfcReceivePausedSeconds, "pfc_receive_paused_seconds", Cumulative, "s", [], "Time in which received PFC frames kept this port from sending.";
    PfcTransmitPausedSeconds, "pfc_transmit_paused_seconds", Cumulative, "s", [], "Time in which sent PFC frames kept the neighbour from sending.";
    PfcTransitions, "pfc_transitions", Cumulative, "events", [], "Changes from XON to XOFF by received PFC frames.";
    PfcEnabled, "pfc_enabled", Gauge, "", [], "1 if PFC is enabled on this priority.";
    DscpPriority, "dscp_priority", Gauge, "", ["dscp"], "Priority that DCB's table of applications gives to this DSCP.";
    PauseReceivedFrames, "pause_received_frames", Cumulative, "frames", [], "802.3x pause frames received; PFC frames are not among them.";
    PauseTransmittedFrames, "pause_transmitted_frames", Cumulative, "frames", [], "802.3x pause frames sent; PFC frames are not among them.";
    PauseReceivePausedSeconds, "pause_receive_paused_seconds", Cumulative, "s", [], "Time in which received 802.3x pause frames kept this port from sending.";
    PauseTransmitPausedSeconds, "pause_transmit_paused_seconds", Cumulative, "s", [], "Time in which sent 802.3x pause frames kept the neighbour from sending.";
    PauseTransitions, "pause_transitions", Cumulative, "events", [], "Changes from XON to XOFF by received 802.3x pause frames.";
    PauseControlReceivedFrames, "pause_control_received_frames", Cumulative, "frames", [], "Pause frames of both kinds received: 802.3x and PFC together.";
    PauseControlTransmittedFrames, "pause_control_transmitted_frames", Cumulative, "frames", [], "Pause frames of both kinds sent: 802.3x and PFC together.";
    PauseEnabled, "pause_enabled", Gauge, "", ["direction"], "1 if 802.3x pause is enabled.";
    PauseStormEvents, "pause_storm_events", Cumulative, "events", ["severity"], "Pause storms that the adapter noticed.";
    PriorityReceivedBytes, "priority_received_bytes", Cumulative, "bytes", [], "Bytes received on this priority.";
    PriorityTransmittedBytes, "priority_transmitted_bytes", Cumulative, "bytes", [], "Bytes sent on this priority.";
    PriorityReceivedPackets, "priority_received_packets", Cumulative, "packets", [], "Packets received on this priority.";
    PriorityTransmittedPackets, "priority_transmitted_packets", Cumulative, "packets", [], "Packets sent on this priority.";
    PriorityDiscards, "priority_discards", Cumulative, "packets", ["reason"], "Packets of this priority that the adapter discarded.";
    PriorityEcnMarkedPackets, "priority_ecn_marked_packets", Cumulative, "packets", [], "Packets of this priority that the adapter itself marked.";
    NetdevDiscards, "netdev_discards", Cumulative, "packets", ["direction"], "Packets that the port discarded for lack of buffers.";
    NetdevOutOfBuffer, "netdev_out_of_buffer", Cumulative, "packets", [], "Packets dropped because the host posted no receive buffer to the interface.";
    NetdevStatistic, "netdev_statistic", Cumulative, "", ["name"], "A statistic of the interface that has no common name, by the driver's name.";
    RdmaReceivedBytes, "rdma_received_bytes", Cumulative, "bytes", ["cast"], "RDMA bytes received, by the virtual port.";
    RdmaTransmittedBytes, "rdma_transmitted_bytes", Cumulative, "bytes", ["cast"], "RDMA bytes sent, by the virtual port.";
    RdmaReceivedPackets, "rdma_received_packets", Cumulative, "packets", ["cast"], "RDMA packets received, by the virtual port.";
    RdmaTransmittedPackets, "rdma_transmitted_packets", Cumulative, "packets", ["cast"], "RDMA packets sent, by the virtual port.";
    PhyCrcErrors, "phy_crc_errors", Cumulative, "packets", [], "Frames received with a wrong check sequence.";
    PhySymbolErrors, "phy_symbol_errors", Cumulative, "symbols", [], "Symbols that the link received in error.";
    PhyCorrectedBits, "phy_corrected_bits", Cumulative, "bits", [], "Bits that forward error correction repaired.";
    PhyReceivedBits, "phy_received_bits", Cumulative, "bits", [], "Bits that the link received.";
    PhyLinkDowns, "phy_link_downs", Cumulative, "events", [], "Times that the link went down.";
    PhyLinkRecoveries, "phy_link_recoveries", Cumulative, "events", [], "Times that the link recovered from errors without going down.";
    PcieStalledSeconds, "pcie_stalled_seconds", Cumulative, "s", ["direction"], "Seconds in which the adapter's PCIe requests were stalled for more than 30 % of the time.";
    PcieStalledRatio, "pcie_stalled_ratio", Gauge, "ratio", ["direction"], "Share of the last second in which the adapter's PCIe requests were stalled.";
    GpuUtilization, "gpu_utilization_ratio", Gauge, "ratio", [], "Share of time in which a kernel ran on the GPU; not how busy it was.";
    GpuMemoryUtilization, "gpu_memory_utilization_ratio", Gauge, "ratio", [], "Share of time in which the GPU's memory was read or written.";
    GpuActivity, "gpu_activity_ratio", Gauge, "ratio", ["unit"], "Share of cycles in which a unit of the GPU was active.";
    GpuMemoryUsed, "gpu_memory_used_bytes", Gauge, "bytes", [], "Memory of the GPU in use.";
    GpuMemoryTotal, "gpu_memory_total_bytes", Gauge, "bytes", [], "Memory of the GPU.";
    GpuTemperature, "gpu_temperature_celsius", Gauge, "celsius", ["sensor"], "Temperature of the GPU, or of its memory.";
    GpuPower, "gpu_power_watts", Gauge, "W", [], "Power that the GPU draws.";
    GpuPowerLimit, "gpu_power_limit_watts", Gauge, "W", [], "Power that the GPU may draw.";
    GpuEnergy, "gpu_energy_joules", Cumulative, "J", [], "Energy that the GPU has used since its driver was loaded.";
    GpuClock, "gpu_clock_hertz", Gauge, "Hz", ["domain"], "Clock of the GPU, or of its memory.";
    GpuThrottled, "gpu_throttled", Gauge, "", ["reason"], "1 if the clocks of the GPU are held down for this reason.";
    GpuPcieLinkGeneration, "gpu_pcie_link_generation", Gauge, "", [], "Generation of the GPU's PCIe link; a GPU at rest lowers it.";
    GpuPcieLinkWidth, "gpu_pcie_link_width", Gauge, "lanes", [], "Lanes of the GPU's PCIe link.";
    GpuPcieBytes, "gpu_pcie_bytes", Cumulative, "bytes", ["direction"], "Bytes over the GPU's PCIe link.";
    GpuPcieRate, "gpu_pcie_bytes_per_second", Gauge, "bytes/s", ["direction"], "Rate of bytes over the GPU's PCIe link, as its driver measures it.";
    GpuNvlinkBytes, "gpu_nvlink_bytes", Cumulative, "bytes", ["direction"], "Bytes over all NVLinks of the GPU.";
    GpuNvlinkRate, "gpu_nvlink_bytes_per_second", Gauge, "bytes/s", ["direction"], "Rate of bytes over all NVLinks of the GPU, as its driver measures it.";
    GpuPcieReplays, "gpu_pcie_replays", Cumulative, "events", [], "PCIe packets that were retransmitted.";
    GpuEccUncorrectedErrors, "gpu_ecc_uncorrected_errors", Cumulative, "errors", [], "Errors of memory that were not corrected, since the driver was loaded.";
    GpuXidLast, "gpu_xid_last", Gauge, "", [], "The last XID error; 0: none. A code, not a count.";
    SwitchUp, "switch_up", Gauge, "", [], "1 if the switch answered the last reading, 0 if not.";
    SwitchUptime, "switch_uptime_seconds", Gauge, "s", [], "Time since the switch started.";
    SwitchInterfaceUp, "switch_interface_up", Gauge, "", ["kind"], "1 if the interface is up.";
    SwitchInterfaceLinkChanges, "switch_interface_link_changes", Cumulative, "events", ["kind"], "Times that the link of the switch's interface went up or down, or that the interface was reset.";
    SwitchInterfaceRate, "switch_interface_rate_bytes_per_second", Gauge, "bytes/s", ["kind"], "Rate of the interface now.";
    SwitchInterfaceMtu, "switch_interface_mtu_bytes", Gauge, "bytes", ["kind"], "MTU of the interface.";
    SwitchInterfaceReceivedBytes, "switch_interface_received_bytes", Cumulative, "bytes", ["kind"], "Bytes that the switch's interface received.";
    SwitchInterfaceTransmittedBytes, "switch_interface_transmitted_bytes", Cumulative, "bytes", ["kind"], "Bytes that the switch's interface sent.";
    SwitchInterfaceReceivedPackets, "switch_interface_received_packets", Cumulative, "packets", ["kind", "cast"], "Packets that the switch's interface received.";
    SwitchInterfaceTransmittedPackets, "switch_interface_transmitted_packets", Cumulative, "packets", ["kind", "cast"], "Packets that the switch's interface sent.";
    SwitchInterfaceErrors, "switch_interface_errors", Cumulative, "packets", ["kind", "direction"], "Packets with errors at the switch's interface.";
    SwitchInterfaceFcsErrors, "switch_interface_fcs_errors", Cumulative, "packets", ["kind"], "Frames that the switch's interface received with a wrong check sequence.";
    SwitchInterfaceDiscards, "switch_interface_discards", Cumulative, "packets", ["kind", "direction"], "Packets that the switch's interface discarded, for any reason.";
    SwitchPfcReceivedFrames, "switch_pfc_received_frames", Cumulative, "frames", ["kind"], "PFC frames that the switch's interface received, of all priorities: the neighbour pauses the switch.";
    SwitchPfcTransmittedFrames, "switch_pfc_transmitted_frames", Cumulative, "frames", ["kind"], "PFC frames that the switch's interface sent, of all priorities: the switch pauses the neighbour.";
    SwitchPriorityPfcReceivedFrames, "switch_priority_pfc_received_frames", Cumulative, "frames", ["kind"], "PFC frames that the switch's interface received, by priority.";
    SwitchPriorityPfcTransmittedFrames, "switch_priority_pfc_transmitted_frames", Cumulative, "frames", ["kind"], "PFC frames that the switch's interface sent, by priority.";
    SwitchPriorityPfcReceivePausedSeconds, "switch_priority_pfc_receive_paused_seconds", Cumulative, "s", ["kind"], "Time in which received PFC frames kept the switch's interface from sending.";
    SwitchPriorityPfcTransitions, "switch_priority_pfc_transitions", Cumulative, "events", ["kind"], "Changes from XON to XOFF by PFC frames that the switch's interface received.";
    SwitchPfcEnabled, "switch_pfc_enabled", Gauge, "", ["kind"], "1 if PFC is enabled on this priority of the switch's interface.";
    SwitchPauseReceivedFrames, "switch_pause_received_frames", Cumulative, "frames", ["kind"], "802.3x pause frames that the switch's interface received.";
    SwitchPauseTransmittedFrames, "switch_pause_transmitted_frames", Cumulative, "frames", ["kind"], "802.3x pause frames that the switch's interface sent.";
    SwitchPauseEnabled, "switch_pause_enabled", Gauge, "", ["kind", "direction"], "1 if 802.3x pause is in operation on the switch's interface.";
    SwitchQueueTransmittedPackets, "switch_queue_transmitted_packets", Cumulative, "packets", ["kind", "cast"], "Packets that left the egress queue.";
    SwitchQueueTransmittedBytes, "switch_queue_transmitted_bytes", Cumulative, "bytes", ["kind", "cast"], "Bytes that left the egress queue.";
    SwitchQueueDroppedPackets, "switch_queue_dropped_packets", Cumulative, "packets", ["kind", "cast"], "Packets that the egress queue dropped.";
    SwitchQueueDroppedBytes, "switch_queue_dropped_bytes", Cumulative, "bytes", ["kind", "cast"], "Bytes that the egress queue dropped.";
    SwitchQueueTrimmedPackets, "switch_queue_trimmed_packets", Cumulative, "packets", ["kind", "cast"], "Packets for which the egress queue had no room, and which the switch cut to their headers.";
    SwitchQueueTrimmedSentPackets, "switch_queue_trimmed_sent_packets", Cumulative, "packets", ["kind", "cast"], "Packets cut to their headers that left.";
    SwitchQueueTrimmedDroppedPackets, "switch_queue_trimmed_dropped_packets", Cumulative, "packets", ["kind", "cast"], "Packets cut to their headers that were dropped after all: no receiver knows of them.";
    SwitchQueueEcnMarkedPackets, "switch_queue_ecn_marked_packets", Cumulative, "packets", ["kind"], "Packets that the egress queue marked (CE).";
    SwitchQueueEcnMarkedBytes, "switch_queue_ecn_marked_bytes", Cumulative, "bytes", ["kind"], "Bytes of packets that the egress queue marked (CE).";
    SwitchQueueWredDroppedPackets, "switch_queue_wred_dropped_packets", Cumulative, "packets", ["kind", "ecn"], "Packets that WRED dropped instead of marking; the queue `port` is the sum of a port whose queues are not counted apart.";
    SwitchQueueDepth, "switch_queue_depth_bytes", Gauge, "bytes", ["kind"], "Bytes in the egress queue now.";
    SwitchQueuePeak, "switch_queue_peak_bytes", Gauge, "bytes", ["kind"], "Highest number of bytes in the egress queue since the switch last reset its watermark.";
    SwitchQueueNoDrop, "switch_queue_no_drop", Gauge, "", ["kind"], "1 if the queue is lossless: the switch pauses its senders before it is full.";
    SwitchQueuePauseThreshold, "switch_queue_pause_threshold_bytes", Gauge, "bytes", ["kind"], "Ingress buffer use at which the switch pauses the sender.";
    SwitchQueueResumeThreshold, "switch_queue_resume_threshold_bytes", Gauge, "bytes", ["kind"], "Ingress buffer use at which the switch lets the sender go on.";
    SwitchEcnThreshold, "switch_ecn_threshold_bytes", Gauge, "bytes", ["kind", "bound"], "Queue length from which packets are marked with a rising probability (min), and from which all are (max).";
    SwitchMmuDroppedPackets, "switch_mmu_dropped_packets", Cumulative, "packets", ["kind"], "Packets dropped on ingress because the shared buffer was full.";
    SwitchMmuDroppedBytes, "switch_mmu_dropped_bytes", Cumulative, "bytes", ["kind"], "Bytes dropped on ingress because the shared buffer was full.";
    SwitchSliceDroppedPackets, "switch_slice_dropped_packets", Cumulative, "packets", ["slice"], "Packets dropped on ingress by one slice of the switch's chip; not a sum over its interfaces.";
    SwitchBufferCells, "switch_buffer_cells", Gauge, "cells", ["instance_id", "pool"], "Cells of the shared buffer in use now.";
    SwitchBufferPeakCells, "switch_buffer_peak_cells", Gauge, "cells", ["instance_id", "pool"], "Highest number of cells of the shared buffer in use.";
    SwitchPriorityGroupDroppedPackets, "switch_priority_group_dropped_packets", Cumulative, "packets", ["kind"], "Packets dropped on ingress because their priority group was full; the group's number is the queue.";
    SwitchPriorityGroupHeadroomPeak, "switch_priority_group_headroom_peak_bytes", Gauge, "bytes", ["kind"], "Highest use of the headroom behind the pause threshold since the switch last reset its watermark.";
    SwitchWatchdogShutdowns, "switch_pfc_watchdog_shutdowns", Cumulative, "events", ["kind"], "Times that the PFC watchdog found a stuck queue and shut it down.";
    SwitchWatchdogRestores, "switch_pfc_watchdog_restores", Cumulative, "events", ["kind"], "Times that the PFC watchdog opened the queue again.";
    SwitchWatchdogDroppedPackets, "switch_pfc_watchdog_dropped_packets", Cumulative, "packets", ["kind"], "Packets that the PFC watchdog dropped.";
    HypervisorUp, "hypervisor_up", Gauge, "", [], "1 if the hypervisor answered the last reading, 0 if not.";
    HypervisorNicUp, "hypervisor_nic_up", Gauge, "", [], "1 if the link of the vmnic is up.";
    HypervisorNicRate, "hypervisor_nic_rate_bytes_per_second", Gauge, "bytes/s", [], "Rate of the vmnic's link now.";
    HypervisorNicMtu, "hypervisor_nic_mtu_bytes", Gauge, "bytes", [], "MTU of the vmnic.";
    HypervisorReceivedBytes, "hypervisor_received_bytes", Cumulative, "bytes", [], "Bytes that the vmnic received.";
    HypervisorTransmittedBytes, "hypervisor_transmitted_bytes", Cumulative, "bytes", [], "Bytes that the vmnic sent.";
    HypervisorReceivedPackets, "hypervisor_received_packets", Cumulative, "packets", [], "Packets that the vmnic received.";
    HypervisorTransmittedPackets, "hypervisor_transmitted_packets", Cumulative, "packets", [], "Packets that the vmnic sent.";
    HypervisorDroppedPackets, "hypervisor_dropped_packets", Cumulative, "packets", ["direction"], "Packets that the vmnic dropped.";
    HypervisorErrors, "hypervisor_errors", Cumulative, "packets", ["direction", "reason"], "Packets with errors at the vmnic; the reason `all` is its own sum of the others.";
    HypervisorPauseReceivedFrames, "hypervisor_pause_received_frames", Cumulative, "frames", [], "802.3x pause frames that the vmnic received; PFC frames are not among them.";
    HypervisorPauseTransmittedFrames, "hypervisor_pause_transmitted_frames", Cumulative, "frames", [], "802.3x pause frames that the vmnic sent; PFC frames are not among them.";
    HypervisorPauseReceivePausedSeconds, "hypervisor_pause_receive_paused_seconds", Cumulative, "s", [], "Time in which received 802.3x pause frames kept the vmnic from sending.";
    HypervisorPauseTransmitPausedSeconds, "hypervisor_pause_transmit_paused_seconds", Cumulative, "s", [], "Time in which sent 802.3x pause frames kept the neighbour from sending.";
    HypervisorPauseTransitions, "hypervisor_pause_transitions", Cumulative, "events", [], "Changes from XON to XOFF by 802.3x pause frames that the vmnic received.";
    HypervisorPauseControlReceivedFrames, "hypervisor_pause_control_received_frames", Cumulative, "frames", [], "Pause frames of both kinds that the vmnic received: 802.3x and PFC together.";
    HypervisorPauseControlTransmittedFrames, "hypervisor_pause_control_transmitted_frames", Cumulative, "frames", [], "Pause frames of both kinds that the vmnic sent: 802.3x and PFC together.";
    HypervisorPfcReceivedFrames, "hypervisor_pfc_received_frames", Cumulative, "frames", [], "PFC frames that the vmnic received, by priority.";
    HypervisorPfcTransmittedFrames, "hypervisor_pfc_transmitted_frames", Cumulative, "frames", [], "PFC frames that the vmnic sent, by priority.";
    HypervisorPfcReceivePausedSeconds, "hypervisor_pfc_receive_paused_seconds", Cumulative, "s", [], "Time in which received PFC frames kept the vmnic from sending.";
    HypervisorPauseStormEvents, "hypervisor_pause_storm_events", Cumulative, "events", ["severity"], "Pause storms that the vmnic's driver noticed.";
    HypervisorPfcEnabled, "hypervisor_pfc_enabled", Gauge, "", [], "1 if PFC is enabled on this priority of the vmnic.";
    HypervisorPauseEnabled, "hypervisor_pause_enabled", Gauge, "", ["direction"], "1 if 802.3x pause is enabled on the vmnic.";
    HypervisorDcbMode, "hypervisor_dcb_mode", Gauge, "", ["mode"], "1 for the DCB mode of the vmnic: ieee, cee or unknown.";
    HypervisorNicStatistic, "hypervisor_nic_statistic", Cumulative, "", ["name"], "A statistic of the vmnic that has no common name, by the driver's name.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_fit_metrics() {
        let names: BTreeSet<&str> = Counter::ALL.iter().map(|counter| counter.name()).collect();
        assert_eq!(names.len(), Counter::ALL.len());
        for name in names {
            // Prometheus' data model: [a-zA-Z_][a-zA-Z0-9_]*.
            assert!(
                name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
                "{name}"
            );
        }
    }

    #[test]
    fn pauses_of_the_two_kinds_have_no_name_in_common() {
        for counter in Counter::ALL {
            let (name, about) = (counter.name(), counter.meaning());
            if name.starts_with("pfc_") {
                assert!(!about.contains("802.3x"), "{name}: {about}");
            }
            if name.starts_with("pause_") && !name.contains("control") {
                assert!(!name.contains("pfc"), "{name}");
            }
        }
    }
}
