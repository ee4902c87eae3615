/* The words of the translation: uncertain ones are underlined, and each offers other words to continue from. */

import { ApiError, post } from "./api.js";

const find = (id) => document.getElementById(id);
const UNCERTAIN = 0.5; // words below this confidence are underlined
const OPEN_MS = 350, CLOSE_MS = 300; // after the pointer or the focus enters or leaves a word
const CACHE_SIZE = 500; // positions

export class WordConfidence {
  /* `panel` has requestOf(index), the fields of a request for a sentence, and choose(index, translation). */
  constructor(panel) {
    Object.assign(this, { panel, cache: new Map(), open: null, timer: null, request: null });
    const output = find("output"), menu = find("word-menu");
    for (const [name, isEnter] of [["pointerover", true], ["pointerout", false]]) {
      output.addEventListener(name, (event) => event.pointerType !== "touch" && this.schedule(isEnter ? wordOf(event.target) : null));
      menu.addEventListener(name, (event) => event.pointerType !== "touch" && this.schedule(isEnter ? this.open?.element : null));
    }
    output.addEventListener("click", (event) => { const element = wordOf(event.target); if (element) { this.setFocusable(element); this.show(element); } });
    output.addEventListener("focusin", (event) => { const element = wordOf(event.target); if (element?.matches(":focus-visible")) this.schedule(element); });
    output.addEventListener("keydown", (event) => this.onOutputKey(event));
    menu.addEventListener("keydown", (event) => this.onMenuKey(event));
    document.addEventListener("pointerdown", (event) => { if (!menu.contains(event.target) && !wordOf(event.target)) this.close(); });
    for (const element of [output, menu]) element.addEventListener("focusout", (event) => {
      if (event.relatedTarget && !menu.contains(event.relatedTarget) && !wordOf(event.relatedTarget)) this.close();
    });
    onLanguageChange(() => this.close());
  }

  // --- words

  /* The nodes of a sentence: an element for each word, and the white space between them. */
  render(text, confidence, sentence) {
    const nodes = [];
    let end = 0;
    (confidence?.words ?? []).forEach(({ text: word, confidence: value }, index) => {
      const start = text.indexOf(word, end);
      if (start < 0) return;
      if (start > end) nodes.push(text.slice(end, start));
      const isUncertain = value < UNCERTAIN;
      nodes.push(make("span", {
        class: isUncertain ? "output-word uncertain" : "output-word", role: "button", tabindex: "-1", "aria-haspopup": "true", "aria-expanded": "false",
        "data-sentence": sentence, "data-word": index, "data-confidence": value, "aria-description": isUncertain ? t("uncertain-word", { share: formatPercent(value) }) : null,
      }, word));
      end = start + word.length;
    });
    return [...nodes, text.slice(end)];
  }

  /* After the output was rendered: one word can be reached by the Tab key, the first uncertain one if there is any. */
  update(confidences) {
    this.close();
    const words = this.words(), first = words.find((word) => word.matches(".uncertain")) ?? words[0];
    if (first) this.setFocusable(first);
    const known = confidences.filter(Boolean), isUncertain = known.some(({ words: own }) => own.some(({ confidence }) => confidence < UNCERTAIN));
    const note = known.every(({ calibrated }) => calibrated) ? "uncertain-note" : "uncertain-note-raw";
    find("confidence-note").textContent = isUncertain ? t(note, { share: formatPercent(UNCERTAIN) }) : "";
  }

  words() { return [...find("output").querySelectorAll(".output-word")]; }

  setFocusable(element) {
    const words = this.words();
    setRoving(words, words.indexOf(element));
  }

  focus(sentence, word) {
    const own = this.words().filter(({ dataset }) => Number(dataset.sentence) === sentence), element = own[Math.min(word, own.length - 1)];
    if (!element) return;
    this.setFocusable(element);
    element.focus();
    clearTimeout(this.timer); // the menu was just used
  }

