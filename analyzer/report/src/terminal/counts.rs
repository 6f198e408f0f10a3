//! The counts of the run. What there was none of is said once, at the end.

use roce_model::Totals;

use super::field::{NAMED, field};
use super::ink::{Ink, shorten};
use super::view::View;
use roce_spelling::{bytes, count, percent, plural, rate};

/// Why there is nothing to count.
pub(super) fn no_packet(view: &View<'_>) -> String {
    if view.totals.filtered > 0 {
        "the filter left out all RoCE packets".to_owned()
    } else if view.totals.frames == 0 && view.run.inputs.iter().any(|input| input.frames > 0) {
        "no frame lies between --from and --to".to_owned()
    } else if view.totals.uet_packets > 0 {
        "no RoCE packet, but UET".to_owned()
    } else {
        "no RoCE packet".to_owned()
    }
}

/// The counts.
pub(super) fn totals(view: &View<'_>) -> Vec<String> {
    let View {
        run, style, totals, ..
    } = view;
    let length = run.span.map(roce_model::Period::length).unwrap_or_default();
    if totals.roce_packets == 0 {
        return field("data", &[no_packet(view)], style);
    }
    let mut lines = Vec::new();
    let mut data = vec![format!("{} payload", bytes(totals.payload_bytes))];
    data.extend(rate(totals.payload_bytes, length));
    if totals.retransmitted_bytes > 0 {
        data.push(format!("{} of it new", bytes(totals.new_payload_bytes())));
        data.extend(rate(totals.new_payload_bytes(), length).map(|rate| format!("goodput {rate}")));
    }
    data.push(format!("{} on the wire", bytes(totals.wire_bytes)));
    data.extend(rate(totals.wire_bytes, length));
    if totals.seen_again > 0 {
        data.push("each packet once".to_owned());
    }
    lines.extend(field("data", &data, style));
    if view.sums.rows > 0 {
        lines.extend(field("ECN", &ecn(view), style));
    }
    lines.extend(field("CNP", &cnp(view), style));
    lines.extend(field("replies", &replies(view), style));
    lines.extend(field("retrans", &retransmitted(view), style));
    if totals.pause_frames > 0 {
        lines.extend(field(
            "pause",
            &[Ink::Warn.paint(&plural(totals.pause_frames, "pause frame", "pause frames"))],
            style,
        ));
    }
    lines.extend(field("ICRC", &icrc(&run.totals), style));
    lines.extend(field("not seen", &not_seen(totals), style));
    lines
}

fn ecn(view: &View<'_>) -> Vec<String> {
    let (sums, all) = (view.sums, view.sums.counted.data_packets);
    let mut items = vec![plural(all, "data packet", "data packets")];
    if view.is_filtered() {
        items.push("of the flows shown".to_owned());
    }
    let mut add = |name: &str, packets: u64, ink: Option<Ink>| {
        if packets > 0 {
            let share = percent(packets, all).unwrap_or_default();
            let item = format!("{name} {} ({share})", count(packets));
            items.push(ink.map_or(item.clone(), |ink| ink.paint(&item)));
        }
    };
    add("CE", sums.ce, Some(Ink::Warn));
    add("ECT(0)", sums.ect0, None);
    add("ECT(1)", sums.ect1, None);
    add("Not-ECT", sums.not_ect, None);
    add(
        "without ECN field",
        all.saturating_sub(sums.ce + sums.ect0 + sums.ect1 + sums.not_ect),
        None,
    );
    // Marks are set on the path: the tap that saw most of a flow may be before the place that marks.
    if sums.ce_again > 0 {
        items.push(Ink::Warn.paint(&format!("{} CE at other taps", count(sums.ce_again))));
    }
    items
}

fn cnp(view: &View<'_>) -> Vec<String> {
    let (run, total) = (view.run, view.run.totals.cnp);
    if total == 0 {
        return Vec::new();
    }
    let mut items = vec![Ink::Warn.paint(&plural(total, "CNP", "CNPs"))];
    if run.totals.seen_again > 0 {
        items.push("at all taps together".to_owned());
    }
    let named = NAMED - 1;
    for receiver in run.cnp_receivers.iter().take(named) {
        let to = shorten(
            &receiver.destination.to_string(),
            view.style.width / 3,
            view.style.unicode,
        );
        items.push(format!(
            "{} to {to} QPN {:#x}",
            count(receiver.cnp),
            receiver.qpn.value()
        ));
    }
    let left = run.cnp_receivers.len().saturating_sub(named) as u64;
    if left > 0 {
        items.push(format!("the rest to {}", plural(left, "other QP", "other QPs")));
    }
    if run.totals.cnp_unattributed > 0 {
        items.push(format!(
            "{} charged to no flow",
            count(run.totals.cnp_unattributed)
        ));
    }
    if run.totals.cnp_after_nak > 0 {
        items.push(format!("{} right after a NAK", count(run.totals.cnp_after_nak)));
    }
    items
}

