// The tables of MRC and UET: connections, paths, and packets of UET.

function mrcConnectionsGrid() {
  const rows = model.run.mrc_connections,
    of = (name, label, more) => listed(rows, "mrc_connections", name, label, more);
  return new Grid({
    id: "mrc_connections",
    rows: rows.length,
    search: true,
    columns: [
      of("connection", "Connection"),
      of("transport", "Transport"),
      of("requestor", "From"),
      of("responder", "To"),
      of("responder_qpn", "QP"),
      of("requestor_pdc", "PDC"),
      of("job", "Job"),
      of("payload_bytes", "Data"),
      of("retransmitted_packets", "Retransmitted"),
      of("lost", "Lost"),
      of("undecided", "Undecided"),
      of("trimmed", "Trimmed"),
      of("trimmed_lasthop", "Trimmed at last hop"),
      of("spurious", "Needless"),
      of("rtx_timeout", "Timeouts"),
      of("sacks_skip", "Skips"),
      of("penalty_sacks", "Penalties"),
      of("out_of_order_max", "Out of order"),
      of("messages_complete", "Messages"),
      of("completion_p50_ns", "Message p50"),
      of("completion_p99_ns", "Message p99"),
      of("confidence", "Confidence"),
    ],
    open: (row) => {
      lookAtSpan(model.time(rows[row].first_time), model.time(rows[row].last_time));
      $("timeline").scrollIntoView({ behavior: reduced() ? "auto" : "smooth" });
    },
  });
}

function mrcPathsGrid() {
  const rows = model.run.mrc_paths,
    of = (name, label, more) => listed(rows, "mrc_paths", name, label, more);
  return new Grid({
    id: "mrc_paths",
    rows: rows.length,
    search: true,
    columns: [
      of("connection", "Connection"),
      of("path", "Path"),
      of("ev", "Entropy"),
      of("plane", "Plane"),
      of("srv6", "SRv6"),
      of("sent", "Sent"),
      of("arrived", "Arrived"),
      of("rtx", "Retransmitted"),
      of("lost", "Lost"),
      of("trimmed", "Trimmed"),
      of("trimmed_lasthop", "Trimmed at last hop"),
      of("marked", "Marked"),
      of("rtt_p50_ns", "RTT p50"),
      of("rtt_p99_ns", "RTT p99"),
      of("probes_unanswered", "Probes unanswered"),
      of("state", "State"),
    ],
    open: (row) => {
      const at = rows[row].first_loss_time ?? rows[row].last_sent_time;
      if (at == null) return;
      const time = model.time(at);
      lookAtSpan(time - 1e6, time + 1e6);
      $("timeline").scrollIntoView({ behavior: reduced() ? "auto" : "smooth" });
    },
  });
}

function uetTrafficGrid() {
  const rows = model.run.uet_traffic,
    of = (name, label, more) => listed(rows, "uet_traffic", name, label, more);
  return new Grid({
    id: "uet_traffic",
    rows: rows.length,
    search: true,
    columns: [
      of("source", "From"),
      of("destination", "To"),
      of("job", "Job"),
      of("secure_domain", "Secure domain"),
      of("packets", "Packets"),
      of("payload_bytes", "Data"),
      of("messages", "Messages"),
      of("unordered", "RUD"),
      of("ordered", "ROD"),
      of("idempotent", "RUDI"),
      of("datagrams", "UUD"),
      of("acks", "ACKs"),
      of("nacks", "NACKs"),
      of("encrypted", "Encrypted"),
      of("errors", "Errors"),
      of("ce", "CE"),
      of("trimmed", "Trimmed"),
      of("operations", "Operations"),
    ],
    open: (row) => {
      lookAtSpan(model.time(rows[row].first_time), model.time(rows[row].last_time));
      $("timeline").scrollIntoView({ behavior: reduced() ? "auto" : "smooth" });
    },
  });
}
