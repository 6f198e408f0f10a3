//! The sender of a queue pair: what is outstanding, what is sent again, and why.

use std::collections::{BTreeMap, VecDeque};

use crate::mrc::evs::{Ev, Evs};
use crate::mrc::receiver::Sack;
use crate::record::frame::MrcWrite;
use crate::truth::MrcCause;
use crate::units::Picos;

/// A message that is being sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub number: u32,
    /// Number of messages with immediate data until here; 0: it has none.
    pub immediate: u32,
    pub address: u64,
    pub bytes: u64,
    pub sent: u64,
    /// Number of its first packet.
    pub first: u64,
}

/// A packet that was sent and not acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutstandingPacket {
    pub write: MrcWrite,
    pub message: u32,
    pub attempts: u16,
    /// Number of its last transmission, among all of the pair.
    order: u64,
    sent: Picos,
    ev: u32,
    /// A SACK has said that it is missing, since it was sent last.
    missing: bool,
    /// It waits to be sent again.
    queued: bool,
}

/// Limits of a sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub guard: u64,
    pub timeout: Picos,
    pub retries: u16,
    /// Packets behind the cumulative one; 0: no limit.
    pub range: u64,
    pub window: u64,
    pub mtu: u64,
    pub losses_to_leave: u32,
}

/// Results of an answer or of a timer.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Messages that are complete.
    pub done: u32,
    /// EVs that are left.
    pub left: Vec<Ev>,
}

/// The sender of a queue pair.
#[derive(Debug)]
pub(crate) struct Sender {
    pub limits: Limits,
    pub evs: Evs,
    pub messages: VecDeque<Message>,
    /// Packets that are left of each message, by its number.
    open: BTreeMap<u32, u64>,
    /// Number of the next new packet.
    pub next: u64,
    /// All below are acknowledged.
    pub below: u64,
    pub outstanding: BTreeMap<u64, OutstandingPacket>,
    again: VecDeque<(u64, MrcCause)>,
    bytes: u64,
    order: u64,
    /// The latest transmission that was acknowledged.
    newest: Option<u64>,
    /// Timeouts since the last progress.
    pub timeouts: u32,
    /// The last of them: packets that expire within one timeout count as one.
    expired: Picos,
    pub penalty: u8,
    window: u64,
    /// The window shrinks once in a round trip.
    shrunk: Picos,
    pub heard: Picos,
    /// It has probed a path since it heard something.
    pub probed: bool,
    pub failed: bool,
}

/// The timeout holds so many times before it doubles.
const LINEAR_TIMEOUTS: u32 = 7;
const MAX_DOUBLINGS: u32 = 12;
/// The smallest window after trims at the last hop, in packets.
const MIN_WINDOW: u64 = 8;
/// A window shrinks once in this time.
const SHRINK: Picos = Picos::from_nanos(20_000);

impl Sender {
    pub(crate) fn new(limits: Limits, evs: Evs) -> Self {
        Self {
            limits,
            evs,
            messages: VecDeque::new(),
            open: BTreeMap::new(),
            next: 0,
            below: 0,
            outstanding: BTreeMap::new(),
            again: VecDeque::new(),
            bytes: 0,
            order: 0,
            newest: None,
            timeouts: 0,
            expired: Picos::ZERO,
            penalty: 0,
            window: limits.window,
            shrunk: Picos::ZERO,
            heard: Picos::ZERO,
            probed: false,
            failed: false,
        }
    }

    /// An application posts a message.
    pub(crate) fn post(&mut self, message: Message) {
        self.open
            .insert(message.number, message.bytes.div_ceil(self.limits.mtu).max(1));
        self.messages.push_back(message);
    }

    /// The next packet to be sent again, and why.
    pub(crate) fn next_again(&mut self) -> Option<(u64, MrcCause)> {
        while let Some((index, cause)) = self.again.front().copied() {
            if self.outstanding.contains_key(&index) {
                return Some((index, cause));
            }
            self.again.pop_front();
        }
        None
    }

    /// True if a new packet may be sent.
    pub(crate) fn may_send(&self) -> bool {
        let range = self.limits.range;
        let window = self.window * u64::from(127 - self.penalty.min(127)) / 127;
        !self.messages.is_empty()
            && (range == 0 || self.next < self.below + range)
            && self.bytes + self.limits.mtu <= window.max(self.limits.mtu)
    }

    /// A packet leaves by an EV. Returns the number of transmissions before.
    pub(crate) fn sent(&mut self, index: u64, write: &MrcWrite, message: u32, ev: Ev, now: Picos) -> u16 {
        self.order += 1;
        let order = self.order;
        if let Some(packet) = self.outstanding.get_mut(&index) {
            packet.attempts += 1;
            (packet.order, packet.sent, packet.ev) = (order, now, ev.value);
            (packet.missing, packet.queued) = (false, false);
            self.again.retain(|(waiting, _)| *waiting != index);
            return packet.attempts - 1;
        }
        if self.outstanding.is_empty() {
            self.heard = now;
        }
        self.bytes += u64::from(write.payload);
        self.outstanding.insert(
            index,
            OutstandingPacket {
                write: *write,
                message,
                attempts: 1,
                order,
                sent: now,
                ev: ev.value,
                missing: false,
                queued: false,
            },
        );
        0
    }

