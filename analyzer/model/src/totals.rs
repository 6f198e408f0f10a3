//! Counts of a whole run.

use std::collections::BTreeMap;

use roce_wire::{CutLimit, Layer, Opcode};

use crate::Span;
use crate::cast::float;

/// Packets by opcode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpcodeCounts(Box<[u64; 256]>);

impl Default for OpcodeCounts {
    fn default() -> Self {
        Self(Box::new([0; 256]))
    }
}

impl OpcodeCounts {
    /// Counts one packet.
    #[inline]
    pub fn count(&mut self, opcode: Opcode) {
        self.0[usize::from(opcode.0)] += 1;
    }

    /// Sets the number of packets with `opcode`.
    pub fn set(&mut self, opcode: Opcode, packets: u64) {
        self.0[usize::from(opcode.0)] = packets;
    }

    /// Number of packets with `opcode`.
    pub fn packets(&self, opcode: Opcode) -> u64 {
        self.0[usize::from(opcode.0)]
    }

    /// The opcodes that were seen, in order.
    pub fn seen(&self) -> impl Iterator<Item = (Opcode, u64)> {
        (0..=u8::MAX)
            .map(Opcode)
            .map(|opcode| (opcode, self.packets(opcode)))
            .filter(|(_, packets)| *packets > 0)
    }

    fn add(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0.iter()) {
            *sum += more;
        }
    }
}

impl Totals {
    /// Application data that was no retransmission, in bytes.
    pub fn new_payload_bytes(&self) -> u64 {
        self.payload_bytes.saturating_sub(self.retransmitted_bytes)
    }

    /// This data over `length`, in bit/s; `None` for a run without length.
    pub fn goodput_bps(&self, length: Span) -> Option<f64> {
        (length.0 > 0).then(|| float(self.new_payload_bytes()) * 8e9 / float(length.0))
    }
}

macro_rules! totals {
    ($( $field:ident, $meaning:literal; )+) => {
        /// Counts of a whole run.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Totals {
            $( #[doc = $meaning] pub $field: u64, )+
            /// Packets by opcode, CNPs and management datagrams included.
            pub opcodes: OpcodeCounts,
            /// Frames whose decoding stopped early, by layer and cause.
            pub stops: BTreeMap<(Layer, CutLimit), u64>,
        }

        impl Totals {
            /// Adds the counts of another part of the run.
            pub fn add(&mut self, other: &Self) {
                $( self.$field += other.$field; )+
                self.opcodes.add(&other.opcodes);
                for (stop, frames) in &other.stops {
                    *self.stops.entry(*stop).or_default() += frames;
                }
            }

            /// The plain count of this name.
            pub fn count_mut(&mut self, name: &str) -> Option<&mut u64> {
                match name {
                    $( stringify!($field) => Some(&mut self.$field), )+
                    _ => None,
                }
            }

            /// Each plain count: name, value, meaning.
            pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64, &'static str)> {
                [ $( (stringify!($field), self.$field, $meaning), )+ ].into_iter()
            }
        }
    };
}

totals! {
    frames, "Records read.";
    frames_lost, "Lost records, as the captures report them.";
    copies, "Exact copies of RoCE packets seen within 1 ms before: dropped, in no other count.";
    roce_packets, "RoCE packets, with CNPs, ACKs and management datagrams.";
    wire_bytes, "Their frames on the wire, without FCS.";
    payload_bytes, "Application data in them.";
    roce_v1, "RoCEv1 packets.";
    roce_v2, "RoCEv2 packets.";
    infiniband, "Native InfiniBand packets.";
    uet_packets, "Packets of Ultra Ethernet Transport: UDP port 4793.";
    uet_encrypted, "Encrypted ones among them, whose connections and jobs are not known.";
    undecodable, "Frames that lead to RoCE but whose BTH could not be read.";
    unknown_link, "Frames of a link type that is not known.";
    fragments, "Later fragments of UDP datagrams: their content is not known.";
    not_roce, "Frames of other traffic, and copies that carry telemetry of switches beside their packets.";
    filtered, "RoCE packets left out by --only-flow, or because no chosen process owns them.";
    cut_by_snaplen, "RoCE packets of which a header was cut by the snaplen.";
    not_ect, "RoCE packets over IP, CNPs left out, with Not-ECT.";
    ect1, "RoCE packets over IP, CNPs left out, with ECT(1).";
    ect0, "RoCE packets over IP, CNPs left out, with ECT(0).";
    ce, "RoCE packets over IP, CNPs left out, with CE.";
    data_packets, "Packets of operations that carry data.";
    data_ce, "Data packets with CE.";
    acks, "ACKs.";
    cnp, "Congestion notifications.";
    cnp_unattributed, "CNPs without evidence which flow they slow.";
    cnp_after_nak, "CNPs within 100 us after a NAK of the same connection.";
    naks, "NAKs of every kind but RNR.";
    rnr_naks, "RNR NAKs.";
    retransmitted_packets, "Retransmitted request packets.";
    retransmitted_bytes, "Application data in retransmitted packets.";
    missing, "PSNs skipped when a request stream's highest PSN advanced.";
    reordered, "Missing packets that arrived late.";
    network_lost, "Packets that the network lost: missing packets, and retransmissions of them that were lost again.";
    network_lost_again, "Retransmissions that were lost again, a part of network_lost. missing counts a PSN once.";
    trimmed, "Packets that a switch had trimmed: they came without their data.";
    capture_lost, "Missing packets that the capture lost.";
    ambiguous, "Missing packets inside a go-back-N run that began earlier: lost, or discarded by the receiver.";
    unresolved, "Missing packets without evidence of their fate.";
    lost_downstream, "Captured packets that the receiver NAKed: lost behind the tap. Flows whose answers were not captured add nothing.";
    wasted_bytes, "Retransmitted application data that had been captured before. Flows that do not show it add nothing.";
    retransmission_runs, "Retransmission runs: a sender fell back and retransmitted from an earlier PSN.";
    runs_nak, "Retransmission runs that answer a sequence NAK.";
    runs_implied_nak, "Retransmission runs of READ requests whose responses were missing.";
    runs_rnr, "Retransmission runs after an RNR NAK.";
    runs_timeout, "Retransmission runs after a timeout.";
    runs_unknown, "Retransmission runs that nothing captured explains.";
    duplicate_acks, "ACKs that acknowledged nothing new. Flows whose other direction was not captured add nothing.";
    response_network_lost, "Missing READ responses that were requested again. Flows whose requests were not captured add nothing.";
    response_capture_lost, "Missing READ responses that were never requested again. Flows whose requests were not captured add nothing.";
    seen_again, "Packets of flow rows that are not counted: another tap saw the same traffic, and more of it.";
    late, "Request packets that filled a hole outside of any retransmission run.";
    response_missing, "READ responses missing inside a response message.";
    pause_frames, "PFC and pause frames.";
    icrc_checked, "Packets captured whole whose ICRC was checked.";
    icrc_bad, "Checked packets with a wrong ICRC.";
    flows, "Flows seen, counted per tap and epoch.";
    evicted, "Flows closed early for --max-flows.";
}
