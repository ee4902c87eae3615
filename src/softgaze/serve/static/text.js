/* Two panes: what is typed is translated sentence by sentence, and only sentences that changed are asked for. */

import { Refusal, ownKey, post, streamed, telling } from "./api.js";
import { Comparison } from "./compare.js";
import { Edits } from "./edits.js";
import { Look } from "./look.js";
import { AUTO } from "./pair.js";
import { count, quoted, say, whenSpoken } from "./say.js";
import { joinedText, sentencesOf } from "./sentences.js";

const find = (id) => document.getElementById(id);
const QUIET = 150; // milliseconds without a key before a text is sent
const OTHERS = 3; // alternatives asked for
const TOLD = 1000; // characters that tell a language
const KEPT = 2000; // translations kept in memory
const NAMED = 6; // ignored words that are named

export class Desk {
  constructor({ limits }, pair) {
    Object.assign(this, { limits, pair, known: new Map(), taken: new Map(), sentences: [], drafts: new Map(), last: [], model: null, active: 0 });
    this.edits = new Edits(() => this.editChanged());
    this.look = new Look(find("first"), { attend: (row, column) => this.edits.attend(row, column), silence: (column) => this.edits.silence(column), choose: (place) => this.edits.choose(place) });
    this.comparison = new Comparison(pair, () => this.refresh());
    this.listen();
    whenSpoken(() => this.show());
  }

  listen() {
    let timer = null;
    const soon = () => { clearTimeout(timer); this.showCount(); timer = setTimeout(() => this.refresh(), QUIET); };
    find("text").addEventListener("input", soon);
    for (const name of ["keyup", "click"]) find("text").addEventListener(name, () => this.follow());
    find("clear").addEventListener("click", () => { this.write(""); find("text").focus(); });
    find("swap").addEventListener("click", () => { this.write(this.text() || find("text").value, false); this.pair.swap(); });
    find("copy").addEventListener("click", () => this.copy());
    find("more").addEventListener("click", () => this.showAlternatives(find("alternatives").hidden));
    find("step-back").addEventListener("click", () => this.step(this.active - 1));
    find("step-forth").addEventListener("click", () => this.step(this.active + 1));
    find("full").addEventListener("submit", () => this.fillForm());
  }

  write(text, isSent = true) {
    find("text").value = text;
    if (isSent) this.refresh();
  }

  // --- asking

  /* Translate what is there now; what was asked before is given up, so that no late answer replaces a newer one. */
  async refresh() {
    this.asking?.abort();
    const { signal } = (this.asking = new AbortController());
    this.showCount();
    await telling(() => this.translate(signal));
    if (signal.aborted) return;
    this.drafts.clear();
    this.showBusy(false);
    this.show();
  }

  async translate(signal) {
    const text = find("text").value.toWellFormed(), letters = [...text], sentences = sentencesOf(text), { length } = letters; // half a character is none
    if (length > this.limits.characters) throw new Refusal(say("too-long", { count: count(length), limit: count(this.limits.characters) }));
    if (!sentences.length) return this.take([], this.model);
    this.showBusy(true);
    if (this.pair.source === AUTO) this.pair.hear(await this.detect(letters.slice(0, TOLD).join(""), signal));
    const model = this.pair.chosen();
    this.take(sentences, model);
    await this.learn(model, signal, (sentence) => this.draft(model, sentence, signal));
    this.show();
    const other = this.comparison.fit(model);
    if (other) await this.learn(other, signal);
  }

  async detect(text, signal) {
    const [best] = await post("detect", { q: text }, signal);
    return best?.language ?? this.pair.models[0].source.code;
  }

  /* What this model says to all sentences; a single new one is shown while it is written. */
  async learn(model, signal, preview = () => {}) {
    const missing = [...new Set(this.sentences.map(({ text }) => text))].filter((text) => !this.known.has(keyOf(model, text)));
    if (missing.length === 1) await preview(missing[0]);
    for (let start = 0; start < missing.length; start += this.limits.texts) {
      const q = missing.slice(start, start + this.limits.texts);
      const { translations, milliseconds } = await post("v1/translate", { q, model: model.id, alternatives: OTHERS, attention: model.attention }, signal);
      if (this.known.size > KEPT) this.known.clear();
      translations.forEach((each, number) => this.known.set(keyOf(model, q[number]), { ...each, milliseconds }));
    }
  }

