//! Families of MRC: packets of a queue pair take paths of several planes. A tap sees all ports of a sender's NIC, in most scenarios
//! also one of a receiver's.
//!
//! Ranges: 4 and 8 planes, 128 to 256 EVs of a queue pair and MTU 4096 are the authors' deployment (arXiv 2605.04333); smaller ones keep
//! runs short. The local ACK timeout is 1.024 us x 2^n (OCP-MRC-1.0).

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::plan::{Plan, Ranges};

/// Nanoseconds of the longest way of a packet and its answer: four cables, and twice the paths.
const SERVICE: u64 = 1_000;

/// A network of MRC, before what goes wrong.
struct Network {
    plan: Plan,
    planes: u64,
    paths: u64,
    /// Packets that overtake another one at most, in a network without queues.
    overtaking: u64,
    window: u64,
    keys: String,
    flows: String,
}

impl Network {
    /// A network with `senders` hosts that send to the next one.
    fn draw(draw: &mut Draw, senders: u64) -> Self {
        let ranges = Ranges {
            hosts: (senders + 1, senders + 1),
            gigabits: &[25, 50, 100, 200, 400],
            mtus: &[1024, 2048, 4096],
            packets: 1,
            duration: (1, 1),
        };
        let mut plan = Plan::switched(draw, &ranges);
        (plan.leaves, plan.vlan) = (1, false);
        plan.ipv6 = !draw.one_in(4);
        let delay = draw.scaled(100, 2_000);
        plan.network = format!("delay = \"{delay}ns\"\n");
        let planes = draw.of(&[1, 2, 4, 4, 8]);
        let paths = draw.of(&[2, 4, 8, 16]);
        let evs = planes * paths * draw.of(&[1, 1, 2]);
        // 200 m of fibre more on the longest path; what differs by 2 us is a slow path.
        let (skew, jitter) = (draw.below(1_001), draw.below(1_001));
        let packet = plan.time_of(plan.mtu + 150);
        let overtaking = (skew + jitter) * planes / packet + 2 * planes + 4;
        // Enough to fill the ports for a round trip, and some more.
        let trip = 4 * delay + skew + jitter + SERVICE;
        let window = (trip * planes / packet + 16) * plan.mtu * draw.between(1, 3);
        let timeout = 64 - (4 * (trip + window / planes * 8 / plan.gigabits) / 1_024).leading_zeros();
        let mut keys = format!(
            "planes = {planes}\npaths = {paths}\nevs = {}\nskew = \"{skew}ns\"\njitter = \"{jitter}ns\"\nwindow = {window}\ntimeout = {}\n\
             udp_port = {}\ntimestamps = {}\nev_order = \"{}\"\npdc_order = \"{}\"\nsack_bytes = {}\nsack_base = \"{}\"\nmpr = {}\n",
            evs.min(256 / planes * planes),
            u64::from(timeout) + draw.below(3) + 2,
            draw.of(&[4_791, 4_791, 4_971]),
            !draw.one_in(4),
            draw.of(&["label-high", "port-high"]),
            draw.of(&["sender-first", "requestor-first"]),
            draw.of(&[4_096, 4_096, 8_192, 16_384]),
            draw.of(&["trigger", "trigger", "cumulative"]),
            draw.of(&[0, 8, 64]),
        );
        if plan.ipv6 && draw.one_in(4) {
            keys.push_str("srv6 = true\n");
        }
        let message = draw.scaled(1, 64) * plan.mtu - draw.below(plan.mtu / 2);
        let flows = format!(
            "\n[[flow]]\ntransport = \"mrc\"\nfrom = \"h1..h{senders}\"\nto = \"h{}\"\nmessage = {message}\noutstanding = {}\nqps = {}\n\
             jitter = \"20us\"\n",
            senders + 1,
            draw.between(1, 4),
            draw.of(&[1, 1, 1, 2]),
        );
        // About 4,000 packets at the receiver's rate, or 300 us.
        plan.duration = (4_000 / planes * packet / 1_000).clamp(300, 2_000);
        Self {
            plan,
            planes,
            paths,
            overtaking,
            window,
            keys,
            flows,
        }
    }

    fn guard(&mut self, packets: u64) {
        let _ = writeln!(self.keys, "guard = {packets}");
    }

    /// Faults of one path, or of a plane.
    fn path(&self, draw: &mut Draw, keys: &str) -> String {
        let plane = draw.below(self.planes);
        let path = draw.below(self.paths);
        format!("\n[[mrc.path]]\nplane = {plane}\npath = {path}\n{keys}\n")
    }

    fn finish(mut self, draw: &mut Draw, faults: &str) -> Plan {
        let snaplen = draw.of(&[192, 192, 256, 0]);
        let _ = write!(self.plan.tables, "\n[mrc]\n{}{faults}{}", self.keys, self.flows);
        for host in 1..self.plan.hosts {
            let _ = writeln!(
                self.plan.tables,
                "\n[[tap]]\nat = \"h{host}\"\nfile = \"senders\"\nsnaplen = {snaplen}"
            );
        }
        self.plan
    }
}

