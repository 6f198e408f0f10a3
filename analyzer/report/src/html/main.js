// Begins: reads the data, builds the page, and keeps it as the view wants it.

let drawing = 0;

/** Draws once before the next frame, however much has changed. */
function redraw() {
  cancelAnimationFrame(drawing);
  drawing = requestAnimationFrame(() => {
    drawTimeline();
    buildTimelineTable();
    if (view.flow != null && $("psn-canvas")) flowPage.draw();
  });
}

/** Whether the page is dark: by its button, else as the system wants it. */
const isDark = () =>
  (document.documentElement.dataset.theme ??
    (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

/** The button says what it would change to. */
function nameTheme() {
  $("theme").textContent = isDark() ? "Light" : "Dark";
}

function listenPage() {
  onView((changed) => {
    const about = (...names) => names.some((name) => changed.has(name));
    if (about("flows", "source", "destination", "host", "tap")) {
      // What was clicked is made again: the keyboard goes on at the timeline.
      const lost = ["filter", "track-list"].some((id) => $(id).contains(document.activeElement));
      buildFilter();
      buildTimeline();
      buildSpent();
      buildMatrix();
      if (lost) $("tracks").focus({ preventScroll: true });
    }
    if (about("flow")) buildFlowPage();
    redraw();
    if (about("tab", "flows", "source", "destination", "host", "tap")) buildTables();
    else if (view.tab === "events") {
      // Dragging goes on: once it stands.
      clearTimeout(listenPage.waits);
      listenPage.waits = setTimeout(() => grids.events?.pick(), 150);
    }
  });
  window.addEventListener("resize", redraw);
  window.addEventListener("hashchange", () => {
    if (!isPart()) readAddress();
  });
  // The address is the view's: parts of the page are only gone to.
  for (const link of document.querySelectorAll("nav [data-part]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      $(link.dataset.part).scrollIntoView({ behavior: reduced() ? "auto" : "smooth" });
    });
  }
  $("timeline-table").addEventListener("toggle", buildTimelineTable);

  const root = document.documentElement,
    dark = matchMedia("(prefers-color-scheme: dark)");
  const recolour = () => {
    nameTheme();
    readTheme();
    buildTimeline();
    drawTimeline();
    if (view.flow != null) buildFlowPage();
    if (view.tab === "episodes") grids.episodes?.draw(true);
  };
  const change = () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    recolour();
  };
  dark.addEventListener("change", recolour);
  $("theme").addEventListener("click", change);
  $("print").addEventListener("click", () => window.print());
  window.addEventListener("keydown", (event) => {
    if (
      event.key === "d" &&
      !event.ctrlKey &&
      !event.metaKey &&
      !event.altKey &&
      !event.target.closest("input, select, textarea")
    )
      change();
  });
  // Paper is light, and has no scroll bars.
  let before;
  window.addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    root.classList.add("printing");
    recolour();
    Object.values(grids).forEach((grid) => grid.draw(true));
  });
  window.addEventListener("afterprint", () => {
    if (before == null) delete root.dataset.theme;
    else root.dataset.theme = before;
    root.classList.remove("printing");
    recolour();
    Object.values(grids).forEach((grid) => grid.draw(true));
  });
}

async function begin() {
  try {
    await load();
    nameTheme();
    readTheme();
    Object.assign(view, { from: model.begin, to: model.end });
    buildHeader();
    buildHeadline();
    buildVerdicts();
    buildFilter();
    readAddress();
    buildTimeline();
    drawTimeline();
    // The first picture is whole; what is further down follows.
    requestAnimationFrame(() => {
      document.documentElement.dataset.painted = performance.now().toFixed(0);
      setTimeout(() => {
        buildWaits();
        buildSpent();
        buildMatrix();
        buildTables();
        buildAbout();
        buildFilter();
        listenTimeline();
        listenTables();
        listenFlowPage();
        listenPage();
        if (view.flow != null) buildFlowPage();
        document.documentElement.dataset.ready = performance.now().toFixed(0);
      });
    });
  } catch (error) {
    $("failed").hidden = false;
    $("failed").textContent =
      `This page could not be drawn: ${error.message}. It needs a browser of 2023 or later. The same numbers stand in run.json beside it.`;
    throw error;
  }
}

begin();
