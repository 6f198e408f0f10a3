// The timeline: stacked tracks on one axis of time, zoomed and pointed at together.

/** Heights of tracks of values. */
const HIGH = 150;
const LOW = 74;

const timeline = { tracks: [], episodes: [], cursor: null, width: 0 };

/** Makes the tracks that the view wants; what is drawn in them is left to `drawTimeline`. */
function buildTimeline() {
  timeline.episodes = episodesShown();
  const { tracks, missing, choice } = makeTracks();
  timeline.tracks = tracks;
  const list = $("track-list");
  list.replaceChildren(
    el("canvas", { id: "time-above", "aria-hidden": "true" }),
    ...tracks.map((track) => {
      track.canvas = el("canvas", { role: "img" });
      track.height = track.lanes ? 6 + track.lanes.length * LANE : track.high ? HIGH : LOW;
      const legend = el("div", { class: "legend" });
      if (track.legend) {
        for (const layer of [...(track.stack ?? []), ...(track.over ?? [])]) {
          const swatch = el("i", { class: layer.dash ? "swatch dashed" : "swatch" });
          // Of counters: the series, and by how much it rose on this axis.
          const counted = layer.counter
            ? {
                "data-series": [layer.object, layer.counter, layer.priority ?? "", layer.detail ?? ""].join(" "),
                "data-within": String(layer.line.within),
              }
            : {};
          swatch.style.background = layer.color;
          legend.append(
            layer.flow
              ? el(
                  "button",
                  {
                    type: "button",
                    class: "key",
                    title: "Only this flow",
                    "data-flow": layer.flow,
                    onclick: () => look({ flows: new Set([layer.flow]) }),
                  },
                  swatch,
                  layer.name,
                )
              : el("span", { class: "key", ...counted }, swatch, layer.name),
          );
        }
      }
      return el(
        "figure",
        { class: "track", "data-track": track.id },
        el("figcaption", {}, el("b", {}, track.name), " ", el("span", { class: "quiet" }, track.about), legend),
        track.canvas,
      );
    }),
    el("canvas", { id: "time-axis", "aria-hidden": "true" }),
  );
  $("track-missing").replaceChildren(
    ...(missing.length
      ? [el("b", {}, "Not shown: "), missing.map(([name, reason]) => `${name} (${reason})`).join("; ") + "."]
      : []),
  );
  const notes = [];
  const width = model.head.width,
    bin = Number(model.run.run.bin_ns);
  if (model.head.slots)
    notes.push(
      width === bin
        ? `One slot is one bin of ${duration(bin)}.`
        : `One slot is ${duration(width)}: ${width / bin} bins of ${duration(bin)} in one (sums and largest values stay exact, medians become their mean).`,
    );
  if (isFiltered() && choice.without)
    notes.push(
      `${count(choice.without)} of the chosen flows have no series of their own on this page and are not drawn.`,
    );
  if (!isFiltered() && choice.without)
    notes.push(`${count(choice.without)} flows have no series of their own on this page: they are in “all others”.`);
  if (view.tap == null && [...model.flowAt.values()].some((flow) => !flow.counted))
    notes.push("Traffic that several taps saw is drawn once, as counted; choose a tap to see all of it there.");
  $("track-notes").textContent = notes.join(" ");
}

/** Draws everything for the stretch of time that is looked at. */
function drawTimeline() {
  const width = Math.max(280, $("track-list").clientWidth);
  timeline.width = width;
  setRoom(width);
  for (const track of timeline.tracks) {
    const context = fit(track.canvas, width, track.height);
    if (track.lanes) track.places = drawSpans(context, track, width, track.height);
    else {
      drawShades(context, timeline.episodes, width, track.height);
      track.axis = drawValues(context, track, width, track.height);
      track.canvas.dataset.peak = String(track.axis.most);
    }
    track.canvas.setAttribute("aria-label", inWords(track));
  }
  for (const id of ["time-above", "time-axis"]) {
    const context = fit($(id), width, 24);
    drawTime(context, width, 24);
    if (isWhole()) continue;
    context.fillStyle = theme.accent;
    context.textAlign = "left";
    context.fillText("zoomed", 2, 15);
  }
  drawOverview(width);
  drawCursor();
  $("tracks").dataset.from = String(view.from - model.begin);
  $("tracks").dataset.to = String(view.to - model.begin);
  $("zoom-all").disabled = isWhole();
}

