// How it was captured, what is not known, with which options, and what every number means.

function buildAbout() {
  const { run, taps, vantages, totals } = model.run;
  const list = (rows) =>
    el(
      "dl",
      { class: "numbers wide" },
      rows
        .filter(([, value]) => value != null && value !== "")
        .map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))),
    );
  const inputs = run.inputs.map((input) =>
    el(
      "article",
      { class: "card" },
      el("h4", {}, input.input),
      list([
        ["format", input.format],
        ["size", input.bytes == null ? null : bytes(input.bytes)],
        ["frames", count(input.frames)],
        ["begin", input.first_time && model.date(model.time(input.first_time), 6)],
        ["end", input.last_time && model.date(model.time(input.last_time), 6)],
        ["SHA-256", input.sha256],
        ["its last record is cut", input.truncated ? "yes" : null],
        ["ended early", input.error],
        ["to know", input.warnings.join("; ")],
      ]),
    ),
  );
  const tapCards = taps.map((tap) =>
    el(
      "article",
      { class: "card", "data-tap": String(tap.tap) },
      el("h4", {}, `Tap ${tapName(tap)}`),
      list([
        ["where it stands", tap.vantage ?? "not known"],
        ["frames", count(tap.frames)],
        ["RoCE packets", count(tap.roce_packets)],
        ["frames lost by the capture", count(tap.frames_lost)],
        ["frames lost by the mirror", tap.mirror ? count(tap.mirror_lost) : null],
        ["exact copies dropped", tap.copies ? count(tap.copies) : null],
        ["frames cut by the snaplen", count(tap.cut_frames)],
        [
          "stamps out of order",
          tap.out_of_order ? `${count(tap.out_of_order)}, by up to ${duration(tap.out_of_order_max_ns)}` : "none",
        ],
        ["resolution of stamps", duration(tap.stamp_quantum_ns)],
        [
          "clock corrected by",
          tap.clock_offset_ns
            ? `${duration(tap.clock_offset_ns)}${tap.clock_uncertainty_ns == null ? "" : `, give or take ${duration(tap.clock_uncertainty_ns)}`}`
            : null,
        ],
        ["packets that other taps saw", tap.matched_packets ? count(tap.matched_packets) : null],
      ]),
    ),
  );
  $("about-place").replaceChildren(
    el("h3", {}, "What is not known, or not all there"),
    el(
      "ul",
      { id: "unknown" },
      unknowns().map((text) => el("li", {}, text)),
    ),
    el("h3", {}, "Captures"),
    el("div", { class: "cards" }, inputs),
    el("h3", {}, "Points of observation"),
    el("div", { class: "cards" }, tapCards),
    vantages.length
      ? el(
          "details",
          { id: "vantages" },
          el("summary", {}, `Where the taps stand as seen from ${count(vantages.length)} hosts`),
          lazyGrid(
            () =>
              new Grid({
                id: "vantages",
                rows: vantages.length,
                height: 300,
                columns: [
                  ["tap", "Tap"],
                  ["address", "Host"],
                  ["vantage", "Vantage"],
                  ["flows_sent", "Flows sent"],
                  ["flows_received", "Flows received"],
                  ["evidence", "Evidence"],
                ].map(([name, label]) =>
                  listed(vantages, "vantages", name, label, name === "evidence" ? { wide: true } : {}),
                ),
              }),
          ),
        )
      : "",
    el("h3", {}, "The run"),
    list([
      ["roce-analyze", run.version],
      [
        "analysed",
        `${model.date(model.time(run.started), 0)}${run.elapsed_ns ? `, in ${duration(run.elapsed_ns)}` : ""}`,
      ],
      ["schema", String(model.run.schema_version)],
    ]),
    list(
      Object.entries(run.options).map(([name, value]) => [
        name,
        /_ns$/.test(name) ? `${value} (${duration(Number(value))})` : value,
      ]),
    ),
    el(
      "details",
      { id: "totals" },
      el("summary", {}, "All counts of the run"),
      lazyGrid(
        () =>
          new Grid({
            id: "totals",
            rows: model.head.totals.length,
            height: 400,
            search: true,
            columns: [
              { name: "count", label: "Count", value: (row) => model.head.totals[row][0] },
              {
                name: "value",
                label: "Value",
                numeric: true,
                value: (row) => totals[model.head.totals[row][0]],
                text: count,
              },
              { name: "meaning", label: "Meaning", wide: true, value: (row) => model.head.totals[row][1] },
            ],
          }),
      ),
    ),
    definitions(),
  );
}

