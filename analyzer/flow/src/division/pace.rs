//! The rate at which a flow sends while it has something to send, and whether congestion notifications have lowered it.

use roce_model::cast::float;
use roce_model::{Span, Time};

/// Packets without which a rate is not measured.
const ENOUGH_PACKETS: u64 = 16;

/// A flow is slowed below this part of its best rate: rates over some packets differ by less.
const SLOWED: f64 = 7.0 / 8.0;

/// A notification is over after this time: the least rate of DCQCN, 40 Mbit/s in the paper's simulator, is one packet of 4 KiB in 0.8 ms, and
/// it rises by as much each 55 us at the earliest.
const NOTIFIED: Span = Span(20_000_000);

/// A silence is no part of a burst from so many times of a packet on.
const PACKETS_OF_GAP: f64 = 4.0;

/// The length of a silence that is no part of a burst, as a power of two in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BurstGap(u8);

impl BurstGap {
    /// 256 ns: 4 KiB take as long at 128 Gbit/s.
    const MIN_POWER: u8 = 8;
    /// 0.5 ms: less than any silence that is a stall.
    const MAX_POWER: u8 = 19;

    /// True if a silence is no part of a burst.
    #[inline]
    pub(crate) fn is_passed(self, silence: Span) -> bool {
        silence.0 >> self.0 != 0
    }

    /// That of a flow whose packets take `packet` ns.
    pub(super) fn from_packet(packet: f64) -> Self {
        let wanted = packet * PACKETS_OF_GAP;
        let fits = |power: &u8| float(1 << *power) >= wanted;
        Self(
            (Self::MIN_POWER..Self::MAX_POWER)
                .find(fits)
                .unwrap_or(Self::MAX_POWER),
        )
    }
}

impl Default for BurstGap {
    /// 1.024 us: packets of 4 KiB are 0.33 us apart at 100 Gbit/s.
    fn default() -> Self {
        Self(10)
    }
}

/// How far a flow has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendingProgress {
    pub(crate) time: Time,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

/// Time in which a flow was not idle, and how much of it was spent on sending, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BusyTime {
    pub(super) sending: u64,
    pub(super) busy: u64,
}

/// The rate of one flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendingRate {
    /// Where the open window began.
    begin: SendingProgress,
    busy: BusyTime,
    /// The best rate of a window, in bytes per ns; 0: not known.
    best: f64,
    /// The shortest time of a packet, in ns; 0: not known.
    packet: f64,
    gap: BurstGap,
    /// When the first notification of those came that slow the flow, and the last one; 0: none does.
    slowed_from: Time,
    notified: Time,
}

impl SendingRate {
    pub(super) fn burst_gap(&self) -> BurstGap {
        self.gap
    }

    /// Since when the flow is slowed.
    pub(super) fn slowed_from(&self) -> Option<Time> {
        (self.slowed_from.0 != 0).then_some(self.slowed_from)
    }

    /// A window of packets may end: gives, of a flow that was notified, whether it was slowed.
    pub(super) fn judge(&mut self, now: SendingProgress, busy: BusyTime) -> Option<bool> {
        let packets = now.packets.saturating_sub(self.begin.packets);
        if self.begin.time.0 == 0 || now.packets < self.begin.packets {
            (self.begin, self.busy) = (now, busy);
            return None;
        }
        if packets < ENOUGH_PACKETS {
            return None;
        }
        let time = busy.busy.saturating_sub(self.busy.busy);
        let sending = busy.sending.saturating_sub(self.busy.sending);
        let bytes = now.bytes.saturating_sub(self.begin.bytes);
        (self.begin, self.busy) = (now, busy);
        if time == 0 {
            return None;
        }
        let rate = float(bytes) / float(time);
        if self.slowed_from.0 != 0 {
            return Some(rate < self.best * SLOWED);
        }
        self.best = self.best.max(rate);
        let packet = float(sending) / float(packets);
        if packet > 0.0 && (self.packet == 0.0 || packet < self.packet) {
            self.packet = packet;
            self.gap = BurstGap::from_packet(packet);
        }
        None
    }

    /// A notification comes.
    pub(super) fn notified(&mut self, now: SendingProgress, busy: BusyTime) {
        self.expire(now.time);
        self.notified = now.time;
        if self.slowed_from.0 == 0 {
            // All that was sent before it is a window of its own.
            self.judge(now, busy);
            (self.begin, self.busy) = (now, busy);
            self.slowed_from = now.time;
        }
    }

    /// Nothing slows the flow any more.
    pub(super) fn not_slowed(&mut self) {
        self.slowed_from = Time(0);
    }

    /// Notifications of long ago slow nothing.
    pub(super) fn expire(&mut self, now: Time) {
        if now.since(self.notified) > NOTIFIED {
            self.slowed_from = Time(0);
        }
    }
}
