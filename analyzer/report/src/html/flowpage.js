// The page of one flow: who it is, its numbers, its PSNs over time, its events.

/** Groups of columns of `flows`, as they are read. */
const GROUPS = [
  [
    "Who",
    /^(source|destination|destination_qpn|source_qpn|service|carrier|vlan|vni|encapsulation|peer_flow_id|pairing|pairing_matches|pid|comm|cgroup|rank|peer_rank|communicator|channel|vantage|counted|tap|epoch|flow_id|dscp|dscp_values|pcp|source_port|source_ports|multipath|path_mtu|recovery)$/,
  ],
  [
    "Traffic",
    /^(first_time|last_time|packets|wire_bytes|payload_bytes|data_packets|messages|message_bytes.*|read_requests|atomics|acks|duplicate_acks|inflight_bytes_max)$/,
  ],
  ["Congestion", /^(not_ect|ect0|ect1|ce|cnp.*|ce_to_cnp.*|dcqcn_deviation|pause_ns)$/],
  [
    "Losses and recovery",
    /^(missing|reordered|network_lost|capture_lost|ambiguous|unresolved|lost_downstream|late|stale|response_.*|retransmitted_.*|wasted_bytes|retransmission_runs|runs_.*|nak.*|rnr_naks|first_psn|last_psn)$/,
  ],
  ["Times", /^(ack_.*|message_time.*|read_time.*|atomic_time.*|time_.*_ns)$/],
  ["The rest", /./],
];

/** PSNs are 24 bits: the value nearest to `near` that is the same modulo 2^24. */
const unwrap = (psn, near) => psn + Math.round((near - psn) / 2 ** 24) * 2 ** 24;

/** Events with PSNs of a flow's requests: its own, and the NAKs that the other direction carries. */
function psnEvents(flow, peer) {
  const { events } = model,
    isNak = /^(nak|rnr_nak)$/;
  return eventsOf(
    (kind, row) =>
      events.value("psn", row) != null &&
      events.value("tap", row) === flow.tap &&
      events.value("flow_id", row) === (isNak.test(kind) ? peer?.id : flow.id) &&
      events.value("flow_id", row) != null,
  );
}

/**
 * PSNs of a flow over time. Exact are the first and the last one, and those of gaps, retransmissions and NAKs; between them the line
 * follows the data packets of each slot.
 */
function psnsOf(flow, peer) {
  const { events } = model,
    rows = psnEvents(flow, peer);
  const epochs = flow.rows
    .map((row) =>
      Object.fromEntries(
        ["epoch", "first_time", "last_time", "first_psn", "last_psn"].map((name) => [
          name,
          model.flows.value(name, row),
        ]),
      ),
    )
    .filter((epoch) => epoch.first_psn != null)
    .sort((a, b) => a.first_time - b.first_time);
  const data = flow.series?.get("data_packets") ?? EMPTY;
  const lines = [],
    marks = [];
  epochs.forEach((epoch, number) => {
    const until = epochs[number + 1]?.first_time ?? Infinity;
    const own = rows.filter(
      (row) =>
        events.value("time", row) >= (number ? epoch.first_time : -Infinity) && events.value("time", row) < until,
    );
    // What is certain: moments at which the highest PSN is known.
    let highest = epoch.first_psn;
    const certain = [{ time: epoch.first_time, psn: highest }];
    for (const row of own) {
      const kind = events.value("kind", row),
        time = events.value("time", row),
        value = events.value("value", row) ?? 1;
      const psn = unwrap(events.value("psn", row), highest);
      if (kind === "gap" && psn >= highest) {
        certain.push({ time, psn: psn - 1 }, { time, psn: psn + value });
        highest = psn + value;
      }
      const mark = { time, psn, kind, value, detail: events.value("detail", row) };
      if (["gap", "retransmission_run", "nak", "rnr_nak", "lost_downstream", "late", "stall", "hole"].includes(kind))
        marks.push(mark);
    }
    certain.push({
      time: Math.max(epoch.last_time, certain.at(-1).time),
      psn: Math.max(highest, unwrap(epoch.last_psn, highest)),
    });
    // Between: by the data packets of the slots.
    const line = [];
    for (let i = 0; i + 1 < certain.length; i++) {
      const a = certain[i],
        b = certain[i + 1];
      line.push(a);
      if (b.time - a.time < model.head.width || b.psn - a.psn < 2) continue;
      const [from, to] = [a.time, b.time].map((time) => Math.floor((time - model.head.begin) / model.head.width));
      let whole = 0,
        sum = 0;
      for (let j = 0; j < data.count; j++) if (data.slots[j] >= from && data.slots[j] <= to) whole += data.values[j];
      for (let j = 0; j < data.count && whole; j++) {
        if (data.slots[j] < from || data.slots[j] > to) continue;
        const begin = Math.max(a.time, slotBegin(data.slots[j]));
        if (begin > a.time) line.push({ time: begin, psn: a.psn + ((b.psn - a.psn) * sum) / whole });
        sum += data.values[j];
        line.push({
          time: Math.min(b.time, slotBegin(data.slots[j] + 1)),
          psn: a.psn + ((b.psn - a.psn) * sum) / whole,
        });
      }
    }
    line.push(certain.at(-1));
    lines.push(line);
  });
  return { lines, marks };
}

