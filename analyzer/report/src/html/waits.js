// Who waits for whom: ports that pauses stopped, from the flows' side on the left to the root on the right.

/** Limit of ports that are drawn; the table has all. */
const MAX_PORTS_DRAWN = 48;
/** Sizes in pixels. A character of the pictures' font takes about `character`; longer texts than `characters` are shortened. */
const BOX = { height: 40, across: 44, down: 14, margin: 8, padding: 10, character: 7, characters: 24, least: 72 };
const ROOTS = {
  contention: ["contention", "incast"],
  slow_receiver: ["slow receiver", "rnr"],
  pause_storm: ["pause storm", "loss"],
  loop: ["loop: a deadlock", "loss"],
  unclear: ["cause unclear", "stall"],
};

/** An element of a picture. */
function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) if (value != null) element.setAttribute(key, value);
  element.append(...children.flat().filter((child) => child != null));
  return element;
}

/** Both names in one; a port whose own name begins with its node's (`leaf1:h1`) is called by it alone. */
const portName = (node, port) => (node != null && (port === node || port?.startsWith(`${node}:`)) ? port : [node ?? "unknown", port].filter((part) => part != null).join(" "));

/** Ports and the waits between them, each once. */
function waitGraph() {
  const ports = new Map(),
    edges = new Map();
  // Ports that nobody names are one only where there is one root: else they would join what does not belong together.
  const roots = new Set(model.run.waits.filter((row) => row.is_root).map((row) => portName(row.waits_for_node, row.waits_for_port)));
  const add = (node, port, other) => {
    const key = node == null && port == null && roots.size > 1 ? `unknown beside ${other}` : portName(node, port);
    if (!ports.has(key)) ports.set(key, { key, node: node ?? "unknown", port: port ?? "", next: new Set(), before: new Set(), root: null });
    return ports.get(key);
  };
  for (const row of model.run.waits) {
    const from = add(row.node, row.port, portName(row.waits_for_node, row.waits_for_port)),
      to = add(row.waits_for_node, row.waits_for_port, portName(row.node, row.port));
    if (row.is_root) to.root = row.root_kind;
    if (from === to) continue;
    from.next.add(to);
    to.before.add(from);
    const key = `${from.key} > ${to.key}`;
    const edge = edges.get(key) ?? { from, to, inside: row.node != null && row.node === row.waits_for_node, flows: new Set(), paused: null, confidence: row.confidence };
    if (row.victim_flow) edge.flows.add(row.victim_flow);
    if (row.paused_ns != null) edge.paused = Math.max(edge.paused ?? 0, row.paused_ns);
    edges.set(key, edge);
  }
  return { ports: [...ports.values()], edges: [...edges.values()] };
}

/** Columns: the distance to what waits for nothing further; ports of a circle keep the one that they are met in first. */
function layOut(ports) {
  const open = ports.filter((port) => !port.next.size || port.root);
  for (const port of open) port.column = 0;
  for (let place = 0; place < open.length; place++) {
    for (const before of open[place].before) {
      if (before.column != null) continue;
      before.column = open[place].column + 1;
      open.push(before);
    }
  }
  const drawn = open.slice(0, MAX_PORTS_DRAWN),
    last = Math.max(0, ...drawn.map((port) => port.column)),
    rows = [];
  for (const port of drawn) {
    port.column = last - port.column;
    port.row = rows[port.column] ?? 0;
    rows[port.column] = port.row + 1;
  }
  return { drawn, columns: last + 1, rows: Math.max(1, ...rows.filter(Boolean)) };
}

const shortened = (text) => (text.length > BOX.characters ? `${text.slice(0, BOX.characters - 1)}…` : text);

/** The two lines of a port's box. */
const boxLines = (port) => [port.node, [port.port, ROOTS[port.root]?.[0]].filter(Boolean).join(" – ")].map(shortened);

/** The left and the width of each column: as wide as its longest line, so that a way of eight ports fits on a page. */
function columnPlaces(drawn, columns) {
  const places = [];
  let left = BOX.margin;
  for (let column = 0; column < columns; column++) {
    const lines = drawn.filter((port) => port.column === column).flatMap(boxLines),
      width = Math.max(BOX.least, ...lines.map((line) => line.length * BOX.character + 2 * BOX.padding));
    places.push({ left, width });
    left += width + BOX.across;
  }
  return places;
}

