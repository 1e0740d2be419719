// The report of a schema: enforced, narrowed and ignored keywords; choosing an entry highlights its place in the source.

import { ask } from "./api.js";
import { h, number, replace } from "./dom.js";
import { Rows } from "./rows.js";

const STATUSES = ["enforced", "narrowed", "annotation", "widened"];
const NAMES = { narrowed: "one form", widened: "ignored" }; // "narrowed" would read as a warning
const MEANS = {
  enforced: "exactly the values that the keyword allows",
  narrowed: "enforced, in one of several spellings or orders (narrowed)",
  annotation: "asserts nothing here",
  widened: "not enforced, because an option says so (widened)",
};

export function statusName(status) {
  return NAMES[status] || status;
}

export class ReportPanel {
  constructor({ place, mark }) {
    this.place = place;
    this.mark = mark;
    this.entries = [];
    this.shown = [];
    this.selected = 0;
    this.key = null;
    this.filters = STATUSES.map((name) => {
      const box = h("input", { type: "checkbox", id: `status-${name}`, checked: true, onchange: () => this.filter() });
      return { name, box, count: h("span", { class: "quiet" }) };
    });
    this.search = h("input", { type: "search", id: "report-search", placeholder: "search places and notes", "aria-label": "Search the report", oninput: () => this.filter() });
    this.summary = h("p", { role: "status", "aria-live": "polite", id: "report-summary" });
    this.rows = new Rows((i) => this.line(i), { height: 46, label: "Report; arrows move, Enter highlights the place", className: "report-rows", role: "group" });
    this.rows.element.addEventListener("keydown", (event) => this.press(event));
    this.rows.element.addEventListener("click", (event) => {
      const line = event.target.closest("[data-row]");
      if (line) this.select(Number(line.dataset.row), true);
    });
    this.detail = h("p", { "aria-live": "polite", id: "report-detail" });
    this.element = h("div", { class: "report-panel" },
      this.summary,
      h("div", { class: "bar", role: "group", "aria-label": "Show" }, this.filters.map((one) => h("span", { class: "field", title: MEANS[one.name] }, one.box, h("label", { for: `status-${one.name}` }, h("span", { class: `badge ${one.name}` }, statusName(one.name)), " ", one.count))), this.search),
      this.rows.element, this.detail);
  }

  compiled(made) {
    this.key = made.key;
    this.loaded = null;
  }

  uncompiled({ message, places, lenient }) {
    this.key = null;
    this.entries = [];
    this.filter();
    replace(this.summary, h("span", { class: "badge refused-badge" }, "refused"), ` ${message} `, places.map((one) => [h("button", { type: "button", class: "place", onclick: () => this.place(one) }, one || "the root"), " "]),
      lenient && !document.getElementById("lenient").checked ? " With the option “lenient”, keywords that cannot be enforced are ignored and listed here." : null);
  }

  async showAt() {
    if (!this.key || this.loaded === this.key) return;
    const key = (this.loaded = this.key);
    let found;
    try {
      found = await ask("report", { key });
    } catch (error) {
      this.loaded = null;
      replace(this.summary, error.message);
      return;
    }
    if (key !== this.key) return;
    this.entries = found.entries;
    for (const one of this.filters) one.count.textContent = number(found.counts[one.name] || 0);
    replace(this.summary, found.entries.length ? `${number(found.entries.length)} entries${found.left_off ? ", and more" : ""}` : "A grammar is enforced as written; only JSON Schemas have reports.");
    this.selected = 0;
    this.filter();
    this.mark(found.entries);
  }

  filter() {
    const on = new Set(this.filters.filter((one) => one.box.checked).map((one) => one.name));
    const wanted = this.search.value.toLowerCase();
    this.shown = this.entries.filter(([pointer, keyword, status, note]) => on.has(status) && (!wanted || `${pointer}/${keyword} ${note}`.toLowerCase().includes(wanted)));
    this.selected = Math.min(this.selected, Math.max(0, this.shown.length - 1));
    this.rows.set(this.shown.length);
  }

  line(i) {
    const [pointer, keyword, status, note] = this.shown[i];
    return h("div", { class: `entry${i === this.selected ? " selected" : ""}`, "data-row": i },
      h("div", { class: "entry-place" }, h("span", { class: `badge ${status}` }, statusName(status)), " ", h("code", {}, keyword ? `${pointer}/${keyword}` : pointer || "every document")),
      h("div", { class: "entry-note quiet" }, note || "—"));
  }

  select(i, light) {
    this.selected = i;
    this.rows.reveal(i);
    const entry = this.shown[i];
    if (!entry) return;
    const [pointer, keyword, status, note] = entry;
    replace(this.detail, h("strong", {}, statusName(status)), `: ${MEANS[status]}. ${note}`);
    if (light) this.place(keyword ? `${pointer}/${keyword}` : pointer);
  }

  press(event) {
    const last = this.shown.length - 1;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.select(this.selected, true);
      return;
    }
    const to = { ArrowDown: this.selected + 1, ArrowUp: this.selected - 1, PageDown: this.selected + 8, PageUp: this.selected - 8, Home: 0, End: last }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.select(Math.max(0, Math.min(last, to)), false);
  }
}
