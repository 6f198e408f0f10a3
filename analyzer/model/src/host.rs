//! A host's reports of its queue pairs: events of the eBPF probe and changes of polled counters, as
//! values.
//!
//! They join the packets by time; the probe moves their times to the clock of the capture. This file knows neither
//! kernels nor files; where the values come from is the probe's matter.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use roce_wire::{Address, Psn, Qpn, RnrTimer, Service};

use crate::events::names;
use crate::{CounterChange, EventKind, EventRow, EventSource, FlowId, Span, TapId, Time};

/// One thing that a host reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostEvent {
    /// Time on the clock of the capture. The probe reports its own uncertainty once, when it is opened.
    pub time: Time,
    /// The RDMA device (`mlx5_0`), or the network interface for what has only that; `None` when nobody said.
    pub device: Option<Arc<str>>,
    /// The process behind it. For timers and interrupts: the one that created the queue pair.
    pub process: Option<Process>,
    /// The reported event.
    pub what: HostChange,
}

/// A process as the kernel names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    /// The process (the kernel's thread group), in the initial PID namespace.
    pub pid: u32,
    /// Its command: 15 bytes at most; what is not UTF-8 is replaced.
    pub comm: Arc<str>,
    /// The identifier of its cgroup (version 2): the inode of the cgroup's folder. 0: not known.
    pub cgroup: u64,
    /// True if the event is the process's own word, by calls of its library, and not the kernel's: any user can make such calls up.
    pub claims: bool,
}

/// Event on a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostChange {
    /// A queue pair was made.
    Created {
        /// Its number.
        qpn: Qpn,
        /// Kind of the queue pair.
        kind: QueuePairKind,
    },
    /// A queue pair was changed; only successful changes are reported.
    Modified {
        /// Its number.
        qpn: Qpn,
        /// Attributes that were set.
        set: Box<QueuePairChange>,
    },
    /// A queue pair was destroyed: its number may be given to another.
    Destroyed {
        /// Its number.
        qpn: Qpn,
    },
    /// The connection manager sent its user an event.
    Connection {
        /// The event, by the kernel's name in lower case without its prefix: `established`, `disconnected`.
        event: Arc<str>,
        /// 0, or the error: a negative errno, or the reason of a reject.
        status: i32,
        /// The queue pair, when the identifier has one that the kernel knows.
        qpn: Option<Qpn>,
        /// This end.
        local: Option<Address>,
        /// The other end.
        remote: Option<Address>,
    },
    /// An asynchronous event of a device.
    Asynchronous {
        /// The event, by the kernel's name in lower case without its prefix: `port_err`, `qp_fatal`.
        event: Arc<str>,
        /// Subject of the event.
        about: Element,
    },
    /// The retransmission timer of a queue pair ran out (Soft-RoCE, which lets it run out also when everything was answered meanwhile).
    RetransmitTimer {
        /// The queue pair.
        qpn: Qpn,
    },
    /// A queue pair has waited out an RNR NAK and retransmits (Soft-RoCE).
    RnrTimer {
        /// The queue pair that waited.
        qpn: Qpn,
    },
    /// A queue pair went into the error state by itself (Soft-RoCE).
    QueuePairError {
        /// The queue pair.
        qpn: Qpn,
    },
    /// The kernel dropped a RoCE packet.
    Dropped {
        /// Source address.
        source: Address,
        /// Destination address.
        destination: Address,
        /// The queue pair that it was for.
        qpn: Qpn,
        /// Its PSN.
        psn: Psn,
        /// Why, by the kernel's name without its prefix: `NETFILTER_DROP`, `QDISC_DROP`.
        reason: Arc<str>,
    },
    /// A counter changed in a way that is worth an event. All its values are in the table `samples`.
    Counter {
        /// Kind of the change.
        change: CounterChange,
        /// Its name in the table `samples`.
        name: Arc<str>,
        /// Its priority, where it counts by priority.
        priority: Option<u8>,
        /// Its further labels.
        detail: Option<Arc<str>>,
        /// By how much it rose; after a reset, what it has counted since. Rounded, in the counter's unit.
        by: u64,
    },
    /// A device has an address: reported before queue pairs of it for datagrams, which name none
    /// themselves.
    Address {
        /// The address of one of its GIDs.
        address: Address,
    },
    /// Events were lost between the kernel and the probe, before this one's time.
    Lost {
        /// Number of lost events.
        count: u64,
    },
}