    /// A SACK arrives, caused by a packet on `entropy`.
    pub(crate) fn sack(&mut self, sack: &Sack, entropy: u32, now: Picos) -> Progress {
        let mut progress = Progress::default();
        (self.heard, self.probed) = (now, false);
        self.below = self.below.max(sack.below);
        let mut acked: Vec<u64> = self
            .outstanding
            .range(..sack.below)
            .map(|(index, _)| *index)
            .collect();
        let bits = (0..64).filter(|bit| sack.bitmap >> bit & 1 == 1);
        acked.extend(bits.map(|bit| sack.base + bit));
        acked.extend(sack.trigger);
        acked.retain(|index| self.outstanding.contains_key(index));
        acked.sort_unstable();
        acked.dedup();
        for index in &acked {
            self.acknowledge(*index, sack, entropy, &mut progress);
        }
        if !acked.is_empty() {
            self.timeouts = 0;
            let grown = self.window + self.limits.mtu * acked.len() as u64 / 16;
            self.window = grown.min(self.limits.window);
        }
        let top = sack.base + 64 - u64::from(sack.bitmap.leading_zeros());
        let end = if sack.bitmap == 0 { sack.base } else { top };
        for (_, packet) in self.outstanding.range_mut(sack.base..end.max(sack.base)) {
            packet.missing = true;
        }
        self.look_for_holes(&mut progress);
        progress
    }

    /// One packet has arrived.
    fn acknowledge(&mut self, index: u64, sack: &Sack, entropy: u32, progress: &mut Progress) {
        let Some(packet) = self.outstanding.remove(&index) else {
            return;
        };
        self.bytes -= u64::from(packet.write.payload);
        // The EV alone tells which transmission of a packet arrived that was sent again.
        if packet.attempts == 1 || sack.trigger == Some(index) && packet.ev == entropy {
            self.newest = self.newest.max(Some(packet.order));
            self.evs.arrived(packet.ev);
        }
        if let Some(left) = self.open.get_mut(&packet.message) {
            *left -= 1;
            if *left == 0 {
                self.open.remove(&packet.message);
                progress.done += 1;
            }
        }
    }

    /// A missing packet that was overtaken by more than the guard counts as lost.
    fn look_for_holes(&mut self, progress: &mut Progress) {
        let Some(newest) = self.newest else { return };
        for (index, packet) in &mut self.outstanding {
            if packet.missing && !packet.queued && newest >= packet.order + self.limits.guard {
                packet.queued = true;
                self.again.push_back((*index, MrcCause::Hole));
                progress
                    .left
                    .extend(self.evs.lost(packet.ev, self.limits.losses_to_leave));
            }
        }
    }

    /// A NACK arrives for a packet that was sent by `entropy`.
    pub(crate) fn nack(&mut self, index: u64, reason: u8, entropy: u32, now: Picos) {
        (self.heard, self.probed) = (now, false);
        let Some(packet) = self.outstanding.get_mut(&index) else {
            return;
        };
        // It may be about a transmission before the last one.
        if packet.queued || packet.ev != entropy {
            return;
        }
        packet.queued = true;
        self.again.push_back((index, MrcCause::Nack(reason)));
        if reason == 1 {
            self.evs.skip(entropy);
        } else if now >= self.shrunk.plus(SHRINK) {
            self.shrunk = now;
            self.window = (self.window / 2).max(MIN_WINDOW * self.limits.mtu);
        }
    }

    fn timeout(&self) -> Picos {
        let doublings = self.timeouts.saturating_sub(LINEAR_TIMEOUTS).min(MAX_DOUBLINGS);
        self.limits.timeout.times(1 << doublings)
    }

    /// When the timer of the oldest packet is due; none while nothing is outstanding.
    pub(crate) fn due(&self) -> Option<Picos> {
        let waiting = self.outstanding.values().filter(|packet| !packet.queued);
        Some(waiting.map(|packet| packet.sent).min()?.plus(self.timeout()))
    }

    /// When a silent queue pair probes a path.
    pub(crate) fn probe_due(&self) -> Option<Picos> {
        (!self.outstanding.is_empty() && !self.probed).then(|| self.heard.plus(Picos(self.timeout().0 / 2)))
    }

    /// The timer is due: what was sent that long ago is sent again.
    pub(crate) fn expire(&mut self, now: Picos) -> Progress {
        let mut progress = Progress::default();
        let timeout = self.timeout();
        for (index, packet) in &mut self.outstanding {
            if packet.queued || packet.sent.plus(timeout) > now {
                continue;
            }
            if packet.attempts > self.limits.retries {
                self.failed = true;
                break;
            }
            packet.queued = true;
            self.again.push_back((*index, MrcCause::Timeout));
            progress
                .left
                .extend(self.evs.lost(packet.ev, self.limits.losses_to_leave));
        }
        if now >= self.expired.plus(timeout) {
            self.expired = now;
            self.timeouts += 1;
        }
        progress
    }
}
