//! Vantages of taps: on the path of a flow, or as seen from a host.

use std::borrow::Cow;

use roce_wire::Address;

use crate::events::names;

names! {
    /// Where a tap stands on the way of a flow's packets.
    Vantage {
        /// Before the first place that marks or drops them.
        #[default]
        Sender = "sender",
        /// Behind the last such place.
        Receiver = "receiver",
        /// Such places, or routers, are on both sides.
        Between = "between",
    }
}

names! {
    /// Where a tap stands as seen from one host.
    HostVantage {
        /// At the host, or before the first place that marks or drops its packets.
        #[default]
        Near = "near",
        /// At the other end.
        Far = "far",
        /// Neither.
        Between = "between",
    }
}

/// Where the user says that the tap stood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TapPlace {
    /// Beside the host that sends data.
    Sender,
    /// Beside the host that receives data.
    Receiver,
    /// Beside this host.
    Host(Address),
}
