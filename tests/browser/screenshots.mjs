// Pictures of reports, to be looked at: all of them in two widths and colours, and those of the documents.
//
//     node screenshots.mjs FOLDER REPORTS IMAGES      FOLDER as for main.mjs; sample pages are in REPORTS, pictures go to IMAGES

import { mkdirSync } from "node:fs";
import path from "node:path";

import { REPORTS, address, folder, launched, report, settled } from "./chromium.mjs";

const [samples, images] = process.argv.slice(3).map((name) => path.resolve(name));
const all = path.join(folder, "screenshots");

/** One picture of a page: of what is in view, of all (`fullPage`), or down to `until`. */
async function picture(browser, file, to, { width, colorScheme, hash = "", height = 900, until, ...options }) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme, offline: true, reducedMotion: "reduce" });
  await page.goto(address(file) + (hash && `#${hash}`));
  await page.waitForFunction(() => document.documentElement.dataset.ready);
  await settled(page);
  const last = until && (await page.locator(until).boundingBox());
  await page.screenshot({ path: to, ...options, ...(last && { fullPage: true, clip: { x: 0, y: 0, width, height: last.y + last.height + 8 } }) });
  await page.close();
}

const browser = await launched();
mkdirSync(all, { recursive: true });
for (const name of REPORTS) {
  for (const colorScheme of ["light", "dark"]) {
    for (const width of [1280, 390]) {
      await picture(browser, report(name), path.join(all, `${name}-${width}-${colorScheme}.png`), { width, colorScheme, fullPage: true });
    }
  }
}
// The verdicts and the timeline of an incast in light; the page of a real flow that loses packets in dark.
await picture(browser, path.join(samples, "incast.html"), path.join(images, "report-light.png"), { width: 1280, colorScheme: "light", until: '[data-track="cnp"]' });
await picture(browser, report("write_bw_loss"), path.join(images, "report-dark.png"), { width: 1280, height: 760, colorScheme: "dark", hash: "t=150000000-260000000&flow=6dbd217f8e69f7ad" });
await browser.close();
