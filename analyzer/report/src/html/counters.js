// Tracks of counters: what adapters, interfaces and switches counted between two readings, as rates on the timeline's axis; and what GPUs showed.

/** How the rate of a track is written; changes are in base units, times in ns. */
const SCALES = {
  per_second: { factor: 1e9, format: (value) => `${scaled(value, "")}/s` },
  share: { factor: 1e9, format: percent },
  bits: { factor: 8e9, format: rate },
  // Gauges: a change is the value times the time in ns.
  ratio: { factor: 1, format: percent },
  memory: { factor: 1, format: (value) => scaled(value, "B") },
  watts: { factor: 1, format: (value) => scaled(value, "W") },
  rate: { factor: 8, format: rate },
  hertz: { factor: 1, format: (value) => scaled(value, "Hz") },
};

/**
 * The rate of one counter by slot: a change is spread evenly over the time between its two readings. Slots that no such time
 * reaches are absent. `within` is what fell on the axis.
 */
class Rate {
  constructor(changes, factor) {
    const { begin, width, slots } = model.head;
    this.values = new Float64Array(slots).fill(NaN);
    this.within = 0;
    const covered = new Float64Array(slots);
    for (const [from, to, by] of changes) {
      const first = Math.max(0, Math.floor((from - begin) / width)),
        last = Math.min(slots - 1, Math.ceil((to - begin) / width) - 1);
      for (let slot = first; slot <= last; slot++) {
        const start = begin + slot * width,
          time = Math.min(to, start + width) - Math.max(from, start);
        if (!(time > 0)) continue;
        if (!covered[slot]) this.values[slot] = 0;
        covered[slot] += time;
        this.values[slot] += (by * time) / (to - from);
      }
    }
    for (let slot = 0; slot < slots; slot++) {
      if (!covered[slot]) continue;
      this.within += this.values[slot];
      this.values[slot] *= factor / covered[slot];
    }
  }
}

/** The tracks of counters, and what was left out, in words. */
function counterTracks() {
  const { tracks, left_out, rows_left_out, seen } = model.counters;
  if (!seen) return { tracks: [], said: "no counters were read: live runs read them, --samples joins those of other runs" };
  const drawn = [];
  for (const track of tracks) {
    const { factor, format } = SCALES[track.scale];
    const layers = track.layers
      .map((layer, number) => ({ ...layer, metric: layer.name, color: theme.flows[number], line: new Rate(layer.changes, factor), steps: true }))
      .filter((layer) => layer.line.within > 0);
    if (layers.length)
      drawn.push({ id: `counters-${track.id}`, name: track.name, about: track.about, over: layers, format, legend: true });
  }
  const parts = [];
  if (!drawn.length) parts.push(tracks.length ? "none moved at the time of these packets" : "none moved");
  if (left_out) parts.push(`${count(left_out)} more that moved are in the table samples`);
  if (rows_left_out) parts.push(`${count(rows_left_out)} readings of further counters were not followed`);
  return { tracks: drawn, said: parts.join("; ") };
}
