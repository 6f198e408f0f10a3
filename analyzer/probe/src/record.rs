//! Records of the kernel programs as host events.

use std::sync::Arc;

use roce_abi::{
    AsyncRecord, ConnectionRecord, DropRecord, HostHead, HostKind, ModifyRecord, QueuePairRecord, mask, read,
};
use roce_model::{
    AckTimeout, Address, Element, HostChange, HostEvent, Process, Psn, Qpn, QueuePairChange, QueuePairKind,
    QueuePairState, RnrTimer, Span,
};

use crate::clock::ClockOffset;
use crate::kernel::KernelTypes;
use crate::owners::Owners;

/// Makes host events of records.
pub(crate) struct Records {
    types: KernelTypes,
    owners: Owners,
    /// True if the kernel reports queue pairs: the reports of processes are then not needed.
    kernel_reports: bool,
}

impl Records {
    pub(crate) fn new(types: KernelTypes) -> Self {
        Self {
            types,
            owners: Owners::default(),
            kernel_reports: false,
        }
    }

    /// The event of one record; `None` for what is no record.
    pub(crate) fn event(&mut self, bytes: &[u8], clock: ClockOffset) -> Option<HostEvent> {
        let mut head: HostHead = read(bytes)?;
        let claimed = head.kind & HostKind::CLAIMED != 0;
        head.kind &= !HostKind::CLAIMED;
        let kind = |kind: HostKind| head.kind == kind as u32;
        let is_life = kind(HostKind::Created) || kind(HostKind::Modified) || kind(HostKind::Destroyed);
        self.kernel_reports |= is_life && !claimed;
        if claimed && self.kernel_reports {
            return None;
        }
        let (device, change) = if kind(HostKind::Modified) {
            let record: ModifyRecord = read(bytes)?;
            (text(&record.device), modified(&record))
        } else if kind(HostKind::Connection) {
            let record: ConnectionRecord = read(bytes)?;
            (text(&record.device), self.connection(&record))
        } else if kind(HostKind::Device) || kind(HostKind::QueuePair) {
            let record: AsyncRecord = read(bytes)?;
            (text(&record.device), self.asynchronous(&record))
        } else if kind(HostKind::Dropped) {
            let record: DropRecord = read(bytes)?;
            (text(&record.interface), self.dropped(&record))
        } else {
            let record: QueuePairRecord = read(bytes)?;
            (
                text(&record.device),
                queue_pair(head.kind, record.qpn, record.kind)?,
            )
        };
        let running = Process {
            pid: head.pid,
            comm: text(&head.comm).unwrap_or_default(),
            cgroup: head.cgroup,
            claims: claimed,
        };
        let process = self.owners.process(device.as_deref(), &change, running);
        Some(HostEvent {
            time: clock.realtime(head.time),
            device,
            process,
            what: change,
        })
    }

    fn connection(&self, record: &ConnectionRecord) -> HostChange {
        HostChange::Connection {
            event: self.types.cm_events.name(record.event),
            status: record.status,
            qpn: (record.qpn != 0).then(|| Qpn::new(record.qpn)),
            local: socket_address(&record.local),
            remote: socket_address(&record.remote),
        }
    }

    fn asynchronous(&self, record: &AsyncRecord) -> HostChange {
        let event = self.types.async_events.name(record.event);
        // The name of an event alone gives its subject (Linux include/rdma/ib_verbs.h, enum
        // ib_event_type).
        let about = if record.head.kind == HostKind::QueuePair as u32 {
            Element::QueuePair(Qpn::new(record.element))
        } else if &*event == "device_fatal" {
            Element::Device
        } else if event.starts_with("cq") || event.starts_with("srq") || event.starts_with("wq") {
            Element::Queue
        } else {
            u8::try_from(record.element).map_or(Element::Device, Element::Port)
        };
        HostChange::Asynchronous { event, about }
    }

    fn dropped(&self, record: &DropRecord) -> HostChange {
        // The base transport header: the queue pair at 5, the PSN at 9 (IBTA 9.2).
        let word = |at: usize| {
            let bytes = [record.bth[at], record.bth[at + 1], record.bth[at + 2]];
            u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]])
        };
        HostChange::Dropped {
            source: Address::v6(record.source),
            destination: Address::v6(record.destination),
            qpn: Qpn::new(word(5)),
            psn: Psn::new(word(9)),
            reason: self.types.drop_reasons.name(record.reason),
        }
    }
}

fn queue_pair(what: u32, qpn: u32, kind: u32) -> Option<HostChange> {
    let qpn = Qpn::new(qpn);
    let is = |kind: HostKind| what == kind as u32;
    Some(if is(HostKind::Created) {
        HostChange::Created {
            qpn,
            kind: queue_pair_kind(kind),
        }
    } else if is(HostKind::Destroyed) {
        HostChange::Destroyed { qpn }
    } else if is(HostKind::RetransmitTimer) {
        HostChange::RetransmitTimer { qpn }
    } else if is(HostKind::RnrTimer) {
        HostChange::RnrTimer { qpn }
    } else if is(HostKind::QueuePairError) {
        HostChange::QueuePairError { qpn }
    } else {
        return None;
    })
}