/// Attributes that a modification of a queue pair set; `None` for those left alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueuePairChange {
    /// The state that it is in now.
    pub state: Option<QueuePairState>,
    /// The other end's queue pair.
    pub destination_qpn: Option<Qpn>,
    /// The address of this end's GID.
    pub source: Option<Address>,
    /// The address of the other end's GID.
    pub destination: Option<Address>,
    /// The PSN of the next request that it sends.
    pub sq_psn: Option<Psn>,
    /// The PSN of the next request that it expects.
    pub rq_psn: Option<Psn>,
    /// Path MTU in bytes.
    pub path_mtu: Option<u32>,
    /// Wait for an answer (4.096 us * 2^code); 0 ns: for ever.
    pub timeout: Option<Span>,
    /// Retries without an answer.
    pub retry_count: Option<u8>,
    /// Retries after an RNR NAK; 7: for ever.
    pub rnr_retry: Option<u8>,
    /// The timer that its own RNR NAKs carry.
    pub min_rnr_timer: Option<RnrTimer>,
    /// Traffic class of its packets: DSCP and ECN.
    pub traffic_class: Option<u8>,
    /// The index of this end's GID in the port's table.
    pub source_gid_index: Option<u8>,
    /// The port of the device.
    pub port: Option<u8>,
}

/// Subject of an asynchronous event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    /// The device as a whole.
    Device,
    /// One of its ports.
    Port(u8),
    /// A queue pair.
    QueuePair(Qpn),
    /// A completion queue, a shared receive queue or a work queue: they have no number on the wire.
    Queue,
}

names! {
    /// Service of a queue pair.
    QueuePairKind {
        /// Something of a device's own, or not known.
        #[default]
        Other = "other",
        /// Reliable connection.
        Rc = "RC",
        /// Unreliable connection.
        Uc = "UC",
        /// Unreliable datagram.
        Ud = "UD",
        /// The sending end of XRC.
        XrcInitiator = "XRC initiator",
        /// The receiving end of XRC.
        XrcTarget = "XRC target",
        /// Queue pair 0: subnet management.
        Smi = "SMI",
        /// Queue pair 1: general services, the connection manager's.
        Gsi = "GSI",
        /// Frames made by the program itself.
        RawPacket = "raw packet",
    }
}

impl QueuePairKind {
    /// The service of its packets, when they are RoCE.
    pub const fn service(self) -> Option<Service> {
        match self {
            Self::Rc => Some(Service::Rc),
            Self::Uc => Some(Service::Uc),
            Self::Ud | Self::Gsi | Self::Smi => Some(Service::Ud),
            Self::XrcInitiator | Self::XrcTarget => Some(Service::Xrc),
            Self::Other | Self::RawPacket => None,
        }
    }
}

names! {
    /// The state of a queue pair (IBTA 10.3.1).
    QueuePairState {
        /// Made, nothing set.
        #[default]
        Reset = "reset",
        /// Can have receive buffers posted.
        Init = "init",
        /// Ready to receive.
        ReadyToReceive = "rtr",
        /// Ready to send.
        ReadyToSend = "rts",
        /// Finishes its open work and starts nothing new.
        SendQueueDrained = "sqd",
        /// The send queue has failed, the receive queue works.
        SendQueueError = "sqe",
        /// Everything that is posted fails.
        Error = "err",
    }
}

impl HostEvent {
    /// The event as a row of the table `events`. The caller knows `tap` and `flow_id`.
    pub fn row(&self, tap: TapId, flow_id: Option<FlowId>) -> EventRow {
        let (kind, mut source) = self.what.kind();
        if self.process.as_ref().is_some_and(|process| process.claims) {
            source = EventSource::Process;
        }
        let mut detail = self.what.to_string();
        if let Some(device) = &self.device {
            detail = format!("{device}: {detail}");
        }
        if let Some(process) = &self.process {
            detail = format!("{detail} ({process})");
        }
        EventRow {
            time: self.time,
            kind,
            tap,
            flow_id,
            source,
            psn: self.what.psn().map(Psn::value),
            value: self.what.value(),
            object: self.device.as_deref().map(|device| Cow::Owned(device.to_owned())),
            name: self.what.counter().map(|name| Cow::Owned(name.to_owned())),
            detail: Some(Cow::Owned(detail)),
        }
    }
}

