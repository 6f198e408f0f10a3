// The tables: flows, episodes, events, ends of connections, waits, steps, collectives of merged traces, hops. Columns are those of the dataset, under their names there.

/** Columns of `flows` that are shown first; all are in the copy of a flow's page. */
const FLOW_COLUMNS = [
  ["source", "From"],
  ["destination", "To"],
  ["destination_qpn", "QP"],
  ["service", "Service"],
  ["tap", "Tap"],
  ["first_time", "Begin"],
  ["wire_bytes", "On the wire"],
  ["payload_bytes", "Data"],
  ["packets", "Packets"],
  ["ce_share", "CE share"],
  ["ce", "CE"],
  ["cnp", "CNPs"],
  ["retransmitted_packets", "Retransmitted"],
  ["missing", "Missing"],
  ["network_lost", "Lost"],
  ["lost_downstream", "Lost behind"],
  ["runs_timeout", "Timeouts"],
  ["naks", "NAKs"],
  ["rnr_naks", "RNR NAKs"],
  ["ack_rtt_p50_ns", "ACK p50"],
  ["ack_rtt_max_ns", "ACK max"],
  ["message_time_p50_ns", "Message p50"],
  ["message_time_p99_ns", "Message p99"],
  ["inflight_bytes_max", "In flight"],
  ["dscp", "DSCP"],
  ["recovery", "Recovery"],
  ["vantage", "Vantage"],
  ["comm", "Process"],
  ["flow_id", "Flow"],
];

const grids = {};

/** A column of a table in the page's block. */
function stored(table, described, name, label) {
  const about = model.about(described, name);
  return {
    name,
    label: label ?? name.replaceAll("_", " "),
    about: `${name}: ${about.meaning}`,
    value: (row) => table.value(name, row),
    numeric: ["number", "float", "time"].includes(about.kind),
    text: (value) => inUnit(value, about),
    copied: about.kind === "time" ? (row) => absolute(table.value(name, row)) : undefined,
  };
}

/** A column of rows in the document. */
function listed(rows, described, name, label, more = {}) {
  const about = model.about(described, name),
    isTime = about.kind === "time";
  return {
    name,
    label,
    about: `${name}: ${about.meaning}`,
    numeric: ["number", "float", "time"].includes(about.kind),
    value: (row) => (isTime ? model.time(rows[row][name]) : rows[row][name]),
    text: (value) => inUnit(value, about),
    copied: isTime ? (row) => rows[row][name] : undefined,
    ...more,
  };
}

/** ns since the epoch. */
const absolute = (time) => (time == null ? null : String(model.base + BigInt(time)));

function flowsGrid() {
  const several = model.run.taps.length > 1,
    comm = model.flows.column("comm").some((value) => value != null);
  const has = { tap: several, comm, vantage: model.flows.column("vantage").some((value) => value != null) };
  const columns = FLOW_COLUMNS.filter(([name]) => has[name] ?? true).map(([name, label]) =>
    name !== "ce_share"
      ? stored(model.flows, "flows", name, label)
      : {
          name,
          label,
          about: "ce / data_packets",
          numeric: true,
          text: (value) => (value == null ? "–" : percent(value)),
          value: (row) => {
            const data = model.flows.value("data_packets", row);
            return data ? model.flows.value("ce", row) / data : null;
          },
        },
  );
  const at = (row) => model.flowAt.get(`${model.flows.value("flow_id", row)}/${model.flows.value("tap", row)}`);
  return new Grid({
    id: "flows",
    columns: withValues(columns, model.flows.rows),
    rows: model.flows.rows,
    search: true,
    order: { column: "wire_bytes", down: true },
    open: (row) => look({ flow: at(row).id }),
    only: (row) => isShown(at(row)) && (view.tap == null || at(row).tap === view.tap),
    marked: (row) => !at(row).counted,
  });
}