/// `enum ib_qp_type`; libibverbs has the same numbers.
fn queue_pair_kind(number: u32) -> QueuePairKind {
    match number {
        0 => QueuePairKind::Smi,
        1 => QueuePairKind::Gsi,
        2 => QueuePairKind::Rc,
        3 => QueuePairKind::Uc,
        4 => QueuePairKind::Ud,
        8 => QueuePairKind::RawPacket,
        9 => QueuePairKind::XrcInitiator,
        10 => QueuePairKind::XrcTarget,
        _ => QueuePairKind::Other,
    }
}

/// `enum ib_qp_state`.
fn state(number: u32) -> Option<QueuePairState> {
    QueuePairState::ALL.get(number as usize).copied()
}

fn modified(record: &ModifyRecord) -> HostChange {
    let set = |bit: u32| record.mask & bit != 0;
    let path = set(mask::ADDRESS);
    let change = QueuePairChange {
        state: set(mask::STATE).then(|| state(record.state)).flatten(),
        destination_qpn: set(mask::DESTINATION_QPN).then(|| Qpn::new(record.destination_qpn)),
        source: (path && record.source != [0; 16]).then(|| Address::v6(record.source)),
        destination: path.then(|| Address::v6(record.destination)),
        sq_psn: set(mask::SQ_PSN).then(|| Psn::new(record.sq_psn)),
        rq_psn: set(mask::RQ_PSN).then(|| Psn::new(record.rq_psn)),
        path_mtu: set(mask::PATH_MTU).then(|| path_mtu(record.path_mtu)).flatten(),
        timeout: set(mask::TIMEOUT).then(|| timeout(record.timeout)),
        retry_count: set(mask::RETRY_COUNT).then_some(record.retry_count),
        rnr_retry: set(mask::RNR_RETRY).then_some(record.rnr_retry),
        min_rnr_timer: set(mask::MIN_RNR_TIMER).then(|| RnrTimer::new(record.min_rnr_timer)),
        traffic_class: path.then_some(record.traffic_class),
        source_gid_index: path.then_some(record.source_index),
        port: set(mask::PORT).then_some(record.port),
    };
    HostChange::Modified {
        qpn: Qpn::new(record.qpn),
        set: Box::new(change),
    }
}

/// `enum ib_mtu`: 1 to 5 are 256 to 4,096 bytes.
fn path_mtu(code: u32) -> Option<u32> {
    (1..=5).contains(&code).then(|| 128 << code)
}

/// Local ACK timeout; 0 for ever.
fn timeout(code: u8) -> Span {
    match AckTimeout::new(code) {
        timeout if timeout.code() == 0 => Span(0),
        timeout => Span(timeout.nanos()),
    }
}

/// The text before the zero; `None` when there is none.
fn text(bytes: &[u8]) -> Option<Arc<str>> {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    (!text.is_empty()).then(|| String::from_utf8_lossy(text).into())
}