/** A grid that is made when its part is opened. */
function lazyGrid(make) {
  const place = el("div");
  queueMicrotask(() =>
    place.parentElement.addEventListener("toggle", (event) => {
      if (event.target.open && !place.firstChild) place.append(make().element);
    }),
  );
  return place;
}

/** What limits the verdicts. */
function unknowns() {
  const { run, taps, totals } = model.run,
    notes = [];
  const options = run.options,
    flows = [...model.flowAt.values()];
  const sum = (name) => taps.reduce((all, tap) => all + tap[name], 0);
  // Both directions of MRC are in `mrc_connections`.
  const alone = (flow) => flowValue(flow, "peer_flow_id") == null && flowValue(flow, "service") !== "MRC";
  const unpaired = flows.filter(alone).length;
  if (sum("frames_lost") || sum("mirror_lost"))
    notes.push(
      `The captures lost ${count(sum("frames_lost") + sum("mirror_lost"))} frames: small counts of losses may be theirs.`,
    );
  if (totals.capture_lost || totals.response_capture_lost)
    notes.push(
      `The capture missed ${many(totals.capture_lost + totals.response_capture_lost, "packet")}: acknowledged and never retransmitted, although no tap saw them.`,
    );
  if (totals.undecodable)
    notes.push(
      `${count(totals.undecodable)} frames lead to RoCE but could not be decoded${totals.cut_by_snaplen ? `; of ${count(totals.cut_by_snaplen)} a header was cut by the snaplen` : ""}.`,
    );
  if (totals.fragments) notes.push(`What ${many(totals.fragments, "fragment")} of UDP datagrams carry is not known.`);
  if (flows.length && taps.every((tap) => tap.vantage == null))
    notes.push("Nothing in the traffic shows where the taps stand: whether senders react to CNPs cannot be judged.");
  if (unpaired)
    notes.push(
      `Of ${many(flows.length, "flow")} the other direction of ${count(unpaired)} is not known: ACK times, bytes in flight and some losses are absent.`,
    );
  if (options.link_rate_bps == null)
    notes.push("Without --link-rate there are no pause times per flow and no rate expected by DCQCN.");
  if (options.flow)
    notes.push(`Only packets for which “${options.flow}” holds: ${count(totals.filtered)} others are left out.`);
  if (totals.evicted) notes.push(`Closed early for --max-flows: ${many(totals.evicted, "flow")}.`);
  if (totals.cnp_unattributed)
    notes.push(`Of ${many(totals.cnp_unattributed, "CNP")} nothing says which flow they slow.`);
  if (model.events.column("source").every((source) => source === "capture"))
    notes.push("No host took part: queue pairs, timers and drops inside of hosts are not known.");
  if (model.head.flows_seen > model.flows.rows)
    notes.push(
      `This page holds ${count(model.flows.rows)} of ${count(model.head.flows_seen)} rows of flows, and time series of ${count(model.series.length)} flows. All totals are of the whole run.`,
    );
  else if (flows.length > model.series.length)
    notes.push(
      `This page holds time series of ${count(model.series.length)} of ${count(flows.length)} flows: of the others only their sum is drawn.`,
    );
  if (model.head.events_seen > model.events.rows)
    notes.push(`This page holds ${count(model.events.rows)} of ${count(model.head.events_seen)} events.`);
  const datasets = new Set(model.run.findings.map((finding) => finding.evidence.dataset).filter(Boolean));
  if (datasets.size)
    notes.push(
      `This page joins ${count(datasets.size)} datasets. Verdicts and episodes were concluded for each of them alone, and say so.`,
    );
  return notes.length ? notes : ["Nothing is missing that this page knows of."];
}

/** What every number means: the descriptions of the tables' columns. */
function definitions() {
  const box = el("details", { id: "definitions" }, el("summary", {}, "What every number means"));
  box.addEventListener("toggle", () => {
    if (box.children.length > 1) return;
    const rows = [...model.described.values()].flatMap((table) =>
      table.columns.map((column) => ({ table: table.name, ...column })),
    );
    box.append(
      new Grid({
        id: "definitions",
        rows: rows.length,
        height: 420,
        search: true,
        columns: [
          { name: "table", label: "Table", value: (row) => rows[row].table },
          { name: "column", label: "Column", value: (row) => rows[row].name },
          { name: "unit", label: "Unit", value: (row) => rows[row].unit },
          { name: "meaning", label: "Meaning", wide: true, value: (row) => rows[row].meaning },
        ],
      }).element,
    );
  });
  return box;
}