  async draft(model, sentence, signal) {
    for await (const [name, { text }] of streamed("v1/translate", { q: sentence, model: model.id }, signal)) {
      if (name !== "word") continue;
      this.drafts.set(sentence, (this.drafts.get(sentence) ?? "") + text);
      this.showOutput();
    }
  }

  /* Sentences to be shown; changes belong to one sentence and one model, and go with them. */
  take(sentences, model) {
    const before = this.sentences[this.active]?.text, isOther = this.model?.id !== model?.id;
    Object.assign(this, { sentences, model });
    this.active = this.atCaret();
    if (isOther || before !== this.sentences[this.active]?.text) this.edits.clear();
    if (!sentences.length) { this.last = []; this.show(); }
  }

  // --- which sentence is looked at

  atCaret() {
    const before = sentencesOf(find("text").value.slice(0, find("text").selectionStart)).length;
    return Math.min(Math.max(before - 1, 0), Math.max(this.sentences.length - 1, 0));
  }

  follow() {
    if (this.isBusy) return;
    this.step(this.atCaret());
  }

  step(number) {
    const place = Math.min(Math.max(number, 0), this.sentences.length - 1);
    if (place === this.active || place < 0) return;
    this.active = place;
    this.edits.clear();
    this.show();
  }

  get sentence() { return this.sentences[this.active]?.text; }

  found(number = this.active, model = this.model) {
    return model && this.sentences[number] && this.known.get(keyOf(model, this.sentences[number].text));
  }

  // --- what if it looked elsewhere

  async editChanged() {
    this.asking?.abort();
    const { signal } = (this.asking = new AbortController());
    const question = this.edits.question, { sentence, model } = this;
    if (this.edits.isEmpty) { this.edits.answer = null; return this.show(); }
    this.showBusy(true);
    const answer = await telling(() => post("v1/what_if", { q: sentence, model: model.id, ...question }, signal));
    if (signal.aborted) return;
    this.showBusy(false);
    if (answer) this.edits.answer = answer;
    this.show();
  }

  // --- showing

  /* A sentence as shown: changed, chosen among the others, translated, drafted, or what stood there before. */
  shown(number) {
    const { text } = this.sentences[number], isActive = number === this.active, other = this.taken.get(text), found = this.found(number);
    if (isActive && this.edits.answer) return { text: this.edits.answer.after.text, look: "changed" };
    if (found && other?.model === this.model.id) return { text: found.alternatives[other.number].text, look: "" };
    if (found) return { text: found.text, look: "" };
    return { text: this.drafts.get(text) ?? this.last[number] ?? "", look: "draft" };
  }

  get isSpaced() {
    return this.sentences.every((_, number) => this.found(number)?.attention?.target_spaced !== false);
  }

  text() {
    return joinedText(this.sentences, this.sentences.map((_, number) => this.shown(number).text), this.isSpaced);
  }

  show() {
    this.showOutput();
    this.showAlternatives(!find("alternatives").hidden);
    this.showWarning();
    this.showGaze();
    this.showCount();
  }

  showOutput() {
    const shown = this.sentences.map((_, number) => this.shown(number));
    const text = this.text();
    if (find("output").textContent !== text || find("output").childElementCount !== shown.length) this.writeOutput(shown); // what stays the same is not said again
    [...find("output").children].forEach((part, number) => {
      part.className = `part ${shown[number].look}${shown.length > 1 && number === this.active ? " current" : ""}`;
    });
    find("output").lang = this.model?.target.code ?? "";
    this.last = shown.map((each) => each.text);
    find("copy").disabled = !text;
    find("edited").hidden = !this.edits.answer;
  }

  writeOutput(shown) {
    const parts = shown.map(({ text }, number) => {
      const part = make("span", {}, text);
      part.addEventListener("click", () => this.step(number));
      return [this.sentences[number].gap || (number && this.isSpaced ? " " : ""), part];
    });
    find("output").replaceChildren(...parts.flat());
  }

  showBusy(isBusy) {
    this.isBusy = isBusy;
    find("output").setAttribute("aria-busy", String(isBusy));
    find("working").textContent = isBusy ? say("working") : "";
    find("gaze").classList.toggle("waiting", isBusy);
  }

  showCount() {
    const length = [...find("text").value].length, { characters } = this.limits;
    find("count").textContent = say("count", { count: count(length), limit: count(characters) });
    find("count").classList.toggle("over", length > characters);
    find("clear").hidden = !length;
  }

