// The tokens that may come next, in groups; one that is chosen is written, and a key takes it back.

import { ask } from "./api.js";
import { byteSet, decode, fromHex, shown, token as tokenText, whole } from "./bytes.js";
import { h, number, replace } from "./dom.js";

export class NextPanel {
  constructor({ commit, back, place }) {
    this.commit = commit;
    this.back = back;
    this.place = place;
    this.limit = 60;
    this.waiting = 0;
    this.search = h("input", { type: "search", id: "next-search", placeholder: "search tokens", "aria-label": "Search the allowed tokens", autocomplete: "off" });
    this.search.addEventListener("input", () => this.refresh());
    this.backButton = h("button", { type: "button", onclick: () => this.back(), title: "Backspace in the list, or Alt+Left" }, "Step back");
    this.model = h("input", { type: "checkbox", id: "model", onchange: () => { if (this.model.checked) replace(this.summary, "the model reads the text …"); this.refresh(); } });
    this.modelField = h("span", { class: "field", hidden: true }, this.model, h("label", { for: "model" }, "small model"));
    this.context = h("p", { class: "context" });
    this.summary = h("p", { id: "next-summary", role: "status", "aria-live": "polite" });
    this.groups = h("div", { class: "groups" });
    this.element = h("div", { class: "next-panel" }, this.context, h("div", { class: "bar" }, this.search, this.modelField, this.backButton), this.summary, this.groups);
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.follow = null;
    this.cursor = 0;
    this.focusFirst = false;
    this.chosen = false;
  }

  key(event) {
    const inField = event.target === this.search;
    if ((event.key === "ArrowLeft" && event.altKey) || (event.key === "Backspace" && !inField)) {
      event.preventDefault();
      this.focusFirst = !inField;
      this.back();
      return;
    }
    const buttons = Array.from(this.groups.querySelectorAll("button.next-token:not(:disabled)"));
    const at = buttons.indexOf(document.activeElement);
    if (at < 0) {
      if (inField && event.key === "ArrowDown" && buttons.length) {
        event.preventDefault();
        buttons[0].focus();
      }
      return;
    }
    const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    if (to < 0) this.search.focus();
    else if (to < buttons.length) {
      buttons[at].tabIndex = -1;
      buttons[to].tabIndex = 0;
      buttons[to].focus();
    }
  }

  showAt(cursor) {
    this.cursor = cursor;
    this.limit = 60;
    this.refresh();
  }

  async refresh() {
    const mine = ++this.waiting;
    if (this.busy) return; // the last of those that wait is asked
    const { document: name, key, version, wanted } = this.follow;
    if (!key) return;
    const tail = decode(wanted.subarray(Math.max(0, this.cursor - 60), this.cursor));
    replace(this.context, h("code", {}, `${this.cursor > 60 ? "…" : ""}${shown(new TextEncoder().encode(tail))}`), h("span", { class: "caret", "aria-hidden": "true" }, "│"));
    const { chosen } = this; // before this was asked: the answer is of the text with it
    let found;
    this.busy = true;
    try {
      found = await ask("next", { document: name, key, version, offset: this.cursor, search: this.search.value, limit: this.limit, model: this.model.checked });
    } catch (error) {
      if (mine === this.waiting && error.code !== 409) {
        replace(this.summary, error.message);
        replace(this.groups);
      }
      return;
    } finally {
      if (chosen) this.chosen = false;
      this.busy = false;
      if (mine !== this.waiting) this.refresh();
    }
    if (mine === this.waiting) this.show(found);
  }

  show(found) {
    const parts = [`${number(found.count)} of ${number(found.size)} tokens may follow`];
    if (found.offset < this.cursor) parts.push(`before byte ${number(found.offset)}, where the text is refused`);
    if (this.search.value) parts.push(`${number(found.found)} of them match`);
    parts.push(found.accepting ? "the text may end here" : "the text may not end here");
    if (found.left !== null && found.left !== undefined) parts.push(`at least ${number(found.left)} ${found.left === 1 ? "token" : "tokens"} to the end`);
    replace(this.summary, `${parts.join("; ")}.`, found.forced ? [" Forced: ", h("code", {}, shown(fromHex(found.forced)))] : "", found.bytes ? ` Next byte: ${byteSet(fromHex(found.bytes))}.` : "");
    replace(this.groups, found.groups.map((group, i) => this.group(group, i)), found.left_off ? h("p", { class: "quiet" }, `${found.left_off} smaller groups are left out; search to see them.`) : null);
    const first = this.groups.querySelector("button.next-token:not(:disabled)");
    if (first) first.tabIndex = 0;
    if (this.focusFirst) {
      this.focusFirst = false;
      (first || this.backButton).focus();
    }
  }

  group(group, i) {
    const names = (list) => list.map((one, j) => [j ? ", " : "", h("code", {}, one.name), one.place ? [" ", h("button", { type: "button", class: "place", onclick: () => this.place(one.place) }, one.place)] : ""]);
    const title = {
      end: ["end the text"],
      late: ["not looked at in time: search for less"],
      stay: ["stay inside or before ", names(group.begins)],
      change: [group.ends.length ? ["end ", names(group.ends), " → "] : "", "begin ", names(group.begins)],
    }[group.kind];
    const more = group.count - group.tokens.length;
    return h("section", { class: "group", "aria-labelledby": `group-${i}` },
      h("h3", { id: `group-${i}` }, title, h("span", { class: "quiet" }, ` ${number(group.count)}${group.p === null ? "" : `, ${(100 * group.p).toFixed(1)} %`}`)),
      h("ul", { class: "next-list" }, group.tokens.map((token) => h("li", {}, this.token(token, group.kind)))),
      more > 0 ? h("button", { type: "button", class: "more", onclick: () => this.more() }, `${number(more)} more`) : null);
  }

  token(token, kind) {
    const bytes = fromHex(token.hex);
    const text = token.special || kind === "end" ? null : whole(bytes);
    const percent = token.p === null ? null : h("span", { class: "p" }, token.p < 0.0001 ? "<0.01 %" : `${(100 * token.p).toFixed(token.p < 0.01 ? 2 : 0)} %`);
    return h("button", {
      type: "button", class: "next-token", tabindex: "-1", disabled: text === null,
      title: text === null ? (kind === "end" ? "the end of the text" : "only a part of a character: it cannot be written by itself") : `token ${token.id}`,
      onclick: () => {
        if (this.chosen) return; // a second click, before there are other tokens
        this.chosen = true;
        this.focusFirst = true;
        this.search.value = "";
        this.commit(text);
      },
    }, h("span", {}, tokenText(bytes) || "(nothing)"), percent);
  }

  more() {
    this.limit = Math.min(2000, this.limit * 4);
    this.refresh();
  }
}
