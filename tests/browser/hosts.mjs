// The page of two hosts' samples beside their merged captures, as `cargo xtask vm-test` makes it of Soft-RoCE in a VM. Pictures of it,
// to be looked at, go to FOLDER/screenshots.
//
//     node hosts.mjs FOLDER      FOLDER/hosts is the dataset with its page, FOLDER/hosts.json what expected.py says of it

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import path from "node:path";

import { check, legend, painted, report, settled, tablesOf } from "./browser.mjs";
import { folder } from "./chromium.mjs";

const pictures = path.join(folder, "screenshots");
mkdirSync(pictures, { recursive: true });

for (const colorScheme of ["light", "dark"]) {
  for (const width of [1280, 390]) {
    check(`${colorScheme}, ${width} pixels: each host's counters are tracks beside the packets`, report("hosts"), { colorScheme, width }, async (page) => {
      await settled(page);
      await page.screenshot({ path: path.join(pictures, `hosts-${width}-${colorScheme}.png`), fullPage: true });
      const tracks = await page.locator('.track[data-track^="counters-"]').evaluateAll((all) => all.map((track) => [track.dataset.track, track.textContent]));
      for (const host of ["client", "server"]) {
        const own = tracks.filter(([, text]) => text.includes(`Out of sequence, timeouts, ${host}`));
        assert.equal(own.length, 1, `${host}: ${JSON.stringify(tracks)}`);
        const [id] = own[0], colours = Object.entries(await legend(page, id));
        assert.ok(colours.length > 0, `${id} has a legend`);
        for (const [name] of colours) assert.ok(name.includes(host === "client" ? "rxe0:1" : "rxe1:1"), `${host}: ${name}`);
        const [name, colour] = colours[0];
        assert.ok((await painted(page, id, colour)).filter(Boolean).length > 20, `${host}: ${name} is drawn`);
      }
      // The packets, above them, on the same axis.
      assert.ok((await painted(page, "rate", Object.values(await legend(page, "rate"))[0])).filter(Boolean).length > 20, "packets are drawn");
      const expected = tablesOf("hosts").within;
      const drawn = await page.locator(".key[data-series]").evaluateAll((keys) => keys.map((key) => [key.dataset.series, Number(key.dataset.within)]));
      assert.ok(drawn.some(([series]) => series.startsWith("rxe1:1 port_out_of_sequence_packets")), JSON.stringify(drawn));
      for (const [series, within] of drawn) assert.ok(Math.abs(within - expected[series]) <= 1e-6 * expected[series], `${series}: ${within}, expected ${expected[series]}`);
    });
  }
}
