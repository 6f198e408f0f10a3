//! Steps of a run: hosts, GPUs and proxy threads of jobs with NCCL's messages.

use super::program::LanePart;
use super::{NcclJob, PostedWrite, WriteKind, between};
use crate::engine::events::{EndpointId, Event, JobEvent};
use crate::engine::log::{MessageTimes, RankStep};
use crate::engine::run::Simulation;
use crate::network::packet::Packet;
use crate::network::topology::number;
use crate::record::frame::Payload;
use crate::scenario::{LatePlace, Operation, Training};
use crate::units::Picos;
use crate::workload::requester::Origin;

/// Shortest and longest time from the end of a kernel until the proxy threads have the next operation, which the host has launched before.
const ENQUEUE: (Picos, Picos) = (Picos::from_nanos(5_000), Picos::from_nanos(20_000));
/// Time from the launch by a host that is late to the start of the kernel.
const LAUNCH: (Picos, Picos) = (Picos::from_nanos(8_000), Picos::from_nanos(25_000));
/// Reaction of a proxy thread, which polls.
const PROXY: (Picos, Picos) = (Picos::from_nanos(300), Picos::from_nanos(1_200));
/// Time from the arrival of data to the GPU's knowledge of it, with the flush of the PCIe path.
const FLUSH: (Picos, Picos) = (Picos::from_nanos(900), Picos::from_nanos(2_000));
/// Time of a GPU for an operation, besides the time of its bytes.
const OPERATION: (Picos, Picos) = (Picos::from_nanos(1_500), Picos::from_nanos(2_100));
/// Time of a GPU for a byte: 40 GB/s in one channel.
const PER_BYTE: Picos = Picos(25);

/// A job and its table in the scenario.
macro_rules! job {
    ($simulation:expr, $job:expr) => {{
        let scenario = $simulation.scenario;
        let state = $simulation.nccl.get_mut($job as usize);
        let Some(state) = state.and_then(Option::as_mut) else {
            return;
        };
        let Some(table) = scenario.training.get(state.table) else {
            return;
        };
        (state, table)
    }};
}

