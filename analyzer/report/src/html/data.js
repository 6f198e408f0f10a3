// The data of the page: blocks of compressed bytes, tables in columns, series by slot. What pack.rs writes is read here.

/** A block of the page, inflated: the page holds it as Base64 of zlib. */
async function block(id) {
  const text = atob(document.getElementById(`data-${id}`).textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** A block that holds JSON. */
async function json(id) {
  return JSON.parse(new TextDecoder().decode(await block(id)));
}

/** Reads numbers (LEB128), texts and names of flows, one after the other. */
class Reader {
  constructor(bytes, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  number() {
    let value = 0,
      scale = 1,
      byte;
    do {
      byte = this.bytes[this.at++];
      value += (byte & 0x7f) * scale;
      scale *= 128;
    } while (byte & 0x80);
    return value;
  }

  text() {
    const length = this.number();
    const text = new TextDecoder().decode(this.bytes.subarray(this.at, this.at + length));
    this.at += length;
    return text;
  }

  /** 64 bits as 16 hex digits; null for 0. */
  id() {
    let text = "";
    for (let i = 7; i >= 0; i--) text += this.bytes[this.at + i].toString(16).padStart(2, "0");
    this.at += 8;
    return text === "0000000000000000" ? null : text;
  }
}

/** A table in columns; a column is read when it is first used. */
class Table {
  constructor(described, bytes) {
    this.rows = described.rows;
    this.bytes = bytes;
    this.places = new Map(described.columns.map((column) => [column.name, column]));
    this.read = new Map();
  }

  /** The values of a column, null where absent; times in ns after the begin of the page's time. */
  column(name) {
    if (!this.read.has(name)) this.read.set(name, this.decode(this.places.get(name)));
    return this.read.get(name);
  }

  /** One value. */
  value(name, row) {
    return this.column(name)[row];
  }

  decode({ kind, at }) {
    const reader = new Reader(this.bytes, at);
    const values = new Array(this.rows);
    const fill = (of) => {
      for (let row = 0; row < this.rows; row++) values[row] = of();
    };
    const number = () => {
      const value = reader.number();
      return value ? value - 1 : null;
    };
    if (kind === "id") fill(() => reader.id());
    else if (kind === "bool")
      fill(() => {
        const value = reader.number();
        return value ? value === 2 : null;
      });
    else if (kind === "float") {
      const view = new DataView(this.bytes.buffer, this.bytes.byteOffset + at);
      for (let row = 0; row < this.rows; row++) {
        const value = view.getFloat64(row * 8, true);
        values[row] = Number.isNaN(value) ? null : value;
      }
    } else if (kind === "text") {
      const texts = [null];
      for (let left = reader.number(); left > 0; left--) texts.push(reader.text());
      fill(() => texts[reader.number()]);
    } else fill(number);
    return values;
  }
}

/** Values by slot of one flow, tap or destination; a metric is read when it is first used. */
class Series {
  constructor(reader) {
    this.bytes = reader.bytes;
    this.metrics = new Map();
    for (let left = reader.number(); left > 0; left--) {
      const metric = reader.number(),
        count = reader.number(),
        length = reader.number();
      this.metrics.set(metric, { count, at: reader.at });
      reader.at += length;
    }
  }

  has(name) {
    return this.metrics.has(model.metric(name));
  }

  /** Slots in order, and the value in each: what is not there is 0 or absent. */
  get(name) {
    const metric = this.metrics.get(model.metric(name));
    if (!metric) return EMPTY;
    if (!metric.slots) {
      const reader = new Reader(this.bytes, metric.at);
      metric.slots = new Uint32Array(metric.count);
      metric.values = new Float64Array(metric.count);
      let slot = 0;
      for (let i = 0; i < metric.count; i++) metric.slots[i] = slot += reader.number();
      for (let i = 0; i < metric.count; i++) metric.values[i] = reader.number();
    }
    return metric;
  }
}

const EMPTY = { count: 0, slots: new Uint32Array(0), values: new Float64Array(0) };

/** Everything that the page knows; set once by `load`. */
const model = {
  /** The number of a metric. */
  metric(name) {
    return this.metricNumbers.get(name);
  },

  /** ns after the begin of the page's time, of a time in the document (text, ns since the epoch); null stays. */
  time(text) {
    return text == null ? null : Number(BigInt(text) - this.base);
  },

  /** A moment as a date in UTC, with as many digits after the second as are wanted. */
  date(time, digits = 3) {
    const at = this.base + BigInt(Math.round(time));
    const seconds = at / 1000000000n,
      rest = at % 1000000000n;
    const date = new Date(Number(seconds) * 1000).toISOString();
    const part = digits ? "." + rest.toString().padStart(9, "0").slice(0, digits) : "";
    return `${date.slice(0, 10)} ${date.slice(11, 19)}${part} UTC`;
  },

  /** What a column means. */
  about(table, column) {
    return this.described.get(table).columns.find((known) => known.name === column);
  },
};

/** Reads all blocks. */
async function load() {
  const [head, counters, run, tables, series] = await Promise.all([
    json("head"),
    json("counters"),
    json("document"),
    block("tables"),
    block("series"),
  ]);
  model.head = head;
  model.counters = counters;
  model.run = run;
  model.base = BigInt(head.base);
  model.metricNumbers = new Map(head.metrics.map(([name], number) => [name, number]).filter(([name]) => name));
  model.described = new Map(head.tables.map((table) => [table.name, table]));
  model.flows = new Table(model.described.get("flows"), tables);
  model.events = new Table(model.described.get("events"), tables);

  const reader = new Reader(series);
  model.taps = new Map();
  for (let left = reader.number(); left > 0; left--) model.taps.set(reader.number(), new Series(reader));
  model.series = [];
  for (let left = reader.number(); left > 0; left--) {
    const id = reader.id(),
      tap = reader.number(),
      partial = reader.number() === 1;
    model.series.push({ id, tap, partial, series: new Series(reader) });
  }
  model.destinations = [];
  for (let left = reader.number(); left > 0; left--) {
    model.destinations.push({ tap: reader.number(), name: reader.text(), series: new Series(reader) });
  }

  // A flow, at a tap: its rows (one for each epoch), its series.
  model.flowAt = new Map();
  const ids = model.flows.column("flow_id"),
    taps = model.flows.column("tap"),
    counted = model.flows.column("counted");
  for (let row = 0; row < model.flows.rows; row++) {
    const key = `${ids[row]}/${taps[row]}`;
    if (!model.flowAt.has(key)) model.flowAt.set(key, { key, id: ids[row], tap: taps[row], rows: [], counted: false });
    const flow = model.flowAt.get(key);
    flow.rows.push(row);
    flow.counted ||= counted[row];
  }
  for (const kept of model.series) {
    const flow = model.flowAt.get(`${kept.id}/${kept.tap}`);
    if (flow) Object.assign(flow, { series: kept.series, partial: kept.partial });
  }
  // Of a flow at several taps, the one that counts.
  model.flowById = new Map();
  for (const flow of model.flowAt.values()) {
    const known = model.flowById.get(flow.id);
    if (!known || (flow.counted && !known.counted)) model.flowById.set(flow.id, flow);
  }
  // The time that there is to look at: all slots, or what the capture spans.
  const first = model.time(run.run.first_time),
    last = model.time(run.run.last_time);
  // Moments count from the first frame of the captures, as Wireshark's do; the first slot can begin a little before it.
  model.zero = model.time(run.run.zero_time) ?? first ?? (head.slots ? head.begin : 0);
  model.begin = head.slots ? head.begin : (first ?? 0);
  model.end = head.slots ? head.begin + head.slots * head.width : Math.max(last ?? 1, model.begin + 1);
}

/** A value of a flow: of its first epoch, or over all of them for what adds up. */
function flowValue(flow, name) {
  return model.flows.value(name, flow.rows[0]);
}

function flowSum(flow, name) {
  const column = model.flows.column(name);
  return flow.rows.reduce((sum, row) => sum + (column[row] ?? 0), 0);
}

/** How people call a flow. */
function flowName(flow) {
  if (!flow) return "";
  const qpn = flowValue(flow, "destination_qpn");
  return `${flowValue(flow, "source")} > ${flowValue(flow, "destination")} QP 0x${qpn.toString(16)}${ranksOf(flow)}`;
}

/** Ranks of sender and receiver behind a flow's name, where a job's log names them. */
function ranksOf(flow) {
  const [rank, peer, channel] = ["rank", "peer_rank", "channel"].map((name) => flowValue(flow, name));
  if (rank == null && peer == null) return "";
  const ends = rank == null ? `to rank ${peer}` : peer == null ? `from rank ${rank}` : `rank ${rank} > rank ${peer}`;
  return ` [${ends}${channel == null ? "" : `, channel ${channel}`}]`;
}
