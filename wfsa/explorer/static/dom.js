// Elements from data: text is always text. No module of this page writes HTML.

import { plain } from "./bytes.js";

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else element.setAttribute(name, value === true ? "" : name === "title" || name === "aria-label" ? plain(String(value)) : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(typeof child === "string" ? plain(child) : child);
  }
  return element;
}

export function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function svg(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

export function replace(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false).map((child) => (typeof child === "string" ? plain(child) : child)));
  return element;
}

const format = new Intl.NumberFormat("en-US"); // shared: toLocaleString creates a new one each time

export function number(value) {
  return value === null || value === undefined ? "?" : format.format(value);
}

export function counted(value, what) {
  return `${number(value)} ${what}${value === 1 ? "" : "s"}`;
}

export function milliseconds(seconds) {
  const value = seconds * 1000;
  return `${value >= 100 ? Math.round(value).toLocaleString("en-US") : value >= 1 ? value.toFixed(1) : value.toFixed(2)} ms`;
}

export function kilobytes(bytes) {
  return bytes < 1024 ? `${bytes} B` : bytes < 1 << 20 ? `${(bytes / 1024).toFixed(1)} kB` : `${(bytes / 1048576).toFixed(1)} MB`;
}
