// Draws tracks on canvases: one stretch of time, one value axis each. Where several slots share a pixel, the largest value is
// drawn, so that nothing short disappears.

/** Room for the value axis and for names of lanes, left of the plot: less where there is little. */
let LEFT = 112;
const RIGHT = 10;

/** Takes note of how wide plots are. */
function setRoom(width) {
  LEFT = width > 700 ? 112 : 70;
}

/** Where a moment is drawn in a plot of this width. */
const xOf = (time, width) => LEFT + ((time - view.from) / (view.to - view.from)) * (width - LEFT - RIGHT);
/** The moment at a place. */
const timeAt = (x, width) => view.from + ((x - LEFT) / (width - LEFT - RIGHT)) * (view.to - view.from);
/** The slot of a moment; -1 outside. */
function slotAt(time) {
  const slot = Math.floor((time - model.head.begin) / model.head.width);
  return slot >= 0 && slot < model.head.slots ? slot : -1;
}
const slotBegin = (slot) => model.head.begin + slot * model.head.width;

/** Slots that are in view, first and last. */
function slotsInView() {
  const first = Math.max(0, Math.floor((view.from - model.head.begin) / model.head.width));
  const last = Math.min(model.head.slots - 1, Math.ceil((view.to - model.head.begin) / model.head.width) - 1);
  return [first, last];
}

/** The largest value in view, of what is stacked and of lines. */
function mostInView(track) {
  const [first, last] = slotsInView();
  let most = 0;
  for (let slot = first; slot <= last; slot++) {
    let sum = 0;
    for (const layer of track.stack ?? []) sum += layer.line.values[slot] || 0;
    if (sum > most) most = sum;
  }
  // What stands over a stack does not press it flat: what is far above runs along the top.
  const limit = track.stack ? 3 * most || Infinity : Infinity;
  for (const layer of track.over ?? []) {
    for (let slot = first; slot <= last; slot++)
      if (layer.line.values[slot] > most) most = Math.min(limit, layer.line.values[slot]);
  }
  return most;
}

/** The least value above 0 in view, of lines. */
function leastInView(track) {
  const [first, last] = slotsInView();
  let least = Infinity;
  for (const { line } of track.over ?? []) {
    for (let slot = first; slot <= last; slot++)
      if (line.values[slot] > 0 && line.values[slot] < least) least = line.values[slot];
  }
  return least;
}

/** Where values are drawn, and the ticks beside them. */
function valueAxis(track, height) {
  const most = mostInView(track),
    top = 8,
    bottom = height - 3;
  if (track.log && most > 0) {
    const low = 10 ** Math.floor(Math.log10(Math.min(leastInView(track), most))),
      high = 10 ** Math.ceil(Math.log10(most) + 1e-9);
    const span = Math.log10(high / low) || 1;
    const marks = [];
    for (let value = low; value <= high * 1.001; value *= 10) marks.push(value);
    const step = Math.ceil(marks.length / Math.max(2, Math.floor(height / 22)));
    return {
      y: (value) => bottom - (Math.log10(Math.max(value, low) / low) / span) * (bottom - top),
      marks: marks.filter((_, i) => i % step === 0),
      most,
    };
  }
  const limit = most > 0 ? most * 1.04 : 1;
  return {
    y: (value) => bottom - (value / limit) * (bottom - top),
    marks: ticks(most, Math.max(1, Math.floor(height / 34)), track.whole),
    most,
  };
}

/** For each pixel of the plot the slots that it shows. */
function columnsOf(width) {
  const [first, last] = slotsInView(),
    plot = width - LEFT - RIGHT;
  const perPixel = (view.to - view.from) / model.head.width / plot;
  const group = Math.max(1, Math.floor(perPixel));
  const columns = [];
  for (let slot = first - (first % group); slot <= last; slot += group) {
    columns.push([Math.max(first, slot), Math.min(last, slot + group - 1)]);
  }
  return columns;
}