/** A wait in words. */
function waitText(edge) {
  const more = [
    edge.flows.size ? many(edge.flows.size, "flow") : null,
    edge.paused != null ? `paused ${duration(edge.paused)}` : null,
    edge.inside ? "within the switch" : null,
    `confidence ${edge.confidence}`,
  ];
  const root = edge.to.root ? ` (${ROOTS[edge.to.root]?.[0] ?? edge.to.root})` : "";
  return `${edge.from.key} waits for ${edge.to.key}${root}: ${more.filter(Boolean).join(", ")}`;
}

function buildWaits() {
  const section = $("waits"),
    rows = model.run.waits ?? [];
  section.hidden = !rows.length;
  if (!rows.length) return;
  const { ports, edges } = waitGraph(),
    { drawn, columns, rows: high } = layOut(ports);
  const places = columnPlaces(drawn, columns),
    end = places[columns - 1];
  const x = (port) => places[port.column].left,
    wide = (port) => places[port.column].width,
    y = (port) => BOX.margin + port.row * (BOX.height + BOX.down);
  const width = end.left + end.width + BOX.margin,
    height = 2 * BOX.margin + high * BOX.height + (high - 1) * BOX.down;
  const shown = new Set(drawn);
  const lines = edges
    .filter((edge) => shown.has(edge.from) && shown.has(edge.to))
    .map((edge) => {
      const ahead = edge.from.column < edge.to.column,
        [x1, y1] = [x(edge.from) + (ahead ? wide(edge.from) : 0), y(edge.from) + BOX.height / 2],
        [x2, y2] = [x(edge.to) + (ahead ? -3 : wide(edge.to) + 3), y(edge.to) + BOX.height / 2],
        bend = (ahead ? 1 : -1) * Math.max(BOX.across / 2, Math.abs(x2 - x1) / 3);
      return svg(
        "path",
        { class: `wait ${edge.inside ? "inside" : "cable"} ${edge.confidence}`, d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`, "marker-end": "url(#wait-head)" },
        svg("title", {}, waitText(edge)),
      );
    });
  const boxes = drawn.map((port) => {
    const [label, kind] = ROOTS[port.root] ?? [],
      [node, name] = boxLines(port);
    const box = svg(
      "g",
      { class: port.root ? "port root" : "port", transform: `translate(${x(port)} ${y(port)})`, "data-port": port.key, "data-root": port.root },
      svg("title", {}, label ? `${port.key}: ${label}` : port.key),
      svg("rect", { width: wide(port), height: BOX.height, rx: 6 }),
      svg("text", { x: BOX.padding, y: 17, class: "node" }, node),
      svg("text", { x: BOX.padding, y: 33 }, name),
    );
    if (kind) box.style.setProperty("--tone", `var(--kind-${kind})`);
    return box;
  });
  const words = edges.map(waitText);
  const picture = svg(
    "svg",
    { class: "waits", role: "img", "aria-label": words.slice(0, 20).join(". "), viewBox: `0 0 ${width} ${height}`, width, height },
    svg("defs", {}, svg("marker", { id: "wait-head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, svg("path", { d: "M0 0L8 4L0 8z", class: "head" }))),
    lines,
    boxes,
  );
  const left = ports.length - drawn.length,
    scroller = el("div", { class: "scroller", tabIndex: 0, role: "region", "aria-label": "Ports that wait: scrolls" }, picture);
  $("waits-place").replaceChildren(
    ...[
      scroller,
      left > 0 ? el("p", { class: "quiet" }, `${many(left, "more port")} in the table waits.`) : null,
      el("details", {}, el("summary", {}, "In words"), el("ul", {}, words.slice(0, 200).map((text) => el("li", {}, text)))),
    ].filter(Boolean),
  );
  // Where the picture does not fit, the roots are what one sees first.
  scroller.scrollLeft = scroller.scrollWidth;
}