impl HostChange {
    /// The kind of event that it is in tables, and who says so.
    pub const fn kind(&self) -> (EventKind, EventSource) {
        let kind = match self {
            Self::Created { .. } => EventKind::QueuePairCreated,
            Self::Modified { .. } => EventKind::QueuePairModified,
            Self::Destroyed { .. } => EventKind::QueuePairDestroyed,
            Self::Connection { .. } => EventKind::HostConnection,
            Self::Asynchronous { .. } => EventKind::Asynchronous,
            Self::RetransmitTimer { .. } => EventKind::RetransmitTimer,
            Self::RnrTimer { .. } => EventKind::RnrTimer,
            Self::QueuePairError { .. } => EventKind::QueuePairError,
            Self::Dropped { .. } => EventKind::Dropped,
            Self::Counter {
                change: CounterChange::Reset,
                ..
            } => return (EventKind::CounterReset, EventSource::Counter),
            Self::Counter { .. } => return (EventKind::Counter, EventSource::Counter),
            Self::Address { .. } => EventKind::DeviceAddress,
            Self::Lost { .. } => EventKind::HostEventsLost,
        };
        (kind, EventSource::Ebpf)
    }

    /// The queue pair of this host that it is about; of a dropped packet, the one that it was for.
    pub const fn qpn(&self) -> Option<Qpn> {
        match self {
            Self::Created { qpn, .. }
            | Self::Modified { qpn, .. }
            | Self::Destroyed { qpn }
            | Self::RetransmitTimer { qpn }
            | Self::RnrTimer { qpn }
            | Self::QueuePairError { qpn }
            | Self::Dropped { qpn, .. }
            | Self::Asynchronous {
                about: Element::QueuePair(qpn),
                ..
            } => Some(*qpn),
            Self::Connection { qpn, .. } => *qpn,
            Self::Asynchronous { .. } | Self::Counter { .. } | Self::Address { .. } | Self::Lost { .. } => {
                None
            }
        }
    }

    /// Value of `events.name`.
    fn counter(&self) -> Option<&str> {
        match self {
            Self::Counter { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Value of `events.psn`.
    const fn psn(&self) -> Option<Psn> {
        match self {
            Self::Modified { set, .. } => set.sq_psn,
            Self::Dropped { psn, .. } => Some(*psn),
            _ => None,
        }
    }

    /// Value of `events.value`.
    fn value(&self) -> Option<u64> {
        match self {
            Self::Counter { by, .. } => Some(*by),
            Self::Lost { count } => Some(*count),
            other => other.qpn().map(|qpn| u64::from(qpn.value())),
        }
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.comm, self.pid)
    }
}

impl fmt::Display for HostChange {
    /// For people, as in `events.detail`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created { qpn, kind } => write!(f, "QP {qpn} created, {}", kind.name()),
            Self::Modified { qpn, set } => write!(f, "QP {qpn} set to {set}"),
            Self::Destroyed { qpn } => write!(f, "QP {qpn} destroyed"),
            Self::Connection {
                event,
                status,
                qpn,
                local,
                remote,
            } => {
                write!(f, "{event}")?;
                if let Some(qpn) = qpn {
                    write!(f, ", QP {qpn}")?;
                }
                if let (Some(local), Some(remote)) = (local, remote) {
                    write!(f, ", {local} to {remote}")?;
                }
                if *status != 0 {
                    write!(f, ", status {status}")?;
                }
                Ok(())
            }
            Self::Asynchronous { event, about } => match about {
                Element::Device | Element::Queue => write!(f, "{event}"),
                Element::Port(port) => write!(f, "{event} of port {port}"),
                Element::QueuePair(qpn) => write!(f, "{event} of QP {qpn}"),
            },
            Self::RetransmitTimer { qpn } => write!(f, "QP {qpn}: its retransmission timer ran out"),
            Self::RnrTimer { qpn } => write!(f, "QP {qpn}: waited for the receiver"),
            Self::QueuePairError { qpn } => write!(f, "QP {qpn} in error"),
            Self::Dropped {
                source,
                destination,
                qpn,
                reason,
                ..
            } => write!(f, "{reason}: packet of {source} to {destination} QP {qpn}"),
            Self::Counter {
                change,
                name,
                priority,
                detail,
                by,
            } => {
                f.write_str(name)?;
                if let Some(priority) = priority {
                    write!(f, " of priority {priority}")?;
                }
                if let Some(detail) = detail {
                    write!(f, " ({detail})")?;
                }
                match change {
                    CounterChange::Reset => write!(f, " was reset; {by} since"),
                    CounterChange::FirstDrop => write!(f, " +{by} after none"),
                    CounterChange::Storm | CounterChange::LinkDown => write!(f, " +{by}"),
                }
            }
            Self::Address { address } => write!(f, "has the address {address}"),
            Self::Lost { count } => write!(f, "{count} host events lost"),
        }
    }
}

