// The browser, and where the reports are.

import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

/** Where the reports are, what is expected of them, and what npm installed. */
export const folder = path.resolve(process.argv[2]);
const { chromium } = createRequire(path.join(folder, "package.json"))("playwright-core");

/** Four demos and a capture of real traffic. */
export const REPORTS = ["incast", "lossy", "pause-storm", "training", "write_bw_loss"];

/** The browser, which asks nobody for anything of its own accord. */
export const launched = () => chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

/** The address of a file below `folder`. */
export const address = (file) => pathToFileURL(path.resolve(folder, file)).href;
/** The report of a run, below `folder`. */
export const report = (name) => path.join(name, "report.html");

/** Waits until what has changed is drawn. */
export const settled = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))));