  onOutputKey(event) {
    const element = wordOf(event.target), words = this.words();
    if (!element || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape") return this.close();
    if (["Enter", " ", "ArrowDown"].includes(event.key)) {
      event.preventDefault();
      return this.show(element, true);
    }
    const index = arrowTarget(event.key, words.indexOf(element), words.length, getComputedStyle(element).direction === "rtl");
    if (index === null) return;
    event.preventDefault();
    setRoving(words, index);
    words[index].focus();
  }

  // --- menu

  /* Open the menu of a word, or close it, unless the pointer or focus moves on. */
  schedule(element) {
    clearTimeout(this.timer);
    if (element && element === this.open?.element) return;
    this.timer = setTimeout(() => {
      if (element) this.show(element);
      else if (!find("word-menu").contains(document.activeElement) && document.activeElement !== this.open?.element) this.close();
    }, element ? OPEN_MS : CLOSE_MS);
  }

  close() {
    clearTimeout(this.timer);
    this.request?.abort();
    this.open?.element.setAttribute("aria-expanded", "false");
    this.open = null;
    find("word-menu").hidden = true;
  }

  async show(element, isFocusWanted = false) {
    if (this.open?.element !== element) {
      this.close();
      const { sentence, word, confidence } = element.dataset;
      this.open = { element, sentence: Number(sentence), word: Number(word), share: Number(confidence) };
      element.setAttribute("aria-expanded", "true");
      this.fill(t("working"));
      const { open } = this, found = await this.fetch(open);
      if (this.open !== open) return;
      typeof found === "string" ? this.fill(found) : this.fill("", found);
    }
    if (isFocusWanted) find("word-menu").querySelector("button")?.focus();
  }

  /* The alternatives, or the message of an error. */
  async fetch({ sentence, word }) {
    const fields = { ...this.panel.requestOf(sentence), word }, key = JSON.stringify(fields);
    if (!this.cache.has(key)) {
      this.request = new AbortController();
      try {
        const { alternatives } = await post("v1/alternatives", fields, this.request.signal);
        if (this.cache.size > CACHE_SIZE) this.cache.clear();
        this.cache.set(key, alternatives);
      } catch (error) {
        if (error.name !== "AbortError" && !(error instanceof ApiError)) throw error;
        return error.message;
      }
    }
    return this.cache.get(key);
  }

  fill(message, alternatives = []) {
    const { element, share } = this.open, isCalibrated = this.panel.isCalibrated(this.open.sentence);
    const head = make("p", { class: "faint" }, t(isCalibrated ? "word-confidence" : "word-confidence-raw", { share: formatPercent(share) }));
    const own = element.textContent, list = alternatives.map((alternative) => this.button(alternative, strip(own) === strip(alternative.word)));
    find("word-menu").replaceChildren(head, ...(message ? [make("p", { role: "status" }, message)] : list));
    this.position(element);
  }

  button({ word, probability, translation }, isCurrent) {
    const name = make("bdi", { lang: find("output").lang || null }, word), share = make("span", { class: "faint" }, formatPercent(probability));
    const button = make("button", { type: "button", class: "alternative", "aria-pressed": String(isCurrent) }, name, " ", share);
    button.addEventListener("click", () => {
      const { sentence, word: index } = this.open;
      this.close();
      if (!isCurrent) this.panel.choose(sentence, translation);
      this.focus(sentence, index);
    });
    return button;
  }

  /* Below the word, inside the pane. */
  position(element) {
    const menu = find("word-menu"), pane = menu.offsetParent ?? menu.parentElement;
    menu.hidden = false;
    const box = pane.getBoundingClientRect(), word = element.getClientRects()[0];
    const left = Math.min(word.left - box.left, box.width - menu.offsetWidth - 8);
    Object.assign(menu.style, { left: `${Math.max(left, 8)}px`, top: `${word.bottom - box.top + 4}px` });
  }

  onMenuKey(event) {
    const buttons = [...find("word-menu").querySelectorAll("button")], index = buttons.indexOf(document.activeElement);
    if (event.key === "Escape") {
      const { sentence, word } = this.open;
      this.close();
      return this.focus(sentence, word);
    }
    const next = { ArrowDown: index + 1, ArrowUp: index - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    if (next < 0) return this.open.element.focus();
    buttons[Math.min(next, buttons.length - 1)].focus();
  }
}

const wordOf = (element) => element?.closest?.(".output-word") ?? null;
const strip = (text) => text.replace(/^[\p{P}\s]+|[\p{P}\s]+$/gu, "");
