//! Which rule's finding can follow from which, and how: the one table of mechanisms.

/// A mechanism by which one finding follows from another.
#[derive(Clone, Copy, Debug)]
pub struct Mechanism {
    /// The rule of the cause.
    pub cause: &'static str,
    /// The rule of the effect.
    pub effect: &'static str,
    /// A rule that has to have found the effect's flows as well, the sign that the mechanism was at work. Losses of several senders that show a
    /// full queue are such a sign, too.
    pub with: Option<&'static str>,
    /// How the effect follows, in a sentence.
    pub how: &'static str,
}

const fn direct(cause: &'static str, effect: &'static str, how: &'static str) -> Mechanism {
    Mechanism {
        cause,
        effect,
        with: None,
        how,
    }
}

const fn shown_by(
    with: &'static str,
    cause: &'static str,
    effect: &'static str,
    how: &'static str,
) -> Mechanism {
    Mechanism {
        cause,
        effect,
        with: Some(with),
        how,
    }
}

const UNMARKED: &str =
    "Switches cannot mark packets without ECN: nothing slows their senders before a queue is full.";
const OTHER_CLASS: &str =
    "A class that the plan does not have is neither marked nor kept from loss by pauses.";
const NO_NOTICE: &str = "A sender that gets no CNP does not slow down: marks alone stay without effect.";
const UNMOVED: &str = "A sender that ignores CNPs keeps the queue full.";
// Losses that wrong ICRCs explain are left out of loss.network: where it is found, others are.
const BAD_ICRC: &str =
    "A receiver drops packets with a wrong ICRC silently (IBTA 9.6.1.5): they are as good as lost.";
const FAULTY_PATH: &str =
    "Flows that take a faulty path lose the packets that die there; others between the same hosts do not.";
const TOO_LONG: &str = "Packets longer than a link's MTU are dropped each time that they are sent.";
const PAUSED: &str = "A paused port sends nothing of the priority, and flows stand still behind it.";
const REPEATED_LATE: &str = "A collective waits for the message whose packets are sent again.";
const REPEATED: &str =
    "A receiver that goes back N discards what follows a lost packet: all of it is sent again.";

/// All mechanisms, those of what comes first in a chain of causes before the others.
pub const MECHANISMS: &[Mechanism] = &[
    direct("path.faulty", "loss.network", FAULTY_PATH),
    direct("path.faulty", "icrc.bad", FAULTY_PATH),
    direct("ecn.not-capable", "incast", UNMARKED),
    shown_by("incast", "ecn.not-capable", "loss.network", UNMARKED),
    direct("dscp.mismatch", "incast", OTHER_CLASS),
    shown_by("incast", "dscp.mismatch", "loss.network", OTHER_CLASS),
    direct("ecn.marks-without-cnp", "incast", NO_NOTICE),
    shown_by("incast", "ecn.marks-without-cnp", "loss.network", NO_NOTICE),
    direct("cnp.ignored", "incast", UNMOVED),
    shown_by("incast", "cnp.ignored", "loss.network", UNMOVED),
    direct(
        "incast",
        "loss.network",
        "A queue that many senders fill at once drops what finds no room.",
    ),
    direct(
        "incast",
        "loss.trimmed",
        "A queue that many senders fill at once has no room for more than the headers of what comes.",
    ),
    direct(
        "loss.trimmed",
        "loss.network",
        "A switch whose queue is full cuts the data off, which are lost there.",
    ),
    direct(
        "loss.trimmed",
        "retransmit.timeout",
        "The last packet of a message is missed by nobody but the sender's timer, if the receiver ignores its headers.",
    ),
    direct(
        "incast",
        "unfair",
        "Unequal shares of a destination matter while many senders compete for it.",
    ),
    direct(
        "drops.switch",
        "loss.network",
        "The queue of a switch counted as many drops when the packets were lost.",
    ),
    direct(
        "mrc.switch.suspect",
        "mrc.path.dead",
        "All paths through a switch die with it.",
    ),
    direct(
        "mrc.path.dead",
        "mrc.loss.silent",
        "Packets vanish on a dead path until their sender leaves it.",
    ),
    direct(
        "mrc.loss.silent",
        "mrc.retransmit.timeout",
        "Where the last packet of a burst is lost, no later one shows its hole.",
    ),
    direct("icrc.bad", "connection.failed", BAD_ICRC),
    direct("icrc.bad", "retransmit.timeout", BAD_ICRC),
    direct("icrc.bad", "retransmit.waste", BAD_ICRC),
    direct("mtu.exceeded", "loss.network", TOO_LONG),
    direct("mtu.exceeded", "connection.failed", TOO_LONG),
    direct("mtu.exceeded", "retransmit.timeout", TOO_LONG),
    direct("mtu.exceeded", "stall", TOO_LONG),
    direct(
        "path.spread",
        "retransmit.waste",
        "A receiver that goes back N asks again for all that was only overtaken.",
    ),
    direct(
        "loss.network",
        "connection.failed",
        "A queue pair gives up when its packets or their answers are lost each time.",
    ),
    direct(
        "loss.network",
        "retransmit.timeout",
        "Without an answer only the timer shows that a packet, or its answer, was lost.",
    ),
    direct("loss.network", "retransmit.waste", REPEATED),
    direct("loss.network", "network.late", REPEATED_LATE),
    direct("icrc.bad", "network.late", REPEATED_LATE),
    direct(
        "loss.network",
        "stall",
        "A message waits for the repetition of its lost packet.",
    ),
    direct(
        "nak.fatal",
        "connection.failed",
        "A fatal NAK ends the queue pair of the request.",
    ),
    direct(
        "rnr",
        "connection.failed",
        "A queue pair gives up after as many RNR NAKs as rnr_retry allows.",
    ),
    direct(
        "rnr",
        "stall",
        "A sender waits for the RNR NAK's timer before it sends again.",
    ),
    direct(
        "connection.failed",
        "retransmit.timeout",
        "A requester without answers repeats its request after each timer until it gives up.",
    ),
    direct(
        "connection.failed",
        "stall",
        "A requester without answers stands still until it gives up.",
    ),
    direct(
        "retransmit.timeout",
        "retransmit.waste",
        "A timer that expires although nothing was lost repeats what had arrived.",
    ),
    direct(
        "retransmit.timeout",
        "stall",
        "A sender stands still until its timer expires.",
    ),
    direct("retransmit.timeout", "network.late", REPEATED_LATE),
    direct("rnr", "network.late", REPEATED_LATE),
    direct("stall", "network.late", REPEATED_LATE),
    direct(
        "incast",
        "network.late",
        "Messages wait in the queue that many senders fill.",
    ),
    direct("pause.origin", "network.late", PAUSED),
    direct("pause.storm", "network.late", PAUSED),
    direct(
        "pause.origin",
        "pause.storm",
        "Pauses spread from the port that is their root.",
    ),
    direct("pause.origin", "stall", PAUSED),
    direct("pause.storm", "stall", PAUSED),
];