/** What a track shows, for those who do not see it. */
function inWords(track) {
  const stretch = `${moment(view.from - model.zero, 1000)} to ${moment(view.to - model.zero, 1000)}`;
  if (track.lanes) {
    const spans = track.places.map((place) => place.span);
    const texts = spans
      .slice(0, 5)
      .map(
        (span) =>
          `${span.label} at ${moment(span.from - model.zero, 1000)}${span.to > span.from ? ` for ${duration(span.to - span.from)}` : ""}`,
      );
    return `${track.name}, ${stretch}: ${spans.length ? texts.join(", ") : "none"}${spans.length > 5 ? `, and ${spans.length - 5} more` : ""}`;
  }
  return `${track.name}, ${stretch}: at most ${track.format(track.axis.most)}. ${track.about}. The values stand in the table below the timeline.`;
}

/** The whole run in small, with what is looked at. */
function drawOverview(width) {
  const place = $("overview");
  let canvas = place.firstChild;
  if (!canvas) place.append((canvas = el("canvas", { "aria-hidden": "true" })));
  const height = 34,
    context = fit(canvas, width, height + 14),
    rateTrack = timeline.tracks.find((track) => track.id === "rate");
  const x = (time) => LEFT + ((time - model.begin) / (model.end - model.begin)) * (width - LEFT - RIGHT);
  context.fillStyle = theme.quiet;
  context.textAlign = "right";
  context.fillText("whole run", LEFT - 6, height / 2);
  if (rateTrack) {
    const plot = width - LEFT - RIGHT,
      perPixel = model.head.slots / plot,
      sums = [];
    for (let pixel = 0; pixel < plot; pixel++) {
      let most = 0;
      const end = Math.max(Math.floor(pixel * perPixel) + 1, Math.floor((pixel + 1) * perPixel));
      for (let slot = Math.floor(pixel * perPixel); slot < end && slot < model.head.slots; slot++) {
        let sum = 0;
        for (const layer of rateTrack.stack) sum += layer.line.values[slot];
        most = Math.max(most, sum);
      }
      sums.push(most);
    }
    const most = Math.max(...sums) || 1;
    context.fillStyle = theme.rest;
    sums.forEach((sum, pixel) =>
      context.fillRect(LEFT + pixel, height - 2 - (sum / most) * (height - 8), 1, (sum / most) * (height - 8)),
    );
  }
  for (const row of timeline.episodes) {
    context.fillStyle = theme.kind[row.kind];
    const from = x(model.time(row.start_time));
    context.fillRect(from, 1, Math.max(2, x(model.time(row.end_time)) - from), 3);
  }
  // Its own ends, so that nobody reads the axis of the tracks below as that of the whole run.
  context.fillStyle = theme.quiet;
  context.textBaseline = "alphabetic";
  context.textAlign = "left";
  context.fillText("0", LEFT, height + 12);
  context.textAlign = "right";
  context.fillText(duration(model.end - model.begin), width - RIGHT, height + 12);
  context.textBaseline = "middle";
  context.fillStyle = theme.select;
  context.fillRect(x(view.from), 0, Math.max(2, x(view.to) - x(view.from)), height);
  context.strokeStyle = theme.accent;
  context.strokeRect(x(view.from) + 0.5, 0.5, Math.max(2, x(view.to) - x(view.from)) - 1, height - 1);
}

/** The line through all tracks, and the values there. */
function drawCursor() {
  const line = $("cursor") ?? $("tracks").appendChild(el("div", { id: "cursor", class: "cursor" }));
  const at = timeline.cursor;
  const shown = at != null && at >= view.from && at <= view.to;
  line.hidden = !shown;
  const readout = $("readout");
  readout.dataset.time = shown ? String(at - model.begin) : "";
  if (!shown) {
    readout.replaceChildren(
      el(
        "span",
        { class: "quiet" },
        `${moment(view.from - model.zero, 1000)} to ${moment(view.to - model.zero, 1000)} · ${duration(view.to - view.from)} of ${duration(model.end - model.begin)} · from ${model.date(view.from, 6)}`,
      ),
    );
    return;
  }
  const list = $("track-list");
  line.style.left = `${list.offsetLeft + xOf(at, timeline.width)}px`;
  line.style.top = `${list.offsetTop}px`;
  line.style.height = `${list.offsetHeight}px`;
  const slot = slotAt(at),
    parts = [el("b", {}, moment(at - model.zero, (view.to - view.from) / 1000))];
  for (const track of timeline.tracks) {
    if (track.lanes) {
      const here = track.lanes
        .flatMap((lane) => lane.spans)
        .filter((span) => span.from <= at && at <= Math.max(span.to, span.from + (view.to - view.from) / 300));
      if (here.length)
        parts.push(
          value(
            track.id,
            track.name,
            here
              .slice(0, 2)
              .map((span) => span.title ?? span.label)
              .join("; ") + (here.length > 2 ? ` and ${here.length - 2} more` : ""),
            null,
            true,
          ),
        );
      continue;
    }
    if (slot < 0) continue;
    if (track.stack) {
      const sum = track.stack.reduce((sum, layer) => sum + (layer.line.values[slot] || 0), 0);
      parts.push(value(track.id, track.name, track.format(sum), sum));
    }
    for (const layer of track.over ?? []) {
      const at = layer.line.values[slot];
      if (at > 0)
        parts.push(
          value(track.id, track.stack || track.over.length > 1 ? layer.name : track.name, track.format(at), at),
        );
    }
  }
  readout.replaceChildren(...parts);
}

