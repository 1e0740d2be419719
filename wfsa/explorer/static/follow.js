// The document, and its tokens as the server finds them: edits go out one at a time, answers come in slices.
// The first slice of an answer begins where the edit is, so what is being looked at is coloured first.

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
    this.known = false; // whether the server has it at all
    this.busy = false;
    this.dirty = false;
    this.timing = null;
    this.generation = 0; // of what is known of the tokens
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
    this.failure = null; // why there are none
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

  // Whether the tokens are those of what is typed.
  get settled() {
    return !this.dirty && !this.busy && this.done && !this.failure;
  }

  async run() {
    if (this.busy || !this.key) return;
    this.busy = true;
    try {
      while (this.key && (this.dirty || !this.done)) await this.step();
    } catch (error) {
      // Whether the server has the edit is not known: it is sent the whole text when there is another.
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
    if (generation !== this.generation) return; // the answer begins behind tokens that are not known any more
    const n = part.first;
    for (const [mine, theirs] of [[this.ids, part.ids], [this.ends, part.ends], [this.counts, part.counts], [this.forced, part.forced]]) {
      mine.length = n;
      for (const one of theirs) mine.push(one);
    }
    this.refused = part.refused;
    this.done = part.done;
    this.end = part.end;
    this.got({ first: n, timing: edited ? timing : null });
    if (!this.done) await painted(); // what is there is shown before there is more
  }
}
