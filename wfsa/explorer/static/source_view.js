// The schema or grammar: a view whose places light up, and a field to edit it in.
// A field of a megabyte is slow under every key, so of a large source the field holds a part: what is in view.

import { h, replace } from "./dom.js";
import { visible } from "./bytes.js";
import { allPlaces, findLine, findPlace } from "./places.js";
import { Rows } from "./rows.js";
import { begin } from "./timings.js";

const WORST = [undefined, "enforced", "annotation", "narrowed", "widened"];
const LARGE = 100000; // characters; beyond, only a part is edited at once
const PART = 30000;
const WIDEST = 200; // characters of a line; the rest goes on below

export class SourceView {
  constructor(host, { changed, compile }) {
    this.text = "";
    this.lines = [];
    this.lit = null;
    this.rows = new Rows((i) => this.line(i), { height: 20, label: "Schema or grammar, to read", className: "source-rows" });
    this.field = h("textarea", {
      id: "source-field", class: "code", spellcheck: "false", autocapitalize: "off", autocomplete: "off", autocorrect: "off",
      "aria-label": "Schema or grammar, to edit", hidden: true,
    });
    this.field.addEventListener("input", (event) => {
      begin("source", event);
      changed();
    });
    this.field.addEventListener("paste", (event) => {
      const pasted = event.clipboardData ? event.clipboardData.getData("text/plain") : "";
      if (pasted.length < LARGE) return;
      event.preventDefault();
      const { selectionStart, selectionEnd, value } = this.field;
      begin("paste", event);
      this.replaceAll(this.head + value.slice(0, selectionStart) + pasted + value.slice(selectionEnd) + this.tail);
      changed();
    });
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        compile();
      }
    });
    this.toggle = h("button", { type: "button", "aria-pressed": "false", onclick: () => this.edit(this.field.hidden) }, "Edit");
    this.head = this.tail = ""; // what stands around the part that is edited
    const file = h("input", { type: "file", id: "source-file", hidden: true, "aria-label": "Open a file as the source" });
    file.addEventListener("change", async () => {
      if (file.files.length) this.replaceAll(await file.files[0].text());
      file.value = "";
      changed();
    });
    const open = h("button", { type: "button", onclick: () => file.click() }, "Open …");
    const fresh = h("button", { type: "button", onclick: () => { this.replaceAll(""); this.edit(true); } }, "New");
    this.note = h("span", { class: "quiet", id: "source-note" });
    replace(host, h("div", { class: "bar" }, h("h2", {}, "Source"), this.toggle, fresh, open, file, this.note), this.rows.element, this.field);
  }

  get editing() {
    return !this.field.hidden;
  }

  edit(on) {
    if (on === this.editing) return;
    if (on) this.takePart();
    else this.set(this.current());
    this.field.hidden = !on;
    this.rows.element.hidden = on;
    this.toggle.setAttribute("aria-pressed", String(on));
    if (on) this.field.focus();
    else this.rows.paint(true);
  }

  // Into the field: everything, or of a large source some lines from those in view on.
  takePart() {
    const { text, lines } = this;
    this.head = this.tail = "";
    let part = text;
    if (text.length > LARGE) {
      const first = Math.min(lines.length - 1, Math.round(this.rows.element.scrollTop / this.rows.height));
      const begin = lines[first][0];
      const last = this.lineOf(begin + PART);
      const end = last + 1 < lines.length ? lines[last][0] : text.length;
      this.head = text.slice(0, begin);
      this.tail = text.slice(end);
      part = text.slice(begin, end);
      this.note.textContent = `${text.length.toLocaleString("en-US")} characters, of which these ${part.length.toLocaleString("en-US")} from line ${lines[first][2] || "…"} on are edited`;
    }
    this.field.value = part;
    this.field.setSelectionRange(0, 0);
  }

  replaceAll(text) {
    this.edit(false);
    this.set(text);
  }

  set(text) {
    this.text = text;
    this.lines = [];
    let number = 1;
    for (let begin = 0; begin <= text.length; number++) {
      let end = text.indexOf("\n", begin);
      if (end < 0) end = text.length;
      for (let at = begin; at === begin || at < end; at += WIDEST) this.lines.push([at, Math.min(end, at + WIDEST), at === begin ? number : 0]);
      begin = end + 1;
    }
    this.lit = null;
    this.marks = null;
    this.note.textContent = `${text.length.toLocaleString("en-US")} characters`;
    this.rows.set(this.lines.length);
  }

  // Beside each line the least that the report says of a keyword on it.
  mark(entries) {
    this.marks = new Map();
    if (this.text.length > 200000) return;
    const places = allPlaces(this.text);
    for (const [pointer, keyword, status] of entries) {
      const at = keyword ? places.get(`${pointer}/${keyword}`) : undefined;
      if (at === undefined) continue;
      const line = this.lineOf(at);
      if (WORST.indexOf(status) > WORST.indexOf(this.marks.get(line))) this.marks.set(line, status);
    }
    this.rows.paint(true);
  }

  lineOf(at) {
    let low = 0;
    let high = this.lines.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.lines[middle][0] <= at) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  current() {
    return this.editing ? this.head + this.field.value + this.tail : this.text;
  }

  line(i) {
    const [begin, end, number] = this.lines[i];
    const parts = [];
    if (this.lit && this.lit.begin < end && this.lit.end > begin) {
      const from = Math.max(begin, this.lit.begin);
      const to = Math.min(end, this.lit.end);
      parts.push(visible(this.text.slice(begin, from)), h("mark", {}, visible(this.text.slice(from, to))), visible(this.text.slice(to, end)));
    } else parts.push(visible(this.text.slice(begin, end)));
    return h("div", { class: "line" }, h("span", { class: `status-mark ${(this.marks && this.marks.get(i)) || ""}`, title: (this.marks && this.marks.get(i)) || null }), h("span", { class: "line-number", "aria-hidden": "true" }, number ? String(number) : ""), h("span", { class: "line-text" }, parts));
  }

  // Light up a JSON pointer or a line; tells whether it was found.
  light(place, kind) {
    const found = kind === "json-schema" ? findPlace(this.text, place) : findLine(this.text, place);
    if (!found) return false;
    if (this.editing) this.edit(false);
    this.lit = found;
    this.rows.reveal(this.lineOf(found.begin));
    return true;
  }
}