/// The address of a `struct sockaddr`: its family in the host's byte order, then the port and the address in network order.
fn socket_address(bytes: &[u8; 28]) -> Option<Address> {
    const IPV4: u16 = 2;
    const IPV6: u16 = 10;
    match u16::from_ne_bytes([bytes[0], bytes[1]]) {
        IPV4 => Some(Address::v4(*bytes[4..].first_chunk()?)),
        IPV6 => Some(Address::v6(*bytes[8..].first_chunk()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use roce_model::Time;
    use std::path::Path;

    use super::*;

    const CLOCK: ClockOffset = ClockOffset {
        nanos: 1_000,
        uncertainty: Span(1),
    };

    /// Names as this machine's kernel has them, or none: then numbers are names.
    fn records() -> Option<Records> {
        let there = Path::new("/sys/kernel/btf/vmlinux").exists();
        if !there {
            crate::btf::tests::skip("records");
        }
        there.then(|| Records::new(KernelTypes::read().unwrap()))
    }

    /// The head of a record: time, cgroup, kind, pid, comm, as in `HostHead`.
    fn head(kind: HostKind, pid: u32, comm: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(7_u64.to_ne_bytes());
        bytes.extend(42_u64.to_ne_bytes());
        bytes.extend((kind as u32).to_ne_bytes());
        bytes.extend(pid.to_ne_bytes());
        padded(&mut bytes, comm, 16);
        bytes
    }

    fn padded(bytes: &mut Vec<u8>, text: &str, length: usize) {
        bytes.extend(text.as_bytes());
        bytes.resize(bytes.len() + length - text.len(), 0);
    }

    fn queue_pair(kind: HostKind, pid: u32, comm: &str) -> Vec<u8> {
        let mut bytes = head(kind, pid, comm);
        padded(&mut bytes, "rxe0", 64);
        // QP 0x11, IB_QPT_RC.
        bytes.extend(0x11_u32.to_ne_bytes());
        bytes.extend(2_u32.to_ne_bytes());
        bytes
    }

    #[test]
    fn timers_belong_to_who_made_the_queue_pair() {
        let Some(mut records) = records() else { return };
        let mut of = |bytes: &[u8]| records.event(bytes, CLOCK).unwrap();
        let made = of(&queue_pair(HostKind::Created, 71, "ib_send_bw"));
        assert_eq!((made.time, made.device.as_deref()), (Time(1_007), Some("rxe0")));
        assert_eq!(
            made.what,
            HostChange::Created {
                qpn: Qpn::new(0x11),
                kind: QueuePairKind::Rc
            }
        );
        let timer = of(&queue_pair(HostKind::RetransmitTimer, 0, "swapper/1"));
        let process = timer.process.unwrap();
        assert_eq!(
            (process.pid, &*process.comm, process.cgroup),
            (71, "ib_send_bw", 42)
        );
        // The kernel destroys what a killed process leaves in whatever thread has the time.
        let gone = of(&queue_pair(HostKind::Destroyed, 9, "kworker/u8:1"));
        assert_eq!(gone.process.unwrap().pid, 71);
        let after = of(&queue_pair(HostKind::RetransmitTimer, 0, "swapper/1"));
        assert_eq!(after.process, None, "nobody knows any more");
    }

    #[test]
    fn what_a_process_says_of_itself_is_marked_and_gives_way_to_the_kernel() {
        let Some(mut records) = records() else { return };
        let mut claim = queue_pair(HostKind::Created, 71, "x");
        // `kind` follows time and cgroup.
        let kind = HostKind::Created as u32 | HostKind::CLAIMED;
        claim[16..20].copy_from_slice(&kind.to_ne_bytes());
        let claimed = records.event(&claim, CLOCK).unwrap();
        assert!(claimed.process.as_ref().unwrap().claims);
        assert_eq!(
            claimed.row(roce_model::TapId(0), None).source,
            roce_model::EventSource::Process
        );
        let reported = records
            .event(&queue_pair(HostKind::Created, 72, "y"), CLOCK)
            .unwrap();
        assert!(!reported.process.as_ref().unwrap().claims);
        assert_eq!(
            reported.row(roce_model::TapId(0), None).source,
            roce_model::EventSource::Ebpf
        );
        assert_eq!(
            records.event(&claim, CLOCK),
            None,
            "the kernel reports queue pairs"
        );
    }

    #[test]
    fn only_attributes_that_were_set_are_reported() {
        let Some(mut records) = records() else { return };
        let mut bytes = head(HostKind::Modified, 71, "x");
        padded(&mut bytes, "mlx5_0", 64);
        bytes.extend([0xfd; 16]);
        bytes.extend([0; 16]);
        // QPN, type, mask: IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_TIMEOUT | IB_QP_SQ_PSN; RTS, MTU code 5, RQ PSN, SQ PSN,
        // destination QPN.
        for word in [
            0x11_u32,
            2,
            1 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 16,
            3,
            5,
            77,
            99,
            0x12,
        ] {
            bytes.extend(word.to_ne_bytes());
        }
        // Traffic class, GID index, timeout, retries, RNR retries, RNR timer, port, nothing.
        bytes.extend([106, 3, 14, 7, 7, 12, 1, 0]);
        let HostChange::Modified { set, .. } = records.event(&bytes, CLOCK).unwrap().what else {
            panic!("a change");
        };
        assert_eq!(
            *set,
            QueuePairChange {
                state: Some(QueuePairState::ReadyToSend),
                destination: Some(Address::v6([0xfd; 16])),
                sq_psn: Some(Psn::new(99)),
                // 4.096 us * 2^14.
                timeout: Some(Span(67_108_864)),
                path_mtu: Some(4096),
                traffic_class: Some(106),
                source_gid_index: Some(3),
                ..QueuePairChange::default()
            }
        );
        for length in 0..bytes.len() {
            assert_eq!(
                records.event(&bytes[..length], CLOCK),
                None,
                "{length} bytes are no record"
            );
        }
    }

    #[test]
    fn addresses_of_sockets_are_read() {
        // struct sockaddr_in: family 2 in host order, port, address.
        let mut bytes = [0; 28];
        bytes[..8].copy_from_slice(&[2_u16.to_ne_bytes(), [0x12, 0x67], [10, 77], [0, 1]].concat());
        assert_eq!(socket_address(&bytes), Some(Address::v4([10, 77, 0, 1])));
        // struct sockaddr_in6: family 10, port, flow label, address.
        bytes[..2].copy_from_slice(&10_u16.to_ne_bytes());
        bytes[8..24].copy_from_slice(&[0xfe; 16]);
        assert_eq!(socket_address(&bytes), Some(Address::v6([0xfe; 16])));
        assert_eq!(socket_address(&[0; 28]), None);
    }
}
