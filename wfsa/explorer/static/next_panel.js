// The tokens that may come next, in groups; a chosen token is written, and a key removes it again.

import { ask, recorded } from "./api.js";
import { byteSet, characterEnd, fromHex, shown, token as tokenText, whole } from "./bytes.js";
import { counted, h, number, replace } from "./dom.js";

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
    this.cursor = this.offset = 0; // of the text, and of the tokens that are shown
    this.focusFirst = false;
    this.chosen = false;
    this.unfolded = false; // white space
  }

  key(event) {
    const inField = event.target === this.search;
    if ((event.key === "ArrowLeft" && event.altKey) || (event.key === "Backspace" && !inField)) {
      event.preventDefault();
      this.focusFirst = !inField;
      this.back();
      return;
    }
    const buttons = Array.from(this.groups.querySelectorAll("button.next-token:not(:disabled)")).filter((one) => one.offsetParent);
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
    if (this.busy) return; // only the last of the waiting requests is sent
    const { document: name, key, version } = this.follow;
    if (!key) return;
    this.before(this.cursor);
    const { chosen } = this; // set before this request: the answer is for the text with the chosen token
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

  // Shows the text before the place of the tokens, and the refused text up to the cursor.
  before(offset) {
    const bytes = this.follow.wanted;
    const from = Math.min(offset, characterEnd(bytes, Math.max(0, offset - 60)));
    replace(this.context, h("code", {}, `${from ? "…" : ""}${shown(bytes.subarray(from, offset))}`), h("span", { class: "caret", "aria-hidden": "true" }, "│"),
      offset < this.cursor ? h("del", {}, shown(bytes.subarray(offset, Math.min(this.cursor, offset + 60)))) : null);
  }

  show(found) {
    this.offset = Math.min(found.offset, this.cursor);
    this.before(this.offset);
    const parts = [`${number(found.count)} of ${number(found.size)} tokens may follow`];
    parts[0] += ` at byte ${number(this.offset)}`;
    if (this.offset < this.cursor) parts.push(recorded ? "the text is refused there" : `the text is refused there, and a chosen token replaces ${counted(this.cursor - this.offset, "byte")} between there and the cursor`);
    if (this.search.value) parts.push(`${number(found.found)} of them match`);
    parts.push(found.accepting ? "the text may end here" : "the text may not end here");
    if (found.left !== null && found.left !== undefined) parts.push(`at least ${number(found.left)} ${found.left === 1 ? "token" : "tokens"} to the end`);
    replace(this.summary, `${parts.join("; ")}.`, found.forced ? [" Forced: ", h("code", {}, shown(fromHex(found.forced)))] : "", found.bytes ? ` Next byte: ${byteSet(fromHex(found.bytes))}.` : "");
    const groups = found.groups.map((group, i) => this.group(group, i));
    const white = found.groups.filter((group) => group.white);
    const others = groups.splice(0, groups.length - white.length);
    replace(this.groups, others, found.left_off ? h("p", { class: "quiet" }, `${found.left_off} smaller groups are left out; search to see them.`) : null,
      others.length && white.length ? this.fold(white, groups) : groups);
    const first = this.groups.querySelector("button.next-token:not(:disabled)");
    if (first) first.tabIndex = 0;
    if (this.focusFirst) {
      this.focusFirst = false;
      (first || this.backButton).focus();
    }
  }

  // Folds white space under one button: it is allowed almost anywhere, in many tokens.
  fold(white, groups) {
    const count = white.reduce((sum, group) => sum + group.count, 0);
    const inside = h("div", { class: "groups", id: "white-space", hidden: !this.unfolded }, groups);
    const button = h("button", {
      type: "button", class: "next-token fold", tabindex: "-1", "aria-expanded": String(this.unfolded), "aria-controls": inside.id,
      onclick: () => {
        this.unfolded = inside.hidden;
        inside.hidden = !this.unfolded;
        button.setAttribute("aria-expanded", String(this.unfolded));
      },
    }, `white space (${number(count)})`);
    return [button, inside];
  }

  group(group, i) {
    const names = (list, last) => list.map((one, j) => [!j ? "" : j < list.length - 1 || /^\d/.test(one.words || "") ? ", " : last, one.name ? h("code", {}, one.name) : one.words, one.place ? [" ", h("button", { type: "button", class: "place", onclick: () => this.place(one.place) }, one.place)] : ""]);
    const title = {
      end: ["end the text"],
      late: ["not grouped in time; a search narrows the list"],
      stay: ["stay inside or before ", names(group.then, " or ")],
      change: [group.ends.length ? [group.ends.length > 1 ? "end one of " : "end ", names(group.ends, ", "), " → "] : "", "then ", names(group.then, " or ")],
    }[group.kind];
    const more = group.count - group.tokens.length;
    return h("section", { class: "group", "aria-labelledby": `group-${i}` },
      h("h3", { id: `group-${i}` }, title, h("span", { class: "quiet" }, ` ${number(group.count)}${group.p === null ? "" : `, ${(100 * group.p).toFixed(1)} %`}`)),
      h("ul", { class: "next-list" }, group.tokens.map((token) => h("li", {}, this.token(token, group.kind)))),
      more <= 0 ? null : recorded ? h("p", { class: "quiet" }, `${number(more)} more`) : h("button", { type: "button", class: "more", onclick: () => this.more() }, `${number(more)} more`));
  }

  token(token, kind) {
    const bytes = fromHex(token.hex);
    const text = token.special || kind === "end" ? null : whole(bytes);
    const percent = token.p === null ? null : h("span", { class: "p" }, token.p < 0.0001 ? "<0.01 %" : `${(100 * token.p).toFixed(token.p < 0.01 ? 2 : 0)} %`);
    return h("button", {
      type: "button", class: "next-token", tabindex: "-1", disabled: text === null || Boolean(recorded),
      title: recorded ? `token ${token.id}` : text === null ? (kind === "end" ? "the end of the text" : "only a part of a character, which cannot be written by itself") : `token ${token.id}`,
      onclick: () => {
        if (this.chosen) return; // a second click, before the tokens are updated
        this.chosen = true;
        this.focusFirst = true;
        this.search.value = "";
        this.commit(text, this.offset);
      },
    }, h("span", {}, tokenText(bytes) || "(nothing)"), percent);
  }

  more() {
    this.limit = Math.min(2000, this.limit * 4);
    this.refresh();
  }
}
