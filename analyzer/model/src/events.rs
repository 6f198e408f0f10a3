//! The table `events`: things that happened at one time.

use std::borrow::Cow;

use crate::table::table;
use crate::{FlowId, Nanos, TapId};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    EventRow, EventColumns, "events", "One thing that happened at one time; a run of packets is one event.";
    time: Nanos, "ns", "When it happened; for a run, when it began.";
    kind: EventKind, "", "What happened.";
    tap: TapId, "", "The tap at which it was seen: `taps.tap`.";
    flow_id: Option<FlowId>, "", "The flow that it belongs to.";
    source: EventSource, "", "Who says so: capture, ebpf (the kernel), counter, process (a process of itself).";
    psn: Option<u32>, "", "The PSN that it is about.";
    value: Option<u64>, "", "How much, in the kind's own unit.";
    detail: Option<Cow<'static, str>>, "", "The rest, for people.";
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
            type Stored = Cow<'static, str>;
            const KIND: crate::ColumnType = crate::ColumnType::Text;

            fn stored(&self) -> Self::Stored {
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

            fn data<'a>(column: &'a crate::Values<Self::Stored>) -> crate::Data<'a> {
                crate::Data::Text(column)
            }
        }
    };
}

pub(crate) use names;

names! {
    /// The kinds of events. `value` and `psn` of an event are as said for each.
    EventKind {
        /// PSNs were jumped over: `psn` the first of them, `value` how many.
        #[default]
        Gap = "gap",
        /// The sender fell back and sent again: `psn` the first one, `value` packets in the run, `detail` its trigger:
        /// nak, implied_nak, rnr, timeout, unknown.
        ResendRun = "resend_run",
        /// What became of missing PSNs: `psn` the first of them, `value` how many, `detail` reordered, network_lost,
        /// capture_lost, ambiguous or unresolved; the time is that of the gap.
        Hole = "hole",
        /// The receiver asked again for a packet that was captured: `psn`. It was lost behind this tap.
        LostDownstream = "lost_downstream",
        /// Retransmissions that were lost again before this tap: `psn` the first of them, `value` how many.
        LostAgain = "lost_again",
        /// Missing READ responses: `psn` the first of them, `value` how many, `detail` as for a hole.
        ResponseHole = "response_hole",
        /// A flow was silent in the middle of a message, while requests waited for answers, or between messages for far
        /// longer than ever before: `value` for how long in ns, `psn` the request that ended it, `detail` what did.
        Stall = "stall",
        /// Two flows turned out to be the two directions of a connection: once for both, with the lower `flow_id`; `value`
        /// the matches, `detail` how.
        Paired = "paired",
        /// A packet came late and filled a hole: `psn`.
        Late = "late",
        /// A NAK: `psn` the one it asks for, `value` the syndrome.
        Nak = "nak",
        /// An RNR NAK: `psn`, `value` its timer in ns.
        RnrNak = "rnr_nak",
        /// Congestion notifications for one queue pair in one bin: `value` how many; `flow_id` the flow that they slow.
        Cnp = "cnp",
        /// READ responses missing: `psn` the first of them, `value` how many.
        ResponseGap = "response_gap",
        /// The flow's PSNs started again: `psn` the first of the new epoch, `value` its number.
        Epoch = "epoch",
        /// A connection manager's message: `value` the local QPN it names, `psn` the starting PSN it names.
        Connection = "connection",
        /// A PFC or pause frame: `value` the longest of its times, in quanta of 512 bit times.
        Pause = "pause",
        /// A priority was paused, from the first frame that said so to its end: `value` for how long in ns, `psn` the
        /// priority (8: the whole link).
        PauseInterval = "pause_interval",
        /// The capture lost records: `value` how many.
        CaptureLost = "capture_lost",
        /// A mirror session lost frames: `value` how many.
        MirrorLost = "mirror_lost",
        /// More flows were live than allowed, and one was closed early: `value` its packets.
        Evicted = "evicted",
        /// A queue pair of this host was made: `value` its number.
        QueuePairCreated = "qp_created",
        /// A queue pair of this host was changed: `value` its number, `psn` the one of its next request where that was set,
        /// `detail` what was set.
        QueuePairModified = "qp_modified",
        /// A queue pair of this host was destroyed: `value` its number.
        QueuePairDestroyed = "qp_destroyed",
        /// The connection manager of this host told its user something: `value` the queue pair, `detail` what.
        HostConnection = "cm_event",
        /// An asynchronous event of a device or port: `value` the queue pair if it is about one, `detail` which event. As often as the
        /// driver reports it: Soft-RoCE says `port_active` twice when its interface comes up.
        Asynchronous = "async_event",
        /// The retransmission timer of a queue pair ran out: `value` its number. Soft-RoCE's also does when everything was answered
        /// meanwhile: whether packets are sent again, a `resend_run` tells.
        RetransmitTimer = "retransmit_timer",
        /// A queue pair has waited out an RNR NAK: `value` its number.
        RnrTimer = "rnr_timer",
        /// A queue pair went into the error state by itself: `value` its number.
        QueuePairError = "qp_error",
        /// The kernel dropped a packet: `psn`, `value` the queue pair that it was for, `detail` the reason.
        Dropped = "dropped",
        /// A counter of this host moved between two polls: `value` by how much, `detail` which one and where it stands.
        Counter = "counter",
        /// A device of this host has an address, as its queue pairs for datagrams use it: `detail`.
        DeviceAddress = "device_address",
        /// Host events were lost on their way from the kernel: `value` how many.
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
