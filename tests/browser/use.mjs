// What one does with a report: zoom, point, filter, sort, copy, follow a verdict, open a flow.

import assert from "node:assert/strict";

import { alike, check, copied, documentOf, places, report, settled, stretch, summed, tablesOf, values } from "./browser.mjs";

const near = (found, expected, room, what) => assert.ok(Math.abs(found - expected) <= room, `${what}: ${found}, expected ${expected}`);
const address = (page, wanted) => page.waitForFunction((wanted) => new RegExp(wanted).test(location.hash), wanted);
const filtered = (page) => page.locator("#filter").innerText();

check("the wheel scrolls the page until the timeline is clicked; then it zooms around the pointer", report("incast"), {}, async (page) => {
  const whole = await stretch(page), at = whole.length / 3;
  const point = async () => {
    const { box, x } = await places(page, "rate");
    await page.mouse.move(box.x + x(at), box.y + 20);
  };
  await point();
  await page.mouse.wheel(0, -100);
  await page.waitForTimeout(100);
  assert.deepEqual(await stretch(page), whole);
  await point();
  await page.mouse.down();
  await page.mouse.up();
  await page.mouse.wheel(0, -300);
  await page.waitForFunction((to) => Number(document.getElementById("tracks").dataset.to) < to, whole.to);
  const closer = await stretch(page);
  assert.ok(closer.length < 0.8 * whole.length && closer.length > 0.2 * whole.length, `from ${whole.length} to ${closer.length}`);
  near((at - closer.from) / closer.length, (at - whole.from) / whole.length, 0.01, "the moment under the pointer stays there");
  await page.mouse.wheel(0, 900);
  await page.waitForFunction((length) => document.getElementById("tracks").dataset.to - document.getElementById("tracks").dataset.from > length, closer.length);
});

check("a drag zooms to what it covers, a double click shows the whole run, Shift moves along", report("incast"), {}, async (page) => {
  const whole = await stretch(page), { box, x } = await places(page, "rate");
  const drag = async (from, to) => {
    await page.mouse.move(box.x + from, box.y + 60);
    await page.mouse.down();
    await page.mouse.move(box.x + (from + to) / 2, box.y + 60);
    await page.mouse.move(box.x + to, box.y + 60);
    await page.mouse.up();
  };
  await drag(x(0.6e6), x(1.2e6));
  const part = await stretch(page);
  near(part.from, 0.6e6, 5e3, "begin");
  near(part.to, 1.2e6, 5e3, "end");
  await address(page, `t=${part.from}-${part.to}`);
  const { whole: all } = tablesOf("incast"), shown = await values(page), first = Math.floor(part.from / 1e5);
  alike(summed(shown, "rate"), all.wire_bytes.slice(first, first + shown.rows).map((bytes) => (bytes * 8e9) / 1e5), "the table shows what the timeline shows");
  assert.ok(shown.rows >= 6 && shown.rows <= 7, `${shown.rows} rows`);
  await page.locator('[data-track="rate"] canvas').scrollIntoViewIfNeeded();
  await page.keyboard.down("Shift");
  await drag(box.width * 0.6, box.width * 0.5);
  await page.keyboard.up("Shift");
  const along = await stretch(page);
  near(along.length, part.length, 2, "length");
  near(along.from - part.from, (0.1 * box.width * whole.length) / (x(whole.length) - x(0)) / (whole.length / part.length), 3e3, "moved by");
  await page.mouse.dblclick(box.x + 400, box.y + 60);
  assert.deepEqual(await stretch(page), whole);
});

check("keys and buttons zoom, move and read values", report("incast"), {}, async (page) => {
  const whole = await stretch(page), press = async (key) => { await page.keyboard.press(key); return stretch(page); };
  await page.locator("#tracks").focus();
  const half = await press("+");
  near(half.length, whole.length / 2, 2, "+ halves");
  near(half.from, whole.length / 4, 2, "around the middle");
  near((await press("Shift+ArrowRight")).from - half.from, half.length / 4, 2, "Shift and the arrow move by a quarter");
  near((await press("-")).length, whole.length, 2, "- doubles");
  await press("+");
  assert.deepEqual(await press("0"), whole);
  await press("Home");
  for (let i = 0; i < 8; i++) await press("ArrowRight");
  const slot = Math.floor(Number(await page.locator("#readout").getAttribute("data-time")) / 1e5);
  assert.equal(slot, 8);
  const { wire_bytes: bytes } = tablesOf("incast").whole;
  alike([Number(await page.locator('#readout [data-track="rate"]').getAttribute("data-value"))], [(bytes[slot] * 8e9) / 1e5], "the rate that is read");
  assert.match(await page.locator("#announce").textContent(), /Rate/);
  await page.locator("#zoom-in").click();
  near((await stretch(page)).length, whole.length / 2, 2, "the button");
  await page.locator("#zoom-out").click();
  near((await stretch(page)).length, whole.length, 2, "the other one");
  await page.locator("#zoom-in").click();
  await page.locator("#zoom-all").click();
  assert.deepEqual(await stretch(page), whole);
});

