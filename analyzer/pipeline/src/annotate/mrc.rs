//! Comments on packets of MRC, from the events about them.

use roce_model::EventKind;

use super::known::Moment;

/// The comment of an event on its packet. `frame`: where the PSN was written before.
pub(super) fn comment(moment: &Moment, frame: Option<u64>) -> Option<String> {
    let of_frame = |frame: Option<u64>| match frame {
        Some(frame) => format!("frame {frame}"),
        None => format!("PSN {}, which is in no earlier frame", moment.psn),
    };
    let text = match moment.kind {
        EventKind::MrcRetransmit => {
            let why = match moment.detail {
                "hole" => "a SACK had a hole there",
                "trimmed" => "a switch of the fabric had trimmed it",
                "trimmed_lasthop" => "the last switch had trimmed it",
                "refused" => "the responder had refused it",
                "timeout" => "nothing had answered it in time",
                _ => "the capture does not show why",
            };
            let fate = if moment.value == 1 {
                ", and it was lost"
            } else {
                ""
            };
            format!("retransmission of {}: {why}{fate}", of_frame(frame))
        }
        EventKind::MrcTrim if moment.value == 1 => {
            format!("NACK: PSN {} was trimmed in the fabric", moment.psn)
        }
        EventKind::MrcTrim => format!("NACK: PSN {} was trimmed at the last hop", moment.psn),
        EventKind::MrcNack => format!("NACK of PSN {}, reason {}", moment.psn, moment.value),
        _ => return None,
    };
    Some(text)
}
