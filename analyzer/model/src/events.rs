//! The table `events`: what happened at one time.

use std::borrow::Cow;

use crate::table::table;
use crate::{FlowId, TapId, Time};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    EventRow, EventColumns, "events", "One event at one time; a run of packets is one event.";
    time: Time, "ns", "Time of the event; of a run, its start.";
    kind: EventKind, "", "Kind of the event.";
    tap: TapId, "", "The tap at which it was seen: `taps.tap`.";
    flow_id: Option<FlowId>, "", "The flow that it belongs to. Absent: it belongs to none, or the flow is not known.";
    source: EventSource, "", "Reporter of the event: capture, ebpf (the kernel), counter, process (about itself).";
    psn: Option<u32>, "", "The PSN that it is about. Absent: the kind has none.";
    value: Option<u64>, "", "Amount in the unit of the kind. Absent: the kind has none.";
    object: Option<Cow<'static, str>>, "", "Events of hosts: the RDMA device, its port (`mlx5_0:1`) or the network interface; events of UET: the connection, which has no flow. Absent: nobody reported it, or the capture did.";
    name: Option<Cow<'static, str>>, "", "Events of counters: the counter, `samples.counter`. Absent for all others.";
    detail: Option<Cow<'static, str>>, "", "Further facts, as text. Absent: there are none.";
}

/// Names as values: an enumeration whose variants are words in tables.
macro_rules! names {
    ($(#[$attribute:meta])* $type:ident { $( $(#[$meta:meta])* $variant:ident = $name:literal, )+ }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub enum $type { $( $(#[$meta])* $variant, )+ }

        impl $type {
            /// The name, as written in tables.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )+ }
            }

            /// Every variant.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )+ ];
        }

        impl crate::Value for $type {
            type StoredValue = Cow<'static, str>;
            const KIND: crate::ColumnType = crate::ColumnType::Text;

            fn stored(&self) -> Self::StoredValue {
                Cow::Borrowed(self.name())
            }

            fn cell(&self) -> crate::Cell<'_> {
                crate::Cell::Text(self.name())
            }

            fn from_cell(cell: crate::Cell<'_>) -> Option<Self> {
                match cell {
                    crate::Cell::Text(text) => Self::ALL.iter().copied().find(|value| value.name() == text),
                    _ => None,
                }
            }

            fn data<'a>(column: &'a crate::Values<Self::StoredValue>) -> crate::Data<'a> {
                crate::Data::Text(column)
            }
        }
    };
}

pub(crate) use names;

