"""Panels of a dashboard as one SVG picture, from Prometheus' answers to their queries. Colours are those of the report
(analyzer/report/src/html/style.css), in both themes; the picture takes that of the reader."""

import math
from html import escape

# A picture has this many panels, in two columns.
PANELS, COLUMNS = 8, 2
WIDTH, HEIGHT, GAP = 520, 232, 14
LEFT, RIGHT, TOP, PLOT = 72, 14, 40, 130
# Series in a panel, and letters of a name.
SERIES, LETTERS = 4, 34
LIGHT = {
    "page": "#f4f6f8", "surface": "#ffffff", "text": "#17202a", "quiet": "#586573", "line": "#c3ccd5", "grid": "#e6eaee",
    "flow-1": "#0072b2", "flow-2": "#d55e00", "flow-3": "#009e73", "flow-4": "#b8578f",
}
DARK = {
    "page": "#0f151b", "surface": "#182028", "text": "#e4eaf0", "quiet": "#9aa8b5", "line": "#3d4a57", "grid": "#27323c",
    "flow-1": "#4aa3e0", "flow-2": "#f0843c", "flow-3": "#2cc79a", "flow-4": "#e08fc0",
}
# Grafana's names of units: the factor, the unit behind the prefix, and whether prefixes are of 1,024.
UNITS = {
    "bps": (1, "bit/s", False), "Bps": (1, "B/s", False), "bytes": (1, "B", True), "pps": (1, "/s", False), "cps": (1, "/s", False),
    "ops": (1, "/s", False), "percentunit": (100, "%", None), "watt": (1, "W", None), "celsius": (1, "°C", None), "s": (1, "s", None),
}


def number(value, unit):
    factor, word, binary = UNITS.get(unit, (1, "", False))
    value *= factor
    if binary is not None:
        base, prefixes = (1024, ["", "Ki", "Mi", "Gi", "Ti"]) if binary else (1000, ["", "k", "M", "G", "T"])
        power = min(int(math.log(abs(value), base) + 1e-9), len(prefixes) - 1) if abs(value) >= base else 0
        value, word = value / base**power, prefixes[power] + word
    return f"{value:.4g} {word}".strip()


def ticks(low, high):
    """Round values from below `low` to above `high`, some four."""
    step = (high - low) / 4 or 1
    power = 10 ** math.floor(math.log10(step))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= step * 0.999)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [step * place for place in range(first, last + 1)]


def panel(title, unit, series, left, top, span):
    """`series` has names and points (time, value)."""
    out = [f'<g transform="translate({left} {top})"><rect class="panel" width="{WIDTH}" height="{HEIGHT}" rx="8"/>']
    out.append(f'<text class="title" x="14" y="24">{escape(title)}</text>')
    values = [value for _, points in series for _, value in points]
    marks = ticks(min(0, *values), max(values))
    low, high = marks[0], marks[-1]
    begin, end = span
    across = lambda time: LEFT + (time - begin) / (end - begin) * (WIDTH - LEFT - RIGHT)
    down = lambda value: TOP + PLOT - (value - low) / (high - low) * PLOT
    for mark in marks:
        out.append(f'<path class="grid" d="M{LEFT} {down(mark):.1f}H{WIDTH - RIGHT}"/>')
        out.append(f'<text class="quiet" x="{LEFT - 6}" y="{down(mark) + 4:.1f}" text-anchor="end">{escape(number(mark, unit))}</text>')
    for seconds in range(0, int(end - begin) + 1, 30):
        x = across(begin + seconds)
        anchor = "end" if x > WIDTH - RIGHT - 8 else "middle"
        out.append(f'<text class="quiet" x="{x:.1f}" y="{TOP + PLOT + 16}" text-anchor="{anchor}">{seconds} s</text>')
    shown = series[:SERIES]
    for place, (_, points) in enumerate(shown, 1):
        path, before = "", None
        for time, value in points:
            # A hole is no line.
            path += f"{'L' if before is not None and time - before < 3 else 'M'}{across(time):.1f} {down(value):.1f}"
            before = time
        out.append(f'<path class="line flow-{place}" d="{path}"/>')
    for place, (name, _) in enumerate(shown):
        x, y = 14 + place % 2 * (WIDTH - 28) / 2, TOP + PLOT + 35 + place // 2 * 16
        short = name if len(name) <= LETTERS else name[: LETTERS - 1] + "…"
        if place == SERIES - 1 and len(series) > SERIES:
            short += f", and {len(series) - SERIES} more"
        out.append(f'<path class="line flow-{place + 1}" d="M{x:.0f} {y - 4}h14"/><text x="{x + 20:.0f}" y="{y}">{escape(short)}</text>')
    out.append("</g>")
    return "".join(out)


def dashboard(title, panels, span):
    """The picture; `panels` have title, unit and series."""
    rows = -(-len(panels) // COLUMNS)
    width, height = COLUMNS * WIDTH + (COLUMNS + 1) * GAP, rows * (HEIGHT + GAP) + GAP + 40
    colours = lambda theme: "".join(f"--{name}:{colour};" for name, colour in theme.items())
    style = (
        f"svg{{{colours(LIGHT)}}}@media(prefers-color-scheme:dark){{svg{{{colours(DARK)}}}}}"
        "text{font:12px system-ui,'DejaVu Sans',sans-serif;fill:var(--text)}.name{font-size:16px;font-weight:600}"
        ".title{font-size:13px;font-weight:600}.quiet{fill:var(--quiet);font-size:11px}.page{fill:var(--page)}"
        ".panel{fill:var(--surface);stroke:var(--line)}.grid{stroke:var(--grid)}.line{fill:none;stroke-width:1.6;stroke-linejoin:round}"
        + "".join(f".flow-{place}{{stroke:var(--flow-{place})}}" for place in range(1, SERIES + 1))
    )
    said = f"{title}: " + ", ".join(panel[0] for panel in panels)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        f"<title>{escape(said)}</title><style>{style}</style>",
        f'<rect class="page" width="{width}" height="{height}"/><text class="name" x="{GAP}" y="30">{escape(title)}</text>',
    ]
    for place, (name, unit, series) in enumerate(panels):
        left, top = GAP + place % COLUMNS * (WIDTH + GAP), 40 + GAP + place // COLUMNS * (HEIGHT + GAP)
        out.append(panel(name, unit, series, left, top, span))
    return "\n".join(out) + "\n</svg>\n"
