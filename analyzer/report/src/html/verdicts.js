// What stands at the top: the first sentence, the run in numbers, and the verdicts, causes before what they explain.

/** The name of the run: its captures. */
function runName() {
  const names = model.run.run.inputs.map((input) => input.input.split("/").pop() || input.input);
  return names.length > 3 ? `${names.slice(0, 2).join(", ")} and ${names.length - 2} more` : names.join(", ");
}

function buildHeader() {
  document.title = `${runName()} – RoCEv2 report`;
  $("title").textContent = runName();
  const run = model.run.run;
  $("subtitle").textContent =
    run.first_time == null
      ? "no frames"
      : `${model.date(model.time(run.first_time), 3)}, ${duration(model.time(run.last_time) - model.time(run.first_time))}, ${count(model.run.totals.frames)} frames`;
  $("footer").textContent =
    `roce-analyze ${run.version}. Everything on this page is in this file: nothing is loaded, nothing is sent.`;
}

/**
 * The counts of the run: `totals` of run.json. They count every captured packet; where taps saw the same ones, the rows of
 * flows that count are added up instead, as long as all of them are here.
 */
function countsOnce() {
  const { totals } = model.run,
    once = totals.seen_again > 0 && model.head.flows_seen === model.flows.rows;
  if (!once) return { ...totals, once };
  const counted = model.flows.column("counted"),
    sum = (name) => model.flows.column(name).reduce((sum, value, row) => sum + (counted[row] ? (value ?? 0) : 0), 0);
  const all = {
    ...totals,
    once,
    flows: counted.filter(Boolean).length,
    roce_packets: sum("packets"),
    data_ce: sum("ce"),
    cnp: sum("cnp") + totals.cnp_unattributed,
  };
  for (const name of [
    "wire_bytes",
    "payload_bytes",
    "data_packets",
    "retransmitted_packets",
    "retransmitted_bytes",
    "network_lost",
    "lost_downstream",
    "response_network_lost",
    "missing",
    "rnr_naks",
  ])
    all[name] = sum(name);
  return all;
}

/** The counts that matter first, below the sentence that says what was wrong. */
function buildHeadline() {
  $("sentence").textContent = model.run.run.sentence ?? "";
  $("sentence").hidden = !model.run.run.sentence;
  $("sentence").dataset.severity = model.run.findings[0]?.severity ?? "ok";
  const { run } = model.run,
    totals = countsOnce(),
    time = run.first_time == null ? 0 : model.time(run.last_time) - model.time(run.first_time);
  const share = (part, whole) => (whole ? percent(part / whole) : "–");
  const about = (name) =>
    model.head.totals.find(([known]) => known === name)?.[1] ??
    (name === "lost" ? "network_lost + lost_downstream + response_network_lost" : "");
  // Two taps decide where both see the traffic: the flows have what each tap shows alone.
  const alone = totals.network_lost + totals.lost_downstream + totals.response_network_lost;
  const loss = model.run.findings.find((finding) => finding.id === "loss.network")?.evidence;
  const multipath = (model.run.mrc_connections ?? []).reduce((sum, row) => sum + row.lost, 0);
  const lost = (totals.lost = (loss?.between_taps ? loss.lost : alone) + multipath);
  const fresh = Math.max(0, totals.payload_bytes - totals.retransmitted_bytes);
  const goodput = time ? `, goodput ${rate((fresh * 8e9) / time)}` : "";
  const missing = totals.missing ? `${count(totals.missing)} missing at the taps` : "none missing";
  const tiles = [
    [
      "wire_bytes",
      "On the wire",
      bytes(totals.wire_bytes),
      time ? `${rate((totals.wire_bytes * 8e9) / time)} on average` : "",
    ],
    [
      "payload_bytes",
      "Application data",
      bytes(totals.payload_bytes),
      totals.retransmitted_bytes
        ? `${bytes(fresh)} of it new${goodput}`
        : `${share(totals.payload_bytes, totals.wire_bytes)} of it`,
    ],
    ["flows", "Flows", count(totals.flows), many(totals.roce_packets, "packet")],
    [
      "data_ce",
      "Marked CE",
      share(totals.data_ce, totals.data_packets),
      `${count(totals.data_ce)} of ${many(totals.data_packets, "data packet")}`,
    ],
    [
      "cnp",
      "CNPs",
      count(totals.cnp),
      totals.cnp_unattributed ? `${count(totals.cnp_unattributed)} for unknown flows` : "slow-down notifications",
    ],
    ["retransmitted_packets", "Retransmitted", count(totals.retransmitted_packets), bytes(totals.retransmitted_bytes)],
    [
      "lost",
      "Lost in the network",
      count(lost),
      multipath ? `${count(multipath)} of MRC or UET` : lost === alone ? missing : `single taps show ${count(alone)}`,
    ],
    [
      "pause_frames",
      "Pause frames",
      count(totals.pause_frames),
      totals.rnr_naks ? many(totals.rnr_naks, "RNR NAK") : "no RNR NAK",
    ],
  ];
  const bad = new Set(["data_ce", "cnp", "retransmitted_packets", "lost", "pause_frames"]);
  $("headline").replaceChildren(
    ...tiles.map(([name, label, value, more]) =>
      el(
        "div",
        {
          class: bad.has(name) && totals[name] > 0 ? "tile seen" : "tile",
          title: about(name),
          "data-total": name,
          "data-value": String(totals[name]),
        },
        el("span", { class: "label" }, label),
        el("b", {}, value),
        el("span", { class: "quiet" }, more),
      ),
    ),
  );
  if (totals.once)
    $("headline").after(
      el(
        "p",
        { class: "quiet hint" },
        `Traffic that several taps saw counts once here. Totals in run.json count every captured packet, ${count(model.run.totals.seen_again)} of them again.`,
      ),
    );
}

