/* Translation as you type: the text is split into sentences, and only new sentences are sent to the server. */

import { ApiError, getKey, post, reportErrors, streamEvents } from "./api.js";
import { AttentionEdits } from "./attention_edits.js";
import { AttentionView } from "./attention_view.js";
import { Comparison } from "./comparison.js";
import { AUTO } from "./language_picker.js";
import { joinSentences, splitSentences } from "./sentences.js";
import { WordConfidence } from "./word_confidence.js";

const find = (id) => document.getElementById(id);
const DEBOUNCE_MS = 150; // without a key press before the text is sent
const ALTERNATIVES = 3;
const DETECTION_CHARACTERS = 1000;
const CACHE_SIZE = 2000; // translations
const MAX_LISTED = 6; // uncovered words in the warning

export class TextPanel {
  constructor({ limits }, languages, glossary) {
    Object.assign(this, { limits, languages, glossary, cache: new Map(), chosen: new Map(), sentences: [], drafts: new Map(), previousTexts: [], model: null, active: 0 });
    this.edits = new AttentionEdits(() => this.onEdit());
    this.view = new AttentionView(find("first"), this.edits);
    this.words = new WordConfidence(this);
    this.comparison = new Comparison(languages, () => this.refresh());
    this.addListeners();
    onLanguageChange(() => this.show());
  }

  addListeners() {
    let timer = null;
    const onInput = () => { clearTimeout(timer); this.showCount(); timer = setTimeout(() => this.refresh(), DEBOUNCE_MS); };
    find("text").addEventListener("input", onInput);
    for (const name of ["keyup", "click"]) find("text").addEventListener(name, () => this.isBusy || this.selectSentence(this.sentenceAtCaret()));
    find("clear").addEventListener("click", () => { find("text").value = ""; this.refresh(); find("text").focus(); });
    find("swap").addEventListener("click", () => { find("text").value = this.outputText() || find("text").value; this.languages.swap(); });
    find("copy").addEventListener("click", () => this.copy());
    find("restore").addEventListener("click", () => { this.choose(this.active, null); find("output").focus(); });
    find("show-alternatives").addEventListener("click", () => this.showAlternatives(find("alternatives").hidden));
    find("previous-sentence").addEventListener("click", () => this.selectSentence(this.active - 1));
    find("next-sentence").addEventListener("click", () => this.selectSentence(this.active + 1));
    find("explain").addEventListener("submit", () => this.fillExplainForm());
  }

  // --- requests

  /* Translate the current text; earlier requests are aborted, so that no late response replaces a newer one. */
  async refresh() {
    const signal = this.newRequest();
    this.showCount();
    await reportErrors(() => this.translate(signal));
    if (signal.aborted) return;
    this.drafts.clear();
    this.showBusy(false);
    this.show();
  }

  /* Translate with other terms. */
  translateAgain() {
    this.cache.clear();
    this.chosen.clear();
    this.edits.clear();
    return this.refresh();
  }

  newRequest() {
    this.request?.abort();
    this.request = new AbortController();
    return this.request.signal;
  }

  async translate(signal) {
    const text = find("text").value.toWellFormed(), characters = [...text], sentences = splitSentences(text), { length } = characters; // no lone surrogates
    if (length > this.limits.characters) throw new ApiError(t("too-long", { count: formatNumber(length), limit: formatNumber(this.limits.characters) }));
    if (!sentences.length) return this.setSentences([], this.model);
    this.showBusy(true);
    if (this.languages.source === AUTO) this.languages.setDetected(await this.detect(characters.slice(0, DETECTION_CHARACTERS).join(""), signal));
    const model = this.languages.selectedModel();
    this.setSentences(sentences, model);
    await this.fetchTranslations(model, signal, (sentence) => this.streamDraft(model, sentence, signal));
    this.show();
    const other = this.comparison.setFirst(model);
    if (other) await this.fetchTranslations(other, signal);
  }

