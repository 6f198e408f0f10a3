//! Families of jobs with NCCL's messages: one rank, receiver or link makes them wait, or nothing does. A tap is at each host.

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::plan::{Plan, Ranges};

/// Packets of data of a whole run, over all ranks.
const PACKETS: u64 = 24_000;
const MICROSECOND: u64 = 1_000;

/// A drawn job, before what is wrong with it.
struct Job {
    plan: Plan,
    steps: u64,
    /// Time of computing, in nanoseconds.
    compute: u64,
    /// Bytes that each rank sends in a step.
    sent: u64,
    /// Messages of a lane in a step, at least.
    messages: u64,
    /// The release lets ranks share connections.
    groups: bool,
    /// Keys of its table.
    keys: String,
}

impl Job {
    fn draw(draw: &mut Draw) -> Self {
        let ranges = Ranges {
            hosts: (4, 8),
            gigabits: &[25, 50, 100, 200, 400],
            mtus: &[1024, 4096],
            packets: 1,
            duration: (1, 1),
        };
        let mut plan = Plan::switched(draw, &ranges);
        plan.leaves = 1;
        let (ranks, steps) = (plan.hosts, draw.between(4, 7));
        let channels = draw.of(&[1, 1, 2, 4]);
        let slice = draw.scaled(8_192, 524_288).next_multiple_of(512);
        // Each rank sends 2 (n - 1) / n of the bytes: less than twice as many.
        let most = PACKETS / steps / ranks * plan.mtu / 2;
        let bytes = draw.scaled(most / 8, most).max(ranks * channels * 512);
        let compute = draw.scaled(800, 6_000) * MICROSECOND;
        let version = draw.of(&[
            "2.4", "2.9", "2.12", "2.16", "2.18", "2.19", "2.20", "2.21", "2.23", "2.24", "2.27", "2.29",
            "2.30",
        ]);
        let mut keys = format!(
            "ranks = \"h1..h{ranks}\"\ntransport = \"nccl\"\nversion = \"{version}\"\nchannels = {channels}\nslice = {slice}\nbytes = \
             {bytes}\nsteps = {steps}\ncompute = \"{compute}ns\"\nspread = 0.00{}\nqps = {}\nadaptive = {}\n",
            draw.below(10),
            draw.of(&[1, 1, 1, 2, 4]),
            draw.one_in(4),
        );
        if draw.one_in(4) {
            let _ = writeln!(keys, "split = {}", draw.one_in(2));
        }
        if draw.one_in(2) && matches!(version, "2.29" | "2.30") {
            keys.push_str("by_id = true\n");
        }
        if draw.one_in(3) {
            let _ = writeln!(keys, "earlier = {}", draw.below(300));
        }
        Self {
            plan,
            steps,
            compute,
            sent: bytes * 2 * (ranks - 1) / ranks,
            messages: (bytes * 2 / (channels * slice)).max(4 * (ranks - 1)),
            groups: !matches!(version, "2.4" | "2.9"),
            keys,
        }
    }

    /// Part of a step's computing, in percent.
    fn part(&self, draw: &mut Draw, least: u64, most: u64) -> u64 {
        self.compute * draw.scaled(least, most) / 100
    }

    /// Steps that something is wrong in, as TOML: all, or some after each other.
    fn some_steps(&self, draw: &mut Draw) -> String {
        if draw.one_in(2) {
            return String::new();
        }
        let first = draw.between(1, self.steps - 1);
        let steps: Vec<String> = (first..self.steps).map(|step| step.to_string()).collect();
        format!(", steps = [{}]", steps.join(", "))
    }

    fn rank(&self, draw: &mut Draw) -> u64 {
        draw.below(self.plan.hosts)
    }

    /// The plan, with a tap at each host; `slower` is how much longer than computing a step may be, in percent.
    fn finish(mut self, draw: &mut Draw, slower: u64) -> Plan {
        let step = self.compute * (200 + slower) / 100 + self.plan.time_of(self.sent) * 4;
        self.plan.duration = (step * (self.steps + 1) + 2_000 * self.messages * self.steps) / MICROSECOND;
        let _ = writeln!(self.plan.tables, "\n[[training]]\n{}", self.keys);
        let snaplen = draw.of(&[96, 160, 160, 160, 0]);
        let far = draw.one_in(3);
        for host in 1..=self.plan.hosts {
            let offset = if far { draw.below(400_001) } else { 200_000 };
            let _ = writeln!(
                self.plan.tables,
                "\n[[tap]]\nat = \"h{host}\"\nsnaplen = {snaplen}\nclock_offset_ns = {}",
                offset.cast_signed() - 200_000
            );
        }
        self.plan.alone = true;
        self.plan
    }
}

