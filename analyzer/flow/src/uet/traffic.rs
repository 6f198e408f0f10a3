//! Packets of UET by tap, hosts, jobs and secure domains.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use roce_model::{Address, TapId, UetHeaders, UetPacket, UetTrafficRow};
use roce_wire::Ecn;
use roce_wire::transport::uet::{Semantics, operation_name};

/// Rows, at most. Packets of further ones count in no row.
const MAX_ROWS: usize = 1 << 16;
/// Return codes that are no error: none, and OK.
const FINE: u8 = 1;

/// The packets of one row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct TrafficKey {
    source: Address,
    destination: Address,
    tap: TapId,
    job: Option<u32>,
    domain: Option<u32>,
    secure_source: Option<u32>,
}

/// Counts of all rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Traffic {
    /// Each with the operations that were seen, a bit for each code.
    rows: HashMap<TrafficKey, (UetTrafficRow, u64), foldhash::fast::RandomState>,
}

impl Traffic {
    /// Counts a packet.
    pub(super) fn count(&mut self, packet: &UetPacket) {
        let (domain, secure_source) = match packet.headers {
            UetHeaders::Secure { domain, source } => (Some(domain), source),
            _ => (None, None),
        };
        let key = TrafficKey {
            source: packet.source,
            destination: packet.destination,
            tap: packet.tap,
            job: packet.semantics.map(Semantics::job),
            domain,
            secure_source,
        };
        let has_room = self.rows.len() < MAX_ROWS;
        let (row, operations) = match self.rows.entry(key) {
            Entry::Occupied(row) => row.into_mut(),
            Entry::Vacant(_) if !has_room => return,
            Entry::Vacant(place) => place.insert((begin(&key, packet), 0)),
        };
        row.packets += 1;
        row.wire_bytes += u64::from(packet.wire_bytes);
        row.payload_bytes += u64::from(packet.payload_bytes);
        row.retransmitted += u64::from(packet.is_again);
        row.ce += u64::from(packet.traffic_class & 3 == Ecn::Ce as u8);
        row.trimmed += u64::from(packet.is_trimmed);
        row.last_time = row.last_time.max(packet.time);
        *kind(row, packet.headers) += 1;
        match packet.semantics {
            Some(Semantics::Request { code, is_first, .. }) => {
                row.messages += u64::from(is_first && !packet.is_again);
                *operations |= 1 << (code & 0x3f);
            }
            Some(Semantics::Response { code, .. }) => row.errors += u64::from(code > FINE),
            None => {}
        }
    }

    /// The rows, in the order of hosts.
    pub(super) fn rows(self) -> Vec<UetTrafficRow> {
        let mut rows: Vec<_> = self.rows.into_iter().collect();
        rows.sort_unstable_by_key(|(key, _)| *key);
        let rows = rows.into_iter().map(|(_, (mut row, operations))| {
            let codes = (0..64_u8).filter(|code| operations >> code & 1 != 0);
            let names: Vec<&str> = codes.map(operation_name).collect();
            row.operations = (!names.is_empty()).then(|| names.join(" ").into());
            row
        });
        rows.collect()
    }
}

fn begin(key: &TrafficKey, packet: &UetPacket) -> UetTrafficRow {
    UetTrafficRow {
        tap: key.tap,
        source: key.source,
        destination: key.destination,
        job: key.job,
        secure_domain: key.domain,
        secure_source: key.secure_source,
        first_time: packet.time,
        last_time: packet.time,
        ..UetTrafficRow::default()
    }
}

/// The count of a packet's kind.
fn kind(row: &mut UetTrafficRow, headers: UetHeaders) -> &mut u64 {
    match headers {
        UetHeaders::Secure { .. } => &mut row.encrypted,
        UetHeaders::Request { is_ordered: true, .. } => &mut row.ordered,
        UetHeaders::Request { .. } => &mut row.unordered,
        UetHeaders::Idempotent => &mut row.idempotent,
        UetHeaders::Datagram => &mut row.datagrams,
        UetHeaders::Ack { .. } => &mut row.acks,
        UetHeaders::Nack { .. } => &mut row.nacks,
        UetHeaders::Control { .. } => &mut row.controls,
    }
}