  async detect(text, signal) {
    const [best] = await post("detect", { q: text }, signal);
    return best?.language ?? this.languages.models[0].source.code;
  }

  /* Fetch the translations that are not in the cache; `preview` is called if only one is missing. */
  async fetchTranslations(model, signal, preview = () => {}) {
    const missing = [...new Set(this.sentences.map(({ text }) => text))].filter((text) => !this.cache.has(cacheKey(model, text)));
    if (missing.length === 1) await preview(missing[0]);
    for (let start = 0; start < missing.length; start += this.limits.texts) {
      const q = missing.slice(start, start + this.limits.texts);
      const { translations, milliseconds } = await post("v1/translate", { q, ...model.request, ...this.glossary.request, num_hypotheses: 1 + ALTERNATIVES, attention: model.attention, confidence: true }, signal);
      if (this.cache.size > CACHE_SIZE) this.cache.clear();
      translations.forEach((translation, index) => this.cache.set(cacheKey(model, q[index]), { ...translation, milliseconds }));
    }
  }

  async streamDraft(model, sentence, signal) {
    for await (const [name, { text }] of streamEvents("v1/translate", { q: sentence, ...model.request, ...this.glossary.request }, signal)) {
      if (name !== "word") continue;
      this.drafts.set(sentence, (this.drafts.get(sentence) ?? "") + text);
      this.showOutput();
    }
  }

  /* Set the sentences to show; edits belong to one sentence and one model. */
  setSentences(sentences, model) {
    const previous = this.sentences[this.active]?.text, isOtherModel = this.model?.key !== model?.key;
    Object.assign(this, { sentences, model });
    this.active = this.sentenceAtCaret();
    if (isOtherModel || previous !== this.sentences[this.active]?.text) this.edits.clear();
    if (!sentences.length) { this.previousTexts = []; this.show(); }
  }

  // --- active sentence

  sentenceAtCaret() {
    const before = splitSentences(find("text").value.slice(0, find("text").selectionStart)).length;
    return Math.min(Math.max(before - 1, 0), Math.max(this.sentences.length - 1, 0));
  }

  selectSentence(number) {
    const index = Math.min(Math.max(number, 0), this.sentences.length - 1);
    if (index === this.active || index < 0) return;
    this.active = index;
    this.edits.clear();
    this.show();
  }

  get sentence() { return this.sentences[this.active]?.text; }

  result(index = this.active, model = this.model) {
    return model && this.sentences[index] && this.cache.get(cacheKey(model, this.sentences[index].text));
  }

  /* The translation that the user chose for a sentence, or undefined. */
  chosenTranslation(index) {
    const chosen = this.chosen.get(this.sentences[index]?.text);
    return chosen?.model === this.model?.key ? chosen?.translation : undefined;
  }

  choose(index, translation) {
    const { text } = this.sentences[index];
    translation ? this.chosen.set(text, { translation, model: this.model.key }) : this.chosen.delete(text);
    this.edits.clear();
    this.show();
  }

  requestOf(index) {
    return { q: this.sentences[index].text, translation: this.displayed(index).text, ...this.model.request, attention: this.model.attention };
  }

  isCalibrated(index) { return Boolean(this.displayed(index).confidence?.calibrated); }

  // --- what-if edits

  async onEdit() {
    const signal = this.newRequest(), { change } = this.edits, { sentence, model } = this;
    if (this.edits.isEmpty) { this.edits.response = null; return this.show(); }
    this.showBusy(true);
    const response = await reportErrors(() => post("v1/what_if", { q: sentence, ...model.request, ...this.glossary.request, ...change }, signal));
    if (signal.aborted) return;
    this.showBusy(false);
    if (response) this.edits.response = response;
    this.show();
  }

  // --- output

