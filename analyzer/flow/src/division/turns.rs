//! Flows between the same two hosts that share a port: while others send, a flow waits for its turn. An adapter gives its queue pairs turns
//! of some packets each, so a silence in which the others filled the port, and took short turns, is no silence of the sender's program.
//!
//! Only flows between the same two hosts at one tap are looked at together: a shard of a run has all of these.

use std::collections::HashMap;

use roce_model::Time;
use roce_model::cast::float;

use super::pace::BurstGap;
use crate::key::FlowSlot;

/// The longest turn on average, in bytes: eight packets of 4 KiB. Flows that are served one after the other send whole messages.
const LONGEST_TURN: u64 = 32 << 10;

/// Packets whose time together shows how long one takes.
const ENOUGH_PACKETS: u32 = 16;

/// The name of two hosts whose flows take turns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TurnsHandle(u32);

impl TurnsHandle {
    /// A flow that shares its port with no other one.
    pub(crate) const ALONE: Self = Self(u32::MAX);
}

/// The requests of all flows from one host to another at a tap.
#[derive(Clone, Debug)]
struct HostTurns {
    /// Live flows, and the first one while it lives.
    flows: u32,
    first: FlowSlot,
    /// The flow whose turn it is, and its bytes in it.
    turn_of: FlowSlot,
    turn: u64,
    /// Bytes of a turn on average; 0: none has ended.
    mean_turn: u64,
    last: Time,
    /// Since when packets follow each other closely.
    busy_since: Time,
    /// Packets since `begin`, the shortest time of one in ns (0: not known), and the silence that follows from it.
    begin: Time,
    packets: u32,
    packet: f64,
    gap: BurstGap,
}

/// Turns of flows, by hosts.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    hosts: Vec<HostTurns>,
    free: Vec<u32>,
    numbers: HashMap<u64, u32, foldhash::fast::RandomState>,
}

impl Turns {
    /// A flow opens, between the hosts with this hash. Gives its handle, and the flow that was alone until now.
    pub(crate) fn enter(&mut self, pair: u64, at: FlowSlot) -> (TurnsHandle, Option<FlowSlot>) {
        let number = *self.numbers.entry(pair).or_insert_with(|| {
            let new = HostTurns::new(at);
            if let Some(number) = self.free.pop() {
                self.hosts[number as usize] = new;
                return number;
            }
            self.hosts.push(new);
            u32::try_from(self.hosts.len() - 1).unwrap_or(u32::MAX)
        });
        let hosts = &mut self.hosts[number as usize];
        hosts.flows += 1;
        match hosts.flows {
            1 => (TurnsHandle::ALONE, None),
            2 => (
                TurnsHandle(number),
                Some(hosts.first).filter(|first| *first != FlowSlot::NONE),
            ),
            _ => (TurnsHandle(number), None),
        }
    }

    /// A flow is gone.
    pub(crate) fn leave(&mut self, pair: u64, at: FlowSlot) {
        let Some(number) = self.numbers.get(&pair).copied() else {
            return;
        };
        let hosts = &mut self.hosts[number as usize];
        hosts.flows -= 1;
        for other in [&mut hosts.first, &mut hosts.turn_of] {
            if *other == at {
                *other = FlowSlot::NONE;
            }
        }
        if hosts.flows == 0 {
            self.numbers.remove(&pair);
            self.free.push(number);
        }
    }

    /// A request of the flow at `at`.
    #[inline]
    pub(crate) fn request(&mut self, handle: TurnsHandle, at: FlowSlot, time: Time, bytes: u32) {
        if let Some(hosts) = self.hosts.get_mut(handle.0 as usize) {
            hosts.request(at, time, u64::from(bytes));
        }
    }

    /// True if other flows have filled the port in short turns since `since`.
    pub(crate) fn are_taken_since(&self, handle: TurnsHandle, since: Time) -> bool {
        self.hosts.get(handle.0 as usize).is_some_and(|hosts| {
            hosts.packet > 0.0 && hosts.busy_since <= since && (1..=LONGEST_TURN).contains(&hosts.mean_turn)
        })
    }
}

impl HostTurns {
    fn new(first: FlowSlot) -> Self {
        Self {
            flows: 0,
            first,
            turn_of: FlowSlot::NONE,
            turn: 0,
            mean_turn: 0,
            last: Time(0),
            busy_since: Time(0),
            begin: Time(0),
            packets: 0,
            packet: 0.0,
            gap: BurstGap::default(),
        }
    }

