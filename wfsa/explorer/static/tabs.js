// Panels under tabs, as the ARIA pattern has it: arrows go from tab to tab, Tab goes into the panel.

import { h } from "./dom.js";

export class Tabs {
  constructor(list, host, opened) {
    this.list = list;
    this.host = host;
    this.opened = opened;
    this.all = [];
    this.open = null;
    list.addEventListener("keydown", (event) => {
      const at = this.all.findIndex((one) => one.name === this.open);
      const n = this.all.length;
      const to = { ArrowRight: (at + 1) % n, ArrowLeft: (at + n - 1) % n, Home: 0, End: n - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      this.show(this.all[to].name);
      this.all[to].tab.focus();
    });
  }

  add(name, title, content) {
    const tab = h("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`, "aria-selected": "false", tabindex: "-1", onclick: () => this.show(name) }, title);
    const panel = h("div", { role: "tabpanel", id: `panel-${name}`, class: "panel", "aria-labelledby": `tab-${name}`, hidden: true }, content);
    this.list.append(tab);
    this.host.append(panel);
    this.all.push({ name, tab, panel });
  }

  show(name) {
    this.open = name;
    for (const one of this.all) {
      const on = one.name === name;
      one.panel.hidden = !on;
      one.tab.setAttribute("aria-selected", String(on));
      one.tab.tabIndex = on ? 0 : -1;
      if (on) one.tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    this.opened(name);
  }
}
