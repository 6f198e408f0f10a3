//! Levels and kinds of rows, and the counters that they are sums of.

use std::sync::Arc;

use roce_model::{Counter, Sample, SampleSource};

/// A level, from the server to the inside of the switch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// Adapters of a host or virtual machine.
    Server,
    /// Adapters of a hypervisor.
    Hypervisor,
    /// Ports of a switch.
    SwitchPort,
    /// Links between the chips of a switch.
    SwitchInside,
    /// Buffers of a switch.
    Buffer,
}

impl Level {
    /// Its name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Hypervisor => "hypervisor",
            Self::SwitchPort => "switch, port",
            Self::SwitchInside => "switch, inside",
            Self::Buffer => "switch, buffer",
        }
    }

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Hypervisor => "hypervisor",
            Self::SwitchPort => "switch_port",
            Self::SwitchInside => "switch_inside",
            Self::Buffer => "buffer",
        }
    }
}

/// The two kinds of pauses, which are never added.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PauseFamily {
    /// PFC: pauses of one priority.
    Pfc,
    /// 802.3x: pauses of the whole link.
    Global,
}

impl PauseFamily {
    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pfc => "PFC",
            Self::Global => "802.3x",
        }
    }
}

/// The quantity of a row. "Received" and "sent" are those of the row's own port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// PFC frames received.
    PfcReceived,
    /// PFC frames sent.
    PfcSent,
    /// 802.3x pause frames received.
    GlobalReceived,
    /// 802.3x pause frames sent.
    GlobalSent,
    /// Packets with ECN's mark: received by a server, marked by a switch.
    Marked,
    /// CNPs sent.
    CnpsSent,
    /// CNPs handled.
    CnpsHandled,
    /// Packets dropped.
    Drops,
}

impl Kind {
    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::PfcReceived => "PFC received",
            Self::PfcSent => "PFC sent",
            Self::GlobalReceived => "802.3x received",
            Self::GlobalSent => "802.3x sent",
            Self::Marked => "marked",
            Self::CnpsSent => "CNPs sent",
            Self::CnpsHandled => "CNPs handled",
            Self::Drops => "drops",
        }
    }

    /// The kind of pauses, if it is one.
    pub fn family(self) -> Option<PauseFamily> {
        match self {
            Self::PfcReceived | Self::PfcSent => Some(PauseFamily::Pfc),
            Self::GlobalReceived | Self::GlobalSent => Some(PauseFamily::Global),
            _ => None,
        }
    }

    /// The kind that the other end of the cable counts.
    pub fn other_end(self) -> Option<Self> {
        match self {
            Self::PfcReceived => Some(Self::PfcSent),
            Self::PfcSent => Some(Self::PfcReceived),
            Self::GlobalReceived => Some(Self::GlobalSent),
            Self::GlobalSent => Some(Self::GlobalReceived),
            _ => None,
        }
    }

    /// True for frames that the row's own port sent.
    pub fn is_sent(self) -> bool {
        matches!(self, Self::PfcSent | Self::GlobalSent)
    }
}

/// A row that a level cannot fill, and why.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Unseen {
    /// The level.
    pub level: Level,
    /// The host, hypervisor or switch.
    pub node: String,
    /// The adapter or port.
    pub object: String,
    /// The quantity.
    pub kind: Kind,
    /// The reason, in a few words: `not visible in a virtual function`.
    pub why: String,
}

/// Identity of a row.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct RowKey {
    pub(super) level: Level,
    pub(super) node: Arc<str>,
    pub(super) object: Arc<str>,
    pub(super) kind: Kind,
}

/// The row that a sample belongs to. True: the numbers are by priority, and count only where there is no sum of all priorities.
pub(super) fn row_of(sample: &Sample) -> Option<(RowKey, bool)> {
    let detail = sample.details.first().map(AsRef::as_ref);
    let (level, kind, is_by_priority) = match sample.source {
        SampleSource::Host => (Level::Server, host(sample.counter)?, false),
        SampleSource::Hypervisor => (Level::Hypervisor, hypervisor(sample.counter)?, false),
        SampleSource::Switch => switch(sample.counter, detail)?,
        SampleSource::Gpu | SampleSource::Tool => return None,
    };
    let key = RowKey {
        level,
        node: Arc::clone(&sample.node),
        object: Arc::clone(&sample.object),
        kind,
    };
    Some((key, is_by_priority))
}

fn host(counter: Counter) -> Option<Kind> {
    Some(match counter {
        Counter::PfcReceivedFrames => Kind::PfcReceived,
        Counter::PfcTransmittedFrames => Kind::PfcSent,
        Counter::PauseReceivedFrames => Kind::GlobalReceived,
        Counter::PauseTransmittedFrames => Kind::GlobalSent,
        Counter::PortEcnMarkedPacketsReceived => Kind::Marked,
        Counter::PortCnpSent => Kind::CnpsSent,
        Counter::PortCnpHandled => Kind::CnpsHandled,
        // Discards by priority are among those of the interface.
        Counter::NetdevDiscards | Counter::NetdevOutOfBuffer | Counter::PortOutOfBufferDrops => Kind::Drops,
        _ => return None,
    })
}

fn hypervisor(counter: Counter) -> Option<Kind> {
    Some(match counter {
        Counter::HypervisorPfcReceivedFrames => Kind::PfcReceived,
        Counter::HypervisorPfcTransmittedFrames => Kind::PfcSent,
        Counter::HypervisorPauseReceivedFrames => Kind::GlobalReceived,
        Counter::HypervisorPauseTransmittedFrames => Kind::GlobalSent,
        Counter::HypervisorDroppedPackets => Kind::Drops,
        _ => return None,
    })
}

/// `kind` is the kind of the interface: `port`, `internal`, `aggregate` or `management`.
fn switch(counter: Counter, kind: Option<&str>) -> Option<(Level, Kind, bool)> {
    let port = match kind {
        Some("internal") => Level::SwitchInside,
        Some("aggregate" | "management") => return None,
        _ => Level::SwitchPort,
    };
    Some(match counter {
        Counter::SwitchPfcReceivedFrames => (port, Kind::PfcReceived, false),
        Counter::SwitchPfcTransmittedFrames => (port, Kind::PfcSent, false),
        Counter::SwitchPriorityPfcReceivedFrames => (port, Kind::PfcReceived, true),
        Counter::SwitchPriorityPfcTransmittedFrames => (port, Kind::PfcSent, true),
        Counter::SwitchPauseReceivedFrames => (port, Kind::GlobalReceived, false),
        Counter::SwitchPauseTransmittedFrames => (port, Kind::GlobalSent, false),
        Counter::SwitchQueueEcnMarkedPackets => (port, Kind::Marked, false),
        Counter::SwitchMmuDroppedPackets
        | Counter::SwitchQueueDroppedPackets
        | Counter::SwitchQueueWredDroppedPackets
        | Counter::SwitchPriorityGroupDroppedPackets => (Level::Buffer, Kind::Drops, false),
        _ => return None,
    })
}
