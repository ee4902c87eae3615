/* The pickers of source language, target language and model. */

import { ApiError } from "./api.js";

const find = (id) => document.getElementById(id);
export const AUTO = "auto";
const FEW = 8; // languages that are shown in the order of the models

export class LanguagePicker {
  constructor({ models, detects }, onChange) {
    this.models = models.filter((model) => model.kind === "text");
    this.names = new Map(this.models.flatMap(({ sources, targets }) => [...sources, ...targets]).map((language) => [language.code, language]));
    this.detects = detects;
    this.detected = null; // language code
    this.onChange = onChange;
    const [first] = this.models, reader = navigator.language.split("-")[0]; // the reader's language if the model writes it
    this.source = detects ? AUTO : first?.source.code;
    const hasReader = first && reader !== first.source.code && has(first.targets, reader);
    this.target = this.preferredTarget = hasReader ? reader : first?.target.code; // the target shown may differ: not every pair has a model
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
    const source = this.sourceOrDetected;
    return unique(this.models.flatMap((model) => model.targets.map(({ code }) => code).filter((code) => translates(model, source, code))));
  }

  candidates() {
    return this.modelsFor(this.sourceOrDetected, this.target);
  }

  /* The models for a language pair, each with this pair and the fields of a request; any source if it is null. */
  modelsFor(source, target) {
    return this.models.filter((model) => translates(model, source, target)).map((model) => {
      const pair = { source: source ?? model.source.code, target };
      return { ...model, source: this.names.get(pair.source), target: this.names.get(target), request: { model: model.id, ...pair }, key: [model.id, pair.source, target].join(" ") };
    });
  }

  selectedModel() {
    const candidates = this.candidates();
    return candidates.find((model) => model.id === this.modelId) ?? candidates[0];
  }

  setDetected(language) {
    if (!this.models.some((model) => has(model.sources, language))) throw new ApiError(t("no-model", { language: this.name(language) }));
    if (this.detected === language) return;
    this.detected = language;
    this.updateTarget();
    this.show();
  }

  reverseModel() {
    return this.models.find((model) => translates(model, this.target, this.sourceOrDetected ?? model.target.code));
  }

  swap() {
    this.set({ source: this.target, target: this.sourceOrDetected ?? this.reverseModel().target.code });
  }

  name(code) {
    return languageName(this.names.get(code) ?? { code, name: code });
  }

  /* The options [code, name] of languages, in the order of their names if there are many. */
  options(codes) {
    const options = codes.map((code) => [code, this.name(code)]);
    return codes.length > FEW ? options.sort(([, one], [, other]) => one.localeCompare(other)) : options;
  }

  show() {
    const auto = this.detected ? t("detected", { language: this.name(this.detected) }) : t("detect");
    const sources = unique(this.models.flatMap((model) => model.sources.map(({ code }) => code)));
    setOptions(find("source"), [...(this.detects ? [[AUTO, auto]] : []), ...this.options(sources)], this.source);
    setOptions(find("target"), this.options(this.targets()), this.target);
    const candidates = this.candidates();
    find("model-field").hidden = candidates.length < 2;
    setOptions(find("model"), candidates.map(({ id }) => [id, id]), this.selectedModel()?.id);
    find("swap").disabled = !this.reverseModel();
  }
}

const has = (languages, code) => languages.some((language) => language.code === code);
const translates = (model, source, target) => (!source || has(model.sources, source)) && has(model.targets, target) && (source !== target || model.sources.length === 1);
const unique = (values) => [...new Set(values)];

/* Set the options [value, text] of a select element. */
export function setOptions(select, options, selected) {
  select.replaceChildren(...options.map(([value, text]) => make("option", { value }, text)));
  select.value = selected ?? "";
}