/// Nothing is wrong: packets overtake each other, as they do on several paths.
pub(super) fn healthy(draw: &mut Draw) -> Plan {
    let senders = draw.of(&[1, 1, 2]);
    let mut network = Network::draw(draw, senders);
    let window = network.window / network.plan.mtu;
    network.guard(2 * window + 2);
    network.keys.push_str("queue = \"64MiB\"\n");
    let mut plan = network.finish(draw, "");
    plan.healthy = true;
    plan
}

/// Paths lose packets: now and then, or all from some time on. Answers may get lost, too.
pub(super) fn loss(draw: &mut Draw) -> Plan {
    let mut network = Network::draw(draw, 1);
    let guard = network.overtaking * draw.between(1, 2);
    network.guard(guard);
    network.keys.push_str("queue = \"64MiB\"\n");
    if draw.one_in(4) {
        let _ = writeln!(network.keys, "control_loss = {}", draw.share(1_000, 10_000));
    }
    let mut faults = String::new();
    for _ in 0..draw.between(1, 3) {
        let keys = if draw.one_in(3) {
            format!("loss = 1.0\nbegin = \"{}us\"", draw.between(20, 150))
        } else {
            format!("loss = {}", draw.share(2_000, 100_000))
        };
        faults.push_str(&network.path(draw, &keys));
    }
    network.finish(draw, &faults)
}

/// Queues in the fabric have no room for some packets, and trim them; some trimmed ones are lost.
pub(super) fn trims(draw: &mut Draw) -> Plan {
    let mut network = Network::draw(draw, 1);
    let guard = network.overtaking * draw.between(1, 2);
    network.guard(guard);
    network.keys.push_str("queue = \"64MiB\"\n");
    let _ = writeln!(
        network.keys,
        "trim_bytes = {}\ntrim_length = \"{}\"",
        draw.of(&[160, 192, 256]),
        draw.of(&["kept", "rewritten"])
    );
    if draw.one_in(3) {
        let _ = writeln!(network.keys, "trim_loss = {}", draw.share(10_000, 200_000));
    }
    let mut faults = String::new();
    for _ in 0..draw.between(1, 3) {
        let keys = format!("trim = {}", draw.share(5_000, 200_000));
        faults.push_str(&network.path(draw, &keys));
    }
    network.finish(draw, &faults)
}

/// Several senders fill the queue before one host, which trims.
pub(super) fn incast(draw: &mut Draw) -> Plan {
    let senders = draw.between(2, 4);
    let mut network = Network::draw(draw, senders);
    let window = network.window / network.plan.mtu;
    network.guard(2 * window + 2);
    let queue = network.window / network.planes * senders / draw.between(2, 4);
    let _ = writeln!(network.keys, "queue = {}", queue.max(4 * network.plan.mtu));
    network.finish(draw, "")
}

/// The guard is smaller than paths differ: packets are sent again that had only been overtaken.
pub(super) fn hasty(draw: &mut Draw) -> Plan {
    let mut network = Network::draw(draw, 1);
    network.guard(draw.between(2, 8));
    network.keys.push_str("queue = \"64MiB\"\n");
    let slow = format!("delay = \"{}ns\"", draw.between(2_000, 15_000));
    let mut faults = network.path(draw, &slow);
    if draw.one_in(2) {
        let keys = format!("loss = {}", draw.share(5_000, 50_000));
        faults.push_str(&network.path(draw, &keys));
    }
    network.finish(draw, &faults)
}

/// A port goes down, marks and penalties, and losses beside them.
pub(super) fn mixed(draw: &mut Draw) -> Plan {
    let mut network = Network::draw(draw, 1);
    let guard = network.overtaking * 2;
    network.guard(guard);
    network.keys.push_str("queue = \"64MiB\"\n");
    let mark = format!("mark = {}", draw.share(20_000, 400_000));
    let mut faults = network.path(draw, &mark);
    if draw.one_in(2) {
        let keys = format!(
            "loss = {}\ntrim = {}",
            draw.share(2_000, 50_000),
            draw.share(2_000, 50_000)
        );
        faults.push_str(&network.path(draw, &keys));
    }
    if network.planes > 1 && draw.one_in(2) {
        let _ = write!(
            faults,
            "\n[[mrc.port]]\nhost = \"h2\"\nplane = {}\ndown = \"{}us\"\n",
            draw.below(network.planes),
            draw.between(50, 150)
        );
    }
    if draw.one_in(2) {
        let _ = write!(
            faults,
            "\n[[mrc.responder]]\nhost = \"h2\"\npenalty = {}\nbegin = \"100us\"\nend = \"200us\"\n",
            draw.between(8, 120)
        );
    }
    network.finish(draw, &faults)
}
