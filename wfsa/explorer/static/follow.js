// The document, and its tokens from the server: edits are sent one at a time, answers come in slices.
// The first slice of an answer begins at the edit, so the text around the edit is coloured first.

import { ask } from "./api.js";
import { decode, difference, encode } from "./bytes.js";
import { painted } from "./timings.js";

export class Follow {
  constructor(got, failed) {
    this.got = got;
    this.failed = failed;
    this.document = Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, "0")).join("");
    this.key = null;
    this.wanted = this.bytes = new Uint8Array(0); // as typed, and as the server has it
    this.version = 0;
    this.known = false; // whether the server has the document
    this.busy = false;
    this.dirty = false;
    this.timing = null;
    this.generation = 0; // of the lists of tokens
    this.clear();
  }

  clear() {
    this.generation++;
    this.ids = [];
    this.ends = [];
    this.counts = [];
    this.forced = [];
    this.refused = null;
    this.end = {};
    this.done = false;
    this.failure = null; // the error if there are no tokens
  }

  under(key) {
    this.key = key;
    this.since = performance.now();
    this.clear();
    this.dirty = true;
    this.run();
  }

  set(text, timing) {
    this.wanted = encode(text.toWellFormed ? text.toWellFormed() : text);
    this.timing = timing;
    this.since = performance.now();
    this.dirty = true;
    this.run();
  }

  // Whether the tokens are those of the typed text.
  get settled() {
    return !this.dirty && !this.busy && this.done && !this.failure;
  }

  async run() {
    if (this.busy || !this.key) return;
    this.busy = true;
    try {
      while (this.key && (this.dirty || !this.done)) await this.step();
    } catch (error) {
      // The server may or may not have the edit, so the next request sends the whole text.
      this.clear();
      this.known = false;
      this.bytes = this.wanted;
      this.done = true;
      this.dirty = false;
      this.failure = error;
      this.failed(error);
    } finally {
      this.busy = false;
    }
    if (this.dirty) this.run();
    else this.got(null);
  }

  async step() {
    const { generation, key, wanted } = this;
    const timing = this.timing;
    const body = { document: this.document, key, version: this.version, known: this.ids.length };
    const edited = this.dirty;
    this.dirty = false;
    if (!this.known) Object.assign(body, { text: decode(wanted), version: ++this.version });
    else if (wanted !== this.bytes) {
      const { head, tail } = difference(this.bytes, wanted);
      const base = this.version;
      Object.assign(body, {
        base, version: ++this.version, at: head, removed: this.bytes.length - head - tail,
        inserted: decode(wanted.subarray(head, wanted.length - tail)),
      });
    }
    let part;
    try {
      part = await ask("text", body);
    } catch (error) {
      if (error.code !== 409 || !this.known) throw error;
      this.known = false;
      this.dirty = true;
      return;
    }
    this.known = true;
    this.failure = null;
    this.bytes = wanted;
    if (generation !== this.generation) return; // the answer begins after tokens that have been dropped
    const n = part.first;
    for (const [mine, theirs] of [[this.ids, part.ids], [this.ends, part.ends], [this.counts, part.counts], [this.forced, part.forced]]) {
      mine.length = n;
      for (const one of theirs) mine.push(one);
    }
    this.refused = part.refused;
    this.done = part.done;
    this.end = part.end;
    this.got({ first: n, timing: edited ? timing : null });
    if (!this.done) await painted(); // shows these tokens before requesting more
  }
}
