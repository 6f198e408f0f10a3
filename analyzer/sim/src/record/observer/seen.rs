//! Records of one flow at one tap: counts, and request PSNs that were missing when later ones came.

use std::collections::{BTreeMap, VecDeque};

use roce_wire::Ecn;

use crate::network::packet::{Kind, Packet};
use crate::truth::Truth;
use crate::units::Picos;

/// A request PSN that was jumped over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hole {
    /// Time of the packet beyond it, and the request before that one.
    pub time: Picos,
    pub since: Picos,
    /// The packet that was recorded after all.
    pub filled: Option<FilledGap>,
}

/// A packet with a PSN that had been jumped over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilledGap {
    pub time: Picos,
    /// Its first PSN.
    pub first: u64,
    pub attempt: u16,
    /// Place of its run in the log, for a retransmission.
    pub run: u32,
    /// Answers recorded at that time covered the PSNs below this.
    pub acked: u64,
}

/// Records of a run of retransmissions at one tap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunSeen {
    /// Its place in the log.
    pub run: u32,
    /// Time and number of its first recorded packet.
    pub time: Picos,
    pub seq: u64,
    pub packets: u64,
    /// The first one recorded lies behind the highest PSN recorded before: it can be distinguished from new ones.
    pub behind: bool,
    /// It goes on where the run before stopped: the two look like one.
    pub joins: bool,
    /// Time of its last recorded packet.
    pub last: Picos,
    /// Time without an acknowledgement: since the last answer of something new, since the packet that is
    /// retransmitted, or since the last run.
    pub waited: Picos,
}

/// A packet that came after later ones of its flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LateSeen {
    pub kind: Kind,
    pub psn: u32,
    pub time: Picos,
    pub depth: u64,
    pub behind: Picos,
}

/// A duplicate of the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopySeen {
    pub kind: Kind,
    pub psn: u32,
    pub time: Picos,
}

/// Records of one flow at one tap.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowRecords {
    pub late: Vec<LateSeen>,
    pub copies: Vec<CopySeen>,
    /// After the highest READ response recorded, and when the PSNs below it were jumped over.
    top_response: u64,
    jumped: BTreeMap<u64, Picos>,
    pub packets: u64,
    pub data: u64,
    pub payload: u64,
    pub ce: u64,
    pub not_ect: u64,
    pub retransmitted: u64,
    pub retransmitted_bytes: u64,
    /// Number of the packets behind the highest PSN recorded before.
    pub behind: u64,
    pub behind_bytes: u64,
    pub naks: u64,
    pub rnr_naks: u64,
    pub first_time: Picos,
    pub last_time: Picos,
    /// Numbers of the first and the last record in the file.
    pub first_record: u64,
    pub last_record: u64,
    /// After the highest request PSN recorded.
    pub highest: Option<u64>,
    pub holes: BTreeMap<u64, Hole>,
    pub runs: Vec<RunSeen>,
    /// The requests that wait for an acknowledgement: after the PSNs of each, and when it was recorded.
    waiting: VecDeque<(u64, Picos)>,
    /// Packet after the last retransmission, until a new one follows.
    run_next: Option<u64>,
    /// After the highest PSN of the *other* flow that a recorded ACK, NAK or READ response of this one covers.
    pub acked: u64,
    /// Time of its last rise.
    pub acked_at: Picos,
    /// Answers that name one request: ACKs of something new, and READ responses that begin one. Evidence for pairing.
    pub answers: u64,
    /// Times of their first records.
    pub first_answers: Vec<Picos>,
    last_request: Picos,
    /// The last request began or continued a message.
    in_message: bool,
    /// Times without a request in the middle of a message.
    pub silences: Vec<(Picos, Picos)>,
    next_response: Option<u64>,
    pub response_missing: u64,
    pub response_missing_most: u64,
}

/// A jump beyond this is a restart, no hole (2^16, as the analysis has it).
const RESTART: u64 = 1 << 16;

/// From how long on a time without requests in the middle of a message is kept.
const SILENCE: Picos = Picos::from_nanos(500_000);

impl FlowRecords {
    /// A packet was recorded; `acked` is what recorded answers of the other flow have covered, and since when.
    pub(crate) fn record(&mut self, packet: &Packet, now: Picos, record: u64, (acked, since): (u64, Picos)) {
        if packet.kind == Kind::Cnp {
            return;
        }
        if self.packets == 0 {
            self.first_time = now;
            self.first_record = record;
        }
        self.packets += 1;
        self.last_time = now;
        self.last_record = record;
        if packet.kind.is_data() {
            self.data += 1;
            self.payload += u64::from(packet.payload);
            self.ce += u64::from(packet.ecn() == Ecn::Ce);
            self.not_ect += u64::from(packet.ecn() == Ecn::NotEct);
        }
        if packet.is_copy() && self.is_known(packet) {
            self.copies.push(CopySeen {
                kind: packet.kind,
                psn: packet.psn(),
                time: now,
            });
            return;
        }
        if let Some((depth, since)) = self.is_late(packet, now) {
            self.late.push(LateSeen {
                kind: packet.kind,
                psn: packet.psn(),
                time: now,
                depth,
                behind: now.since(since),
            });
        }
        match packet.kind {
            Kind::Request | Kind::ReadRequest => {
                if packet.attempt > 0 {
                    self.retransmitted += 1;
                    self.retransmitted_bytes += u64::from(packet.payload);
                    let behind = self.highest.is_some_and(|highest| packet.seq < highest);
                    if behind {
                        self.behind += 1;
                        self.behind_bytes += u64::from(packet.payload);
                    }
                    self.retransmitted_in_run(packet, now, behind, since);
                }
                self.request(packet, now, acked);
            }
            Kind::Ack => {
                self.answer(packet.seq > self.acked, now);
                self.covers(packet.seq, now);
            }
            Kind::Nak | Kind::FatalNak => {
                self.naks += 1;
                self.covers(packet.seq, now);
            }
            Kind::RnrNak => {
                self.rnr_naks += 1;
                self.covers(packet.seq, now);
            }
            Kind::ReadResponse => {
                self.answer(packet.first, now);
                self.covers(packet.seq + 1, now);
                self.response(packet);
            }
            Kind::Cnp | Kind::Datagram | Kind::Management | Kind::Pause => {}
        }
    }

