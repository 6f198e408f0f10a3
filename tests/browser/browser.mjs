// What the checks share: a browser that has no network, pages that have to stay silent, and what runs say apart from their pages.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, test } from "node:test";

import { address, folder, launched, settled } from "./chromium.mjs";

export { REPORTS, report, settled } from "./chromium.mjs";

let browser;
after(() => browser?.close());

const read = (...parts) => JSON.parse(readFileSync(path.join(folder, ...parts), "utf8"));

/** The document of a run. */
export const documentOf = (name) => read(name, "run.json");
/** What the tables of its dataset say (expected.py). */
export const tablesOf = (name) => read(`${name}.json`);

/**
 * A check on a page: it gets the page once that is drawn. What the page logs, throws, asks in a dialog or requests over a network
 * fails the check, whatever else it does.
 */
export function check(what, file, { hash = "", width = 1280, height = 900, ...context }, run) {
  test(what, { timeout: 60_000 }, async () => {
    browser ??= await launched();
    const own = await browser.newContext({ viewport: { width, height }, offline: true, reducedMotion: "reduce", ...context });
    try {
      own.setDefaultTimeout(20_000);
      await own.grantPermissions(["clipboard-read", "clipboard-write"]);
      const page = await own.newPage(), said = [];
      page.on("console", (message) => said.push(`console ${message.type()}: ${message.text()}`));
      page.on("pageerror", (error) => said.push(`error: ${error.stack}`));
      page.on("dialog", (dialog) => { said.push(`dialog: ${dialog.message()}`); return dialog.dismiss(); });
      page.on("popup", (popup) => said.push(`another page: ${popup.url()}`));
      page.on("request", (request) => { if (!/^(file|data|blob):/.test(request.url()) || request.url().split("#")[0] !== address(file)) said.push(`request: ${request.url()}`); });
      await page.goto(address(file) + (hash && `#${hash}`));
      await page.waitForFunction(() => document.documentElement.dataset.ready || !document.getElementById("failed").hidden);
      assert.equal(await page.locator("#failed").isVisible(), false, "the page was drawn");
      await settled(page);
      await run(page);
      await settled(page);
      assert.deepEqual(said, []);
    } finally {
      await own.close();
    }
  });
}

/** The stretch of time that the timeline shows, in ns after its begin. */
export async function stretch(page) {
  await settled(page);
  const { from, to } = await page.locator("#tracks").evaluate((element) => ({ ...element.dataset }));
  return { from: Number(from), to: Number(to), length: to - from };
}

/** The rows of a table, as it copies them: texts by column. */
export async function copied(page, grid) {
  await page.evaluate(() => navigator.clipboard.writeText(""));
  await page.locator(`[data-grid="${grid}"] .copy`).click();
  await page.waitForFunction(async () => (await navigator.clipboard.readText()) !== "");
  const [head, ...lines] = (await page.evaluate(() => navigator.clipboard.readText())).trimEnd().split("\n");
  const names = head.split("\t");
  return lines.map((line) => Object.fromEntries(line.split("\t").map((text, column) => [names[column], text])));
}

/** The timeline in numbers: for each column a list by slot, as far as it is looked at. */
export async function values(page) {
  if (!(await page.locator("#timeline-table").evaluate((element) => element.open))) await page.locator("#timeline-table > summary").click();
  await settled(page);
  const rows = await copied(page, "timeline-values");
  const lists = new Map(Object.keys(rows[0]).map((name) => [name, rows.map((row) => (row[name] === "" ? null : Number(row[name])))]));
  return { rows: rows.length, time: lists.get("time"), lists };
}

/** The sum by slot of all columns of a track. */
export function summed({ lists, rows }, track) {
  const sums = new Array(rows).fill(0);
  for (const [name, list] of lists) if (name.startsWith(`${track}:`)) list.forEach((value, slot) => { sums[slot] += value ?? 0; });
  return sums;
}

/** Lists of numbers that are the same but for what floating point leaves over. */
export function alike(found, expected, what) {
  assert.equal(found.length, expected.length, `${what}: how many`);
  found.forEach((value, i) => assert.ok(Math.abs(value - expected[i]) <= 1e-6 * Math.max(1, Math.abs(expected[i])), `${what}, ${i}: ${value}, expected ${expected[i]}`));
}

/** A text such as `1.23 MB` or `5.7 %` says this number, to the digits that it has. */
export function says(text, expected, what) {
  const parts = /^(< )?([\d\u2009.]+)\s?([kMGTP%]?)/.exec(text);
  assert.ok(parts, `${what}: '${text}' is no number`);
  const scale = { "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, "%": 0.01 }[parts[3]];
  const digits = parts[2].replaceAll("\u2009", ""), value = Number(digits) * scale;
  const last = scale / 10 ** (digits.split(".")[1] ?? "").length;
  assert.ok(Math.abs(value - expected) <= 0.5001 * last || (digits.length >= 3 && Math.abs(value - expected) < 0.006 * expected), `${what}: '${text}', expected ${expected}`);
}

/** How many pixels of this colour each column of a track's canvas has: what is really drawn. */
export const painted = (page, track, colour) => page.evaluate(([track, colour]) => {
  const canvas = document.querySelector(`[data-track="${track}"] canvas`), { width, height } = canvas;
  const probe = new OffscreenCanvas(1, 1).getContext("2d");
  probe.fillStyle = colour;
  probe.fillRect(0, 0, 1, 1);
  const wanted = probe.getImageData(0, 0, 1, 1).data, pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
  return Array.from({ length: width }, (_, x) => {
    let found = 0;
    for (let y = 0; y < height; y++) if ([0, 1, 2].every((part) => Math.abs(pixels[4 * (y * width + x) + part] - wanted[part]) < 12) && pixels[4 * (y * width + x) + 3] > 200) found++;
    return found;
  });
}, [track, colour]);

/** The colours that a track's legend explains, by name. */
export const legend = (page, track) => page.locator(`[data-track="${track}"] .key`).evaluateAll((keys) =>
  Object.fromEntries(keys.map((key) => [key.textContent, getComputedStyle(key.querySelector(".swatch")).backgroundColor])));

/** Where moments stand in a track: two places that the pointer asks for tell all others. Gives a function from ns to pixels of the canvas. */
export async function places(page, track) {
  const canvas = page.locator(`[data-track="${track}"] canvas`);
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  const time = async (x) => {
    await page.mouse.move(box.x + x, box.y + box.height / 2);
    return Number(await page.locator("#readout").getAttribute("data-time"));
  };
  const [a, b] = [box.width * 0.3, box.width * 0.9], [from, to] = [await time(a), await time(b)];
  assert.ok(to > from, "time goes from left to right");
  return { box, x: (at) => a + ((at - from) / (to - from)) * (b - a) };
}
