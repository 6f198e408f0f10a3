// Numbers as people read them: the unit that fits, no more digits than say something.

/** A number with three digits that count. */
function digits(value) {
  const size = Math.abs(value);
  if (size >= 100 || value === 0) return Math.round(value).toString();
  if (size >= 10) return value.toFixed(1).replace(/\.0$/, "");
  return value.toFixed(2).replace(/\.?0+$/, "");
}

/** With a prefix of a thousand. */
function scaled(value, unit, prefixes = ["", "k", "M", "G", "T", "P"]) {
  let step = 0;
  while (Math.abs(value) >= 999.5 && step < prefixes.length - 1) {
    value /= 1000;
    step++;
  }
  const text = step === 0 && Number.isInteger(value) ? String(value) : digits(value);
  return `${text} ${prefixes[step]}${unit}`.trim();
}

/** A whole number with its thousands apart. */
function count(value) {
  return value == null
    ? "–"
    : Math.round(value)
        .toString()
        .replace(/\B(?=(\d{3})+(?!\d))/g, "\u2009");
}

/** So many of something. */
const many = (value, name) => `${count(value)} ${name}${value === 1 ? "" : "s"}`;

const bytes = (value) => scaled(value, "B");
const rate = (bitsPerSecond) => scaled(bitsPerSecond, "bit/s");

/** A length of time in ns. */
function duration(ns) {
  if (ns == null) return "–";
  const size = Math.abs(ns);
  if (size < 1e3) return `${digits(ns)} ns`;
  if (size < 1e6) return `${digits(ns / 1e3)} us`;
  if (size < 1e9) return `${digits(ns / 1e6)} ms`;
  if (size < 120e9) return `${digits(ns / 1e9)} s`;
  const minutes = Math.floor(ns / 60e9);
  if (minutes < 120) return `${minutes} min ${Math.round((ns - minutes * 60e9) / 1e9)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** A share of 1. */
function percent(share) {
  if (share == null) return "–";
  const value = share * 100;
  if (value !== 0 && Math.abs(value) < 0.01) return "< 0.01 %";
  return `${digits(value)} %`;
}

/** A moment, counted from the first frame, in the unit that tells `step` apart. */
function moment(ns, step) {
  const size = Math.max(Math.abs(ns), step);
  const [unit, scale] = size < 1e3 ? ["ns", 1] : size < 1e6 ? ["us", 1e3] : size < 1e9 ? ["ms", 1e6] : ["s", 1e9];
  const decimals = Math.max(0, Math.min(9, Math.ceil(Math.log10(scale / step) - 1e-9)));
  const text = (ns / scale).toFixed(decimals);
  return `${text.includes(".") ? text.replace(/\.?0+$/, "") || "0" : text} ${unit}`;
}

/** A value in the unit of its column: what a cell of a table shows. */
function inUnit(value, column) {
  if (value == null) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (column.kind === "time") return moment(value - model.zero, 1000);
  if (typeof value !== "number") return String(value);
  if (column.unit === "ns") return duration(value);
  // A power of two that people know by its digits.
  if (column.name === "path_mtu") return `${count(value)} B`;
  if (column.unit === "bytes") return bytes(value);
  if (column.unit === "bit/s") return rate(value);
  if (column.name.endsWith("qpn")) return `0x${value.toString(16)}`;
  if (column.kind === "float") return digits(value);
  return count(value);
}

/** The largest of 1, 2, 5 times a power of ten that divides `span` into at least `parts`. */
function niceStep(span, parts) {
  const rough = span / Math.max(1, parts);
  const power = 10 ** Math.floor(Math.log10(rough));
  for (const factor of [1, 2, 5, 10]) if (rough <= factor * power * 1.0001) return factor * power;
  return 10 * power;
}

/** The same for bytes and rates is by thousands, for counts never below 1. */
function ticks(most, parts, whole) {
  if (!(most > 0)) return [0];
  let step = niceStep(most, parts);
  // At least one beside 0.
  if (step > most)
    step =
      10 ** Math.floor(Math.log10(most)) *
      ([5, 2, 1].find((factor) => factor * 10 ** Math.floor(Math.log10(most)) <= most) ?? 1);
  if (whole) step = Math.max(1, Math.round(step));
  const all = [];
  for (let value = 0; value <= most * 1.0001; value += step) all.push(value);
  return all;
}
