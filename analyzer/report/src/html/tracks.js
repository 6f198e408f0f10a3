// What the tracks of the timeline show. A track has a name, a unit, says why it is not there when nothing of it was seen,
// and gives layers to draw: areas and bars by slot, spans, marks.

/** Flows with a colour of their own; the others are one. */
const COLOURED = 7;
const CLASSES = [
  ["network_lost", "lost in the network", "loss"],
  ["lost_downstream", "lost behind the tap", "pause"],
  ["response_network_lost", "READ responses lost", "rnr"],
  ["ambiguous", "unclear", "ecn"],
  ["unresolved", "unresolved", "rest"],
  ["reordered", "reordered", "incast"],
  ["capture_lost", "missed by the capture", "stall"],
  ["response_capture_lost", "READ responses missed", "stall"],
];

/** Values of several series by slot: summed, or the largest of each slot. */
class Line {
  constructor(most = false) {
    this.most = most;
    this.values = new Float64Array(model.head.slots);
    this.any = false;
  }

  add(series, name, sign = 1) {
    const { slots, values, count } = series.get(name);
    for (let i = 0; i < count; i++) {
      const slot = slots[i];
      this.values[slot] = this.most ? Math.max(this.values[slot], values[i]) : this.values[slot] + sign * values[i];
    }
    this.any ||= count > 0;
    return this;
  }

  /** Less what is drawn apart; what rounding leaves below 0 is 0. */
  less(other) {
    for (let i = 0; i < this.values.length; i++) this.values[i] = Math.max(0, this.values[i] - other.values[i]);
    return this;
  }

  scale(factor) {
    for (let i = 0; i < this.values.length; i++) this.values[i] *= factor;
    return this;
  }

  sum() {
    return this.values.reduce((sum, value) => sum + value, 0);
  }
}

/** The series that the view is about: the taps' where everything is shown, else those of the flows. */
function chosen() {
  const flows = [...model.flowAt.values()].filter((flow) => isHere(flow) && isShown(flow));
  const withSeries = flows.filter((flow) => flow.series);
  if (isFiltered())
    return {
      whole: false,
      flows: withSeries,
      all: withSeries.map((flow) => flow.series),
      without: flows.length - withSeries.length,
    };
  const taps = [...model.taps].filter(([tap]) => view.tap == null || tap === view.tap).map(([, series]) => series);
  // Flows that another tap counts are taken out, as far as they have series of their own.
  const twice =
    view.tap == null
      ? model.series.filter((kept) => !model.flowAt.get(`${kept.id}/${kept.tap}`)?.counted).map((kept) => kept.series)
      : [];
  return { whole: true, flows: withSeries, all: taps, twice, without: flows.length - withSeries.length };
}

/** A metric of everything that is looked at. */
function overall(choice, name, most = false) {
  const line = new Line(most);
  choice.all.forEach((series) => line.add(series, name));
  if (choice.twice?.length && !most) {
    const twice = new Line();
    choice.twice.forEach((series) => twice.add(series, name));
    line.less(twice);
  }
  return line;
}

/** Flows by what they have of a metric, the most first. */
function byMost(flows, name) {
  const sums = new Map(flows.map((flow) => [flow, flowSum(flow, name)]));
  return [...flows]
    .filter((flow) => sums.get(flow) > 0)
    .sort((a, b) => sums.get(b) - sums.get(a) || (a.key < b.key ? -1 : 1));
}

/** The mean of a metric per slot over series, and absent (NaN) where none has it. */
function means(choice, name) {
  const sum = new Line(),
    number = new Line();
  for (const series of choice.all) {
    const { slots, values, count } = series.get(name);
    for (let i = 0; i < count; i++) {
      sum.values[slots[i]] += values[i];
      number.values[slots[i]]++;
    }
  }
  for (let i = 0; i < sum.values.length; i++) sum.values[i] = number.values[i] ? sum.values[i] / number.values[i] : NaN;
  return sum;
}

const inView = (row) => view.tap == null || row.tap === view.tap;

/** Episodes of the flows and hosts that are looked at, at any time. */
function episodesShown() {
  return model.run.episodes.filter(
    (row) =>
      inView(row) &&
      (!isFiltered() ||
        (row.flow_ids &&
          row.flow_ids.split(" ").some((id) => model.flowById.has(id) && isShown(model.flowById.get(id)))) ||
        (view.flows.size === 0 && row.destination != null && [view.destination, view.host].includes(row.destination))),
  );
}

/** Events of some kinds, as rows. */
function eventsOf(test) {
  const kinds = model.events.column("kind"),
    rows = [];
  for (let row = 0; row < kinds.length; row++) if (test(kinds[row], row)) rows.push(row);
  return rows;
}

