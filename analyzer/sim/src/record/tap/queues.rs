//! The receive queues of a capturing adapter: a program that reads one after the other writes records in another order
//! than that of their stamps.

use std::io::{self, Write};

use rand::Rng as _;
use roce_capture::write::{Packet, PcapngWriter};
use roce_model::{Span, Time};
use roce_wire::Address;

use crate::record::frame::Frame;
use roce_model::random::Random;

/// Receive queues, read in turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queues {
    /// Number of queues.
    pub count: u32,
    /// The shortest time from one round of reading to the next.
    pub least: Span,
    /// Longest period: no record follows one whose stamp is later by more than this.
    pub most: Span,
}

/// A record that was not written yet.
#[derive(Clone, Debug)]
struct HeldRecord {
    ticks: u64,
    original: u32,
    data: Vec<u8>,
    flags: Option<u32>,
    dropped: Option<u64>,
}

/// Records in the queues of a tap.
#[derive(Clone, Debug)]
pub(super) struct Batches {
    queues: Option<Queues>,
    random: Random,
    held: Vec<Vec<HeldRecord>>,
    /// Time of the next reading.
    until: Option<Time>,
}

impl Batches {
    pub(super) fn new(queues: Option<Queues>, random: Random) -> Self {
        let queues = queues.filter(|queues| queues.count > 1);
        let count = queues.map_or(0, |queues| queues.count as usize);
        Self {
            queues,
            random,
            held: vec![Vec::new(); count],
            until: None,
        }
    }

    /// Writes a record, or keeps it until its queue is read. `time` is when it came.
    pub(super) fn record<W: Write>(
        &mut self,
        writer: &mut PcapngWriter<W>,
        time: Time,
        frame: &Frame,
        packet: &Packet<'_>,
    ) -> io::Result<()> {
        let Some(queues) = self.queues else {
            return writer.packet(packet);
        };
        if self.until.is_some_and(|until| time >= until) {
            self.read(writer, packet.interface)?;
        }
        if self.until.is_none() {
            let width = u128::from(queues.most.0.saturating_sub(queues.least.0)) + 1;
            let wait = (u128::from(self.random.next_u64()) * width) >> 64;
            let wait = queues.least.0 + u64::try_from(wait).unwrap_or_default();
            self.until = Some(Time(time.0.saturating_add(wait)));
        }
        let place = queue_of(frame) % u64::from(queues.count);
        if let Some(queue) = usize::try_from(place)
            .ok()
            .and_then(|place| self.held.get_mut(place))
        {
            queue.push(HeldRecord {
                ticks: packet.ticks,
                original: packet.original,
                data: packet.data.to_vec(),
                flags: packet.flags,
                dropped: packet.dropped,
            });
        }
        Ok(())
    }

    /// Reads all queues, one after the other.
    pub(super) fn read<W: Write>(&mut self, writer: &mut PcapngWriter<W>, interface: u32) -> io::Result<()> {
        self.until = None;
        for queue in &mut self.held {
            for held in queue.drain(..) {
                writer.packet(&Packet {
                    interface,
                    ticks: held.ticks,
                    original: held.original,
                    data: &held.data,
                    flags: held.flags,
                    dropped: held.dropped,
                    comment: None,
                })?;
            }
        }
        Ok(())
    }
}

/// A number for the queue of a frame: that of its addresses and UDP source port, as receive side scaling chooses by a hash of
/// these. Each direction of a connection has its own. Here the hash is FNV-1a (draft-eastlake-fnv).
fn queue_of(frame: &Frame) -> u64 {
    let Some((network, port)) = frame.network() else {
        return 0;
    };
    let bytes = |address: Address| address.to_string().into_bytes();
    let all = bytes(network.source)
        .into_iter()
        .chain(bytes(network.destination))
        .chain(port.to_be_bytes());
    all.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