  /* The text of a sentence and its CSS class: edited, alternative, translated, draft, or the previous text. */
  displayed(index) {
    const { text } = this.sentences[index];
    if (index === this.active && this.edits.response) return { text: this.edits.response.after.text, className: "changed" };
    const chosen = this.chosenTranslation(index), result = chosen ?? this.result(index);
    if (!chosen && result?.protected_text) return { text: result.protected_text, className: "" }; // with its placeholders
    if (result) return { text: result.text, className: "", confidence: result.confidence };
    return { text: this.drafts.get(text) ?? this.previousTexts[index] ?? "", className: "draft" };
  }

  get isSpaced() {
    return this.sentences.every((_, index) => this.result(index)?.attention?.target_spaced !== false);
  }

  outputText() {
    return joinSentences(this.sentences, this.sentences.map((_, index) => this.displayed(index).text), this.isSpaced);
  }

  show() {
    this.showOutput();
    this.showAlternatives(!find("alternatives").hidden);
    this.showWarning();
    this.showAttention();
    this.showCount();
  }

  showOutput() {
    const displayed = this.sentences.map((_, index) => this.displayed(index)), text = this.outputText();
    const confidences = displayed.map((part) => part.confidence), isSame = confidences.every((each, index) => each === this.confidences?.[index]);
    if (find("output").textContent !== text || find("output").childElementCount !== displayed.length || !isSame) { // screen readers announce only changes
      this.renderOutput(displayed);
      this.words.update(confidences);
    }
    this.confidences = confidences;
    [...find("output").children].forEach((part, index) => {
      part.className = `part ${displayed[index].className}${displayed.length > 1 && index === this.active ? " current" : ""}`;
    });
    find("output").lang = this.model?.target.code ?? "";
    this.previousTexts = displayed.map((part) => part.text);
    find("copy").disabled = !text;
    find("edited").hidden = !this.edits.response;
    find("restore").hidden = !this.chosenTranslation(this.active) || Boolean(this.edits.response);
  }

  renderOutput(displayed) {
    const parts = displayed.map(({ text, confidence }, index) => {
      const part = make("span", {}, ...this.words.render(text, confidence, index));
      part.addEventListener("click", () => this.selectSentence(index));
      return [this.sentences[index].gap || (index && this.isSpaced ? " " : ""), part];
    });
    find("output").replaceChildren(...parts.flat());
  }

  showBusy(isBusy) {
    this.isBusy = isBusy;
    find("output").setAttribute("aria-busy", String(isBusy));
    find("working").textContent = isBusy ? t("working") : "";
    find("attention").classList.toggle("waiting", isBusy);
  }

  showCount() {
    const length = [...find("text").value].length, { characters } = this.limits;
    find("count").textContent = t("count", { count: formatNumber(length), limit: formatNumber(characters) });
    find("count").classList.toggle("over", length > characters);
    find("clear").hidden = !length;
  }

  showAlternatives(isOpen) {
    const alternatives = this.result()?.alternatives ?? [];
    find("show-alternatives").hidden = !alternatives.length;
    find("show-alternatives").textContent = `${t("show-alternatives")} (${alternatives.length})`;
    find("show-alternatives").setAttribute("aria-expanded", String(isOpen && alternatives.length > 0));
    find("alternatives").hidden = !isOpen || !alternatives.length;
    find("alternatives").replaceChildren(...alternatives.map((alternative, number) => make("li", {}, this.alternativeButton(alternative, number))));
  }

  alternativeButton(alternative, number) {
    const isChosen = this.chosenTranslation(this.active)?.text === alternative.text;
    const button = make("button", { type: "button", class: "alternative", dir: "auto", lang: this.model.target.code, "aria-pressed": String(isChosen) }, alternative.text);
    button.addEventListener("click", () => {
      this.choose(this.active, isChosen ? null : alternative);
      find("alternatives").querySelectorAll("button")[number].focus();
    });
    return button;
  }