function episodesGrid() {
  let shown = new Set(timeline.episodes);
  onView(() => {
    shown = new Set(timeline.episodes);
  });
  const rows = model.run.episodes,
    of = (name, label, more) => listed(rows, "episodes", name, label, more);
  const columns = [
    of("kind", "Kind", { color: (row) => theme.kind[rows[row].kind] }),
    of("start_time", "Begin"),
    {
      name: "lasted_ns",
      label: "Lasted",
      numeric: true,
      about: "end_time - start_time",
      value: (row) => model.time(rows[row].end_time) - model.time(rows[row].start_time),
      text: duration,
    },
    of("destination", "To"),
    of("flows", "Flows"),
    of("senders_max", "Senders"),
    of("ce", "CE"),
    of("ce_share_peak", "CE peak", { text: percent }),
    of("cnp", "CNPs"),
    of("lost", "Lost"),
    of("retransmitted_bytes", "Retransmitted"),
    of("rnr_naks", "RNR NAKs"),
    of("pause_ns", "Paused"),
    of("jain", "Jain"),
    of("cause", "Cause", { wide: true }),
    of("confidence", "Confidence"),
    of("aggressors", "Aggressors", { wide: true }),
    of("victims", "Victims", { wide: true }),
    of("tap", "Tap"),
  ];
  return new Grid({
    id: "episodes",
    columns: withValues(columns, rows.length),
    rows: rows.length,
    search: true,
    order: { column: "start_time", down: false },
    only: (row) => shown.has(rows[row]),
    open: (row) => {
      look({ flows: new Set(rows[row].flow_ids.split(" ").filter((id) => model.flowById.has(id))) });
      lookAtSpan(model.time(rows[row].start_time), model.time(rows[row].end_time));
      $("timeline").scrollIntoView({ behavior: reduced() ? "auto" : "smooth" });
    },
  });
}

function eventsGrid(id = "events", rows = null, height = 420) {
  const table = model.events,
    place = (row) => (rows ? rows[row] : row),
    shift = (column) => ({
      ...column,
      value: (row) => table.value(column.name, place(row)),
      copied: column.copied && ((row) => column.copied(place(row))),
    });
  const flow = {
    name: "flow",
    label: "Flow",
    wide: true,
    about: model.about("events", "flow_id").meaning,
    value: (row) => {
      const id = table.value("flow_id", place(row));
      return id && (flowName(model.flowById.get(id)) || id);
    },
  };
  const value = {
    ...shift(stored(table, "events", "value", "Value")),
    text: (value, row) =>
      value == null
        ? "–"
        : /^(stall|pause_interval|rnr_nak)$/.test(table.value("kind", place(row)))
          ? duration(value)
          : count(value),
  };
  const time = shift(stored(table, "events", "time", "Time"));
  // Congestion notifications are counted by bin: their time is that of the bin.
  const exact = time.text;
  time.text = (value, row) =>
    table.value("kind", place(row)) === "cnp" && value != null
      ? `${exact(value, row)} + ${duration(Number(model.run.run.bin_ns))}`
      : exact(value, row);
  const columns = [
    time,
    shift(stored(table, "events", "kind", "What")),
    ...(rows ? [] : [flow]),
    shift(stored(table, "events", "psn", "PSN")),
    value,
    { ...shift(stored(table, "events", "detail", "Detail")), wide: true },
    shift(stored(table, "events", "source", "Source")),
    shift(stored(table, "events", "tap", "Tap")),
  ];
  return new Grid({
    id,
    columns,
    rows: rows ? rows.length : table.rows,
    search: true,
    height,
    only: rows
      ? null
      : (row) => {
          const time = table.value("time", row),
            flow = table.value("flow_id", row);
          if (time < view.from || time > view.to || (view.tap != null && table.value("tap", row) !== view.tap))
            return false;
          if (!isFiltered()) return true;
          return flow != null && model.flowById.has(flow) && isShown(model.flowById.get(flow));
        },
    open: (row) => {
      const time = table.value("time", place(row));
      lookAtSpan(time, time + model.head.width);
      point(time);
      if (!rows) $("timeline").scrollIntoView({ behavior: reduced() ? "auto" : "smooth" });
    },
  });
}

function stepsGrid() {
  const rows = model.run.steps,
    of = (name, label, more) => listed(rows, "steps", name, label, more);
  return new Grid({
    id: "steps",
    rows: rows.length,
    search: true,
    columns: [
      of("step", "Step"),
      of("host_a", "Host"),
      of("host_b", "Host"),
      of("start_time", "Begin"),
      of("duration_ns", "Lasted"),
      of("payload_bytes", "Data"),
      of("period_ns", "Period"),
      of("spread_ns", "Spread"),
      of("outlier", "Outlier"),
      of("episode", "Episode"),
      of("logged_ns", "Logged"),
      of("tap", "Tap"),
    ],
    marked: (row) => rows[row].outlier,
    open: (row) => {
      lookAtSpan(model.time(rows[row].start_time), model.time(rows[row].end_time));
      $("timeline").scrollIntoView({ behavior: reduced() ? "auto" : "smooth" });
    },
  });
}

