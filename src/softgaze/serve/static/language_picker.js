/* The pickers of source language, target language and model. */

import { ApiError } from "./api.js";
import { languageName, onLanguageChange, t } from "./i18n.js";

const find = (id) => document.getElementById(id);
export const AUTO = "auto";

export class LanguagePicker {
  constructor({ models, detects }, onChange) {
    this.models = models.filter((model) => model.kind === "text");
    this.detects = detects;
    this.detected = null; // language code
    this.onChange = onChange;
    this.names = new Map(this.models.flatMap(({ source, target }) => [[source.code, source], [target.code, target]]));
    const [first] = this.models;
    this.source = detects ? AUTO : first?.source.code;
    this.target = this.preferredTarget = first?.target.code; // the target shown may differ: not every pair has a model
    this.modelId = null; // chosen by the user
    find("source").addEventListener("change", () => this.set({ source: find("source").value }));
    find("target").addEventListener("change", () => this.set({ target: find("target").value }));
    find("model").addEventListener("change", () => this.set({ modelId: find("model").value }));
    onLanguageChange(() => this.show());
  }

  set(changes) {
    Object.assign(this, changes);
    this.preferredTarget = changes.target ?? this.preferredTarget;
    if ("source" in changes) this.detected = null;
    this.updateTarget();
    this.show();
    this.onChange();
  }

  /* Select a target that is available for the source. */
  updateTarget() {
    const targets = this.targets();
    this.target = targets.includes(this.preferredTarget) ? this.preferredTarget : targets[0];
    if (!this.candidates().some((model) => model.id === this.modelId)) this.modelId = null;
  }

  get sourceOrDetected() {
    return this.source === AUTO ? this.detected : this.source;
  }

  targets() {
    return unique(this.models.filter((model) => !this.sourceOrDetected || model.source.code === this.sourceOrDetected).map((model) => model.target.code));
  }

  candidates() {
    return this.models.filter((model) => model.target.code === this.target && (!this.sourceOrDetected || model.source.code === this.sourceOrDetected));
  }

  selectedModel() {
    const candidates = this.candidates();
    return candidates.find((model) => model.id === this.modelId) ?? candidates[0];
  }

  setDetected(language) {
    if (!this.models.some((model) => model.source.code === language)) throw new ApiError(t("no-model", { language: this.name(language) }));
    if (this.detected === language) return;
    this.detected = language;
    this.updateTarget();
    this.show();
  }

  reverseModel() {
    return this.models.find((model) => model.source.code === this.target && model.target.code === (this.sourceOrDetected ?? model.target.code));
  }

  swap() {
    const { source, target } = this.reverseModel();
    this.set({ source: source.code, target: target.code });
  }

  name(code) {
    return languageName(this.names.get(code) ?? { code, name: code });
  }

  show() {
    const auto = this.detected ? t("detected", { language: this.name(this.detected) }) : t("detect");
    const sources = unique(this.models.map((model) => model.source.code)).map((code) => [code, this.name(code)]);
    setOptions(find("source"), [...(this.detects ? [[AUTO, auto]] : []), ...sources], this.source);
    setOptions(find("target"), this.targets().map((code) => [code, this.name(code)]), this.target);
    const candidates = this.candidates();
    find("model-field").hidden = candidates.length < 2;
    setOptions(find("model"), candidates.map(({ id }) => [id, id]), this.selectedModel()?.id);
    find("swap").disabled = !this.reverseModel();
  }
}

const unique = (values) => [...new Set(values)];

/* Set the options [value, text] of a select element. */
export function setOptions(select, options, selected) {
  select.replaceChildren(...options.map(([value, text]) => make("option", { value }, text)));
  select.value = selected ?? "";
}