impl fmt::Display for QueuePairChange {
    /// The state, then what was set, as `name value`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.state.map_or("the same state", QueuePairState::name))?;
        let mut item = |name: &str, value: Option<String>| match value {
            Some(value) => write!(f, ", {name} {value}"),
            None => Ok(()),
        };
        let text = |value: &dyn fmt::Display| value.to_string();
        item("to QP", self.destination_qpn.as_ref().map(|v| text(v)))?;
        item("source", self.source.as_ref().map(|v| text(v)))?;
        item("destination", self.destination.as_ref().map(|v| text(v)))?;
        item("SQ PSN", self.sq_psn.as_ref().map(|v| text(v)))?;
        item("RQ PSN", self.rq_psn.as_ref().map(|v| text(v)))?;
        item("path MTU", self.path_mtu.as_ref().map(|v| text(v)))?;
        item("timeout", self.timeout.as_ref().map(|v| text(v)))?;
        item("retries", self.retry_count.as_ref().map(|v| text(v)))?;
        item("RNR retries", self.rnr_retry.as_ref().map(|v| text(v)))?;
        item("RNR timer", self.min_rnr_timer.as_ref().map(|v| text(v)))?;
        item("traffic class", self.traffic_class.as_ref().map(|v| text(v)))?;
        item("port", self.port.as_ref().map(|v| text(v)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(what: HostChange) -> HostEvent {
        HostEvent {
            time: Time(5),
            device: Some("rxe0".into()),
            process: Some(Process {
                pid: 71,
                comm: "ib_send_bw".into(),
                cgroup: 1,
                claims: false,
            }),
            what,
        }
    }

    #[test]
    fn rows_say_who_and_what() {
        let set = QueuePairChange {
            state: Some(QueuePairState::ReadyToSend),
            sq_psn: Some(Psn::new(0x12)),
            // Code 14: 4.096 us * 2^14.
            timeout: Some(Span(4_096 << 14)),
            ..QueuePairChange::default()
        };
        let row = event(HostChange::Modified {
            qpn: Qpn::new(0x11),
            set: Box::new(set),
        })
        .row(TapId(3), Some(FlowId(9)));
        assert_eq!(
            (row.kind, row.source),
            (EventKind::QueuePairModified, EventSource::Ebpf)
        );
        assert_eq!((row.psn, row.value), (Some(18), Some(17)));
        assert_eq!(
            (row.tap, row.flow_id, row.time),
            (TapId(3), Some(FlowId(9)), Time(5))
        );
        assert_eq!(
            row.detail.as_deref(),
            Some("rxe0: QP 0x11 set to rts, SQ PSN 18, timeout 67.1 ms (ib_send_bw 71)")
        );
    }

    #[test]
    fn counters_are_a_source_of_their_own() {
        let row = |change| {
            event(HostChange::Counter {
                change,
                name: "priority_discards".into(),
                priority: Some(3),
                detail: Some("buffer".into()),
                by: 40,
            })
            .row(TapId(0), None)
        };
        let drops = row(CounterChange::FirstDrop);
        assert_eq!(
            (drops.kind, drops.source),
            (EventKind::Counter, EventSource::Counter)
        );
        assert_eq!(
            (drops.object.as_deref(), drops.name.as_deref()),
            (Some("rxe0"), Some("priority_discards"))
        );
        assert_eq!(drops.value, Some(40));
        let detail = drops.detail.unwrap();
        assert!(
            detail.contains("priority_discards of priority 3 (buffer) +40 after none"),
            "{detail}"
        );
        assert_eq!(row(CounterChange::Reset).kind, EventKind::CounterReset);
    }

    #[test]
    fn a_port_has_no_queue_pair() {
        let down = HostChange::Asynchronous {
            event: "port_err".into(),
            about: Element::Port(1),
        };
        assert_eq!((down.qpn(), down.value()), (None, None));
        assert_eq!(down.to_string(), "port_err of port 1");
    }
}