impl Simulation<'_> {
    /// Something happens in a job.
    pub(crate) fn collective(&mut self, job: u32, event: JobEvent) {
        match event {
            JobEvent::Enqueued { rank } => self.enqueued(job, rank),
            JobEvent::KernelStarts { rank } => self.kernel_starts(job, rank),
            JobEvent::OpDone { worker } => self.op_done(job, worker),
            JobEvent::Credit { lane } => self.post_credit(job, lane),
            JobEvent::Send { lane } => self.send_message(job, lane),
            JobEvent::Received { lane } => {
                let (state, _) = job!(self, job);
                let Some(own) = state.lanes.get_mut(lane as usize) else {
                    return;
                };
                own.received += 1;
                let receiver = own.receiver;
                self.work_all(job, receiver);
            }
            JobEvent::SendDone { lane } => {
                let (state, _) = job!(self, job);
                let Some(own) = state.lanes.get_mut(lane as usize) else {
                    return;
                };
                own.done += 1;
                for sender in own.senders.clone() {
                    self.work_all(job, sender);
                }
            }
        }
    }

    /// All ranks of a job begin their first step.
    pub(crate) fn begin_collectives(&mut self, job: u32) {
        let (state, _) = job!(self, job);
        for rank in 0..number(state.ranks.len()) {
            self.begin_step(job, rank);
        }
    }

    /// A rank begins to compute; its host has launched the collective after it, unless it is late.
    fn begin_step(&mut self, job: u32, rank: u32) {
        let now = self.now;
        let (state, table) = job!(self, job);
        let Some(own) = state.ranks.get_mut(rank as usize) else {
            return;
        };
        if table.steps.is_some_and(|steps| own.step >= steps) {
            return;
        }
        let spread = 1.0 + table.spread * (2.0 * own.stream.unit() - 1.0);
        let ahead = between(&mut own.stream, ENQUEUE.0, ENQUEUE.1);
        let launch = between(&mut own.stream, LAUNCH.0, LAUNCH.1);
        let mut starts = now.plus(Picos::from_seconds(table.compute.seconds() * spread));
        let mut enqueued = now.plus(ahead).min(starts);
        for late in &table.late {
            if late.rank == rank && late.is_in(own.step) {
                starts = starts.plus(late.by);
                if late.place == LatePlace::Host {
                    enqueued = enqueued.max(starts.since(launch));
                }
            }
        }
        if table.registered {
            enqueued = starts;
        }
        own.entry = self.log.steps.len();
        let step = own.step;
        self.log.steps.push(RankStep {
            job,
            step,
            rank,
            compute: now,
            begin: Picos::NEVER,
            end: None,
        });
        let event = |event| Event::Collective { job, event };
        self.events.at(enqueued, event(JobEvent::Enqueued { rank }));
        self.events.at(starts, event(JobEvent::KernelStarts { rank }));
    }

    /// The receiver's proxy of each lane to a rank may post the credits of one step more.
    fn enqueued(&mut self, job: u32, rank: u32) {
        let (state, _) = job!(self, job);
        let mut lanes = Vec::new();
        for (lane, place) in state.lanes.iter_mut().zip(0..) {
            if lane.receiver == rank {
                lane.allowed += lane.lengths.len() as u64;
                lanes.push(place);
            }
        }
        for lane in lanes {
            self.plan_credits(job, lane);
        }
    }

    fn kernel_starts(&mut self, job: u32, rank: u32) {
        let now = self.now;
        let (state, _) = job!(self, job);
        let Some(own) = state.ranks.get_mut(rank as usize) else {
            return;
        };
        let workers = own.workers.clone();
        own.runs = true;
        own.working = 0;
        let entry = own.entry;
        for worker in &workers {
            if let Some(worker) = state.workers.get_mut(*worker as usize) {
                worker.next = 0;
                own.working += usize::from(!worker.ops.is_empty());
            }
        }
        let is_idle = own.working == 0;
        if let Some(entry) = self.log.steps.get_mut(entry) {
            entry.begin = now;
        }
        for worker in workers {
            self.work(job, worker);
        }
        if is_idle {
            self.kernel_ends(job, rank);
        }
    }

    fn kernel_ends(&mut self, job: u32, rank: u32) {
        let now = self.now;
        let (state, _) = job!(self, job);
        let Some(own) = state.ranks.get_mut(rank as usize) else {
            return;
        };
        own.runs = false;
        own.step += 1;
        if let Some(entry) = self.log.steps.get_mut(own.entry) {
            entry.end = Some(now);
        }
        self.begin_step(job, rank);
    }

    /// The workers of a rank look whether they can go on.
    fn work_all(&mut self, job: u32, rank: u32) {
        let (state, _) = job!(self, job);
        let workers = state.ranks.get(rank as usize).map(|rank| rank.workers.clone());
        for worker in workers.unwrap_or_default() {
            self.work(job, worker);
        }
    }

    /// A worker begins its next operation, if what it needs is there.
    fn work(&mut self, job: u32, worker: u32) {
        let now = self.now;
        let (state, _) = job!(self, job);
        let NcclJob {
            ranks,
            lanes,
            workers,
            ..
        } = state;
        let Some(own) = workers.get_mut(worker as usize) else {
            return;
        };
        let runs = ranks.get(own.rank as usize).is_some_and(|rank| rank.runs);
        let Some(op) = own.ops.get(own.next).filter(|_| runs && !own.busy) else {
            return;
        };
        let part = |part: &LanePart| {
            let lane = lanes.get(part.lane as usize)?;
            Some((lane, lane.parts.get(usize::from(part.part))?))
        };
        let has_come =
            |receive: &LanePart| part(receive).is_some_and(|(lane, part)| part.used < lane.received);
        let has_room =
            |send: &LanePart| part(send).is_some_and(|(lane, part)| part.filled < lane.done + lane.buffers);
        if !op.receives.iter().all(has_come) || !op.sends.iter().all(has_room) {
            return;
        }
        let bytes = PER_BYTE.times(op.bytes);
        // A tenth more or less.
        let least = bytes.since(Picos(bytes.0 / 10));
        let fixed = between(&mut own.stream, OPERATION.0, OPERATION.1);
        let takes = fixed.plus(between(&mut own.stream, least, bytes.plus(Picos(bytes.0 / 10))));
        own.busy = true;
        let event = JobEvent::OpDone { worker };
        self.events.at(now.plus(takes), Event::Collective { job, event });
    }

    /// A worker has filled and used the buffers of its operation.
    fn op_done(&mut self, job: u32, worker: u32) {
        let now = self.now;
        let (state, _) = job!(self, job);
        let NcclJob { lanes, workers, .. } = state;
        let Some(own) = workers.get_mut(worker as usize) else {
            return;
        };
        let Some(op) = own.ops.get(own.next).cloned() else {
            return;
        };
        own.busy = false;
        own.next += 1;
        let (rank, is_last) = (own.rank, own.next == own.ops.len());
        let mut filled = Vec::new();
        for (list, sends) in [(&op.receives, false), (&op.sends, true)] {
            for place in list {
                let Some(lane) = lanes.get_mut(place.lane as usize) else {
                    continue;
                };
                let before = if sends { lane.filled() } else { lane.used() };
                if let Some(part) = lane.parts.get_mut(usize::from(place.part)) {
                    *(if sends { &mut part.filled } else { &mut part.used }) += 1;
                }
                let after = if sends { lane.filled() } else { lane.used() };
                if after > before {
                    filled.push((place.lane, before, sends));
                }
            }
        }
        for (lane, message, sends) in filled {
            self.note_message(job, lane, message, |times| {
                *(if sends { &mut times.filled } else { &mut times.used }) = Some(now);
            });
            if sends {
                self.plan_sends(job, lane);
            } else {
                self.plan_credits(job, lane);
            }
        }
        if !is_last {
            self.work(job, worker);
            return;
        }
        let (state, _) = job!(self, job);
        let Some(own) = state.ranks.get_mut(rank as usize) else {
            return;
        };
        own.working -= 1;
        if own.working == 0 {
            self.kernel_ends(job, rank);
        }
    }

    /// Plans the credits of all free buffers.
    fn plan_credits(&mut self, job: u32, lane: u32) {
        let now = self.now;
        let (state, table) = job!(self, job);
        let Some(own) = state.lanes.get_mut(lane as usize) else {
            return;
        };
        while own.credits_planned < own.allowed.min(own.used() + own.buffers) {
            let reaction = between(&mut own.receiver_stream, PROXY.0, PROXY.1);
            let delay = lateness(table, own.receiver, own.step(own.credits_planned));
            own.credits_planned += 1;
            own.last.credit = own.last.credit.max(now.plus(reaction).plus(delay));
            let event = JobEvent::Credit { lane };
            self.events.at(own.last.credit, Event::Collective { job, event });
        }
    }

    /// The receiver's proxy posts the next credit, on the first queue pair.
    fn post_credit(&mut self, job: u32, lane: u32) {
        let now = self.now;
        let (state, _) = job!(self, job);
        let Some(own) = state.lanes.get_mut(lane as usize) else {
            return;
        };
        let number = own.credited;
        own.credited += 1;
        let Some(end) = own.ends.first().map(|end| end.peer()) else {
            return;
        };
        let (address, key) = own.memory.credit_place(number);
        let bytes = u64::from(own.memory.credits(number).bytes());
        let posting = PostedWrite {
            kind: WriteKind::Credit,
            job,
            lane,
            number,
            address,
            key,
            immediate: None,
        };
        self.note_message(job, lane, number, |times| times.credit_posted = Some(now));
        self.post_write(end, bytes, posting);
    }

    /// Plans the sends of all messages that are filled and have a credit.
    fn plan_sends(&mut self, job: u32, lane: u32) {
        let now = self.now;
        let (state, _) = job!(self, job);
        let Some(own) = state.lanes.get_mut(lane as usize) else {
            return;
        };
        while own.sends_planned < own.filled().min(own.credits) {
            let reaction = between(&mut own.sender_stream, PROXY.0, PROXY.1);
            own.sends_planned += 1;
            own.last.send = own.last.send.max(now.plus(reaction));
            let event = JobEvent::Send { lane };
            self.events.at(own.last.send, Event::Collective { job, event });
        }
        for end in own.ends.clone() {
            self.note_activity(end);
        }
    }

    /// The sender's proxy sends the next message.
    fn send_message(&mut self, job: u32, lane: u32) {
        let (state, table) = job!(self, job);
        let Some(own) = state.lanes.get_mut(lane as usize) else {
            return;
        };
        let number = own.sent;
        own.sent += 1;
        let bytes = own.length(number);
        let writes = own.memory.writes(table, number, bytes, own.ends.len());
        let pieces = u32::try_from(writes.len()).unwrap_or(u32::MAX);
        own.unacknowledged.push_back(pieces);
        own.missing.push_back(pieces);
        let ends = own.ends.clone();
        for write in writes {
            let Some(end) = ends.get(write.queue_pair).copied() else {
                continue;
            };
            let posting = PostedWrite {
                kind: if write.is_notice {
                    WriteKind::Notice
                } else {
                    WriteKind::Data
                },
                job,
                lane,
                number,
                address: write.address,
                key: write.key,
                immediate: write.immediate,
            };
            self.post_write(end, write.bytes, posting);
        }
    }

    /// Posts a write to a queue pair.
    fn post_write(&mut self, end: EndpointId, bytes: u64, posting: PostedWrite) {
        let place = number(self.postings.len());
        self.postings.push(posting);
        self.ends[end.index()].under_way.push_back(place);
        self.give(end, Operation::Write, bytes, Origin::Proxy(place));
        self.kick(end);
    }

    /// The payload of a write's packets where it is not data.
    pub(crate) fn payload_of(&self, posting: &PostedWrite) -> Option<Payload> {
        let job = self.nccl.get(posting.job as usize)?.as_ref()?;
        let lane = job.lanes.get(posting.lane as usize)?;
        match posting.kind {
            WriteKind::Credit => Some(Payload::Credits(lane.memory.credits(posting.number))),
            WriteKind::Notice if posting.address != 0 => {
                Some(lane.memory.lengths(lane.length(posting.number)))
            }
            WriteKind::Notice | WriteKind::Data => None,
        }
    }

    /// The oldest writes of an end came to its peer.
    pub(crate) fn writes_arrived(&mut self, end: EndpointId, writes: u32) {
        for _ in 0..writes {
            let own = &mut self.ends[end.peer().index()];
            let Some(posting) = own.under_way.pop_front() else {
                return;
            };
            let Some(posting) = self.postings.get(posting as usize).copied() else {
                return;
            };
            self.write_arrived(&posting);
        }
    }

    fn write_arrived(&mut self, posting: &PostedWrite) {
        let now = self.now;
        let (job, lane) = (posting.job, posting.lane);
        if posting.kind == WriteKind::Credit {
            let (state, _) = job!(self, job);
            let Some(own) = state.lanes.get_mut(lane as usize) else {
                return;
            };
            own.credits += 1;
            self.note_message(job, lane, posting.number, |times| times.credit_in = Some(now));
            self.plan_sends(job, lane);
            return;
        }
        self.note_message(job, lane, posting.number, |times| times.last_in = Some(now));
        let (state, _) = job!(self, job);
        let Some(own) = state.lanes.get_mut(lane as usize) else {
            return;
        };
        let first = own.sent - own.missing.len() as u64;
        let place = usize::try_from(posting.number - first).unwrap_or(usize::MAX);
        if let Some(left) = own.missing.get_mut(place) {
            *left -= 1;
        }
        // The receiver's proxy tests its requests in order.
        while own.missing.pop_front_if(|left| *left == 0).is_some() {
            let flush = between(&mut own.receiver_stream, FLUSH.0, FLUSH.1);
            own.last.received = own.last.received.max(now.plus(flush));
            let event = JobEvent::Received { lane };
            self.events
                .at(own.last.received, Event::Collective { job, event });
        }
    }

    /// A write is acknowledged.
    pub(crate) fn write_acknowledged(&mut self, posting: u32) {
        let now = self.now;
        let Some(posting) = self.postings.get(posting as usize).copied() else {
            return;
        };
        let (job, lane) = (posting.job, posting.lane);
        if posting.kind == WriteKind::Credit {
            return;
        }
        self.note_message(job, lane, posting.number, |times| times.acknowledged = Some(now));
        let (state, _) = job!(self, job);
        let Some(own) = state.lanes.get_mut(lane as usize) else {
            return;
        };
        let first = own.sent - own.unacknowledged.len() as u64;
        let place = usize::try_from(posting.number - first).unwrap_or(usize::MAX);
        if let Some(left) = own.unacknowledged.get_mut(place) {
            *left -= 1;
        }
        while own.unacknowledged.pop_front_if(|left| *left == 0).is_some() {
            let reaction = between(&mut own.sender_stream, PROXY.0, PROXY.1);
            own.last.done = own.last.done.max(now.plus(reaction));
            let event = JobEvent::SendDone { lane };
            self.events.at(own.last.done, Event::Collective { job, event });
        }
    }

    /// Notes when packets of a message leave and come.
    pub(crate) fn note_posting(&mut self, packet: &Packet, arrives: bool) {
        let now = self.now;
        let Some(posting) = self.postings.get(packet.posting as usize).copied() else {
            return;
        };
        let is_credit = posting.kind == WriteKind::Credit;
        self.note_message(posting.job, posting.lane, posting.number, |times| {
            match (is_credit, arrives) {
                (true, false) => {
                    times.credit_out.get_or_insert(now);
                }
                (true, true) => {}
                (false, false) => {
                    times.first_out.get_or_insert(now);
                    times.last_out = Some(now);
                }
                (false, true) => {
                    times.first_in.get_or_insert(now);
                }
            }
        });
    }

    /// Notes something of a message.
    fn note_message(&mut self, job: u32, lane: u32, message: u64, note: impl FnOnce(&mut MessageTimes)) {
        let (state, _) = job!(self, job);
        let Some(own) = state.lanes.get_mut(lane as usize) else {
            return;
        };
        // The first thing to happen to a message is its credit, or that its sender has filled a buffer.
        while own.log.len() as u64 <= message {
            let number_in_lane = own.log.len() as u64;
            own.log.push(number(self.log.messages.len()));
            self.log.messages.push(MessageTimes {
                job,
                lane,
                number: number_in_lane,
                ..MessageTimes::default()
            });
        }
        let place = usize::try_from(message).unwrap_or(usize::MAX);
        let times = own.log.get(place).map(|place| *place as usize);
        if let Some(times) = times.and_then(|place| self.log.messages.get_mut(place)) {
            note(times);
        }
    }

    /// True if a sender of a lane has data, and no credit for it.
    pub(crate) fn lacks_credit(&self, (job, lane): (u32, u32)) -> bool {
        let job = self.nccl.get(job as usize).and_then(Option::as_ref);
        let lane = job.and_then(|job| job.lanes.get(lane as usize));
        lane.is_some_and(|lane| lane.filled() > lane.sent && lane.credits <= lane.sent)
    }
}

/// By how much a rank gives its buffers back late.
fn lateness(table: &Training, rank: u32, step: u32) -> Picos {
    let own = table.receiver.iter();
    let own = own.filter(|late| late.rank == rank && late.is_in(step));
    own.fold(Picos::ZERO, |sum, late| sum.plus(late.by))
}
