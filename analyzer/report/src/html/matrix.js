// Who talks to whom: a row for each sender, a column for each receiver, over the rows of the flows that count.

const MEASURES = {
  bytes: { label: "Bytes", of: (flow) => flowSum(flow, "payload_bytes"), text: bytes, about: "application data" },
  ce: { label: "CE", of: (flow) => flowSum(flow, "ce"), text: count, about: "data packets marked CE" },
  lost: {
    label: "Losses",
    text: count,
    about: "packets lost in the network or behind the tap, READ responses included",
    of: (flow) =>
      flowSum(flow, "network_lost") + flowSum(flow, "lost_downstream") + flowSum(flow, "response_network_lost"),
  },
};
/** Hosts that have a row of their own; the others are one. */
const MAX_HOSTS_SHOWN = 40;
const OTHERS = "others";

const matrix = { measure: "bytes" };

/** Sums by source and destination. */
function pairs() {
  const all = new Map(),
    hosts = new Map();
  for (const flow of model.flowAt.values()) {
    if (!isHere(flow)) continue;
    const source = flowValue(flow, "source"),
      destination = flowValue(flow, "destination"),
      key = `${source} ${destination}`;
    if (!all.has(key)) all.set(key, { source, destination, flows: 0, bytes: 0, ce: 0, lost: 0 });
    const pair = all.get(key);
    pair.flows++;
    for (const [name, measure] of Object.entries(MEASURES)) pair[name] += measure.of(flow);
    for (const host of [source, destination]) hosts.set(host, (hosts.get(host) ?? 0) + flowSum(flow, "wire_bytes"));
  }
  return { all: [...all.values()], hosts };
}

function buildMatrix() {
  const { all, hosts } = pairs(),
    place = $("matrix-place");
  const ranked = [...hosts].sort((a, b) => b[1] - a[1]).map(([host]) => host);
  const own = new Set(ranked.slice(0, MAX_HOSTS_SHOWN));
  const names = [...own].sort(collate.compare);
  if (ranked.length > MAX_HOSTS_SHOWN) names.push(OTHERS);
  const cells = new Map();
  for (const pair of all) {
    const key = [pair.source, pair.destination].map((host) => (own.has(host) ? host : OTHERS)).join(" ");
    const cell = cells.get(key) ?? { flows: 0, bytes: 0, ce: 0, lost: 0 };
    for (const name of Object.keys(cell)) cell[name] += pair[name];
    cells.set(key, cell);
  }
  const measure = MEASURES[matrix.measure],
    name = matrix.measure;
  // What many hosts do together does not make single ones pale.
  const most = [...cells].reduce(
    (most, [key, cell]) => (key.split(" ").includes(OTHERS) ? most : Math.max(most, cell[name])),
    0,
  );
  const senders = names.filter((source) => names.some((destination) => cells.has(`${source} ${destination}`)));
  const receivers = names.filter((destination) => names.some((source) => cells.has(`${source} ${destination}`)));
  const hostButton = (host) =>
    host === OTHERS
      ? el("span", { class: "quiet" }, `${ranked.length - MAX_HOSTS_SHOWN} others`)
      : el(
          "button",
          {
            type: "button",
            class: view.host === host ? "link on" : "link",
            "aria-pressed": String(view.host === host),
            onclick: () =>
              look({ host: view.host === host ? null : host, source: null, destination: null, flows: new Set() }),
          },
          host,
        );
  const head = el(
    "tr",
    {},
    el("td", { class: "corner" }, "from \u2193 to \u2192"),
    receivers.map((host) => el("th", { scope: "col" }, el("span", {}, hostButton(host)))),
  );
  const body = senders.map((source) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, hostButton(source)),
      receivers.map((destination) => {
        const cell = cells.get(`${source} ${destination}`);
        if (!cell) return el("td", { class: "none" });
        const on = view.source === source && view.destination === destination;
        const label = `${source} to ${destination}: ${bytes(cell.bytes)}, ${count(cell.ce)} CE, ${count(cell.lost)} lost, ${many(cell.flows, "flow")}`;
        const button = el(
          "button",
          {
            type: "button",
            title: label,
            "aria-label": label,
            "aria-pressed": String(on),
            disabled: source === OTHERS || destination === OTHERS,
            onclick: () =>
              look(on ? { source: null, destination: null } : { source, destination, host: null, flows: new Set() }),
          },
          cell[name] ? measure.text(cell[name]) : "·",
        );
        const td = el(
          "td",
          {
            class: on ? "on" : null,
            "data-source": source,
            "data-destination": destination,
            "data-value": String(cell[name]),
          },
          button,
        );
        const strength = most && cell[name] ? 0.12 + 0.88 * Math.sqrt(Math.min(1, cell[name] / most)) : 0;
        td.style.setProperty("--strength", String(strength));
        if (strength > 0.55) td.classList.add("strong");
        return td;
      }),
    ),
  );
  const label = place.contains(document.activeElement)
    ? (document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent)
    : null;
  place.replaceChildren(
    senders.length
      ? el(
          "div",
          { class: "scroller", tabIndex: 0, role: "region", "aria-label": "Matrix: scrolls" },
          el(
            "table",
            { class: `matrix ${name}`, "data-measure": name },
            el("caption", { class: "quiet" }, el("span", {}, `${measure.about}, from row to column`)),
            el("thead", {}, head),
            el("tbody", {}, body),
          ),
        )
      : el("p", { class: "quiet" }, "No flow was seen."),
  );
  showStrongest(place);
  if (label)
    [...place.querySelectorAll("button")]
      .find((button) => label === (button.getAttribute("aria-label") ?? button.textContent))
      ?.focus({ preventScroll: true });
  $("matrix-measure").replaceChildren(
    ...Object.entries(MEASURES).map(([key, { label }]) =>
      el(
        "button",
        {
          type: "button",
          role: "radio",
          "aria-checked": String(key === name),
          "data-measure": key,
          onclick: () => {
            matrix.measure = key;
            buildMatrix();
            $("matrix-measure").querySelector(`[data-measure=${key}]`).focus();
          },
        },
        label,
      ),
    ),
  );
}

/** On narrow screens the cell with most is scrolled into view: hosts in their order can leave the first columns empty. */
function showStrongest(place) {
  const scroller = place.querySelector(".scroller");
  if (!scroller || scroller.scrollWidth <= scroller.clientWidth) return;
  const cells = [...scroller.querySelectorAll("td[data-value]")];
  const most = cells.reduce((most, cell) => (Number(cell.dataset.value) > Number(most?.dataset.value ?? 0) ? cell : most), null);
  if (most) scroller.scrollLeft = Math.max(0, most.offsetLeft + most.offsetWidth + 8 - scroller.clientWidth);
}