    /// Distance of a late packet behind the highest of its kind, and the time since when it is missing.
    fn is_late(&mut self, packet: &Packet, now: Picos) -> Option<(u64, Picos)> {
        match packet.kind {
            Kind::Request | Kind::ReadRequest if packet.attempt == 0 => {
                let highest = self.highest.filter(|highest| packet.seq < *highest)?;
                let hole = self.holes.get(&packet.seq);
                // Packets before the first record of the flow are missing since that record.
                Some((
                    highest - 1 - packet.seq,
                    hole.map_or(self.first_time, |hole| hole.time),
                ))
            }
            Kind::ReadResponse if packet.attempt == 0 => {
                let top = self.top_response;
                self.top_response = top.max(packet.seq + 1);
                if packet.seq < top {
                    let since = self.jumped.remove(&packet.seq).unwrap_or(now);
                    return Some((top - 1 - packet.seq, since));
                }
                // PSNs of other requests lie between those of READs: they never come as responses.
                let from = top.max(packet.seq.saturating_sub(RESTART));
                for seq in from..packet.seq {
                    self.jumped.insert(seq, now);
                }
                None
            }
            Kind::Ack | Kind::Nak if packet.seq < self.acked => {
                Some((self.acked - packet.seq, self.acked_at))
            }
            _ => None,
        }
    }

    /// True if a duplicate that the network made shows nothing new: neither a new PSN nor one that had
    /// been jumped over.
    fn is_known(&self, packet: &Packet) -> bool {
        if !packet.kind.is_request() {
            return true;
        }
        let end = packet.seq + u64::from(packet.span);
        let mut holes = self.holes.range(packet.seq..end);
        let is_new = self.highest.is_none_or(|highest| packet.seq >= highest);
        !is_new && holes.all(|(_, hole)| hole.filled.is_some())
    }

    fn retransmitted_in_run(&mut self, packet: &Packet, now: Picos, behind: bool, since: Picos) {
        let sent = self.waiting.iter().find(|(next, _)| *next > packet.seq);
        let run = self.runs.last().map(|run| run.time);
        let begin = [Some(since), sent.map(|(_, sent)| *sent), run];
        let begin = begin.into_iter().flatten().max().unwrap_or(since);
        match self.runs.iter_mut().rev().find(|seen| seen.run == packet.note) {
            Some(seen) => {
                seen.packets += 1;
                seen.last = now;
            }
            None => self.runs.push(RunSeen {
                run: packet.note,
                time: now,
                last: now,
                seq: packet.seq,
                packets: 1,
                behind,
                waited: now.since(begin),
                joins: behind && self.run_next.is_some_and(|next| packet.seq >= next),
            }),
        }
        self.run_next = Some(packet.seq + u64::from(packet.span));
    }

    fn answer(&mut self, names_one: bool, now: Picos) {
        if !names_one {
            return;
        }
        self.answers += 1;
        if self.answers <= Truth::ANSWERS_BY_PSN {
            self.first_answers.push(now);
        }
    }

    fn covers(&mut self, seq: u64, now: Picos) {
        if seq > self.acked {
            self.acked = seq;
            self.acked_at = now;
        }
    }

    fn request(&mut self, packet: &Packet, now: Picos, acked: u64) {
        let since = core::mem::replace(&mut self.last_request, now);
        if core::mem::replace(&mut self.in_message, !packet.last) && now.since(since) >= SILENCE {
            self.silences.push((since, now));
        }
        let end = packet.seq + u64::from(packet.span);
        while self.waiting.pop_front_if(|(next, _)| *next <= acked).is_some() {}
        if self.highest.is_none_or(|highest| end > highest) {
            self.waiting.push_back((end, now));
        }
        let Some(highest) = self.highest else {
            self.highest = Some(end);
            return;
        };
        if packet.seq > highest && packet.seq - highest <= RESTART {
            for seq in highest..packet.seq {
                self.holes.insert(
                    seq,
                    Hole {
                        time: now,
                        since,
                        filled: None,
                    },
                );
            }
        }
        if packet.seq < highest && !self.holes.is_empty() {
            for (_, hole) in self.holes.range_mut(packet.seq..end) {
                hole.filled.get_or_insert(FilledGap {
                    time: now,
                    first: packet.seq,
                    attempt: packet.attempt,
                    run: packet.note,
                    acked,
                });
            }
        }
        if end > highest {
            self.run_next = None;
        }
        self.highest = Some(highest.max(end));
    }

    fn response(&mut self, packet: &Packet) {
        // Behind the highest one nothing is jumped over: it came, or it was counted when it was.
        if let Some(next) = self.next_response
            && packet.seq > next
            && packet.seq - next <= RESTART
        {
            self.response_missing_most += packet.seq - next;
            if !packet.first {
                self.response_missing += packet.seq - next;
            }
        }
        self.next_response = self.next_response.max(Some(packet.seq + 1));
    }
}