    #[inline]
    fn request(&mut self, at: FlowSlot, time: Time, bytes: u64) {
        if self.gap.is_passed(time.since(self.last)) {
            (self.busy_since, self.begin, self.packets) = (time, time, 0);
        } else {
            self.packets += 1;
            if self.packets == ENOUGH_PACKETS {
                self.measure(time);
            }
        }
        self.last = self.last.max(time);
        if self.turn_of == at {
            self.turn += bytes;
            return;
        }
        if self.turn > 0 {
            self.mean_turn = if self.mean_turn == 0 {
                self.turn
            } else {
                (self.mean_turn * 7 + self.turn) / 8
            };
        }
        (self.turn_of, self.turn) = (at, bytes);
    }

    /// Enough packets have come to show the time of one.
    fn measure(&mut self, time: Time) {
        let packet = float(time.since(self.begin).0) / f64::from(ENOUGH_PACKETS);
        (self.begin, self.packets) = (time, 0);
        if packet > 0.0 && (self.packet == 0.0 || packet < self.packet) {
            self.packet = packet;
            // Half of the silence that ends a burst: the port is full.
            self.gap = BurstGap::from_packet(packet / 2.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: u64 = 7;
    /// 4,170 bytes take 334 ns at 100 Gbit/s.
    const BYTES: u32 = 4_170;
    const PACKET: u64 = 334;

    fn slot(number: u32) -> FlowSlot {
        FlowSlot::from_bits(number)
    }

    /// Two flows of one pair of hosts.
    fn two() -> (Turns, TurnsHandle) {
        let mut turns = Turns::default();
        assert_eq!(turns.enter(PAIR, slot(1)), (TurnsHandle::ALONE, None));
        let (handle, first) = turns.enter(PAIR, slot(2));
        assert_eq!(first, Some(slot(1)));
        (turns, handle)
    }

    /// 64 packets of flows in turns of so many packets, from a time on. Gives the time of the last one.
    fn send(turns: &mut Turns, handle: TurnsHandle, from: u64, packets_of_turn: u64) -> u64 {
        let time = |packet: u64| from + packet * PACKET;
        for packet in 0..64 {
            let flow = 1 + packet / packets_of_turn % 2;
            let flow = slot(u32::try_from(flow).unwrap());
            turns.request(handle, flow, Time(time(packet)), BYTES);
        }
        time(63)
    }

    #[test]
    fn a_port_that_is_full_of_short_turns_explains_a_silence() {
        let (mut turns, handle) = two();
        let last = send(&mut turns, handle, 1_000, 2);
        assert!(turns.are_taken_since(handle, Time(last - 8 * PACKET)));
        assert!(!turns.are_taken_since(TurnsHandle::ALONE, Time(last)));
    }

    #[test]
    fn flows_one_after_the_other_take_no_turns() {
        // Turns of 16 packets are 66,720 bytes.
        let (mut turns, handle) = two();
        let last = send(&mut turns, handle, 1_000, 16);
        assert!(!turns.are_taken_since(handle, Time(last - 8 * PACKET)));
    }

    #[test]
    fn a_port_that_rested_was_not_full() {
        let (mut turns, handle) = two();
        let last = send(&mut turns, handle, 1_000, 1);
        let again = last + 10 * PACKET;
        turns.request(handle, slot(1), Time(again), BYTES);
        assert!(!turns.are_taken_since(handle, Time(last)));
        assert!(turns.are_taken_since(handle, Time(again)));
    }

    #[test]
    fn hosts_are_forgotten_with_their_flows() {
        let (mut turns, handle) = two();
        send(&mut turns, handle, 1_000, 1);
        turns.leave(PAIR, slot(1));
        // The first one is gone, and nobody else's slot.
        assert_eq!(turns.enter(PAIR, slot(3)), (handle, None));
        turns.leave(PAIR, slot(2));
        turns.leave(PAIR, slot(3));
        assert_eq!(turns.enter(9, slot(4)), (TurnsHandle::ALONE, None));
        let (next, first) = turns.enter(9, slot(5));
        assert_eq!((next, first), (handle, Some(slot(4))));
        assert!(!turns.are_taken_since(next, Time(u64::MAX)));
    }
}