/** A fact of the evidence, in its unit. */
function fact(name, value) {
  if (value == null) return "–";
  if (typeof value !== "number") return String(value);
  if (name.endsWith("_ns")) return duration(value);
  if (name.endsWith("bytes")) return bytes(value);
  if (name.endsWith("_bps")) return rate(value);
  if (/share/.test(name)) return percent(value);
  if (/^ev$|qpn$|pdc$/.test(name)) return `0x${value.toString(16)}`;
  if (/port$/.test(name)) return String(value);
  return Number.isInteger(value) ? count(value) : digits(value);
}

/** The flows that words of evidence name, by id: `10.0.0.1 > 10.0.0.2 QP 0x13`. */
function namedFlows(finding) {
  const texts = [finding.summary, ...Object.values(finding.evidence).filter((value) => typeof value === "string")];
  const found = new Set();
  for (const text of texts) {
    for (const [, source, destination, qpn] of text.matchAll(/([0-9a-f.:]+) > ([0-9a-f.:]+) QP 0x([0-9a-f]+)/gi)) {
      for (const id of flowsNamed().get(`${source} > ${destination} QP 0x${qpn.toLowerCase()}`) ?? []) found.add(id);
    }
  }
  return found;
}

let names = null;

/** All flows by how people call them. */
function flowsNamed() {
  if (!names) {
    names = new Map();
    for (const flow of model.flowById.values()) {
      const name = flowName(flow);
      names.set(name, [...(names.get(name) ?? []), flow.id]);
    }
  }
  return names;
}

/** Which episodes a verdict is about, by its rule. */
const KINDS = {
  incast: ["incast"],
  "loss.trimmed": ["loss"],
  "loss.network": ["loss"],
  rnr: ["rnr"],
  "pause.storm": ["pause"],
  "pause.origin": ["pause"],
  "drops.switch": ["loss"],
  stall: ["stall"],
  "retransmit.timeout": ["loss", "stall"],
  unfair: ["incast", "ecn"],
  "ecn.working": ["ecn", "incast"],
  "ecn.marks-without-cnp": ["ecn", "incast"],
  "cnp.ignored": ["ecn", "incast"],
};

/** The moment and the flows of a verdict, as far as it names them; null for what is about the whole run. */
function momentOf(finding) {
  const flows = namedFlows(finding),
    first = model.time(finding.first_time);
  const rows = model.run.episodes.filter((row) => KINDS[finding.id]?.includes(row.kind));
  const start = (row) => model.time(row.start_time),
    end = (row) => model.time(row.end_time);
  const row =
    rows.find((row) => first != null && start(row) <= first + model.head.width && first <= end(row)) ?? rows[0];
  if (row) {
    if (!flows.size) for (const id of row.flow_ids.split(" ")) if (model.flowById.has(id)) flows.add(id);
    return { from: start(row), to: end(row), flows };
  }
  if (first != null) return { from: first, to: first + 4 * model.head.width, flows };
  return flows.size ? { from: model.begin, to: model.end, flows } : null;
}

/** Looks at what a verdict is about. */
function followVerdict(finding) {
  const at = momentOf(finding);
  look({ flows: at.flows, source: null, destination: null, host: null });
  lookAtSpan(at.from, at.to);
  $("timeline").scrollIntoView({ behavior: reduced() ? "auto" : "smooth" });
  $("tracks").focus({ preventScroll: true });
  announce(
    `The timeline shows ${duration(view.to - view.from)} from ${moment(view.from - model.zero, 1000)} on, ${at.flows.size ? many(at.flows.size, "flow") : "all flows"}`,
  );
}

