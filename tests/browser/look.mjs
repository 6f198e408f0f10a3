// How a report looks to everybody: dark, on paper, on a phone, without a pointer, and what it makes of markup in a capture.

import assert from "node:assert/strict";

import { REPORTS, check, legend, painted, report, settled } from "./browser.mjs";

/** Contrast as WCAG 2 computes it. */
const contrast = (page, selector) => page.locator(selector).first().evaluate((element) => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\d.]+/g).map(Number).map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let behind = element;
  while (/, 0\)$|transparent/.test(getComputedStyle(behind).backgroundColor)) behind = behind.parentElement;
  const [a, b] = [light(getComputedStyle(element).color), light(getComputedStyle(behind).backgroundColor)].sort((a, b) => b - a);
  return (a + 0.05) / (b + 0.05);
});

for (const colorScheme of ["light", "dark"]) {
  check(`${colorScheme}: the system's choice, readable, and drawn in its own colours`, report("incast"), { colorScheme }, async (page) => {
    const bright = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number).reduce((a, b) => a + b) > 384);
    assert.equal(await bright(), colorScheme === "light");
    for (const selector of ["body", ".summary", ".severity", ".facts dt", ".tile .label", ".track .quiet", "button.show", "#matrix-place th button", ".grid td", ".grid th button"]) {
      const ratio = await contrast(page, selector);
      assert.ok(ratio >= 4.5, `${selector}: ${ratio.toFixed(2)}`);
    }
    const drawn = async () => {
      await settled(page);
      return (await painted(page, "rate", Object.values(await legend(page, "rate"))[0])).filter(Boolean).length;
    };
    assert.ok(await drawn() > 100);
    await page.locator("#theme").click();
    assert.equal(await bright(), colorScheme !== "light", "the button");
    assert.ok(await drawn() > 100, "the other colours are drawn");
    await page.keyboard.press("d");
    assert.equal(await bright(), colorScheme === "light", "the key");
    await page.emulateMedia({ colorScheme: colorScheme === "light" ? "dark" : "light" });
    await settled(page);
  });
}

check("on paper it is light, without buttons, and nothing is cut", report("incast"), { colorScheme: "dark" }, async (page) => {
  const pages = (await page.pdf({ format: "A4", printBackground: true })).toString("latin1").match(/\/Type\s*\/Page\b/g);
  assert.ok(pages.length >= 3 && pages.length <= 20, `${pages.length} pages`);
  await page.emulateMedia({ media: "print" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  await settled(page);
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
  for (const selector of ["#theme", "#print", "button.show", ".copy"]) assert.equal(await page.locator(selector).first().isVisible(), false, selector);
  for (const selector of ["#headline", ".verdict", '[data-track="rate"] canvas', "#matrix-place table", ".grid"]) assert.ok(await page.locator(selector).first().isVisible(), selector);
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme ?? null), null, "dark again");
});

for (const name of REPORTS) {
  check(`${name}: 390 pixels are wide enough`, report(name), { width: 390, height: 844 }, async (page) => {
    const wide = () => page.evaluate(() => {
      const inScroller = (element) => element.closest(".scroller, .unseen, dialog:not([open]), [hidden]");
      const out = [...document.querySelectorAll("main *")].filter((element) => !inScroller(element) && element.getBoundingClientRect().right > innerWidth + 0.5);
      return { page: document.documentElement.scrollWidth - innerWidth, out: out.map((element) => `${element.tagName} ${element.className || element.id}`) };
    });
    assert.deepEqual(await wide(), { page: 0, out: [] });
    for (const summary of await page.locator("details > summary").all()) await summary.click();
    await settled(page);
    assert.deepEqual(await wide(), { page: 0, out: [] });
    await page.locator('[data-grid="flows"] tbody button.link').first().click();
    await settled(page);
    assert.ok(await page.locator("#flow").evaluate((dialog) => dialog.scrollWidth <= dialog.clientWidth), "the page of a flow");
  });
}

check("Tab reaches every control, each is seen to have the focus, and keys work it", report("incast"), {}, async (page) => {
  const seen = new Set();
  for (let i = 0; i < 400; i++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const element = document.activeElement;
      if (element === document.body) return null;
      const style = getComputedStyle(element);
      return { names: [element.id && `#${element.id}`, ...[".show", ".skip", ".key", ".copy", ".scroller", "nav a", "#matrix-place td button", "#matrix-place th button", "[role=tab]", "[role=radio]", ".grid th button", ".grid td button", "summary", "input"].filter((selector) => element.matches(selector))], outline: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 };
    });
    if (!at) break;
    assert.ok(at.outline, `${at.names} shows that it has the focus`);
    at.names.filter(Boolean).forEach((name) => seen.add(name));
  }
  for (const name of ["#theme", "#print", "#tap", "#zoom-in", "#zoom-out", "#tracks", ".show", ".skip", ".key", ".copy", ".scroller", "nav a", "#matrix-place td button", "#matrix-place th button", "[role=tab]", "[role=radio]", ".grid th button", ".grid td button", "summary", "input"]) {
    assert.ok(seen.has(name), `${name} is reached`);
  }
  await page.locator('[role=tab][aria-selected="true"]').focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.evaluate(() => document.activeElement.dataset.tab), "episodes");
  assert.ok(await page.locator('[data-grid="episodes"]').isVisible());
  await page.locator(".show").first().focus();
  await page.keyboard.press("Enter");
  assert.ok(await page.locator("#filter").isVisible());
  await page.locator("#filter button.chip").focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("#filter").isVisible(), false);
});

check("charts say in words what they show", report("lossy"), {}, async (page) => {
  const charts = await page.locator(".track").evaluateAll((tracks) => tracks.map((track) => [track.querySelector("b").textContent, track.querySelector("canvas").getAttribute("role"), track.querySelector("canvas").getAttribute("aria-label")]));
  assert.ok(charts.length >= 4);
  for (const [name, role, label] of charts) assert.ok(role === "img" && label.startsWith(name) && label.length > name.length + 20, label);
});

// Made by the tests of the command line: a capture and a recording that say `</script><script>` wherever they may say something.
for (const [what, shown] of [["capture", "</script><script>alert(1)</script>"], ["host", "<script>a()</script>"], ["counter", "<script>a()</script>"]]) {
  check(`markup of a ${what} stays text`, `../tmp/markup-${what}.html`, {}, async (page) => {
    await page.locator('[data-tab="events"]').click();
    for (const summary of await page.locator("details > summary").all()) await summary.click();
    await page.locator('[data-tab="flows"]').click();
    await page.locator('[data-grid="flows"] tbody button.link').first().click();
    await settled(page);
    const texts = await page.evaluate(() => document.body.innerText + document.querySelector("#flow-place").innerText);
    assert.ok(texts.includes(shown), "it is shown as it is");
    assert.equal(await page.locator("script").count(), 6, "the page's own script and its data");
    assert.equal(await page.locator("main script, main img, main iframe, dialog script").count(), 0);
  });
}