  showAlternatives(isOpen) {
    const others = this.found()?.alternatives ?? [];
    find("more").hidden = !others.length;
    find("more").textContent = `${say("more")} (${others.length})`;
    find("more").setAttribute("aria-expanded", String(isOpen && others.length > 0));
    find("alternatives").hidden = !isOpen || !others.length;
    find("alternatives").replaceChildren(...others.map((other, number) => make("li", {}, this.otherButton(other, number))));
  }

  otherButton(other, number) {
    const own = this.taken.get(this.sentence), isTaken = own?.number === number && own.model === this.model.id;
    const button = make("button", { type: "button", class: "other", dir: "auto", lang: this.model.target.code, "aria-pressed": String(isTaken) }, other.text);
    button.addEventListener("click", () => {
      isTaken ? this.taken.delete(this.sentence) : this.taken.set(this.sentence, { number, model: this.model.id });
      this.edits.clear();
      this.show();
      find("alternatives").querySelectorAll("button")[number].focus();
    });
    return button;
  }

  /* Source words at which nothing of the translation looked; those that a person silenced are no news. */
  ignored(number) {
    const isActive = number === this.active, attention = isActive ? this.attention : this.found(number)?.attention;
    return (attention?.warnings ?? []).filter(({ word }) => !isActive || !this.edits.masked.has(word));
  }

  showWarning() {
    const texts = this.sentences.flatMap((_, number) => this.ignored(number)).map(({ text }) => text);
    const words = texts.filter((text, place) => texts.findIndex((each) => each.toLowerCase() === text.toLowerCase()) === place).map(quoted);
    const named = words.length > NAMED ? `${words.slice(0, NAMED).join(", ")} …` : words.join(", ");
    const text = words.length ? say("warning", { words: named }) : "";
    if (find("warning").textContent !== text) find("warning").textContent = text; // said once
  }

  // --- the ribbons

  /* The attention of what is shown: after a change, of another translation, or of the best. */
  get attention() {
    const found = this.found(), other = this.taken.get(this.sentence);
    if (this.edits.answer) return this.edits.answer.after.attention;
    return (other?.model === this.model?.id ? found?.alternatives[other.number]?.attention : null) ?? found?.attention;
  }

  showGaze() {
    const { model, edits } = this, found = this.found(), attention = this.attention?.weights ? this.attention : null; // there are none of a very long one
    find("gaze").hidden = !this.sentences.length || (!found && find("gaze").hidden);
    find("welcome").hidden = this.sentences.length > 0;
    if (!found) return;
    find("nothing-seen").hidden = Boolean(attention);
    find("nothing-seen").textContent = attention ? "" : say(model.attention ? "too-long-to-see" : "no-attention");
    find("first").querySelector(".stage").hidden = !attention;
    for (const part of ["editing", "hint"]) find(part).hidden = !attention || !model.what_if;
    find("full").hidden = !model.full || !attention;
    find("shows").textContent = attention?.shows ?? "";
    this.showSteps();
    if (attention) this.showLook(attention);
    edits.show();
    this.comparison.show(found, (other) => this.found(this.active, other));
  }

  showLook(attention) {
    const { edits, model } = this, ignored = this.ignored(this.active).map((each) => each.word);
    edits.words = { row: attention.target_words, column: attention.source_words };
    this.look.show(attention, { canEdit: model.what_if, silenced: [...edits.masked], ignored, forced: edits.attended });
  }

  showSteps() {
    const total = this.sentences.length;
    find("steps").hidden = total < 2;
    find("step-count").textContent = say("sentence-of", { number: this.active + 1, count: total });
    find("step-back").disabled = this.active === 0;
    find("step-forth").disabled = this.active === total - 1;
  }

  fillForm() {
    const { elements } = find("full");
    Object.entries({ q: this.sentence, model: this.model.id, api_key: ownKey() }).forEach(([name, value]) => { elements[name].value = value; elements[name].disabled = !value; });
  }

  async copy() {
    const isCopied = await copied(this.text());
    find("copy").textContent = say(isCopied ? "copied" : "cannot-copy");
    setTimeout(() => { find("copy").textContent = say("copy"); }, 2000);
  }
}

const keyOf = (model, text) => `${model.id}\n${text}`;

/* The clipboard is open only to pages that came over https or from this machine; else the old way may work. */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = make("textarea", { class: "unseen", readonly: true }), before = document.activeElement;
    field.value = text;
    document.body.append(field);
    field.select();
    const isDone = document.execCommand("copy");
    field.remove();
    before?.focus();
    return isDone;
  }
}