const reduced = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** How many causes a verdict has above it, in the longest chain. */
function depth(finding, known = new Set()) {
  const causes = model.run.findings.filter((other) => finding.explained_by?.includes(other.id) && !known.has(other.id));
  return causes.length ? 1 + Math.max(...causes.map((cause) => depth(cause, new Set([...known, finding.id])))) : 0;
}

/** What a verdict follows from and explains, its price, and whom it is about. */
function edges(finding) {
  const line = (name, values) =>
    values?.length ? el("p", { class: "edge", "data-edge": name }, el("b", {}, `${name} `), values.join(", ")) : null;
  return [
    line("follows from", finding.explained_by),
    line("explains", finding.explains),
    line("caused by", finding.aggressors),
    line("suffered by", finding.victims),
    finding.waited_ns ? line("price", [`${duration(finding.waited_ns)} of waiting`]) : null,
  ];
}

/** From when to when, from the first packet on. */
function times(finding) {
  if (finding.first_time == null) return null;
  const first = model.time(finding.first_time),
    last = finding.last_time == null ? first : model.time(finding.last_time);
  const at = (time) => moment(time - model.zero, 1000);
  return el("span", {}, last > first ? `${at(first)} to ${at(last)}` : `at ${at(first)}`);
}

function buildVerdicts() {
  const findings = model.run.findings;
  const cards = findings.map((finding, number) => {
    const at = momentOf(finding);
    const level = depth(finding);
    const facts = Object.entries(finding.evidence).filter(([name]) => name !== "dataset");
    return el(
      "article",
      { class: `verdict ${finding.severity}${level ? " effect" : ""}`, style: `--depth: ${level}`, "data-finding": finding.id, "data-severity": finding.severity },
      el("div", { class: "severity" }, icon(finding.severity), el("span", {}, finding.severity)),
      el(
        "div",
        {},
        el("p", { class: "summary" }, finding.summary),
        ...edges(finding),
        el(
          "dl",
          { class: "facts" },
          facts.map(([name, value]) =>
            el(
              "div",
              { "data-fact": name, "data-value": String(value) },
              el("dt", {}, name.replace(/_(ns|bps)$/, "").replaceAll("_", " ")),
              el("dd", {}, fact(name, value)),
            ),
          ),
        ),
        finding.next_step ? el("p", { class: "next" }, el("b", {}, "Next: "), finding.next_step) : null,
        el(
          "p",
          { class: "foot quiet" },
          at
            ? el(
                "button",
                { type: "button", class: "show", "data-follow": String(number), onclick: () => followVerdict(finding) },
                "Show on the timeline",
              )
            : null,
          el("span", {}, `${finding.confidence} confidence`),
          times(finding),
          finding.evidence.dataset ? el("span", {}, `of ${finding.evidence.dataset} alone`) : null,
          el(
            "code",
            { title: "The rule: roce-analyze explain tells what it means and where it comes from" },
            `explain ${finding.id}`,
          ),
        ),
      ),
    );
  });
  const none = model.run.totals.roce_packets
    ? "Nothing to complain about, and nothing that works noticeably: no rule fired."
    : "No RoCE packets were captured: there is nothing to judge.";
  $("verdict-list").replaceChildren(...(cards.length ? cards : [el("p", { class: "quiet" }, none)]));
}

/** What the view leaves out, with a way back. */
function buildFilter() {
  const parts = [];
  const chip = (text, change) =>
    el(
      "button",
      { type: "button", class: "chip", title: "Show all again", onclick: () => look(change) },
      text,
      el("span", { "aria-hidden": "true" }, " ×"),
    );
  if (view.host != null) parts.push(chip(`host ${view.host}`, { host: null }));
  if (view.source != null) parts.push(chip(`from ${view.source}`, { source: null }));
  if (view.destination != null) parts.push(chip(`to ${view.destination}`, { destination: null }));
  if (view.flows.size === 1) {
    const [id] = view.flows;
    parts.push(
      chip(flowName(model.flowById.get(id)), { flows: new Set() }),
      el("button", { type: "button", class: "link", onclick: () => look({ flow: id }) }, "open the flow's page"),
    );
  } else if (view.flows.size) parts.push(chip(`${view.flows.size} flows`, { flows: new Set() }));
  if (parts.length) parts.unshift(el("span", {}, "Showing only "));
  if (parts.length > 2)
    parts.push(
      el(
        "button",
        {
          type: "button",
          class: "link",
          onclick: () => look({ flows: new Set(), source: null, destination: null, host: null }),
        },
        "show everything",
      ),
    );
  $("filter").replaceChildren(...parts);
  $("filter").hidden = !parts.length;
}