/// Nothing is wrong; in half of the scenarios a few records are missing.
pub(super) fn healthy(draw: &mut Draw) -> Plan {
    let job = Job::draw(draw);
    let mut plan = job.finish(draw, 0);
    plan.healthy = true;
    let missing = draw.of(&["", "", "loss = 0.001\n", "loss = 0.01\n"]);
    plan.tables = plan
        .tables
        .replace("clock_offset_ns", &format!("{missing}clock_offset_ns"));
    plan
}

/// A rank's GPU, or its host, begins collectives later.
pub(super) fn rank(draw: &mut Draw) -> Plan {
    let mut job = Job::draw(draw);
    let by = job.part(draw, 10, 100);
    let (rank, steps) = (job.rank(draw), job.some_steps(draw));
    let place = draw.of(&["gpu", "host"]);
    let _ = writeln!(
        job.keys,
        "late = [{{ rank = {rank}, by = \"{by}ns\", where = \"{place}\"{steps} }}]"
    );
    job.finish(draw, 100)
}

/// A rank gives buffers back later: each of a lane's messages but the first ones waits for one.
pub(super) fn receiver(draw: &mut Draw) -> Plan {
    let mut job = Job::draw(draw);
    let rounds = job.messages.div_ceil(4).max(1);
    let by = (job.part(draw, 20, 80) / rounds).max(5 * MICROSECOND);
    let (rank, steps) = (job.rank(draw), job.some_steps(draw));
    let _ = writeln!(
        job.keys,
        "receiver = [{{ rank = {rank}, by = \"{by}ns\"{steps} }}]"
    );
    let slower = 100 + by * rounds * 400 / job.compute;
    job.finish(draw, slower)
}

/// A host's link is slower than the others.
pub(super) fn link(draw: &mut Draw) -> Plan {
    let mut job = Job::draw(draw);
    // The data of a rank take a fifth to once the time of computing.
    let time = job.part(draw, 20, 100);
    let megabits = (job.sent * 8 * 1_000 / time).min(job.plan.gigabits * 500).max(50);
    let host = job.rank(draw) + 1;
    let _ = writeln!(
        job.plan.tables,
        "\n[[host]]\nname = \"h{host}\"\nrate = \"{megabits}Mbps\""
    );
    let slower = 100 + job.sent * 8 * 1_000 / megabits * 200 / job.compute;
    job.finish(draw, slower)
}

/// A host's link loses packets: some, or all for some time.
pub(super) fn loss(draw: &mut Draw) -> Plan {
    let mut job = Job::draw(draw);
    let timeout = draw.between(300, 4_000);
    let _ = writeln!(job.plan.nic, "timeout = \"{timeout}us\"");
    let host = job.rank(draw) + 1;
    let (from, to) = if draw.one_in(2) {
        job.plan.first_link(host)
    } else {
        job.plan.last_link(host)
    };
    let what = if draw.one_in(2) {
        format!("loss = {}", draw.share(5_000, 50_000))
    } else {
        // The first collective begins when the ranks have computed once, the second when they have done so twice and exchanged data.
        let (begin, length) = if draw.one_in(2) {
            (
                job.compute * draw.between(99, 102) / 100,
                draw.between(300, 3_000),
            )
        } else {
            (job.compute * 2, job.compute * 3 / 4 / MICROSECOND)
        };
        let begin = begin / MICROSECOND;
        format!(
            "loss = 1.0\nbegin = \"{begin}us\"\nend = \"{}us\"",
            begin + length
        )
    };
    job.plan.impair(&from, &to, &what);
    let slower = 200 + timeout * MICROSECOND * 800 / job.compute;
    job.finish(draw, slower)
}

/// Trees and exchanges between all, also of several ranks on a host and in small messages; in half of the scenarios a rank is late.
pub(super) fn others(draw: &mut Draw) -> Plan {
    let mut job = Job::draw(draw);
    let mut ranks = job.plan.hosts;
    if draw.one_in(2) {
        job.keys.push_str("collective = \"tree\"\n");
    } else {
        job.keys.push_str("collective = \"all-to-all\"\n");
        if job.groups && draw.one_in(2) {
            job.keys.push_str("ranks_per_host = 2\n");
            ranks *= 2;
        }
    }
    if draw.one_in(3) {
        job.keys.push_str("protocol = \"ll\"\n");
    }
    if draw.one_in(2) {
        let mut plan = job.finish(draw, 100);
        plan.healthy = true;
        return plan;
    }
    let by = job.part(draw, 10, 100);
    let (rank, steps) = (draw.below(ranks), job.some_steps(draw));
    let place = draw.of(&["gpu", "host"]);
    let _ = writeln!(
        job.keys,
        "late = [{{ rank = {rank}, by = \"{by}ns\", where = \"{place}\"{steps} }}]"
    );
    job.finish(draw, 200)
}
