// Elements. Text only ever becomes text: nothing here takes markup.

const $ = (id) => document.getElementById(id);

/**
 * An element with attributes and children (elements or text). `class`, `data-...` and `aria-...` are attributes, `on...`
 * are listeners, everything else are properties.
 */
function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value == null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class" || key === "role" || key === "for" || key.includes("-")) element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

/** One of the page's own symbols. */
function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `#icon-${name}`);
  svg.append(use);
  return svg;
}

/** Puts text on the clipboard; from a file, too. */
async function copy(text, said) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Where pages from disk may not: a selection that the browser copies.
    const area = el("textarea", { value: text, class: "unseen" });
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  announce(done ? said : "The clipboard is not open to this page");
}

/** Tells people who do not see the page what has changed; others see it for a moment, too. */
function announce(text) {
  $("announce").textContent = text;
}

/** Colours and fonts of the style, for canvases. */
const theme = {};

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  for (const name of ["text", "quiet", "line", "grid", "surface", "accent", "rest", "cursor", "select"])
    theme[name] = of(name);
  theme.flows = [1, 2, 3, 4, 5, 6, 7].map((number) => of(`flow-${number}`));
  theme.kind = Object.fromEntries(
    ["ecn", "incast", "loss", "rnr", "pause", "stall"].map((kind) => [kind, of(`kind-${kind}`)]),
  );
  theme.font = "11px " + of("font");
}

/** A canvas of so many CSS pixels, sharp on every screen; gives what draws on it. */
function fit(canvas, width, height) {
  const ratio = Math.min(3, window.devicePixelRatio || 1);
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = theme.font;
  context.textBaseline = "middle";
  context.lineJoin = "round";
  return context;
}
