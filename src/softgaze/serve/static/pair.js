/* Which languages, and which model: the pickers above the text. */

import { languageName, say, whenSpoken } from "./say.js";
import { Refusal } from "./api.js";

const find = (id) => document.getElementById(id);
export const AUTO = "auto";

export class Pair {
  constructor({ models, detects }, changed) {
    this.models = models.filter((model) => model.kind === "text");
    this.detects = detects;
    this.detected = null; // the code of a language
    this.changed = changed;
    this.names = new Map(this.models.flatMap(({ source, target }) => [[source.code, source], [target.code, target]]));
    this.begin();
  }

  begin() {
    const [first] = this.models;
    this.source = this.detects ? AUTO : first?.source.code;
    this.target = this.wanted = first?.target.code; // what is shown, and what was asked for: not every language can be had from every other
    this.model = null; // the id of a chosen one
    find("source").addEventListener("change", () => this.set({ source: find("source").value }));
    find("target").addEventListener("change", () => this.set({ target: find("target").value }));
    find("model").addEventListener("change", () => this.set({ model: find("model").value }));
    whenSpoken(() => this.show());
  }

  set(changes) {
    Object.assign(this, changes);
    this.wanted = changes.target ?? this.wanted;
    if ("source" in changes) this.detected = null;
    this.fit();
    this.show();
    this.changed();
  }

  /* A target that there is for the source. */
  fit() {
    const targets = this.targets();
    this.target = targets.includes(this.wanted) ? this.wanted : targets[0];
    if (!this.candidates().some((model) => model.id === this.model)) this.model = null;
  }

  get from() {
    return this.source === AUTO ? this.detected : this.source;
  }

  targets() {
    return unique(this.models.filter((model) => !this.from || model.source.code === this.from).map((model) => model.target.code));
  }

  candidates() {
    return this.models.filter((model) => model.target.code === this.target && (!this.from || model.source.code === this.from));
  }

  /* The model that translates; what a detected language cannot be translated to gives way. */
  chosen() {
    const found = this.candidates();
    return found.find((model) => model.id === this.model) ?? found[0];
  }

  hear(language) {
    if (!this.models.some((model) => model.source.code === language)) throw new Refusal(say("no-pair", { language: this.name(language) }));
    if (this.detected === language) return;
    this.detected = language;
    this.fit();
    this.show();
  }

  reverse() {
    return this.models.find((model) => model.source.code === this.target && model.target.code === (this.from ?? model.target.code));
  }

  swap() {
    const { source, target } = this.reverse();
    this.set({ source: source.code, target: target.code });
  }

  name(code) {
    return languageName(this.names.get(code) ?? { code, name: code });
  }

  show() {
    const auto = this.detected ? say("detected", { language: this.name(this.detected) }) : say("detect");
    const sources = unique(this.models.map((model) => model.source.code)).map((code) => [code, this.name(code)]);
    fill(find("source"), [...(this.detects ? [[AUTO, auto]] : []), ...sources], this.source);
    fill(find("target"), this.targets().map((code) => [code, this.name(code)]), this.target);
    const found = this.candidates();
    find("model-field").hidden = found.length < 2;
    fill(find("model"), found.map(({ id }) => [id, id]), this.chosen()?.id);
    find("swap").disabled = !this.reverse();
  }
}

const unique = (values) => [...new Set(values)];

/* Options [value, text] of a select; text is only ever text. */
export function fill(select, options, value) {
  select.replaceChildren(...options.map(([own, text]) => make("option", { value: own }, text)));
  select.value = value ?? "";
}
