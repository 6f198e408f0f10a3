// A table of many rows: only those in view are in the page. Sorts, filters, copies.

const ROW = 26;

/**
 * `columns`: name, label, value(row), and if need be text(value), numeric, about (what it means), wide, link(row).
 * `rows`: how many. `open(row)`: what a click on a row does. `only(row)`: which rows the view wants.
 */
class Grid {
  constructor({
    id,
    columns,
    rows,
    height = 420,
    open = null,
    only = null,
    order = null,
    search = false,
    marked = null,
  }) {
    Object.assign(this, { id, columns, rows, open, only, marked });
    this.order = order;
    this.needle = "";
    this.head = el("thead");
    this.body = el("tbody");
    this.table = el("table", { class: "grid", "aria-rowcount": String(rows) }, this.head, this.body);
    this.scroller = el(
      "div",
      { class: "scroller", tabindex: "0", role: "region", "aria-label": `${id}: scrolls` },
      this.table,
    );
    this.scroller.tabIndex = 0;
    this.scroller.style.maxHeight = `${height}px`;
    this.status = el("span", { class: "quiet" });
    this.input = search
      ? el("input", {
          type: "search",
          placeholder: "Filter: words, or column>number",
          "aria-label": "Filter rows",
          oninput: () => {
            this.needle = this.input.value;
            this.pick();
          },
        })
      : null;
    const bar = el(
      "div",
      { class: "grid-bar" },
      this.input,
      this.status,
      el(
        "button",
        { type: "button", class: "copy", title: "Copies the rows as tab-separated text", onclick: () => this.copy() },
        "Copy rows",
      ),
    );
    this.element = el("div", { class: "grid-box", "data-grid": id }, bar, this.scroller);
    this.scroller.addEventListener("scroll", () => this.draw());
    this.scroller.addEventListener("keydown", (event) => this.key(event));
    this.drawHead();
    this.pick();
  }

  drawHead() {
    this.head.replaceChildren(
      el(
        "tr",
        {},
        this.columns.map((column) => {
          const sorted = this.order?.column === column.name ? (this.order.down ? "descending" : "ascending") : "none";
          return el(
            "th",
            { scope: "col", "aria-sort": sorted, class: column.numeric ? "numeric" : null, title: column.about ?? "" },
            el(
              "button",
              { type: "button", "data-column": column.name, onclick: () => this.sort(column) },
              column.label,
              el("span", { class: "arrow" }, { descending: " ↓", ascending: " ↑", none: "" }[sorted]),
            ),
          );
        }),
      ),
    );
  }

  sort(column) {
    const down = this.order?.column === column.name ? !this.order.down : Boolean(column.numeric);
    this.order = { column: column.name, down };
    this.drawHead();
    this.pick();
    this.head.querySelector(`[data-column="${CSS.escape(column.name)}"]`)?.focus();
  }

  /** The rows that are wanted, in order. */
  pick() {
    const tests = conditions(this.needle, this.columns);
    this.picked = [];
    for (let row = 0; row < this.rows; row++) {
      if (this.only && !this.only(row)) continue;
      if (tests.every((test) => test(row))) this.picked.push(row);
    }
    const by = this.order && this.columns.find((column) => column.name === this.order.column);
    if (by) {
      const values = new Map(this.picked.map((row) => [row, by.value(row)]));
      const sign = this.order.down ? -1 : 1;
      this.picked.sort((a, b) => {
        const x = values.get(a),
          y = values.get(b);
        if (x == null || y == null) return (x == null) - (y == null) || a - b;
        return sign * (typeof x === "string" ? collate.compare(x, y) : x - y) || a - b;
      });
    }
    this.status.textContent =
      this.picked.length === this.rows
        ? many(this.rows, "row")
        : `${count(this.picked.length)} of ${many(this.rows, "row")}`;
    this.element.dataset.rows = String(this.picked.length);
    this.scroller.scrollTop = 0;
    this.draw(true);
  }

