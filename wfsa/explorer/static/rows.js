// A long list of lines of equal height; only the lines in view are in the document.

import { h } from "./dom.js";

export class Rows {
  // draw(i) returns the element of line i.
  constructor(draw, { height = 22, label, className = "", role = "region" }) {
    this.draw = draw;
    this.height = height;
    this.count = 0;
    this.window = h("div", { class: "rows-window" });
    this.sizer = h("div", { class: "rows-sizer" }, this.window);
    this.element = h("div", { class: `rows ${className}`, tabindex: "0", role, "aria-label": label }, this.sizer);
    this.from = this.to = -1;
    this.element.addEventListener("scroll", () => this.paint(false), { passive: true });
    new ResizeObserver(() => this.paint(false)).observe(this.element);
  }

  set(count) {
    this.count = count;
    this.sizer.style.setProperty("height", `${count * this.height}px`);
    this.paint(true);
  }

  paint(anew) {
    const top = this.element.scrollTop;
    const from = Math.max(0, Math.floor(top / this.height) - 3);
    const to = Math.min(this.count, Math.ceil((top + this.element.clientHeight) / this.height) + 3);
    if (!anew && from === this.from && to === this.to) return;
    this.from = from;
    this.to = to;
    const lines = [];
    for (let i = from; i < to; i++) lines.push(this.draw(i));
    this.window.style.setProperty("transform", `translateY(${from * this.height}px)`);
    this.window.replaceChildren(...lines);
  }

  reveal(i) {
    const top = i * this.height;
    const view = this.element.clientHeight;
    if (top < this.element.scrollTop || top + this.height > this.element.scrollTop + view) {
      this.element.scrollTop = Math.max(0, top - view / 3);
    }
    this.paint(true);
  }

  // Scrolls sideways until an element of a line is visible, at least its beginning.
  across(element) {
    const view = this.element.getBoundingClientRect().left + this.element.clientLeft;
    const { left, right } = element.getBoundingClientRect();
    const over = right - view - this.element.clientWidth;
    if (left < view) this.element.scrollLeft -= view - left;
    else if (over > 0) this.element.scrollLeft += Math.min(over, left - view);
  }

  // Returns the start of the text in a line of draw(), and the width of a character, which is the same for all.
  measured(line, text) {
    this.window.append(line);
    const all = line.getBoundingClientRect();
    const own = text.getBoundingClientRect();
    line.remove();
    return [own.left - all.left, own.width / text.textContent.length];
  }
}
