// The schema or grammar: a view whose places light up, and a field to edit it in.
// A field of a megabyte is slow under every key, so of a large source the field holds a part: what is in view.

import { h, number, replace } from "./dom.js";
import { visible } from "./bytes.js";
import { allPlaces, findLine, findPlace } from "./places.js";
import { Rows } from "./rows.js";
import { begin } from "./timings.js";

const WORST = [undefined, "enforced", "annotation", "narrowed", "widened"];
const LARGE = 100000; // characters; beyond, only a part is edited at once
const PART = 30000;
const NARROWEST = 16; // characters of a line; what does not fit into the view goes on below

export class SourceView {
  constructor(host, { changed, compile }) {
    this.text = "";
    this.lines = [];
    this.columns = 80;
    this.lit = null;
    this.statuses = []; // [place, what the report says of it]
    this.rows = new Rows((i) => this.line(i), { height: 20, label: "Schema or grammar, to read", className: "source-rows" });
    new ResizeObserver(() => this.measure()).observe(this.rows.element);
    this.field = h("textarea", {
      id: "source-field", class: "code", spellcheck: "false", autocapitalize: "off", autocomplete: "off", autocorrect: "off",
      "aria-label": "Schema or grammar, to edit", hidden: true,
    });
    this.field.addEventListener("beforeinput", (event) => {
      if (!event.inputType.startsWith("history")) this.takeAll();
    });
    this.field.addEventListener("input", (event) => {
      begin("source", event);
      this.untakeAll();
      this.count();
      changed();
    });
    this.field.addEventListener("paste", (event) => {
      const pasted = event.clipboardData ? event.clipboardData.getData("text/plain") : "";
      if (pasted.length < LARGE) return;
      event.preventDefault();
      const { selectionStart, selectionEnd, value } = this.field;
      this.takeAll();
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
    this.partLine = 0; // the line where that begins
    this.taken = null; // the part, and what stood around it, before all was selected and replaced
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
      let line = first;
      while (!lines[line][2]) line--; // it goes on from there
      this.partLine = number(lines[line][2]);
    }
    this.field.value = part;
    this.field.setSelectionRange(0, 0);
    this.taken = null;
    this.count();
  }

  // Who selects all of a part means all of the source: what is about to replace it replaces what stands around it, too.
  takeAll() {
    const { selectionStart, selectionEnd, value } = this.field;
    if (!(this.head || this.tail) || !value || selectionEnd - selectionStart < value.length) return;
    this.taken = { part: value, head: this.head, tail: this.tail };
    this.head = this.tail = "";
  }

  // The part as it was: that has been undone.
  untakeAll() {
    if (!this.taken || this.field.value !== this.taken.part) return;
    this.head = this.taken.head;
    this.tail = this.taken.tail;
    this.taken = null;
  }

  count() {
    const around = this.head.length + this.tail.length;
    const own = this.field.value.length;
    replace(this.note, `${number(own + around)} characters${around ? `, of which these ${number(own)} from line ${this.partLine} on are edited` : ""}`);
  }

  // Another source, in place of what is edited as well.
  replaceAll(text) {
    this.edit(false);
    this.set(text);
  }

  set(text) {
    this.text = text;
    this.head = this.tail = "";
    this.lit = null;
    this.statuses = [];
    this.layOut();
    replace(this.note, `${number(text.length)} characters`);
  }

  // Lines as wide as the view.
  layOut() {
    const { text } = this;
    this.lines = [];
    let line = 1;
    for (let begin = 0; begin <= text.length; line++) {
      let end = text.indexOf("\n", begin);
      if (end < 0) end = text.length;
      for (let at = begin; at === begin || at < end; at += this.columns) this.lines.push([at, Math.min(end, at + this.columns), at === begin ? line : 0]);
      begin = end + 1;
    }
    this.layOutStatuses();
    this.rows.set(this.lines.length);
  }

  measure() {
    const { clientWidth, scrollTop } = this.rows.element;
    if (!clientWidth) return; // it is hidden
    const text = h("span", { class: "line-text" }, "0".repeat(64));
    const [left, width] = this.rows.measured(this.drawn(undefined, "", text), text);
    const columns = Math.max(NARROWEST, Math.floor((clientWidth - left) / width));
    if (columns === this.columns) return;
    const first = this.lines[Math.min(this.lines.length - 1, Math.round(scrollTop / this.rows.height))];
    this.columns = columns;
    this.layOut();
    if (first && first[0]) this.rows.element.scrollTop = this.lineOf(first[0]) * this.rows.height;
  }

  // Beside each line the least that the report says of a keyword on it.
  mark(entries) {
    this.statuses = [];
    if (this.text.length > 200000) return;
    const places = allPlaces(this.text);
    for (const [pointer, keyword, status] of entries) {
      const at = keyword ? places.get(`${pointer}/${keyword}`) : undefined;
      if (at !== undefined) this.statuses.push([at, status]);
    }
    this.layOutStatuses();
    this.rows.paint(true);
  }

  layOutStatuses() {
    this.marks = new Map();
    for (const [at, status] of this.statuses) {
      const line = this.lineOf(at);
      if (WORST.indexOf(status) > WORST.indexOf(this.marks.get(line))) this.marks.set(line, status);
    }
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
    return this.drawn(this.marks.get(i), number ? String(number) : "", h("span", { class: "line-text" }, parts));
  }

  drawn(status, number, text) {
    return h("div", { class: "line" }, h("span", { class: `status-mark ${status || ""}`, title: status }), h("span", { class: "line-number", "aria-hidden": "true" }, number), text);
  }

  // Light up a JSON pointer or a line; tells whether it was found.
  light(place, kind) {
    const found = kind === "json-schema" ? findPlace(this.text, place) : findLine(this.text, place);
    if (!found) return false;
    if (this.editing) this.edit(false);
    this.lit = found;
    this.rows.reveal(this.lineOf(found.begin));
    const mark = this.rows.window.querySelector("mark");
    if (mark) this.rows.across(mark);
    return true;
  }
}