/** All tracks as the view wants them: those with something to draw, and reasons for those without. */
function makeTracks() {
  const choice = chosen(),
    width = model.head.width,
    tracks = [],
    missing = [];
  const track = (id, name, about, build) => {
    const built = model.head.slots || id === "episodes" || id === "steps" ? build() : null;
    if (typeof built === "string" || !built) missing.push([name, built ?? "no RoCE packets"]);
    else tracks.push({ id, name, about, ...built });
  };

  track("episodes", "Episodes", "Intervals in which something was congested", () => {
    const rows = timeline.episodes;
    if (!rows.length) return model.run.episodes.length ? "none of these flows" : "nothing was congested";
    return {
      lanes: lanes(
        rows.map((row) => ({
          from: model.time(row.start_time),
          to: model.time(row.end_time),
          label: row.kind,
          title: row.cause,
          color: theme.kind[row.kind],
          row,
        })),
      ),
      spans: true,
    };
  });

  track("rate", "Rate", "Bits on the wire per second, by flow", () => {
    const factor = 8e9 / width,
      single = view.flows.size === 1 ? choice.flows[0] : null;
    const top = byMost(choice.flows, "wire_bytes").slice(0, COLOURED);
    const layers = top.map((flow, number) => ({
      name: flowName(flow),
      color: theme.flows[number],
      flow: flow.id,
      line: new Line().add(flow.series, "wire_bytes").scale(factor),
    }));
    const total = overall(choice, "wire_bytes").scale(factor);
    const rest = overall(choice, "wire_bytes").scale(factor);
    layers.forEach((layer) => rest.less(layer.line));
    const others = model.flowAt.size - top.length;
    if (others > 0 && rest.sum() > total.sum() * 1e-9)
      layers.push({ name: choice.whole ? "all others" : "other flows", color: theme.rest, line: rest });
    if (!layers.length) return "no packets of these flows";
    const over = [];
    if (single?.series.has("dcqcn_rate_bps")) {
      over.push({
        name: "expected by DCQCN, at most (far above: along the top)",
        color: theme.text,
        dash: [5, 3],
        line: means({ all: [single.series] }, "dcqcn_rate_bps"),
        gaps: true,
      });
    }
    return { stack: layers, over, format: rate, high: true, legend: true };
  });

  track("ce", "CE share", "Data packets marked Congestion Experienced", () => {
    const ce = overall(choice, "ce"),
      data = overall(choice, "data_packets");
    if (!ce.any)
      return overall(choice, "not_ect").sum() > 0
        ? "no packet was marked; some senders do not offer ECN"
        : "no packet was marked";
    const share = new Line();
    for (let i = 0; i < share.values.length; i++) share.values[i] = data.values[i] ? ce.values[i] / data.values[i] : 0;
    return {
      stack: [{ name: "marked", color: theme.kind.ecn, line: share }],
      format: percent,
      most: true,
      steps: true,
    };
  });

  track("cnp", "CNPs", "Congestion notifications that slowed these flows", () => {
    const known = overall(choice, "cnp"),
      other = choice.whole ? overall(choice, "cnp_unattributed") : new Line();
    if (!known.any && !other.any) return "no congestion notification was seen";
    const layers = [{ name: "for a known flow", color: theme.flows[3], line: known }];
    if (other.any) layers.push({ name: "flow not known", color: theme.rest, line: other });
    return { stack: layers, format: count, whole: true, bars: true, legend: layers.length > 1 };
  });

  track("retransmitted", "Retransmitted", "Request packets that were retransmitted", () => {
    const line = overall(choice, "retransmitted_packets");
    if (!line.any) return "nothing was retransmitted";
    return { stack: [{ name: "packets", color: theme.flows[5], line }], format: count, whole: true, bars: true };
  });

  track(
    "lost",
    "Missing, by class",
    "Packets missing at the tap, by what became of them, and those lost behind it",
    () => {
      const layers = CLASSES.map(([name, label, color]) => ({
        name: label,
        color: theme.kind[color] ?? theme.rest,
        line: overall(choice, name),
        metric: name,
      })).filter((layer) => layer.line.any);
      if (!layers.length) return "no packet was missing";
      return { stack: layers, format: count, whole: true, bars: true, legend: true };
    },
  );

  track(
    "rtt",
    "ACK time",
    "Request to the response that covers it: round trip at the sender, turnaround at the receiver",
    () => {
      const p50 = means(choice, "ack_rtt_p50_ns"),
        most = overall(choice, "ack_rtt_max_ns", true);
      if (!most.any)
        return "no answer was measured: needs both directions, and requests that ask for an acknowledgement";
      for (let i = 0; i < most.values.length; i++) if (!most.values[i]) most.values[i] = NaN;
      return {
        over: [
          { name: "longest", color: theme.flows[0], line: most, gaps: true, thin: true, points: true },
          { name: "median", color: theme.flows[1], line: p50, gaps: true, points: true },
        ],
        format: duration,
        log: true,
        legend: true,
      };
    },
  );

  track("inflight", "In flight", "Most bytes sent and not yet acknowledged, of the flow that had most", () => {
    const line = overall(choice, "inflight_bytes_max", true);
    if (!line.any) return "needs both directions of a connection";
    return {
      stack: [{ name: "most of one flow", color: theme.flows[2], line }],
      format: bytes,
      most: true,
      steps: true,
    };
  });

  track("incast", "Senders at once", "Distinct hosts that send to one destination in a bin", () => {
    const wanted = new Set(choice.flows.map((flow) => flowValue(flow, "destination")));
    const all = model.destinations.filter((place) => inView(place) && (!isFiltered() || wanted.has(place.name)));
    const layers = all.slice(0, 5).map((place, number) => ({
      name: view.tap == null && model.taps.size > 1 ? `to ${place.name} (tap ${place.tap})` : `to ${place.name}`,
      color: theme.flows[number],
      line: new Line(true).add(place.series, "senders_to_destination"),
    }));
    if (!layers.length) return "nobody sent data";
    if (layers.every((layer) => layer.line.values.every((value) => value <= 1)))
      return "never more than one sender to a destination";
    return { over: layers.map((layer) => ({ ...layer, steps: true })), format: count, whole: true, legend: true };
  });

  track("pauses", "Pauses", "Priorities that PFC stopped, and pauses of whole links", () => {
    const rows = eventsOf(
      (kind, row) => kind === "pause_interval" && (view.tap == null || model.events.value("tap", row) === view.tap),
    );
    if (!rows.length) {
      return model.run.totals.pause_frames
        ? "pause frames were seen, but no interval of a pause"
        : "no PFC or pause frame was seen at the taps";
    }
    const value = (name, row) => model.events.value(name, row);
    return {
      spans: true,
      lanes: lanes(
        rows.map((row) => ({
          from: value("time", row),
          to: value("time", row) + value("value", row),
          label: `${model.taps.size > 1 && view.tap == null ? `tap ${value("tap", row)}, ` : ""}${value("psn", row) === 8 ? "link" : `priority ${value("psn", row)}`}`,
          title: value("detail", row),
          color: theme.kind.pause,
        })),
        (span) => span.label,
      ),
    };
  });

  const counters = counterTracks();
  if (model.head.slots) tracks.push(...counters.tracks);
  if (counters.said) missing.push([counters.tracks.length ? "Other counters" : "Counters", counters.said]);

  track("host", "Host events", "Reports of hosts: queue pairs, asynchronous events, timers, drops, counters", () => {
    const rows = eventsOf((kind, row) => model.events.value("source", row) !== "capture");
    if (!rows.length) return "no host reported anything (live runs with the probe do)";
    const shown = rows.filter(
      (row) =>
        !isFiltered() ||
        !model.events.value("flow_id", row) ||
        isShown(model.flowById.get(model.events.value("flow_id", row)) ?? { rows: [0] }),
    );
    return {
      spans: true,
      marks: true,
      lanes: lanes(
        shown.map((row) => ({
          from: model.events.value("time", row),
          to: model.events.value("time", row),
          label: model.events.value("kind", row).replaceAll("_", " "),
          title: model.events.value("detail", row),
          color: hostColor(model.events.value("kind", row)),
        })),
        (span) => span.label,
      ),
    };
  });

  track("steps", "Training steps", "Bursts of a training job: all-reduces", () => {
    const rows = model.run.steps.filter(
      (row) =>
        inView(row) &&
        (!isFiltered() ||
          (view.flows.size === 0 &&
            [view.host, view.source, view.destination].every(
              (host) => host == null || host === row.host_a || host === row.host_b,
            ))),
    );
    if (!model.run.steps.length) return "no bursts with the rhythm of training steps";
    if (!rows.length) return "not of these hosts";
    return {
      spans: true,
      lanes: lanes(
        rows.map((row) => ({
          from: model.time(row.start_time),
          to: model.time(row.end_time),
          label: String(row.step),
          lane: `${row.host_a}–${row.host_b}`,
          title: `step ${row.step}: ${duration(row.duration_ns)}${row.outlier ? ", an outlier" : ""}`,
          color: row.outlier ? theme.kind.loss : theme.kind.rnr,
          row,
        })),
        (span) => span.lane,
        6,
      ),
    };
  });

  return { tracks, missing, choice };
}

function hostColor(kind) {
  if (/error|drop|lost/.test(kind)) return theme.kind.loss;
  return /timer|async/.test(kind) ? theme.kind.pause : theme.flows[0];
}

/**
 * Spans side by side in lanes: one lane for each name where `named` gives one (the busiest `most` of them), else as few
 * as keep them apart.
 */
function lanes(spans, named = null, most = 8) {
  spans.sort((a, b) => a.from - b.from);
  if (named) {
    const groups = new Map();
    for (const span of spans) {
      const name = named(span);
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(span);
    }
    const sorted = [...groups].sort((a, b) => b[1].length - a[1].length);
    const kept = sorted
      .slice(0, most)
      .sort((a, b) => (a[0] < b[0] ? -1 : 1))
      .map(([name, of]) => ({ name, spans: of }));
    return kept;
  }
  const free = [];
  for (const span of spans) {
    let lane = free.find((one) => one.until <= span.from);
    if (!lane && free.length < most) free.push((lane = { name: "", spans: [], until: 0 }));
    lane ??= free.reduce((least, one) => (one.until < least.until ? one : least));
    lane.spans.push(span);
    lane.until = Math.max(lane.until, span.to);
  }
  return free;
}