const MARKS = {
  gap: ["missing", () => theme.kind.loss],
  retransmission_run: ["retransmitted", () => theme.flows[6]],
  nak: ["NAK", () => theme.kind.ecn],
  rnr_nak: ["RNR NAK", () => theme.kind.rnr],
  lost_downstream: ["lost behind the tap", () => theme.kind.pause],
  late: ["came late", () => theme.kind.incast],
  stall: ["silence ends", () => theme.kind.stall],
  hole: ["what became of it", null],
};

/** Draws PSNs over the time that is looked at; gives what was drawn. */
function drawPsns(canvas, psns, width, height) {
  setRoom(width);
  const context = fit(canvas, width, height);
  const inside = (point) => point.time >= view.from && point.time <= view.to;
  let low = Infinity,
    high = -Infinity;
  const grow = (psn) => {
    low = Math.min(low, psn);
    high = Math.max(high, psn);
  };
  for (const line of psns.lines)
    line.forEach((point, i) => {
      if (inside(point) || (i && line[i - 1].time < view.from && point.time > view.to)) {
        grow(point.psn);
        if (i) grow(line[i - 1].psn);
      }
    });
  const marks = psns.marks.filter((mark) => inside(mark) && mark.kind !== "hole");
  marks.forEach((mark) => {
    grow(mark.psn);
    if (mark.kind === "retransmission_run" || mark.kind === "gap") grow(mark.psn + mark.value);
  });
  if (!(high >= low)) [low, high] = [0, 1];
  const room = Math.max(1, (high - low) * 0.06),
    top = 6,
    bottom = height - 24;
  const y = (psn) => bottom - ((psn - low + room) / (high - low + 2 * room)) * (bottom - top),
    x = (time) => xOf(time, width);
  const step = Math.max(1, Math.round(niceStep(high - low + 2 * room, 5)));
  context.strokeStyle = theme.grid;
  context.beginPath();
  for (let psn = Math.ceil((low - room) / step) * step; psn <= high + room; psn += step) {
    context.moveTo(LEFT, Math.round(y(psn)) + 0.5);
    context.lineTo(width - RIGHT, Math.round(y(psn)) + 0.5);
  }
  for (const time of timeTicks(width)) {
    context.moveTo(Math.round(x(time)) + 0.5, top);
    context.lineTo(Math.round(x(time)) + 0.5, bottom);
  }
  context.stroke();
  context.fillStyle = theme.quiet;
  context.textAlign = "right";
  for (let psn = Math.ceil((low - room) / step) * step; psn <= high + room; psn += step)
    context.fillText(String(((psn % 2 ** 24) + 2 ** 24) % 2 ** 24), LEFT - 6, y(psn));
  context.save();
  context.translate(0, bottom);
  drawTime(context, width, 24);
  context.restore();
  context.save();
  context.beginPath();
  context.rect(LEFT, 0, width - LEFT - RIGHT, bottom);
  context.clip();
  context.strokeStyle = theme.flows[0];
  context.lineWidth = 1.6;
  for (const line of psns.lines) {
    context.beginPath();
    line.forEach((point, i) =>
      i ? context.lineTo(x(point.time), y(point.psn)) : context.moveTo(x(point.time), y(point.psn)),
    );
    context.stroke();
  }
  for (const mark of marks) drawMark(context, mark, x(mark.time), y(mark.psn), y(mark.psn + mark.value));
  context.restore();
  return marks;
}

