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
            Self::PauseStormEvents => Some(CounterChange::Storm),
            Self::PhyLinkDowns => Some(CounterChange::LinkDown),
            Self::PortOutOfBufferDrops
            | Self::PriorityDiscards
            | Self::NetdevDiscards
            | Self::NetdevOutOfBuffer => Some(CounterChange::FirstDrop),
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
    PortRnrNaksReceived, "port_rnr_naks_received", Cumulative, "NAKs", [], "RNR NAKs received: the receiver had no buffer posted.";
    PortRnrNaksSent, "port_rnr_naks_sent", Cumulative, "NAKs", [], "RNR NAKs sent.";
    PortOutOfBufferDrops, "port_out_of_buffer_drops", Cumulative, "packets", [], "Packets dropped because no receive buffer was posted.";
    PortDuplicateRequests, "port_duplicate_requests", Cumulative, "requests", [], "Requests received a second time.";
    PortImpliedNakSequenceErrors, "port_implied_nak_sequence_errors", Cumulative, "events", [], "Responses that showed that an earlier response is missing.";
    PortAdaptiveRetransmissions, "port_adaptive_retransmissions", Cumulative, "events", [], "Adaptive retransmissions of RoCE traffic.";
    PortAdaptiveRetransmissionTimeouts, "port_adaptive_retransmission_timeouts", Cumulative, "events", [], "Timeouts under adaptive retransmission.";
    PortSlowRestarts, "port_slow_restarts", Cumulative, "events", [], "Slow restarts of RoCE flows.";
    PortIcrcErrors, "port_icrc_errors", Cumulative, "packets", [], "RoCE packets received with a wrong ICRC.";
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
