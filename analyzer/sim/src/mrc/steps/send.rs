//! Messages become packets, and packets take paths.

use crate::mrc::evs::Ev;
use crate::mrc::log::{Fate, LeftPath, Transmission};
use crate::mrc::run::{Event, MrcRun};
use crate::mrc::sender::{Message, Progress};
use crate::network::topology::number;
use crate::record::frame::MrcWrite;
use crate::truth::MrcCause;
use crate::units::Picos;

/// Opcodes of WRITEs.
const FIRST: u8 = 0xc6;
const MIDDLE: u8 = 0xc7;
const LAST: u8 = 0xc8;
const LAST_IMMEDIATE: u8 = 0xc9;
const ONLY: u8 = 0xca;
const ONLY_IMMEDIATE: u8 = 0xcb;
/// Each so many messages has immediate data.
const IMMEDIATE_EVERY: u32 = 4;
/// Packets that may wait at a port.
const AHEAD: u64 = 2;
/// Bytes of a data packet besides its payload: Ethernet, IPv6, UDP, BTH, METH, TSETH, RETH, ICRC, and what a line adds.
const OVERHEAD: u64 = 14 + 40 + 8 + 12 + 24 + 4 + 24;
const KEY: u32 = 0x00a1_b2c3;

impl MrcRun<'_> {
    /// An application posts a message.
    pub(super) fn post_one(&mut self, pair: u32) {
        let own = &mut self.pairs[pair as usize];
        let table = &self.scenario.flow[own.table];
        let over = table.count.is_some_and(|count| own.posted >= count)
            || table.end.is_some_and(|end| self.now >= end)
            || own.sender.failed;
        if over {
            return;
        }
        let sizes = 1 + table.messages_of.len() as u64;
        let bytes = match own.posted % sizes {
            0 => table.message,
            turn => table.messages_of[(turn - 1) as usize],
        };
        own.posted += 1;
        let message = number(own.posted as usize);
        let immediate = message.is_multiple_of(IMMEDIATE_EVERY);
        own.immediate += u32::from(immediate);
        let mtu = own.sender.limits.mtu;
        let first = own.sender.messages.back().map_or(own.sender.next, |last| {
            last.first + last.bytes.div_ceil(mtu).max(1)
        });
        own.sender.post(Message {
            number: message,
            immediate: if immediate { own.immediate } else { 0 },
            address: 0x7f00_0000_0000 + own.posted * 0x1000_0000,
            bytes: bytes.0,
            sent: 0,
            first,
        });
    }

    /// An application posts a message, and perhaps the next one later.
    pub(crate) fn post(&mut self, pair: u32) {
        self.post_one(pair);
        let own = &self.pairs[pair as usize];
        if let Some(interval) = self.scenario.flow[own.table].interval {
            self.events.at(self.now.plus(interval), Event::Post { pair });
        }
        self.kick(pair);
    }

    /// A queue pair sends what it may.
    pub(crate) fn kick(&mut self, pair: u32) {
        while !self.pairs[pair as usize].sender.failed {
            let sender = &mut self.pairs[pair as usize].sender;
            let again = sender.next_again();
            if again.is_none() && !sender.may_send() {
                break;
            }
            let Some(ev) = self.next_ev(pair) else { break };
            let [from, _] = self.pairs[pair as usize].hosts;
            let port = self.port(from, ev.plane);
            let free = self.ports[port].free;
            let packet = self.packet_time();
            let ahead = packet.times(AHEAD);
            if free.since(self.now) > ahead {
                let at = Picos(free.0 - ahead.0);
                let own = &mut self.pairs[pair as usize];
                if own.kick_at > at {
                    own.kick_at = at;
                    self.events.at(at, Event::Kick { pair });
                }
                break;
            }
            self.send(pair, again, ev);
        }
        self.set_timer(pair);
    }

    /// The next EV in turn, of planes on which both hosts have a port.
    fn next_ev(&mut self, pair: u32) -> Option<Ev> {
        let [from, to] = self.pairs[pair as usize].hosts;
        let planes = self.scenario.mrc.planes;
        let reachable = self.believed[self.belief(from, to)];
        let usable: u32 = (0..planes)
            .filter(|plane| !self.ports[self.port(from, *plane)].down && reachable >> plane & 1 == 1)
            .fold(0, |mask, plane| mask | 1 << plane);
        self.pairs[pair as usize]
            .sender
            .evs
            .next(|plane| usable >> plane & 1 == 1)
    }

    /// Time of a full packet on a port.
    pub(super) fn packet_time(&self) -> Picos {
        let bytes = u64::from(self.scenario.nic.mtu) + OVERHEAD;
        self.scenario.network.rate.time_of(bytes)
    }

    fn send(&mut self, pair: u32, again: Option<(u64, MrcCause)>, ev: Ev) {
        let [from, _] = self.pairs[pair as usize].hosts;
        let place = self.port(from, ev.plane);
        let time = self.ports[place].free.max(self.now);
        let stamp = self.scenario.mrc.timestamps.then(|| stamp(time));
        let own = &mut self.pairs[pair as usize];
        let (index, mut write, message) = match again {
            Some((index, _)) => {
                let packet = &own.sender.outstanding[&index];
                (index, packet.write, packet.message)
            }
            None => new_packet(&mut own.sender, &mut own.receiver),
        };
        write.stamp = stamp;
        write.retransmission = again.is_some();
        let attempt = own.sender.sent(index, &write, message, ev, time);
        let bytes = u64::from(write.payload) + OVERHEAD;
        self.ports[place].free = time.plus(self.scenario.network.rate.time_of(bytes));
        let sent = number(self.sent.len());
        self.sent.push(Transmission {
            pair,
            index,
            attempt,
            ev: ev.value,
            plane: ev.plane,
            path: ev.path,
            time,
            cause: again.map(|(_, cause)| cause),
            trim: None,
            marked: false,
            always_skip: false,
            write,
            fate: Fate::InFlight,
            nacked: false,
            sent_seen: 0,
            came_seen: 0,
        });
        self.events.at(time, Event::Leave { sent });
    }

    /// Sees to it that the timer of a queue pair is looked at when it is due.
    pub(super) fn set_timer(&mut self, pair: u32) {
        let own = &mut self.pairs[pair as usize];
        let probe = own.sender.probe_due().filter(|_| self.scenario.mrc.probe_silence);
        let due = [own.sender.due(), probe].into_iter().flatten().min();
        if let Some(due) = due.filter(|_| !own.sender.failed) {
            let due = due.max(Picos(self.now.0 + 1));
            if own.timer_at > due {
                own.timer_at = due;
                self.events.at(due, Event::Timer { pair });
            }
        }
    }

    /// A timer of a queue pair may be due.
    pub(crate) fn timer(&mut self, pair: u32) {
        let own = &mut self.pairs[pair as usize];
        if own.timer_at > self.now {
            return;
        }
        own.timer_at = Picos::NEVER;
        if own.sender.failed {
            return;
        }
        let probes = self.scenario.mrc.probe_silence;
        if probes && own.sender.probe_due().is_some_and(|due| due <= self.now) {
            own.sender.probed = true;
            if let Some(ev) = self.next_ev(pair) {
                self.probe(pair, ev);
            }
        }
        let own = &mut self.pairs[pair as usize];
        if own.sender.due().is_some_and(|due| due <= self.now) {
            let progress = own.sender.expire(self.now);
            if own.sender.failed {
                own.log.failed = Some(self.now);
            }
            self.progress(pair, progress);
        }
        self.kick(pair);
    }

    /// Messages that are complete make room for others; EVs that were left are probed.
    pub(super) fn progress(&mut self, pair: u32, progress: Progress) {
        let own = &mut self.pairs[pair as usize];
        own.log.messages += u64::from(progress.done);
        if self.scenario.flow[own.table].interval.is_none() {
            for _ in 0..progress.done {
                self.post_one(pair);
            }
        }
        for ev in progress.left {
            self.note_left(pair, ev);
        }
    }

    /// An EV was left: it is noted, and probed from now on.
    pub(super) fn note_left(&mut self, pair: u32, ev: Ev) {
        self.left.push(LeftPath {
            pair,
            ev: ev.value,
            plane: ev.plane,
            path: ev.path,
            time: self.now,
        });
        let at = self.now.plus(self.scenario.mrc.probe_interval);
        self.events.at(at, Event::Probe { pair, ev: ev.value });
    }

    /// An EV that was left is probed, until an answer comes.
    pub(crate) fn probe_left(&mut self, pair: u32, ev: u32) {
        let own = &self.pairs[pair as usize];
        let Some(ev) = own.sender.evs.is_left(ev).filter(|_| !own.sender.failed) else {
            return;
        };
        let [from, _] = own.hosts;
        if !self.ports[self.port(from, ev.plane)].down {
            self.probe(pair, ev);
        }
        let at = self.now.plus(self.scenario.mrc.probe_interval);
        self.events.at(at, Event::Probe { pair, ev: ev.value });
    }
}