/** Each kind of mark has a shape of its own beside its colour. */
function drawMark(context, { kind }, x, y, end) {
  context.strokeStyle = context.fillStyle = MARKS[kind][1]();
  context.lineWidth = 2;
  context.beginPath();
  if (kind === "gap") {
    context.moveTo(x, y);
    context.lineTo(x, Math.min(end, y - 3));
    context.moveTo(x - 4, y);
    context.lineTo(x + 4, y);
  } else if (kind === "retransmission_run") {
    // From the PSN it falls back to, so many packets up.
    context.lineWidth = 1.5;
    context.rect(x - 2, Math.min(end, y - 3), 4, Math.max(3, y - end));
  } else if (kind === "nak") {
    context.moveTo(x - 4, y - 4);
    context.lineTo(x + 4, y + 4);
    context.moveTo(x + 4, y - 4);
    context.lineTo(x - 4, y + 4);
  } else if (kind === "rnr_nak") {
    context.moveTo(x - 5, y);
    context.lineTo(x + 5, y);
    context.moveTo(x, y - 5);
    context.lineTo(x, y + 5);
  } else if (kind === "late") {
    context.moveTo(x, y - 4);
    context.lineTo(x + 4, y + 3);
    context.lineTo(x - 4, y + 3);
    context.closePath();
  } else if (kind === "stall") {
    context.rect(x - 3, y - 3, 6, 6);
  } else {
    context.arc(x, y, 3.2, 0, 7);
  }
  context.stroke();
}

/** Marks, notifications and pauses of one flow by slot: those that were seen, each with a share of its lane's height. */
function flowLanes(flow) {
  const data = new Map(),
    width = model.head.width;
  const series = (name) => flow.series?.get(name) ?? EMPTY;
  const all = series("data_packets");
  for (let i = 0; i < all.count; i++) data.set(all.slots[i], all.values[i]);
  const lane = (id, name, color, metric, share, summarise) => {
    const { slots, values, count: length } = series(metric),
      bars = [];
    for (let i = 0; i < length; i++) {
      if (!(values[i] > 0)) continue;
      bars.push({ from: slotBegin(slots[i]), value: values[i], share: share(values[i], slots[i]) });
    }
    return { id, name, color, bars, summary: () => summarise(inView(bars)) };
  };
  const inView = (bars) => bars.filter((bar) => bar.from + width > view.from && bar.from < view.to);
  const sum = (bars) => bars.reduce((sum, bar) => sum + bar.value, 0);
  return [
    lane(
      "ce",
      "CE share",
      theme.kind.ecn,
      "ce",
      (value, slot) => Math.min(1, value / (data.get(slot) || value)),
      (bars) => `${count(sum(bars))} packets marked`,
    ),
    lane(
      "cnp",
      "CNPs",
      theme.flows[3],
      "cnp",
      () => 1,
      (bars) => many(sum(bars), "CNP"),
    ),
    lane(
      "pause",
      "paused",
      theme.kind.pause,
      "pause_ns",
      (value) => Math.min(1, value / width),
      (bars) => duration(sum(bars)),
    ),
  ].filter((lane) => lane.bars.length);
}