  /** Rows around what is scrolled to; above and below room for the others. What has the focus keeps it. */
  draw(isForced = false) {
    const printing = document.documentElement.classList.contains("printing");
    const first = printing ? 0 : Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - 10);
    const last = printing
      ? Math.min(this.picked.length, 60)
      : Math.min(this.picked.length, first + Math.ceil((this.scroller.clientHeight || 500) / ROW) + 24);
    if (!isForced && this.drawn === `${first} ${last}`) return;
    this.drawn = `${first} ${last}`;
    const focused = this.body.contains(document.activeElement)
      ? document.activeElement.closest("tr").dataset.row
      : null;
    const space = (rows) =>
      rows > 0 && !printing ? [el("tr", { class: "space", "aria-hidden": "true" }, this.sized(rows * ROW))] : [];
    this.body.replaceChildren(
      ...space(first),
      ...this.picked.slice(first, last).map((row, i) => this.row(row, first + i)),
      ...space(this.picked.length - last),
    );
    if (focused != null)
      (this.body.querySelector(`tr[data-row="${focused}"] button`) ?? this.scroller).focus({ preventScroll: true });
  }

  sized(height) {
    const cell = el("td", { colSpan: this.columns.length });
    cell.style.height = `${height}px`;
    return cell;
  }

  row(row, number) {
    const cells = this.columns.map((column, place) => {
      const value = column.value(row),
        text = column.text ? column.text(value, row) : value == null ? "–" : String(value);
      const cell = el("td", {
        class: [column.numeric ? "numeric" : "", column.wide ? "wide" : ""].join(" ").trim() || null,
        "data-column": column.name,
        "data-value": value == null ? null : String(value),
        title: column.wide ? text : "",
      });
      if (column.color) {
        const swatch = el("i", { class: "swatch" });
        swatch.style.background = column.color(row);
        cell.append(swatch);
      }
      cell.append(
        place === 0 && this.open
          ? el("button", { type: "button", class: "link", onclick: () => this.open(row) }, text)
          : text,
      );
      return cell;
    });
    return el(
      "tr",
      { "data-row": String(row), "aria-rowindex": String(number + 1), class: this.marked?.(row) ? "marked" : null },
      cells,
    );
  }

  key(event) {
    const by = { PageDown: 1, PageUp: -1 }[event.key];
    if (by) {
      event.preventDefault();
      this.scroller.scrollTop += by * (this.scroller.clientHeight - 2 * ROW);
    }
  }

  /** All rows that are picked, as tab-separated text, numbers as they are. */
  tsv() {
    const clean = (value) => (value == null ? "" : String(value).replace(/[\t\r\n]+/g, " "));
    const lines = this.picked.map((row) =>
      this.columns.map((column) => clean(column.copied ? column.copied(row) : column.value(row))).join("\t"),
    );
    return [this.columns.map((column) => column.name).join("\t"), ...lines].join("\n") + "\n";
  }

  copy() {
    copy(this.tsv(), `${many(this.picked.length, "row")} on the clipboard`);
    this.status.textContent = `${many(this.picked.length, "row")} copied`;
  }
}

/** Columns that have a value other than 0 in some row. */
function withValues(columns, rows) {
  return columns.filter((column) => {
    for (let row = 0; row < rows; row++) {
      const value = column.value(row);
      if (value != null && value !== 0 && value !== "") return true;
    }
    return false;
  });
}

const collate = new Intl.Collator("en", { numeric: true });

/** What is typed, as conditions: `name>number`, `name=text`, and words that any column has. */
function conditions(needle, columns) {
  return needle
    .trim()
    .toLowerCase()
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => {
      const parts = /^([a-z_][a-z0-9_]*)(>=|<=|>|<|=)(.+)$/.exec(word);
      const column = parts && columns.find((known) => known.name.toLowerCase() === parts[1]);
      if (column) {
        const [, , sign, wanted] = parts,
          number = Number(wanted);
        if (sign === "=")
          return (row) => {
            const value = column.value(row);
            return value === number || String(value ?? "").toLowerCase() === wanted;
          };
        if (!Number.isNaN(number))
          return (row) => {
            const value = column.value(row);
            return (
              value != null &&
              { ">": value > number, "<": value < number, ">=": value >= number, "<=": value <= number }[sign]
            );
          };
      }
      return (row) =>
        columns.some((known) => {
          const value = known.value(row);
          return (
            value != null &&
            (String(value).toLowerCase().includes(word) ||
              Boolean(known.text?.(value, row).toLowerCase().includes(word)))
          );
        });
    });
}