  /* Source words with almost no attention, except those that the user masked. */
  uncovered(index) {
    const isActive = index === this.active, attention = isActive ? this.attention : this.result(index)?.attention;
    return (attention?.uncovered ?? []).filter((word) => !isActive || !this.edits.masked.has(word.index));
  }

  showWarning() {
    const texts = this.sentences.flatMap((_, index) => this.uncovered(index)).map(({ text }) => text);
    const words = texts.filter((text, index) => texts.findIndex((other) => other.toLowerCase() === text.toLowerCase()) === index).map(quoted);
    const listed = words.length > MAX_LISTED ? `${words.slice(0, MAX_LISTED).join(", ")} …` : words.join(", ");
    const text = words.length ? t("uncovered", { words: listed }) : "";
    if (find("warning").textContent !== text) find("warning").textContent = text; // screen readers announce only changes
  }

  // --- attention

  /* The attention of the displayed translation of the active sentence. */
  get attention() {
    if (this.edits.response) return this.edits.response.after.attention;
    return this.chosenTranslation(this.active)?.attention ?? this.result()?.attention;
  }

  showAttention() {
    const { model, edits } = this, result = this.result(), attention = this.attention?.weights ? this.attention : null; // large maps have no weights
    find("attention").hidden = !this.sentences.length || (!result && find("attention").hidden);
    find("welcome").hidden = this.sentences.length > 0;
    if (!result) return;
    find("no-attention").hidden = Boolean(attention);
    find("no-attention").textContent = attention ? "" : t(model.attention ? "too-long-to-show" : "no-attention");
    find("first").querySelector(".stage").hidden = !attention;
    for (const id of ["editing", "hint"]) find(id).hidden = !attention || !model.what_if;
    find("explain").hidden = !model.explain || !attention;
    find("map-name").textContent = attention?.map ?? "";
    this.showReliability(attention);
    this.showSentencePicker();
    if (attention) {
      edits.words = { row: attention.target_words, column: attention.source_words };
      const uncovered = this.uncovered(this.active).map((word) => word.index);
      this.view.show(attention, { canEdit: model.what_if, masked: [...edits.masked], uncovered, attended: edits.attended });
    }
    edits.show();
    this.comparison.show(result, (other) => this.result(this.active, other));
  }

  /* How far the shown map can be relied on; a low value is a warning. */
  showReliability(attention) {
    const reliability = attention?.reliability;
    const share = { share: reliability ? formatPercent(reliability.value) : "" };
    const text = !attention ? "" : !reliability ? t("unmeasured") : t(reliability.is_low ? "unreliable" : "reliable", share);
    if (find("reliability").textContent !== text) find("reliability").textContent = text; // screen readers announce only changes
    find("reliability").classList.toggle("low", Boolean(reliability?.is_low));
  }

  showSentencePicker() {
    const total = this.sentences.length;
    find("sentence-picker").hidden = total < 2;
    find("sentence-number").textContent = t("sentence-number", { number: this.active + 1, count: total });
    find("previous-sentence").disabled = this.active === 0;
    find("next-sentence").disabled = this.active === total - 1;
  }

  fillExplainForm() {
    const { elements } = find("explain");
    Object.entries({ q: this.sentence, glossary: "", ...this.model.request, ...this.glossary.request, api_key: getKey() }).forEach(([name, value]) => { elements[name].value = value; elements[name].disabled = !value; });
  }

  async copy() {
    const isCopied = await copyText(this.outputText());
    find("copy").textContent = t(isCopied ? "copied" : "cannot-copy");
    setTimeout(() => { find("copy").textContent = t("copy"); }, 2000);
  }
}

const cacheKey = (model, text) => `${model.key}\n${text}`;

/* The clipboard API needs https or localhost; elsewhere execCommand may work. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = make("textarea", { class: "visually-hidden", readonly: true }), focused = document.activeElement;
    field.value = text;
    document.body.append(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    focused?.focus();
    return isCopied;
  }
}