function mostOf(values, [first, last]) {
  let most = NaN;
  for (let slot = first; slot <= last; slot++)
    if (!(values[slot] <= most) && !Number.isNaN(values[slot])) most = values[slot];
  return most;
}

/** One track of values. */
function drawValues(context, track, width, height) {
  const axis = valueAxis(track, height),
    columns = columnsOf(width);
  drawGrid(context, track, axis, width, height);
  context.save();
  context.beginPath();
  context.rect(LEFT, 0, width - LEFT - RIGHT, height);
  context.clip();
  const zero = axis.y(0);
  const base = new Float64Array(columns.length);
  for (const layer of track.stack ?? []) {
    context.fillStyle = layer.color;
    context.beginPath();
    columns.forEach((column, i) => {
      const value = mostOf(layer.line.values, column) || 0;
      if (!(value > 0)) return;
      const x0 = xOf(slotBegin(column[0]), width),
        x1 = xOf(slotBegin(column[1] + 1), width);
      // Bars stand apart where there is room; what is stacked is never thinner than a pixel.
      const gap = track.bars && x1 - x0 > 4 ? 1 : 0;
      const low = track.log ? height - 3 : axis.y(base[i]),
        high = axis.y(base[i] + value);
      context.rect(
        x0,
        Math.min(high, low - (track.bars ? 1.5 : 0.5)),
        Math.max(1, x1 - x0 - gap),
        Math.max(track.bars ? 1.5 : 0.5, low - high),
      );
      base[i] += value;
    });
    context.fill();
  }
  for (const layer of track.over ?? []) drawLine(context, layer, axis, columns, width);
  context.restore();
  context.strokeStyle = theme.line;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(LEFT, Math.round(zero) + 0.5);
  context.lineTo(width - RIGHT, Math.round(zero) + 0.5);
  context.stroke();
  return axis;
}

function drawLine(context, layer, axis, columns, width) {
  context.strokeStyle = context.fillStyle = layer.color;
  context.lineWidth = layer.thin ? 1.2 : 1.8;
  context.setLineDash(layer.dash ?? []);
  context.beginPath();
  let before = false;
  const dots = [];
  for (const column of columns) {
    const value = mostOf(layer.line.values, column);
    if (Number.isNaN(value) || (layer.gaps && !(value > 0))) {
      before = false;
      continue;
    }
    const x0 = xOf(slotBegin(column[0]), width),
      x1 = xOf(slotBegin(column[1] + 1), width),
      y = Math.max(2, axis.y(value));
    if (layer.steps) {
      if (before) context.lineTo(x0, y);
      else context.moveTo(x0, y);
      context.lineTo(x1, y);
    } else {
      const x = (x0 + x1) / 2;
      if (before) context.lineTo(x, y);
      else context.moveTo(x, y);
      if (layer.points && columns.length < width / 6) dots.push([x, y]);
      else if (!before) dots.push([x, y]);
    }
    before = true;
  }
  context.stroke();
  context.setLineDash([]);
  for (const [x, y] of dots) {
    context.beginPath();
    context.arc(x, y, 2, 0, 7);
    context.fill();
  }
}

/** Ticks and names of values, and thin lines at moments. */
function drawGrid(context, track, axis, width, height) {
  context.strokeStyle = theme.grid;
  context.lineWidth = 1;
  context.beginPath();
  for (const time of timeTicks(width)) {
    const x = Math.round(xOf(time, width)) + 0.5;
    context.moveTo(x, 0);
    context.lineTo(x, height);
  }
  for (const mark of axis.marks) {
    const y = Math.round(axis.y(mark)) + 0.5;
    context.moveTo(LEFT, y);
    context.lineTo(width - RIGHT, y);
  }
  context.stroke();
  context.fillStyle = theme.quiet;
  context.textAlign = "right";
  for (const mark of axis.marks) {
    const y = Math.min(height - 7, Math.max(7, axis.y(mark)));
    context.fillText(track.format(mark), LEFT - 6, y);
  }
}

