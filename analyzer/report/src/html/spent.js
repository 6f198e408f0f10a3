// Where the time of flows went: each state's share, of all flows together, of each sending host and of each pair of hosts.

/** States of a flow's sender in the order in which they win, with their words and their colours. */
const STATES = [
  ["timeout", "timeouts", "--kind-loss"],
  ["rnr", "waiting for receive buffers", "--kind-rnr"],
  ["paused", "paused", "--flow-7"],
  ["recovering", "retransmitting", "--flow-4"],
  ["slowed", "slowed by congestion notifications", "--kind-ecn"],
  ["window", "waiting for ACKs", "--flow-5"],
  ["network", "late answers", "--flow-3"],
  ["sending", "sending", "--flow-1"],
  ["receiver", "waiting for the receiver", "--flow-2"],
  ["sender", "waiting for the sender's program", "--kind-stall"],
  ["idle", "sender idle", "--rest"],
  ["unknown", "unknown", "--line"],
];
/** Hosts and pairs of hosts that have a row; the others have spent less. */
const MAX_ROWS_SPENT = 12;

/** Time of a flow in each state, in ns, in the order of the states. */
const spentBy = (flow) => STATES.map(([name]) => flowSum(flow, `time_${name}_ns`));

const sumOf = (times) => times.reduce((sum, time) => sum + time, 0);

/** A bar of states. Shares that are too small to be seen stand in its text. */
function spentBar(times) {
  const sum = sumOf(times);
  const parts = STATES.map(([, words, colour], place) => ({ words, colour, time: times[place] })).filter((part) => part.time > 0);
  const text = parts.map((part) => `${part.words} ${percent(part.time / sum)}`).join(", ");
  const bar = el("div", { class: "spent-bar", role: "img", "aria-label": text, title: text });
  for (const part of parts) {
    const piece = el("span", {});
    piece.style.flexGrow = String(part.time / sum);
    piece.style.background = `var(${part.colour})`;
    bar.append(piece);
  }
  return bar;
}

/** The states that these times have, with their shares of all. */
function spentLegend(times) {
  const sum = sumOf(times);
  return el(
    "ul",
    { class: "spent-legend" },
    STATES.flatMap(([name, words, colour], place) => {
      if (!(times[place] > 0)) return [];
      const key = el("span", { class: "swatch", "aria-hidden": "true" });
      key.style.background = `var(${colour})`;
      return [
        el("li", { "data-state": name, "data-ns": String(times[place]) }, key, `${words} `, el("b", {}, percent(times[place] / sum)), ` (${duration(times[place])})`),
      ];
    }),
  );
}

/** Sums by a name of each flow, those with the most time first. */
function spentRows(flows, nameOf) {
  const sums = new Map();
  for (const { flow, times } of flows) {
    const name = nameOf(flow),
      row = sums.get(name) ?? { name, flows: 0, times: STATES.map(() => 0) };
    row.flows++;
    times.forEach((time, place) => (row.times[place] += time));
    sums.set(name, row);
  }
  return [...sums.values()].sort((a, b) => sumOf(b.times) - sumOf(a.times) || collate.compare(a.name, b.name));
}

function spentTable(title, rows) {
  const shown = rows.slice(0, MAX_ROWS_SPENT);
  return el(
    "div",
    { class: "spent-table" },
    el("h3", {}, title),
    el(
      "table",
      {},
      el("tbody", {}, shown.map((row) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, row.name),
          el("td", { class: "quiet" }, `${many(row.flows, "flow")}, ${duration(sumOf(row.times))}`),
          el("td", { class: "spent-cell" }, spentBar(row.times)),
        ),
      )),
    ),
    rows.length > shown.length ? el("p", { class: "quiet" }, `${count(rows.length - shown.length)} others have spent less.`) : null,
  );
}

/** The part of the page; it is hidden where no flow has a request. */
function buildSpent() {
  const flows = [...model.flowAt.values()]
    .filter(isHere)
    .map((flow) => ({ flow, times: spentBy(flow) }))
    .filter(({ times }) => sumOf(times) > 0);
  $("spent").hidden = !flows.length;
  if (!flows.length) return;
  const [all] = spentRows(flows, () => "all");
  const senders = spentRows(flows, (flow) => flowValue(flow, "source"));
  const pairs = spentRows(flows, (flow) => `${flowValue(flow, "source")} to ${flowValue(flow, "destination")}`);
  $("spent-place").replaceChildren(
    el(
      "p",
      { class: "quiet" },
      flows.length === 1
        ? `${duration(sumOf(all.times))} of 1 flow, from its first packet to its last.`
        : `${duration(sumOf(all.times))} of ${count(flows.length)} flows in sum, each from its first packet to its last.`,
    ),
    spentBar(all.times),
    spentLegend(all.times),
    ...(senders.length > 1 ? [spentTable("By sender", senders)] : []),
    ...(pairs.length > senders.length || (pairs.length > 1 && senders.length === 1) ? [spentTable("By pair of hosts", pairs)] : []),
  );
}
