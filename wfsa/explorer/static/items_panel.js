// A set of items as a trie: a prefix of codes, the codes that may follow, and the effect of a filter.

import { ask } from "./api.js";
import { h, number, replace } from "./dom.js";

export class ItemsPanel {
  constructor() {
    this.codes = [];
    this.only = null;
    this.path = h("div", { class: "bar", role: "group", "aria-label": "Prefix" });
    this.filter = h("input", { type: "text", id: "items-only", placeholder: "ids, separated by commas; empty for all", autocomplete: "off" });
    this.filter.addEventListener("change", () => this.refilter());
    this.summary = h("p", { role: "status", "aria-live": "polite", id: "items-summary" });
    this.children = h("div");
    this.element = h("div", { class: "items-panel" }, this.path, h("p", { class: "field wide" }, h("label", { for: "items-only" }, "Only items"), this.filter), this.summary, this.children);
    this.element.addEventListener("keydown", (event) => {
      if (event.target === this.filter || !this.codes.length) return;
      if (event.key === "Backspace" || (event.key === "ArrowLeft" && event.altKey)) {
        event.preventDefault();
        this.go(this.codes.slice(0, -1), true);
      }
    });
  }

  showAt() {
    if (!this.shown) this.go([]);
  }

  refilter() {
    const ids = this.filter.value.split(",").map((one) => one.trim()).filter(Boolean).map(Number);
    this.only = ids.length ? ids : null;
    this.go(this.codes);
  }

  async go(codes, focus) {
    let found;
    try {
      found = await ask("items", { codes, only: this.only });
    } catch (error) {
      replace(this.summary, error.message);
      return;
    }
    this.shown = true;
    this.codes = codes;
    replace(this.path, h("button", { type: "button", onclick: () => this.go([], true) }, "all"), codes.map((code, i) => h("button", { type: "button", onclick: () => this.go(codes.slice(0, i + 1), true) }, String(code))));
    const live = found.live === null ? "" : `, of which the filter leaves ${number(found.live)}`;
    replace(this.summary, `${number(found.sequences)} sequences below${live}; ${number(found.count)} codes may follow at level ${codes.length} of ${found.levels}.`, found.n_items ? ` Items here: ${found.items.join(", ")}${found.n_items > found.items.length ? ", …" : ""}.` : "");
    const counts = found.children.map(([, size, alive]) => (alive === size ? number(size) : `${number(alive)} of ${number(size)}`));
    const widest = Math.max(0, ...counts.map((one) => one.length)); // so that all bars have the same room
    const most = Math.max(1, ...found.children.map((one) => one[2]));
    replace(this.children, h("ul", { class: "trie", style: { "--count": `${widest}ch` } }, found.children.map(([code, , alive], i) => h("li", {}, h("button", { type: "button", class: "trie-node", onclick: () => this.go([...codes, code], true) },
      h("span", { class: "code" }, String(code)), h("span", { class: "bar-cell", "aria-hidden": "true" }, h("span", { class: "bar-fill", style: { width: `${(100 * alive) / most}%` } })), h("span", { class: "quiet" }, counts[i]))))),
      found.count > found.children.length ? h("p", { class: "quiet" }, `${number(found.count - found.children.length)} more are not shown.`) : null);
    if (focus) (this.children.querySelector("button") || this.path.querySelector("button")).focus();
  }
}
