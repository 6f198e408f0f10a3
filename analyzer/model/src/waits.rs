//! The table `waits`: which port had to wait for which other one, from the flows that suffered up to the root.

use std::borrow::Cow;

use crate::events::names;
use crate::table::table;
use crate::{Confidence, FlowId, Time};

table! {
    #[derive(Clone, Debug, Default, PartialEq)]
    WaitRow, WaitColumns, "waits", "One port that waited for another because of pauses, and one flow that met it.";
    victim_flow: Option<FlowId>, "", "The flow that had to wait there; in rows with `share`, a flow that the congested port carried. Absent: no captured flow is known to pass.";
    node: Option<Cow<'static, str>>, "", "The host, hypervisor or switch whose port waited, or the host's address where nobody names it. Absent: unknown.";
    port: Option<Cow<'static, str>>, "", "The port that waited. Absent: unknown.";
    priority: Option<u32>, "", "The paused priority, 0 to 7; 8 for the whole link. Absent: the counters do not distinguish priorities.";
    waits_for_node: Option<Cow<'static, str>>, "", "The host, hypervisor or switch that it waited for. Absent: unknown.";
    waits_for_port: Option<Cow<'static, str>>, "", "The port that it waited for: over a cable the one that sent the pauses, within a switch the port where its packets had to leave. Absent: unknown.";
    start_time: Time, "ns", "Start: the first pause, or the reading before the first one that counted pauses.";
    end_time: Time, "ns", "End: of the last pause, or the last reading that counted pauses.";
    paused_ns: Option<u64>, "ns", "Time for which it was paused. Absent within a switch, and where nothing shows it: frames need the link's speed, counters may lack it.";
    is_root: bool, "", "True if the port that it waited for is the root: that one waited for no other. Of a loop, all its rows.";
    root_kind: Option<RootKind>, "", "Kind of the root: contention, slow_receiver, pause_storm, loop, unclear. Absent where the row is not the root's.";
    share: Option<f64>, "", "Contention: share of the flow in the bytes of all captured flows that passed the congested port meanwhile. Absent otherwise.";
    resolution_ns: u64, "ns", "Times are known to this: the longest time between two readings, or the resolution of the stamps.";
    confidence: Confidence, "", "Confidence that it waited for this port: high, medium, low.";
}

names! {
    /// Root of a chain of ports that wait.
    RootKind {
        /// Nothing shows it.
        #[default]
        Unclear = "unclear",
        /// Flows compete for an egress port that nobody pauses.
        Contention = "contention",
        /// A host takes packets slower than they come.
        SlowReceiver = "slow_receiver",
        /// A host pauses its switch although hardly anything comes.
        PauseStorm = "pause_storm",
        /// Ports wait for one another in a circle that does not move: a deadlock.
        Loop = "loop",
    }
}