/** Moments with a line, in view. */
function timeTicks(width) {
  const step = niceStep(view.to - view.from, Math.max(2, Math.floor((width - LEFT) / 110)));
  const all = [];
  for (let at = Math.ceil((view.from - model.zero) / step) * step; at <= view.to - model.zero; at += step)
    all.push(model.zero + at);
  all.step = step;
  return all;
}

/** The axis of time below all tracks. */
function drawTime(context, width, height) {
  const all = timeTicks(width);
  context.fillStyle = theme.quiet;
  context.strokeStyle = theme.line;
  context.textAlign = "center";
  context.beginPath();
  for (const time of all) {
    const x = Math.round(xOf(time, width)) + 0.5;
    context.moveTo(x, 0);
    context.lineTo(x, 4);
    const text = moment(time - model.zero, all.step),
      half = context.measureText(text).width / 2;
    context.fillText(text, Math.min(width - half - 1, Math.max(half + 1, x)), height / 2 + 3);
  }
  context.stroke();
}

/** Height of a lane of spans. */
const LANE = 17;

/** One track of spans or marks in lanes; gives what stands where, for pointers. */
function drawSpans(context, track, width, height) {
  const places = [];
  context.strokeStyle = theme.grid;
  context.lineWidth = 1;
  context.beginPath();
  for (const time of timeTicks(width)) {
    const x = Math.round(xOf(time, width)) + 0.5;
    context.moveTo(x, 0);
    context.lineTo(x, height);
  }
  context.stroke();
  track.lanes.forEach((lane, number) => {
    const y = 3 + number * LANE;
    if (lane.name) {
      context.fillStyle = theme.quiet;
      context.textAlign = "right";
      context.fillText(shorten(context, lane.name, LEFT - 8), LEFT - 6, y + LANE / 2 - 1);
    }
    context.save();
    context.beginPath();
    context.rect(LEFT, 0, width - LEFT - RIGHT, height);
    context.clip();
    let drawn = -Infinity;
    for (const span of lane.spans) {
      if (span.to < view.from || span.from > view.to) continue;
      const x0 = Math.max(LEFT - 4, xOf(span.from, width)),
        x1 = Math.min(width + 4, xOf(span.to, width));
      const w = Math.max(track.marks ? 2 : 3, x1 - x0);
      // Marks on the same pixel are one.
      if (track.marks && x0 - drawn < 1) continue;
      drawn = x0;
      context.fillStyle = span.color;
      context.globalAlpha = 0.9;
      context.fillRect(x0, y, w, LANE - 4);
      context.globalAlpha = 1;
      if (w > 26 && !track.marks) {
        context.fillStyle = "#fff";
        context.textAlign = "left";
        const text = shorten(context, span.label, w - 8);
        if (text) context.fillText(text, Math.max(LEFT, x0) + 4, y + (LANE - 4) / 2 + 0.5);
      }
      places.push({ x0, x1: x0 + w, y0: y, y1: y + LANE - 4, span });
    }
    context.restore();
  });
  return places;
}

/** Text that fits, with dots where some is left out; empty where nothing would be readable. */
function shorten(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let length = Math.floor((text.length * room) / context.measureText(text).width);
  while (length > 1 && context.measureText(text.slice(0, length) + "…").width > room) length--;
  return length > 1 ? text.slice(0, length) + "…" : "";
}

/** Episodes as shades behind a track of values. */
function drawShades(context, episodes, width, height) {
  for (const row of episodes) {
    const from = model.time(row.start_time),
      to = model.time(row.end_time);
    if (to < view.from || from > view.to) continue;
    const x0 = Math.max(LEFT, xOf(from, width)),
      x1 = Math.min(width - RIGHT, xOf(to, width));
    context.globalAlpha = 0.1;
    context.fillStyle = theme.kind[row.kind];
    context.fillRect(x0, 0, Math.max(1.5, x1 - x0), height);
  }
  context.globalAlpha = 1;
}
