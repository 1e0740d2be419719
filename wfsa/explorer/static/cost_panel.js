// Costs: compile time by stage and by place of the schema, times along the text, sizes, tokens left.

import { ask } from "./api.js";
import { h, kilobytes, milliseconds, number, replace, svg } from "./dom.js";

const WIDTHS = [["seconds", "time to compile it by itself"], ["lr", "LR states"], ["lexer", "lexer states"]];

function bars(rows, format) {
  const most = Math.max(...rows.map(([, value]) => value), 1e-12);
  return h("table", { class: "bars" }, h("tbody", {}, rows.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, format(value)),
    h("td", { class: "bar-cell", "aria-hidden": "true" }, h("div", { class: "bar-fill", style: { width: `${Math.max(0.5, (100 * value) / most)}%` } }))))));
}

// A curve over the bytes of the text, with a caption for readers who do not see it.
function curve(points, label, unit) {
  if (points.length < 2) return h("p", { class: "quiet" }, "The text is too short for a curve.");
  const width = 600;
  const height = 90;
  const mostX = points[points.length - 1][0] || 1;
  const mostY = Math.max(...points.map(([, y]) => y)) || 1;
  const path = points.map(([x, y], i) => `${i ? "L" : "M"}${((x / mostX) * width).toFixed(1)} ${(height - (y / mostY) * (height - 4)).toFixed(1)}`).join("");
  return h("figure", {}, svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "curve", role: "img", "aria-label": `${label}: at most ${number(mostY)} ${unit}`, preserveAspectRatio: "none" }, svg("path", { d: path, "vector-effect": "non-scaling-stroke" })),
    h("figcaption", { class: "quiet" }, `${label}: at most ${number(mostY)} ${unit}; bytes 0 to ${number(mostX)}`));
}

export class CostPanel {
  constructor({ place }) {
    this.place = place;
    this.made = null;
    this.tree = null;
    this.width = "seconds";
    this.stages = h("div");
    this.flame = h("div", { class: "flame-box" });
    this.times = h("div");
    this.element = h("div", { class: "cost-panel" }, h("h2", {}, "Compiling, by stage"), this.stages,
      h("h2", {}, "Compiling, by place of the schema"), this.flame,
      h("h2", {}, "Along the text"), this.times);
  }

  compiled(made) {
    this.made = made;
    this.tree = null;
    this.asked = null;
  }

