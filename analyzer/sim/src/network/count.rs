//! Counters of a port: what it sent, received, marked, dropped and paused since the begin of the simulation.
//!
//! Leaves their names and their readings to `counters`.

mod steps;

use crate::network::class::{CLASSES, LINK_CLASS};
use crate::network::packet::{Kind, Packet};
use crate::record::frame::Frame;
use crate::units::Picos;

/// Bytes of the frame check sequence, which a packet's length is without and counters of octets are with (RFC 3635, section 3.2.6).
const FCS: u64 = 4;

/// Frames and their bytes, with FCS.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Traffic {
    pub packets: u64,
    pub bytes: u64,
}

impl Traffic {
    pub(crate) fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.bytes) + FCS;
    }
}

/// Counters of one port. Frames of RoCE by priority; pause frames are among neither their packets nor their bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortCount {
    pub received: [Traffic; 8],
    /// Counted when the first bit leaves.
    pub sent: [Traffic; 8],
    /// Frames that the egress queue had no room for.
    pub dropped: [Traffic; 8],
    /// Frames that came in by this port, and for which its headroom had no room.
    pub refused: [Traffic; 8],
    pub marked: [Traffic; 8],
    /// Pause frames by class, those that end a pause among them.
    pub pauses_received: [u64; CLASSES],
    pub pauses_sent: [u64; CLASSES],
    /// Changes from sending to being paused, by class.
    pub transitions: [u64; CLASSES],
    /// Time in which the port had to be silent, by class, without a pause that goes on.
    pub paused: [Picos; CLASSES],
    /// Most bytes of each egress queue.
    pub peak: [u64; 8],
    /// Frames that the link behind the port lost, and those that it delivered twice.
    pub link_lost: u64,
    pub link_doubled: u64,
    /// Host: marked frames received.
    pub ce_received: u64,
    pub cnps_sent: u64,
    /// Host: CNPs received that a reaction point took.
    pub cnps_handled: u64,
    /// Host: CNPs received while the reaction point is off.
    pub cnps_ignored: u64,
    pub icrc_errors: u64,
    pub ack_timeouts: u64,
    pub sequence_naks: u64,
    pub rnr_naks: u64,
}

/// The classes that a pause frame names.
fn classes(frame: &Frame) -> impl Iterator<Item = usize> {
    let (link, enabled) = match frame {
        Frame::Pause(_) => (true, 0),
        Frame::Pfc(pfc) => (false, pfc.class_enable),
        Frame::Roce(_) | Frame::Damaged(_) | Frame::Mrc(_) => (false, 0),
    };
    let priorities = (0..8_usize).filter(move |class| enabled >> class & 1 != 0);
    priorities.chain(link.then_some(usize::from(LINK_CLASS)))
}

impl PortCount {
    /// The port begins to send a frame.
    pub(crate) fn sends(&mut self, packet: &Packet, is_host: bool) {
        if packet.kind == Kind::Pause {
            for class in classes(&packet.frame) {
                self.pauses_sent[class] += 1;
            }
            return;
        }
        self.sent[usize::from(packet.priority)].add(packet);
        self.cnps_sent += u64::from(is_host && packet.kind == Kind::Cnp);
    }

    /// The last bit of a frame came in.
    pub(crate) fn receives(&mut self, packet: &Packet, is_host: bool) {
        if packet.kind == Kind::Pause {
            for class in classes(&packet.frame) {
                self.pauses_received[class] += 1;
            }
            return;
        }
        self.received[usize::from(packet.priority)].add(packet);
        if is_host {
            let is_marked = !packet.corrupt && packet.ecn() == roce_wire::Ecn::Ce;
            self.ce_received += u64::from(is_marked);
            self.icrc_errors += u64::from(packet.corrupt);
        }
    }
}