names! {
    /// The kinds of events, with the meaning of `value`, `psn` and `detail`.
    EventKind {
        /// PSNs were skipped: `psn` the first of them, `value` their number.
        #[default]
        Gap = "gap",
        /// The sender fell back and retransmitted: `psn` the first one, `value` packets in the run, `detail` its trigger:
        /// nak, implied_nak, rnr, timeout, unknown.
        RetransmissionRun = "retransmission_run",
        /// The fate of missing PSNs: `psn` the first of them, `value` their number, `detail` reordered, network_lost,
        /// capture_lost, ambiguous or unresolved; the time is that of the gap.
        Hole = "hole",
        /// The receiver NAKed a packet that was captured: `psn`. It was lost behind this tap.
        LostDownstream = "lost_downstream",
        /// Retransmissions that were lost again before this tap: `psn` the first of them, `value` their number.
        LostAgain = "lost_again",
        /// A packet came without its data, because a switch had trimmed it: `psn`, `value` its DSCP.
        Trimmed = "trimmed",
        /// Missing READ responses: `psn` the first of them, `value` their number, `detail` as for a hole.
        ResponseHole = "response_hole",
        /// A flow was silent in the middle of a message, or while requests waited for answers: `value` its length in ns, `psn` the request that ended it, `detail` the cause.
        Stall = "stall",
        /// A sender that counts the packets of a flow in the IPv4 identification went on by `value` more than came by, in a silence of the
        /// length `detail` behind which no PSN is missing: `psn` the request that ended it.
        Unseen = "unseen",
        /// Two flows were paired as the two directions of a connection: once for both, with the lower `flow_id`; `value`
        /// the matches, `detail` the evidence.
        Paired = "paired",
        /// A late packet filled a hole: `psn`.
        Late = "late",
        /// A NAK: `psn` the NAKed PSN, `value` the syndrome.
        Nak = "nak",
        /// An RNR NAK: `psn`, `value` its timer in ns.
        RnrNak = "rnr_nak",
        /// Congestion notifications for one queue pair in one bin: `value` their number; `flow_id` the flow that they slow.
        Cnp = "cnp",
        /// READ responses missing: `psn` the first of them, `value` their number.
        ResponseGap = "response_gap",
        /// The flow's PSNs started again: `psn` the first of the new epoch, `value` its number.
        Epoch = "epoch",
        /// A connection manager's message: `value` the local QPN it names, `psn` the starting PSN it names.
        Connection = "connection",
        /// A PFC or pause frame: `value` the longest of its times, in quanta of 512 bit times.
        Pause = "pause",
        /// A priority was paused, from the first pause frame to its end: `value` the length in ns, `psn` the
        /// priority (8: the whole link).
        PauseInterval = "pause_interval",
        /// The capture lost records: `value` their number.
        CaptureLost = "capture_lost",
        /// A mirror session lost frames: `value` their number.
        MirrorLost = "mirror_lost",
        /// More flows were live than allowed, and one was closed early: `value` its packets.
        Evicted = "evicted",
        /// A queue pair of this host was made: `value` its number.
        QueuePairCreated = "qp_created",
        /// A queue pair of this host was changed: `value` its number, `psn` the PSN of its next request where that was set,
        /// `detail` the attributes that were set.
        QueuePairModified = "qp_modified",
        /// A queue pair of this host was destroyed: `value` its number.
        QueuePairDestroyed = "qp_destroyed",
        /// The connection manager of this host reported an event to its user: `value` the queue pair, `detail` the event.
        HostConnection = "cm_event",
        /// An asynchronous event of a device or port: `value` the queue pair if it is about one, `detail` the event. As often as the
        /// driver reports it: Soft-RoCE says `port_active` twice when its interface comes up.
        Asynchronous = "async_event",
        /// The retransmission timer of a queue pair ran out: `value` its number. Soft-RoCE's also does when everything was answered
        /// meanwhile: a `retransmission_run` shows that packets are retransmitted.
        RetransmitTimer = "retransmit_timer",
        /// A queue pair has waited out an RNR NAK: `value` its number.
        RnrTimer = "rnr_timer",
        /// A queue pair went into the error state by itself: `value` its number.
        QueuePairError = "qp_error",
        /// The kernel dropped a packet: `psn`, `value` the queue pair that it was for, `detail` the reason.
        Dropped = "dropped",
        /// A counter of a host rose in a way that matters: drops after none, a link that went down, a storm of pauses. `value` the
        /// difference, `object` and `name` the counter. All values are in `samples`.
        Counter = "counter",
        /// A counter of a host fell and did not wrap: `value` what it has counted since, `object` and `name` the counter.
        CounterReset = "counter_reset",
        /// A device of this host has an address, as its queue pairs for datagrams use it: `detail`.
        DeviceAddress = "device_address",
        /// MRC, UET: a packet was lost: an answer shows it as missing when it was older than round trips on its path are. `psn`, `value` the path
        /// that it had gone, `mrc_paths.path`; the time is that at which this was certain.
        MrcLoss = "mrc_loss",
        /// MRC, UET: a NACK says that a switch has cut a packet: `psn`, `value` the reason, 1 in the fabric, 2 at the last hop.
        MrcTrim = "mrc_trim",
        /// MRC, UET: a packet was sent again: `psn`, `value` its payload in bytes, `detail` the cause: hole, trimmed, trimmed_lasthop, refused, timeout, unknown.
        MrcRetransmit = "mrc_retransmit",
        /// MRC, UET: a NACK with another reason: `psn`, `value` the reason, `detail` its name.
        MrcNack = "mrc_nack",
        /// MRC, UET: the last packet of a path that its sender left after a loss: `value` the path, `mrc_paths.path`, `detail` retired or dead.
        MrcPath = "mrc_path",
        /// MRC: a host reports which of its ports can be reached: `value` a bit for each, `detail` the host.
        MrcPorts = "mrc_port",
        /// Host events were lost between the kernel and the program: `value` their number.
        HostEventsLost = "host_events_lost",
    }
}

names! {
    /// Who reports an event.
    EventSource {
        /// The captured packets.
        #[default]
        Capture = "capture",
        /// The eBPF probe.
        Ebpf = "ebpf",
        /// A polled counter.
        Counter = "counter",
        /// A process, by calls of its library that the eBPF probe saw: not the kernel's word.
        Process = "process",
    }
}
