// Bytes in readable form: tokens need not be whole characters, so a text is handled as UTF-8 throughout.

const encoder = new TextEncoder();
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const loose = new TextDecoder("utf-8", { ignoreBOM: true });

export function encode(text) {
  return encoder.encode(text);
}

export function decode(bytes) {
  return loose.decode(bytes);
}

export function fromHex(hex) {
  const out = new Uint8Array(hex.length / 2);
  for (let i = 0; i < out.length; i++) out[i] = parseInt(hex.slice(2 * i, 2 * i + 2), 16);
  return out;
}

// The text of some bytes, or null if they are not whole characters.
export function whole(bytes) {
  try {
    return strict.decode(bytes);
  } catch (error) {
    return null;
  }
}

export function shown(bytes) {
  const text = whole(bytes);
  if (text !== null) return visible(text);
  const parts = []; // whole characters where possible: a token, or the rest of a line, may begin inside a character
  for (let i = 0; i < bytes.length; ) {
    const length = bytes[i] < 0x80 ? 1 : bytes[i] >= 0xf0 ? 4 : bytes[i] >= 0xe0 ? 3 : 2;
    const one = i + length <= bytes.length ? whole(bytes.subarray(i, i + length)) : null;
    parts.push(one === null ? byteName(bytes[i], true) : visible(one));
    i += one === null ? 1 : length;
  }
  return parts.join("");
}

// A token by itself, with visible blanks.
export function token(bytes) {
  return shown(bytes).replaceAll(" ", "␣");
}

// Control, direction and invisible characters, blanks other than the space, and lone surrogates.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/gu;

function escaped(one) {
  const code = one.codePointAt(0).toString(16);
  return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
}

// Makes hidden characters visible, so that no text can look like another.
export function visible(text) {
  return text.replace(HIDDEN, (one) => (one === "\n" ? "⏎" : one === "\t" ? "⇥" : one === "\r" ? "\\r" : escaped(one)));
}

// Like `visible`, for messages, which keep their line breaks.
export function plain(text) {
  return text.replace(HIDDEN, (one) => (one === "\n" || one === "\t" ? one : escaped(one)));
}

export function byteName(byte, always) {
  const named = { 32: "space", 9: "tab", 10: "newline", 13: "return", 127: "delete" };
  if (!always && named[byte]) return named[byte];
  return byte > 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, "0")}`;
}

const RANGES = [[0x00, 0x08], [0x0e, 0x1f], [0x30, 0x39], [0x41, 0x5a], [0x61, 0x7a]]; // controls, digits, letters
const WHITE = [0x09, 0x0a, 0x0d, 0x20];
const PRINTED = Array.from({ length: 94 }, (_, i) => 0x21 + i);
const MOST_BUT = 8; // the most exceptions listed by byteSet

// A set of bytes: white space " 0-9 A-Z non-ASCII. Only digits, letters and controls make ranges: the order of punctuation is not
// common knowledge.
export function byteSet(bytes) {
  const parts = [];
  let ascii = Array.from(bytes).filter((b) => b < 0x80);
  const others = ascii.length < bytes.length;
  const printed = ascii.filter((b) => b > 0x20 && b < 0x7f);
  if (printed.length >= PRINTED.length - MOST_BUT) {
    ascii = ascii.filter((b) => b <= 0x20 || b === 0x7f);
    const but = PRINTED.filter((b) => !printed.includes(b)).map((b) => byteName(b)).join(" ");
    parts.push(`any printable${but ? ` but ${but}${ascii.length || others ? "," : ""}` : ""}`);
  }
  if (WHITE.every((b) => ascii.includes(b))) {
    parts.push("white space");
    ascii = ascii.filter((b) => !WHITE.includes(b));
  }
  for (let i = 0; i < ascii.length; ) {
    const range = RANGES.find(([low, high]) => ascii[i] >= low && ascii[i] <= high);
    let j = i;
    while (range && j + 1 < ascii.length && ascii[j + 1] === ascii[j] + 1 && ascii[j + 1] <= range[1]) j++;
    parts.push(j === i ? byteName(ascii[i]) : `${byteName(ascii[i])}${j > i + 1 ? "-" : " "}${byteName(ascii[j])}`);
    i = j + 1;
  }
  if (others) parts.push("non-ASCII");
  return parts.join(" ");
}

// The numbers of equal bytes at the start and at the end of two texts, in whole characters.
export function difference(a, b) {
  const most = Math.min(a.length, b.length);
  let head = 0;
  while (head < most && a[head] === b[head]) head++;
  while (head > 0 && ((a[head] & 0xc0) === 0x80 || (b[head] & 0xc0) === 0x80)) head--;
  let tail = 0;
  while (tail < most - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  while (tail > 0 && ((a[a.length - tail] & 0xc0) === 0x80 || (b[b.length - tail] & 0xc0) === 0x80)) tail--;
  return { head, tail };
}

// The index in a string of a byte of its UTF-8; inside a character, the index of the character.
export function stringIndex(bytes, offset) {
  let at = offset;
  while (at > 0 && (bytes[at] & 0xc0) === 0x80) at--;
  return decode(bytes.subarray(0, at)).length;
}

// The first byte from `offset` on that is not inside a character.
export function characterEnd(bytes, offset) {
  let at = offset;
  while (at < bytes.length && (bytes[at] & 0xc0) === 0x80) at++;
  return at;
}

export function byteOffset(text, index) {
  return encoder.encode(text.slice(0, index)).length;
}
