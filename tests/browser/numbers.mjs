// The numbers of a report are those of its run: what is written, what tables hold, and what is drawn.

import assert from "node:assert/strict";

import { REPORTS, alike, check, copied, documentOf, legend, painted, places, report, says, settled, summed, tablesOf, values } from "./browser.mjs";

const sum = (list) => list.reduce((all, value) => all + value, 0);
const counted = (tables, name) => sum(tables.flows.filter((flow) => flow.counted).map((flow) => flow[name]));

for (const name of REPORTS) {
  const run = documentOf(name), tables = tablesOf(name);

  check(`${name}: the headline and the verdicts`, report(name), {}, async (page) => {
    // Traffic that several taps saw counts once: then the flows that count are added up.
    const once = run.totals.seen_again > 0;
    const total = (total, column) => (once ? counted(tables, column) : run.totals[total]);
    // Losses between two taps are counted there, as the verdict does.
    const loss = run.findings.find((finding) => finding.id === "loss.network")?.evidence;
    const alone = ["network_lost", "lost_downstream", "response_network_lost"].map((column) => total(column, column));
    const lost = loss?.between_taps ? loss.lost : sum(alone);
    if (lost !== sum(alone)) assert.match((await page.locator('[data-total="lost"]').innerText()).replaceAll("\u2009", ""), new RegExp(`single taps show ${sum(alone)}`));
    const wanted = {
      wire_bytes: total("wire_bytes", "wire_bytes"), payload_bytes: total("payload_bytes", "payload_bytes"), cnp: total("cnp", "cnp") + (once ? run.totals.cnp_unattributed : 0),
      flows: once ? tables.flows.filter((flow) => flow.counted).length : run.totals.flows, retransmitted_packets: total("retransmitted_packets", "retransmitted_packets"), lost,
      pause_frames: run.totals.pause_frames,
    };
    for (const [tile, value] of Object.entries(wanted)) says(await page.locator(`[data-total="${tile}"] b`).innerText(), value, tile);
    const [ce, data] = [total("data_ce", "ce"), total("data_packets", "data_packets")];
    says(await page.locator('[data-total="data_ce"] b').innerText(), ce / data, "the share of CE");
    assert.match((await page.locator('[data-total="data_ce"]').innerText()).replaceAll("\u2009", ""), new RegExp(`${ce} of ${data} data packets`));
    assert.match((await page.locator("#subtitle").innerText()).replaceAll("\u2009", ""), new RegExp(` ${run.totals.frames} frames`));

    const rank = ["critical", "warning", "info", "ok"], found = await page.locator(".verdict").evaluateAll((cards) => cards.map((card) => ({
      id: card.dataset.finding, severity: card.querySelector(".severity").textContent, summary: card.querySelector(".summary").textContent, text: card.textContent,
      facts: Object.fromEntries([...card.querySelectorAll("[data-fact]")].map((fact) => [fact.dataset.fact, fact.querySelector("dd").textContent])),
    })));
    assert.deepEqual(found.map(({ id, severity, summary }) => ({ id, severity, summary })), run.findings.map(({ id, severity, summary }) => ({ id, severity, summary })));
    assert.deepEqual(found.map(({ severity }) => rank.indexOf(severity)), run.findings.map(({ severity }) => rank.indexOf(severity)).sort(), "the worst first");
    run.findings.forEach((finding, place) => {
      assert.deepEqual(Object.keys(found[place].facts).sort(), Object.keys(finding.evidence).sort());
      for (const [fact, value] of Object.entries(finding.evidence)) {
        if (Number.isInteger(value) && !/_(ns|bps)$|share/.test(fact)) says(found[place].facts[fact], value, `${finding.id}, ${fact}`);
      }
      for (const text of [finding.next_step, `${finding.confidence} confidence`]) assert.ok(found[place].text.includes(text), text);
    });
  });

  check(`${name}: every slot of the timeline`, report(name), {}, async (page) => {
    assert.match(await page.locator("#track-notes").innerText(), /One slot is one bin/);
    const shown = await values(page), per = tables.bin_ns / 8e9;
    assert.equal(shown.rows, tables.bins);
    alike(shown.time.map((time) => time - shown.time[0]), shown.time.map((_, slot) => slot * tables.bin_ns), "time");
    const { whole } = tables, zero = new Array(tables.bins).fill(0), of = (column) => whole[column] ?? zero;
    alike(summed(shown, "rate").map((rate) => rate * per), of("wire_bytes"), "bytes of all flows");
    let alone = 0;
    for (const [column, list] of shown.lists) {
      const [track, flow] = column.split(":");
      if (track !== "rate" || !tables.series[flow]) continue;
      alike(list.map((rate) => rate * per), tables.series[flow].wire_bytes, `bytes of ${flow}`);
      alone++;
    }
    assert.equal(alone, Math.min(7, Object.keys(tables.series).length), "flows with a colour of their own");
    alike(summed(shown, "ce"), of("ce").map((ce, slot) => (of("data_packets")[slot] ? ce / of("data_packets")[slot] : 0)), "share of CE");
    alike(summed(shown, "cnp"), of("cnp").map((cnp, slot) => cnp + of("cnp_unattributed")[slot]), "CNPs");
    alike(summed(shown, "retransmitted"), of("retransmitted_packets"), "retransmitted");
    for (const column of ["reordered", "network_lost", "capture_lost", "ambiguous", "unresolved", "lost_downstream"]) {
      alike((shown.lists.get(`lost:${column}`) ?? zero).map((value) => value ?? 0), of(column), column);
    }
    alike(summed(shown, "inflight"), of("inflight_bytes_max"), "in flight");
    const longest = [...shown.lists].find(([column]) => column.startsWith("rtt:"))?.[1] ?? zero;
    alike(longest.map((value) => value ?? 0), of("ack_rtt_max_ns"), "longest ACK time");
    const most = Math.max(0, ...Object.values(tables.senders).flat());
    assert.equal(Math.max(0, ...[...shown.lists].filter(([column]) => column.startsWith("incast:")).flatMap(([, list]) => list)), most > 1 ? most : 0, "senders at once");
  });

  check(`${name}: who talks to whom, and the tables`, report(name), {}, async (page) => {
    const pairs = new Map();
    for (const flow of tables.flows.filter((flow) => flow.counted)) {
      const key = `${flow.source} ${flow.destination}`, pair = pairs.get(key) ?? { bytes: 0, ce: 0, lost: 0 };
      pairs.set(key, { bytes: pair.bytes + flow.payload_bytes, ce: pair.ce + flow.ce, lost: pair.lost + flow.network_lost + flow.lost_downstream + flow.response_network_lost });
    }
    for (const measure of ["bytes", "ce", "lost"]) {
      await page.locator(`#matrix-measure [data-measure="${measure}"]`).click();
      const cells = await page.locator("#matrix-place td[data-source]").evaluateAll((cells) => cells.map((cell) => [`${cell.dataset.source} ${cell.dataset.destination}`, cell.innerText]));
      assert.deepEqual(cells.map(([key]) => key).sort(), [...pairs.keys()].sort());
      for (const [key, text] of cells) if (text !== "·") says(text, pairs.get(key)[measure], `${measure} of ${key}`); else assert.equal(pairs.get(key)[measure], 0);
    }

    const flows = await copied(page, "flows");
    assert.equal(flows.length, tables.flows.length);
    for (const row of flows) {
      const flow = tables.flows.find((flow) => flow.flow_id === row.flow_id && String(flow.tap) === (row.tap ?? "0"));
      for (const column of Object.keys(flow).filter((column) => column in row)) assert.equal(row[column], String(flow[column] ?? ""), column);
    }
    for (const [tab, rows] of [["episodes", run.episodes], ["steps", run.steps], ["hops", run.hops]]) {
      if (!rows.length) continue;
      await page.locator(`[data-tab="${tab}"]`).click();
      await settled(page);
      const shown = await copied(page, tab);
      assert.equal(shown.length, rows.length, tab);
      const columns = Object.keys(shown[0]).filter((column) => column in rows[0]);
      const plain = (rows) => rows.map((row) => columns.map((column) => String(row[column] ?? "")).join(" ")).sort();
      assert.deepEqual(plain(shown), plain(rows), tab);
    }
    await page.locator('[data-tab="events"]').click();
    const events = await copied(page, "events"), list = (events) => events.map(({ time, kind, psn }) => `${time} ${kind} ${psn ?? ""}`).sort();
    assert.deepEqual(list(events), list(tables.events));
  });

  // The busiest flow alone, in slots that are wide enough to be looked at one by one.
  const [busiest, series] = Object.entries(tables.series).sort((a, b) => sum(b[1].wire_bytes) - sum(a[1].wire_bytes))[0];
  const slots = Math.min(30, tables.bins), span = `t=0-${slots * tables.bin_ns}`;
  check(`${name}: pixels stand where values are`, report(name), { hash: `flows=${busiest}&${span}` }, async (page) => {
    const list = series.wire_bytes.slice(0, slots), most = Math.max(...list);
    const columns = await painted(page, "rate", Object.values(await legend(page, "rate"))[0]), { x } = await places(page, "rate");
    // A line over the bars covers some pixels of them, nowhere all.
    const heights = list.map((_, slot) => Math.max(...columns.slice(Math.ceil(x(slot * tables.bin_ns)) + 1, Math.floor(x((slot + 1) * tables.bin_ns)) - 1)));
    const full = Math.max(...heights);
    assert.ok(full > 30, `the largest value is ${full} pixels high`);
    heights.forEach((height, slot) => {
      const wanted = (list[slot] / most) * full;
      assert.ok(list[slot] === 0 ? height === 0 : Math.abs(height - wanted) <= 2.5, `slot ${slot}: ${height} pixels, expected ${wanted.toFixed(1)}`);
    });
  });
}