  async showAt() {
    if (!this.made) return;
    const { made } = this;
    replace(this.stages, bars(Object.entries(made.stages), milliseconds),
      h("details", {}, h("summary", {}, "Sizes and memory"),
        h("table", { class: "facts" }, h("tbody", {},
          Object.entries(made.sizes).map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name.replaceAll("_", " ")), h("td", {}, typeof value === "boolean" ? (value ? "yes" : "no") : number(value)))),
          Object.entries(made.memory).map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, `memory: ${name}`), h("td", {}, kilobytes(value)))),
          h("tr", {}, h("th", { scope: "row" }, "memory, all"), h("td", {}, kilobytes(made.memory_bytes))),
          h("tr", {}, h("th", { scope: "row" }, "stack depth read"), h("td", {}, made.stack_depth === null ? "no bound" : number(made.stack_depth))),
          h("tr", {}, h("th", { scope: "row" }, "fewest tokens of a text"), h("td", {}, made.least_tokens === null ? "unknown" : number(made.least_tokens)))))));
    this.along();
    if (this.asked === made.key) return;
    this.asked = made.key;
    replace(this.flame, h("p", { class: "quiet" }, made.kind === "json-schema" ? "measuring, for at most three seconds …" : "Costs by place are for JSON Schemas only."));
    if (made.kind !== "json-schema") return;
    let found;
    try {
      found = await ask("places", { key: made.key });
    } catch (error) {
      this.asked = null;
      replace(this.flame, error.message);
      return;
    }
    if (this.made !== made) return;
    this.tree = found;
    this.draw();
  }

  async along() {
    const { document: name, key, version } = this.follow;
    let found;
    try {
      found = await ask("along", { document: name, key, version });
    } catch (error) {
      return;
    }
    const words = (one) => (one.median === undefined ? "none" : `${one.median} µs in the median, ${one.p99} µs at the 99th percentile, ${one.most} µs at most, ${milliseconds(one.sum / 1e6)} in total`);
    replace(this.times,
      h("p", {}, `${number(found.tokens)} tokens. Masks: ${words(found.mask)}. Commits: ${words(found.commit)}.`),
      curve(found.points.map(([x, y]) => [x, y]), "masks", "µs"), curve(found.points.map(([x, , y]) => [x, y]), "commits", "µs"),
      found.left.length ? curve(found.left, "fewest tokens left to the end", "tokens") : h("p", { class: "quiet" }, "The number of tokens left to the end is unknown here, or there is no text."));
  }

  draw() {
    const { tree } = this;
    if (!tree.root) {
      replace(this.flame, h("p", { class: "quiet" }, "There are no places to measure."));
      return;
    }
    const choice = h("select", { id: "flame-width", onchange: (event) => { this.width = event.target.value; this.draw(); event.target.ownerDocument.getElementById("flame-width").focus(); } },
      WIDTHS.map(([name, title]) => h("option", { value: name, selected: name === this.width }, title)));
    const levels = [];
    const put = (node, from, width, depth) => {
      if (width < 0.4 || depth > 30) return;
      (levels[depth] = levels[depth] || []).push([node, from, width]);
      const sum = node.children.reduce((all, child) => all + child[this.width], 0);
      const scale = sum > node[this.width] ? width / sum : width / (node[this.width] || 1);
      let at = from;
      for (const child of node.children) {
        put(child, at, child[this.width] * scale, depth + 1);
        at += child[this.width] * scale;
      }
    };
    put(tree.root, 0, 100, 0);
    const summary = (node) => `${node.place || "the whole schema"}: ${node.error ? node.error : `${milliseconds(node.seconds)}, ${number(node.lr)} LR states, ${number(node.lexer)} lexer states`}`;
    const shown = h("p", { class: "quiet", "aria-live": "polite", id: "flame-told" }, summary(tree.root));
    const flame = h("div", { class: "flame", role: "group", "aria-label": "Places of the schema, each below the place that contains it", style: { height: `${levels.length * 28}px` } },
      levels.map((level, depth) => level.map(([node, from, width]) => h("button", {
        type: "button", class: `flame-cell f${depth % 4}`, title: summary(node), "aria-label": summary(node), style: { left: `${from}%`, width: `${width}%`, top: `${depth * 28}px` },
        onclick: () => this.place(node.place), onfocus: () => { replace(shown, summary(node)); }, onmouseenter: () => { replace(shown, summary(node)); },
      }, (node.name || "schema").replace(/^(?:properties|patternProperties|\$defs|definitions|dependentSchemas)\/(?=.)/, "")))));
    const advised = [];
    const gather = (node) => {
      for (const advice of node.advice) advised.push([node, advice]);
      node.children.forEach(gather);
    };
    gather(tree.root);
    advised.sort(([one], [other]) => other.seconds - one.seconds);
    replace(this.flame,
      h("p", {}, h("label", { for: "flame-width" }, "Widths are "), choice),
      flame, shown,
      h("p", { class: "quiet" }, `${number(tree.places)} places, each compiled by itself with the targets of its references, with warm caches of the vocabulary.${tree.complete ? "" : " Not all were measured."}`),
      advised.length ? h("h3", {}, "Advice") : null,
      advised.length ? h("ul", { class: "advice" }, advised.slice(0, 30).map(([node, advice]) => h("li", {},
        h("button", { type: "button", class: "place", onclick: () => this.place(node.place) }, node.place || "the whole schema"), `: ${advice}`))) : null);
  }
}