function hopsGrid() {
  const rows = model.run.hops,
    of = (name, label) => listed(rows, "hops", name, label);
  return new Grid({
    id: "hops",
    rows: rows.length,
    search: true,
    only: (row) => {
      const flow = model.flowById.get(rows[row].flow_id);
      return !flow || isShown(flow);
    },
    columns: [
      {
        name: "flow",
        label: "Flow",
        wide: true,
        value: (row) => flowName(model.flowById.get(rows[row].flow_id)) || rows[row].flow_id,
      },
      of("from_tap", "From tap"),
      of("to_tap", "To tap"),
      of("matched", "Matched"),
      of("marked", "Marked between"),
      of("lost", "Lost between"),
      of("not_captured", "Not captured"),
      of("delay_min_ns", "Delay min"),
      of("delay_p50_ns", "p50"),
      of("delay_p99_ns", "p99"),
      of("delay_max_ns", "max"),
    ],
  });
}

function endsGrid() {
  const rows = model.run.ends,
    of = (name, label, more) => listed(rows, "ends", name, label, more);
  return new Grid({
    id: "ends",
    rows: rows.length,
    search: true,
    columns: [
      of("time", "Time"),
      of("source", "Source"),
      of("destination", "Destination"),
      of("destination_qpn", "QP"),
      of("outcome", "End"),
      of("refusal", "Refusal"),
      of("request_psn", "PSN"),
      of("repeats", "Repeats"),
      of("repeat_min_ns", "Apart"),
      of("timeout_max", "ACK timeout"),
      of("waited_ns", "Waited"),
      of("last_answer_time", "Last answer"),
      of("peer_last_time", "Host's last packet"),
      of("confidence", "Confidence"),
    ],
    open: (row) => {
      const end = model.time(rows[row].time);
      lookAtSpan(end - rows[row].waited_ns, end);
      $("timeline").scrollIntoView({ behavior: reduced() ? "auto" : "smooth" });
    },
  });
}

function collectivesGrid() {
  const rows = model.run.collectives,
    of = (name, label, more) => listed(rows, "collectives", name, label, more);
  return new Grid({
    id: "collectives",
    rows: rows.length,
    search: true,
    columns: [
      of("shape", "Shape"),
      of("evidence", "Evidence"),
      of("communicator", "Communicator"),
      of("channel", "Channel"),
      of("rail", "Rail"),
      of("members", "Members"),
      of("ranks", "Ranks"),
      of("hosts", "Hosts"),
      of("both_directions", "Both ways"),
      of("payload_bytes", "Data"),
      of("spread", "Spread"),
      of("start_time", "Begin"),
      of("end_time", "End"),
      of("confidence", "Confidence"),
    ],
    open: (row) => {
      if (rows[row].start_time == null) return;
      lookAtSpan(model.time(rows[row].start_time), model.time(rows[row].end_time));
      $("timeline").scrollIntoView({ behavior: reduced() ? "auto" : "smooth" });
    },
  });
}

function creditsGrid() {
  const rows = model.run.credits,
    of = (name, label, more) => listed(rows, "credits", name, label, more);
  return new Grid({
    id: "credits",
    rows: rows.length,
    search: true,
    columns: [
      of("sender", "Sender"),
      of("sender_rank", "Rank"),
      of("receiver", "Receiver"),
      of("receiver_rank", "Rank"),
      of("messages", "Messages"),
      of("left_out", "Left out"),
      of("bytes", "Data"),
      of("transfer_ns", "On their way"),
      of("credit_to_data_p50_ns", "Credit to data, median"),
      of("credit_to_data_p99_ns", "99th percentile"),
      of("cts_delay_p50_ns", "Credit's way, median"),
      of("cts_delay_p99_ns", "99th percentile"),
      of("depth", "Depth"),
      of("credits_unused", "Unused credits"),
      of("outstanding_bytes", "Outstanding"),
      of("retransmitted_packets", "Retransmitted"),
      of("layout", "NCCL"),
      of("last_ack_time", "Last ACK"),
      of("last_time", "Silent since"),
    ],
    open: (row) => {
      const end = model.time(rows[row].last_time);
      lookAtSpan(end - 1e6, end);
      $("timeline").scrollIntoView({ behavior: reduced() ? "auto" : "smooth" });
    },
  });
}