check("counters: tracks have the changes of the table", report("counters"), {}, async (page) => {
  const { samples } = tablesOf("counters");
  const drawn = await page.locator(".key[data-series]").evaluateAll((keys) => keys.map((key) => [key.dataset.series, Number(key.dataset.within), key.closest("figure").dataset.track, key.textContent]));
  assert.deepEqual(drawn.map(([series]) => series).sort(), Object.keys(samples).filter((series) => !series.includes("port_hw_counter")).sort());
  // All readings lie on the axis: nothing of a change falls beside it.
  for (const [series, within] of drawn) assert.ok(Math.abs(within - samples[series]) <= 1e-6 * samples[series], `${series}: ${within}, expected ${samples[series]}`);
  for (const [series, , track] of drawn) {
    if (/ pfc_/.test(series)) assert.match(track, /^counters-pfc-/, series);
    if (/ pause_(received|transmitted|receive|transmit)/.test(series)) assert.match(track, /^counters-pause-(time|frames)-/, series);
  }
  const order = await page.locator('.track[data-track^="counters-"]').evaluateAll((tracks) => tracks.map((track) => track.dataset.track.replace(/^counters-|-\d+$/g, "")));
  assert.deepEqual(order, ["pfc-time", "pfc-frames", "pause-frames", "ecn", "cnps", "recovery", "bytes"]);
  assert.match(await page.locator("#track-missing").innerText(), /Other counters \(1 more that moved are in the table samples\)/);
  // In numbers, slot by slot: what a rate is in 10 ms adds up to the change, but for the slots that the first and last reading cut.
  // The last row loses its empty cells when it is copied.
  const shown = await values(page), known = (list) => list.map((value) => (Number.isFinite(value) ? value : 0));
  const [column, sent] = [...shown.lists].find(([name]) => name.startsWith("counters-cnps") && name.includes("sent")), rates = known(sent);
  const total = rates.reduce((all, rate) => all + rate * 0.01, 0), wanted = samples["mlx5_0:1 port_cnp_sent  "];
  assert.ok(Math.abs(total - wanted) <= 2 * 0.01 * Math.max(...rates), `${column}: ${total}, expected ${wanted}`);
  // A pause by PFC for half of the time is 50 %.
  const [, paused] = [...shown.lists].find(([name]) => name.startsWith("counters-pfc-time"));
  assert.ok(Math.abs(Math.max(...known(paused)) - 0.5) < 1e-6, `${Math.max(...known(paused))}`);
});

check("lossy: losses are drawn in their slots alone", report("lossy"), {}, async (page) => {
  const { whole, bin_ns: bin } = tablesOf("lossy"), colour = (await legend(page, "lost"))["lost in the network"];
  const columns = await painted(page, "lost", colour), { x } = await places(page, "lost");
  const drawn = whole.network_lost.map((_, slot) => columns.slice(Math.ceil(x(slot * bin)) + 1, Math.floor(x((slot + 1) * bin)) - 1).some((pixels) => pixels > 0));
  assert.deepEqual(drawn, whole.network_lost.map((lost) => lost > 0));
});