function value(track, name, text, number, wide) {
  return el(
    "span",
    { class: wide ? "value wide" : "value", "data-track": track, "data-value": number == null ? null : String(number) },
    el("i", {}, name),
    ` ${text}`,
  );
}

/** Puts the cursor somewhere; what stands there is announced to those who move it by keys. */
function point(time, isAnnounced = false) {
  timeline.cursor = time;
  drawCursor();
  if (isAnnounced) announce($("readout").innerText);
}

/** Pointers, wheel and keys. */
function listenTimeline() {
  const area = $("tracks"),
    list = $("track-list"),
    overview = $("overview");
  const at = (event) => timeAt(event.clientX - list.getBoundingClientRect().left, timeline.width);
  const within = (time) => Math.max(view.from, Math.min(view.to, time));
  let drag = null,
    engaged = false;
  const brush = area.appendChild(el("div", { class: "brush", hidden: true }));
  const tip = area.appendChild(el("div", { class: "tip", hidden: true }));

  list.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target.closest("button") || event.pointerType === "touch") return;
    // The wheel scrolls the page until somebody has clicked here.
    engaged = true;
    drag = { from: at(event), x: event.clientX, shift: event.shiftKey, view: [view.from, view.to] };
    list.setPointerCapture(event.pointerId);
  });
  list.addEventListener("pointermove", (event) => {
    const time = at(event);
    if (drag?.shift) {
      const moved = ((drag.x - event.clientX) / (timeline.width - LEFT - RIGHT)) * (drag.view[1] - drag.view[0]);
      lookAt(drag.view[0] + moved, drag.view[1] + moved);
      return;
    }
    point(within(time));
    if (drag && Math.abs(event.clientX - drag.x) > 4) {
      const [x0, x1] = [xOf(within(drag.from), timeline.width), xOf(within(time), timeline.width)].sort(
        (a, b) => a - b,
      );
      brush.hidden = false;
      Object.assign(brush.style, {
        left: `${list.offsetLeft + x0}px`,
        width: `${x1 - x0}px`,
        top: `${list.offsetTop}px`,
        height: `${list.offsetHeight}px`,
      });
    } else showTip(event);
  });
  const end = (event) => {
    if (!drag) return;
    const { from, x, shift } = drag;
    drag = null;
    brush.hidden = true;
    if (shift) return;
    if (Math.abs(event.clientX - x) > 4) lookAt(...[within(from), within(at(event))].sort((a, b) => a - b));
    else open(event);
  };
  list.addEventListener("pointerup", end);
  list.addEventListener("pointercancel", () => {
    drag = null;
    brush.hidden = true;
  });
  list.addEventListener("pointerleave", () => {
    tip.hidden = true;
    if (!drag) {
      timeline.cursor = null;
      drawCursor();
    }
  });
  list.addEventListener("dblclick", wholeRun);
  area.addEventListener("pointerleave", () => {
    engaged = false;
  });

  /** What lies under the pointer in a track of spans. */
  const spanAt = (event) => {
    const track = timeline.tracks.find(
      (track) => track.canvas === document.elementFromPoint(event.clientX, event.clientY),
    );
    if (!track?.places) return null;
    const box = track.canvas.getBoundingClientRect(),
      x = event.clientX - box.left,
      y = event.clientY - box.top;
    return (
      track.places.findLast((place) => x >= place.x0 - 2 && x <= place.x1 + 2 && y >= place.y0 && y <= place.y1)
        ?.span ?? null
    );
  };
  const showTip = (event) => {
    const span = spanAt(event);
    tip.hidden = !span;
    list.style.cursor = span ? "pointer" : "";
    if (!span) return;
    tip.replaceChildren(
      el("b", {}, span.label),
      ` ${span.title ?? ""}`,
      el("br"),
      el(
        "span",
        { class: "quiet" },
        `at ${moment(span.from - model.zero, 1000)}${span.to > span.from ? `, for ${duration(span.to - span.from)}` : ""}`,
      ),
    );
    const box = area.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX - box.left + 12, box.width - 290))}px`;
    tip.style.top = `${event.clientY - box.top + 16}px`;
  };
  /** A click on a span looks at it. */
  const open = (event) => {
    const span = spanAt(event);
    if (span) lookAtSpan(span.from, span.to);
  };

  area.addEventListener(
    "wheel",
    (event) => {
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (!event.ctrlKey && !event.metaKey && !sideways && !engaged) return;
      event.preventDefault();
      if (sideways) {
        const moved = (event.deltaX / timeline.width) * (view.to - view.from);
        lookAt(view.from + moved, view.to + moved);
      } else zoom(Math.exp(Math.max(-0.4, Math.min(0.4, event.deltaY * 0.0025))), within(at(event)));
    },
    { passive: false },
  );

  area.addEventListener("keydown", (event) => {
    if (event.target.closest("button, select, input") || event.altKey || event.ctrlKey || event.metaKey) return;
    const length = view.to - view.from;
    const step = (by) => point(within((timeline.cursor ?? (view.from + view.to) / 2) + by), true);
    const slot = Math.max(model.head.width, length / 200);
    const keys = {
      ArrowLeft: () => (event.shiftKey ? lookAt(view.from - length / 4, view.to - length / 4) : step(-slot)),
      ArrowRight: () => (event.shiftKey ? lookAt(view.from + length / 4, view.to + length / 4) : step(slot)),
      Home: () => point(view.from, true),
      End: () => point(view.to, true),
      "+": () => zoom(0.5, timeline.cursor ?? undefined),
      "=": () => zoom(0.5, timeline.cursor ?? undefined),
      "-": () => zoom(2, timeline.cursor ?? undefined),
      0: wholeRun,
      Escape: () => {
        timeline.cursor = null;
        drawCursor();
      },
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });

  // The small one: a click or drag moves what is looked at.
  const move = (event) => {
    if (!(event.buttons & 1)) return;
    const x = event.clientX - overview.getBoundingClientRect().left;
    const time = model.begin + ((x - LEFT) / (timeline.width - LEFT - RIGHT)) * (model.end - model.begin),
      half = (view.to - view.from) / 2;
    lookAt(time - half, time + half);
  };
  overview.addEventListener("pointerdown", move);
  overview.addEventListener("pointermove", move);

  $("zoom-in").addEventListener("click", () => zoom(0.5));
  $("zoom-out").addEventListener("click", () => zoom(2));
  $("zoom-all").addEventListener("click", wholeRun);

  if (model.taps.size > 1) {
    $("tap-choice").hidden = false;
    const select = $("tap");
    select.append(
      el("option", { value: "" }, "all that counts"),
      ...model.run.taps.map((tap) => el("option", { value: String(tap.tap) }, tapName(tap))),
    );
    select.addEventListener("change", () => look({ tap: select.value === "" ? null : Number(select.value) }));
    onView(() => {
      select.value = view.tap == null ? "" : String(view.tap);
    });
  }
}

/** Looks at an interval with something on both sides. */
function lookAtSpan(from, to) {
  const room = Math.max((to - from) * 0.6, 3 * model.head.width);
  lookAt(from - room, to + room);
}

function tapName(tap) {
  const file = tap.input.split("/").pop();
  return [`${tap.tap}:`, file, tap.interface, tap.mirror].filter(Boolean).join(" ");
}

/** All values in view as a table: what the tracks draw, in numbers. */
function buildTimelineTable() {
  const place = document.querySelector("#timeline-table .grid-place");
  if (!$("timeline-table").open) return;
  const [first, last] = slotsInView();
  const layers = timeline.tracks
    .filter((track) => !track.lanes)
    .flatMap((track) => [
      ...(track.stack ?? []).map((layer) => ({ track, layer })),
      ...(track.over ?? []).map((layer) => ({ track, layer })),
    ]);
  const columns = [
    {
      name: "time",
      label: "Time",
      value: (row) => slotBegin(first + row),
      text: (value) => moment(value - model.zero, model.head.width),
    },
    ...layers.map(({ track, layer }, number) => ({
      name: `${track.id}:${layer.flow ?? layer.metric ?? number}`,
      label: layer.name === track.name ? track.name : `${track.name}: ${layer.name}`,
      numeric: true,
      value: (row) => {
        const at = layer.line.values[first + row];
        return Number.isNaN(at) ? null : at;
      },
      text: (value) => (value == null ? "–" : track.format(value)),
    })),
  ];
  place.replaceChildren(
    new Grid({ id: "timeline-values", columns, rows: Math.max(0, last - first + 1), height: 320 }).element,
  );
}