/// Takes the next packet of the messages that wait.
fn new_packet(
    sender: &mut crate::mrc::sender::Sender,
    receiver: &mut crate::mrc::receiver::Receiver,
) -> (u64, MrcWrite, u32) {
    let (index, mtu) = (sender.next, sender.limits.mtu);
    let mut message = sender.messages.pop_front().unwrap_or(Message {
        number: 0,
        immediate: 0,
        address: 0,
        bytes: 0,
        sent: 0,
        first: index,
    });
    let left = message.bytes - message.sent;
    let payload = left.min(mtu);
    let (begins, ends) = (message.sent == 0, left <= mtu);
    if begins {
        // In the simulation the receiver knows from the start where a message ends: its length is in each packet.
        receiver.ends_at(index + message.bytes.div_ceil(mtu).max(1) - 1, message.number);
    }
    let opcode = match (begins, ends, message.immediate > 0) {
        (true, true, false) => ONLY,
        (true, true, true) => ONLY_IMMEDIATE,
        (false, true, false) => LAST,
        (false, true, true) => LAST_IMMEDIATE,
        (true, false, _) => FIRST,
        (false, false, _) => MIDDLE,
    };
    let write = MrcWrite {
        opcode,
        ack_request: ends,
        retransmission: false,
        rqmsn: (message.immediate & 0xffff) as u16,
        msn: (message.number & 0xffff) as u16,
        stamp: None,
        address: message.address + message.sent,
        key: KEY,
        length: u32::try_from(message.bytes).unwrap_or(u32::MAX),
        immediate: (ends && message.immediate > 0).then_some(0xe000_0000 | message.number),
        payload: u16::try_from(payload).unwrap_or(u16::MAX),
    };
    sender.next += 1;
    message.sent += payload;
    let number = message.number;
    if !ends {
        sender.messages.push_front(message);
    }
    (index, write, number)
}

/// A stamp in ticks of 128 ns.
pub(super) fn stamp(time: Picos) -> u16 {
    ((time.nanos() / 128 + 0x4321) & 0xffff) as u16
}