fn replies(view: &View<'_>) -> Vec<String> {
    let (totals, sums) = (view.totals, view.sums);
    let mut items = Vec::new();
    if totals.acks > 0 {
        items.push(plural(totals.acks, "ACK", "ACKs"));
    }
    if totals.naks > 0 {
        let kinds = [
            ("sequence", sums.nak_sequence),
            ("invalid request", sums.nak_invalid_request),
            ("remote access", sums.nak_remote_access),
            ("remote operational", sums.nak_remote_operational),
            ("other", sums.nak_other),
        ];
        let kinds: Vec<String> = kinds
            .iter()
            .filter(|(_, naks)| *naks > 0)
            .map(|(kind, naks)| format!("{} {kind}", count(*naks)))
            .collect();
        let kinds = if kinds.is_empty() {
            String::new()
        } else {
            format!(" ({})", kinds.join(", "))
        };
        items.push(Ink::Bad.paint(&format!("{}{kinds}", plural(totals.naks, "NAK", "NAKs"))));
    }
    if totals.rnr_naks > 0 {
        items.push(Ink::Bad.paint(&plural(totals.rnr_naks, "RNR NAK", "RNR NAKs")));
    }
    items
}

fn retransmitted(view: &View<'_>) -> Vec<String> {
    let totals = view.totals;
    if totals.retransmitted_packets == 0 {
        return Vec::new();
    }
    let share = percent(totals.retransmitted_packets, totals.roce_packets).unwrap_or_default();
    let packets = plural(totals.retransmitted_packets, "packet", "packets");
    let mut items = vec![
        Ink::Bad.paint(&format!("{packets} ({share} of all)")),
        format!("{} payload", bytes(totals.retransmitted_bytes)),
    ];
    if totals.wasted_bytes > 0 {
        items.push(format!("{} of it wasted", bytes(totals.wasted_bytes)));
    }
    if totals.retransmission_runs > 0 {
        items.push(format!(
            "in {}{}",
            plural(totals.retransmission_runs, "run", "runs"),
            triggers(totals)
        ));
    }
    items
}

/// Causes of the runs: ` (30 by NAK, 2 by timeout)`.
fn triggers(totals: &Totals) -> String {
    let kinds = [
        ("by NAK", totals.runs_nak),
        ("by missing READ responses", totals.runs_implied_nak),
        ("by RNR", totals.runs_rnr),
        ("by timeout", totals.runs_timeout),
        ("unexplained", totals.runs_unknown),
    ];
    let kinds: Vec<String> = kinds
        .iter()
        .filter(|(_, runs)| *runs > 0)
        .map(|(kind, runs)| format!("{} {kind}", count(*runs)))
        .collect();
    if kinds.is_empty() {
        String::new()
    } else {
        format!(" ({})", kinds.join(", "))
    }
}

/// Cut packets cannot be checked: the ICRC ends its packet.
fn icrc(totals: &Totals) -> Vec<String> {
    let left = totals.roce_packets.saturating_sub(totals.icrc_checked);
    if totals.icrc_checked == 0 {
        return vec!["not checkable".to_owned()];
    }
    let mut items = vec![format!("{} checked", count(totals.icrc_checked))];
    let bad = format!("{} bad", count(totals.icrc_bad));
    items.push(if totals.icrc_bad > 0 {
        Ink::Bad.paint(&bad)
    } else {
        bad
    });
    if left > 0 {
        items.push(format!("{} not checkable", count(left)));
    }
    items
}

/// Kinds of events that were absent, named once. A capture point that never sees pause frames says
/// nothing about them.
fn not_seen(totals: &Totals) -> Vec<String> {
    let counts = [
        ("CNP", totals.cnp),
        ("ACK", totals.acks),
        ("NAK", totals.naks),
        ("RNR NAK", totals.rnr_naks),
        ("retransmitted packet", totals.retransmitted_packets),
        ("missing PSN", totals.missing),
        ("missing READ response", totals.response_missing),
        ("pause frame (few capture points see them)", totals.pause_frames),
    ];
    counts
        .iter()
        .filter(|(_, value)| *value == 0)
        .map(|(name, _)| (*name).to_owned())
        .collect()
}
