//! The network: paths that lose, trim, mark and delay, and the queue before a host's port.

use roce_capture::Direction;

use crate::mrc::log::{Fate, Place};
use crate::mrc::run::{Event, MrcRun};
use crate::record::frame::Trim;
use crate::scenario::TrimLength;
use crate::units::Picos;

/// Reasons of NACKs.
pub(super) const TRIMMED: u8 = 1;
pub(super) const TRIMMED_LAST_HOP: u8 = 2;

/// Result of a path.
struct PathResult {
    delay: Picos,
    lost: bool,
    trimmed: bool,
    marked: bool,
    always_skip: bool,
}

impl MrcRun<'_> {
    /// Lets a packet take a path.
    fn take_path(&mut self, plane: u32, path: u32) -> PathResult {
        let mrc = &self.scenario.mrc;
        let index = plane as usize * mrc.paths as usize + path as usize;
        let base = self.delays.get(index).copied().unwrap_or_default();
        let jitter = Picos(self.chance.below(mrc.jitter.0.saturating_add(1)));
        let mut result = PathResult {
            // One cable to the first switch, one from the last, and the path between.
            delay: base.plus(jitter),
            lost: false,
            trimmed: false,
            marked: false,
            always_skip: false,
        };
        for fault in mrc.path.iter().filter(|fault| fault.holds(plane, path, self.now)) {
            result.lost |= self.chance.happens(fault.loss);
            result.trimmed |= self.chance.happens(fault.trim);
            result.marked |= self.chance.happens(fault.mark);
            result.always_skip |= fault.always_skip;
            result.delay = result.delay.plus(fault.delay);
        }
        result
    }

    /// A data packet leaves its port.
    pub(crate) fn leave(&mut self, number: u32) {
        let sent = self.sent[number as usize];
        let [from, to] = self.pairs[sent.pair as usize].hosts;
        let packet = self.data_packet(&sent, false);
        self.sent[number as usize].sent_seen = self.pass(from, sent.plane, packet, Direction::Outbound);
        let path = self.take_path(sent.plane, sent.path);
        let rate = self.scenario.network.rate;
        let there = self
            .now
            .plus(rate.time_of(u64::from(sent.write.payload) + 128))
            .plus(self.scenario.network.delay)
            .plus(path.delay);
        let own = &mut self.sent[number as usize];
        own.marked = path.marked && !path.trimmed;
        own.always_skip = path.always_skip;
        if path.lost {
            own.fate = Fate::Lost(there, Place::Path);
        } else if path.trimmed {
            self.trim(number, to, there, TRIMMED);
        } else {
            self.events.at(there, Event::LastHop { sent: number });
        }
    }

    /// A queue has no room for a packet: it is trimmed, or lost.
    fn trim(&mut self, number: u32, to: u32, time: Picos, reason: u8) {
        let mrc = &self.scenario.mrc;
        let lost = !mrc.trim || self.chance.happens(mrc.trim_loss);
        let short = u64::from(mrc.trim_bytes);
        let after = time
            .plus(self.scenario.network.rate.time_of(short))
            .plus(self.scenario.network.delay);
        let plane = self.sent[number as usize].plane;
        let down = self.ports[self.port(to, plane)].down;
        let own = &mut self.sent[number as usize];
        if lost || down {
            let lost_at = match (down, reason) {
                (true, _) => Place::Port,
                (false, TRIMMED) => Place::Fabric,
                (false, _) => Place::LastHop,
            };
            own.fate = Fate::Lost(time, lost_at);
            return;
        }
        own.trim = Some(reason);
        own.marked = false;
        self.events.at(after, Event::Arrive { sent: number });
    }

    /// A packet comes before the last hop's queue.
    pub(crate) fn last_hop(&mut self, number: u32) {
        let sent = self.sent[number as usize];
        let [_, to] = self.pairs[sent.pair as usize].hosts;
        let place = self.port(to, sent.plane);
        let rate = self.scenario.network.rate;
        let queued = rate.bytes_in(self.ports[place].queue_free.since(self.now));
        let bytes = u64::from(sent.write.payload) + 128;
        if self.ports[place].down {
            self.sent[number as usize].fate = Fate::Lost(self.now, Place::Port);
        } else if queued + bytes > self.scenario.mrc.queue.0 {
            self.trim(number, to, self.now, TRIMMED_LAST_HOP);
        } else {
            let free = self.ports[place]
                .queue_free
                .max(self.now)
                .plus(rate.time_of(bytes));
            self.ports[place].queue_free = free;
            let arrives = free.plus(self.scenario.network.delay);
            self.events.at(arrives, Event::Arrive { sent: number });
        }
    }

    /// A data packet arrives, whole or trimmed.
    pub(crate) fn arrive(&mut self, number: u32) {
        let sent = self.sent[number as usize];
        let [_, to] = self.pairs[sent.pair as usize].hosts;
        if self.ports[self.port(to, sent.plane)].down {
            self.sent[number as usize].fate = Fate::Lost(self.now, Place::Port);
            return;
        }
        let mut packet = self.data_packet(&sent, true);
        if sent.trim.is_some() {
            packet.trim = Some(Trim {
                bytes: self.scenario.mrc.trim_bytes,
                rewritten: self.scenario.mrc.trim_length == TrimLength::Rewritten,
            });
        }
        let seen = self.pass(to, sent.plane, packet, Direction::Inbound);
        let own = &mut self.sent[number as usize];
        own.came_seen = seen;
        if let Some(reason) = sent.trim {
            own.fate = Fate::Trimmed(self.now);
            self.refuse(number, &sent, reason);
        } else {
            own.fate = Fate::Arrived(self.now);
            self.take(&sent);
        }
    }

    /// A control packet leaves its port.
    pub(crate) fn control_leaves(&mut self, number: u32) {
        let control = self.controls[number as usize];
        let [from, _] = control.hosts;
        if self.ports[self.port(from, control.plane)].down {
            return;
        }
        self.pass(from, control.plane, control.packet, Direction::Outbound);
        // Answers have queues of high priority, and a probe has the path that it asks about.
        let (delay, lost) = match control.path {
            Some(path) => {
                let path = self.take_path(control.plane, path);
                (path.delay, path.lost)
            }
            None => (Picos::ZERO, self.chance.happens(self.scenario.mrc.control_loss)),
        };
        if lost {
            return;
        }
        let short = self.scenario.network.rate.time_of(128);
        let cables = self.scenario.network.delay.times(2);
        let at = self.now.plus(short).plus(cables).plus(delay);
        self.events.at(at, Event::ControlArrives { control: number });
    }
}
