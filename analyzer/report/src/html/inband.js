// The table of hops that switches wrote into packets.

function inbandGrid() {
  const rows = model.run.hops_inband,
    of = (name, label, more) => listed(rows, "hops_inband", name, label, more);
  return new Grid({
    id: "hops_inband",
    rows: rows.length,
    search: true,
    columns: [
      of("flow_id", "Flow"),
      of("kind", "Telemetry"),
      of("hop", "Hop"),
      of("device", "Device"),
      of("queue", "Queue"),
      of("egress_port", "Port"),
      of("packets", "Packets"),
      of("congested", "Congested"),
      of("queued_bytes_p50", "Queued p50"),
      of("queued_bytes_max", "Queued max"),
      of("queued_buffers_max", "Buffers max"),
      of("residence_p50_ns", "Delay p50"),
      of("residence_max_ns", "Delay max"),
      of("signal", "Signal"),
      of("value_max", "Value max"),
    ],
    open: (row) => {
      const at = rows[row].worst_time ?? rows[row].first_time,
        time = model.time(at);
      lookAtSpan(time - 1e6, time + 1e6);
      $("timeline").scrollIntoView({ behavior: reduced() ? "auto" : "smooth" });
    },
  });
}