/** Draws these lanes below the PSNs, on the same axis. */
function drawFlowLanes(canvas, lanes, width) {
  const high = 22,
    context = fit(canvas, width, lanes.length * high + 2);
  lanes.forEach((lane, number) => {
    const bottom = (number + 1) * high - 2;
    context.fillStyle = theme.quiet;
    context.textAlign = "right";
    context.fillText(lane.name, LEFT - 6, bottom - 8);
    context.strokeStyle = theme.grid;
    context.beginPath();
    context.moveTo(LEFT, bottom + 0.5);
    context.lineTo(width - RIGHT, bottom + 0.5);
    context.stroke();
    context.fillStyle = lane.color;
    for (const bar of lane.bars) {
      const from = Math.max(LEFT, xOf(bar.from, width)),
        to = Math.min(width - RIGHT, Math.max(from + 1, xOf(bar.from + model.head.width, width)));
      if (to <= LEFT || from >= width - RIGHT) continue;
      const height = Math.max(2, bar.share * (high - 5));
      context.fillRect(from, bottom - height, to - from, height);
    }
  });
}

/** Opens the page of the flow in the view, or closes it. */
function buildFlowPage() {
  const dialog = $("flow");
  if (view.flow == null) {
    if (dialog.open) dialog.close();
    return;
  }
  const flow = model.flowById.get(view.flow),
    at = (name) => flowValue(flow, name);
  const peer = model.flowById.get(at("peer_flow_id"));
  const spent = spentBy(flow);
  const psns = psnsOf(flow, peer),
    canvas = el("canvas", { role: "img", id: "psn-canvas" }),
    lanes = el("canvas", { role: "img", id: "flow-lanes" }),
    stretch = el("span", { class: "quiet" });
  const kinds = [...new Set(psns.marks.map((mark) => mark.kind))].filter((kind) => MARKS[kind][1]);
  const events = eventsOf(
    (_, row) => model.events.value("flow_id", row) === flow.id && model.events.value("tap", row) === flow.tap,
  );
  const listed = new Set();
  const groups = GROUPS.map(([name, wanted]) => {
    const columns = model.described
      .get("flows")
      .columns.filter((column) => wanted.test(column.name) && !listed.has(column.name));
    columns.forEach((column) => listed.add(column.name));
    const known = columns.filter((column) =>
      flow.rows.some((row) => {
        const value = model.flows.value(column.name, row);
        return value != null && value !== 0 && value !== "" && value !== false;
      }),
    );
    return (
      known.length &&
      el(
        "section",
        {},
        el("h3", {}, name),
        el(
          "dl",
          { class: "numbers" },
          known.map((column) =>
            el(
              "div",
              { "data-column": column.name, "data-value": String(total(flow, column)) },
              el("dt", { title: column.meaning }, withoutUnit(column)),
              el("dd", {}, inUnit(total(flow, column), column)),
            ),
          ),
        ),
      )
    );
  });
  const draw = () => {
    const marks = drawPsns(canvas, psns, Math.max(300, canvas.parentElement.clientWidth), 280);
    canvas.dataset.marks = String(marks.length);
    canvas.setAttribute(
      "aria-label",
      `PSN over time, ${moment(view.from - model.zero, 1000)} to ${moment(view.to - model.zero, 1000)}: ${kinds.map((kind) => `${marks.filter((mark) => mark.kind === kind).length} × ${MARKS[kind][0]}`).join(", ") || "no loss, retransmission or NAK"}. The events stand in the table below.`,
    );
    const beside = flowLanes(flow);
    lanes.hidden = !beside.length;
    if (beside.length) {
      drawFlowLanes(lanes, beside, Math.max(300, lanes.parentElement.clientWidth));
      lanes.dataset.lanes = beside.map((lane) => lane.id).join(" ");
      lanes.setAttribute("aria-label", beside.map((lane) => `${lane.name}: ${lane.summary()}`).join("; "));
    }
    stretch.textContent = ` ${moment(view.from - model.zero, 1000)} to ${moment(view.to - model.zero, 1000)}`;
  };
  flowPage.draw = draw;
  $("flow-place").replaceChildren(
    el(
      "header",
      { class: "flow-head" },
      el(
        "div",
        {},
        el("h2", { id: "flow-title" }, flowName(flow)),
        el(
          "p",
          { class: "quiet" },
          `flow ${flow.id} · ${at("service")} · ${at("carrier")} · tap ${flow.tap}${flow.rows.length > 1 ? ` · ${flow.rows.length} epochs, added up` : ""}`,
        ),
      ),
      el(
        "div",
        { class: "tools" },
        peer ? el("button", { type: "button", onclick: () => look({ flow: peer.id }) }, "The other direction") : null,
        el(
          "button",
          {
            type: "button",
            id: "flow-timeline",
            onclick: () => look({ flow: null, flows: new Set([flow.id]), source: null, destination: null, host: null }),
          },
          "Only this flow on the timeline",
        ),
        el(
          "button",
          { type: "button", id: "flow-close", autofocus: true, onclick: () => look({ flow: null }) },
          "Close",
        ),
      ),
    ),
    flow.partial
      ? el(
          "p",
          { class: "notice" },
          "There were more flows than this page has room for: the begin of this flow's timeline is not here.",
        )
      : "",
    sumOf(spent) > 0
      ? el("section", {}, el("h3", {}, `Where its ${duration(sumOf(spent))} went`), spentBar(spent), spentLegend(spent))
      : "",
    el(
      "section",
      {},
      el("h3", {}, "PSN over time", stretch),
      psns.lines.length
        ? el(
            "div",
            { class: "legend" },
            kinds.map((kind) => {
              const mark = el("canvas", { "aria-hidden": "true" });
              const [from, to] = kind === "gap" || kind === "retransmission_run" ? [12, 3] : [7, 7];
              drawMark(fit(mark, 14, 14), { kind }, 7, from, to);
              return el("span", { class: "key" }, mark, MARKS[kind][0]);
            }),
          )
        : el("p", { class: "quiet" }, "This flow carries no requests of its own."),
      psns.lines.length ? el("div", { class: "psn" }, canvas, lanes) : "",
      psns.lines.length
        ? el(
            "p",
            { class: "quiet" },
            "Exact at the first and the last packet and around losses, retransmissions and NAKs; between these the line follows the data packets of each slot. ",
            el("button", { type: "button", class: "link", onclick: () => zoom(0.5) }, "closer"),
            " ",
            el("button", { type: "button", class: "link", onclick: () => zoom(2) }, "wider"),
            " ",
            el("button", { type: "button", class: "link", onclick: wholeRun }, "whole run"),
          )
        : "",
    ),
    el("div", { class: "groups" }, groups.filter(Boolean)),
    events.length ? el("section", {}, el("h3", {}, "Events"), eventsGrid("flow-events", events, 260).element) : "",
  );
  if (!dialog.open) dialog.showModal();
  if (psns.lines.length) {
    draw();
    listenPsns(canvas);
  }
  dialog.scrollTop = 0;
}

