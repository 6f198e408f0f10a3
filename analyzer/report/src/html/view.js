// What is being looked at: the stretch of time, the flows, the hosts. It stands in the address, so that a link keeps it.

const view = {
  from: 0,
  to: 1,
  /** Flows by id; empty for all. */
  flows: new Set(),
  /** Hosts: null for all. */
  source: null,
  destination: null,
  host: null,
  /** The tap whose packets are drawn; null for those that count. */
  tap: null,
  /** The flow whose page is open. */
  flow: null,
  /** The table that is open. */
  tab: "flows",
};

const listeners = [];

/** Calls `listener` with the names of what has changed, now and whenever it does. */
function onView(listener) {
  listeners.push(listener);
}

/** Changes the view. */
function look(change) {
  const changed = new Set();
  for (const [key, value] of Object.entries(change)) {
    const same =
      value instanceof Set
        ? value.size === view[key].size && [...value].every((one) => view[key].has(one))
        : view[key] === value;
    if (!same) changed.add(key);
    view[key] = value;
  }
  if (!changed.size) return;
  writeAddress();
  for (const listener of listeners) listener(changed);
}

/** Looks at a stretch of time, no shorter than two slots or a microsecond, and within the run. */
function lookAt(from, to) {
  const least = Math.max(1000, Math.min(2 * model.head.width, (model.end - model.begin) / 50));
  let length = Math.min(Math.max(to - from, least), model.end - model.begin);
  let begin = (from + to - length) / 2;
  begin = Math.max(model.begin, Math.min(begin, model.end - length));
  look({ from: Math.round(begin), to: Math.round(begin + length) });
}

const zoom = (factor, around = (view.from + view.to) / 2) =>
  lookAt(around - (around - view.from) * factor, around + (view.to - around) * factor);
const wholeRun = () => look({ from: model.begin, to: model.end });
const isWhole = () => view.from <= model.begin && view.to >= model.end;
const isFiltered = () => view.flows.size > 0 || view.source != null || view.destination != null || view.host != null;

/** Whether a flow is among those that are looked at. */
function isShown(flow) {
  if (view.flows.size && !view.flows.has(flow.id)) return false;
  if (view.source == null && view.destination == null && view.host == null) return true;
  const source = flowValue(flow, "source"),
    destination = flowValue(flow, "destination");
  if (view.source != null && source !== view.source) return false;
  if (view.destination != null && destination !== view.destination) return false;
  return view.host == null || source === view.host || destination === view.host;
}

/** Whether a flow is seen at the tap that is looked at. */
function isHere(flow) {
  return view.tap == null ? flow.counted : flow.tap === view.tap;
}

let writing = 0;

/** Writes the view into the address, once things have settled. */
function writeAddress() {
  clearTimeout(writing);
  writing = setTimeout(() => {
    const parts = new URLSearchParams();
    if (!isWhole()) parts.set("t", `${view.from - model.begin}-${view.to - model.begin}`);
    if (view.flows.size) parts.set("flows", [...view.flows].join("."));
    for (const key of ["source", "destination", "host", "tap", "flow"])
      if (view[key] != null) parts.set(key, view[key]);
    if (view.tab !== "flows") parts.set("tab", view.tab);
    const text = parts.toString();
    if (text !== location.hash.slice(1)) {
      try {
        history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
      } catch {
        // A browser that forbids it for files: then the address stays as it is.
      }
    }
  }, 120);
}

/** Takes the view from the address; what is not understood is left out. */
function readAddress() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const known = (id) => model.flowById.has(id);
  const change = {
    flows: new Set((parts.get("flows") ?? "").split(".").filter(known)),
    source: parts.get("source"),
    destination: parts.get("destination"),
    host: parts.get("host"),
    tap: model.taps.has(Number(parts.get("tap") ?? NaN)) ? Number(parts.get("tap")) : null,
    flow: known(parts.get("flow")) ? parts.get("flow") : null,
    tab: parts.get("tab") ?? "flows",
    from: model.begin,
    to: model.end,
  };
  const stretch = /^(\d+)-(\d+)$/.exec(parts.get("t") ?? "");
  if (stretch) {
    const [from, to] = [Number(stretch[1]) + model.begin, Number(stretch[2]) + model.begin];
    if (from < to && from < model.end) Object.assign(change, { from, to: Math.min(to, model.end) });
  }
  look(change);
}

/** Whether the address is one of the page's parts (`#tables`) rather than a view. */
const isPart = () => /^#[a-z]*$/.test(location.hash);
