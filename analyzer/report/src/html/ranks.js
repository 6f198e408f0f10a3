// Who is late: ranks as rows, collectives as columns. In each column time goes from the first start to the last end; a bar is what a rank did, and
// what stands before it is its late start.

/** Limits of what is drawn; the table has all. */
const MAX_RANKS_DRAWN = 32,
  MAX_COLLECTIVES_DRAWN = 16,
  MAX_RANKS_JOINED = 12;
/** Sizes in pixels. */
const RANK_LANE = { height: 20, gap: 8, left: 170, column: 90, between: 14, margin: 8, head: 20 };
const PARTS = [
  ["waits_input_ns", "input", "waits for input"],
  ["waits_credit_ns", "credit", "waits for a credit"],
  ["network_ns", "network", "network"],
];

const rankName = (rank, host) => (rank == null ? host : `rank ${rank} (${host})`);

function rankText(row) {
  const parts = PARTS.filter(([column]) => row[column] > 0).map(([column, , label]) => `${label} ${duration(row[column])}`),
    late = row.late_start_ns > 0 ? [`began ${duration(row.late_start_ns)} late${row.carried_over_ns > 0 ? `, ${duration(row.carried_over_ns)} of it carried over` : ""}`] : [],
    waits = row.waits_for_address == null ? [] : [`waited longest for ${rankName(row.waits_for_rank, row.waits_for_address)} (${row.reason})`];
  return `Collective ${row.collective}, ${rankName(row.rank, row.address)}${row.is_root ? ", the root" : ""}: ${[...late, ...parts, ...waits].join(", ") || "waited for nobody"}`;
}

/** The bar of a rank in a collective. */
function rankBar(row, column, lane, wide) {
  const [start, end] = [model.time(row.start_time), model.time(row.end_time)],
    scale = RANK_LANE.column / Math.max(1, column.end - column.start),
    x = wide + (start - column.start) * scale,
    length = Math.max(1, (end - start) * scale);
  let at = x;
  const parts = PARTS.map(([name, kind]) => {
    const width = Math.min(row[name] * scale, x + length - at);
    const part = width > 0.5 ? svg("rect", { class: kind, x: at, y: lane, width, height: RANK_LANE.height }) : null;
    at += Math.max(0, width);
    return part;
  });
  const late = x - wide > 0.5 ? svg("rect", { class: row.is_root ? "late root" : "late", x: wide, y: lane + RANK_LANE.height / 2 - 2, width: x - wide, height: 4 }) : null;
  return svg("g", { class: row.is_root ? "rank root" : "rank" }, svg("title", {}, rankText(row)), late, svg("rect", { class: "works", x, y: lane, width: length, height: RANK_LANE.height }), parts);
}

function buildRanks() {
  const section = $("ranks"),
    all = model.run.collective_waits ?? [];
  section.hidden = !all.length;
  if (!all.length) return;
  // Of several jobs the first is drawn, and of many collectives those around the first one with a root.
  const job = all.find((row) => row.is_root)?.job ?? all[0].job,
    of = all.filter((row) => row.job === job),
    first = Math.max(0, (of.find((row) => row.is_root)?.collective ?? 0) - 1),
    rows = of.filter((row) => row.collective >= first && row.collective < first + MAX_COLLECTIVES_DRAWN),
    hosts = [...new Set(of.map((row) => rankName(row.rank, row.address)))],
    drawn = hosts.slice(0, MAX_RANKS_DRAWN),
    columns = new Map();
  for (const row of rows) {
    const [start, end] = [model.time(row.start_time), model.time(row.end_time)],
      known = columns.get(row.collective) ?? { start, end, place: columns.size };
    columns.set(row.collective, { ...known, start: Math.min(known.start, start), end: Math.max(known.end, end) });
  }
  const wide = (column) => RANK_LANE.left + column.place * (RANK_LANE.column + RANK_LANE.between),
    lane = (name) => RANK_LANE.margin + RANK_LANE.head + drawn.indexOf(name) * (RANK_LANE.height + RANK_LANE.gap),
    width = RANK_LANE.left + columns.size * (RANK_LANE.column + RANK_LANE.between) + RANK_LANE.margin,
    height = 2 * RANK_LANE.margin + RANK_LANE.head + drawn.length * (RANK_LANE.height + RANK_LANE.gap);
  const shown = rows.filter((row) => drawn.includes(rankName(row.rank, row.address)));
  const bars = shown.map((row) => {
    const column = columns.get(row.collective);
    return rankBar(row, column, lane(rankName(row.rank, row.address)), wide(column));
  });
  const arrows = shown
    .filter((row) => drawn.length <= MAX_RANKS_JOINED && !row.is_root && row.waits_for_address != null && drawn.includes(rankName(row.waits_for_rank, row.waits_for_address)))
    .map((row) => {
      const x = wide(columns.get(row.collective)) + RANK_LANE.column + 3,
        [from, to] = [rankName(row.rank, row.address), rankName(row.waits_for_rank, row.waits_for_address)].map((name) => lane(name) + RANK_LANE.height / 2);
      return svg("path", { class: "wait", d: `M${x} ${from}C${x + 9} ${from} ${x + 9} ${to} ${x} ${to}`, "marker-end": "url(#rank-head)" });
    });
  const heads = [...columns].map(([number, column]) =>
    svg("text", { x: wide(column), y: RANK_LANE.margin + 10, class: "column" }, `${number}: ${duration(column.end - column.start)}`),
  );
  const names = drawn.map((name) => svg("text", { x: RANK_LANE.margin, y: lane(name) + RANK_LANE.height - 6 }, shortened(name)));
  const picture = svg(
    "svg",
    { class: "ranks", role: "img", "aria-label": "Ranks and what they waited for, by collective", viewBox: `0 0 ${width} ${height}`, width, height },
    svg("defs", {}, svg("marker", { id: "rank-head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 5, markerHeight: 5, orient: "auto" }, svg("path", { d: "M0 0L8 4L0 8z", class: "head" }))),
    heads,
    names,
    bars,
    arrows,
  );
  const hidden = [
    hosts.length > drawn.length ? many(hosts.length - drawn.length, "more rank") : null,
    new Set(of.map((row) => row.collective)).size > columns.size ? many(new Set(of.map((row) => row.collective)).size - columns.size, "more collective") : null,
  ].filter(Boolean);
  $("ranks-place").replaceChildren(
    ...[
      el("div", { class: "scroller", tabIndex: 0, role: "region", "aria-label": "Ranks by collective: scrolls" }, picture),
      hidden.length ? el("p", { class: "quiet" }, `${hidden.join(" and ")} in the table Who is late.`) : null,
      el("details", {}, el("summary", {}, "In words"), el("ul", {}, shown.slice(0, 200).map((row) => el("li", {}, rankText(row))))),
    ].filter(Boolean),
  );
}