const flowPage = { draw: null };

/** The name of a column for people: its value is shown with a unit, which the name need not repeat. */
const withoutUnit = (column) => column.name.replace(/_(ns|bps)$/, "").replaceAll("_", " ");

/** A column of a flow over its epochs: counts add up, the rest is the first one's. */
function total(flow, column) {
  const adds =
    ["packets", "bytes", "messages", "runs"].includes(column.unit) &&
    !/_(min|max|p50|p90|p99|mtu)/.test(column.name) &&
    column.name !== "path_mtu";
  if (column.name === "last_time") return model.flows.value("last_time", flow.rows.at(-1));
  return adds && flow.rows.some((row) => model.flows.value(column.name, row) != null)
    ? flowSum(flow, column.name)
    : flowValue(flow, column.name);
}

/** The wheel zooms, a drag moves. */
function listenPsns(canvas) {
  const width = () => canvas.clientWidth;
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      zoom(Math.exp(Math.max(-0.4, Math.min(0.4, event.deltaY * 0.0025))), timeAt(event.offsetX, width()));
    },
    { passive: false },
  );
  canvas.addEventListener("pointermove", (event) => {
    if (!(event.buttons & 1)) return;
    const moved = (-event.movementX / (width() - LEFT - RIGHT)) * (view.to - view.from);
    lookAt(view.from + moved, view.to + moved);
  });
  canvas.addEventListener("dblclick", wholeRun);
}

function listenFlowPage() {
  // Escape closes it, too.
  $("flow").addEventListener("close", () => look({ flow: null }));
}
