/* A text file there and back. Its name is only ever text. */

import { getBlob, sendForm, telling } from "./api.js";
import { bytes, isolated, say, whenSpoken } from "./say.js";
import { dropped } from "./drop.js";

const find = (id) => document.getElementById(id);

export class Files {
  constructor(limit, formats, pair) {
    Object.assign(this, { limit, formats, pair, state: () => [] });
    find("file").accept = formats.join(",");
    dropped(find("file-drop"), find("file"), (file) => this.send(file));
    whenSpoken(() => this.show());
  }

  async send(file) {
    this.asking?.abort();
    const { signal } = (this.asking = new AbortController()), name = isolated(file.name);
    const refused = this.refused(file);
    if (refused) return this.now(() => [refused()]);
    this.now(() => [say("file-working", { name })]);
    const { source, target } = this.pair;
    const made = await telling(async () => {
      const { translatedFileUrl: address } = await sendForm("translate_file", { file, source, target }, signal);
      return getBlob(`download_file/${new URL(address, location.href).pathname.split("/").at(-1)}`, signal);
    });
    if (!signal.aborted) this.now(made ? this.done(file.name, target, made) : () => []);
  }

  /* Why a file is not even sent. */
  refused({ name, size }) {
    const isKnown = this.formats.some((format) => name.toLowerCase().endsWith(format)), formats = this.formats.join(", ");
    if (!isKnown) return () => say("file-format", { name: isolated(name), formats });
    return size > this.limit ? () => say("file-large", { name: isolated(name), size: bytes(size), limit: bytes(this.limit) }) : null;
  }

  /* The file is kept in the page under a name of its own: letter.txt becomes letter.ko.txt. */
  done(old, target, made) {
    const place = old.lastIndexOf("."), name = `${old.slice(0, place)}.${target}${old.slice(place)}`, href = URL.createObjectURL(made);
    return () => [say("file-done", { name: isolated(old) }), " ", make("a", { href, download: name, class: "download" }, say("download", { name: isolated(name) }))];
  }

  now(state) {
    this.state = state;
    this.show();
  }

  show() {
    find("file-state").replaceChildren(...this.state());
    find("file-limits").textContent = say("file-limits", { formats: this.formats.join(", "), size: bytes(this.limit) });
  }
}