function collectiveWaitsGrid() {
  const rows = model.run.collective_waits,
    of = (name, label, more) => listed(rows, "collective_waits", name, label, more);
  return new Grid({
    id: "collective_waits",
    rows: rows.length,
    search: true,
    columns: [
      of("collective", "Collective"),
      of("rank", "Rank"),
      of("address", "Address"),
      of("start_time", "Start"),
      of("late_start_ns", "Late start"),
      of("carried_over_ns", "Carried over"),
      of("compute_ns", "Before"),
      of("own_ns", "Own time"),
      of("waits_input_ns", "Waits for input"),
      of("waits_credit_ns", "Waits for credits"),
      of("holds_buffers_ns", "Holds buffers"),
      of("network_ns", "Network"),
      of("on_path_ns", "On the path"),
      of("waits_for_rank", "Waits for rank"),
      of("waits_for_address", "Waits for address"),
      of("reason", "Reason"),
      of("is_root", "Root"),
      of("confidence", "Confidence"),
    ],
    open: (row) => {
      lookAtSpan(model.time(rows[row].start_time), model.time(rows[row].end_time));
      $("timeline").scrollIntoView({ behavior: reduced() ? "auto" : "smooth" });
    },
  });
}

function waitsGrid() {
  const rows = model.run.waits,
    of = (name, label, more) => listed(rows, "waits", name, label, more);
  const columns = [
    of("start_time", "Begin"),
    of("end_time", "End"),
    of("node", "Node"),
    of("port", "Port"),
    of("priority", "Priority"),
    of("waits_for_node", "Waits for"),
    of("waits_for_port", "Port"),
    of("root_kind", "Root"),
    {
      name: "flow",
      label: "Flow",
      wide: true,
      about: model.about("waits", "victim_flow").meaning,
      value: (row) => rows[row].victim_flow && (flowName(model.flowById.get(rows[row].victim_flow)) || rows[row].victim_flow),
    },
    of("share", "Share", { text: (value) => (value == null ? "–" : percent(value)) }),
    of("paused_ns", "Paused"),
    of("resolution_ns", "Resolution"),
    of("confidence", "Confidence"),
  ];
  return new Grid({
    id: "waits",
    columns,
    rows: rows.length,
    search: true,
    open: (row) => {
      lookAtSpan(model.time(rows[row].start_time), model.time(rows[row].end_time));
      $("timeline").scrollIntoView({ behavior: reduced() ? "auto" : "smooth" });
    },
  });
}

function rankStatesGrid() {
  const rows = model.run.rank_states,
    of = (name, label, more) => listed(rows, "rank_states", name, label, more);
  return new Grid({
    id: "rank_states",
    rows: rows.length,
    search: true,
    columns: [
      of("rank", "Rank"),
      of("address", "Address"),
      of("hostname", "Host"),
      of("state", "State"),
      of("operation", "Operation"),
      of("sequence", "Number"),
      of("median_ns", "Median"),
      of("communicator", "Communicator"),
      of("trace", "Document"),
    ],
    marked: (row) => ["missing", "failed", "dead"].includes(rows[row].state),
  });
}

function collectiveCallsGrid() {
  const rows = model.run.collective_calls,
    of = (name, label, more) => listed(rows, "collective_calls", name, label, more);
  return new Grid({
    id: "collective_calls",
    rows: rows.length,
    search: true,
    columns: [
      of("start_time", "Begin"),
      of("rank", "Rank"),
      of("kind", "Collective"),
      of("message_bytes", "Message"),
      of("communicator", "Communicator"),
      of("duration_ns", "Took"),
      of("median_ns", "Median"),
      of("is_slowed", "Slowed"),
      of("episode", "Episode"),
      of("network_bytes", "Data"),
      of("ce", "CE"),
      of("cnp", "CNPs"),
      of("retransmitted_packets", "Retransmitted"),
      of("slowest", "Slowest connection", { wide: true }),
      of("slowest_rate", "Its rate"),
      of("trace", "Trace"),
    ],
    marked: (row) => rows[row].is_slowed,
    open: (row) => {
      lookAtSpan(model.time(rows[row].start_time), model.time(rows[row].end_time));
      $("timeline").scrollIntoView({ behavior: reduced() ? "auto" : "smooth" });
    },
  });
}