check("tables filter by words and conditions, and sort", report("incast"), {}, async (page) => {
  const { flows } = tablesOf("incast"), input = page.locator('[data-grid="flows"] input'), rows = () => copied(page, "flows");
  const wanted = (test) => flows.filter(test).map(({ flow_id, tap }) => `${flow_id} ${tap}`).sort();
  const shown = (rows) => rows.map(({ flow_id, tap }) => `${flow_id} ${tap}`).sort();
  await input.fill("ce>50");
  assert.deepEqual(shown(await rows()), wanted((flow) => flow.ce > 50));
  await input.fill("10.0.0.4 ce>50");
  assert.deepEqual(shown(await rows()), wanted((flow) => flow.ce > 50 && [flow.source, flow.destination].includes("10.0.0.4")));
  await input.fill("no such thing");
  assert.equal(await page.locator('[data-grid="flows"]').getAttribute("data-rows"), "0");
  await input.fill("");
  for (const column of ["ce", "packets", "source"]) {
    const head = page.locator(`[data-grid="flows"] th button[data-column="${column}"]`), values = async () => (await rows()).map((row) => row[column]);
    const numeric = column !== "source", order = (list, sign) => [...list].sort((a, b) => sign * (numeric ? a - b : a.localeCompare(b, "en", { numeric: true })));
    const before = await values();
    await head.click();
    assert.deepEqual(await values(), order(before, numeric ? -1 : 1), column);
    assert.equal(await page.locator(`[data-grid="flows"] th:has(button[data-column="${column}"])`).getAttribute("aria-sort"), numeric ? "descending" : "ascending");
    const first = await page.locator(`[data-grid="flows"] tbody tr[data-row] td[data-column="${column}"]`).first().getAttribute("data-value");
    assert.equal(first, (await values())[0], "what is seen is what is copied");
    await head.click();
    assert.deepEqual(await values(), order(before, numeric ? 1 : -1), `${column}, the other way`);
  }
});

check("a cell of the matrix filters everything, and again nothing", report("incast"), {}, async (page) => {
  const tables = tablesOf("incast"), before = summed(await values(page), "rate");
  const pair = (flow) => flow.source === "10.0.0.3" && flow.destination === "10.0.0.7";
  const cell = page.locator('#matrix-place td[data-source="10.0.0.3"][data-destination="10.0.0.7"] button');
  await cell.click();
  await settled(page);
  assert.match(await filtered(page), /from 10\.0\.0\.3[^]*to 10\.0\.0\.7/);
  assert.equal(Number(await page.locator('[data-grid="flows"]').getAttribute("data-rows")), tables.flows.filter(pair).length);
  const bytes = tables.flows.filter((flow) => pair(flow) && flow.counted).map((flow) => tables.series[flow.flow_id].wire_bytes);
  alike(summed(await values(page), "rate"), bytes.reduce((a, b) => a.map((value, slot) => value + b[slot])).map((sum) => (sum * 8e9) / tables.bin_ns), "the timeline");
  await address(page, "source=10.0.0.3.*destination=10.0.0.7");
  await cell.click();
  assert.equal(await page.locator("#filter").isVisible(), false);
  alike(summed(await values(page), "rate"), before, "the timeline after it");
});

for (const [name, rule, kind] of [["lossy", "loss.network", "loss"], ["incast", "incast", "incast"], ["pause-storm", "pause.storm", "pause"], ["write_bw_loss", "stall", "stall"]]) {
  check(`${name}: the link of ${rule} leads to its time and flows`, report(name), {}, async (page) => {
    const run = documentOf(name), finding = run.findings.find(({ id }) => id === rule), begin = BigInt(tablesOf(name).begin);
    const at = (time) => Number(BigInt(time) - begin), first = at(finding.first_time), bin = tablesOf(name).bin_ns;
    const episode = run.episodes.find((episode) => episode.kind === kind && at(episode.start_time) <= first + bin && first <= at(episode.end_time));
    const whole = await stretch(page);
    await page.locator(`[data-finding="${rule}"] .show`).click();
    const shown = await stretch(page);
    assert.ok(shown.from <= first && first <= shown.to, `${first} is in ${shown.from} to ${shown.to}`);
    assert.ok(shown.from <= Math.max(at(episode.start_time), whole.from) && Math.min(at(episode.end_time), whole.to) <= shown.to, "the whole episode");
    assert.ok(shown.length <= Math.max(4 * (at(episode.end_time) - at(episode.start_time)), 12 * bin), "and not much else");
    const named = [...`${finding.summary} ${Object.values(finding.evidence).join(" ")}`.matchAll(/(\S+) > (\S+) QP 0x([0-9a-f]+)/g)].map(([, source, destination, qpn]) =>
      tablesOf(name).flows.find((flow) => flow.source === source && flow.destination === destination && flow.destination_qpn === parseInt(qpn, 16)).flow_id);
    const flows = [...new Set(named.length ? named : episode.flow_ids.split(" "))].sort();
    await address(page, "flows=");
    const hash = new URLSearchParams(new URL(page.url()).hash.slice(1));
    assert.deepEqual(hash.get("flows").split(".").sort(), flows);
    const top = await page.locator("#timeline").evaluate((element) => element.getBoundingClientRect().top);
    assert.ok(top >= -5 && top < 450, `the timeline is in view, at ${top}`);
    assert.equal(await page.evaluate(() => document.activeElement.id), "tracks");
  });
}

