//! The rules of MRC: what each means, when it fires and what earns its confidence.

use roce_model::Severity;
use roce_rules::Rule;

const SOURCE: &str =
    "OCP-MRC-1.0, 7.5 (SETH, NETH, CC_STATE), as two public decoders and a simulator read it.";
const SURE: &str = "high with both directions at the sender's side and 99 % of the PSNs captured, medium with SACKs alone or at the \
                    receiver, low where a part of the paths was captured";
const NAMED: &str = "high: the responder says so itself";

macro_rules! rules {
    ($($name:ident: $id:literal, $title:literal, $meaning:literal, $method:literal, $severity:ident, $next:literal, $confidence:ident;)+) => {
        $(
            pub(in crate::findings) const $name: Rule = Rule {
                id: $id,
                title: $title,
                meaning: $meaning,
                method: $method,
                source: SOURCE,
                severity: Severity::$severity,
                otherwise: "info at low confidence",
                next: $next,
                confidence: $confidence,
                ..Rule::TALLIED
            };
        )+
    };
}

rules! {
    QP_FAILED: "mrc.qp.failed", "a connection of MRC ended with an error",
        "The responder ended the connection, and nothing was sent afterwards: its program sees an error.",
        "A NACK with reason 25 or an AETH with a NAK, behind which no data follow.",
        Critical, "Look for the error of the completion in the program's log, at both ends.", NAMED;
    PORT_DOWN: "mrc.port.down", "a host says that one of its ports is down",
        "Its other planes take the traffic: less bandwidth, and more load on each path.",
        "The mask of an endpoint request has lost a bit that the host's mask before had. A first mask says nothing.",
        Warning, "Look at this port's link, optics and switch port. The number is that of the mask's bit.", NAMED;
    SWITCH_SUSPECT: "mrc.switch.suspect", "all dead paths pass one switch",
        "The paths differ in other switches: what they share and no good path has is the likely place of the losses.",
        "An identifier in the SRv6 destinations of two dead paths or more, and of no path in use.",
        Warning, "Look at this switch: its links, its errors, its routes.", SURE;
    PATH_DEAD: "mrc.path.dead", "a path of MRC lost packets until its sender left it",
        "Other paths go on: the fault is on the way that this entropy selects, not at the hosts.",
        "Two packets or more of the path were lost, nothing that was sent on it later arrived (its probe, where there is one), and its sender \
         left it, although its share lets expect seven packets or more. The price is the time until the lost packets were sent again.",
        Warning, "Follow the entropy (or the SRv6 address) through the fabric, and look at the links of that plane.", SURE;
    LOSS_SILENT: "mrc.loss.silent", "packets of MRC vanished without a trim",
        "Switches that trim tell the receiver of each packet that a full queue refuses. What vanishes without that was lost on a link or in a \
         switch.",
        "Packets that were sent again after a hole or a timeout and had neither arrived nor been trimmed. The price is the time until then.",
        Warning, "Look at errors of links and at drops of switches on the paths of `mrc_paths` with losses.", SURE;
    TRIM_FABRIC: "mrc.trim.fabric", "queues inside the fabric overflowed",
        "A switch that is not the last one cut packets: load is uneven, or the fabric is too small.",
        "NACKs with reason 1. The price is the time until the packets were sent again.",
        Warning, "Compare the paths in `mrc_paths`: trims on few of them are uneven load.", NAMED;
    TRIM_LASTHOP: "mrc.trim.lasthop", "several senders overloaded the link to one host",
        "The last switch cut packets of two senders or more: incast. The fabric is not at fault.",
        "NACKs with reason 2 to two requestors or more of one responder. The price is the time until the packets were sent again.",
        Warning, "Let fewer hosts send to this one at a time, or send less each.", NAMED;
    TIMEOUT: "mrc.retransmit.timeout", "packets of MRC were sent again only after a timer",
        "Neither a SACK nor a NACK told the sender: they were lost, or the last packets of a burst.",
        "Retransmissions without a hole or a NACK, after a probe or after twice the longest round trip. The price is the time until then.",
        Warning, "Look at losses on the way back, and at the local ACK timeout of the queue pair.", SURE;
    SPURIOUS: "mrc.retransmit.spurious", "packets of MRC were sent again although they had arrived",
        "The sender takes packets that were overtaken for lost: its guard against reordering is shorter than the difference of the paths.",
        "A SACK that acknowledges the packet was captured before its retransmission, or reflects the time of the first sending. The price is \
         the bandwidth of what was repeated.",
        Warning, "Compare the round trips in `mrc_paths`; raise the adapter's threshold for reordering.", SURE;
    RESPONDER: "mrc.responder.limit", "a host asks its senders to slow down",
        "Its adapter or its memory is the limit, not the network.",
        "SACKs with a penalty, and NACKs with reasons 6, 7, 10 and 11: 1 % of its SACKs, and two, or more.",
        Warning, "Look at this host: PCIe, memory, the resources of its adapter.", NAMED;
    PATH_MARKED: "mrc.path.marked", "few paths of MRC carry the marks",
        "Queues grow on these paths alone: load is uneven. Where all paths are marked alike, the fabric is full.",
        "The share of SACKs that ask to skip the path is three times that of the median path, or more, on at most half of the paths, and \
         hardly comes by chance.",
        Info, "Look at what else uses these links.", SURE;
    PATH_SLOW: "mrc.path.slow", "a path of MRC is slower than the others",
        "Messages wait for the packets of their slowest path.",
        "Its median time from a packet to its SACK is longer than that of the median path by 30 % and 2 us, over 20 samples or more.",
        Info, "Look at queues and at the length of this path.", SURE;
    PLANE_UNEVEN: "mrc.plane.uneven", "a plane carries more or less than its part",
        "All ports of a host should carry the same.",
        "A plane's share is more than 20 % off an even one, over 1,000 packets or more, with SRv6 and without a port that is down.",
        Info, "Look at ports and paths of that plane that were taken out of use.", SURE;
}