/** The tabs: those with rows. */
const TABS = [
  ["flows", "Flows", () => model.flows.rows, flowsGrid],
  ["episodes", "Episodes", () => model.run.episodes.length, episodesGrid],
  ["events", "Events", () => model.events.rows, eventsGrid],
  ["collectives", "Collectives", () => model.run.collectives?.length ?? 0, collectivesGrid],
  ["ends", "Failed connections", () => model.run.ends?.length ?? 0, endsGrid],
  ["credits", "Credits", () => model.run.credits?.length ?? 0, creditsGrid],
  ["collective_waits", "Who is late", () => model.run.collective_waits?.length ?? 0, collectiveWaitsGrid],
  ["mrc_connections", "Multipath", () => model.run.mrc_connections?.length ?? 0, mrcConnectionsGrid],
  ["mrc_paths", "Paths", () => model.run.mrc_paths?.length ?? 0, mrcPathsGrid],
  ["uet_traffic", "UET", () => model.run.uet_traffic?.length ?? 0, uetTrafficGrid],
  ["hops_inband", "Telemetry", () => model.run.hops_inband?.length ?? 0, inbandGrid],
  ["waits", "Waits", () => model.run.waits?.length ?? 0, waitsGrid],
  ["steps", "Training steps", () => model.run.steps.length, stepsGrid],
  ["collective_calls", "Collective calls", () => model.run.collective_calls?.length ?? 0, collectiveCallsGrid],
  ["rank_states", "Ranks", () => model.run.rank_states?.length ?? 0, rankStatesGrid],
  ["hops", "Between taps", () => model.run.hops.length, hopsGrid],
];

function buildTables() {
  const tabs = TABS.filter(([, , rows], place) => place < 3 || rows() > 0);
  const [id, , rows, make] = tabs.find(([id]) => id === view.tab) ?? tabs[0];
  const buttons = tabs.map(([name, label, rows]) =>
    el(
      "button",
      {
        type: "button",
        role: "tab",
        "data-tab": name,
        "aria-selected": String(name === id),
        tabIndex: name === id ? 0 : -1,
        onclick: () => look({ tab: name }),
      },
      label,
      el("span", { class: "quiet" }, ` ${count(rows())}`),
    ),
  );
  $("table-tabs").replaceChildren(...buttons);
  if (!rows()) {
    $("table-place").replaceChildren(
      el(
        "p",
        { class: "quiet" },
        { flows: "No flow was seen.", episodes: "Nothing was congested.", events: "Nothing happened." }[id],
      ),
    );
    return;
  }
  const notes = [];
  if (id === "flows" || id === "episodes") notes.push("Columns that are 0 or absent in all rows are left out.");
  if (id === "flows" && model.head.flows_seen > model.flows.rows)
    notes.push(
      `The ${count(model.flows.rows)} rows with the most signs of congestion, then the most bytes, of ${count(model.head.flows_seen)}: the others are in the dataset.`,
    );
  if (id === "events" && model.head.events_seen > model.events.rows)
    notes.push(
      `${count(model.events.rows)} of ${count(model.head.events_seen)} events: of flows with very many, every second, fourth, … is kept. All are in the dataset.`,
    );
  if (id === "events") notes.push("Events of the stretch of time that the timeline shows.");
  if (id === "flows" && [...model.flowAt.values()].some((flow) => !flow.counted))
    notes.push("Rows in grey are what another tap counts.");
  grids[id] ??= make();
  $("table-place").replaceChildren(
    ...(notes.length ? [el("p", { class: "quiet" }, notes.join(" "))] : []),
    grids[id].element,
  );
  grids[id].pick();
}

/** Arrow keys go from tab to tab. */
function listenTables() {
  $("table-tabs").addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const all = [...$("table-tabs").children],
      now = all.findIndex((tab) => tab.getAttribute("aria-selected") === "true");
    look({ tab: all[(now + by + all.length) % all.length].dataset.tab });
    $("table-tabs").querySelector("[aria-selected=true]").focus();
  });
}