const LOSER = "54d3ad326a944971";
check("a flow opens by its address, with its numbers, events and PSNs, and closes with Escape", report("lossy"), { hash: `flow=${LOSER}` }, async (page) => {
  const tables = tablesOf("lossy"), flow = tables.flows.find(({ flow_id }) => flow_id === LOSER), dialog = page.locator("dialog#flow");
  assert.ok(await dialog.isVisible());
  assert.match(await page.locator("#flow-title").innerText(), new RegExp(`${flow.source} > ${flow.destination} QP 0x${flow.destination_qpn.toString(16)}`));
  for (const column of ["packets", "wire_bytes", "network_lost", "retransmitted_packets"]) {
    assert.equal(await dialog.locator(`[data-column="${column}"][data-value]`).first().getAttribute("data-value"), String(flow[column]), column);
  }
  const marked = (events, kinds) => events.filter(({ kind }) => kinds.includes(kind)).length;
  const label = await page.locator("#psn-canvas").getAttribute("aria-label");
  assert.match(label, new RegExp(`${marked(tables.events, ["gap"])} × missing`));
  assert.match(label, new RegExp(`${marked(tables.events, ["retransmission_run"])} × retransmitted`));
  assert.match(label, new RegExp(`${documentOf("lossy").totals.naks} × NAK`));
  const drawn = await page.locator("#psn-canvas").evaluate((canvas) => {
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, colours = new Map();
    for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3] > 200) { const key = pixels.slice(i, i + 3).join(); colours.set(key, (colours.get(key) ?? 0) + 1); }
    return colours.size;
  });
  assert.ok(drawn >= 3, "the line and its marks");
  const whole = await stretch(page), box = await page.locator("#psn-canvas").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 50);
  await page.mouse.wheel(0, -300);
  await page.waitForFunction((to) => Number(document.getElementById("tracks").dataset.to) < to, whole.to);
  await page.keyboard.press("Escape");
  await settled(page);
  assert.equal(await dialog.isVisible(), false);
  await page.waitForFunction(() => !location.hash.includes("flow="));
  // From the table, and on to its other direction.
  await page.locator('[data-grid="flows"] tbody button.link').first().click();
  assert.match(await page.locator("#flow-title").innerText(), /QP 0x/);
  const before = await page.locator("#flow-title").innerText();
  await page.locator("#flow").getByText("The other direction").click();
  assert.notEqual(await page.locator("#flow-title").innerText(), before);
  await page.locator("#flow-timeline").click();
  assert.match(await filtered(page), /QP 0x/);
});

for (const [name, column, lane] of [["incast", "ce", "ce"], ["incast", "cnp", "cnp"], ["pause-storm", "pause_ns", "pause"]]) {
  check(`${name}: the page of a flow with ${column} has a lane for it`, report(name), {}, async (page) => {
    const { flows } = documentOf(name), lanes = page.locator("#flow-lanes");
    const most = flows.filter((flow) => flow.data_packets).sort((a, b) => (b[column] ?? 0) - (a[column] ?? 0))[0];
    assert.ok(most[column] > 0);
    await page.evaluate((id) => { location.hash = `flow=${id}`; }, most.flow_id);
    await page.locator("dialog#flow").waitFor();
    await settled(page);
    assert.ok((await lanes.getAttribute("data-lanes")).split(" ").includes(lane));
    assert.match(await lanes.getAttribute("aria-label"), /\d/);
    for (const title of await page.locator("#flow dl.numbers dt").allInnerTexts()) assert.doesNotMatch(title, / (ns|bps)$/, "the value has its unit");
  });
}

check("zoomed, the small timeline keeps the ends of the whole run", report("incast"), {}, async (page) => {
  const dark = () => page.locator("#overview canvas").evaluate((canvas) => {
    const scale = canvas.width / canvas.clientWidth, from = Math.round(36 * scale);
    const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height - from });
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(canvas, 0, -from);
    const pixels = context.getImageData(0, 0, copy.width, copy.height).data;
    let drawn = "";
    for (let i = 3; i < pixels.length; i += 4) drawn += pixels[i] > 60 ? "1" : "0";
    return drawn;
  });
  const whole = await dark();
  assert.ok(whole.includes("1"), "there is text below it");
  await page.locator("#zoom-in").click();
  await settled(page);
  assert.equal(await dark(), whole, "and it stays");
});

check("on a narrow screen the strongest cell of the matrix is in view", report("incast"), { width: 390, height: 844 }, async (page) => {
  const seen = await page.locator("#matrix-place .scroller").evaluate((scroller) => {
    const cells = [...scroller.querySelectorAll("td[data-value]")].sort((a, b) => Number(b.dataset.value) - Number(a.dataset.value));
    const [box, cell] = [scroller.getBoundingClientRect(), cells[0].getBoundingClientRect()];
    return cell.left >= box.left && cell.right <= box.right + 1;
  });
  assert.ok(seen);
});
